//! `landfall certificate`: the evidence of a landed task.

use landfall_api::{Ask, TaskAsked, TaskId};

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::say::print_json;

/// Prints the evidence of a landed task, always as JSON.
///
/// It holds the criteria, each command with its exit code and tests, the tree, the commit and the proof.
#[derive(clap::Args)]
pub struct Args {
    /// Which task, such as T7.
    task: TaskId,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let answer = context.service()?.certificate(TaskAsked { task: args.task })?;
    print_json(&answer.certificate)?;
    Ok(Exit::Ok)
}

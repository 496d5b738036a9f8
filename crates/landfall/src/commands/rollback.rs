//! `landfall rollback`: takes a landed task back.

use landfall_api::{Ask, TaskAsked, TaskId};

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::say::clean;

/// Takes a landed task back.
///
/// A new commit that undoes it is verified and lands like any other. History stays as it is.
#[derive(clap::Args)]
pub struct Args {
    /// Which task, such as T7.
    task: TaskId,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let rolled_back = context.service()?.rollback(TaskAsked { task: args.task })?;
    context.answer(&rolled_back, |it| format!("{}\n", clean(&it.text)))?;
    Ok(Exit::Ok)
}

//! `landfall accept`: ends tasks whose work is already there.

use landfall_api::{Accept, Ask, TaskId};

use super::words;
use crate::context::Context;
use crate::exit::{Exit, Failure};

/// End a task as done because its work is already there
///
/// Nothing lands. The tasks that need it go on. Use it where a task failed because somebody else did the work, or where a need was
/// cancelled that nobody has to wait for.
#[derive(clap::Args)]
pub struct Args {
    /// Tasks, such as T7
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<TaskId>,

    /// Reason, such as the commit that holds the work
    #[arg(long, value_name = "REASON", required = true)]
    already_done: String,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let asked = Accept { tasks: args.tasks, reason: args.already_done };
    let changed = context.service()?.accept(asked)?;
    context.answer(&changed, words::changed)?;
    Ok(Exit::Ok)
}

//! `landfall accept`: ends tasks as done whose work is already there.

use landfall_api::{Accept, TypedService, WireTaskId};

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// End a task as done because its work is already there
///
/// Nothing lands, and the tasks that need it can start. Use this if the work of a failed task was done elsewhere, or if other tasks
/// no longer have to wait for a cancelled task.
#[derive(clap::Args)]
pub struct Args {
    /// Tasks, such as T7
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<WireTaskId>,

    /// Reason, such as the commit that holds the work
    #[arg(long, value_name = "REASON", required = true)]
    already_done: String,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let asked = Accept { tasks: args.tasks, reason: args.already_done };
    let changed = context.open_service()?.accept(asked)?;
    context.print_answer(&changed, words::render_changed)?;
    Ok(CliExit::Ok)
}

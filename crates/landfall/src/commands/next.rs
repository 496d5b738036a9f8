//! `landfall run next`: picks the next task.

use landfall_api::{NextAsked, TypedService, WireTaskId};
use landfall_text::control_chars::escape_line;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Pick the next task of a semi-automatic run
#[derive(clap::Args)]
pub struct Args {
    /// Task, such as T7; the default is the first in the queue
    task: Option<WireTaskId>,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let picked = context.open_service()?.next(NextAsked { task: args.task })?;
    context.print_answer(&picked, |picked| format!("{}\n", escape_line(&picked.text)))?;
    Ok(CliExit::Ok)
}

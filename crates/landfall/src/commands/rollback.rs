//! `landfall rollback`: takes a landed task back.

use landfall_api::{TaskAsked, TypedService, WireTaskId};
use landfall_text::control_chars::escape_line;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Roll back a landed task
///
/// Landfall adds a task that reverts its commits, verifies it and lands it like any other. History is not rewritten.
#[derive(clap::Args)]
pub struct Args {
    /// Task, such as T7
    task: WireTaskId,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let rolled_back = context.open_service()?.rollback(TaskAsked { task: args.task })?;
    context.print_answer(&rolled_back, |it| format!("{}\n", escape_line(&it.text)))?;
    Ok(CliExit::Ok)
}

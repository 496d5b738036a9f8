//! `landfall task block`: says that a task cannot go on.

use landfall_api::{Block, TypedService, WireTaskId};

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Mark a task as blocked
///
/// Its work is kept. `landfall retry` starts it again.
#[derive(clap::Args)]
pub struct Args {
    /// Task, such as T7
    task: WireTaskId,

    /// Reason
    #[arg(required = true, value_name = "REASON")]
    reason: Vec<String>,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let asked = Block { tasks: vec![args.task], reason: args.reason.join(" ") };
    let changed = context.open_service()?.block(asked)?;
    context.print_answer(&changed, words::render_changed)?;
    Ok(CliExit::Ok)
}

//! `landfall cancel`: ends tasks that are wanted no more.

use landfall_api::{Cancel, TypedService, WireTaskId};

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Cancel tasks; their work is kept
#[derive(clap::Args)]
pub struct Args {
    /// Tasks, such as T7
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<WireTaskId>,

    /// Reason
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Remove their workspaces as well; work that has not landed is kept under a ref
    #[arg(long)]
    cleanup: bool,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let Args { tasks, reason, cleanup } = args;
    let changed = context.open_service()?.cancel(Cancel { tasks, reason, cleanup })?;
    context.print_answer(&changed, words::render_changed)?;
    Ok(CliExit::Ok)
}

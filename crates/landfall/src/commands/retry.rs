//! `landfall retry`: lets tasks start again.

use landfall_api::{Retry, TypedService, WireTaskId};

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Start tasks again that ended without landing
///
/// For tasks that failed, ran out of a limit, are blocked or paused. They continue from the work they have.
#[derive(clap::Args)]
pub struct Args {
    /// Tasks, such as T7
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<WireTaskId>,

    /// Start over in a new workspace at the base; the work so far is kept under a ref
    #[arg(long)]
    fresh: bool,

    /// Note for the agent
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let Args { tasks, fresh, note } = args;
    let changed = context.open_service()?.retry(Retry { tasks, fresh, note })?;
    context.print_answer(&changed, words::render_changed)?;
    Ok(CliExit::Ok)
}

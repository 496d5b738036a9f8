//! `landfall task hold`: keeps one task from going on.

use landfall_api::{Hold, TypedService, WireTaskId};

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Hold a task until you release it
///
/// The current iteration finishes first, then the task frees its slot. `landfall stop` does not wait for that.
#[derive(clap::Args)]
pub struct Args {
    /// Task, such as T7
    task: WireTaskId,

    /// Reason
    #[arg(value_name = "REASON")]
    reason: Vec<String>,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let reason = Some(args.reason.join(" ")).filter(|reason| !reason.is_empty());
    let changed = context.open_service()?.hold(Hold { tasks: vec![args.task], reason })?;
    context.print_answer(&changed, words::render_changed)?;
    Ok(CliExit::Ok)
}

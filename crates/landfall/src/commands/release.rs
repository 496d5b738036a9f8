//! `landfall task release`: lets tasks that are held go on.

use landfall_api::{Release, TypedService, WireTaskId};

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Let held or stopped tasks continue
#[derive(clap::Args)]
pub struct Args {
    /// Tasks, such as T7
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<WireTaskId>,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let changed = context.open_service()?.release(Release { tasks: args.tasks })?;
    context.print_answer(&changed, words::render_changed)?;
    Ok(CliExit::Ok)
}

//! `landfall stop`: stops the run, or one task of it.

use landfall_api::{StopAsked, Stopped, TypedService, WireTaskId};
use landfall_text::control_chars::escape_line;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Stop the run, or one task
///
/// Without a task, current iterations finish first. With a task, its agent ends within seconds. All work is kept, and the next run
/// continues from there.
#[derive(clap::Args)]
pub struct Args {
    /// Only this task
    task: Option<WireTaskId>,

    /// Stop at once instead of finishing the current iterations; the work so far is kept
    #[arg(long)]
    now: bool,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let stopped = context.open_service()?.stop(StopAsked { task: args.task, now: args.now })?;
    context.print_answer(&stopped, render_stopped)?;
    Ok(CliExit::Ok)
}

fn render_stopped(stopped: &Stopped) -> String {
    let details = stopped.details.iter().map(|line| format!("- {}\n", escape_line(line)));
    format!("{}\n{}", escape_line(&stopped.text), details.collect::<String>())
}

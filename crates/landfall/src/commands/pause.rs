//! `landfall run pause`: begins nothing new.

use landfall_api::{PauseAsked, TypedService};
use landfall_text::control_chars::escape_line;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Pause the run: current iterations finish, nothing new starts
///
/// `landfall run resume` continues.
#[derive(clap::Args)]
pub struct Args {
    /// Reason, shown where the pause is shown
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let pilot = context.open_service()?.pause(PauseAsked { reason: args.reason })?;
    context.print_answer(&*pilot, |pilot| format!("{}\n", escape_line(&pilot.text)))?;
    Ok(CliExit::Ok)
}

//! `landfall run resume`: goes on after a pause.

use landfall_api::{Nothing, TypedService};
use landfall_text::control_chars::escape_line;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Resume a paused run
#[derive(clap::Args)]
pub struct Args {}

pub fn run(Args {}: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let pilot = context.open_service()?.resume(Nothing {})?;
    context.print_answer(&*pilot, |pilot| format!("{}\n", escape_line(&pilot.text)))?;
    Ok(CliExit::Ok)
}

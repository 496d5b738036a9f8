//! `landfall top`: the run on a terminal.

use std::io::IsTerminal as _;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::top;

/// Watch and control the run in a full-screen view
///
/// Press `?` for the keys. Leaving the view does not stop the run.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(Args {}: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    if context.json {
        return Err(CommandFailure::usage_error("`top` is for people")
            .with_hint("`landfall status --json` says the same to a program"));
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(CommandFailure::usage_error("`top` needs a terminal, and this is none")
            .with_hint("`landfall status` says how the project stands"));
    }
    top::top(&context.at)
}

//! `landfall top`: the run on a terminal.

use std::io::IsTerminal as _;

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::top;

/// Shows the run on the terminal as it goes, and lets you steer it: answer, approve, pause, stop. `?` lists the keys.
///
/// Leaving it leaves the run alone.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(Args {}: Args, context: &Context) -> Result<Exit, Failure> {
    if context.json {
        return Err(
            Failure::usage("`top` is for people").hint("`landfall status --json` says the same to a program")
        );
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::usage("`top` needs a terminal, and this is none")
            .hint("`landfall status` says how the project stands"));
    }
    top::top(&context.at)
}

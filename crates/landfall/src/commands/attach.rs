//! `landfall task attach`: a person at the terminal of an agent at work.

use std::io::IsTerminal as _;

use landfall_api::WireTaskId;
use landfall_bridge::attach::{AttachError, attach_to_terminal};

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::say::print_json;

/// Attach to the terminal of an agent
///
/// Only agents of kind `tmux` have one. Leave with C-b d. With --json, print where the terminal is instead.
#[derive(clap::Args)]
pub struct Args {
    /// Task, such as T7
    task: WireTaskId,

    /// Watch only, without typing
    #[arg(short, long)]
    read_only: bool,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let terminal = landfall_app::find_attach_target(&context.at, args.task)?;
    if context.json {
        print_json(&terminal)?;
        return Ok(CliExit::Ok);
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(CommandFailure::usage_error("attaching needs a terminal, and this is none")
            .with_hint("`--json` says where the agent's terminal is"));
    }
    let error = attach_to_terminal(&terminal, args.read_only);
    let failure = CommandFailure::new(CliExit::Machine, error.to_string());
    Err(match error {
        AttachError::NoTmux => failure.with_hint("install tmux"),
        AttachError::Unconfined(_) => failure.with_hint(
            "a client obeys the agent's side of the terminal, so it is confined by Landlock, which Linux has from 5.13 on",
        ),
        AttachError::Exec(_) => failure,
    })
}

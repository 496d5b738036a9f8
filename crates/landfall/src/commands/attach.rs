//! `landfall attach`: a person at the terminal of an agent at work.

use std::io::IsTerminal as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use landfall_api::TaskId;

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::house;
use crate::say::print_json;

/// Shows the terminal in which the agent of a task works, and lets you type into it. Leave with C-b d.
///
/// Only agents of kind `tmux` have one. With --json it only says where the terminal is.
#[derive(clap::Args)]
pub struct Args {
    /// Which task, such as T7.
    task: TaskId,

    /// Only looks.
    #[arg(short, long)]
    read_only: bool,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let terminal = house::terminal(&context.dir, args.task)?;
    if context.json {
        print_json(&terminal)?;
        return Ok(Exit::Ok);
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::usage("attaching needs a terminal, and this is none")
            .hint("`--json` says where the agent's terminal is"));
    }
    let mut tmux = Command::new("tmux");
    // In the folder of the socket: its whole path may be longer than an address can be.
    tmux.current_dir(&terminal.folder)
        .args(["-u", "-f", "/dev/null", "-S", &terminal.socket, "attach-session", "-t"])
        .arg(format!("={}", terminal.name))
        .env_remove("TMUX"); // a person may well be in a tmux of their own
    if args.read_only {
        tmux.arg("-r");
    }
    let error = tmux.exec();
    let failure = Failure::new(Exit::Machine, format!("run tmux: {error}"));
    Err(match error.kind() {
        std::io::ErrorKind::NotFound => failure.hint("install tmux"),
        _ => failure,
    })
}

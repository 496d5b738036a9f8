//! `landfall signal`: what an agent at work says to its run.

use std::io::{IsTerminal as _, Read as _};

use landfall_bridge::socket::{LineError, SitterConnection, SocketSignal};
use serde_json::json;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Report the state of the task to Landfall, for agents at work
#[derive(clap::Args)]
#[command(after_help = "Words:\n  \
    complete                the work is done and committed\n  \
    blocked TEXT            you cannot go on, and why\n  \
    pending TEXT            only a person can decide this\n  \
    progress NUMBER         how far you are, from 0 to 100\n  \
    resolved                a conflict is resolved\n  \
    discovery TEXT          something worth knowing for this task\n  \
    discovery-global TEXT   something worth knowing for every task\n  \
    ask TEXT                a question to a person\n  \
    follow-up TITLE [TEXT]  a new task for work that is not part of yours")]
pub struct Args {
    /// Signal
    word: String,

    /// Text of the signal; `-` reads stdin
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    text: Vec<String>,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let text = match args.text.as_slice() {
        [dash] if dash == "-" => read_stdin()?,
        // The title is one line: what follows it is the text.
        [title, rest @ ..] if args.word == "follow-up" => format!("{title}\n{}", rest.join(" ")),
        words => words.join(" "),
    };
    let word = SocketSignal::new(&args.word, &text)
        .map_err(|error| CommandFailure::usage_error(error.to_string()).with_hint(error.hint()))?;
    SitterConnection::from_environment()
        .and_then(|line| line.send_signal(&word))
        .map_err(to_command_failure)?;
    context.print_answer(&json!({ "ok": true }), |_| String::from("noted\n"))?;
    Ok(CliExit::Ok)
}

fn to_command_failure(error: LineError) -> CommandFailure {
    let code = match error {
        LineError::Outside { .. } | LineError::Refused { .. } => CliExit::NotNow,
        LineError::Unreachable { .. } => CliExit::Machine,
    };
    let failure = CommandFailure::new(code, error.to_string());
    match error.hint() {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

fn read_stdin() -> Result<String, CommandFailure> {
    const TEXT_MAX: u64 = 256 << 10; // a long report; the run keeps less of it
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(CommandFailure::usage_error("`-` reads the text from stdin, and stdin is a terminal"));
    }
    let mut bytes = Vec::new();
    stdin
        .lock()
        .take(TEXT_MAX)
        .read_to_end(&mut bytes)
        .map_err(|error| CommandFailure::new(CliExit::Machine, format!("read stdin: {error}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

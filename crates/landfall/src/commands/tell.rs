//! `landfall task tell`: says something to the agent of a task.

use landfall_api::{Message, TypedService, WireTaskId};

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Send a message to the agent of a task
///
/// The message is part of the prompt of the agent's next run, once. Until then the task keeps it.
#[derive(clap::Args)]
pub struct Args {
    /// Task, such as T7
    task: WireTaskId,

    /// Message; `-` reads stdin
    #[arg(required = true, value_name = "TEXT")]
    words: Vec<String>,

    /// End the current agent run and start the next one with the message; the work is kept and no attempt is counted
    #[arg(long)]
    now: bool,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let text = match args.words.as_slice() {
        [only] if only == "-" => words::read_text(context, "-".as_ref())?,
        words => words.join(" "),
    };
    let changed = context.open_service()?.message(Message { task: args.task, text, now: args.now })?;
    context.print_answer(&changed, words::render_changed)?;
    Ok(CliExit::Ok)
}

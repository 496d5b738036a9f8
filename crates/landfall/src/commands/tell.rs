//! `landfall tell`: says something to the agent of a task.

use landfall_api::{Ask, Message, TaskId};

use super::words;
use crate::context::Context;
use crate::exit::{Exit, Failure};

/// Says something to the agent of a task. It is in the prompt of its next run, once.
///
/// A task that is not being worked on keeps it until it is.
#[derive(clap::Args)]
pub struct Args {
    /// Which task, such as T7.
    task: TaskId,

    /// What to say; `-` reads stdin.
    #[arg(required = true, value_name = "TEXT")]
    words: Vec<String>,

    /// Ends the run that is under way and begins the next with it. Its work is kept, and nothing is counted.
    #[arg(long)]
    now: bool,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let text = match args.words.as_slice() {
        [only] if only == "-" => words::read_text(context, "-".as_ref())?,
        words => words.join(" "),
    };
    let changed = context.service()?.message(Message { task: args.task, text, now: args.now })?;
    context.answer(&changed, words::changed)?;
    Ok(Exit::Ok)
}

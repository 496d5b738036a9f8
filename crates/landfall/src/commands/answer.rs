//! `landfall answer`: answers the question a task waits with.

use landfall_api::{TypedService, WireTaskId};

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Answer the question of a task, or approve its review
///
/// The answer `approve` lets a task in review land.
#[derive(clap::Args)]
pub struct Args {
    /// Task, such as T7
    task: WireTaskId,

    /// Answer; `-` reads stdin
    #[arg(required = true, value_name = "TEXT")]
    words: Vec<String>,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let text = match args.words.as_slice() {
        [only] if only == "-" => words::read_text(context, "-".as_ref())?.trim().to_owned(),
        words => words.join(" "),
    };
    let changed = context.open_service()?.answer(landfall_api::Answer { task: args.task, text })?;
    context.print_answer(&changed, words::render_changed)?;
    Ok(CliExit::Ok)
}

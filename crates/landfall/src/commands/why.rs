//! `landfall why`: one sentence.

use landfall_api::{ClashLine, TaskAsked, TypedService, WireTaskId};
use landfall_text::control_chars::escape_line;

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Show why a task is in its current state
#[derive(clap::Args)]
pub struct Args {
    /// Task, such as T7; `#12` is the task of issue 12
    task: WireTaskId,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let why = context.open_service()?.why(TaskAsked { task: args.task })?;
    context.print_answer(&why, |why| {
        let details: String = why.details.iter().map(|line| format!("  {}\n", escape_line(line))).collect();
        let clashes: String =
            why.clashes.iter().map(|clash| format!("  {}\n", escape_line(&clash_sentence(clash)))).collect();
        format!("{}\n{details}{clashes}", escape_line(&why.sentence))
    })?;
    Ok(CliExit::Ok)
}

fn clash_sentence(clash: &ClashLine) -> String {
    let files = words::first_files(&clash.files);
    format!(
        "as they stand, it does not fit together with {}: {files}; whoever lands second resolves that",
        clash.with
    )
}

//! `landfall diff`: what a task changes.

use landfall_api::{DiffAsked, TypedService, WireTaskId};

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::say::{print_json, print_message, print_untrusted};

/// Show what a task changes, as a unified diff
///
/// On a terminal, control characters are shown as escapes. In a pipe or a file the diff stays as it is, so that `git apply`
/// accepts it. Use `--safe` if another program shows it on a terminal.
#[derive(clap::Args)]
pub struct Args {
    /// Task, such as T7
    task: WireTaskId,

    /// Only changes since this commit of the task
    #[arg(long, value_name = "COMMIT")]
    since: Option<String>,

    /// Show control characters as escapes in a pipe, too
    #[arg(long)]
    safe: bool,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let diff = context.open_service()?.diff(DiffAsked { task: args.task, from: args.since })?;
    if context.json {
        print_json(&diff)?;
        return Ok(CliExit::Ok);
    }
    let bytes = diff
        .diff
        .bytes()
        .map_err(|error| CommandFailure::new(CliExit::Internal, format!("read the diff: {error}")))?;
    if bytes.is_empty() {
        print_message(&format!("{} changes nothing yet", diff.task));
    }
    print_untrusted(&bytes, args.safe)?;
    Ok(CliExit::Ok)
}

//! `landfall diff`: what a task changes.

use landfall_api::{Ask, DiffAsked, TaskId};

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::say::{print_foreign, print_json, talk};

/// Shows what a task changes, as a unified diff against the base.
///
/// On a terminal, characters that a terminal obeys are shown by their number. Into a pipe or a file the diff goes as it is, so
/// that `git apply` takes it: read it with `--safe` if a program shows it on a terminal.
#[derive(clap::Args)]
pub struct Args {
    /// Which task, such as T7.
    task: TaskId,

    /// Only its work since this commit of it.
    #[arg(long, value_name = "COMMIT")]
    since: Option<String>,

    /// Show characters that a terminal obeys by their number, into a pipe too
    #[arg(long)]
    safe: bool,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let diff = context.service()?.diff(DiffAsked { task: args.task, from: args.since })?;
    if context.json {
        print_json(&diff)?;
        return Ok(Exit::Ok);
    }
    let bytes =
        diff.diff.bytes().map_err(|error| Failure::new(Exit::Internal, format!("read the diff: {error}")))?;
    if bytes.is_empty() {
        talk(&format!("{} changes nothing yet", diff.task));
    }
    print_foreign(&bytes, args.safe)?;
    Ok(Exit::Ok)
}

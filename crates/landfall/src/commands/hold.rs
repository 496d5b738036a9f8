//! `landfall hold`: keeps one task from going on.

use landfall_api::{Ask, Hold, TaskId};

use super::words;
use crate::context::Context;
use crate::exit::{Exit, Failure};

/// Keeps a task from going on until you release it.
///
/// What is under way is finished first; then it frees its slot. `landfall stop` does not wait for that.
#[derive(clap::Args)]
pub struct Args {
    /// Which task, such as T7.
    task: TaskId,

    /// Why.
    #[arg(value_name = "REASON")]
    reason: Vec<String>,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let reason = Some(args.reason.join(" ")).filter(|reason| !reason.is_empty());
    let changed = context.service()?.hold(Hold { tasks: vec![args.task], reason })?;
    context.answer(&changed, words::changed)?;
    Ok(Exit::Ok)
}

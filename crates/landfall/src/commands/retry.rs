//! `landfall retry`: lets tasks start again.

use landfall_api::{Ask, Retry, TaskId};

use super::words;
use crate::context::Context;
use crate::exit::{Exit, Failure};

/// Lets tasks that ended without landing start again.
///
/// For tasks that failed, ran out of time, are blocked or paused. They go on from the work they have.
#[derive(clap::Args)]
pub struct Args {
    /// Which tasks, such as T7.
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<TaskId>,

    /// From a new workspace at the base. The work so far is kept under a ref.
    #[arg(long)]
    fresh: bool,

    /// What the agent should know this time.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let Args { tasks, fresh, note } = args;
    let changed = context.service()?.retry(Retry { tasks, fresh, note })?;
    context.answer(&changed, words::changed)?;
    Ok(Exit::Ok)
}

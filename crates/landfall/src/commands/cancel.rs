//! `landfall cancel`: ends tasks that are wanted no more.

use landfall_api::{Ask, Cancel, TaskId};

use super::words;
use crate::context::Context;
use crate::exit::{Exit, Failure};

/// Ends tasks that are wanted no more. Their work is kept.
#[derive(clap::Args)]
pub struct Args {
    /// Which tasks, such as T7.
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<TaskId>,

    /// Why.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Removes their workspaces too. Work that has not landed is kept under a ref, and its commits are counted.
    #[arg(long)]
    cleanup: bool,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let Args { tasks, reason, cleanup } = args;
    let changed = context.service()?.cancel(Cancel { tasks, reason, cleanup })?;
    context.answer(&changed, words::changed)?;
    Ok(Exit::Ok)
}

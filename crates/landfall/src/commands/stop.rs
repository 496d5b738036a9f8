//! `landfall stop`: stops the run, or one task of it.

use landfall_api::{Ask, StopAsked, TaskId};

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::say::clean;

/// Stops the run, or one task of it.
///
/// Iterations under way are finished first. Nothing is lost: the next run goes on from there.
#[derive(clap::Args)]
pub struct Args {
    /// Only this task.
    task: Option<TaskId>,

    /// At once, without waiting for iterations under way. The work so far is kept.
    #[arg(long)]
    now: bool,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let stopped = context.service()?.stop(StopAsked { task: args.task, now: args.now })?;
    context.answer(&stopped, |stopped| format!("{}\n", clean(&stopped.text)))?;
    Ok(Exit::Ok)
}

//! `landfall run next`: picks the next task.

use landfall_api::{Ask, NextAsked, TaskId};

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::say::clean;

/// Pick the next task of a semi-automatic run
#[derive(clap::Args)]
pub struct Args {
    /// Task, such as T7; the default is the first in the queue
    task: Option<TaskId>,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let picked = context.service()?.next(NextAsked { task: args.task })?;
    context.answer(&picked, |picked| format!("{}\n", clean(&picked.text)))?;
    Ok(Exit::Ok)
}

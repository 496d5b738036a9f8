//! `landfall next`: picks the next task.

use landfall_api::{Ask, NextAsked, TaskId};

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::say::clean;

/// Picks the next task of a semi-automatic run: the first in line, or the one you name.
#[derive(clap::Args)]
pub struct Args {
    /// Which task, such as T7; the first in line when left out.
    task: Option<TaskId>,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let picked = context.service()?.next(NextAsked { task: args.task })?;
    context.answer(&picked, |picked| format!("{}\n", clean(&picked.text)))?;
    Ok(Exit::Ok)
}

//! `landfall release`: lets tasks that are held go on.

use landfall_api::{Ask, Release, TaskId};

use super::words;
use crate::context::Context;
use crate::exit::{Exit, Failure};

/// Lets tasks that are held, or were stopped, go on where they were.
#[derive(clap::Args)]
pub struct Args {
    /// Which tasks, such as T7.
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<TaskId>,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let changed = context.service()?.release(Release { tasks: args.tasks })?;
    context.answer(&changed, words::changed)?;
    Ok(Exit::Ok)
}

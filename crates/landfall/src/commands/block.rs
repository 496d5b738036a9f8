//! `landfall block`: says that a task cannot go on.

use landfall_api::{Ask, Block, TaskId};

use super::words;
use crate::context::Context;
use crate::exit::{Exit, Failure};

/// Says that a task cannot go on, as its agent would. Its work is kept; `landfall retry` opens it again.
#[derive(clap::Args)]
pub struct Args {
    /// Which task, such as T7.
    task: TaskId,

    /// What is in the way.
    #[arg(required = true, value_name = "REASON")]
    reason: Vec<String>,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let asked = Block { tasks: vec![args.task], reason: args.reason.join(" ") };
    let changed = context.service()?.block(asked)?;
    context.answer(&changed, words::changed)?;
    Ok(Exit::Ok)
}

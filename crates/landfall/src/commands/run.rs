//! `landfall run`: drives the backlog in the foreground.

use landfall_api::TaskId;

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::running::RunAsked;
use crate::{house, live};

/// Drives the backlog until nothing is left that can go on by itself.
///
/// Ctrl-C once finishes the iterations under way and stops; twice stops now. Nothing is lost either way: the next run
/// goes on from there.
#[derive(clap::Args)]
pub struct Args {
    /// Only these tasks and what they need; everything that is ready when left out.
    #[arg(value_name = "TASK")]
    tasks: Vec<TaskId>,

    /// How many agents work at once; what `landfall.toml` says when left out.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    slots: Option<u32>,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let interrupts = live::Interrupts::listen()?;
    let mut run = house::run(&context.dir, RunAsked { tasks: args.tasks, slots: args.slots, ..RunAsked::default() })?;
    let outcome = live::watch(run.as_mut(), &interrupts);
    context.answer(&outcome, live::summary)?;
    Ok(live::exit_of(&outcome, &interrupts))
}

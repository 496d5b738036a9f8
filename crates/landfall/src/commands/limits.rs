//! `landfall limits`: sets limits for one task alone.

use landfall_api::{Ask, Limits, TaskId};

use super::words;
use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::times;

/// Sets limits for one task alone: new values, not additions.
///
/// They count from here on, also for the attempt under way. A task that ran out goes on with `landfall retry`.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("limit").required(true).multiple(true).args(["iterations", "time", "usd"]))]
pub struct Args {
    /// Which task, such as T7.
    task: TaskId,

    /// Runs of its agent in all.
    #[arg(long, value_name = "COUNT")]
    iterations: Option<u32>,

    /// Working time in all, such as 90m or 2h.
    #[arg(long, value_name = "TIME", value_parser = times::duration_ms)]
    time: Option<u64>,

    /// Money in all, in dollars.
    #[arg(long, value_name = "DOLLARS")]
    usd: Option<f64>,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let Args { task, iterations, time, usd } = args;
    let changed = context.service()?.limits(Limits { task, iterations, time_ms: time, usd })?;
    context.answer(&changed, words::changed)?;
    Ok(Exit::Ok)
}

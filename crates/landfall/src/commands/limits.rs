//! `landfall task limits`: sets limits for one task alone.

use landfall_api::{Limits, TypedService, WireTaskId};

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::times;

/// Set limits for one task
///
/// The values replace the current limits and apply at once, also to the current attempt. A task that ran out of a limit continues
/// with `landfall retry`.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("limit").required(true).multiple(true).args(["iterations", "time", "usd"]))]
pub struct Args {
    /// Task, such as T7
    task: WireTaskId,

    /// Maximum number of agent runs
    #[arg(long, value_name = "COUNT")]
    iterations: Option<u32>,

    /// Maximum working time, such as 90m or 2h
    #[arg(long, value_name = "TIME", value_parser = times::duration_ms)]
    time: Option<u64>,

    /// Maximum cost in US dollars
    #[arg(long, value_name = "DOLLARS")]
    usd: Option<f64>,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let Args { task, iterations, time, usd } = args;
    let changed = context.open_service()?.limits(Limits { task, iterations, time_ms: time, usd })?;
    context.print_answer(&changed, words::render_changed)?;
    Ok(CliExit::Ok)
}

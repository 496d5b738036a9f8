//! `landfall objective refine`: a person changed their mind.

use landfall_api::{Refine, RefineWithdraw, TypedService, WireTaskId};

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Change the requirements of a running task, or extend a finished one
///
/// The next check of a running task considers the change; if its flow has no judge, the agent gets it. A finished task starts again.
#[derive(clap::Args)]
pub struct Args {
    /// Task, such as T7
    task: WireTaskId,

    /// What you want; `-` reads stdin
    #[arg(value_name = "TEXT", required_unless_present = "withdraw")]
    words: Vec<String>,

    /// Withdraw the refinement with this number, if it was not processed yet
    #[arg(long, value_name = "N", conflicts_with = "words")]
    withdraw: Option<u32>,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let task = args.task;
    let changed = match args.withdraw {
        Some(number) => context.open_service()?.refine_withdraw(RefineWithdraw { task, number })?,
        None => {
            let text = words::read_words(context, &args.words)?;
            context.open_service()?.refine(Refine { task, text })?
        }
    };
    context.print_answer(&changed, words::render_changed)?;
    Ok(CliExit::Ok)
}

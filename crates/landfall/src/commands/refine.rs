//! `landfall refine`: a person changed their mind.

use landfall_api::{Ask, Refine, RefineWithdraw, TaskId};

use super::words;
use crate::context::Context;
use crate::exit::{Exit, Failure};

/// Says what you want otherwise while a task is under way, or more of what is done.
///
/// While it is under way, the next check weighs it; where nobody judges, whoever works on it hears it. A task that is done is taken up again.
#[derive(clap::Args)]
pub struct Args {
    /// Which task, such as T7.
    task: TaskId,

    /// What you want; `-` reads stdin.
    #[arg(value_name = "TEXT", required_unless_present = "withdraw")]
    words: Vec<String>,

    /// Takes a refinement back that nobody has dealt with.
    #[arg(long, value_name = "N", conflicts_with = "words")]
    withdraw: Option<u32>,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let task = args.task;
    let changed = match args.withdraw {
        Some(number) => context.service()?.refine_withdraw(RefineWithdraw { task, number })?,
        None => {
            let text = words::said(context, &args.words)?;
            context.service()?.refine(Refine { task, text })?
        }
    };
    context.answer(&changed, words::changed)?;
    Ok(Exit::Ok)
}

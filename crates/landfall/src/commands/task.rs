//! `landfall task`: control of a single task.

use super::{annotate, attach, block, do_step, hold, limits, papers, release, tell};
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Control a single task: hold it, message its agent, set limits, run a step
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: TaskSubcommand,
}

#[derive(clap::Subcommand)]
enum TaskSubcommand {
    Hold(hold::Args),
    Release(release::Args),
    Tell(tell::Args),
    Limits(limits::Args),
    Block(block::Args),
    Do(do_step::Args),
    Papers(papers::Args),
    Annotate(annotate::Args),
    Attach(attach::Args),
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    match args.action {
        TaskSubcommand::Hold(args) => hold::run(args, context),
        TaskSubcommand::Release(args) => release::run(args, context),
        TaskSubcommand::Tell(args) => tell::run(args, context),
        TaskSubcommand::Limits(args) => limits::run(args, context),
        TaskSubcommand::Block(args) => block::run(args, context),
        TaskSubcommand::Do(args) => do_step::run(args, context),
        TaskSubcommand::Papers(args) => papers::run(args, context),
        TaskSubcommand::Annotate(args) => annotate::run(args, context),
        TaskSubcommand::Attach(args) => attach::run(args, context),
    }
}

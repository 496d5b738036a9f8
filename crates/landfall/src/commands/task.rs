//! `landfall task`: control of a single task.

use super::{annotate, attach, block, do_step, hold, limits, papers, release, tell};
use crate::context::Context;
use crate::exit::{Exit, Failure};

/// Control a single task: hold it, message its agent, set limits, run a step
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
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

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    match args.action {
        Action::Hold(args) => hold::run(args, context),
        Action::Release(args) => release::run(args, context),
        Action::Tell(args) => tell::run(args, context),
        Action::Limits(args) => limits::run(args, context),
        Action::Block(args) => block::run(args, context),
        Action::Do(args) => do_step::run(args, context),
        Action::Papers(args) => papers::run(args, context),
        Action::Annotate(args) => annotate::run(args, context),
        Action::Attach(args) => attach::run(args, context),
    }
}

//! `landfall objective`: what a task is for, and changes of it.

use super::{refine, target};
use crate::context::Context;
use crate::exit::{Exit, Failure};

/// Show, confirm or change the objective of a task
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    #[command(name = "show", visible_alias = "confirm")]
    Target(target::Args),
    Refine(refine::Args),
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    match args.action {
        Action::Target(args) => target::run(args, context),
        Action::Refine(args) => refine::run(args, context),
    }
}

//! `landfall objective`: what a task is for, and changes of it.

use super::{refine, target};
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Show, confirm or change the objective of a task
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: ObjectiveSubcommand,
}

#[derive(clap::Subcommand)]
enum ObjectiveSubcommand {
    #[command(name = "show", visible_alias = "confirm")]
    Target(target::Args),
    Refine(refine::Args),
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    match args.action {
        ObjectiveSubcommand::Target(args) => target::run(args, context),
        ObjectiveSubcommand::Refine(args) => refine::run(args, context),
    }
}

//! `landfall project`: settings, access, disk space and exchange with other tools.

use super::{discoveries, export, flow, import, module, pair, plugin, reclaim, sessions, token};
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Manage the project: access, disk space, flows, import and export
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: ProjectSubcommand,
}

#[derive(clap::Subcommand)]
enum ProjectSubcommand {
    Token(token::Args),
    Pair(pair::Args),
    Sessions(sessions::Args),
    Reclaim(reclaim::Args),
    Import(import::Args),
    Export(export::Args),
    Flow(flow::Args),
    Module(module::Args),
    Plugin(plugin::Args),
    Discoveries(discoveries::Args),
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    match args.action {
        ProjectSubcommand::Token(args) => token::run(args, context),
        ProjectSubcommand::Pair(args) => pair::run(args, context),
        ProjectSubcommand::Sessions(args) => sessions::run(args, context),
        ProjectSubcommand::Reclaim(args) => reclaim::run(args, context),
        ProjectSubcommand::Import(args) => import::run(args, context),
        ProjectSubcommand::Export(args) => export::run(args, context),
        ProjectSubcommand::Flow(args) => flow::run(args, context),
        ProjectSubcommand::Module(args) => module::run(args, context),
        ProjectSubcommand::Plugin(args) => plugin::run(args, context),
        ProjectSubcommand::Discoveries(args) => discoveries::run(args, context),
    }
}

//! `landfall project`: settings, access, disk space and exchange with other tools.

use super::{discoveries, export, flow, import, module, pair, plugin, reclaim, sessions, token};
use crate::context::Context;
use crate::exit::{Exit, Failure};

/// Manage the project: access, disk space, flows, import and export
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
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

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    match args.action {
        Action::Token(args) => token::run(args, context),
        Action::Pair(args) => pair::run(args, context),
        Action::Sessions(args) => sessions::run(args, context),
        Action::Reclaim(args) => reclaim::run(args, context),
        Action::Import(args) => import::run(args, context),
        Action::Export(args) => export::run(args, context),
        Action::Flow(args) => flow::run(args, context),
        Action::Module(args) => module::run(args, context),
        Action::Plugin(args) => plugin::run(args, context),
        Action::Discoveries(args) => discoveries::run(args, context),
    }
}

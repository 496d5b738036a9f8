//! `landfall project discoveries`: what agents found out.

use landfall_api::{DiscoveriesAsked, DiscoveryDrop, DiscoveryLine, DiscoveryList, TypedService};
use landfall_text::control_chars::escape_line;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::table::Table;

/// List discoveries that agents pass on to later agents, or withdraw them
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<DiscoveriesSubcommand>,
    /// Include withdrawn discoveries
    #[arg(long)]
    all: bool,
}

#[derive(clap::Subcommand)]
enum DiscoveriesSubcommand {
    /// Withdraw wrong discoveries; agents no longer get them, even if reported again
    Drop {
        /// Numbers from the list
        #[arg(required = true, value_name = "NO")]
        numbers: Vec<u32>,
    },
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let service = context.open_service()?;
    match args.action {
        None => context
            .print_answer(&service.discoveries(DiscoveriesAsked { all: args.all })?, render_discoveries)?,
        Some(DiscoveriesSubcommand::Drop { numbers }) => {
            let dropped = service.discovery_drop(DiscoveryDrop { numbers })?;
            context
                .print_answer(&dropped, |dropped| dropped.discoveries.iter().map(withdrawn_text).collect())?;
        }
    }
    Ok(CliExit::Ok)
}

fn withdrawn_text(it: &DiscoveryLine) -> String {
    format!("withdrawn: {}, from {}: {}\n", it.number, it.task, escape_line(&it.text))
}

fn render_discoveries(found: &DiscoveryList) -> String {
    if found.discoveries.is_empty() {
        return "no agent has reported a discovery yet\n".to_owned();
    }
    let mut table = Table::new(&["NO", "FROM", "FOR", "IMPACT", "WHAT"]);
    for it in &found.discoveries {
        let whom = match (it.withdrawn, it.archived, it.global) {
            (true, _, _) => "nobody: withdrawn".to_owned(),
            (false, true, _) => "nobody now".to_owned(),
            (false, false, true) => "every task".to_owned(),
            (false, false, false) => it.task.to_string(),
        };
        table.add_row([&it.number.to_string(), &it.task.to_string(), &whom, &it.impact, &it.text]);
    }
    table.to_text()
}

//! `landfall discoveries`: what agents found out.

use landfall_api::{Ask, DiscoveriesAsked, DiscoveryList};

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::table::Table;

/// Shows what agents found out and later ones are told.
#[derive(clap::Args)]
pub struct Args {
    /// What is of no use any more, too.
    #[arg(long)]
    all: bool,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let found = context.service()?.discoveries(DiscoveriesAsked { all: args.all })?;
    context.answer(&found, text)?;
    Ok(Exit::Ok)
}

fn text(found: &DiscoveryList) -> String {
    if found.discoveries.is_empty() {
        return "no agent has found out anything yet\n".to_owned();
    }
    let mut table = Table::new(&["NO", "FROM", "FOR", "IMPACT", "WHAT"]);
    for it in &found.discoveries {
        let whom = match (it.archived, it.global) {
            (true, _) => "nobody now".to_owned(),
            (false, true) => "every task".to_owned(),
            (false, false) => it.task.to_string(),
        };
        table.row([&it.number.to_string(), &it.task.to_string(), &whom, &it.impact, &it.text]);
    }
    table.text()
}

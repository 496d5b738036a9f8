//! `landfall stats`: what came of the work.

use landfall_api::{Ask, Spread, Stats, StatsAsked};

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::format;
use crate::table::Table;

/// Shows what came of the work: by day, by agent and in all.
#[derive(clap::Args)]
pub struct Args {
    /// The last so many days, today included.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=366))]
    days: u32,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let found = context.service()?.stats(StatsAsked { days: args.days })?;
    context.answer(&found, |found| text(found))?;
    Ok(Exit::Ok)
}

fn text(found: &Stats) -> String {
    let mut text = String::new();
    let mut table = Table::new(&["DAY", "ADDED", "LANDED", "NOT", "ITERATIONS", "TOKENS", "COST", "AGENTS", "CHECKS"]);
    let worked = found.days.iter().filter(|day| day.sum != landfall_api::StatsSum::default());
    let rows = worked.map(|day| (day.day.as_str(), &day.sum)).chain([("in all", &found.total)]);
    for (name, sum) in rows {
        table.row([
            name,
            &sum.added.to_string(),
            &sum.landed.to_string(),
            &sum.not_landed.to_string(),
            &sum.iterations.to_string(),
            &format::count(sum.tokens),
            &sum.cost_usd.map(format::usd).unwrap_or_default(),
            &format::duration(sum.agent_ms),
            &format::duration(sum.verify_ms),
        ]);
    }
    text.push_str(&table.text());
    if !found.profiles.is_empty() {
        let mut table = Table::new(&["AGENT", "LANDED", "FAILED", "ITERATIONS", "TOKENS", "COST", "TIME"]);
        for it in &found.profiles {
            table.row([
                &it.profile,
                &it.landed.to_string(),
                &it.failed.to_string(),
                &it.iterations.to_string(),
                &format::count(it.tokens),
                &it.cost_usd.map(format::usd).unwrap_or_default(),
                &format::duration(it.agent_ms),
            ]);
        }
        text.push_str(&format!("\n{}", table.text()));
    }
    if !found.judges.is_empty() {
        let mut table = Table::new(&["JUDGE", "ACCEPTED", "LANDED", "RED", "OVERRULED", "SENT BACK", "AGREEMENT"]);
        for it in &found.judges {
            table.row([
                &it.judge,
                &it.accepted.to_string(),
                &it.landed.to_string(),
                &it.red.to_string(),
                &it.overruled.to_string(),
                &it.sent_back.to_string(),
                &it.agreement.map(|share| format!("{:.0} %", share * 100.0)).unwrap_or_default(),
            ]);
        }
        text.push_str(&format!("\n{}", table.text()));
    }
    text.push_str(&took("\nfrom being added to landing", &found.cycle));
    text.push_str(&took("from the first work to landing", &found.lead));
    text
}

fn took(what: &str, spread: &Spread) -> String {
    match (spread.median_ms, spread.p90_ms) {
        (Some(median), Some(p90)) => {
            format!("{what}: half within {}, nine of ten within {}\n", format::duration(median), format::duration(p90))
        }
        (_, _) => String::new(),
    }
}

//! `landfall stats`: what came of the work.

use landfall_api::{
    Rollup, RollupAsked, RollupCount, RollupPhase, Spread, Stats, StatsAsked, StatsSum, TypedService,
};

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::say::print_message;
use crate::table::Table;

/// Show statistics by day, by agent and in total
#[derive(clap::Args)]
pub struct Args {
    /// Number of days, including today
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=366))]
    days: u32,

    /// Show statistics of issues instead: runs, working and waiting time per phase, recoveries, tokens by phase and model
    #[arg(long)]
    phases: bool,

    /// Show every recovery of the project instead, newest first
    #[arg(long, conflicts_with = "phases")]
    recoveries: bool,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    if args.recoveries {
        let found = context.open_service()?.issue_rollup(RollupAsked { days: args.days })?;
        context.print_answer(&found.recovery_log, |log| {
            landfall_text::control_chars::escape_block(&log.join("\n")).into_owned()
        })?;
        if !context.json && found.recovery_log.is_empty() {
            print_message("nothing was recovered from in this time");
        }
        return Ok(CliExit::Ok);
    }
    if args.phases {
        let found = context.open_service()?.issue_rollup(RollupAsked { days: args.days })?;
        context.print_answer(&found, |found| rollup_text(found))?;
        if !context.json && found.sessions.is_empty() {
            print_message("no issue was followed in this time; `landfall auto 12` follows one");
        }
        return Ok(CliExit::Ok);
    }
    let found = context.open_service()?.stats(StatsAsked { days: args.days })?;
    context.print_answer(&found, |found| render_stats(found))?;
    Ok(CliExit::Ok)
}

fn render_stats(found: &Stats) -> String {
    let mut text = String::new();
    let mut table = Table::new(&[
        "DAY",
        "ADDED",
        "LANDED",
        "NOT LANDED",
        "ITERATIONS",
        "TOKENS",
        "COST",
        "AGENTS",
        "CHECKS",
    ]);
    let worked = found.days.iter().filter(|day| day.sum != landfall_api::StatsSum::default());
    let rows = worked.map(|day| (day.day.as_str(), &day.sum)).chain([("total", &found.total)]);
    for (name, sum) in rows {
        table.add_row([
            name,
            &sum.added.to_string(),
            &sum.landed.to_string(),
            &sum.not_landed.to_string(),
            &sum.iterations.to_string(),
            &landfall_text::format_count(sum.tokens),
            &sum.cost_usd.map(landfall_text::format_usd).unwrap_or_default(),
            &landfall_text::format_duration(sum.agent_ms),
            &landfall_text::format_duration(sum.verify_ms),
        ]);
    }
    text.push_str(&table.to_text());
    let StatsSum { runs_at_least, tokens_without_price, .. } = found.total;
    if runs_at_least > 0 {
        let runs = landfall_text::pluralize(runs_at_least, "run");
        text.push_str(&format!(
            "Tokens and cost are at least this: {runs} ended before reporting all usage.\n"
        ));
    }
    if tokens_without_price > 0 {
        let tokens = landfall_text::format_count(tokens_without_price);
        text.push_str(&format!("The cost does not include {tokens} tokens that have no price.\n"));
    }
    if !found.profiles.is_empty() {
        let mut table = Table::new(&["AGENT", "LANDED", "FAILED", "ITERATIONS", "TOKENS", "COST", "TIME"]);
        for it in &found.profiles {
            table.add_row([
                &it.profile,
                &it.landed.to_string(),
                &it.failed.to_string(),
                &it.iterations.to_string(),
                &landfall_text::format_count(it.tokens),
                &it.cost_usd.map(landfall_text::format_usd).unwrap_or_default(),
                &landfall_text::format_duration(it.agent_ms),
            ]);
        }
        text.push_str(&format!("\n{}", table.to_text()));
    }
    if !found.judges.is_empty() {
        let mut table =
            Table::new(&["JUDGE", "ACCEPTED", "LANDED", "RED", "OVERRULED", "SENT BACK", "AGREEMENT"]);
        for it in &found.judges {
            table.add_row([
                &it.judge,
                &it.accepted.to_string(),
                &it.landed.to_string(),
                &it.red.to_string(),
                &it.overruled.to_string(),
                &it.sent_back.to_string(),
                &it.agreement.map(|share| format!("{:.0} %", share * 100.0)).unwrap_or_default(),
            ]);
        }
        text.push_str(&format!("\n{}", table.to_text()));
    }
    text.push_str(&spread_text("\nfrom being added to landing", &found.cycle));
    text.push_str(&spread_text("from the first work to landing", &found.lead));
    text
}

fn rollup_text(found: &Rollup) -> String {
    let mut parts: Vec<String> = Vec::new();
    if !found.sessions.is_empty() {
        let mut table = Table::new(&["RUN", "BATCH", "BEGUN", "TOOK", "ISSUES", "DONE", "FAILED"]);
        for it in &found.sessions {
            let issues: Vec<String> = it.issues.iter().map(|number| format!("#{number}")).collect();
            table.add_row([
                &it.session,
                &it.batches.join(" "),
                &landfall_text::format_local(it.from_ms),
                &landfall_text::format_duration(u64::try_from(it.until_ms - it.from_ms).unwrap_or(0)),
                &issues.join(" "),
                &it.done.to_string(),
                &it.failed.to_string(),
            ]);
        }
        parts.push(table.to_text());
    }
    if !found.phases.is_empty() {
        let mut table =
            Table::new(&["PHASE", "BEGUN", "THROUGH", "MEDIAN", "P95", "WORKED", "WAITED", "FOR"]);
        for it in &found.phases {
            let took = |ms: Option<u64>| ms.map(landfall_text::format_duration).unwrap_or_default();
            table.add_row([
                &it.phase,
                &it.begun.to_string(),
                &it.count.to_string(),
                &took(it.median_ms),
                &took(it.p95_ms),
                &landfall_text::format_duration(it.worked_ms),
                &landfall_text::format_duration(it.waited_ms),
                &phase_waits_text(it),
            ]);
        }
        parts.push(table.to_text());
    }
    if !found.tokens.is_empty() {
        let mut table = Table::new(&["PHASE", "MODEL", "RUNS", "IN", "CACHED", "OUT", "COST"]);
        for it in &found.tokens {
            table.add_row([
                &it.phase,
                &it.model,
                &it.runs.to_string(),
                &landfall_text::format_count(it.tokens_in),
                &landfall_text::format_count(it.tokens_cached),
                &landfall_text::format_count(it.tokens_out),
                &it.cost_usd.map(landfall_text::format_usd).unwrap_or_default(),
            ]);
        }
        parts.push(table.to_text());
    }
    if !found.recoveries.is_empty() {
        let mut table = Table::new(&["RECOVERY TIER", "COUNT", "HELPED", "FAILED"]);
        for it in &found.recoveries {
            let name = match it.tier.as_str() {
                "1" => "1 (was there after all)",
                "2" => "2 (catalogue)",
                "3" => "3 (an agent)",
                other => other,
            };
            table.add_row([name, &it.count.to_string(), &it.success.to_string(), &it.failed.to_string()]);
        }
        parts.push(table.to_text());
    }
    parts.extend(render_counts("OUT OF THE ORDINARY", &found.anomalies));
    parts.extend(render_counts("A PERSON STEPPED IN", &found.interventions));
    parts.join("\n")
}

/// For whom a phase waited, the longest first: `person 2h, checks 4m`.
fn phase_waits_text(phase: &RollupPhase) -> String {
    let long = phase.waits.iter().filter(|it| it.ms >= 1_000); // between two steps there is always a moment
    let words: Vec<String> =
        long.map(|it| format!("{} {}", it.what, landfall_text::format_duration(it.ms))).collect();
    words.join(", ")
}

fn render_counts(name: &str, all: &[RollupCount]) -> Option<String> {
    let mut table = Table::new(&[name, "COUNT"]);
    for it in all {
        table.add_row([it.what.as_str(), &it.count.to_string()]);
    }
    (!all.is_empty()).then(|| table.to_text())
}

fn spread_text(what: &str, spread: &Spread) -> String {
    match (spread.median_ms, spread.p90_ms) {
        (Some(median), Some(p90)) => {
            format!(
                "{what}: half within {}, nine of ten within {}\n",
                landfall_text::format_duration(median),
                landfall_text::format_duration(p90)
            )
        }
        (_, _) => String::new(),
    }
}

//! What came of the work: by day, by agent, and how long things take.

use askama::Template;
use landfall_api::{Ask as _, Problem, Spread, Stats, StatsAsked, StatsCount, StatsSum};

use super::plot::{Figure, Series, Unit, bars};
use super::{Page, Visit, words};

const SPANS: [u32; 4] = [7, 30, 90, 365];

#[derive(Template)]
#[template(path = "stats.html")]
struct StatsPage<'a> {
    stats: &'a Stats,
    days: u32,
    figures: Vec<Figure>,
    /// How often a person and a reviewing agent were of one mind, in per cent.
    agreed: Option<u64>,
}

pub(super) fn draw(visit: &Visit<'_>) -> Result<Page, Problem> {
    let days = visit.asked_as("days").unwrap_or(30).clamp(1, 366);
    let stats = visit.stats(StatsAsked { days })?;
    Page::new("Statistics", &page(&stats, days))
}

fn page(stats: &Stats, days: u32) -> StatsPage<'_> {
    let agreement = &stats.agreement;
    let same = agreement.both_approved + agreement.both_objected;
    let all = same + agreement.person_objected + agreement.person_approved;
    StatsPage { stats, days, figures: figures(stats), agreed: (same * 100).checked_div(all) }
}

/// A number of a day.
type Of = fn(&StatsSum) -> f64;

fn figures(stats: &Stats) -> Vec<Figure> {
    let days: Vec<String> = stats.days.iter().map(|day| short_day(&day.day)).collect();
    let by_day = |of: Of| stats.days.iter().map(|day| of(&day.sum)).collect::<Vec<f64>>();
    let daily = |id, title, unit, series: &[(&str, Of)]| {
        let series: Vec<Series<'_>> =
            series.iter().map(|(name, of)| Series { name, values: by_day(*of) }).collect();
        bars(id, title, unit, &days, &series)
    };
    let counted = |id, title: &str, name, counts: &[StatsCount]| {
        let labels: Vec<String> = counts.iter().map(|it| it.of.to_string()).collect();
        let values = counts.iter().map(|it| number(it.count)).collect();
        bars(id, title, Unit::Count, &labels, &[Series { name, values }])
    };
    let profiles: Vec<String> = stats.profiles.iter().map(|it| words::line(&it.profile)).collect();
    let by_profile = [
        Series { name: "landed", values: stats.profiles.iter().map(|it| number(it.landed)).collect() },
        Series { name: "failed", values: stats.profiles.iter().map(|it| number(it.failed)).collect() },
    ];
    let outcomes: Vec<String> = stats.gates.iter().map(|it| it.outcome.to_string()).collect();
    let gates =
        [Series { name: "verifications", values: stats.gates.iter().map(|it| number(it.count)).collect() }];
    vec![
        daily(
            "throughput",
            "Tasks that landed, and that did not",
            Unit::Count,
            &[("landed", |it| number(it.landed)), ("not landed", |it| number(it.not_landed))],
        ),
        daily("added", "Tasks added", Unit::Count, &[("added", |it| number(it.added))]),
        daily("cost", "Money", Unit::Usd, &[("spent", |it| it.cost_usd.unwrap_or(0.0))]),
        daily("tokens", "Tokens", Unit::Count, &[("tokens", |it| number(it.tokens))]),
        daily(
            "time",
            "Time of agents and of verification",
            Unit::Time,
            &[("agents", |it| number(it.agent_ms)), ("verification", |it| number(it.verify_ms))],
        ),
        counted("iterations", "Iterations until a task landed", "tasks", &stats.iterations),
        daily(
            "recoveries",
            "Recoveries and waits for accounts",
            Unit::Count,
            &[
                ("recoveries", |it| number(it.recoveries)),
                ("waits for an account", |it| number(it.quota_waits)),
            ],
        ),
        daily(
            "conflicts",
            "Conflicts with the base, and work taken back",
            Unit::Count,
            &[("conflicts", |it| number(it.conflicts)), ("taken back", |it| number(it.rollbacks))],
        ),
        daily("questions", "Questions to a person", Unit::Count, &[("questions", |it| number(it.questions))]),
        bars("gates", "What verifications came to", Unit::Count, &outcomes, &gates),
        counted("rounds", "Rounds of a reviewing agent until a task landed", "tasks", &stats.review_rounds),
        bars("profiles", "Tasks by the profile that worked last", Unit::Count, &profiles, &by_profile),
    ]
}

/// A day without its year, where it has one: the plot says how far back it goes.
fn short_day(day: &str) -> String {
    let day = words::line(day);
    match day.split_once('-') {
        Some((year, rest)) if year.len() == 4 => rest.to_owned(),
        Some(_) | None => day,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a plot is coarser than a float")]
fn number(count: u64) -> f64 {
    count as f64
}

/// Half and nine of ten, in words.
fn spread(spread: &Spread) -> String {
    match (spread.median_ms, spread.p90_ms) {
        (Some(half), Some(most)) => {
            format!("{} for half of them, {} for nine of ten", words::length(half), words::length(most))
        }
        _ => "not known yet".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use landfall_api::{Agreement, FlakeLine, Outcome, StatsDay, StatsGate, StatsProfile};

    use super::*;

    fn stats(days: u32) -> Stats {
        let hostile = "<script>x</script>".to_owned();
        let sum = StatsSum { landed: 3, cost_usd: Some(1.5), agent_ms: 3_600_000, ..StatsSum::default() };
        Stats {
            seq: 1,
            days: (0..days)
                .map(|day| StatsDay {
                    day: format!("2026-07-{day:02}{hostile}"),
                    from_ms: 0,
                    sum: sum.clone(),
                })
                .collect(),
            total: sum,
            iterations: vec![StatsCount { of: 1, count: 3 }],
            cycle: Spread { count: 1, median_ms: Some(60_000), p90_ms: Some(120_000) },
            lead: Spread::default(),
            profiles: vec![StatsProfile {
                profile: hostile.clone(),
                landed: 1,
                failed: 2,
                iterations: 3,
                tokens: 4,
                cost_usd: None,
                agent_ms: 5,
            }],
            gates: vec![StatsGate { outcome: Outcome::Pass, count: 1 }],
            flakes: vec![FlakeLine { check: hostile, runs: 1, flakes: 1, last_ms: None }],
            review_rounds: Vec::new(),
            agreement: Agreement { both_approved: 3, person_objected: 1, ..Agreement::default() },
            judges: Vec::new(),
        }
    }

    #[test]
    fn statistics_are_drawn_and_words_stay_words() {
        for days in [0, 1, 366] {
            let stats = stats(days);
            let page = page(&stats, days.max(1));
            assert_eq!(page.agreed, Some(75));
            let html = page.render().expect("drawn");
            assert!(!html.contains("<script") && !html.contains("style="), "{html}");
        }
        let mut none = stats(1);
        none.agreement = Agreement::default();
        assert_eq!(page(&none, 1).agreed, None);
    }
}

//! What came of the work: by day, by agent, and how long things take.

use askama::Template;
use landfall_api::{
    Problem, Rollup, RollupAsked, RollupPhase, RollupSession, Spread, Stats, StatsAsked, StatsCount,
    StatsSum, TypedService as _,
};

use super::plot::{PlotFigure, PlotUnit, Series, draw_bars};
use super::{PageContext, RenderedPage, words};

const SPANS: [u32; 4] = [7, 30, 90, 365];
const PLOTS: usize = 4; // on one screen; the others are folded
const SESSIONS_MAX: usize = 20; // the newest; `landfall stats --phases` shows all

#[derive(Template)]
#[template(path = "stats.html")]
struct StatsPage<'a> {
    stats: &'a Stats,
    /// What happened to issues.
    issues: &'a Rollup,
    /// The newest runs in which issues were worked on, newest first, and how many there were before them.
    sessions: Vec<&'a RollupSession>,
    older: usize,
    days: u32,
    /// The five figures that say how it goes: name, value, and what it is of.
    summary: [(&'static str, String, String); 5],
    figures: Vec<PlotFigure>,
    /// Plots that are looked at less often.
    more_figures: Vec<PlotFigure>,
    /// How often a person and a reviewing agent were of one mind, in per cent.
    agreed: Option<u64>,
}

pub(super) fn draw_stats_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let days = visit.parse_query_value("days").unwrap_or(7).clamp(1, 366);
    let stats = visit.stats(StatsAsked { days })?;
    let issues = visit.issue_rollup(RollupAsked { days })?;
    RenderedPage::new("Statistics", &build_stats_page(&stats, &issues, days))
}

fn build_stats_page<'a>(stats: &'a Stats, issues: &'a Rollup, days: u32) -> StatsPage<'a> {
    let agreement = &stats.agreement;
    let same = agreement.both_approved + agreement.both_objected;
    let all = same + agreement.person_objected + agreement.person_approved;
    let mut figures = draw_plots(stats);
    if !issues.phases.is_empty() {
        figures.push(phases_plot(&issues.phases));
    }
    StatsPage {
        stats,
        issues,
        sessions: issues.sessions.iter().rev().take(SESSIONS_MAX).collect(),
        older: issues.sessions.len().saturating_sub(SESSIONS_MAX),
        days,
        summary: summary_figures(stats),
        more_figures: figures.split_off(figures.len().min(PLOTS)),
        figures,
        agreed: (same * 100).checked_div(all),
    }
}

/// The figures above everything else. A figure that nothing is known of is a dash.
fn summary_figures(stats: &Stats) -> [(&'static str, String, String); 5] {
    let total = &stats.total;
    let dash = || "–".to_owned();
    let percent =
        |part: u64, all: u64| (part * 100).checked_div(all).map_or_else(dash, |it| format!("{it} %"));
    let ended = total.landed + total.not_landed;
    let first: u64 = stats.iterations.iter().filter(|it| it.of == 1).map(|it| it.count).sum();
    let counted: u64 = stats.iterations.iter().map(|it| it.count).sum();
    #[expect(clippy::cast_precision_loss, reason = "nobody lands that many tasks")]
    let each = total.cost_usd.filter(|_| total.landed > 0).map(|cost| words::usd(cost / total.landed as f64));
    [
        ("landed", total.landed.to_string(), format!("{} added", total.added)),
        ("success rate", percent(total.landed, ended), format!("of {ended} that ended")),
        ("per landed task", each.unwrap_or_else(dash), "money, failed work included".to_owned()),
        (
            "median lead time",
            stats.lead.median_ms.map_or_else(dash, words::length),
            "from the first attempt to landing".to_owned(),
        ),
        ("first-pass rate", percent(first, counted), "landed after one iteration".to_owned()),
    ]
}

/// How long the phases of issues were worked on, and how long they waited.
fn phases_plot(phases: &[RollupPhase]) -> PlotFigure {
    let labels: Vec<String> = phases.iter().map(|it| words::line(&it.phase)).collect();
    let series = [
        Series { name: "work", values: phases.iter().map(|it| to_f64(it.worked_ms)).collect() },
        Series { name: "waits", values: phases.iter().map(|it| to_f64(it.waited_ms)).collect() },
    ];
    draw_bars("phases", "Phases of issues: work and waits", PlotUnit::Time, &labels, &series)
}

/// For whom a phase waited, the longest first.
fn waits(phase: &RollupPhase) -> String {
    let long = phase.waits.iter().filter(|it| it.ms >= 1_000); // between two steps there is always a moment
    let words: Vec<String> =
        long.map(|it| format!("{} {}", words::line(&it.what), words::length(it.ms))).collect();
    words.join(", ")
}

/// A rung of the ladder of recoveries, in words.
fn rung(tier: &str) -> String {
    match tier {
        "1" => "1: it was there after all".to_owned(),
        "2" => "2: a known pattern".to_owned(),
        "3" => "3: an agent".to_owned(),
        "manual" => "a person".to_owned(),
        other => words::line(other),
    }
}

/// A number of a day.
type StatsGetter = fn(&StatsSum) -> f64;

fn draw_plots(stats: &Stats) -> Vec<PlotFigure> {
    let days: Vec<String> = stats.days.iter().map(|day| short_day(&day.day)).collect();
    let by_day = |of: StatsGetter| stats.days.iter().map(|day| of(&day.sum)).collect::<Vec<f64>>();
    let daily = |id, title, unit, series: &[(&str, StatsGetter)]| {
        let series: Vec<Series<'_>> =
            series.iter().map(|(name, of)| Series { name, values: by_day(*of) }).collect();
        draw_bars(id, title, unit, &days, &series)
    };
    let counted = |id, title: &str, name, counts: &[StatsCount]| {
        let labels: Vec<String> = counts.iter().map(|it| it.of.to_string()).collect();
        let values = counts.iter().map(|it| to_f64(it.count)).collect();
        draw_bars(id, title, PlotUnit::Count, &labels, &[Series { name, values }])
    };
    let profiles: Vec<String> = stats.profiles.iter().map(|it| words::line(&it.profile)).collect();
    let by_profile = [
        Series { name: "landed", values: stats.profiles.iter().map(|it| to_f64(it.landed)).collect() },
        Series { name: "failed", values: stats.profiles.iter().map(|it| to_f64(it.failed)).collect() },
    ];
    let outcomes: Vec<String> = stats.gates.iter().map(|it| it.outcome.to_string()).collect();
    let gates =
        [Series { name: "verifications", values: stats.gates.iter().map(|it| to_f64(it.count)).collect() }];
    vec![
        daily(
            "throughput",
            "Tasks that landed, and that did not",
            PlotUnit::Count,
            &[("landed", |it| to_f64(it.landed)), ("not landed", |it| to_f64(it.not_landed))],
        ),
        daily("cost", "Money", PlotUnit::Usd, &[("spent", |it| it.cost_usd.unwrap_or(0.0))]),
        daily(
            "time",
            "Time of agents and of verification",
            PlotUnit::Time,
            &[("agents", |it| to_f64(it.agent_ms)), ("verification", |it| to_f64(it.verify_ms))],
        ),
        counted("iterations", "Iterations until a task landed", "tasks", &stats.iterations),
        daily("added", "Tasks added", PlotUnit::Count, &[("added", |it| to_f64(it.added))]),
        daily("tokens", "Tokens", PlotUnit::Count, &[("tokens", |it| to_f64(it.tokens))]),
        daily(
            "recoveries",
            "Recoveries and waits for accounts",
            PlotUnit::Count,
            &[
                ("recoveries", |it| to_f64(it.recoveries)),
                ("waits for an account", |it| to_f64(it.quota_waits)),
            ],
        ),
        daily(
            "conflicts",
            "Conflicts with the base, and work taken back",
            PlotUnit::Count,
            &[("conflicts", |it| to_f64(it.conflicts)), ("taken back", |it| to_f64(it.rollbacks))],
        ),
        daily(
            "questions",
            "Questions to a person",
            PlotUnit::Count,
            &[("questions", |it| to_f64(it.questions))],
        ),
        draw_bars("gates", "What verifications came to", PlotUnit::Count, &outcomes, &gates),
        counted("rounds", "Rounds of a reviewing agent until a task landed", "tasks", &stats.review_rounds),
        draw_bars(
            "profiles",
            "Tasks by the profile that worked last",
            PlotUnit::Count,
            &profiles,
            &by_profile,
        ),
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
fn to_f64(count: u64) -> f64 {
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
    use landfall_api::{
        Agreement, FlakeLine, Outcome, RollupCount, RollupRecovery, RollupTokens, RollupWait, StatsDay,
        StatsGate, StatsProfile,
    };

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

    fn issues(sessions: usize) -> Rollup {
        let hostile = "<script>x</script>".to_owned();
        let count = || vec![RollupCount { what: hostile.clone(), count: 2 }];
        let session = |number: usize| RollupSession {
            session: format!("R{number}"),
            batches: vec![hostile.clone()],
            from_ms: 0,
            until_ms: 60_000,
            issues: vec![12, 13],
            done: 1,
            failed: 1,
        };
        Rollup {
            from_ms: 0,
            sessions: (1..=sessions).map(session).collect(),
            phases: vec![RollupPhase {
                phase: "code".to_owned(),
                begun: 3,
                count: 2,
                median_ms: Some(60_000),
                p95_ms: None,
                worked_ms: 120_000,
                waited_ms: 3_600_000,
                waits: vec![
                    RollupWait { what: hostile.clone(), ms: 3_600_000 },
                    RollupWait { what: "slot".to_owned(), ms: 9 },
                ],
            }],
            recoveries: vec![RollupRecovery { tier: "2".to_owned(), count: 2, success: 1, failed: 1 }],
            anomalies: count(),
            interventions: count(),
            tokens: vec![RollupTokens {
                phase: "code".to_owned(),
                model: hostile.clone(),
                runs: 3,
                tokens_in: 1_000,
                tokens_cached: 600,
                tokens_out: 90,
                cost_usd: Some(1.2),
            }],
            recovery_log: Vec::new(),
        }
    }

    #[test]
    fn phases_of_issues_are_a_table_and_a_plot_and_work_is_told_from_waits() {
        let (stats, many) = (stats(1), issues(23));
        let html = build_stats_page(&stats, &many, 30).render().expect("drawn");
        assert!(!html.contains("<script") && !html.contains("style="), "{html}");
        for seen in ["Phases of issues: work and waits", "2: a known pattern", "And 3 older ones."] {
            assert!(html.contains(seen), "{seen}: {html}");
        }
        let cell = |name: &str, text: &str| format!("<td data-name=\"{name}\" class=\"num\">{text}</td>");
        for (name, text) in
            [("Through", "2"), ("Half within", "1m"), ("Work", "2m"), ("Waits", "1h"), ("Read", "1k")]
        {
            assert!(html.contains(&cell(name, text)), "{name}: {html}");
        }
        assert!(html.contains("/script&#62; 1h</td>"), "a moment is not worth a word: {html}");
        assert_eq!(html.matches("href=\"/runs/R").count(), SESSIONS_MAX);
        assert!(html.contains("href=\"/runs/R23\"") && !html.contains("href=\"/runs/R3\""), "the newest");
    }

    #[test]
    fn where_no_issue_was_followed_the_page_says_how_to() {
        let (stats, none) = (stats(1), Rollup::default());
        let html = build_stats_page(&stats, &none, 30).render().expect("drawn");
        assert!(html.contains("No issue was followed in this time.") && html.contains("landfall auto 12"));
        assert!(!html.contains("Phases of issues: work and waits"), "an empty plot says nothing");
    }

    #[test]
    fn statistics_are_drawn_and_words_stay_words() {
        for days in [0, 1, 366] {
            let stats = stats(days);
            let issues = Rollup::default();
            let page = build_stats_page(&stats, &issues, days.max(1));
            assert_eq!(page.agreed, Some(75));
            let html = page.render().expect("drawn");
            assert!(!html.contains("<script") && !html.contains("style="), "{html}");
        }
        let mut none = stats(1);
        none.agreement = Agreement::default();
        assert_eq!(build_stats_page(&none, &Rollup::default(), 1).agreed, None);
    }
}

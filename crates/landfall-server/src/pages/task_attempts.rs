//! What was tried, and what it cost.

use askama::Template;
use landfall_api::{AgentRun, AttemptLine, Problem, Usage};

use super::parts::{self, ProgressBar, RelativeTime};
use super::task::{self, TaskPageHead, UsageBar};
use super::timeline::{Timeline, TimelineTask};
use super::{PageContext, RenderedPage, words};

struct AttemptRow {
    attempt: u32,
    step: String,
    began: RelativeTime,
    took: String,
    over: bool,
    end: String,
    iterations: String,
    runs: Vec<AttemptRun>,
}

struct AttemptRun {
    iteration: u32,
    began: RelativeTime,
    took: String,
    profile: String,
    model: String,
    marks: Vec<String>,
    tokens: String,
    cost: String,
    verdict: String,
    log: String,
}

#[derive(Template)]
#[template(path = "task_attempts.html")]
struct AttemptsPage {
    tries: Vec<AttemptRow>,
    hidden: usize,
    timeline: Option<Timeline>,
}

const TRIES_MAX: usize = 200;

pub(super) fn draw_attempts_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let head = TaskPageHead::load_head(visit, "attempts")?;
    let all = &head.detail.attempts;
    let hidden = if visit.query_value("all").is_some() { 0 } else { all.len().saturating_sub(TRIES_MAX) };
    let tries = all[hidden..].iter().rev().map(|attempt| AttemptRow {
        attempt: attempt.attempt,
        step: words::line(&attempt.step),
        began: parts::ago(head.now_ms, attempt.began_ms),
        took: task::format_precise(attempt_length_ms(attempt, head.now_ms)),
        over: attempt.ended_ms.is_some(),
        end: words::line(&attempt.end),
        iterations: match attempt.iterations {
            0 => String::new(),
            many => words::many(u64::from(many), "iteration"),
        },
        runs: attempt.runs.iter().map(|run| to_attempt_run(&head, run)).collect(),
    });
    let from_ms = all.first().map_or(head.now_ms, |attempt| attempt.began_ms);
    let to_ms = all.last().and_then(|attempt| attempt.ended_ms).unwrap_or(head.now_ms);
    let row = TimelineTask::from_detail(&head.detail, from_ms, to_ms);
    let timeline = Timeline::new(&[row], from_ms, to_ms).filter(|_| all.len() > 1);
    let page = AttemptsPage { tries: tries.collect(), hidden, timeline };
    head.render_page("attempts", &page)
}

fn attempt_length_ms(attempt: &AttemptLine, now_ms: i64) -> u64 {
    u64::try_from(attempt.ended_ms.unwrap_or(now_ms).saturating_sub(attempt.began_ms)).unwrap_or_default()
}

fn to_attempt_run(head: &TaskPageHead, run: &AgentRun) -> AttemptRun {
    let mut marks = Vec::new();
    if run.resumed {
        marks.push("session resumed".to_owned());
    }
    if let Some(sandbox) = &run.sandbox {
        marks.push(format!("sandbox {}", words::line(sandbox)));
    }
    if let Some(percent) = run.context_percent {
        marks.push(format!("context {percent}% full"));
    }
    AttemptRun {
        iteration: run.iteration,
        began: parts::ago(head.now_ms, run.began_ms),
        took: run.took_ms.map_or_else(|| "running".to_owned(), task::format_precise),
        profile: words::line(&run.profile),
        model: run.model.as_deref().map(words::line).unwrap_or_default(),
        marks,
        tokens: token_usage_text(&run.usage),
        cost: run.usage.cost_usd.map(words::usd).unwrap_or_default(),
        verdict: words::line(&run.verdict),
        log: format!("{}?iteration={}", head.path("log"), run.iteration),
    }
}

fn token_usage_text(usage: &Usage) -> String {
    let cached = match usage.tokens_cached {
        0 => String::new(),
        cached => format!(" ({} cached)", words::short(cached)),
    };
    let turns =
        if usage.turns > 0 { format!(", {}", words::many(usage.turns, "turn")) } else { String::new() };
    format!("{} in{cached}, {} out{turns}", words::short(usage.tokens_in), words::short(usage.tokens_out))
}

/// What one attempt cost, beside the dearest.
struct AttemptCost {
    attempt: u32,
    step: String,
    time: (String, ProgressBar),
    tokens: (String, ProgressBar),
    money: Option<(String, ProgressBar)>,
}

#[derive(Template)]
#[template(path = "task_cost.html")]
struct TaskCostPage {
    meters: Vec<UsageBar>,
    spent: Vec<AttemptCost>,
    hidden: usize,
    has_money: bool,
    total_tokens: String,
    total_money: Option<String>,
    total_time: String,
}

pub(super) fn draw_cost(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let head = TaskPageHead::load_head(visit, "cost")?;
    let detail = &head.detail;
    let hidden =
        if visit.query_value("all").is_some() { 0 } else { detail.attempts.len().saturating_sub(TRIES_MAX) };
    let sums: Vec<(&AttemptLine, u64, u64, Option<f64>)> = detail.attempts[hidden..]
        .iter()
        .map(|attempt| {
            let used = |run: &AgentRun| run.usage.tokens_in + run.usage.tokens_out;
            let money: Vec<f64> = attempt.runs.iter().filter_map(|run| run.usage.cost_usd).collect();
            let money = (!money.is_empty()).then(|| money.iter().sum());
            (attempt, attempt_length_ms(attempt, head.now_ms), attempt.runs.iter().map(used).sum(), money)
        })
        .collect();
    let most_time = sums.iter().map(|it| it.1).max().unwrap_or_default();
    let most_tokens = sums.iter().map(|it| it.2).max().unwrap_or_default();
    let most_money = sums.iter().filter_map(|it| it.3).fold(0.0, f64::max);
    #[expect(clippy::cast_precision_loss, reason = "a bar has a hundred steps")]
    let share = |part: u64, most: u64| if most == 0 { 0.0 } else { part as f64 * 100.0 / most as f64 };
    let spent = sums
        .iter()
        .map(|(attempt, time, tokens, money)| {
            let label = |what: &str| format!("{what} of attempt {}", attempt.attempt);
            AttemptCost {
                attempt: attempt.attempt,
                step: words::line(&attempt.step),
                time: (
                    task::format_precise(*time),
                    parts::progress_bar(share(*time, most_time), "info", label("time")),
                ),
                tokens: (
                    words::short(*tokens),
                    parts::progress_bar(share(*tokens, most_tokens), "info", label("tokens")),
                ),
                money: money.map(|money| {
                    let percent = if most_money > 0.0 { money * 100.0 / most_money } else { 0.0 };
                    (words::usd(money), parts::progress_bar(percent, "info", label("money")))
                }),
            }
        })
        .collect();
    let page = TaskCostPage {
        meters: task::usage_bars(detail),
        spent,
        hidden,
        has_money: most_money > 0.0,
        total_tokens: token_usage_text(&detail.usage),
        total_money: detail.cost_usd.map(|usd| {
            let from = detail.usage.cost_from.map(|from| format!(", {}", from.label())).unwrap_or_default();
            let unpriced = match detail.usage.tokens_without_price {
                0 => String::new(),
                some => format!(", without {} tokens that have no price", words::short(some)),
            };
            format!("{}{}{unpriced}{from}", detail.usage.prefix(), words::usd(usd))
        }),
        total_time: words::length(detail.spent_ms),
    };
    head.render_page("cost", &page)
}

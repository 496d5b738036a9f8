//! What was checked: the commands of the last verification as they stand, and every verification there was.

use askama::Template;
use landfall_api::{
    CommandReport, LogAsked, Outcome, OutputKind, OutputLine, Problem, Status, TaskAsked, TypedService as _,
};
use serde_json::Value;

use super::ansi;
use super::markup::Markup;
use super::parts::{self, ProgressBar, RelativeTime};
use super::task::{self, TaskPageHead};
use super::task_target::{self, JudgesPanel};
use super::{PageContext, RenderedPage, words};

/// The sign, the word and the tone of an outcome.
fn outcome_look(outcome: Outcome) -> (&'static str, &'static str, &'static str) {
    match outcome {
        Outcome::Pass => ("✓", "passed", "good"),
        Outcome::Flaky => ("≈", "passed at last (flaky)", "warn"),
        Outcome::PreExisting => ("=", "fails on the base too", "warn"),
        Outcome::Fail => ("✗", "FAILED", "bad"),
        Outcome::Timeout => ("✗", "TIMEOUT", "bad"),
        Outcome::Broken => ("✗", "could not run", "bad"),
    }
}

/// One command, as it stands.
struct CheckRow {
    name: String,
    command: String,
    sign: &'static str,
    word: &'static str,
    tone: &'static str,
    time: String,
    bar: Option<ProgressBar>,
    more: Vec<String>,
    excerpt: Option<Markup>,
    log: String,
}

#[derive(Template)]
#[template(path = "task_checks.html")]
struct TaskChecksPage {
    running: bool,
    now: Vec<CheckRow>,
    last: Vec<CheckRow>,
    facts: Vec<(&'static str, String)>,
    empty: bool,
}

pub(super) fn draw_checks_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let head = TaskPageHead::load_head(visit, "checks")?;
    let detail = &head.detail;
    let outputs = visit.outputs(TaskAsked { task: head.id }).map(|list| list.outputs).unwrap_or_default();
    let before: &[CommandReport] = detail.gate.as_ref().map_or(&[], |gate| gate.commands.as_slice());
    let of_now: Vec<&OutputLine> = outputs
        .iter()
        .filter(|output| output.kind == OutputKind::Check && output.attempt == Some(detail.attempt))
        .collect();
    let verifies = detail.attempts.last().is_some_and(|last| last.ended_ms.is_none());
    let running =
        verifies && matches!(detail.line.status, Status::Active | Status::Landing) && !of_now.is_empty();
    let now = if running { current_check_rows(&head, &of_now, before) } else { Vec::new() };
    let last: Vec<CheckRow> = before.iter().map(|report| to_check_row(&head, report)).collect();
    let mut facts = Vec::new();
    if let Some(gate) = &detail.gate {
        facts.push(("came to", outcome_look(gate.outcome).1.to_owned()));
        facts.push(("took", task::format_precise(gate.took_ms)));
        facts.push(("work", task::short_commit(&gate.head)));
        facts.push(("merged into", task::short_commit(&gate.base)));
        facts.push(("as", task::short_commit(&gate.commit)));
        facts.push(("tree", task::short_commit(&gate.tree)));
        if gate.reused {
            facts.push(("taken over", "an earlier pass of the same tree".to_owned()));
        }
    }
    let page = TaskChecksPage {
        running,
        now,
        last,
        facts,
        empty: detail.gate.as_ref().is_some_and(|gate| gate.empty),
    };
    head.render_page("checks", &page)
}

fn check_log_link(head: &TaskPageHead, name: &str) -> String {
    let query = serde_html_form::to_string([("check", name)]).unwrap_or_default(); // a text always can be written
    format!("{}?{query}", head.path("log"))
}

/// The checks of the verification under way: over, running, or still to come.
fn current_check_rows(
    head: &TaskPageHead,
    outputs: &[&OutputLine],
    before: &[CommandReport],
) -> Vec<CheckRow> {
    let mut marks = Vec::new();
    for output in outputs {
        let name = output.name.clone().unwrap_or_default();
        let known = before.iter().find(|report| report.name == name);
        let took = output
            .began_ms
            .map(|began| output.ended_ms.unwrap_or(head.now_ms).saturating_sub(began).unsigned_abs());
        let limit = known.map(|report| report.limit_ms);
        let (sign, word, tone) = if output.grows {
            ("●", "running", "info")
        } else {
            ("◌", "over, weighed with the rest", "quiet")
        };
        marks.push(CheckRow {
            command: known.map(|report| words::line(&report.command)).unwrap_or_default(),
            sign,
            word,
            tone,
            time: time_and_limit(took, limit),
            bar: took.zip(limit).map(|(took, limit)| time_bar(took, limit, &name)),
            more: Vec::new(),
            excerpt: None,
            log: check_log_link(head, &name),
            name: words::line(&name),
        });
    }
    for report in
        before.iter().filter(|report| !outputs.iter().any(|it| it.name.as_ref() == Some(&report.name)))
    {
        marks.push(CheckRow {
            name: words::line(&report.name),
            command: words::line(&report.command),
            sign: "○",
            word: "waiting",
            tone: "quiet",
            time: time_and_limit(None, Some(report.limit_ms)),
            bar: None,
            more: Vec::new(),
            excerpt: None,
            log: check_log_link(head, &report.name),
        });
    }
    marks
}

fn time_and_limit(took: Option<u64>, limit: Option<u64>) -> String {
    match (took, limit) {
        (Some(took), Some(limit)) => format!("{} / {}", task::format_precise(took), words::length(limit)),
        (Some(took), None) => task::format_precise(took),
        (None, Some(limit)) => format!("at most {}", words::length(limit)),
        (None, None) => String::new(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a bar has a hundred steps")]
fn time_bar(took: u64, limit: u64, name: &str) -> ProgressBar {
    let percent = if limit == 0 { 0.0 } else { took as f64 * 100.0 / limit as f64 };
    parts::used(percent, format!("time of {}", words::line(name)))
}

fn to_check_row(head: &TaskPageHead, report: &CommandReport) -> CheckRow {
    let (sign, word, tone) = outcome_look(report.outcome);
    let mut more = Vec::new();
    if let Some(exit) = report.exit {
        more.push(format!("exit {exit}"));
    }
    if let Some(tests) = report.tests {
        more.push(words::many(tests, "test"));
    }
    if !report.required {
        more.push("not required".to_owned());
    }
    if report.copied_from_base {
        more.push("copied from the base".to_owned());
    }
    CheckRow {
        name: words::line(&report.name),
        command: words::line(&report.command),
        sign,
        word,
        tone,
        time: time_and_limit(Some(report.took_ms), Some(report.limit_ms)),
        bar: Some(time_bar(report.took_ms, report.limit_ms, &report.name)),
        more,
        excerpt: (!report.excerpt.is_empty()).then(|| ansi::render_block(&report.excerpt)),
        log: check_log_link(head, &report.name),
    }
}

/// One verification there was.
struct VerificationRow {
    seq: u64,
    when: RelativeTime,
    attempt: u64,
    what: &'static str,
    reused: bool,
    commands: Vec<(String, &'static str, &'static str, &'static str, String)>,
    sign: &'static str,
    word: &'static str,
    tone: &'static str,
}

#[derive(Template)]
#[template(path = "task_gates.html")]
struct GatesPage<'a> {
    head: &'a TaskPageHead,
    verifications: Vec<VerificationRow>,
    opinions: Vec<(u32, String, String, RelativeTime)>,
    more: bool,
    judges: Option<JudgesPanel>,
}

const ENTRIES: u32 = 1_000;

pub(super) fn draw_gates(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let head = TaskPageHead::load_head(visit, "gates")?;
    let asked = LogAsked { task: Some(head.id), limit: ENTRIES, last: true, after: None };
    let page = visit.log(asked)?;
    let verifications = page.entries.iter().filter_map(|entry| {
        let what = match entry.kind.as_str() {
            "verified" => "verified",
            "landing-began" => "verified to land",
            _ => return None,
        };
        let report = entry.data.get("report")?;
        let commands: Vec<_> = report
            .get("commands")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(read_command_report)
            .collect();
        let worst = commands.iter().map(|(_, outcome, _)| *outcome).max().unwrap_or(Outcome::Pass);
        let (sign, word, tone) = outcome_look(worst);
        Some(VerificationRow {
            seq: entry.seq,
            when: parts::ago(head.now_ms, entry.at_ms),
            attempt: entry.data.get("attempt").and_then(Value::as_u64).unwrap_or_default(),
            what,
            reused: report.get("reused").and_then(Value::as_bool).unwrap_or_default(),
            commands: commands
                .into_iter()
                .map(|(name, outcome, time)| {
                    let (sign, word, tone) = outcome_look(outcome);
                    (name, sign, word, tone, time)
                })
                .collect(),
            sign,
            word,
            tone,
        })
    });
    // What other agents said of the work, where a flow asks them.
    let opinions = head
        .detail
        .attempts
        .iter()
        .filter(|attempt| attempt.step.contains("review") || attempt.step.contains("check"))
        .map(|attempt| {
            (
                attempt.attempt,
                words::line(&attempt.step),
                words::line(&attempt.end),
                parts::ago(head.now_ms, attempt.began_ms),
            )
        });
    let page = GatesPage {
        verifications: verifications.collect(),
        opinions: opinions.collect(),
        more: page.entries.len() >= ENTRIES as usize,
        judges: task_target::judges_panel(visit, &head),
        head: &head,
    };
    head.render_page("gates", &page)
}

/// A command of a report in the journal: its name, what it came to, how long it took.
fn read_command_report(report: &Value) -> (String, Outcome, String) {
    let text = |name: &str| report.get(name).and_then(Value::as_str).unwrap_or_default();
    let outcome = text("outcome").parse().unwrap_or(Outcome::Broken); // a word of a later version
    let took = report.get("took_ms").and_then(Value::as_u64);
    let limit = report.get("limit_ms").and_then(Value::as_u64);
    let tests = report
        .get("tests")
        .and_then(Value::as_u64)
        .map(|tests| format!(", {}", words::many(tests, "test")))
        .unwrap_or_default();
    (words::line(text("name")), outcome, format!("{}{tests}", time_and_limit(took, limit)))
}

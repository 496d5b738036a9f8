//! The runs there were, and the report of each.

use askama::Template;
use landfall_api::{Ask as _, Nothing, Problem, ReportAsked, RunId, RunLine};

use super::markup::Markup;
use super::{Page, Visit, markdown, parts, words};

const SHOWN_MAX: usize = 200;

#[derive(Template)]
#[template(path = "runs.html")]
struct Runs {
    runs: Vec<RunLine>,
    more: usize,
    now_ms: i64,
}

pub(super) fn draw(visit: &Visit<'_>) -> Result<Page, Problem> {
    let mut runs = visit.runs(Nothing {})?.runs;
    let more = runs.len().saturating_sub(SHOWN_MAX);
    runs.truncate(SHOWN_MAX);
    Page::new("Runs", &Runs { runs, more, now_ms: visit.now_ms() })
}

#[derive(Template)]
#[template(path = "run.html")]
struct Run {
    run: RunId,
    report: Markup,
}

pub(super) fn one(visit: &Visit<'_>) -> Result<Page, Problem> {
    let run: RunId = visit.field("run")?;
    let report = visit.report(ReportAsked { task: None, run: Some(run) })?;
    Page::new(format!("Run {run}"), &Run { run, report: markdown::render(&report.markdown) })
}

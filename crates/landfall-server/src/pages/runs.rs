//! The runs there were, and what became of each: the page to read in the morning.

use askama::Template;
use landfall_api::{
    Nothing, Problem, ProblemCode, ReportAsked, RunLine, RunResult, RunTaskLine, TaskAsked, TaskDetail,
    TypedService as _, WireRunId,
};

use super::markup::Markup;
use super::timeline::{Timeline, TimelineTask};
use super::{PageContext, RenderedPage, parts, words};

const SHOWN_MAX: usize = 200;
const TASKS_MAX: usize = 60; // rows of the picture; a longer list is in the backlog

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    runs: Vec<RunLine>,
    more: usize,
    now_ms: i64,
}

pub(super) fn draw_runs_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let mut runs = visit.runs(Nothing {})?.runs;
    let more = runs.len().saturating_sub(SHOWN_MAX);
    runs.truncate(SHOWN_MAX);
    RenderedPage::new("Runs", &RunsPage { runs, more, now_ms: visit.now_ms() })
}

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage<'a> {
    run: &'a RunLine,
    now_ms: i64,
    others: Vec<(u64, &'static str)>,
    cost: Option<String>,
    cost_each: Option<String>,
    timeline: Option<Timeline>,
    tasks: Vec<RunTask<'a>>,
    more: usize,
}

/// One task of the run.
struct RunTask<'a> {
    line: &'a RunTaskLine,
    has_landed: bool,
    took: String,
    cost: Option<String>,
    commit: Option<String>,
    why: Markup,
}

pub(super) fn draw_run_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let id: WireRunId = visit.path_value("run")?;
    let report = visit.report(ReportAsked { run: Some(id), task: None })?;
    let report = report.run.ok_or_else(|| {
        Problem::new(ProblemCode::UnknownRun, format!("there is no run {id}"))
            .with_hint("the page Runs lists the latest hundred")
    })?;
    let (run, now_ms) = (&report.run, visit.now_ms());
    let end_ms = run.ended_ms.unwrap_or(now_ms);
    // A task that cannot be read is no reason to show nothing of the others.
    let details: Vec<Box<TaskDetail>> = run
        .tasks
        .iter()
        .take(TASKS_MAX)
        .filter_map(|task| visit.show(TaskAsked { task: *task }).ok())
        .collect();
    let rows: Vec<TimelineTask> =
        details.iter().map(|detail| TimelineTask::from_detail(detail, run.began_ms, end_ms)).collect();
    let others = run.other_counts().into_iter().map(|(result, count)| (count, result.label()));
    let page = RunPage {
        run,
        now_ms,
        others: others.collect(),
        cost: run.usage.cost_usd.map(words::usd),
        cost_each: run.cost_per_landed().map(words::usd),
        timeline: Timeline::new(&rows, run.began_ms, end_ms),
        more: report.tasks.len().saturating_sub(TASKS_MAX),
        tasks: report.tasks.iter().take(TASKS_MAX).map(run_task).collect(),
    };
    RenderedPage::new(format!("Run {}", run.run), &page)
}

fn run_task(line: &RunTaskLine) -> RunTask<'_> {
    RunTask {
        line,
        has_landed: line.result == RunResult::Landed,
        took: words::length(line.agent_ms),
        cost: line.usage.cost_usd.map(words::usd),
        commit: line.commit.as_deref().map(super::task::short_commit),
        why: words::prose(&line.why),
    }
}

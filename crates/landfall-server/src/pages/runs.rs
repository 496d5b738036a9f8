//! The runs there were, and what became of each: the page to read in the morning.

use askama::Template;
use landfall_api::{Ask as _, Nothing, Problem, ProblemCode, RunId, RunLine, Status, TaskAsked, TaskDetail};

use super::markup::Markup;
use super::timeline::{Timeline, TimelineTask};
use super::{Page, Visit, parts, words};

const SHOWN_MAX: usize = 200;
const TASKS_MAX: usize = 60; // rows of the picture; a longer list is in the backlog

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
struct Run<'a> {
    run: &'a RunLine,
    now_ms: i64,
    took: String,
    /// Tasks that wait for the person now.
    asks: usize,
    cost: Option<String>,
    cost_each: Option<String>,
    timeline: Option<Timeline>,
    tasks: Vec<RunTask>,
    more: usize,
}

/// One task of the run.
struct RunTask {
    detail: Box<TaskDetail>,
    has_landed: bool,
    /// What was used in this run.
    iterations: usize,
    took: String,
    cost: Option<String>,
    commit: Option<String>,
    why: Markup,
}

pub(super) fn one(visit: &Visit<'_>) -> Result<Page, Problem> {
    let id: RunId = visit.field("run")?;
    let runs = visit.runs(Nothing {})?.runs;
    let run = runs.iter().find(|line| line.run == id).ok_or_else(|| {
        Problem::new(ProblemCode::UnknownRun, format!("there is no run {id}"))
            .hint("the page Runs lists the latest hundred")
    })?;
    let now_ms = visit.now_ms();
    let end_ms = run.ended_ms.unwrap_or(now_ms);
    // A task that cannot be read is no reason to show nothing of the others.
    let details: Vec<Box<TaskDetail>> = run
        .tasks
        .iter()
        .take(TASKS_MAX)
        .filter_map(|task| visit.show(TaskAsked { task: *task }).ok())
        .collect();
    let rows: Vec<TimelineTask> =
        details.iter().map(|detail| TimelineTask::of(detail, run.began_ms, end_ms)).collect();
    let timeline = Timeline::new(&rows, run.began_ms, end_ms);
    let tasks: Vec<RunTask> = details
        .into_iter()
        .zip(&rows)
        .map(|(detail, row)| run_task(detail, row.landed_ms.is_some(), run.began_ms, end_ms))
        .collect();
    let waits = |task: &&RunTask| {
        task.detail.line.status == Status::Review
            || task.detail.line.wait.as_ref().is_some_and(|wait| wait.owner == "you")
    };
    #[expect(clippy::cast_precision_loss, reason = "nobody lands that many tasks")]
    let each = |cost: f64| (run.landed > 0).then(|| words::usd(cost / run.landed as f64));
    let page = Run {
        run,
        now_ms,
        took: words::length(end_ms.abs_diff(run.began_ms)),
        asks: tasks.iter().filter(waits).count(),
        cost: run.cost_usd.map(words::usd),
        cost_each: run.cost_usd.and_then(each),
        timeline,
        more: run.tasks.len().saturating_sub(TASKS_MAX),
        tasks,
    };
    Page::new(format!("Run {id}"), &page)
}

fn run_task(detail: Box<TaskDetail>, has_landed: bool, from_ms: i64, to_ms: i64) -> RunTask {
    let within = |at_ms: i64| (from_ms..=to_ms).contains(&at_ms);
    let runs: Vec<_> =
        detail.attempts.iter().flat_map(|attempt| &attempt.runs).filter(|run| within(run.began_ms)).collect();
    let costs: Vec<f64> = runs.iter().filter_map(|run| run.usage.cost_usd).collect();
    RunTask {
        has_landed,
        iterations: runs.len(),
        took: words::length(runs.iter().filter_map(|run| run.took_ms).sum::<u64>()),
        cost: (!costs.is_empty()).then(|| words::usd(costs.iter().sum::<f64>())),
        commit: detail
            .landed_as
            .as_ref()
            .filter(|_| has_landed)
            .map(|landed| super::task::short(&landed.commit)),
        why: words::prose(&detail.why),
        detail,
    }
}

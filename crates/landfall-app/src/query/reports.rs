//! Reports, and the runs they are about.

use std::path::PathBuf;

use landfall_api::{self as api, Problem, ProblemCode, RunResult};
use landfall_engine::model::run_history::{RunHistory, RunRecord, TaskInRun, TaskResult};
use landfall_engine::model::{RunEnd, RunId, Timestamp};
use landfall_engine::report_of;
use landfall_engine::store::{Seq, StoreReader};
use landfall_text::format_dated;

use crate::project::conversions::TaskRelations;
use crate::project::place::ProjectLocation;
use crate::project::query_context::Query;
use crate::project::sentences;
use crate::project::{clock, conversions, problems};
use crate::query::issue_history;
use crate::query::run_text;
use crate::query::tasks::why_sentence;

const RUNS_MAX: usize = 100; // a page; older ones are in the log
const TASKS_MAX: usize = 200; // of one run, in a list of runs

pub(crate) fn list_runs(look: &Query<'_>) -> Result<api::RunList, Problem> {
    let Some(reader) = look.place.open_reader()? else { return Ok(api::RunList { runs: Vec::new() }) };
    let records = list_run_records(&reader, look.engine.is_alive())?;
    Ok(api::RunList { runs: records.iter().rev().take(RUNS_MAX).map(to_run_line).collect() })
}

/// All runs, oldest first, by one look through the journal.
pub(crate) fn list_run_records(reader: &StoreReader, alive: bool) -> Result<Vec<RunRecord>, Problem> {
    list_run_records_until(reader, None, alive)
}

/// The same as far as a place in the journal.
pub(crate) fn list_run_records_until(
    reader: &StoreReader,
    until: Option<Seq>,
    alive: bool,
) -> Result<Vec<RunRecord>, Problem> {
    let mut history = RunHistory::default();
    let read = reader.replay(Seq::FIRST, &mut |seq, entry| {
        if until.is_none_or(|until| seq <= until) {
            history.hear(&entry);
        }
        Ok(())
    });
    read.map_err(|error| problems::from_store_error(&error))?;
    Ok(history.to_records(alive, Timestamp(clock::now_ms())))
}

/// The figures of a run: the one place that turns a record into what people see.
pub(crate) fn to_run_line(record: &RunRecord) -> api::RunLine {
    let used = record.total_usage();
    let count = |result: RunResult| record.count_results(|task| to_run_result(task).0 == result);
    let touched = record.tasks.iter().filter(|task| task.is_touched);
    api::RunLine {
        run: conversions::run_id(record.id()),
        taken_over_by: record.ids.iter().skip(1).map(|id| conversions::run_id(*id)).collect(),
        began_ms: record.began.0,
        ended_ms: record.ended.map(|at| at.0),
        end: match record.end {
            Some(RunEnd::Lost) => "the engine is gone".to_owned(),
            Some(why) => sentences::run_end(why).to_owned(),
            None => "under way".to_owned(),
        },
        counts: api::RunCounts {
            landed: count(RunResult::Landed),
            accepted: count(RunResult::Accepted),
            failed: count(RunResult::Failed),
            needs_you: count(RunResult::NeedsYou),
            behind: count(RunResult::Behind),
            waiting: count(RunResult::Waiting),
            at_work: count(RunResult::AtWork),
            not_started: count(RunResult::NotStarted),
            cancelled: count(RunResult::Cancelled),
        },
        tasks: touched.take(TASKS_MAX).map(|task| conversions::task_id(task.id)).collect(),
        usage: conversions::to_api_usage(used.usage),
        agent_ms: used.agent_ms,
        engines_lost: record.engines_lost(),
        down_ms: record.down_ms(),
        paused_ms: record.paused_ms,
    }
}

/// What has become of a task, and the one it waits behind.
fn to_run_result(result: TaskResult) -> (RunResult, Option<api::WireTaskId>) {
    let word = match result {
        TaskResult::Landed => RunResult::Landed,
        TaskResult::Accepted => RunResult::Accepted,
        TaskResult::Failed => RunResult::Failed,
        TaskResult::NeedsYou => RunResult::NeedsYou,
        TaskResult::Behind(need) => return (RunResult::Behind, Some(conversions::task_id(need))),
        TaskResult::Waiting => RunResult::Waiting,
        TaskResult::AtWork => RunResult::AtWork,
        TaskResult::NotStarted => RunResult::NotStarted,
        TaskResult::Cancelled => RunResult::Cancelled,
    };
    (word, None)
}

/// A run with its tasks; what landed comes last, for whoever reads it wants to know of the rest.
pub(crate) fn full_run_report(
    reader: &StoreReader,
    record: &RunRecord,
    notes: Vec<String>,
) -> Result<api::RunReport, Problem> {
    let mut tasks = Vec::with_capacity(record.tasks.len());
    for task in &record.tasks {
        tasks.extend(task_line(reader, task)?);
    }
    let rank = |result: RunResult| (result == RunResult::Landed, result);
    tasks.sort_by_key(|task| (rank(task.result), task.task));
    Ok(api::RunReport { run: to_run_line(record), tasks, notes })
}

fn task_line(reader: &StoreReader, task: &TaskInRun) -> Result<Option<api::RunTaskLine>, Problem> {
    let of = |error| problems::from_store_error(&error);
    let Some(now) = reader.task(task.id).map_err(of)? else { return Ok(None) };
    let unmet = reader.unmet(task.id).map_err(of)?;
    let (result, behind) = to_run_result(task.result);
    Ok(Some(api::RunTaskLine {
        task: conversions::task_id(task.id),
        title: now.spec.title.clone(),
        result,
        behind,
        status: conversions::to_api_status(landfall_engine::model::TaskStatus::for_task_among_others(
            &now, &unmet, false,
        )),
        iterations: task.used.iterations,
        agent_ms: task.used.agent_ms,
        usage: conversions::to_api_usage(task.used.usage),
        commit: task.commit.as_ref().map(|commit| commit.as_str().to_owned()),
        why: why_sentence(&now, &TaskRelations::with_unmet_needs(reader, unmet)?),
    }))
}

pub(crate) fn report_on(look: &Query<'_>, asked: api::ReportAsked) -> Result<api::Report, Problem> {
    let of = match asked {
        api::ReportAsked { task: Some(task), run: None } => api::ReportOf::Task(task),
        api::ReportAsked { task: None, run: Some(run) } => api::ReportOf::Run(run),
        api::ReportAsked { task: None, run: None } => api::ReportOf::LastRun,
        api::ReportAsked { task: Some(_), run: Some(_) } => {
            return Err(Problem::new(ProblemCode::BadInput, "a report is about a task or a run, not both"));
        }
    };
    match of {
        api::ReportOf::Task(task) => {
            let id = conversions::model_task(task);
            let reader = look.place.open_reader()?.ok_or_else(|| problems::unknown_task(id))?;
            let task = look.load_task(&reader, id)?;
            let lookback = issue_history::build_retrospective(look.place, &reader, &task)?;
            let markdown = report_of(&task, lookback.as_ref(), &|at| format_dated(at.0));
            Ok(api::Report { of, markdown, run: None })
        }
        api::ReportOf::Run(run) => run_report(look, Some(RunId(run.0))),
        api::ReportOf::LastRun => run_report(look, None),
    }
}

/// Where the report of a run is kept.
pub(crate) fn run_report_path(place: &ProjectLocation, run: RunId) -> PathBuf {
    place.folder.papers_path().join(format!("{run}.md"))
}

/// The report of the run that this number belongs to, or of the newest.
fn run_report(look: &Query<'_>, run: Option<RunId>) -> Result<api::Report, Problem> {
    let unknown = || match run {
        Some(run) => Problem::new(ProblemCode::UnknownRun, format!("there is no run {run}"))
            .with_hint("`landfall report` shows the newest one; `landfall log` shows when each began"),
        None => Problem::new(ProblemCode::UnknownRun, "there was no run yet")
            .with_hint("`landfall run` starts one"),
    };
    let reader = look.place.open_reader()?.ok_or_else(unknown)?;
    let records = list_run_records(&reader, look.engine.is_alive())?;
    let record = match run {
        Some(run) => records.iter().find(|record| record.ids.contains(&run)),
        None => records.last(),
    };
    let record = record.ok_or_else(unknown)?;
    let held = look.base_status(&reader)?.held;
    let held = held.map(|reason| format!("Landed work is not in your branch yet: {reason}."));
    let report = full_run_report(&reader, record, held.into_iter().collect())?;
    let of = api::ReportOf::Run(report.run.run);
    Ok(api::Report {
        of,
        markdown: run_text::render_run_markdown(&report, clock::now_ms()),
        run: Some(Box::new(report)),
    })
}

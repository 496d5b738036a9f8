//! Reports, and the runs they are about.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use landfall_api::{self as api, Problem, ProblemCode};
use landfall_engine::model::{EngineEvent, Event, Fact, RunId, Task, TaskId};
use landfall_engine::store::{Reader, RunRow, Seq};
use landfall_engine::{report_of, run_report};

use super::place::Place;
use super::reads::Look;
use super::{history, moment, problem, wire, words, writes};

const RUNS_MAX: u32 = 100; // a page; older ones are in the log
const TASKS_MAX: usize = 200; // of one run

/// What happened in one run.
#[derive(Debug, Default)]
struct Tally {
    touched: BTreeSet<TaskId>,
    landed: u64,
    not_landed: u64,
    micro_usd: u64,
}

pub(super) fn runs(look: &Look<'_>) -> Result<api::RunList, Problem> {
    let Some(reader) = look.place.reader()? else { return Ok(api::RunList { runs: Vec::new() }) };
    let rows = reader.runs(RUNS_MAX).map_err(|error| problem::store(&error))?;
    let mut tallies = tally(&reader)?;
    let newest = rows.first().map(|row| row.id);
    let runs = rows.into_iter().map(|row| {
        let tally = tallies.remove(&row.id).unwrap_or_default();
        let alive = Some(row.id) == newest && look.engine.is_alive();
        api::RunLine {
            run: wire::run_id(row.id),
            began_ms: row.started.0,
            ended_ms: row.ended.map(|at| at.0),
            end: end_words(&row, alive),
            landed: tally.landed,
            not_landed: tally.not_landed,
            tasks: tally.touched.iter().take(TASKS_MAX).map(|task| wire::task_id(*task)).collect(),
            cost_usd: wire::usd(tally.micro_usd),
        }
    });
    Ok(api::RunList { runs: runs.collect() })
}

fn end_words(row: &RunRow, alive: bool) -> String {
    match (row.why, alive) {
        (Some(why), _) => words::run_end(why).to_owned(),
        (None, true) => "under way".to_owned(),
        (None, false) => "the engine is gone".to_owned(),
    }
}

/// What happened in each run, by one look through the journal.
fn tally(reader: &Reader) -> Result<BTreeMap<RunId, Tally>, Problem> {
    let mut tallies: BTreeMap<RunId, Tally> = BTreeMap::new();
    let mut now: Option<RunId> = None;
    let looked = reader.replay(Seq::FIRST, &mut |_, entry| {
        match &entry.fact {
            Fact::Engine(EngineEvent::RunStarted { run, .. }) => now = Some(*run),
            Fact::Engine(EngineEvent::RunEnded { .. }) => now = None,
            Fact::Engine(_) => {}
            Fact::Task(task, event) => {
                let Some(run) = now else { return Ok(()) };
                let tally = tallies.entry(run).or_default();
                match event {
                    Event::Entered { .. } => {
                        tally.touched.insert(*task); // entered often, touched once
                    }
                    Event::Landed { .. } => {
                        tally.touched.insert(*task); // it may have stood in the landing queue before
                        tally.landed += 1;
                    }
                    Event::IterationEnded { usage, .. } => tally.micro_usd += usage.micro_usd,
                    event if writes::is_failure(event) => tally.not_landed += 1,
                    _ => {}
                }
            }
        }
        Ok(())
    });
    looked.map_err(|error| problem::store(&error))?;
    Ok(tallies)
}

pub(super) fn report(look: &Look<'_>, asked: api::ReportAsked) -> Result<api::Report, Problem> {
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
            let id = wire::model_task(task);
            let reader = look.place.reader()?.ok_or_else(|| problem::unknown_task(id))?;
            let task = look.task(&reader, id)?;
            let lookback = history::look_back(look.place, &reader, &task)?;
            Ok(api::Report { of, markdown: report_of(&task, lookback.as_ref(), &moment::dated) })
        }
        api::ReportOf::Run(run) => run_paper(look, RunId(run.0)),
        api::ReportOf::LastRun => {
            let reader = look.place.reader()?;
            let newest = match &reader {
                Some(reader) => reader.runs(1).map_err(|error| problem::store(&error))?.pop(),
                None => None,
            };
            let newest = newest.ok_or_else(|| {
                Problem::new(ProblemCode::UnknownRun, "there was no run yet")
                    .hint("`landfall run` starts one")
            })?;
            run_paper(look, newest.id)
        }
    }
}

/// Where the report of a run is kept.
pub(super) fn paper(place: &Place, run: RunId) -> PathBuf {
    place.folder.papers().join(format!("{run}.md"))
}

fn run_paper(look: &Look<'_>, run: RunId) -> Result<api::Report, Problem> {
    let of = api::ReportOf::Run(wire::run_id(run));
    if let Ok(markdown) = std::fs::read_to_string(paper(look.place, run)) {
        return Ok(api::Report { of, markdown });
    }
    let unknown = || {
        Problem::new(ProblemCode::UnknownRun, format!("there is no run {run}"))
            .hint("`landfall report` shows the newest one; `landfall log` shows when each began")
    };
    let reader = look.place.reader()?.ok_or_else(unknown)?;
    let rows = reader.runs(u32::MAX).map_err(|error| problem::store(&error))?;
    let row = rows.into_iter().find(|row| row.id == run).ok_or_else(unknown)?;
    let tally = tally(&reader)?.remove(&run).unwrap_or_default();
    let mut tasks: Vec<Arc<Task>> = Vec::new();
    for id in tally.touched {
        tasks.extend(reader.task(id).map_err(|error| problem::store(&error))?.map(Arc::new));
    }
    let held = look.base(&reader)?.held;
    Ok(api::Report { of, markdown: run_report(&title(&row), &tasks, held.as_deref(), &moment::dated) })
}

/// What the report of a run is called.
pub(super) fn title(row: &RunRow) -> String {
    format!("Run {} of {}", row.id, moment::dated(row.started))
}

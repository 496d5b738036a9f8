//! Who picks tasks, and pauses: `pause`, `resume`, `auto`, `next`.

use landfall_api::{self as api, Problem, ProblemCode};
use landfall_engine::model::pilot::{Phase, PilotMode, PilotState};
use landfall_engine::model::{ExhaustedBudget, TaskId};
use landfall_engine::store::{RunRow, StoreReader};
use landfall_engine::{EngineReply, EngineRequest};
use landfall_text::pluralize;

use crate::project::command_handler::{CommandHandler, unexpected_reply};
use crate::project::query_context::Query;
use crate::project::sentences;
use crate::project::{clock, conversions, problems};

/// The run under way, if one is.
pub(crate) fn find_active_run(look: &Query<'_>, reader: &StoreReader) -> Result<Option<RunRow>, Problem> {
    let newest = reader.runs(1).map_err(|error| problems::from_store_error(&error))?.pop();
    Ok(newest.filter(|run| run.ended.is_none() && look.engine.is_alive()))
}

/// How it is now, by the tables.
pub(crate) fn pilot_state(look: &Query<'_>) -> Result<Box<api::Pilot>, Problem> {
    let Some(reader) = look.place.open_reader()? else { return Ok(Box::new(idle_pilot(look, 0, None))) };
    let run = find_active_run(look, &reader)?;
    let of = |error| problems::from_store_error(&error);
    let ready = reader.counts().map_err(of)?.count_of(landfall_engine::model::TaskStatus::Ready);
    let next = next_task_brief(&reader)?;
    match run {
        None => Ok(Box::new(idle_pilot(look, ready, next))),
        Some(run) => {
            let spent = look.engine.with_snapshot(|view| view.spent.clone()).flatten();
            Ok(Box::new(to_api_pilot(&reader.pilot().map_err(of)?, &run, ready, next, spent.as_ref())))
        }
    }
}

/// What the first in line is called.
pub(crate) fn next_task_brief(reader: &StoreReader) -> Result<Option<api::TaskBrief>, Problem> {
    let first = reader.next(1).map_err(|error| problems::from_store_error(&error))?.pop();
    Ok(first.map(|row| api::TaskBrief { task: conversions::task_id(row.id), title: row.title }))
}

fn idle_pilot(look: &Query<'_>, ready: u64, next: Option<api::TaskBrief>) -> api::Pilot {
    let settings = landfall_engine::engine::load_settings(&look.place.root).ok(); // broken ones complain elsewhere
    let mode = settings.as_ref().map_or(PilotMode::Autopilot, |settings| settings.run.mode);
    let slots = settings.as_ref().map_or(0, |settings| settings.run.slots);
    let text = format!(
        "no run is under way; `landfall run` starts one ({}), with {} ready.",
        mode.word(),
        pluralize(ready, "task")
    );
    api::Pilot {
        run: None,
        mode: conversions::to_api_mode(mode),
        phase: Phase::Idle,
        pause: None,
        picked: None,
        next,
        ready,
        slots,
        text,
    }
}

/// How a run is driven. `spent` is the budget that keeps agents from starting.
pub(crate) fn to_api_pilot(
    pilot: &PilotState,
    run: &RunRow,
    ready: u64,
    next: Option<api::TaskBrief>,
    spent: Option<&ExhaustedBudget>,
) -> api::Pilot {
    let pause = pilot.pause().map(|pause| api::PauseLine {
        why: pause.why,
        reason: pause.reason.clone(),
        since_ms: pause.since.0,
    });
    let picked = pilot.assigned_task().map(conversions::task_id);
    let text = pilot_sentence(pilot, run, ready, next.as_ref(), spent);
    api::Pilot {
        run: Some(conversions::run_id(run.id)),
        mode: conversions::to_api_mode(pilot.mode()),
        phase: pilot.phase(),
        pause,
        picked,
        next,
        ready,
        slots: run.slots,
        text,
    }
}

fn pilot_sentence(
    pilot: &PilotState,
    run: &RunRow,
    ready: u64,
    next: Option<&api::TaskBrief>,
    spent: Option<&ExhaustedBudget>,
) -> String {
    let id = run.id;
    let tasks = pluralize(ready, "task");
    if let (None, PilotMode::Autopilot, Some(spent)) = (pilot.pause(), pilot.mode(), spent) {
        return format!("{id} starts no agent: {}. {tasks} ready.", sentences::exhausted_budget_text(spent));
    }
    match (pilot.pause(), pilot.mode(), pilot.assigned_task()) {
        (Some(pause), ..) => format!(
            "{id} is paused since {}: {}; `landfall run resume` lets it continue.",
            clock::format_when(pause.since.0),
            pause.reason
        ),
        (None, PilotMode::Autopilot, _) => {
            format!("{id} is on autopilot: {tasks} ready, {}.", pluralize(u64::from(run.slots), "slot"))
        }
        (None, PilotMode::SemiAuto, Some(task)) => {
            format!("{id} is semi-automatic and works on {task}; you pick the next one when it is over.")
        }
        (None, PilotMode::SemiAuto, None) => format!("{id} is semi-automatic: {}", pick_hint(next)),
    }
}

/// What a person can do when it is their turn to pick.
pub(crate) fn pick_hint(next: Option<&api::TaskBrief>) -> String {
    match next {
        Some(next) => format!(
            "you pick: `landfall run next` takes the first in line, `landfall run next {}` that one ({}), `landfall run autopilot on` all of them.",
            next.task, next.title
        ),
        None => "no task is ready; `landfall status` says what the others wait for.".to_owned(),
    }
}

impl CommandHandler<'_> {
    pub fn pause_run(&self, asked: &api::PauseAsked) -> Result<Box<api::Pilot>, Problem> {
        self.request_done(EngineRequest::Pause { reason: asked.reason.trim().to_owned() })?;
        let mut pilot = pilot_state(&self.query())?;
        let reader = self.open_reader()?;
        let active = crate::query::tasks::count_working_agents(&reader)?;
        let finish = match active {
            0 => "nothing is under way".to_owned(),
            1 => "1 agent finishes its iteration".to_owned(),
            many => format!("{} finish their iterations", pluralize(many, "agent")),
        };
        pilot.text = format!("paused; {finish}, and nothing new starts until `landfall run resume`.");
        Ok(pilot)
    }

    pub fn resume_run(&self) -> Result<Box<api::Pilot>, Problem> {
        self.request_done(EngineRequest::Resume)?;
        let mut pilot = pilot_state(&self.query())?;
        pilot.text = format!("resumed: {}", pilot.text);
        Ok(pilot)
    }

    pub fn set_mode(&self, mode: api::Mode) -> Result<Box<api::Pilot>, Problem> {
        self.request_done(EngineRequest::SetMode(conversions::model_mode(mode)))?;
        let mut pilot = pilot_state(&self.query())?;
        if pilot.pause.is_none() {
            pilot.text = match mode {
                api::Mode::Autopilot => format!(
                    "on autopilot: {} ready, and up to {} start without being asked; `landfall run autopilot off` takes it back.",
                    pluralize(pilot.ready, "task"),
                    pluralize(u64::from(pilot.slots), "agent")
                ),
                api::Mode::SemiAuto => format!(
                    "semi-automatic: agents at work finish their tasks; then {}",
                    pick_hint(pilot.next.as_ref())
                ),
            };
        }
        Ok(pilot)
    }

    pub fn next(&self, task: Option<TaskId>) -> Result<api::Picked, Problem> {
        let picked = self.request_tasks(EngineRequest::Assign(task))?;
        let Some(task) = picked.first() else {
            return Err(Problem::new(ProblemCode::Internal, "a task was picked, and none was named"));
        };
        Ok(api::Picked {
            task: conversions::task_id(task.id),
            title: task.spec.title.clone(),
            text: format!("{} is next: {}; you pick again when it is over.", task.id, task.spec.title),
        })
    }

    /// Asks for something that has no answer but that it is so.
    pub fn request_done(&self, ask: EngineRequest) -> Result<(), Problem> {
        match (self.ask)(ask)? {
            EngineReply::Done => Ok(()),
            other => Err(unexpected_reply("a change", &other)),
        }
    }
}

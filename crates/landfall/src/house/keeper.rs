//! Keeps a project: holds its lock for as long as the process lives, writes while nothing runs, and drives when asked to.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use landfall_api::{self as api, Problem, ProblemCode, Request, Response};
use landfall_engine::Engine;
use landfall_engine::host::lock::{Holder, StateLock};

use super::desk::{open, write_at_rest};
use super::engine_at::EngineAt;
use super::place::Place;
use super::proposals::Proposals;
use super::run::{self, Run, UnderWay};
use super::{moment, problem, writes};
use crate::running::RunHandle as _;

/// A project that is kept.
pub(super) struct Keeper {
    place: Place,
    since_ms: i64,
    state: Mutex<Keep>,
    proposals: Proposals,
}

/// What is done with it.
enum Keep {
    /// Nothing runs. The engine is kept open between writes.
    Rest { engine: Option<(Box<Engine>, Stamp)>, last: Option<Box<api::RunOutcome>> },
    /// It is driven.
    Running(Box<Run>),
}

/// When what the engine has read was last changed: then it is read again.
#[derive(PartialEq, Eq)]
struct Stamp(Vec<Option<(SystemTime, u64)>>);

impl Keeper {
    /// Takes the lock of the project.
    pub fn hold(mut place: Place) -> Result<Self, Problem> {
        let in_folder = |error: std::io::Error| problem::io("make", place.folder.root(), &error);
        place.folder.make().map_err(in_folder)?;
        let since_ms = moment::now_ms();
        let me = Holder::this_process("landfall serve", since_ms);
        let lock = StateLock::acquire(place.folder.root(), &me).map_err(|error| problem::lock(&error))?;
        place.lock = Some(Arc::new(lock));
        // What is wrong with the project is better heard now than at the first request.
        let engine = open(&place, "landfall serve").map_err(|error| problem::open(&error))?;
        let stamp = Stamp::of(&place);
        let state = Mutex::new(Keep::Rest { engine: Some((Box::new(engine), stamp)), last: None });
        Ok(Self { place, since_ms, state, proposals: Proposals::default() })
    }

    /// The project.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What agents were asked to propose.
    pub fn proposals(&self) -> &Proposals {
        &self.proposals
    }

    /// Since when it is kept.
    pub fn since_ms(&self) -> i64 {
        self.since_ms
    }

    /// The run under way.
    pub fn running(&self) -> Option<UnderWay> {
        match &*self.look() {
            Keep::Running(run) => Some(run.under_way()),
            Keep::Rest { .. } => None,
        }
    }

    /// Begins a run.
    pub fn start(&self, asked: &api::RunAsked) -> Result<api::RunStarted, Problem> {
        let mut state = self.look();
        if let Keep::Running(_) = *state {
            return Err(Problem::new(ProblemCode::NotNow, "a run is under way already")
                .hint("`landfall status` shows it; `landfall pause` and `landfall resume` steer it"));
        }
        // Settings are read again: whoever changed them means this run.
        if let Keep::Rest { engine, .. } = &mut *state {
            *engine = None;
        }
        // A browser may be closed at any time; whoever asks a server to drive is there when they look again.
        let asked = api::RunAsked { attended: true, ..asked.clone() };
        let run = run::begin(self.place.clone(), &asked)?;
        let after = run.under_way().now(api::RunNowAsked::default()).head;
        *state = Keep::Running(Box::new(run));
        Ok(api::RunStarted { after })
    }

    /// What goes on in the run under way, or how the last one ended.
    pub fn now(&self, asked: api::RunNowAsked) -> Result<Box<api::RunView>, Problem> {
        match &*self.look() {
            Keep::Running(run) => Ok(Box::new(run.under_way().now(asked))),
            Keep::Rest { last: Some(outcome), .. } => {
                let run = Some(outcome.run);
                Ok(Box::new(api::RunView { run, outcome: Some(outcome.clone()), ..api::RunView::default() }))
            }
            Keep::Rest { last: None, .. } => Err(Problem::new(ProblemCode::NotNow, "no run is under way")
                .hint("`landfall run` starts one, and so does the board")),
        }
    }

    /// Carries a write out while nothing runs.
    pub fn at_rest(&self, request: Request) -> Result<Response, Problem> {
        if let Some(problem) = writes::refused_at_rest(&self.place, &request)? {
            return Err(problem);
        }
        let mut state = self.look();
        let Keep::Rest { engine, .. } = &mut *state else {
            return Err(Problem::new(ProblemCode::NotNow, "a run has just begun").hint("ask again"));
        };
        let stamp = Stamp::of(&self.place);
        let open = match engine.take() {
            Some((engine, kept)) if kept == stamp => engine,
            Some(_) | None => {
                Box::new(open(&self.place, "landfall serve").map_err(|error| problem::open(&error))?)
            }
        };
        let at = EngineAt::Resting { since_ms: self.since_ms };
        let (open, answer) = write_at_rest(&self.place, *open, &at, &request);
        *engine = Some((Box::new(open), stamp));
        answer
    }

    /// Asks the run under way to end: after the iterations at work, or now.
    pub fn stop(&self, now: bool) {
        if let Keep::Running(run) = &mut *self.look() {
            if now { run.stop_now() } else { run.drain() }
        }
    }

    /// Looks whether the run under way is over.
    fn look(&self) -> MutexGuard<'_, Keep> {
        let mut state = self.state.lock().expect("no thread panics while it holds the project");
        if let Keep::Running(run) = &mut *state
            && let Some(outcome) = run.wait(Duration::ZERO)
        {
            *state = Keep::Rest { engine: None, last: Some(Box::new(outcome)) };
        }
        state
    }
}

impl Stamp {
    fn of(place: &Place) -> Self {
        let overrides = place.root.join(".landfall");
        let read = [
            place.root.join("landfall.toml"),
            overrides.join("flows"),
            overrides.join("prompts"),
            place.git_dir.join("HEAD"),
        ];
        let stamp = |path: &std::path::PathBuf| {
            let meta = std::fs::metadata(path).ok()?;
            Some((meta.modified().ok()?, meta.len()))
        };
        Self(read.iter().map(stamp).collect())
    }
}

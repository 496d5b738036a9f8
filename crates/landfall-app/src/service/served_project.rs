//! Keeps a project: holds its lock for as long as the process lives, writes while nothing runs, and drives when asked to.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use landfall_api::{self as api, Problem, ProblemCode, Request, Response, StateVersion};
use landfall_engine::Engine;
use landfall_engine::host::lock::{LockHolder, StateLock};
use landfall_engine::model::{EngineEvent, Fact, RunEnd};
use landfall_engine::store::Seq;

use crate::command::proposals::Proposals;
use crate::command::{changes, loops};
use crate::project::engine_at::EngineLocation;
use crate::project::open_engine::{HolderRefusal, is_passing, open, retry_while_held};
use crate::project::place::ProjectLocation;
use crate::project::{clock, problems};
use crate::run::run_handle::RunHandle as _;
use crate::run::{self, ActiveRun, RunMonitor};
use crate::service::write_without_run;

/// A project that is kept.
pub(crate) struct ServedProject {
    place: ProjectLocation,
    since_ms: i64,
    state: Mutex<ServedRunState>,
    /// The run under way, for those who only look: they do not wait for whoever writes or begins.
    under_way: Mutex<Option<RunMonitor>>,
    proposals: Proposals,
    ending: AtomicBool,
    /// What was done about loops that nobody drives.
    minding: Mutex<LoopSupervision>,
    writes: WriteCounter,
}

/// What may have changed something: requests that are done, and runs that begin and end.
#[derive(Default)]
struct WriteCounter {
    count: Mutex<u64>,
    grown: Condvar,
}

impl WriteCounter {
    fn count(&self) -> MutexGuard<'_, u64> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn increment(&self) {
        *self.count() += 1;
        self.grown.notify_all();
    }

    /// Waits until there are more than `known`, at most so long.
    fn wait_for_more_than(&self, known: u64, at_most: Duration) {
        let waited = self.grown.wait_timeout_while(self.count(), at_most, |count| *count <= known);
        drop(waited); // whoever waited looks again anyway
    }
}

/// What is done with it.
enum ServedRunState {
    /// Nothing runs. The engine is kept open between writes.
    Rest { engine: Option<(Box<Engine>, ConfigStamp)>, last: Option<PreviousRun> },
    /// It is driven.
    Running(Box<ActiveRun>),
}

/// What was done about loops that nobody drives.
#[derive(Default)]
struct LoopSupervision {
    /// What had been written when it was last looked at.
    looked: Option<u64>,
    /// The last event after which it was tried.
    tried: Option<Seq>,
    /// Whether the last run was begun for loops.
    ours: bool,
}

/// The run before this.
struct PreviousRun {
    outcome: Box<api::RunOutcome>,
    run: RunMonitor,
}

/// When what the engine has read was last changed: then it is read again.
#[derive(PartialEq, Eq)]
struct ConfigStamp(Vec<Option<(SystemTime, u64)>>);

impl ServedProject {
    /// Takes the lock of the project.
    pub fn acquire(mut place: ProjectLocation) -> Result<Self, Problem> {
        let in_folder = |error: std::io::Error| problems::from_io_error("make", place.folder.root(), &error);
        place.folder.create_folders().map_err(in_folder)?;
        let since_ms = clock::now_ms();
        let me = LockHolder::this_process("landfall serve", since_ms);
        let lock = retry_while_held(|| {
            StateLock::acquire(place.folder.root(), &me).map_err(|error| match is_passing(&error) {
                true => HolderRefusal::Held(problems::lock(&error)),
                false => HolderRefusal::Failed(problems::lock(&error)),
            })
        })?;
        place.lock = Some(Arc::new(lock));
        // What is wrong with the project is better heard now than at the first request.
        let engine = open(&place, "landfall serve").map_err(|error| problems::open(&error))?;
        let stamp = ConfigStamp::for_project(&place);
        let state = Mutex::new(ServedRunState::Rest { engine: Some((Box::new(engine), stamp)), last: None });
        Ok(Self {
            place,
            since_ms,
            state,
            under_way: Mutex::new(None),
            proposals: Proposals::default(),
            ending: AtomicBool::new(false),
            minding: Mutex::default(),
            writes: WriteCounter::default(),
        })
    }

    /// The project.
    pub fn place(&self) -> &ProjectLocation {
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
    pub fn current_run(&self) -> Option<RunMonitor> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How far things have come. Nobody else writes while the project is kept.
    pub fn state_version(&self) -> StateVersion {
        // The count first: what is written in between belongs to a later mark, and is looked for again.
        let writes = self.write_count();
        let seq = self.current_run().map_or(0, |run| run.site.end.head().seq.0);
        StateVersion { writes, seq }
    }

    /// Whether the server is ending.
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    /// Waits until something is written after `mark`, for at most so long.
    pub fn wait_for_change(&self, mark: StateVersion, at_most: Duration) {
        match self.current_run() {
            Some(run) => run.site.end.wait_past(Seq(mark.seq), at_most),
            None => self.writes.wait_for_more_than(mark.writes, at_most),
        }
    }

    /// Something may have changed: whatever was made before this is made anew for whoever asks.
    pub fn note_write(&self) {
        self.writes.increment();
    }

    fn write_count(&self) -> u64 {
        *self.writes.count()
    }

    /// Whether a run is under way. Whoever asks regularly lets a run that is over be noticed.
    pub fn is_running(&self) -> bool {
        matches!(*self.lock_state(), ServedRunState::Running(_))
    }

    /// Begins a run.
    pub fn start(&self, asked: &api::RunAsked) -> Result<api::RunStarted, Problem> {
        let mut state = self.lock_state();
        if self.is_ending() {
            return Err(Problem::new(ProblemCode::NotNow, "the server is ending, so nothing more begins"));
        }
        let ServedRunState::Rest { engine, .. } = &mut *state else {
            return Err(Problem::new(ProblemCode::NotNow, "a run is under way already").with_hint(
                "`landfall status` shows it; `landfall run pause` and `landfall run resume` steer it",
            ));
        };
        // Settings are read again: whoever changed them means this run.
        *engine = None;
        // A browser may be closed at any time; whoever asks a server to drive is there when they look again, unless a
        // command says that nobody is.
        let asked = api::RunAsked { attended: !asked.unattended, ..asked.clone() };
        let run = run::begin_run(self.place.clone(), &asked)?;
        let after = run.from();
        self.set_running(Some(run.monitor()));
        *state = ServedRunState::Running(Box::new(run));
        Ok(api::RunStarted { after })
    }

    /// Begins a run for the loops that are to go on, unless one is under way.
    pub fn drive_loops(&self) -> Result<(), Problem> {
        let tasks = match self.place.open_reader()? {
            Some(reader) => loops::tasks_to_drive(&reader)?,
            None => Vec::new(),
        };
        if tasks.is_empty() || self.is_running() {
            return Ok(()); // the run under way has them
        }
        // A person who picks tasks has picked these.
        let asked = api::RunAsked { tasks, mode: Some(api::Mode::Autopilot), ..api::RunAsked::default() };
        self.start(&asked)?;
        self.minding.lock().unwrap_or_else(PoisonError::into_inner).ours = true;
        Ok(())
    }

    /// Takes up loops that nobody drives: after the server began anew, after a run that ended without them, and when what
    /// they waited for has come. Called again and again.
    pub fn resume_loops(&self) {
        if self.is_ending() || self.is_running() {
            return;
        }
        let writes = self.write_count();
        let looked = self.minding.lock().unwrap_or_else(PoisonError::into_inner).looked.replace(writes);
        if looked == Some(writes) {
            return; // nobody else writes here
        }
        let Ok(Some(reader)) = self.place.open_reader() else { return }; // no loop was begun yet
        let Ok(head) = reader.head() else { return }; // whoever asks for it hears why
        {
            let mut minding = self.minding.lock().unwrap_or_else(PoisonError::into_inner);
            if std::mem::take(&mut minding.ours)
                && let Ok(Some((ended, entry))) = reader.latest(&["run-ended"])
            {
                // One that ended by itself did what could be done; only what is written later changes that.
                minding.tried = (!was_stopped(&entry.fact)).then_some(ended);
            }
            if minding.tried == Some(head.seq) {
                return;
            }
            minding.tried = Some(head.seq);
        }
        drop(reader);
        let _ = self.drive_loops(); // whoever asks how it stands sees that nothing runs; it is tried again when something changes
    }

    /// What goes on in the run under way, or how the last one ended.
    pub fn current_run_view(&self, asked: api::RunNowAsked) -> Result<Box<api::RunView>, Problem> {
        if let Some(run) = self.current_run() {
            return Ok(Box::new(run.current_view(asked)));
        }
        let state = self.lock_state();
        match &*state {
            ServedRunState::Running(run) => Ok(Box::new(run.monitor().current_view(asked))),
            ServedRunState::Rest { last: Some(last), .. } => {
                let view = last.run.current_view(asked);
                let outcome = Some(last.outcome.clone());
                Ok(Box::new(api::RunView { run: Some(last.outcome.run), outcome, slots: Vec::new(), ..view }))
            }
            ServedRunState::Rest { last: None, .. } => {
                Err(Problem::new(ProblemCode::NotNow, "no run is under way")
                    .with_hint("`landfall run` starts one, and so does the board"))
            }
        }
    }

    /// Carries a write out while nothing runs.
    pub fn handle_without_run(&self, request: &Request) -> Result<Response, Problem> {
        if let Some(problem) = changes::refuse_without_engine(&self.place, request)? {
            return Err(problem);
        }
        let deadline = Instant::now() + ENDING_MAX;
        let mut state = self.lock_state();
        while let ServedRunState::Running(_) = *state {
            // It ends this moment, or it has just begun.
            if Instant::now() > deadline {
                return Err(
                    Problem::new(ProblemCode::EngineBusy, "a run has just begun").with_hint("ask again")
                );
            }
            drop(state);
            state = self.lock_state_within(END_LOOK);
        }
        let ServedRunState::Rest { engine, .. } = &mut *state else { unreachable!("waited for") };
        let stamp = ConfigStamp::for_project(&self.place);
        let open = match engine.take() {
            Some((engine, kept)) if kept == stamp => engine,
            Some(_) | None => {
                Box::new(open(&self.place, "landfall serve").map_err(|error| problems::open(&error))?)
            }
        };
        let at = EngineLocation::Resting { since_ms: self.since_ms };
        let (open, answer) = write_without_run(&self.place, *open, &at, request);
        *engine = open.map(|open| (Box::new(open), stamp));
        answer
    }

    /// Does what needs the project to itself; none while a run is under way.
    pub fn with_idle_project<T>(&self, keep: impl FnOnce(&ProjectLocation) -> T) -> Option<T> {
        let mut state = self.lock_state();
        let ServedRunState::Rest { engine, .. } = &mut *state else { return None };
        *engine = None; // whatever is written now, it would not know
        Some(keep(&self.place))
    }

    /// Asks the run under way to end: after the iterations at work, or now. Nothing more begins.
    pub fn stop(&self, now: bool) {
        self.ending.store(true, Ordering::SeqCst);
        self.proposals.stop();
        if let ServedRunState::Running(run) = &mut *self.lock_state() {
            if now {
                run.stop_now()
            } else {
                run.drain()
            }
            self.note_write();
        }
    }

    /// Waits for the end of the run under way, at most for `span`. Returns whether nothing runs.
    pub fn wait_until_idle(&self, span: Duration) -> bool {
        let deadline = Instant::now() + span;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let rests = !matches!(*self.lock_state_within(left.min(END_LOOK)), ServedRunState::Running(_));
            if rests || left.is_zero() {
                return rests;
            }
        }
    }

    /// The state, once a run that is over was put away.
    fn lock_state(&self) -> MutexGuard<'_, ServedRunState> {
        self.lock_state_within(Duration::ZERO)
    }

    /// The same, after a run under way had so long to end.
    fn lock_state_within(&self, span: Duration) -> MutexGuard<'_, ServedRunState> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let ServedRunState::Running(run) = &mut *state {
            let ended = catch_unwind(AssertUnwindSafe(|| run.wait(span)));
            let outcome = match ended {
                Ok(ended) => ended,
                Err(_) => Some(api::RunOutcome::broken_run(
                    Problem::new(ProblemCode::Internal, "the engine has a fault and left the run")
                        .with_hint("what was acknowledged is safe; another run goes on from there"),
                )),
            };
            if let Some(mut outcome) = outcome {
                if outcome.run == NO_RUN {
                    // What broke does not know which run it was; whoever asks wants to.
                    let view = run.monitor().current_view(api::RunNowAsked::default());
                    outcome.run = view.run.unwrap_or(api::WireRunId(1));
                }
                let last = PreviousRun { outcome: Box::new(outcome), run: run.monitor() };
                self.set_running(None);
                *state = ServedRunState::Rest { engine: None, last: Some(last) };
            }
        }
        state
    }

    fn set_running(&self, run: Option<RunMonitor>) {
        self.note_write(); // whoever asks in between is not shown what was made before
        *self.under_way.lock().unwrap_or_else(PoisonError::into_inner) = run;
        self.note_write();
    }
}

/// Whether it says that a run was stopped from outside.
fn was_stopped(fact: &Fact) -> bool {
    matches!(fact, Fact::Engine(EngineEvent::RunEnded { why: RunEnd::Drained | RunEnd::Interrupted, .. }))
}

/// The run of an outcome that does not say which.
const NO_RUN: api::WireRunId = api::WireRunId(0);

/// How long a run that ends is waited for by whoever writes.
const ENDING_MAX: Duration = Duration::from_secs(2);
/// How long the state is held at once for that: others want to look at it.
const END_LOOK: Duration = Duration::from_millis(20);

const FILES_MAX: usize = 1_000; // nobody has so many flows

impl ConfigStamp {
    fn for_project(place: &ProjectLocation) -> Self {
        let overrides = place.root.join(".landfall");
        let mut read = vec![place.root.join("landfall.toml"), place.git_dir.join("HEAD")];
        for folder in ["flows", "prompts"] {
            let folder = overrides.join(folder);
            let files = std::fs::read_dir(&folder).into_iter().flatten().take(FILES_MAX);
            let mut files: Vec<_> = files.filter_map(|file| Some(file.ok()?.path())).collect();
            files.sort();
            read.push(folder);
            read.extend(files);
        }
        let stamp = |path: &std::path::PathBuf| {
            let meta = std::fs::metadata(path).ok()?;
            Some((meta.modified().ok()?, meta.len()))
        };
        Self(read.iter().map(stamp).collect())
    }
}

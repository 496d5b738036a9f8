//! The engine: one owner of the state, one loop.
//!
//! A turn of the loop takes all news that waits, lets the model decide, writes every fact in one append, and only
//! then performs. News comes back by the same channel. The decisions themselves are in `landfall-model`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use landfall_host::clock::{Clock, SystemClock};
use landfall_host::crash;
use landfall_host::git::{BranchName, Git, GitError, Head, Pool, Repo, RepoProblem, Store};
use landfall_host::lock::{Holder, LockError, StateLock};
use landfall_model::flow::Flow;
use landfall_model::{
    Doing, Drive, Driving, Effect, EndCode, Ending, EngineEvent, Entry, Event, Fact, Grant, Input, Limits,
    Mover, News, Refusal, Route, RunEnd, RunId, Said, Signal, Spending, Spent, Standing, State, Status,
    Style, Task, TaskId, TaskLimits, TaskSpec, Timestamp, Wait, World, graph, plan,
};
use landfall_store::{Batch, Journal, Sqlite, StoreError};
use thiserror::Error;

use crate::flows;
use crate::folder::StateFolder;
use crate::follow::Follower;
use crate::gate;
use crate::meter::Meter;
use crate::perform;
use crate::prompts::{PromptProblem, Prompts};
use crate::publish;
use crate::recover;
use crate::settings::{Settings, SettingsProblem};
use crate::site::{Site, View};

/// How an engine is opened.
pub struct Options {
    /// Our own executable.
    pub program: PathBuf,
    /// What was called, for whoever finds the folder locked.
    pub command: String,
    /// Every environment variable: some say where the state is, some are handed on to agents.
    pub environment: Vec<(OsString, OsString)>,
}

impl Options {
    /// Where the state of the project at `root` is.
    #[must_use]
    pub fn folder(&self, root: &Path) -> Option<StateFolder> {
        StateFolder::of(root, &|name| {
            self.environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
        })
    }
}

/// Why a project could not be opened. Nothing was changed.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Not a repository work can land in.
    #[error(transparent)]
    Repo(#[from] RepoProblem),
    /// The repository has no commit yet.
    #[error("branch `{0}` has no commit yet")]
    Unborn(String),
    /// No branch is checked out and settings name none.
    #[error("no branch is checked out and `project.base` is not set")]
    Detached,
    /// Settings name a branch that is not there.
    #[error("the base branch `{0}` does not exist")]
    NoBranch(String),
    /// Settings could not be read.
    #[error(transparent)]
    Settings(#[from] SettingsProblem),
    /// A flow could not be read.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Flows(Vec<flows::FlowError>),
    /// Settings name a flow that is not there.
    #[error("`project.flow` is `{name}`, which is not a flow; known: {known}")]
    NoFlow {
        /// The name.
        name: String,
        /// The flows there are.
        known: String,
    },
    /// A prompt could not be read.
    #[error(transparent)]
    Prompts(#[from] PromptProblem),
    /// There is no place for the state.
    #[error("no place for the state folder: neither LANDFALL_STATE nor XDG_STATE_HOME nor HOME is set")]
    NoHome,
    /// The state folder cannot be used.
    #[error("use the state folder `{}`", path.display())]
    Folder {
        /// It.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The state folder is on a network file system, where the journal would not be safe.
    #[error("the state folder `{}` is on a network file system, where the journal would not be safe", .0.display())]
    NetworkFolder(PathBuf),
    /// Another engine holds it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The journal cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// What arrives at the engine.
pub(crate) enum Mail {
    /// News of a task.
    News(TaskId, Box<News>),
    /// A fact about the engine that a performing thread has found.
    Fact(EngineEvent),
    /// A person asks.
    Ask(Ask, Sender<Answer>),
    /// The model has answered an agent of this task: its account can be worked on.
    Answered(TaskId),
    /// Publishing is over for now.
    PublishOver,
    /// A workspace was given up, or could not be: whoever waits for the end of that looks again.
    Tidied,
    /// Finish what is under way, then stop.
    Drain,
    /// Stop now.
    StopNow,
}

/// What a person can ask of the engine.
#[derive(Debug, Clone)]
pub enum Ask {
    /// Add these, all or none.
    Add(Vec<NewTask>),
    /// Change the words of a task.
    Edit(TaskId, Box<TaskSpec>),
    /// Tell a task something.
    Tell(Vec<TaskId>, Box<News>),
    /// Undo a landed task by a task that reverts it.
    Rollback(TaskId),
    /// Stop the run after the iterations under way, or now.
    StopRun {
        /// Now.
        now: bool,
    },
}

/// A task to add. Others of the same request are named by their place in it.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// Its words.
    pub spec: TaskSpec,
    /// Needs within the request, from 0.
    pub needs_here: Vec<usize>,
    /// The parent within the request, from 0.
    pub parent_here: Option<usize>,
}

/// What came of it.
#[derive(Debug, Clone)]
pub enum Reply {
    /// These tasks are as they are now.
    Tasks(Vec<Arc<Task>>),
    /// A run was told to stop.
    Stopping {
        /// How many agents are at work.
        agents: usize,
    },
}

/// What a person is told.
pub(crate) type Answer = Result<Reply, AskError>;

/// Why nothing was changed.
#[derive(Debug, Clone, Error)]
pub enum AskError {
    /// No such task.
    #[error("there is no task {0}")]
    UnknownTask(TaskId),
    /// No such flow.
    #[error("there is no flow `{name}`; known: {known}")]
    UnknownFlow {
        /// The name.
        name: String,
        /// Those there are.
        known: String,
    },
    /// No such agent profile.
    #[error("there is no agent profile `{name}`; known: {known}")]
    UnknownAgent {
        /// The name.
        name: String,
        /// Those there are.
        known: String,
    },
    /// The needs go round in a circle.
    #[error("the needs would go round in a circle: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" → "))]
    Cycle(Vec<TaskId>),
    /// The words are not within bounds.
    #[error(transparent)]
    Spec(#[from] landfall_model::SpecError),
    /// The model refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Only a landed task can be rolled back.
    #[error("{0} has not landed; there is nothing to roll back")]
    NotLanded(TaskId),
    /// No run is under way.
    #[error("no run is under way")]
    NoRun,
    /// Something on this machine failed.
    #[error("{0}")]
    Machine(String),
    /// The engine is gone.
    #[error("the engine has ended")]
    Gone,
}

/// An opened project: the lock is held, the journal is read.
pub struct Engine {
    site: Arc<Site>,
    journal: Sqlite,
    world: World,
    flows: BTreeMap<String, Arc<Flow>>,
    run: Option<RunId>,
    last_run: u32,
    mail: Receiver<Mail>,
    drive: Drive,
    limits: Limits,
    /// A landing that did not check out: nothing more is landed or published until a person has looked.
    mismatch: Option<TaskId>,
    /// The run was stopped because the disk was full.
    full: bool,
    /// Why no agent is started: too little room on the disk.
    low_disk: Option<String>,
    turn: Turn,
    _lock: StateLock,
}

/// What one turn of the loop has gathered.
#[derive(Default)]
struct Turn {
    entries: Vec<Entry>,
    touched: BTreeMap<TaskId, Arc<Task>>,
    effects: Vec<Effect>,
    replies: Vec<(Sender<Answer>, Answer)>,
    landed: bool,
    base_moved: bool,
}

/// Leave to ask a running engine.
#[derive(Clone)]
pub struct Handle {
    mail: Sender<Mail>,
}

impl Handle {
    /// Asks, and waits for the answer: it is given only after the facts are on disk.
    ///
    /// # Errors
    /// Why nothing was changed.
    pub fn ask(&self, ask: Ask) -> Result<Reply, AskError> {
        let (send, receive) = mpsc::channel();
        self.mail.send(Mail::Ask(ask, send)).map_err(|_| AskError::Gone)?;
        receive.recv().map_err(|_| AskError::Gone)?
    }

    /// Finishes the iterations under way, then stops.
    pub fn drain(&self) {
        drop(self.mail.send(Mail::Drain)); // it has ended already
    }

    /// Stops now; nothing is lost.
    pub fn stop_now(&self) {
        drop(self.mail.send(Mail::StopNow)); // it has ended already
    }
}

/// What a run may use.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Agents at once; settings say otherwise.
    pub slots: Option<u32>,
    /// Only these tasks; empty means all.
    pub only: Vec<TaskId>,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct RunOutcome {
    /// Which.
    pub run: RunId,
    /// Why.
    pub why: RunEnd,
    /// Tasks it touched, as they are now.
    pub tasks: Vec<Arc<Task>>,
    /// Why landed work is not in the person's repository, if it is not.
    pub held: Option<String>,
}

/// A run under way in a thread of its own.
pub struct Running {
    handle: Handle,
    site: Arc<Site>,
    thread: Option<JoinHandle<Result<RunOutcome, StoreError>>>,
    done: Receiver<()>,
}

impl Running {
    /// Leave to ask it.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// What a person sees of it.
    #[must_use]
    pub fn view(&self) -> View {
        self.site.view.lock().expect("no thread panics while it holds the view").clone()
    }

    /// Waits for its end, at most so long.
    ///
    /// # Errors
    /// When the journal could not be written; what was acknowledged is safe, agents go on and are adopted next time.
    pub fn wait(&mut self, timeout: Duration) -> Option<Result<RunOutcome, StoreError>> {
        match self.done.recv_timeout(timeout) {
            Err(RecvTimeoutError::Timeout) => None,
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {
                let thread = self.thread.take()?;
                match thread.join() {
                    Ok(outcome) => Some(outcome),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        }
    }
}

impl Engine {
    /// Opens the project that holds `path`, exclusively, and reads its journal.
    ///
    /// # Errors
    /// What is in the way. Nothing was changed.
    pub fn open(path: &Path, options: &Options) -> Result<Self, OpenError> {
        let git = Git::find()?;
        let repo = Repo::discover(&git, path)?;
        let settings = load_settings(repo.root())?;
        let branch = base_branch(&repo, &settings)?;
        let folder = options.folder(repo.root()).ok_or(OpenError::NoHome)?;
        let in_folder = |source| OpenError::Folder { path: folder.root().to_owned(), source };
        folder.make().map_err(in_folder)?;
        if landfall_host::disk::is_network_fs(folder.root()).map_err(in_folder)? {
            return Err(OpenError::NetworkFolder(folder.root().to_owned()));
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let lock =
            StateLock::acquire(folder.root(), &Holder::this_process(&options.command, clock.now_ms()))?;

        let overrides = repo.root().join(".landfall");
        let loaded = flows::load(Some(&overrides.join("flows")));
        if !loaded.errors.is_empty() {
            return Err(OpenError::Flows(loaded.errors));
        }
        let flows = loaded.flows;
        if !flows.contains_key(&settings.project.flow) {
            let known = flows.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(OpenError::NoFlow { name: settings.project.flow.clone(), known });
        }
        let prompts = Prompts::load(Some(&overrides.join("prompts")))?;

        let (journal, _) = Sqlite::open(&folder.journal(), landfall_store::Options::default())?;
        let store = Store::open(&git, &folder.store(), &repo)?;
        store.heal_locks()?;
        let pool = Pool::open(&store, &folder.workspaces())?;

        let (mail_to, mail) = mpsc::channel();
        let limits = Limits {
            slots: settings.run.slots,
            lanes: settings.run.lanes,
            now: Timestamp(clock.now_ms()),
            spent: None,
        };
        let lanes = (0..=usize::try_from(settings.run.lanes).expect("at most 16")).rev().collect();
        let env = crate::launch::safe_environment(&options.environment, &settings.run.env);
        let site = Arc::new(Site {
            folder,
            repo,
            branch,
            store,
            pool,
            settings,
            prompts,
            clock,
            program: options.program.clone(),
            env,
            environment: options.environment.clone(),
            meter: Mutex::default(),
            mail: mail_to,
            passes: Mutex::default(),
            baseline: Mutex::new(HashMap::new()),
            sections: Mutex::default(),
            bases: Mutex::default(),
            lanes: Mutex::new(lanes),
            lane_free: std::sync::Condvar::new(),
            stops: Mutex::default(),
            view: Mutex::new(View::default()),
            checking: Mutex::default(),
            interrupted: std::sync::atomic::AtomicBool::new(false),
            tidying: std::sync::atomic::AtomicUsize::new(0),
            landing: Mutex::new(()),
            syncing: Mutex::new(()),
        });
        let mut engine = Self {
            world: World::new(flows.clone(), &site.settings.project.flow),
            site,
            journal,
            flows,
            run: None,
            last_run: 0,
            mail,
            drive: Drive::Running,
            limits,
            mismatch: None,
            full: false,
            low_disk: None,
            turn: Turn::default(),
            _lock: lock,
        };
        engine.world.set_routes(routes(&engine.site.settings));
        engine.replay()?;
        Ok(engine)
    }

    /// The place of work, for readers.
    #[must_use]
    pub fn site(&self) -> &Arc<Site> {
        &self.site
    }

    /// The tasks as they are.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Folds the journal.
    fn replay(&mut self) -> Result<(), OpenError> {
        // Held as the world holds them, so that each makes room for one of the same size: a large backlog is there once.
        let mut tasks: BTreeMap<TaskId, Arc<Task>> = BTreeMap::new();
        let mut facts = Vec::new();
        let journal = self.journal.clone();
        journal.replay(landfall_store::Seq::FIRST, &mut |_, entry| {
            match entry.fact {
                Fact::Task(id, event) => {
                    self.note_spending(entry.at, &event);
                    let before = tasks.remove(&id).map(Arc::unwrap_or_clone);
                    match landfall_model::apply(before, id, entry.at, &event) {
                        Ok(task) => {
                            self.note_pass(&event);
                            tasks.insert(id, Arc::new(task));
                        }
                        Err(illegal) => return Err(illegal.into()),
                    }
                }
                Fact::Engine(event) => facts.push(event),
            }
            Ok(())
        })?;
        for event in &facts {
            self.note(event);
        }
        for task in tasks.into_values() {
            if is_mismatch(&task) {
                self.mismatch = Some(task.id);
            }
            if let Some(gate) = task.gate.as_ref().filter(|gate| gate.outcome().is_green()) {
                self.site.trust(&gate.commit); // it may have landed just before the engine ended
            }
            self.world.put(Arc::unwrap_or_clone(task));
        }
        Ok(())
    }

    /// Remembers a tree that passed, so that it need not be verified again.
    fn note_pass(&self, event: &Event) {
        let Event::Verified { report, .. } = event else { return };
        self.note_report(report);
    }

    /// Counts what a run of an agent has spent.
    fn note_spending(&self, at: Timestamp, event: &Event) {
        if let Event::IterationEnded { usage, took_ms, .. } = event {
            self.meter().ledger.note(at, Spending { usage: *usage, time_ms: *took_ms });
        }
    }

    fn meter(&self) -> std::sync::MutexGuard<'_, Meter> {
        self.site.meter.lock().expect("no thread panics while it holds the meter")
    }

    fn spent(&self) -> Option<Spent> {
        self.meter().spent(&self.site.settings.purse, self.site.now())
    }

    fn note_report(&self, report: &landfall_model::gate::GateReport) {
        if report.outcome().is_green() && !report.is_empty() {
            self.site.passes.lock().expect("no thread panics while it holds the passes").note(report);
        }
    }

    /// What a fact about the engine means.
    fn note(&mut self, event: &EngineEvent) {
        match event {
            EngineEvent::RunStarted { run, .. } => {
                self.meter().ledger.run_started();
                self.run = Some(*run);
                self.last_run = self.last_run.max(run.0);
            }
            EngineEvent::RunEnded { .. } => self.run = None,
            EngineEvent::BaseMoved { to, .. } => self.site.trust(to),
            EngineEvent::Account { account, state } => self.world.set_account(account, state.clone()),
            EngineEvent::Measured { report } => self.note_report(report),
            EngineEvent::Started { .. } | EngineEvent::Published { .. } | EngineEvent::PublishHeld { .. } => {
            }
        }
    }

    fn fact(&mut self, event: EngineEvent) {
        self.note(&event);
        self.turn.entries.push(Entry { at: self.site.now(), fact: Fact::Engine(event) });
    }

    /// One request, without a run: the facts are written and nothing is left running but what already ran.
    ///
    /// # Errors
    /// Why nothing was changed, or that the journal could not be written.
    pub fn once(&mut self, ask: Ask) -> Result<Result<Reply, AskError>, StoreError> {
        if matches!(ask, Ask::StopRun { .. }) {
            return Ok(Err(AskError::NoRun));
        }
        let (send, receive) = mpsc::channel();
        self.hear_ask(ask, send);
        let effects = self.commit_turn()?;
        for effect in effects {
            if let Effect::Kill { task, attempt, stop } = &effect {
                perform::kill(&self.site, *task, *attempt, stop);
            }
            // The rest is expected by the journal and performed by the next run.
        }
        Ok(receive.recv().expect("answered by the turn"))
    }

    /// Drives the backlog in a thread of its own until nothing is left to do.
    #[must_use]
    pub fn run(mut self, options: RunOptions) -> Running {
        let handle = Handle { mail: self.site.mail.clone() };
        let site = self.site.clone();
        let (done_to, done) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || {
                let outcome = self.drive(&options);
                drop(done_to);
                outcome
            })
            .expect("one more thread can be had");
        Running { handle, site, thread: Some(thread), done }
    }

    fn drive(&mut self, options: &RunOptions) -> Result<RunOutcome, StoreError> {
        if let Some(slots) = options.slots {
            self.limits.slots = slots;
        }
        if !options.only.is_empty() {
            self.world.set_only(Some(options.only.iter().copied().collect()));
        }
        self.fact(EngineEvent::Started { version: env!("CARGO_PKG_VERSION").to_owned() });
        if let Some(run) = self.run {
            self.fact(EngineEvent::RunEnded { run, why: RunEnd::Lost });
        }
        let run = RunId(self.last_run + 1);
        self.fact(EngineEvent::RunStarted { run, slots: self.limits.slots, only: options.only.clone() });
        self.commit_turn()?;

        recover::clear_lanes(&self.site);
        let follower = Follower::start(self.site.clone());
        let mut publishing = publish::Publisher::new(self.site.clone());
        if self.mismatch.is_none() {
            publishing.ask(); // what an earlier run could not publish, or a person's commits to take in
        }
        let mut touched: BTreeSet<TaskId> = BTreeSet::new();
        for effect in recover::expected(&self.world) {
            if self.mismatch.is_some() && matches!(effect, Effect::Land { .. }) {
                continue; // nothing lands until a person has looked
            }
            touched.insert(effect.task());
            perform::perform(&self.site, &follower, self.task(effect.task()), effect);
        }

        let mut why = RunEnd::NothingLeft;
        loop {
            if self.mismatch.is_some() {
                self.drive = Drive::Draining;
                publishing.hold();
            }
            if std::mem::take(&mut self.turn.base_moved) {
                self.base_advanced();
            }
            self.grant(run);
            touched.extend(self.turn.touched.keys());
            let landed = self.turn.landed;
            let effects = self.commit_turn()?;
            for effect in effects {
                perform::perform(&self.site, &follower, self.task(effect.task()), effect);
            }
            if landed {
                publishing.ask();
            }
            if self.idle() && !publishing.busy() && !publishing.wanted() {
                break;
            }
            let publish_in = publishing.pause().filter(|pause| !pause.is_zero() && !self.idle());
            if publish_in.is_none() {
                publishing.go();
            }
            if self.disk_is_full() && !self.site.interrupted.load(Ordering::SeqCst) {
                self.full = true;
                self.stop(true, &mut why);
                continue;
            }
            let first = self.next_mail(publish_in); // none: it is time for whatever is due
            for mail in first.into_iter().chain(self.mail.try_iter().take(TURN_MAX).collect::<Vec<_>>()) {
                match mail {
                    Mail::News(task, news) => self.hear(task, &news),
                    Mail::Fact(event) => {
                        let moved = matches!(event, EngineEvent::BaseMoved { .. });
                        self.fact(event);
                        self.turn.base_moved |= moved;
                    }
                    Mail::Ask(Ask::StopRun { now }, reply) => {
                        let agents = self.world.holding(Standing::Slot);
                        self.stop(now, &mut why);
                        self.turn.replies.push((reply, Ok(Reply::Stopping { agents })));
                    }
                    Mail::Ask(ask, reply) => self.hear_ask(ask, reply),
                    Mail::Answered(task) => self.answered(task),
                    Mail::PublishOver => publishing.over(),
                    Mail::Tidied => {}
                    Mail::Drain => self.stop(false, &mut why),
                    Mail::StopNow => self.stop(true, &mut why),
                }
            }
            self.due();
        }
        follower.end();
        if why == RunEnd::NothingLeft && self.world.waiting_for(Standing::Slot) > 0 && self.spent().is_some()
        {
            why = RunEnd::Spent;
        }
        self.fact(EngineEvent::RunEnded { run, why });
        self.commit_turn()?;
        let tasks = touched.iter().filter_map(|id| self.world.get(*id)).cloned().collect();
        let held = match self.mismatch {
            None if self.full => Some(
                "the disk has less room than `disk.stop` wants, so the agents were stopped; their work is kept"
                    .to_owned(),
            ),
            Some(task) => Some(format!(
                "the landing of {task} did not check out afterwards, so nothing more is landed or published; \
                 `landfall why {task}` says what was seen"
            )),
            None => publishing.held(),
        };
        Ok(RunOutcome { run, why, tasks, held })
    }

    /// Tells the engine to begin nothing new, and, if `now`, the agents to end.
    fn stop(&mut self, now: bool, why: &mut RunEnd) {
        self.drive = Drive::Draining;
        *why = if now { RunEnd::Interrupted } else { RunEnd::Drained };
        self.site.view.lock().expect("no thread panics while it holds the view").stopping = true;
        if now {
            let running: Vec<TaskId> = self.world.active().map(|task| task.id).collect();
            for task in running {
                self.hear(task, &News::Interrupt);
            }
            gate::interrupt(&self.site);
        }
    }

    fn task(&self, id: TaskId) -> Arc<Task> {
        self.world.get(id).expect("an effect is of a task that exists").clone()
    }

    /// Whether nothing is under way and nothing will begin by itself.
    fn idle(&self) -> bool {
        // A check that was interrupted is not waited for: the journal expects it, and the next run does it again.
        let interrupted = self.site.interrupted.load(Ordering::SeqCst);
        let counts = |task: &&Arc<Task>| {
            !interrupted || !matches!(task.state, State::Active { doing: Doing::Checking { .. }, .. })
        };
        let under_way = self.world.active().any(|task| counts(&task));
        let now = self.site.now();
        // What only waits for tomorrow's budget, or for an account to open, is waited for.
        let opens = self.world.next_opening(now).is_some()
            || (self.world.waiting_for(Standing::Slot) > 0
                && self.spent().is_some_and(|spent| spent.until.is_some()));
        let waits = self.drive == Drive::Running
            && (self.world.next_due().is_some() || self.low_disk.is_some() || opens);
        !under_way && !waits && !perform::tidying(&self.site)
    }

    /// The next news; none when it is time for something else, at the latest after `most`.
    fn next_mail(&self, most: Option<Duration>) -> Option<Mail> {
        let pause = match self.world.next_due() {
            Some((due, _)) if self.drive == Drive::Running => {
                let ms = u64::try_from(due.0 - self.site.now().0).unwrap_or(0);
                Duration::from_millis(ms.clamp(1, 60_000))
            }
            _ => Duration::from_secs(60),
        };
        let pause = match self.world.next_opening(self.site.now()) {
            Some(at) => {
                let ms = u64::try_from(at.0 - self.site.now().0).unwrap_or(0);
                pause.min(Duration::from_millis(ms.clamp(1, 60_000)))
            }
            None => pause,
        };
        let pause = if self.low_disk.is_some() { pause.min(DISK_PAUSE) } else { pause };
        let pause = if self.world.active().next().is_some() { pause.min(DISK_LOOK) } else { pause };
        let pause = most.map_or(pause, |most| pause.min(most));
        self.mail.recv_timeout(pause).ok()
    }

    /// Grants what is free to whoever stands first in line.
    fn grant(&mut self, run: RunId) {
        let mut refused = 0;
        while self.drive == Drive::Running
            && refused < REFUSALS_MAX
            && let Some(id) = self.world.rescued(self.site.now())
        {
            self.hear(id, &News::RouteOpened);
            refused += 1; // the next turn takes the others
        }
        let mut refused = 0;
        let limits = self.limits_now();
        while self.drive == Drive::Running
            && refused < REFUSALS_MAX
            && let Some(Grant { task: id, profile, .. }) = plan(&self.world, &self.paced(&limits))
        {
            let task = self.task(id);
            let Some(flow) = self.world.flow_of(&task) else { break };
            let (limits, driving) = (self.task_limits(), self.driving(&profile));
            let before = self.turn.entries.len();
            self.hear(id, &News::Granted { run, flow, limits, driving });
            if self.turn.entries.len() == before {
                refused += 1; // a bug in the model; the line must not spin on it
            }
        }
    }

    fn driving(&self, profile: &str) -> Driving {
        let style = self.site.settings.agents.get(profile).map_or(Style::Fresh, |profile| profile.style);
        let account = self.world.account_of(profile).to_owned();
        Driving { profile: profile.to_owned(), account, style }
    }

    /// The limits, without slots while as much work waits to be verified or landed as agents may be at work. Agents
    /// that run further ahead land nothing sooner: their workspaces pile up and their bases grow old.
    fn paced(&self, limits: &Limits) -> Limits {
        let queued = self.world.waiting_for(Standing::Lane) + self.world.waiting_for(Standing::Landing);
        match u32::try_from(queued).unwrap_or(u32::MAX) >= limits.slots {
            true => Limits { slots: 0, ..limits.clone() },
            false => limits.clone(),
        }
    }

    /// The limits, without slots while the disk has too little room.
    fn limits_now(&mut self) -> Limits {
        let free = self.free_bytes();
        let wanted = self.site.settings.disk.pause_bytes;
        self.low_disk = (free < wanted && self.world.waiting_for(Standing::Slot) > 0)
            .then(|| format!("{} MB are free, {} MB are wanted", free / 1_000_000, wanted / 1_000_000));
        self.site
            .view
            .lock()
            .expect("no thread panics while it holds the view")
            .low_disk
            .clone_from(&self.low_disk);
        let spent = self.spent();
        let shut = self.world.accounts().shut().map(|(name, state)| (name.clone(), state.clone())).collect();
        {
            let mut view = self.site.view.lock().expect("no thread panics while it holds the view");
            view.spent.clone_from(&spent);
            view.shut = shut;
        }
        let limits = Limits { now: self.site.now(), spent, ..self.limits.clone() };
        match self.low_disk {
            Some(_) => Limits { slots: 0, ..limits },
            None => limits,
        }
    }

    /// Room on the fuller of the two disks that agents can fill: that of the state, and that of temporary files.
    fn free_bytes(&self) -> u64 {
        let places = [self.site.folder.root().to_owned(), std::env::temp_dir()];
        places
            .iter()
            .filter_map(|place| landfall_host::disk::free_bytes(place).ok())
            .min()
            .unwrap_or(u64::MAX)
    }

    /// Whether there is so little room that agents at work must end before they lose what they write.
    fn disk_is_full(&self) -> bool {
        let free = self.free_bytes();
        free < self.site.settings.disk.stop_bytes && self.world.active().next().is_some()
    }

    fn task_limits(&self) -> TaskLimits {
        let run = &self.site.settings.run;
        TaskLimits {
            iterations_max: run.iterations_max,
            task_ms: run.task_limit_ms,
            stuck_after: run.stuck_after,
            restarts_max: run.restarts_max,
            stalls_step_max: run.stalls_step_max,
            stalls_total_max: run.stalls_total_max,
            transients_max: run.transients_max,
            compact_percent: run.compact_percent,
            attempt_budget: self.site.settings.attempt_budget,
            task_budget: self.site.settings.task_budget,
            ..TaskLimits::default()
        }
    }

    fn input(&self, news: &News) -> Input {
        Input { at: self.site.now(), drive: self.drive, spent: self.spent(), news: news.clone() }
    }

    /// Lets the model decide about news of a task and gathers what follows. Refused news is late news: normal.
    fn hear(&mut self, id: TaskId, news: &News) {
        match self.try_hear(id, news) {
            // Late or repeated news changes nothing, and nobody waits for an answer.
            Ok(_) | Err(Refusal::Stale { .. } | Refusal::NotNow { .. }) => {}
            Err(Refusal::Bug(illegal)) => panic!("the model decided what cannot follow: {illegal}"),
        }
    }

    fn try_hear(&mut self, id: TaskId, news: &News) -> Result<Arc<Task>, Refusal> {
        let Some(task) = self.world.get(id).cloned() else {
            let state = "unknown".to_owned();
            return Err(Refusal::NotNow { task: id, state, what: "there is no such task" });
        };
        // What the run has used counts from here on, also for whether the next one may begin.
        if let News::AgentEnded(run) = news {
            let spent = Spending { usage: run.usage, time_ms: run.took_ms };
            self.meter().live.insert(id, spent);
        }
        let input = self.input(news);
        let overruled = match news {
            News::Retry { .. } => self.world.accounts().overruled(&task, input.at),
            _ => None,
        };
        let (after, decision) = landfall_model::step(&task, &input)?;
        let mut before = (*task).clone();
        for event in decision.events {
            self.note_pass(&event);
            self.note_spending(input.at, &event);
            if let Event::IterationEnded { .. } = &event {
                self.meter().live.remove(&id);
            }
            if let Event::Landed { commit, base_before, .. } = &event {
                self.turn.landed = true;
                self.turn.base_moved = true;
                let moved = EngineEvent::BaseMoved {
                    from: Some(base_before.clone()),
                    to: commit.clone(),
                    by: Mover::Landing(id),
                };
                self.fact(moved);
            }
            let account = self.world.accounts().follows(&before, input.at, &event);
            let driving = before.driving.clone();
            before =
                landfall_model::apply(Some(before), id, input.at, &event).expect("it was decided just so");
            self.turn.entries.push(Entry { at: input.at, fact: Fact::Task(id, event) });
            if let (Some(state), Some(driving)) = (account, driving) {
                self.fact(EngineEvent::Account { account: driving.account, state });
            }
        }
        if let Some((account, state)) = overruled {
            self.fact(EngineEvent::Account { account, state });
        }
        self.turn.effects.extend(decision.effects);
        if is_mismatch(&after) {
            self.mismatch = Some(id);
        }
        self.world.put(after);
        let after = self.task(id);
        self.turn.touched.insert(id, after.clone());
        if let News::AgentEnded(run) = news {
            self.follow_ups(id, input.at, &run.seen);
        }
        Ok(after)
    }

    /// The model answered an agent: whoever waited for its account to be tried may go on.
    fn answered(&mut self, id: TaskId) {
        let Some(driving) = self.world.get(id).and_then(|task| task.driving.clone()) else { return };
        if let Some(state) = self.world.accounts().answered(&driving.account, self.site.now()) {
            self.fact(EngineEvent::Account { account: driving.account, state });
        }
    }

    /// Tasks an agent wants to be thought of are drafts: only a person lets them start.
    fn follow_ups(&mut self, id: TaskId, at: Timestamp, seen: &[Signal]) {
        const MAX: usize = 10; // an agent that files more is not helping
        let wanted = seen.iter().filter_map(|signal| match signal {
            Signal::Said(Said::FollowUp(text)) => Some(text),
            _ => None,
        });
        for text in wanted.take(MAX) {
            let (title, body) = text.split_once('\n').unwrap_or((text, ""));
            let Ok(mut spec) = TaskSpec::new(title.trim()) else { continue };
            spec.body = body.trim().to_owned();
            spec.source = format!("follow-up:{id}");
            spec.draft = true;
            let known = |task: &Arc<Task>| task.spec.source == spec.source && task.spec.title == spec.title;
            if spec.check().is_ok() && !self.world.tasks().any(known) {
                self.born(self.world.next_id(), spec, at);
            }
        }
    }

    /// A gate that was broken may be whole on the new base.
    fn base_advanced(&mut self) {
        for id in self.world.gate_waits() {
            self.hear(id, &News::BaseAdvanced);
        }
    }

    fn due(&mut self) {
        if self.drive == Drive::Draining {
            return;
        }
        let now = self.site.now();
        while let Some((at, id)) = self.world.next_due()
            && at <= now
        {
            let before = self.turn.entries.len();
            self.hear(id, &News::Due);
            if self.turn.entries.len() == before {
                break; // refused: a bug in the model; the next turn tries again
            }
        }
    }

    /// Writes what the turn has gathered, answers whoever asked, and gives the effects to perform.
    fn commit_turn(&mut self) -> Result<Vec<Effect>, StoreError> {
        let turn = std::mem::take(&mut self.turn);
        if !turn.entries.is_empty() {
            crash::point("journal.append.before");
            let tasks = turn.touched.into_values().collect();
            self.journal.append(Batch { entries: turn.entries, tasks })?;
            crash::point("journal.append.after");
        }
        for (to, reply) in turn.replies {
            drop(to.send(reply)); // the asker has left, nobody to tell
        }
        Ok(turn.effects)
    }

    fn hear_ask(&mut self, ask: Ask, reply: Sender<Answer>) {
        let answer = match ask {
            Ask::Add(tasks) => self.add(tasks),
            Ask::Edit(id, spec) => self.edit(id, *spec),
            Ask::Tell(tasks, news) => self.tell_all(&tasks, &news),
            Ask::Rollback(id) => self.rollback(id),
            Ask::StopRun { .. } => Err(AskError::NoRun),
        };
        self.turn.replies.push((reply, answer));
    }

    fn tell_all(&mut self, tasks: &[TaskId], news: &News) -> Result<Reply, AskError> {
        // All or none: refusals are found before anything is changed.
        for id in tasks {
            let task = self.world.get(*id).ok_or(AskError::UnknownTask(*id))?;
            landfall_model::step(task, &self.input(news))?;
        }
        let mut changed = Vec::new();
        for id in tasks {
            changed.push(self.try_hear(*id, news)?);
        }
        Ok(Reply::Tasks(changed))
    }

    fn check_words(&self, spec: &TaskSpec) -> Result<(), AskError> {
        spec.check()?;
        if let Some(name) = &spec.flow
            && !self.flows.contains_key(name)
        {
            let known = self.flows.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(AskError::UnknownFlow { name: name.clone(), known });
        }
        if let Some(name) = &spec.agent
            && !self.site.settings.agents.contains_key(name)
        {
            let known = self.site.settings.agents.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(AskError::UnknownAgent { name: name.clone(), known });
        }
        Ok(())
    }

    fn add(&mut self, tasks: Vec<NewTask>) -> Result<Reply, AskError> {
        let first = self.world.next_id().0;
        let id_of =
            |place: usize| TaskId(first + u32::try_from(place).expect("fewer than four thousand million"));
        let mut specs: Vec<(TaskId, TaskSpec)> = Vec::new();
        for (place, new) in tasks.into_iter().enumerate() {
            let mut spec = new.spec;
            spec.needs.extend(new.needs_here.iter().map(|place| id_of(*place)));
            spec.parent = spec.parent.or(new.parent_here.map(id_of));
            self.check_words(&spec)?;
            specs.push((id_of(place), spec));
        }
        let among: BTreeMap<TaskId, &TaskSpec> = specs.iter().map(|(id, spec)| (*id, spec)).collect();
        for (id, spec) in &specs {
            for need in spec.needs.iter().chain(&spec.parent) {
                if self.world.get(*need).is_none() && !among.contains_key(need) {
                    return Err(AskError::UnknownTask(*need));
                }
            }
            let needs_of = |of: TaskId| match (among.get(&of), self.world.get(of)) {
                (Some(spec), _) => spec.needs.iter().copied().collect(),
                (None, Some(task)) => task.spec.needs.iter().copied().collect(),
                (None, None) => Vec::new(),
            };
            if let Some(cycle) = graph::cycle(*id, &spec.needs, &needs_of) {
                return Err(AskError::Cycle(cycle));
            }
        }
        let at = self.site.now();
        let mut added = Vec::new();
        for (id, spec) in specs {
            added.push(self.born(id, spec, at));
        }
        Ok(Reply::Tasks(added))
    }

    fn born(&mut self, id: TaskId, spec: TaskSpec, at: Timestamp) -> Arc<Task> {
        self.world.put(Task::added(id, spec.clone(), at));
        let task = self.task(id);
        self.turn.entries.push(Entry { at, fact: Fact::Task(id, Event::Added { spec }) });
        self.turn.touched.insert(id, task.clone());
        task
    }

    fn edit(&mut self, id: TaskId, spec: TaskSpec) -> Result<Reply, AskError> {
        let task = self.world.get(id).ok_or(AskError::UnknownTask(id))?;
        if spec.flow != task.spec.flow || spec.agent != task.spec.agent {
            self.check_words(&spec)?;
        }
        spec.check()?;
        for need in spec.needs.iter().chain(&spec.parent) {
            if self.world.get(*need).is_none() {
                return Err(AskError::UnknownTask(*need));
            }
        }
        let needs_of = |of: TaskId| {
            self.world.get(of).map(|task| task.spec.needs.iter().copied().collect()).unwrap_or_default()
        };
        if let Some(cycle) = graph::cycle(id, &spec.needs, &needs_of) {
            return Err(AskError::Cycle(cycle));
        }
        let after = self.try_hear(id, &News::Edit { spec })?;
        Ok(Reply::Tasks(vec![after]))
    }

    /// A new task whose work is the revert of a landed one; it is verified and landed like any other.
    fn rollback(&mut self, id: TaskId) -> Result<Reply, AskError> {
        let task = self.world.get(id).ok_or(AskError::UnknownTask(id))?.clone();
        let Some(landed) = &task.landed else { return Err(AskError::NotLanded(id)) };
        let new = self.world.next_id();
        let head = crate::land::revert(&self.site, &task, landed, new)
            .map_err(|error| AskError::Machine(error.full()))?;
        let mut spec = TaskSpec::new(&format!("Roll back {id}: {}", task.spec.title))?;
        spec.source = format!("rollback:{id}");
        spec.flow = Some("rollback".to_owned());
        spec.priority = 0;
        let at = self.site.now();
        self.born(new, spec, at);
        let event = Event::Offered { head };
        let after = landfall_model::apply(Some((*self.task(new)).clone()), new, at, &event)
            .expect("a new task can be offered work");
        self.world.put(after);
        self.turn.entries.push(Entry { at, fact: Fact::Task(new, event) });
        let after = self.task(new);
        self.turn.touched.insert(new, after.clone());
        Ok(Reply::Tasks(vec![after]))
    }
}

/// Where the profiles of a project lead.
pub fn routes(settings: &Settings) -> BTreeMap<String, Route> {
    let route = |(name, profile): (&String, &crate::settings::Profile)| {
        let route = Route { account: profile.account.clone(), failover: profile.failover.clone() };
        (name.clone(), route)
    };
    settings.agents.iter().map(route).collect()
}

fn is_mismatch(task: &Task) -> bool {
    matches!(&task.state, State::Ended(Ending { code: EndCode::LandingMismatch, .. }))
}

const TURN_MAX: usize = 256; // news of one turn: one fsync for all of it, and replies do not wait for ever
const REFUSALS_MAX: u32 = 8;
const DISK_LOOK: Duration = Duration::from_secs(5); // how long agents may write before the disk is looked at
const DISK_PAUSE: Duration = Duration::from_secs(2); // how soon freed room is noticed

/// The settings of the project at `root`; none are as good as empty ones.
///
/// # Errors
/// What is wrong with them, and where.
pub fn load_settings(root: &Path) -> Result<Settings, OpenError> {
    let path = root.join("landfall.toml");
    match std::fs::read(&path) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            Ok(Settings::parse(&text, "landfall.toml")?)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Settings::defaults()),
        Err(source) => Err(OpenError::Folder { path, source }),
    }
}

fn base_branch(repo: &Repo, settings: &Settings) -> Result<BranchName, OpenError> {
    let head = repo.head()?;
    if let Some(name) = &settings.project.base {
        let branch: BranchName = name.parse().map_err(|_| OpenError::NoBranch(name.clone()))?;
        return match (repo.branch_tip(&branch)?, head) {
            (Some(_), _) => Ok(branch),
            (None, Head::Unborn { branch: unborn }) if unborn.as_str() == name => {
                Err(OpenError::Unborn(name.clone()))
            }
            (None, _) => Err(OpenError::NoBranch(name.clone())),
        };
    }
    match head {
        Head::Branch { name, .. } => Ok(name),
        Head::Detached { .. } => Err(OpenError::Detached),
        Head::Unborn { branch } => Err(OpenError::Unborn(branch.as_str().to_owned())),
    }
}

/// The status of a task in this world, and what it waits for.
#[must_use]
pub fn standing(world: &World, limits: &Limits, task: &Task) -> (Status, Option<Wait>) {
    let unmet = world.unmet(task);
    let held = world.held(task.id, limits);
    let status = Status::among(task, &unmet, held.is_some());
    let wait = match (&task.state, status) {
        (State::Waiting { wait, .. }, _) => Some(wait.clone()),
        (_, Status::Waiting) if !unmet.is_empty() => Some(Wait::Dependency(unmet)),
        (_, Status::Waiting) => held,
        (_, _) => None,
    };
    (status, wait)
}

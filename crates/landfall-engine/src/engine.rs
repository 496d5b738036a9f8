//! The engine: one owner of the state, one loop.
//!
//! A turn of the loop takes all news that waits, lets the model decide, writes every fact in one append, and only
//! then performs. News comes back by the same channel. The decisions themselves are in `landfall-model`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use landfall_host::clock::{Clock, SystemClock};
use landfall_host::crash;
use landfall_host::git::{BranchName, CheckoutHead, Git, GitError, Repo, Store, WorkspacePool};
use landfall_host::lock::{LockHolder, StateLock};
use landfall_host::wait::FolderWatch;
use landfall_model::Feedback;
use landfall_model::checkpoint::{CheckpointEvent, CheckpointReason};
use landfall_model::course::{ShortageSpan, ShortageStopAction, decide_short_stop};
use landfall_model::disk::DiskLevel;
use landfall_model::journal_claim::JournalClaim;
use landfall_model::queue::{HoldReason, QueuePolicy};
use landfall_model::resource::MachineResource;
use landfall_model::{
    AgentDriveStyle, BaseMover, Commit, Effect, EngineEvent, GrantKind, News, ProfileRoute, QueueEffect,
    ReviewInput, RunEnd, RunId, ScheduleLimits, SprintId, Task, TaskId, TaskLimits, TaskSpec, Timestamp,
    World,
};
use landfall_store::{EntryBatch, Journal, ReplayStop, Sqlite, StoreError};

use crate::active_work::ActiveWork;
use crate::ask::{
    AskError, AskResult, EngineReply, EngineRequest, ImportedProgress, NewTaskSpec, RewrittenBaseChoice,
};
use crate::base_check::BaseChecker;
use crate::catalogue;
use crate::commit_message::commit_subject;
use crate::core::{Core, CoreEnvironment, CoreTurn, EnginePolicy, Replay, RunOptions};
use crate::disk::{DiskMonitor, DiskReport, INODES_WANTED};
use crate::engine_context::EngineContext;
use crate::exchange;
use crate::flows;
use crate::folder::StateFolder;
use crate::folders::{self, Folders};
use crate::follow::Follower;
use crate::gate;
use crate::herald::{Notifier, NotifierContext};
use crate::hook_scripts::HookTrust;
use crate::host_context::HostContext;
use crate::ids;
use crate::journal_link::{self, SetAsideError};
use crate::land;
use crate::lane_pool::LanePool;
use crate::live_view::LiveSnapshot;
use crate::logfile::LogFile;
use crate::mail::EngineMessage;
use crate::papers;
use crate::perform;
use crate::prompts::Prompts;
use crate::publish;
use crate::recover;
use crate::scout::OverlapWatcher;
use crate::settings::Settings;
use crate::shortage::{self, DiskReserve, Shortages};
use crate::spare::WarmWorkspaceMaker;
use crate::tracker::nudges;
use crate::trust::TrustStore;

pub use crate::open_error::OpenError;
pub use crate::settings_file::{load_settings, settings_in};

/// How an engine is opened.
pub struct EngineOptions {
    /// Our own executable.
    pub program: PathBuf,
    /// What was called, for whoever finds the folder locked.
    pub command: String,
    /// Every environment variable: some say where the state is, some are handed on to agents.
    pub environment: Vec<(OsString, OsString)>,
    /// The branch that work lands on, where that is not the one of the settings.
    pub base: Option<String>,
    /// The lock of the state folder, where this process holds it already.
    pub lock: Option<Arc<StateLock>>,
}

impl EngineOptions {
    /// Where the state of the project at `root` is.
    #[must_use]
    pub fn state_folder(&self, root: &Path) -> Option<StateFolder> {
        let variable =
            |name: &str| self.environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        let folder = StateFolder::for_project(root, &variable)?;
        Some(self.base.as_deref().map_or_else(|| folder.clone(), |base| folder.for_base(base)))
    }
}

/// An opened project: the lock is held, the journal is read.
pub struct Engine {
    core: Core,
    site: Arc<EngineContext>,
    journal: Sqlite,
    mail: Receiver<EngineMessage>,
    /// The run was stopped because the disk was full.
    full: bool,
    /// The room of the reserve was given back, because the journal could not be written.
    reserve_is_used: bool,
    stopping: RunStopState,
    replies: Vec<(Sender<AskResult>, AskResult)>,
    herald: Notifier,
    governor: DiskMonitor,
    folders: Folders,
    _lock: Arc<StateLock>,
}

/// What a run that was told to end has to know about that, by the clock that never goes back.
#[derive(Default)]
struct RunStopState {
    /// When it was told to end.
    told_ms: Option<u64>,
    /// When it was told to end at once.
    told_now_ms: Option<u64>,
    /// What this machine is out of, and since when.
    shortage: Option<ShortageSpan>,
    /// What was under way is left to the next run for want of this.
    left_for: Option<MachineResource>,
}

/// Leave to ask a running engine.
#[derive(Clone)]
pub struct EngineHandle {
    mail: Sender<EngineMessage>,
}

impl EngineHandle {
    /// Asks, and waits for the answer: it is given only after the facts are on disk.
    ///
    /// # Errors
    /// Why nothing was changed.
    pub fn send_request(&self, ask: EngineRequest) -> Result<EngineReply, AskError> {
        let (send, receive) = mpsc::channel();
        self.mail.send(EngineMessage::Ask(ask, send)).map_err(|_| AskError::Gone)?;
        receive.recv().map_err(|_| AskError::Gone)?
    }

    /// Finishes the iterations under way, then stops.
    pub fn request_drain(&self) {
        let _ = self.mail.send(EngineMessage::Drain); // it has ended already
    }

    /// Stops now; nothing is lost.
    pub fn request_stop_now(&self) {
        let _ = self.mail.send(EngineMessage::StopNow); // it has ended already
    }
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct EngineRunOutcome {
    /// Which.
    pub run: RunId,
    /// Why.
    pub why: RunEnd,
    /// Tasks it touched, as they are now.
    pub tasks: Vec<Arc<Task>>,
    /// Why landed work is not in the person's repository, if it is not.
    pub held: Option<String>,
    /// Why it ended before what was under way, if this machine was out of something.
    pub cut_off: Option<String>,
    /// Why the landing queue does not move, if it does not.
    pub queue_held: Option<String>,
    /// Why no agent could start on the base, if some wanted to.
    pub base_held: Option<String>,
    /// Why it was paused when it ended, if it was.
    pub paused: Option<String>,
    /// The latest sprint, if there was one.
    pub sprint: Option<SprintId>,
}

/// A run under way in a thread of its own.
pub struct RunThread {
    handle: EngineHandle,
    site: Arc<EngineContext>,
    thread: Option<JoinHandle<Result<EngineRunOutcome, StoreError>>>,
    done: Receiver<()>,
}

impl RunThread {
    /// Leave to ask it.
    #[must_use]
    pub fn handle(&self) -> EngineHandle {
        self.handle.clone()
    }

    /// What a person sees of it.
    #[must_use]
    pub fn current_view(&self) -> LiveSnapshot {
        self.site.live.lock().view.clone()
    }

    /// Waits for its end, at most so long.
    ///
    /// # Errors
    /// When the journal could not be written; what was acknowledged is safe, agents go on and are adopted next time.
    pub fn wait(&mut self, timeout: Duration) -> Option<Result<EngineRunOutcome, StoreError>> {
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
    pub fn open(path: &Path, options: &EngineOptions) -> Result<Self, OpenError> {
        let git = Git::find_installed()?;
        let repo = Repo::discover(&git, path)?;
        let settings = load_settings(repo.root())?.with_env_overrides(&|name| {
            let found = options.environment.iter().find(|(key, _)| key == name);
            found.map(|(_, value)| value.to_string_lossy().into_owned())
        })?;
        let branch = base_branch(&repo, options.base.as_ref().or(settings.project.base.as_ref()))?;
        let folder = options.state_folder(repo.root()).ok_or(OpenError::NoHome)?;
        let in_folder = |source| OpenError::Folder { path: folder.root().to_owned(), source };
        folder.create_folders().map_err(in_folder)?;
        if let Some(base) = &options.base {
            folder.note_base(base).map_err(in_folder)?;
        }
        if landfall_host::disk::is_network_fs(folder.root()).map_err(in_folder)? {
            return Err(OpenError::NetworkFolder(folder.root().to_owned()));
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let lock = match &options.lock {
            Some(lock) => Arc::clone(lock),
            None => {
                let me = LockHolder::this_process(&options.command, clock.now_ms());
                Arc::new(StateLock::acquire(folder.root(), &me)?)
            }
        };

        // Whatever command it is: the lock of a publishing that was cut off keeps the user's git commands from working.
        if Repo::shows_publishing_traces(repo.git_dir()) {
            let _ = repo.recover_publishing(); // tried again before the next publishing
        }
        let overrides = repo.root().join(".landfall");
        let loaded = flows::load_flows(Some(&overrides.join("flows")));
        if !loaded.errors.is_empty() {
            return Err(OpenError::Flows(loaded.errors));
        }
        let flows = loaded.flows;
        if !flows.contains_key(&settings.project.flow) {
            let known = flows.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(OpenError::NoFlow { name: settings.project.flow.clone(), known });
        }
        let prompts = Prompts::load_templates(Some(&overrides.join("prompts")))?;
        let catalogue = catalogue::load_catalogue(repo.root())?;

        let log = LogFile::at_path(folder.repairs_log());
        let tell = |about: &str, what: String| {
            log.append_line(&serde_json::json!({ "at_ms": clock.now_ms(), "about": about, "what": what }));
        };
        match journal_link::claim_journal(&folder) {
            JournalClaim::Open | JournalClaim::Adopt => {}
            JournalClaim::SetAside => {
                let to = journal_link::set_aside(&folder).map_err(in_folder)?;
                folder.create_folders().map_err(in_folder)?;
                let to = to.display();
                tell("journal", format!("missing or empty; what belonged to it is set aside in `{to}`"));
            }
            JournalClaim::SetRunsAside => {
                let to = journal_link::set_runs_aside(&folder).map_err(|error| match error {
                    SetAsideError::Io(error) => in_folder(error),
                    SetAsideError::Journal(error) => OpenError::from(error),
                })?;
                folder.create_folders().map_err(in_folder)?;
                let to = to.display();
                tell("journal", format!("an older copy; what runs left after it is set aside in `{to}`"));
            }
            JournalClaim::Refuse => return Err(OpenError::ForeignJournal(folder.journal_path())),
        }
        let (journal, opened) =
            Sqlite::open(&folder.journal_path(), landfall_store::JournalOptions::default())?;
        journal_link::write_id(folder.root(), &opened.id).map_err(in_folder)?;
        journal_link::note_head(&folder, opened.head);
        let store = Store::open(&git, &folder.store_path(), &repo)?;
        journal_link::write_id(store.dir(), &opened.id).map_err(in_folder)?;
        for repair in store.repairs() {
            tell("store", format!("repaired: {repair}"));
        }
        store.heal_locks()?;
        let pool = WorkspacePool::open_with_exclude(&store, &folder.workspaces_path(), &[papers::PATTERN])?;

        let (mail_to, mail) = mpsc::channel();
        let rules = rules_from_settings(&settings, Timestamp(clock.now_ms()));
        // One for every verification that may run, for each batch of the landing queue, and for a rebuild.
        let lanes = usize::try_from(settings.run.lanes).expect("at most 16") + 2 + rules.queue.speculate;
        let env = crate::environment::safe_environment(&options.environment, &settings.run.env);
        let shortages = Shortages::new(folder.root(), mail_to.clone());
        let site = Arc::new(EngineContext::new(HostContext {
            folder,
            repo,
            branch,
            store,
            pool,
            settings,
            prompts,
            journal_id: opened.id,
            end: journal.journal_end(),
            clock,
            program: options.program.clone(),
            env,
            environment: options.environment.clone(),
            catalogue,
            mail: mail_to,
            measured: Mutex::default(),
            lanes: LanePool::new(lanes),
            active: ActiveWork::default(),
            interrupted: Arc::default(),
            reading: Mutex::default(),
            ignores_case: OnceLock::new(),
            shortages,
        }));
        let mut engine = Self {
            core: Core::new(flows, &site.settings.project.flow, rules),
            site,
            journal,
            mail,
            full: false,
            reserve_is_used: false,
            stopping: RunStopState::default(),
            replies: Vec::new(),
            herald: Notifier::default(),
            governor: DiskMonitor::default(),
            folders: Folders::default(),
            _lock: lock,
        };
        engine.replay_journal()?;
        recover::restore_refs(&engine.site, &engine.core)?;
        DiskReserve::in_folder(engine.site.folder.root()).create_if_missing();
        Ok(engine)
    }

    /// The place of work, for readers.
    #[must_use]
    pub fn site(&self) -> &Arc<EngineContext> {
        &self.site
    }

    /// The whole state, for readers.
    #[must_use]
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// The tasks as they are.
    #[must_use]
    pub fn world(&self) -> &World {
        self.core.world()
    }

    /// Folds the journal.
    fn replay_journal(&mut self) -> Result<(), OpenError> {
        let mut replay = Replay::default();
        let journal = self.journal.clone();
        journal.replay(landfall_store::Seq::FIRST, &mut |_, entry| {
            self.core.replay_entry(&mut replay, &*self.site, entry).map_err(ReplayStop::from)
        })?;
        self.core.finish_replay(replay, &*self.site);
        Ok(())
    }

    /// One request, without a run: the facts are written and nothing is left running but what already ran.
    ///
    /// # Errors
    /// Why nothing was changed, or that the journal could not be written.
    pub fn handle_single_request(
        &mut self,
        ask: EngineRequest,
    ) -> Result<Result<EngineReply, AskError>, StoreError> {
        if matches!(
            ask,
            EngineRequest::StopRun { .. }
                | EngineRequest::Pause { .. }
                | EngineRequest::Resume
                | EngineRequest::Assign(_)
        ) {
            return Ok(Err(AskError::NoRun));
        }
        let (send, receive) = mpsc::channel();
        self.handle_request(ask, send);
        let turn = self.commit_turn()?;
        journal_link::note_head(&self.site.folder, self.site.end.head());
        for effect in turn.effects {
            if let Effect::Kill { task, attempt, stop } = &effect {
                perform::kill_agent(&self.site, &self.core.expect_task(*task), *attempt, stop);
            }
            // The rest is expected by the journal and performed by the next run.
        }
        land::keep_checkpoints(&self.site, &turn.checkpoints);
        self.show_folders(turn.touched.keys())?;
        Ok(receive.recv().expect("answered by the turn"))
    }

    /// Drives the backlog in a thread of its own until nothing is left to do.
    ///
    /// # Errors
    /// When the run cannot be what was asked for. Nothing was changed.
    pub fn run(mut self, options: RunOptions) -> Result<RunThread, AskError> {
        if options.sprint.is_some() {
            self.find_base()?; // a checkpoint is made before it
        }
        // What cannot be read looks like something that is gone, and a live agent must not lose its workspace over that.
        if let Some(resource) = self.site.shortages.missing_to_start() {
            return Err(AskError::Machine(shortage::too_few_to_start(resource)));
        }
        recover::look_for_oom_kills(&self.site);
        recover::end_stale_checks(&self.site);
        recover::repair_objects(&self.site).map_err(|error| AskError::Machine(error.full_message()))?;
        let _ = self.site.store.remove_quarantines(); // what stays takes room, and is tried again next time
        let rebuilt = recover::replace_untrusted_checkouts(&self.site, self.core.world().tasks())
            .map_err(AskError::Machine)?;
        let run = self.core.start_run(&*self.site, env!("CARGO_PKG_VERSION"), &options)?;
        let handle = EngineHandle { mail: self.site.mail.clone() };
        let site = self.site.clone();
        let observed_by = site.clone();
        let observers =
            Arc::new(move |task: &Task, event| exchange::tell_observers(&observed_by, task, event));
        let follower = Follower::start(self.site.host.clone(), self.site.live.clone(), observers)
            .map_err(|error| AskError::Machine(format!("start to follow agents: {error}")))?;
        let (done_to, done) = mpsc::channel();
        let theirs = follower.clone();
        // No fact of the run is written yet: without the thread nothing has changed.
        let thread = std::thread::Builder::new().name("engine".to_owned()).spawn(move || {
            let outcome = self.run_event_loop(run, options.attended, rebuilt, theirs);
            drop(done_to);
            outcome
        });
        let thread = thread.map_err(|error| {
            follower.stop_and_join();
            AskError::Machine(format!("start the thread of the engine: {error}"))
        })?;
        Ok(RunThread { handle, site, thread: Some(thread), done })
    }

    fn run_event_loop(
        &mut self,
        run: RunId,
        watched: bool,
        rebuilt: Vec<(TaskId, Feedback)>,
        follower: Follower,
    ) -> Result<EngineRunOutcome, StoreError> {
        let ground = NotifierContext {
            program: self.site.program.clone(),
            root: self.site.repo.root().to_owned(),
            base: self.site.branch.as_str().to_owned(),
            folder: self.site.folder.clone(),
            environment: self.site.environment.clone(),
            trust: Some(HookTrust::new(
                &self.site.settings,
                &self.site.repo,
                TrustStore::for_repository(&self.site.folder, self.site.repo.root()),
            )),
        };
        self.herald = Notifier::start(&ground, &self.site.settings);
        self.herald.note_watcher(watched);
        self.folders = Folders::start(self.site.clone());
        self.folders.queue_tasks(self.core.world().tasks().filter(|task| !task.is_over()));
        for (task, feedback) in rebuilt {
            self.core.handle_task_news(&*self.site, task, &News::Inform(feedback));
        }
        let turn = self.commit_turn()?;
        recover::remove_idle_reader_rooms(&self.site, self.core.world().tasks());
        let mut publishing = publish::Publisher::new(self.site.clone());
        if self.core.mismatched_landing().is_none() {
            publishing.request_publish(); // what an earlier run could not publish, or a person's commits to take in
        }
        let mut scout = OverlapWatcher::new(self.site.clone());
        let mut spares = WarmWorkspaceMaker::new(self.site.clone());
        let mut base_checker = BaseChecker::new(self.site.clone());
        let mut touched: BTreeSet<TaskId> = turn.touched.keys().copied().collect();
        land::keep_checkpoints(&self.site, &turn.checkpoints);
        let (effects, queue_effects) = self.core.expected_effects();
        for effect in effects {
            touched.insert(effect.task());
            perform::perform_effect(&self.site, &follower, self.core.expect_task(effect.task()), effect);
        }
        for effect in queue_effects {
            self.perform_queue(effect);
        }

        let mut why = None;
        loop {
            if self.core.mismatched_landing().is_some() {
                publishing.cancel_request();
            }
            self.poll_tracker_if_due();
            let low_disk = self.check_disk_space();
            let is_short = self.check_shortage();
            self.core.advance_state(&*self.site, low_disk);
            let turn = self.commit_turn()?;
            touched.extend(turn.touched.keys());
            for effect in turn.effects {
                perform::perform_effect(&self.site, &follower, self.core.expect_task(effect.task()), effect);
            }
            for effect in turn.queue_effects {
                self.perform_queue(effect);
            }
            land::keep_checkpoints(&self.site, &turn.checkpoints);
            base_checker.start_if_wanted(self.core.wants_base_check(&*self.site), self.core.base_commit());
            if turn.landed {
                publishing.request_publish();
            }
            if !self.is_idle() && self.core.mismatched_landing().is_none() {
                publishing.request_check_if_due();
            }
            if self.is_idle() && self.core.mismatched_landing().is_none() {
                publishing.request_final_try();
            }
            if self.is_idle() && !publishing.is_busy() && !publishing.is_wanted() {
                break;
            }
            let publish_in = publishing.remaining_wait().filter(|pause| !pause.is_zero() && !self.is_idle());
            if publish_in.is_none() {
                publishing.start_if_wanted();
            }
            match self.decide_short_stop() {
                ShortageStopAction::Wait => {}
                ShortageStopAction::StopNow => {
                    self.begin_stop(true, &mut why);
                    continue;
                }
                ShortageStopAction::Leave => break,
            }
            let must_end = self.disk_is_full() || self.reserve_is_used;
            if must_end && !self.site.interrupted.is_set() {
                self.full = true;
                self.begin_stop(true, &mut why);
                continue;
            }
            let at_work = self.core.world().active_tasks().map(|task| task.id);
            scout.start_scan_if_due(at_work.chain(self.core.queue().line()));
            let wanted = if low_disk || is_short { 0 } else { self.core.wanted_spares(&*self.site) };
            spares.refill_spares(wanted, self.core.base_commit());
            let look_out_in = publishing.time_to_next_check();
            let most = publish_in.into_iter().chain(look_out_in).chain(scout.remaining_wait()).min();
            let first = self.next_mail(most, low_disk || is_short); // none: it is time for whatever is due
            for mail in first.into_iter().chain(self.mail.try_iter().take(TURN_MAX).collect::<Vec<_>>()) {
                match mail {
                    EngineMessage::News(task, news) => self.core.handle_task_news(&*self.site, task, &news),
                    EngineMessage::Queue(news) => self.core.handle_queue_news(&*self.site, &news),
                    // Found out twice, it is told once.
                    EngineMessage::Fact(EngineEvent::BaseMoved { to, .. })
                        if self.core.base_commit() == Some(&to) => {}
                    EngineMessage::Fact(event) => self.core.record_engine_event(&*self.site, event),
                    EngineMessage::Ask(EngineRequest::StopRun { now }, reply) => {
                        let agents = self.core.world().holder_count(GrantKind::Slot);
                        self.core.stop_loops(&*self.site);
                        self.begin_stop(now, &mut why);
                        self.replies.push((reply, Ok(EngineReply::Stopping { agents })));
                    }
                    EngineMessage::Ask(ask, reply) => self.handle_request(ask, reply),
                    EngineMessage::BaseChecked(result) => self.core.handle_base_check(&*self.site, &result),
                    EngineMessage::Answered(task) => self.core.note_model_answer(&*self.site, task),
                    EngineMessage::PublishOver => publishing.finish_try(),
                    EngineMessage::CutShort(task) => self.core.set_cut_short(task),
                    EngineMessage::Observed(task, paths) => self.core.world_mut().set_observed(task, paths),
                    EngineMessage::ScoutOver => scout.finish_scan(),
                    EngineMessage::Tidied => {}
                    EngineMessage::Drain => self.begin_stop(false, &mut why),
                    EngineMessage::StopNow => self.begin_stop(true, &mut why),
                }
            }
        }
        let left_for = self.stopping.left_for;
        if left_for.is_none() {
            base_checker.stop_and_join();
            spares.join_thread();
        }
        follower.stop_and_join();
        self.folders.finish_and_join();
        // After all threads that may still postpone something.
        self.site.shortages.drop_postponed();
        // What was left may still be written to, and is given up by the next run.
        if left_for.is_none() {
            self.show_folders(touched.iter())?;
            recover::remove_idle_reader_rooms(&self.site, self.core.world().tasks());
            recover::mark_checkouts_clean(&self.site);
        }
        let why = why.unwrap_or_else(|| self.core.run_end_reason(&*self.site));
        let paused = self.core.pilot().pause().map(|pause| pause.reason.clone());
        self.core.end_run(&*self.site, run, why);
        self.commit_turn()?;
        journal_link::note_head(&self.site.folder, self.site.end.head());
        self.herald.finish_deliveries(HERALD_LAST);
        let tasks = touched.iter().filter_map(|id| self.core.world().get(*id)).cloned().collect();
        let cut_off = match left_for {
            Some(resource) => Some(format!(
                "this machine is out of {resource}, so what was under way could not be followed to its end; nothing is lost, and \
                 `landfall run` continues"
            )),
            None if self.reserve_is_used => Some(
                "the disk is full: the journal could not be written, so the agents were ended; their work is kept, \
                 and `landfall run` continues once there is room"
                    .to_owned(),
            ),
            None if self.full => Some(
                "the disk has less room than `disk.stop` wants, so the agents were stopped; their work is kept"
                    .to_owned(),
            ),
            None => None,
        };
        let held = match self.core.mismatched_landing() {
            Some(task) => Some(format!(
                "the landing of {task} did not check out afterwards, so nothing more is landed or published; \
                 `landfall why {task}` says what was seen"
            )),
            None => publishing.hold_reason(),
        };
        let queue_held = self.core.queue().hold().map(|hold| hold.reason.clone());
        let sprint = self.core.sprints().all_sprints().last().map(|sprint| sprint.id);
        let base_held = self.core.base_hold();
        Ok(EngineRunOutcome { run, why, tasks, held, cut_off, queue_held, base_held, paused, sprint })
    }

    fn perform_queue(&self, effect: QueueEffect) {
        let members = match &effect {
            QueueEffect::Build { members, .. } | QueueEffect::Land { members, .. } => members.as_slice(),
            QueueEffect::Check { .. } | QueueEffect::Abandon { .. } => &[],
        };
        let tasks = members.iter().map(|member| self.core.expect_task(member.task)).collect();
        perform::perform_queue(&self.site, tasks, effect);
    }

    /// Tells the engine to begin nothing new, and, if `now`, the agents to end.
    fn begin_stop(&mut self, now: bool, why: &mut Option<RunEnd>) {
        self.core.start_draining();
        let now_ms = self.site.clock.mono_ms();
        self.stopping.told_ms.get_or_insert(now_ms);
        if now {
            self.stopping.told_now_ms.get_or_insert(now_ms);
        }
        *why = Some(if now { RunEnd::Interrupted } else { RunEnd::Drained });
        self.site.live.lock().view.stopping = true;
        if now {
            let running: Vec<TaskId> = self.core.world().active_tasks().map(|task| task.id).collect();
            for task in running {
                self.core.handle_task_news(&*self.site, task, &News::Interrupt);
            }
            gate::interrupt_checks(&self.site);
        }
    }

    /// Whether nothing is under way and nothing will begin by itself.
    fn is_idle(&self) -> bool {
        let interrupted = self.site.interrupted.is_set();
        self.core.is_idle(&*self.site, interrupted) && !perform::is_tidying(&self.site)
    }

    /// The next news; none when it is time for something else, at the latest after `most`.
    fn next_mail(&self, most: Option<Duration>, is_short: bool) -> Option<EngineMessage> {
        let pause = match self.core.next_wakeup(&*self.site) {
            Some(at) => {
                let ms = u64::try_from(at.0 - self.site.now().0).unwrap_or(0);
                Duration::from_millis(ms.clamp(1, 60_000))
            }
            None => Duration::from_secs(60),
        };
        let pause = match (is_short, self.stopping.told_ms.is_some()) {
            (true, true) => pause.min(SHORT_STOP_LOOK),
            (true, false) => pause.min(DISK_PAUSE),
            (false, _) => pause,
        };
        let pause =
            if self.core.world().active_tasks().next().is_some() { pause.min(DISK_LOOK) } else { pause };
        let pause = most.map_or(pause, |most| pause.min(most));
        let pause = match self.core.waits_for_tracker() {
            true => pause.min(Duration::from_millis(self.tracker_look_ms())),
            false => pause,
        };
        self.mail.recv_timeout(pause).ok()
    }

    /// How long the loop may sleep while a task waits for what the tracker says. Where webhooks arrive, their marks are looked for
    /// far more often than the tracker is asked.
    fn tracker_look_ms(&self) -> u64 {
        let tracker = &self.site.settings.tracker;
        match tracker.webhook_secret_file {
            Some(_) => tracker.poll_ms.min(NUDGE_MS),
            None => tracker.poll_ms,
        }
    }

    /// What a tracker changed: looked for now and then, and at once where it says so by itself. Nobody is asked where nobody waits.
    fn poll_tracker_if_due(&mut self) {
        let every_ms = self.site.settings.tracker.poll_ms;
        let nudged = self.core.wants_a_poll(self.site.now(), NUDGE_MS)
            && nudges::take_marks(&self.site.folder).is_ok_and(|marks| !marks.is_empty());
        if nudged || self.core.wants_a_poll(self.site.now(), every_ms) {
            self.core.poll(&*self.site);
        }
    }

    /// Whether there is too little room for an agent to start, and what a person sees of that and of the rest.
    fn check_disk_space(&mut self) -> bool {
        let DiskReport { disk, free_bytes: free, few_inodes, news } =
            self.governor.check_disk(&self.site, self.core.world());
        if let Some(news) = news {
            self.herald.send_event(news);
        }
        let wanted = self.site.settings.disk.pause_bytes;
        let low = disk >= DiskLevel::Pause;
        let in_the_way = low && self.core.world().waiting_for(GrantKind::Slot) > 0;
        let shut = self.core.world().accounts().closed_accounts();
        // Both ask what was spent, which is behind the same lock as the view.
        let (turns, spent) = (
            self.core.world().held_back_tasks(&self.core.current_limits(&*self.site)),
            CoreEnvironment::exhausted_budget(&*self.site),
        );
        let mut state = self.site.live.lock();
        let view = &mut state.view;
        let left = match few_inodes {
            Some(free) => format!("{free} inodes are free, {INODES_WANTED} are wanted"),
            None => format!("{} MB are free, {} MB are wanted", free / 1_000_000, wanted / 1_000_000),
        };
        let left = match self.governor.is_cleaning() {
            true => format!("{left}; what nobody needs is being removed"),
            false => left,
        };
        view.base_hold = self.core.base_hold();
        view.low_disk = in_the_way.then_some(left);
        view.shut = shut.map(|(name, state)| (name.clone(), state.clone())).collect();
        view.queue = self.core.queue().clone();
        view.pilot = self.core.pilot().clone();
        view.sprint = self.core.sprints().open().cloned();
        view.turns = turns;
        view.spent = spent;
        low
    }

    /// Whether this machine is out of something, so that nothing may be started. What could not be started meanwhile is
    /// started once it is back.
    fn check_shortage(&mut self) -> bool {
        let shortage = self.site.shortages.current_shortage();
        let resource = shortage.as_ref().map(|shortage| shortage.resource);
        let now_ms = self.site.clock.mono_ms();
        self.stopping.shortage = ShortageSpan::after_check(self.stopping.shortage, resource, now_ms);
        self.core.set_missing_resource(resource);
        self.site.live.lock().view.shortage = shortage;
        if resource.is_none() {
            self.site.shortages.start_postponed();
        }
        resource.is_some()
    }

    /// What is done about a stop while this machine is out of something.
    fn decide_short_stop(&mut self) -> ShortageStopAction {
        let now_ms = self.site.clock.mono_ms();
        let age_ms = |since_ms: u64| now_ms.saturating_sub(since_ms);
        let short = self.stopping.shortage.and_then(|span| span.missing_resource());
        let (told_ms, told_now_ms) =
            (self.stopping.told_ms.map(age_ms), self.stopping.told_now_ms.map(age_ms));
        let decision = decide_short_stop(short, told_ms, told_now_ms);
        if decision == ShortageStopAction::Leave {
            self.stopping.left_for = short.map(|(resource, _)| resource);
        }
        decision
    }

    /// Whether there is so little room that agents at work must end before they lose what they write.
    fn disk_is_full(&self) -> bool {
        self.governor.disk() == DiskLevel::Stop && self.core.world().active_tasks().next().is_some()
    }

    /// Writes what the turn has gathered, answers whoever asked, and gives the orders to perform.
    fn commit_turn(&mut self) -> Result<CoreTurn, StoreError> {
        let mut turn = self.core.take_turn();
        if !turn.entries.is_empty() {
            crash::pass_point("journal.append.before");
            let tasks = turn.touched.values().cloned().collect();
            let entries = std::mem::take(&mut turn.entries);
            let heard = if self.herald.is_idle() { Vec::new() } else { entries.clone() };
            self.append_to_journal(EntryBatch { entries, tasks })?;
            self.herald.process_entries(&heard, self.core.world());
            self.folders.queue_tasks(turn.touched.values());
            crash::pass_point("journal.append.after");
        }
        for (to, reply) in std::mem::take(&mut self.replies) {
            let _ = to.send(reply); // the asker has left, nobody to tell
        }
        Ok(turn)
    }

    /// Writes facts. On a full disk the agents are ended first, so that they do not take the room that the reserve
    /// gives back; then there is enough to write down how the run ends.
    fn append_to_journal(&mut self, batch: EntryBatch) -> Result<(), StoreError> {
        let again = EntryBatch { entries: batch.entries.clone(), tasks: batch.tasks.clone() };
        match self.journal.append(batch) {
            Err(StoreError::Full) => {
                perform::end_agents(&self.site);
                DiskReserve::in_folder(self.site.folder.root()).release();
                self.reserve_is_used = true;
                self.journal.append(again).map(drop)
            }
            written => written.map(drop),
        }
    }

    /// Has the folders of these tasks show them, and hears what a person changed there. Whoever is in the way for long has
    /// the folder shown by the next run.
    fn show_folders<'a>(&mut self, tasks: impl Iterator<Item = &'a TaskId>) -> Result<(), StoreError> {
        const SPAN: Duration = Duration::from_secs(2); // an editor or another client writes for less
        const PAUSE: Duration = Duration::from_millis(100); // for whatever changes without a trace in the folder
        let of_modules =
            tasks.filter(|id| self.core.world().get(**id).is_some_and(|it| is_shown(&self.core, it)));
        let of_modules: Vec<TaskId> = of_modules.copied().collect();
        for id in of_modules {
            let deadline = Instant::now() + SPAN;
            let mut watch = None;
            loop {
                let (site, task) = (self.site.clone(), self.core.expect_task(id));
                if folders::visit_folder(&site, &task, &mut |ask| self.answer_request(ask))
                    == folders::FolderVisitResult::Shown
                    || Instant::now() >= deadline
                {
                    break;
                }
                let watch = watch.get_or_insert_with(|| {
                    FolderWatch::new(&site.repo.root().join(folders::path_of(&task).unwrap_or_default()))
                });
                watch.wait(Duration::ZERO); // what the look itself changed there
                watch.wait(PAUSE);
            }
        }
        self.commit_turn()?;
        Ok(())
    }

    fn handle_request(&mut self, ask: EngineRequest, reply: Sender<AskResult>) {
        let answer = self.answer_request(ask);
        self.replies.push((reply, answer));
    }

    fn answer_request(&mut self, ask: EngineRequest) -> AskResult {
        let site = self.site.clone();
        let out: &dyn CoreEnvironment = &*site;
        match ask {
            EngineRequest::Add(mut tasks) => {
                for position in tasks.iter_mut().filter_map(|task| task.position.as_mut()) {
                    self.import_work(position)?;
                }
                self.core.add_tasks(out, tasks).map(EngineReply::Tasks)
            }
            EngineRequest::Edit(id, spec) => {
                self.core.edit_task(out, id, *spec).map(|task| EngineReply::Tasks(vec![task]))
            }
            EngineRequest::Ready(drafts) => self.core.release_drafts(out, &drafts).map(EngineReply::Tasks),
            EngineRequest::Tell(tasks, news) => {
                self.core.handle_news_for_all(out, &tasks, &news).map(EngineReply::Tasks)
            }
            EngineRequest::Rollback(id) => self.add_rollback_task(id),
            EngineRequest::Pause { reason } => self.core.pause_run(out, &reason).map(|()| EngineReply::Done),
            EngineRequest::Resume => self.core.resume_run(out).map(|()| EngineReply::Done),
            EngineRequest::SetMode(mode) => {
                self.core.set_mode(out, mode);
                Ok(EngineReply::Done)
            }
            EngineRequest::Assign(task) => {
                self.core.assign_next_task(out, task).map(|task| EngineReply::Tasks(vec![task]))
            }
            EngineRequest::CancelSprint => self.core.cancel_sprint(out).map(EngineReply::Sprint),
            EngineRequest::HoldQueue { reason } => {
                self.core.hold_queue(out, Some(reason)).map(|()| EngineReply::Done)
            }
            EngineRequest::ResumeQueue { rewritten } => self.resume_queue(rewritten),
            EngineRequest::Checkpoint { name } => self.create_checkpoint(name.as_deref()),
            EngineRequest::DropCheckpoints { names } => self.drop_checkpoints(&names),
            EngineRequest::DropDiscoveries { numbers } => self.drop_discoveries(&numbers),
            EngineRequest::Consulted { about, profile, usage, took_ms } => {
                self.core.record_engine_event(out, EngineEvent::Consulted { about, profile, usage, took_ms });
                Ok(EngineReply::Done)
            }
            EngineRequest::Measured(report) => {
                self.core.record_engine_event(out, EngineEvent::Measured { report: *report });
                Ok(EngineReply::Done)
            }
            EngineRequest::LoopStart(mut asked) => {
                if let Some(position) = asked.position.as_mut() {
                    self.import_work(position)?;
                }
                self.core.start_loop(out, *asked).map(|task| EngineReply::Tasks(vec![task]))
            }
            EngineRequest::LoopStop { session } => {
                self.core.stop_loop(out, &session).map(|task| EngineReply::Tasks(vec![task]))
            }
            EngineRequest::Follow(asked) => {
                let (haul, tasks) = self.core.follow_issues(out, &asked)?;
                Ok(EngineReply::Followed { haul, tasks })
            }
            EngineRequest::Restore { name } => self.add_restore_task(&name),
            EngineRequest::Review(tasks, said) => self.apply_review(&tasks, &said),
            EngineRequest::StopRun { .. } => Err(AskError::NoRun),
        }
    }

    /// Brings work into the store that a person's branch holds and the base does not.
    fn import_work(&self, position: &mut ImportedProgress) -> Result<(), AskError> {
        let site = &self.site;
        let Ok(branch) = position.branch.parse::<BranchName>() else { return Ok(()) };
        let bring = || -> Result<Option<Commit>, GitError> {
            if branch == site.branch || site.repo.branch_tip(&branch)?.is_none() {
                return Ok(None);
            }
            let tip = site.store.import_branch(&site.repo, &branch)?;
            let landed = site.store.is_ancestor(&tip, &land::sync_base(site)?)?;
            Ok((!landed).then(|| ids::oid_to_commit(&tip)))
        };
        position.work = bring().map_err(|error| AskError::Machine(error.full_message()))?;
        Ok(())
    }

    fn resume_queue(&mut self, rewritten: RewrittenBaseChoice) -> AskResult {
        let site = self.site.clone();
        let hold = self.core.queue().hold().ok_or(AskError::QueueMoves)?;
        if matches!(hold.why, HoldReason::Rewritten | HoldReason::Deleted) {
            let machine = |error: GitError| AskError::Machine(error.full_message());
            for moved in land::accept_rewrite(&site, rewritten).map_err(machine)? {
                self.core.record_engine_event(&*site, moved);
            }
        }
        // Whoever lets it go on has looked at the gate: what it showed on the base is looked at again.
        site.measured.lock().expect("no thread panics while it holds it").baseline.clear();
        self.core.hold_queue(&*site, None).map(|()| EngineReply::Done)
    }

    fn create_checkpoint(&mut self, name: Option<&str>) -> AskResult {
        let site = self.site.clone();
        let fits =
            |name: &str| !name.contains('/') && name.len() <= 64 && land::checkpoint_ref(name).is_some();
        if let Some(name) = name.filter(|name| !fits(name)) {
            return Err(AskError::CheckpointName(name.chars().take(80).collect()));
        }
        self.find_base()?;
        let name =
            self.core.make_checkpoint(&*site, name, CheckpointReason::Person).ok_or(AskError::NoBase)?;
        Ok(EngineReply::Checkpoint { name })
    }

    /// Finds out where the base is. What a person has committed since the last fact about it is part of it.
    fn find_base(&mut self) -> Result<(), AskError> {
        let site = self.site.clone();
        let base = land::sync_base(&site).map_err(|error| AskError::Machine(error.full_message()))?;
        let (from, to) = (self.core.base_commit().cloned(), ids::oid_to_commit(&base));
        if from.as_ref() != Some(&to) {
            self.core.record_engine_event(&*site, EngineEvent::BaseMoved { from, to, by: BaseMover::Person });
        }
        Ok(())
    }

    fn unknown_checkpoint(&self, name: &str) -> AskError {
        let known = self.core.checkpoints().kept_checkpoints().iter().map(|it| it.name.as_str());
        AskError::UnknownCheckpoint { name: name.to_owned(), known: known.collect::<Vec<_>>().join(", ") }
    }

    fn drop_checkpoints(&mut self, names: &[String]) -> AskResult {
        if let Some(name) = names.iter().find(|name| self.core.checkpoints().get(name).is_none()) {
            return Err(self.unknown_checkpoint(name));
        }
        let site = self.site.clone();
        for name in names {
            self.core.record_engine_event(
                &*site,
                EngineEvent::Checkpoint(CheckpointEvent::Dropped { name: name.clone() }),
            );
        }
        Ok(EngineReply::Done)
    }

    fn drop_discoveries(&mut self, numbers: &[u32]) -> AskResult {
        let site = self.site.clone();
        if let Some(number) = numbers.iter().find(|number| !site.prompts.knows_discovery(**number)) {
            return Err(AskError::UnknownDiscovery(*number));
        }
        for number in numbers {
            self.core.record_engine_event(&*site, EngineEvent::DiscoveryDropped { number: *number });
        }
        Ok(EngineReply::Done)
    }

    /// A new task whose work puts every file back to where it was at a checkpoint. Nothing is lost: what landed since stays
    /// in the history, and the task is verified and landed like any other.
    fn add_restore_task(&mut self, name: &str) -> AskResult {
        let Some(checkpoint) = self.core.checkpoints().get(name).cloned() else {
            return Err(self.unknown_checkpoint(name));
        };
        let new = self.core.world().next_id();
        self.find_base()?;
        let head = land::restore_checkpoint(&self.site, &checkpoint, new)
            .map_err(|error| AskError::Machine(error.full_message()))?;
        let site = self.site.clone();
        let spec = rollback_spec(&format!("Restore checkpoint {name}"), &format!("restore:{name}"))?;
        self.core.make_checkpoint(&*site, None, CheckpointReason::Restore); // the way back from the way back
        Ok(EngineReply::Tasks(vec![self.core.add_task_with_work(&*site, spec, head)]))
    }

    /// A new task whose work is the revert of a landed one; it is verified and landed like any other.
    fn add_rollback_task(&mut self, id: TaskId) -> AskResult {
        let task = self.core.world().get(id).ok_or(AskError::UnknownTask(id))?.clone();
        let (spec, head) = self.prepare_revert(&task, self.core.world().next_id())?;
        let site = self.site.clone();
        Ok(EngineReply::Tasks(vec![self.core.add_task_with_work(&*site, spec, head)]))
    }

    /// The task `new` that undoes a landed one, and its work.
    fn prepare_revert(&self, task: &Task, new: TaskId) -> Result<(TaskSpec, Commit), AskError> {
        if task.landings().next().is_none() {
            return Err(AskError::NotLanded(task.id));
        }
        let source = format!("rollback:{}", task.id);
        let by =
            |it: &&Arc<Task>| it.spec.source == source && (!it.is_over() || it.landings().next().is_some());
        if let Some(by) = self.core.world().tasks().find(by) {
            return Err(AskError::TakenBack { task: task.id, by: by.id });
        }
        let head = land::revert_task(&self.site, task, new)
            .map_err(|error| AskError::Machine(error.full_message()))?;
        let spec = rollback_spec(&format!("Roll back {}: {}", task.id, task.spec.title), &source)?;
        Ok((spec, head))
    }

    /// What a person says of work. What they want changed about landed work becomes a task of its own, and what they do
    /// not want at all is rolled back. Whatever could fail is done first, so that it is all or nothing.
    fn apply_review(&mut self, tasks: &[TaskId], said: &ReviewInput) -> AskResult {
        let site = self.site.clone();
        let (mut reworks, mut reverts) = (Vec::new(), Vec::new());
        for id in tasks {
            let task = self.core.world().get(*id).ok_or(AskError::UnknownTask(*id))?.clone();
            match said {
                _ if task.landed.is_none() => {}
                ReviewInput::Changes { issues, note, .. } => {
                    let spec =
                        self.prepare_rework(&task, &landfall_model::review::format_complaint(issues, note))?;
                    reworks.push(NewTaskSpec {
                        spec,
                        needs_here: Vec::new(),
                        parent_here: None,
                        position: None,
                    });
                }
                ReviewInput::Reject { .. } => {
                    let place = u32::try_from(reverts.len()).expect("as many as a person names");
                    let new = TaskId(self.core.world().next_id().0 + place);
                    reverts.push(self.prepare_revert(&task, new)?);
                }
                ReviewInput::Approve { .. } | ReviewInput::Skip | ReviewInput::Defer => {}
            }
        }
        let mut changed = self.core.handle_news_for_all(&*site, tasks, &News::Review(said.clone()))?;
        changed.extend(self.core.add_tasks(&*site, reworks)?);
        for (spec, head) in reverts {
            changed.push(self.core.add_task_with_work(&*site, spec, head));
        }
        Ok(EngineReply::Tasks(changed))
    }

    /// A task that mends a landed one.
    fn prepare_rework(&self, task: &Task, complaint: &str) -> Result<TaskSpec, AskError> {
        let mut spec = TaskSpec::new(&format!("Rework {}: {}", task.id, commit_subject(&task.spec.title)))?;
        let commit = task.landed.as_ref().map_or("", |landed| landed.commit.short_hash());
        let id = task.id;
        spec.body = format!("{id} has landed as {commit}, and a reviewer wants changes:\n\n{complaint}\n");
        spec.source = format!("review:{id}");
        // What settings no longer know is not asked for again.
        let known_flow = |name: &String| self.core.flows().contains_key(name);
        let known_agent = |name: &String| self.core.rules().profiles.contains_key(name);
        spec.flow = task.spec.flow.clone().filter(known_flow);
        spec.agent = task.spec.agent.clone().filter(known_agent);
        spec.criteria.clone_from(&task.spec.criteria);
        spec.check_bounds()?;
        Ok(spec)
    }
}

/// Whether the folder of a module shows this task: there may be a newer one for it.
fn is_shown(core: &Core, task: &Task) -> bool {
    let path = folders::path_of(task);
    path.is_some() && !core.world().tasks().any(|other| other.id > task.id && folders::path_of(other) == path)
}

/// The words of a task whose work exists already and takes something back.
fn rollback_spec(title: &str, source: &str) -> Result<TaskSpec, AskError> {
    let mut spec = TaskSpec::new(title)?;
    spec.source = source.to_owned();
    spec.flow = Some("rollback".to_owned());
    spec.priority = 0;
    Ok(spec)
}

/// What the settings of a project mean for the core.
#[must_use]
pub fn rules_from_settings(settings: &Settings, now: Timestamp) -> EnginePolicy {
    let run = &settings.run;
    EnginePolicy {
        limits: ScheduleLimits { slots: run.slots, lanes: run.lanes, now, spent: None },
        task: TaskLimits {
            iterations_max: run.iterations_max,
            task_ms: run.task_limit_ms,
            stuck_after: run.stuck_after,
            restarts_max: run.restarts_max,
            stalls_step_max: run.stalls_step_max,
            stalls_total_max: run.stalls_total_max,
            compact_percent: run.compact_percent,
            attempt_budget: settings.attempt_budget,
            task_budget: settings.task_budget,
            conflict_ms: settings.land.conflict_wait_ms,
            overdue: settings.land.conflict_overdue,
            review: settings.review.rule,
            ..TaskLimits::default()
        },
        review_tags: settings.review.tags.clone(),
        parts_max: settings.tracker.concurrent,
        poll_ms: settings.tracker.poll_ms,
        queue: QueuePolicy {
            batch_max: settings.land.batch,
            speculate: settings.land.speculate,
            runaway: settings.land.runaway,
            forms: true,
        },
        failures_max: run.failures_max,
        profiles: collect_profiles(settings),
        reviewer: settings.review.agent.clone(),
        judge: settings.judge.clone(),
        caps: settings.caps.clone(),
        retention: settings.checkpoint.retention,
        checkpoints: settings.checkpoint.automatic,
    }
}

fn collect_profiles(settings: &Settings) -> BTreeMap<String, (ProfileRoute, AgentDriveStyle)> {
    let route = |(name, profile): (&String, &crate::settings::ProfileSettings)| {
        let route = ProfileRoute { account: profile.account.clone(), failover: profile.failover.clone() };
        (name.clone(), (route, profile.style))
    };
    settings.agents.iter().map(route).collect()
}

/// Where the profiles of a project lead.
pub fn profile_routes(settings: &Settings) -> BTreeMap<String, ProfileRoute> {
    collect_profiles(settings).into_iter().map(|(name, (route, _))| (name, route)).collect()
}

const HERALD_LAST: Duration = Duration::from_secs(40); // for hooks and messages about the end of a run
const TURN_MAX: usize = 256; // news of one turn: one fsync for all of it, and replies do not wait for ever
const SHORT_STOP_LOOK: Duration = Duration::from_millis(500); // a stop takes seconds
const DISK_LOOK: Duration = Duration::from_secs(5); // how long agents may write before the disk is looked at
const DISK_PAUSE: Duration = Duration::from_secs(2); // how soon freed room is noticed

fn base_branch(repo: &Repo, named: Option<&String>) -> Result<BranchName, OpenError> {
    let head = repo.read_head()?;
    if let Some(name) = named {
        let branch: BranchName = name.parse().map_err(|_| OpenError::NoBranch(name.clone()))?;
        return match (repo.branch_tip(&branch)?, head) {
            (Some(_), _) => Ok(branch),
            (None, CheckoutHead::Unborn { branch: unborn }) if unborn.as_str() == name => {
                Err(OpenError::Unborn(name.clone()))
            }
            (None, _) => Err(OpenError::NoBranch(name.clone())),
        };
    }
    match head {
        CheckoutHead::Branch { name, .. } => Ok(name),
        CheckoutHead::Detached { .. } => Err(OpenError::Detached),
        CheckoutHead::Unborn { branch } => Err(OpenError::Unborn(branch.as_str().to_owned())),
    }
}

const NUDGE_MS: u64 = 2_000; // a look into a folder; a person sees no difference

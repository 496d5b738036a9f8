//! Following agents at work: one thread for all of them. It reads what they write, gathers signs of life, shows both, and
//! tells the engine when one has ended. When one is to end early is decided by the model, from what is gathered here.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use landfall_agents::{Agent, LaunchProfile, OutputParser, SideFile};
use landfall_host::sitter::{
    self, EndCause, FindError, SitterProcess, SitterState, SitterStream, SitterWaker, SitterWatch,
    SpoolReader, is_shortage,
};
use landfall_model::acceptance::ObservationKind;
use landfall_model::liveness::{
    self, AccountNotice, AccountWaitTime, EarlyEndReason, LivenessSample, LoopProgress, LoopStopNotice,
    RepetitionDetector, RunEndInputs,
};
use landfall_model::{
    AgentExit, AgentRunEvidence, AgentRunTraces, AgentUsage, Attempt, ContextUsage, ControlSignal, Digest,
    EndedRun, ExhaustedBudget, LoopStep, News, Signal, Spending, StepKind, StopReason, Task, Timestamp,
    UsageCounter,
};

use crate::active_work::AgentStopMode;
use crate::agent_run::{head_of, is_dispatched, is_reader_run, runs_own_loop, sitter_limit_ms, watch_limits};
use crate::channel::SocketSignalParser;
use crate::confine;
use crate::dispatch::TerminalDispatch;
use crate::effect_thread::{AbortOnPanic, start_effect_thread};
use crate::errand::error_chain;
use crate::exchange::ExchangeInterruption;
use crate::guard::{self, ConfigFingerprints};
use crate::host_context::HostContext;
use crate::live_view::{LiveAgent, LiveView};
use crate::mail::EngineMessage;
use crate::module::{self, WatchedModule};
use crate::opinion;
use crate::output_text;
use crate::papers;
use crate::patience::{KillAction, KillEscalation, abandon_run};
use crate::reader_workspace::end_reading;
use crate::recovering;
use crate::run_folder::run_marker;
use crate::session_file::read_newest_tail;
use crate::settings::Confinement;
use crate::step_outputs::missing_outputs;
use crate::vitals::{AgentState, AgentVitals};

/// An agent to follow.
pub(crate) struct FollowTarget {
    /// Its task, as it was when the run began.
    pub task: Arc<Task>,
    /// Within this attempt.
    pub attempt: Attempt,
    /// Which run.
    pub iteration: u32,
    /// The folder of the run.
    pub dir: PathBuf,
    /// Who sits with it, if it was just started; else the folder is looked at.
    pub sitting: Option<SitterProcess>,
    /// The hard limit its sitter keeps.
    pub deadline_ms: u64,
    /// What understands it.
    pub parser: Box<dyn OutputParser + Send>,
    /// Who it is.
    pub agent: Box<dyn Agent>,
    /// The profile that works.
    pub profile: LaunchProfile,
    /// How it is confined.
    pub sandbox: Confinement,
    /// Its own settings as they were when it began.
    pub guard: ConfigFingerprints,
}

enum FollowerCommand {
    Follow(Box<FollowTarget>),
    /// The sender is dropped once the thread has let go of everything.
    End(Sender<()>),
}

/// Tells issues that wait for it what happened to the agent of a task. The engine does it: it has the tracker.
pub(crate) type ObserverCallback =
    dyn Fn(&Task, ObservationKind) -> Result<(), ExchangeInterruption> + Send + Sync;

/// The thread that follows agents. Clones share it.
#[derive(Clone)]
pub(crate) struct Follower {
    orders: Sender<FollowerCommand>,
    waker: SitterWaker,
}

impl Follower {
    /// Starts the thread.
    ///
    /// # Errors
    /// When this machine has no descriptors or threads for it. Without it nobody can be followed.
    pub fn start(
        site: Arc<HostContext>,
        live: Arc<LiveView>,
        observers: Arc<ObserverCallback>,
    ) -> std::io::Result<Self> {
        let (orders, inbox) = mpsc::channel();
        let watch = SitterWatch::new()?;
        let waker = watch.waker();
        let thread = std::thread::Builder::new().name("follow".to_owned());
        thread.spawn(move || {
            let _fuse = AbortOnPanic;
            let desk = FollowerState {
                site,
                live,
                observers,
                watch,
                inbox,
                next: 0,
                open: HashMap::new(),
                unread: Vec::new(),
            };
            let ended = desk.run();
            drop(ended); // whoever ends the thread waits for this
        })?;
        Ok(Self { orders, waker })
    }

    /// Follows one more agent, or reports its end if it is over.
    pub fn follow_agent(&self, followed: FollowTarget) {
        let _ = self.orders.send(FollowerCommand::Follow(Box::new(followed))); // the run is over: recovery follows it next time
        self.waker.wake();
    }

    /// Ends the thread. Agents that still run go on.
    pub fn stop_and_join(&self) {
        let (ended, end) = mpsc::channel();
        let _ = self.orders.send(FollowerCommand::End(ended)); // it has ended already
        self.waker.wake();
        let _ = end.recv(); // nothing is sent: the sender is dropped, also with an order that nobody takes
    }
}

struct FollowedRun {
    followed: FollowTarget,
    out: SpoolReader,
    err: SpoolReader,
    said: SpoolReader,
    channel: SocketSignalParser,
    sitting: Option<SitterProcess>,
    seen: VecDeque<Signal>,
    /// Whether the model has answered in this run.
    answered: bool,
    tally: UsageCounter,
    echo: RepetitionDetector,
    asking: bool,
    /// What a reviewer said, all of it; of others it is not kept.
    words: String,
    live: LiveAgent,
    vital: AgentVitals,
    waits: WaitClock,
    /// How long its sitter is trusted to keep the limits.
    patience: KillEscalation,
    asked: Option<AgentEndReason>,
    /// The wait for its model for which it was asked to end. What it does while it ends is no sign of life.
    unanswered: Option<UnansweredWait>,
    /// What an agent with a loop of its own says by files.
    walk: Option<LoopFollower>,
}

/// An agent's own loop, as it is followed.
struct LoopFollower {
    module: WatchedModule,
    /// The last step it has finished, and how many in all its runs.
    last: Option<LoopStep>,
    count: u32,
    /// Steps of this run that the engine was told of.
    told: u32,
    /// How often its context had been dropped when it finished its last step.
    compactions: u32,
    /// When it was asked to end after its step.
    leaves_since: Option<u64>,
    /// Its terminal, if we type its steps.
    desk: Option<TerminalDispatch>,
}

impl LoopFollower {
    fn for_task(site: &HostContext, followed: &FollowTarget) -> Option<Self> {
        let task = &followed.task;
        let workspace =
            runs_own_loop(task).then(|| site.pool.find_workspace(&task.id.to_string())).flatten()?;
        let module = WatchedModule::for_run(task, workspace.path(), &followed.dir);
        if followed.sitting.is_none() {
            module.adopt_run(task);
        }
        Some(Self {
            module,
            last: task.stride.clone(),
            count: task.counters.strides,
            told: 0,
            compactions: 0,
            leaves_since: None,
            desk: is_dispatched(task).then(|| match followed.sitting {
                Some(_) => TerminalDispatch::for_new_run(task, workspace.path(), &followed.dir),
                None => TerminalDispatch::for_adopted_run(&followed.dir),
            }),
        })
    }

    /// Counts a step; whether it is a new one.
    fn count_step(&mut self, stride: &LoopStep) -> bool {
        if self.last.as_ref().is_some_and(|last| last.mark == stride.mark) {
            return false;
        }
        self.count = self.count.saturating_add(stride.steps_since(self.last.as_ref()));
        self.last = Some(stride.clone());
        true
    }
}

/// The waits of an agent for its account, as they are journalled and as they go on.
struct WaitClock {
    waits: AccountWaitTime,
    /// Whether the journal knows of the one under way.
    told: bool,
    /// Until when the deadline of its sitter stands still.
    paused_until: Option<Timestamp>,
}

/// The pause of a sitter is renewed after half of this, so that a run nobody follows any more still ends.
const PAUSE_MS: i64 = 120_000;

impl WaitClock {
    fn new(followed: &FollowTarget) -> Self {
        let adopted = followed.sitting.is_none();
        let waits = if adopted { followed.task.account_waits } else { AccountWaitTime::default() };
        Self { waits, told: waits.since.is_some(), paused_until: None }
    }

    fn note_account_signs(&mut self, signals: &[Signal], at: Timestamp) {
        match liveness::account_sign(signals) {
            Some(AccountNotice::UsedUp { until }) => self.waits.begin_wait(at, until),
            Some(AccountNotice::WentOn) if self.waits.since.is_some() => self.waits.end(at),
            Some(AccountNotice::WentOn) | None => {}
        }
    }

    fn total_wait_ms(&self, at: Timestamp) -> u64 {
        self.waits.all_ms(at)
    }

    /// Tells the engine when a wait has begun or ended.
    fn report_change(&mut self, site: &HostContext, followed: &FollowTarget) {
        let waits = self.waits.since.is_some();
        if waits == self.told {
            return;
        }
        self.told = waits;
        let (attempt, iteration) = (followed.attempt, followed.iteration);
        let news = match waits {
            true => News::AccountWaitBegan { attempt, iteration, until: self.waits.until },
            false => News::AccountWaitEnded { attempt, iteration },
        };
        site.send_news(followed.task.id, news);
    }

    /// [`WaitClock::report_change`], and the deadline of the sitter does not run during a wait.
    fn report_and_pause_deadline(&mut self, site: &HostContext, followed: &FollowTarget) {
        self.report_change(site, followed);
        let (at, waits) = (site.now(), self.waits.since.is_some());
        let renew = |until: Timestamp| until.0 - at.0 < PAUSE_MS / 2;
        if waits && self.paused_until.is_none_or(renew) {
            // Its own word about the reset is not enough: nobody may follow it by then.
            let until = Timestamp(at.0 + PAUSE_MS);
            // What cannot be written now is written at the next look.
            self.paused_until = sitter::pause_deadline(&followed.dir, until.0).ok().map(|()| until);
        } else if !waits && self.paused_until.is_some() && sitter::resume_deadline(&followed.dir).is_ok() {
            self.paused_until = None;
        }
    }
}

/// How long an agent had waited for its model when it was asked to end, and when that was.
#[derive(Debug, Clone, Copy)]
struct UnansweredWait {
    wait_ms: u64,
    asked_ms: u64,
}

/// Why the follower asked a run to end.
#[derive(Clone, PartialEq, Eq)]
enum AgentEndReason {
    /// The model says so.
    Early(EarlyEndReason),
    /// Its sitter did not end it in time.
    Overdue,
}

struct FollowerState {
    site: Arc<HostContext>,
    /// Where it shows what agents are at.
    live: Arc<LiveView>,
    observers: Arc<ObserverCallback>,
    watch: SitterWatch,
    inbox: Receiver<FollowerCommand>,
    next: u64,
    open: HashMap<u64, FollowedRun>,
    /// Runs that could not be looked at for lack of a resource, or whose end could not be read. They are tried again.
    unread: Vec<FollowRetry>,
}

/// What is to be tried again.
enum FollowRetry {
    Start(Box<FollowTarget>),
    End(u64),
}

const TICK: Duration = Duration::from_millis(120); // often enough for a person's eye
const READ_MAX: usize = 256 * 1024; // one agent must not keep the others waiting
const SEEN_MAX: usize = 10_000; // control words of one run; an agent that says more repeats itself
const STRIDES_MAX: u32 = 10_000; // facts of one run; long before that its iterations are used up
const WORDS_MAX: usize = 200;

impl FollowerState {
    /// Follows until it is told to end; gives back who waits for that.
    fn run(mut self) -> Option<Sender<()>> {
        loop {
            let pause = if self.open.is_empty() && self.unread.is_empty() { None } else { Some(TICK) };
            let ended = self.watch.wait(pause).unwrap_or_default();
            for id in ended {
                self.conclude_run(id);
            }
            for unread in std::mem::take(&mut self.unread) {
                match unread {
                    FollowRetry::Start(followed) => self.take_target(*followed),
                    FollowRetry::End(id) => self.conclude_run(id),
                }
            }
            loop {
                match self.inbox.try_recv() {
                    Ok(FollowerCommand::Follow(followed)) => self.take_target(*followed),
                    Ok(FollowerCommand::End(ended)) => return Some(ended),
                    Err(mpsc::TryRecvError::Empty) => break,
                    Err(mpsc::TryRecvError::Disconnected) => return None,
                }
            }
            self.check_due_agents();
        }
    }

    fn take_target(&mut self, followed: FollowTarget) {
        let id = self.next;
        self.next += 1;
        let sitting = match &followed.sitting {
            Some(sitting) => Some(sitting.clone()),
            None => match sitter::find_sitter(&followed.dir) {
                Ok(SitterState::Running(sitting)) => Some(sitting),
                // It may well run: what cannot be looked at is not given up.
                Err(error) if error.is_shortage() => {
                    self.site.shortages.note_failure(&error_chain(&error));
                    return self.unread.push(FollowRetry::Start(Box::new(followed)));
                }
                Ok(
                    SitterState::Never
                    | SitterState::Starting
                    | SitterState::Ended(_)
                    | SitterState::Vanished,
                )
                | Err(_) => None,
            },
        };
        let is_watched = match sitting.as_ref().map(|sitting| self.watch.add(id, sitting)) {
            // Whatever the reason is, it says nothing about the run, which may well be alive.
            Some(Err(error)) => {
                if is_shortage(&error) {
                    self.site.shortages.note_failure(&format!("watch a run: {error}"));
                }
                return self.unread.push(FollowRetry::Start(Box::new(followed)));
            }
            Some(Ok(())) => true,
            None => false,
        };
        let out = SpoolReader::new(&followed.dir, SitterStream::Out, 0);
        let err = SpoolReader::new(&followed.dir, SitterStream::Err, 0);
        let said = SpoolReader::new(&followed.dir, SitterStream::Signals, 0);
        let now = self.site.clock.mono_ms();
        let calls_model = followed.agent.calls_model();
        let waits = WaitClock::new(&followed);
        let vital = match &followed.sitting {
            Some(_) => AgentVitals::for_new_run(now, calls_model),
            None => AgentVitals::for_adopted_run(now, self.site.clock.now_ms(), &followed.dir, calls_model),
        };
        let live = LiveAgent {
            profile: followed.profile.name.clone(),
            model: followed.profile.model.clone(),
            sandbox: followed.sandbox.word(),
            ..LiveAgent::default()
        };
        let grace_ms = self.site.settings.run.grace_ms;
        let sat_ms =
            sitter_limit_ms(&self.site, &followed.task, followed.agent.calls_model(), followed.deadline_ms);
        let patience = KillEscalation::with_limit(now, sat_ms, grace_ms);
        let walk = LoopFollower::for_task(&self.site, &followed);
        let mut tally = UsageCounter::default();
        // Not every agent says its model; then it is priced as the one it was asked for.
        tally.hear(&Signal::Started { session: None, model: followed.profile.model.clone() });
        let open = FollowedRun {
            followed,
            out,
            err,
            said,
            channel: SocketSignalParser::default(),
            sitting,
            seen: VecDeque::new(),
            answered: false,
            tally,
            echo: RepetitionDetector::default(),
            asking: false,
            words: String::new(),
            live,
            vital,
            waits,
            patience,
            asked: None,
            unanswered: None,
            walk,
        };
        self.open.insert(id, open);
        if !is_watched {
            self.conclude_run(id); // it has ended: its folder says how
        }
    }

    fn check_due_agents(&mut self) {
        let now = self.site.clock.mono_ms();
        let site = &self.site;
        // One look at the machine for all of them that are due.
        let due: Vec<u64> =
            self.open.iter().filter(|(_, open)| open.is_due(site, now)).map(|(id, _)| *id).collect();
        let sittings: Vec<SitterProcess> =
            due.iter().filter_map(|id| self.open[id].sitting.clone()).collect();
        for (id, pulse) in due.into_iter().zip(sitter::measure_activities(&sittings)) {
            if let Some(open) = self.open.get_mut(&id) {
                open.note_activity(site, now, pulse);
            }
        }
        for open in self.open.values_mut() {
            let before = open.answered;
            let _ = open.read_new_output(site, READ_MAX, now); // what cannot be read now is read next time
            open.scan_loop_files(site, now);
            open.waits.report_and_pause_deadline(site, &open.followed);
            open.dispatch_next_step(site, now);
            if open.answered && !before {
                let _ = site.mail.send(EngineMessage::Answered(open.followed.task.id)); // the engine has left
            }
            open.update_live_view(site, now);
            self.live.update_agent(open.followed.task.id, open.current_spending(site, now), &open.live);
        }
        // Asked once for all of them: one that is ended for the day's budget ends the others, too.
        let spent = self.live.exhausted_budget(&site.settings.purse, site.now());
        for open in self.open.values_mut() {
            if open.asked.is_none()
                && let Some(asked) = open.find_end_reason(site, now, spent.as_ref())
            {
                open.bring_to_end(site, asked, now);
            }
            open.press_sitter(site, now);
        }
    }

    /// The sitter is gone: read the rest and tell the engine.
    fn conclude_run(&mut self, id: u64) {
        self.watch.remove(id);
        // Most of what its end is judged by is read with git or from files. What could not be read would look as if the agent
        // had left nothing.
        if self.open.contains_key(&id) && self.site.shortages.missing_to_read().is_some() {
            return self.unread.push(FollowRetry::End(id));
        }
        let Some(mut open) = self.open.remove(&id) else { return };
        let now = self.site.clock.mono_ms();
        // All of its output and its end are read before anything is concluded from them.
        let ended = match open.read_to_end(&self.site, now) {
            Ok(()) => sitter::find_sitter(&open.followed.dir),
            Err(error) => Err(FindError::in_folder(&open.followed.dir, error)),
        };
        if let Err(error) = &ended
            && error.is_shortage()
        {
            self.site.shortages.note_failure(&error_chain(error));
            self.open.insert(id, open);
            return self.unread.push(FollowRetry::End(id));
        }
        let site = &self.site;
        open.read_aside(site);
        let rest = open.followed.parser.finish();
        open.note_signals(rest);
        let files = open.walk.as_mut().map(|walk| walk.module.finish_run()).unwrap_or_default();
        open.take_in(site, files, now);
        // Before its end: the account of a run whose last words ended a wait is free for other tasks.
        open.waits.report_change(site, &open.followed);
        self.live.note_allowances(&open.followed.task, &open.seen);
        self.live.lock().view.live.remove(&open.followed.task.id);
        let (exit, took_ms, began_ms, oom_kills) = match ended {
            Ok(SitterState::Ended(ended)) => {
                let took = u64::try_from(ended.ended_ms - ended.began_ms).unwrap_or(0);
                if ended.left == 0 {
                    note_vacated(site, &open.followed);
                }
                (exit_of(&ended, open.asked.clone()), took, ended.began_ms, ended.oom_kills)
            }
            Ok(
                SitterState::Never | SitterState::Starting | SitterState::Running(_) | SitterState::Vanished,
            )
            | Err(_) => {
                let dir = &open.followed.dir;
                abandon_run(dir, &run_marker(site, dir)); // the next attempt works in the same workspace
                match open.asked.clone() {
                    Some(AgentEndReason::Overdue) => (AgentExit::Deadline, open.followed.deadline_ms, 0, 0),
                    Some(AgentEndReason::Early(EarlyEndReason::Stopped)) | None => (AgentExit::Lost, 0, 0, 0),
                    Some(asked) => (exit_for(asked), 0, 0, 0),
                }
            }
        };
        site.shortages.note_oom_kills(oom_kills);
        // A wait for the account within the run is no working time.
        let took_ms = took_ms.saturating_sub(open.waits.total_wait_ms(site.now()));
        let model_wait_ms = match open.unanswered {
            Some(UnansweredWait { wait_ms, asked_ms }) => {
                wait_ms.saturating_add(now.saturating_sub(asked_ms))
            }
            None => open.model_wait_ms(now),
        };
        let unanswered = open.asked == Some(AgentEndReason::Early(EarlyEndReason::Unanswered));
        let workspace = site.pool.find_workspace(&open.followed.task.id.to_string());
        let module = workspace.filter(|_| !is_reader_run(&open.followed.task));
        let revision = module.and_then(|it| module::module_revision(&open.followed.task, it.path()));
        let last_error = match &exit {
            AgentExit::Code(0) => String::new(),
            _ => output_text::read_text_tail(&open.followed.dir.join("err.log"), ERROR_TAIL),
        };
        let dir = open.followed.dir.clone();
        start_effect_thread(site, "tidy-tmp", move |_| confine::remove_tmp(&dir)); // it may hold millions of files
        let usage = AgentUsage {
            at_least: open.followed.agent.calls_model() && !open.has_finished(),
            ..open.tally.total_usage(&site.settings.prices)
        };
        let words = |words: &str| Digest::new(&blake3::hash(words.as_bytes()).to_hex()[..32]);
        let traces = AgentRunTraces {
            model: open.live.model.clone(),
            sandbox: Some(open.followed.sandbox.word().to_owned()),
            revision,
            quiet_ms: Some(open.vital.longest_silence(now)).filter(|ms| *ms >= QUIET_MS).unwrap_or(0),
            ..open.tally.to_traces(&words)
        };
        let state = open.followed.agent.list_requirements(&open.followed.profile).state;
        let touched = guard::find_touched_paths(
            &open.followed.guard,
            &guard::fingerprint_configs(&confine::own_state(site, &state)),
        );
        let closes = open.followed.agent.has_closing_message();
        let FollowTarget { task, attempt, iteration, .. } = open.followed;
        if is_reader_run(&task) {
            let task = task.clone();
            // One that stays for now is given up before the next review.
            start_effect_thread(site, "end-review", move |site| {
                drop(end_reading(site, &task, attempt, iteration))
            });
        }
        let kind =
            task.step().and_then(|step| task.flow.as_ref()?.find_step(step)).map(|step| step.kind.clone());
        let (papers, outline) = match site.pool.find_workspace(&task.id.to_string()) {
            Some(workspace) if !is_reader_run(&task) => papers::collect_papers(site, &task, &workspace),
            _ => (Vec::new(), None),
        };
        let evidence = AgentRunEvidence {
            papers,
            outline,
            judgement: match kind {
                Some(StepKind::Check { .. }) => opinion::parse_judgement(&open.words),
                _ => None,
            },
            split: match kind {
                Some(StepKind::Target) => opinion::parse_objective_split(&open.words),
                _ => None,
            },
            head_before: task.seen_head.clone(),
            head_after: head_of(site, &task),
            missing: missing_outputs(site, &task, began_ms),
            touched,
            closes,
            oom_kills,
            opinion: is_reader_run(&task).then(|| opinion::parse_review_opinion(&open.words)).flatten(),
            unanswered,
            model_wait_ms,
            last_error,
            last_words: open.tally.last_words().trim().chars().take(REPLY_MAX).collect(),
        };
        let run = EndedRun {
            attempt,
            iteration,
            exit,
            seen: open.seen.into(),
            evidence,
            took_ms,
            usage,
            traces,
            climbed: None,
        };
        if site.settings.workspace.after_run.is_none() && task.issue.is_none() {
            return site.send_news(task.id, News::AgentEnded(run));
        }
        // What comes next works in the same workspace, so it is told afterwards.
        let observers = self.observers.clone();
        start_effect_thread(site, "after-run", move |site| {
            crate::workspace::after_run(site, &task, attempt, iteration);
            if let Some(event) = ObservationKind::from_agent_exit(&run.exit).filter(|_| task.issue.is_some())
                && observers(&task, event).is_err()
            {
                return site.note_cut_short(task.id);
            }
            site.send_news(task.id, News::AgentEnded(recovering::attach_recovery(site, &task, run)));
        });
    }
}

/// A shorter silence says nothing about how long to wait for an agent.
const QUIET_MS: u64 = 60_000;
const REVIEW_MAX: usize = 1 << 20; // more than any review
const ERROR_TAIL: u64 = 4_096; // its last line is what a person sees
const REPLY_MAX: usize = 1_000; // a paragraph for a person to weigh

impl FollowedRun {
    /// Reads all that is left. An error: it cannot be read now.
    fn read_to_end(&mut self, site: &HostContext, now: u64) -> std::io::Result<()> {
        while self.read_new_output(site, READ_MAX, now)? > 0 {}
        Ok(())
    }

    /// Reads what is new; how many bytes that was. An error: the machine is out of something, and it can be read later.
    fn read_new_output(&mut self, site: &HostContext, max: usize, now: u64) -> std::io::Result<usize> {
        let mut read = 0;
        for stream in [SitterStream::Out, SitterStream::Err, SitterStream::Signals] {
            let follow = match stream {
                SitterStream::Out => &mut self.out,
                SitterStream::Err => &mut self.err,
                SitterStream::Signals => &mut self.said,
            };
            let bytes = match follow.read(max) {
                Ok(bytes) if bytes.is_empty() => continue,
                Ok(bytes) => bytes,
                Err(error) if is_shortage(&error) => return Err(error),
                // An agent without a sandbox has put something else in its place: it says nothing, and the others are read.
                Err(_) => continue,
            };
            read += bytes.len();
            let signals = match stream {
                SitterStream::Out => self.followed.parser.feed(landfall_agents::AgentStream::Out, &bytes),
                SitterStream::Err => self.followed.parser.feed(landfall_agents::AgentStream::Err, &bytes),
                SitterStream::Signals => self.channel.feed(&bytes),
            };
            if self.is_life(stream, &signals) {
                self.vital.note_output(now);
            }
            self.waits.note_account_signs(&signals, site.now());
            self.note_signals(signals);
        }
        self.live.bytes += read as u64;
        Ok(read)
    }

    /// Whether what it wrote is a sign of life. What the program of a model says on its error output is about itself.
    fn is_life(&self, stream: SitterStream, signals: &[Signal]) -> bool {
        match (stream, self.followed.agent.calls_model()) {
            (SitterStream::Out, true) => {
                !self.followed.parser.was_only_status() && liveness::is_answer(signals)
            }
            (SitterStream::Err, true) => false,
            (SitterStream::Signals, _) | (_, false) => liveness::is_life(signals),
        }
    }

    /// Looks at the files of its own loop.
    fn scan_loop_files(&mut self, site: &HostContext, now: u64) {
        let heard = self.walk.as_mut().map(|walk| walk.module.scan_files()).unwrap_or_default();
        self.take_in(site, heard, now);
    }

    /// Takes in what its files say. Each step is a fact of its own: they are counted, however often the engine ends.
    fn take_in(&mut self, site: &HostContext, heard: Vec<Signal>, now: u64) {
        let Some(walk) = &mut self.walk else { return };
        self.waits.note_account_signs(&heard, site.now());
        let compactions = self.tally.compactions();
        for signal in &heard {
            let Signal::Stride(stride) = signal else { continue };
            self.vital.note_output(now);
            if walk.count_step(stride) && walk.told < STRIDES_MAX {
                walk.told += 1;
                walk.compactions = compactions;
                let FollowTarget { task, attempt, iteration, .. } = &self.followed;
                let (attempt, iteration, stride) = (*attempt, *iteration, stride.clone());
                site.send_news(task.id, News::Strode { attempt, iteration, stride });
            }
        }
        self.note_signals(heard);
    }

    /// Types the next step, if its terminal waits for one.
    fn dispatch_next_step(&mut self, site: &HostContext, now: u64) {
        let Some(walk) = &mut self.walk else { return };
        let leaves = walk.leaves_since.is_some() || self.asked.is_some();
        if let Some(desk) = &mut walk.desk {
            desk.send_next_step(site, &self.followed.task, walk.last.as_ref(), leaves, now);
        }
    }

    /// How far its own loop is.
    fn loop_course(&self) -> Option<LoopProgress> {
        let walk = self.walk.as_ref()?;
        let counters = &self.followed.task.counters;
        let here = if walk.told > 0 { 0 } else { counters.stalls_step };
        Some(LoopProgress {
            strides: walk.count,
            stalls: (here, counters.stalls_total),
            loops: counters.loops,
        })
    }

    /// How often it dropped its context; of a loop of its own only the step under way counts.
    fn count_compactions(&self) -> u32 {
        let all = self.tally.compactions();
        let Some(walk) = &self.walk else { return all };
        let said = walk.last.as_ref().filter(|_| walk.told > 0).map_or(0, |last| last.compactions);
        all.saturating_sub(walk.compactions).max(said)
    }

    /// Reads what the agent keeps of its session beside what it writes out.
    fn read_aside(&mut self, site: &HostContext) {
        let session = self.seen.iter().rev().find_map(|signal| match signal {
            Signal::Started { session, .. } => session.clone(),
            _ => None,
        });
        let aside = session.and_then(|id| self.followed.agent.session_side_file(&self.followed.profile, &id));
        let Some(SideFile { root, suffix }) = aside else { return };
        let home = confine::agent_home(site);
        let Some(root) = confine::expand_home(home.as_deref(), &root) else { return };
        if let Some(bytes) = read_newest_tail(&root, &suffix) {
            let signals = self.followed.parser.feed(landfall_agents::AgentStream::Aside, &bytes);
            self.note_signals(signals);
        }
    }

    /// Whether it is time to look for signs of life.
    fn is_due(&self, site: &HostContext, now: u64) -> bool {
        self.sitting.is_some() && self.vital.is_due(now, &site.settings.run.watch)
    }

    /// Takes in what was seen of its processes and its workspace.
    fn note_activity(&mut self, site: &HostContext, now: u64, pulse: sitter::ProcessActivity) {
        let fingerprint = workspace_fingerprint(site, &self.followed.task);
        self.vital.note_activity(now, pulse, fingerprint, &site.settings.run.watch);
    }

    /// Says what is known of it now.
    fn update_live_view(&mut self, site: &HostContext, now: u64) {
        let watch = &site.settings.run.watch;
        let pulse = self.current_pulse(now);
        self.live.class = Some(liveness::classify_activity(&pulse, watch));
        self.live.evidence = liveness::describe_liveness(&pulse);
        self.live.quiet_ms = pulse.silent_ms.unwrap_or(pulse.running_ms);
        self.live.usage = self.tally.total_usage(&site.settings.prices);
        self.live.context_percent = self.tally.context().map(ContextUsage::used_percent);
        if let Some(model) = self.tally.model() {
            self.live.model = Some(model.to_owned());
        }
    }

    fn current_pulse(&self, now: u64) -> LivenessSample {
        let closes = self.followed.agent.has_closing_message();
        let agent = AgentState {
            tools_open: self.tally.tools_open(),
            asking: self.asking,
            echoes: if closes { self.echo.repeat_count() } else { 0 },
        };
        self.vital.current_pulse(now, agent)
    }

    /// Whether it said its closing word, in which all that it used is reported.
    fn has_finished(&self) -> bool {
        self.seen.iter().any(|signal| matches!(signal, Signal::Finished { .. }))
    }

    /// How long it has done nothing but wait for its model.
    fn model_wait_ms(&self, now: u64) -> u64 {
        let pulse = self.current_pulse(now);
        match (pulse.calls, self.waits.waits.since) {
            (Some(_), None) => liveness::lifeless_ms(&pulse),
            (None, _) | (_, Some(_)) => 0,
        }
    }

    /// How long it has worked: waits for its account, and for an answer of its model that has not come yet, do not count.
    fn worked_ms(&self, site: &HostContext, now: u64) -> u64 {
        let watch = watch_limits(site, &self.followed.task);
        let model_ms = match self.waits.waits.since {
            Some(_) => 0, // it is in the other
            None => match self.unanswered {
                Some(UnansweredWait { wait_ms, asked_ms }) => {
                    wait_ms.saturating_add(now.saturating_sub(asked_ms))
                }
                None => liveness::model_wait_ms(&self.current_pulse(now), &watch),
            },
        };
        let waited_ms = self.waits.total_wait_ms(site.now()).saturating_add(model_ms);
        now.saturating_sub(self.vital.began_ms).saturating_sub(waited_ms)
    }

    fn current_spending(&self, site: &HostContext, now: u64) -> Spending {
        Spending { usage: self.tally.total_usage(&site.settings.prices), time_ms: self.worked_ms(site, now) }
    }

    /// Whether it is to end now, and why.
    fn find_end_reason(
        &self,
        site: &HostContext,
        now: u64,
        spent: Option<&ExhaustedBudget>,
    ) -> Option<AgentEndReason> {
        let FollowTarget { task, attempt, .. } = &self.followed;
        let watch = watch_limits(site, task);
        let class = || liveness::classify_activity(&self.current_pulse(now), &watch);
        let early = liveness::early_end_reason(&RunEndInputs {
            stopped: site.is_stopped(task.id, *attempt),
            spent,
            here: self.current_spending(site, now),
            attempt: task.counters.attempt,
            task: Spending { usage: task.counters.usage, time_ms: task.counters.agent_ms },
            limits: &task.limits,
            compactions: self.count_compactions(),
            compactions_max: site.settings.run.compactions_max,
            class: self.sitting.is_some().then(class),
            course: self.loop_course(),
            worked_ms: self.worked_ms(site, now),
            worked_max_ms: if self.followed.deadline_ms == 0 { u64::MAX } else { self.followed.deadline_ms },
        });
        early.map(AgentEndReason::Early)
    }

    /// Brings the run to an end: at once, or a loop of its own after the step under way, with a bound.
    fn bring_to_end(&mut self, site: &HostContext, asked: AgentEndReason, now: u64) {
        let run = &site.settings.run;
        if asked == AgentEndReason::Early(EarlyEndReason::Unanswered) && self.unanswered.is_none() {
            let watch = watch_limits(site, &self.followed.task);
            let wait_ms = liveness::model_wait_ms(&self.current_pulse(now), &watch);
            self.unanswered = Some(UnansweredWait { wait_ms, asked_ms: now });
        }
        let farewell = match (&asked, self.loop_course()) {
            (AgentEndReason::Early(EarlyEndReason::Stopped), Some(_))
                if site.active.stop_mode(self.followed.task.id, self.followed.attempt)
                    == Some(AgentStopMode::Now) =>
            {
                LoopStopNotice::Now(None)
            }
            (AgentEndReason::Early(early), Some(course)) => {
                liveness::choose_stop_notice(early, &course, &self.followed.task.limits)
            }
            (AgentEndReason::Early(_) | AgentEndReason::Overdue, _) => LoopStopNotice::Now(None),
        };
        let told = match farewell {
            LoopStopNotice::Now(None) => false,
            LoopStopNotice::Now(Some(reason)) => {
                self.tell_to_stop(site, reason);
                false
            }
            LoopStopNotice::AfterStep(reason) => {
                match self.walk.as_ref().and_then(|walk| walk.leaves_since) {
                    None => self.tell_to_stop(site, reason),
                    Some(since) => now.saturating_sub(since) < run.step_grace_ms,
                }
            }
        };
        if !told {
            return self.ask_to_end(asked, now, run.grace_ms);
        }
        if let Some(walk) = &mut self.walk {
            walk.leaves_since.get_or_insert(now);
        }
    }

    /// Writes its stop file; whether that could be done.
    fn tell_to_stop(&self, site: &HostContext, reason: StopReason) -> bool {
        self.walk.as_ref().is_some_and(|walk| walk.module.ask_to_stop(reason, site.now()))
    }

    /// Asks the run to end.
    fn ask_to_end(&mut self, asked: AgentEndReason, now: u64, grace_ms: u64) {
        let Some(sitting) = &self.sitting else { return };
        let _ = sitter::stop_sitter(sitting, sitter::StopMode::Gently); // gone already is as good; its end is news either way
        self.asked = Some(asked);
        self.patience = KillEscalation::after_graceful_request(now, grace_ms);
    }

    /// Presses a sitter that does not end its run in time, at last by force: in a thread, as that may take seconds.
    fn press_sitter(&mut self, site: &Arc<HostContext>, now: u64) {
        let Some(sitting) = &self.sitting else { return };
        if self.asked.is_none() && self.waits.paused_until.is_some() {
            return self.patience.skip_elapsed(now); // so does its sitter
        }
        match self.patience.escalate_if_due(now, sitting) {
            KillAction::Wait => return,
            KillAction::Told => {}
            KillAction::Abandon => {
                let (dir, marker) = (self.followed.dir.clone(), run_marker(site, &self.followed.dir));
                start_effect_thread(site, "abandon", move |_| abandon_run(&dir, &marker));
            }
        }
        self.asked.get_or_insert(AgentEndReason::Overdue);
    }

    /// Keeps what the verdict may need; words are only shown.
    fn note_signals(&mut self, signals: Vec<Signal>) {
        let mut words = None; // the last that it said: of the others nobody sees anything
        for signal in signals {
            self.answered |= match &signal {
                Signal::ToolUse { .. } => true,
                Signal::Usage(usage) => usage.turns > 0,
                _ => false,
            };
            self.tally.hear(&signal);
            self.echo.hear(&signal);
            self.asking = match &signal {
                Signal::PermissionAsked { .. } | Signal::Question(_) => true,
                Signal::ToolUse { .. } | Signal::ToolDone | Signal::Text(_) => false,
                _ => self.asking,
            };
            match &signal {
                Signal::Text(text) => {
                    if is_reader_run(&self.followed.task) {
                        self.words.push_str(text);
                        self.words.push('\n');
                        // The answer is at the end.
                        let over = self.words.len().saturating_sub(REVIEW_MAX);
                        self.words.drain(..self.words.ceil_char_boundary(over));
                    }
                    if !text.trim_end().is_empty() {
                        words = Some(signal);
                    }
                    continue;
                }
                Signal::ToolUse { name, detail } => {
                    words = None;
                    let detail = detail.lines().next().unwrap_or_default();
                    self.live.words =
                        format!("[{name}] {detail}").trim_end().chars().take(WORDS_MAX).collect();
                }
                Signal::Stride(stride) => {
                    self.live.words = stride.to_string().chars().take(WORDS_MAX).collect();
                }
                Signal::Waiting { count } => {
                    if let Some(desk) = self.walk.as_mut().and_then(|walk| walk.desk.as_mut()) {
                        desk.note_waiting(*count);
                    }
                    continue;
                }
                Signal::Usage(_) => continue,
                Signal::Said(ControlSignal::Progress(percent)) => self.live.progress = Some(*percent),
                Signal::ToolDone | Signal::Context { .. } => continue,
                Signal::Cost(_)
                | Signal::Compacted
                | Signal::Allowance { .. }
                | Signal::Unauthorized { .. }
                | Signal::SessionGone
                | Signal::Started { .. }
                | Signal::Quota { .. }
                | Signal::Transient { .. }
                | Signal::PermissionAsked { .. }
                | Signal::Question(_)
                | Signal::Said(_)
                | Signal::Malformed { .. }
                | Signal::Finished { .. } => {}
            }
            // Only that it went on matters of a tool, and only since the last other word.
            let again = matches!(signal, Signal::ToolUse { .. })
                && matches!(self.seen.back(), Some(Signal::ToolUse { .. }));
            if again {
                continue;
            }
            if self.seen.len() == SEEN_MAX {
                self.seen.pop_front(); // the last control word wins
            }
            self.seen.push_back(signal);
        }
        if let Some(Signal::Text(text)) = words
            && let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty())
        {
            self.live.words = line.trim().chars().take(WORDS_MAX).collect();
        }
    }
}

fn exit_of(ended: &sitter::SitterEnd, asked: Option<AgentEndReason>) -> AgentExit {
    match (ended.cause, &ended.exit) {
        (_, sitter::ChildExit::NotStarted { message, denied, .. }) => {
            AgentExit::NotStarted { detail: message.clone(), hopeless: *denied }
        }
        (EndCause::Deadline, _) => AgentExit::Deadline,
        (EndCause::Asked, _) => asked.map_or(AgentExit::Asked, exit_for),
        (EndCause::Own, sitter::ChildExit::Code(code)) => AgentExit::Code(*code),
        (EndCause::Own, sitter::ChildExit::Signal(signal)) => AgentExit::Signal(*signal),
    }
}

fn exit_for(asked: AgentEndReason) -> AgentExit {
    match asked {
        AgentEndReason::Early(EarlyEndReason::Stopped) => AgentExit::Asked,
        AgentEndReason::Early(EarlyEndReason::Silent | EarlyEndReason::Unanswered) => AgentExit::Silent,
        AgentEndReason::Early(EarlyEndReason::Looping) => AgentExit::Looping,
        AgentEndReason::Early(EarlyEndReason::OverBudget(scope, what)) => {
            AgentExit::OverBudget { scope, what }
        }
        AgentEndReason::Early(EarlyEndReason::ContextUsedUp) => AgentExit::ContextUsedUp,
        AgentEndReason::Early(EarlyEndReason::IterationsUsed | EarlyEndReason::TimeUsed)
        | AgentEndReason::Overdue => AgentExit::Deadline,
    }
}

/// A number that changes when the agent commits, stages or makes files at the root: cheap, and enough beside the other
/// signs.
fn workspace_fingerprint(site: &HostContext, task: &Task) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    if let Some(workspace) = site.pool.find_workspace(&task.id.to_string()) {
        head_of(site, task).map(|head| head.as_str().to_owned()).hash(&mut hasher);
        for part in ["", ".git", ".git/index"] {
            let meta = std::fs::symlink_metadata(workspace.path().join(part)).ok();
            meta.and_then(|meta| meta.modified().ok()).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Notes that a run has left its workspace with all its processes.
fn note_vacated(site: &HostContext, followed: &FollowTarget) {
    let Some(workspace) = site.pool.find_workspace(&followed.task.id.to_string()) else { return };
    // Without the note the next one gets another folder, which costs time and nothing else.
    let _noted = workspace.note_vacated(&run_marker(site, &followed.dir));
}

//! The place of work: what performing needs, shared by the threads that perform.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex};

use landfall_host::clock::Clock;
use landfall_host::git::{BranchName, Oid, Pool, Repo, Store};
use landfall_model::gate::{GateReport, Seen};
use landfall_model::liveness::Class;
use landfall_model::pilot::Pilot;
use landfall_model::queue::{Queue, QueueNews};
use landfall_model::recovery::Pattern;
use landfall_model::resource;
use landfall_model::sprint::Sprint;
use landfall_model::{
    AccountState, Attempt, BatchId, Commit, Digest, Event, News, Spending, Spent, TaskId, Timestamp, Tree,
    Usage, Wait,
};

use crate::caches::CacheNotice;
use crate::core::Outside;
use crate::engine::Mail;
use crate::exchange::Desk;
use crate::folder::StateFolder;
use crate::interrupt::Interrupt;
use crate::meter::Meter;
use crate::prompts::Prompts;
use crate::settings::{Settings, Verify};
use crate::shortage::{self, Shortage, Shortages};
use crate::test_evidence::TestRuns;

/// Everything that performing an effect may need. One per engine, behind an `Arc`.
pub struct Site {
    /// Where the state is.
    pub folder: StateFolder,
    /// The person's repository.
    pub repo: Repo,
    /// The branch work lands on.
    pub branch: BranchName,
    /// The engine's own repository.
    pub store: Store,
    /// The workspaces.
    pub pool: Pool,
    /// What the person set.
    pub settings: Settings,
    /// The prompt templates.
    pub prompts: Prompts,
    /// The id of its journal, which every run folder carries.
    pub journal_id: String,
    /// Where its journal ends.
    pub end: Arc<landfall_store::End>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Our own executable: the sitter and the scripted agent are part of it.
    pub program: PathBuf,
    /// The environment agents and checks get.
    pub env: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    /// The engine's own environment, of which a profile may name more.
    pub(crate) environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    /// What has been spent.
    pub(crate) meter: Mutex<Meter>,
    /// Where news goes.
    pub(crate) mail: Sender<Mail>,
    /// Trees that passed, with what was seen.
    pub(crate) passes: Mutex<Passes>,
    /// What single checks showed on the base, by tree, section and command.
    pub(crate) baseline: Mutex<HashMap<(Tree, Digest, String), BaselineEntry>>,
    /// What was found out about the tests of works.
    pub(crate) test_runs: Mutex<TestRuns>,
    /// Held by whoever checks the base out in its own lane.
    pub(crate) base_lane: Mutex<()>,
    /// Verify sections by the base they were read from: a commit never changes.
    pub(crate) sections: Mutex<HashMap<Oid, Result<Verify, String>>>,
    /// Every place the base was moved to, by us or by the person: anywhere else it was put by a stranger.
    pub(crate) bases: Mutex<HashSet<Commit>>,
    /// Lanes that are not in use.
    pub(crate) lanes: Mutex<Vec<usize>>,
    /// Told when a lane is given back.
    pub(crate) lane_free: Condvar,
    /// Attempts whose agent a person wants to end: one that is not there yet must not begin. An
    /// attempt that was stopped never goes on, so none is taken out: there are as many as a person asked for in a run.
    pub(crate) stops: Mutex<BTreeMap<(TaskId, Attempt), Manner>>,
    /// Batches whose checks nobody waits for any more; what they come to is not believed.
    pub(crate) abandoned: Mutex<BTreeSet<BatchId>>,
    /// What a person sees of a run.
    pub view: Mutex<View>,
    /// The checks that run now, by their folders.
    pub(crate) checking: Mutex<BTreeMap<PathBuf, CheckStart>>,
    /// Notified when one of them is over.
    pub(crate) check_over: Condvar,
    /// The engine is stopping now: what a check came to no longer counts.
    pub(crate) interrupted: Arc<Interrupt>,
    /// Workspaces that are being given up.
    pub(crate) tidying: std::sync::atomic::AtomicUsize,
    /// Held by a landing. A check waits for it before it looks where the base is: what it merged with the base from
    /// before the landing would have to be merged and verified again.
    pub(crate) landing: Mutex<()>,
    /// Held while the base is compared with the person's branch.
    pub(crate) syncing: Mutex<()>,
    /// Who reads in the room of a task: the attempt it was made for, and the iteration once one is in it. Whoever has left gives
    /// up no room of the next.
    pub(crate) reading: Mutex<BTreeMap<TaskId, (Attempt, Option<u32>)>>,
    /// Where the person's branch was seen last, by us or by an engine before us: from there it only goes ahead, unless it
    /// was rewritten.
    pub(crate) theirs: Mutex<Option<Commit>>,
    /// What was seen of the remote that is pushed to.
    pub(crate) afar: Mutex<Afar>,
    /// The tracker of the project.
    pub(crate) desk: Desk,
    /// What failures of a step look like, and what is done about them.
    pub(crate) catalogue: Vec<Pattern>,
    /// Held by the agent that looks at a failure: there is one at a time.
    pub(crate) diagnosing: Mutex<bool>,
    /// Notified when the recovery agent is free again.
    pub(crate) diagnosed: Condvar,
    /// What tasks landed as: whoever needs them begins with it.
    pub(crate) landed: Mutex<HashMap<TaskId, Commit>>,
    /// How often the check of a tree failed while the kernel ended processes for lack of memory, by tree and command.
    pub(crate) oom_checks: Mutex<HashMap<(Tree, String), u32>>,
    /// What was written down about caches that a run does not get, or cannot change.
    pub(crate) cache_notices: Mutex<BTreeSet<CacheNotice>>,
    /// Whether names of the user's checkout are the same in large and small letters, once that was looked up.
    pub(crate) ignores_case: Mutex<Option<bool>>,
    /// What this machine has run out of, and what waits for it.
    pub(crate) shortages: Shortages,
    /// The folders of modules that show how their tasks stand: what changes there is nobody's to commit first.
    pub(crate) modules: Mutex<std::collections::BTreeSet<String>>,
}

/// What a check showed on the base, and when by the clock that never goes back.
#[derive(Debug, Clone)]
pub(crate) struct BaselineEntry {
    pub seen: Seen,
    pub at_ms: u64,
}

/// How an agent is to end that a person wants to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// After the step of its own loop.
    AfterStep,
    /// Now.
    Now,
}

/// What was seen of a remote, and when.
#[derive(Debug, Default)]
pub(crate) struct Afar {
    /// When it was last asked, by the clock that never goes back.
    pub asked_ms: Option<u64>,
    /// What a person must say before anything lands.
    pub trouble: Option<String>,
}

/// Trees that passed: tree, verify section, machine.
type PassKey = (Tree, Digest, Digest);

/// What was seen of trees that passed, the latest of them.
#[derive(Debug, Default)]
pub(crate) struct Passes {
    known: HashMap<PassKey, GateReport>,
    order: VecDeque<PassKey>,
}

const PASSES_MAX: usize = 1_000; // a base older than a thousand landings is verified again

impl Passes {
    /// Takes a pass in.
    pub fn note(&mut self, report: &GateReport) {
        let key = (report.tree.clone(), report.config.clone(), report.environment.clone());
        if self.known.insert(key.clone(), report.clone()).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > PASSES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// What was seen, if it passed.
    pub fn get(&self, key: &PassKey) -> Option<&GateReport> {
        self.known.get(key)
    }
}

/// What a person sees of a run, as it goes on.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// What each running agent is at.
    pub live: BTreeMap<TaskId, Live>,
    /// Why no agent is started, if the disk has too little room.
    pub low_disk: Option<String>,
    /// Why no agent starts on the base, if some want to.
    pub base_hold: Option<String>,
    /// What this machine has run out of: nothing is started meanwhile.
    pub shortage: Option<Shortage>,
    /// Those at the front of the line whose turn it is not, and why.
    pub turns: BTreeMap<TaskId, Wait>,
    /// Whether the engine was told to stop.
    pub stopping: bool,
    /// The budget that keeps agents from starting.
    pub spent: Option<Spent>,
    /// How much of an account's allowance is used, as its agents said last.
    pub allowances: BTreeMap<String, Allowance>,
    /// The accounts that are not open.
    pub shut: BTreeMap<String, AccountState>,
    /// The landing queue.
    pub queue: Queue,
    /// Who picks tasks, and pauses.
    pub pilot: Pilot,
    /// The sprint that is open.
    pub sprint: Option<Sprint>,
    /// Works under way that do not fit together as they stand, and in which files.
    pub clashes: BTreeMap<(TaskId, TaskId), Vec<String>>,
}

/// A check that began and has not ended.
#[derive(Debug, Clone)]
pub(crate) struct CheckStart {
    /// Whose verification it is part of: `T7-a2`, `B3-1`, `base`.
    pub name: String,
    /// What it is called.
    pub check: String,
    pub began_mono_ms: u64,
    pub limit_ms: u64,
}

/// A check that runs now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningCheck {
    /// What it verifies: `T7`, `B3`, `base`.
    pub of: String,
    /// What it is called.
    pub check: String,
    /// How long it has run.
    pub elapsed_ms: u64,
    /// How long it may.
    pub limit_ms: u64,
    /// The last line that it wrote.
    pub last_line: String,
}

impl Site {
    /// The checks that run now, and how far they are. None once the engine was told to stop at once: what they come to no
    /// longer counts.
    pub fn running_checks(&self) -> Vec<RunningCheck> {
        if self.interrupted.is_set() {
            return Vec::new();
        }
        // A copy: files are read without the lock, which a starting check waits for.
        let begun = self.checking.lock().expect("no thread panics while it holds it").clone();
        let now = self.clock.mono_ms();
        let running = begun.into_iter().map(|(dir, begun)| RunningCheck {
            of: begun.name.split('-').next().unwrap_or_default().to_owned(),
            check: begun.check,
            elapsed_ms: now.saturating_sub(begun.began_mono_ms),
            limit_ms: begun.limit_ms,
            last_line: last_line(&dir),
        });
        running.collect()
    }
}

/// The last line that a check wrote, to either stream: the one that was written to later.
fn last_line(dir: &std::path::Path) -> String {
    const TAIL_BYTES: u64 = 2_048;
    let written = |name: &str| {
        let path = dir.join(name);
        let meta = std::fs::metadata(&path).ok().filter(|meta| meta.len() > 0)?;
        Some((meta.modified().ok()?, path))
    };
    let newest = ["out.log", "err.log"].into_iter().filter_map(written).max();
    let text = newest.map(|(_, path)| crate::gate::tail(&path, TAIL_BYTES)).unwrap_or_default();
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

/// How much of an account's allowance is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// In per cent.
    pub used_percent: u8,
    /// When it resets, if the agent said.
    pub until: Option<Timestamp>,
}

/// What is known of a running agent before it ends.
#[derive(Debug, Clone, Default)]
pub struct Live {
    /// Its last words, one line.
    pub words: String,
    /// How far it says it is.
    pub progress: Option<u8>,
    /// What it used so far in this run.
    pub usage: Usage,
    /// Bytes it wrote.
    pub bytes: u64,
    /// What it is at.
    pub class: Option<Class>,
    /// The evidence for that.
    pub evidence: String,
    /// How long it has said nothing.
    pub quiet_ms: u64,
    /// The profile that works.
    pub profile: String,
    /// The model it uses, if it said.
    pub model: Option<String>,
    /// How full its context is, in per cent.
    pub context_percent: Option<u32>,
    /// How it is confined.
    pub sandbox: &'static str,
}

impl Site {
    /// The wall clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp(self.clock.now_ms())
    }

    /// What was spent in this run of the engine and what today, agents at work included.
    #[must_use]
    pub fn spending(&self) -> (Spending, Spending) {
        let meter = self.meter.lock().expect("no thread panics while it holds the meter");
        let live = meter.live.values().fold(Spending::default(), |sum, spent| sum.plus(*spent));
        let today = meter.ledger.since(crate::meter::day(self.now()).from);
        (meter.ledger.run().plus(live), today.plus(live))
    }

    fn meter(&self) -> std::sync::MutexGuard<'_, Meter> {
        self.meter.lock().expect("no thread panics while it holds the meter")
    }

    /// The base may be here: a fact says so, or is about to.
    pub(crate) fn trust(&self, base: &Commit) {
        self.bases.lock().expect("no thread panics while it holds the bases").insert(base.clone());
    }

    /// Whether the base was moved here by a landing or by the person.
    pub(crate) fn trusts(&self, base: &Commit) -> bool {
        self.bases.lock().expect("no thread panics while it holds the bases").contains(base)
    }

    /// Whether nobody waits for the check of this name: it is of a batch that is over.
    pub(crate) fn is_abandoned(&self, name: &str) -> bool {
        let batch = name.strip_prefix('B').and_then(|rest| rest.split('-').next()?.parse().ok()).map(BatchId);
        let abandoned = self.abandoned.lock().expect("no thread panics while it holds them");
        batch.is_some_and(|batch| abandoned.contains(&batch))
    }

    /// Whether a person wants the agent of this attempt to end.
    pub(crate) fn is_stopped(&self, task: TaskId, attempt: Attempt) -> bool {
        self.manner(task, attempt).is_some()
    }

    /// How the agent of this attempt is to end, if a person wants it to.
    pub(crate) fn manner(&self, task: TaskId, attempt: Attempt) -> Option<Manner> {
        let stops = self.stops.lock().expect("no thread panics while it holds the stops");
        stops.get(&(task, attempt)).copied()
    }

    /// A pass that is known of the same tree by the same rules in the same environment.
    #[must_use]
    pub fn known_pass(&self, wanted: &GateReport) -> Option<GateReport> {
        let key = (wanted.tree.clone(), wanted.config.clone(), wanted.environment.clone());
        let passes = self.passes.lock().expect("no thread panics while it holds the passes");
        passes.get(&key).map(|known| GateReport {
            commands: known.commands.clone(),
            reused: true,
            ..wanted.clone()
        })
    }

    /// Sends news of the landing queue to the engine.
    pub(crate) fn tell_queue(&self, news: QueueNews) {
        let failure = match &news {
            QueueNews::Failed { detail, .. } => shortage::note_and_try(self, detail),
            _ => None,
        };
        let news = match failure {
            Some(failure) => resource::queue_exhausted(news, failure),
            None => news,
        };
        let _ = self.mail.send(Mail::Queue(Box::new(news))); // the engine has left: recovery finds it out again
    }

    /// What was being done about a task was cut short by a stop: this run waits for it no longer, and the next one does it again.
    pub(crate) fn leave_to_next_run(&self, task: TaskId) {
        let _ = self.mail.send(Mail::CutShort(task)); // the engine has left: the journal expects it anyway
    }

    /// Sends news of a task to the engine.
    pub(crate) fn tell(&self, task: TaskId, news: News) {
        let failure = resource::failure_of(&news).and_then(|detail| shortage::note_and_try(self, detail));
        let news = match failure {
            Some(failure) => resource::exhausted(news, failure),
            None => news,
        };
        let _ = self.mail.send(Mail::News(task, Box::new(news))); // the engine has left: recovery finds it out again
    }
}

impl Outside for Site {
    fn now(&self) -> Timestamp {
        Self::now(self)
    }

    fn spent(&self) -> Option<Spent> {
        self.meter().spent(&self.settings.purse, Self::now(self))
    }

    fn live(&self, task: TaskId, spending: Option<Spending>) {
        match spending {
            Some(spending) => self.meter().live.insert(task, spending),
            None => self.meter().live.remove(&task),
        };
    }

    fn journalled(&self, at: Timestamp, spending: Spending) {
        self.meter().ledger.note(at, spending);
    }

    fn run_started(&self) {
        self.meter().ledger.run_started();
    }

    fn passed(&self, report: &GateReport) {
        self.passes.lock().expect("no thread panics while it holds the passes").note(report);
    }

    fn trust(&self, base: &Commit) {
        Self::trust(self, base);
    }

    fn learnt(&self, at: Timestamp, task: TaskId, event: &Event) {
        self.prompts.learn(at, task, event);
        if let Event::Landed { commit, .. } = event {
            self.landed.lock().expect("no thread panics while it holds it").insert(task, commit.clone());
        }
    }

    fn withdrawn(&self, number: u32) {
        self.prompts.withdraw(number);
    }

    fn consulted(&self, at: Timestamp, spending: Spending) {
        self.meter().ledger.note_aside(at, spending);
    }

    fn theirs(&self, commit: &Commit) {
        *self.theirs.lock().expect("no thread panics while it holds it") = Some(commit.clone());
    }
}

/// A commit of the model as git's own.
pub(crate) fn oid(commit: &Commit) -> Oid {
    commit.as_str().parse().expect("commits in the journal came from git")
}

/// A tree of the model as git's own.
pub(crate) fn tree_oid(tree: &Tree) -> Oid {
    tree.as_str().parse().expect("trees in the journal came from git")
}

/// git's own name as the model's.
pub(crate) fn commit(oid: &Oid) -> Commit {
    Commit::new(oid.as_str())
}

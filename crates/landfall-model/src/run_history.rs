//! The runs of a project, each with what became of its tasks: a fold of the journal.
//!
//! A run that lost its engine and the run that took over from it are one run for people: one night has one report,
//! however often the engine was killed in it.

use std::collections::{BTreeMap, BTreeSet};

use crate::pilot::PilotEvent;
use crate::{
    AgentUsage, Commit, EndCode, EndKind, Ending, EngineEvent, Event, Fact, JournalEntry, RunEnd, RunId,
    Task, TaskId, TaskState, TaskStatus, Timestamp, apply,
};

/// A run that starts later than this after the engine was lost is a new one: what is left of a night is over by then.
const TAKE_OVER_MS: i64 = 12 * 60 * 60 * 1000;

/// What has become of a task of a run. Each task of a run is in exactly one of these, so their counts add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskResult {
    /// It landed in the run.
    Landed,
    /// It was accepted without a landing in the run.
    Accepted,
    /// It failed, ran out, or was blocked.
    Failed,
    /// It waits for a person.
    NeedsYou,
    /// It waits for a task that has not landed: in the end for this one.
    Behind(TaskId),
    /// It waits for something that time or the engine ends.
    Waiting,
    /// It is being worked on.
    AtWork,
    /// It could start and has not been worked on.
    NotStarted,
    /// A person cancelled it.
    Cancelled,
}

/// What one task used in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskUsage {
    /// Iterations that ended.
    pub iterations: u32,
    /// Working time of its agents.
    pub agent_ms: u64,
    /// Tokens, turns, money.
    pub usage: AgentUsage,
}

/// A task of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskInRun {
    /// Which.
    pub id: TaskId,
    /// What has become of it.
    pub result: TaskResult,
    /// Whether it was worked on, landed or ended in the run.
    pub is_touched: bool,
    /// What it used in the run.
    pub used: TaskUsage,
    /// The commit it landed as in the run.
    pub commit: Option<Commit>,
}

/// A time without an engine within a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineDowntime {
    /// The last that the engine wrote.
    pub from: Timestamp,
    /// The next engine took over.
    pub to: Timestamp,
}

impl EngineDowntime {
    /// How long.
    #[must_use]
    pub fn length_ms(self) -> u64 {
        self.to.0.abs_diff(self.from.0)
    }
}

/// One run, over all engines that drove it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// The numbers under which engines drove it, oldest first. It is called after the first.
    pub ids: Vec<RunId>,
    /// When it began.
    pub began: Timestamp,
    /// When it ended; none while it goes on. If its engine was lost, the last that it wrote.
    pub ended: Option<Timestamp>,
    /// Why it ended.
    pub end: Option<RunEnd>,
    /// Times without an engine that another engine ended.
    pub down: Vec<EngineDowntime>,
    /// How long nothing began because of a pause. Time without an engine is no pause.
    pub paused_ms: u64,
    /// Its tasks, in the order of ids.
    pub tasks: Vec<TaskInRun>,
}

impl RunRecord {
    /// What it is called.
    #[must_use]
    pub fn id(&self) -> RunId {
        self.ids.first().copied().unwrap_or(RunId(0))
    }

    /// How many tasks have come to something like this.
    #[must_use]
    pub fn count_results(&self, is: impl Fn(TaskResult) -> bool) -> u64 {
        self.tasks.iter().filter(|task| is(task.result)).count() as u64
    }

    /// What all its tasks used.
    #[must_use]
    pub fn total_usage(&self) -> TaskUsage {
        self.tasks.iter().fold(TaskUsage::default(), |sum, TaskInRun { used, .. }| TaskUsage {
            iterations: sum.iterations.saturating_add(used.iterations),
            agent_ms: sum.agent_ms.saturating_add(used.agent_ms),
            usage: sum.usage.plus(used.usage),
        })
    }

    /// How long there was no engine.
    #[must_use]
    pub fn down_ms(&self) -> u64 {
        self.down.iter().map(|down| down.length_ms()).sum()
    }

    /// How often its engine was lost.
    #[must_use]
    pub fn engines_lost(&self) -> u64 {
        self.down.len() as u64 + u64::from(self.end == Some(RunEnd::Lost))
    }
}

/// The run that has not ended.
#[derive(Debug, Clone)]
struct OpenRun {
    ids: Vec<RunId>,
    began: Timestamp,
    /// Only for these tasks and their parts, if any are named.
    only: BTreeSet<TaskId>,
    /// Whether its engine was lost; then nothing has taken over yet.
    is_lost: bool,
    down: Vec<EngineDowntime>,
    paused_since: Option<Timestamp>,
    paused_ms: u64,
    used: BTreeMap<TaskId, TaskUsage>,
    landed: BTreeMap<TaskId, Commit>,
    /// The last that its engine wrote.
    last: Timestamp,
}

/// All runs of a journal, as far as it was heard.
#[derive(Debug, Clone, Default)]
pub struct RunHistory {
    tasks: BTreeMap<TaskId, Task>,
    open: Option<OpenRun>,
    over: Vec<RunRecord>,
}

impl RunHistory {
    /// Takes in the next fact of the journal.
    pub fn hear(&mut self, entry: &JournalEntry) {
        match &entry.fact {
            Fact::Engine(event) => self.apply_engine_event(entry.at, event),
            Fact::Task(id, event) => self.apply_task_event(entry.at, *id, event),
        }
    }

    fn apply_engine_event(&mut self, at: Timestamp, event: &EngineEvent) {
        match event {
            EngineEvent::RunStarted { run, only, .. } => return self.start(at, *run, only),
            EngineEvent::RunEnded { why: RunEnd::Lost, .. } => {
                if let Some(open) = &mut self.open {
                    open.is_lost = true;
                    open.stop_pause();
                }
                return;
            }
            EngineEvent::RunEnded { why, .. } => {
                if let Some(mut open) = self.open.take() {
                    open.last = at;
                    open.stop_pause();
                    self.over.push(self.to_record(open, Some((at, *why))));
                }
                return;
            }
            // The next engine writes this before it says that the last one was lost.
            EngineEvent::Started { .. } => return,
            _ => {}
        }
        let Some(open) = &mut self.open else { return };
        open.last = at;
        match event {
            EngineEvent::Pilot(PilotEvent::Paused { .. }) if open.paused_since.is_none() => {
                open.paused_since = Some(at);
            }
            EngineEvent::Pilot(PilotEvent::Resumed) => {
                open.stop_pause();
                open.paused_since = None;
            }
            _ => {}
        }
    }

    fn start(&mut self, at: Timestamp, run: RunId, only: &[TaskId]) {
        if let Some(open) = &mut self.open
            && at.0.saturating_sub(open.last.0) <= TAKE_OVER_MS
        {
            open.down.push(EngineDowntime { from: open.last, to: at });
            open.ids.push(run);
            // Whoever starts it again may name other tasks, or all.
            if only.is_empty() {
                open.only.clear();
            } else if !open.only.is_empty() {
                open.only.extend(only);
            }
            open.is_lost = false;
            open.last = at;
            open.paused_since = open.paused_since.map(|_| at);
            return;
        }
        if let Some(open) = self.open.take() {
            let last = open.last;
            self.over.push(self.to_record(open, Some((last, RunEnd::Lost))));
        }
        self.open = Some(OpenRun {
            ids: vec![run],
            began: at,
            only: only.iter().copied().collect(),
            is_lost: false,
            down: Vec::new(),
            paused_since: None,
            paused_ms: 0,
            used: BTreeMap::new(),
            landed: BTreeMap::new(),
            last: at,
        });
    }

    fn apply_task_event(&mut self, at: Timestamp, id: TaskId, event: &Event) {
        let task = self.tasks.remove(&id);
        let Ok(task) = apply(task, id, at, event) else { return }; // a journal that was read has none of these
        self.tasks.insert(id, task);
        let Some(open) = &mut self.open else { return };
        if !is_asked(event) {
            open.last = at;
        }
        match event {
            Event::Entered { .. } => {
                open.used.entry(id).or_default();
            }
            Event::IterationEnded { took_ms, usage, .. } => {
                let used = open.used.entry(id).or_default();
                used.iterations += 1;
                used.agent_ms = used.agent_ms.saturating_add(*took_ms);
                used.usage = used.usage.plus(*usage);
            }
            Event::Landed { commit, .. } => {
                open.used.entry(id).or_default(); // it may have been verified in an earlier run
                open.landed.insert(id, commit.clone());
            }
            // What ended in the run belongs to it, also where no agent worked on it.
            Event::Ended(_) => {
                open.used.entry(id).or_default();
            }
            _ => {}
        }
    }

    /// All runs, oldest first. `alive` says whether the engine of the last one is there.
    #[must_use]
    pub fn to_records(&self, alive: bool, now: Timestamp) -> Vec<RunRecord> {
        let mut records = self.over.clone();
        if let Some(mut open) = self.open.clone() {
            if alive && !open.is_lost {
                open.last = now;
            }
            open.stop_pause();
            let end = (!alive || open.is_lost).then_some((open.last, RunEnd::Lost));
            records.push(self.to_record(open, end));
        }
        records
    }

    fn to_record(&self, open: OpenRun, end: Option<(Timestamp, RunEnd)>) -> RunRecord {
        let tasks = self.tasks.values().filter(|task| {
            let wanted = open.only.is_empty() || self.is_part_of(task, &open.only);
            let open_now = wanted && !task.is_over() && task.state != TaskState::Draft;
            open_now || open.used.contains_key(&task.id)
        });
        let tasks = tasks.map(|task| TaskInRun {
            id: task.id,
            result: self.task_result(task, &open),
            is_touched: open.used.contains_key(&task.id),
            used: open.used.get(&task.id).copied().unwrap_or_default(),
            commit: open.landed.get(&task.id).cloned(),
        });
        RunRecord {
            tasks: tasks.collect(),
            ids: open.ids,
            began: open.began,
            ended: end.map(|(at, _)| at),
            end: end.map(|(_, why)| why),
            down: open.down,
            paused_ms: open.paused_ms,
        }
    }

    /// Whether a task is one of these, or a part of one.
    fn is_part_of(&self, task: &Task, named: &BTreeSet<TaskId>) -> bool {
        let mut seen = BTreeSet::new();
        let mut at = Some(task);
        while let Some(task) = at.filter(|task| seen.insert(task.id)) {
            if named.contains(&task.id) {
                return true;
            }
            at = task.spec.parent.and_then(|parent| self.tasks.get(&parent));
        }
        false
    }

    fn task_result(&self, task: &Task, open: &OpenRun) -> TaskResult {
        match &task.state {
            TaskState::Ended(ending) => match ending.kind {
                EndKind::Done if open.landed.contains_key(&task.id) => TaskResult::Landed,
                EndKind::Done => TaskResult::Accepted,
                EndKind::Failed | EndKind::Timeout | EndKind::Blocked => TaskResult::Failed,
                EndKind::Cancelled => TaskResult::Cancelled,
            },
            // What landed and is only tidied up, or followed up, has landed.
            _ if task.landed.is_some() && open.landed.contains_key(&task.id) => TaskResult::Landed,
            TaskState::Review { .. } => TaskResult::NeedsYou,
            TaskState::Waiting { wait, .. } if wait.owner_label() == landfall_facts::WaitOwner::You => {
                TaskResult::NeedsYou
            }
            TaskState::Waiting { .. } => TaskResult::Waiting,
            TaskState::Active { .. } => TaskResult::AtWork,
            TaskState::Ready { .. } if task.is_held() => TaskResult::NeedsYou,
            TaskState::Draft | TaskState::Ready { .. } => match self.find_root_blocker(task) {
                Some(need) => TaskResult::Behind(need),
                None if TaskStatus::for_task(task) == TaskStatus::Landing => TaskResult::AtWork,
                None if open.used.contains_key(&task.id) => TaskResult::Waiting,
                None => TaskResult::NotStarted,
            },
        }
    }

    /// The task at the root of what a task waits behind: one that gave up or was cancelled before one that only has its time.
    fn find_root_blocker(&self, task: &Task) -> Option<TaskId> {
        let unmet = |task: &Task| -> Vec<TaskId> {
            let is_met = |id: &TaskId| self.tasks.get(id).is_some_and(Task::unblocks_dependents);
            task.spec.needs.iter().filter(|id| !is_met(id)).copied().collect()
        };
        let mut seen = BTreeSet::from([task.id]);
        let mut line = unmet(task);
        let mut roots: Vec<TaskId> = Vec::new();
        while let Some(id) = line.pop() {
            if !seen.insert(id) {
                continue;
            }
            match self.tasks.get(&id).map(|need| (need.is_over(), unmet(need))) {
                Some((false, below)) if !below.is_empty() => line.extend(below),
                Some(_) | None => roots.push(id),
            }
        }
        let is_over = |id: &TaskId| self.tasks.get(id).is_none_or(Task::is_over);
        roots.sort_by_key(|id| (!is_over(id), *id));
        roots.first().copied().or_else(|| task.spec.needs.iter().find(|id| seen.contains(id)).copied())
    }
}

impl OpenRun {
    /// Counts the pause up to the last that the engine wrote.
    fn stop_pause(&mut self) {
        if let Some(since) = self.paused_since {
            self.paused_ms =
                self.paused_ms.saturating_add(self.last.0.saturating_sub(since.0).unsigned_abs());
            self.paused_since = Some(self.last);
        }
    }
}

/// Whether a fact may be written while no engine drives, because a person asked for it.
fn is_asked(event: &Event) -> bool {
    matches!(
        event,
        Event::Added { .. }
            | Event::Edited { .. }
            | Event::Offered { .. }
            | Event::Messaged { .. }
            | Event::Held { .. }
            | Event::Released
            | Event::LimitsSet { .. }
            | Event::Replied { .. }
            | Event::Reviewed { .. }
            | Event::Retried { .. }
            | Event::Signed { .. }
            | Event::StopAsked { .. }
            | Event::Ended(Ending { code: EndCode::Person, .. })
    )
}

//! What the tables hold, and how facts change them. Both stores carry out the same changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use landfall_model::gate::GateReport;
use landfall_model::{
    Attempt, Commit, Digest, EngineEvent, Event, Fact, JournalEntry, QueueEvent, RunEnd, RunId, Task, TaskId,
    TaskSize, TaskState, TaskStatus, Timestamp, Tree, WaitReason,
};

use crate::Seq;
use crate::tally::{CountChange, CountIncrement, CountKey, CountRow, WorkChange, WorkRow, count_changes};

/// A task as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// Its name.
    pub id: TaskId,
    /// In one line.
    pub title: String,
    /// From its own facts: a ready task may have unmet needs. See [`TaskRow::effective_status`].
    pub status: TaskStatus,
    /// The name of what it waits for.
    pub wait: Option<String>,
    /// The flow's own word.
    pub phase: Option<String>,
    /// The step it is in, or would go on with.
    pub step: Option<String>,
    /// 0 is the most urgent.
    pub priority: u8,
    /// How much work it is thought to be.
    pub size: Option<TaskSize>,
    /// Words on it.
    pub tags: Vec<String>,
    /// The task it is a part of.
    pub parent: Option<TaskId>,
    /// When it was asked for.
    pub created: Timestamp,
    /// When anything last happened to it.
    pub changed: Timestamp,
    /// When it was first worked on.
    pub started: Option<Timestamp>,
    /// The moment it waits for.
    pub due: Option<Timestamp>,
    /// Runs of the agent.
    pub iterations: u32,
    /// How many there may be.
    pub iterations_max: u32,
    /// The latest attempt.
    pub attempt: Attempt,
    /// Tokens read and written.
    pub tokens: u64,
    /// Money in millionths of a dollar.
    pub micro_usd: u64,
    /// The flow it is bound to, or wants.
    pub flow: Option<String>,
    /// The agent profile it wants.
    pub agent: Option<String>,
    /// Whether it is a draft.
    pub draft: bool,
    /// Whether tasks that need it may start.
    pub unblocks: bool,
    /// How many of its needs do not unblock it yet.
    pub unmet: u32,
    /// Where it landed.
    pub landed: Option<Commit>,
    /// The named reason of its end.
    pub ended: Option<String>,
    /// More about its wait or its end, in words.
    pub detail: String,
    /// What a person is asked: a question, or what to review.
    pub asks: Option<String>,
    /// Its latest event.
    pub seq: Seq,
    /// How many events it has.
    pub events: u64,
}

impl TaskRow {
    /// The row of a task, without what only its place among others and in the journal tells.
    #[must_use]
    pub fn from_task(task: &Task) -> Self {
        let (wait, detail, asks, ended) = match &task.state {
            TaskState::Ready { .. } if let Some(hold) = &task.hold => {
                (Some(WaitReason::Pause.word().to_owned()), hold.reason.clone(), None, None)
            }
            TaskState::Draft | TaskState::Ready { .. } | TaskState::Active { .. } => {
                (None, String::new(), None, None)
            }
            TaskState::Waiting { wait, .. } => {
                let asks = match wait {
                    WaitReason::Question { text } => Some(text.clone()),
                    WaitReason::Login { account, detail, .. } => {
                        Some(format!("the account `{account}` wants a login: {detail}"))
                    }
                    WaitReason::Conflict { base, files, .. } => Some(format!(
                        "resolve its conflict with {} in {}",
                        base.short_hash(),
                        files.join(", ")
                    )),
                    WaitReason::Dependency(_)
                    | WaitReason::Slot
                    | WaitReason::Turn(_)
                    | WaitReason::Quota { .. }
                    | WaitReason::Budget { .. }
                    | WaitReason::Backoff { .. }
                    | WaitReason::Disk { .. }
                    | WaitReason::Pause
                    | WaitReason::Parts
                    | WaitReason::Blockers { .. }
                    | WaitReason::GateBroken { .. } => None,
                };
                (Some(wait.word().to_owned()), wait_detail(wait), asks, None)
            }
            TaskState::Review { .. } => {
                let list = task.concerns.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                (None, list.clone(), Some(list), None)
            }
            TaskState::Ended(ending) => {
                (None, ending.detail.clone(), None, Some(ending.code.word().to_owned()))
            }
        };
        let usage = task.counters.usage;
        Self {
            id: task.id,
            title: task.spec.title.clone(),
            status: TaskStatus::for_task(task),
            wait,
            phase: task.phase().map(ToOwned::to_owned),
            step: task.step().map(|step| step.as_str().to_owned()),
            priority: task.spec.priority,
            size: task.spec.size,
            tags: task.spec.tags.iter().map(|tag| tag.as_str().to_owned()).collect(),
            parent: task.spec.parent,
            created: task.created,
            changed: task.changed,
            started: None,
            due: task.due_at(),
            iterations: task.counters.iterations,
            iterations_max: task.limits.iterations_max,
            attempt: task.attempt,
            tokens: cap_to_i64(usage.tokens_in.saturating_add(usage.tokens_out)),
            micro_usd: cap_to_i64(usage.micro_usd),
            flow: task.flow.as_ref().map(|flow| flow.name.clone()).or_else(|| task.spec.flow.clone()),
            agent: task.spec.agent.clone(),
            draft: task.spec.draft,
            unblocks: task.unblocks_dependents(),
            unmet: 0,
            landed: task.landed.as_ref().map(|landed| landed.commit.clone()),
            ended,
            detail,
            asks,
            seq: Seq::ZERO,
            events: 0,
        }
    }

    /// The status among others: a ready task with unmet needs waits.
    #[must_use]
    pub fn effective_status(&self) -> TaskStatus {
        match self.status {
            TaskStatus::Ready if self.unmet > 0 => TaskStatus::Waiting,
            own => own,
        }
    }

    /// What a row must still come to when it is read. `unmet` is added on top rather than hashed, so that it can
    /// be counted up and down in place; two bits are left free for that.
    pub(crate) fn compute_checksum(&self, buffer: &mut String) -> i64 {
        buffer.clear();
        let text = |buffer: &mut String, text: Option<&str>| match text {
            Some(text) => write!(buffer, "{}:{text}", text.len()).expect("a string takes all"),
            None => buffer.push('-'),
        };
        let opt = |buffer: &mut String, number: Option<i64>| match number {
            Some(number) => write!(buffer, "{number},").expect("a string takes all"),
            None => buffer.push('-'),
        };
        write!(
            buffer,
            "{} {} {} {} {} {} {} {} {} {} {} {} {} ",
            self.id.0,
            self.seq,
            self.events,
            self.priority,
            self.created.0,
            self.changed.0,
            self.iterations,
            self.iterations_max,
            self.attempt.0,
            self.tokens,
            self.micro_usd,
            u8::from(self.draft),
            u8::from(self.unblocks),
        )
        .expect("a string takes all");
        opt(buffer, self.parent.map(|parent| i64::from(parent.0)));
        opt(buffer, self.due.map(|due| due.0));
        opt(buffer, self.started.map(|started| started.0));
        text(buffer, Some(&self.title));
        text(buffer, Some(self.status.wire_name()));
        text(buffer, self.wait.as_deref());
        text(buffer, self.phase.as_deref());
        text(buffer, self.step.as_deref());
        text(buffer, self.size.map(size_word));
        for tag in &self.tags {
            text(buffer, Some(tag));
        }
        text(buffer, self.flow.as_deref());
        text(buffer, self.agent.as_deref());
        text(buffer, self.landed.as_ref().map(Commit::as_str));
        text(buffer, self.ended.as_deref());
        text(buffer, Some(&self.detail));
        text(buffer, self.asks.as_deref());
        let hash = blake3::hash(buffer.as_bytes());
        let first: [u8; 8] = hash.as_bytes()[..8].try_into().expect("a hash has 32 bytes");
        i64::from_le_bytes(first) / 4 + i64::from(self.unmet)
    }
}

/// The word of a size in the tables.
pub(crate) fn size_word(size: TaskSize) -> &'static str {
    match size {
        TaskSize::XS => "XS",
        TaskSize::S => "S",
        TaskSize::M => "M",
        TaskSize::L => "L",
        TaskSize::XL => "XL",
    }
}

/// Beside the end of a wait that no agent named.
pub const GUESS: &str = "a guess: the agent named no reset";

fn wait_detail(wait: &WaitReason) -> String {
    match wait {
        WaitReason::Dependency(needs) => needs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        WaitReason::Slot
        | WaitReason::Quota { guessed: false, .. }
        | WaitReason::Pause
        | WaitReason::Parts => String::new(),
        WaitReason::Quota { guessed: true, .. } => GUESS.to_owned(),
        WaitReason::Blockers { by } => by.join(", "),
        WaitReason::Turn(turn) => turn.to_string(),
        WaitReason::Login { account, detail, .. } => format!("{account}: {detail}"),
        WaitReason::Budget { what, .. } => what.clone(),
        WaitReason::Question { text } => text.clone(),
        WaitReason::Backoff { cause, .. } => cause.clone(),
        WaitReason::Disk { detail } => detail.clone(),
        WaitReason::Conflict { files, .. } => files.join(", "),
        WaitReason::GateBroken { command, detail } => format!("{command}: {detail}"),
    }
}

/// SQLite has no unsigned numbers; a figure beyond this is nonsense anyway.
fn cap_to_i64(figure: u64) -> u64 {
    figure.min(i64::MAX as u64)
}

/// A run as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Its number.
    pub id: RunId,
    /// When it began.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Why it ended.
    pub why: Option<RunEnd>,
    /// How many slots it had.
    pub slots: u32,
}

/// A green verification of one tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassRow {
    /// Of this tree.
    pub tree: Tree,
    /// By this verify section.
    pub config: Digest,
    /// On this machine.
    pub environment: Digest,
    /// The event that says so.
    pub seq: Seq,
    /// The task it was made for; none when the base was measured, or several tasks together.
    pub task: Option<TaskId>,
}

/// Where the base branch stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BaseState {
    /// In the store.
    pub commit: Option<Commit>,
    /// In the person's repository.
    pub published: Option<Commit>,
    /// Why the person's repository is behind, if something holds it.
    pub held: Option<String>,
}

/// All tables at once, in the order of their keys: to compare, and to look for damage.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tables {
    /// Tasks by id.
    pub tasks: Vec<TaskRow>,
    /// Who needs whom.
    pub needs: Vec<(TaskId, TaskId)>,
    /// Runs by number.
    pub runs: Vec<RunRow>,
    /// Passes by tree.
    pub passes: Vec<PassRow>,
    /// The base.
    pub base: BaseState,
    /// What is counted, by slot.
    pub counts: Vec<CountRow>,
    /// What is known of the work on each task.
    pub work: Vec<(TaskId, WorkRow)>,
}

impl Tables {
    /// The first difference, in words.
    #[must_use]
    pub fn first_difference(&self, other: &Self) -> Option<String> {
        fn first<T: PartialEq + std::fmt::Debug>(what: &str, ours: &[T], theirs: &[T]) -> Option<String> {
            let longest = ours.len().max(theirs.len());
            (0..longest)
                .find(|at| ours.get(*at) != theirs.get(*at))
                .map(|at| format!("{what} {at}: {:?} is not {:?}", ours.get(at), theirs.get(at)))
        }
        first("task", &self.tasks, &other.tasks)
            .or_else(|| first("need", &self.needs, &other.needs))
            .or_else(|| first("run", &self.runs, &other.runs))
            .or_else(|| first("pass", &self.passes, &other.passes))
            .or_else(|| first("count", &self.counts, &other.counts))
            .or_else(|| first("work", &self.work, &other.work))
            .or_else(|| {
                (self.base != other.base).then(|| format!("base: {:?} is not {:?}", self.base, other.base))
            })
    }
}

/// One change to the tables. Where an event's number is wanted, `nth` counts within the batch, from 0.
#[derive(Debug, Clone)]
pub(crate) enum TableChange {
    /// A task is now like this. Its `events` are to be added; `started` counts only if it had none.
    Task { row: Box<TaskRow>, nth: u64, needs: Option<Vec<TaskId>> },
    /// A tree passed. An earlier pass stays.
    Pass { tree: Tree, config: Digest, environment: Digest, task: Option<TaskId>, nth: u64 },
    /// A run began.
    RunStarted { run: RunId, at: Timestamp, slots: u32 },
    /// A run ended.
    RunEnded { run: RunId, at: Timestamp, why: RunEnd },
    /// The base moved.
    BaseMoved { to: Commit },
    /// The base was published.
    Published { commit: Commit },
    /// Publishing is held up.
    Held { reason: String },
    /// Something is counted.
    Tally(CountChange),
}

/// What a batch does to the tables.
pub(crate) fn collect_changes(entries: &[JournalEntry], tasks: &[Arc<Task>]) -> Vec<TableChange> {
    let mut marks: HashMap<TaskId, TaskEventMarks> = HashMap::with_capacity(tasks.len());
    let mut changes = Vec::with_capacity(tasks.len());
    for (nth, entry) in (0..).zip(entries) {
        if let Fact::Task(task, event) = &entry.fact {
            marks.entry(*task).or_default().note_event(nth, entry.at, event);
        }
        changes.extend(change_of(nth, entry));
        changes.extend(count_changes(entry).into_iter().map(TableChange::Tally));
    }
    for task in tasks {
        let marks = marks.remove(&task.id).unwrap_or_default();
        if marks.events > 0 {
            changes.push(marks.into_task_change(task));
        }
    }
    changes
}

/// What a fact does to the tables besides the row of its task.
pub(crate) fn change_of(nth: u64, entry: &JournalEntry) -> Option<TableChange> {
    let pass = |report: &GateReport, task| {
        report.outcome().is_green().then(|| TableChange::Pass {
            tree: report.tree.clone(),
            config: report.config.clone(),
            environment: report.environment.clone(),
            task,
            nth,
        })
    };
    match &entry.fact {
        Fact::Task(task, Event::Verified { report, .. }) => pass(report, Some(*task)),
        Fact::Task(..) => None,
        Fact::Engine(event) => match event {
            EngineEvent::Started { .. }
            | EngineEvent::Account { .. }
            | EngineEvent::DiscoveryDropped { .. }
            | EngineEvent::Consulted { .. }
            | EngineEvent::Auto(_)
            | EngineEvent::Haul(_) => None,
            EngineEvent::RunStarted { run, slots, only: _ } => {
                Some(TableChange::RunStarted { run: *run, at: entry.at, slots: *slots })
            }
            EngineEvent::RunEnded { run, why } => {
                Some(TableChange::RunEnded { run: *run, at: entry.at, why: *why })
            }
            EngineEvent::BaseMoved { to, .. } => Some(TableChange::BaseMoved { to: to.clone() }),
            EngineEvent::Published { commit, .. } => Some(TableChange::Published { commit: commit.clone() }),
            EngineEvent::PublishHeld { reason, .. } => Some(TableChange::Held { reason: reason.clone() }),
            EngineEvent::Measured { report } | EngineEvent::Queue(QueueEvent::Checked { report, .. }) => {
                pass(report, None)
            }
            // What is asked of these is answered from the facts themselves; see `Autopilot`.
            EngineEvent::Queue(
                QueueEvent::Formed { .. }
                | QueueEvent::Built { .. }
                | QueueEvent::CheckBegan { .. }
                | QueueEvent::Doubted { .. }
                | QueueEvent::LandingBegan { .. }
                | QueueEvent::Over { .. }
                | QueueEvent::Held { .. }
                | QueueEvent::Resumed,
            )
            | EngineEvent::Pilot(_)
            | EngineEvent::Sprint(_)
            | EngineEvent::Checkpoint(_) => None,
        },
    }
}

/// What a task's row takes from its events rather than from the task.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskEventMarks {
    nth: u64,
    events: u64,
    started: Option<Timestamp>,
    respecified: bool,
}

impl TaskEventMarks {
    pub fn note_event(&mut self, nth: u64, at: Timestamp, event: &Event) {
        self.nth = nth;
        self.events += 1;
        match event {
            Event::Entered { .. } if self.started.is_none() => self.started = Some(at),
            Event::Added { .. } | Event::Edited { .. } => self.respecified = true,
            _ => {}
        }
    }

    pub fn into_task_change(self, task: &Task) -> TableChange {
        let mut row = TaskRow::from_task(task);
        row.events = self.events;
        row.started = self.started;
        let needs = self.respecified.then(|| task.spec.needs.iter().copied().collect());
        TableChange::Task { row: Box::new(row), nth: self.nth, needs }
    }
}

/// The tables, in memory.
#[derive(Debug, Default)]
pub(crate) struct InMemoryTables {
    tasks: BTreeMap<TaskId, TaskRow>,
    needs: BTreeSet<(TaskId, TaskId)>,
    /// The needs, the other way round.
    needed: BTreeSet<(TaskId, TaskId)>,
    runs: BTreeMap<RunId, RunRow>,
    passes: BTreeMap<(Tree, Digest, Digest), PassRow>,
    base: BaseState,
    counts: BTreeMap<(i64, &'static str, String), u64>,
    work: BTreeMap<TaskId, WorkRow>,
}

impl InMemoryTables {
    pub fn to_tables(&self) -> Tables {
        Tables {
            tasks: self.tasks.values().cloned().collect(),
            needs: self.needs.iter().copied().collect(),
            runs: self.runs.values().cloned().collect(),
            passes: self.passes.values().cloned().collect(),
            base: self.base.clone(),
            counts: {
                let mut rows: Vec<CountRow> = self
                    .counts
                    .iter()
                    .map(|((slot, what, key), many)| (*slot, (*what).to_owned(), key.clone(), *many))
                    .collect();
                rows.sort();
                rows
            },
            work: self.work.iter().map(|(task, row)| (*task, row.clone())).collect(),
        }
    }

    /// Carries out one change of a batch whose first event is `first`.
    pub fn apply_change(&mut self, first: Seq, change: TableChange) {
        match change {
            TableChange::Task { mut row, nth, needs } => {
                let id = row.id;
                row.seq = Seq(first.0 + nth);
                let before = self.tasks.get(&id);
                row.events += before.map_or(0, |before| before.events);
                row.started = before.and_then(|before| before.started).or(row.started);
                self.tasks.insert(id, *row);
                if let Some(needs) = needs {
                    for (_, need) in pairs_of_task(&self.needs, id) {
                        self.needs.remove(&(id, need));
                        self.needed.remove(&(need, id));
                    }
                    self.needs.extend(needs.iter().map(|need| (id, *need)));
                    self.needed.extend(needs.iter().map(|need| (*need, id)));
                }
                self.count_unmet(id);
                for (_, dependent) in pairs_of_task(&self.needed, id) {
                    self.count_unmet(dependent);
                }
            }
            TableChange::Pass { tree, config, environment, task, nth } => {
                let key = (tree.clone(), config.clone(), environment.clone());
                let seq = Seq(first.0 + nth);
                self.passes.entry(key).or_insert(PassRow { tree, config, environment, seq, task });
            }
            TableChange::RunStarted { run, at, slots } => {
                self.runs.insert(run, RunRow { id: run, started: at, ended: None, why: None, slots });
            }
            TableChange::RunEnded { run, at, why } => {
                if let Some(row) = self.runs.get_mut(&run) {
                    (row.ended, row.why) = (Some(at), Some(why));
                }
            }
            TableChange::BaseMoved { to } => self.base.commit = Some(to),
            TableChange::Published { commit } => {
                (self.base.published, self.base.held) = (Some(commit), None);
            }
            TableChange::Held { reason } => self.base.held = Some(reason),
            TableChange::Tally(CountChange::Count(count)) => self.add_count(count),
            TableChange::Tally(CountChange::Mark(task, mark)) => {
                let work = self.work.entry(task).or_default();
                match mark {
                    WorkChange::Profile(profile) => work.profile = Some(profile),
                    WorkChange::Landed(at) => work.done = Some(at),
                    WorkChange::Accepted(at) => work.done = work.done.or(Some(at)),
                    WorkChange::Opinion(said) => {
                        work.rounds += 1;
                        work.said = said.map(str::to_owned).or(work.said.take());
                    }
                }
            }
        }
    }

    fn add_count(&mut self, CountIncrement { slot, what, key, by }: CountIncrement) {
        let work = |task: &TaskId| self.work.get(task);
        let key = match key {
            CountKey::Word(word) => word,
            CountKey::Profile(task) => work(&task).and_then(|it| it.profile.clone()).unwrap_or_default(),
            CountKey::Opinion(task, person) => match work(&task).and_then(|it| it.said.as_ref()) {
                Some(said) => format!("{said}/{person}"),
                None => return,
            },
        };
        *self.counts.entry((slot, what.word(), key)).or_default() += by;
    }

    fn count_unmet(&mut self, task: TaskId) {
        let met = |need: &TaskId| self.tasks.get(need).is_some_and(|row| row.unblocks);
        let unmet = pairs_of_task(&self.needs, task).iter().filter(|(_, need)| !met(need)).count();
        if let Some(row) = self.tasks.get_mut(&task) {
            row.unmet = u32::try_from(unmet).unwrap_or(u32::MAX);
        }
    }
}

fn pairs_of_task(set: &BTreeSet<(TaskId, TaskId)>, first: TaskId) -> Vec<(TaskId, TaskId)> {
    set.range((first, TaskId(0))..=(first, TaskId(u32::MAX))).copied().collect()
}

/// The word of a run's end in the tables.
pub(crate) fn run_end_word(why: RunEnd) -> &'static str {
    match why {
        RunEnd::NothingLeft => "nothing-left",
        RunEnd::Drained => "drained",
        RunEnd::Interrupted => "interrupted",
        RunEnd::Paused => "paused",
        RunEnd::Goal => "goal",
        RunEnd::OneDone => "one-done",
        RunEnd::Spent => "spent",
        RunEnd::Lost => "lost",
    }
}

/// The run's end a word of the tables means.
pub(crate) fn run_end_from(word: &str) -> Option<RunEnd> {
    [
        RunEnd::NothingLeft,
        RunEnd::Drained,
        RunEnd::Interrupted,
        RunEnd::Paused,
        RunEnd::Goal,
        RunEnd::OneDone,
        RunEnd::Spent,
        RunEnd::Lost,
    ]
    .into_iter()
    .find(|why| run_end_word(*why) == word)
}

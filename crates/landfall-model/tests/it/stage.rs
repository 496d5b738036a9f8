//! A stage for the landing queue alone: tasks that stand in line, a repository that merges what it is told to, and a
//! log that is read like a story: `news → what tasks hear, the queue's facts ! orders`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use expect_test::Expect;
use landfall_model::gate::{CheckOutcome, GateReport};
use landfall_model::queue::{
    self, BatchDoing, BatchEnd, BatchExclusion, BatchMember, BatchPrefix, HoldReason, Queue, QueueDecision,
    QueuePolicy,
};
use landfall_model::{
    AgentAssignment, AgentDriveStyle, Attempt, AttemptStart, BatchId, Commit, EngineEvent, Event, Fact,
    IntakeState, JournalEntry, News, POLL_MS, QueueEffect, QueueEvent, QueueNews, RunId, StepName, Task,
    TaskId, TaskInput, TaskLimits, TaskSpec, TaskState, Timestamp, Tree, decide_and_apply,
};

use crate::flows_used::loops;
use crate::sim::{fold, read_queue};
use crate::story::{command, report};

/// The queue, whoever stands in it, and what is under way.
#[derive(Clone)]
pub struct Stage {
    pub tasks: BTreeMap<TaskId, Task>,
    pub queue: Queue,
    pub policy: QueuePolicy,
    pub at: Timestamp,
    pub journal: Vec<JournalEntry>,
    pub orders: Vec<QueueEffect>,
    pub base: Commit,
    /// Every commit the base ever was, with whoever landed by it.
    pub history: Vec<(Commit, Vec<TaskId>)>,
    pub unmet: BTreeSet<TaskId>,
    /// Verifications that ran.
    pub checks: usize,
    pub ejected: Vec<TaskId>,
    pub told: String,
}

impl Stage {
    pub fn new() -> Self {
        Self {
            tasks: BTreeMap::new(),
            queue: Queue::default(),
            policy: QueuePolicy::default(),
            at: Timestamp(1_000),
            journal: Vec::new(),
            orders: Vec::new(),
            base: Commit::new("root"),
            history: Vec::new(),
            unmet: BTreeSet::new(),
            checks: 0,
            ejected: Vec::new(),
            told: String::new(),
        }
    }

    /// The same with so many tasks in line.
    pub fn with(mut self, tasks: u32) -> Self {
        (1..=tasks).for_each(|id| self.stand(id));
        self
    }

    pub fn policy(mut self, change: impl Fn(&mut QueuePolicy)) -> Self {
        change(&mut self.policy);
        self
    }

    /// A new task comes to stand in line, after all others.
    pub fn stand(&mut self, id: u32) {
        self.stand_as(id, 5);
    }

    pub fn stand_as(&mut self, id: u32, priority: u8) {
        self.at = self.at.plus_ms(1);
        let mut spec = TaskSpec::new("a task").expect("a title");
        spec.priority = priority;
        let driving = AgentAssignment {
            profile: "main".to_owned(),
            account: "main".to_owned(),
            style: AgentDriveStyle::Fresh,
        };
        self.fact(TaskId(id), Event::Added { spec });
        self.fact(TaskId(id), Event::Offered { head: Commit::new(&format!("h{id}")) });
        self.fact(TaskId(id), Event::Bound { flow: loops(), limits: TaskLimits::default(), driving });
        self.enter(id, AttemptStart::Queue);
    }

    /// A task enters its landing: in line, or as journals from before the queue say it.
    pub fn enter(&mut self, id: u32, opening: AttemptStart) {
        let attempt = Attempt(self.tasks[&TaskId(id)].attempt.0 + 1);
        let (step, run) = (StepName::new("land"), RunId(1));
        self.fact(TaskId(id), Event::Entered { attempt, step, run, opening });
    }

    fn fact(&mut self, id: TaskId, event: Event) {
        let task =
            landfall_model::apply(self.tasks.remove(&id), id, self.at, &event).expect("a fact that can be");
        self.queue.note(id, &event);
        self.queue.update_task(&task);
        self.tasks.insert(id, task);
        self.journal.push(JournalEntry { at: self.at, fact: Fact::Task(id, event) });
    }

    // ── what the engine does ─────────────────────────────────────────────────────────────────────────────

    /// A task hears something. Says what came of it.
    pub fn hear_task(&mut self, id: TaskId, news: News) -> String {
        let input = TaskInput {
            at: self.at,
            drive: IntakeState::Running,
            spent: None,
            attended: true,
            poll_ms: POLL_MS,
            news,
        };
        match decide_and_apply(&self.tasks[&id], &input) {
            Ok((_, decision)) => {
                let word = decision.events.first().map_or("nothing", |event| event.name()).to_owned();
                for event in decision.events {
                    if let Event::Ejected { .. } = &event {
                        self.ejected.push(id);
                    }
                    self.fact(id, event);
                }
                format!("{id} {word}")
            }
            Err(refusal) => format!("{id} ✗ {refusal}"),
        }
    }

    pub fn hear(&mut self, name: &str, news: &QueueNews) {
        let decision =
            queue::decide(&self.queue, &self.policy, self.at, news, &|id| !self.unmet.contains(&id));
        self.carry_out(name, decision);
    }

    fn carry_out(&mut self, name: &str, decision: QueueDecision) {
        let mut said: Vec<String> = Vec::new();
        for (id, news) in decision.tells {
            said.push(self.hear_task(id, news));
        }
        for event in decision.events {
            said.push(fact_word(&event));
            self.queue.apply(self.at, &event).expect("what was decided can be");
            self.journal.push(JournalEntry { at: self.at, fact: Fact::Engine(EngineEvent::Queue(event)) });
        }
        let mut ordered = String::new();
        for effect in decision.effects {
            write!(ordered, " ! {}", order_word(&effect)).expect("a string takes it");
            self.perform(effect);
        }
        let said = if said.is_empty() { "nothing".to_owned() } else { said.join(", ") };
        writeln!(self.told, "{name} → {said}{ordered}").expect("a string takes it");
    }

    fn perform(&mut self, effect: QueueEffect) {
        match effect {
            QueueEffect::Abandon { batch } => self.orders.retain(|order| batch_of(order) != batch),
            order => {
                let other = self.orders.iter().find(|other| batch_of(other) == batch_of(&order));
                assert_eq!(other, None, "{order:?} was ordered meanwhile");
                self.orders.push(order);
            }
        }
    }

    /// The engine is gone; another one reads the journal.
    pub fn restart(&mut self) {
        let tasks = fold(&self.journal);
        self.queue = read_queue(&self.journal, &tasks);
        self.tasks = tasks.into_iter().map(|task| (task.id, task)).collect();
        self.orders.clear();
        let astray: Vec<_> = self.tasks.values().filter(|task| self.queue.is_astray(task)).cloned().collect();
        let mut said: Vec<String> = Vec::new();
        for task in astray {
            said.push(self.hear_task(task.id, News::LandUnsure { attempt: task.attempt }));
        }
        for effect in self.queue.expected_effects() {
            said.push(format!("! {}", order_word(&effect)));
            self.perform(effect);
        }
        writeln!(self.told, "restart → {}", said.join(", ")).expect("a string takes it");
        self.look();
    }

    // ── what happens ─────────────────────────────────────────────────────────────────────────────────────

    pub fn look(&mut self) {
        self.hear("look", &QueueNews::Look);
    }

    pub fn wait(&mut self, ms: u64) {
        self.at = self.at.plus_ms(ms);
    }

    /// Takes the order of a batch off the list.
    fn take(&mut self, batch: u32) -> QueueEffect {
        let at = self.orders.iter().position(|order| batch_of(order) == BatchId(batch));
        self.orders
            .swap_remove(at.unwrap_or_else(|| panic!("nothing is under way for B{batch}:\n{}", self.told)))
    }

    /// What merging the members of a batch comes to when some are left out.
    pub fn merged(&mut self, batch: u32, mut out: Vec<(u32, BatchExclusion)>) -> QueueNews {
        let QueueEffect::Build { on, members, .. } = self.take(batch) else {
            panic!("B{batch} is not built")
        };
        let base = on.unwrap_or_else(|| self.base.clone());
        for member in &members {
            if let Some((commit, _)) = self.history.iter().find(|(_, tasks)| tasks.contains(&member.task)) {
                let candidate = self.tasks[&member.task].landing.clone().expect("its landing was ordered");
                assert_eq!(candidate.commit, *commit);
                out.push((
                    member.task.0,
                    BatchExclusion::Landed { candidate, proof: "it is there".to_owned() },
                ));
            }
        }
        let is_in = |member: &&BatchMember| !out.iter().any(|(task, _)| TaskId(*task) == member.task);
        let heads: Vec<Commit> = members.iter().filter(is_in).map(|member| member.head.clone()).collect();
        let prefixes = (1..=heads.len()).map(|count| prefix(batch, &base, &heads[..count])).collect();
        let left_out = out.into_iter().map(|(task, why)| (TaskId(task), why)).collect();
        QueueNews::Built { batch: BatchId(batch), base, prefixes, left_out, resolved: Vec::new() }
    }

    pub fn built(&mut self, batch: u32) {
        self.built_without(batch, Vec::new());
    }

    pub fn built_without(&mut self, batch: u32, out: Vec<(u32, BatchExclusion)>) {
        let news = self.merged(batch, out);
        self.hear(&format!("B{batch} merged"), &news);
    }

    pub fn checked(&mut self, batch: u32, outcome: CheckOutcome) {
        let (name, news) = self.seen(batch, outcome, false);
        self.hear(&name, &news);
    }

    /// A pass of the same tree was taken over.
    pub fn reused(&mut self, batch: u32) {
        let (name, news) = self.seen(batch, CheckOutcome::Pass, true);
        self.hear(&format!("{name}, reused"), &news);
    }

    /// What verifying the beginning of a batch that was ordered comes to.
    pub fn seen(&mut self, batch: u32, outcome: CheckOutcome, reused: bool) -> (String, QueueNews) {
        let QueueEffect::Check { count, base, heads, prefix, .. } = self.take(batch) else {
            panic!("B{batch} is not verified")
        };
        self.checks += usize::from(!reused);
        let report = GateReport {
            base,
            head: heads.last().expect("somebody").clone(),
            commit: prefix.commit,
            tree: prefix.tree,
            reused,
            ..report(vec![command("tests", outcome)])
        };
        let name = format!("B{batch}/{count} {}", outcome.word());
        (name, QueueNews::Checked { batch: BatchId(batch), count, report })
    }

    /// Moves the base, if it is where it should be, and says what came of it.
    pub fn land(&mut self, batch: u32) -> QueueNews {
        let QueueEffect::Land { base, members, prefix, .. } = self.take(batch) else {
            panic!("B{batch} does not land")
        };
        let id = BatchId(batch);
        if !self.history.iter().any(|(commit, _)| *commit == prefix.commit) {
            if self.base != base {
                return QueueNews::LandMoved { batch: id, to: self.base.clone() };
            }
            self.base = prefix.commit.clone();
            self.history.push((prefix.commit, members.iter().map(|member| member.task).collect()));
        }
        QueueNews::Landed { batch: id, proof: "the tree is the same".to_owned() }
    }

    pub fn lands(&mut self, batch: u32) {
        let news = self.land(batch);
        let name = if matches!(news, QueueNews::Landed { .. }) { "landed" } else { "base was moved" };
        self.hear(&format!("B{batch} {name}"), &news);
    }

    /// Something on this machine fails instead of what was ordered.
    pub fn fails(&mut self, batch: u32) {
        let _ = self.take(batch); // it came to nothing
        let news = QueueNews::Failed { batch: BatchId(batch), detail: "no room on the disk".to_owned() };
        self.hear(&format!("B{batch} failed"), &news);
    }

    pub fn push(&mut self, commit: &str) {
        self.base = Commit::new(commit);
        self.history.push((self.base.clone(), Vec::new()));
        let to = self.base.clone();
        self.hear(&format!("push {commit}"), &QueueNews::BaseMoved { to });
    }

    pub fn hold(&mut self, why: HoldReason, reason: &str) {
        self.hear("hold", &QueueNews::Hold { why, reason: reason.to_owned() });
    }

    pub fn resume(&mut self) {
        self.hear("resume", &QueueNews::Resume);
    }

    pub fn cancel(&mut self, id: u32) {
        let said = self.hear_task(TaskId(id), News::Cancel { reason: "no longer wanted".to_owned() });
        writeln!(self.told, "cancel → {said}").expect("a string takes it");
    }

    /// Everything that is under way is answered, and the queue looked at, until nothing is. `red` says which heads are red
    /// together.
    pub fn run(&mut self, red: &dyn Fn(&[Commit]) -> bool) {
        for _ in 0..1_000 {
            let Some(order) = self.orders.first().cloned() else {
                let entries = self.journal.len();
                self.look();
                if self.journal.len() == entries {
                    return;
                }
                continue;
            };
            self.answer(&order, red);
        }
        panic!("it never ends:\n{}", self.told);
    }

    /// One order comes to what it comes to.
    pub fn answer(&mut self, order: &QueueEffect, red: &dyn Fn(&[Commit]) -> bool) {
        let batch = batch_of(order).0;
        match order {
            QueueEffect::Build { .. } => self.built(batch),
            QueueEffect::Check { prefix, .. } => {
                // All that is checked out: what the base holds already, too.
                let heads: Vec<Commit> = prefix.tree.as_str().split('+').skip(1).map(Commit::new).collect();
                let outcome = if red(&heads) { CheckOutcome::Fail } else { CheckOutcome::Pass };
                self.checked(batch, outcome);
            }
            QueueEffect::Land { .. } => self.lands(batch),
            QueueEffect::Abandon { .. } => unreachable!("it is no order to wait for"),
        }
    }

    // ── what is told ─────────────────────────────────────────────────────────────────────────────────────

    /// Whoever landed, in order.
    pub fn landed(&self) -> Vec<u32> {
        self.history.iter().flat_map(|(_, tasks)| tasks).map(|task| task.0).collect()
    }

    pub fn ejected(&self) -> Vec<u32> {
        self.ejected.iter().map(|task| task.0).collect()
    }

    /// Compares the story so far, and begins another.
    #[track_caller]
    pub fn tells(&mut self, expect: Expect) {
        expect.assert_eq(&std::mem::take(&mut self.told));
    }

    pub fn forget(&mut self) {
        self.told.clear();
    }

    /// The stage after a crash that kept only the first `entries` of the journal. The base may have been moved by a landing
    /// that was under way, though no entry says so.
    pub fn cut(&self, entries: usize, ahead: bool) -> Self {
        let mut stage = self.clone();
        stage.journal.truncate(entries);
        let tasks = fold(&stage.journal);
        let queue = read_queue(&stage.journal, &tasks);
        let landed = |task: &&Task| task.landed.is_some();
        let known: BTreeSet<TaskId> = tasks.iter().filter(landed).map(|task| task.id).collect();
        let under_way = queue.batches().first().and_then(|batch| match batch.doing {
            BatchDoing::Landing(count) => Some(batch.prefixes[count - 1].commit.clone()),
            BatchDoing::Building | BatchDoing::Checking(_) | BatchDoing::Resting => None,
        });
        stage.history.retain(|(commit, tasks)| {
            tasks.iter().any(|task| known.contains(task)) || (ahead && under_way.as_ref() == Some(commit))
        });
        stage.base = stage.history.last().map_or_else(|| Commit::new("root"), |(commit, _)| commit.clone());
        stage.ejected.clear();
        stage.told.clear();
        stage.restart();
        stage
    }
}

fn prefix(batch: u32, base: &Commit, heads: &[Commit]) -> BatchPrefix {
    let heads = heads.iter().map(|head| format!("+{head}")).collect::<String>();
    BatchPrefix {
        commit: Commit::new(&format!("B{batch}:{base}{heads}")),
        tree: Tree::new(&format!("{base}{heads}")),
    }
}

pub fn batch_of(order: &QueueEffect) -> BatchId {
    match order {
        QueueEffect::Build { batch, .. }
        | QueueEffect::Check { batch, .. }
        | QueueEffect::Land { batch, .. }
        | QueueEffect::Abandon { batch } => *batch,
    }
}

fn list(members: &[BatchMember]) -> String {
    members.iter().map(|member| member.task.to_string()).collect::<Vec<_>>().join(" ")
}

fn fact_word(event: &QueueEvent) -> String {
    match event {
        QueueEvent::Formed { batch, on: None, members } => format!("{batch} of {}", list(members)),
        QueueEvent::Formed { batch, on: Some(on), members } => {
            format!("{batch} of {} on {on}", list(members))
        }
        QueueEvent::Built { batch, base, members, crowded, .. } => {
            let crowded = crowded.iter().map(|task| format!(", {task} crowded out")).collect::<String>();
            format!("{batch} is {} on {base}{crowded}", list(members))
        }
        QueueEvent::CheckBegan { batch, count } => format!("checking {batch}/{count}"),
        QueueEvent::Checked { batch, count, report } => {
            format!("{batch}/{count} is {}", report.outcome().word())
        }
        QueueEvent::Doubted { batch, count } => format!("{batch}/{count} is doubted"),
        QueueEvent::LandingBegan { batch, count } => format!("landing {batch}/{count}"),
        QueueEvent::Over { batch, how: BatchEnd::Landed { count, commit } } => {
            format!("{batch} over, {count} landed as {commit}")
        }
        QueueEvent::Over { batch, how: BatchEnd::Dropped { reason } } => format!("{batch} over: {reason}"),
        QueueEvent::Held { why, reason, until } => {
            let until = until.map(|until| format!(" until {}", until.0)).unwrap_or_default();
            format!("held ({}){until}: {reason}", why.word())
        }
        QueueEvent::Resumed => "resumed".to_owned(),
    }
}

fn order_word(effect: &QueueEffect) -> String {
    match effect {
        QueueEffect::Build { batch, on: None, .. } => format!("build {batch}"),
        QueueEffect::Build { batch, on: Some(on), .. } => format!("build {batch} on {on}"),
        QueueEffect::Check { batch, count, .. } => format!("check {batch}/{count}"),
        QueueEffect::Land { batch, members, .. } => format!("land {batch} ({})", list(members)),
        QueueEffect::Abandon { batch } => format!("abandon {batch}"),
    }
}

/// Whether a task is over, or waits for its report, or for its agent: nothing of it stands in line.
pub fn has_left_the_line(task: &Task) -> bool {
    !matches!(task.state, TaskState::Active { .. })
}

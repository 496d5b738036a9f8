//! The invariants, each named by its number in the list of promises, and the book they are checked by: what the facts and
//! the repository tell by themselves, without the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use landfall_model::gate::{CheckOutcome, GateReport};
use landfall_model::pilot::PilotState;
use landfall_model::queue::{BatchDoing, BatchEnd, BatchMember, HoldReason, LandingBatch, Queue};
use landfall_model::{
    Attempt, AttemptPhase, AttemptStart, BaseMover, BatchId, BudgetUse as _, Counters, Effect, EndCode,
    EndKind, EndedRun, Ending, EngineEvent, Event, Fact, GrantKind, IntakeState, JournalEntry, News,
    QueueEvent, Spending, StepKind, Task, TaskId, TaskState, Timestamp, WaitReason, World, YieldReason,
    apply, score_task,
};
use landfall_store::{EntryBatch as Written, Journal as _, MemoryJournal, Seq};

use landfall_engine::core::Core;

use super::git::{By, Oid, Truth, name, oid, tree_number};
use super::host::{Key, Kind};
use super::outside::{DAY_MS, PassKey, key};
use super::world::{Mail, Order, Sim};

/// What the facts tell, folded one by one as they become durable.
pub struct Book {
    pub tasks: BTreeMap<TaskId, Task>,
    pub queue: Queue,
    pub pilot: PilotState,
    /// Every pass on record.
    greens: BTreeSet<PassKey>,
    /// Runs of agents on record.
    ended: BTreeSet<Key>,
    /// Work that a person let pass.
    approved: BTreeSet<(TaskId, Oid)>,
    /// What agents really used in this run, and on this day.
    used: Spending,
    used_today: (i64, Spending),
    /// Agents that began in this turn.
    began: u32,
    checks_began: u32,
    /// Moves of the base by which a person took a rewritten branch.
    pub rewritten: BTreeSet<usize>,
    /// Merges of landed work and a person's.
    pub rebuilds: BTreeSet<Oid>,
    pub last_branch: Option<Oid>,
    /// Where the base is, by the facts.
    pub base: Option<Oid>,
    pub only: Vec<TaskId>,
    /// Tasks that a person lets go on.
    pub spoken: BTreeSet<TaskId>,
    /// How many messages people sent, each with its number, and those that an agent heard.
    pub said: u32,
    heard: BTreeSet<String>,
    /// What was met on the way.
    pub met: BTreeMap<String, u32>,
    /// Turns in a row in which a slot was free and somebody could have had it.
    idle: u32,
    pub landings: u32,
    /// Who stands in line to land, with the place of the fact that brought them there.
    arrived: BTreeMap<TaskId, usize>,
    /// Who is ready, with the place of the fact that made them so.
    readied: BTreeMap<TaskId, usize>,
    /// Where in the journal the run began.
    run_began: usize,
    /// Agents that began in this turn for tasks that were not begun: who, and since when it was ready.
    fresh: Vec<(TaskId, Timestamp)>,
    /// Why tasks last gave their attempt up.
    parted: BTreeMap<TaskId, YieldReason>,
    /// Pauses before another try, by what failed and how often.
    pauses: BTreeMap<(&'static str, u32), BTreeMap<TaskId, u64>>,
}

impl Book {
    pub fn new() -> Self {
        Self {
            tasks: BTreeMap::new(),
            queue: Queue::default(),
            pilot: PilotState::default(),
            greens: BTreeSet::new(),
            ended: BTreeSet::new(),
            approved: BTreeSet::new(),
            used: Spending::default(),
            used_today: (0, Spending::default()),
            began: 0,
            checks_began: 0,
            rewritten: BTreeSet::new(),
            rebuilds: BTreeSet::new(),
            last_branch: None,
            base: None,
            only: Vec::new(),
            spoken: BTreeSet::new(),
            said: 0,
            heard: BTreeSet::new(),
            met: BTreeMap::new(),
            idle: 0,
            landings: 0,
            arrived: BTreeMap::new(),
            readied: BTreeMap::new(),
            run_began: 0,
            fresh: Vec::new(),
            parted: BTreeMap::new(),
            pauses: BTreeMap::new(),
        }
    }

    pub fn meet(&mut self, what: &str) {
        match self.met.get_mut(what) {
            Some(count) => *count += 1,
            None => drop(self.met.insert(what.to_owned(), 1)),
        }
    }

    /// Whether everything a task needs has landed, or is done.
    pub fn needs_met(&self, task: &Task) -> bool {
        let met = |need: &TaskId| {
            self.tasks.get(need).is_some_and(|need| {
                need.landed.is_some()
                    || matches!(need.state, TaskState::Ended(Ending { kind: EndKind::Done, .. }))
            })
        };
        task.spec.needs.iter().all(met)
    }

    /// Since when a task could have begun: with needs, since the last of them landed.
    fn ready_since(&self, task: &Task, since: Timestamp) -> Timestamp {
        let landed = |need: &TaskId| self.tasks.get(need).and_then(|need| Some(need.landed.as_ref()?.at));
        task.spec.needs.iter().filter_map(landed).fold(since, Timestamp::max)
    }

    fn batch(&self, id: BatchId) -> Option<&LandingBatch> {
        self.queue.batches().iter().find(|batch| batch.id == id)
    }
}

impl Sim {
    /// A fact is durable: the book takes it in, and it must be one that may follow.
    pub fn absorb(&mut self, entry: &JournalEntry) {
        match &entry.fact {
            Fact::Task(id, event) => self.absorb_task(entry, *id, event),
            Fact::Engine(event) => self.absorb_engine(entry, event),
        }
    }

    fn absorb_task(&mut self, entry: &JournalEntry, id: TaskId, event: &Event) {
        let before = self.book.tasks.remove(&id);
        self.book.meet(event.name());
        let after = match apply(before.clone(), id, entry.at, event) {
            Ok(after) => after,
            Err(illegal) => self.fail(&format!("5 {illegal}")),
        };
        self.book.pilot.note(id, event);
        if let Some(before) = &before {
            self.check_event(before, &after, event);
        }
        self.note_place(before.as_ref(), &after, event);
        self.book.queue.note(id, event);
        self.book.queue.update_task(&after);
        self.book.tasks.insert(id, after);
    }

    /// Where in the journal a task came into a line.
    fn note_place(&mut self, before: Option<&Task>, after: &Task, event: &Event) {
        let (id, place) = (after.id, self.journal.len());
        let is_queued = matches!(after.state, TaskState::Active { doing: AttemptPhase::Queued { .. }, .. });
        match event {
            Event::Entered { .. } | Event::Requeued { .. } if is_queued => {
                self.book.arrived.insert(id, place);
            }
            _ if !is_queued => {
                self.book.arrived.remove(&id);
            }
            _ => {}
        }
        let is_ready = |task: &Task| matches!(task.state, TaskState::Ready { .. });
        match (before.is_some_and(is_ready), is_ready(after)) {
            (false, true) => self.book.readied.insert(id, place),
            (true, false) => self.book.readied.remove(&id),
            (true, true) | (false, false) => None,
        };
    }

    fn check_event(&mut self, before: &Task, after: &Task, event: &Event) {
        let id = after.id;
        if let TaskState::Ended(Ending { kind: EndKind::Done | EndKind::Cancelled, .. }) = &before.state {
            self.demand(before.state == after.state, || {
                format!("5 {id} was over and is {}", after.state.name())
            });
        }
        let monotone = before.counters.usage.turns <= after.counters.usage.turns
            && before.counters.agent_ms <= after.counters.agent_ms;
        self.demand(monotone, || format!("22 what {id} used fell"));
        self.check_messages(before, after, event);
        match event {
            Event::Entered { attempt, opening, .. } => {
                self.demand(before.hold.is_none(), || format!("17 {id} begins although a person holds it"));
                self.demand(*attempt == before.attempt.next(), || format!("10 {id} began {attempt}"));
                let agent = matches!(opening, AttemptStart::Workspace | AttemptStart::FreshWorkspace);
                if agent {
                    self.check_start(before);
                }
                self.book.checks_began += u32::from(*opening == AttemptStart::Check);
            }
            Event::IterationBegan { .. } => self.check_iteration(before),
            Event::Yielded { why, .. } => {
                self.book.parted.insert(id, *why);
            }
            Event::Waited { wait: WaitReason::Backoff { until, .. }, .. } => self.check_pause(after, *until),
            Event::IterationEnded { attempt, iteration, usage, took_ms, .. } => {
                let spent = Spending { usage: *usage, time_ms: *took_ms };
                self.check_ended(before, after, (id, *attempt, *iteration), spent);
            }
            Event::Resumed { .. }
                if matches!(before.state, TaskState::Waiting { wait: WaitReason::Pause, .. }) =>
            {
                // What has landed passes through a step without an attempt.
                let asked = self.book.spoken.remove(&id) || before.landed.is_some();
                self.demand(asked, || format!("17 {id} was paused by a person and goes on by itself"));
            }
            Event::Retried { .. } | Event::Resumed { .. } => drop(self.book.spoken.remove(&id)),
            Event::Verified { report, .. } => self.check_report(report),
            Event::Ejected { batch, report, .. } => self.check_ejected(id, *batch, report),
            Event::Reviewed { approved, .. } => {
                let Some(work) = before.gate.as_ref().map(|gate| (id, oid(&gate.head))) else { return };
                match approved {
                    true => self.book.approved.insert(work),
                    false => self.book.approved.remove(&work),
                };
            }
            Event::LandingBegan { .. } => {
                let cancelled = matches!(before.state, TaskState::Ended(_));
                self.demand(!cancelled, || format!("33 {id} is over and lands"));
            }
            Event::Landed { commit, base_before, tree, .. } => {
                self.book.landings += 1;
                self.demand(before.landed.is_none(), || format!("34 {id} landed twice"));
                let (to, from) = (oid(commit), Some(oid(base_before)));
                let mut moves = self.git.moves.iter();
                let real = moves.any(|it| match &it.by {
                    By::Landing(tasks) => it.to == to && it.from == from && tasks.contains(&id),
                    By::Person | By::Rebuild => false,
                });
                self.demand(real, || {
                    format!("34 {id} is said to have landed as {commit}; the base never was there")
                });
                self.demand(self.git.tree(to) == tree_number(tree), || {
                    format!("25 {id} landed another tree")
                });
            }
            _ => {}
        }
    }

    /// What people say reaches the agent once, in order, and is not lost before a run has heard it.
    fn check_messages(&mut self, before: &Task, after: &Task, event: &Event) {
        let id = after.id;
        let waits = |task: &Task| [task.carried.clone(), task.messages.clone()].concat();
        let (was, is) = (waits(before), waits(after));
        if was == is {
            return;
        }
        let number = |text: &String| text.rsplit(' ').next().and_then(|word| word.parse::<u32>().ok());
        self.demand(is.is_sorted_by_key(number), || format!("13 {id} hears {is:?} out of order"));
        let gone: Vec<&String> = was.iter().filter(|text| !is.contains(text)).collect();
        let ended = matches!(event, Event::IterationEnded { .. });
        self.demand(gone.is_empty() || ended, || format!("13 {id} lost {gone:?} by {}", event.name()));
        for text in gone {
            self.demand(before.carried.contains(text), || format!("13 no run of {id} carried `{text}`"));
            let once = self.book.heard.insert(text.clone());
            self.demand(once, || format!("13 {id} heard `{text}` twice"));
            self.book.meet("message heard");
        }
    }

    /// An agent is about to begin.
    fn check_start(&mut self, task: &Task) {
        let id = task.id;
        self.book.began += 1;
        if let TaskState::Ready { next: None, since } = &task.state
            && task.landed.is_none()
            && task.landing.is_none()
        {
            self.book.fresh.push((id, self.book.ready_since(task, *since)));
        }
        self.demand(matches!(task.state, TaskState::Ready { .. }), || {
            format!("17 {id} was {}", task.state.name())
        });
        self.demand(self.book.needs_met(task), || {
            format!("15 {id} starts before {:?} landed", task.spec.needs)
        });
        self.demand(self.book.pilot.pause().is_none(), || format!("17 {id} starts in a pause"));
        self.demand(!self.draining, || format!("17 {id} starts although the run is being stopped"));
        self.demand(!self.low_disk, || format!("17 {id} starts without room on the disk"));
        let only = self.book.only.is_empty() || self.book.only.contains(&id);
        self.demand(only, || format!("17 {id} starts although the run is not for it"));
    }

    /// A task waits before it is tried again: twice as long each time, up to a bound, and a little longer by its number.
    fn check_pause(&mut self, task: &Task, until: Timestamp) {
        let TaskState::Waiting { since, .. } = &task.state else { return };
        let (id, counters) = (task.id, &task.counters);
        let Some(why) = self.book.parted.get(&id) else { return };
        let (what, tries, first_ms, cap_ms) = match why {
            YieldReason::Transient => ("transient", counters.transients, 1_000, 600_000),
            YieldReason::Machine => ("machine", counters.machine, 1_000, 60_000),
            YieldReason::Shortage => ("shortage", counters.shortages, 1_000, 60_000),
            YieldReason::Overspent => ("overspent", counters.overspent, 500, 30_000),
            YieldReason::Crashed | YieldReason::Lost | YieldReason::NotStarted => {
                ("restart", counters.restarts, 500, 30_000)
            }
            _ => return,
        };
        let plain = first_ms.max(1) * (1u64 << tries.saturating_sub(1).min(20));
        let plain = plain.min(cap_ms);
        let waits = u64::try_from(until.0 - since.0).unwrap_or(0);
        self.demand(waits >= plain && waits <= plain + plain / 10, || {
            format!("20 {id} waits {waits} ms after {what} {tries}, not about {plain}")
        });
        let alike = self.book.pauses.entry((what, tries)).or_default();
        alike.insert(id, waits);
        let together =
            alike.iter().find(|(other, ms)| **other != id && **ms == waits).map(|(other, _)| *other);
        // With many tasks some have the same pause by chance.
        let few = self.scene.tasks_max <= super::world::TASKS_MAX;
        self.demand(!few || together.is_none(), || format!("20 {id} and {together:?} come back together"));
    }

    fn check_iteration(&mut self, task: &Task) {
        let id = task.id;
        self.demand(self.book.pilot.pause().is_none(), || format!("17 {id} goes on in a pause"));
        self.demand(task.hold.is_none(), || format!("17 {id} goes on although a person holds it"));
        let purse = self.scene.purse;
        let today = match self.book.used_today {
            (day, used) if day == self.today() => used,
            _ => Spending::default(),
        };
        let over = purse.run.describe_used_up(self.book.used).or(purse.day.describe_used_up(today));
        self.demand(over.is_none(), || format!("21 {id} goes on although the budget is used up: {over:?}"));
        let in_all = Spending { usage: task.counters.usage, time_ms: task.counters.agent_ms };
        let over = task.limits.task_budget.describe_used_up(in_all);
        self.demand(over.is_none(), || format!("21 {id} goes on although its budget is used up: {over:?}"));
    }

    fn today(&self) -> i64 {
        self.now().0.div_euclid(DAY_MS)
    }

    /// A run of an agent is on record: it was one of this attempt, it is counted once, and by its cause.
    fn check_ended(&mut self, before: &Task, after: &Task, of: Key, spent: Spending) {
        let id = of.0;
        self.demand(of.1 == before.attempt, || {
            format!("11 {id} heard of {}, but is in {}", of.1, before.attempt)
        });
        let known = self.host.agents.get(&of).and_then(|agent| Some((agent.end.clone()?, agent.kind?)));
        let Some((end, kind)) = known else {
            self.fail(&format!("11 {of:?} is over, but such an agent never ended"));
        };
        self.demand(end.usage == spent.usage, || {
            format!("21 {of:?} used {:?}, not {:?}", end.usage, spent.usage)
        });
        let once = self.book.ended.insert(of);
        self.demand(once, || format!("13 {of:?} is counted twice"));
        self.book.used = self.book.used.plus(spent);
        let today = self.today();
        if self.book.used_today.0 != today {
            self.book.used_today = (today, Spending::default());
        }
        self.book.used_today.1 = self.book.used_today.1.plus(spent);
        self.check_counted(before, after, kind, &end);
    }

    fn check_counted(&self, before: &Task, after: &Task, kind: Kind, end: &EndedRun) {
        let id = after.id;
        let stopping = matches!(
            &before.state,
            TaskState::Active { doing: AttemptPhase::Running { stop: Some(_), .. }, .. }
        );
        let (was, is) = (&before.counters, &after.counters);
        let grew = |of: fn(&Counters) -> u32| of(is).saturating_sub(of(was));
        let iterations = grew(|it| it.iterations);
        let expected = match kind {
            Kind::Own | Kind::Deadline => 1,
            Kind::Fell | Kind::Stalled | Kind::Transient | Kind::Blameless => 0,
        };
        // Saying the same thing over and over makes an own word a loop.
        let looped = is.loops > was.loops;
        self.demand(iterations == expected || looped, || {
            format!("13 {id}: {iterations} iterations counted for {kind:?} ({:?})", end.exit)
        });
        let restarts = grew(|it| it.restarts);
        let expected = u32::from(
            kind == Kind::Fell
                || (kind == Kind::Blameless && end.exit == landfall_model::AgentExit::Asked && !stopping),
        );
        self.demand(restarts == expected, || {
            format!("13 {id}: {restarts} restarts counted for {kind:?} ({:?})", end.exit)
        });
        let stalls = grew(|it| it.stalls_total);
        self.demand(stalls == u32::from(kind == Kind::Stalled), || {
            format!("13 {id}: {stalls} stalls for {kind:?}")
        });
        let transients = grew(|it| it.transients);
        self.demand(transients == u32::from(kind == Kind::Transient), || {
            format!("13 {id}: {transients} passing errors for {kind:?}")
        });
        self.demand(is.usage.turns - was.usage.turns == end.usage.turns, || {
            format!("21 {id} is charged otherwise")
        });
    }

    /// What is said of a tree is said of that tree, by the settings on the base, and is true.
    fn check_report(&mut self, report: &GateReport) {
        let (base, merged) = (oid(&report.base), oid(&report.commit));
        let tree = tree_number(&report.tree);
        self.demand(self.git.tree(merged) == tree, || format!("25 {} has another tree", report.commit));
        let settings = self.git.settings(base);
        self.demand(report.config.as_str() == format!("s{settings}"), || {
            format!("27 {} was verified by {}, the base has s{settings}", report.commit, report.config)
        });
        self.book.meet(report.outcome().word());
        if !report.outcome().is_green() {
            return;
        }
        let pass = key(&report.tree, report);
        let known = self.book.greens.contains(&pass);
        self.demand(!report.reused || known, || {
            format!("32 a pass is taken over for {} that was never one of that tree", report.tree)
        });
        let truth = self.git.truth(tree, settings);
        self.demand(truth == Truth::Green, || format!("25 {} is called green and is {truth:?}", report.tree));
        self.book.greens.insert(pass);
    }

    /// Only who makes a batch red is ejected.
    fn check_ejected(&self, id: TaskId, batch: BatchId, report: &GateReport) {
        let Some(batch) = self.book.batch(batch) else {
            self.fail(&format!("30 {id} is ejected from {batch}, which is no more"));
        };
        let Some(place) = batch.members.iter().position(|member| member.task == id) else {
            self.fail(&format!("30 {id} is ejected from {}, which it is not in", batch.id));
        };
        let settings = self.git.settings(oid(&report.base));
        let looks = |count: usize| match count {
            0 => (self.git.tree(oid(&report.base)), Truth::Green),
            _ => {
                let tree = tree_number(&batch.prefixes[count - 1].tree);
                (tree, self.git.truth(tree, settings))
            }
        };
        let (with, without) = (looks(place + 1), looks(place));
        let red = with.1 == Truth::Red || self.host.slandered.contains(&with.0);
        self.demand(red, || format!("30 {id} is ejected, but with it the batch is {:?}", with.1));
        let green = without.1 == Truth::Green || batch.looks.iter().any(|(count, _)| *count == place);
        self.demand(green, || format!("30 {id} is ejected, but without it the batch is {:?}", without.1));
    }

    fn absorb_engine(&mut self, entry: &JournalEntry, event: &EngineEvent) {
        match event {
            EngineEvent::RunStarted { .. } => {
                self.book.pilot.run_started();
                self.book.run_began = self.journal.len();
                self.book.used = Spending::default();
            }
            EngineEvent::RunEnded { why, .. } => {
                self.book.pilot.run_ended(*why);
            }
            EngineEvent::Pilot(event) => {
                self.book.pilot.apply(entry.at, event);
                self.book.meet(&format!("pilot {}", word(&format!("{event:?}"))));
            }
            EngineEvent::Sprint(event) => self.book.meet(&format!("sprint {}", word(&format!("{event:?}")))),
            EngineEvent::Checkpoint(event) => {
                self.book.meet(&format!("checkpoint {}", word(&format!("{event:?}"))))
            }
            EngineEvent::Measured { report } => {
                self.check_report(report);
                self.book.queue.note_base_report(report);
            }
            EngineEvent::Queue(event) => self.absorb_queue(entry, event),
            EngineEvent::BaseMoved { from, to, by } => {
                self.check_base_fact(from.as_ref().map(oid), oid(to), *by);
                self.book.base = Some(oid(to));
            }
            EngineEvent::Account { .. } => self.book.meet("account"),
            EngineEvent::Published { .. } => self.book.meet("published"),
            EngineEvent::PublishHeld { .. } => self.book.meet("publish held"),
            EngineEvent::Started { .. }
            | EngineEvent::DiscoveryDropped { .. }
            | EngineEvent::Consulted { .. }
            | EngineEvent::Auto(_)
            | EngineEvent::Haul(_) => {}
        }
    }

    /// What is said of the base is what git says.
    fn check_base_fact(&self, from: Option<Oid>, to: Oid, by: BaseMover) {
        let real = self.git.moves.iter().any(|it| {
            it.to == to
                && it.from == from
                && match (&it.by, by) {
                    (By::Landing(tasks), BaseMover::Landing(id)) => tasks.contains(&id),
                    (By::Person, BaseMover::Person) | (By::Rebuild, BaseMover::Rebuild) => true,
                    _ => false,
                }
        });
        self.demand(real, || format!("24 the base is said to have moved from {from:?} to {to} by {by:?}"));
    }

    fn absorb_queue(&mut self, entry: &JournalEntry, event: &QueueEvent) {
        match event {
            QueueEvent::Formed { batch, on, members } => self.check_formed(*batch, on.is_some(), members),
            QueueEvent::Checked { batch, count, report } => {
                self.check_report(report);
                let of = self.book.batch(*batch).and_then(|batch| batch.prefixes.get(count - 1));
                let same = of.is_some_and(|prefix| prefix.tree == report.tree);
                self.demand(same, || format!("25 {batch} was verified with another tree"));
            }
            QueueEvent::LandingBegan { batch, count } => self.check_landing_began(*batch, *count),
            QueueEvent::Over { batch, how } => {
                let over = self.book.batch(*batch).cloned();
                if let Some(over) = over {
                    self.check_looks(&over);
                    let word = match how {
                        BatchEnd::Landed { count, .. } if *count < over.members.len() => "landed in part",
                        BatchEnd::Landed { .. } if over.members.len() > 1 => "landed together",
                        BatchEnd::Landed { .. } => "landed alone",
                        BatchEnd::Dropped { .. } => "batch dropped",
                    };
                    self.book.meet(word);
                }
            }
            QueueEvent::Held { why, .. } => self.book.meet(&format!("held {}", why.word())),
            QueueEvent::Doubted { .. } => self.book.meet("batch doubted"),
            QueueEvent::Built { .. } | QueueEvent::CheckBegan { .. } | QueueEvent::Resumed => {}
        }
        if let Err(illegal) = self.book.queue.apply(entry.at, event) {
            self.fail(&format!("5 {illegal}"));
        }
    }

    fn check_formed(&mut self, batch: BatchId, speculates: bool, members: &[BatchMember]) {
        let held = self.book.queue.hold().map(|hold| hold.why);
        self.demand(held.is_none_or(|why| why == HoldReason::Machine), || {
            format!("17 {batch} is formed in spite of {held:?}")
        });
        self.demand(!self.draining, || format!("17 {batch} is formed although the run is being stopped"));
        self.demand(!members.is_empty(), || format!("6 nobody is in {batch}"));
        if speculates {
            self.book.meet("speculated");
        }
        for member in members {
            let id = member.task;
            let task = self.book.tasks.get(&id);
            let stands = task.is_some_and(|task| {
                task.attempt == member.attempt
                    && matches!(task.state, TaskState::Active { doing: AttemptPhase::Queued { .. }, .. })
            });
            self.demand(stands, || format!("33 {id} is in {batch} and does not stand in line"));
            let met = task.is_some_and(|task| self.book.needs_met(task));
            self.demand(met, || format!("29 {id} is in {batch} before what it needs has landed"));
            let other = self.book.queue.batch_of(id);
            self.demand(other.is_none(), || format!("6 {id} is in two batches"));
        }
    }

    fn check_landing_began(&self, id: BatchId, count: usize) {
        let Some(batch) = self.book.batch(id) else { self.fail(&format!("24 there is no {id}")) };
        let (Some(base), Some(prefix)) = (&batch.base, batch.prefixes.get(count.wrapping_sub(1))) else {
            self.fail(&format!("25 {id} lands and was never merged"));
        };
        let config = format!("s{}", self.git.settings(oid(base)));
        let green =
            self.book.greens.iter().any(|(tree, by, _)| *tree == prefix.tree && by.as_str() == config);
        self.demand(green, || format!("26 {id} lands, and {} was never green by {config}", prefix.tree));
    }

    /// Searching for one culprit among n takes at most so many looks. A look at a broken gate says nothing, and is
    /// taken again when the journal was cut before the queue was held for it.
    fn check_looks(&self, batch: &LandingBatch) {
        let size = batch.members.len().max(1);
        let most = 1 + 2 * (usize::BITS - (size - 1).leading_zeros()) as usize;
        let says =
            |outcome: CheckOutcome| !matches!(outcome, CheckOutcome::Broken | CheckOutcome::PreExisting);
        let looks = batch.looks.iter().filter(|(_, outcome)| says(*outcome)).count();
        self.demand(looks <= most, || format!("31 {} took {looks} looks at {size} members", batch.id));
    }

    // ── the base ─────────────────────────────────────────────────────────────────────────────────────────

    /// The base was moved by a landing: only from where it was, to just what was verified, of those who want it.
    pub fn check_landing(&mut self, batch: BatchId, old: Oid, new: Oid, now: Oid, members: &[BatchMember]) {
        let sound = self.core().mismatched_landing();
        self.demand(sound.is_none(), || {
            format!("25 {batch} lands although the landing of {sound:?} did not check out")
        });
        self.demand(now == old, || format!("24 {batch} lands on c{old}, but the base is c{now}"));
        let on_record = self.book.batch(batch).is_some_and(|batch| match batch.doing {
            BatchDoing::Landing(count) => {
                batch.prefixes[count - 1].commit == name(new) && batch.base == Some(name(old))
            }
            BatchDoing::Building | BatchDoing::Checking(_) | BatchDoing::Resting => false,
        });
        self.demand(on_record, || format!("34 {batch} lands as c{new}, and no fact says that it would"));
        let parents = self.git.parents(new);
        let heads: Vec<Oid> = members.iter().map(|member| oid(&member.head)).collect();
        self.demand(parents.first() == Some(&old) && parents[1..] == heads[..], || {
            format!("25 c{new} stands on {parents:?}, not on {old} and {heads:?}")
        });
        match self.git.recomputed(old, &heads) {
            Ok(files) => self
                .demand(files == *self.git.files(new), || format!("25 c{new} is not what its members are")),
            Err(why) => self.fail(&format!("25 c{new} cannot be made again: {why}")),
        }
        let own = |head: &Oid| self.git.changed(self.git.fork(old, *head), *head);
        let touched: BTreeSet<u8> = heads.iter().flat_map(own).collect();
        let changed = self.git.changed(old, new);
        self.demand(changed.is_subset(&touched), || {
            format!("28 c{new} changes {changed:?}, its members {touched:?}")
        });
        let settings = self.git.settings(old);
        let truth = self.git.truth(self.git.tree(new), settings);
        self.demand(truth == Truth::Green, || format!("25 c{new} is {truth:?} and becomes the base"));
        for member in members {
            self.check_wanted(member, old);
        }
    }

    fn check_wanted(&self, member: &BatchMember, old: Oid) {
        let id = member.task;
        let Some(task) = self.book.tasks.get(&id) else { self.fail(&format!("33 there is no {id}")) };
        self.demand(!task.is_over(), || format!("33 {id} is {} and lands", task.state.name()));
        self.demand(task.attempt == member.attempt, || {
            format!("11 {} of {id} lands, it is at {}", member.attempt, task.attempt)
        });
        // Work that a person should see was seen by one, unless they made it themselves.
        let head = oid(&member.head);
        let fork = self.git.fork(old, head);
        let concerning = task.counters.runs > 0 && !self.concerns(fork, head).is_empty();
        let links = std::iter::successors(Some(head), |head| self.host.moved.get(head).copied());
        let same = |work: Oid| links.clone().any(|link| self.git.is_ancestor(work, link));
        let seen = self.book.approved.iter().any(|(of, work)| *of == id && same(*work));
        self.demand(!concerning || seen, || format!("33 {id} lands and nobody looked at it"));
    }

    /// The base was moved otherwise: forward, and to what is green if we made it.
    pub fn check_moved(&self) {
        let Some(last) = self.git.moves.last() else { return };
        let Some(from) = last.from else { return };
        let now = self.git.moves.iter().rev().nth(1).map(|it| it.to);
        self.demand(now.is_none_or(|now| now == from), || {
            format!("24 the base was at {now:?}, not at c{from}")
        });
        self.demand(self.git.is_ancestor(from, last.to), || {
            format!("24 the base went from c{from} to c{}", last.to)
        });
        if last.by == By::Rebuild {
            let theirs = self.git.parents(last.to)[0];
            let truth = self.git.truth(self.git.tree(last.to), self.git.settings(theirs));
            self.demand(truth == Truth::Green, || {
                format!("25 c{} is {truth:?} and becomes the base", last.to)
            });
        }
    }

    // ── after a turn ─────────────────────────────────────────────────────────────────────────────────────

    /// The tasks are what the facts tell.
    pub fn check_touched(&self, touched: &BTreeMap<TaskId, Arc<Task>>) {
        for (id, task) in touched {
            self.demand(self.book.tasks.get(id) == Some(&**task), || {
                format!("1 {id} is not what its facts tell")
            });
        }
    }

    pub fn check_turn(&mut self) {
        let core = self.core.as_ref().expect("it runs");
        let (slots, lanes) = (core.rules().limits.slots, core.rules().limits.lanes);
        let held = |standing| u32::try_from(core.world().holder_count(standing)).expect("small");
        let (agents, checks) = (held(GrantKind::Slot), held(GrantKind::Lane));
        self.demand(self.book.began == 0 || agents <= slots, || {
            format!("14 {agents} agents on {slots} slots")
        });
        self.demand(self.book.checks_began == 0 || checks <= lanes, || {
            format!("14 {checks} checks on {lanes} lanes")
        });
        let alive = self.check_leases();
        self.demand(alive <= agents as usize, || format!("14 {alive} agents run, {agents} are known"));
        self.check_line();
        self.check_overtaken();
        if self.book.began > 0 {
            self.check_caps();
        }
        (self.book.began, self.book.checks_began) = (0, 0);
        self.check_owned();
        self.check_limits();
        self.check_busy();
        // To read a long journal takes long.
        if self.turns.is_multiple_of(if self.journal.len() < 1_500 { 64 } else { 2_048 }) {
            self.check_rebuilt();
        }
    }

    /// As long as an agent lives, its task is its own, however late its end is told. Gives how many live.
    fn check_leases(&self) -> usize {
        let alive = self.host.agents.iter().filter(|(_, agent)| agent.end.is_none());
        alive
            .inspect(|((id, attempt, _), _)| {
                let task = &self.book.tasks[id];
                let owned =
                    matches!(task.state, TaskState::Active { doing: AttemptPhase::Running { .. }, .. })
                        && task.attempt == *attempt;
                self.demand(owned, || {
                    format!(
                        "12 an agent of {id} {attempt} runs on, and it is {} {}",
                        task.state.name(),
                        task.attempt
                    )
                });
            })
            .count()
    }

    /// Whoever came first stands first, by the order of the facts: a clock that is set back moves nobody.
    fn check_line(&self) {
        let place = |id: TaskId| (self.book.tasks[&id].spec.priority, self.book.arrived.get(&id));
        let line: Vec<TaskId> = self.core().queue().line().collect();
        let wrong = line.windows(2).find(|two| place(two[0]) > place(two[1]));
        self.demand(wrong.is_none(), || format!("8 {wrong:?} stand in line the wrong way round"));
    }

    /// Nobody is overtaken without end: only by who has a higher score, and not if they wait so many minutes longer. Who
    /// waits since an earlier run does not begin anew.
    fn check_overtaken(&mut self) {
        const POINT_MS: i64 = 60_000;
        let fresh = std::mem::take(&mut self.book.fresh);
        if fresh.is_empty() || fresh.iter().any(|(id, _)| self.core().expect_task(*id).counters.retries > 0) {
            return;
        }
        let core = self.core();
        let (world, limits) = (core.world(), core.current_limits(&self.out));
        let lead =
            |id: TaskId, since: Timestamp| score_task(world, &core.expect_task(id)) * POINT_MS - since.0;
        for id in self.book.readied.keys() {
            let task = &self.book.tasks[id];
            let TaskState::Ready { next: None, since } = &task.state else { continue };
            // Files and earlier work may hold it back for good reasons.
            let plain = task.spec.touches.is_empty() && task.counters.runs == 0 && task.landing.is_none();
            let waits = plain
                && world.filter().admits_task(&task.spec, *id)
                && self.book.needs_met(task)
                && self.wants_an_agent(task)
                && matches!(world.hold_reason(*id, &limits), Some(WaitReason::Slot));
            if !waits {
                continue;
            }
            let mine = lead(*id, self.book.ready_since(task, *since));
            let over = fresh.iter().find(|(other, since)| mine - lead(*other, *since) >= POINT_MS);
            let number = if self.book.readied[id] < self.book.run_began { 18 } else { 16 };
            self.demand(over.is_none(), || {
                format!("{number} {over:?} overtakes {id}, which waits since {since:?}")
            });
        }
    }

    fn wants_an_agent(&self, task: &Task) -> bool {
        let flow = self.core().world().flow_of(task);
        let kind = flow.as_ref().and_then(|flow| flow.find_step(task.next_step(flow))).map(|step| &step.kind);
        matches!(kind, Some(StepKind::Agent { .. }))
    }

    /// Nothing is done about what is not on record.
    pub fn check_order(&self, effect: &Effect) {
        let recorded = self.book.tasks.get(&effect.task()).map(|task| task.attempt);
        let known = recorded.is_some_and(|attempt| attempt_of(effect).is_none_or(|of| of <= attempt));
        self.demand(known, || format!("3 {effect:?} is carried out, and the journal is at {recorded:?}"));
    }

    /// An engine reads the journal: it holds all that anybody was told of, number after number, as it was written.
    pub fn check_durable(&self) {
        let lost = self.told.iter().find(|id| !self.book.tasks.contains_key(id));
        self.demand(lost.is_none(), || format!("3 a person was told of {lost:?}, and the journal is not"));
        let Some(kept) = &self.kept else { return };
        let mut seqs = (1..).map(Seq).zip(&self.journal);
        let read = kept.replay(Seq::FIRST, &mut |seq, entry| {
            let same = seqs.next().is_some_and(|(at, written)| at == seq && *written == entry);
            self.demand(same, || format!("2 {seq:?} is not what was written: {entry:?}"));
            Ok(())
        });
        let count = self.journal.len() as u64;
        self.demand(matches!(&read, Ok(read) if read.events == count && read.to.seq == Seq(count)), || {
            format!("2 {count} facts were written, read: {read:?}")
        });
    }

    /// The chain over the journal is the one that anybody makes of the same facts.
    fn check_chain(&self) {
        let Some(kept) = &self.kept else { return };
        let again = MemoryJournal::new();
        let tasks = self.book.tasks.values().cloned().map(Arc::new).collect();
        let made = again.append(Written { entries: self.journal.clone(), tasks });
        self.demand(made.is_ok() && again.head().ok() == kept.head().ok(), || {
            "2 the chain is another".to_owned()
        });
    }

    /// Not more agents on an account, or of a profile, than there may be.
    fn check_caps(&self) {
        let at_work = |of: &dyn Fn(&landfall_model::AgentAssignment) -> bool| {
            let agent = |task: &&Task| {
                matches!(
                    &task.state,
                    TaskState::Active {
                        doing: AttemptPhase::Preparing { .. } | AttemptPhase::Running { .. },
                        ..
                    }
                )
            };
            let tasks = self.book.tasks.values().filter(agent);
            u32::try_from(tasks.filter(|task| task.driving.as_ref().is_some_and(of)).count()).expect("small")
        };
        for (account, most) in &self.scene.rules.caps.accounts {
            let count = at_work(&|driving| driving.account == *account);
            self.demand(count <= *most, || format!("14 {count} agents on account {account}, {most} may be"));
        }
        for (profile, most) in &self.scene.rules.caps.profiles {
            let count = at_work(&|driving| driving.profile == *profile);
            self.demand(count <= *most, || format!("14 {count} agents of profile {profile}, {most} may be"));
        }
    }

    /// Whoever is at work has something under way, just once; nobody is forgotten.
    fn check_owned(&self) {
        let core = self.core();
        for task in core.world().active_tasks() {
            let id = task.id;
            if let TaskState::Active { doing: AttemptPhase::Landing, .. } = &task.state {
                let lands = |batch: &LandingBatch| match batch.doing {
                    BatchDoing::Landing(count) => {
                        batch.members[..count].iter().any(|member| member.task == id)
                    }
                    BatchDoing::Building | BatchDoing::Checking(_) | BatchDoing::Resting => false,
                };
                let owned = core.queue().batches().iter().any(lands);
                self.demand(owned, || format!("6 {id} lands, and no batch of it does"));
                continue;
            }
            let is_check =
                matches!(task.state, TaskState::Active { doing: AttemptPhase::Checking { .. }, .. });
            if is_check && self.interrupted {
                continue; // it is done again by the next run
            }
            let orders = self.orders.iter().filter(|order| match order {
                Order::Task(effect) => effect.task() == id && attempt_of(effect) == Some(task.attempt),
                Order::Follow(of, attempt, ..) => *of == id && *attempt == task.attempt,
                Order::Queue(_)
                | Order::Swap(_)
                | Order::Publish
                | Order::CheckBase
                | Order::RebuildSwap { .. } => false,
            });
            let news = self.mail.iter().filter(|mail| match mail {
                Mail::News(of, news) => *of == id && attempt_in(news) == Some(task.attempt),
                Mail::Queue(_) | Mail::Fact(_) | Mail::PublishOver | Mail::BaseChecked(..) => false,
            });
            let owners = orders.count() + news.count();
            self.demand(owners == 1, || format!("6 {id} is {} and {owners} see to it", task.state.name()));
        }
        if core.mismatched_landing().is_some() {
            return; // nothing more is done for batches until a person has looked
        }
        for batch in core.queue().batches() {
            if batch.doing == BatchDoing::Resting {
                continue;
            }
            if self.interrupted && matches!(batch.doing, BatchDoing::Checking(_)) {
                continue;
            }
            let orders = self.orders.iter().filter(|order| match order {
                Order::Queue(effect) | Order::Swap(effect) => batch_of(effect) == batch.id,
                Order::Task(_)
                | Order::Follow(..)
                | Order::Publish
                | Order::CheckBase
                | Order::RebuildSwap { .. } => false,
            });
            let news = self.mail.iter().filter(|mail| match mail {
                Mail::Queue(news) => batch_in(news) == Some(batch.id),
                Mail::News(..) | Mail::Fact(_) | Mail::PublishOver | Mail::BaseChecked(..) => false,
            });
            let owners = orders.count() + news.count();
            self.demand(owners >= 1, || format!("6 {} is {:?} and nobody sees to it", batch.id, batch.doing));
        }
    }

    /// Nobody goes on for ever.
    fn check_limits(&self) {
        for task in self.core().world().active_tasks() {
            let (id, counters, limits) = (task.id, &task.counters, &task.limits);
            // A person may lower it below what is used; it is looked at before the next run.
            let lowered = task.own_limits.iterations_max.is_some();
            let over = (counters.iterations > limits.iterations_max && !lowered)
                || counters.restarts > limits.restarts_max
                || counters.stalls_total > limits.stalls_total_max
                || counters.loops > limits.loops_max;
            self.demand(!over, || format!("23 {id} goes on: {counters:?}"));
        }
    }

    /// No slot is free while somebody could have it, for longer than a turn. Whoever waits for a pause, for room on the
    /// disk, for a budget, an account, a person's choice, or for the queue to catch up, could not.
    fn check_busy(&mut self) {
        let core = self.core.as_ref().expect("it runs");
        let limits = core.current_limits(&self.out);
        let world = core.world();
        let lands = |id: &TaskId| self.book.tasks.get(id).is_some_and(|task| self.book.needs_met(task));
        let line = core.queue().line().filter(lands).count();
        let queued = u32::try_from(world.waiting_for(GrantKind::Lane) + line).expect("small");
        let batch = u32::try_from(core.rules().queue.batch_max).expect("small");
        let paced = queued >= limits.slots.max(batch);
        let free = core.drive_mode() == IntakeState::Running
            && u32::try_from(world.holder_count(GrantKind::Slot)).expect("small") < limits.slots
            && limits.spent.is_none()
            && !paced
            && core.base_hold().is_none();
        let could = |task: &&Arc<Task>| {
            let TaskState::Ready { next, .. } = &task.state else { return false };
            if task.is_held() {
                return false;
            }
            let begun = next.is_some() || task.landed.is_some() || task.landing.is_some();
            let admitted = match begun {
                true => world.filter().admits_continuation(task.id),
                false => world.filter().admits_task(&task.spec, task.id),
            };
            let flow = world.flow_of(task);
            let kind =
                flow.as_ref().and_then(|flow| flow.find_step(task.next_step(flow))).map(|step| &step.kind);
            admitted
                && self.book.needs_met(task)
                && matches!(kind, Some(StepKind::Agent { .. }))
                && world.open_route(World::profile_of(task), limits.now).is_ok()
                && !matches!(world.hold_reason(task.id, &limits), Some(WaitReason::Turn(_)))
        };
        let waits = free.then(|| world.tasks().find(could).map(|task| task.id)).flatten();
        self.book.idle = if waits.is_some() { self.book.idle + 1 } else { 0 };
        self.demand(self.book.idle < 2, || {
            format!("19 {waits:?} could start, a slot is free, and nothing happens")
        });
    }

    /// What the engine knows is what it would know if it read the journal now, however often.
    pub fn check_rebuilt(&self) {
        let core = self.core();
        let (out, mut again) = self.rebuilt();
        again.world_mut().set_filter(core.world().filter().clone());
        let observed: Vec<_> =
            core.world().observed_files().map(|(id, files)| (id, files.to_vec())).collect();
        for (id, files) in observed {
            again.world_mut().set_observed(id, files);
        }
        self.check_same(core, &again);
        let same = *out.ledger.borrow() == *self.out.ledger.borrow();
        self.demand(same, || "1 the ledger is not the fold of the journal".to_owned());
        let ours = self.out.ledger.borrow().run();
        self.demand(ours.usage == self.book.used.usage, || {
            format!("21 this run is charged {:?} and used {:?}", ours.usage, self.book.used.usage)
        });
        let same = *out.passes.borrow() == *self.out.passes.borrow();
        self.demand(same, || "1 the passes are not the fold of the journal".to_owned());
    }

    fn check_same(&self, core: &Core, again: &Core) {
        self.demand(core.queue() == again.queue(), || {
            "1 the queue is not the fold of the journal".to_owned()
        });
        self.demand(*core.queue() == self.book.queue, || "4 the queue read twice is another".to_owned());
        self.demand(core.pilot() == again.pilot(), || {
            "1 the pilot is not the fold of the journal".to_owned()
        });
        self.demand(core.sprints() == again.sprints(), || {
            "1 the sprints are not the fold of the journal".to_owned()
        });
        let same = core.checkpoints() == again.checkpoints();
        self.demand(same, || "1 the checkpoints are not the fold of the journal".to_owned());
        self.demand(core.base_commit() == again.base_commit(), || {
            "1 the base is not the fold of the journal".to_owned()
        });
        // A person who tries it again has looked; the run that saw it ends all the same.
        let kept = again.mismatched_landing().is_none() || core.mismatched_landing().is_some();
        self.demand(kept, || "1 a mismatch is forgotten".to_owned());
        let tasks = |core: &Core| core.world().tasks().cloned().collect::<Vec<_>>();
        self.demand(tasks(core) == tasks(again), || "1 the tasks are not the fold of the journal".to_owned());
        self.demand(core.world() == again.world(), || {
            "1 the lines are not the fold of the journal".to_owned()
        });
    }

    // ── at the end ───────────────────────────────────────────────────────────────────────────────────────

    /// Every trouble is over: whoever could land has landed, and whoever could not says why.
    pub fn check_settled(&self) {
        self.check_chain();
        self.check_same(&self.rebuilt().1, &self.rebuilt_from_scratch().1);
        for task in self.book.tasks.values() {
            let id = task.id;
            let settled = match &task.state {
                TaskState::Ended(ending) => self.is_good_end(task, ending),
                TaskState::Draft => true,
                TaskState::Ready { .. } | TaskState::Active { .. } => !self.book.needs_met(task),
                TaskState::Waiting { .. } | TaskState::Review { .. } => false,
            };
            self.demand(settled, || format!("36 {id} never lands: {:?}", task.state));
            let done = matches!(&task.state, TaskState::Ended(Ending { kind: EndKind::Done, .. }));
            let tidy = task.workspace.is_none() && !self.host.workspaces.contains_key(&id);
            self.demand(!done || tidy, || format!("38 {id} is done and its workspace stands"));
            let alive = self.host.agents.iter().any(|((of, ..), agent)| *of == id && agent.end.is_none());
            self.demand(!alive, || format!("37 an agent of {id} runs on"));
            self.check_decidable(task);
        }
        let Some(base) = self.git.base else { return };
        self.demand(self.git.branch == Some(base), || "35 the branch and the base never meet".to_owned());
        for (at, it) in self.git.moves.iter().enumerate() {
            let forward = it.from.is_none_or(|from| self.git.is_ancestor(from, it.to));
            self.demand(forward || self.book.rewritten.contains(&at), || {
                format!("24 the base went back: {it:?}")
            });
            let before = at.checked_sub(1).map(|before| self.git.moves[before].to);
            self.demand(it.from == before, || format!("24 {it:?} does not follow from {before:?}"));
        }
    }

    fn is_good_end(&self, task: &Task, ending: &Ending) -> bool {
        let by_nobody = task.counters.runs == 0; // a revert that conflicts is for a person
        match (ending.kind, ending.code) {
            (EndKind::Done | EndKind::Cancelled, _) => true,
            (_, EndCode::Budget) => true,
            (EndKind::Blocked, _) if by_nobody => true,
            (EndKind::Failed | EndKind::Timeout | EndKind::Blocked, _) => false,
        }
    }

    /// Whether a task has landed is the same by its facts and by git.
    fn check_decidable(&self, task: &Task) {
        let base = self.git.base.unwrap_or(0);
        // What a person took off their branch may land again, and come back with work that stands on it.
        let taken_back = |oid: Oid| self.host.rewritten.iter().any(|gone| self.git.is_ancestor(oid, *gone));
        if task.landed.as_ref().is_some_and(|it| taken_back(oid(&it.commit))) {
            return;
        }
        let landings = self.git.moves.iter().filter(|it| match &it.by {
            By::Landing(tasks) => {
                tasks.contains(&task.id) && self.git.is_ancestor(it.to, base) && !taken_back(it.to)
            }
            By::Person | By::Rebuild => false,
        });
        let landings = landings.count();
        let says =
            usize::from(task.landed.as_ref().is_some_and(|it| self.git.is_ancestor(oid(&it.commit), base)));
        let unknown = task.landing.is_some() && !task.is_over();
        self.demand(landings == says || (unknown && landings <= 1), || {
            format!("34 {} is in the base {landings} times and says {:?}", task.id, task.landed)
        });
    }
}

fn word(debug: &str) -> String {
    debug.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

fn batch_of(effect: &landfall_model::QueueEffect) -> BatchId {
    use landfall_model::QueueEffect as Effect;
    match effect {
        Effect::Build { batch, .. }
        | Effect::Check { batch, .. }
        | Effect::Land { batch, .. }
        | Effect::Abandon { batch } => *batch,
    }
}

fn batch_in(news: &landfall_model::QueueNews) -> Option<BatchId> {
    use landfall_model::QueueNews as News;
    match news {
        News::Built { batch, .. }
        | News::Checked { batch, .. }
        | News::Landed { batch, .. }
        | News::LandMoved { batch, .. }
        | News::LandMismatch { batch, .. }
        | News::Failed { batch, .. }
        | News::Exhausted { batch, .. } => Some(*batch),
        News::Look
        | News::BaseMoved { .. }
        | News::Hold { .. }
        | News::Resume
        | News::Retry
        | News::BranchRestored => None,
    }
}

pub fn attempt_of(effect: &Effect) -> Option<Attempt> {
    match effect {
        Effect::Prepare { attempt, .. }
        | Effect::Spawn { attempt, .. }
        | Effect::Kill { attempt, .. }
        | Effect::Check { attempt, .. }
        | Effect::Exchange { attempt, .. }
        | Effect::Recover { attempt, .. }
        | Effect::Report { attempt, .. } => Some(*attempt),
        Effect::Tidy { .. } => None,
    }
}

/// Whether two orders are the same one.
pub fn is_same(one: &Effect, other: &Effect) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other) && attempt_of(one) == attempt_of(other)
}

pub fn attempt_in(news: &News) -> Option<Attempt> {
    match news {
        News::WorkspaceReady { attempt, .. }
        | News::MachineFailed { attempt, .. }
        | News::Exhausted { attempt, .. }
        | News::AgentEnded(EndedRun { attempt, .. })
        | News::Checked { attempt, .. }
        | News::MergeConflict { attempt, .. }
        | News::NothingChanged { attempt }
        | News::WorkspaceRebuilt { attempt }
        | News::LandingBegan { attempt, .. }
        | News::Ejected { attempt, .. }
        | News::Doubted { attempt, .. }
        | News::LandUnsure { attempt }
        | News::Landed { attempt, .. }
        | News::LandMoved { attempt, .. }
        | News::LandMismatch { attempt, .. }
        | News::Strode { attempt, .. }
        | News::AccountWaitBegan { attempt, .. }
        | News::AccountWaitEnded { attempt, .. }
        | News::Reported { attempt, .. } => Some(*attempt),
        _ => None,
    }
}

//! The loop around the real core: an engine that starts, looks, writes, performs, hears, ends and crashes, as the one in
//! `engine.rs` does, with everything outside of it simulated.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use landfall_engine::AskError;
use landfall_engine::core::{Core, CoreTurn, EnginePolicy, Replay, RunOptions, SprintRequest};
use landfall_model::base_gate::BaseCheckResult;
use landfall_model::checkpoint::Retention;
use landfall_model::conflict::ConflictTimeoutAction;
use landfall_model::pilot::PilotMode;
use landfall_model::queue::QueuePolicy;
use landfall_model::review::{ReviewMode, ReviewRule};
use landfall_model::seeded_bugs::{self, SeededBug};
use landfall_model::sprint::{SprintEndCondition, SprintSpec};
use landfall_model::{
    AgentDriveStyle, Attempt, Budget, ConcurrencyLimits, Effect, EngineEvent, Fact, Flow, JournalEntry, News,
    POLL_MS, ProfileRoute, QueueEffect, QueueNews, RepoArea, RunBudgets, RunEnd, RunId, ScheduleLimits, Task,
    TaskId, TaskLimits, Timestamp,
};
use landfall_store::{EntryBatch, Journal as _, MemoryJournal, Seq};

use super::check::Book;
use super::git::{Git, Oid};
use super::host::Host;
use super::outside::Out;
use super::rng::Rng;

pub const TASKS_MAX: usize = 16; // enough for needs, families and a queue; few enough to read a trace

/// What may go wrong. Each seed switches kinds of trouble on and off, so that rare ones meet alone as well.
#[derive(Clone, Default, Debug)]
pub struct Faults {
    /// Agents crash, stall, loop, say nothing, claim what is not so.
    pub agent: bool,
    /// Accounts are used up, logged out, in trouble.
    pub account: bool,
    /// This machine fails.
    pub machine: bool,
    /// Checks that say nothing, and checks that fail now and then.
    pub gate: bool,
    /// Work that is bad, alone or together.
    pub bad: bool,
    /// The engine is killed.
    pub crash: bool,
    /// The engine is killed in the middle of writing.
    pub cut: bool,
    /// News comes twice, or late.
    pub late: bool,
    /// People change their minds about tasks.
    pub person: bool,
    /// People pause, hold, switch and sprint.
    pub pilot: bool,
    /// People push.
    pub push: bool,
    /// People rewrite or delete their branch.
    pub rewrite: bool,
    /// People stop the run.
    pub stop: bool,
    /// The disk fills.
    pub disk: bool,
    /// The clock jumps.
    pub clock: bool,
    /// Agents change the rules they are judged by.
    pub tamper: bool,
    /// The machine is another one after a restart.
    pub machines: bool,
    /// A landing does not check out.
    pub mismatch: bool,
}

impl Faults {
    fn of(rng: &mut Rng) -> Self {
        let mut on = |times: usize| rng.below(times) > 0;
        Self {
            agent: on(3),
            account: on(3),
            machine: on(3),
            gate: on(3),
            bad: on(4),
            crash: on(3),
            cut: on(2),
            late: on(3),
            person: on(3),
            pilot: on(2),
            push: on(3),
            rewrite: on(2),
            stop: on(3),
            disk: on(2),
            clock: !on(4),
            tamper: on(2),
            machines: !on(3),
            mismatch: !on(8),
        }
    }
}

/// What is being done in a thread of its own.
#[derive(Debug, Clone)]
pub enum Order {
    Task(Effect),
    /// An agent is watched until it ends.
    Follow(TaskId, Attempt, u32, u64),
    Queue(QueueEffect),
    /// The second half of a landing: the swap itself.
    Swap(QueueEffect),
    Publish,
    /// The checks run on the base itself.
    CheckBase,
    /// The second half of a rebuild.
    RebuildSwap {
        merged: Oid,
        ours: Oid,
    },
}

/// What arrives at the engine.
#[derive(Debug, Clone)]
pub enum Mail {
    News(TaskId, Box<News>),
    Queue(Box<QueueNews>),
    Fact(EngineEvent),
    PublishOver,
    BaseChecked(Box<BaseCheckResult>),
}

/// How the seed sets the scene.
pub struct Scene {
    pub rules: EnginePolicy,
    pub purse: RunBudgets,
    pub flows: BTreeMap<String, Arc<Flow>>,
    pub files: u8,
    /// Tasks at the beginning.
    pub tasks: usize,
    pub tasks_max: usize,
    pub faults: Faults,
    /// One check in so many fails although it should pass; 0 is never.
    pub flake: usize,
}

/// An engine that has read the first entries of the journal.
#[derive(Clone)]
pub struct JournalReader {
    out: Out,
    core: Core,
    replay: Replay,
    read: usize,
}

impl JournalReader {
    fn new(scene: &Scene) -> Self {
        let out = Out::new(Timestamp(1_000), scene.purse);
        let core = Core::new(scene.flows.clone(), "loop", scene.rules.clone());
        Self { out, core, replay: Replay::default(), read: 0 }
    }

    fn finish(self, now: Timestamp) -> (Out, Core) {
        let Self { out, mut core, replay, .. } = self;
        out.now.set(now);
        core.finish_replay(replay, &out);
        (out, core)
    }
}

pub struct Sim {
    pub seed: u64,
    pub rng: Rng,
    pub faults: Faults,
    pub healed: bool,
    pub scene: Scene,
    pub out: Out,
    pub journal: Vec<JournalEntry>,
    pub reader: RefCell<JournalReader>,
    /// The journal as the real format keeps it, for some seeds: it takes time.
    pub kept: Option<MemoryJournal>,
    /// Tasks that people asked for in this turn, and those of which they were told that they are on record.
    pub answered: Vec<TaskId>,
    pub told: BTreeSet<TaskId>,
    pub core: Option<Core>,
    pub run: Option<RunId>,
    pub why: Option<RunEnd>,
    pub attended: bool,
    pub draining: bool,
    pub interrupted: bool,
    pub low_disk: bool,
    pub git: Git,
    pub host: Host,
    pub orders: Vec<Order>,
    pub mail: VecDeque<Mail>,
    pub late: Vec<Mail>,
    pub publish_wanted: bool,
    pub publish_busy: bool,
    pub book: Book,
    pub turns: u64,
    pub ticks: u64,
    /// How the runs ended, in the order they did.
    pub ends: Vec<RunEnd>,
    /// Grows with every engine: whoever was in the middle of something finds out that it is another one.
    pub life: u32,
}

pub fn flows() -> BTreeMap<String, Arc<Flow>> {
    use std::sync::OnceLock;
    static FLOWS: OnceLock<BTreeMap<String, Arc<Flow>>> = OnceLock::new();
    const ASKING: &str = "\
[flow]
about = \"Ask, work, verify, land.\"
entry = \"ask\"
[step.ask]
kind = \"ask\"
question = \"Which way?\"
phase = \"asking\"
on.answered = \"work\"
[step.work]
kind = \"agent\"
prompt = \"work\"
phase = \"working\"
on.done = \"verify\"
on.blocked = \"stop\"
[step.verify]
kind = \"verify\"
phase = \"verifying\"
on.pass = \"land\"
on.fail = { to = \"work\", max = 100 }
on.conflict = { to = \"work\", max = 3 }
[step.land]
kind = \"land\"
phase = \"landing\"
on.landed = \"end\"
on.conflict = { to = \"work\", max = 3 }
on.red = { to = \"work\", max = 10 }
";
    FLOWS
        .get_or_init(|| {
            let loaded = landfall_engine::flows::load_flows(None);
            let keep = ["loop", "rollback"];
            let mut flows: BTreeMap<_, _> =
                loaded.flows.into_iter().filter(|(name, _)| keep.contains(&name.as_str())).collect();
            match landfall_engine::flows::parse_flow(ASKING, "asking.toml") {
                Ok(flow) => drop(flows.insert("asking".to_owned(), Arc::new(flow))),
                Err(errors) => panic!("{errors:?}"),
            }
            flows
        })
        .clone()
}

fn profiles(rng: &mut Rng) -> BTreeMap<String, (ProfileRoute, AgentDriveStyle)> {
    let mut route = |account: &str, failover: &str| {
        let failover = rng.once_in(2).then(|| failover.to_owned());
        let style = if rng.once_in(3) { AgentDriveStyle::Fresh } else { AgentDriveStyle::Session };
        (ProfileRoute { account: account.to_owned(), failover }, style)
    };
    let routes = [
        ("default", route("first", "spare")),
        ("main", route("first", "spare")),
        ("spare", route("second", "main")),
        ("cheap", route("first", "default")),
    ];
    routes.map(|(profile, route)| (profile.to_owned(), route)).into()
}

fn caps(rng: &mut Rng) -> ConcurrencyLimits {
    let mut caps = ConcurrencyLimits::default();
    if rng.once_in(4) {
        caps.accounts.insert("first".to_owned(), 1 + rng.small(2));
    }
    if rng.once_in(4) {
        caps.profiles.insert("main".to_owned(), 1);
    }
    if rng.once_in(4) {
        let paths = vec!["f1".parse().expect("a path"), "f2".parse().expect("a path")];
        caps.areas.push(RepoArea { name: "front".to_owned(), paths, slots: 1 });
    }
    caps
}

impl Scene {
    /// A scene with everything, by chance.
    pub fn any(rng: &mut Rng) -> Self {
        let faults = Faults::of(rng);
        let mut bounded =
            |times, turns| Budget { turns: rng.once_in(times).then_some(turns), ..Budget::default() };
        let purse = RunBudgets { run: bounded(3, 14), day: bounded(4, 20) };
        let (attempt_budget, task_budget) = (bounded(3, 4), bounded(4, 24));
        let profiles = profiles(rng);
        let rules = EnginePolicy {
            parts_max: 5,
            poll_ms: POLL_MS,
            limits: ScheduleLimits {
                slots: 1 + rng.small(4),
                lanes: 1 + rng.small(2),
                now: Timestamp(0),
                spent: None,
            },
            task: TaskLimits {
                iterations_max: 8,
                task_ms: 120_000,
                stuck_after: 2,
                restarts_max: 3,
                stalls_step_max: 2,
                stalls_total_max: 4,
                conflicts_max: 3,
                loops_max: 2,
                attempt_budget,
                task_budget,
                conflict_ms: 60_000,
                overdue: ConflictTimeoutAction::ALL[rng.below(4)],
                review: ReviewRule {
                    mode: ReviewMode::ALL[rng.below(8).min(3)],
                    iterations_max: 2,
                    after: rng.once_in(6),
                },
                ..TaskLimits::default()
            },
            review_tags: BTreeMap::new(),
            queue: QueuePolicy {
                batch_max: 1 + rng.below(5),
                speculate: rng.below(3),
                runaway: 2 + rng.small(12),
                forms: true,
            },
            failures_max: if rng.once_in(2) { 0 } else { 3 },
            profiles,
            caps: caps(rng),
            reviewer: None,
            judge: None,
            retention: Retention { count: 3, age_ms: 3_600_000 },
            checkpoints: rng.once_in(2),
        };
        let flake = if faults.gate { 50 } else { 0 };
        let files = [4, 6, 10, 20, 40][rng.below(5)];
        Self {
            rules,
            purse,
            flows: flows(),
            files,
            tasks: 3 + rng.below(5),
            tasks_max: TASKS_MAX,
            faults,
            flake,
        }
    }
}

impl Scene {
    /// A busy landing queue: work that conflicts and quarrels, checks that fail now and then, and nothing else.
    pub fn busy_queue(rng: &mut Rng) -> Self {
        let mut scene = Self::any(rng);
        scene.faults = Faults { bad: true, ..Faults::default() };
        scene.purse = RunBudgets::default();
        scene.flake = 50;
        scene.files = 30;
        (scene.tasks, scene.tasks_max) = (50, 50);
        scene.rules.caps = ConcurrencyLimits::default();
        scene.rules.limits = ScheduleLimits { slots: 12, lanes: 4, ..scene.rules.limits };
        scene.rules.queue = QueuePolicy {
            batch_max: 4 + rng.below(5),
            speculate: 1 + rng.below(2),
            runaway: 40,
            forms: true,
        };
        scene.rules.failures_max = 0;
        scene.rules.task = TaskLimits {
            iterations_max: 50,
            task_ms: 3_600_000,
            conflicts_max: 10,
            conflict_ms: 60_000,
            ..TaskLimits::default()
        };
        scene
    }
}

impl Sim {
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let scene = Scene::any(&mut rng);
        Self::with(seed, rng, scene)
    }

    pub fn with(seed: u64, rng: Rng, scene: Scene) -> Self {
        let git = Git::new(scene.files);
        let mut sim = Self {
            seed,
            rng,
            faults: scene.faults.clone(),
            healed: false,
            out: Out::new(Timestamp(1_000), scene.purse),
            reader: RefCell::new(JournalReader::new(&scene)),
            book: Book::new(),
            scene,
            journal: Vec::new(),
            kept: seed.is_multiple_of(KEPT_ONE_IN).then(MemoryJournal::new),
            answered: Vec::new(),
            told: BTreeSet::new(),
            core: None,
            run: None,
            why: None,
            attended: false,
            draining: false,
            interrupted: false,
            low_disk: false,
            git,
            host: Host::default(),
            orders: Vec::new(),
            mail: VecDeque::new(),
            late: Vec::new(),
            publish_wanted: false,
            publish_busy: false,
            turns: 0,
            ticks: 0,
            ends: Vec::new(),
            life: 0,
        };
        sim.open();
        for _ in 0..sim.scene.tasks {
            sim.add();
        }
        sim.close_once();
        sim
    }

    pub fn now(&self) -> Timestamp {
        self.out.now.get()
    }

    pub fn core(&self) -> &Core {
        self.core.as_ref().unwrap_or_else(|| self.fail("no engine runs"))
    }

    /// A new engine reads the journal.
    pub fn open(&mut self) {
        self.life += 1;
        self.check_durable();
        let (out, core) = self.rebuilt();
        (self.out, self.core) = (out, Some(core));
        (self.draining, self.interrupted, self.why) = (false, false, None);
    }

    /// What an engine that reads the journal now would know. Engines start often and journals are long, so each entry is
    /// replayed once and the state before the last entries is kept; `check_settled` compares it with a whole replay.
    pub fn rebuilt(&self) -> (Out, Core) {
        let mut reader = self.reader.borrow_mut();
        self.read_on(&mut reader);
        reader.clone().finish(self.now())
    }

    pub fn rebuilt_from_scratch(&self) -> (Out, Core) {
        let mut reader = JournalReader::new(&self.scene);
        self.read_on(&mut reader);
        reader.finish(self.now())
    }

    fn read_on(&self, reader: &mut JournalReader) {
        for entry in &self.journal[reader.read..] {
            if let Err(error) = reader.core.replay_entry(&mut reader.replay, &reader.out, entry.clone()) {
                self.fail(&format!("7 the journal does not replay: {error}"));
            }
        }
        reader.read = self.journal.len();
    }

    /// Writes what people asked of an engine without a run, and lets it go. Only agents are told to end.
    pub fn close_once(&mut self) {
        let life = self.life;
        let Some(turn) = self.commit() else { return };
        self.demand(life == self.life, || "the engine is another one".to_owned());
        for effect in turn.effects {
            if let Effect::Kill { .. } = effect {
                self.perform(effect);
            }
        }
        self.core = None;
    }

    fn options(&mut self) -> RunOptions {
        let sprint_open = self.core().sprints().open().is_some();
        let rng = &mut self.rng;
        if self.healed {
            let sprint = None;
            return RunOptions {
                slots: None,
                only: Vec::new(),
                mode: PilotMode::Autopilot,
                sprint,
                attended: false,
            };
        }
        let goal = match rng.below(4) {
            0 => SprintEndCondition::Count(1 + rng.small(4)),
            1 => SprintEndCondition::Duration { ms: 1 + rng.ms(200_000) },
            2 => SprintEndCondition::Until(self.out.now.get().plus_ms(rng.ms(200_000))),
            _ => SprintEndCondition::NoReady,
        };
        let sprint = match (self.faults.pilot, sprint_open) {
            (true, true) if rng.once_in(2) => Some(SprintRequest::Open),
            (true, false) if rng.once_in(4) => {
                let mut plan = SprintSpec::new(goal);
                plan.pause_on_error = rng.once_in(3);
                plan.batch_review = rng.once_in(3);
                plan.checkpoint = rng.once_in(2);
                if rng.once_in(4) {
                    plan.only = (1..=4).map(TaskId).collect();
                }
                Some(SprintRequest::New(plan))
            }
            _ => None,
        };
        let only = if self.faults.pilot && rng.once_in(12) { vec![TaskId(1), TaskId(2)] } else { Vec::new() };
        let mode =
            if self.faults.pilot && rng.once_in(5) { PilotMode::SemiAuto } else { PilotMode::Autopilot };
        RunOptions { slots: None, only, mode, sprint, attended: rng.once_in(2) }
    }

    /// Begins a run: replay, start, what should be under way, the first turn.
    pub fn boot(&mut self) {
        self.open();
        let options = self.options();
        self.attended = options.attended;
        self.book.only.clone_from(&options.only);
        let core = self.core.as_mut().expect("just opened");
        let started = match core.start_run(&self.out, "sim", &options) {
            // A sprint that nothing fits is refused, and the person lets it run without.
            Err(AskError::SprintMatchesNothing) => {
                core.start_run(&self.out, "sim", &RunOptions { sprint: None, ..options })
            }
            started => started,
        };
        match started {
            Ok(run) => self.run = Some(run),
            Err(error) => self.fail(&format!("a run cannot start: {error}")),
        }
        let life = self.life;
        if self.commit().is_none() {
            return;
        }
        if self.core().mismatched_landing().is_none() {
            self.publish_wanted = true;
        }
        let (effects, queue_effects) = self.core().expected_effects();
        for effect in effects {
            self.perform(effect);
        }
        for effect in queue_effects {
            self.perform_queue(effect);
        }
        if self.life == life {
            self.turn();
        }
    }

    /// One turn: what follows by itself, written, performed.
    pub fn turn(&mut self) {
        self.turns += 1;
        if self.core().mismatched_landing().is_some() {
            self.publish_wanted = false;
        }
        self.core.as_mut().expect("it runs").advance_state(&self.out, self.low_disk);
        let Some(turn) = self.commit() else { return };
        for effect in turn.effects {
            self.perform(effect);
        }
        for effect in turn.queue_effects {
            self.perform_queue(effect);
        }
        if turn.landed {
            self.publish_wanted = true;
        }
        let is_under_way = self.orders.iter().any(|order| matches!(order, Order::CheckBase))
            || self.mail.iter().any(|mail| matches!(mail, Mail::BaseChecked(..)));
        if !is_under_way && self.core().wants_base_check(&self.out) {
            self.orders.push(Order::CheckBase);
        }
        self.check_turn();
        let idle = self.core().is_idle(&self.out, self.interrupted) && !self.is_tidying();
        if idle && !self.publish_busy && !self.publish_wanted {
            return self.end_run();
        }
        if self.publish_wanted && !self.publish_busy {
            (self.publish_wanted, self.publish_busy) = (false, true);
            self.orders.push(Order::Publish);
        }
    }

    fn is_tidying(&self) -> bool {
        self.orders.iter().any(|order| matches!(order, Order::Task(Effect::Tidy { .. })))
    }

    fn end_run(&mut self) {
        let core = self.core.as_mut().expect("it runs");
        let why = self.why.unwrap_or_else(|| core.run_end_reason(&self.out));
        let run = self.run.expect("a run is under way");
        core.end_run(&self.out, run, why);
        if self.commit().is_none() {
            return;
        }
        self.ends.push(why);
        self.check_rebuilt();
        self.core = None;
        self.forget();
    }

    /// What ends with the engine.
    fn forget(&mut self) {
        self.run = None;
        self.orders.clear();
        self.mail.clear();
        self.late.clear();
        self.host.stops.clear();
        (self.publish_wanted, self.publish_busy) = (false, false);
    }

    /// Writes what the turn has gathered. None: the engine was killed meanwhile.
    pub fn commit(&mut self) -> Option<CoreTurn> {
        let mut turn = self.core.as_mut().expect("it runs").take_turn();
        let entries = std::mem::take(&mut turn.entries);
        let answered = std::mem::take(&mut self.answered);
        if entries.is_empty() {
            return Some(turn);
        }
        if seeded_bugs::is_active(SeededBug::AckBeforeSync) {
            self.told.extend(&answered);
        }
        for effect in turn.queue_effects.clone() {
            if seeded_bugs::is_active(SeededBug::LandBeforeRecord)
                && matches!(effect, QueueEffect::Land { .. })
            {
                self.execute(Order::Swap(effect));
            }
        }
        if self.faults.crash && self.rng.once_in(250) {
            let durable = match self.rng.below(3) {
                0 => 0,
                1 if self.faults.cut => self.rng.below(entries.len() + 1),
                _ => entries.len(),
            };
            self.write(entries.into_iter().take(durable).collect());
            self.crash();
            return None;
        }
        self.write(entries);
        self.told.extend(answered);
        self.check_touched(&turn.touched);
        Some(turn)
    }

    fn write(&mut self, entries: Vec<JournalEntry>) {
        for entry in &entries {
            self.absorb(entry);
            self.journal.push(entry.clone());
        }
        if let Some(kept) = &self.kept {
            let batch = EntryBatch { tasks: self.touched_by(&entries), entries };
            let appended = kept.append(batch).map(|it| it.last);
            let last = Seq(self.journal.len() as u64);
            self.demand(matches!(&appended, Ok(it) if *it == last), || {
                format!("2 {appended:?}, not {last:?}")
            });
        }
    }

    fn touched_by(&self, entries: &[JournalEntry]) -> Vec<Arc<Task>> {
        let ids = entries.iter().filter_map(|entry| match &entry.fact {
            Fact::Task(id, _) => Some(*id),
            Fact::Engine(_) => None,
        });
        let ids: BTreeSet<TaskId> = ids.collect();
        ids.iter().map(|id| Arc::new(self.book.tasks[id].clone())).collect()
    }

    /// The engine is killed. Agents go on without it; some die.
    pub fn crash(&mut self) {
        self.book.meet("crash");
        self.core = None;
        self.forget();
        let alive: Vec<_> =
            self.host.agents.iter().filter(|(_, agent)| agent.end.is_none()).map(|(key, _)| *key).collect();
        for key in alive {
            if self.rng.once_in(3) {
                self.agent_vanishes(key);
            }
        }
        if self.faults.machines && self.rng.once_in(3) {
            self.host.environment = 1 - self.host.environment;
        }
    }

    /// Tells the engine to begin nothing new, and, if `now`, the agents to end.
    pub fn stop(&mut self, now: bool) {
        let core = self.core.as_mut().expect("it runs");
        core.start_draining();
        self.draining = true;
        self.why = Some(if now { RunEnd::Interrupted } else { RunEnd::Drained });
        if now {
            let running: Vec<TaskId> = core.world().active_tasks().map(|task| task.id).collect();
            for task in running {
                core.handle_task_news(&self.out, task, &News::Interrupt);
            }
            self.interrupted = true;
            let is_check = |order: &Order| {
                matches!(order, Order::Task(Effect::Check { .. }) | Order::Queue(QueueEffect::Check { .. }))
            };
            self.orders.retain(|order| !is_check(order));
        }
    }

    /// Takes in so many pieces of mail.
    pub fn deliver(&mut self, most: usize) {
        for _ in 0..most {
            let Some(mail) = self.mail.pop_front() else { break };
            if self.faults.late && self.rng.once_in(8) && self.late.len() < 12 {
                self.late.push(mail.clone());
            }
            self.hear(mail);
        }
        self.turn();
    }

    pub fn hear(&mut self, mail: Mail) {
        let core = self.core.as_mut().expect("it runs");
        match mail {
            Mail::News(task, news) => core.handle_task_news(&self.out, task, &news),
            Mail::Queue(news) => core.handle_queue_news(&self.out, &news),
            Mail::Fact(event) => core.record_engine_event(&self.out, event),
            Mail::BaseChecked(result) => core.handle_base_check(&self.out, &result),
            Mail::PublishOver => self.publish_busy = false,
        }
    }

    /// News that comes again, or late: it may be refused, and must do no harm.
    pub fn deliver_late(&mut self) {
        let at = self.rng.below(self.late.len());
        let mail = self.late.swap_remove(at);
        let stale = match &mail {
            Mail::News(task, news) => {
                let current = self.core().world().get(*task).map(|task| task.attempt);
                super::check::attempt_in(news).filter(|attempt| Some(*attempt) != current).map(|_| *task)
            }
            Mail::Queue(_) => None,
            Mail::Fact(_) | Mail::PublishOver | Mail::BaseChecked(..) => return, // the engine's own, once
        };
        let before = stale.map(|task| self.core().expect_task(task));
        self.hear(mail.clone());
        if let (Some(task), Some(before)) = (stale, before) {
            let same = *self.core().expect_task(task) == *before;
            self.demand(same, || format!("11 {task} took stale news {mail:?}"));
        }
        self.orders_of_the_past();
        self.turn();
    }

    /// An order whose answer was taken in another way is not waited for.
    fn orders_of_the_past(&mut self) {
        let core = self.core.as_ref().expect("it runs");
        let wanted = |order: &Order| match order {
            Order::Task(effect) => core.world().get(effect.task()).is_some_and(|task| {
                landfall_model::expected_task_effects(task).iter().any(|it| super::check::is_same(it, effect))
            }),
            Order::Follow(..)
            | Order::Queue(_)
            | Order::Swap(_)
            | Order::Publish
            | Order::CheckBase
            | Order::RebuildSwap { .. } => true,
        };
        self.orders.retain(wanted);
    }

    // ── the walk ─────────────────────────────────────────────────────────────────────────────────────────

    /// Something happens.
    pub fn tick(&mut self) {
        self.ticks += 1;
        let more = self.rng.ms(900);
        self.pass(more);
        if self.core.is_none() {
            return self.away();
        }
        match self.rng.below(100) {
            0 if self.faults.crash => self.crash(),
            1..=3 if self.faults.push => self.person_pushes(),
            4 if self.faults.rewrite => self.person_rewrites(),
            5..=10 if self.faults.person => self.ask(Self::person_acts),
            11..=13 if self.faults.pilot => self.ask(Self::person_drives),
            14..=18 => self.ask(Self::person_looks),
            19 if self.faults.stop && self.rng.once_in(4) => {
                let now = self.rng.once_in(2);
                self.stop(now);
                self.turn();
            }
            20..=21 if self.faults.late && !self.late.is_empty() => self.deliver_late(),
            22 if self.faults.disk => {
                self.low_disk = !self.low_disk;
                self.turn();
            }
            23 => self.ask(Self::add),
            24 if self.faults.clock => {
                let jump = i64::try_from(self.rng.below(7_200_000)).expect("small") - 3_600_000;
                self.out.now.set(Timestamp((self.now().0 + jump).max(1)));
            }
            25 => self.model_answers(),
            _ => self.go_on(),
        }
    }

    /// The engine or the machine goes on by itself.
    pub fn go_on(&mut self) {
        if !self.mail.is_empty() && (self.orders.is_empty() || self.rng.once_in(2)) {
            let most = 1 + self.rng.below(4);
            return self.deliver(most);
        }
        if self.orders.is_empty() {
            return self.sleep();
        }
        // Batches take their time, so that others come to stand in line behind them.
        let mut at = self.rng.below(self.orders.len());
        if matches!(self.orders[at], Order::Queue(_) | Order::Swap(_)) && self.rng.below(4) > 0 {
            at = self.rng.below(self.orders.len());
        }
        let order = self.orders.swap_remove(at);
        self.execute(order);
        if self.faults.crash && self.rng.once_in(300) {
            self.crash(); // what was done is done, and nobody was told
        }
    }

    /// Nothing is under way: the engine waits for the clock.
    fn sleep(&mut self) {
        let wake =
            self.core().next_wakeup(&self.out).map_or(60_000, |at| (at.0 - self.now().0).clamp(1, 60_000));
        self.pass(u64::try_from(wake).expect("not below 1"));
        self.turn();
    }

    pub fn pass(&self, ms: u64) {
        self.out.now.set(self.now().plus_ms(ms));
    }

    /// No engine runs: people do things in the meantime.
    fn away(&mut self) {
        match self.rng.below(8) {
            0 if self.faults.person => self.once(Self::person_acts),
            1 if self.faults.person => self.once(Self::person_looks),
            2 if self.faults.push => self.person_pushes(),
            3 if self.faults.rewrite && self.rng.once_in(3) => self.person_rewrites(),
            4 => {
                let gone = self.rng.ms(400_000);
                self.pass(gone);
            }
            _ => self.boot(),
        }
    }

    /// A person asks the running engine; the answer comes with the end of the turn.
    fn ask(&mut self, what: impl FnOnce(&mut Self)) {
        what(self);
        self.turn();
    }

    /// A person asks an engine that does not run.
    pub fn once(&mut self, what: impl FnOnce(&mut Self)) {
        self.open();
        what(self);
        self.close_once();
    }

    /// A model answers an agent at work for the first time.
    fn model_answers(&mut self) {
        let running: Vec<TaskId> =
            self.host.agents.iter().filter(|(_, agent)| agent.end.is_none()).map(|(key, _)| key.0).collect();
        let Some(task) = self.rng.pick(&running) else { return };
        self.core.as_mut().expect("it runs").note_model_answer(&self.out, *task);
        self.turn();
    }

    /// One line for each fact and each move of the base: the same seed gives the same bytes.
    pub fn trace(&self) -> String {
        let mut trace = String::new();
        for entry in &self.journal {
            trace.push_str(&format!("{} {:?}\n", entry.at.0, entry.fact));
        }
        for at in &self.git.moves {
            trace.push_str(&format!("{at:?}\n"));
        }
        trace
    }

    pub fn demand(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.fail(&what());
        }
    }

    pub fn fail(&self, what: &str) -> ! {
        let shown = std::env::var("LANDFALL_SHOWN").ok().and_then(|it| it.parse().ok()).unwrap_or(LAST_SHOWN);
        let last = self.journal.iter().rev().take(shown).rev().map(|entry| {
            let line = match &entry.fact {
                Fact::Task(id, event) => format!("  {} {id} {event:?}", entry.at.0),
                Fact::Engine(event) => format!("  {} {event:?}", entry.at.0),
            };
            line.chars().take(LINE_MAX).collect::<String>()
        });
        let last: Vec<_> = last.collect();
        panic!(
            "seed {}: {what}\nafter {} facts and {} turns, the last facts\n{}",
            self.seed,
            self.journal.len(),
            self.turns,
            last.join("\n")
        )
    }
}

const KEPT_ONE_IN: u64 = 16;
const LAST_SHOWN: usize = 14; // a turn or three: enough to see what led to it
const LINE_MAX: usize = 260;

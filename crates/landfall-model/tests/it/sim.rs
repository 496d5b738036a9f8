//! A simulated world: an engine loop around the core, a host that answers orders in any order with any outcome,
//! a git that remembers, people who change their minds, and crashes. No clock, no thread, one seed.
//!
//! After every piece of news the invariants are checked; a failure names the seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use landfall_model::conflict::{ConflictTimeoutAction, ConflictingFile, FileConflictKind};
use landfall_model::convergence::DIRECTIONS_MAX;
use landfall_model::gate::{CheckOutcome, GateReport};
use landfall_model::objective::{ObjectiveItem, ObjectiveSplit, Requirement, Weight};
use landfall_model::plan::{PlanOutline, PlanStep};
use landfall_model::queue::{
    self, BatchDoing, BatchExclusion, BatchMember, BatchPrefix, HoldReason, LandingBatch, Queue,
    QueueDecision, QueuePolicy,
};
use landfall_model::review::{RedoChoice, ReviewMode, ReviewRule};
use landfall_model::score::{GatePoint, Judgement, RefinementImpact, RequirementCoverage, Scores};
use landfall_model::staged::{PLAN, StagedEvent};
use landfall_model::{
    AccountPermit, AgentAssignment, AgentDriveStyle, AgentExit, AgentRunEvidence, AgentRunTraces, AgentUsage,
    Attempt, AttemptPhase, BatchId, Budget, BudgetDay, BudgetScope, BudgetUse as _, ChangeConcern, Commit,
    ConcernCode, ContextUsage, ControlSignal, Counters, Digest, Effect, EndKind, EndedRun, Ending,
    EngineEvent, Event, ExhaustedBudget, Fact, Flow, GrantKind, IntakeState, JournalEntry, LandingCandidate,
    News, NewsRefusal, POLL_MS, ProfileRoute, QueueEffect, QueueEvent, QueueNews, ReviewInput, RunBudgets,
    RunId, ScheduleLimits, SessionStart, SignOff, Signal, SpendLog, Spending, StepKind, StepName, StepResult,
    Task, TaskId, TaskInput, TaskLimitOverrides, TaskLimits, TaskSpec, TaskState, Timestamp, Tree, Verdict,
    WaitReason, World, apply, decide_and_apply, expected_task_effects, graph, plan,
};

use crate::flows_used::{asks, lifecycle, loops, polishes, stages, takes_back, tries_once};
use crate::story::command;

const DAY_MS: i64 = 60 * 60 * 1000; // short days, so that a walk sees some
const OWN_ITERATIONS: u32 = 60; // what a person gives one task
const STAGED_MAX: u32 = 3;
const TASKS_MAX: u32 = 14; // enough for needs, families and a queue; few enough to read a trace

/// Xorshift with a multiplier: small, and the same on every machine.
#[derive(Clone)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).expect("below a usize")
    }

    /// True once in `times`.
    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// What may go wrong. Each seed switches kinds of trouble on and off, so that rare ones meet alone as well.
#[derive(Clone, Default)]
struct Faults {
    agent: bool,
    machine: bool,
    gate: bool,
    conflict: bool,
    crash: bool,
    late: bool,
    person: bool,
    push: bool,
    drain: bool,
    account: bool,
    session: bool,
    circle: bool,
}

impl Faults {
    fn of(rng: &mut Rng) -> Self {
        let mut on = || !rng.once_in(3);
        Self {
            agent: on(),
            machine: on(),
            gate: on(),
            conflict: on(),
            crash: on(),
            late: on(),
            person: on(),
            push: on(),
            drain: on(),
            account: on(),
            session: on(),
            circle: on(),
        }
    }
}

/// One commit of the base.
#[derive(Clone)]
struct Landing {
    commit: Commit,
    base_before: Commit,
    tree: Tree,
    /// Whoever landed with it; nobody when a person pushed.
    tasks: Vec<TaskId>,
}

/// The repository: what the base is, and what was ever found green. It outlives the engine.
#[derive(Clone)]
struct Git {
    base: Commit,
    history: Vec<Landing>,
    green: BTreeSet<(Tree, Commit)>,
    /// Landings whose independent check disagrees, however often it looks.
    mismatched: BTreeSet<Commit>,
    commits: u32,
}

impl Git {
    fn commit(&mut self, kind: &str) -> Commit {
        self.commits += 1;
        Commit::new(&format!("{kind}{}", self.commits))
    }

    fn move_base(&mut self, commit: Commit, tree: Tree, tasks: Vec<TaskId>) {
        let base_before = std::mem::replace(&mut self.base, commit.clone());
        self.history.push(Landing { commit, base_before, tree, tasks });
    }

    /// How the base came to hold the work of a task, as git alone tells.
    fn landing_of(&self, task: &Task) -> Option<&Landing> {
        let before = |landing: &Landing| task.landed_before.iter().any(|it| it.commit == landing.commit);
        self.history.iter().find(|landing| landing.tasks.contains(&task.id) && !before(landing))
    }
}

#[derive(Clone)]
struct Workspace {
    base: Commit,
    head: Commit,
}

#[derive(Clone)]
struct Agent {
    killed: bool,
    end: Option<EndedRun>,
    talk: SessionStart,
    profile: String,
}

/// A session of an agent, as the agent knows it.
#[derive(Clone, PartialEq)]
struct Known {
    task: TaskId,
    profile: String,
    gone: bool,
    /// How often it was asked to sum itself up.
    asked: u32,
}

/// The machine: it goes on when the engine does not.
#[derive(Clone, Default)]
struct Host {
    workspaces: BTreeMap<TaskId, Workspace>,
    agents: BTreeMap<(TaskId, Attempt, u32), Agent>,
    sessions: BTreeMap<String, Known>,
}

#[derive(Clone)]
pub struct Sim {
    seed: u64,
    rng: Rng,
    faults: Faults,
    concerning: bool,
    /// Whether some work is red once it meets other work.
    quarrelsome: bool,
    healed: bool,
    now: Timestamp,
    pub journal: Vec<JournalEntry>,
    /// How long the history of the base was when each entry was written.
    pub landed_by: Vec<usize>,
    world: World,
    flows: BTreeMap<String, Arc<Flow>>,
    /// The flows that new tasks follow, one as often as the other.
    repertoire: &'static [&'static str],
    limits: ScheduleLimits,
    task_limits: TaskLimits,
    routes: BTreeMap<String, ProfileRoute>,
    styles: BTreeMap<String, AgentDriveStyle>,
    purse: RunBudgets,
    ledger: SpendLog,
    drive: IntakeState,
    git: Git,
    host: Host,
    queue: Queue,
    policy: QueuePolicy,
    /// Grows with every restart: whoever was in the middle of something finds out that it was another engine.
    life: u32,
    /// Orders that were performed and not answered yet. The engine knows them; a crash forgets them.
    orders: Vec<Effect>,
    queue_orders: Vec<QueueEffect>,
    /// What the queue may hear a second time, or after it gave up waiting. It ends with the engine.
    queue_late: Vec<QueueNews>,
    /// News that came before and may come again.
    late: Vec<(TaskId, News)>,
    cancelled: BTreeSet<TaskId>,
    /// Work that a person should see before it lands.
    doubtful: BTreeSet<Commit>,
    /// Work that a person let pass.
    approved: BTreeSet<(TaskId, Commit)>,
    pub heard: u64,
    /// How often a task was woken because an account was open.
    pub rescues: u32,
    /// How often the first answer of a model opened an account.
    pub openings: u32,
    /// How often a person had a shut account tried.
    pub overrulings: u32,
    /// What the queue went through.
    pub met: BTreeMap<String, u32>,
}

const SHORT: [&str; 7] = ["loop", "loop", "loop", "rollback", "asking", "polishing", "once"];
const LONG: [&str; 4] = ["staged", "staged", "lifecycle", "loop"];

impl Sim {
    pub fn new(seed: u64) -> Self {
        Self::with(seed, &SHORT)
    }

    /// A world whose tasks have plans, judges, objectives and stages.
    pub fn staged(seed: u64) -> Self {
        Self::with(seed, &LONG)
    }

    fn with(seed: u64, repertoire: &'static [&'static str]) -> Self {
        let mut rng = Rng::new(seed);
        let all = [loops(), takes_back(), asks(), polishes(), tries_once(), lifecycle(), stages()];
        let flows: BTreeMap<String, Arc<Flow>> = all.map(|flow| (flow.name.clone(), flow)).into();
        let long = repertoire == LONG;
        let routes = routes(&mut rng);
        let styles = routes.keys().map(|profile| (profile.clone(), style(&mut rng))).collect();
        let mut bounded =
            |times, turns| Budget { turns: rng.once_in(times).then_some(turns), ..Budget::default() };
        let purse = RunBudgets { run: bounded(3, 12), day: bounded(3, 12) };
        let (attempt_budget, task_budget) = (bounded(3, 3), bounded(3, 9));
        let mut sim = Self {
            seed,
            concerning: !rng.once_in(3),
            quarrelsome: !rng.once_in(3),
            faults: Faults::of(&mut rng),
            healed: false,
            now: Timestamp(1_000),
            journal: Vec::new(),
            landed_by: Vec::new(),
            world: empty(&flows, &routes),
            flows,
            repertoire,
            routes,
            styles,
            purse,
            ledger: SpendLog::default(),
            limits: ScheduleLimits {
                slots: 1 + u32::try_from(rng.below(3)).expect("small"),
                lanes: 1 + u32::try_from(rng.below(2)).expect("small"),
                now: Timestamp(1_000),
                spent: None,
            },
            task_limits: TaskLimits {
                iterations_max: if long { OWN_ITERATIONS } else { 8 }, // every run of a judge is one
                task_ms: if long { 600_000 } else { 60_000 },
                stuck_after: 2,
                restarts_max: 3,
                stalls_step_max: 2,
                stalls_total_max: 4,
                conflicts_max: 3,
                loops_max: 2,
                attempt_budget,
                task_budget,
                conflict_ms: 5_000,
                overdue: ConflictTimeoutAction::ALL[rng.below(4)],
                review: ReviewRule {
                    mode: ReviewMode::ALL[rng.below(8).min(3)],
                    iterations_max: 2,
                    after: false,
                },
                ..TaskLimits::default()
            },
            drive: IntakeState::Running,
            git: Git {
                base: Commit::new("root"),
                history: Vec::new(),
                green: BTreeSet::new(),
                mismatched: BTreeSet::new(),
                commits: 0,
            },
            queue: Queue::default(),
            policy: QueuePolicy {
                batch_max: 1 + rng.below(5),
                speculate: rng.below(3),
                runaway: 1 + u32::try_from(rng.below(8)).expect("small"),
                forms: true,
            },
            life: 0,
            queue_orders: Vec::new(),
            queue_late: Vec::new(),
            host: Host::default(),
            orders: Vec::new(),
            late: Vec::new(),
            cancelled: BTreeSet::new(),
            doubtful: BTreeSet::new(),
            approved: BTreeSet::new(),
            heard: 0,
            rescues: 0,
            openings: 0,
            overrulings: 0,
            met: BTreeMap::new(),
            rng,
        };
        for _ in 0..3 + sim.rng.below(4) {
            sim.add();
        }
        sim
    }

    /// A new engine over the first `entries` of a journal, with the repository as it was then. When `ahead`, a
    /// landing that was under way is in the base already, though no entry says so.
    pub fn cut(&self, entries: usize, alive: bool, ahead: bool) -> Self {
        let mut sim = self.clone();
        sim.journal.truncate(entries);
        sim.landed_by.truncate(entries);
        sim.rng = Rng::new(self.seed ^ (entries as u64) << 20);
        let tasks = fold(&sim.journal);
        let kept = sim.landed_by.last().copied().unwrap_or(0);
        let next = self.git.history.get(kept).map(|landing| &landing.commit);
        let under_way = read_queue(&sim.journal, &tasks).batches().iter().any(|batch| match batch.doing {
            BatchDoing::Landing(count) => Some(&batch.prefixes[count - 1].commit) == next,
            BatchDoing::Building | BatchDoing::Checking(_) | BatchDoing::Resting => false,
        });
        sim.git.history.truncate(kept + usize::from(ahead && under_way));
        sim.git.base = sim.git.history.last().map_or_else(|| Commit::new("root"), |last| last.commit.clone());
        sim.host.agents.clear();
        sim.host.workspaces.clear();
        for task in &tasks {
            if let Some(base) = &task.workspace {
                let head = task.seen_head.clone().unwrap_or_else(|| base.clone());
                sim.host.workspaces.insert(task.id, Workspace { base: base.clone(), head });
            }
            if let TaskState::Active { doing: AttemptPhase::Running { iteration, stop, talk, .. }, .. } =
                &task.state
            {
                let key = (task.id, task.attempt, *iteration);
                let end = (!alive).then(|| sim.run_that_was(task, AgentExit::Lost));
                let profile = task.driving.as_ref().expect("settled before it runs").profile.clone();
                let (killed, talk) = (stop.is_some(), talk.clone());
                sim.host.agents.insert(key, Agent { killed, end, talk, profile });
            }
        }
        // What an agent was asked or lost after the cut has not happened.
        sim.host.sessions.values_mut().for_each(|session| (session.asked, session.gone) = (0, false));
        sim.late.clear();
        // A cancel that the cut took back is no longer binding.
        sim.cancelled.clear();
        sim.restart();
        sim
    }

    fn run_that_was(&self, task: &Task, exit: AgentExit) -> EndedRun {
        EndedRun {
            attempt: task.attempt,
            iteration: task.counters.iterations + 1,
            exit,
            seen: Vec::new(),
            evidence: AgentRunEvidence::default(),
            took_ms: 10,
            usage: AgentUsage::default(),
            traces: AgentRunTraces::default(),
            climbed: None,
        }
    }

    // ── the walk ─────────────────────────────────────────────────────────────────────────────────────────

    /// Something happens.
    pub fn tick(&mut self) {
        self.now = self.now.plus_ms(self.rng.below(700) as u64);
        match self.rng.below(44) {
            0 if self.faults.crash => self.crash(),
            1 if self.faults.push => self.person_pushes(),
            2 if self.faults.drain => self.drain_or_drive(),
            3 if self.faults.late && !self.late.is_empty() => {
                let at = self.rng.below(self.late.len());
                let (task, news) = self.late.swap_remove(at);
                self.hear_stray(task, news);
            }
            4..=6 if self.faults.person => self.person_acts(),
            7 => self.add(),
            8..=13 if self.next_moment().is_some() => self.pass_time(),
            16 if self.spent().is_some_and(|spent| spent.until.is_none()) => self.start_a_run(),
            14..=15 => {
                self.person_answers();
            }
            17 => self.model_answers(),
            18 if self.faults.late && !self.queue_late.is_empty() => {
                let at = self.rng.below(self.queue_late.len());
                let news = self.queue_late.swap_remove(at);
                self.queue_hears(&news);
            }
            19 if self.faults.person && self.rng.once_in(3) => self.person_holds(),
            20..=21 if self.faults.person && self.repertoire == LONG => self.person_steers(),
            _ => self.answer_an_order(),
        }
        self.grant_all();
    }

    /// Every trouble ends; everyone does what is asked of them.
    pub fn heal(&mut self) {
        self.faults = Faults::default();
        self.healed = true;
        self.drive = IntakeState::Running;
        self.late.clear();
        self.queue_late.clear();
        self.grant_all();
        let bound = 250 * usize::try_from(TASKS_MAX).expect("small") + 2 * self.world.tasks().count();
        for _ in 0..bound {
            if !self.orders.is_empty() || !self.queue_orders.is_empty() {
                self.answer_an_order();
            } else if self.rng.once_in(3) && self.person_answers() {
                // People look now and then, not only when nothing else is left.
            } else if self.next_moment().is_some() {
                self.pass_time();
            } else if self.world.waiting_for(GrantKind::Slot) > 0 && self.spent().is_some() {
                self.start_a_run();
            } else if !self.person_answers() {
                break;
            }
            self.grant_all();
        }
        self.check_settled();
    }

    /// Lets all possible tasks go on, and the landing queue look at those who stand in line now.
    fn grant_all(&mut self) {
        self.grant_tasks();
        // Whoever hears something by a decision is not taken up by the same one.
        for _ in 0..10 {
            if !self.queue.is_busy() && self.queue.hold_until().is_none() {
                return; // nobody stands in line, or it is held until somebody says otherwise
            }
            let entries = self.journal.len();
            self.queue_hears(&QueueNews::Look);
            if self.journal.len() == entries {
                return self.check_taken();
            }
        }
        self.fail("the queue never comes to rest");
    }

    fn grant_tasks(&mut self) {
        if self.drive == IntakeState::Draining {
            return;
        }
        let mut rescued = 0;
        while let Some(id) = self.world.find_rescuable_task(self.now) {
            let taken = self.hear(id, News::RouteOpened);
            self.demand(taken, || format!("{id} waits for an account that is open"));
            rescued += 1;
            self.rescues += 1;
            self.demand(rescued < 200, || "rescuing never ends".to_owned());
        }
        let mut grants = 0;
        while let Some(grant) = plan(&self.world, &self.limits_now()) {
            let task = self.world.get(grant.task).expect("granted tasks exist").clone();
            let unmet = self.world.unmet_needs(&task);
            self.demand(unmet.is_empty(), || format!("{} started before {unmet:?} landed", task.id));
            self.demand(matches!(task.state, TaskState::Ready { .. }), || {
                format!("{} was not ready", task.id)
            });
            let flow = self.world.flow_of(&task).expect("a task in line has a flow");
            let limits = self.task_limits.clone();
            if grant.standing == GrantKind::Slot {
                self.check_route(grant.task, &grant.profile);
            }
            let driving = self.driving(&grant.profile);
            let taken = self.hear(grant.task, News::Granted { run: RunId(1), flow, limits, driving });
            self.demand(taken, || format!("{} refused a grant", grant.task));
            self.check_limits();
            grants += 1;
            self.demand(grants < 200, || "granting never ends".to_owned());
        }
    }

    fn answer_an_order(&mut self) {
        // Batches take their time, so that others come to stand in line behind them.
        let the_queue = !self.queue_orders.is_empty() && (self.orders.is_empty() || self.rng.once_in(8));
        if the_queue {
            let at = self.rng.below(self.queue_orders.len());
            return self.answer_the_queue(at);
        }
        if self.orders.is_empty() {
            return;
        }
        let at = self.rng.below(self.orders.len());
        let order = self.orders.swap_remove(at);
        let task = order.task();
        let Some(news) = self.outcome(&order) else { return };
        if self.faults.crash && self.rng.once_in(60) {
            return self.crash(); // the news was on its way and is lost
        }
        if self.faults.late && self.rng.once_in(6) {
            self.late.push((task, news.clone()));
        }
        let before = self.world.get(task).expect("orders are of tasks").clone();
        let taken = self.hear(task, news);
        // What was ordered for the attempt under way is always wanted.
        let owed =
            matches!(before.state, TaskState::Active { .. }) && attempt_of(&order) == Some(before.attempt);
        self.demand(taken || !owed, || format!("{task} refused the answer to {order:?}"));
    }

    fn answer_the_queue(&mut self, at: usize) {
        let order = self.queue_orders.swap_remove(at);
        let news = self.queue_outcome(&order);
        if self.faults.crash && self.rng.once_in(60) {
            return self.crash(); // the news was on its way and is lost; what was done is done
        }
        if self.faults.late && self.rng.once_in(6) {
            self.queue_late.push(news.clone());
        }
        let landed = matches!(news, QueueNews::Landed { .. });
        self.queue_hears(&news);
        if landed {
            self.base_advanced();
        }
    }

    /// News that nobody waits for any more: it may be refused, and must do no harm.
    fn hear_stray(&mut self, task: TaskId, news: News) {
        let before = self.world.get(task).expect("news is of tasks").clone();
        let stale = attempt_in(&news).is_some_and(|attempt| attempt != before.attempt);
        let taken = self.hear(task, news.clone());
        self.demand(!(stale && taken), || format!("{task} took stale news {news:?}"));
        if taken {
            // The same news twice, once taken late: its order is answered.
            self.orders.retain(|order| order.task() != task || expects_order(&self.world, order));
        }
    }

    fn base_advanced(&mut self) {
        for task in self.world.gate_waits() {
            let taken = self.hear(task, News::BaseAdvanced);
            self.demand(taken, || format!("{task} waits for the base and refused its move"));
        }
    }

    /// The next moment that something waits for: a task, an account, a budget.
    fn next_moment(&self) -> Option<Timestamp> {
        let tomorrow = match self.world.waiting_for(GrantKind::Slot) {
            0 => None,
            _ => self.spent().and_then(|spent| spent.until),
        };
        let due = self.world.next_due().map(|(due, _)| due);
        [due, self.opening(), tomorrow, self.queue.hold_until()].into_iter().flatten().min()
    }

    /// When an account opens that tasks stand in line for, found out by looking at all of them.
    fn opening(&self) -> Option<Timestamp> {
        let opens = |profile: &str| match self.world.account_permit(self.world.account_of(profile), self.now)
        {
            AccountPermit::Never { until } => until,
            AccountPermit::Free | AccountPermit::One => None,
        };
        let limits = ScheduleLimits { spent: None, ..self.limits_now() };
        let held = self.world.tasks().filter(|task| match self.world.hold_reason(task.id, &limits) {
            Some(WaitReason::Quota { .. } | WaitReason::Backoff { .. } | WaitReason::Login { .. }) => true,
            Some(_) | None => false,
        });
        let chains = held.flat_map(|task| self.chain(World::profile_of(task)));
        let opening = chains.filter_map(|profile| opens(&profile)).min();
        let told = self.world.next_opening(self.now);
        self.demand(told == opening, || format!("an account opens at {opening:?}, not at {told:?}"));
        opening
    }

    /// A profile and all that may take over from it.
    fn chain(&self, profile: &str) -> Vec<String> {
        let mut chain = vec![profile.to_owned()];
        let next = |last: &str| self.routes.get(last).and_then(|route| route.failover.clone());
        while let Some(next) = next(chain.last().expect("never empty")).filter(|next| !chain.contains(next)) {
            chain.push(next);
        }
        chain
    }

    fn pass_time(&mut self) {
        let Some(moment) = self.next_moment() else { return };
        self.now = self.now.max(moment);
        if let Some((due, task)) = self.world.next_due().filter(|(due, _)| *due <= self.now) {
            let taken = self.hear(task, News::Due);
            self.demand(taken, || format!("{task} was due at {due:?} and refused"));
        }
    }

    /// Another drive of the engine begins.
    fn start_a_run(&mut self) {
        self.ledger.run_started();
        self.fact(EngineEvent::RunStarted { run: RunId(1), slots: self.limits.slots, only: Vec::new() });
    }

    fn limits_now(&self) -> ScheduleLimits {
        ScheduleLimits { now: self.now, spent: self.spent(), ..self.limits.clone() }
    }

    fn spent(&self) -> Option<ExhaustedBudget> {
        if self.purse == RunBudgets::default() {
            return None;
        }
        let from = self.now.0.div_euclid(DAY_MS) * DAY_MS;
        let day = BudgetDay { from: Timestamp(from), to: Timestamp(from + DAY_MS) };
        self.purse.exhausted_budget(&self.ledger, Spending::default(), day)
    }

    fn driving(&self, profile: &str) -> AgentAssignment {
        let style = self.styles.get(profile).copied().unwrap_or_default();
        let account = self.world.account_of(profile).to_owned();
        AgentAssignment { profile: profile.to_owned(), account, style }
    }

    /// A model answers an agent at work for the first time.
    fn model_answers(&mut self) {
        let running = |task: &&Arc<Task>| {
            matches!(task.state, TaskState::Active { doing: AttemptPhase::Running { stop: None, .. }, .. })
        };
        let at_work: Vec<_> = self.world.tasks().filter(running).cloned().collect();
        let Some(task) = at_work.get(self.rng.below(at_work.len())) else { return };
        let account = task.driving.as_ref().expect("settled before it runs").account.clone();
        let before = self.world.accounts().get(&account).clone();
        let Some(state) = self.world.accounts().state_after_answer(&account, self.now) else { return };
        self.demand(AccountPermit::for_state(&before, self.now) == AccountPermit::One, || {
            format!("{account} was opened from {before:?}")
        });
        self.openings += 1;
        self.world.set_account(&account, state.clone());
        self.fact(EngineEvent::Account { account, state });
    }

    fn drain_or_drive(&mut self) {
        self.drive = match self.drive {
            IntakeState::Draining => IntakeState::Running,
            IntakeState::Running => IntakeState::Draining,
        };
        if self.drive == IntakeState::Draining && self.rng.once_in(2) {
            for task in self.world.active_tasks().map(|task| task.id).collect::<Vec<_>>() {
                self.hear(task, News::Interrupt);
            }
        }
    }

    // ── people ───────────────────────────────────────────────────────────────────────────────────────────

    fn add(&mut self) {
        let id = self.world.next_id();
        // Fewer of the long ones: a stage takes many steps.
        if id.0 > if self.repertoire == LONG { STAGED_MAX } else { TASKS_MAX } {
            return;
        }
        let mut spec = TaskSpec::new("a task").expect("a title");
        spec.priority = u8::try_from(self.rng.below(10)).expect("small");
        spec.draft = self.rng.once_in(12);
        if id.0 > 1 && self.rng.once_in(3) {
            spec.needs.insert(self.any_task());
        }
        if id.0 > 1 && self.rng.once_in(3) {
            spec.parent = Some(TaskId(1));
        }
        let flow = self.repertoire[self.rng.below(self.repertoire.len())];
        spec.flow = Some(flow.to_owned());
        if flow == "staged" && self.rng.once_in(2) {
            spec.criteria = ["it greets", "it asks", "it leaves"].map(str::to_owned).into();
        }
        spec.agent = self.any_profile();
        self.append(id, Event::Added { spec: spec.clone() });
        let mut task = apply(None, id, self.now, &Event::Added { spec }).expect("a new task");
        if flow == "rollback" {
            let offered = Event::Offered { head: self.git.commit("revert") };
            task = apply(Some(task), id, self.now, &offered).expect("a new task takes it");
            self.append(id, offered);
        }
        self.queue.update_task(&task);
        self.world.put_task(task);
    }

    fn any_task(&mut self) -> TaskId {
        let last = usize::try_from(self.world.next_id().0 - 1).expect("small");
        TaskId(1 + u32::try_from(self.rng.below(last)).expect("small"))
    }

    fn any_profile(&mut self) -> Option<String> {
        let profiles = ["main", "main", "main", "spare", "cheap"];
        profiles.get(self.rng.below(profiles.len() + 1)).map(|profile| (*profile).to_owned())
    }

    fn person_acts(&mut self) {
        // Whoever is kept from work by an account is looked at more often.
        let accounts = self.world.accounts();
        let shut = self.world.tasks().find(|task| accounts.state_after_override(task, self.now).is_some());
        let shut = shut.map(|task| task.id);
        let task = shut.filter(|_| self.rng.once_in(2)).unwrap_or_else(|| self.any_task());
        let before = self.world.get(task).expect("it exists").clone();
        let news = match self.rng.below(19) {
            0..=2 => News::StopTask,
            3 => News::Cancel { reason: "no longer wanted".to_owned() },
            4..=7 => News::Retry { fresh: self.rng.once_in(3), note: None },
            8 => News::Answer { text: "no, not so".to_owned() },
            12 => News::Message { text: "not so".to_owned(), now: self.rng.once_in(2) },
            13 => News::Hold { reason: String::new() },
            14..=15 => News::Release,
            16 => News::Block { reason: "not like this".to_owned() },
            17 => {
                let limits = TaskLimitOverrides {
                    iterations_max: Some(OWN_ITERATIONS),
                    task_ms: Some(7_200_000),
                    micro_usd: None,
                };
                News::SetLimits { limits }
            }
            18 => News::Accept { reason: "it is there".to_owned() },
            _ => {
                let Some(spec) = self.edited(&before) else { return };
                News::Edit { spec, flows: None }
            }
        };
        let cancels = matches!(news, News::Cancel { .. });
        let accepts = matches!(news, News::Accept { .. });
        if !self.hear(task, news) {
            return;
        }
        if cancels {
            self.cancelled.insert(task);
        } else if accepts {
            self.cancelled.remove(&task); // a person may work on it again after this
        }
    }

    /// Someone changes their mind about an objective, or does a step by hand.
    fn person_steers(&mut self) {
        let task = self.any_task();
        let number = 1 + u32::try_from(self.rng.below(3)).expect("small");
        let command = ["plan", "check", "exec", "verify", "land"][self.rng.below(5)].to_owned();
        let flow = self.world.get(task).and_then(|task| task.spec.flow.clone());
        let flow = flow.and_then(|flow| self.flows.get(&flow).cloned());
        let news = match self.rng.below(5) {
            0..=1 => News::Refine { text: "and it sings".to_owned() },
            2 => News::Withdraw { number },
            _ => News::Do { command, checkpoint: None, alone: self.rng.once_in(2), flow, note: None },
        };
        self.hear(task, news);
    }

    fn edited(&mut self, task: &Task) -> Option<TaskSpec> {
        let mut spec = task.spec.clone();
        match self.rng.below(5) {
            4 => spec.agent = self.any_profile(),
            0 => spec.priority = u8::try_from(self.rng.below(10)).expect("small"),
            1 => spec.draft = !spec.draft,
            2 => spec.parent = Some(self.any_task()).filter(|parent| *parent != task.id),
            _ => {
                let need = self.any_task();
                if !spec.needs.remove(&need) {
                    spec.needs.insert(need);
                }
                let of = |id| self.world.get(id).map(|it| it.spec.needs.iter().copied().collect());
                if graph::find_cycle(task.id, &spec.needs, &|id| of(id).unwrap_or_default()).is_some() {
                    return None; // the engine refuses such an edit before the core hears of it
                }
            }
        }
        Some(spec)
    }

    /// Someone looks into the inbox. Says whether there was anything.
    fn person_answers(&mut self) -> bool {
        let asked = |task: &&Arc<Task>| {
            let waits = matches!(
                &task.state,
                TaskState::Waiting {
                    wait: WaitReason::Question { .. }
                        | WaitReason::Login { .. }
                        | WaitReason::Pause
                        | WaitReason::Conflict { .. }
                        | WaitReason::GateBroken { .. },
                    ..
                }
            );
            let unknown = self.healed && task.is_over() && task.landing.is_some();
            let waits = waits || task.is_held();
            waits
                || unknown
                || task.sign_off == SignOff::Owed
                || matches!(task.state, TaskState::Review { .. })
        };
        let waiting: Vec<_> = self.world.tasks().filter(asked).cloned().collect();
        if self.queue.hold().is_some() && (waiting.is_empty() || self.rng.once_in(3)) {
            self.queue_hears(&QueueNews::Resume);
            return true;
        }
        if waiting.is_empty() {
            return false;
        }
        let task = &waiting[self.rng.below(waiting.len())];
        let yes = self.healed || !self.rng.once_in(3);
        let note = "as I said".to_owned();
        let news = match &task.state {
            _ if task.is_held() => News::Release,
            _ if task.sign_off == SignOff::Owed => match self.rng.below(3) {
                0 => News::Review(ReviewInput::Defer),
                1 => News::Review(ReviewInput::Changes { issues: Vec::new(), note, redo: RedoChoice::Keep }),
                _ => News::Review(ReviewInput::Approve { note }),
            },
            TaskState::Review { .. } if !yes && self.rng.once_in(2) => {
                let head = task.head.clone().expect("what is reviewed was collected");
                let redo =
                    [RedoChoice::Keep, RedoChoice::Fresh, RedoChoice::From(head)][self.rng.below(3)].clone();
                News::Review(match self.rng.below(6) {
                    0 => ReviewInput::Defer,
                    1 => ReviewInput::Skip,
                    2 => ReviewInput::Reject { note },
                    _ => ReviewInput::Changes { issues: vec!["tests".to_owned()], note, redo },
                })
            }
            TaskState::Review { .. } if yes => News::Answer { text: "approve".to_owned() },
            // The question whether that is the objective.
            TaskState::Waiting { wait: WaitReason::Question { text }, .. }
                if text.starts_with("---") && yes =>
            {
                News::Answer { text: "OK".to_owned() }
            }
            TaskState::Waiting { wait: WaitReason::Question { .. } | WaitReason::Login { .. }, .. }
            | TaskState::Review { .. } => News::Answer { text: "do it the other way".to_owned() },
            TaskState::Waiting { wait: WaitReason::Conflict { .. }, .. } => {
                let text = if self.rng.once_in(2) { "resolved" } else { "keep both" };
                News::Answer { text: text.to_owned() }
            }
            _ => News::Retry { fresh: false, note: None },
        };
        let taken = self.hear(task.id, news);
        self.demand(taken, || format!("{} asked and refused the answer", task.id));
        true
    }

    fn person_pushes(&mut self) {
        let (commit, tree) = (self.git.commit("human"), Tree::new("human"));
        self.git.move_base(commit.clone(), tree, Vec::new());
        if self.rng.once_in(3) {
            return; // nobody noticed: the landing finds out
        }
        self.base_advanced();
        self.queue_hears(&QueueNews::BaseMoved { to: commit });
    }

    fn person_holds(&mut self) {
        let news = match self.queue.hold() {
            Some(_) => QueueNews::Resume,
            None => QueueNews::Hold { why: HoldReason::Person, reason: "let me look".to_owned() },
        };
        self.queue_hears(&news);
    }

    // ── the engine ───────────────────────────────────────────────────────────────────────────────────────

    /// Receive, decide, write, perform. Says whether the news was taken.
    fn hear(&mut self, id: TaskId, news: News) -> bool {
        self.heard += 1;
        let task = self.world.get(id).expect("news is of tasks").clone();
        let input = TaskInput {
            at: self.now,
            drive: self.drive,
            spent: self.spent(),
            attended: true,
            poll_ms: POLL_MS,
            news,
        };
        let overruled = match &input.news {
            News::Retry { .. } => self.world.accounts().state_after_override(&task, self.now),
            _ => None,
        };
        let (after, decision) = match decide_and_apply(&task, &input) {
            Ok(taken) => taken,
            Err(NewsRefusal::Bug(illegal)) => self.fail(&format!("{illegal} after {:?}", input.news)),
            Err(NewsRefusal::Stale { .. } | NewsRefusal::NotNow { .. } | NewsRefusal::NotAllowed { .. }) => {
                return false;
            }
        };
        self.check_step(&task, &after, &input, &decision.events);
        if let Some(work) = task.gate.as_ref().map(|gate| (id, gate.head.clone())) {
            match decision.events.first() {
                Some(Event::Reviewed { approved: true, .. }) => drop(self.approved.insert(work)),
                Some(Event::Reviewed { approved: false, .. }) => drop(self.approved.remove(&work)),
                Some(_) | None => {}
            }
        }
        let mut before = (*task).clone();
        for event in decision.events {
            if let Event::IterationEnded { usage, took_ms, .. } = &event {
                self.ledger.note(self.now, Spending { usage: *usage, time_ms: *took_ms });
            }
            let follows = self.world.accounts().state_after_event(&before, self.now, &event);
            let driving = before.driving.clone();
            before = apply(Some(before), id, self.now, &event).expect("it was decided just so");
            self.append(id, event);
            // After the fact it follows from: an account that waits for a task which does not know would wait for ever.
            if let Some(state) = follows {
                let account = driving.expect("an account was followed").account;
                self.world.set_account(&account, state.clone());
                self.fact(EngineEvent::Account { account, state });
            }
        }
        self.demand(before == after, || format!("{id} is not what its events tell"));
        if let Some((account, state)) = overruled {
            self.overrulings += 1;
            self.world.set_account(&account, state.clone());
            self.fact(EngineEvent::Account { account, state });
        }
        self.queue.update_task(&after);
        self.world.put_task(after);
        if self.faults.crash && self.rng.once_in(150) {
            self.crash(); // written, but nothing was performed
            return true;
        }
        for effect in decision.effects {
            self.perform(effect);
        }
        self.check_owned(id);
        true
    }

    /// The same for the landing queue: what tasks hear first, then its own facts, then its orders.
    fn queue_hears(&mut self, news: &QueueNews) {
        self.heard += 1;
        let is_met = |id| self.world.get(id).is_some_and(|task| self.world.unmet_needs(task).is_empty());
        let policy = QueuePolicy { forms: self.drive == IntakeState::Running, ..self.policy };
        let decision = queue::decide(&self.queue, &policy, self.now, news, &is_met);
        self.check_queue_decision(&decision);
        let life = self.life;
        for (id, news) in decision.tells {
            let before = self.world.get(id).expect("members are tasks").clone();
            // A journal that ends in the middle of a decision leaves tasks that heard it already.
            let wants = match &news {
                News::LandingBegan { .. } | News::Ejected { .. } | News::MergeConflict { .. } => true,
                _ => matches!(before.state, TaskState::Active { doing: AttemptPhase::Landing, .. }),
            };
            let taken = self.hear(id, news.clone());
            self.demand(taken || !wants, || format!("{id} is {} and refused {news:?}", before.state.name()));
            if self.life != life {
                return; // the engine is another one now
            }
        }
        for event in decision.events {
            self.meet_queue(&event);
            if let QueueEvent::Over { batch, .. } = &event {
                let batch = self.batch(*batch).clone();
                self.check_looks(&batch);
            }
            let applied = self.queue.apply(self.now, &event);
            self.demand(applied.is_ok(), || format!("{applied:?} after {event:?}"));
            self.fact(EngineEvent::Queue(event));
            if self.faults.crash && self.rng.once_in(150) {
                return self.crash();
            }
        }
        for effect in decision.effects {
            self.perform_for_queue(effect);
        }
        self.check_queue();
    }

    fn batch(&self, id: BatchId) -> &LandingBatch {
        let found = self.queue.batches().iter().find(|batch| batch.id == id);
        found.unwrap_or_else(|| self.fail(&format!("there is no {id}")))
    }

    fn meet_queue(&mut self, event: &QueueEvent) {
        let word = match event {
            QueueEvent::Formed { on: Some(_), .. } => "queue:speculated".to_owned(),
            QueueEvent::Formed { members, .. } => format!("queue:formed-{}", members.len()),
            QueueEvent::Built { .. } => "queue:built".to_owned(),
            QueueEvent::CheckBegan { batch, count } if *count < self.batch(*batch).members.len() => {
                "queue:searched".to_owned()
            }
            QueueEvent::CheckBegan { .. } => "queue:verified".to_owned(),
            QueueEvent::Checked { report, .. } => format!("queue:{}", report.outcome().word()),
            QueueEvent::LandingBegan { batch, count } if *count < self.batch(*batch).members.len() => {
                "queue:landing-in-part".to_owned()
            }
            QueueEvent::LandingBegan { .. } => "queue:landing".to_owned(),
            QueueEvent::Doubted { .. } => "queue:doubted".to_owned(),
            QueueEvent::Over { how: queue::BatchEnd::Landed { .. }, .. } => "queue:landed".to_owned(),
            QueueEvent::Over { how: queue::BatchEnd::Dropped { .. }, .. } => "queue:dropped".to_owned(),
            QueueEvent::Held { why, .. } => format!("queue:held-{}", why.word()),
            QueueEvent::Resumed => "queue:resumed".to_owned(),
        };
        *self.met.entry(word).or_default() += 1;
    }

    fn fact(&mut self, event: EngineEvent) {
        self.journal.push(JournalEntry { at: self.now, fact: Fact::Engine(event) });
        self.landed_by.push(self.git.history.len());
    }

    fn append(&mut self, id: TaskId, event: Event) {
        self.queue.note(id, &event);
        self.journal.push(JournalEntry { at: self.now, fact: Fact::Task(id, event) });
        self.landed_by.push(self.git.history.len());
    }

    fn crash(&mut self) {
        // Agents go on without the engine; some die.
        for agent in self.host.agents.values_mut() {
            if agent.end.is_none() && self.rng.once_in(3) {
                agent.killed = true;
            }
        }
        self.check_rebuilt();
        self.restart();
    }

    /// The world, the queue and the ledger as the journal tells them.
    fn read(&self) -> (World, Queue, SpendLog) {
        let (mut world, mut ledger) = (empty(&self.flows, &self.routes), SpendLog::default());
        for entry in &self.journal {
            match &entry.fact {
                Fact::Engine(EngineEvent::Account { account, state }) => {
                    world.set_account(account, state.clone())
                }
                Fact::Engine(EngineEvent::RunStarted { .. }) => ledger.run_started(),
                Fact::Task(_, Event::IterationEnded { usage, took_ms, .. }) => {
                    ledger.note(entry.at, Spending { usage: *usage, time_ms: *took_ms });
                }
                Fact::Task(..) | Fact::Engine(_) => {}
            }
        }
        let tasks = fold(&self.journal);
        let queue = read_queue(&self.journal, &tasks);
        for task in tasks {
            world.put_task(task);
        }
        (world, queue, ledger)
    }

    /// A new engine reads the journal, and does what should be under way.
    fn restart(&mut self) {
        self.life += 1;
        let life = self.life;
        self.orders.clear();
        self.queue_orders.clear();
        self.queue_late.clear();
        self.drive = IntakeState::Running;
        let tasks = fold(&self.journal);
        (self.world, self.queue, self.ledger) = self.read();
        for task in &tasks {
            for effect in expected_task_effects(task) {
                self.perform(effect);
            }
        }
        for task in &tasks {
            if self.queue.is_astray(task) {
                let taken = self.hear(task.id, News::LandUnsure { attempt: task.attempt });
                if self.life != life {
                    return;
                }
                self.demand(taken, || format!("{} went astray and will not stand in line again", task.id));
            }
        }
        for effect in self.queue.expected_effects() {
            self.perform_for_queue(effect);
        }
        self.queue_hears(&QueueNews::Look);
    }

    // ── the host ─────────────────────────────────────────────────────────────────────────────────────────

    fn perform(&mut self, effect: Effect) {
        match &effect {
            Effect::Spawn { task, attempt, iteration, talk, .. } => {
                let key = (*task, *attempt, *iteration);
                let others =
                    self.host.agents.iter().find(|((of, ..), agent)| of == task && agent.end.is_none());
                let alone = others.is_none_or(|(other, _)| *other == key);
                self.demand(alone, || format!("{task} has two agents at once"));
                let task = self.world.get(*task).expect("it exists").clone();
                let profile = task.driving.as_ref().expect("settled before it runs").profile.clone();
                let new = !self.host.agents.contains_key(&key);
                if new {
                    self.check_talk(task.id, talk); // one that is adopted may have lost its session meanwhile
                }
                if let (true, SessionStart::Resumed { session, compact: true }) = (new, talk) {
                    self.host.sessions.get_mut(session).expect("it is known").asked += 1;
                }
                let talk = talk.clone();
                let agent = Agent { killed: false, end: None, talk: talk.clone(), profile };
                let agent = self.host.agents.entry(key).or_insert(agent).clone();
                self.demand(agent.talk == talk, || format!("{} is adopted with another talk", task.id));
            }
            Effect::Kill { task, attempt, .. } => {
                for ((of, under, _), agent) in &mut self.host.agents {
                    if of == task && under == attempt {
                        agent.killed = true;
                    }
                }
                return;
            }
            Effect::Prepare { .. }
            | Effect::Check { .. }
            | Effect::Report { .. }
            | Effect::Exchange { .. }
            | Effect::Recover { .. }
            | Effect::Tidy { .. } => {}
        }
        let others = self.orders.iter().find(|order| order.task() == effect.task());
        self.demand(others.is_none(), || format!("{effect:?} was ordered while {others:?} is under way"));
        self.orders.push(effect);
    }

    fn outcome(&mut self, order: &Effect) -> Option<News> {
        let trouble = self.faults.machine && self.rng.once_in(14);
        match order {
            Effect::Prepare { attempt, .. }
            | Effect::Check { attempt, .. }
            | Effect::Report { attempt, .. }
                if trouble =>
            {
                let hopeless = self.rng.once_in(8);
                Some(News::MachineFailed { attempt: *attempt, detail: "no room".to_owned(), hopeless })
            }
            // Whoever only reads has a room of its own.
            Effect::Prepare { task, attempt, .. } if self.reads(*task) => {
                let base = self.git.base.clone();
                Some(News::WorkspaceReady { attempt: *attempt, base })
            }
            Effect::Prepare { task, attempt, fresh } => {
                if *fresh || !self.host.workspaces.contains_key(task) {
                    let base = self.git.base.clone();
                    let restart = self.world.get(*task).and_then(|task| task.restart.clone());
                    let head = restart.unwrap_or_else(|| base.clone());
                    self.host.workspaces.insert(*task, Workspace { head, base });
                }
                let base = self.host.workspaces[task].base.clone();
                Some(News::WorkspaceReady { attempt: *attempt, base })
            }
            Effect::Spawn { task, attempt, iteration, deadline_ms, step, .. } => {
                let key = (*task, *attempt, *iteration);
                Some(News::AgentEnded(self.agent_ends(key, step, *deadline_ms)))
            }
            Effect::Kill { .. } => None,
            Effect::Check { task, attempt, head } => Some(self.check(*task, *attempt, head.clone())),
            Effect::Report { attempt, .. } => {
                Some(News::Reported { attempt: *attempt, report: Digest::new("report"), certificate: None })
            }
            Effect::Exchange { .. } | Effect::Recover { .. } => {
                unreachable!("no flow here follows an issue")
            }
            Effect::Tidy { task } => {
                self.host.workspaces.remove(task);
                Some(News::WorkspaceRemoved { kept: None })
            }
        }
    }

    /// Whether the task is in a step that only reads.
    fn reads(&self, task: TaskId) -> bool {
        let task = self.world.get(task).expect("it exists");
        let step = task.step().zip(task.flow.as_ref()).and_then(|(step, flow)| flow.find_step(step));
        step.is_some_and(|step| step.kind.is_reader_step())
    }

    fn agent_ends(&mut self, key: (TaskId, Attempt, u32), step: &StepName, deadline_ms: u64) -> EndedRun {
        let agent = self.host.agents.get(&key).expect("spawned before it ends").clone();
        if let Some(end) = agent.end {
            return end; // it ended while the engine was away, or its end was lost on the way
        }
        let workspace = self.host.workspaces.get(&key.0).cloned();
        let workspace = match workspace {
            Some(workspace) => workspace,
            None if self.reads(key.0) => {
                Workspace { base: self.git.base.clone(), head: self.git.base.clone() }
            }
            None => self.fail(&format!("{} runs without a workspace", key.0)),
        };
        let said = |said| vec![Signal::Said(said)];
        let mut took_ms = 10 + self.rng.below(3_000) as u64;
        let mut usage = AgentUsage { turns: self.rng.below(4) as u64, ..AgentUsage::default() };
        let mut traces = self.traces(key.0, &agent);
        let choice = if self.faults.agent { self.rng.below(52) } else { 0 };
        let resumed = agent.talk != SessionStart::New;
        let over = match self.spent() {
            Some(ExhaustedBudget { scope, what, .. }) => Some((scope, what)),
            None => self.over_budget(key.0, usage),
        };
        let mut idle = false;
        // A provider that was in trouble a moment ago often still is.
        let before = self.world.get(key.0).expect("it exists").counters.clone();
        let on = self.faults.agent && self.rng.once_in(2);
        let outage = on && self.faults.account && before.transients > 0;
        let round_again = on && self.faults.circle && before.loops > 0; // and so is an agent that goes round in a circle
        let (exit, mut seen) = match choice {
            _ if agent.killed => match self.rng.below(3) {
                0 => (AgentExit::Code(0), said(ControlSignal::Complete)), // it was faster
                _ => (AgentExit::Asked, Vec::new()),
            },
            1.. if over.is_some() && self.rng.once_in(3) => {
                let (scope, what) = over.expect("just seen");
                (AgentExit::OverBudget { scope, what }, Vec::new())
            }
            _ if outage => (AgentExit::Code(1), vec![Signal::Transient { detail: "overloaded".to_owned() }]),
            _ if round_again => {
                idle = true;
                (AgentExit::Looping, Vec::new())
            }
            18 => (AgentExit::Code(0), said(ControlSignal::DiscoveryLocal("it is so".to_owned()))),
            19..=22 => (AgentExit::Code(0), Vec::new()),
            23 => (AgentExit::Code(0), said(ControlSignal::Blocked("no access".to_owned()))),
            24..=25 => (AgentExit::Code(0), said(ControlSignal::Pending("Which port?".to_owned()))),
            26..=28 => (AgentExit::Code(1), Vec::new()),
            29 => (AgentExit::Signal(9), Vec::new()),
            30 => (AgentExit::Lost, Vec::new()),
            31 => (AgentExit::Silent, Vec::new()),
            32 => {
                traces.denials = 1;
                let asks = Signal::PermissionAsked { what: "rm".to_owned() };
                (AgentExit::Silent, if self.rng.once_in(2) { vec![asks] } else { Vec::new() })
            }
            33..=34 if self.faults.account => {
                let until = self.rng.once_in(2).then(|| self.now.plus_ms(self.rng.below(9_000) as u64));
                (AgentExit::Code(1), vec![Signal::Quota { until }])
            }
            35 => (AgentExit::Code(1), vec![Signal::Transient { detail: "overloaded".to_owned() }]),
            36 => {
                let hopeless = self.rng.once_in(4);
                (AgentExit::NotStarted { detail: "no such program".to_owned(), hopeless }, Vec::new())
            }
            37 => {
                took_ms = deadline_ms;
                (AgentExit::Deadline, Vec::new())
            }
            38 => (AgentExit::Code(3), said(ControlSignal::Complete)),
            39 => (
                AgentExit::Code(0),
                [said(ControlSignal::Complete), said(ControlSignal::Blocked("both".to_owned()))].concat(),
            ),
            40..=41 if self.faults.account => {
                (AgentExit::Code(1), vec![Signal::Unauthorized { detail: "401".to_owned() }])
            }
            42..=44 if self.faults.session && (resumed || self.rng.once_in(4)) => {
                traces.session = None;
                if let SessionStart::Resumed { session, .. } = &agent.talk {
                    self.host.sessions.get_mut(session).expect("it is known").gone = true;
                }
                (AgentExit::Code(1), vec![Signal::SessionGone])
            }
            45..=46 if self.faults.circle => (AgentExit::Looping, Vec::new()),
            47 if self.faults.circle && self.rng.once_in(4) => (AgentExit::ContextUsedUp, Vec::new()),
            48..=51 if self.faults.circle => {
                idle = true;
                traces.words = Some(Digest::new("Done."));
                (AgentExit::Code(0), Vec::new())
            }
            _ => (AgentExit::Code(0), said(ControlSignal::Complete)),
        };
        if matches!(exit, AgentExit::NotStarted { .. }) {
            (usage, traces) = (AgentUsage::default(), AgentRunTraces::default());
        }
        let mut head = workspace.head.clone();
        let kind = self.world.get(key.0).and_then(|task| task.flow.clone());
        let kind =
            kind.and_then(|flow| flow.find_step(step).map(|step| step.kind.clone())).expect("it runs a step");
        if !kind.is_reader_step() && (self.healed || !(idle || self.rng.once_in(4))) {
            head = self.git.commit("work");
            self.host.workspaces.get_mut(&key.0).expect("it stands").head = head.clone();
        }
        let evidence = AgentRunEvidence {
            head_before: Some(workspace.head),
            head_after: Some(head),
            ..self.said_in(&kind)
        };
        if let StepKind::Agent { every: 1.., .. } = kind
            && exit == AgentExit::Code(0)
            && self.faults.agent
        {
            match self.rng.below(6) {
                0 => seen = vec![Signal::Said(ControlSignal::Check("the interface is another".to_owned()))],
                1..=2 => {
                    seen = vec![Signal::Said(ControlSignal::Step(
                        1 + u32::try_from(self.rng.below(4)).expect("small"),
                    ))]
                }
                _ => {}
            }
        }
        let end = EndedRun {
            attempt: key.1,
            iteration: key.2,
            exit,
            seen,
            evidence,
            took_ms,
            usage,
            traces,
            climbed: None,
        };
        self.host.agents.get_mut(&key).expect("it ran").end = Some(end.clone());
        end
    }

    /// What a judge says, or whoever writes a plan or splits an objective.
    fn said_in(&mut self, kind: &StepKind) -> AgentRunEvidence {
        let mut evidence = AgentRunEvidence::default();
        let trouble = |rng: &mut Rng, healed: bool| !healed && rng.once_in(12);
        match kind {
            StepKind::Check { checkpoint, .. } if !trouble(&mut self.rng, self.healed) => {
                evidence.judgement = Some(self.judgement(*checkpoint));
            }
            StepKind::Target if !trouble(&mut self.rng, self.healed) => {
                let count = 1 + self.rng.below(3);
                let requirement =
                    |number: usize| Requirement::new(0, &format!("r{number}"), "", Weight::ALL[number % 3]);
                let item = ObjectiveItem {
                    text: "a greeting".to_owned(),
                    requirements: (0..count).map(requirement).collect(),
                };
                let ask = trouble(&mut self.rng, self.healed).then(|| "Which tongue?".to_owned());
                evidence.split = Some(ObjectiveSplit { items: vec![item], ask, ..ObjectiveSplit::default() });
            }
            StepKind::Agent { output, .. } if !output.is_empty() => {
                if trouble(&mut self.rng, self.healed) {
                    evidence.missing.clone_from(output);
                } else {
                    let text = format!("plan {}", self.heard);
                    evidence.papers.push((PLAN.to_owned(), Digest::new(&text)));
                    let covers: BTreeSet<u32> =
                        if self.healed || !self.rng.once_in(6) { (1..=5).collect() } else { BTreeSet::new() };
                    let steps = 1 + u32::try_from(self.rng.below(5)).expect("small");
                    let step = |number| PlanStep {
                        number,
                        title: "a step".to_owned(),
                        covers: covers.clone(),
                        verify: None,
                    };
                    evidence.outline = Some(PlanOutline { steps: (1..=steps).map(step).collect() });
                }
            }
            _ => {}
        }
        evidence
    }

    fn judgement(&mut self, checkpoint: GatePoint) -> Judgement {
        let choice = if self.healed { 0 } else { self.rng.below(16) };
        let scores = match choice {
            12..=13 => [550; 6],
            14 => [1000, 400, 1000, 1000, 1000, 1000],
            _ => [900; 6],
        };
        let word = match choice {
            10 => Some(StepResult::Replan),
            11 if self.rng.once_in(3) => Some(StepResult::CheckBlocked),
            _ => None,
        };
        let mut coverage = Vec::new();
        if checkpoint == GatePoint::PostExec && choice != 15 {
            for number in 1..=5 {
                let covered = if self.healed { 4 } else { self.rng.below(5) };
                let coverage_of = u32::try_from(covered * 250).expect("small");
                let why = if self.healed || self.rng.once_in(2) { "seen" } else { "" };
                coverage.push(RequirementCoverage { number, coverage: coverage_of, why: why.to_owned() });
            }
        }
        let impacts = if self.rng.once_in(3) {
            vec![(1, RefinementImpact::ALL[self.rng.below(4)])]
        } else {
            Vec::new()
        };
        Judgement {
            scores: Scores::new(scores),
            word,
            coverage,
            impacts,
            reason: "so it seems".to_owned(),
            ..Judgement::default()
        }
    }

    /// What a run leaves behind: its session, if it tells one, and how full that is.
    fn traces(&mut self, task: TaskId, agent: &Agent) -> AgentRunTraces {
        if self.rng.once_in(6) {
            return AgentRunTraces::default();
        }
        let id = match &agent.talk {
            SessionStart::Resumed { session, .. } => session.clone(),
            SessionStart::New => format!("s{}", self.host.sessions.len() + 1),
        };
        let known = Known { task, profile: agent.profile.clone(), gone: false, asked: 0 };
        self.host.sessions.entry(id.clone()).or_insert(known);
        let context =
            self.rng.once_in(2).then(|| ContextUsage { used: self.rng.below(100) as u64, size: 100 });
        AgentRunTraces { session: Some(id), context, ..AgentRunTraces::default() }
    }

    /// The budget of the task or the attempt that a run would exceed, as whoever watches it finds out.
    fn over_budget(&self, task: TaskId, usage: AgentUsage) -> Option<(BudgetScope, String)> {
        let task = self.world.get(task).expect("it exists");
        let here = Spending { usage, time_ms: 0 };
        let in_all = Spending { usage: task.counters.usage.plus(usage), time_ms: 0 };
        let of_attempt = task.limits.attempt_budget.describe_used_up(task.counters.attempt.plus(here));
        let of_task = task.limits.task_budget.describe_used_up(in_all);
        of_attempt.map(|what| (BudgetScope::Attempt, what)).or(of_task.map(|what| (BudgetScope::Task, what)))
    }

    fn check(&mut self, task: TaskId, attempt: Attempt, head: Option<Commit>) -> News {
        let mut leftovers = false;
        let head = match (head, self.host.workspaces.get(&task).cloned()) {
            (Some(head), _) => head,
            (None, None) => self.fail(&format!("{task} is checked, but there is no work to check")),
            (None, Some(workspace)) if workspace.head == workspace.base => {
                if !self.healed && self.rng.once_in(2) {
                    return News::NothingChanged { attempt };
                }
                leftovers = true;
                let head = self.git.commit("left");
                self.host.workspaces.get_mut(&task).expect("it stands").head = head.clone();
                head
            }
            (None, Some(workspace)) => workspace.head,
        };
        let base = self.git.base.clone();
        if self.faults.conflict && self.rng.once_in(8) {
            return News::MergeConflict { attempt, head, base, clashes: self.clashes() };
        }
        let outcome = match self.rng.below(30) {
            _ if self.quarrel(&base, std::slice::from_ref(&head)) => CheckOutcome::Fail,
            choice if !self.faults.gate || choice < 16 => CheckOutcome::Pass,
            16..=20 => CheckOutcome::Fail,
            21 => CheckOutcome::Timeout,
            22..=23 => CheckOutcome::Flaky,
            24..=26 => CheckOutcome::Broken,
            27..=28 => CheckOutcome::PreExisting,
            _ => CheckOutcome::Pass,
        };
        let tree = Tree::new(&format!("{base}+{head}"));
        let report = GateReport {
            commit: Commit::new(&format!("merge({base}+{head})")),
            tree: tree.clone(),
            base: base.clone(),
            head: head.clone(),
            config: Digest::new("config"),
            environment: Digest::new("environment"),
            commands: vec![command("tests", outcome)],
            took_ms: 10 + self.rng.below(2_000) as u64,
            reused: false,
            required: true,
            sandbox: None,
        };
        if matches!(outcome, CheckOutcome::Pass | CheckOutcome::Flaky) {
            self.git.green.insert((tree, base));
        }
        let mut concerns = Vec::new();
        // What a person should see is in the work itself, so it is there whenever it is checked.
        if self.concerning && head.as_str().bytes().map(usize::from).sum::<usize>().is_multiple_of(5) {
            concerns.push(ChangeConcern { code: ConcernCode::TestDeleted, detail: "tests/a.rs".to_owned() });
            self.doubtful.insert(head.clone());
        }
        News::Checked {
            attempt,
            head,
            leftovers,
            report,
            concerns,
            evidence: None,
            proofs: Vec::new(),
            extent: None,
        }
    }

    fn clashes(&mut self) -> Vec<ConflictingFile> {
        let (kind, lines) = match self.rng.below(4) {
            0 => (FileConflictKind::Binary, 0),
            1 => (FileConflictKind::Content, 30),
            _ => (FileConflictKind::Content, 3),
        };
        vec![ConflictingFile { path: "a.txt".to_owned(), kind, lines }]
    }

    // ── the host, for the queue ──────────────────────────────────────────────────────────────────────────

    fn perform_for_queue(&mut self, effect: QueueEffect) {
        let id = batch_in(&effect);
        if let QueueEffect::Abandon { .. } = effect {
            let abandoned = self.queue_orders.iter().position(|order| batch_in(order) == id);
            let abandoned = abandoned.map(|at| self.queue_orders.swap_remove(at));
            // What is on its way arrives all the same, when nobody waits for it.
            if let Some(order) = abandoned.filter(|_| self.faults.late) {
                let news = self.queue_outcome(&order);
                self.queue_late.push(news);
            }
            return;
        }
        let others = self.queue_orders.iter().find(|order| batch_in(order) == id);
        self.demand(others.is_none(), || format!("{effect:?} was ordered while {others:?} is under way"));
        self.queue_orders.push(effect);
    }

    fn queue_outcome(&mut self, order: &QueueEffect) -> QueueNews {
        let batch = batch_in(order);
        let trouble = self.faults.machine && self.rng.once_in(14);
        match order {
            QueueEffect::Build { .. } | QueueEffect::Check { .. } if trouble => {
                QueueNews::Failed { batch, detail: "no room".to_owned() }
            }
            QueueEffect::Build { on, members, .. } => self.build(batch, on.clone(), members),
            QueueEffect::Check { count, base, heads, prefix, .. } => {
                let report = self.check_prefix(base, heads, prefix);
                QueueNews::Checked { batch, count: *count, report }
            }
            QueueEffect::Land { base, members, prefix, .. } => self.land(batch, base, members, prefix),
            QueueEffect::Abandon { .. } => self.fail("nobody waits for the end of that"),
        }
    }

    fn build(&mut self, batch: BatchId, on: Option<Commit>, members: &[BatchMember]) -> QueueNews {
        let base = on.unwrap_or_else(|| self.git.base.clone());
        let (mut heads, mut prefixes) = (Vec::new(), Vec::new());
        let (mut left_out, mut resolved) = (Vec::new(), Vec::new());
        for member in members {
            let task = self.world.get(member.task).expect("it exists");
            if let Some(landing) = self.git.landing_of(task).cloned() {
                let candidate = LandingCandidate {
                    base: landing.base_before,
                    head: member.head.clone(),
                    commit: landing.commit,
                    tree: landing.tree,
                };
                left_out.push((
                    member.task,
                    BatchExclusion::Landed { candidate, proof: "it is there".to_owned() },
                ));
            } else if self.faults.conflict && self.rng.once_in(8) {
                left_out.push((member.task, BatchExclusion::Conflict(self.clashes())));
            } else if self.faults.conflict && self.rng.once_in(40) {
                left_out.push((member.task, BatchExclusion::NothingChanged));
            } else if self.faults.conflict && !heads.is_empty() && self.rng.once_in(8) {
                left_out.push((member.task, BatchExclusion::Crowded));
            } else {
                let mut head = member.head.clone();
                if self.faults.conflict && self.rng.once_in(12) {
                    head = Commit::new(&format!("{head}/{batch}"));
                    resolved.push((member.task, head.clone()));
                }
                heads.push(head);
                let tree = merged(&base, &heads);
                let commit = Commit::new(&format!("{batch}:{}", tree.as_str()));
                prefixes.push(BatchPrefix { commit, tree });
            }
        }
        QueueNews::Built { batch, base, prefixes, left_out, resolved }
    }

    fn check_prefix(&mut self, base: &Commit, heads: &[Commit], prefix: &BatchPrefix) -> GateReport {
        let reused = self.git.green.contains(&(prefix.tree.clone(), base.clone())) && self.rng.once_in(2);
        let outcome = match self.rng.below(24) {
            _ if reused => CheckOutcome::Pass,
            0 if self.faults.gate => CheckOutcome::Broken,
            1 if self.faults.gate => CheckOutcome::PreExisting,
            2 if self.quarrel(base, heads) => CheckOutcome::Timeout,
            _ if self.quarrel(base, heads) => CheckOutcome::Fail,
            3..=5 if self.faults.gate => CheckOutcome::Flaky,
            _ => CheckOutcome::Pass,
        };
        if outcome.is_green() {
            self.git.green.insert((prefix.tree.clone(), base.clone()));
        }
        GateReport {
            base: base.clone(),
            head: heads.last().expect("nothing is not verified").clone(),
            commit: prefix.commit.clone(),
            tree: prefix.tree.clone(),
            config: Digest::new("config"),
            environment: Digest::new("environment"),
            commands: vec![command("tests", outcome)],
            took_ms: 10,
            reused,
            required: true,
            sandbox: None,
        }
    }

    /// Whether these are red together: one of them does not go with the base by now, or two not with each other.
    fn quarrel(&self, base: &Commit, heads: &[Commit]) -> bool {
        let sum = |head: &Commit| own(head).bytes().map(usize::from).sum::<usize>();
        let alone = |head: &Commit| (sum(head) + sum(base)).is_multiple_of(9);
        let pair = |first: &Commit, second: &Commit| (sum(first) * 31 + sum(second)).is_multiple_of(4);
        let bad_pair = |at: usize| heads[..at].iter().any(|first| pair(first, &heads[at]));
        self.quarrelsome && (heads.iter().any(alone) || (0..heads.len()).any(bad_pair))
    }

    fn land(
        &mut self,
        batch: BatchId,
        base: &Commit,
        members: &[BatchMember],
        prefix: &BatchPrefix,
    ) -> QueueNews {
        let known = self.git.history.iter().any(|landing| landing.commit == prefix.commit);
        if !known {
            if self.git.base != *base {
                return QueueNews::LandMoved { batch, to: self.git.base.clone() };
            }
            if self.faults.machine && self.rng.once_in(40) {
                self.git.mismatched.insert(prefix.commit.clone());
            }
            if self.git.mismatched.contains(&prefix.commit) {
                return QueueNews::LandMismatch { batch, detail: "the tree is another".to_owned() };
            }
            if self.faults.machine && self.rng.once_in(14) {
                return QueueNews::Failed { batch, detail: "no room".to_owned() };
            }
            self.check_landing(base, members, prefix);
            let tasks = members.iter().map(|member| member.task).collect();
            self.git.move_base(prefix.commit.clone(), prefix.tree.clone(), tasks);
        }
        // The base was moved, and then something failed: whether it was is not known.
        if self.faults.machine && self.rng.once_in(14) {
            return QueueNews::Failed { batch, detail: "no room".to_owned() };
        }
        QueueNews::Landed { batch, proof: "the tree is the same".to_owned() }
    }

    // ── the invariants ───────────────────────────────────────────────────────────────────────────────────

    fn check_limits(&self) {
        let held = |standing| u32::try_from(self.world.holder_count(standing)).expect("small");
        self.demand(held(GrantKind::Slot) <= self.limits.slots, || "too many slots are held".to_owned());
        self.demand(held(GrantKind::Lane) <= self.limits.lanes, || "too many lanes are held".to_owned());
    }

    /// What may land: just what was found green, of tasks that want it, once.
    fn check_landing(&self, base: &Commit, members: &[BatchMember], prefix: &BatchPrefix) {
        let proved = self.git.green.contains(&(prefix.tree.clone(), base.clone()));
        self.demand(proved, || format!("{prefix:?} lands on {base}, which was never green"));
        let heads: Vec<_> = members.iter().map(|member| member.head.clone()).collect();
        self.demand(prefix.tree == merged(base, &heads), || {
            format!("{prefix:?} lands, which is not {base} with {heads:?} and nothing else")
        });
        self.demand(!self.quarrel(base, &heads), || format!("{heads:?} are red together and land"));
        for BatchMember { task: id, head, .. } in members {
            let task = self.world.get(*id).expect("it exists");
            // What a person takes back was made by no agent: nobody needs to look at it.
            let own = Commit::new(own(head));
            let seen = self.approved.contains(&(*id, own.clone())) || task.counters.runs == 0;
            self.demand(seen || !self.doubtful.contains(&own), || {
                format!("{id} lands what a person should have seen first")
            });
            let newest = self.host.workspaces.get(id).is_none_or(|it| it.head == own);
            self.demand(newest, || format!("{id} lands older work than its workspace holds"));
            let once = self.git.landing_of(self.world.get(*id).expect("it exists")).is_none();
            self.demand(once, || format!("{id} lands a second time"));
            self.demand(!self.cancelled.contains(id), || format!("{id} lands though it was cancelled"));
            self.demand(!task.is_over(), || format!("{id} lands though it is over"));
        }
    }

    /// What the queue decides: who is taken, who is sent back.
    fn check_queue_decision(&self, decision: &QueueDecision) {
        for event in &decision.events {
            let QueueEvent::Formed { members, .. } = event else { continue };
            self.demand(!members.is_empty() && members.len() <= self.policy.batch_max, || {
                format!("a batch of {}", members.len())
            });
            for member in members {
                let task = self.world.get(member.task).expect("members are tasks");
                let unmet = self.world.unmet_needs(task);
                self.demand(unmet.is_empty(), || format!("{} is taken before {unmet:?} landed", task.id));
                self.demand(task.head.as_ref() == Some(&member.head), || {
                    format!("{} lands other work", task.id)
                });
            }
        }
        for (id, news) in &decision.tells {
            let News::Ejected { batch, report, .. } = news else { continue };
            let batch = self.batch(*batch);
            let place = batch.members.iter().position(|member| member.task == *id);
            let place = place.unwrap_or_else(|| self.fail(&format!("{id} is ejected from where it is not")));
            let heads: Vec<_> = batch.members.iter().map(|member| member.head.clone()).collect();
            let base = batch.base.as_ref().expect("what is searched was built");
            let red = |count: usize| self.quarrel(base, &heads[..count]);
            self.demand(red(place + 1) && !red(place), || {
                format!("{id} is ejected from {:?} and is not the culprit", batch.members)
            });
            self.demand(!report.outcome().is_green(), || format!("{id} is ejected for a green report"));
        }
    }

    /// One culprit is found by halves. What says nothing about the batch does not count: a crash may have it looked at again.
    fn check_looks(&self, batch: &LandingBatch) {
        let halves = batch.members.len().next_power_of_two().trailing_zeros() as usize;
        let telling =
            |outcome: CheckOutcome| !matches!(outcome, CheckOutcome::Broken | CheckOutcome::PreExisting);
        let looks = batch.looks.iter().filter(|(_, outcome)| telling(*outcome)).count();
        self.demand(looks <= 1 + halves, || {
            format!("{} of {} was looked at {looks} times", batch.id, batch.members.len())
        });
    }

    /// Each batch stands on the one before it, each is being worked on or rests for a reason, one lands at a time.
    fn check_queue(&self) {
        let mut below: Option<&LandingBatch> = None;
        for batch in self.queue.batches() {
            let id = batch.id;
            self.demand(batch.on == below.map(|below| below.id), || format!("{id} stands on {:?}", batch.on));
            let owned = self.queue_orders.iter().any(|order| batch_in(order) == id);
            let rests = batch.doing == BatchDoing::Resting;
            self.demand(owned != rests, || format!("{id} is {:?}, under way: {owned}", batch.doing));
            self.demand(!rests || below.is_some(), || format!("{id} is the first and rests"));
            let lands = matches!(batch.doing, BatchDoing::Landing(_));
            self.demand(!lands || below.is_none(), || format!("{id} lands before the one below"));
            if let (Some(below), Some(base)) = (below, &batch.base) {
                let tip = below.prefixes.last().map(|prefix| &prefix.commit);
                self.demand(tip == Some(base), || format!("{id} stands on {base}, not on {tip:?}"));
            }
            below = Some(batch);
        }
        self.demand(self.queue.batches().len() <= 1 + self.policy.speculate, || {
            "too many batches".to_owned()
        });
        for task in self.world.tasks() {
            self.demand(!self.queue.is_astray(task), || format!("{} went astray", task.id));
        }
    }

    /// After a look that changed nothing, nobody who could be taken is left standing.
    fn check_taken(&self) {
        let forms = self.drive == IntakeState::Running;
        let free = self.queue.line().filter(|_| forms).find(|id| {
            let task = self.world.get(*id).expect("who stands is a task");
            self.queue.batch_of(*id).is_none() && self.world.unmet_needs(task).is_empty()
        });
        let idle = self.queue.hold().is_none() && self.queue.batches().is_empty();
        self.demand(!idle || free.is_none(), || format!("{free:?} stands in line and nobody takes it"));
    }

    /// An agent starts only on an account that is open, or as the one that finds out; and never over a budget.
    fn check_route(&self, id: TaskId, profile: &str) {
        let task = self.world.get(id).expect("it exists");
        let own = self.chain(World::profile_of(task));
        self.demand(own.iter().any(|it| it == profile), || {
            format!("{id} starts by {profile}, not by {own:?}")
        });
        self.demand(self.spent().is_none(), || format!("{id} starts though the budget is used up"));
        let account = self.driving(profile).account;
        let at_work = |task: &&Arc<Task>| {
            let works = matches!(
                task.state,
                TaskState::Active {
                    doing: AttemptPhase::Preparing { .. } | AttemptPhase::Running { .. },
                    ..
                }
            );
            works && task.driving.as_ref().is_some_and(|driving| driving.account == account)
        };
        let state = self.world.accounts().get(&account);
        let open = match self.world.account_permit(&account, self.now) {
            AccountPermit::Free => true,
            AccountPermit::One => !self.world.tasks().any(|task| at_work(&task)),
            AccountPermit::Never { .. } => false,
        };
        self.demand(open, || format!("{id} starts on {account}, which is {state:?}"));
    }

    /// What is resumed is a session of this task and this profile that is there, in a style that resumes.
    fn check_talk(&self, id: TaskId, talk: &SessionStart) {
        let SessionStart::Resumed { session, compact } = talk else { return };
        let task = self.world.get(id).expect("it exists");
        let driving = task.driving.as_ref().expect("settled before it runs");
        self.demand(driving.style == AgentDriveStyle::Session, || format!("{id} resumes in another style"));
        let Some(known) = self.host.sessions.get(session) else {
            self.fail(&format!("{id} resumes {session}, which nobody told"))
        };
        self.demand(known.task == id && known.profile == driving.profile, || {
            format!("{id} by {} resumes {session} of {} by {}", driving.profile, known.task, known.profile)
        });
        self.demand(!known.gone, || format!("{id} resumes {session}, which is gone"));
        self.demand(!*compact || known.asked == 0, || format!("{session} is asked twice to sum itself up"));
    }

    /// One step of one task: what may change and what may not.
    fn check_step(&self, before: &Task, after: &Task, input: &TaskInput, events: &[Event]) {
        let id = before.id;
        let final_end = matches!(
            &before.state,
            TaskState::Ended(Ending { kind: EndKind::Done | EndKind::Cancelled, .. })
        );
        let reopened = events.iter().any(|event| matches!(event, Event::Reopened { .. }));
        // What a person gave up may turn out to be there already. What is done stays done.
        let accepted = matches!(input.news, News::Accept { .. })
            && matches!(&before.state, TaskState::Ended(Ending { kind: EndKind::Cancelled, .. }))
            && matches!(&after.state, TaskState::Ended(Ending { kind: EndKind::Done, .. }));
        let stays = !final_end || before.state == after.state || reopened || accepted;
        self.demand(stays, || format!("{id} left its last state"));
        let entered = events.iter().filter(|event| matches!(event, Event::Entered { .. })).count();
        let grown = usize::try_from(after.attempt.0 - before.attempt.0).expect("attempts only grow");
        self.demand(entered == grown, || format!("{id}: {entered} entries, {grown} new attempts"));
        self.demand(attempt_in(&input.news).is_none_or(|got| got == before.attempt), || {
            format!("{id} took news of an older attempt: {:?}", input.news)
        });
        let began = events.iter().any(|event| matches!(event, Event::IterationBegan { .. }));
        self.demand(!(began && input.drive == IntakeState::Draining), || {
            format!("{id} began an iteration in a drain")
        });
        self.demand(!(began && input.spent.is_some()), || {
            format!("{id} began an iteration with nothing left to spend")
        });
        let used_up = |task: &Task| {
            let spent = Spending { usage: task.counters.usage, time_ms: task.counters.agent_ms };
            task.limits
                .task_budget
                .describe_used_up(spent)
                .or(task.limits.attempt_budget.describe_used_up(task.counters.attempt))
        };
        self.demand(!began || used_up(after).is_none(), || {
            format!("{id} began an iteration over its budget")
        });
        let paused =
            matches!(&before.state, TaskState::Waiting { wait: WaitReason::Pause, .. } | TaskState::Draft);
        self.demand(before.hold.is_none() || entered == 0, || format!("{id} is held and started"));
        self.demand(!(paused && entered > 0), || format!("{id} was paused or a draft and started"));
        let landed = events.iter().filter(|event| matches!(event, Event::Landed { .. })).count();
        self.demand(landed == 0 || before.landed.is_none(), || format!("{id} landed twice"));
        let kept = before.landed.is_none() || before.landed == after.landed || reopened;
        self.demand(kept, || format!("{id} forgot that it landed"));
        if landed > 0 {
            let landed = after.landed.as_ref().expect("it landed");
            let gate = before.gate.as_ref().expect("what lands was verified");
            self.demand(gate.tree == landed.tree && gate.base == landed.base_before, || {
                format!("{id} landed another tree or base than was verified")
            });
        }
        if !events.iter().any(|event| matches!(event, Event::Retried { .. } | Event::Reopened { .. })) {
            self.check_counters(id, &before.counters, &after.counters, events);
        }
        self.check_session_kept(before, after, events);
        self.check_stages(after);
        let usage = (before.counters.usage, after.counters.usage);
        self.demand(usage.0.turns <= usage.1.turns, || format!("{id} was given turns back"));
    }

    /// No stage twice, none left out, each closer than the one before it unless more is wanted since; and no direction
    /// that was given up is taken again.
    fn check_stages(&self, task: &Task) {
        let staged = &task.staged;
        let numbers: Vec<u32> = staged.stages.iter().map(|stage| stage.number).collect();
        self.demand((1..).zip(&numbers).all(|(wanted, number)| wanted == *number), || {
            format!("{}: the stages are {numbers:?}", task.id)
        });
        let under_way = staged.focus.as_ref().map(|focus| focus.number);
        let last = numbers.last().copied().unwrap_or(0);
        self.demand(under_way.is_none_or(|number| number == last + 1 || number == last), || {
            format!("{}: stage {under_way:?} is under way after {last}", task.id)
        });
        // A person's retry lifts those that were tried when no direction was left.
        let tried: Vec<BTreeSet<u32>> =
            staged.barred_directions().iter().map(|it| it.focus.iter().copied().collect()).collect();
        let often = tried.iter().find(|it| tried.iter().filter(|other| other == it).count() > DIRECTIONS_MAX);
        self.demand(often.is_none(), || {
            format!("{}: more directions than {DIRECTIONS_MAX} were taken for {often:?}: {tried:?}", task.id)
        });
    }

    /// A resumed session that crashed the agent before it said a word is not resumed again.
    fn check_session_kept(&self, before: &Task, after: &Task, events: &[Event]) {
        let resumed = matches!(
            &before.state,
            TaskState::Active { doing: AttemptPhase::Running { talk: SessionStart::Resumed { .. }, .. }, .. }
        );
        let mute = |event: &Event| match event {
            Event::IterationEnded { verdict: Verdict::Crashed { .. }, traces, .. } => {
                traces.session.is_none()
            }
            _ => false,
        };
        let crashed = resumed && events.iter().any(mute);
        self.demand(!crashed || after.session.is_none(), || {
            format!("{} keeps a session that crashes", before.id)
        });
    }

    fn check_counters(&self, id: TaskId, before: &Counters, after: &Counters, events: &[Event]) {
        // What a judge let pass is over with, and a new stage has rounds of its own.
        let passed = events.iter().any(|event| match event {
            Event::Staged(StagedEvent::StageBegan { .. }) => true,
            Event::Left { result, .. } => GatePoint::ALL.iter().any(|it| it.pass_result() == *result),
            _ => false,
        });
        let falls = [
            ("iterations", before.iterations > after.iterations),
            ("runs", before.runs > after.runs),
            ("stalls_total", before.stalls_total > after.stalls_total),
            ("conflicts", before.conflicts > after.conflicts),
            ("verify_rounds", before.verify_rounds > after.verify_rounds),
            ("quota_waits", before.quota_waits > after.quota_waits),
            ("retries", before.retries > after.retries),
            ("spent_ms", before.spent_ms > after.spent_ms),
            ("agent_ms", before.agent_ms > after.agent_ms),
            ("sessions_lost", before.sessions_lost > after.sessions_lost),
            ("logins", before.logins > after.logins),
            ("overspent", before.overspent > after.overspent),
            ("permission_denials", before.permission_denials > after.permission_denials),
            (
                "edges",
                !passed && before.edges.iter().any(|(edge, taken)| after.edges.get(edge) < Some(taken)),
            ),
        ];
        for (name, fell) in falls {
            self.demand(!fell, || format!("{id}: the counter {name} fell"));
        }
        let ended = events.iter().find_map(|event| match event {
            Event::IterationEnded { verdict, .. } => Some(verdict),
            _ => None,
        });
        let own = ended.is_some_and(Verdict::is_own_word);
        let falls_by_a_run = [
            ("restarts", before.restarts > after.restarts),
            ("transients", before.transients > after.transients),
            ("loops", before.loops > after.loops),
        ];
        for (name, fell) in falls_by_a_run {
            self.demand(!fell || own, || {
                format!("{id}: the counter {name} fell without a run that ended by its own word")
            });
        }
        let entered = events.iter().any(|event| matches!(event, Event::Entered { .. }));
        self.demand(entered || before.attempt.usage.turns <= after.attempt.usage.turns, || {
            format!("{id}: an attempt was given turns back")
        });
        let counts = match ended {
            Some(Verdict::OutOfTime) => 1,
            Some(verdict) => u32::from(verdict.is_own_word()),
            None => 0,
        };
        let grown = after.iterations - before.iterations;
        self.demand(grown == counts, || format!("{id}: {grown} iterations counted for {ended:?}"));
        let most = self.task_limits.iterations_max.max(OWN_ITERATIONS);
        self.demand(after.iterations <= most, || format!("{id} ran too often"));
    }

    /// Whoever is at work has an order under way; nobody is forgotten.
    fn check_owned(&self, id: TaskId) {
        let task = self.world.get(id).expect("it exists");
        match &task.state {
            TaskState::Active { doing: AttemptPhase::Landing, .. } => return, // the queue says so next, see check_queue
            TaskState::Active { doing: AttemptPhase::Queued { .. }, .. } => {
                let stands = self.queue.line().any(|stands| stands == id);
                return self.demand(stands, || format!("{id} is queued and does not stand in line"));
            }
            TaskState::Active { .. } => {}
            _ => return,
        }
        let owned =
            self.orders.iter().any(|order| order.task() == id && attempt_of(order) == Some(task.attempt));
        self.demand(owned, || format!("{id} is {} and nothing is under way for it", task.state.name()));
    }

    /// After the heal: each task is over, or waits for what only a person changes.
    fn check_settled(&self) {
        self.demand(self.orders.is_empty(), || format!("orders go on for ever: {:?}", self.orders));
        for task in self.world.tasks() {
            let hopeless =
                |need: &TaskId| !self.world.get(*need).is_some_and(|need| need.unblocks_dependents());
            let settled = match &task.state {
                TaskState::Ended(_) | TaskState::Draft => true,
                TaskState::Ready { .. } | TaskState::Active { doing: AttemptPhase::Queued { .. }, .. } => {
                    task.spec.needs.iter().any(hopeless)
                }
                TaskState::Active { .. } | TaskState::Waiting { .. } | TaskState::Review { .. } => false,
            };
            let done = matches!(&task.state, TaskState::Ended(Ending { kind: EndKind::Done, .. }));
            let tidy = !task.has_any_workspace() && !self.host.workspaces.contains_key(&task.id);
            self.demand(!done || tidy, || format!("{} is done and its workspace stands", task.id));
            self.demand(settled, || {
                let (state, held) = (task.state.name(), self.world.hold_reason(task.id, &self.limits_now()));
                format!("{} never comes to an end: {state}, {held:?}, {:?}", task.id, self.world.accounts())
            });
            let landings = self.git.history.iter().filter(|landing| landing.tasks.contains(&task.id)).count();
            let landings = landings - task.landed_before.len(); // one for each time it was reopened
            // Only a person, with a new need or by making it a draft, can keep it from finding out whether it landed.
            let queued = matches!(task.state, TaskState::Active { doing: AttemptPhase::Queued { .. }, .. });
            let held = queued || matches!(task.state, TaskState::Ready { .. } | TaskState::Draft);
            let unknown = task.landing.is_some() && held;
            let told = landings == usize::from(task.landed.is_some());
            self.demand(told && task.landing.is_none() || unknown && landings <= 1, || {
                let state = task.state.name();
                format!("{} is {state}, in the base {landings} times, and says {:?}", task.id, task.landed)
            });
        }
        self.demand(self.queue.batches().is_empty() && self.queue_orders.is_empty(), || {
            format!("batches go on for ever: {:?}", self.queue.batches())
        });
        self.demand(self.queue.hold().is_none(), || format!("{:?} is never over", self.queue.hold()));
        for (at, landing) in self.git.history.iter().enumerate() {
            let before = at.checked_sub(1).map_or("root", |before| self.git.history[before].commit.as_str());
            self.demand(landing.base_before.as_str() == before, || {
                "the base did not move forward".to_owned()
            });
        }
        self.check_rebuilt();
    }

    /// The world as it was kept is the world as it would be made anew, and the fold of the journal.
    pub fn check_rebuilt(&self) {
        let (world, queue, ledger) = self.read();
        self.demand(queue == self.queue, || "the queue is not the fold of the journal".to_owned());
        self.demand(world == self.world, || "the world is not the fold of the journal".to_owned());
        self.demand(ledger == self.ledger, || "the ledger is not the fold of the journal".to_owned());
    }

    /// The profile a task asks for at last.
    pub fn profile_of(&self, id: TaskId) -> &str {
        World::profile_of(self.world.get(id).expect("it exists"))
    }

    fn demand(&self, holds: bool, what: impl Fn() -> String) {
        if !holds {
            self.fail(&what());
        }
    }

    fn fail(&self, what: &str) -> ! {
        let last = self.journal.iter().rev().take(12).rev().map(|entry| match &entry.fact {
            Fact::Task(id, event) => format!("  {id} {} {:?}", event.name(), event.fencing_attempt()),
            Fact::Engine(event) => format!("  {event:?}"),
        });
        let last: Vec<_> = last.collect();
        panic!(
            "seed {}: {what}\nafter {} entries, the last of them\n{}",
            self.seed,
            self.journal.len(),
            last.join("\n")
        )
    }
}

/// The landing queue as the journal tells it.
pub fn read_queue(journal: &[JournalEntry], tasks: &[Task]) -> Queue {
    let mut queue = Queue::default();
    for entry in journal {
        match &entry.fact {
            Fact::Engine(EngineEvent::Queue(event)) => {
                queue.apply(entry.at, event).expect("the journal replays");
            }
            Fact::Task(id, event) => queue.note(*id, event),
            Fact::Engine(_) => {}
        }
    }
    tasks.iter().for_each(|task| queue.update_task(task));
    queue
}

/// Every task as the journal tells it, oldest first.
pub fn fold(journal: &[JournalEntry]) -> Vec<Task> {
    let mut tasks: Vec<Option<Task>> = Vec::new();
    for entry in journal {
        let Fact::Task(id, event) = &entry.fact else { continue };
        let at = usize::try_from(id.0).expect("small");
        tasks.resize_with(tasks.len().max(at + 1), || None);
        let task = apply(tasks[at].take(), *id, entry.at, event).expect("the journal replays");
        tasks[at] = Some(task);
    }
    tasks.into_iter().flatten().collect()
}

fn empty(flows: &BTreeMap<String, Arc<Flow>>, routes: &BTreeMap<String, ProfileRoute>) -> World {
    let mut world = World::new(flows.clone(), "loop");
    world.set_routes(routes.clone());
    world
}

/// Profiles on two accounts; some take over from others, maybe in a circle. A task that names none has its own.
fn routes(rng: &mut Rng) -> BTreeMap<String, ProfileRoute> {
    let mut route = |account: &str, failover: &str| {
        let failover = rng.once_in(2).then(|| failover.to_owned());
        ProfileRoute { account: account.to_owned(), failover }
    };
    let routes = [
        ("main", route("first", "spare")),
        ("spare", route("second", "main")),
        ("cheap", route("first", "default")),
    ];
    routes.map(|(profile, route)| (profile.to_owned(), route)).into()
}

fn style(rng: &mut Rng) -> AgentDriveStyle {
    if rng.once_in(3) { AgentDriveStyle::Fresh } else { AgentDriveStyle::Session }
}

/// A base with this work on top of it, as it would be checked out.
fn merged(base: &Commit, heads: &[Commit]) -> Tree {
    let heads = heads.iter().map(|head| format!("+{head}")).collect::<String>();
    Tree::new(&format!("{base}{heads}"))
}

/// Work as the agent made it, without what was merged into it to resolve a conflict.
fn own(head: &Commit) -> &str {
    head.as_str().split('/').next().unwrap_or_default()
}

fn batch_in(order: &QueueEffect) -> BatchId {
    match order {
        QueueEffect::Build { batch, .. }
        | QueueEffect::Check { batch, .. }
        | QueueEffect::Land { batch, .. }
        | QueueEffect::Abandon { batch } => *batch,
    }
}

fn attempt_of(order: &Effect) -> Option<Attempt> {
    match order {
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

/// Whether the task still wants the order answered.
fn expects_order(world: &World, order: &Effect) -> bool {
    let same = |wanted: &Effect| {
        std::mem::discriminant(wanted) == std::mem::discriminant(order)
            && attempt_of(wanted) == attempt_of(order)
    };
    world.get(order.task()).is_some_and(|task| expected_task_effects(task).iter().any(same))
}

fn attempt_in(news: &News) -> Option<Attempt> {
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
        | News::Exchanged { attempt, .. }
        | News::AccountWaitBegan { attempt, .. }
        | News::AccountWaitEnded { attempt, .. }
        | News::Recovered { attempt, .. }
        | News::Reported { attempt, .. } => Some(*attempt),
        News::Edit { .. }
        | News::Granted { .. }
        | News::FolderChanged { .. }
        | News::HookFailed { .. }
        | News::Due
        | News::BaseAdvanced
        | News::RouteOpened
        | News::Answer { .. }
        | News::Review(_)
        | News::StopTask
        | News::Interrupt
        | News::Cancel { .. }
        | News::Retry { .. }
        | News::WorkspaceRemoved { .. }
        | News::Message { .. }
        | News::Inform(_)
        | News::Hold { .. }
        | News::Release
        | News::Accept { .. }
        | News::Block { .. }
        | News::SetLimits { .. }
        | News::Do { .. }
        | News::Refine { .. }
        | News::Annotate(_)
        | News::Wish(_)
        | News::PartsOver(_)
        | News::PartsCame { .. }
        | News::LookAgain
        | News::Withdraw { .. } => None,
    }
}

//! The core of the engine: the whole state, and what follows from each piece of news. It owns no thread, no file and no
//! clock, so that a simulated outside can drive it as the real one does.
//!
//! A turn gathers facts and orders. Whoever drives the core writes the facts and only then performs the orders; what
//! becomes of them comes back as news. Decisions about one task, the landing queue, pauses, sprints and checkpoints are in
//! `landfall-model`; here they meet.

mod issues;
mod recoveries;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use landfall_model::auto::AgentLoops;
use landfall_model::base_gate::{BaseCheckResult, BaseGate, BaseNews};
use landfall_model::checkpoint::{CheckpointEvent, CheckpointReason, Checkpoints, Retention};
use landfall_model::course::{self, ExpectedEvent, Interruption, PersonPresence, RunSnapshot};
use landfall_model::flake::Flakes;
use landfall_model::flow::Flow;
use landfall_model::gate::GateReport;
use landfall_model::haul::IssueBatchHistory;
use landfall_model::issue::IssueEvent;
use landfall_model::pilot::{PauseReason, PilotEvent, PilotMode, PilotState};
use landfall_model::queue::{self, HoldReason, IllegalQueueEvent, LandingBatch, Queue, QueuePolicy};
use landfall_model::recovery::RecoveryEvent;
use landfall_model::resource::MachineResource;
use landfall_model::review::ReviewMode;
use landfall_model::seeded_bugs::{self, SeededBug};
use landfall_model::sprint::{Sprint, SprintEnd, SprintEvent, SprintPhase, SprintSpec, Sprints};
use landfall_model::staged::StagedEvent;
use landfall_model::{
    AgentAssignment, AgentDriveStyle, Attempt, BaseMover, Commit, ConcurrencyLimits, ControlSignal, Effect,
    EndCode, Ending, EngineEvent, Event, ExhaustedBudget, Fact, FlowChange, Grant, GrantKind, IntakeState,
    JournalEntry, News, NewsRefusal, ProfileRoute, QueueEffect, QueueNews, RecoveryResult, RunEnd, RunId,
    ScheduleLimits, Signal, Spending, SprintId, StartFilter, Tag, Task, TaskId, TaskInput, TaskLimits,
    TaskSpec, TaskState, Timestamp, WaitReason, World, count_wanted_spares, expected_task_effects, graph,
    plan,
};
use landfall_store::EventOrderError;

use crate::ask::{AskError, ImportedProgress, NewTaskSpec};

/// What the core needs to know of the world, and what it lets the world know.
pub trait CoreEnvironment {
    /// The wall clock.
    fn now(&self) -> Timestamp;
    /// A budget of the run or the day that is used up.
    fn exhausted_budget(&self) -> Option<ExhaustedBudget>;
    /// What an agent at work has used; none once that is journalled.
    fn note_live_spending(&self, task: TaskId, spending: Option<Spending>);
    /// What a run of an agent has used, as the journal has it.
    fn note_journalled_spending(&self, at: Timestamp, spending: Spending);
    /// A run of the engine began: its budget is whole.
    fn run_started(&self);
    /// A tree passed its checks.
    fn note_pass(&self, report: &GateReport);
    /// The base may be here.
    fn trust_base(&self, base: &Commit);
    /// The person's branch was seen here.
    fn note_user_branch_tip(&self, commit: &Commit);
    /// A task has a new fact: agents may have learnt something.
    fn note_task_event(&self, _at: Timestamp, _task: TaskId, _event: &Event) {}
    /// A person withdrew what an agent had found out.
    fn withdraw_discovery(&self, _number: u32) {}
    /// What an agent has used that was asked outside of any run.
    fn note_consultation(&self, _at: Timestamp, _spending: Spending) {}
}

/// What the person set, as far as the core acts on it.
#[derive(Debug, Clone)]
pub struct EnginePolicy {
    /// How much there is of what is scarce.
    pub limits: ScheduleLimits,
    /// What a task may use.
    pub task: TaskLimits,
    /// How work is reviewed that has one of these tags; the strictest counts.
    pub review_tags: BTreeMap<Tag, ReviewMode>,
    /// How the landing queue works.
    pub queue: QueuePolicy,
    /// Tasks in a row that fail before a run pauses; 0 is never.
    pub failures_max: u32,
    /// Where profiles lead, and how each is driven.
    pub profiles: BTreeMap<String, (ProfileRoute, AgentDriveStyle)>,
    /// The profile that reads the work of others.
    pub reviewer: Option<String>,
    /// Who judges, if not the profile that did the work.
    pub judge: Option<String>,
    /// Limits by profile, account and part of the repository.
    pub caps: ConcurrencyLimits,
    /// How long checkpoints are kept.
    pub retention: Retention,
    /// Whether checkpoints are made as tasks land.
    pub checkpoints: bool,
    /// How many parts of one large issue are worked on at once.
    pub parts_max: u32,
    /// The time between two questions to a tracker, in milliseconds.
    pub poll_ms: u64,
}

/// What a run is to be.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Agents at once; settings say otherwise.
    pub slots: Option<u32>,
    /// Only these tasks; empty means all.
    pub only: Vec<TaskId>,
    /// Who picks the next task.
    pub mode: PilotMode,
    /// A sprint to begin, or the one that is open to go on with.
    pub sprint: Option<SprintRequest>,
    /// Somebody is there to resume a pause, pick a task, or answer.
    pub attended: bool,
}

/// The sprint a run is for.
#[derive(Debug, Clone)]
pub enum SprintRequest {
    /// A new one.
    New(SprintSpec),
    /// The one that is open.
    Open,
}

/// What one turn has gathered.
#[derive(Debug, Clone, Default)]
pub struct CoreTurn {
    /// The facts, in order.
    pub entries: Vec<JournalEntry>,
    /// The tasks they are about, as they are now.
    pub touched: BTreeMap<TaskId, Arc<Task>>,
    /// The orders about tasks.
    pub effects: Vec<Effect>,
    /// The orders about batches.
    pub queue_effects: Vec<QueueEffect>,
    /// Whether the base holds something new.
    pub landed: bool,
    /// Checkpoints to keep alive, and those to let go.
    pub checkpoints: Vec<CheckpointEvent>,
}

/// The whole state.
#[derive(Clone)]
pub struct Core {
    world: World,
    queue: Queue,
    pilot: PilotState,
    sprints: Sprints,
    checkpoints: Checkpoints,
    flakes: Flakes,
    loops: AgentLoops,
    hauls: IssueBatchHistory,
    flows: BTreeMap<String, Arc<Flow>>,
    rules: EnginePolicy,
    run: Option<RunId>,
    last_run: u32,
    drive: IntakeState,
    /// Those that wait for the issues they are made of.
    wholes: BTreeSet<TaskId>,
    /// Those that wait for issues before them, and when those were last looked at.
    blocked: BTreeSet<TaskId>,
    polled: Timestamp,
    /// Whether this run is for the sprint that is open.
    sprinting: bool,
    attended: bool,
    only: Option<BTreeSet<TaskId>>,
    /// Where the base is, as far as facts tell.
    base: Option<Commit>,
    /// Whether agents may start on it.
    base_gate: BaseGate,
    /// A landing that did not check out: nothing more is landed or published until a person has looked.
    mismatch: Option<TaskId>,
    /// Tasks about which something was being done that gave up because of a stop.
    cut_short: BTreeSet<TaskId>,
    low_disk: bool,
    /// What this machine has run out of.
    short: Option<MachineResource>,
    /// Whether a check passed since the last look: a gate that could not be trusted may work again.
    gate_works: bool,
    /// When a task that waits for the gate is verified again, and how many were in vain.
    gate_retry: Option<Timestamp>,
    gate_retries: u32,
    filter: StartFilter,
    /// When the engine before this one last wrote something.
    last_sign: Timestamp,
    turn: CoreTurn,
}

/// The tasks of a journal while it is read: each makes room for one of the same size.
#[derive(Clone, Default)]
pub struct Replay {
    tasks: BTreeMap<TaskId, Arc<Task>>,
}

impl Core {
    /// A core that knows nothing yet.
    #[must_use]
    pub fn new(flows: BTreeMap<String, Arc<Flow>>, default_flow: &str, rules: EnginePolicy) -> Self {
        let mut world = World::new(flows.clone(), default_flow);
        world.set_routes(
            rules.profiles.iter().map(|(name, (route, _))| (name.clone(), route.clone())).collect(),
        );
        world.set_reviewer(rules.reviewer.clone());
        world.set_judge(rules.judge.clone());
        world.set_caps(rules.caps.clone());
        Self {
            world,
            queue: Queue::default(),
            pilot: PilotState::default(),
            sprints: Sprints::default(),
            checkpoints: Checkpoints::default(),
            flakes: Flakes::default(),
            loops: AgentLoops::default(),
            hauls: IssueBatchHistory::default(),
            flows,
            rules,
            run: None,
            last_run: 0,
            drive: IntakeState::Running,
            wholes: BTreeSet::new(),
            blocked: BTreeSet::new(),
            polled: Timestamp::default(),
            sprinting: false,
            attended: false,
            only: None,
            base: None,
            base_gate: BaseGate::default(),
            mismatch: None,
            cut_short: BTreeSet::new(),
            low_disk: false,
            short: None,
            gate_works: false,
            gate_retry: None,
            gate_retries: 0,
            filter: StartFilter::default(),
            last_sign: Timestamp::default(),
            turn: CoreTurn::default(),
        }
    }

    /// Takes in one fact of the journal.
    ///
    /// # Errors
    /// When it cannot follow what came before.
    pub fn replay_entry(
        &mut self,
        replay: &mut Replay,
        out: &dyn CoreEnvironment,
        entry: JournalEntry,
    ) -> Result<(), EventOrderError> {
        let JournalEntry { at, fact } = entry;
        // What a person writes meanwhile is no sign that the engine is alive.
        if matches!(&fact, Fact::Task(_, event) if event.fencing_attempt().is_some()) {
            self.last_sign = at;
        }
        match fact {
            Fact::Task(id, event) => {
                let before = replay.tasks.remove(&id).map(Arc::unwrap_or_clone);
                let after = landfall_model::apply(before, id, at, &event)?;
                self.note_event(out, at, id, &event);
                replay.tasks.insert(id, Arc::new(after));
            }
            Fact::Engine(event) => self.apply_engine_event(out, at, &event)?,
        }
        Ok(())
    }

    /// Takes in the tasks that were read.
    pub fn finish_replay(&mut self, replay: Replay, out: &dyn CoreEnvironment) {
        for task in replay.tasks.into_values() {
            if is_mismatch(&task) {
                self.mismatch = Some(task.id);
            }
            if let Some(landing) = &task.landing {
                out.trust_base(&landing.commit); // it may have landed just before the engine ended
            }
            self.insert_task(Arc::unwrap_or_clone(task));
        }
        for batch in self.queue.batches() {
            for prefix in &batch.prefixes {
                out.trust_base(&prefix.commit);
            }
        }
    }

    fn insert_task(&mut self, task: Task) {
        match &task.state {
            TaskState::Ended(_) => {
                self.wholes.remove(&task.id);
            }
            _ if task.issue.as_ref().is_some_and(|issue| !issue.parts.is_empty()) => {
                self.wholes.insert(task.id);
            }
            _ => {}
        }
        match &task.state {
            TaskState::Waiting { wait: WaitReason::Blockers { .. }, .. } => {
                self.blocked.insert(task.id);
            }
            _ => {
                self.blocked.remove(&task.id);
            }
        }
        self.queue.update_task(&task);
        self.world.put_task(task);
    }

    /// The tasks as they are.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Mutable access for what is observed, not decided: files that running work touches.
    pub fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    /// The landing queue.
    #[must_use]
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Who picks, and whether anything begins.
    #[must_use]
    pub fn pilot(&self) -> &PilotState {
        &self.pilot
    }

    /// The sprints.
    #[must_use]
    pub fn sprints(&self) -> &Sprints {
        &self.sprints
    }

    /// The checkpoints.
    #[must_use]
    pub fn checkpoints(&self) -> &Checkpoints {
        &self.checkpoints
    }

    /// How often checks were flaky.
    #[must_use]
    pub fn flakes(&self) -> &Flakes {
        &self.flakes
    }

    /// Every loop there was.
    #[must_use]
    pub fn loops(&self) -> &AgentLoops {
        &self.loops
    }

    /// The flows.
    #[must_use]
    pub fn flows(&self) -> &BTreeMap<String, Arc<Flow>> {
        &self.flows
    }

    /// What the person set.
    #[must_use]
    pub fn rules(&self) -> &EnginePolicy {
        &self.rules
    }

    /// A landing that did not check out.
    #[must_use]
    pub fn mismatched_landing(&self) -> Option<TaskId> {
        self.mismatch
    }

    /// Whether new work may begin at all.
    #[must_use]
    pub fn drive_mode(&self) -> IntakeState {
        self.drive
    }

    /// Where the base is, as far as facts tell.
    #[must_use]
    pub fn base_commit(&self) -> Option<&Commit> {
        self.base.as_ref()
    }

    /// The task, which must exist.
    #[must_use]
    pub fn expect_task(&self, id: TaskId) -> Arc<Task> {
        self.world.get(id).expect("named by an effect or a fact").clone()
    }

    /// Gives what the turn has gathered, to be written and then performed.
    pub fn take_turn(&mut self) -> CoreTurn {
        std::mem::take(&mut self.turn)
    }

    /// What a fact about a task means for everything but the task.
    fn note_event(&mut self, out: &dyn CoreEnvironment, at: Timestamp, id: TaskId, event: &Event) {
        match event {
            Event::Verified { report, .. } => self.note_report(out, at, report),
            Event::IterationEnded { verdict, .. }
                if seeded_bugs::is_active(SeededBug::BudgetByWord) && !verdict.is_own_word() => {}
            Event::IterationEnded { usage, took_ms, .. } => {
                out.note_journalled_spending(at, Spending { usage: *usage, time_ms: *took_ms });
            }
            Event::Landed { .. } => self.checkpoints.note_landing(id),
            _ => {}
        }
        self.pilot.note(id, event);
        self.queue.note(id, event);
        self.sprints.note(at, id, event);
        self.loops.note(at, id, event);
        out.note_task_event(at, id, event);
    }

    fn note_report(&mut self, out: &dyn CoreEnvironment, at: Timestamp, report: &GateReport) {
        self.flakes.note(at, report);
        if report.outcome().is_green() && !report.is_empty() {
            out.note_pass(report);
            self.gate_works |= !report.reused;
        }
    }

    /// What a fact about the engine means.
    fn apply_engine_event(
        &mut self,
        out: &dyn CoreEnvironment,
        at: Timestamp,
        event: &EngineEvent,
    ) -> Result<(), IllegalQueueEvent> {
        match event {
            EngineEvent::RunStarted { run, .. } => {
                out.run_started();
                self.pilot.run_started();
                self.run = Some(*run);
                self.last_run = self.last_run.max(run.0);
            }
            EngineEvent::RunEnded { why, .. } => {
                self.pilot.run_ended(*why);
                self.run = None;
            }
            EngineEvent::BaseMoved { to, by, .. } => {
                if self.base.as_ref() != Some(to) {
                    self.base_gate.note_base_moved(*by);
                }
                self.base = Some(to.clone());
                out.trust_base(to);
                if *by == BaseMover::Person {
                    out.note_user_branch_tip(to);
                }
            }
            EngineEvent::Account { account, state } => self.world.set_account(account, state.clone()),
            EngineEvent::Measured { report } => {
                self.queue.note_base_report(report);
                self.note_report(out, at, report);
            }
            EngineEvent::Queue(event) => {
                if let landfall_model::QueueEvent::Checked { report, .. } = event {
                    self.note_report(out, at, report);
                }
                self.queue.apply(at, event)?;
            }
            EngineEvent::Pilot(event) => self.pilot.apply(at, event),
            EngineEvent::Sprint(event) => self.sprints.apply(at, event),
            EngineEvent::Checkpoint(event) => self.checkpoints.apply(at, event),
            EngineEvent::Published { commit, .. } => out.note_user_branch_tip(commit),
            EngineEvent::DiscoveryDropped { number } => out.withdraw_discovery(*number),
            EngineEvent::Consulted { usage, took_ms, .. } => {
                out.note_consultation(at, Spending { usage: *usage, time_ms: *took_ms });
            }
            EngineEvent::Auto(event) => self.loops.apply(at, event),
            EngineEvent::Haul(event) => self.hauls.apply(at, event),
            EngineEvent::Started { .. } | EngineEvent::PublishHeld { .. } => {}
        }
        Ok(())
    }

    /// A fact about the engine.
    pub fn record_engine_event(&mut self, out: &dyn CoreEnvironment, event: EngineEvent) {
        let at = out.now();
        self.apply_engine_event(out, at, &event).expect("decided only where it can follow");
        let person = match &event {
            EngineEvent::BaseMoved { to, by: BaseMover::Person | BaseMover::Rebuild, .. } => Some(to.clone()),
            _ => None,
        };
        if let EngineEvent::Checkpoint(event) = &event {
            self.turn.checkpoints.push(event.clone());
        }
        self.turn.entries.push(JournalEntry { at, fact: Fact::Engine(event) });
        if let Some(to) = person {
            self.base_advanced(out);
            self.handle_queue_news(out, &QueueNews::BaseMoved { to });
        }
    }

    /// Begins a run.
    ///
    /// # Errors
    /// When the sprint that was asked for cannot be.
    pub fn start_run(
        &mut self,
        out: &dyn CoreEnvironment,
        version: &str,
        options: &RunOptions,
    ) -> Result<RunId, AskError> {
        if let Some(asked) = &options.sprint {
            self.may_sprint(asked)?;
        }
        if let Some(slots) = options.slots {
            self.rules.limits.slots = slots;
        }
        self.attended = options.attended;
        let named: BTreeSet<TaskId> = options.only.iter().copied().collect();
        self.only = (!named.is_empty()).then(|| self.with_parts(&named));
        self.record_engine_event(out, EngineEvent::Started { version: version.to_owned() });
        if let Some(run) = self.run {
            self.record_engine_event(out, EngineEvent::RunEnded { run, why: RunEnd::Lost });
        }
        let run = RunId(self.last_run + 1);
        let slots = self.rules.limits.slots;
        self.record_engine_event(out, EngineEvent::RunStarted { run, slots, only: options.only.clone() });
        if self.pilot.mode() != options.mode {
            self.record_engine_event(out, EngineEvent::Pilot(PilotEvent::ModeSet { mode: options.mode }));
        }
        self.start_sprint(out, options.sprint.as_ref());
        self.update_filter();
        // Whoever names tasks has picked; where nobody is there to pick, the first in line is taken.
        if options.mode == PilotMode::SemiAuto && (!options.attended || !options.only.is_empty()) {
            let _ = self.assign_next_task(out, None); // nothing is ready: the run ends by itself
        }
        if !options.attended {
            for id in self
                .tasks_in_conflict()
                .into_iter()
                .filter(|id| self.filter.admits_continuation(*id))
                .collect::<Vec<_>>()
            {
                self.handle_task_news(out, id, &News::Due); // whoever was given time for it is not there
            }
        }
        self.retry_holds(out);
        // Who asked for one step by hand asked for nothing after it in that run; this is another.
        let rested = |task: &&Arc<Task>| task.hold.as_ref().is_some_and(|hold| hold.this_run);
        for id in self.world.tasks().filter(rested).map(|task| task.id).collect::<Vec<_>>() {
            self.handle_task_news(out, id, &News::Release);
        }
        self.recheck_issues(out);
        for id in self
            .tasks_with_stray_landing()
            .into_iter()
            .filter(|_| !seeded_bugs::is_active(SeededBug::AstrayForgotten))
        {
            self.handle_task_news(out, id, &News::LandUnsure { attempt: self.expect_task(id).attempt });
        }
        if seeded_bugs::is_active(SeededBug::PauseForgotten) {
            let paused = |task: &&Arc<Task>| {
                matches!(task.state, TaskState::Waiting { wait: landfall_model::WaitReason::Pause, .. })
            };
            for id in self.world.tasks().filter(paused).map(|task| task.id).collect::<Vec<_>>() {
                self.handle_task_news(out, id, &News::Retry { fresh: false, note: None });
            }
        }
        Ok(run)
    }

    fn may_sprint(&self, asked: &SprintRequest) -> Result<(), AskError> {
        match (asked, self.sprints.open()) {
            (SprintRequest::New(_), Some(open)) => Err(AskError::SprintOpen(open.id)),
            (SprintRequest::Open, None) => Err(AskError::NoSprint),
            (SprintRequest::Open, Some(_)) => Ok(()),
            (SprintRequest::New(plan), None) => {
                let filter = StartFilter::for_sprint(plan);
                let fits = |task: &Arc<Task>| {
                    !task.is_over() && !task.spec.draft && filter.admits_task(&task.spec, task.id)
                };
                match filter == StartFilter::default() || self.world.tasks().any(fits) {
                    true => Ok(()),
                    false => Err(AskError::SprintMatchesNothing),
                }
            }
        }
    }

    fn start_sprint(&mut self, out: &dyn CoreEnvironment, asked: Option<&SprintRequest>) {
        self.sprinting = asked.is_some();
        match asked {
            Some(SprintRequest::New(plan)) => {
                if plan.checkpoint && self.base.is_some() {
                    self.make_checkpoint(out, None, CheckpointReason::Sprint);
                }
                let sprint = self.sprints.next_id();
                self.set_filter(StartFilter::for_sprint(plan));
                let ready = u32::try_from(self.world.ready_count()).unwrap_or(u32::MAX);
                let started = SprintEvent::Started { sprint, plan: plan.clone(), ready };
                self.record_engine_event(out, EngineEvent::Sprint(started));
            }
            Some(SprintRequest::Open) => {
                self.pause_lost_sprint();
                if matches!(self.sprints.open().map(|it| &it.phase), Some(SprintPhase::Paused { .. })) {
                    self.record_engine_event(out, EngineEvent::Sprint(SprintEvent::Resumed));
                }
            }
            None => {
                // Another run than that of the sprint: what it does is not the sprint's.
                self.pause_lost_sprint();
            }
        }
    }

    /// A sprint whose engine was lost has stood still since: that is no time of its own.
    fn pause_lost_sprint(&mut self) {
        if matches!(self.sprints.open().map(|it| &it.phase), Some(SprintPhase::Running)) {
            let reason = "its run ended before it was over".to_owned();
            let event = SprintEvent::Paused { reason };
            self.sprints.apply(self.last_sign, &event);
            let fact = Fact::Engine(EngineEvent::Sprint(event));
            self.turn.entries.push(JournalEntry { at: self.last_sign, fact });
        }
    }

    /// Tasks that wait for a person to resolve a conflict.
    fn tasks_in_conflict(&self) -> Vec<TaskId> {
        self.world.tasks().filter(|task| task.waits_for_a_resolution()).map(|task| task.id).collect()
    }

    /// Tasks whose landing was ordered by an engine that is gone, in no batch that is known.
    fn tasks_with_stray_landing(&self) -> Vec<TaskId> {
        self.world.active_tasks().filter(|task| self.queue.is_astray(task)).map(|task| task.id).collect()
    }

    /// What should be under way, after a crash: stops first, so that what a person has ended does not begin.
    #[must_use]
    pub fn expected_effects(&self) -> (Vec<Effect>, Vec<QueueEffect>) {
        let mut effects: Vec<Effect> =
            self.world.tasks().flat_map(|task| expected_task_effects(task)).collect();
        effects.sort_by_key(|effect| !matches!(effect, Effect::Kill { .. }));
        let queue = match self.mismatch {
            Some(_) => Vec::new(), // nothing lands until a person has looked
            None => self.queue.expected_effects(),
        };
        (effects, queue)
    }

    /// Begins nothing new from here on.
    pub fn start_draining(&mut self) {
        self.drive = IntakeState::Draining;
    }

    /// Ends the run.
    pub fn end_run(&mut self, out: &dyn CoreEnvironment, run: RunId, why: RunEnd) {
        if self.sprinting
            && let Some(sprint) = self.sprints.open()
        {
            let event = sprint.event_at_run_end(why);
            if let Some(event) = event {
                self.record_engine_event(out, EngineEvent::Sprint(event));
            }
        }
        self.record_engine_event(out, EngineEvent::RunEnded { run, why });
    }

    /// Lets the model decide about news of a task. Refused news is late news: normal.
    pub fn handle_task_news(&mut self, out: &dyn CoreEnvironment, id: TaskId, news: &News) {
        match self.try_handle_task_news(out, id, news) {
            Ok(_)
            | Err(NewsRefusal::Stale { .. } | NewsRefusal::NotNow { .. } | NewsRefusal::NotAllowed { .. }) => {
            }
            Err(NewsRefusal::Bug(illegal)) => panic!("the model decided what cannot follow: {illegal}"),
        }
    }

    pub(crate) fn decision_input(&self, out: &dyn CoreEnvironment, news: &News) -> TaskInput {
        let drive = match self.pilot.pause() {
            Some(_) => IntakeState::Draining, // iterations end, and the next does not begin
            None => self.drive,
        };
        TaskInput {
            at: out.now(),
            drive,
            spent: out.exhausted_budget(),
            attended: self.attended,
            poll_ms: self.rules.poll_ms,
            news: news.clone(),
        }
    }

    /// The news for one task, with the flow it would take if it is not bound to one yet.
    fn task_decision_input(&self, out: &dyn CoreEnvironment, task: &Arc<Task>, news: &News) -> TaskInput {
        let mut input = self.decision_input(out, news);
        match &mut input.news {
            News::Do { flow, .. } => *flow = self.world.flow_of(task),
            News::Edit { spec, flows } if task.flow.is_none() => {
                let both = self.world.flow_of(task).zip(self.world.flow_for(spec).cloned());
                let change = both.map(|(from, to)| FlowChange { from, to });
                *flows = change.filter(|change| change.from.name != change.to.name);
            }
            _ => {}
        }
        input
    }

    /// The same, for whoever wants to know whether it was refused.
    ///
    /// # Errors
    /// Why nothing was changed.
    pub fn try_handle_task_news(
        &mut self,
        out: &dyn CoreEnvironment,
        id: TaskId,
        news: &News,
    ) -> Result<Arc<Task>, NewsRefusal> {
        let Some(task) = self.world.get(id).cloned() else {
            let state = "unknown".to_owned();
            return Err(NewsRefusal::NotNow { task: id, state, what: "there is no such task" });
        };
        // What the run has used counts from here on, also for whether the next one may begin.
        if let News::AgentEnded(run) = news {
            out.note_live_spending(id, Some(Spending { usage: run.usage, time_ms: run.took_ms }));
        }
        let input = self.task_decision_input(out, &task, news);
        let overruled = match news {
            News::Retry { .. } => self.world.accounts().state_after_override(&task, input.at),
            _ => None,
        };
        let (after, decision) = landfall_model::decide_and_apply(&task, &input)?;
        let is_over = |it: &Event| matches!(it, Event::Recovery(RecoveryEvent::Ended { .. }));
        let recovered = decision.events.iter().any(is_over);
        let parted = decision.events.iter().any(|it| matches!(it, Event::Issue(IssueEvent::Parted { .. })));
        let mut before = (*task).clone();
        for event in decision.events {
            if let Event::IterationEnded { .. } = &event {
                out.note_live_spending(id, None);
            }
            self.note_event(out, input.at, id, &event);
            let account = self.world.accounts().state_after_event(&before, input.at, &event);
            let driving = before.driving.clone();
            before =
                landfall_model::apply(Some(before), id, input.at, &event).expect("it was decided just so");
            let moved = self.base_move_event(id, &event);
            self.turn.entries.push(JournalEntry { at: input.at, fact: Fact::Task(id, event) });
            if let (Some(state), Some(driving)) = (account, driving) {
                self.record_engine_event(out, EngineEvent::Account { account: driving.account, state });
            }
            if let Some(moved) = moved {
                self.turn.landed = true;
                self.record_engine_event(out, moved);
                self.base_advanced(out);
            }
        }
        if let Some((account, state)) = overruled {
            self.record_engine_event(out, EngineEvent::Account { account, state });
        }
        self.turn.effects.extend(decision.effects);
        if is_mismatch(&after) {
            self.mismatch = Some(id);
        }
        self.insert_task(after);
        let after = self.expect_task(id);
        self.turn.touched.insert(id, after.clone());
        if let News::AgentEnded(run) = news {
            self.add_follow_up_drafts(out, id, &run.seen);
        }
        if after.issue.is_some() {
            self.update_related_issues(out, &after, parted);
        }
        if let News::Recovered {
            recovered: RecoveryResult::Diagnosed { profile, usage, took_ms, .. }, ..
        } = news
        {
            let (about, profile) = ("diagnosis".to_owned(), profile.clone());
            let (usage, took_ms) = (*usage, *took_ms);
            self.record_engine_event(out, EngineEvent::Consulted { about, profile, usage, took_ms });
        }
        if recovered {
            self.propose_recurring_failures(out, id);
        }
        Ok(self.expect_task(id))
    }

    /// The base was moved by a landing. Those that land together move it once.
    fn base_move_event(&self, id: TaskId, event: &Event) -> Option<EngineEvent> {
        let Event::Landed { commit, base_before, .. } = event else { return None };
        if self.base.as_ref() == Some(commit) {
            return None;
        }
        let (from, to) = (Some(base_before.clone()), commit.clone());
        Some(EngineEvent::BaseMoved { from, to, by: BaseMover::Landing(id) })
    }

    /// Lets the model decide about news of the landing queue.
    pub fn handle_queue_news(&mut self, out: &dyn CoreEnvironment, news: &QueueNews) {
        if let QueueNews::Built { prefixes, .. } = news {
            for prefix in prefixes {
                out.trust_base(&prefix.commit); // it may be the base before the fact of that is written
            }
        }
        // Nothing more lands after a landing that did not check out; what a person says of the line is heard all the same.
        let of_a_person =
            matches!(news, QueueNews::Hold { .. } | QueueNews::Resume | QueueNews::BaseMoved { .. });
        if self.mismatch.is_some() && !of_a_person {
            return;
        }
        if matches!(news, QueueNews::Exhausted { .. }) {
            self.short.get_or_insert(MachineResource::Processes); // the next look knows what is missing, or that it is back
        }
        let world = &self.world;
        let is_met = |id: TaskId| {
            self.filter.admits_continuation(id)
                && world.get(id).is_some_and(|task| world.unmet_needs(task).is_empty())
        };
        let forms = self.drive == IntakeState::Running && self.mismatch.is_none() && self.short.is_none();
        let policy = QueuePolicy { forms, ..self.rules.queue };
        let decision = queue::decide(&self.queue, &policy, out.now(), news, &is_met);
        for (task, news) in decision.tells {
            self.handle_task_news(out, task, &news);
        }
        for event in decision.events {
            self.record_engine_event(out, EngineEvent::Queue(event));
        }
        self.turn.queue_effects.extend(decision.effects);
    }

    /// The model answered an agent: whoever waited for its account to be tried may go on.
    pub fn note_model_answer(&mut self, out: &dyn CoreEnvironment, id: TaskId) {
        let Some(driving) = self.world.get(id).and_then(|task| task.driving.clone()) else { return };
        if let Some(state) = self.world.accounts().state_after_answer(&driving.account, out.now()) {
            self.record_engine_event(out, EngineEvent::Account { account: driving.account, state });
        }
    }

    /// Tasks an agent wants to be thought of are drafts: only a person lets them start.
    fn add_follow_up_drafts(&mut self, out: &dyn CoreEnvironment, id: TaskId, seen: &[Signal]) {
        const MAX: usize = 10; // an agent that files more is not helping
        let wanted = seen.iter().filter_map(|signal| match signal {
            Signal::Said(ControlSignal::FollowUp(text)) => Some(text),
            _ => None,
        });
        for text in wanted.take(MAX) {
            let (title, body) = text.split_once('\n').unwrap_or((text, ""));
            let Ok(mut spec) = TaskSpec::new(title.trim()) else { continue };
            spec.body = body.trim().to_owned();
            spec.source = format!("follow-up:{id}");
            spec.draft = true;
            let known = |task: &Arc<Task>| task.spec.source == spec.source && task.spec.title == spec.title;
            if spec.check_bounds().is_ok() && !self.world.tasks().any(known) {
                self.insert_new_task(out, self.world.next_id(), spec);
            }
        }
    }

    /// A gate that was broken may be whole on the new base.
    fn base_advanced(&mut self, out: &dyn CoreEnvironment) {
        for id in self.world.gate_waits() {
            self.handle_task_news(out, id, &News::BaseAdvanced);
        }
    }

    /// Ends the holds that no person has to end: what failed may work again.
    fn retry_holds(&mut self, out: &dyn CoreEnvironment) {
        self.gate_works = false;
        self.gate_retry = None;
        self.gate_retries = 0;
        self.base_advanced(out);
        if self.queue.hold().is_some() {
            self.handle_queue_news(out, &QueueNews::Retry);
        }
    }

    /// Tries a gate again that could not be trusted. After a pass everybody who waits for it goes on; otherwise one
    /// task at a time tries it, less and less often.
    fn retry_gate_if_due(&mut self, out: &dyn CoreEnvironment) {
        if self.drive == IntakeState::Draining {
            return;
        }
        if self.gate_works {
            return self.retry_holds(out);
        }
        let Some(first) = self.world.gate_waits().first().copied() else { return };
        let now = out.now();
        match self.gate_retry {
            Some(due) if due > now => {}
            Some(_) => {
                self.gate_retries += 1;
                self.gate_retry = None;
                self.handle_task_news(out, first, &News::BaseAdvanced);
            }
            None => self.gate_retry = Some(now.plus_ms(course::gate_pause_ms(self.gate_retries))),
        }
    }

    /// Everything that follows by itself: what is due, pauses, goals, checkpoints, grants, and the queue.
    pub fn advance_state(&mut self, out: &dyn CoreEnvironment, low_disk: bool) {
        self.low_disk = low_disk;
        if self.mismatch.is_some() {
            self.start_draining();
        }
        self.handle_due_tasks(out);
        self.retry_gate_if_due(out);
        self.pause_if_needed(out);
        self.update_sprint(out);
        self.update_mode(out);
        self.checkpoint_if_due(out);
        if self.find_resting_parts() != self.filter.resting {
            self.update_filter();
        }
        // Whoever is verified stands in line before anything else is verified: what lands now would outdate it.
        let limits = self.current_limits(out);
        self.grant_slots(out, &ScheduleLimits { slots: 0, lanes: 0, ..limits.clone() });
        if self.mismatch.is_none() && self.drive == IntakeState::Running {
            self.handle_queue_news(out, &QueueNews::Look);
        }
        let lanes = if self.is_settling() { 0 } else { limits.lanes };
        self.grant_slots(out, &ScheduleLimits { lanes, ..limits });
    }

    /// Whether the checks should run on the base now: an agent would start if they passed there.
    #[must_use]
    pub fn wants_base_check(&self, out: &dyn CoreEnvironment) -> bool {
        self.run.is_some()
            && self.drive == IntakeState::Running
            && self.world.waiting_for(GrantKind::Slot) > 0
            && self.current_limits(out).slots > 0
            && self.base_gate.wants_check(out.now())
    }

    /// What came of the checks on the base. What was seen of another base than the present one is evidence of that one only.
    pub fn handle_base_check(&mut self, out: &dyn CoreEnvironment, check: &BaseCheckResult) {
        let is_present = check.is_about(self.base.as_ref());
        let news = &check.news;
        let mut gate = self.base_gate.clone();
        gate.hear(out.now(), news);
        if let BaseNews::Checked(report) = news
            && !report.reused
            && (!report.is_empty() || !gate.may_start())
        {
            self.record_engine_event(out, EngineEvent::Measured { report: (**report).clone() });
        }
        if is_present {
            self.base_gate = gate;
        }
    }

    /// Why no agent starts on the base, if some want to.
    #[must_use]
    pub fn base_hold(&self) -> Option<String> {
        self.base_gate.blocking_reason().filter(|_| self.world.waiting_for(GrantKind::Slot) > 0)
    }

    /// What this machine has run out of: until it is back nothing is started.
    pub fn set_missing_resource(&mut self, resource: Option<MachineResource>) {
        self.short = resource;
    }

    /// How many workspaces should stand ready before anybody asks for one.
    #[must_use]
    pub fn wanted_spares(&self, out: &dyn CoreEnvironment) -> usize {
        match self.drive {
            IntakeState::Running => count_wanted_spares(&self.world, &self.current_limits(out)),
            IntakeState::Draining => 0,
        }
    }

    fn handle_due_tasks(&mut self, out: &dyn CoreEnvironment) {
        if self.drive == IntakeState::Draining {
            return;
        }
        let now = out.now();
        while let Some((at, id)) = self.world.next_due()
            && at <= now
        {
            let before = self.turn.entries.len();
            self.handle_task_news(out, id, &News::Due);
            if self.turn.entries.len() == before {
                break; // refused: a bug in the model; the next turn tries again
            }
        }
    }

    fn pause_if_needed(&mut self, out: &dyn CoreEnvironment) {
        let stops = self.sprinting && self.sprints.open().is_some_and(|sprint| sprint.plan.pause_on_error);
        if let Some(event) = self.pilot.should_pause(self.rules.failures_max, stops) {
            self.pause_with(out, event);
        }
    }

    fn pause_with(&mut self, out: &dyn CoreEnvironment, event: PilotEvent) {
        let PilotEvent::Paused { reason, .. } = &event else { return };
        let reason = reason.clone();
        self.record_engine_event(out, EngineEvent::Pilot(event));
        if self.sprinting && self.sprints.open().is_some_and(|it| it.phase == SprintPhase::Running) {
            self.record_engine_event(out, EngineEvent::Sprint(SprintEvent::Paused { reason }));
        }
    }

    fn update_sprint(&mut self, out: &dyn CoreEnvironment) {
        let Some(sprint) = self.current_sprint() else { return };
        let paused = matches!(sprint.phase, SprintPhase::Paused { .. });
        if let Some(why) = sprint.should_complete(out.now(), self.ready_in_sprint()) {
            self.record_engine_event(out, EngineEvent::Sprint(SprintEvent::Completing { why }));
            if paused && self.pilot.pause().is_some() {
                self.record_engine_event(out, EngineEvent::Pilot(PilotEvent::Resumed)); // what was begun is finished
            }
        }
        self.update_filter();
    }

    /// What a sprint may still begin, or has begun and may yet land.
    fn ready_in_sprint(&self) -> usize {
        let under_way = self.world.active_tasks().count() + self.queue.len();
        self.world.ready_count() + under_way + usize::from(self.world.next_due().is_some())
    }

    /// In semi-automatic mode a person picks again once nothing more follows by itself from what they picked.
    fn update_mode(&mut self, out: &dyn CoreEnvironment) {
        let Some(task) = self.pilot.assigned_task().and_then(|id| self.world.get(id)) else { return };
        if !task.continues_by_itself() {
            self.record_engine_event(out, EngineEvent::Pilot(PilotEvent::Settled));
            self.update_filter();
        }
    }

    fn checkpoint_if_due(&mut self, out: &dyn CoreEnvironment) {
        if self.rules.checkpoints && self.checkpoints.is_due() && self.base.is_some() {
            self.make_checkpoint(out, None, CheckpointReason::Landings);
        }
    }

    /// Makes a checkpoint of the base as it is; none before there is one.
    pub fn make_checkpoint(
        &mut self,
        out: &dyn CoreEnvironment,
        name: Option<&str>,
        why: CheckpointReason,
    ) -> Option<String> {
        let commit = self.base.clone()?;
        let name = name.map_or_else(|| self.checkpoints.next_name(), str::to_owned);
        let made = CheckpointEvent::Made { name: name.clone(), commit, why };
        self.record_engine_event(out, EngineEvent::Checkpoint(made));
        for name in self.checkpoints.find_outdated(out.now(), self.rules.retention) {
            self.record_engine_event(out, EngineEvent::Checkpoint(CheckpointEvent::Dropped { name }));
        }
        Some(name)
    }

    /// The limits as they are now.
    #[must_use]
    pub fn current_limits(&self, out: &dyn CoreEnvironment) -> ScheduleLimits {
        let limits =
            ScheduleLimits { now: out.now(), spent: out.exhausted_budget(), ..self.rules.limits.clone() };
        let paused = self.pilot.pause().is_some();
        if self.short.is_some() {
            return ScheduleLimits { slots: 0, lanes: 0, ..limits };
        }
        match self.low_disk || paused {
            true => ScheduleLimits { slots: 0, ..limits },
            false => limits,
        }
    }

    /// The limits, without slots while agents are far ahead of what lands, or a check does not pass on the base.
    fn pace_limits(&self, limits: &ScheduleLimits) -> ScheduleLimits {
        // Whoever in line waits for what they need must not stop the agents who work on that.
        let waiting = self.world.waiting_for(GrantKind::Lane) + self.count_landable();
        let is_far_ahead = course::is_far_ahead(waiting, limits.slots, self.rules.queue.batch_max);
        match is_far_ahead || !self.base_gate.may_start() {
            true => ScheduleLimits { slots: 0, ..limits.clone() },
            false => limits.clone(),
        }
    }

    /// How many stand in line and need nobody else to land first.
    fn count_landable(&self) -> usize {
        let met = |id: &TaskId| {
            self.filter.admits_continuation(*id)
                && self.world.get(*id).is_some_and(|task| self.world.unmet_needs(task).is_empty())
        };
        self.queue.line().filter(met).count()
    }

    fn is_settling(&self) -> bool {
        let gate = |task: TaskId| self.world.get(task)?.gate.as_ref().map(|gate| gate.tree.clone());
        self.queue.is_settling(&gate)
    }

    /// Grants what is free to whoever stands first in line.
    fn grant_slots(&mut self, out: &dyn CoreEnvironment, limits: &ScheduleLimits) {
        let Some(run) = self.run else { return };
        let mut refused = 0;
        while self.drive == IntakeState::Running
            && refused < REFUSALS_MAX
            && let Some(id) = self.world.find_rescuable_task(out.now())
        {
            self.handle_task_news(out, id, &News::RouteOpened);
            refused += 1; // the next turn takes the others
        }
        let mut refused = 0;
        while self.drive == IntakeState::Running
            && refused < REFUSALS_MAX
            && let Some(Grant { task: id, profile, .. }) = plan(&self.world, &self.pace_limits(limits))
        {
            let task = self.expect_task(id);
            let Some(flow) = self.world.flow_of(&task) else { break };
            let (limits, driving) = (self.task_limits(&task), self.driving_for_profile(&profile, &flow));
            let before = self.turn.entries.len();
            self.handle_task_news(out, id, &News::Granted { run, flow, limits, driving });
            if self.sprinting {
                self.update_filter(); // what was just begun may be all it takes
            }
            if self.turn.entries.len() == before {
                refused += 1; // a bug in the model; the line must not spin on it
            }
        }
    }

    fn driving_for_profile(&self, profile: &str, flow: &Flow) -> AgentAssignment {
        let style = flow.style_for(self.style_of(profile));
        let account = self.world.account_of(profile).to_owned();
        AgentAssignment { profile: profile.to_owned(), account, style }
    }

    fn style_of(&self, profile: &str) -> AgentDriveStyle {
        self.rules.profiles.get(profile).map_or(AgentDriveStyle::Fresh, |(_, style)| *style)
    }

    /// Gives a task whose agent runs a loop of its own a flow that is made for that, unless it has one.
    fn choose_loop_flow(&self, spec: &mut TaskSpec, before: Option<&TaskSpec>) -> Result<(), AskError> {
        let profile = spec.agent.as_deref().unwrap_or("default");
        // The flow of a module comes from the form of its folder, until a person names another.
        let is_named = before.is_some_and(|before| before.flow != spec.flow);
        let is_chosen = spec.flow.is_some() && (is_named || !spec.source.starts_with("module:"));
        let other = self.world.self_driven_flow(spec, self.style_of(profile), is_chosen)?;
        spec.flow = other.or(spec.flow.take());
        Ok(())
    }

    fn task_limits(&self, task: &Task) -> TaskLimits {
        let mut limits = self.rules.task.clone();
        let by_tags = task.spec.tags.iter().filter_map(|tag| self.rules.review_tags.get(tag)).copied();
        let looks_after = self.current_sprint().is_some_and(|sprint| sprint.plan.batch_review);
        limits.review = limits.review.combine_with(by_tags, looks_after);
        // Settled once: a task is not judged by other numbers half-way.
        limits.tuning = match &task.flow {
            Some(_) => task.limits.tuning,
            None => landfall_model::tune::for_task(task, self.world.tasks().map(|it| &**it)),
        };
        if let Some(tuning) = limits.tuning {
            limits.compact_percent = tuning.compact_percent;
        }
        limits
    }

    /// Lets a run that is for some tasks only have one more, with what it needs.
    pub(crate) fn widen_run(&mut self, id: TaskId) {
        let more = self.with_needs(id);
        if let Some(only) = &mut self.only {
            only.extend(more);
            self.update_filter();
        }
    }

    /// Says again which tasks may begin.
    fn update_filter(&mut self) {
        let goes_on = |id: TaskId| self.world.get(id).is_some_and(|task| task.continues_by_itself());
        let picks = (self.pilot.mode(), self.pilot.assigned_task());
        let filter = course::build_start_filter(self.current_sprint(), &goes_on, picks, self.only.as_ref());
        self.set_filter(StartFilter { resting: self.find_resting_parts(), ..filter });
    }

    /// The sprint this run is for.
    fn current_sprint(&self) -> Option<&Sprint> {
        self.sprints.open().filter(|_| self.sprinting)
    }

    fn set_filter(&mut self, filter: StartFilter) {
        if filter != self.filter {
            self.filter = filter.clone();
            self.world.set_filter(filter);
        }
    }

    /// Whether nothing is under way and nothing will begin by itself.
    #[must_use]
    pub fn is_idle(&self, out: &dyn CoreEnvironment, interrupted: bool) -> bool {
        let waits =
            |task: &Arc<Task>| course::waits_for_task(task, self.find_interruption(task.id, interrupted));
        let under_way = self.world.active_tasks().any(waits);
        let waits = |batch: &LandingBatch| course::waits_for_batch(batch.doing, self.drive, interrupted);
        // After a landing that did not check out nothing is done for batches: they go on when a person has looked.
        let landing = self.mismatch.is_none() && self.queue.batches().iter().any(waits);
        !under_way && !landing && self.run_scene(out).is_idle()
    }

    /// What a stop did to what is done about a task.
    fn find_interruption(&self, task: TaskId, interrupted: bool) -> Interruption {
        match (interrupted, self.cut_short.contains(&task)) {
            (_, true) => Interruption::CutShort,
            (true, false) => Interruption::Asked,
            (false, false) => Interruption::None,
        }
    }

    /// What was being done about this task is left to the next run.
    pub fn set_cut_short(&mut self, task: TaskId) {
        self.cut_short.insert(task);
    }

    /// The run as it stands.
    fn run_scene(&self, out: &dyn CoreEnvironment) -> RunSnapshot {
        // Whoever stands in line and waits for others first is not busy: a run without those others ends.
        let moves = || self.queue.hold().is_none() && self.count_landable() > 0;
        let coming = [
            (ExpectedEvent::Due, self.world.next_due().is_some()),
            (ExpectedEvent::Account, self.world.next_opening(out.now()).is_some()),
            (ExpectedEvent::Room, self.low_disk),
            (ExpectedEvent::Resource, self.short.is_some() && self.has_waiting_work()),
            (ExpectedEvent::BaseCheck, self.base_gate.opens_by_itself(self.queue.is_held_for_base())),
            (
                ExpectedEvent::Landing,
                !self.queue.batches().is_empty() || self.queue.resumes_soon() || moves(),
            ),
        ];
        RunSnapshot {
            drive: self.drive,
            phase: self.pilot.phase(),
            mode: self.pilot.mode(),
            person: if self.attended { PersonPresence::There } else { PersonPresence::Away },
            pickable: self.pilot.mode() == PilotMode::SemiAuto && self.could_start(),
            wants_slot: self.world.waiting_for(GrantKind::Slot) > 0,
            spent: out.exhausted_budget(),
            coming: coming.into_iter().filter(|(_, comes)| *comes).map(|(what, _)| what).collect(),
            sprint: self.current_sprint().map(|sprint| sprint.phase.clone()),
        }
    }

    /// Whether somebody waits for a slot, a lane or their landing.
    fn has_waiting_work(&self) -> bool {
        let waiting = self.world.waiting_for(GrantKind::Slot) + self.world.waiting_for(GrantKind::Lane);
        waiting + self.queue.len() > 0
    }

    /// Whether a person could pick a task.
    fn could_start(&self) -> bool {
        let ready = |task: &Arc<Task>| {
            matches!(task.state, TaskState::Ready { .. })
                && !task.is_held()
                && self.filter.admits_continuation(task.id)
                && self.world.unmet_needs(task).is_empty()
        };
        self.world.tasks().any(ready)
    }

    /// Why a run that is idle has ended.
    #[must_use]
    pub fn run_end_reason(&self, out: &dyn CoreEnvironment) -> RunEnd {
        self.run_scene(out).run_end_reason()
    }

    /// The next moment something happens by the clock alone.
    #[must_use]
    pub fn next_wakeup(&self, out: &dyn CoreEnvironment) -> Option<Timestamp> {
        let now = out.now();
        let running = self.drive == IntakeState::Running;
        let due = self.world.next_due().map(|(at, _)| at).filter(|_| running);
        let sprint = self.current_sprint().and_then(|sprint| sprint.goal_due_at(now));
        let queue = self.queue.hold_until().filter(|_| running && self.mismatch.is_none());
        let gate = self.gate_retry.filter(|_| running && !self.world.gate_waits().is_empty());
        let base =
            self.base_gate.retry_at().filter(|_| running && self.world.waiting_for(GrantKind::Slot) > 0);
        [due, self.world.next_opening(now), queue, sprint, gate, base].into_iter().flatten().min()
    }

    /// Nothing new begins until a person, or whoever, lets it go on.
    ///
    /// # Errors
    /// When it is paused already.
    pub fn pause_run(&mut self, out: &dyn CoreEnvironment, reason: &str) -> Result<(), AskError> {
        if self.pilot.pause().is_some() {
            return Err(AskError::Paused);
        }
        let reason = if reason.is_empty() { "you paused it" } else { reason }.to_owned();
        self.pause_with(out, PilotEvent::Paused { why: PauseReason::Person, reason });
        Ok(())
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// When it is not paused.
    pub fn resume_run(&mut self, out: &dyn CoreEnvironment) -> Result<(), AskError> {
        if self.pilot.pause().is_none() {
            return Err(AskError::NotPaused);
        }
        self.record_engine_event(out, EngineEvent::Pilot(PilotEvent::Resumed));
        if self.sprinting
            && matches!(self.sprints.open().map(|it| &it.phase), Some(SprintPhase::Paused { .. }))
        {
            self.record_engine_event(out, EngineEvent::Sprint(SprintEvent::Resumed));
        }
        Ok(())
    }

    /// Changes who picks.
    pub fn set_mode(&mut self, out: &dyn CoreEnvironment, mode: PilotMode) {
        if self.pilot.mode() != mode {
            self.record_engine_event(out, EngineEvent::Pilot(PilotEvent::ModeSet { mode }));
            self.update_filter();
        }
    }

    /// A person picks the next task, or lets the engine name the first in line.
    ///
    /// # Errors
    /// When it cannot begin.
    pub fn assign_next_task(
        &mut self,
        out: &dyn CoreEnvironment,
        task: Option<TaskId>,
    ) -> Result<Arc<Task>, AskError> {
        if self.pilot.mode() != PilotMode::SemiAuto {
            return Err(AskError::NotSemiAuto);
        }
        if let Some(busy) = self.pilot.assigned_task() {
            return Err(AskError::Assigned(busy));
        }
        let id = match task {
            Some(id) => id,
            None => {
                self.filter.starts = None;
                self.world.set_filter(self.filter.clone());
                let first = plan(&self.world, &self.current_limits(out)).map(|grant| grant.task);
                self.update_filter();
                first.ok_or(AskError::NothingReady)?
            }
        };
        let task = self.world.get(id).ok_or(AskError::UnknownTask(id))?;
        if !matches!(task.state, TaskState::Ready { .. }) || task.is_held() {
            let state = if task.is_held() { "held".to_owned() } else { task.state.name() };
            return Err(AskError::NotReady(id, state));
        }
        let task = task.clone();
        self.record_engine_event(out, EngineEvent::Pilot(PilotEvent::Assigned { task: id }));
        self.update_filter();
        Ok(task)
    }

    /// Ends the open sprint; what is under way is finished.
    ///
    /// # Errors
    /// When there is none.
    pub fn cancel_sprint(&mut self, out: &dyn CoreEnvironment) -> Result<SprintId, AskError> {
        let sprint = self.sprints.open().ok_or(AskError::NoSprint)?;
        let id = sprint.id;
        let event = match self.sprinting {
            true => SprintEvent::Completing { why: SprintEnd::Cancelled },
            false => SprintEvent::Ended { why: SprintEnd::Cancelled },
        };
        self.record_engine_event(out, EngineEvent::Sprint(event));
        if self.pilot.pause().is_some() && self.sprinting {
            self.record_engine_event(out, EngineEvent::Pilot(PilotEvent::Resumed)); // so that what was begun is finished
        }
        self.update_filter();
        Ok(id)
    }

    /// Pauses or resumes the landing queue.
    ///
    /// # Errors
    /// When it is so already.
    pub fn hold_queue(&mut self, out: &dyn CoreEnvironment, reason: Option<String>) -> Result<(), AskError> {
        match (reason, self.queue.hold()) {
            (Some(_), Some(hold)) if hold.why == HoldReason::Person => {
                Err(AskError::QueueHeld(hold.reason.clone()))
            }
            (Some(reason), _) => {
                self.handle_queue_news(out, &QueueNews::Hold { why: HoldReason::Person, reason });
                Ok(())
            }
            (None, None) => Err(AskError::QueueMoves),
            (None, Some(_)) => {
                self.handle_queue_news(out, &QueueNews::Resume);
                Ok(())
            }
        }
    }

    /// Tells several tasks the same: all or none.
    ///
    /// # Errors
    /// The first that refuses.
    pub fn handle_news_for_all(
        &mut self,
        out: &dyn CoreEnvironment,
        tasks: &[TaskId],
        news: &News,
    ) -> Result<Vec<Arc<Task>>, AskError> {
        for id in tasks {
            let task = self.world.get(*id).ok_or(AskError::UnknownTask(*id))?;
            landfall_model::decide_and_apply(task, &self.task_decision_input(out, task, news))?;
        }
        let mut changed = Vec::new();
        for id in tasks {
            changed.push(self.try_handle_task_news(out, *id, news)?);
        }
        Ok(changed)
    }

    fn check_spec(&self, spec: &TaskSpec) -> Result<(), AskError> {
        spec.check_bounds()?;
        if let Some(name) = &spec.flow
            && !self.flows.contains_key(name)
        {
            let known = self.flows.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(AskError::UnknownFlow { name: name.clone(), known });
        }
        if let Some(name) = &spec.agent
            && !self.rules.profiles.contains_key(name)
        {
            let known = self.rules.profiles.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(AskError::UnknownAgent { name: name.clone(), known });
        }
        Ok(())
    }

    /// Adds tasks, all or none.
    ///
    /// # Errors
    /// What is wrong with the first bad one.
    pub fn add_tasks(
        &mut self,
        out: &dyn CoreEnvironment,
        tasks: Vec<NewTaskSpec>,
    ) -> Result<Vec<Arc<Task>>, AskError> {
        let first = self.world.next_id().0;
        let id_of =
            |place: usize| TaskId(first + u32::try_from(place).expect("fewer than four thousand million"));
        let mut specs: Vec<(TaskId, TaskSpec)> = Vec::new();
        let mut positions = Vec::new();
        for (place, new) in tasks.into_iter().enumerate() {
            let mut spec = new.spec;
            positions.push(new.position);
            spec.needs.extend(new.needs_here.iter().map(|place| id_of(*place)));
            spec.parent = spec.parent.or(new.parent_here.map(id_of));
            self.check_spec(&spec)?;
            self.choose_loop_flow(&mut spec, None)?;
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
            if let Some(cycle) = graph::find_cycle(*id, &spec.needs, &needs_of) {
                return Err(AskError::Cycle(cycle));
            }
        }
        let born = |((id, spec), position): ((TaskId, TaskSpec), Option<ImportedProgress>)| {
            let task = self.insert_new_task(out, id, spec);
            position.map_or(task, |position| self.import_progress(out, id, position))
        };
        Ok(specs.into_iter().zip(positions).map(born).collect())
    }

    /// Brings a new task to where it stood elsewhere: its plan and its work are there, and it goes on from them.
    fn import_progress(
        &mut self,
        out: &dyn CoreEnvironment,
        id: TaskId,
        position: ImportedProgress,
    ) -> Arc<Task> {
        let ImportedProgress { entry, plan, done, branch: _, work } = position;
        let attempt = Attempt::default();
        let mut events = Vec::new();
        let steps = plan.as_ref().map_or(0, |(_, outline)| outline.len());
        if let Some((paper, outline)) = &plan {
            let (paper, covers) = (paper.clone(), outline.covered_requirements().into_iter().collect());
            let approach = outline.approach();
            events.push(Event::Staged(StagedEvent::Planned { attempt, paper, steps, covers, approach }));
            let done = done.min(steps);
            events.extend((done > 0).then_some(Event::Staged(StagedEvent::Advanced { attempt, done })));
        }
        let task = self.expect_task(id);
        if task.state != TaskState::Draft {
            let finished = work.is_some() && done >= steps;
            let flow = self.world.flow_of(&task);
            let step = flow.and_then(|flow| flow.entry_at(&entry, plan.is_some(), finished).cloned());
            if let Some(work) = work {
                events.push(Event::SentBack { to: work.clone() }); // its workspace begins with it
                events.push(Event::Offered { head: work });
            }
            events.extend(step.map(|step| Event::Directed { step, alone: false }));
        }
        for event in events {
            let at = out.now();
            let after = landfall_model::apply(Some((*self.expect_task(id)).clone()), id, at, &event)
                .expect("a new task can be told where it stands");
            self.insert_task(after);
            self.turn.entries.push(JournalEntry { at, fact: Fact::Task(id, event) });
        }
        let task = self.expect_task(id);
        self.turn.touched.insert(id, task.clone());
        task
    }

    fn insert_new_task(&mut self, out: &dyn CoreEnvironment, id: TaskId, spec: TaskSpec) -> Arc<Task> {
        let at = out.now();
        self.insert_task(Task::from_spec(id, spec.clone(), at));
        let task = self.expect_task(id);
        self.turn.entries.push(JournalEntry { at, fact: Fact::Task(id, Event::Added { spec }) });
        self.turn.touched.insert(id, task.clone());
        task
    }

    /// Adds a task whose work exists already as a commit.
    pub fn add_task_with_work(
        &mut self,
        out: &dyn CoreEnvironment,
        spec: TaskSpec,
        head: Commit,
    ) -> Arc<Task> {
        let id = self.world.next_id();
        let task = self.insert_new_task(out, id, spec);
        let (at, event) = (out.now(), Event::Offered { head });
        let after = landfall_model::apply(Some((*task).clone()), id, at, &event)
            .expect("a new task can be offered work");
        self.insert_task(after);
        self.turn.entries.push(JournalEntry { at, fact: Fact::Task(id, event) });
        let after = self.expect_task(id);
        self.turn.touched.insert(id, after.clone());
        after
    }

    /// Whether a list or a proposal brought the task as the head of others: there is nothing to do in it.
    fn is_made_group(&self, task: &Task) -> bool {
        let made = ["import:", "proposal:"].iter().any(|word| task.spec.source.starts_with(word));
        made && self.world.tasks().any(|other| other.spec.parent == Some(task.id))
    }

    /// Lets drafts start, all or none.
    ///
    /// # Errors
    /// The first that refuses.
    pub fn release_drafts(
        &mut self,
        out: &dyn CoreEnvironment,
        drafts: &[TaskId],
    ) -> Result<Vec<Arc<Task>>, AskError> {
        let mut told = Vec::new();
        for id in drafts {
            let task = self.world.get(*id).ok_or(AskError::UnknownTask(*id))?;
            if self.is_made_group(task) {
                return Err(AskError::Group(*id));
            }
            let spec = TaskSpec { draft: false, ..task.spec.clone() };
            let news = News::Edit { spec, flows: None };
            landfall_model::decide_and_apply(task, &self.decision_input(out, &news))?;
            told.push((*id, news));
        }
        told.iter().map(|(id, news)| Ok(self.try_handle_task_news(out, *id, news)?)).collect()
    }

    /// Changes the words of a task.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn edit_task(
        &mut self,
        out: &dyn CoreEnvironment,
        id: TaskId,
        mut spec: TaskSpec,
    ) -> Result<Arc<Task>, AskError> {
        let task = self.world.get(id).ok_or(AskError::UnknownTask(id))?;
        if task.state == TaskState::Draft && !spec.draft && self.is_made_group(task) {
            return Err(AskError::Group(id));
        }
        if spec.flow != task.spec.flow || spec.agent != task.spec.agent {
            self.check_spec(&spec)?;
            if task.flow.is_none() {
                self.choose_loop_flow(&mut spec, Some(&task.spec))?;
            }
        }
        spec.check_bounds()?;
        for need in spec.needs.iter().chain(&spec.parent) {
            if self.world.get(*need).is_none() {
                return Err(AskError::UnknownTask(*need));
            }
        }
        let needs_of = |of: TaskId| {
            self.world.get(of).map(|task| task.spec.needs.iter().copied().collect()).unwrap_or_default()
        };
        if let Some(cycle) = graph::find_cycle(id, &spec.needs, &needs_of) {
            return Err(AskError::Cycle(cycle));
        }
        Ok(self.try_handle_task_news(out, id, &News::Edit { spec, flows: None })?)
    }
}

fn is_mismatch(task: &Task) -> bool {
    matches!(&task.state, TaskState::Ended(Ending { code: EndCode::LandingMismatch, .. }))
}

const REFUSALS_MAX: u32 = 8;

//! Random but legal histories: facts are drawn, and the model says which of them can follow.

use std::collections::BTreeMap;
use std::sync::Arc;

use landfall_model::checkpoint::{CheckpointEvent, CheckpointReason};
use landfall_model::conflict::ConflictTimeoutAction;
use landfall_model::gate::{CheckOutcome, CommandResult, GateReport};
use landfall_model::pilot::{PauseReason, PilotEvent, PilotMode};
use landfall_model::queue::{BatchDoing, BatchEnd, BatchMember, BatchPrefix, HoldReason};
use landfall_model::review::{Finding, FindingSeverity};
use landfall_model::sprint::{ReviewDecision, SprintEnd, SprintEndCondition, SprintEvent, SprintSpec};
use landfall_model::{
    AgentAssignment, AgentExit, AgentRunTraces, AgentUsage, AttemptStart, BaseMover, BatchId, ChangeConcern,
    Commit, ConcernCode, Digest, EdgeTarget, EndCode, EndKind, Ending, EngineEvent, Event, Fact, Feedback,
    Flow, FlowStep, JournalEntry, QueueEvent, RunEnd, RunId, SessionStart, StepKind, StepName, StepResult,
    StopRequest, Task, TaskId, TaskLimitOverrides, TaskLimits, TaskSpec, Timestamp, Tree, Verdict,
    WaitReason, Warning, YieldReason, apply, flow::FlowEdge,
};
use landfall_store::{Autopilot, EntryBatch};

/// A small generator: the same seed gives the same history on every machine.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// All that a history has made so far.
pub struct History {
    pub rng: Rng,
    pub tasks: BTreeMap<TaskId, Arc<Task>>,
    pub entries: Vec<JournalEntry>,
    pub autopilot: Autopilot,
    formed: u32,
    flows: Vec<Arc<Flow>>,
    at: i64,
    tasks_max: u64,
}

impl History {
    pub fn new(seed: u64, tasks_max: u64) -> Self {
        let flows = ["loop", "other"].map(|name| Arc::new(flow(name)));
        Self {
            rng: Rng::new(seed),
            tasks: BTreeMap::new(),
            entries: Vec::new(),
            autopilot: Autopilot::default(),
            formed: 0,
            flows: flows.to_vec(),
            at: 1_700_000_000_000,
            tasks_max,
        }
    }

    /// A batch of one to six facts.
    pub fn batch(&mut self) -> EntryBatch {
        let mut batch = EntryBatch::default();
        let mut touched = BTreeMap::new();
        for _ in 0..=self.rng.below(6) {
            // Sometimes back in time: clocks do that, and order must not come from them.
            self.at += self.rng.below(2_000) as i64 - 100;
            let fact = self.fact();
            let entry = JournalEntry { at: Timestamp(self.at), fact };
            self.autopilot.take(&entry).expect("drawn only where it can follow");
            if let Fact::Task(id, _) = &entry.fact {
                touched.insert(*id, ());
                self.autopilot.queue.update_task(&self.tasks[id]);
            }
            batch.entries.push(entry);
        }
        self.entries.extend(batch.entries.iter().cloned());
        batch.tasks = touched.keys().map(|id| self.tasks[id].clone()).collect();
        batch
    }

    fn fact(&mut self) -> Fact {
        loop {
            if self.rng.chance(8) {
                return Fact::Engine(self.engine_event());
            }
            if self.rng.chance(12) {
                return Fact::Engine(self.autopilot_event());
            }
            let new =
                self.tasks.is_empty() || (self.tasks.len() as u64) < self.tasks_max && self.rng.chance(15);
            let id = match new {
                true => TaskId(self.tasks.len() as u32 + 1),
                false => TaskId(self.rng.below(self.tasks.len() as u64) as u32 + 1),
            };
            let before = self.tasks.get(&id).map(|task| Task::clone(task));
            let event =
                if new { Event::Added { spec: self.spec(id) } } else { self.event(&self.tasks[&id].clone()) };
            if let Ok(task) = apply(before, id, Timestamp(self.at), &event) {
                self.tasks.insert(id, Arc::new(task));
                return Fact::Task(id, event);
            }
        }
    }

    fn event(&mut self, task: &Task) -> Event {
        let attempt = task.attempt;
        let step = task.step().cloned().unwrap_or_else(|| StepName::new("work"));
        let iteration = match &task.state {
            landfall_model::TaskState::Active {
                doing: landfall_model::AttemptPhase::Running { iteration, .. },
                ..
            } => *iteration,
            _ => task.counters.iterations + 1,
        };
        match self.rng.below(35) {
            0 => Event::Edited { spec: self.spec(task.id) },
            1 => Event::Offered { head: self.commit() },
            2 => Event::Bound {
                flow: self.rng.one(&self.flows.clone()),
                limits: TaskLimits::default(),
                driving: AgentAssignment::default(),
            },
            3..=5 => {
                let opening = self.rng.one(&[
                    AttemptStart::Workspace,
                    AttemptStart::FreshWorkspace,
                    AttemptStart::Check,
                    AttemptStart::Land,
                    AttemptStart::Queue,
                    AttemptStart::Queue,
                    AttemptStart::Queue,
                    AttemptStart::Queue,
                    AttemptStart::Report,
                ]);
                let step = self.rng.one(&["work", "verify", "land", "report"].map(StepName::new));
                Event::Entered { attempt: attempt.next(), step, run: RunId(1), opening }
            }
            6 => Event::WorkspaceMade { attempt, base: self.commit() },
            7 | 8 => Event::IterationBegan { attempt, iteration, talk: SessionStart::New },
            9 | 10 => Event::IterationEnded {
                attempt,
                iteration,
                exit: self.rng.one(&[AgentExit::Code(0), AgentExit::Lost, AgentExit::Signal(9)]),
                verdict: self.rng.one(&[
                    Verdict::Complete,
                    Verdict::Continue,
                    Verdict::Lost,
                    Verdict::Quota { until: None },
                ]),
                took_ms: self.rng.below(10_000),
                usage: AgentUsage {
                    tokens_in: self.rng.below(9_999),
                    tokens_out: 7,
                    micro_usd: self.rng.below(99),
                    ..AgentUsage::default()
                },
                head: self.rng.chance(50).then(|| self.commit()),
                traces: AgentRunTraces::default(),
            },
            11 => match self.rng.below(5) {
                0 => Event::Warned(Warning::Stuck { iterations: 3 }),
                1 => Event::Messaged { about: None, text: "not \"so\"\n".to_owned() },
                2 => Event::Held { reason: "lunch".to_owned() },
                3 => Event::Released,
                _ => {
                    let limits =
                        TaskLimitOverrides { iterations_max: Some(9), ..TaskLimitOverrides::default() };
                    Event::LimitsSet { limits }
                }
            },
            12 => Event::Collected { attempt, head: self.commit(), leftovers: false },
            13 => Event::Verified { attempt, report: self.report(), evidence: None },
            14 => Event::Conflicted { attempt, base: self.commit(), paths: vec!["a b".to_owned()] },
            15 => Event::BaseMoved { attempt, to: self.commit() },
            16 => {
                let to = self.rng.one(&[
                    EdgeTarget::Step(StepName::new("land")),
                    EdgeTarget::End,
                    EdgeTarget::Stop,
                ]);
                Event::Left { attempt, step, result: StepResult::Done, to, feedback: None }
            }
            17 => Event::Yielded { attempt, why: YieldReason::Crashed, feedback: Some(feedback()) },
            18 => {
                let wait = match self.rng.below(5) {
                    0 => WaitReason::Question { text: "which \"one\"?\n".to_owned() },
                    1 => WaitReason::Quota { until: Timestamp(self.at + 5_000), guessed: false },
                    2 => WaitReason::GateBroken { command: "tests".to_owned(), detail: "127".to_owned() },
                    3 => WaitReason::Conflict {
                        base: self.commit(),
                        files: vec!["a b".to_owned()],
                        until: Timestamp(self.at + 5_000),
                        overdue: self.rng.one(&ConflictTimeoutAction::ALL),
                    },
                    _ => WaitReason::Pause,
                };
                Event::Waited { wait, then: step }
            }
            19 => Event::Resumed { feedback: None },
            20 => {
                let concern = ChangeConcern { code: ConcernCode::FewerTests, detail: "9 of 10".to_owned() };
                Event::ReviewWanted { concerns: vec![concern], then: step }
            }
            21 => Event::Reviewed { approved: self.rng.chance(50), note: "seen".to_owned() },
            22 => Event::Landed {
                attempt,
                commit: self.commit(),
                base_before: self.commit(),
                tree: Tree::new("7e"),
                proof: "same".to_owned(),
            },
            23 => Event::Reported { attempt, report: Digest::new("11"), certificate: None },
            24 => Event::StopAsked { stop: StopRequest::Cancel { reason: "enough".to_owned() } },
            25 => {
                let kind = self.rng.one(&EndKind::ALL);
                Event::Ended(Ending {
                    kind,
                    code: self.rng.one(&EndCode::ALL),
                    detail: "so it is".to_owned(),
                })
            }
            26 => Event::LandingBegan { attempt, batch: BatchId(1), report: self.report() },
            27 => Event::Requeued { attempt, unsure: self.rng.chance(50) },
            28 => Event::Ejected { attempt, batch: BatchId(1), report: self.report() },
            29 => Event::SentBack { to: self.commit() },
            30 => Event::ReviewOwed,
            31 => Event::Signed { decision: self.rng.one(&ReviewDecision::ALL), note: "seen".to_owned() },
            32 => Event::Replied { text: "It is checked by the caller.".to_owned() },
            33 => {
                let finding = Finding {
                    id: "F1".to_owned(),
                    severity: self.rng.one(&FindingSeverity::ALL),
                    title: "It trusts what it should check".to_owned(),
                    detail: String::new(),
                    place: "src/lib.rs:7".to_owned(),
                    resolved: self.rng.chance(50),
                };
                let findings = self.rng.chance(80).then(|| vec![finding]);
                Event::Opinion { attempt, head: Some(self.commit()), findings }
            }
            _ => Event::Retried { fresh: self.rng.chance(50), feedback: Some(feedback()) },
        }
    }

    fn engine_event(&mut self) -> EngineEvent {
        let run = RunId(self.rng.below(5) as u32 + 1);
        match self.rng.below(7) {
            0 => EngineEvent::Started { version: "0.1.0".to_owned() },
            1 => EngineEvent::RunStarted { run, slots: 3, only: Vec::new() },
            2 => EngineEvent::RunEnded {
                run,
                why: self.rng.one(&[
                    RunEnd::Drained,
                    RunEnd::NothingLeft,
                    RunEnd::Lost,
                    RunEnd::Paused,
                    RunEnd::Goal,
                    RunEnd::OneDone,
                ]),
            },
            3 => EngineEvent::BaseMoved { from: None, to: self.commit(), by: BaseMover::Person },
            4 => EngineEvent::Published { commit: self.commit(), how: "push".to_owned() },
            5 => EngineEvent::PublishHeld { commit: self.commit(), reason: "dirty".to_owned() },
            _ => EngineEvent::Measured { report: self.report() },
        }
    }

    fn autopilot_event(&mut self) -> EngineEvent {
        match self.rng.below(10) {
            0..=5 => EngineEvent::Queue(self.queue_event()),
            6 => EngineEvent::Pilot(match self.rng.below(5) {
                0 => PilotEvent::ModeSet { mode: self.rng.one(&PilotMode::ALL) },
                1 => PilotEvent::Assigned { task: TaskId(1) },
                2 => PilotEvent::Settled,
                3 => PilotEvent::Paused { why: self.rng.one(&PauseReason::ALL), reason: "so".to_owned() },
                _ => PilotEvent::Resumed,
            }),
            7 | 8 => EngineEvent::Sprint(self.sprint_event()),
            _ => {
                let name = format!("cp-{}", self.rng.below(9));
                EngineEvent::Checkpoint(match self.rng.chance(70) {
                    true => CheckpointEvent::Made {
                        name,
                        commit: self.commit(),
                        why: self.rng.one(&CheckpointReason::ALL),
                    },
                    false => CheckpointEvent::Dropped { name },
                })
            }
        }
    }

    fn sprint_event(&mut self) -> SprintEvent {
        let why = self.rng.one(&SprintEnd::ALL);
        match self.rng.below(6) {
            // Now and then while another is open, as after a crash.
            0 | 1 if self.autopilot.sprints.open().is_none() || self.rng.chance(20) => SprintEvent::Started {
                sprint: self.autopilot.sprints.next_id(),
                plan: SprintSpec::new(SprintEndCondition::Count(3)),
                ready: 4,
            },
            0 | 1 => SprintEvent::Resumed,
            2 | 3 => SprintEvent::Paused { reason: "lunch".to_owned() },
            4 => SprintEvent::Completing { why },
            _ => SprintEvent::Ended { why },
        }
    }

    fn queue_event(&mut self) -> QueueEvent {
        let open = self.autopilot.queue.batches().to_vec();
        match self.rng.below(10) {
            0 => {
                let (why, until) = (self.rng.one(&HoldReason::ALL), Some(Timestamp(self.at)));
                return QueueEvent::Held { why, reason: "so".to_owned(), until };
            }
            1 => return QueueEvent::Resumed,
            _ => {}
        }
        if open.is_empty() || open.len() < 3 && self.rng.chance(25) {
            self.formed += 1;
            let member = |rng: &mut Rng| TaskId(rng.below(30) as u32 + 1);
            let members = (0..=self.rng.below(3)).map(|_| BatchMember {
                task: member(&mut self.rng),
                attempt: landfall_model::Attempt(1),
                head: Commit::new(&format!("{:040x}", self.rng.below(1 << 40))),
            });
            let members = members.collect();
            return QueueEvent::Formed {
                batch: BatchId(self.formed),
                on: open.last().map(|it| it.id),
                members,
            };
        }
        let it = self.rng.one(&open);
        let (batch, front) = (it.id, open[0].id == it.id);
        match it.doing {
            BatchDoing::Building => {
                let mut members = it.members;
                let crowded = members.split_off(members.len() - self.rng.below(2) as usize);
                let prefix = |_: &BatchMember| BatchPrefix { commit: self.commit(), tree: Tree::new("7e") };
                let prefixes = members.iter().map(prefix).collect();
                let crowded = crowded.into_iter().map(|member| member.task).collect();
                QueueEvent::Built { batch, base: self.commit(), members, prefixes, crowded }
            }
            BatchDoing::Resting if front && it.green > 0 && self.rng.chance(60) => {
                QueueEvent::LandingBegan { batch, count: self.rng.below(it.green as u64) as usize + 1 }
            }
            BatchDoing::Resting if !it.prefixes.is_empty() && self.rng.chance(70) => {
                let count = self.rng.below(it.prefixes.len() as u64) as usize + 1;
                QueueEvent::CheckBegan { batch, count }
            }
            BatchDoing::Resting => {
                QueueEvent::Over { batch, how: BatchEnd::Dropped { reason: "it is red".to_owned() } }
            }
            BatchDoing::Checking(count) => QueueEvent::Checked { batch, count, report: self.report() },
            BatchDoing::Landing(count) => {
                QueueEvent::Over { batch, how: BatchEnd::Landed { count, commit: self.commit() } }
            }
        }
    }

    fn spec(&mut self, id: TaskId) -> TaskSpec {
        let mut spec =
            TaskSpec::new(&format!("task {} of {id}: „ü“", self.rng.below(1_000))).expect("a title");
        spec.priority = self.rng.below(10) as u8;
        spec.draft = self.rng.chance(10);
        spec.tags = (0..self.rng.below(3))
            .map(|_| self.rng.one(&["next", "later", "critical"]).parse().expect("a tag"))
            .collect();
        // Needs may name tasks that are not there yet.
        let reach = self.tasks.len() as u64 + 3;
        spec.needs = (0..self.rng.below(4))
            .map(|_| TaskId(self.rng.below(reach) as u32 + 1))
            .filter(|need| *need != id)
            .collect();
        spec.parent = self.rng.chance(20).then_some(TaskId(1));
        spec.touches = (0..self.rng.below(3))
            .map(|_| self.rng.one(&["src/a.rs", "web/", "docs/**/*.md"]).parse().expect("a path"))
            .collect();
        spec.size = self.rng.chance(50).then_some(landfall_model::TaskSize::M);
        spec
    }

    fn report(&mut self) -> GateReport {
        let outcome = self.rng.one(&CheckOutcome::ALL);
        let command = CommandResult {
            name: "tests".to_owned(),
            command: "cargo test".to_owned(),
            required: true,
            outcome,
            exit: Some(0),
            took_ms: 5,
            limit_ms: 600_000,
            tests: Some(17),
            excerpt: "ok\n".repeat(self.rng.below(20) as usize),
            caps: None,
            denied: Vec::new(),
            copied_from_base: false,
        };
        GateReport {
            base: self.commit(),
            head: self.commit(),
            commit: self.commit(),
            tree: Tree::new(&format!("{:040x}", self.rng.below(30))),
            config: Digest::new("c0"),
            environment: Digest::new("e0"),
            commands: vec![command],
            took_ms: 9,
            reused: false,
            required: true,
            sandbox: None,
        }
    }

    fn commit(&mut self) -> Commit {
        Commit::new(&format!("{:040x}", self.rng.below(1 << 40)))
    }
}

fn feedback() -> Feedback {
    Feedback { about: "verification".to_owned(), text: "a test failed".to_owned() }
}

pub fn flow(name: &str) -> Flow {
    let step = |name: &str, kind, on| FlowStep {
        name: StepName::new(name),
        phase: format!("phase {name}"),
        before: None,
        agent: None,
        kind,
        on,
    };
    let edge = |result, to: &str| FlowEdge { result, to: EdgeTarget::Step(StepName::new(to)), max: Some(3) };
    Flow {
        name: name.to_owned(),
        about: "for tests".to_owned(),
        entry: StepName::new("work"),
        entries: BTreeMap::new(),
        commands: BTreeMap::new(),
        style: None,
        steps: vec![
            step(
                "work",
                StepKind::Agent { prompt: "work".to_owned(), output: Vec::new(), iterate: true, every: 0 },
                vec![edge(StepResult::Done, "verify")],
            ),
            step(
                "verify",
                StepKind::Verify,
                vec![edge(StepResult::Pass, "land"), edge(StepResult::Fail, "work")],
            ),
            step("land", StepKind::Land, vec![edge(StepResult::Landed, "report")]),
            step("report", StepKind::Report, Vec::new()),
        ],
    }
}

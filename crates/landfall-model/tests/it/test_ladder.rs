//! The ladder of recoveries in a task that follows an issue: one rung after another, and what each leads to.

use std::collections::BTreeSet;
use std::sync::Arc;

use landfall_model::flow::{FlowEdge, FlowStep, TrackerOperation};
use landfall_model::issue::IssueOptions;
use landfall_model::issue::ReconcilePoint;
use landfall_model::recovery::{
    AgentAvailability, Pattern, PatternCondition, PatternSample, PlanAction, RecoveryAction, RecoveryContext,
    RecoveryEvent, RecoveryOp, RecoveryOutcome, RecoveryStep, RecoveryTier, recovery_after_run,
};
use landfall_model::review::ReviewOpinion;
use landfall_model::{
    AgentAssignment, AgentDriveStyle, AgentExit, AgentRunEvidence, AgentRunTraces, AgentUsage, Commit,
    ControlSignal, EdgeTarget, Effect, EndCode, EndedRun, Ending, Event, ExchangeResult, Flow, IntakeState,
    News, POLL_MS, RecoveryResult, RunId, Signal, StepKind, StepName, StepResult, Task, TaskId, TaskInput,
    TaskLimits, TaskSpec, TaskState, Timestamp, WaitReason, decide_and_apply, expected_task_effects,
};

fn edge(result: StepResult, to: &str) -> FlowEdge {
    let to = if to == "end" { EdgeTarget::End } else { EdgeTarget::Step(StepName::new(to)) };
    FlowEdge { result, to, max: None }
}

fn flow() -> Arc<Flow> {
    let agent = |iterate, output: &[&str]| StepKind::Agent {
        prompt: "x".to_owned(),
        iterate,
        every: 0,
        output: output.iter().map(|it| (*it).to_owned()).collect(),
    };
    let steps = [
        ("spec", "spec", agent(false, &["spec.md"]), vec![edge(StepResult::Done, "code")]),
        ("code", "code", agent(true, &[]), vec![edge(StepResult::Done, "verify")]),
        (
            "verify",
            "code",
            StepKind::Verify,
            vec![edge(StepResult::Pass, "offer"), edge(StepResult::Fail, "code")],
        ),
        (
            "offer",
            "code",
            StepKind::Tracker { act: TrackerOperation::Offer },
            vec![edge(StepResult::Pr, "review"), edge(StepResult::Patch, "review")],
        ),
        (
            "review",
            "review",
            StepKind::Review,
            vec![edge(StepResult::Approved, "report"), edge(StepResult::Changes, "code")],
        ),
        ("report", "done", StepKind::Report, vec![edge(StepResult::Done, "end")]),
    ];
    let steps = steps.into_iter().map(|(name, phase, kind, on)| FlowStep {
        name: StepName::new(name),
        phase: phase.to_owned(),
        before: None,
        agent: None,
        on,
        kind,
    });
    Arc::new(Flow {
        name: "issue".to_owned(),
        about: String::new(),
        entry: StepName::new("code"),
        entries: Default::default(),
        commands: Default::default(),
        style: None,
        steps: steps.collect(),
    })
}

fn pattern(name: &str, all: Vec<PatternCondition>, action: RecoveryAction, limit: u32) -> Pattern {
    let sample = PatternSample {
        phase: ReconcilePoint::CodePatch,
        log: String::new(),
        exit: None,
        took_s: 1,
        matches: None,
        facts: Default::default(),
    };
    let about = "a known failure".to_owned();
    Pattern { name: name.to_owned(), about, phases: Vec::new(), all, any: Vec::new(), action, limit, sample }
}

fn catalogue() -> Vec<Pattern> {
    vec![
        pattern(
            "early-kill",
            vec![PatternCondition::Exit(vec![137, 143]), PatternCondition::UnderSeconds(300)],
            RecoveryAction::Retry,
            1,
        ),
        pattern(
            "unsigned",
            vec![PatternCondition::Says("missing sign-off".to_owned())],
            RecoveryAction::SignOff,
            1,
        ),
        pattern("slow", vec![PatternCondition::Says("later".to_owned())], RecoveryAction::RetryAfter(60), 1),
        pattern(
            "silent-no-op",
            vec![PatternCondition::Exit(vec![0]), PatternCondition::Matches(false)],
            RecoveryAction::Retry,
            1,
        ),
    ]
}

struct Walk {
    task: Task,
    at: i64,
    effects: Vec<Effect>,
    events: Vec<Event>,
}

impl Walk {
    /// A task of an issue at `step`, whose agent is about to run if the step has one.
    fn at(step_name: &str) -> Self {
        let mut spec = TaskSpec::new("Fix the door").expect("a title");
        spec.source = "local:#7".to_owned();
        let task = Task::from_spec(TaskId(1), spec, Timestamp(0));
        let mut walk = Self { task, at: 0, effects: Vec::new(), events: Vec::new() };
        walk.hears(News::Wish(IssueOptions::default()));
        walk.task.state = TaskState::Ready { next: Some(StepName::new(step_name)), since: Timestamp(0) };
        walk.goes_on();
        walk
    }

    fn hears(&mut self, news: News) {
        self.at += 1_000;
        let input = TaskInput {
            at: Timestamp(self.at),
            drive: IntakeState::Running,
            spent: None,
            attended: false,
            poll_ms: POLL_MS,
            news,
        };
        let (task, decision) =
            decide_and_apply(&self.task, &input).unwrap_or_else(|refusal| panic!("{refusal}"));
        // After any cut of the journal, something can be gone on with.
        let mut cut = self.task.clone();
        for event in &decision.events {
            cut = landfall_model::apply(Some(cut), TaskId(1), Timestamp(self.at), event).expect("it follows");
        }
        assert_eq!(cut.recoveries, task.recoveries);
        (self.task, self.effects, self.events) = (task, decision.effects, decision.events);
    }

    /// Waits what there is to wait for, and begins what is next.
    fn goes_on(&mut self) {
        if let TaskState::Waiting { wait: WaitReason::Backoff { until, .. }, .. } = self.task.state.clone() {
            self.at = until.0;
            self.hears(News::Due);
        }
        let driving = AgentAssignment {
            profile: "default".to_owned(),
            account: "a".to_owned(),
            style: AgentDriveStyle::Fresh,
        };
        let limits = TaskLimits::default();
        self.hears(News::Granted { run: RunId(1), flow: flow(), limits, driving });
        if let [Effect::Prepare { attempt, .. }] = self.effects[..] {
            self.hears(News::WorkspaceReady { attempt, base: Commit::new("base") });
        }
        assert_eq!(
            expected_task_effects(&self.task),
            self.effects,
            "after a crash the same is ordered again"
        );
    }

    /// Its agent ends like this; what was made of it, and where the task is then.
    fn ends(&mut self, exit: AgentExit, log: &str, change: impl Fn(&mut EndedRun)) -> String {
        let [Effect::Spawn { attempt, iteration, .. }] = self.effects[..] else {
            panic!("no agent runs: {:?}", self.effects)
        };
        let head = self.task.seen_head.clone();
        let evidence =
            AgentRunEvidence { head_before: head.clone(), head_after: head, ..AgentRunEvidence::default() };
        let mut run = EndedRun {
            attempt,
            iteration,
            exit,
            seen: Vec::new(),
            evidence,
            took_ms: 10_000,
            usage: AgentUsage::default(),
            traces: AgentRunTraces::default(),
            climbed: None,
        };
        change(&mut run);
        run.climbed = recovery_after_run(&catalogue(), AgentAvailability::Free, &self.task, &run, log, false);
        self.hears(News::AgentEnded(run));
        self.stands()
    }

    fn says_done(&mut self) -> String {
        self.ends(AgentExit::Code(0), "", |run| run.seen = vec![Signal::Said(ControlSignal::Complete)])
    }

    fn answers(&mut self, recovered: RecoveryResult) -> String {
        assert_eq!(
            expected_task_effects(&self.task),
            self.effects,
            "after a crash the same is ordered again"
        );
        self.hears(News::Recovered { attempt: self.task.attempt, recovered });
        self.stands()
    }

    fn stands(&self) -> String {
        let facts: Vec<&str> =
            self.events.iter().filter(|event| matches!(event, Event::Recovery(_))).map(Event::name).collect();
        let place = match &self.task.state {
            TaskState::Ready { next, .. } => {
                format!("ready for {}", next.as_ref().map_or("?", StepName::as_str))
            }
            TaskState::Waiting { wait, then, .. } => format!("waits for {} before {then}", wait.word()),
            TaskState::Ended(Ending { kind, code, .. }) => format!("{kind:?} {}", code.word()),
            other => other.name(),
        };
        format!("{place}; {}", facts.join(", "))
    }

    fn detail(&self) -> &str {
        match &self.task.state {
            TaskState::Ended(ending) => &ending.detail,
            other => panic!("it goes on: {other:?}"),
        }
    }
}

fn diagnosed(action: Option<PlanAction>, ops: Vec<RecoveryOp>) -> RecoveryResult {
    RecoveryResult::Diagnosed {
        action,
        rationale: "line 7 says so".to_owned(),
        ops,
        profile: "default".to_owned(),
        usage: AgentUsage::default(),
        took_ms: 5,
    }
}

#[test]
fn nothing_done_is_tried_once_more_then_looked_at_then_left_to_a_person() {
    let mut walk = Walk::at("code");
    assert_eq!(walk.says_done(), "ready for code; recovery-tried");
    assert!(walk.task.feedback.iter().any(|it| it.text.contains("no commit")), "it is told");
    walk.goes_on();
    assert_eq!(walk.says_done(), "ready for code; recovery-ended, recovery-tried");
    let tiers: Vec<RecoveryTier> = walk.task.recoveries.tried.iter().map(|it| it.tier).collect();
    assert_eq!(tiers, [RecoveryTier::Pattern, RecoveryTier::Agent]);
    walk.goes_on();
    assert!(matches!(walk.effects[..], [Effect::Recover { .. }]), "{:?}", walk.effects);
    assert_eq!(
        walk.answers(diagnosed(Some(PlanAction::Retry), Vec::new())),
        "ready for code; recovery-diagnosed, recovery-ended"
    );
    walk.goes_on();
    assert_eq!(walk.says_done(), "Blocked recovery_failed; recovery-ended");
    assert_eq!(
        walk.detail(),
        "its agent committed nothing, 3 times; step `code` failed by `silent-no-op`: what its pattern says was tried, and an agent has looked already"
    );
    // A person takes it up: everything is tried anew.
    walk.hears(News::Retry { fresh: false, note: None });
    walk.task.state = TaskState::Ready { next: Some(StepName::new("code")), since: Timestamp(0) };
    walk.goes_on();
    assert_eq!(walk.says_done(), "ready for code; recovery-tried");
}

#[test]
fn finished_work_counts_whatever_the_exit_code_says() {
    let ends =
        [AgentExit::Code(1), AgentExit::Signal(9), AgentExit::Lost, AgentExit::Silent, AgentExit::Looping];
    for exit in ends {
        let mut walk = Walk::at("code");
        let stands =
            walk.ends(exit.clone(), "boom", |run| run.evidence.head_after = Some(Commit::new("work")));
        assert_eq!(stands, "ready for verify; recovery-tried, recovery-ended", "{exit:?}");
        assert_eq!(walk.task.recoveries.tried[0].tier, RecoveryTier::Reconcile);
        // Sent back and crashed before anything changed: that is not finished.
        walk.task.state = TaskState::Ready { next: Some(StepName::new("code")), since: Timestamp(0) };
        walk.task.head = Some(Commit::new("work"));
        walk.goes_on();
        let stands = walk.ends(AgentExit::Code(3), "boom", |_| {});
        assert_eq!(stands, "ready for code; recovery-tried", "an agent looks");
    }
    let mut walk = Walk::at("spec");
    assert_eq!(walk.ends(AgentExit::Code(1), "", |_| {}), "ready for code; recovery-tried, recovery-ended");
    let mut walk = Walk::at("review");
    let stands =
        walk.ends(AgentExit::Code(1), "", |run| run.evidence.opinion = Some(ReviewOpinion::default()));
    assert_eq!(stands, "ready for report; recovery-tried, recovery-ended");
}

#[test]
fn a_run_that_ends_well_needs_no_ladder() {
    let mut walk = Walk::at("code");
    let committed = |run: &mut EndedRun| {
        run.seen = vec![Signal::Said(ControlSignal::Complete)];
        run.evidence.head_after = Some(Commit::new("work"));
    };
    assert_eq!(walk.ends(AgentExit::Code(0), "", committed), "ready for verify; ");
    // Without a word that ends the work it is simply run again.
    let mut walk = Walk::at("code");
    let on = walk.ends(AgentExit::Code(0), "", |run| run.evidence.head_after = Some(Commit::new("work")));
    assert_eq!(on, "active in `code` (running); ");
    assert_eq!(walk.ends(AgentExit::Code(0), "", |_| {}), "active in `code` (running); ");
    assert_eq!(walk.says_done(), "ready for verify; ", "what an earlier run committed is there");
    assert!(walk.task.recoveries.tried.is_empty());
    // What was written for the work is not the work.
    let mut walk = Walk::at("spec");
    let wrote = |run: &mut EndedRun| run.evidence.head_after = Some(Commit::new("words"));
    walk.ends(AgentExit::Code(0), "", wrote);
    walk.goes_on();
    assert_eq!(walk.says_done(), "ready for code; recovery-tried");
}

#[test]
fn what_was_to_be_written_is_asked_for_again() {
    let mut walk = Walk::at("spec");
    let stands = walk.ends(AgentExit::Code(0), "", |run| run.evidence.missing = vec!["spec.md".to_owned()]);
    assert_eq!(stands, "ready for spec; recovery-tried");
    assert!(walk.task.feedback.iter().any(|it| it.text.contains("spec.md")));
    walk.goes_on();
    assert_eq!(walk.ends(AgentExit::Code(0), "", |_| {}), "ready for code; recovery-ended");
    assert_eq!(walk.task.recoveries.tried[0].outcome, Some((RecoveryOutcome::Success, String::new())));
}

#[test]
fn what_a_step_did_not_leave_is_named_to_whoever_looks_and_at_the_end() {
    let mut walk = Walk::at("spec");
    let nothing = |walk: &mut Walk| {
        walk.ends(AgentExit::Code(0), "all is well\n", |run| {
            run.evidence.missing = vec!["docs/spec/issue-7-door.md".to_owned()];
        })
    };
    nothing(&mut walk);
    walk.goes_on();
    assert_eq!(nothing(&mut walk), "ready for spec; recovery-ended, recovery-tried");
    let told = "all is well\nit did not leave: docs/spec/issue-7-door.md";
    assert!(walk.task.recoveries.tried.iter().all(|it| it.tail == told), "{:?}", walk.task.recoveries);
    walk.goes_on();
    walk.answers(diagnosed(Some(PlanAction::Abort), Vec::new()));
    assert!(
        walk.detail().ends_with("says: line 7 says so; it did not leave: docs/spec/issue-7-door.md"),
        "{}",
        walk.detail()
    );
}

#[test]
fn an_agent_that_could_not_be_started_is_tried_again_within_its_limits() {
    let mut walk = Walk::at("code");
    let exit = AgentExit::NotStarted { detail: "no room".to_owned(), hopeless: false };
    assert_eq!(walk.ends(exit, "", |_| {}), "waits for backoff before code; ");
}

#[test]
fn an_early_kill_is_tried_once_more() {
    let mut walk = Walk::at("code");
    assert_eq!(walk.ends(AgentExit::Signal(9), "", |_| {}), "waits for backoff before code; recovery-tried");
    walk.goes_on();
    assert_eq!(walk.ends(AgentExit::Signal(9), "", |_| {}), "ready for code; recovery-ended, recovery-tried");
    assert_eq!(walk.task.recoveries.tried[1].tier, RecoveryTier::Agent);
    let mut walk = Walk::at("code");
    walk.ends(AgentExit::Code(1), "come back later", |_| {});
    let TaskState::Waiting { wait: WaitReason::Backoff { until, .. }, .. } = &walk.task.state else {
        panic!("it waits")
    };
    assert!(until.0 >= walk.at + 60_000, "as long as the pattern says");
}

#[test]
fn what_a_plan_says_is_done_and_then_the_step_is_tried_again() {
    let mut walk = Walk::at("code");
    walk.ends(AgentExit::Code(3), "who knows", |_| {});
    walk.goes_on();
    let plan = diagnosed(Some(PlanAction::Recover), vec![RecoveryOp::CommitLeftovers]);
    assert_eq!(walk.answers(plan), "active in `code` (recovering); recovery-diagnosed");
    let done =
        RecoveryResult::Done { head: Some(Commit::new("mended")), lines: vec!["committed".to_owned()] };
    assert_eq!(walk.answers(done), "ready for code; recovery-ended");
    assert_eq!(walk.task.restart, Some(Commit::new("mended")), "it goes on from there");
    walk.goes_on();
    assert!(matches!(walk.effects[..], [Effect::Spawn { .. }]));
    // Once per step: then a person.
    assert_eq!(walk.ends(AgentExit::Code(3), "who knows", |_| {}), "Blocked recovery_failed; recovery-ended");
    assert!(walk.detail().contains("`unknown/code-patch/exit-3`"), "{}", walk.detail());
}

#[test]
fn a_plan_that_is_refused_or_gives_up_ends_with_a_person() {
    for (said, words) in [
        (
            diagnosed(None, Vec::new()),
            "the agent that was asked had no usable answer (the plan was refused: line 7 says so)",
        ),
        (diagnosed(Some(PlanAction::Abort), Vec::new()), "the recovery agent says: line 7 says so"),
        (RecoveryResult::Failed { why: "nobody answered".to_owned() }, "nobody answered"),
    ] {
        let mut walk = Walk::at("code");
        walk.ends(AgentExit::Code(3), "who knows", |_| {});
        walk.goes_on();
        let stands = walk.answers(said);
        assert!(stands.starts_with("Blocked recovery_failed; "), "{stands}");
        assert_eq!(walk.detail(), format!("step `code` failed by `unknown/code-patch/exit-3`: {words}"));
        let last = walk.task.recoveries.tried.last().expect("it was tried");
        assert!(matches!(last.outcome, Some((RecoveryOutcome::Failed, _))), "{last:?}");
    }
}

#[test]
fn an_offer_that_is_refused_is_mended_by_operations_and_verified_again() {
    let climbed = |climb| RecoveryContext {
        symptom: "unsigned".to_owned(),
        exit: Some(1),
        tail: "missing sign-off".to_owned(),
        took_ms: 0,
        known: BTreeSet::new(),
        climb,
    };
    let mut walk = Walk::at("offer");
    walk.task.head = Some(Commit::new("work"));
    let exchanged = ExchangeResult::Stuck(climbed(RecoveryStep::Act(RecoveryAction::SignOff)));
    walk.hears(News::Exchanged { attempt: walk.task.attempt, exchanged });
    assert_eq!(walk.stands(), "waits for backoff before offer; recovery-tried");
    walk.goes_on();
    assert!(matches!(walk.effects[..], [Effect::Recover { .. }]), "{:?}", walk.effects);
    let done = RecoveryResult::Done { head: Some(Commit::new("signed")), lines: Vec::new() };
    assert_eq!(walk.answers(done), "ready for verify; recovery-ended");
    assert_eq!((&walk.task.head, &walk.task.workspace), (&Some(Commit::new("signed")), &None));
    // What does not work out is looked at by an agent.
    let mut walk = Walk::at("offer");
    let exchanged = ExchangeResult::Stuck(climbed(RecoveryStep::Act(RecoveryAction::SignOff)));
    walk.hears(News::Exchanged { attempt: walk.task.attempt, exchanged });
    walk.goes_on();
    let failed = RecoveryResult::Failed { why: "`push-branch` (step 2): no".to_owned() };
    assert_eq!(walk.answers(failed), "ready for offer; recovery-ended, recovery-tried");
    assert_eq!(walk.task.recoveries.tried[1].tier, RecoveryTier::Agent);
}

#[test]
fn a_stop_waits_for_what_is_being_done_and_loses_nothing_of_it() {
    let mut walk = Walk::at("code");
    walk.ends(AgentExit::Code(3), "who knows", |_| {});
    walk.goes_on();
    walk.hears(News::StopTask);
    walk.effects = expected_task_effects(&walk.task);
    let plan = diagnosed(Some(PlanAction::Recover), vec![RecoveryOp::CommitLeftovers]);
    assert_eq!(walk.answers(plan), "waits for pause before code; recovery-diagnosed");
    walk.hears(News::Retry { fresh: false, note: None });
    walk.goes_on();
    assert!(matches!(walk.effects[..], [Effect::Recover { .. }]), "the plan is gone on with");
}

#[test]
fn a_task_without_an_issue_is_tried_again_as_ever() {
    let mut walk = Walk::at("code");
    walk.task.issue = None;
    let stands = walk.ends(AgentExit::Code(1), "", |_| {});
    assert_eq!(stands, "waits for backoff before code; ");
    let tried = RecoveryEvent::Proposed { symptom: String::new() };
    assert_eq!(tried.name(), "recovery-proposed");
    assert_eq!(EndCode::RecoveryFailed.word(), "recovery_failed");
}

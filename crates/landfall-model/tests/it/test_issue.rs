//! A task that follows an issue, walked through its flow: which news leads where.

use std::sync::Arc;

use landfall_model::acceptance::{VerifyOutcome, VerifyResult};
use landfall_model::flow::{FlowEdge, FlowStep, TrackerOperation};
use landfall_model::issue::{
    AcceptanceOutcome, CiStatus, IssueOptions, IssuePhase, IssueResolution, IssueRoute, IssueSnapshot,
    Pipeline, PullRequestRef, PullRequestSnapshot, PullRequestState, ReconcilePoint, ReviewDepth, SubIssue,
    SubIssueEnd, SubIssueOutcome, SubIssuesState, check_completion, check_precondition,
    earlier_outcome_feedback, goes_on_with_whole, is_of_round, is_taken_on_by, stops_at, sub_issues_state,
};
use landfall_model::recovery::{
    Known, Pattern, PatternCondition, PatternSample, RecoveryAction, RecoveryOutcome,
    recovery_after_acceptance, recovery_after_checks,
};
use landfall_model::{
    AgentAssignment, AgentDriveStyle, Commit, EdgeTarget, Effect, EndCode, EndKind, Ending, Event,
    ExchangeResult, Flow, IntakeState, News, POLL_MS, RecoveryResult, RunId, StepKind, StepName, Task,
    TaskId, TaskInput, TaskLimits, TaskSize, TaskSpec, TaskState, Timestamp, WaitReason, decide_and_apply,
    expected_task_effects,
};

/// The part of the flow that talks to a tracker. What lies between is a report, which needs nothing.
fn flow() -> Arc<Flow> {
    let acts = TrackerOperation::ALL.into_iter().map(|act| (act.word(), StepKind::Tracker { act }));
    let kinds = acts.chain([("split", StepKind::Split), ("report", StepKind::Report)]);
    let steps = kinds.map(|(name, kind)| {
        let on = kind.must_route().iter().chain(kind.may_route()).map(|result| FlowEdge {
            result: *result,
            to: match (name, result.word()) {
                ("observe", "split") => EdgeTarget::Step(StepName::new("split")),
                ("split", _) => EdgeTarget::Step(StepName::new("gather")),
                ("gather", "split") => EdgeTarget::Step(StepName::new("split")),
                ("observe", "landed") | ("gather", _) => EdgeTarget::Step(StepName::new("accept")),
                ("report", _) => EdgeTarget::End,
                _ => EdgeTarget::Step(StepName::new("report")),
            },
            max: None,
        });
        FlowStep {
            name: StepName::new(name),
            phase: if name == "checks" { "review".to_owned() } else { name.to_owned() },
            before: None,
            agent: None,
            on: on.collect(),
            kind,
        }
    });
    Arc::new(Flow {
        name: "issue".to_owned(),
        about: String::new(),
        entry: StepName::new("observe"),
        entries: Default::default(),
        commands: Default::default(),
        style: None,
        steps: steps.collect(),
    })
}

struct Walk {
    task: Task,
    at: i64,
    effects: Vec<Effect>,
    /// How the last step that was left ended.
    result: &'static str,
    poll_ms: u64,
}

impl Walk {
    fn new(wishes: IssueOptions) -> Self {
        let mut spec = TaskSpec::new("Fix the door").expect("a title");
        spec.source = "local:#7".to_owned();
        let mut walk = Self {
            task: Task::from_spec(TaskId(1), spec, Timestamp(0)),
            at: 0,
            effects: Vec::new(),
            result: "",
            poll_ms: POLL_MS,
        };
        walk.hears(News::Wish(wishes));
        walk.granted();
        walk
    }

    /// The same, standing at `act`.
    fn at(act: TrackerOperation, seen: IssueSnapshot) -> Self {
        let mut walk = Self::new(IssueOptions::default());
        walk.answers(ExchangeResult::Seen { seen: Box::new(seen), head: None });
        walk.task.state =
            TaskState::Ready { next: Some(StepName::new(act.word())), since: Timestamp(walk.at) };
        walk.granted();
        walk
    }

    fn hears(&mut self, news: News) {
        self.at += 1_000;
        let input = TaskInput {
            at: Timestamp(self.at),
            drive: IntakeState::Running,
            spent: None,
            attended: false,
            poll_ms: self.poll_ms,
            news,
        };
        let (task, decision) =
            decide_and_apply(&self.task, &input).unwrap_or_else(|refusal| panic!("{refusal}"));
        let left = decision.events.iter().rev().find_map(|event| match event {
            Event::Left { result, .. } => Some(result.word()),
            _ => None,
        });
        self.result = left.unwrap_or(self.result);
        (self.task, self.effects) = (task, decision.effects);
    }

    fn granted(&mut self) {
        let driving = AgentAssignment {
            profile: "default".to_owned(),
            account: "a".to_owned(),
            style: AgentDriveStyle::Fresh,
        };
        let limits = TaskLimits::default();
        self.hears(News::Granted { run: RunId(1), flow: flow(), limits, driving });
    }

    fn answers(&mut self, exchanged: ExchangeResult) {
        assert_eq!(
            expected_task_effects(&self.task),
            self.effects,
            "after a crash the same is ordered again"
        );
        self.hears(News::Exchanged { attempt: self.task.attempt, exchanged });
    }

    fn sees(&mut self, seen: IssueSnapshot) -> String {
        self.answers(ExchangeResult::Seen { seen: Box::new(seen), head: None });
        self.stands()
    }

    /// Where it is, and by which result it got there.
    fn stands(&self) -> String {
        match &self.task.state {
            TaskState::Ready { next, .. } => {
                format!("ready for {} by {}", next.as_ref().map_or("?", StepName::as_str), self.result)
            }
            TaskState::Waiting { wait, .. } => format!("waits for {}", wait.word()),
            TaskState::Ended(ending) => format!("{:?} {}", ending.kind, ending.code.word()),
            other => other.name(),
        }
    }
}

fn seen(phase: Option<IssuePhase>, size: Option<TaskSize>) -> IssueSnapshot {
    IssueSnapshot { number: 7, open: true, phase, triaged: phase.is_some(), size, ..IssueSnapshot::default() }
}

#[test]
fn what_is_seen_leads_to_the_step_that_is_owed() {
    let by = |seen| Walk::new(IssueOptions::default()).sees(seen);
    assert_eq!(by(seen(None, None)), "ready for report by triage");
    assert_eq!(by(seen(Some(IssuePhase::Issue), Some(TaskSize::M))), "ready for report by spec");
    assert_eq!(by(seen(Some(IssuePhase::Issue), Some(TaskSize::XS))), "ready for report by code");
    assert_eq!(by(seen(Some(IssuePhase::Verify), Some(TaskSize::M))), "ready for accept by landed");
    assert_eq!(by(seen(Some(IssuePhase::Issue), Some(TaskSize::XL))), "ready for split by split");
    let closed = IssueSnapshot { open: false, ..seen(Some(IssuePhase::Done), Some(TaskSize::M)) };
    assert_eq!(by(closed), "ready for report by done");
    let blocked =
        IssueSnapshot { blockers: vec!["#3".to_owned()], ..seen(Some(IssuePhase::Issue), Some(TaskSize::M)) };
    assert_eq!(by(blocked), "waits for blocked by issues");
}

#[test]
fn an_accepted_issue_that_could_not_be_closed_is_closed_when_it_is_seen_again() {
    let labelled = || seen(Some(IssuePhase::Done), Some(TaskSize::XS));
    assert_eq!(Walk::new(IssueOptions::default()).sees(labelled()), "ready for report by done");
    let mut walk = Walk::new(IssueOptions::default());
    let pipeline = walk.task.issue.as_mut().expect("it follows one");
    pipeline.accepted = Some(AcceptanceOutcome { items: Vec::new(), outcome: VerifyOutcome::Done });
    assert_eq!(
        walk.sees(labelled()),
        "ready for accept by landed",
        "the way goes on to the step that closes"
    );
}

#[test]
fn the_words_and_the_size_of_an_issue_become_those_of_its_task() {
    let mut walk = Walk::new(IssueOptions { depth: Some(ReviewDepth::Full), ..IssueOptions::default() });
    let words = ("Fix the gate".to_owned(), "It creaks.".to_owned());
    walk.sees(IssueSnapshot { words, ..seen(Some(IssuePhase::Issue), Some(TaskSize::XS)) });
    let Task { spec, issue, .. } = &walk.task;
    assert_eq!(
        (spec.title.as_str(), spec.body.as_str(), spec.size),
        ("Fix the gate", "It creaks.", Some(TaskSize::XS))
    );
    let routed = issue.as_ref().and_then(|issue| issue.routed).expect("it was routed");
    assert_eq!((routed.way, routed.depth), (IssueRoute::Pr, ReviewDepth::Full), "the wishes of a person win");
}

#[test]
fn a_size_that_shrinks_after_the_spec_takes_the_shorter_way() {
    let mut walk = Walk::at(TrackerOperation::Sized, seen(Some(IssuePhase::Spec), Some(TaskSize::L)));
    let before = walk.task.issue.as_ref().and_then(|issue| issue.routed).expect("it was routed");
    walk.sees(seen(Some(IssuePhase::Ready), Some(TaskSize::S)));
    let after = walk.task.issue.as_ref().and_then(|issue| issue.routed).expect("it was routed");
    assert_eq!((before.way, after.way), (IssueRoute::Pr, IssueRoute::Patch));
    assert_eq!(walk.stands(), "ready for report by code");
}

#[test]
fn work_of_a_pull_request_is_taken_up_and_not_done_again() {
    let mut walk = Walk::new(IssueOptions::default());
    let head = Commit::new(&"d".repeat(40));
    let pr = PullRequestSnapshot {
        number: 9,
        url: "u".to_owned(),
        state: PullRequestState::Open,
        head: Some(head.clone()),
        reviewed: false,
    };
    let seen = IssueSnapshot { pr: Some(pr), ..seen(Some(IssuePhase::Review), Some(TaskSize::M)) };
    walk.answers(ExchangeResult::Seen { seen: Box::new(seen), head: Some(head.clone()) });
    assert_eq!(walk.stands(), "ready for report by offered");
    assert_eq!(walk.task.head, Some(head.clone()));
    assert_eq!(walk.task.issue.as_ref().and_then(|issue| issue.pr.as_ref()).map(|pr| pr.number), Some(9));
}

#[test]
fn checks_of_the_forge_are_waited_for_and_judged_by_what_is_new() {
    let by = |ci: CiStatus| {
        let mut walk = Walk::at(TrackerOperation::Checks, seen(Some(IssuePhase::Code), Some(TaskSize::M)));
        walk.answers(ExchangeResult::Checks { ci, climbed: None });
        walk
    };
    let names = || vec!["build".to_owned()];
    assert_eq!(by(CiStatus::Absent).stands(), "ready for report by pass");
    assert_eq!(by(CiStatus::Broken(names())).stands(), "ready for report by pass");
    assert_eq!(by(CiStatus::PreExisting(names())).stands(), "ready for report by pass");
    assert_eq!(by(CiStatus::Broken(names())).task.warnings.len(), 1, "what is not heeded is told");
    assert_eq!(by(CiStatus::Failed(names())).stands(), "ready for report by fail");
    let mut walk = by(CiStatus::Running(names()));
    assert_eq!(walk.stands(), "waits for backoff");
    // It is waited for no longer than twenty minutes: our own checks have passed.
    walk.at += 21 * 60 * 1_000;
    walk.hears(News::Due);
    walk.granted();
    walk.answers(ExchangeResult::Checks { ci: CiStatus::Running(names()), climbed: None });
    assert_eq!(walk.stands(), "ready for report by pass");
}

#[test]
fn a_tracker_is_asked_again_after_the_poll_interval() {
    // The answer, and the longest pause that it may lead to.
    let names = || vec!["build".to_owned()];
    let running = || ExchangeResult::Checks { ci: CiStatus::Running(names()), climbed: None };
    let published = || ExchangeResult::NotYet { what: "it is not published".to_owned() };
    let outage = || ExchangeResult::Trouble { detail: "no answer".to_owned(), until: None, hopeless: false };
    let check = |act: TrackerOperation, answer: ExchangeResult, poll_ms: u64, expected_ms: i64| {
        let mut walk = Walk::at(act, seen(Some(IssuePhase::Code), Some(TaskSize::M)));
        walk.poll_ms = poll_ms;
        walk.answers(answer);
        let TaskState::Waiting { wait: WaitReason::Backoff { until, .. }, .. } = &walk.task.state else {
            panic!("{act:?} does not wait: {:?}", walk.task.state);
        };
        let pause = until.0 - walk.at;
        // Up to a tenth more, so that tasks do not ask all at once.
        assert!((expected_ms..=expected_ms + expected_ms / 10).contains(&pause), "{act:?}: {pause} ms");
    };
    for (poll_ms, checks_ms, rest_ms) in [(POLL_MS, 60_000, 5_000), (7_000, 7_000, 5_000), (200, 200, 200)] {
        check(TrackerOperation::Checks, running(), poll_ms, checks_ms);
        check(TrackerOperation::Merged, published(), poll_ms, rest_ms);
        check(TrackerOperation::Checks, outage(), poll_ms, rest_ms);
    }
}

/// The catalogue, as far as it is about the checks of a forge.
fn about_checks() -> Vec<Pattern> {
    let of = |name: &str, fact: Known, action: RecoveryAction| Pattern {
        name: name.to_owned(),
        about: String::new(),
        phases: Vec::new(),
        all: vec![PatternCondition::Fact(fact)],
        any: Vec::new(),
        action,
        limit: 1,
        sample: PatternSample {
            phase: ReconcilePoint::Review,
            log: String::new(),
            exit: None,
            took_s: 0,
            matches: None,
            facts: Default::default(),
        },
    };
    vec![
        of("waited", Known::WaitedForChecks, RecoveryAction::RerunCi),
        of("before", Known::FailsOnBase, RecoveryAction::Proceed),
        of("failed", Known::ChecksFailed, RecoveryAction::RerunCi),
        of("flaky", Known::ChecksFlaky, RecoveryAction::RerunCi),
        of("broken", Known::ChecksBroken, RecoveryAction::RerunCi),
    ]
}

impl Walk {
    fn checks(&mut self, ci: CiStatus) -> String {
        let climbed = recovery_after_checks(&about_checks(), &self.task, &ci, Timestamp(self.at + 1_000));
        self.answers(ExchangeResult::Checks { ci, climbed });
        self.stands()
    }

    /// The wait is over, and what failed is run again.
    fn runs_again(&mut self) {
        self.at += 2_000;
        self.hears(News::Due);
        self.granted();
        assert!(matches!(self.effects[..], [Effect::Recover { .. }]), "{:?}", self.effects);
        let recovered = RecoveryResult::Done { head: None, lines: vec!["run again".to_owned()] };
        self.hears(News::Recovered { attempt: self.task.attempt, recovered });
        self.granted();
    }

    /// Other work is offered.
    fn offers(&mut self, digit: char) {
        let step = |act: TrackerOperation| TaskState::Ready {
            next: Some(StepName::new(act.word())),
            since: Timestamp(0),
        };
        self.task.state = step(TrackerOperation::Offer);
        self.granted();
        let head = Commit::new(&digit.to_string().repeat(40));
        self.answers(ExchangeResult::Offered(Some(PullRequestRef { number: 9, url: String::new(), head })));
        self.task.state = step(TrackerOperation::Checks);
        self.granted();
    }

    /// What was tried about the checks: the symptom, and what came of it.
    fn tried(&self) -> Vec<(&str, Option<RecoveryOutcome>)> {
        let tried = self.task.recoveries.tried.iter();
        tried.map(|it| (it.symptom.as_str(), it.outcome.as_ref().map(|it| it.0))).collect()
    }
}

#[test]
fn what_fails_is_run_once_more_on_the_same_commit_before_the_work_is_blamed() {
    let names = || vec!["build".to_owned()];
    let at = || Walk::at(TrackerOperation::Checks, seen(Some(IssuePhase::Code), Some(TaskSize::M)));
    let mut walk = at();
    assert_eq!(walk.checks(CiStatus::Failed(names())), "waits for backoff");
    walk.runs_again();
    assert_eq!(walk.checks(CiStatus::Running(names())), "waits for backoff");
    walk.at += 2 * 60 * 1_000;
    walk.hears(News::Due);
    walk.granted();
    assert_eq!(walk.checks(CiStatus::Passed), "ready for report by pass");
    assert_eq!(walk.tried(), [("failed", Some(RecoveryOutcome::Success))]);

    let mut walk = at();
    walk.checks(CiStatus::Failed(names()));
    walk.runs_again();
    assert_eq!(walk.checks(CiStatus::Failed(names())), "ready for report by fail");
    assert_eq!(walk.tried(), [("failed", Some(RecoveryOutcome::Failed))]);
    // Other work may be unlucky, too.
    walk.offers('b');
    assert_eq!(walk.checks(CiStatus::Failed(names())), "waits for backoff");
    walk.runs_again();
    assert_eq!(walk.checks(CiStatus::Failed(names())), "ready for report by fail");
    assert_eq!(walk.tried().len(), 2);
}

#[test]
fn what_says_nothing_about_the_work_is_run_once_more_and_then_keeps_nothing_from_landing() {
    let names = || vec!["build".to_owned()];
    let at = || Walk::at(TrackerOperation::Checks, seen(Some(IssuePhase::Code), Some(TaskSize::M)));
    let mut walk = at();
    assert_eq!(walk.checks(CiStatus::Broken(names())), "waits for backoff");
    walk.runs_again();
    assert_eq!(walk.checks(CiStatus::Broken(names())), "ready for report by pass");
    assert_eq!(
        (walk.tried(), walk.task.warnings.len()),
        (vec![("broken", Some(RecoveryOutcome::Failed))], 1)
    );

    let mut walk = at();
    assert_eq!(walk.checks(CiStatus::PreExisting(names())), "ready for report by pass");
    assert_eq!(
        (walk.tried(), walk.task.warnings.len()),
        (vec![("before", Some(RecoveryOutcome::Success))], 1)
    );

    // What hangs is run again once, and waited for as long again.
    let mut walk = at();
    let late = |walk: &mut Walk| {
        walk.at += 21 * 60 * 1_000;
        walk.hears(News::Due);
        walk.granted();
        walk.checks(CiStatus::Running(names()))
    };
    assert_eq!(walk.checks(CiStatus::Running(names())), "waits for backoff");
    assert_eq!(late(&mut walk), "waits for backoff");
    assert_eq!(walk.tried(), [("waited", None)]);
    walk.runs_again();
    assert_eq!(walk.checks(CiStatus::Running(names())), "waits for backoff", "it was run again just now");
    assert_eq!(late(&mut walk), "ready for report by pass");
}

#[test]
fn an_issue_that_was_closed_meanwhile_is_left_alone_and_its_work_is_kept() {
    for act in TrackerOperation::ALL {
        let expected = match act {
            TrackerOperation::Observe => [false, false],
            TrackerOperation::Merged | TrackerOperation::Accept | TrackerOperation::Close => [false, true],
            TrackerOperation::Triaged
            | TrackerOperation::Sized
            | TrackerOperation::Offer
            | TrackerOperation::Checks
            | TrackerOperation::Reviewed
            | TrackerOperation::Gather => [true, true],
        };
        let stops =
            |made| [IssueResolution::Done, IssueResolution::NotPlanned].map(|how| stops_at(act, how, made));
        assert_eq!(stops(false), expected, "{act:?}");
        // Work that is kept is gone on with once it is wanted again.
        assert_eq!(
            stops(true),
            if act == TrackerOperation::Observe { [false, true] } else { expected },
            "{act:?}"
        );
    }
    let mut walk = Walk::at(TrackerOperation::Offer, seen(Some(IssuePhase::Code), Some(TaskSize::M)));
    walk.offers('b');
    walk.answers(ExchangeResult::Closed(IssueResolution::NotPlanned));
    assert_eq!(walk.stands(), "Blocked tracker");
    let TaskState::Ended(ending) = &walk.task.state else { panic!("it is over: {:?}", walk.task.state) };
    assert_eq!(
        ending.detail,
        "#7 was closed as not planned meanwhile; its work is kept as pull request #9. Open it again and ask for it again, \
         and it goes on"
    );
}

#[test]
fn a_pull_request_belongs_to_the_round_it_was_offered_in() {
    let head = Commit::new(&"a".repeat(40));
    let of = |pr: Option<u64>, reworks| Pipeline {
        pr: pr.map(|number| PullRequestRef { number, url: String::new(), head: head.clone() }),
        reworks,
        ..Pipeline::default()
    };
    assert!(is_of_round(9, &of(None, 0)), "somebody else may have made it");
    assert!(is_of_round(9, &of(Some(9), 0)) && is_of_round(9, &of(Some(9), 2)));
    assert!(!is_of_round(9, &of(None, 1)), "what landed did not hold");
    assert!(!is_of_round(9, &of(Some(12), 1)));
}

fn accepted(result: VerifyResult, outcome: VerifyOutcome) -> ExchangeResult {
    let items = vec![("the door is quiet".to_owned(), result, "it creaks".to_owned())];
    ExchangeResult::Accepted { accepted: AcceptanceOutcome { items, outcome }, climbed: None }
}

#[test]
fn what_does_not_hold_goes_back_to_work_and_at_last_to_a_person() {
    let at = || Walk::at(TrackerOperation::Accept, seen(Some(IssuePhase::Verify), Some(TaskSize::M)));
    let mut walk = at();
    walk.answers(accepted(VerifyResult::Pass, VerifyOutcome::Done));
    assert_eq!(walk.stands(), "ready for report by pass");
    let mut walk = at();
    walk.answers(accepted(VerifyResult::Skipped, VerifyOutcome::LeftOver(1)));
    assert_eq!(walk.stands(), "ready for report by partial");
    let mut walk = at();
    walk.answers(accepted(VerifyResult::Fail, VerifyOutcome::Reopen { iteration: 1 }));
    assert_eq!(walk.stands(), "ready for report by fail", "its other rounds are counted anew");
    let told = walk.task.feedback.iter().map(|it| it.text.clone()).collect::<String>();
    assert!(told.contains("the door is quiet") && told.contains("it creaks"), "{told}");
    let mut walk = at();
    walk.answers(accepted(VerifyResult::Fail, VerifyOutcome::Exhausted { iteration: 3 }));
    let TaskState::Ended(ending) = &walk.task.state else { panic!("{}", walk.stands()) };
    assert_eq!((ending.kind, ending.code), (EndKind::Blocked, EndCode::AcceptanceFailed));
    assert!(ending.detail.starts_with("MAX_ITERATIONS_REACHED") && ending.detail.contains("needs a person"));
}

#[test]
fn what_does_not_hold_is_known_to_the_catalogue_which_may_stop_it() {
    let failed = AcceptanceOutcome {
        items: vec![("the door is quiet".to_owned(), VerifyResult::Fail, "it creaks".to_owned())],
        outcome: VerifyOutcome::Reopen { iteration: 1 },
    };
    let by = |action: RecoveryAction| {
        let mut walk = Walk::at(TrackerOperation::Accept, seen(Some(IssuePhase::Verify), Some(TaskSize::M)));
        let mut catalogue = about_checks();
        let again = Pattern {
            all: vec![PatternCondition::Fact(Known::CriterionFails)],
            action,
            ..catalogue[0].clone()
        };
        catalogue.insert(0, Pattern { name: "again".to_owned(), ..again });
        let task = Task { flow: walk.task.flow.clone().map(|flow| verifying(&flow)), ..walk.task.clone() };
        let climbed = recovery_after_acceptance(&catalogue, &task, &failed);
        walk.answers(ExchangeResult::Accepted { accepted: failed.clone(), climbed });
        walk
    };
    let walk = by(RecoveryAction::Retry);
    assert_eq!((walk.stands().as_str(), walk.tried()[0].0), ("ready for report by fail", "again"));
    assert_eq!(by(RecoveryAction::Stop).stands(), "Blocked acceptance_failed");
    let walk = Walk::at(TrackerOperation::Accept, seen(Some(IssuePhase::Verify), Some(TaskSize::M)));
    let fine = AcceptanceOutcome { outcome: VerifyOutcome::Done, ..failed };
    assert_eq!(recovery_after_acceptance(&about_checks(), &walk.task, &fine), None);
}

/// The same flow, whose step `accept` is in the phase in which it is.
fn verifying(flow: &Flow) -> Arc<Flow> {
    let mut flow = flow.clone();
    for step in flow.steps.iter_mut().filter(|step| step.name.as_str() == "accept") {
        "verify".clone_into(&mut step.phase);
    }
    Arc::new(flow)
}

#[test]
fn a_whole_waits_for_its_parts_and_stays_open_when_one_fails() {
    let part = |number, needs| SubIssue {
        number,
        title: format!("part {number}"),
        size: None,
        done: false,
        at_verify: false,
        needs,
    };
    let split = || {
        let mut walk = Walk::new(IssueOptions::default());
        walk.sees(seen(Some(IssuePhase::Issue), Some(TaskSize::XL)));
        walk.granted();
        walk.answers(ExchangeResult::Parts(vec![part(8, vec![]), part(9, vec![8])]));
        walk.granted();
        assert_eq!(walk.stands(), "waits for sub-issues");
        walk
    };
    let end = |number, end| SubIssueEnd { number, task: Some(TaskId(2)), end };
    let over = |ends: [SubIssueEnd; 2], found: [SubIssueEnd; 2], reopened: &[u64]| {
        let mut walk = split();
        walk.hears(News::PartsOver(ends.to_vec()));
        walk.granted();
        walk.answers(ExchangeResult::Gathered { ends: found.to_vec(), reopened: reopened.to_vec() });
        walk
    };
    let failed = || SubIssueOutcome::Failed("no hinge".to_owned());
    let done = || [end(8, SubIssueOutcome::Done), end(9, SubIssueOutcome::Done)];
    assert_eq!(over(done(), done(), &[]).stands(), "ready for accept by done");
    let skipped = || [end(8, failed()), end(9, SubIssueOutcome::Skipped(8))];
    assert_eq!(over(skipped(), skipped(), &[]).stands(), "Blocked parts_failed");
    // What landed and is left for a person keeps the whole from being done, and not from being looked at.
    let left = || [end(8, SubIssueOutcome::Left), end(9, SubIssueOutcome::Done)];
    let walk = over(left(), left(), &[]);
    assert_eq!(walk.stands(), "ready for accept by done");
    assert_eq!(walk.task.issue.as_ref().map(|issue| issue.parts_left()), Some(1));
    // One that broke another: it is done again, and the whole is made of them once more.
    let broken = || [end(8, failed()), end(9, SubIssueOutcome::Done)];
    let mut walk = over(done(), broken(), &[8]);
    assert_eq!(walk.stands(), "ready for split by split");
    walk.granted();
    walk.answers(ExchangeResult::Parts(vec![part(8, vec![]), part(9, vec![8])]));
    let issue = walk.task.issue.as_ref().expect("it follows one");
    assert_eq!((issue.ends.as_ref(), &issue.ended_before), (None, &broken().to_vec()));
    // As often as is allowed: then it is for a person, with its name.
    let walk = over(done(), broken(), &[]);
    let TaskState::Ended(ending) = &walk.task.state else { panic!("{}", walk.stands()) };
    assert_eq!((ending.code, ending.detail.as_str()), (EndCode::PartsFailed, "#8 failed: no hinge"));
    // Where another cannot be done anyway, nothing is begun again.
    assert_eq!(over(skipped(), skipped(), &[8]).stands(), "Blocked parts_failed");
}

#[test]
fn what_came_of_an_issue_before_is_never_told_as_the_word_of_a_person() {
    let why = "it was done, and does not hold any more: the door is quiet (it creaks)";
    let feedback = earlier_outcome_feedback(&SubIssueOutcome::Failed(why.to_owned())).expect("it failed");
    let mut walk = Walk::new(IssueOptions::default());
    walk.hears(News::Inform(feedback.clone()));
    assert_eq!((&walk.task.feedback, &walk.task.messages), (&vec![feedback.clone()], &Vec::new()));
    assert_eq!(feedback.about, "What was seen on the base");
    assert!(feedback.text.ends_with(why), "{}", feedback.text);
    for fate in [SubIssueOutcome::Done, SubIssueOutcome::Left, SubIssueOutcome::Skipped(8)] {
        assert_eq!(earlier_outcome_feedback(&fate), None);
    }
}

#[test]
fn a_part_that_landed_and_is_left_for_a_person_is_not_done_anew_with_its_whole() {
    let part = |at_verify| SubIssue {
        number: 7,
        title: "part".to_owned(),
        size: None,
        done: false,
        at_verify,
        needs: vec![],
    };
    // Nobody was to look whether it holds.
    let mut walk = Walk::new(IssueOptions { accept: false, ..IssueOptions::default() });
    walk.sees(seen(Some(IssuePhase::Verify), Some(TaskSize::S)));
    walk.granted();
    assert_eq!(walk.stands(), "ready for report by partial");
    let ended =
        || TaskState::Ended(Ending { kind: EndKind::Done, code: EndCode::Landed, detail: String::new() });
    walk.task.state = ended();
    let stood = |task: &Task| match sub_issues_state(&[part(true)], &|_| Some(task)) {
        SubIssuesState::Over(ends) => ends[0].end.clone(),
        SubIssuesState::Going { .. } => panic!("it is over"),
    };
    assert_eq!(stood(&walk.task), SubIssueOutcome::Left, "what nobody looked at is not known to hold");
    assert!(is_taken_on_by(&part(true), &walk.task), "its acceptance is all that is left");
    assert!(!is_taken_on_by(&part(false), &walk.task), "it was sent back, or opened again");
    assert!(goes_on_with_whole(&part(true), &walk.task, true), "it is looked at now");
    assert!(!goes_on_with_whole(&part(true), &walk.task, false));
    // Where nothing was left to do, nothing is left for a person.
    let mut walk = Walk::new(IssueOptions { accept: false, ..IssueOptions::default() });
    walk.sees(IssueSnapshot { open: false, ..seen(Some(IssuePhase::Done), Some(TaskSize::S)) });
    walk.task.state = ended();
    assert_eq!(stood(&walk.task), SubIssueOutcome::Done);
}

#[test]
fn a_whole_is_told_of_as_its_parts_come_and_waits_for_the_others() {
    let part = |number, needs| SubIssue {
        number,
        title: "part".to_owned(),
        size: None,
        done: false,
        at_verify: false,
        needs,
    };
    let mut walk = Walk::new(IssueOptions::default());
    walk.sees(seen(Some(IssuePhase::Issue), Some(TaskSize::XL)));
    walk.granted();
    walk.answers(ExchangeResult::Parts(vec![part(8, vec![]), part(9, vec![]), part(10, vec![8])]));
    walk.granted();
    let level = |walk: &Walk| walk.task.issue.as_ref().expect("it follows one").level.clone();
    walk.hears(News::PartsCame { over: vec![8], levels: 0 });
    assert!(level(&walk).is_due() && !level(&walk).is_higher());
    walk.granted();
    walk.answers(ExchangeResult::Levelled { failing: None });
    assert_eq!(walk.stands(), "waits for sub-issues");
    walk.hears(News::PartsCame { over: vec![8, 9], levels: 1 });
    assert!(level(&walk).is_due() && level(&walk).is_higher(), "another level is over");
    walk.granted();
    let failing = vec![("the door is quiet".to_owned(), "it creaks".to_owned())];
    walk.answers(ExchangeResult::Levelled { failing: Some(failing.clone()) });
    assert_eq!(walk.stands(), "waits for sub-issues", "what does not hold yet is worth knowing and no more");
    assert_eq!(level(&walk).failing, failing);
    let why = landfall_model::explain_task_state(&walk.task, &[], None, &|_| String::new());
    assert!(why.ends_with("As a whole, this does not hold so far: the door is quiet."), "{why}");
    // A look that nobody took leaves what was seen before.
    walk.hears(News::PartsCame { over: vec![8, 9, 10], levels: 1 });
    walk.granted();
    walk.answers(ExchangeResult::Levelled { failing: None });
    assert_eq!(level(&walk).failing, failing);
    // A tracker that is away all night, or says no, does not end the whole while its parts go on.
    for round in 0..130 {
        let over = if round % 2 == 0 { vec![8, 9] } else { vec![8, 9, 10] };
        walk.hears(News::PartsCame { over, levels: 1 });
        walk.granted();
        let until = (round % 3 == 0).then_some(Timestamp(i64::MAX));
        let detail = "away".to_owned();
        walk.answers(ExchangeResult::Trouble { detail, until, hopeless: round % 5 == 0 });
        assert_eq!(walk.stands(), "waits for sub-issues");
    }
    assert_eq!(level(&walk).failing, failing);
    let end = |number| SubIssueEnd { number, task: None, end: SubIssueOutcome::Done };
    walk.hears(News::PartsOver([8, 9, 10].map(end).to_vec()));
    walk.granted();
    walk.answers(ExchangeResult::Gathered { ends: [8, 9, 10].map(end).to_vec(), reopened: Vec::new() });
    assert_eq!(walk.stands(), "ready for accept by done");
}

#[test]
fn an_issue_too_big_that_nobody_split_is_for_a_person() {
    let mut walk = Walk::new(IssueOptions::default());
    walk.sees(seen(Some(IssuePhase::Issue), Some(TaskSize::XL)));
    walk.granted();
    walk.answers(ExchangeResult::Parts(Vec::new()));
    assert_eq!(walk.stands(), "Blocked tracker");
}

#[test]
fn a_tracker_in_trouble_is_asked_again_and_one_that_says_no_is_told() {
    let by = |until, hopeless| {
        let mut walk = Walk::new(IssueOptions::default());
        walk.answers(ExchangeResult::Trouble { detail: "away".to_owned(), until, hopeless });
        walk
    };
    assert_eq!(by(None, false).stands(), "waits for backoff");
    let TaskState::Waiting { wait: WaitReason::Backoff { until, .. }, .. } =
        by(Some(Timestamp(90_000)), false).task.state
    else {
        panic!("it says when");
    };
    assert_eq!(until, Timestamp(90_000));
    assert_eq!(by(None, true).stands(), "Blocked tracker");
}

#[test]
fn a_task_that_comes_from_no_issue_is_not_bound_to_the_flow_of_one() {
    let spec = TaskSpec::new("Fix the door").expect("a title");
    let mut walk = Walk {
        task: Task::from_spec(TaskId(1), spec, Timestamp(0)),
        at: 0,
        effects: Vec::new(),
        result: "",
        poll_ms: POLL_MS,
    };
    walk.granted();
    assert_eq!(walk.stands(), "Failed unsupported_step");
    assert_eq!(walk.task.flow, None);
}

#[test]
fn a_pull_request_that_was_made_while_a_person_stopped_it_is_known_afterwards() {
    let mut walk = Walk::at(TrackerOperation::Offer, seen(Some(IssuePhase::Code), Some(TaskSize::M)));
    walk.hears(News::StopTask);
    let pr = PullRequestRef { number: 9, url: "u".to_owned(), head: Commit::new(&"d".repeat(40)) };
    walk.hears(News::Exchanged {
        attempt: walk.task.attempt,
        exchanged: ExchangeResult::Offered(Some(pr.clone())),
    });
    assert_eq!(walk.stands(), "waits for pause");
    assert_eq!(walk.task.issue.as_ref().and_then(|issue| issue.pr.clone()), Some(pr));
}

#[test]
fn c24_an_issue_without_a_size_takes_a_pull_request_wherever_nobody_can_be_asked() {
    let mut walk = Walk::new(IssueOptions::default());
    walk.sees(seen(Some(IssuePhase::Issue), None));
    let routed = walk.task.issue.as_ref().and_then(|issue| issue.routed).expect("it was routed");
    assert_eq!((routed.way, routed.depth, routed.spec), (IssueRoute::Pr, ReviewDepth::Light, true));
    let mut walk = Walk::at(TrackerOperation::Sized, seen(Some(IssuePhase::Spec), None));
    assert_eq!(
        walk.sees(seen(Some(IssuePhase::Ready), None)),
        "ready for report by code",
        "a spec changes nothing about it"
    );
}

#[test]
fn c25_a_merge_needs_our_own_verdict_and_nobodys_approval() {
    let pr = PullRequestSnapshot {
        number: 9,
        url: "u".to_owned(),
        state: PullRequestState::Open,
        head: Some(Commit::new(&"d".repeat(40))),
        reviewed: true,
    };
    let read = IssueSnapshot { pr: Some(pr), ..seen(Some(IssuePhase::Merge), Some(TaskSize::M)) };
    assert!(
        check_precondition(ReconcilePoint::Merge, &read).matches,
        "who reads their own work is approved by nobody"
    );
    assert!(check_completion(ReconcilePoint::Review, &read).matches);
    let unread =
        IssueSnapshot { pr: read.pr.clone().map(|pr| PullRequestSnapshot { reviewed: false, ..pr }), ..read };
    assert!(
        !check_completion(ReconcilePoint::Review, &unread).matches,
        "without a summary of ours it was not read"
    );
}

#[test]
fn what_an_earlier_try_was_warned_of_is_over_once_a_check_has_proved_the_work() {
    use crate::story::{command, report};
    use landfall_model::gate::CheckOutcome;
    let mut task = Walk::at(TrackerOperation::Offer, seen(Some(IssuePhase::Code), Some(TaskSize::XS))).task;
    (task.gate, task.warnings) = (None, Vec::new());
    assert!(!task.is_unproved(), "nobody has verified it");
    task.warnings.push(landfall_model::Warning::VerificationEmpty);
    assert!(task.is_unproved());
    task.gate = Some(report(vec![command("tests", CheckOutcome::Pass)]));
    assert!(!task.is_unproved());
    task.gate = Some(report(Vec::new()));
    assert!(task.is_unproved());
}

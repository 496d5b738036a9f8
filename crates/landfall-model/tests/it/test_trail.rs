//! The journal of an issue as a log of a pipeline, what many of them come to, and what is said when one is over.

use std::sync::Arc;

use landfall_model::acceptance::{VerifyOutcome, VerifyResult};
use landfall_model::flow::{FlowStep, TrackerOperation};
use landfall_model::gate::GateReport;
use landfall_model::issue::{
    AcceptanceOutcome, CiStatus, IssueDocument, IssueEvent, IssueRoute, Pipeline, ReviewDepth,
    RoutingDecision, SubIssue, SubIssueEnd, SubIssueOutcome, Trace, build_trail, issue_retrospective,
    roll_up_traces,
};
use landfall_model::recovery::{RecoveryEvent, RecoveryOutcome, RecoveryTier};
use landfall_model::{
    AgentAssignment, AgentDriveStyle, AgentExit, AgentRunTraces, AgentUsage, Attempt, AttemptStart, BatchId,
    Commit, Digest, EdgeTarget, EndCode, EndKind, Ending, Event, Flow, RunId, StepKind, StepName, StepResult,
    Task, TaskId, TaskLimits, TaskSize, TaskSpec, Timestamp, Tree, Verdict, WaitReason, YieldReason,
};

const ONE: Attempt = Attempt(1);

fn flow() -> Arc<Flow> {
    let agent = || StepKind::Agent { prompt: "x".to_owned(), iterate: true, every: 0, output: Vec::new() };
    let steps = [
        ("observe", "issue", StepKind::Tracker { act: TrackerOperation::Observe }),
        ("spec", "spec", agent()),
        ("code", "code", agent()),
        ("review", "review", StepKind::Review),
        ("land", "merge", StepKind::Land),
        ("accept", "verify", StepKind::Tracker { act: TrackerOperation::Accept }),
    ];
    let steps = steps.into_iter().map(|(name, phase, kind)| FlowStep {
        name: StepName::new(name),
        phase: phase.to_owned(),
        before: None,
        agent: None,
        on: Vec::new(),
        kind,
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

fn entered(step: &str) -> Event {
    Event::Entered {
        attempt: ONE,
        step: StepName::new(step),
        run: RunId(3),
        opening: AttemptStart::Workspace,
    }
}

fn left(step: &str, result: StepResult, to: &str) -> Event {
    let to = if to == "end" { EdgeTarget::End } else { EdgeTarget::Step(StepName::new(to)) };
    Event::Left { attempt: ONE, step: StepName::new(step), result, to, feedback: None }
}

fn ran(exit: AgentExit, tokens_in: u64) -> Event {
    let usage = AgentUsage { tokens_in, tokens_out: 5, micro_usd: 70, ..AgentUsage::default() };
    Event::IterationEnded {
        attempt: ONE,
        iteration: 1,
        exit,
        verdict: Verdict::Complete,
        took_ms: 4_000,
        usage: if tokens_in == 0 { AgentUsage::default() } else { usage },
        head: None,
        traces: AgentRunTraces {
            model: (tokens_in > 100).then(|| "large".to_owned()),
            quiet_ms: tokens_in * 1_000,
            ..AgentRunTraces::default()
        },
    }
}

fn routed(size: TaskSize, way: IssueRoute) -> Event {
    Event::Issue(IssueEvent::Routed(RoutingDecision {
        size: Some(size),
        way,
        spec: true,
        depth: ReviewDepth::Light,
    }))
}

fn bound() -> Event {
    let driving = AgentAssignment {
        profile: "small".to_owned(),
        account: "a".to_owned(),
        style: AgentDriveStyle::Fresh,
    };
    Event::Bound { flow: flow(), limits: TaskLimits::default(), driving }
}

fn ended(kind: EndKind, code: EndCode) -> Event {
    Event::Ended(Ending { kind, code, detail: String::new() })
}

/// A second passes between two facts.
fn log(events: &[Event]) -> Vec<Trace> {
    let flow = flow();
    build_trail(Some(&flow), (0..).map(|n| Timestamp(n * 1_000)).zip(events))
}

fn lines(traces: &[Trace]) -> String {
    let line = |trace: &Trace| {
        let fields: Vec<String> =
            trace.what.named_fields().iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{} {} {}\n", trace.at.0 / 1_000, trace.what.wire_name(), fields.join(" "))
    };
    traces.iter().map(line).collect()
}

fn whole() -> Vec<Event> {
    let accepted = AcceptanceOutcome {
        items: vec![("it greets".to_owned(), VerifyResult::Fail, "no".to_owned())],
        outcome: VerifyOutcome::Reopen { iteration: 1 },
    };
    vec![
        bound(),
        entered("observe"),
        routed(TaskSize::L, IssueRoute::Pr),
        left("observe", StepResult::Spec, "spec"),
        entered("spec"),
        ran(AgentExit::Code(0), 200),
        left("spec", StepResult::Done, "code"),
        routed(TaskSize::M, IssueRoute::Pr),
        entered("code"),
        ran(AgentExit::Silent, 50),
        Event::Recovery(RecoveryEvent::Tried {
            step: StepName::new("code"),
            symptom: "watchdog-kill".to_owned(),
            tier: RecoveryTier::Pattern,
            action: "retry".to_owned(),
            exit: None,
            tail: String::new(),
            took_ms: None,
            known: Vec::new(),
        }),
        entered("code"),
        Event::Recovery(RecoveryEvent::Ended {
            step: StepName::new("code"),
            outcome: RecoveryOutcome::Success,
            detail: String::new(),
        }),
        Event::Messaged { about: None, text: "hurry".to_owned() },
        left("code", StepResult::Done, "review"),
        entered("review"),
        Event::Issue(IssueEvent::Checks { attempt: ONE, ci: CiStatus::Running(vec!["a".to_owned()]) }),
        Event::Issue(IssueEvent::Checks { attempt: ONE, ci: CiStatus::Passed }),
        left("review", StepResult::Approved, "land"),
        entered("land"),
        Event::BaseMoved { attempt: ONE, to: Commit::new("abc") },
        left("land", StepResult::Landed, "accept"),
        entered("accept"),
        Event::Issue(IssueEvent::Accepted { attempt: ONE, accepted }),
        Event::Issue(IssueEvent::Reworked { attempt: ONE }),
        left("accept", StepResult::Fail, "code"),
        entered("code"),
        ended(EndKind::Blocked, EndCode::AcceptanceFailed),
    ]
}

#[test]
fn the_journal_of_an_issue_is_a_log_of_its_phases() {
    expect_test::expect![[r#"
        1 sub_start size=
        4 phase_start phase=spec
        5 wrapper_exit phase=spec exit_code=0 how=exit duration_sec=4
        5 max_silent_window phase=spec silent_window_sec=200
        5 token_usage phase=spec model=large input=200 output=5 cache_read=0 micro_usd=70
        6 phase_complete phase=spec duration_sec=2 wait_sec=0 waited_for=
        7 size_refresh from=L to=M route=pr
        8 phase_start phase=code
        9 wrapper_exit phase=code exit_code=143 how=silence duration_sec=4
        9 watchdog_kill phase=code duration_sec=4 silent_window_sec=50
        9 token_usage phase=code model=small input=50 output=5 cache_read=0 micro_usd=70
        10 anomaly phase=code pattern=watchdog-kill detail=retry
        12 recovery phase=code tier=2 symptom=watchdog-kill result=success
        13 manual_intervention recovery_target=code intervention_type=message
        14 phase_complete phase=code duration_sec=6 wait_sec=0 waited_for=
        15 phase_start phase=review
        17 ci_wait wait_sec=1 result=passed failed=0
        18 phase_complete phase=review duration_sec=3 wait_sec=0 waited_for=
        19 phase_start phase=merge
        20 concurrent_commit_detected commit_sha=abc
        21 phase_complete phase=merge duration_sec=2 wait_sec=0 waited_for=
        22 phase_start phase=verify
        24 verify_reopen_cycle iteration=1 reopen_reason=it greets
        26 phase_start phase=code
        27 sub_complete result=FAILED (acceptance_failed)
    "#]]
    .assert_eq(&lines(&log(&whole())));
}

fn waited(wait: WaitReason) -> [Event; 2] {
    let then = StepName::new("x");
    [Event::Yielded { attempt: ONE, why: YieldReason::NotYet, feedback: None }, Event::Waited { wait, then }]
}

fn resumed() -> Event {
    Event::Resumed { feedback: None }
}

fn backoff() -> WaitReason {
    WaitReason::Backoff { until: Timestamp(0), cause: "x".to_owned() }
}

fn checks(ci: CiStatus) -> Event {
    Event::Issue(IssueEvent::Checks { attempt: ONE, ci })
}

fn queued() -> Event {
    Event::Entered { attempt: ONE, step: StepName::new("land"), run: RunId(3), opening: AttemptStart::Queue }
}

fn landing(took_ms: u64, reused: bool) -> Event {
    let commit = || Commit::new("abc");
    let report = GateReport {
        base: commit(),
        head: commit(),
        commit: commit(),
        tree: Tree::new("t"),
        config: Digest::new("c"),
        environment: Digest::new("e"),
        commands: Vec::new(),
        took_ms,
        reused,
        required: false,
        sandbox: None,
    };
    Event::LandingBegan { attempt: ONE, batch: BatchId(1), report }
}

/// Everything that waits does so in this one: each group of facts at its second.
fn waiting() -> Vec<(i64, Vec<Event>)> {
    let group = |at: i64, parts: &[&[Event]]| (at, parts.concat());
    vec![
        group(0, &[&[bound(), routed(TaskSize::M, IssueRoute::Pr), entered("code")]]),
        group(10, &[&waited(WaitReason::Question { text: "which?".to_owned() })]),
        group(70, &[&[resumed()]]),
        group(75, &[&[entered("code")]]),
        group(80, &[&waited(WaitReason::Quota { until: Timestamp(0), guessed: false })]),
        group(380, &[&[resumed(), entered("code")]]),
        group(390, &[&[left("code", StepResult::Done, "review")]]),
        group(
            390,
            &[&[entered("review"), checks(CiStatus::Running(vec!["a".to_owned()]))], &waited(backoff())],
        ),
        group(450, &[&[resumed(), entered("review")]]),
        group(452, &[&[checks(CiStatus::Passed)], &waited(backoff())]),
        group(462, &[&[resumed(), entered("review")]]),
        group(463, &[&[left("review", StepResult::Approved, "land")]]),
        group(463, &[&[queued()]]),
        group(563, &[&[landing(30_000, false)]]),
        group(568, &[&[left("land", StepResult::Landed, "accept")]]),
        group(568, &[&[entered("accept")]]),
        group(569, &[&[Event::Held { reason: String::new() }]]),
        group(570, &[&[Event::Yielded { attempt: ONE, why: YieldReason::Held, feedback: None }]]),
        group(600, &[&[Event::Released]]),
        group(604, &[&[entered("accept")]]),
        group(605, &[&[left("accept", StepResult::Pass, "end")]]),
    ]
}

fn timed(groups: &[(i64, Vec<Event>)]) -> Vec<Trace> {
    let flow = flow();
    let facts =
        groups.iter().flat_map(|(at, all)| all.iter().map(move |event| (Timestamp(at * 1_000), event)));
    build_trail(Some(&flow), facts)
}

#[test]
fn the_time_of_a_phase_is_told_apart_into_work_and_waits() {
    let all = timed(&waiting());
    let over: Vec<Trace> =
        all.iter().filter(|trace| trace.what.wire_name() == "phase_complete").cloned().collect();
    expect_test::expect![[r#"
        390 phase_complete phase=code duration_sec=390 wait_sec=365 waited_for=person, quota, slot
        463 phase_complete phase=review duration_sec=73 wait_sec=70 waited_for=checks, trouble
        568 phase_complete phase=merge duration_sec=105 wait_sec=70 waited_for=landing-queue
        605 phase_complete phase=verify duration_sec=37 wait_sec=34 waited_for=person, slot
    "#]]
    .assert_eq(&lines(&over));
    let sum = roll_up_traces([(7, &all[..])], Timestamp(0));
    let rows: Vec<_> = sum
        .phases
        .iter()
        .map(|it| {
            let waits: Vec<(&str, u64)> = it.waits.iter().map(|(what, ms)| (what.wire_name(), *ms)).collect();
            (it.phase.as_str(), it.median_ms, it.worked_ms, waits)
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("code", Some(25_000), 25_000, vec![("quota", 300_000), ("person", 60_000), ("slot", 5_000)]),
            ("review", Some(3_000), 3_000, vec![("checks", 60_000), ("trouble", 10_000)]),
            ("merge", Some(35_000), 35_000, vec![("landing-queue", 70_000)]),
            ("verify", Some(3_000), 3_000, vec![("person", 30_000), ("slot", 4_000)]),
        ]
    );
}

#[test]
fn a_batch_whose_verification_was_taken_over_took_nobody_any_time() {
    let over = |event: Event| {
        let all = timed(&[
            (0, vec![bound(), routed(TaskSize::M, IssueRoute::Pr), queued()]),
            (40, vec![event]),
            (50, vec![left("land", StepResult::Landed, "accept")]),
        ]);
        lines(&all).lines().last().map(ToOwned::to_owned).unwrap_or_default()
    };
    assert!(over(landing(30_000, true)).contains("wait_sec=40"), "{}", over(landing(30_000, true)));
    assert!(over(landing(30_000, false)).contains("wait_sec=10"));
    assert!(over(landing(90_000, false)).ends_with("wait_sec=0 waited_for="), "a clock that was set back");
    assert!(over(landing(39_500, false)).ends_with("wait_sec=0 waited_for="), "a moment is not worth a word");
}

#[test]
fn the_end_of_its_flow_is_the_end_of_an_issue_and_is_told_once() {
    let mut spec = TaskSpec::new("Greet").expect("a title");
    spec.size = Some(TaskSize::S);
    let events = [
        Event::Added { spec },
        entered("observe"),
        left("observe", StepResult::Done, "end"),
        ended(EndKind::Done, EndCode::Landed),
    ];
    assert_eq!(lines(&log(&events)), "1 sub_start size=S\n2 sub_complete result=SUCCESS\n");
    assert_eq!(lines(&log(&[bound(), ended(EndKind::Cancelled, EndCode::Landed)])), "", "it never began");
}

#[test]
fn what_an_agent_is_told_that_no_person_said_is_nobodys_intervention() {
    let told = |about: Option<&str>| {
        let about = about.map(ToOwned::to_owned);
        let spec = TaskSpec::new("Greet").expect("a title");
        let message = Event::Messaged { about, text: "it creaks".to_owned() };
        lines(&log(&[Event::Added { spec }, entered("observe"), message]))
    };
    assert!(told(None).contains("manual_intervention"), "{}", told(None));
    assert!(!told(Some("What was seen on the base")).contains("manual_intervention"));
}

#[test]
fn a_log_that_is_cut_anywhere_is_the_beginning_of_the_whole() {
    let events = whole();
    let all = log(&events);
    for cut in 0..events.len() {
        let part = log(&events[..cut]);
        assert_eq!(part[..], all[..part.len()], "cut after {cut}");
    }
}

#[test]
fn many_logs_come_to_counts_times_and_tokens() {
    let (first, second) = (log(&whole()), log(&whole()[..8]));
    let all = [(7, &first[..]), (8, &second[..])];
    let sum = roll_up_traces(all, Timestamp(0));
    let [session] = &sum.sessions[..] else { panic!("{:?}", sum.sessions) };
    assert_eq!((session.run, session.issues.len(), session.done, session.failed), (RunId(3), 2, 0, 1));
    let phases: Vec<_> = sum
        .phases
        .iter()
        .map(|it| (it.phase.as_str(), it.begun, it.count, it.median_ms, it.p95_ms))
        .collect();
    assert_eq!(
        phases,
        [
            ("spec", 2, 2, Some(2_000), Some(2_000)),
            ("code", 2, 1, Some(6_000), Some(6_000)),
            ("review", 1, 1, Some(3_000), Some(3_000)),
            ("merge", 1, 1, Some(2_000), Some(2_000)),
            ("verify", 1, 0, None, None),
        ]
    );
    assert_eq!(sum.anomalies, [("watchdog-kill".to_owned(), 1)]);
    assert_eq!(sum.interventions, [("message".to_owned(), 1)]);
    let tiers: Vec<_> = sum.recoveries.iter().map(|it| (it.tier.as_str(), it.count, it.success)).collect();
    assert_eq!(tiers, [("2", 1, 1)]);
    let tokens: Vec<_> = sum
        .tokens
        .iter()
        .map(|it| (it.phase.as_str(), it.model.as_str(), it.runs, it.usage.tokens_in))
        .collect();
    assert_eq!(tokens, [("spec", "large", 2, 400), ("code", "small", 1, 50)]);
    assert!(roll_up_traces(all, Timestamp(1_000_000)).phases.is_empty(), "what is older is left out");
}

fn task(way: IssueRoute, ends: Option<Vec<SubIssueEnd>>) -> Task {
    let mut spec = TaskSpec::new("Greet").expect("a title");
    spec.source = "local:#7".to_owned();
    let mut task = Task::from_spec(TaskId(1), spec, Timestamp(0));
    let routed = RoutingDecision {
        size: Some(TaskSize::M),
        way,
        spec: way != IssueRoute::Split,
        depth: ReviewDepth::Light,
    };
    task.issue = Some(Box::new(Pipeline { routed: Some(routed), ends, ..Pipeline::default() }));
    task
}

#[test]
fn something_is_said_afterwards_only_of_what_was_out_of_the_ordinary() {
    let smooth = [bound(), entered("spec"), left("spec", StepResult::Done, "code"), entered("code")];
    assert_eq!(issue_retrospective(&task(IssueRoute::Pr, None), &log(&smooth), None), None);
    let paper = IssueDocument::read(
        "## Overview\nx\n## Phase Handoff\n### Deferred Items\n- the plural\n## Code Retrospective\n### Improvement Proposals\n- [issue] Name it: why\n",
    );
    let said =
        issue_retrospective(&task(IssueRoute::Pr, None), &log(&whole()), Some(&paper)).expect("much was");
    expect_test::expect![[r#"
        ## Auto Retrospective

        Result: FAILED (acceptance_failed)

        ### Out of the ordinary

        - code: begun 2 times
        - code: silent for too long, and ended
        - code: `watchdog-kill`, recovered by tier 2: success
        - code: a person stepped in (message)
        - its size went from L to M
        - verify: opened again (1): it greets

        ### Deferred Items

        - the plural

        ### What the spec did not say

        - Changed Files
        - Implementation Steps
        - Verification

        ### Improvement Proposals

        - [issue] Name it
    "#]]
    .assert_eq(&said.to_markdown());
}

#[test]
fn the_retrospective_of_work_without_a_spec_is_transcribed() {
    let paper =
        IssueDocument::read("## Code Retrospective\n### Improvement Proposals\n- [issue] Name it: why\n");
    let smooth = [bound(), entered("code")];
    let mut tiny = task(IssueRoute::Patch, None);
    assert_eq!(issue_retrospective(&tiny, &log(&smooth), Some(&paper)), None, "a spec on the base has it");
    let issue = tiny.issue.as_mut().expect("it follows one");
    issue.routed = Some(RoutingDecision {
        size: Some(TaskSize::XS),
        way: IssueRoute::Patch,
        spec: false,
        depth: ReviewDepth::None,
    });
    let said = issue_retrospective(&tiny, &log(&smooth), Some(&paper)).expect("there is a paper");
    assert_eq!(said.proposals, [("issue", "Name it".to_owned())]);
    assert_eq!(issue_retrospective(&tiny, &log(&smooth), None), None, "nothing was left");
}

#[test]
fn of_a_whole_something_is_always_said() {
    let ends = vec![
        SubIssueEnd { number: 8, task: None, end: SubIssueOutcome::Done },
        SubIssueEnd { number: 9, task: None, end: SubIssueOutcome::Failed("no key\nat all".to_owned()) },
        SubIssueEnd { number: 10, task: None, end: SubIssueOutcome::Skipped(9) },
    ];
    let mut whole = task(IssueRoute::Split, Some(ends));
    let part = |number, title: &str, size, needs: &[u64]| SubIssue {
        number,
        title: title.to_owned(),
        size: Some(size),
        done: false,
        at_verify: false,
        needs: needs.to_vec(),
    };
    whole.issue.as_mut().expect("it follows one").parts = vec![
        part(8, "Parse a|b", TaskSize::S, &[]),
        part(9, "Store", TaskSize::M, &[]),
        part(10, "Show", TaskSize::XS, &[9]),
    ];
    let said = issue_retrospective(&whole, &[], None).expect("it is a whole");
    assert_eq!(said.result, "SUCCESS");
    let text = said.to_markdown();
    for row in [
        "| # | Title | Route | Result | Notes |",
        "| #8 | Parse a\\|b | S: patch, spec first | SUCCESS | in parallel with #9 |",
        "| #9 | Store | M: pull request, light review, spec first | FAILED (no key) | in parallel with #8 |",
        "| #10 | Show | XS: patch | SKIPPED (blocked by #9) | after #9 |",
    ] {
        assert!(text.contains(row), "{row} in:\n{text}");
    }
}

/// The corpus of the fuzzer, replayed: each of its papers hands something on and proposes something.
#[test]
fn the_corpus_of_the_fuzzer_is_read() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/papers");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus is there") {
        let text = std::fs::read_to_string(entry.expect("it can be listed").path()).expect("it is text");
        let paper = IssueDocument::read(&text);
        assert!(paper.handoff.as_ref().is_some_and(|it| it.phase.is_some() && !it.is_empty()), "{text}");
        assert!(paper.all_proposals().count() > 0, "{text}");
        seen += 1;
    }
    assert!(seen >= 2);
}

#[test]
fn a_failed_acceptance_has_the_number_of_its_tracker_everywhere() {
    let accepted = |outcome| {
        let items = vec![("it greets".to_owned(), VerifyResult::Fail, "no".to_owned())];
        Event::Issue(IssueEvent::Accepted { attempt: ONE, accepted: AcceptanceOutcome { items, outcome } })
    };
    let reworked = || {
        [
            accepted(VerifyOutcome::Reopen { iteration: 2 }),
            Event::Issue(IssueEvent::Reworked { attempt: ONE }),
            left("accept", StepResult::Fail, "code"),
            entered("code"),
            left("code", StepResult::Done, "accept"),
            entered("accept"),
        ]
    };
    let mut events =
        vec![bound(), entered("observe"), routed(TaskSize::M, IssueRoute::Pr), entered("accept")];
    // The same commit is looked at twice: that is one failure. An earlier task of the issue had the first.
    events.extend(reworked());
    events.extend(reworked());
    events.push(accepted(VerifyOutcome::Exhausted { iteration: 3 }));
    events.push(ended(EndKind::Blocked, EndCode::AcceptanceFailed));
    let told = lines(&log(&events));
    let cycles: Vec<&str> = told.lines().filter(|line| line.contains("verify_reopen_cycle")).collect();
    assert!(cycles.len() == 2 && cycles.iter().all(|line| line.contains("iteration=2")), "{cycles:?}");
    let flow = flow();
    let rows = landfall_model::issue::IssueProgress::from_events(Some(&flow), &events).phase_rows();
    let verify = rows.iter().find(|row| row.phase == "verify").expect("it was verified");
    assert_eq!(verify.notes_text(), "3 failed acceptances");
}

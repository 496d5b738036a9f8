//! The kept sample of format 1: every kind of fact and every variant inside it. Lines may be added at the end;
//! a line that is there is never changed, because journals like it are out there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use landfall_model::acceptance::{VerifyOutcome, VerifyResult};
use landfall_model::annotate::AnnotationImpact as Mattering;
use landfall_model::audit::ChangeSize;
use landfall_model::auto::AutoEvent;
use landfall_model::checkpoint::{CheckpointEvent, CheckpointReason};
use landfall_model::conflict::ConflictTimeoutAction;
use landfall_model::convergence::{Exclusion, StageProgress};
use landfall_model::denial::{DeniedAccess, SandboxDenial};
use landfall_model::flow::TrackerOperation;
use landfall_model::gaming::{
    BaseTestRun, MutationOutcome, MutationRun, MutationTrial, ProtectedChange, TestCounts, TestEvidence,
};
use landfall_model::gate::{CheckOutcome, CommandResult, GateReport};
use landfall_model::haul::{IssueBatchEvent, IssueBatchId, IssueSelection};
use landfall_model::issue::{
    AcceptanceOutcome, CiStatus, IssueEvent, IssueOptions, IssuePhase, IssueRoute, IssueSnapshot,
    PullRequestRef, PullRequestSnapshot, PullRequestState, ReviewDepth, RoutingDecision, SubIssue,
    SubIssueEnd, SubIssueOutcome,
};
use landfall_model::objective::{ObjectiveItem, Requirement, Weight};
use landfall_model::pilot::{PauseReason, PilotEvent, PilotMode};
use landfall_model::proof::{ProofAuthor, ProofColour, ProofRun, ProofSubject, RequiredProof};
use landfall_model::queue::{BatchEnd, BatchMember, BatchPrefix, HoldReason};
use landfall_model::recovery::{self, PlanAction, RecoveryEvent, RecoveryOp, RecoveryTier};
use landfall_model::review::{Finding, FindingSeverity, ReviewMode, ReviewRule};
use landfall_model::score::{Dimension, GatePoint, RefinementImpact, Scores};
use landfall_model::sprint::{ReviewDecision, SprintEnd, SprintEndCondition, SprintEvent, SprintSpec};
use landfall_model::staged::{JudgeResult, StagedEvent};
use landfall_model::tune::params_for_types;
use landfall_model::{
    AccountState, AgentAssignment, AgentDriveStyle, AgentExit, AgentRunTraces, AgentUsage, Attempt,
    AttemptStart, BaseMover, BatchId, Budget, BudgetScope, ChangeConcern, Commit, ConcernCode, ContextUsage,
    Digest, EdgeTarget, EndCode, EndKind, Ending, EngineEvent, Event, Fact, Feedback, Flow, FlowStep,
    JournalEntry, LoopStep, QueueEvent, RunEnd, RunId, SessionStart, SprintId, StepKind, StepName,
    StepResult, StopRequest, Task, TaskId, TaskLimitOverrides, TaskLimits, TaskSize, TaskSpec, Timestamp,
    Tree, Verdict, WaitReason, Warning, YieldReason, apply, flow::FlowEdge,
};

use super::{EncodedRow, FlowCache, FormatErrorKind, RawRow, decode_entry, encode_entry};
use crate::{Autopilot, Seq};

#[test]
fn every_line_of_the_sample_reads_and_writes_back_to_the_same_bytes() {
    let mut flows = FlowCache::default();
    let mut inlined = BTreeSet::new();
    for (line, at) in read_sample().lines().zip(1..) {
        let raw = parse(line);
        assert_eq!(raw.seq, Seq(at), "the sample is dense");
        let entry = decode_entry(raw, &mut flows).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(write(raw.seq, &encode_entry(&entry), &mut inlined), as_written_now(line), "line {at}");
    }
}

#[test]
fn the_sample_folds_and_is_what_this_version_would_write() {
    let mut flows = FlowCache::default();
    let read: Vec<JournalEntry> =
        read_sample().lines().map(|line| decode_entry(parse(line), &mut flows).expect("it reads")).collect();
    let mut tasks: BTreeMap<TaskId, Task> = BTreeMap::new();
    let mut autopilot = Autopilot::default();
    for entry in &read {
        autopilot.take(entry).expect("the sample is legal");
        if let Fact::Task(id, event) = &entry.fact {
            let task = apply(tasks.remove(id), *id, entry.at, event).expect("the sample is legal");
            tasks.insert(*id, task);
        }
    }
    assert_eq!(read, every_fact(), "a new variant needs a line at the end of the sample");
}

#[test]
fn an_unknown_field_is_ignored_and_an_unknown_kind_is_named() {
    let body = r#"{"attempt":1,"iteration":2,"mood":{"of":["the",3]}}"#;
    let raw = RawRow { seq: Seq(7), at_ms: 5, task: Some(1), kind: "iteration-began", body };
    let entry = decode_entry(raw, &mut FlowCache::default()).expect("new fields do not stop an old reader");
    let event = Event::IterationBegan { attempt: Attempt(1), iteration: 2, talk: SessionStart::New };
    assert_eq!(entry, JournalEntry { at: Timestamp(5), fact: Fact::Task(TaskId(1), event) });

    let error = decode_entry(RawRow { kind: "dreamt", ..raw }, &mut FlowCache::default())
        .expect_err("nobody knows it");
    assert_eq!(
        (error.seq, error.kind.as_str(), &error.what),
        (Seq(7), "dreamt", &FormatErrorKind::UnknownKind)
    );
    let error =
        decode_entry(RawRow { task: None, ..raw }, &mut FlowCache::default()).expect_err("whose is it?");
    assert_eq!(error.what, FormatErrorKind::NoTask);
    let error = decode_entry(RawRow { body: r#"{"attempt":1}"#, ..raw }, &mut FlowCache::default())
        .expect_err("half a body");
    assert!(matches!(error.what, FormatErrorKind::Body(_)), "{error}");
    assert!(error.to_string().contains("event 7"), "{error}");
}

#[test]
fn limits_that_say_nothing_of_conflicts_and_reviews_mean_what_they_always_meant() {
    let mut flows = FlowCache::from([("f0".to_owned(), Arc::new(sample_flow()))]);
    let limits = r#""iterations_max":1,"task_ms":2,"stuck_after":3,"restarts_max":4,"stalls_step_max":5,
        "stalls_total_max":6,"transients_max":7,"conflicts_max":8"#;
    let body = format!(r#"{{"flow":"f0","limits":{{{limits}}}}}"#);
    let raw = RawRow { seq: Seq(1), at_ms: 0, task: Some(1), kind: "bound", body: &body };
    let Fact::Task(_, Event::Bound { limits, .. }) = decode_entry(raw, &mut flows).expect("it reads").fact
    else {
        panic!("it binds")
    };
    assert_eq!((limits.conflict_ms, limits.overdue), (3_600_000, ConflictTimeoutAction::Defer));
    assert_eq!(limits.review, ReviewRule { mode: ReviewMode::Skip, iterations_max: 3, after: false });
}

#[test]
fn an_unknown_word_is_named_with_those_that_are_known() {
    for (kind, body, word, known) in [
        ("queue-held", r#"{"why":"moon","reason":""}"#, "moon", "runaway"),
        ("queue-over", r#"{"batch":1,"how":"sideways"}"#, "sideways", "dropped"),
        ("mode-set", r#"{"mode":"manual"}"#, "manual", "semi-auto"),
        ("run-paused", r#"{"why":"lunch","reason":""}"#, "lunch", "sprint-error"),
        ("run-ended", r#"{"run":1,"why":"bored"}"#, "bored", "one-done"),
        ("sprint-ended", r#"{"why":"rain"}"#, "rain", "cancelled"),
        ("checkpoint-made", r#"{"name":"a","commit":"b","why":"luck"}"#, "luck", "restore"),
    ] {
        let raw = RawRow { seq: Seq(7), at_ms: 5, task: None, kind, body };
        let error = decode_entry(raw, &mut FlowCache::default()).expect_err("nobody knows it").to_string();
        let named = [kind, "event 7", word, known].iter().all(|it| error.contains(it));
        assert!(named, "{kind}: {error}");
        let stray =
            decode_entry(RawRow { task: Some(1), ..raw }, &mut FlowCache::default()).expect_err("as above");
        assert!(matches!(stray.what, FormatErrorKind::Body(_)), "{stray}");
    }
    for (kind, body, word, known) in [
        ("signed", r#"{"decision":"maybe"}"#, "maybe", "deferred"),
        ("yielded", r#"{"attempt":1,"why":"drought"}"#, "drought", "shortage"),
        ("entered", r#"{"attempt":1,"step":"a","run":1,"opening":"door"}"#, "door", "queue"),
        (
            "opinion",
            r#"{"attempt":1,"findings":[{"id":"F1","severity":"dire","title":"a"}]}"#,
            "dire",
            "blocker",
        ),
    ] {
        let raw = RawRow { seq: Seq(7), at_ms: 5, task: Some(1), kind, body };
        let error = decode_entry(raw, &mut FlowCache::default()).expect_err("nobody knows it").to_string();
        assert!(error.contains(word) && error.contains(known), "{kind}: {error}");
    }
    let stray = RawRow { seq: Seq(7), at_ms: 5, task: Some(1), kind: "queue-resumed", body: "{}" };
    let error = decode_entry(stray, &mut FlowCache::default()).expect_err("the queue is nobody's");
    assert_eq!(error.what, FormatErrorKind::StrayTask);
}

/// Writes the sample when there is none. Run by hand, once per format.
#[test]
#[ignore = "writes the sample; run by hand when lines are added"]
fn write_the_sample() {
    let mut inlined = BTreeSet::new();
    let lines: Vec<String> = (1..)
        .map(Seq)
        .zip(&every_fact())
        .map(|(seq, entry)| write(seq, &encode_entry(entry), &mut inlined))
        .collect();
    let mut text = std::fs::read_to_string(sample_path()).unwrap_or_default();
    let kept: Vec<String> = text.lines().map(as_written_now).collect();
    assert!(lines.starts_with(&kept), "lines may only be added");
    for line in &lines[kept.len()..] {
        text += line;
        text.push('\n');
    }
    std::fs::write(sample_path(), text).expect("the sample can be written");
}

/// The limit of transient failures is kept for older readers but means nothing any more, so it is written with its former default.
fn as_written_now(line: &str) -> String {
    line.replace("\"transients_max\":7", "\"transients_max\":20")
}

/// Every kind that format 1 has.
pub(super) fn all_kinds() -> BTreeSet<&'static str> {
    every_fact().iter().map(|entry| encode_entry(entry).kind).collect()
}

fn sample_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("samples/v1.jsonl")
}

fn read_sample() -> String {
    std::fs::read_to_string(sample_path()).expect("the sample is kept")
}

pub(super) fn write(seq: Seq, written: &EncodedRow, inlined: &mut BTreeSet<String>) -> String {
    let body = match &written.flow {
        Some(flow) if inlined.insert(flow.digest.clone()) => written.body_with_flow(flow),
        Some(_) | None => written.short.clone(),
    };
    let task = written.task.map_or_else(|| "null".to_owned(), |task| task.to_string());
    let EncodedRow { at_ms, kind, .. } = written;
    format!(r#"{{"seq":{seq},"at_ms":{at_ms},"task":{task},"kind":"{kind}","body":{body}}}"#)
}

pub(super) fn parse(line: &str) -> RawRow<'_> {
    let (front, rest) = line.split_once(r#","body":"#).expect("a line has a body");
    let body = rest.strip_suffix('}').expect("a line is an object");
    let field = |name: &str| {
        let start = front.find(&format!("\"{name}\":")).expect("a line has all fields") + name.len() + 3;
        front[start..].split(',').next().expect("split gives one").trim_matches('"')
    };
    RawRow {
        seq: Seq(field("seq").parse().expect("a number")),
        at_ms: field("at_ms").parse().expect("a number"),
        task: field("task").parse().ok(),
        kind: field("kind"),
        body,
    }
}

/// A legal history with every variant in it.
fn every_fact() -> Vec<JournalEntry> {
    let mut facts = Facts { at: 1_700_000_000_000, entries: Vec::new() };
    engine_facts(&mut facts);
    spec_facts(&mut facts);
    work_facts(&mut facts);
    end_facts(&mut facts);
    touch_facts(&mut facts);
    queued_facts(&mut facts);
    queue_facts(&mut facts);
    autopilot_facts(&mut facts);
    opinion_facts(&mut facts);
    intervention_facts(&mut facts);
    aside_facts(&mut facts);
    staged_facts(&mut facts);
    annotated_facts(&mut facts);
    loop_facts(&mut facts);
    stride_facts(&mut facts);
    recovery_facts(&mut facts);
    folder_facts(&mut facts);
    issue_facts(&mut facts);
    haul_facts(&mut facts);
    proof_facts(&mut facts);
    ladder_facts(&mut facts);
    level_facts(&mut facts);
    informed_facts(&mut facts);
    evidence_facts(&mut facts);
    shortage_facts(&mut facts);
    mutation_facts(&mut facts);
    denial_facts(&mut facts);
    provider_facts(&mut facts);
    output_facts(&mut facts);
    facts.entries
}

struct Facts {
    at: i64,
    entries: Vec<JournalEntry>,
}

impl Facts {
    fn push(&mut self, fact: Fact) {
        self.at += 250;
        self.entries.push(JournalEntry { at: Timestamp(self.at), fact });
    }

    fn push_engine_event(&mut self, event: EngineEvent) {
        self.push(Fact::Engine(event));
    }

    fn push_task_event(&mut self, task: u32, event: Event) {
        self.push(Fact::Task(TaskId(task), event));
    }
}

fn engine_facts(facts: &mut Facts) {
    facts.push_engine_event(EngineEvent::Started { version: "0.1.0".to_owned() });
    facts.push_engine_event(EngineEvent::BaseMoved {
        from: None,
        to: sample_commit('a'),
        by: BaseMover::Person,
    });
    facts.push_engine_event(EngineEvent::BaseMoved {
        from: Some(sample_commit('a')),
        to: sample_commit('b'),
        by: BaseMover::Landing(TaskId(1)),
    });
    facts.push_engine_event(EngineEvent::BaseMoved {
        from: Some(sample_commit('b')),
        to: sample_commit('c'),
        by: BaseMover::Rebuild,
    });
    facts.push_engine_event(EngineEvent::Published {
        commit: sample_commit('c'),
        how: "fast-forward".to_owned(),
    });
    facts.push_engine_event(EngineEvent::PublishHeld {
        commit: sample_commit('c'),
        reason: "`a file` is \"dirty\"".to_owned(),
    });
    let states = [
        AccountState::UsedUp { until: Timestamp(1_700_000_900_000), guessed: false },
        AccountState::Troubled { until: Timestamp(1_700_000_900_000), tries: 2 },
        AccountState::LoggedOut { task: TaskId(1) },
        AccountState::Open,
    ];
    for state in states {
        facts.push_engine_event(EngineEvent::Account { account: "claude".to_owned(), state });
    }
    facts.push_engine_event(EngineEvent::Measured { report: sample_report(CheckOutcome::ALL.to_vec()) });
    let ends = [RunEnd::NothingLeft, RunEnd::Drained, RunEnd::Interrupted, RunEnd::Spent, RunEnd::Lost];
    for (run, why) in (1..).map(RunId).zip(ends) {
        let only = if run.0 == 1 { Vec::new() } else { vec![TaskId(1), TaskId(2)] };
        facts.push_engine_event(EngineEvent::RunStarted { run, slots: 3, only });
        facts.push_engine_event(EngineEvent::RunEnded { run, why });
    }
}

fn spec_facts(facts: &mut Facts) {
    facts.push_task_event(1, Event::Added { spec: TaskSpec::new("a title, and no more").expect("a title") });
    let mut spec = TaskSpec::new("ein Titel, „groß“ \\ \"genug\" 🦀").expect("a title");
    spec.body = "line one\n\tline two\u{0}\u{7f}".to_owned();
    spec.criteria = vec!["it holds".to_owned(), String::new()];
    spec.tags = ["critical", "area/x:y"].iter().map(|tag| tag.parse().expect("a tag")).collect();
    spec.priority = 0;
    spec.needs = [TaskId(1), TaskId(9)].into();
    spec.parent = Some(TaskId(1));
    spec.source = "file:a.md".to_owned();
    spec.flow = Some("loop".to_owned());
    spec.agent = Some("judge".to_owned());
    spec.draft = true;
    facts.push_task_event(2, Event::Added { spec: spec.clone() });
    for size in TaskSize::ALL {
        spec.size = Some(size);
        facts.push_task_event(2, Event::Edited { spec: spec.clone() });
    }
}

fn touch_facts(facts: &mut Facts) {
    let mut spec = TaskSpec::new("it says what it touches").expect("a title");
    let touches = ["src/lib.rs", "web/", "docs/**/*.md", "**", ".github"];
    spec.touches = touches.iter().map(|touch| touch.parse().expect("a path")).collect();
    facts.push_task_event(4, Event::Added { spec });
}

fn work_facts(facts: &mut Facts) {
    let limits = TaskLimits {
        iterations_max: 1,
        task_ms: 2,
        stuck_after: 3,
        restarts_max: 4,
        stalls_step_max: 5,
        stalls_total_max: 6,
        conflicts_max: 8,
        loops_max: 9,
        compact_percent: 10,
        attempt_budget: Budget { micro_usd: Some(11), tokens: None, turns: Some(12), time_ms: None },
        task_budget: Budget { micro_usd: None, tokens: Some(13), turns: None, time_ms: Some(14) },
        ..TaskLimits::default()
    };
    let driving =
        |style| AgentAssignment { profile: "default".to_owned(), account: "claude".to_owned(), style };
    facts.push_task_event(1, Event::Offered { head: sample_commit('d') });
    facts.push_task_event(
        1,
        Event::Bound {
            flow: Arc::new(sample_flow()),
            limits: limits.clone(),
            driving: driving(AgentDriveStyle::Fresh),
        },
    );
    facts.push_task_event(
        1,
        Event::Bound { flow: Arc::new(sample_flow()), limits, driving: driving(AgentDriveStyle::Session) },
    );
    let openings = [
        AttemptStart::Workspace,
        AttemptStart::FreshWorkspace,
        AttemptStart::Check,
        AttemptStart::Land,
        AttemptStart::Report,
    ];
    let mut attempt = Attempt(0);
    let mut enter = |facts: &mut Facts, opening| {
        attempt = attempt.next();
        facts.push_task_event(
            1,
            Event::Entered { attempt, step: sample_step("work"), run: RunId(1), opening },
        );
        attempt
    };
    let partings = [
        YieldReason::Drained,
        YieldReason::Stopped,
        YieldReason::Crashed,
        YieldReason::Lost,
        YieldReason::Stalled,
        YieldReason::NotStarted,
        YieldReason::Quota,
        YieldReason::Transient,
        YieldReason::Asked,
        YieldReason::GateBroken,
        YieldReason::NothingChanged,
        YieldReason::Machine,
        YieldReason::Budget,
        YieldReason::Overspent,
        YieldReason::Login,
        YieldReason::Looping,
        YieldReason::SessionGone,
        YieldReason::OutputMissing,
    ];
    for opening in openings {
        let attempt = enter(facts, opening);
        facts.push_task_event(1, Event::Yielded { attempt, why: YieldReason::Drained, feedback: None });
    }

    let attempt = enter(facts, AttemptStart::Workspace);
    facts.push_task_event(1, Event::WorkspaceMade { attempt, base: sample_commit('a') });
    for (iteration, (exit, verdict)) in (1..).zip(ends_of_iterations()) {
        let talk = match iteration % 3 {
            0 => SessionStart::New,
            rest => SessionStart::Resumed { session: "5f0c".to_owned(), compact: rest == 1 },
        };
        facts.push_task_event(1, Event::IterationBegan { attempt, iteration, talk });
        let usage = AgentUsage {
            tokens_in: 12,
            tokens_cached: 3,
            tokens_out: 34,
            turns: 4,
            micro_usd: 56,
            micro_usd_priced: 7,
            tokens_unpriced: 0,
            at_least: false,
        };
        let head = (iteration % 2 == 0).then(|| sample_commit('e'));
        let traces = match iteration % 2 {
            0 => AgentRunTraces::default(),
            _ => AgentRunTraces {
                quiet_ms: 0,
                revision: None,
                session: Some("5f0c".to_owned()),
                model: Some("opus".to_owned()),
                context: Some(ContextUsage { used: 10, size: 20 }),
                words: Some(Digest::new("77")),
                sandbox: Some("write".to_owned()),
                denials: 2,
            },
        };
        let took_ms = 1234;
        facts.push_task_event(
            1,
            Event::IterationEnded { attempt, iteration, exit, verdict, took_ms, usage, head, traces },
        );
    }
    for stop in
        [StopRequest::Pause, StopRequest::Interrupt, StopRequest::Cancel { reason: "enough".to_owned() }]
    {
        let attempt = enter(facts, AttemptStart::Check);
        facts.push_task_event(1, Event::StopAsked { stop });
        facts.push_task_event(
            1,
            Event::Yielded { attempt, why: YieldReason::Stopped, feedback: Some(sample_feedback()) },
        );
    }
    for why in partings {
        let attempt = enter(facts, AttemptStart::Check);
        facts.push_task_event(1, Event::Yielded { attempt, why, feedback: None });
    }
    let attempt = enter(facts, AttemptStart::Check);
    facts.push_task_event(1, Event::Collected { attempt, head: sample_commit('e'), leftovers: true });
    facts.push_task_event(
        1,
        Event::Verified { attempt, report: sample_report(CheckOutcome::ALL.to_vec()), evidence: None },
    );
    let attempt = enter(facts, AttemptStart::Check);
    let mut reused = sample_report(vec![CheckOutcome::Pass]);
    (reused.reused, reused.required) = (true, true);
    facts.push_task_event(1, Event::Verified { attempt, report: reused, evidence: None });
    let attempt = enter(facts, AttemptStart::Check);
    let paths = vec!["src/a.rs".to_owned(), "b \"b\"".to_owned()];
    facts.push_task_event(1, Event::Conflicted { attempt, base: sample_commit('a'), paths });
    let attempt = enter(facts, AttemptStart::Land);
    facts.push_task_event(1, Event::BaseMoved { attempt, to: sample_commit('b') });
    for warning in sample_warnings() {
        facts.push_task_event(1, Event::Warned(warning));
    }
    for wait in sample_waits() {
        facts.push_task_event(1, Event::Waited { wait, then: sample_step("work") });
    }
    facts.push_task_event(1, Event::Resumed { feedback: None });
    facts.push_task_event(1, Event::Waited { wait: WaitReason::Pause, then: sample_step("work") });
    facts.push_task_event(1, Event::Resumed { feedback: Some(sample_feedback()) });
    let concern = |code| ChangeConcern { code, detail: "tests/a.rs".to_owned() };
    let codes = [
        ConcernCode::ProtectedPath,
        ConcernCode::TestDeleted,
        ConcernCode::TestSkipped,
        ConcernCode::TestRemoved,
        ConcernCode::FewerTests,
    ];
    let concerns = codes.map(concern).to_vec();
    facts.push_task_event(1, Event::ReviewWanted { concerns: concerns.clone(), then: sample_step("work") });
    facts.push_task_event(1, Event::Reviewed { approved: true, note: "fine".to_owned() });
    facts.push_task_event(1, Event::ReviewWanted { concerns, then: sample_step("work") });
    facts.push_task_event(1, Event::Reviewed { approved: false, note: String::new() });
    for result in StepResult::ALL.into_iter().take(20) {
        let (step, to) = (sample_step("work"), EdgeTarget::Step(sample_step("work")));
        facts.push_task_event(1, Event::Left { attempt, step, result, to, feedback: None });
    }
    let attempt = enter(facts, AttemptStart::Land);
    facts.push_task_event(
        1,
        Event::Landed {
            attempt,
            commit: sample_commit('f'),
            base_before: sample_commit('a'),
            tree: Tree::new("7e7e"),
            proof: "tree 7e7e recomputed".to_owned(),
        },
    );
    let attempt = enter(facts, AttemptStart::Report);
    facts.push_task_event(1, Event::Reported { attempt, report: Digest::new("11"), certificate: None });
    let attempt = enter(facts, AttemptStart::Report);
    facts.push_task_event(
        1,
        Event::Reported { attempt, report: Digest::new("11"), certificate: Some(Digest::new("22")) },
    );
    let left = |to, feedback| Event::Left {
        attempt,
        step: sample_step("work"),
        result: StepResult::Done,
        to,
        feedback,
    };
    facts.push_task_event(1, left(EdgeTarget::End, Some(sample_feedback())));
}

fn end_facts(facts: &mut Facts) {
    let mut ready = TaskSpec::new("to end in every way").expect("a title");
    ready.draft = false;
    facts.push_task_event(3, Event::Added { spec: ready });
    for (nth, code) in EndCode::ALL.into_iter().take(22).enumerate() {
        let kind = EndKind::ALL[nth % EndKind::ALL.len()];
        let detail = if nth == 0 { String::new() } else { format!("because of {nth}") };
        facts.push_task_event(3, Event::Ended(Ending { kind, code, detail }));
        let feedback = (nth % 2 == 0).then(sample_feedback);
        facts.push_task_event(3, Event::Retried { fresh: nth % 3 == 0, feedback });
    }
    facts.push_task_event(3, Event::WorkspaceRemoved { kept: None });
    facts.push_task_event(3, Event::WorkspaceRemoved { kept: Some(sample_commit('9')) });
    facts.push_task_event(3, Event::Waited { wait: WaitReason::Slot, then: sample_step("work") });
    let left = Event::Left {
        attempt: Attempt(0),
        step: sample_step("work"),
        result: StepResult::Blocked,
        to: EdgeTarget::Stop,
        feedback: None,
    };
    facts.push_task_event(3, left);
}

/// What the landing queue and reviews mean for a task.
fn queued_facts(facts: &mut Facts) {
    facts.push_task_event(5, Event::Added { spec: TaskSpec::new("to stand in line").expect("a title") });
    let modes = [ReviewMode::Skip, ReviewMode::AutoApprove, ReviewMode::Batch, ReviewMode::PerTask]
        .into_iter()
        .chain([ReviewMode::Skip]);
    for ((nth, mode), overdue) in (1..).zip(modes).zip(ConflictTimeoutAction::ALL.into_iter().cycle()) {
        let review = ReviewRule { mode, iterations_max: nth, after: false };
        let limits =
            TaskLimits { conflict_ms: u64::from(nth) * 1_000, overdue, review, ..TaskLimits::default() };
        let driving = AgentAssignment {
            profile: "default".to_owned(),
            account: "claude".to_owned(),
            style: AgentDriveStyle::Fresh,
        };
        facts.push_task_event(5, Event::Bound { flow: Arc::new(sample_flow()), limits, driving });
    }
    let (mut attempt, batch) = (Attempt(0), BatchId(1));
    let mut enter = |facts: &mut Facts| {
        attempt = attempt.next();
        facts.push_task_event(
            5,
            Event::Entered {
                attempt,
                step: sample_step("land"),
                run: RunId(1),
                opening: AttemptStart::Queue,
            },
        );
        attempt
    };
    let attempt = enter(facts);
    let green = || sample_report(vec![CheckOutcome::Pass]);
    for unsure in [true, false] {
        facts.push_task_event(5, Event::LandingBegan { attempt, batch, report: green() });
        facts.push_task_event(5, Event::Requeued { attempt, unsure });
    }
    facts.push_task_event(
        5,
        Event::Ejected { attempt, batch, report: sample_report(vec![CheckOutcome::Fail]) },
    );
    facts.push_task_event(5, Event::SentBack { to: sample_commit('8') });
    let concern =
        ChangeConcern { code: ConcernCode::ReviewAsked, detail: "a person looks at every task".to_owned() };
    facts.push_task_event(5, Event::ReviewWanted { concerns: vec![concern], then: sample_step("land") });
    facts.push_task_event(5, Event::Reviewed { approved: true, note: "fine".to_owned() });
    for overdue in ConflictTimeoutAction::ALL {
        let (base, until) = (sample_commit('a'), Timestamp(1_700_000_900_000));
        let files = vec!["src/a.rs".to_owned(), "b \"b\"".to_owned()];
        let wait = WaitReason::Conflict { base, files, until, overdue };
        facts.push_task_event(5, Event::Waited { wait, then: sample_step("land") });
        facts.push_task_event(5, Event::Resumed { feedback: None });
    }
    let attempt = enter(facts);
    facts.push_task_event(5, Event::LandingBegan { attempt, batch, report: green() });
    facts.push_task_event(
        5,
        Event::Landed {
            attempt,
            commit: sample_commit('f'),
            base_before: sample_commit('a'),
            tree: Tree::new("7e7e"),
            proof: "tree 7e7e recomputed".to_owned(),
        },
    );
    facts.push_task_event(5, Event::ReviewOwed);
    for decision in ReviewDecision::ALL {
        let note = if decision == ReviewDecision::Approved { String::new() } else { "seen".to_owned() };
        facts.push_task_event(5, Event::Signed { decision, note });
    }
}

fn queue_facts(facts: &mut Facts) {
    let (one, two) = (BatchId(1), BatchId(2));
    let member =
        |task, head| BatchMember { task: TaskId(task), attempt: Attempt(task), head: sample_commit(head) };
    let members = || vec![member(1, 'd'), member(2, 'e')];
    let prefix = |digit| BatchPrefix { commit: sample_commit(digit), tree: Tree::new("7e7e") };
    let checked =
        |batch, count, outcome| QueueEvent::Checked { batch, count, report: sample_report(vec![outcome]) };
    let dropped =
        |batch| QueueEvent::Over { batch, how: BatchEnd::Dropped { reason: "T2 made it red".to_owned() } };
    let built = |batch, members, prefixes, crowded| QueueEvent::Built {
        batch,
        base: sample_commit('a'),
        members,
        prefixes,
        crowded,
    };
    let queue = [
        QueueEvent::Formed { batch: one, on: None, members: members() },
        built(one, members(), vec![prefix('1'), prefix('2')], Vec::new()),
        QueueEvent::CheckBegan { batch: one, count: 2 },
        QueueEvent::Formed { batch: two, on: Some(one), members: vec![member(3, 'f'), member(4, '3')] },
        built(two, vec![member(3, 'f')], vec![prefix('4')], vec![TaskId(4)]),
        checked(one, 2, CheckOutcome::Fail),
        dropped(two),
        QueueEvent::CheckBegan { batch: one, count: 1 },
        checked(one, 1, CheckOutcome::Pass),
        QueueEvent::LandingBegan { batch: one, count: 1 },
        QueueEvent::Over { batch: one, how: BatchEnd::Landed { count: 1, commit: sample_commit('1') } },
    ];
    for event in queue {
        facts.push_engine_event(EngineEvent::Queue(event));
    }
    for (nth, why) in HoldReason::ALL.into_iter().enumerate() {
        let until = (nth % 2 == 0).then_some(Timestamp(1_700_000_900_000));
        facts.push_engine_event(EngineEvent::Queue(QueueEvent::Held {
            why,
            reason: format!("because of {nth}"),
            until,
        }));
        facts.push_engine_event(EngineEvent::Queue(QueueEvent::Resumed));
    }
}

fn autopilot_facts(facts: &mut Facts) {
    for (run, why) in (6..).map(RunId).zip([RunEnd::Paused, RunEnd::Goal, RunEnd::OneDone]) {
        facts.push_engine_event(EngineEvent::RunStarted { run, slots: 3, only: Vec::new() });
        facts.push_engine_event(EngineEvent::RunEnded { run, why });
    }
    for mode in PilotMode::ALL {
        facts.push_engine_event(EngineEvent::Pilot(PilotEvent::ModeSet { mode }));
    }
    facts.push_engine_event(EngineEvent::Pilot(PilotEvent::Assigned { task: TaskId(2) }));
    facts.push_engine_event(EngineEvent::Pilot(PilotEvent::Settled));
    for why in PauseReason::ALL {
        facts
            .push_engine_event(EngineEvent::Pilot(PilotEvent::Paused { why, reason: why.word().to_owned() }));
        facts.push_engine_event(EngineEvent::Pilot(PilotEvent::Resumed));
    }
    let goals = [
        SprintEndCondition::Count(3),
        SprintEndCondition::Duration { ms: 60_000 },
        SprintEndCondition::Until(Timestamp(1_700_000_900_000)),
        SprintEndCondition::NoReady,
    ];
    for ((sprint, goal), why) in (1..).map(SprintId).zip(goals).zip(SprintEnd::ALL) {
        let mut plan = SprintSpec::new(goal);
        if sprint.0 == 2 {
            plan.only = [TaskId(1), TaskId(2)].into();
            plan.parents = [TaskId(3)].into();
            plan.tags_in = ["critical", "area/x:y"].iter().map(|tag| tag.parse().expect("a tag")).collect();
            plan.tags_out = ["later"].iter().map(|tag| tag.parse().expect("a tag")).collect();
            (plan.checkpoint, plan.pause_on_error, plan.batch_review) = (false, true, true);
        }
        facts.push_engine_event(EngineEvent::Sprint(SprintEvent::Started { sprint, plan, ready: 5 }));
        facts.push_engine_event(EngineEvent::Sprint(SprintEvent::Paused { reason: "lunch".to_owned() }));
        facts.push_engine_event(EngineEvent::Sprint(SprintEvent::Resumed));
        facts.push_engine_event(EngineEvent::Sprint(SprintEvent::Completing { why }));
        facts.push_engine_event(EngineEvent::Sprint(SprintEvent::Ended { why }));
    }
    for (nth, why) in (1..).zip(CheckpointReason::ALL) {
        let (name, commit) = (format!("cp-{nth}"), sample_commit('a'));
        facts.push_engine_event(EngineEvent::Checkpoint(CheckpointEvent::Made { name, commit, why }));
    }
    facts.push_engine_event(EngineEvent::Checkpoint(CheckpointEvent::Dropped { name: "cp-1".to_owned() }));
}

/// What reviewers said, and what the agent said to that.
fn opinion_facts(facts: &mut Facts) {
    facts.push_task_event(5, Event::Replied { text: "It is checked by the caller.".to_owned() });
    facts.push_task_event(6, Event::Added { spec: TaskSpec::new("Read by a reviewer").expect("a title") });
    let finding = |(nth, severity)| Finding {
        id: format!("F{nth}"),
        severity,
        title: "It trusts what it should check".to_owned(),
        detail: if nth == 3 { String::new() } else { "The path comes\nfrom outside.".to_owned() },
        place: if nth == 3 { String::new() } else { "src/lib.rs:7".to_owned() },
        resolved: nth == 2,
    };
    let findings = (1..).zip(FindingSeverity::ALL).map(finding).collect();
    let attempt = Attempt(0);
    facts.push_task_event(
        6,
        Event::Opinion { attempt, head: Some(sample_commit('9')), findings: Some(findings) },
    );
    facts.push_task_event(6, Event::Opinion { attempt, head: None, findings: None });
    let concern = ChangeConcern { code: ConcernCode::Disputed, detail: "F1".to_owned() };
    facts.push_task_event(6, Event::ReviewWanted { concerns: vec![concern], then: sample_step("land") });
}

/// What people said while it went on.
fn intervention_facts(facts: &mut Facts) {
    let task = 7;
    facts.push_task_event(task, Event::Added { spec: TaskSpec::new("Told something").expect("a title") });
    facts.push_task_event(
        task,
        Event::Messaged { about: None, text: "use the \"other\" parser\nplease".to_owned() },
    );
    for reason in ["", "the design is not settled"] {
        facts.push_task_event(task, Event::Held { reason: reason.to_owned() });
        facts.push_task_event(task, Event::Released);
    }
    let limits =
        TaskLimitOverrides { iterations_max: Some(80), task_ms: Some(3_600_000), micro_usd: Some(5_000_000) };
    facts.push_task_event(task, Event::LimitsSet { limits });
    facts.push_task_event(task, Event::LimitsSet { limits: TaskLimitOverrides { task_ms: None, ..limits } });
    let reason = || "no key".to_owned();
    let rounds = [
        (StopRequest::Redirect, YieldReason::Redirected),
        (StopRequest::Block { reason: reason() }, YieldReason::Held),
    ];
    for (attempt, (stop, why)) in (1..).map(Attempt).zip(rounds) {
        let (step, run, opening) = (sample_step("work"), RunId(1), AttemptStart::Check);
        facts.push_task_event(task, Event::Entered { attempt, step, run, opening });
        facts.push_task_event(task, Event::StopAsked { stop });
        facts.push_task_event(task, Event::Yielded { attempt, why, feedback: None });
    }
    let ending = Ending { kind: EndKind::Blocked, code: EndCode::Person, detail: reason() };
    facts.push_task_event(task, Event::Ended(ending));
}

/// What a person wrote into the margin.
fn annotated_facts(facts: &mut Facts) {
    for (name, impact) in ["plan.md", "notes/a.md", "plan.md", "plan.md"].into_iter().zip(Mattering::ALL) {
        let (name, paper) = (name.to_owned(), Digest::new("dd"));
        let event = StagedEvent::Annotated { name, paper, steps: 3, covers: vec![2], impact };
        facts.push_task_event(8, Event::Staged(event));
    }
}

/// Plans, judges, an objective and its stages, and a person who goes about them by hand.
fn staged_facts(facts: &mut Facts) {
    let task = 8;
    let attempt = Attempt(0);
    facts.push_task_event(task, Event::Added { spec: TaskSpec::new("In stages").expect("a title") });
    let mut staged = |event| facts.push_task_event(task, Event::Staged(event));
    let requirement = |(number, weight)| {
        Requirement::new(number, "it \"holds\"", if number == 1 { "see it" } else { "" }, weight)
    };
    let requirements = (1..).zip(Weight::ALL).map(requirement).collect();
    let items = vec![ObjectiveItem { text: "One part".to_owned(), requirements }];
    staged(StagedEvent::ObjectiveSet { items: items.clone(), constraints: vec!["small".to_owned()] });
    staged(StagedEvent::ObjectiveSet { items, constraints: Vec::new() });
    staged(StagedEvent::ObjectiveShown);
    staged(StagedEvent::ObjectiveConfirmed);
    staged(StagedEvent::StageBegan { number: 1, focus: vec![3, 2] });
    staged(StagedEvent::Planned {
        attempt,
        paper: Digest::new("aa"),
        steps: 4,
        covers: vec![2, 3],
        approach: String::new(),
    });
    staged(StagedEvent::Planned {
        attempt,
        paper: Digest::new("bb"),
        steps: 0,
        covers: Vec::new(),
        approach: String::new(),
    });
    staged(StagedEvent::PapersKept { attempt, papers: vec![("notes.md".to_owned(), Digest::new("cc"))] });
    staged(StagedEvent::Advanced { attempt, done: 2 });
    for (number, impact) in (1..).zip(RefinementImpact::ALL) {
        staged(StagedEvent::Refined { number, text: "in \"capitals\"".to_owned() });
        staged(StagedEvent::RefinementWeighed { number, impact });
    }
    staged(StagedEvent::RefinementsTaken { numbers: vec![1, 2] });
    staged(StagedEvent::RefinementWithdrawn { number: 3 });
    for checkpoint in GatePoint::ALL {
        let whole = checkpoint == GatePoint::PostExec;
        let judged = JudgeResult {
            checkpoint,
            stage: whole.then_some(1),
            head: whole.then(|| sample_commit('9')),
            scores: whole.then(|| Scores::new([900, 800, 700, 600, 500, 1000]).expect("in range")),
            composite: whole.then_some(777_500),
            result: checkpoint.pass_result(),
            reasons: if whole { Vec::new() } else { vec!["too \"thin\"".to_owned()] },
            coverage: if whole { BTreeMap::from([(2, 750), (3, 1000)]) } else { BTreeMap::new() },
            findings: Vec::new(),
            at: Timestamp(7),
        };
        staged(StagedEvent::Judged { attempt, judged });
    }
    for (progress, previous) in [
        (StageProgress::Stuck, None),
        (StageProgress::NoCloser, Some(1)),
        (StageProgress::Closer, Some(2)),
        (StageProgress::Satisfied, None),
    ] {
        staged(StagedEvent::Converged {
            attempt,
            previous,
            current: 9_500,
            progress,
            commit: sample_commit('9'),
        });
    }
    let exclusion = Exclusion {
        stage: 2,
        focus: vec![3],
        direction: "stage 2 for R3".to_owned(),
        reason: "it came no closer".to_owned(),
        abandoned: sample_commit('8'),
        from: 5_000,
        to: 5_000,
    };
    staged(StagedEvent::GivenUp { exclusion });
    for alone in [false, true] {
        facts.push_task_event(task, Event::Directed { step: sample_step("plan"), alone });
    }
    let ended = |code| Ending { kind: EndKind::Blocked, code, detail: String::new() };
    for code in [EndCode::EmptyTarget, EndCode::CheckBlocked, EndCode::CheckFailed, EndCode::DirectionsUsedUp]
    {
        facts.push_task_event(task, Event::Ended(ended(code)));
    }
    facts.push_task_event(
        task,
        Event::Ended(Ending { kind: EndKind::Done, code: EndCode::Accepted, detail: String::new() }),
    );
    facts.push_task_event(task, Event::Reopened { text: "and a \"second\" one".to_owned() });
    let kind = StepKind::Agent { prompt: "exec".to_owned(), output: Vec::new(), iterate: true, every: 3 };
    let exec = FlowStep {
        name: sample_step("exec"),
        kind,
        phase: "executing".to_owned(),
        before: Some("review".to_owned()),
        agent: None,
        on: vec![FlowEdge { result: StepResult::Done, to: EdgeTarget::End, max: None }],
    };
    let flow = Flow {
        name: "by hand".to_owned(),
        about: String::new(),
        entry: sample_step("exec"),
        entries: BTreeMap::new(),
        style: None,
        commands: BTreeMap::from([(
            "exec".to_owned(),
            BTreeMap::from([("review".to_owned(), sample_step("exec"))]),
        )]),
        steps: vec![exec],
    };
    let tuning = Some(params_for_types(&["architecture"]));
    let (limits, driving) = (TaskLimits { tuning, ..TaskLimits::default() }, AgentAssignment::default());
    facts.push_task_event(task, Event::Bound { flow: Arc::new(flow), limits, driving });
    let (attempt, run, opening) = (Attempt(1), RunId(1), AttemptStart::Workspace);
    facts.push_task_event(task, Event::Entered { attempt, step: sample_step("exec"), run, opening });
    facts.push_task_event(task, Event::WorkspaceMade { attempt, base: sample_commit('1') });
    facts.push_task_event(task, Event::IterationBegan { attempt, iteration: 1, talk: SessionStart::New });
    facts.push_task_event(
        task,
        Event::IterationEnded {
            attempt,
            iteration: 1,
            exit: AgentExit::Code(0),
            verdict: Verdict::Checkpoint { reason: "the \"API\" is another".to_owned() },
            took_ms: 5,
            usage: AgentUsage::default(),
            head: None,
            traces: AgentRunTraces::default(),
        },
    );
    let mut report = sample_report(vec![CheckOutcome::Fail; 6]);
    for (command, dimension) in report.commands.iter_mut().zip(Dimension::ALL) {
        command.caps = Some(dimension);
    }
    facts.push_engine_event(EngineEvent::Measured { report });
}

/// What sessions of clients ask for.
fn loop_facts(facts: &mut Facts) {
    let session = "main \"1\"".to_owned();
    facts.push_engine_event(EngineEvent::Auto(AutoEvent::Started {
        session: session.clone(),
        module: "AiTasks/auth-refactor".to_owned(),
        task: TaskId(1),
        iterations_max: 20,
        minutes_max: 30,
    }));
    facts.push_engine_event(EngineEvent::Auto(AutoEvent::StopAsked { session }));
}

/// What was done when steps failed.
fn recovery_facts(facts: &mut Facts) {
    let step = sample_step("code");
    let mut fact = |event| facts.push_task_event(9, Event::Recovery(event));
    for (tier, exit) in [
        (RecoveryTier::Reconcile, Some(1)),
        (RecoveryTier::Pattern, Some(0)),
        (RecoveryTier::Agent, Some(-1)),
        (RecoveryTier::Person, None),
    ] {
        fact(RecoveryEvent::Tried {
            step: step.clone(),
            symptom: "silent-no-op".to_owned(),
            tier,
            action: "retry".to_owned(),
            exit,
            tail: exit.map(|_| "all \"done\"\n".to_owned()).unwrap_or_default(),
            took_ms: None,
            known: Vec::new(),
        });
    }
    let said = || "the branch was \"pushed\"".to_owned();
    let ops = vec![
        RecoveryOp::CommitLeftovers,
        RecoveryOp::AmendSignOff,
        RecoveryOp::RebaseOntoBase,
        RecoveryOp::MergeBase,
        RecoveryOp::PushBranch,
        RecoveryOp::OpenPr,
        RecoveryOp::Comment { text: said() },
        RecoveryOp::SetPhaseLabel { phase: landfall_model::issue::IssuePhase::Ready },
        RecoveryOp::RerunChecks,
        RecoveryOp::MarkReview,
        RecoveryOp::RunCheck { name: "test".to_owned() },
    ];
    for action in PlanAction::ALL {
        let ops = if action == PlanAction::Recover { ops.clone() } else { Vec::new() };
        let (step, action, rationale) = (step.clone(), Some(action), said());
        fact(RecoveryEvent::Diagnosed { step, action, rationale, ops });
    }
    let (action, rationale, ops) = (None, String::new(), Vec::new());
    fact(RecoveryEvent::Diagnosed { step: step.clone(), action, rationale, ops });
    for outcome in recovery::RecoveryOutcome::ALL {
        let tried = RecoveryEvent::Tried {
            step: step.clone(),
            symptom: "dco-missing".to_owned(),
            tier: RecoveryTier::Pattern,
            action: "sign-off".to_owned(),
            exit: None,
            tail: String::new(),
            took_ms: None,
            known: Vec::new(),
        };
        fact(tried);
        let detail = if outcome == recovery::RecoveryOutcome::Failed { said() } else { String::new() };
        fact(RecoveryEvent::Ended { step: step.clone(), outcome, detail });
    }
    fact(RecoveryEvent::Proposed { symptom: "silent-no-op".to_owned() });
}

/// What happens beside tasks and runs.
fn aside_facts(facts: &mut Facts) {
    facts.push_engine_event(EngineEvent::DiscoveryDropped { number: 3 });
    let usage = AgentUsage {
        tokens_in: 900,
        tokens_cached: 100,
        tokens_out: 40,
        turns: 1,
        micro_usd: 7_000,
        micro_usd_priced: 0,
        tokens_unpriced: 0,
        at_least: false,
    };
    let (about, profile) = ("proposal".to_owned(), "default".to_owned());
    facts.push_engine_event(EngineEvent::Consulted { about, profile, usage, took_ms: 12_000 });
    let member = BatchMember { task: TaskId(4), attempt: Attempt(4), head: sample_commit('3') };
    let (batch, prefix) = (BatchId(3), BatchPrefix { commit: sample_commit('5'), tree: Tree::new("7e7e") });
    for event in [
        QueueEvent::Formed { batch, on: None, members: vec![member.clone()] },
        QueueEvent::Built {
            batch,
            base: sample_commit('1'),
            members: vec![member],
            prefixes: vec![prefix],
            crowded: Vec::new(),
        },
        QueueEvent::CheckBegan { batch, count: 1 },
        QueueEvent::Checked { batch, count: 1, report: sample_report(vec![CheckOutcome::Pass]) },
        QueueEvent::Doubted { batch, count: 1 },
        QueueEvent::Over { batch, how: BatchEnd::Dropped { reason: "a person must look at T4".to_owned() } },
    ] {
        facts.push_engine_event(EngineEvent::Queue(event));
    }
    let detail = "`workspace.after_run` ended with exit code 1".to_owned();
    facts.push_task_event(6, Event::Warned(Warning::HookFailed { detail }));
}

/// What was seen in the folder of a module.
fn folder_facts(facts: &mut Facts) {
    let what = "`status` was set to \"review\" by hand".to_owned();
    facts.push_task_event(9, Event::Warned(Warning::Folder { what }));
}

/// What an agent with a loop of its own says.
fn stride_facts(facts: &mut Facts) {
    let task = 9;
    facts.push_task_event(task, Event::Added { spec: TaskSpec::new("Walks by itself").expect("a title") });
    for style in [AgentDriveStyle::Own, AgentDriveStyle::Dispatch] {
        let driving = AgentAssignment { profile: "default".to_owned(), account: "claude".to_owned(), style };
        let flow = Arc::new(Flow { style: Some(style), ..sample_flow() });
        facts.push_task_event(task, Event::Bound { flow, limits: TaskLimits::default(), driving });
    }
    let (attempt, iteration) = (Attempt(1), 1);
    let (run, opening) = (RunId(1), AttemptStart::FreshWorkspace);
    facts.push_task_event(task, Event::Entered { attempt, step: sample_step("work"), run, opening });
    facts.push_task_event(task, Event::WorkspaceMade { attempt, base: sample_commit('a') });
    facts.push_task_event(task, Event::IterationBegan { attempt, iteration, talk: SessionStart::New });
    let stride = LoopStep {
        step: "check".to_owned(),
        result: "PASS".to_owned(),
        next: "exec".to_owned(),
        checkpoint: "post-plan".to_owned(),
        iteration: Some(2),
        compactions: 1,
        mark: "00000000000000a1".to_owned(),
    };
    facts.push_task_event(task, Event::Strode { attempt, stride });
    let stride =
        LoopStep { step: "executing".to_owned(), mark: "00000000000000a2".to_owned(), ..LoopStep::default() };
    facts.push_task_event(task, Event::Strode { attempt, stride });
    let ended = Event::IterationEnded {
        attempt,
        iteration,
        exit: AgentExit::Code(0),
        verdict: Verdict::Continue,
        took_ms: 1_000,
        usage: AgentUsage::default(),
        head: None,
        traces: AgentRunTraces { revision: Some(Digest::new("f00d")), ..AgentRunTraces::default() },
    };
    facts.push_task_event(task, ended);
}

fn ends_of_iterations() -> Vec<(AgentExit, Verdict)> {
    let text = |text: &str| text.to_owned();
    let not_started = AgentExit::NotStarted { detail: text("no such file"), hopeless: true };
    let over_budget = AgentExit::OverBudget { scope: BudgetScope::Day, what: text("$2.00 of $1.00") };
    let refused = Verdict::NotStarted { detail: text("no such file"), hopeless: true };
    vec![
        (AgentExit::Code(0), Verdict::Complete),
        (AgentExit::Code(-1), Verdict::Blocked { reason: text("no key") }),
        (AgentExit::Signal(9), Verdict::Pending { question: text("which one?") }),
        (AgentExit::Deadline, Verdict::OutOfTime),
        (AgentExit::Silent, Verdict::Stalled),
        (AgentExit::Asked, Verdict::Stopped),
        (not_started, refused),
        (AgentExit::Lost, Verdict::Lost),
        (AgentExit::Code(0), Verdict::Continue),
        (AgentExit::Code(1), Verdict::Quota { until: None }),
        (AgentExit::Code(1), Verdict::Quota { until: Some(Timestamp(1_700_000_900_000)) }),
        (AgentExit::Code(1), Verdict::Transient { detail: text("overloaded") }),
        (AgentExit::Code(1), Verdict::Crashed { detail: text("exit code 1") }),
        (AgentExit::Code(1), Verdict::Unauthorized { detail: text("401") }),
        (AgentExit::Code(1), Verdict::SessionGone),
        (AgentExit::Looping, Verdict::Looping),
        (over_budget, Verdict::OverBudget { scope: BudgetScope::Task, what: text("$2.00 of $1.00") }),
        (AgentExit::ContextUsedUp, Verdict::ContextUsedUp),
    ]
}

fn sample_warnings() -> Vec<Warning> {
    let text = |text: &str| text.to_owned();
    vec![
        Warning::Stuck { iterations: 5 },
        Warning::NearIterationsMax { used: 40, max: 50 },
        Warning::VerificationEmpty,
        Warning::OptionalFailed { command: text("lint") },
        Warning::Flaky { command: text("tests") },
        Warning::SignalMalformed { code: text("SIGNAL_UNKNOWN"), text: text("<landfall>HM</landfall>") },
        Warning::LeftoversCommitted,
        Warning::SettingsTouched { path: text("~/.claude/settings.json") },
        Warning::Discovery { global: true, text: text("the tests need a database") },
    ]
}

fn sample_waits() -> Vec<WaitReason> {
    let text = |text: &str| text.to_owned();
    vec![
        WaitReason::Dependency(vec![TaskId(2), TaskId(3)]),
        WaitReason::Slot,
        WaitReason::Quota { until: Timestamp(1_700_000_900_000), guessed: false },
        WaitReason::Login { account: text("claude"), detail: text("401"), asker: TaskId(1) },
        WaitReason::Budget { what: text("$2.00 of $1.00"), until: None },
        WaitReason::Budget { what: text("$2.00 of $1.00"), until: Some(Timestamp(1_700_000_900_000)) },
        WaitReason::Question { text: text("which one?") },
        WaitReason::Backoff { until: Timestamp(1_700_000_900_000), cause: text("a crash") },
        WaitReason::Disk { detail: text("3 GiB left") },
        WaitReason::Pause,
        WaitReason::GateBroken { command: text("tests"), detail: text("exit 127") },
    ]
}

fn sample_flow() -> Flow {
    let text = |text: &str| text.to_owned();
    let kinds = [
        StepKind::Agent { prompt: text("work"), output: vec![text("plan.md")], iterate: true, every: 0 },
        StepKind::Verify,
        StepKind::Check { checkpoint: GatePoint::PostPlan, threshold: 700 },
        StepKind::Review,
        StepKind::Land,
        StepKind::Report,
        StepKind::Ask { question: text("which one?") },
        StepKind::Split,
        StepKind::Target,
        StepKind::Converge,
    ];
    let edge = |result, to, max| FlowEdge { result, to, max };
    let edges = vec![
        edge(StepResult::Done, EdgeTarget::Step(sample_step("verify")), Some(3)),
        edge(StepResult::Blocked, EdgeTarget::Stop, None),
        edge(StepResult::MidExec, EdgeTarget::End, None),
    ];
    let steps = kinds.into_iter().enumerate().map(|(nth, kind)| FlowStep {
        name: sample_step(if nth == 0 { "work" } else { kind.word() }),
        phase: format!("phase/{}", kind.word()),
        before: None,
        agent: None,
        kind,
        on: if nth == 0 { edges.clone() } else { Vec::new() },
    });
    Flow {
        name: text("every"),
        about: text("Every kind of step."),
        entry: sample_step("work"),
        entries: [(text("phase/code"), sample_step("work"))].into(),
        commands: BTreeMap::new(),
        style: None,
        steps: steps.collect(),
    }
}

fn sample_report(outcomes: Vec<CheckOutcome>) -> GateReport {
    let result = |(nth, outcome): (usize, CheckOutcome)| CommandResult {
        name: format!("check {nth}"),
        command: "cargo test".to_owned(),
        required: nth % 2 == 0,
        outcome,
        exit: (nth > 0).then_some(nth as i32),
        took_ms: 10,
        limit_ms: 600_000,
        tests: (nth > 1).then_some(17),
        excerpt: if nth == 3 { "\u{1b}[31mFAILED\u{1b}[0m\n".to_owned() } else { String::new() },
        caps: None,
        denied: Vec::new(),
        copied_from_base: false,
    };
    GateReport {
        base: sample_commit('a'),
        head: sample_commit('e'),
        commit: sample_commit('f'),
        tree: Tree::new("7e7e"),
        config: Digest::new("c0"),
        environment: Digest::new("e0"),
        commands: outcomes.into_iter().enumerate().map(result).collect(),
        took_ms: 99,
        reused: false,
        required: false,
        sandbox: None,
    }
}

fn sample_feedback() -> Feedback {
    Feedback { about: "verification".to_owned(), text: "a test failed\n".to_owned() }
}

fn sample_commit(digit: char) -> Commit {
    Commit::new(&digit.to_string().repeat(40))
}

fn sample_step(name: &str) -> StepName {
    StepName::new(name)
}

/// An attempt that does something about a failure, and one that could not.
fn ladder_facts(facts: &mut Facts) {
    let attempt = Attempt(2);
    let (step, run, opening) = (sample_step("observe"), RunId(1), AttemptStart::Recover);
    let task = 12;
    facts.push_task_event(task, Event::Retried { fresh: false, feedback: None });
    facts.push_task_event(task, Event::Entered { attempt, step, run, opening });
    facts.push_task_event(task, Event::Yielded { attempt, why: YieldReason::Recovered, feedback: None });
    let (kind, code) = (EndKind::Blocked, EndCode::RecoveryFailed);
    facts.push_task_event(
        task,
        Event::Ended(Ending { kind, code, detail: "step `offer` failed by `dco-missing`".to_owned() }),
    );
}

/// A whole whose parts come one after another.
fn level_facts(facts: &mut Facts) {
    let (task, attempt) = (12, Attempt(2));
    let of = Event::Issue;
    facts.push_task_event(task, of(IssueEvent::PartsCame { over: vec![10, 8], levels: 1 }));
    let failing = vec![("the door is quiet".to_owned(), "it creaks".to_owned())];
    facts.push_task_event(task, of(IssueEvent::Levelled { attempt, failing }));
    let left = SubIssueEnd { number: 8, task: Some(TaskId(2)), end: SubIssueOutcome::Left };
    facts.push_task_event(task, of(IssueEvent::PartsOver(vec![left])));
}

fn issue_facts(facts: &mut Facts) {
    let (task, attempt) = (12, Attempt(1));
    facts.push_task_event(task, Event::Added { spec: TaskSpec::new("Follows an issue").expect("a title") });
    let acts = TrackerOperation::ALL.into_iter().map(|act| FlowStep {
        name: sample_step(act.word()),
        kind: StepKind::Tracker { act },
        phase: "verify".to_owned(),
        before: None,
        agent: Some("reader".to_owned()),
        on: act
            .required_results()
            .iter()
            .map(|result| FlowEdge { result: *result, to: EdgeTarget::End, max: None })
            .collect(),
    });
    let flow = Flow {
        name: "issue".to_owned(),
        about: String::new(),
        entry: sample_step("observe"),
        entries: BTreeMap::new(),
        commands: BTreeMap::new(),
        style: None,
        steps: acts.collect(),
    };
    let limits = TaskLimits::default();
    let driving = AgentAssignment {
        profile: "default".to_owned(),
        account: "claude".to_owned(),
        style: AgentDriveStyle::Fresh,
    };
    facts.push_task_event(task, Event::Bound { flow: Arc::new(flow), limits, driving });
    let (run, opening) = (RunId(1), AttemptStart::Exchange);
    facts.push_task_event(task, Event::Entered { attempt, step: sample_step("observe"), run, opening });
    let of = Event::Issue;
    facts.push_task_event(task, of(IssueEvent::Wanted(IssueOptions::default())));
    facts.push_task_event(
        task,
        of(IssueEvent::Wanted(IssueOptions {
            way: Some(IssueRoute::Pr),
            depth: Some(ReviewDepth::Full),
            accept: false,
            always_pr: true,
        })),
    );
    let bare = IssueSnapshot { number: 7, open: true, ..IssueSnapshot::default() };
    facts.push_task_event(task, of(IssueEvent::Seen { attempt, seen: Box::new(bare) }));
    for (phase, state) in IssuePhase::ALL
        .into_iter()
        .zip([PullRequestState::Open, PullRequestState::Closed, PullRequestState::Merged].into_iter().cycle())
    {
        let pr = PullRequestSnapshot {
            number: 9,
            url: "https://forge.example/9".to_owned(),
            state,
            head: Some(sample_commit('d')),
            reviewed: true,
        };
        let seen = IssueSnapshot {
            number: 7,
            words: ("Fix the door".to_owned(), "It \"creaks\".\n".to_owned()),
            open: false,
            phase: Some(phase),
            labels: vec!["triaged".to_owned()],
            triaged: true,
            size: Some(TaskSize::M),
            kind: Some("bug".to_owned()),
            pr: Some(pr),
            spec_file: Some("docs/spec/issue-7-door.md".to_owned()),
            commit: Some(sample_commit('e')),
            reopened: Some(Timestamp(5)),
            parts: 2,
            blockers: vec!["#3".to_owned(), "other/place#4".to_owned()],
            side_base: false,
        };
        facts.push_task_event(task, of(IssueEvent::Seen { attempt, seen: Box::new(seen) }));
    }
    for way in [IssueRoute::Patch, IssueRoute::Pr, IssueRoute::Split] {
        for depth in ReviewDepth::ALL {
            facts.push_task_event(
                task,
                of(IssueEvent::Routed(RoutingDecision { size: Some(TaskSize::XL), way, spec: true, depth })),
            );
        }
    }
    let pr =
        PullRequestRef { number: 9, url: "https://forge.example/9".to_owned(), head: sample_commit('d') };
    facts.push_task_event(task, of(IssueEvent::Offered { attempt, pr }));
    let names = || vec!["build / linux".to_owned()];
    let checks = [
        CiStatus::Absent,
        CiStatus::Running(names()),
        CiStatus::Passed,
        CiStatus::Failed(names()),
        CiStatus::PreExisting(names()),
        CiStatus::Broken(names()),
    ];
    for ci in checks {
        facts.push_task_event(task, of(IssueEvent::Checks { attempt, ci }));
    }
    let outcomes = [
        VerifyOutcome::Done,
        VerifyOutcome::LeftOver(2),
        VerifyOutcome::Reopen { iteration: 1 },
        VerifyOutcome::Exhausted { iteration: 3 },
        VerifyOutcome::Waiting,
        VerifyOutcome::Unsure,
    ];
    let results = [
        VerifyResult::Pass,
        VerifyResult::Fail,
        VerifyResult::Uncertain,
        VerifyResult::Skipped,
        VerifyResult::Pending,
        VerifyResult::PostMerge,
    ];
    for outcome in outcomes {
        let item = |result| ("the door is quiet".to_owned(), result, "exit code 0".to_owned());
        let accepted = AcceptanceOutcome { items: results.into_iter().map(item).collect(), outcome };
        facts.push_task_event(task, of(IssueEvent::Accepted { attempt, accepted }));
    }
    facts.push_task_event(task, of(IssueEvent::Looked { attempt }));
    facts.push_task_event(task, of(IssueEvent::Reworked { attempt }));
    let part = SubIssue {
        number: 8,
        title: "Hinges".to_owned(),
        size: Some(TaskSize::S),
        done: false,
        at_verify: false,
        needs: vec![7],
    };
    let done = SubIssue {
        number: 10,
        title: "Paint".to_owned(),
        size: None,
        done: true,
        at_verify: false,
        needs: Vec::new(),
    };
    facts.push_task_event(task, of(IssueEvent::Parted { attempt, parts: vec![part, done] }));
    let end = |number, task, end| SubIssueEnd { number, task, end };
    facts.push_task_event(
        task,
        of(IssueEvent::PartsOver(vec![
            end(8, Some(TaskId(2)), SubIssueOutcome::Failed("no hinge fits".to_owned())),
            end(9, None, SubIssueOutcome::Skipped(8)),
            end(10, None, SubIssueOutcome::Done),
        ])),
    );
    for wait in [WaitReason::Parts, WaitReason::Blockers { by: vec!["#3".to_owned()] }] {
        facts.push_task_event(task, Event::Waited { wait, then: sample_step("observe") });
        facts.push_task_event(task, Event::Resumed { feedback: None });
    }
    for code in [EndCode::AcceptanceFailed, EndCode::PartsFailed, EndCode::Tracker] {
        facts.push_task_event(
            task,
            Event::Ended(Ending { kind: EndKind::Blocked, code, detail: String::new() }),
        );
    }
}

/// What was asked for together.
fn haul_facts(facts: &mut Facts) {
    for (number, chosen) in [(1, IssueSelection::Listed), (2, IssueSelection::Newest(5))] {
        let (haul, tracker) = (IssueBatchId(number), "local".to_owned());
        facts.push_engine_event(EngineEvent::Haul(IssueBatchEvent::Begun {
            haul,
            chosen,
            tracker,
            issues: vec![12, 7],
        }));
    }
}

/// Checks that a plan or a judge named, and the size of a change.
fn proof_facts(facts: &mut Facts) {
    let mut staged = |event| facts.push_task_event(8, Event::Staged(event));
    let attempt = Attempt(1);
    let promise = |of, before| RequiredProof {
        of,
        about: "it greets".to_owned(),
        command: "sh \"t.sh\"".to_owned(),
        before,
    };
    let promises = vec![promise(ProofSubject::Step(1), None), promise(ProofSubject::Step(2), None)];
    staged(StagedEvent::Promised { by: ProofAuthor::Planner, promises });
    let promises = vec![promise(ProofSubject::Finding(1), Some(sample_commit('8')))];
    staged(StagedEvent::Promised { by: ProofAuthor::Judge, promises });
    for now in [ProofColour::Red, ProofColour::Green, ProofColour::Broken] {
        let runs = vec![
            ProofRun { of: ProofSubject::Step(1), before: Some(ProofColour::Broken), now },
            ProofRun { of: ProofSubject::Finding(1), before: None, now },
        ];
        staged(StagedEvent::Proved { attempt, head: sample_commit('9'), runs });
    }
    let extent = ChangeSize { files: 12, lines: 340, dirs: 3 };
    staged(StagedEvent::Measured { attempt, extent });
}

/// What an agent is told that no person said, and a part that is left for a person.
fn informed_facts(facts: &mut Facts) {
    let about = Some("What was seen on the base".to_owned());
    facts.push_task_event(12, Event::Messaged { about, text: "the hinge \"creaks\"".to_owned() });
    let title = "Hinges".to_owned();
    let part = SubIssue { number: 8, title, size: None, done: false, at_verify: true, needs: Vec::new() };
    facts.push_task_event(12, Event::Issue(IssueEvent::Parted { attempt: Attempt(2), parts: vec![part] }));
    facts.push_task_event(12, Event::Retried { fresh: false, feedback: None });
    let (attempt, step, run, opening) = (Attempt(3), sample_step("observe"), RunId(1), AttemptStart::Recover);
    facts.push_task_event(12, Event::Entered { attempt, step, run, opening });
    facts.push_task_event(12, Event::Yielded { attempt, why: YieldReason::NotYet, feedback: None });
}

/// What is known of the tests of a change, and what a person is asked to look at because of it.
fn evidence_facts(facts: &mut Facts) {
    let (attempt, step_name) = (Attempt(4), sample_step("observe"));
    let enter = |facts: &mut Facts, attempt| {
        let (step, run, opening) = (step_name.clone(), RunId(1), AttemptStart::Check);
        facts.push_task_event(12, Event::Entered { attempt, step, run, opening });
    };
    enter(facts, attempt);
    let evidence = Some(TestEvidence::default());
    let mut isolated = sample_report(vec![CheckOutcome::Pass]);
    isolated.sandbox = Some(landfall_model::sandbox::Confinement::Isolated);
    facts.push_task_event(12, Event::Verified { attempt, report: isolated, evidence });
    let attempt = Attempt(5);
    enter(facts, attempt);
    let protected = vec![ProtectedChange {
        path: "scripts/ci.sh".to_owned(),
        used_by: "the check".to_owned(),
        lines: vec!["−cargo test".to_owned(), "+true \"x\"".to_owned()],
    }];
    let base_tests = Some(BaseTestRun {
        files: vec!["tests/a.rs".to_owned()],
        outcome: CheckOutcome::Fail,
        failing: vec!["adds".to_owned()],
        took_ms: 40,
    });
    let counts = TestCounts { tests_before: 3, tests_after: 2, assertions_before: 5, assertions_after: 4 };
    let evidence =
        Some(TestEvidence { protected, base_tests, tests_run_on_base: Some(3), counts, mutations: None });
    facts.push_task_event(
        12,
        Event::Verified { attempt, report: sample_report(vec![CheckOutcome::Pass]), evidence },
    );
    let codes = [
        ConcernCode::ProtectedInput,
        ConcernCode::EmptyTest,
        ConcernCode::RunnerPatched,
        ConcernCode::BaseTestFails,
    ];
    let concerns = codes.map(|code| ChangeConcern { code, detail: "tests/a.rs".to_owned() }).to_vec();
    facts.push_task_event(12, Event::ReviewWanted { concerns, then: sample_step("observe") });
}

/// Altered lines that tests notice, or do not.
fn mutation_facts(facts: &mut Facts) {
    let (attempt, step, run, opening) = (Attempt(7), sample_step("observe"), RunId(1), AttemptStart::Check);
    facts.push_task_event(12, Event::Entered { attempt, step, run, opening });
    let trial = |outcome| MutationTrial {
        path: "src/a.rs".to_owned(),
        line: 7,
        before: "a + b".to_owned(),
        after: "a - b".to_owned(),
        outcome,
    };
    let trials = MutationOutcome::ALL.map(trial).to_vec();
    let mutations = Some(MutationRun { tests: vec!["tests/a.rs: adds".to_owned()], trials, took_ms: 90 });
    let evidence = Some(TestEvidence { mutations, ..TestEvidence::default() });
    facts.push_task_event(
        12,
        Event::Verified { attempt, report: sample_report(vec![CheckOutcome::Pass]), evidence },
    );
}

/// What the sandbox denied to checks.
fn denial_facts(facts: &mut Facts) {
    let mut denied = sample_report(vec![CheckOutcome::Broken]);
    denied.commands[0].denied = [(DeniedAccess::Write, "~/.tool-*"), (DeniedAccess::Read, "/srv/data")]
        .into_iter()
        .map(|(access, allow)| SandboxDenial {
            access,
            path: "~/.tool-1".to_owned(),
            allow: allow.to_owned(),
        })
        .collect();
    facts.push_engine_event(EngineEvent::Measured { report: denied });
}

/// Waits for an account within a run, guessed resets, and usage that is known in part.
fn provider_facts(facts: &mut Facts) {
    let until = Timestamp(1_700_000_900_000);
    for state in [AccountState::UsedUp { until, guessed: true }, AccountState::Troubled { until, tries: 3 }] {
        facts.push_engine_event(EngineEvent::Account { account: "claude".to_owned(), state });
    }
    let (task, attempt, iteration) = (13, Attempt(1), 1);
    facts.push_task_event(
        task,
        Event::Added { spec: TaskSpec::new("Waits for its provider").expect("a title") },
    );
    let driving = AgentAssignment {
        profile: "default".to_owned(),
        account: "claude".to_owned(),
        style: AgentDriveStyle::Fresh,
    };
    facts.push_task_event(
        task,
        Event::Bound { flow: Arc::new(sample_flow()), limits: TaskLimits::default(), driving },
    );
    let opening = AttemptStart::Workspace;
    facts
        .push_task_event(task, Event::Entered { attempt, step: sample_step("work"), run: RunId(1), opening });
    facts.push_task_event(task, Event::WorkspaceMade { attempt, base: sample_commit('a') });
    facts.push_task_event(task, Event::IterationBegan { attempt, iteration, talk: SessionStart::New });
    for until in [None, Some(until)] {
        facts.push_task_event(task, Event::AccountWaitBegan { attempt, until });
        facts.push_task_event(task, Event::AccountWaitEnded { attempt });
    }
    let usage = AgentUsage { tokens_in: 12, tokens_unpriced: 8, at_least: true, ..AgentUsage::default() };
    facts.push_task_event(
        task,
        Event::IterationEnded {
            attempt,
            iteration,
            exit: AgentExit::Code(0),
            verdict: Verdict::Continue,
            took_ms: 1_000,
            usage,
            head: None,
            traces: AgentRunTraces::default(),
        },
    );
    facts.push_task_event(task, Event::Yielded { attempt, why: YieldReason::Drained, feedback: None });
    facts.push_task_event(
        task,
        Event::Waited { wait: WaitReason::Quota { until, guessed: true }, then: sample_step("work") },
    );
}

/// A try that failed for lack of a resource.
fn shortage_facts(facts: &mut Facts) {
    let ending = Ending { kind: EndKind::Blocked, code: EndCode::Tracker, detail: String::new() };
    facts.push_task_event(12, Event::Ended(ending));
    facts.push_task_event(12, Event::Retried { fresh: false, feedback: None });
    let (attempt, step, run, opening) = (Attempt(6), sample_step("observe"), RunId(1), AttemptStart::Check);
    facts.push_task_event(12, Event::Entered { attempt, step, run, opening });
    facts.push_task_event(12, Event::Yielded { attempt, why: YieldReason::Shortage, feedback: None });
}

/// A step that never left its output behind.
fn output_facts(facts: &mut Facts) {
    let detail = "step `spec` ended 3 times in a row without its output".to_owned();
    facts.push_task_event(
        12,
        Event::Ended(Ending { kind: EndKind::Failed, code: EndCode::OutputMissing, detail }),
    );
}

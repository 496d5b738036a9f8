//! Where the systems before this one contradict each other, or were wrong, something was decided (design 0011): one
//! test for each row that is decided in the core.

use std::sync::Arc;

use landfall_model::audit::{ChangeSize, audit_budget, rounds_of};
use landfall_model::convergence::{DIRECTIONS_MAX, StageProgress};
use landfall_model::gate::CheckOutcome;
use landfall_model::objective::{ObjectiveItem, ObjectiveSplit, Requirement, Weight};
use landfall_model::plan::{PlanOutline, PlanStep};
use landfall_model::proof::{ProofColour, ProofRun, ProofSubject};
use landfall_model::review::{FindingSeverity, ReviewerFinding};
use landfall_model::score::{Judgement, RequirementCoverage, Scores};
use landfall_model::staged::{PLAN, StagedEvent};
use landfall_model::{
    AgentDriveStyle, AttemptPhase, ControlSignal as SignalSaid, Digest, EndCode, EndKind, Event, Flow,
    FlowChange, News, Signal, StepName, StepResult, StopRequest, Task, TaskId, TaskLimitOverrides, TaskSpec,
    TaskState, TaskStatus, Timestamp, WaitReason,
};

use crate::flows_used::{ask, lifecycle, loops, on, stages, step, watches};
use crate::story::{
    Line, Scene, answers, but, checked, driven, due, falls_silent, granted, hits_quota, hits_the_deadline,
    is_ejected, landing_begins, lands, line, passes, reported, retry, says_blocked, says_complete,
    says_nothing, stop, taking, without_output, working, workspace, workspace_removed,
};

/// A task of three requirements, by the words of its criteria.
pub fn begun(flow: Arc<Flow>) -> Scene {
    let mut spec = TaskSpec::new("a task").expect("a title");
    spec.criteria = ["it greets", "it asks", "it leaves"].map(str::to_owned).into();
    added(flow, spec)
}

pub fn added(flow: Arc<Flow>, spec: TaskSpec) -> Scene {
    let mut scene = Scene::new(flow);
    scene.task = Task::from_spec(TaskId(1), spec.clone(), Timestamp(0));
    scene.journal = vec![(Timestamp(0), Event::Added { spec })];
    scene
}

/// Plays lines, none of which is refused.
#[track_caller]
pub fn play(scene: &mut Scene, lines: impl IntoIterator<Item = Line>) {
    let mut told = Vec::new();
    for line in lines {
        told.extend(scene.play(&line));
        assert!(!told.last().is_some_and(|it| it.contains('✗')), "{}", told.join("\n"));
    }
}

/// The same, and what was said about it.
fn tell_of(scene: &mut Scene, line: &Line) -> String {
    scene.play(line).unwrap_or_default()
}

/// A run that leaves a plan, another one each time.
pub fn plans() -> Line {
    but("a plan", says_complete(), |run| {
        let text = format!("plan {}", run.iteration);
        run.evidence.papers.push((PLAN.to_owned(), Digest::new(&text)));
        let step = |number| PlanStep {
            number,
            title: "a step".to_owned(),
            covers: (1..=10).collect(),
            verify: None,
        };
        run.evidence.outline = Some(PlanOutline { steps: (1..=4).map(step).collect() });
    })
}

/// A judge with these scores, and how far R1 to R3 are covered, in quarters.
pub fn judges(scores: u32, quarters: [u32; 3]) -> Line {
    but(format!("judge {scores} {quarters:?}"), says_nothing(), move |run| {
        run.evidence.head_after.clone_from(&run.evidence.head_before);
        let covered = |(number, quarter): (u32, &u32)| RequirementCoverage {
            number,
            coverage: quarter * 250,
            why: "seen".to_owned(),
        };
        run.evidence.judgement = Some(Judgement {
            scores: Scores::new([scores; 6]),
            coverage: (1..).zip(&quarters).map(covered).collect(),
            ..Judgement::default()
        });
    })
}

pub const NOTHING: [u32; 3] = [0, 0, 0];

/// A run that says that reality and plan part.
pub fn asks_for_a_look() -> Line {
    but("asks for a look", says_nothing(), |run| {
        run.seen.push(Signal::Said(SignalSaid::Check("it differs".to_owned())));
    })
}

/// From the plan to its execution.
pub fn planned() -> Vec<Line> {
    vec![granted(), workspace(), plans(), granted(), workspace(), judges(900, NOTHING)]
}

/// Executed, verified, and with the judge.
pub fn executed() -> Vec<Line> {
    vec![granted(), workspace(), says_complete(), granted(), passes(), granted(), workspace()]
}

/// A whole stage that is accepted with this coverage, and measured.
pub fn stage(quarters: [u32; 3]) -> Vec<Line> {
    let mut lines = planned();
    lines.extend(executed());
    lines.extend([judges(900, quarters), granted()]);
    lines
}

/// A task whose objective is confirmed.
pub fn confirmed() -> Scene {
    let mut scene = begun(stages());
    play(&mut scene, [granted(), answers("OK")]);
    scene
}

/// One that has met its objective in one stage, has landed and is done.
fn done() -> Scene {
    let mut scene = confirmed();
    play(&mut scene, stage([4, 4, 4]));
    play(&mut scene, [granted(), landing_begins(), lands(), granted(), reported()]);
    let early = scene.hear(News::Refine { text: "and it sings".to_owned() });
    assert!(early.is_err_and(|told| told.contains("still being put away")), "two at one workspace");
    play(&mut scene, [workspace_removed()]);
    assert!(is_ended(&scene, EndKind::Done), "{:?}", scene.task.state);
    scene
}

fn is_ended(scene: &Scene, kind: EndKind) -> bool {
    matches!(&scene.task.state, TaskState::Ended(ending) if ending.kind == kind)
}

#[track_caller]
pub fn check_ended(scene: &Scene, kind: EndKind, code: EndCode) {
    let TaskState::Ended(ending) = &scene.task.state else { panic!("it goes on: {:?}", scene.task.state) };
    assert_eq!((ending.kind, ending.code), (kind, code), "{}", ending.detail);
}

/// The step that comes next.
pub fn next(scene: &Scene) -> &str {
    match &scene.task.state {
        TaskState::Ready { next: Some(step), .. } => step.as_str(),
        other => panic!("nothing comes next: {other:?}"),
    }
}

pub fn stages_of(scene: &Scene) -> Vec<(u32, u32)> {
    scene.task.staged.stages.iter().map(|stage| (stage.number, stage.convergence)).collect()
}

#[test]
fn c04_what_is_done_stays_done_until_a_person_wants_more_of_it() {
    let mut scene = done();
    assert!(tell_of(&mut scene, &retry()).contains('✗'), "a retry is for what failed");
    scene.hear(News::Refine { text: "and it sings".to_owned() }).expect("a refinement reopens it");
    assert!(!scene.task.is_over());
    assert_eq!(next(&scene), "target", "the objective comes first");
    assert!(scene.task.landed.is_none() && scene.task.landed_before.len() == 1, "what landed is remembered");
}

#[test]
fn c07_what_is_taken_up_while_it_was_planned_is_judged_if_there_is_a_plan_and_planned_if_not() {
    for (run, expected) in [(says_complete(), "plan"), (plans(), "check-plan")] {
        let mut scene = begun(lifecycle());
        play(&mut scene, [granted(), workspace(), run, granted(), workspace()]);
        let failed = but("no opinion", says_nothing(), |_| {});
        play(&mut scene, [failed, retry()]);
        assert_eq!(next(&scene), expected);
    }
}

#[test]
fn c08_what_is_taken_up_while_it_was_executed_is_verified_and_judged_and_keeps_its_steps() {
    let mut scene = begun(lifecycle());
    play(&mut scene, planned());
    play(&mut scene, executed());
    let steps = scene.task.staged.plan.done;
    assert_eq!(steps, 4);
    play(&mut scene, [but("no opinion", says_nothing(), |_| {}), retry()]);
    assert_eq!((next(&scene), scene.task.staged.plan.done), ("verify", steps));
    play(&mut scene, [granted(), passes()]);
    assert_eq!(next(&scene), "check-exec");
}

#[test]
fn c10_every_intervention_is_a_fact() {
    let limits = TaskLimitOverrides { iterations_max: Some(9), task_ms: None, micro_usd: None };
    let all = [
        ("messaged", News::Message { text: "not so".to_owned(), now: false }),
        ("stop-asked", News::Message { text: "not so".to_owned(), now: true }),
        ("held", News::Hold { reason: String::new() }),
        ("limits-set", News::SetLimits { limits }),
        ("stop-asked", News::StopTask),
        ("stop-asked", News::Interrupt),
        ("stop-asked", News::Cancel { reason: "no longer wanted".to_owned() }),
        ("stop-asked", News::Block { reason: "not like this".to_owned() }),
        ("staged", News::Refine { text: "and it sings".to_owned() }),
    ];
    for (fact, news) in all {
        let (events, _) = working().hear(news.clone()).unwrap_or_else(|told| panic!("{news:?}: {told}"));
        let names: Vec<&str> = events.iter().map(Event::name).collect();
        let refined = matches!(events[0], Event::Staged(StagedEvent::Refined { .. })) && fact == "staged";
        assert!(refined || names.contains(&fact), "{news:?} leaves {names:?}");
    }
}

#[test]
fn c12_stalls_of_a_step_are_forgiven_by_progress_and_stalls_in_all_never() {
    let mut scene = working();
    play(&mut scene, [falls_silent(), granted(), workspace(), falls_silent()]);
    assert_eq!((scene.task.counters.stalls_step, scene.task.counters.stalls_total), (2, 2));
    play(&mut scene, [granted(), workspace(), says_complete()]);
    assert_eq!((scene.task.counters.stalls_step, scene.task.counters.stalls_total), (0, 2));
}

#[test]
fn c13_every_limit_has_a_name_of_its_own() {
    let mut iterations = Scene::new(loops()).limited(|limits| limits.iterations_max = 2);
    play(&mut iterations, [granted(), workspace(), says_nothing(), says_nothing()]);
    check_ended(&iterations, EndKind::Failed, EndCode::MaxIterations);

    let mut rounds = begun(lifecycle()).limited(|limits| limits.iterations_max = 50);
    for _ in 0..4 {
        play(&mut rounds, [granted(), workspace(), plans(), granted(), workspace(), judges(550, NOTHING)]);
    }
    check_ended(&rounds, EndKind::Failed, EndCode::EdgeLimit);
    assert_eq!(rounds.task.counters.iterations, 8, "and its iterations are far from used up");

    let mut silent = working().limited(|limits| limits.stalls_step_max = 0);
    silent.task.limits.stalls_step_max = 0;
    play(&mut silent, [falls_silent()]);
    check_ended(&silent, EndKind::Failed, EndCode::StallLimit);
}

#[test]
fn c14_the_time_of_a_task_the_silence_of_a_run_and_the_time_of_a_check_are_three_clocks() {
    let mut out_of_time = working();
    play(&mut out_of_time, [hits_the_deadline()]);
    check_ended(&out_of_time, EndKind::Timeout, EndCode::TaskLimit);
    let mut silent = working();
    play(&mut silent, [falls_silent()]);
    assert!(!silent.task.is_over() && silent.task.counters.stalls_total == 1, "silence is no used-up time");
    let mut slow_check = working();
    play(&mut slow_check, [says_complete(), granted(), checked(CheckOutcome::Timeout)]);
    assert_eq!(next(&slow_check), "work", "a slow check is a failed one, and the agent hears of it");
}

#[test]
fn c15_edge_02_it_stops_when_as_many_iterations_as_it_may_have_are_completed() {
    let mut scene = Scene::new(loops()).limited(|limits| limits.iterations_max = 3);
    play(&mut scene, [granted(), workspace(), says_nothing(), says_nothing()]);
    assert!(!scene.task.is_over(), "the third has begun");
    play(&mut scene, [says_nothing()]);
    check_ended(&scene, EndKind::Failed, EndCode::MaxIterations);
    assert_eq!(scene.task.counters.iterations, 3);
    // One that says it is done with its last iteration is done.
    let mut last = Scene::new(loops()).limited(|limits| limits.iterations_max = 1);
    play(&mut last, [granted(), workspace(), says_complete(), granted(), passes(), granted()]);
    assert!(!last.task.is_over());
}

#[test]
fn c18_edge_24_no_clock_runs_while_a_person_thinks_about_the_objective() {
    let mut scene = begun(stages());
    play(&mut scene, [granted()]);
    assert!(matches!(&scene.task.state, TaskState::Waiting { wait: WaitReason::Question { .. }, .. }));
    assert_eq!(scene.task.due_at(), None, "silence is no answer");
    play(&mut scene, [Line::Wait(30 * 24 * 3_600_000)]);
    assert!(tell_of(&mut scene, &due()).contains('✗'));
    // Other words than a yes are words about the objective, and do not begin the work.
    play(&mut scene, [answers("it sings, too")]);
    assert_eq!(next(&scene), "target");
    assert!(scene.task.staged.objective.as_ref().is_some_and(|it| !it.is_confirmed()));
}

#[test]
fn c19_at_0_95_it_is_met_by_itself_and_a_flow_may_ask_a_person_first() {
    let mut scene = confirmed();
    play(&mut scene, stage([4, 4, 4]));
    assert_eq!(next(&scene), "land");
    let mut asks = Flow::clone(&stages());
    asks.steps.push(step("satisfied", ask("Is it met?"), [on("answered", "land")]));
    for step in &mut asks.steps {
        for edge in step.on.iter_mut().filter(|edge| edge.result == StepResult::Satisfied) {
            *edge = on("satisfied", "satisfied");
        }
    }
    assert_eq!(asks.find_problems(), [], "it could be loaded");
    let mut scene = begun(Arc::new(asks));
    play(&mut scene, [granted(), answers("OK")]);
    play(&mut scene, stage([4, 4, 4]));
    play(&mut scene, [granted()]);
    assert!(matches!(&scene.task.state, TaskState::Waiting { wait: WaitReason::Question { .. }, .. }));
}

#[test]
fn c20_what_comes_before_work_is_open_and_what_ends_it_is_closed() {
    let mut scene = working();
    scene.hear(News::HookFailed { detail: "no such file".to_owned() }).expect("it is told, and no more");
    assert!(matches!(&scene.task.state, TaskState::Active { doing: AttemptPhase::Running { .. }, .. }));
    play(&mut scene, [says_complete(), granted(), checked(CheckOutcome::Broken)]);
    assert!(matches!(&scene.task.state, TaskState::Waiting { wait: WaitReason::GateBroken { .. }, .. }));
    let mut judged = begun(lifecycle());
    play(&mut judged, planned());
    play(&mut judged, executed());
    play(&mut judged, [but("no opinion", says_nothing(), |_| {})]);
    check_ended(&judged, EndKind::Failed, EndCode::CheckFailed);
}

#[test]
fn c23_edge_14_rounds_and_summaries_outlive_the_engine() {
    let revised = || vec![granted(), workspace(), plans(), granted(), workspace(), judges(550, NOTHING)];
    let mut scene = begun(lifecycle());
    for _ in 0..3 {
        play(&mut scene, revised());
        play(&mut scene, [Line::Restart]); // the fold of the journal is the task, its counters included
        scene = scene.cut(scene.journal.len());
    }
    let edge = (StepName::new("check-plan"), StepResult::NeedsRevision);
    assert_eq!(scene.task.counters.edges.get(&edge), Some(&3));
    play(&mut scene, revised());
    check_ended(&scene, EndKind::Failed, EndCode::EdgeLimit);
    let mut full = Scene::new(loops());
    play(&mut full, [driven("main", AgentDriveStyle::Session), granted(), workspace(), says_nothing()]);
    let cut = full.cut(full.journal.len());
    assert_eq!(cut.task.counters, full.task.counters);
    assert_eq!(cut.task.session, full.task.session, "whether it was summed up is part of it");
}

/// In the style `session`, a judge went on with the session of whoever it judged.
#[test]
fn c36_a_judge_never_goes_on_with_the_session_of_whoever_worked() {
    let tells = |run: Line| but("in a session", run, |run| run.traces.session = Some("s1".to_owned()));
    let mut scene = begun(lifecycle());
    play(
        &mut scene,
        [driven("main", AgentDriveStyle::Session), granted(), workspace(), tells(plans()), granted()],
    );
    let judge = tell_of(&mut scene, &workspace());
    assert!(judge.contains("! spawn") && !judge.contains("resuming"), "{judge}");
    play(&mut scene, [tells(judges(900, NOTHING)), granted()]);
    let worker = tell_of(&mut scene, &workspace());
    assert!(worker.contains("resuming s1"), "who works goes on with its own: {worker}");
}

#[test]
fn c41_out_of_time_is_a_status_of_its_own() {
    let mut scene = working();
    play(&mut scene, [hits_the_deadline()]);
    assert_eq!(TaskStatus::for_task(&scene.task), TaskStatus::Timeout);
    let mut blocked = working();
    play(&mut blocked, [says_blocked("no access")]);
    assert_eq!(TaskStatus::for_task(&blocked.task), TaskStatus::Blocked);
}

#[test]
fn c43_past_its_fixes_a_stage_is_given_up_if_there_is_one_before_it_and_else_it_stops() {
    let sent_back = |scene: &mut Scene| {
        play(scene, planned());
        for _ in 0..4 {
            play(scene, executed());
            play(scene, [judges(550, [2, 0, 0])]);
        }
    };
    let mut first = confirmed();
    sent_back(&mut first);
    check_ended(&first, EndKind::Failed, EndCode::EdgeLimit);
    assert_eq!(first.task.staged.exclusions.len(), 0);

    let mut second = confirmed();
    play(&mut second, stage([4, 0, 0]));
    sent_back(&mut second);
    assert_eq!(next(&second), "re-plan", "in phase re-planning");
    let given_up: Vec<u32> = second.task.staged.exclusions.iter().map(|it| it.stage).collect();
    assert_eq!((given_up.as_slice(), stages_of(&second)), (&[2][..], vec![(1, 3_333)]));
    assert_eq!(second.task.restart.as_ref(), Some(&second.task.staged.stages[0].commit));
}

#[test]
fn edge_03_a_task_that_is_being_stopped_is_not_started_beside_itself() {
    let mut scene = working();
    play(&mut scene, [stop()]);
    let stopping = |scene: &Scene| {
        matches!(
            &scene.task.state,
            TaskState::Active { doing: AttemptPhase::Running { stop: Some(StopRequest::Pause), .. }, .. }
        )
    };
    assert!(stopping(&scene), "until its process is seen to end: {:?}", scene.task.state);
    assert!(tell_of(&mut scene, &granted()).contains('✗'), "no twin is started");
    assert!(tell_of(&mut scene, &retry()).contains('✗'));
    assert!(stopping(&scene));
    play(&mut scene, [says_nothing()]);
    assert!(matches!(&scene.task.state, TaskState::Waiting { wait: WaitReason::Pause, .. }));
}

#[test]
fn edge_08_edge_09_neither_waits_nor_an_engine_that_is_gone_cost_time() {
    let mut scene = working();
    for _ in 0..2 {
        play(
            &mut scene,
            [taking(1_000, hits_quota(None)), Line::Wait(3_600_000), due(), granted(), workspace()],
        );
    }
    let spent = scene.task.counters.spent_ms;
    assert_eq!(spent, 2_000, "only what its runs took, over both waits");
    assert_eq!(scene.task.counters.quota_waits, 2);
    play(&mut scene, [Line::Wait(24 * 3_600_000), Line::Restart, taking(500, says_nothing())]);
    assert_eq!(scene.task.counters.spent_ms, 2_500, "the engine was away for a day");
}

#[test]
fn edge_11_a_report_is_written_once_and_nobody_is_blocked_without_a_reason() {
    let scene = done();
    let reports = scene.journal.iter().filter(|(_, event)| matches!(event, Event::Reported { .. })).count();
    assert_eq!(reports, 1);
    // The journal was cut before the step was left: it is not written again.
    let at = scene.journal.iter().position(|(_, event)| matches!(event, Event::Reported { .. }));
    let mut cut = scene.cut(at.expect("it was reported") + 1);
    let told = match &cut.task.state {
        TaskState::Ended(_) => String::new(),
        _ => tell_of(&mut cut, &granted()),
    };
    assert!(!told.contains("! report"), "{told}");
    for words in ["no access", ""] {
        let mut scene = working();
        play(&mut scene, [says_blocked(words)]);
        let TaskState::Ended(ending) = &scene.task.state else { panic!("it is blocked") };
        assert_eq!(ending.kind, EndKind::Blocked);
        assert!(!landfall_model::explain_task_state(&scene.task, &[], None, &|_| String::new()).is_empty());
    }
}

#[test]
fn edge_16_what_stood_before_is_measured_by_what_is_wanted_now() {
    let mut scene = confirmed();
    play(&mut scene, stage([4, 0, 0]));
    assert_eq!(stages_of(&scene), [(1, 3_333)]);
    // Two requirements fall away: what was a third is now the whole, and the stage after it cannot get closer than that.
    let mut items = scene.task.staged.objective.clone().expect("it has one").items;
    items[0].requirements.truncate(1);
    let changed = Event::Staged(StagedEvent::ObjectiveSet { items, constraints: Vec::new() });
    scene = scene.with(changed);
    play(&mut scene, stage([4, 0, 0]));
    let measured = scene.journal.iter().rev().find_map(|(_, event)| match event {
        Event::Staged(StagedEvent::Converged { previous, current, progress, .. }) => {
            Some((*previous, *current, *progress))
        }
        _ => None,
    });
    assert_eq!(measured, Some((Some(10_000), 10_000, StageProgress::Satisfied)));
}

#[test]
fn behaviour_02_without_a_target_no_agent_runs_and_it_says_what_to_fill_in() {
    for flow in [lifecycle(), stages()] {
        let mut spec = TaskSpec::new("auth").expect("a title");
        spec.source = "module:AiTasks/auth".to_owned();
        spec.body = "# Target\n\n(what is wanted)\n".to_owned();
        let mut scene = added(flow, spec);
        let told = tell_of(&mut scene, &granted());
        assert!(!told.contains("! "), "nothing is ordered: {told}");
        check_ended(&scene, EndKind::Blocked, EndCode::EmptyTarget);
        let TaskState::Ended(ending) = &scene.task.state else { panic!("it ended") };
        assert!(ending.detail.contains("fill .target.md first"), "{}", ending.detail);
    }
}

/// It went round in a circle between its objective, which was confirmed still, and itself.
#[test]
fn behaviour_19_who_wants_more_is_asked_again_and_gets_another_stage_and_a_lower_score() {
    let mut scene = done();
    scene.hear(News::Refine { text: "and it sings".to_owned() }).expect("a refinement reopens it");
    let splits = but("a split", says_nothing(), |run| {
        let requirements = vec![Requirement::new(0, "it sings", "", Weight::Important)];
        let item = ObjectiveItem { text: "Singing".to_owned(), requirements };
        run.evidence.split = Some(ObjectiveSplit { items: vec![item], ..ObjectiveSplit::default() });
    });
    play(&mut scene, [granted(), workspace(), splits]);
    let asked = matches!(&scene.task.state, TaskState::Waiting { wait: WaitReason::Question { .. }, .. });
    assert!(asked, "what is wanted now is shown first: {:?}", scene.task.state);
    play(&mut scene, [answers("OK")]);
    let focus = scene.task.staged.focus.clone().map(|focus| (focus.number, focus.requirements));
    assert_eq!((next(&scene), focus), ("plan", Some((2, vec![4]))), "what is missing is another stage");
    play(&mut scene, planned());
    play(&mut scene, executed());
    let sings = but("sings", judges(900, [4, 4, 4]), |run| {
        let judgement = run.evidence.judgement.as_mut().expect("a judge spoke");
        judgement.coverage.push(RequirementCoverage { number: 4, coverage: 1000, why: "heard".to_owned() });
    });
    play(&mut scene, [sings, granted()]);
    let measured = scene.journal.iter().rev().find_map(|(_, event)| match event {
        Event::Staged(StagedEvent::Converged { previous, current, .. }) => Some((*previous, *current)),
        _ => None,
    });
    assert_eq!(
        measured,
        Some((Some(7_500), 10_000)),
        "what was whole is three quarters of what is wanted now"
    );
    assert_eq!(stages_of(&scene), [(1, 10_000), (2, 10_000)]);
}

/// What came back from its landing was measured against itself: no closer, so it was rolled back.
#[test]
fn a_stage_that_comes_back_from_its_landing_is_the_same_stage() {
    let mut scene = confirmed();
    play(&mut scene, stage([4, 0, 0]));
    // 0.9500 and not the whole: one requirement of ten is met by half.
    let mut items = scene.task.staged.objective.clone().expect("it has one").items;
    for number in 4..=10 {
        let mut more = items[0].requirements[0].clone();
        more.number = number;
        items[0].requirements.push(more);
    }
    scene = scene.with(Event::Staged(StagedEvent::ObjectiveSet { items, constraints: Vec::new() }));
    let nearly = || {
        but("judge", judges(900, [2, 4, 4]), |run| {
            let judgement = run.evidence.judgement.as_mut().expect("a judge spoke");
            let more =
                (4..=10).map(|number| RequirementCoverage { number, coverage: 1000, why: "seen".to_owned() });
            judgement.coverage.extend(more);
        })
    };
    play(&mut scene, planned());
    play(&mut scene, executed());
    play(&mut scene, [nearly(), granted()]);
    assert_eq!(next(&scene), "land");
    play(&mut scene, [granted(), is_ejected()]);
    assert_eq!(next(&scene), "exec");
    play(&mut scene, executed());
    play(&mut scene, [nearly(), granted()]);
    assert_eq!(next(&scene), "land", "it is as near as it was: that is no reason to give it up");
    assert_eq!(stages_of(&scene), [(1, 3_333), (2, 9_500)], "and no stage twice");
    assert_eq!(scene.task.staged.exclusions.len(), 0);
}

/// Verified with these colours, each before the work and on it.
fn proves<const N: usize>(runs: [(ProofSubject, Option<ProofColour>, ProofColour); N]) -> Line {
    let Line::News(name, make) = passes() else { panic!("it is news") };
    let runs = runs.map(|(of, before, now)| (ProofRun { of, before, now }, "its output".to_owned()));
    line(format!("{name}, {N} checks"), move |scene| match make(scene) {
        News::Checked { attempt, head, leftovers, report, concerns, evidence, extent, .. } => News::Checked {
            attempt,
            head,
            leftovers,
            report,
            concerns,
            evidence,
            proofs: runs.to_vec(),
            extent,
        },
        other => panic!("nothing was checked: {other:?}"),
    })
}

/// A plan of two steps, each with a check.
fn plans_with_checks() -> Line {
    let Line::News(name, make) = plans() else { panic!("it is news") };
    line(name, move |scene| match make(scene) {
        News::AgentEnded(mut run) => {
            for step in run.evidence.outline.iter_mut().flat_map(|outline| &mut outline.steps).take(2) {
                step.verify = Some(format!("check {}", step.number));
            }
            News::AgentEnded(run)
        }
        other => panic!("not a run: {other:?}"),
    })
}

#[test]
fn checks_of_a_plan_send_work_back_until_they_are_green_and_when_one_is_lost() {
    let (red, green) = (Some(ProofColour::Red), ProofColour::Green);
    let mut scene = confirmed();
    play(&mut scene, [granted(), workspace(), plans_with_checks(), granted(), workspace()]);
    play(&mut scene, [judges(900, NOTHING), granted(), workspace(), says_complete(), granted()]);
    play(
        &mut scene,
        [proves([(ProofSubject::Step(1), red, green), (ProofSubject::Step(2), red, ProofColour::Red)])],
    );
    let told = scene.task.feedback.iter().map(|it| it.text.as_str()).collect::<String>();
    assert!(next(&scene) == "exec" && told.contains("check 2") && !told.contains("check 1"), "{told}");
    assert_eq!(scene.task.staged.proofs.count_proved(), (1, 2));
    play(&mut scene, [granted(), workspace(), says_complete(), granted()]);
    play(
        &mut scene,
        [proves([(ProofSubject::Step(1), None, ProofColour::Red), (ProofSubject::Step(2), None, green)])],
    );
    assert_eq!((next(&scene), scene.task.staged.proofs.anomalies), ("exec", 1));
    play(&mut scene, [granted(), workspace(), says_complete(), granted()]);
    play(&mut scene, [proves([(ProofSubject::Step(1), None, green), (ProofSubject::Step(2), None, green)])]);
    assert_eq!((next(&scene), scene.task.staged.proofs.count_proved()), ("check-exec", (2, 2)));
    play(&mut scene, [granted(), workspace(), judges(900, [4, 0, 0]), granted()]);
    assert_eq!((next(&scene), scene.task.staged.proofs.all.len()), ("plan", 0), "the next plan has its own");
}

#[test]
fn a_finding_with_a_test_is_open_until_it_was_red_and_is_green() {
    let named = |test: &'static str| {
        but("names a test", judges(900, [4, 0, 0]), move |run| {
            let judgement = run.evidence.judgement.as_mut().expect("it judges");
            judgement.word = Some(StepResult::NeedsFix);
            judgement.findings.push(ReviewerFinding {
                id: None,
                severity: FindingSeverity::Major,
                title: "it does not greet".to_owned(),
                detail: String::new(),
                place: String::new(),
                test: Some(test.to_owned()),
            });
        })
    };
    let mut scene = confirmed();
    play(&mut scene, planned());
    play(&mut scene, executed());
    play(&mut scene, [named("greets")]);
    let promise = &scene.task.staged.proofs.all[0].promise;
    assert_eq!(
        (promise.of, &promise.before),
        (ProofSubject::Finding(1), &scene.task.head),
        "red on what was judged"
    );
    let red = (ProofSubject::Finding(1), Some(ProofColour::Red), ProofColour::Red);
    play(&mut scene, [granted(), workspace(), says_complete(), granted(), proves([red])]);
    assert_eq!(next(&scene), "exec", "no judge sees it before");
    let green = (ProofSubject::Finding(1), None, ProofColour::Green);
    play(&mut scene, [granted(), workspace(), says_complete(), granted(), proves([green])]);
    assert_eq!(next(&scene), "check-exec");
    play(&mut scene, [granted(), workspace(), named("is void")]);
    let void = (ProofSubject::Finding(2), Some(ProofColour::Green), ProofColour::Green);
    play(&mut scene, [granted(), workspace(), says_complete(), granted(), proves([green, void])]);
    assert_eq!(next(&scene), "check-exec", "what proves nothing is for the judge to weigh");
    play(&mut scene, [granted(), workspace(), judges(900, [4, 0, 0])]);
    let left: Vec<ProofSubject> = scene.task.staged.proofs.all.iter().map(|it| it.promise.of).collect();
    assert_eq!((next(&scene), left.as_slice()), ("converge", &[ProofSubject::Finding(1)][..]));
}

/// The work is as large as this.
pub fn sized(extent: ChangeSize) -> Line {
    let Line::News(name, make) = passes() else { panic!("it is news") };
    line(name, move |scene| match make(scene) {
        News::Checked { attempt, head, leftovers, report, concerns, evidence, proofs, .. } => {
            let extent = Some(extent);
            News::Checked { attempt, head, leftovers, report, concerns, evidence, proofs, extent }
        }
        other => panic!("nothing was checked: {other:?}"),
    })
}

#[test]
fn the_size_of_a_change_gives_its_judge_more_rounds_and_its_work_no_more_retries() {
    let refused = |extent: ChangeSize| {
        let mut scene = confirmed();
        play(&mut scene, planned());
        let mut judged = 0;
        while !scene.task.is_over() {
            play(&mut scene, [granted(), workspace(), says_complete(), granted(), sized(extent)]);
            play(&mut scene, [granted(), workspace(), judges(550, [2, 0, 0])]);
            judged += 1;
        }
        check_ended(&scene, EndKind::Failed, EndCode::EdgeLimit);
        assert_eq!(audit_budget(&scene.task, &stages()), Some((3, 3)));
        (judged, rounds_of(&scene.task))
    };
    assert_eq!(refused(ChangeSize { files: 1, lines: 10, dirs: 1 }), (4, 3));
    assert_eq!(refused(ChangeSize { files: 11, lines: 100, dirs: 2 }), (4, 5));
    assert_eq!(refused(ChangeSize { files: 900, lines: 90_000, dirs: 80 }), (4, 10));
}

#[test]
fn a_step_without_its_output_is_tried_three_times_and_then_fails_by_name() {
    let mut scene = begun(lifecycle());
    let no_plan = || without_output(says_complete());
    play(&mut scene, [granted(), workspace(), no_plan(), granted(), workspace(), no_plan()]);
    assert_eq!(next(&scene), "plan");
    play(&mut scene, [granted(), workspace(), no_plan()]);
    let TaskState::Ended(ending) = &scene.task.state else { panic!("it goes on: {:?}", scene.task.state) };
    assert_eq!((ending.kind, ending.code.word()), (EndKind::Failed, "output_missing"));
    assert!(ending.detail.contains("step `plan` ended 3 times in a row without its output: plan.md"));
    // Taken up again it has its tries back, and a step that is left forgets those before it.
    play(&mut scene, [retry(), granted(), workspace(), no_plan(), granted(), workspace(), plans()]);
    play(&mut scene, [granted(), workspace(), judges(550, NOTHING)]);
    play(&mut scene, [granted(), workspace(), no_plan(), granted(), workspace(), no_plan()]);
    assert_eq!(next(&scene), "plan");
}

#[test]
fn an_objective_that_cannot_be_read_is_tried_three_times_and_then_fails_by_name() {
    let mut scene = added(stages(), TaskSpec::new("a task").expect("a title"));
    for _ in 0..3 {
        assert!(!is_ended(&scene, EndKind::Failed), "{:?}", scene.task.state);
        play(&mut scene, [granted(), workspace(), says_nothing()]);
    }
    let TaskState::Ended(ending) = &scene.task.state else { panic!("it goes on: {:?}", scene.task.state) };
    assert_eq!((ending.kind, ending.code.word()), (EndKind::Failed, "output_missing"));
    assert!(ending.detail.contains("step `target`") && ending.detail.contains("JSON"), "{}", ending.detail);
}

#[test]
fn when_no_direction_is_left_the_branch_is_back_at_its_stage_and_a_retry_takes_another() {
    let mut scene = begun(stages());
    scene.task.spec.criteria.truncate(1);
    scene.journal[0].1 = Event::Added { spec: scene.task.spec.clone() };
    play(&mut scene, [granted(), answers("OK")]);
    play(&mut scene, stage([2, 0, 0]));
    let accepted = scene.task.staged.stages[0].commit.clone();
    for direction in 1..=DIRECTIONS_MAX {
        assert!(!scene.task.is_over(), "one requirement may be tried in several directions");
        play(&mut scene, stage([2, 0, 0]));
        assert_eq!(scene.task.staged.exclusions.len(), direction);
    }
    let directions: Vec<&str> = scene.task.staged.exclusions.iter().map(|it| it.direction.as_str()).collect();
    assert!(directions.iter().all(|it| it.starts_with("stage 2 for R1: a step; a step")), "{directions:?}");
    check_ended(&scene, EndKind::Blocked, EndCode::DirectionsUsedUp);
    let TaskState::Ended(ending) = &scene.task.state else { panic!("it ended") };
    let back = format!("the branch is back at the end of stage 1 ({})", accepted.short_hash());
    assert!(ending.detail.contains(&back), "{}", ending.detail);
    assert_eq!(scene.task.restart.as_ref(), Some(&accepted), "its next workspace begins there");
    assert_eq!(scene.task.head.as_ref(), Some(&accepted), "what was given up is not its work");

    play(&mut scene, [retry()]);
    let focus = scene.task.staged.focus.clone().map(|focus| (focus.number, focus.requirements));
    assert_eq!((next(&scene), focus), ("re-plan", Some((2, vec![1]))));
    assert_eq!(scene.task.staged.exclusions.len(), DIRECTIONS_MAX, "its planner is told what was tried");
    play(&mut scene, stage([4, 0, 0]));
    assert_eq!(stages_of(&scene), [(1, 5_000), (2, 10_000)]);
}

/// A task of a module that was imported in `review`: its plan is there.
fn imported_in_review() -> Scene {
    let attempt = landfall_model::Attempt::default();
    let paper = Digest::new("plan");
    let planned =
        StagedEvent::Planned { attempt, paper, steps: 2, covers: Vec::new(), approach: String::new() };
    let directed = Event::Directed { step: StepName::new("exec"), alone: false };
    begun(lifecycle()).with(Event::Staged(planned)).with(directed)
}

#[test]
fn a_comment_on_a_plan_does_not_supersede_it() {
    use landfall_model::annotate::AnnotationImpact;
    let annotated = |impact, paper: &str| {
        let paper = Digest::new(paper);
        let covers = Vec::new();
        Event::Staged(StagedEvent::Annotated { name: PLAN.to_owned(), paper, steps: 2, covers, impact })
    };
    let commented = imported_in_review().with(annotated(AnnotationImpact::None, "the plan and a comment"));
    assert_eq!(commented.task.staged.plan.superseded, 0);
    assert_eq!(commented.task.staged.papers[PLAN], Digest::new("the plan and a comment"));
    let changed = commented.with(annotated(AnnotationImpact::Medium, "another plan"));
    assert_eq!(changed.task.staged.plan.superseded, 1);
}

#[test]
fn the_thresholds_and_weights_of_a_task_are_those_of_its_kind() {
    use landfall_model::score::{GatePoint, WEIGHTS};
    use landfall_model::tune::{GateParams, applied_threshold, applied_weights};
    let mut task = begun(lifecycle()).task;
    assert_eq!(applied_threshold(&task, GatePoint::PostPlan, 650), 650, "what the flow says");
    assert_eq!(applied_weights(&task), WEIGHTS);
    task.limits.tuning = Some(GateParams::DEFAULT);
    task.spec.tags = ["type:software"].iter().map(|tag| tag.parse().expect("a tag")).collect();
    let of_kind = GateParams::DEFAULT.thresholds.of(GatePoint::PostPlan);
    assert_eq!(applied_threshold(&task, GatePoint::PostPlan, 650), of_kind);
    assert_ne!(applied_weights(&task), WEIGHTS);
}

#[test]
fn an_imported_task_that_is_given_another_flow_begins_where_that_has_its_phase() {
    let change = |from: Arc<Flow>, to: Arc<Flow>| {
        line("edit", move |scene| News::Edit {
            spec: scene.task.spec.clone(),
            flows: Some(FlowChange { from: from.clone(), to: to.clone() }),
        })
    };
    let mut watched = imported_in_review();
    watched.flow = watches();
    play(&mut watched, [change(lifecycle(), watches())]);
    assert_eq!(next(&watched), "work", "a flow without phases begins at its entry");
    play(&mut watched, [granted(), workspace(), says_complete()]);
    assert_eq!(next(&watched), "verify", "and goes on in its own steps");
    let mut back = imported_in_review();
    play(&mut back, [change(lifecycle(), watches()), change(watches(), lifecycle())]);
    assert_eq!(next(&back), "plan", "the phase is that of the flow before");
    // The flow may change without an edit, by the settings.
    let mut changed = imported_in_review();
    changed.flow = watches();
    play(&mut changed, [granted(), workspace(), says_complete()]);
    assert_eq!(next(&changed), "verify");
}

#[test]
fn an_agent_with_a_loop_of_its_own_is_not_started_in_a_flow_of_several_steps() {
    let mut scene = begun(lifecycle());
    play(&mut scene, [driven("mine", AgentDriveStyle::Own), granted()]);
    check_ended(&scene, EndKind::Blocked, EndCode::UnsupportedStep);
    let TaskState::Ended(ending) = &scene.task.state else { panic!("it ended") };
    assert!(ending.detail.contains("flow `lifecycle` has 3 steps for agents"), "{}", ending.detail);
    assert!(ending.detail.contains("`landfall edit T1 --flow NAME`"), "{}", ending.detail);
    scene.flow = watches();
    play(&mut scene, [retry(), granted(), workspace(), says_complete()]);
    assert_eq!(next(&scene), "verify");
}

#[test]
fn only_continue_shows_the_objective_again_and_changes_nothing() {
    for words in ["continue", "Go on.", "继续"] {
        let mut scene = begun(stages());
        play(&mut scene, [granted()]);
        let (journal, objective) = (scene.journal.len(), scene.task.staged.objective.clone());
        play(&mut scene, [answers(words)]);
        let asked = matches!(&scene.task.state, TaskState::Waiting { wait: WaitReason::Question { .. }, .. });
        assert!(asked, "{words}: {:?}", scene.task.state);
        let told: Vec<&Event> = scene.journal[journal..].iter().map(|(_, event)| event).collect();
        assert!(told.iter().any(|event| **event == Event::Staged(StagedEvent::ObjectiveShown)), "{told:?}");
        assert!(
            !told.iter().any(|event| matches!(event, Event::Messaged { .. })),
            "no agent hears it: {told:?}"
        );
        let items =
            |it: &Option<landfall_model::objective::Objective>| it.as_ref().map(|it| it.items.clone());
        assert_eq!(items(&scene.task.staged.objective), items(&objective));
    }
}

#[test]
fn who_asks_for_research_has_the_agent_told_its_three_passes() {
    let mut scene = begun(stages());
    play(&mut scene, [granted(), answers("Help me research how others greet")]);
    let told: Vec<&str> = scene
        .journal
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Messaged { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(["O1", "O2", "O3"].iter().all(|pass| told[0].contains(pass)), "{told:?}");
    assert!(told[1].contains("how others greet"));
}

#[test]
fn three_steps_without_a_check_that_turns_green_bring_a_judge() {
    let steps = |done: u32| {
        but(format!("{done} steps"), says_nothing(), move |run| {
            run.seen.push(Signal::Said(SignalSaid::Step(done)));
        })
    };
    let mut scene = confirmed();
    play(
        &mut scene,
        [granted(), workspace(), plans_with_checks(), granted(), workspace(), judges(900, NOTHING)],
    );
    play(&mut scene, [granted(), workspace(), steps(3)]);
    assert!(scene.task.staged.proof_anomaly().is_some_and(|it| it.contains("last 3 steps")));
    let green = (ProofSubject::Step(1), Some(ProofColour::Red), ProofColour::Green);
    assert_eq!(next(&scene), "verify-mid");
    play(&mut scene, [granted(), proves([green])]);
    assert_eq!(scene.task.staged.proof_anomaly(), None, "one turned green");
}

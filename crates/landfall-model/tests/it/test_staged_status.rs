//! The status of a task with a plan, in its flow's own words: what it shows, what a hand may do in it, and how long
//! rounds are counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use landfall_model::convergence::Coverage;
use landfall_model::flow::FlowEdge;
use landfall_model::score::GatePoint;
use landfall_model::staged::{JudgeResult, StagedEvent};
use landfall_model::{
    Event, Flow, FlowStep, News, StepKind, StepName, StepResult, TaskId, TaskState, Timestamp, apply,
};

use crate::flows_used::{agent, at_most, flow, on, step};
use crate::story::{Scene, commit};

fn phased<const N: usize>(
    name: &str,
    kind: StepKind,
    phase: &str,
    before: &str,
    on: [FlowEdge; N],
) -> FlowStep {
    let before = (!before.is_empty()).then(|| before.to_owned());
    FlowStep { phase: phase.to_owned(), before, ..step(name, kind, on) }
}

/// A plan, its check, the work, its check, a measure, the landing: small, with the words of the long ones.
fn planned() -> Arc<Flow> {
    let check =
        |checkpoint: GatePoint| StepKind::Check { checkpoint, threshold: checkpoint.default_threshold() };
    let mut flow = flow(
        "planned",
        [
            phased("plan", agent(), "planning", "draft", [on("done", "check-plan")]),
            phased(
                "check-plan",
                check(GatePoint::PostPlan),
                "planning",
                "",
                [on("PASS", "exec"), at_most(3, on("NEEDS_REVISION", "plan")), on("BLOCKED", "stop")],
            ),
            phased("exec", agent(), "executing", "review", [on("done", "check-exec")]),
            phased(
                "check-exec",
                check(GatePoint::PostExec),
                "executing",
                "",
                [
                    on("ACCEPT", "converge"),
                    at_most(3, on("NEEDS_FIX", "exec")),
                    at_most(3, on("REPLAN", "plan")),
                    on("BLOCKED", "stop"),
                ],
            ),
            phased(
                "converge",
                StepKind::Converge,
                "evolving",
                "",
                [
                    on("satisfied", "land"),
                    at_most(30, on("CONTINUE", "plan")),
                    at_most(10, on("rollback", "plan")),
                    at_most(3, on("NEEDS_FIX", "exec")),
                ],
            ),
            phased(
                "land",
                StepKind::Land,
                "evolving",
                "",
                [on("landed", "end"), at_most(3, on("conflict", "exec")), at_most(3, on("red", "exec"))],
            ),
        ],
    );
    let by_phase = |phase: &str, step: &str| BTreeMap::from([(phase.to_owned(), StepName::new(step))]);
    flow.commands = BTreeMap::from([("land".to_owned(), by_phase("executing", "land"))]);
    assert_eq!(flow.find_problems(), [], "it could be loaded");
    Arc::new(flow)
}

/// A task that comes from one step and is about to begin another.
fn between(last: &str, next: &str) -> Scene {
    let mut scene = Scene::new(planned());
    scene.task.flow = Some(planned());
    scene.task.last_step = (!last.is_empty()).then(|| StepName::new(last));
    scene.task.state = TaskState::Ready { next: Some(StepName::new(next)), since: Timestamp(0) };
    scene
}

#[test]
fn who_is_sent_back_keeps_the_status_and_who_comes_has_not_begun() {
    let cases = [
        ("", "plan", "draft"),
        ("plan", "check-plan", "planning"),
        ("check-plan", "plan", "planning"),  // NEEDS_REVISION stays
        ("check-plan", "exec", "review"),    // PASS
        ("exec", "exec", "executing"),       // it goes on
        ("check-exec", "exec", "executing"), // NEEDS_FIX stays
        ("converge", "exec", "executing"),   // the first stage is mended
        ("land", "exec", "executing"),       // a conflict stays
    ];
    for (last, next, status) in cases {
        assert_eq!(between(last, next).task.phase(), Some(status), "from `{last}` to `{next}`");
    }
}

fn judged(result: StepResult, head: &str) -> JudgeResult {
    JudgeResult {
        checkpoint: GatePoint::PostExec,
        stage: None,
        head: Some(commit(head)),
        scores: None,
        composite: None,
        result,
        reasons: Vec::new(),
        coverage: Coverage::new(),
        findings: Vec::new(),
        at: Timestamp(0),
    }
}

#[test]
fn no_hand_lands_what_no_judge_accepted() {
    let land =
        || News::Do { command: "land".to_owned(), checkpoint: None, alone: true, flow: None, note: None };
    let said = |all: Vec<JudgeResult>| {
        let mut scene = between("exec", "check-exec");
        scene.task.head = Some(commit("now"));
        scene.task.staged.judged = all;
        scene.hear(land()).map(|(events, _)| events.iter().map(Event::name).collect::<Vec<_>>().join(" "))
    };
    let refused = "no judge has accepted this work";
    for (all, why) in [
        (vec![], "nobody looked"),
        (vec![judged(StepResult::NeedsFix, "now")], "it was sent back"),
        (vec![judged(StepResult::Accept, "earlier")], "something else was accepted"),
        (
            vec![judged(StepResult::Accept, "now"), judged(StepResult::Replan, "now")],
            "it was sent back since",
        ),
    ] {
        let told = said(all).expect_err(why);
        assert!(told.contains(refused), "{why}: {told}");
    }
    assert_eq!(said(vec![judged(StepResult::Accept, "now")]), Ok("directed".to_owned()));
}

#[test]
fn a_new_stage_has_its_own_rounds_but_stages_are_counted_together() {
    let mut task = between("converge", "plan").task;
    let edge = |step: &str, result| (StepName::new(step), result);
    task.counters.edges = BTreeMap::from([
        (edge("check-exec", StepResult::NeedsFix), 2),
        (edge("converge", StepResult::Continue), 4),
        (edge("converge", StepResult::Rollback), 1),
    ]);
    let began = Event::Staged(StagedEvent::StageBegan { number: 2, focus: vec![1] });
    let task = apply(Some(task), TaskId(1), Timestamp(1), &began).expect("a stage can begin");
    let left = [(edge("converge", StepResult::Continue), 4), (edge("converge", StepResult::Rollback), 1)];
    assert_eq!(task.counters.edges, BTreeMap::from(left));
}

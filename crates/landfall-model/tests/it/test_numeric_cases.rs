//! The numbers of objectives, stages and gates, each computed by hand from the description of the third source system. The table
//! shares no constant with the code.

use landfall_model::audit::{ChangeSize, count_audit_rounds, rounds_of};
use landfall_model::convergence::{Coverage, compare_stages, compute_convergence};
use landfall_model::objective::{Requirement, Weight};
use landfall_model::score::{GatePoint, Judgement, ScoreFacts, Scores, WEIGHTS, weigh_judgement};
use landfall_model::tune::{GateParams, dimension_weights, for_task, params_for_types};
use landfall_model::{Event, Task, TaskState};

use crate::flows_used::lifecycle;
use crate::story::{Scene, granted, says_complete, workspace};
use crate::test_rows::{
    NOTHING, begun, confirmed, executed, judges, next, planned, plans, play, sized, stage, stages_of,
};

/// A case: what it is about, what comes out, and what the source says.
type Case = (&'static str, fn() -> String, &'static str);

const CASES: [Case; 26] = [
    ("post-plan passes at 0.70", || verdict(GatePoint::PostPlan, [700; 6]), "PASS"),
    ("post-plan fails below 0.70", || verdict(GatePoint::PostPlan, [699; 6]), "NEEDS_REVISION"),
    ("mid-exec passes at 0.60", || verdict(GatePoint::MidExec, [600; 6]), "CONTINUE"),
    ("mid-exec fails below 0.60", || verdict(GatePoint::MidExec, [599; 6]), "NEEDS_FIX"),
    ("post-exec passes at 0.75", || verdict(GatePoint::PostExec, [750; 6]), "ACCEPT"),
    ("post-exec fails below 0.75", || verdict(GatePoint::PostExec, [749; 6]), "NEEDS_FIX"),
    // 0.25·0.8 + 0.20·0.9 + 0.20·0.7 + 0.10·0.8 + 0.10·0.8 + 0.15·0.9 = 0.815
    ("the composite has six weights", || composite([800, 900, 700, 800, 800, 900]), "815000"),
    // 0.25 + 0.20·0.49 + 0.20 + 0.10 + 0.10 + 0.15 = 0.898, and D2 blocks below one half
    (
        "a gate outweighs the composite",
        || verdict(GatePoint::PostExec, [1000, 490, 1000, 1000, 1000, 1000]),
        "NEEDS_FIX",
    ),
    // 250, 200·5/4, 200·5/4, 100, 100, 150 of 1100
    (
        "software weighs D2 and D3 more",
        || format!("{:?}", dimension_weights(&["software"])),
        "[227, 227, 227, 91, 91, 137]",
    ),
    ("a plan is revised three times", plan_judged, "4 judged, failed"),
    ("work on the way is mended twice", mid_judged, "3 judged, failed"),
    (
        "finished work is mended three times, 11 files or not",
        || end_judged(ChangeSize { files: 11, lines: 300, dirs: 2 }),
        "4 judged, failed",
    ),
    // ⌈11/5⌉ + ⌈300/200⌉ + ⌈2/3⌉ = 3 + 2 + 1
    (
        "its check has six rounds",
        || count_audit_rounds(ChangeSize { files: 11, lines: 300, dirs: 2 }, &[]).to_string(),
        "6",
    ),
    // ⌈100/5⌉ + … is 10 at most; the least is 2; without a measure it is 3
    ("a check has two to ten rounds, three by default", rounds_bounds, "10 2 3"),
    ("a bug fix has 0.60 and 0.65, and two revisions", || profile("bug-fix"), "600/600/650 2/2/3"),
    (
        "architecture has 0.75 and 0.80, and four retries at the end",
        || profile("architecture"),
        "750/600/800 3/2/4",
    ),
    (
        "a data pipeline has 0.70 on the way, and more retries",
        || profile("data-pipeline"),
        "700/700/750 3/3/4",
    ),
    ("a type profile outweighs the defaults", from_profile, "600/550/650 2/1/4 every 5 at 78 %"),
    // (3·1 + 2·0.5 + 1·0) / 6
    ("convergence weighs 3, 2 and 1", || share(&[(1, 1000), (2, 500)]), "Some(6667)"),
    ("what no judge spoke of counts as nothing", || share(&[]), "Some(0)"),
    ("an equal convergence is no closer", || format!("{:?}", compare_stages(Some(6667), 6667)), "NoCloser"),
    ("a ten-thousandth more is closer", || format!("{:?}", compare_stages(Some(6667), 6668)), "Closer"),
    (
        "below 0.95 another stage follows, at 0.95 none",
        || format!("{:?} {:?}", compare_stages(Some(1), 9499), compare_stages(Some(1), 9500)),
        "Closer Satisfied",
    ),
    ("without a direction left the branch is reset", no_direction_left, "true true"),
    (
        "past its retries, stage 2 goes to re-planning",
        past_retries,
        "re-plan, phase re-planning, stages [(1, 3333)]",
    ),
    (
        "a context is summed up at 82 %, a check comes every third step",
        || format!("{} {}", GateParams::DEFAULT.compact_percent, GateParams::DEFAULT.mid_exec_interval),
        "82 3",
    ),
];

#[test]
fn every_number_is_the_one_of_the_source() {
    let wrong: Vec<String> = CASES
        .iter()
        .filter_map(|(about, found, expected)| {
            let found = found();
            (found != *expected).then(|| format!("{about}: {found} instead of {expected}"))
        })
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}

fn ruled(checkpoint: GatePoint, scores: [u32; 6]) -> landfall_model::score::JudgementOutcome {
    let judgement = Judgement { scores: Scores::new(scores), ..Judgement::default() };
    let known =
        ScoreFacts { red: false, uncovered: Vec::new(), unproved: None, caps: Vec::new(), refinement: None };
    let threshold = GateParams::DEFAULT.thresholds.of(checkpoint);
    weigh_judgement(checkpoint, threshold, WEIGHTS, &judgement, &known).expect("six scores are enough")
}

fn verdict(checkpoint: GatePoint, scores: [u32; 6]) -> String {
    ruled(checkpoint, scores).result.word().to_owned()
}

fn composite(scores: [u32; 6]) -> String {
    ruled(GatePoint::PostExec, scores).composite.expect("it was computed").to_string()
}

/// How often a checkpoint judged before the task stopped.
fn judged(scene: &Scene, checkpoint: GatePoint) -> String {
    let count = scene.task.staged.judged.iter().filter(|it| it.checkpoint == checkpoint).count();
    let TaskState::Ended(ending) = &scene.task.state else { panic!("it goes on: {:?}", scene.task.state) };
    format!("{count} judged, {}", ending.kind.word())
}

fn plan_judged() -> String {
    let mut scene = begun(lifecycle());
    while !scene.task.is_over() {
        play(&mut scene, [granted(), workspace(), plans(), granted(), workspace(), judges(550, NOTHING)]);
    }
    judged(&scene, GatePoint::PostPlan)
}

fn mid_judged() -> String {
    let mut scene = begun(lifecycle());
    play(&mut scene, planned());
    while !scene.task.is_over() {
        play(&mut scene, [granted(), workspace(), crate::test_rows::asks_for_a_look(), granted()]);
        play(&mut scene, [crate::story::passes(), granted(), workspace(), judges(550, NOTHING)]);
    }
    judged(&scene, GatePoint::MidExec)
}

fn end_judged(extent: ChangeSize) -> String {
    let mut scene = begun(lifecycle());
    play(&mut scene, planned());
    while !scene.task.is_over() {
        play(&mut scene, [granted(), workspace(), says_complete(), granted(), sized(extent)]);
        play(&mut scene, [granted(), workspace(), judges(550, NOTHING)]);
    }
    judged(&scene, GatePoint::PostExec)
}

fn rounds_bounds() -> String {
    let large = count_audit_rounds(ChangeSize { files: 100, lines: 9_000, dirs: 40 }, &["software"]);
    let small = count_audit_rounds(ChangeSize { files: 0, lines: 0, dirs: 0 }, &[]);
    format!("{large} {small} {}", rounds_of(&begun(lifecycle()).task))
}

fn shown(params: GateParams) -> String {
    let all = |per: [u32; 3]| per.map(|it| it.to_string()).join("/");
    format!("{} {}", all(params.thresholds.into()), all(params.retries.into()))
}

fn profile(kind: &str) -> String {
    shown(params_for_types(&[kind]))
}

fn from_profile() -> String {
    let mut task: Task = begun(lifecycle()).task;
    task.spec.tags = [
        "threshold:post-plan:0.600",
        "threshold:mid-exec:0.55",
        "threshold:post-exec:.65",
        "retries:post-plan:2",
        "retries:mid-exec:1",
        "retries:post-exec:4",
        "interval:5",
        "compaction:78",
    ]
    .map(|tag| tag.parse().expect("a tag"))
    .into();
    let params = for_task(&task, std::iter::empty()).expect("its tags say so");
    format!("{} every {} at {} %", shown(params), params.mid_exec_interval, params.compact_percent)
}

fn share(covered: &[(u32, u32)]) -> String {
    let weights = [Weight::Critical, Weight::Important, Weight::Optional];
    let baseline: Vec<Requirement> =
        (1..).zip(weights).map(|(number, weight)| Requirement::new(number, "it holds", "", weight)).collect();
    let coverage: Coverage = covered.iter().copied().collect();
    format!("{:?}", compute_convergence(&baseline, &coverage))
}

/// One requirement, half met in stage 1; every later stage comes no closer.
fn no_direction_left() -> String {
    let mut scene = begun(crate::flows_used::stages());
    scene.task.spec.criteria.truncate(1);
    scene.journal[0].1 = Event::Added { spec: scene.task.spec.clone() };
    play(&mut scene, [granted(), crate::story::answers("OK")]);
    play(&mut scene, stage([2, 0, 0]));
    let accepted = scene.task.staged.stages[0].commit.clone();
    while !scene.task.is_over() {
        play(&mut scene, stage([2, 0, 0]));
    }
    let is_reset =
        scene.task.restart.as_ref() == Some(&accepted) && scene.task.head.as_ref() == Some(&accepted);
    play(&mut scene, [crate::story::retry()]);
    format!("{is_reset} {}", scene.task.staged.focus.is_some())
}

fn past_retries() -> String {
    let mut scene = confirmed();
    play(&mut scene, stage([4, 0, 0]));
    play(&mut scene, planned());
    while scene.task.staged.exclusions.is_empty() {
        play(&mut scene, executed());
        play(&mut scene, [judges(550, [2, 0, 0])]);
    }
    format!("{}, phase {}, stages {:?}", next(&scene), scene.task.phase_word(), stages_of(&scene))
}

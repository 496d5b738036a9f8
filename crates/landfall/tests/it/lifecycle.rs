//! Tasks with a plan and a judge, from outside, by the scripted agent: behaviours 2 to 8 and 17 to 21.

use landfall_testkit::ScratchProject;

use crate::LANDFALL;
use crate::styles::{Style, in_styles};

/// Scores that pass every gate.
pub const GOOD: &str =
    r#"{"scores":{"d1":0.9,"d2":0.9,"d3":0.9,"d4":0.9,"d5":0.9,"d6":0.9},"reason":"fine"}"#;
/// Scores that pass none.
const POOR: &str = r#"{"scores":{"d1":0.55,"d2":0.55,"d3":0.55,"d4":0.5,"d5":0.5,"d6":0.5},"findings":[{"severity":"major","title":"too thin"}],"reason":"not yet"}"#;

/// A step of a script in which the agent says something.
pub fn says(step: &str, words: &str) -> String {
    format!("[[step.{step}]]\nsay = [{words:?}]\nsignal = \"complete\"\n")
}

/// A step in which it writes a plan of so many steps.
pub fn plans(step: &str, title: &str, steps: u32, covers: &str) -> String {
    let mut plan = format!("# {title}\n\n");
    for number in 1..=steps {
        plan.push_str(&format!("## Step {number}: part {number}\n{covers}\n\n"));
    }
    format!(
        "[[step.{step}]]\nsignal = \"complete\"\ncommit = false\n[[step.{step}.write]]\npath = \".landfall/task/plan.md\"\ntext = {plan:?}\n"
    )
}

/// A step in which it writes a file and commits it.
pub fn works(step: &str, file: &str, signal: &str) -> String {
    format!("[[step.{step}]]\nsignal = {signal}\n[[step.{step}.write]]\npath = {file:?}\ntext = \"x\\n\"\n")
}

fn log(scratch: &ScratchProject, task: &str) -> String {
    scratch.landfall(&["log", task]).ok()
}

fn lifecycle(style: Style, script: &[String]) -> ScratchProject {
    let scratch = style.scratch();
    scratch.task("First", &style.script(&script.concat()), &["--flow", "lifecycle"]);
    scratch
}

fn behaviour_03_a_plan_is_revised_twice_executed_accepted_and_lands(style: Style) {
    let scratch = lifecycle(
        style,
        &[
            plans("plan", "one", 2, ""),
            plans("plan", "two", 2, ""),
            plans("plan", "three", 2, ""),
            says("check-plan", POOR),
            says("check-plan", POOR),
            says("check-plan", GOOD),
            works("exec", "done.txt", "\"complete\""),
            says("check-exec", GOOD),
        ],
    );
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done");
    assert_eq!(scratch.git(&["show", "main:done.txt"]), "x");
    let log = log(&scratch, "T1");
    for wanted in ["NEEDS_REVISION", "PASS", "ACCEPT", "landed"] {
        assert!(log.contains(wanted), "{wanted} is missing:\n{log}");
    }
    assert_eq!(log.matches("judged, post-plan: NEEDS_REVISION").count(), 2, "{log}");
    let files = scratch.git(&["ls-tree", "-r", "--name-only", "main"]);
    assert!(!files.contains("plan.md") && !files.contains(".landfall/task"), "no paper lands: {files}");
    let prompts = scratch.prompts("T1");
    assert!(
        prompts.iter().any(|it| it.contains("too thin") && it.contains("Plan task")),
        "the judge's word reaches the planner"
    );
    style.was_kept(&scratch, "T1");
}
in_styles!(behaviour_03_a_plan_is_revised_twice_executed_accepted_and_lands: fresh, session);

fn behaviour_04_past_its_revisions_a_plan_needs_a_person(style: Style) {
    let scratch = lifecycle(style, &[plans("plan", "one", 1, ""), says("check-plan", POOR)]);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "failed");
    let why = scratch.why("T1");
    assert!(why.contains("the plan failed review more than 3 times"), "{why}");
    style.was_kept(&scratch, "T1");
}
in_styles!(behaviour_04_past_its_revisions_a_plan_needs_a_person: fresh, session);

fn behaviour_05_a_judge_that_fails_stops_at_once_and_costs_no_round(style: Style) {
    for broken in
        ["[[step.check-plan]]\nmisbehave = \"crash\"\n".to_owned(), says("check-plan", "I have no opinion.")]
    {
        let scratch = lifecycle(style, &[plans("plan", "one", 1, ""), broken]);
        scratch.landfall(&["run"]);
        let why = scratch.why("T1");
        assert!(
            scratch.status("T1") == "failed" && why.contains("the judge of step `check-plan` failed"),
            "{why}"
        );
        assert!(!log(&scratch, "T1").contains("NEEDS_REVISION"));
    }
}
in_styles!(behaviour_05_a_judge_that_fails_stops_at_once_and_costs_no_round: fresh, session);

fn behaviour_06_a_problem_on_the_way_is_judged_and_work_goes_on_at_the_next_step(style: Style) {
    let scratch = lifecycle(
        style,
        &[
            plans("plan", "one", 3, ""),
            says("check-plan", GOOD),
            works("exec", "one.txt", "[\"step:1\", \"check:the interface is another\"]"),
            works("exec", "two.txt", "\"complete\""),
            says("check-mid", POOR),
            says("check-exec", GOOD),
        ],
    );
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done");
    let log = log(&scratch, "T1");
    assert!(
        log.contains("judged, mid-exec: NEEDS_FIX") && log.contains("step 1 of its plan is done"),
        "{log}"
    );
    let prompts = scratch.prompts("T1");
    assert!(prompts.iter().any(|it| it.contains("go on with step 2")), "it is told where to go on");
    assert!(
        prompts.iter().any(|it| it.contains("the interface is another") && it.contains("mid-exec")),
        "the judge hears why"
    );
    style.was_kept(&scratch, "T1");
}
in_styles!(behaviour_06_a_problem_on_the_way_is_judged_and_work_goes_on_at_the_next_step: fresh, session);

#[test]
fn every_third_step_is_judged_before_work_goes_on() {
    let scratch = lifecycle(
        Style::Fresh,
        &[
            plans("plan", "one", 4, ""),
            says("check-plan", GOOD),
            works("exec", "one.txt", "\"step:3\""),
            works("exec", "two.txt", "\"complete\""),
            says("check-mid", GOOD),
            says("check-exec", GOOD),
        ],
    );
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done");
    assert!(log(&scratch, "T1").contains("judged, mid-exec: CONTINUE"));
}

fn behaviour_07_another_plan_archives_the_first_and_begins_at_its_first_step(style: Style) {
    let replan = POOR.replace("\"reason\"", "\"verdict\":\"REPLAN\",\"reason\"");
    let scratch = lifecycle(
        style,
        &[
            plans("plan", "one", 3, ""),
            says("check-plan", GOOD),
            works("exec", "one.txt", "[\"step:2\", \"complete\"]"),
            works("exec", "two.txt", "\"complete\""),
            says("check-exec", &replan),
            says("check-exec", GOOD),
            plans("re-plan", "two", 2, ""),
            says("check-re-plan", GOOD),
        ],
    );
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done");
    let log = log(&scratch, "T1");
    assert!(
        log.contains("judged, post-exec: REPLAN") && log.contains("a plan of 2 steps is written"),
        "{log}"
    );
    style.was_kept(&scratch, "T1");
}
in_styles!(behaviour_07_another_plan_archives_the_first_and_begins_at_its_first_step: fresh, session);

fn behaviour_17_a_gate_blocks_whatever_the_average(style: Style) {
    let insecure =
        r#"{"scores":{"d1":1,"d2":0.4,"d3":1,"d4":1,"d5":1,"d6":1},"reason":"a path comes from outside"}"#;
    let scratch = lifecycle(
        style,
        &[
            plans("plan", "one", 1, ""),
            says("check-plan", GOOD),
            works("exec", "one.txt", "\"complete\""),
            says("check-exec", insecure),
            says("check-exec", GOOD),
        ],
    );
    scratch.landfall(&["run"]).ok();
    let log = log(&scratch, "T1");
    assert!(log.contains("D2 (security) is 0.40, below the gate of 0.50"), "{log}");
    assert_eq!(log.matches("judged, post-exec: NEEDS_FIX").count(), 1, "{log}");
    style.was_kept(&scratch, "T1");
}
in_styles!(behaviour_17_a_gate_blocks_whatever_the_average: fresh, session);

#[test]
fn c36_a_judge_cannot_let_red_work_pass() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings("[project]\nflow = \"lifecycle\"\n[verify]\n[[verify.command]]\nname = \"tests\"\nrun = \"test ! -e wrong.txt\"\n[agent.default]\nkind = \"script\"\n");
    let script = [
        plans("plan", "one", 1, ""),
        says("check-plan", GOOD),
        works("exec", "wrong.txt", "\"complete\""),
        works("exec", "right.txt", "\"complete\"").replace("signal", "delete = [\"wrong.txt\"]\nsignal"),
        says("check-exec", GOOD),
    ];
    scratch.task("First", &script.concat(), &[]);
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done");
    assert_eq!(scratch.git(&["show", "main:right.txt"]), "x");
    assert_eq!(
        log(&scratch, "T1").matches("judged, post-exec").count(),
        1,
        "red work is not even shown to the judge"
    );
}

pub fn staged(style: Style, criteria: &[&str], script: &[String]) -> ScratchProject {
    let scratch = style.scratch();
    let criteria = criteria.iter().flat_map(|it| ["--criterion", it]);
    let more: Vec<&str> = ["--flow", "staged"].into_iter().chain(criteria).collect();
    scratch.task("First", &style.script(&script.concat()), &more);
    scratch
}

pub fn covers(pairs: &[(u32, f64)]) -> String {
    let all: Vec<String> =
        pairs.iter().map(|(r, c)| format!("{{\"r\":{r},\"coverage\":{c},\"why\":\"seen\"}}")).collect();
    GOOD.replace("\"reason\"", &format!("\"coverage\":[{}],\"reason\"", all.join(",")))
}

const QUESTION: &str = "Objectives extracted — 1 items, 2 requirements:";

fn behaviour_20_only_a_yes_after_the_question_begins_the_work(style: Style) {
    let scratch = staged(style, &["it greets", "it leaves"], &[plans("plan", "one", 1, "Covers: R1, R2")]);
    let early = scratch.landfall(&["answer", "T1", "OK"]);
    assert_ne!(early.code, Some(0), "nothing was asked yet: {early:?}");
    scratch.landfall(&["run"]);
    let why = scratch.why("T1");
    assert!(why.contains(QUESTION) && why.contains("1. First (R: 2)"), "{why}");
    assert!(scratch.prompts("T1").is_empty(), "no agent ran");
}
in_styles!(behaviour_20_only_a_yes_after_the_question_begins_the_work: fresh, session);

fn behaviour_19_stages_converge_until_the_objective_is_met(style: Style) {
    let scratch = staged(
        style,
        &["it greets", "it leaves"],
        &[
            plans("plan", "one", 1, "Covers: R1, R2"),
            plans("plan", "two", 1, "Covers: R2"),
            says("check-plan", GOOD),
            works("exec", "one.txt", "\"complete\""),
            works("exec", "two.txt", "\"complete\""),
            says("check-exec", &covers(&[(1, 1.0), (2, 0.0)])),
            says("check-exec", &covers(&[(1, 1.0), (2, 1.0)])),
        ],
    );
    scratch.landfall(&["run"]);
    scratch.landfall(&["answer", "T1", "OK"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done");
    let log = log(&scratch, "T1");
    for wanted in [
        "stage 1 begins, for R1, R2",
        "convergence went from nothing to 0.5000: another stage follows",
        "stage 2 begins, for R2",
        "convergence went from 0.5000 to 1.0000: the objective is met",
    ] {
        assert!(log.contains(wanted), "{wanted} is missing:\n{log}");
    }
    assert_eq!(scratch.git(&["show", "main:two.txt"]), "x");
    style.was_kept(&scratch, "T1");
}
in_styles!(behaviour_19_stages_converge_until_the_objective_is_met: fresh, session);

fn behaviour_18_a_stage_that_comes_no_closer_is_rolled_back_and_its_way_is_not_taken_again(style: Style) {
    let scratch = staged(
        style,
        &["it greets"],
        &[
            plans("plan", "one", 1, "Covers: R1"),
            says("check-plan", GOOD),
            plans("re-plan", "another", 1, "Covers: R1"),
            says("check-re-plan", GOOD),
            works("exec", "one.txt", "\"complete\""),
            works("exec", "bad.txt", "\"complete\""),
            works("exec", "worse.txt", "\"complete\""),
            says("check-exec", &covers(&[(1, 0.5)])),
        ],
    );
    scratch.landfall(&["run"]);
    scratch.landfall(&["answer", "T1", "confirmed"]).ok();
    scratch.landfall(&["run"]);
    let log = log(&scratch, "T1");
    assert!(log.contains("convergence went from 0.5000 to 0.5000: the stage is rolled back"), "{log}");
    assert!(log.contains("stage 2 for R1: part 1 is given up"), "a direction is named by its plan: {log}");
    assert_eq!(scratch.facts("T1", "given-up").len(), 3, "one requirement is tried in several directions");
    let why = scratch.why("T1");
    assert!(
        scratch.status("T1") == "blocked" && why.contains("every direction was tried: 3 were given up"),
        "{why}"
    );
    assert!(why.contains("the branch is back at the end of stage 1"), "{why}");
    let diff = scratch.landfall(&["diff", "T1"]).ok();
    assert!(
        diff.contains("one.txt") && !diff.contains("worse.txt"),
        "what was given up is not its work: {diff}"
    );
    let prompts = scratch.prompts("T1");
    assert!(prompts.iter().any(|it| it.contains("The last stage was rolled back")), "the planner is told");
    // What a session remembers of a stage that is gone would mislead it.
    style.was_kept_but(2, &scratch, "T1");
    // A person may want another direction all the same.
    let stages = || scratch.facts("T1", "stage-began").len();
    let before = stages();
    scratch.landfall(&["retry", "T1"]).ok();
    assert_eq!(stages(), before + 1, "another stage begins");
}
in_styles!(behaviour_18_a_stage_that_comes_no_closer_is_rolled_back_and_its_way_is_not_taken_again: fresh, session);

/// Runs the example of a page of the guide, just as it stands there; what it said in all.
fn example(page: &str) -> String {
    let text = std::fs::read_to_string(format!("{}/../../docs/guide/{page}", env!("CARGO_MANIFEST_DIR")));
    let text = text.expect("the page is there");
    let (_, rest) = text.split_once("````sh\n").expect("the page has an example");
    let (script, _) = rest.split_once("````\n").expect("the example ends");
    let place = tempfile::tempdir().expect("a folder");
    let bin = std::path::Path::new(LANDFALL).parent().expect("a folder").display().to_string();
    let ran = std::process::Command::new("sh")
        .args(["-c", script])
        .current_dir(place.path())
        .env_clear()
        .env("PATH", format!("{bin}:{}", std::env::var("PATH").expect("a path")))
        .env("HOME", place.path())
        .env("LANDFALL_STATE", place.path().join("state"))
        .output()
        .expect("there is a shell");
    format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr))
}

#[test]
fn the_example_of_the_guide_to_the_lifecycle_does_what_it_says() {
    let said = example("lifecycle.md");
    for wanted in [
        "judged, post-plan: NEEDS_REVISION",
        "judged, post-plan: PASS",
        "judged, post-exec: ACCEPT",
        "landed as",
    ] {
        assert!(said.contains(wanted), "{wanted} is missing:\n{said}");
    }
}

#[test]
fn the_example_of_the_guide_to_stages_does_what_it_says() {
    let said = example("staged.md");
    for wanted in [
        "Objectives extracted — 1 items, 2 requirements",
        "to 0.5000: another stage",
        "to 1.0000: the objective is met",
        "landed as",
    ] {
        assert!(said.contains(wanted), "{wanted} is missing:\n{said}");
    }
}

//! Checks that a plan or a judge names, seen red and green by the engine itself; and how many rounds a judge has.

use landfall_testkit::ScratchProject;

use crate::LANDFALL;
use crate::lifecycle::{GOOD, covers, says, staged, works};
use crate::styles::Style;

/// A plan with one step for each command.
fn plans(commands: &[&str]) -> String {
    let mut plan = "# A plan\n\n".to_owned();
    for (number, command) in (1..).zip(commands) {
        plan.push_str(&format!("## Step {number}: part {number}\nCovers: R1\nVerify: `{command}`\n\n"));
    }
    format!(
        "[[step.plan]]\nsignal = \"complete\"\ncommit = false\n[[step.plan.write]]\npath = \".landfall/task/plan.md\"\ntext = {plan:?}\n"
    )
}

/// A judge who sends the work back and names the test that shows why.
fn names(command: &str) -> String {
    let finding = format!(
        r#""findings":[{{"severity":"major","title":"it does not greet","test":{{"red":"no greeting","command":{command:?}}}}}]"#
    );
    GOOD.replace("\"reason\"", &format!("\"verdict\":\"NEEDS_FIX\",{finding},\"reason\""))
}

fn lifecycle(script: &[String]) -> ScratchProject {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("First", &script.concat(), &["--flow", "lifecycle"]);
    scratch
}

fn told(scratch: &ScratchProject) -> (String, String) {
    (scratch.landfall(&["log", "T1"]).ok(), scratch.landfall(&["show", "T1"]).ok())
}

#[track_caller]
fn has(text: &str, wanted: &[&str]) {
    for wanted in wanted {
        assert!(text.contains(wanted), "{wanted} is missing:\n{text}");
    }
}

#[test]
fn the_checks_of_a_plan_turn_from_red_to_green_and_stay_so() {
    let breaks = "[[step.exec]]\nsignal = \"complete\"\ndelete = [\"one.txt\"]\n[[step.exec.write]]\npath = \"two.txt\"\ntext = \"x\\n\"\n";
    let scratch = lifecycle(&[
        plans(&["test -f one.txt", "test -f two.txt"]),
        says("check-plan", GOOD),
        works("exec", "one.txt", "\"complete\""), // the second check is still red
        breaks.to_owned(),                        // and now the first is again
        works("exec", "one.txt", "\"complete\""),
        says("check-exec", GOOD),
    ]);
    scratch.landfall(&["run"]).ok();
    let (log, show) = told(&scratch);
    has(
        &log,
        &[
            "its plan names 2 checks that must turn from red to green",
            "checks that were named: step 1 red → green, step 2 red → red",
            "checks that were named: step 1 red, step 2 green",
            "checks that were named: step 1 green, step 2 green",
            "landed",
        ],
    );
    assert_eq!(scratch.status("T1"), "done", "{log}");
    has(&show, &["2/2 proved, 1 lost on the way"]);
    let target = scratch.landfall(&["target", "T1"]).ok();
    has(&target, &["checks, 2/2 proved", "step 2, proved: test -f two.txt"]);
    let prompts = scratch.prompts("T1");
    let says = |text: &str| prompts.iter().any(|it| it.contains(text));
    assert!(says("step 1 (part 1): `test -f one.txt` is not run yet"), "it is told before it works");
    assert!(
        says("step 2 (part 2): `test -f two.txt` is open: it does not pass"),
        "what is missing goes back"
    );
    assert!(says("step 1 (part 1): `test -f one.txt` is lost"), "and so does what was broken");
}

#[test]
fn checks_that_pass_before_the_work_prove_nothing_and_the_work_is_not_accepted_for_them() {
    let scratch = staged(
        Style::Fresh,
        &["it greets"],
        &[
            plans(&["true", "test -f landfall.toml", "test -f one.txt"]),
            says("check-plan", GOOD),
            works("exec", "one.txt", "\"complete\""),
            says("check-exec", &covers(&[(1, 1.0)])),
        ],
    );
    scratch.landfall(&["run"]);
    scratch.landfall(&["target", "T1", "--ok"]).ok();
    scratch.landfall(&["run"]);
    let (log, show) = told(&scratch);
    has(
        &log,
        &["step 1 green → green", "step 3 red → green", "1 of 3 checks of the plan fail before the work"],
    );
    has(&show, &["1/3 proved"]);
    assert_eq!(scratch.status("T1"), "failed", "{log}");
}

#[test]
fn what_a_judge_names_a_test_for_is_mended_only_when_that_test_turned_green() {
    let greets = |text: &str| {
        format!(
            "[[step.exec]]\nsignal = \"complete\"\n[[step.exec.write]]\npath = \"one.txt\"\ntext = \"{text}\\n\"\n"
        )
    };
    let plan = "[[step.plan]]\nsignal = \"complete\"\ncommit = false\n[[step.plan.write]]\npath = \".landfall/task/plan.md\"\ntext = \"## Step 1: do it\"\n";
    let scratch = lifecycle(&[
        plan.to_owned(),
        says("check-plan", GOOD),
        greets("silence"),
        greets("still silence"), // says that it is mended, and is not
        greets("hello"),
        greets("hello again"),
        says("check-exec", &names("grep -q hello one.txt")),
        says("check-exec", &names("test -f one.txt")), // passes already: it shows no fault
        says("check-exec", GOOD),
    ]);
    scratch.landfall(&["run"]).ok();
    let (log, _) = told(&scratch);
    has(
        &log,
        &[
            "the judge names 1 check that must turn from red to green",
            "finding 1 red → red",
            "finding 1 green",
            "finding 2 green → green",
            "landed",
        ],
    );
    assert_eq!(scratch.status("T1"), "done", "{log}");
    assert_eq!(log.matches("judged, post-exec").count(), 3, "the judge does not see it unmended: {log}");
    let prompts = scratch.prompts("T1");
    let says = |text: &str| prompts.iter().any(|it| it.contains(text));
    assert!(says("finding 1 (it does not greet): `grep -q hello one.txt` is open"), "it goes back");
    assert!(says("`test -f one.txt` is void: it passes on the state before the work"), "the judge is told");
}

#[test]
fn a_large_change_has_more_rounds_with_its_judge() {
    let mut large = "[[step.exec]]\nsignal = \"complete\"\n".to_owned();
    for number in 0..30 {
        large.push_str(&format!("[[step.exec.write]]\npath = \"part{number}.txt\"\ntext = \"x\\n\"\n"));
    }
    let poor = GOOD.replace("\"reason\"", "\"verdict\":\"NEEDS_FIX\",\"reason\"");
    let plan = "[[step.plan]]\nsignal = \"complete\"\ncommit = false\n[[step.plan.write]]\npath = \".landfall/task/plan.md\"\ntext = \"## Step 1: do it\"\n";
    let mut script = vec![plan.to_owned(), says("check-plan", GOOD), large];
    for number in 0..2 {
        script.push(works("exec", &format!("fix{number}.txt"), "\"complete\""));
        script.push(says("check-exec", &poor));
    }
    script.push(says("check-exec", GOOD));
    let scratch = lifecycle(&script);
    scratch.landfall(&["run"]).ok();
    let (log, show) = told(&scratch);
    assert_eq!(scratch.status("T1"), "done", "{log}");
    has(&log, &["its change is 30 files and 30 lines in 1 folder"]);
    assert_eq!(log.matches("judged, post-exec: NEEDS_FIX").count(), 2, "{log}");
    has(&show, &["sent back by its judge 0 of at most 3 times"]); // whatever its size
    let reads = |text: &str| scratch.prompts("T1").iter().any(|it| it.contains(text));
    assert!(reads("in rounds, at most 8:"), "its judge reads it more often"); // 30 files, 30 lines, 1 folder
}

#[test]
fn delegated_work_that_fails_falls_back_to_the_profile_of_the_task() {
    let scratch = ScratchProject::new(LANDFALL);
    let flow = include_str!("../../../../flows/loop.toml");
    scratch.file(
        ".landfall/flows/delegated.toml",
        &flow.replace("prompt = \"work\"", "prompt = \"work\"\nagent = \"light\""),
    );
    scratch.more_settings("[agent.light]\nkind = \"script\"");
    let steps = "[[step.work]]\nmisbehave = \"crash\"\n[[step.work]]\nsignal = \"complete\"\n[[step.work.write]]\npath = \"one.txt\"\ntext = \"x\\n\"\n";
    scratch.task("First", steps, &["--flow", "delegated"]);
    let whole =
        "[[step.work]]\nsignal = \"complete\"\n[[step.work.write]]\npath = \"two.txt\"\ntext = \"x\\n\"\n";
    scratch.task("Second", whole, &["--flow", "delegated"]);
    scratch.landfall(&["run"]).ok();
    let profiles = |task: &str| {
        let shown = scratch.landfall(&["--json", "show", task]).json();
        let attempts = shown["attempts"].as_array().expect("there are attempts").clone();
        let runs = attempts.iter().flat_map(|it| it["runs"].as_array().cloned().unwrap_or_default());
        runs.map(|run| run["profile"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((scratch.status("T1").as_str(), scratch.status("T2").as_str()), ("done", "done"));
    assert_eq!(profiles("T1"), ["light", "default"]);
    assert_eq!(profiles("T2"), ["light"]);
}

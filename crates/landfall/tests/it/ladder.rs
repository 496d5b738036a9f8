//! Steps of issues that fail, by the scripted agent: what is done about them, rung by rung. Behaviours 22 to 24 and 27.

use landfall_testkit::{Said, Scratch};

use crate::LANDFALL;
use crate::lifecycle::{says, works};

/// A project whose agent, asked about a failure, says this.
fn project(plan: &str) -> Scratch {
    let scratch = Scratch::new(LANDFALL);
    let plan = if plan.is_empty() { String::new() } else { says("diagnosis", plan) };
    scratch.file("looks.toml", &plan);
    let path = scratch.project().join("landfall.toml");
    let settings = std::fs::read_to_string(path).expect("the settings can be read");
    scratch.settings(&settings.replacen(
        "kind = \"script\"\n",
        "kind = \"script\"\nscript = \"looks.toml\"\n",
        1,
    ));
    scratch
}

/// A turn in which it says that it is done and has done nothing.
fn idles(step: &str) -> String {
    format!("[[step.{step}]]\nsignal = \"complete\"\ncommit = false\n")
}

/// A turn in which it writes a file and ends with this code, without a word.
fn breaks_off(step: &str, file: &str, commit: bool, exit: u8) -> String {
    format!(
        "[[step.{step}]]\ncommit = {commit}\nexit = {exit}\n[[step.{step}.write]]\npath = {file:?}\ntext = \"x\\n\"\n"
    )
}

/// Follows a small issue with this script.
fn follow(scratch: &Scratch, title: &str, turns: &[String], size: &str) -> Said {
    let body = format!("```landfall-script\n{}\n```\n", turns.concat());
    let args = ["--json", "issue", "new", title, "--body", &body, "--size", size, "--label", "triaged"];
    let number = scratch.landfall(&args).json()["issue"]["number"].as_u64().expect("a number");
    scratch.landfall(&["auto", &number.to_string()])
}

fn log(scratch: &Scratch, task: &str) -> String {
    scratch.landfall(&["log", task]).ok()
}

#[test]
fn behaviour_22_nothing_done_is_tried_once_more_then_an_agent_looks_then_a_person() {
    let scratch = project(r#"{"action": "retry", "rationale": "it may do it this time"}"#);
    let said = follow(&scratch, "Idle", &[idles("code"), idles("code"), idles("code"), idles("code")], "XS");
    assert_ne!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let log = log(&scratch, "T1");
    assert_eq!(scratch.status("T1"), "blocked", "{log}");
    let why = scratch.why("T1");
    assert!(why.contains("recovery_failed") && why.contains("`silent-no-op`"), "{why}\n{log}");
    assert_eq!(log.matches("failed (silent-no-op); retry").count(), 1, "{log}");
    assert_eq!(log.matches("failed (silent-no-op); an agent looks").count(), 1, "{log}");
    assert!(log.contains("an agent's plan: retry: it may do it this time"), "{log}");
    let runs = scratch.prompts("T1").len();
    assert_eq!(runs, 3, "once, once more, and once after an agent had looked: {log}");
    assert!(scratch.prompts("T1")[1].contains("is not there"), "the agent is told");
}

#[test]
fn a_spec_that_nobody_wrote_is_named_by_why() {
    let scratch = project(r#"{"action": "abort", "rationale": "somebody has to say what is wanted"}"#);
    let said = follow(&scratch, "Idle", &[idles("spec"), idles("spec"), idles("spec")], "S");
    assert_ne!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let why = scratch.why("T1");
    assert!(why.contains("it did not leave: docs/spec/issue-1-idle.md"), "{why}");
    assert!(scratch.prompts("T1")[1].contains("docs/spec/issue-1-idle.md"), "the agent is told which");
}

#[test]
fn behaviour_23_finished_work_lands_whatever_the_exit_code_says() {
    let scratch = project("");
    let said = follow(&scratch, "Break off", &[breaks_off("code", "done.txt", true, 1)], "XS");
    assert_eq!(said.code, Some(0), "{}\n{}\n{}", said.out, said.err, log(&scratch, "T1"));
    assert_eq!(scratch.git(&["show", "main:done.txt"]), "x");
    let log = log(&scratch, "T1");
    assert!(log.contains("is done in spite of its end"), "{log}");
    assert_eq!(scratch.prompts("T1").len(), 1, "nothing is done twice: {log}");
}

#[test]
fn behaviour_24_killed_after_the_commit_it_goes_on_with_the_offer() {
    let scratch = project("");
    let spec = "[[step.spec]]\nsignal = \"complete\"\n[[step.spec.write]]\npath = \"docs/spec/issue-1-x.md\"\ntext = \"# X\\n\"\n";
    let turns = [
        spec.to_owned(),
        breaks_off("code", "done.txt", true, 137),
        says("review", r#"{"findings": [], "resolved": []}"#),
    ];
    let said = follow(&scratch, "Killed", &turns, "M");
    let log = log(&scratch, "T1");
    assert_eq!(said.code, Some(0), "{}\n{}\n{log}", said.out, said.err);
    assert!(
        log.contains("is done in spite of its end") && log.contains("offered as pull request #"),
        "{log}"
    );
    assert_eq!(scratch.git(&["show", "main:done.txt"]), "x");
    assert_eq!(log.matches("is done in spite of its end").count(), 1, "{log}");
    let runs = scratch.prompts("T1").len();
    assert_eq!(runs, 3, "spec, code and review, each once: {log}");
}

#[test]
fn what_a_plan_of_an_agent_names_is_done_and_the_work_goes_on_from_there() {
    let plan =
        r#"{"action": "recover", "rationale": "the work is there", "steps": [{"op": "commit-leftovers"}]}"#;
    let scratch = project(plan);
    let turns = [breaks_off("code", "done.txt", false, 3), works("code", "more.txt", "\"complete\"")];
    let said = follow(&scratch, "Leftovers", &turns, "XS");
    let log = log(&scratch, "T1");
    assert_eq!(said.code, Some(0), "{}\n{}\n{log}", said.out, said.err);
    assert!(log.contains("an agent's plan: recover (commit-leftovers)"), "{log}");
    for file in ["done.txt", "more.txt"] {
        assert_eq!(scratch.git(&["show", &format!("main:{file}")]), "x", "{log}");
    }
}

#[test]
fn a_plan_beyond_the_list_is_refused_and_a_person_is_told() {
    let plan = r#"{"action": "recover", "rationale": "quick", "steps": [{"op": "force_push"}]}"#;
    let scratch = project(plan);
    let said = follow(&scratch, "Forced", &[breaks_off("code", "done.txt", false, 3)], "XS");
    assert_ne!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let why = scratch.why("T1");
    assert!(why.contains("the plan was refused") && why.contains("`force_push`"), "{why}");
    assert!(log(&scratch, "T1").contains("an agent's plan was refused"));
}

#[test]
fn behaviour_27_what_comes_a_third_time_becomes_a_draft() {
    let scratch = project("");
    for number in 1..=4 {
        let turns = [idles("code"), works("code", &format!("f{number}.txt"), "\"complete\"")];
        let said = follow(&scratch, &format!("Slow {number}"), &turns, "XS");
        assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
        let list = scratch.landfall(&["list"]).ok();
        let proposed = list.matches("Keep `silent-no-op` from happening").count();
        assert_eq!(proposed, usize::from(number >= 3), "{list}");
    }
    assert_eq!(scratch.status("T4"), "draft", "only a person lets it start");
    let report = scratch.landfall(&["report", "T1"]).ok();
    assert!(report.contains("silent-no-op") && report.contains("seen 1 of 3 times"), "{report}");
}

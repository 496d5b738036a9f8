//! Steps of issues that fail, by the scripted agent: what is done about them, rung by rung. Behaviours 22 to 24 and 27.

use landfall_testkit::{Said, Scratch};

use crate::both::{World, on_both};
use crate::lifecycle::{says, works};

/// The agent of a project, asked about a failure, says this.
fn looks(world: &World, plan: &str) {
    world.file("looks.toml", &says("diagnosis", plan));
    world.change_settings(|settings| {
        settings.replacen("kind = \"script\"\n", "kind = \"script\"\nscript = \"looks.toml\"\n", 1)
    });
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

on_both!(
    behaviour_22_nothing_done_is_tried_once_more_then_an_agent_looks_then_a_person,
    a_spec_that_nobody_wrote_is_named_by_why,
    behaviour_23_finished_work_lands_whatever_the_exit_code_says,
    behaviour_24_killed_after_the_commit_it_goes_on_with_the_offer,
    behaviour_27_what_comes_a_third_time_becomes_a_draft,
    what_a_plan_of_an_agent_names_is_done_and_the_work_goes_on_from_there,
    a_plan_beyond_the_list_is_refused_and_a_person_is_told,
);

fn behaviour_22_nothing_done_is_tried_once_more_then_an_agent_looks_then_a_person(world: &World) {
    looks(world, r#"{"action": "retry", "rationale": "it may do it this time"}"#);
    let said = follow(world, "Idle", &[idles("code"), idles("code"), idles("code"), idles("code")], "XS");
    assert_ne!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let log = log(world, "T1");
    assert_eq!(world.status("T1"), "blocked", "{log}");
    let why = world.why("T1");
    assert!(why.contains("recovery_failed") && why.contains("`silent-no-op`"), "{why}\n{log}");
    assert_eq!(log.matches("failed (silent-no-op); retry").count(), 1, "{log}");
    assert_eq!(log.matches("failed (silent-no-op); an agent looks").count(), 1, "{log}");
    assert!(log.contains("an agent's plan: retry: it may do it this time"), "{log}");
    let runs = world.prompts("T1").len();
    assert_eq!(runs, 3, "once, once more, and once after an agent had looked: {log}");
    assert!(world.prompts("T1")[1].contains("is not there"), "the agent is told");
}

fn a_spec_that_nobody_wrote_is_named_by_why(world: &World) {
    looks(world, r#"{"action": "abort", "rationale": "somebody has to say what is wanted"}"#);
    let said = follow(world, "Idle", &[idles("spec"), idles("spec"), idles("spec")], "S");
    assert_ne!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let why = world.why("T1");
    assert!(why.contains("it did not leave: docs/spec/issue-1-idle.md"), "{why}");
    assert!(world.prompts("T1")[1].contains("docs/spec/issue-1-idle.md"), "the agent is told which");
}

fn behaviour_23_finished_work_lands_whatever_the_exit_code_says(world: &World) {
    let said = follow(world, "Break off", &[breaks_off("code", "done.txt", true, 1)], "XS");
    assert_eq!(said.code, Some(0), "{}\n{}\n{}", said.out, said.err, log(world, "T1"));
    assert_eq!(world.landed("done.txt"), "x");
    let log = log(world, "T1");
    assert!(log.contains("is done in spite of its end"), "{log}");
    assert_eq!(world.prompts("T1").len(), 1, "nothing is done twice: {log}");
}

fn behaviour_24_killed_after_the_commit_it_goes_on_with_the_offer(world: &World) {
    let spec = "[[step.spec]]\nsignal = \"complete\"\n[[step.spec.write]]\npath = \"docs/spec/issue-1-x.md\"\ntext = \"# X\\n\"\n";
    let turns = [
        spec.to_owned(),
        breaks_off("code", "done.txt", true, 137),
        says("review", r#"{"findings": [], "resolved": []}"#),
    ];
    let said = follow(world, "Killed", &turns, "M");
    let log = log(world, "T1");
    assert_eq!(said.code, Some(0), "{}\n{}\n{log}", said.out, said.err);
    assert!(
        log.contains("is done in spite of its end") && log.contains("offered as pull request #"),
        "{log}"
    );
    assert_eq!(world.landed("done.txt"), "x");
    assert_eq!(log.matches("is done in spite of its end").count(), 1, "{log}");
    let runs = world.prompts("T1").len();
    assert_eq!(runs, 3, "spec, code and review, each once: {log}");
}

fn what_a_plan_of_an_agent_names_is_done_and_the_work_goes_on_from_there(world: &World) {
    let plan =
        r#"{"action": "recover", "rationale": "the work is there", "steps": [{"op": "commit-leftovers"}]}"#;
    looks(world, plan);
    let turns = [breaks_off("code", "done.txt", false, 3), works("code", "more.txt", "\"complete\"")];
    let said = follow(world, "Leftovers", &turns, "XS");
    let log = log(world, "T1");
    assert_eq!(said.code, Some(0), "{}\n{}\n{log}", said.out, said.err);
    assert!(log.contains("an agent's plan: recover (commit-leftovers)"), "{log}");
    for file in ["done.txt", "more.txt"] {
        assert_eq!(world.landed(file), "x", "{log}");
    }
}

fn a_plan_beyond_the_list_is_refused_and_a_person_is_told(world: &World) {
    let plan = r#"{"action": "recover", "rationale": "quick", "steps": [{"op": "force_push"}]}"#;
    looks(world, plan);
    let said = follow(world, "Forced", &[breaks_off("code", "done.txt", false, 3)], "XS");
    assert_ne!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let why = world.why("T1");
    assert!(why.contains("the plan was refused") && why.contains("`force_push`"), "{why}");
    assert!(log(world, "T1").contains("an agent's plan was refused"));
}

fn behaviour_27_what_comes_a_third_time_becomes_a_draft(world: &World) {
    for number in 1..=4 {
        let turns = [idles("code"), works("code", &format!("f{number}.txt"), "\"complete\"")];
        let said = follow(world, &format!("Slow {number}"), &turns, "XS");
        assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
        let list = world.landfall(&["list"]).ok();
        let proposed = list.matches("Keep `silent-no-op` from happening").count();
        assert_eq!(proposed, usize::from(number >= 3), "{list}");
    }
    assert_eq!(world.status("T4"), "draft", "only a person lets it start");
    let report = world.landfall(&["report", "T1"]).ok();
    assert!(report.contains("silent-no-op") && report.contains("seen 1 of 3 times"), "{report}");
}

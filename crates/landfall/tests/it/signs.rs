//! Signs of failures and plans of agents, and every way a criterion can come out: behaviours 25, 26 and 31, from outside, on both
//! trackers.

use landfall_testkit::CommandOutput;
use serde_json::{Value, json};

use crate::both::{World, on_both};
use crate::ladder::{breaks_off, follow, log, looks};
use crate::lifecycle::works;
use crate::pipeline::issue;

on_both!(
    behaviour_25_each_sign_in_a_log_has_its_name_and_the_first_wins,
    behaviour_26_a_plan_that_goes_too_far_is_refused_with_its_reason,
    behaviour_31_each_criterion_comes_out_as_the_tables_say,
);

/// A turn in which it prints this and gives up.
fn gives_up(words: &str) -> String {
    format!("[[step.code]]\nsay = [{words:?}]\ncommit = false\nexit = 1\n")
}

fn behaviour_25_each_sign_in_a_log_has_its_name_and_the_first_wins(world: &World) {
    looks(world, r#"{"action": "retry", "rationale": "it may do it this time"}"#);
    let signs = [
        ("ERROR: missing sign-off in 4c1f09e", "dco-missing"),
        ("src/a.rs:14: leftover conflict marker", "conflict-marker-residual"),
        ("API Error: 529 overloaded_error", "mid-run-api-error"),
        ("The tests run. I'll be notified when they finish.", "background-notification-wait"),
        // Of two, the one that stands first in the catalogue.
        ("I'll be notified. ERROR: missing sign-off in 4c1f09e", "dco-missing"),
        // What nobody has a name for is called by what was seen of it.
        ("I gave up.", "unknown/code-patch/exit-1"),
    ];
    for (number, (words, name)) in signs.into_iter().enumerate() {
        let file = format!("f{number}.txt");
        let turns =
            [gives_up(words), works("code", &file, "\"complete\""), works("code", &file, "\"complete\"")];
        let said = follow(world, &format!("Sign {number}"), &turns, "XS");
        let log = log(world, &task_of(&said));
        let first = log.lines().find(|line| line.contains(" failed ("));
        assert!(
            first.is_some_and(|line| line.contains(&format!("failed ({name})"))),
            "{words:?} is {name}: {first:?}\n{log}\n{}",
            said.err
        );
    }
}

fn behaviour_26_a_plan_that_goes_too_far_is_refused_with_its_reason(world: &World) {
    let run = |words: &str| json!([{ "op": "run_command", "cmd": words }]);
    let step = json!({ "op": "commit-leftovers" });
    let plans = [
        (json!(vec![step; 6]), "steps"),
        (run("git push --force origin landfall/t1"), "run_command"),
        (run("git push -f"), "run_command"),
        (run("git push origin +HEAD:main"), "run_command"),
        (run("git reset --hard origin/main"), "run_command"),
        (json!([{ "op": "force_push" }]), "force_push"),
        (json!([{ "op": "reset_hard" }]), "reset_hard"),
        (json!([{ "op": "merge_pr" }]), "merge_pr"),
        (json!([{ "op": "close_issue" }]), "close_issue"),
        (json!([{ "op": "direct_push_main" }]), "direct_push_main"),
    ];
    let before = world.git(&["rev-parse", world.main()]);
    for (number, (steps, reason)) in plans.into_iter().enumerate() {
        let plan = json!({ "action": "recover", "rationale": "quick", "steps": steps }).to_string();
        world.file("looks.toml", "");
        looks_again(world, &plan, number == 0);
        let said =
            follow(world, &format!("Plan {number}"), &[breaks_off("code", "done.txt", false, 3)], "XS");
        assert_ne!(said.code, Some(0), "{plan}: {}\n{}", said.out, said.err);
        let why = world.why(&task_of(&said));
        assert!(why.contains("the plan was refused") && why.contains(reason), "{plan}: {why}");
    }
    let after = world.git(&["log", "--format=%s", &format!("{before}..{}", world.main())]);
    assert!(!after.contains("done.txt"), "nothing of it was done: {after}");
}

/// The task that follows an issue, as it is told.
fn task_of(said: &CommandOutput) -> String {
    let told = format!("{}{}", said.out, said.err);
    let at = told.find("is followed by T").unwrap_or_else(|| panic!("{told}"));
    let word = told[at..].split_whitespace().nth(3).expect("a task");
    word.trim_end_matches(|c: char| !c.is_ascii_digit()).to_owned()
}

/// The agent says this from now on when it is asked about a failure.
fn looks_again(world: &World, plan: &str, first: bool) {
    match first {
        true => looks(world, plan),
        false => {
            world.file("looks.toml", &crate::lifecycle::says("diagnosis", plan));
            world.commit("another plan");
            world.publish();
        }
    }
}

fn behaviour_31_each_criterion_comes_out_as_the_tables_say(world: &World) {
    world.file("notes.md", "# Notes\n\n## Install\n\nRun it.\n");
    world.file("data.json", "{\"name\": \"landfall\", \"deep\": {\"n\": 3}}\n");
    world.file("dir/inside.txt", "x\n");
    std::os::unix::fs::symlink("notes.md", world.project().join("link")).expect("a link can be made");
    world.commit("something to look at");
    world.publish();
    // What is read from files comes out the same wherever the issue is kept.
    let table = [
        (r#"file_exists "notes.md""#, "PASS"),
        (r#"file_exists "none.md""#, "FAIL"),
        (r#"file_exists"#, "UNCERTAIN"),
        (r#"file_not_exists "none.md""#, "PASS"),
        (r#"file_not_exists "notes.md""#, "FAIL"),
        (r#"git_committed "notes.md""#, "PASS"),
        (r#"git_committed "none.md""#, "FAIL"),
        (r#"dir_exists "dir""#, "PASS"),
        (r#"dir_exists "notes.md""#, "FAIL"),
        (r#"dir_not_exists "none""#, "PASS"),
        (r#"dir_not_exists "dir""#, "FAIL"),
        (r#"file_contains "notes.md" "Run it.""#, "PASS"),
        (r#"file_contains "notes.md" "Stop it.""#, "FAIL"),
        (r#"file_contains "notes.md""#, "UNCERTAIN"),
        (r#"file_not_contains "notes.md" "Stop it.""#, "PASS"),
        (r#"file_not_contains "notes.md" "Run it.""#, "FAIL"),
        (r#"files_not_contain "*.md" "Stop it.""#, "PASS"),
        (r#"files_not_contain "*.md" "Run it.""#, "FAIL"),
        (r#"grep "^## [A-Z]" "notes.md""#, "PASS"),
        (r#"grep "^### " "notes.md""#, "FAIL"),
        (r#"grep "(" "notes.md""#, "UNCERTAIN"),
        (r#"json_field "data.json" ".deep.n" "3""#, "PASS"),
        (r#"json_field "data.json" ".name" "other""#, "FAIL"),
        (r#"section_contains "notes.md" "Install" "Run""#, "PASS"),
        (r#"section_contains "notes.md" "Install" "Stop""#, "FAIL"),
        (r#"section_contains "notes.md" "Remove" "Run""#, "UNCERTAIN"),
        (r#"section_not_contains "notes.md" "Install" "Stop""#, "PASS"),
        (r#"section_not_contains "notes.md" "Install" "Run""#, "FAIL"),
        (r#"symlink "link" "notes.md""#, "PASS"),
        (r#"symlink "link" "data.json""#, "FAIL"),
        (r#"fly "to the moon""#, "UNCERTAIN"),
        (r#"file_exists "unclosed"#, "UNCERTAIN"),
    ];
    let lines = table.map(|(command, _)| format!("- [ ] <!-- verify: {command} --> it holds\n"));
    let number = issue(world, "Look", &lines.concat(), &["--size", "XS", "--label", "triaged"]);
    for ((command, expected), seen) in table.iter().zip(results(world, number, &[])) {
        assert_eq!(seen["result"], *expected, "{command}: {seen}");
    }
    // What runs something does so only where a person asks for it, and `--when` is part of that.
    let body = "- [ ] <!-- verify: command \"test -f notes.md\" --> a\n\
                - [ ] <!-- verify: command \"test -f none.md\" --> b\n\
                - [ ] <!-- verify: file_exists \"none.md\" --when=\"test -f none.md\" --> c\n";
    let number = issue(world, "Run", body, &["--size", "XS", "--label", "triaged"]);
    let words = |seen: Vec<Value>| -> Vec<String> {
        seen.iter().map(|it| it["result"].as_str().expect("a word").to_owned()).collect()
    };
    assert_eq!(words(results(world, number, &["--full"])), ["PASS", "FAIL", "SKIPPED"]);
    assert_eq!(words(results(world, number, &[]))[..2], ["UNCERTAIN", "UNCERTAIN"]);
}

/// What each criterion of an issue comes to, without changing anything.
fn results(world: &World, number: u64, more: &[&str]) -> Vec<Value> {
    let number = number.to_string();
    let said = world.landfall(&[&["--json", "verify", &number, "--dry-run"], more].concat());
    let seen: Value =
        serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}\n{}", said.out, said.err));
    seen["criteria"].as_array().expect("criteria").clone()
}

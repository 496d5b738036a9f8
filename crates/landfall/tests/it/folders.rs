//! Folders of modules that show how their tasks stand, and hear what a person changes in them.

use std::fs;
use std::time::Duration;

use landfall_testkit::{ScratchProject, blanked};
use serde_json::Value;

use crate::LANDFALL;
use crate::lifecycle::{GOOD, plans, says, works};

/// A module whose target says what is wanted, and what the scripted agent does about it.
fn module(scratch: &ScratchProject, name: &str, metadata: &str, script: &str) {
    scratch.file(&format!("AiTasks/{name}/.index.json"), metadata);
    let target = format!("# T\n\n## Objective\n\nPeople are greeted.\n\n```landfall-script\n{script}```\n");
    scratch.file(&format!("AiTasks/{name}/.target.md"), &target);
}

const DRAFT: &str =
    "{\n  \"title\": \"Greet\",\n  \"status\": \"draft\",\n  \"owner\": \"me\", \"completed_steps\": 0\n}\n";

fn whole() -> String {
    [
        plans("plan", "one", 2, ""),
        says("check-plan", GOOD),
        works("exec", "done.txt", "[\"step:1\", \"complete\"]"),
        says("check-exec", GOOD),
    ]
    .concat()
}

fn index(scratch: &ScratchProject, name: &str) -> Value {
    let text = fs::read_to_string(scratch.project().join(format!("AiTasks/{name}/.index.json")))
        .expect("the metadata is there");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn text(scratch: &ScratchProject, path: &str) -> String {
    fs::read_to_string(scratch.project().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn a_run_and_the_same_steps_by_hand_leave_the_same_folder() {
    let by_run = ScratchProject::new(LANDFALL);
    let by_hand = ScratchProject::new(LANDFALL);
    for scratch in [&by_run, &by_hand] {
        module(scratch, "x", DRAFT, &whole());
        scratch.commit("a module"); // tracked: what the folder shows is in nobody's way
        assert_eq!(scratch.landfall(&["import", "AiTasks/"]).ok(), "T1 Greet\n");
        assert_eq!(text(scratch, "AiTasks/x/.index.json"), DRAFT, "nothing has happened yet");
    }
    by_run.landfall(&["run"]).ok();
    for words in [
        &["plan"][..],
        &["check"],
        &["exec"],
        &["verify"],
        &["check", "--checkpoint", "post-exec"],
        &["land"],
    ] {
        by_hand.landfall(&[&["do", "T1"], words].concat()).ok();
        let status = index(&by_hand, "x")["status"].as_str().expect("text").to_owned();
        let expected = match words {
            ["plan"] => "planning",
            ["check"] => "review",
            ["land"] => "complete",
            _ => "executing",
        };
        assert_eq!(status, expected, "after {words:?}");
    }
    by_hand.landfall(&["run"]).ok();
    for scratch in [&by_run, &by_hand] {
        assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
        let now = index(scratch, "x");
        assert_eq!((&now["status"], &now["completed_steps"]), (&"complete".into(), &2.into()), "{now}");
        assert_eq!(now["owner"], "me", "what is a person's stays: {now}");
        assert!(text(scratch, "AiTasks/x/.plan.md").starts_with("# one"));
        let summary = text(scratch, "AiTasks/x/.summary.md");
        assert!(summary.contains("**Status**: complete") && summary.contains("step 2 of 2"), "{summary}");
        assert!(text(scratch, "AiTasks/x/.report.md").contains("# T1: Greet"));
        let analyses = fs::read_dir(scratch.project().join("AiTasks/x/.analysis")).expect("there").flatten();
        let mut names: Vec<String> =
            analyses.map(|it| it.file_name().to_string_lossy().chars().skip(11).collect()).collect();
        names.sort();
        assert_eq!(names, ["post-exec-accept.md", "post-plan-pass.md"]);
        assert_eq!(scratch.git(&["show", "main:done.txt"]), "x", "the work is in the checkout's branch");
        assert!(scratch.project().join("done.txt").exists(), "and in the checkout");
        assert_eq!(scratch.left_behind(), []);
    }
    let (run, hand) =
        (blanked(&by_run.project().join("AiTasks")), blanked(&by_hand.project().join("AiTasks")));
    assert_eq!(run.keys().collect::<Vec<_>>(), hand.keys().collect::<Vec<_>>());
    for (path, text) in &run {
        assert_eq!(text, &hand[path], "{path}");
    }
}

#[test]
fn what_a_person_changes_while_work_goes_on_is_not_lost() {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = crate::sandbox::open(&scratch);
    let (go, began) = (folder.join("go"), folder.join("began"));
    let wait = format!(
        "[[step.exec]]\nrun = [\"sh\", \"-c\", \"touch {}; while [ ! -e {} ]; do sleep 0.02; done\"]\n\
         signal = \"complete\"\n[[step.exec.write]]\npath = \"done.txt\"\ntext = \"x\\n\"\n",
        began.display(),
        go.display()
    );
    let script = whole().replace(&works("exec", "done.txt", "[\"step:1\", \"complete\"]"), &wait);
    module(&scratch, "x", DRAFT, &script);
    scratch.landfall(&["import", "AiTasks/"]).ok();
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the agent to begin", || began.exists());
    scratch.eventually("the folder to show it", || index(&scratch, "x")["status"] == "executing");
    // Everything a person may do to a folder, at once.
    let at = |path: &str| format!("AiTasks/x/{path}");
    let edited = text(&scratch, &at(".index.json"))
        .replace("\"Greet\"", "\"Greet everybody\"")
        .replace("\"executing\"", "\"review\"")
        .replace("\"me\"", "\"somebody\"");
    scratch.file(&at(".index.json"), &edited);
    scratch.file(&at(".summary.md"), "My own summary.\n");
    scratch.file(&at(".notes/mine.md"), "My own note.\n");
    scratch.file(&at(".pending-refinements.md"), "- in capitals, please\n");
    let plan = text(&scratch, &at(".plan.md")) + "\nAnd mind the cat.\n";
    scratch.file(&at(".plan.md"), &plan);
    scratch.eventually("the edit to be heard", || scratch.detail("T1")["title"] == "Greet everybody");
    scratch.eventually("the status to be shown again", || index(&scratch, "x")["status"] == "executing");
    assert_eq!(text(&scratch, &at(".plan.md")), plan, "an agent is at work: the plan waits");
    fs::write(&go, "").expect("ours");
    assert_eq!(run.wait(Duration::from_secs(60)), Some(0), "{}", scratch.heard());
    let now = index(&scratch, "x");
    assert_eq!((&now["title"], &now["owner"]), (&"Greet everybody".into(), &"somebody".into()), "{now}");
    assert_eq!(text(&scratch, &at(".notes/mine.md")), "My own note.\n");
    let notes: String = fs::read_dir(scratch.project().join(at(".notes")))
        .expect("there")
        .flatten()
        .map(|it| fs::read_to_string(it.path()).expect("text"))
        .collect();
    assert!(notes.contains("My own summary."), "{notes}");
    assert!(text(&scratch, &at(".pending-refinements.md")).contains("in capitals, please"));
    let log = scratch.landfall(&["log", "T1"]).ok();
    assert!(log.contains("you refined it (1): in capitals, please"), "{log}");
    assert!(log.contains("`status` was set to `review` by hand"), "{log}");
    let plans: String = fs::read_dir(scratch.project().join("AiTasks/x"))
        .expect("there")
        .flatten()
        .filter(|it| it.file_name().to_string_lossy().starts_with(".plan"))
        .map(|it| fs::read_to_string(it.path()).expect("text"))
        .collect();
    assert!(plans.contains("And mind the cat."), "{plans}");
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn a_module_begins_where_it_stood() {
    let plan = "# P\n\n## Step 1: a\n\n## Step 2: b\n\n## Step 3: c\n\n## Step 4: d\n";
    let meta = |status: &str, phase: &str, steps: u32| {
        format!(
            "{{\"title\": \"Greet\", \"status\": \"{status}\", \"phase\": \"{phase}\", \"completed_steps\": {steps}}}\n"
        )
    };
    let script = [
        plans("plan", "one", 2, ""),
        plans("re-plan", "two", 2, ""),
        says("check-plan", GOOD),
        says("check-re-plan", GOOD),
        says("check-mid", GOOD),
        works("exec", "done.txt", "\"complete\""),
        says("check-exec", GOOD),
    ]
    .concat();
    for (status, phase, done, steps) in [
        ("draft", "", 0, &["plan", "check-plan", "exec"][..]),
        ("planning", "", 0, &["check-plan", "exec"]),
        ("review", "", 0, &["exec"]),
        ("executing", "", 3, &["exec"]),
        ("re-planning", "needs-plan", 3, &["re-plan", "check-re-plan", "exec"]),
        ("re-planning", "needs-check", 0, &["check-re-plan", "exec"]),
    ] {
        let scratch = ScratchProject::new(LANDFALL);
        module(&scratch, "x", &meta(status, phase, done), &script);
        scratch.file("AiTasks/x/.plan.md", plan);
        scratch.landfall(&["import", "AiTasks"]).ok();
        scratch.landfall(&["run"]).ok();
        assert_eq!(scratch.status("T1"), "done", "{status} {phase}: {}", scratch.why("T1"));
        let attempts = scratch.detail("T1")["attempts"].clone();
        let went: Vec<&str> =
            attempts.as_array().expect("attempts").iter().filter_map(|it| it["step"].as_str()).collect();
        assert_eq!(&went[..steps.len()], steps, "{status} {phase}: {went:?}");
        if status == "executing" {
            let prompts = scratch.prompts("T1");
            assert!(prompts.iter().any(|it| it.contains("go on with step 4")), "{prompts:#?}");
        }
        assert_eq!(index(&scratch, "x")["status"], "complete", "{status} {phase}");
    }
    // Without a plan there is nothing to execute: it is made first.
    let scratch = ScratchProject::new(LANDFALL);
    module(&scratch, "x", &meta("executing", "", 3), &script);
    scratch.landfall(&["import", "AiTasks"]).ok();
    scratch.landfall(&["run"]).ok();
    let attempts = scratch.detail("T1")["attempts"].clone();
    assert_eq!(attempts[0]["step"], "plan", "{attempts}");
}

#[test]
fn work_on_the_branch_of_a_module_is_gone_on_with() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.git(&["checkout", "-q", "-b", "task/x"]);
    scratch.file("begun.txt", "begun\n");
    scratch.commit("step 1");
    scratch.git(&["checkout", "-q", "main"]);
    let meta =
        "{\"title\": \"Greet\", \"status\": \"executing\", \"completed_steps\": 1, \"branch\": \"task/x\"}\n";
    module(&scratch, "x", meta, &whole());
    scratch.file("AiTasks/x/.plan.md", "# P\n\n## Step 1: a\n\n## Step 2: b\n");
    scratch.landfall(&["import", "AiTasks"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    assert_eq!(scratch.git(&["show", "main:begun.txt"]), "begun", "what was there lands with the rest");
    assert_eq!(scratch.git(&["show", "main:done.txt"]), "x");

    // All steps are done: the work is verified and judged, and no agent works before that.
    let scratch = ScratchProject::new(LANDFALL);
    scratch.git(&["checkout", "-q", "-b", "task/x"]);
    scratch.file("begun.txt", "begun\n");
    scratch.commit("all steps");
    scratch.git(&["checkout", "-q", "main"]);
    module(&scratch, "x", &meta.replace(": 1,", ": 2,"), &whole());
    scratch.file("AiTasks/x/.plan.md", "# P\n\n## Step 1: a\n\n## Step 2: b\n");
    scratch.landfall(&["import", "AiTasks"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    let attempts = scratch.detail("T1")["attempts"].clone();
    assert_eq!(attempts[0]["step"], "verify", "{attempts}");
    assert_eq!(scratch.git(&["show", "main:begun.txt"]), "begun");
}

#[test]
fn a_status_of_cancelled_cancels_and_a_broken_file_is_mended() {
    let scratch = ScratchProject::new(LANDFALL);
    module(&scratch, "x", DRAFT, &whole());
    module(&scratch, "y", DRAFT, &whole());
    scratch.landfall(&["import", "AiTasks"]).ok();
    scratch.file("AiTasks/x/.index.json", &DRAFT.replace("draft", "cancelled"));
    scratch.file("AiTasks/y/.index.json", "{\"title\": \"Torn");
    scratch.landfall(&["run"]).ok();
    assert_eq!((scratch.status("T1"), scratch.status("T2")), ("cancelled".to_owned(), "done".to_owned()));
    assert!(scratch.why("T1").contains("cancelled by hand"), "{}", scratch.why("T1"));
    assert_eq!(index(&scratch, "x")["status"], "cancelled");
    assert_eq!(index(&scratch, "y")["status"], "complete");
    let copies = fs::read_dir(scratch.project().join("AiTasks/y")).expect("there").flatten();
    let copy =
        copies.map(|it| it.path()).find(|it| it.to_string_lossy().contains(".corrupt-")).expect("a copy");
    assert_eq!(fs::read_to_string(copy).expect("text"), "{\"title\": \"Torn");
    assert!(scratch.landfall(&["log", "T2"]).ok().contains("the broken one is kept as"));
}

#[test]
fn a_command_without_a_run_is_shown_at_once() {
    let scratch = ScratchProject::new(LANDFALL);
    module(&scratch, "x", DRAFT, &whole());
    scratch.landfall(&["import", "AiTasks"]).ok();
    scratch.landfall(&["edit", "T1", "--title", "Greet nobody"]).ok();
    assert_eq!(index(&scratch, "x")["title"], "Greet nobody");
    scratch.landfall(&["cancel", "T1"]).ok();
    assert_eq!(index(&scratch, "x")["status"], "cancelled");
    assert!(text(&scratch, "AiTasks/x/.summary.md").contains("**Status**: cancelled"));
}

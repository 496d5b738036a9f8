//! Loops of task modules by command: `landfall auto MODULE`, the files that others watch, and what a person leaves in a folder.

use std::time::Duration;

use landfall_testkit::ScratchProject;
use serde_json::{Value, json};

use crate::LANDFALL;
use crate::hold_file::HoldFile;
use crate::lifecycle::{GOOD, plans, says, works};
use crate::serve::Served;

const MODULE: &str = "AiTasks/auth";

fn script() -> String {
    [
        plans("plan", "one", 1, ""),
        says("check-plan", GOOD),
        works("exec", "done.txt", "\"complete\""),
        says("check-exec", GOOD),
    ]
    .concat()
}

/// A project with one module, whose agent does as the script says.
fn with_module(scratch: &ScratchProject, script: &str) {
    let index = json!({ "title": "People log in", "status": "draft" });
    scratch.file(&format!("{MODULE}/.index.json"), &index.to_string());
    let target = format!("# Objective\n\nPeople log in.\n\n```landfall-script\n{script}```\n");
    scratch.file(&format!("{MODULE}/.target.md"), &target);
    scratch.commit("a module");
}

fn signal(scratch: &ScratchProject) -> Option<Value> {
    let text = std::fs::read_to_string(scratch.project().join(MODULE).join(".auto-signal")).ok()?;
    serde_json::from_str(&text).ok()
}

#[test]
fn auto_starts_shows_and_stops_the_loop_of_a_module() {
    let scratch = ScratchProject::new(LANDFALL);
    let hold = HoldFile::new(&scratch, "plan");
    with_module(&scratch, &hold.in_step("plan", &script()));
    let never = scratch.landfall(&["auto", MODULE, "--status"]);
    assert!(never.err.contains("has had no loop"), "{never:?}");
    assert_eq!(scratch.landfall(&["auto", MODULE, "--stop"]).code, Some(6));
    for refused in [&["auto", MODULE, "--pr"][..], &["auto", "12", "--status"]] {
        assert_eq!(scratch.landfall(refused).code, Some(2), "{refused:?}");
    }
    let unknown = scratch.landfall(&["why", MODULE]);
    assert!(unknown.err.contains("no task was made of the module"), "{unknown:?}");

    let mut run = scratch.start(&["auto", MODULE, "--start", "--iterations", "7"]);
    scratch.eventually("the loop to plan", || {
        let shown = scratch.landfall(&["auto", MODULE, "--status"]).out;
        shown.contains("T1 running: iteration 0 of 7") && shown.contains("step plan")
    });
    scratch
        .eventually("the agent to be at work", || scratch.landfall(&["why", MODULE]).out.contains("agent"));
    let stopped = scratch.landfall(&["auto", MODULE, "--stop"]).ok();
    assert!(stopped.contains("T1 stopping"), "{stopped}");
    hold.release();
    run.wait(Duration::from_secs(120)).expect("it ends");
    let shown = scratch.landfall(&["auto", MODULE, "--status"]).ok();
    assert!(shown.contains("T1 stopped (user_stop): iteration 1 of 7"), "{shown}");

    let done = scratch.landfall(&["auto", MODULE]).ok();
    assert!(done.contains("T1 stopped (complete)"), "{done}");
    assert!(scratch.project().join("done.txt").is_file(), "the work landed");
    // Every command that takes a task takes the folder of its module, also from inside it.
    assert_eq!(scratch.landfall(&["--json", "show", MODULE]).json()["status"], "done");
    let again = scratch.landfall(&["auto", MODULE]);
    assert!(again.err.contains("is complete; nothing is started"), "{again:?}");
    assert!(again.ok().contains("# T1: People log in"), "its report is printed");
}

#[test]
fn the_server_prints_one_line_for_each_action_of_a_loop() {
    let scratch = ScratchProject::new(LANDFALL);
    with_module(&scratch, &script());
    let dir = scratch.project().canonicalize().expect("it is there").join(MODULE);
    let served = Served::start(&scratch, &[]);
    let body = json!({ "taskDir": dir, "maxIterations": 9 }).to_string();
    let (status, row) = served.post("/api/sessions/main/task-auto", &body);
    assert_eq!(status, 200, "{row}");
    let wanted = [
        "loop main: started on AiTasks/auth (T1), at most 9 iterations and 30 minutes",
        "loop main: finished iteration 4 of 9",
        "loop main: stopped: complete",
    ];
    scratch.eventually("the lines of the loop", || {
        let heard = scratch.heard();
        wanted.iter().all(|line| heard.contains(line))
    });
    let heard = scratch.heard();
    for line in wanted {
        assert_eq!(heard.matches(line).count(), 1, "`{line}` once: {heard}");
    }
    served.end();
}

#[test]
fn a_watcher_finds_the_signal_of_each_step_in_the_module() {
    let scratch = ScratchProject::new(LANDFALL);
    let hold = HoldFile::new(&scratch, "exec");
    with_module(&scratch, &hold.in_step("exec", &script()));
    scratch.landfall(&["import", "AiTasks"]).ok();
    // By hand a step has no iteration.
    for (words, wanted) in [
        ("plan", json!(["plan", "(generated)", "check", ""])),
        ("check", json!(["check", "PASS", "exec", "post-plan"])),
    ] {
        scratch.landfall(&["do", MODULE, words]).ok();
        let said = signal(&scratch).expect("a signal");
        let fields = json!([said["step"], said["result"], said["next"], said["checkpoint"]]);
        assert_eq!((fields, said.get("iteration")), (wanted, None), "{words}: {said}");
    }
    // Whoever watches takes it away; it does not come again before the next step.
    std::fs::remove_file(scratch.project().join(MODULE).join(".auto-signal")).expect("it is there");
    let mut run = scratch.start(&["auto", MODULE]);
    scratch.eventually("the agent to execute", || scratch.detail("T1")["step"] == "exec");
    assert_eq!(signal(&scratch), None);
    hold.release();
    assert_eq!(run.wait(Duration::from_secs(120)), Some(0), "{}", scratch.heard());
    assert_eq!(signal(&scratch), None, "nothing stays behind when it is over");
}

#[test]
fn annotations_in_the_folder_reach_the_planner_and_the_plan() {
    let scratch = ScratchProject::new(LANDFALL);
    with_module(&scratch, &script());
    let file = format!("{MODULE}/.tmp-annotations.json");
    let is_there = || scratch.project().join(&file).exists();
    scratch.file(&file, r#"{"comment": [["Line3:...", "People log in.", "with a passkey", "..."]]}"#);
    scratch.landfall(&["import", "AiTasks"]).ok();
    scratch.landfall(&["do", MODULE, "plan"]).ok();
    // A task that is imported is looked at with the first step; its planner hears it then, or in the next run.
    if is_there() {
        panic!("it is taken over: {}", scratch.landfall(&["log", "T1"]).out);
    }
    let log = scratch.landfall(&["log", "T1"]).ok();
    assert!(log.contains("annotations of `.tmp-annotations.json` were taken over"), "{log}");
    let prompts = scratch.prompts("T1").concat();
    assert!(prompts.contains("with a passkey"), "{prompts}");

    let plan = || {
        std::fs::read_to_string(scratch.project().join(MODULE).join(".plan.md")).expect("the plan is there")
    };
    let first = plan().lines().next().expect("a heading").to_owned();
    let replaces = json!({ "replace": [["Line1:...", first, "# Two", "..."]] });
    scratch.file(&file, &replaces.to_string());
    scratch.landfall(&["edit", MODULE, "--title", "People log in safely"]).ok();
    assert!(!is_there(), "{}", scratch.landfall(&["log", "T1"]).out);
    assert!(plan().starts_with("# Two"), "{}", plan());
}

#[test]
fn commands_in_hooks_of_modules_are_refused_with_a_hint() {
    let scratch = ScratchProject::new(LANDFALL);
    with_module(&scratch, &script());
    scratch.file("AiTasks/.hooks.md", "## on_complete\n\n```sh\ntouch ran\n```\n");
    let said = scratch.landfall(&["import", "AiTasks"]);
    assert!(
        said.err.contains("AiTasks/.hooks.md: its commands for complete do not run")
            && said.err.contains("`[hooks]`")
            && said.err.contains("landfall trust"),
        "{said:?}"
    );
    scratch.landfall(&["run"]).ok();
    assert!(!scratch.project().join("ran").exists());
}

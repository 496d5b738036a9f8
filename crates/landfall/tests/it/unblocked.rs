//! One task must not block the others: work that breaks a check fails alone, a killed check is run again, and a hold ends
//! once its cause is gone.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use landfall_testkit::{ScratchProject, left_behind};

use crate::LANDFALL;
use crate::sandbox::open_folder;

const SETTINGS: &str = "[agent.default]\nkind = \"script\"\n";

/// Work that is good.
const GOOD: &str = "signal = \"complete\"\n[[write]]\npath = \"good.txt\"\ntext = \"x\\n\"\n";

/// Settings with these lines in the sections `run` and `verify`, and these commands.
fn settings(run: &str, section: &str, commands: &[&str]) -> String {
    let mut text = format!(
        "{SETTINGS}[run]\niterations_max = 2\nsandbox_write = [\"~/open\"]\n{run}\n[verify]\nred_base = \"start\"\n{section}\n"
    );
    for (place, command) in commands.iter().enumerate() {
        text.push_str(&format!("[[verify.command]]\nname = \"check {}\"\nrun = {command:?}\n", place + 1));
    }
    text
}

fn write_program(path: &Path, text: &str) {
    std::fs::write(path, text).expect("a file of ours");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("a file of ours");
}

/// Two tasks, of which the first breaks the check in its own work: it fails, the second lands, nothing is held.
#[track_caller]
fn fails_alone(scratch: &ScratchProject, script: &str, told: &str) {
    scratch.task("Breaks the check", script, &[]);
    scratch.task("Good", GOOD, &[]);
    let run = scratch.landfall(&["run"]);
    let (first, second) = (scratch.why("T1"), scratch.why("T2"));
    assert_eq!(scratch.status("T2"), "done", "{second}\n{first}\n{}", run.err);
    assert_ne!(scratch.status("T1"), "done", "{first}\n{}", run.err);
    assert_eq!(scratch.detail("T1")["gate"]["outcome"], "fail", "{first}");
    let prompt = scratch.prompts("T1").pop().expect("it was told what failed");
    assert!(prompt.contains(told), "`{told}` is not in:\n{prompt}");
    assert_eq!(scratch.landfall(&["--json", "queue"]).json()["hold"], serde_json::Value::Null);
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn a_check_that_only_the_work_breaks_fails_the_work_and_blocks_nobody() {
    // Exit code 127: the work deletes the program.
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings(&settings("", "", &["./check.sh"]));
    write_program(&scratch.project().join("check.sh"), "#!/bin/sh\nexit 0\n");
    scratch.commit("a check");
    fails_alone(&scratch, "signal = \"complete\"\ndelete = [\"check.sh\"]\n", "exit code 127");

    // Exit code 126: the work takes the right to execute it away.
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings(&settings("", "", &["./check.sh"]));
    write_program(&scratch.project().join("check.sh"), "#!/bin/sh\nexit 0\n");
    scratch.commit("a check");
    let script = "signal = \"complete\"\nrun = [\"sh\", \"-c\", \"chmod 644 check.sh; date +%N > x.txt\"]\n";
    fails_alone(&scratch, script, "exit code 126");

    // A program that the check calls is gone only in the work.
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings(&settings("", "", &["true", "sh check.sh"]));
    scratch.file("check.sh", "./tool\n");
    write_program(&scratch.project().join("tool"), "#!/bin/sh\nexit 0\n");
    scratch.commit("a tool");
    fails_alone(&scratch, "signal = \"complete\"\ndelete = [\"tool\"]\n", "exit code 127");
}

#[test]
fn work_that_runs_no_test_any_more_fails_and_blocks_nobody() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings(&settings("", "", &["echo \"$(ls *.case | wc -l) passed, 0 failed\""]));
    scratch.file("a.case", "x\n");
    scratch.commit("a test");
    fails_alone(&scratch, "signal = \"complete\"\ndelete = [\"a.case\"]\n", "ran no test");
}

#[test]
fn work_whose_check_kills_its_own_sitter_fails_and_blocks_nobody() {
    let scratch = ScratchProject::new(LANDFALL);
    let kills = "test ! -e bad.txt || { kill -9 $PPID; sleep 60; }";
    scratch.settings(&settings("sandbox = \"off\"", "retries = 0", &[kills]));
    let script = "signal = \"complete\"\n[[write]]\npath = \"bad.txt\"\nappend = \"x\\n\"\n";
    fails_alone(&scratch, script, "killed");
}

#[test]
fn what_a_candidate_leaves_in_its_lane_does_not_make_the_base_red() {
    // The check installs, tests, and leaves something behind when it is red.
    let poison = "test ! -e cache/poison && mkdir -p cache && { test ! -e bad.txt || { touch cache/poison; exit 1; }; }";
    let script = "signal = \"complete\"\n[[write]]\npath = \"bad.txt\"\nappend = \"x\\n\"\n";
    for section in ["retries = 0", "retries = 1"] {
        let scratch = ScratchProject::new(LANDFALL);
        scratch.file(".gitignore", "cache/\n");
        scratch.settings(&settings("", section, &[poison]));
        fails_alone(&scratch, script, "exit code 1");
    }
    // The second command needs what the first one installs, on the base as well.
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file(".gitignore", "cache/\n");
    let tests = "test -e cache/tool && { test ! -e bad.txt || { rm cache/tool; exit 1; }; }";
    scratch.settings(&settings("", "retries = 0", &["mkdir -p cache && touch cache/tool", tests]));
    fails_alone(&scratch, script, "exit code 1");
    // What is ignored may be kept from one candidate to the next: the base has a lane of its own even then.
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file(".gitignore", "cache/\n");
    scratch.settings(&settings("", "retries = 0\nkeep_ignored = true", &[poison]));
    scratch.task("Breaks the check", script, &[]);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.detail("T1")["gate"]["outcome"], "fail", "{}", scratch.why("T1"));
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

/// Kills the sitters of checks as they come, until this many were killed.
#[track_caller]
fn kill_check_sitters(scratch: &ScratchProject, count: usize) {
    let mut killed = BTreeSet::new();
    scratch.eventually("sitters of checks to kill", || {
        let is_check = |command: &str| command.contains(" sit ") && command.contains("-v0");
        let all: Vec<_> =
            left_behind(scratch.root()).into_iter().filter(|it| is_check(&it.command)).collect();
        // Between fork and exec a check looks like its sitter.
        let is_child = |pid: i32| all.iter().any(|other| Some(other.pid) == parent_of(pid));
        for process in all.iter().filter(|it| !is_child(it.pid)) {
            if killed.len() < count && killed.insert(process.pid) {
                let pid = process.pid.to_string();
                let _ = Command::new("kill").args(["-9", &pid]).status(); // it has just ended: another one comes
            }
        }
        killed.len() == count
    });
}

#[test]
fn a_check_whose_sitter_is_killed_is_run_again_and_nobody_is_held() {
    let scratch = ScratchProject::new(LANDFALL);
    let go = open_folder(&scratch).join("go");
    let waits = format!("while [ ! -e {} ]; do sleep 0.05; done", go.display());
    scratch.settings(&settings("", "retries = 0", &[&waits]));
    for name in ["one", "two", "three"] {
        let script = format!("signal = \"complete\"\n[[write]]\npath = \"{name}.txt\"\ntext = \"x\\n\"\n");
        scratch.task(name, &script, &[]);
    }
    let mut run = scratch.start(&["run"]);
    // No check is ever killed more often than it may be started again.
    kill_check_sitters(&scratch, 3);
    std::fs::write(&go, "").expect("a file of ours");
    let code = run.wait(std::time::Duration::from_secs(120));
    for task in ["T1", "T2", "T3"] {
        assert_eq!(scratch.status(task), "done", "{}\n{}", scratch.why(task), scratch.heard());
        assert_eq!(scratch.prompts(task).len(), 1, "{task}: a killed check is not the agent's fault");
    }
    assert_eq!(code, Some(0));
    let held = scratch.log().iter().filter(|it| it.to_string().contains("gate-broken")).count();
    assert_eq!(held, 0, "nobody was held");
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn a_check_that_works_again_ends_the_hold_at_the_next_run() {
    for before in [None, Some("#!/bin/sh\nexit 127\n"), Some("#!/bin/sh\nexit 1\n")] {
        let scratch = ScratchProject::new(LANDFALL);
        let tool = scratch.root().join("tool");
        scratch.settings(&settings("", "", &[&tool.display().to_string()]));
        if let Some(text) = before {
            write_program(&tool, text);
        }
        scratch.task("One", GOOD, &[]);
        scratch.task("Two", &GOOD.replace("good", "two"), &[]);
        let run = scratch.landfall(&["run"]);
        assert_eq!(run.code, Some(9), "{}", run.err);
        assert_eq!(scratch.wait_of("T1"), "gate broken", "{}", scratch.why("T1"));
        write_program(&tool, "#!/bin/sh\nexit 0\n");
        let run = scratch.landfall(&["run"]);
        assert_eq!(run.code, Some(0), "{}\n{}", scratch.why("T1"), run.err);
        for task in ["T1", "T2"] {
            assert_eq!(scratch.status(task), "done", "{}", scratch.why(task));
            assert_eq!(scratch.prompts(task).len(), 1, "its work was good all the time");
        }
    }
}

#[test]
fn a_check_that_works_again_ends_the_hold_of_the_others_in_the_same_run() {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = open_folder(&scratch);
    let (tool, go) = (scratch.root().join("tool"), folder.join("go"));
    scratch.settings(&settings("slots = 2", "", &[&tool.display().to_string()]));
    scratch.task("One", GOOD, &[]);
    let waits = format!("while [ ! -e {} ]; do sleep 0.05; done", go.display());
    scratch.task("Two", &format!("run = [\"sh\", \"-c\", {waits:?}]\n{}", GOOD.replace("good", "two")), &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the first task to be held", || scratch.wait_of("T1") == "gate broken");
    write_program(&tool, "#!/bin/sh\nexit 0\n");
    std::fs::write(&go, "").expect("a file of ours");
    let code = run.wait(std::time::Duration::from_secs(120));
    for task in ["T1", "T2"] {
        assert_eq!(scratch.status(task), "done", "{}\n{}", scratch.why(task), scratch.heard());
    }
    assert_eq!(code, Some(0), "{}", scratch.heard());
}

#[test]
fn a_lock_that_a_killed_git_left_in_a_workspace_does_not_stop_the_next_agent() {
    for lock in ["index.lock", "HEAD.lock", "refs/heads/landfall/t1.lock"] {
        let scratch = ScratchProject::new(LANDFALL);
        let once = open_folder(&scratch).join("once");
        scratch.settings(&settings("", "", &["sh test.sh"]));
        let leaves = format!("[ -e {0} ] || {{ touch {0} .git/{lock}; kill -9 $PPID; }}", once.display());
        scratch.task("One", &format!("run = [\"sh\", \"-c\", {leaves:?}]\n{GOOD}"), &[]);
        let run = scratch.landfall(&["run"]);
        assert!(once.exists(), "the agent was killed once");
        assert_eq!(scratch.status("T1"), "done", "{lock}: {}\n{}", scratch.why("T1"), run.err);
    }
}

#[test]
fn a_branch_that_is_back_ends_the_hold_for_it() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("One", GOOD, &[]);
    let first = scratch.landfall(&["run"]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    let tip = scratch.git(&["rev-parse", "main"]);
    scratch.more_settings("[project]\nbase = \"main\"");
    scratch.git(&["checkout", "--quiet", "-b", "elsewhere"]);
    // The branch is rewritten, and put back to where it was.
    scratch.git(&["update-ref", "refs/heads/main", &format!("{tip}~1")]);
    scratch.task("Two", &GOOD.replace("good", "two"), &[]);
    scratch.landfall(&["run"]);
    let hold = scratch.landfall(&["--json", "queue"]).json()["hold"]["why"].clone();
    assert_eq!(hold, "rewritten", "{}", scratch.why("T2"));
    scratch.git(&["update-ref", "refs/heads/main", &tip]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T2"), "done", "{}\n{}", scratch.why("T2"), run.err);
    assert_eq!(run.code, Some(0), "{}", run.err);
}

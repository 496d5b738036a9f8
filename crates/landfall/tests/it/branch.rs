//! The person's own branch: what they push wins, and when they rewrite or delete it, nothing lands until they say what is
//! meant.

use std::time::Duration;

use landfall_testkit::ScratchProject;
use serde_json::Value;

use crate::LANDFALL;
use crate::batches::{all_green, fill};
use crate::sandbox::open;

fn writes(name: &str) -> String {
    format!("signal = \"complete\"\n[[write]]\npath = \"{name}\"\ntext = \"{name}\\n\"\n")
}

fn hold(scratch: &ScratchProject) -> Value {
    scratch.landfall(&["--json", "queue"]).json()["hold"].clone()
}

fn line(scratch: &ScratchProject) -> usize {
    scratch.landfall(&["--json", "queue"]).json()["line"].as_array().map_or(0, Vec::len)
}

fn has(scratch: &ScratchProject, names: &[&str]) -> Vec<bool> {
    let files = scratch.git(&["ls-tree", "-r", "--name-only", "main"]);
    names.iter().map(|name| files.lines().any(|file| file == *name)).collect()
}

/// Two tasks, one after the other.
fn two() -> ScratchProject {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("First", &writes("f1"), &[]);
    scratch.landfall(&["run"]).ok();
    scratch.landfall(&["queue", "pause"]).ok();
    scratch.task("Second", &writes("f2"), &[]);
    fill(&scratch, &["T2"]);
    scratch.landfall(&["queue", "resume"]).ok();
    scratch
}

/// A person takes the landed work off their branch, and adds a commit of their own.
fn rewrite(scratch: &ScratchProject) -> String {
    scratch.git(&["reset", "--quiet", "--hard", "main^1"]);
    scratch.file("mine", "mine\n");
    scratch.commit("mine instead");
    scratch.git(&["rev-parse", "main"])
}

#[track_caller]
fn held_for(scratch: &ScratchProject, why: &str, words: &[&str]) {
    let hold = hold(scratch);
    assert_eq!(hold["why"], why, "{hold}");
    let text = scratch.landfall(&["queue"]).ok() + &scratch.landfall(&["status"]).ok();
    for word in words {
        assert!(text.contains(word), "`{word}` is not in: {text}");
    }
}

#[test]
fn a_rewritten_branch_holds_the_queue_and_is_taken_as_it_is_when_the_person_says_so() {
    let scratch = two();
    let mine = rewrite(&scratch);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(9), "{}\n{}", run.out, run.err);
    assert_eq!(scratch.git(&["rev-parse", "main"]), mine, "nothing is pushed over what they did");
    held_for(&scratch, "rewritten", &["was rewritten", "landfall queue resume", "--keep-landed"]);
    assert_eq!(line(&scratch), 1, "T2 waits");

    scratch.landfall(&["queue", "resume"]).ok();
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    assert_eq!(scratch.status("T2"), "done", "{}", scratch.why("T2"));
    assert_eq!(has(&scratch, &["f1", "f2", "mine"]), [false, true, true], "their branch as it was, and T2");
    assert_eq!(scratch.git(&["rev-parse", "main^1"]), mine);
    let tree = scratch.landfall(&["certificate", "T2"]).json()["verification"]["tree"].clone();
    assert_eq!(tree, scratch.git(&["rev-parse", "main^{tree}"]), "verified on their branch");
    // What had landed is kept where it can be got at.
    let landed = scratch.detail("T1")["landed"].as_str().expect("it had landed").to_owned();
    assert!(scratch.store(&["cat-file", "-t", &landed]).is_some());
    assert!(scratch.store(&["for-each-ref", "--contains", &landed]).is_some_and(|refs| !refs.is_empty()));
    all_green(&scratch);
}

#[test]
fn a_rewritten_branch_and_what_landed_are_brought_together_where_the_person_wants_both() {
    let scratch = two();
    let mine = rewrite(&scratch);
    assert_eq!(scratch.landfall(&["run"]).code, Some(9));
    scratch.landfall(&["queue", "resume", "--keep-landed"]).ok();
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    assert_eq!(has(&scratch, &["f1", "f2", "mine"]), [true, true, true]);
    scratch.git(&["merge-base", "--is-ancestor", &mine, "main"]);
    all_green(&scratch);
}

#[test]
fn a_branch_rewritten_during_a_verification_is_not_landed_upon() {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = open(&scratch);
    scratch.task("First", &writes("f1"), &[]);
    scratch.landfall(&["run"]).ok();
    let (began, go) = (folder.join("began"), folder.join("go"));
    let check = format!(
        "if [ -e f2 ]; then touch {}; while [ ! -e {} ]; do sleep 0.02; done; fi\necho '1 passed, 0 failed'\n",
        began.display(),
        go.display()
    );
    scratch.file("test.sh", &check);
    scratch.commit("a check with a moment");
    scratch.task("Second", &writes("f2"), &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the check", || began.exists());
    scratch.git(&["commit", "--quiet", "--amend", "--message", "the same in other words"]);
    let mine = scratch.git(&["rev-parse", "main"]);
    std::fs::write(&go, "").expect("ours");
    assert_eq!(run.wait(Duration::from_secs(30)), Some(9), "{}", scratch.heard());
    assert_eq!(scratch.git(&["rev-parse", "main"]), mine);
    held_for(&scratch, "rewritten", &["was rewritten"]);
    scratch.landfall(&["queue", "resume"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T2"), "done", "{}", scratch.why("T2"));
    assert_eq!(scratch.git(&["rev-parse", "main^1"]), mine);
    assert_eq!(has(&scratch, &["f1", "f2"]), [true, true]);
}

#[test]
fn a_deleted_branch_holds_the_queue_until_it_is_back() {
    let scratch = two();
    let was = scratch.git(&["rev-parse", "main"]);
    scratch.git(&["checkout", "--quiet", "-b", "elsewhere"]);
    scratch.more_settings("[project]\nbase = \"main\"");
    scratch.git(&["branch", "--quiet", "-D", "main"]);
    let run = scratch.landfall(&["run"]);
    assert_ne!(run.code, Some(0), "{}\n{}", run.out, run.err);
    assert!((run.out + &run.err).contains("main"), "it says which branch is gone");
    assert!(!scratch.git(&["branch", "--list", "main"]).contains("main"), "it is not made up");
    scratch.git(&["branch", "main", &was]);
    scratch.landfall(&["queue", "resume"]); // where it was held
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    assert_eq!(scratch.status("T2"), "done", "{}", scratch.why("T2"));
    assert_eq!(has(&scratch, &["f1", "f2"]), [true, true]);
}

#[test]
fn a_branch_deleted_during_a_run_holds_the_queue_and_it_goes_on_when_it_is_back() {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = open(&scratch);
    let (began, go) = (folder.join("began"), folder.join("go"));
    let script = format!(
        "run = [\"sh\", \"-c\", \"touch {}; while [ ! -e {} ]; do sleep 0.02; done\"]\n{}",
        began.display(),
        go.display(),
        writes("f1")
    );
    scratch.task("First", &script, &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the agent", || began.exists());
    let was = scratch.git(&["rev-parse", "main"]);
    scratch.git(&["checkout", "--quiet", "--detach"]);
    scratch.git(&["branch", "--quiet", "-D", "main"]);
    std::fs::write(&go, "").expect("ours");
    assert_eq!(run.wait(Duration::from_secs(30)), Some(9), "{}", scratch.heard());
    scratch.git(&["checkout", "--quiet", "-b", "main", &was]);
    held_for(&scratch, "deleted", &["is gone", "landfall queue resume"]);
    scratch.landfall(&["queue", "resume"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    assert_eq!(has(&scratch, &["f1"]), [true]);
}

#[test]
fn a_push_during_the_verification_of_a_batch_wins_and_the_batch_is_verified_on_top_of_it() {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = open(&scratch);
    let (began, go) = (folder.join("began"), folder.join("go"));
    let check = format!(
        "if [ -e f1 ] && [ -e f2 ]; then touch {}; while [ ! -e {} ]; do sleep 0.02; done; fi\necho '1 passed, 0 failed'\n",
        began.display(),
        go.display()
    );
    scratch.file("test.sh", &check);
    scratch.commit("a check with a moment");
    scratch.landfall(&["queue", "pause"]).ok();
    scratch.task("First", &writes("f1"), &[]);
    scratch.task("Second", &writes("f2"), &[]);
    fill(&scratch, &["T1", "T2"]);
    scratch.landfall(&["queue", "resume"]).ok();
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the check of the batch", || began.exists());
    scratch.file("mine", "mine\n");
    scratch.commit("mine");
    let mine = scratch.git(&["rev-parse", "main"]);
    std::fs::write(&go, "").expect("ours");
    assert_eq!(run.wait(Duration::from_secs(30)), Some(0), "{}", scratch.heard());
    assert_eq!(scratch.git(&["rev-parse", "main^1"]), mine, "on top of theirs");
    assert_eq!(has(&scratch, &["f1", "f2", "mine"]), [true, true, true]);
    let tree = scratch.git(&["rev-parse", "main^{tree}"]);
    for task in ["T1", "T2"] {
        assert_eq!(scratch.landfall(&["certificate", task]).json()["verification"]["tree"], tree, "{task}");
        assert_eq!(scratch.prompts(task).len(), 1, "{task}: the agent is not bothered");
    }
}

#[test]
fn a_restored_checkpoint_goes_through_the_queue_and_shows_what_it_takes_away() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("First", &writes("f1"), &[]);
    scratch.landfall(&["run"]).ok();
    scratch.landfall(&["checkpoint", "create", "good"]).ok();
    scratch.task("Second", &writes("f2"), &[]);
    scratch.landfall(&["run"]).ok();
    scratch.file("mine", "mine\n");
    scratch.commit("mine");
    let tip = scratch.git(&["rev-parse", "main"]);
    let asked = scratch.landfall(&["checkpoint", "restore", "good"]);
    assert_eq!(asked.code, Some(9), "nobody is there to confirm");
    assert!(asked.err.contains("T2"), "{}", asked.err);
    assert!(asked.err.contains("mine (by Person)"), "their own commit goes away, too: {}", asked.err);
    assert!(!asked.err.contains("T1"), "what was there before stays: {}", asked.err);
    assert_eq!(scratch.git(&["rev-parse", "main"]), tip);

    scratch.landfall(&["checkpoint", "restore", "good", "--yes"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T3"), "done", "{}", scratch.why("T3"));
    assert_eq!(has(&scratch, &["f1", "f2", "mine"]), [true, false, false]);
    assert_eq!(scratch.git(&["rev-parse", "main^1"]), tip, "nothing is gone from the history");
    assert_eq!(scratch.detail("T3")["gate"]["outcome"], "pass", "it was verified like any other");
    all_green(&scratch);
}

#[test]
fn a_checkpoint_that_does_not_pass_the_checks_of_today_is_not_restored() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.landfall(&["checkpoint", "create", "old"]).ok();
    scratch.task("First", &writes("f1"), &[]);
    scratch.landfall(&["run"]).ok();
    scratch.file("test.sh", "exit 1\n");
    scratch.commit("a red one");
    scratch.landfall(&["checkpoint", "create", "red"]).ok();
    scratch.file("test.sh", "[ -e f1 ] || { echo 'f1 is needed'; exit 1; }; echo '1 passed, 0 failed'\n");
    scratch.commit("a green one");
    scratch.task("Second", &writes("f2"), &[]);
    scratch.landfall(&["run"]).ok();
    let tip = scratch.git(&["rev-parse", "main"]);
    scratch.landfall(&["checkpoint", "restore", "red", "--yes"]).ok();
    let run = scratch.landfall(&["run"]);
    assert_ne!(run.code, Some(0), "{}\n{}", run.out, run.err);
    assert_eq!(scratch.git(&["rev-parse", "main"]), tip);
}

#[test]
fn a_person_who_commits_all_the_while_loses_nothing_and_holds_nothing_up() {
    let scratch = ScratchProject::new(LANDFALL);
    for number in 1..=10 {
        scratch.task(&format!("Number {number}"), &writes(&format!("f{number}")), &[]);
    }
    let mut run = scratch.start(&["run", "--slots", "3"]);
    let mut mine = Vec::new();
    // Each commit outdates what is being verified; fewer than would look like a queue that gets nowhere.
    while !run.is_over() && mine.len() < 12 {
        // As a person does it: what is in their checkout may have moved forward under them meanwhile.
        let name = format!("mine{}", mine.len());
        scratch.file(&name, "mine\n");
        let git = |args: &[&str]| {
            let who = ["-c", "user.name=Person", "-c", "user.email=person@example.invalid"];
            let place = scratch.project();
            let output = std::process::Command::new("git").arg("-C").arg(place).args(who).args(args).output();
            output.expect("git runs").status.success()
        };
        // Where the checkout is just being moved, git says no, and they try again.
        scratch.eventually("git to let them", || {
            git(&["add", "--", &name]) && git(&["commit", "--quiet", "--message", &name, "--", &name])
        });
        mine.push(name);
        std::thread::sleep(Duration::from_millis(150)); // the pace of this person
    }
    let code = run.wait(Duration::from_secs(60));
    assert!(matches!(code, Some(0 | 9)), "{code:?}: {}", scratch.heard());
    // What could not come into their checkout while they were at it does so now.
    let rest = scratch.landfall(&["run"]);
    assert_eq!(rest.code, Some(0), "{}\n{}", rest.out, rest.err);
    for number in 1..=10 {
        assert_eq!(scratch.status(&format!("T{number}")), "done", "{}", scratch.why(&format!("T{number}")));
    }
    assert!(mine.len() > 3, "they were at it: {mine:?}");
    let names: Vec<&str> = mine.iter().map(String::as_str).collect();
    assert_eq!(has(&scratch, &names), vec![true; names.len()], "nothing of theirs is lost");
    let own: Vec<String> = (1..=10).map(|number| format!("f{number}")).collect();
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    assert_eq!(has(&scratch, &own), vec![true; own.len()]);
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
    all_green(&scratch);
}

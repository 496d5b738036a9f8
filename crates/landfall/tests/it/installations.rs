//! What the first checks install is copied from the base, as long as a task does not change what it is made from.

use landfall_testkit::ScratchProject;

use crate::LANDFALL;

/// A project whose first check installs to `deps`. Its second check proves that the installation is of its own lock file and
/// that no earlier candidate left something in it; the work of `one.txt` does leave something there.
fn scene(install: &str, settings: &str) -> ScratchProject {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file(".gitignore", "deps/\nbuilt/\n");
    scratch.file("deps.lock", "first\n");
    scratch.file("install.sh", install);
    scratch.file(
        "check.sh",
        "test ! -e deps/poison || exit 3\ntest \"$(cat deps.lock)\" = \"$(cat deps/lock)\" || exit 4\n\
         if test -e one.txt; then echo poison > deps/poison; fi\n",
    );
    scratch.settings(&format!(
        "[agent.default]\nkind = \"script\"\n[run]\nslots = 1\nlanes = 1\niterations_max = 1\n{settings}\n\
         [[verify.command]]\nname = \"install\"\nrun = \"sh install.sh\"\n\
         installs = [\"deps\"]\ninstalls_from = [\"deps.lock\"]\n\
         [[verify.command]]\nname = \"tests\"\nrun = \"sh check.sh\"\n"
    ));
    scratch
}

const INSTALL: &str = "rm -rf deps && mkdir deps && cp deps.lock deps/lock\n";

/// Runs a task that writes `file`, and returns whether its installation was copied. A person approves a change of the script
/// of a check.
fn is_copied(scratch: &ScratchProject, task: &str, file: &str, text: &str) -> bool {
    let script = format!("signal = \"complete\"\n[[write]]\npath = {file:?}\ntext = {text:?}\n");
    scratch.task(task, &script, &[]);
    let mut run = scratch.landfall(&["run"]);
    if scratch.status(task) == "review" {
        scratch.landfall(&["review", task, "approve"]).ok();
        run = scratch.landfall(&["run"]);
    }
    assert_eq!(scratch.status(task), "done", "{}\n{}", scratch.why(task), run.err);
    let commands = scratch.landfall(&["certificate", task, "--json"]).json();
    let commands = commands.pointer("/verification/commands").and_then(|it| it.as_array().cloned());
    let commands = commands.expect("what landed was verified");
    assert_eq!(commands.len(), 2, "{commands:?}");
    assert_eq!(commands[1]["copied_from_base"], false, "tests always run");
    commands[0]["copied_from_base"] == true
}

#[test]
fn an_installation_is_copied_until_a_task_changes_what_it_is_made_from() {
    let scratch = scene(INSTALL, "");
    assert!(is_copied(&scratch, "T1", "one.txt", "1\n"));
    assert!(is_copied(&scratch, "T2", "two.txt", "2\n"), "and without what the check of T1 left");
    assert!(!is_copied(&scratch, "T3", "deps.lock", "second\n"));
    assert!(is_copied(&scratch, "T4", "three.txt", "3\n"), "of the new lock file");
    assert!(!is_copied(&scratch, "T5", "install.sh", &format!("{INSTALL}touch deps/more\n")));
    assert!(is_copied(&scratch, "T6", "four.txt", "4\n"), "of the new script");
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn a_command_that_leaves_more_than_its_folders_runs_for_each_task() {
    let scratch = scene(&format!("{INSTALL}mkdir -p built && cp deps.lock built/\n"), "");
    assert!(!is_copied(&scratch, "T1", "one.txt", "1\n"));
}

#[test]
fn nothing_is_copied_without_a_sandbox() {
    let scratch = scene(INSTALL, "sandbox = \"off\"");
    assert!(!is_copied(&scratch, "T1", "one.txt", "1\n"));
}

//! Each kind of bad input: a clear error, the right exit code, nothing lost.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::support::{TestEnvironment, finish, until};

#[test]
fn a_folder_without_a_repository_is_named() {
    let place = TestEnvironment::without_repository();
    for args in [&["list"][..], &["add", "x"], &["run"], &["init"], &["status"]] {
        place.landfall(args).refuses(3, &["not", "git repository", "hint: "]);
    }
    assert!(!place.project().join("landfall.toml").exists());
}

#[test]
fn a_bare_repository_is_named() {
    let place = TestEnvironment::without_repository();
    place.git(&["init", "--quiet", "--bare"]);
    place.landfall(&["add", "x"]).refuses(3, &["bare", "hint: "]);
    place.landfall(&["init"]).refuses(3, &["bare"]);
}

#[test]
fn a_repository_without_commits_is_named() {
    let place = TestEnvironment::without_repository();
    place.git(&["init", "--quiet", "--initial-branch=main"]);
    place.landfall(&["add", "x"]).refuses(3, &["no commit", "hint: "]);
    place.landfall(&["run"]).refuses(3, &["no commit"]);
}

#[test]
fn a_head_on_no_branch_is_named() {
    let place = TestEnvironment::new();
    place.git(&["checkout", "--quiet", "--detach"]);
    place.landfall(&["run"]).refuses(3, &["branch", "hint: "]);
    place.landfall(&["init"]).refuses(3, &["branch"]);
}

#[test]
fn a_project_without_settings_takes_the_defaults() {
    let place = TestEnvironment::new();
    place.landfall(&["add", "a task"]).works();
    assert_eq!(place.titles(), ["a task"]);
}

#[test]
fn broken_settings_are_named_with_their_line_and_nothing_is_lost() {
    let place = TestEnvironment::new();
    place.add(&["kept"]);
    place.write("landfall.toml", "[project]\nbase = \"main\"\n\n[run]\nslot = 3\n");
    place.commit("a slip");
    place.landfall(&["run"]).refuses(4, &["landfall.toml", "5", "slot", "slots"]);
    place.write("landfall.toml", "[project\n");
    place.commit("not even TOML");
    place.landfall(&["run"]).refuses(4, &["landfall.toml", "1"]);
    place.write("landfall.toml", "[run]\nslots = \"many\"\n");
    place.commit("the wrong kind");
    place.landfall(&["run"]).refuses(4, &["landfall.toml", "2", "slots"]);
    place.write("landfall.toml", "");
    place.commit("mended");
    assert_eq!(place.titles(), ["kept"]);
}

#[test]
fn an_unknown_flow_is_refused_with_the_known_ones() {
    let place = TestEnvironment::new();
    place.landfall(&["add", "x", "--flow", "lop"]).refuses(5, &["lop", "loop"]);
    place.landfall(&["flow", "show", "lop"]).refuses(5, &["lop", "loop"]);
    assert!(place.titles().is_empty(), "all or none");
}

#[test]
fn a_broken_flow_file_is_named_with_its_line() {
    let place = TestEnvironment::new();
    let text = "[step.work]\nkind = \"agent\"\nprompt = \"work\"\non.done = \"lnad\"\n\n[step.land]\nkind = \"land\"\n";
    place.write("mine.toml", text);
    let said = place.landfall(&["flow", "check", "mine.toml"]);
    assert_eq!(said.code, Some(4), "{said:?}");
    assert!(said.out.contains("mine.toml:4: ") && said.out.contains("lnad"), "{said:?}");
    let source = place.landfall(&["flow", "show", "loop", "--source"]).works().out;
    place.write("good.toml", &source);
    place.landfall(&["flow", "check", "good.toml"]).works();
    place.landfall(&["flow", "check", "lifecycle"]).works();
    place.landfall(&["flow", "check", "missing.toml"]).refuses(2, &["missing.toml"]);
}

#[test]
fn a_circle_of_needs_is_refused_and_shown() {
    let place = TestEnvironment::new();
    place.add(&["one"]);
    place.add(&["two", "--needs", "T1"]);
    place.add(&["three", "--needs", "T2"]);
    place.landfall(&["edit", "T1", "--needs", "T3"]).refuses(2, &["T1", "T2", "T3"]);
    place.landfall(&["edit", "T1", "--needs", "T1"]).refuses(2, &["T1"]);
    let files = "+++\nid = \"a\"\ntitle = \"a\"\nneeds = [\"b\"]\n+++\n+++\nid = \"b\"\ntitle = \"b\"\nneeds = [\"a\"]\n+++\n";
    place.landfall_with(&["add", "-"], files).refuses(2, &["need"]);
    assert_eq!(place.titles(), ["one", "two", "three"]);
}

#[test]
fn unknown_tasks_are_named_by_every_command() {
    let place = TestEnvironment::new();
    place.add(&["the only one"]);
    for args in [
        &["show", "T9"][..],
        &["why", "T9"],
        &["diff", "T9"],
        &["edit", "T9", "--title", "x"],
        &["retry", "T9"],
        &["cancel", "T9"],
        &["answer", "T9", "yes"],
        &["rollback", "T9"],
        &["certificate", "T9"],
        &["report", "T9"],
        &["report", "R9"],
        &["export", "T9"],
        &["add", "x", "--needs", "T9"],
        &["add", "x", "--parent", "T9"],
        &["run", "T9"],
    ] {
        place.landfall(args).refuses(5, &["9", "hint: "]);
    }
    for word in ["T0", "seven", "T7x", "../T1", "$(id)"] {
        place.landfall(&["why", word]).refuses(2, &["task"]);
    }
    assert_eq!(place.titles(), ["the only one"]);
}

#[test]
fn what_is_not_possible_now_is_refused() {
    let place = TestEnvironment::new();
    place.add(&["ready"]);
    place.landfall(&["answer", "T1", "yes"]).refuses(6, &["T1", "hint: "]);
    place.landfall(&["rollback", "T1"]).refuses(6, &["T1"]);
    place.landfall(&["certificate", "T1"]).refuses(6, &["T1"]);
    place.landfall(&["cancel", "T1"]).works();
    place.landfall(&["cancel", "T1"]).refuses(6, &["T1"]);
}

#[test]
fn bad_words_are_refused_and_nothing_is_added() {
    let place = TestEnvironment::new();
    let long_title = "x".repeat(20_000);
    for args in [
        &["add"][..],
        &["add", ""],
        &["add", " \t "],
        &["add", &long_title],
        &["add", "x", "--size", "huge"],
        &["add", "x", "--priority", "10"],
        &["add", "x", "--tag", "two words"],
        &["add", "x", "--needs", "#7"],
        &["add", "x", "--needs", "#1"],
        &["add", "-f", "missing.md"],
        &["add", "fine", ""],
        &["edit", "T1"],
        &["frobnicate"],
        &["list", "--status", "redy"],
        &["run", "--slots", "0"],
    ] {
        let said = place.landfall(args);
        assert!(said.code == Some(2) && said.err.starts_with("error: "), "{args:?}: {said:?}");
    }
    let said = place.landfall(&[OsStr::new("add"), OsStr::from_bytes(b"caf\xe9")]);
    said.refuses(2, &["UTF-8"]);
    fs::write(place.project().join("latin1.md"), b"# caf\xe9\n").expect("a file");
    place.landfall(&["add", "-f", "latin1.md"]).refuses(2, &["latin1.md", "UTF-8"]);
    place.write("slip.md", "+++\ntitle = \"x\"\npiority = 1\n+++\n");
    place.landfall(&["add", "-f", "slip.md"]).refuses(2, &["slip.md:3", "piority", "priority"]);
    assert!(place.titles().is_empty());
}

#[test]
fn a_second_engine_is_refused_and_the_holder_named() {
    let place = TestEnvironment::with_script_agent("true");
    let body = "```landfall-script\nsleep = \"40s\"\nsignal = \"complete\"\n```\n";
    place.add(&["slow", "--body", body]);
    let first = place.start(&["run"]);
    let pid = first.pid();
    until("the first engine is at work", || {
        place.landfall(&["status"]).out.contains(&format!("process {pid}"))
    });
    place.landfall(&["run"]).refuses(7, &[&pid.to_string(), "hint: "]);
    // Everything else goes on through the engine that runs.
    assert_eq!(place.add(&["another"]), ["T2"]);
    let stopped = place.landfall(&["stop", "--now"]).works();
    assert!(!stopped.out.is_empty());
    let said = first.end();
    assert!(said.code.is_some_and(|code| code == 0 || code == 9), "{said:?}");
    assert_eq!(place.titles(), ["slow", "another"]);
}

#[test]
fn a_state_folder_that_cannot_be_written_is_named() {
    let place = TestEnvironment::new();
    place.add(&["kept"]);
    fs::create_dir(place.path("ro")).expect("a folder");
    let Some(said) = place.with_mount("ro", "ro", &["add", "x"]) else { return };
    said.refuses(10, &["ead-only", "hint: "]);
    assert_eq!(place.titles(), ["kept"]);
}

#[test]
fn a_full_disk_is_named() {
    let place = TestEnvironment::new();
    fs::create_dir(place.path("small")).expect("a folder");
    let Some(said) = place.with_mount("small", "size=128k", &["add", "x"]) else { return };
    said.refuses(10, &["hint: "]);
}

#[test]
fn a_state_folder_that_holds_nonsense_is_left_as_it_is() {
    let place = TestEnvironment::new();
    place.add(&["kept"]);
    let journal = place.path("state/journal.db");
    fs::write(&journal, b"this is not a journal").expect("damaged");
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(place.path(&format!("state/journal.db{suffix}"))); // there or not, it must not help
    }
    place.landfall(&["add", "x"]).refuses(10, &["journal", "hint: "]);
    assert_eq!(fs::read(&journal).expect("still there"), b"this is not a journal");
}

impl TestEnvironment {
    /// Runs the program with its state folder on a small or read-only file system of its own. None where the machine
    /// does not allow it.
    fn with_mount(&self, folder: &str, options: &str, args: &[&str]) -> Option<crate::support::Said> {
        let state = self.path(folder);
        let script = "mount -t tmpfs -o \"$1\" tmpfs \"$LANDFALL_STATE\" || exit 97; shift; exec \"$@\"";
        let mut command = self.scrubbed("unshare");
        command.args(["-Urm", "sh", "-c", script, "sh", options, env!("CARGO_BIN_EXE_landfall")]).args(args);
        command.env("LANDFALL_STATE", &state);
        let said = finish(command.spawn().ok()?, "");
        let allowed = said.code != Some(97) && !said.err.starts_with("unshare");
        if !allowed {
            eprintln!("not shown here: this machine lets nobody mount a file system ({})", said.err.trim());
        }
        allowed.then_some(said)
    }
}

//! Repositories of somebody else: settings that reach beyond the sandbox count only after the person has trusted them.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;

use landfall_testkit::{CommandOutput, ScratchProject};

use crate::LANDFALL;

/// A project that somebody else has set up, and nobody has trusted.
fn hostile(settings: &str) -> ScratchProject {
    let mut scratch = ScratchProject::new(LANDFALL);
    scratch.trust_nothing();
    scratch.more_settings(settings);
    scratch
}

/// Trusts the settings by the digest that a script reads.
#[track_caller]
fn trust(scratch: &ScratchProject) {
    let report = scratch.landfall(&["--json", "trust"]).json();
    let digest = report["digest"].as_str().expect("a digest").to_owned();
    let said = scratch.landfall(&["trust", "--yes", &digest]);
    assert_eq!(said.code, Some(0), "{}", said.err);
}

#[track_caller]
fn check_refused(said: &CommandOutput, key: &str) {
    assert_eq!(said.code, Some(9), "{}{}", said.out, said.err);
    assert!(said.err.contains(key) && said.err.contains("landfall trust"), "{}", said.err);
}

/// A server that is not asked for anything, unless something is wrong.
fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("ours");
    let url = format!("http://{}", listener.local_addr().expect("it has one"));
    (listener, url)
}

#[test]
fn a_token_file_of_a_strangers_settings_is_sent_nowhere() {
    let (listener, url) = listener();
    let scratch = ScratchProject::new(LANDFALL);
    let secret = scratch.root().join("home/secret");
    std::fs::write(&secret, "the-secret\n").expect("ours");
    drop(scratch);
    let scratch = hostile(&format!(
        "[tracker]\nkind = \"github\"\nrepository = \"a/b\"\nurl = \"{url}\"\ntoken_file = \"~/secret\"\n"
    ));
    std::fs::write(scratch.root().join("home/secret"), "the-secret\n").expect("ours");
    for args in [
        &["issue", "list"][..],
        &["issue", "show", "1"],
        &["issue", "new", "x"],
        &["reconcile"],
        &["verify", "1"],
        &["issue", "list", "--all"],
    ] {
        let said = scratch.landfall(args);
        assert_ne!(said.code, Some(0), "{args:?}: {}", said.out);
        assert!(!format!("{said:?}").contains("the-secret"), "{args:?}");
    }
    check_refused(&scratch.landfall(&["issue", "list"]), "tracker.url");
    assert!(listener.accept().is_err(), "nobody was asked for anything");
    // Trusted, it is sent there, and nowhere else.
    trust(&scratch);
    let answering = std::thread::spawn(move || {
        listener.set_nonblocking(false).expect("ours");
        let (mut stream, _) = listener.accept().expect("somebody asks");
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("a timeout");
        let mut head = [0; 8192];
        let length = stream.read(&mut head).expect("a request");
        drop(
            stream
                .write_all(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"),
        );
        String::from_utf8_lossy(&head[..length]).into_owned()
    });
    let said = scratch.landfall(&["issue", "list"]);
    assert_ne!(said.code, Some(9), "it is trusted: {}", said.err);
    assert!(answering.join().expect("no panic").contains("the-secret"));
}

fn marked_by(scratch: &ScratchProject) -> PathBuf {
    scratch.root().join("home/marked")
}

#[test]
fn hooks_of_a_strangers_settings_run_after_they_are_trusted_and_any_change_asks_again() {
    let scratch = ScratchProject::new(LANDFALL);
    let mark = marked_by(&scratch);
    drop(scratch);
    let mut scratch = hostile("");
    let mark = scratch.root().join("home").join(mark.file_name().expect("a name"));
    let hook = |word: &str| format!("[hooks]\npre-start = \"echo {word} >> {}\"\n", mark.display());
    let before = std::fs::read_to_string(scratch.project().join("landfall.toml")).expect("ours");
    let script = "signal = \"complete\"\n[[write]]\npath = \"b.txt\"\ntext = \"b\\n\"\n";
    scratch.settings(&format!("{before}{}", hook("one")));
    scratch.task("Work", script, &[]);
    check_refused(&scratch.landfall(&["run"]), "hooks.pre-start");
    assert!(!mark.exists(), "nothing of it ran");
    assert_eq!(scratch.left_behind(), []);
    // Others' digests trust nothing, nor do words that are none.
    for digest in ["", "yes", &"0".repeat(64)] {
        assert_ne!(scratch.landfall(&["trust", "--yes", digest]).code, Some(0), "{digest}");
    }
    // Nobody is there to be asked: it says how to go on.
    let asked = scratch.landfall(&["trust"]);
    assert!(asked.code == Some(9) && asked.err.contains("landfall trust --yes "), "{}", asked.err);
    assert!(asked.out.contains("hooks.pre-start") && asked.out.contains("echo one"), "{}", asked.out);
    check_refused(&scratch.landfall(&["run"]), "hooks.pre-start");
    trust(&scratch);
    assert_eq!(scratch.landfall(&["run"]).code, Some(0));
    assert_eq!(std::fs::read_to_string(&mark).expect("it ran"), "one\n");
    // A remark or another setting changes nothing; the hook does.
    scratch.settings(&format!("# a remark\n{before}[keep]\nfailed = \"2d\"\n{}", hook("one")));
    scratch.task("More", &script.replace("b.txt", "c.txt"), &[]);
    assert_eq!(scratch.landfall(&["run"]).code, Some(0));
    scratch.settings(&format!("{before}{}", hook("two")));
    scratch.task("And more", &script.replace("b.txt", "d.txt"), &[]);
    check_refused(&scratch.landfall(&["run"]), "changed settings");
    assert!(scratch.landfall(&["trust"]).out.contains("changed"), "it says so");
    // What needs no trust still works.
    for args in [&["status"][..], &["list"], &["log"], &["doctor"], &["show", "T1"]] {
        assert_ne!(scratch.landfall(args).code, Some(9), "{args:?}");
    }
    let doctor = scratch.landfall(&["doctor"]).out;
    assert!(
        doctor.contains("BAD   trust: landfall.toml has changed settings that need your trust"),
        "{doctor}"
    );
    // It is of this repository alone: a copy of it elsewhere is asked about again.
    let other = scratch.root().join("copy");
    let copied = std::process::Command::new("cp").arg("-r").arg(scratch.project()).arg(&other).status();
    assert!(copied.is_ok_and(|status| status.success()));
    scratch.settings(&format!("{before}{}", hook("one")));
    assert_eq!(scratch.landfall(&["--json", "trust"]).json()["trusted"], true, "it was trusted before");
    scratch.set("LANDFALL_STATE", scratch.root().join("other-state").to_str().expect("plain"));
    let there = scratch.landfall(&["-C", other.to_str().expect("plain"), "--json", "trust"]).json();
    assert_eq!(there["trusted"], false);
}

#[test]
fn a_strangers_settings_do_not_lower_the_sandbox() {
    for (key, settings) in [
        ("run.sandbox", "[run]\nsandbox = \"off\"\n"),
        ("run.sandbox_write", "[run]\nsandbox_write = [\"~/.ssh\"]\n"),
        ("agent.other.sandbox", "[agent.other]\nkind = \"script\"\nsandbox = \"off\"\n"),
    ] {
        let scratch = hostile(settings);
        scratch.task("Work", "signal = \"complete\"\n", &[]);
        check_refused(&scratch.landfall(&["run"]), key);
        check_refused(&scratch.landfall(&["run", "--detach"]), key);
        check_refused(&scratch.landfall(&["agents", "--probe"]), key);
        assert!(scratch.facts("T1", "iteration-began").is_empty());
        trust(&scratch);
        assert_ne!(scratch.landfall(&["run"]).code, None);
        assert!(!scratch.facts("T1", "iteration-began").is_empty(), "it is tried now");
    }
}

#[test]
fn what_init_wrote_is_trusted_and_what_somebody_else_wrote_is_not() {
    let mut scratch = ScratchProject::bare(LANDFALL);
    scratch.trust_nothing();
    scratch.git(&["init", "--quiet", "--initial-branch=main", "."]);
    scratch.file("Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\n"); // whose caches `init` names
    scratch.commit("begin");
    assert_eq!(scratch.landfall(&["init", "--no-check"]).code, Some(0));
    let report = scratch.landfall(&["--json", "trust"]).json();
    // Usual caches reach nobody else, so they ask nobody.
    assert_eq!(
        (report["settings"].as_array().map(Vec::len), &report["trusted"]),
        (Some(0), &true.into()),
        "{report}"
    );
    let text = std::fs::read_to_string(scratch.project().join("landfall.toml")).expect("it is there");
    scratch.settings(&text.replace("~/.cargo/registry", "~/.ssh"));
    assert_eq!(scratch.landfall(&["init"]).code, Some(0), "it leaves the file alone");
    assert_eq!(scratch.landfall(&["--json", "trust"]).json()["trusted"], false);
}

#[test]
fn approving_work_that_changes_such_a_setting_trusts_it() {
    let mut scratch = ScratchProject::new(LANDFALL);
    scratch.trust_nothing();
    let text = std::fs::read_to_string(scratch.project().join("landfall.toml")).expect("ours");
    let changed = format!("{text}\n[hooks]\npost-merge = \"true\"\n");
    let script = format!("signal = \"complete\"\n[[write]]\npath = \"landfall.toml\"\ntext = {changed:?}\n");
    scratch.task("Set a hook", &script, &[]);
    scratch.landfall(&["run"]);
    assert_ne!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    let approved = scratch.landfall(&["review", "T1", "approve"]);
    assert_eq!(approved.code, Some(0), "{}", approved.err);
    assert_eq!(scratch.landfall(&["run"]).code, Some(0));
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    let report = scratch.landfall(&["--json", "trust"]).json();
    assert_eq!(
        (&report["trusted"], report["settings"].as_array().map(Vec::len)),
        (&true.into(), Some(1)),
        "{report}"
    );
}

#[test]
fn a_sprint_from_before_there_was_this_question_goes_on_and_a_plain_run_is_asked_once() {
    let scratch = hostile("[run]\nslots = 1\nrestarts_max = 0\n[hooks]\npost-merge = \"true\"\n");
    trust(&scratch);
    let file = scratch.state().join("trust.json");
    scratch.task("Crashes", "exit = 3", &[]);
    scratch.task("Second", "signal = \"complete\"\n[[write]]\npath = \"b.txt\"\ntext = \"b\\n\"\n", &[]);
    let said = scratch.landfall(&["sprint", "start", "--duration", "6h", "--pause-on-error"]);
    assert_eq!(said.code, Some(9), "{}", said.err);
    assert_eq!(scratch.status("T2"), "ready");
    std::fs::remove_file(&file).expect("ours"); // as a version leaves it that does not know it
    scratch.landfall(&["sprint", "resume"]);
    assert_eq!(scratch.status("T2"), "done", "{}", scratch.why("T2"));
    assert!(file.exists(), "it is noted");
    std::fs::remove_file(&file).expect("ours");
    scratch.task("Third", "signal = \"complete\"\n[[write]]\npath = \"c.txt\"\ntext = \"c\\n\"\n", &[]);
    check_refused(&scratch.landfall(&["run"]), "hooks.post-merge");
    trust(&scratch);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T3"), "done", "{}", scratch.why("T3"));
}

#[test]
fn what_a_hook_runs_is_shown_to_a_person_before_it_lands() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file("scripts/notify.sh", "#!/bin/sh\n. scripts/lib.sh\n");
    scratch.file("scripts/lib.sh", "true\n");
    scratch.commit("scripts");
    scratch.more_settings("[hooks]\npre-start = \"sh scripts/notify.sh\"\n");
    let writes = |path: &str, text: &str| {
        format!("signal = \"complete\"\n[[write]]\npath = \"{path}\"\ntext = {text:?}\n")
    };
    let mark = scratch.root().join("home/marked");
    let evil = format!("touch {}\n", mark.display());
    scratch.task("A hook of its own", &writes("scripts/lib.sh", &evil), &[]);
    scratch.task("A remark", &writes("scripts/notify.sh", "#!/bin/sh\n# a remark\n. scripts/lib.sh\n"), &[]);
    scratch.task("Something else", &writes("scripts/other.sh", "true\n"), &[]);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T3"), "done", "{}", scratch.why("T3"));
    for task in ["T1", "T2"] {
        assert_eq!(scratch.status(task), "review", "{}", scratch.why(task));
        assert!(scratch.why(task).contains("hooks.pre-start"), "{}", scratch.why(task));
    }
    assert!(!mark.exists(), "nothing of it ran");
    scratch.landfall(&["review", "T2", "approve"]).ok();
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T2"), "done", "{}", scratch.why("T2"));
    assert!(!mark.exists());
    // What was approved is trusted, the script that landed included.
    let report = scratch.landfall(&["--json", "trust"]).json();
    assert_eq!(report["trusted"], true, "{report}");
}

#[test]
fn two_approved_changes_of_scripts_are_trusted_together() {
    let lib = "one() {\n  true\n}\n\n# Between them.\n\ntwo() {\n  true\n}\n";
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file("scripts/before.sh", "#!/bin/sh\n. scripts/lib.sh\n");
    scratch.file("scripts/after.sh", "#!/bin/sh\ntrue\n");
    scratch.file("scripts/lib.sh", lib);
    scratch.commit("scripts");
    scratch.more_settings(
        "[hooks]\npre-start = \"sh scripts/before.sh\"\npost-merge = \"sh scripts/after.sh\"\n",
    );
    let mark = marked_by(&scratch);
    let writes = |path: &str, text: &str| {
        format!("signal = \"complete\"\n[[write]]\npath = \"{path}\"\ntext = {text:?}\n")
    };
    let first = lib.replacen("  true", "  echo one", 1);
    let second = lib.replace("two() {\n  true", "two() {\n  echo two");
    scratch.task("One function", &writes("scripts/lib.sh", &first), &[]);
    scratch.task("The other function", &writes("scripts/lib.sh", &second), &[]);
    let after = format!("#!/bin/sh\necho \"$LANDFALL_TASK\" >> {}\n", mark.display());
    scratch.task("Another script", &writes("scripts/after.sh", &after), &[]);
    scratch.landfall(&["run"]);
    // The second change of the same file may be shown again on the newer base.
    for _ in 0..3 {
        let waiting: Vec<&str> =
            ["T1", "T2", "T3"].into_iter().filter(|task| scratch.status(task) == "review").collect();
        if waiting.is_empty() {
            break;
        }
        for task in waiting {
            scratch.landfall(&["review", task, "approve"]).ok();
        }
        let said = scratch.landfall(&["run"]);
        assert_ne!(said.code, Some(9), "{}", said.err);
    }
    for task in ["T1", "T2", "T3"] {
        assert_eq!(scratch.status(task), "done", "{}", scratch.why(task));
    }
    let merged = std::fs::read_to_string(scratch.project().join("scripts/lib.sh")).expect("published");
    assert!(merged.contains("echo one") && merged.contains("echo two"), "{merged}");
    let report = scratch.landfall(&["--json", "trust"]).json();
    assert_eq!(report["trusted"], true, "{report}");
    scratch.task("More", &writes("x.txt", "x\n"), &[]);
    assert_eq!(scratch.landfall(&["run"]).code, Some(0));
    let log = std::fs::read_to_string(&mark).expect("the hook of the merged state runs");
    assert!(log.lines().any(|line| line == "T4"), "{log}");
}

#[test]
fn a_script_that_came_without_a_review_is_not_trusted_with_the_work_that_calls_it() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file("scripts/notify.sh", "#!/bin/sh\ntrue\n");
    scratch.commit("scripts");
    scratch.more_settings("[hooks]\npost-merge = \"sh scripts/notify.sh\"\n");
    let mark = marked_by(&scratch);
    let writes = |path: &str, text: &str| {
        format!("signal = \"complete\"\n[[write]]\npath = \"{path}\"\ntext = {text:?}\n")
    };
    let evil = format!("touch {}\n", mark.display());
    scratch.task("Call it", &writes("scripts/notify.sh", "#!/bin/sh\n. scripts/new.sh\n"), &[]);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "review", "{}", scratch.why("T1"));
    scratch.task("Nothing calls this", &writes("scripts/new.sh", &evil), &[]);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T2"), "done", "{}", scratch.why("T2"));
    scratch.landfall(&["review", "T1", "approve"]).ok();
    scratch.landfall(&["run"]);
    scratch.task("More", &writes("x.txt", "x\n"), &[]);
    scratch.landfall(&["run"]);
    assert!(!mark.exists(), "nobody has seen it as a part of the hook");
    let report = scratch.landfall(&["--json", "trust"]).json();
    assert_eq!(report["trusted"], false, "{report}");
}

#[test]
fn a_script_that_an_update_changes_runs_only_after_it_is_trusted() {
    let mut scratch = ScratchProject::new(LANDFALL);
    scratch.trust_nothing();
    let mark = marked_by(&scratch);
    scratch.file("scripts/lib.sh", "echo $LANDFALL_TASK >> hook.log\n");
    scratch.file("scripts/notify.sh", "#!/bin/sh\n. scripts/lib.sh\n");
    scratch.file(".gitignore", "hook.log\n"); // a file that hooks write is none that they run
    scratch.commit("scripts");
    let hook = format!("sh {}/scripts/notify.sh", scratch.project().display());
    scratch.more_settings(&format!("[run]\nslots = 1\n[hooks]\npost-merge = \"{hook}\"\n"));
    let work =
        |name: &str| format!("signal = \"complete\"\n[[write]]\npath = \"{name}.txt\"\ntext = \"x\\n\"\n");
    trust(&scratch);
    let report = scratch.landfall(&["--json", "trust"]).json();
    assert_eq!(report["scripts"], serde_json::json!(["scripts/lib.sh", "scripts/notify.sh"]));
    scratch.task("One", &work("one"), &[]);
    scratch.landfall(&["run"]).ok();
    let log = || std::fs::read_to_string(scratch.project().join("hook.log")).expect("a log");
    assert_eq!(log(), "T1\n");
    // An update of the repository, as by `git pull`: the settings stay as they are.
    let evil = format!("touch {}\n", mark.display());
    scratch.file("scripts/lib.sh", &evil);
    scratch.commit("an update");
    scratch.task("Two", &work("two"), &[]);
    check_refused(&scratch.landfall(&["run"]), "scripts that they run have changed");
    assert!(scratch.landfall(&["trust"]).out.contains("scripts/lib.sh"));
    // The same while a run is under way: here the first hook makes the update.
    let update =
        format!("echo $LANDFALL_TASK >> hook.log\necho 'touch {}' > scripts/lib.sh\n", mark.display());
    scratch.file("scripts/lib.sh", &update);
    scratch.commit("the update comes later");
    trust(&scratch);
    scratch.task("Three", &work("three"), &[]);
    scratch.landfall(&["run"]); // the update is not committed, so publishing waits
    assert_eq!((scratch.status("T2"), scratch.status("T3")), ("done".to_owned(), "done".to_owned()));
    assert!(!mark.exists(), "nothing of it ran");
    assert_eq!(log().lines().count(), 2, "the second hook did not run");
    let hooks = std::fs::read_to_string(scratch.state().join("hooks.jsonl")).expect("a log");
    assert!(hooks.contains("has changed since you trusted it"), "{hooks}");
}

#[test]
fn issues_are_kept_in_the_project_unless_the_person_trusts_another_folder() {
    for folder in ["~/notes", "../notes"] {
        let scratch = hostile(&format!("[tracker]\nkind = \"local\"\nfolder = \"{folder}\"\n"));
        check_refused(&scratch.landfall(&["issue", "new", "x"]), "tracker.folder");
        trust(&scratch);
        scratch.landfall(&["issue", "new", "x"]).ok();
    }
    // A link says nothing in the settings.
    let scratch = hostile("[tracker]\nkind = \"local\"\nfolder = \".landfall/issues\"\n");
    let notes = scratch.root().join("home/notes");
    std::fs::create_dir_all(&notes).expect("ours");
    std::fs::create_dir_all(scratch.project().join(".landfall")).expect("ours");
    let link = scratch.project().join(".landfall/issues");
    std::os::unix::fs::symlink(&notes, &link).expect("ours");
    let said = scratch.landfall(&["issue", "new", "x"]);
    assert!(said.code != Some(0) && said.err.contains("out of the project"), "{}", said.err);
    assert_eq!(std::fs::read_dir(&notes).expect("it is there").count(), 0);
    std::fs::remove_file(&link).expect("ours");
    scratch.landfall(&["issue", "new", "x"]).ok();
}

#[test]
fn a_program_in_the_project_is_not_taken_for_an_agent_of_the_user() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut scratch = ScratchProject::new(LANDFALL);
    let mark = marked_by(&scratch);
    for program in ["claude", "codex", "gemini"] {
        scratch.file(program, &format!("#!/bin/sh\ntouch {}\n", mark.display()));
        let path = scratch.project().join(program);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("ours");
    }
    let path = std::env::var("PATH").expect("there is one");
    for relative in ["", "."] {
        scratch.set("PATH", &format!("{relative}:{path}"));
        scratch.landfall(&["agents"]).ok();
        scratch.landfall(&["doctor"]);
        assert!(!mark.exists(), "`{relative}`");
    }
}

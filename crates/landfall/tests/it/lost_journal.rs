//! The journal is gone or empty, or another one is in its place: it is noticed, and nothing of the old work is lost or taken
//! for that of new tasks.

use std::path::Path;

use landfall_testkit::ScratchProject;

use crate::LANDFALL;
use crate::sandbox::open;

/// A script that writes one file and says that it is complete.
fn writes(path: &str, text: &str) -> String {
    format!("signal = \"complete\"\n[[write]]\npath = {path:?}\ntext = \"{text}\\n\"\n")
}

/// A project in which T1 has landed and T2 was cancelled after its agent had worked.
fn worked() -> ScratchProject {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("Old one", &writes("old.txt", "old"), &[]);
    scratch.task(
        "Old two",
        "signal = \"blocked\"\ncommit = \"half\"\n[[write]]\npath = \"half.txt\"\ntext = \"half\\n\"\n",
        &[],
    );
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
    scratch
}

fn remove_journal(state: &Path) {
    for ending in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(state.join(format!("journal.db{ending}"))); // not every one is always there
    }
}

/// What is done to a state folder or a store.
type Damage = fn(&Path);

/// The ways in which a journal is lost.
fn ways() -> [(&'static str, Damage); 4] {
    [
        ("missing", remove_journal),
        ("empty", |state| {
            remove_journal(state);
            std::fs::write(state.join("journal.db"), b"").expect("an empty file");
        }),
        ("missing, with the id of the state folder", |state| {
            remove_journal(state);
            std::fs::remove_file(state.join("journal-id")).expect("it was there");
        }),
        ("missing, of an older version", |state| {
            remove_journal(state);
            std::fs::remove_file(state.join("journal-id")).expect("it was there");
            std::fs::remove_file(state.join("store.git/journal-id")).expect("it was there");
            for run in std::fs::read_dir(state.join("attempts")).expect("there").flatten() {
                let _ = std::fs::remove_file(run.path().join("journal-id")); // hooks have none
            }
        }),
    ]
}

#[test]
fn status_and_doctor_say_that_the_journal_is_lost_and_change_nothing() {
    for (way, lose) in ways() {
        let scratch = worked();
        lose(&scratch.state());
        let status = scratch.landfall(&["status"]).ok();
        let word = if way == "empty" { "is empty" } else { "is missing" };
        assert!(status.contains("journal") && status.contains(word), "{way}: {status}");
        let doctor = scratch.landfall(&["doctor"]);
        assert_ne!(doctor.code, Some(0), "{way}: {doctor:?}");
        assert!(doctor.out.contains("BAD   journal") && doctor.out.contains(word), "{way}: {}", doctor.out);
        for word in ["rm ", "delete", "reset", "clean"] {
            assert!(!doctor.out.contains(word), "{way}: `{word}` in {}", doctor.out);
        }
        assert!(scratch.state().join("attempts/T1-a1-i1").exists(), "{way}: looking changed nothing");
        assert!(!scratch.state().join("older").exists(), "{way}: looking changed nothing");
    }
}

#[test]
fn a_new_task_is_not_judged_by_the_run_of_an_older_journal() {
    for (way, lose) in ways() {
        let scratch = worked();
        lose(&scratch.state());
        assert_eq!(
            scratch.task("New one", &writes("new.txt", "new"), &[]),
            "T1",
            "{way}: numbers begin again"
        );
        scratch.landfall(&["run"]).ok();
        assert_eq!(scratch.status("T1"), "done", "{way}: {}", scratch.why("T1"));
        assert_eq!(scratch.git(&["show", "main:new.txt"]), "new", "{way}: it did its own work");
        assert_eq!(scratch.git(&["show", "main:old.txt"]), "old", "{way}: what landed before is still there");

        let older: Vec<_> =
            std::fs::read_dir(scratch.state().join("older")).expect("set aside").flatten().collect();
        assert_eq!(older.len(), 1, "{way}");
        for part in ["attempts/T1-a1-i1", "store.git/HEAD"] {
            assert!(older[0].path().join(part).exists(), "{way}: {part} is kept");
        }
        let status = scratch.landfall(&["status"]).ok();
        assert!(status.contains("an earlier journal was lost"), "{way}: {status}");
        assert_eq!(scratch.left_behind(), [], "{way}");
    }
}

#[test]
fn agents_of_a_lost_journal_are_ended_and_their_folders_kept() {
    let scratch = ScratchProject::new(LANDFALL);
    let begun = open(&scratch).join("begun");
    let script =
        format!("run = [\"sh\", \"-c\", \"echo half > half.txt; touch {}; sleep 600\"]", begun.display());
    scratch.task("Old", &script, &[]);
    let mut engine = scratch.start(&["run"]);
    scratch.eventually("the agent to work", || begun.exists());
    engine.kill();
    remove_journal(&scratch.state());
    scratch.task("New", &writes("new.txt", "new"), &[]);
    assert_eq!(scratch.left_behind(), [], "nobody works for a task that nobody knows");
    let older: Vec<_> =
        std::fs::read_dir(scratch.state().join("older")).expect("set aside").flatten().collect();
    let half = std::fs::read_to_string(older[0].path().join("workspaces/T1/half.txt"));
    assert_eq!(half.expect("it is kept"), "half\n");
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.git(&["ls-tree", "--name-only", "main", "half.txt", "new.txt"]), "new.txt");
}

#[test]
fn doctor_offers_the_work_of_a_lost_journal_as_branches() {
    let scratch = worked();
    // Work that a check has brought in and that did not land.
    let tree = scratch.store(&["rev-parse", "refs/landfall/base^{tree}"]).expect("a tree");
    let commit = std::process::Command::new("git")
        .args(["--git-dir", &scratch.state().join("store.git").display().to_string()])
        .args(["-c", "user.name=A", "-c", "user.email=a@example.invalid"])
        .args(["commit-tree", "-m", "Half of the work", &tree])
        .output()
        .expect("git runs");
    let commit = String::from_utf8(commit.stdout).expect("an id").trim().to_owned();
    scratch.store(&["update-ref", "refs/landfall/tasks/t2/a1", &commit]).expect("it is pinned");
    remove_journal(&scratch.state());

    let fetched = |story: &str| {
        let doctor = scratch.landfall(&["doctor"]).out;
        let line = doctor.lines().find(|line| line.contains("Half of the work")).map(str::to_owned);
        assert!(line.is_some(), "{story}: {doctor}");
        let hint =
            doctor.lines().skip_while(|line| !line.contains("Half of the work")).nth(1).expect("a hint");
        let command = hint.split('`').nth(1).expect("a command").to_owned();
        command.replace("recovered/", &format!("recovered/{story}-"))
    };
    let before = fetched("lost");
    scratch.task("New one", &writes("new.txt", "new"), &[]);
    let after = fetched("aside");
    for (story, command) in [("lost", before), ("aside", after)] {
        let words: Vec<String> = command.split(' ').map(|word| word.trim_matches('\'').to_owned()).collect();
        assert_eq!(words[..2], ["git".to_owned(), "fetch".to_owned()], "{story}: {command}");
        // The first was offered before the store was set aside, so only its refs are tried where they are now.
        if story == "aside" {
            let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
            scratch.git(&words);
            let name = scratch.git(&["for-each-ref", "--format=%(objectname)", "refs/heads/recovered"]);
            assert_eq!(name, commit, "{story}");
        }
    }
}

#[test]
fn a_new_task_is_not_judged_by_runs_that_an_older_copy_of_the_journal_does_not_know() {
    let scratch = ScratchProject::new(LANDFALL);
    let state = scratch.state();
    scratch.task("One", &writes("one.txt", "one"), &[]);
    scratch.landfall(&["run"]).ok();
    let copy = std::fs::read(state.join("journal.db")).expect("it ended in order: all is in this file");
    scratch.task("Lost", &writes("lost.txt", "lost"), &[]);
    scratch.landfall(&["run"]).ok();
    remove_journal(&state);
    std::fs::write(state.join("journal.db"), copy).expect("put back");

    let status = scratch.landfall(&["status"]).ok();
    assert!(status.contains("is an older copy"), "{status}");
    let doctor = scratch.landfall(&["doctor"]);
    assert_ne!(doctor.code, Some(0), "{doctor:?}");
    assert!(
        doctor.out.contains("BAD   journal") && doctor.out.contains("is an older copy"),
        "{}",
        doctor.out
    );
    assert!(state.join("attempts/T2-a1-i1").exists(), "looking changed nothing");

    assert_eq!(scratch.task("New", &writes("new.txt", "new"), &[]), "T2");
    let older: Vec<_> = std::fs::read_dir(state.join("older")).expect("set aside").flatten().collect();
    assert_eq!(older.len(), 1);
    for part in ["attempts/T2-a1-i1", "store.git/refs/landfall/tasks/t2/a2", "store.git/HEAD"] {
        assert!(older[0].path().join(part).exists(), "{part} is kept");
    }
    let refs = scratch.store(&["for-each-ref", "--format=%(refname)"]).expect("git lists them");
    assert!(refs.contains("/t1/") && !refs.contains("/t2/"), "{refs}");
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T2"), "done", "{}", scratch.why("T2"));
    assert_eq!(scratch.facts("T2", "iteration-ended").len(), 1, "one run of its own was enough");
    for file in ["one", "lost", "new"] {
        assert_eq!(scratch.git(&["show", &format!("main:{file}.txt")]), file);
    }
    let status = scratch.landfall(&["status"]).ok();
    assert!(status.contains("or the end of one") && !status.contains("older copy"), "{status}");
    assert_eq!(
        std::fs::read_dir(state.join("older")).expect("there").count(),
        1,
        "nothing more was set aside"
    );
}

#[test]
fn a_kill_at_any_moment_leaves_a_journal_that_is_not_taken_for_an_older_copy() {
    let scratch = ScratchProject::new(LANDFALL);
    let begun = open(&scratch).join("begun");
    let script = format!("run = [\"sh\", \"-c\", \"touch {}; sleep 600\"]", begun.display());
    scratch.task("Slow", &script, &[]);
    let mut engine = scratch.start(&["run"]);
    scratch.eventually("the agent to work", || begun.exists());
    engine.kill();
    let head = std::fs::read_to_string(scratch.state().join("journal-head")).expect("noted");
    // What a power cut may leave of the note says nothing.
    for note in [head.as_str(), "", "12", "12:", "\0\0\0\0"] {
        std::fs::write(scratch.state().join("journal-head"), note).expect("written");
        let status = scratch.landfall(&["status"]).ok();
        assert!(!status.contains("journal"), "{note:?}: {status}");
    }
    scratch.landfall(&["cancel", "T1"]).ok();
    assert!(!scratch.state().join("older").exists(), "nothing was set aside");
}

#[test]
fn a_state_folder_of_an_older_version_takes_over_the_id_of_its_journal() {
    let scratch = worked();
    let state = scratch.state();
    for place in [&state, &state.join("store.git")] {
        std::fs::remove_file(place.join("journal-id")).expect("it was there");
    }
    let journal = rusqlite::Connection::open(state.join("journal.db")).expect("it opens");
    journal.execute("DELETE FROM meta WHERE key = 'journal_id'", []).expect("it has one");
    drop(journal);
    for run in std::fs::read_dir(state.join("attempts")).expect("there").flatten() {
        let _ = std::fs::remove_file(run.path().join("journal-id")); // hooks have none
    }
    let status = scratch.landfall(&["status"]).ok();
    assert!(!status.contains("journal"), "nothing is wrong with it: {status}");
    scratch.task("More", &writes("more.txt", "more"), &[]);
    scratch.landfall(&["run", "T3"]).ok();
    assert_eq!(scratch.status("T1"), "done", "the journal is the same");
    assert_eq!(scratch.status("T3"), "done", "{}", scratch.why("T3"));
    assert!(!state.join("older").exists(), "nothing was set aside");
    let id = std::fs::read_to_string(state.join("journal-id")).expect("it has one now");
    assert_eq!(std::fs::read_to_string(state.join("store.git/journal-id")).expect("so has the store"), id);
    assert_eq!(
        std::fs::read_to_string(state.join("attempts/T3-a1-i1/journal-id")).expect("and the new run"),
        id
    );
}

#[test]
fn a_journal_of_other_state_is_refused_and_nothing_changes() {
    let (one, other) = (worked(), worked());
    remove_journal(&one.state());
    std::fs::copy(other.state().join("journal.db"), one.state().join("journal.db")).expect("copied");
    let refused = one.landfall(&["add", "More"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(refused.err.contains("does not belong to the state folder"), "{}", refused.err);
    assert!(!one.state().join("older").exists(), "nothing was set aside");
    assert!(one.state().join("attempts/T1-a1-i1").exists(), "nothing was moved");
}

#[test]
fn a_run_folder_of_another_journal_is_never_read() {
    let scratch = worked();
    // As if somebody had put a folder back from a backup of an older state.
    let old = scratch.state().join("attempts/T1-a1-i1");
    let next = scratch.state().join("attempts/T3-a1-i1");
    std::fs::create_dir(&next).expect("made");
    for file in std::fs::read_dir(&old).expect("there").flatten() {
        if file.file_type().is_ok_and(|kind| kind.is_file()) {
            std::fs::copy(file.path(), next.join(file.file_name())).expect("copied");
        }
    }
    std::fs::write(next.join("journal-id"), format!("{}\n", "0".repeat(32))).expect("written");
    scratch.task("Third", &writes("third.txt", "third"), &[]);
    scratch.landfall(&["run", "T3"]).ok();
    assert_eq!(scratch.status("T3"), "done", "{}", scratch.why("T3"));
    assert_eq!(scratch.git(&["show", "main:third.txt"]), "third", "its own agent ran");
    assert!(scratch.state().join("older/000000000000-runs/T3-a1-i1.1").exists(), "the other one is kept");
}

#[test]
fn a_store_that_lost_its_refs_takes_the_base_from_the_journal() {
    let table: [(&str, Damage); 4] = [
        ("no refs", |store| std::fs::remove_dir_all(store.join("refs")).expect("removed")),
        ("empty base", |store| std::fs::write(store.join("refs/landfall/base"), b"").expect("emptied")),
        ("empty HEAD and config", |store| {
            for file in ["HEAD", "config"] {
                std::fs::write(store.join(file), b"").expect("emptied");
            }
        }),
        ("no HEAD", |store| std::fs::remove_file(store.join("HEAD")).expect("removed")),
    ];
    for (story, damage) in table {
        let scratch = worked();
        let base = scratch.store(&["rev-parse", "refs/landfall/base"]).expect("a base");
        damage(&scratch.state().join("store.git"));
        let doctor = scratch.landfall(&["doctor"]).out;
        assert!(doctor.contains("BAD   store"), "{story}: {doctor}");
        scratch.task("More", &writes("more.txt", "more"), &[]);
        assert_eq!(
            scratch.store(&["rev-parse", "refs/landfall/base"]),
            Some(base),
            "{story}: as the journal says"
        );
        scratch.landfall(&["run", "T3"]).ok();
        assert_eq!(scratch.status("T3"), "done", "{story}: {}", scratch.why("T3"));
        assert_eq!(scratch.git(&["show", "main:old.txt"]), "old", "{story}");
        let doctor = scratch.landfall(&["doctor"]).out;
        assert!(doctor.contains("ok    store") && doctor.contains("store: repaired"), "{story}: {doctor}");
    }
}

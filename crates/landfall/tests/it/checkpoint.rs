//! Checkpoints from outside: going back shows what is lost, asks, and loses nothing.

use landfall_testkit::ScratchProject;

use crate::LANDFALL;
use crate::autopilot::writes;

#[test]
fn going_back_shows_what_is_lost_and_is_landed_like_any_other_change() {
    let scratch = ScratchProject::new(LANDFALL);
    let made = scratch.landfall(&["--json", "checkpoint", "create", "before"]).json();
    assert_eq!(made["commit"], scratch.git(&["rev-parse", "main"]), "before anything ran");
    scratch.task("First", &writes("b.txt"), &[]);
    scratch.task("Second", &writes("c.txt"), &["--needs", "T1"]);
    scratch.landfall(&["run"]).ok();
    let tip = scratch.git(&["rev-parse", "main"]);

    let said = scratch.landfall(&["checkpoint", "restore", "before"]);
    assert_eq!(said.code, Some(9), "nobody is there to ask: {said:?}");
    let commit = scratch.detail("T2")["landed"].as_str().expect("it landed")[..10].to_owned();
    for word in ["T1", "First", "T2", "Second", &commit, "nothing was done"] {
        assert!(said.err.contains(word), "{word}: {}", said.err);
    }
    assert!(
        scratch.landfall(&["--json", "list"]).json()["tasks"].as_array().is_some_and(|all| all.len() == 2)
    );

    let said = scratch.landfall(&["--json", "checkpoint", "restore", "before", "--yes"]).json();
    assert_eq!((said["task"].as_str(), said["lost"].as_array().map(Vec::len)), (Some("T3"), Some(2)));
    scratch.landfall(&["run"]).ok();
    assert!(!scratch.project().join("b.txt").exists() && !scratch.project().join("c.txt").exists());
    assert_eq!(scratch.git(&["rev-parse", "main^1"]), tip, "what landed stays in the history");
    let list = scratch.landfall(&["checkpoint"]).ok();
    assert!(list.contains("before") && list.contains("you made it"), "{list}");
}

#[test]
fn what_is_not_there_cannot_be_gone_back_to() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.landfall(&["checkpoint", "create", "here"]).ok();
    let twice = scratch.landfall(&["checkpoint", "create", "here"]);
    assert!(twice.code == Some(2) && twice.err.contains("already"), "{twice:?}");
    let near = scratch.landfall(&["checkpoint", "restore", "heer", "--yes"]);
    assert!(near.code == Some(5) && near.err.contains("did you mean `here`?"), "{near:?}");
    let same = scratch.landfall(&["checkpoint", "restore", "here", "--yes"]);
    assert!(same.code == Some(6) && same.err.contains("nothing has landed since"), "{same:?}");
    assert_eq!(scratch.landfall(&["checkpoint", "create", "../x"]).code, Some(2));
    assert_eq!(scratch.landfall(&["checkpoint", "delete", "heer"]).code, Some(5));
    scratch.landfall(&["checkpoint", "delete", "here"]).ok();
    assert!(scratch.landfall(&["checkpoint", "list"]).ok().contains("no checkpoint is kept"));
}

#[test]
fn old_checkpoints_go_but_never_the_latest_nor_a_persons() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[run]\nslots = 1");
    scratch.landfall(&["checkpoint", "create", "mine"]).ok();
    // One before each sprint.
    for number in 1..=5 {
        scratch.task(&format!("Task {number}"), &writes(&format!("{number}.txt")), &[]);
        scratch.landfall(&["sprint", "start", "--no-ready"]).ok();
    }
    let names = || -> Vec<String> {
        let list = scratch.landfall(&["--json", "checkpoint"]).json()["checkpoints"].clone();
        let list = list.as_array().expect("a list").clone();
        list.iter().map(|it| it["name"].as_str().expect("a name").to_owned()).collect()
    };
    let all = names();
    assert!(all.len() > 4, "{all:?}");
    let usage = scratch.landfall(&["checkpoint", "cleanup"]);
    assert_eq!(usage.code, Some(2), "it is to be said what may go: {usage:?}");
    assert!(
        scratch.landfall(&["checkpoint", "cleanup", "--older-than", "7d"]).ok().contains("nothing to let go")
    );
    scratch.landfall(&["checkpoint", "cleanup", "--keep", "1"]).ok();
    let left = names();
    assert_eq!(left.len(), 4, "{left:?}");
    assert_eq!(left[..3], all[..3], "the latest three");
    assert_eq!(left[3], "mine");
}

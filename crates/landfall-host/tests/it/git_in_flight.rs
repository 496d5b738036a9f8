//! Work under way: trial merges of branches that only their workspaces have, and what a workspace has changed.

use std::os::unix::fs::symlink;
use std::path::Path;

use landfall_host::git::{CollectError, ConflictKind, Oid, TrialMerge, WorkInProgress, Workspace};

use crate::git_scene::{Scene, git, snapshot, write};

fn commit(ws: &Workspace, path: &str, content: &str) -> Oid {
    write(ws.path(), path, content);
    git(ws.path(), ["add", "-A"]);
    git(ws.path(), ["commit", "-q", "-m", "under way"]);
    git(ws.path(), ["rev-parse", "HEAD"]).parse().expect("an id")
}

fn trial(scene: &Scene, ours: &Workspace, theirs: &Workspace) -> Result<TrialMerge, CollectError> {
    scene.store.trial_merge(WorkInProgress::Workspace(ours), WorkInProgress::Workspace(theirs))
}

fn conflicts(trial: TrialMerge) -> Vec<(String, ConflictKind, u32)> {
    match trial {
        TrialMerge::Clean => Vec::new(),
        TrialMerge::Conflict { paths } => paths
            .into_iter()
            .map(|it| (String::from_utf8_lossy(&it.path).into_owned(), it.kind, it.lines))
            .collect(),
    }
}

fn names(paths: Vec<Vec<u8>>) -> Vec<String> {
    paths.into_iter().map(|path| String::from_utf8(path).expect("text")).collect()
}

/// Whether a path below the store is as it was; the object reader and the like leave nothing behind.
fn unchanged<T>(folder: &Path, look: impl FnOnce() -> T) -> T {
    let before = snapshot(folder);
    let found = look();
    assert!(snapshot(folder) == before, "`{}` is not as it was", folder.display());
    found
}

#[test]
fn branches_that_only_their_workspaces_have_are_merged_and_nothing_is_kept() {
    let scene = Scene::new();
    let [one, two, three] = ["T1", "T2", "T3"].map(|task| scene.prepare(task));
    let head = commit(&one, "a.txt", "one\nTWO\nthree\n");
    commit(&two, "a.txt", "one\n2\nthree\n");
    commit(&three, "dir/b.txt", "B\n");
    git(three.path(), ["gc", "-q"]); // its objects are in a pack now
    let workspaces = scene.pool.dir().to_owned();
    let store = scene.store.clone();
    std::fs::create_dir_all(store.dir().join("scratch")).expect("made");
    let found = unchanged(&workspaces, || {
        unchanged(store.dir(), || {
            let clash = conflicts(trial(&scene, &one, &two).expect("whole"));
            assert_eq!(trial(&scene, &one, &three).expect("whole"), TrialMerge::Clean);
            assert_eq!(trial(&scene, &three, &two).expect("whole"), TrialMerge::Clean);
            clash
        })
    });
    assert_eq!(found, [("a.txt".to_owned(), ConflictKind::Content, 1)]);
    assert!(!scene.store.contains(&head).expect("read"), "the store has not taken it in");

    // One that is in the store, and one that is not.
    let collected = scene.collect(&one).head;
    let mixed = scene.store.trial_merge(WorkInProgress::Commit(&collected), WorkInProgress::Workspace(&two));
    assert_eq!(conflicts(mixed.expect("whole")).len(), 1);
    let base = scene.store.trial_merge(WorkInProgress::Commit(&scene.base), WorkInProgress::Workspace(&two));
    assert_eq!(base.expect("whole"), TrialMerge::Clean);
    let missing: Oid = "1".repeat(40).parse().expect("an id");
    assert!(matches!(
        scene.store.trial_merge(WorkInProgress::Commit(&missing), WorkInProgress::Workspace(&two)),
        Err(CollectError::Git(_))
    ));
}

#[test]
fn a_hostile_workspace_gives_no_answer_and_runs_nothing() {
    let scene = Scene::new();
    let mark = scene.temp.path().join("ran");
    let good = scene.prepare("T1");
    commit(&good, "a.txt", "good\n");
    let touch = format!("touch {}", mark.display());

    // Settings and drivers of its own are not read.
    let bad = scene.prepare("T2");
    for key in ["merge.evil.driver", "core.fsmonitor", "core.sshCommand", "diff.external"] {
        git(bad.path(), ["config", key, &touch]);
    }
    write(bad.path(), ".gitattributes", "* merge=evil\n");
    git(bad.path(), ["-c", "core.fsmonitor=false", "add", "-A"]);
    git(bad.path(), ["-c", "core.fsmonitor=false", "commit", "-q", "-m", "evil"]);
    git(bad.path(), ["config", "--unset", "core.fsmonitor"]);
    commit(&bad, "a.txt", "bad\n");
    let _ = std::fs::remove_file(&mark); // the agent may run what it likes
    assert_eq!(conflicts(trial(&scene, &good, &bad).expect("whole")).len(), 1);
    assert!(!mark.exists());

    // Objects that are elsewhere, by an alternate or a link, are not there.
    let elsewhere = scene.prepare("T3");
    commit(&elsewhere, "a.txt", "elsewhere\n");
    let outside = scene.temp.path().join("outside");
    std::fs::rename(elsewhere.path().join(".git/objects"), &outside).expect("moved");
    std::fs::create_dir_all(elsewhere.path().join(".git/objects/info")).expect("made");
    let alternates = format!("{}\n", outside.display());
    std::fs::write(elsewhere.path().join(".git/objects/info/alternates"), alternates).expect("written");
    let found = trial(&scene, &good, &elsewhere);
    assert!(matches!(found, Err(CollectError::Broken { .. })), "{found:?}");
    std::fs::remove_dir_all(elsewhere.path().join(".git/objects")).expect("removed");
    symlink(&outside, elsewhere.path().join(".git/objects")).expect("linked");
    let found = trial(&scene, &good, &elsewhere);
    assert!(matches!(found, Err(CollectError::Broken { .. })), "{found:?}");

    // A HEAD that says nothing, and a folder that is no more.
    write(elsewhere.path(), ".git/HEAD", "ref: ../../etc/passwd\n");
    let found = trial(&scene, &good, &elsewhere);
    assert!(matches!(found, Err(CollectError::HeadUnreadable { .. })), "{found:?}");
    std::fs::remove_dir_all(elsewhere.path()).expect("removed");
    assert!(matches!(trial(&scene, &good, &elsewhere), Err(CollectError::WorkspaceGone)));
    assert!(matches!(scene.store.changed_paths(&elsewhere), Err(CollectError::WorkspaceGone)));
    let scratch = scene.store.dir().join("scratch");
    assert!(snapshot(&scratch).is_empty(), "{:?}", snapshot(&scratch));
}

#[test]
fn what_changed_since_the_base_is_seen_committed_or_not() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    let changed = || names(scene.store.changed_paths(&ws).expect("seen"));
    assert!(changed().is_empty());
    commit(&ws, "committed.txt", "x\n");
    commit(&ws, "a.txt", "changed\n");
    commit(&ws, "there and back.txt", "x\n");
    std::fs::remove_file(ws.path().join("there and back.txt")).expect("removed");
    write(ws.path(), "loose.txt", "x\n");
    write(ws.path(), "target/ignored", "x\n");
    write(ws.path(), "noise.log", "x\n");
    std::fs::remove_file(ws.path().join("dir/b.txt")).expect("removed");
    write(ws.path(), "dir/deep/c.txt", "c\n"); // written anew, the same
    let all = ["a.txt", "committed.txt", "dir/b.txt", "loose.txt"];
    let before = snapshot(ws.path());
    assert_eq!(unchanged(&ws.path().join(".git"), changed), all);
    assert_eq!(snapshot(ws.path()), before);

    // The room's index stands for another tree after a collection, and for none after a crash.
    scene.collect(&ws);
    assert_eq!(changed(), all);
    write(ws.path(), "a.txt", "one\ntwo\nthree\n");
    assert_eq!(changed(), all[1..], "as it was in the base");
    std::fs::remove_file(scene.pool.dir().join(".engine/rooms/T1/tree")).expect("removed");
    assert_eq!(changed(), all[1..]);
    assert_eq!(scene.collect(&ws).changed_paths_count, 3);
}

#[test]
fn looking_does_not_follow_links_or_obey_the_workspace() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    let outside = scene.temp.path().join("outside");
    write(&outside, "b.txt", "outside\n");
    std::fs::remove_dir_all(ws.path().join("dir")).expect("removed");
    symlink(&outside, ws.path().join("dir")).expect("linked");
    let mark = scene.temp.path().join("ran");
    git(ws.path(), ["config", "core.fsmonitor", &format!("touch {}", mark.display())]);
    git(ws.path(), ["config", "filter.evil.clean", &format!("touch {}", mark.display())]);
    write(ws.path(), ".gitattributes", "* filter=evil\n");
    write(ws.path(), "a.txt", "changed\n");
    write(ws.path(), "nested/.git/HEAD", "ref: refs/heads/main\n");
    for folder in ["objects", "refs"] {
        std::fs::create_dir_all(ws.path().join("nested/.git").join(folder)).expect("made");
    }
    write(ws.path(), "nested/file", "x\n");
    let found = names(scene.store.changed_paths(&ws).expect("seen"));
    assert_eq!(found, [".gitattributes", "a.txt", "dir", "dir/b.txt", "dir/deep/c.txt", "nested"]);
    assert!(!mark.exists(), "nothing of theirs ran");
}

#[test]
fn a_crash_in_a_look_is_healed() {
    let scene = Scene::new();
    write(scene.store.dir(), "scratch/1-1/trial.git/objects/xx", "left behind");
    scene.store.heal_locks().expect("healed");
    assert!(!scene.store.dir().join("scratch").exists());
    let [one, two] = ["T1", "T2"].map(|task| scene.prepare(task));
    assert_eq!(trial(&scene, &one, &two).expect("whole"), TrialMerge::Clean);
}

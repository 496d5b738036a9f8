//! The store: importing, refs, merging, committing, checking a landing.

use std::os::unix::ffi::OsStrExt as _;

use landfall_host::git::{
    BranchName, Cas, Change, CollectError, DiffOptions, Git, GitErrorKind, Head, LandingClaim,
    LandingMismatch, LogRange, Merge, ObjectFormat, Oid, RefName, Repo, RepoProblem, Store,
};

use crate::git_scene::{Scene, git, init, main_branch, options, read, sig, snapshot, write};

fn name(text: &str) -> RefName {
    RefName::new(text).expect("a fine name")
}

#[test]
fn a_task_goes_from_import_to_landing() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    assert_eq!(snapshot(ws.path()), snapshot(&scene.root()));
    write(ws.path(), "a.txt", "one\n2\nthree\n");
    write(ws.path(), "new.txt", "new\n");
    git(ws.path(), ["add", "-A"]);
    git(ws.path(), ["commit", "-q", "-m", "agent's work"]);
    let collected = scene.collect(&ws);
    assert_eq!((collected.commits, collected.leftovers, collected.descends), (1, false, true));
    assert_eq!(collected.changed_paths_count, 2);
    assert_eq!(scene.store.workspace_head(&ws).as_ref(), Some(&collected.head));

    let Merge::Clean { tree } = scene.store.merge(&scene.base, &collected.head).expect("git runs") else {
        panic!("a conflict")
    };
    let parents = [scene.base.clone(), collected.head.clone()];
    let landed = scene.store.commit(&tree, &parents, "land T1", &sig(), &sig()).expect("commits");
    assert_eq!(scene.store.set_base(&landed, Some(&scene.base)).expect("git runs"), Cas::Moved);
    let claim = LandingClaim {
        landed: landed.clone(),
        base_before: scene.base.clone(),
        candidate_head: collected.head.clone(),
        tree: tree.clone(),
    };
    let proof = scene.store.check_landing(&claim).expect("it agrees");
    assert_eq!((proof.tree, proof.changed_paths_count), (tree, 2));
    assert_eq!(scene.store.base().expect("readable"), Some(landed));
    assert!(scene.store.fsck().expect("git runs").problems.is_empty());
}

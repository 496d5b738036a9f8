//! Publishing to the person's repository: when it moves, and when the person wins.

use std::path::Path;

use landfall_host::git::{
    BranchName, CheckoutHead, HeldReason, Oid, PublishMethod, PublishMode, PublishOutcome, Repo,
};

use crate::git_scene::{Scene, git, init, main_branch, read, sig, snapshot, try_git, write};

/// A scene in which a task has landed in the store: `a.txt` changed, `new/file.txt` added, `dir/b.txt` removed.
fn landed() -> (Scene, Oid) {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    write(ws.path(), "a.txt", "landed\n");
    write(ws.path(), "new/file.txt", "new\n");
    std::fs::remove_file(ws.path().join("dir/b.txt")).expect("removed");
    let landed = scene.land(&scene.collect(&ws).head);
    (scene, landed)
}

fn publish(scene: &Scene, new: &Oid) -> PublishOutcome {
    let mode = PublishMode::Local;
    scene
        .store
        .publish_branch(&scene.repo, &main_branch(), new, &scene.base, &mode, &sig())
        .expect("git runs")
}

fn tip(root: &Path) -> String {
    git(root, ["rev-parse", "refs/heads/main"])
}

#[test]
fn a_clean_checkout_moves_with_its_branch() {
    let (scene, landed) = landed();
    let root = scene.root();
    write(&root, "untracked.txt", "mine");
    write(&root, "target/built", "mine");
    let done = publish(&scene, &landed);
    assert_eq!(
        done,
        PublishOutcome::Done(PublishMethod::Checkout { path: root.canonicalize().expect("there") })
    );
    assert_eq!(tip(&root), landed.as_str());
    assert_eq!(git(&root, ["status", "--porcelain"]), "?? untracked.txt");
    assert_eq!(
        (read(&root, "a.txt"), read(&root, "new/file.txt")),
        ("landed\n".to_owned(), "new\n".to_owned())
    );
    assert!(!root.join("dir/b.txt").exists() && root.join("target/built").exists());
    assert!(git(&root, ["reflog", "-1", "main"]).contains("landfall: land verified work"));
    assert!(git(&root, ["reflog", "-1"]).contains("landfall: land verified work"));
    assert_eq!(publish(&scene, &landed), PublishOutcome::Already);
    assert_eq!(git(&root, ["fsck", "--connectivity-only"]), "");
    assert_eq!(
        git(&root, ["for-each-ref", "--format=%(refname)"]),
        "refs/heads/main",
        "no ref of ours is left"
    );
}

#[test]
fn a_branch_that_is_not_checked_out_moves_alone() {
    let (scene, landed) = landed();
    git(&scene.root(), ["checkout", "-q", "-b", "other"]);
    write(&scene.root(), "a.txt", "my own work");
    let before = snapshot(&scene.root());
    assert_eq!(publish(&scene, &landed), PublishOutcome::Done(PublishMethod::Ref));
    assert_eq!(tip(&scene.root()), landed.as_str());
    assert_eq!(snapshot(&scene.root()), before);
}

#[test]
fn a_checkout_on_another_name_of_the_branch_moves_with_it() {
    type Alias = fn(&Path);
    let cases: [(&str, Alias); 2] = [
        ("a symbolic ref", |root| {
            git(root, ["symbolic-ref", "refs/heads/master", "refs/heads/main"]);
        }),
        ("a link, as git wrote it long ago", |root| {
            std::os::unix::fs::symlink("refs/heads/main", root.join(".git/refs/heads/master")).expect("made");
        }),
    ];
    for (case, make_alias) in cases {
        let (scene, landed) = landed();
        let root = scene.root();
        make_alias(&root);
        git(&root, ["symbolic-ref", "HEAD", "refs/heads/master"]);
        let head = CheckoutHead::Branch { name: main_branch(), tip: scene.base.clone() };
        assert_eq!(scene.repo.read_head().expect("git runs"), head, "{case}");
        let done = publish(&scene, &landed);
        let path = root.canonicalize().expect("there");
        assert_eq!(done, PublishOutcome::Done(PublishMethod::Checkout { path }), "{case}");
        assert_eq!(git(&root, ["status", "--porcelain"]), "", "{case}: a commit of the user would undo it");
        assert_eq!(tip(&root), landed.as_str(), "{case}");
        assert_eq!(git(&root, ["symbolic-ref", "refs/heads/master"]), "refs/heads/main", "{case}");
    }
}

#[test]
fn changes_of_the_person_hold_everything_back() {
    type Change = fn(&Path);
    let cases: [(&str, Change); 6] = [
        ("edited", |root| write(root, "dir/deep/c.txt", "mine")),
        ("edited the same file", |root| write(root, "a.txt", "mine")),
        ("staged", |root| {
            write(root, "staged.txt", "mine");
            git(root, ["add", "staged.txt"]);
        }),
        ("removed", |root| std::fs::remove_file(root.join("dir/deep/c.txt")).expect("removed")),
        ("untracked in the way", |root| write(root, "new/file.txt", "mine")),
        ("an untracked file where a folder must be", |root| write(root, "new", "mine")),
    ];
    for (case, change) in cases {
        let (scene, landed) = landed();
        let root = scene.root();
        change(&root);
        let before = (snapshot(&root), git(&root, ["status", "--porcelain"]));
        match publish(&scene, &landed) {
            PublishOutcome::Held(HeldReason::Files { files, .. }) => assert_eq!(files.len(), 1, "{case}"),
            other => panic!("{case}: {other:?}"),
        }
        assert_eq!((snapshot(&root), git(&root, ["status", "--porcelain"])), before, "{case}");
        assert_eq!(tip(&root), scene.base.as_str(), "{case}");
        assert!(
            !root.join(".git/index.lock").exists() && !root.join(".git/refs/heads/main.lock").exists(),
            "{case}"
        );
    }
}

#[test]
fn changes_in_folders_beside_the_work_stay_and_hold_nothing_back() {
    let beside = |scene: &Scene, folder: &str, landed: &Oid| {
        let mode = PublishMode::Beside { folders: vec![folder.to_owned()] };
        scene
            .store
            .publish_branch(&scene.repo, &main_branch(), landed, &scene.base, &mode, &sig())
            .expect("git runs")
    };
    let (scene, ours) = landed();
    let root = scene.root();
    write(&root, "dir/deep/c.txt", "mine");
    assert!(
        matches!(beside(&scene, "dir/de", &ours), PublishOutcome::Held(_)),
        "another folder with such a name"
    );
    let done = beside(&scene, "dir/deep", &ours);
    assert!(matches!(done, PublishOutcome::Done(PublishMethod::Checkout { .. })), "{done:?}");
    assert_eq!(
        (read(&root, "a.txt"), read(&root, "dir/deep/c.txt")),
        ("landed\n".to_owned(), "mine".to_owned())
    );
    assert_eq!(git(&root, ["status", "--porcelain"]), " M dir/deep/c.txt");
    // What the landing changes itself, and what lies elsewhere, is the person's as ever.
    for (file, folder) in [("dir/b.txt", "dir"), ("a.txt", "dir")] {
        let (scene, landed) = landed();
        write(&scene.root(), file, "mine");
        write(&scene.root(), "dir/deep/c.txt", "mine");
        let held = beside(&scene, folder, &landed);
        assert!(matches!(held, PublishOutcome::Held(HeldReason::Files { .. })), "{file}: {held:?}");
        assert_eq!(read(&scene.root(), file), "mine");
    }
}

#[test]
fn a_human_commit_wins() {
    let (scene, landed) = landed();
    write(&scene.root(), "human.txt", "h");
    git(&scene.root(), ["add", "-A"]);
    git(&scene.root(), ["commit", "-q", "-m", "human"]);
    let to: Oid = tip(&scene.root()).parse().expect("an id");
    assert_eq!(publish(&scene, &landed), PublishOutcome::Held(HeldReason::Moved { to }));
    git(&scene.root(), ["checkout", "-q", "--detach"]);
    git(&scene.root(), ["branch", "-D", "main"]);
    assert_eq!(publish(&scene, &landed), PublishOutcome::Held(HeldReason::BranchMissing));
}

#[test]
fn an_operation_half_way_is_left_alone() {
    for sign in ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "BISECT_LOG", "index.lock"]
    {
        let (scene, landed) = landed();
        write(&scene.root(), &format!(".git/{sign}"), "");
        match publish(&scene, &landed) {
            PublishOutcome::Held(HeldReason::OperationInProgress { sign: seen, .. }) => {
                assert_eq!(seen, sign)
            }
            other => panic!("{sign}: {other:?}"),
        }
        assert_eq!(tip(&scene.root()), scene.base.as_str());
    }
    // During a rebase HEAD is off the branch, and the branch is put back at the end.
    let (scene, landed) = landed();
    git(&scene.root(), ["checkout", "-q", "--detach"]);
    write(&scene.root(), ".git/rebase-merge/head-name", "refs/heads/main\n");
    assert!(matches!(publish(&scene, &landed), PublishOutcome::Held(HeldReason::OperationInProgress { .. })));
}

#[test]
fn a_linked_worktree_that_shows_the_branch_moves_or_holds() {
    let (scene, landed) = landed();
    let linked = scene.temp.path().join("linked");
    git(&scene.root(), ["checkout", "-q", "-b", "other"]);
    git(&scene.root(), ["worktree", "add", "-q", "../linked", "main"]);
    write(&linked, "a.txt", "mine");
    assert!(
        matches!(publish(&scene, &landed), PublishOutcome::Held(HeldReason::Files { path, .. }) if path.ends_with("linked"))
    );
    git(&linked, ["checkout", "-q", "a.txt"]);
    assert!(
        matches!(publish(&scene, &landed), PublishOutcome::Done(PublishMethod::Checkout { path }) if path.ends_with("linked"))
    );
    assert_eq!(read(&linked, "a.txt"), "landed\n");
    assert_eq!(git(&linked, ["status", "--porcelain"]), "");
    assert_eq!(read(&scene.root(), "a.txt"), "one\ntwo\nthree\n", "the other checkout stays");

    let (scene, landed) = landed_again();
    git(&scene.root(), ["checkout", "-q", "-b", "other"]);
    git(&scene.root(), ["worktree", "add", "-q", "../linked", "main"]);
    std::fs::remove_dir_all(scene.temp.path().join("linked")).expect("removed");
    assert!(matches!(publish(&scene, &landed), PublishOutcome::Held(HeldReason::CheckedOutElsewhere { .. })));

    // Seen from a linked worktree as the project, the main checkout still counts.
    let (scene, landed) = landed_again();
    git(&scene.root(), ["worktree", "add", "-q", "../side", "-b", "side"]);
    let side = Repo::discover(&scene.git, &scene.temp.path().join("side")).expect("found");
    write(&scene.root(), "a.txt", "mine");
    let held =
        scene.store.publish_branch(&side, &main_branch(), &landed, &scene.base, &PublishMode::Local, &sig());
    assert!(matches!(held, Ok(PublishOutcome::Held(HeldReason::Files { .. }))), "{held:?}");
}

fn landed_again() -> (Scene, Oid) {
    landed()
}

#[test]
fn publishing_finishes_what_a_crash_cut_off() {
    // Files and index moved, the ref did not.
    let (scene, landed) = landed();
    let root = scene.root();
    let old = scene.base.as_str();
    git(&root, ["fetch", "-q", scene.store.dir().to_str().expect("text"), "refs/landfall/base"]);
    git(&root, ["read-tree", "-m", "-u", old, landed.as_str()]);
    assert!(matches!(publish(&scene, &landed), PublishOutcome::Done(PublishMethod::Checkout { .. })));
    assert_eq!(git(&root, ["status", "--porcelain"]), "");

    // Some files moved, the index did not.
    let (scene, landed) = landed_again();
    let root = scene.root();
    write(&root, "a.txt", "landed\n");
    write(&root, "new/file.txt", "new\n");
    assert!(matches!(publish(&scene, &landed), PublishOutcome::Done(PublishMethod::Checkout { .. })));
    assert_eq!(git(&root, ["status", "--porcelain"]), "");
    assert!(!root.join("dir/b.txt").exists());

    // Only a new file was written.
    let (scene, landed) = landed_again();
    write(&scene.root(), "new/file.txt", "new\n");
    assert!(matches!(publish(&scene, &landed), PublishOutcome::Done(PublishMethod::Checkout { .. })));

    // The same, but the person changed something meanwhile, in a file or in the index only.
    let (scene, landed) = landed_again();
    let root = scene.root();
    write(&root, "a.txt", "landed\n");
    write(&root, "dir/deep/c.txt", "mine\n");
    assert!(
        matches!(publish(&scene, &landed), PublishOutcome::Held(HeldReason::Files { files, .. }) if files.len() == 1 && files[0].path == b"dir/deep/c.txt")
    );
    let (scene, landed) = landed_again();
    let root = scene.root();
    write(&root, "a.txt", "staged by me\n");
    git(&root, ["add", "a.txt"]);
    write(&root, "a.txt", "landed\n");
    assert!(
        matches!(publish(&scene, &landed), PublishOutcome::Held(HeldReason::Files { files, .. }) if files.len() == 1 && files[0].path == b"a.txt")
    );
}

/// What keeps a landing on `main` in the user's repository until the branch leads to it.
const PIN: &str = "refs/landfall/publishing/1f5962a2ce9803c8";

#[test]
fn a_ref_that_a_crash_left_behind_is_removed_after_the_branch_has_moved() {
    let (scene, landed) = landed();
    let root = scene.root();
    assert!(matches!(publish(&scene, &landed), PublishOutcome::Done(_)));
    git(&root, ["update-ref", PIN, landed.as_str()]);
    git(&root, ["pack-refs", "--all"]);
    let other = "refs/landfall/publishing/0123456789abcdef"; // of an engine that publishes on another branch
    git(&root, ["update-ref", other, landed.as_str()]);
    scene.store.recover_publishing(&scene.repo, &main_branch()).expect("git runs");
    assert_eq!(git(&root, ["for-each-ref", "--format=%(refname)", "refs/landfall"]), other);
}

#[test]
fn a_ref_that_cannot_be_set_is_named() {
    let (scene, landed) = landed();
    git(&scene.root(), ["update-ref", "refs/landfall/publishing", scene.base.as_str()]);
    let mode = PublishMode::Local;
    let done = scene.store.publish_branch(&scene.repo, &main_branch(), &landed, &scene.base, &mode, &sig());
    let error = done.expect_err("a ref is in the way of ours").full_message();
    assert!(error.contains("refs/landfall/publishing") && !error.contains("git gc"), "{error}");
}

#[test]
fn only_a_git_gc_that_can_be_under_way_holds_publishing_back() {
    use std::time::{Duration, SystemTime};
    let host = rustix::system::uname().nodename().to_str().expect("text").to_owned();
    let alive = std::process::id();
    let dead = {
        let mut child = std::process::Command::new("true").spawn().expect("it starts");
        child.wait().expect("it ends");
        child.id()
    };
    const HOUR: u64 = 60 * 60;
    let table = [
        (format!("{alive} {host}"), HOUR, true, "it runs"),
        (format!("1 {host}"), HOUR, true, "it runs, perhaps as another user"),
        (format!("{dead} {host}"), HOUR, false, "it was killed"),
        (format!("{alive} {host}"), 13 * HOUR, false, "the id belongs to another process by now"),
        (format!("{alive} far-away"), HOUR, false, "the id is one of another machine"),
        (String::new(), HOUR, false, "nothing is in it"),
    ];
    for (text, age_s, holds, why) in table {
        let (scene, landed) = landed();
        let path = scene.root().join(".git/gc.pid");
        std::fs::write(&path, text).expect("ours");
        let written = SystemTime::now() - Duration::from_secs(age_s);
        let file = std::fs::File::options().write(true).open(&path).expect("ours");
        file.set_modified(written).expect("ours");
        let published = publish(&scene, &landed);
        let is_held = matches!(&published, PublishOutcome::Held(HeldReason::OperationInProgress { sign, .. }) if sign == "gc.pid");
        assert_eq!(is_held, holds, "{why}: {published:?}");
    }
}

#[test]
fn the_persons_own_filters_run_and_their_hooks_do_not() {
    let scene = Scene::with(|root| {
        write(root, ".gitattributes", "*.big filter=mine\n");
        write(root, "a.txt", "one\n");
    });
    let root = scene.root();
    git(&root, ["config", "filter.mine.smudge", "sed s/pointer/content/"]);
    git(&root, ["config", "filter.mine.clean", "sed s/content/pointer/"]);
    let canary = scene.temp.path().join("canary");
    for hook in
        ["post-checkout", "post-merge", "reference-transaction", "post-index-change", "pre-commit", "update"]
    {
        let path = root.join(".git/hooks").join(hook);
        write(&root, &format!(".git/hooks/{hook}"), format!("#!/bin/sh\ntouch '{}'\n", canary.display()));
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    }
    git(&root, ["config", "core.fsmonitor", &format!("touch '{}'; false", canary.display())]);
    let ws = scene.prepare("T1");
    write(ws.path(), "x.big", "pointer\n");
    let landed = scene.land(&scene.collect(&ws).head);
    assert!(matches!(publish(&scene, &landed), PublishOutcome::Done(_)));
    assert_eq!(read(&root, "x.big"), "content\n", "as their own checkout would give it");
    assert!(!canary.exists(), "no hook ran");
    assert_eq!(publish(&scene, &landed), PublishOutcome::Already);
    scene.store.import_branch(&scene.repo, &main_branch()).expect("works");
    scene.repo.read_head().expect("git runs");
    assert!(!canary.exists(), "no hook ran");
    git(&root, ["status"]);
    assert!(canary.exists(), "the canary is alive: plain git wakes it");
}

#[test]
fn a_push_goes_to_the_remote_and_never_forces() {
    let (scene, landed) = landed();
    let remote = scene.temp.path().join("remote.git");
    std::fs::create_dir(&remote).expect("made");
    git(&remote, ["init", "-q", "--bare", "-b", "main"]);
    git(&scene.root(), ["remote", "add", "origin", remote.to_str().expect("text")]);
    git(&scene.root(), ["push", "-q", "origin", "main"]);
    let push = |new: &Oid, name: &str| {
        let mode = PublishMode::Remote { name: name.to_owned() };
        scene.store.publish_branch(&scene.repo, &main_branch(), new, &scene.base, &mode, &sig())
    };
    assert_eq!(push(&landed, "origin").expect("git runs"), PublishOutcome::Done(PublishMethod::Pushed));
    assert_eq!(git(&remote, ["rev-parse", "main"]), landed.as_str());
    assert_eq!(push(&landed, "origin").expect("git runs"), PublishOutcome::Already);
    assert_eq!(tip(&scene.root()), scene.base.as_str(), "the local branch is the person's");

    let clone = scene.temp.path().join("clone");
    git(scene.temp.path(), ["clone", "-q", remote.to_str().expect("text"), "clone"]);
    git(&clone, ["config", "user.name", "x"]);
    git(&clone, ["config", "user.email", "x@x"]);
    git(&clone, ["commit", "-q", "--allow-empty", "-m", "human"]);
    git(&clone, ["push", "-q", "origin", "main"]);
    let tree = scene.store.tree_of(&landed).expect("read");
    let next = scene.store.create_commit(&tree, &[landed], "next", &sig(), &sig()).expect("commits");
    assert!(matches!(
        push(&next, "origin").expect("git runs"),
        PublishOutcome::Held(HeldReason::Remote { .. })
    ));
    for name in ["", "--force", "-f", "ext::sh -c id", "/tmp/x", "nowhere"] {
        let result = push(&next, name);
        assert!(matches!(result, Err(_) | Ok(PublishOutcome::Held(_))), "{name}: {result:?}");
    }
}

#[test]
fn odd_branch_names_are_only_names() {
    for branch in ["$(id>canary)", "`id`", "a;b", "ünïcode", "a'b\"c", "x\u{3000}y"] {
        let scene = Scene::new();
        git(&scene.root(), ["branch", branch]);
        let name = BranchName::new(branch).expect("git takes it");
        assert_eq!(scene.store.import_branch(&scene.repo, &name).expect("works"), scene.base);
        let ws = scene.prepare("T1");
        write(ws.path(), "x", "x");
        let landed = scene.land(&scene.collect(&ws).head);
        let done =
            scene.store.publish_branch(&scene.repo, &name, &landed, &scene.base, &PublishMode::Local, &sig());
        assert_eq!(done.expect("git runs"), PublishOutcome::Done(PublishMethod::Ref), "{branch}");
        assert_eq!(git(&scene.root(), ["rev-parse", &format!("refs/heads/{branch}")]), landed.as_str());
        assert!(!scene.root().join("canary").exists());
    }
}

#[test]
fn what_does_not_descend_is_not_published() {
    let (scene, landed) = landed();
    let tree = scene.store.tree_of(&landed).expect("read");
    let orphan = scene.store.create_commit(&tree, &[], "orphan", &sig(), &sig()).expect("commits");
    let refused = scene.store.publish_branch(
        &scene.repo,
        &main_branch(),
        &orphan,
        &scene.base,
        &PublishMode::Local,
        &sig(),
    );
    assert!(refused.is_err());
    assert_eq!(tip(&scene.root()), scene.base.as_str());
    // A repository inside the checkout does not disturb it.
    init(&scene.root().join("nested"));
    assert!(matches!(publish(&scene, &landed), PublishOutcome::Done(_)));
    assert!(try_git(&scene.root(), ["status"]).0);
}

#[test]
fn a_ref_that_a_power_cut_emptied_is_replaced() {
    let pin = "refs/landfall/publishing/1f5962a2ce9803c8"; // of `main`
    for damage in ["", "\0\0\0\0", "0000"] {
        let (scene, landed) = landed();
        let path = scene.root().join(".git").join(pin);
        std::fs::create_dir_all(path.parent().expect("below .git")).expect("ours");
        std::fs::write(&path, damage).expect("ours");
        std::fs::write(path.with_extension("lock"), "").expect("ours");
        assert!(matches!(publish(&scene, &landed), PublishOutcome::Done(_)), "{damage:?}");
        assert_eq!(
            git(&scene.root(), ["for-each-ref", "--format=%(refname)", "refs/landfall"]),
            "",
            "{damage:?}"
        );
        git(&scene.root(), ["fsck", "--strict"]);
    }
}

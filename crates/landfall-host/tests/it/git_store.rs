//! The store: importing, refs, merging, committing, checking a landing.

use std::os::unix::ffi::OsStrExt as _;

use landfall_host::git::{
    BranchName, CheckoutHead, CollectError, CompareAndSwap, DiffOptions, Git, GitErrorKind, LandingClaim,
    LandingMismatch, LogRange, MergeResult, ObjectFormat, Oid, RefName, Repo, RepoProblem, Store, TreeChange,
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

    let MergeResult::Clean { tree } =
        scene.store.merge_commits(&scene.base, &collected.head).expect("git runs")
    else {
        panic!("a conflict")
    };
    let parents = [scene.base.clone(), collected.head.clone()];
    let landed = scene.store.create_commit(&tree, &parents, "land T1", &sig(), &sig()).expect("commits");
    assert_eq!(scene.store.set_base(&landed, Some(&scene.base)).expect("git runs"), CompareAndSwap::Moved);
    let claim = LandingClaim {
        landed: landed.clone(),
        base_before: scene.base.clone(),
        candidate_heads: vec![collected.head.clone()],
        tree: tree.clone(),
    };
    let proof = scene.store.check_landing(&claim).expect("it agrees");
    assert_eq!((proof.tree, proof.changed_paths_count), (tree, 2));
    assert_eq!(scene.store.read_base().expect("readable"), Some(landed));
    assert!(scene.store.run_fsck().expect("git runs").problems.is_empty());
}

#[test]
fn a_repository_is_found_from_below_and_problems_have_names() {
    let temp = tempfile::tempdir().expect("a temp folder");
    let runner = Git::find_installed().expect("git is here");
    assert!(runner.version().starts_with(|c: char| c.is_ascii_digit()));
    let none = Repo::discover(&runner, temp.path());
    assert!(matches!(none, Err(RepoProblem::NotARepository { .. })), "{none:?}");

    let bare = temp.path().join("bare.git");
    std::fs::create_dir(&bare).expect("made");
    git(&bare, ["init", "-q", "--bare"]);
    assert!(matches!(Repo::discover(&runner, &bare), Err(RepoProblem::Bare { .. })));

    let root = temp.path().join("work");
    init(&root);
    let repo = Repo::discover(&runner, &root).expect("found");
    assert_eq!(repo.read_head().expect("git runs"), CheckoutHead::Unborn { branch: "main".to_owned() });
    write(&root, "sub/folder/x", "x");
    git(&root, ["add", "-A"]);
    git(&root, ["commit", "-q", "-m", "x"]);
    let repo = Repo::discover(&runner, &root.join("sub/folder")).expect("found from below");
    assert_eq!(repo.root(), root.canonicalize().expect("there"));
    let tip: Oid = git(&root, ["rev-parse", "HEAD"]).parse().expect("an id");
    assert_eq!(
        repo.read_head().expect("git runs"),
        CheckoutHead::Branch { name: main_branch(), tip: tip.clone() }
    );

    git(&root, ["pack-refs", "--all"]);
    assert_eq!(repo.branch_tip(&main_branch()).expect("git runs"), Some(tip.clone()));
    assert_eq!(repo.branch_tip(&BranchName::new("no").expect("fine")).expect("git runs"), None);
    let runs = runner.spawned_count();
    let head = CheckoutHead::Branch { name: main_branch(), tip: tip.clone() };
    assert_eq!(repo.read_head().expect("git runs"), head, "packed");
    assert_eq!(runner.spawned_count() - runs, 1, "for the packed ref; HEAD is read from its file");
    git(&root, ["checkout", "-q", "--detach"]);
    assert_eq!(repo.read_head().expect("git runs"), CheckoutHead::Detached { tip: tip.clone() });

    git(&root, ["worktree", "add", "-q", "../linked", "-b", "side"]);
    let linked = Repo::discover(&runner, &temp.path().join("linked")).expect("a linked worktree");
    assert_eq!(linked.common_dir(), repo.common_dir());
    assert_ne!(linked.git_dir(), repo.git_dir());
    let top = temp.path().canonicalize().expect("there");
    let all = [top.join("linked"), root.canonicalize().expect("there"), repo.common_dir().to_owned()];
    let all: std::collections::BTreeSet<_> = all.into_iter().collect();
    assert_eq!(linked.checkout_folders().into_iter().collect::<std::collections::BTreeSet<_>>(), all);
    assert_eq!(repo.checkout_folders(), linked.checkout_folders());
    let side = BranchName::new("side").expect("fine");
    assert_eq!(linked.read_head().expect("git runs"), CheckoutHead::Branch { name: side, tip });
}

#[test]
fn import_brings_new_commits_and_costs_nothing_when_there_are_none() {
    let scene = Scene::new();
    let before = scene.git.spawned_count();
    assert_eq!(scene.store.import_branch(&scene.repo, &main_branch()).expect("works"), scene.base);
    assert_eq!(scene.git.spawned_count(), before, "no process for what is known");

    write(&scene.root(), "more.txt", "more\n");
    git(&scene.root(), ["add", "-A"]);
    git(&scene.root(), ["commit", "-q", "-m", "second"]);
    let tip = scene.store.import_branch(&scene.repo, &main_branch()).expect("works");
    assert_ne!(tip, scene.base);
    assert!(scene.store.is_ancestor(&scene.base, &tip).expect("git runs"));
    // The person's objects may go away now: the store borrows nothing.
    std::fs::remove_dir_all(scene.root().join(".git/objects")).expect("removed");
    assert!(scene.store.run_fsck().expect("git runs").problems.is_empty());
    assert_eq!(
        scene.store.read_blob(&tip, b"more.txt", 100).expect("read").as_deref(),
        Some(b"more\n".as_slice())
    );
}

#[test]
fn a_large_repository_is_linked_and_survives_the_persons_gc() {
    let scene = Scene::with(|root| {
        // Noise does not compress, so the pack is as large as the file.
        let mut noise: u64 = 1;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (noise >> 33) as u8
        })
        .take(20 << 20)
        .collect();
        write(root, "noise.bin", bytes);
        git(root, ["add", "-A"]);
        git(root, ["commit", "-q", "-m", "large"]);
        git(root, ["gc", "-q"]);
        write(root, "loose.txt", "not in a pack");
    });
    let packs = |folder: &std::path::Path| {
        let mut names: Vec<_> = std::fs::read_dir(folder.join("pack"))
            .expect("readable")
            .map(|entry| entry.expect("readable").file_name())
            .filter(|name| name.as_bytes().ends_with(b".pack"))
            .collect();
        names.sort();
        names
    };
    let theirs = packs(&scene.root().join(".git/objects"));
    let ours = packs(&scene.store.dir().join("objects"));
    assert!(theirs.iter().all(|pack| ours.contains(pack)), "{theirs:?} {ours:?}");
    std::fs::remove_dir_all(scene.root().join(".git/objects")).expect("removed");
    assert!(scene.store.run_fsck().expect("git runs").problems.is_empty());
    assert!(scene.store.read_blob(&scene.base, b"loose.txt", 100).expect("read").is_some());
}

#[test]
fn a_shallow_clone_and_a_sha256_repository_work_too() {
    let temp = tempfile::tempdir().expect("a temp folder");
    let runner = Git::find_installed().expect("git is here");
    let full = temp.path().join("full");
    init(&full);
    for number in 0..3 {
        write(&full, "x", format!("{number}"));
        git(&full, ["add", "-A"]);
        git(&full, ["commit", "-q", "-m", "x"]);
    }
    let url = format!("file://{}", full.display());
    git(temp.path(), ["clone", "-q", "--depth=1", &url, "shallow"]);
    let wide = temp.path().join("wide");
    std::fs::create_dir(&wide).expect("made");
    git(&wide, ["init", "-q", "-b", "main", "--object-format=sha256"]);
    git(&wide, ["config", "user.name", "P"]);
    git(&wide, ["config", "user.email", "p@landfall.invalid"]);
    write(&wide, "x", "x");
    git(&wide, ["add", "-A"]);
    git(&wide, ["commit", "-q", "-m", "x"]);
    for (folder, format) in [("shallow", ObjectFormat::Sha1), ("wide", ObjectFormat::Sha256)] {
        let repo = Repo::discover(&runner, &temp.path().join(folder)).expect("found");
        assert_eq!(repo.object_format(), format);
        let state = temp.path().join(format!("state-{folder}"));
        let store = Store::open(&runner, &state.join("store.git"), &repo).expect("opens");
        let base = store.import_branch(&repo, &main_branch()).expect("imports");
        store.set_base(&base, None).expect("git runs");
        let pool = landfall_host::git::WorkspacePool::open(&store, &state.join("workspaces")).expect("opens");
        let ws = pool.prepare_workspace("T1", &base, "landfall/t1").expect("made");
        assert_eq!(git(ws.path(), ["status", "--porcelain"]), "");
        assert_eq!(git(ws.path(), ["log", "--format=%s"]), "x");
        write(ws.path(), "y", "y");
        git(ws.path(), ["add", "-A"]);
        git(ws.path(), ["commit", "-q", "-m", "agent"]);
        write(ws.path(), "z", "z");
        let collected = store.collect_work(&ws, &options("refs/landfall/heads/t1")).expect("collected");
        assert_eq!((collected.commits, collected.leftovers, collected.changed_paths_count), (2, true, 2));
        assert!(matches!(
            store.merge_commits(&base, &collected.head).expect("git runs"),
            MergeResult::Clean { .. }
        ));
        assert!(store.run_fsck().expect("git runs").problems.is_empty(), "{folder}");
    }
}

#[test]
fn the_base_moves_only_from_where_it_is_said_to_be() {
    let scene = Scene::new();
    let tree = scene.store.tree_of(&scene.base).expect("read");
    let next = scene
        .store
        .create_commit(&tree, std::slice::from_ref(&scene.base), "next", &sig(), &sig())
        .expect("commits");
    let wrong = scene.store.set_base(&next, Some(&next)).expect("git runs");
    assert_eq!(wrong, CompareAndSwap::Lost { actual: Some(scene.base.clone()) });
    assert_eq!(
        scene.store.set_base(&next, None).expect("git runs"),
        CompareAndSwap::Lost { actual: Some(scene.base.clone()) }
    );
    assert_eq!(scene.store.set_base(&next, Some(&scene.base)).expect("git runs"), CompareAndSwap::Moved);
    let again = scene.store.set_base(&next, Some(&scene.base)).expect("git runs");
    assert_eq!(again, CompareAndSwap::Lost { actual: Some(next.clone()) });
    assert!(scene.store.pin_commit(&name(landfall_host::git::BASE_REF), &scene.base).is_err());

    let racers: Vec<Oid> = (0..8)
        .map(|n| {
            scene
                .store
                .create_commit(&tree, std::slice::from_ref(&next), &format!("r{n}"), &sig(), &sig())
                .expect("commits")
        })
        .collect();
    let won = std::thread::scope(|scope| {
        let threads: Vec<_> = racers
            .iter()
            .map(|oid| scope.spawn(|| scene.store.set_base(oid, Some(&next)).expect("git runs")))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .filter(|cas| *cas == CompareAndSwap::Moved)
            .count()
    });
    assert_eq!(won, 1, "exactly one wins");
}

#[test]
fn pins_are_refs_that_git_sees() {
    let scene = Scene::new();
    let pin = name("refs/landfall/keep/t1");
    assert_eq!(scene.store.resolve_ref(&pin).expect("read"), None);
    scene.store.pin_commit(&pin, &scene.base).expect("pinned");
    assert_eq!(scene.store.resolve_ref(&pin).expect("read"), Some(scene.base.clone()));
    let listed = scene.store.list_refs(&name("refs/landfall/keep")).expect("git runs");
    assert_eq!(listed, [(pin.clone(), scene.base.clone())]);
    let missing: Oid = "1".repeat(40).parse().expect("an id");
    assert!(
        scene.store.pin_commit(&name("refs/landfall/keep/t2"), &missing).is_err(),
        "a pin to nothing is refused"
    );
    assert_eq!(
        scene.store.unpin_commit(&pin, &missing).expect("read"),
        CompareAndSwap::Lost { actual: Some(scene.base.clone()) }
    );
    assert_eq!(scene.store.unpin_commit(&pin, &scene.base).expect("read"), CompareAndSwap::Moved);
    assert_eq!(scene.store.unpin_commit(&pin, &scene.base).expect("gone is fine"), CompareAndSwap::Moved);
    assert_eq!(scene.store.resolve_ref(&pin).expect("read"), None);
}

#[test]
fn a_conflict_names_its_paths() {
    let scene = Scene::new();
    let mut heads = Vec::new();
    for (task, text) in [("T1", "mine"), ("T2", "yours")] {
        let ws = scene.prepare(task);
        write(ws.path(), "a.txt", text);
        write(ws.path(), &format!("{task}.txt"), text);
        heads.push(scene.collect(&ws).head);
    }
    match scene.store.merge_commits(&heads[0], &heads[1]).expect("git runs") {
        MergeResult::Conflict { paths, detail } => {
            assert_eq!(paths.len(), 1);
            assert_eq!(
                (paths[0].path.as_slice(), paths[0].stages),
                (b"a.txt".as_slice(), [true, true, true])
            );
            assert!(detail.contains("a.txt"), "{detail}");
        }
        MergeResult::Clean { .. } => panic!("they cannot fit"),
    }
}

#[test]
fn a_union_attribute_of_the_candidate_does_not_hide_a_conflict() {
    let scene = Scene::with(|root| {
        write(root, "a.txt", "one\n");
        write(root, ".gitattributes", "* merge=union\n");
    });
    let mut heads = Vec::new();
    for (task, text) in [("T1", "mine\n"), ("T2", "yours\n")] {
        let ws = scene.prepare(task);
        write(ws.path(), "a.txt", text);
        heads.push(scene.collect(&ws).head);
    }
    assert!(matches!(
        scene.store.merge_commits(&heads[0], &heads[1]).expect("git runs"),
        MergeResult::Conflict { .. }
    ));
}

#[test]
fn what_a_commit_holds_can_be_read() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    write(ws.path(), "a.txt", "one\ntwo\nthree\nfour\n");
    std::fs::remove_file(ws.path().join("dir/b.txt")).expect("removed");
    write(ws.path(), "bin", b"\0\x01\x02");
    std::os::unix::fs::symlink("a.txt", ws.path().join("link")).expect("linked");
    let head = scene.collect(&ws).head;
    let names = scene.store.diff_names(&scene.base, &head).expect("read");
    let names: Vec<_> =
        names.iter().map(|c| (c.status, String::from_utf8_lossy(&c.path).into_owned())).collect();
    let expected = [
        (TreeChange::Modified, "a.txt"),
        (TreeChange::Added, "bin"),
        (TreeChange::Deleted, "dir/b.txt"),
        (TreeChange::Added, "link"),
    ];
    assert_eq!(names, expected.map(|(status, path)| (status, path.to_owned())));
    let diff = scene.store.diff_commits(&scene.base, &head, &DiffOptions::default()).expect("git runs");
    assert!(String::from_utf8_lossy(&diff.bytes).contains("+four") && !diff.cut);
    let small = DiffOptions { bytes_max: 20, ..DiffOptions::default() };
    let diff = scene.store.diff_commits(&scene.base, &head, &small).expect("git runs");
    assert!(diff.cut && diff.bytes.len() == 20);
    let one = DiffOptions { paths: vec![b"bin".to_vec()], ..DiffOptions::default() };
    let diff = scene.store.diff_commits(&scene.base, &head, &one).expect("git runs");
    assert!(!String::from_utf8_lossy(&diff.bytes).contains("a.txt"));
    assert!(String::from_utf8_lossy(&diff.bytes).contains("Binary files"));
    let diff =
        scene.store.diff_commits(&scene.base, &head, &DiffOptions { text: true, ..one }).expect("git runs");
    assert!(!String::from_utf8_lossy(&diff.bytes).contains("Binary files"), "a NUL hides nothing");

    let read = |path: &str, max| scene.store.read_blob(&head, path.as_bytes(), max);
    assert_eq!(read("a.txt", 100).expect("read").as_deref(), Some(b"one\ntwo\nthree\nfour\n".as_slice()));
    assert!(read("a.txt", 3).is_err(), "too large is said, not cut");
    for path in ["none", "dir", "dir/b.txt", "link", "", "/", "../a.txt", "a.txt/x"] {
        assert_eq!(read(path, 100).expect("read"), None, "{path}");
    }
    let log = scene
        .store
        .read_log(&LogRange { to: head.clone(), from: Some(scene.base.clone()), first_parent: false }, 10);
    let log = log.expect("git runs");
    assert_eq!(log.len(), 1);
    assert_eq!((log[0].subject.as_str(), &log[0].author), ("leftovers", &sig()));
    assert_eq!(log[0].parents.as_slice(), std::slice::from_ref(&scene.base));
    assert!(
        scene
            .store
            .read_log(&LogRange { to: head, from: None, first_parent: true }, 1)
            .expect("git runs")
            .len()
            == 1
    );
}

#[test]
fn a_message_is_kept_as_it_is_and_cannot_be_an_option() {
    let scene = Scene::new();
    let tree = scene.store.tree_of(&scene.base).expect("read");
    for message in ["--amend", "# no comment\n\nbody", "ünïcode\u{202e}", "a\0b", ""] {
        let commit = scene
            .store
            .create_commit(&tree, std::slice::from_ref(&scene.base), message, &sig(), &sig())
            .expect("commits");
        let range = LogRange { to: commit, from: Some(scene.base.clone()), first_parent: false };
        let log = scene.store.read_log(&range, 1).expect("git runs");
        assert_eq!(log[0].message, message.replace('\0', "\u{fffd}").trim_end(), "{message:?}");
    }
    let odd = landfall_host::git::Signature { name: "<>\n".into(), email: "".into(), at_ms: -5 };
    assert!(
        scene.store.create_commit(&tree, &[], "odd", &odd, &odd).is_ok(),
        "an odd name is replaced, not fatal"
    );
}

#[test]
fn the_landing_check_names_every_kind_of_lie() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    write(ws.path(), "a.txt", "changed\n");
    let head = scene.collect(&ws).head;
    let other = scene.prepare("T2");
    write(other.path(), "dir/b.txt", "other\n");
    let other = scene.collect(&other).head;
    let base = &scene.base;
    let MergeResult::Clean { tree } = scene.store.merge_commits(base, &head).expect("git runs") else {
        panic!("a conflict")
    };
    let commit = |tree: &Oid, parents: &[&Oid]| {
        let parents: Vec<Oid> = parents.iter().map(|oid| (*oid).clone()).collect();
        scene.store.create_commit(tree, &parents, "land", &sig(), &sig()).expect("commits")
    };
    let check = |landed: &Oid, tree: &Oid| {
        scene.store.check_landing(&LandingClaim {
            landed: landed.clone(),
            base_before: base.clone(),
            candidate_heads: vec![head.clone()],
            tree: tree.clone(),
        })
    };
    let right = commit(&tree, &[base, &head]);
    check(&right, &tree).expect("it agrees");

    let other_tree = scene.store.tree_of(&other).expect("read");
    assert!(matches!(check(&right, &other_tree), Err(LandingMismatch::Tree { .. })));
    let single = commit(&tree, &[base]);
    assert!(matches!(check(&single, &tree), Err(LandingMismatch::ParentCount { count: 1, expected: 2 })));
    assert!(matches!(
        check(&commit(&tree, &[&other, &head]), &tree),
        Err(LandingMismatch::FirstParent { .. })
    ));
    assert!(matches!(check(&commit(&tree, &[base, &other]), &tree), Err(LandingMismatch::Head { .. })));
    let wrong = commit(&other_tree, &[base, &head]);
    assert!(matches!(check(&wrong, &other_tree), Err(LandingMismatch::Recomputed { .. })));
}

#[test]
fn a_landing_on_a_base_that_moved_and_renamed_is_accepted() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    write(ws.path(), "a.txt", "one\ntwo\nthree\nfour\n");
    let head = scene.collect(&ws).head;
    let mover = scene.prepare("T2");
    git(mover.path(), ["mv", "a.txt", "renamed.txt"]);
    let moved = scene.land(&scene.collect(&mover).head);
    let MergeResult::Clean { tree } = scene.store.merge_commits(&moved, &head).expect("git runs") else {
        panic!("a conflict")
    };
    let landed = scene
        .store
        .create_commit(&tree, &[moved.clone(), head.clone()], "land", &sig(), &sig())
        .expect("commits");
    let claim = LandingClaim { landed, base_before: moved, candidate_heads: vec![head], tree };
    let proof = scene.store.check_landing(&claim).expect("the rename explains the path");
    assert_eq!(proof.changed_paths_count, 1);
}

#[test]
fn a_damaged_store_is_reported_and_not_repaired_by_guessing() {
    let scene = Scene::new();
    let tree = scene.store.tree_of(&scene.base).expect("read");
    let (folder, rest) = tree.as_str().split_at(2);
    std::fs::remove_file(scene.store.dir().join("objects").join(folder).join(rest)).expect("removed");
    let health = scene.store.run_fsck().expect("git runs");
    assert!(health.problems.iter().any(|line| line.contains(tree.as_str())), "{health:?}");
    let merge = scene.store.merge_commits(&scene.base, &scene.base);
    assert!(merge.is_err() || matches!(merge, Ok(MergeResult::Clean { .. })));
    assert!(scene.pool.prepare_workspace("T1", &scene.base, "landfall/t1").is_err());

    std::fs::write(scene.store.dir().join("refs/landfall/base"), "garbage").expect("written");
    let base = scene.store.read_base();
    assert!(matches!(base.map_err(|error| error.kind), Err(GitErrorKind::Output(_))));
}

#[test]
fn stale_locks_in_the_store_are_healed_on_demand() {
    let scene = Scene::new();
    let lock = scene.store.dir().join("refs/landfall/base.lock");
    std::fs::write(&lock, "").expect("written");
    std::fs::write(scene.store.dir().join("packed-refs.lock"), "").expect("written");
    let tree = scene.store.tree_of(&scene.base).expect("read");
    let next = scene
        .store
        .create_commit(&tree, std::slice::from_ref(&scene.base), "next", &sig(), &sig())
        .expect("commits");
    let held = scene.store.set_base(&next, Some(&scene.base));
    assert!(matches!(held.map_err(|error| error.kind), Err(GitErrorKind::Io(_))), "a lock is respected");
    assert_eq!(scene.store.heal_locks().expect("healed").len(), 2);
    assert_eq!(scene.store.set_base(&next, Some(&scene.base)).expect("git runs"), CompareAndSwap::Moved);
}

#[test]
fn names_that_are_not_utf8_survive_from_workspace_to_lane() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    let odd = std::ffi::OsStr::from_bytes(b"\xff\xfe bad \" \n name");
    std::fs::write(ws.path().join(odd), "odd").expect("written");
    let collected = scene.collect(&ws);
    assert_eq!(collected.dirty_paths, [odd.as_bytes().to_vec()]);
    let landed = scene.land(&collected.head);
    let lane = scene.lane("1");
    let checkout =
        lane.check_out_commit(&landed, landfall_host::git::IgnoredFilesPolicy::Remove).expect("checked out");
    assert_eq!(std::fs::read(checkout.path.join(odd)).expect("there"), b"odd");
    assert_eq!(
        scene.store.read_blob(&landed, odd.as_bytes(), 10).expect("read").as_deref(),
        Some(b"odd".as_slice())
    );
    assert_eq!(scene.store.diff_names(&scene.base, &landed).expect("read")[0].path, odd.as_bytes());
    assert_eq!(read(&checkout.path, "a.txt"), "one\ntwo\nthree\n");
}

#[test]
fn a_workspace_that_is_gone_is_named_so() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    std::fs::remove_dir_all(ws.path()).expect("removed");
    let gone = scene.store.collect_work(&ws, &options("refs/landfall/heads/t1"));
    assert!(matches!(gone, Err(CollectError::WorkspaceGone)));
    assert_eq!(scene.store.workspace_head(&ws), None);
    assert!(scene.pool.find_workspace("T1").is_none());
    let again = scene.prepare("T1");
    assert_eq!(snapshot(again.path()), snapshot(&scene.root()), "it is built again");
}

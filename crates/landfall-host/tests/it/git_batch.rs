//! Batches: several heads merged at once, and the check of what they became.

use landfall_host::git::{
    BatchMerge, BatchMergeExclusion, CompareAndSwap, LandingClaim, LandingMismatch, LandingProof, Oid,
    Signature, Workspace,
};

use crate::git_scene::{Scene, git, sig, try_git, write};

fn message(count: usize) -> String {
    format!("land {count}\n")
}

fn merge(scene: &Scene, heads: &[Oid]) -> BatchMerge {
    scene.store.merge_batch(&scene.base, heads, &message, &sig()).expect("git runs")
}

/// Work of one task on the scene's base.
fn head(scene: &Scene, task: &str, work: impl FnOnce(&Workspace)) -> Oid {
    let ws = scene.prepare(task);
    work(&ws);
    scene.collect(&ws).head
}

fn file(path: &str, content: impl AsRef<[u8]>) -> impl FnOnce(&Workspace) {
    move |ws| write(ws.path(), path, content)
}

fn text(scene: &Scene, commit: &Oid, path: &str) -> Option<String> {
    let bytes = scene.store.read_blob(commit, path.as_bytes(), 1 << 20).expect("read")?;
    Some(String::from_utf8(bytes).expect("text"))
}

/// Every prefix is what its heads say, and the check agrees with it.
fn check(scene: &Scene, heads: &[Oid], batch: &BatchMerge) -> Vec<LandingProof> {
    let mut proofs = Vec::new();
    for (place, prefix) in batch.prefixes.iter().enumerate() {
        assert_eq!(prefix.heads.len(), place + 1);
        let within: Vec<Oid> = prefix.heads.iter().map(|place| heads[*place].clone()).collect();
        let mut parents = vec![scene.base.clone()];
        parents.extend(within.clone());
        assert_eq!(scene.store.parents_of(&prefix.commit).expect("read"), parents);
        assert_eq!(scene.store.tree_of(&prefix.commit).expect("read"), prefix.tree);
        let claim = LandingClaim {
            landed: prefix.commit.clone(),
            base_before: scene.base.clone(),
            candidate_heads: within,
            tree: prefix.tree.clone(),
        };
        proofs.push(scene.store.check_landing(&claim).expect("it agrees"));
    }
    proofs
}

#[test]
fn eight_heads_become_eight_prefixes_each_proved() {
    let scene = Scene::new();
    let heads: Vec<Oid> = (1..=8)
        .map(|n| {
            head(&scene, &format!("T{n}"), |ws| {
                write(ws.path(), &format!("t{n}.txt"), format!("{n}\n"));
                git(ws.path(), ["add", "-A"]);
                git(ws.path(), ["commit", "-q", "-m", "one"]);
                write(ws.path(), &format!("dir/t{n}.txt"), format!("{n}\n"));
            })
        })
        .collect();
    let batch = merge(&scene, &heads);
    assert_eq!((batch.prefixes.len(), batch.left_out.len()), (8, 0));
    let proofs = check(&scene, &heads, &batch);
    let counts: Vec<usize> = proofs.iter().map(|proof| proof.changed_paths_count).collect();
    assert_eq!(counts, [2, 4, 6, 8, 10, 12, 14, 16]);
    assert_eq!(text(&scene, &batch.prefixes[2].commit, "t3.txt").as_deref(), Some("3\n"));
    assert_eq!(text(&scene, &batch.prefixes[2].commit, "t4.txt"), None);
    let refs = scene.store.dir().join("refs/landfall");
    let before = crate::git_scene::snapshot(&refs);
    assert_eq!(merge(&scene, &heads), batch, "the same heads give the same commits");
    assert_eq!(crate::git_scene::snapshot(&refs), before, "and no ref");
    let later = Signature { at_ms: sig().at_ms + 1000, ..sig() };
    let other = scene.store.merge_batch(&scene.base, &heads, &message, &later).expect("git runs");
    assert_eq!(other.prefixes[7].tree, batch.prefixes[7].tree);
    assert_ne!(other.prefixes[7].commit, batch.prefixes[7].commit);

    let last = &batch.prefixes[7].commit;
    assert_eq!(scene.store.set_base(last, Some(&scene.base)).expect("git runs"), CompareAndSwap::Moved);
    assert!(scene.store.run_fsck().expect("git runs").problems.is_empty());
    let log = git(scene.store.dir(), ["log", "-1", "--format=%B", last.as_str()]);
    assert_eq!(log, "land 8");
}

#[test]
fn a_head_that_conflicts_or_changes_nothing_is_left_out_and_the_rest_goes_on() {
    let scene = Scene::new();
    let first = head(&scene, "T1", file("a.txt", "one\nTWO\nthree\n"));
    let against = head(&scene, "T2", file("a.txt", "one\n2\nthree\n"));
    let same = head(&scene, "T3", file("a.txt", "one\nTWO\nthree\n"));
    let last = head(&scene, "T4", file("dir/b.txt", "B\n"));
    let heads = [first.clone(), against, same, scene.base.clone(), first, last];
    let batch = merge(&scene, &heads);
    let within: Vec<&[usize]> = batch.prefixes.iter().map(|prefix| prefix.heads.as_slice()).collect();
    assert_eq!(within, [[0].as_slice(), &[0, 5]]);
    let (places, reasons): (Vec<usize>, Vec<BatchMergeExclusion>) = batch.left_out.iter().cloned().unzip();
    assert_eq!(places, [1, 2, 3, 4]);
    assert!(
        matches!(&reasons[0], BatchMergeExclusion::Conflict(paths) if paths.len() == 1 && paths[0].path == b"a.txt")
    );
    assert_eq!(
        reasons[1..],
        [
            BatchMergeExclusion::NothingChanged,
            BatchMergeExclusion::NothingChanged,
            BatchMergeExclusion::NothingChanged
        ]
    );
    check(&scene, &heads, &batch);

    let none = merge(&scene, &[]);
    assert_eq!((none.prefixes.len(), none.left_out.len()), (0, 0));
    let missing: Oid = "1".repeat(40).parse().expect("an id");
    assert!(scene.store.merge_batch(&scene.base, &[missing], &message, &sig()).is_err());
}

#[test]
fn a_head_built_on_another_fits_after_it_and_adds_nothing_before_it() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    write(ws.path(), "x.txt", "1\n");
    let lower = scene.collect(&ws).head;
    git(ws.path(), ["add", "-A"]);
    git(ws.path(), ["commit", "-q", "-m", "lower"]);
    git(ws.path(), ["fetch", "-q", scene.store.dir().to_str().expect("text"), lower.as_str()]);
    git(ws.path(), ["reset", "-q", "--hard", lower.as_str()]);
    write(ws.path(), "x.txt", "1\n2\n");
    let upper = scene.collect(&ws).head;
    assert!(scene.store.is_ancestor(&lower, &upper).expect("git runs") && lower != upper);

    let heads = [lower.clone(), upper.clone()];
    let batch = merge(&scene, &heads);
    assert_eq!((batch.prefixes.len(), batch.left_out.len()), (2, 0));
    check(&scene, &heads, &batch);

    let heads = [upper, lower];
    let batch = merge(&scene, &heads);
    assert_eq!((batch.prefixes.len(), &batch.left_out), (1, &vec![(1, BatchMergeExclusion::NothingChanged)]));
    check(&scene, &heads, &batch);
}

#[test]
fn a_rename_in_one_head_carries_the_change_of_the_next() {
    let scene = Scene::new();
    let renamed = head(&scene, "T1", |ws| {
        git(ws.path(), ["mv", "a.txt", "moved.txt"]);
    });
    let changed = head(&scene, "T2", file("a.txt", "one\ntwo\nthree\nfour\n"));
    let heads = [renamed, changed];
    let batch = merge(&scene, &heads);
    assert_eq!(batch.prefixes.len(), 2);
    check(&scene, &heads, &batch);
    let whole = &batch.prefixes[1].commit;
    assert_eq!(text(&scene, whole, "moved.txt").as_deref(), Some("one\ntwo\nthree\nfour\n"));
    assert_eq!(text(&scene, whole, "a.txt"), None);
}

#[test]
fn binary_files_odd_names_and_heads_without_a_common_history_are_no_trouble() {
    let scene = Scene::with(|root| {
        write(root, "bin", b"\0\x01\x02");
        write(root, "a.txt", "a\n");
    });
    let binary = head(&scene, "T1", file("bin", b"\0\x01\x02\xff".as_slice()));
    let against = head(&scene, "T2", file("bin", b"\0\x07".as_slice()));
    let odd = head(&scene, "T3", |ws| {
        for name in ["-rf", "a\nb", "a\tb", "--end-of-options", "$(id)", "\"quoted\"", "ü", " ", "1 2 3\t4"]
        {
            write(ws.path(), name, name);
        }
        use std::os::unix::ffi::OsStrExt as _;
        let bytes = std::ffi::OsStr::from_bytes(b"\xff\xfe");
        std::fs::write(ws.path().join(bytes), "not UTF-8").expect("written");
    });
    let foreign = head(&scene, "T4", |ws| {
        git(ws.path(), ["checkout", "-q", "--orphan", "other"]);
        git(ws.path(), ["rm", "-rfq", "."]);
        write(ws.path(), "own/history.txt", "mine\n");
        git(ws.path(), ["add", "-A"]);
        git(ws.path(), ["commit", "-q", "-m", "a root"]);
    });
    let heads = [binary, against, odd, foreign];
    let batch = merge(&scene, &heads);
    assert_eq!(batch.prefixes.last().expect("some fit").heads, [0, 2, 3]);
    assert!(
        matches!(&batch.left_out[..], [(1, BatchMergeExclusion::Conflict(paths))] if paths[0].path == b"bin")
    );
    let proofs = check(&scene, &heads, &batch);
    assert_eq!(proofs.last().expect("proved").changed_paths_count, 12);
    let whole = &batch.prefixes[2].commit;
    assert_eq!(text(&scene, whole, "own/history.txt").as_deref(), Some("mine\n"));
    assert_eq!(text(&scene, whole, "a.txt").as_deref(), Some("a\n"), "what the root has not is not deleted");
}

#[test]
fn criss_cross_histories_are_merged_and_proved() {
    let scene = Scene::with(|root| write(root, "a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n"));
    // Two lines that merged each other: two best common ancestors, all made in the same second.
    let ws = scene.prepare("T1");
    let commit = |name: &str, line: &str, text: &str| {
        let old = std::fs::read_to_string(ws.path().join("a.txt")).expect("read");
        write(ws.path(), "a.txt", old.replace(line, text));
        git(ws.path(), ["commit", "-qam", name]);
        git(ws.path(), ["rev-parse", "HEAD"])
    };
    let one = commit("one", "1\n", "one\n");
    git(ws.path(), ["checkout", "-q", "-b", "two", scene.base.as_str()]);
    let two = commit("two", "9\n", "nine\n");
    git(ws.path(), ["merge", "-q", "--no-ff", "-m", "two and one", &one]);
    let left = commit("left", "3\n", "three\n");
    git(ws.path(), ["checkout", "-q", "-b", "three", &one]);
    git(ws.path(), ["merge", "-q", "--no-ff", "-m", "one and two", &two]);
    commit("right", "7\n", "seven\n");
    let right = scene.collect(&ws).head;
    git(ws.path(), ["checkout", "-q", "--detach", &left]);
    let left = scene.collect(&ws).head;
    assert_eq!(scene.store.merge_bases(&left, &right).expect("git runs").len(), 2);
    let aside = head(&scene, "T2", file("aside.txt", "aside\n"));
    for heads in [[left.clone(), aside.clone(), right.clone()], [right, left, aside]] {
        let batch = merge(&scene, &heads);
        assert_eq!((batch.prefixes.len(), batch.left_out.len()), (3, 0));
        check(&scene, &heads, &batch);
        let whole = text(&scene, &batch.prefixes[2].commit, "a.txt").expect("there");
        assert_eq!(whole, "one\n2\nthree\n4\n5\n6\nseven\n8\nnine\n");
    }
}

#[test]
fn no_merge_driver_and_no_filter_of_a_head_runs() {
    let scene = Scene::new();
    let mark = scene.temp.path().join("ran");
    let touch = format!("touch {}", mark.display());
    let hostile = |ws: &Workspace| {
        write(ws.path(), ".gitattributes", "* merge=evil filter=evil diff=evil text eol=crlf\n");
        for key in ["merge.evil.driver", "filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv"] {
            try_git(ws.path(), ["config", key, &touch]);
        }
    };
    let one = head(&scene, "T1", |ws| {
        hostile(ws);
        write(ws.path(), "a.txt", "ONE\ntwo\nthree\n");
    });
    let two = head(&scene, "T2", |ws| {
        hostile(ws);
        write(ws.path(), "a.txt", "one\ntwo\nTHREE\nfour\n");
    });
    let heads = [one, two];
    let batch = merge(&scene, &heads);
    check(&scene, &heads, &batch);
    assert!(!mark.exists(), "nothing of theirs ran");
    assert!(!batch.prefixes.is_empty());
}

#[test]
fn the_check_of_a_batch_names_every_kind_of_lie() {
    let scene = Scene::new();
    let one = head(&scene, "T1", file("one.txt", "1\n"));
    let two = head(&scene, "T2", file("two.txt", "2\n"));
    let three = head(&scene, "T3", file("three.txt", "3\n"));
    let against = head(&scene, "T4", file("one.txt", "other\n"));
    let heads = [one.clone(), two.clone()];
    let batch = merge(&scene, &heads);
    let right = &batch.prefixes[1];
    let check = |landed: &Oid, heads: &[&Oid], tree: &Oid| {
        scene.store.check_landing(&LandingClaim {
            landed: landed.clone(),
            base_before: scene.base.clone(),
            candidate_heads: heads.iter().map(|oid| (*oid).clone()).collect(),
            tree: tree.clone(),
        })
    };
    let commit = |tree: &Oid, parents: &[&Oid]| {
        let parents: Vec<Oid> = parents.iter().map(|oid| (*oid).clone()).collect();
        scene.store.create_commit(tree, &parents, "land", &sig(), &sig()).expect("commits")
    };
    check(&right.commit, &[&one, &two], &right.tree).expect("it agrees");

    let found = check(&right.commit, &[&one], &right.tree);
    assert!(matches!(found, Err(LandingMismatch::ParentCount { count: 3, expected: 2 })), "{found:?}");
    let found = check(&right.commit, &[&one, &two, &three], &right.tree);
    assert!(matches!(found, Err(LandingMismatch::ParentCount { count: 3, expected: 4 })), "{found:?}");
    let found = check(&right.commit, &[&two, &one], &right.tree);
    assert!(matches!(found, Err(LandingMismatch::Head { place: 0, .. })), "{found:?}");
    let found = check(&right.commit, &[&one, &three], &right.tree);
    assert!(matches!(found, Err(LandingMismatch::Head { place: 1, .. })), "{found:?}");
    let alone = commit(&right.tree, &[&scene.base]);
    let found = check(&alone, &[], &right.tree);
    assert!(matches!(found, Err(LandingMismatch::ParentCount { count: 1, expected: 2 })), "{found:?}");
    let moved = commit(&right.tree, &[&three, &one, &two]);
    let found = check(&moved, &[&one, &two], &right.tree);
    assert!(matches!(found, Err(LandingMismatch::FirstParent { .. })), "{found:?}");
    // The tree of the first head alone: the work of the second was lost on the way.
    let lost = commit(&batch.prefixes[0].tree, &[&scene.base, &one, &two]);
    let found = check(&lost, &[&one, &two], &batch.prefixes[0].tree);
    assert!(matches!(found, Err(LandingMismatch::Recomputed { .. })), "{found:?}");
    let forced = commit(&right.tree, &[&scene.base, &one, &against]);
    let found = check(&forced, &[&one, &against], &right.tree);
    assert!(matches!(found, Err(LandingMismatch::Conflicts)), "{found:?}");
}

//! Conflicts in detail, and those that have only one reading.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use landfall_host::git::{ConflictKind, LandingClaim, MergeResult, Oid, PathContent, Workspace};

use crate::git_scene::{Scene, git, sig, write};

/// Two tasks on the base of a scene.
fn heads(scene: &Scene, ours: impl FnOnce(&Workspace), theirs: impl FnOnce(&Workspace)) -> [Oid; 2] {
    let [one, two] = ["T1", "T2"].map(|task| scene.prepare(task));
    ours(&one);
    theirs(&two);
    [one, two].map(|ws| scene.collect(&ws).head)
}

fn commit_all(ws: &Workspace) {
    git(ws.path(), ["add", "-A"]);
    git(ws.path(), ["commit", "-q", "-m", "work"]);
}

/// What is in dispute, as `path kind lines`.
fn told(scene: &Scene, heads: &[Oid; 2]) -> Vec<String> {
    match scene.store.merge_commits(&heads[0], &heads[1]).expect("git runs") {
        MergeResult::Clean { .. } => Vec::new(),
        MergeResult::Conflict { paths, .. } => paths
            .iter()
            .map(|it| format!("{} {:?} {}", String::from_utf8_lossy(&it.path), it.kind, it.lines))
            .collect(),
    }
}

fn text(scene: &Scene, tree: &Oid, path: &str) -> String {
    git(scene.store.dir(), ["cat-file", "blob", &format!("{tree}:{path}")])
}

fn numbers() -> String {
    (1..=30).map(|n| format!("line {n}\n")).collect()
}

fn scene() -> Scene {
    Scene::with(|root| {
        write(root, "a.txt", numbers());
        write(root, "dir/b.txt", numbers().replace("line", "row"));
        write(root, "bin", b"\0\x01\x02");
        symlink("a.txt", root.join("link")).expect("linked");
    })
}

#[test]
fn a_clean_merge_is_made_once_and_again_if_its_tree_is_lost() {
    let scene = scene();
    let heads =
        heads(&scene, |ws| write(ws.path(), "one.txt", "1\n"), |ws| write(ws.path(), "two.txt", "2\n"));
    let merge = || scene.store.merge_commits(&heads[0], &heads[1]).expect("git runs");
    let first = merge();
    let before = scene.git.spawned_count();
    assert_eq!(merge(), first);
    assert_eq!(scene.git.spawned_count(), before, "no process for what is known");
    let MergeResult::Clean { tree } = &first else { panic!("{first:?}") };
    let object = scene.store.dir().join("objects").join(&tree.as_str()[..2]).join(&tree.as_str()[2..]);
    std::fs::remove_file(&object).expect("it is loose");
    assert_eq!(merge(), first);
    assert_eq!(text(&scene, tree, "two.txt"), "2");
}

#[test]
fn the_lines_in_dispute_are_counted() {
    let scene = scene();
    let heads = heads(
        &scene,
        |ws| write(ws.path(), "a.txt", numbers().replace("line 3\n", "x\ny\n").replace("line 20\n", "z\n")),
        |ws| {
            write(
                ws.path(),
                "a.txt",
                numbers().replace("line 3\n", "q\n").replace("line 20\nline 21\n", "1\n2\n3\n"),
            )
        },
    );
    assert_eq!(told(&scene, &heads), ["a.txt Content 5"]);
}

#[test]
fn every_kind_of_conflict_has_its_name() {
    let scene = scene();
    let case = |ours: &dyn Fn(&Workspace), theirs: &dyn Fn(&Workspace)| {
        let heads = heads(&scene, ours, theirs);
        for name in ["T1", "T2"] {
            let ws = scene.pool.find_workspace(name).expect("ready");
            let keep = landfall_host::git::RefName::new("refs/landfall/keep/x").expect("fine");
            scene.pool.remove_workspace(ws, &keep, &sig()).expect("removed");
        }
        told(&scene, &heads)
    };
    let put = |path: &'static str, bytes: &'static [u8]| move |ws: &Workspace| write(ws.path(), path, bytes);
    let delete = |path: &'static str| {
        move |ws: &Workspace| std::fs::remove_file(ws.path().join(path)).expect("removed")
    };

    assert_eq!(case(&put("new", b"1\n2\n"), &put("new", b"1\n3\n4\n")), ["new AddAdd 2"]);
    assert_eq!(case(&put("bin", b"\0ours"), &put("bin", b"\0theirs")), ["bin Binary 0"]);
    assert_eq!(case(&put("new", b"text\n"), &put("new", b"\0")), ["new Binary 0"]);
    assert_eq!(case(&put("a.txt", b"x\n"), &delete("a.txt")), ["a.txt ModifyDelete { by_ours: false } 0"]);
    assert_eq!(case(&delete("a.txt"), &put("a.txt", b"x\n")), ["a.txt ModifyDelete { by_ours: true } 0"]);
    let rename = |to: &'static str| {
        move |ws: &Workspace| {
            git(ws.path(), ["mv", "a.txt", to]);
        }
    };
    let both = case(&rename("one.txt"), &rename("two.txt"));
    assert_eq!(both, ["a.txt Rename 0", "one.txt Rename 0", "two.txt Rename 0"]);
    assert_eq!(case(&rename("one.txt"), &delete("a.txt")), ["one.txt Rename 0"]);
    assert_eq!(case(&delete("a.txt"), &rename("one.txt")), ["one.txt Rename 0"]);
    let found = case(&put("x", b"file\n"), &put("x/y", b"in a folder\n"));
    assert!(found.iter().all(|it| it.contains("FileFolder")) && !found.is_empty(), "{found:?}");
    let link = |to: &'static str| {
        move |ws: &Workspace| {
            std::fs::remove_file(ws.path().join("link")).expect("removed");
            symlink(to, ws.path().join("link")).expect("linked");
        }
    };
    assert_eq!(case(&link("bin"), &link("dir")), ["link Symlink 0"]);
    let module = |oid: &'static str| {
        move |ws: &Workspace| {
            std::fs::create_dir(ws.path().join("sub")).expect("made");
            git(ws.path(), ["update-index", "--add", "--cacheinfo", &format!("160000,{oid},sub")]);
            git(ws.path(), ["commit", "-q", "-m", "a link to another repository"]);
        }
    };
    let (one, two) = ("1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222");
    assert_eq!(case(&module(one), &module(two)), ["sub Submodule 0"]);
    let script = |mode: u32| {
        move |ws: &Workspace| {
            write(ws.path(), "run", "same\n");
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(ws.path().join("run"), mode).expect("set");
        }
    };
    assert_eq!(case(&script(0o644), &script(0o755)), ["run Mode 0"]);
}

#[test]
fn a_rename_with_a_change_on_both_sides_is_about_its_lines() {
    let scene = scene();
    let heads = heads(
        &scene,
        |ws| {
            git(ws.path(), ["mv", "a.txt", "moved.txt"]);
            write(ws.path(), "moved.txt", numbers().replace("line 3\n", "ours\n"));
        },
        |ws| write(ws.path(), "a.txt", numbers().replace("line 3\n", "theirs\n")),
    );
    assert_eq!(told(&scene, &heads), ["moved.txt Content 1"]);
}

#[test]
fn changes_side_by_side_are_settled_and_the_result_lands_by_a_plain_merge() {
    let scene = scene();
    let [base, head] = heads(
        &scene,
        |ws| {
            write(
                ws.path(),
                "a.txt",
                numbers().replace("line 3\n", "three\n").replace("line 9\n", "line 9  \n"),
            );
            write(ws.path(), "dir/b.txt", numbers().replace("line", "row").replace("row 7\n", ""));
            write(ws.path(), "ours.txt", "ours\n");
        },
        |ws| {
            write(ws.path(), "a.txt", numbers().replace("line 4\n", "four\n").replace("line 9\n", "nine\n"));
            write(
                ws.path(),
                "dir/b.txt",
                numbers().replace("line", "row").replace("row 8\n", "eight\nmore\n"),
            );
            write(ws.path(), "theirs.txt", "theirs\n");
        },
    );
    assert_eq!(told(&scene, &[base.clone(), head.clone()]).len(), 2);
    let tree = scene.store.merge_simple(&base, &head).expect("git runs").expect("only one reading");
    let a = numbers().replace("line 3\nline 4\n", "three\nfour\n").replace("line 9\n", "nine\n");
    assert_eq!(text(&scene, &tree, "a.txt"), a.trim_end());
    let b = numbers().replace("line", "row").replace("row 7\nrow 8\n", "eight\nmore\n");
    assert_eq!(text(&scene, &tree, "dir/b.txt"), b.trim_end());
    let names = git(scene.store.dir(), ["ls-tree", "-r", "--name-only", tree.as_str()]);
    assert_eq!(names, "a.txt\nbin\ndir/b.txt\nlink\nours.txt\ntheirs.txt");
    assert_eq!(scene.store.merge_simple(&base, &head).expect("git runs"), Some(tree.clone()));

    // What the queue does with it: the task's branch takes the base in, and then fits.
    let parents = [head, base.clone()];
    let settled =
        scene.store.create_commit(&tree, &parents, "take the base in", &sig(), &sig()).expect("commits");
    let merged = scene.store.merge_commits(&base, &settled).expect("git runs");
    assert_eq!(merged, MergeResult::Clean { tree: tree.clone() });
    let parents = [base.clone(), settled.clone()];
    let landed = scene.store.create_commit(&tree, &parents, "land", &sig(), &sig()).expect("commits");
    let claim = LandingClaim { landed, base_before: base, candidate_heads: vec![settled], tree };
    scene.store.check_landing(&claim).expect("it agrees");
    assert!(scene.store.run_fsck().expect("git runs").problems.is_empty());
}

#[test]
fn a_place_with_two_readings_settles_nothing() {
    let scene = scene();
    let [base, head] = heads(
        &scene,
        |ws| write(ws.path(), "a.txt", numbers().replace("line 3\n", "ours\n").replace("line 20\n", "20\n")),
        |ws| {
            write(ws.path(), "a.txt", numbers().replace("line 3\n", "theirs\n").replace("line 21\n", "21\n"))
        },
    );
    assert_eq!(told(&scene, &[base.clone(), head.clone()]), ["a.txt Content 3"]);
    assert_eq!(scene.store.merge_simple(&base, &head).expect("git runs"), None);
    let plain = scene.store.merge_commits(&scene.base, &head).expect("git runs");
    let MergeResult::Clean { tree } = plain else { panic!("one side alone fits") };
    assert_eq!(scene.store.merge_simple(&scene.base, &head).expect("git runs"), Some(tree));
}

#[test]
fn a_settled_line_beside_a_deleted_file_or_a_binary_settles_nothing() {
    let scene = scene();
    let [base, head] = heads(
        &scene,
        |ws| {
            write(ws.path(), "a.txt", numbers().replace("line 3\n", "three\n"));
            write(ws.path(), "bin", b"\0ours");
        },
        |ws| {
            write(ws.path(), "a.txt", numbers().replace("line 4\n", "four\n"));
            write(ws.path(), "bin", b"\0theirs");
        },
    );
    assert_eq!(scene.store.merge_simple(&base, &head).expect("git runs"), None);
}

#[test]
fn odd_names_are_settled_where_they_are() {
    let odd = "-z a\tb\n\"c\"/1 2\n";
    let scene = Scene::with(|root| write(root, odd, numbers()));
    let [base, head] = heads(
        &scene,
        |ws| {
            write(ws.path(), odd, numbers().replace("line 3\n", "three\n"));
            commit_all(ws);
        },
        |ws| write(ws.path(), odd, numbers().replace("line 4\n", "four\n")),
    );
    let MergeResult::Conflict { paths, .. } = scene.store.merge_commits(&base, &head).expect("git runs")
    else {
        panic!("git gives up where changes touch")
    };
    assert_eq!((paths[0].path.as_slice(), paths[0].kind), (odd.as_bytes(), ConflictKind::Content));
    let tree = scene.store.merge_simple(&base, &head).expect("git runs").expect("only one reading");
    let expected = numbers().replace("line 3\nline 4\n", "three\nfour\n");
    assert_eq!(text(&scene, &tree, odd), expected.trim_end());
}

#[test]
fn a_line_like_a_conflict_mark_is_only_a_line() {
    let marks = "<<<<<<< ours\n=======\n>>>>>>> theirs\n";
    let scene = Scene::with(|root| write(root, "a.txt", format!("{}{marks}", numbers())));
    let [base, head] = heads(
        &scene,
        |ws| write(ws.path(), "a.txt", format!("{}{marks}", numbers().replace("line 3\n", "three\n"))),
        |ws| write(ws.path(), "a.txt", format!("{}{marks}", numbers().replace("line 3\n", "drei\n"))),
    );
    assert_eq!(told(&scene, &[base, head]), ["a.txt Content 1"]);
}

#[test]
fn a_tree_takes_paths_from_another_commit_or_a_text() {
    let scene = scene();
    let base = scene.store.read_base().expect("git runs").expect("there is a base");
    let ws = scene.prepare("T1");
    write(ws.path(), "a.txt", "changed\n");
    std::fs::remove_dir_all(ws.path().join("dir")).expect("removed");
    write(ws.path(), "new/deep/c.txt", "new\n");
    write(ws.path(), "run.sh", "true\n");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(ws.path().join("run.sh"), mode).expect("it can be run");
    commit_all(&ws);
    let work = scene.collect(&ws).head;
    let path = |path: &str| path.as_bytes().to_vec();
    let tree = scene.store.edit_tree(
        &work,
        &[
            (path("dir/b.txt"), PathContent::Of(base.clone())),
            (path("new/deep/c.txt"), PathContent::Nothing),
            (path("run.sh"), PathContent::Text("false\n".to_owned())),
            (path("nowhere/d.txt"), PathContent::Nothing),
        ],
    );
    let tree = tree.expect("git runs");
    let listed = git(scene.store.dir(), ["ls-tree", "-r", "--format=%(objectmode) %(path)", tree.as_str()]);
    assert_eq!(
        listed.lines().collect::<Vec<_>>(),
        ["100644 a.txt", "100644 bin", "100644 dir/b.txt", "120000 link", "100755 run.sh"]
    );
    assert_eq!(text(&scene, &tree, "a.txt").trim_end(), "changed");
    assert_eq!(text(&scene, &tree, "run.sh").trim_end(), "false");
    let paths = ["a.txt", "dir/b.txt"].map(|name| (path(name), PathContent::Of(base.clone())));
    let tree = scene.store.edit_tree(&work, &paths).expect("git runs");
    assert_eq!(
        text(&scene, &tree, "dir/b.txt"),
        text(&scene, &scene.store.tree_of(&base).expect("read"), "dir/b.txt")
    );
    let all: Vec<_> = ["a.txt", "bin", "link", "new/deep/c.txt", "run.sh"]
        .map(|name| (path(name), PathContent::Nothing))
        .into();
    assert!(scene.store.edit_tree(&work, &all).is_ok(), "an empty tree is a tree");
}

//! Work that no remote would take, and work that is too much to look at, is refused with the reason.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use landfall_host::git::{CollectError, Oid};

use crate::git_scene::{Scene, git, options, sig, write};

/// Plain git with bytes on its stdin, in a folder; its answer must be one id.
fn feed(folder: &Path, args: &[&str], input: &[u8]) -> Oid {
    let mut child = Command::new("git")
        .args(args)
        .current_dir(folder)
        .env("HOME", "/nonexistent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git runs");
    child.stdin.take().expect("a pipe").write_all(input).expect("written");
    let output = child.wait_with_output().expect("git runs");
    String::from_utf8(output.stdout).expect("text").trim().parse().expect("an id")
}

/// A tree object of exactly these entries, whatever git thinks of them.
fn raw_tree(folder: &Path, entries: &[(&str, &str, &Oid)]) -> Oid {
    let mut bytes = Vec::new();
    for (mode, name, oid) in entries {
        bytes.extend_from_slice(format!("{mode} {name}\0").as_bytes());
        let hex = oid.as_str();
        bytes.extend(
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")),
        );
    }
    feed(folder, &["hash-object", "-w", "-t", "tree", "--literally", "--stdin"], &bytes)
}

#[test]
fn commits_that_a_checking_remote_refuses_are_refused_with_the_reason() {
    let scene = Scene::new();
    let store = scene.store.dir().to_owned();
    let blob = |text: &str| feed(&store, &["hash-object", "-w", "--stdin"], text.as_bytes());
    let a = blob("a\n");
    let zero: Oid = "0".repeat(40).parse().expect("an id");
    let modules = |text: &str| raw_tree(&store, &[("100644", ".gitmodules", &blob(text))]);
    let cases = [
        (
            ".gitmodules with an option as url",
            modules("[submodule \"x\"]\n\tpath = x\n\turl = -u./x\n"),
            "gitmodulesUrl",
        ),
        (
            ".gitmodules with a name that leads out",
            modules("[submodule \"../x\"]\n\tpath = x\n\turl = ./x\n"),
            "gitmodulesName",
        ),
        (
            ".gitmodules with an option as path",
            modules("[submodule \"x\"]\n\tpath = -x\n\turl = ./x\n"),
            "gitmodulesPath",
        ),
        (
            ".gitmodules with a command",
            modules("[submodule \"x\"]\n\tpath = x\n\turl = ./x\n\tupdate = !id\n"),
            "gitmodulesUpdate",
        ),
        (".gitmodules that is not a config file", modules("[submodule \"x\n"), "gitmodulesParse"),
        (
            ".gitmodules that is a link",
            raw_tree(&store, &[("120000", ".gitmodules", &a)]),
            "gitmodulesSymlink",
        ),
        ("a .git entry", raw_tree(&store, &[("100644", ".git", &a)]), "hasDotgit"),
        ("a .GIT entry", raw_tree(&store, &[("100644", ".GIT", &a)]), "hasDotgit"),
        ("a .. entry", raw_tree(&store, &[("100644", "..", &a)]), "hasDotdot"),
        ("a mode that git does not have", raw_tree(&store, &[("100777", "x", &a)]), "badFilemode"),
        ("a mode with a zero in front", raw_tree(&store, &[("0100644", "x", &a)]), "zeroPaddedFilemode"),
        ("a name twice", raw_tree(&store, &[("100644", "x", &a), ("100644", "x", &a)]), "duplicateEntries"),
        (
            "names out of order",
            raw_tree(&store, &[("100644", "y", &a), ("100644", "x", &a)]),
            "treeNotSorted",
        ),
        ("the id of nothing", raw_tree(&store, &[("160000", "x", &zero)]), "nullSha1"),
        ("a path as a name", raw_tree(&store, &[("100644", "x/y", &a)]), "fullPathname"),
        (
            ".gitattributes with an endless line",
            raw_tree(&store, &[("100644", ".gitattributes", &blob(&"a ".repeat(2000)))]),
            "gitattributesLineLength",
        ),
    ];
    let commit = |tree: &Oid| {
        scene
            .store
            .create_commit(tree, std::slice::from_ref(&scene.base), "work", &sig(), &sig())
            .expect("commits")
    };
    for (name, tree, fault) in &cases {
        let refusal = scene.store.remote_refusal(&commit(tree), &scene.base).expect("git runs");
        assert!(refusal.as_ref().is_some_and(|text| text.contains(fault)), "{name}: {refusal:?}");
    }
    // Below a folder, and in a commit in between whose fault the last one does not have any more.
    let bad = &cases[0].1;
    let nested = raw_tree(&store, &[("40000", "deep", &raw_tree(&store, &[("100644", ".git", &a)]))]);
    assert!(scene.store.remote_refusal(&commit(&nested), &scene.base).expect("git runs").is_some());
    let good = scene.store.tree_of(&scene.base).expect("read");
    let later = scene.store.create_commit(&good, &[commit(bad)], "later", &sig(), &sig()).expect("commits");
    assert!(scene.store.remote_refusal(&later, &scene.base).expect("git runs").is_some());
    // Good work passes, and what the base has already is not held against it.
    let fine =
        raw_tree(&store, &[("100644", ".gitmodules", &blob("[submodule \"x\"]\n\tpath = x\n\turl = ./x\n"))]);
    assert_eq!(scene.store.remote_refusal(&commit(&fine), &scene.base).expect("git runs"), None);

    // A killed engine leaves the folder of its check behind.
    let left = scene.store.dir().join("quarantine-1-0");
    std::fs::create_dir(&left).expect("made");
    scene.store.remove_quarantines().expect("removed");
    assert!(!left.exists() && scene.store.dir().join("objects").exists());
    let old = commit(bad);
    let modules = scene.store.read_blob(&old, b".gitmodules", 1000).expect("read").expect("there");
    let modules = feed(&store, &["hash-object", "-w", "--stdin"], &modules);
    let more = raw_tree(&store, &[("100644", ".gitmodules", &modules), ("100644", "x", &a)]);
    let next = scene
        .store
        .create_commit(&more, std::slice::from_ref(&old), "next", &sig(), &sig())
        .expect("commits");
    assert_eq!(scene.store.remote_refusal(&next, &old).expect("git runs"), None);
    let left = std::fs::read_dir(&store).expect("readable").filter_map(Result::ok);
    assert_eq!(left.filter(|entry| entry.file_name().to_string_lossy().starts_with("quarantine")).count(), 0);
}

#[test]
fn a_small_tree_with_a_million_paths_is_refused_without_being_listed() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    let root = ws.path();
    let mut entry = ("100644", feed(root, &["hash-object", "-w", "--stdin"], b"x"));
    for _ in 0..6 {
        let names: Vec<String> = (0..10).map(|number| format!("n{number}")).collect();
        let entries: Vec<(&str, &str, &Oid)> =
            names.iter().map(|name| (entry.0, name.as_str(), &entry.1)).collect();
        entry = ("40000", raw_tree(root, &entries));
    }
    let commit = git(root, ["commit-tree", "-p", "HEAD", "-m", "bomb", entry.1.as_str()]);
    git(root, ["update-ref", "HEAD", &commit]);
    let before = scene.git.spawned_count();
    match scene.store.collect_work(&ws, &options("refs/landfall/heads/x")) {
        Err(CollectError::TooManyPaths { head, paths, paths_max }) => {
            assert_eq!((head.as_str(), paths_max), (commit.as_str(), 200_000));
            assert!(paths > 1_000_000, "{paths}");
        }
        other => panic!("{other:?}"),
    }
    assert!(scene.git.spawned_count() - before < 6, "no index was made of it");
    // The workspace can be removed all the same, and the commit is kept.
    let keep = landfall_host::git::RefName::new("refs/landfall/kept/t1").expect("a name");
    let kept = scene.pool.remove_workspace(ws, &keep, &sig()).expect("removed");
    assert_eq!(kept.refs.first().map(|(_, oid)| oid.as_str().to_owned()), Some(commit));
    // One path more than allowed, none of them committed.
    let ws = scene.prepare("T2");
    for number in 0..4 {
        write(ws.path(), &format!("f{number}"), "x");
    }
    let few = landfall_host::git::CollectOptions { paths_max: 3, ..options("refs/landfall/heads/y") };
    let refused = scene.store.collect_work(&ws, &few);
    assert!(matches!(refused, Err(CollectError::TooManyPaths { paths: 4, .. })), "{refused:?}");
}

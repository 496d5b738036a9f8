//! Workspaces, the warm pool and lanes.

use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use landfall_host::git::{CollectError, IgnoredFilesPolicy, LostHeadPolicy, NestedRepoOutcome, RefName};

use crate::git_scene::{Scene, git, main_branch, options, read, sig, snapshot, try_git, write};

fn keep() -> RefName {
    RefName::new("refs/landfall/keep/t1").expect("a fine name")
}

#[test]
fn edge_13_an_agent_finds_an_ordinary_repository_on_its_own_branch() {
    let scene = Scene::new();
    let ws = scene.prepare("T7");
    assert_eq!(git(ws.path(), ["symbolic-ref", "HEAD"]), "refs/heads/landfall/t7");
    assert_eq!(git(ws.path(), ["status", "--porcelain"]), "");
    assert_eq!(git(ws.path(), ["fsck", "--connectivity-only"]), "");
    write(ws.path(), "x", "x");
    git(ws.path(), ["add", "-A"]);
    git(ws.path(), ["commit", "-q", "-m", "x"]);
    assert_eq!(
        git(ws.path(), ["log", "-1", "--format=%an <%ae>"]),
        "Landfall agent <agent@landfall.invalid>"
    );
}

#[test]
fn an_agent_moves_neither_the_persons_branch_nor_the_stores_refs() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    write(ws.path(), "x", "x");
    git(ws.path(), ["add", "-A"]);
    git(ws.path(), ["commit", "-q", "-m", "x"]);
    for refname in ["refs/heads/main", "refs/landfall/base"] {
        git(ws.path(), ["update-ref", refname, "HEAD"]);
    }
    git(ws.path(), ["branch", "-f", "other"]);
    scene.collect(&ws);
    assert_eq!(git(&scene.root(), ["rev-parse", "main"]), scene.base.as_str());
    assert_eq!(scene.store.read_base().expect("read"), Some(scene.base.clone()));
    assert!(!try_git(&scene.root(), ["rev-parse", "--verify", "-q", "other"]).0);
}

#[test]
fn leftovers_are_committed_with_everything_but_the_ignored() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    write(ws.path(), "a.txt", "changed\n");
    write(ws.path(), "fresh/new.txt", "new\n");
    write(ws.path(), "target/junk", "junk");
    write(ws.path(), "x.log", "junk");
    write(ws.path(), "run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(ws.path().join("run.sh"), PermissionsExt::from_mode(0o755)).expect("set");
    symlink("/etc/passwd", ws.path().join("link")).expect("linked");
    std::fs::remove_file(ws.path().join("dir/b.txt")).expect("removed");
    let collected = scene.collect(&ws);
    assert!(collected.leftovers);
    assert_eq!((collected.commits, collected.changed_paths_count, collected.dirty_count), (1, 5, 5));
    let lane = scene.lane("1");
    let path = lane.check_out_commit(&collected.head, IgnoredFilesPolicy::Remove).expect("checked out").path;
    assert_eq!(read(&path, "fresh/new.txt"), "new\n");
    assert_eq!(std::fs::metadata(path.join("run.sh")).expect("there").permissions().mode() & 0o111, 0o111);
    assert!(
        !path.join("target").exists() && !path.join("x.log").exists() && !path.join("dir/b.txt").exists()
    );
    // The agent's own repository is untouched: its HEAD did not move.
    assert_eq!(scene.store.workspace_head(&ws), Some(scene.base.clone()));

    let again = scene.collect(&ws);
    assert_eq!(again.tree, collected.tree, "collecting twice gives the same tree");
    let mut off = options("refs/landfall/heads/t1");
    off.commit_leftovers = None;
    let seen = scene.store.collect_work(&ws, &off).expect("collected");
    assert_eq!((seen.head, seen.leftovers, seen.dirty_count), (scene.base.clone(), false, 5));
}

#[test]
fn commits_and_leftovers_and_undone_changes_are_told_apart() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    write(ws.path(), "a.txt", "first\n");
    git(ws.path(), ["commit", "-q", "-a", "-m", "one"]);
    let one = scene.collect(&ws);
    assert_eq!((one.commits, one.leftovers, one.dirty_count), (1, false, 0));
    write(ws.path(), "a.txt", "second\n");
    let two = scene.collect(&ws);
    assert_eq!((two.commits, two.leftovers, two.dirty_count), (2, true, 1));
    assert_eq!(two.agent_head, one.head);
    write(ws.path(), "a.txt", "first\n");
    let three = scene.collect(&ws);
    assert_eq!((&three.head, three.leftovers, three.dirty_count), (&one.head, false, 0));
    // Rewritten history is allowed as long as it is whole.
    git(ws.path(), ["checkout", "-q", "--orphan", "fresh"]);
    git(ws.path(), ["commit", "-q", "-m", "orphan"]);
    let four = scene.collect(&ws);
    assert_eq!((four.descends, four.tree), (false, one.tree));
    // A detached HEAD and packed refs are read as well.
    git(ws.path(), ["pack-refs", "--all"]);
    assert_eq!(scene.collect(&ws).head, four.head);
    git(ws.path(), ["checkout", "-q", "--detach", "landfall/t1"]);
    assert_eq!(scene.collect(&ws).head, one.head);
}

#[test]
fn packed_objects_of_the_agent_arrive_too() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    for number in 0..300 {
        write(ws.path(), &format!("many/{number}.txt"), format!("{number}\n"));
    }
    git(ws.path(), ["add", "-A"]);
    git(ws.path(), ["commit", "-q", "-m", "many"]);
    git(ws.path(), ["repack", "-a", "-d", "-q", "-l"]);
    let collected = scene.collect(&ws);
    assert_eq!((collected.changed_paths_count, collected.leftovers), (300, false));
    assert!(scene.store.run_fsck().expect("git runs").problems.is_empty());
}

#[test]
fn folders_files_and_links_may_trade_places() {
    let scene = Scene::new();
    let outside = scene.temp.path().join("outside");
    write(&outside, "b.txt", "outside\n");
    write(&outside, "deep/c.txt", "c\n");
    let ws = scene.prepare("T1");
    std::fs::remove_file(ws.path().join("a.txt")).expect("removed");
    write(ws.path(), "a.txt/inner", "a folder now");
    std::fs::remove_dir_all(ws.path().join("dir")).expect("removed");
    symlink(&outside, ws.path().join("dir")).expect("linked");
    let collected = scene.collect(&ws);
    let names: Vec<_> = scene
        .store
        .diff_names(&scene.base, &collected.head)
        .expect("read")
        .into_iter()
        .map(|c| c.path)
        .collect();
    let expected: [&[u8]; 5] = [b"a.txt", b"a.txt/inner", b"dir", b"dir/b.txt", b"dir/deep/c.txt"];
    assert_eq!(names, expected);
    let landed = scene.land(&collected.head);
    let lane = scene.lane("1");
    lane.check_out_commit(&scene.base, IgnoredFilesPolicy::Remove).expect("checked out");
    lane.check_out_commit(&landed, IgnoredFilesPolicy::Remove).expect("checked out");
    lane.check_out_commit(&scene.base, IgnoredFilesPolicy::Remove).expect("and back");
    assert_eq!(read(&outside, "b.txt"), "outside\n");
    scene.pool.release_workspace(ws, &collected, &keep()).expect("released");
    let next = scene.prepare("T2");
    assert_eq!(snapshot(next.path()), snapshot(&scene.root()));
    assert_eq!(snapshot(&outside).len(), 2, "nothing outside was touched");
}

#[test]
fn a_nested_repository_is_reported_and_its_files_are_kept() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    for nested in ["sub", "sub/inner", "empty"] {
        std::fs::create_dir_all(ws.path().join(nested)).expect("made");
        git(&ws.path().join(nested), ["init", "-q"]);
    }
    write(ws.path(), "sub/code.txt", "code\n");
    write(ws.path(), "sub/inner/deep.txt", "deep\n");
    git(
        &ws.path().join("sub"),
        ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x"],
    );
    let collected = scene.collect(&ws);
    let mut nested: Vec<_> = collected.nested.iter().map(|n| (n.path.clone(), n.fate)).collect();
    nested.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(nested.iter().all(|(_, fate)| *fate == NestedRepoOutcome::FilesTaken), "{nested:?}");
    assert!(
        nested.iter().any(|(path, _)| path == b"sub") && nested.iter().any(|(path, _)| path == b"sub/inner")
    );
    for (path, content) in [("sub/code.txt", "code\n"), ("sub/inner/deep.txt", "deep\n")] {
        let blob = scene.store.read_blob(&collected.head, path.as_bytes(), 100).expect("read");
        assert_eq!(blob.as_deref(), Some(content.as_bytes()), "{path}");
    }
    // An agent that commits the link itself is reported as well.
    git(ws.path(), ["add", "sub"]);
    git(ws.path(), ["commit", "-q", "-m", "a gitlink"]);
    let linked = scene.collect(&ws);
    assert!(
        linked.nested.iter().any(|n| n.path == b"sub" && n.fate == NestedRepoOutcome::Gitlink),
        "{:?}",
        linked.nested
    );
    scene.pool.release_workspace(ws, &linked, &keep()).expect("released");
    assert_eq!(snapshot(scene.prepare("T2").path()), snapshot(&scene.root()));
}

#[test]
fn preparing_again_returns_the_same_workspace_with_its_work() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    write(ws.path(), "work", "in progress");
    let again = scene.prepare("T1");
    assert_eq!(again.path(), ws.path());
    assert_eq!(read(again.path(), "work"), "in progress");
    assert_eq!(scene.pool.workspace_names().expect("listed"), ["T1"]);
    for name in ["", ".", "..", "../x", "a/b", ".engine", "-x", "a b", "ä"] {
        assert!(scene.pool.prepare_workspace(name, &scene.base, "landfall/x").is_err(), "{name}");
        assert!(scene.pool.find_workspace(name).is_none(), "{name}");
    }
    assert!(scene.pool.prepare_workspace("T2", &scene.base, "../evil").is_err());
}

#[test]
fn a_half_made_workspace_is_made_anew_and_an_unknown_folder_is_kept_aside() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    // As after a crash before the last step: the room has no meta yet.
    std::fs::remove_file(scene.pool.dir().join(".engine/rooms/T1/meta")).expect("removed");
    write(ws.path(), "half", "made");
    let again = scene.prepare("T1");
    assert_eq!(snapshot(again.path()), snapshot(&scene.root()));

    write(scene.pool.dir(), "T2/precious", "someone's");
    let ws = scene.prepare("T2");
    assert_eq!(snapshot(ws.path()), snapshot(&scene.root()));
    assert_eq!(read(scene.pool.dir(), ".engine/attic/T2.0/precious"), "someone's");
}

#[test]
fn a_reused_checkout_is_as_good_as_new() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    git(ws.path(), ["update-index", "--skip-worktree", "a.txt"]);
    git(ws.path(), ["update-index", "--assume-unchanged", "dir/b.txt"]);
    write(ws.path(), "a.txt", "hidden edit\n");
    write(ws.path(), "dir/b.txt", "hidden edit\n");
    write(ws.path(), "target/cache/x", "x");
    write(ws.path(), "closed/deep/x", "x");
    git(ws.path(), ["init", "-q", "nested"]);
    write(ws.path(), ".git/config", "[core]\n\tworktree = /\n");
    for folder in ["closed/deep", "closed", "dir"] {
        std::fs::set_permissions(ws.path().join(folder), PermissionsExt::from_mode(0o500)).expect("set");
    }
    let fifo = ws.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs");
    assert!(made.success());
    let collected = scene.collect(&ws);
    assert_eq!(read_blob(&scene, &collected.head, "a.txt"), "hidden edit\n", "hidden edits are seen");
    assert_eq!(read_blob(&scene, &collected.head, "dir/b.txt"), "hidden edit\n");
    scene.pool.release_workspace(ws, &collected, &keep()).expect("released");
    assert_eq!(scene.pool.warm_count(), 1);
    assert!(scene.pool.find_workspace("T1").is_none());

    let before = scene.git.spawned_count();
    let next = scene.prepare("T2");
    assert!(scene.git.spawned_count() - before <= 2, "reuse costs at most two processes");
    assert_eq!(scene.pool.warm_count(), 0);
    assert_eq!(snapshot(next.path()), snapshot(&scene.root()));
    assert_eq!(git(next.path(), ["status", "--porcelain", "--ignored"]), "");
    assert_eq!(
        git(next.path(), ["ls-files", "-v"]).lines().filter(|line| !line.starts_with("H ")).count(),
        0
    );
}

#[test]
fn a_spare_is_a_workspace_but_for_its_name_and_costs_no_process_to_take() {
    let scene = Scene::new();
    assert!(!scene.pool.make_spare(&scene.base, &|_| true).expect("nothing to do"), "there is nothing warm");
    for (ws, name) in ["T1", "T2"].map(|name| (scene.prepare(name), name)) {
        write(ws.path(), "a.txt", format!("by {name}\n"));
        write(ws.path(), "target/cache/x", "x");
        let collected = scene.collect(&ws);
        scene.pool.release_workspace(ws, &collected, &keep()).expect("released");
    }
    write(&scene.root(), "new.txt", "new\n");
    git(&scene.root(), ["add", "-A"]);
    git(&scene.root(), ["commit", "-q", "-m", "more"]);
    let new = scene.store.import_branch(&scene.repo, &main_branch()).expect("imported");

    assert!(scene.pool.make_spare(&scene.base, &|_| false).expect("made"));
    assert!(scene.pool.make_spare(&new, &|_| false).expect("made"));
    assert!(
        !scene.pool.make_spare(&new, &|_| false).expect("nothing to do"),
        "both are spares, none is stale"
    );
    assert_eq!((scene.pool.list_spares().len(), scene.pool.warm_count()), (2, 2));
    assert!(scene.pool.make_spare(&new, &|spare| spare.base == scene.base).expect("made"), "the stale one");
    assert!(scene.pool.list_spares().iter().all(|spare| spare.base == new));

    let before = scene.git.spawned_count();
    assert!(scene.pool.prepare_spare("T3", "landfall/t3", &|_| false).expect("looked").is_none());
    let fits = scene.pool.prepare_spare("T3", "landfall/t3", &|spare| spare.base == new).expect("taken");
    let other = scene.pool.prepare_workspace("T4", &new, "landfall/t4").expect("taken");
    assert_eq!(scene.git.spawned_count(), before, "no process");
    assert_eq!((scene.pool.list_spares().len(), scene.pool.warm_count()), (0, 0));
    for (ws, name) in [(&fits.expect("one fits"), "t3"), (&other, "t4")] {
        assert_eq!((ws.base(), ws.branch()), (&new, format!("landfall/{name}").as_str()));
        assert_eq!(git(ws.path(), ["symbolic-ref", "HEAD"]), format!("refs/heads/landfall/{name}"));
        assert_eq!(git(ws.path(), ["rev-parse", "HEAD"]), new.as_str());
        assert_eq!(git(ws.path(), ["status", "--porcelain", "--ignored"]), "");
        assert_eq!(git(ws.path(), ["fsck", "--connectivity-only", "--no-dangling"]), "");
        assert_eq!(snapshot(ws.path()), snapshot(&scene.root()));
    }
}

#[test]
fn a_spare_that_does_not_fit_is_turned_like_any_warm_checkout() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    let collected = scene.collect(&ws);
    scene.pool.release_workspace(ws, &collected, &keep()).expect("released");
    assert!(scene.pool.make_spare(&scene.base, &|_| false).expect("made"));
    write(&scene.root(), "new.txt", "new\n");
    git(&scene.root(), ["add", "-A"]);
    git(&scene.root(), ["commit", "-q", "-m", "more"]);
    let new = scene.store.import_branch(&scene.repo, &main_branch()).expect("imported");
    let next = scene.pool.prepare_workspace("T2", &new, "landfall/t2").expect("prepared");
    assert_eq!(scene.pool.warm_count(), 0);
    assert_eq!(snapshot(next.path()), snapshot(&scene.root()));
    assert_eq!(git(next.path(), ["status", "--porcelain", "--ignored"]), "");
    // One that was being made when the engine died is thrown away: nobody knows what lies around in it.
    let turning = scene.pool.dir().join(".engine/turning");
    std::fs::create_dir_all(turning.join("checkout")).expect("ours");
    landfall_host::git::WorkspacePool::open(&scene.store, scene.pool.dir()).expect("opened");
    assert!(!turning.exists());
}

fn read_blob(scene: &Scene, commit: &landfall_host::git::Oid, path: &str) -> String {
    let bytes = scene.store.read_blob(commit, path.as_bytes(), 1000).expect("read").expect("there");
    String::from_utf8(bytes).expect("text")
}

#[test]
fn release_refuses_work_that_was_not_collected() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    let collected = scene.collect(&ws);
    write(ws.path(), "late", "late");
    git(ws.path(), ["add", "-A"]);
    git(ws.path(), ["commit", "-q", "-m", "late"]);
    assert!(scene.pool.release_workspace(ws.clone(), &collected, &keep()).is_err());
    assert_eq!(read(ws.path(), "late"), "late");
}

#[test]
fn removal_keeps_unmerged_commits_dirty_work_and_other_branches() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    write(ws.path(), "side.txt", "side\n");
    git(ws.path(), ["checkout", "-q", "-b", "side"]);
    git(ws.path(), ["add", "-A"]);
    git(ws.path(), ["commit", "-q", "-m", "side"]);
    git(ws.path(), ["checkout", "-q", "landfall/t1"]);
    write(ws.path(), "committed.txt", "c\n");
    git(ws.path(), ["add", "-A"]);
    git(ws.path(), ["commit", "-q", "-m", "c"]);
    write(ws.path(), "dirty.txt", "d\n");
    let path = ws.path().to_owned();
    let kept = scene.pool.remove_workspace(ws, &keep(), &sig()).expect("removed");
    assert!(!path.exists() && scene.pool.find_workspace("T1").is_none());
    assert_eq!(kept.refs.len(), 2, "{kept:?}");
    let head = scene.store.resolve_ref(&keep()).expect("read").expect("kept");
    assert_eq!(read_blob(&scene, &head, "dirty.txt"), "d\n");
    assert_eq!(read_blob(&scene, &head, "committed.txt"), "c\n");
    assert_eq!(read_blob(&scene, &kept.refs[1].1, "side.txt"), "side\n");
    assert!(scene.store.run_fsck().expect("git runs").problems.is_empty());

    let clean = scene.prepare("T2");
    let kept = scene
        .pool
        .remove_workspace(clean, &RefName::new("refs/landfall/keep/t2").expect("fine"), &sig())
        .expect("removed");
    assert!(kept.refs.is_empty(), "nothing to keep, no ref");
}

/// A branch beside HEAD, two stashes and a tag that nothing else reaches, by an agent that fetched many tags.
fn side_work(scene: &Scene, path: &Path) {
    git(path, ["checkout", "-q", "-b", "side"]);
    commit(path, "side.txt");
    git(path, ["checkout", "-q", "--detach", scene.base.as_str()]);
    commit(path, "tagged.txt");
    git(path, ["tag", "-a", "-m", "mine", "mine"]);
    git(path, ["checkout", "-q", "landfall/t1"]);
    for name in ["older", "newer"] {
        write(path, "a.txt", name);
        git(path, ["stash", "-q"]);
    }
    for number in 0..60 {
        git(path, ["tag", &format!("v{number}"), scene.base.as_str()]);
    }
    git(path, ["pack-refs", "--all"]);
    git(path, ["checkout", "-q", "-b", "loose", scene.base.as_str()]);
    commit(path, "loose.txt");
    git(path, ["checkout", "-q", "landfall/t1"]);
}

fn commit(path: &Path, file: &str) {
    write(path, file, file);
    git(path, ["add", "-A"]);
    git(path, ["commit", "-q", "-m", file]);
}

fn kept_everything(scene: &Scene, refs: &[(RefName, landfall_host::git::Oid)]) {
    let store = scene.store.dir();
    let holds = |spec: &str| {
        let shown = |name: &RefName| try_git(store, ["show", &format!("{name}^{{commit}}:{spec}")]);
        refs.iter()
            .map(|(name, _)| shown(name))
            .filter(|(ok, _)| *ok)
            .map(|(_, text)| text)
            .collect::<Vec<_>>()
    };
    for file in ["side.txt", "tagged.txt", "loose.txt"] {
        assert_eq!(holds(file), [file], "{refs:?}");
    }
    let stashed = holds("a.txt");
    assert!(stashed.contains(&"older".to_owned()) && stashed.contains(&"newer".to_owned()), "{stashed:?}");
    assert!(scene.store.run_fsck().expect("git runs").problems.is_empty());
}

#[test]
fn a_release_keeps_other_branches_tags_and_every_stash() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    side_work(&scene, ws.path());
    let collected = scene.collect(&ws);
    let kept = scene.pool.release_workspace(ws, &collected, &keep()).expect("released");
    kept_everything(&scene, &kept);

    let ws = scene.prepare("T2");
    commit(ws.path(), "plain.txt");
    let collected = scene.collect(&ws);
    let before = scene.git.spawned_count();
    assert_eq!(scene.pool.release_workspace(ws, &collected, &keep()).expect("released"), []);
    assert_eq!(scene.git.spawned_count(), before, "no process if there is nothing to keep");
}

#[test]
fn a_removal_keeps_loose_branches_beside_many_packed_tags() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    side_work(&scene, ws.path());
    let kept = scene.pool.remove_workspace(ws, &keep(), &sig()).expect("removed");
    kept_everything(&scene, &kept.refs);
}

#[test]
fn more_branches_than_are_kept_leave_the_workspace_where_it_is() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    for number in 0..51 {
        let made = git(ws.path(), ["commit-tree", "-m", &number.to_string(), "HEAD^{tree}"]);
        git(ws.path(), ["update-ref", &format!("refs/heads/b{number}"), &made]);
    }
    let collected = scene.collect(&ws);
    assert!(scene.pool.release_workspace(ws.clone(), &collected, &keep()).is_err());
    assert!(scene.pool.remove_workspace(ws.clone(), &keep(), &sig()).is_err());
    assert_eq!(git(ws.path(), ["branch", "--list", "b*"]).lines().count(), 51);
}

/// Runs the test `name` again with its temp folder on a small file system of its own, where the machine allows it.
/// True inside.
fn on_a_small_disk(name: &str) -> bool {
    if std::env::var_os("SMALL_DISK").is_some() {
        return true;
    }
    let temp = tempfile::tempdir().expect("a temp folder");
    let script = "mount -t tmpfs -o size=8m tmpfs \"$TMPDIR\" || exit 97; exec \"$@\"";
    let said = Command::new("unshare")
        .args(["-Urm", "sh", "-c", script, "sh"])
        .arg(std::env::current_exe().expect("known"))
        .args(["--exact", name, "--nocapture"])
        .env("TMPDIR", temp.path())
        .env("SMALL_DISK", "1")
        .output()
        .expect("unshare runs");
    let err = String::from_utf8_lossy(&said.stderr);
    if said.status.code() == Some(97) || err.starts_with("unshare") {
        eprintln!("landfall-skip: no file system can be mounted here ({})", err.trim());
    } else {
        assert!(said.status.success(), "{}\n{err}", String::from_utf8_lossy(&said.stdout));
    }
    false
}

#[test]
fn a_full_disk_is_not_the_agents_fault_and_nothing_is_removed() {
    if !on_a_small_disk("git_workspace::a_full_disk_is_not_the_agents_fault_and_nothing_is_removed") {
        return;
    }
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    git(ws.path(), ["checkout", "-q", "-b", "other"]);
    let mut noise = 1_u64;
    let bytes = (0..200 << 10).map(|_| {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        noise as u8
    });
    write(ws.path(), "big.bin", bytes.collect::<Vec<u8>>());
    commit(ws.path(), "work.txt");
    git(ws.path(), ["checkout", "-q", "landfall/t1"]);
    let filler = scene.temp.path().join("filler");
    // Too little for our copy of its objects; enough for the copy, and too little for git to store them.
    for room in [100 << 10, 300 << 10] {
        let full = std::io::copy(
            &mut std::io::repeat(7).take(8 << 20),
            &mut std::fs::File::create(&filler).expect("made"),
        );
        assert_eq!(full.expect_err("it is full").kind(), std::io::ErrorKind::StorageFull);
        let file = std::fs::File::options().write(true).open(&filler).expect("there");
        file.set_len(file.metadata().expect("read").len() - room).expect("cut");
        let kept = scene.pool.remove_workspace(ws.clone(), &keep(), &sig());
        assert!(matches!(kept, Err(CollectError::Git(_))), "{room}: {kept:?}");
        assert_eq!(git(ws.path(), ["show", "other:work.txt"]), "work.txt", "{room}");
    }
    std::fs::remove_file(&filler).expect("removed");
    let kept = scene.pool.remove_workspace(ws, &keep(), &sig()).expect("removed, now that there is room");
    assert_eq!(read_blob(&scene, &kept.refs[0].1, "work.txt"), "work.txt");
}

#[test]
fn removal_saves_the_files_even_when_the_repository_is_wrecked() {
    let scene = Scene::new();
    for (number, wreck) in ["gone", "head", "objects"].into_iter().enumerate() {
        let ws = scene.prepare(&format!("T{number}"));
        write(ws.path(), "work.txt", wreck);
        git(ws.path(), ["add", "-A"]);
        git(ws.path(), ["commit", "-q", "-m", "work"]);
        match wreck {
            "gone" => std::fs::remove_dir_all(ws.path().join(".git")).expect("removed"),
            "head" => write(ws.path(), ".git/HEAD", "ref: ../../../etc/passwd\n"),
            _ => {
                std::fs::remove_dir_all(ws.path().join(".git/objects")).expect("removed");
                std::fs::create_dir(ws.path().join(".git/objects")).expect("made");
            }
        }
        let refused = scene.store.collect_work(&ws, &options("refs/landfall/heads/x"));
        match wreck {
            "objects" => assert!(matches!(refused, Err(CollectError::Broken { .. })), "{refused:?}"),
            _ => assert!(matches!(refused, Err(CollectError::HeadUnreadable { .. })), "{refused:?}"),
        }
        let pin = RefName::new(&format!("refs/landfall/keep/t{number}")).expect("fine");
        scene.pool.remove_workspace(ws, &pin, &sig()).expect("removed");
        let head = scene.store.resolve_ref(&pin).expect("read").expect("kept");
        assert_eq!(read_blob(&scene, &head, "work.txt"), wreck);
    }
}

#[test]
fn no_removal_follows_a_link_out_of_the_folder() {
    let scene = Scene::new();
    let outside = scene.temp.path().join("outside");
    write(&outside, "precious", "p");
    let ws = scene.prepare("T1");
    symlink(&outside, ws.path().join("link")).expect("linked");
    symlink("..", ws.path().join("up")).expect("linked");
    write(ws.path(), "target/x", "x");
    symlink(&outside, ws.path().join("target/link")).expect("linked");
    std::fs::hard_link(outside.join("precious"), ws.path().join("hard")).expect("linked");
    scene.pool.remove_workspace(ws, &keep(), &sig()).expect("removed");
    assert_eq!(read(&outside, "precious"), "p");

    // The root itself becomes a link: only the link goes.
    let ws = scene.prepare("T2");
    std::fs::rename(ws.path(), scene.temp.path().join("moved")).expect("moved");
    symlink(&outside, ws.path()).expect("linked");
    scene.pool.remove_workspace(ws.clone(), &keep(), &sig()).expect("removed");
    assert!(ws.path().symlink_metadata().is_err());
    assert_eq!(read(&outside, "precious"), "p");
    assert!(scene.temp.path().join("moved/a.txt").exists());

    // So deep that neither a path nor the number of open files suffices.
    let ws = scene.prepare("T3");
    let deep = std::process::Command::new("python3")
        .args(["-c", "import os\nfor i in range(3000):\n os.mkdir('target' if i == 0 else 'd'*100)\n os.chdir('target' if i == 0 else 'd'*100)"])
        .current_dir(ws.path())
        .status();
    if deep.is_ok_and(|status| status.success()) {
        let path = ws.path().to_owned();
        scene.pool.remove_workspace(ws, &keep(), &sig()).expect("removed");
        assert!(!path.exists());
    }
}

#[test]
fn sixteen_workspaces_are_prepared_at_once() {
    let scene = Scene::new();
    for round in 0..2 {
        let made: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16)
                .map(|n| {
                    scope.spawn({
                        let scene = &scene;
                        move || scene.prepare(&format!("T{}", n % 12))
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert_eq!(scene.pool.workspace_names().expect("listed").len(), 12);
        let mut seen = std::collections::BTreeSet::new();
        for ws in &made {
            assert_eq!(git(ws.path(), ["status", "--porcelain"]), "", "round {round}");
            seen.insert(ws.name().to_owned());
        }
        std::thread::scope(|scope| {
            for name in seen {
                let scene = &scene;
                scope.spawn(move || {
                    let ws = scene.pool.find_workspace(&name).expect("ready");
                    write(ws.path(), "x", &name);
                    let pin = format!("refs/landfall/heads/{}", name.to_lowercase());
                    let collected = scene.store.collect_work(&ws, &options(&pin)).expect("collected");
                    assert_eq!(collected.changed_paths_count, 1);
                    scene.pool.release_workspace(ws, &collected, &keep()).expect("released");
                });
            }
        });
        assert_eq!(scene.pool.warm_count(), 12);
    }
    assert!(scene.store.run_fsck().expect("git runs").problems.is_empty());
    assert_eq!(scene.pool.drop_warm().expect("dropped"), 12);
}

#[test]
fn a_lane_equals_its_commit_whatever_was_left_in_it() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    write(ws.path(), "a.txt", "changed\n");
    write(ws.path(), "added/x.txt", "x\n");
    let head = scene.collect(&ws).head;
    let lane = scene.lane("1");
    let first = lane.check_out_commit(&head, IgnoredFilesPolicy::Keep).expect("checked out");
    assert_eq!(first.tree, scene.store.tree_of(&head).expect("read"));
    assert_eq!(git(&first.path, ["rev-parse", "HEAD"]), head.as_str(), "tools that ask git get an answer");

    // A verification that leaves caches, junk, edits, a poisoned .git and a nested repository.
    write(&first.path, "target/cache", "warm");
    write(&first.path, "junk.txt", "junk");
    write(&first.path, "a.txt", "tampered");
    git(&first.path, ["init", "-q", "nested"]);
    write(&first.path, ".git/config", "[core]\n\tfsmonitor = false\n\tworktree = /\n");
    let before = scene.git.spawned_count();
    let kept = lane.check_out_commit(&head, IgnoredFilesPolicy::Keep).expect("checked out");
    assert!(scene.git.spawned_count() - before <= 2, "two processes");
    assert_eq!(read(&kept.path, "target/cache"), "warm");
    assert_eq!(read(&kept.path, "a.txt"), "changed\n");
    assert!(!kept.path.join("junk.txt").exists() && !kept.path.join("nested").exists());

    let base = lane.check_out_commit(&scene.base, IgnoredFilesPolicy::Remove).expect("checked out");
    assert_eq!(snapshot(&base.path), snapshot(&scene.root()));
    // The whole tree replaced by a link: made anew, the target untouched.
    let outside = scene.temp.path().join("outside");
    write(&outside, "precious", "p");
    std::fs::remove_dir_all(&base.path).expect("removed");
    symlink(&outside, &base.path).expect("linked");
    let again = lane.check_out_commit(&head, IgnoredFilesPolicy::Remove).expect("checked out");
    assert_eq!(read(&again.path, "a.txt"), "changed\n");
    assert_eq!(snapshot(&outside).len(), 1);
}

#[test]
fn attributes_of_a_candidate_change_neither_the_tree_nor_the_freshness_of_a_lane() {
    let scene = Scene::with(|root| {
        write(root, "plain.txt", "one\ntwo\n");
        write(root, "crlf.txt", "one\r\ntwo\r\n");
        write(root, "id.c", "/* $Id$ */\n");
        write(root, "wide.txt", "wide\n");
        write(root, "gone.txt", "gone\n");
    });
    let ws = scene.prepare("T1");
    let rules = "plain.txt text eol=crlf\ncrlf.txt text\nid.c ident\nwide.txt working-tree-encoding=UTF-16LE\n\
                 gone.txt export-ignore\n* filter=nothing\n";
    write(ws.path(), ".gitattributes", rules);
    git(ws.path(), ["add", ".gitattributes"]);
    git(ws.path(), ["commit", "-q", "-m", "rules"]);
    let mut off = options("refs/landfall/heads/t1");
    off.commit_leftovers = None;
    let head = scene.store.collect_work(&ws, &off).expect("collected").head;
    let tree = scene.store.tree_of(&head).expect("read");
    assert_eq!(scene.store.diff_names(&scene.base, &head).expect("read").len(), 1);

    let reused = scene.lane("reused");
    reused.check_out_commit(&scene.base, IgnoredFilesPolicy::Remove).expect("checked out");
    let fresh = scene.lane("fresh");
    for _ in 0..3 {
        for (commit, eol) in [(&head, "one\r\ntwo\r\n"), (&scene.base, "one\ntwo\n")] {
            let old = reused.check_out_commit(commit, IgnoredFilesPolicy::Remove).expect("checked out");
            std::fs::remove_dir_all(fresh.path()).ok();
            let new = fresh.check_out_commit(commit, IgnoredFilesPolicy::Remove).expect("checked out");
            assert_eq!(snapshot(&old.path), snapshot(&new.path), "reuse equals a fresh checkout");
            assert_eq!(read(&old.path, "plain.txt"), eol);
            if commit == &head {
                assert_eq!(old.tree, tree);
            }
        }
    }
}

#[test]
fn a_workspace_that_is_collected_without_a_head_says_so() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    write(ws.path(), "work.txt", "w");
    std::fs::remove_file(ws.path().join(".git/HEAD")).expect("removed");
    let mut lost = options("refs/landfall/heads/t1");
    lost.lost_head = LostHeadPolicy::UseBase;
    let collected = scene.store.collect_work(&ws, &lost).expect("collected");
    assert_eq!((collected.agent_head, collected.leftovers), (scene.base.clone(), true));
}

//! Checkouts after an unclean end: untrusted workspaces are made again, and untrusted spares and lanes go.

use std::path::{Path, PathBuf};

use landfall_host::git::{IgnoredFilesPolicy, Lane, Oid, RefName, Workspace};
use landfall_host::mount::MountIdentity;

use crate::git_scene::{Scene, git, read, sig, snapshot, write};

fn keep() -> RefName {
    RefName::new("refs/landfall/kept/t1/unclean-end-1").expect("a fine name")
}

fn head(workspace: &Workspace) -> Oid {
    git(workspace.path(), ["rev-parse", "HEAD"]).parse().expect("an object id")
}

/// A workspace with two commits of an agent and one file that it did not commit.
fn worked() -> (Scene, Workspace) {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    for number in 1..=2 {
        write(ws.path(), &format!("f{number}.txt"), format!("work {number}\n"));
        git(ws.path(), ["add", "-A"]);
        git(ws.path(), ["commit", "-q", "-m", &format!("work {number}")]);
    }
    write(ws.path(), "open.txt", "not committed\n");
    (scene, ws)
}

fn loose_object(workspace: &Workspace, oid: &str) -> PathBuf {
    workspace.path().join(".git/objects").join(&oid[..2]).join(&oid[2..])
}

/// Empties a file as a power cut does. Objects of git are read-only, so it is replaced.
fn empty(path: &Path) {
    std::fs::remove_file(path).expect("it is there");
    std::fs::write(path, b"").expect("it can be written");
}

/// What a rebuild must leave, whatever was damaged: a clean checkout of `head` on the agent's branch, and no damage in it.
#[track_caller]
fn check_rebuilt(scene: &Scene, ws: &Workspace, head: &Oid, story: &str) {
    assert_eq!(git(ws.path(), ["rev-parse", "HEAD"]), head.as_str(), "{story}");
    assert_eq!(git(ws.path(), ["symbolic-ref", "HEAD"]), "refs/heads/landfall/t1", "{story}");
    assert_eq!(git(ws.path(), ["status", "--porcelain"]), "", "{story}");
    git(ws.path(), ["fsck", "--full"]);
    let files = snapshot(ws.path());
    assert!(files.iter().all(|(_, content)| !content.is_empty()), "{story}: {files:?}");
    let again = scene.pool.find_workspace("T1").expect("it is ready");
    assert_eq!(again.base(), &scene.base, "{story}: it began where it began");
    assert_eq!(again.recorded_mount(), scene.pool.current_mount(), "{story}");
    let collected = scene.collect(&again);
    assert_eq!(
        (&collected.head, collected.leftovers),
        (head, false),
        "{story}: nothing is taken as leftovers"
    );
    assert!(scene.store.run_fsck().expect("git runs").problems.is_empty(), "{story}");
}

#[test]
fn an_untrusted_workspace_is_rebuilt_from_the_newest_whole_commit() {
    type Damage = fn(&Workspace);
    // Each with the number of commits that are whole afterwards.
    let table: [(&str, Damage, usize); 9] = [
        ("nothing is damaged", |_| {}, 2),
        ("an uncommitted file is empty", |ws| empty(&ws.path().join("open.txt")), 2),
        ("a committed file is empty", |ws| empty(&ws.path().join("f1.txt")), 2),
        ("the index is empty", |ws| empty(&ws.path().join(".git/index")), 2),
        (
            "the newest commit is empty",
            |ws| empty(&loose_object(ws, &git(ws.path(), ["rev-parse", "HEAD"]))),
            1,
        ),
        (
            "a file of the newest commit is empty",
            |ws| empty(&loose_object(ws, &git(ws.path(), ["rev-parse", "HEAD:f2.txt"]))),
            1,
        ),
        (
            "a tree of the first commit is empty",
            |ws| empty(&loose_object(ws, &git(ws.path(), ["rev-parse", "HEAD~1^{tree}"]))),
            0,
        ),
        (
            "HEAD and its log are empty",
            |ws| {
                empty(&ws.path().join(".git/HEAD"));
                empty(&ws.path().join(".git/logs/HEAD"));
            },
            0,
        ),
        ("the branch is empty", |ws| empty(&ws.path().join(".git/refs/heads/landfall/t1")), 2),
    ];
    for (story, damage, whole) in table {
        let (scene, ws) = worked();
        let commits =
            [scene.base.clone(), git(ws.path(), ["rev-parse", "HEAD~1"]).parse().expect("an id"), head(&ws)];
        damage(&ws);
        let rebuilt = scene.pool.rebuild_workspace(&ws, None, &keep(), &sig()).expect("the machine is fine");
        assert_eq!(rebuilt.head, commits[whole], "{story}");
        check_rebuilt(&scene, &ws, &commits[whole], story);
        let kept = rebuilt.uncommitted.expect("something was not committed");
        assert_eq!(scene.store.resolve_ref(&keep()).expect("readable"), Some(kept.clone()), "{story}");
        let names = scene.store.diff_names(&rebuilt.head, &kept).expect("both are there");
        assert!(names.iter().any(|it| it.path == b"open.txt"), "{story}: what was open is kept: {names:?}");
        assert_eq!(
            scene.pool.find_workspace("T1").and_then(|ws| ws.unannounced_rebuild()).map(|it| it.head),
            Some(rebuilt.head)
        );
    }
}

#[test]
fn a_workspace_without_its_folder_or_git_is_rebuilt_from_what_was_collected() {
    for (story, gone) in
        [("the folder is gone", ""), ("its .git is gone", ".git"), ("its objects are gone", ".git/objects")]
    {
        let (scene, ws) = worked();
        let collected = scene.collect(&ws);
        std::fs::remove_dir_all(ws.path().join(gone)).expect("it was there");
        if gone.is_empty() {
            std::fs::create_dir(ws.path()).expect("an empty one came back");
        }
        let rebuilt = scene
            .pool
            .rebuild_workspace(&ws, Some(&collected.head), &keep(), &sig())
            .expect("the machine is fine");
        assert_eq!(rebuilt.head, collected.head, "{story}");
        check_rebuilt(&scene, &ws, &collected.head, story);
        assert_eq!(read(ws.path(), "open.txt"), "not committed\n", "{story}: it was collected before");
    }
}

#[test]
fn a_rebuild_that_is_cut_short_is_repeated_and_keeps_the_same_work() {
    let (scene, ws) = worked();
    let newest = head(&ws);
    let first = scene.pool.rebuild_workspace(&ws, None, &keep(), &sig()).expect("the machine is fine");
    // As after a crash behind the plan: the plan is on disk, the folder is half gone.
    let room = scene.pool.dir().join(".engine/rooms/T1");
    std::fs::rename(room.join("rebuilt"), room.join("rebuild")).expect("renamed");
    std::fs::remove_dir_all(ws.path()).expect("removed");
    std::fs::create_dir(ws.path()).expect("an empty folder");
    let again = scene.pool.rebuild_workspace(&ws, None, &keep(), &sig()).expect("the machine is fine");
    assert_eq!(again, first);
    check_rebuilt(&scene, &ws, &newest, "the second time");
}

#[test]
fn a_second_power_cut_loses_nothing_that_survived_the_first() {
    let (scene, ws) = worked();
    let newest = head(&ws);
    scene.pool.rebuild_workspace(&ws, None, &keep(), &sig()).expect("the machine is fine");
    empty(&ws.path().join(".git/HEAD"));
    empty(&ws.path().join("f1.txt"));
    let second = RefName::new("refs/landfall/kept/t1/unclean-end-2").expect("a fine name");
    let rebuilt = scene.pool.rebuild_workspace(&ws, None, &second, &sig()).expect("the machine is fine");
    assert_eq!(rebuilt.head, newest);
    check_rebuilt(&scene, &ws, &newest, "after the second");
    assert!(
        scene.store.resolve_ref(&keep()).expect("readable").is_some(),
        "what the first one kept is still kept"
    );
}

#[test]
fn other_branches_of_the_agent_survive_a_rebuild() {
    let (scene, ws) = worked();
    git(ws.path(), ["checkout", "-q", "-b", "idea", "HEAD~1"]);
    write(ws.path(), "idea.txt", "idea\n");
    git(ws.path(), ["add", "idea.txt"]);
    git(ws.path(), ["commit", "-q", "-m", "idea"]);
    let idea = head(&ws);
    git(ws.path(), ["checkout", "-q", "landfall/t1"]);
    scene.pool.rebuild_workspace(&ws, None, &keep(), &sig()).expect("the machine is fine");
    let below = RefName::new("refs/landfall/kept").expect("a fine name");
    let kept = scene.store.list_refs(&below).expect("git runs");
    assert!(kept.iter().any(|(_, oid)| *oid == idea), "{kept:?}");
}

#[test]
fn a_rebuild_is_announced_once_and_forgotten_with_the_workspace() {
    let (scene, ws) = worked();
    scene.pool.rebuild_workspace(&ws, None, &keep(), &sig()).expect("the machine is fine");
    assert!(ws.unannounced_rebuild().is_some());
    ws.announce_rebuild().expect("it can be noted");
    assert_eq!(ws.unannounced_rebuild(), None);
    let collected = scene.collect(&ws);
    let done = RefName::new("refs/landfall/kept/t1/done").expect("a fine name");
    scene.pool.release_workspace(ws, &collected, &done).expect("it is given back");
    let next = scene.prepare("T2");
    next.announce_rebuild().expect("there is nothing to announce");
    assert_eq!(next.unannounced_rebuild(), None, "the next task knows nothing of it");
}

#[test]
fn untrusted_spares_and_lanes_are_deleted_and_trusted_ones_are_recorded_anew() {
    let scene = Scene::new();
    let release = |name: &str| {
        let ws = scene.prepare(name);
        let collected = scene.collect(&ws);
        scene.pool.release_workspace(ws, &collected, &keep()).expect("it is given back");
    };
    release("T1");
    let here = scene.pool.current_mount().expect("Linux can tell");
    let lanes = scene.temp.path().join("state/lanes");
    scene.lane("0").check_out_commit(&scene.base, IgnoredFilesPolicy::Keep).expect("it is checked out");

    let before = MountIdentity { boot: "an earlier one".to_owned(), ..here.clone() };
    let warm = scene.pool.dir().join(".engine/warm/T1.0");
    for room in [&warm, &lanes.join("0/room")] {
        assert_eq!(MountIdentity::recorded_in(room), Some(here.clone()), "recorded before use");
        before.record_in(room).expect("it can be written");
    }
    let as_before = |recorded: Option<&MountIdentity>| recorded == Some(&before);
    assert_eq!(scene.pool.delete_untrusted_pooled(&as_before).expect("readable"), 0);
    assert_eq!(Lane::delete_untrusted_lanes(&lanes, &as_before).expect("readable"), 0);
    for room in [&warm, &lanes.join("0/room")] {
        assert_eq!(
            MountIdentity::recorded_in(room),
            Some(here.clone()),
            "what is kept is used on this mount"
        );
    }
    assert_eq!(scene.pool.delete_untrusted_pooled(&|_| false).expect("readable"), 1);
    assert_eq!(Lane::delete_untrusted_lanes(&lanes, &|_| false).expect("readable"), 1);
    assert_eq!((scene.pool.warm_count(), lanes.join("0").exists()), (0, false));
    scene.lane("0").check_out_commit(&scene.base, IgnoredFilesPolicy::Keep).expect("it is made again");
}

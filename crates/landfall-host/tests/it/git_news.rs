//! What people did to a branch: nothing, more commits, another history, no branch at all.

use std::path::{Path, PathBuf};

use landfall_host::git::{BranchName, BranchNews, GitErrorKind, Oid};

use crate::git_scene::{Scene, git, main_branch, snapshot, write};

fn commit(root: &Path, text: &str) -> Oid {
    write(root, "a.txt", text);
    git(root, ["add", "-A"]);
    git(root, ["commit", "-q", "-m", text]);
    git(root, ["rev-parse", "HEAD"]).parse().expect("an id")
}

fn local(scene: &Scene, known: &Oid) -> BranchNews {
    scene.store.branch_news(&scene.repo, &main_branch(), known).expect("git runs")
}

#[test]
fn a_branch_of_the_person_is_followed_through_all_they_may_do() {
    let scene = Scene::new();
    let root = scene.root();
    let before = scene.git.spawned_count();
    assert_eq!(local(&scene, &scene.base), BranchNews::Same);
    assert_eq!(scene.git.spawned_count(), before, "no process if nothing happened");

    let one = commit(&root, "one");
    let two = commit(&root, "two");
    assert_eq!(local(&scene, &scene.base), BranchNews::Ahead { new: two.clone(), commits: 2 });
    assert!(scene.store.contains(&two).expect("read"));

    git(&root, ["commit", "-q", "--amend", "-m", "two, said better"]);
    let better: Oid = git(&root, ["rev-parse", "HEAD"]).parse().expect("an id");
    let rewritten = |old: &Oid, new: &Oid, common: Option<&Oid>| BranchNews::Rewritten {
        old: old.clone(),
        new: new.clone(),
        common: common.cloned(),
    };
    assert_eq!(local(&scene, &two), rewritten(&two, &better, Some(&one)));
    assert_eq!(local(&scene, &one), BranchNews::Ahead { new: better, commits: 1 });

    git(&root, ["reset", "-q", "--hard", one.as_str()]);
    assert_eq!(local(&scene, &two), rewritten(&two, &one, Some(&one)), "commits were only taken away");

    git(&root, ["checkout", "-q", "--orphan", "fresh"]);
    let fresh = commit(&root, "another beginning");
    git(&root, ["branch", "-f", "main", "fresh"]);
    assert_eq!(local(&scene, &two), rewritten(&two, &fresh, None));

    git(&root, ["branch", "-D", "main"]);
    assert_eq!(local(&scene, &two), BranchNews::Deleted);
    git(&root, ["checkout", "-q", "--orphan", "main"]);
    assert_eq!(local(&scene, &two), BranchNews::Unborn);
    git(&root, ["checkout", "-q", "--detach", "fresh"]);
    assert_eq!(local(&scene, &two), BranchNews::Deleted);
}

/// A remote of the scene's repository, and another clone of it, as a second person has it.
fn remote(scene: &Scene) -> (PathBuf, PathBuf) {
    let bare = scene.temp.path().join("remote.git");
    let other = scene.temp.path().join("other");
    git(scene.temp.path(), ["clone", "-q", "--bare", "person", "remote.git"]);
    git(scene.temp.path(), ["clone", "-q", "remote.git", "other"]);
    git(&other, ["config", "user.name", "Other"]);
    git(&other, ["config", "user.email", "other@landfall.invalid"]);
    git(&scene.root(), ["remote", "add", "origin", bare.to_str().expect("text")]);
    git(&scene.root(), ["fetch", "-q", "origin"]);
    (bare, other)
}

#[test]
fn a_remote_is_followed_and_nothing_of_the_person_changes() {
    let scene = Scene::new();
    let (bare, other) = remote(&scene);
    let git_dir = scene.root().join(".git");
    let before = snapshot(&git_dir);
    let news = |known: &Oid| {
        let news = scene.store.remote_news(&scene.repo, "origin", &main_branch(), known);
        assert!(snapshot(&git_dir) == before, "the person's repository is as it was");
        news.expect("git runs")
    };
    assert_eq!(news(&scene.base), BranchNews::Same);

    let one = commit(&other, "one");
    let two = commit(&other, "two");
    git(&other, ["push", "-q", "origin", "main"]);
    assert_eq!(news(&scene.base), BranchNews::Ahead { new: two.clone(), commits: 2 });
    assert!(scene.store.run_fsck().expect("git runs").problems.is_empty(), "it came whole");

    git(&other, ["commit", "-q", "--amend", "-m", "two, said better"]);
    git(&other, ["push", "-q", "--force", "origin", "main"]);
    let better: Oid = git(&other, ["rev-parse", "HEAD"]).parse().expect("an id");
    let rewritten = BranchNews::Rewritten { old: two.clone(), new: better, common: Some(one) };
    assert_eq!(news(&two), rewritten);
    assert_eq!(news(&two), rewritten, "asking twice gives the same");

    // A branch whose name only ends in the same way is another one.
    git(&other, ["push", "-q", "origin", "main:refs/heads/side/main"]);
    git(&bare, ["symbolic-ref", "HEAD", "refs/heads/side/main"]);
    git(&other, ["push", "-q", "origin", ":main"]);
    assert_eq!(news(&two), BranchNews::Deleted);
    git(&bare, ["symbolic-ref", "HEAD", "refs/heads/main"]);
    git(&other, ["push", "-q", "origin", ":side/main"]);
    assert_eq!(news(&two), BranchNews::Unborn);
    assert!(snapshot(&scene.store.dir().join("scratch")).is_empty());
}

#[test]
fn a_history_that_the_person_has_fetched_and_the_store_has_not_arrives_whole() {
    let scene = Scene::new();
    let (_, other) = remote(&scene);
    commit(&other, "one");
    git(&other, ["push", "-q", "origin", "main"]);
    git(&scene.root(), ["fetch", "-q", "origin"]);
    let two = commit(&other, "two");
    git(&other, ["push", "-q", "origin", "main"]);
    let news = scene.store.remote_news(&scene.repo, "origin", &main_branch(), &scene.base).expect("git runs");
    assert_eq!(news, BranchNews::Ahead { new: two, commits: 2 });
    std::fs::remove_dir_all(scene.root().join(".git/objects")).expect("removed");
    assert!(scene.store.run_fsck().expect("git runs").problems.is_empty());
}

#[test]
fn a_remote_that_is_not_there_is_an_error_and_never_a_deleted_branch() {
    let scene = Scene::new();
    let news = |remote: &str| scene.store.remote_news(&scene.repo, remote, &main_branch(), &scene.base);
    let root = scene.root();
    git(&root, ["remote", "add", "gone", scene.temp.path().join("nothing").to_str().expect("text")]);
    let found = news("gone").expect_err("nobody is there");
    assert!(matches!(found.kind, GitErrorKind::Failed { .. }), "{found:?}");
    assert!(news("unknown").is_err());
    // An address instead of a name could be a command.
    let mark = scene.temp.path().join("ran");
    let command = format!("ext::touch {}", mark.display());
    for bad in ["", "-x", "--upload-pack=touch", "../nothing", "/etc", &command] {
        assert!(news(bad).is_err(), "{bad}");
    }
    git(&root, ["remote", "add", "evil", &command]);
    assert!(news("evil").is_err());
    assert!(!mark.exists());
    let odd = BranchName::new("$(id)").expect("git accepts it");
    remote(&scene);
    let news = scene.store.remote_news(&scene.repo, "origin", &odd, &scene.base).expect("git runs");
    assert_eq!(news, BranchNews::Deleted);
}

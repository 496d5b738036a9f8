//! Ignored files of the person that a workspace gets too.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use landfall_host::git::{InclusionRefusal, InclusionReport, Workspace};

use crate::git_scene::{Scene, git, read, write};

fn include(scene: &Scene, ws: &Workspace) -> InclusionReport {
    scene.pool.copy_included_files(&scene.repo, ws).expect("git runs")
}

fn copied(included: &InclusionReport) -> Vec<String> {
    included.copied.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect()
}

fn skipped(included: &InclusionReport) -> Vec<(String, InclusionRefusal)> {
    let text = |path: &Vec<u8>| String::from_utf8_lossy(path).into_owned();
    included.skipped.iter().map(|(path, why)| (text(path), why.clone())).collect()
}

fn person(list: &str) -> Scene {
    let scene = Scene::with(|root| {
        write(root, "a.txt", "a\n");
        write(root, ".gitignore", ".env*\n/secrets/\n*.log\nnode_modules/\n");
    });
    write(&scene.root(), ".worktreeinclude", list);
    scene
}

fn is_clean(ws: &Workspace) -> bool {
    git(ws.path(), ["status", "--porcelain"]).is_empty()
}

#[test]
fn ignored_files_that_the_list_names_are_copied_and_are_no_work() {
    let scene = person("# what an agent needs\n.env*\n!.env.production\nsecrets/**\n*.log\n!noise.log\n");
    let root = scene.root();
    write(&root, ".env", "KEY=1\n");
    write(&root, ".env.production", "KEY=2\n");
    write(&root, "deep/er/.env.local", "KEY=3\n");
    write(&root, "secrets/[a] *b?!#.key", "odd\n");
    write(&root, "secrets/ends with a space ", "odd\n");
    write(&root, "secrets/:(top)", "odd\n");
    write(&root, ":(top).log", "odd\n");
    write(&root, "noise.log", "noise\n");
    write(&root, "node_modules/x/index.js", "not named\n");
    std::fs::set_permissions(root.join(".env"), std::fs::Permissions::from_mode(0o600)).expect("set");
    let before = git(&root, ["status", "--porcelain", "--ignored"]);

    let ws = scene.prepare("T1");
    let included = include(&scene, &ws);
    let odd = ["secrets/:(top)", "secrets/[a] *b?!#.key", "secrets/ends with a space "];
    assert_eq!(copied(&included), [".env", ":(top).log", "deep/er/.env.local", odd[0], odd[1], odd[2]]);
    assert_eq!((included.skipped.len(), included.skipped_count), (0, 0), "{included:?}");
    assert_eq!(read(ws.path(), "deep/er/.env.local"), "KEY=3\n");
    let mode = std::fs::metadata(ws.path().join(".env")).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!ws.path().join(".env.production").exists() && !ws.path().join("node_modules").exists());
    assert!(is_clean(&ws));
    assert!(scene.store.changed_paths(&ws).expect("seen").is_empty());
    assert_eq!(
        git(&root, ["status", "--porcelain", "--ignored"]),
        before,
        "the person's checkout is as it was"
    );

    // Even an agent that rewrites the rules does not make them its work.
    write(ws.path(), ".gitignore", "nothing\n");
    write(ws.path(), ".env", "KEY=changed by the agent\n");
    git(ws.path(), ["add", "-A"]);
    git(ws.path(), ["commit", "-q", "-m", "agent's work"]);
    let collected = scene.collect(&ws);
    assert_eq!((collected.changed_paths_count, collected.leftovers), (1, false));

    // Again: what is there stays, and stays excluded although the person has it no more.
    std::fs::remove_file(root.join("deep/er/.env.local")).expect("removed");
    let again = include(&scene, &ws);
    assert!(again.copied.is_empty() && again.skipped_count == 5, "{again:?}");
    assert!(skipped(&again).iter().all(|(_, why)| *why == InclusionRefusal::AlreadyThere), "{again:?}");
    assert_eq!(read(ws.path(), ".env"), "KEY=changed by the agent\n");
    assert_eq!(scene.collect(&ws).changed_paths_count, 1);
}

#[test]
fn without_a_list_nothing_happens() {
    let scene = Scene::new();
    write(&scene.root(), "target/built", "x\n");
    let ws = scene.prepare("T1");
    // The list of a branch that an agent made is not the person's.
    write(ws.path(), ".worktreeinclude", "*\n");
    let before = scene.git.spawned_count();
    assert_eq!(include(&scene, &ws), InclusionReport::default());
    assert_eq!(scene.git.spawned_count(), before);
}

#[test]
fn what_git_does_not_ignore_is_not_copied() {
    let scene = person("*\n");
    let root = scene.root();
    write(&root, "untracked.txt", "mine\n");
    write(&root, "a.txt", "tracked and changed\n");
    write(&root, ".env", "KEY=1\n");
    write(&root, "by hand", "ignored by the person alone\n");
    write(&root, ".git/info/exclude", "/by hand\n");
    let ws = scene.prepare("T1");
    let included = include(&scene, &ws);
    assert_eq!(copied(&included), [".env", "by hand"]);
    let not = |path: &str| (path.to_owned(), InclusionRefusal::NotIgnored);
    assert_eq!(skipped(&included), [not(".worktreeinclude"), not("untracked.txt")]);
    assert!(is_clean(&ws));
    assert_eq!(read(ws.path(), "a.txt"), "a\n");
}

#[test]
fn a_rule_of_the_project_against_the_exclusion_wins_and_the_file_stays_out() {
    let scene = Scene::with(|root| write(root, ".gitignore", "*.key\n!public.key\n"));
    let root = scene.root();
    write(&root, ".worktreeinclude", "*.key\n");
    write(&root, "private.key", "1\n");
    write(&root, "public.key", "2\n");
    // The person ignores it by an edit that is not committed: in the workspace the old rule holds.
    write(&root, ".gitignore", "*.key\n");
    let ws = scene.prepare("T1");
    let included = include(&scene, &ws);
    assert_eq!(copied(&included), ["private.key"]);
    assert_eq!(skipped(&included), [("public.key".to_owned(), InclusionRefusal::NotIgnored)]);
    assert!(is_clean(&ws) && !ws.path().join("public.key").exists());
}

#[test]
fn links_repositories_and_pipes_are_left_where_they_are() {
    let scene = person("secrets/\n.env*\n");
    let root = scene.root();
    let outside = scene.temp.path().join("outside");
    write(&outside, "key", "not yours\n");
    write(&root, "secrets/ok", "fine\n");
    symlink(outside.join("key"), root.join("secrets/link")).expect("linked");
    symlink(&outside, root.join("secrets/folder")).expect("linked");
    let pipe = root.join("secrets/pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("runs").success());
    crate::git_scene::init(&root.join("secrets/repo"));
    write(&root, "secrets/repo/file", "x\n");
    write(&root, "secrets/new\nline", "x\n");
    let ws = scene.prepare("T1");
    let included = include(&scene, &ws);
    assert_eq!(copied(&included), ["secrets/ok"], "{included:?}");
    let found = skipped(&included);
    let not_a_file = |path: &str| found.contains(&(path.to_owned(), InclusionRefusal::NotAFile));
    assert!(not_a_file("secrets/link") && not_a_file("secrets/folder"), "{found:?}");
    assert!(found.contains(&("secrets/new\nline".to_owned(), InclusionRefusal::OddName)), "{found:?}");
    assert!(is_clean(&ws));
    let below: Vec<_> = std::fs::read_dir(ws.path().join("secrets")).expect("there").collect();
    assert_eq!(below.len(), 1);
}

#[test]
fn a_link_in_the_workspace_is_not_written_through() {
    let scene = person("*.log\n.env\n");
    write(&scene.root(), "dir/noise.log", "from the person\n");
    write(&scene.root(), ".env", "from the person\n");
    let ws = scene.prepare("T1");
    let outside = scene.temp.path().join("outside");
    std::fs::create_dir(&outside).expect("made");
    write(&outside, "target", "untouched\n");
    symlink(&outside, ws.path().join("dir")).expect("linked");
    symlink(outside.join("target"), ws.path().join(".env")).expect("linked");
    let exclude = ws.path().join(".git/info/exclude");
    std::fs::remove_file(&exclude).expect("removed");
    symlink(outside.join("target"), &exclude).expect("linked");
    let included = include(&scene, &ws);
    assert!(included.copied.is_empty(), "{included:?}");
    assert_eq!(crate::git_scene::snapshot(&outside), [("target".to_owned(), b"untouched\n".to_vec())]);
}

#[test]
fn a_folder_of_packages_is_too_much() {
    let scene = person("node_modules\n");
    let folder = scene.root().join("node_modules/x");
    std::fs::create_dir_all(&folder).expect("made");
    for number in 0..2_010 {
        std::fs::write(folder.join(format!("{number:05}.js")), "x").expect("written");
    }
    let ws = scene.prepare("T1");
    let included = include(&scene, &ws);
    assert_eq!((included.copied.len(), included.skipped_count), (2_000, 10));
    assert!(included.skipped.iter().all(|(_, why)| *why == InclusionRefusal::TooMuch));

    std::fs::remove_dir_all(scene.root().join("node_modules")).expect("removed");
    std::fs::create_dir(scene.root().join("node_modules")).expect("made");
    sparse(&scene.root().join("node_modules/large"), 600 << 20);
    let other = scene.prepare("T2");
    let included = include(&scene, &other);
    assert_eq!(skipped(&included), [("node_modules/large".to_owned(), InclusionRefusal::TooMuch)]);
}

fn sparse(path: &Path, size: u64) {
    std::fs::File::create(path).and_then(|file| file.set_len(size)).expect("made");
}

#[test]
fn a_copy_does_not_outlive_its_workspace_in_a_warm_checkout() {
    let scene = person(".env\n");
    write(&scene.root(), ".env", "KEY=1\n");
    let ws = scene.prepare("T1");
    assert_eq!(copied(&include(&scene, &ws)), [".env"]);
    let collected = scene.collect(&ws);
    let keep = landfall_host::git::RefName::new("refs/landfall/keep/t1").expect("fine");
    scene.pool.release_workspace(ws, &collected, &keep).expect("released");
    assert_eq!(scene.pool.warm_count(), 1);
    let next = scene.prepare("T2");
    assert_eq!(scene.pool.warm_count(), 0);
    assert!(!next.path().join(".env").exists());
    assert!(!read(next.path(), ".git/info/exclude").contains(".env"));
}

//! What the user's own git does meanwhile, and repositories of kinds that are rare: nothing is lost, and messages are true.

use std::path::{Path, PathBuf};
use std::process::Command;

use landfall_testkit::{ScratchProject, skip_test};

use crate::LANDFALL;

fn writes(name: &str) -> String {
    format!("signal = \"complete\"\n[[write]]\npath = \"{name}.txt\"\ntext = \"{name}\\n\"\n")
}

/// Has a command of the user run while Landfall makes the new files of the checkout.
fn run_in_mid_publishing(scratch: &ScratchProject, command: &str) {
    scratch.file(".gitattributes", "*.txt filter=meanwhile\n");
    scratch.commit("a filter");
    let free = "env -u GIT_DIR -u GIT_INDEX_FILE -u GIT_WORK_TREE -u GIT_PREFIX -u GIT_LITERAL_PATHSPECS";
    let project = scratch.project();
    let script = format!("{free} git -C '{}' {command} >&2; cat", project.display());
    scratch.git(&["config", "filter.meanwhile.smudge", &script]);
}

#[test]
fn a_gc_of_the_user_takes_nothing_that_is_being_published() {
    for command in ["gc --quiet --prune=now", "prune --expire=now", "repack -q -a -d"] {
        let scratch = ScratchProject::new(LANDFALL);
        run_in_mid_publishing(&scratch, command);
        scratch.task("One", &writes("one"), &[]);
        scratch.landfall(&["run"]).ok();
        assert_eq!(scratch.git(&["show", "main:one.txt"]), "one", "{command}");
        scratch.git(&["fsck", "--full", "--strict"]);
        assert_eq!(scratch.git(&["status", "--porcelain"]), "", "{command}");
        let refs = scratch.git(&["for-each-ref", "--format=%(refname)"]);
        assert_eq!(refs, "refs/heads/main", "{command}: nothing of ours is left");
    }
}

#[test]
fn objects_that_the_user_deleted_after_publishing_are_copied_again() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("One", &writes("one"), &[]);
    scratch.landfall(&["run"]).ok();
    let blob = scratch.git(&["rev-parse", "main:one.txt"]);
    let objects = scratch.project().join(".git/objects");
    std::fs::remove_file(objects.join(&blob[..2]).join(&blob[2..])).expect("it is loose");
    scratch.task("Two", &writes("two"), &[]);
    scratch.landfall(&["run"]).ok();
    scratch.git(&["fsck", "--full"]);
    assert_eq!(scratch.git(&["show", "main:one.txt"]), "one");
}

#[test]
fn a_stash_of_the_user_in_mid_publishing_loses_nothing() {
    for command in
        ["stash push --include-untracked --quiet", "checkout --quiet -b other", "reset --hard --quiet"]
    {
        let scratch = ScratchProject::new(LANDFALL);
        run_in_mid_publishing(&scratch, command);
        scratch.file("notes", "mine\n");
        scratch.task("One", &writes("one"), &[]);
        scratch.landfall(&["run"]);
        let stashed = scratch.git(&["stash", "list"]);
        let notes = match stashed.is_empty() {
            true => std::fs::read_to_string(scratch.project().join("notes")).expect("it is where it was"),
            false => scratch.git(&["show", "stash@{0}^3:notes"]) + "\n",
        };
        assert_eq!(notes, "mine\n", "{command}");
        scratch.git(&["config", "filter.meanwhile.smudge", "cat"]);
        scratch.git(&["checkout", "--quiet", "main"]);
        scratch.landfall(&["run"]);
        assert_eq!(scratch.git(&["show", "main:one.txt"]), "one", "{command}");
        assert_eq!(scratch.git(&["status", "--porcelain", "--untracked-files=no"]), "", "{command}");
        scratch.git(&["fsck", "--full"]);
    }
}

#[test]
fn a_repository_whose_refs_are_in_a_table_is_driven_and_its_branch_named() {
    let scratch = ScratchProject::new(LANDFALL);
    std::fs::remove_dir_all(scratch.project().join(".git")).expect("removed");
    let mut init = Command::new("git");
    init.args(["init", "--quiet", "--ref-format=reftable", "--initial-branch=main"]).arg(scratch.project());
    if !init.output().is_ok_and(|done| done.status.success()) {
        return skip_test("this git knows no tables of refs");
    }
    scratch.commit("begin");
    scratch.task("One", &writes("one"), &[]);
    let before = scratch.landfall(&["status"]).ok();
    scratch.landfall(&["run"]).ok();
    let after = scratch.landfall(&["status"]).ok();
    for said in [before, after] {
        assert!(said.contains("base    main at "), "{said}");
        assert!(!said.contains(".invalid"), "{said}");
    }
    assert_eq!(scratch.git(&["show", "main:one.txt"]), "one");
    assert_eq!(scratch.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
}

#[test]
fn a_base_that_a_partial_clone_lacks_is_named_with_the_command_that_fetches_it() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file("old.txt", "old\n");
    scratch.commit("old");
    scratch.file("old.txt", "new\n");
    scratch.commit("new");
    scratch.git(&["config", "uploadpack.allowFilter", "true"]);
    scratch.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let (project, full) = (scratch.project(), scratch.root().join("full"));
    std::fs::rename(&project, &full).expect("moved");
    std::fs::create_dir(&project).expect("made");
    let from = format!("file://{}", full.display());
    scratch.git(&["clone", "--quiet", "--filter=blob:none", &from, "."]);
    scratch.task("One", &writes("one"), &[]);
    let check = scratch.landfall(&["check"]);
    let said = format!("{}{}", check.out, check.err);
    assert!(said.contains("partial clone"), "{said}");
    let command = format!("git -C {} fetch --refetch --no-filter origin", project.display());
    assert!(said.replace(['\n', ' '], "").contains(&command.replace(' ', "")), "{said}");
    scratch.git(&["fetch", "--quiet", "--refetch", "--no-filter", "origin"]);
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
}

/// The file of an object in the store.
fn object_file(scratch: &ScratchProject, name: &str) -> PathBuf {
    let oid = scratch.store(&["rev-parse", name]).expect("it is there");
    scratch.state().join("store.git/objects").join(&oid[..2]).join(&oid[2..])
}

fn overwrite(path: &Path, content: &[u8]) {
    std::fs::remove_file(path).expect("it is loose");
    std::fs::write(path, content).expect("written");
}

#[test]
fn damaged_objects_of_the_store_are_restored_from_the_repository() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 4] = [
        ("empty", |path| overwrite(path, b"")),
        ("cut", |path| {
            let whole = std::fs::read(path).expect("it is loose");
            overwrite(path, &whole[..whole.len() - 6]);
        }),
        ("zeroed", |path| {
            let size = std::fs::read(path).expect("it is loose").len();
            overwrite(path, &vec![0; size]);
        }),
        ("gone", |path| std::fs::remove_file(path).expect("it is loose")),
    ];
    for (story, damage) in damages {
        let scratch = ScratchProject::new(LANDFALL);
        scratch.task("One", &writes("one"), &[]);
        scratch.landfall(&["run"]).ok();
        let names = ["refs/landfall/base", "refs/landfall/base^{tree}", "refs/landfall/base:a.txt"];
        for path in names.map(|name| object_file(&scratch, name)) {
            damage(&path);
        }
        scratch.task("Two", &writes("two"), &[]);
        scratch.landfall(&["run"]).ok();
        assert_eq!(scratch.status("T2"), "done", "{story}: {}", scratch.why("T2"));
        assert!(scratch.store(&["fsck", "--full"]).is_some(), "{story}: the store is whole");
        let told = scratch.landfall(&["doctor"]).out;
        assert!(told.contains("objects"), "{story}: {told}");
    }
}

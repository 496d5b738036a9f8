//! Publishing never destroys a file of the user: only files that git tracked in the old base, and that are unchanged on disk,
//! are replaced or deleted.

use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use landfall_host::git::{BlockedFileReason, HeldReason, Oid, PublishMode, PublishOutcome};

use crate::git_scene::{Scene, git, init, main_branch, read, sig, snapshot, write};

/// One attack: what the base has besides the usual files, what the landing changes, and what the user has on disk.
struct Case {
    name: &'static str,
    base: fn(&Path),
    landing: fn(&Path),
    user: fn(&Path),
    /// The paths that `publish` must name; none if it must succeed.
    blocked: &'static [(&'static str, BlockedFileReason)],
}

fn nothing(_: &Path) {}

fn remove(root: &Path, path: &str) {
    let path = root.join(path);
    if path.symlink_metadata().expect("it is there").is_dir() {
        std::fs::remove_dir_all(path).expect("removed");
    } else {
        std::fs::remove_file(path).expect("removed");
    }
}

/// Builds the landing with plain git in a clone, because some of these trees cannot come from a workspace.
fn scene_of(case: &Case) -> (Scene, Oid) {
    let scene = Scene::with(|root| {
        write(root, ".gitignore", "*.ign\nignored/\nignored\n.env\n");
        write(root, "a.txt", "a\n");
        write(root, "d/b.txt", "b\n");
        (case.base)(root);
    });
    let clone = scene.temp.path().join("clone");
    let root = scene.root();
    git(scene.temp.path(), ["clone", "-q", root.to_str().expect("text"), clone.to_str().expect("text")]);
    git(&clone, ["config", "user.name", "x"]);
    git(&clone, ["config", "user.email", "x@x"]);
    (case.landing)(&clone);
    git(&clone, ["add", "-A", "-f"]);
    git(&clone, ["commit", "-q", "-m", "landing"]);
    let new: Oid = git(&clone, ["rev-parse", "HEAD"]).parse().expect("an id");
    let store = scene.store.dir().to_str().expect("text").to_owned();
    git(&clone, ["push", "-q", &store, "HEAD:refs/landfall/heads/x"]);
    (case.user)(&root);
    (scene, new)
}

fn publish(scene: &Scene, new: &Oid) -> PublishOutcome {
    let mode = PublishMode::Local;
    scene
        .store
        .publish_branch(&scene.repo, &main_branch(), new, &scene.base, &mode, &sig())
        .expect("git runs")
}

/// The checkout is exactly as it was, nothing is left in the git folder, and git still works in it.
fn assert_untouched(scene: &Scene, case: &str, before: &(Vec<(String, Vec<u8>)>, String)) {
    let root = scene.root();
    assert_eq!(&(snapshot(&root), git(&root, ["status", "--porcelain"])), before, "{case}");
    assert_eq!(git(&root, ["rev-parse", "refs/heads/main"]), scene.base.as_str(), "{case}");
    assert_nothing_left(&root, case);
}

fn assert_nothing_left(root: &Path, case: &str) {
    for entry in std::fs::read_dir(root.join(".git")).expect("readable") {
        let name = entry.expect("readable").file_name().to_string_lossy().into_owned();
        assert!(!name.starts_with("landfall") && !name.ends_with(".lock"), "{case}: {name} is left");
    }
    assert!(!root.join(".git/refs/heads/main.lock").exists(), "{case}");
}

fn check(case: &Case) {
    let (scene, new) = scene_of(case);
    let root = scene.root();
    let before = (snapshot(&root), git(&root, ["status", "--porcelain"]));
    let result = publish(&scene, &new);
    if case.blocked.is_empty() {
        assert!(matches!(result, PublishOutcome::Done(_)), "{}: {result:?}", case.name);
        assert_nothing_left(&root, case.name);
        return;
    }
    let PublishOutcome::Held(HeldReason::Files { files, .. }) = result else {
        panic!("{}: {result:?}", case.name);
    };
    let named: Vec<(String, BlockedFileReason)> =
        files.iter().map(|file| (String::from_utf8_lossy(&file.path).into_owned(), file.why)).collect();
    let expected: Vec<(String, BlockedFileReason)> =
        case.blocked.iter().map(|(path, why)| ((*path).to_owned(), *why)).collect();
    assert_eq!(named, expected, "{}", case.name);
    assert_untouched(&scene, case.name, &before);
}

#[test]
fn ignored_and_untracked_files_stop_publishing_and_survive() {
    let env = |root: &Path| write(root, ".env", "landed\n");
    let cases = [
        Case {
            name: "an ignored file",
            base: nothing,
            landing: env,
            user: |root| write(root, ".env", "SECRET=1\n"),
            blocked: &[(".env", BlockedFileReason::Untracked)],
        },
        Case {
            name: "an untracked file",
            base: nothing,
            landing: |root| write(root, "u.txt", "landed\n"),
            user: |root| write(root, "u.txt", "mine\n"),
            blocked: &[("u.txt", BlockedFileReason::Untracked)],
        },
        Case {
            name: "an ignored file with the same content and another mode",
            base: nothing,
            landing: env,
            user: |root| {
                write(root, ".env", "landed\n");
                std::fs::set_permissions(root.join(".env"), std::fs::Permissions::from_mode(0o755))
                    .expect("set");
            },
            blocked: &[(".env", BlockedFileReason::Untracked)],
        },
        Case {
            name: "an ignored folder that a file replaces",
            base: nothing,
            landing: |root| write(root, "ignored", "landed\n"),
            user: |root| {
                write(root, "ignored/one", "mine");
                write(root, "ignored/deep/two", "mine");
            },
            blocked: &[
                ("ignored/deep/two", BlockedFileReason::Untracked),
                ("ignored/one", BlockedFileReason::Untracked),
            ],
        },
        Case {
            name: "an ignored folder that a link replaces",
            base: nothing,
            landing: |root| symlink("a.txt", root.join("ignored")).expect("linked"),
            user: |root| write(root, "ignored/one", "mine"),
            blocked: &[("ignored/one", BlockedFileReason::Untracked)],
        },
        Case {
            name: "an ignored file in a tracked folder that a file replaces",
            base: nothing,
            landing: |root| {
                remove(root, "d");
                write(root, "d", "landed\n");
            },
            user: |root| write(root, "d/notes.ign", "mine"),
            blocked: &[("d/notes.ign", BlockedFileReason::Untracked)],
        },
        Case {
            name: "a repository in a tracked folder that a file replaces",
            base: nothing,
            landing: |root| {
                remove(root, "d");
                write(root, "d", "landed\n");
            },
            user: |root| init(&root.join("d/nested")),
            blocked: &[("d/nested", BlockedFileReason::Submodule)],
        },
        Case {
            name: "an ignored folder that is an empty repository",
            base: nothing,
            landing: |root| write(root, "ignored", "landed\n"),
            user: |root| init(&root.join("ignored")),
            blocked: &[("ignored", BlockedFileReason::Submodule)],
        },
        Case {
            name: "an ignored file where a folder must be",
            base: nothing,
            landing: |root| write(root, "p.ign/f", "landed\n"),
            user: |root| write(root, "p.ign", "mine"),
            blocked: &[("p.ign", BlockedFileReason::Untracked)],
        },
        Case {
            name: "an ignored link to a folder outside, where a folder must be",
            base: nothing,
            landing: |root| write(root, "ignored/f", "landed\n"),
            user: |root| {
                let outside = root.parent().expect("above").join("outside");
                write(&outside, "f", "mine");
                symlink(&outside, root.join("ignored")).expect("linked");
            },
            blocked: &[("ignored", BlockedFileReason::Untracked)],
        },
        Case {
            name: "an ignored link that points nowhere, where a file must be",
            base: nothing,
            landing: env,
            user: |root| symlink("nowhere", root.join(".env")).expect("linked"),
            blocked: &[(".env", BlockedFileReason::Untracked)],
        },
        Case {
            name: "a pipe where a file must be",
            base: nothing,
            landing: env,
            user: |root| make_fifo(&root.join(".env")),
            blocked: &[(".env", BlockedFileReason::Untracked)],
        },
        Case {
            name: "two files at once, in order",
            base: nothing,
            landing: |root| {
                write(root, ".env", "landed\n");
                write(root, "u.txt", "landed\n");
                write(root, "free.txt", "landed\n");
            },
            user: |root| {
                write(root, "u.txt", "mine");
                write(root, ".env", "mine");
            },
            blocked: &[(".env", BlockedFileReason::Untracked), ("u.txt", BlockedFileReason::Untracked)],
        },
    ];
    for case in &cases {
        check(case);
    }
}

fn make_fifo(path: &Path) {
    let path = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).expect("no NUL");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .expect("made");
}

#[test]
fn tracked_files_with_hidden_changes_stop_publishing_and_survive() {
    let edit = |root: &Path| write(root, "a.txt", "landed\n");
    let delete = |root: &Path| remove(root, "a.txt");
    let cases = [
        Case {
            name: "assume-unchanged, edited",
            base: nothing,
            landing: edit,
            user: |root| {
                git(root, ["update-index", "--assume-unchanged", "a.txt"]);
                write(root, "a.txt", "mine\n");
            },
            blocked: &[("a.txt", BlockedFileReason::Changed)],
        },
        Case {
            name: "core.ignoreStat, edited",
            base: nothing,
            landing: edit,
            user: |root| {
                git(root, ["config", "core.ignoreStat", "true"]);
                write(root, "a.txt", "mine\n");
            },
            blocked: &[("a.txt", BlockedFileReason::Changed)],
        },
        Case {
            name: "a clean filter that drops what the user wrote",
            base: |root| {
                write(root, ".gitattributes", "*.nb filter=strip\n");
                write(root, "a.nb", "code\n");
            },
            landing: |root| write(root, "a.nb", "landed\n"),
            user: |root| {
                git(root, ["config", "filter.strip.clean", "grep -v ^output || true"]);
                write(root, "a.nb", "code\noutput 42\n");
            },
            blocked: &[("a.nb", BlockedFileReason::Changed)],
        },
        Case {
            name: "a clean filter that drops an edit of the same size",
            base: |root| {
                git(root, ["config", "filter.strip.clean", "sed s/[0-9]/0/g"]);
                write(root, ".gitattributes", "*.nb filter=strip\n");
                write(root, "a.nb", "output 0\n");
            },
            landing: |root| write(root, "a.nb", "output 0\nlanded\n"),
            user: |root| {
                git(root, ["config", "filter.strip.clean", "sed s/[0-9]/0/g"]);
                write(root, "a.nb", "output 7\n");
            },
            blocked: &[("a.nb", BlockedFileReason::Filtered)],
        },
        Case {
            name: "a clean filter that drops an edit of the same size in a file that the landing deletes",
            base: |root| {
                write(root, ".gitattributes", "*.nb filter=strip\n");
                write(root, "a.nb", "output 0\n");
            },
            landing: |root| remove(root, "a.nb"),
            user: |root| {
                git(root, ["config", "filter.strip.clean", "sed s/[0-9]/0/g"]);
                write(root, "a.nb", "output 7\n");
            },
            blocked: &[("a.nb", BlockedFileReason::Filtered)],
        },
        Case {
            name: "filters that make another content, without an edit",
            base: |root| {
                write(root, ".gitattributes", "*.nb filter=code\n");
                write(root, "a.nb", "stored\n");
            },
            landing: |root| write(root, "a.nb", "stored again\n"),
            user: |root| {
                git(root, ["config", "filter.code.clean", "sed s/^shown/stored/"]);
                git(root, ["config", "filter.code.smudge", "sed s/^stored/shown/"]);
                remove(root, "a.nb");
                git(root, ["checkout", "--", "a.nb"]);
                assert_eq!(read(root, "a.nb"), "shown\n");
            },
            blocked: &[],
        },
        Case {
            name: "a filter that was set after the file was written, without an edit",
            base: |root| {
                write(root, ".gitattributes", "*.nb filter=code\n");
                write(root, "a.nb", "stored\n");
            },
            landing: |root| write(root, "a.nb", "stored again\n"),
            user: |root| {
                git(root, ["config", "filter.code.clean", "sed s/^shown/stored/"]);
                git(root, ["config", "filter.code.smudge", "sed s/^stored/shown/"]);
                assert_eq!(read(root, "a.nb"), "stored\n");
            },
            blocked: &[],
        },
        Case {
            name: "an edit within `$Id$`, which git drops",
            base: |root| {
                write(root, ".gitattributes", "*.c ident\n");
                write(root, "a.c", "$Id$\n");
            },
            landing: |root| write(root, "a.c", "$Id$\nlanded\n"),
            user: |root| {
                remove(root, "a.c");
                git(root, ["checkout", "--", "a.c"]);
                let mine = format!("$Id: {} $\n", "m".repeat(40));
                assert_eq!(read(root, "a.c").len(), mine.len());
                write(root, "a.c", &mine);
            },
            blocked: &[("a.c", BlockedFileReason::Filtered)],
        },
        Case {
            name: "line endings that git drops",
            base: |root| write(root, ".gitattributes", "a.txt text\n"),
            landing: edit,
            user: |root| {
                write(root, "a.txt", "a\r\n");
                git(root, ["add", "a.txt"]);
                assert_eq!(git(root, ["status", "--porcelain"]), "", "git does not see it");
            },
            blocked: &[("a.txt", BlockedFileReason::Filtered)],
        },
        Case {
            name: "a stash that git status is told to count",
            base: nothing,
            landing: edit,
            user: |root| {
                git(root, ["config", "status.showStash", "true"]);
                write(root, "d/b.txt", "mine\n");
                git(root, ["stash", "--quiet"]);
            },
            blocked: &[],
        },
        Case {
            name: "skip-worktree, edited",
            base: nothing,
            landing: edit,
            user: |root| {
                git(root, ["update-index", "--skip-worktree", "a.txt"]);
                write(root, "a.txt", "mine\n");
            },
            blocked: &[("a.txt", BlockedFileReason::Changed)],
        },
        Case {
            name: "skip-worktree, edited, deleted by the landing",
            base: nothing,
            landing: delete,
            user: |root| {
                git(root, ["update-index", "--skip-worktree", "a.txt"]);
                write(root, "a.txt", "mine\n");
            },
            blocked: &[("a.txt", BlockedFileReason::Changed)],
        },
        Case {
            name: "same size and time, and git told to look at nothing else",
            base: nothing,
            landing: edit,
            user: |root| {
                git(root, ["config", "core.trustctime", "false"]);
                git(root, ["config", "core.checkStat", "minimal"]);
                let file = root.join("a.txt");
                let past = std::time::SystemTime::now() - std::time::Duration::from_secs(1000);
                let set = |when| {
                    let open = std::fs::File::options().write(true).open(&file).expect("opens");
                    open.set_modified(when).expect("set");
                };
                set(past);
                git(root, ["update-index", "--refresh"]);
                write(root, "a.txt", "m\n");
                set(past);
                assert_eq!(git(root, ["status", "--porcelain"]), "", "git does not see it");
            },
            blocked: &[("a.txt", BlockedFileReason::Changed)],
        },
        Case {
            name: "intent to add",
            base: nothing,
            landing: |root| write(root, "u.txt", "landed\n"),
            user: |root| {
                write(root, "u.txt", "mine\n");
                git(root, ["add", "-N", "u.txt"]);
            },
            blocked: &[("u.txt", BlockedFileReason::Changed)],
        },
        Case {
            name: "a mode that was changed",
            base: nothing,
            landing: edit,
            user: |root| {
                let mode = std::fs::Permissions::from_mode(0o755);
                std::fs::set_permissions(root.join("a.txt"), mode).expect("set");
            },
            blocked: &[("a.txt", BlockedFileReason::Changed)],
        },
        Case {
            name: "a tracked folder that the user replaced by a link",
            base: nothing,
            landing: |root| write(root, "d/b.txt", "landed\n"),
            user: |root| {
                let outside = root.parent().expect("above").join("outside");
                write(&outside, "b.txt", "mine");
                remove(root, "d");
                symlink(&outside, root.join("d")).expect("linked");
            },
            blocked: &[("d", BlockedFileReason::Untracked)],
        },
        Case {
            name: "a tracked file that the user replaced by a folder",
            base: nothing,
            landing: edit,
            user: |root| {
                remove(root, "a.txt");
                write(root, "a.txt/mine", "mine");
            },
            blocked: &[("a.txt/mine", BlockedFileReason::Untracked)],
        },
        Case {
            name: "a file outside the sparse checkout that is there all the same",
            base: nothing,
            landing: |root| write(root, "d/b.txt", "landed\n"),
            user: |root| {
                git(root, ["sparse-checkout", "set", "--cone", "elsewhere"]);
                write(root, "d/b.txt", "mine");
            },
            blocked: &[("d/b.txt", BlockedFileReason::Changed)],
        },
    ];
    for case in &cases {
        check(case);
    }
}

/// A submodule `sub` at its first commit, made without a network and without `git submodule`.
fn with_submodule(root: &Path) {
    let sub = root.join("sub");
    init(&sub);
    write(&sub, "s.txt", "s\n");
    git(&sub, ["add", "-A"]);
    git(&sub, ["commit", "-q", "-m", "sub"]);
    write(root, ".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ../sub\n");
}

fn drop_submodule(root: &Path) {
    git(root, ["update-index", "--force-remove", "sub"]);
    remove(root, "sub");
}

fn dirty_submodule(root: &Path) {
    write(root, "sub/s.txt", "mine");
    write(root, "sub/untracked", "mine");
}

#[test]
fn work_in_a_submodule_is_never_touched() {
    let cases = [
        Case {
            name: "replaced by a file",
            base: with_submodule,
            landing: |root| {
                drop_submodule(root);
                write(root, "sub", "landed\n");
            },
            user: dirty_submodule,
            blocked: &[("sub", BlockedFileReason::Submodule)],
        },
        Case {
            name: "replaced by a link",
            base: with_submodule,
            landing: |root| {
                drop_submodule(root);
                symlink("a.txt", root.join("sub")).expect("linked");
            },
            user: nothing,
            blocked: &[("sub", BlockedFileReason::Submodule)],
        },
        Case {
            name: "replaced by a folder with a file of that name",
            base: with_submodule,
            landing: |root| {
                drop_submodule(root);
                write(root, "sub/untracked", "landed\n");
            },
            user: dirty_submodule,
            blocked: &[("sub", BlockedFileReason::Submodule)],
        },
        Case {
            name: "replaced by a folder with other files",
            base: with_submodule,
            landing: |root| {
                drop_submodule(root);
                write(root, "sub/new.txt", "landed\n");
            },
            user: dirty_submodule,
            blocked: &[("sub", BlockedFileReason::Submodule)],
        },
        Case {
            name: "added where an untracked folder is",
            base: nothing,
            landing: |root| {
                init(&root.join("module"));
                git(&root.join("module"), ["commit", "-q", "--allow-empty", "-m", "sub"]);
            },
            user: |root| write(root, "module/mine", "mine"),
            blocked: &[("module/mine", BlockedFileReason::Untracked)],
        },
        Case {
            name: "added where a file is",
            base: nothing,
            landing: |root| {
                init(&root.join("module"));
                git(&root.join("module"), ["commit", "-q", "--allow-empty", "-m", "sub"]);
            },
            user: |root| write(root, "module", "mine"),
            blocked: &[("module", BlockedFileReason::Untracked)],
        },
    ];
    for case in &cases {
        check(case);
    }
    // Nothing has to go for these, so they are published, and the work stays where it is.
    type Landing = fn(&Path);
    let landings: [(&str, Landing); 2] = [
        ("removed", drop_submodule),
        ("moved", |root| {
            drop_submodule(root);
            init(&root.join("moved"));
            git(&root.join("moved"), ["commit", "-q", "--allow-empty", "-m", "sub"]);
        }),
    ];
    for (name, landing) in landings {
        let case = Case { name, base: with_submodule, landing, user: dirty_submodule, blocked: &[] };
        let (scene, new) = scene_of(&case);
        let root = scene.root();
        assert!(matches!(publish(&scene, &new), PublishOutcome::Done(_)), "{name}");
        assert_eq!((read(&root, "sub/s.txt"), read(&root, "sub/untracked")), ("mine".into(), "mine".into()));
        assert!(root.join("sub/.git").exists(), "{name}");
        assert_eq!(root.join("moved").is_dir(), name == "moved");
        assert_nothing_left(&root, name);
    }
}

#[test]
fn a_submodule_at_another_commit_does_not_stop_landings_elsewhere() {
    let case = Case {
        name: "a submodule at another commit",
        base: with_submodule,
        landing: |root| write(root, "a.txt", "landed\n"),
        user: |root| {
            git(&root.join("sub"), ["commit", "-q", "--allow-empty", "-m", "not in the project yet"]);
        },
        blocked: &[],
    };
    let (scene, new) = scene_of(&case);
    let root = scene.root();
    let before = git(&root.join("sub"), ["rev-parse", "HEAD"]);
    assert!(matches!(publish(&scene, &new), PublishOutcome::Done(_)));
    assert_eq!(read(&root, "a.txt"), "landed\n");
    assert_eq!(git(&root.join("sub"), ["rev-parse", "HEAD"]), before);
    assert_eq!(git(&root, ["status", "--porcelain"]), " M sub");
    // What the user has staged is theirs to commit first.
    let (scene, new) = scene_of(&Case {
        user: |root| {
            git(&root.join("sub"), ["commit", "-q", "--allow-empty", "-m", "staged in the project"]);
            git(root, ["add", "sub"]);
        },
        ..case
    });
    assert!(matches!(publish(&scene, &new), PublishOutcome::Held(HeldReason::Files { .. })));
}

#[test]
fn clean_checkouts_move_whatever_changes_kind() {
    type Change = fn(&Path);
    let landings: [(&str, Change, Change, Change); 9] = [
        (
            "folder to file",
            nothing,
            |root| {
                remove(root, "d");
                write(root, "d", "landed\n");
            },
            nothing,
        ),
        (
            "folder with an empty folder in it to link",
            nothing,
            |root| {
                remove(root, "d");
                symlink("a.txt", root.join("d")).expect("linked");
            },
            |root| std::fs::create_dir_all(root.join("d/empty/deeper")).expect("made"),
        ),
        (
            "file to folder",
            nothing,
            |root| {
                remove(root, "a.txt");
                write(root, "a.txt/deep/f", "landed\n");
            },
            nothing,
        ),
        (
            "link to folder",
            |root| symlink("d", root.join("l")).expect("linked"),
            |root| {
                remove(root, "l");
                write(root, "l/f", "landed\n");
            },
            nothing,
        ),
        (
            "file to link",
            nothing,
            |root| {
                remove(root, "a.txt");
                symlink("d/b.txt", root.join("a.txt")).expect("linked");
            },
            nothing,
        ),
        (
            "mode alone",
            nothing,
            |root| {
                let mode = std::fs::Permissions::from_mode(0o755);
                std::fs::set_permissions(root.join("a.txt"), mode).expect("set");
            },
            nothing,
        ),
        (
            "a name in another case",
            nothing,
            |root| {
                std::fs::rename(root.join("a.txt"), root.join("A.TXT")).expect("moved");
            },
            nothing,
        ),
        (
            "an empty submodule folder to file",
            with_submodule,
            |root| {
                drop_submodule(root);
                write(root, "sub", "landed\n");
            },
            |root| {
                remove(root, "sub");
                std::fs::create_dir(root.join("sub")).expect("made");
            },
        ),
        (
            "the user already has the same file",
            nothing,
            |root| write(root, "u.txt", "landed\n"),
            |root| write(root, "u.txt", "landed\n"),
        ),
    ];
    for (name, base, landing, user) in landings {
        let case = Case { name, base, landing, user, blocked: &[] };
        let (scene, new) = scene_of(&case);
        let root = scene.root();
        let result = publish(&scene, &new);
        assert!(matches!(result, PublishOutcome::Done(_)), "{name}: {result:?}");
        assert_eq!(git(&root, ["status", "--porcelain", "--ignore-submodules=none"]), "", "{name}");
        assert_eq!(git(&root, ["rev-parse", "HEAD"]), new.as_str(), "{name}");
        assert_nothing_left(&root, name);
    }
}

#[test]
fn a_sparse_checkout_stays_sparse() {
    for index in ["--no-sparse-index", "--sparse-index"] {
        let (scene, new) = scene_of(&Case {
            name: index,
            base: |root| write(root, "kept/k.txt", "k\n"),
            landing: |root| {
                write(root, "d/b.txt", "landed\n");
                write(root, "d/new.txt", "landed\n");
                write(root, "kept/k.txt", "landed\n");
            },
            user: nothing,
            blocked: &[],
        });
        let root = scene.root();
        git(&root, ["sparse-checkout", "set", "--cone", index, "kept"]);
        let result = publish(&scene, &new);
        assert!(matches!(result, PublishOutcome::Done(_)), "{index}: {result:?}");
        assert_eq!(read(&root, "kept/k.txt"), "landed\n");
        assert!(!root.join("d").exists(), "{index}");
        assert_eq!(git(&root, ["status", "--porcelain"]), "", "{index}");
    }
}

#[test]
fn a_file_that_changes_while_files_are_written_survives() {
    // The user's own smudge filter runs while new files are made: whatever it changes, it does so after a check that
    // comes before and before a write that comes after.
    for target in ["d/b.txt", "late.txt", ".env"] {
        let (scene, new) = scene_of(&Case {
            name: target,
            base: |root| write(root, ".gitattributes", "a.txt filter=slow\n"),
            landing: |root| {
                write(root, "a.txt", "landed\n");
                write(root, "d/b.txt", "landed\n");
                write(root, "late.txt", "landed\n");
                write(root, ".env", "landed\n");
            },
            user: nothing,
            blocked: &[],
        });
        let root = scene.root();
        let script = format!("echo mine > '{}'; cat", root.join(target).display());
        git(&root, ["config", "filter.slow.smudge", &script]);
        let result = publish(&scene, &new);
        let PublishOutcome::Held(HeldReason::Files { files, .. }) = &result else {
            panic!("{target}: {result:?}")
        };
        assert_eq!(files[0].path, target.as_bytes());
        assert_eq!(read(&root, target), "mine\n", "{target}");
        assert_eq!(read(&root, "a.txt"), "a\n", "{target}: all or nothing");
        assert_nothing_left(&root, target);
    }
}

#[test]
fn no_ref_is_locked_while_the_filters_of_the_user_run() {
    let (scene, new) = scene_of(&Case {
        name: "slow filter",
        base: |root| write(root, ".gitattributes", "a.txt filter=slow\n"),
        landing: |root| write(root, "a.txt", "landed\n"),
        user: nothing,
        blocked: &[],
    });
    let root = scene.root();
    let list = root.join("../locks-seen");
    let script = format!(
        "find '{}' -name '*.lock' -not -path '*/landfall-publish-*' > '{}'; cat",
        root.join(".git").display(),
        list.display()
    );
    git(&root, ["config", "filter.slow.smudge", &script]);
    assert!(matches!(publish(&scene, &new), PublishOutcome::Done(_)));
    assert_eq!(std::fs::read_to_string(list).expect("the filter ran"), "");
    assert_nothing_left(&root, "slow filter");
}

#[test]
fn a_file_that_a_program_has_open_to_write_is_neither_replaced_nor_deleted() {
    type Landing = fn(&Path);
    let landings: [Landing; 2] = [|root| write(root, "a.txt", "landed\n"), |root| remove(root, "a.txt")];
    for landing in landings {
        let case = Case { name: "in use", base: nothing, landing, user: nothing, blocked: &[] };
        let (scene, new) = scene_of(&case);
        let root = scene.root();
        let mut program = std::fs::File::options().append(true).open(root.join("a.txt")).expect("opens");
        let reader = std::fs::File::open(root.join("d/b.txt")).expect("opens");
        let PublishOutcome::Held(HeldReason::Files { files, .. }) = publish(&scene, &new) else {
            panic!("what the program writes next would be lost");
        };
        let named: Vec<_> = files.iter().map(|file| (file.path.as_slice(), file.why)).collect();
        assert_eq!(named, [(b"a.txt".as_slice(), BlockedFileReason::InUse)]);
        program.write_all(b"mine\n").expect("written");
        assert_eq!(read(&root, "a.txt"), "a\nmine\n");
        assert_nothing_left(&root, "in use");
        // Once it is closed, and as git has it, the way is free. A program that only reads loses nothing.
        drop(program);
        git(&root, ["checkout", "--", "a.txt"]);
        assert!(matches!(publish(&scene, &new), PublishOutcome::Done(_)));
        drop(reader);
        assert_nothing_left(&root, "closed");
    }
}

/// Takes leases from this thread and what it starts, as on a file system that has none.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn refuse_leases() {
    const F_SETLEASE: u32 = 1024;
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const IS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let mut steps = [
        step(LOAD, 0, 0, 0), // the number of the call
        step(IS, u32::try_from(libc::SYS_fcntl).expect("it is small"), 0, 3),
        step(LOAD, 24, 0, 0), // its second argument
        step(IS, F_SETLEASE, 0, 1),
        step(RETURN, libc::SECCOMP_RET_ERRNO | libc::EINVAL.cast_unsigned(), 0, 0),
        step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: plain numbers, and a program that lives until the call returns. It holds for this thread.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    assert!(done, "{}", std::io::Error::last_os_error());
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn without_leases_a_file_that_a_program_has_open_is_kept_all_the_same() {
    use std::io::Read as _;
    let landing: fn(&Path) = |root| write(root, "a.txt", "landed\n");
    let case = Case { name: "no leases", base: nothing, landing, user: nothing, blocked: &[] };
    let (scene, new) = scene_of(&case);
    let root = scene.root();
    let published = || {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                refuse_leases();
                publish(&scene, &new)
            });
            thread.join().expect("no panic")
        })
    };
    let check_held = || {
        let PublishOutcome::Held(HeldReason::Files { files, .. }) = published() else {
            panic!("what the program writes next would be lost");
        };
        let named: Vec<_> = files.iter().map(|file| (file.path.as_slice(), file.why)).collect();
        assert_eq!(named, [(b"a.txt".as_slice(), BlockedFileReason::InUse)]);
        assert_nothing_left(&root, "in use");
    };
    let program = std::fs::File::options().append(true).open(root.join("a.txt")).expect("opens");
    check_held();
    drop(program);
    // A shell that has it open, and a program that has only mapped it.
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg("exec 3>>a.txt; echo ready; read line").current_dir(&root);
    let mut shell = shell
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut ready = [0; 6];
    shell.stdout.as_mut().expect("piped").read_exact(&mut ready).expect("it says so");
    check_held();
    drop(shell.stdin.take());
    shell.wait().expect("it ends");
    let file = std::fs::File::options().read(true).write(true).open(root.join("a.txt")).expect("opens");
    // SAFETY: a new mapping, and nothing else is at its place. It is not touched.
    let map = unsafe {
        use std::os::fd::AsRawFd as _;
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        libc::mmap(std::ptr::null_mut(), 1, access, kind, file.as_raw_fd(), 0)
    };
    assert_ne!(map, libc::MAP_FAILED);
    drop(file);
    check_held();
    // SAFETY: the mapping from above, which nothing uses.
    unsafe { libc::munmap(map, 1) };
    assert!(matches!(published(), PublishOutcome::Done(_)), "nobody has it open");
    assert_nothing_left(&root, "closed");
}

#[test]
fn a_pipe_in_the_place_of_a_settings_file_of_git_is_named_and_not_waited_for() {
    // At the root, beside a landed file, and beside another one that git reads anew.
    for pipe in [".gitattributes", "d/.gitattributes", "other/.gitattributes"] {
        let landing: fn(&Path) = |root| write(root, "d/b.txt", "landed\n");
        let base: fn(&Path) = |root| write(root, "other/c.txt", "c\n");
        let case = Case { name: "pipe", base, landing, user: nothing, blocked: &[] };
        let (scene, new) = scene_of(&case);
        let root = scene.root();
        let path = root.join(pipe);
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.is_ok_and(|status| status.success()));
        // Older than the index has it, so git must read it, and the settings beside it before.
        let unchanged = std::fs::File::options().write(true).open(root.join("other/c.txt")).expect("opens");
        let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        unchanged.set_modified(long_ago).expect("ours");
        drop(unchanged);
        let began = std::time::Instant::now();
        let published = publish(&scene, &new);
        assert!(began.elapsed() < std::time::Duration::from_secs(120), "a git process waited for it");
        let PublishOutcome::Held(HeldReason::Files { files, .. }) = published else {
            panic!("{pipe}: {published:?}");
        };
        let named: Vec<_> = files.iter().map(|file| (file.path.as_slice(), file.why)).collect();
        assert_eq!(named, [(pipe.as_bytes(), BlockedFileReason::Special)]);
        assert_nothing_left(&root, pipe);
        std::fs::remove_file(&path).expect("ours");
        assert!(matches!(publish(&scene, &new), PublishOutcome::Done(_)), "{pipe}");
        assert_nothing_left(&root, pipe);
    }
}

#[test]
fn a_user_who_saves_all_the_time_loses_nothing() {
    // An editor replaces the file by rename, as fast as it can, with a new text each time. Whatever is published
    // meanwhile, the last text that was saved is on disk afterwards.
    for round in 0..8 {
        let (scene, new) = scene_of(&Case {
            name: "race",
            base: nothing,
            landing: |root| {
                for at in 0..200 {
                    write(root, &format!("many/{at}.txt"), "landed\n");
                }
                write(root, "a.txt", "landed\n");
            },
            user: nothing,
            blocked: &[],
        });
        let root = scene.root();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let started = std::time::Instant::now();
        let (result, last) = std::thread::scope(|scope| {
            let root = &root;
            let editor = scope.spawn(move || {
                // Begin at a different moment of the publishing in each round.
                while started.elapsed() < std::time::Duration::from_millis(round * 15) {
                    std::hint::spin_loop();
                }
                let mut last = None;
                // The channel closes with the other thread, also when that panics.
                while last.is_none() || stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                    let text = format!("mine {:?}\n", started.elapsed());
                    write(root, ".git/editor", &text);
                    std::fs::rename(root.join(".git/editor"), root.join("a.txt")).expect("saved");
                    last = Some(text);
                }
                last
            });
            let result = publish(&scene, &new);
            drop(stop);
            (result, editor.join().expect("the editor ran"))
        });
        assert_eq!(Some(read(&root, "a.txt")), last, "round {round}: {result:?}");
        assert_nothing_left(&root, "race");
    }
}

#[test]
fn files_that_a_power_cut_emptied_are_reported_as_damage() {
    for (name, content) in [("empty", vec![]), ("zeros", vec![0; 2])] {
        let (scene, new) = scene_of(&Case {
            name,
            base: nothing,
            landing: |root| write(root, "new.txt", "landed\n"),
            user: nothing,
            blocked: &[],
        });
        let root = scene.root();
        write(&root, "a.txt", &content);
        write(&root, "d/b.txt", "edited\n");
        let PublishOutcome::Held(HeldReason::Files { files, .. }) = publish(&scene, &new) else {
            panic!("{name}: published")
        };
        let seen: Vec<(&[u8], BlockedFileReason)> =
            files.iter().map(|file| (file.path.as_slice(), file.why)).collect();
        assert_eq!(
            seen,
            [(&b"a.txt"[..], BlockedFileReason::Damaged), (&b"d/b.txt"[..], BlockedFileReason::Changed)],
            "{name}"
        );
    }
}

#[test]
fn an_index_lock_of_git_is_respected_and_one_of_a_dead_landfall_is_not() {
    let (scene, new) = scene_of(&Case {
        name: "locks",
        base: nothing,
        landing: |root| write(root, "new.txt", "landed\n"),
        user: nothing,
        blocked: &[],
    });
    let root = scene.root();
    for content in ["", "DIRC"] {
        write(&root, ".git/index.lock", content);
        let result = publish(&scene, &new);
        assert!(matches!(result, PublishOutcome::Held(HeldReason::OperationInProgress { .. })), "{result:?}");
        assert!(root.join(".git/index.lock").exists(), "it is git's, not ours");
    }
    write(&root, ".git/index.lock", "landfall 1\n");
    let result = publish(&scene, &new);
    assert!(matches!(result, PublishOutcome::Done(_)), "{result:?}");
    assert_nothing_left(&root, "locks");
}

/// The staging folder of an update that was killed after it had taken `a.txt` out of the checkout, with `content` in it.
fn plant_interrupted_update(root: &Path, content: &str, commit: &Oid) {
    let stage = ".git/landfall-publish-1-0";
    write(root, &format!("{stage}/old/0"), content);
    write(root, &format!("{stage}/new/a.txt"), "landed\n");
    let fingerprint = r#"{"is_link":false,"is_executable":false,"size":2,"hash":1}"#;
    let taken = format!(r#"[{{"path":[97,46,116,120,116],"fingerprint":{fingerprint}}}]"#);
    let record = format!(r#"{{"commit":"{commit}","taken":{taken}}}"#);
    write(root, &format!("{stage}/swap.json"), record);
    write(root, ".git/index.lock", "landfall 1\n");
}

#[test]
fn what_a_killed_update_had_taken_out_is_put_back() {
    let scene = || {
        scene_of(&Case {
            name: "killed",
            base: nothing,
            landing: |root| write(root, "a.txt", "landed\n"),
            user: nothing,
            blocked: &[],
        })
    };
    // The file was unchanged: it goes back and is published.
    let (first, new) = scene();
    let root = first.root();
    remove(&root, "a.txt");
    plant_interrupted_update(&root, "a\n", &new);
    assert!(matches!(publish(&first, &new), PublishOutcome::Done(_)));
    assert_eq!(read(&root, "a.txt"), "landed\n");
    assert_nothing_left(&root, "unchanged");

    // The user saved the file in the moment before it was taken out.
    let (second, new) = scene();
    let root = second.root();
    remove(&root, "a.txt");
    plant_interrupted_update(&root, "mine\n", &new);
    assert!(matches!(publish(&second, &new), PublishOutcome::Held(HeldReason::Files { .. })));
    assert_eq!(read(&root, "a.txt"), "mine\n");
    assert_nothing_left(&root, "changed");

    // The new file was already there: the user's is kept beside it.
    let (third, new) = scene();
    let root = third.root();
    write(&root, "a.txt", "landed\n");
    plant_interrupted_update(&root, "mine\n", &new);
    assert!(matches!(publish(&third, &new), PublishOutcome::Done(_)));
    assert_eq!(read(&root, "a.txt.landfall-saved-0"), "mine\n");
    assert_nothing_left(&root, "both");

    // The branch had moved when the crash came: a file that the landing deletes does not come back, the lock goes.
    let (fourth, new) = scene_of(&Case {
        name: "deleted",
        base: nothing,
        landing: |root| remove(root, "a.txt"),
        user: nothing,
        blocked: &[],
    });
    let root = fourth.root();
    assert!(matches!(publish(&fourth, &new), PublishOutcome::Done(_)));
    plant_interrupted_update(&root, "a\n", &new);
    let hash_of_a = std::hash::DefaultHasher::new();
    let hash_of_a = {
        use std::hash::Hasher as _;
        let mut hasher = hash_of_a;
        hasher.write(b"a\n");
        hasher.finish()
    };
    let record = read(&root, ".git/landfall-publish-1-0/swap.json");
    let record = record.replace("\"hash\":1", &format!("\"hash\":{hash_of_a}"));
    write(&root, ".git/landfall-publish-1-0/swap.json", record);
    // What counts is the branch that was published, not what HEAD has become since.
    let record = read(&root, ".git/landfall-publish-1-0/swap.json");
    let record = record.replacen('{', "{\"branch\":\"refs/heads/main\",", 1);
    write(&root, ".git/landfall-publish-1-0/swap.json", record);
    git(&root, ["symbolic-ref", "HEAD", "refs/heads/unborn"]);
    fourth.store.recover_publishing(&fourth.repo, &main_branch()).expect("cleaned up");
    git(&root, ["symbolic-ref", "HEAD", "refs/heads/main"]);
    assert!(!root.join("a.txt").exists());
    assert_eq!(git(&root, ["status", "--porcelain"]), "");
    assert_nothing_left(&root, "moved");
}

#[test]
fn a_checkout_on_another_file_system_than_its_git_folder_is_updated() {
    let (scene, new) = scene_of(&Case {
        name: "two file systems",
        base: |root| symlink("d", root.join("link")).expect("linked"),
        landing: |root| {
            write(root, "a.txt", "landed\n");
            remove(root, "link");
            symlink("a.txt", root.join("link")).expect("linked");
            write(root, "new/run.sh", "landed\n");
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(root.join("new/run.sh"), mode).expect("set");
            remove(root, "d/b.txt");
        },
        user: nothing,
        blocked: &[],
    });
    let Ok(far) = tempfile::tempdir_in("/dev/shm") else { return }; // no second file system to try it with
    let linked = far.path().join("linked");
    git(&scene.root(), ["checkout", "-q", "-b", "other"]);
    git(&scene.root(), ["worktree", "add", "-q", linked.to_str().expect("text"), "main"]);
    write(&linked, "new/keep.ign", "mine");
    // Somebody else's file first, so that the way back is tried as well.
    write(&linked, "new/run.sh", "mine");
    let before = snapshot(&linked);
    assert!(matches!(publish(&scene, &new), PublishOutcome::Held(HeldReason::Files { .. })));
    assert_eq!(snapshot(&linked), before);
    remove(&linked, "new/run.sh");
    assert!(matches!(publish(&scene, &new), PublishOutcome::Done(_)));
    assert_eq!(git(&linked, ["status", "--porcelain"]), "");
    assert_eq!((read(&linked, "a.txt"), read(&linked, "new/keep.ign")), ("landed\n".into(), "mine".into()));
    let names: Vec<String> = snapshot(&linked).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [".gitignore", "a.txt", "link", "new/keep.ign", "new/run.sh"]);
}

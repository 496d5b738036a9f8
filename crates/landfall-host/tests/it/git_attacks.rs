//! What an agent can plant in its workspace, against every call we make: nothing may wake the canary.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use landfall_host::git::{
    CollectedWork, DiffOptions, IgnoredFilesPolicy, LandingClaim, LogRange, LostHeadPolicy, Oid, PublishMode,
    RefName, Workspace,
};

use crate::git_scene::{Scene, git, main_branch, options, sig, snapshot, try_git, write};

/// Something planted in a workspace.
struct Vector {
    name: &'static str,
    plant: fn(&Site),
    /// Plain git commands that wake the canary, to show that the plant is alive; empty if it needs more.
    control: &'static [&'static str],
}

/// Where a vector is planted.
struct Site {
    tree: PathBuf,
    /// A folder outside of the workspace, with an evil repository in `evil.git`.
    outside: PathBuf,
    /// A program that wakes the canary.
    wake: String,
}

impl Site {
    fn config(&self, lines: &str) {
        let path = self.tree.join(".git/config");
        let mut text = std::fs::read_to_string(&path).expect("readable");
        text.push_str(
            &lines.replace("WAKE", &self.wake).replace("OUTSIDE", &self.outside.display().to_string()),
        );
        std::fs::write(path, text).expect("written");
    }

    fn hooks(&self, folder: &Path) {
        std::fs::create_dir_all(folder).expect("made");
        for hook in [
            "applypatch-msg",
            "pre-applypatch",
            "pre-commit",
            "prepare-commit-msg",
            "commit-msg",
            "post-commit",
            "pre-rebase",
            "post-checkout",
            "post-merge",
            "pre-push",
            "pre-receive",
            "update",
            "proc-receive",
            "post-receive",
            "post-update",
            "reference-transaction",
            "push-to-checkout",
            "pre-auto-gc",
            "post-rewrite",
            "post-index-change",
            "fsmonitor-watchman",
        ] {
            std::fs::copy(&self.wake, folder.join(hook)).expect("copied");
        }
    }
}

const VECTORS: &[Vector] = &[
    Vector {
        name: "hooks",
        plant: |s| s.hooks(&s.tree.join(".git/hooks")),
        control: &["commit", "--allow-empty", "-m", "x"],
    },
    Vector {
        name: "core.hooksPath",
        plant: |s| {
            s.hooks(&s.outside.join("hooks"));
            s.config("[core]\n\thooksPath = OUTSIDE/hooks\n");
        },
        control: &["commit", "--allow-empty", "-m", "x"],
    },
    Vector {
        name: "clean and smudge filters",
        plant: |s| {
            s.config("[filter \"x\"]\n\tclean = WAKE\n\tsmudge = WAKE\n\trequired = true\n");
            write(&s.tree, ".gitattributes", "* filter=x\n");
        },
        control: &["add", "-A"],
    },
    Vector {
        name: "process filter in info/attributes",
        plant: |s| {
            s.config("[filter \"x\"]\n\tprocess = WAKE\n");
            write(&s.tree, ".git/info/attributes", "* filter=x\n");
        },
        control: &["add", "-A"],
    },
    Vector {
        name: "core.fsmonitor",
        plant: |s| s.config("[core]\n\tfsmonitor = WAKE\n"),
        control: &["status"],
    },
    Vector {
        name: "include.path",
        plant: |s| {
            write(&s.tree, "settings", format!("[core]\n\tfsmonitor = {}\n", s.wake));
            s.config("[include]\n\tpath = ../settings\n[includeIf \"gitdir:/\"]\n\tpath = ../settings\n");
        },
        control: &["status"],
    },
    Vector {
        name: "config.worktree",
        plant: |s| {
            write(&s.tree, ".git/config.worktree", format!("[core]\n\tfsmonitor = {}\n", s.wake));
            s.config("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n");
        },
        control: &["status"],
    },
    Vector {
        name: "gitfile swap",
        plant: |s| {
            std::fs::remove_dir_all(s.tree.join(".git")).expect("removed");
            write(&s.tree, ".git", format!("gitdir: {}\n", s.outside.join("evil.git").display()));
        },
        control: &["status"],
    },
    Vector {
        name: ".git as a link",
        plant: |s| {
            std::fs::remove_dir_all(s.tree.join(".git")).expect("removed");
            symlink(s.outside.join("evil.git"), s.tree.join(".git")).expect("linked");
        },
        control: &["status"],
    },
    Vector {
        name: "commondir",
        plant: |s| write(&s.tree, ".git/commondir", format!("{}\n", s.outside.join("evil.git").display())),
        control: &["status"],
    },
    Vector {
        name: "nested bare repository",
        plant: |s| {
            let nested = s.tree.join("nested");
            copy(&s.outside.join("evil.git"), &nested);
        },
        control: &["-C", "nested", "ls-files", "-m"],
    },
    Vector {
        name: "nested repository with a monitor",
        plant: |s| {
            git(&s.tree, ["init", "-q", "sub"]);
            git(
                &s.tree.join("sub"),
                ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x"],
            );
            git(&s.tree.join("sub"), ["config", "core.fsmonitor", &s.wake]);
            s.hooks(&s.tree.join("sub/.git/hooks"));
        },
        control: &["-C", "sub", "status"],
    },
    Vector {
        name: "committed gitlink with a monitor",
        plant: |s| {
            git(&s.tree, ["init", "-q", "sub"]);
            git(
                &s.tree.join("sub"),
                ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x"],
            );
            write(&s.tree, ".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ext::sh -c id\n");
            git(&s.tree, ["add", "-A"]);
            git(&s.tree, ["commit", "-q", "-m", "gitlink"]);
            git(&s.tree.join("sub"), ["config", "core.fsmonitor", &s.wake]);
            write(&s.tree, "sub/dirty", "dirty");
            git(
                &s.tree.join("sub"),
                [
                    "-c",
                    "core.fsmonitor=false",
                    "-c",
                    "user.name=x",
                    "-c",
                    "user.email=x@x",
                    "commit",
                    "-q",
                    "--allow-empty",
                    "-m",
                    "y",
                ],
            );
        },
        control: &["status"],
    },
    Vector {
        name: "alternates",
        plant: |s| {
            let mut text =
                std::fs::read_to_string(s.tree.join(".git/objects/info/alternates")).expect("readable");
            text.push_str(&format!("{}\n", s.outside.join("evil.git/objects").display()));
            write(&s.tree, ".git/objects/info/alternates", text);
            s.config("[core]\n\talternateRefsCommand = WAKE\n");
        },
        control: &[],
    },
    Vector {
        name: "textconv and diff drivers",
        plant: |s| {
            s.config("[diff]\n\texternal = WAKE\n[diff \"x\"]\n\ttextconv = WAKE\n\tcommand = WAKE\n");
            write(&s.tree, ".gitattributes", "* diff=x\n");
        },
        control: &["diff", "HEAD"],
    },
    Vector {
        name: "merge driver",
        plant: |s| {
            s.config("[merge \"x\"]\n\tdriver = WAKE\n[merge]\n\tdefault = x\n");
            write(&s.tree, ".gitattributes", "* merge=x\n");
        },
        control: &[],
    },
    Vector {
        name: "ssh, proxy, credentials, askpass",
        plant: |s| {
            s.config(
                "[core]\n\tsshCommand = WAKE\n\tgitProxy = WAKE\n\taskPass = WAKE\n[credential]\n\thelper = WAKE\n\
                 [remote \"origin\"]\n\turl = ssh://nowhere/x\n\tuploadpack = WAKE\n\treceivepack = WAKE\n[uploadpack]\n\tpackObjectsHook = WAKE\n",
            );
        },
        control: &["fetch", "origin"],
    },
    Vector {
        name: "promisor remote",
        plant: |s| {
            s.config(
                "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n\
                 [remote \"origin\"]\n\turl = ssh://nowhere/x\n\tpromisor = true\n[core]\n\tsshCommand = WAKE\n",
            );
        },
        control: &["cat-file", "-p", "1111111111111111111111111111111111111111"],
    },
    Vector {
        name: "pager, editor, alias",
        plant: |s| {
            s.config(
                "[core]\n\tpager = WAKE\n\teditor = WAKE\n[sequence]\n\teditor = WAKE\n[pager]\n\tlog = WAKE\n\tls-files = WAKE\n\
                 [alias]\n\tls = !WAKE\n\tx = !WAKE\n",
            );
        },
        control: &["x"],
    },
    Vector {
        name: "gpg",
        plant: |s| {
            s.config("[gpg]\n\tprogram = WAKE\n[commit]\n\tgpgSign = true\n[log]\n\tshowSignature = true\n")
        },
        control: &["commit", "--allow-empty", "-m", "x"],
    },
    Vector { name: "core.worktree", plant: |s| s.config("[core]\n\tworktree = OUTSIDE\n"), control: &[] },
    Vector {
        name: "objects as a link",
        plant: |s| {
            std::fs::rename(s.tree.join(".git/objects"), s.outside.join("objects")).expect("moved");
            symlink(s.outside.join("objects"), s.tree.join(".git/objects")).expect("linked");
        },
        control: &[],
    },
    Vector {
        name: "refs as a link",
        plant: |s| {
            std::fs::rename(s.tree.join(".git/refs"), s.outside.join("refs")).expect("moved");
            symlink(s.outside.join("refs"), s.tree.join(".git/refs")).expect("linked");
        },
        control: &[],
    },
    Vector {
        name: "HEAD as a pipe",
        plant: |s| {
            std::fs::remove_file(s.tree.join(".git/HEAD")).expect("removed");
            mkfifo(&s.tree.join(".git/HEAD"));
        },
        control: &[],
    },
    Vector {
        name: "a poisoned index",
        plant: |s| {
            write(&s.tree, ".git/index", "DIRC garbage");
            write(&s.tree, ".git/index.lock", "");
        },
        control: &[],
    },
    Vector {
        name: "replace refs and grafts",
        plant: |s| {
            let evil = git(&s.tree, ["commit-tree", "-m", "evil", "HEAD^{tree}"]);
            git(&s.tree, ["replace", "HEAD", &evil]);
            write(&s.tree, ".git/info/grafts", format!("{evil}\n"));
            write(&s.tree, ".git/shallow", format!("{evil}\n"));
        },
        control: &[],
    },
];

fn mkfifo(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo runs").success());
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for entry in std::fs::read_dir(from).expect("readable") {
        let entry = entry.expect("readable");
        if entry.file_type().expect("known").is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
        }
    }
}

/// A workspace with work in it and a vector planted.
fn scene_with(vector: &Vector) -> (Scene, Workspace, PathBuf, PathBuf) {
    let scene = Scene::new();
    let outside = scene.temp.path().join("outside");
    let canary = scene.temp.path().join("canary");
    let wake = outside.join("wake");
    write(&outside, "wake", format!("#!/bin/sh\ntouch '{}'\nexit 1\n", canary.display()));
    std::fs::set_permissions(&wake, PermissionsExt::from_mode(0o755)).expect("set");
    write(&outside, "precious.txt", "p");
    git(&outside, ["init", "-q", "evil.git"]);
    std::fs::rename(outside.join("evil.git/.git"), outside.join("evil")).expect("moved");
    std::fs::remove_dir(outside.join("evil.git")).expect("removed");
    std::fs::rename(outside.join("evil"), outside.join("evil.git")).expect("moved");
    let config = format!(
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = {}\n\tworktree = ..\n",
        wake.display()
    );
    write(&outside, "evil.git/config", config);

    let ws = scene.prepare("T1");
    write(ws.path(), "a.txt", "committed\n");
    git(ws.path(), ["commit", "-q", "-a", "-m", "agent's work"]);
    let site =
        Site { tree: ws.path().to_owned(), outside: outside.clone(), wake: wake.display().to_string() };
    (vector.plant)(&site);
    write(ws.path(), "dir/b.txt", "dirty\n");
    write(ws.path(), "new.txt", "new\n");
    (scene, ws, canary, outside)
}

#[test]
fn the_plants_are_alive() {
    for vector in VECTORS.iter().filter(|vector| !vector.control.is_empty()) {
        let (_scene, ws, canary, _) = scene_with(vector);
        try_git(ws.path(), vector.control);
        assert!(
            canary.exists(),
            "{}: plain git does not wake the canary, so the test below proves nothing",
            vector.name
        );
    }
}

#[test]
fn no_call_of_ours_wakes_a_planted_canary() {
    let mut cells = 0;
    for vector in VECTORS {
        let (scene, ws, canary, outside) = scene_with(vector);
        let before = snapshot(&outside);
        let mut check = |call: &str| {
            cells += 1;
            assert!(!canary.exists(), "{} × {call}", vector.name);
            assert_eq!(snapshot(&outside), before, "{} × {call}: something outside changed", vector.name);
            assert_eq!(
                scene.store.read_base().expect("read").as_ref(),
                Some(&scene.base),
                "{} × {call}",
                vector.name
            );
        };
        let _ = scene.store.workspace_head(&ws); // only what it wakes counts here
        check("workspace_head");
        let mut collect = options("refs/landfall/heads/t1");
        let _ = scene.store.collect_work(&ws, &collect); // a refusal is fine
        check("collect, refusing");
        collect.lost_head = LostHeadPolicy::UseBase;
        let collected: CollectedWork =
            scene.store.collect_work(&ws, &collect).unwrap_or_else(|e| panic!("{}: {e:?}", vector.name));
        check("collect");
        let blob = |path: &[u8]| {
            scene.store.read_blob(&collected.head, path, 100).expect("read").unwrap_or_default()
        };
        assert_eq!(blob(b"a.txt"), b"committed\n", "{}: the files are saved whatever happened", vector.name);
        assert_eq!(blob(b"dir/b.txt"), b"dirty\n", "{}", vector.name);
        assert_eq!(blob(b"new.txt"), b"new\n", "{}", vector.name);
        let head: &Oid = &collected.head;
        let store = &scene.store;
        store.merge_commits(&scene.base, head).expect("git runs");
        check("merge");
        store.diff_commits(&scene.base, head, &DiffOptions::default()).expect("git runs");
        check("diff");
        store.diff_names(&scene.base, head).expect("read");
        check("diff_names");
        store
            .read_log(&LogRange { to: head.clone(), from: None, first_parent: false }, 10)
            .expect("git runs");
        check("log");
        store.count_ahead(&scene.base, head).expect("git runs");
        store.merge_bases(&scene.base, head).expect("git runs");
        store.is_ancestor(&scene.base, head).expect("git runs");
        check("ahead, merge_bases, is_ancestor");
        let tree = collected.tree.clone();
        let landed = store
            .create_commit(&tree, &[scene.base.clone(), head.clone()], "land", &sig(), &sig())
            .expect("commits");
        check("commit");
        let claim = LandingClaim {
            landed: landed.clone(),
            base_before: scene.base.clone(),
            candidate_heads: vec![head.clone()],
            tree,
        };
        let _ = store.check_landing(&claim); // replaced history may not agree; it only must not run
        check("check_landing");
        let lane = scene.lane("1");
        lane.check_out_commit(&scene.base, IgnoredFilesPolicy::Remove).expect("checked out");
        lane.check_out_commit(&landed, IgnoredFilesPolicy::Keep).expect("checked out");
        lane.check_out_commit(&landed, IgnoredFilesPolicy::Remove).expect("checked out");
        check("lane");
        assert!(
            store.run_fsck().expect("git runs").problems.is_empty(),
            "{}: the store is whole",
            vector.name
        );
        check("fsck");
        let published = store.publish_branch(
            &scene.repo,
            &main_branch(),
            &landed,
            &scene.base,
            &PublishMode::Local,
            &sig(),
        );
        assert!(
            matches!(published, Ok(landfall_host::git::PublishOutcome::Done(_))),
            "{}: {published:?}",
            vector.name
        );
        check("publish");
        scene.store.import_branch(&scene.repo, &main_branch()).expect("imports");
        check("import");
        let other = scene.prepare("T2");
        drop(other);
        check("prepare");
        if scene
            .pool
            .release_workspace(ws.clone(), &collected, &RefName::new("refs/landfall/kept/t1").expect("fine"))
            .is_err()
        {
            // Its HEAD names a commit that could not be read: releasing would lose it, so that is refused.
            assert_eq!(collected.agent_head, scene.base, "{}", vector.name);
            scene
                .pool
                .remove_workspace(ws, &RefName::new("refs/landfall/keep/t1").expect("fine"), &sig())
                .expect("removed");
        }
        check("release");
        let reused = scene.pool.prepare_workspace("T3", &scene.base, "landfall/t3").expect("made");
        check("prepare, warm");
        assert_eq!(git(reused.path(), ["status", "--porcelain", "--ignored"]), "", "{}", vector.name);
        check("plain git in a reused workspace");
    }
    eprintln!("{cells} cells, 0 fired");
}

#[test]
fn removing_a_planted_workspace_wakes_nothing_and_keeps_the_files() {
    for vector in VECTORS {
        let (scene, ws, canary, outside) = scene_with(vector);
        let before = snapshot(&outside);
        let pin = RefName::new("refs/landfall/keep/t1").expect("fine");
        scene.pool.remove_workspace(ws, &pin, &sig()).unwrap_or_else(|e| panic!("{}: {e:?}", vector.name));
        assert!(!canary.exists(), "{}", vector.name);
        assert_eq!(snapshot(&outside), before, "{}", vector.name);
        let head = scene.store.resolve_ref(&pin).expect("read").expect("kept");
        let blob = scene.store.read_blob(&head, b"new.txt", 100).expect("read");
        assert_eq!(blob.as_deref(), Some(b"new\n".as_slice()), "{}", vector.name);
    }
}

#[test]
fn malformed_objects_do_not_enter_the_store() {
    for evil in [".git", "..", ".GIT", "git~1", "a/b"] {
        let scene = Scene::new();
        let ws = scene.prepare("T1");
        let blob = git(ws.path(), ["rev-parse", "HEAD:a.txt"]);
        let mut tree = format!("100644 {evil}\0").into_bytes();
        let raw: Vec<u8> =
            (0..20).map(|at| u8::from_str_radix(&blob[at * 2..at * 2 + 2], 16).expect("hex")).collect();
        tree.extend(raw);
        std::fs::write(scene.temp.path().join("tree"), tree).expect("written");
        let tree = git(ws.path(), ["hash-object", "-t", "tree", "-w", "--literally", "../../../tree"]);
        let commit = git(ws.path(), ["commit-tree", "-m", "evil", "-p", "HEAD", &tree]);
        git(ws.path(), ["update-ref", "HEAD", &commit]);
        let refused = scene.store.collect_work(&ws, &options("refs/landfall/heads/t1"));
        assert!(
            matches!(refused, Err(landfall_host::git::CollectError::Broken { .. })),
            "{evil}: {refused:?}"
        );
        let oid: Oid = commit.parse().expect("an id");
        assert!(!scene.store.contains(&oid).expect("read"), "{evil}");
        assert!(scene.store.run_fsck().expect("git runs").problems.is_empty());
    }
}

#[test]
fn a_missing_object_blocks_the_task_and_nothing_else() {
    let scene = Scene::new();
    let ws = scene.prepare("T1");
    write(ws.path(), "x", "some content\n");
    git(ws.path(), ["add", "-A"]);
    git(ws.path(), ["commit", "-q", "-m", "x"]);
    let blob = git(ws.path(), ["rev-parse", "HEAD:x"]);
    std::fs::remove_file(ws.path().join(".git/objects").join(&blob[..2]).join(&blob[2..])).expect("removed");
    let refused = scene.store.collect_work(&ws, &options("refs/landfall/heads/t1"));
    assert!(matches!(refused, Err(landfall_host::git::CollectError::Broken { .. })), "{refused:?}");
    // A flipped bit is found as well.
    let ws = scene.prepare("T2");
    write(ws.path(), "x", "some content\n");
    git(ws.path(), ["add", "-A"]);
    git(ws.path(), ["commit", "-q", "-m", "x"]);
    let path = ws.path().join(".git/objects").join(&blob[..2]).join(&blob[2..]);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).expect("set");
    let mut bytes = std::fs::read(&path).expect("readable");
    let last = bytes.len() - 6;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).expect("written");
    let refused = scene.store.collect_work(&ws, &options("refs/landfall/heads/t2"));
    assert!(matches!(refused, Err(landfall_host::git::CollectError::Broken { .. })), "{refused:?}");
    assert!(scene.store.run_fsck().expect("git runs").problems.is_empty());
    assert!(scene.prepare("T3").path().exists());
}

#[test]
fn a_pipe_in_the_place_of_a_settings_file_does_not_hang_us() {
    let scene = Scene::new();
    for (task, name) in [("T1", ".gitattributes"), ("T2", ".gitignore")] {
        let ws = scene.prepare(task);
        write(ws.path(), "dir/new.txt", "new\n");
        mkfifo(&ws.path().join("dir").join(name));
        let collected = scene.collect(&ws);
        let blob = scene.store.read_blob(&collected.head, b"dir/new.txt", 100).expect("read");
        assert_eq!(blob.as_deref(), Some(b"new\n".as_slice()));
        let lane = scene.lane("1");
        let path = lane.check_out_commit(&scene.base, IgnoredFilesPolicy::Keep).expect("checked out").path;
        mkfifo(&path.join("dir").join(name));
        lane.check_out_commit(&collected.head, IgnoredFilesPolicy::Keep).expect("checked out");
    }
}

/// The git processes whose command line names this folder.
fn gits_at(folder: &Path) -> Vec<String> {
    let name = folder.to_string_lossy().into_owned();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("readable").filter_map(Result::ok) {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(&format!("--work-tree={name}")) {
            found.push(format!("{} {line}", entry.file_name().to_string_lossy()));
        }
    }
    found
}

#[test]
fn a_git_that_waits_for_a_pipe_dies_with_its_owner() {
    let scene = Scene::new();
    let root = scene.root().canonicalize().expect("there");
    // git reads attributes before it compares a file, and would wait for a pipe of that name.
    write(&root, "a.txt", "ONE\ntwo\nthree\n");
    mkfifo(&root.join(".gitattributes"));
    let mut owner = std::process::Command::new(env!("CARGO_BIN_EXE_landfall-host-probe"))
        .args(["git-status".as_ref(), root.as_os_str()])
        .spawn()
        .expect("the probe runs");
    let wait_for = |what: &str, is_so: &dyn Fn() -> bool| {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(120);
        while !is_so() {
            assert!(std::time::Instant::now() < until, "{what}: {:?}", gits_at(&root));
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    };
    wait_for("git has begun", &|| !gits_at(&root).is_empty());
    owner.kill().expect("killed");
    owner.wait().expect("collected");
    wait_for("git is gone", &|| gits_at(&root).is_empty());
}

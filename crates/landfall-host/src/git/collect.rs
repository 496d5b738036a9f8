//! Making an agent's work safe: from its workspace into the store.
//!
//! The workspace is hostile ground. Its `.git` may be a link, a file, full of settings that run programs,
//! or gone. So: HEAD is read by opening plain files; objects are copied out as plain files and then go
//! through git's own checks; the files of the work tree are read with the store's settings and the room's
//! index. Nothing in the workspace is executed, and no path leads out of it.

use std::collections::{BTreeSet, HashSet};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;

use rustix::fs::FileType;
use thiserror::Error;

use super::files;
use super::index::{Index, IndexEdit};
use super::names::{Oid, RefName};
use super::objects::Difference;
use super::room::PrivateIndex;
use super::run::{GitError, GitErrorKind, GitResultExt as _, SLOW, Signature};
use super::store::{ObjectCheck, Store};
use super::workspace::Workspace;

/// How many dirty paths are named; the rest is only counted.
const DIRTY_NAMED_MAX: usize = 200;

/// What may be copied out of a workspace's object folder at once.
const OBJECTS_BYTES_MAX: u64 = 8 << 30;

/// How many repositories inside the workspace are taken in; a package cache of clones has hundreds.
const NESTED_MAX: usize = 256;

/// What to do with changes that the agent did not commit.
#[derive(Debug, Clone)]
pub struct LeftoverCommit {
    /// The message of the commit that takes them.
    pub message: String,
    /// Who signs it.
    pub signature: Signature,
}

/// What to do if the agent's HEAD cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostHeadPolicy {
    /// Say so.
    Refuse,
    /// Take the files as a change on the workspace's base: commits may be lost, files are not.
    UseBase,
}

/// How work is collected.
#[derive(Debug, Clone)]
pub struct CollectOptions {
    /// The ref that keeps the result.
    pub pin: Option<RefName>,
    /// If set, uncommitted changes become a commit.
    pub commit_leftovers: Option<LeftoverCommit>,
    /// What if HEAD is unreadable.
    pub lost_head: LostHeadPolicy,
    /// Uncommitted changes of files whose path begins so are no work: they are left where they are.
    pub aside: Option<Vec<u8>>,
    /// How many files and folders the work may add or change.
    pub paths_max: u64,
}

/// An agent's work, safe in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectedWork {
    /// The commit that holds all of it.
    pub head: Oid,
    /// Its tree.
    pub tree: Oid,
    /// What the agent's own HEAD was; the same as `head` if there were no leftovers.
    pub agent_head: Oid,
    /// Commits that the workspace's base does not reach.
    pub commits: u32,
    /// Whether `head` descends from the workspace's base; rewritten history is allowed.
    pub descends: bool,
    /// Whether `head` is a commit of leftovers.
    pub leftovers: bool,
    /// Paths that were changed but not committed by the agent, the first few.
    pub dirty_paths: Vec<Vec<u8>>,
    /// How many there were.
    pub dirty_count: usize,
    /// Paths that differ between the workspace's base and `head`.
    pub changed_paths_count: usize,
    /// Repositories inside the workspace.
    pub nested: Vec<NestedRepo>,
}

/// A repository inside the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NestedRepo {
    /// Where.
    pub path: Vec<u8>,
    /// What became of it.
    pub fate: NestedRepoOutcome,
}

/// What became of a repository inside the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NestedRepoOutcome {
    /// Its files were taken as ordinary files, without its history.
    FilesTaken,
    /// Its files are not taken: leftovers were not asked for, or it is a submodule of the project.
    LeftOut,
    /// The agent committed a link to it; its files are not in the agent's commit.
    Gitlink,
}

/// Why work could not be collected.
#[derive(Debug, Error)]
pub enum CollectError {
    /// The folder is not there any more.
    #[error("the workspace is gone")]
    WorkspaceGone,
    /// The agent's HEAD cannot be read; the files may still be fine.
    #[error("the agent's HEAD cannot be read: {why}")]
    HeadUnreadable {
        /// In which way.
        why: String,
    },
    /// Objects are missing, malformed or too many; nothing entered the store.
    #[error("the agent's commits are not whole: {why}")]
    Broken {
        /// git's words.
        why: String,
    },
    /// The commit changes more paths than allowed; its files were not looked at.
    #[error("the work changes {paths} paths, and `land.paths_max` allows {paths_max}")]
    TooManyPaths {
        /// The agent's commit, which is in the store.
        head: Oid,
        /// How many files and folders are new or changed.
        paths: u64,
        /// The limit.
        paths_max: u64,
    },
    /// Something of ours failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Store {
    /// Makes the work in a workspace safe in the store.
    pub fn collect_work(
        &self,
        workspace: &Workspace,
        options: &CollectOptions,
    ) -> Result<CollectedWork, CollectError> {
        let folder = match files::open_folder(workspace.path()) {
            Ok(folder) => folder,
            Err(error) if is_gone(&error) => return Err(CollectError::WorkspaceGone),
            Err(error) => return Err(GitError::from_io("open a workspace", error).into()),
        };
        let room = workspace.room();
        let agent_head = match self.take_head(workspace, folder.as_fd()) {
            Ok(head) => head,
            Err(CollectError::HeadUnreadable { .. } | CollectError::Broken { .. })
                if options.lost_head == LostHeadPolicy::UseBase =>
            {
                workspace.base().clone()
            }
            Err(error) => return Err(error),
        };
        let head_tree = self.tree_of(&agent_head)?;
        // Before anything makes a list of them.
        let paths = self.objects().count_changed_paths(&self.tree_of(workspace.base())?, &head_tree)?;
        if paths > options.paths_max {
            return Err(CollectError::TooManyPaths { head: agent_head, paths, paths_max: options.paths_max });
        }
        let index = self.sync_index_to(room, workspace.path(), &head_tree)?;
        let seen = self.scan_work_tree(workspace, folder.as_fd(), &index)?;

        let mut nested: Vec<NestedRepo> = Vec::new();
        let fate = if options.commit_leftovers.is_some() {
            NestedRepoOutcome::FilesTaken
        } else {
            NestedRepoOutcome::LeftOut
        };
        nested.extend(seen.nested.iter().map(|path| NestedRepo { path: path.clone(), fate }));
        nested.extend(
            seen.moved.iter().map(|path| NestedRepo { path: path.clone(), fate: NestedRepoOutcome::LeftOut }),
        );

        let mut head = agent_head.clone();
        let mut tree = head_tree.clone();
        let mut dirty = seen.dirty;
        if let Some(aside) = &options.aside {
            dirty.retain(|path| !path.starts_with(aside));
        }
        if let Some(leftovers) = &options.commit_leftovers
            && (!dirty.is_empty() || !seen.nested_files.is_empty())
        {
            dirty.extend(seen.nested_files);
            if dirty.len() as u64 > options.paths_max {
                let (head, paths) = (agent_head, dirty.len() as u64);
                return Err(CollectError::TooManyPaths { head, paths, paths_max: options.paths_max });
            }
            tree = self.write_leftovers(workspace, folder.as_fd(), &dirty)?;
            if tree != head_tree {
                head = self.commit_leftovers_on(&agent_head, &tree, leftovers)?;
            } else {
                dirty.clear(); // touched, but the same in the end
            }
        }
        if let Some(pin) = &options.pin {
            self.pin_commit(pin, &head)?;
        }

        let base = workspace.base();
        let (commits, descends) = match self.count_linear_commits(base, &head)? {
            Some(count) => (count, true),
            None => (self.count_ahead(base, &head)?, self.is_ancestor(base, &head)?),
        };
        let changed = self.diff_trees(&self.tree_of(base)?, &tree)?;
        nested.extend(changed.iter().filter(|difference| is_new_gitlink(difference)).map(|difference| {
            NestedRepo { path: difference.path.clone(), fate: NestedRepoOutcome::Gitlink }
        }));
        Ok(CollectedWork {
            leftovers: head != agent_head,
            head,
            tree,
            agent_head,
            commits,
            descends,
            dirty_count: dirty.len(),
            dirty_paths: dirty.into_iter().take(DIRTY_NAMED_MAX).collect(),
            changed_paths_count: changed.len(),
            nested,
        })
    }

    /// Commits what in the work tree differs from `head`, on top of it. None if nothing does. No ref is moved.
    pub(crate) fn commit_leftovers(
        &self,
        workspace: &Workspace,
        head: &Oid,
        leftovers: &LeftoverCommit,
    ) -> Result<Option<Oid>, GitError> {
        let folder = files::open_folder(workspace.path()).with_context(|| "open a workspace".to_owned())?;
        let head_tree = self.tree_of(head)?;
        let index = self.sync_index_to(workspace.room(), workspace.path(), &head_tree)?;
        let CollectScan { mut dirty, nested_files, .. } =
            self.scan_work_tree(workspace, folder.as_fd(), &index)?;
        dirty.extend(nested_files);
        if dirty.is_empty() {
            return Ok(None);
        }
        let tree = self.write_leftovers(workspace, folder.as_fd(), &dirty)?;
        if tree == head_tree {
            return Ok(None);
        }
        self.commit_leftovers_on(head, &tree, leftovers).map(Some)
    }

    /// The tree of the room's index with these files as they are on disk.
    fn write_leftovers(
        &self,
        workspace: &Workspace,
        folder: BorrowedFd<'_>,
        paths: &BTreeSet<Vec<u8>>,
    ) -> Result<Oid, GitError> {
        let room = workspace.room();
        room.note_tree(None)?;
        self.stage_files(workspace, folder, paths)?;
        let doing = "write the tree of the leftovers";
        let bytes = room.index_call(self, workspace.path(), doing).arg("write-tree").output()?;
        let tree = Oid::from_line(&bytes).ok_or_else(|| GitError::unexpected_output(doing, "no id"))?;
        room.note_tree(Some(&tree))?;
        Ok(tree)
    }

    fn commit_leftovers_on(
        &self,
        parent: &Oid,
        tree: &Oid,
        leftovers: &LeftoverCommit,
    ) -> Result<Oid, GitError> {
        let LeftoverCommit { message, signature } = leftovers;
        self.create_commit(tree, std::slice::from_ref(parent), message, signature, signature)
    }

    /// Where the agent's HEAD stands, read from plain files; for progress only. No process.
    pub fn workspace_head(&self, workspace: &Workspace) -> Option<Oid> {
        let folder = files::open_folder(workspace.path()).ok()?;
        read_head(folder.as_fd(), self.oid_bytes()).ok()
    }

    /// The agent's HEAD, brought into the store.
    fn take_head(&self, workspace: &Workspace, folder: BorrowedFd<'_>) -> Result<Oid, CollectError> {
        let head = read_head(folder, self.oid_bytes())?;
        match self.take_object(workspace, folder, &head)?.as_str() {
            "commit" => Ok(head),
            kind => Err(CollectError::HeadUnreadable { why: format!("{head} is a {kind}") }),
        }
    }

    /// Brings an object of the agent, and what it needs, into the store; says of which kind it is.
    pub(crate) fn take_object(
        &self,
        workspace: &Workspace,
        folder: BorrowedFd<'_>,
        oid: &Oid,
    ) -> Result<String, CollectError> {
        if let Some((kind, _)) = self.objects().object_info(oid)? {
            return Ok(kind);
        }
        let broken = |why: String| CollectError::Broken { why };
        let incoming = workspace.room().dir().join("incoming");
        let doing = || "copy the agent's objects".to_owned();
        files::remove_path(&incoming).with_context(doing)?;
        std::fs::create_dir_all(incoming.join("pack")).with_context(doing)?;
        copy_objects(folder, &self.objects_dir(), &incoming, OBJECTS_BYTES_MAX)?;
        let have: Vec<Oid> = std::iter::once(workspace.base().clone()).chain(self.read_base()?).collect();
        let result = self.fetch_objects_from(&incoming, oid, &have, ObjectCheck::Strict);
        files::remove_path(&incoming).with_context(doing)?;
        match result {
            Ok(()) => {}
            Err(GitError { kind: GitErrorKind::Failed { code, stderr }, .. })
                if !machine_failed(code, &stderr) =>
            {
                return Err(broken(stderr.trim().to_owned()));
            }
            Err(error) => return Err(error.into()),
        }
        // The receiver checked what came; this checks that it is what we wanted.
        match self.objects().object_info(oid)? {
            Some((kind, _)) => Ok(kind),
            None => Err(broken(format!("{oid} is missing"))),
        }
    }

    /// Makes the room's index stand for `tree`, keeping the file times of what did not change. No process.
    fn sync_index_to(&self, room: &PrivateIndex, work_tree: &Path, tree: &Oid) -> Result<Index, GitError> {
        let doing = || "turn the index to the agent's commit".to_owned();
        files::remove_path(&room.dir().join("index.lock")).with_context(doing)?;
        let known = room.recorded_tree();
        if known.as_ref() == Some(tree) {
            return room.read_index(self);
        }
        room.note_tree(None)?;
        match (known, room.read_index(self)) {
            (Some(known), Ok(index)) => {
                let changes: Vec<IndexEdit> = self
                    .diff_trees(&known, tree)?
                    .into_iter()
                    .map(|difference| IndexEdit { path: difference.path, entry: difference.new })
                    .collect();
                let bytes = index.with_edits(&changes, self.oid_bytes());
                // The new file keeps the old time: entries that were too fresh to be trusted must stay so.
                let path = room.index_path();
                let modified =
                    std::fs::metadata(&path).and_then(|meta| meta.modified()).with_context(doing)?;
                let draft = room.dir().join("index.new");
                std::fs::write(&draft, bytes).with_context(doing)?;
                let file = std::fs::File::options().write(true).open(&draft).with_context(doing)?;
                file.set_modified(modified).with_context(doing)?;
                std::fs::rename(&draft, &path).with_context(doing)?;
            }
            _ => {
                // Unknown after a crash: let git do the same from any state.
                if room.read_index(self).is_err() {
                    files::remove_path(&room.index_path()).with_context(doing)?;
                }
                room.index_call(self, work_tree, doing())
                    .args(["read-tree", "-m", "--end-of-options", tree.as_str()])
                    .output()?;
            }
        }
        room.note_tree(Some(tree))?;
        room.read_index(self)
    }

    /// What in the work tree differs from the index: one process.
    fn scan_work_tree(
        &self,
        workspace: &Workspace,
        folder: BorrowedFd<'_>,
        index: &Index,
    ) -> Result<CollectScan, GitError> {
        let doing = || "look for uncommitted work".to_owned();
        let flags = ["--modified", "--deleted", "--others", "--exclude-standard", "--deduplicate"];
        let listed = workspace.room().list_files(self, workspace.path(), &doing(), &flags)?;
        let gitlinks: HashSet<&[u8]> =
            index.entries().filter(|entry| entry.mode == 0o160000).map(|entry| entry.path).collect();
        let mut seen = CollectScan::default();
        for path in listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
            if let Some(path) = path.strip_suffix(b"/") {
                seen.nested.push(path.to_vec());
            } else if !gitlinks.contains(path)
                || !files::path_exists(&workspace.path().join(files::path_of(path)))
            {
                seen.dirty.insert(path.to_vec());
            } else {
                seen.moved.push(path.to_vec());
            }
        }
        // The files of a nested repository, by its own rules of what to ignore; it may nest further.
        let mut queue = seen.nested.clone();
        while let Some(path) = queue.pop() {
            if seen.nested.len() > NESTED_MAX {
                return Err(GitError::unexpected_output(
                    doing(),
                    format!("more than {NESTED_MAX} nested repositories"),
                ));
            }
            let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
            if files::open_folder_beneath(folder, &parts).is_err() {
                continue;
            }
            let bytes = self
                .prepare_call("look into a nested repository")
                .work_tree(&workspace.path().join(files::path_of(&path)))
                .env("GIT_INDEX_FILE", workspace.room().dir().join("no-index"))
                .args(["ls-files", "-z", "--others", "--exclude-standard"])
                .output()?;
            for name in bytes.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
                let mut whole = path.clone();
                whole.push(b'/');
                whole.extend_from_slice(name.strip_suffix(b"/").unwrap_or(name));
                if name.ends_with(b"/") {
                    seen.nested.push(whole.clone());
                    queue.push(whole);
                } else {
                    seen.nested_files.insert(whole);
                }
            }
        }
        Ok(seen)
    }

    /// Puts the content of changed files into the store and the room's index.
    fn stage_files(
        &self,
        workspace: &Workspace,
        folder: BorrowedFd<'_>,
        paths: &BTreeSet<Vec<u8>>,
    ) -> Result<(), GitError> {
        let mut take = Vec::new();
        let mut forget = Vec::new();
        let mut seen_folders = HashSet::new();
        for path in paths {
            let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
            let (name, folders) = parts.split_last().expect("split gives at least one part");
            let Ok(parent) = files::open_folder_beneath(folder, folders) else {
                // A folder on the way is gone or a link now; behind a link nothing is ours.
                forget.extend_from_slice(path);
                forget.push(0);
                continue;
            };
            make_readable(parent.as_fd(), name);
            for depth in 0..parts.len() {
                if seen_folders.insert(parts[..depth].join(&b'/')) {
                    defuse_attributes(folder, &parts[..depth]);
                }
            }
            take.extend_from_slice(path);
            take.push(0);
        }
        let update = |list: Vec<u8>, flags: &[&str]| {
            workspace
                .room()
                .index_call(self, workspace.path(), "take the leftovers")
                .arg("update-index")
                .args(flags)
                .args(["-z", "--stdin"])
                .input(list)
                .timeout(SLOW)
                .output()
        };
        if !forget.is_empty() {
            update(forget, &["--force-remove"])?;
        }
        if !take.is_empty() {
            update(take, &["--add", "--remove", "--replace"])?;
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
struct CollectScan {
    dirty: BTreeSet<Vec<u8>>,
    nested: Vec<Vec<u8>>,
    /// Submodules whose checkout stands elsewhere than the link says.
    moved: Vec<Vec<u8>>,
    nested_files: BTreeSet<Vec<u8>>,
}

fn is_new_gitlink(difference: &Difference) -> bool {
    let is_link = |side: &Option<(u32, Oid)>| side.as_ref().is_some_and(|(mode, _)| *mode == 0o160000);
    is_link(&difference.new) && !is_link(&difference.old)
}

/// git reads attributes of every folder on the way to a file, and would wait for a pipe of that name.
fn defuse_attributes(folder: BorrowedFd<'_>, parts: &[&[u8]]) {
    let Ok(folder) = files::open_folder_beneath(folder, parts) else { return };
    let name = c".gitattributes";
    if let Ok(stat) = rustix::fs::statat(&folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
        let kind = FileType::from_raw_mode(stat.st_mode);
        if !matches!(kind, FileType::RegularFile | FileType::Symlink | FileType::Directory) {
            let _ = files::remove_at(folder.as_fd(), name, kind); // if it stays, the call that follows times out
        }
    }
}

/// An agent may leave files that even their owner cannot read.
fn make_readable(parent: BorrowedFd<'_>, name: &[u8]) {
    let Ok(name) = std::ffi::CString::new(name) else { return };
    if let Ok(stat) = rustix::fs::statat(parent, &name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
        && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_mode & 0o400 == 0
    {
        let mode = rustix::fs::Mode::from_raw_mode((stat.st_mode & 0o7777) | 0o400);
        // If it fails, git's own attempt to read the file says so.
        rustix::fs::chmodat(parent, &name, mode, rustix::fs::AtFlags::empty()).ok();
    }
}

/// Whether an error speaks of the machine (no room, no descriptors, a failing disk) and not of what it was met on.
/// Work is never called broken for such an error: what is broken may be given up.
fn is_ours(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let machine = [
        Errno::NOSPC,
        Errno::DQUOT,
        Errno::FBIG,
        Errno::ROFS,
        Errno::IO,
        Errno::NOMEM,
        Errno::MFILE,
        Errno::NFILE,
    ];
    Errno::from_io_error(error).is_some_and(|errno| machine.contains(&errno))
}

/// Whether a folder is not there, or something else is in its place. One that is closed to us is there.
pub(crate) fn is_gone(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

/// The same for a git that failed, by its words: it was run with the plain locale.
pub(crate) fn machine_failed(code: i32, stderr: &str) -> bool {
    const WORDS: [&str; 10] = [
        "No space left on device",
        "Disk quota exceeded",
        "File too large",
        "Read-only file system",
        "Input/output error",
        "Cannot allocate memory",
        "Out of memory",
        "out of memory",
        "Too many open files",
        "Resource temporarily unavailable",
    ];
    let by_signal = code > 128;
    by_signal || WORDS.iter().any(|words| stderr.contains(words))
}

/// Reads HEAD of the `.git` folder below `folder`, through plain files only.
pub(crate) fn read_head(folder: BorrowedFd<'_>, oid_bytes: usize) -> Result<Oid, CollectError> {
    let unreadable = |why: String| CollectError::HeadUnreadable { why };
    let failed = |what: &str, error: std::io::Error| match is_ours(&error) {
        true => GitError::from_io(format!("read {what} of a workspace"), error).into(),
        false => unreadable(format!("{what}: {error}")),
    };
    let git_dir = files::open_folder_beneath(folder, &[b".git"]).map_err(|error| failed(".git", error))?;
    let fits = |oid: &Oid| oid.as_str().len() == oid_bytes * 2 && !oid.is_zero();
    let mut name = b"HEAD".to_vec();
    for _ in 0..5 {
        let shown = format!("`{}`", String::from_utf8_lossy(&name));
        let bytes = match files::read_beneath(git_dir.as_fd(), &name, 4096) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && name != b"HEAD" => {
                let packed =
                    packed_refs(git_dir.as_fd(), oid_bytes).map_err(|error| failed(&shown, error))?;
                let found = packed.into_iter().find(|(packed, _)| *packed == name).map(|(_, oid)| oid);
                return found.filter(fits).ok_or_else(|| unreadable(format!("{shown} does not exist")));
            }
            Err(error) => return Err(failed(&shown, error)),
        };
        let Some(target) = bytes.strip_prefix(b"ref:") else {
            return Oid::from_line(bytes.trim_ascii_end())
                .filter(fits)
                .ok_or_else(|| unreadable(format!("{shown} holds no object id")));
        };
        let target = target.trim_ascii();
        if !target.starts_with(b"refs/") || target.contains(&0) {
            return Err(unreadable("it points outside of refs/".to_owned()));
        }
        name = target.to_vec();
    }
    Err(unreadable("a ref points to a ref, and so on".to_owned()))
}

/// Where HEAD of the `.git` folder below `folder` was, newest first, as its log says. Whatever cannot be read is left out.
pub(crate) fn logged_heads(folder: BorrowedFd<'_>, oid_bytes: usize) -> Vec<Oid> {
    let log = files::open_folder_beneath(folder, &[b".git"])
        .and_then(|git_dir| files::read_beneath(git_dir.as_fd(), b"logs/HEAD", 16 << 20));
    let mut heads: Vec<Oid> = log
        .unwrap_or_default()
        .split(|byte| *byte == b'\n')
        .filter_map(|line| Oid::from_line(line.split(|byte| *byte == b' ').nth(1)?))
        .filter(|oid| oid.as_str().len() == oid_bytes * 2 && !oid.is_zero())
        .collect();
    heads.reverse();
    heads
}

fn packed_refs(git_dir: BorrowedFd<'_>, oid_bytes: usize) -> std::io::Result<Vec<(Vec<u8>, Oid)>> {
    let bytes = match files::read_beneath(git_dir, b"packed-refs", 16 << 20) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let parse = |line: &[u8]| {
        let (oid, name) = line.split_at_checked(oid_bytes * 2)?;
        Some((name.strip_prefix(b" ")?.to_vec(), Oid::from_line(oid)?))
    };
    let lines = bytes.split(|byte| *byte == b'\n');
    Ok(lines.filter(|line| !line.starts_with(b"#") && !line.starts_with(b"^")).filter_map(parse).collect())
}

/// How many refs of an agent are looked at; a repository with more is none that an agent made for a task.
const REFS_MAX: usize = 100_000;

/// What the agent's branches, tags and stashes point to, by name: its own loose ones before those that were packed.
/// An error if they cannot be listed, unless there is nothing that git itself would list.
pub(crate) fn agent_refs(folder: BorrowedFd<'_>, oid_bytes: usize) -> std::io::Result<Vec<(Vec<u8>, Oid)>> {
    let mut found = Vec::new();
    let git_dir = match files::open_folder_beneath(folder, &[b".git"]) {
        Err(error) if !is_ours(&error) => return Ok(found), // gone, or a link: not ours to follow
        other => other?,
    };
    match files::open_folder_beneath(git_dir.as_fd(), &[b"refs"]) {
        Err(error) if !is_ours(&error) => {}
        other => loose_refs(other?.as_fd(), b"refs", 0, &mut found)?,
    }
    found.sort();
    // Only the newest stash is a ref; the others are in its log.
    match files::read_beneath(git_dir.as_fd(), b"logs/refs/stash", 16 << 20) {
        Err(error) if !is_ours(&error) => {}
        other => found.extend(other?.split(|byte| *byte == b'\n').filter_map(|line| {
            let new = line.split(|byte| *byte == b' ').nth(1)?;
            Some((b"refs/stash".to_vec(), Oid::from_line(new)?))
        })),
    }
    found.extend(packed_refs(git_dir.as_fd(), oid_bytes)?);
    found.retain(|(_, oid)| !oid.is_zero() && oid.as_str().len() == oid_bytes * 2);
    Ok(found)
}

fn loose_refs(
    folder: BorrowedFd<'_>,
    name: &[u8],
    depth: u32,
    found: &mut Vec<(Vec<u8>, Oid)>,
) -> std::io::Result<()> {
    for (entry, kind) in files::list_entries(folder)? {
        if found.len() >= REFS_MAX || depth > 100 {
            return Err(std::io::Error::other("its refs are too many or too deep"));
        }
        let name = [name, entry.as_bytes()].join(&b'/');
        match kind {
            FileType::Directory => {
                let inner = files::open_to_change(folder, &entry)?;
                loose_refs(inner.as_fd(), &name, depth + 1, found)?;
            }
            FileType::RegularFile => {
                let bytes = match files::read_beneath(folder, entry.as_bytes(), 4096) {
                    Err(error) if !is_ours(&error) => continue, // no ref to git either
                    other => other?,
                };
                found.extend(Oid::from_line(bytes.trim_ascii_end()).map(|oid| (name, oid)));
            }
            _ => {} // a link or worse; git makes none
        }
    }
    Ok(())
}

/// Why objects could not be copied.
pub(crate) enum ObjectCopyError {
    /// The agent's files are missing, links, or too large.
    Theirs(std::io::Error),
    /// The machine failed; the agent's files may be fine.
    Ours(std::io::Error),
}

impl ObjectCopyError {
    fn from_read_error(error: std::io::Error) -> ObjectCopyError {
        if is_ours(&error) { ObjectCopyError::Ours(error) } else { ObjectCopyError::Theirs(error) }
    }
}

impl From<ObjectCopyError> for CollectError {
    fn from(error: ObjectCopyError) -> CollectError {
        match error {
            ObjectCopyError::Theirs(error) => CollectError::Broken { why: format!("its objects: {error}") },
            ObjectCopyError::Ours(error) => GitError::from_io("copy the agent's objects", error).into(),
        }
    }
}

/// Copies loose objects and packs as plain files. Alternates, graphs, bitmaps and everything else stay behind:
/// git would follow or believe them.
pub(crate) fn copy_objects(
    workspace: BorrowedFd<'_>,
    store: &Path,
    to: &Path,
    bytes_max: u64,
) -> Result<(), ObjectCopyError> {
    use ObjectCopyError::{Ours, Theirs};
    let list = |folder: BorrowedFd<'_>| files::list_entries(folder).map_err(ObjectCopyError::from_read_error);
    let open = |folder: BorrowedFd<'_>, parts: &[&[u8]]| {
        files::open_folder_beneath(folder, parts).map_err(ObjectCopyError::from_read_error)
    };
    let mut budget = bytes_max;
    let mut copy =
        |folder: BorrowedFd<'_>, name: &std::ffi::CStr, to: &Path| -> Result<(), ObjectCopyError> {
            let mut source = files::open_file_beneath(folder, name.to_bytes())
                .map_err(ObjectCopyError::from_read_error)?;
            let size = source.metadata().map_err(Ours)?.len();
            let too_much = || Theirs(std::io::Error::other(format!("more than {} MiB", bytes_max >> 20)));
            budget = budget.checked_sub(size).ok_or_else(too_much)?;
            let mut target = std::fs::File::create_new(to).map_err(Ours)?;
            std::io::copy(&mut std::io::Read::take(&mut source, size), &mut target).map_err(Ours)?;
            Ok(())
        };
    let from = open(workspace, &[b".git", b"objects"])?;
    let is_hex = |bytes: &[u8]| bytes.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    for (name, kind) in list(from.as_fd())? {
        let bytes = name.to_bytes();
        if kind != FileType::Directory || bytes.len() != 2 || !is_hex(bytes) {
            continue;
        }
        let folder = open(from.as_fd(), &[bytes])?;
        let inner = to.join(files::path_of(bytes));
        let known = store.join(files::path_of(bytes));
        let mut made = false;
        for (object, kind) in list(folder.as_fd())? {
            let object_bytes = object.to_bytes();
            if kind != FileType::RegularFile
                || !matches!(object_bytes.len(), 38 | 62)
                || !is_hex(object_bytes)
            {
                continue;
            }
            if known.join(files::path_of(object_bytes)).exists() {
                continue; // collected before
            }
            if !made {
                std::fs::create_dir(&inner).map_err(Ours)?;
                made = true;
            }
            copy(folder.as_fd(), &object, &inner.join(files::path_of(object_bytes)))?;
        }
    }
    let packs = match open(from.as_fd(), &[b"pack"]) {
        Err(Theirs(_)) => return Ok(()),
        other => other?,
    };
    for (name, kind) in list(packs.as_fd())? {
        let bytes = name.to_bytes();
        let plain = bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'));
        let wanted = bytes.starts_with(b"pack-") && (bytes.ends_with(b".pack") || bytes.ends_with(b".idx"));
        if kind == FileType::RegularFile && plain && wanted {
            copy(packs.as_fd(), &name, &to.join("pack").join(files::path_of(bytes)))?;
        }
    }
    Ok(())
}

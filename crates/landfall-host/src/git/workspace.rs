//! Workspaces: a checkout and a `.git` of its own for each agent, and the pool of warm checkouts.
//!
//! `<dir>/T7` is the agent's. `<dir>/.engine` is ours: a room per workspace, the warm pool, and the attic
//! for folders nobody can explain. A workspace is ready when its room holds `meta`; before that no agent
//! has seen it, so a half-made one may be wiped. After that, nothing is removed that is not in the store.
//!
//! A warm checkout whose room holds `spare` is a workspace but for its name: it stands at the commit written there, and
//! whoever takes it waits for no process.

use std::collections::BTreeSet;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::collect::{
    CollectError, CollectOptions, CollectedWork, LeftoverCommit, LostHeadPolicy, NestedRepo, agent_refs,
};
use super::files;
use super::names::{Oid, RefName};
use super::room::{DotGit, PrivateIndex};
use super::run::{GitError, GitResultExt as _, Signature};
use super::store::{PATHS_MAX, Store, remove_lock_files};

/// How many clean checkouts wait for the next task; beyond, disk is worth more than time.
const WARM_MAX: usize = 16;

/// How many branches, tags and stashes of an agent are kept besides its HEAD; each costs a copy of its objects. With
/// more, the workspace stays: what to give up is for a person to say.
const REFS_KEPT_MAX: usize = 50;

/// A task's own checkout and branch.
#[derive(Debug, Clone)]
pub struct Workspace {
    name: String,
    path: PathBuf,
    base: Oid,
    branch: String,
    room: PrivateIndex,
}

impl Workspace {
    /// The name it was prepared under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder in which the agent works.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The commit it started from.
    pub fn base(&self) -> &Oid {
        &self.base
    }

    /// The branch it started on, without `refs/heads/`.
    pub fn branch(&self) -> &str {
        &self.branch
    }

    /// Where the layers over caches of its agent are kept. The folder need not be there, and goes with the workspace.
    pub fn caches_path(&self) -> PathBuf {
        PrivateIndex::caches_path(self.room.dir())
    }

    /// Notes, before anybody is started in it, whether they could hand a file to somebody who outlives them. Then whoever
    /// gets the checkout next finds every file written anew.
    pub fn note_occupant(&self, run: &str, may_hand_out: bool) -> Result<(), GitError> {
        self.room.note_occupant(run, may_hand_out)
    }

    /// Notes that a run has ended with all its processes. Without that, whoever gets the checkout next gets another folder.
    pub fn note_vacated(&self, run: &str) -> Result<(), GitError> {
        self.room.note_vacated(run)
    }

    pub(crate) fn room(&self) -> &PrivateIndex {
        &self.room
    }

    /// Writes what [`WorkspacePool::find_workspace`] reads. A new file each time: whoever noted the old one sees that it was made again.
    pub(super) fn write_meta(&self) -> std::io::Result<()> {
        let meta = format!("base {}\nbranch {}\n", self.base, self.branch);
        files::write_whole(&self.room.dir().join("meta"), meta.as_bytes())
    }

    /// Removes the lock files that a killed git left in it: the next agent could not commit. Only while nobody works in it.
    pub fn heal_locks(&self) -> std::io::Result<Vec<PathBuf>> {
        let mut healed = Vec::new();
        let git_dir = self.path.join(".git");
        if files::is_folder(&git_dir) {
            remove_lock_files(&git_dir, 0, &mut healed)?;
        }
        Ok(healed)
    }
}

/// What was kept of a workspace before it was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceBackup {
    /// The refs that hold unmerged or uncommitted work; empty if all of it had landed.
    pub refs: Vec<(RefName, Oid)>,
    /// Repositories inside the workspace, and what became of them.
    pub nested: Vec<NestedRepo>,
}

/// All workspaces of one project. Cheap to clone.
#[derive(Debug, Clone)]
pub struct WorkspacePool {
    inner: Arc<PoolInner>,
}

#[derive(Debug)]
struct PoolInner {
    store: Store,
    dir: PathBuf,
    exclude: String,
    /// Names that a thread is at work on; two threads never touch the same workspace.
    busy: Mutex<BTreeSet<String>>,
    freed: Condvar,
    /// Held while a warm checkout is picked or put back.
    warm: Mutex<()>,
    /// Held while one is made a spare: one at a time.
    turning: Mutex<()>,
}

/// A warm checkout that is a workspace but for its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmWorkspace {
    /// The commit it stands at.
    pub base: Oid,
    /// How long ago it was made.
    pub age: Duration,
}

impl WorkspacePool {
    /// Opens the workspaces in `dir`, creating the folder if it is missing.
    pub fn open(store: &Store, dir: &Path) -> Result<WorkspacePool, GitError> {
        WorkspacePool::open_with_exclude(store, dir, &[])
    }

    /// Like [`WorkspacePool::open`], with patterns of files that are never taken as an agent's work.
    pub fn open_with_exclude(store: &Store, dir: &Path, exclude: &[&str]) -> Result<WorkspacePool, GitError> {
        let doing = || format!("open the workspaces in `{}`", dir.display());
        for folder in ["rooms", "warm", "attic"] {
            std::fs::create_dir_all(dir.join(".engine").join(folder)).with_context(doing)?;
        }
        // Cut short: files may lie around in it that no index knows.
        files::remove_path(&dir.join(".engine/turning")).with_context(doing)?;
        let dir = dir.canonicalize().with_context(doing)?;
        let exclude = exclude.iter().map(|pattern| format!("{pattern}\n")).collect();
        let inner = PoolInner {
            store: store.clone(),
            dir,
            exclude,
            busy: Mutex::default(),
            freed: Condvar::new(),
            warm: Mutex::default(),
            turning: Mutex::default(),
        };
        Ok(WorkspacePool { inner: Arc::new(inner) })
    }

    /// Where the workspaces are.
    pub fn dir(&self) -> &Path {
        &self.inner.dir
    }

    pub(crate) fn store(&self) -> &Store {
        &self.inner.store
    }

    /// The workspace of that name, if it is ready.
    pub fn find_workspace(&self, name: &str) -> Option<Workspace> {
        check_name(name).ok()?;
        let room = self.workspace_room(name);
        let meta = std::fs::read_to_string(room.dir().join("meta")).ok()?;
        let mut lines = meta.lines();
        let base = lines.next()?.strip_prefix("base ")?.parse().ok()?;
        let branch = lines.next()?.strip_prefix("branch ")?.to_owned();
        let path = self.inner.dir.join(name);
        files::is_folder(&path).then(|| Workspace { name: name.to_owned(), path, base, branch, room })
    }

    /// The names of all workspaces that are ready.
    pub fn workspace_names(&self) -> Result<Vec<String>, GitError> {
        let doing = || "list the workspaces".to_owned();
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.engine_folder("rooms")).with_context(doing)? {
            let name = entry.with_context(doing)?.file_name().to_string_lossy().into_owned();
            if self.find_workspace(&name).is_some() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Makes a workspace ready: a checkout of `base` on a new `branch`. One that is ready already is
    /// returned as it is, with the work in it. One process; one more if attributes changed.
    pub fn prepare_workspace(&self, name: &str, base: &Oid, branch: &str) -> Result<Workspace, GitError> {
        let doing = || format!("prepare workspace {name}");
        check_name(name).map_err(|why| GitError::unexpected_output(doing(), why))?;
        RefName::new(&format!("refs/heads/{branch}"))
            .map_err(|bad| GitError::unexpected_output(doing(), bad.to_string()))?;
        let _busy = self.lock_workspace(name);
        if let Some(workspace) = self.find_workspace(name) {
            return Ok(workspace);
        }
        if let Some(workspace) = self.take_spare(name, branch, &|spare| spare.base == *base)? {
            return Ok(workspace);
        }
        let store = &self.inner.store;
        self.pin_base(base)?;
        let path = self.inner.dir.join(name);
        let room = self.workspace_room(name);
        if room.dir().exists() {
            // Begun and not finished, or its folder vanished: no agent has work here that is not collected.
            files::remove_path(&path).with_context(doing)?;
            files::remove_path(room.dir()).with_context(doing)?;
        } else if files::path_exists(&path) {
            self.move_aside(&path).with_context(doing)?;
        }
        crate::crash::pass_point("git.prepare.begin");
        let warm = self.take_warm(&room, &path).with_context(doing)?;
        if !warm {
            std::fs::create_dir(room.dir()).with_context(doing)?;
            std::fs::create_dir(&path).with_context(doing)?;
            self.record_mount_in(room.dir())?;
        }
        std::fs::write(room.dir().join("exclude"), &self.inner.exclude).with_context(doing)?;
        crate::crash::pass_point("git.prepare.checkout");
        if let Err(error) = room.check_out(store, &path, base) {
            if !warm {
                return Err(error);
            }
            // A warm checkout that does not turn is not worth a task: start from nothing.
            files::remove_path(&path).with_context(doing)?;
            files::remove_path(&room.index_path()).with_context(doing)?;
            std::fs::create_dir(&path).with_context(doing)?;
            room.check_out(store, &path, base)?;
        }
        DotGit { branch: Some(branch), commit: base, exclude: &self.inner.exclude }
            .write_dot_git(store, &room, &path)
            .with_context(doing)?;
        self.mark_ready(name, path, base.clone(), branch, room)
    }

    /// Like [`WorkspacePool::prepare_workspace`], but only from a spare that `fits`, whatever commit it stands at. None if there is no such
    /// spare. No process.
    pub fn prepare_spare(
        &self,
        name: &str,
        branch: &str,
        fits: &dyn Fn(&WarmWorkspace) -> bool,
    ) -> Result<Option<Workspace>, GitError> {
        let doing = || format!("prepare workspace {name}");
        check_name(name).map_err(|why| GitError::unexpected_output(doing(), why))?;
        RefName::new(&format!("refs/heads/{branch}"))
            .map_err(|bad| GitError::unexpected_output(doing(), bad.to_string()))?;
        let _busy = self.lock_workspace(name);
        match self.find_workspace(name) {
            Some(workspace) => Ok(Some(workspace)),
            None => self.take_spare(name, branch, fits),
        }
    }

    /// The spares that wait.
    pub fn list_spares(&self) -> Vec<WarmWorkspace> {
        let _lock = self.inner.warm.lock().unwrap_or_else(PoisonError::into_inner);
        let warm = std::fs::read_dir(self.engine_folder("warm")).into_iter().flatten().flatten();
        warm.filter_map(|entry| spare_in(&entry.path())).collect()
    }

    /// Makes a spare at `base` of a warm checkout, if there is one that is none yet or has become `stale`. One process; one
    /// more if attributes changed.
    pub fn make_spare(&self, base: &Oid, stale: &dyn Fn(&WarmWorkspace) -> bool) -> Result<bool, GitError> {
        let doing = || format!("make a spare workspace at {base}");
        let _one = self.inner.turning.lock().unwrap_or_else(PoisonError::into_inner);
        let turning = self.engine_folder("turning");
        files::remove_path(&turning).with_context(doing)?;
        let may = |path: &Path| spare_in(path).is_none_or(|spare| stale(&spare));
        let Some(home) = self.pick_warm(&may, &turning).with_context(doing)? else { return Ok(false) };
        let room = PrivateIndex::at_folder(turning.clone());
        let made = (|| {
            let store = &self.inner.store;
            files::remove_path(&turning.join("spare")).with_context(doing)?;
            self.pin_base(base)?;
            std::fs::write(turning.join("exclude"), &self.inner.exclude).with_context(doing)?;
            let checkout = turning.join("checkout");
            crate::crash::pass_point("git.spare.checkout");
            room.check_out(store, &checkout, base)?;
            DotGit { branch: None, commit: base, exclude: &self.inner.exclude }
                .write_dot_git(store, &room, &checkout)
                .with_context(doing)?;
            std::fs::write(turning.join("spare"), format!("{base}\n")).with_context(doing)?;
            let _lock = self.inner.warm.lock().unwrap_or_else(PoisonError::into_inner);
            std::fs::rename(&turning, &home).with_context(doing)
        })();
        if made.is_err() {
            files::remove_path(&turning).with_context(doing)?; // it does not turn, so it is not worth keeping
        }
        made.map(|()| true)
    }

    /// Takes a spare that fits and gives it its name.
    fn take_spare(
        &self,
        name: &str,
        branch: &str,
        fits: &dyn Fn(&WarmWorkspace) -> bool,
    ) -> Result<Option<Workspace>, GitError> {
        let doing = || format!("prepare workspace {name}");
        let (room, path) = (self.workspace_room(name), self.inner.dir.join(name));
        if room.dir().exists() || files::path_exists(&path) {
            return Ok(None); // whatever stands there is looked at first
        }
        let may = |path: &Path| spare_in(path).is_some_and(|spare| fits(&spare));
        if self.pick_warm(&may, room.dir()).with_context(doing)?.is_none() {
            return Ok(None);
        }
        let note = room.dir().join("spare");
        let base = std::fs::read(&note).with_context(doing)?;
        let base = Oid::from_line(&base)
            .ok_or_else(|| GitError::unexpected_output(doing(), "a spare without a commit"))?;
        self.pin_base(&base)?;
        files::remove_path(&note).with_context(doing)?;
        crate::crash::pass_point("git.spare.taken");
        std::fs::rename(room.dir().join("checkout"), &path).with_context(doing)?;
        DotGit::start_branch(&path, branch, &base).with_context(doing)?;
        self.mark_ready(name, path, base, branch, room).map(Some)
    }

    /// Pinned before it is borrowed: what an agent builds on must never go away.
    fn pin_base(&self, base: &Oid) -> Result<(), GitError> {
        let pin = RefName::new(&format!("refs/landfall/pins/{base}")).expect("hex fits the grammar");
        self.inner.store.pin_commit(&pin, base)
    }

    /// From here on the workspace is ready, and whatever is in it is somebody's work.
    fn mark_ready(
        &self,
        name: &str,
        path: PathBuf,
        base: Oid,
        branch: &str,
        room: PrivateIndex,
    ) -> Result<Workspace, GitError> {
        let doing = || format!("prepare workspace {name}");
        crate::crash::pass_point("git.prepare.ready");
        let workspace = Workspace { name: name.to_owned(), path, base, branch: branch.to_owned(), room };
        workspace.write_meta().with_context(doing)?;
        Ok(workspace)
    }

    /// Gives a checkout back to the pool. `collected` proves that its work is in the store: if the agent has
    /// committed since, nothing happens but an error. Other branches of the agent and its stash are first kept under
    /// `keep`, `keep-1` and so on. No process if there are none.
    pub fn release_workspace(
        &self,
        workspace: Workspace,
        collected: &CollectedWork,
        keep: &RefName,
    ) -> Result<Vec<(RefName, Oid)>, CollectError> {
        let name = workspace.name.clone();
        let doing = || format!("release workspace {name}");
        let _busy = self.lock_workspace(&name);
        if !files::is_folder(&workspace.path) {
            files::remove_path(workspace.room.dir()).with_context(doing)?;
            return Ok(Vec::new());
        }
        match self.inner.store.workspace_head(&workspace) {
            Some(head) if head != collected.agent_head => {
                let why = format!("it moved on to {head} after it was collected");
                return Err(GitError::unexpected_output(doing(), why).into());
            }
            // Unreadable: it was collected without a HEAD, and there is nothing newer that we could read.
            Some(_) | None => {}
        }
        let safe = vec![collected.head.clone(), collected.agent_head.clone()];
        let kept = self.keep_refs(&workspace, None, safe, keep)?;
        crate::crash::pass_point("git.release.kept");
        let room = &workspace.room;
        files::remove_path(&room.dir().join("meta")).with_context(doing)?;
        PrivateIndex::forget_rebuild(room.dir()).with_context(doing)?;
        files::remove_path(&workspace.caches_path()).with_context(doing)?;
        crate::crash::pass_point("git.release.begin");
        let checkout = room.dir().join("checkout");
        files::remove_path(&checkout).with_context(doing)?;
        std::fs::rename(&workspace.path, &checkout).with_context(doing)?;
        room.remove_untracked(&self.inner.store, &checkout)?;
        crate::crash::pass_point("git.release.clean");
        let lock = self.inner.warm.lock().unwrap_or_else(PoisonError::into_inner);
        let count = std::fs::read_dir(self.engine_folder("warm")).with_context(doing)?.count();
        if count >= WARM_MAX {
            drop(lock);
            files::remove_path(room.dir()).with_context(doing)?;
            return Ok(kept);
        }
        let target = free_name(&self.engine_folder("warm"), &name);
        std::fs::rename(room.dir(), target).with_context(doing)?;
        Ok(kept)
    }

    /// Removes a workspace. Whatever is not on the base yet, committed or not, is first kept under `keep`;
    /// other branches of the agent under `keep-1`, `keep-2` and so on. Ignored files are not kept.
    pub fn remove_workspace(
        &self,
        workspace: Workspace,
        keep: &RefName,
        by: &Signature,
    ) -> Result<WorkspaceBackup, CollectError> {
        let name = workspace.name.clone();
        let doing = || format!("remove workspace {name}");
        let _busy = self.lock_workspace(&name);
        let store = &self.inner.store;
        let mut kept = WorkspaceBackup { refs: Vec::new(), nested: Vec::new() };
        let options = CollectOptions {
            pin: None,
            commit_leftovers: Some(LeftoverCommit {
                message: format!("Work left in workspace {name}\n"),
                signature: by.clone(),
            }),
            lost_head: LostHeadPolicy::UseBase,
            aside: None,
            paths_max: PATHS_MAX as u64,
        };
        match store.collect_work(&workspace, &options) {
            Ok(collected) => {
                kept.refs = self.keep_refs(&workspace, Some(collected.head), Vec::new(), keep)?;
                kept.nested = collected.nested;
            }
            // Too many to look at: what was committed is kept.
            Err(CollectError::TooManyPaths { head, .. }) => {
                kept.refs = self.keep_refs(&workspace, Some(head), Vec::new(), keep)?;
            }
            Err(CollectError::WorkspaceGone) => {}
            Err(error) => return Err(error),
        }
        crate::crash::pass_point("git.remove.kept");
        files::remove_path(&workspace.path).with_context(doing)?;
        files::remove_path(workspace.room.dir()).with_context(doing)?;
        Ok(kept)
    }

    /// Keeps `head` and what the agent's branches, tags and stashes point to under `keep`, `keep-1` and so on, except
    /// what the base, the workspace's own base or one of `safe` reaches. Repeats safely: the order is always the same.
    pub(super) fn keep_refs(
        &self,
        workspace: &Workspace,
        head: Option<Oid>,
        mut safe: Vec<Oid>,
        keep: &RefName,
    ) -> Result<Vec<(RefName, Oid)>, CollectError> {
        let store = &self.inner.store;
        let doing = || format!("keep the branches of workspace {}", workspace.name);
        let folder = files::open_folder(&workspace.path).with_context(doing)?;
        safe.extend(store.read_base()?);
        safe.push(workspace.base.clone());
        let mut wanted: Vec<Oid> = Vec::new();
        for (name, oid) in agent_refs(folder.as_fd(), store.oid_bytes()).with_context(doing)? {
            if safe.contains(&oid) || wanted.contains(&oid) {
                continue;
            }
            // A fetch brings tags and branches of others, often by the hundred; those that are here are not the agent's.
            let own = name.starts_with(b"refs/heads/") || name == b"refs/stash";
            if !own && store.contains(&oid)? {
                continue;
            }
            if wanted.len() == REFS_KEPT_MAX {
                let why = format!("it has more than {REFS_KEPT_MAX} branches, tags and stashes of its own");
                return Err(GitError::unexpected_output(doing(), why).into());
            }
            wanted.push(oid);
        }
        let mut kept = Vec::new();
        for oid in head.into_iter().chain(wanted) {
            let kind = match store.take_object(workspace, folder.as_fd(), &oid) {
                Ok(kind) => kind,
                // git itself could not keep it.
                Err(CollectError::Broken { .. } | CollectError::HeadUnreadable { .. }) => continue,
                Err(
                    error @ (CollectError::WorkspaceGone
                    | CollectError::TooManyPaths { .. }
                    | CollectError::Git(_)),
                ) => return Err(error),
            };
            let mut known = false;
            for reached in safe.iter().filter(|_| kind == "commit") {
                known = known || store.is_ancestor(&oid, reached)?;
            }
            if known {
                continue;
            }
            let pin = match kept.len() {
                0 => keep.clone(),
                number => RefName::new(&format!("{keep}-{number}"))
                    .map_err(|bad| GitError::unexpected_output(doing(), bad.to_string()))?,
            };
            store.pin_commit(&pin, &oid)?;
            kept.push((pin, oid.clone()));
            if kind == "commit" {
                safe.push(oid);
            }
        }
        Ok(kept)
    }

    /// Deletes all warm checkouts, for disk space; returns how many.
    pub fn drop_warm(&self) -> Result<usize, GitError> {
        let doing = || "drop warm checkouts".to_owned();
        let _lock = self.inner.warm.lock().unwrap_or_else(PoisonError::into_inner);
        let mut count = 0;
        for entry in std::fs::read_dir(self.engine_folder("warm")).with_context(doing)? {
            files::remove_path(&entry.with_context(doing)?.path()).with_context(doing)?;
            count += 1;
        }
        Ok(count)
    }

    /// How many warm checkouts wait.
    pub fn warm_count(&self) -> usize {
        std::fs::read_dir(self.engine_folder("warm")).map_or(0, Iterator::count)
    }

    fn take_warm(&self, room: &PrivateIndex, path: &Path) -> std::io::Result<bool> {
        // One that is no spare is turned no slower, and spares are for those they fit.
        let plain = |path: &Path| spare_in(path).is_none();
        let any = |_: &Path| true;
        let mut taken = self.pick_warm(&plain, room.dir())?;
        if taken.is_none() {
            taken = self.pick_warm(&any, room.dir())?;
        }
        if taken.is_none() {
            // The last one may be in the middle of becoming a spare: that is sooner over than a checkout from nothing.
            drop(self.inner.turning.lock().unwrap_or_else(PoisonError::into_inner));
            taken = self.pick_warm(&any, room.dir())?;
        }
        if taken.is_none() {
            return Ok(false);
        }
        files::remove_path(&room.dir().join("spare"))?;
        std::fs::rename(room.dir().join("checkout"), path)?;
        Ok(true)
    }

    /// Moves a warm checkout that may be taken to `to`; says where it was.
    fn pick_warm(&self, may: &dyn Fn(&Path) -> bool, to: &Path) -> std::io::Result<Option<PathBuf>> {
        let _lock = self.inner.warm.lock().unwrap_or_else(PoisonError::into_inner);
        // Only clean checkouts are moved into the pool, so whatever is here may be used. The one that was used last is
        // nearest to the base: the fewest files have to change.
        let mut warm = Vec::new();
        for entry in std::fs::read_dir(self.engine_folder("warm"))? {
            let path = entry?.path();
            if !may(&path) {
                continue;
            }
            let index = std::fs::metadata(PrivateIndex::at_folder(path.clone()).index_path());
            let used = index.and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
            warm.push((used, path));
        }
        let Some((_, newest)) = warm.into_iter().max() else { return Ok(None) };
        std::fs::rename(&newest, to)?;
        Ok(Some(newest))
    }

    /// A folder that is not ours to judge: kept, but out of the way.
    pub(super) fn move_aside(&self, path: &Path) -> std::io::Result<PathBuf> {
        let name = path.file_name().expect("a workspace has a name").to_string_lossy().into_owned();
        let to = free_name(&self.engine_folder("attic"), &name);
        std::fs::rename(path, &to)?;
        Ok(to)
    }

    /// The rooms of the checkouts in the pool.
    pub(super) fn pooled_rooms(&self) -> std::io::Result<Vec<PathBuf>> {
        let _lock = self.inner.warm.lock().unwrap_or_else(PoisonError::into_inner);
        std::fs::read_dir(self.engine_folder("warm"))?.map(|entry| entry.map(|entry| entry.path())).collect()
    }

    /// Patterns of files that are never an agent's work.
    pub(super) fn exclude_patterns(&self) -> &str {
        &self.inner.exclude
    }

    fn workspace_room(&self, name: &str) -> PrivateIndex {
        PrivateIndex::at_folder(self.engine_folder("rooms").join(name))
    }

    fn engine_folder(&self, folder: &str) -> PathBuf {
        self.inner.dir.join(".engine").join(folder)
    }

    pub(super) fn lock_workspace(&self, name: &str) -> WorkspaceGuard<'_> {
        let mut busy = self.inner.busy.lock().unwrap_or_else(PoisonError::into_inner);
        while !busy.insert(name.to_owned()) {
            busy = self.inner.freed.wait(busy).unwrap_or_else(PoisonError::into_inner);
        }
        WorkspaceGuard { pool: self, name: name.to_owned() }
    }
}

pub(super) struct WorkspaceGuard<'p> {
    pool: &'p WorkspacePool,
    name: String,
}

impl Drop for WorkspaceGuard<'_> {
    fn drop(&mut self) {
        self.pool.inner.busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
        self.pool.inner.freed.notify_all();
    }
}

/// The spare in a folder of the warm pool, if it is one.
fn spare_in(room: &Path) -> Option<WarmWorkspace> {
    let note = room.join("spare");
    let base = Oid::from_line(&std::fs::read(&note).ok()?)?;
    let made = std::fs::metadata(&note).ok()?.modified().ok()?;
    // A clock that was set back makes it new: it is still clean, and at a commit that was the base.
    let age = SystemTime::now().duration_since(made).unwrap_or_default();
    Some(WarmWorkspace { base, age })
}

fn free_name(folder: &Path, name: &str) -> PathBuf {
    (0_u64..)
        .map(|number| folder.join(format!("{name}.{number}")))
        .find(|path| !files::path_exists(path))
        .expect("there are more numbers than files")
}

fn check_name(name: &str) -> Result<(), &'static str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if name.is_empty()
        || name.len() > 64
        || !name.bytes().all(plain)
        || !name.as_bytes()[0].is_ascii_alphanumeric()
    {
        return Err(
            "a workspace is named by letters, digits, - _ and ., and starts with one of the first two",
        );
    }
    Ok(())
}

//! The store: the bare repository that only the engine writes.
//!
//! It borrows nothing. Objects enter it in two ways only: git makes them here itself (`update-index`,
//! `write-tree`, `merge-tree`, `commit-tree`), or they come as a pack that is hashed and checked on the
//! way in. In both, an object is written after everything it links to, so whatever is in the store is
//! whole, even after a crash. Nothing is ever pruned.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::files;
use super::names::{BranchName, Oid, RefName};
use super::objects::{CommitObject, Difference, Objects};
use super::repo::{ObjectFormat, Repo};
use super::run::{
    Git, GitCall, GitError, GitErrorKind, GitResultExt as _, QUICK, SLOW, Signature, code_of, kill_group,
    read_exact_until,
};
use super::store_repair::{self, StoreDamage, StoredWork};
use crate::wait::{FolderWatch, wait_for_child};

/// The ref of the canonical base.
pub const BASE_REF: &str = "refs/landfall/base";

/// The folder of the store in which things are tried that are not kept.
pub(crate) const SCRATCH: &str = "scratch";

/// Below this number, objects are stored one by one: thousands of tiny packs would slow every look-up.
const PACK_FROM: u32 = 200;

/// Above this size of packs, the first import links the person's packs instead of copying them.
const LINK_FROM_BYTES: u64 = 16 << 20;

/// How many differing paths are worth an answer; a change beyond this is no change of one task.
pub(crate) const PATHS_MAX: usize = 1_000_000;

/// How many commits of a straight line are counted by reading them; beyond, git counts.
const STRAIGHT_MAX: u32 = 200;

/// How far first parents are followed before git is asked who is whose ancestor.
const LINE_MAX: u32 = 16;

/// How many pairs of commits each map of the merge cache has at most: a landing asks a few times about its own pair.
const MERGE_CACHE_MAX: usize = 64;

/// What came of a compare-and-swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompareAndSwap {
    /// The ref moved.
    Moved,
    /// Someone else was first; the ref stands elsewhere.
    Lost {
        /// Where it stands; `None` if it does not exist.
        actual: Option<Oid>,
    },
}

/// How a path differs between two trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeChange {
    /// Only in the new tree.
    Added,
    /// In both, with other content or mode.
    Modified,
    /// Only in the old tree.
    Deleted,
    /// In both, as another kind of thing: file, link or embedded repository.
    TypeChanged,
}

/// A path that differs. Renames are shown as a deletion and an addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedPath {
    /// How.
    pub status: TreeChange,
    /// The path, as bytes: it need not be UTF-8.
    pub path: Vec<u8>,
}

/// How a diff is shown.
#[derive(Debug, Clone)]
pub struct DiffOptions {
    /// Unchanged lines around a change.
    pub context: u32,
    /// Whether renames are looked for.
    pub renames: bool,
    /// Whether files that look binary are shown line by line: one NUL hides a whole file otherwise.
    pub text: bool,
    /// Where the text is cut.
    pub bytes_max: usize,
    /// Only these paths, taken literally; all if empty.
    pub paths: Vec<Vec<u8>>,
}

impl Default for DiffOptions {
    fn default() -> DiffOptions {
        DiffOptions { context: 3, renames: true, text: false, bytes_max: 4 << 20, paths: Vec::new() }
    }
}

/// A diff as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffText {
    /// The bytes as git gave them; file contents need not be UTF-8.
    pub bytes: Vec<u8>,
    /// More followed.
    pub cut: bool,
}

/// A commit in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitLogEntry {
    /// The commit.
    pub oid: Oid,
    /// Its tree.
    pub tree: Oid,
    /// Its parents.
    pub parents: Vec<Oid>,
    /// Who wrote it.
    pub author: Signature,
    /// The first line of its message.
    pub subject: String,
    /// The whole message.
    pub message: String,
}

/// Which commits a log shows.
#[derive(Debug, Clone)]
pub struct LogRange {
    /// From this commit back.
    pub to: Oid,
    /// Without what is reachable from here.
    pub from: Option<Oid>,
    /// Only the line of first parents.
    pub first_parent: bool,
}

/// What a health check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreHealth {
    /// One line per problem; empty is healthy.
    pub problems: Vec<String>,
}

/// The bare repository of the engine. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<StoreInner>,
}

#[derive(Debug)]
struct StoreInner {
    git: Git,
    dir: PathBuf,
    format: ObjectFormat,
    objects: Objects,
    lasting: WriteDurability,
    repairs: Vec<String>,
    merges: Mutex<MergeCache>,
}

/// What git answered about pairs of commits. Commits never change, so no entry grows old. Locked for a look-up or an insertion only,
/// never while git runs.
#[derive(Debug, Default)]
struct MergeCache {
    /// The best common ancestors of two commits.
    bases: HashMap<(Oid, Oid), Vec<Oid>>,
    /// The trees of clean merges of two commits.
    trees: HashMap<(Oid, Oid), Oid>,
}

impl MergeCache {
    /// Adds an entry to a map of the cache. A full map is emptied first; what is needed is computed again.
    fn insert_bounded<T>(map: &mut HashMap<(Oid, Oid), T>, pair: (Oid, Oid), value: T) {
        if map.len() >= MERGE_CACHE_MAX {
            map.clear();
        }
        map.insert(pair, value);
    }
}

/// Whether what is written must survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteDurability {
    /// The store itself.
    Kept,
    /// A scratch repository beside it, for one question.
    ThrownAway,
}

impl Store {
    /// Opens the store in `dir` (`…/store.git`), creating it in the object format of `repo` if it is missing.
    pub fn open(git: &Git, dir: &Path, repo: &Repo) -> Result<Store, GitError> {
        let doing = || format!("open the store `{}`", dir.display());
        let format = repo.object_format();
        if !files::path_exists(dir) {
            store_repair::create_store(dir, format).with_context(doing)?;
        }
        let dir = dir.canonicalize().with_context(doing)?;
        let damage = store_repair::find_damage(&dir).with_context(doing)?;
        let config = std::fs::read_to_string(dir.join("config")).unwrap_or_default(); // damage, if it cannot be read
        let stored = match config.contains("[core]") {
            true if config.contains("objectformat = sha256") => ObjectFormat::Sha256,
            true => ObjectFormat::Sha1,
            false => store_repair::format_by_refs(&dir).unwrap_or(format),
        };
        if stored != format {
            return Err(GitError::unexpected_output(
                doing(),
                "its object format differs from the repository's",
            ));
        }
        store_repair::repair_damage(&dir, format, &damage).with_context(doing)?;
        let repairs = damage.iter().map(StoreDamage::to_sentence).collect();
        // Ours alone and small: written anew each time, so that nothing in it can grow old.
        let wanted = store_repair::config_text(format);
        if config != wanted {
            files::write_whole(&dir.join("config"), wanted.as_bytes()).with_context(doing)?;
        }
        let objects = Objects::new(git, &dir);
        let (merges, lasting, git) = (Mutex::default(), WriteDurability::Kept, git.clone());
        let inner = StoreInner { git, dir, format, objects, lasting, repairs, merges };
        Ok(Store { inner: Arc::new(inner) })
    }

    /// What was wrong with the files around its objects and was mended when it was opened, a sentence each.
    pub fn repairs(&self) -> &[String] {
        &self.inner.repairs
    }

    /// The base of the store in `dir`, and the work of tasks that it does not have. Changes nothing.
    pub fn list_work(git: &Git, dir: &Path) -> Result<Vec<StoredWork>, GitError> {
        store_repair::list_work(git, dir)
    }

    /// What is wrong with the files around the objects of the store in `dir`, a sentence each. Changes nothing.
    pub fn find_damage(dir: &Path) -> Result<Vec<String>, GitError> {
        let damage = store_repair::find_damage(dir)
            .with_context(|| format!("look at the store `{}`", dir.display()))?;
        Ok(damage.iter().map(StoreDamage::to_sentence).collect())
    }

    /// A new repository in `dir` that reads the objects of others and writes its own. For one question: nothing in it
    /// lasts, and its merges have less time.
    pub(crate) fn create_scratch_store(&self, dir: &Path, borrowed: &[PathBuf]) -> Result<Store, GitError> {
        let doing = || format!("make a scratch repository `{}`", dir.display());
        store_repair::fill_store(dir, self.inner.format).with_context(doing)?;
        let alternates = borrowed.iter().flat_map(|path| [files::bytes_of(path), b"\n"]).collect::<Vec<_>>();
        std::fs::write(dir.join("objects/info/alternates"), alternates.concat()).with_context(doing)?;
        let shallow = self.inner.dir.join("shallow");
        if shallow.exists() {
            std::fs::copy(shallow, dir.join("shallow")).with_context(doing)?;
        }
        let git = self.inner.git.clone();
        let objects = Objects::new(&git, dir);
        let (lasting, format) = (WriteDurability::ThrownAway, self.inner.format);
        let (dir, repairs, merges) = (dir.to_owned(), Vec::new(), Mutex::default());
        let inner = StoreInner { git, dir, format, objects, lasting, repairs, merges };
        Ok(Store { inner: Arc::new(inner) })
    }

    /// Where the store is.
    pub fn dir(&self) -> &Path {
        &self.inner.dir
    }

    /// How the store names its objects.
    pub fn object_format(&self) -> ObjectFormat {
        self.inner.format
    }

    /// The git that the store uses.
    pub fn git(&self) -> &Git {
        &self.inner.git
    }

    pub(crate) fn objects(&self) -> &Objects {
        &self.inner.objects
    }

    pub(crate) fn objects_dir(&self) -> PathBuf {
        self.inner.dir.join("objects")
    }

    pub(crate) fn oid_bytes(&self) -> usize {
        self.inner.format.oid_bytes()
    }

    /// A call in the store.
    pub(crate) fn prepare_call(&self, doing: impl Into<String>) -> GitCall<'_> {
        self.inner.git.prepare_call(doing).git_dir(&self.inner.dir)
    }

    /// A call in the store that writes what must survive a power cut.
    pub(crate) fn write_call(&self, doing: impl Into<String>) -> GitCall<'_> {
        match self.inner.lasting {
            WriteDurability::Kept => {
                self.prepare_call(doing).config("core.fsync=committed").config("core.fsyncMethod=batch")
            }
            WriteDurability::ThrownAway => self.prepare_call(doing).config("core.fsync=none"),
        }
    }

    /// How long a merge may take: one that nobody waits for need not come to an end.
    pub(crate) fn merge_time(&self) -> Duration {
        match self.inner.lasting {
            WriteDurability::Kept => SLOW,
            WriteDurability::ThrownAway => QUICK,
        }
    }

    // ── Bringing objects in ────────────────────────────────────────────────────────────────────────

    /// Brings the tip of a person's branch in and returns it. No process if it is here already.
    pub fn import_branch(&self, repo: &Repo, branch: &BranchName) -> Result<Oid, GitError> {
        let doing = || format!("import branch `{branch}`");
        let tip = repo
            .branch_tip(branch)?
            .ok_or_else(|| GitError::unexpected_output(doing(), "there is no such branch"))?;
        let upstream = upstream_ref(branch.as_str());
        let known = self.resolve_ref(&upstream)?;
        if known.as_ref() == Some(&tip) {
            return Ok(tip);
        }
        if !self.contains(&tip)? {
            let shallow = repo.common_dir().join("shallow");
            if shallow.exists() {
                let bytes = std::fs::read(&shallow).with_context(doing)?;
                files::write_whole(&self.inner.dir.join("shallow"), &bytes).with_context(doing)?;
            }
            let first = known.is_none() && self.read_base()?.is_none();
            if !(first && self.link_packs(repo, &tip)?) {
                let have: Vec<Oid> = known.into_iter().chain(self.read_base()?).collect();
                let brought = self.fetch_objects_from(&repo.objects_dir(), &tip, &have, ObjectCheck::Hash);
                brought.map_err(|error| explain_partial_clone(repo, branch, error))?;
            }
        }
        self.pin_commit(&upstream, &tip)?;
        Ok(tip)
    }

    /// Links all packs of a large repository into the new store: seconds instead of minutes. A linked pack
    /// stays whole when the person's git deletes its own name for it. `false` if it is not worth it, or if
    /// the packs do not hold everything, or if links are impossible here.
    fn link_packs(&self, repo: &Repo, tip: &Oid) -> Result<bool, GitError> {
        let from = repo.objects_dir();
        let doing = || format!("link the packs of `{}`", from.display());
        if files::path_exists(&from.join("info/alternates")) {
            return Ok(false); // it borrows itself: only a copy is whole
        }
        let Ok(listing) = std::fs::read_dir(from.join("pack")) else { return Ok(false) };
        let mut names: Vec<OsString> = Vec::new();
        let mut bytes = 0;
        for entry in listing {
            let entry = entry.with_context(doing)?;
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == "pack") && path.with_extension("idx").exists()
            {
                bytes += entry.metadata().with_context(doing)?.len();
                names.push(entry.file_name());
            }
        }
        if bytes < LINK_FROM_BYTES {
            return Ok(false);
        }
        let to = self.objects_dir().join("pack");
        for name in names {
            // The index last: a pack counts from then on.
            for ending in ["pack", "rev", "idx"] {
                let source = from.join("pack").join(&name).with_extension(ending);
                let target = to.join(&name).with_extension(ending);
                if !source.exists() || target.exists() {
                    continue;
                }
                if std::fs::hard_link(&source, &target).is_err() {
                    return Ok(false); // another filesystem; the copy that follows needs what is linked so far
                }
            }
        }
        files::sync_folder(&to).with_context(doing)?;
        // What is not in a pack yet, compared with what the packs hold.
        let roots = self.pack_roots(repo)?;
        self.fetch_objects_from(&from, tip, &roots, ObjectCheck::Hash)?;
        let said = self
            .prepare_call("check the imported history")
            .args(["rev-list", "--objects", "--quiet", "--end-of-options", tip.as_str()])
            .timeout(SLOW)
            .run()?;
        said.require_success()?;
        Ok(true)
    }

    /// Commits that branches of the person point to and that are whole in the store.
    fn pack_roots(&self, repo: &Repo) -> Result<Vec<Oid>, GitError> {
        let said = repo
            .git()
            .prepare_call("list branches")
            .git_dir(repo.common_dir())
            .args(["for-each-ref", "--count=2000", "--format=%(objectname)", "refs/heads", "refs/remotes"])
            .output_text()?;
        let mut roots = Vec::new();
        for oid in said.lines().filter_map(|line| line.parse::<Oid>().ok()) {
            // Present is not yet whole: a pack may hold a commit without its trees. So git is asked.
            if roots.len() < 3 && self.contains(&oid)? {
                let said = self
                    .prepare_call("check a branch in the packs")
                    .args(["rev-list", "--objects", "--quiet", "--end-of-options", oid.as_str()])
                    .timeout(SLOW)
                    .run()?;
                if said.code == 0 {
                    roots.push(oid);
                }
            }
        }
        Ok(roots)
    }

    /// Copies `want` and what it needs from another object folder, leaving out what `have` reaches. The
    /// other repository's settings are never read: only its objects are, and they are hashed on the way in.
    pub(crate) fn fetch_objects_from(
        &self,
        from: &Path,
        want: &Oid,
        have: &[Oid],
        check: ObjectCheck,
    ) -> Result<(), GitError> {
        let pack = self
            .prepare_call(format!("read {want} from `{}`", from.display()))
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quote_alternate_path(from));
        transfer_pack(pack, &[], want, have, check, |receive| {
            self.write_call("store objects")
                .args(receive.args)
                .input_pipe(receive.pipe)
                .timeout(SLOW)
                .output()
        })
    }

    /// Sees that a person's repository has a commit of the store, without any ref to it: for what reads it there.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn lend_commit(&self, repo: &Repo, commit: &Oid) -> Result<(), GitError> {
        let have: Vec<Oid> = self.read_base()?.filter(|base| base != commit).into_iter().collect();
        match repo.has_commit(commit)? {
            true => Ok(()),
            // What they have of the base is not known: everything that leads to the commit is handed over.
            false if have.iter().all(|base| repo.has_commit(base).unwrap_or(false)) => {
                self.copy_objects_to(repo, commit, &have)
            }
            false => self.copy_objects_to(repo, commit, &[]),
        }
    }

    /// Copies `want` and what it needs out of the store into a person's repository.
    pub(crate) fn copy_objects_to(&self, repo: &Repo, want: &Oid, have: &[Oid]) -> Result<(), GitError> {
        let pack = self.prepare_call(format!("read {want} from the store"));
        transfer_pack(pack, &[], want, have, ObjectCheck::Hash, |args| {
            repo.git()
                .prepare_call("store objects in the repository")
                .git_dir(repo.common_dir())
                .config("core.fsync=committed")
                .config("core.fsyncMethod=batch")
                .args(args.args)
                .input_pipe(args.pipe)
                .timeout(SLOW)
                .output()
        })
    }

    // ── Refs ───────────────────────────────────────────────────────────────────────────────────────

    /// Where the canonical base stands. Reads one file.
    pub fn read_base(&self) -> Result<Option<Oid>, GitError> {
        self.read_ref(BASE_REF)
    }

    /// Moves the canonical base, if it stands where `expected_old` says (`None`: it does not exist yet). What
    /// `update-ref` does, under the same lock, durably. No process.
    pub fn set_base(&self, new: &Oid, expected_old: Option<&Oid>) -> Result<CompareAndSwap, GitError> {
        let doing = || format!("move the base to {new}");
        self.commit_of(new)?; // it must be here, and be a commit
        let path = self.inner.dir.join(BASE_REF);
        std::fs::create_dir_all(path.parent().expect("a ref name has folders")).with_context(doing)?;
        let lock = RefLock::take(&path).with_context(doing)?;
        let actual = self.read_base()?;
        if actual.as_ref() != expected_old {
            return Ok(CompareAndSwap::Lost { actual });
        }
        lock.write(new).with_context(doing)?;
        Ok(CompareAndSwap::Moved)
    }

    /// Keeps a commit and everything it reaches under a name, replacing what the name stood for. No process.
    pub fn pin_commit(&self, name: &RefName, oid: &Oid) -> Result<(), GitError> {
        let doing = || format!("pin {oid} at `{name}`");
        if name.as_str() == BASE_REF {
            return Err(GitError::unexpected_output(doing(), "the base moves by compare-and-swap only"));
        }
        if !self.contains(oid)? {
            return Err(GitError::unexpected_output(doing(), "the store does not have it"));
        }
        if self.resolve_ref(name)?.as_ref() == Some(oid) {
            return Ok(());
        }
        let path = self.inner.dir.join(name.as_str());
        let parent = path.parent().expect("a ref name has folders");
        std::fs::create_dir_all(parent).with_context(doing)?;
        RefLock::take(&path).and_then(|lock| lock.write(oid)).with_context(doing)
    }

    /// Gives a name up, if it still stands for `oid`; gone already is fine. No process.
    pub fn unpin_commit(&self, name: &RefName, oid: &Oid) -> Result<CompareAndSwap, GitError> {
        let doing = || format!("unpin `{name}`");
        let path = self.inner.dir.join(name.as_str());
        if name.as_str() == BASE_REF {
            return Err(GitError::unexpected_output(doing(), "the base is never given up"));
        }
        let Some(actual) = self.resolve_ref(name)? else { return Ok(CompareAndSwap::Moved) };
        if &actual != oid {
            return Ok(CompareAndSwap::Lost { actual: Some(actual) });
        }
        let lock = RefLock::take(&path).with_context(doing)?;
        std::fs::remove_file(&path).with_context(doing)?;
        drop(lock);
        Ok(CompareAndSwap::Moved)
    }

    /// Where a ref stands. Reads one file.
    pub fn resolve_ref(&self, name: &RefName) -> Result<Option<Oid>, GitError> {
        self.read_ref(name.as_str())
    }

    /// The refs below a folder such as `refs/landfall/keep`, with where they stand.
    pub fn list_refs(&self, below: &RefName) -> Result<Vec<(RefName, Oid)>, GitError> {
        let said = self
            .prepare_call(format!("list `{below}`"))
            .args(["for-each-ref", "--format=%(objectname) %(refname)"])
            .arg(below.as_str())
            .output_text()?;
        let parse = |line: &str| {
            let (oid, name) = line.split_once(' ')?;
            Some((RefName::new(name).ok()?, oid.parse().ok()?))
        };
        Ok(said.lines().filter_map(parse).collect())
    }

    /// The store's refs are plain files that nobody packs, because nobody runs gc here.
    fn read_ref(&self, name: &str) -> Result<Option<Oid>, GitError> {
        let doing = || format!("read `{name}`");
        match std::fs::read(self.inner.dir.join(name)) {
            Ok(bytes) => Oid::from_line(&bytes)
                .filter(|oid| oid.as_str().len() == self.oid_bytes() * 2 && !oid.is_zero())
                .map(Some)
                .ok_or_else(|| GitError::unexpected_output(doing(), "the ref file holds no object id")),
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(None)
            }
            Err(error) if error.kind() == std::io::ErrorKind::IsADirectory => Ok(None),
            Err(error) => Err(GitError::from_io(doing(), error)),
        }
    }

    // ── Reading ────────────────────────────────────────────────────────────────────────────────────

    /// Whether an object is here.
    pub fn contains(&self, oid: &Oid) -> Result<bool, GitError> {
        Ok(self.objects().object_info(oid)?.is_some())
    }

    /// Whether `a` is reachable from `b` (a commit is its own ancestor).
    pub fn is_ancestor(&self, a: &Oid, b: &Oid) -> Result<bool, GitError> {
        if a == b {
            return Ok(true);
        }
        if let Some(known) = self.is_nearby_ancestor(a, b) {
            return Ok(known);
        }
        let said = self
            .prepare_call(format!("ask whether {a} leads to {b}"))
            .args(["merge-base", "--is-ancestor", "--end-of-options", a.as_str(), b.as_str()])
            .run()?;
        match said.code {
            0 => Ok(true),
            1 => Ok(false),
            _ => Err(said.into_error()),
        }
    }

    /// Whether `a` is reachable from `b`, if one of them is a few first parents away from the other: so it is while
    /// landings and the person's branch follow each other. No process.
    fn is_nearby_ancestor(&self, a: &Oid, b: &Oid) -> Option<bool> {
        // What cannot be read, such as the end of a shallow history, is left to git.
        let parent = |of: &Oid| self.commit_of(of).ok()?.parents.into_iter().next();
        let (mut behind_a, mut behind_b) = (Some(a.clone()), Some(b.clone()));
        for _ in 0..LINE_MAX {
            behind_b = behind_b.as_ref().and_then(parent);
            if behind_b.as_ref() == Some(a) {
                return Some(true);
            }
            behind_a = behind_a.as_ref().and_then(parent);
            if behind_a.as_ref() == Some(b) {
                return Some(false); // history has no circles
            }
        }
        None
    }

    /// The best common ancestors of two commits; more than one after criss-cross merges, none if unrelated.
    /// Asked once for each pair: commits never change.
    pub fn merge_bases(&self, a: &Oid, b: &Oid) -> Result<Vec<Oid>, GitError> {
        let pair = (a.clone(), b.clone());
        if let Some(known) = self.lock_merges().bases.get(&pair) {
            return Ok(known.clone());
        }
        let found = self.find_merge_bases(a, b)?;
        MergeCache::insert_bounded(&mut self.lock_merges().bases, pair, found.clone());
        Ok(found)
    }

    /// The tree of a clean merge that was asked for before and is still here. Commits never change, so neither does their merge:
    /// a task is merged with the same base for its prompt, before its checks, after them and when it lands.
    pub(super) fn known_merge(&self, ours: &Oid, theirs: &Oid) -> Result<Option<Oid>, GitError> {
        let pair = (ours.clone(), theirs.clone());
        let known = self.lock_merges().trees.get(&pair).cloned();
        match known {
            // A damaged disk may have lost it: then the merge writes it once more.
            Some(tree) => Ok(self.contains(&tree)?.then_some(tree)),
            None => Ok(None),
        }
    }

    pub(super) fn remember_merge(&self, ours: &Oid, theirs: &Oid, tree: &Oid) {
        let pair = (ours.clone(), theirs.clone());
        MergeCache::insert_bounded(&mut self.lock_merges().trees, pair, tree.clone());
    }

    fn lock_merges(&self) -> MutexGuard<'_, MergeCache> {
        self.inner.merges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find_merge_bases(&self, a: &Oid, b: &Oid) -> Result<Vec<Oid>, GitError> {
        let said = self
            .prepare_call(format!("find where {a} and {b} part"))
            .args(["merge-base", "--all", "--end-of-options", a.as_str(), b.as_str()])
            .run()?;
        if said.code == 1 {
            return Ok(Vec::new());
        }
        let text = said.require_success()?;
        Ok(text.split(|byte| *byte == b'\n').filter_map(Oid::from_line).collect())
    }

    pub(crate) fn commit_of(&self, oid: &Oid) -> Result<CommitObject, GitError> {
        self.objects().read_commit(oid)
    }

    /// The tree of a commit.
    pub fn tree_of(&self, commit: &Oid) -> Result<Oid, GitError> {
        Ok(self.commit_of(commit)?.tree)
    }

    /// The parents of a commit.
    pub fn parents_of(&self, commit: &Oid) -> Result<Vec<Oid>, GitError> {
        Ok(self.commit_of(commit)?.parents)
    }

    /// How many commits `head` has that `base` does not reach.
    pub fn count_ahead(&self, base: &Oid, head: &Oid) -> Result<u32, GitError> {
        if let Some(count) = self.count_linear_commits(base, head)? {
            return Ok(count);
        }
        let text = self
            .prepare_call(format!("count the commits from {base} to {head}"))
            .args(["rev-list", "--count", "--end-of-options", head.as_str(), &format!("^{base}")])
            .output_text()?;
        text.trim().parse().map_err(|_| GitError::unexpected_output("count commits", text))
    }

    /// The number of steps from `head` down to `base` if every commit between has one parent.
    pub(crate) fn count_linear_commits(&self, base: &Oid, head: &Oid) -> Result<Option<u32>, GitError> {
        let mut at = head.clone();
        for count in 0..STRAIGHT_MAX {
            if at == *base {
                return Ok(Some(count));
            }
            let mut parents = self.commit_of(&at)?.parents;
            if parents.len() != 1 {
                return Ok(None);
            }
            at = parents.remove(0);
        }
        Ok(None)
    }

    /// The content of a file in a commit; `None` if there is no such file, an error above `max` bytes.
    pub fn read_blob(&self, commit: &Oid, path: &[u8], max: u64) -> Result<Option<Vec<u8>>, GitError> {
        let doing = || format!("read `{}` of {commit}", String::from_utf8_lossy(path));
        let Some(entry) = self.objects().at_path(&self.tree_of(commit)?, path)? else { return Ok(None) };
        if entry.mode & 0o170000 != 0o100000 {
            return Ok(None); // a folder, a link or another repository is no file
        }
        match self.objects().read_object(&entry.oid, max)? {
            Some(object) if object.size > max => Err(GitError::unexpected_output(
                doing(),
                format!("it has {} bytes, {max} are allowed", object.size),
            )),
            Some(object) => Ok(Some(object.bytes)),
            None => Err(GitError::unexpected_output(doing(), "its content is missing")),
        }
    }

    /// The content of a file in a commit; `None` if there is no such file, or if it has more than `max` bytes.
    ///
    /// # Errors
    /// When the commit cannot be read.
    pub fn read_small_blob(&self, commit: &Oid, path: &[u8], max: u64) -> Result<Option<Vec<u8>>, GitError> {
        let entry = self.objects().at_path(&self.tree_of(commit)?, path)?;
        let Some(entry) = entry.filter(|entry| entry.mode & 0o170000 == 0o100000) else { return Ok(None) };
        let object = self.objects().read_object(&entry.oid, max)?;
        Ok(object.filter(|object| object.size <= max).map(|object| object.bytes))
    }

    /// The object at a path in a commit: of a file, a folder or a link; `None` if nothing is there.
    ///
    /// # Errors
    /// When the commit cannot be read.
    pub fn object_at(&self, commit: &Oid, path: &[u8]) -> Result<Option<Oid>, GitError> {
        Ok(self.objects().at_path(&self.tree_of(commit)?, path)?.map(|entry| entry.oid))
    }

    /// Where a symbolic link in a commit leads; `None` if there is no link at the path.
    ///
    /// # Errors
    /// When the commit cannot be read.
    pub fn read_link(&self, commit: &Oid, path: &[u8]) -> Result<Option<Vec<u8>>, GitError> {
        const TARGET_MAX: u64 = 4_096; // the longest path of the system
        let entry = self.objects().at_path(&self.tree_of(commit)?, path)?;
        let Some(entry) = entry.filter(|entry| entry.mode & 0o170000 == 0o120000) else { return Ok(None) };
        let object = self.objects().read_object(&entry.oid, TARGET_MAX)?;
        Ok(object.filter(|object| object.size <= TARGET_MAX).map(|object| object.bytes))
    }

    /// How many bytes a file of a commit has; `None` if there is no file at the path.
    ///
    /// # Errors
    /// When the commit cannot be read.
    pub fn blob_size(&self, commit: &Oid, path: &[u8]) -> Result<Option<u64>, GitError> {
        let entry = self.objects().at_path(&self.tree_of(commit)?, path)?;
        let Some(entry) = entry.filter(|entry| entry.mode & 0o170000 == 0o100000) else { return Ok(None) };
        Ok(self.objects().read_object(&entry.oid, 0)?.map(|object| object.size))
    }

    /// The names of what lies in a folder of a commit, or without a folder in its root; none if there is no such folder.
    ///
    /// # Errors
    /// When the commit cannot be read.
    pub fn names_in(&self, commit: &Oid, folder: &str) -> Result<Vec<String>, GitError> {
        let root = self.tree_of(commit)?;
        let tree = if folder.is_empty() {
            root
        } else {
            let entry = self.objects().at_path(&root, folder.as_bytes())?;
            let Some(entry) = entry.filter(|entry| entry.is_tree()) else { return Ok(Vec::new()) };
            entry.oid
        };
        let inside = self.objects().read_tree(&tree)?;
        Ok(inside.iter().map(|it| String::from_utf8_lossy(&it.name).into_owned()).collect())
    }

    /// The paths of all files in a folder of a commit and below it, or without a folder in all of it. Names that are not UTF-8
    /// are left out.
    ///
    /// # Errors
    /// When the commit cannot be read.
    pub fn files_below(&self, commit: &Oid, folder: &str) -> Result<Vec<String>, GitError> {
        let root = self.tree_of(commit)?;
        let (tree, start) = match folder {
            "" => (root, String::new()),
            folder => match self.objects().at_path(&root, folder.as_bytes())? {
                Some(entry) if entry.is_tree() => (entry.oid, format!("{folder}/")),
                Some(_) | None => return Ok(Vec::new()),
            },
        };
        let call = self.prepare_call(format!("list the files in `{folder}` of {commit}"));
        let said = call.args(["ls-tree", "-r", "-z", "--name-only", tree.as_str()]).output()?;
        let names = said.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
        Ok(names.filter(|name| !name.is_empty()).map(|name| format!("{start}{name}")).collect())
    }

    /// The newest commits of a range, newest first.
    pub fn read_log(&self, range: &LogRange, max: u32) -> Result<Vec<CommitLogEntry>, GitError> {
        let doing = format!("read the log of {}", range.to);
        let mut call = self.prepare_call(&doing).args([
            "log",
            "-z",
            "--no-color",
            "--no-show-signature",
            "--no-notes",
            "--no-mailmap",
        ]);
        call = call.arg("--format=%H%n%T%n%P%n%at%n%an%n%ae%n%B").arg(format!("--max-count={max}"));
        if range.first_parent {
            call = call.arg("--first-parent");
        }
        call = call.arg("--end-of-options").arg(range.to.as_str());
        if let Some(from) = &range.from {
            call = call.arg(format!("^{from}"));
        }
        let bytes = call.output()?;
        let parse = |record: &[u8]| {
            let text = String::from_utf8_lossy(record);
            let mut parts = text.splitn(7, '\n');
            let oid = parts.next()?.parse().ok()?;
            let tree = parts.next()?.parse().ok()?;
            let parents = parts.next()?.split(' ').filter_map(|word| word.parse().ok()).collect();
            let at_s: i64 = parts.next()?.parse().ok()?;
            let name = parts.next()?.to_owned();
            let email = parts.next()?.to_owned();
            let message = parts.next()?.trim_end().to_owned();
            let subject = message.lines().next().unwrap_or_default().to_owned();
            let author = Signature { name, email, at_ms: at_s.saturating_mul(1000) };
            Some(CommitLogEntry { oid, tree, parents, author, subject, message })
        };
        bytes
            .split(|byte| *byte == 0)
            .filter(|record| !record.is_empty())
            .map(|record| {
                parse(record)
                    .ok_or_else(|| GitError::unexpected_output(&doing, "a record has not its fields"))
            })
            .collect()
    }

    /// The difference between two commits as text; cut at the limit.
    pub fn diff_commits(&self, a: &Oid, b: &Oid, options: &DiffOptions) -> Result<DiffText, GitError> {
        let mut call = self
            .prepare_call(format!("compare {a} with {b}"))
            .args([
                "diff-tree",
                "-r",
                "-p",
                "--no-ext-diff",
                "--no-textconv",
                "--no-color",
                "--submodule=short",
            ])
            .arg(format!("--unified={}", options.context))
            .arg(if options.renames { "--find-renames" } else { "--no-renames" })
            .args(options.text.then_some("--text"))
            .args(["--end-of-options", a.as_str(), b.as_str(), "--"])
            .timeout(SLOW)
            .cut_at(options.bytes_max);
        for path in &options.paths {
            call = call.arg(files::path_of(path));
        }
        let said = call.run()?;
        let cut = said.cut;
        Ok(DiffText { bytes: said.require_success()?, cut })
    }

    /// The paths on which two commits differ. No process.
    pub fn diff_names(&self, a: &Oid, b: &Oid) -> Result<Vec<ChangedPath>, GitError> {
        let differences = self.diff_trees(&self.tree_of(a)?, &self.tree_of(b)?)?;
        Ok(differences.iter().map(changed_path).collect())
    }

    pub(crate) fn diff_trees(&self, old_tree: &Oid, new_tree: &Oid) -> Result<Vec<Difference>, GitError> {
        self.objects().list_differences(old_tree, new_tree, PATHS_MAX)
    }

    // ── Making commits ─────────────────────────────────────────────────────────────────────────────

    /// Makes a commit. The message goes by stdin and is taken as it is.
    pub fn create_commit(
        &self,
        tree: &Oid,
        parents: &[Oid],
        message: &str,
        author: &Signature,
        committer: &Signature,
    ) -> Result<Oid, GitError> {
        let doing = format!("commit tree {tree}");
        let mut call = self.write_call(&doing).arg("commit-tree");
        for parent in parents {
            call = call.args(["-p", parent.as_str()]);
        }
        // A NUL ends a message for git; it must not end ours in silence.
        let message = message.replace('\0', "\u{fffd}");
        let bytes = call
            .args(["-F", "-", "--end-of-options", tree.as_str()])
            .signed_by(author, committer)
            .input(message)
            .output()?;
        Oid::from_line(&bytes).ok_or_else(|| GitError::unexpected_output(doing, "not an object id"))
    }

    /// Makes the tree of a commit with one file more at its top, or with another content of that file.
    ///
    /// # Errors
    /// When git fails, or the name is no plain file name.
    pub fn tree_with_file(&self, commit: &Oid, name: &str, content: &[u8]) -> Result<Oid, GitError> {
        let doing = || format!("add `{name}` to the tree of {commit}");
        if name.is_empty() || name.contains(['/', '\n', '\0']) {
            return Err(GitError::unexpected_output(doing(), "it is not the name of a file"));
        }
        let id = |bytes: Vec<u8>| {
            Oid::from_line(&bytes).ok_or_else(|| GitError::unexpected_output(doing(), "not an object id"))
        };
        let blob = id(self
            .write_call(doing())
            .args(["hash-object", "-w", "--stdin"])
            .input(content.to_vec())
            .output()?)?;
        let listed = self
            .prepare_call(doing())
            .args(["ls-tree", "-z", "--end-of-options", commit.as_str()])
            .output()?;
        let mut entries: Vec<u8> = Vec::with_capacity(listed.len() + 100);
        for entry in listed.split_inclusive(|byte| *byte == 0) {
            let mut parts = entry.splitn(2, |byte| *byte == b'\t');
            let own = parts.nth(1).is_some_and(|own| own.strip_suffix(b"\0") == Some(name.as_bytes()));
            if !own {
                entries.extend_from_slice(entry);
            }
        }
        entries.extend_from_slice(format!("100644 blob {blob}\t{name}\0").as_bytes());
        id(self.write_call(doing()).args(["mktree", "-z"]).input(entries).output()?)
    }

    // ── Health ─────────────────────────────────────────────────────────────────────────────────────

    /// A light check: every object that a ref needs is there. Contents are not hashed again.
    pub fn run_fsck(&self) -> Result<StoreHealth, GitError> {
        let said = self
            .prepare_call("check the store")
            .args(["fsck", "--connectivity-only", "--no-dangling", "--no-progress"])
            .timeout(SLOW)
            .run()?;
        let mut problems: Vec<String> = String::from_utf8_lossy(&said.stdout)
            .lines()
            .chain(said.stderr.lines())
            .filter(|line| !line.starts_with("notice:"))
            .map(str::to_owned)
            .take(100)
            .collect();
        if said.code == 0 {
            problems.retain(|line| !line.starts_with("dangling") && !line.starts_with("warning:"));
        } else if problems.is_empty() {
            problems.push(format!("git fsck ended with {}", said.code));
        }
        Ok(StoreHealth { problems })
    }

    /// Removes lock files and scratch folders that a killed git or engine left in the store. Only for the holder of the state lock, before
    /// it starts anything: then no live process can hold one.
    pub fn heal_locks(&self) -> Result<Vec<PathBuf>, GitError> {
        let mut healed = Vec::new();
        files::remove_path(&self.inner.dir.join(SCRATCH))
            .with_context(|| "remove scratch folders".to_owned())?;
        remove_lock_files(&self.inner.dir, 0, &mut healed)
            .with_context(|| "remove stale locks of the store".to_owned())?;
        Ok(healed)
    }
}

/// What is said instead of git's words about an object that a partial clone has only on its remote.
fn explain_partial_clone(repo: &Repo, branch: &BranchName, error: GitError) -> GitError {
    match repo.promisor_remote() {
        Ok(Some(remote)) if matches!(error.kind, GitErrorKind::Failed { .. }) => {
            let why = format!(
                "the repository is a partial clone, and objects of `{branch}` are only on `{remote}`, where Landfall does not \
                 fetch them; get them with `git -C {} fetch --refetch --no-filter {remote}`",
                repo.root().display()
            );
            GitError::from_io(error.doing, std::io::Error::other(why))
        }
        Ok(_) | Err(_) => error,
    }
}

/// Removes the lock files below a git folder. No live process may hold one.
pub(crate) fn remove_lock_files(folder: &Path, depth: u32, healed: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let path = entry.path();
        // Object folders hold thousands of files and never a lock, but for `objects/info`.
        let objects = depth == 1
            && folder.ends_with("objects")
            && entry.file_name() != "info"
            && entry.file_name() != "pack";
        if kind.is_dir() && !objects && depth < 20 {
            remove_lock_files(&path, depth + 1, healed)?;
        } else if kind.is_file() && path.extension().is_some_and(|ending| ending == "lock") {
            std::fs::remove_file(&path)?;
            healed.push(path);
        }
    }
    Ok(())
}

/// How incoming objects are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectCheck {
    /// Hashed: for a person's history, which may hold old oddities that git itself has long accepted.
    Hash,
    /// Hashed and held to the rules: for an agent's work.
    Strict,
    /// The same, with the two rules that git only warns of: what the strictest remote refuses.
    Remote,
}

pub(crate) struct PackReceiver {
    pub args: Vec<OsString>,
    pub pipe: OwnedFd,
}

/// Streams a pack from one git to another. Both ends are ours; two processes, nothing in memory.
pub(crate) fn transfer_pack(
    pack: GitCall<'_>,
    pack_args: &[&str],
    want: &Oid,
    have: &[Oid],
    check: ObjectCheck,
    receive: impl FnOnce(PackReceiver) -> Result<Vec<u8>, GitError>,
) -> Result<(), GitError> {
    use std::io::{Read as _, Write as _};
    let doing = format!("transfer {want}");
    let pack = pack.args([
        "pack-objects",
        "--revs",
        "--stdout",
        "-q",
        "--thin",
        "--delta-base-offset",
        "--window=0",
        "--threads=1",
    ]);
    let pack = pack.args(pack_args);
    let mut child = pack.spawn(Stdio::piped())?;
    let deadline = Instant::now() + SLOW;
    let mut revs = format!("{want}\n");
    for oid in have {
        revs.push_str(&format!("^{oid}\n"));
    }
    let mut stdin = child.stdin.take().expect("it was started with a pipe");
    let _ = stdin.write_all(revs.as_bytes()); // if it has died, its exit code says so below
    drop(stdin);
    let stdout = child.stdout.take().expect("it was started with a pipe");
    let mut header = [0; 12];
    let started = read_exact_until(stdout.as_fd(), &mut header, deadline);
    let count = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
    let received = match started {
        Ok(true) if &header[..4] == b"PACK" && count == 0 => Ok(Vec::new()),
        Ok(true) if &header[..4] == b"PACK" => {
            let mut args: Vec<OsString> = if count < PACK_FROM {
                vec!["unpack-objects".into(), "-q".into()]
            } else {
                vec!["index-pack".into(), "--stdin".into(), "--fix-thin".into()]
            };
            match check {
                ObjectCheck::Hash => {}
                ObjectCheck::Strict => args.push("--strict".into()),
                ObjectCheck::Remote => args.push("--strict=badFilemode=error,gitmodulesParse=error".into()),
            }
            args.push(format!("--pack_header=2,{count}").into());
            receive(PackReceiver { args, pipe: OwnedFd::from(stdout) })
        }
        Ok(_) => Ok(Vec::new()), // the sender has failed; its own words are better than ours
        Err(error) => Err(GitError::from_io(&doing, error)),
    };
    if received.is_err() {
        // The sender may be waiting for a reader that is gone; a broken pipe ends it, but do not rely on it.
        let complaint = received.expect_err("just seen");
        kill_group(&mut child);
        return Err(complaint);
    }
    let mut stderr = Vec::new();
    if let Some(pipe) = child.stderr.take() {
        let _ = pipe.take(16 << 10).read_to_end(&mut stderr); // words only; the exit code decides
    }
    match wait_for_child(&mut child, deadline) {
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(Some(status)) => {
            let stderr = String::from_utf8_lossy(&stderr).into_owned();
            Err(GitError { doing, kind: GitErrorKind::Failed { code: code_of(status), stderr } })
        }
        Ok(None) => {
            kill_group(&mut child);
            Err(GitError { doing, kind: GitErrorKind::Timeout { after_s: SLOW.as_secs() } })
        }
        Err(error) => Err(GitError::from_io(doing, error)),
    }
}

/// git splits this variable at `:` and understands double quotes in the way of C.
pub(crate) fn quote_alternate_path(path: &Path) -> OsString {
    use std::os::unix::ffi::OsStringExt as _;
    let mut bytes = vec![b'"'];
    for byte in files::bytes_of(path) {
        match byte {
            b'"' | b'\\' => bytes.extend([b'\\', *byte]),
            0x20..=0x7e => bytes.push(*byte),
            other => bytes.extend(format!("\\{other:03o}").bytes()),
        }
    }
    bytes.push(b'"');
    OsString::from_vec(bytes)
}

/// Any branch name, as a ref in our alphabet.
pub(crate) fn upstream_ref(branch: &str) -> RefName {
    RefName::new(&format!("refs/landfall/upstream/{}", branch_digest(branch))).expect("hex fits the grammar")
}

/// Any branch name, in the alphabet of our refs.
pub(crate) fn branch_digest(branch: &str) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325; // FNV-1a: names, not secrets
    for byte in branch.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}

pub(crate) fn changed_path(difference: &Difference) -> ChangedPath {
    let status = match (&difference.old, &difference.new) {
        (None, _) => TreeChange::Added,
        (Some(_), None) => TreeChange::Deleted,
        (Some((old, _)), Some((new, _))) if old & 0o170000 != new & 0o170000 => TreeChange::TypeChanged,
        (Some(_), Some(_)) => TreeChange::Modified,
    };
    ChangedPath { status, path: difference.path.clone() }
}

/// Holds `<ref>.lock` as git does, so that a git process and we never write the same ref at once.
struct RefLock {
    of: PathBuf,
    path: PathBuf,
    file: std::fs::File,
    /// The lock file is still ours to remove.
    held: bool,
}

impl RefLock {
    fn take(of: &Path) -> std::io::Result<RefLock> {
        let mut path = of.as_os_str().to_owned();
        path.push(".lock");
        let path = PathBuf::from(path);
        let deadline = Instant::now() + QUICK / 12;
        let mut watch = None;
        loop {
            match std::fs::OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(RefLock { of: of.to_owned(), path, file, held: true }),
                Err(error)
                    if error.kind() == std::io::ErrorKind::AlreadyExists && Instant::now() < deadline =>
                {
                    match &watch {
                        // Tried once more after the watch began: what was removed before is not reported.
                        None => watch = Some(FolderWatch::new(of.parent().unwrap_or(of))),
                        Some(watch) => {
                            let _ = watch.wait(deadline.saturating_duration_since(Instant::now())); // tried again
                        }
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes the ref as git does: the lock file becomes the ref.
    fn write(mut self, oid: &Oid) -> std::io::Result<()> {
        use std::io::Write as _;
        self.file.write_all(format!("{oid}\n").as_bytes())?;
        self.file.sync_all()?;
        std::fs::rename(&self.path, &self.of)?;
        self.held = false; // from here on a file of that name is someone else's lock
        files::sync_folder(self.of.parent().expect("a ref has a folder"))
    }
}

impl Drop for RefLock {
    fn drop(&mut self) {
        if self.held {
            let _ = std::fs::remove_file(&self.path); // nobody else removes it while we hold it
        }
    }
}

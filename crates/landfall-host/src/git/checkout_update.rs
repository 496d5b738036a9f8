//! Moves the checkout of a user from one commit to the next, and refuses if any file of theirs would be lost.
//!
//! The rule: a file may be replaced or deleted only if git tracked it in the old commit and its content on disk is still
//! that. Every other file that is in the way stops the update: ignored, untracked, part of a submodule, or changed, even
//! if git was told not to look (`assume-unchanged`, `skip-worktree`).
//!
//! git itself does not keep this rule (tried with 2.47.3). `read-tree -m -u` overwrites ignored files and deletes ignored
//! folders. `merge --ff-only --no-overwrite-ignore` keeps those, but both delete a populated submodule that a file
//! replaces, miss a change that the times of a file do not show, and overwrite what is written between their check and
//! their write, which the user's own smudge filter can do. So git makes the new files in a staging folder and computes the
//! new index there, and `file_swap` moves the files.
//!
//! Order: stage, lock the branch, lock the index, check, swap the files, replace the index. The caller moves the branch and
//! then calls `finish`, which unlocks the index.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, FlockOperation, RenameFlags};
use rustix::io::Errno;

use super::file_swap::{
    self, CheckedFile, FileSwap, Fingerprint, StageFolder, SwapError, SwapPlan, SwapTarget, parent_of,
};
use super::files;
use super::names::Oid;
use super::objects::{Difference, Objects};
use super::open_files::OpenFiles;
use super::publish::{BlockedFile, BlockedFileReason};
use super::repo::{Checkout, Repo};
use super::run::{GitCall, GitConfigTrust, GitError, GitErrorKind, GitResultExt as _, SLOW};

/// How often the index may change while new files are made; somebody who stages that often is at work.
const INDEX_TRIES_MAX: u32 = 3;

/// How many files are listed. A folder in the way may hold very many.
const BLOCKED_LISTED_MAX: usize = 200;

/// How much of a file is read to see whether a power cut left nothing but zeros.
const ZEROS_READ_MAX: usize = 1 << 20;

/// What a lock of ours says, so that one that was left behind is told from git's own.
const LOCK_TEXT: &[u8] = b"landfall 1\n";

/// How large a stored file may be to be compared in memory.
const COMPARED_MAX: u64 = 16 << 20;

const MODE_LINK: u32 = 0o120_000;
const MODE_GITLINK: u32 = 0o160_000;

/// A checkout whose files and index are those of the new commit. Its index is locked until `finish`.
#[derive(Debug)]
pub(crate) struct CheckoutUpdate<L> {
    swap: FileSwap,
    _lock: IndexLock,
    /// The lock of the branch, for the caller.
    branch: L,
}

/// Why a checkout was not updated. Nothing is changed then.
#[derive(Debug)]
pub(crate) enum UpdateRefusal {
    /// These files of the user are in the way.
    Files(Vec<BlockedFile>),
    /// The index is locked, or the user began something meanwhile.
    Busy,
    /// The branch has moved to this commit, or is gone.
    BranchMoved(Option<Oid>),
}

/// What an update is about.
pub(crate) struct UpdateRequest<'r> {
    pub repo: &'r Repo,
    /// Has the content of both commits.
    pub objects: &'r Objects,
    pub checkout: &'r Checkout,
    /// The full name of the branch that moves with the checkout.
    pub branch: String,
    pub old: &'r Oid,
    pub new: &'r Oid,
    pub changes: &'r [Difference],
    /// Folders in which changes of the user do not matter.
    pub beside: &'r [String],
}

impl<L> CheckoutUpdate<L> {
    /// Updates files and index. `lock_branch` is called when the new files are made: the user's filters may take long, and
    /// their git must not wait for them. `is_idle` is asked once nobody else can begin anything.
    pub fn perform_update(
        request: &UpdateRequest<'_>,
        lock_branch: impl Fn() -> Result<Result<L, Option<Oid>>, GitError>,
        is_idle: impl Fn() -> Result<bool, GitError>,
    ) -> Result<Result<CheckoutUpdate<L>, UpdateRefusal>, GitError> {
        let UpdateRequest { repo, checkout, .. } = *request;
        let doing = || format!("update the checkout in `{}`", checkout.root.display());
        let index = checkout.git_dir.join("index");
        for _ in 0..INDEX_TRIES_MAX {
            let work = CheckoutUpdateRun {
                repo,
                checkout,
                stage: StageFolder::create(&checkout.git_dir).with_context(doing)?,
                root: files::open_folder(&checkout.root).with_context(doing)?,
            };
            let result = work.update_checkout(&index, request, &lock_branch, &is_idle);
            match result {
                Ok(CheckoutUpdateStep::IndexChanged(stage)) => stage.remove().with_context(doing)?,
                Ok(CheckoutUpdateStep::Over(result)) => return Ok(*result),
                Err(error) => return Err(error),
            }
        }
        Ok(Err(UpdateRefusal::Busy))
    }

    /// Moves the branch with `commit`, then unlocks the index and forgets the old files.
    pub fn finish_with_commit(self, commit: impl FnOnce(L) -> Result<(), GitError>) -> Result<(), GitError> {
        commit(self.branch)?;
        crate::crash::pass_point("git.publish.moved");
        self.swap.finish_swap().with_context(|| "remove the files that were replaced".to_owned())
    }
}

enum CheckoutUpdateStep<L> {
    /// Somebody changed the index while the new files were made.
    IndexChanged(StageFolder),
    Over(Box<Result<CheckoutUpdate<L>, UpdateRefusal>>),
}

/// One try.
struct CheckoutUpdateRun<'w> {
    repo: &'w Repo,
    checkout: &'w Checkout,
    stage: StageFolder,
    root: OwnedFd,
}

/// A file as the user's index and `git status` see it.
struct StatusLine {
    path: Vec<u8>,
    is_submodule: bool,
    is_staged: bool,
    is_intent_to_add: bool,
    is_modified_on_disk: bool,
    index_has_content: bool,
}

/// What is at a path of the checkout.
enum DiskPathState {
    Absent,
    /// A file or a link.
    Present,
    Folder,
    /// A pipe, a socket or a device.
    Special,
    /// This path above it is not a folder.
    Behind(Vec<u8>),
}

impl CheckoutUpdateRun<'_> {
    fn update_checkout<L>(
        self,
        index: &Path,
        request: &UpdateRequest<'_>,
        lock_branch: &impl Fn() -> Result<Result<L, Option<Oid>>, GitError>,
        is_idle: &impl Fn() -> Result<bool, GitError>,
    ) -> Result<CheckoutUpdateStep<L>, GitError> {
        let UpdateRequest { objects, old, new, changes, .. } = *request;
        let doing = || format!("update the checkout in `{}`", self.checkout.root.display());
        let index_before = read_if_there(index).with_context(doing)?;
        // Without a lock, because the user's filters may take long and their git must not wait for them.
        let staged = self.stage_new_files(index_before.as_deref(), old, new)?;
        let old_files = self.read_old_files(objects, changes)?;
        crate::crash::pass_point("git.publish.staged");
        let branch = match lock_branch() {
            Ok(Ok(branch)) => branch,
            Ok(Err(actual)) => {
                self.stage.remove().with_context(doing)?;
                return Ok(CheckoutUpdateStep::Over(Box::new(Err(UpdateRefusal::BranchMoved(actual)))));
            }
            Err(error) => {
                let _ = self.stage.remove(); // the error that counts is the first one
                return Err(error);
            }
        };
        crate::crash::pass_point("git.publish.locked");
        let Some(lock) =
            IndexLock::take_index_lock(&self.checkout.git_dir, &self.stage).with_context(doing)?
        else {
            self.stage.remove().with_context(doing)?;
            return Ok(CheckoutUpdateStep::Over(Box::new(Err(UpdateRefusal::Busy))));
        };
        if read_if_there(index).with_context(doing)? != index_before {
            return Ok(CheckoutUpdateStep::IndexChanged(self.stage));
        }
        if !is_idle()? {
            self.stage.remove().with_context(doing)?;
            return Ok(CheckoutUpdateStep::Over(Box::new(Err(UpdateRefusal::Busy))));
        }
        let plan = match self.plan_update(request, &old_files) {
            Ok(Ok(plan)) => plan,
            Ok(Err(blocked)) => {
                self.stage.remove().with_context(doing)?;
                return Ok(CheckoutUpdateStep::Over(Box::new(Err(UpdateRefusal::Files(blocked)))));
            }
            Err(error) => {
                let _ = self.stage.remove(); // the error that counts is the first one
                return Err(error);
            }
        };
        if let Err(error) = staged {
            let _ = self.stage.remove(); // the error that counts is the first one
            return Err(error);
        }
        crate::crash::pass_point("git.publish.checked");
        let CheckoutUpdateRun { repo, checkout, stage, root: _ } = self;
        let swap = match FileSwap::perform_swap(&checkout.root, stage, plan) {
            Ok(swap) => swap,
            Err(SwapError::Io(path, error)) => {
                let path = String::from_utf8_lossy(&path).into_owned();
                return Err(GitError::from_io(format!("replace `{path}` in the checkout"), error));
            }
            Err(SwapError::Changed(path)) => {
                let blocked = vec![BlockedFile { path, why: BlockedFileReason::Changed }];
                return Ok(CheckoutUpdateStep::Over(Box::new(Err(UpdateRefusal::Files(blocked)))));
            }
            Err(SwapError::InUse(path)) => {
                let blocked = vec![BlockedFile { path, why: BlockedFileReason::InUse }];
                return Ok(CheckoutUpdateStep::Over(Box::new(Err(UpdateRefusal::Files(blocked)))));
            }
            Err(SwapError::InTheWay(path)) => {
                let blocked = vec![BlockedFile { path, why: BlockedFileReason::Untracked }];
                return Ok(CheckoutUpdateStep::Over(Box::new(Err(UpdateRefusal::Files(blocked)))));
            }
        };
        if let Err(error) = replace_index(repo, checkout, &swap, index) {
            swap.undo_swap();
            return Err(error);
        }
        crate::crash::pass_point("git.publish.index");
        Ok(CheckoutUpdateStep::Over(Box::new(Ok(CheckoutUpdate { swap, _lock: lock, branch }))))
    }

    /// Makes the files that the new commit changes, and the new index, both in the staging folder. The user's filters,
    /// line endings and sparse patterns apply.
    ///
    /// An error is returned as a value: the files in the way say more than git does.
    fn stage_new_files(
        &self,
        index: Option<&[u8]>,
        old: &Oid,
        new: &Oid,
    ) -> Result<Result<(), GitError>, GitError> {
        let copy = self.stage.file_path("index");
        if let Some(bytes) = index {
            files::write_whole(&copy, bytes).with_context(|| "copy the index of the checkout".to_owned())?;
        }
        let said = checkout_call(self.repo, self.checkout, "make the new files of the checkout")
            .work_tree(&self.stage.new_files())
            .env("GIT_INDEX_FILE", &copy)
            .args(["read-tree", "-m", "-u", "--no-recurse-submodules", "--end-of-options"])
            .args([old.as_str(), new.as_str()])
            .run()?;
        Ok(said.require_success().map(drop))
    }

    /// What is to be done to the files, or which of them are in the way.
    fn plan_update(
        &self,
        request: &UpdateRequest<'_>,
        old_files: &HashMap<Vec<u8>, Option<Fingerprint>>,
    ) -> Result<Result<SwapPlan, Vec<BlockedFile>>, GitError> {
        let UpdateRequest { old, new, changes, beside, .. } = *request;
        let doing = || format!("look at the files in `{}`", self.checkout.root.display());
        let mut blocked = BlockedFiles::default();
        let status = match self.status_or_special_files(changes)? {
            Ok(status) => status,
            Err(special) => return Ok(Err(special)),
        };
        let changing: HashMap<&[u8], &Difference> =
            changes.iter().map(|change| (change.path.as_slice(), change)).collect();
        self.judge_status(&status, &changing, beside, &mut blocked);
        // Staged by the user: neither as it was nor as it will be.
        let (staged, not_as_new) = (self.index_differs(old)?, self.index_differs(new)?);
        for path in staged.intersection(&not_as_new).filter(|path| changing.contains_key(path.as_slice())) {
            blocked.add(path, BlockedFileReason::Changed);
        }
        let on_disk: Vec<DiskPathState> = changes
            .iter()
            .map(|change| self.read_path_state(&change.path))
            .collect::<Result<_, _>>()
            .with_context(doing)?;
        let present =
            || changes.iter().zip(&on_disk).filter(|(_, disk)| matches!(disk, DiskPathState::Present));
        // The bytes are read before git compares them, and again after the file was taken out.
        let mut checked = HashMap::new();
        for (change, _) in present() {
            if let Ok(Some(fingerprint)) = Fingerprint::read(self.root.as_fd(), &change.path) {
                checked.insert(change.path.as_slice(), fingerprint);
            }
        }
        let not_as_old =
            self.files_differ(present().filter_map(|(change, _)| blob_entry(change, &change.old)))?;
        let is_as_old = |change: &Difference| {
            is_blob(&change.old)
                && checked.contains_key(change.path.as_slice())
                && !not_as_old.contains(&change.path)
        };
        let not_as_old_now = present().filter(|(change, _)| !is_as_old(change));
        let not_as_new =
            self.files_differ(not_as_old_now.filter_map(|(change, _)| blob_entry(change, &change.new)))?;
        let is_as_new = |change: &Difference| {
            is_blob(&change.new) && !is_as_old(change) && !not_as_new.contains(&change.path)
        };
        // A clean filter may drop what makes them differ, and git has no other copy of that.
        for line in status.iter().filter(|line| line.is_modified_on_disk) {
            if let Some(change) = changing.get(line.path.as_slice())
                && !is_as_new(change)
            {
                blocked.add(&line.path, BlockedFileReason::Changed);
            }
        }
        let leaving: HashSet<&[u8]> = present()
            .filter(|(change, _)| !is_blob(&change.new) && is_as_old(change))
            .map(|(change, _)| change.path.as_slice())
            .collect();

        let target = SwapTarget { commit: new.as_str().to_owned(), branch: request.branch.clone() };
        let mut plan = SwapPlan { target, ..SwapPlan::default() };
        let mut take = Vec::new();
        for (change, disk) in changes.iter().zip(&on_disk) {
            let path = change.path.as_slice();
            let not_ours =
                if is_blob(&change.old) { BlockedFileReason::Changed } else { BlockedFileReason::Untracked };
            // Nothing is put into a submodule or another repository, even if nothing there has that name.
            if change.new.is_some()
                && let Some(repository) = self.repository_above(path)
            {
                blocked.add(&repository, BlockedFileReason::Submodule);
                continue;
            }
            match (&change.new, disk) {
                (None, DiskPathState::Present) if is_as_old(change) => {
                    take.push(path);
                    plan.prune.push(path.to_vec());
                }
                (None, DiskPathState::Present) => blocked.add(path, BlockedFileReason::Changed),
                (None, DiskPathState::Folder) if is_gitlink(&change.old) => {
                    // A submodule that is gone: its files, if there are any, stay as an untracked folder.
                    if self.is_empty_folder(path) {
                        plan.clear.push(path.to_vec());
                    }
                }
                (
                    None,
                    DiskPathState::Absent
                    | DiskPathState::Folder
                    | DiskPathState::Special
                    | DiskPathState::Behind(_),
                ) => {}

                (Some(_), DiskPathState::Behind(above)) if !leaving.contains(above.as_slice()) => {
                    blocked.add(above, BlockedFileReason::Untracked);
                }
                (Some(_), DiskPathState::Special) => blocked.add(path, not_ours),

                (Some((MODE_GITLINK, _)), DiskPathState::Present) if is_as_old(change) => {
                    take.push(path);
                    plan.make.push(path.to_vec());
                }
                (Some((MODE_GITLINK, _)), DiskPathState::Present) => blocked.add(path, not_ours),
                (Some((MODE_GITLINK, _)), DiskPathState::Folder) => {
                    let is_repository = self.is_repository(path);
                    if !is_gitlink(&change.old) && !is_repository {
                        self.find_foreign_files(path, &leaving, &mut blocked).with_context(doing)?;
                        plan.make.push(path.to_vec());
                    }
                }
                (Some((MODE_GITLINK, _)), DiskPathState::Absent | DiskPathState::Behind(_)) => {
                    if self.stage.has_new(path) {
                        plan.make.push(path.to_vec());
                    }
                }

                // Not made by git: outside the sparse patterns, or the index is at the new commit already.
                (Some(_), DiskPathState::Absent) if !self.stage.has_new(path) => {}
                (Some(_), DiskPathState::Absent | DiskPathState::Behind(_)) => plan.put.push(path.to_vec()),
                (Some(_), DiskPathState::Present) if is_as_new(change) => {}
                (Some(_), DiskPathState::Present) if self.stage.has_new(path) && is_as_old(change) => {
                    take.push(path);
                    plan.put.push(path.to_vec());
                }
                (Some(_), DiskPathState::Present)
                    if self.stage.has_new(path)
                        && self.is_case_variant(path, &leaving).with_context(doing)? =>
                {
                    plan.put.push(path.to_vec());
                }
                (Some(_), DiskPathState::Present) => blocked.add(path, not_ours),
                (Some(_), DiskPathState::Folder) => {
                    self.find_foreign_files(path, &leaving, &mut blocked).with_context(doing)?;
                    plan.clear.push(path.to_vec());
                    plan.put.push(path.to_vec());
                }
            }
        }
        if !blocked.0.is_empty() {
            return Ok(Err(blocked.into_list()));
        }
        let mut open_files = OpenFiles::default();
        for path in &take {
            match old_files.get(*path) {
                Some(Some(old)) if old.has_content_of(&checked[path]) => {}
                // git sees no difference where a conversion drops it, and what it drops is nowhere else.
                Some(_) => blocked.add(path, BlockedFileReason::Filtered),
                None => blocked.add(path, BlockedFileReason::Changed), // it has come back since
            }
            let (parent, name) = file_swap::open_parent(self.root.as_fd(), path).with_context(doing)?;
            if open_files.is_written(parent.as_fd(), &name) {
                blocked.add(path, BlockedFileReason::InUse);
            }
        }
        if !blocked.0.is_empty() {
            return Ok(Err(blocked.into_list()));
        }
        for path in take {
            let fingerprint = checked[path].clone();
            plan.take.push(CheckedFile { path: path.to_vec(), fingerprint });
        }
        Ok(Ok(plan))
    }

    /// Every change that git shows stops the update, unless it is what an update that was cut off has already done.
    fn judge_status(
        &self,
        status: &[StatusLine],
        changing: &HashMap<&[u8], &Difference>,
        beside: &[String],
        blocked: &mut BlockedFiles,
    ) {
        for line in status {
            let path = line.path.as_slice();
            let is_beside = beside.iter().any(|folder| {
                path.strip_prefix(folder.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
            });
            let change = changing.get(path);
            if change.is_none() && is_beside {
                continue;
            }
            // At another commit than the index says, as after a landing that moved it: it is in nobody's way.
            if change.is_none() && line.is_submodule && !line.is_staged {
                continue;
            }
            if line.is_submodule {
                blocked.add(path, BlockedFileReason::Submodule);
            } else if line.index_has_content && self.is_emptied(path) {
                blocked.add(path, BlockedFileReason::Damaged);
            } else if change.is_none() || line.is_intent_to_add {
                blocked.add(path, BlockedFileReason::Changed);
            } else if change.is_some_and(|change| is_blob(&change.new))
                && matches!(self.read_path_state(path), Ok(DiskPathState::Absent))
            {
                blocked.add(path, BlockedFileReason::Changed); // deleted by the user
            }
        }
    }

    /// What git says of tracked files, or the files that it would wait for: pipes in the place of its settings. The index is
    /// locked meanwhile, and the user's own git with it.
    fn status_or_special_files(
        &self,
        changes: &[Difference],
    ) -> Result<Result<Vec<StatusLine>, Vec<BlockedFile>>, GitError> {
        let blocked = |paths: Vec<Vec<u8>>| {
            paths
                .into_iter()
                .map(|path| BlockedFile { path, why: BlockedFileReason::Special })
                .collect::<Vec<_>>()
        };
        let beside = self.special_settings_beside(changes);
        if !beside.is_empty() {
            return Ok(Err(blocked(beside)));
        }
        match self.read_status(FIRST_LOOK) {
            Err(GitError { kind: GitErrorKind::Timeout { .. }, .. }) => {
                // Slow, or waiting for a pipe next to a file that nothing changes.
                let mut found = Vec::new();
                find_special_settings(self.root.as_fd(), &mut Vec::new(), &mut found)
                    .with_context(|| format!("look for pipes in `{}`", self.checkout.root.display()))?;
                if found.is_empty() { self.read_status(SLOW).map(Ok) } else { Ok(Err(blocked(found))) }
            }
            other => other.map(Ok),
        }
    }

    /// The pipes and the like in the place of settings of git, in the folders of these files and above them.
    fn special_settings_beside(&self, changes: &[Difference]) -> Vec<Vec<u8>> {
        let ends = |path: &[u8]| {
            path.iter()
                .enumerate()
                .filter(|(_, byte)| **byte == b'/')
                .map(|(at, _)| at + 1)
                .collect::<Vec<_>>()
        };
        let folders: BTreeSet<&[u8]> = changes
            .iter()
            .flat_map(|change| std::iter::once(0).chain(ends(&change.path)).map(|end| &change.path[..end]))
            .collect();
        let files = folders.iter().flat_map(|folder| GIT_SETTINGS.map(|name| [folder, name].concat()));
        let is_special = |path: &Vec<u8>| {
            let stat = file_swap::stat_beneath(self.root.as_fd(), path);
            stat.is_ok_and(|stat| is_waited_for(FileType::from_raw_mode(stat.st_mode)))
        };
        files.filter(is_special).collect()
    }

    /// What git says of tracked files.
    fn read_status(&self, limit: Duration) -> Result<Vec<StatusLine>, GitError> {
        let doing = "look for changes in the checkout";
        let bytes = checkout_call(self.repo, self.checkout, doing)
            .timeout(limit)
            .work_tree(&self.checkout.root)
            .args(["status", "--porcelain=v2", "-z", "--untracked-files=no"])
            .args(["--ignore-submodules=dirty", "--no-renames"])
            .output()?;
        // Lines that begin with `#` are about the branch and the stash, if the user's settings ask for them.
        let is_file = |record: &&[u8]| record.first().is_some_and(|first| *first != b'#');
        let records = bytes.split(|byte| *byte == 0).filter(is_file);
        records
            .map(|record| {
                parse_status(record).ok_or_else(|| {
                    GitError::unexpected_output(
                        doing,
                        String::from_utf8_lossy(record).escape_debug().to_string(),
                    )
                })
            })
            .collect()
    }

    /// Paths of the index that are not as in a commit.
    fn index_differs(&self, commit: &Oid) -> Result<HashSet<Vec<u8>>, GitError> {
        checkout_call(self.repo, self.checkout, "compare the index of the checkout")
            .work_tree(&self.checkout.root)
            .args(["diff-index", "--cached", "--name-only", "-z", "--no-renames", "--no-ext-diff"])
            .args(["--end-of-options", commit.as_str()])
            .output()
            .map(|bytes| split_paths(&bytes))
    }

    /// Paths whose file on disk does not have this content or mode. Every file is read: the times of an index prove
    /// nothing if git was told not to trust them.
    fn files_differ<'e>(
        &self,
        entries: impl Iterator<Item = (&'e [u8], u32, &'e Oid)>,
    ) -> Result<HashSet<Vec<u8>>, GitError> {
        let mut list = Vec::new();
        for (path, mode, oid) in entries {
            list.extend_from_slice(format!("{mode:06o} {oid}\t").as_bytes());
            list.extend_from_slice(path);
            list.push(0);
        }
        if list.is_empty() {
            return Ok(HashSet::new());
        }
        let doing = || "compare the checkout with a commit".to_owned();
        let index = self.stage.file_path("compared-index");
        files::remove_path(&index).with_context(doing)?;
        let git = || {
            checkout_call(self.repo, self.checkout, doing())
                .work_tree(&self.checkout.root)
                .env("GIT_INDEX_FILE", &index)
                .config("core.sparseCheckout=false")
                .config("core.ignoreStat=false") // it would have git look at no file
        };
        git().args(["update-index", "-z", "--index-info"]).input(list).output()?;
        // It ends with 1 if anything differs, which is what we ask next.
        git().args(["update-index", "-q", "--refresh"]).run()?;
        git()
            .args(["diff-files", "-z", "--name-only", "--no-renames", "--no-ext-diff"])
            .output()
            .map(|bytes| split_paths(&bytes))
    }

    /// What changed files should be on disk by the old commit: as git stores them, or, if they are not that, as the
    /// conversions of the checkout make them.
    ///
    /// Without a lock, for the same reason as the new files.
    fn read_old_files(
        &self,
        objects: &Objects,
        changes: &[Difference],
    ) -> Result<HashMap<Vec<u8>, Option<Fingerprint>>, GitError> {
        let doing = || "compare the checkout with what filters make of a commit".to_owned();
        let mut old_files = HashMap::new();
        let (mut list, mut names) = (Vec::new(), Vec::new());
        for change in changes {
            let Some((path, mode, oid)) = blob_entry(change, &change.old) else { continue };
            if !matches!(self.read_path_state(path).with_context(doing)?, DiskPathState::Present) {
                continue;
            }
            let found = Fingerprint::read(self.root.as_fd(), path).ok().flatten();
            let stored = objects
                .read_object(oid, COMPARED_MAX)?
                .filter(|object| object.size == object.bytes.len() as u64);
            let stored = stored.map(|object| Fingerprint::of_content(&object.bytes, mode == MODE_LINK));
            if let (Some(found), Some(stored)) = (found, &stored)
                && found.has_content_of(stored)
            {
                old_files.insert(path.to_vec(), Some(found));
                continue;
            }
            list.extend_from_slice(format!("{mode:06o} {oid}\t").as_bytes());
            for text in [&mut list, &mut names] {
                text.extend_from_slice(path);
                text.push(0);
            }
        }
        if names.is_empty() {
            return Ok(old_files);
        }
        let index = self.stage.file_path("filtered-index");
        let git = || {
            checkout_call(self.repo, self.checkout, doing())
                .work_tree(&self.checkout.root)
                .env("GIT_INDEX_FILE", &index)
                .config("core.sparseCheckout=false")
        };
        let expected = self.stage.file_path("expected");
        std::fs::create_dir(&expected).with_context(doing)?;
        let mut prefix = std::ffi::OsString::from("--prefix=");
        prefix.push(&expected);
        prefix.push("/");
        git().args(["update-index", "-z", "--index-info"]).input(list).output()?;
        git().args(["checkout-index", "-q", "-z", "--stdin"]).arg(prefix).input(names.clone()).output()?;
        let expected = files::open_folder(&expected).with_context(doing)?;
        for path in split_paths(&names) {
            let made = Fingerprint::read(expected.as_fd(), &path).ok().flatten();
            old_files.insert(path, made);
        }
        Ok(old_files)
    }

    fn read_path_state(&self, path: &[u8]) -> std::io::Result<DiskPathState> {
        let mut end = 0;
        let mut folder = self.root.try_clone()?;
        for part in path.split(|byte| *byte == b'/') {
            end += part.len() + usize::from(end > 0);
            let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
            let kind = match rustix::fs::statat(&folder, files::c_name(part)?, flags) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(rustix::io::Errno::NOENT) => return Ok(DiskPathState::Absent),
                Err(error) => return Err(error.into()),
            };
            match kind {
                FileType::Directory if end == path.len() => return Ok(DiskPathState::Folder),
                FileType::Directory => folder = files::open_folder_beneath(folder.as_fd(), &[part])?,
                _ if end < path.len() => return Ok(DiskPathState::Behind(path[..end].to_vec())),
                FileType::RegularFile | FileType::Symlink => return Ok(DiskPathState::Present),
                _ => return Ok(DiskPathState::Special),
            }
        }
        Ok(DiskPathState::Absent)
    }

    fn is_empty_folder(&self, path: &[u8]) -> bool {
        self.open_existing(path)
            .and_then(|folder| files::list_entries(folder.as_fd()))
            .is_ok_and(|entries| entries.is_empty())
    }

    fn open_existing(&self, path: &[u8]) -> std::io::Result<OwnedFd> {
        let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        files::open_folder_beneath(self.root.as_fd(), &parts)
    }

    fn is_repository(&self, path: &[u8]) -> bool {
        self.open_existing(path).is_ok_and(|folder| has_git(folder.as_fd()))
    }

    /// The submodule or repository, other than the checkout itself, that a path lies in.
    fn repository_above(&self, path: &[u8]) -> Option<Vec<u8>> {
        let mut above = parent_of(path);
        let mut found = None;
        while !above.is_empty() {
            if self.is_repository(above) {
                found = Some(above.to_vec());
            }
            above = parent_of(above);
        }
        found
    }

    /// Names what is in a folder that must go, besides the files that leave it.
    fn find_foreign_files(
        &self,
        path: &[u8],
        leaving: &HashSet<&[u8]>,
        blocked: &mut BlockedFiles,
    ) -> std::io::Result<()> {
        let folder = self.open_existing(path)?;
        if has_git(folder.as_fd()) {
            blocked.add(path, BlockedFileReason::Submodule);
            return Ok(());
        }
        for (name, kind) in files::list_entries(folder.as_fd())? {
            let inner = [path, b"/", name.as_bytes()].concat();
            if kind == FileType::Directory {
                self.find_foreign_files(&inner, leaving, blocked)?;
            } else if !leaving.contains(inner.as_slice()) {
                blocked.add(&inner, BlockedFileReason::Untracked);
            }
            if blocked.is_full() {
                break;
            }
        }
        Ok(())
    }

    /// Whether the file at this path is one that leaves, under another case of its name, on a file system to which both
    /// are the same.
    fn is_case_variant(&self, path: &[u8], leaving: &HashSet<&[u8]>) -> std::io::Result<bool> {
        let lower = |path: &[u8]| String::from_utf8_lossy(path).to_lowercase();
        let here = file_swap::stat_beneath(self.root.as_fd(), path)?;
        for other in leaving.iter().filter(|other| lower(other) == lower(path)) {
            let there = file_swap::stat_beneath(self.root.as_fd(), other)?;
            if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a file is empty or nothing but zeros: what a file system may leave of a file after a power cut.
    fn is_emptied(&self, path: &[u8]) -> bool {
        use std::io::Read as _;
        let read = || -> std::io::Result<bool> {
            let file = files::open_file_beneath(self.root.as_fd(), path)?;
            let mut bytes = Vec::new();
            file.take(ZEROS_READ_MAX as u64).read_to_end(&mut bytes)?;
            Ok(bytes.iter().all(|byte| *byte == 0))
        };
        read().unwrap_or(false)
    }
}

/// The files in the way, each with the first reason that was found for it.
#[derive(Default)]
struct BlockedFiles(BTreeMap<Vec<u8>, BlockedFileReason>);

impl BlockedFiles {
    fn add(&mut self, path: &[u8], why: BlockedFileReason) {
        self.0.entry(path.to_vec()).or_insert(why);
    }

    fn is_full(&self) -> bool {
        self.0.len() >= BLOCKED_LISTED_MAX
    }

    fn into_list(self) -> Vec<BlockedFile> {
        self.0.into_iter().take(BLOCKED_LISTED_MAX).map(|(path, why)| BlockedFile { path, why }).collect()
    }
}

/// The lock that git takes on an index, taken by us: while it exists, no git command changes the index.
///
/// It is locked by the kernel as well. One of ours that nobody holds was left by a crash.
#[derive(Debug)]
struct IndexLock {
    path: PathBuf,
    file: File,
}

impl IndexLock {
    /// `None` if somebody else has it. It is written in the staging folder and moved: a crash at any moment leaves no lock, or
    /// one that says whose it is.
    fn take_index_lock(git_dir: &Path, stage: &StageFolder) -> std::io::Result<Option<IndexLock>> {
        let (draft, path) = (stage.file_path("index-lock"), git_dir.join("index.lock"));
        let mut file = File::options().write(true).create_new(true).open(&draft)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        file.write_all(LOCK_TEXT)?;
        file.sync_data()?;
        let moved = rustix::fs::renameat_with(CWD, &draft, CWD, &path, RenameFlags::NOREPLACE);
        match moved {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(None),
            // A file system that cannot rename without replacing can still link.
            Err(Errno::INVAL | Errno::NOSYS) => match std::fs::hard_link(&draft, &path) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(None),
                Err(error) => return Err(error),
            },
            Err(error) => return Err(error.into()),
        }
        Ok(Some(IndexLock { path, file }))
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        let is_ours = |meta: std::fs::Metadata| {
            self.file.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (meta.dev(), meta.ino()))
        };
        if std::fs::symlink_metadata(&self.path).is_ok_and(is_ours) {
            let _ = std::fs::remove_file(&self.path); // if it fails, the next update removes it
        }
    }
}

/// Cleans up after an update of this checkout that a crash cut off. Returns whether there was one.
pub(crate) fn recover_update(
    checkout: &Checkout,
    is_published: impl Fn(&SwapTarget) -> std::io::Result<bool>,
) -> std::io::Result<bool> {
    let was_cut_off = file_swap::recover_swap(&checkout.git_dir, &checkout.root, is_published)?;
    // Last: until then no git command of the user runs.
    Ok(remove_stale_lock(&checkout.git_dir)? || was_cut_off)
}

/// Removes an index lock of ours that a crash left behind. Returns whether there was one.
fn remove_stale_lock(git_dir: &Path) -> std::io::Result<bool> {
    let folder = files::open_folder(git_dir)?;
    let path = git_dir.join("index.lock");
    let Ok(mut file) = files::open_file_beneath(folder.as_fd(), b"index.lock") else { return Ok(false) };
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(&mut file, 64), &mut text)?;
    let is_stale =
        text == LOCK_TEXT && rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    if is_stale {
        // It dies with this value, and with it the file.
        drop(IndexLock { path, file });
    }
    Ok(is_stale)
}

/// Puts the staged index in place of the user's. Nobody else writes it: it is locked.
fn replace_index(repo: &Repo, checkout: &Checkout, swap: &FileSwap, index: &Path) -> Result<(), GitError> {
    let staged = swap.stage().file_path("index");
    // It ends with 1 if a file is not as the index says, which is for the user to see.
    checkout_call(repo, checkout, "refresh the index of the checkout")
        .work_tree(&checkout.root)
        .env("GIT_INDEX_FILE", &staged)
        .args(["update-index", "-q", "--refresh"])
        .run()?;
    let replace = || {
        if let Ok(meta) = std::fs::metadata(index) {
            std::fs::set_permissions(&staged, meta.permissions())?;
        }
        File::open(&staged)?.sync_data()?;
        std::fs::rename(&staged, index)?;
        File::open(&checkout.git_dir)?.sync_all()
    };
    replace().with_context(|| format!("replace `{}`", index.display()))
}

/// A call with the settings of the user, for their own checkout. A split index is written whole: it may be a copy.
fn checkout_call<'g>(repo: &'g Repo, checkout: &Checkout, doing: impl Into<String>) -> GitCall<'g> {
    repo.git()
        .prepare_call(doing)
        .trust(GitConfigTrust::Checkout)
        .git_dir(&checkout.git_dir)
        .config("core.splitIndex=false")
        .timeout(SLOW)
}

/// Long enough for most checkouts; if it was too short, looking again costs no more than it did.
const FIRST_LOOK: Duration = Duration::from_secs(5);

/// The settings that git reads in the folders of a checkout.
const GIT_SETTINGS: [&[u8]; 2] = [b".gitattributes", b".gitignore"];

/// Whether git would wait to read it.
fn is_waited_for(kind: FileType) -> bool {
    !matches!(kind, FileType::RegularFile | FileType::Directory | FileType::Symlink)
}

/// Finds the pipes and the like in the place of settings of git, in a folder and below it.
fn find_special_settings(
    folder: BorrowedFd<'_>,
    prefix: &mut Vec<u8>,
    found: &mut Vec<Vec<u8>>,
) -> std::io::Result<()> {
    for (name, kind) in files::list_entries(folder)? {
        let length = prefix.len();
        prefix.extend_from_slice(name.as_bytes());
        if kind == FileType::Directory && name.as_bytes() != b".git" {
            if let Ok(inner) = files::open_folder_beneath(folder, &[name.as_bytes()]) {
                prefix.push(b'/');
                find_special_settings(inner.as_fd(), prefix, found)?;
            }
        } else if is_waited_for(kind) && GIT_SETTINGS.contains(&name.as_bytes()) {
            found.push(prefix.clone());
        }
        prefix.truncate(length);
    }
    Ok(())
}

fn read_if_there(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn split_paths(bytes: &[u8]) -> HashSet<Vec<u8>> {
    bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect()
}

/// One record of `git status --porcelain=v2 -z`; see its manual for the fields.
fn parse_status(record: &[u8]) -> Option<StatusLine> {
    let fields_before_path = match record.first()? {
        b'1' => 8,
        b'u' => 10,
        _ => return None,
    };
    let mut fields = record.splitn(fields_before_path + 1, |byte| *byte == b' ').collect::<Vec<_>>();
    let path = fields.pop()?.to_vec();
    if fields.len() != fields_before_path {
        return None;
    }
    let index_oid = fields[7];
    let is_empty_blob = EMPTY_BLOBS.iter().any(|empty| empty.as_bytes() == index_oid);
    let is_zero = index_oid.iter().all(|byte| *byte == b'0');
    Some(StatusLine {
        path,
        is_submodule: fields[2].first() == Some(&b'S'),
        is_staged: fields[1].first() != Some(&b'.'),
        is_intent_to_add: fields[1] == b".A",
        is_modified_on_disk: fields[1].get(1) == Some(&b'M'),
        index_has_content: fields[0] == b"1" && !is_empty_blob && !is_zero,
    })
}

/// The ids of a blob without content, for both object formats.
const EMPTY_BLOBS: [&str; 2] = [
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
];

fn is_gitlink(entry: &Option<(u32, Oid)>) -> bool {
    entry.as_ref().is_some_and(|(mode, _)| *mode == MODE_GITLINK)
}

fn is_blob(entry: &Option<(u32, Oid)>) -> bool {
    entry.is_some() && !is_gitlink(entry)
}

fn blob_entry<'e>(change: &'e Difference, side: &'e Option<(u32, Oid)>) -> Option<(&'e [u8], u32, &'e Oid)> {
    let (mode, oid) = side.as_ref()?;
    (*mode != MODE_GITLINK).then_some((change.path.as_slice(), *mode, oid))
}

fn has_git(folder: BorrowedFd<'_>) -> bool {
    rustix::fs::statat(folder, ".git", rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

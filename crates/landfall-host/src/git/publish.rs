//! Publishing: what has landed in the store becomes visible in the person's repository.
//!
//! The person always wins. A branch that moved, a checkout with changes, an operation half-way: all are
//! answers (`Held`), never something to overcome, and nothing is ever forced.
//!
//! Order, for a branch that is checked out: the ref is locked and its old value checked, then files and
//! index move to the new commit (`checkout_update`), then the ref is written. A crash in between leaves the new files under
//! the old ref, which looks like staged changes: nothing is lost, a commit made then has the right content,
//! and publishing again sees that every change is its own and finishes. The other order would leave old
//! files under the new ref, and the person's next commit would undo the landed work.

use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::checkout_update::{self, CheckoutUpdate, UpdateRefusal, UpdateRequest};
use super::file_swap::{STAGE_PREFIX, SwapTarget};
use super::files;
use super::handover;
use super::names::{BranchName, Oid};
use super::news::check_remote;
use super::repo::{Checkout, Repo, plain_head};
use super::run::{
    GitConfigTrust, GitError, GitErrorKind, GitResultExt as _, QUICK, SLOW, Signature, kill_group,
    read_exact_until,
};
use super::store::Store;
use crate::wait::wait_for_child;

/// A push over a slow line to a busy host.
const PUSH: Duration = Duration::from_secs(300);

/// Where to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishMode {
    /// The branch of the person's repository, and the checkout that shows it.
    Local,
    /// The same, where changes in these folders are kept as they are and are in nobody's way.
    Beside {
        /// Below the root, with `/`.
        folders: Vec<String>,
    },
    /// A remote of the person's repository, by its name there.
    Remote {
        /// The name.
        name: String,
    },
}

/// What came of publishing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishOutcome {
    /// It is visible now.
    Done(PublishMethod),
    /// It was visible already.
    Already,
    /// The person is in the way; nothing was changed.
    Held(HeldReason),
}

/// How it became visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishMethod {
    /// The branch was checked out nowhere: only the ref moved.
    Ref,
    /// The branch and its checkout moved.
    Checkout {
        /// The checkout.
        path: PathBuf,
    },
    /// It was pushed.
    Pushed,
}

/// Why publishing waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldReason {
    /// Files of the user are in the way.
    Files {
        /// The checkout.
        path: PathBuf,
        /// The first few of them, in order of their paths.
        files: Vec<BlockedFile>,
    },
    /// The branch stands elsewhere: someone committed or pushed.
    Moved {
        /// Where.
        to: Oid,
    },
    /// The branch is checked out where we cannot move it.
    CheckedOutElsewhere {
        /// That checkout.
        path: PathBuf,
    },
    /// A merge, rebase, cherry-pick, revert or bisect is half-way, or git is at work there right now.
    OperationInProgress {
        /// The checkout.
        path: PathBuf,
        /// The file that shows it.
        sign: String,
    },
    /// The branch does not exist any more.
    BranchMissing,
    /// The remote refused.
    Remote {
        /// What it said.
        stderr: String,
    },
}

/// A file of the user that publishing would have to change or delete, and may not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockedFile {
    /// Below the root of the checkout, with `/`.
    pub path: Vec<u8>,
    /// What kind of file it is.
    pub why: BlockedFileReason,
}

/// Why a file blocks publishing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockedFileReason {
    /// git tracks it, and it has changes that are not committed.
    Changed,
    /// git does not track it: it is ignored or was never added.
    Untracked,
    /// It is a submodule or another repository.
    Submodule,
    /// git tracks it with content, and on disk it is empty or nothing but zeros, as a power cut leaves a file.
    Damaged,
    /// git sees no change in it, because a clean filter or another conversion of git drops what the user wrote.
    Filtered,
    /// A program has it open to write: what that writes after the file is replaced would be lost.
    InUse,
    /// It has the name of a settings file of git, and is a pipe, a socket or a device: git would wait for it.
    Special,
}

impl Repo {
    /// Cleans up in the user's checkouts after a publishing that a crash cut off: files that were taken out are put back,
    /// unless their branch has moved on, and a lock of ours is removed. Returns whether there was such a publishing.
    ///
    /// # Errors
    /// The first one. Every other checkout is cleaned up all the same.
    pub fn recover_publishing(&self) -> Result<bool, GitError> {
        let mut all = Ok(false);
        for checkout in self.list_checkouts()? {
            let recovered = self.recover_checkout(&checkout);
            all = all.and_then(|before| recovered.map(|found| before || found));
        }
        all
    }

    /// Whether a checkout holds a lock or a staging folder, of a publishing under way or of one that was cut off.
    pub fn has_publishing_traces(&self) -> bool {
        let has_traces = |checkout: &Checkout| Self::shows_publishing_traces(&checkout.git_dir);
        self.list_checkouts().is_ok_and(|all| all.iter().any(has_traces))
    }

    /// The same of one checkout, by its git folder alone.
    #[must_use]
    pub fn shows_publishing_traces(git_dir: &Path) -> bool {
        let mut entries = std::fs::read_dir(git_dir).into_iter().flatten().flatten();
        entries.any(|entry| {
            let name = entry.file_name();
            name == "index.lock" || name.to_string_lossy().starts_with(STAGE_PREFIX)
        })
    }

    fn recover_checkout(&self, checkout: &Checkout) -> Result<bool, GitError> {
        if !checkout.root.is_dir() {
            return Ok(false);
        }
        // Whether it was published is known or an error: a guess could put old files back over new ones.
        let is_published = |target: &SwapTarget| -> Result<bool, GitError> {
            let Ok(commit) = target.commit.parse::<Oid>() else { return Ok(false) };
            let tip = match target.branch.strip_prefix("refs/heads/").map(BranchName::new) {
                Some(Ok(branch)) => self.branch_tip(&branch)?,
                Some(Err(_)) | None => self.head_of(checkout)?,
            };
            let Some(tip) = tip else { return Ok(false) };
            // Asked of the user's repository: the store need not have what they committed since.
            Ok(tip == commit || self.has_ancestor(&tip, &commit)?)
        };
        checkout_update::recover_update(checkout, |target| {
            is_published(target).map_err(std::io::Error::other)
        })
        .with_context(|| format!("clean up in the checkout `{}`", checkout.root.display()))
    }
}

impl Store {
    /// Moves a person's branch from `expected_old` to `new`, a descendant of it, if nothing is in the way.
    pub fn publish_branch(
        &self,
        repo: &Repo,
        branch: &BranchName,
        new: &Oid,
        expected_old: &Oid,
        mode: &PublishMode,
        by: &Signature,
    ) -> Result<PublishOutcome, GitError> {
        if !self.is_ancestor(expected_old, new)? {
            let why = format!("{new} does not descend from {expected_old}");
            return Err(GitError::unexpected_output(format!("publish to `{branch}`"), why));
        }
        match mode {
            PublishMode::Local => self.publish_local(repo, branch, (new, expected_old), &[], by),
            PublishMode::Beside { folders } => {
                self.publish_local(repo, branch, (new, expected_old), folders, by)
            }
            PublishMode::Remote { name } => self.push_branch(repo, name, branch, new, expected_old),
        }
    }

    /// [`Repo::recover_publishing`], for the engine that publishes on this branch. A crash after the branch has moved leaves a
    /// ref of ours as well.
    ///
    /// # Errors
    /// The first one. Every other checkout is cleaned up all the same.
    pub fn recover_publishing(&self, repo: &Repo, branch: &BranchName) -> Result<(), GitError> {
        let unpinned = handover::remove_stale_pin(repo, branch);
        repo.recover_publishing()?;
        unpinned
    }

    fn publish_local(
        &self,
        repo: &Repo,
        branch: &BranchName,
        (new, expected_old): (&Oid, &Oid),
        beside: &[String],
        by: &Signature,
    ) -> Result<PublishOutcome, GitError> {
        // Another checkout that cannot be cleaned up does not stand in the way of this one.
        for checkout in repo.list_checkouts()? {
            if is_on(repo, &checkout, &branch.full_name())? {
                repo.recover_checkout(&checkout)?;
            }
        }
        handover::remove_stale_pin(repo, branch)?;
        match repo.branch_tip(branch)? {
            None => return Ok(PublishOutcome::Held(HeldReason::BranchMissing)),
            Some(tip) if tip == *new => return Ok(PublishOutcome::Already),
            Some(tip) if tip != *expected_old => {
                // Ahead of us is fine: someone pulled or published further.
                if self.contains(&tip)? && self.is_ancestor(new, &tip)? {
                    return Ok(PublishOutcome::Already);
                }
                return Ok(PublishOutcome::Held(HeldReason::Moved { to: tip }));
            }
            Some(_) => {}
        }
        let checkouts = match checkouts_on(repo, branch)? {
            Ok(checkouts) => checkouts,
            Err(reason) => return Ok(PublishOutcome::Held(reason)),
        };
        if let Some(second) = checkouts.get(1) {
            return Ok(PublishOutcome::Held(HeldReason::CheckedOutElsewhere { path: second.root.clone() }));
        }
        if let Some(sign) = handover::gc_sign(repo) {
            let (path, sign) = (repo.root().to_owned(), sign.to_owned());
            return Ok(PublishOutcome::Held(HeldReason::OperationInProgress { path, sign }));
        }
        let have = std::slice::from_ref(expected_old);
        // Held until the branch leads to the commit.
        let _pin = self.hand_over_pinned(repo, branch, new, have)?;
        crate::crash::pass_point("git.publish.objects");
        let Some(checkout) = checkouts.first() else {
            let lock = match LockedRef::lock_ref(repo, repo.common_dir(), branch, new, expected_old, by)? {
                Ok(lock) => lock,
                Err(actual) => return Ok(PublishOutcome::Held(moved_or_missing(actual))),
            };
            lock.commit_transaction()?;
            self.complete_handover(repo, new, have)?;
            return Ok(PublishOutcome::Done(PublishMethod::Ref));
        };
        if !checkout.root.is_dir() {
            return Ok(PublishOutcome::Held(HeldReason::CheckedOutElsewhere { path: checkout.root.clone() }));
        }
        if let Some(sign) = operation_sign(checkout, true) {
            return Ok(PublishOutcome::Held(in_progress(checkout, sign)));
        }
        let changes = self.diff_trees(&self.tree_of(expected_old)?, &self.tree_of(new)?)?;
        let is_idle =
            || Ok(operation_sign(checkout, false).is_none() && is_on(repo, checkout, &branch.full_name())?);
        let lock_branch = || LockedRef::lock_ref(repo, &checkout.git_dir, branch, new, expected_old, by);
        let request = UpdateRequest {
            repo,
            objects: self.objects(),
            checkout,
            branch: branch.full_name(),
            old: expected_old,
            new,
            changes: &changes,
            beside,
        };
        let update = match CheckoutUpdate::perform_update(&request, lock_branch, is_idle)? {
            Ok(update) => update,
            Err(refusal) => {
                let path = checkout.root.clone();
                return Ok(PublishOutcome::Held(match refusal {
                    UpdateRefusal::Files(files) => HeldReason::Files { path, files },
                    UpdateRefusal::Busy => in_progress(checkout, "index.lock"),
                    UpdateRefusal::BranchMoved(actual) => moved_or_missing(actual),
                }));
            }
        };
        crate::crash::pass_point("git.publish.files");
        update.finish_with_commit(LockedRef::commit_transaction)?;
        self.complete_handover(repo, new, have)?;
        Ok(PublishOutcome::Done(PublishMethod::Checkout { path: checkout.root.clone() }))
    }

    fn push_branch(
        &self,
        repo: &Repo,
        remote: &str,
        branch: &BranchName,
        new: &Oid,
        expected_old: &Oid,
    ) -> Result<PublishOutcome, GitError> {
        let doing = format!("push to `{remote}`");
        check_remote(remote)?;
        let have: Vec<Oid> =
            repo.branch_tip(branch)?.filter(|tip| self.contains(tip).unwrap_or(false)).into_iter().collect();
        let have = if have.is_empty() { vec![expected_old.clone()] } else { have };
        self.copy_objects_to(repo, new, &have)?;
        let said = repo
            .git()
            .prepare_call(&doing)
            .trust(GitConfigTrust::Push)
            .git_dir(repo.git_dir())
            .args([
                "push",
                "--porcelain",
                "--no-follow-tags",
                "--no-recurse-submodules",
                "--end-of-options",
                remote,
            ])
            .arg(format!("{new}:{}", branch.full_name()))
            .timeout(PUSH)
            .run()?;
        let stdout = String::from_utf8_lossy(&said.stdout).into_owned();
        if said.code == 0 {
            let already = stdout.lines().any(|line| line.starts_with("=\t"));
            return Ok(if already {
                PublishOutcome::Already
            } else {
                PublishOutcome::Done(PublishMethod::Pushed)
            });
        }
        Ok(PublishOutcome::Held(HeldReason::Remote {
            stderr: format!("{}{}", said.stderr, stdout).trim().to_owned(),
        }))
    }
}

fn moved_or_missing(actual: Option<Oid>) -> HeldReason {
    actual.map_or(HeldReason::BranchMissing, |to| HeldReason::Moved { to })
}

/// The checkouts whose HEAD is the branch, or the reason why one that is busy with it must be left alone.
fn checkouts_on(repo: &Repo, branch: &BranchName) -> Result<Result<Vec<Checkout>, HeldReason>, GitError> {
    let full = branch.full_name();
    let mut on = Vec::new();
    for checkout in repo.list_checkouts()? {
        if is_on(repo, &checkout, &full)? {
            on.push(checkout);
            continue;
        }
        // A rebase takes HEAD off the branch and puts it back at the end.
        for sign in ["rebase-merge/head-name", "rebase-apply/head-name"] {
            let name = std::fs::read(checkout.git_dir.join(sign)).unwrap_or_default();
            if name.trim_ascii_end() == full.as_bytes() {
                let reason =
                    HeldReason::OperationInProgress { path: checkout.root.clone(), sign: sign.to_owned() };
                return Ok(Err(reason));
            }
        }
    }
    Ok(Ok(on))
}

fn is_on(repo: &Repo, checkout: &Checkout, full: &str) -> Result<bool, GitError> {
    if plain_head(&checkout.git_dir).is_some_and(|head| head == full) {
        return Ok(true);
    }
    // The branch that the file names may be another name for this one: git follows a symbolic ref to its end.
    let said = repo
        .git()
        .prepare_call("see what a checkout is on")
        .git_dir(&checkout.git_dir)
        .args(["symbolic-ref", "--quiet", "HEAD"])
        .run()?;
    Ok(said.stdout.trim_ascii_end() == full.as_bytes())
}

fn in_progress(checkout: &Checkout, sign: &str) -> HeldReason {
    HeldReason::OperationInProgress { path: checkout.root.clone(), sign: sign.to_owned() }
}

/// The file that shows that the user is half-way through something in a checkout. Locks are left out while they are ours:
/// the lock of the branch that HEAD is on includes `HEAD.lock`.
fn operation_sign(checkout: &Checkout, with_locks: bool) -> Option<&'static str> {
    [
        "MERGE_HEAD",
        "CHERRY_PICK_HEAD",
        "REVERT_HEAD",
        "rebase-merge",
        "rebase-apply",
        "sequencer",
        "BISECT_START",
        "BISECT_LOG",
        "index.lock",
        "HEAD.lock",
    ]
    .into_iter()
    .filter(|sign| with_locks || !matches!(*sign, "index.lock" | "HEAD.lock"))
    .find(|sign| files::path_exists(&checkout.git_dir.join(sign)))
}

/// A person's ref, locked by a git process of ours with its old value checked. Written or left, never lost:
/// if we die, the process sees the end of its input and lets go.
struct LockedRef {
    child: Child,
    stdin: Option<std::process::ChildStdin>,
    deadline: Instant,
}

impl LockedRef {
    fn lock_ref(
        repo: &Repo,
        git_dir: &Path,
        branch: &BranchName,
        new: &Oid,
        old: &Oid,
        by: &Signature,
    ) -> Result<Result<LockedRef, Option<Oid>>, GitError> {
        let doing = format!("move branch `{branch}`");
        let mut child = repo
            .git()
            .prepare_call(&doing)
            .git_dir(git_dir)
            .config("core.logAllRefUpdates=true")
            .config("core.fsync=committed")
            .signed_by(by, by)
            .args(["update-ref", "-m", "landfall: land verified work", "--no-deref", "-z", "--stdin"])
            .spawn(Stdio::piped())?;
        let mut stdin = child.stdin.take().expect("it was started with a pipe");
        let deadline = Instant::now() + SLOW + QUICK; // the checkout moves while we hold it
        let order = format!("start\0update {}\0{new}\0{old}\0prepare\0", branch.full_name());
        let written = stdin.write_all(order.as_bytes()).is_ok();
        let mut locked = LockedRef { child, stdin: Some(stdin), deadline };
        let answered = written && locked.expect_answer(b"start: ok\nprepare: ok\n");
        if answered {
            return Ok(Ok(locked));
        }
        let stderr = locked.give_up();
        let actual = repo.branch_tip(branch)?;
        if actual.as_ref() != Some(old) {
            return Ok(Err(actual));
        }
        Err(GitError { doing, kind: GitErrorKind::Failed { code: 128, stderr } })
    }

    fn expect_answer(&mut self, answer: &[u8]) -> bool {
        let mut buffer = vec![0; answer.len()];
        let Some(stdout) = &self.child.stdout else { return false };
        let deadline = Instant::now() + QUICK;
        matches!(read_exact_until(stdout.as_fd(), &mut buffer, deadline), Ok(true)) && buffer == answer
    }

    fn commit_transaction(mut self) -> Result<(), GitError> {
        let doing = "write the branch";
        let mut stdin = self.stdin.take().expect("taken only here and when giving up");
        let written = stdin.write_all(b"commit\0").is_ok();
        drop(stdin);
        let answered = written && self.expect_answer(b"commit: ok\n");
        let status = wait_for_child(&mut self.child, self.deadline).with_context(|| doing.to_owned())?;
        if answered && status.is_some_and(|status| status.success()) {
            return Ok(());
        }
        Err(GitError {
            doing: doing.to_owned(),
            kind: GitErrorKind::Failed { code: 128, stderr: self.give_up() },
        })
    }

    /// Lets go of the lock and returns the complaint.
    fn give_up(&mut self) -> String {
        use std::io::Read as _;
        self.stdin = None;
        // It sees the end of its input and removes its lock; killing it first would leave the lock behind.
        let in_time = wait_for_child(&mut self.child, Instant::now() + QUICK);
        let mut stderr = Vec::new();
        if let Ok(Some(_)) = in_time
            && let Some(pipe) = self.child.stderr.take()
        {
            let _ = pipe.take(16 << 10).read_to_end(&mut stderr); // words only
        }
        kill_group(&mut self.child);
        String::from_utf8_lossy(&stderr).into_owned()
    }
}

impl Drop for LockedRef {
    fn drop(&mut self) {
        self.give_up();
    }
}

//! Publishing: what has landed in the store becomes visible in the person's repository.
//!
//! The person always wins. A branch that moved, a checkout with changes, an operation half-way: all are
//! answers (`Held`), never something to overcome, and nothing is ever forced.
//!
//! Order, for a branch that is checked out: the ref is locked and its old value checked, then files and
//! index move to the new commit, then the ref is written. A crash in between leaves the new files under
//! the old ref, which looks like staged changes: nothing is lost, a commit made then has the right content,
//! and publishing again sees that every change is its own and finishes. The other order would leave old
//! files under the new ref, and the person's next commit would undo the landed work.

use std::collections::HashSet;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::files;
use super::names::{BranchName, Oid};
use super::news::check_remote;
use super::repo::{Checkout, Repo};
use super::run::{
    Doing as _, GitError, GitErrorKind, QUICK, SLOW, Signature, Trust, end, read_exact_until, wait_until,
};
use super::store::Store;

/// How many dirty paths are named.
const DIRTY_NAMED_MAX: usize = 20;

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
pub enum Published {
    /// It is visible now.
    Done(How),
    /// It was visible already.
    Already,
    /// The person is in the way; nothing was changed.
    Held(HeldReason),
}

/// How it became visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
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
    /// The checkout has changes, or untracked files where new ones would go.
    Dirty {
        /// The checkout.
        path: PathBuf,
        /// The first few paths.
        paths: Vec<Vec<u8>>,
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

impl Store {
    /// Moves a person's branch from `expected_old` to `new`, a descendant of it, if nothing is in the way.
    pub fn publish(
        &self,
        repo: &Repo,
        branch: &BranchName,
        new: &Oid,
        expected_old: &Oid,
        mode: &PublishMode,
        by: &Signature,
    ) -> Result<Published, GitError> {
        if !self.is_ancestor(expected_old, new)? {
            let why = format!("{new} does not descend from {expected_old}");
            return Err(GitError::output(format!("publish to `{branch}`"), why));
        }
        match mode {
            PublishMode::Local => self.publish_local(repo, branch, (new, expected_old), &[], by),
            PublishMode::Beside { folders } => {
                self.publish_local(repo, branch, (new, expected_old), folders, by)
            }
            PublishMode::Remote { name } => self.push(repo, name, branch, new, expected_old),
        }
    }

    fn publish_local(
        &self,
        repo: &Repo,
        branch: &BranchName,
        (new, expected_old): (&Oid, &Oid),
        beside: &[String],
        by: &Signature,
    ) -> Result<Published, GitError> {
        match repo.branch_tip(branch)? {
            None => return Ok(Published::Held(HeldReason::BranchMissing)),
            Some(tip) if tip == *new => return Ok(Published::Already),
            Some(tip) if tip != *expected_old => {
                // Ahead of us is fine: someone pulled or published further.
                if self.contains(&tip)? && self.is_ancestor(new, &tip)? {
                    return Ok(Published::Already);
                }
                return Ok(Published::Held(HeldReason::Moved { to: tip }));
            }
            Some(_) => {}
        }
        let checkouts = match checkouts_on(repo, branch)? {
            Ok(checkouts) => checkouts,
            Err(reason) => return Ok(Published::Held(reason)),
        };
        if let Some(second) = checkouts.get(1) {
            return Ok(Published::Held(HeldReason::CheckedOutElsewhere { path: second.root.clone() }));
        }
        self.hand_over(repo, new, std::slice::from_ref(expected_old))?;
        crate::crash::point("git.publish.objects");
        let Some(checkout) = checkouts.first() else {
            let lock = match Locked::take(repo, repo.common_dir(), branch, new, expected_old, by)? {
                Ok(lock) => lock,
                Err(actual) => return Ok(Published::Held(moved_or_missing(actual))),
            };
            lock.commit()?;
            return Ok(Published::Done(How::Ref));
        };
        if !checkout.root.is_dir() {
            return Ok(Published::Held(HeldReason::CheckedOutElsewhere { path: checkout.root.clone() }));
        }
        if let Some(reason) = in_progress(checkout) {
            return Ok(Published::Held(reason));
        }
        let lock = match Locked::take(repo, &checkout.git_dir, branch, new, expected_old, by)? {
            Ok(lock) => lock,
            Err(actual) => return Ok(Published::Held(moved_or_missing(actual))),
        };
        crate::crash::point("git.publish.locked");
        if let Some(reason) = forward(repo, checkout, (expected_old, new), beside)? {
            lock.abort();
            return Ok(Published::Held(reason));
        }
        crate::crash::point("git.publish.files");
        lock.commit()?;
        Ok(Published::Done(How::Checkout { path: checkout.root.clone() }))
    }

    fn push(
        &self,
        repo: &Repo,
        remote: &str,
        branch: &BranchName,
        new: &Oid,
        expected_old: &Oid,
    ) -> Result<Published, GitError> {
        let doing = format!("push to `{remote}`");
        check_remote(remote)?;
        let have: Vec<Oid> =
            repo.branch_tip(branch)?.filter(|tip| self.contains(tip).unwrap_or(false)).into_iter().collect();
        let have = if have.is_empty() { vec![expected_old.clone()] } else { have };
        self.hand_over(repo, new, &have)?;
        let said = repo
            .git()
            .call(&doing)
            .trust(Trust::Push)
            .git_dir(repo.git_dir())
            .args([
                "push",
                "--porcelain",
                "--no-follow-tags",
                "--no-recurse-submodules",
                "--end-of-options",
                remote,
            ])
            .arg(format!("{new}:{}", branch.full()))
            .timeout(PUSH)
            .run()?;
        let stdout = String::from_utf8_lossy(&said.stdout).into_owned();
        if said.code == 0 {
            let already = stdout.lines().any(|line| line.starts_with("=\t"));
            return Ok(if already { Published::Already } else { Published::Done(How::Pushed) });
        }
        Ok(Published::Held(HeldReason::Remote {
            stderr: format!("{}{}", said.stderr, stdout).trim().to_owned(),
        }))
    }
}

fn moved_or_missing(actual: Option<Oid>) -> HeldReason {
    actual.map_or(HeldReason::BranchMissing, |to| HeldReason::Moved { to })
}

/// The checkouts whose HEAD is the branch, or the reason why one that is busy with it must be left alone.
fn checkouts_on(repo: &Repo, branch: &BranchName) -> Result<Result<Vec<Checkout>, HeldReason>, GitError> {
    let full = branch.full();
    let mut on = Vec::new();
    for checkout in repo.checkouts()? {
        let said = repo
            .git()
            .call("see what a checkout is on")
            .git_dir(&checkout.git_dir)
            .args(["symbolic-ref", "--quiet", "HEAD"])
            .run()?;
        if said.stdout.trim_ascii_end() == full.as_bytes() {
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

fn in_progress(checkout: &Checkout) -> Option<HeldReason> {
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
    .find(|sign| files::exists(&checkout.git_dir.join(sign)))
    .map(|sign| HeldReason::OperationInProgress { path: checkout.root.clone(), sign: sign.to_owned() })
}

/// Moves files and index of a clean checkout, all or nothing. Changes in the folders `beside` that the move does not touch
/// stay as they are.
fn forward(
    repo: &Repo,
    checkout: &Checkout,
    (old, new): (&Oid, &Oid),
    beside: &[String],
) -> Result<Option<HeldReason>, GitError> {
    let theirs = |doing: &str| {
        repo.git()
            .call(doing)
            .trust(Trust::Checkout)
            .git_dir(&checkout.git_dir)
            .work_tree(&checkout.root)
            .timeout(SLOW)
    };
    let list = |bytes: Vec<u8>| -> HashSet<Vec<u8>> {
        bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect()
    };
    let status = theirs("look for changes in the checkout")
        .args([
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=no",
            "--ignore-submodules=dirty",
            "--no-renames",
        ])
        .output()?;
    let dirty: HashSet<Vec<u8>> = status
        .split(|byte| *byte == 0)
        .filter_map(|record| record.get(3..))
        .filter(|path| !path.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    let is_beside = |path: &Vec<u8>| {
        let below =
            |folder: &String| path.strip_prefix(folder.as_bytes()).is_some_and(|it| it.starts_with(b"/"));
        beside.iter().any(below)
    };
    let aside: HashSet<Vec<u8>> = dirty.iter().filter(|path| is_beside(path)).cloned().collect();
    let only_aside = !aside.is_empty() && aside.len() == dirty.len() && {
        let changed = theirs("list what changes")
            .args(["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff"])
            .args(["--end-of-options", old.as_str(), new.as_str()])
            .output()
            .map(list)?;
        aside.is_disjoint(&changed)
    };
    let held = |paths: Vec<Vec<u8>>| {
        let mut paths = paths;
        paths.sort();
        paths.truncate(DIRTY_NAMED_MAX);
        HeldReason::Dirty { path: checkout.root.clone(), paths }
    };
    if dirty.is_empty() || only_aside {
        let said = theirs("fast-forward the checkout")
            .args([
                "read-tree",
                "-m",
                "-u",
                "--no-recurse-submodules",
                "--end-of-options",
                old.as_str(),
                new.as_str(),
            ])
            .run()?;
        if said.code == 0 {
            return Ok(None);
        }
        // Either untracked files are in the way, or this is the rest of an earlier attempt.
        let in_the_way = added_and_present(repo, checkout, old, new)?;
        if in_the_way.is_empty() {
            return Err(said.failed());
        }
        let differing = differing_from(repo, checkout, new)?;
        let foreign: Vec<Vec<u8>> = in_the_way.into_iter().filter(|path| differing.contains(path)).collect();
        if !foreign.is_empty() {
            return Ok(Some(held(foreign)));
        }
        if only_aside {
            return Ok(Some(held(aside.into_iter().collect()))); // finishing would take them away
        }
    } else {
        // Ours or theirs? Ours is what already is as the new commit wants it, in the files and in the index.
        let differing = differing_from(repo, checkout, new)?;
        let in_the_way = added_and_present(repo, checkout, old, new)?;
        let index_differs = |from: &Oid| {
            theirs("compare the index")
                .args(["diff-index", "--cached", "--name-only", "-z", "--no-renames", "--no-ext-diff"])
                .args(["--ignore-submodules=all", "--end-of-options", from.as_str()])
                .output()
                .map(list)
        };
        let staged = index_differs(old)?;
        let not_as_new = index_differs(new)?;
        let foreign: Vec<Vec<u8>> = dirty
            .iter()
            .chain(&in_the_way)
            .filter(|path| {
                differing.contains(*path) || (staged.contains(*path) && not_as_new.contains(*path))
            })
            .cloned()
            .collect();
        if !foreign.is_empty() {
            return Ok(Some(held(foreign)));
        }
    }
    // Every change is our own from an attempt that was cut off: finish it. What is overwritten is equal.
    theirs("finish the fast-forward of the checkout")
        .args(["read-tree", "--reset", "-u", "--no-recurse-submodules", "--end-of-options", new.as_str()])
        .output()?;
    Ok(None)
}

/// Paths that `new` adds and that exist in the checkout already.
fn added_and_present(
    repo: &Repo,
    checkout: &Checkout,
    old: &Oid,
    new: &Oid,
) -> Result<Vec<Vec<u8>>, GitError> {
    let bytes = repo
        .git()
        .call("list added files")
        .git_dir(&checkout.git_dir)
        .args(["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--diff-filter=A"])
        .args(["--end-of-options", old.as_str(), new.as_str()])
        .output()?;
    let mut found: Vec<Vec<u8>> = Vec::new();
    for path in bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
        // The file itself, or a file where a folder must be.
        for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/').chain([(path.len(), &b'/')])
        {
            let part = &path[..at];
            let meta = checkout.root.join(files::path_of(part)).symlink_metadata();
            if meta.is_ok_and(|meta| at == path.len() || !meta.is_dir()) {
                found.push(part.to_vec());
                break;
            }
        }
    }
    Ok(found)
}

/// Paths whose content in the checkout is not that of `commit`, judged with an index of our own.
fn differing_from(repo: &Repo, checkout: &Checkout, commit: &Oid) -> Result<HashSet<Vec<u8>>, GitError> {
    let doing = || "compare the checkout with a commit".to_owned();
    let index = checkout.git_dir.join(format!("landfall-index-{}", std::process::id()));
    let call = || {
        repo.git()
            .call(doing())
            .trust(Trust::Checkout)
            .git_dir(&checkout.git_dir)
            .work_tree(&checkout.root)
            .env("GIT_INDEX_FILE", &index)
            .timeout(SLOW)
    };
    let result = (|| {
        call().args(["read-tree", "--end-of-options", commit.as_str()]).output()?;
        // It ends with 1 if anything differs, which is what we ask next.
        call().args(["update-index", "-q", "--refresh"]).run()?;
        call()
            .args([
                "diff-files",
                "-z",
                "--name-only",
                "--no-renames",
                "--no-ext-diff",
                "--ignore-submodules=all",
            ])
            .output()
    })();
    files::remove(&index).doing(doing)?;
    let bytes = result?;
    let mut paths: HashSet<Vec<u8>> =
        bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect();
    // A file that blocks a folder shows as missing files below it; name the file itself as well.
    let parents: Vec<Vec<u8>> = paths
        .iter()
        .flat_map(|path| {
            path.iter()
                .enumerate()
                .filter(|(_, byte)| **byte == b'/')
                .map(|(at, _)| path[..at].to_vec())
                .collect::<Vec<_>>()
        })
        .filter(|parent| {
            checkout.root.join(files::path_of(parent)).symlink_metadata().is_ok_and(|meta| !meta.is_dir())
        })
        .collect();
    paths.extend(parents);
    Ok(paths)
}

/// A person's ref, locked by a git process of ours with its old value checked. Written or left, never lost:
/// if we die, the process sees the end of its input and lets go.
struct Locked {
    child: Child,
    stdin: Option<std::process::ChildStdin>,
    deadline: Instant,
}

impl Locked {
    fn take(
        repo: &Repo,
        git_dir: &Path,
        branch: &BranchName,
        new: &Oid,
        old: &Oid,
        by: &Signature,
    ) -> Result<Result<Locked, Option<Oid>>, GitError> {
        let doing = format!("move branch `{branch}`");
        let mut child = repo
            .git()
            .call(&doing)
            .git_dir(git_dir)
            .config("core.logAllRefUpdates=true")
            .config("core.fsync=committed")
            .signed(by, by)
            .args(["update-ref", "-m", "landfall: land verified work", "--no-deref", "-z", "--stdin"])
            .spawn(Stdio::piped())?;
        let mut stdin = child.stdin.take().expect("it was started with a pipe");
        let deadline = Instant::now() + SLOW + QUICK; // the checkout moves while we hold it
        let order = format!("start\0update {}\0{new}\0{old}\0prepare\0", branch.full());
        let written = stdin.write_all(order.as_bytes()).is_ok();
        let mut locked = Locked { child, stdin: Some(stdin), deadline };
        let answered = written && locked.expect(b"start: ok\nprepare: ok\n");
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

    fn expect(&mut self, answer: &[u8]) -> bool {
        let mut buffer = vec![0; answer.len()];
        let Some(stdout) = &self.child.stdout else { return false };
        let deadline = Instant::now() + QUICK;
        matches!(read_exact_until(stdout.as_fd(), &mut buffer, deadline), Ok(true)) && buffer == answer
    }

    fn commit(mut self) -> Result<(), GitError> {
        let doing = "write the branch";
        let mut stdin = self.stdin.take().expect("taken only here and when giving up");
        let written = stdin.write_all(b"commit\0").is_ok();
        drop(stdin);
        let answered = written && self.expect(b"commit: ok\n");
        let status = wait_until(&mut self.child, self.deadline).doing(|| doing.to_owned())?;
        if answered && status.is_some_and(|status| status.success()) {
            return Ok(());
        }
        Err(GitError {
            doing: doing.to_owned(),
            kind: GitErrorKind::Failed { code: 128, stderr: self.give_up() },
        })
    }

    fn abort(mut self) {
        self.give_up();
    }

    /// Lets go of the lock and returns the complaint.
    fn give_up(&mut self) -> String {
        use std::io::Read as _;
        drop(self.stdin.take());
        // It sees the end of its input and removes its lock; killing it first would leave the lock behind.
        let in_time = wait_until(&mut self.child, Instant::now() + QUICK);
        let mut stderr = Vec::new();
        if let Ok(Some(_)) = in_time
            && let Some(pipe) = self.child.stderr.take()
        {
            drop(pipe.take(16 << 10).read_to_end(&mut stderr)); // words only
        }
        end(&mut self.child);
        String::from_utf8_lossy(&stderr).into_owned()
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.give_up();
    }
}

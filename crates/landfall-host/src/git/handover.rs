//! Handing landed commits over to the user's repository, such that no `git gc`, `git prune` or `git repack` of the user takes
//! their objects away again before the branch leads to them.
//!
//! git removes what no ref leads to. So a ref of ours leads to the commit until the branch does. A command of the user that
//! had looked at the refs before that still deletes objects, so they are looked for afterwards, and handed over again.

use std::time::{Duration, SystemTime};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::names::{BranchName, Oid};
use super::repo::Repo;
use super::run::{GitError, SLOW};
use super::store::{Store, branch_digest};

/// Every try takes a second or less, and a `git gc` deletes an object once.
const TRIES_MAX: u32 = 5;

/// The name that keeps what is being published on a branch. Two engines never publish on the same one.
fn pin_name(branch: &BranchName) -> String {
    format!("refs/landfall/publishing/{}", branch_digest(branch.as_str()))
}

/// Keeps a commit in the user's repository until its branch leads to it.
#[derive(Debug)]
pub(super) struct HandoverPin<'r> {
    repo: &'r Repo,
    name: String,
}

impl Drop for HandoverPin<'_> {
    fn drop(&mut self) {
        let _ = delete_ref(self.repo, &self.name); // the next publishing replaces it, or removes it
    }
}

/// Removes the ref that a publishing on this branch left when it was cut off. No process if there is none.
pub(super) fn remove_stale_pin(repo: &Repo, branch: &BranchName) -> Result<(), GitError> {
    let name = pin_name(branch);
    remove_damaged_pin(repo, &name)?;
    let is_packed = || {
        let packed = std::fs::read(repo.common_dir().join("packed-refs")).unwrap_or_default(); // there may be none
        packed.windows(name.len()).any(|part| part == name.as_bytes())
    };
    let has_reftable = || repo.common_dir().join("reftable").is_dir();
    match repo.common_dir().join(&name).exists() || is_packed() || has_reftable() {
        true => delete_ref(repo, &name),
        false => Ok(()),
    }
}

/// Removes the file of a pin that a power cut emptied, and the lock of a git that was killed. git refuses to touch either, and
/// no one else would remove them: this name is ours alone.
fn remove_damaged_pin(repo: &Repo, name: &str) -> Result<(), GitError> {
    let path = repo.common_dir().join(name);
    let is_damaged = std::fs::read_to_string(&path).is_ok_and(|text| text.trim_end().parse::<Oid>().is_err());
    let lock = repo.common_dir().join(format!("{name}.lock"));
    for file in [is_damaged.then_some(path), Some(lock)].into_iter().flatten() {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(GitError::from_io(format!("remove `{}`", file.display()), error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn delete_ref(repo: &Repo, name: &str) -> Result<(), GitError> {
    let call = repo.git().prepare_call("remove the ref of a publishing").git_dir(repo.common_dir());
    call.args(["update-ref", "-d", name]).output().map(drop)
}

/// The file that shows that `git gc` runs in the user's repository right now.
pub(super) fn gc_sign(repo: &Repo) -> Option<&'static str> {
    const AGE_MAX: Duration = Duration::from_secs(12 * 60 * 60); // git does not believe an older one either
    let path = repo.common_dir().join("gc.pid");
    let written = std::fs::metadata(&path).and_then(|meta| meta.modified()).ok()?;
    if SystemTime::now().duration_since(written).is_ok_and(|age| age > AGE_MAX) {
        return None;
    }
    let text = std::fs::read_to_string(&path).ok()?;
    let (pid, host) = text.trim().split_once(' ')?;
    // The process of another machine cannot be asked for. The ref of ours keeps the objects, and they are looked for afterwards.
    if host.as_bytes() != rustix::system::uname().nodename().to_bytes() {
        return None;
    }
    let pid = pid.parse().ok().and_then(Pid::from_raw)?;
    // A process of another user may not be sent a signal, and lives.
    matches!(test_kill_process(pid), Ok(()) | Err(Errno::PERM)).then_some("gc.pid")
}

impl Store {
    /// Copies `want` and what it needs into the user's repository, and keeps it there while the pin lives.
    pub(super) fn hand_over_pinned<'r>(
        &self,
        repo: &'r Repo,
        branch: &BranchName,
        want: &Oid,
        have: &[Oid],
    ) -> Result<HandoverPin<'r>, GitError> {
        let pin = HandoverPin { repo, name: pin_name(branch) };
        let mut refused = None;
        for _ in 0..TRIES_MAX {
            self.copy_objects_to(repo, want, have)?;
            crate::crash::pass_point("git.publish.handed");
            // git sets no ref to an object that is gone.
            // Without a sync a power cut leaves an empty file, and their repository would be damaged.
            let call = repo.git().prepare_call("keep what is published").git_dir(repo.common_dir());
            let call = call.config("core.fsync=committed");
            let said = call.args(["update-ref", &pin.name, want.as_str()]).run()?;
            refused = (said.code != 0).then_some(said);
            if refused.is_none() && has_all(repo, want, have)? {
                return Ok(pin);
            }
        }
        // Another ref in the way or a folder that cannot be written, for example.
        if let Some(said) = refused {
            return Err(said.into_error());
        }
        let doing = format!("hand {want} over to `{}`", repo.common_dir().display());
        Err(GitError::unexpected_output(
            doing,
            "another program keeps deleting its objects, such as `git gc --prune=now`",
        ))
    }

    /// Hands over again what is missing of a commit that the branch leads to already. Returns whether anything was.
    pub(super) fn complete_handover(
        &self,
        repo: &Repo,
        commit: &Oid,
        have: &[Oid],
    ) -> Result<bool, GitError> {
        for tried in 0..TRIES_MAX {
            if has_all(repo, commit, have)? {
                return Ok(tried > 0);
            }
            self.copy_objects_to(repo, commit, have)?;
        }
        let doing = format!("complete {commit} in `{}`", repo.common_dir().display());
        Err(GitError::from_io(
            doing,
            std::io::Error::other("objects are missing there after they were copied"),
        ))
    }

    /// Sees that every file of a commit which the user's branch has is in their repository, and copies from the store what is
    /// not. Returns whether anything was missing.
    ///
    /// # Errors
    /// When git cannot be run, or the user's repository takes no objects.
    pub fn repair_published(&self, repo: &Repo, commit: &Oid) -> Result<bool, GitError> {
        let call = repo.git().prepare_call("look for the files of the branch").git_dir(repo.common_dir());
        let args = ["rev-list", "--objects", "--quiet", "--no-walk", "--exclude-promisor-objects"];
        let said = call.args(args).args(["--end-of-options", commit.as_str()]).timeout(SLOW).run()?;
        match said.code {
            0 => Ok(false),
            _ => self.copy_objects_to(repo, commit, &[]).map(|()| true),
        }
    }
}

/// Whether the user's repository has everything that `want` needs besides what `have` leads to.
fn has_all(repo: &Repo, want: &Oid, have: &[Oid]) -> Result<bool, GitError> {
    let call = repo.git().prepare_call(format!("look for what {want} needs")).git_dir(repo.common_dir());
    let args = ["rev-list", "--objects", "--quiet", "--exclude-promisor-objects", "--end-of-options"];
    let not = have.iter().map(|oid| format!("^{oid}"));
    Ok(call.args(args).arg(want.as_str()).args(not).timeout(SLOW).run()?.code == 0)
}

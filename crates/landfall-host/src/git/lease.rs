//! Pushing the branch of a task to a remote. Its history may have been rewritten by us, so it need not go ahead; but it is
//! moved only from where we left it, and no other branch is ever moved this way.

use std::time::Duration;

use super::names::{BranchName, Oid};
use super::news::check_remote;
use super::publish::{HeldReason, PublishMethod, PublishOutcome};
use super::repo::Repo;
use super::run::{GitConfigTrust, GitError};
use super::store::Store;

/// What the branches of tasks begin with. Nobody else's do.
const TASK_BRANCHES: &str = "landfall/";

/// A push over a slow line to a busy host.
const PUSH: Duration = Duration::from_secs(300);

fn check_task_branch(doing: &str, branch: &BranchName) -> Result<(), GitError> {
    if branch.as_str().strip_prefix(TASK_BRANCHES).is_none_or(str::is_empty) {
        let why = format!("only branches of tasks are pushed like this; they begin with `{TASK_BRANCHES}`");
        return Err(GitError::unexpected_output(doing, why));
    }
    Ok(())
}

impl Store {
    /// Moves the branch of a task at a remote to `new`, if it is at `expected`; if that is none, it must not be there
    /// yet.
    ///
    /// # Errors
    /// When the branch is not one of a task, or git cannot be run.
    pub fn push_task_branch(
        &self,
        repo: &Repo,
        remote: &str,
        branch: &BranchName,
        new: &Oid,
        expected: Option<&Oid>,
    ) -> Result<PublishOutcome, GitError> {
        let doing = format!("push `{branch}` to `{remote}`");
        check_remote(remote)?;
        check_task_branch(&doing, branch)?;
        // The base is in their repository only once it was published: what they have is asked for.
        let mut have: Vec<Oid> = expected.into_iter().cloned().chain(self.read_base()?).collect();
        have.retain(|oid| self.contains(oid).unwrap_or(false) && repo.has_commit(oid).unwrap_or(false));
        self.copy_objects_to(repo, new, &have)?;
        let full = branch.full_name();
        let lease = format!("--force-with-lease={full}:{}", expected.map_or("", Oid::as_str));
        let said = repo
            .git()
            .prepare_call(&doing)
            .trust(GitConfigTrust::Push)
            .git_dir(repo.git_dir())
            .env("SSH_ASKPASS_REQUIRE", "never")
            .args(["push", "--porcelain", "--no-follow-tags", "--no-recurse-submodules", &lease])
            .args(["--end-of-options", remote, &format!("{new}:{full}")])
            .timeout(PUSH)
            .run()?;
        let stdout = String::from_utf8_lossy(&said.stdout).into_owned();
        if said.code != 0 {
            let stderr = format!("{}{stdout}", said.stderr).trim().to_owned();
            return Ok(PublishOutcome::Held(HeldReason::Remote { stderr }));
        }
        self.note_remote(remote, branch, new)?;
        let already = stdout.lines().any(|line| line.starts_with("=\t"));
        Ok(if already { PublishOutcome::Already } else { PublishOutcome::Done(PublishMethod::Pushed) })
    }

    /// Takes the branch of a task away at a remote, if it is still at `expected`: what it held is elsewhere.
    ///
    /// # Errors
    /// When the branch is not one of a task, it is somewhere else, or git cannot be run.
    pub fn drop_task_branch(
        &self,
        repo: &Repo,
        remote: &str,
        branch: &BranchName,
        expected: &Oid,
    ) -> Result<(), GitError> {
        let doing = format!("take `{branch}` away at `{remote}`");
        check_remote(remote)?;
        check_task_branch(&doing, branch)?;
        let full = branch.full_name();
        let call = repo.git().prepare_call(&doing).trust(GitConfigTrust::Push).git_dir(repo.git_dir());
        call.env("SSH_ASKPASS_REQUIRE", "never")
            .args(["push", "--porcelain", "--no-follow-tags", "--no-recurse-submodules"])
            .arg(format!("--force-with-lease={full}:{expected}"))
            .args(["--end-of-options", remote, &format!(":{full}")])
            .timeout(PUSH)
            .output()
            .map(drop)
    }
}

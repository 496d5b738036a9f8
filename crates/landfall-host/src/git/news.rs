//! What people did to a branch since we last looked: in their own repository, or in one that they push to.
//!
//! Only told, never acted upon. Nothing of theirs is written: what a remote has is fetched into a scratch folder
//! and from there into the store.

use std::time::Duration;

use super::in_flight::ScratchObjects;
use super::names::{BranchName, Oid};
use super::repo::{CheckoutHead, Repo};
use super::run::{GitCall, GitConfigTrust, GitError};
use super::store::{ObjectCheck, Store, quote_alternate_path, upstream_ref};

/// Asking a remote where a branch stands; a host that does not answer in this time is not there.
const ASK: Duration = Duration::from_secs(60);

/// Fetching what is new: a day's work of a team over a slow line.
const FETCH: Duration = Duration::from_secs(300);

/// How often a remote is asked again that moves while we fetch.
const ROUNDS_MAX: u32 = 3;

/// What became of a branch since it stood at a commit that we know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchNews {
    /// It stands there still.
    Same,
    /// Commits were added to it.
    Ahead {
        /// Where it stands; the store has it.
        new: Oid,
        /// How many commits it has that the known one does not reach.
        commits: u32,
    },
    /// Its history was changed: the known commit is no part of it any more.
    Rewritten {
        /// The commit that we know.
        old: Oid,
        /// Where it stands; the store has it.
        new: Oid,
        /// The newest commit that both have; the new one itself if commits were only taken away, `None` if
        /// they have nothing in common.
        common: Option<Oid>,
    },
    /// There is no such branch.
    Deleted,
    /// It is there in name only: it is checked out and has no commit, or the remote has no branch at all.
    Unborn,
}

impl Store {
    /// What became of a branch of the person since it stood at `known`. What is new is brought into the store.
    /// No process if nothing happened.
    pub fn branch_news(&self, repo: &Repo, branch: &BranchName, known: &Oid) -> Result<BranchNews, GitError> {
        match repo.branch_tip(branch)? {
            Some(tip) if tip == *known => return Ok(BranchNews::Same),
            Some(_) => {}
            None => {
                return Ok(match repo.read_head()? {
                    CheckoutHead::Unborn { branch: unborn } if unborn == branch.as_str() => {
                        BranchNews::Unborn
                    }
                    CheckoutHead::Unborn { .. }
                    | CheckoutHead::Branch { .. }
                    | CheckoutHead::Detached { .. } => BranchNews::Deleted,
                });
            }
        }
        let tip = self.import_branch(repo, branch)?;
        self.compare_tips(known, tip)
    }

    /// The same for a branch of a remote, by the name that the remote has in the person's repository. It is reached
    /// with the person's own settings and without asking them anything. Nothing in their repository changes.
    pub fn remote_news(
        &self,
        repo: &Repo,
        remote: &str,
        branch: &BranchName,
        known: &Oid,
    ) -> Result<BranchNews, GitError> {
        check_remote(remote)?;
        for _ in 0..ROUNDS_MAX {
            let Some(tip) = self.remote_tip(repo, remote, branch)? else {
                let any = remote_call(repo, format!("list the branches of `{remote}`"))
                    .args(["ls-remote", "--heads", "--end-of-options", remote])
                    .timeout(ASK)
                    .cut_at(4096) // one is enough
                    .output()?;
                return Ok(if any.is_empty() { BranchNews::Unborn } else { BranchNews::Deleted });
            };
            if tip == *known {
                return Ok(BranchNews::Same);
            }
            if self.contains(&tip)? || self.fetch_tip(repo, remote, branch, &tip, known)? {
                let whose = format!("{remote}:{branch}"); // a branch of the person has no colon in its name
                self.pin_commit(&upstream_ref(&whose), &tip)?;
                return self.compare_tips(known, tip);
            }
        }
        Err(GitError::unexpected_output(
            format!("fetch `{branch}` of `{remote}`"),
            "it moves faster than we can follow",
        ))
    }

    /// Where the branch of a remote was when we last agreed with it; see [`Store::note_remote`].
    pub fn remote_seen(&self, remote: &str, branch: &BranchName) -> Result<Option<Oid>, GitError> {
        self.resolve_ref(&upstream_ref(&seen_name(remote, branch)))
    }

    /// Notes where the branch of a remote is: from there it only goes ahead, unless it was rewritten.
    pub fn note_remote(&self, remote: &str, branch: &BranchName, tip: &Oid) -> Result<(), GitError> {
        self.pin_commit(&upstream_ref(&seen_name(remote, branch)), tip)
    }

    fn compare_tips(&self, known: &Oid, tip: Oid) -> Result<BranchNews, GitError> {
        if tip == *known {
            return Ok(BranchNews::Same);
        }
        if self.is_ancestor(known, &tip)? {
            let commits = self.count_ahead(known, &tip)?;
            return Ok(BranchNews::Ahead { new: tip, commits });
        }
        let common = self.merge_bases(known, &tip)?.into_iter().next();
        Ok(BranchNews::Rewritten { old: known.clone(), new: tip, common })
    }

    fn remote_tip(&self, repo: &Repo, remote: &str, branch: &BranchName) -> Result<Option<Oid>, GitError> {
        let doing = format!("ask `{remote}` for `{branch}`");
        let full = branch.full_name();
        let said = remote_call(repo, &doing)
            .args(["ls-remote", "--end-of-options", remote, &full])
            .timeout(ASK)
            .output()?;
        // "<id>\t<name>"; what is asked for matches the end of longer names, too.
        for line in said.split(|byte| *byte == b'\n') {
            let Some(tab) = line.iter().position(|byte| *byte == b'\t') else { continue };
            if line[tab + 1..] == *full.as_bytes() {
                return Oid::from_line(&line[..tab])
                    .map(Some)
                    .ok_or_else(|| GitError::unexpected_output(doing, "not an object id"));
            }
        }
        Ok(None)
    }

    /// Brings `tip` of a remote's branch into the store. `false` if the remote has moved on meanwhile.
    fn fetch_tip(
        &self,
        repo: &Repo,
        remote: &str,
        branch: &BranchName,
        tip: &Oid,
        known: &Oid,
    ) -> Result<bool, GitError> {
        let doing = || format!("fetch `{branch}` of `{remote}`");
        let scratch = ScratchObjects::new(self)?;
        // Whose folder this is does not matter: it reads the person's objects, and git writes new ones here.
        let aside = self.create_scratch_store(&scratch.path().join("fetched.git"), &[repo.objects_dir()])?;
        remote_call(repo, doing())
            .env("GIT_OBJECT_DIRECTORY", aside.objects_dir())
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quote_alternate_path(&repo.objects_dir()))
            .args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--refmap=", "--no-filter"])
            .args(["--no-recurse-submodules", "--no-prune", "--no-auto-maintenance", "--end-of-options"])
            .args([remote, &branch.full_name()])
            .timeout(FETCH)
            .output()?;
        if !aside.contains(tip)? {
            return Ok(false);
        }
        let mut have = vec![known.clone()];
        have.extend(self.read_base()?);
        self.fetch_objects_from(&aside.objects_dir(), tip, &have, ObjectCheck::Hash)?;
        Ok(true)
    }
}

/// A branch of the person has no colon in its name, and one of a remote only one.
fn seen_name(remote: &str, branch: &BranchName) -> String {
    format!("{remote}:{branch}:seen")
}

/// A call that may reach the person's remotes. They are not there to be asked, so nothing asks them.
fn remote_call(repo: &Repo, doing: impl Into<String>) -> GitCall<'_> {
    repo.git()
        .prepare_call(doing)
        .trust(GitConfigTrust::Push)
        .git_dir(repo.git_dir())
        .env("SSH_ASKPASS_REQUIRE", "never")
}

/// A remote is named, never described: an address could be a command.
pub(crate) fn check_remote(name: &str) -> Result<(), GitError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
    if name.is_empty() || name.starts_with(['-', '.', '/']) || !name.bytes().all(plain) {
        let why = format!("`{}` is no name of a remote", name.escape_debug());
        return Err(GitError::unexpected_output("reach a remote", why));
    }
    Ok(())
}

//! Lanes: reusable checkouts in which candidates are verified.
//!
//! The files are those of the commit as any clone would have them: line endings and encodings follow the
//! attributes, filters do not run. After each checkout the lane is compared with the commit again, and it
//! is refused if anything differs. The `.git` inside is there so that tools which ask git get an answer.

use std::path::{Path, PathBuf};

use super::files;
use super::index::Index;
use super::names::Oid;
use super::room::{DotGit, PrivateIndex};
use super::run::{GitError, GitResultExt as _};
use super::store::Store;
use crate::mount::MountIdentity;

/// What happens to ignored files of earlier verifications, such as build caches, and to the layers over caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoredFilesPolicy {
    /// Both stay: the earlier commands are part of the same verification.
    Keep,
    /// Ignored files stay, and the layers go. Faster, but an earlier candidate may have left something in the files.
    KeepWithoutCaches,
    /// They go, like everything else that the commit does not have.
    Remove,
}

/// A checkout that equals a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneCheckout {
    /// Where it is.
    pub path: PathBuf,
    /// The tree it equals.
    pub tree: Oid,
}

/// A reusable checkout for verification. One user at a time.
#[derive(Debug)]
pub struct Lane {
    store: Store,
    path: PathBuf,
    room: PrivateIndex,
}

impl Lane {
    /// Opens the lane in `dir`: the checkout in `dir/tree`, our own files beside it.
    pub fn open_lane(store: &Store, dir: &Path) -> Result<Lane, GitError> {
        let doing = || format!("open the lane `{}`", dir.display());
        let room = dir.join("room");
        std::fs::create_dir_all(&room).with_context(doing)?;
        if MountIdentity::recorded_in(&room).is_none()
            && let Ok(mount) = MountIdentity::of_path(&room)
        {
            mount.record_in(&room).with_context(doing)?;
        }
        let dir = dir.canonicalize().with_context(doing)?;
        Ok(Lane {
            store: store.clone(),
            path: dir.join("tree"),
            room: PrivateIndex::at_folder(dir.join("room")),
        })
    }

    /// Deletes the lanes in `folder` that `may_keep` refuses, and records the mount for the others. Returns how many went. Only
    /// for whoever knows that no check runs in them.
    pub fn delete_untrusted_lanes(
        folder: &Path,
        may_keep: &dyn Fn(Option<&MountIdentity>) -> bool,
    ) -> Result<usize, GitError> {
        let doing = || format!("sort out the lanes in `{}`", folder.display());
        let current = MountIdentity::of_path(folder).ok();
        let mut deleted = 0;
        let entries = match std::fs::read_dir(folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
            entries => entries.with_context(doing)?,
        };
        for entry in entries {
            let lane = entry.with_context(doing)?.path();
            if !files::is_folder(&lane) {
                continue;
            }
            let room = lane.join("room");
            let recorded = MountIdentity::recorded_in(&room);
            if !may_keep(recorded.as_ref()) {
                files::remove_path(&lane).with_context(doing)?;
                deleted += 1;
            } else if let Some(current) = &current
                && recorded.as_ref() != Some(current)
            {
                current.record_in(&room).with_context(doing)?;
            }
        }
        Ok(deleted)
    }

    /// Where the checkout is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the layers over caches of its checks are kept. The folder need not be there.
    pub fn caches_path(&self) -> PathBuf {
        PrivateIndex::caches_path(self.room.dir())
    }

    /// Where a copy of what the base installs is kept. No check can write there. The folder need not be there.
    pub fn installation_path(&self) -> PathBuf {
        self.room.dir().join("installation")
    }

    /// What is in the checkout besides the files of its commit: a folder without any of them as one path that ends with a slash.
    pub fn extra_paths(&self) -> Result<Vec<String>, GitError> {
        let doing = "list what a check left in a lane";
        let bytes = self.room.list_files(&self.store, &self.path, doing, &["--others", "--directory"])?;
        let paths = bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(paths.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }

    /// Notes, before a check is started in the lane, whether it could hand a file to somebody who outlives it. Then the
    /// next checkout writes every file anew.
    pub fn note_occupant(&self, check: &str, may_hand_out: bool) -> Result<(), GitError> {
        self.room.note_occupant(check, may_hand_out)
    }

    /// Notes that a check has ended with all its processes. Without that the lane is another folder for the next one.
    pub fn note_vacated(&self, check: &str) -> Result<(), GitError> {
        self.room.note_vacated(check)
    }

    /// Whether somebody may still hold a file of an earlier check. Ignored files that are kept are such files, too.
    pub fn may_be_handed_out(&self) -> bool {
        self.room.may_be_handed_out()
    }

    /// Makes the lane equal `commit` and proves it. Two processes, one more if attributes changed.
    pub fn check_out_commit(
        &self,
        commit: &Oid,
        ignored: IgnoredFilesPolicy,
    ) -> Result<LaneCheckout, GitError> {
        let doing = || format!("check out {commit} in a lane");
        let tree = self.store.tree_of(commit)?;
        if !files::is_folder(&self.path) {
            // Missing, or replaced by a link or file: make it anew, and forget what we knew about it.
            files::remove_path(&self.path).with_context(doing)?;
            files::remove_path(&self.room.index_path()).with_context(doing)?;
            std::fs::create_dir(&self.path).with_context(doing)?;
        }
        if ignored != IgnoredFilesPolicy::Keep {
            files::remove_path(&self.caches_path()).with_context(doing)?;
        }
        match ignored {
            IgnoredFilesPolicy::Remove => self.room.remove_untracked(&self.store, &self.path)?,
            IgnoredFilesPolicy::Keep | IgnoredFilesPolicy::KeepWithoutCaches => {
                self.room.remove_blocking_files(&self.store, &self.path)?
            }
        }
        self.room.note_ignored(ignored != IgnoredFilesPolicy::Remove)?;
        let index = self.room.check_out(&self.store, &self.path, commit)?;
        DotGit { branch: None, commit, exclude: "" }
            .write_dot_git(&self.store, &self.room, &self.path)
            .with_context(doing)?;
        self.remove_extra(&index, ignored)?;
        let stands_for = match index.tree {
            Some(oid) => oid,
            None => {
                let bytes =
                    self.room.index_call(&self.store, &self.path, doing()).arg("write-tree").output()?;
                Oid::from_line(&bytes)
                    .ok_or_else(|| GitError::unexpected_output(doing(), "write-tree gave no id"))?
            }
        };
        if stands_for != tree {
            return Err(GitError::unexpected_output(
                doing(),
                format!("the lane holds tree {stands_for}, not {tree}"),
            ));
        }
        Ok(LaneCheckout { path: self.path.clone(), tree })
    }

    /// Removes what is extra and refuses what differs.
    fn remove_extra(&self, index: &Index, ignored: IgnoredFilesPolicy) -> Result<(), GitError> {
        let doing = || "compare a lane with its commit".to_owned();
        for seen in self.list_differences(ignored)? {
            match seen {
                LaneDifference::Extra(path) => {
                    let path = files::path_of(path.strip_suffix(b"/").unwrap_or(&path));
                    files::remove_path(&self.path.join(path)).with_context(doing)?;
                }
                LaneDifference::Differs(path) => {
                    if !self.is_as_written(index, &path)? {
                        let path = String::from_utf8_lossy(&path).into_owned();
                        return Err(GitError::unexpected_output(
                            doing(),
                            format!("`{path}` differs right after checkout"),
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    fn list_differences(&self, ignored: IgnoredFilesPolicy) -> Result<Vec<LaneDifference>, GitError> {
        let mut flags = vec!["-t", "--modified", "--deleted", "--others"];
        if ignored != IgnoredFilesPolicy::Remove {
            flags.push("--exclude-standard");
        }
        let bytes =
            self.room.list_files(&self.store, &self.path, "compare a lane with its commit", &flags)?;
        let records = bytes.split(|byte| *byte == 0).filter(|record| record.len() > 2);
        Ok(records
            .map(|record| match record[0] {
                b'?' => LaneDifference::Extra(record[2..].to_vec()),
                _ => LaneDifference::Differs(record[2..].to_vec()),
            })
            .collect())
    }

    /// Some files never look clean to git, such as one with CRLF in the tree and `text` in its attributes.
    /// They are right if they hold exactly what git writes for them.
    fn is_as_written(&self, index: &Index, path: &[u8]) -> Result<bool, GitError> {
        let Some(entry) = index.entries().find(|entry| entry.path == path) else { return Ok(false) };
        let on_disk = self.path.join(files::path_of(path));
        if entry.mode & 0o170000 != 0o100000 || !on_disk.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            return Ok(false);
        }
        let mut flag = std::ffi::OsString::from("--path=");
        flag.push(files::path_of(path));
        let written = self
            .room
            .index_call(&self.store, &self.path, "write out a file again")
            .args(["cat-file", "--filters"])
            .arg(flag)
            .arg(entry.oid().as_str())
            .output()?;
        let found = std::fs::read(&on_disk).with_context(|| format!("read `{}`", on_disk.display()))?;
        Ok(written == found)
    }
}

enum LaneDifference {
    Extra(Vec<u8>),
    Differs(Vec<u8>),
}

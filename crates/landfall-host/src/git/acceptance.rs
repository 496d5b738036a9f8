//! Whether a remote would take a commit: the checks that `transfer.fsckObjects` turns on, made before anything lands.
//!
//! Not all objects of the store were checked when they came in: git does not check the files and trees that it writes
//! itself, and a merge makes trees of its own. So the objects that a push would send are packed and received into a folder
//! that is thrown away, by the same program that a remote runs.

use std::collections::BTreeSet;

use super::collect::machine_failed;
use super::files;
use super::names::Oid;
use super::run::{GitError, GitErrorKind, GitResultExt as _, SLOW};
use super::store::{ObjectCheck, Store, quote_alternate_path, transfer_pack};
use crate::disk;

/// How the names of folders begin that received objects are checked in.
const QUARANTINE: &str = "quarantine-";

/// How much of the complaint is kept.
const REASON_MAX: usize = 2_000;

impl Store {
    /// Why a remote that checks objects would refuse `commit`, given that it has `base`; `None` if it would take it.
    ///
    /// A fault that the tree of `base` has as well is no reason: it is in the project already.
    pub fn remote_refusal(&self, commit: &Oid, base: &Oid) -> Result<Option<String>, GitError> {
        let Some(complaint) = self.check_as_remote(commit, std::slice::from_ref(base), &[])? else {
            return Ok(None);
        };
        // Without the contents of files: those that matter are found in the store.
        let filter = ["--filter=blob:none"];
        let tree = self.tree_of(base)?;
        let known =
            self.check_as_remote(&tree, &[], &filter)?.map(|text| fault_names(&text)).unwrap_or_default();
        let faults = fault_names(&complaint);
        if !faults.is_empty() && faults.is_subset(&known) {
            return Ok(None);
        }
        let mut lines: Vec<&str> = complaint.lines().filter(|line| line.contains("object ")).collect();
        lines.dedup();
        let text = if lines.is_empty() { complaint.trim().to_owned() } else { lines.join("\n") };
        Ok(Some(text.chars().take(REASON_MAX).collect()))
    }

    /// Removes what checks left behind whose engine was killed. Only for the owner of the store, before it checks anything.
    pub fn remove_quarantines(&self) -> std::io::Result<()> {
        for entry in std::fs::read_dir(self.dir())? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(QUARANTINE) {
                files::remove_path(&entry.path())?;
            }
        }
        Ok(())
    }

    /// What git says on receiving `want` without what `have` reaches; `None` if it finds no fault.
    fn check_as_remote(
        &self,
        want: &Oid,
        have: &[Oid],
        pack_args: &[&str],
    ) -> Result<Option<String>, GitError> {
        let doing = || format!("check the objects of {want}");
        let folder = disk::create_unique_folder(self.dir(), QUARANTINE).with_context(doing)?;
        let pack = self.prepare_call(doing());
        let result = transfer_pack(pack, pack_args, want, have, ObjectCheck::Remote, |receive| {
            self.prepare_call(doing())
                .config("core.fsync=none")
                .env("GIT_OBJECT_DIRECTORY", &folder)
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quote_alternate_path(&self.objects_dir()))
                .args(receive.args)
                .input_pipe(receive.pipe)
                .timeout(SLOW)
                .output()
        });
        files::remove_path(&folder).with_context(doing)?;
        match result {
            Ok(()) => Ok(None),
            Err(GitError { kind: GitErrorKind::Failed { code: 128, stderr }, .. })
                if !machine_failed(128, &stderr) =>
            {
                Ok(Some(stderr))
            }
            Err(error) => Err(error),
        }
    }
}

/// The names of the faults in `error: object ID: faultName: words`.
fn fault_names(complaint: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let rest = line.split_once("object ")?.1.split_once(": ")?.1;
        Some(rest.split(':').next()?.trim().to_owned())
    };
    complaint.lines().filter_map(name).collect()
}

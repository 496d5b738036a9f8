//! Looking at work that is still going on: does it fit to other work, and what does it touch?
//!
//! An agent is writing while we look, so nothing in its workspace is changed, locked or waited for. Its commits
//! are copied into a scratch repository beside the store, merged there, and thrown away with it: the store stays
//! as it was. An answer is of a moment and may be wrong the next; a landing never rests on it.

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::collect::{CollectError, copy_objects, is_gone, machine_failed, read_head};
use super::files;
use super::index::IndexEdit;
use super::merge::{ConflictedPath, MergeResult};
use super::names::Oid;
use super::run::{GitError, GitErrorKind, GitResultExt as _};
use super::store::{SCRATCH, Store};
use super::workspace::Workspace;
use crate::disk;

/// What is copied of an agent's objects for a look; with more, there is no answer.
const OBJECTS_BYTES_MAX: u64 = 512 << 20;

/// How long listing changed files may take. A pipe in the place of a settings file would be waited for forever.
const LOOK: Duration = Duration::from_secs(20);

/// How often an index is read again that another thread is changing.
const RACES_MAX: u32 = 3;

/// Work that may be under way.
#[derive(Debug, Clone, Copy)]
pub enum WorkInProgress<'a> {
    /// A commit that is in the store.
    Commit(&'a Oid),
    /// What the agent of a workspace has committed so far.
    Workspace(&'a Workspace),
}

/// What came of merging two works that are under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrialMerge {
    /// As of now, they fit.
    Clean,
    /// As of now, they do not.
    Conflict {
        /// The paths in question.
        paths: Vec<ConflictedPath>,
    },
}

impl Store {
    /// Merges two works as they stand now, and keeps nothing of it.
    pub fn trial_merge(
        &self,
        ours: WorkInProgress<'_>,
        theirs: WorkInProgress<'_>,
    ) -> Result<TrialMerge, CollectError> {
        let scratch = ScratchObjects::new(self)?;
        let mut borrowed = vec![self.objects_dir()];
        let ours = self.borrow(ours, &scratch.path.join("ours"), &mut borrowed)?;
        let theirs = self.borrow(theirs, &scratch.path.join("theirs"), &mut borrowed)?;
        // Most often both are known: then the store itself is asked, but written is only beside it.
        let aside = self.create_scratch_store(&scratch.path.join("trial.git"), &borrowed)?;
        match aside.merge_commits(&ours, &theirs) {
            Ok(MergeResult::Clean { .. }) => Ok(TrialMerge::Clean),
            Ok(MergeResult::Conflict { paths, .. }) => Ok(TrialMerge::Conflict { paths }),
            Err(GitError { kind: GitErrorKind::Failed { code, stderr }, .. })
                if !machine_failed(code, &stderr) =>
            {
                Err(CollectError::Broken { why: stderr.trim().to_owned() })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The commit of a work; if only its workspace has it, its objects are copied and their place is noted.
    fn borrow(
        &self,
        work: WorkInProgress<'_>,
        to: &Path,
        borrowed: &mut Vec<PathBuf>,
    ) -> Result<Oid, CollectError> {
        let workspace = match work {
            WorkInProgress::Commit(oid) => {
                self.commit_of(oid)?; // it must be here, and be a commit
                return Ok(oid.clone());
            }
            WorkInProgress::Workspace(workspace) => workspace,
        };
        let folder = match files::open_folder(workspace.path()) {
            Ok(folder) => folder,
            Err(error) if is_gone(&error) => return Err(CollectError::WorkspaceGone),
            Err(error) => return Err(GitError::from_io("open a workspace", error).into()),
        };
        let head = read_head(folder.as_fd(), self.oid_bytes())?;
        if !self.contains(&head)? {
            std::fs::create_dir_all(to.join("pack"))
                .with_context(|| "copy the agent's objects".to_owned())?;
            copy_objects(folder.as_fd(), &self.objects_dir(), to, OBJECTS_BYTES_MAX)?;
            borrowed.push(to.to_owned());
        }
        Ok(head)
    }

    /// The paths on which a workspace, as it is now, differs from its base: committed or not, but not the ignored
    /// ones. Sorted. Nothing in the workspace is changed.
    pub fn changed_paths(&self, workspace: &Workspace) -> Result<Vec<Vec<u8>>, CollectError> {
        let doing = || format!("see what changed in workspace {}", workspace.name());
        match files::open_folder(workspace.path()) {
            Ok(_) => {}
            Err(error) if is_gone(&error) => return Err(CollectError::WorkspaceGone),
            Err(error) => return Err(GitError::from_io(doing(), error).into()),
        }
        let scratch = ScratchObjects::new(self)?;
        let index = scratch.path.join("index");
        self.index_of_base(workspace, &index)?;
        let listed = workspace
            .room()
            .index_call(self, workspace.path(), doing())
            .env("GIT_INDEX_FILE", &index)
            .args(["ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard"])
            .arg("--deduplicate")
            .timeout(LOOK)
            .output()?;
        let mut paths: Vec<Vec<u8>> = listed
            .split(|byte| *byte == 0)
            .map(|path| path.strip_suffix(b"/").unwrap_or(path)) // a repository within
            .filter(|path| !path.is_empty())
            .map(<[u8]>::to_vec)
            .collect();
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Writes an index that stands for the workspace's base, with the file times that the room's index has: files
    /// that nobody touched are then not read. No process, unless the room's index is in a state we cannot tell.
    fn index_of_base(&self, workspace: &Workspace, to: &Path) -> Result<(), GitError> {
        let doing = || "turn an index to the base".to_owned();
        let room = workspace.room();
        let base = self.tree_of(workspace.base())?;
        for _ in 0..RACES_MAX {
            let Some(tree) = room.recorded_tree() else { break };
            let modified = std::fs::metadata(room.index_path()).and_then(|meta| meta.modified());
            let (Ok(modified), Ok(index)) = (modified, room.read_index(self)) else { break };
            if room.recorded_tree().as_ref() != Some(&tree) {
                continue; // work is being collected at this moment
            }
            let changes: Vec<IndexEdit> = self
                .diff_trees(&tree, &base)?
                .into_iter()
                .map(|difference| IndexEdit { path: difference.path, entry: difference.new })
                .collect();
            std::fs::write(to, index.with_edits(&changes, self.oid_bytes())).with_context(doing)?;
            let file = std::fs::File::options().write(true).open(to).with_context(doing)?;
            return file.set_modified(modified).with_context(doing);
        }
        let read = self.prepare_call(doing()).env("GIT_INDEX_FILE", to);
        read.args(["read-tree", "--end-of-options", base.as_str()]).output().map(drop)
    }
}

/// A folder beside the store's objects for the time of one look.
pub(crate) struct ScratchObjects {
    path: PathBuf,
}

impl ScratchObjects {
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn new(store: &Store) -> Result<ScratchObjects, GitError> {
        let doing = || "make a scratch folder".to_owned();
        let parent = store.dir().join(SCRATCH);
        std::fs::create_dir_all(&parent).with_context(doing)?;
        let path = disk::create_unique_folder(&parent, "").with_context(doing)?;
        Ok(ScratchObjects { path })
    }
}

impl Drop for ScratchObjects {
    fn drop(&mut self) {
        let _ = files::remove_path(&self.path); // what stays is removed when the store is healed
    }
}

//! The files of one commit, read without a checkout.

use std::collections::BTreeMap;

use super::names::{BranchName, Oid};
use super::objects::Objects;
use super::repo::Repo;
use super::run::GitError;
use super::store::Store;

/// What stands at a path of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeEntryKind {
    /// A file.
    File,
    /// A link; its content is where it leads.
    Link,
    /// A folder.
    Folder,
    /// Another repository, of which only the commit is named.
    Module,
}

/// The files of a commit. The list is read once, contents when they are asked for.
#[derive(Debug)]
pub struct CommitTree {
    objects: Objects,
    commit: Oid,
    entries: BTreeMap<Vec<u8>, (TreeEntryKind, Oid)>,
}

impl Repo {
    /// The files of a commit of theirs.
    pub fn tree_at(&self, commit: &Oid) -> Result<CommitTree, GitError> {
        let bytes = self
            .git()
            .prepare_call(format!("list the files of {commit}"))
            .git_dir(self.git_dir())
            .args(["ls-tree", "-r", "-t", "-z", "--full-tree", commit.as_str()])
            .output()?;
        let mut entries = BTreeMap::new();
        for record in bytes.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            let wrong =
                || GitError::unexpected_output(format!("list the files of {commit}"), "a line that is none");
            let tab = record.iter().position(|byte| *byte == b'\t').ok_or_else(wrong)?;
            let head = std::str::from_utf8(&record[..tab]).map_err(|_| wrong())?;
            let mut words = head.split(' ');
            let kind = match words.next() {
                Some("040000") => TreeEntryKind::Folder,
                Some("120000") => TreeEntryKind::Link,
                Some("160000") => TreeEntryKind::Module,
                Some(_) => TreeEntryKind::File,
                None => return Err(wrong()),
            };
            let oid: Oid = words.nth(1).and_then(|oid| oid.parse().ok()).ok_or_else(wrong)?;
            entries.insert(record[tab + 1..].to_vec(), (kind, oid));
        }
        Ok(CommitTree { objects: Objects::new(self.git(), self.git_dir()), commit: commit.clone(), entries })
    }

    /// Whether a commit of theirs is here.
    pub fn has_commit(&self, commit: &Oid) -> Result<bool, GitError> {
        let kind = Objects::new(self.git(), self.git_dir()).object_info(commit)?;
        Ok(kind.is_some_and(|(kind, _)| kind == "commit"))
    }

    /// The last commit of a branch as it was last fetched from a remote; none if it never was.
    pub fn fetched_tip(&self, remote: &str, branch: &BranchName) -> Result<Option<Oid>, GitError> {
        self.rev_parse(&format!("refs/remotes/{remote}/{branch}"))
    }

    /// What a commit changed since it left another, as a unified diff, cut at `max` bytes.
    pub fn diff_since(&self, base: &Oid, head: &Oid, max: usize) -> Result<Vec<u8>, GitError> {
        self.git()
            .prepare_call(format!("compare {base} with {head}"))
            .git_dir(self.git_dir())
            .args(["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--merge-base"])
            .args([base.as_str(), head.as_str()])
            .cut_at(max)
            .output()
    }
}

impl Store {
    /// The paths of all files and folders of a commit in the store.
    pub fn paths_of(&self, commit: &Oid) -> Result<Vec<String>, GitError> {
        let bytes = self
            .git()
            .prepare_call(format!("list the paths of {commit}"))
            .git_dir(self.dir())
            .args(["ls-tree", "-r", "-t", "-z", "--name-only", "--full-tree", commit.as_str()])
            .output()?;
        let paths = bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(paths.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }
}

impl CommitTree {
    /// Which commit it is.
    pub fn commit(&self) -> &Oid {
        &self.commit
    }

    /// What stands at a path.
    pub fn kind_at(&self, path: &str) -> Option<TreeEntryKind> {
        self.entries.get(path.as_bytes()).map(|(kind, _)| *kind)
    }

    /// The content of a file, or where a link leads. None if there is neither, or if it is larger than `max`.
    pub fn read_content(&self, path: &str, max: u64) -> Result<Option<Vec<u8>>, GitError> {
        let Some((TreeEntryKind::File | TreeEntryKind::Link, oid)) = self.entries.get(path.as_bytes()) else {
            return Ok(None);
        };
        let object = self.objects.read_object(oid, max)?;
        Ok(object.filter(|object| object.kind == "blob" && object.size <= max).map(|object| object.bytes))
    }

    /// The paths of all files, without those that are no text.
    pub fn file_paths(&self) -> impl Iterator<Item = &str> {
        let files = self.entries.iter().filter(|(_, (kind, _))| *kind == TreeEntryKind::File);
        files.filter_map(|(path, _)| std::str::from_utf8(path).ok())
    }
}

//! A tree with some of its paths taken from another commit, or given a text: what the tests of the base are run on.

use std::collections::BTreeMap;

use super::names::Oid;
use super::run::GitError;
use super::store::Store;

/// What a path is to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathContent {
    /// As it is in that commit, or nothing if it is not there.
    Of(Oid),
    /// Nothing.
    Nothing,
    /// A file with this text. It keeps its mode.
    Text(String),
}

/// A path of one level and what it is to hold: a mode and an object, or nothing.
type TreeEdits<'a> = Vec<(&'a [u8], Option<(u32, Oid)>)>;

impl Store {
    /// The tree of `commit` with other content at some paths.
    ///
    /// # Errors
    /// When an object cannot be read or written.
    pub fn edit_tree(&self, commit: &Oid, paths: &[(Vec<u8>, PathContent)]) -> Result<Oid, GitError> {
        let tree = self.tree_of(commit)?;
        let mut edits: TreeEdits<'_> = Vec::new();
        for (path, content) in paths {
            let at = |commit: &Oid| -> Result<Option<(u32, Oid)>, GitError> {
                let entry = self.objects().at_path(&self.tree_of(commit)?, path)?;
                Ok(entry.map(|entry| (entry.mode, entry.oid)))
            };
            let entry = match content {
                PathContent::Of(other) => at(other)?,
                PathContent::Nothing => None,
                PathContent::Text(text) => {
                    let mode = at(commit)?.map_or(0o100644, |(mode, _)| mode);
                    Some((mode, self.write_blob(text.clone().into_bytes())?))
                }
            };
            edits.push((path, entry));
        }
        let edited = self.edit_level(Some(&tree), &edits)?;
        edited.map_or_else(|| self.write_tree(Vec::new()), Ok)
    }

    /// One folder after the edits; none if it is empty then.
    fn edit_level(&self, tree: Option<&Oid>, edits: &TreeEdits<'_>) -> Result<Option<Oid>, GitError> {
        let known = tree.map(|tree| self.objects().read_tree(tree)).transpose()?.unwrap_or_default();
        let mut entries: BTreeMap<Vec<u8>, (u32, Oid)> =
            known.into_iter().map(|entry| (entry.name, (entry.mode, entry.oid))).collect();
        let mut below: BTreeMap<&[u8], TreeEdits<'_>> = BTreeMap::new();
        // What goes makes room first: a file may take the place of a folder, and the other way round.
        for (path, entry) in edits {
            match (path.iter().position(|byte| *byte == b'/'), entry) {
                (Some(slash), entry) => {
                    below.entry(&path[..slash]).or_default().push((&path[slash + 1..], entry.clone()));
                }
                (None, None) => {
                    entries.remove(*path);
                }
                (None, Some(entry)) => {
                    entries.insert(path.to_vec(), entry.clone());
                }
            }
        }
        for (folder, edits) in below {
            let old = entries.get(folder).filter(|(mode, _)| *mode == 0o040000).map(|(_, oid)| oid.clone());
            let brings = edits.iter().any(|(_, entry)| entry.is_some());
            if old.is_none() && !brings {
                continue; // there is nothing to remove, and a file may be there
            }
            match self.edit_level(old.as_ref(), &edits)? {
                Some(oid) => entries.insert(folder.to_vec(), (0o040000, oid)),
                None => entries.remove(folder),
            };
        }
        if entries.is_empty() {
            return Ok(None);
        }
        let mut listing = Vec::new();
        for (name, (mode, oid)) in &entries {
            let kind = match mode {
                0o040000 => "tree",
                0o160000 => "commit",
                _ => "blob",
            };
            listing.extend_from_slice(format!("{mode:06o} {kind} {oid}\t").as_bytes());
            listing.extend_from_slice(name);
            listing.push(0);
        }
        self.write_tree(listing).map(Some)
    }

    fn write_tree(&self, listing: Vec<u8>) -> Result<Oid, GitError> {
        let doing = "write a tree with the tests of the base";
        let said = self.write_call(doing).args(["mktree", "-z"]).input(listing).output()?;
        Oid::from_line(&said).ok_or_else(|| GitError::unexpected_output(doing, "not an object id"))
    }
}

//! What a person, or another tool, changed in a folder since we last wrote: news for the engine.
//!
//! We know what we wrote by its digest. Whatever a folder holds that is not ours is news: a field that says something
//! else, a paper that was edited, added or taken away. Stamps alone (`updated`, `revision`) are none.

use std::collections::{BTreeMap, BTreeSet};

use landfall_model::Digest;
use serde::{Deserialize, Serialize};

use super::folder::{ModuleFolderSnapshot, is_copy};
use super::metadata::{Metadata, MetadataFormat};
use super::problem::UnreadableMetadata;
use super::write::{ModuleWrite, WriteReport};

/// What we wrote into a folder. Kept by the engine, told before the first write and after the last: whoever is killed in
/// between does not take our own writes for a person's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WriteLog {
    /// The version of this record.
    #[serde(default)]
    pub version: u32,
    /// For each path the digests that are ours; an empty text stands for no file.
    pub files: BTreeMap<String, BTreeSet<String>>,
    /// The metadata as we last wrote or accepted it.
    #[serde(default)]
    pub metadata: Option<String>,
}

const GONE: &str = "";

impl WriteLog {
    /// Everything as it is seen now: it was looked at, and what it says was taken over.
    #[must_use]
    pub fn from_snapshot(seen: &ModuleFolderSnapshot) -> Self {
        let own = |digest: &Digest| BTreeSet::from([digest.as_str().to_owned()]);
        Self {
            version: 1,
            files: seen.files.iter().map(|(path, file)| (path.clone(), own(&file.digest))).collect(),
            metadata: seen.file_text(seen.form.file_name()),
        }
    }

    /// What will be ours, too, once these writes come through.
    #[must_use]
    pub fn with_planned(mut self, writes: &[ModuleWrite]) -> Self {
        self.version = 1;
        for write in writes {
            self.add_own_state(write.path(), write.digest().as_str());
            if let ModuleWrite::Move { from, .. } = write {
                self.add_own_state(from, GONE);
            }
        }
        self
    }

    /// What is ours after they came through; `form` says which file is the metadata.
    #[must_use]
    pub fn with_applied(
        mut self,
        form: MetadataFormat,
        writes: &[ModuleWrite],
        applied: &WriteReport,
    ) -> Self {
        for write in writes.iter().filter(|write| applied.written.contains_key(write.path())) {
            self.files.insert(write.path().to_owned(), BTreeSet::from([write.digest().as_str().to_owned()]));
            if let ModuleWrite::Move { from, .. } = write {
                self.files.insert(from.clone(), BTreeSet::from([GONE.to_owned()]));
            }
            if write.path() == form.file_name() {
                self.metadata = write.text().map(str::to_owned);
            }
        }
        self
    }

    fn add_own_state(&mut self, path: &str, state: &str) {
        let states = self.files.entry(path.to_owned()).or_insert_with(|| BTreeSet::from([GONE.to_owned()]));
        states.insert(state.to_owned());
    }

    fn is_ours(&self, path: &str, state: &str) -> bool {
        self.files.get(path).map_or(state == GONE, |states| states.contains(state))
    }
}

/// Something somebody changed by hand.
#[derive(Debug, Clone, PartialEq)]
pub enum ModuleChange {
    /// A field of the metadata says something else.
    Field {
        /// Which.
        name: &'static str,
        /// What it said.
        from: String,
        /// What it says.
        to: String,
    },
    /// The metadata cannot be used any more.
    Broken(UnreadableMetadata),
    /// The metadata is gone.
    NoMetadata,
    /// A paper is new.
    Added(String),
    /// A paper has other words.
    Edited(String),
    /// A paper is gone.
    Removed(String),
}

/// What was changed since `written`, fields first.
#[must_use]
pub fn find_changes(written: &WriteLog, now: &ModuleFolderSnapshot) -> Vec<ModuleChange> {
    let mut changes = Vec::new();
    let index = now.form.file_name();
    let state = |path: &str| now.files.get(path).map_or(GONE, |file| file.digest.as_str());
    if !written.is_ours(index, state(index)) {
        match &now.metadata {
            None => changes.push(ModuleChange::NoMetadata),
            Some(Err(unread)) => changes.push(ModuleChange::Broken(unread.clone())),
            Some(Ok(metadata)) => {
                let before = written.metadata.as_deref().and_then(|text| Metadata::read(now.form, text).ok());
                let before = before.map_or_else(Vec::new, |before| before.described_fields());
                for (name, to) in metadata.described_fields() {
                    let from = before.iter().find(|(it, _)| *it == name).map(|(_, text)| text.clone());
                    let from = from.unwrap_or_default();
                    if from != to && !(from.is_empty() && matches!(to.as_str(), "null" | "[]" | "0")) {
                        changes.push(ModuleChange::Field { name, from, to });
                    }
                }
            }
        }
    }
    let paths: BTreeSet<&String> = written.files.keys().chain(now.files.keys()).collect();
    for path in paths.into_iter().filter(|path| *path != index && !is_copy(path)) {
        let state = state(path);
        if written.is_ours(path, state) {
            continue;
        }
        let had = written.files.get(path).is_some_and(|states| states.iter().any(|it| it != GONE));
        changes.push(match (had, state) {
            (_, GONE) => ModuleChange::Removed(path.clone()),
            (true, _) => ModuleChange::Edited(path.clone()),
            (false, _) => ModuleChange::Added(path.clone()),
        });
    }
    changes
}

//! Which files work touches, as people write it: a path, a folder or a pattern. And whether two of them can meet.
//!
//! It is a guess that orders work, never a rule about what may be changed: git finds the real conflicts.

use std::collections::{BTreeMap, BTreeSet};

use crate::TaskId;
pub use landfall_facts::touch::PathPattern;

/// The files of work that is under way, found by where they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ActiveFileIndex {
    /// By the stem of each.
    files: BTreeMap<String, BTreeSet<(TaskId, PathPattern)>>,
    tasks: BTreeMap<TaskId, Vec<PathPattern>>,
}

impl ActiveFileIndex {
    /// Notes what a task touches now, instead of what it did.
    pub(crate) fn set_touches<'a>(
        &mut self,
        id: TaskId,
        touches: impl Iterator<Item = &'a PathPattern> + Clone,
    ) {
        if self.tasks.get(&id).map_or(&[][..], Vec::as_slice).iter().eq(touches.clone()) {
            return;
        }
        for touch in self.tasks.remove(&id).into_iter().flatten() {
            let stem = touch.literal_prefix();
            if let Some(here) = self.files.get_mut(&stem) {
                here.remove(&(id, touch));
                if here.is_empty() {
                    self.files.remove(&stem);
                }
            }
        }
        let touches: Vec<PathPattern> = touches.cloned().collect();
        for touch in &touches {
            self.files.entry(touch.literal_prefix()).or_default().insert((id, touch.clone()));
        }
        if !touches.is_empty() {
            self.tasks.insert(id, touches);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Somebody who touches what these touch, and where.
    pub(crate) fn find_overlap<'a>(
        &self,
        mut touches: impl Iterator<Item = &'a PathPattern>,
    ) -> Option<(TaskId, String)> {
        if self.is_empty() {
            return None;
        }
        touches.find_map(|touch| self.find_overlap_with(touch))
    }

    fn find_overlap_with(&self, touch: &PathPattern) -> Option<(TaskId, String)> {
        let stem = touch.literal_prefix();
        let named = |(id, other): &(TaskId, PathPattern)| {
            // The narrower of the two says more.
            let narrow = if other.is_wide() { touch } else { other };
            touch.overlaps_with(other).then(|| (*id, narrow.as_str().to_owned()))
        };
        let ends = stem.match_indices('/').map(|(at, _)| at + 1);
        let above = std::iter::once(0).chain(ends).filter_map(|end| self.files.get(&stem[..end]));
        let below = self
            .files
            .range::<str, _>((std::ops::Bound::Excluded(stem.as_str()), std::ops::Bound::Unbounded))
            .take_while(|(other, _)| other.starts_with(&stem))
            .map(|(_, here)| here);
        above.chain(below).flatten().take(SCAN_MAX).find_map(named)
    }
}

/// How many files of others are looked at for one path: a pattern over a large tree may miss an overlap beyond them. Then
/// both run at once, and landing finds out whether they really conflict.
const SCAN_MAX: usize = 256;

/// The files that were seen, as few as are kept: beyond the bound whole folders stand for what is in them.
pub(crate) fn condense_files(files: Vec<PathPattern>) -> Vec<PathPattern> {
    let mut files: BTreeSet<PathPattern> = files.into_iter().collect();
    while files.len() > OBSERVED_MAX {
        let wider = |file: &PathPattern| file.parent_folder().unwrap_or_else(|| file.clone());
        let folders: BTreeSet<PathPattern> = files.iter().map(wider).collect();
        if folders == files {
            break; // all of them lie at the root
        }
        files = folders;
    }
    files.into_iter().take(OBSERVED_MAX).collect()
}

const OBSERVED_MAX: usize = 500; // files of one change; few changes that people read have more

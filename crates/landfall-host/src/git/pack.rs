//! Packing the store: single objects become one file. Nothing is pruned: only what stands in a pack goes.

use super::run::{GitError, SLOW};
use super::store::Store;

/// Objects of the store that are a file each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LooseObjectStats {
    /// How many there are.
    pub count: u64,
    /// How much room they take.
    pub bytes: u64,
}

impl Store {
    /// How many objects are a file each, and how much room they take.
    pub fn count_loose_objects(&self) -> Result<LooseObjectStats, GitError> {
        let text = self.prepare_call("count loose objects").args(["count-objects", "-v"]).output_text()?;
        let figure = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
        };
        const KIB: u64 = 1024; // the unit that git counts in here
        Ok(LooseObjectStats { count: figure("count"), bytes: figure("size") * KIB })
    }

    /// Packs the objects that some ref reaches and that are a file each. Workspaces that borrow them find them in the
    /// pack; others may read and write meanwhile.
    pub fn pack_loose_objects(&self) -> Result<(), GitError> {
        self.write_call("pack the store").args(["repack", "-d", "-q"]).timeout(SLOW).output()?;
        Ok(())
    }
}

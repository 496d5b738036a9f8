//! Batches: several heads merged onto the base one after the other, without a checkout.
//!
//! Each prefix of the heads that fit gets one merge commit of its own, `base` first, so that a queue which
//! halves a red batch finds every smaller one made already. Nothing here is kept under a ref.

use super::merge::{ConflictedPath, MergeResult};
use super::names::Oid;
use super::run::{GitError, Signature};
use super::store::Store;

/// What came of merging several heads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchMerge {
    /// One for each head that fits, in order: the first holds one head, the last holds all of them.
    pub prefixes: Vec<MergedPrefix>,
    /// The heads that are not in it, by their place in what was given, and why.
    pub left_out: Vec<(usize, BatchMergeExclusion)>,
}

/// The base with the first few of the heads that fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedPrefix {
    /// The merge commit: its parents are the base and then the heads.
    pub commit: Oid,
    /// Its tree.
    pub tree: Oid,
    /// The heads in it, by their place in what was given.
    pub heads: Vec<usize>,
}

/// Why a head is not in a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchMergeExclusion {
    /// It does not fit to the base and the heads before it.
    Conflict(Vec<ConflictedPath>),
    /// With the base and the heads before it, it changes nothing more.
    NothingChanged,
}

impl Store {
    /// Merges heads onto `base` one after the other. What does not fit is left out and the rest goes on. `message`
    /// is asked for the text of the commit that holds so many heads. The same call gives the same commits.
    pub fn merge_batch(
        &self,
        base: &Oid,
        heads: &[Oid],
        message: &dyn Fn(usize) -> String,
        by: &Signature,
    ) -> Result<BatchMerge, GitError> {
        let mut batch = BatchMerge { prefixes: Vec::new(), left_out: Vec::new() };
        // The commit so far reaches the base and the heads in it, and nothing else: whatever is merged into it
        // meets the same common ancestors as in a chain of plain merges.
        let mut so_far = (base.clone(), self.tree_of(base)?);
        let mut within: Vec<usize> = Vec::new();
        for (place, head) in heads.iter().enumerate() {
            let tree = match self.merge_commits(&so_far.0, head)? {
                MergeResult::Clean { tree } => tree,
                MergeResult::Conflict { paths, .. } => {
                    batch.left_out.push((place, BatchMergeExclusion::Conflict(paths)));
                    continue;
                }
            };
            if tree == so_far.1 {
                batch.left_out.push((place, BatchMergeExclusion::NothingChanged));
                continue;
            }
            within.push(place);
            let parents = within.iter().map(|place| &heads[*place]);
            let parents: Vec<Oid> = std::iter::once(base).chain(parents).cloned().collect();
            let commit = self.create_commit(&tree, &parents, &message(within.len()), by, by)?;
            batch.prefixes.push(MergedPrefix {
                commit: commit.clone(),
                tree: tree.clone(),
                heads: within.clone(),
            });
            so_far = (commit, tree);
        }
        Ok(batch)
    }
}

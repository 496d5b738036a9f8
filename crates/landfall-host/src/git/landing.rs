//! The independent check after a landing: is what landed what was tested, and nothing else?
//!
//! Merge queues have shipped wrong trees with every check green, because the tree was built on a wrong
//! base. So this asks the store again, from the commits alone, and trusts nothing that was computed before.

use std::collections::HashSet;

use thiserror::Error;

use super::names::Oid;
use super::run::{GitError, SLOW};
use super::store::{Merge, Store};

/// How many stray paths are named.
const STRAY_NAMED_MAX: usize = 20;

/// What is said to have happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandingClaim {
    /// The commit that the base moved to.
    pub landed: Oid,
    /// Where the base stood before.
    pub base_before: Oid,
    /// The work that was merged.
    pub candidate_head: Oid,
    /// The tree that passed verification.
    pub tree: Oid,
}

/// A landing that was recomputed and agrees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandingProof {
    /// The commit.
    pub landed: Oid,
    /// Its tree, equal to the tested and to the recomputed one.
    pub tree: Oid,
    /// How many paths the landing changed.
    pub changed_paths_count: usize,
}

/// In which way a landing is not what was claimed.
#[derive(Debug, Error)]
pub enum LandingMismatch {
    /// The landed tree was not the tested one.
    #[error("tree {landed} landed, but {tested} was tested")]
    Tree {
        /// The tree that landed.
        landed: Oid,
        /// The tree that was tested.
        tested: Oid,
    },
    /// The landed commit has not two parents.
    #[error("the landed commit has {count} parents, not two")]
    ParentCount {
        /// How many it has.
        count: usize,
    },
    /// The first parent is not the base.
    #[error("the landed commit stands on {actual}, not on the base {expected}")]
    FirstParent {
        /// The first parent.
        actual: Oid,
        /// The base before the landing.
        expected: Oid,
    },
    /// The second parent is not the candidate.
    #[error("the landed commit merges {actual}, not the candidate {expected}")]
    SecondParent {
        /// The second parent.
        actual: Oid,
        /// The candidate.
        expected: Oid,
    },
    /// A fresh merge of the same two commits gives another tree.
    #[error("merging again gives tree {recomputed}, but {landed} landed")]
    Recomputed {
        /// The tree of the fresh merge.
        recomputed: Oid,
        /// The tree that landed.
        landed: Oid,
    },
    /// A fresh merge of the same two commits conflicts.
    #[error("merging again gives a conflict")]
    Conflicts,
    /// The landing changed paths that the candidate did not touch.
    #[error("{count} paths changed that the candidate did not touch")]
    StrayPaths {
        /// How many.
        count: usize,
        /// The first few.
        paths: Vec<Vec<u8>>,
    },
    /// The check itself failed: nothing is known.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Store {
    /// Checks a landing from the commits alone. One process; a few more if the base had
    /// moved since the candidate was made.
    pub fn check_landing(&self, claim: &LandingClaim) -> Result<LandingProof, LandingMismatch> {
        let landed = self.commit_of(&claim.landed)?;
        if landed.tree != claim.tree {
            return Err(LandingMismatch::Tree { landed: landed.tree, tested: claim.tree.clone() });
        }
        let [first, second] = landed.parents.as_slice() else {
            return Err(LandingMismatch::ParentCount { count: landed.parents.len() });
        };
        if *first != claim.base_before {
            return Err(LandingMismatch::FirstParent {
                actual: first.clone(),
                expected: claim.base_before.clone(),
            });
        }
        if *second != claim.candidate_head {
            return Err(LandingMismatch::SecondParent {
                actual: second.clone(),
                expected: claim.candidate_head.clone(),
            });
        }
        match self.merge(first, second)? {
            Merge::Clean { tree } if tree == landed.tree => {}
            Merge::Clean { tree } => {
                return Err(LandingMismatch::Recomputed { recomputed: tree, landed: landed.tree });
            }
            Merge::Conflict { .. } => return Err(LandingMismatch::Conflicts),
        }
        let parted_at = match self.straight_line(first, second)? {
            Some(_) => vec![first.clone()],
            None => self.merge_bases(first, second)?,
        };
        let candidate_tree = self.tree_of(second)?;
        let mut touched: HashSet<Vec<u8>> = HashSet::new();
        for base in &parted_at {
            let differences = self.differences(&self.tree_of(base)?, &candidate_tree)?;
            touched.extend(differences.into_iter().map(|difference| difference.path));
        }
        let changed = self.differences(&self.tree_of(first)?, &landed.tree)?;
        if parted_at.is_empty() {
            // The work has a history of its own, so it touched all that it holds.
            let other = self.differences(&candidate_tree, &landed.tree)?;
            let other: HashSet<&[u8]> = other.iter().map(|difference| difference.path.as_slice()).collect();
            let own = changed.iter().filter(|difference| !other.contains(difference.path.as_slice()));
            touched.extend(own.map(|difference| difference.path.clone()));
        }
        if changed.iter().any(|difference| !touched.contains(&difference.path)) {
            // A file that the candidate changed and the base has renamed since: the change is at the new name.
            for base in &parted_at {
                for rename in self.renames(base, first)? {
                    if touched.contains(&rename.old) {
                        touched.insert(rename.new);
                    }
                }
            }
        }
        let stray: Vec<Vec<u8>> = changed
            .iter()
            .filter(|difference| !touched.contains(&difference.path))
            .map(|difference| difference.path.clone())
            .collect();
        if !stray.is_empty() {
            let count = stray.len();
            return Err(LandingMismatch::StrayPaths {
                count,
                paths: stray.into_iter().take(STRAY_NAMED_MAX).collect(),
            });
        }
        Ok(LandingProof {
            landed: claim.landed.clone(),
            tree: landed.tree,
            changed_paths_count: changed.len(),
        })
    }
    fn renames(&self, a: &Oid, b: &Oid) -> Result<Vec<Rename>, GitError> {
        let bytes = self
            .call(format!("look for renames between {a} and {b}"))
            .args([
                "diff-tree",
                "-r",
                "-z",
                "--name-status",
                "--find-renames",
                "--diff-filter=R",
                "--no-ext-diff",
            ])
            .args(["--end-of-options", a.as_str(), b.as_str()])
            .timeout(SLOW)
            .output()?;
        let fields: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
        Ok(fields
            .chunks_exact(3)
            .map(|triple| Rename { old: triple[1].to_vec(), new: triple[2].to_vec() })
            .collect())
    }
}

struct Rename {
    old: Vec<u8>,
    new: Vec<u8>,
}

//! The independent check after a landing: is what landed what was tested, and nothing else?
//!
//! Merge queues have shipped wrong trees with every check green, because the tree was built on a wrong
//! base. So this asks the store again, from the commits alone, and trusts nothing that was computed before.

use std::collections::{BTreeSet, HashSet};

use thiserror::Error;

use super::merge::MergeResult;
use super::names::Oid;
use super::run::{GitError, SLOW, Signature};
use super::store::Store;

/// How many stray paths are named.
const STRAY_NAMED_MAX: usize = 20;

/// What is said to have happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandingClaim {
    /// The commit that the base moved to.
    pub landed: Oid,
    /// Where the base stood before.
    pub base_before: Oid,
    /// The work that was merged, in its order: one head, or those of a batch.
    pub candidate_heads: Vec<Oid>,
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
    /// The landed commit has more or fewer parents than the base and the heads.
    #[error("the landed commit has {count} parents, not {expected}")]
    ParentCount {
        /// How many it has.
        count: usize,
        /// How many it must have.
        expected: usize,
    },
    /// The first parent is not the base.
    #[error("the landed commit stands on {actual}, not on the base {expected}")]
    FirstParent {
        /// The first parent.
        actual: Oid,
        /// The base before the landing.
        expected: Oid,
    },
    /// A parent after the first is not the head that stands in its place.
    #[error("the landed commit merges {actual}, not the candidate {expected}")]
    Head {
        /// Which of the heads, from 0.
        place: usize,
        /// The parent.
        actual: Oid,
        /// The head.
        expected: Oid,
    },
    /// A fresh merge of the same commits gives another tree.
    #[error("merging again gives tree {recomputed}, but {landed} landed")]
    Recomputed {
        /// The tree of the fresh merge.
        recomputed: Oid,
        /// The tree that landed.
        landed: Oid,
    },
    /// A fresh merge of the same commits conflicts.
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
    /// Checks a landing from the commits alone. One process for each head; a few more if the base had
    /// moved since a head was made.
    pub fn check_landing(&self, claim: &LandingClaim) -> Result<LandingProof, LandingMismatch> {
        let landed = self.commit_of(&claim.landed)?;
        if landed.tree != claim.tree {
            return Err(LandingMismatch::Tree { landed: landed.tree, tested: claim.tree.clone() });
        }
        let expected = 1 + claim.candidate_heads.len().max(1); // a landing without work is none
        let (first, heads) = match landed.parents.split_first() {
            Some((first, heads)) if landed.parents.len() == expected => (first, heads),
            _ => return Err(LandingMismatch::ParentCount { count: landed.parents.len(), expected }),
        };
        if *first != claim.base_before {
            return Err(LandingMismatch::FirstParent {
                actual: first.clone(),
                expected: claim.base_before.clone(),
            });
        }
        for (place, (actual, expected)) in heads.iter().zip(&claim.candidate_heads).enumerate() {
            if actual != expected {
                let (actual, expected) = (actual.clone(), expected.clone());
                return Err(LandingMismatch::Head { place, actual, expected });
            }
        }
        let mut trees = Vec::with_capacity(heads.len());
        let mut so_far = first.clone();
        for (place, head) in heads.iter().enumerate() {
            match self.merge_commits(&so_far, head)? {
                MergeResult::Clean { tree } => trees.push((so_far.clone(), tree)),
                MergeResult::Conflict { .. } => return Err(LandingMismatch::Conflicts),
            }
            if place + 1 < heads.len() {
                so_far = self.commit_step(&landed.parents[..place + 2], &trees[place].1, landed.at_s)?;
            }
        }
        let recomputed = &trees.last().expect("there is a head").1;
        if *recomputed != landed.tree {
            return Err(LandingMismatch::Recomputed { recomputed: recomputed.clone(), landed: landed.tree });
        }
        let mut stray: BTreeSet<Vec<u8>> = BTreeSet::new();
        for ((ours, merged), head) in trees.iter().zip(heads) {
            stray.extend(self.stray_paths(ours, head, merged)?);
        }
        if !stray.is_empty() {
            let count = stray.len();
            return Err(LandingMismatch::StrayPaths {
                count,
                paths: stray.into_iter().take(STRAY_NAMED_MAX).collect(),
            });
        }
        let changed = self.diff_trees(&self.tree_of(first)?, &landed.tree)?;
        Ok(LandingProof {
            landed: claim.landed.clone(),
            tree: landed.tree,
            changed_paths_count: changed.len(),
        })
    }

    /// The commit that the next head is merged into: what is merged so far. Its time is that of the landed commit,
    /// because git walks history by time: in a tangled one it must come by the same way to the same answer.
    fn commit_step(&self, parents: &[Oid], tree: &Oid, at_s: i64) -> Result<Oid, GitError> {
        let by = Signature::for_engine(at_s.saturating_mul(1000));
        self.create_commit(tree, parents, "a step of a landing check\n", &by, &by)
    }

    /// Paths that merging `head` into `ours` changed although `head` did not touch them.
    fn stray_paths(&self, ours: &Oid, head: &Oid, merged: &Oid) -> Result<Vec<Vec<u8>>, GitError> {
        let parted_at = match self.count_linear_commits(ours, head)? {
            Some(_) => vec![ours.clone()],
            None => self.merge_bases(ours, head)?,
        };
        let head_tree = self.tree_of(head)?;
        let mut touched: HashSet<Vec<u8>> = HashSet::new();
        for base in &parted_at {
            let differences = self.diff_trees(&self.tree_of(base)?, &head_tree)?;
            touched.extend(differences.into_iter().map(|difference| difference.path));
        }
        let mut changed: Vec<Vec<u8>> = self
            .diff_trees(&self.tree_of(ours)?, merged)?
            .into_iter()
            .map(|difference| difference.path)
            .collect();
        if parted_at.is_empty() {
            // The work has a history of its own, so it touched all that it holds.
            let other = self.diff_trees(&head_tree, merged)?;
            let other: HashSet<&[u8]> = other.iter().map(|difference| difference.path.as_slice()).collect();
            touched.extend(changed.iter().filter(|path| !other.contains(path.as_slice())).cloned());
        }
        changed.retain(|path| !touched.contains(path));
        if !changed.is_empty() {
            // A file that the head changed and the other side has renamed since: the change is at the new name.
            for base in &parted_at {
                for rename in self.find_renames(base, ours)? {
                    if touched.contains(&rename.old) {
                        touched.insert(rename.new);
                    }
                }
            }
            changed.retain(|path| !touched.contains(path));
        }
        Ok(changed)
    }

    fn find_renames(&self, a: &Oid, b: &Oid) -> Result<Vec<Rename>, GitError> {
        let bytes = self
            .prepare_call(format!("look for renames between {a} and {b}"))
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

//! Names of commits and trees, as git has them and as the model has them.

use landfall_host::git::Oid;
use landfall_model::{Commit, Tree};

/// A commit of the model as git's own.
pub(crate) fn commit_to_oid(commit: &Commit) -> Oid {
    commit.as_str().parse().expect("commits in the journal came from git")
}

/// A tree of the model as git's own.
pub(crate) fn tree_oid(tree: &Tree) -> Oid {
    tree.as_str().parse().expect("trees in the journal came from git")
}

/// git's own name as the model's.
pub(crate) fn oid_to_commit(oid: &Oid) -> Commit {
    Commit::new(oid.as_str())
}

//! Putting commits on another base without a checkout: each is merged as the change it makes to its own parent.

use landfall_host::git::{CommitLogEntry, ConflictedPath, LogRange, MergeResult, Oid, Signature, Store};

const COMMITS_MAX: u32 = 100; // more is for an agent, or for a merge
const PATHS_NAMED_MAX: usize = 5;

/// The work on `base` as it is now. Changes that are there already are left out.
///
/// # Errors
/// Why it cannot be done; nothing is changed then.
pub(super) fn rebase_onto(store: &Store, base: &Oid, head: &Oid, by: &Signature) -> Result<Oid, String> {
    let git = |error: landfall_host::git::GitError| error.full_message();
    let range = LogRange { to: head.clone(), from: Some(base.clone()), first_parent: false };
    let mut commits = store.read_log(&range, COMMITS_MAX + 1).map_err(git)?;
    if commits.len() > COMMITS_MAX as usize {
        return Err(format!("the work has more than {COMMITS_MAX} commits"));
    }
    if commits.iter().any(|commit| commit.parents.len() != 1) {
        return Err("the work has merges in it; `merge-base` keeps them".to_owned());
    }
    commits.reverse(); // the oldest first: without merges they are one line
    let mut tip = base.clone();
    for commit in &commits {
        let tree = match cherry_pick(store, &tip, commit, by).map_err(git)? {
            MergeResult::Clean { tree } => tree,
            MergeResult::Conflict { paths, .. } => return Err(describe_disputed_paths(&paths)),
        };
        if tree != store.tree_of(&tip).map_err(git)? {
            tip = store.create_commit(&tree, &[tip], &commit.message, &commit.author, by).map_err(git)?;
        }
    }
    Ok(tip)
}

/// What a commit changes, on top of `tip`. The two sides are given a common parent for the occasion: what the commit
/// was made from. Nothing keeps these three, so they go with the next clean-up.
fn cherry_pick(
    store: &Store,
    tip: &Oid,
    commit: &CommitLogEntry,
    by: &Signature,
) -> Result<MergeResult, landfall_host::git::GitError> {
    let parent_tree = store.tree_of(&commit.parents[0])?;
    let from = store.create_commit(&parent_tree, &[], "from", by, by)?;
    let ours = store.create_commit(&store.tree_of(tip)?, std::slice::from_ref(&from), "ours", by, by)?;
    let theirs = store.create_commit(&commit.tree, std::slice::from_ref(&from), "theirs", by, by)?;
    store.merge_commits(&ours, &theirs)
}

/// That paths are in dispute, by name.
pub(super) fn describe_disputed_paths(paths: &[ConflictedPath]) -> String {
    let named: Vec<String> =
        paths.iter().take(PATHS_NAMED_MAX).map(|it| String::from_utf8_lossy(&it.path).into_owned()).collect();
    let more = paths.len().saturating_sub(PATHS_NAMED_MAX);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("the base has changed the same lines in {}{more}", named.join(", "))
}

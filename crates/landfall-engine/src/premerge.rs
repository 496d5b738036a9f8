//! What is done about work before it is merged with the base, without asking anybody.

use landfall_host::git::{ConflictKind, ConflictedPath, GitError, MergeResult, Oid, RefName, Signature};
use landfall_model::conflict::{ConflictingFile, FileConflictKind};

use crate::host_context::HostContext;

/// What can be done about work before it is merged with the base, without asking anybody.
pub(crate) enum PremergeResult {
    /// Nothing: it is merged as it is, or conflicts.
    AsItIs,
    /// It is this commit now.
    Anew(Oid),
    /// It stands on what a person has taken off their branch, and does not fit without that.
    Conflict(Vec<ConflictedPath>),
}

/// Moves work over that stands on landings which are gone, or brings the base in, where they conflict in a way that needs
/// nobody.
pub(crate) fn resolve_conflicts(
    site: &HostContext,
    base: &Oid,
    head: &Oid,
    by: &Signature,
) -> Result<PremergeResult, GitError> {
    if let Some(from) = find_rewritten_base(site, base, head)? {
        return move_work_over(site, &from, base, head, by);
    }
    if matches!(site.store.merge_commits(base, head)?, MergeResult::Clean { .. }) {
        return Ok(PremergeResult::AsItIs);
    }
    let Some(tree) = site.store.merge_simple(base, head)? else { return Ok(PremergeResult::AsItIs) };
    let message = "Bring the base in: the changes lie side by side\n";
    site.store.create_commit(&tree, &[head.clone(), base.clone()], message, by, by).map(PremergeResult::Anew)
}

/// Where work left a base that a person has rewritten since, if merging it would bring back what they took away.
fn find_rewritten_base(site: &HostContext, base: &Oid, head: &Oid) -> Result<Option<Oid>, GitError> {
    let below = RefName::new("refs/landfall/rewritten").expect("made of our own words");
    let met = site.store.merge_bases(base, head)?;
    for (_, gone) in site.store.list_refs(&below)? {
        // Whoever has brought the new branch in has said what they want of the old one: to move their work over would meet
        // the same conflict for ever.
        let mut old = true;
        for commit in &met {
            old &= site.store.is_ancestor(commit, &gone)?;
        }
        if !old {
            continue;
        }
        for from in site.store.merge_bases(&gone, head)? {
            if !site.store.is_ancestor(&from, base)? {
                return Ok(Some(from));
            }
        }
    }
    Ok(None)
}

/// What work changed since `from`, on top of the base and of nothing else.
fn move_work_over(
    site: &HostContext,
    from: &Oid,
    base: &Oid,
    head: &Oid,
    by: &Signature,
) -> Result<PremergeResult, GitError> {
    let store = &site.store;
    let step =
        |tree: Oid, parents: &[Oid]| store.create_commit(&tree, parents, "A step of moving work\n", by, by);
    // A merge whose common ancestor is `from`, whatever the histories say.
    let root = step(store.tree_of(from)?, &[])?;
    let ours = step(store.tree_of(base)?, std::slice::from_ref(&root))?;
    let theirs = step(store.tree_of(head)?, std::slice::from_ref(&root))?;
    if ours == theirs {
        return Ok(PremergeResult::Anew(base.clone())); // the base holds all of it: nothing changes
    }
    match store.merge_commits(&ours, &theirs)? {
        MergeResult::Clean { tree } => {
            let message = format!("The work of {}, moved over to a rewritten branch\n", head.short());
            store.create_commit(&tree, std::slice::from_ref(base), &message, by, by).map(PremergeResult::Anew)
        }
        MergeResult::Conflict { paths, .. } => Ok(PremergeResult::Conflict(paths)),
    }
}

/// What the model is told of conflicts.
pub(crate) fn to_clashes(paths: &[ConflictedPath]) -> Vec<ConflictingFile> {
    let kind = |kind: ConflictKind| match kind {
        ConflictKind::Content => FileConflictKind::Content,
        ConflictKind::AddAdd => FileConflictKind::BothAdded,
        ConflictKind::ModifyDelete { .. } => FileConflictKind::Deleted,
        ConflictKind::Rename => FileConflictKind::Renamed,
        ConflictKind::Binary => FileConflictKind::Binary,
        ConflictKind::Mode | ConflictKind::Symlink | ConflictKind::Submodule | ConflictKind::FileFolder => {
            FileConflictKind::Kind
        }
    };
    let clash = |path: &ConflictedPath| ConflictingFile {
        path: String::from_utf8_lossy(&path.path).into_owned(),
        kind: kind(path.kind),
        lines: path.lines,
    };
    paths.iter().map(clash).collect()
}

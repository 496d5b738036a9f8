//! Moving the base: by compare-and-swap to exactly the commit that was verified, and looking again afterwards.

use std::collections::{HashMap, HashSet};
use std::sync::MutexGuard;

use landfall_host::crash;
use landfall_host::git::{
    BranchNews, CommitLogEntry, CompareAndSwap, GitError, LandingClaim, LandingMismatch, LogRange,
    MergeResult, Oid, RefName, Signature, Store,
};
use landfall_model::checkpoint::{Checkpoint, CheckpointEvent};
use landfall_model::queue::{HoldReason, QueueNews};
use landfall_model::{BaseMover, Commit, EngineEvent, LandingRecord, Task, TaskId};

use crate::ask::RewrittenBaseChoice;
use crate::base_tracker::RemoteSnapshot;
use crate::engine_context::EngineContext;
use crate::git_refs::task_ref;
use crate::host_context::HostContext;
use crate::ids;
use crate::mail::EngineMessage;
use crate::settings::PublishTarget;

/// The tip of the base, after taking in what a person did to their branch meanwhile. Their commits win: if they only
/// went ahead, so does the base. If they rewrote or deleted it, the landing queue is held until they say what is meant. A
/// base that is where nobody we know put it is refused: agents know where the store is.
pub(crate) fn sync_base(site: &EngineContext) -> Result<Oid, GitError> {
    observe_base(site).map(|look| look.ours)
}

/// What was seen of the base and of the person's branch.
pub(crate) struct BaseObservation {
    /// The base.
    pub ours: Oid,
    /// The person's branch; none if it is gone.
    pub theirs: Option<Oid>,
    /// The branch of the remote that is pushed to, where it has commits that do not follow from the base.
    pub apart: Option<Oid>,
    /// What the person must say before anything lands or is published.
    pub trouble: Option<String>,
}

/// Looks at both, and takes in what a person did.
pub(crate) fn observe_base(site: &EngineContext) -> Result<BaseObservation, GitError> {
    let _one = site.base.lock_comparison();
    let branch = site.branch.as_str();
    let Some(ours) = site.store.read_base()? else {
        let theirs = site.store.import_branch(&site.repo, &site.branch)?;
        site.base.trust_base(&ids::oid_to_commit(&theirs));
        site.store.set_base(&theirs, None)?;
        note_user_tip(site, &theirs)?;
        tell_moved(site, None, &theirs, BaseMover::Person);
        return Ok(BaseObservation {
            ours: theirs.clone(),
            theirs: Some(theirs),
            apart: None,
            trouble: None,
        });
    };
    let news = match &last_user_tip(site)? {
        Some(known) => site.store.branch_news(&site.repo, &site.branch, known)?,
        None => BranchNews::Same, // nothing is known yet that it could have left
    };
    if matches!(news, BranchNews::Deleted | BranchNews::Unborn) {
        let reason = format!(
            "your branch `{branch}` is gone; when it is back, `landfall queue resume` continues (the landed work is at {})",
            ours.short()
        );
        site.tell_queue(QueueNews::Hold { why: HoldReason::Deleted, reason: reason.clone() });
        return Ok(BaseObservation { ours, theirs: None, apart: None, trouble: Some(reason) });
    }
    let theirs = site.store.import_branch(&site.repo, &site.branch)?;
    if !site.base.is_trusted(&ids::oid_to_commit(&ours)) && !is_explained_base(site, &ours, &theirs)? {
        let what = format!("it is at {ours}, where neither a landing nor you have put it");
        // Nothing is built on it. The way out is the person's own branch, which nobody else writes.
        let reason =
            format!("the base is at {}, where neither a landing nor your branch `{branch}` is", ours.short());
        site.tell_queue(QueueNews::Hold { why: HoldReason::Rewritten, reason });
        return Err(GitError::unexpected_output("look at the base of the store", what));
    }
    if let BranchNews::Rewritten { old, .. } = news {
        let reason = format!(
            "your branch `{branch}` was rewritten: {} is no longer part of it, it is at {} now",
            old.short(),
            theirs.short()
        );
        site.tell_queue(QueueNews::Hold { why: HoldReason::Rewritten, reason: reason.clone() });
        return Ok(BaseObservation { ours, theirs: Some(theirs), apart: None, trouble: Some(reason) });
    }
    note_user_tip(site, &theirs)?;
    if ours == theirs || !site.store.is_ancestor(&ours, &theirs)? {
        return Ok(BaseObservation { ours, theirs: Some(theirs), apart: None, trouble: None });
    }
    let ours = advance_base(site, ours, &theirs)?;
    Ok(BaseObservation { ours, theirs: Some(theirs), apart: None, trouble: None })
}

/// How often the remote that is pushed to is asked what others did: it is somebody else's machine.
pub(crate) const LOOK_OUT_MS: u64 = 20_000;

const DEAF_MS: u64 = 300_000; // a remote that did not answer is left alone so much longer

/// Like [`look`], and looks at the branch that is pushed to as well, if it was not asked for so long. What others push there
/// is a person's as much as what is on the branch here: commits are taken in, and a branch that was rewritten or deleted
/// holds the landing queue.
pub(crate) fn observe_remote(site: &EngineContext, pace_ms: u64) -> Result<BaseObservation, GitError> {
    let mut near = observe_base(site)?;
    let PublishTarget::Push { remote, .. } = &site.settings.land.publish else {
        tell_restored(site, &near);
        return Ok(near);
    };
    if near.trouble.is_some() {
        return Ok(near);
    }
    let now = site.clock.mono_ms();
    // Whoever wants to land waits for the answer that another thread is asking for: it may be that nothing may land.
    let mut afar = site.base.lock_remote();
    let waited = |asked_ms: u64| now >= asked_ms.saturating_add(pace_ms);
    if !afar.asked_ms.is_none_or(waited) {
        near.trouble.clone_from(&afar.trouble);
        return Ok(near);
    }
    let news = query_remote_branch(site, remote, &near.ours);
    afar.asked_ms = Some(site.clock.mono_ms());
    let Ok(news) = news else {
        // No reason to stop: whoever pushes tells what is wrong with it. But landings do not wait for it again so soon.
        afar.asked_ms = Some(site.clock.mono_ms().saturating_add(DEAF_MS));
        return Ok(near);
    };
    let look = apply_remote_news(site, near, afar, (remote, news))?;
    tell_restored(site, &look);
    Ok(look)
}

/// A hold for a branch that was rewritten or deleted ends once the branch is where it was.
fn tell_restored(site: &HostContext, look: &BaseObservation) {
    if look.trouble.is_none() {
        site.tell_queue(QueueNews::BranchRestored);
    }
}

/// Like [`observe_remote`], for whoever must know how it is now: the remote is asked, and if it does not answer nothing is known.
pub(crate) fn observe_remote_now(site: &EngineContext) -> Result<BaseObservation, GitError> {
    let near = observe_base(site)?;
    let PublishTarget::Push { remote, .. } = &site.settings.land.publish else { return Ok(near) };
    if near.trouble.is_some() {
        return Ok(near);
    }
    let afar = site.base.lock_remote();
    let news = query_remote_branch(site, remote, &near.ours)?;
    apply_remote_news(site, near, afar, (remote, news))
}

/// What follows from what a remote's branch is like.
fn apply_remote_news(
    site: &EngineContext,
    near: BaseObservation,
    mut afar: MutexGuard<'_, RemoteSnapshot>,
    (remote, news): (&str, RemoteBranch),
) -> Result<BaseObservation, GitError> {
    afar.trouble = None;
    let tip = match news {
        RemoteBranch::At(tip) => tip,
        RemoteBranch::Empty => return Ok(near),
        RemoteBranch::Trouble { why, reason } => {
            site.tell_queue(QueueNews::Hold { why, reason: reason.clone() });
            afar.trouble = Some(reason.clone());
            return Ok(BaseObservation { trouble: Some(reason), ..near });
        }
    };
    drop(afar);
    site.store.note_remote(remote, &site.branch, &tip)?;
    if site.store.is_ancestor(&tip, &near.ours)? {
        return Ok(near);
    }
    if !site.store.is_ancestor(&near.ours, &tip)? {
        return Ok(BaseObservation { apart: Some(tip), ..near });
    }
    let ours = advance_base(site, near.ours, &tip)?;
    Ok(BaseObservation { ours, ..near })
}

/// What is to be made of a remote's branch.
enum RemoteBranch {
    /// It is there.
    At(Oid),
    /// There is none yet: pushing makes it.
    Empty,
    /// The person must say what is meant.
    Trouble { why: HoldReason, reason: String },
}

fn query_remote_branch(site: &HostContext, remote: &str, ours: &Oid) -> Result<RemoteBranch, GitError> {
    let branch = site.branch.as_str();
    let seen = site.store.remote_seen(remote, &site.branch)?;
    let from = seen.as_ref().unwrap_or(ours);
    let news = site.store.remote_news(&site.repo, remote, &site.branch, from)?;
    Ok(match (news, &seen) {
        (BranchNews::Same, _) => RemoteBranch::At(from.clone()),
        (BranchNews::Ahead { new, .. }, _) => RemoteBranch::At(new),
        (BranchNews::Rewritten { new, .. }, None) => RemoteBranch::At(new), // nothing is known that it could have left
        (BranchNews::Deleted | BranchNews::Unborn, None) => RemoteBranch::Empty,
        (BranchNews::Rewritten { old, new, .. }, Some(_)) => {
            let reason = format!(
                "the branch `{branch}` of `{remote}` was rewritten: {} is no longer part of it, it is at {} now",
                old.short(),
                new.short()
            );
            RemoteBranch::Trouble { why: HoldReason::Rewritten, reason }
        }
        (BranchNews::Deleted | BranchNews::Unborn, Some(seen)) => {
            let reason = format!(
                "the branch `{branch}` of `{remote}` is gone; when it is back, `landfall queue resume` continues (it was at {})",
                seen.short()
            );
            RemoteBranch::Trouble { why: HoldReason::Deleted, reason }
        }
    })
}

/// The base goes ahead to what a person has.
fn advance_base(site: &EngineContext, ours: Oid, theirs: &Oid) -> Result<Oid, GitError> {
    crash::pass_point("base.follow");
    site.base.trust_base(&ids::oid_to_commit(theirs));
    Ok(match site.store.set_base(theirs, Some(&ours))? {
        CompareAndSwap::Moved => {
            crash::pass_point("base.followed");
            tell_moved(site, Some(&ours), theirs, BaseMover::Person);
            theirs.clone()
        }
        CompareAndSwap::Lost { actual } => actual.unwrap_or(ours),
    })
}

/// The commits that brought the base to where it is, newest first: each that was put on it, and, where the forge or a rebuild
/// brought a line of landings in, those of that line.
pub(crate) fn list_landings(
    store: &Store,
    range: &LogRange,
    most: u32,
) -> Result<Vec<CommitLogEntry>, GitError> {
    let all = LogRange { first_parent: false, ..range.clone() };
    let entries = store.read_log(&all, most)?;
    let by: HashMap<&Oid, &CommitLogEntry> = entries.iter().map(|entry| (&entry.oid, entry)).collect();
    let (mut on, mut next) = (HashSet::new(), vec![&range.to]);
    while let Some(oid) = next.pop() {
        let Some(entry) = by.get(oid).copied().filter(|entry| on.insert(&entry.oid)) else { continue };
        let [first, rest @ ..] = entry.parents.as_slice() else { continue };
        next.push(first);
        let joins = |other: &&Oid| {
            let brought = by.get(*other).is_some_and(|other| other.tree == entry.tree);
            entry.subject.starts_with(TOGETHER) || brought && !entry.message.contains(TASK_TRAILER)
        };
        next.extend(rest.iter().filter(joins));
    }
    Ok(entries.iter().filter(|entry| on.contains(&entry.oid)).cloned().collect())
}

/// What a landing says of the task it is of.
const TASK_TRAILER: &str = "\nLandfall-Task: ";

/// How the message of a rebuild begins.
pub(crate) const TOGETHER: &str = "Bring landed work and";

/// What git calls the repository one is in, where it wants the name of a remote.
const HERE: &str = ".";

/// Where the person's branch was seen last. Where landed work is published on it, the facts say so; where it is pushed
/// elsewhere, the base and the branch here go ways of their own.
fn last_user_tip(site: &EngineContext) -> Result<Option<Oid>, GitError> {
    match &site.settings.land.publish {
        PublishTarget::Push { .. } => site.store.remote_seen(HERE, &site.branch),
        PublishTarget::Checkout | PublishTarget::None => {
            Ok(site.base.user_branch_tip().as_ref().map(ids::commit_to_oid))
        }
    }
}

fn note_user_tip(site: &EngineContext, theirs: &Oid) -> Result<(), GitError> {
    match &site.settings.land.publish {
        PublishTarget::Push { .. } => site.store.note_remote(HERE, &site.branch, theirs),
        PublishTarget::Checkout | PublishTarget::None => {
            site.base.note_user_branch_tip(&ids::oid_to_commit(theirs));
            Ok(())
        }
    }
}

/// The person has seen that their branch was rewritten and says what is meant. Gives the facts that follow.
pub(crate) fn accept_rewrite(
    site: &EngineContext,
    how: RewrittenBaseChoice,
) -> Result<Vec<EngineEvent>, GitError> {
    let _one = site.base.lock_comparison();
    let mut theirs = site.store.import_branch(&site.repo, &site.branch)?;
    let Some(ours) = site.store.read_base()? else { return Ok(Vec::new()) };
    note_user_tip(site, &theirs)?;
    if let Some(afar) = find_remote_rewrite(site)? {
        theirs = afar;
    }
    let moved = |from: &Oid, to: &Oid, by: BaseMover| {
        let (from, to) = (Some(ids::oid_to_commit(from)), ids::oid_to_commit(to));
        EngineEvent::BaseMoved { from, to, by }
    };
    if ours == theirs {
        return Ok(Vec::new());
    }
    if how == RewrittenBaseChoice::Keep && !site.base.is_trusted(&ids::oid_to_commit(&ours)) {
        let what =
            format!("it is at {ours}, which no landing has put there; your branch can be taken as it is");
        return Err(GitError::unexpected_output("keep the base as it is", what));
    }
    if how == RewrittenBaseChoice::Keep {
        // The base stays where it is; that their branch was seen is written down all the same, for the next engine.
        return Ok(vec![moved(&ours, &theirs, BaseMover::Person), moved(&theirs, &ours, BaseMover::Rebuild)]);
    }
    // What landed stays reachable: certificates name it, and a person may want it back.
    let keep = RefName::new(&format!("refs/landfall/rewritten/{ours}")).expect("made of our own words");
    site.store.pin_commit(&keep, &ours)?;
    site.base.trust_base(&ids::oid_to_commit(&theirs));
    match site.store.set_base(&theirs, Some(&ours))? {
        CompareAndSwap::Moved => Ok(vec![moved(&ours, &theirs, BaseMover::Person)]),
        CompareAndSwap::Lost { .. } => Err(GitError::unexpected_output(
            "take the rewritten branch",
            "the base moved meanwhile".to_owned(),
        )),
    }
}

/// Where the branch of the remote that is pushed to was taken to by a rewrite; from here on that is where it is.
fn find_remote_rewrite(site: &EngineContext) -> Result<Option<Oid>, GitError> {
    let PublishTarget::Push { remote, .. } = &site.settings.land.publish else { return Ok(None) };
    let Some(seen) = site.store.remote_seen(remote, &site.branch)? else { return Ok(None) };
    let now = match site.store.remote_news(&site.repo, remote, &site.branch, &seen)? {
        BranchNews::Rewritten { new, .. } => Some(new),
        BranchNews::Same | BranchNews::Ahead { .. } => None,
        BranchNews::Deleted | BranchNews::Unborn => {
            let what = format!("the branch `{}` of `{remote}` is still gone", site.branch.as_str());
            return Err(GitError::unexpected_output("go on", what));
        }
    };
    if let Some(now) = &now {
        site.store.note_remote(remote, &site.branch, now)?;
    }
    site.base.lock_remote().trouble = None;
    Ok(now)
}

/// Whether a base that no fact names holds nothing but what is known: the engine may have ended between moving it and
/// writing so. It is part of the person's branch, or it is their branch and landed work merged, and nothing besides.
fn is_explained_base(site: &EngineContext, ours: &Oid, theirs: &Oid) -> Result<bool, GitError> {
    if site.store.is_ancestor(ours, theirs)? {
        return Ok(true);
    }
    let parents = site.store.parents_of(ours)?;
    let [person, landed] = parents.as_slice() else { return Ok(false) };
    if !site.base.is_trusted(&ids::oid_to_commit(landed)) || !site.store.is_ancestor(person, theirs)? {
        return Ok(false);
    }
    Ok(site.store.merge_commits(person, landed)? == MergeResult::Clean { tree: site.store.tree_of(ours)? })
}

pub(crate) fn tell_moved(site: &HostContext, from: Option<&Oid>, to: &Oid, by: BaseMover) {
    let event = EngineEvent::BaseMoved { from: from.map(ids::oid_to_commit), to: ids::oid_to_commit(to), by };
    let _ = site.mail.send(EngineMessage::Fact(event)); // the engine has left: the store itself knows where the base is
}

/// Recomputes a landing from the commits alone: the proof in words, or in what it differs.
pub(crate) fn prove_landing(
    site: &HostContext,
    claim: &LandingClaim,
) -> Result<Result<String, String>, GitError> {
    let heads: Vec<&str> = claim.candidate_heads.iter().map(Oid::short).collect();
    match site.store.check_landing(claim) {
        Ok(proof) => Ok(Ok(format!(
            "merging {} and {} again gives tree {}, which is the tested and the landed one; {} changed, none that \
             the work did not touch",
            claim.base_before.short(),
            heads.join(" and "),
            proof.tree,
            match proof.changed_paths_count {
                1 => "1 path".to_owned(),
                many => format!("{many} paths"),
            }
        ))),
        Err(LandingMismatch::Git(error)) => Err(error),
        Err(mismatch) => Ok(Err(mismatch.to_string())),
    }
}

/// A commit that undoes everything of a task that landed, pinned for the task `new` that will land it. What landed together with it
/// stays.
pub(crate) fn revert_task(site: &HostContext, task: &Task, new: TaskId) -> Result<Commit, GitError> {
    let by = Signature::for_engine(site.clock.now_ms());
    // The newest first: what came before it is taken back from what is left.
    let mut all = task
        .landings()
        .rev()
        .map(|landed| undo_landing(site, task, landed, &by))
        .collect::<Result<Vec<_>, _>>()?;
    let rest = all.split_off(1);
    let newest = all
        .pop()
        .ok_or_else(|| GitError::unexpected_output("roll back", format!("nothing of {} landed", task.id)))?;
    let head = match rest.is_empty() {
        true => newest,
        false => {
            let message = format!(
                "Roll back {}: {}\n",
                task.id,
                crate::commit_message::commit_subject(&task.spec.title)
            );
            let together = site.store.merge_batch(&newest, &rest, &|_| message.clone(), &by)?;
            match together.prefixes.last() {
                Some(last) if together.prefixes.len() == rest.len() => last.commit.clone(),
                Some(_) | None => {
                    let what =
                        format!("what {} landed one after the other cannot be taken back together", task.id);
                    return Err(GitError::unexpected_output("roll back", what));
                }
            }
        }
    };
    site.store.pin_commit(&task_ref("tasks", new, "offered"), &head)?;
    Ok(ids::oid_to_commit(&head))
}

/// A child of a landed commit with the tree from before it: merged with any later base, it takes back just that.
fn undo_landing(
    site: &HostContext,
    task: &Task,
    landed: &LandingRecord,
    by: &Signature,
) -> Result<Oid, GitError> {
    let commit = ids::commit_to_oid(&landed.commit);
    let parents = site.store.parents_of(&commit)?;
    let (base, heads) = parents
        .split_first()
        .ok_or_else(|| GitError::unexpected_output("roll back", format!("{commit} has no parent")))?;
    // Where it landed alone there is nothing to keep of the others.
    let others: Vec<Oid> = match heads {
        [] | [_] => Vec::new(),
        several => {
            let newest = task.gate.as_ref().filter(|_| task.landed.as_ref() == Some(landed));
            let own = newest.map(|gate| ids::commit_to_oid(&gate.head)).ok_or_else(|| {
                let (commit, id) = (commit.short(), task.id);
                let what = format!("{commit} landed several tasks together, and which part was that of {id} is not known any more");
                GitError::unexpected_output("roll back", what)
            })?;
            several.iter().filter(|head| **head != own).cloned().collect()
        }
    };
    let without = site.store.merge_batch(base, &others, &|_| "Without it\n".to_owned(), by)?;
    if without.prefixes.len() != others.len() {
        let what =
            format!("what landed together with {} as {} does not fit without it", task.id, commit.short());
        return Err(GitError::unexpected_output("roll back", what));
    }
    let before = match without.prefixes.last() {
        Some(prefix) => prefix.tree.clone(),
        None => site.store.tree_of(base)?,
    };
    let message = format!(
        "Roll back {}: {}\n\nThis undoes what commit {} brought of it.\n",
        task.id,
        crate::commit_message::commit_subject(&task.spec.title),
        landed.commit
    );
    site.store.create_commit(&before, &[commit], &message, by, by)
}

/// A commit on top of the base with every file as it was at a checkpoint, pinned for the task `new` that will land it.
pub(crate) fn restore_checkpoint(
    site: &EngineContext,
    checkpoint: &Checkpoint,
    new: TaskId,
) -> Result<Commit, GitError> {
    let now = sync_base(site)?;
    let tree = site.store.tree_of(&ids::commit_to_oid(&checkpoint.commit))?;
    let message = format!(
        "Restore checkpoint {}\n\nEvery file is as it was at {}.\n",
        checkpoint.name, checkpoint.commit
    );
    let by = Signature::for_engine(site.clock.now_ms());
    let head = site.store.create_commit(&tree, &[now], &message, &by, &by)?;
    site.store.pin_commit(&task_ref("tasks", new, "offered"), &head)?;
    Ok(ids::oid_to_commit(&head))
}

/// The ref of a checkpoint, if it is a name that a ref can have.
pub(crate) fn checkpoint_ref(name: &str) -> Option<RefName> {
    RefName::new(&format!("refs/landfall/checkpoints/{name}")).ok()
}

/// Keeps what checkpoints stand for, or lets it go. Doing it again does no harm, and what fails loses nothing: the commits
/// are part of the base, and what a person takes off it is kept under a ref of its own.
pub(crate) fn keep_checkpoints(site: &HostContext, events: &[CheckpointEvent]) {
    for event in events {
        match event {
            CheckpointEvent::Made { name: made, commit, .. } => {
                if let Some(name) = checkpoint_ref(made) {
                    let _ = site.store.pin_commit(&name, &ids::commit_to_oid(commit)); // the base has it
                }
            }
            CheckpointEvent::Dropped { name: dropped } => {
                if let Some(name) = checkpoint_ref(dropped)
                    && let Ok(Some(oid)) = site.store.resolve_ref(&name)
                {
                    let _ = site.store.unpin_commit(&name, &oid); // a ref too many keeps no more than it names
                }
            }
        }
    }
}

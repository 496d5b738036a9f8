//! Moving the base: by compare-and-swap to exactly the commit that was verified, and looking again afterwards.

use std::sync::Arc;

use landfall_host::crash;
use landfall_host::git::{Cas, GitError, LandingClaim, LandingMismatch, Oid, Signature};
use landfall_model::{Attempt, Candidate, Commit, EngineEvent, Landed, Mover, News, Task, TaskId, Tree};

use crate::engine::Mail;
use crate::perform::task_ref;
use crate::site::{self, Site};

/// The tip of the base, after taking in what a person did to their branch meanwhile. Their commits win: if they only
/// went ahead, so does the base.
pub(crate) fn base(site: &Site) -> Result<Oid, GitError> {
    let _one = site.syncing.lock().expect("no thread panics while it compares");
    let theirs = site.store.import(&site.repo, &site.branch)?;
    let Some(ours) = site.store.base()? else {
        site.store.set_base(&theirs, None)?;
        tell_moved(site, None, &theirs, Mover::Person);
        return Ok(theirs);
    };
    if ours == theirs || !site.store.is_ancestor(&ours, &theirs)? {
        return Ok(ours);
    }
    crash::point("base.follow");
    match site.store.set_base(&theirs, Some(&ours))? {
        Cas::Moved => {
            tell_moved(site, Some(&ours), &theirs, Mover::Person);
            Ok(theirs)
        }
        Cas::Lost { actual } => Ok(actual.unwrap_or(ours)),
    }
}

pub(crate) fn tell_moved(site: &Site, from: Option<&Oid>, to: &Oid, by: Mover) {
    let event = EngineEvent::BaseMoved { from: from.map(site::commit), to: site::commit(to), by };
    drop(site.mail.send(Mail::Fact(event))); // the engine has left: the store itself knows where the base is
}

/// Lands a verified candidate. Performed again after a crash, it finds the base already there and says so.
pub(crate) fn land(site: &Arc<Site>, task: &Task, attempt: Attempt, candidate: &Candidate) {
    let news = match try_land(site, task.id, attempt, candidate) {
        Ok(news) => news,
        Err(error) => News::MachineFailed { attempt, detail: error.full(), hopeless: false },
    };
    site.tell(task.id, news);
}

fn try_land(site: &Site, task: TaskId, attempt: Attempt, candidate: &Candidate) -> Result<News, GitError> {
    let (new, old) = (site::oid(&candidate.commit), site::oid(&candidate.base));
    let now = base(site)?;
    let landed_before = now != old && site.store.contains(&new)? && site.store.is_ancestor(&new, &now)?;
    if !landed_before {
        if now != old {
            return Ok(News::LandMoved { attempt, to: site::commit(&now) });
        }
        site.store.pin(&task_ref("landed", task, &attempt.to_string()), &new)?;
        crash::point("land.swap.before");
        match site.store.set_base(&new, Some(&old))? {
            Cas::Moved => crash::point("land.swap.after"),
            Cas::Lost { actual } => {
                let to = actual.unwrap_or(old);
                return Ok(News::LandMoved { attempt, to: site::commit(&to) });
            }
        }
    }
    let claim = LandingClaim {
        landed: new,
        base_before: old,
        candidate_head: site::oid(&candidate.head),
        tree: site::tree_oid(&candidate.tree),
    };
    Ok(match site.store.check_landing(&claim) {
        Ok(proof) => {
            crash::point("land.proved");
            News::Landed {
                attempt,
                commit: candidate.commit.clone(),
                base_before: candidate.base.clone(),
                tree: candidate.tree.clone(),
                proof: format!(
                    "merging {} and {} again gives tree {}, which is the tested and the landed one; {} paths changed, \
                     none that the work did not touch",
                    candidate.base.short(),
                    candidate.head.short(),
                    proof.tree,
                    proof.changed_paths_count
                ),
            }
        }
        Err(LandingMismatch::Git(error)) => return Err(error),
        Err(mismatch) => News::LandMismatch { attempt, detail: mismatch.to_string() },
    })
}

/// A commit that undoes a landed task, pinned for the task `new` that will land it.
pub(crate) fn revert(site: &Site, task: &Task, landed: &Landed, new: TaskId) -> Result<Commit, GitError> {
    let before: Tree = Tree::new(site.store.tree_of(&site::oid(&landed.base_before))?.as_str());
    let message = format!(
        "Roll back {}: {}\n\nThis undoes commit {}.\n",
        task.id,
        crate::gate::subject(&task.spec.title),
        landed.commit
    );
    let by = Signature::landfall(site.clock.now_ms());
    // A child of the landed commit with the tree from before it: merged with any later base, it takes back just that.
    let head =
        site.store.commit(&site::tree_oid(&before), &[site::oid(&landed.commit)], &message, &by, &by)?;
    site.store.pin(&task_ref("tasks", new, "offered"), &head)?;
    Ok(site::commit(&head))
}

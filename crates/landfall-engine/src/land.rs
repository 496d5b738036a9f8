//! Moving the base: by compare-and-swap to exactly the commit that was verified, and looking again afterwards.

use std::sync::Arc;

use landfall_host::crash;
use landfall_host::git::{Cas, GitError, LandingClaim, LandingMismatch, Merge, Oid, Signature};
use landfall_model::{Attempt, Candidate, Commit, EngineEvent, Landed, Mover, News, Task, TaskId, Tree};

use crate::engine::Mail;
use crate::perform::task_ref;
use crate::site::{self, Site};

/// The tip of the base, after taking in what a person did to their branch meanwhile. Their commits win: if they only
/// went ahead, so does the base. A base that is where nobody we know put it is refused: agents know where the store is.
pub(crate) fn base(site: &Site) -> Result<Oid, GitError> {
    let _one = site.syncing.lock().expect("no thread panics while it compares");
    let theirs = site.store.import(&site.repo, &site.branch)?;
    let Some(ours) = site.store.base()? else {
        site.trust(&site::commit(&theirs));
        site.store.set_base(&theirs, None)?;
        tell_moved(site, None, &theirs, Mover::Person);
        return Ok(theirs);
    };
    if !site.trusts(&site::commit(&ours)) && !is_innocent(site, &ours, &theirs)? {
        let what = format!("it is at {ours}, where neither a landing nor you have put it");
        return Err(GitError::output("look at the base of the store", what));
    }
    if ours == theirs || !site.store.is_ancestor(&ours, &theirs)? {
        return Ok(ours);
    }
    crash::point("base.follow");
    site.trust(&site::commit(&theirs));
    match site.store.set_base(&theirs, Some(&ours))? {
        Cas::Moved => {
            tell_moved(site, Some(&ours), &theirs, Mover::Person);
            Ok(theirs)
        }
        Cas::Lost { actual } => Ok(actual.unwrap_or(ours)),
    }
}

/// Whether a base that no fact names holds nothing but what is known: the engine may have ended between moving it and
/// writing so. It is part of the person's branch, or it is their branch and landed work merged, and nothing besides.
fn is_innocent(site: &Site, ours: &Oid, theirs: &Oid) -> Result<bool, GitError> {
    if site.store.is_ancestor(ours, theirs)? {
        return Ok(true);
    }
    let parents = site.store.parents_of(ours)?;
    let [person, landed] = parents.as_slice() else { return Ok(false) };
    if !site.trusts(&site::commit(landed)) || !site.store.is_ancestor(person, theirs)? {
        return Ok(false);
    }
    Ok(site.store.merge(person, landed)? == Merge::Clean { tree: site.store.tree_of(ours)? })
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
    let _landing = site.landing.lock().expect("no thread panics while it lands");
    let (new, old) = (site::oid(&candidate.commit), site::oid(&candidate.base));
    let now = base(site)?;
    let landed_before = now != old && site.store.contains(&new)? && site.store.is_ancestor(&new, &now)?;
    if now != old && !landed_before {
        return Ok(News::LandMoved { attempt, to: site::commit(&now) });
    }
    let claim = LandingClaim {
        landed: new.clone(),
        base_before: old.clone(),
        candidate_heads: vec![site::oid(&candidate.head)],
        tree: site::tree_oid(&candidate.tree),
    };
    if !landed_before {
        // Before anyone can see it, and again once it is done.
        if let Err(mismatch) = prove(site, &claim)? {
            return Ok(News::LandMismatch { attempt, detail: mismatch });
        }
        site.store.pin(&task_ref("landed", task, &attempt.to_string()), &new)?;
        site.trust(&candidate.commit);
        crash::point("land.swap.before");
        match site.store.set_base(&new, Some(&old))? {
            Cas::Moved => crash::point("land.swap.after"),
            Cas::Lost { actual } => {
                let to = actual.unwrap_or(old);
                return Ok(News::LandMoved { attempt, to: site::commit(&to) });
            }
        }
    }
    Ok(match prove(site, &claim)? {
        Ok(proof) => {
            crash::point("land.proved");
            News::Landed {
                attempt,
                commit: candidate.commit.clone(),
                base_before: candidate.base.clone(),
                tree: candidate.tree.clone(),
                proof,
            }
        }
        Err(mismatch) => News::LandMismatch { attempt, detail: mismatch },
    })
}

/// Recomputes a landing from the commits alone: the proof in words, or in what it differs.
fn prove(site: &Site, claim: &LandingClaim) -> Result<Result<String, String>, GitError> {
    let heads: Vec<&str> = claim.candidate_heads.iter().map(Oid::short).collect();
    match site.store.check_landing(claim) {
        Ok(proof) => Ok(Ok(format!(
            "merging {} and {} again gives tree {}, which is the tested and the landed one; {} paths changed, none that \
             the work did not touch",
            claim.base_before.short(),
            heads.join(" and "),
            proof.tree,
            proof.changed_paths_count
        ))),
        Err(LandingMismatch::Git(error)) => Err(error),
        Err(mismatch) => Ok(Err(mismatch.to_string())),
    }
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

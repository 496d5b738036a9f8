//! The landing queue carried out: batches are merged without a checkout, verified in a lane, and become the base by
//! compare-and-swap, exactly as they were verified.

use std::sync::Arc;

use landfall_host::crash;
use landfall_host::git::{
    self, Cas, ConflictKind, ConflictedPath, GitError, LandingClaim, Merge, Oid, RefName, Signature,
};
use landfall_model::conflict::{Clash, ClashKind};
use landfall_model::queue::{LeftOut, Member, Prefix};
use landfall_model::{BatchId, Candidate, Commit, QueueNews, Task, TaskId, Tree};

use crate::gate;
use crate::land::{self, prove};
use crate::perform::task_ref;
use crate::site::{self, Site};

/// Merges the members of a batch. It only adds objects, so doing it again does no harm.
pub(crate) fn build(
    site: &Arc<Site>,
    tasks: &[Arc<Task>],
    batch: BatchId,
    on: Option<Commit>,
    members: &[Member],
) {
    let news = match try_build(site, tasks, batch, on, members) {
        Ok(news) => news,
        Err(error) => QueueNews::Failed { batch, detail: error.full() },
    };
    site.tell_queue(news);
}

fn try_build(
    site: &Site,
    tasks: &[Arc<Task>],
    batch: BatchId,
    on: Option<Commit>,
    members: &[Member],
) -> Result<QueueNews, GitError> {
    let base = match &on {
        Some(on) => site::oid(on),
        None => {
            drop(site.landing.lock().expect("no thread panics while it lands"));
            land::look_far(site, land::LOOK_OUT_MS)?.ours
        }
    };
    let mut left_out: Vec<(TaskId, LeftOut)> = Vec::new();
    let mut work: Vec<(&Member, Oid)> = Vec::new();
    for member in members {
        let task = tasks.iter().find(|task| task.id == member.task);
        match task.and_then(|task| task.landing.as_ref()) {
            Some(candidate) if on.is_none() && holds(site, &base, candidate)? => {
                left_out.push((member.task, landed_before(site, candidate)?));
            }
            _ => work.push((member, site::oid(&member.head))),
        }
    }
    let by = Signature::landfall(site.clock.now_ms());
    let mut resolved = Vec::new();
    if on.is_none() {
        let mut unfit = Vec::new();
        for (member, head) in &mut work {
            match settle(site, &base, head, &by)? {
                Settled::AsItIs => {}
                Settled::Anew(settled) => {
                    let pin = task_ref("tasks", member.task, &format!("{}-merged", member.attempt));
                    site.store.pin(&pin, &settled)?;
                    resolved.push((member.task, site::commit(&settled)));
                    *head = settled;
                }
                Settled::Conflict(paths) => unfit.push((member.task, LeftOut::Conflict(clashes(&paths)))),
            }
        }
        work.retain(|(member, _)| unfit.iter().all(|(task, _)| *task != member.task));
        left_out.append(&mut unfit);
    }
    crash::point("queue.build.before");
    let heads: Vec<Oid> = work.iter().map(|(_, head)| head.clone()).collect();
    let title = |task: TaskId| {
        let of = tasks.iter().find(|it| it.id == task);
        of.map_or_else(|| task.to_string(), |task| gate::headline(task))
    };
    let issue = |task: TaskId| {
        let of = tasks.iter().find(|it| it.id == task);
        of.map(|task| gate::issue_trailers(task)).unwrap_or_default()
    };
    // Who is in a prefix is known only once the conflicts are: the first pass finds them.
    let trial = site.store.merge_batch(&base, &heads, &|_| "Trial\n".to_owned(), &by)?;
    let fits: Vec<usize> = trial.prefixes.last().map(|prefix| prefix.heads.clone()).unwrap_or_default();
    let message = |count: usize| {
        let within: Vec<&Member> = fits[..count].iter().map(|place| work[*place].0).collect();
        message(batch, &within, &title, &issue)
    };
    let fitting: Vec<Oid> = fits.iter().map(|place| heads[*place].clone()).collect();
    let merged = site.store.merge_batch(&base, &fitting, &message, &by)?;
    if merged.prefixes.len() != fitting.len() {
        let what = "merging the same work twice gave two results".to_owned();
        return Err(GitError::output("merge a batch", what));
    }
    for (place, why) in trial.left_out {
        let (member, head) = &work[place];
        left_out.push((
            member.task,
            left_out_why(site, &base, head, why, fits.first().is_some_and(|it| *it < place))?,
        ));
    }
    crash::point("queue.build.after");
    let prefix = |prefix: &git::Prefix| Prefix {
        commit: site::commit(&prefix.commit),
        tree: Tree::new(prefix.tree.as_str()),
    };
    Ok(QueueNews::Built {
        batch,
        base: site::commit(&base),
        prefixes: merged.prefixes.iter().map(prefix).collect(),
        left_out,
        resolved,
    })
}

/// What does not fit to those before it may still fit to the base.
fn left_out_why(
    site: &Site,
    base: &Oid,
    head: &Oid,
    why: git::LeftOut,
    others_before: bool,
) -> Result<LeftOut, GitError> {
    if others_before {
        return Ok(match site.store.merge(base, head)? {
            Merge::Clean { tree } if tree == site.store.tree_of(base)? => LeftOut::NothingChanged,
            Merge::Clean { .. } => LeftOut::Crowded,
            Merge::Conflict { paths, .. } => LeftOut::Conflict(clashes(&paths)),
        });
    }
    Ok(match why {
        git::LeftOut::Conflict(paths) => LeftOut::Conflict(clashes(&paths)),
        git::LeftOut::NothingChanged => LeftOut::NothingChanged,
    })
}

/// What can be done about work before it is merged with the base, without asking anybody.
pub(crate) enum Settled {
    /// Nothing: it is merged as it is, or conflicts.
    AsItIs,
    /// It is this commit now.
    Anew(Oid),
    /// It stands on what a person has taken off their branch, and does not fit without that.
    Conflict(Vec<ConflictedPath>),
}

/// Moves work over that stands on landings which are gone, or brings the base in, where they conflict in a way that needs
/// nobody.
pub(crate) fn settle(site: &Site, base: &Oid, head: &Oid, by: &Signature) -> Result<Settled, GitError> {
    if let Some(from) = gone_below(site, base, head)? {
        return move_over(site, &from, base, head, by);
    }
    if matches!(site.store.merge(base, head)?, Merge::Clean { .. }) {
        return Ok(Settled::AsItIs);
    }
    let Some(tree) = site.store.merge_simple(base, head)? else { return Ok(Settled::AsItIs) };
    let message = "Bring the base in: the changes lie side by side\n";
    site.store.commit(&tree, &[head.clone(), base.clone()], message, by, by).map(Settled::Anew)
}

/// Where work left a base that a person has rewritten since, if merging it would bring back what they took away.
fn gone_below(site: &Site, base: &Oid, head: &Oid) -> Result<Option<Oid>, GitError> {
    let below = RefName::new("refs/landfall/rewritten").expect("made of our own words");
    let met = site.store.merge_bases(base, head)?;
    for (_, gone) in site.store.refs(&below)? {
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
fn move_over(site: &Site, from: &Oid, base: &Oid, head: &Oid, by: &Signature) -> Result<Settled, GitError> {
    let store = &site.store;
    let step = |tree: Oid, parents: &[Oid]| store.commit(&tree, parents, "A step of moving work\n", by, by);
    // A merge whose common ancestor is `from`, whatever the histories say.
    let root = step(store.tree_of(from)?, &[])?;
    let ours = step(store.tree_of(base)?, std::slice::from_ref(&root))?;
    let theirs = step(store.tree_of(head)?, std::slice::from_ref(&root))?;
    if ours == theirs {
        return Ok(Settled::Anew(base.clone())); // the base holds all of it: nothing changes
    }
    match store.merge(&ours, &theirs)? {
        Merge::Clean { tree } => {
            let message = format!("The work of {}, moved over to a rewritten branch\n", head.short());
            store.commit(&tree, std::slice::from_ref(base), &message, by, by).map(Settled::Anew)
        }
        Merge::Conflict { paths, .. } => Ok(Settled::Conflict(paths)),
    }
}

/// What the model is told of conflicts.
pub(crate) fn clashes(paths: &[ConflictedPath]) -> Vec<Clash> {
    let kind = |kind: ConflictKind| match kind {
        ConflictKind::Content => ClashKind::Content,
        ConflictKind::AddAdd => ClashKind::BothAdded,
        ConflictKind::ModifyDelete { .. } => ClashKind::Deleted,
        ConflictKind::Rename => ClashKind::Renamed,
        ConflictKind::Binary => ClashKind::Binary,
        ConflictKind::Mode | ConflictKind::Symlink | ConflictKind::Submodule | ConflictKind::FileFolder => {
            ClashKind::Kind
        }
    };
    let clash = |path: &ConflictedPath| Clash {
        path: String::from_utf8_lossy(&path.path).into_owned(),
        kind: kind(path.kind),
        lines: path.lines,
    };
    paths.iter().map(clash).collect()
}

fn message(
    batch: BatchId,
    within: &[&Member],
    title: &dyn Fn(TaskId) -> String,
    issue: &dyn Fn(TaskId) -> String,
) -> String {
    let trailers: String = within
        .iter()
        .map(|it| format!("{}Landfall-Task: {}\nLandfall-Attempt: {}\n", issue(it.task), it.task, it.attempt))
        .collect();
    match within {
        [one] => format!("{} ({})\n\n{trailers}", title(one.task), one.task),
        several => {
            let list = several.iter().map(|it| it.task.to_string()).collect::<Vec<_>>().join(", ");
            let titles: String =
                several.iter().map(|it| format!("- {} ({})\n", title(it.task), it.task)).collect();
            format!("Land {list}\n\n{titles}\n{trailers}Landfall-Batch: {batch}\n")
        }
    }
}

/// Whether the base holds a landing whose end was not seen.
fn holds(site: &Site, base: &Oid, candidate: &Candidate) -> Result<bool, GitError> {
    let commit = site::oid(&candidate.commit);
    Ok(site.store.contains(&commit)? && site.store.is_ancestor(&commit, base)?)
}

fn landed_before(site: &Site, candidate: &Candidate) -> Result<LeftOut, GitError> {
    let commit = site::oid(&candidate.commit);
    let heads = site.store.parents_of(&commit)?.into_iter().skip(1).collect();
    let claim = LandingClaim {
        landed: commit,
        base_before: site::oid(&candidate.base),
        candidate_heads: heads,
        tree: site::tree_oid(&candidate.tree),
    };
    match prove(site, &claim)? {
        Ok(proof) => Ok(LeftOut::Landed { candidate: candidate.clone(), proof }),
        Err(mismatch) => Err(GitError::output("prove an earlier landing", mismatch)),
    }
}

/// Verifies a beginning of a batch. None told: the engine was told to stop, and nothing is known.
pub(crate) fn check(
    site: &Arc<Site>,
    batch: BatchId,
    count: usize,
    base: &Commit,
    heads: &[Commit],
    prefix: &Prefix,
) {
    let head = heads.last().expect("a beginning has somebody in it");
    let name = format!("{batch}-{count}");
    match gate::verify(site, &name, &site::oid(base), &site::oid(head), &site::oid(&prefix.commit)) {
        Ok(Some(report)) => {
            crash::point("queue.checked");
            site.tell_queue(QueueNews::Checked { batch, count, report });
        }
        Ok(None) => {}
        Err(error) => site.tell_queue(QueueNews::Failed { batch, detail: error.full() }),
    }
}

/// Ends the checks of a batch that nobody waits for.
pub(crate) fn abandon(site: &Arc<Site>, batch: BatchId) {
    site.abandoned.lock().expect("no thread panics while it holds them").insert(batch);
    gate::end_checks(site, &format!("{batch}-"));
}

/// Moves the base. Performed again after a crash, it finds the base already there and says so.
pub(crate) fn land(site: &Arc<Site>, batch: BatchId, base: &Commit, members: &[Member], prefix: &Prefix) {
    let news = match try_land(site, batch, base, members, prefix) {
        Ok(news) => news,
        Err(error) => QueueNews::Failed { batch, detail: error.full() },
    };
    site.tell_queue(news);
}

fn try_land(
    site: &Site,
    batch: BatchId,
    base: &Commit,
    members: &[Member],
    prefix: &Prefix,
) -> Result<QueueNews, GitError> {
    let _landing = site.landing.lock().expect("no thread panics while it lands");
    let (new, old) = (site::oid(&prefix.commit), site::oid(base));
    let look = land::look_far(site, land::LOOK_OUT_MS)?;
    let now = look.ours;
    let landed_before = now != old && site.store.contains(&new)? && site.store.is_ancestor(&new, &now)?;
    if (now != old || look.trouble.is_some()) && !landed_before {
        return Ok(QueueNews::LandMoved { batch, to: site::commit(&now) });
    }
    let claim = LandingClaim {
        landed: new.clone(),
        base_before: old.clone(),
        candidate_heads: members.iter().map(|member| site::oid(&member.head)).collect(),
        tree: site::tree_oid(&prefix.tree),
    };
    if !landed_before {
        // Before anyone can see it, and again once it is done.
        if let Err(mismatch) = prove(site, &claim)? {
            return Ok(QueueNews::LandMismatch { batch, detail: mismatch });
        }
        for member in members {
            site.store.pin(&task_ref("landed", member.task, &member.attempt.to_string()), &new)?;
        }
        site.trust(&prefix.commit);
        crash::point("land.swap.before");
        match site.store.set_base(&new, Some(&old))? {
            Cas::Moved => crash::point("land.swap.after"),
            Cas::Lost { actual } => {
                let to = actual.unwrap_or(old);
                return Ok(QueueNews::LandMoved { batch, to: site::commit(&to) });
            }
        }
    }
    Ok(match prove(site, &claim)? {
        Ok(proof) => {
            crash::point("land.proved");
            QueueNews::Landed { batch, proof }
        }
        Err(mismatch) => QueueNews::LandMismatch { batch, detail: mismatch },
    })
}

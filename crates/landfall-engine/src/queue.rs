//! The landing queue carried out: batches are merged without a checkout, verified in a lane, and become the base by
//! compare-and-swap, exactly as they were verified.

use std::sync::Arc;

use landfall_host::crash;
use landfall_host::git::{self, CompareAndSwap, GitError, LandingClaim, MergeResult, Oid, Signature};
use landfall_model::queue::{BatchExclusion, BatchMember, BatchPrefix};
use landfall_model::{BatchId, Commit, LandingCandidate, QueueNews, Task, TaskId, Tree};

use crate::commit_message::{commit_headline, issue_trailers};
use crate::engine_context::EngineContext;
use crate::gate;
use crate::git_refs::task_ref;
use crate::host_context::HostContext;
use crate::ids;
use crate::land::{self, prove_landing};
use crate::landing_trust::trust_landing;
use crate::premerge::{PremergeResult, resolve_conflicts, to_clashes};

/// Merges the members of a batch. It only adds objects, so doing it again does no harm.
pub(crate) fn build_batch(
    site: &Arc<EngineContext>,
    tasks: &[Arc<Task>],
    batch: BatchId,
    on: Option<Commit>,
    members: &[BatchMember],
) {
    let news = match try_build(site, tasks, batch, on, members) {
        Ok(news) => news,
        Err(error) => QueueNews::Failed { batch, detail: error.full_message() },
    };
    site.tell_queue(news);
}

fn try_build(
    site: &EngineContext,
    tasks: &[Arc<Task>],
    batch: BatchId,
    on: Option<Commit>,
    members: &[BatchMember],
) -> Result<QueueNews, GitError> {
    let base = match &on {
        Some(on) => ids::commit_to_oid(on),
        None => {
            site.landing.wait_until_free();
            land::observe_remote(site, land::LOOK_OUT_MS)?.ours
        }
    };
    let mut left_out: Vec<(TaskId, BatchExclusion)> = Vec::new();
    let mut work: Vec<(&BatchMember, Oid)> = Vec::new();
    for member in members {
        let task = tasks.iter().find(|task| task.id == member.task);
        match task.and_then(|task| task.landing.as_ref()) {
            Some(candidate) if on.is_none() && is_already_landed(site, &base, candidate)? => {
                left_out.push((member.task, check_earlier_landing(site, candidate)?));
            }
            _ => work.push((member, ids::commit_to_oid(&member.head))),
        }
    }
    let by = Signature::for_engine(site.clock.now_ms());
    let mut resolved = Vec::new();
    if on.is_none() {
        let mut unfit = Vec::new();
        for (member, head) in &mut work {
            match resolve_conflicts(site, &base, head, &by)? {
                PremergeResult::AsItIs => {}
                PremergeResult::Anew(settled) => {
                    let pin = task_ref("tasks", member.task, &format!("{}-merged", member.attempt));
                    site.store.pin_commit(&pin, &settled)?;
                    resolved.push((member.task, ids::oid_to_commit(&settled)));
                    *head = settled;
                }
                PremergeResult::Conflict(paths) => {
                    unfit.push((member.task, BatchExclusion::Conflict(to_clashes(&paths))))
                }
            }
        }
        work.retain(|(member, _)| unfit.iter().all(|(task, _)| *task != member.task));
        left_out.append(&mut unfit);
    }
    crash::pass_point("queue.build.before");
    let heads: Vec<Oid> = work.iter().map(|(_, head)| head.clone()).collect();
    let title = |task: TaskId| {
        let of = tasks.iter().find(|it| it.id == task);
        of.map_or_else(|| task.to_string(), |task| commit_headline(task))
    };
    let issue = |task: TaskId| {
        let of = tasks.iter().find(|it| it.id == task);
        of.map(|task| issue_trailers(task)).unwrap_or_default()
    };
    // Who is in a prefix is known only once the conflicts are: the first pass finds them.
    let trial = site.store.merge_batch(&base, &heads, &|_| "Trial\n".to_owned(), &by)?;
    let fits: Vec<usize> = trial.prefixes.last().map(|prefix| prefix.heads.clone()).unwrap_or_default();
    let message = |count: usize| {
        let within: Vec<&BatchMember> = fits[..count].iter().map(|place| work[*place].0).collect();
        batch_message(batch, &within, &title, &issue)
    };
    let fitting: Vec<Oid> = fits.iter().map(|place| heads[*place].clone()).collect();
    let merged = site.store.merge_batch(&base, &fitting, &message, &by)?;
    if merged.prefixes.len() != fitting.len() {
        let what = "merging the same work twice gave two results".to_owned();
        return Err(GitError::unexpected_output("merge a batch", what));
    }
    for (place, why) in trial.left_out {
        let (member, head) = &work[place];
        left_out.push((
            member.task,
            explain_left_out(site, &base, head, why, fits.first().is_some_and(|it| *it < place))?,
        ));
    }
    crash::pass_point("queue.build.after");
    let prefix = |prefix: &git::MergedPrefix| BatchPrefix {
        commit: ids::oid_to_commit(&prefix.commit),
        tree: Tree::new(prefix.tree.as_str()),
    };
    Ok(QueueNews::Built {
        batch,
        base: ids::oid_to_commit(&base),
        prefixes: merged.prefixes.iter().map(prefix).collect(),
        left_out,
        resolved,
    })
}

/// What does not fit to those before it may still fit to the base.
fn explain_left_out(
    site: &HostContext,
    base: &Oid,
    head: &Oid,
    why: git::BatchMergeExclusion,
    others_before: bool,
) -> Result<BatchExclusion, GitError> {
    if others_before {
        return Ok(match site.store.merge_commits(base, head)? {
            MergeResult::Clean { tree } if tree == site.store.tree_of(base)? => {
                BatchExclusion::NothingChanged
            }
            MergeResult::Clean { .. } => BatchExclusion::Crowded,
            MergeResult::Conflict { paths, .. } => BatchExclusion::Conflict(to_clashes(&paths)),
        });
    }
    Ok(match why {
        git::BatchMergeExclusion::Conflict(paths) => BatchExclusion::Conflict(to_clashes(&paths)),
        git::BatchMergeExclusion::NothingChanged => BatchExclusion::NothingChanged,
    })
}

fn batch_message(
    batch: BatchId,
    within: &[&BatchMember],
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
fn is_already_landed(site: &HostContext, base: &Oid, candidate: &LandingCandidate) -> Result<bool, GitError> {
    let commit = ids::commit_to_oid(&candidate.commit);
    Ok(site.store.contains(&commit)? && site.store.is_ancestor(&commit, base)?)
}

fn check_earlier_landing(
    site: &HostContext,
    candidate: &LandingCandidate,
) -> Result<BatchExclusion, GitError> {
    let commit = ids::commit_to_oid(&candidate.commit);
    let heads = site.store.parents_of(&commit)?.into_iter().skip(1).collect();
    let claim = LandingClaim {
        landed: commit,
        base_before: ids::commit_to_oid(&candidate.base),
        candidate_heads: heads,
        tree: ids::tree_oid(&candidate.tree),
    };
    match prove_landing(site, &claim)? {
        Ok(proof) => Ok(BatchExclusion::Landed { candidate: candidate.clone(), proof }),
        Err(mismatch) => Err(GitError::unexpected_output("prove an earlier landing", mismatch)),
    }
}

/// Verifies a beginning of a batch. None told: the engine was told to stop, and nothing is known.
pub(crate) fn check_prefix(
    site: &Arc<EngineContext>,
    batch: BatchId,
    count: usize,
    base: &Commit,
    heads: &[Commit],
    prefix: &BatchPrefix,
) {
    let head = heads.last().expect("a beginning has somebody in it");
    let name = format!("{batch}-{count}");
    match gate::verify_merge(
        site,
        &name,
        &ids::commit_to_oid(base),
        &ids::commit_to_oid(head),
        &ids::commit_to_oid(&prefix.commit),
    ) {
        Ok(Some(report)) => {
            crash::pass_point("queue.checked");
            site.tell_queue(QueueNews::Checked { batch, count, report });
        }
        Ok(None) => {}
        Err(error) => site.tell_queue(QueueNews::Failed { batch, detail: error.full_message() }),
    }
}

/// Ends the checks of a batch that nobody waits for.
pub(crate) fn abandon_batch(site: &HostContext, batch: BatchId) {
    site.active.abandon_batch(batch);
    gate::end_checks(site, &format!("{batch}-"));
}

/// Moves the base. Performed again after a crash, it finds the base already there and says so.
pub(crate) fn land_batch(
    site: &Arc<EngineContext>,
    tasks: &[Arc<Task>],
    batch: BatchId,
    base: &Commit,
    members: &[BatchMember],
    prefix: &BatchPrefix,
) {
    let news = match try_land(site, tasks, batch, base, members, prefix) {
        Ok(news) => news,
        Err(error) => QueueNews::Failed { batch, detail: error.full_message() },
    };
    site.tell_queue(news);
}

fn try_land(
    site: &EngineContext,
    tasks: &[Arc<Task>],
    batch: BatchId,
    base: &Commit,
    members: &[BatchMember],
    prefix: &BatchPrefix,
) -> Result<QueueNews, GitError> {
    let _landing = site.landing.wait_for_turn();
    let (new, old) = (ids::commit_to_oid(&prefix.commit), ids::commit_to_oid(base));
    let look = land::observe_remote(site, land::LOOK_OUT_MS)?;
    let now = look.ours;
    let landed_before = now != old && site.store.contains(&new)? && site.store.is_ancestor(&new, &now)?;
    if (now != old || look.trouble.is_some()) && !landed_before {
        return Ok(QueueNews::LandMoved { batch, to: ids::oid_to_commit(&now) });
    }
    let claim = LandingClaim {
        landed: new.clone(),
        base_before: old.clone(),
        candidate_heads: members.iter().map(|member| ids::commit_to_oid(&member.head)).collect(),
        tree: ids::tree_oid(&prefix.tree),
    };
    if !landed_before {
        // Before anyone can see it, and again once it is done.
        if let Err(mismatch) = prove_landing(site, &claim)? {
            return Ok(QueueNews::LandMismatch { batch, detail: mismatch });
        }
        for member in members {
            site.store.pin_commit(&task_ref("landed", member.task, &member.attempt.to_string()), &new)?;
        }
        site.base.trust_base(&prefix.commit);
        crash::pass_point("land.swap.before");
        match site.store.set_base(&new, Some(&old))? {
            CompareAndSwap::Moved => crash::pass_point("land.swap.after"),
            CompareAndSwap::Lost { actual } => {
                let to = actual.unwrap_or(old);
                return Ok(QueueNews::LandMoved { batch, to: ids::oid_to_commit(&to) });
            }
        }
    }
    Ok(match prove_landing(site, &claim)? {
        Ok(proof) => {
            trust_landing(site, tasks, base, members, &prefix.commit); // before it is published, where hooks run
            crash::pass_point("land.proved");
            QueueNews::Landed { batch, proof }
        }
        Err(mismatch) => QueueNews::LandMismatch { batch, detail: mismatch },
    })
}

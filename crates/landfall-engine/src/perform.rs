//! Orders carried out: one arm per effect, each in a thread of its own, each answered by news.
//!
//! Every effect may be performed again after a crash. What keeps that safe is said beside each.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use landfall_host::crash;
use landfall_host::git::{CollectError, CollectOptions, GitError, LostHeadPolicy, Signature};
use landfall_host::sitter;
use landfall_model::{Attempt, Effect, News, QueueEffect, StopRequest, Task};

use crate::active_work::AgentStopMode;
use crate::agent_run::is_reader_run;
use crate::effect_thread::start_effect_thread;
use crate::engine_context::EngineContext;
use crate::follow::Follower;
use crate::git_refs::{collect_detail, task_ref, task_ref_name};
use crate::host_context::HostContext;
use crate::ids;
use crate::mail::EngineMessage;
use crate::reader_workspace::{give_up_reading, prepare_to_read};
use crate::{exchange, gate, land, launch, module, queue, recovering, report, spare, workspace};

/// Performs an effect of `task`. Returns at once; the outcome comes back as news.
pub(crate) fn perform_effect(
    site: &Arc<EngineContext>,
    follower: &Follower,
    task: Arc<Task>,
    effect: Effect,
) {
    match effect {
        Effect::Prepare { attempt, fresh, .. } => {
            start_effect_thread(site, "prepare", move |site| prepare_workspace(site, &task, attempt, fresh))
        }
        Effect::Spawn { attempt, iteration, step, deadline_ms, talk, .. } => {
            let follower = follower.clone();
            start_effect_thread(site, "spawn", move |site| {
                let find_base = || land::sync_base(site);
                let run = launch::AgentLaunch {
                    attempt,
                    iteration,
                    step,
                    deadline_ms,
                    talk,
                    find_base: &find_base,
                };
                launch::launch_agent(site, &follower, &task, &run);
            });
        }
        Effect::Kill { attempt, stop, .. } => kill_agent(site, &task, attempt, &stop),
        Effect::Check { attempt, head, .. } => {
            start_effect_thread(site, "check", move |site| gate::check_task(site, &task, attempt, head))
        }
        Effect::Report { attempt, .. } => {
            start_effect_thread(site, "report", move |site| report::write_report(site, &task, attempt))
        }
        Effect::Exchange { attempt, act, .. } => {
            start_effect_thread(site, "exchange", move |site| {
                exchange::run_exchange(site, &task, attempt, act)
            });
        }
        Effect::Recover { attempt, .. } => {
            start_effect_thread(site, "recover", move |site| {
                recovering::perform_recovery(site, &task, attempt)
            });
        }
        Effect::Tidy { .. } => {
            site.tidying.fetch_add(1, Ordering::SeqCst);
            start_effect_thread(site, "tidy", move |site| {
                tidy_workspace(site, &task);
                site.tidying.fetch_sub(1, Ordering::SeqCst);
                let _ = site.mail.send(EngineMessage::Tidied); // the engine has left
            });
        }
    }
}

/// Performs an order about a batch; `tasks` are its members.
pub(crate) fn perform_queue(site: &Arc<EngineContext>, tasks: Vec<Arc<Task>>, effect: QueueEffect) {
    match effect {
        QueueEffect::Build { batch, on, members } => {
            start_effect_thread(site, "build", move |site| {
                queue::build_batch(site, &tasks, batch, on, &members)
            });
        }
        QueueEffect::Check { batch, count, base, heads, prefix } => {
            start_effect_thread(site, "batch-check", move |site| {
                queue::check_prefix(site, batch, count, &base, &heads, &prefix)
            });
        }
        QueueEffect::Land { batch, base, members, prefix } => {
            start_effect_thread(site, "land", move |site| {
                queue::land_batch(site, &tasks, batch, &base, &members, &prefix)
            });
        }
        QueueEffect::Abandon { batch } => {
            start_effect_thread(site, "abandon", move |site| queue::abandon_batch(site, batch))
        }
    }
}

/// Whether workspaces are still being given up.
pub(crate) fn is_tidying(site: &EngineContext) -> bool {
    site.tidying.load(Ordering::SeqCst) > 0
}

/// Ends every agent and check that runs, at once. What they come to is told as always, or found by the next run.
pub(crate) fn end_agents(site: &HostContext) {
    for entry in std::fs::read_dir(site.folder.attempts_path()).into_iter().flatten().flatten() {
        if let Ok(sitter::SitterState::Running(sitting)) = sitter::find_sitter(&entry.path()) {
            let _ = sitter::stop_sitter(&sitting, sitter::StopMode::Now); // gone already is as good
        }
    }
}

/// Makes the workspace, or finds it standing: [`WorkspacePool::prepare_workspace`](landfall_host::git::WorkspacePool::prepare_workspace) repeats safely.
fn prepare_workspace(site: &Arc<EngineContext>, task: &Task, attempt: Attempt, fresh: bool) {
    match try_prepare(site, task, attempt, fresh) {
        Ok(base) => site.send_news(task.id, News::WorkspaceReady { attempt, base }),
        Err(detail) => site.send_news(task.id, News::MachineFailed { attempt, detail, hopeless: false }),
    }
}

fn try_prepare(
    site: &Arc<EngineContext>,
    task: &Task,
    attempt: Attempt,
    fresh: bool,
) -> Result<landfall_model::Commit, String> {
    exchange::announce_step(site, task);
    if is_reader_run(task) {
        return prepare_to_read(site, task, attempt);
    }
    let name = task.id.to_string();
    if let Some(standing) = site.pool.find_workspace(&name) {
        let made_for_this = task.workspace.is_some() || !fresh;
        if made_for_this {
            workspace::after_create(site, task, &standing)?; // it may have been cut short
            return Ok(ids::oid_to_commit(standing.base()));
        }
        workspace::before_remove(site, task, &standing);
        let keep = task_ref("kept", task.id, &attempt.to_string());
        let by = Signature::for_engine(site.clock.now_ms());
        site.pool.remove_workspace(standing, &keep, &by).map_err(|error| collect_detail(&error))?;
        crash::pass_point("workspace.removed");
    }
    let branch = format!("landfall/{}", task_ref_name(task.id));
    if let Some(workspace) =
        spare::take_spare(site, task, &name, &branch).map_err(|error| error.full_message())?
    {
        workspace::after_create(site, task, &workspace)?;
        return Ok(ids::oid_to_commit(workspace.base()));
    }
    let base = match (&task.head, task.workspace.is_some()) {
        _ if task.restart.is_some() => ids::commit_to_oid(task.restart.as_ref().expect("just seen")),
        // The folder was lost, the work was not: it goes on from what is in the store.
        (Some(head), true) => ids::commit_to_oid(head),
        _ => land::sync_base(site).map_err(|error| error.full_message())?,
    };
    let workspace =
        site.pool.prepare_workspace(&name, &base, &branch).map_err(|error: GitError| error.full_message())?;
    workspace::after_create(site, task, &workspace)?;
    Ok(ids::oid_to_commit(workspace.base()))
}

/// Ends the agent of an attempt. One that is only about to begin finds the stop on record: the launch looks before it
/// starts a sitter, the follower once there is one. Asking twice is asking once.
pub(crate) fn kill_agent(site: &HostContext, task: &Task, attempt: Attempt, stop: &StopRequest) {
    crash::pass_point("effect.kill.before");
    // A loop of the agent's own is left between two steps, if nobody is in a hurry. The follower sees to it that it is.
    let manner = match stop {
        StopRequest::Pause if task.runs_own_loop() && !is_reader_run(task) => AgentStopMode::AfterStep,
        StopRequest::Pause
        | StopRequest::Cancel { .. }
        | StopRequest::Interrupt
        | StopRequest::Redirect
        | StopRequest::Block { .. } => AgentStopMode::Now,
    };
    let id = task.id;
    site.active.request_stop(id, attempt, manner);
    let prefix = format!("{id}-{attempt}-i");
    let how = match stop {
        StopRequest::Pause
        | StopRequest::Cancel { .. }
        | StopRequest::Interrupt
        | StopRequest::Redirect
        | StopRequest::Block { .. } => sitter::StopMode::Gently,
    };
    for entry in std::fs::read_dir(site.folder.attempts_path()).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(&prefix) {
            continue;
        }
        if manner == AgentStopMode::AfterStep
            && let Some(workspace) = site.pool.find_workspace(&id.to_string())
            && module::request_user_stop(task, workspace.path(), &entry.path(), site.now())
        {
            continue;
        }
        if let Ok(sitter::SitterState::Running(sitting)) = sitter::find_sitter(&entry.path()) {
            let _ = sitter::stop_sitter(&sitting, how); // gone already is as good; its end is news either way
        }
    }
    crash::pass_point("effect.kill.after");
}

/// Gives the workspace of a landed task back to the pool. What it holds is kept under a ref first, so that doing it
/// again, or half, loses nothing.
fn tidy_workspace(site: &HostContext, task: &Task) {
    let kept = try_tidy(site, task);
    // A workspace that could not be given up stays where it is: `doctor` and `reclaim` see it.
    if let Ok(kept) = kept {
        site.send_news(task.id, News::WorkspaceRemoved { kept });
    }
}

fn try_tidy(site: &HostContext, task: &Task) -> Result<Option<landfall_model::Commit>, CollectError> {
    give_up_reading(site, task, task.attempt)?;
    let Some(workspace) = site.pool.find_workspace(&task.id.to_string()) else { return Ok(None) };
    workspace::before_remove(site, task, &workspace);
    let at = site.clock.now_ms();
    let leftovers = landfall_host::git::LeftoverCommit {
        message: format!("Work left in the workspace of {} after it landed\n", task.id),
        signature: Signature::for_engine(at),
    };
    let options = CollectOptions {
        pin: Some(task_ref("done", task.id, "head")),
        commit_leftovers: Some(leftovers),
        lost_head: LostHeadPolicy::UseBase,
        aside: None,
        paths_max: site.settings.land.paths_max,
    };
    let collected = site.store.collect_work(&workspace, &options)?;
    crash::pass_point("tidy.collected");
    let head = ids::oid_to_commit(&collected.head);
    let kept = site.pool.release_workspace(workspace, &collected, &task_ref("kept", task.id, "done"))?;
    crash::pass_point("tidy.released");
    let landed = task.head.as_ref() == Some(&head);
    Ok(if landed { kept.first().map(|(_, oid)| ids::oid_to_commit(oid)) } else { Some(head) })
}

//! Orders carried out: one arm per effect, each in a thread of its own, each answered by news.
//!
//! Every effect may be performed again after a crash. What keeps that safe is said beside each.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use landfall_host::crash;
use landfall_host::git::{CollectError, CollectOptions, GitError, LostHead, RefName, Signature, Workspace};
use landfall_host::sitter;
use landfall_model::{Attempt, Commit, Effect, News, QueueEffect, Stop, Task, TaskId};

use crate::engine::Mail;
use crate::follow::Follower;
use crate::site::{self, Manner, Site};
use crate::{
    exchange, gate, land, launch, module, papers, queue, recovering, report, shortage, spare, workspace,
};

/// Performs an effect of `task`. Returns at once; the outcome comes back as news.
pub(crate) fn perform(site: &Arc<Site>, follower: &Follower, task: Arc<Task>, effect: Effect) {
    match effect {
        Effect::Prepare { attempt, fresh, .. } => {
            go(site, "prepare", move |site| prepare(site, &task, attempt, fresh))
        }
        Effect::Spawn { attempt, iteration, step, deadline_ms, talk, .. } => {
            let follower = follower.clone();
            go(site, "spawn", move |site| {
                let run = launch::Run { attempt, iteration, step, deadline_ms, talk };
                launch::launch(site, &follower, &task, &run);
            });
        }
        Effect::Kill { attempt, stop, .. } => kill(site, &task, attempt, &stop),
        Effect::Check { attempt, head, .. } => {
            go(site, "check", move |site| gate::check(site, &task, attempt, head))
        }
        Effect::Report { attempt, .. } => go(site, "report", move |site| report::write(site, &task, attempt)),
        Effect::Exchange { attempt, act, .. } => {
            go(site, "exchange", move |site| exchange::exchange(site, &task, attempt, act));
        }
        Effect::Recover { attempt, .. } => {
            go(site, "recover", move |site| recovering::recover(site, &task, attempt));
        }
        Effect::Tidy { .. } => {
            site.tidying.fetch_add(1, Ordering::SeqCst);
            go(site, "tidy", move |site| {
                tidy(site, &task);
                site.tidying.fetch_sub(1, Ordering::SeqCst);
                let _ = site.mail.send(Mail::Tidied); // the engine has left
            });
        }
    }
}

/// Performs an order about a batch; `tasks` are its members.
pub(crate) fn perform_queue(site: &Arc<Site>, tasks: Vec<Arc<Task>>, effect: QueueEffect) {
    match effect {
        QueueEffect::Build { batch, on, members } => {
            go(site, "build", move |site| queue::build(site, &tasks, batch, on, &members));
        }
        QueueEffect::Check { batch, count, base, heads, prefix } => {
            go(site, "batch-check", move |site| queue::check(site, batch, count, &base, &heads, &prefix));
        }
        QueueEffect::Land { batch, base, members, prefix } => {
            go(site, "land", move |site| queue::land(site, batch, &base, &members, &prefix));
        }
        QueueEffect::Abandon { batch } => go(site, "abandon", move |site| queue::abandon(site, batch)),
    }
}

/// Whether workspaces are still being given up.
pub(crate) fn tidying(site: &Site) -> bool {
    site.tidying.load(Ordering::SeqCst) > 0
}

/// Held by every thread that performs. A panic there is a bug that would leave a task waiting for ever, so it ends the
/// process: the journal is whole and the next start goes on from it.
pub(crate) struct Fuse;

impl Drop for Fuse {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

/// Runs `work` in a thread, as soon as one can be had.
pub(crate) fn go(site: &Arc<Site>, what: &'static str, work: impl FnOnce(&Arc<Site>) + Send + 'static) {
    let work = move |site: &Arc<Site>| {
        let _fuse = Fuse;
        crash::point(&format!("effect.{what}.before"));
        work(site);
        crash::point(&format!("effect.{what}.after"));
    };
    shortage::start(site, what, Box::new(work));
}

/// Ends every agent and check that runs, at once. What they come to is told as always, or found by the next run.
pub(crate) fn end_agents(site: &Site) {
    for entry in std::fs::read_dir(site.folder.attempts()).into_iter().flatten().flatten() {
        if let Ok(sitter::Found::Running(sitting)) = sitter::find(&entry.path()) {
            let _ = sitter::stop(&sitting, sitter::Stop::Now); // gone already is as good
        }
    }
}

/// The name of a task's workspace and of its refs.
pub(crate) fn lower(task: TaskId) -> String {
    format!("t{}", task.0)
}

/// A ref of ours that keeps something of a task.
pub(crate) fn task_ref(kind: &str, task: TaskId, rest: &str) -> RefName {
    RefName::new(&format!("refs/landfall/{kind}/{}/{rest}", lower(task))).expect("made of our own words")
}

/// Makes the workspace, or finds it standing: [`Pool::prepare`](landfall_host::git::Pool::prepare) repeats safely.
fn prepare(site: &Arc<Site>, task: &Task, attempt: Attempt, fresh: bool) {
    match try_prepare(site, task, attempt, fresh) {
        Ok(base) => site.tell(task.id, News::WorkspaceReady { attempt, base }),
        Err(detail) => site.tell(task.id, News::MachineFailed { attempt, detail, hopeless: false }),
    }
}

fn try_prepare(
    site: &Arc<Site>,
    task: &Task,
    attempt: Attempt,
    fresh: bool,
) -> Result<landfall_model::Commit, String> {
    exchange::entered(site, task);
    if reads(task) {
        return prepare_to_read(site, task, attempt);
    }
    let name = task.id.to_string();
    if let Some(standing) = site.pool.existing(&name) {
        let made_for_this = task.workspace.is_some() || !fresh;
        if made_for_this {
            workspace::after_create(site, task, &standing)?; // it may have been cut short
            return Ok(site::commit(standing.base()));
        }
        workspace::before_remove(site, task, &standing);
        let keep = task_ref("kept", task.id, &attempt.to_string());
        let by = Signature::landfall(site.clock.now_ms());
        site.pool.remove(standing, &keep, &by).map_err(|error| collect_detail(&error))?;
        crash::point("workspace.removed");
    }
    let branch = format!("landfall/{}", lower(task.id));
    if let Some(workspace) = spare::take(site, task, &name, &branch).map_err(|error| error.full())? {
        workspace::after_create(site, task, &workspace)?;
        return Ok(site::commit(workspace.base()));
    }
    let base = match (&task.head, task.workspace.is_some()) {
        _ if task.restart.is_some() => site::oid(task.restart.as_ref().expect("just seen")),
        // The folder was lost, the work was not: it goes on from what is in the store.
        (Some(head), true) => site::oid(head),
        _ => land::base(site).map_err(|error| error.full())?,
    };
    let workspace = site.pool.prepare(&name, &base, &branch).map_err(|error: GitError| error.full())?;
    workspace::after_create(site, task, &workspace)?;
    Ok(site::commit(workspace.base()))
}

/// Whether the agent of a task reads the work of another.
pub(crate) fn reads(task: &Task) -> bool {
    let step = task.step().and_then(|step| task.flow.as_ref()?.step(step));
    step.is_some_and(|step| step.kind.reads())
}

/// The name of the workspace that the agent of a task works in. Whoever reads has one of their own: what they write there
/// goes nowhere.
pub(crate) fn workspace_name(task: &Task) -> String {
    match reads(task) {
        true => format!("{}-review", task.id),
        false => task.id.to_string(),
    }
}

/// A workspace with the work as it was verified, to be read and thrown away. The task's own stays as it is.
fn prepare_to_read(site: &Arc<Site>, task: &Task, attempt: Attempt) -> Result<Commit, String> {
    let mut rooms = rooms(site);
    rooms.insert(task.id, (attempt, None));
    make_room(site, task, attempt).map(|(_, base)| base)
}

/// The room of a reader who is about to begin. The first finds the one that was prepared; whoever comes after another has one made, for
/// the one before gives theirs up when they leave.
pub(crate) fn take_room(
    site: &Site,
    task: &Task,
    attempt: Attempt,
    iteration: u32,
) -> Result<Workspace, String> {
    let mut rooms = rooms(site);
    let ours = match rooms.insert(task.id, (attempt, Some(iteration))) {
        Some((of, by)) => of == attempt && by.is_none_or(|by| by == iteration),
        None => true, // another engine made it, and whoever is in it is not disturbed
    };
    match site.pool.existing(&workspace_name(task)).filter(|_| ours) {
        Some(standing) => Ok(standing),
        None => make_room(site, task, attempt).map(|(workspace, _)| workspace),
    }
}

fn make_room(site: &Site, task: &Task, attempt: Attempt) -> Result<(Workspace, Commit), String> {
    remove_room(site, task, attempt).map_err(|error| collect_detail(&error))?;
    // Before there is work, a plan or an objective is read beside what is there.
    let head = match &task.head {
        Some(head) => site::oid(head),
        None => land::base(site).map_err(|error| error.full())?,
    };
    let branch = format!("landfall/{}-review", lower(task.id));
    let workspace =
        site.pool.prepare(&workspace_name(task), &head, &branch).map_err(|error: GitError| error.full())?;
    papers::put(site, task, &workspace)?;
    let base = task.workspace.clone().unwrap_or_else(|| site::commit(&head));
    Ok((workspace, base))
}

/// Gives the workspace of a reviewer up. What is in it is kept under a ref all the same: nothing is ever lost.
pub(crate) fn give_up_reading(site: &Site, task: &Task, attempt: Attempt) -> Result<(), CollectError> {
    let mut rooms = rooms(site);
    rooms.remove(&task.id);
    remove_room(site, task, attempt)
}

/// The same when a reader has left, unless the room is the next one's by now.
pub(crate) fn end_reading(
    site: &Site,
    task: &Task,
    attempt: Attempt,
    iteration: u32,
) -> Result<(), CollectError> {
    let mut rooms = rooms(site);
    if rooms.get(&task.id).is_some_and(|by| *by != (attempt, Some(iteration))) {
        return Ok(());
    }
    rooms.remove(&task.id);
    remove_room(site, task, attempt)
}

fn rooms(site: &Site) -> MutexGuard<'_, BTreeMap<TaskId, (Attempt, Option<u32>)>> {
    site.reading.lock().expect("no thread panics while it holds the rooms")
}

fn remove_room(site: &Site, task: &Task, attempt: Attempt) -> Result<(), CollectError> {
    let Some(standing) = site.pool.existing(&format!("{}-review", task.id)) else { return Ok(()) };
    let keep = task_ref("kept", task.id, &format!("review-{attempt}"));
    let by = Signature::landfall(site.clock.now_ms());
    site.pool.remove(standing, &keep, &by).map(drop)
}

/// What a failed collection says to a person.
pub(crate) fn collect_detail(error: &CollectError) -> String {
    match error {
        CollectError::Git(error) => error.full(),
        CollectError::WorkspaceGone
        | CollectError::HeadUnreadable { .. }
        | CollectError::TooManyPaths { .. }
        | CollectError::Broken { .. } => error.to_string(),
    }
}

/// Ends the agent of an attempt. One that is only about to begin finds the stop on record: the launch looks before it
/// starts a sitter, the follower once there is one. Asking twice is asking once.
pub(crate) fn kill(site: &Arc<Site>, task: &Task, attempt: Attempt, stop: &Stop) {
    crash::point("effect.kill.before");
    // A loop of the agent's own is left between two steps, if nobody is in a hurry. The follower sees to it that it is.
    let manner = match stop {
        Stop::Pause if task.strides() && !reads(task) => Manner::AfterStep,
        Stop::Pause | Stop::Cancel { .. } | Stop::Interrupt | Stop::Redirect | Stop::Block { .. } => {
            Manner::Now
        }
    };
    let id = task.id;
    site.stops.lock().expect("no thread panics while it holds the stops").insert((id, attempt), manner);
    let prefix = format!("{id}-{attempt}-i");
    let how = match stop {
        Stop::Pause | Stop::Cancel { .. } | Stop::Interrupt | Stop::Redirect | Stop::Block { .. } => {
            sitter::Stop::Gently
        }
    };
    for entry in std::fs::read_dir(site.folder.attempts()).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(&prefix) {
            continue;
        }
        if manner == Manner::AfterStep
            && let Some(workspace) = site.pool.existing(&id.to_string())
            && module::person_stops(task, workspace.path(), &entry.path(), site.now())
        {
            continue;
        }
        if let Ok(sitter::Found::Running(sitting)) = sitter::find(&entry.path()) {
            let _ = sitter::stop(&sitting, how); // gone already is as good; its end is news either way
        }
    }
    crash::point("effect.kill.after");
}

/// Gives the workspace of a landed task back to the pool. What it holds is kept under a ref first, so that doing it
/// again, or half, loses nothing.
fn tidy(site: &Arc<Site>, task: &Task) {
    let kept = try_tidy(site, task);
    // A workspace that could not be given up stays where it is: `doctor` and `reclaim` see it.
    if let Ok(kept) = kept {
        site.tell(task.id, News::WorkspaceRemoved { kept });
    }
}

fn try_tidy(site: &Arc<Site>, task: &Task) -> Result<Option<landfall_model::Commit>, CollectError> {
    give_up_reading(site, task, task.attempt)?;
    let Some(workspace) = site.pool.existing(&task.id.to_string()) else { return Ok(None) };
    workspace::before_remove(site, task, &workspace);
    let at = site.clock.now_ms();
    let leftovers = landfall_host::git::Leftovers {
        message: format!("Work left in the workspace of {} after it landed\n", task.id),
        signature: Signature::landfall(at),
    };
    let options = CollectOptions {
        pin: Some(task_ref("done", task.id, "head")),
        commit_leftovers: Some(leftovers),
        lost_head: LostHead::UseBase,
        aside: None,
        paths_max: site.settings.land.paths_max,
    };
    let collected = site.store.collect(&workspace, &options)?;
    crash::point("tidy.collected");
    let head = site::commit(&collected.head);
    let kept = site.pool.release(workspace, &collected, &task_ref("kept", task.id, "done"))?;
    crash::point("tidy.released");
    let landed = task.head.as_ref() == Some(&head);
    Ok(if landed { kept.first().map(|(_, oid)| site::commit(oid)) } else { Some(head) })
}

//! The workspaces of agents that read the work of others. What they write there goes nowhere.

use std::collections::BTreeMap;
use std::sync::MutexGuard;

use landfall_host::git::{CollectError, GitError, Oid, Signature, Workspace};
use landfall_model::{Attempt, Commit, Task, TaskId};

use crate::agent_run::workspace_name;
use crate::engine_context::EngineContext;
use crate::git_refs::{collect_detail, task_ref, task_ref_name};
use crate::host_context::HostContext;
use crate::ids;
use crate::land;
use crate::papers;

/// Says where the base is: only the engine compares it with the user's branch.
pub(crate) type BaseFinder<'a> = &'a dyn Fn() -> Result<Oid, GitError>;

/// A workspace with the work as it was verified, to be read and thrown away. The task's own stays as it is.
pub(crate) fn prepare_to_read(site: &EngineContext, task: &Task, attempt: Attempt) -> Result<Commit, String> {
    let mut rooms = lock_rooms(site);
    rooms.insert(task.id, (attempt, None));
    make_room(site, task, attempt, &|| land::sync_base(site)).map(|(_, base)| base)
}

/// The room of a reader who is about to begin. The first finds the one that was prepared; whoever comes after another has one made, for
/// the one before gives theirs up when they leave.
pub(crate) fn take_room(
    site: &HostContext,
    task: &Task,
    attempt: Attempt,
    iteration: u32,
    find_base: BaseFinder<'_>,
) -> Result<Workspace, String> {
    let mut rooms = lock_rooms(site);
    let ours = match rooms.insert(task.id, (attempt, Some(iteration))) {
        Some((of, by)) => of == attempt && by.is_none_or(|by| by == iteration),
        None => true, // another engine made it, and whoever is in it is not disturbed
    };
    match site.pool.find_workspace(&workspace_name(task)).filter(|_| ours) {
        Some(standing) => Ok(standing),
        None => make_room(site, task, attempt, find_base).map(|(workspace, _)| workspace),
    }
}

fn make_room(
    site: &HostContext,
    task: &Task,
    attempt: Attempt,
    find_base: BaseFinder<'_>,
) -> Result<(Workspace, Commit), String> {
    remove_room(site, task, attempt).map_err(|error| collect_detail(&error))?;
    // Before there is work, a plan or an objective is read beside what is there.
    let head = match &task.head {
        Some(head) => ids::commit_to_oid(head),
        None => find_base().map_err(|error| error.full_message())?,
    };
    let branch = format!("landfall/{}-review", task_ref_name(task.id));
    let workspace = site
        .pool
        .prepare_workspace(&workspace_name(task), &head, &branch)
        .map_err(|error: GitError| error.full_message())?;
    papers::put_papers(site, task, &workspace)?;
    let base = task.workspace.clone().unwrap_or_else(|| ids::oid_to_commit(&head));
    Ok((workspace, base))
}

/// Gives the workspace of a reviewer up. What is in it is kept under a ref all the same: nothing is ever lost.
pub(crate) fn give_up_reading(site: &HostContext, task: &Task, attempt: Attempt) -> Result<(), CollectError> {
    let mut rooms = lock_rooms(site);
    rooms.remove(&task.id);
    remove_room(site, task, attempt)
}

/// The same when a reader has left, unless the room is the next one's by now.
pub(crate) fn end_reading(
    site: &HostContext,
    task: &Task,
    attempt: Attempt,
    iteration: u32,
) -> Result<(), CollectError> {
    let mut rooms = lock_rooms(site);
    if rooms.get(&task.id).is_some_and(|by| *by != (attempt, Some(iteration))) {
        return Ok(());
    }
    rooms.remove(&task.id);
    remove_room(site, task, attempt)
}

fn lock_rooms(site: &HostContext) -> MutexGuard<'_, BTreeMap<TaskId, (Attempt, Option<u32>)>> {
    site.reading.lock().expect("no thread panics while it holds the rooms")
}

fn remove_room(site: &HostContext, task: &Task, attempt: Attempt) -> Result<(), CollectError> {
    let Some(standing) = site.pool.find_workspace(&format!("{}-review", task.id)) else { return Ok(()) };
    let keep = task_ref("kept", task.id, &format!("review-{attempt}"));
    let by = Signature::for_engine(site.clock.now_ms());
    site.pool.remove_workspace(standing, &keep, &by).map(drop)
}

//! Workspaces that stand ready before anybody asks for one, so that an agent starts as soon as it has a slot.
//!
//! How many is decided by the model; here they are made, one after the other, and given to tasks that they fit.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use landfall_host::git::{GitError, Oid, WarmWorkspace, Workspace};
use landfall_model::Task;

use crate::effect_thread::AbortOnPanic;
use crate::engine_context::EngineContext;
use crate::ids;

/// How far behind the base a spare may be: an agent that begins with it begins as if it had its slot so much sooner.
const BEHIND_MAX: Duration = Duration::from_secs(15);
/// When one that is behind is made anew: early enough that it is not behind too far when it is wanted.
const RENEWED_AFTER: Duration = Duration::from_secs(8);

/// Who makes them: one thread at most.
pub(crate) struct WarmWorkspaceMaker {
    site: Arc<EngineContext>,
    thread: Option<JoinHandle<()>>,
}

impl WarmWorkspaceMaker {
    pub fn new(site: Arc<EngineContext>) -> Self {
        Self { site, thread: None }
    }

    /// Sees that as many stand ready as are wanted, as far as there are warm checkouts to make them of.
    pub fn refill_spares(&mut self, wanted: usize, base: Option<&landfall_model::Commit>) {
        let Some(base) = base.filter(|_| wanted > 0).map(ids::commit_to_oid) else { return };
        if self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let spares = self.site.pool.list_spares();
        let ready = spares.iter().filter(|spare| !is_stale(spare, &base)).count();
        if ready >= wanted || self.site.pool.warm_count() <= ready {
            return;
        }
        self.join_thread();
        let site = self.site.clone();
        let thread = std::thread::Builder::new().name("spare".to_owned()).spawn(move || {
            let _fuse = AbortOnPanic;
            for _ in ready..wanted {
                // What fails here is met again, and told, by whoever has to make a workspace.
                if !site.pool.make_spare(&base, &|spare| is_stale(spare, &base)).unwrap_or(false) {
                    break;
                }
            }
        });
        self.thread = thread.ok(); // without it workspaces are made when they are needed
    }

    /// Waits for what is being made.
    pub fn join_thread(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic there has ended the process
        }
    }
}

fn is_stale(spare: &WarmWorkspace, base: &Oid) -> bool {
    spare.base != *base && spare.age > RENEWED_AFTER
}

/// A spare for a task that begins, if one fits: at the base, or a little behind it with all that the task needs. Whoever has
/// begun before starts from where it was, or from the very base.
pub(crate) fn take_spare(
    site: &EngineContext,
    task: &Task,
    name: &str,
    branch: &str,
) -> Result<Option<Workspace>, GitError> {
    if task.workspace.is_some() || task.restart.is_some() || task.head.is_some() || task.counters.runs > 0 {
        return Ok(None);
    }
    let ours = crate::land::sync_base(site)?;
    let needs: Vec<Oid> = site.base.landed_commits(&task.spec.needs).iter().map(ids::commit_to_oid).collect();
    let fits = |spare: &WarmWorkspace| {
        let within = |commit: &Oid| site.store.is_ancestor(commit, &spare.base).unwrap_or(false);
        spare.base == ours
            || spare.age <= BEHIND_MAX
                && site.store.is_ancestor(&spare.base, &ours).unwrap_or(false)
                && needs.iter().all(within)
    };
    site.pool.prepare_spare(name, branch, &fits)
}

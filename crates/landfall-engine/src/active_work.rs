//! What is under way on this machine, and what is to end: checks that run, runs and batches that are given up, and whether the
//! recovery agent is at work.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use landfall_model::{Attempt, BatchId, TaskId};

use crate::caches::CacheNotice;

/// Shared by the threads that perform.
#[derive(Default)]
pub(crate) struct ActiveWork {
    state: Mutex<ActiveState>,
    /// Told when a check is over, and when the recovery agent is free again.
    changed: Condvar,
}

#[derive(Default)]
struct ActiveState {
    /// Attempts whose agent a person wants to end: one that is not there yet must not begin. An attempt that was stopped never
    /// goes on, so none is taken out: there are as many as a person asked for in a run.
    stops: BTreeMap<(TaskId, Attempt), AgentStopMode>,
    /// Batches whose checks nobody waits for any more; what they come to is not believed.
    abandoned: BTreeSet<BatchId>,
    /// The checks that run now, by their folders.
    checks: BTreeMap<PathBuf, ActiveCheck>,
    /// An agent looks at a failure: there is one at a time.
    is_diagnosing: bool,
    /// What was written down about caches that a run does not get, or cannot change.
    cache_notices: BTreeSet<CacheNotice>,
}

/// How an agent is to end that a person wants to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentStopMode {
    /// After the step of its own loop.
    AfterStep,
    /// Now.
    Now,
}

/// A check that began and has not ended.
#[derive(Debug, Clone)]
pub(crate) struct ActiveCheck {
    /// Whose verification it is part of: `T7-a2`, `B3-1`, `base`.
    pub name: String,
    /// What it is called.
    pub check: String,
    pub began_mono_ms: u64,
    pub limit_ms: u64,
}

impl ActiveWork {
    fn lock_state(&self) -> MutexGuard<'_, ActiveState> {
        self.state.lock().expect("no thread panics while it holds it")
    }

    /// A person wants the agent of this attempt to end.
    pub fn request_stop(&self, task: TaskId, attempt: Attempt, manner: AgentStopMode) {
        self.lock_state().stops.insert((task, attempt), manner);
    }

    /// How the agent of this attempt is to end, if a person wants it to.
    pub fn stop_mode(&self, task: TaskId, attempt: Attempt) -> Option<AgentStopMode> {
        self.lock_state().stops.get(&(task, attempt)).copied()
    }

    /// Nobody waits for the checks of this batch any more.
    pub fn abandon_batch(&self, batch: BatchId) {
        self.lock_state().abandoned.insert(batch);
    }

    /// Whether nobody waits for the check of this name: it is of a batch that is over.
    pub fn is_abandoned(&self, name: &str) -> bool {
        let batch = name.strip_prefix('B').and_then(|rest| rest.split('-').next()?.parse().ok()).map(BatchId);
        batch.is_some_and(|batch| self.lock_state().abandoned.contains(&batch))
    }

    /// A check begins in this folder.
    pub fn begin_check(&self, dir: &Path, begun: ActiveCheck) {
        self.lock_state().checks.insert(dir.to_owned(), begun);
    }

    /// The check in this folder is over.
    pub fn end_check(&self, dir: &Path) {
        self.lock_state().checks.remove(dir);
        self.changed.notify_all();
    }

    /// The checks that run now. A copy: files are read without the lock, which a starting check waits for.
    pub fn running_checks(&self) -> BTreeMap<PathBuf, ActiveCheck> {
        self.lock_state().checks.clone()
    }

    /// Waits until no check is on record, at most so long.
    pub fn wait_for_checks(&self, at_most: Duration) {
        let waited =
            self.changed.wait_timeout_while(self.lock_state(), at_most, |state| !state.checks.is_empty());
        drop(waited.expect("no thread panics while it holds it"));
    }

    /// Waits for the turn to have the recovery agent look. None: it was stopped before.
    pub fn begin_diagnosis(&self, is_stopped: &dyn Fn() -> bool) -> Option<RecoveryTurn<'_>> {
        const PAUSE: Duration = Duration::from_millis(50);
        let mut state = self.lock_state();
        while state.is_diagnosing {
            drop(state); // the question takes the lock itself
            if is_stopped() {
                return None;
            }
            // Woken when the agent is free; a stop is noticed after the pause.
            let waited =
                self.changed.wait_timeout_while(self.lock_state(), PAUSE, |state| state.is_diagnosing);
            (state, _) = waited.expect("no thread panics while it holds it");
        }
        state.is_diagnosing = true;
        Some(RecoveryTurn(self))
    }

    /// Whether this was not written down yet. From now on it is.
    pub fn is_new_notice(&self, notice: &CacheNotice) -> bool {
        self.lock_state().cache_notices.insert(notice.clone())
    }
}

/// The turn of one task to have the recovery agent look.
pub(crate) struct RecoveryTurn<'w>(&'w ActiveWork);

impl Drop for RecoveryTurn<'_> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).is_diagnosing = false;
        self.0.changed.notify_all();
    }
}

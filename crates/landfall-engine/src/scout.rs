//! Looking into work under way: which files it touches, and whether it still fits together. What is seen orders new starts
//! and is shown to people; it decides nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use landfall_host::git::{TrialMerge, WorkInProgress, Workspace};
use landfall_model::{PathPattern, TaskId};

use crate::effect_thread::start_effect_thread;
use crate::engine_context::EngineContext;
use crate::mail::EngineMessage;

/// Who looks, and when: one look at a time, at a steady pace.
pub(crate) struct OverlapWatcher {
    site: Arc<EngineContext>,
    busy: bool,
    looked_ms: Option<u64>,
}

const PACE_MS: u64 = 15_000; // an agent changes few files in that time, and a look costs a process for each
const PAIRS_MAX: usize = 32; // trial merges of one look

impl OverlapWatcher {
    pub fn new(site: Arc<EngineContext>) -> Self {
        Self { site, busy: false, looked_ms: None }
    }

    /// The look is over.
    pub fn finish_scan(&mut self) {
        self.busy = false;
    }

    /// How long until it is time for another look at work under way.
    pub fn remaining_wait(&self) -> Option<Duration> {
        if self.busy {
            return None;
        }
        let since = |at: u64| self.site.clock.mono_ms().saturating_sub(at);
        Some(Duration::from_millis(self.looked_ms.map_or(PACE_MS, |at| PACE_MS.saturating_sub(since(at)))))
    }

    /// Looks at the workspaces of these tasks, if it is time.
    pub fn start_scan_if_due(&mut self, tasks: impl Iterator<Item = TaskId>) {
        let now = self.site.clock.mono_ms();
        let due = self.looked_ms.is_some_and(|at| now.saturating_sub(at) >= PACE_MS);
        if self.looked_ms.is_none() {
            self.looked_ms = Some(now); // a workspace that was just made holds nothing yet
        }
        if self.busy || !due {
            return;
        }
        let tasks: Vec<TaskId> = tasks.collect();
        self.looked_ms = Some(now);
        if tasks.is_empty() {
            self.site.live.lock().view.clashes.clear(); // of those that were under way nobody is
            return;
        }
        self.busy = true;
        start_effect_thread(&self.site, "scout", move |site| {
            scan_workspaces(site, &tasks);
            let _ = site.mail.send(EngineMessage::ScoutOver); // the engine has left
        });
    }
}

fn scan_workspaces(site: &Arc<EngineContext>, tasks: &[TaskId]) {
    let mut seen: Vec<(TaskId, Workspace, BTreeSet<String>)> = Vec::new();
    for task in tasks {
        let Some(workspace) = site.pool.find_workspace(&task.to_string()) else { continue };
        // A workspace that is being made or given up cannot be read for a moment; the next look sees it.
        let Ok(paths) = site.store.changed_paths(&workspace) else { continue };
        let paths: BTreeSet<String> =
            paths.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
        let touches = paths.iter().filter_map(|path| PathPattern::for_file(path).ok()).collect();
        let _ = site.mail.send(EngineMessage::Observed(*task, touches)); // the engine has left
        seen.push((*task, workspace, paths));
    }
    let mut clashes: BTreeMap<(TaskId, TaskId), Vec<String>> = BTreeMap::new();
    let pairs =
        seen.iter().enumerate().flat_map(|(at, one)| seen[at + 1..].iter().map(move |other| (one, other)));
    let near = pairs.filter(|(one, other)| !one.2.is_disjoint(&other.2));
    for ((one, ours, _), (other, theirs, _)) in near.take(PAIRS_MAX) {
        let trial =
            site.store.trial_merge(WorkInProgress::Workspace(ours), WorkInProgress::Workspace(theirs));
        if let Ok(TrialMerge::Conflict { paths }) = trial {
            let paths = paths.iter().map(|it| String::from_utf8_lossy(&it.path).into_owned()).collect();
            clashes.insert((*one, *other), paths);
        }
    }
    site.live.lock().view.clashes = clashes;
}

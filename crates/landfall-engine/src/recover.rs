//! After a start: what the journal expects to be under way is performed, adopted, or found to be lost.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use landfall_model::{State, Task};

use crate::gate;
use crate::perform;
use crate::site::Site;

/// Ends the checks that an engine before us left running, so that the lanes are ours alone.
pub(crate) fn clear_lanes(site: &Site) {
    for lane in std::fs::read_dir(site.folder.lanes()).into_iter().flatten().flatten() {
        let note = lane.path().join("running");
        let Ok(bytes) = std::fs::read(&note) else { continue };
        let dir = Path::new(OsStr::from_bytes(&bytes));
        if dir.starts_with(site.folder.attempts()) {
            gate::end_check(site, dir);
        }
        drop(std::fs::remove_file(&note)); // a note that stays is read again next time
    }
}

/// Gives up the rooms of reviewers who are not at work: of a task that failed meanwhile, or whose engine was lost.
pub(crate) fn clear_rooms<'a>(site: &Site, tasks: impl Iterator<Item = &'a Arc<Task>>) {
    let stand: BTreeSet<String> = std::fs::read_dir(site.folder.workspaces())
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix("-review").map(str::to_owned))
        .collect();
    let is_idle = |task: &&Arc<Task>| {
        let at_work = matches!(task.state, State::Active { .. }) && perform::reads(task);
        stand.contains(&task.id.to_string()) && !at_work
    };
    for task in tasks.filter(|_| !stand.is_empty()).filter(is_idle) {
        // One that cannot be given up stays: `doctor` and `reclaim` see it.
        drop(perform::give_up_reading(site, task, task.attempt));
    }
}

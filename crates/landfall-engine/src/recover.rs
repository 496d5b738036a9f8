//! After a start: what the journal expects to be under way is performed, adopted, or found to be lost.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use landfall_model::{Effect, World, expects};

use crate::gate;
use crate::site::Site;

/// Every effect that some task expects to be under way. Stops come first: what a person has ended must not begin.
pub(crate) fn expected(world: &World) -> Vec<Effect> {
    let mut effects: Vec<Effect> = world.tasks().flat_map(|task| expects(task)).collect();
    effects.sort_by_key(|effect| !matches!(effect, Effect::Kill { .. }));
    effects
}

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

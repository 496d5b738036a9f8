//! After a start: what the journal expects to be under way is performed, adopted, or found to be lost.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::gate;
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

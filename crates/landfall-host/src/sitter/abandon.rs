//! Ending a run by force: for a sitter that does not answer, or that we cannot follow.

use super::files;
use super::find::{self, SitterIdentity};
use super::identity;
use super::sitting::{SitterProcess, SweepError};
use super::sweep;
use super::tree::ProcessTreeKiller;
use crate::wait::{FolderWatch, retry_until};
use rustix::process::{Signal, pidfd_send_signal};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Ends whatever runs in `dir`, its sitter too, and sees to it that nothing ever will: a sitter that has not yet said who
/// it is finds its place taken and leaves. Returns how many processes were swept; none is left without an error.
pub fn abandon_sitter(dir: &Path, marker: &str) -> Result<u32, SweepError> {
    const SPAN: Duration = Duration::from_millis(20); // a sitter writes its name right after it has made the file for it
    if !is_barred(dir) {
        let deadline = Instant::now() + SPAN;
        let watch = FolderWatch::new(dir);
        loop {
            if let Ok(SitterIdentity::Known(sitting)) = find::find_identity(dir) {
                kill_sitter(&sitting);
                break;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            watch.wait(left);
        }
    }
    sweep::sweep_processes(marker)
}

/// Takes the place of the sitter's name. False: it is taken, or there is no folder that a sitter could be in.
fn is_barred(dir: &Path) -> bool {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(dir.join(files::SITTER)).is_ok()
}

/// Kills exactly this sitter. Its tree comes first, while it still hangs together; the sitter is held meanwhile.
fn kill_sitter(sitting: &SitterProcess) {
    const HUNT: Duration = Duration::from_secs(5); // a fork bomb is over in a few rounds; the sweep goes on from there
    const PAUSE: Duration = Duration::from_millis(2);
    const END_MS: i64 = 1_000; // what is killed and does not end is stuck in the kernel
    let Ok(Some(handle)) = sitting.open_handle() else { return };
    pidfd_send_signal(&handle, Signal::STOP).ok(); // gone already is as good
    let mut hunt = ProcessTreeKiller::new(sitting.pid);
    let over = || (!hunt.run_round().is_ok_and(|left| left > 0)).then_some(());
    let _ = retry_until(HUNT, PAUSE, over); // where it is not over, the sweep goes on from there
    pidfd_send_signal(&handle, Signal::KILL).ok(); // as above
    if identity::wait_ended(&handle, END_MS).is_ok_and(|ended| ended) {
        identity::reap_child(&handle);
    }
}

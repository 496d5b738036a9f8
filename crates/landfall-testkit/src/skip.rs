//! Tests that cannot run on this machine.

use std::process::{Command, Stdio};

/// Reports that the calling test does not run here, and why. `cargo xtask test` lists it as skipped, and fails where
/// nothing may be skipped.
pub fn skip_test(reason: &str) {
    eprintln!("landfall-skip: {reason}");
}

/// Whether tmux is installed. If it is not, the calling test is reported as skipped.
#[must_use]
pub fn has_tmux() -> bool {
    let version = Command::new("tmux").arg("-V").stdout(Stdio::null()).status();
    let found = version.is_ok_and(|status| status.success());
    if !found {
        skip_test("tmux is not installed");
    }
    found
}

//! What of the sandbox this machine has: for a person who asks before it matters.

use super::enter::{Halt, Step};
use super::mounts::{Apart, Network};
use super::places::Places;
use super::rules;
use super::setup::Broken;
use super::words::{Available, Level, Missing};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::os::fd::AsRawFd as _;

/// Says what of the sandbox this machine has, by trying. Takes a millisecond or two and leaves nothing behind.
pub fn probe() -> Result<Available, Missing> {
    let landlock = rules::check()?;
    // They need the same rights of the machine, but for the network: what the first cannot have, the second cannot either.
    let isolated = missing_for(Level::Isolated);
    let strict = match &isolated {
        Some(missing) => Some(Missing { level: Level::Strict, ..missing.clone() }),
        None => missing_for(Level::Strict),
    };
    Ok(Available { landlock, isolated, strict })
}

/// Whether this machine can put up the level with mounts of its own and an open network.
pub(super) fn is_isolation_supported() -> bool {
    rules::check().is_ok() && missing_for(Level::Isolated).is_none()
}

/// Tries in a child, as nobody comes back from a namespace of their own.
fn missing_for(level: Level) -> Option<Missing> {
    const MOUNTS: i32 = 128; // error numbers that matter are smaller, so both fit into an exit code
    let missing = |feature: String| Some(Missing { level, feature });
    if Broken::asked_for() == Some(Broken::Namespaces) {
        return missing(Broken::NO_NAMESPACES.to_owned());
    }
    let network = if level == Level::Strict { Network::None } else { Network::Open };
    let places = Places::default();
    let prepared = rules::rules(&places, None)
        .and_then(|rules| Ok((rules, Apart::new(&places, None, "probe", network)?)));
    let (rules, apart) = match prepared {
        Ok(prepared) => prepared,
        Err(refusal) => return missing(refusal.to_string()),
    };
    // SAFETY: the child makes only system calls on memory that exists already, and leaves by `_exit`; so it does not
    // matter what other threads held at the fork.
    let child = unsafe {
        match libc::fork() {
            0 => match apart.enter(rules.as_raw_fd(), false) {
                Ok(()) => libc::_exit(0),
                Err(Halt { step: Step::Mounts, errno }) => libc::_exit(errno.clamp(1, 127) | MOUNTS),
                Err(Halt { errno, .. }) => libc::_exit(errno.clamp(1, 127)),
            },
            child => child,
        }
    };
    let failed = |error: std::io::Error| missing(format!("start a process to try it: {error}"));
    let Some(pid) = Pid::from_raw(child).filter(|_| child > 0) else {
        return failed(std::io::Error::last_os_error());
    };
    let status = loop {
        match waitpid(Some(pid), WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return failed(error.into()),
            Ok(status) => break status,
        }
    };
    match status.and_then(|(_, status)| status.exit_status()) {
        Some(0) => None,
        Some(code) if code & MOUNTS != 0 => Some(Step::Mounts.wanting(level, code & !MOUNTS)),
        Some(errno) => Some(Step::Namespaces.wanting(level, errno)),
        None => missing("a process that tried it was killed".to_owned()),
    }
}

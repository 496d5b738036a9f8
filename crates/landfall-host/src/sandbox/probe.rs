//! What of the sandbox this machine has: for a person who asks before it matters.

use super::enter::Step;
use super::mounts::Apart;
use super::places::Places;
use super::rules;
use super::words::{Available, Level, Missing};
use rustix::process::{Pid, WaitOptions, waitpid};

/// Says what of the sandbox this machine has, by trying. Takes a millisecond or two and leaves nothing behind.
pub fn probe() -> Result<Available, Missing> {
    let landlock = rules::check()?;
    Ok(Available { landlock, strict: without_namespaces() })
}

/// Tries in a child, as nobody comes back from a namespace of their own.
fn without_namespaces() -> Option<Missing> {
    let missing = |feature: String| Some(Missing { level: Level::Strict, feature });
    let places = Places { write: vec![], read: vec![], hide: vec![] };
    let apart = match Apart::new(&places, None) {
        Ok(apart) => apart,
        Err(refusal) => return missing(refusal.to_string()),
    };
    // SAFETY: the child makes only system calls on memory that exists already, and leaves by `_exit`; so it does not
    // matter what other threads held at the fork.
    let child = unsafe {
        match libc::fork() {
            0 => match apart.unshare(false) {
                Ok(()) => libc::_exit(0),
                Err(halt) => libc::_exit(halt.errno.clamp(1, 255)),
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
        errno => missing(Step::namespaces_wanting(errno.unwrap_or(libc::EPERM))),
    }
}

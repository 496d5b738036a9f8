//! Waits for events of the system, each with a limit: the end of a child, a change in a folder, a condition that the kernel
//! reports to nobody.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Waits until one of the descriptors is ready; `false` when the deadline has passed.
pub(crate) fn poll_until(polled: &mut [PollFd<'_>], deadline: Instant) -> io::Result<bool> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec {
            tv_sec: i64::try_from(left.as_secs().min(3600)).expect("an hour at most"),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(polled, Some(&left)) {
            Ok(0) if Instant::now() >= deadline => return Ok(false),
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits for the end of a child; none when the deadline has passed.
///
/// # Errors
/// When the child cannot be waited for.
pub fn wait_for_child(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    if let Some(status) = child.try_wait()? {
        return Ok(Some(status));
    }
    let Ok(pidfd) = pidfd_open(Pid::from_child(child), PidfdFlags::empty()) else {
        // No descriptor is left to wait on. Whoever is told of an error would kill a child that is well.
        let span = deadline.saturating_duration_since(Instant::now());
        return retry_until(span, Duration::from_millis(20), || child.try_wait().transpose()).transpose();
    };
    if !poll_until(&mut [PollFd::new(&pidfd, PollFlags::IN)], deadline)? {
        return Ok(None);
    }
    child.wait().map(Some)
}

/// Tries until it succeeds or the time is over, with a pause in between. For conditions without an event: a lock that another
/// process holds, a process tree that keeps forking. Everything else waits for its event.
pub fn retry_until<T>(span: Duration, pause: Duration, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + span;
    loop {
        let done = attempt();
        if done.is_some() || Instant::now() >= deadline {
            return done;
        }
        std::thread::sleep(pause);
    }
}

/// Notices changes in a folder.
#[derive(Debug)]
pub struct FolderWatch {
    /// None where the kernel has no watch left, or the folder is not there: then every wait takes its whole time.
    inotify: Option<OwnedFd>,
}

impl FolderWatch {
    /// Watches the entries of this folder, but not the folders below it.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        let changes = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::MODIFY
            | WatchFlags::CLOSE_WRITE; // also the end of a process that held a lock file open
        Self::watch_changes(folder, changes)
    }

    /// Watches only what is written to files of this folder: whoever reads them there does not wake itself by that.
    #[must_use]
    pub fn for_writes(folder: &Path) -> Self {
        Self::watch_changes(folder, WatchFlags::MODIFY)
    }

    fn watch_changes(folder: &Path, changes: WatchFlags) -> Self {
        let watch = || -> io::Result<OwnedFd> {
            let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
            inotify::add_watch(&inotify, folder, changes)?;
            Ok(inotify)
        };
        Self { inotify: watch().ok() }
    }

    /// Waits for a change since this was made or last waited, at most for `span`. Returns whether there was one.
    pub fn wait(&self, span: Duration) -> bool {
        let deadline = Instant::now() + span;
        let Some(inotify) = &self.inotify else {
            let _ = poll_until(&mut [], deadline); // without descriptors it ends with the time
            return false;
        };
        let changed = poll_until(&mut [PollFd::new(inotify, PollFlags::IN)], deadline).unwrap_or(false);
        if changed {
            let mut events = [0; 4096];
            while rustix::io::read(inotify, &mut events).is_ok_and(|count| count > 0) {} // which ones, nobody asks
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_in_a_folder_ends_the_wait() {
        let folder = tempfile::tempdir().expect("a folder");
        let watch = FolderWatch::new(folder.path());
        assert!(!watch.wait(Duration::ZERO));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| watch.wait(Duration::from_secs(600)));
            std::fs::write(folder.path().join("new"), "x").expect("written");
            assert!(waits.join().expect("it returns"));
        });
        while watch.wait(Duration::ZERO) {} // what the same write reported later
        // A lock file that its holder closes.
        let held = std::fs::File::create(folder.path().join("lock")).expect("made");
        while watch.wait(Duration::ZERO) {}
        drop(held);
        assert!(watch.wait(Duration::from_secs(600)));
    }

    #[test]
    fn a_folder_that_is_not_there_is_waited_for_as_long_as_asked() {
        let watch = FolderWatch::new(Path::new("/no/such/folder"));
        let began = Instant::now();
        assert!(!watch.wait(Duration::from_millis(20)));
        assert!(began.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn the_end_of_a_child_ends_the_wait_and_a_deadline_does_too() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().expect("it starts");
        let soon = Instant::now() + Duration::from_millis(20);
        assert_eq!(wait_for_child(&mut child, soon).expect("ours"), None);
        child.kill().expect("ours");
        let late = Instant::now() + Duration::from_secs(600);
        assert!(wait_for_child(&mut child, late).expect("ours").is_some());
    }
}

//! Which process is meant: its id together with when it was started, because ids are used again.

use super::sitting::SitterProcess;
use crate::disk;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};

/// Whether a read below `/proc` failed because the process ended after the file was opened.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// When process `pid` was started, in the kernel's ticks since boot; none if there is no such process, or
/// none can be looked at.
pub fn started_of(pid: i32) -> Option<u64> {
    ProcessStat::read_process(pid).ok().flatten().map(|stat| stat.started)
}

/// What the control group and the mounts of a run are called. A marker may hold anything, so it is hashed (FNV-1a: names need
/// to differ, not to be secret).
pub(super) fn run_name(marker: &str) -> String {
    format!("landfall.{:016x}", hash(marker))
}

/// The number that stands for a marker.
pub(super) fn hash(marker: &str) -> u64 {
    marker
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What the kernel says about a process, as far as we look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessStat {
    pub(super) pid: i32,
    pub(super) state: u8,
    pub(super) parent: i32,
    pub(super) started: u64,
}

impl ProcessStat {
    /// None: there is no such process. An error says nothing about it: this process may only be short of descriptors.
    pub(super) fn read_process(pid: i32) -> io::Result<Option<ProcessStat>> {
        let mut text = [0; 1024]; // at most some 400 bytes: a short name and fifty numbers
        let read = File::open(format!("/proc/{pid}/stat")).and_then(|mut file| file.read(&mut text));
        match read {
            Ok(read) => Ok(ProcessStat::parse(&text[..read])),
            Err(error) if error.kind() == io::ErrorKind::NotFound || is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The program's name comes second, in brackets, and may itself hold brackets and blanks: so from the last one on.
    fn parse(text: &[u8]) -> Option<ProcessStat> {
        const STARTED: usize = 22 - 3; // counted as in proc(5), from the state, which is the third
        let pid = std::str::from_utf8(text.split(|byte| *byte == b' ').next()?).ok()?.parse().ok()?;
        let close = text.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(text.get(close + 2..)?).ok()?;
        let mut fields = rest.split(' ');
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let started = fields.nth(STARTED - 2)?.parse().ok()?;
        Some(ProcessStat { pid, state, parent, started })
    }

    /// Dead, and only waiting to be collected.
    pub(super) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }
}

/// A handle on exactly the process that was meant; none if that one is gone. The order matters: the handle first, then
/// the look at who it is. Whoever has the id at both moments is the same process.
pub(super) fn open_process(pid: i32, started: u64) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = (pid > 0).then(|| Pid::from_raw(pid)).flatten() else { return Ok(None) };
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(rustix::io::Errno::SRCH | rustix::io::Errno::INVAL) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match ProcessStat::read_process(pid.as_raw_nonzero().get())? {
        Some(stat) if stat.started == started => Ok(Some(handle)),
        Some(_) | None => Ok(None),
    }
}

/// Signals exactly the process that was meant. False: it is gone, or not ours to signal.
pub(super) fn signal_process(pid: i32, started: u64, signal: Signal) -> bool {
    matches!(open_process(pid, started), Ok(Some(handle)) if pidfd_send_signal(&handle, signal).is_ok())
}

impl SitterProcess {
    /// A handle on the sitter if it still runs; a dead one that is our own child is collected on the way.
    pub(super) fn open_handle(&self) -> io::Result<Option<OwnedFd>> {
        if self.boot != disk::boot_id()? {
            return Ok(None);
        }
        let Some(handle) = open_process(self.pid, self.started)? else { return Ok(None) };
        if has_ended(&handle)? {
            reap_child(&handle);
            return Ok(None);
        }
        Ok(Some(handle))
    }
}

/// Whether the process behind a handle has ended, collected or not.
pub(super) fn has_ended(handle: &OwnedFd) -> io::Result<bool> {
    wait_ended(handle, 0)
}

/// Waits up to `ms` for the process behind a handle to end.
pub(super) fn wait_ended(handle: &OwnedFd, ms: i64) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(handle, PollFlags::IN)];
    let span = Timespec { tv_sec: ms / 1000, tv_nsec: (ms % 1000) * 1_000_000 };
    match poll(&mut fds, Some(&span)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Collects an ended process if it is our child, so that no zombie stays. By handle, never by id: another thread's
/// child may have the id by now.
pub(super) fn reap_child(handle: &OwnedFd) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    waitid(WaitId::PidFd(handle.as_fd()), options).ok(); // someone else's child, or already collected: both are fine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_named_to_confuse_does_not() {
        let line = b"77 (a) R 1 (b)) S 5 77 77 0 -1 4194304 1 0 1 0 0 0 0 0 20 0 1 0 98619 31 395\n";
        assert_eq!(
            ProcessStat::parse(line),
            Some(ProcessStat { pid: 77, state: b'S', parent: 5, started: 98619 })
        );
        assert_eq!(ProcessStat::parse(b""), None);
        assert_eq!(ProcessStat::parse(b"77 (a"), None);
    }

    #[test]
    fn we_find_ourselves_and_not_our_double() {
        let me = i32::try_from(std::process::id()).expect("small");
        let stat = ProcessStat::read_process(me).expect("can look").expect("we run");
        assert!(open_process(me, stat.started).expect("can look").is_some());
        assert!(open_process(me, stat.started + 1).expect("can look").is_none());
        assert!(open_process(-1, stat.started).expect("can look").is_none());
        assert!(open_process(0, 0).expect("can look").is_none());
    }
}

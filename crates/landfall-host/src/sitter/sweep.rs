//! Finding processes by the mark in their environment: what a sitter that was killed left behind.

use super::cgroup;
use super::identity::{self, ProcessStat};
use super::run_mark;
use super::sitting::{SweepError, is_shortage};
use super::tree;
use crate::wait::poll_until;
use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;
use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The variable that marks every process of a run.
pub(super) const MARK: &str = "LANDFALL_MARK";

/// Kills all processes of our user whose environment carries `marker`, with everything below them, and the control
/// groups made for it. Returns how many there were. None is left when it returns without an error.
///
/// An orphan that threw its environment away is known by its control group, in a sandbox with mounts of its own by those, and
/// by its mark among the limits. Outside of a sandbox it can change its limits; without a control group it is not found then, if
/// its sitter was killed as well.
pub fn sweep_processes(marker: &str) -> Result<u32, SweepError> {
    let own = i32::try_from(std::process::id()).expect("process ids are small");
    let in_groups = if marker.is_empty() { 0 } else { cgroup::sweep_groups(marker) };
    Ok(in_groups + sweep_sparing(marker, own)?)
}

/// Kills by marker alone, sparing `spared`.
pub(super) fn sweep_sparing(marker: &str, spared: i32) -> Result<u32, SweepError> {
    const SPAN: Duration = Duration::from_secs(5); // a fork bomb is stopped in a few rounds; what remains is stuck
    const PAUSE: Duration = Duration::from_millis(2);
    if marker.is_empty() {
        return Err(SweepError::NoMarker);
    }
    let entry = format!("{MARK}={marker}").into_bytes();
    let user = rustix::process::getuid().as_raw();
    let mounts = OwnMounts::for_run(marker);
    let mark = run_mark::mark_for_marker(marker);
    let mut seen: HashSet<(i32, u64)> = HashSet::new();
    let until = Instant::now() + SPAN;
    loop {
        let all: Vec<ProcessStat> = tree::list_processes()?.collect::<io::Result<_>>()?;
        let mut found: Vec<ProcessStat> = Vec::new();
        for stat in &all {
            if stat.pid != spared
                && !stat.is_dead()
                && (is_ours(stat.pid, user)
                    && (has_environment_entry(stat.pid, &entry)? || mounts.contains_process(stat.pid))
                    || run_mark::mark_of_process(stat.pid)? == Some(mark) && may_be_ended(stat.pid, user))
            {
                found.push(*stat);
            }
        }
        let roots: Vec<i32> = found.iter().map(|stat| stat.pid).collect();
        found.extend(tree::find_descendants(&all, &roots).into_iter().filter(|stat| stat.pid != spared));
        if found.is_empty() {
            return Ok(u32::try_from(seen.len()).unwrap_or(u32::MAX));
        }
        if Instant::now() > until {
            return Err(SweepError::Left { marker: marker.to_owned(), left: found.len() });
        }
        // Stopped first, killed once a look shows nobody new: the same way as `tree::ProcessTreeKiller`, and for the same reason.
        let mut fresh = false;
        for stat in &found {
            if seen.insert((stat.pid, stat.started)) {
                fresh = true;
                identity::signal_process(stat.pid, stat.started, Signal::STOP);
            }
        }
        if !fresh {
            for stat in &found {
                identity::signal_process(stat.pid, stat.started, Signal::KILL);
            }
            wait_for_one(&found, PAUSE);
        }
    }
}

/// Waits until one of these processes ends, at most so long. The others mostly end with it.
fn wait_for_one(killed: &[ProcessStat], most: Duration) {
    let handle = killed.iter().find_map(|stat| identity::open_process(stat.pid, stat.started).ok().flatten());
    let mut polled: Vec<PollFd<'_>> =
        handle.iter().map(|handle| PollFd::new(handle, PollFlags::IN)).collect();
    let _ = poll_until(&mut polled, Instant::now() + most); // whether one ended shows at the next look
}

/// How a process in a mount namespace of a run's own is known: nobody inside can take the run's mounts away.
struct OwnMounts {
    /// The namespace that we are in, and most others with us.
    outside: Option<PathBuf>,
    /// How a line of the list of mounts goes on after its separator.
    line_end: String,
}

impl OwnMounts {
    fn for_run(marker: &str) -> OwnMounts {
        let outside = fs::read_link("/proc/self/ns/mnt").ok();
        OwnMounts { outside, line_end: format!(" - tmpfs {} ", identity::run_name(marker)) }
    }

    fn contains_process(&self, pid: i32) -> bool {
        match fs::read_link(format!("/proc/{pid}/ns/mnt")) {
            Ok(namespace) if Some(&namespace) != self.outside.as_ref() => {
                let list = fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
                list.lines().any(|line| line.contains(&self.line_end))
            }
            _ => false,
        }
    }
}

fn is_ours(pid: i32, user: u32) -> bool {
    fs::metadata(format!("/proc/{pid}")).is_ok_and(|meta| meta.uid() == user)
}

/// Whether a user may end a process: root each one, others their own. By its status: the files of a process that closes itself
/// to others belong to root.
fn may_be_ended(pid: i32, user: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    user == 0 || users.split_whitespace().any(|of_process| of_process.parse() == Ok(user))
}

/// Whether the environment of a process has this entry. An error: the machine is short of what reading it takes. A
/// process that ended, or that the kernel does not let us read, has none.
fn has_environment_entry(pid: i32, entry: &[u8]) -> io::Result<bool> {
    match fs::read(format!("/proc/{pid}/environ")) {
        Ok(env) => Ok(env.split(|byte| *byte == 0).any(|found| found == entry)),
        Err(error) if is_shortage(&error) => Err(error),
        Err(_) => Ok(false),
    }
}

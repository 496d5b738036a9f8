//! Whose child a process is: for a service that must not be used by the agents it serves, and for one that is there for
//! a single agent.
//!
//! No process gets out of its tree while its sitter lives: whoever loses its parent becomes the sitter's own child. If the
//! sitter is killed, the control group of the run still says whose its processes are, where there is one, and so does the mark
//! among their limits.
//!
//! Processes are meant by handles of the kernel, because ids are used again: what is read by an id counts only if the
//! handle's process still runs after it was read.

use super::cgroup;
use super::identity::{ProcessStat, has_ended};
use super::run_mark::mark_of_process;
use super::start::WORD;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

/// Whether the process behind a handle belongs to the tree of any sitter, is one, or is in the control group of a run: of
/// whatever project, and whoever started it. A sitter or a group that we belong to ourselves does not count, so that an
/// agent may use a Landfall of its own. None if the process has ended or it cannot be told; then nothing should be allowed.
pub fn is_confined(process: impl AsFd) -> Option<bool> {
    let process = RunningProcess::from_handle(process.as_fd().try_clone_to_owned().ok()?)?;
    let own: HashSet<(i32, u64)> = list_ancestors(own_process()?)
        .map(|process| process.map(|process| (process.stat.pid, process.stat.started)))
        .collect::<Option<_>>()?;
    if is_in_group_of_run(&process)? || has_mark_of_run(&process)? {
        return Some(true);
    }
    for process in list_ancestors(process) {
        let process = process?;
        if own.contains(&(process.stat.pid, process.stat.started)) {
            return Some(false); // from here on up its line is ours
        }
        if is_sitter(&process)? {
            return Some(true);
        }
    }
    Some(false)
}

fn is_in_group_of_run(process: &RunningProcess) -> Option<bool> {
    let group = |of: &str| {
        let groups = std::fs::read_to_string(format!("/proc/{of}/cgroup")).ok()?;
        Some(cgroup::group_in(&groups).unwrap_or("/").to_owned())
    };
    let (own, theirs) = (group("self")?, group(&process.stat.pid.to_string())?);
    process.still_runs().then(|| cgroup::is_of_run(&own, &theirs))
}

/// Whether it carries the mark of a run that we are not in.
fn has_mark_of_run(process: &RunningProcess) -> Option<bool> {
    let (own, theirs) = (mark_of_process(own_pid()).ok()?, mark_of_process(process.stat.pid).ok()?);
    process.still_runs().then_some(theirs.is_some() && theirs != own)
}

/// Whether who made this connection belongs to the tree of `root`. None as above.
pub(super) fn is_peer_within(root: &ProcessStat, socket: impl AsFd) -> Option<bool> {
    is_below(&HashSet::from([(root.pid, root.started)]), peer_pid(socket)?)
}

pub(super) fn own_pid() -> i32 {
    i32::try_from(std::process::id()).expect("process ids are small")
}

fn is_below(roots: &HashSet<(i32, u64)>, pid: i32) -> Option<bool> {
    for process in list_ancestors(RunningProcess::of_id(pid)?) {
        let process = process?;
        if roots.contains(&(process.stat.pid, process.stat.started)) {
            return Some(true);
        }
    }
    Some(false)
}

fn own_process() -> Option<RunningProcess> {
    RunningProcess::of_id(own_pid())
}

/// A process that ran when its line in `/proc` was read.
struct RunningProcess {
    handle: OwnedFd,
    stat: ProcessStat,
}

impl RunningProcess {
    /// The process behind a handle; none if it has ended.
    fn from_handle(handle: OwnedFd) -> Option<Self> {
        let stat = ProcessStat::read_process(pid_of(&handle)?).ok()??;
        let process = Self { handle, stat };
        process.still_runs().then_some(process) // so the id was its own while we read
    }

    fn of_id(pid: i32) -> Option<Self> {
        Self::from_handle(open_id(pid)?)
    }

    fn still_runs(&self) -> bool {
        has_ended(&self.handle).is_ok_and(|ended| !ended)
    }

    /// Its parent: some of none where it has none, none where it cannot be told.
    fn find_parent(&self) -> Option<Option<RunningProcess>> {
        const TRIES: u32 = 16; // each parent that ends meanwhile costs one, and nobody loses many in a moment
        for _ in 0..TRIES {
            let parent = ProcessStat::read_process(self.stat.pid).ok()??.parent;
            if !self.still_runs() {
                return None;
            }
            if parent == 0 {
                return Some(None);
            }
            let Some(handle) = open_id(parent) else { continue };
            // Still its parent after the handle was made: so the handle is on the parent, and not on one with its number.
            let same = ProcessStat::read_process(self.stat.pid).ok()??.parent == parent && self.still_runs();
            if let (true, Some(parent)) = (same, Self::from_handle(handle)) {
                return Some(Some(parent));
            }
        }
        None
    }
}

fn open_id(pid: i32) -> Option<OwnedFd> {
    let pid = (pid > 0).then(|| Pid::from_raw(pid)).flatten()?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// The id of the process behind a handle; none if it has ended, or is not of our world.
fn pid_of(handle: &OwnedFd) -> Option<i32> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", handle.as_raw_fd())).ok()?;
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()?;
    (pid > 0).then_some(pid)
}

/// The process and its forebears, itself first. A last item of none: the line goes on, but we cannot follow it.
fn list_ancestors(process: RunningProcess) -> impl Iterator<Item = Option<RunningProcess>> {
    const DEPTH_MAX: u32 = 128; // nobody is so deep by chance, and looking at who is shall not keep us busy
    let (mut next, mut depth) = (Some(Some(process)), 0);
    std::iter::from_fn(move || {
        let Some(process) = next.take()? else { return Some(None) };
        depth += 1;
        if depth > DEPTH_MAX {
            return Some(None);
        }
        next = match process.find_parent() {
            Some(None) => None,
            Some(Some(parent)) => Some(Some(parent)),
            None => Some(None),
        };
        Some(Some(process))
    })
}

/// Whether a process is a sitter, by the words it was started with: nobody but itself can change them, and it does not.
fn is_sitter(process: &RunningProcess) -> Option<bool> {
    const WORDS_MAX: u64 = 16 << 10; // a path has at most 4 KiB
    let mut words = Vec::new();
    let file = File::open(format!("/proc/{}/cmdline", process.stat.pid)).ok()?;
    file.take(WORDS_MAX).read_to_end(&mut words).ok()?;
    if is_order(&words) {
        return Some(true);
    }
    // A dead one has no words any more, and those of another with its number say nothing about it.
    process.still_runs().then_some(false)
}

/// Whether these are the words that `start` starts a sitter with: a name, the command, and a folder's full path.
fn is_order(words: &[u8]) -> bool {
    let Some(words) = words.strip_suffix(b"\0") else { return false };
    let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
    matches!(words[..], [_, word, [b'/', ..]] if word == WORD.to_bytes())
}

/// The process that made the connection; none if it is not of our world, or the socket does not know.
fn peer_pid(socket: impl AsFd) -> Option<i32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = libc::socklen_t::try_from(size_of::<libc::ucred>()).expect("a few bytes");
    // By hand: rustix takes the id for one that is never zero, and for a process of another namespace it is.
    // SAFETY: `peer` is plain numbers and as large as `len` says; both outlive the call.
    let code = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut len,
        )
    };
    (code == 0 && peer.pid > 0).then_some(peer.pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_words_of_a_sitter_make_one() {
        for sitter in ["landfall\0sit\0/a\0", "\0sit\0/\0", "/usr/bin/landfall-2\0sit\0/a b/c\nd\0"] {
            assert!(is_order(sitter.as_bytes()), "{sitter:?}");
        }
        for other in [
            "",
            "\0",
            "landfall\0",
            "landfall\0sit\0",
            "landfall\0sit\0\0",
            "landfall\0sit\0a\0",
            "landfall\0sit\0/a",
            "landfall\0sit\0/a\0\0",
            "landfall\0sit\0/a\0/b\0",
            "landfall\0--quiet\0sit\0/a\0",
            "landfall\0site\0/a\0",
            "landfall sit /a\0",
            "sh\0-c\0landfall sit /a\0",
        ] {
            assert!(!is_order(other.as_bytes()), "{other:?}");
        }
    }

    #[test]
    fn a_line_begins_with_oneself_and_ends() {
        let own: Vec<Option<ProcessStat>> =
            list_ancestors(own_process().expect("we run")).map(|it| it.map(|process| process.stat)).collect();
        assert_eq!(own[0].expect("we run").pid, own_pid());
        assert!(
            own.iter().all(Option::is_some) && own.last().is_some_and(|it| it.expect("some").parent == 0)
        );
        for nobody in [i32::MAX, 0, -1, i32::MIN] {
            assert!(RunningProcess::of_id(nobody).is_none(), "{nobody}");
        }
    }

    #[test]
    fn a_handle_on_a_process_that_has_ended_is_nobody() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("runs");
        let handle = open_id(i32::try_from(child.id()).expect("small")).expect("it runs");
        assert_eq!(is_confined(&handle), Some(false));
        child.kill().expect("ours");
        // Dead and not collected, and then collected.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !has_ended(&handle).expect("can look") {
            assert!(std::time::Instant::now() < until, "it does not end");
            std::thread::yield_now();
        }
        assert_eq!(is_confined(&handle), None);
        child.wait().expect("ours");
        assert_eq!(is_confined(&handle), None);
        // What is no handle on a process is nobody, too.
        assert_eq!(is_confined(std::fs::File::open("/dev/null").expect("there")), None);
    }
}

//! Whose child a process is: for a service that must not be used by the agents it serves, and for one that is there for
//! a single agent.
//!
//! No process gets out of its tree while its sitter lives: whoever loses its parent becomes the sitter's own child.

use super::identity::Stat;
use super::sitting::Sitting;
use super::start::WORD;
use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, AsRawFd as _};

/// Whether the process `pid` belongs to the tree of one of these sitters, or is one of them. None if there is no such
/// process, or its line is cut by one that ends as we look: then nothing can be said, and nothing should be allowed.
pub fn is_within(sittings: &[Sitting], pid: i32) -> Option<bool> {
    let sitters: HashSet<(i32, u64)> = sittings.iter().map(|it| (it.pid, it.started)).collect();
    is_below(&sitters, pid)
}

/// Whether the process `pid` belongs to the tree of any sitter, or is one: of whatever project, and whoever started it.
/// A sitter that we belong to ourselves does not count, so that an agent may use a Landfall of its own. None if it cannot
/// be told, as above; then too nothing should be allowed.
pub fn is_confined(pid: i32) -> Option<bool> {
    let own: HashSet<(i32, u64)> =
        line(own_pid()).map(|stat| stat.map(|stat| (stat.pid, stat.started))).collect::<Option<_>>()?;
    for stat in line(pid) {
        let stat = stat?;
        if own.contains(&(stat.pid, stat.started)) {
            return Some(false); // from here on up its line is ours
        }
        if is_sitter(&stat)? {
            return Some(true);
        }
    }
    Some(false)
}

/// Whether who made this connection belongs to the tree of `root`. None as above.
pub(super) fn is_peer_within(root: &Stat, socket: impl AsFd) -> Option<bool> {
    is_below(&HashSet::from([(root.pid, root.started)]), peer(socket)?)
}

pub(super) fn own_pid() -> i32 {
    i32::try_from(std::process::id()).expect("process ids are small")
}

fn is_below(roots: &HashSet<(i32, u64)>, pid: i32) -> Option<bool> {
    for stat in line(pid) {
        let stat = stat?;
        if roots.contains(&(stat.pid, stat.started)) {
            return Some(true);
        }
    }
    Some(false)
}

/// The process and its forebears, itself first. A last item of none: the line goes on, but we cannot follow it.
fn line(pid: i32) -> impl Iterator<Item = Option<Stat>> {
    const DEPTH_MAX: u32 = 512; // nobody is so deep by chance, and looking at who is shall not keep us busy
    let (mut next, mut child_started, mut depth) = (Some(pid), u64::MAX, 0);
    std::iter::from_fn(move || {
        let pid = next.take()?;
        depth += 1;
        // A parent is never younger. One that is only has the number of the one that was meant.
        let stat =
            Stat::of(pid).ok().flatten().filter(|stat| stat.started <= child_started && depth <= DEPTH_MAX);
        if let Some(stat) = stat {
            child_started = stat.started;
            next = Some(stat.parent).filter(|parent| *parent != 0);
        }
        Some(stat)
    })
}

/// Whether a process is a sitter, by the words it was started with: nobody but itself can change them, and it does not.
fn is_sitter(stat: &Stat) -> Option<bool> {
    const WORDS_MAX: u64 = 16 << 10; // a path has at most 4 KiB
    let mut words = Vec::new();
    let file = File::open(format!("/proc/{}/cmdline", stat.pid)).ok()?;
    file.take(WORDS_MAX).read_to_end(&mut words).ok()?;
    if is_order(&words) {
        return Some(true);
    }
    // A dead one has no words any more, and those of another with its number say nothing about it.
    let now = Stat::of(stat.pid).ok()??;
    (now.started == stat.started && !now.is_dead()).then_some(false)
}

/// Whether these are the words that `start` starts a sitter with: a name, the command, and a folder's full path.
fn is_order(words: &[u8]) -> bool {
    let Some(words) = words.strip_suffix(b"\0") else { return false };
    let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
    matches!(words[..], [_, word, [b'/', ..]] if word == WORD.to_bytes())
}

/// The process that made the connection; none if it is not of our world, or the socket does not know.
fn peer(socket: impl AsFd) -> Option<i32> {
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
        let own: Vec<Option<Stat>> = line(own_pid()).collect();
        assert_eq!(own[0].expect("we run").pid, own_pid());
        assert!(
            own.iter().all(Option::is_some) && own.last().is_some_and(|it| it.expect("some").parent == 0)
        );
        for nobody in [i32::MAX, 0, -1, i32::MIN] {
            assert_eq!(line(nobody).collect::<Vec<_>>(), [None], "{nobody}");
            assert_eq!(is_confined(nobody), None);
        }
    }
}

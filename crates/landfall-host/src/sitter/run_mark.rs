//! A mark that every process of a run carries to its end: a resource limit.
//!
//! The environment can be thrown away, and a process may close its files in `/proc` to others of its user. Limits are passed on
//! to each child, can be read by anybody, and a hard one is never raised again. The limit on file locks has had no effect since
//! Linux 2.4.25. In a sandbox the filter of system calls keeps it from being lowered.

use super::sitting::is_shortage;
use std::fs;
use std::io;

/// The name of the limit in `/proc/PID/limits`.
const LIMIT_NAME: &str = "Max file locks";

/// The first bits of each mark, so that no limit that a person sets is taken for one.
const PREFIX: u64 = 0x4c46 << HASH_BITS;
const HASH_BITS: u32 = 48;

/// The mark of the runs with this marker.
pub(super) fn mark_for_marker(marker: &str) -> u64 {
    PREFIX | (super::identity::hash(marker) & ((1 << HASH_BITS) - 1))
}

/// The mark that a process carries; none if it has none or is gone. An error: the machine is short of what reading it takes.
pub(super) fn mark_of_process(pid: i32) -> io::Result<Option<u64>> {
    match fs::read_to_string(format!("/proc/{pid}/limits")) {
        Ok(limits) => Ok(parse_mark(&limits)),
        Err(error) if is_shortage(&error) => Err(error),
        Err(_) => Ok(None),
    }
}

/// The mark in the list of a process's limits.
fn parse_mark(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(LIMIT_NAME))?;
    let hard = line.split_whitespace().nth(1)?.parse().ok()?;
    (hard & PREFIX_MASK == PREFIX).then_some(hard)
}

const PREFIX_MASK: u64 = !((1 << HASH_BITS) - 1);

/// Marks this process and what it will start. One that is marked already, by a run around this one, stays as it is.
///
/// # Safety
/// Allocates nothing, so a freshly forked child may call it.
pub(super) unsafe fn mark_this_process(mark: u64) {
    let limit = libc::rlimit { rlim_cur: mark, rlim_max: mark };
    // SAFETY: the structure outlives the call.
    unsafe {
        libc::setrlimit(libc::RLIMIT_LOCKS, &raw const limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_from_the_limits_and_other_limits_are_none() {
        let limits = |hard: &str| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max address space         unlimited            unlimited            bytes     \n\
                 Max file locks            {hard:<20} {hard:<20} locks     \n\
                 Max pending signals       96414                96414                signals   \n"
            )
        };
        for marker in ["/state/attempts/T1-1-1", "", "x"] {
            let mark = mark_for_marker(marker);
            assert_eq!(parse_mark(&limits(&mark.to_string())), Some(mark), "{marker}");
        }
        assert_ne!(mark_for_marker("T1"), mark_for_marker("T2"));
        for other in ["unlimited", "0", "1024", "9223372036854775807", "x"] {
            assert_eq!(parse_mark(&limits(other)), None, "{other}");
        }
        assert_eq!(parse_mark(""), None);
    }
}

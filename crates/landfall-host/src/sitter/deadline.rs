//! The hard deadline of a run, as a budget of time that was really lived.
//!
//! Counted on `CLOCK_MONOTONIC`, which stands still while the machine sleeps: a closed lid does not kill an agent. It goes
//! on while only we are stopped (a frozen container, a paused virtual machine, SIGSTOP); so a gap between two looks
//! that is far longer than we asked to wait counts for little.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::files;

/// How long a sitter with a deadline sleeps at most.
const TICK_MS: u64 = 10_000;
/// More than this between two looks was not lived.
const GAP_MAX_MS: u64 = 3 * TICK_MS;

/// A budget of lived time.
#[derive(Debug)]
pub struct Deadline {
    left_ms: Option<u64>,
    seen_ms: u64,
}

impl Deadline {
    /// `limit_ms` from now on; 0 is no limit.
    pub fn new(now_ms: u64, limit_ms: u64) -> Deadline {
        Deadline { left_ms: (limit_ms > 0).then_some(limit_ms), seen_ms: now_ms }
    }

    /// Spends the time since the last look. True once all is spent.
    pub fn spend_elapsed(&mut self, now_ms: u64) -> bool {
        let gap = now_ms.saturating_sub(self.seen_ms).min(GAP_MAX_MS);
        self.seen_ms = now_ms;
        match &mut self.left_ms {
            Some(left) => {
                *left = left.saturating_sub(gap);
                *left == 0
            }
            None => false,
        }
    }

    /// The time since the last look does not count.
    pub fn skip_elapsed(&mut self, now_ms: u64) {
        self.seen_ms = now_ms;
    }

    /// How long to sleep before the next look; none is for ever.
    pub fn next_sleep(&self) -> Option<Duration> {
        self.left_ms.map(|left| Duration::from_millis(left.min(TICK_MS)))
    }
}

/// Lets the deadline of the run in `dir` stand still until this moment of the wall clock: its agent waits for something that
/// is no working time. To be said again for a longer wait, so that a run nobody follows any more still ends.
pub fn pause_deadline(dir: &Path, until_ms: i64) -> io::Result<()> {
    let (part, whole) = (dir.join(files::PAUSE_PART), dir.join(files::PAUSE));
    fs::write(&part, until_ms.to_string())?;
    fs::rename(part, whole)
}

/// Lets the deadline go on.
pub fn resume_deadline(dir: &Path) -> io::Result<()> {
    match fs::remove_file(dir.join(files::PAUSE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether the deadline of the run in `dir` stands still at this moment of the wall clock.
#[cfg(target_os = "linux")]
pub(super) fn is_paused(dir: &Path, now_ms: i64) -> bool {
    let until =
        fs::read_to_string(dir.join(files::PAUSE)).ok().and_then(|text| text.trim().parse::<i64>().ok());
    until.is_some_and(|until_ms| now_ms < until_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_was_lived_is_spent() {
        let mut deadline = Deadline::new(1_000, 25_000);
        assert_eq!(deadline.next_sleep(), Some(Duration::from_millis(10_000)));
        assert!(!deadline.spend_elapsed(11_000));
        assert!(!deadline.spend_elapsed(21_000));
        assert_eq!(deadline.next_sleep(), Some(Duration::from_millis(5_000)));
        assert!(deadline.spend_elapsed(26_000));
    }

    #[test]
    fn eight_hours_frozen_are_not() {
        let mut deadline = Deadline::new(0, 60_000);
        assert!(!deadline.spend_elapsed(8 * 3_600_000));
        assert!(!deadline.spend_elapsed(8 * 3_600_000 + 10_000));
        assert!(deadline.spend_elapsed(8 * 3_600_000 + 35_000));
    }

    #[test]
    fn a_pause_is_not_spent() {
        let mut deadline = Deadline::new(0, 15_000);
        assert!(!deadline.spend_elapsed(10_000));
        deadline.skip_elapsed(20_000);
        assert!(!deadline.spend_elapsed(24_000));
        assert!(deadline.spend_elapsed(25_000));
    }

    #[test]
    fn none_is_none() {
        let mut deadline = Deadline::new(0, 0);
        assert!(!deadline.spend_elapsed(u64::MAX));
        assert_eq!(deadline.next_sleep(), None);
    }
}

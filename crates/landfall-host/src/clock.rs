//! The two clocks, behind a trait so that the engine's time can be a test's time.
//!
//! The wall clock names moments for people and for quota resets; it may jump. The monotonic clock measures how long
//! something took. Order never comes from either: it comes from sequence numbers.

use rustix::time::{ClockId, clock_gettime};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where the time comes from.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970 by the wall clock; it may go backwards.
    fn now_ms(&self) -> i64;
    /// Milliseconds by a clock that never goes backwards; only differences mean something.
    fn mono_ms(&self) -> u64;
}

/// The machine's own clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let ms = |span: std::time::Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => ms(since),
            Err(before) => -ms(before.duration()),
        }
    }

    /// `CLOCK_MONOTONIC`, not `CLOCK_BOOTTIME`: it stands still while the machine sleeps. A lid closed for eight hours
    /// is then neither eight hours of silence nor a reason to kill every agent on waking.
    fn mono_ms(&self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        let secs = u64::try_from(now.tv_sec).expect("counted from boot");
        let nanos = u64::try_from(now.tv_nsec).expect("below one second");
        secs * 1000 + nanos / 1_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_clock_is_in_this_century_and_the_other_one_never_goes_back() {
        let clock = SystemClock;
        assert!(clock.now_ms() > 1_700_000_000_000 && clock.now_ms() < 4_100_000_000_000);
        let mut last = clock.mono_ms();
        for _ in 0..1000 {
            let now = clock.mono_ms();
            assert!(now >= last);
            last = now;
        }
    }
}

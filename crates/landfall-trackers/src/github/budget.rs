//! How much may be asked. One budget for all threads: GitHub counts what an account asks, not what a thread does.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use landfall_model::Timestamp;

/// What is left of GitHub's patience with us.
#[derive(Debug, Default)]
pub(super) struct GithubRateLimit {
    state: Mutex<RateLimitState>,
    /// Held by whoever changes something: one at a time, as GitHub asks for.
    turn: Mutex<()>,
}

#[derive(Debug, Default)]
struct RateLimitState {
    left: BTreeMap<Resource, RemainingQuota>,
    /// Nobody asks for anything before this.
    slow_until: Timestamp,
    /// How often in a row we were told to slow down.
    slowed: u32,
    last_write: Option<Timestamp>,
}

/// What GitHub counts apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Resource {
    Rest,
    Graphql,
}

#[derive(Debug, Clone, Copy)]
struct RemainingQuota {
    requests: u64,
    reset: Timestamp,
}

/// Why a request has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RateLimitWait {
    /// The requests of this hour are used up.
    Empty(Timestamp),
    /// We were told to slow down.
    Slow(Timestamp),
}

/// Without a word on how long, GitHub wants a minute, and more each time.
const SLOW_MS: u64 = 60_000;
/// An hour is the longest window there is.
const SLOW_MS_MAX: u64 = 3_600_000;

impl GithubRateLimit {
    fn lock_state(&self) -> MutexGuard<'_, RateLimitState> {
        // What a thread that panicked has left is as true as before.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a request out of the budget, or says why not yet.
    pub(super) fn take(&self, resource: Resource, now: Timestamp) -> Result<(), RateLimitWait> {
        let mut state = self.lock_state();
        if now < state.slow_until {
            return Err(RateLimitWait::Slow(state.slow_until));
        }
        if let Some(left) = state.left.get_mut(&resource) {
            if now >= left.reset {
                state.left.remove(&resource);
            } else if left.requests == 0 {
                return Err(RateLimitWait::Empty(left.reset));
            } else {
                left.requests -= 1; // until the answer says it better
            }
        }
        Ok(())
    }

    /// What an answer says is left. Answers overtake one another: within a window the least counts.
    pub(super) fn note_remaining(&self, resource: Resource, requests: u64, reset: Timestamp) {
        let mut state = self.lock_state();
        let left = state.left.entry(resource).or_insert(RemainingQuota { requests, reset });
        // The same window may differ by a second, as clocks are compared.
        if reset.0 > left.reset.0 + 2_000 {
            *left = RemainingQuota { requests, reset };
        } else {
            left.requests = left.requests.min(requests);
        }
    }

    /// We were told to slow down. Says until when.
    pub(super) fn note_slow_down(&self, now: Timestamp, ms: Option<u64>) -> Timestamp {
        let mut state = self.lock_state();
        let longer = SLOW_MS.saturating_mul(1 << state.slowed.min(10));
        state.slowed += 1;
        let until = now.plus_ms(ms.unwrap_or(longer).min(SLOW_MS_MAX));
        state.slow_until = state.slow_until.max(until);
        state.slow_until
    }

    /// Something went well.
    pub(super) fn note_success(&self) {
        self.lock_state().slowed = 0;
    }

    /// The turn of one who changes something, and how long it has to wait with it.
    pub(super) fn wait_for_turn(&self, now: Timestamp, gap_ms: u64) -> (MutexGuard<'_, ()>, u64) {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let last = self.lock_state().last_write;
        let wait = last.map_or(0, |last| last.plus_ms(gap_ms).0.saturating_sub(now.0));
        (turn, u64::try_from(wait).unwrap_or(0).min(gap_ms))
    }

    /// Something was changed, or may have been.
    pub(super) fn note_write(&self, now: Timestamp) {
        self.lock_state().last_write = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_counts_until_the_window_is_over() {
        let budget = GithubRateLimit::default();
        assert_eq!(budget.take(Resource::Rest, Timestamp(0)), Ok(()));
        budget.note_remaining(Resource::Rest, 1, Timestamp(10_000));
        budget.note_remaining(Resource::Rest, 40, Timestamp(10_000)); // an answer that was overtaken
        assert_eq!(budget.take(Resource::Rest, Timestamp(1)), Ok(()));
        assert_eq!(budget.take(Resource::Rest, Timestamp(2)), Err(RateLimitWait::Empty(Timestamp(10_000))));
        assert_eq!(budget.take(Resource::Graphql, Timestamp(2)), Ok(()));
        assert_eq!(budget.take(Resource::Rest, Timestamp(10_000)), Ok(()));
    }

    #[test]
    fn who_is_told_to_slow_down_waits_longer_each_time() {
        let budget = GithubRateLimit::default();
        assert_eq!(budget.note_slow_down(Timestamp(0), None), Timestamp(60_000));
        assert_eq!(budget.note_slow_down(Timestamp(60_000), None), Timestamp(180_000));
        assert_eq!(budget.take(Resource::Rest, Timestamp(1)), Err(RateLimitWait::Slow(Timestamp(180_000))));
        budget.note_success();
        assert_eq!(budget.note_slow_down(Timestamp(180_000), Some(1_000)), Timestamp(181_000));
        assert_eq!(budget.note_slow_down(Timestamp(181_000), Some(u64::MAX)), Timestamp(181_000 + 3_600_000));
    }

    #[test]
    fn changes_keep_a_distance() {
        let budget = GithubRateLimit::default();
        assert_eq!(budget.wait_for_turn(Timestamp(5), 1_000).1, 0);
        budget.note_write(Timestamp(5));
        assert_eq!(budget.wait_for_turn(Timestamp(305), 1_000).1, 700);
        assert_eq!(budget.wait_for_turn(Timestamp(5_000), 1_000).1, 0);
        assert_eq!(budget.wait_for_turn(Timestamp(0), 1_000).1, 1_000); // the clock was set back
    }
}

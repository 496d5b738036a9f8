//! How often somebody may guess: wrong tokens and wrong links, by the address they come from.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::connections::ConnectionSource;

/// Wrong guesses of one source within [`WINDOW`]. A person mistypes less often, and nobody guesses 256 bits so.
const GUESSES_MAX: usize = 10;
const WINDOW: Duration = Duration::from_secs(60);
/// Sources that are remembered. Where there are more, those that guessed the longest ago are forgotten.
const SOURCES_MAX: usize = 4096;

/// Counts wrong guesses.
#[derive(Default)]
pub(crate) struct GuessLimit(Mutex<BTreeMap<ConnectionSource, Vec<Instant>>>);

impl GuessLimit {
    /// How long `source` has to wait before its next guess is looked at; none if it need not.
    pub(crate) fn wait(&self, source: ConnectionSource, now: Instant) -> Option<Duration> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wrong = all.get_mut(&source)?;
        wrong.retain(|at| now.saturating_duration_since(*at) < WINDOW);
        if wrong.len() < GUESSES_MAX {
            return None;
        }
        Some(WINDOW.saturating_sub(now.saturating_duration_since(*wrong.first()?)))
    }

    /// Notes a wrong guess.
    pub(crate) fn note_wrong(&self, source: ConnectionSource, now: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= SOURCES_MAX && !all.contains_key(&source) {
            let oldest = all.iter().min_by_key(|(_, wrong)| wrong.last().copied()).map(|(source, _)| *source);
            oldest.and_then(|oldest| all.remove(&oldest));
        }
        let wrong = all.entry(source).or_default();
        wrong.push(now);
        let extra = wrong.len().saturating_sub(GUESSES_MAX); // requests that came at once
        wrong.drain(..extra);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_wrong_guesses_a_minute_are_looked_at_and_others_are_not_held_up() {
        let limit = GuessLimit::default();
        let of = |last: u8| ConnectionSource::from_address([192, 0, 2, last].into());
        let began = Instant::now();
        for guess in 0..10 {
            let now = began + Duration::from_secs(guess);
            assert_eq!(limit.wait(of(1), now), None, "guess {guess}");
            limit.note_wrong(of(1), now);
        }
        let later = began + Duration::from_secs(20);
        assert_eq!(limit.wait(of(1), later), Some(Duration::from_secs(40)));
        assert_eq!(limit.wait(of(2), later), None, "another address");
        let after = began + Duration::from_secs(61);
        assert_eq!(limit.wait(of(1), after), None, "two of them are a minute ago");
        limit.note_wrong(of(1), after);
        limit.note_wrong(of(1), after);
        assert!(limit.wait(of(1), after).is_some(), "ten within the minute again");
    }

    #[test]
    fn the_memory_of_guesses_is_bounded() {
        let limit = GuessLimit::default();
        let now = Instant::now();
        for number in 0..10_000_u32 {
            limit.note_wrong(ConnectionSource::from_address(std::net::Ipv4Addr::from(number).into()), now);
        }
        assert_eq!(limit.0.lock().expect("no panic").len(), SOURCES_MAX);
    }
}

//! How long a sitter is trusted to end its run, and what is done to it after that.
//!
//! A sitter keeps the limits itself. But its own child may stop it (SIGSTOP), again and again; so whoever waits for one
//! presses harder and harder, and never waits without an end.

use std::path::Path;
use std::time::{Duration, Instant};

use landfall_host::sitter::{self, Deadline, SitterProcess, SitterWatch};
use landfall_host::wait;

/// What is left to try with a sitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KillStep {
    /// Wake it and tell it to kill its tree.
    Tell,
    /// Do that for it.
    Abandon,
    /// Nothing: it is being abandoned.
    Nothing,
}

/// The patience with one sitter.
#[derive(Debug)]
pub(crate) struct KillEscalation {
    left: Deadline,
    next: KillStep,
}

/// What has to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KillAction {
    /// Nothing.
    Wait,
    /// It was told to end at once.
    Told,
    /// It does not listen: [`sitter::abandon`] is due.
    Abandon,
}

const MARGIN_MS: u64 = 10_000; // a fork bomb is hunted down in five seconds on a slow machine

impl KillEscalation {
    /// With a sitter that ends its run after `limit_ms` (0: never by itself) and the grace.
    pub fn with_limit(now_ms: u64, limit_ms: u64, grace_ms: u64) -> Self {
        let span =
            if limit_ms == 0 { 0 } else { limit_ms.saturating_add(grace_ms).saturating_add(MARGIN_MS) };
        Self { left: Deadline::new(now_ms, span), next: KillStep::Tell }
    }

    /// With a sitter that was asked to end its run and gives it the grace.
    pub fn after_graceful_request(now_ms: u64, grace_ms: u64) -> Self {
        Self::with_limit(now_ms, grace_ms.max(1), 0)
    }

    /// With a sitter that was told to end at once.
    pub fn after_immediate_request(now_ms: u64) -> Self {
        Self { left: Deadline::new(now_ms, MARGIN_MS), next: KillStep::Abandon }
    }

    /// The time since the last look does not count.
    pub fn skip_elapsed(&mut self, now_ms: u64) {
        self.left.skip_elapsed(now_ms);
    }

    /// Presses on if patience is at an end.
    pub fn escalate_if_due(&mut self, now_ms: u64, sitting: &SitterProcess) -> KillAction {
        if !self.left.spend_elapsed(now_ms) {
            return KillAction::Wait;
        }
        match self.next {
            KillStep::Tell => {
                let _ = sitter::stop_sitter(sitting, sitter::StopMode::Now); // gone already is as good; else we press on
                *self = Self::after_immediate_request(now_ms);
                KillAction::Told
            }
            KillStep::Abandon => {
                *self = Self { left: Deadline::new(now_ms, 0), next: KillStep::Nothing };
                KillAction::Abandon
            }
            KillStep::Nothing => KillAction::Wait,
        }
    }
}

/// How often a sitter is looked at that cannot be watched.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Waits until a sitter ends, at most so long. While it cannot be watched, for want of descriptors perhaps, that is tried again.
pub(crate) fn wait_for_end(watch: &mut Option<SitterWatch>, sitting: &SitterProcess, most: Duration) {
    let make = || -> std::io::Result<SitterWatch> {
        let mut watch = SitterWatch::new()?;
        watch.add(0, sitting)?;
        Ok(watch)
    };
    let until = Instant::now() + most;
    if watch.is_none() {
        *watch = wait::retry_until(most, LOOK_AGAIN, || make().ok());
    }
    if let Some(watch) = watch {
        wait_until_ended(until, |left| watch.wait(Some(left)));
    }
}

/// Waits again until a wait reports an end, or until the deadline. A wait may fail because the machine is short of something,
/// and one that a signal interrupts reports no end while the sitter still runs.
fn wait_until_ended(until: Instant, mut wait_once: impl FnMut(Duration) -> std::io::Result<Vec<u64>>) {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match wait_once(left) {
            Ok(ended) if !ended.is_empty() => return,
            Ok(_) | Err(_) if left.is_zero() => return,
            Ok(_) => {}
            // A pause: nothing tells when the machine can watch again.
            Err(_) => {
                let _: Option<()> = wait::retry_until(LOOK_AGAIN.min(left), LOOK_AGAIN, || None); // always none
            }
        }
    }
}

/// Ends whatever runs in `dir`, by force. Tried for a while: the machine may be short of what looking for processes takes,
/// and what is told next may start other work in the same place.
pub(crate) fn abandon_run(dir: &Path, marker: &str) {
    const SPAN: Duration = Duration::from_secs(4);
    const PAUSE: Duration = Duration::from_secs(1);
    let _ = wait::retry_until(SPAN, PAUSE, || match sitter::abandon_sitter(dir, marker) {
        Ok(_) | Err(sitter::SweepError::Left { .. }) => Some(()), // what cannot be killed is stuck in the kernel
        Err(_) => None,
    }); // the next run sweeps what is left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_goes_on_after_a_failure_until_the_sitter_ends() {
        let answers = [Err(std::io::ErrorKind::OutOfMemory.into()), Ok(vec![]), Ok(vec![]), Ok(vec![0])];
        let mut answers = answers.into_iter();
        let mut spans = Vec::new();
        wait_until_ended(Instant::now() + Duration::from_secs(600), |left| {
            spans.push(left);
            answers.next().expect("nobody waits after the end")
        });
        assert_eq!(answers.count(), 0, "an empty answer is no end");
        assert!(spans.is_sorted_by(|before, after| before > after), "each wait has what is left: {spans:?}");
        assert!(spans[0] - spans[1] >= LOOK_AGAIN, "{spans:?}");
    }

    #[test]
    fn a_wait_that_always_fails_ends_with_its_time() {
        let mut waits = 0;
        wait_until_ended(Instant::now() + LOOK_AGAIN / 2, |_| {
            waits += 1;
            Err(std::io::ErrorKind::OutOfMemory.into())
        });
        assert_eq!(waits, 2, "at first, and when the time is over");
    }
}

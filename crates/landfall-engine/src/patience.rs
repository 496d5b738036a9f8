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
    let left = until.saturating_duration_since(Instant::now());
    if let Some(watch) = watch
        && watch.wait(Some(left)).is_err()
    {
        // The machine is short of something: whether the sitter ended is seen by the next look, or when this wait is over.
        wait::retry_until(left, LOOK_AGAIN, || watch.wait(Some(Duration::ZERO)).ok());
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

//! Verification: what the commands of a project showed, and what that amounts to.

mod count;

pub use count::count_tests;
pub(crate) use count::without_colour;
pub use landfall_facts::gate::{CheckOutcome, CommandResult, GateReport};

/// What one run of one command showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandExit {
    /// How it exited, 128 and the signal if one ended it; none when that was not seen.
    pub exit: Option<i32>,
    /// Whether it ran into its limit.
    pub timed_out: bool,
    /// How many tests it says it ran, if its output tells.
    pub tests: Option<u64>,
    /// Whether the sandbox denied it a path, as its output says and its rules confirm.
    pub is_denied: bool,
}

impl CommandExit {
    fn own_outcome(&self) -> CheckOutcome {
        if self.timed_out {
            return CheckOutcome::Timeout;
        }
        match (self.exit, self.tests) {
            (Some(126 | 127), _) | (None, _) | (_, Some(0)) => CheckOutcome::Broken,
            (Some(0), _) => CheckOutcome::Pass,
            (Some(_), _) => CheckOutcome::Fail,
        }
    }
}

/// What a command came to, from its run on the work, the same again, and its run on the base.
///
/// A command that cannot run on the work and passes on the base fails: this machine can run it, so the work broke it.
/// Otherwise it would hold up every other task. A command that cannot run on the base either is broken. A failure is the
/// work's own unless a second run passes or the base fails too. A base on which the command could not run at all says
/// nothing about the work: the first tests of a project fail on their own account. If the sandbox denies a path on the work
/// and on the base, the settings are to blame, and the command is broken.
#[must_use]
pub fn compute_check_outcome(
    on_work: &CommandExit,
    again: Option<&CommandExit>,
    on_base: Option<&CommandExit>,
) -> CheckOutcome {
    let first = on_work.own_outcome();
    let passes =
        |seen: Option<&CommandExit>| seen.is_some_and(|seen| seen.own_outcome() == CheckOutcome::Pass);
    match first {
        CheckOutcome::Pass | CheckOutcome::Flaky | CheckOutcome::PreExisting => first,
        CheckOutcome::Broken if !passes(on_base) => CheckOutcome::Broken,
        CheckOutcome::Broken if passes(again) => CheckOutcome::Flaky,
        CheckOutcome::Broken => CheckOutcome::Fail,
        CheckOutcome::Fail | CheckOutcome::Timeout => {
            if passes(again) {
                CheckOutcome::Flaky
            } else if on_base
                .is_some_and(|seen| matches!(seen.own_outcome(), CheckOutcome::Fail | CheckOutcome::Timeout))
            {
                let is_denied = on_work.is_denied && on_base.is_some_and(|seen| seen.is_denied);
                if is_denied { CheckOutcome::Broken } else { CheckOutcome::PreExisting }
            } else {
                first
            }
        }
    }
}

//! The flake ledger: how often each check failed and then passed on the same tree.

use std::collections::BTreeMap;

use crate::Timestamp;
use crate::gate::{CheckOutcome, GateReport};

/// What is known of one check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlakeHistory {
    /// How often it ran.
    pub runs: u64,
    /// How often it failed and then passed.
    pub flakes: u64,
    /// When it last did.
    pub last: Option<Timestamp>,
}

/// Every check that ran, by name: a fold of what verification saw.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flakes {
    checks: BTreeMap<String, FlakeHistory>,
}

impl Flakes {
    /// Takes a report in. What was reused, or copied from the base, did not run.
    pub fn note(&mut self, at: Timestamp, report: &GateReport) {
        if report.reused {
            return;
        }
        for command in report.commands.iter().filter(|command| !command.copied_from_base) {
            let flake = self.checks.entry(command.name.clone()).or_default();
            flake.runs += 1;
            if command.outcome == CheckOutcome::Flaky {
                flake.flakes += 1;
                flake.last = Some(at);
            }
        }
    }

    /// The checks that were ever flaky, the worst first.
    #[must_use]
    pub fn flakiest_checks(&self) -> Vec<(&str, &FlakeHistory)> {
        let mut found: Vec<(&str, &FlakeHistory)> = self
            .checks
            .iter()
            .filter(|(_, it)| it.flakes > 0)
            .map(|(name, it)| (name.as_str(), it))
            .collect();
        found.sort_by_key(|(name, it)| (std::cmp::Reverse(it.flakes), *name));
        found
    }
}

//! What is known about the tests of a change, besides that they passed.

use serde::{Deserialize, Serialize};

use std::fmt;

use crate::gate::CheckOutcome;

/// What verification knows of the tests besides that they passed. The certificate shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TestEvidence {
    /// Protected inputs that the change touches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<ProtectedChange>,
    /// The run of the base tests against the work; none if no test of the base changed, or they are switched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_tests: Option<BaseTestRun>,
    /// How many tests ran on the base, if its checks tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests_run_on_base: Option<u64>,
    /// In the files of the change.
    #[serde(default)]
    pub counts: TestCounts,
    /// Mutations of the changed lines; none if the change has no tests of its own, if its checks take long, or if they are
    /// switched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutations: Option<MutationRun>,
}

/// Tests and assertions in the files of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "[u64; 4]", into = "[u64; 4]")]
pub struct TestCounts {
    /// Tests on the base.
    pub tests_before: u64,
    /// Tests in the work.
    pub tests_after: u64,
    /// Assertions on the base.
    pub assertions_before: u64,
    /// Assertions in the work.
    pub assertions_after: u64,
}

words! {
    /// What a run of the checks on a mutation showed.
    pub enum MutationOutcome {
        /// A check failed, or did not end in time.
        Caught = "caught",
        /// Every check passed.
        Survived = "survived",
        /// It could not be built, or a check of how code is written refused it.
        Unbuilt = "unbuilt",
    }
}

/// A mutation that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MutationTrial {
    /// From the root of the repository.
    pub path: String,
    /// The number of the line, from 1.
    pub line: u64,
    /// The line as the work has it.
    pub before: String,
    /// The line as it was tried.
    pub after: String,
    /// What the checks showed.
    pub outcome: MutationOutcome,
}

/// The mutations that were tried of one change, up to the first that a test caught.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MutationRun {
    /// The tests that the change adds or rewrites, as `file: test`.
    pub tests: Vec<String>,
    /// In order.
    pub trials: Vec<MutationTrial>,
    /// How long they took.
    pub took_ms: u64,
}

/// Survivors that make a finding. One may mean the same as the original.
const SURVIVORS_MIN: usize = 2;

const NAMED_MAX: usize = 8; // tests and mutations that one concern names

impl MutationRun {
    /// Whether nothing in the tests noticed what the changed lines do.
    #[must_use]
    pub fn is_finding(&self) -> bool {
        let count = |outcome| self.trials.iter().filter(|trial| trial.outcome == outcome).count();
        count(MutationOutcome::Caught) == 0 && count(MutationOutcome::Survived) >= SURVIVORS_MIN
    }

    /// The tests, and what they did not notice.
    #[must_use]
    pub fn summary_text(&self) -> String {
        let survived = self.trials.iter().filter(|trial| trial.outcome == MutationOutcome::Survived);
        let unnoticed: Vec<String> = survived
            .take(NAMED_MAX)
            .map(|trial| {
                format!("`{}` in place of `{}` at {}:{}", trial.after, trial.before, trial.path, trial.line)
            })
            .collect();
        let tests = self.tests.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
        format!("{tests} (no test fails with {})", unnoticed.join(", or "))
    }
}

/// A run of the tests of the base against the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseTestRun {
    /// The files that were put back.
    pub files: Vec<String>,
    /// What it came to.
    pub outcome: CheckOutcome,
    /// The tests that fail, or could not be run, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
    /// How long it took.
    pub took_ms: u64,
}

/// A change to a file that decides what the checks do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectedChange {
    /// From the root of the repository.
    pub path: String,
    /// What uses the file: the check, another file, or an ecosystem that loads it.
    pub used_by: String,
    /// The lines of the protected part that went and came, with their sign.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
}

impl fmt::Display for ProtectedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (used by {})", self.path, self.used_by)?;
        for (place, line) in self.lines.iter().enumerate() {
            write!(f, "{}{line}", if place == 0 { ": " } else { " ⏎ " })?;
        }
        Ok(())
    }
}

impl BaseTestRun {
    /// The tests that fail and the files they are in.
    #[must_use]
    pub fn summary_text(&self) -> String {
        let how = match self.outcome {
            CheckOutcome::Timeout => ", which did not end in time",
            CheckOutcome::Broken => ", which could not run",
            CheckOutcome::Pass | CheckOutcome::Flaky | CheckOutcome::PreExisting | CheckOutcome::Fail => "",
        };
        let failing = self.failing.join(", ");
        match self.files.as_slice() {
            [] => format!("{failing} (without the test files that the change adds{how})"),
            files => format!("{failing} (the version on the base of {}{how})", files.join(", ")),
        }
    }
}

impl From<[u64; 4]> for TestCounts {
    fn from([tests_before, tests_after, assertions_before, assertions_after]: [u64; 4]) -> Self {
        Self { tests_before, tests_after, assertions_before, assertions_after }
    }
}

impl From<TestCounts> for [u64; 4] {
    fn from(counts: TestCounts) -> Self {
        [counts.tests_before, counts.tests_after, counts.assertions_before, counts.assertions_after]
    }
}

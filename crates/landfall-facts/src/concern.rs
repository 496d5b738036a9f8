//! Why a person must review a change, and what the next attempt is told.

use serde::{Deserialize, Serialize};

use std::fmt;

/// What the next run of the agent should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feedback {
    /// A heading.
    pub about: String,
    /// The words.
    pub text: String,
}

/// Something about a change that wants a person's eye.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeConcern {
    /// What it is.
    pub code: ConcernCode,
    /// Where.
    pub detail: String,
}

words! {
    /// The kinds of concern.
    pub enum ConcernCode {
        /// It touches the rules it is judged by.
        ProtectedPath = "protected-path",
        /// It deletes a test file.
        TestDeleted = "test-deleted",
        /// It switches a test off.
        TestSkipped = "test-skipped",
        /// It removes test functions.
        TestRemoved = "test-removed",
        /// Fewer tests ran than on the base.
        FewerTests = "fewer-tests",
        /// It changes a file that decides what the checks do.
        ProtectedInput = "protected-input",
        /// A test lost its assertions, or cannot fail.
        EmptyTest = "empty-test",
        /// Code reaches into the test runner.
        RunnerPatched = "runner-patched",
        /// A test of the base fails against the work.
        BaseTestFails = "base-test-fails",
        /// Settings want a person to look.
        ReviewAsked = "review-asked",
        /// A reviewer and the agent do not agree.
        Disputed = "disputed",
    }
}

impl fmt::Display for ChangeConcern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.code {
            ConcernCode::ProtectedPath => "changes a protected path",
            ConcernCode::TestDeleted => "deletes a test file",
            ConcernCode::TestSkipped => "switches a test off",
            ConcernCode::TestRemoved => "removes tests",
            ConcernCode::FewerTests => "runs fewer tests than the base",
            ConcernCode::ProtectedInput => "changes what the checks do",
            ConcernCode::EmptyTest => "empties tests",
            ConcernCode::RunnerPatched => "reaches into the test runner",
            ConcernCode::BaseTestFails => "fails tests of the base",
            ConcernCode::ReviewAsked => "is to be reviewed",
            ConcernCode::Disputed => "is disputed between reviewer and agent",
        };
        write!(f, "{what}: {}", self.detail)
    }
}

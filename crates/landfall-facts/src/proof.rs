//! Checks that a plan or a judge names, and what their runs showed.

use serde::{Deserialize, Serialize};

use std::fmt;

use crate::Commit;
use crate::gate::CheckOutcome;

words! {
    /// What a check said on one state of the work.
    pub enum ProofColour {
        /// It fails.
        Red = "red",
        /// It passes.
        Green = "green",
        /// It could not be run, or ran no test.
        Broken = "broken",
    }
}

impl From<CheckOutcome> for ProofColour {
    fn from(outcome: CheckOutcome) -> Self {
        match outcome {
            CheckOutcome::Pass | CheckOutcome::Flaky => Self::Green,
            CheckOutcome::Fail | CheckOutcome::Timeout | CheckOutcome::PreExisting => Self::Red,
            CheckOutcome::Broken => Self::Broken,
        }
    }
}

/// What a proof is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ProofSubject {
    /// A step of the plan, by its number.
    #[serde(rename = "step")]
    Step(u32),
    /// Something a judge found, numbered in the order it was found.
    #[serde(rename = "finding")]
    Finding(u32),
}

impl fmt::Display for ProofSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(number) => write!(f, "step {number}"),
            Self::Finding(number) => write!(f, "finding {number}"),
        }
    }
}

words! {
    /// Who names proofs.
    pub enum ProofAuthor {
        /// Whoever wrote the plan, or into its margin.
        Planner = "planner",
        /// A judge.
        Judge = "judge",
    }
}

/// A proof that is owed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequiredProof {
    /// What it is of.
    pub of: ProofSubject,
    /// That in a line.
    pub about: String,
    /// The command to run.
    pub command: String,
    /// The state before the work; none: where the stage began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Commit>,
}

/// What the engine saw when it ran a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofRun {
    /// Which.
    pub of: ProofSubject,
    /// On the state before the work, if it was run there this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ProofColour>,
    /// On the work.
    pub now: ProofColour,
}

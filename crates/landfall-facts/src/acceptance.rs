//! What came of verifying the criteria of an issue.

use serde::{Deserialize, Serialize};

/// What came of looking at a criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum VerifyResult {
    /// It holds.
    #[serde(rename = "pass")]
    Pass,
    /// It does not.
    #[serde(rename = "fail")]
    Fail,
    /// That could not be said.
    #[serde(rename = "uncertain")]
    Uncertain,
    /// It did not apply, or is for someone else to look at.
    #[serde(rename = "skipped")]
    Skipped,
    /// What would tell is still running.
    #[serde(rename = "pending")]
    Pending,
    /// It can be looked at only when the work is merged.
    #[serde(rename = "post-merge")]
    PostMerge,
}

impl VerifyResult {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Uncertain => "UNCERTAIN",
            Self::Skipped => "SKIPPED",
            Self::Pending => "PENDING",
            Self::PostMerge => "POST-MERGE",
        }
    }
}

/// What all results come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum VerifyOutcome {
    /// Everything holds and nothing is left: done, and closed.
    #[serde(rename = "done")]
    Done,
    /// Everything that was looked at holds; boxes are left for others. So many.
    #[serde(rename = "left-over")]
    LeftOver(usize),
    /// Something does not hold: back to work, for this time.
    #[serde(
        rename = "reopen",
        serialize_with = "Serialize::serialize",
        deserialize_with = "Deserialize::deserialize"
    )]
    Reopen {
        /// Which time, from 1.
        iteration: u32,
    },
    /// Something does not hold, as often as is allowed: a person is needed.
    #[serde(
        rename = "exhausted",
        serialize_with = "Serialize::serialize",
        deserialize_with = "Deserialize::deserialize"
    )]
    Exhausted {
        /// Which time.
        iteration: u32,
    },
    /// Some checks are still running.
    #[serde(rename = "waiting")]
    Waiting,
    /// Some could not be looked at.
    #[serde(rename = "unsure")]
    Unsure,
}

impl VerifyOutcome {
    /// It in a word, for programs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::LeftOver(_) => "left-over",
            Self::Reopen { .. } => "reopened",
            Self::Exhausted { .. } => "needs-a-person",
            Self::Waiting => "waiting",
            Self::Unsure => "unsure",
        }
    }

    /// Which failure it is, if it is one.
    #[must_use]
    pub fn iteration(self) -> Option<u32> {
        match self {
            Self::Reopen { iteration } | Self::Exhausted { iteration } => Some(iteration),
            Self::Done | Self::LeftOver(_) | Self::Waiting | Self::Unsure => None,
        }
    }
}

//! What came of looking at the acceptance criteria of an issue.

use serde::{Deserialize, Serialize};

use crate::IssueNumber;

/// Which issue is verified, and how it is looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct VerifyAsked {
    /// The issue.
    pub issue: IssueNumber,
    /// The pull request with the work; otherwise what is on the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr: Option<IssueNumber>,
    /// Whether commands of the issue may be run, in the sandbox.
    #[serde(default)]
    pub full: bool,
    /// Whether this machine itself may be asked.
    #[serde(default)]
    pub allow_localhost: bool,
    /// Whether nothing is to be changed.
    #[serde(default)]
    pub dry_run: bool,
    /// The profile that judges, if not the one of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<String>,
}

/// An issue whose criteria were looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssueVerified {
    /// Its number.
    pub issue: u64,
    /// The pull request that was looked at, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr: Option<u64>,
    /// The commit whose files were looked at.
    pub commit: String,
    /// `safe` or `full`.
    pub mode: String,
    /// `done`, `left-over`, `reopened`, `needs-a-person`, `waiting` or `unsure`; `not-begun` where nobody has worked on it.
    pub outcome: String,
    /// The outcome in a sentence.
    pub text: String,
    /// Which failure it is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// How many boxes were ticked now.
    pub ticked: u64,
    /// Whether something new was said on the tracker.
    pub told: bool,
    /// Whether nothing was changed because nothing was to be.
    pub dry_run: bool,
    /// The criteria, in their order.
    pub criteria: Vec<CriterionSeen>,
    /// What else there is to say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A criterion that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CriterionSeen {
    /// What it says.
    pub text: String,
    /// `pre-merge` or `post-merge`.
    pub section: String,
    /// `PASS`, `FAIL`, `UNCERTAIN`, `SKIPPED`, `PENDING` or `POST-MERGE`.
    pub result: String,
    /// What was seen.
    pub evidence: String,
    /// How long it took.
    pub took_ms: u64,
}

//! Issues that are followed: from what is asked for to what became of each.

use landfall_facts::issue::IssueStanding;
use serde::{Deserialize, Serialize};

use crate::{HaulId, IssueNumber, RunOutcome, Size, WireTaskId};

/// How the work of an issue gets onto the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum IssueWay {
    /// Straight from its branch.
    Patch,
    /// By a pull request that is reviewed first.
    Pr,
}

/// How closely a pull request is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum IssueReview {
    /// By one reader.
    Light,
    /// By several, and what they find is verified.
    Full,
}

/// Issues that are to be followed, each by a task: exactly one of `issues`, `newest` and `batch` says which.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct IssuesFollow {
    /// These, by their numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<u64>,
    /// So many of the newest open ones that were triaged and are no bigger than S.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest: Option<u32>,
    /// What is left of a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<HaulId>,
    /// Whether they are remembered as a batch.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub together: bool,
    /// The way they take; otherwise their sizes say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way: Option<IssueWay>,
    /// How closely they are read; otherwise their sizes say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<IssueReview>,
    /// Whether their acceptance is left for a person.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub leave_acceptance: bool,
    /// Whether what was said earlier about the way still counts where nothing is said now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resume: bool,
}

/// Issues that are followed, in the order in which they are begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssuesFollowed {
    /// The batch they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<HaulId>,
    /// The issues.
    pub issues: Vec<FollowedIssue>,
    /// Issues that were named with them and are not followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutIssue>,
    /// What was chosen, in words.
    pub text: String,
}

/// An issue that was named among others and is not followed with them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOutIssue {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Why, in words.
    pub why: String,
}

/// An issue that is followed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FollowedIssue {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// The way it takes by what is known now, in words.
    pub way: String,
    /// Its task; none if it was only looked at what would be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<WireTaskId>,
    /// Whether nothing is left to do for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
    /// Open issues it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<String>,
    /// Whether somebody has to find out first what it is, and how big: the way may change with that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub triage: bool,
    /// The issues it is made of that are still to be done, level by level; only where it was only looked at what would be done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<FollowedPart>,
    /// What is done about it, in words.
    pub text: String,
}

/// One of the issues that another is made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FollowedPart {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// The level it is begun in, from 1: it waits only for such of an earlier one.
    pub level: u32,
    /// The parts it waits for that are still to be done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<u64>,
}

/// What became of issues that were followed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AutoReport {
    /// The batch they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<HaulId>,
    /// The issues, in the order in which they were begun.
    pub issues: Vec<IssueSummary>,
    /// Issues that were named with them and were not followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutIssue>,
    /// The run that drove them; none if nothing was left to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunOutcome>,
}

/// What became of one issue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssueSummary {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its task.
    pub task: WireTaskId,
    /// How it stands: `complete`, `partial`, `stopped`, `needs-person`, `waits` or `under-way`.
    pub stand: IssueStanding,
    /// The same in a line.
    pub banner: String,
    /// The way it took, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<String>,
    /// Its pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr: Option<u64>,
    /// Its phases, in order.
    pub phases: Vec<PhaseLine>,
    /// What is left to be looked at, in the words of the issue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<String>,
    /// Why it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What to do next.
    pub next: String,
}

/// A phase of an issue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseLine {
    /// Its name.
    pub phase: String,
    /// What came of it; `-` if it was not run.
    pub result: String,
    /// What is worth knowing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// Tokens its agents read and wrote.
    #[serde(default)]
    pub tokens: u64,
    /// What that cost, if an agent told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// Batches of issues of which something is left, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HaulList {
    /// The batches.
    pub batches: Vec<HaulLine>,
}

/// A batch of issues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HaulLine {
    /// Its name.
    pub id: HaulId,
    /// When it was asked for.
    pub begun_ms: i64,
    /// How its issues were chosen, in words.
    pub chosen: String,
    /// Issues that are still to be done, in order.
    pub remaining: Vec<u64>,
    /// Issues that are done.
    pub completed: Vec<u64>,
    /// Issues that gave up.
    pub failed: Vec<u64>,
}

/// Asks whether a phase of an issue is complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReconcileAsked {
    /// The issue.
    pub issue: IssueNumber,
    /// The phase: `issue`, `spec`, `code-patch`, `code-pr`, `review`, `merge` or `verify`.
    pub phase: String,
    /// Its pull request; otherwise the one of its branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr: Option<IssueNumber>,
    /// Whether it could begin, instead of whether it is complete.
    #[serde(default)]
    pub begin: bool,
}

/// Whether a phase of an issue is complete, by what can be seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reconciliation {
    /// The version of this shape: `v1`.
    pub schema_version: String,
    /// The phase: `issue`, `spec`, `code-patch`, `code-pr`, `review`, `merge` or `verify`.
    pub phase: String,
    /// Whether what is, is what should be.
    pub matches_expected: bool,
    /// What was seen.
    pub actual: ReconciliationSeen,
    /// In words.
    pub diagnosis: String,
}

/// What was seen of an issue. What is not there is null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReconciliationSeen {
    /// Its labels.
    pub labels: Vec<String>,
    /// Where its pull request stands: `OPEN`, `CLOSED` or `MERGED`.
    pub pr_state: Option<String>,
    /// The number of its pull request.
    pub pr_number: Option<u64>,
    /// Whether a commit on the base closes it, made after it was last opened again.
    pub commits_found: bool,
    /// The file that says what is to be done.
    pub spec_file: Option<String>,
    /// `OPEN` or `CLOSED`.
    pub issue_state: String,
    /// When it was last opened again, in UTC.
    pub reopen_ts: Option<String>,
    /// The commit that closes it.
    pub hint_recent_commit: Option<String>,
    /// The state of its pull request in words.
    pub hint_pr_state: Option<String>,
}

//! What happened to issues, as a log and summed up; and what agents propose when they look back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::WireTaskId;

/// Asks what happened to issues.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct IssueEventsAsked {
    /// To these; to all that were ever followed, if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub issue: Vec<u64>,
    /// Leaves so many lines out, the oldest: the `next` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// At most so many; 0 leaves it to the engine.
    pub limit: u32,
}

/// A page of what happened to issues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssueEvents {
    /// The lines, oldest first.
    pub events: Vec<IssueTrace>,
    /// What to ask for `after` to get the next page; none when this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// One line of the log of an issue. Everything is text, as in the logs of other tools; more fields may come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssueTrace {
    /// When: `2026-07-29T14:03:00.120Z`.
    pub ts: String,
    /// The number of the issue.
    pub issue: u64,
    /// What: `sub_start`, `phase_start`, `wrapper_exit`, `recovery`, `phase_complete`, `sub_complete`, `anomaly`, `size_refresh`,
    /// `token_usage`, `watchdog_kill`, `max_silent_window`, `ci_wait`, `test_result`, `manual_intervention`, `verify_reopen_cycle` or
    /// `concurrent_commit_detected`.
    pub event: String,
    /// The run: `R3`; empty before the first.
    pub session_id: String,
    /// What else is known, by name.
    #[serde(flatten)]
    pub fields: BTreeMap<String, String>,
}

/// Asks what happened to issues, summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RollupAsked {
    /// In the last so many days; 30 when it is 0, never more than 366.
    pub days: u32,
}

/// What happened to issues, summed up.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rollup {
    /// Since when.
    pub from_ms: i64,
    /// The runs in which issues were worked on, oldest first.
    pub sessions: Vec<RollupSession>,
    /// The phases, in the order of the way.
    pub phases: Vec<RollupPhase>,
    /// What was done about failures, by rung.
    pub recoveries: Vec<RollupRecovery>,
    /// What went otherwise than it should, the most frequent first.
    pub anomalies: Vec<RollupCount>,
    /// How people stepped in, the most frequent first.
    pub interventions: Vec<RollupCount>,
    /// What each phase used of each model.
    pub tokens: Vec<RollupTokens>,
    /// Every recovery, newest first, as Markdown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recovery_log: Vec<String>,
}

/// A run in which issues were worked on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RollupSession {
    /// Which: `R3`.
    pub session: String,
    /// The batches whose issues it worked on: `H1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batches: Vec<String>,
    /// The first that is known of an issue in it.
    pub from_ms: i64,
    /// The last.
    pub until_ms: i64,
    /// The issues.
    pub issues: Vec<u64>,
    /// How many came to a good end.
    pub done: u64,
    /// How many did not.
    pub failed: u64,
}

/// A phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RollupPhase {
    /// Its name.
    pub phase: String,
    /// How often it began.
    pub begun: u64,
    /// How often it came to its end.
    pub count: u64,
    /// Half of them took no more work than this. Waits are not in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<u64>,
    /// Of twenty, nineteen took no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_ms: Option<u64>,
    /// The work of all that came to their end.
    pub worked_ms: u64,
    /// How long they waited besides.
    pub waited_ms: u64,
    /// For whom, or what, the longest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<RollupWait>,
}

/// How long a phase waited for something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RollupWait {
    /// `person`, `quota`, `budget`, `checks` (of the forge), `blockers`, `sub-issues`, `trouble` (that passes), `disk`, `slot` or
    /// `landing-queue`.
    pub what: String,
    /// So long.
    pub ms: u64,
}

/// A rung of the ladder of recoveries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RollupRecovery {
    /// `1` looked again, `2` the catalogue, `3` an agent, `manual` a person.
    pub tier: String,
    /// How often.
    pub count: u64,
    /// How often it helped.
    pub success: u64,
    /// How often it did not.
    pub failed: u64,
}

/// How often something happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RollupCount {
    /// What.
    pub what: String,
    /// How often.
    pub count: u64,
}

/// What a phase used of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RollupTokens {
    /// The phase.
    pub phase: String,
    /// The model, or the profile of an agent that does not say.
    pub model: String,
    /// Runs.
    pub runs: u64,
    /// Tokens read, those from a cache included.
    pub tokens_in: u64,
    /// Of these, from a cache.
    pub tokens_cached: u64,
    /// Tokens written.
    pub tokens_out: u64,
    /// What that cost, if an agent told or prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// Wants issues made of what agents propose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImprovementsFile {
    /// Of these: their ids, or how they begin.
    pub ids: Vec<String>,
}

/// What agents propose when they look back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImprovementList {
    /// Those worth an issue first.
    pub proposals: Vec<Improvement>,
}

/// Something that an agent would have done otherwise in future.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Improvement {
    /// What it is known by.
    pub id: String,
    /// What whoever proposed it would have become of it: `issue`, `memory` or `note`.
    pub tier: String,
    /// In one line.
    pub title: String,
    /// All of it, in the words of an agent.
    pub text: String,
    /// Where it comes from, in words.
    pub from: String,
    /// The issue that says the same, or was made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue: Option<u64>,
    /// The draft that stands for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<WireTaskId>,
}

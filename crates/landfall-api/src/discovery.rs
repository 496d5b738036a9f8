//! What agents found out.

use serde::{Deserialize, Serialize};

use crate::WireTaskId;

/// Asks what agents found out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DiscoveriesAsked {
    /// Those of no use any more, too.
    pub all: bool,
}

/// What agents found out, in the order of being found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiscoveryList {
    /// Each of them.
    pub discoveries: Vec<DiscoveryLine>,
}

/// Something an agent found out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiscoveryLine {
    /// Its number.
    pub number: u32,
    /// The task whose agent said it first.
    pub task: WireTaskId,
    /// Whether every agent is told, not only those of that task.
    pub global: bool,
    /// How much it matters, in the agent's own view: `low`, `medium`, `high` or `critical`.
    pub impact: String,
    /// What, in the agent's words.
    pub text: String,
    /// When it was said first.
    pub at_ms: i64,
    /// When it was said last.
    pub seen_ms: i64,
    /// How often it was said.
    pub times: u32,
    /// Whether it is of no use any more: its task is over, or it was withdrawn.
    pub archived: bool,
    /// Whether a person withdrew it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withdrawn: bool,
}

/// Withdraws what agents found out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiscoveryDrop {
    /// By their numbers.
    pub numbers: Vec<u32>,
}

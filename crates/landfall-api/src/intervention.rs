//! What a person says to one task while work goes on.

use serde::{Deserialize, Serialize};

use crate::WireTaskId;

/// Says something to the agent of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Message {
    /// Whose.
    pub task: WireTaskId,
    /// In these words.
    pub text: String,
    /// The run of the agent that is under way ends for it, and the next begins with it. Its work is kept.
    #[serde(default)]
    pub now: bool,
}

/// Keeps tasks from going on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hold {
    /// Which.
    pub tasks: Vec<WireTaskId>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Lets tasks that are held, or paused, go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Release {
    /// Which.
    pub tasks: Vec<WireTaskId>,
}

/// Says that tasks cannot go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Block {
    /// Which.
    pub tasks: Vec<WireTaskId>,
    /// Why.
    pub reason: String,
}

/// Sets limits for one task alone: new values, not additions. What is not named stays as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limits {
    /// Whose.
    pub task: WireTaskId,
    /// Runs of the agent in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
    /// Working time in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// Money in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

/// The limits a person set for one task.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnLimits {
    /// Runs of the agent in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
    /// Working time in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// Money in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

/// Asks what a task changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiffAsked {
    /// Which.
    pub task: WireTaskId,
    /// Only its work since this commit; none means all of it, against the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

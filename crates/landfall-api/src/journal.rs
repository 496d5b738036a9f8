//! The journal as people read it.

use serde::{Deserialize, Serialize};

use crate::WireTaskId;

/// Asks for a page of the journal.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LogAsked {
    /// Entries after this sequence number; from the start otherwise. Not together with `last`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Only what concerns this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<WireTaskId>,
    /// At most so many; 0 leaves it to the engine.
    pub limit: u32,
    /// The newest entries, oldest of them first, instead of the first ones.
    pub last: bool,
}

/// A page of the journal, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogPage {
    /// The entries.
    pub entries: Vec<LogEntry>,
    /// What to ask for `after` to go on from here.
    pub next: u64,
    /// Whether more is there now.
    pub more: bool,
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogEntry {
    /// Its place in the journal.
    pub seq: u64,
    /// When it was written.
    pub at_ms: i64,
    /// The task it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<WireTaskId>,
    /// What kind of fact.
    pub kind: String,
    /// The fact in one line.
    pub text: String,
    /// All of it.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub data: serde_json::Value,
}

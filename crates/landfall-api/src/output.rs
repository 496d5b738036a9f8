//! What agents and checks printed, page by page.
//!
//! Places are byte offsets of line starts in the file as it was written, so that a page can be asked for again, and a file
//! that grows keeps its places.

use serde::{Deserialize, Serialize};

use crate::{Blob, WireTaskId};

/// Which output of a task. What is left out does not matter; the latest that fits is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutputOf {
    /// Of this task.
    pub task: WireTaskId,
    /// Exactly this one, by its `key` in the list; nothing else is looked at then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Of this attempt.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "loose")]
    pub attempt: Option<u32>,
    /// Of this run of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "loose")]
    pub iteration: Option<u32>,
    /// Of this check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// What was said to stderr instead of stdout.
    #[serde(default, skip_serializing_if = "std::ops::Not::not", deserialize_with = "loose")]
    pub stderr: bool,
}

/// Numbers and marks are texts in a query. Fields that are gathered from within another request come as they were written, so what
/// they are to be is found out here.
fn loose<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    use serde::de::Error as _;
    let value = match serde_json::Value::deserialize(from)? {
        serde_json::Value::String(text) => serde_json::from_str(&text).map_err(D::Error::custom)?,
        other => other,
    };
    serde_json::from_value(value).map_err(D::Error::custom)
}

impl OutputOf {
    /// The latest output of a task.
    #[must_use]
    pub fn latest_of(task: WireTaskId) -> Self {
        Self { task, key: None, attempt: None, iteration: None, check: None, stderr: false }
    }
}

/// The outputs of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutputList {
    /// Of this task.
    pub task: WireTaskId,
    /// Oldest first.
    pub outputs: Vec<OutputLine>,
}

/// One output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutputLine {
    /// Its name, to ask for it.
    pub key: String,
    /// What printed it.
    pub kind: OutputKind,
    /// The attempt it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The run of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// The check, or the hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The agent profile that worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// How long its stdout is.
    pub bytes: u64,
    /// How long its stderr is.
    pub stderr_bytes: u64,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_ms: Option<i64>,
    /// When it ended; none while it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<i64>,
    /// Whether it still grows.
    pub grows: bool,
}

/// What printed an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OutputKind {
    /// An agent.
    Agent,
    /// A check of the gate.
    Check,
    /// A command of the person's around the work: a hook, a service.
    Hook,
}

/// Asks for a page of an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutputAsked {
    /// Which output.
    #[serde(flatten)]
    pub of: OutputOf,
    /// From here: a line's `at`, a page's `from` or `next`. The start, or the end if it goes backward, otherwise. Forward, the
    /// lines that begin here or later; backward, those that begin before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// The last lines before `at` instead of the first ones after it; they are in order all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub backward: bool,
    /// About so many lines; 500 when it is 0, never more than 5,000. Fewer when they are long.
    #[serde(default)]
    pub lines: u32,
    /// Only lines with this in them, whatever the case.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub search: String,
    /// Only of these levels; all, if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Level>,
    /// The lines as they were written, instead of what the agent meant by them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
}

/// How much a line matters, or what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Something went wrong.
    Error,
    /// Something may be wrong.
    Warn,
    /// What the agent reports about itself: its session, its model, what it used.
    Info,
    /// For whoever looks for a fault.
    Debug,
    /// A tool the agent used, or what came of it.
    Tool,
    /// What the agent said.
    Text,
    /// As it was printed.
    Raw,
}

impl Level {
    /// Every one there is.
    pub const ALL: [Self; 7] =
        [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Tool, Self::Text, Self::Raw];

    /// The word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Tool => "tool",
            Self::Text => "text",
            Self::Raw => "raw",
        }
    }
}

/// A page of an output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Output {
    /// Which output it is of.
    pub output: OutputLine,
    /// The lines, in the order they were written. One line of the file may be several of these, with the same `at`, or none.
    pub lines: Vec<Said>,
    /// Where the page begins: what to ask for `at` to go backward from it.
    pub from: u64,
    /// Where it ends: what to ask for `at` to go forward from it. Every line that begins between both was looked at; a search
    /// that found nothing yet goes on from here, or from `from` if it goes backward.
    pub next: u64,
    /// Whether nothing is before it.
    pub first: bool,
    /// Whether nothing is after it, as far as it is written.
    pub last: bool,
    /// How long the file is.
    pub total_bytes: u64,
}

/// One line of an output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Said {
    /// Where the line it comes from begins.
    pub at: u64,
    /// What it is.
    pub level: Level,
    /// When it was said, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<i64>,
    /// The text. Control characters are as they were printed: whoever shows it cleans it.
    pub text: String,
    /// Whether the line is longer than what is here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Set on what a tool printed, with level `tool`: whether the tool succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolOutcome>,
}

/// Whether a tool that an agent used succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ToolOutcome {
    /// It did, or the agent does not say that it failed.
    Succeeded,
    /// The agent says that it failed.
    Failed,
}

/// Asks for the bytes of an output, as they were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutputRange {
    /// Which output.
    #[serde(flatten)]
    pub of: OutputOf,
    /// From this byte.
    #[serde(default)]
    pub at: u64,
    /// At most so many; 1 MiB when it is 0, and never more.
    #[serde(default)]
    pub bytes: u32,
}

/// Bytes of an output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutputBytes {
    /// A name for a file that holds all of it.
    pub name: String,
    /// Where they begin.
    pub at: u64,
    /// Where the next ones begin.
    pub next: u64,
    /// How long the file is.
    pub total_bytes: u64,
    /// Whether it still grows.
    pub grows: bool,
    /// They.
    pub content: Blob,
}

//! A run under way, as whoever watches it sees it.

use serde::{Deserialize, Serialize};

use crate::{Mode, RunOutcome, SprintPlan, WireRunId, WireTaskId};

/// What to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RunAsked {
    /// Only these tasks and what they need; all that are ready, if empty.
    pub tasks: Vec<WireTaskId>,
    /// How many agents may work at once; what the settings say otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Who picks the next task; what the settings say otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The sprint it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sprint: Option<SprintAsked>,
    /// Somebody is there to resume a pause, to pick a task, or to answer. A server takes that for granted.
    pub attended: bool,
    /// Nobody is there, says whoever asks a server: it never waits for a person, and a pause ends the run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
}

/// The sprint a run is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SprintAsked {
    /// A new one.
    New(SprintPlan),
    /// The one that is open.
    Open,
}

/// What goes on in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RunView {
    /// Its id; none before it is journalled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<WireRunId>,
    /// Whether it still starts things.
    pub mode: RunMode,
    /// Who picks tasks; none before it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pilot: Option<Mode>,
    /// Why nothing begins, if it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// What a person can do, if it is their turn to pick.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pick: Option<String>,
    /// The sprint in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sprint: Option<String>,
    /// The batches of the landing queue, a line each.
    pub batches: Vec<String>,
    /// Why the landing queue does not move, if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_held: Option<String>,
    /// What each slot in use does.
    pub slots: Vec<SlotLine>,
    /// How many slots there are.
    pub slots_max: u32,
    /// How many tasks landed in this run.
    pub landed: u64,
    /// How many ended without landing in this run.
    pub failed: u64,
    /// How many are verified and on their way onto the base.
    pub landing: u64,
    /// How many wait for something other than a slot.
    pub waiting: u64,
    /// How many of those wait for the person.
    pub needs_you: u64,
    /// How many could start if there were slots.
    pub queued: u64,
    /// How long the run takes so far.
    pub elapsed_ms: u64,
    /// Tokens used so far.
    pub tokens: u64,
    /// Money used so far, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// What happened since the last look, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub news: Vec<NewsLine>,
    /// Where the journal stands: the next look asks for news after this.
    pub head: u64,
    /// How it ended, once it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Box<RunOutcome>>,
}

/// Whether a run still starts things.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RunMode {
    /// It does.
    #[default]
    Running,
    /// Iterations under way finish, no more are started.
    Draining,
    /// Agents are being stopped.
    Stopping,
}

/// What a slot does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SlotLine {
    /// The task in it, as people write it: `T7`.
    pub task: String,
    /// What it is called.
    pub title: String,
    /// The step of its flow.
    pub step: String,
    /// What is being done, in a word or two: `working`, `verifying`, `landing`.
    pub doing: String,
    /// The iteration, counted from 1; 0 before the first.
    pub iteration: u32,
    /// How many there may be.
    pub iterations_max: u32,
    /// Time spent on the task.
    pub elapsed_ms: u64,
    /// Tokens the task used.
    pub tokens: u64,
    /// Money the task used, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The last line the agent said.
    pub last_words: String,
}

/// Something that happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct NewsLine {
    /// When, in Unix milliseconds.
    pub at_ms: i64,
    /// The task it happened to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<WireTaskId>,
    /// What happened, in one line without the task: `landed as 3f2a… (2 iterations, 41s, 12.3k tokens)`.
    pub text: String,
}

/// A run that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunStarted {
    /// Where the journal stood before it: its news come after this.
    pub after: u64,
}

/// Asks what goes on in the run under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RunNowAsked {
    /// News after this place in the journal; none otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

//! Tasks that an agent proposes for a goal.

use serde::{Deserialize, Serialize};

use crate::{NewTask, Problem, TaskLine, Usage};

/// A proposal that holds together, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Proposal {
    /// Its number in this project; its tasks come from `proposal:<number>`.
    pub number: u32,
    /// The profile that proposed it.
    pub agent: String,
    /// The model, if it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tasks; `#2` is the second of these. A group is a draft that others are a part of.
    pub tasks: Vec<NewTask>,
    /// What was mended without asking the agent again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mended: Vec<String>,
    /// How often the agent was asked.
    pub rounds: u32,
    /// What that used.
    pub usage: Usage,
    /// How long that took.
    pub took_ms: u64,
    /// What became of it.
    pub outcome: ProposalOutcome,
    /// The same as `tasks`, if they were added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<TaskLine>,
}

/// Asks an agent for tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProposeStart {
    /// What is wanted.
    pub goal: String,
    /// The profile that is asked; `default` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// At most so many tasks; 20 when left out, never more than 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks_max: Option<u32>,
}

/// The proposals the server was asked for since it began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProposalList {
    /// Newest first.
    pub proposals: Vec<Proposing>,
}

/// A proposal on its way, or come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Proposing {
    /// Which of this server's.
    pub place: u32,
    /// What is wanted.
    pub goal: String,
    /// The profile that is asked.
    pub agent: String,
    /// When it was asked for.
    pub since_ms: i64,
    /// How it goes, a line each.
    pub told: Vec<String>,
    /// What came of it: its tasks are drafts until they are let start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Box<Proposal>>,
    /// Why nothing came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// Names a proposal by its number in the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProposalOf {
    /// Its number.
    pub number: u32,
}

/// What became of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ProposalOutcome {
    /// It was shown, and nothing was added.
    Shown,
    /// Its tasks were added and may start.
    Added,
    /// Its tasks were added as drafts, because nobody was there to say yes.
    Drafts,
    /// A person said no.
    Declined,
}

//! Tasks that an agent proposes for a goal.

use serde::{Deserialize, Serialize};

use crate::{NewTask, TaskLine, Usage};

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

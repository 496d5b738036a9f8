//! How a task is driven: who works on it, in which style, and what of an agent's session is kept.

use crate::signal::AgentUsage;
pub use landfall_facts::driving::{
    AgentAssignment, AgentDriveStyle, AgentRunTraces, ContextUsage, SessionStart,
};

/// A session of an agent that can be gone on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSession {
    /// The profile it belongs to.
    pub profile: String,
    /// The agent's own name for it.
    pub id: String,
    /// What it has used so far.
    pub usage: AgentUsage,
    /// How full its context was at last.
    pub context: Option<ContextUsage>,
    /// Whether it was asked to sum itself up: once is enough.
    pub compacted: bool,
}

/// One run of the agent in a few words, for whoever goes on without its memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastRun {
    /// Which run.
    pub iteration: u32,
    /// What we made of it.
    pub verdict: crate::Verdict,
    /// Whether it left a commit.
    pub committed: bool,
}

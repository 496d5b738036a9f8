//! Budgets, and what they are counted over.

use serde::{Deserialize, Serialize};

/// A bound on each thing that can be spent; none is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// Money, in millionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
    /// Tokens, read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Answers of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Working time of agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

words! {
    /// What is bounded.
    pub enum BudgetScope {
        /// One try of a step.
        Attempt = "attempt",
        /// One task.
        Task = "task",
        /// One drive of the engine.
        Run = "run",
        /// One day, from midnight to midnight.
        Day = "day",
    }
}

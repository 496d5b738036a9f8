//! A step that a self-driven agent reports.

use crate::defaults::is_zero;
use serde::{Deserialize, Serialize};

/// One finished step of an agent's own loop, in its words, each from a known list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LoopStep {
    /// The step: `plan`, `check`, `exec` and so on; or the status of its module where it says no more.
    pub step: String,
    /// What it came to; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result: String,
    /// What it does next; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next: String,
    /// At which checkpoint; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub checkpoint: String,
    /// Its number, if the agent counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// How often it summed up its context within it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub compactions: u32,
    /// Tells it from the one before: the same content is the same stride.
    pub mark: String,
}

impl LoopStep {
    /// How many steps were finished since `before`. A file that is written over between two looks tells by its number what
    /// was missed; a number that does not grow says nothing.
    #[must_use]
    pub fn steps_since(&self, before: Option<&Self>) -> u32 {
        match (before.and_then(|before| before.iteration), self.iteration) {
            (Some(before), Some(now)) if now > before => now - before,
            _ => 1,
        }
    }
}

impl std::fmt::Display for LoopStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.step)?;
        if !self.checkpoint.is_empty() {
            write!(f, " {}", self.checkpoint)?;
        }
        if !self.result.is_empty() {
            write!(f, ": {}", self.result)?;
        }
        if !self.next.is_empty() {
            write!(f, " → {}", self.next)?;
        }
        match self.iteration {
            Some(iteration) => write!(f, " #{iteration}"),
            None => Ok(()),
        }
    }
}

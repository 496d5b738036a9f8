//! Review modes and findings.

use crate::defaults::is_false;
use serde::{Deserialize, Serialize};

words! {
    /// When a person looks.
    #[derive(Default)]
    pub enum ReviewMode {
        /// Never, unless the change itself gives reason to.
        #[default]
        Skip = "skip",
        /// After landing, when there is time: nothing waits for it.
        Batch = "batch",
        /// Before landing, unless it went smoothly.
        AutoApprove = "auto-approve",
        /// Before every landing.
        PerTask = "per-task",
    }
}

/// How a task is reviewed, settled when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewRule {
    /// When a person looks.
    pub mode: ReviewMode,
    /// Runs of the agent up to which work counts as smooth.
    pub iterations_max: u32,
    /// Whether a person looks afterwards as well, whatever happened before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub after: bool,
}

impl Default for ReviewRule {
    fn default() -> Self {
        Self { mode: ReviewMode::Skip, iterations_max: 3, after: false }
    }
}

impl ReviewRule {
    /// The rule for a task whose tags say so, in a sprint that may want everything looked at afterwards. The strictest
    /// counts, and to look afterwards is no excuse not to look before.
    #[must_use]
    pub fn combine_with(
        self,
        by_tags: impl IntoIterator<Item = ReviewMode>,
        sprint_looks_after: bool,
    ) -> Self {
        let modes: Vec<ReviewMode> = std::iter::once(self.mode).chain(by_tags).collect();
        let after = modes.contains(&ReviewMode::Batch) || sprint_looks_after;
        Self { mode: modes.into_iter().max().unwrap_or_default(), after, ..self }
    }
}

words! {
    /// How much a finding matters.
    pub enum FindingSeverity {
        /// Worth knowing.
        Info = "info",
        /// Could be better.
        Minor = "minor",
        /// Should not land so.
        Major = "major",
        /// Must not land.
        Blocker = "blocker",
    }
}

impl FindingSeverity {
    /// Whether it keeps work from landing.
    #[must_use]
    pub fn blocks_landing(self) -> bool {
        self >= Self::Major
    }
}

/// Something a reviewer found, under a name that stays the same from one review to the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// `F1`, `F2`, … within the task.
    pub id: String,
    /// How much it matters.
    pub severity: FindingSeverity,
    /// In one line.
    pub title: String,
    /// In full.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Where: a file, with a line after a colon if there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// Whether a later review found it dealt with.
    #[serde(default, skip_serializing_if = "is_false")]
    pub resolved: bool,
}

/// A finding as people and agents read it.
impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { id, severity, title, place, .. } = self;
        match place.as_str() {
            "" => write!(f, "{id} ({}): {title}", severity.word()),
            place => write!(f, "{id} ({}, {place}): {title}", severity.word()),
        }
    }
}

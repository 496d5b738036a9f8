//! Limits of a task.

use crate::review::ReviewMode;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use crate::Budget;
use crate::conflict::ConflictTimeoutAction;
use crate::review::ReviewRule;
use crate::tune::GateParams;

/// The limits a person set for one task. They stand above the settings, whatever becomes of those.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskLimitOverrides {
    /// Runs of the agent in all.
    #[serde(rename = "iterations", default, skip_serializing_if = "Option::is_none")]
    pub iterations_max: Option<u32>,
    /// Working time in all.
    #[serde(rename = "time_ms", default, skip_serializing_if = "Option::is_none")]
    pub task_ms: Option<u64>,
    /// Money in all, in millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
}

impl TaskLimitOverrides {
    /// These, and what `newer` says instead.
    #[must_use]
    pub fn merge_newer(self, newer: Self) -> Self {
        Self {
            iterations_max: newer.iterations_max.or(self.iterations_max),
            task_ms: newer.task_ms.or(self.task_ms),
            micro_usd: newer.micro_usd.or(self.micro_usd),
        }
    }

    /// What a task may use when the settings say `limits`.
    #[must_use]
    pub fn over(self, mut limits: TaskLimits) -> TaskLimits {
        limits.iterations_max = self.iterations_max.unwrap_or(limits.iterations_max);
        limits.task_ms = self.task_ms.unwrap_or(limits.task_ms);
        limits.task_budget.micro_usd = self.micro_usd.or(limits.task_budget.micro_usd);
        limits
    }
}

/// What may be used, frozen into the journal when a task is bound.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TaskLimits {
    /// Runs of the agent in all.
    pub iterations_max: u32,
    /// Working time in all: agents and verification; waits do not count.
    pub task_ms: u64,
    /// Runs in a row without a commit before a warning; before the end, where the unchanged work is red.
    pub stuck_after: u32,
    /// Crashes and losses of the agent before giving up.
    pub restarts_max: u32,
    /// Stalls in one step before giving up; progress resets it.
    pub stalls_step_max: u32,
    /// Stalls in all before giving up; only a person's retry resets it.
    pub stalls_total_max: u32,
    /// Conflicts with the base before a person is asked.
    pub conflicts_max: u32,
    /// How long a person has for a conflict that is theirs.
    #[serde(default = "conflict_ms")]
    pub conflict_ms: u64,
    /// What happens after that.
    #[serde(default = "overdue")]
    pub overdue: ConflictTimeoutAction,
    /// Whether a person looks at it.
    #[serde(default = "review")]
    pub review: ReviewRule,
    /// Times the agent may be told that it goes round in a circle.
    #[serde(default = "loops_max")]
    pub loops_max: u32,
    /// How full a context may be, in per cent, before its session is asked to sum itself up.
    #[serde(default = "compact_percent")]
    pub compact_percent: u32,
    /// What one attempt may spend.
    #[serde(default)]
    pub attempt_budget: Budget,
    /// What the task may spend.
    #[serde(default)]
    pub task_budget: Budget,
    /// What its kind asks of checks, as far as earlier tasks of that kind taught; none when nobody said what kind it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<GateParams>,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            iterations_max: 50,
            task_ms: 30 * 60 * 1000,
            stuck_after: 5,
            restarts_max: 3,
            stalls_step_max: 3,
            stalls_total_max: 10,
            conflicts_max: 3,
            conflict_ms: 60 * 60 * 1000,
            overdue: ConflictTimeoutAction::Defer,
            review: ReviewRule::default(),
            loops_max: 3,
            compact_percent: 82,
            attempt_budget: Budget::default(),
            task_budget: Budget::default(),
            tuning: None,
        }
    }
}

// What a journal means that leaves these out is settled for good, whatever the defaults of this version are.

fn loops_max() -> u32 {
    3
}

fn compact_percent() -> u32 {
    82
}

fn conflict_ms() -> u64 {
    60 * 60 * 1000
}

fn overdue() -> ConflictTimeoutAction {
    ConflictTimeoutAction::Defer
}

fn review() -> ReviewRule {
    ReviewRule { mode: ReviewMode::Skip, iterations_max: 3, after: false }
}

/// A limit that has no effect any more. Older versions do not read limits without it.
const TRANSIENTS_MAX: u32 = 20;

impl Serialize for TaskLimits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body = serializer.serialize_struct("TaskLimits", 16)?;
        body.serialize_field("iterations_max", &self.iterations_max)?;
        body.serialize_field("task_ms", &self.task_ms)?;
        body.serialize_field("stuck_after", &self.stuck_after)?;
        body.serialize_field("restarts_max", &self.restarts_max)?;
        body.serialize_field("stalls_step_max", &self.stalls_step_max)?;
        body.serialize_field("stalls_total_max", &self.stalls_total_max)?;
        body.serialize_field("transients_max", &TRANSIENTS_MAX)?;
        body.serialize_field("conflicts_max", &self.conflicts_max)?;
        body.serialize_field("loops_max", &self.loops_max)?;
        body.serialize_field("compact_percent", &self.compact_percent)?;
        body.serialize_field("attempt_budget", &self.attempt_budget)?;
        body.serialize_field("task_budget", &self.task_budget)?;
        if self.conflict_ms != conflict_ms() {
            body.serialize_field("conflict_ms", &self.conflict_ms)?;
        }
        if self.overdue != overdue() {
            body.serialize_field("overdue", &self.overdue)?;
        }
        if self.review != review() {
            body.serialize_field("review", &self.review)?;
        }
        if let Some(tuning) = &self.tuning {
            body.serialize_field("tuning", tuning)?;
        }
        body.end()
    }
}

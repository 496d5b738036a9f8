//! Orders: what is to be done about a decision. They are data; the engine performs them after the facts are written.

use crate::driving::SessionStart;
use crate::flow::TrackerOperation;
use crate::task::StopRequest;
use crate::{Attempt, Commit, StepName, TaskId};

/// One order. Each may be performed again after a crash: performing it twice has the effect of once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Make the task's workspace, or find it standing.
    Prepare {
        /// Whose.
        task: TaskId,
        /// For this attempt.
        attempt: Attempt,
        /// Give up what stands (after keeping it) and start anew.
        fresh: bool,
    },
    /// Run the agent, or adopt it if it is running.
    Spawn {
        /// Whose.
        task: TaskId,
        /// Within this attempt.
        attempt: Attempt,
        /// Which run.
        iteration: u32,
        /// Of this step.
        step: StepName,
        /// The hard limit.
        deadline_ms: u64,
        /// What it begins with.
        talk: SessionStart,
    },
    /// End the agent's process tree.
    Kill {
        /// Whose.
        task: TaskId,
        /// Within this attempt.
        attempt: Attempt,
        /// How.
        stop: StopRequest,
    },
    /// Bring the work into the store, merge it with the base, verify the result.
    Check {
        /// Whose.
        task: TaskId,
        /// For this attempt.
        attempt: Attempt,
        /// The work, if it is in the store already and no workspace holds newer.
        head: Option<Commit>,
    },
    /// Write the report, and the certificate if it landed.
    Report {
        /// Whose.
        task: TaskId,
        /// For this attempt.
        attempt: Attempt,
    },
    /// Ask or tell the tracker of the task.
    Exchange {
        /// Whose.
        task: TaskId,
        /// For this attempt.
        attempt: Attempt,
        /// This; none: what it is made of.
        act: Option<TrackerOperation>,
    },
    /// Do what is to be done about a step that failed: the task says what that is.
    Recover {
        /// Whose.
        task: TaskId,
        /// For this attempt.
        attempt: Attempt,
    },
    /// Give the workspace up; what it holds is kept under a ref first.
    Tidy {
        /// Whose.
        task: TaskId,
    },
}

impl Effect {
    /// Whose it is.
    #[must_use]
    pub fn task(&self) -> TaskId {
        match self {
            Self::Prepare { task, .. }
            | Self::Spawn { task, .. }
            | Self::Kill { task, .. }
            | Self::Check { task, .. }
            | Self::Report { task, .. }
            | Self::Exchange { task, .. }
            | Self::Recover { task, .. }
            | Self::Tidy { task, .. } => *task,
        }
    }
}

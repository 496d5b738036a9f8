//! Events of who picks tasks, and of pauses.

use serde::{Deserialize, Serialize};

use crate::TaskId;

words! {
    /// Who picks the next task.
    #[derive(Default)]
    pub enum PilotMode {
        /// The engine: every slot is filled.
        #[default]
        Autopilot = "autopilot",
        /// A person: one task, then it waits.
        SemiAuto = "semi-auto",
    }
}

words! {
    /// Why a run was paused.
    pub enum PauseReason {
        /// A person said so.
        Person = "person",
        /// Several tasks in a row failed or ran out.
        Failures = "failures",
        /// One did, in a sprint that wants to stop then.
        SprintError = "sprint-error",
    }
}

words! {
    /// Where the drive of the backlog is.
    #[derive(Default)]
    pub enum PilotPhase {
        /// No run is under way.
        #[default]
        Idle = "idle",
        /// Slots are filled.
        Running = "running",
        /// Iterations end and nothing new begins.
        Paused = "paused",
        /// A person picks the next task.
        WaitingUser = "waiting for you",
        /// There was nothing left to do.
        Completed = "completed",
    }
}

/// One fact about the drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PilotEvent {
    /// It began, or changed its mode.
    #[serde(rename = "mode-set")]
    ModeSet {
        /// To this.
        mode: PilotMode,
    },
    /// A person picked the next task.
    #[serde(rename = "assigned")]
    Assigned {
        /// This one.
        task: TaskId,
    },
    /// What was picked needs nothing more by itself: a person picks again.
    #[serde(rename = "settled")]
    Settled,
    /// Nothing new begins.
    #[serde(rename = "run-paused")]
    Paused {
        /// The kind of reason.
        why: PauseReason,
        /// In words.
        reason: String,
    },
    /// It goes on.
    #[serde(rename = "run-resumed")]
    Resumed,
}

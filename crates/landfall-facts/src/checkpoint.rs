//! Events of checkpoints of the base.

use serde::{Deserialize, Serialize};

use crate::Commit;

words! {
    /// Why a checkpoint was made.
    pub enum CheckpointReason {
        /// Several tasks landed since the last one.
        Landings = "landings",
        /// A sprint was about to begin.
        Sprint = "sprint",
        /// A person wanted it; such a one is kept.
        Person = "person",
        /// The base was about to be put back to an earlier one.
        Restore = "restore",
    }
}

/// One fact about checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckpointEvent {
    /// One was made.
    #[serde(rename = "checkpoint-made")]
    Made {
        /// Under this name.
        name: String,
        /// Of this base.
        commit: Commit,
        /// Because.
        why: CheckpointReason,
    },
    /// One is no longer kept.
    #[serde(rename = "checkpoint-dropped")]
    Dropped {
        /// This one.
        name: String,
    },
}

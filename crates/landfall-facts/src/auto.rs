//! Events of loops that a client drives.

use serde::{Deserialize, Serialize};

use crate::TaskId;

/// One fact about a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AutoEvent {
    /// A session took a task up.
    #[serde(rename = "auto-started")]
    Started {
        /// This session, by its name.
        session: String,
        /// The module's folder, below the project.
        module: String,
        /// Its task.
        task: TaskId,
        /// So many iterations there may be.
        iterations_max: u32,
        /// So much working time there may be.
        minutes_max: u32,
    },
    /// A person wants the loop of a session to end: once what is under way is finished. One that failed lets go of its task.
    #[serde(rename = "auto-stop-asked")]
    StopAsked {
        /// This session.
        session: String,
    },
}

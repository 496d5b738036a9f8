//! The state of an account that agents work on.

use crate::defaults::is_false;
use serde::{Deserialize, Serialize};

use crate::{TaskId, Timestamp};

/// Whether an account can be worked on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccountState {
    /// It can.
    #[serde(rename = "open")]
    Open,
    /// Not before then; after that one agent tries it first.
    #[serde(rename = "used-up")]
    UsedUp {
        /// The reset, as it was first said.
        until: Timestamp,
        /// Whether that is a guess, because no agent named it.
        #[serde(default, skip_serializing_if = "is_false")]
        guessed: bool,
    },
    /// Its provider has a passing trouble: not before then; after that one agent tries it first.
    #[serde(rename = "troubled")]
    Troubled {
        /// The next try.
        until: Timestamp,
        /// Tries in a row that met it. The pause grows with them, whichever tasks they were of.
        #[serde(default = "tries", skip_serializing_if = "is_tries")]
        tries: u32,
    },
    /// Not before a person has logged in and said so.
    #[serde(rename = "logged-out")]
    LoggedOut {
        /// The task that asks them.
        task: TaskId,
    },
}

/// Before the tries of an account were counted, a trouble was noted after the second of a task.
fn tries() -> u32 {
    2
}

fn is_tries(tries: &u32) -> bool {
    *tries == self::tries()
}

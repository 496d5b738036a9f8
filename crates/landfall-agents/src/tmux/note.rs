//! What the bridge says, one JSON object a line: `{"tmux":"key","keys":"Enter","why":"trust"}`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One such line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "tmux", rename_all = "kebab-case")]
pub enum TmuxNote {
    /// The agent is started in its terminal.
    Started {
        /// Its program.
        program: String,
        /// Its process.
        pid: i32,
        /// Its session, where we chose the name.
        #[serde(default)]
        session: Option<String>,
    },
    /// The screen shows something else than before.
    Screen {
        /// What, in a word.
        seen: String,
    },
    /// Lines that are new on the screen. For a person: nothing is read out of them.
    Lines {
        /// They.
        lines: Vec<String>,
    },
    /// The prompt is typed.
    Prompted,
    /// A message of the agent, whole.
    Said {
        /// What it says.
        text: String,
    },
    /// A key was pressed.
    Key {
        /// Which.
        keys: String,
        /// Why.
        why: String,
    },
    /// The agent asks something that we do not answer.
    Asked {
        /// What it is about.
        why: String,
        /// What stands there.
        text: String,
    },
    /// Something else than the agent has the keyboard, so nothing is typed.
    Held {
        /// Its name.
        by: String,
    },
    /// The account is used up.
    Limit {
        /// What stands there.
        text: String,
    },
    /// The agent wants a login.
    Login {
        /// What stands there.
        text: String,
    },
    /// We were told to stop.
    Stopping,
    /// The agent has done what it was told last, and is to be told more.
    Waiting {
        /// How many commands it was told after its prompt.
        count: u32,
    },
    /// The agent has done its work and waits for more.
    Done,
    /// It went wrong.
    Failed {
        /// How.
        why: String,
    },
    /// The terminal is gone with all that was in it.
    Ended {
        /// How the agent's process ended, in words.
        how: String,
    },
}

impl TmuxNote {
    /// The line of a note, without its end.
    #[must_use]
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers always have a JSON form")
    }

    /// The note in an object; none if it is something else.
    pub(super) fn deserialize(object: &Value) -> Option<Self> {
        <Self as Deserialize>::deserialize(object).ok()
    }
}

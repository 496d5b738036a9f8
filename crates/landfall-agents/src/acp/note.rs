//! What the bridge itself says, one JSON object a line: `{"bridge":"session","id":"…"}`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One such line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "bridge", rename_all = "kebab-case")]
pub enum AcpNote {
    /// The agent is started; it has said nothing yet.
    Started {
        /// Its program.
        program: String,
        /// Its process.
        pid: u32,
    },
    /// The conversation has a session.
    Session {
        /// Its name.
        id: String,
        /// Whether it is the one that was to be resumed.
        resumed: bool,
        /// The model, if the agent said.
        #[serde(default)]
        model: Option<String>,
    },
    /// The session that was to be resumed is not there; a new one follows.
    SessionGone {
        /// Its name.
        id: String,
        /// What the agent said about it.
        why: String,
    },
    /// Something about the session was set, or could not be.
    Set {
        /// Mode, model or effort.
        what: String,
        /// To what.
        to: String,
        /// Why not.
        #[serde(default)]
        refused: Option<String>,
    },
    /// The prompt is sent: what the agent says from here on is its answer, not an old conversation played again.
    Prompted,
    /// The agent asked for leave to do something.
    Asked {
        /// For what.
        what: String,
        /// The answer that was chosen; none when nothing offered was a yes.
        chosen: Option<String>,
    },
    /// The agent asked for something we do not do.
    Unsupported {
        /// The method.
        method: String,
    },
    /// The agent wrote something that is no message.
    Raw {
        /// Its beginning.
        text: String,
        /// Bytes in all.
        bytes: u64,
    },
    /// We were told to stop.
    Stopping,
    /// The prompt is answered.
    Answered {
        /// The agent's result, as it came.
        result: Value,
    },
    /// It went wrong.
    Failed(AcpError),
    /// The agent's process has ended, or was ended.
    Ended {
        /// How, in words.
        how: String,
    },
}

/// What went wrong, as the protocol has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AcpError {
    /// What we were about.
    pub at: String,
    /// The protocol's code; none when it was not the agent that refused.
    #[serde(default)]
    pub code: Option<i64>,
    /// In words.
    pub message: String,
    /// More, if the agent gave more.
    #[serde(default)]
    pub data: Value,
}

impl AcpNote {
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

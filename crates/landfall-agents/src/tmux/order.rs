//! What the bridge is told, and where a person finds the terminal, as files.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::TerminalAgentKind;
use crate::agent::LaunchError;

/// The name of the socket of the terminal's own server.
pub const SOCKET: &str = "tmux.sock";
/// The file in the folder of a run that says where its terminal is.
pub const TERMINAL: &str = "terminal.json";

/// The file in the order's folder that says what is typed next.
pub const NEXT: &str = "next.json";

/// One agent to drive in a terminal. It works in the folder the bridge is started in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TmuxOrder {
    /// The agent's command line.
    pub argv: Vec<String>,
    /// Whose screens they are.
    pub cli: TerminalAgentKind,
    /// What it is asked.
    pub prompt: String,
    /// What the terminal is called.
    pub name: String,
    /// Where the socket of the terminal's server is: a folder of this run alone.
    pub folder: PathBuf,
    /// Whether more follows, in [`NEXT`], once the agent has done what it is asked.
    #[serde(default)]
    pub dispatched: bool,
    /// The time between two looks at the screen, in milliseconds. The other pauses scale with it.
    #[serde(default = "default_poll_ms")]
    pub poll_ms: u64,
    /// The agent's session, where we choose its name.
    pub session: Option<String>,
}

/// The time between two looks at the screen, unless the profile chooses another.
pub const POLL_MS: u64 = 700;

/// For orders that were written before there was a choice.
fn default_poll_ms() -> u64 {
    POLL_MS
}

/// What is typed next, in the file [`NEXT`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextInput {
    /// Which, from 1: each is typed once.
    pub count: u32,
    /// This; none: nothing follows, and the terminal is left.
    pub text: Option<String>,
}

/// Where a person attaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachTarget {
    /// The folder the socket is in. Its path may be longer than a socket's address.
    pub folder: PathBuf,
    /// The socket in it.
    pub socket: String,
    /// What the terminal is called.
    pub name: String,
}

impl TmuxOrder {
    /// As it is written.
    pub(super) fn json(&self) -> Result<Vec<u8>, LaunchError> {
        serialize_json(self)
    }

    /// As it was written; else what is wrong with it.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| error.to_string())
    }
}

impl AttachTarget {
    pub(super) fn to_json(&self) -> Result<Vec<u8>, LaunchError> {
        serialize_json(self)
    }

    /// As it was written; else what is wrong with it.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| error.to_string())
    }
}

impl NextInput {
    /// As it is written.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a number and a text always have a JSON form")
    }

    /// As it was written; else what is wrong with it.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| error.to_string())
    }
}

fn serialize_json(value: &impl Serialize) -> Result<Vec<u8>, LaunchError> {
    serde_json::to_vec(value).map_err(|_| LaunchError::Env {
        profile: String::new(),
        key: "TMPDIR".to_owned(),
        problem: "is a path that is no text, and a terminal's socket must be named",
    })
}

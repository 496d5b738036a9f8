//! What the bridge is told, as a file.

use serde::{Deserialize, Serialize};

/// One conversation to hold. It takes place in the folder the bridge is started in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcpOrder {
    /// The agent's command line.
    pub argv: Vec<String>,
    /// What it is asked.
    pub prompt: String,
    /// The session to go on with.
    pub resume: Option<String>,
    /// Modes in which it does not ask: the first that it offers is set.
    pub modes: Vec<String>,
    /// The model to set.
    pub model: Option<String>,
    /// How hard it is to think, in the agent's own word.
    pub effort: Option<String>,
    /// Tools of ours to offer it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpServer>,
}

/// A program that offers tools on stdio.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServer {
    /// What the agent calls it.
    pub name: String,
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Names of variables of the bridge's own environment that it needs. Their values stand in no file.
    pub env: Vec<String>,
}

impl AcpOrder {
    /// As it is written.
    #[must_use]
    pub fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings always have a JSON form")
    }

    /// As it was written; else what is wrong with it.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| error.to_string())
    }
}

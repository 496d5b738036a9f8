//! Who is let in: sessions of browsers, links that let one in, tokens for agents.

use serde::{Deserialize, Serialize};

/// Everybody who is let in to the web pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionList {
    /// Newest first.
    pub sessions: Vec<SessionLine>,
}

/// A browser, or an agent's token, that is let in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionLine {
    /// Its name, for revoking it. It opens nothing.
    pub session: String,
    /// Whether it is an agent's, which reads and suggests only.
    pub agent: bool,
    /// What it calls itself.
    pub label: String,
    /// When it was let in.
    pub since_ms: i64,
    /// When it was last heard of.
    pub seen_ms: i64,
    /// When it is let in no more.
    pub until_ms: i64,
    /// Whether it is whoever asks.
    pub this: bool,
}

/// Names a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionOf {
    /// Its name.
    pub session: String,
}

/// Asks for a link that lets one browser in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PairAsked {
    /// What to call the browser that comes by it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub label: String,
}

/// A link that lets one browser in, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pairing {
    /// One for each address the server listens on; all hold the same code.
    pub links: Vec<String>,
    /// How long it can be used.
    pub until_ms: i64,
    /// The last link as a picture to be read by a phone: rows of dark (true) and light squares.
    pub squares: Vec<String>,
}

/// Asks for a token for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AgentTokenAsked {
    /// What to call it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub label: String,
}

/// A token for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentToken {
    /// The token. It is shown once.
    pub token: String,
    /// Its name, for revoking it.
    pub session: String,
    /// When it is let in no more.
    pub until_ms: i64,
}

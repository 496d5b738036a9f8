//! The agents we can drive: one line each.

use thiserror::Error;

use crate::acp::Acp;
use crate::agent::Agent;
use crate::claude::Claude;
use crate::codex::Codex;
use crate::command::CommandAgent;
use crate::gemini::Gemini;
use crate::nearest::nearest_word;
use crate::opencode::Opencode;
use crate::script::ScriptedAgent;
use crate::tmux::Tmux;

/// What an agent says of what it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageReport {
    /// Money, or enough to know its price.
    Money,
    /// Tokens, but neither money nor always its model.
    Tokens,
    /// No number at all.
    Nothing,
}

/// An agent in the registry.
pub struct AgentEntry {
    /// What profiles call it: their `kind`.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// What it says of what it uses.
    pub usage: UsageReport,
    /// Whether it works without settings, so that a project may be set up with it if it is installed.
    pub is_ready_made: bool,
    make: fn() -> Box<dyn Agent>,
}

/// All of them, in alphabetical order. Of the ready-made ones that are installed, the first is set up.
pub const AGENTS: &[AgentEntry] = &[
    AgentEntry {
        name: "acp",
        about: "Any agent of the Agent Client Protocol.",
        usage: UsageReport::Money,
        is_ready_made: false,
        make: || Box::new(Acp),
    },
    AgentEntry {
        name: "claude",
        about: "Claude Code of Anthropic.",
        usage: UsageReport::Money,
        is_ready_made: true,
        make: || Box::new(Claude),
    },
    AgentEntry {
        name: "codex",
        about: "Codex of OpenAI.",
        usage: UsageReport::Tokens,
        is_ready_made: true,
        make: || Box::new(Codex),
    },
    AgentEntry {
        name: "command",
        about: "Any program that reads a prompt on stdin.",
        usage: UsageReport::Nothing,
        is_ready_made: false,
        make: || Box::new(CommandAgent),
    },
    AgentEntry {
        name: "gemini",
        about: "Gemini CLI of Google.",
        usage: UsageReport::Tokens,
        is_ready_made: true,
        make: || Box::new(Gemini),
    },
    AgentEntry {
        name: "opencode",
        about: "opencode, with any provider it knows.",
        usage: UsageReport::Money,
        is_ready_made: true,
        make: || Box::new(Opencode),
    },
    AgentEntry {
        name: "script",
        about: "The scripted agent: no model, no account.",
        usage: UsageReport::Money,
        is_ready_made: false,
        make: || Box::new(ScriptedAgent),
    },
    AgentEntry {
        name: "tmux",
        about: "An interactive agent in a terminal.",
        usage: UsageReport::Nothing,
        is_ready_made: false,
        make: || Box::new(Tmux),
    },
];

impl AgentEntry {
    /// An adapter for it.
    #[must_use]
    pub fn create_agent(&self) -> Box<dyn Agent> {
        (self.make)()
    }
}

/// A kind that is not in the registry.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown agent `{given}`")]
pub struct UnknownAgent {
    /// What was asked for.
    pub given: String,
    /// What there is.
    pub known: Vec<&'static str>,
    /// What may have been meant.
    pub nearest: Option<&'static str>,
}

impl UnknownAgent {
    /// What a person could do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self.nearest {
            Some(word) => format!("did you mean `{word}`?"),
            None => format!("known are {}", self.known.join(", ")),
        }
    }
}

/// The agent of this kind.
pub fn find_agent(kind: &str) -> Result<&'static AgentEntry, UnknownAgent> {
    let known = || AGENTS.iter().map(|entry| entry.name);
    AGENTS.iter().find(|entry| entry.name == kind).ok_or_else(|| UnknownAgent {
        given: kind.chars().take(40).collect(),
        known: known().collect(),
        nearest: nearest_word(kind, known()),
    })
}

//! What an agent says. A signal is a claim; [`judge`](crate::judge()) makes a verdict of it.

use crate::Timestamp;

/// One thing heard from an agent, in the order it was said.
#[derive(Debug, Clone, PartialEq)]
pub enum Signal {
    /// The agent is up; its session can be resumed by this name.
    Started {
        /// The agent's own session id.
        session: Option<String>,
    },
    /// Words for a person.
    Text(String),
    /// It used a tool.
    ToolUse {
        /// The tool's name.
        name: String,
    },
    /// Tokens and money since the last such signal.
    Usage(Usage),
    /// The account is used up until then.
    Quota {
        /// When it resets, if the agent said.
        until: Option<Timestamp>,
    },
    /// A passing trouble of the provider.
    Transient {
        /// In its words.
        detail: String,
    },
    /// It wanted leave to do something and did not get it.
    PermissionAsked {
        /// For what.
        what: String,
    },
    /// It asks a person.
    Question(String),
    /// A control word.
    Said(Said),
    /// A control word that could not be understood: kept for the log, changes nothing.
    Malformed {
        /// What was wrong with it.
        code: &'static str,
        /// What it was.
        text: String,
    },
    /// The agent's own closing word, if its protocol has one.
    Finished {
        /// Whether it flagged an error.
        error: bool,
        /// Its last words.
        text: String,
    },
}

/// The control words of the glossary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// The work is done.
    Complete,
    /// It cannot go on, and why.
    Blocked(String),
    /// Only a person can decide this.
    Pending(String),
    /// How far it thinks it is, in per cent.
    Progress(u8),
    /// A conflict is resolved.
    Resolved,
    /// Something worth knowing for this task.
    DiscoveryLocal(String),
    /// Something worth knowing for every task.
    DiscoveryGlobal(String),
}

/// Tokens and money. Adding is saturating: a nonsense figure must not wrap.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// Tokens read.
    pub tokens_in: u64,
    /// Tokens written.
    pub tokens_out: u64,
    /// Money in millionths of a dollar.
    pub micro_usd: u64,
}

impl Usage {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens_in: self.tokens_in.saturating_add(other.tokens_in),
            tokens_out: self.tokens_out.saturating_add(other.tokens_out),
            micro_usd: self.micro_usd.saturating_add(other.micro_usd),
        }
    }
}

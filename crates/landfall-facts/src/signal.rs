//! What an agent says. A signal is a claim; the model makes a verdict of it.

use serde::{Deserialize, Serialize};

use crate::defaults::{is_false, is_zero};
use crate::{LoopStep, Timestamp};

/// One thing heard from an agent, in the order it was said.
#[derive(Debug, Clone, PartialEq)]
pub enum Signal {
    /// The agent is up.
    Started {
        /// The agent's own session id: it can be resumed by this name.
        session: Option<String>,
        /// The model it uses, if it said.
        model: Option<String>,
    },
    /// Words for a person: one message of the agent, or a part of one.
    Text(String),
    /// It began to use a tool.
    ToolUse {
        /// The tool's name.
        name: String,
        /// What it is used on, short: a command, a file. Told apart by it, equal steps show a loop.
        detail: String,
    },
    /// A tool it used has ended.
    ToolDone,
    /// Tokens and turns since the last such signal. What they cost is said by [`Signal::Cost`] or by the table of prices.
    Usage(AgentUsage),
    /// What this run has cost so far in all, in millionths of a dollar, as the agent itself reports it.
    Cost(u64),
    /// How full its context window is.
    Context {
        /// Tokens in it.
        used: u64,
        /// Tokens it can hold.
        size: u64,
    },
    /// It has summed up and dropped its earlier context.
    Compacted,
    /// How much of the account's allowance is used, while there is some left.
    Allowance {
        /// In per cent.
        used_percent: u8,
        /// When it resets, if the agent said.
        until: Option<Timestamp>,
    },
    /// The account is used up until then.
    Quota {
        /// When it resets, if the agent said.
        until: Option<Timestamp>,
    },
    /// A passing trouble of the provider: overload, a server error, a broken connection.
    Transient {
        /// In its words.
        detail: String,
    },
    /// The account is not logged in, or not allowed: only a person can mend that.
    Unauthorized {
        /// In its words.
        detail: String,
    },
    /// The session that was to be resumed is not there any more.
    SessionGone,
    /// It wanted leave to do something and did not get it.
    PermissionAsked {
        /// For what.
        what: String,
    },
    /// It asks a person.
    Question(String),
    /// A control word.
    Said(ControlSignal),
    /// It has finished a step of a loop of its own.
    Stride(LoopStep),
    /// It has done what it was told in its terminal, and waits there for more.
    Waiting {
        /// How many commands it was told after its prompt.
        count: u32,
    },
    /// A control word that could not be understood: kept for the log, changes nothing.
    Malformed {
        /// What was wrong with it.
        code: &'static str,
        /// What it was.
        text: String,
    },
    /// The agent's own closing word, if its protocol has one.
    Finished {
        /// How the run ended, in its view.
        how: AgentFinish,
        /// Its last words.
        text: String,
    },
}

/// How a run ended, in the agent's own view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AgentFinish {
    /// Well.
    Success,
    /// With an error, which an earlier signal may have explained.
    Error,
    /// At a limit of its own: turns or length. The work so far stands.
    Limit,
    /// It was interrupted.
    Interrupted,
}

/// The control words of the glossary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlSignal {
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
    /// Another task it wants to be thought of: a title, then a text.
    FollowUp(String),
    /// This step of its plan is done.
    Step(u32),
    /// Plan and reality part: a judge is to look before it goes on.
    Check(String),
}

/// Tokens, turns and money. Adding is saturating: a nonsense figure must not wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AgentUsage {
    /// Tokens read, those from a cache included.
    pub tokens_in: u64,
    /// Of these, read from a cache.
    pub tokens_cached: u64,
    /// Tokens written.
    pub tokens_out: u64,
    /// Answers of the model.
    pub turns: u64,
    /// Money in millionths of a dollar.
    pub micro_usd: u64,
    /// Of this, what the table of prices says, because the agent did not.
    pub micro_usd_priced: u64,
    /// Tokens that neither the agent nor the table of prices says the cost of.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tokens_unpriced: u64,
    /// Whether it may be more: a run ended before it had reported all.
    #[serde(default, skip_serializing_if = "is_false")]
    pub at_least: bool,
}

impl AgentUsage {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens_in: self.tokens_in.saturating_add(other.tokens_in),
            tokens_cached: self.tokens_cached.saturating_add(other.tokens_cached),
            tokens_out: self.tokens_out.saturating_add(other.tokens_out),
            turns: self.turns.saturating_add(other.turns),
            micro_usd: self.micro_usd.saturating_add(other.micro_usd),
            micro_usd_priced: self.micro_usd_priced.saturating_add(other.micro_usd_priced),
            tokens_unpriced: self.tokens_unpriced.saturating_add(other.tokens_unpriced),
            at_least: self.at_least || other.at_least,
        }
    }

    /// What is left after `before` is taken off: totals that an agent counts over a whole session.
    #[must_use]
    pub fn difference_from(self, before: Self) -> Self {
        Self {
            tokens_in: self.tokens_in.saturating_sub(before.tokens_in),
            tokens_cached: self.tokens_cached.saturating_sub(before.tokens_cached),
            tokens_out: self.tokens_out.saturating_sub(before.tokens_out),
            turns: self.turns.saturating_sub(before.turns),
            micro_usd: self.micro_usd.saturating_sub(before.micro_usd),
            micro_usd_priced: self.micro_usd_priced.saturating_sub(before.micro_usd_priced),
            tokens_unpriced: self.tokens_unpriced.saturating_sub(before.tokens_unpriced),
            at_least: self.at_least,
        }
    }

    /// Tokens in all.
    #[must_use]
    pub fn total_tokens(self) -> u64 {
        self.tokens_in.saturating_add(self.tokens_out)
    }
}

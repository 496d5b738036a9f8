//! What the engine concludes from a run of an agent.

use serde::{Deserialize, Serialize};

use crate::{BudgetScope, Timestamp};

/// The engine's opinion of one run of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It says it is done: worth verifying.
    #[serde(rename = "complete")]
    Complete,
    /// It says it cannot go on.
    #[serde(rename = "blocked")]
    Blocked {
        /// In its words.
        reason: String,
    },
    /// It asks a person.
    #[serde(rename = "pending")]
    Pending {
        /// In its words.
        question: String,
    },
    /// It wants a judge to look before it goes on.
    #[serde(rename = "checkpoint")]
    Checkpoint {
        /// In its words.
        reason: String,
    },
    /// It said nothing that ends the work: once more.
    #[serde(rename = "continue")]
    Continue,
    /// The account is used up; nobody's fault.
    #[serde(rename = "quota")]
    Quota {
        /// When to come back, if it said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// The provider had a passing trouble.
    #[serde(rename = "transient")]
    Transient {
        /// In its words.
        detail: String,
    },
    /// The account is not logged in, or not allowed.
    #[serde(rename = "unauthorized")]
    Unauthorized {
        /// In its words.
        detail: String,
    },
    /// The session it was to go on with is not there any more.
    #[serde(rename = "session-gone")]
    SessionGone,
    /// It said the same thing over and over and was stopped.
    #[serde(rename = "looping")]
    Looping,
    /// It was stopped because a budget was used up.
    #[serde(rename = "over-budget")]
    OverBudget {
        /// Whose.
        scope: BudgetScope,
        /// How much of how much.
        what: String,
    },
    /// It had to drop its context again and again within one run.
    #[serde(rename = "context-used-up")]
    ContextUsedUp,
    /// It died without a word that ends the work.
    #[serde(rename = "crashed")]
    Crashed {
        /// How.
        detail: String,
    },
    /// It ran into the hard limit of its time.
    #[serde(rename = "out-of-time")]
    OutOfTime,
    /// It was silent for too long.
    #[serde(rename = "stalled")]
    Stalled,
    /// We asked it to stop.
    #[serde(rename = "stopped")]
    Stopped,
    /// It could not be started at all.
    #[serde(rename = "not-started")]
    NotStarted {
        /// Why.
        detail: String,
        /// Whether trying again could help.
        hopeless: bool,
    },
    /// It vanished: not success, not failure; we do not know.
    #[serde(rename = "lost")]
    Lost,
}

impl Verdict {
    /// Whether the run came to an end of its own, rather than being cut short.
    #[must_use]
    pub fn is_own_word(&self) -> bool {
        match self {
            Self::Complete
            | Self::Blocked { .. }
            | Self::Pending { .. }
            | Self::Checkpoint { .. }
            | Self::Continue => true,
            Self::Quota { .. }
            | Self::Transient { .. }
            | Self::Unauthorized { .. }
            | Self::SessionGone
            | Self::Looping
            | Self::OverBudget { .. }
            | Self::ContextUsedUp
            | Self::Crashed { .. }
            | Self::OutOfTime
            | Self::Stalled
            | Self::Stopped
            | Self::NotStarted { .. }
            | Self::Lost => false,
        }
    }
}

impl Verdict {
    /// In a few words, for people.
    #[must_use]
    pub fn to_sentence(&self) -> String {
        match self {
            Self::Complete => "it says it is done".to_owned(),
            Self::Blocked { reason } => format!("it says it cannot go on: {reason}"),
            Self::Pending { question } => format!("it asks: {question}"),
            Self::Checkpoint { reason } => format!("it wants a look: {reason}"),
            Self::Continue => "it said nothing that ends the work".to_owned(),
            Self::Quota { .. } => "its account is used up".to_owned(),
            Self::Transient { detail } => format!("a passing trouble of the provider: {detail}"),
            Self::Unauthorized { detail } => format!("its account wants a login: {detail}"),
            Self::SessionGone => "its session was gone".to_owned(),
            Self::Looping => "it repeated itself".to_owned(),
            Self::OverBudget { what, .. } => format!("a budget was used up: {what}"),
            Self::ContextUsedUp => "it ran out of context".to_owned(),
            Self::Crashed { detail } => format!("it crashed: {detail}"),
            Self::OutOfTime => "it ran out of time".to_owned(),
            Self::Stalled => "it fell silent".to_owned(),
            Self::Stopped => "it was stopped".to_owned(),
            Self::NotStarted { detail, .. } => format!("it could not be started: {detail}"),
            Self::Lost => "it vanished".to_owned(),
        }
    }
}

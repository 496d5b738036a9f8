//! What a task waits for.

use crate::defaults::is_false;
use serde::{Deserialize, Serialize};

use std::fmt;

use crate::conflict::ConflictTimeoutAction;
use crate::{Commit, TaskId, Timestamp};

/// What a task waits for. Each has a name, an owner and, where time ends it, a deadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitReason {
    /// Tasks it needs that have not landed.
    #[serde(rename = "dependency")]
    Dependency(Vec<TaskId>),
    /// A slot that others hold.
    #[serde(rename = "slot")]
    Slot,
    /// A slot that is free, but not for this one yet. Never in the journal: it follows from who is at work.
    #[serde(skip)]
    Turn(TurnBlocker),
    /// An account.
    #[serde(rename = "quota")]
    Quota {
        /// Until then.
        until: Timestamp,
        /// Whether that is a guess, because the agent named no reset.
        #[serde(default, skip_serializing_if = "is_false")]
        guessed: bool,
    },
    /// A person's login.
    #[serde(rename = "login")]
    Login {
        /// For this account.
        account: String,
        /// What the agent said.
        detail: String,
        /// The task that asks for it.
        asker: TaskId,
    },
    /// Money, tokens, turns or time to spend.
    #[serde(rename = "budget")]
    Budget {
        /// What is used up.
        what: String,
        /// When there is more, if time brings it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// A person's answer.
    #[serde(rename = "question")]
    Question {
        /// To this.
        text: String,
    },
    /// A pause before trying again.
    #[serde(rename = "backoff")]
    Backoff {
        /// Until then.
        until: Timestamp,
        /// Because of this.
        cause: String,
    },
    /// Room on the disk.
    #[serde(rename = "disk")]
    Disk {
        /// What is left and what is wanted.
        detail: String,
    },
    /// A person's leave to go on.
    #[serde(rename = "pause")]
    Pause,
    /// A person who resolves a conflict with the base.
    #[serde(rename = "conflict")]
    Conflict {
        /// The base it conflicts with.
        base: Commit,
        /// In these files.
        files: Vec<String>,
        /// Until then.
        until: Timestamp,
        /// What happens after that.
        overdue: ConflictTimeoutAction,
    },
    /// The issues it is made of.
    #[serde(rename = "parts")]
    Parts,
    /// Issues that are to be done before it.
    #[serde(rename = "blockers")]
    Blockers {
        /// These: `#12`, or `owner/name#12` elsewhere.
        by: Vec<String>,
    },
    /// A check that cannot be trusted.
    #[serde(rename = "gate-broken")]
    GateBroken {
        /// Which one.
        command: String,
        /// What is wrong with it.
        detail: String,
    },
}

impl WaitReason {
    /// The name of the wait.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Dependency(_) => "dependency",
            Self::Slot | Self::Turn(_) => "slot",
            Self::Quota { .. } => "quota",
            Self::Login { .. } => "login",
            Self::Budget { .. } => "budget",
            Self::Question { .. } => "question",
            Self::Backoff { .. } => "backoff",
            Self::Disk { .. } => "disk",
            Self::Pause => "pause",
            Self::Conflict { .. } => "conflict",
            Self::Parts => "sub-issues",
            Self::Blockers { .. } => "blocked by issues",
            Self::GateBroken { .. } => "gate broken",
        }
    }

    /// Who ends it.
    #[must_use]
    pub fn owner_label(&self) -> WaitOwner {
        match self {
            Self::Dependency(_) => WaitOwner::Dependencies,
            Self::Parts => WaitOwner::SubIssues,
            Self::Blockers { .. } => WaitOwner::Blockers,
            Self::Slot
            | Self::Turn(_)
            | Self::Quota { .. }
            | Self::Backoff { .. }
            | Self::Budget { until: Some(_), .. } => WaitOwner::Engine,
            Self::Login { .. }
            | Self::Budget { until: None, .. }
            | Self::Question { .. }
            | Self::Disk { .. }
            | Self::Pause
            | Self::Conflict { .. }
            | Self::GateBroken { .. } => WaitOwner::You,
        }
    }
}

words! {
    /// Who ends a wait.
    pub enum WaitOwner {
        /// The tasks that it needs.
        Dependencies = "the tasks it needs",
        /// The issues that it is made of.
        SubIssues = "the issues it is made of",
        /// The issues that block it.
        Blockers = "the issues before it",
        /// The engine, by itself.
        Engine = "the engine",
        /// A person.
        You = "you",
    }
}

/// Whose turn it is before this one's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnBlocker {
    /// As many agents of its profile are at work as may be.
    Profile {
        /// The profile.
        name: String,
        /// So many.
        slots: u32,
    },
    /// As many agents are at work on its account as may be.
    Account {
        /// The account.
        name: String,
        /// So many.
        slots: u32,
    },
    /// As many agents are at work in a part of the repository that it touches as may be.
    Area {
        /// The part.
        name: String,
        /// So many.
        slots: u32,
    },
    /// Work that has not landed touches the same file, and others can run.
    Overlap {
        /// Whose work.
        with: TaskId,
        /// Where they meet.
        path: String,
    },
}

impl fmt::Display for TurnBlocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Profile { name, slots } => write!(f, "profile `{name}`, {slots} at once"),
            Self::Account { name, slots } => write!(f, "account `{name}`, {slots} at once"),
            Self::Area { name, slots } => write!(f, "area `{name}`, {slots} at once"),
            Self::Overlap { with, path } => write!(f, "{with} changes `{path}`"),
        }
    }
}

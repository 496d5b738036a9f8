//! The inbox: everything that waits for a person.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Action, Concern, WireTaskId};

/// Asks what waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct InboxAsked {
    /// Which comes first.
    pub order: InboxOrder,
    /// Only of these kinds; all, if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<InboxKind>,
    /// Only of this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<WireTaskId>,
    /// At most so many; 100 when it is 0, never more than 1,000.
    pub limit: u32,
}

/// Which comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum InboxOrder {
    /// What has waited longest.
    #[default]
    Oldest,
    /// What came last.
    Newest,
    /// What keeps most from going on; of these, what has waited longest.
    Urgent,
}

/// What waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Inbox {
    /// The last fact of the journal this is true for.
    pub seq: u64,
    /// How many there are of each kind that was asked for; a kind without any is left out.
    pub counts: BTreeMap<InboxKind, u64>,
    /// The first of them.
    pub items: Vec<InboxItem>,
    /// How many more there are.
    pub more: u64,
}

/// Why something waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum InboxKind {
    /// An agent or a flow asks something.
    Question,
    /// An account wants a login.
    Login,
    /// Verified work that somebody is to look at before it lands.
    Review,
    /// A conflict with the base that somebody is to resolve.
    Conflict,
    /// The engine cannot decide: a held queue, a broken gate, too many failures, a budget, the disk.
    Escalation,
    /// A task that cannot go on without a person.
    Blocked,
    /// A task that gave up or ran out, and was neither tried again nor cancelled.
    Failed,
    /// Landed work that somebody is to look at when there is time.
    Owed,
    /// An issue that landed and has boxes somebody is to tick, or criteria that are to be looked at again.
    Acceptance,
    /// A task that a person paused.
    Paused,
}

impl InboxKind {
    /// Every one there is.
    pub const ALL: [Self; 10] = [
        Self::Question,
        Self::Login,
        Self::Review,
        Self::Conflict,
        Self::Escalation,
        Self::Blocked,
        Self::Failed,
        Self::Owed,
        Self::Acceptance,
        Self::Paused,
    ];

    /// How urgent it is: what stops everything, what an agent waits for, what ended, what can wait.
    #[must_use]
    pub fn urgency(self) -> u8 {
        match self {
            Self::Escalation => 0,
            Self::Login => 1,
            Self::Question => 2,
            Self::Conflict => 3,
            Self::Review => 4,
            Self::Blocked => 5,
            Self::Failed => 6,
            Self::Acceptance => 7,
            Self::Owed => 8,
            Self::Paused => 9,
        }
    }

    /// The word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Login => "login",
            Self::Review => "review",
            Self::Conflict => "conflict",
            Self::Escalation => "escalation",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
            Self::Owed => "owed",
            Self::Acceptance => "acceptance",
            Self::Paused => "paused",
        }
    }
}

/// One thing that waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InboxItem {
    /// The same for as long as it is the same need: a task that asks again has another.
    pub key: String,
    /// Why it waits.
    pub kind: InboxKind,
    /// The task; none when it is about the whole project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<WireTaskId>,
    /// What the task is called, or what it is about.
    pub title: String,
    /// The question, the reason, the failure, as it was written; may have several lines.
    pub text: String,
    /// The step that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// It waits since then.
    pub since_ms: i64,
    /// Nobody is waited for after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
    /// What happens then.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub overdue: String,
    /// Answers that suggest themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// Why a person must look before it lands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub concerns: Vec<Concern>,
    /// What a reviewing agent found and still stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// What the agent that did the work says about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// The files in conflict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The commit it conflicts with, or landed as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// What can be done, the likeliest first.
    pub actions: Vec<Action>,
}

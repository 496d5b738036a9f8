//! Events of sprints.

use serde::{Deserialize, Serialize};

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::ids::IdError;
use crate::{Tag, TaskId, Timestamp};

/// A sprint, written `S3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SprintId(pub u32);

impl fmt::Display for SprintId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S{}", self.0)
    }
}

impl FromStr for SprintId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let digits = text.strip_prefix(['S', 's']).unwrap_or(text);
        match digits.parse() {
            Ok(number) if number > 0 => Ok(Self(number)),
            Ok(_) | Err(_) => {
                Err(IdError { text: text.chars().take(40).collect(), wanted: "a sprint such as S3" })
            }
        }
    }
}

/// When a sprint has what it wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SprintEndCondition {
    /// So many tasks are verified.
    #[serde(rename = "count")]
    Count(u32),
    /// It went on for so long, pauses not counted.
    #[serde(rename = "duration")]
    Duration {
        /// In milliseconds.
        ms: u64,
    },
    /// It is that late.
    #[serde(rename = "until")]
    Until(Timestamp),
    /// Nothing is ready any more.
    #[serde(rename = "no-ready")]
    NoReady,
}

impl SprintEndCondition {
    /// The source's word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Count(_) => "count",
            Self::Duration { .. } => "duration",
            Self::Until(_) => "until_time",
            Self::NoReady => "no_ready",
        }
    }
}

/// What a sprint is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SprintSpec {
    /// When it is over.
    pub goal: SprintEndCondition,
    /// Only these tasks; none means all.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub only: BTreeSet<TaskId>,
    /// Only parts of these; none means all.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub parents: BTreeSet<TaskId>,
    /// Only with one of these tags; none means all.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags_in: BTreeSet<Tag>,
    /// None with one of these.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags_out: BTreeSet<Tag>,
    /// A checkpoint is made before it.
    pub checkpoint: bool,
    /// The first task that fails pauses it.
    pub pause_on_error: bool,
    /// What lands is looked at by a person afterwards.
    pub batch_review: bool,
}

impl SprintSpec {
    /// A sprint with this goal and nothing else said.
    #[must_use]
    pub fn new(goal: SprintEndCondition) -> Self {
        Self {
            goal,
            only: BTreeSet::new(),
            parents: BTreeSet::new(),
            tags_in: BTreeSet::new(),
            tags_out: BTreeSet::new(),
            checkpoint: true,
            pause_on_error: false,
            batch_review: false,
        }
    }
}

words! {
    /// Why a sprint ended.
    pub enum SprintEnd {
        /// Its goal was reached.
        Goal = "goal",
        /// Nothing was left that could start.
        NothingLeft = "nothing-left",
        /// A person ended it.
        Cancelled = "cancelled",
        /// The budget was used up.
        Spent = "spent",
    }
}

words! {
    /// Where a sprint is, in a word.
    pub enum SprintStage {
        /// Tasks start.
        Running = "running",
        /// Nothing new begins until it goes on.
        Paused = "paused",
        /// It has what it wanted; what is under way is finished.
        Completing = "completing",
        /// It is over.
        Over = "over",
    }
}

words! {
    /// How a task of a sprint stands.
    pub enum SprintFate {
        /// Being worked on, or waiting.
        Open = "open",
        /// It landed.
        Landed = "landed",
        /// It gave up.
        Failed = "failed",
        /// It ran out.
        Timeout = "timeout",
        /// It is blocked.
        Blocked = "blocked",
        /// A person wants it no more.
        Cancelled = "cancelled",
    }
}

/// One fact about sprints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SprintEvent {
    /// One began.
    #[serde(rename = "sprint-started")]
    Started {
        /// Under this number.
        sprint: SprintId,
        /// As this.
        plan: SprintSpec,
        /// How many tasks could start.
        ready: u32,
    },
    /// Nothing new begins.
    #[serde(rename = "sprint-paused")]
    Paused {
        /// Because.
        reason: String,
    },
    /// It goes on.
    #[serde(rename = "sprint-resumed")]
    Resumed,
    /// It has what it wanted; what is under way is finished.
    #[serde(rename = "sprint-completing")]
    Completing {
        /// So.
        why: SprintEnd,
    },
    /// It is over.
    #[serde(rename = "sprint-ended")]
    Ended {
        /// So.
        why: SprintEnd,
    },
}

words! {
    /// What a person said of landed work.
    pub enum ReviewDecision {
        /// It is good.
        Approved = "approved",
        /// It is to be done again.
        Redo = "redo",
        /// It is not wanted.
        Rejected = "rejected",
        /// Not now.
        Deferred = "deferred",
        /// Nobody need look.
        Skipped = "skipped",
    }
}

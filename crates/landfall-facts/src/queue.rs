//! Events of the landing queue.

use serde::{Deserialize, Serialize};

use std::fmt;

use crate::gate::GateReport;
use crate::{Attempt, Commit, TaskId, Timestamp, Tree};

/// Tasks that land together, written `B7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BatchId(pub u32);

impl fmt::Display for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "B{}", self.0)
    }
}

/// A task in a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchMember {
    /// It.
    pub task: TaskId,
    /// The attempt that stands in line: the fence.
    pub attempt: Attempt,
    /// Its work.
    pub head: Commit,
}

/// The base with the first so many members of a batch, as one merge commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchPrefix {
    /// The commit.
    pub commit: Commit,
    /// Its tree.
    pub tree: Tree,
}

words! {
    /// The kinds of hold.
    pub enum HoldReason {
        /// The gate cannot be trusted: it says nothing about the work. A new base may mend it; it is tried again by itself.
        Gate = "gate",
        /// Many verifications, and nothing landed.
        Runaway = "runaway",
        /// Something on this machine failed.
        Machine = "machine",
        /// A person said so.
        Person = "person",
        /// The person's branch was rewritten: what was there is gone.
        Rewritten = "rewritten",
        /// The person's branch is gone.
        Deleted = "deleted",
    }
}

/// How a batch ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BatchEnd {
    /// So many of its members, from the front, landed.
    #[serde(rename = "landed")]
    Landed {
        /// How many.
        count: usize,
        /// As this commit.
        commit: Commit,
    },
    /// Nobody landed; whoever is not at fault stands in line again.
    #[serde(rename = "dropped")]
    Dropped {
        /// Because.
        reason: String,
    },
}

/// One fact about the queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum QueueEvent {
    /// Tasks were taken from the line, to land together.
    #[serde(rename = "queue-formed")]
    Formed {
        /// As this batch.
        batch: BatchId,
        /// On top of this one, which has not landed yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<BatchId>,
        /// These.
        members: Vec<BatchMember>,
    },
    /// They were merged.
    #[serde(rename = "queue-built")]
    Built {
        /// This batch.
        batch: BatchId,
        /// Onto this base.
        base: Commit,
        /// Whoever could be merged, in order.
        members: Vec<BatchMember>,
        /// One for each of them.
        prefixes: Vec<BatchPrefix>,
        /// Those that fit to the base, but not to the members before them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        crowded: Vec<TaskId>,
    },
    /// A beginning of the batch is being verified.
    #[serde(rename = "queue-check-began")]
    CheckBegan {
        /// This batch.
        batch: BatchId,
        /// So many members.
        count: usize,
    },
    /// It was verified.
    #[serde(rename = "queue-checked")]
    Checked {
        /// This batch.
        batch: BatchId,
        /// So many members.
        count: usize,
        /// All that was seen.
        report: GateReport,
    },
    /// A beginning is green, but fewer tests ran than on the base: whoever made that so is searched for.
    #[serde(rename = "queue-doubted")]
    Doubted {
        /// This batch.
        batch: BatchId,
        /// So many members.
        count: usize,
    },
    /// The base is being moved. Until the end of that is known, the base may hold it.
    #[serde(rename = "queue-landing-began")]
    LandingBegan {
        /// To this batch.
        batch: BatchId,
        /// To so many of its members.
        count: usize,
    },
    /// It is over.
    #[serde(rename = "queue-over")]
    Over {
        /// This batch.
        batch: BatchId,
        /// So.
        how: BatchEnd,
    },
    /// Nothing is taken from the line any more.
    #[serde(rename = "queue-held")]
    Held {
        /// The kind.
        why: HoldReason,
        /// In words.
        reason: String,
        /// Until then, if it ends by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// The line moves again.
    #[serde(rename = "queue-resumed")]
    Resumed,
}

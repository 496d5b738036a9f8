//! Which task needs which.

use serde::{Deserialize, Serialize};

use crate::{Size, Status, WireTaskId};

/// Asks which task needs which.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct GraphAsked {
    /// Only what is around this task: what it needs, what needs it, its parent and its parts. All open tasks otherwise, and those
    /// that hold them up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<WireTaskId>,
    /// At most so many steps away from the root; 0 means any number.
    pub depth: u32,
    /// Tasks that are over as well.
    pub done: bool,
    /// At most so many nodes; 300 when it is 0, never more than 2,000.
    pub nodes: u32,
}

/// Which task needs which.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Graph {
    /// The last fact of the journal this is true for.
    pub seq: u64,
    /// The tasks, each after what it needs.
    pub nodes: Vec<GraphNode>,
    /// What belongs together.
    pub edges: Vec<GraphEdge>,
    /// The longest chain of open tasks by size, in the order they would land. Every task of it is among the nodes, unless the
    /// nodes were too many.
    pub critical: Vec<WireTaskId>,
    /// How many more tasks there are than nodes.
    pub left_out: u64,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GraphNode {
    /// Which.
    pub id: WireTaskId,
    /// What it is called.
    pub title: String,
    /// Where it is.
    pub status: Status,
    /// How much work it is thought to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// The flow's own word for where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// 0 is the most urgent, 9 can wait.
    pub priority: u8,
    /// 0 for a task that needs none of the nodes, else one more than the highest tier it needs.
    pub tier: u32,
    /// How many tasks it needs that have not landed.
    pub unmet: u32,
    /// How many open tasks need it.
    pub unblocks: u64,
    /// How many open tasks need it in the end, by way of others too; counted up to 10,000.
    pub unblocks_all: u64,
}

/// What two tasks have to do with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GraphEdge {
    /// The task that must land first, or the parent.
    pub from: WireTaskId,
    /// The task that needs it, or the part.
    pub to: WireTaskId,
    /// Which of them.
    pub kind: EdgeKind,
    /// Whether nothing is waited for any more.
    pub met: bool,
}

/// What an edge means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EdgeKind {
    /// `to` needs `from`.
    Needs,
    /// `to` is a part of `from`.
    Parent,
}

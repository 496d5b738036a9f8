//! What is there: agents at work, folders, lanes, the disk.

use serde::{Deserialize, Serialize};

use crate::{AgentAtWork, AgentsFound, Reclaimed, Status, WireTaskId};

/// Asks what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FleetAsked {
    /// Counts what every folder takes, which reads each of them: seconds for large ones. Workspaces and the disk tell their
    /// bytes only then.
    pub count: bool,
    /// Asks the installed agents for their versions as well.
    pub agents: bool,
}

/// What is there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fleet {
    /// The last fact of the journal this is true for.
    pub seq: u64,
    /// Agents at work.
    pub agents: Vec<FleetAgent>,
    /// Folders of tasks.
    pub workspaces: Vec<FleetWorkspace>,
    /// How many more folders there are than are listed.
    pub workspaces_more: u64,
    /// Where verification runs.
    pub lanes: Vec<FleetLane>,
    /// Folders made in advance.
    pub warm: Vec<String>,
    /// The disk that holds the state folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<FleetDisk>,
    /// What `reclaim` would give back, and why nothing is lost with it; only when everything was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaimable: Option<Reclaimed>,
    /// The agents that are installed, and the profiles; only when they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<AgentsFound>,
    /// Processes that no engine watches; only when everything was counted.
    pub orphans: Vec<FleetOrphan>,
}

/// An agent at work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetAgent {
    /// On this task.
    pub task: WireTaskId,
    /// What the task is called.
    pub title: String,
    /// In this attempt.
    pub attempt: u32,
    /// In this iteration.
    pub iteration: u32,
    /// Its first process, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// How many processes it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Since then.
    pub since_ms: i64,
    /// Processor time of all its processes that are alive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// Memory of all its processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// What it has printed.
    pub output_bytes: u64,
    /// Who it is, how it is confined, and what it is at; only the process that drives it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentAtWork>,
}

/// The folder of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetWorkspace {
    /// Of this task; none when no task is known for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<WireTaskId>,
    /// Its name within the state folder.
    pub name: String,
    /// Where the task is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// How much space it takes, if that was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// `in use`, `kept` or `left over`.
    pub state: String,
    /// Why it is there, in a few words.
    pub why: String,
}

/// Where verification runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetLane {
    /// Its name.
    pub name: String,
    /// Whether a check runs in it.
    pub busy: bool,
    /// The check, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// How much space it takes, if that was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// The disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetDisk {
    /// What is left.
    pub free_bytes: u64,
    /// Below that a person is warned.
    pub warn_bytes: u64,
    /// Below that no agent starts.
    pub pause_bytes: u64,
    /// Below that agents are stopped.
    pub stop_bytes: u64,
    /// What Landfall uses for this project, by kind, the most first; only when it was counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used: Vec<FleetUse>,
}

/// How much space one kind of thing takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetUse {
    /// What.
    pub kind: String,
    /// How much.
    pub bytes: u64,
}

/// A process that no engine watches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetOrphan {
    /// What it was started for.
    pub name: String,
    /// Its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// What ends it.
    pub hint: String,
}

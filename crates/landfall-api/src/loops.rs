//! Loops: a session of a client has a module's task worked on, within limits of its own.
//!
//! [`LoopLine`] and its requests are the wire's own. [`TaskAuto`] and its kin are the same in the words of older clients, which
//! ask below `/api/sessions` and `/api/task-auto`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Problem, ProblemCode, WireTaskId};

/// How many iterations a loop has unless it says otherwise.
pub const LOOP_ITERATIONS: u32 = 20;
/// How many minutes of working time a loop has unless it says otherwise.
pub const LOOP_MINUTES: u32 = 30;

fn iterations() -> u32 {
    LOOP_ITERATIONS
}

fn minutes() -> u32 {
    LOOP_MINUTES
}

/// Begins a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoopAsked {
    /// The session it belongs to: a name of the client's own.
    pub session: String,
    /// The module's folder: below the project, or an absolute path that leads there.
    pub dir: String,
    /// How many iterations there may be.
    #[serde(default = "iterations")]
    pub iterations: u32,
    /// How many minutes of working time there may be.
    #[serde(default = "minutes")]
    pub minutes: u32,
    /// The flow of its task: `lifecycle`, or `watched` for an agent that runs its own loop or a terminal that is typed into. Without
    /// it the task keeps its flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
}

/// The loop of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoopOf {
    /// Its name.
    pub session: String,
}

/// Which loops are wanted. Everything that is set must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LoopsAsked {
    /// Of this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Of the module in this folder: below the project, or an absolute path that leads there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// Of this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<WireTaskId>,
}

/// Loops, newest first; those that are over are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoopList {
    /// They.
    pub loops: Vec<LoopLine>,
}

/// How a loop stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LoopStatus {
    /// It goes on.
    Running,
    /// It ends as soon as what is under way is finished.
    Stopping,
    /// It is over.
    Stopped,
    /// Its agent broke off too often, or something else failed.
    Failed,
}

impl LoopStatus {
    /// The word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }
}

/// One loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoopLine {
    /// Whose it is.
    pub session: String,
    /// The module's folder.
    pub dir: String,
    /// Its task.
    pub task: WireTaskId,
    /// How it stands.
    pub status: LoopStatus,
    /// Whether nobody else may have the session, or the task: while it is not over, and after a failure until somebody has
    /// stopped it.
    pub holds: bool,
    /// Iterations that are completed.
    pub iterations: u32,
    /// How many there may be.
    pub iterations_max: u32,
    /// Working time so far. Waits, and times in which nothing drove, are no part of it.
    pub elapsed_ms: u64,
    /// How many minutes of it there may be.
    pub minutes_max: u32,
    /// The step of the flow that is under way, or comes next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The same as the agent calls it: `plan`, `check`, `exec`, `verify`, `merge`, `report`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_step: Option<String>,
    /// When it began.
    pub started_ms: i64,
    /// When its task last came forward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal_ms: Option<i64>,
    /// Agents that fell silent since the last progress, and were begun anew.
    pub recoveries_step: u32,
    /// The same in all.
    pub recoveries: u32,
    /// Agents that fell silent in a row: zero again as soon as one ends by its own word.
    #[serde(default)]
    pub stalls: u32,
    /// Since when it waits for an account's allowance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_since_ms: Option<i64>,
    /// Agents that broke off in a row, and were begun anew.
    pub restarts: u32,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<i64>,
    /// Why, in a word: `complete`, `user_stop`, `max_iterations`, `timeout`, `stall_limit`, `blocked`, `cancelled`, or what failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How it is, in one sentence.
    pub text: String,
}

/// Begins a loop, in the words of older clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TaskAutoAsked {
    /// The module's folder: an absolute path below the project.
    #[cfg_attr(feature = "schema", schemars(example = "/home/me/project/AiTasks/auth-refactor"))]
    pub task_dir: String,
    /// How many iterations there may be.
    #[serde(default = "iterations")]
    pub max_iterations: u32,
    /// How many minutes of working time there may be.
    #[serde(default = "minutes")]
    pub timeout_minutes: u32,
    /// The flow of its task: `lifecycle`, or `watched` for an agent that runs its own loop or a terminal that is typed into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
}

/// One loop, in the words of older clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskAuto {
    /// Whose it is.
    pub session_name: String,
    /// The module's folder.
    pub task_dir: String,
    /// How it stands.
    pub status: LoopStatus,
    /// How many iterations there may be.
    pub max_iterations: u32,
    /// How many minutes of working time there may be.
    pub timeout_minutes: u32,
    /// Iterations that are completed.
    pub iteration_count: u32,
    /// When it began, in UTC.
    pub started_at: String,
    /// When its task last came forward, in UTC; empty before that.
    pub last_signal_at: String,
    /// Recoveries since the last progress.
    pub recovery_count_step: u32,
    /// Recoveries in all.
    pub recovery_count_total: u32,
    /// Agents that fell silent in a row.
    pub stall_count: u32,
    /// Since when it waits for an account's allowance, in UTC; empty if it does not.
    pub quota_wait_since: String,
    /// Agents that broke off in a row.
    pub restart_count: u32,
    /// Working time so far, in seconds.
    pub elapsed_seconds: u64,
    /// The step that is under way, or comes next; empty when it is over.
    pub current_step: String,
    /// When it was over, in UTC; empty before that.
    pub ended_at: String,
    /// Why it is over, in a word; empty before that.
    pub stop_reason: String,
    /// The task in Landfall.
    pub task: WireTaskId,
}

/// Who holds a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskAutoHolder {
    /// The session.
    pub session_name: String,
    /// How its loop stands.
    pub status: LoopStatus,
}

/// Why it was not done, in the words of older clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskAutoError {
    /// What was wrong.
    pub error: String,
    /// The kind of problem, for programs.
    pub code: ProblemCode,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The session that has the loop which is in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// The folder of that loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_dir: Option<String>,
    /// How that loop stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

impl From<&Problem> for TaskAutoError {
    fn from(problem: &Problem) -> Self {
        let fact = |name: &str| problem.context.get(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            error: problem.message.clone(),
            code: problem.code,
            hint: problem.hint.clone(),
            holder: fact("holder"),
            task_dir: fact("task_dir"),
            status: fact("status"),
        }
    }
}

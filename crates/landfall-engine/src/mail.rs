//! What arrives at the engine. The threads that perform orders send it; the loop of the engine takes it in.

use std::sync::mpsc::Sender;

use landfall_model::base_gate::BaseCheckResult;
use landfall_model::{EngineEvent, News, PathPattern, QueueNews, TaskId};

use crate::ask::{AskResult, EngineRequest};

/// What arrives at the engine.
pub(crate) enum EngineMessage {
    /// News of a task.
    News(TaskId, Box<News>),
    /// News of the landing queue.
    Queue(Box<QueueNews>),
    /// Files that the work of a task touches, as seen in its workspace.
    Observed(TaskId, Vec<PathPattern>),
    /// What was being done about this task is left to the next run.
    CutShort(TaskId),
    /// A look into work under way is over.
    ScoutOver,
    /// A fact about the engine that a performing thread has found.
    Fact(EngineEvent),
    /// A person asks.
    Ask(EngineRequest, Sender<AskResult>),
    /// What came of the checks on the base.
    BaseChecked(Box<BaseCheckResult>),
    /// The model has answered an agent of this task: its account can be worked on.
    Answered(TaskId),
    /// Publishing is over for now.
    PublishOver,
    /// A workspace was given up, or could not be: whoever waits for the end of that looks again.
    Tidied,
    /// Finish what is under way, then stop.
    Drain,
    /// Stop now.
    StopNow,
}

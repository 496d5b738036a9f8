//! What carries out commands: the project, its engine, and a way to ask it. Each module of `command` adds its own methods.

use std::sync::Arc;

use landfall_api::{Problem, ProblemCode};
use landfall_engine::model::{Task, TaskId};
use landfall_engine::{EngineReply, EngineRequest};

use super::engine_at::EngineLocation;
use super::place::ProjectLocation;
use super::problems;
use super::query_context::Query;
use super::reader_pool::PooledReader;

/// Asks the engine, wherever it is.
pub(crate) type EngineCall<'a> = &'a dyn Fn(EngineRequest) -> Result<EngineReply, Problem>;

/// Carries writes out, each in the file that is about it.
pub(crate) struct CommandHandler<'a> {
    pub place: &'a ProjectLocation,
    pub engine: &'a EngineLocation,
    pub ask: EngineCall<'a>,
}

impl CommandHandler<'_> {
    pub fn query(&self) -> Query<'_> {
        Query { place: self.place, engine: self.engine }
    }

    /// The tables. The first write has made them.
    pub fn open_reader(&self) -> Result<PooledReader, Problem> {
        let missing =
            || Problem::new(ProblemCode::Internal, "the journal is not there after it was written to");
        self.place.open_reader()?.ok_or_else(missing)
    }

    pub fn reader_for_task(&self, task: TaskId) -> Result<PooledReader, Problem> {
        self.place.open_reader()?.ok_or_else(|| problems::unknown_task(task))
    }

    pub fn request_tasks(&self, ask: EngineRequest) -> Result<Vec<Arc<Task>>, Problem> {
        match (self.ask)(ask)? {
            EngineReply::Tasks(tasks) => Ok(tasks),
            other => Err(unexpected_reply("tasks", &other)),
        }
    }
}

/// The engine answered something else than it was asked: a bug.
pub(crate) fn unexpected_reply(asked: &str, told: &EngineReply) -> Problem {
    let told = match told {
        EngineReply::Tasks(_) => "tasks",
        EngineReply::Checkpoint { .. } => "a checkpoint",
        EngineReply::Done => "nothing more",
        EngineReply::Followed { .. } => "tasks of issues",
        EngineReply::Sprint(_) => "a sprint",
        EngineReply::Stopping { .. } => "a stop",
    };
    Problem::new(ProblemCode::Internal, format!("asked about {asked} and was told of {told}"))
}

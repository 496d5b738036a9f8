//! What a person can ask of the engine, and what they are told.

use std::sync::Arc;

use landfall_model::auto::AgentLoop;
use landfall_model::gate::GateReport;
use landfall_model::haul::{IssueBatchId, IssueSelection};
use landfall_model::issue::IssueOptions;
use landfall_model::pilot::PilotMode;
use landfall_model::plan::PlanOutline;
use landfall_model::{
    AgentUsage, Commit, Digest, News, NewsRefusal, ReviewInput, SprintId, Task, TaskId, TaskSize, TaskSpec,
};
use thiserror::Error;

/// What a person can ask of the engine.
#[derive(Debug, Clone)]
pub enum EngineRequest {
    /// Add these, all or none.
    Add(Vec<NewTaskSpec>),
    /// Change the words of a task.
    Edit(TaskId, Box<TaskSpec>),
    /// Let drafts start, all or none.
    Ready(Vec<TaskId>),
    /// Tell a task something.
    Tell(Vec<TaskId>, Box<News>),
    /// Undo a landed task by a task that reverts it.
    Rollback(TaskId),
    /// Begin nothing new until somebody resumes.
    Pause {
        /// Because.
        reason: String,
    },
    /// Go on after a pause.
    Resume,
    /// Change who picks the next task.
    SetMode(PilotMode),
    /// Pick the next task, or let the engine name the first in line.
    Assign(Option<TaskId>),
    /// End the open sprint.
    CancelSprint,
    /// Take nothing more from the landing queue.
    HoldQueue {
        /// Because.
        reason: String,
    },
    /// Let the landing queue move again.
    ResumeQueue {
        /// What becomes of a branch that was rewritten.
        rewritten: RewrittenBaseChoice,
    },
    /// Make a checkpoint of the base.
    Checkpoint {
        /// Under this name.
        name: Option<String>,
    },
    /// Let checkpoints go.
    DropCheckpoints {
        /// These.
        names: Vec<String>,
    },
    /// Bring the base back to a checkpoint, by a task that is verified and landed like any other.
    Restore {
        /// Its name.
        name: String,
    },
    /// Withdraw what agents found out.
    DropDiscoveries {
        /// By their numbers.
        numbers: Vec<u32>,
    },
    /// Note what an agent used that was asked outside of any task.
    Consulted {
        /// What for, in a word.
        about: String,
        /// By this profile.
        profile: String,
        /// What it used.
        usage: AgentUsage,
        /// How long it took.
        took_ms: u64,
    },
    /// Note what the checks showed on the base, where no engine ran.
    Measured(Box<GateReport>),
    /// Let a session have a module's task worked on, within limits of its own.
    LoopStart(Box<LoopRequest>),
    /// End the loop of a session, once what is under way is finished.
    LoopStop {
        /// This session.
        session: String,
    },
    /// Follow issues, each by a task.
    Follow(Box<FollowRequest>),
    /// Say what is to become of work that was looked at.
    Review(Vec<TaskId>, Box<ReviewInput>),
    /// Stop the run after the iterations under way, or now.
    StopRun {
        /// Now.
        now: bool,
    },
}

/// A loop to begin.
#[derive(Debug, Clone)]
pub struct LoopRequest {
    /// For this session.
    pub session: String,
    /// The module's folder, below the project.
    pub module: String,
    /// Its words, for when there is no task for it yet.
    pub spec: TaskSpec,
    /// The flow that its task must have, if a client named one.
    pub flow: Option<String>,
    /// Where it stands, for when there is no task for it yet.
    pub position: Option<ImportedProgress>,
    /// So many iterations.
    pub iterations_max: u32,
    /// So much working time.
    pub minutes_max: u32,
}

/// Issues that are to be followed.
#[derive(Debug, Clone)]
pub struct FollowRequest {
    /// Of this tracker.
    pub tracker: String,
    /// These, in the order in which they are to be begun.
    pub issues: Vec<FollowIssue>,
    /// The way they are to take.
    pub wishes: IssueOptions,
    /// Whether what was said earlier about the way still counts where nothing is said now.
    pub keep: bool,
    /// Whether they were asked for together, and how they were chosen.
    pub together: Option<IssueSelection>,
}

/// An issue that is to be followed.
#[derive(Debug, Clone)]
pub struct FollowIssue {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its size.
    pub size: Option<TaskSize>,
    /// Whether there is nothing left to do for it in the tracker: a task that is done is not followed by another.
    pub settled: bool,
    /// Whether it landed, by its label, and only its acceptance is left.
    pub at_verify: bool,
}

/// A task to add. Others of the same request are named by their place in it.
#[derive(Debug, Clone)]
pub struct NewTaskSpec {
    /// Its words.
    pub spec: TaskSpec,
    /// Needs within the request, from 0.
    pub needs_here: Vec<usize>,
    /// The parent within the request, from 0.
    pub parent_here: Option<usize>,
    /// Where it stands already; none begins at the beginning.
    pub position: Option<ImportedProgress>,
}

/// How far a task has come elsewhere before it became one here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportedProgress {
    /// The word under which its flow says where it begins: `executing`, `re-planning/needs-check`.
    pub entry: String,
    /// Its plan, kept by hash, and what is read out of it.
    pub plan: Option<(Digest, PlanOutline)>,
    /// Steps of the plan that are done.
    pub done: u32,
    /// The branch of the person's that may hold its work.
    pub branch: String,
    /// Its work, once it is in the store.
    pub work: Option<Commit>,
}

/// What came of it.
#[derive(Debug, Clone)]
pub enum EngineReply {
    /// These tasks are as they are now.
    Tasks(Vec<Arc<Task>>),
    /// A checkpoint was made.
    Checkpoint {
        /// Under this name.
        name: String,
    },
    /// It is so now.
    Done,
    /// Issues are followed by these tasks, in their order.
    Followed {
        /// Under this name, if they were asked for together.
        haul: Option<IssueBatchId>,
        /// One for each.
        tasks: Vec<Arc<Task>>,
    },
    /// A sprint is ending.
    Sprint(SprintId),
    /// A run was told to stop.
    Stopping {
        /// How many agents are at work.
        agents: usize,
    },
}

/// What a person is told.
pub(crate) type AskResult = Result<EngineReply, AskError>;

/// Why nothing was changed.
#[derive(Debug, Clone, Error)]
pub enum AskError {
    /// No such task.
    #[error("there is no task {0}")]
    UnknownTask(TaskId),
    /// No such flow.
    #[error("there is no flow `{name}`; known: {known}")]
    UnknownFlow {
        /// The name.
        name: String,
        /// Those there are.
        known: String,
    },
    /// No such agent profile.
    #[error("there is no agent profile `{name}`; known: {known}")]
    UnknownAgent {
        /// The name.
        name: String,
        /// Those there are.
        known: String,
    },
    /// The agent runs a loop of its own, and the flow is not made for that.
    #[error(transparent)]
    FlowMismatch(#[from] landfall_model::FlowMismatch),
    /// The needs go round in a circle.
    #[error("the needs would go round in a circle: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" → "))]
    Cycle(Vec<TaskId>),
    /// The words are not within bounds.
    #[error(transparent)]
    Spec(#[from] landfall_model::SpecError),
    /// The model refused.
    #[error(transparent)]
    Refused(#[from] NewsRefusal),
    /// Only a landed task can be rolled back.
    #[error("{0} has not landed; there is nothing to roll back")]
    NotLanded(TaskId),
    /// It is taken back already, or is about to be.
    #[error("{task} is taken back by {by} already")]
    TakenBack {
        /// It.
        task: TaskId,
        /// By this one.
        by: TaskId,
    },
    /// No run is under way.
    #[error("no run is under way")]
    NoRun,
    /// It is paused already.
    #[error("the run is paused already")]
    Paused,
    /// It is not paused.
    #[error("the run is not paused")]
    NotPaused,
    /// Only in semi-automatic mode a person picks.
    #[error("the run is on autopilot; it picks tasks itself")]
    NotSemiAuto,
    /// One at a time.
    #[error("{0} is being worked on; the next one is picked when it is over")]
    Assigned(TaskId),
    /// Nothing can be picked.
    #[error("no task is ready")]
    NothingReady,
    /// It cannot be picked.
    #[error("{0} is {1}; it cannot be started")]
    NotReady(TaskId, String),
    /// There is a sprint already.
    #[error("sprint {0} is not over")]
    SprintOpen(SprintId),
    /// Nothing could ever begin in it.
    #[error("no task that could be worked on fits this sprint")]
    SprintMatchesNothing,
    /// A group is done when its parts are.
    #[error("{0} is a group: its parts are the work")]
    Group(TaskId),
    /// There is no sprint.
    #[error("no sprint is open")]
    NoSprint,
    /// It is held already.
    #[error("the landing queue is held already: {0}")]
    QueueHeld(String),
    /// It is not held.
    #[error("the landing queue is not held")]
    QueueMoves,
    /// No such checkpoint.
    #[error("there is no checkpoint `{name}`; known: {known}")]
    UnknownCheckpoint {
        /// The name.
        name: String,
        /// Those there are.
        known: String,
    },
    /// No such discovery.
    #[error("there is no discovery {0} that is told to anybody")]
    UnknownDiscovery(u32),
    /// Not a name for a checkpoint.
    #[error(
        "`{0}` is not a name for a checkpoint: small letters and digits, with `-`, `_` and `.` between them, at most 64"
    )]
    CheckpointName(String),
    /// There is nothing to make a checkpoint of.
    #[error("the base is not known yet; `landfall run` finds it out")]
    NoBase,
    /// A session, or a task, has a loop already.
    #[error("session `{}` has a loop already: {} of `{}` is {}", .0.session, .0.task, .0.module, .0.loop_state().wire_name())]
    LoopHeld(Box<AgentLoop>),
    /// No loop to stop.
    #[error("session `{0}` has no loop")]
    NoLoop(String),
    /// Something on this machine failed.
    #[error("{0}")]
    Machine(String),
    /// The engine is gone.
    #[error("the engine has ended")]
    Gone,
}

/// What becomes of the base when the person's branch was rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RewrittenBaseChoice {
    /// Their branch is the base from here on; work under way is merged onto it and verified again.
    #[default]
    Rebase,
    /// What landed stays: both are brought together.
    Keep,
}

//! What happened: ids, events and the parts they are made of, each declared once.
//!
//! A fact is data: fields, constructors that validate, and the words of enums. What follows from facts is decided in
//! `landfall-model`. The journal writes these types as they are, so a change of a field or a word here is a change of its
//! format.

#[macro_use]
mod words;

pub mod acceptance;
pub mod account;
pub mod annotate;
pub mod audit;
pub mod auto;
pub mod budget;
pub mod checkpoint;
pub mod concern;
pub mod conflict;
pub mod convergence;
mod defaults;
pub mod denial;
pub mod driving;
pub mod ending;
pub mod event;
pub mod evidence;
pub mod flow;
pub mod gate;
pub mod haul;
pub mod ids;
pub mod issue;
pub mod limits;
pub mod objective;
pub mod parting;
pub mod pilot;
pub mod proof;
pub mod queue;
pub mod recovery;
pub mod review;
pub mod sandbox;
pub mod score;
pub mod signal;
pub mod spec;
pub mod sprint;
pub mod staged;
pub mod stride;
pub mod touch;
pub mod tune;
pub mod verdict;
pub mod wait;

pub use account::AccountState;
pub use budget::{Budget, BudgetScope};
pub use concern::{ChangeConcern, ConcernCode, Feedback};
pub use driving::{AgentAssignment, AgentDriveStyle, AgentRunTraces, ContextUsage, SessionStart};
pub use ending::{EndCode, EndKind, Ending, StopRequest};
pub use event::{
    AgentExit, AttemptStart, BaseMover, EngineEvent, Event, Fact, JournalEntry, RunEnd, StepResult, Warning,
};
pub use flow::{EdgeTarget, Flow, FlowStep, StepKind};
pub use ids::{Attempt, Commit, Digest, IdError, RunId, StepName, TaskId, Timestamp, Tree};
pub use limits::{TaskLimitOverrides, TaskLimits};
pub use parting::YieldReason;
pub use queue::{BatchId, QueueEvent};
pub use signal::{AgentFinish, AgentUsage, ControlSignal, Signal};
pub use spec::{SpecError, Tag, TaskSize, TaskSpec};
pub use sprint::SprintId;
pub use stride::LoopStep;
pub use touch::PathPattern;
pub use verdict::Verdict;
pub use wait::{TurnBlocker, WaitOwner, WaitReason};

//! What is true and what follows: tasks, flows, and every decision about them.
//!
//! This crate is pure. It has no file, clock, process, thread, random number or log; times arrive inside inputs.
//! [`decide`] holds policy and may change between releases. [`apply`] is bookkeeping and replays every journal
//! ever written. The engine calls [`decide_and_apply`], which is both.

pub mod acceptance;
mod account;
pub mod annotate;
mod apply;
pub mod audit;
pub mod auto;
pub mod base_gate;
mod budget;
pub mod cache;
mod caps;
pub mod case_collision;
pub mod checkout;
pub mod checkpoint;
pub mod conflict;
pub mod convergence;
pub mod course;
mod decide;
pub mod denial;
pub mod discovery;
pub mod disk;
mod driving;
mod effect;
mod filter;
pub mod flake;
pub mod flow;
pub mod gaming;
pub mod gate;
pub mod graph;
pub mod haul;
pub mod home;
mod input;
pub mod installation;
pub mod issue;
pub mod journal_claim;
mod judge;
pub mod liveness;
pub mod objective;
pub mod occupancy;
pub mod pilot;
pub mod plan;
pub mod proof;
pub mod proposal;
pub mod queue;
mod recover;
pub mod recovery;
pub mod resource;
pub mod review;
pub mod run_history;
pub mod sandbox;
mod schedule;
pub mod score;
#[doc(hidden)]
pub mod seeded_bugs;
pub mod sprint;
pub mod staged;
mod status;
pub mod stride;
mod task;
mod touch;
pub mod trust;
pub mod tune;

use landfall_facts::{event, ids, signal, spec};

pub use account::{AccountPermit, AccountState, Accounts};
pub use apply::{IllegalEvent, apply};
pub use budget::{
    Budget, BudgetDay, BudgetScope, BudgetUse, ExhaustedBudget, Price, Prices, RunBudgets, SpendLog,
    Spending, UsageCounter, format_micro_usd,
};
pub use caps::{AREAS_MAX, ConcurrencyLimits, RepoArea};
pub use decide::{
    Decision, MESSAGES_MAX, NewsRefusal, OUTPUT_TRIES_MAX, REFINEMENTS_MAX, decide, decide_and_apply,
    possible_commands,
};
pub use driving::{
    AgentAssignment, AgentDriveStyle, AgentRunTraces, AgentSession, ContextUsage, PastRun, SessionStart,
};
pub use effect::Effect;
pub use event::{
    AgentExit, AttemptStart, BaseMover, EngineEvent, Event, Fact, JournalEntry, RunEnd, StepResult, Warning,
};
pub use filter::StartFilter;
pub use flow::{EdgeTarget, Flow, FlowStep, StepKind};
pub use ids::{Attempt, Commit, Digest, IdError, RunId, StepName, TaskId, Timestamp, Tree};
pub use input::{
    AnnotatedDocument, EndedRun, ExchangeResult, FlowChange, IntakeState, News, POLL_MS, RecoveryResult,
    ReviewInput, TaskInput, YieldReason,
};
pub use judge::{AgentRunEvidence, Verdict, judge};
pub use queue::{BatchId, QueueEffect, QueueEvent, QueueNews};
pub use recover::expected_task_effects;
pub use schedule::{
    FlowMismatch, Grant, GrantKind, ProfileRoute, ScheduleLimits, TaskRank, World, count_wanted_spares, plan,
    rank_task, score_task,
};
pub use signal::{AgentFinish, AgentUsage, ControlSignal, Signal};
pub use spec::{SpecError, Tag, TaskSize, TaskSpec};
pub use sprint::SprintId;
pub use status::{TaskStatus, TurnBlocker, WaitReason, explain_task_state};
pub use stride::{LoopStep, StopReason};
pub use task::{
    AttemptPhase, ChangeConcern, ConcernCode, Counters, EndCode, EndKind, Ending, Feedback, LandingCandidate,
    LandingRecord, RequestedStep, SignOff, StopRequest, Task, TaskHold, TaskLimitOverrides, TaskLimits,
    TaskState, own_limits_text,
};
pub use touch::PathPattern;

//! How a task ends, and the requests that end an attempt.

use serde::{Deserialize, Serialize};

/// Why an attempt is to end early, and what follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopRequest {
    /// A person stopped it; it waits until they want it again.
    #[serde(rename = "pause")]
    Pause,
    /// The engine is stopping; it goes on next time.
    #[serde(rename = "interrupt")]
    Interrupt,
    /// A person wants it no more.
    #[serde(rename = "cancel")]
    Cancel {
        /// Because.
        reason: String,
    },
    /// A person said something that the agent is to hear at once; it goes on with that.
    #[serde(rename = "redirect")]
    Redirect,
    /// A person says that it cannot go on.
    #[serde(rename = "block")]
    Block {
        /// Because.
        reason: String,
    },
}

/// How a task is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// The status it leaves.
    #[serde(rename = "status")]
    pub kind: EndKind,
    /// The named reason.
    pub code: EndCode,
    /// In words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

words! {
    /// The statuses a task can end in. Only `Done` and `Cancelled` are final; a person may retry the others.
    pub enum EndKind {
        /// Landed, or accepted in a flow without landing.
        Done = "done",
        /// Gave up.
        Failed = "failed",
        /// Used up its time or its iterations.
        Timeout = "timeout",
        /// Cannot go on without a person.
        Blocked = "blocked",
        /// A person wants it no more.
        Cancelled = "cancelled",
    }
}

words! {
    /// Named reasons for an end.
    pub enum EndCode {
        /// The base holds it.
        Landed = "landed",
        /// The flow has no landing and reached its end.
        Accepted = "accepted",
        /// Every iteration was used.
        MaxIterations = "max_iterations",
        /// The working time was used.
        TaskLimit = "task_limit",
        /// The agent said so.
        AgentBlocked = "agent_blocked",
        /// The agent crashed too often.
        AgentCrashed = "agent_crashed",
        /// The agent vanished too often.
        AgentLost = "agent_lost",
        /// The agent could not be started.
        AgentNotStarted = "agent_not_started",
        /// The agent stalled too often.
        StallLimit = "stall_limit",
        /// The provider's troubles did not pass.
        TransientLimit = "transient_limit",
        /// The agent went round in a circle and could not be brought out of it.
        ReasoningLoop = "reasoning_loop",
        /// A budget was used.
        Budget = "budget",
        /// The agent ran out of context again and again.
        ContextBudget = "context_budget",
        /// COMPLETE without a change: twice on no work at all, or again and again on work that is red.
        NothingChanged = "nothing_changed",
        /// An edge of the flow was taken as often as it may.
        EdgeLimit = "edge_limit",
        /// The flow says stop.
        FlowStop = "flow_stop",
        /// It conflicts with the base and the agent could not resolve it.
        ConflictLimit = "conflict_limit",
        /// The independent check after landing did not agree.
        LandingMismatch = "landing_mismatch",
        /// Something on this machine failed for good.
        Machine = "machine",
        /// The flow has a step this version does not perform.
        UnsupportedStep = "unsupported_step",
        /// A reviewer said no.
        Rejected = "rejected",
        /// A person said so.
        Person = "person",
        /// Its target says nothing.
        EmptyTarget = "empty_target",
        /// The judge says that it cannot be done as it stands.
        CheckBlocked = "check_blocked",
        /// The judge failed: nothing is known of the work.
        CheckFailed = "check_failed",
        /// Every direction toward its objective was tried.
        DirectionsUsedUp = "directions_used_up",
        /// What was promised does not hold, as often as it was mended.
        AcceptanceFailed = "acceptance_failed",
        /// Some of the issues it is made of are not done.
        PartsFailed = "parts_failed",
        /// The tracker says no.
        Tracker = "tracker",
        /// A step failed, and nothing that was tried helped.
        RecoveryFailed = "recovery_failed",
        /// A step did not leave behind what it must, as often as it may be tried.
        OutputMissing = "output_missing",
    }
}

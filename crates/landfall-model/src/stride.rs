//! Strides: the steps that an agent with a loop of its own says it has finished. They are claims; what they are counted
//! for is the limit of iterations, and what a person sees.

pub use landfall_facts::stride::LoopStep;

use crate::Task;
use crate::flow::StepKind;

/// What an agent with a loop of its own would call a step of a flow.
#[must_use]
pub fn agent_step(kind: &StepKind) -> &'static str {
    match kind {
        StepKind::Agent { prompt, .. } if prompt.contains("plan") => "plan",
        StepKind::Agent { .. } => "exec",
        StepKind::Check { .. } | StepKind::Review | StepKind::Converge => "check",
        StepKind::Verify => "verify",
        StepKind::Land => "merge",
        StepKind::Report => "report",
        StepKind::Ask { .. } | StepKind::Target => "target",
        StepKind::Split | StepKind::Tracker { .. } => "research",
    }
}

/// The step a task is in, or comes to next, in the words of such an agent.
#[must_use]
pub fn current_agent_step(task: &Task) -> Option<String> {
    let step = task.flow.as_ref()?.find_step(task.step()?)?;
    let is_own = task.runs_own_loop() && matches!(step.kind, StepKind::Agent { .. });
    let said = task.stride.as_ref().filter(|_| is_own).map(|stride| stride.next.as_str());
    let said = said.filter(|next| STEPS.contains(next));
    Some(match (said, is_own) {
        (Some(next), _) => next.to_owned(),
        (None, true) => "plan".to_owned(), // it has finished no step yet
        (None, false) => agent_step(&step.kind).to_owned(),
    })
}

/// The steps an agent may say it was in.
pub const STEPS: &[&str] = &[
    "plan",
    "check",
    "exec",
    "merge",
    "report",
    "research",
    "verify",
    "annotate",
    "target",
    "highlight",
    "summarize",
];

/// What may have come of a step; `(step-N)` with any number besides.
pub const RESULTS: &[&str] = &[
    "PASS",
    "NEEDS_REVISION",
    "ACCEPT",
    "NEEDS_FIX",
    "REPLAN",
    "BLOCKED",
    "CONTINUE",
    "ROLLBACK",
    "(generated)",
    "(annotations)",
    "(done)",
    "(mid-exec)",
    "(blocked)",
    "success",
    "conflict",
    "(collected)",
    "(sufficient)",
    "(pass)",
    "(fail)",
    "(partial)",
    "(processed)",
    "(o1-collected)",
    "(o2-collected)",
    "(o3-collected)",
    "(objective-complete)",
    "(distilled)",
    "(skipped-idempotent)",
    "(stage-advanced)",
    "(refined)",
    "(hil-pending)",
    "failed",
    "stage-done",
    "rejected",
];

/// What may follow besides a step.
pub const ENDS: &[&str] = &["(stop)", "(none)"];

/// Where a check may stand; `step-N` with any number besides.
pub const CHECKPOINTS: &[&str] = &[
    "",
    "post-plan",
    "mid-exec",
    "post-exec",
    "post-research",
    "quick",
    "full",
    "post-o1",
    "post-o2",
    "post-o3",
    "pre-merge",
    "post-annotate",
    "dependency-blocked",
    "no-accept",
];

/// Why an agent is asked to end its own loop before the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopReason {
    /// Its time is used up.
    Timeout,
    /// Its iterations are used up.
    MaxIterations,
    /// A person wants it to stop.
    UserStop,
    /// It fell silent too often.
    StallLimit,
    /// It went round in a circle, and telling it so did not help.
    ReasoningLoop,
}

impl StopReason {
    /// Every reason there is.
    pub const ALL: [Self; 5] =
        [Self::Timeout, Self::MaxIterations, Self::UserStop, Self::StallLimit, Self::ReasoningLoop];

    /// The word in the stop file.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::MaxIterations => "max_iterations",
            Self::UserStop => "user_stop",
            Self::StallLimit => "stall_limit",
            Self::ReasoningLoop => "reasoning_loop",
        }
    }
}

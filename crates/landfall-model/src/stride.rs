//! Strides: the steps that an agent with a loop of its own says it has finished. They are claims; what they are counted
//! for is the limit of iterations, and what a person sees.

pub use landfall_facts::stride::Stride;

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
    pub fn word(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::MaxIterations => "max_iterations",
            Self::UserStop => "user_stop",
            Self::StallLimit => "stall_limit",
            Self::ReasoningLoop => "reasoning_loop",
        }
    }
}

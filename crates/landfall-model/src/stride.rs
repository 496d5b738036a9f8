//! Strides: the steps that an agent with a loop of its own says it has finished. They are claims; what they are counted
//! for is the limit of iterations, and what a person sees.

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

/// One finished step of an agent's own loop, in its words, each from a known list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stride {
    /// The step: `plan`, `check`, `exec` and so on; or the status of its module where it says no more.
    pub step: String,
    /// What it came to; may be empty.
    pub result: String,
    /// What it does next; may be empty.
    pub next: String,
    /// At which checkpoint; may be empty.
    pub checkpoint: String,
    /// Its number, if the agent counts.
    pub iteration: Option<u32>,
    /// How often it summed up its context within it.
    pub compactions: u32,
    /// Tells it from the one before: the same content is the same stride.
    pub mark: String,
}

impl Stride {
    /// How many steps were finished since `before`. A file that is written over between two looks tells by its number what
    /// was missed; a number that does not grow says nothing.
    #[must_use]
    pub fn steps_since(&self, before: Option<&Self>) -> u32 {
        match (before.and_then(|before| before.iteration), self.iteration) {
            (Some(before), Some(now)) if now > before => now - before,
            _ => 1,
        }
    }
}

impl std::fmt::Display for Stride {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.step)?;
        if !self.checkpoint.is_empty() {
            write!(f, " {}", self.checkpoint)?;
        }
        if !self.result.is_empty() {
            write!(f, ": {}", self.result)?;
        }
        if !self.next.is_empty() {
            write!(f, " → {}", self.next)?;
        }
        match self.iteration {
            Some(iteration) => write!(f, " #{iteration}"),
            None => Ok(()),
        }
    }
}

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

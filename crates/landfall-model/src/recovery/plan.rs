//! The plan of an agent that looked at a failure: whether it may be carried out. It is refused as a whole or taken as a
//! whole.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

pub use landfall_facts::recovery::PlanAction;
use landfall_facts::recovery::{OpProblem, RecoveryOp, shorten_for_message};

/// The most operations of one plan.
pub const STEPS_MAX: usize = 5;
/// The longest reason.
pub const RATIONALE_CHARS_MAX: usize = 4_000; // a page or two

/// A plan as it came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecoveryPlanDraft {
    /// What is wanted, in a word.
    pub action: String,
    /// Why.
    pub rationale: String,
    /// The operations.
    pub steps: Vec<DraftStep>,
}

/// One operation as it came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftStep {
    /// Its name.
    pub op: String,
    /// What was said with it.
    pub said: BTreeMap<String, String>,
}

/// A plan that may be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryPlan {
    action: PlanAction,
    rationale: String,
    steps: Vec<RecoveryOp>,
}

impl RecoveryPlan {
    /// What is done.
    #[must_use]
    pub fn action(&self) -> PlanAction {
        self.action
    }

    /// Why.
    #[must_use]
    pub fn rationale(&self) -> &str {
        &self.rationale
    }

    /// The operations, in order. Only [`PlanAction::Recover`] has any, and all must work out.
    #[must_use]
    pub fn steps(&self) -> &[RecoveryOp] {
        &self.steps
    }
}

/// What a plan is measured by.
#[derive(Debug, Clone, Copy)]
pub struct RecoveryPlanBounds<'a> {
    /// Whether what the step was to bring about is there; none if nobody knows.
    pub matches: Option<bool>,
    /// The checks of the project's settings, by name.
    pub checks: &'a BTreeSet<String>,
}

/// Why a plan is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanProblem {
    /// It is not a plan at all.
    #[error("it cannot be read as a plan: {0}")]
    Unreadable(String),
    /// It wants something there is not.
    #[error("`{0}` is no action; known: retry, skip, recover, abort")]
    Action(String),
    /// It does not say why.
    #[error("it gives no rationale")]
    NoRationale,
    /// It says too much.
    #[error("its rationale has {0} characters; at most {RATIONALE_CHARS_MAX} are read")]
    LongRationale(usize),
    /// It wants too much.
    #[error("it has {0} steps; at most {STEPS_MAX} are allowed")]
    TooMany(usize),
    /// It wants nothing.
    #[error("it is to recover and has no steps")]
    NoSteps,
    /// It wants more than it says.
    #[error("it is to {} and has steps; only `recover` has", .0.word())]
    StraySteps(PlanAction),
    /// Nothing shows that the step is done.
    #[error("it is to skip the step, but what the step was to bring about is not there")]
    Unproved,
    /// One of its operations cannot be.
    #[error("step {number}: {problem}")]
    Step {
        /// Which, from 1.
        number: usize,
        /// What is wrong.
        problem: OpProblem,
    },
    /// There is no such check.
    #[error("step {number}: the settings have no check `{name}`; known: {known}")]
    Check {
        /// Which, from 1.
        number: usize,
        /// What it asked for.
        name: String,
        /// What there is.
        known: String,
    },
}

/// Looks at a plan.
///
/// # Errors
/// The first reason why it is refused.
pub fn check_plan(
    draft: &RecoveryPlanDraft,
    bounds: &RecoveryPlanBounds<'_>,
) -> Result<RecoveryPlan, PlanProblem> {
    let action = PlanAction::from_word(draft.action.trim())
        .ok_or_else(|| PlanProblem::Action(shorten_for_message(draft.action.trim())))?;
    let rationale = draft.rationale.trim();
    let chars = rationale.chars().count();
    if rationale.is_empty() {
        return Err(PlanProblem::NoRationale);
    }
    if chars > RATIONALE_CHARS_MAX {
        return Err(PlanProblem::LongRationale(chars));
    }
    if draft.steps.len() > STEPS_MAX {
        return Err(PlanProblem::TooMany(draft.steps.len()));
    }
    let steps = draft.steps.iter().zip(1..).map(|(step, number)| read(step, number, bounds));
    let steps = steps.collect::<Result<Vec<RecoveryOp>, PlanProblem>>()?;
    match action {
        PlanAction::Recover if steps.is_empty() => return Err(PlanProblem::NoSteps),
        PlanAction::Skip if bounds.matches != Some(true) => return Err(PlanProblem::Unproved),
        PlanAction::Retry | PlanAction::Skip | PlanAction::Abort if !steps.is_empty() => {
            return Err(PlanProblem::StraySteps(action));
        }
        PlanAction::Retry | PlanAction::Skip | PlanAction::Recover | PlanAction::Abort => {}
    }
    Ok(RecoveryPlan { action, rationale: rationale.to_owned(), steps })
}

fn read(step: &DraftStep, number: usize, bounds: &RecoveryPlanBounds<'_>) -> Result<RecoveryOp, PlanProblem> {
    let op = RecoveryOp::read(step.op.trim(), &step.said)
        .map_err(|problem| PlanProblem::Step { number, problem })?;
    if let RecoveryOp::RunCheck { name } = &op
        && !bounds.checks.contains(name)
    {
        let known = bounds.checks.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "none".to_owned() } else { known };
        return Err(PlanProblem::Check { number, name: shorten_for_message(name), known });
    }
    Ok(op)
}

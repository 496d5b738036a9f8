//! What was tried, as facts of a task. They are what limits are counted by.

use std::collections::BTreeSet;

use super::pattern::{Known, RecoveryAction};
use super::plan::PlanAction;
use crate::{StepName, Timestamp};
use landfall_facts::recovery::RecoveryOp;
pub use landfall_facts::recovery::{RecoveryEvent, RecoveryOutcome, RecoveryTier};

/// What was tried for a task, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recoveries {
    /// Every try.
    pub tried: Vec<Recovery>,
    /// What tasks were proposed about.
    pub proposed: BTreeSet<String>,
    /// So many were tried before a person took the task up again: they count no more.
    pub past: usize,
}

/// What is to be done about a step that failed, before it is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PendingRecovery {
    /// An agent is to look.
    Diagnosis,
    /// These operations, in order.
    Ops(Vec<RecoveryOp>),
}

/// One try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// When it began.
    pub at: Timestamp,
    /// The step that failed.
    pub step: StepName,
    /// The name of the pattern, or what it is counted as.
    pub symptom: String,
    /// Who thought of it.
    pub tier: RecoveryTier,
    /// What was done, in a word.
    pub action: String,
    /// The exit code of the step, if it is known.
    pub exit: Option<i32>,
    /// The last lines of its log.
    pub tail: String,
    /// How long the step took, if it is known.
    pub took_ms: Option<u64>,
    /// What else was known of its end.
    pub known: BTreeSet<Known>,
    /// What an agent made of it.
    pub diagnosis: Option<Diagnosis>,
    /// What came of it, and in which words; none while it goes on.
    pub outcome: Option<(RecoveryOutcome, String)>,
}

impl Recovery {
    /// Whether what was to be done is done, and nothing else is known.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.outcome, Some((RecoveryOutcome::Partial, _)))
    }

    fn is_open(&self) -> bool {
        !matches!(self.outcome, Some((RecoveryOutcome::Success | RecoveryOutcome::Failed, _)))
    }
}

/// What an agent made of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// What it wants; none if its plan is refused.
    pub action: Option<PlanAction>,
    /// Why, or why it is refused.
    pub rationale: String,
    /// The operations.
    pub ops: Vec<RecoveryOp>,
}

impl Recoveries {
    /// Takes a fact in; false if it cannot be one of this task.
    pub(crate) fn apply_event(&mut self, at: Timestamp, event: &RecoveryEvent) -> bool {
        match event {
            RecoveryEvent::Tried { step, symptom, tier, action, exit, tail, took_ms, known } => {
                self.tried.push(Recovery {
                    at,
                    step: step.clone(),
                    symptom: symptom.clone(),
                    tier: *tier,
                    action: action.clone(),
                    exit: *exit,
                    tail: tail.clone(),
                    took_ms: *took_ms,
                    known: known.iter().filter_map(|word| Known::from_word(word)).collect(),
                    diagnosis: None,
                    outcome: None,
                });
            }
            RecoveryEvent::Diagnosed { step, action, rationale, ops } => {
                let Some(open) = self.open(step) else { return false };
                open.diagnosis =
                    Some(Diagnosis { action: *action, rationale: rationale.clone(), ops: ops.clone() });
            }
            RecoveryEvent::Ended { step, outcome, detail } => {
                let Some(open) = self.open(step) else { return false };
                open.outcome = Some((*outcome, detail.clone()));
            }
            RecoveryEvent::Proposed { symptom } => {
                self.proposed.insert(symptom.clone()); // twice is once
            }
        }
        true
    }

    /// The last try of a step, if it is not known yet what came of it in the end.
    fn open(&mut self, step: &StepName) -> Option<&mut Recovery> {
        self.tried.iter_mut().rev().find(|it| it.step == *step).filter(|it| it.is_open())
    }

    /// The last try of a step, if it is not known yet what came of it in the end.
    #[must_use]
    pub fn unresolved_try(&self, step: &StepName) -> Option<&Recovery> {
        self.tried.iter().rev().find(|it| it.step == *step).filter(|it| it.is_open())
    }

    /// What is to be done for a step before it is tried again.
    #[must_use]
    pub fn pending_recovery(&self, step: &StepName) -> Option<PendingRecovery> {
        let open = self.unresolved_try(step).filter(|it| it.outcome.is_none())?;
        let ops = match (&open.tier, &open.diagnosis) {
            (RecoveryTier::Agent, None) => return Some(PendingRecovery::Diagnosis),
            (RecoveryTier::Agent, Some(diagnosis)) => diagnosis.ops.clone(),
            (RecoveryTier::Pattern, _) => RecoveryAction::from_text(&open.action)?.to_operations(),
            (RecoveryTier::Reconcile | RecoveryTier::Person, _) => Vec::new(),
        };
        (!ops.is_empty()).then_some(PendingRecovery::Ops(ops))
    }

    /// A person takes the task up again: what was tried before counts no more.
    pub(crate) fn note_user_retry(&mut self) {
        self.past = self.tried.len();
    }

    /// What was tried for a step since it last came to a good end. Limits count these.
    pub fn tries_since_success(&self, step: &StepName) -> impl Iterator<Item = &Recovery> {
        let of_step = self.tried.iter().skip(self.past).rev().filter(move |it| it.step == *step);
        of_step.take_while(|it| !matches!(it.outcome, Some((RecoveryOutcome::Success, _))))
    }
}

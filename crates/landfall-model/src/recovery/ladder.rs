//! Which rung a failed step is on. What was tried is counted, so that every way up ends.

use super::event::{Recoveries, RecoveryTier};
use super::pattern::{Pattern, Symptoms, detect_pattern};
use crate::StepName;

/// So many patterns are tried for one step, whatever their own limits are: failures that follow each other in turn
/// would otherwise use up all of them.
pub const ACTIONS_PER_STEP_MAX: usize = 6;

/// Whether an agent can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentAvailability {
    /// It can.
    Free,
    /// It looks at another failure: there is one at a time.
    Busy,
    /// It is not wanted, or there is none.
    Off,
}

/// What is to be done about the end of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TierDecision<'a> {
    /// Nothing: what it was to bring about is there.
    Done,
    /// What the catalogue says.
    Act(&'a Pattern),
    /// An agent is to look. The name is what the failure is counted as.
    Diagnose(String),
    /// An agent is to look, as soon as it can.
    Wait,
    /// A person is to look.
    Stop(String),
}

/// The next rung for a step that ended. `past` is what was tried for the task; `symptoms.matches` says whether what the
/// step was to bring about is there, which counts for more than its exit code.
#[must_use]
pub fn decide_tier<'a>(
    catalogue: &'a [Pattern],
    past: &Recoveries,
    agent: AgentAvailability,
    step: &StepName,
    symptoms: &Symptoms,
) -> TierDecision<'a> {
    if symptoms.matches == Some(true) {
        return TierDecision::Done;
    }
    let pattern = detect_pattern(catalogue, symptoms);
    let name = pattern.map_or_else(|| symptoms.name(), |pattern| pattern.name.clone());
    let mut why_not = "no known pattern fits";
    if let Some(pattern) = pattern {
        let used = || past.tries_since_success(step).filter(|it| it.tier == RecoveryTier::Pattern);
        let of_this = used().filter(|it| it.symptom == pattern.name).count();
        match pattern.action {
            super::RecoveryAction::Stop => return TierDecision::Stop(format!("`{name}`: {}", pattern.about)),
            super::RecoveryAction::Escalate => why_not = "its pattern is for an agent to look at",
            _ if of_this >= pattern.limit as usize => why_not = "what its pattern says was tried",
            _ if used().count() >= ACTIONS_PER_STEP_MAX => why_not = "too many patterns were tried",
            _ => return TierDecision::Act(pattern),
        }
    }
    if past.tries_since_success(step).any(|it| it.tier == RecoveryTier::Agent) {
        return TierDecision::Stop(format!("`{name}`: {why_not}, and an agent has looked already"));
    }
    match agent {
        AgentAvailability::Free => TierDecision::Diagnose(name),
        AgentAvailability::Busy => TierDecision::Wait,
        AgentAvailability::Off => {
            TierDecision::Stop(format!("`{name}`: {why_not}, and there is no agent to look"))
        }
    }
}

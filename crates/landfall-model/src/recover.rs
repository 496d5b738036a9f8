//! After a crash of the engine: what should be under way. The host says what is; the difference is performed.

use crate::effect::Effect;
use crate::flow::StepKind;
use crate::seeded_bugs::{self, SeededBug};
use crate::task::{AttemptPhase, EndKind, Ending, LandingCandidate, Task, TaskState};

/// The effects a task expects to be under way. Performing one that is already done, or adopting one that runs,
/// gives the news that was missed.
#[must_use]
pub fn expected_task_effects(task: &Task) -> Vec<Effect> {
    let (id, attempt) = (task.id, task.attempt);
    match &task.state {
        TaskState::Active { step, doing } => match doing {
            AttemptPhase::Preparing { fresh, .. } => {
                vec![Effect::Prepare { task: id, attempt, fresh: *fresh }]
            }
            AttemptPhase::Running { iteration, stop, talk, .. } => {
                let mut effects = vec![Effect::Spawn {
                    task: id,
                    attempt,
                    iteration: *iteration,
                    step: step.clone(),
                    deadline_ms: task.time_left_ms(),
                    talk: talk.clone(),
                }];
                if let Some(stop) = stop {
                    effects.push(Effect::Kill { task: id, attempt, stop: stop.clone() });
                }
                effects
            }
            AttemptPhase::Checking { .. } => vec![check_effect(task)],
            AttemptPhase::Queued { .. } | AttemptPhase::Landing => Vec::new(), // the landing queue sees to them
            AttemptPhase::Reporting if seeded_bugs::is_active(SeededBug::RecoverySkipsReport) => Vec::new(),
            AttemptPhase::Reporting => vec![Effect::Report { task: id, attempt }],
            AttemptPhase::Exchanging { .. } => vec![exchange_effect(task)],
            AttemptPhase::Recovering { .. } => vec![Effect::Recover { task: id, attempt }],
        },
        TaskState::Ended(Ending { kind: EndKind::Done, .. }) if task.has_any_workspace() => {
            vec![Effect::Tidy { task: id }]
        }
        TaskState::Draft
        | TaskState::Ready { .. }
        | TaskState::Waiting { .. }
        | TaskState::Review { .. }
        | TaskState::Ended(_) => Vec::new(),
    }
}

/// The exchange with the tracker that the step of a task is about.
pub(crate) fn exchange_effect(task: &Task) -> Effect {
    let kind = task.step().and_then(|step| Some(&task.flow.as_ref()?.find_step(step)?.kind));
    let act = match kind {
        Some(StepKind::Tracker { act }) => Some(*act),
        _ => None,
    };
    Effect::Exchange { task: task.id, attempt: task.attempt, act }
}

/// Bring in, merge and verify: from the workspace if there is one, else the work that is in the store.
pub(crate) fn check_effect(task: &Task) -> Effect {
    let head = if task.workspace.is_some() { None } else { task.head.clone() };
    Effect::Check { task: task.id, attempt: task.attempt, head }
}

/// What would land: what may have landed already, or else what verification found green.
pub(crate) fn landing_candidate(task: &Task) -> Option<LandingCandidate> {
    if task.landing.is_some() {
        return task.landing.clone();
    }
    let gate = task.gate.as_ref()?;
    gate.outcome().is_green().then(|| LandingCandidate {
        base: gate.base.clone(),
        head: gate.head.clone(),
        commit: gate.commit.clone(),
        tree: gate.tree.clone(),
    })
}

/// Whether a landing may be ordered without another look: it was ordered before, or it is verified and cleared.
pub(crate) fn may_land(task: &Task) -> bool {
    task.landing.is_some() || (task.cleared && landing_candidate(task).is_some())
}

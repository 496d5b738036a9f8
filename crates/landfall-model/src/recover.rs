//! After a crash of the engine: what should be under way. The host says what is; the difference is performed.

use crate::effect::Effect;
use crate::flow::StepKind;
use crate::seeded_bugs::{self, SeededBug};
use crate::task::{Candidate, Doing, EndKind, Ending, State, Task};

/// The effects a task expects to be under way. Performing one that is already done, or adopting one that runs,
/// gives the news that was missed.
#[must_use]
pub fn expects(task: &Task) -> Vec<Effect> {
    let (id, attempt) = (task.id, task.attempt);
    match &task.state {
        State::Active { step, doing } => match doing {
            Doing::Preparing { fresh, .. } => vec![Effect::Prepare { task: id, attempt, fresh: *fresh }],
            Doing::Running { iteration, stop, talk, .. } => {
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
            Doing::Checking { .. } => vec![check(task)],
            Doing::Queued { .. } | Doing::Landing => Vec::new(), // the landing queue sees to them
            Doing::Reporting if seeded_bugs::is_active(SeededBug::RecoverySkipsReport) => Vec::new(),
            Doing::Reporting => vec![Effect::Report { task: id, attempt }],
            Doing::Exchanging { .. } => vec![exchange(task)],
            Doing::Recovering { .. } => vec![Effect::Recover { task: id, attempt }],
        },
        State::Ended(Ending { kind: EndKind::Done, .. }) if task.has_any_workspace() => {
            vec![Effect::Tidy { task: id }]
        }
        State::Draft
        | State::Ready { .. }
        | State::Waiting { .. }
        | State::Review { .. }
        | State::Ended(_) => Vec::new(),
    }
}

/// The exchange with the tracker that the step of a task is about.
pub(crate) fn exchange(task: &Task) -> Effect {
    let kind = task.step().and_then(|step| Some(&task.flow.as_ref()?.step(step)?.kind));
    let act = match kind {
        Some(StepKind::Tracker { act }) => Some(*act),
        _ => None,
    };
    Effect::Exchange { task: task.id, attempt: task.attempt, act }
}

/// Bring in, merge and verify: from the workspace if there is one, else the work that is in the store.
pub(crate) fn check(task: &Task) -> Effect {
    let head = if task.workspace.is_some() { None } else { task.head.clone() };
    Effect::Check { task: task.id, attempt: task.attempt, head }
}

/// What would land: what may have landed already, or else what verification found green.
pub(crate) fn candidate(task: &Task) -> Option<Candidate> {
    if task.landing.is_some() {
        return task.landing.clone();
    }
    let gate = task.gate.as_ref()?;
    gate.outcome().is_green().then(|| Candidate {
        base: gate.base.clone(),
        head: gate.head.clone(),
        commit: gate.commit.clone(),
        tree: gate.tree.clone(),
    })
}

/// Whether a landing may be ordered without another look: it was ordered before, or it is verified and cleared.
pub(crate) fn may_land(task: &Task) -> bool {
    task.landing.is_some() || (task.cleared && candidate(task).is_some())
}

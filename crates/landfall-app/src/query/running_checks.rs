//! The checks that run now, in words, for every place that says what a task is at.

use landfall_api as api;
use landfall_engine::RunningCheck;
use landfall_engine::model::{AttemptPhase, Task, TaskId, TaskState};
use landfall_text::format_duration;

use crate::project::sentences;

/// A check on the wire.
pub(crate) fn to_running_check_line(check: &RunningCheck) -> api::RunningCheckLine {
    api::RunningCheckLine {
        of: check.of.clone(),
        check: check.check.clone(),
        elapsed_ms: check.elapsed_ms,
        limit_ms: check.limit_ms,
        last_line: strip_colors(&check.last_line),
    }
}

/// The check that runs on a task.
pub(crate) fn check_of_task(checks: &[RunningCheck], id: TaskId) -> Option<&RunningCheck> {
    let name = id.to_string();
    checks.iter().find(|check| check.of == name)
}

/// `tests, 12s of 10m`.
pub(crate) fn check_brief(check: &RunningCheck) -> String {
    format!("{}, {} of {}", check.check, format_duration(check.elapsed_ms), format_duration(check.limit_ms))
}

/// The same with the last line that it wrote.
pub(crate) fn check_progress(check: &RunningCheck) -> String {
    match strip_colors(&check.last_line) {
        line if line.is_empty() => check_brief(check),
        line => format!("{} · {line}", check_brief(check)),
    }
}

/// `is being verified: the check `tests` has run for 12s of at most 10m; it last wrote "…".`
pub(crate) fn check_sentence(check: &RunningCheck) -> String {
    let wrote = match strip_colors(&check.last_line) {
        line if line.is_empty() => String::new(),
        line => format!("; it last wrote \"{line}\""),
    };
    format!(
        "is being verified: the check `{}` has run for {} of at most {}{wrote}.",
        check.check,
        format_duration(check.elapsed_ms),
        format_duration(check.limit_ms)
    )
}

/// What is true of a task at work while no engine drives: nothing of it goes on but an agent that outlived the engine.
pub(crate) fn engineless_task_text(task: &Task) -> Option<String> {
    let TaskState::Active { doing, .. } = &task.state else { return None };
    let id = task.id;
    match doing {
        AttemptPhase::Running { .. } => None, // its agent may go on, and is adopted
        AttemptPhase::Checking { .. } => {
            Some(format!("{id} was being verified when the run stopped; `landfall run` verifies it again."))
        }
        AttemptPhase::Queued { .. } | AttemptPhase::Landing => {
            Some(format!("{id} was about to land when the run stopped; `landfall run` lands it."))
        }
        AttemptPhase::Preparing { .. }
        | AttemptPhase::Reporting
        | AttemptPhase::Exchanging { .. }
        | AttemptPhase::Recovering { .. } => {
            Some(format!("{id} was under way when the run stopped; `landfall run` continues it."))
        }
    }
}

/// A line that a program wrote, without colours.
fn strip_colors(line: &str) -> String {
    sentences::one_line(&console::strip_ansi_codes(line))
}

//! Tasks that wait for one that will not land by itself, and the ways out.

use landfall_api::Problem;
use landfall_engine::model::{EndCode, EndKind, Ending, Task, TaskId, TaskState};
use landfall_engine::store::StoreReader;

use crate::project::problems;

/// A need that ended without landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailedDependency {
    /// The task that ended.
    pub task: TaskId,
    /// What became of it: `failed`, `was cancelled`.
    pub what: &'static str,
    /// Whether it can be tried again.
    pub can_retry: bool,
}

/// The need at the root of a wait that ended without landing, if one did.
pub(crate) fn find_failed_dependency(
    reader: &StoreReader,
    unmet: &[TaskId],
) -> Result<Option<FailedDependency>, Problem> {
    const LOOKED_AT_MAX: usize = 200; // a longer line is not a sentence any more
    let of = |error| problems::from_store_error(&error);
    let mut line: Vec<TaskId> = unmet.to_vec();
    let mut place = 0;
    while let Some(id) = line.get(place).copied().filter(|_| place < LOOKED_AT_MAX) {
        place += 1;
        let Some(row) = reader.row(id).map_err(of)? else { continue };
        if let Some(task) = reader.task(id).map_err(of)?.filter(Task::is_over) {
            return Ok(failed_dependency_of(&task));
        }
        if row.unmet > 0 {
            let more = reader.unmet(id).map_err(of)?;
            line.extend(more.into_iter().filter(|more| !line.contains(more)).collect::<Vec<_>>());
        }
    }
    Ok(None)
}

fn failed_dependency_of(task: &Task) -> Option<FailedDependency> {
    let TaskState::Ended(Ending { kind, code, .. }) = &task.state else { return None };
    let what = match (kind, code) {
        (EndKind::Done, _) => return None,
        (EndKind::Failed | EndKind::Timeout, EndCode::MaxIterations) => "is out of iterations",
        (EndKind::Failed, _) => "failed",
        (EndKind::Timeout, _) => "ran out",
        (EndKind::Blocked, _) => "is blocked",
        (EndKind::Cancelled, _) => "was cancelled",
    };
    Some(FailedDependency { task: task.id, what, can_retry: *kind != EndKind::Cancelled })
}

/// Why a task waits in vain, and the commands that end the wait.
pub(crate) fn dead_end_sentence(id: TaskId, unmet: &[TaskId], end: &FailedDependency) -> String {
    let root = end.task;
    let through = match unmet.contains(&root) {
        true => String::new(),
        false => unmet.first().map(|need| format!("{need}, which waits for ")).unwrap_or_default(),
    };
    let retry = match end.can_retry {
        true => format!("`landfall retry {root}` tries that again, "),
        false => format!("`landfall edit {id} --needs …` changes what it needs, "),
    };
    format!(
        "{id} waits for {through}{root}, which {}: {retry}`landfall accept {root} --already-done \"…\"` continues without it, \
         `landfall cancel {id}` cancels {id}.",
        end.what
    )
}

/// What can be done about the tasks that need one that was cancelled; none if there are none.
pub(crate) fn dead_end_hint(cancelled: TaskId, needed_by: &[TaskId]) -> Option<String> {
    const NAMED_MAX: usize = 5;
    let first = needed_by.first()?;
    let all = needed_by.iter().map(ToString::to_string).collect::<Vec<_>>();
    let named = match all.len() {
        ..=NAMED_MAX => all.join(", "),
        more => format!("{} and {} more", all[..NAMED_MAX].join(", "), more - NAMED_MAX),
    };
    let (verb, given_up) = match all.len() {
        1 => ("needs it and cannot start", all[0].clone()),
        _ => ("need it and cannot start", all.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(" ")),
    };
    Some(format!(
        "{named} {verb}: `landfall accept {cancelled} --already-done \"…\"` if the work exists, \
         `landfall edit {first} --unset needs` to drop the need, `landfall cancel {given_up}` to cancel the rest as well."
    ))
}

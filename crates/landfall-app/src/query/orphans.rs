//! Agents that outlived their engine: their sitters are found by the journal, one folder each.

use landfall_api::Problem;
use landfall_engine::host::sitter::{self, SitterState};
use landfall_engine::model::{AttemptPhase, TaskId, TaskState, TaskStatus};
use landfall_engine::store::{StoreReader, TaskFilter};

use crate::project::place::ProjectLocation;
use crate::project::problems;

const AGENTS_MAX: u32 = 256; // more than any run has slots

/// The tasks whose agents run, whether or not an engine watches them.
pub(crate) fn tasks_with_running_agents(
    place: &ProjectLocation,
    reader: &StoreReader,
) -> Result<Vec<TaskId>, Problem> {
    let mut found = Vec::new();
    let filter = TaskFilter { status: Some(TaskStatus::Active), ..TaskFilter::default() };
    for row in reader.tasks(&filter, None, AGENTS_MAX).map_err(|error| problems::from_store_error(&error))? {
        let Some(task) = reader.task(row.id).map_err(|error| problems::from_store_error(&error))? else {
            continue;
        };
        let TaskState::Active { doing: AttemptPhase::Running { iteration, .. }, .. } = task.state else {
            continue;
        };
        let dir = place.folder.iteration_path(task.id, task.attempt, iteration);
        match sitter::find_sitter(&dir) {
            Ok(SitterState::Running(_) | SitterState::Starting) => found.push(task.id),
            Ok(SitterState::Never | SitterState::Ended(_) | SitterState::Vanished) | Err(_) => {}
        }
    }
    Ok(found)
}

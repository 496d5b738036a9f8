//! All tasks that there are, for whoever adds many: where each came from, and what it is called.

use std::collections::{BTreeMap, BTreeSet};

use landfall_api::Problem;
use landfall_engine::model::proposal::{ExistingTask, ExistingTaskState};
use landfall_engine::model::{Event, Fact, TaskId, TaskStatus};
use landfall_engine::store::{Seq, StoreReader, TaskFilter, TaskRow};

use crate::project::place::ProjectLocation;
use crate::project::problems;

const PAGE: u32 = 1_000;

/// Where every task came from. It is read from the journal: the tables do not keep it.
pub(crate) fn list_task_sources(place: &ProjectLocation) -> Result<Vec<(TaskId, String)>, Problem> {
    let Some(reader) = place.open_reader()? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let mut after = Seq(0);
    loop {
        let page = reader.events(after, None, PAGE).map_err(|error| problems::from_store_error(&error))?;
        let Some((last, _)) = page.last() else { return Ok(found) };
        after = *last;
        found.extend(page.into_iter().filter_map(|(_, entry)| match entry.fact {
            Fact::Task(id, Event::Added { spec }) => Some((id, spec.source)),
            _ => None,
        }));
    }
}

/// The rows of all tasks, in the order of their ids.
pub(crate) fn list_task_rows(reader: &StoreReader) -> Result<Vec<TaskRow>, Problem> {
    let mut rows: Vec<TaskRow> = Vec::new();
    loop {
        let after = rows.last().map(|row| row.id);
        let page = reader
            .tasks(&TaskFilter::default(), after, PAGE)
            .map_err(|error| problems::from_store_error(&error))?;
        if page.is_empty() {
            return Ok(rows);
        }
        rows.extend(page);
    }
}

/// What a proposal is held against, and the same for an agent, one line each.
pub(crate) fn list_existing_tasks(
    place: &ProjectLocation,
) -> Result<(Vec<ExistingTask>, Vec<String>), Problem> {
    const LINES_MAX: usize = 200; // more titles do not help anyone to think
    let Some(reader) = place.open_reader()? else { return Ok((Vec::new(), Vec::new())) };
    let rows = list_task_rows(&reader)?;
    let groups = find_group_tasks(&rows);
    let known: Vec<ExistingTask> = rows
        .iter()
        .map(|row| {
            let standing = match row.status {
                TaskStatus::Done => ExistingTaskState::Landed,
                TaskStatus::Cancelled => ExistingTaskState::Over,
                TaskStatus::Draft if groups.contains(&row.id) => ExistingTaskState::Over, // a group: nothing lands of it
                TaskStatus::Draft
                | TaskStatus::Ready
                | TaskStatus::Active
                | TaskStatus::Waiting
                | TaskStatus::Blocked
                | TaskStatus::Review
                | TaskStatus::Landing
                | TaskStatus::Failed
                | TaskStatus::Timeout => ExistingTaskState::Open,
            };
            ExistingTask { id: row.id, title: row.title.clone(), standing }
        })
        .collect();
    let open = rows.iter().zip(&known).filter(|(_, known)| known.standing == ExistingTaskState::Open);
    let lines =
        open.map(|(row, _)| format!("{} {} ({})", row.id, row.title, row.effective_status().wire_name()));
    let lines = lines.rev().take(LINES_MAX).collect::<Vec<_>>().into_iter().rev().collect();
    Ok((known, lines))
}

/// The tasks that others are a part of.
pub(crate) fn find_group_tasks(rows: &[TaskRow]) -> BTreeSet<TaskId> {
    rows.iter().filter_map(|row| row.parent).collect()
}

/// The task that each source became; the newest, if there are several.
pub(crate) fn tasks_by_source(
    place: &ProjectLocation,
) -> Result<BTreeMap<String, landfall_api::WireTaskId>, Problem> {
    let found = list_task_sources(place)?;
    Ok(found.into_iter().map(|(id, source)| (source, crate::project::conversions::task_id(id))).collect())
}

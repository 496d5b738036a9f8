//! Counts, finished work, and pages of tasks for boards and graphs.

use std::collections::BTreeMap;
use std::path::Path;

use landfall_model::{TaskId, TaskSize, TaskStatus, Timestamp};
use rusqlite::{Connection, Row, ToSql};

use super::{StoreReader, query, task_row};
use crate::error::StoreResultExt;
use crate::tally::{CountRow, SLOT_MS, WorkRow};
use crate::{Seq, StoreError, TaskRow};

/// How a landed task came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LandedTaskFigures {
    /// Which.
    pub task: TaskId,
    /// When it landed.
    pub done: Timestamp,
    /// When it was asked for.
    pub created: Timestamp,
    /// When it was first worked on.
    pub started: Option<Timestamp>,
    /// Runs of the agent.
    pub iterations: u32,
    /// How often a reviewing agent read it.
    pub rounds: u32,
}

impl StoreReader {
    /// What was counted since then, by slot of [`SLOT_MS`].
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn tallies(&self, since: Timestamp) -> Result<Vec<CountRow>, StoreError> {
        self.rows(query::TALLIES, &[&since.0.div_euclid(SLOT_MS)], "read counts", count_row)
    }

    /// The tasks that landed since then.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn landed_since(&self, since: Timestamp) -> Result<Vec<LandedTaskFigures>, StoreError> {
        self.rows(query::LANDED_SINCE, &[&since.0], "read finished work", |row| {
            Ok(LandedTaskFigures {
                task: TaskId(row.get(0)?),
                done: Timestamp(row.get(1)?),
                created: Timestamp(row.get(2)?),
                started: row.get::<_, Option<i64>>(3)?.map(Timestamp),
                iterations: row.get(4)?,
                rounds: row.get(5)?,
            })
        })
    }

    /// How many tasks were done since then.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn count_done_since(&self, since: Timestamp) -> Result<u64, StoreError> {
        let found = self.rows(query::COUNT_DONE, &[&since.0], "count finished work", |row| row.get(0))?;
        Ok(found.first().copied().unwrap_or(0))
    }

    /// The tasks that were done since then, the newest first, each with when.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn done_since(&self, since: Timestamp, limit: u32) -> Result<Vec<(TaskRow, Timestamp)>, StoreError> {
        let doing = "read finished work";
        let mut statement =
            self.conn.prepare_cached(&query::done_since_sql()).with_context(doing, &self.path)?;
        let params: [&dyn ToSql; 2] = [&since.0, &limit];
        let mut rows = statement.query(&params[..]).with_context(doing, &self.path)?;
        let mut made = Vec::new();
        while let Some(row) = rows.next().with_context(doing, &self.path)? {
            made.push((task_row(row, &self.path)?, Timestamp(row.get(31).with_context(doing, &self.path)?)));
        }
        Ok(made)
    }

    /// What is known of the work on a task.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn work(&self, task: TaskId) -> Result<WorkRow, StoreError> {
        let found = self.rows(query::WORK, &[&task.0], "read work", work_row)?;
        Ok(found.into_iter().next().map(|(_, row)| row).unwrap_or_default())
    }

    /// The first tasks of a status, by id, as they are stored: a ready one may have unmet needs.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn list_by_status(&self, status: TaskStatus, limit: u32) -> Result<Vec<TaskRow>, StoreError> {
        self.task_rows(&query::some_of_status_sql(), &[&status.wire_name(), &limit])
    }

    /// How many tasks wait for each of these words by their own facts.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn waits(&self) -> Result<Vec<(String, u64)>, StoreError> {
        self.rows(query::WAITS, &[], "count waits", |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// The first tasks that wait for this by their own facts, by id.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn list_waiting_for(&self, wait: &str, limit: u32) -> Result<Vec<TaskRow>, StoreError> {
        self.task_rows(&query::waiting_for_sql(), &[&wait, &limit])
    }

    /// These tasks, by id; those that are not there are left out.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn read_rows(&self, tasks: &[TaskId]) -> Result<Vec<TaskRow>, StoreError> {
        let list: Vec<u32> = tasks.iter().map(|task| task.0).collect();
        let list = serde_json::to_string(&list).expect("numbers are JSON");
        self.task_rows(&query::listed_tasks_sql(), &[&list])
    }

    /// How much work each of these tasks is thought to be.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn sizes(&self, tasks: &[TaskId]) -> Result<BTreeMap<TaskId, Option<TaskSize>>, StoreError> {
        let list: Vec<u32> = tasks.iter().map(|task| task.0).collect();
        let list = serde_json::to_string(&list).expect("numbers are JSON");
        let found = self.rows(query::SIZES, &[&list], "read sizes", |row| {
            let size = row.get_ref(1)?.as_str_or_null()?.and_then(|word| word.parse().ok());
            Ok((TaskId(row.get(0)?), size))
        })?;
        Ok(found.into_iter().collect())
    }

    /// Who needs whom, where whoever needs is open: `(task, need, whether it is met)`, by task, at most `limit`.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn open_needs(&self, limit: u32) -> Result<Vec<(TaskId, TaskId, bool)>, StoreError> {
        self.rows(query::OPEN_NEEDS, &[&limit], "read needs", |row| {
            Ok((TaskId(row.get(0)?), TaskId(row.get(1)?), row.get(2)?))
        })
    }

    /// The parts of a task, by id.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn parts(&self, task: TaskId) -> Result<Vec<TaskId>, StoreError> {
        self.ids(query::PARTS, task)
    }

    /// The newest fact of a kind about a task, by its number.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn last_of(&self, task: TaskId, kind: &str) -> Result<Option<(Seq, Timestamp)>, StoreError> {
        let found = self.rows(query::LAST_OF, &[&task.0, &kind], "look for an event", |row| {
            Ok((Seq(row.get(0)?), Timestamp(row.get(1)?)))
        })?;
        Ok(found.first().copied())
    }
}

type StoredCounts = (Vec<CountRow>, Vec<(TaskId, WorkRow)>);

/// Everything that is counted, in the order of its keys.
pub(super) fn read_all_counts(conn: &Connection, path: &Path) -> Result<StoredCounts, StoreError> {
    let doing = "read the counts";
    let mut statement = conn
        .prepare("SELECT slot, what, key, many FROM tally ORDER BY slot, what, key")
        .with_context(doing, path)?;
    let counts = statement.query_map([], count_row).and_then(Iterator::collect).with_context(doing, path)?;
    let mut statement = conn
        .prepare("SELECT task, profile, done, rounds, said FROM work ORDER BY task")
        .with_context(doing, path)?;
    let work = statement.query_map([], work_row).and_then(Iterator::collect).with_context(doing, path)?;
    Ok((counts, work))
}

fn count_row(row: &Row<'_>) -> rusqlite::Result<CountRow> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}

fn work_row(row: &Row<'_>) -> rusqlite::Result<(TaskId, WorkRow)> {
    let work = WorkRow {
        profile: row.get(1)?,
        done: row.get::<_, Option<i64>>(2)?.map(Timestamp),
        rounds: row.get(3)?,
        said: row.get(4)?,
    };
    Ok((TaskId(row.get(0)?), work))
}

//! One binary for all stories about the store.

mod autopilot;
mod contract;
mod crash;
mod damage;
mod folds;
mod history;
mod opening;
mod reading;

use std::path::PathBuf;

use landfall_model::{Event, Fact, JournalEntry, TaskId, TaskSpec, Timestamp, apply};
use landfall_store::{EntryBatch, Journal, JournalOptions, Seq, Sqlite, StoreError};
use tempfile::TempDir;

/// A folder of its own for each test, gone with it.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("journal.db")
    }

    fn open(&self) -> Sqlite {
        self.open_with(JournalOptions::default())
    }

    fn open_with(&self, options: JournalOptions) -> Sqlite {
        Sqlite::open(&self.path(), options).expect("it opens").0
    }

    fn refused(&self) -> StoreError {
        match Sqlite::open(&self.path(), JournalOptions::default()) {
            Ok(_) => panic!("it must not open"),
            Err(error) => error,
        }
    }

    /// Changes the file behind the store's back.
    fn tamper(&self, sql: &str) {
        let conn = rusqlite::Connection::open(self.path()).expect("it opens");
        conn.execute_batch(sql).expect("it can be changed");
    }
}

/// How often a random story is told: more often at night.
fn rounds(usual: u64) -> u64 {
    let times = std::env::var("LANDFALL_TEST_TIMES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    usual * times
}

/// A batch that adds one task.
fn add(id: u32) -> EntryBatch {
    let spec = TaskSpec::new(&format!("task {id}")).expect("a title");
    let (at, event) = (Timestamp(i64::from(id)), Event::Added { spec });
    let task = apply(None, TaskId(id), at, &event).expect("a task can be added");
    EntryBatch {
        entries: vec![JournalEntry { at, fact: Fact::Task(TaskId(id), event) }],
        tasks: vec![task.into()],
    }
}

/// Everything a journal hands out.
fn all(journal: &dyn Journal) -> Result<Vec<(Seq, JournalEntry)>, StoreError> {
    let mut read = Vec::new();
    journal.replay(Seq::FIRST, &mut |seq, entry| {
        read.push((seq, entry));
        Ok(())
    })?;
    Ok(read)
}

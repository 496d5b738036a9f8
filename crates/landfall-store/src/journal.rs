//! The seam: what the engine asks of a journal, whatever keeps it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use landfall_model::queue::IllegalQueueEvent;
use landfall_model::{Fact, IllegalEvent, JournalEntry, Task, TaskId};
use thiserror::Error;

use crate::StoreError;
use crate::chain::Hash;

/// The number of an event: dense, from 1. Order comes from here, never from clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(pub u64);

impl Seq {
    /// The one before the first.
    pub const ZERO: Self = Self(0);
    /// The first.
    pub const FIRST: Self = Self(1);

    /// The one after this.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a journal ends: its last number, and the hash that stands for all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalHead {
    /// The last event; zero when there is none.
    pub seq: Seq,
    /// Its link of the chain.
    pub hash: Hash,
}

impl JournalHead {
    /// The head of an empty journal.
    pub const EMPTY: Self = Self { seq: Seq::ZERO, hash: Hash::NONE };
}

/// Where a journal that is being written ends, for those who want to know without reading it.
#[derive(Debug)]
pub struct JournalEnd {
    head: Mutex<JournalHead>,
    moved: Condvar,
}

impl JournalEnd {
    pub(crate) fn new(head: JournalHead) -> Self {
        Self { head: Mutex::new(head), moved: Condvar::new() }
    }

    /// Where it ends. Whatever is before that can be read.
    #[must_use]
    pub fn head(&self) -> JournalHead {
        *self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it goes on after `seq`, for at most so long.
    pub fn wait_past(&self, seq: Seq, at_most: Duration) {
        let head = self.head.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.moved.wait_timeout_while(head, at_most, |head| head.seq <= seq);
        drop(waited); // whoever waited looks again anyway
    }

    /// Says where it ends now.
    pub(crate) fn advance_head(&self, head: JournalHead) {
        *self.head.lock().unwrap_or_else(PoisonError::into_inner) = head;
        self.moved.notify_all();
    }
}

/// Facts that are written together or not at all.
#[derive(Debug, Clone, Default)]
pub struct EntryBatch {
    /// In this order.
    pub entries: Vec<JournalEntry>,
    /// Every task the entries touch, as it is after the last of them: the tables are made from these.
    pub tasks: Vec<Arc<Task>>,
}

impl EntryBatch {
    /// Says whether every task that is touched is there.
    pub(crate) fn check_tasks_present(&self) -> Result<(), StoreError> {
        let held: BTreeSet<TaskId> = self.tasks.iter().map(|task| task.id).collect();
        for entry in &self.entries {
            if let Fact::Task(task, _) = &entry.fact
                && !held.contains(task)
            {
                return Err(StoreError::Unfolded { task: *task });
            }
        }
        Ok(())
    }
}

/// What was written, and is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendReceipt {
    /// The number of the batch's last event.
    pub last: Seq,
}

/// An acknowledgement that is still to come.
#[derive(Debug)]
#[must_use = "a batch is durable only when its acknowledgement is there"]
pub struct PendingAck(pub(crate) PendingFrom);

#[derive(Debug)]
pub(crate) enum PendingFrom {
    Known(Result<AppendReceipt, StoreError>),
    Writer(Receiver<Result<AppendReceipt, StoreError>>),
}

impl PendingAck {
    /// Waits until the batch is durable, or is known not to be.
    ///
    /// # Errors
    /// When it is not.
    pub fn wait(self) -> Result<AppendReceipt, StoreError> {
        match self.0 {
            PendingFrom::Known(result) => result,
            PendingFrom::Writer(answer) => answer.recv().unwrap_or(Err(StoreError::Closed)),
        }
    }
}

/// Why whoever reads a replay wants no more of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayStop {
    /// It has what it wanted.
    Enough,
    /// The event cannot follow.
    Illegal(EventOrderError),
}

/// An event that cannot follow the ones before it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EventOrderError {
    /// About a task.
    #[error(transparent)]
    Task(#[from] IllegalEvent),
    /// About the landing queue.
    #[error(transparent)]
    Queue(#[from] IllegalQueueEvent),
}

impl From<EventOrderError> for ReplayStop {
    fn from(misplaced: EventOrderError) -> Self {
        Self::Illegal(misplaced)
    }
}

impl From<IllegalEvent> for ReplayStop {
    fn from(illegal: IllegalEvent) -> Self {
        Self::Illegal(illegal.into())
    }
}

impl From<IllegalQueueEvent> for ReplayStop {
    fn from(illegal: IllegalQueueEvent) -> Self {
        Self::Illegal(illegal.into())
    }
}

/// What a replay went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayReport {
    /// How many events were handed out.
    pub events: u64,
    /// The last of them, with its link of the chain.
    pub to: JournalHead,
}

/// Memory of what happened. Append is durable when it returns; replay gives back what was appended, checked.
pub trait Journal: Send {
    /// Writes a batch and waits until it is durable.
    ///
    /// # Errors
    /// When it was not written.
    fn append(&self, batch: EntryBatch) -> Result<AppendReceipt, StoreError> {
        self.append_later(batch).wait()
    }

    /// Hands a batch over. Batches of one caller are written in the order they were handed over; when the writer
    /// is behind, this waits for room.
    fn append_later(&self, batch: EntryBatch) -> PendingAck;

    /// Hands out the events from `from` on, in order, each checked against the chain.
    ///
    /// # Errors
    /// When an event is damaged, cannot be read, or cannot follow.
    fn replay(
        &self,
        from: Seq,
        each: &mut dyn FnMut(Seq, JournalEntry) -> Result<(), ReplayStop>,
    ) -> Result<ReplayReport, StoreError>;

    /// Where the journal ends.
    ///
    /// # Errors
    /// When it cannot be read.
    fn head(&self) -> Result<JournalHead, StoreError>;
}

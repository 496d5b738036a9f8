//! Memory: the journal, and the tables read from it.
//!
//! The journal is a row of facts, each chained to the one before. The tables are folds of it: they are written in
//! the same transaction and can be made again from the facts alone. [`Sqlite`] keeps both in a file, [`MemoryJournal`] is
//! its twin for tests and simulations, and a [`StoreReader`] answers questions from the tables without an engine.
//! What a fact means is the model's business; this crate decides nothing.

mod autopilot;
mod chain;
mod error;
mod fold;
mod format;
mod journal;
mod memory;
mod reader;
mod schema;
mod sqlite;
mod tally;

pub use autopilot::Autopilot;
pub use chain::Hash;
pub use error::StoreError;
pub use fold::{BaseState, GUESS, PassRow, RunRow, Tables, TaskRow};
pub use format::{FormatError, FormatErrorKind, encode_as_json};
pub use journal::{
    AppendReceipt, EntryBatch, EventOrderError, Journal, JournalEnd, JournalHead, PendingAck, ReplayReport,
    ReplayStop, Seq,
};
pub use memory::MemoryJournal;
pub use reader::{InboxRow, LandedTaskFigures, StoreReader, TaskCounts, TaskFilter};
pub use sqlite::{JournalCheck, JournalOpenReport, JournalOptions, Sqlite};
pub use tally::{CountKind, CountRow, SLOT_MS, WorkRow};

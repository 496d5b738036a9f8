//! The journal in a file. One thread owns the connection that writes; everyone else holds a handle.

mod open;
mod rebuild;
mod tables;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use landfall_model::JournalEntry;

use crate::journal::PendingFrom;
use crate::reader::StoreReader;
use crate::{
    EntryBatch, Journal, JournalEnd, JournalHead, PendingAck, ReplayReport, ReplayStop, Seq, StoreError,
    Tables, fold, format,
};
pub(crate) use rebuild::refill_tables;
use writer::{AppendRequest, Writer, WriterCommand};

/// How a journal is opened.
#[derive(Debug, Clone)]
pub struct JournalOptions {
    /// What is checked before anything is served.
    pub check: JournalCheck,
    /// What is done when the disk fails under a write. It must not return: see [`StoreError::is_fatal`].
    pub on_fatal: fn(&StoreError) -> !,
    /// The most pages of the file, to try out a full disk.
    pub pages_max: Option<u32>,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self { check: JournalCheck::Auto, on_fatal: end_process, pages_max: None }
    }
}

/// What is checked when a journal is opened. The chain is checked by every replay, whatever is said here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalCheck {
    /// The structure of the file, if it is small or was not closed properly.
    Auto,
    /// The structure of the file.
    Quick,
    /// The structure, that every index agrees with its table, the chain, and that the tables are what the events
    /// make.
    Full,
}

/// What was found when a journal was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalOpenReport {
    /// Its id, which the state around it carries too.
    pub id: String,
    /// Where it ends.
    pub head: JournalHead,
    /// Whether it is new.
    pub created: bool,
    /// Whether whoever wrote it last did not close it.
    pub unclean: bool,
}

/// A journal in a file. Clones are handles to the same writer; the last one to go closes the file.
#[derive(Clone)]
pub struct Sqlite {
    inner: Arc<SqliteInner>,
}

struct SqliteInner {
    path: PathBuf,
    end: Arc<JournalEnd>,
    orders: Option<SyncSender<WriterCommand>>,
    thread: Option<JoinHandle<()>>,
}

const ORDERS_MAX: usize = 1024; // four full groups; beyond it callers wait, which is the brake they need

impl Sqlite {
    /// Opens the journal at `path`, or makes one.
    ///
    /// # Errors
    /// When it cannot be written to, is damaged, or is not of this version.
    pub fn open(path: &Path, options: JournalOptions) -> Result<(Self, JournalOpenReport), StoreError> {
        let (conn, opened) = open::open(path, &options)?;
        let end = Arc::new(JournalEnd::new(opened.head));
        let writer = Writer::new(conn, path, opened.head, end.clone(), options.on_fatal)?;
        let (orders, taken) = sync_channel(ORDERS_MAX);
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(&taken))
            .map_err(|error| StoreError::from_io("start the thread that writes", path, error))?;
        let inner = SqliteInner { path: path.to_owned(), end, orders: Some(orders), thread: Some(thread) };
        Ok((Self { inner: Arc::new(inner) }, opened))
    }

    /// Where it ends, as it grows.
    #[must_use]
    pub fn journal_end(&self) -> Arc<JournalEnd> {
        Arc::clone(&self.inner.end)
    }

    /// A connection that reads.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open_reader(&self) -> Result<StoreReader, StoreError> {
        StoreReader::open(&self.inner.path)
    }

    /// Makes the tables again from the events alone.
    ///
    /// # Errors
    /// When an event is damaged or cannot follow; the tables then stay as they were.
    pub fn rebuild_tables(&self) -> Result<(), StoreError> {
        let (answer, answered) = sync_channel(1);
        self.inner.send_command(WriterCommand::Rebuild(answer))?;
        answered.recv().unwrap_or(Err(StoreError::Closed))
    }

    /// Its tables, as they are stored.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn read_tables(&self) -> Result<Tables, StoreError> {
        self.open_reader()?.tables()
    }
}

impl Journal for Sqlite {
    fn append_later(&self, batch: EntryBatch) -> PendingAck {
        if let Err(error) = batch.check_tasks_present() {
            return PendingAck(PendingFrom::Known(Err(error)));
        }
        // Encoding happens here, on the caller's thread: the one that writes has enough to do.
        let (answer, answered) = sync_channel(1);
        let request = AppendRequest {
            events: batch.entries.iter().map(format::encode_entry).collect(),
            changes: fold::collect_changes(&batch.entries, &batch.tasks),
            answer,
        };
        match self.inner.send_command(WriterCommand::Append(request)) {
            Ok(()) => PendingAck(PendingFrom::Writer(answered)),
            Err(error) => PendingAck(PendingFrom::Known(Err(error))),
        }
    }

    fn replay(
        &self,
        from: Seq,
        each: &mut dyn FnMut(Seq, JournalEntry) -> Result<(), ReplayStop>,
    ) -> Result<ReplayReport, StoreError> {
        let reader = self.open_reader()?;
        reader.replay(from, each)
    }

    fn head(&self) -> Result<JournalHead, StoreError> {
        Ok(self.inner.end.head())
    }
}

impl SqliteInner {
    fn send_command(&self, order: WriterCommand) -> Result<(), StoreError> {
        let orders = self.orders.as_ref().expect("taken only when the last handle goes");
        orders.send(order).map_err(|_| StoreError::Closed)
    }
}

impl Drop for SqliteInner {
    fn drop(&mut self) {
        let _ = self.orders.take(); // the writer ends when nobody can order any more
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic of it has been told on stderr, and everyone who waited got `Closed`
        }
    }
}

/// Whether a file is on disk and in which shape is not known any more, so nothing may be done that counts on it.
fn end_process(error: &StoreError) -> ! {
    let source = std::error::Error::source(error).map_or_else(String::new, |source| format!(": {source}"));
    eprintln!("landfall: the disk failed under the journal: {error}{source}");
    std::process::abort()
}

/// The file that SQLite keeps beside the database.
pub(crate) fn sibling_path(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

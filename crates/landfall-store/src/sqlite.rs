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
use crate::reader::Reader;
use crate::{
    Batch, End, Head, Journal, Pending, ReplayStop, Replayed, Seq, StoreError, Tables, fold, format,
};
pub(crate) use rebuild::refill;
use writer::{Order, Request, Writer};

/// How a journal is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// What is checked before anything is served.
    pub check: Check,
    /// What is done when the disk fails under a write. It must not return: see [`StoreError::is_fatal`].
    pub on_fatal: fn(&StoreError) -> !,
    /// The most pages of the file, to try out a full disk.
    pub pages_max: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self { check: Check::Auto, on_fatal: end_process, pages_max: None }
    }
}

/// What is checked when a journal is opened. The chain is checked by every replay, whatever is said here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
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
pub struct Opened {
    /// Its id, which the state around it carries too.
    pub id: String,
    /// Where it ends.
    pub head: Head,
    /// Whether it is new.
    pub created: bool,
    /// Whether whoever wrote it last did not close it.
    pub unclean: bool,
}

/// A journal in a file. Clones are handles to the same writer; the last one to go closes the file.
#[derive(Clone)]
pub struct Sqlite {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    end: Arc<End>,
    orders: Option<SyncSender<Order>>,
    thread: Option<JoinHandle<()>>,
}

const ORDERS_MAX: usize = 1024; // four full groups; beyond it callers wait, which is the brake they need

impl Sqlite {
    /// Opens the journal at `path`, or makes one.
    ///
    /// # Errors
    /// When it cannot be written to, is damaged, or is not of this version.
    pub fn open(path: &Path, options: Options) -> Result<(Self, Opened), StoreError> {
        let (conn, opened) = open::open(path, &options)?;
        let end = Arc::new(End::new(opened.head));
        let writer = Writer::new(conn, path, opened.head, end.clone(), options.on_fatal)?;
        let (orders, taken) = sync_channel(ORDERS_MAX);
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(&taken))
            .map_err(|error| StoreError::io("start the thread that writes", path, error))?;
        let inner = Inner { path: path.to_owned(), end, orders: Some(orders), thread: Some(thread) };
        Ok((Self { inner: Arc::new(inner) }, opened))
    }

    /// Where it ends, as it grows.
    #[must_use]
    pub fn end(&self) -> Arc<End> {
        Arc::clone(&self.inner.end)
    }

    /// A connection that reads.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn reader(&self) -> Result<Reader, StoreError> {
        Reader::open(&self.inner.path)
    }

    /// Makes the tables again from the events alone.
    ///
    /// # Errors
    /// When an event is damaged or cannot follow; the tables then stay as they were.
    pub fn rebuild(&self) -> Result<(), StoreError> {
        let (answer, answered) = sync_channel(1);
        self.inner.order(Order::Rebuild(answer))?;
        answered.recv().unwrap_or(Err(StoreError::Closed))
    }

    /// Its tables, as they are stored.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn tables(&self) -> Result<Tables, StoreError> {
        self.reader()?.tables()
    }
}

impl Journal for Sqlite {
    fn append_later(&self, batch: Batch) -> Pending {
        if let Err(error) = batch.check() {
            return Pending(PendingFrom::Known(Err(error)));
        }
        // Encoding happens here, on the caller's thread: the one that writes has enough to do.
        let (answer, answered) = sync_channel(1);
        let request = Request {
            events: batch.entries.iter().map(format::encode).collect(),
            changes: fold::changes(&batch.entries, &batch.tasks),
            answer,
        };
        match self.inner.order(Order::Append(request)) {
            Ok(()) => Pending(PendingFrom::Writer(answered)),
            Err(error) => Pending(PendingFrom::Known(Err(error))),
        }
    }

    fn replay(
        &self,
        from: Seq,
        each: &mut dyn FnMut(Seq, JournalEntry) -> Result<(), ReplayStop>,
    ) -> Result<Replayed, StoreError> {
        let reader = self.reader()?;
        reader.replay(from, each)
    }

    fn head(&self) -> Result<Head, StoreError> {
        Ok(self.inner.end.head())
    }
}

impl Inner {
    fn order(&self, order: Order) -> Result<(), StoreError> {
        let orders = self.orders.as_ref().expect("taken only when the last handle goes");
        orders.send(order).map_err(|_| StoreError::Closed)
    }
}

impl Drop for Inner {
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
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

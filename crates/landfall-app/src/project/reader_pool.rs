//! Connections to the tables that are kept for the next question. To open one costs more than most questions: SQLite reads
//! the schema, and every statement is prepared anew.

use std::cell::RefCell;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use landfall_engine::store::{JournalHead, StoreError, StoreReader};

use crate::project::read_caches::ReadCaches;

/// As many as are asked at once on a busy day; each keeps up to two megabytes of pages.
const KEPT_MAX: usize = 6;

/// The connections that no request uses at the moment.
#[derive(Default)]
pub(crate) struct ReaderPool(Mutex<Vec<IdleReader>>);

impl ReaderPool {
    fn lock(&self) -> MutexGuard<'_, Vec<IdleReader>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

thread_local! {
    /// The one that every question of this thread is asked of, while they are to see the same moment.
    static HELD: RefCell<Option<Rc<BorrowedReader>>> = const { RefCell::new(None) };
}

struct IdleReader {
    path: PathBuf,
    file: JournalFileId,
    reader: StoreReader,
}

/// Which file it is, whatever it is called.
#[derive(Clone, Copy, PartialEq, Eq)]
struct JournalFileId {
    device: u64,
    inode: u64,
}

impl JournalFileId {
    fn from_path(path: &Path) -> Option<Self> {
        let meta = std::fs::metadata(path).ok()?;
        Some(Self { device: meta.dev(), inode: meta.ino() })
    }
}

/// A connection, for one request. Given back when it is dropped.
struct BorrowedReader {
    caches: Arc<ReadCaches>,
    kept: Option<IdleReader>,
}

/// The tables of a project, for one request or for all that see the same moment.
pub(crate) struct PooledReader(Rc<BorrowedReader>);

impl PooledReader {
    /// Opens the journal at `path`. What was written before is seen, or within [`read_at_one_head`] what it began with.
    pub fn open(caches: &Arc<ReadCaches>, path: &Path) -> Result<Self, StoreError> {
        let held = HELD.with_borrow(|held| held.as_ref().filter(|it| it.path() == Some(path)).map(Rc::clone));
        held.map_or_else(|| BorrowedReader::open(caches, path).map(Rc::new), Ok).map(Self)
    }
}

impl Deref for PooledReader {
    type Target = StoreReader;

    fn deref(&self) -> &StoreReader {
        &self.0
    }
}

/// Has all questions that `work` asks of the journal at `path`, in this thread, see the same moment, and says which.
pub(crate) fn read_at_one_head(
    caches: &Arc<ReadCaches>,
    path: &Path,
    work: impl FnOnce(),
) -> Result<JournalHead, StoreError> {
    struct Released;
    impl Drop for Released {
        fn drop(&mut self) {
            HELD.set(None);
        }
    }
    let tables = Rc::new(BorrowedReader::open(caches, path)?);
    tables.with_snapshot(|head| {
        HELD.set(Some(Rc::clone(&tables)));
        let _released = Released; // also where it panics
        work();
        head
    })
}

impl BorrowedReader {
    fn path(&self) -> Option<&Path> {
        self.kept.as_ref().map(|kept| kept.path.as_path())
    }

    /// Opens the journal at `path`, or takes a connection to it that is kept. What was written before is seen either way.
    fn open(caches: &Arc<ReadCaches>, path: &Path) -> Result<Self, StoreError> {
        let caches = Arc::clone(caches);
        let file = JournalFileId::from_path(path);
        if let Some(file) = file {
            let mut all = caches.readers.lock();
            // Another file of the same name is another journal.
            all.retain(|kept| kept.path != path || kept.file == file);
            if let Some(place) = all.iter().rposition(|kept| kept.path == path) {
                let kept = Some(all.swap_remove(place));
                drop(all);
                return Ok(Self { caches, kept });
            }
        }
        let reader = StoreReader::open(path)?;
        // One that was replaced in between is not kept: no file is like this one.
        let file = file
            .filter(|file| JournalFileId::from_path(path) == Some(*file))
            .unwrap_or(JournalFileId { device: 0, inode: 0 });
        Ok(Self { caches, kept: Some(IdleReader { path: path.to_owned(), file, reader }) })
    }
}

impl Deref for BorrowedReader {
    type Target = StoreReader;

    fn deref(&self) -> &StoreReader {
        &self.kept.as_ref().expect("it is given back only at the end").reader
    }
}

impl Drop for BorrowedReader {
    fn drop(&mut self) {
        let Some(kept) = self.kept.take() else { return };
        if std::thread::panicking() || !kept.reader.follows() || !kept.reader.is_free() {
            return;
        }
        let mut all = self.caches.readers.lock();
        if all.len() >= KEPT_MAX {
            all.remove(0); // of a project that is not asked about any more, or one of too many
        }
        all.push(kept);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;
    use std::sync::Arc;

    use super::{HELD, PooledReader, read_at_one_head};
    use crate::project::read_caches::ReadCaches;
    use landfall_engine::model::{EngineEvent, Fact, JournalEntry, QueueEvent, Timestamp};
    use landfall_engine::store::{EntryBatch, Journal as _, JournalOptions, Sqlite, StoreError};

    #[test]
    fn a_journal_that_was_replaced_or_removed_is_not_answered_from() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("journal.db");
        let caches: Arc<ReadCaches> = Arc::default();
        let make = |at: &std::path::Path| {
            drop(Sqlite::open(at, JournalOptions::default()).expect("a journal"));
        };
        make(&path);
        drop(PooledReader::open(&caches, &path).expect("it opens"));
        let kept = || caches.readers.lock().iter().filter(|kept| kept.path == path).count();
        assert_eq!(kept(), 1);
        drop(PooledReader::open(&caches, &path).expect("it opens"));
        assert_eq!(kept(), 1, "the same one was used again");

        let other = dir.path().join("other.db");
        make(&other);
        std::fs::rename(&other, &path).expect("it is replaced");
        let first = PooledReader::open(&caches, &path).expect("it opens");
        assert_eq!(kept(), 0, "the connection to the old file is gone");
        drop(first);
        std::fs::remove_file(&path).expect("it is removed");
        assert!(matches!(
            PooledReader::open(&caches, &path),
            Err(StoreError::Missing { .. } | StoreError::Io { .. })
        ));
    }

    #[test]
    fn questions_of_one_moment_do_not_see_what_is_written_meanwhile() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("journal.db");
        let (journal, _) = Sqlite::open(&path, JournalOptions::default()).expect("a journal");
        let caches: Arc<ReadCaches> = Arc::default();
        let write = || {
            let fact = Fact::Engine(EngineEvent::Queue(QueueEvent::Resumed));
            let entries = vec![JournalEntry { at: Timestamp(1), fact }];
            journal.append(EntryBatch { entries, tasks: Vec::new() }).expect("there is room");
        };
        let seen = || PooledReader::open(&caches, &path).expect("it opens").head().expect("readable").seq.0;
        write();
        let mut looks = Vec::new();
        let moment = read_at_one_head(&caches, &path, || {
            looks.push(seen());
            write();
            looks.push(seen());
            // Another thread is another question.
            looks.push(std::thread::scope(|scope| scope.spawn(seen).join().expect("it looks")));
            PooledReader::open(&caches, &path)
                .expect("it opens")
                .tables()
                .expect("what reads at once may do so within");
        });
        assert_eq!(moment.expect("readable").seq.0, 1);
        assert_eq!(looks, [1, 1, 2]);
        assert_eq!(seen(), 2, "it is over");
    }

    #[test]
    fn a_moment_is_over_also_where_somebody_panics() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("journal.db");
        drop(Sqlite::open(&path, JournalOptions::default()).expect("a journal"));
        let caches: Arc<ReadCaches> = Arc::default();
        let panics = std::panic::catch_unwind(AssertUnwindSafe(|| {
            read_at_one_head(&caches, &path, || panic!("on purpose"))
        }));
        assert!(panics.is_err());
        HELD.with_borrow(|held| assert!(held.is_none()));
    }
}

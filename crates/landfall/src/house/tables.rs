//! Connections to the tables that are kept for the next question. To open one costs more than most questions: SQLite reads
//! the schema, and every statement is prepared anew.

use std::ops::Deref;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use landfall_engine::store::{Reader, StoreError};

/// As many as are asked at once on a busy day; each keeps up to two megabytes of pages.
const KEPT_MAX: usize = 6;

static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

struct Kept {
    path: PathBuf,
    file: File,
    reader: Reader,
}

/// Which file it is, whatever it is called.
#[derive(Clone, Copy, PartialEq, Eq)]
struct File {
    device: u64,
    inode: u64,
}

impl File {
    fn at(path: &Path) -> Option<Self> {
        let meta = std::fs::metadata(path).ok()?;
        Some(Self { device: meta.dev(), inode: meta.ino() })
    }
}

/// The tables of a project, for one request. Given back when it is dropped.
pub(super) struct Tables {
    kept: Option<Kept>,
}

impl Tables {
    /// Opens the journal at `path`, or takes a connection to it that is kept. What was written before is seen either way.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let file = File::at(path);
        if let Some(file) = file {
            let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
            // Another file of the same name is another journal.
            all.retain(|kept| kept.path != path || kept.file == file);
            if let Some(place) = all.iter().rposition(|kept| kept.path == path) {
                return Ok(Self { kept: Some(all.swap_remove(place)) });
            }
        }
        let reader = Reader::open(path)?;
        // One that was replaced in between is not kept: no file is like this one.
        let file = file.filter(|file| File::at(path) == Some(*file)).unwrap_or(File { device: 0, inode: 0 });
        Ok(Self { kept: Some(Kept { path: path.to_owned(), file, reader }) })
    }
}

impl Deref for Tables {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        &self.kept.as_ref().expect("it is given back only at the end").reader
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        let Some(kept) = self.kept.take() else { return };
        if std::thread::panicking() || !kept.reader.follows() {
            return;
        }
        let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= KEPT_MAX {
            all.remove(0); // of a project that is not asked about any more, or one of too many
        }
        all.push(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Tables};
    use landfall_engine::store::{Options, Sqlite, StoreError};

    #[test]
    fn a_journal_that_was_replaced_or_removed_is_not_answered_from() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("journal.db");
        let make = |at: &std::path::Path| {
            drop(Sqlite::open(at, Options::default()).expect("a journal"));
        };
        make(&path);
        drop(Tables::open(&path).expect("it opens"));
        let kept = || KEPT.lock().expect("no panic").iter().filter(|it| it.path == path).count();
        assert_eq!(kept(), 1);
        drop(Tables::open(&path).expect("it opens"));
        assert_eq!(kept(), 1, "the same one was used again");

        let other = dir.path().join("other.db");
        make(&other);
        std::fs::rename(&other, &path).expect("it is replaced");
        let first = Tables::open(&path).expect("it opens");
        assert_eq!(kept(), 0, "the connection to the old file is gone");
        drop(first);
        std::fs::remove_file(&path).expect("it is removed");
        assert!(matches!(Tables::open(&path), Err(StoreError::Missing { .. } | StoreError::Io { .. })));
    }
}

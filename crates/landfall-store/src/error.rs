//! What can go wrong with a journal, told apart by what someone can do about it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use landfall_model::TaskId;
use rusqlite::ErrorCode;
use thiserror::Error;

use crate::format::FormatError;
use crate::{EventOrderError, Seq};

/// A failure of the store. It can be cloned, because one failed commit answers many who wait for it.
#[derive(Debug, Clone, Error)]
pub enum StoreError {
    /// Nothing is there.
    #[error("there is no journal at `{}`", path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// Some other program's database.
    #[error("`{}` is a database, but not a journal of Landfall", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// A newer Landfall wrote it.
    #[error("`{}` has schema {found}; this version knows schemas up to {known}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest that is known.
        known: i64,
    },
    /// An older Landfall wrote it, and a reader changes nothing.
    #[error("`{}` has schema {found}, which must be brought to {known} first", path.display())]
    Older {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The one that is wanted.
        known: i64,
    },
    /// What is stored is not what was written. Nothing of it is served.
    #[error("the journal is damaged{}: {what}", format_position(.seq))]
    Corrupt {
        /// The first event that is wrong, if it is one.
        seq: Option<Seq>,
        /// What was seen.
        what: String,
    },
    /// An event that this version cannot read.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// An event that cannot follow the ones before it.
    #[error("event {seq} cannot follow")]
    Illegal {
        /// That event.
        seq: Seq,
        /// Why not.
        #[source]
        source: EventOrderError,
    },
    /// No room. Nothing was written.
    #[error("there is no room to write to the journal")]
    Full,
    /// It may only be read.
    #[error("`{}` cannot be written to", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// Someone else holds it for longer than we wait.
    #[error("the journal is held by another process")]
    Busy,
    /// The file is not the one that was opened.
    #[error("`{}` was removed or replaced while it was open", path.display())]
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// Another writer appended: this one's picture is old.
    #[error("another writer has appended event {seq}")]
    TwoWriters {
        /// The event that was there already.
        seq: Seq,
    },
    /// A batch touched a task and did not say what became of it.
    #[error("the batch touches {task} but does not hold it")]
    Unfolded {
        /// That task.
        task: TaskId,
    },
    /// The writer has ended.
    #[error("the journal is closed")]
    Closed,
    /// The SQLite in this binary has a known way to lose data.
    #[error("sqlite {found} is too old: 3.51.3 is the first that can be trusted")]
    OldSqlite {
        /// Its version.
        found: &'static str,
    },
    /// The filesystem refused.
    #[error("{doing} `{}`", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To this.
        path: PathBuf,
        /// What it said.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// SQLite refused.
    #[error("{doing}")]
    Sql {
        /// What was being done.
        doing: &'static str,
        /// What it said.
        #[source]
        source: Arc<rusqlite::Error>,
    },
}

impl StoreError {
    /// What to do about it, if there is something.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Missing { .. } => Some("add a task first, or check where the state is kept"),
            Self::NotOurs { .. } => Some("point the state folder somewhere else"),
            Self::Newer { .. } => Some("use the version that wrote it, or a newer one"),
            Self::Older { .. } => Some("start the engine once; it brings the journal up to date"),
            Self::Corrupt { .. } | Self::Illegal { .. } => {
                Some("`landfall doctor` says more; put a copy of the state folder aside first")
            }
            Self::Full => Some("make room on the disk; nothing was lost"),
            Self::ReadOnly { .. } => Some("check the owner and the mode of the state folder"),
            Self::Busy | Self::TwoWriters { .. } => Some("only one engine may drive a project"),
            Self::Replaced { .. } => Some("stop the engine before files of the state folder are moved"),
            Self::Format(_) => Some("a newer version may have written it"),
            Self::Unfolded { .. }
            | Self::Closed
            | Self::OldSqlite { .. }
            | Self::Io { .. }
            | Self::Sql { .. } => None,
        }
    }

    /// Whether the disk failed under a write. After that nothing that was written can be trusted to be there,
    /// and trying again may seem to succeed: the process has to end.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        match self {
            Self::Sql { source, .. } => source.sqlite_error_code() == Some(ErrorCode::SystemIoFailure),
            _ => false,
        }
    }

    pub(crate) fn corrupt_at(seq: impl Into<Option<Seq>>, what: impl Into<String>) -> Self {
        Self::Corrupt { seq: seq.into(), what: what.into() }
    }

    pub(crate) fn from_io(doing: &'static str, path: &Path, source: std::io::Error) -> Self {
        use std::io::ErrorKind;
        match source.kind() {
            ErrorKind::NotFound => Self::Missing { path: path.to_owned() },
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                Self::ReadOnly { path: path.to_owned() }
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Io { doing, path: path.to_owned(), source: Arc::new(source) },
        }
    }
}

/// Gives SQLite's errors their names.
pub(crate) trait StoreResultExt<T> {
    fn with_context(self, doing: &'static str, path: &Path) -> Result<T, StoreError>;
}

impl<T> StoreResultExt<T> for Result<T, rusqlite::Error> {
    fn with_context(self, doing: &'static str, path: &Path) -> Result<T, StoreError> {
        self.map_err(|source| match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                StoreError::corrupt_at(None, format!("{doing}: {source}"))
            }
            Some(ErrorCode::DiskFull) => StoreError::Full,
            Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { path: path.to_owned() },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy,
            _ => match source {
                // Under STRICT tables these cannot be, unless the file was changed behind SQLite's back.
                rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::Utf8Error(..) => {
                    StoreError::corrupt_at(None, format!("{doing}: {source}"))
                }
                source => StoreError::Sql { doing, source: Arc::new(source) },
            },
        })
    }
}

fn format_position(seq: &Option<Seq>) -> String {
    seq.map_or_else(String::new, |seq| format!(" at event {seq}"))
}

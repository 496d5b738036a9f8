//! Opening: whose file is it, can it be written to, is it whole?

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::{JournalCheck, JournalOpenReport, JournalOptions, rebuild, sibling_path};
use crate::error::StoreResultExt;
use crate::{JournalHead, StoreError, reader, schema};

/// SQLite before 3.51.3 may lose a write when a log is reset while another connection checkpoints; 3.52.0 was
/// withdrawn.
const SQLITE_OLDEST: i32 = 3_051_003;
const SQLITE_WITHDRAWN: i32 = 3_052_000;

const BUSY: Duration = Duration::from_secs(5); // a checkpoint of a full log on a slow disk
const SMALL_BYTES: u64 = 8 * 1024 * 1024; // checking this much takes a few milliseconds
const WAL_BYTES_MAX: i64 = 64 * 1024 * 1024; // a log that grew beyond is cut when it is reset
const CACHE_KIB: i64 = 16 * 1024; // the upper pages of every index for 100,000 tasks

/// Opens the file for writing and checks it.
pub(super) fn open(
    path: &Path,
    options: &JournalOptions,
) -> Result<(Connection, JournalOpenReport), StoreError> {
    let found = rusqlite::version_number();
    if found < SQLITE_OLDEST || found == SQLITE_WITHDRAWN {
        return Err(StoreError::OldSqlite { found: rusqlite::version() });
    }
    // SQLite removes its log when the last connection closes. One with content is what a crash leaves behind.
    let unclean = std::fs::metadata(sibling_path(path, "-wal")).is_ok_and(|wal| wal.len() > 0);
    let created = create_database_file(path)?;
    let bytes = std::fs::metadata(path).map_err(|error| StoreError::from_io("look at", path, error))?.len();

    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags).with_context("open the journal", path)?;
    conn.busy_timeout(BUSY).with_context("set the patience", path)?;
    let version = schema::read_schema_version(&conn, path)?; // before anything is changed
    if conn.is_readonly("main").with_context("ask whether it can be written to", path)? {
        return Err(StoreError::ReadOnly { path: path.to_owned() });
    }
    set_up(&conn, options, path)?;
    if version < schema::NEWEST {
        schema::migrate_schema(&mut conn, path)?;
    }

    let structure = match options.check {
        JournalCheck::Auto if unclean || bytes <= SMALL_BYTES => Some("PRAGMA quick_check(1)"),
        JournalCheck::Auto => None,
        JournalCheck::Quick => Some("PRAGMA quick_check(1)"),
        JournalCheck::Full => Some("PRAGMA integrity_check(1)"),
    };
    if let Some(sql) = structure {
        let said: String = conn.query_row(sql, [], |row| row.get(0)).with_context("check the file", path)?;
        if said != "ok" {
            return Err(StoreError::corrupt_at(None, said));
        }
    }
    let head: JournalHead = reader::read_head(&conn, path)?;
    let id = ensure_journal_id(&conn, path)?;
    if options.check == JournalCheck::Full {
        rebuild::verify_tables(&conn, path)?;
    }
    Ok((conn, JournalOpenReport { id, head, created, unclean }))
}

/// The id of the journal; given once. Older versions keep it and do not look at it.
fn ensure_journal_id(conn: &Connection, path: &Path) -> Result<String, StoreError> {
    if let Some(id) = reader::journal_id(conn, path)? {
        return Ok(id);
    }
    conn.execute(
        "INSERT OR IGNORE INTO meta (key, value) VALUES ('journal_id', lower(hex(randomblob(16))))",
        [],
    )
    .with_context("give the journal an id", path)?;
    let id = reader::journal_id(conn, path)?;
    id.ok_or_else(|| {
        StoreError::corrupt_at(None, "the id of the journal is gone as soon as it is written".to_owned())
    })
}

/// Makes the file if there is none: readable by its owner only, since prompts and answers are in it.
fn create_database_file(path: &Path) -> Result<bool, StoreError> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Ok(_) => {
            // The name must be as durable as what will be acknowledged under it.
            if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                let synced = File::open(folder).and_then(|folder| folder.sync_all());
                synced.map_err(|error| StoreError::from_io("make durable", folder, error))?;
            }
            Ok(true)
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(StoreError::from_io("create", path, error)),
    }
}

fn set_up(conn: &Connection, options: &JournalOptions, path: &Path) -> Result<(), StoreError> {
    let doing = "set up the connection";
    let mode: String = conn
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .with_context(doing, path)
        .map_err(|error| {
            match error {
                // In a folder that takes no new files the log cannot be made.
                StoreError::Sql { source, .. }
                    if source.sqlite_error_code() == Some(rusqlite::ErrorCode::CannotOpen) =>
                {
                    StoreError::ReadOnly { path: path.to_owned() }
                }
                other => other,
            }
        })?;
    if mode != "wal" {
        return Err(StoreError::ReadOnly { path: path.to_owned() });
    }
    let set = |name: &str, value: i64| conn.pragma_update(None, name, value).with_context(doing, path);
    set("synchronous", 2)?; // FULL: a commit returns after the log is on the disk
    set("foreign_keys", 1)?;
    set("mmap_size", 0)?;
    set("cell_size_check", 1)?;
    set("trusted_schema", 0)?;
    set("cache_size", -CACHE_KIB)?;
    // The writer does it by itself, after acknowledging, so that a failure of it is not overlooked.
    set("wal_autocheckpoint", 0)?;
    set("journal_size_limit", WAL_BYTES_MAX)?;
    if let Some(pages) = options.pages_max {
        set("max_page_count", i64::from(pages))?;
    }
    conn.set_prepared_statement_cache_capacity(64);
    Ok(())
}

//! The tables, and how an older database is brought up to date.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::StoreError;
use crate::error::StoreResultExt;

/// Says whose database it is: the letters `LNDF`.
pub(crate) const APPLICATION_ID: i64 = 0x4C4E_4446;

/// The newest schema this version knows.
pub(crate) const NEWEST: i64 = MIGRATIONS.len() as i64;

/// Step n brings schema n to n + 1. A step that was shipped is never edited.
pub(crate) const MIGRATIONS: &[&str] = &[FIRST, SECOND, THIRD];

const FIRST: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- The truth. Append-only, dense, chained.
CREATE TABLE event (
    seq INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    task INTEGER,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    hash BLOB NOT NULL
) STRICT;
CREATE INDEX event_task ON event (task) WHERE task IS NOT NULL;

-- All below are folds of the events and can be made again from them.
CREATE TABLE flow (digest TEXT PRIMARY KEY, seq INTEGER NOT NULL, json TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE task (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    status TEXT NOT NULL,
    wait TEXT,
    phase TEXT,
    step TEXT,
    priority INTEGER NOT NULL,
    size TEXT,
    tags TEXT NOT NULL,
    parent INTEGER,
    created INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    started INTEGER,
    due INTEGER,
    iterations INTEGER NOT NULL,
    iterations_max INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    micro_usd INTEGER NOT NULL,
    flow TEXT,
    agent TEXT,
    draft INTEGER NOT NULL,
    unblocks INTEGER NOT NULL,
    unmet INTEGER NOT NULL,
    landed TEXT,
    ended TEXT,
    detail TEXT NOT NULL,
    asks TEXT,
    seq INTEGER NOT NULL,
    events INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;
CREATE INDEX task_status ON task (status);
CREATE INDEX task_next ON task (priority, id) WHERE status = 'ready' AND unmet = 0;
CREATE INDEX task_held ON task (id) WHERE status = 'ready' AND unmet > 0;
CREATE INDEX task_parent ON task (parent) WHERE parent IS NOT NULL;
CREATE INDEX task_asks ON task (id) WHERE asks IS NOT NULL;
CREATE VIEW inbox AS SELECT id, title, status, asks, changed FROM task WHERE asks IS NOT NULL;

CREATE TABLE need (
    task INTEGER NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    need INTEGER NOT NULL,
    PRIMARY KEY (task, need)
) STRICT, WITHOUT ROWID;
CREATE INDEX need_need ON need (need);

CREATE TABLE tag (
    tag TEXT NOT NULL,
    task INTEGER NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    PRIMARY KEY (tag, task)
) STRICT, WITHOUT ROWID;
CREATE INDEX tag_task ON tag (task);

CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    started INTEGER NOT NULL,
    ended INTEGER,
    why TEXT,
    slots INTEGER NOT NULL
) STRICT;

CREATE TABLE pass (
    tree TEXT NOT NULL,
    config TEXT NOT NULL,
    environment TEXT NOT NULL,
    seq INTEGER NOT NULL,
    task INTEGER,
    PRIMARY KEY (tree, config, environment)
) STRICT, WITHOUT ROWID;

CREATE TABLE base (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    at_commit TEXT,
    published TEXT,
    held TEXT
) STRICT;
INSERT INTO base (one) VALUES (1);
";

/// The queue, sprints, checkpoints and flakes are folded from the facts of a few kinds when someone asks.
const SECOND: &str = "
CREATE INDEX event_kind ON event (kind);
";

/// Counts for curves, and when each task was done. Both are folds: whoever brings a journal up to here fills them.
const THIRD: &str = "
CREATE TABLE tally (
    slot INTEGER NOT NULL,
    what TEXT NOT NULL,
    key TEXT NOT NULL,
    many INTEGER NOT NULL,
    PRIMARY KEY (slot, what, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE work (
    task INTEGER PRIMARY KEY,
    profile TEXT,
    done INTEGER,
    rounds INTEGER NOT NULL DEFAULT 0,
    said TEXT
) STRICT;
CREATE INDEX work_done ON work (done) WHERE done IS NOT NULL;

CREATE INDEX task_waits ON task (wait) WHERE status = 'waiting';
";

/// The schemas that come with new folds, which are made from the events.
const REFILLED: &[i64] = &[3];

/// Empties the folds.
pub(crate) const EMPTY_FOLDS: &str = "
DELETE FROM need; DELETE FROM tag; DELETE FROM task; DELETE FROM run; DELETE FROM pass; DELETE FROM flow;
DELETE FROM tally; DELETE FROM work;
UPDATE base SET at_commit = NULL, published = NULL, held = NULL;
";

/// Looks whose the database is and how old, without changing it. Zero means it is new.
pub(crate) fn read_schema_version(conn: &Connection, path: &Path) -> Result<i64, StoreError> {
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
    let doing = "read the schema's version";
    let found = number("PRAGMA user_version").with_context(doing, path)?;
    let owner = number("PRAGMA application_id").with_context(doing, path)?;
    let tables = || number("SELECT count(*) FROM sqlite_schema").with_context(doing, path);
    if owner != APPLICATION_ID && (found != 0 || owner != 0 || tables()? != 0) {
        return Err(StoreError::NotOurs { path: path.to_owned() });
    }
    if !(0..=NEWEST).contains(&found) {
        return Err(StoreError::Newer { path: path.to_owned(), found, known: NEWEST });
    }
    Ok(found)
}

/// Brings the database up to date, one step a transaction: a crash leaves a whole schema, old or new.
pub(crate) fn migrate_schema(conn: &mut Connection, path: &Path) -> Result<(), StoreError> {
    loop {
        let doing = "bring the schema up to date";
        let step =
            conn.transaction_with_behavior(TransactionBehavior::Immediate).with_context(doing, path)?;
        // Read again inside the transaction: another process may have done the step.
        let from = read_schema_version(&step, path)?;
        let Some(sql) = usize::try_from(from).ok().and_then(|from| MIGRATIONS.get(from)) else {
            return Ok(());
        };
        step.execute_batch(sql).with_context(doing, path)?;
        if from > 0 && REFILLED.contains(&(from + 1)) {
            crate::sqlite::refill_tables(&step, path)?;
        }
        step.pragma_update(None, "application_id", APPLICATION_ID).with_context(doing, path)?;
        step.pragma_update(None, "user_version", from + 1).with_context(doing, path)?;
        step.commit().with_context(doing, path)?;
    }
}

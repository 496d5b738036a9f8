//! Carries out changes to the tables, inside the writer's transaction.

use std::path::Path;

use landfall_model::{Commit, TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension, ToSql, params};

use crate::error::StoreResultExt;
use crate::fold::{self, TableChange, TaskRow};
use crate::format::FlowText;
use crate::tally::{CountChange, CountIncrement, CountKey, WorkChange};
use crate::{JournalHead, Seq, StoreError};

/// Buffers that are used for every row.
#[derive(Default)]
pub(super) struct RowBuffers {
    text: String,
}

/// Carries out one change of a batch whose first event is `first`.
pub(super) fn apply_table_change(
    conn: &Connection,
    path: &Path,
    scratch: &mut RowBuffers,
    first: Seq,
    change: &TableChange,
) -> Result<(), StoreError> {
    match change {
        TableChange::Task { row, nth, needs } => {
            let seq = Seq(first.0 + nth);
            let mut row = TaskRow::clone(row);
            put_task(conn, scratch, seq, &mut row).with_context("write a task's row", path)?;
            if let Some(needs) = needs {
                put_needs(conn, &row, needs).with_context("write a task's needs", path)?;
            }
            Ok(())
        }
        TableChange::Pass { tree, config, environment, task, nth } => conn
            .prepare_cached("INSERT OR IGNORE INTO pass (tree, config, environment, seq, task) VALUES (?1, ?2, ?3, ?4, ?5)")
            .and_then(|mut it| {
                let task = task.map(|task| task.0);
                it.execute(params![tree.as_str(), config.as_str(), environment.as_str(), first.0 + nth, task])
            })
            .map(drop)
            .with_context("write a pass", path),
        TableChange::RunStarted { run, at, slots } => conn
            .prepare_cached("INSERT OR REPLACE INTO run (id, started, slots) VALUES (?1, ?2, ?3)")
            .and_then(|mut it| it.execute(params![run.0, at.0, slots]))
            .map(drop)
            .with_context("write a run", path),
        TableChange::RunEnded { run, at, why } => conn
            .prepare_cached("UPDATE run SET ended = ?2, why = ?3 WHERE id = ?1")
            .and_then(|mut it| it.execute(params![run.0, at.0, fold::run_end_word(*why)]))
            .map(drop)
            .with_context("write a run", path),
        TableChange::BaseMoved { to } => set_base(conn, "UPDATE base SET at_commit = ?1", to.as_str(), path),
        TableChange::Published { commit } => {
            set_base(conn, "UPDATE base SET published = ?1, held = NULL", commit.as_str(), path)
        }
        TableChange::Held { reason } => set_base(conn, "UPDATE base SET held = ?1", reason, path),
        TableChange::Tally(CountChange::Count(count)) => put_count(conn, count).with_context("count", path),
        TableChange::Tally(CountChange::Mark(task, mark)) => put_mark(conn, *task, mark).with_context("count", path),
    }
}

fn put_count(
    conn: &Connection,
    CountIncrement { slot, what, key, by }: &CountIncrement,
) -> rusqlite::Result<()> {
    const ONTO: &str = "ON CONFLICT (slot, what, key) DO UPDATE SET many = many + excluded.many";
    let what = what.word();
    match key {
        CountKey::Word(word) => conn
            .prepare_cached(&format!(
                "INSERT INTO tally (slot, what, key, many) VALUES (?1, ?2, ?3, ?4) {ONTO}"
            ))?
            .execute(params![slot, what, word, by]),
        CountKey::Profile(task) => conn
            .prepare_cached(&format!(
                "INSERT INTO tally (slot, what, key, many) VALUES (?1, ?2,
                 coalesce((SELECT profile FROM work WHERE task = ?3), ''), ?4) {ONTO}"
            ))?
            .execute(params![slot, what, task.0, by]),
        CountKey::Opinion(task, person) => conn
            .prepare_cached(&format!(
                "INSERT INTO tally (slot, what, key, many)
                 SELECT ?1, ?2, said || '/' || ?4, ?5 FROM work WHERE task = ?3 AND said IS NOT NULL {ONTO}"
            ))?
            .execute(params![slot, what, task.0, person, by]),
    }
    .map(drop)
}

fn put_mark(conn: &Connection, task: TaskId, mark: &WorkChange) -> rusqlite::Result<()> {
    let run = |sql: &str, value: &dyn ToSql| conn.prepare_cached(sql)?.execute(params![task.0, value]);
    match mark {
        WorkChange::Profile(profile) => run(
            "INSERT INTO work (task, profile) VALUES (?1, ?2) ON CONFLICT (task) DO UPDATE SET profile = ?2",
            profile,
        ),
        WorkChange::Landed(at) => run(
            "INSERT INTO work (task, done) VALUES (?1, ?2) ON CONFLICT (task) DO UPDATE SET done = ?2",
            &at.0,
        ),
        WorkChange::Accepted(at) => run(
            "INSERT INTO work (task, done) VALUES (?1, ?2) ON CONFLICT (task) DO UPDATE SET done = coalesce(done, ?2)",
            &at.0,
        ),
        WorkChange::Opinion(said) => run(
            "INSERT INTO work (task, rounds, said) VALUES (?1, 1, ?2)
             ON CONFLICT (task) DO UPDATE SET rounds = rounds + 1, said = coalesce(?2, said)",
            said,
        ),
    }
    .map(drop)
}

fn set_base(conn: &Connection, sql: &str, value: &str, path: &Path) -> Result<(), StoreError> {
    conn.prepare_cached(sql)
        .and_then(|mut it| it.execute([value]))
        .map(drop)
        .with_context("write the base", path)
}

/// What the indexes are made of. A change that leaves it alone leaves them alone.
#[derive(PartialEq, Default)]
struct IndexedColumns {
    status: String,
    wait: Option<String>,
    priority: u8,
    parent: Option<u32>,
    asks: Option<String>,
}

/// What a row was before.
#[derive(Default)]
struct PreviousRow {
    indexed: IndexedColumns,
    unblocks: bool,
    started: Option<i64>,
    events: u64,
    unmet: u32,
}

fn put_task(
    conn: &Connection,
    scratch: &mut RowBuffers,
    seq: Seq,
    row: &mut TaskRow,
) -> rusqlite::Result<()> {
    let before = conn
        .prepare_cached(
            "SELECT status, priority, parent, asks, unblocks, started, events, unmet, wait FROM task WHERE id = ?1",
        )?
        .query_row([row.id.0], |it| {
            Ok(PreviousRow {
                indexed: IndexedColumns {
                    status: it.get(0)?,
                    priority: it.get(1)?,
                    parent: it.get(2)?,
                    asks: it.get(3)?,
                    wait: it.get(8)?,
                },
                unblocks: it.get(4)?,
                started: it.get(5)?,
                events: it.get(6)?,
                unmet: it.get(7)?,
            })
        })
        .optional()?;
    let now = IndexedColumns {
        status: row.status.wire_name().to_owned(),
        priority: row.priority,
        parent: row.parent.map(|parent| parent.0),
        asks: row.asks.clone(),
        wait: row.wait.clone(),
    };
    let sql = match &before {
        None => INSERT,
        Some(before) if before.indexed != now => UPDATE_ALL,
        Some(_) => UPDATE_PLAIN,
    };
    let before = before.unwrap_or_default();
    row.seq = seq;
    row.started = before.started.map(Timestamp).or(row.started);
    row.events += before.events;
    row.unmet = before.unmet;
    conn.prepare_cached(sql)?.execute(params![
        row.id.0,
        row.title,
        now.status,
        now.wait,
        row.phase,
        row.step,
        now.priority,
        row.size.map(fold::size_word),
        tags_json(&row.tags),
        now.parent,
        row.created.0,
        row.changed.0,
        row.started.map(|at| at.0),
        row.due.map(|at| at.0),
        row.iterations,
        row.iterations_max,
        row.attempt.0,
        row.tokens,
        row.micro_usd,
        row.flow,
        row.agent,
        row.draft,
        row.unblocks,
        row.landed.as_ref().map(Commit::as_str),
        row.ended,
        row.detail,
        now.asks,
        row.seq.0,
        row.events,
        row.compute_checksum(&mut scratch.text),
    ])?;
    if before.unblocks != row.unblocks {
        let by = if row.unblocks { -1 } else { 1 };
        conn.prepare_cached(
            "UPDATE task SET unmet = unmet + ?2, checksum = checksum + ?2
             WHERE id IN (SELECT task FROM need WHERE need = ?1)",
        )?
        .execute(params![row.id.0, by])?;
    }
    Ok(())
}

const INSERT: &str = "
INSERT INTO task (id, title, status, wait, phase, step, priority, size, tags, parent, created, changed, started, due,
    iterations, iterations_max, attempt, tokens, micro_usd, flow, agent, draft, unblocks, unmet, landed, ended,
    detail, asks, seq, events, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23,
    0, ?24, ?25, ?26, ?27, ?28, ?29, ?30)";

macro_rules! update {
    ($indexed:literal) => {
        concat!(
            "UPDATE task SET ",
            $indexed,
            "title = ?2, phase = ?5, step = ?6, size = ?8, tags = ?9, created = ?11, changed = ?12,
            started = ?13, due = ?14, iterations = ?15, iterations_max = ?16, attempt = ?17,
            tokens = ?18, micro_usd = ?19, flow = ?20, agent = ?21, draft = ?22, unblocks = ?23, landed = ?24,
            ended = ?25, detail = ?26, seq = ?28, events = ?29, checksum = ?30
            WHERE id = ?1"
        )
    };
}

/// With the columns that indexes hold.
const UPDATE_ALL: &str = update!("status = ?3, wait = ?4, priority = ?7, parent = ?10, asks = ?27, ");
/// Without them: SQLite rewrites an index entry even when it stays the same.
const UPDATE_PLAIN: &str = update!("");

/// Writes needs and tags anew, and counts the needs that are not met.
fn put_needs(conn: &Connection, row: &TaskRow, needs: &[TaskId]) -> rusqlite::Result<()> {
    let id = row.id.0;
    conn.prepare_cached("DELETE FROM need WHERE task = ?1")?.execute([id])?;
    let mut insert = conn.prepare_cached("INSERT INTO need (task, need) VALUES (?1, ?2)")?;
    for need in needs {
        insert.execute([id, need.0])?;
    }
    conn.prepare_cached("DELETE FROM tag WHERE task = ?1")?.execute([id])?;
    let mut insert = conn.prepare_cached("INSERT INTO tag (tag, task) VALUES (?1, ?2)")?;
    for tag in &row.tags {
        insert.execute(params![tag, id])?;
    }
    let unmet: i64 = conn
        .prepare_cached(
            "SELECT count(*) FROM need LEFT JOIN task ON task.id = need.need
             WHERE need.task = ?1 AND coalesce(task.unblocks, 0) = 0",
        )?
        .query_row([id], |row| row.get(0))?;
    let by = unmet - i64::from(row.unmet);
    if by != 0 {
        conn.prepare_cached("UPDATE task SET unmet = unmet + ?2, checksum = checksum + ?2 WHERE id = ?1")?
            .execute(params![id, by])?;
    }
    Ok(())
}

/// Keeps a flow apart, so that one task can be read without the journal before it.
pub(super) fn put_flow(conn: &Connection, path: &Path, seq: Seq, flow: &FlowText) -> Result<(), StoreError> {
    conn.prepare_cached("INSERT INTO flow (digest, seq, json) VALUES (?1, ?2, ?3)")
        .and_then(|mut it| it.execute(params![flow.digest, seq.0, flow.json]))
        .map(drop)
        .with_context("write a flow", path)
}

/// Writes down where the journal ends: without it, losing its last events would not show.
pub(super) fn put_head(conn: &Connection, path: &Path, head: JournalHead) -> Result<(), StoreError> {
    conn.prepare_cached("INSERT OR REPLACE INTO meta (key, value) VALUES ('head', ?1)")
        .and_then(|mut it| it.execute([format!("{}:{}", head.seq, head.hash)]))
        .map(drop)
        .with_context("write the head", path)
}

fn tags_json(tags: &[String]) -> String {
    serde_json::to_string(tags).expect("words are JSON")
}

//! Answers from the tables, on a connection that only reads. It works beside a writer and without one.
//!
//! Nothing is handed out unchecked: rows of events against the chain, rows of tasks against their checksum.

mod autopilot;
mod counts;
mod query;

pub use counts::LandedTaskFigures;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use landfall_model::{
    Commit, Digest, Event, Fact, JournalEntry, RunId, Task, TaskId, TaskStatus, Timestamp, Tree, apply,
};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, ToSql, params};

use crate::chain::{Hash, HashChain};
use crate::error::StoreResultExt;
use crate::fold::{BaseState, PassRow, RunRow, Tables, TaskRow, run_end_from};
use crate::format::{self, FlowCache, RawRow};
use crate::sqlite::sibling_path;
use crate::{JournalHead, ReplayReport, ReplayStop, Seq, StoreError, schema};

/// A connection that only reads.
pub struct StoreReader {
    conn: Connection,
    path: PathBuf,
    follows: bool,
    flows: RefCell<Option<FlowCache>>,
}

/// How many tasks there are, by status.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskCounts {
    /// By status; a ready task with unmet needs is not counted here.
    pub by: BTreeMap<TaskStatus, u64>,
    /// Ready tasks with unmet needs: they wait for a dependency.
    pub dependency: u64,
}

impl TaskCounts {
    /// How many there are of this status.
    #[must_use]
    pub fn count_of(&self, status: TaskStatus) -> u64 {
        self.by.get(&status).copied().unwrap_or(0)
    }

    /// How many there are in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by.values().sum::<u64>() + self.dependency
    }
}

/// Which tasks are wanted. Everything that is set must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskFilter {
    /// With this status, as lists show it: a ready task with unmet needs is `waiting`.
    pub status: Option<TaskStatus>,
    /// With this tag.
    pub tag: Option<String>,
    /// With this in the title; A to Z are the same as a to z.
    pub text: Option<String>,
    /// That are a part of this one.
    pub parent: Option<TaskId>,
}

/// Something only a person can answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxRow {
    /// The task that asks.
    pub task: TaskId,
    /// What it is about.
    pub title: String,
    /// `waiting` for a question, `review` for a review.
    pub status: TaskStatus,
    /// What is asked.
    pub asks: String,
    /// Since then.
    pub since: Timestamp,
}

const BUSY: Duration = Duration::from_secs(5); // a writer that recovers a log holds it for a moment
const TASK: &str = "read a task's row";

impl StoreReader {
    /// Opens the journal at `path` to read it.
    ///
    /// # Errors
    /// When there is none, or it is of another version.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let (conn, follows) = open_connection(path)?;
        Ok(Self { conn, path: path.to_owned(), follows, flows: RefCell::new(None) })
    }

    /// Whether it sees what is written after it was opened: not where the folder takes no files.
    #[must_use]
    pub fn follows(&self) -> bool {
        self.follows
    }

    /// Whether the next question sees what was written before it: no moment is held.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.conn.is_autocommit()
    }

    /// The id of the journal. None until a version that gives ids has opened it to write.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn journal_id(&self) -> Result<Option<String>, StoreError> {
        journal_id(&self.conn, &self.path)
    }

    /// The link of the chain at an event; none if the journal does not have it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn hash_at(&self, seq: Seq) -> Result<Option<Hash>, StoreError> {
        let hash: Option<Vec<u8>> = self
            .conn
            .query_row("SELECT hash FROM event WHERE seq = ?1", [seq.0], |row| row.get(0))
            .optional()
            .with_context("read the hash of an event", &self.path)?;
        Ok(hash.and_then(|hash| Hash::from_bytes(&hash)))
    }

    /// Where the journal ends.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn head(&self) -> Result<JournalHead, StoreError> {
        read_head(&self.conn, &self.path)
    }

    /// Hands out the events from `from` on, in order, each checked against the chain.
    ///
    /// # Errors
    /// When an event is damaged, cannot be read, or cannot follow.
    pub fn replay(
        &self,
        from: Seq,
        each: &mut dyn FnMut(Seq, JournalEntry) -> Result<(), ReplayStop>,
    ) -> Result<ReplayReport, StoreError> {
        self.steady(|| stream_entries(&self.conn, &self.path, from, each))
    }

    /// How many tasks there are, by status.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn counts(&self) -> Result<TaskCounts, StoreError> {
        self.steady(|| {
            let mut counts = TaskCounts { dependency: self.number(query::HELD)?, by: BTreeMap::new() };
            let rows: Vec<(String, u64)> =
                self.rows(query::COUNTS, &[], "count the tasks", |row| Ok((row.get(0)?, row.get(1)?)))?;
            for (word, many) in rows {
                counts.by.insert(status_from(&word)?, many);
            }
            if counts.dependency > 0
                && let Some(ready) = counts.by.get_mut(&TaskStatus::Ready)
            {
                *ready = ready.saturating_sub(counts.dependency);
            }
            Ok(counts)
        })
    }

    /// A page of tasks, by id.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn tasks(
        &self,
        filter: &TaskFilter,
        after: Option<TaskId>,
        limit: u32,
    ) -> Result<Vec<TaskRow>, StoreError> {
        let after = after.map_or(0, |task| task.0);
        let text = filter.text.as_ref().map(|text| format!("%{}%", escape_like(text)));
        let parent = filter.parent.map(|parent| parent.0);
        let mut page = Vec::new();
        // A status that two kinds of row share is read as two pages in one order.
        for status in query::status_conditions(filter.status) {
            let sql = query::task_page_sql(filter, *status);
            let mut statement = self.conn.prepare_cached(&sql).with_context(TASK, &self.path)?;
            let word = filter.status.map(TaskStatus::wire_name);
            let named: [(&str, &dyn ToSql); 6] = [
                (":after", &after),
                (":limit", &limit),
                (":status", &word),
                (":tag", &filter.tag),
                (":text", &text),
                (":parent", &parent),
            ];
            for (name, value) in named {
                if let Some(at) = statement.parameter_index(name).with_context(TASK, &self.path)? {
                    statement.raw_bind_parameter(at, value).with_context(TASK, &self.path)?;
                }
            }
            let mut rows = statement.raw_query();
            while let Some(row) = rows.next().with_context(TASK, &self.path)? {
                page.push(task_row(row, &self.path)?);
            }
        }
        page.sort_by_key(|row| row.id);
        page.truncate(limit as usize);
        Ok(page)
    }

    /// The tasks that wait by their own facts, by id: for a person, an account, a moment.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn waiting(&self, limit: u32) -> Result<Vec<TaskRow>, StoreError> {
        self.task_rows(&query::waiting_tasks_sql(), &[&limit])
    }

    /// The ready tasks whose needs have not landed, by id.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn held(&self, limit: u32) -> Result<Vec<TaskRow>, StoreError> {
        self.task_rows(&query::held_tasks_sql(), &[&limit])
    }

    /// The tasks that could start, most urgent first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn next(&self, limit: u32) -> Result<Vec<TaskRow>, StoreError> {
        self.task_rows(&query::next(), &[&limit])
    }

    /// The row of one task.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn row(&self, task: TaskId) -> Result<Option<TaskRow>, StoreError> {
        Ok(self.task_rows(&query::task_row_sql(), &[&task.0])?.pop())
    }

    /// One task, folded from its own events.
    ///
    /// # Errors
    /// When an event is damaged, missing, or cannot follow.
    pub fn task(&self, task: TaskId) -> Result<Option<Task>, StoreError> {
        self.steady(|| self.read_task(task))
    }

    /// One task as it was when something of it last landed; none if nothing did.
    ///
    /// # Errors
    /// When an event is damaged, missing, or cannot follow.
    pub fn task_as_landed(&self, task: TaskId) -> Result<Option<Task>, StoreError> {
        self.steady(|| self.folded(task).map(|(_, landed)| landed))
    }

    /// The needs of a task that do not unblock it yet.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn unmet(&self, task: TaskId) -> Result<Vec<TaskId>, StoreError> {
        self.ids(query::UNMET, task)
    }

    /// The tasks that need this one.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn dependents(&self, task: TaskId) -> Result<Vec<TaskId>, StoreError> {
        self.ids(query::DEPENDENTS, task)
    }

    /// What each of these tasks needs.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn needs_graph(&self, tasks: &[TaskId]) -> Result<BTreeMap<TaskId, Vec<TaskId>>, StoreError> {
        let mut graph: BTreeMap<TaskId, Vec<TaskId>> = tasks.iter().map(|task| (*task, Vec::new())).collect();
        let list: Vec<u32> = tasks.iter().map(|task| task.0).collect();
        let list = serde_json::to_string(&list).expect("numbers are JSON");
        let pair = |row: &Row<'_>| Ok((TaskId(row.get(0)?), TaskId(row.get(1)?)));
        for (task, need) in self.rows(query::NEEDS, &[&list], "read needs", pair)? {
            graph.entry(task).or_default().push(need);
        }
        Ok(graph)
    }

    /// A page of events after `after`: of one task, or all.
    ///
    /// # Errors
    /// When one is damaged or cannot be read.
    pub fn events(
        &self,
        after: Seq,
        task: Option<TaskId>,
        limit: u32,
    ) -> Result<Vec<(Seq, JournalEntry)>, StoreError> {
        match task {
            Some(task) => self.entries(query::EVENTS_AFTER_OF, &[&after.0, &limit, &task.0]),
            None => self.entries(query::EVENTS_AFTER, &[&after.0, &limit]),
        }
    }

    /// The last `n` events, oldest first.
    ///
    /// # Errors
    /// When one is damaged or cannot be read.
    pub fn tail(&self, n: u32) -> Result<Vec<(Seq, JournalEntry)>, StoreError> {
        let mut entries = self.entries(query::TAIL, &[&n])?;
        entries.reverse();
        Ok(entries)
    }

    /// The last runs, newest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn runs(&self, limit: u32) -> Result<Vec<RunRow>, StoreError> {
        read_runs(&self.conn, query::RUNS, limit, &self.path)
    }

    /// What waits for a person.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn inbox(&self) -> Result<Vec<InboxRow>, StoreError> {
        let rows = self.task_rows(&query::inbox_sql(), &[])?;
        Ok(rows
            .into_iter()
            .filter_map(|row| {
                let TaskRow { id, title, status, asks, changed, .. } = row;
                Some(InboxRow { task: id, title, status, asks: asks?, since: changed })
            })
            .collect())
    }

    /// Where the base branch stands.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn base(&self) -> Result<BaseState, StoreError> {
        read_base(&self.conn, &self.path)
    }

    /// The green verification of this tree by this section on this machine.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn pass(
        &self,
        tree: &Tree,
        config: &Digest,
        environment: &Digest,
    ) -> Result<Option<PassRow>, StoreError> {
        let key: [&dyn ToSql; 3] = [&tree.as_str(), &config.as_str(), &environment.as_str()];
        Ok(self.rows(query::PASS, &key, "read a pass", pass_row)?.pop())
    }

    /// The greatest task number there is.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn max_task_id(&self) -> Result<Option<TaskId>, StoreError> {
        self.conn
            .query_row("SELECT max(id) FROM task", [], |row| row.get::<_, Option<u32>>(0))
            .map(|id| id.map(TaskId))
            .with_context(TASK, &self.path)
    }

    /// All tables at once.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn tables(&self) -> Result<Tables, StoreError> {
        self.steady(|| read_tables(&self.conn, &self.path))
    }

    /// Lets all questions that are asked meanwhile see the same moment, and says which one it is.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn with_snapshot<T>(&self, read: impl FnOnce(JournalHead) -> T) -> Result<T, StoreError> {
        self.steady(|| self.head().map(read))
    }

    /// Lets several questions see the same moment.
    fn steady<T>(&self, read: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        if !self.conn.is_autocommit() {
            return read(); // of those that already do
        }
        // Prepared once: these are on the way of every question.
        let say = |sql: &str| self.conn.prepare_cached(sql).and_then(|mut it| it.execute([]));
        say("BEGIN").with_context("begin to read", &self.path)?;
        let over = ReadTransactionGuard(&self.conn);
        let read = read();
        drop(over);
        read
    }

    fn read_task(&self, task: TaskId) -> Result<Option<Task>, StoreError> {
        self.folded(task).map(|(now, _)| now)
    }

    /// A task as it is, and as it was when something of it last landed.
    fn folded(&self, task: TaskId) -> Result<(Option<Task>, Option<Task>), StoreError> {
        let entries = self.entries(query::TASK_EVENTS, &[&task.0])?;
        let counted: Option<u64> = self
            .conn
            .prepare_cached(query::EVENTS_OF)
            .and_then(|mut it| it.query_row([task.0], |row| row.get(0)).optional())
            .with_context(TASK, &self.path)?;
        if counted.unwrap_or(0) != entries.len() as u64 {
            let what = format!("{task} has {} of its {} events", entries.len(), counted.unwrap_or(0));
            return Err(StoreError::corrupt_at(None, what));
        }
        let (mut folded, mut landed) = (None, None);
        for (seq, entry) in entries {
            if let Fact::Task(_, event) = &entry.fact {
                let next = apply(folded.take(), task, entry.at, event);
                folded = Some(next.map_err(|source| StoreError::Illegal { seq, source: source.into() })?);
                if matches!(event, Event::Landed { .. }) {
                    landed.clone_from(&folded);
                }
            }
        }
        Ok((folded, landed))
    }

    fn number(&self, sql: &str) -> Result<u64, StoreError> {
        self.conn
            .prepare_cached(sql)
            .and_then(|mut it| it.query_row([], |row| row.get(0)))
            .with_context(TASK, &self.path)
    }

    fn ids(&self, sql: &str, task: TaskId) -> Result<Vec<TaskId>, StoreError> {
        self.rows(sql, &[&task.0], "read needs", |row| row.get(0).map(TaskId))
    }

    fn rows<T>(
        &self,
        sql: &str,
        params: &[&dyn ToSql],
        doing: &'static str,
        make: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = self.conn.prepare_cached(sql).with_context(doing, &self.path)?;
        let rows = statement.query_map(params, make).with_context(doing, &self.path)?;
        rows.collect::<Result<_, _>>().with_context(doing, &self.path)
    }

    fn task_rows(&self, sql: &str, params: &[&dyn ToSql]) -> Result<Vec<TaskRow>, StoreError> {
        let mut statement = self.conn.prepare_cached(sql).with_context(TASK, &self.path)?;
        let mut rows = statement.query(params).with_context(TASK, &self.path)?;
        let mut made = Vec::new();
        while let Some(row) = rows.next().with_context(TASK, &self.path)? {
            made.push(task_row(row, &self.path)?);
        }
        Ok(made)
    }

    fn entries(&self, sql: &str, params: &[&dyn ToSql]) -> Result<Vec<(Seq, JournalEntry)>, StoreError> {
        let mut entries = Vec::new();
        self.each_entry(sql, params, |seq, entry| {
            entries.push((seq, entry));
            Ok(())
        })?;
        Ok(entries)
    }

    /// Reads events one by one, each with the hash before it, so that each can be checked without the others.
    fn each_entry(
        &self,
        sql: &str,
        params: &[&dyn ToSql],
        mut take: impl FnMut(Seq, JournalEntry) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let doing = "read events";
        let path = &self.path;
        let mut chain = HashChain::default();
        let mut statement = self.conn.prepare_cached(sql).with_context(doing, path)?;
        let mut rows = statement.query(params).with_context(doing, path)?;
        while let Some(row) = rows.next().with_context(doing, path)? {
            let (raw, hash) = event_row(row).with_context(doing, path)?;
            let before = row.get_ref(6).and_then(|it| Ok(it.as_blob_or_null()?)).with_context(doing, path)?;
            let before = match before {
                None if raw.seq == Seq::FIRST => Some(Hash::NONE),
                None => None,
                Some(bytes) => Hash::from_bytes(bytes),
            };
            if before.map(|before| chain.link_row(&before, raw)) != hash {
                return Err(StoreError::corrupt_at(raw.seq, "its hash is not that of its content"));
            }
            if raw.kind == "bound" {
                let mut flows = self.flows.borrow_mut();
                let known = match flows.as_mut() {
                    Some(known) => known,
                    None => flows.insert(self.read_flows()?),
                };
                take(raw.seq, self.decode_bound(raw, known)?)?;
            } else {
                take(raw.seq, format::decode_entry(raw, &mut FlowCache::default())?)?;
            }
        }
        Ok(())
    }

    /// A flow may have been added since the flows were read.
    fn decode_bound(&self, raw: RawRow<'_>, flows: &mut FlowCache) -> Result<JournalEntry, StoreError> {
        match format::decode_entry(raw, flows) {
            Err(error) if matches!(error.what, format::FormatErrorKind::UnknownFlow(_)) => {
                *flows = self.read_flows()?;
                Ok(format::decode_entry(raw, flows)?)
            }
            decoded => Ok(decoded?),
        }
    }

    fn read_flows(&self) -> Result<FlowCache, StoreError> {
        read_flows(&self.conn, &self.path)
    }
}

/// Ends a look at one moment, however it went: the connection is used again.
struct ReadTransactionGuard<'a>(&'a Connection);

impl Drop for ReadTransactionGuard<'_> {
    fn drop(&mut self) {
        // Nothing was written. One that cannot even be left is not free: it is not to be used again.
        let _ = self.0.prepare_cached("ROLLBACK").and_then(|mut it| it.execute([]));
    }
}

/// Opens a connection that only reads.
/// A connection, and whether it sees what is written from now on.
fn open_connection(path: &Path) -> Result<(Connection, bool), StoreError> {
    if let Err(error) = std::fs::metadata(path) {
        return Err(StoreError::from_io("look at", path, error));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).with_context("open the journal", path)?;
    let (conn, found, follows) = match schema::read_schema_version(&conn, path) {
        Ok(found) => {
            conn.busy_timeout(BUSY).with_context("set the patience", path)?;
            (conn, found, true)
        }
        Err(error) if is_locked_folder(&error) && !has_log(path) => {
            // A folder that takes no files, and nobody writes: SQLite may be told that the file will not change.
            let conn = Connection::open_with_flags(immutable_uri(path), flags | OpenFlags::SQLITE_OPEN_URI)
                .with_context("open the journal", path)?;
            let found = schema::read_schema_version(&conn, path)?;
            (conn, found, false)
        }
        Err(other) => return Err(other),
    };
    match found {
        schema::NEWEST => {}
        0 => return Err(StoreError::Missing { path: path.to_owned() }),
        found => return Err(StoreError::Older { path: path.to_owned(), found, known: schema::NEWEST }),
    }
    conn.set_prepared_statement_cache_capacity(128); // more than the questions there are
    Ok((conn, follows))
}

/// SQLite could not make the files that it keeps beside a database with a log.
fn is_locked_folder(error: &StoreError) -> bool {
    match error {
        StoreError::ReadOnly { .. } => true,
        StoreError::Sql { source, .. } => source.sqlite_error_code() == Some(ErrorCode::CannotOpen),
        _ => false,
    }
}

fn has_log(path: &Path) -> bool {
    std::fs::metadata(sibling_path(path, "-wal")).is_ok_and(|wal| wal.len() > 0)
}

/// The address of a file that does not change.
fn immutable_uri(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut address = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                address.push(char::from(*byte))
            }
            other => address.push_str(&format!("%{other:02x}")),
        }
    }
    address + "?immutable=1"
}

/// Where the journal ends. What the last row says must be what was written down apart from it.
pub(crate) fn read_head(conn: &Connection, path: &Path) -> Result<JournalHead, StoreError> {
    let doing = "read the head";
    let (said, seq, hash): (Option<String>, Option<u64>, Option<Vec<u8>>) = conn
        .prepare_cached(query::HEAD)
        .and_then(|mut it| it.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))))
        .with_context(doing, path)?;
    let head = match (seq, hash) {
        (Some(seq), Some(hash)) => {
            let hash = Hash::from_bytes(&hash);
            JournalHead {
                seq: Seq(seq),
                hash: hash.ok_or_else(|| StoreError::corrupt_at(Seq(seq), "it has no hash"))?,
            }
        }
        (_, _) => JournalHead::EMPTY,
    };
    check_head(head, said)?;
    Ok(head)
}

fn check_head(head: JournalHead, said: Option<String>) -> Result<(), StoreError> {
    let seen = (head.seq > Seq::ZERO).then(|| format!("{}:{}", head.seq, head.hash));
    if said != seen {
        let word = |end: Option<String>| end.unwrap_or_else(|| "nothing".to_owned());
        let what = format!("it ends with {} and should end with {}", word(seen), word(said));
        return Err(StoreError::corrupt_at(head.seq, what));
    }
    Ok(())
}

/// Streams events and checks them: dense, chained, and ending where the head says.
pub(crate) fn stream_entries(
    conn: &Connection,
    path: &Path,
    from: Seq,
    each: &mut dyn FnMut(Seq, JournalEntry) -> Result<(), ReplayStop>,
) -> Result<ReplayReport, StoreError> {
    let doing = "replay";
    let from = from.max(Seq::FIRST);
    let mut at = JournalHead::EMPTY;
    let mut flows = FlowCache::default();
    if from > Seq::FIRST {
        let whole = read_head(conn, path)?;
        if from > whole.seq {
            return Ok(ReplayReport { events: 0, to: whole });
        }
        let seq = Seq(from.0 - 1);
        let hash: Option<Vec<u8>> = conn
            .query_row("SELECT hash FROM event WHERE seq = ?1", [seq.0], |row| row.get(0))
            .optional()
            .with_context(doing, path)?;
        let hash = hash.and_then(|hash| Hash::from_bytes(&hash));
        at = JournalHead { seq, hash: hash.ok_or_else(|| StoreError::corrupt_at(seq, "it is not there"))? };
        flows = read_flows(conn, path)?;
    }
    let mut chain = HashChain::default();
    let mut events = 0;
    let mut statement = conn.prepare_cached(query::ALL_EVENTS).with_context(doing, path)?;
    let mut rows = statement.query(params![from.0]).with_context(doing, path)?;
    while let Some(row) = rows.next().with_context(doing, path)? {
        let (raw, hash) = event_row(row).with_context(doing, path)?;
        let seq = at.seq.next();
        if raw.seq != seq {
            return Err(StoreError::corrupt_at(seq, format!("it is not there; {} follows", raw.seq)));
        }
        let link = chain.link_row(&at.hash, raw);
        if hash != Some(link) {
            return Err(StoreError::corrupt_at(seq, "its hash is not that of its content"));
        }
        at = JournalHead { seq, hash: link };
        events += 1;
        match each(seq, format::decode_entry(raw, &mut flows)?) {
            Ok(()) => {}
            Err(ReplayStop::Enough) => return Ok(ReplayReport { events, to: at }),
            Err(ReplayStop::Illegal(source)) => return Err(StoreError::Illegal { seq, source }),
        }
    }
    let said = conn
        .prepare_cached("SELECT value FROM meta WHERE key = 'head'")
        .and_then(|mut it| it.query_row([], |row| row.get(0)).optional())
        .with_context(doing, path)?;
    check_head(at, said)?;
    Ok(ReplayReport { events, to: at })
}

/// The id of the journal, if it has one.
pub(crate) fn journal_id(conn: &Connection, path: &Path) -> Result<Option<String>, StoreError> {
    conn.query_row("SELECT value FROM meta WHERE key = 'journal_id'", [], |row| row.get(0))
        .optional()
        .with_context("read the id of the journal", path)
}

/// The columns are `seq, at_ms, task, kind, body, hash`.
fn event_row<'a>(row: &'a Row<'_>) -> rusqlite::Result<(RawRow<'a>, Option<Hash>)> {
    let raw = RawRow {
        seq: Seq(row.get(0)?),
        at_ms: row.get(1)?,
        task: row.get(2)?,
        kind: row.get_ref(3)?.as_str()?,
        body: row.get_ref(4)?.as_str()?,
    };
    Ok((raw, Hash::from_bytes(row.get_ref(5)?.as_blob()?)))
}

fn task_row(row: &Row<'_>, path: &Path) -> Result<TaskRow, StoreError> {
    let (made, checksum) = read_task_row(row).with_context(TASK, path)??;
    if made.compute_checksum(&mut String::with_capacity(512)) != checksum {
        return Err(StoreError::corrupt_at(None, format!("the row of {} is not what was written", made.id)));
    }
    Ok(made)
}

/// The columns are those of [`query::TASK_COLUMNS`].
fn read_task_row(row: &Row<'_>) -> rusqlite::Result<Result<(TaskRow, i64), StoreError>> {
    let id: u32 = row.get(0)?;
    let status = match status_from(row.get_ref(2)?.as_str()?) {
        Ok(status) => status,
        Err(error) => return Ok(Err(error)),
    };
    let wrong = |what: &str| StoreError::corrupt_at(None, format!("{what} of T{id} cannot be read"));
    let size = match row.get_ref(7)?.as_str_or_null()?.map(str::parse).transpose() {
        Ok(size) => size,
        Err(_) => return Ok(Err(wrong("the size"))),
    };
    let Ok(tags) = serde_json::from_str(row.get_ref(8)?.as_str()?) else { return Ok(Err(wrong("a tag"))) };
    let made = TaskRow {
        id: TaskId(id),
        title: row.get(1)?,
        status,
        wait: row.get(3)?,
        phase: row.get(4)?,
        step: row.get(5)?,
        priority: row.get(6)?,
        size,
        tags,
        parent: row.get::<_, Option<u32>>(9)?.map(TaskId),
        created: Timestamp(row.get(10)?),
        changed: Timestamp(row.get(11)?),
        started: row.get::<_, Option<i64>>(12)?.map(Timestamp),
        due: row.get::<_, Option<i64>>(13)?.map(Timestamp),
        iterations: row.get(14)?,
        iterations_max: row.get(15)?,
        attempt: landfall_model::Attempt(row.get(16)?),
        tokens: row.get(17)?,
        micro_usd: row.get(18)?,
        flow: row.get(19)?,
        agent: row.get(20)?,
        draft: row.get(21)?,
        unblocks: row.get(22)?,
        unmet: row.get(23)?,
        landed: row.get_ref(24)?.as_str_or_null()?.map(Commit::new),
        ended: row.get(25)?,
        detail: row.get(26)?,
        asks: row.get(27)?,
        seq: Seq(row.get(28)?),
        events: row.get(29)?,
    };
    Ok(Ok((made, row.get(30)?)))
}

fn status_from(word: &str) -> Result<TaskStatus, StoreError> {
    let known = TaskStatus::ALL.into_iter().find(|status| status.wire_name() == word);
    known.ok_or_else(|| StoreError::corrupt_at(None, format!("`{word}` is not a status")))
}

fn pass_row(row: &Row<'_>) -> rusqlite::Result<PassRow> {
    Ok(PassRow {
        tree: Tree::new(row.get_ref(0)?.as_str()?),
        config: Digest::new(row.get_ref(1)?.as_str()?),
        environment: Digest::new(row.get_ref(2)?.as_str()?),
        seq: Seq(row.get(3)?),
        task: row.get::<_, Option<u32>>(4)?.map(TaskId),
    })
}

fn read_runs(conn: &Connection, sql: &str, limit: u32, path: &Path) -> Result<Vec<RunRow>, StoreError> {
    let doing = "read runs";
    let mut statement = conn.prepare_cached(sql).with_context(doing, path)?;
    let mut rows = statement.query([limit]).with_context(doing, path)?;
    let mut runs = Vec::new();
    while let Some(row) = rows.next().with_context(doing, path)? {
        let read = |row: &Row<'_>| -> rusqlite::Result<_> {
            let run = RunRow {
                id: RunId(row.get(0)?),
                started: Timestamp(row.get(1)?),
                ended: row.get::<_, Option<i64>>(2)?.map(Timestamp),
                why: None,
                slots: row.get(4)?,
            };
            Ok((run, row.get::<_, Option<String>>(3)?))
        };
        let (mut run, word) = read(row).with_context(doing, path)?;
        if let Some(word) = word {
            let why = run_end_from(&word);
            run.why = Some(why.ok_or_else(|| StoreError::corrupt_at(None, format!("`{word}` ends no run")))?);
        }
        runs.push(run);
    }
    Ok(runs)
}

fn read_base(conn: &Connection, path: &Path) -> Result<BaseState, StoreError> {
    let commit = |text: Option<String>| text.map(|text| Commit::new(&text));
    conn.prepare_cached("SELECT at_commit, published, held FROM base")
        .and_then(|mut it| {
            it.query_row([], |row| {
                Ok(BaseState {
                    commit: commit(row.get(0)?),
                    published: commit(row.get(1)?),
                    held: row.get(2)?,
                })
            })
        })
        .with_context("read the base", path)
}

pub(crate) fn read_tables(conn: &Connection, path: &Path) -> Result<Tables, StoreError> {
    let doing = "read the tables";
    let mut tasks = Vec::new();
    let mut statement = conn.prepare(&query::all_tasks_sql()).with_context(doing, path)?;
    let mut rows = statement.query([]).with_context(doing, path)?;
    while let Some(row) = rows.next().with_context(doing, path)? {
        tasks.push(task_row(row, path)?);
    }
    let mut statement =
        conn.prepare("SELECT task, need FROM need ORDER BY task, need").with_context(doing, path)?;
    let needs = statement
        .query_map([], |row| Ok((TaskId(row.get(0)?), TaskId(row.get(1)?))))
        .and_then(Iterator::collect)
        .with_context(doing, path)?;
    let mut statement = conn
        .prepare("SELECT tree, config, environment, seq, task FROM pass ORDER BY 1, 2, 3")
        .with_context(doing, path)?;
    let passes = statement.query_map([], pass_row).and_then(Iterator::collect).with_context(doing, path)?;
    let runs = read_runs(conn, query::ALL_RUNS, u32::MAX, path)?;
    let (counts, work) = counts::read_all_counts(conn, path)?;
    Ok(Tables { tasks, needs, runs, passes, base: read_base(conn, path)?, counts, work })
}

pub(crate) fn flow_digests(conn: &Connection, path: &Path) -> Result<HashSet<String>, StoreError> {
    let doing = "read the flows";
    let mut statement = conn.prepare("SELECT digest FROM flow").with_context(doing, path)?;
    statement.query_map([], |row| row.get(0)).and_then(Iterator::collect).with_context(doing, path)
}

fn read_flows(conn: &Connection, path: &Path) -> Result<FlowCache, StoreError> {
    let doing = "read the flows";
    let mut statement = conn.prepare("SELECT digest, json FROM flow").with_context(doing, path)?;
    let mut rows = statement.query([]).with_context(doing, path)?;
    let mut flows = FlowCache::default();
    while let Some(row) = rows.next().with_context(doing, path)? {
        let (digest, json): (String, String) =
            row.get(0).and_then(|digest| Ok((digest, row.get(1)?))).with_context(doing, path)?;
        let wrong = |what: String| StoreError::corrupt_at(None, format!("the flow {digest}: {what}"));
        if blake3::hash(json.as_bytes()).to_hex().as_str() != digest {
            return Err(wrong("its content is not what it is named for".to_owned()));
        }
        let flow = format::flow_from_text(&json).map_err(wrong)?;
        flows.insert(digest, Arc::new(flow));
    }
    Ok(flows)
}

fn escape_like(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

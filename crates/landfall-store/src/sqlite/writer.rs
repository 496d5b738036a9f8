//! The thread that writes. It takes all that wait into one transaction and acknowledges each after the commit.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, params};

use super::tables::{self, RowBuffers};
use super::{rebuild, sibling_path};
use crate::chain::HashChain;
use crate::error::StoreResultExt;
use crate::fold::TableChange;
use crate::format::{EncodedRow, RawRow};
use crate::{AppendReceipt, JournalEnd, JournalHead, Seq, StoreError, reader};

const GROUP_MAX: usize = 256; // batches in one transaction: past this the commit's cost is spread thin already
const GROUP_EVENTS_MAX: usize = 4096; // so that a few huge batches do not make everyone wait
const IDLE: Duration = Duration::from_millis(200); // then the log is emptied
const WAL_PAGES_SOON: i64 = 2_000; // 8 MiB: emptied as far as readers let us
const WAL_PAGES_MUCH: i64 = 8_000; // 32 MiB: readers are waited for, a little
const WAL_LOOK_EVERY: u32 = 32; // commits between two looks at the log's length
const PUSH_EVERY: Duration = Duration::from_secs(5); // between two waits for readers
const PUSH_PATIENCE: Duration = Duration::from_millis(250);

/// What the writer can be asked.
pub(super) enum WriterCommand {
    Append(AppendRequest),
    Rebuild(SyncSender<Result<(), StoreError>>),
}

/// A batch, written out.
pub(super) struct AppendRequest {
    pub events: Vec<EncodedRow>,
    pub changes: Vec<TableChange>,
    pub answer: SyncSender<Result<AppendReceipt, StoreError>>,
}

/// The owner of the connection that writes.
pub(super) struct Writer {
    conn: Connection,
    path: PathBuf,
    head: JournalHead,
    /// The same head, for those who ask.
    shown: Arc<JournalEnd>,
    flows: HashSet<String>,
    files: JournalFiles,
    on_fatal: fn(&StoreError) -> !,
    chain: HashChain,
    scratch: RowBuffers,
    /// Once set, nothing is written any more.
    refused: Option<StoreError>,
    log: WalState,
}

/// What is known of the log.
struct WalState {
    dirty: bool,
    commits: u32,
    pushed: Option<Instant>,
}

impl Writer {
    pub fn new(
        conn: Connection,
        path: &Path,
        head: JournalHead,
        shown: Arc<JournalEnd>,
        on_fatal: fn(&StoreError) -> !,
    ) -> Result<Self, StoreError> {
        let flows = reader::flow_digests(&conn, path)?;
        let files = JournalFiles::read_identities(path)
            .map_err(|error| StoreError::from_io("look at", path, error))?;
        let log = WalState { dirty: false, commits: 0, pushed: None };
        Ok(Self {
            conn,
            path: path.to_owned(),
            head,
            shown,
            flows,
            files,
            on_fatal,
            chain: HashChain::default(),
            scratch: RowBuffers::default(),
            refused: None,
            log,
        })
    }

    pub fn run(mut self, orders: &Receiver<WriterCommand>) {
        let mut group = Vec::with_capacity(GROUP_MAX);
        loop {
            let order = if self.log.dirty {
                match orders.recv_timeout(IDLE) {
                    Ok(order) => order,
                    Err(RecvTimeoutError::Timeout) => {
                        self.checkpoint("TRUNCATE");
                        self.log.dirty = false; // tried; a reader in the way is met again after the next write
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            } else {
                match orders.recv() {
                    Ok(order) => order,
                    Err(_) => break,
                }
            };
            let mut events = 0;
            let mut next = Some(order);
            let mut rebuild = None;
            while let Some(order) = next.take() {
                match order {
                    WriterCommand::Append(request) => {
                        events += request.events.len();
                        group.push(request);
                    }
                    WriterCommand::Rebuild(answer) => {
                        rebuild = Some(answer);
                        break;
                    }
                }
                if group.len() < GROUP_MAX && events < GROUP_EVENTS_MAX {
                    next = orders.try_recv().ok();
                }
            }
            self.append(&mut group);
            if let Some(answer) = rebuild {
                let done = self.rebuild();
                let _ = answer.send(done); // whoever asked may have left
            }
            self.checkpoint_log();
        }
        // SQLite empties and removes the log when the last connection goes. One that only reads cannot, and a log
        // that is left looks like a crash to whoever opens next, so it is emptied before.
        if self.log.dirty && self.conn.busy_timeout(PUSH_PATIENCE).is_ok() {
            self.checkpoint("TRUNCATE");
        }
    }

    /// Writes a group, and answers each.
    fn append(&mut self, group: &mut Vec<AppendRequest>) {
        if group.is_empty() {
            return;
        }
        match self.commit(group) {
            Ok(lasts) => {
                for (request, last) in group.drain(..).zip(lasts) {
                    let _ = request.answer.send(Ok(AppendReceipt { last })); // whoever asked may have left
                }
            }
            Err(StoreError::Full) if group.len() > 1 => {
                // One large batch must not take the small ones down with it.
                for request in std::mem::take(group) {
                    self.append(&mut vec![request]);
                }
            }
            Err(error) => {
                for request in group.drain(..) {
                    let _ = request.answer.send(Err(error.clone())); // whoever asked may have left
                }
            }
        }
    }

    /// Writes a group in one transaction: all of it is durable when this returns, or nothing is written.
    fn commit(&mut self, group: &[AppendRequest]) -> Result<Vec<Seq>, StoreError> {
        if let Some(error) = &self.refused {
            return Err(error.clone());
        }
        let mut fresh = Vec::new();
        let written = self.transaction(group, &mut fresh);
        let (lasts, head) = match written {
            Ok(written) => written,
            Err(error) => {
                if error.is_fatal() {
                    (self.on_fatal)(&error);
                }
                if !self.conn.is_autocommit()
                    && let Err(failed) =
                        self.conn.execute_batch("ROLLBACK").with_context("roll back", &self.path)
                {
                    self.refused = Some(failed);
                }
                for digest in fresh {
                    self.flows.remove(&digest);
                }
                match error {
                    StoreError::Corrupt { .. } | StoreError::TwoWriters { .. } => {
                        self.refused = Some(error.clone());
                    }
                    _ => {}
                }
                return Err(error);
            }
        };
        self.log.dirty = true;
        // What went into a file that nobody can find again is not durable.
        if !self.files.still_exist(&self.path) {
            let error = StoreError::Replaced { path: self.path.clone() };
            self.refused = Some(error.clone());
            return Err(error);
        }
        self.head = head;
        self.shown.advance_head(head);
        Ok(lasts)
    }

    fn transaction(
        &mut self,
        group: &[AppendRequest],
        fresh: &mut Vec<String>,
    ) -> Result<(Vec<Seq>, JournalHead), StoreError> {
        let Self { conn, path, flows, chain, scratch, .. } = self;
        let mut head = self.head;
        conn.prepare_cached("BEGIN IMMEDIATE")
            .and_then(|mut it| it.execute([]))
            .with_context("begin", path)?;
        let mut lasts = Vec::with_capacity(group.len());
        let mut insert = conn
            .prepare_cached(
                "INSERT INTO event (seq, at_ms, task, kind, body, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )
            .with_context("prepare to append", path)?;
        for request in group {
            let first = head.seq.next();
            for event in &request.events {
                let seq = head.seq.next();
                let long;
                let mut body = event.short.as_str();
                if let Some(flow) = &event.flow
                    && flows.insert(flow.digest.clone())
                {
                    fresh.push(flow.digest.clone());
                    tables::put_flow(conn, path, seq, flow)?;
                    long = event.body_with_flow(flow);
                    body = &long;
                }
                let raw = RawRow { seq, at_ms: event.at_ms, task: event.task, kind: event.kind, body };
                let hash = chain.link_row(&head.hash, raw);
                let done =
                    insert.execute(params![seq.0, raw.at_ms, raw.task, raw.kind, raw.body, hash.as_bytes()]);
                if let Err(error) = &done
                    && error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
                {
                    return Err(StoreError::TwoWriters { seq });
                }
                done.with_context("append an event", path)?;
                head = JournalHead { seq, hash };
            }
            for change in &request.changes {
                tables::apply_table_change(conn, path, scratch, first, change)?;
            }
            lasts.push(head.seq);
        }
        drop(insert);
        tables::put_head(conn, path, head)?;
        conn.prepare_cached("COMMIT").and_then(|mut it| it.execute([])).with_context("commit", path)?;
        Ok((lasts, head))
    }

    fn rebuild(&mut self) -> Result<(), StoreError> {
        if let Some(error) = &self.refused {
            return Err(error.clone());
        }
        let done = rebuild::rebuild_tables(&mut self.conn, &self.path);
        if let Err(error) = &done
            && error.is_fatal()
        {
            (self.on_fatal)(error);
        }
        self.log.dirty = true;
        done
    }

    /// Keeps the log short. Called after everyone got their answer.
    fn checkpoint_log(&mut self) {
        self.log.commits += 1;
        if self.log.commits < WAL_LOOK_EVERY {
            return;
        }
        self.log.commits = 0;
        let pages = self.checkpoint("NOOP");
        if pages >= WAL_PAGES_SOON {
            self.checkpoint("PASSIVE");
        }
        let pushed_lately = self.log.pushed.is_some_and(|at| at.elapsed() < PUSH_EVERY);
        if pages >= WAL_PAGES_MUCH && !pushed_lately {
            self.log.pushed = Some(Instant::now());
            let patience = |it: &Self, patience| {
                it.conn.busy_timeout(patience).with_context("set the patience", &it.path)
            };
            if patience(self, PUSH_PATIENCE).is_ok() {
                self.checkpoint("TRUNCATE");
                patience(self, Duration::from_secs(5)).expect("it could be set before");
            }
        }
    }

    /// Moves the log into the database, and says how many pages the log had.
    fn checkpoint(&mut self, how: &str) -> i64 {
        let sql = format!("PRAGMA wal_checkpoint({how})");
        let done = self
            .conn
            .query_row(&sql, [], |row| row.get::<_, i64>(1))
            .with_context("empty the log", &self.path);
        match done {
            Ok(pages) => pages,
            Err(error) if error.is_fatal() => (self.on_fatal)(&error),
            Err(StoreError::Busy | StoreError::Full) => 0, // the log stays; nothing is lost by that
            Err(error) => {
                self.refused = Some(error);
                0
            }
        }
    }
}

/// Which files are open, so that we see when the names lead somewhere else.
struct JournalFiles {
    main: (u64, u64),
    wal: Option<(u64, u64)>,
}

impl JournalFiles {
    fn read_identities(path: &Path) -> std::io::Result<Self> {
        Ok(Self { main: file_identity(path)?, wal: file_identity(&sibling_path(path, "-wal")).ok() })
    }

    fn still_exist(&mut self, path: &Path) -> bool {
        if !file_identity(path).is_ok_and(|now| now == self.main) {
            return false;
        }
        let Ok(now) = file_identity(&sibling_path(path, "-wal")) else { return false };
        // The log may have been made only by the first write.
        *self.wal.get_or_insert(now) == now
    }
}

fn file_identity(path: &Path) -> std::io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

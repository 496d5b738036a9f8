//! What was worked out before and cannot have changed: tasks and tables at an event, and how much two commits differ. It is
//! kept for as long as the process lives, so that a board that is asked for every second costs little.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use landfall_api::{AttemptLine, DiffStat, Problem};
use landfall_engine::host::git::{DiffOptions, Oid, Store};
use landfall_engine::model::{Commit, Task, TaskId, TaskStatus};
use landfall_engine::store::{JournalHead, Seq, StoreReader, TaskCounts, TaskFilter, TaskRow};

use crate::project::attempts;
use crate::project::place::ProjectLocation;
use crate::project::problems;
use crate::project::query_context::Query;

const TASKS_MAX: usize = 4_096; // a few boards full; beyond it everything is read again
const DIFFS_MAX: usize = 8_192;
const DIFFS_AT_ONCE: u32 = 8; // processes that one question may start; the rest is known next time

const AT_WORK_MAX: u32 = 1_000; // tasks at work that are looked at; a list has no more
const MOMENTS_MAX: usize = 8; // projects that one process answers for

/// Tasks with something under way, by id.
type ActiveTasks = Vec<(TaskRow, Arc<Task>)>;
type TaskKeyedCache<T> = BTreeMap<(PathBuf, TaskId), (Seq, Arc<T>)>;
type DiffStatCache = BTreeMap<(Commit, Commit), DiffStatResult>;

/// What came of counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiffStatResult {
    /// So much. None where it is too much to be counted: two commits never change.
    Known(Option<DiffStat>),
    /// Nothing, this time: a disk was full, or git was. It is tried again.
    Failed(Instant),
}

const AGAIN: Duration = Duration::from_secs(30); // a commit that is gone is not asked for with every look

impl DiffStatResult {
    /// What is known by now; none if it is to be counted.
    fn current_stat(self, now: Instant) -> Option<Option<DiffStat>> {
        match self {
            Self::Known(stat) => Some(stat),
            Self::Failed(at) if now.saturating_duration_since(at) < AGAIN => Some(None),
            Self::Failed(_) => None,
        }
    }
}

/// What is known, by project, task and commits.
#[derive(Default)]
struct TaskEntries {
    tasks: TaskKeyedCache<Task>,
    attempts: TaskKeyedCache<Vec<AttemptLine>>,
    moments: BTreeMap<PathBuf, Arc<TableSnapshot>>,
    diffs: DiffStatCache,
}

#[derive(Default)]
pub(crate) struct TaskCache(Mutex<TaskEntries>);

impl TaskCache {
    fn lock(&self) -> MutexGuard<'_, TaskEntries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task of a row, as it is at the row's last event.
pub(crate) fn cached_task(
    place: &ProjectLocation,
    reader: &StoreReader,
    row: &TaskRow,
) -> Result<Option<Arc<Task>>, Problem> {
    cached_at_event(
        |known| &mut known.tasks,
        place,
        row,
        || reader.task(row.id).map_err(|error| problems::from_store_error(&error)),
    )
}

/// The attempts at a task, as they are at the row's last event.
pub(crate) fn cached_attempts(
    place: &ProjectLocation,
    reader: &StoreReader,
    row: &TaskRow,
) -> Result<Arc<Vec<AttemptLine>>, Problem> {
    let known = cached_at_event(
        |known| &mut known.attempts,
        place,
        row,
        || {
            let events = reader
                .events(Seq::ZERO, Some(row.id), u32::MAX)
                .map_err(|error| problems::from_store_error(&error))?;
            Ok(Some(attempts::collect_attempts(events.iter().map(|(_, entry)| entry))))
        },
    );
    Ok(known?.unwrap_or_default())
}

/// What follows from the events of a task, as it is at the row's last one.
fn cached_at_event<T>(
    entries: impl Fn(&mut TaskEntries) -> &mut TaskKeyedCache<T>,
    place: &ProjectLocation,
    row: &TaskRow,
    read: impl FnOnce() -> Result<Option<T>, Problem>,
) -> Result<Option<Arc<T>>, Problem> {
    let key = (place.folder.journal_path(), row.id);
    if let Some((seq, known)) = entries(&mut place.caches.tasks.lock()).get(&key)
        && *seq == row.seq
    {
        return Ok(Some(known.clone()));
    }
    // Nobody else waits while it is read; who reads it at the same time reads the same.
    let Some(made) = read()? else { return Ok(None) };
    let made = Arc::new(made);
    let mut known = place.caches.tasks.lock();
    let all = entries(&mut known);
    if all.len() >= TASKS_MAX {
        all.clear();
    }
    all.insert(key, (row.seq, made.clone()));
    Ok(Some(made))
}

/// What the tables say at one event, for everybody who asks before the next. Each part is read once, when somebody wants it.
pub(crate) struct TableSnapshot {
    head: JournalHead,
    counts: LazyValue<TaskCounts>,
    at_work: LazyValue<ActiveTasks>,
    next: LazyValue<Vec<TaskRow>>,
    unaccepted: LazyValue<Vec<TaskId>>,
}

const NEXT: u32 = 128; // at the front of the line: as many as boards and lists of what waits show

/// The tables as they are now.
pub(crate) fn table_snapshot(
    place: &ProjectLocation,
    reader: &StoreReader,
) -> Result<Arc<TableSnapshot>, Problem> {
    // First the number, then the tables: what is written in between is read twice, and nothing is missed.
    let head = reader.head().map_err(|error| problems::from_store_error(&error))?;
    let path = place.folder.journal_path();
    let all = &mut place.caches.tasks.lock().moments;
    if let Some(moment) = all.get(&path).filter(|moment| moment.head == head) {
        return Ok(moment.clone());
    }
    if all.len() >= MOMENTS_MAX {
        all.clear();
    }
    let moment = Arc::new(TableSnapshot {
        head,
        counts: LazyValue::new(),
        at_work: LazyValue::new(),
        next: LazyValue::new(),
        unaccepted: LazyValue::new(),
    });
    all.insert(path, moment.clone());
    Ok(moment)
}

impl TableSnapshot {
    /// The event.
    pub fn seq(&self) -> Seq {
        self.head.seq
    }

    /// How many tasks there are, by status.
    pub fn task_counts(&self, reader: &StoreReader) -> Result<Arc<TaskCounts>, Problem> {
        self.counts.get(|| reader.counts().map_err(|error| problems::from_store_error(&error)))
    }

    /// The tasks with something under way, by id.
    pub fn active_tasks(
        &self,
        place: &ProjectLocation,
        reader: &StoreReader,
    ) -> Result<Arc<ActiveTasks>, Problem> {
        self.at_work.get(|| {
            let busy = TaskFilter { status: Some(TaskStatus::Active), ..TaskFilter::default() };
            let rows =
                reader.tasks(&busy, None, AT_WORK_MAX).map_err(|error| problems::from_store_error(&error))?;
            let mut tasks = Vec::with_capacity(rows.len());
            for row in rows {
                if let Some(task) = cached_task(place, reader, &row)? {
                    tasks.push((row, task));
                }
            }
            Ok(tasks)
        })
    }

    /// The tasks of issues of which nobody has seen that they hold what they promise, by id.
    pub fn unaccepted_tasks(&self, reader: &StoreReader) -> Result<Arc<Vec<TaskId>>, Problem> {
        self.unaccepted.get(|| {
            let all = reader.acceptances().map_err(|error| problems::from_store_error(&error))?;
            Ok(all.into_iter().filter(|(_, held)| *held != Some(true)).map(|(task, _)| task).collect())
        })
    }

    /// The first of the tasks that could start, most urgent first.
    pub fn next(&self, reader: &StoreReader, limit: u32) -> Result<Vec<TaskRow>, Problem> {
        let read = |many| reader.next(many).map_err(|error| problems::from_store_error(&error));
        if limit > NEXT {
            return read(limit);
        }
        let next = self.next.get(|| read(NEXT))?;
        Ok(next.iter().take(limit as usize).cloned().collect())
    }
}

/// Something that is read once. Whoever wants it meanwhile waits.
struct LazyValue<T>(Mutex<Option<Arc<T>>>);

impl<T> LazyValue<T> {
    fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn get(&self, read: impl FnOnce() -> Result<T, Problem>) -> Result<Arc<T>, Problem> {
        let mut part = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*part {
            Some(known) => Ok(known.clone()),
            None => Ok(part.insert(Arc::new(read()?)).clone()),
        }
    }
}

/// How much work changes, counted a few at a time.
pub(crate) struct Diffstats<'a> {
    look: &'a Query<'a>,
    store: Option<Store>,
    left: u32,
}

impl<'a> Diffstats<'a> {
    pub fn new(look: &'a Query<'a>) -> Self {
        Self { look, store: None, left: DIFFS_AT_ONCE }
    }

    /// How much a task changes, if it is known or can be counted now.
    pub fn task_diffstat(&mut self, task: &Task) -> Option<DiffStat> {
        let (from, to) = match (&task.landed, &task.gate, &task.head, &task.workspace) {
            (Some(landed), ..) => (&landed.base_before, &landed.commit),
            (None, Some(gate), ..) => (&gate.base, &gate.commit),
            (None, None, Some(head), Some(base)) => (base, head),
            (None, None, _, _) => return None,
        };
        let key = (from.clone(), to.clone());
        let kept = self.look.place.caches.tasks.lock().diffs.get(&key).copied();
        if let Some(known) = kept.and_then(|it| it.current_stat(Instant::now())) {
            return known;
        }
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let made = self
            .count_diffstat(from, to)
            .map_or_else(|| DiffStatResult::Failed(Instant::now()), DiffStatResult::Known);
        let diffs = &mut self.look.place.caches.tasks.lock().diffs;
        if diffs.len() >= DIFFS_MAX {
            diffs.clear();
        }
        diffs.insert(key, made);
        made.current_stat(Instant::now()).flatten()
    }

    /// None if it cannot be said: that is no reason to show nothing else.
    fn count_diffstat(&mut self, from: &Commit, to: &Commit) -> Option<Option<DiffStat>> {
        let (from, to) = (from.as_str().parse::<Oid>().ok()?, to.as_str().parse::<Oid>().ok()?);
        if self.store.is_none() {
            self.store = self.look.open_store().ok();
        }
        let options = DiffOptions { context: 0, ..DiffOptions::default() };
        let text = self.store.as_ref()?.diff_commits(&from, &to, &options).ok()?;
        Some((!text.cut).then(|| parse_diffstat(&text.bytes)))
    }
}

/// The figures of a diff without context: each hunk says its own.
fn parse_diffstat(diff: &[u8]) -> DiffStat {
    let mut stat = DiffStat::default();
    let mut inside = 0; // lines of the hunk that are still to come
    for line in diff.split(|byte| *byte == b'\n') {
        if inside > 0 && matches!(line.first(), Some(b'+' | b'-')) {
            inside -= 1;
        } else if line.starts_with(b"diff --git ") {
            stat.files += 1;
            inside = 0;
        } else if line.starts_with(b"@@ ")
            && let Some((removed, added)) = parse_hunk_header(&String::from_utf8_lossy(line))
        {
            stat.removed += removed;
            stat.added += added;
            inside = removed + added;
        }
    }
    stat
}

/// `@@ -3,2 +3 @@`: how many lines are gone, how many are new.
fn parse_hunk_header(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split(' ').skip(1);
    let mut many = |sign: char| -> Option<u64> {
        let range = words.next()?.strip_prefix(sign)?;
        range.split_once(',').map_or(Some(1), |(_, many)| many.parse().ok())
    };
    Some((many('-')?, many('+')?))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::{AGAIN, DiffStat, DiffStatResult, parse_diffstat};

    #[test]
    fn figures_that_could_not_be_had_are_asked_for_again() {
        let now = Instant::now();
        let failed = DiffStatResult::Failed(now);
        assert_eq!(failed.current_stat(now), Some(None), "not with every look");
        assert_eq!(failed.current_stat(now + AGAIN), None, "but not never");
        let known = DiffStatResult::Known(Some(DiffStat { files: 1, added: 2, removed: 3 }));
        assert!(known.current_stat(now + 100 * AGAIN).flatten().is_some());
        assert_eq!(DiffStatResult::Known(None).current_stat(now + 100 * AGAIN), Some(None));
    }

    #[test]
    fn lines_are_counted_by_hunks_and_not_by_what_they_look_like() {
        let diff =
            b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n-old\n+diff --git\n+@@ -1,9 +1,9 @@\n\
                     diff --git a/b b/b\nBinary files differ\n";
        assert_eq!(parse_diffstat(diff), DiffStat { files: 2, added: 2, removed: 1 });
        assert_eq!(parse_diffstat(b""), DiffStat::default());
    }
}

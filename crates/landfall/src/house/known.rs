//! What was worked out before and cannot have changed: tasks at an event, and how much two commits differ. It is kept for
//! as long as the process lives, so that a board that is asked for every second costs little.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use landfall_api::{DiffStat, Problem};
use landfall_engine::host::git::{DiffOptions, Oid, Store};
use landfall_engine::model::{Commit, Task, TaskId};
use landfall_engine::store::{Reader, Seq, TaskRow};

use super::place::Place;
use super::problem;
use super::reads::Look;

const TASKS_MAX: usize = 4_096; // a few boards full; beyond it everything is read again
const DIFFS_MAX: usize = 8_192;
const DIFFS_AT_ONCE: u32 = 8; // processes that one question may start; the rest is known next time

type Tasks = BTreeMap<(PathBuf, TaskId), (Seq, Arc<Task>)>;
type Diffs = BTreeMap<(Commit, Commit), Counted>;

/// What came of counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// So much. None where it is too much to be counted: two commits never change.
    Known(Option<DiffStat>),
    /// Nothing, this time: a disk was full, or git was. It is tried again.
    Failed(Instant),
}

const AGAIN: Duration = Duration::from_secs(30); // a commit that is gone is not asked for with every look

impl Counted {
    /// What is known by now; none if it is to be counted.
    fn known(self, now: Instant) -> Option<Option<DiffStat>> {
        match self {
            Self::Known(stat) => Some(stat),
            Self::Failed(at) if now.saturating_duration_since(at) < AGAIN => Some(None),
            Self::Failed(_) => None,
        }
    }
}

static TASKS: Mutex<Tasks> = Mutex::new(BTreeMap::new());
static DIFFS: Mutex<Diffs> = Mutex::new(BTreeMap::new());

/// The task of a row, as it is at the row's last event.
pub(super) fn task(place: &Place, reader: &Reader, row: &TaskRow) -> Result<Option<Arc<Task>>, Problem> {
    let key = (place.folder.journal(), row.id);
    if let Some((seq, task)) = TASKS.lock().unwrap_or_else(PoisonError::into_inner).get(&key)
        && *seq == row.seq
    {
        return Ok(Some(task.clone()));
    }
    // Nobody else waits while it is read; who reads it at the same time reads the same.
    let Some(task) = reader.task(row.id).map_err(|error| problem::store(&error))? else { return Ok(None) };
    let task = Arc::new(task);
    let mut tasks = TASKS.lock().unwrap_or_else(PoisonError::into_inner);
    if tasks.len() >= TASKS_MAX {
        tasks.clear();
    }
    tasks.insert(key, (row.seq, task.clone()));
    Ok(Some(task))
}

/// How much work changes, counted a few at a time.
pub(super) struct Diffstats<'a> {
    look: &'a Look<'a>,
    store: Option<Store>,
    left: u32,
}

impl<'a> Diffstats<'a> {
    pub fn new(look: &'a Look<'a>) -> Self {
        Self { look, store: None, left: DIFFS_AT_ONCE }
    }

    /// How much a task changes, if it is known or can be counted now.
    pub fn of(&mut self, task: &Task) -> Option<DiffStat> {
        let (from, to) = match (&task.landed, &task.gate, &task.head, &task.workspace) {
            (Some(landed), ..) => (&landed.base_before, &landed.commit),
            (None, Some(gate), ..) => (&gate.base, &gate.commit),
            (None, None, Some(head), Some(base)) => (base, head),
            (None, None, _, _) => return None,
        };
        let key = (from.clone(), to.clone());
        let kept = DIFFS.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        if let Some(known) = kept.and_then(|it| it.known(Instant::now())) {
            return known;
        }
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let made = self.count(from, to).map_or_else(|| Counted::Failed(Instant::now()), Counted::Known);
        let mut diffs = DIFFS.lock().unwrap_or_else(PoisonError::into_inner);
        if diffs.len() >= DIFFS_MAX {
            diffs.clear();
        }
        diffs.insert(key, made);
        made.known(Instant::now()).flatten()
    }

    /// None if it cannot be said: that is no reason to show nothing else.
    fn count(&mut self, from: &Commit, to: &Commit) -> Option<Option<DiffStat>> {
        let (from, to) = (from.as_str().parse::<Oid>().ok()?, to.as_str().parse::<Oid>().ok()?);
        if self.store.is_none() {
            self.store = self.look.store().ok();
        }
        let options = DiffOptions { context: 0, ..DiffOptions::default() };
        let text = self.store.as_ref()?.diff(&from, &to, &options).ok()?;
        Some((!text.cut).then(|| counted(&text.bytes)))
    }
}

/// The figures of a diff without context: each hunk says its own.
fn counted(diff: &[u8]) -> DiffStat {
    let mut stat = DiffStat::default();
    let mut inside = 0; // lines of the hunk that are still to come
    for line in diff.split(|byte| *byte == b'\n') {
        if inside > 0 && matches!(line.first(), Some(b'+' | b'-')) {
            inside -= 1;
        } else if line.starts_with(b"diff --git ") {
            stat.files += 1;
            inside = 0;
        } else if line.starts_with(b"@@ ")
            && let Some((removed, added)) = hunk(&String::from_utf8_lossy(line))
        {
            stat.removed += removed;
            stat.added += added;
            inside = removed + added;
        }
    }
    stat
}

/// `@@ -3,2 +3 @@`: how many lines are gone, how many are new.
fn hunk(line: &str) -> Option<(u64, u64)> {
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

    use super::{AGAIN, Counted, DiffStat, counted};

    #[test]
    fn figures_that_could_not_be_had_are_asked_for_again() {
        let now = Instant::now();
        let failed = Counted::Failed(now);
        assert_eq!(failed.known(now), Some(None), "not with every look");
        assert_eq!(failed.known(now + AGAIN), None, "but not never");
        let known = Counted::Known(Some(DiffStat { files: 1, added: 2, removed: 3 }));
        assert!(known.known(now + 100 * AGAIN).flatten().is_some());
        assert_eq!(Counted::Known(None).known(now + 100 * AGAIN), Some(None));
    }

    #[test]
    fn lines_are_counted_by_hunks_and_not_by_what_they_look_like() {
        let diff =
            b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n-old\n+diff --git\n+@@ -1,9 +1,9 @@\n\
                     diff --git a/b b/b\nBinary files differ\n";
        assert_eq!(counted(diff), DiffStat { files: 2, added: 2, removed: 1 });
        assert_eq!(counted(b""), DiffStat::default());
    }
}

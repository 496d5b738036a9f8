//! What a reader answers, compared with what the history says.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use landfall_model::{TaskId, TaskStatus};
use landfall_store::{Journal, Seq, Sqlite, TaskFilter, TaskRow};

use crate::history::History;
use crate::{Place, add};

fn filled(seed: u64) -> (Place, Sqlite, History) {
    let place = Place::new();
    let sqlite = place.open();
    let mut history = History::new(seed, 60);
    let pending: Vec<_> = (0..150).map(|_| sqlite.append_later(history.batch())).collect();
    for pending in pending {
        pending.wait().expect("there is room");
    }
    (place, sqlite, history)
}

#[test]
fn a_reader_answers_what_the_history_says() {
    for seed in 0..5 {
        let (_place, sqlite, history) = filled(seed);
        let reader = sqlite.open_reader().expect("it opens");
        let rows = reader.tables().expect("they can be read").tasks;
        let unblocks = |task: &TaskId| history.tasks.get(task).is_some_and(|task| task.unblocks_dependents());

        for (id, task) in &history.tasks {
            assert_eq!(reader.task(*id).expect("it is whole").as_ref(), Some(&**task), "seed {seed}: {id}");
            let unmet: Vec<TaskId> = task.spec.needs.iter().copied().filter(|need| !unblocks(need)).collect();
            assert_eq!(reader.unmet(*id).expect("it can be read"), unmet, "seed {seed}: {id}");
            let row = reader.row(*id).expect("it can be read").expect("it is there");
            assert_eq!(row.unmet as usize, unmet.len(), "seed {seed}: {id}");
            assert_eq!(
                row.effective_status(),
                TaskStatus::for_task_among_others(task, &unmet, false),
                "seed {seed}: {id}"
            );
            let needed =
                |(_, other): &(&TaskId, &std::sync::Arc<landfall_model::Task>)| other.spec.needs.contains(id);
            let dependents: Vec<TaskId> =
                history.tasks.iter().filter(needed).map(|(other, _)| *other).collect();
            assert_eq!(reader.dependents(*id).expect("it can be read"), dependents, "seed {seed}: {id}");
            let graph = reader.needs_graph(&[*id]).expect("it can be read");
            assert_eq!(graph[id], task.spec.needs.iter().copied().collect::<Vec<_>>());
        }
        let all: Vec<TaskId> = history.tasks.keys().copied().collect();
        let needs = history.tasks.iter().map(|(id, task)| (*id, task.spec.needs.iter().copied().collect()));
        assert_eq!(reader.needs_graph(&all).expect("it can be read"), needs.collect(), "seed {seed}");
        assert_eq!(reader.task(TaskId(9_999)).expect("it can be read"), None);
        assert_eq!(reader.max_task_id().expect("it can be read"), history.tasks.keys().max().copied());

        let counts = reader.counts().expect("it can be read");
        let mut by: BTreeMap<TaskStatus, u64> = BTreeMap::new();
        for row in &rows {
            *by.entry(row.status).or_default() += u64::from(row.effective_status() == row.status);
        }
        by.retain(|_, many| *many > 0);
        let counted: BTreeMap<TaskStatus, u64> =
            counts.by.clone().into_iter().filter(|(_, many)| *many > 0).collect();
        assert_eq!(counted, by, "seed {seed}");
        assert_eq!(counts.total(), rows.len() as u64);

        let mut ready: Vec<TaskRow> =
            rows.iter().filter(|row| row.effective_status() == TaskStatus::Ready).cloned().collect();
        ready.sort_by_key(|row| (row.priority, row.id));
        assert_eq!(reader.next(1_000).expect("it can be read"), ready, "seed {seed}");
        let asked: Vec<TaskId> = rows.iter().filter(|row| row.asks.is_some()).map(|row| row.id).collect();
        let inbox = reader.inbox().expect("it can be read");
        assert_eq!(inbox.iter().map(|row| row.task).collect::<Vec<_>>(), asked, "seed {seed}");
    }
}

#[test]
fn the_end_is_told_when_it_can_be_read_and_whoever_waits_for_it_is_woken() {
    let (_place, sqlite, mut history) = filled(3);
    let (end, reader) = (sqlite.journal_end(), sqlite.open_reader().expect("it opens"));
    assert_eq!(end.head(), reader.head().expect("it can be read"));
    for _ in 0..20 {
        let before = end.head().seq;
        let waits = {
            let end = sqlite.journal_end();
            std::thread::spawn(move || {
                let began = std::time::Instant::now();
                end.wait_past(before, std::time::Duration::from_secs(60));
                began.elapsed()
            })
        };
        let appended = sqlite.append(history.batch()).expect("there is room");
        assert_eq!(end.head().seq, appended.last, "whoever is told that it is written finds it");
        assert_eq!(reader.head().expect("it can be read"), end.head());
        assert!(waits.join().expect("it waits").as_secs() < 50, "nobody woke it");
    }
    // Nothing comes: it does not wait for ever.
    end.wait_past(end.head().seq, std::time::Duration::from_millis(10));
}

#[test]
fn filters_and_pages_show_each_task_once() {
    let (_place, sqlite, _history) = filled(11);
    let reader = sqlite.open_reader().expect("it opens");
    let rows = reader.tables().expect("they can be read").tasks;
    let some = |it: Option<&str>| it.map(ToOwned::to_owned);
    let mut shown = 0;
    for status in std::iter::once(None).chain(TaskStatus::ALL.map(Some)) {
        for tag in [None, Some("next"), Some("nobody's")] {
            for text in [None, Some("TASK 1"), Some("%"), Some("„ü“")] {
                for parent in [None, Some(TaskId(1))] {
                    let filter = TaskFilter { status, tag: some(tag), text: some(text), parent };
                    let wanted: Vec<TaskRow> =
                        rows.iter().filter(|row| fits(&filter, row)).cloned().collect();
                    let mut paged = Vec::new();
                    loop {
                        let after = paged.last().map(|row: &TaskRow| row.id);
                        let page = reader.tasks(&filter, after, 3).expect("it can be read");
                        let full = page.len() == 3;
                        paged.extend(page);
                        if !full {
                            break;
                        }
                    }
                    assert_eq!(paged, wanted, "{filter:?}");
                    shown += wanted.len();
                }
            }
        }
    }
    assert!(shown > 200, "too few tasks to show anything: {shown}");
}

fn fits(filter: &TaskFilter, row: &TaskRow) -> bool {
    let lower = |text: &str| text.to_ascii_lowercase();
    filter.status.is_none_or(|status| row.effective_status() == status)
        && filter.tag.as_ref().is_none_or(|tag| row.tags.contains(tag))
        && filter.text.as_ref().is_none_or(|text| lower(&row.title).contains(&lower(text)))
        && filter.parent.is_none_or(|parent| row.parent == Some(parent))
}

#[test]
fn pages_of_events_are_the_journal() {
    let (_place, sqlite, history) = filled(12);
    let reader = sqlite.open_reader().expect("it opens");
    let mut paged = Vec::new();
    loop {
        let after = paged.last().map_or(Seq::ZERO, |(seq, _)| *seq);
        let page = reader.events(after, None, 37).expect("it is whole");
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert!(paged.iter().map(|(seq, _)| seq.0).eq(1..=history.entries.len() as u64));
    assert!(paged.iter().map(|(_, entry)| entry).eq(&history.entries));
    let tail = reader.tail(10).expect("it is whole");
    assert_eq!(tail, paged[paged.len() - 10..]);
    let of_one = reader.events(Seq(5), Some(TaskId(1)), 1_000).expect("it is whole");
    let wanted = paged.iter().filter(|(seq, entry)| {
        *seq > Seq(5) && matches!(&entry.fact, landfall_model::Fact::Task(TaskId(1), _))
    });
    assert!(of_one.iter().eq(wanted));
}

#[test]
fn readers_see_whole_batches_while_a_writer_writes() {
    let place = Place::new();
    let sqlite = place.open();
    sqlite.append(add(1)).expect("there is room");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while !done.load(Ordering::Acquire) {
                    let reader = sqlite.open_reader().expect("it opens");
                    let tables = reader.tables().expect("they can be read");
                    let tasks = tables.tasks.len();
                    assert!(tasks >= last, "what was seen is not unseen");
                    assert!(tables.tasks.iter().zip(1..).all(|(row, id)| row.id == TaskId(id)));
                    assert_eq!(reader.head().expect("it has one").seq.0 % 2, 1, "batches come in twos");
                    last = tasks;
                }
            });
        }
        for id in 1..150 {
            let (mut batch, more) = (add(id * 2), add(id * 2 + 1));
            batch.entries.extend(more.entries);
            batch.tasks.extend(more.tasks);
            sqlite.append(batch).expect("readers do not hold it up");
        }
        done.store(true, Ordering::Release);
    });
}

#[test]
fn runs_the_base_and_passes_are_what_the_events_made() {
    let (_place, sqlite, _history) = filled(13);
    let reader = sqlite.open_reader().expect("it opens");
    let tables = reader.tables().expect("they can be read");
    let mut runs = reader.runs(1_000).expect("it can be read");
    runs.reverse();
    assert_eq!(runs, tables.runs);
    assert_eq!(reader.base().expect("it can be read"), tables.base);
    let pass = tables.passes.first().expect("some tree passed");
    let found = reader.pass(&pass.tree, &pass.config, &pass.environment).expect("it can be read");
    assert_eq!(found.as_ref(), Some(pass));
    let other = landfall_model::Digest::new("another machine");
    assert_eq!(reader.pass(&pass.tree, &pass.config, &other).expect("it can be read"), None);
}

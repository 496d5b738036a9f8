//! The tables are folds: what was kept up along the way is what the events make.

use landfall_model::TaskStatus;
use landfall_store::{Journal, JournalCheck, JournalOptions, MemoryJournal, Tables};

use crate::history::History;
use crate::{Place, rounds};

#[test]
fn live_tables_equal_rebuilt_tables_after_random_histories() {
    let mut seen = [0; 9];
    for seed in 0..rounds(60) {
        let place = Place::new();
        let (sqlite, memory) = (place.open(), MemoryJournal::new());
        let mut history = History::new(seed, 30);
        let mut pending = Vec::new();
        for _ in 0..80 {
            let batch = history.batch();
            memory.append(batch.clone()).expect("memory takes all");
            pending.push(sqlite.append_later(batch));
        }
        for pending in pending {
            pending.wait().expect("there is room");
        }
        let live = sqlite.read_tables().expect("they can be read");
        seen.iter_mut().zip(sizes(&live)).for_each(|(sum, size)| *sum += size);
        assert_eq!(live.first_difference(&memory.tables()), None, "seed {seed}: sqlite and memory");
        sqlite.rebuild_tables().expect("the journal is whole");
        assert_eq!(
            live.first_difference(&sqlite.read_tables().expect("they can be read")),
            None,
            "seed {seed}: rebuilt"
        );
        drop(sqlite);
        drop(place.open_with(JournalOptions { check: JournalCheck::Full, ..JournalOptions::default() }));
    }
    assert!(seen.iter().all(|size| *size > 10), "the histories are too tame to show anything: {seen:?}");
}

/// Tasks, tasks with unmet needs, questions, runs, passes, tasks on their way onto the base, counts, finished work, and
/// work that both a reviewing agent and a person looked at.
fn sizes(tables: &Tables) -> [usize; 9] {
    [
        tables.tasks.len(),
        tables.tasks.iter().filter(|task| task.unmet > 0).count(),
        tables.tasks.iter().filter(|task| task.asks.is_some()).count(),
        tables.runs.len(),
        tables.passes.len(),
        tables.tasks.iter().filter(|task| task.status == TaskStatus::Landing).count(),
        tables.counts.len(),
        tables.work.iter().filter(|(_, work)| work.done.is_some()).count(),
        tables.counts.iter().filter(|(_, what, ..)| what == "agreement").count(),
    ]
}

#[test]
fn rebuilding_mends_tables_that_were_changed_behind_our_back() {
    let place = Place::new();
    let sqlite = place.open();
    let mut history = History::new(7, 30);
    for _ in 0..80 {
        sqlite.append(history.batch()).expect("there is room");
    }
    let live = sqlite.read_tables().expect("they can be read");
    place.tamper(
        "UPDATE task SET unmet = unmet + 1; DELETE FROM need WHERE task % 2 = 0; DELETE FROM pass; DELETE FROM flow;
         UPDATE base SET held = 'never'; DELETE FROM task WHERE id % 7 = 0; DELETE FROM tag;
         UPDATE tally SET many = many + 1; DELETE FROM work WHERE task % 2 = 0;",
    );
    sqlite.rebuild_tables().expect("the journal is whole");
    assert_eq!(live.first_difference(&sqlite.read_tables().expect("they can be read")), None);
    // The flows are back as well: later events may name them.
    for _ in 0..20 {
        sqlite.append(history.batch()).expect("there is room");
    }
    drop(sqlite);
    drop(place.open_with(JournalOptions { check: JournalCheck::Full, ..JournalOptions::default() }));
}

#[test]
fn a_full_check_finds_a_table_that_is_not_what_the_events_make() {
    for (what, sql) in [
        ("a count", "UPDATE task SET unmet = unmet + 1 WHERE id = 3"),
        ("a pass", "DELETE FROM pass"),
        ("a need", "DELETE FROM need"),
        ("a flow", "DELETE FROM flow"),
        ("a run", "UPDATE run SET slots = 99"),
        ("the base", "UPDATE base SET held = 'never'"),
        ("a count of a slot", "UPDATE tally SET many = many + 1"),
        ("finished work", "UPDATE work SET rounds = rounds + 1"),
    ] {
        let place = Place::new();
        let sqlite = place.open();
        let mut history = History::new(7, 30);
        for _ in 0..80 {
            sqlite.append(history.batch()).expect("there is room");
        }
        drop(sqlite);
        place.tamper(sql);
        let full = JournalOptions { check: JournalCheck::Full, ..JournalOptions::default() };
        let opened = landfall_store::Sqlite::open(&place.path(), full);
        assert!(matches!(opened, Err(landfall_store::StoreError::Corrupt { .. })), "{what} was overlooked");
    }
}

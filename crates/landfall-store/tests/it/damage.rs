//! What is stored is checked before it is served.

use std::fs;
use std::path::Path;

use landfall_model::JournalEntry;
use landfall_store::{
    Journal, JournalCheck, JournalOptions, Seq, Sqlite, StoreError, StoreReader, Tables, TaskFilter,
};

use crate::history::{History, Rng};
use crate::{Place, all, rounds};

/// A closed journal, and what is in it.
struct Kept {
    place: Place,
    entries: Vec<JournalEntry>,
    tables: Tables,
}

fn kept(seed: u64, batches: u64) -> Kept {
    let place = Place::new();
    let sqlite = place.open();
    let mut history = History::new(seed, 40);
    let pending: Vec<_> = (0..batches).map(|_| sqlite.append_later(history.batch())).collect();
    for pending in pending {
        pending.wait().expect("there is room");
    }
    let tables = sqlite.read_tables().expect("they can be read");
    Kept { place, entries: history.entries, tables }
}

#[test]
fn an_event_that_was_changed_is_found_by_its_number() {
    for (what, sql, at) in [
        ("body", "UPDATE event SET body = body || ' ' WHERE seq = 10", 10),
        ("time", "UPDATE event SET at_ms = at_ms + 1 WHERE seq = 10", 10),
        ("kind", "UPDATE event SET kind = 'edited' WHERE seq = 1", 1),
        ("task", "UPDATE event SET task = 77 WHERE seq = (SELECT min(seq) FROM event WHERE task = 1)", 0),
        ("hash", "UPDATE event SET hash = zeroblob(32) WHERE seq = 10", 10),
        ("a short hash", "UPDATE event SET hash = x'00' WHERE seq = 10", 10),
        ("one deleted", "DELETE FROM event WHERE seq = 10", 10),
        (
            "two changed places",
            "UPDATE event SET seq = -1 WHERE seq = 10; UPDATE event SET seq = 10 WHERE seq = 11;
            UPDATE event SET seq = 11 WHERE seq = -1",
            10,
        ),
        ("a gap", "UPDATE event SET seq = seq + 1000 WHERE seq > 20", 0),
    ] {
        let Kept { place, .. } = kept(1, 30);
        place.tamper(sql);
        let seen = match Sqlite::open(&place.path(), JournalOptions::default()) {
            Ok((sqlite, _)) => all(&sqlite).expect_err(what),
            Err(error) => error,
        };
        let StoreError::Corrupt { seq, .. } = seen else { panic!("{what}: {seen}") };
        assert!(at == 0 || seq == Some(Seq(at)), "{what}: {seq:?}");
    }
}

#[test]
fn a_journal_without_its_last_events_does_not_open() {
    let Kept { place, .. } = kept(1, 30);
    place.tamper("DELETE FROM event WHERE seq > (SELECT max(seq) - 2 FROM event)");
    assert!(matches!(place.refused(), StoreError::Corrupt { .. }));
    place.tamper("DELETE FROM event");
    assert!(matches!(place.refused(), StoreError::Corrupt { .. }));
}

#[test]
fn a_reader_serves_no_event_that_was_changed_and_no_task_without_all_its_events() {
    let Kept { place, tables, .. } = kept(1, 30);
    let task = tables.tasks.iter().max_by_key(|task| task.events).expect("there are tasks");
    let Seq(last) = task.seq;
    place.tamper(&format!("UPDATE event SET at_ms = at_ms + 1 WHERE seq = {last}"));
    let reader = StoreReader::open(&place.path()).expect("it opens");
    for seen in [
        reader.events(Seq(last - 1), None, 5).map(drop),
        reader.events(Seq::ZERO, Some(task.id), 1_000).map(drop),
        reader.task(task.id).map(drop),
        reader.tail(1_000).map(drop),
    ] {
        assert!(
            matches!(seen, Err(StoreError::Corrupt { seq: Some(Seq(at)), .. }) if at == last),
            "{seen:?}"
        );
    }
    place.tamper(&format!("DELETE FROM event WHERE seq = {last}"));
    let seen = reader.task(task.id);
    assert!(matches!(seen, Err(StoreError::Corrupt { .. })), "{seen:?}");
}

#[test]
fn a_reader_serves_no_row_that_was_changed() {
    for column in [
        "title = 'other'",
        "status = 'done'",
        "unmet = unmet + 1",
        "events = 0",
        "started = 1",
        "detail = '?'",
    ] {
        let Kept { place, tables, .. } = kept(1, 30);
        let id = tables.tasks[0].id;
        place.tamper(&format!("UPDATE task SET {column} WHERE id = {}", id.0));
        let reader = StoreReader::open(&place.path()).expect("it opens");
        assert!(matches!(reader.row(id), Err(StoreError::Corrupt { .. })), "{column}");
        assert!(
            matches!(reader.tasks(&TaskFilter::default(), None, 10), Err(StoreError::Corrupt { .. })),
            "{column}"
        );
    }
}

#[test]
fn a_file_that_was_cut_short_is_refused() {
    let Kept { place, entries, .. } = kept(2, 60);
    let whole = fs::read(place.path()).expect("it can be read");
    let mut refused = 0;
    for cut in (0..10).map(|tenth| whole.len() * tenth / 10) {
        fs::write(place.path(), &whole[..cut]).expect("it can be written");
        if cut == 0 {
            continue; // an empty file is a new journal: nothing in it says that there was more
        }
        match opened(&place.path()) {
            Err(_) => refused += 1,
            Ok(read) => assert_eq!(read, entries, "cut at {cut}"),
        }
    }
    assert_eq!(refused, 9);
}

#[test]
fn a_flipped_bit_is_detected_or_harmless() {
    const SEED: u64 = 31;
    let Kept { place, entries, tables } = kept(SEED, 120);
    let whole = fs::read(place.path()).expect("it can be read");
    let mut rng = Rng::new(SEED);
    let (mut detected, mut harmless) = (0, 0);
    for round in 0..rounds(60) {
        let (at, bit) = (rng.below(whole.len() as u64) as usize, rng.below(8));
        let told = format!("seed {SEED}, round {round}: bit {bit} of byte {at}");
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << bit;
        fs::write(place.path(), &flipped).expect("it can be written");

        // A reader alone: what it serves is right, or it serves nothing.
        let read = StoreReader::open(&place.path()).and_then(|reader| {
            let rows = reader.tasks(&TaskFilter::default(), None, u32::MAX)?;
            Ok((rows, reader.events(Seq::ZERO, None, u32::MAX)?, reader))
        });
        if let Ok((rows, events, reader)) = read {
            assert_eq!(rows, tables.tasks, "{told}");
            assert!(events.into_iter().map(|(_, entry)| entry).eq(entries.iter().cloned()), "{told}");
            drop(reader);
        }
        // As an engine opens it: the events are right, or nothing goes.
        if let Ok(read) = opened(&place.path()) {
            assert_eq!(read, entries, "{told}");
        }
        // With every check: the tables are right as well, or nothing goes.
        fs::write(place.path(), &flipped).expect("it can be written");
        match Sqlite::open(
            &place.path(),
            JournalOptions { check: JournalCheck::Full, ..JournalOptions::default() },
        ) {
            Err(_) => detected += 1,
            Ok((sqlite, _)) => {
                assert_eq!(
                    sqlite.read_tables().expect("it was checked").first_difference(&tables),
                    None,
                    "{told}"
                );
                harmless += 1;
            }
        }
    }
    assert!(detected > 20, "most of a file matters: {detected} detected, {harmless} harmless");
}

/// Opens and replays.
fn opened(path: &Path) -> Result<Vec<JournalEntry>, StoreError> {
    let (sqlite, _) = Sqlite::open(path, JournalOptions::default())?;
    Ok(all(&sqlite)?.into_iter().map(|(_, entry)| entry).collect())
}

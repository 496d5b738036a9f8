//! What every journal promises, shown on both.

use landfall_model::{TaskId, Timestamp};
use landfall_store::{EntryBatch, Journal, JournalHead, MemoryJournal, ReplayStop, Seq, StoreError};

use crate::history::History;
use crate::{Place, add, all};

#[test]
fn memory_keeps_the_contract() {
    contract(|| Box::new(MemoryJournal::new()));
}

#[test]
fn sqlite_keeps_the_contract() {
    let places = std::cell::RefCell::new(Vec::new());
    contract(|| {
        let place = Place::new();
        let journal = place.open();
        places.borrow_mut().push(place);
        Box::new(journal)
    });
}

#[test]
fn both_make_the_same_chain_of_the_same_facts() {
    let place = Place::new();
    let (memory, sqlite) = (MemoryJournal::new(), place.open());
    let mut history = History::new(1, 20);
    for _ in 0..50 {
        let batch = history.batch();
        memory.append(batch.clone()).expect("memory takes all");
        sqlite.append(batch).expect("there is room");
    }
    assert_eq!(memory.head().expect("it has one"), sqlite.head().expect("it has one"));
}

fn contract(make: impl Fn() -> Box<dyn Journal>) {
    an_empty_journal_is_empty(&*make());
    numbers_are_dense_from_one(&*make());
    what_was_appended_comes_back(&*make());
    a_replay_can_start_anywhere_and_stop_anywhere(&*make());
    a_batch_without_its_task_is_refused(&*make());
    batches_handed_over_keep_their_order(&*make());
}

fn an_empty_journal_is_empty(journal: &dyn Journal) {
    assert_eq!(journal.head().expect("it has one"), JournalHead::EMPTY);
    assert_eq!(all(journal).expect("it replays"), []);
    let nothing = journal.append(EntryBatch::default()).expect("an empty batch is nothing to do");
    assert_eq!(nothing.last, Seq::ZERO);
    assert_eq!(journal.head().expect("it has one"), JournalHead::EMPTY);
}

fn numbers_are_dense_from_one(journal: &dyn Journal) {
    let mut history = History::new(2, 5);
    let mut last = 0;
    let mut hashes = std::collections::HashSet::new();
    for _ in 0..20 {
        let batch = history.batch();
        last += batch.entries.len() as u64;
        assert_eq!(journal.append(batch).expect("it takes it").last, Seq(last));
        let head = journal.head().expect("it has one");
        assert_eq!(head.seq, Seq(last));
        assert!(hashes.insert(head.hash), "every head has its own hash");
    }
}

fn what_was_appended_comes_back(journal: &dyn Journal) {
    let mut history = History::new(3, 10);
    for _ in 0..100 {
        journal.append(history.batch()).expect("it takes it");
    }
    for _ in 0..2 {
        let (numbers, entries): (Vec<Seq>, Vec<_>) = all(journal).expect("it replays").into_iter().unzip();
        assert_eq!(numbers, (1..=entries.len() as u64).map(Seq).collect::<Vec<_>>());
        assert_eq!(entries, history.entries);
    }
}

fn a_replay_can_start_anywhere_and_stop_anywhere(journal: &dyn Journal) {
    let mut history = History::new(4, 10);
    for _ in 0..30 {
        journal.append(history.batch()).expect("it takes it");
    }
    let end = journal.head().expect("it has one");
    for from in [1, 2, 17, end.seq.0, end.seq.0 + 1, end.seq.0 + 50] {
        let mut read = Vec::new();
        let replayed = journal
            .replay(Seq(from), &mut |_, entry| {
                read.push(entry);
                Ok(())
            })
            .expect("it replays");
        let wanted = history.entries.get(from as usize - 1..).unwrap_or_default();
        assert_eq!(read, wanted, "from {from}");
        assert_eq!((replayed.events, replayed.to), (wanted.len() as u64, end), "from {from}");
    }
    let mut left = 5;
    let replayed = journal.replay(Seq(3), &mut |_, _| {
        left -= 1;
        if left == 0 { Err(ReplayStop::Enough) } else { Ok(()) }
    });
    assert_eq!(replayed.expect("to stop is no error").to.seq, Seq(7));
    let illegal = landfall_model::apply(
        None,
        TaskId(1),
        Timestamp(0),
        &landfall_model::Event::Resumed { feedback: None },
    );
    let illegal = illegal.expect_err("nothing can be resumed");
    let refused = journal.replay(Seq(3), &mut |_, _| Err(illegal.clone().into()));
    assert!(matches!(refused, Err(StoreError::Illegal { seq: Seq(3), .. })), "{refused:?}");
}

fn a_batch_without_its_task_is_refused(journal: &dyn Journal) {
    let mut batch = add(1);
    batch.tasks.clear();
    let refused = journal.append(batch);
    assert!(matches!(refused, Err(StoreError::Unfolded { task: TaskId(1) })), "{refused:?}");
    assert_eq!(journal.head().expect("it has one"), JournalHead::EMPTY);
}

fn batches_handed_over_keep_their_order(journal: &dyn Journal) {
    let pending: Vec<_> = (1..=100).map(|id| journal.append_later(add(id))).collect();
    for (pending, last) in pending.into_iter().zip(1..) {
        assert_eq!(pending.wait().expect("it takes it").last, Seq(last));
    }
    let read = all(journal).expect("it replays");
    assert!(read.iter().zip(1..).all(|((_, entry), at)| entry.at == Timestamp(at)));
}

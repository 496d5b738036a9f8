//! Checkpoints: when one is due, which are kept, and what going back takes away.

use landfall_model::checkpoint::{CheckpointEvent, CheckpointReason, Checkpoints, EVERY, Retention};
use landfall_model::{Commit, TaskId, Timestamp};

const FOREVER: u64 = u64::MAX / 4;

fn made(checkpoints: &mut Checkpoints, at: i64, why: CheckpointReason) -> String {
    let name = checkpoints.next_name();
    let (name, commit) = (name, Commit::new(&format!("c{at}")));
    checkpoints.apply(Timestamp(at), &CheckpointEvent::Made { name: name.clone(), commit, why });
    name
}

fn named(checkpoints: &mut Checkpoints, at: i64, name: &str) {
    let (name, commit) = (name.to_owned(), Commit::new(&format!("c{at}")));
    checkpoints.apply(Timestamp(at), &CheckpointEvent::Made { name, commit, why: CheckpointReason::Person });
}

fn names(checkpoints: &Checkpoints) -> Vec<&str> {
    checkpoints.kept_checkpoints().iter().map(|it| it.name.as_str()).collect()
}

#[test]
fn one_is_due_after_every_few_landings() {
    let mut checkpoints = Checkpoints::default();
    for id in 1..EVERY {
        checkpoints.note_landing(TaskId(id));
    }
    assert!(!checkpoints.is_due());
    checkpoints.note_landing(TaskId(EVERY));
    assert!(checkpoints.is_due());
    made(&mut checkpoints, 1, CheckpointReason::Landings);
    assert!(!checkpoints.is_due());
    (1..=EVERY).for_each(|id| checkpoints.note_landing(TaskId(id)));
    assert!(checkpoints.is_due());
    made(&mut checkpoints, 2, CheckpointReason::Person);
    assert!(!checkpoints.is_due(), "a person's own does as well");
}

#[test]
fn going_back_takes_away_what_landed_after_it() {
    let mut checkpoints = Checkpoints::default();
    checkpoints.note_landing(TaskId(1));
    let first = made(&mut checkpoints, 1, CheckpointReason::Sprint);
    checkpoints.note_landing(TaskId(3));
    checkpoints.note_landing(TaskId(2));
    let second = made(&mut checkpoints, 2, CheckpointReason::Landings);
    let lost = |name: &str| checkpoints.landed_after(checkpoints.get(name).expect("it is kept")).to_vec();
    assert_eq!((lost(&first), lost(&second)), (vec![TaskId(3), TaskId(2)], vec![]));
    assert_eq!(checkpoints.get(&first).map(|it| it.commit.as_str()), Some("c1"));
    assert_eq!(checkpoints.get("cp-9"), None);
}

#[test]
fn names_go_on_after_some_were_dropped() {
    let mut checkpoints = Checkpoints::default();
    let first = made(&mut checkpoints, 1, CheckpointReason::Landings);
    made(&mut checkpoints, 2, CheckpointReason::Landings);
    checkpoints.apply(Timestamp(3), &CheckpointEvent::Dropped { name: first });
    assert_eq!((names(&checkpoints), checkpoints.next_name().as_str()), (vec!["cp-2"], "cp-3"));
}

#[test]
fn a_name_that_is_given_again_means_the_later_one() {
    let mut checkpoints = Checkpoints::default();
    named(&mut checkpoints, 1, "before the move");
    made(&mut checkpoints, 2, CheckpointReason::Landings);
    named(&mut checkpoints, 3, "before the move");
    assert_eq!(names(&checkpoints), ["cp-2", "before the move"]);
    assert_eq!(checkpoints.get("before the move").map(|it| it.commit.as_str()), Some("c3"));
}

#[test]
fn the_oldest_past_the_count_are_outdated() {
    let mut checkpoints = Checkpoints::default();
    (1..=6).for_each(|at| drop(made(&mut checkpoints, at, CheckpointReason::Landings)));
    let retention = Retention { count: 4, age_ms: FOREVER };
    assert_eq!(checkpoints.find_outdated(Timestamp(7), retention), ["cp-1", "cp-2"]);
    let retention = Retention { count: 6, age_ms: FOREVER };
    assert!(checkpoints.find_outdated(Timestamp(7), retention).is_empty());
}

#[test]
fn the_latest_few_and_those_of_a_person_are_kept_however_old() {
    let mut checkpoints = Checkpoints::default();
    named(&mut checkpoints, 1, "mine");
    (2..=6).for_each(|at| drop(made(&mut checkpoints, at, CheckpointReason::Landings)));
    let retention = Retention { count: 0, age_ms: 0 };
    let outdated = checkpoints.find_outdated(Timestamp(1_000_000), retention);
    assert_eq!(outdated, ["cp-2", "cp-3"], "three stay, and mine");
    for name in outdated {
        checkpoints.apply(Timestamp(7), &CheckpointEvent::Dropped { name });
    }
    assert!(checkpoints.find_outdated(Timestamp(1_000_000), retention).is_empty());
}

#[test]
fn what_is_too_old_is_outdated_however_few_there_are() {
    let mut checkpoints = Checkpoints::default();
    (1..=5).for_each(|at| drop(made(&mut checkpoints, at * 100, CheckpointReason::Sprint)));
    let retention = Retention { count: 99, age_ms: 450 };
    assert_eq!(checkpoints.find_outdated(Timestamp(550), retention), Vec::<String>::new());
    assert_eq!(checkpoints.find_outdated(Timestamp(551), retention), ["cp-1"]);
}

#[test]
fn every_reason_has_its_word() {
    let words: std::collections::BTreeSet<_> = CheckpointReason::ALL.iter().map(|why| why.word()).collect();
    assert_eq!(words.len(), CheckpointReason::ALL.len());
}

//! The queue, sprints, checkpoints and flakes, read while no engine runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use landfall_model::auto::{AgentLoops, AutoEvent};
use landfall_model::conflict::ConflictTimeoutAction;
use landfall_model::gate::{CheckOutcome, CommandResult, GateReport};
use landfall_model::queue::{BatchDoing, BatchEnd, BatchMember, BatchPrefix, HoldReason};
use landfall_model::{
    AgentAssignment, Attempt, AttemptStart, BatchId, Commit, Digest, EngineEvent, Event, Fact, JournalEntry,
    QueueEvent, RunId, SignOff, StepName, Task, TaskId, TaskLimits, TaskSpec, TaskStatus, Timestamp, Tree,
    WaitReason, apply,
};
use landfall_store::{
    Autopilot, EntryBatch, EventOrderError, Journal, JournalCheck, JournalOptions, MemoryJournal, Seq,
    Sqlite, StoreError, StoreReader,
};

use crate::history::{History, flow};
use crate::{Place, all, rounds};

#[test]
fn a_reader_folds_what_a_replay_of_everything_folds() {
    let mut seen = [0; 7];
    for seed in 0..rounds(25) {
        let place = Place::new();
        let (sqlite, memory) = (place.open(), MemoryJournal::new());
        let mut history = History::new(seed, 30);
        let mut pending = Vec::new();
        for _ in 0..120 {
            let batch = history.batch();
            memory.append(batch.clone()).expect("memory takes all");
            pending.push(sqlite.append_later(batch));
        }
        for pending in pending {
            pending.wait().expect("there is room");
        }
        drop(sqlite);
        let reader = StoreReader::open(&place.path()).expect("nobody writes, and it opens");
        let read = reader.autopilot().expect("it is whole");
        assert_eq!(read.pilot, history.autopilot.pilot, "seed {seed}");
        assert_eq!(read.sprints, history.autopilot.sprints, "seed {seed}");
        assert_eq!(read.checkpoints, history.autopilot.checkpoints, "seed {seed}");
        assert_eq!(read.flakes, history.autopilot.flakes, "seed {seed}");
        assert_eq!(read.queue, history.autopilot.queue, "seed {seed}");
        assert!(read == replayed(&memory), "seed {seed}: the twin holds other facts");
        assert_eq!(reader.queue().expect("it is whole"), read.queue, "seed {seed}");
        assert_eq!(reader.pilot().expect("it is whole"), read.pilot, "seed {seed}");
        assert_eq!(reader.sprints().expect("it is whole"), read.sprints, "seed {seed}");
        assert_eq!(reader.checkpoints().expect("it is whole"), read.checkpoints, "seed {seed}");
        assert_eq!(reader.flakes().expect("it is whole"), read.flakes, "seed {seed}");
        let owed = |task: &Arc<Task>| (task.sign_off != SignOff::NotOwed).then(|| task.sign_off.clone());
        let owed: BTreeMap<TaskId, SignOff> =
            history.tasks.iter().filter_map(|(id, task)| Some((*id, owed(task)?))).collect();
        assert_eq!(reader.sign_offs().expect("it is whole"), owed, "seed {seed}");

        let sprints = read.sprints.all_sprints();
        let sizes = [
            read.queue.past_batches().filter(|(_, how, _)| matches!(how, BatchEnd::Landed { .. })).count(),
            read.queue.len(),
            sprints.iter().map(|sprint| sprint.tasks.len()).sum(),
            sprints.iter().map(|sprint| sprint.landings.len()).sum(),
            read.checkpoints.kept_checkpoints().len(),
            read.flakes.flakiest_checks().len(),
            owed.len(),
        ];
        seen.iter_mut().zip(sizes).for_each(|(sum, size)| *sum += size);
    }
    assert!(seen.iter().all(|size| *size > 5), "the histories are too tame to show anything: {seen:?}");
}

/// All of it, from every event there is.
fn replayed(journal: &dyn Journal) -> Autopilot {
    let mut autopilot = Autopilot::default();
    let mut tasks: BTreeMap<TaskId, Task> = BTreeMap::new();
    for (_, entry) in all(journal).expect("it replays") {
        autopilot.take(&entry).expect("it was written because it can follow");
        if let Fact::Task(id, event) = &entry.fact {
            let task = apply(tasks.remove(id), *id, entry.at, event).expect("as above");
            tasks.insert(*id, task);
        }
    }
    tasks.values().for_each(|task| autopilot.queue.update_task(task));
    autopilot
}

#[test]
fn who_stands_in_line_and_what_is_being_verified_can_be_seen_without_an_engine() {
    let place = Place::new();
    let sqlite = place.open();
    let story = Story::default();
    let members = vec![story.member(1), story.member(2)];
    let (batch, base) = (BatchId(1), commit('b'));
    let prefixes =
        ['3', '4'].map(|digit| BatchPrefix { commit: commit(digit), tree: Tree::new("7e") }).to_vec();
    for task in 1..=3 {
        story.queue_up(&sqlite, task);
    }
    for event in [
        QueueEvent::Formed { batch, on: None, members: members.clone() },
        QueueEvent::Built { batch, base, members, prefixes, crowded: Vec::new() },
        QueueEvent::CheckBegan { batch, count: 2 },
    ] {
        engine(&sqlite, event);
    }
    drop(sqlite);
    let reader = StoreReader::open(&place.path()).expect("it opens");
    let queue = reader.queue().expect("it is whole");
    assert_eq!(queue.line().collect::<Vec<_>>(), [TaskId(1), TaskId(2), TaskId(3)]);
    assert_eq!(queue.batches().iter().map(|it| it.doing).collect::<Vec<_>>(), [BatchDoing::Checking(2)]);
    assert_eq!(queue.batch_of(TaskId(2)).map(|it| it.id), Some(batch));
    assert_eq!(reader.counts().expect("it can be read").count_of(TaskStatus::Landing), 3);

    let sqlite = place.open();
    engine(&sqlite, QueueEvent::Checked { batch, count: 2, report: report(CheckOutcome::Flaky) });
    let held = QueueEvent::Held { why: HoldReason::Person, reason: "not today".to_owned(), until: None };
    engine(&sqlite, held);
    let reader = sqlite.open_reader().expect("it opens");
    let queue = reader.queue().expect("it is whole");
    assert!(queue.batches()[0].is_green());
    assert_eq!(queue.hold().map(|hold| hold.reason.as_str()), Some("not today"));
    let flakes = reader.flakes().expect("it is whole");
    assert_eq!(
        flakes.flakiest_checks().iter().map(|(name, it)| (*name, it.flakes)).collect::<Vec<_>>(),
        [("tests", 1)]
    );
    // What several tasks passed together need not be verified again for the tree that it was.
    let (tree, config, environment) = (Tree::new("7e"), Digest::new("c0"), Digest::new("e0"));
    let pass = reader.pass(&tree, &config, &environment).expect("it can be read").expect("it is green");
    assert_eq!(pass.task, None);
}

#[test]
fn a_conflict_that_is_a_persons_is_in_the_inbox_until_it_is_due() {
    let place = Place::new();
    let sqlite = place.open();
    let story = Story::default();
    story.queue_up(&sqlite, 1);
    let until = Timestamp(9_000);
    let files = vec!["src/a.rs".to_owned(), "b c".to_owned()];
    let wait =
        WaitReason::Conflict { base: commit('b'), files, until, overdue: ConflictTimeoutAction::Defer };
    story.task(&sqlite, 1, Event::Conflicted { attempt: Attempt(1), base: commit('b'), paths: Vec::new() });
    story.task(&sqlite, 1, Event::Waited { wait, then: StepName::new("work") });
    let reader = sqlite.open_reader().expect("it opens");
    let inbox = reader.inbox().expect("it can be read");
    let short = commit('b').short_hash().to_owned();
    let asks = format!("resolve its conflict with {short} in src/a.rs, b c");
    assert_eq!(inbox.iter().map(|row| (row.task, row.asks.clone())).collect::<Vec<_>>(), [(TaskId(1), asks)]);
    let row = reader.row(TaskId(1)).expect("it can be read").expect("it is there");
    assert_eq!((row.wait.as_deref(), row.due), (Some("conflict"), Some(until)));
}

#[test]
fn a_fact_of_the_queue_that_was_changed_is_not_served() {
    let place = Place::new();
    let sqlite = place.open();
    engine(
        &sqlite,
        QueueEvent::Held { why: HoldReason::Person, reason: "not today".to_owned(), until: None },
    );
    drop(sqlite);
    place.tamper("UPDATE event SET body = replace(body, 'not', 'but')");
    let reader = StoreReader::open(&place.path()).expect("it opens");
    let seen = reader.queue().map(drop);
    assert!(matches!(seen, Err(StoreError::Corrupt { seq: Some(Seq(1)), .. })), "{seen:?}");
}

#[test]
fn a_fact_of_the_queue_that_cannot_follow_is_found_by_reader_rebuild_and_check() {
    let place = Place::new();
    let sqlite = place.open();
    engine(&sqlite, QueueEvent::Resumed);
    engine(&sqlite, QueueEvent::CheckBegan { batch: BatchId(7), count: 1 });
    let misplaced = |what: &str, seen: Result<(), StoreError>| match seen {
        Err(StoreError::Illegal { seq: Seq(2), source: EventOrderError::Queue(source) }) => {
            assert!(source.to_string().contains("B7"), "{what}: {source}");
        }
        other => panic!("{what}: {other:?}"),
    };
    misplaced("reader", sqlite.open_reader().expect("it opens").queue().map(drop));
    misplaced("rebuild", sqlite.rebuild_tables());
    drop(sqlite);
    let full = JournalOptions { check: JournalCheck::Full, ..JournalOptions::default() };
    misplaced("check", Sqlite::open(&place.path(), full).map(drop));
}

/// Tasks that follow one another, and the clock they share.
#[derive(Default)]
struct Story {
    tasks: std::cell::RefCell<BTreeMap<TaskId, Arc<Task>>>,
    at: std::cell::Cell<i64>,
}

impl Story {
    fn member(&self, task: u32) -> BatchMember {
        BatchMember { task: TaskId(task), attempt: Attempt(1), head: commit('a') }
    }

    /// Takes a task to the landing queue.
    fn queue_up(&self, sqlite: &Sqlite, task: u32) {
        let spec = TaskSpec::new("to stand in line").expect("a title");
        let (limits, driving) = (TaskLimits::default(), AgentAssignment::default());
        let (attempt, step, run, opening) =
            (Attempt(1), StepName::new("land"), RunId(1), AttemptStart::Queue);
        for event in [
            Event::Added { spec },
            Event::Offered { head: commit('a') },
            Event::Bound { flow: Arc::new(flow("loop")), limits, driving },
            Event::Entered { attempt, step, run, opening },
        ] {
            self.task(sqlite, task, event);
        }
    }

    fn task(&self, sqlite: &Sqlite, task: u32, event: Event) {
        self.at.set(self.at.get() + 1);
        let (id, at) = (TaskId(task), Timestamp(self.at.get()));
        let before = self.tasks.borrow_mut().remove(&id).map(Arc::unwrap_or_clone);
        let after = Arc::new(apply(before, id, at, &event).expect("the story is legal"));
        self.tasks.borrow_mut().insert(id, after.clone());
        let entries = vec![JournalEntry { at, fact: Fact::Task(id, event) }];
        sqlite.append(EntryBatch { entries, tasks: vec![after] }).expect("there is room");
    }
}

fn engine(sqlite: &Sqlite, event: QueueEvent) {
    let entry = JournalEntry { at: Timestamp(500), fact: Fact::Engine(EngineEvent::Queue(event)) };
    sqlite.append(EntryBatch { entries: vec![entry], tasks: Vec::new() }).expect("there is room");
}

fn report(outcome: CheckOutcome) -> GateReport {
    let command = CommandResult {
        name: "tests".to_owned(),
        command: "cargo test".to_owned(),
        required: true,
        outcome,
        exit: Some(0),
        took_ms: 5,
        limit_ms: 600_000,
        tests: Some(17),
        excerpt: String::new(),
        caps: None,
        denied: Vec::new(),
        copied_from_base: false,
    };
    GateReport {
        base: commit('b'),
        head: commit('a'),
        commit: commit('4'),
        tree: Tree::new("7e"),
        config: Digest::new("c0"),
        environment: Digest::new("e0"),
        commands: vec![command],
        took_ms: 9,
        reused: false,
        required: true,
        sandbox: None,
    }
}

fn commit(digit: char) -> Commit {
    Commit::new(&digit.to_string().repeat(40))
}

#[test]
fn loops_are_read_as_a_replay_of_everything_folds_them() {
    let place = Place::new();
    let sqlite = place.open();
    let mut history = History::new(7, 12);
    let mut entries: Vec<JournalEntry> = Vec::new();
    for round in 0..60_u32 {
        let batch = history.batch();
        entries.extend(batch.entries.iter().cloned());
        sqlite.append(batch).expect("there is room");
        let session = format!("s{}", round % 3);
        let task = TaskId(1 + round % 5);
        let event = match round % 4 {
            0 => AutoEvent::Started {
                session,
                module: format!("AiTasks/m{}", task.0),
                task,
                iterations_max: 20,
                minutes_max: 30,
            },
            2 => AutoEvent::StopAsked { session },
            _ => continue,
        };
        let entry =
            JournalEntry { at: Timestamp(i64::from(round)), fact: Fact::Engine(EngineEvent::Auto(event)) };
        entries.push(entry.clone());
        sqlite.append(EntryBatch { entries: vec![entry], tasks: Vec::new() }).expect("there is room");
    }
    drop(sqlite);
    let mut all = AgentLoops::default();
    for entry in &entries {
        match &entry.fact {
            Fact::Task(task, event) => all.note(entry.at, *task, event),
            Fact::Engine(EngineEvent::Auto(event)) => all.apply(entry.at, event),
            Fact::Engine(_) => {}
        }
    }
    let read = StoreReader::open(&place.path()).expect("it opens").loops().expect("it is whole");
    assert_eq!(read.all_loops(), all.all_loops());
    assert_eq!(read.all_loops().len(), 15);
    assert!(read.all_loops().iter().any(|it| it.over.is_some()), "some are over");
}

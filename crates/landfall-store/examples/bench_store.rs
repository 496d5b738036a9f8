//! Measures the store against floors of the same run, and prints a line of JSON for each figure.
//!
//! `cargo run --release -p landfall-store --example bench_store [quick] [append] [group] [replay] [read]`

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

use landfall_model::gate::{CheckOutcome, CommandResult, GateReport};
use landfall_model::{
    AgentAssignment, AgentExit, AgentRunTraces, AgentUsage, Attempt, AttemptStart, Commit, Digest, EndCode,
    EndKind, Ending, Event, Fact, Flow, FlowStep, JournalEntry, RunId, SessionStart, StepKind, StepName,
    Task, TaskId, TaskLimits, TaskSpec, Timestamp, Tree, Verdict, apply,
};
use landfall_store::{
    EntryBatch, Journal, JournalOptions, MemoryJournal, Seq, Sqlite, StoreReader, TaskFilter,
};
use rusqlite::{Connection, params};

const PRODUCERS: u32 = 32;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let quick = words.iter().any(|word| word == "quick");
    let wanted =
        |name: &str| words.iter().all(|word| word == "quick") || words.iter().any(|word| word == name);
    let folder = tempfile::tempdir().expect("a folder");
    if wanted("append") {
        single(folder.path(), if quick { 200 } else { 1_000 });
    }
    if wanted("group") {
        group(folder.path(), if quick { 100 } else { 600 });
    }
    if wanted("replay") {
        replay(folder.path(), if quick { &[20_000, 50_000] } else { &[200_000, 1_000_000] });
    }
    if wanted("read") {
        read(folder.path(), if quick { &[100, 10_000] } else { &[100, 1_000, 10_000, 100_000] });
    }
}

/// One caller, one event at a time.
fn single(folder: &Path, times: usize) {
    let (sqlite, _) = Sqlite::open(&folder.join("single.db"), JournalOptions::default()).expect("it opens");
    let raw = raw_open(&folder.join("single-raw.db"));
    let mut worker = Worker::new(1);
    sqlite.append(worker.start()).expect("there is room");
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    for nth in 0..times {
        let batch = worker.next();
        ours.push(timed(|| sqlite.append(batch).expect("there is room")));
        let body = raw_body(nth);
        floors.push(timed(|| raw_commit(&raw, nth as i64, [(1, body.as_str())])));
    }
    for it in [&mut floors, &mut ours] {
        it.sort_by(f64::total_cmp);
    }
    let at = |of: &[f64], percent: usize| of[(of.len() - 1) * percent / 100];
    println!(
        r#"{{"bench":"append","events":{times},"floor_p50_ms":{:.3},"floor_p99_ms":{:.3},"p50_ms":{:.3},"p99_ms":{:.3},"ratio":{:.2}}}"#,
        at(&floors, 50),
        at(&floors, 99),
        at(&ours, 50),
        at(&ours, 99),
        at(&ours, 50) / at(&floors, 50)
    );
}

/// Many callers: ours against the least that SQLite needs for an event and a row, in turns.
fn group(folder: &Path, each: u32) {
    let (mut raw, mut ours) = (Vec::new(), Vec::new());
    for round in 0..5 {
        raw.push(raw_group(&folder.join(format!("raw{round}.db")), each));
        ours.push(our_group(&folder.join(format!("ours{round}.db")), each));
    }
    let (raw, ours) = (median(raw), median(ours));
    println!(
        r#"{{"bench":"group commit","producers":{PRODUCERS},"raw_per_s":{raw:.0},"ours_per_s":{ours:.0},"ratio":{:.2}}}"#,
        ours / raw
    );
}

fn our_group(path: &Path, each: u32) -> f64 {
    let (sqlite, _) = Sqlite::open(path, JournalOptions::default()).expect("it opens");
    let mut workers: Vec<Worker> = (1..=PRODUCERS).map(Worker::new).collect();
    for worker in &mut workers {
        sqlite.append(worker.start()).expect("there is room");
    }
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for worker in &mut workers {
            let sqlite = sqlite.clone();
            scope.spawn(move || {
                for _ in 0..each {
                    sqlite.append(worker.next()).expect("there is room");
                }
            });
        }
    });
    f64::from(each * PRODUCERS) / begun.elapsed().as_secs_f64()
}

struct RawRequest {
    task: u32,
    body: String,
    answer: SyncSender<()>,
}

fn raw_group(path: &Path, each: u32) -> f64 {
    let conn = raw_open(path);
    let (requests, taken) = sync_channel(1024);
    let writer = std::thread::spawn(move || raw_writer(&conn, &taken));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for task in 1..=PRODUCERS {
            let requests = requests.clone();
            scope.spawn(move || {
                for nth in 0..each {
                    let (answer, answered) = sync_channel(1);
                    let body = raw_body(nth as usize);
                    requests.send(RawRequest { task, body, answer }).expect("the writer runs");
                    answered.recv().expect("the writer answers");
                }
            });
        }
    });
    let per_s = f64::from(each * PRODUCERS) / begun.elapsed().as_secs_f64();
    drop(requests);
    writer.join().expect("it ends well");
    per_s
}

fn raw_writer(conn: &Connection, requests: &Receiver<RawRequest>) {
    let mut seq = 0_i64;
    while let Ok(first) = requests.recv() {
        let mut group = vec![first];
        group.extend(requests.try_iter().take(255));
        seq = raw_commit(conn, seq, group.iter().map(|it| (it.task, it.body.as_str())));
        for request in group {
            request.answer.send(()).expect("the producer waits");
        }
    }
}

fn raw_open(path: &Path) -> Connection {
    let conn = Connection::open(path).expect("it opens");
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE event (seq INTEGER PRIMARY KEY, at INTEGER, task INTEGER, kind TEXT, body TEXT) STRICT;
         CREATE TABLE task (id INTEGER PRIMARY KEY, title TEXT, status TEXT, changed INTEGER, count INTEGER) STRICT;
         CREATE INDEX task_status ON task (status);",
    )
    .expect("it is new");
    conn
}

fn raw_body(nth: usize) -> String {
    format!(
        r#"{{"attempt":1,"iteration":{nth},"exit":{{"code":0}},"verdict":"continue","took_ms":1234,"usage":{{"tokens_in":12,"tokens_cached":3,"tokens_out":34,"turns":4,"micro_usd":56,"micro_usd_priced":0}},"head":"{nth:040x}"}}"#
    )
}

fn raw_commit<'a>(conn: &Connection, mut seq: i64, events: impl IntoIterator<Item = (u32, &'a str)>) -> i64 {
    conn.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
    for (task, body) in events {
        seq += 1;
        conn.prepare_cached("INSERT INTO event VALUES (?1, ?2, ?3, 'iteration-ended', ?4)")
            .and_then(|mut it| it.execute(params![seq, seq, task, body]))
            .expect("there is room");
        conn.prepare_cached(
            "INSERT INTO task VALUES (?1, 'a title', 'active', ?2, 1)
             ON CONFLICT (id) DO UPDATE SET status = excluded.status, changed = excluded.changed, count = count + 1",
        )
        .and_then(|mut it| it.execute(params![task, seq]))
        .expect("there is room");
    }
    conn.execute_batch("COMMIT").expect("there is room");
    seq
}

/// Replay of a file against decoding the same bodies from memory.
fn replay(folder: &Path, sizes: &[u64]) {
    let path = folder.join("replay.db");
    let (sqlite, _) = Sqlite::open(&path, JournalOptions::default()).expect("it opens");
    let memory = MemoryJournal::new();
    let mut written = 0;
    let mut task = 0;
    for size in sizes {
        let begun = Instant::now();
        let mut pending = Vec::new();
        let from = written;
        while written < *size {
            task += 1;
            let batch = lifecycle(TaskId(task));
            written += batch.entries.len() as u64;
            memory.append(batch.clone()).expect("memory takes all");
            pending.push(sqlite.append_later(batch));
        }
        for pending in pending {
            pending.wait().expect("there is room");
        }
        let filled = (written - from) as f64 / begun.elapsed().as_secs_f64();
        let mut floors = Vec::new();
        let mut ours = Vec::new();
        let mut folds = Vec::new();
        for _ in 0..3 {
            floors.push(timed(|| replayed(&memory)));
            ours.push(timed(|| replayed(&sqlite)));
            folds.push(timed(|| folded(&sqlite)));
        }
        let (floor, ours, fold) = (median(floors), median(ours), median(folds));
        println!(
            r#"{{"bench":"replay","events":{written},"tasks":{task},"floor_ms":{floor:.0},"ours_ms":{ours:.0},"ratio":{:.2},"with_apply_ms":{fold:.0},"filled_per_s":{filled:.0}}}"#,
            ours / floor
        );
    }
    let bytes = std::fs::metadata(&path).expect("it is there").len();
    let rebuild = timed(|| sqlite.rebuild_tables().expect("it is whole"));
    drop(sqlite);
    let open = timed(|| drop(Sqlite::open(&path, JournalOptions::default()).expect("it opens")));
    let quick = JournalOptions { check: landfall_store::JournalCheck::Quick, ..JournalOptions::default() };
    let check = timed(|| drop(Sqlite::open(&path, quick).expect("it opens")));
    println!(
        r#"{{"bench":"open","events":{written},"mib":{},"open_ms":{open:.1},"quick_check_ms":{check:.0},"rebuild_ms":{rebuild:.0}}}"#,
        bytes >> 20
    );
}

fn replayed(journal: &dyn Journal) {
    let mut count = 0_u64;
    let each = &mut |_: Seq, entry: JournalEntry| {
        count += u64::from(std::hint::black_box(&entry).at.0 > 0);
        Ok(())
    };
    journal.replay(Seq::FIRST, each).expect("it is whole");
    assert!(count > 0);
}

fn folded(journal: &dyn Journal) {
    let mut tasks: Vec<Option<Task>> = Vec::new();
    let each = &mut |_: Seq, entry: JournalEntry| {
        if let Fact::Task(id, event) = &entry.fact {
            let at = id.0 as usize;
            if tasks.len() <= at {
                tasks.resize(at + 1, None);
            }
            let task = apply(tasks[at].take(), *id, entry.at, event)?;
            tasks[at] = Some(task);
        }
        Ok(())
    };
    journal.replay(Seq::FIRST, each).expect("it is whole");
}

/// What a command without an engine does: open, ask once, close.
fn read(folder: &Path, sizes: &[u32]) {
    for size in sizes {
        let path = folder.join(format!("read{size}.db"));
        let (sqlite, _) = Sqlite::open(&path, JournalOptions::default()).expect("it opens");
        let pending: Vec<_> = (1..=*size)
            .map(|id| {
                let id = TaskId(id);
                sqlite.append_later(if id.0.is_multiple_of(3) { lifecycle(id) } else { added(id) })
            })
            .collect();
        for pending in pending {
            pending.wait().expect("there is room");
        }
        drop(sqlite);
        let open = || StoreReader::open(&path).expect("it opens");
        let times = |ask: &dyn Fn()| median((0..20).map(|_| timed(ask)).collect());
        let bare = times(&|| drop(open()));
        let status = times(&|| drop(open().counts().expect("it reads")));
        let list = times(&|| drop(open().tasks(&TaskFilter::default(), None, 50).expect("it reads")));
        let next = times(&|| drop(open().next(1).expect("it reads")));
        let why = times(&|| {
            let reader = open();
            let task = TaskId(size / 3 * 3);
            drop((
                reader.task(task).expect("it reads").expect("it is there"),
                reader.unmet(task).expect("it reads"),
            ));
        });
        println!(
            r#"{{"bench":"read","tasks":{size},"open_ms":{bare:.3},"status_ms":{status:.3},"list_ms":{list:.3},"next_ms":{next:.3},"why_ms":{why:.3}}}"#
        );
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> f64 {
    let begun = Instant::now();
    std::hint::black_box(work());
    begun.elapsed().as_secs_f64() * 1e3
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// A task whose agent runs again and again: one event a batch.
struct Worker {
    task: Arc<Task>,
    running: bool,
}

impl Worker {
    fn new(id: u32) -> Self {
        let EntryBatch { tasks, .. } = added(TaskId(id));
        Self { task: tasks[0].clone(), running: false }
    }

    /// The batch after which only iterations follow.
    fn start(&mut self) -> EntryBatch {
        let batch = chain(self.task.id, beginning());
        self.task = batch.tasks[0].clone();
        batch
    }

    fn next(&mut self) -> EntryBatch {
        let iteration = self.task.counters.iterations + 1;
        let event = if self.running { ended(iteration) } else { began(iteration) };
        self.running = !self.running;
        let at = Timestamp(self.task.changed.0 + 7);
        let task = apply(Some(Task::clone(&self.task)), self.task.id, at, &event).expect("it can follow");
        self.task = Arc::new(task);
        let entry = JournalEntry { at, fact: Fact::Task(self.task.id, event) };
        EntryBatch { entries: vec![entry], tasks: vec![self.task.clone()] }
    }
}

fn added(id: TaskId) -> EntryBatch {
    chain(id, vec![Event::Added { spec: spec() }])
}

/// A whole life in one batch: twenty events.
fn lifecycle(id: TaskId) -> EntryBatch {
    let mut events = beginning();
    for iteration in 1..=3 {
        events.extend([began(iteration), ended(iteration)]);
    }
    let (step, run) = (StepName::new("work"), RunId(1));
    let enter =
        |attempt, opening| Event::Entered { attempt: Attempt(attempt), step: step.clone(), run, opening };
    let landed = Event::Landed {
        attempt: Attempt(3),
        commit: commit(3),
        base_before: commit(1),
        tree: Tree::new(&format!("{:040x}", id.0)),
        proof: "the tree was computed again and is the same".to_owned(),
    };
    let report =
        Event::Reported { attempt: Attempt(4), report: Digest::new(&"ab".repeat(32)), certificate: None };
    events.extend([
        enter(2, AttemptStart::Check),
        Event::Collected { attempt: Attempt(2), head: commit(2), leftovers: false },
        Event::Verified { attempt: Attempt(2), report: gate(id), evidence: None },
        enter(3, AttemptStart::Land),
        landed,
        enter(4, AttemptStart::Report),
        report,
        Event::Ended(Ending { kind: EndKind::Done, code: EndCode::Landed, detail: String::new() }),
    ]);
    chain(id, events)
}

fn chain(id: TaskId, events: Vec<Event>) -> EntryBatch {
    let mut task = None;
    let mut at = 1_700_000_000_000 + i64::from(id.0);
    let mut entries = Vec::new();
    for event in events {
        at += 1_000;
        task = Some(apply(task, id, Timestamp(at), &event).expect("it can follow"));
        entries.push(JournalEntry { at: Timestamp(at), fact: Fact::Task(id, event) });
    }
    EntryBatch { entries, tasks: task.into_iter().map(Arc::new).collect() }
}

fn beginning() -> Vec<Event> {
    vec![
        Event::Added { spec: spec() },
        Event::Bound { flow: flow(), limits: TaskLimits::default(), driving: AgentAssignment::default() },
        Event::Entered {
            attempt: Attempt(1),
            step: StepName::new("work"),
            run: RunId(1),
            opening: AttemptStart::Workspace,
        },
        Event::WorkspaceMade { attempt: Attempt(1), base: commit(1) },
    ]
}

fn began(iteration: u32) -> Event {
    Event::IterationBegan { attempt: Attempt(1), iteration, talk: SessionStart::New }
}

fn ended(iteration: u32) -> Event {
    Event::IterationEnded {
        attempt: Attempt(1),
        iteration,
        exit: AgentExit::Code(0),
        verdict: Verdict::Continue,
        took_ms: 61_234,
        usage: AgentUsage {
            tokens_in: 51_200,
            tokens_out: 3_400,
            micro_usd: 412_000,
            ..AgentUsage::default()
        },
        head: Some(commit(iteration)),
        traces: AgentRunTraces::default(),
    }
}

fn gate(id: TaskId) -> GateReport {
    let command = CommandResult {
        name: "tests".to_owned(),
        command: "cargo test --workspace".to_owned(),
        required: true,
        outcome: CheckOutcome::Pass,
        exit: Some(0),
        took_ms: 12_345,
        limit_ms: 600_000,
        tests: Some(412),
        excerpt: "test result: ok. 412 passed; 0 failed; 0 ignored\n".to_owned(),
        caps: None,
        denied: Vec::new(),
        copied_from_base: false,
    };
    GateReport {
        base: commit(1),
        head: commit(2),
        commit: commit(3),
        tree: Tree::new(&format!("{:040x}", id.0)),
        config: Digest::new(&"c0".repeat(32)),
        environment: Digest::new(&"e0".repeat(32)),
        commands: vec![command],
        took_ms: 12_400,
        reused: false,
        required: true,
        sandbox: None,
    }
}

fn spec() -> TaskSpec {
    let mut spec = TaskSpec::new("make the parser accept a trailing comma in lists").expect("a title");
    spec.body = "The grammar refuses `[1, 2,]`.\nAccept it, and say so in the reference.".to_owned();
    spec.criteria = vec!["`cargo test parser` passes".to_owned()];
    spec.tags = ["next".parse().expect("a tag")].into();
    spec
}

fn flow() -> Arc<Flow> {
    static FLOW: std::sync::OnceLock<Arc<Flow>> = std::sync::OnceLock::new();
    let make = || {
        let step = |name: &str, kind| FlowStep {
            name: StepName::new(name),
            phase: name.to_owned(),
            kind,
            before: None,
            agent: None,
            on: Vec::new(),
        };
        let agent =
            StepKind::Agent { prompt: "work".to_owned(), output: Vec::new(), iterate: true, every: 0 };
        Arc::new(Flow {
            name: "loop".to_owned(),
            about: "Work until it is done and verified.".to_owned(),
            entry: StepName::new("work"),
            entries: std::collections::BTreeMap::new(),
            commands: std::collections::BTreeMap::new(),
            style: None,
            steps: vec![step("work", agent), step("verify", StepKind::Verify), step("land", StepKind::Land)],
        })
    };
    FLOW.get_or_init(make).clone()
}

fn commit(nth: u32) -> Commit {
    Commit::new(&format!("{nth:040x}"))
}

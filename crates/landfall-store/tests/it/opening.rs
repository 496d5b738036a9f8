//! Whose file it is, whether it can be written to, and who else writes.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use landfall_model::{TaskId, TaskStatus};
use landfall_store::{
    EntryBatch, Journal, JournalCheck, JournalOptions, Seq, Sqlite, StoreError, StoreReader,
};

use crate::history::History;
use crate::{Place, add, all};

#[test]
fn a_new_journal_is_its_owners_alone_and_opens_again() {
    let place = Place::new();
    let (sqlite, opened) = Sqlite::open(&place.path(), JournalOptions::default()).expect("it opens");
    assert!(opened.created && !opened.unclean && opened.head.seq == Seq::ZERO);
    assert_eq!(fs::metadata(place.path()).expect("it is there").mode() & 0o777, 0o600);
    sqlite.append(add(1)).expect("there is room");
    let head = sqlite.head().expect("it has one");
    drop(sqlite);
    assert!(!wal(&place.path()).exists(), "a closed journal is one file");
    let (_, opened) = Sqlite::open(&place.path(), JournalOptions::default()).expect("it opens");
    assert!(!opened.created && !opened.unclean && opened.head == head);
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let place = Place::new();
    place.open().append(add(1)).expect("there is room");
    place.tamper("PRAGMA user_version = 99");
    let before = fs::read(place.path()).expect("it can be read");
    let error = place.refused();
    assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
    assert!(error.to_string().contains("schema 99"), "{error}");
    assert!(matches!(StoreReader::open(&place.path()), Err(StoreError::Newer { .. })));
    assert_eq!(fs::read(place.path()).expect("it can be read"), before);
}

#[test]
fn a_journal_of_the_first_schema_is_brought_up_to_date_by_whoever_writes() {
    let place = Place::new();
    let sqlite = place.open();
    sqlite.append(add(1)).expect("there is room");
    let head = sqlite.head().expect("it has one");
    drop(sqlite);
    place.tamper(&format!("DROP INDEX event_kind; {WITHOUT_COUNTS} PRAGMA user_version = 1"));
    let older = StoreReader::open(&place.path()).map(drop);
    assert!(matches!(older, Err(StoreError::Older { found: 1, known: 3, .. })), "{older:?}");
    let sqlite = place.open_with(JournalOptions { check: JournalCheck::Full, ..JournalOptions::default() });
    assert_eq!(sqlite.head().expect("it has one"), head);
    let reader = sqlite.open_reader().expect("it opens");
    assert!(reader.queue().expect("it can be read").is_empty());
    assert_eq!(reader.row(TaskId(1)).expect("it can be read").map(|row| row.seq), Some(Seq(1)));
}

/// What the third schema brought.
const WITHOUT_COUNTS: &str = "DROP TABLE tally; DROP TABLE work; DROP INDEX task_waits;";

#[test]
fn a_journal_without_counts_gets_them_from_its_events() {
    let place = Place::new();
    let sqlite = place.open();
    let mut history = History::new(11, 30);
    for _ in 0..120 {
        sqlite.append(history.batch()).expect("there is room");
    }
    let live = sqlite.read_tables().expect("they can be read");
    assert!(!live.counts.is_empty() && !live.work.is_empty(), "the history counts nothing");
    drop(sqlite);
    place.tamper(&format!("{WITHOUT_COUNTS} PRAGMA user_version = 2"));
    let sqlite = place.open();
    assert_eq!(live.first_difference(&sqlite.read_tables().expect("they can be read")), None);
}

#[test]
fn a_file_of_someone_else_is_refused_and_left_alone() {
    let place = Place::new();
    place.tamper("CREATE TABLE theirs (x)");
    assert!(matches!(place.refused(), StoreError::NotOurs { .. }));
    fs::write(place.path(), "A letter, long enough to be mistaken for nothing else at all.\n".repeat(50))
        .expect("it can be written");
    assert!(matches!(place.refused(), StoreError::Corrupt { .. }));
}

#[test]
fn what_is_not_there_is_named() {
    let place = Place::new();
    assert!(matches!(StoreReader::open(&place.path()), Err(StoreError::Missing { .. })));
    let nowhere = place.path().join("deeper/journal.db");
    assert!(Sqlite::open(&nowhere, JournalOptions::default()).is_err());
    // A crash between making the file and making the tables leaves an empty file.
    fs::write(place.path(), "").expect("it can be written");
    assert!(matches!(StoreReader::open(&place.path()), Err(StoreError::Missing { .. })));
    place.open().append(add(1)).expect("an empty file becomes a journal");
}

#[test]
fn a_full_disk_refuses_without_loss() {
    let place = Place::new();
    let sqlite = place.open_with(JournalOptions { pages_max: Some(60), ..JournalOptions::default() });
    let huge = || {
        let mut batch = add(900);
        for id in 901..3_000 {
            let more = add(id);
            batch.entries.extend(more.entries);
            batch.tasks.extend(more.tasks);
        }
        batch
    };
    // A batch that does not fit does not take its neighbours down.
    let pending: Vec<_> = [add(1), huge(), add(2)].map(|batch| sqlite.append_later(batch)).into();
    let answers: Vec<_> = pending.into_iter().map(landfall_store::PendingAck::wait).collect();
    assert!(matches!(answers[..], [Ok(_), Err(StoreError::Full), Ok(_)]), "{answers:?}");
    let mut written = 2;
    let refused = loop {
        match sqlite.append(add(written + 1)) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, StoreError::Full), "{refused}");
    assert!(
        matches!(sqlite.append(add(written + 1)), Err(StoreError::Full)),
        "it stays an answer, not an end"
    );
    assert_eq!(sqlite.head().expect("it has one").seq, Seq(u64::from(written)));
    drop(sqlite);
    let sqlite = place.open();
    assert_eq!(all(&sqlite).expect("the chain is whole").len(), written as usize);
    sqlite.append(add(written + 1)).expect("there is room again");
}

#[test]
fn a_schema_that_could_not_be_made_leaves_nothing_behind() {
    let place = Place::new();
    let cramped = JournalOptions { pages_max: Some(5), ..JournalOptions::default() };
    let refused = Sqlite::open(&place.path(), cramped).map(drop);
    assert!(matches!(refused, Err(StoreError::Full)), "{refused:?}");
    assert!(matches!(StoreReader::open(&place.path()), Err(StoreError::Missing { .. })));
    place.open().append(add(1)).expect("with room it is made as if for the first time");
}

#[test]
fn of_two_writers_the_one_with_the_old_picture_is_refused() {
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
    one.append(add(1)).expect("nobody was before it");
    let refused = two.append(add(2));
    assert!(matches!(refused, Err(StoreError::TwoWriters { seq: Seq(1) })), "{refused:?}");
    assert!(matches!(two.append(add(2)), Err(StoreError::TwoWriters { .. })), "for good");
    one.append(add(2)).expect("the first goes on");
    assert_eq!(all(&one).expect("the chain is whole").len(), 2);
}

#[test]
fn a_file_that_is_gone_or_another_takes_no_more_events() {
    type Spoil = fn(&Path);
    let gone: [(&str, Spoil); 3] = [
        ("removed", |path| fs::remove_file(path).expect("it is there")),
        ("replaced", |path| {
            let copy = path.with_extension("copy");
            fs::copy(path, &copy).expect("it is there");
            fs::rename(&copy, path).expect("it is there");
        }),
        ("without its log", |path| fs::remove_file(wal(path)).expect("it is there")),
    ];
    for (what, how) in gone {
        let place = Place::new();
        let sqlite = place.open();
        sqlite.append(add(1)).expect("there is room");
        how(&place.path());
        for _ in 0..2 {
            let refused = sqlite.append(add(2));
            assert!(matches!(refused, Err(StoreError::Replaced { .. })), "{what}: {refused:?}");
        }
    }
}

#[test]
fn thirty_two_callers_get_one_dense_sequence() {
    let place = Place::new();
    let sqlite = place.open();
    let mut lasts: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..32)
            .map(|caller| {
                let sqlite = sqlite.clone();
                scope.spawn(move || {
                    let mut lasts = Vec::new();
                    for nth in 0..25 {
                        let last = sqlite.append(add(caller * 25 + nth + 1)).expect("there is room").last;
                        let head = sqlite.head().expect("it has one").seq;
                        assert!(head >= last, "what was acknowledged is in the head");
                        lasts.push(last.0);
                    }
                    assert!(lasts.is_sorted(), "a caller's batches keep their order");
                    lasts
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("it ends well")).collect()
    });
    lasts.sort_unstable();
    assert_eq!(lasts, (1..=800).collect::<Vec<_>>());
    assert_eq!(all(&sqlite).expect("the chain is whole").len(), 800);
}

#[test]
fn the_log_stays_short_and_is_emptied_when_nothing_happens() {
    let place = Place::new();
    let sqlite = place.open();
    let mut most = 0;
    for round in 0..60 {
        let pending: Vec<_> = (1..=100)
            .map(|nth| {
                let mut batch = add(round * 100 + nth);
                let body = "words ".repeat(700);
                let landfall_model::Fact::Task(_, landfall_model::Event::Added { spec }) =
                    &mut batch.entries[0].fact
                else {
                    unreachable!("it adds a task")
                };
                spec.body = body;
                sqlite.append_later(batch)
            })
            .collect();
        for pending in pending {
            pending.wait().expect("there is room");
        }
        most = fs::metadata(wal(&place.path())).expect("it is open").len().max(most);
    }
    let whole = fs::metadata(place.path()).expect("it is there").len();
    assert!(most < 64 << 20 && whole > 16 << 20, "a log of {most} bytes for {whole}");
    let deadline = Instant::now() + Duration::from_secs(20);
    while fs::metadata(wal(&place.path())).expect("it is open").len() > 0 {
        assert!(Instant::now() < deadline, "the log is not emptied");
        std::thread::yield_now();
    }
}

#[test]
fn a_folder_that_takes_no_files_can_be_read_but_not_written() {
    let place = Place::new();
    let folder = place.folder.path().join("still");
    fs::create_dir(&folder).expect("there is room");
    let path = folder.join("journal.db");
    let (sqlite, _) = Sqlite::open(&path, JournalOptions::default()).expect("it opens");
    sqlite.append(add(1)).expect("there is room");
    drop(sqlite);
    let mode =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    mode(place.folder.path(), 0o755);
    mode(&path, 0o444);
    mode(&folder, 0o555);

    let program = place.folder.path().join("program");
    fs::copy(std::env::current_exe().expect("it runs"), &program).expect("there is room");
    mode(&program, 0o755);
    let mut child = Command::new(program);
    child
        .args(["--exact", "opening::child_reads_a_still_folder", "--ignored", "--nocapture"])
        .env("LANDFALL_STORE_TEST_JOURNAL", &path)
        .current_dir(place.folder.path())
        .stdin(Stdio::null());
    if fs::metadata(&folder).expect("it is there").uid() == 0 {
        child.uid(65_534).gid(65_534); // modes do not hold root back
    }
    let said = child.output().expect("it starts");
    mode(&folder, 0o755);
    let (out, talk) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    assert!(said.status.success() && out.contains("read 1, write refused"), "{out}\n{talk}");
}

#[test]
#[ignore = "a child of the test above"]
fn child_reads_a_still_folder() {
    let Some(path) = std::env::var_os("LANDFALL_STORE_TEST_JOURNAL") else { return };
    let path = Path::new(&path);
    let reader = StoreReader::open(path).expect("it can be read");
    assert_eq!(reader.task(TaskId(1)).expect("it can be read").expect("it is there").id, TaskId(1));
    let ready = reader.counts().expect("it can be read").count_of(TaskStatus::Ready);
    let refused = Sqlite::open(path, JournalOptions::default()).map(drop);
    assert!(matches!(refused, Err(StoreError::ReadOnly { .. })), "{refused:?}");
    println!("read {ready}, write refused");
}

#[test]
fn an_empty_batch_leaves_the_journal_as_it_is() {
    let place = Place::new();
    let sqlite = place.open();
    sqlite.append(add(1)).expect("there is room");
    assert_eq!(sqlite.append(EntryBatch::default()).expect("nothing to do").last, Seq(1));
    assert_eq!(all(&sqlite).expect("the chain is whole").len(), 1);
}

fn wal(path: &Path) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

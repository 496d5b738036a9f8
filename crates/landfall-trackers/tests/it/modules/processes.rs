//! What other processes do to us and we to them: killed writers, locks that somebody holds.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use landfall_trackers::modules::lock::{Lock, ModuleLockError, ModuleLockHolder};
use landfall_trackers::modules::write::read_below;
use landfall_trackers::modules::{ExpectedFile, Metadata, MetadataFormat, ModuleWrite, apply};

use super::NOW;

const ROLE: &str = "LANDFALL_TEST_MODULES_ROLE";
const FOLDER: &str = "LANDFALL_TEST_MODULES_FOLDER";

/// This binary again, as somebody else.
fn child(role: &str, folder: &Path) -> Child {
    Command::new(std::env::current_exe().expect("we know who we are"))
        .args(["--exact", "modules::processes::somebody_else", "--ignored", "--nocapture"])
        .env(ROLE, role)
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it can be started")
}

fn wait_for(child: &mut Child, word: &str) -> String {
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    for line in lines {
        let line = line.expect("it is text");
        // The harness writes on the same line.
        if let Some(at) = line.find(word) {
            return line[at..].to_owned();
        }
    }
    panic!("the child ended without saying {word:?}");
}

/// The other process: not a test of its own.
#[test]
#[ignore = "played by other tests as a second process"]
fn somebody_else() {
    let (Ok(role), Ok(folder)) = (std::env::var(ROLE), std::env::var(FOLDER)) else { return };
    let folder = Path::new(&folder);
    match role.as_str() {
        "write" => {
            println!("begun");
            write_for_ever(folder);
        }
        "hold" => {
            let _lock = Lock::take(folder, "theirs", NOW).expect("nobody holds it");
            println!("held");
            std::thread::sleep(Duration::from_secs(60)); // until we are killed
        }
        "race" => {
            let outcome = match Lock::take(folder, "racer", NOW) {
                Ok(lock) => {
                    // Whoever finds a mark is not alone.
                    let mark = folder.join("inside");
                    let alone = fs::OpenOptions::new().write(true).create_new(true).open(&mark).is_ok();
                    std::thread::sleep(Duration::from_millis(20));
                    fs::remove_file(&mark).expect("we made it");
                    drop(lock);
                    if alone { "won" } else { "crowded" }
                }
                Err(ModuleLockError::Held(_) | ModuleLockError::Unknown) => "refused",
                Err(ModuleLockError::Io { source, .. }) => panic!("{source}"),
            };
            println!("outcome {outcome}");
        }
        other => panic!("{other} is no role"),
    }
}

/// Large enough that a write is often caught in the middle.
fn version(number: u64) -> String {
    let title = "x".repeat(300_000);
    format!(
        "{{\"title\": \"{title}\", \"status\": \"draft\", \"revision\": {number}, \"branch\": \"end-{number}\"}}\n"
    )
}

fn write_for_ever(folder: &Path) {
    let mut number = 1;
    let mut there = ModuleWrite::new(".index.json", &version(0));
    loop {
        let next = ModuleWrite::Put {
            path: ".index.json".to_owned(),
            bytes: version(number).into_bytes(),
            expect: ExpectedFile::Digest(there.digest()),
        };
        let applied = apply(folder, std::slice::from_ref(&next)).expect("it can be written");
        assert!(applied.refused.is_empty());
        there = next;
        number += 1;
    }
}

#[test]
fn a_writer_that_is_killed_leaves_the_old_file_or_the_new_one() {
    let mut leftovers = 0;
    for round in 0..25_u64 {
        let folder = tempfile::tempdir().expect("a scratch folder");
        apply(folder.path(), &[ModuleWrite::new(".index.json", &version(0))]).expect("written");
        let mut child = child("write", folder.path());
        wait_for(&mut child, "begun");
        std::thread::sleep(Duration::from_micros(2_000 + round * 900));
        child.kill().expect("it runs"); // SIGKILL
        child.wait().expect("it was ours");
        let bytes = read_below(folder.path(), ".index.json").expect("it can be read").expect("it is there");
        let text = String::from_utf8(bytes).expect("it is text");
        let read = Metadata::read(MetadataFormat::IndexJson, &text)
            .unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_eq!(text, version(read.module.revision), "round {round}: one whole version");
        let beside = || fs::read_dir(folder.path()).expect("it is there").count() - 1;
        leftovers += beside();
        // Whoever writes next clears up after the dead.
        let next = ModuleWrite::Put {
            path: ".index.json".to_owned(),
            bytes: b"{}".to_vec(),
            expect: ExpectedFile::Digest(ModuleWrite::new("", &text).digest()),
        };
        assert!(apply(folder.path(), &[next]).expect("written").refused.is_empty());
        assert_eq!(beside(), 0, "round {round}");
    }
    assert!(leftovers > 0, "no writer was caught in the middle: this test shows nothing");
}

#[test]
fn a_living_holder_is_respected_and_a_dead_one_is_not() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let mut holder = child("hold", folder.path());
    wait_for(&mut holder, "held");
    let pid = holder.id();
    match Lock::take(folder.path(), "ours", NOW) {
        Err(ModuleLockError::Held(ModuleLockHolder { session, pid: held_by, timestamp })) => {
            assert_eq!(
                (session.as_str(), held_by, timestamp.as_str()),
                ("theirs", pid, "2026-03-10T12:00:00Z")
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(Lock::find_holder(folder.path(), NOW).map(|holder| holder.pid), Some(pid));
    holder.kill().expect("it runs");
    holder.wait().expect("it was ours");
    assert!(folder.path().join(".lock").exists(), "the dead leave their lock");
    let lock = Lock::take(folder.path(), "ours", NOW).expect("the dead hold nothing");
    let names: Vec<_> =
        fs::read_dir(folder.path()).expect("there").map(|it| it.expect("read").file_name()).collect();
    assert_eq!(names, [".lock"], "nothing stale stays");
    assert!(matches!(Lock::take(folder.path(), "again", NOW), Err(ModuleLockError::Held(_))));
    drop(lock);
    assert!(!folder.path().join(".lock").exists());
}

#[test]
fn a_lock_without_words_is_respected_while_it_may_be_being_written() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join(".lock");
    fs::write(&path, "").expect("written");
    let made = fs::metadata(&path).expect("there").modified().expect("known");
    let made = made.duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_millis();
    let at = |later: i64| landfall_model::Timestamp(i64::try_from(made).expect("fits") + later);
    assert!(matches!(Lock::take(folder.path(), "ours", at(1_000)), Err(ModuleLockError::Unknown)));
    assert!(Lock::take(folder.path(), "ours", at(60_000)).is_ok());
}

#[test]
fn of_many_that_come_at_once_to_a_dead_lock_no_two_are_inside() {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut won = 0;
    for _ in 0..4 {
        assert!(Instant::now() < deadline, "too slow");
        let folder = tempfile::tempdir().expect("a scratch folder");
        let mut dead = Command::new("true").spawn().expect("it can be started");
        let pid = dead.id();
        dead.wait().expect("it was ours");
        fs::write(folder.path().join(".lock"), format!(r#"{{"session":"dead","pid":{pid},"timestamp":""}}"#))
            .expect("written");
        let racers: Vec<Child> = (0..6).map(|_| child("race", folder.path())).collect();
        let outcomes: Vec<String> = racers
            .into_iter()
            .map(|racer| {
                let output = racer.wait_with_output().expect("it was ours");
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
                String::from_utf8_lossy(&output.stdout).into_owned()
            })
            .collect();
        assert!(!outcomes.iter().any(|it| it.contains("outcome crowded")), "{outcomes:?}");
        won += outcomes.iter().filter(|it| it.contains("outcome won")).count();
        let left: Vec<_> = fs::read_dir(folder.path()).expect("there").collect();
        assert!(left.is_empty(), "{left:?}");
    }
    assert!(won >= 4, "somebody gets in each time");
}

#[test]
fn a_session_takes_over_what_it_holds_itself_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let first = Lock::take(folder.path(), "one", NOW).expect("nobody holds it");
    assert!(matches!(Lock::take_over(folder.path(), "other", NOW), Err(ModuleLockError::Held(_))));
    assert!(matches!(Lock::take_over(folder.path(), "", NOW), Err(ModuleLockError::Held(_))));
    let later = landfall_model::Timestamp(NOW.0 + 1_000);
    let second = Lock::take_over(folder.path(), "one", later).expect("it is its own");
    drop(first);
    assert!(Lock::find_holder(folder.path(), NOW).is_some(), "who lost it does not give it back");
    drop(second);
    assert!(Lock::find_holder(folder.path(), NOW).is_none());
}

//! What was acknowledged is there, whatever ends the process. The child is this very binary.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use landfall_store::{Journal, JournalOptions, Sqlite, StoreReader};

use crate::history::Rng;
use crate::{Place, add, all, rounds};

const PATH: &str = "LANDFALL_STORE_TEST_JOURNAL";

#[test]
fn every_acknowledged_event_survives_kill_9() {
    const SEED: u64 = 5;
    let place = Place::new();
    let mut rng = Rng::new(SEED);
    for round in 0..rounds(20) {
        let mut child = Killed(child(Command::new(this()), &place.path()));
        let mut lines = BufReader::new(child.0.stdout.take().expect("it is piped"));
        let mut acked = 0;
        for _ in 0..=rng.below(40) {
            acked = ack(&mut lines).expect("the child goes on until it is killed").max(acked);
        }
        child.0.kill().expect("it runs");
        let status = child.0.wait().expect("it ends");
        assert_eq!(status.signal(), Some(9), "seed {SEED}, round {round}");
        while let Some(more) = ack(&mut lines) {
            acked = more.max(acked);
        }

        let reader = StoreReader::open(&place.path()).expect("it can be read before anyone mends it");
        let seen = reader.head().expect("it has one").seq;
        assert!(seen.0 >= acked, "seed {SEED}, round {round}: {acked} was acknowledged");
        drop(reader);
        let (sqlite, opened) = Sqlite::open(&place.path(), JournalOptions::default()).expect("it opens");
        assert_eq!(opened.head.seq, seen, "seed {SEED}, round {round}");
        assert!(opened.unclean, "seed {SEED}, round {round}");
        assert!(opened.head.seq.0 >= acked, "seed {SEED}, round {round}: {acked} was acknowledged");
        assert_eq!(all(&sqlite).expect("the chain is whole").len() as u64, opened.head.seq.0);
        drop(sqlite);
        let (_, opened) = Sqlite::open(&place.path(), JournalOptions::default()).expect("it opens");
        assert!(!opened.unclean, "seed {SEED}, round {round}");
    }
}

#[test]
fn a_write_the_disk_refuses_ends_the_process_and_loses_nothing_acknowledged() {
    let place = Place::new();
    // The limit on the size of files makes writes fail with an error that is not "no room".
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(r#"trap "" XFSZ; ulimit -c 0; ulimit -f 600; exec "$0" "$@""#).arg(this());
    let mut child = Killed(child(shell, &place.path()));
    let mut lines = BufReader::new(child.0.stdout.take().expect("it is piped"));
    let mut acked = 0;
    while let Some(more) = ack(&mut lines) {
        acked = more.max(acked);
    }
    let mut talk = String::new();
    child.0.stderr.take().expect("it is piped").read_to_string(&mut talk).expect("it is text");
    let status = child.0.wait().expect("it ends");
    assert_eq!(status.signal(), Some(6), "{talk}");
    assert!(talk.contains("the disk failed under the journal"), "{talk}");
    assert!(acked > 0);

    let (sqlite, opened) = Sqlite::open(&place.path(), JournalOptions::default()).expect("it opens");
    assert!(opened.head.seq.0 >= acked);
    assert_eq!(all(&sqlite).expect("the chain is whole").len() as u64, opened.head.seq.0);
}

/// Appends from four threads until it is killed, and says what was acknowledged.
#[test]
#[ignore = "a child of the tests above"]
fn child_appends_until_killed() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let (sqlite, opened) = Sqlite::open(Path::new(&path), JournalOptions::default()).expect("it opens");
    let first = u32::try_from(opened.head.seq.0).expect("a few rounds") + 1;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let sqlite = sqlite.clone();
            scope.spawn(move || {
                for nth in 0.. {
                    let Ok(appended) = sqlite.append(add(first + nth * 4 + thread)) else { return };
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "ack {}", appended.last)
                        .and_then(|()| out.flush())
                        .expect("the parent listens");
                }
            });
        }
    });
}

fn this() -> std::path::PathBuf {
    std::env::current_exe().expect("it runs")
}

fn child(mut command: Command, journal: &Path) -> Child {
    command
        .args(["--exact", "crash::child_appends_until_killed", "--ignored", "--nocapture"])
        .env(PATH, journal)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

/// The next acknowledgement; none when the child is gone.
fn ack(lines: &mut impl BufRead) -> Option<u64> {
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).expect("it is text");
        if line.is_empty() {
            return None;
        }
        // A line that was cut off by the end is no acknowledgement.
        if let Some(seq) = line.strip_suffix('\n').and_then(|line| line.rsplit_once("ack ")) {
            return Some(seq.1.parse().expect("a number"));
        }
    }
}

/// A child that does not outlive its test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill(); // it may be gone already
        let _ = self.0.wait(); // as above
    }
}

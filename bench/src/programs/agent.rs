//! The agent of the benchmarks: it does next to nothing, so that what is measured is what is around it.
//!
//! Built by the bench itself with plain `rustc`, so it knows nothing but the standard library.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const COMPLETE: &str = "<landfall>COMPLETE</landfall>\n";
const BLOCKED: &str = "<landfall>BLOCKED: the benchmark is over</landfall>\n";

fn main() {
    let began = now_ns();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["loop", iterations] => again_and_again(began, number(iterations)),
        ["edit", files] => {
            read_prompt();
            edit(number(files));
            say(COMPLETE);
        }
        ["think", least_ms, most_ms, files] => {
            read_prompt();
            think(number(least_ms), number(most_ms));
            edit(number(files));
            say(COMPLETE);
        }
        ["sleep", seconds] => {
            log("up");
            std::thread::sleep(Duration::from_secs(number(seconds)));
        }
        ["write", bytes_per_second, seconds] => {
            write(number(bytes_per_second), number(seconds));
            say(BLOCKED);
        }
        ["chat", bytes_per_second, seconds] => write(number(bytes_per_second), number(seconds)),
        ["flood", bytes] => flood(number(bytes)),
        _ => std::process::exit(2),
    }
}

/// Nothing, until the last iteration; then a change that can land. Notes when it began and ended.
fn again_and_again(began: u128, iterations: u64) {
    read_prompt();
    if number(&variable("LANDFALL_ITERATION")) >= iterations {
        edit(1);
        say(COMPLETE);
    }
    log(&format!("{began} {}", now_ns()));
}

/// Takes its time, a different one for each task, and says every second that it is still at it.
fn think(least_ms: u64, most_ms: u64) {
    const STEP_MS: u64 = 1_000;
    let task = number(variable("LANDFALL_TASK").trim_start_matches('T'));
    let spread = (most_ms - least_ms).max(1);
    let mut left_ms = least_ms + task * 7_919 % spread; // a prime, so that neighbours differ
    if std::env::var_os("BENCH_LOG").is_some() {
        log("up");
    }
    while left_ms > 0 {
        let step_ms = left_ms.min(STEP_MS);
        std::thread::sleep(Duration::from_millis(step_ms));
        left_ms -= step_ms;
        say("still thinking about it\n");
    }
}

/// Changes the file of this task, and its test if it has one, and commits both.
fn edit(files: u64) {
    let task = variable("LANDFALL_TASK");
    let place = number(task.trim_start_matches('T')) % files;
    let path = format!("src/d{}/f{place}.txt", place / 100);
    let mut file = OpenOptions::new().append(true).open(&path).expect("the file is there");
    writeln!(file, "changed by {task} at {}", now_ns()).expect("room on the disk");
    drop(file);
    let mut paths = vec![path];
    let test = format!("tests/t{place}.txt");
    if let Ok(mut file) = OpenOptions::new().append(true).open(&test) {
        writeln!(file, "changed by {task}").expect("room on the disk");
        paths.push(test);
    }
    let done = Command::new("git")
        .args(["-c", "user.name=Bench", "-c", "user.email=bench@example.com", "-c", "gc.auto=0"])
        .args([
            "-c",
            "maintenance.auto=false",
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "commit.gpgSign=false",
        ])
        .args(["commit", "-q", "-m", &task, "--"])
        .args(&paths)
        .stdin(Stdio::null())
        .status()
        .expect("git is there");
    assert!(done.success(), "git commit");
}

/// Writes at an even pace and notes how many bytes went out, the longest that one write took in microseconds, and how
/// many milliseconds it took in all.
fn write(bytes_per_second: u64, seconds: u64) {
    const STEP: Duration = Duration::from_millis(10);
    read_prompt();
    let line = "x".repeat(99) + "\n";
    let chunk = line.repeat(usize::try_from(bytes_per_second / 100 / 100).expect("small").max(1));
    let (began, end) = (Instant::now(), Duration::from_secs(seconds));
    let mut out = std::io::stdout().lock();
    let (mut bytes, mut longest, mut due) = (0, Duration::ZERO, Duration::ZERO);
    while due < end {
        let before = Instant::now();
        out.write_all(chunk.as_bytes()).and_then(|()| out.flush()).expect("somebody reads");
        longest = longest.max(before.elapsed());
        bytes += chunk.len();
        due += STEP;
        std::thread::sleep(due.saturating_sub(began.elapsed()));
    }
    log(&format!("{bytes} {} {}", longest.as_micros(), began.elapsed().as_millis()));
}

/// Writes as fast as somebody reads, and notes how many milliseconds that took.
fn flood(bytes: u64) {
    read_prompt();
    let chunk = ("y".repeat(127) + "\n").repeat(512);
    let began = Instant::now();
    let mut out = std::io::stdout().lock();
    for _ in 0..bytes / chunk.len() as u64 {
        out.write_all(chunk.as_bytes()).expect("somebody reads");
    }
    out.flush().expect("somebody reads");
    log(&format!("{} {}", bytes / chunk.len() as u64 * chunk.len() as u64, began.elapsed().as_millis()));
    out.write_all(BLOCKED.as_bytes()).and_then(|()| out.flush()).expect("somebody reads");
}

fn read_prompt() {
    let mut prompt = Vec::new();
    std::io::stdin().read_to_end(&mut prompt).expect("stdin can be read");
}

fn say(words: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(words.as_bytes()).and_then(|()| out.flush()).expect("somebody reads");
}

/// One line in the file that the bench reads, written whole.
fn log(line: &str) {
    let path = variable("BENCH_LOG");
    let mut file = OpenOptions::new().create(true).append(true).open(path).expect("the log can be written");
    file.write_all(format!("{line}\n").as_bytes()).expect("room on the disk");
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is set"))
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is a number"))
}

fn now_ns() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos()
}

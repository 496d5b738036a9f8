//! Named crash points: places where a test may end the process as a power cut would.
//!
//! A point costs one atomic load when nothing is armed. Arm one with `LANDFALL_CRASH=name` or
//! `LANDFALL_CRASH=name:3` (the third time it is passed); with `panic:` before it, the thread panics there, as by a fault of
//! ours, and the process goes on. `LANDFALL_CRASH_LIST=path` appends every
//! point that is passed to a file, so that a test can learn the names instead of keeping a list.

use std::io::Write as _;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

struct CrashTrigger {
    panics: bool,
    name: String,
    at: u32,
    passed: AtomicU32,
}

struct CrashPlan {
    armed: Option<CrashTrigger>,
    list: Option<std::ffi::OsString>,
}

/// Read once from the environment. Only a test sets it.
static PLAN: LazyLock<CrashPlan> = LazyLock::new(read_plan);

/// Passes the crash point `name`; does not return if a test armed it.
pub fn pass_point(name: &str) {
    if let Some(path) = &PLAN.list
        && let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(path)
    {
        // One write a line: points are passed by many threads. A test reads this; in production the list is never set.
        let _ = file.write_all(format!("{name}\n").as_bytes());
    }
    if let Some(armed) = &PLAN.armed
        && armed.name == name
        && armed.passed.fetch_add(1, Ordering::Relaxed) + 1 == armed.at
    {
        assert!(!armed.panics, "a test asked for a fault at `{name}`");
        std::process::abort();
    }
}

fn read_plan() -> CrashPlan {
    let armed = std::env::var("LANDFALL_CRASH").ok().map(|text| {
        let (panics, text) = match text.strip_prefix("panic:") {
            Some(rest) => (true, rest.to_owned()),
            None => (false, text),
        };
        let (name, at) = match text.rsplit_once(':') {
            Some((name, at)) if at.parse::<u32>().is_ok() => {
                (name.to_owned(), at.parse().expect("just parsed"))
            }
            _ => (text, 1),
        };
        CrashTrigger { panics, name, at, passed: AtomicU32::new(0) }
    });
    CrashPlan { armed, list: std::env::var_os("LANDFALL_CRASH_LIST") }
}

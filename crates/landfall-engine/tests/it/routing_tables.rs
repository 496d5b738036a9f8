//! Where every result leads and what every status allows, in the words of the three systems these flows contain.
//!
//! Written from their tables and from nothing else, to be compared with the flows as they are loaded. Columns of a route:
//! step, result, next; `*` is any result.

/// The first: a daemon dispatches every step.
pub const V1: [(&str, &str, &str); 10] = [
    ("check", "PASS", "exec"),
    ("check", "NEEDS_REVISION", "plan"),
    ("check", "ACCEPT", "report"),
    ("check", "NEEDS_FIX", "exec"),
    ("check", "REPLAN", "plan"),
    ("check", "BLOCKED", "stop"),
    ("plan", "*", "check"),
    ("exec", "done", "check"),
    ("exec", "blocked", "stop"),
    ("report", "*", "stop"),
];

/// The second: an agent loops by itself. Work is merged between acceptance and report.
pub const V2: [(&str, &str, &str); 14] = [
    ("check", "PASS", "exec"),
    ("check", "NEEDS_REVISION", "plan"),
    ("check", "ACCEPT", "merge"),
    ("check", "NEEDS_FIX", "exec"),
    ("check", "REPLAN", "plan"),
    ("check", "BLOCKED", "stop"),
    ("check", "CONTINUE", "exec"),
    ("plan", "*", "check"),
    ("exec", "done", "check"),
    ("exec", "mid-exec", "check"),
    ("exec", "blocked", "stop"),
    ("merge", "success", "report"),
    ("merge", "conflict", "stop"),
    ("report", "*", "stop"),
];

/// The third: stages that converge. Everything is verified before it is checked; nothing is merged on the way.
pub const V3: [(&str, &str, &str); 16] = [
    ("check", "PASS", "exec"),
    ("check", "NEEDS_REVISION", "plan"),
    ("check", "ACCEPT", "converge"),
    ("check", "NEEDS_FIX", "exec"),
    ("check", "REPLAN", "plan"),
    ("check", "BLOCKED", "stop"),
    ("check", "CONTINUE", "exec"),
    ("plan", "done", "verify"),
    ("exec", "done", "verify"),
    ("exec", "mid-exec", "verify"),
    ("exec", "blocked", "stop"),
    ("verify", "*", "check"),
    ("target", "done", "plan"),
    ("converge", "rollback", "plan"),
    ("converge", "advanced", "plan"),
    ("converge", "satisfied", "report"),
];

/// Where a task begins that is found in a status, by system. `status/phase` where the phase decides.
pub const ENTRIES_V1: [(&str, &str); 6] = [
    ("draft", "plan"),
    ("planning", "check post-plan"),
    ("review", "exec"),
    ("executing", "check post-exec"),
    ("re-planning", "check post-plan"),
    ("complete", "report"),
];

/// The second decides by phase when it plans again.
pub const ENTRIES_V2: [(&str, &str); 8] = [
    ("draft", "plan"),
    ("planning", "check post-plan"),
    ("review", "exec"),
    ("executing", "check post-exec"),
    ("re-planning", "plan"),
    ("re-planning/needs-plan", "plan"),
    ("re-planning/needs-check", "check post-plan"),
    ("complete", "report"),
];

/// The third begins with the objective.
pub const ENTRIES_V3: [(&str, &str); 9] = [
    ("draft", "target"),
    ("planning", "plan"),
    ("review", "exec"),
    ("executing", "check post-exec"),
    ("re-planning", "plan"),
    ("re-planning/needs-plan", "plan"),
    ("re-planning/needs-check", "check post-plan"),
    ("evolving", "next-stage"),
    ("satisfied", "report"),
];

/// The statuses of the second, in the order of its matrix.
pub const STATUSES: [&str; 8] =
    ["draft", "planning", "review", "executing", "re-planning", "complete", "blocked", "cancelled"];

/// Its commands.
pub const COMMANDS: [&str; 8] =
    ["plan", "annotate", "check post-plan", "check mid-exec", "check post-exec", "exec", "merge", "cancel"];

/// What a command makes of a status, when it ends with this result. None: it is rejected.
pub fn becomes(status: &str, command: &str, result: &str) -> Option<&'static str> {
    match (status, command, result) {
        ("complete" | "cancelled", _, _) => None,
        (_, "cancel", _) => Some("cancelled"),
        ("draft" | "planning" | "blocked", "plan" | "annotate", _) => Some("planning"),
        ("review" | "executing" | "re-planning", "plan" | "annotate", _) => Some("re-planning"),
        ("planning" | "re-planning", "check post-plan", "PASS") => Some("review"),
        ("planning", "check post-plan", "NEEDS_REVISION") => Some("planning"),
        ("re-planning", "check post-plan", "NEEDS_REVISION") => Some("re-planning"),
        ("planning" | "re-planning", "check post-plan", "BLOCKED") => Some("blocked"),
        ("executing", "check mid-exec", "CONTINUE" | "NEEDS_FIX") => Some("executing"),
        ("executing", "check mid-exec", "REPLAN") => Some("re-planning"),
        ("executing", "check mid-exec", "BLOCKED") => Some("blocked"),
        ("executing", "check post-exec", "ACCEPT" | "NEEDS_FIX") => Some("executing"),
        ("executing", "check post-exec", "REPLAN") => Some("re-planning"),
        ("review", "exec", _) => Some("executing"),
        ("executing", "exec", "blocked") => Some("blocked"),
        ("executing", "exec", _) => Some("executing"),
        ("executing", "merge", "success") => Some("complete"),
        ("executing", "merge", "conflict") => Some("executing"),
        _ => None,
    }
}

/// Whether a command is taken at all in a status.
pub fn allows(status: &str, command: &str) -> bool {
    let results =
        ["", "PASS", "NEEDS_REVISION", "BLOCKED", "CONTINUE", "NEEDS_FIX", "REPLAN", "ACCEPT", "success"];
    results.iter().any(|result| becomes(status, command, result).is_some())
}

/// Whether a task in `status` is at or past `min` in `draft < planning < review < executing < complete`. Blocked,
/// planning again and cancelled satisfy nothing.
pub fn satisfies(status: &str, min: &str) -> bool {
    let place = |word: &str| {
        ["draft", "planning", "review", "executing", "complete"].iter().position(|it| *it == word)
    };
    match (place(status), place(min)) {
        (Some(status), Some(min)) => status >= min,
        _ => false,
    }
}

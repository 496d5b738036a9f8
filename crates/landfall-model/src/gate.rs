//! Verification: what the commands of a project showed, and what that amounts to.

use crate::{Commit, Digest, Tree};

/// What one check, or all of them together, came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It passed.
    Pass,
    /// It failed and then passed on the same tree.
    Flaky,
    /// It fails on the base as well.
    PreExisting,
    /// It failed.
    Fail,
    /// It ran into its limit.
    Timeout,
    /// It could not run, or ran no test: this says nothing about the work.
    Broken,
}

impl Outcome {
    /// Every outcome there is.
    pub const ALL: [Self; 6] =
        [Self::Pass, Self::Flaky, Self::PreExisting, Self::Fail, Self::Timeout, Self::Broken];

    /// The word people read.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Flaky => "flaky",
            Self::PreExisting => "pre-existing",
            Self::Fail => "fail",
            Self::Timeout => "timeout",
            Self::Broken => "broken",
        }
    }

    /// Whether work may land on it.
    #[must_use]
    pub fn is_green(self) -> bool {
        match self {
            Self::Pass | Self::Flaky => true,
            Self::PreExisting | Self::Fail | Self::Timeout | Self::Broken => false,
        }
    }
}

/// What one run of one command showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// How it exited; none when a signal ended it or it never ran.
    pub exit: Option<i32>,
    /// Whether it ran into its limit.
    pub timed_out: bool,
    /// How many tests it says it ran, if its output tells.
    pub tests: Option<u64>,
}

impl Seen {
    fn alone(&self) -> Outcome {
        if self.timed_out {
            return Outcome::Timeout;
        }
        match (self.exit, self.tests) {
            (Some(126 | 127), _) | (None, _) | (_, Some(0)) => Outcome::Broken,
            (Some(0), _) => Outcome::Pass,
            (Some(_), _) => Outcome::Fail,
        }
    }
}

/// What a command came to, from its run on the work, the same again, and its run on the base.
///
/// A command that could not run is broken whatever the others say. A failure is the work's own only if the base
/// does not fail in the same way and a second run does not pass.
#[must_use]
pub fn weigh(on_work: &Seen, again: Option<&Seen>, on_base: Option<&Seen>) -> Outcome {
    let first = on_work.alone();
    match first {
        Outcome::Pass | Outcome::Broken | Outcome::Flaky | Outcome::PreExisting => first,
        Outcome::Fail | Outcome::Timeout => {
            if again.is_some_and(|seen| seen.alone() == Outcome::Pass) {
                Outcome::Flaky
            } else if on_base.is_some_and(|seen| !seen.alone().is_green()) {
                Outcome::PreExisting
            } else {
                first
            }
        }
    }
}

/// One command of the gate and what it came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandResult {
    /// What the person calls it.
    pub name: String,
    /// What was run.
    pub command: String,
    /// Whether the work may not land without it.
    pub required: bool,
    /// What it came to.
    pub outcome: Outcome,
    /// How it exited.
    pub exit: Option<i32>,
    /// How long it took.
    pub took_ms: u64,
    /// How long it might have taken.
    pub limit_ms: u64,
    /// How many tests it ran, if its output tells.
    pub tests: Option<u64>,
    /// The end of its output.
    pub excerpt: String,
}

/// All that verification saw of one tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateReport {
    /// The base the work was merged into.
    pub base: Commit,
    /// The work.
    pub head: Commit,
    /// The merge of both: what would land.
    pub commit: Commit,
    /// Its tree: what was checked out.
    pub tree: Tree,
    /// The verify section, as it stands on the base.
    pub config: Digest,
    /// The machine and tools it ran with.
    pub environment: Digest,
    /// Each command.
    pub commands: Vec<CommandResult>,
    /// How long it took in all.
    pub took_ms: u64,
    /// Whether a pass for the same tree, section and machine was taken over instead of a run.
    pub reused: bool,
    /// Whether a gate without commands is refused.
    pub required: bool,
}

impl GateReport {
    /// What it amounts to: the worst of the required commands. No command at all is a pass with a loud warning,
    /// unless the project requires one.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let worst = self.commands.iter().filter(|it| it.required).map(|it| it.outcome).max();
        match worst {
            Some(outcome) => outcome,
            None if self.required => Outcome::Broken,
            None => Outcome::Pass,
        }
    }

    /// Whether nothing at all was checked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// How many tests ran in all, if any command told.
    #[must_use]
    pub fn tests(&self) -> Option<u64> {
        let told: Vec<u64> = self.commands.iter().filter_map(|it| it.tests).collect();
        if told.is_empty() { None } else { Some(told.iter().sum()) }
    }

    /// The commands that keep the work from landing.
    pub fn offenders(&self) -> impl Iterator<Item = &CommandResult> {
        self.commands.iter().filter(|it| it.required && !it.outcome.is_green())
    }
}

/// How many tests a runner says it ran. None when no known runner's closing line is there, so that a linter or a
/// build is not mistaken for a suite without tests.
#[must_use]
pub fn count_tests(output: &str) -> Option<u64> {
    let mut sum: Option<u64> = None;
    let mut add = |n: u64| sum = Some(sum.unwrap_or(0) + n);
    for line in output.lines() {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("test result:") {
            // cargo test: "test result: ok. 3 passed; 1 failed; 0 ignored; …", one line a binary
            add(number_before(rest, "passed").unwrap_or(0) + number_before(rest, "failed").unwrap_or(0));
        } else if line.starts_with("Summary [") && line.contains("tests run:") {
            // nextest: "Summary [ 0.2s] 12 tests run: 12 passed, 0 skipped"
            add(number_before(line, "tests run:").unwrap_or(0));
        } else if line.starts_with("Starting 0 tests") {
            add(0);
        } else if line.starts_with("no tests ran") || line.contains("= no tests ran") {
            add(0); // pytest
        } else if line.starts_with('=') && line.ends_with('=') && line.contains(" in ") {
            // pytest: "===== 2 passed, 1 failed in 0.1s ====="
            let counted = ["passed", "failed", "error", "errors", "xfailed", "xpassed"];
            let told: Vec<u64> = counted.iter().filter_map(|word| number_before(line, word)).collect();
            if !told.is_empty() {
                add(told.iter().sum());
            }
        } else if let Some(rest) = line.strip_prefix("# tests ").or_else(|| line.strip_prefix("ℹ tests ")) {
            add(rest.trim().parse().unwrap_or(0)); // node --test
        } else if line.starts_with("Tests:") && line.contains("total") {
            add(number_before(line, "total").unwrap_or(0)); // jest
        } else if line.starts_with("No tests found") || line.starts_with("No test files found") {
            add(0); // jest, vitest
        } else if line.starts_with("Tests ") && line.contains("passed") && line.contains('(') {
            add(number_before(line, "passed").unwrap_or(0) + number_before(line, "failed").unwrap_or(0)); // vitest
        } else if line.starts_with("--- PASS:") || line.starts_with("--- FAIL:") {
            add(1); // go test -v
        } else if let Some(rest) = line.strip_prefix("Ran ")
            && rest.contains(" test")
        {
            add(rest.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0)); // unittest
        } else if let Some((passed, failed)) = plain_tally(line) {
            add(passed + failed);
        }
    }
    sum
}

/// "3 passed, 0 failed" alone on its line, whatever the language.
fn plain_tally(line: &str) -> Option<(u64, u64)> {
    let mut parts = line.split(", ");
    let passed = parts.next()?.strip_suffix(" passed")?.parse().ok()?;
    let failed = parts.next()?.strip_suffix(" failed")?.parse().ok()?;
    Some((passed, failed))
}

fn number_before(line: &str, word: &str) -> Option<u64> {
    let at = find_word(line, word)?;
    line[..at].split_whitespace().next_back()?.trim_matches(|c: char| !c.is_ascii_digit()).parse().ok()
}

fn find_word(line: &str, word: &str) -> Option<usize> {
    line.match_indices(word).map(|(at, _)| at).find(|at| {
        line[..*at].ends_with(' ')
            && line[at + word.len()..].chars().next().is_none_or(|next| !next.is_ascii_alphabetic())
    })
}

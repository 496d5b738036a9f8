//! How many tests a runner says it ran, read from its closing lines.
//!
//! What was skipped did not run. A text without a known closing line gives no number at all, so that a linter or a
//! build is not mistaken for a suite without tests.

use std::borrow::Cow;

/// How many tests ran, if the output of a known runner tells.
#[must_use]
pub fn count_tests(output: &str) -> Option<u64> {
    let mut tally = TestCounter::default();
    for line in output.lines() {
        tally.read(without_colour(line).trim());
    }
    tally.total_tests()
}

#[derive(Default)]
struct TestCounter {
    ran: Option<u64>,
    /// Said apart from a number that includes them.
    skipped: u64,
    /// Go: a package without tests.
    empty_package: bool,
    /// Go: a package that has tests, or did not build; how many it has is not said.
    other_package: bool,
    /// Jest: a file of tests could not be loaded. Then no test ran, but not for want of tests.
    failed_suite: bool,
}

impl TestCounter {
    fn add(&mut self, count: u64) {
        self.ran = Some(self.ran.unwrap_or(0).saturating_add(count));
    }

    fn total_tests(&self) -> Option<u64> {
        match self.ran {
            Some(0) if self.failed_suite => None,
            Some(ran) => Some(ran.saturating_sub(self.skipped)),
            None if self.empty_package && !self.other_package => Some(0),
            None => None,
        }
    }

    fn read(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("test result:") {
            // cargo test: "test result: ok. 3 passed; 1 failed; 0 ignored; …", one line a binary
            self.add(number_before(rest, "passed").saturating_add(number_before(rest, "failed")));
        } else if line.starts_with("Summary [") && (line.contains("tests run:") || line.contains("test run:"))
        {
            // nextest: "Summary [ 0.2s] 12 tests run: 12 passed, 0 skipped"
            self.add(number_before(line, "tests run:").saturating_add(number_before(line, "test run:")));
        } else if line.starts_with("Starting 0 tests") || line.starts_with("NO TESTS RAN") {
            self.add(0); // nextest, unittest
        } else if line.starts_with("No tests found") || line.starts_with("No test files found") {
            self.add(0); // jest, vitest
        } else if let Some(count) = parse_pytest_summary(line) {
            self.add(count);
        } else if let Some(count) = parse_node_count(line, "tests") {
            self.add(count);
        } else if let Some(count) = parse_node_count(line, "skipped") {
            self.skipped = self.skipped.saturating_add(count);
        } else if line.starts_with("Test Suites:") {
            self.failed_suite = number_before(line, "failed") > 0;
        } else if line.starts_with("Tests:") && line.ends_with("total") {
            // jest: "Tests: 1 failed, 1 skipped, 2 passed, 4 total"
            let skipped = number_before(line, "skipped").saturating_add(number_before(line, "todo"));
            self.add(number_before(line, "total").saturating_sub(skipped));
        } else if let Some(count) = line.strip_prefix("Tests ").and_then(parse_vitest_summary) {
            self.add(count);
        } else if line.starts_with("--- PASS:") || line.starts_with("--- FAIL:") {
            self.add(1); // go test -v
        } else if line.starts_with("--- SKIP:") {
            self.add(0);
        } else if line.ends_with("[no test files]") || line.ends_with("[no tests to run]") {
            self.empty_package = true;
        } else if line.starts_with("ok  \t") || line.starts_with("FAIL\t") {
            self.other_package = true;
        } else if let Some(count) = parse_unittest_summary(line) {
            self.add(count);
        } else if line.starts_with("OK (") || line.starts_with("FAILED (") {
            let skipped = line.split_once("skipped=").map_or("", |(_, rest)| rest);
            self.skipped = self.skipped.saturating_add(leading_number(skipped).unwrap_or(0));
        } else if let Some(count) = parse_mocha_line(line).or_else(|| parse_plain_summary(line)) {
            self.add(count);
        }
    }
}

/// "==== 1 failed, 2 passed, 3 skipped in 0.12s ====", or the same without the bars.
fn parse_pytest_summary(line: &str) -> Option<u64> {
    let (told, took) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    if !took.starts_with(|c: char| c.is_ascii_digit()) || !took.contains('s') {
        return None;
    }
    if told == "no tests ran" {
        return Some(0);
    }
    let mut ran: u64 = 0;
    for part in told.split(", ") {
        let (count, word) = part.split_once(' ')?;
        let count: u64 = count.parse().ok()?;
        match word {
            "passed" | "failed" | "error" | "errors" | "xfailed" | "xpassed" => {
                ran = ran.saturating_add(count)
            }
            "skipped" | "deselected" | "warning" | "warnings" | "rerun" => {}
            _ => return None,
        }
    }
    Some(ran)
}

/// "# tests 3" or "ℹ tests 3", alone on its line.
fn parse_node_count(line: &str, word: &str) -> Option<u64> {
    let rest = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "))?;
    rest.strip_prefix(word)?.strip_prefix(' ')?.parse().ok()
}

/// What follows "Tests ": "1 failed | 2 passed | 3 skipped (6)".
fn parse_vitest_summary(rest: &str) -> Option<u64> {
    let (told, _) = rest.trim().strip_suffix(')')?.rsplit_once(" (")?;
    let mut ran: u64 = 0;
    for part in told.split(" | ") {
        let (count, word) = part.trim().split_once(' ')?;
        let count: u64 = count.parse().ok()?;
        match word {
            "passed" | "failed" | "expected fail" => ran = ran.saturating_add(count),
            "skipped" | "todo" => {}
            _ => return None,
        }
    }
    Some(ran)
}

/// "Ran 3 tests in 0.001s"; bun says "Ran 3 tests across 1 files."
fn parse_unittest_summary(line: &str) -> Option<u64> {
    let (count, rest) = line.strip_prefix("Ran ")?.split_once(' ')?;
    if rest.starts_with("test ") || rest.starts_with("tests ") { count.parse().ok() } else { None }
}

/// "3 passing (5ms)", "1 failing".
fn parse_mocha_line(line: &str) -> Option<u64> {
    let (count, rest) = line.split_once(' ')?;
    let told = rest == "failing" || rest == "passing" || rest.starts_with("passing (");
    if told { count.parse().ok() } else { None }
}

/// "3 passed, 0 failed" alone on its line, whatever the language.
fn parse_plain_summary(line: &str) -> Option<u64> {
    let mut parts = line.split(", ");
    let passed: u64 = parts.next()?.strip_suffix(" passed")?.parse().ok()?;
    let failed: u64 = parts.next()?.strip_suffix(" failed")?.parse().ok()?;
    Some(passed.saturating_add(failed))
}

/// The number before `word`, or none at all: 0.
fn number_before(line: &str, word: &str) -> u64 {
    let found = line.match_indices(word).map(|(at, _)| at).find(|at| {
        line[..*at].ends_with(' ')
            && line[at + word.len()..].chars().next().is_none_or(|next| !next.is_ascii_alphabetic())
    });
    let number = |at: usize| line[..at].split_whitespace().next_back()?.parse().ok();
    found.and_then(number).unwrap_or(0)
}

fn leading_number(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// Runners that think they speak to a terminal colour their lines.
pub(crate) fn without_colour(line: &str) -> Cow<'_, str> {
    if !line.contains('\u{1b}') {
        return Cow::Borrowed(line);
    }
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // An escape of this kind runs up to its first letter.
            for code in chars.by_ref() {
                if code.is_ascii_alphabetic() {
                    break;
                }
            }
        } else {
            plain.push(c);
        }
    }
    Cow::Owned(plain)
}

//! What a test run was like: the reports of nextest and Playwright read together, and the summary printed at the end.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus};

/// A test that cannot run here prints a line that begins with this and returns.
/// `landfall_testkit::skip_test` writes it.
pub const SKIP_MARK: &str = "landfall-skip: ";

const SLOWEST_SHOWN: usize = 10;

/// The results of one or more test runners.
#[derive(Debug, Default)]
pub struct TestReport {
    passed: usize,
    failed: Vec<String>,
    /// Tests that failed, were run again and passed.
    flaky: Vec<String>,
    /// Tests that could not run, by reason.
    skipped: BTreeMap<String, Vec<String>>,
    times: Vec<(Duration, String)>,
}

impl TestReport {
    /// Adds a report in JUnit format.
    pub fn add_junit(&mut self, path: &Path) -> Result<()> {
        let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        let report =
            Report::deserialize_from_str(&text).with_context(|| format!("parse {}", path.display()))?;
        for suite in &report.test_suites {
            for case in &suite.test_cases {
                self.add_case(&format!("{} {}", suite.name.as_str(), case.name.as_str()), case);
            }
        }
        Ok(())
    }

    fn add_case(&mut self, name: &str, case: &TestCase) {
        self.times.push((case.time.unwrap_or_default(), name.to_owned()));
        match &case.status {
            TestCaseStatus::Success { flaky_runs, .. } => {
                if !flaky_runs.is_empty() {
                    self.flaky.push(name.to_owned());
                }
                match skip_reason(case) {
                    Some(reason) => self.skipped.entry(reason).or_default().push(name.to_owned()),
                    None => self.passed += 1,
                }
            }
            TestCaseStatus::NonSuccess { kind: NonSuccessKind::Failure | NonSuccessKind::Error, .. } => {
                self.failed.push(name.to_owned());
            }
            TestCaseStatus::Skipped { message, .. } => {
                let reason = message.as_ref().map_or("skipped by the test", |message| message.as_str());
                self.skipped.entry(reason.to_owned()).or_default().push(name.to_owned());
            }
        }
    }

    pub fn add_flaky(&mut self, names: Vec<String>) {
        self.flaky.extend(names);
    }

    /// Notes that a whole set of tests did not run.
    pub fn add_missing_tool(&mut self, reason: &str) {
        self.skipped.entry(reason.to_owned()).or_default();
    }

    pub fn skips_any(&self) -> bool {
        !self.skipped.is_empty()
    }

    /// The ten slowest tests, every skipped test with its reason, every flaky and failed one, and the counts.
    pub fn summary(&self) -> String {
        let mut text = String::from("slowest tests:\n");
        let mut times: Vec<&(Duration, String)> = self.times.iter().collect();
        times.sort_by(|a, b| b.cmp(a));
        for (time, name) in times.iter().take(SLOWEST_SHOWN) {
            text.push_str(&format!("  {:>6.1} s  {name}\n", time.as_secs_f64()));
        }
        for (reason, names) in &self.skipped {
            text.push_str(&format!("skipped: {reason}\n"));
            names.iter().for_each(|name| text.push_str(&format!("  {name}\n")));
        }
        for (title, names) in [("flaky: failed once, then passed", &self.flaky), ("failed", &self.failed)] {
            if !names.is_empty() {
                text.push_str(&format!("{title}:\n  {}\n", names.join("\n  ")));
            }
        }
        text
    }

    /// The counts in one line, in the form that CI systems read.
    pub fn counts(&self) -> String {
        let skipped: usize = self.skipped.values().map(|names| names.len().max(1)).sum();
        let (passed, failed, flaky) = (self.passed, self.failed.len(), self.flaky.len());
        format!("tests: {passed} passed, {failed} failed, {skipped} skipped\nflaky: {flaky}")
    }
}

/// Why a test that passed did not run, if it says so.
fn skip_reason(case: &TestCase) -> Option<String> {
    let outputs = [&case.system_err, &case.system_out];
    let mut lines = outputs.into_iter().flatten().flat_map(|output| output.as_str().lines());
    lines.find_map(|line| line.trim().strip_prefix(SKIP_MARK)).map(str::to_owned)
}

//! What the checks of a forge say about a commit: which count against it, which failed before it, and which say nothing about
//! it at all.

use super::{CiStatus, Pipeline};
use crate::recovery::{Recoveries, RecoveryAction};
use crate::{StepName, Timestamp};

/// How long the checks of a forge are waited for. Ours have passed by then: what hangs there says nothing about the work.
const CI_WAIT_MS: u64 = 20 * 60 * 1000;
/// How long a check may stand in line before it counts as one that could not begin.
const QUEUE_MS: u64 = 10 * 60 * 1000;

/// A check of a forge, as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CiCheck {
    /// What it is called. It is known by all of it: the names of a matrix are long, and differ at their ends.
    pub name: String,
    /// The same, fit to be shown.
    pub shown: String,
    /// How it stands.
    pub stand: CiCheckState,
}

/// How a check of a forge stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CiCheckState {
    /// It waits for its turn.
    Queued,
    /// It runs.
    Running,
    /// It passed.
    Passed,
    /// It is over and says nothing either way.
    Silent,
    /// It failed; how, if its runner tells.
    Failed(Option<CiJobReport>),
    /// It was cancelled, timed out or could not begin.
    Broken,
}

/// What the runner of a failed check tells about it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CiJobReport {
    /// Its steps, in their order.
    pub steps: Vec<(String, StepEnd)>,
    /// What was remarked about the failure.
    pub remarks: Vec<String>,
}

/// How a step of a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepEnd {
    /// It passed, or was left out.
    Fine,
    /// It failed.
    Failed,
    /// It was broken off, or nobody saw its end.
    Cut,
}

/// Steps that are the runner's own: nothing of the work has run before they are through.
const OWN_STEPS: [&str; 3] = ["Set up job", "Set up runner", "Initialize containers"];
/// The step that fetches the work. What it does goes over the network and runs nothing of the work.
const FETCHES: &str = "Run actions/checkout";
/// What is said of a network that failed.
const NETWORK: [&str; 6] = [
    "could not resolve host",
    "connection timed out",
    "connection reset",
    "tls handshake timeout",
    "network is unreachable",
    "early eof",
];

impl CiJobReport {
    /// Why a job that failed says nothing about the work, if that is so. What its own steps remark is believed only of steps
    /// that run nothing of the work: whatever the work prints could say the same.
    #[must_use]
    pub fn broken_by(&self) -> Option<&'static str> {
        if self.steps.is_empty() {
            return Some("no step of it ran");
        }
        let failed = || self.steps.iter().filter(|(_, end)| *end == StepEnd::Failed).map(|(name, _)| name);
        if failed().next().is_none() {
            let cut = self.steps.iter().any(|(_, end)| *end == StepEnd::Cut);
            return cut.then_some("its runner went away");
        }
        if failed().all(|name| OWN_STEPS.contains(&name.as_str())) {
            return Some("it could not be set up");
        }
        let offline = self.remarks.iter().map(|remark| remark.to_lowercase());
        let offline = offline.into_iter().any(|remark| NETWORK.iter().any(|words| remark.contains(words)));
        (failed().all(|name| name.starts_with(FETCHES)) && offline).then_some("the network failed")
    }
}

impl CiCheck {
    /// Whether it failed for reasons that may be in the work.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        match &self.stand {
            CiCheckState::Failed(job) => job.as_ref().is_none_or(|job| job.broken_by().is_none()),
            CiCheckState::Queued
            | CiCheckState::Running
            | CiCheckState::Passed
            | CiCheckState::Silent
            | CiCheckState::Broken => false,
        }
    }

    /// Why it says nothing about the work, if it is over and says nothing.
    fn broken_reason(&self, stalled: bool) -> Option<String> {
        let why = match &self.stand {
            CiCheckState::Broken => return Some(self.shown.clone()),
            CiCheckState::Failed(job) => job.as_ref()?.broken_by()?,
            CiCheckState::Queued if stalled => "it stands in line for too long",
            CiCheckState::Queued | CiCheckState::Running | CiCheckState::Passed | CiCheckState::Silent => {
                return None;
            }
        };
        Some(format!("{}: {why}", self.shown))
    }
}

/// How long the checks of a commit have been waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChecksWait {
    /// When they were first looked at, if they were.
    pub since: Option<Timestamp>,
    /// Whether that was long enough.
    pub overdue: bool,
    /// The time it is.
    pub now: Timestamp,
}

impl ChecksWait {
    /// How long those of the task at this step have been waited for.
    #[must_use]
    pub fn for_step(pipeline: &Pipeline, recoveries: &Recoveries, step: &StepName, now: Timestamp) -> Self {
        let since = pipeline.ci.as_ref().map(|(_, since)| *since);
        Self { since, overdue: is_ci_overdue(pipeline, recoveries, step, now), now }
    }
}

/// What the checks of a commit come to, held against those of the base it is to go onto. A check that fails on the base as well
/// was broken before; one that fails only here counts. It is told when the others have ended, too: until a run is over, nothing
/// of it can be run again. Those that do not end hide it no longer than they are waited for.
#[must_use]
pub fn assess_ci_checks(here: &[CiCheck], base: &[CiCheck], waited: ChecksWait) -> CiStatus {
    let ChecksWait { since, overdue, now } = waited;
    let names = |checks: Vec<&CiCheck>| checks.into_iter().map(|it| it.shown.clone()).collect();
    let fails_there = |name: &str| base.iter().any(|it| it.name == name && it.has_failed());
    let (old, new): (Vec<_>, Vec<_>) =
        here.iter().filter(|it| it.has_failed()).partition(|it| fails_there(&it.name));
    let stalled = since.is_some_and(|since| now >= since.plus_ms(QUEUE_MS));
    let goes_on = |it: &&CiCheck| match it.stand {
        CiCheckState::Running => true,
        CiCheckState::Queued => !stalled,
        CiCheckState::Passed | CiCheckState::Silent | CiCheckState::Failed(_) | CiCheckState::Broken => false,
    };
    let running: Vec<_> = here.iter().filter(goes_on).collect();
    if !new.is_empty() && (running.is_empty() || overdue) {
        return CiStatus::Failed(names(new));
    }
    if !running.is_empty() {
        return CiStatus::Running(names(running));
    }
    let broken: Vec<String> = here.iter().filter_map(|it| it.broken_reason(stalled)).collect();
    if !broken.is_empty() {
        return CiStatus::Broken(broken);
    }
    if !old.is_empty() {
        return CiStatus::PreExisting(names(old));
    }
    if here.iter().any(|it| it.stand == CiCheckState::Passed) {
        return CiStatus::Passed;
    }
    let expected = base.iter().any(|it| it.stand != CiCheckState::Silent);
    if super::checks_may_begin(expected, since, now) {
        return CiStatus::Running(vec!["those that have not begun".to_owned()]);
    }
    if expected {
        CiStatus::Broken(vec!["no run began for this commit".to_owned()])
    } else {
        CiStatus::Absent
    }
}

/// Whether the checks of the forge have been waited for long enough: since they were first looked at, or since they were last
/// run again.
#[must_use]
pub fn is_ci_overdue(pipeline: &Pipeline, recoveries: &Recoveries, step: &StepName, now: Timestamp) -> bool {
    let Some((_, since)) = pipeline.ci else { return false };
    let reruns = recoveries.tried.iter().filter(|it| it.step == *step);
    let reruns = reruns.filter(|it| RecoveryAction::from_text(&it.action) == Some(RecoveryAction::RerunCi));
    let since = reruns.map(|it| it.at).max().map_or(since, |again| again.max(since));
    now >= since.plus_ms(CI_WAIT_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Timestamp = Timestamp(1_000);

    fn check(name: &str, stand: CiCheckState) -> CiCheck {
        CiCheck { name: name.to_owned(), shown: name.chars().take(20).collect(), stand }
    }

    fn job(steps: &[(&str, StepEnd)], remarks: &[&str]) -> CiJobReport {
        CiJobReport {
            steps: steps.iter().map(|(name, end)| ((*name).to_owned(), *end)).collect(),
            remarks: remarks.iter().map(|it| (*it).to_owned()).collect(),
        }
    }

    fn failed() -> CiCheckState {
        CiCheckState::Failed(Some(job(&[("Set up job", StepEnd::Fine), ("Run tests", StepEnd::Failed)], &[])))
    }

    fn now(here: &[CiCheck], base: &[CiCheck]) -> CiStatus {
        assess_ci_checks(here, base, ChecksWait { since: None, overdue: false, now: SECOND })
    }

    fn of(names: &[&str]) -> Vec<String> {
        names.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn only_what_fails_here_and_not_on_the_base_counts() {
        let (lint, test) = (check("lint", failed()), check("test", failed()));
        assert_eq!(now(&[lint.clone(), test.clone()], &[]), CiStatus::Failed(of(&["lint", "test"])));
        let base = [check("lint", failed()), check("test", CiCheckState::Passed)];
        assert_eq!(now(&[lint.clone(), test.clone()], &base), CiStatus::Failed(of(&["test"])));
        let passed = check("test", CiCheckState::Passed);
        assert_eq!(now(&[lint.clone(), passed.clone()], &base), CiStatus::PreExisting(of(&["lint"])));
        assert_eq!(
            now(&[check("lint", CiCheckState::Passed), passed.clone()], &base),
            CiStatus::Passed,
            "it is mended"
        );
        // What fails on the base says nothing about those that still run.
        let runs = check("test", CiCheckState::Running);
        assert_eq!(now(&[lint.clone(), runs.clone()], &base), CiStatus::Running(of(&["test"])));
        // A base whose machine broke has not shown that it fails.
        let unseen = [check("lint", CiCheckState::Failed(Some(CiJobReport::default())))];
        assert_eq!(now(&[lint.clone(), passed], &unseen), CiStatus::Failed(of(&["lint"])));
        assert_eq!(
            now(&[check("lint", CiCheckState::Failed(None))], &[lint]),
            CiStatus::PreExisting(of(&["lint"]))
        );
    }

    #[test]
    fn a_failure_is_told_when_the_rest_has_ended_or_was_waited_for_long_enough() {
        let with = |stand| [check("test", failed()), check("docs", stand)];
        let at = |here: &[CiCheck], overdue, ms| {
            assess_ci_checks(here, &[], ChecksWait { since: Some(SECOND), overdue, now: SECOND.plus_ms(ms) })
        };
        let tells = CiStatus::Failed(of(&["test"]));
        for goes_on in [CiCheckState::Running, CiCheckState::Queued] {
            assert_eq!(at(&with(goes_on.clone()), false, 1), CiStatus::Running(of(&["docs"])), "{goes_on:?}");
            // Whatever hangs, what failed does not land.
            assert_eq!(at(&with(goes_on), true, CI_WAIT_MS), tells);
        }
        assert_eq!(at(&with(CiCheckState::Queued), false, QUEUE_MS), tells);
        for over in [CiCheckState::Passed, CiCheckState::Silent, CiCheckState::Broken] {
            assert_eq!(at(&with(over), false, 1), tells);
        }
    }

    #[test]
    fn checks_are_known_by_the_whole_of_their_names() {
        let [linux, windows] = ["test on a matrix, and there linux", "test on a matrix, and there windows"];
        let here = [check(linux, CiCheckState::Passed), check(windows, failed())];
        let shown = of(&["test on a matrix, an"]);
        assert_eq!(now(&here, &[check(linux, failed())]), CiStatus::Failed(shown.clone()));
        assert_eq!(now(&here, &[check(windows, failed())]), CiStatus::PreExisting(shown));
    }

    #[test]
    fn a_machine_that_broke_says_nothing_about_the_work() {
        use StepEnd::{Cut, Failed, Fine};
        let by = |steps: &[(&str, StepEnd)], remarks: &[&str]| job(steps, remarks).broken_by();
        assert_eq!(by(&[], &[]), Some("no step of it ran"));
        assert_eq!(by(&[("Set up job", Failed)], &[]), Some("it could not be set up"));
        let cut = [("Set up job", Fine), ("Run tests", Cut)];
        let shutdown = "The runner has received a shutdown signal.";
        assert_eq!(by(&cut, &[shutdown]), Some("its runner went away"));
        let fetch = [("Set up job", Fine), ("Run actions/checkout@v4", Failed)];
        assert_eq!(by(&fetch, &["fatal: Could not resolve host: github.com"]), Some("the network failed"));
        assert_eq!(by(&fetch, &["fatal: path not found"]), None);
        // What the work itself prints excuses nothing.
        let tests = [("Set up job", Fine), ("Run tests", Failed)];
        assert_eq!(by(&tests, &[shutdown, "Could not resolve host: example.org"]), None);
        assert_eq!(by(&[("Set up job", Failed), ("Run tests", Failed)], &[]), None);
        assert_eq!(by(&[("Run tests", Fine)], &[]), None, "nothing says what failed");

        let broken = check("test", CiCheckState::Failed(Some(CiJobReport::default())));
        assert_eq!(now(&[broken], &[]), CiStatus::Broken(of(&["test: no step of it ran"])));
        let cancelled = check("test", CiCheckState::Broken);
        assert_eq!(
            now(&[cancelled, check("lint", CiCheckState::Passed)], &[]),
            CiStatus::Broken(of(&["test"]))
        );
    }

    #[test]
    fn what_does_not_begin_is_waited_for_and_then_said() {
        let queued = [check("test", CiCheckState::Queued)];
        let at = |here: &[CiCheck], base: &[CiCheck], ms| {
            assess_ci_checks(
                here,
                base,
                ChecksWait { since: Some(SECOND), overdue: false, now: SECOND.plus_ms(ms) },
            )
        };
        assert_eq!(at(&queued, &[], QUEUE_MS - 1), CiStatus::Running(of(&["test"])));
        assert_eq!(
            at(&queued, &[], QUEUE_MS),
            CiStatus::Broken(of(&["test: it stands in line for too long"]))
        );
        let running = [check("test", CiCheckState::Running)];
        assert_eq!(at(&running, &[], QUEUE_MS), CiStatus::Running(of(&["test"])), "it has begun");

        let base = [check("test", CiCheckState::Passed)];
        let none = CiStatus::Running(of(&["those that have not begun"]));
        assert_eq!(at(&[], &base, 1_000), none);
        assert_eq!(at(&[check("docs", CiCheckState::Silent)], &base, 1_000), none);
        assert_eq!(at(&[], &base, QUEUE_MS), CiStatus::Broken(of(&["no run began for this commit"])));
        assert_eq!(at(&[], &[], 0), CiStatus::Absent);
        assert_eq!(at(&[], &[check("docs", CiCheckState::Silent)], 0), CiStatus::Absent);
    }
}

//! What the logs of many issues come to: runs, phases and how long they took, what was done about failures, what went
//! otherwise than it should, and what each phase used of each model.

use std::collections::{BTreeMap, BTreeSet};

use super::rest::{WaitTimes, WaitsFor};
use super::trail::{IssueTraceEvent, Trace};
use crate::recovery::RecoveryOutcome;
use crate::signal::AgentUsage;
use crate::{RunId, Timestamp};

/// What the logs of issues come to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceRollup {
    /// The runs in which issues were worked on, oldest first.
    pub sessions: Vec<SessionRow>,
    /// The phases, in the order of the way.
    pub phases: Vec<PhaseRow>,
    /// What was done about failures, by rung.
    pub recoveries: Vec<RecoveryRow>,
    /// What went otherwise than it should, the most frequent first.
    pub anomalies: Vec<(String, u64)>,
    /// How people stepped in, the most frequent first.
    pub interventions: Vec<(String, u64)>,
    /// What each phase used of each model, in the order of the way.
    pub tokens: Vec<TokenRow>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Which.
    pub run: RunId,
    /// The first and the last that is known of issues in it.
    pub from: Timestamp,
    /// See above.
    pub until: Timestamp,
    /// The issues that were worked on.
    pub issues: BTreeSet<u64>,
    /// Those that came to a good end in it.
    pub done: u64,
    /// Those that did not.
    pub failed: u64,
}

/// One phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseRow {
    /// Its name.
    pub phase: String,
    /// How often it began.
    pub begun: u64,
    /// How often it came to its end.
    pub count: u64,
    /// Half of them took no more work than this; waits are not in it.
    pub median_ms: Option<u64>,
    /// Of twenty, nineteen took no more.
    pub p95_ms: Option<u64>,
    /// The work of all that came to their end.
    pub worked_ms: u64,
    /// How long they waited besides, the longest first.
    pub waits: Vec<(WaitsFor, u64)>,
}

/// One rung.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryRow {
    /// `1`, `2`, `3` or `manual`.
    pub tier: String,
    /// How often something came of it.
    pub count: u64,
    /// How often it helped.
    pub success: u64,
    /// How often it did not.
    pub failed: u64,
}

/// What a phase used of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// The phase.
    pub phase: String,
    /// The model, or the profile of an agent that does not say.
    pub model: String,
    /// In so many runs.
    pub runs: u64,
    /// This much.
    pub usage: AgentUsage,
}

const ORDER: [&str; 7] = ["triage", "spec", "code", "sub-issues", "review", "merge", "verify"];

/// What the logs of issues come to, each given with its number. Lines before `since` are left out.
#[must_use]
pub fn roll_up_traces<'a>(
    trails: impl IntoIterator<Item = (u64, &'a [Trace])>,
    since: Timestamp,
) -> TraceRollup {
    let mut sessions: BTreeMap<RunId, SessionRow> = BTreeMap::new();
    let mut begun: BTreeMap<&str, u64> = BTreeMap::new();
    let mut took: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut waited: BTreeMap<&str, WaitTimes> = BTreeMap::new();
    let mut recoveries: BTreeMap<&str, RecoveryRow> = BTreeMap::new();
    let mut anomalies: BTreeMap<&str, u64> = BTreeMap::new();
    let mut interventions: BTreeMap<&str, u64> = BTreeMap::new();
    let mut tokens: BTreeMap<(usize, &str, &str), TokenRow> = BTreeMap::new();
    for (issue, trail) in trails {
        for Trace { at, run, what } in trail.iter().filter(|trace| trace.at >= since) {
            let session = run.map(|run| {
                let new =
                    || SessionRow { run, from: *at, until: *at, issues: BTreeSet::new(), done: 0, failed: 0 };
                let session = sessions.entry(run).or_insert_with(new);
                session.from = session.from.min(*at);
                session.until = session.until.max(*at);
                session.issues.insert(issue);
                session
            });
            match what {
                IssueTraceEvent::PhaseStart { phase } => *begun.entry(phase).or_default() += 1,
                IssueTraceEvent::PhaseComplete { phase, took_ms, waits } => {
                    let rested: u64 = waits.values().sum();
                    took.entry(phase).or_default().push(took_ms.saturating_sub(rested));
                    let sums = waited.entry(phase).or_default();
                    for (what, ms) in waits {
                        *sums.entry(*what).or_default() += ms;
                    }
                }
                IssueTraceEvent::Recovery { tier, result, .. } => {
                    let row = recoveries.entry(tier).or_insert_with(|| RecoveryRow {
                        tier: (*tier).to_owned(),
                        count: 0,
                        success: 0,
                        failed: 0,
                    });
                    row.count += u64::from(*result != RecoveryOutcome::Partial); // what came of it in the end is told as well
                    row.success += u64::from(*result == RecoveryOutcome::Success);
                    row.failed += u64::from(*result == RecoveryOutcome::Failed);
                }
                IssueTraceEvent::Anomaly { pattern, .. } => *anomalies.entry(pattern).or_default() += 1,
                IssueTraceEvent::ManualIntervention { kind, .. } => {
                    *interventions.entry(kind).or_default() += 1
                }
                IssueTraceEvent::TokenUsage { phase, model, usage } => {
                    let row = tokens.entry((phase_rank(phase), phase, model)).or_insert_with(|| TokenRow {
                        phase: (*phase).to_owned(),
                        model: model.clone(),
                        runs: 0,
                        usage: AgentUsage::default(),
                    });
                    row.runs += 1;
                    row.usage = row.usage.plus(*usage);
                }
                IssueTraceEvent::SubComplete { result } => {
                    if let Some(session) = session {
                        session.done += u64::from(result == "SUCCESS");
                        session.failed += u64::from(result.starts_with("FAILED"));
                    }
                }
                IssueTraceEvent::SubStart { .. }
                | IssueTraceEvent::WrapperExit { .. }
                | IssueTraceEvent::WatchdogKill { .. }
                | IssueTraceEvent::MaxSilentWindow { .. }
                | IssueTraceEvent::SizeRefresh { .. }
                | IssueTraceEvent::ConcurrentCommit { .. }
                | IssueTraceEvent::CiWait { .. }
                | IssueTraceEvent::TestResult { .. }
                | IssueTraceEvent::VerifyReopenCycle { .. } => {}
            }
        }
    }
    let mut names: BTreeSet<(usize, &str)> = begun.keys().map(|phase| (phase_rank(phase), *phase)).collect();
    names.extend(took.keys().map(|phase| (phase_rank(phase), *phase)));
    let phase = |(_, phase): (usize, &str)| {
        let mut all = took.get(phase).cloned().unwrap_or_default();
        all.sort_unstable();
        let mut waits: Vec<(WaitsFor, u64)> =
            waited.get(phase).into_iter().flatten().map(|(what, ms)| (*what, *ms)).collect();
        waits.sort_by_key(|(what, ms)| (std::cmp::Reverse(*ms), *what));
        PhaseRow {
            phase: phase.to_owned(),
            begun: begun.get(phase).copied().unwrap_or(0),
            count: all.len() as u64,
            median_ms: nearest_rank(&all, 50),
            p95_ms: nearest_rank(&all, 95),
            worked_ms: all.iter().sum(),
            waits,
        }
    };
    TraceRollup {
        sessions: sessions.into_values().collect(),
        phases: names.into_iter().map(phase).collect(),
        recoveries: recoveries.into_values().collect(),
        anomalies: sort_by_count(anomalies),
        interventions: sort_by_count(interventions),
        tokens: tokens.into_values().collect(),
    }
}

fn phase_rank(phase: &str) -> usize {
    ORDER.iter().position(|name| *name == phase).unwrap_or(ORDER.len())
}

/// The nearest rank: the smallest that so many of a hundred are not above.
fn nearest_rank(sorted: &[u64], percent: usize) -> Option<u64> {
    sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1)).copied()
}

fn sort_by_count(counts: BTreeMap<&str, u64>) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> =
        counts.into_iter().map(|(name, many)| (name.to_owned(), many)).collect();
    all.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    all
}

//! The journal of an issue's task as a log of a pipeline: when a phase began and ended, what its runs used, what went wrong and
//! what was done about it. The words are those that other tools read; nothing is in it that the journal does not say.

use super::rest::{WaitTimes, WaitTracker};
use super::{CiStatus, IssueEvent, IssueProgress, PhaseStatus, RoutingDecision};
use crate::acceptance::VerifyResult;
use crate::event::{AgentExit, Event, Warning};
use crate::flow::{EdgeTarget, Flow};
use crate::recovery::{RecoveryEvent, RecoveryOutcome, RecoveryTier};
use crate::signal::AgentUsage;
use crate::staged::StagedEvent;
use crate::task::EndKind;
use crate::{RunId, TaskSize, Timestamp};

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// When.
    pub at: Timestamp,
    /// In this run, as far as that is known.
    pub run: Option<RunId>,
    /// What.
    pub what: IssueTraceEvent,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssueTraceEvent {
    /// Its task was taken up.
    SubStart {
        /// How big it is, if that is known.
        size: String,
    },
    /// A phase began.
    PhaseStart {
        /// This one.
        phase: &'static str,
    },
    /// A run of an agent ended.
    WrapperExit {
        /// In this phase.
        phase: &'static str,
        /// In the way shells count ends.
        code: i32,
        /// How, in a word.
        how: &'static str,
        /// After so long.
        took_ms: u64,
    },
    /// An agent was ended because it was silent for too long.
    WatchdogKill {
        /// In this phase.
        phase: &'static str,
        /// After so long in all.
        took_ms: u64,
        /// It was silent for so long.
        silent_ms: u64,
    },
    /// The longest that an agent was silent in a run, where that was long.
    MaxSilentWindow {
        /// In this phase.
        phase: &'static str,
        /// So long.
        silent_ms: u64,
    },
    /// What a run used.
    TokenUsage {
        /// In this phase.
        phase: &'static str,
        /// The model, or else the profile.
        model: String,
        /// This much.
        usage: AgentUsage,
    },
    /// What was done about a failure came to this.
    Recovery {
        /// In this phase.
        phase: &'static str,
        /// The rung: `1` looked again, `2` the catalogue, `3` an agent, `manual` a person.
        tier: &'static str,
        /// What it is counted as.
        symptom: String,
        /// What came of it.
        result: RecoveryOutcome,
    },
    /// Something went otherwise than it should.
    Anomaly {
        /// In this phase.
        phase: &'static str,
        /// What, in a word.
        pattern: String,
        /// In words.
        detail: String,
    },
    /// A phase is through.
    PhaseComplete {
        /// This one.
        phase: &'static str,
        /// After so long, waits included.
        took_ms: u64,
        /// Of that it waited so long.
        waits: WaitTimes,
    },
    /// Its task is over.
    SubComplete {
        /// `SUCCESS`, `FAILED (…)` or `CANCELLED`.
        result: String,
    },
    /// Its size, or the way that follows from it, is another.
    SizeRefresh {
        /// It was this.
        from: String,
        /// It is this.
        to: String,
        /// And takes this way.
        route: String,
    },
    /// Somebody else moved the base meanwhile.
    ConcurrentCommit {
        /// To here.
        commit: String,
    },
    /// The checks of the forge were waited for.
    CiWait {
        /// So long.
        wait_ms: u64,
        /// What came of it.
        result: &'static str,
        /// So many failed.
        failed: usize,
    },
    /// The work was verified.
    TestResult {
        /// To this.
        result: &'static str,
        /// So many tests ran, if anybody told.
        tests: Option<u64>,
    },
    /// A person stepped in.
    ManualIntervention {
        /// In this phase.
        phase: &'static str,
        /// How, in a word.
        kind: &'static str,
    },
    /// What landed does not hold, and it is opened again.
    VerifyReopenCycle {
        /// So often by now.
        iteration: u32,
        /// What did not hold first.
        reason: String,
    },
}

impl IssueTraceEvent {
    /// The word of the log.
    #[must_use]
    pub fn wire_name(&self) -> &'static str {
        match self {
            Self::SubStart { .. } => "sub_start",
            Self::PhaseStart { .. } => "phase_start",
            Self::WrapperExit { .. } => "wrapper_exit",
            Self::WatchdogKill { .. } => "watchdog_kill",
            Self::MaxSilentWindow { .. } => "max_silent_window",
            Self::TokenUsage { .. } => "token_usage",
            Self::Recovery { .. } => "recovery",
            Self::Anomaly { .. } => "anomaly",
            Self::PhaseComplete { .. } => "phase_complete",
            Self::SubComplete { .. } => "sub_complete",
            Self::SizeRefresh { .. } => "size_refresh",
            Self::ConcurrentCommit { .. } => "concurrent_commit_detected",
            Self::CiWait { .. } => "ci_wait",
            Self::TestResult { .. } => "test_result",
            Self::ManualIntervention { .. } => "manual_intervention",
            Self::VerifyReopenCycle { .. } => "verify_reopen_cycle",
        }
    }

    /// What else is known, by name. All of it is text, as in the logs that are read beside it.
    #[must_use]
    pub fn named_fields(&self) -> Vec<(&'static str, String)> {
        let seconds = |ms: &u64| (ms / 1_000).to_string();
        match self {
            Self::SubStart { size } => vec![("size", size.clone())],
            Self::PhaseStart { phase } => vec![("phase", (*phase).to_owned())],
            Self::WrapperExit { phase, code, how, took_ms } => vec![
                ("phase", (*phase).to_owned()),
                ("exit_code", code.to_string()),
                ("how", (*how).to_owned()),
                ("duration_sec", seconds(took_ms)),
            ],
            Self::WatchdogKill { phase, took_ms, silent_ms } => vec![
                ("phase", (*phase).to_owned()),
                ("duration_sec", seconds(took_ms)),
                ("silent_window_sec", seconds(silent_ms)),
            ],
            Self::MaxSilentWindow { phase, silent_ms } => {
                vec![("phase", (*phase).to_owned()), ("silent_window_sec", seconds(silent_ms))]
            }
            Self::TokenUsage { phase, model, usage } => vec![
                ("phase", (*phase).to_owned()),
                ("model", model.clone()),
                ("input", usage.tokens_in.to_string()),
                ("output", usage.tokens_out.to_string()),
                ("cache_read", usage.tokens_cached.to_string()),
                ("micro_usd", usage.micro_usd.to_string()),
            ],
            Self::Recovery { phase, tier, symptom, result } => vec![
                ("phase", (*phase).to_owned()),
                ("tier", (*tier).to_owned()),
                ("symptom", symptom.clone()),
                ("result", result.word().to_owned()),
            ],
            Self::Anomaly { phase, pattern, detail } => {
                vec![("phase", (*phase).to_owned()), ("pattern", pattern.clone()), ("detail", detail.clone())]
            }
            Self::PhaseComplete { phase, took_ms, waits } => {
                let long = waits.iter().filter(|(_, ms)| **ms >= 1_000); // seconds are all that is told
                let words: Vec<&str> = long.map(|(it, _)| it.wire_name()).collect();
                vec![
                    ("phase", (*phase).to_owned()),
                    ("duration_sec", seconds(took_ms)),
                    ("wait_sec", seconds(&waits.values().sum())),
                    ("waited_for", words.join(", ")),
                ]
            }
            Self::SubComplete { result } => vec![("result", result.clone())],
            Self::SizeRefresh { from, to, route } => {
                vec![("from", from.clone()), ("to", to.clone()), ("route", route.clone())]
            }
            Self::ConcurrentCommit { commit } => vec![("commit_sha", commit.clone())],
            Self::CiWait { wait_ms, result, failed } => vec![
                ("wait_sec", seconds(wait_ms)),
                ("result", (*result).to_owned()),
                ("failed", failed.to_string()),
            ],
            Self::TestResult { result, tests } => vec![
                ("result", (*result).to_owned()),
                ("tests", tests.map(|tests| tests.to_string()).unwrap_or_default()),
            ],
            Self::ManualIntervention { phase, kind } => {
                vec![("recovery_target", (*phase).to_owned()), ("intervention_type", (*kind).to_owned())]
            }
            Self::VerifyReopenCycle { iteration, reason } => {
                vec![("iteration", iteration.to_string()), ("reopen_reason", reason.clone())]
            }
        }
    }
}

/// The log of a task, by its facts, oldest first.
#[must_use]
pub fn build_trail<'a>(
    flow: Option<&Flow>,
    facts: impl IntoIterator<Item = (Timestamp, &'a Event)>,
) -> Vec<Trace> {
    let mut trail = IssueTraceBuilder { flow, ..IssueTraceBuilder::default() };
    for (at, event) in facts {
        trail.apply_event(at, event);
    }
    trail.traces
}

#[derive(Default)]
struct IssueTraceBuilder<'f> {
    flow: Option<&'f Flow>,
    traces: Vec<Trace>,
    progress: IssueProgress,
    run: Option<RunId>,
    /// Whether it was taken up and is not over.
    begun: bool,
    /// How big its task is said to be.
    size: Option<TaskSize>,
    /// The phase under way, and since when.
    since: Option<(&'static str, Timestamp)>,
    profile: String,
    tried: Option<(RecoveryTier, String)>,
    ci_since: Option<Timestamp>,
    rest: WaitTracker,
    failed: String,
    /// How often its acceptance failed, as its tracker counts.
    failures: u32,
}

impl IssueTraceBuilder<'_> {
    fn apply_event(&mut self, at: Timestamp, event: &Event) {
        if let Event::Added { spec } | Event::Edited { spec } = event {
            self.size = spec.size;
        }
        if let Event::Entered { run, .. } = event {
            self.run = Some(*run);
            if !self.begun {
                self.begun = true;
                // What its tracker says is seen only once it has begun.
                let size = self.progress.routing_decision().and_then(|routed| routed.size).or(self.size);
                let size = size.map(|size| size.to_string()).unwrap_or_default();
                self.add_trace(at, IssueTraceEvent::SubStart { size });
            }
        }
        if let Event::Left { .. } = event {
            self.ci_since = None; // nobody waits for checks that it went on without
        }
        let before = self.progress.routing_decision().copied();
        self.progress.hear(self.flow, event);
        self.rest.hear(at, event);
        self.trace_phase_event(at, event);
        self.note_phase_change(at);
        if let (Event::Issue(IssueEvent::Routed(now)), Some(before)) = (event, before)
            && before != *now
            && before.size.is_some()
        {
            let (from, to) = (size_label(Some(&before)), size_label(Some(now)));
            self.add_trace(at, IssueTraceEvent::SizeRefresh { from, to, route: now.way.word().to_owned() });
        }
        // One that was never taken up is not over either; and the end of a flow may be told twice.
        if let Some(result) = end_label(event).filter(|_| self.begun) {
            self.begun = false;
            self.add_trace(at, IssueTraceEvent::SubComplete { result });
        }
    }

    /// What is said of the phase under way.
    fn trace_phase_event(&mut self, at: Timestamp, event: &Event) {
        let phase = self.since.map(|(phase, _)| phase).or(self.progress.current_phase()).unwrap_or("observe");
        let anomaly = |pattern: &str, detail: String| IssueTraceEvent::Anomaly {
            phase,
            pattern: pattern.to_owned(),
            detail: first_line(&detail),
        };
        let manual = |kind: &'static str| IssueTraceEvent::ManualIntervention { phase, kind };
        match event {
            Event::Bound { driving, .. } => self.profile.clone_from(&driving.profile),
            Event::IterationEnded { exit, took_ms, usage, traces, .. } => {
                let (code, how) = shell_exit(exit);
                self.add_trace(at, IssueTraceEvent::WrapperExit { phase, code, how, took_ms: *took_ms });
                if *exit == AgentExit::Silent {
                    let (took_ms, silent_ms) = (*took_ms, traces.quiet_ms);
                    self.add_trace(at, IssueTraceEvent::WatchdogKill { phase, took_ms, silent_ms });
                } else if traces.quiet_ms > 0 {
                    self.add_trace(
                        at,
                        IssueTraceEvent::MaxSilentWindow { phase, silent_ms: traces.quiet_ms },
                    );
                }
                if *usage != AgentUsage::default() {
                    let model = traces.model.clone().unwrap_or_else(|| self.profile.clone());
                    self.add_trace(at, IssueTraceEvent::TokenUsage { phase, model, usage: *usage });
                }
            }
            Event::Recovery(RecoveryEvent::Tried { symptom, tier, action, .. }) => {
                self.tried = Some((*tier, symptom.clone()));
                match tier {
                    RecoveryTier::Person => self.add_trace(at, manual("recovery")),
                    RecoveryTier::Reconcile | RecoveryTier::Pattern | RecoveryTier::Agent => {
                        self.add_trace(at, anomaly(symptom, action.clone()));
                    }
                }
            }
            Event::Recovery(RecoveryEvent::Ended { outcome, .. }) => {
                if let Some((tier, symptom)) = self.tried.clone() {
                    let (tier, result) = (tier_label(tier), *outcome);
                    self.add_trace(at, IssueTraceEvent::Recovery { phase, tier, symptom, result });
                }
            }
            Event::Warned(warning) => {
                if let Some(pattern) = unusual_warning_name(warning) {
                    self.add_trace(at, anomaly(pattern, warning.to_sentence()));
                }
            }
            Event::Conflicted { paths, .. } => self.add_trace(at, anomaly("base-conflict", paths.join(", "))),
            Event::Ejected { .. } => {
                self.add_trace(
                    at,
                    anomaly("red-together", "green alone, red with what landed before it".to_owned()),
                );
            }
            Event::BaseMoved { to, .. } => {
                self.add_trace(at, IssueTraceEvent::ConcurrentCommit { commit: to.as_str().to_owned() });
            }
            Event::Verified { report, .. } => {
                let (result, tests) = (report.outcome().word(), report.test_count());
                self.add_trace(at, IssueTraceEvent::TestResult { result, tests });
            }
            Event::Issue(issue) => self.trace_issue_event(at, issue),
            Event::Retried { .. } => self.add_trace(at, manual("retry")),
            Event::Messaged { about: None, .. } => self.add_trace(at, manual("message")),
            Event::Reviewed { .. } => self.add_trace(at, manual("review")),
            Event::Held { .. } => self.add_trace(at, manual("hold")),
            Event::Directed { .. } => self.add_trace(at, manual("directed")),
            Event::Reopened { .. } => self.add_trace(at, manual("reopen")),
            Event::Staged(StagedEvent::Refined { .. }) => self.add_trace(at, manual("refine")),
            _ => {}
        }
    }

    fn trace_issue_event(&mut self, at: Timestamp, event: &IssueEvent) {
        match event {
            IssueEvent::Checks { ci, .. } => {
                let since = *self.ci_since.get_or_insert(at);
                let (result, failed) = match ci {
                    CiStatus::Running(_) => return,
                    CiStatus::Absent => ("absent", 0),
                    CiStatus::Passed => ("passed", 0),
                    CiStatus::Failed(names) => ("failed", names.len()),
                    CiStatus::PreExisting(names) => ("pre-existing", names.len()),
                    CiStatus::Broken(names) => ("infrastructure", names.len()),
                };
                self.ci_since = None;
                self.add_trace(
                    at,
                    IssueTraceEvent::CiWait { wait_ms: elapsed_ms(since, at), result, failed },
                );
            }
            IssueEvent::Accepted { accepted, .. } => {
                let failed = accepted.items.iter().find(|(_, result, _)| *result == VerifyResult::Fail);
                self.failed = failed.map(|(words, _, _)| first_line(words)).unwrap_or_default();
                self.failures = accepted.outcome.iteration().unwrap_or(self.failures);
            }
            IssueEvent::Reworked { .. } => {
                // The tracker's own count, which its comments name: work that is looked at once more is not counted twice.
                let (iteration, reason) = (self.failures, std::mem::take(&mut self.failed));
                self.add_trace(at, IssueTraceEvent::VerifyReopenCycle { iteration, reason });
            }
            IssueEvent::Wanted(_)
            | IssueEvent::Seen { .. }
            | IssueEvent::Routed(_)
            | IssueEvent::Offered { .. }
            | IssueEvent::Looked { .. }
            | IssueEvent::Parted { .. }
            | IssueEvent::PartsCame { .. }
            | IssueEvent::Levelled { .. }
            | IssueEvent::PartsOver(_) => {}
        }
    }

    /// The phase that ended and the one that began, if that changed.
    fn note_phase_change(&mut self, at: Timestamp) {
        let rows = self.progress.phase_rows();
        let mark = |phase: &str| rows.iter().find(|row| row.phase == phase).map(|row| row.mark);
        if let Some((phase, since)) = self.since {
            if mark(phase) == Some(PhaseStatus::Done) {
                self.since = None;
                let (took_ms, waits) = (elapsed_ms(since, at), self.rest.wait_times().clone());
                self.add_trace(at, IssueTraceEvent::PhaseComplete { phase, took_ms, waits });
            } else if mark(phase) == Some(PhaseStatus::Stopped)
                || self.progress.current_phase() != Some(phase)
            {
                self.since = None; // it was left without an end of its own
            }
        }
        let now = self.progress.current_phase().filter(|now| mark(now) == Some(PhaseStatus::UnderWay));
        if let Some(phase) = now.filter(|_| self.since.is_none()) {
            self.since = Some((phase, at));
            self.rest.restart_count(at);
            self.add_trace(at, IssueTraceEvent::PhaseStart { phase });
        }
    }

    fn add_trace(&mut self, at: Timestamp, what: IssueTraceEvent) {
        self.traces.push(Trace { at, run: self.run, what });
    }
}

/// How a task is over by this fact, if it is.
fn end_label(event: &Event) -> Option<String> {
    match event {
        Event::Left { to: EdgeTarget::End, .. } => Some("SUCCESS".to_owned()),
        Event::Left { to: EdgeTarget::Stop, .. } => Some("FAILED (stopped by its flow)".to_owned()),
        Event::Ended(ending) => Some(match ending.kind {
            EndKind::Done => "SUCCESS".to_owned(),
            EndKind::Cancelled => "CANCELLED".to_owned(),
            EndKind::Failed | EndKind::Timeout | EndKind::Blocked => {
                format!("FAILED ({})", ending.code.word())
            }
        }),
        _ => None,
    }
}

fn size_label(routed: Option<&RoutingDecision>) -> String {
    routed.and_then(|routed| routed.size).map(|size| size.to_string()).unwrap_or_default()
}

pub(super) fn elapsed_ms(since: Timestamp, until: Timestamp) -> u64 {
    u64::try_from(until.0 - since.0).unwrap_or(0) // a clock that was set back
}

fn tier_label(tier: RecoveryTier) -> &'static str {
    match tier {
        RecoveryTier::Reconcile => "1",
        RecoveryTier::Pattern => "2",
        RecoveryTier::Agent => "3",
        RecoveryTier::Person => "manual",
    }
}

/// An end as shells count it: a signal is 128 more than its number, a limit of time is 124.
fn shell_exit(exit: &AgentExit) -> (i32, &'static str) {
    match exit {
        AgentExit::Code(code) => (*code, "exit"),
        AgentExit::Signal(signal) => (128 + signal, "signal"),
        AgentExit::Deadline => (124, "deadline"),
        AgentExit::Silent => (143, "silence"),
        AgentExit::Looping => (143, "loop"),
        AgentExit::OverBudget { .. } => (143, "budget"),
        AgentExit::ContextUsedUp => (143, "context"),
        AgentExit::Asked => (143, "asked"),
        AgentExit::NotStarted { .. } => (127, "not-started"),
        AgentExit::Lost => (137, "lost"),
    }
}

/// The word for a warning that is out of the ordinary.
fn unusual_warning_name(warning: &Warning) -> Option<&'static str> {
    match warning {
        Warning::Stuck { .. } => Some("no-commits"),
        Warning::OptionalFailed { .. } => Some("optional-check-failed"),
        Warning::Flaky { .. } => Some("flaky-check"),
        Warning::SignalMalformed { .. } => Some("signal-malformed"),
        Warning::SettingsTouched { .. } => Some("settings-touched"),
        Warning::HookFailed { .. } => Some("hook-failed"),
        Warning::NearIterationsMax { .. }
        | Warning::VerificationEmpty
        | Warning::LeftoversCommitted
        | Warning::Discovery { .. }
        | Warning::Folder { .. } => None,
    }
}

const LINE_CHARS_MAX: usize = 300;

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(LINE_CHARS_MAX).collect()
}

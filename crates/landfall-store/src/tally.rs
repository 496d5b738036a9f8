//! What is counted of facts as they are written, so that nobody has to read years of them to draw a curve.
//!
//! Counts are kept by quarters of an hour of the universal clock: every time zone's days are made of whole ones.

use landfall_model::gate::{CheckOutcome, GateReport};
use landfall_model::sprint::ReviewDecision;
use landfall_model::{
    EndKind, EngineEvent, Event, Fact, JournalEntry, QueueEvent, RunEnd, TaskId, Timestamp, WaitReason,
    YieldReason, review,
};

/// How long a slot of the counts is.
pub const SLOT_MS: i64 = 15 * 60 * 1000;

/// The slot a moment is in.
pub(crate) fn time_slot(at: Timestamp) -> i64 {
    at.0.div_euclid(SLOT_MS)
}

macro_rules! counted {
    ($($(#[$doc:meta])* $variant:ident = $word:literal,)*) => {
        /// What is counted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum CountKind {
            $($(#[$doc])* $variant,)*
        }

        impl CountKind {
            /// Everything that is counted.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The word in the tables.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

counted! {
    /// Tasks that were added.
    Added = "added",
    /// Tasks that take landed work back.
    Rollbacks = "rollbacks",
    /// Tasks that landed, by profile.
    Landed = "landed",
    /// Tasks that failed, ran out or were blocked, by profile.
    Failed = "failed",
    /// Tasks that were cancelled.
    Cancelled = "cancelled",
    /// Tries of steps.
    Attempts = "attempts",
    /// Runs of agents, by profile.
    Iterations = "iterations",
    /// Tokens, by profile.
    Tokens = "tokens",
    /// Money in millionths of a dollar, by profile.
    MicroUsd = "micro-usd",
    /// Tokens whose cost nobody told, by profile.
    UnpricedTokens = "unpriced-tokens",
    /// Runs that may have used more than they reported, by profile.
    PartialUsage = "partial-usage",
    /// Working time of agents, by profile.
    AgentMs = "agent-ms",
    /// Time of verification.
    VerifyMs = "verify-ms",
    /// Verifications, by outcome.
    Gates = "gates",
    /// Runs of a check, by its name.
    CheckRuns = "check-runs",
    /// Failures of a check that then passed, by its name.
    CheckFlakes = "check-flakes",
    /// Work that went on after a crash.
    Recoveries = "recoveries",
    /// Waits for an account.
    QuotaWaits = "quota-waits",
    /// Work that did not merge.
    Conflicts = "conflicts",
    /// Questions to a person.
    Questions = "questions",
    /// What a person said of work that a reviewing agent had read, by both.
    Agreement = "agreement",
}

/// By what a count is told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CountKey {
    /// By this word.
    Word(String),
    /// By the profile that works on the task.
    Profile(TaskId),
    /// By what the reviewing agent said last and whether the person agreed; nothing is counted where none has read it.
    Opinion(TaskId, &'static str),
}

/// One more of something.
#[derive(Debug, Clone)]
pub(crate) struct CountIncrement {
    pub slot: i64,
    pub what: CountKind,
    pub key: CountKey,
    pub by: u64,
}

/// What is known of the work on a task besides its row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkRow {
    /// The profile that works on it.
    pub profile: Option<String>,
    /// When it landed, or was accepted without landing.
    pub done: Option<Timestamp>,
    /// How often a reviewing agent read it.
    pub rounds: u32,
    /// What the reviewing agent said last: `approved` or `objected`.
    pub said: Option<String>,
}

/// A change to what is known of the work on a task.
#[derive(Debug, Clone)]
pub(crate) enum WorkChange {
    /// This profile works on it.
    Profile(String),
    /// It landed.
    Landed(Timestamp),
    /// It was accepted; an earlier landing stays.
    Accepted(Timestamp),
    /// A reviewing agent read it, and said this if it could be read.
    Opinion(Option<&'static str>),
}

/// One change to what is counted.
#[derive(Debug, Clone)]
pub(crate) enum CountChange {
    Count(CountIncrement),
    Mark(TaskId, WorkChange),
}

/// What a fact adds, in this order.
pub(crate) fn count_changes(entry: &JournalEntry) -> Vec<CountChange> {
    let mut made = SlotTallies { slot: time_slot(entry.at), tallies: Vec::new() };
    match &entry.fact {
        Fact::Task(task, event) => made.count_task_event(entry.at, *task, event),
        Fact::Engine(
            EngineEvent::Measured { report } | EngineEvent::Queue(QueueEvent::Checked { report, .. }),
        ) => made.count_gate_report(report),
        Fact::Engine(EngineEvent::RunEnded { why: RunEnd::Lost, .. }) => made.add_one(CountKind::Recoveries),
        Fact::Engine(_) => {}
    }
    made.tallies
}

struct SlotTallies {
    slot: i64,
    tallies: Vec<CountChange>,
}

impl SlotTallies {
    fn add_count(&mut self, what: CountKind, key: CountKey, by: u64) {
        if by > 0 {
            // SQLite has no unsigned numbers; a figure beyond this is nonsense anyway.
            let by = by.min(u64::from(u32::MAX) * 1_000);
            self.tallies.push(CountChange::Count(CountIncrement { slot: self.slot, what, key, by }));
        }
    }

    fn add_one(&mut self, what: CountKind) {
        self.add_count(what, CountKey::Word(String::new()), 1);
    }

    fn count_task_event(&mut self, at: Timestamp, task: TaskId, event: &Event) {
        match event {
            Event::Added { spec } => {
                self.add_one(CountKind::Added);
                if spec.source.starts_with("rollback:") {
                    self.add_one(CountKind::Rollbacks);
                }
            }
            Event::Bound { driving, .. } => {
                self.tallies.push(CountChange::Mark(task, WorkChange::Profile(driving.profile.clone())));
            }
            Event::Entered { .. } => self.add_one(CountKind::Attempts),
            Event::IterationEnded { took_ms, usage, .. } => {
                let tokens = usage.tokens_in.saturating_add(usage.tokens_out);
                self.add_count(CountKind::Iterations, CountKey::Profile(task), 1);
                self.add_count(CountKind::Tokens, CountKey::Profile(task), tokens);
                self.add_count(CountKind::MicroUsd, CountKey::Profile(task), usage.micro_usd);
                self.add_count(CountKind::UnpricedTokens, CountKey::Profile(task), usage.tokens_unpriced);
                self.add_count(CountKind::PartialUsage, CountKey::Profile(task), u64::from(usage.at_least));
                self.add_count(CountKind::AgentMs, CountKey::Profile(task), *took_ms);
            }
            Event::Verified { report, .. } => self.count_gate_report(report),
            Event::Conflicted { .. } => self.add_one(CountKind::Conflicts),
            Event::Yielded {
                why: YieldReason::Crashed | YieldReason::Lost | YieldReason::Machine | YieldReason::Shortage,
                ..
            } => {
                self.add_one(CountKind::Recoveries);
            }
            Event::Waited { wait: WaitReason::Quota { .. }, .. } => self.add_one(CountKind::QuotaWaits),
            Event::Waited { wait: WaitReason::Question { .. }, .. } => self.add_one(CountKind::Questions),
            Event::Opinion { findings, .. } => {
                let said =
                    findings.as_ref().map(|findings| match review::blocking_findings(findings).next() {
                        None => "approved",
                        Some(_) => "objected",
                    });
                self.tallies.push(CountChange::Mark(task, WorkChange::Opinion(said)));
            }
            Event::Reviewed { approved, .. } => self.count_agreement(task, *approved),
            Event::Signed { decision: ReviewDecision::Approved, .. } => self.count_agreement(task, true),
            Event::Signed { decision: ReviewDecision::Redo | ReviewDecision::Rejected, .. } => {
                self.count_agreement(task, false);
            }
            Event::Landed { .. } => {
                self.add_count(CountKind::Landed, CountKey::Profile(task), 1);
                self.tallies.push(CountChange::Mark(task, WorkChange::Landed(at)));
            }
            Event::Ended(ending) => match ending.kind {
                EndKind::Done => self.tallies.push(CountChange::Mark(task, WorkChange::Accepted(at))),
                EndKind::Cancelled => self.add_one(CountKind::Cancelled),
                EndKind::Failed | EndKind::Timeout | EndKind::Blocked => {
                    self.add_count(CountKind::Failed, CountKey::Profile(task), 1);
                }
            },
            _ => {} // nothing that is drawn
        }
    }

    fn count_agreement(&mut self, task: TaskId, approved: bool) {
        let said = if approved { "approved" } else { "objected" };
        self.add_count(CountKind::Agreement, CountKey::Opinion(task, said), 1);
    }

    /// What was reused did not run.
    fn count_gate_report(&mut self, report: &GateReport) {
        self.add_count(CountKind::Gates, CountKey::Word(report.outcome().word().to_owned()), 1);
        if report.reused {
            return;
        }
        self.add_count(CountKind::VerifyMs, CountKey::Word(String::new()), report.took_ms);
        for command in &report.commands {
            self.add_count(CountKind::CheckRuns, CountKey::Word(command.name.clone()), 1);
            if command.outcome == CheckOutcome::Flaky {
                self.add_count(CountKind::CheckFlakes, CountKey::Word(command.name.clone()), 1);
            }
        }
    }
}

/// A count as it is kept: slot, what, by which word, how many.
pub type CountRow = (i64, String, String, u64);

//! Who picks the next task, and when nobody does: the modes of a run, its pauses, and the failures that lead to one.

use crate::event::{Event, RunEnd};
use crate::flow::EdgeTarget;
use crate::task::{EndKind, Ending};
use crate::{TaskId, Timestamp};
pub use landfall_facts::pilot::{PauseReason, PilotEvent, PilotMode, PilotPhase as Phase};

/// A pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// The kind of reason.
    pub why: PauseReason,
    /// In words.
    pub reason: String,
    /// Since then.
    pub since: Timestamp,
}

/// The drive as it stands: a fold of its own facts and of how tasks ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PilotState {
    mode: PilotMode,
    running: bool,
    completed: bool,
    pause: Option<Pause>,
    assigned: Option<TaskId>,
    /// Tasks in a row that failed or ran out.
    failures: u32,
    /// The last of them.
    failed: Vec<TaskId>,
}

impl PilotState {
    /// Where it is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match (self.running, self.pause.is_some(), self.mode) {
            (false, _, _) if self.completed => Phase::Completed,
            (false, _, _) => Phase::Idle,
            (true, true, _) => Phase::Paused,
            (true, false, PilotMode::Autopilot) => Phase::Running,
            (true, false, PilotMode::SemiAuto) if self.assigned.is_some() => Phase::Running,
            (true, false, PilotMode::SemiAuto) => Phase::WaitingUser,
        }
    }

    /// Who picks.
    #[must_use]
    pub fn mode(&self) -> PilotMode {
        self.mode
    }

    /// The pause, if there is one.
    #[must_use]
    pub fn pause(&self) -> Option<&Pause> {
        self.pause.as_ref()
    }

    /// What a person picked and is being worked on.
    #[must_use]
    pub fn assigned_task(&self) -> Option<TaskId> {
        self.assigned
    }

    /// How many tasks in a row failed or ran out.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// A run began. What paused an earlier one is its own affair, unless a person paused it.
    pub fn run_started(&mut self) {
        (self.running, self.completed) = (true, false);
        self.assigned = None;
        self.failures = 0;
        self.failed.clear();
    }

    /// A run ended. What was paused when its engine was lost stays so: whoever starts the next one may not know.
    pub fn run_ended(&mut self, why: RunEnd) {
        (self.running, self.completed) = (false, why == RunEnd::NothingLeft);
        if why != RunEnd::Lost {
            self.pause = None;
        }
        self.assigned = None;
    }

    /// Bookkeeping: what a fact means.
    pub fn apply(&mut self, at: Timestamp, event: &PilotEvent) {
        match event {
            PilotEvent::ModeSet { mode } => {
                self.mode = *mode;
                self.assigned = None;
            }
            PilotEvent::Assigned { task } => self.assigned = Some(*task),
            PilotEvent::Settled => self.assigned = None,
            PilotEvent::Paused { why, reason } => {
                self.pause = Some(Pause { why: *why, reason: reason.clone(), since: at });
            }
            PilotEvent::Resumed => {
                self.pause = None;
                self.failures = 0;
                self.failed.clear();
            }
        }
    }

    /// Counts how tasks end: what failed or ran out counts, what landed wipes the slate, what is blocked says nothing.
    pub fn note(&mut self, task: TaskId, event: &Event) {
        match event {
            Event::Ended(Ending { kind: EndKind::Failed | EndKind::Timeout, .. }) => {
                self.failures += 1;
                self.failed.push(task);
                let over = self.failed.len().saturating_sub(FAILED_MAX);
                self.failed.drain(..over);
            }
            Event::Landed { .. } | Event::Left { to: EdgeTarget::End, .. } => {
                self.failures = 0;
                self.failed.clear();
            }
            _ => {}
        }
    }

    /// Whether it should pause now, and why.
    #[must_use]
    pub fn should_pause(&self, failures_max: u32, sprint_stops_on_error: bool) -> Option<PilotEvent> {
        if self.pause.is_some() || self.failures == 0 {
            return None;
        }
        let list = self.failed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        if failures_max > 0 && self.failures >= failures_max {
            let reason = match self.failures {
                1 => format!("a task failed or ran out: {list}"),
                count => format!("{count} tasks in a row failed or ran out: {list}"),
            };
            return Some(PilotEvent::Paused { why: PauseReason::Failures, reason });
        }
        sprint_stops_on_error.then(|| PilotEvent::Paused {
            why: PauseReason::SprintError,
            reason: format!("{list} failed, and this sprint pauses on an error"),
        })
    }
}

const FAILED_MAX: usize = 10; // enough to see what they have in common

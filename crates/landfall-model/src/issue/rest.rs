//! How long nothing is done for a task, and whom that waits for: a fold of its facts. What counts as work is every try of a
//! step, from its beginning to its end; but for the time it stands in line to land, and not that in which its batch is verified.

use std::collections::BTreeMap;

use super::trail::elapsed_ms;
use super::{CiStatus, IssueEvent};
use crate::event::{AttemptStart, Event};
use crate::gate::GateReport;
use crate::{Timestamp, WaitReason};

/// Whom a task waits for, or what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitsFor {
    /// A person: an answer, a look, a login, leave to go on, something put right.
    Person,
    /// An account that is used up.
    Quota,
    /// Money, tokens or time to spend.
    Budget,
    /// Checks of the forge.
    Checks,
    /// What is to be done before it.
    Blockers,
    /// The issues it is made of.
    Parts,
    /// The end of a passing trouble.
    Trouble,
    /// Room on the disk.
    Disk,
    /// Leave to go on: others are at work, or no run is under way.
    Slot,
    /// Its turn to land.
    Queue,
}

impl WaitsFor {
    /// The word people and files use.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Quota => "quota",
            Self::Budget => "budget",
            Self::Checks => "checks",
            Self::Blockers => "blockers",
            Self::Parts => "sub-issues",
            Self::Trouble => "trouble",
            Self::Disk => "disk",
            Self::Slot => "slot",
            Self::Queue => "landing-queue",
        }
    }
}

/// How long something waited, by what it waited for; what it never waited for is not in it.
pub type WaitTimes = BTreeMap<WaitsFor, u64>;

/// The fold.
#[derive(Debug, Default)]
pub(super) struct WaitTracker {
    /// What it waits for, and since when; none while somebody is at work.
    now: Option<(WaitsFor, Timestamp)>,
    /// Whether a person keeps it from going on.
    held: bool,
    /// Whether checks of the forge were running when it last looked.
    checks: bool,
    waits: WaitTimes,
}

impl WaitTracker {
    /// Counts anew from here.
    pub fn restart_count(&mut self, at: Timestamp) {
        self.waits.clear();
        if let Some((_, since)) = &mut self.now {
            *since = at;
        }
    }

    /// How long it waited since it was last counted anew.
    pub fn wait_times(&self) -> &WaitTimes {
        &self.waits
    }

    /// Takes the next fact in.
    pub fn hear(&mut self, at: Timestamp, event: &Event) {
        match event {
            Event::Entered { opening, .. } => {
                let stands_in_line = *opening == AttemptStart::Queue;
                self.switch_wait(at, stands_in_line.then_some(WaitsFor::Queue));
            }
            Event::Requeued { .. } => self.switch_wait(at, Some(WaitsFor::Queue)),
            Event::LandingBegan { report, .. } | Event::Ejected { report, .. } => {
                self.note_verified(at, report)
            }
            Event::Conflicted { .. } | Event::Landed { .. } | Event::Ended(_) => self.switch_wait(at, None),
            Event::Left { .. } => {
                self.checks = false;
                self.switch_wait(at, Some(WaitsFor::Slot));
            }
            Event::Yielded { .. }
            | Event::Resumed { .. }
            | Event::Reviewed { .. }
            | Event::Retried { .. }
            | Event::Reopened { .. } => self.switch_wait(at, Some(WaitsFor::Slot)),
            Event::Waited { wait, .. } => self.switch_wait(at, Some(self.classify_wait(wait))),
            Event::ReviewWanted { .. } => self.switch_wait(at, Some(WaitsFor::Person)),
            Event::Held { .. } => self.set_held(at, true),
            Event::Released => self.set_held(at, false),
            Event::Directed { .. } => {
                self.set_held(at, false);
                if self.now.is_some() {
                    self.switch_wait(at, Some(WaitsFor::Slot));
                }
            }
            Event::Issue(IssueEvent::Checks { ci, .. }) => self.checks = matches!(ci, CiStatus::Running(_)),
            _ => {}
        }
    }

    fn classify_wait(&self, wait: &WaitReason) -> WaitsFor {
        match wait {
            WaitReason::Question { .. }
            | WaitReason::Login { .. }
            | WaitReason::Pause
            | WaitReason::Conflict { .. }
            | WaitReason::GateBroken { .. } => WaitsFor::Person,
            WaitReason::Quota { .. } => WaitsFor::Quota,
            WaitReason::Budget { .. } => WaitsFor::Budget,
            WaitReason::Backoff { .. } if self.checks => WaitsFor::Checks,
            WaitReason::Backoff { .. } => WaitsFor::Trouble,
            WaitReason::Dependency(_) | WaitReason::Blockers { .. } => WaitsFor::Blockers,
            WaitReason::Parts => WaitsFor::Parts,
            WaitReason::Disk { .. } => WaitsFor::Disk,
            WaitReason::Slot | WaitReason::Turn(_) => WaitsFor::Slot,
        }
    }

    /// What it waits for from here on; what it waited for until here is counted.
    fn switch_wait(&mut self, at: Timestamp, now: Option<WaitsFor>) {
        self.count_wait(at, 0);
        self.now = now.map(|now| (now, at));
    }

    /// Its batch was verified while it stood in line: that was work.
    fn note_verified(&mut self, at: Timestamp, report: &GateReport) {
        self.count_wait(at, if report.reused { 0 } else { report.took_ms });
        self.now = None;
    }

    fn set_held(&mut self, at: Timestamp, held: bool) {
        self.switch_wait(at, self.now.map(|(now, _)| now));
        self.held = held;
    }

    fn count_wait(&mut self, at: Timestamp, but_ms: u64) {
        let Some((what, since)) = self.now else { return };
        // Whoever is held would have to wait for a person if it had leave to go on.
        let what = if self.held && what == WaitsFor::Slot { WaitsFor::Person } else { what };
        let ms = elapsed_ms(since, at).saturating_sub(but_ms);
        if ms > 0 {
            *self.waits.entry(what).or_default() += ms;
        }
    }
}

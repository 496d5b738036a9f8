//! The course of a run: which tasks may begin, how far agents run ahead of what lands, what a run waits for, and why it is
//! over.
//!
//! Each question is answered from plain values. Whoever holds the whole state gathers them.

use std::collections::BTreeSet;

use crate::budget::ExhaustedBudget;
use crate::event::RunEnd;
use crate::filter::StartFilter;
use crate::input::IntakeState;
use crate::pilot::{Phase, PilotMode};
use crate::queue::BatchDoing;
use crate::resource::MachineResource;
use crate::sprint::{Sprint, SprintEnd, SprintPhase};
use crate::task::{AttemptPhase, EndCode, TaskState};
use crate::{Task, TaskId, WaitReason};

/// Which tasks may begin. `sprint` is the one this run is for, `picked` what a person picked.
#[must_use]
pub fn build_start_filter(
    sprint: Option<&Sprint>,
    goes_on: &dyn Fn(TaskId) -> bool,
    (mode, picked): (PilotMode, Option<TaskId>),
    only: Option<&BTreeSet<TaskId>>,
) -> StartFilter {
    let mut filter = sprint.map(|sprint| StartFilter::for_sprint(&sprint.plan)).unwrap_or_default();
    if sprint.is_some_and(|sprint| !sprint.begins_more(goes_on)) {
        filter.starts = Some(BTreeSet::new());
    }
    match mode {
        PilotMode::Autopilot => {}
        PilotMode::SemiAuto => filter.starts = Some(picked.into_iter().collect()),
    }
    filter.only = only.cloned();
    filter
}

/// Whether as much work waits to be verified or landed as agents may be at work. Agents that run further ahead land nothing
/// sooner: their workspaces pile up and their bases grow old. Work that lands in one go is no backlog.
#[must_use]
pub fn is_far_ahead(waiting: usize, slots: u32, batch_max: usize) -> bool {
    let batch = u32::try_from(batch_max).unwrap_or(u32::MAX);
    u32::try_from(waiting).unwrap_or(u32::MAX) >= slots.max(batch)
}

/// What a stop did to what is done about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interruption {
    /// Nothing: the run goes on, or ends in peace.
    None,
    /// The run is to end now.
    Asked,
    /// What was being done gave up because of that, and has changed nothing that must be known.
    CutShort,
}

/// Whether a run that is to end waits for what is done about a task. Checks that were interrupted are not waited for, nor is what
/// was cut short: the journal expects it, and the next run does it again.
#[must_use]
pub fn waits_for_task(task: &Task, interruption: Interruption) -> bool {
    match &task.state {
        TaskState::Active { doing, .. } => match doing {
            AttemptPhase::Checking { .. }
            | AttemptPhase::Exchanging { .. }
            | AttemptPhase::Recovering { .. } => interruption == Interruption::None,
            AttemptPhase::Preparing { .. }
            | AttemptPhase::Running { .. }
            | AttemptPhase::Landing
            | AttemptPhase::Reporting => interruption != Interruption::CutShort,
            AttemptPhase::Queued { .. } => false, // the queue says what is done about it
        },
        TaskState::Draft
        | TaskState::Ready { .. }
        | TaskState::Waiting { .. }
        | TaskState::Review { .. }
        | TaskState::Ended(_) => false,
    }
}

/// Whether a run that is to end waits for what is done about a batch. Where the base is moved, always: what it holds must
/// be known. Otherwise only a run that ends in peace.
#[must_use]
pub fn waits_for_batch(doing: BatchDoing, drive: IntakeState, interrupted: bool) -> bool {
    match (doing, drive) {
        (BatchDoing::Landing(_), _) => true,
        (BatchDoing::Building | BatchDoing::Checking(_) | BatchDoing::Resting, IntakeState::Draining) => {
            !interrupted
        }
        (BatchDoing::Building | BatchDoing::Checking(_) | BatchDoing::Resting, IntakeState::Running) => false,
    }
}

/// What is done about a run that was told to end while this machine is out of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShortageStopAction {
    /// What is under way is followed to its end.
    Wait,
    /// What is under way is told to end at once: it cannot be followed to an end of its own.
    StopNow,
    /// The run ends. What is under way is left to the next run, as after a kill.
    Leave,
}

/// How long a run that is to end waits for a missing resource, before each of the two steps.
const SHORT_STOP_MS: u64 = 3_000; // a service manager kills after ten seconds or more

/// A resource that comes back for less than this counts as missing all the time: nothing can be followed in between.
const SHORTAGE_GAP_MS: u64 = 1_500;
const _: () = assert!(SHORTAGE_GAP_MS < SHORT_STOP_MS, "a gap is shorter than the wait");

/// How long this machine has been out of a resource, by the clock that never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShortageSpan {
    resource: MachineResource,
    began_ms: u64,
    seen_ms: u64,
    is_missing: bool,
}

impl ShortageSpan {
    /// The span after a look at `now_ms` found this resource missing, or none.
    #[must_use]
    pub fn after_check(
        span: Option<Self>,
        missing: Option<MachineResource>,
        now_ms: u64,
    ) -> Option<ShortageSpan> {
        let is_recent = |span: &Self| now_ms.saturating_sub(span.seen_ms) <= SHORTAGE_GAP_MS;
        let Some(resource) = missing else {
            return span.filter(is_recent).map(|span| Self { is_missing: false, ..span });
        };
        // A late look at a resource that was never seen to be back belongs to the same shortage.
        let same =
            span.filter(|span| span.resource == resource).filter(|span| span.is_missing || is_recent(span));
        let began_ms = same.map_or(now_ms, |span| span.began_ms);
        Some(Self { resource, began_ms, seen_ms: now_ms, is_missing: true })
    }

    /// What the last look found missing, and for how long it had been.
    #[must_use]
    pub fn missing_resource(&self) -> Option<(MachineResource, u64)> {
        self.is_missing.then(|| (self.resource, self.seen_ms.saturating_sub(self.began_ms)))
    }
}

/// Decides about a run that was told to end `told_ms` ago, and to end at once `told_now_ms` ago. `short` is what this machine is
/// out of, and for how many milliseconds it has been.
#[must_use]
pub fn decide_short_stop(
    short: Option<(MachineResource, u64)>,
    told_ms: Option<u64>,
    told_now_ms: Option<u64>,
) -> ShortageStopAction {
    let (Some((resource, missing_ms)), Some(told_ms)) = (short, told_ms) else {
        return ShortageStopAction::Wait;
    };
    match resource {
        // Without these no agent can be followed, even if it ended long ago.
        MachineResource::Descriptors | MachineResource::Processes | MachineResource::Memory => {}
        // An agent can end without room on the disk, and is ended before the engine.
        MachineResource::Disk | MachineResource::Inodes => return ShortageStopAction::Wait,
    }
    // A shortage that began long after the stop has not held anything up yet.
    match told_now_ms {
        None if told_ms.min(missing_ms) >= SHORT_STOP_MS => ShortageStopAction::StopNow,
        Some(told_now_ms) if told_now_ms.min(missing_ms) >= SHORT_STOP_MS => ShortageStopAction::Leave,
        None | Some(_) => ShortageStopAction::Wait,
    }
}

/// Whether a task was put aside for a person: it asks, is to be looked at, or conflicts in a way nobody else resolves.
#[must_use]
pub fn is_deferred(task: &Task) -> bool {
    match &task.state {
        TaskState::Waiting { wait, .. } => match wait {
            WaitReason::Question { .. } | WaitReason::Conflict { .. } | WaitReason::Login { .. } => true,
            WaitReason::Dependency(_)
            | WaitReason::Slot
            | WaitReason::Turn(_)
            | WaitReason::Quota { .. }
            | WaitReason::Backoff { .. }
            | WaitReason::Disk { .. }
            | WaitReason::Budget { .. }
            | WaitReason::Pause
            | WaitReason::Parts
            | WaitReason::Blockers { .. }
            | WaitReason::GateBroken { .. } => false,
        },
        TaskState::Review { .. } => true,
        TaskState::Ended(ending) => ending.code == EndCode::ConflictLimit,
        TaskState::Draft | TaskState::Ready { .. } | TaskState::Active { .. } => false,
    }
}

/// How long to wait before a gate that could not be trusted is tried again, after so many tries in vain.
#[must_use]
pub fn gate_pause_ms(tries: u32) -> u64 {
    const PAUSE_MS: u64 = 15_000; // a check costs minutes of this machine
    const DOUBLINGS_MAX: u32 = 5; // eight minutes
    PAUSE_MS << tries.min(DOUBLINGS_MAX)
}

/// So many tasks of a run that nobody attends may be put aside; with more, it has failed as a whole.
pub const DEFERRED_MAX: usize = 10;

/// A run as it stands, when nothing is under way that has to be finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSnapshot {
    /// Whether anything new may begin.
    pub drive: IntakeState,
    /// Where it is.
    pub phase: Phase,
    /// Who picks.
    pub mode: PilotMode,
    /// Who could resume it or pick a task.
    pub person: PersonPresence,
    /// Whether a task is there that a person could pick.
    pub pickable: bool,
    /// Whether somebody waits for a slot.
    pub wants_slot: bool,
    /// A budget that is used up.
    pub spent: Option<ExhaustedBudget>,
    /// What comes by itself.
    pub coming: BTreeSet<ExpectedEvent>,
    /// How the sprint of this run stands.
    pub sprint: Option<SprintPhase>,
}

/// Whether somebody is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersonPresence {
    /// Somebody is.
    There,
    /// Nobody is.
    Away,
}

/// What comes by itself, so that a run may wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExpectedEvent {
    /// A task waits for a moment.
    Due,
    /// An account opens by the clock.
    Account,
    /// Room on the disk.
    Room,
    /// Something this machine has run out of, and that somebody waits for.
    Resource,
    /// The checks pass on the base, for agents to start there.
    BaseCheck,
    /// The landing queue goes on.
    Landing,
}

impl RunSnapshot {
    /// Whether nothing will begin by itself, and nobody is waited for.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        match self.drive {
            IntakeState::Draining => return true,
            IntakeState::Running => {}
        }
        let asks = match self.phase {
            Phase::Paused => true,
            Phase::WaitingUser => self.pickable,
            Phase::Idle | Phase::Running | Phase::Completed => false,
        };
        match self.person {
            PersonPresence::There if asks => return false,
            PersonPresence::There | PersonPresence::Away => {}
        }
        let paused = self.phase == Phase::Paused;
        // What only waits for tomorrow's budget is waited for.
        let money = self.wants_slot && self.spent.as_ref().is_some_and(|spent| spent.until.is_some());
        let comes = |coming: &ExpectedEvent| match coming {
            ExpectedEvent::Landing | ExpectedEvent::Resource => true,
            ExpectedEvent::Due | ExpectedEvent::Account => !paused,
            ExpectedEvent::Room | ExpectedEvent::BaseCheck => !paused && self.wants_slot,
        };
        !(self.coming.iter().any(comes) || (money && !paused))
    }

    /// Why a run that is idle is over.
    #[must_use]
    pub fn run_end_reason(&self) -> RunEnd {
        match &self.sprint {
            Some(SprintPhase::Completing { why: SprintEnd::Goal }) => return RunEnd::Goal,
            Some(
                SprintPhase::Completing {
                    why: SprintEnd::NothingLeft | SprintEnd::Cancelled | SprintEnd::Spent,
                }
                | SprintPhase::Running
                | SprintPhase::Paused { .. }
                | SprintPhase::Over { .. },
            )
            | None => {}
        }
        match (self.phase, self.mode) {
            (Phase::Paused, _) => RunEnd::Paused,
            (_, _) if self.wants_slot && self.spent.is_some() => RunEnd::Spent,
            (_, PilotMode::SemiAuto) if self.pickable => RunEnd::OneDone,
            (_, PilotMode::SemiAuto | PilotMode::Autopilot) => RunEnd::NothingLeft,
        }
    }
}

//! Sprints: a run with a goal, a choice of tasks, and statistics that are honest about a bad night.
//!
//! A sprint is a wrapper: it says which tasks may start and when no more do. It does not change who goes first.

use std::collections::BTreeMap;

use crate::event::{Event, RunEnd};
use crate::flow::EdgeTarget;
use crate::gate::CheckOutcome;
use crate::task::{EndKind, Ending};
use crate::{TaskId, Timestamp};
pub use landfall_facts::sprint::{
    ReviewDecision, SprintEnd, SprintEndCondition, SprintEvent, SprintFate as Fate, SprintId, SprintSpec,
    SprintStage,
};

/// Where a sprint is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SprintPhase {
    /// Tasks start.
    Running,
    /// Nothing new begins until it goes on.
    Paused {
        /// Because.
        reason: String,
        /// Since then.
        since: Timestamp,
    },
    /// It has what it wanted; what is under way is finished.
    Completing {
        /// So.
        why: SprintEnd,
    },
    /// It is over.
    Over {
        /// So.
        why: SprintEnd,
        /// Since then.
        at: Timestamp,
    },
}

impl SprintPhase {
    /// Which it is, without its reasons.
    #[must_use]
    pub fn stage(&self) -> SprintStage {
        match self {
            Self::Running => SprintStage::Running,
            Self::Paused { .. } => SprintStage::Paused,
            Self::Completing { .. } => SprintStage::Completing,
            Self::Over { .. } => SprintStage::Over,
        }
    }
}

/// What became of one task in a sprint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStat {
    /// When it first began in the sprint.
    pub started: Timestamp,
    /// When it landed, or gave up.
    pub completed: Option<Timestamp>,
    /// Runs of its agent in the sprint.
    pub iterations: u32,
    /// Whether its work is verified.
    pub verified: bool,
    /// What a person said of it.
    pub review: Option<ReviewDecision>,
    /// Whether it waits for a person to look.
    pub reviewing: bool,
    /// How it stands.
    pub fate: Fate,
    /// Whether it was ever sent back out of the landing queue.
    pub ejected: bool,
    /// Money it used in the sprint.
    pub micro_usd: u64,
    /// Tokens it used in the sprint.
    pub tokens: u64,
}

impl TaskStat {
    fn record_end(&mut self, at: Timestamp, kind: EndKind) {
        if self.fate == Fate::Landed {
            return; // what comes after the landing does not take it back
        }
        self.completed = Some(at);
        (self.fate, self.verified) = match kind {
            EndKind::Done => (Fate::Landed, self.verified),
            EndKind::Failed => (Fate::Failed, false),
            EndKind::Timeout => (Fate::Timeout, false),
            EndKind::Blocked => (Fate::Blocked, false),
            EndKind::Cancelled => (Fate::Cancelled, false),
        };
    }
}

/// A sprint as it stands: a fold of its own facts and of those of its tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sprint {
    /// Its number.
    pub id: SprintId,
    /// What it is to be.
    pub plan: SprintSpec,
    /// When it began.
    pub started: Timestamp,
    /// Where it is.
    pub phase: SprintPhase,
    /// How long it was paused, up to the pause it may be in.
    pub paused_ms: u64,
    /// How many tasks could start when it began.
    pub ready: u32,
    /// What became of each task it began.
    pub tasks: BTreeMap<TaskId, TaskStat>,
    /// What landed, in order.
    pub landings: Vec<(Timestamp, TaskId)>,
}

impl Sprint {
    /// Whether it is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.phase, SprintPhase::Over { .. })
    }

    /// How long it has gone on, pauses not counted.
    #[must_use]
    pub fn worked_ms(&self, now: Timestamp) -> u64 {
        let until = match &self.phase {
            SprintPhase::Paused { since, .. } => *since,
            SprintPhase::Over { at, .. } => *at,
            SprintPhase::Running | SprintPhase::Completing { .. } => now,
        };
        u64::try_from(until.0 - self.started.0).unwrap_or(0).saturating_sub(self.paused_ms)
    }

    /// How many tasks count for its goal: verified, whether they have landed yet or wait for a person.
    #[must_use]
    pub fn count_verified(&self) -> usize {
        self.tasks.values().filter(|stat| stat.verified).count()
    }

    /// How many of its tasks stand so.
    #[must_use]
    pub fn count_in_status(&self, fate: Fate) -> usize {
        self.tasks.values().filter(|stat| stat.fate == fate).count()
    }

    /// Whether it has what it wanted.
    #[must_use]
    pub fn has_reached_goal(&self, now: Timestamp, ready: usize) -> bool {
        match self.plan.goal {
            SprintEndCondition::Count(count) => self.count_verified() >= count as usize,
            SprintEndCondition::Duration { ms } => self.worked_ms(now) >= ms,
            SprintEndCondition::Until(at) => now >= at,
            SprintEndCondition::NoReady => ready == 0,
        }
    }

    /// Why it begins nothing more from now on, if so. One that is paused may have the count it wanted by what was under way.
    #[must_use]
    pub fn should_complete(&self, now: Timestamp, ready: usize) -> Option<SprintEnd> {
        let looks = match (&self.phase, self.plan.goal) {
            (SprintPhase::Running, _) | (SprintPhase::Paused { .. }, SprintEndCondition::Count(_)) => true,
            (
                SprintPhase::Paused { .. },
                SprintEndCondition::Duration { .. }
                | SprintEndCondition::Until(_)
                | SprintEndCondition::NoReady,
            )
            | (SprintPhase::Completing { .. } | SprintPhase::Over { .. }, _) => false,
        };
        (looks && self.has_reached_goal(now, ready)).then_some(match self.plan.goal {
            SprintEndCondition::NoReady => SprintEnd::NothingLeft,
            SprintEndCondition::Count(_)
            | SprintEndCondition::Duration { .. }
            | SprintEndCondition::Until(_) => SprintEnd::Goal,
        })
    }

    /// Whether it begins more tasks: not once what is under way would do for the count it wants, if all of it went well.
    /// `goes_on` says of which task something more comes by itself.
    #[must_use]
    pub fn begins_more(&self, goes_on: &dyn Fn(TaskId) -> bool) -> bool {
        match self.phase {
            SprintPhase::Completing { .. } => return false,
            SprintPhase::Running | SprintPhase::Paused { .. } | SprintPhase::Over { .. } => {}
        }
        match self.plan.goal {
            SprintEndCondition::Count(count) => {
                let open = |(id, stat): &(&TaskId, &TaskStat)| !stat.verified && goes_on(**id);
                let under_way = self.tasks.iter().filter(open).count();
                self.count_verified() + under_way < usize::try_from(count).unwrap_or(usize::MAX)
            }
            SprintEndCondition::Duration { .. }
            | SprintEndCondition::Until(_)
            | SprintEndCondition::NoReady => true,
        }
    }

    /// What the end of its run means for it.
    #[must_use]
    pub fn event_at_run_end(&self, why: RunEnd) -> Option<SprintEvent> {
        let paused = match &self.phase {
            SprintPhase::Completing { why } => return Some(SprintEvent::Ended { why: *why }),
            SprintPhase::Paused { .. } => true,
            SprintPhase::Running | SprintPhase::Over { .. } => false,
        };
        match why {
            RunEnd::NothingLeft | RunEnd::Goal => Some(SprintEvent::Ended { why: SprintEnd::NothingLeft }),
            RunEnd::Spent => Some(SprintEvent::Ended { why: SprintEnd::Spent }),
            RunEnd::Drained | RunEnd::Interrupted | RunEnd::Paused | RunEnd::OneDone | RunEnd::Lost => {
                (!paused).then(|| SprintEvent::Paused { reason: "its run was stopped".to_owned() })
            }
        }
    }

    /// The moment its goal comes by the clock alone.
    #[must_use]
    pub fn goal_due_at(&self, now: Timestamp) -> Option<Timestamp> {
        match (&self.phase, self.plan.goal) {
            (SprintPhase::Running, SprintEndCondition::Until(at)) => Some(at),
            (SprintPhase::Running, SprintEndCondition::Duration { ms }) => {
                Some(now.plus_ms(ms.saturating_sub(self.worked_ms(now))))
            }
            _ => None,
        }
    }

    /// When so many more tasks would have landed, at the pace of the last half of what landed. None: nothing to go by.
    #[must_use]
    pub fn forecast_completion(&self, now: Timestamp, more: usize) -> Option<Timestamp> {
        const LEAST: usize = 2; // one landing is no pace
        let landed = self.landings.len();
        if landed < LEAST || more == 0 {
            return None;
        }
        let recent = (landed / 2).max(LEAST);
        let from = match landed - recent {
            0 => self.started,
            first => self.landings[first - 1].0,
        };
        let span = u64::try_from(now.0 - from.0).ok()?;
        let each = span / u64::try_from(recent).ok()?;
        Some(now.plus_ms(each.saturating_mul(u64::try_from(more).ok()?)))
    }

    /// Bookkeeping: what a fact about the sprint means.
    pub fn apply(&mut self, at: Timestamp, event: &SprintEvent) {
        if self.is_over() {
            return;
        }
        match event {
            SprintEvent::Started { .. } => {}
            SprintEvent::Paused { reason } => {
                if !matches!(self.phase, SprintPhase::Paused { .. }) {
                    self.phase = SprintPhase::Paused { reason: reason.clone(), since: at };
                }
            }
            SprintEvent::Resumed => {
                if let SprintPhase::Paused { .. } = &self.phase {
                    self.end_pause(at);
                    self.phase = SprintPhase::Running;
                }
            }
            SprintEvent::Completing { why } => {
                self.end_pause(at);
                self.phase = SprintPhase::Completing { why: *why };
            }
            SprintEvent::Ended { why } => {
                self.end_pause(at);
                self.phase = SprintPhase::Over { why: *why, at };
            }
        }
    }

    /// Counts the pause it is in, if it is in one.
    fn end_pause(&mut self, at: Timestamp) {
        if let SprintPhase::Paused { since, .. } = &self.phase {
            self.paused_ms += u64::try_from(at.0 - since.0).unwrap_or(0);
        }
    }

    /// Bookkeeping: what a fact about a task means for it.
    pub fn note(&mut self, at: Timestamp, task: TaskId, event: &Event) {
        if self.is_over() {
            // A person may look at what landed later.
            if let (Event::Signed { decision, .. }, Some(stat)) = (event, self.tasks.get_mut(&task)) {
                stat.review = Some(*decision);
            }
            return;
        }
        // Whatever another run begins while it is paused is not its own. A task that stood in the landing queue before lands
        // without being begun: it has landed in this sprint, and is none of those that the sprint verified.
        let is_queued_before = matches!(event, Event::Landed { .. }) && !self.tasks.contains_key(&task);
        let begins = matches!(event, Event::Entered { .. }) || is_queued_before;
        if begins && !matches!(self.phase, SprintPhase::Paused { .. }) {
            self.tasks.entry(task).or_insert_with(|| TaskStat {
                started: at,
                completed: None,
                iterations: 0,
                verified: false,
                review: None,
                reviewing: false,
                fate: Fate::Open,
                ejected: false,
                micro_usd: 0,
                tokens: 0,
            });
        }
        let Some(stat) = self.tasks.get_mut(&task) else { return };
        match event {
            Event::IterationBegan { .. } => stat.iterations += 1,
            Event::IterationEnded { usage, .. } => {
                stat.micro_usd += usage.micro_usd;
                stat.tokens += usage.total_tokens();
                stat.verified = false;
            }
            Event::Verified { report, .. } => {
                stat.verified = matches!(report.outcome(), CheckOutcome::Pass | CheckOutcome::Flaky);
            }
            Event::Ejected { .. } => (stat.verified, stat.ejected) = (false, true),
            Event::Conflicted { .. } => stat.verified = false,
            Event::ReviewWanted { .. } => stat.reviewing = true,
            Event::Reviewed { approved, .. } => {
                stat.reviewing = false;
                stat.verified &= *approved;
                stat.review = Some(if *approved { ReviewDecision::Approved } else { ReviewDecision::Redo });
            }
            Event::Signed { decision, .. } => stat.review = Some(*decision),
            Event::Landed { .. } => {
                stat.completed = Some(at);
                (stat.fate, stat.verified) = (Fate::Landed, !is_queued_before);
                self.landings.push((at, task));
            }
            Event::Ended(Ending { kind, .. }) => stat.record_end(at, *kind),
            // A flow ends without another word.
            Event::Left { to: EdgeTarget::End, .. } => stat.record_end(at, EndKind::Done),
            Event::Left { to: EdgeTarget::Stop, .. } => stat.record_end(at, EndKind::Blocked),
            Event::Retried { .. } => (stat.fate, stat.completed) = (Fate::Open, None),
            _ => {}
        }
    }
}

/// Every sprint there was: a fold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sprints {
    all: Vec<Sprint>,
}

impl Sprints {
    /// Every one, oldest first.
    #[must_use]
    pub fn all_sprints(&self) -> &[Sprint] {
        &self.all
    }

    /// The one that is not over.
    #[must_use]
    pub fn open(&self) -> Option<&Sprint> {
        self.all.last().filter(|sprint| !sprint.is_over())
    }

    /// The number of the next one.
    #[must_use]
    pub fn next_id(&self) -> SprintId {
        SprintId(self.all.last().map_or(1, |sprint| sprint.id.0 + 1))
    }

    /// Bookkeeping: what a fact about sprints means.
    pub fn apply(&mut self, at: Timestamp, event: &SprintEvent) {
        if let SprintEvent::Started { sprint, plan, ready } = event {
            self.all.push(Sprint {
                id: *sprint,
                plan: plan.clone(),
                started: at,
                phase: SprintPhase::Running,
                paused_ms: 0,
                ready: *ready,
                tasks: BTreeMap::new(),
                landings: Vec::new(),
            });
        }
        if let Some(sprint) = self.all.last_mut() {
            sprint.apply(at, event);
        }
    }

    /// Bookkeeping: what a fact about a task means for them.
    pub fn note(&mut self, at: Timestamp, task: TaskId, event: &Event) {
        if let Event::Signed { .. } = event {
            for sprint in &mut self.all {
                sprint.note(at, task, event);
            }
            return;
        }
        if let Some(sprint) = self.all.last_mut() {
            sprint.note(at, task, event);
        }
    }
}

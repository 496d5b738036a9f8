//! The landing queue: who lands together, what is verified of it, and who is at fault when it is red.
//!
//! Verified tasks stand in line. The front of the line becomes a **batch**: its members are merged onto the base in
//! order, as one merge commit, and that commit is verified. While one batch is being verified the next one is built and
//! verified on top of it, as if the first had landed. A red batch is searched for its culprit by halves, always over a
//! beginning of its members: what comes before the culprit is green and lands, the culprit goes back to its agent, and
//! whoever stood behind it stands in line again. A batch of one is not searched.
//!
//! As for tasks, [`decide`] holds policy and [`Queue::apply`] is bookkeeping. The line itself is not journalled: it is the
//! tasks that say they stand in it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use thiserror::Error;

use crate::event::{AttemptStart, Event};
use crate::gaming;
use crate::gate::{CheckOutcome, GateReport};
use crate::input::News;
use crate::seeded_bugs::{self, SeededBug};
use crate::task::{AttemptPhase, ChangeConcern, ConcernCode, LandingCandidate, Task, TaskState};
use crate::{Attempt, Commit, TaskId, Timestamp, Tree};
pub use landfall_facts::queue::{BatchEnd, BatchId, BatchMember, BatchPrefix, HoldReason, QueueEvent};

/// A batch on its way.
#[derive(Debug, Clone, PartialEq)]
pub struct LandingBatch {
    /// Its number.
    pub id: BatchId,
    /// Whoever is in it, in the order they are merged.
    pub members: Vec<BatchMember>,
    /// The batch it stands on, as long as that one has not landed.
    pub on: Option<BatchId>,
    /// The base it was merged onto.
    pub base: Option<Commit>,
    /// One for each member: the base with all members up to that one.
    pub prefixes: Vec<BatchPrefix>,
    /// How many members from the front are known to be green together; none is the base itself.
    pub green: usize,
    /// The least number from the front that is known to be red together.
    pub red: Option<usize>,
    /// What was seen of the longest green beginning.
    pub green_report: Option<GateReport>,
    /// The longest green beginning before that one, and what was seen of it.
    pub green_before: Option<(usize, GateReport)>,
    /// What was seen of the shortest red one. It is green where a beginning is only doubted: fewer tests ran than on the base.
    pub red_report: Option<GateReport>,
    /// What is being done about it.
    pub doing: BatchDoing,
    /// Every look at it so far: how many members, and what came of it.
    pub looks: Vec<(usize, CheckOutcome)>,
    /// Tasks that do not fit to its members, though they may fit to the base: they wait until it is over.
    pub crowded: BTreeSet<TaskId>,
}

/// What is being done about a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchDoing {
    /// Its members are being merged.
    Building,
    /// So many of its members, from the front, are being verified.
    Checking(usize),
    /// Nothing: it waits for its turn, or for a decision.
    Resting,
    /// The base is being moved to so many of its members.
    Landing(usize),
}

impl LandingBatch {
    /// Whether the whole of it is green.
    #[must_use]
    pub fn is_green(&self) -> bool {
        self.base.is_some() && self.red.is_none() && self.green == self.members.len()
    }

    /// Whether the shortest red beginning is doubted, not red: its checks passed.
    #[must_use]
    pub fn is_doubted(&self) -> bool {
        self.red_report.as_ref().is_some_and(|report| report.outcome().is_green())
    }

    fn member_heads(&self, count: usize) -> Vec<Commit> {
        self.members[..count].iter().map(|member| member.head.clone()).collect()
    }
}

/// Why nothing is taken from the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueHold {
    /// The kind.
    pub why: HoldReason,
    /// In words.
    pub reason: String,
    /// Since then.
    pub since: Timestamp,
    /// Until then, if it ends by itself.
    pub until: Option<Timestamp>,
}

/// An order about a batch. Each may be performed again after a crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueEffect {
    /// Merge the members.
    Build {
        /// Of this batch.
        batch: BatchId,
        /// Onto this commit; none is the base as it stands.
        on: Option<Commit>,
        /// These.
        members: Vec<BatchMember>,
    },
    /// Verify a beginning of it.
    Check {
        /// Of this batch.
        batch: BatchId,
        /// So many members.
        count: usize,
        /// The base.
        base: Commit,
        /// The work of each.
        heads: Vec<Commit>,
        /// Merged.
        prefix: BatchPrefix,
    },
    /// Move the base to a beginning of it.
    Land {
        /// Of this batch.
        batch: BatchId,
        /// The base.
        base: Commit,
        /// The members that land.
        members: Vec<BatchMember>,
        /// Merged and verified.
        prefix: BatchPrefix,
    },
    /// End whatever is being done for it: nobody waits for the outcome.
    Abandon {
        /// This batch.
        batch: BatchId,
    },
}

/// Why a task is not part of what was merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchExclusion {
    /// It does not merge.
    Conflict(Vec<crate::conflict::ConflictingFile>),
    /// The base holds the same already.
    NothingChanged,
    /// It fits to the base, but not to those before it: it waits for them.
    Crowded,
    /// It had landed before, and its end was not seen.
    Landed {
        /// As this.
        candidate: LandingCandidate,
        /// What the independent check saw.
        proof: String,
    },
}

/// What the queue can hear.
#[derive(Debug, Clone, PartialEq)]
pub enum QueueNews {
    /// Something may have changed: look.
    Look,
    /// A batch was merged.
    Built {
        /// This one.
        batch: BatchId,
        /// Onto this base.
        base: Commit,
        /// One for each member that could be merged, in order.
        prefixes: Vec<BatchPrefix>,
        /// The others.
        left_out: Vec<(TaskId, BatchExclusion)>,
        /// Conflicts that needed nobody: the work of these, with the base merged in.
        resolved: Vec<(TaskId, Commit)>,
    },
    /// A beginning of a batch was verified.
    Checked {
        /// Of this one.
        batch: BatchId,
        /// So many members.
        count: usize,
        /// All that was seen.
        report: GateReport,
    },
    /// The base was moved, and looking again found it right.
    Landed {
        /// To this batch.
        batch: BatchId,
        /// What the independent check saw.
        proof: String,
    },
    /// The base is no longer where the batch was verified.
    LandMoved {
        /// Of this one.
        batch: BatchId,
        /// It is here now.
        to: Commit,
    },
    /// The independent check did not agree.
    LandMismatch {
        /// About this one.
        batch: BatchId,
        /// In what.
        detail: String,
    },
    /// Something on this machine failed.
    Failed {
        /// For this batch.
        batch: BatchId,
        /// What and why.
        detail: String,
    },
    /// The machine ran out of something. The batch is dropped and formed again once that is back; nothing is held.
    Exhausted {
        /// For this batch.
        batch: BatchId,
        /// What and why.
        detail: String,
    },
    /// A person moved the base: what stands on the old one is of no use.
    BaseMoved {
        /// To here.
        to: Commit,
    },
    /// Nothing is to be taken from the line.
    Hold {
        /// The kind.
        why: HoldReason,
        /// In words.
        reason: String,
    },
    /// It may move again.
    Resume,
    /// What failed may work again: a new run began, or a check passed. Only holds that no person has to end do end.
    Retry,
    /// The person's branch is where it should be.
    BranchRestored,
}

/// How the queue works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuePolicy {
    /// Members of one batch at most.
    pub batch_max: usize,
    /// Batches verified on top of one that has not landed.
    pub speculate: usize,
    /// Verifications in a row without a landing before a person is asked.
    pub runaway: u32,
    /// Whether new batches are formed, or those on their way are just finished.
    pub forms: bool,
}

impl Default for QueuePolicy {
    fn default() -> Self {
        Self { batch_max: 4, speculate: 1, runaway: 20, forms: true }
    }
}

/// A task that stands in line. Less is sooner: 1. the more urgent, 2. who came first by the journal; 3. by the clock, for
/// readers who do not read all of it; 4. the older task.
type QueueSortKey = (u8, u64, Timestamp, TaskId);

#[derive(Debug, Clone, PartialEq, Eq)]
struct QueuedTask {
    place: QueueSortKey,
    attempt: Attempt,
    head: Commit,
    /// Whether the base may hold it already: the end of its landing was not seen.
    unsure: bool,
    /// Whether fewer tests than on the base are no news: a person has looked at that, or no agent made the change.
    waived: bool,
}

/// The queue as it stands.
#[derive(Debug, Clone, Default)]
pub struct Queue {
    /// In the order they land: each stands on the one before it.
    batches: Vec<LandingBatch>,
    last: BatchId,
    hold: Option<QueueHold>,
    /// Verifications since one landed.
    trials: u32,
    /// Troubles of this machine in a row.
    troubles: u32,
    /// Holds for a gate that could not be trusted, in a row.
    gate_holds: u32,
    /// The latest that are over.
    past: VecDeque<(LandingBatch, BatchEnd, Timestamp)>,
    standing: BTreeMap<TaskId, QueuedTask>,
    line: BTreeSet<QueueSortKey>,
    /// How many tests ran on commits that may become the base, if they tell.
    tests: VecDeque<(Commit, Option<u64>)>,
    /// Who came when: counted, because a clock can be set back.
    arrivals: BTreeMap<TaskId, u64>,
    arrivals_count: u64,
}

/// Two are the same with the same order of the line, whatever its places are numbered.
impl PartialEq for Queue {
    fn eq(&self, other: &Self) -> bool {
        let parts = |it: &Self| (it.last, it.trials, it.troubles, it.gate_holds);
        let stands = |it: &Self| {
            let one = |(id, it): (&TaskId, &QueuedTask)| {
                let (priority, _, since, _) = it.place;
                (*id, priority, since, it.attempt, it.head.clone(), it.unsure, it.waived)
            };
            it.standing.iter().map(one).collect::<Vec<_>>()
        };
        parts(self) == parts(other)
            && self.batches == other.batches
            && self.hold == other.hold
            && self.past == other.past
            && self.line().eq(other.line())
            && stands(self) == stands(other)
            && self.tests == other.tests
    }
}

/// A fact that cannot follow: the journal is damaged, or the engine has a bug.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the landing queue: {what}")]
pub struct IllegalQueueEvent {
    /// What cannot follow.
    pub what: String,
}

/// What follows from a piece of news.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueueDecision {
    /// What tasks hear, before the facts about the queue.
    pub tells: Vec<(TaskId, News)>,
    /// The facts, in order.
    pub events: Vec<QueueEvent>,
    /// The orders, performed after all that is written.
    pub effects: Vec<QueueEffect>,
}

const PAST_MAX: usize = 32; // what a person looks back at; the journal has them all
const TESTS_MAX: usize = 64; // a base is asked about soon after it was verified
const TROUBLES_MAX: u32 = 3; // a run does not wait longer for a broken git to mend itself

impl Queue {
    /// The batches on their way, in the order they land.
    #[must_use]
    pub fn batches(&self) -> &[LandingBatch] {
        &self.batches
    }

    /// Why nothing is taken from the line, if so.
    #[must_use]
    pub fn hold(&self) -> Option<&QueueHold> {
        self.hold.as_ref()
    }

    /// The latest batches that are over, oldest first.
    pub fn past_batches(&self) -> impl Iterator<Item = &(LandingBatch, BatchEnd, Timestamp)> {
        self.past.iter()
    }

    /// Whoever stands in line, first come first, members of batches included.
    pub fn line(&self) -> impl Iterator<Item = TaskId> {
        self.line.iter().map(|(.., task)| *task)
    }

    /// How many stand in line.
    #[must_use]
    pub fn len(&self) -> usize {
        self.line.len()
    }

    /// Whether nobody stands in line.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// Whether something is being done, or would be at the next look.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        !self.batches.is_empty() || (self.hold.is_none() && !self.line.is_empty())
    }

    /// The batch a task is in.
    #[must_use]
    pub fn batch_of(&self, task: TaskId) -> Option<&LandingBatch> {
        self.batches.iter().find(|batch| batch.members.iter().any(|member| member.task == task))
    }

    /// Whether the base is about to be moved without verifying anything: what is merged with the base before that would have
    /// to be merged and verified again. `seen` is the tree a task was verified as.
    #[must_use]
    pub fn is_settling(&self, seen: &dyn Fn(TaskId) -> Option<Tree>) -> bool {
        self.batches.first().is_some_and(|batch| match batch.doing {
            BatchDoing::Building | BatchDoing::Resting | BatchDoing::Landing(_) => true,
            BatchDoing::Checking(count) => match (batch.members.first(), batch.prefixes.first()) {
                (Some(member), Some(prefix)) => {
                    count == 1 && seen(member.task).as_ref() == Some(&prefix.tree)
                }
                (_, _) => false,
            },
        })
    }

    /// When a hold ends by itself.
    #[must_use]
    pub fn hold_until(&self) -> Option<Timestamp> {
        self.hold.as_ref().and_then(|hold| hold.until)
    }

    /// Whether a run waits for the end of a hold. A gate is tried again while a run has other work, and by the next run.
    #[must_use]
    pub fn resumes_soon(&self) -> bool {
        let soon = |hold: &QueueHold| match hold.why {
            HoldReason::Machine => hold.until.is_some() && self.troubles < TROUBLES_MAX,
            HoldReason::Gate
            | HoldReason::Runaway
            | HoldReason::Person
            | HoldReason::Rewritten
            | HoldReason::Deleted => false,
        };
        self.hold.as_ref().is_some_and(soon)
    }

    /// Whether nothing lands before a person has looked at the base or the branch.
    #[must_use]
    pub fn is_held_for_base(&self) -> bool {
        self.hold.as_ref().is_some_and(|hold| match hold.why {
            HoldReason::Rewritten | HoldReason::Deleted => true,
            HoldReason::Machine | HoldReason::Gate | HoldReason::Runaway | HoldReason::Person => false,
        })
    }

    /// Notes that a fact brings its task into the line. The order of facts is the order of the line.
    pub fn note(&mut self, task: TaskId, event: &Event) {
        if matches!(event, Event::Entered { opening: AttemptStart::Queue, .. } | Event::Requeued { .. }) {
            self.arrivals_count += 1;
            self.arrivals.insert(task, self.arrivals_count);
        }
    }

    /// Takes a task in that was changed: it stands in line, or it does not.
    pub fn update_task(&mut self, task: &Task) {
        if let Some(before) = self.standing.remove(&task.id) {
            self.line.remove(&before.place);
        }
        let TaskState::Active { doing: AttemptPhase::Queued { since }, .. } = &task.state else {
            self.arrivals.remove(&task.id);
            return;
        };
        let Some(head) = task.head.clone().or_else(|| task.gate.as_ref().map(|gate| gate.head.clone()))
        else {
            return;
        };
        let arrival = match seeded_bugs::is_active(SeededBug::LineByClock) {
            true => 0,
            false => self.arrivals.get(&task.id).copied().unwrap_or(0),
        };
        let place = (task.spec.priority, arrival, *since, task.id);
        self.line.insert(place);
        let unsure = task.landing.is_some();
        let looked_at = |concern: &ChangeConcern| concern.code == ConcernCode::FewerTests;
        let waived = !task.is_made_by_an_agent()
            || (task.approved_head.as_ref() == Some(&head) && task.concerns.iter().any(looked_at));
        self.standing.insert(task.id, QueuedTask { place, attempt: task.attempt, head, unsure, waived });
    }

    /// Takes in what was seen of a commit that is the base, or may become it.
    pub fn note_base_report(&mut self, report: &GateReport) {
        if !report.outcome().is_green() || self.tests.iter().any(|(commit, _)| *commit == report.commit) {
            return;
        }
        if self.tests.len() == TESTS_MAX {
            self.tests.pop_front();
        }
        self.tests.push_back((report.commit.clone(), report.test_count()));
    }

    /// What a person should look at before the longest green beginning lands, unless they have: fewer tests ran than on
    /// the base. Alone each member was compared with the base as it was then; tests that came since count as well.
    fn batch_concerns(&self, batch: &LandingBatch) -> Vec<ChangeConcern> {
        let Some(report) = batch.green_report.as_ref().filter(|_| batch.green > 0) else { return Vec::new() };
        let waived = |member: &BatchMember| self.standing.get(&member.task).is_some_and(|it| it.waived);
        if batch.members[..batch.green].iter().any(waived) {
            return Vec::new();
        }
        let known = self.tests.iter().find(|(commit, _)| Some(commit) == batch.base.as_ref());
        gaming::find_concerns(&[], &[], report.test_count(), known.and_then(|(_, tests)| *tests), None)
    }

    /// What should be under way, after a crash of the engine.
    #[must_use]
    pub fn expected_effects(&self) -> Vec<QueueEffect> {
        self.batches.iter().filter_map(|batch| self.batch_effect(batch)).collect()
    }

    fn batch_effect(&self, batch: &LandingBatch) -> Option<QueueEffect> {
        let prefix = |count: usize| batch.prefixes[count - 1].clone();
        match batch.doing {
            BatchDoing::Building => Some(QueueEffect::Build {
                batch: batch.id,
                on: batch.on.and_then(|on| self.batch_tip(on)),
                members: batch.members.clone(),
            }),
            BatchDoing::Checking(count) => Some(QueueEffect::Check {
                batch: batch.id,
                count,
                base: batch.base.clone()?,
                heads: batch.member_heads(count),
                prefix: prefix(count),
            }),
            BatchDoing::Landing(count) => Some(QueueEffect::Land {
                batch: batch.id,
                base: batch.base.clone()?,
                members: batch.members[..count].to_vec(),
                prefix: prefix(count),
            }),
            BatchDoing::Resting => None,
        }
    }

    /// What the base becomes when the whole of a batch lands.
    fn batch_tip(&self, id: BatchId) -> Option<Commit> {
        let batch = self.batches.iter().find(|batch| batch.id == id)?;
        batch.prefixes.last().map(|prefix| prefix.commit.clone())
    }

    fn is_landing(&self, task: TaskId) -> bool {
        self.batch_of(task).is_some_and(|batch| match batch.doing {
            BatchDoing::Landing(count) => batch.members[..count].iter().any(|member| member.task == task),
            BatchDoing::Building | BatchDoing::Checking(_) | BatchDoing::Resting => false,
        })
    }

    /// Whether a task whose landing was ordered is not in any landing: its journal is older than the queue, or was cut.
    /// Such a task stands in line again, and building the next batch finds out whether the base holds it.
    #[must_use]
    pub fn is_astray(&self, task: &Task) -> bool {
        matches!(task.state, TaskState::Active { doing: AttemptPhase::Landing, .. })
            && !self.is_landing(task.id)
    }

    /// Bookkeeping: what a fact means.
    ///
    /// # Errors
    /// When the fact cannot follow.
    pub fn apply(&mut self, at: Timestamp, event: &QueueEvent) -> Result<(), IllegalQueueEvent> {
        let illegal = |what: String| Err(IllegalQueueEvent { what });
        match event {
            QueueEvent::Formed { batch, on, members } => {
                if *batch <= self.last || on.is_some_and(|on| self.batches.last().map(|it| it.id) != Some(on))
                {
                    return illegal(format!("{batch} cannot be formed"));
                }
                self.last = *batch;
                self.batches.push(LandingBatch {
                    id: *batch,
                    members: members.clone(),
                    on: *on,
                    base: None,
                    prefixes: Vec::new(),
                    green: 0,
                    red: None,
                    green_report: None,
                    green_before: None,
                    red_report: None,
                    doing: BatchDoing::Building,
                    looks: Vec::new(),
                    crowded: BTreeSet::new(),
                });
            }
            QueueEvent::Built { batch, base, members, prefixes, crowded } => {
                let Some(it) = self.batch_mut(*batch, |doing| doing == BatchDoing::Building) else {
                    return illegal(format!("{batch} is not being built"));
                };
                if members.len() != prefixes.len() {
                    return illegal(format!("{batch} has not one merge for each member"));
                }
                it.base = Some(base.clone());
                it.members.clone_from(members);
                it.prefixes.clone_from(prefixes);
                it.crowded = crowded.iter().copied().collect();
                it.doing = BatchDoing::Resting;
            }
            QueueEvent::CheckBegan { batch, count } => {
                let Some(it) = self.batch_mut(*batch, |doing| doing == BatchDoing::Resting) else {
                    return illegal(format!("{batch} does not wait to be verified"));
                };
                if *count == 0 || *count > it.prefixes.len() {
                    return illegal(format!("{batch} has no beginning of {count}"));
                }
                it.doing = BatchDoing::Checking(*count);
            }
            QueueEvent::Checked { batch, count, report } => {
                let doing = BatchDoing::Checking(*count);
                let Some(it) = self.batch_mut(*batch, |it| it == doing) else {
                    return illegal(format!("{batch} is not being verified"));
                };
                it.doing = BatchDoing::Resting;
                let outcome = report.outcome();
                it.looks.push((*count, outcome));
                match outcome {
                    CheckOutcome::Pass | CheckOutcome::Flaky => {
                        it.green_before = it.green_report.take().map(|report| (it.green, report));
                        it.green = it.green.max(*count);
                        it.green_report = Some(report.clone());
                    }
                    CheckOutcome::Fail | CheckOutcome::Timeout => {
                        it.red = Some(it.red.map_or(*count, |red| red.min(*count)));
                        it.red_report = Some(report.clone());
                    }
                    // It says nothing about the batch; but what stands on another is not tried there once more.
                    CheckOutcome::Broken | CheckOutcome::PreExisting if it.on.is_some() => {
                        it.crowded.extend(it.members.iter().map(|member| member.task));
                    }
                    CheckOutcome::Broken | CheckOutcome::PreExisting => {}
                }
                // A pass that was taken over shows nothing about this machine.
                if !report.reused {
                    self.trials += 1;
                    self.troubles = 0;
                    if !matches!(outcome, CheckOutcome::Broken | CheckOutcome::PreExisting) {
                        self.gate_holds = 0;
                    }
                }
                self.note_base_report(report);
            }
            QueueEvent::Doubted { batch, count } => {
                let Some(it) = self.batch_mut(*batch, |doing| doing == BatchDoing::Resting) else {
                    return illegal(format!("{batch} does not rest"));
                };
                if *count == 0 || *count != it.green {
                    return illegal(format!("{count} of {batch} are not the longest green beginning"));
                }
                it.red = Some(*count);
                it.red_report = it.green_report.take();
                (it.green, it.green_report) = match it.green_before.take() {
                    Some((green, report)) => (green, Some(report)),
                    None => (0, None),
                };
            }
            QueueEvent::LandingBegan { batch, count } => {
                let front = self.batches.first().map(|front| front.id);
                let Some(it) = self.batch_mut(*batch, |doing| doing == BatchDoing::Resting) else {
                    return illegal(format!("{batch} does not wait to land"));
                };
                if front != Some(*batch) || *count == 0 || *count > it.green {
                    return illegal(format!("{count} of {batch} are not known to be green"));
                }
                it.doing = BatchDoing::Landing(*count);
            }
            QueueEvent::Over { batch, how } => {
                let Some(place) = self.batches.iter().position(|it| it.id == *batch) else {
                    return illegal(format!("there is no {batch}"));
                };
                let over = self.batches.remove(place);
                let whole = matches!(how, BatchEnd::Landed { count, .. } if *count == over.members.len());
                for it in &mut self.batches {
                    if over.on == Some(it.id) {
                        it.crowded.extend(&over.crowded);
                    }
                    if it.on == Some(*batch) && whole {
                        it.on = None; // what it stands on is the base now
                    }
                }
                if matches!(how, BatchEnd::Landed { .. }) {
                    self.trials = 0;
                    self.troubles = 0;
                }
                if self.past.len() == PAST_MAX {
                    self.past.pop_front();
                }
                self.past.push_back((over, how.clone(), at));
            }
            QueueEvent::Held { why, reason, until } => {
                match why {
                    HoldReason::Machine => self.troubles += 1,
                    HoldReason::Gate => self.gate_holds += 1,
                    HoldReason::Runaway
                    | HoldReason::Person
                    | HoldReason::Rewritten
                    | HoldReason::Deleted => {}
                }
                self.hold = Some(QueueHold { why: *why, reason: reason.clone(), since: at, until: *until });
            }
            QueueEvent::Resumed => {
                // Ended before its time: whoever lets it go on has seen to the cause.
                if self.hold.take().is_some_and(|hold| hold.until.is_none_or(|until| at < until)) {
                    self.troubles = 0;
                    self.gate_holds = 0;
                }
                self.trials = 0;
            }
        }
        Ok(())
    }

    fn batch_mut(&mut self, id: BatchId, fits: impl Fn(BatchDoing) -> bool) -> Option<&mut LandingBatch> {
        self.batches.iter_mut().find(|batch| batch.id == id && fits(batch.doing))
    }
}

/// Which facts follow from the news about the queue, what tasks hear of it, and what to do about it. News of a batch that
/// is over changes nothing.
#[must_use]
pub fn decide(
    queue: &Queue,
    policy: &QueuePolicy,
    at: Timestamp,
    news: &QueueNews,
    is_met: &dyn Fn(TaskId) -> bool,
) -> QueueDecision {
    let mut draft = QueueDecisionDraft {
        queue: queue.clone(),
        policy,
        at,
        is_met,
        told: BTreeSet::new(),
        decision: QueueDecision::default(),
    };
    draft.handle_news(news);
    draft.advance_batches();
    draft.decision
}

/// A decision in the making: the queue as it would be after the events so far.
struct QueueDecisionDraft<'a> {
    queue: Queue,
    policy: &'a QueuePolicy,
    at: Timestamp,
    is_met: &'a dyn Fn(TaskId) -> bool,
    /// Tasks that leave the line by this decision.
    told: BTreeSet<TaskId>,
    decision: QueueDecision,
}

impl QueueDecisionDraft<'_> {
    fn add_event(&mut self, event: QueueEvent) {
        self.queue.apply(self.at, &event).expect("decided only where it can follow");
        self.decision.events.push(event);
    }

    fn tell_task(&mut self, task: TaskId, news: News) {
        self.told.insert(task);
        self.decision.tells.push((task, news));
    }

    fn find_batch(&self, id: BatchId, doing: impl Fn(BatchDoing) -> bool) -> Option<LandingBatch> {
        self.queue.batches.iter().find(|batch| batch.id == id && doing(batch.doing)).cloned()
    }

    fn handle_news(&mut self, news: &QueueNews) {
        match news {
            QueueNews::Look => {}
            QueueNews::Built { batch, base, prefixes, left_out, resolved } => {
                self.handle_built(*batch, base, prefixes, left_out, resolved);
            }
            QueueNews::Checked { batch, count, report } => {
                let found = self.find_batch(*batch, |doing| doing == BatchDoing::Checking(*count));
                let Some(found) = found else { return };
                match found.prefixes[*count - 1].tree == report.tree {
                    true => self.handle_checked(*batch, *count, report),
                    false => {
                        self.handle_failure(*batch, "another tree was verified than the one that was merged")
                    }
                }
            }
            QueueNews::Landed { batch, proof } => self.handle_landed(*batch, proof),
            QueueNews::LandMoved { batch, to } => {
                let reason = format!("the base moved to {}", to.short_hash());
                self.handle_landing_failure(*batch, reason, |attempt| News::LandMoved {
                    attempt,
                    to: to.clone(),
                });
            }
            QueueNews::LandMismatch { batch, detail } => {
                self.handle_landing_failure(*batch, detail.clone(), |attempt| News::LandMismatch {
                    attempt,
                    detail: detail.clone(),
                });
            }
            QueueNews::Failed { batch, detail } => self.handle_failure(*batch, detail),
            QueueNews::Exhausted { batch, detail } => drop(self.give_up_batch(*batch, detail)),
            QueueNews::BaseMoved { to } => self.handle_base_moved(to),
            QueueNews::Hold { why, reason } => self.hold_queue(*why, reason.clone(), None),
            QueueNews::Resume => {
                if self.queue.hold.is_some() {
                    self.add_event(QueueEvent::Resumed);
                }
            }
            QueueNews::Retry => self.resume_if(|why| matches!(why, HoldReason::Gate | HoldReason::Machine)),
            QueueNews::BranchRestored => {
                self.resume_if(|why| matches!(why, HoldReason::Rewritten | HoldReason::Deleted));
            }
        }
    }

    fn resume_if(&mut self, ends: impl Fn(HoldReason) -> bool) {
        if self.queue.hold.as_ref().is_some_and(|hold| ends(hold.why)) {
            self.add_event(QueueEvent::Resumed);
        }
    }

    fn hold_queue(&mut self, why: HoldReason, reason: String, until: Option<Timestamp>) {
        // What a person said, or has to look at, is not overwritten by less.
        let stronger = |hold: &QueueHold| {
            matches!(
                hold.why,
                HoldReason::Person | HoldReason::Rewritten | HoldReason::Deleted | HoldReason::Runaway
            )
        };
        let same = |hold: &QueueHold| hold.why == why && hold.reason == reason;
        let lesser = matches!(why, HoldReason::Gate | HoldReason::Machine | HoldReason::Runaway);
        if self.queue.hold.as_ref().is_some_and(|hold| same(hold) || (lesser && stronger(hold))) {
            return;
        }
        self.add_event(QueueEvent::Held { why, reason, until });
    }

    fn handle_built(
        &mut self,
        id: BatchId,
        base: &Commit,
        prefixes: &[BatchPrefix],
        left_out: &[(TaskId, BatchExclusion)],
        resolved: &[(TaskId, Commit)],
    ) {
        let Some(batch) = self.find_batch(id, |doing| doing == BatchDoing::Building) else { return };
        let is_out = |member: &BatchMember| left_out.iter().any(|(task, _)| *task == member.task);
        let with_head = |member: &BatchMember| {
            let head = resolved.iter().find(|(task, _)| *task == member.task).map(|(_, head)| head.clone());
            BatchMember { head: head.unwrap_or_else(|| member.head.clone()), ..member.clone() }
        };
        let members: Vec<BatchMember> =
            batch.members.iter().filter(|member| !is_out(member)).map(with_head).collect();
        if members.len() != prefixes.len() {
            return self.handle_failure(id, "the merge of the batch does not tell of each member");
        }
        let mut crowded = Vec::new();
        for (task, why) in left_out {
            let Some(member) = batch.members.iter().find(|member| member.task == *task) else { continue };
            if !self.is_standing(member) {
                continue;
            }
            // On top of what may never land a conflict says nothing yet: it is seen again on the base.
            let guess = batch.on.is_some();
            let attempt = member.attempt;
            match why {
                BatchExclusion::Landed { candidate, proof } => self.tell_task(
                    *task,
                    News::Landed {
                        attempt,
                        commit: candidate.commit.clone(),
                        base_before: candidate.base.clone(),
                        tree: candidate.tree.clone(),
                        proof: proof.clone(),
                    },
                ),
                BatchExclusion::Crowded => crowded.push(*task),
                BatchExclusion::Conflict(_) | BatchExclusion::NothingChanged if guess => crowded.push(*task),
                BatchExclusion::Conflict(clashes) => self.tell_task(
                    *task,
                    News::MergeConflict {
                        attempt,
                        head: member.head.clone(),
                        base: base.clone(),
                        clashes: clashes.clone(),
                    },
                ),
                BatchExclusion::NothingChanged => self.tell_task(*task, News::NothingChanged { attempt }),
            }
        }
        self.add_event(QueueEvent::Built {
            batch: id,
            base: base.clone(),
            members: members.clone(),
            prefixes: prefixes.to_vec(),
            crowded,
        });
    }

    fn handle_checked(&mut self, id: BatchId, count: usize, report: &GateReport) {
        self.add_event(QueueEvent::Checked { batch: id, count, report: report.clone() });
        if !matches!(report.outcome(), CheckOutcome::Broken | CheckOutcome::PreExisting) {
            return;
        }
        let speculates = self.find_batch(id, |_| true).is_some_and(|batch| batch.on.is_some());
        let reason = crate::decide::gate_detail(report);
        self.end_batch(id, reason.clone());
        // What stands on a batch that is red itself is no measure of the gate.
        if !speculates {
            let pause_ms = crate::course::gate_pause_ms(self.queue.gate_holds);
            self.hold_queue(HoldReason::Gate, reason, Some(self.at.plus_ms(pause_ms)));
        }
    }

    fn handle_landed(&mut self, id: BatchId, proof: &str) {
        let Some(batch) = self.find_batch(id, |doing| matches!(doing, BatchDoing::Landing(_))) else {
            return;
        };
        let BatchDoing::Landing(count) = batch.doing else { return };
        let prefix = batch.prefixes[count - 1].clone();
        let base = batch.base.clone().expect("a batch that lands was built");
        for member in &batch.members[..count] {
            self.tell_task(
                member.task,
                News::Landed {
                    attempt: member.attempt,
                    commit: prefix.commit.clone(),
                    base_before: base.clone(),
                    tree: prefix.tree.clone(),
                    proof: proof.to_owned(),
                },
            );
        }
        // The culprit hears of what it failed on when that has landed: what does not land is not merged into its work.
        if batch.red == Some(count + 1) {
            drop(self.tell_culprit(&batch, count));
        }
        self.add_event(QueueEvent::Over {
            batch: id,
            how: BatchEnd::Landed { count, commit: prefix.commit },
        });
        if count < batch.members.len() {
            self.drop_standing_on(id, "it stood on a batch that did not land whole");
        }
    }

    /// A landing that came to nothing: its members hear of it, and stand in line again unless that ends them.
    fn handle_landing_failure(&mut self, id: BatchId, reason: String, news: impl Fn(Attempt) -> News) {
        let Some(batch) = self.find_batch(id, |doing| matches!(doing, BatchDoing::Landing(_))) else {
            return;
        };
        let BatchDoing::Landing(count) = batch.doing else { return };
        for member in &batch.members[..count] {
            self.tell_task(member.task, news(member.attempt));
        }
        self.end_batch(id, reason);
    }

    /// Something on this machine failed. What the base holds may be unknown then; building the next batch finds out.
    fn handle_failure(&mut self, id: BatchId, detail: &str) {
        if self.give_up_batch(id, detail).is_none() {
            return;
        }
        let tries = self.queue.troubles + 1;
        let pause_ms = 1_000_u64 << tries.min(6);
        self.hold_queue(HoldReason::Machine, detail.to_owned(), Some(self.at.plus_ms(pause_ms)));
    }

    /// Ends a batch in the middle of what is done about it. None: nothing is.
    fn give_up_batch(&mut self, id: BatchId, detail: &str) -> Option<BatchId> {
        let batch = self.find_batch(id, |doing| doing != BatchDoing::Resting)?;
        if let BatchDoing::Landing(count) = batch.doing {
            for member in &batch.members[..count] {
                self.tell_task(member.task, News::LandUnsure { attempt: member.attempt });
            }
        }
        self.end_batch(id, detail.to_owned());
        Some(id)
    }

    fn handle_base_moved(&mut self, to: &Commit) {
        let landing = |batch: &LandingBatch| matches!(batch.doing, BatchDoing::Landing(_));
        // A landing under way finds out by itself: its compare-and-swap fails.
        if let Some(front) = self.queue.batches.first()
            && !landing(front)
            && front.base.as_ref().is_some_and(|base| base != to)
        {
            let id = front.id;
            self.end_batch(id, format!("the base moved to {}", to.short_hash()));
        }
        self.resume_if(|why| why == HoldReason::Gate); // it may be whole on the new base
    }

    /// Ends a batch of which nobody lands, and whatever stands on it.
    fn end_batch(&mut self, id: BatchId, reason: String) {
        let Some(batch) = self.find_batch(id, |_| true) else { return };
        self.drop_standing_on(id, "it stood on a batch that did not land");
        if matches!(batch.doing, BatchDoing::Building | BatchDoing::Checking(_)) {
            self.decision.effects.push(QueueEffect::Abandon { batch: id });
        }
        self.add_event(QueueEvent::Over { batch: id, how: BatchEnd::Dropped { reason } });
    }

    fn drop_standing_on(&mut self, id: BatchId, reason: &str) {
        let above = self.queue.batches.iter().find(|batch| batch.on == Some(id)).map(|batch| batch.id);
        if let Some(above) = above {
            self.end_batch(above, reason.to_owned());
        }
    }

    /// Whether a member stands in line just as it was taken from it.
    fn is_standing(&self, member: &BatchMember) -> bool {
        seeded_bugs::is_active(SeededBug::CancelledLands)
            || !self.told.contains(&member.task)
                && self
                    .queue
                    .standing
                    .get(&member.task)
                    .is_some_and(|standing| standing.attempt == member.attempt)
    }

    /// Goes on with every batch that rests, and forms new ones, until there is nothing to do but wait.
    fn advance_batches(&mut self) {
        if let Some(until) = self.queue.hold_until()
            && until <= self.at
        {
            self.add_event(QueueEvent::Resumed);
        }
        let mut place = 0;
        while let Some(batch) = self.queue.batches.get(place).cloned() {
            match self.advance_batch(&batch, place == 0) {
                QueueStep::Again => {}
                QueueStep::Next => place += 1,
            }
        }
        self.form_batches();
    }

    fn advance_batch(&mut self, batch: &LandingBatch, front: bool) -> QueueStep {
        if batch.doing != BatchDoing::Resting {
            return QueueStep::Next;
        }
        let size = batch.members.len();
        if size == 0 {
            self.end_batch(batch.id, "nobody in it could be merged".to_owned());
            return QueueStep::Again;
        }
        if let Some(gone) = batch.members.iter().find(|member| !self.is_standing(member)) {
            let reason = format!("{} has left the line", gone.task);
            self.end_batch(batch.id, reason);
            return QueueStep::Again;
        }
        // On what has not landed yet there is nothing to compare with: it is looked at when its turn comes.
        if front && !self.queue.batch_concerns(batch).is_empty() {
            self.drop_standing_on(batch.id, "it stood on a batch that a person must look at");
            self.add_event(QueueEvent::Doubted { batch: batch.id, count: batch.green });
            return QueueStep::Again;
        }
        // A search that has begun is finished: given up half-way it would begin anew, and find nobody for ever.
        let begins = batch.red.is_none() && !batch.is_green();
        let runaway = begins && self.queue.trials >= self.policy.runaway;
        if runaway && front {
            let trials = self.queue.trials;
            self.end_batch(batch.id, "the queue was paused".to_owned());
            self.hold_queue(
                HoldReason::Runaway,
                format!("{trials} verifications in a row and nothing landed; look at what they say before it goes on"),
                None,
            );
            return QueueStep::Again;
        }
        match batch.red {
            None if batch.is_green() && front => self.start_landing(batch, size),
            None if batch.is_green() => return QueueStep::Next, // its turn comes
            None if self.queue.hold.is_some() => {
                self.end_batch(batch.id, "the queue is held".to_owned());
            }
            None => self.start_check(batch, size),
            Some(_) if !front => return QueueStep::Next, // searched on the base itself, if it comes to that
            Some(red) if red - batch.green > 1 => {
                self.drop_standing_on(batch.id, "it stood on a batch that was red");
                self.start_check(batch, culprit_half(batch.green, red));
            }
            Some(_) => self.eject_culprit(batch),
        }
        QueueStep::Again
    }

    fn start_check(&mut self, batch: &LandingBatch, count: usize) {
        self.add_event(QueueEvent::CheckBegan { batch: batch.id, count });
        let batch = self.find_batch(batch.id, |_| true).expect("it was just changed");
        self.decision.effects.extend(self.queue.batch_effect(&batch));
    }

    fn start_landing(&mut self, batch: &LandingBatch, count: usize) {
        let report = batch.green_report.clone().expect("what is green was seen");
        let base = batch.base.clone().expect("a batch that lands was built");
        let prefix = &batch.prefixes[count - 1];
        for member in &batch.members[..count] {
            let report = GateReport {
                base: base.clone(),
                head: member.head.clone(),
                commit: prefix.commit.clone(),
                tree: prefix.tree.clone(),
                ..report.clone()
            };
            self.tell_task(
                member.task,
                News::LandingBegan { attempt: member.attempt, batch: batch.id, report },
            );
        }
        self.add_event(QueueEvent::LandingBegan { batch: batch.id, count });
        let batch = self.find_batch(batch.id, |_| true).expect("it was just changed");
        self.decision.effects.extend(self.queue.batch_effect(&batch));
    }

    /// The culprit is known: with everybody before it the batch is green, with it red. Those before it land, and then it is told.
    fn eject_culprit(&mut self, batch: &LandingBatch) {
        self.drop_standing_on(batch.id, "it stood on a batch that was red");
        match batch.green {
            0 => {
                let reason = self.tell_culprit(batch, 0);
                self.end_batch(batch.id, reason);
            }
            count => self.start_landing(batch, count),
        }
    }

    /// Tells the first member after `green` ones what it made red, on top of what. Returns the same in words.
    fn tell_culprit(&mut self, batch: &LandingBatch, green: usize) -> String {
        let is_neighbour =
            seeded_bugs::is_active(SeededBug::BisectNeighbour) && green + 1 < batch.members.len();
        let culprit = &batch.members[green + usize::from(is_neighbour)];
        let report = batch.red_report.clone().expect("what is red was seen");
        let (attempt, id) = (culprit.attempt, batch.id);
        let (news, reason) = if batch.is_doubted() {
            let doubted = LandingBatch { green: green + 1, green_report: Some(report), ..batch.clone() };
            let concerns = self.queue.batch_concerns(&doubted);
            (News::Doubted { attempt, concerns }, format!("a person must look at {}", culprit.task))
        } else {
            let base = match green {
                0 => report.base.clone(),
                count => batch.prefixes[count - 1].commit.clone(),
            };
            let report = GateReport { base, head: culprit.head.clone(), ..report };
            (News::Ejected { attempt, batch: id, report }, format!("{} made it red", culprit.task))
        };
        if self.is_standing(culprit) {
            self.tell_task(culprit.task, news);
        }
        reason
    }

    /// Takes whoever stands in line and is in no batch.
    fn form_batches(&mut self) {
        while self.policy.forms
            && self.queue.hold.is_none()
            && self.queue.batches.len() <= self.policy.speculate
        {
            let on = match self.queue.batches.last() {
                None => None,
                // Only on what may well land: whole, merged, and not known to be red.
                Some(last) if last.base.is_some() && last.red.is_none() && may_land_whole(last) => {
                    Some(last.id)
                }
                Some(_) => return,
            };
            // Whether the base holds somebody is found out on the base itself, not on what may never land.
            let sure = |task: &TaskId| on.is_none() || !self.queue.standing[task].unsure;
            let free = |task: &TaskId| {
                let crowded = self.queue.batches.iter().any(|batch| batch.crowded.contains(task));
                self.queue.batch_of(*task).is_none()
                    && !crowded
                    && !self.told.contains(task)
                    && sure(task)
                    && (self.is_met)(*task)
            };
            let members: Vec<BatchMember> = self
                .queue
                .line()
                .filter(free)
                .take(self.policy.batch_max.max(1))
                .map(|task| {
                    let standing = &self.queue.standing[&task];
                    BatchMember { task, attempt: standing.attempt, head: standing.head.clone() }
                })
                .collect();
            if members.is_empty() {
                return;
            }
            let batch = BatchId(self.queue.last.0 + 1);
            self.add_event(QueueEvent::Formed { batch, on, members });
            let batch = self.find_batch(batch, |_| true).expect("it was just formed");
            self.decision.effects.extend(self.queue.batch_effect(&batch));
        }
    }
}

enum QueueStep {
    /// The same place again: something changed there.
    Again,
    /// The next one.
    Next,
}

fn may_land_whole(batch: &LandingBatch) -> bool {
    match batch.doing {
        BatchDoing::Building => false,
        BatchDoing::Checking(count) | BatchDoing::Landing(count) => count == batch.members.len(),
        BatchDoing::Resting => batch.is_green(),
    }
}

/// Where to look next between a green beginning and a red one.
fn culprit_half(green: usize, red: usize) -> usize {
    green + (red - green) / 2
}

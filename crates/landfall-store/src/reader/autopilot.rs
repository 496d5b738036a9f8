//! The landing queue, sprints, checkpoints and flakes, folded from the facts they are made of when someone asks.
//!
//! Only the kinds that matter are read, found through the index on kinds; each event is checked against the chain.

use std::collections::{BTreeMap, BTreeSet};

use landfall_model::acceptance::VerifyOutcome;
use landfall_model::auto::{AgentLoops, AutoEvent};
use landfall_model::checkpoint::Checkpoints;
use landfall_model::flake::Flakes;
use landfall_model::haul::IssueBatchHistory;
use landfall_model::issue::IssueEvent;
use landfall_model::pilot::PilotState;
use landfall_model::queue::Queue;
use landfall_model::sprint::Sprints;
use landfall_model::{EngineEvent, Event, Fact, JournalEntry, SignOff, TaskId, TaskStatus};
use rusqlite::ToSql;

use super::{StoreReader, query};
use crate::{Autopilot, EventOrderError, Seq, StoreError, autopilot};

const QUEUE: &[&str] = &[
    "queue-formed",
    "queue-built",
    "queue-check-began",
    "queue-checked",
    "queue-landing-began",
    "queue-over",
    "queue-held",
    "queue-resumed",
];
const PILOT: &[&str] =
    &["mode-set", "assigned", "settled", "run-paused", "run-resumed", "run-started", "run-ended"];
/// What counts as a failure, or ends a row of them, since a run began.
const PILOT_TASK: &[&str] = &["landed", "left", "ended"];
/// After one of these a sprint is open.
const SPRINT: &[&str] = &["sprint-started", "sprint-paused", "sprint-resumed", "sprint-completing"];
const SPRINT_ENDED: &str = "sprint-ended";
/// What counts for a sprint while it is open.
const SPRINT_TASK: &[&str] = &[
    "entered",
    "iteration-began",
    "iteration-ended",
    "verified",
    "ejected",
    "conflicted",
    "review-wanted",
    "reviewed",
    "left",
    "landed",
    "ended",
    "retried",
];
const CHECKPOINT: &[&str] = &["checkpoint-made", "checkpoint-dropped", "landed"];
const FLAKE: &[&str] = &["verified", "measured", "queue-checked"];
const AUTO: &[&str] = &["auto-started", "auto-stop-asked"];
const SIGN_OFF: &[&str] = &["review-owed", "signed"];
const ACCEPTANCE: &[&str] = &["issue-wanted", "issue-accepted"];

impl StoreReader {
    /// All that drives the backlog, at one moment.
    ///
    /// # Errors
    /// When an event is damaged, or cannot follow.
    pub fn autopilot(&self) -> Result<Autopilot, StoreError> {
        self.steady(|| {
            Ok(Autopilot {
                queue: self.read_queue()?,
                pilot: self.read_pilot()?,
                sprints: self.read_sprints()?,
                checkpoints: self.read_checkpoints()?,
                flakes: self.read_flakes()?,
            })
        })
    }

    /// The landing queue: its batches, its hold, and who stands in line.
    ///
    /// # Errors
    /// When an event is damaged, or cannot follow.
    pub fn queue(&self) -> Result<Queue, StoreError> {
        self.steady(|| self.read_queue())
    }

    /// Who picks tasks, and pauses.
    ///
    /// # Errors
    /// When an event is damaged.
    pub fn pilot(&self) -> Result<PilotState, StoreError> {
        self.steady(|| self.read_pilot())
    }

    /// Every sprint, with what became of its tasks.
    ///
    /// # Errors
    /// When an event is damaged.
    pub fn sprints(&self) -> Result<Sprints, StoreError> {
        self.steady(|| self.read_sprints())
    }

    /// The checkpoints that are kept, and what landed after each.
    ///
    /// # Errors
    /// When an event is damaged.
    pub fn checkpoints(&self) -> Result<Checkpoints, StoreError> {
        self.steady(|| self.read_checkpoints())
    }

    /// Every loop there was, with what became of it.
    ///
    /// # Errors
    /// When an event is damaged.
    pub fn loops(&self) -> Result<AgentLoops, StoreError> {
        self.steady(|| {
            let mut seqs = self.event_numbers_of_kinds(AUTO)?;
            let mut tasks = BTreeSet::new();
            self.each(&seqs, |entry| {
                if let Fact::Engine(EngineEvent::Auto(AutoEvent::Started { task, .. })) = &entry.fact {
                    tasks.insert(*task);
                }
                Ok(())
            })?;
            for task in tasks {
                let params: [&dyn ToSql; 1] = [&task.0];
                let of: Vec<Seq> =
                    self.rows(query::SEQS_OF_TASK, &params, "look for events", |row| row.get(0).map(Seq))?;
                seqs.extend(of);
            }
            seqs.sort_unstable();
            let mut loops = AgentLoops::default();
            self.each(&seqs, |entry| {
                autopilot::apply_to_loops(&mut loops, entry);
                Ok(())
            })?;
            Ok(loops)
        })
    }

    /// Issues that were asked for together, oldest first.
    ///
    /// # Errors
    /// When an event is damaged.
    pub fn hauls(&self) -> Result<IssueBatchHistory, StoreError> {
        self.steady(|| {
            let mut hauls = IssueBatchHistory::default();
            self.each(&self.event_numbers_of_kinds(&["haul-begun"])?, |entry| {
                if let Fact::Engine(EngineEvent::Haul(event)) = &entry.fact {
                    hauls.apply(entry.at, event);
                }
                Ok(())
            })?;
            Ok(hauls)
        })
    }

    /// How often each check was flaky. Reads every verification there was.
    ///
    /// # Errors
    /// When an event is damaged.
    pub fn flakes(&self) -> Result<Flakes, StoreError> {
        self.steady(|| self.read_flakes())
    }

    /// The landed tasks that a person was or is to look at afterwards, and what they said.
    ///
    /// # Errors
    /// When an event is damaged.
    pub fn sign_offs(&self) -> Result<BTreeMap<TaskId, SignOff>, StoreError> {
        self.steady(|| {
            let mut all = BTreeMap::new();
            self.each(&self.event_numbers_of_kinds(SIGN_OFF)?, |entry| {
                match &entry.fact {
                    Fact::Task(task, Event::ReviewOwed) => all.insert(*task, SignOff::Owed),
                    Fact::Task(task, Event::Signed { decision, note }) => {
                        all.insert(*task, SignOff::Given(*decision, note.clone()))
                    }
                    Fact::Task(..) | Fact::Engine(_) => None,
                };
                Ok(())
            })?;
            Ok(all)
        })
    }

    /// The tasks that follow issues, and whether what was promised was last seen to hold; none where nobody has looked.
    ///
    /// # Errors
    /// When an event is damaged.
    pub fn acceptances(&self) -> Result<BTreeMap<TaskId, Option<bool>>, StoreError> {
        self.steady(|| {
            let mut all = BTreeMap::new();
            self.each(&self.event_numbers_of_kinds(ACCEPTANCE)?, |entry| {
                match &entry.fact {
                    Fact::Task(task, Event::Issue(IssueEvent::Wanted(_))) => {
                        all.entry(*task).or_insert(None);
                    }
                    Fact::Task(task, Event::Issue(IssueEvent::Accepted { accepted, .. })) => {
                        all.insert(*task, Some(accepted.outcome == VerifyOutcome::Done));
                    }
                    Fact::Task(..) | Fact::Engine(_) => {}
                }
                Ok(())
            })?;
            Ok(all)
        })
    }

    /// The newest fact of one of these kinds, found without reading the others.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn latest(&self, kinds: &[&str]) -> Result<Option<(Seq, JournalEntry)>, StoreError> {
        let mut newest: Option<Seq> = None;
        for kind in kinds {
            let found: Vec<Seq> =
                self.rows(query::LATEST_OF_KIND, &[kind], "look for an event", |row| row.get(0).map(Seq))?;
            newest = newest.max(found.first().copied());
        }
        let Some(seq) = newest else { return Ok(None) };
        let list = format!("[{}]", seq.0);
        Ok(self.entries(query::LISTED_EVENTS, &[&list])?.pop())
    }

    /// The tasks that have a fact of this kind, found without reading the others.
    ///
    /// # Errors
    /// When one is damaged.
    pub fn tasks_with_kind(&self, kind: &str) -> Result<BTreeSet<TaskId>, StoreError> {
        let mut tasks = BTreeSet::new();
        self.each(&self.event_numbers_of_kinds(&[kind])?, |entry| {
            if let Fact::Task(task, _) = &entry.fact {
                tasks.insert(*task);
            }
            Ok(())
        })?;
        Ok(tasks)
    }

    fn read_queue(&self) -> Result<Queue, StoreError> {
        let mut queue = Queue::default();
        self.each(&self.event_numbers_of_kinds(QUEUE)?, |entry| {
            Ok(autopilot::apply_to_queue(&mut queue, entry)?)
        })?;
        // Whoever stands in line shows as landing, or as active where its flow does not say that it lands.
        for status in [TaskStatus::Landing, TaskStatus::Active] {
            for row in self.task_rows(&query::status_sql(), &[&status.wire_name()])? {
                if let Some(task) = self.read_task(row.id)? {
                    queue.update_task(&task);
                }
            }
        }
        Ok(queue)
    }

    fn read_pilot(&self) -> Result<PilotState, StoreError> {
        let mut pilot = PilotState::default();
        let mut seqs = self.event_numbers_of_kinds(PILOT)?;
        let run = self.event_numbers_between("run-started", Seq::ZERO, None)?.pop().unwrap_or(Seq::ZERO);
        for kind in PILOT_TASK {
            seqs.extend(self.event_numbers_between(kind, run, None)?);
        }
        seqs.sort_unstable();
        self.each(&seqs, |entry| {
            autopilot::apply_to_pilot(&mut pilot, entry);
            Ok(())
        })?;
        Ok(pilot)
    }

    fn read_sprints(&self) -> Result<Sprints, StoreError> {
        let goes_on = self.event_numbers_of_kinds(SPRINT)?.into_iter().map(|seq| (seq, false));
        let ends = self.event_numbers_of_kinds(&[SPRINT_ENDED])?.into_iter().map(|seq| (seq, true));
        let mut facts: Vec<(Seq, bool)> = goes_on.chain(ends).collect();
        facts.sort_unstable();
        let mut seqs = self.event_numbers_of_kinds(&["signed"])?; // a person may look long after the end
        let mut since = None;
        for (seq, ends) in facts {
            seqs.push(seq);
            match since {
                None if !ends => since = Some(seq),
                Some(start) if ends => {
                    seqs.extend(self.sprint_event_numbers(start, Some(seq))?);
                    since = None;
                }
                None | Some(_) => {}
            }
        }
        if let Some(start) = since {
            seqs.extend(self.sprint_event_numbers(start, None)?);
        }
        seqs.sort_unstable();
        let mut sprints = Sprints::default();
        self.each(&seqs, |entry| {
            autopilot::apply_to_sprints(&mut sprints, entry);
            Ok(())
        })?;
        Ok(sprints)
    }

    /// The numbers of the events of tasks that count for a sprint.
    fn sprint_event_numbers(&self, start: Seq, end: Option<Seq>) -> Result<Vec<Seq>, StoreError> {
        let mut seqs = Vec::new();
        for kind in SPRINT_TASK {
            seqs.extend(self.event_numbers_between(kind, start, end)?);
        }
        Ok(seqs)
    }

    fn read_checkpoints(&self) -> Result<Checkpoints, StoreError> {
        let mut checkpoints = Checkpoints::default();
        self.each(&self.event_numbers_of_kinds(CHECKPOINT)?, |entry| {
            autopilot::apply_to_checkpoints(&mut checkpoints, entry);
            Ok(())
        })?;
        Ok(checkpoints)
    }

    fn read_flakes(&self) -> Result<Flakes, StoreError> {
        let mut flakes = Flakes::default();
        self.each(&self.event_numbers_of_kinds(FLAKE)?, |entry| {
            autopilot::apply_to_flakes(&mut flakes, entry);
            Ok(())
        })?;
        Ok(flakes)
    }

    /// The numbers of all events of these kinds, in order.
    fn event_numbers_of_kinds(&self, kinds: &[&str]) -> Result<Vec<Seq>, StoreError> {
        let mut seqs = Vec::new();
        for kind in kinds {
            seqs.extend(self.event_numbers_between(kind, Seq::ZERO, None)?);
        }
        seqs.sort_unstable();
        Ok(seqs)
    }

    /// The numbers of the events of a kind after `start` and up to `end`, in order.
    fn event_numbers_between(
        &self,
        kind: &str,
        start: Seq,
        end: Option<Seq>,
    ) -> Result<Vec<Seq>, StoreError> {
        let end = end.map_or(i64::MAX as u64, |end| end.0);
        let params: [&dyn ToSql; 3] = [&kind, &start.0, &end];
        self.rows(query::OF_KIND, &params, "look for events", |row| row.get(0).map(Seq))
    }

    /// Hands out these events one by one: a long history is never in memory at once.
    fn each(
        &self,
        seqs: &[Seq],
        mut take: impl FnMut(&JournalEntry) -> Result<(), EventOrderError>,
    ) -> Result<(), StoreError> {
        let list: Vec<u64> = seqs.iter().map(|seq| seq.0).collect();
        let list = serde_json::to_string(&list).expect("numbers are JSON");
        let mut read = 0;
        self.each_entry(query::LISTED_EVENTS, &[&list], |seq, entry| {
            read += 1;
            take(&entry).map_err(|source| StoreError::Illegal { seq, source })
        })?;
        if read != seqs.len() {
            let what = format!("the index on kinds names {} events, of which {read} are there", seqs.len());
            return Err(StoreError::corrupt_at(None, what));
        }
        Ok(())
    }
}

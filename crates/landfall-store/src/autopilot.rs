//! What drives the backlog as a whole, folded from the facts: for whoever reads a journal without an engine.

use landfall_model::auto::AgentLoops;
use landfall_model::checkpoint::Checkpoints;
use landfall_model::flake::Flakes;
use landfall_model::pilot::PilotState;
use landfall_model::queue::{IllegalQueueEvent, Queue};
use landfall_model::sprint::Sprints;
use landfall_model::{EngineEvent, Event, Fact, JournalEntry, QueueEvent};

/// The landing queue and all that goes with it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Autopilot {
    /// The landing queue.
    pub queue: Queue,
    /// Who picks tasks, and pauses.
    pub pilot: PilotState,
    /// Every sprint.
    pub sprints: Sprints,
    /// Every checkpoint that is kept.
    pub checkpoints: Checkpoints,
    /// How often each check was flaky.
    pub flakes: Flakes,
}

impl Autopilot {
    /// Takes the next fact in. Who stands in line is no fact of its own: see [`Queue::update_task`].
    ///
    /// # Errors
    /// When the fact cannot follow.
    pub fn take(&mut self, entry: &JournalEntry) -> Result<(), IllegalQueueEvent> {
        apply_to_queue(&mut self.queue, entry)?;
        apply_to_pilot(&mut self.pilot, entry);
        apply_to_sprints(&mut self.sprints, entry);
        apply_to_checkpoints(&mut self.checkpoints, entry);
        apply_to_flakes(&mut self.flakes, entry);
        Ok(())
    }
}

pub(crate) fn apply_to_queue(queue: &mut Queue, entry: &JournalEntry) -> Result<(), IllegalQueueEvent> {
    match &entry.fact {
        Fact::Engine(EngineEvent::Queue(event)) => queue.apply(entry.at, event),
        Fact::Engine(_) | Fact::Task(..) => Ok(()),
    }
}

pub(crate) fn apply_to_pilot(pilot: &mut PilotState, entry: &JournalEntry) {
    match &entry.fact {
        Fact::Task(task, event) => pilot.note(*task, event),
        Fact::Engine(EngineEvent::RunStarted { .. }) => pilot.run_started(),
        Fact::Engine(EngineEvent::RunEnded { why, .. }) => pilot.run_ended(*why),
        Fact::Engine(EngineEvent::Pilot(event)) => pilot.apply(entry.at, event),
        Fact::Engine(_) => {}
    }
}

pub(crate) fn apply_to_sprints(sprints: &mut Sprints, entry: &JournalEntry) {
    match &entry.fact {
        Fact::Task(task, event) => sprints.note(entry.at, *task, event),
        Fact::Engine(EngineEvent::Sprint(event)) => sprints.apply(entry.at, event),
        Fact::Engine(_) => {}
    }
}

pub(crate) fn apply_to_loops(loops: &mut AgentLoops, entry: &JournalEntry) {
    match &entry.fact {
        Fact::Task(task, event) => loops.note(entry.at, *task, event),
        Fact::Engine(EngineEvent::Auto(event)) => loops.apply(entry.at, event),
        Fact::Engine(_) => {}
    }
}

pub(crate) fn apply_to_checkpoints(checkpoints: &mut Checkpoints, entry: &JournalEntry) {
    match &entry.fact {
        Fact::Task(task, Event::Landed { .. }) => checkpoints.note_landing(*task),
        Fact::Engine(EngineEvent::Checkpoint(event)) => checkpoints.apply(entry.at, event),
        Fact::Task(..) | Fact::Engine(_) => {}
    }
}

/// What a task hears of its batch's verification is that of the batch: it did not run once more.
pub(crate) fn apply_to_flakes(flakes: &mut Flakes, entry: &JournalEntry) {
    match &entry.fact {
        Fact::Task(_, Event::Verified { report, .. })
        | Fact::Engine(
            EngineEvent::Measured { report } | EngineEvent::Queue(QueueEvent::Checked { report, .. }),
        ) => flakes.note(entry.at, report),
        Fact::Task(..) | Fact::Engine(_) => {}
    }
}

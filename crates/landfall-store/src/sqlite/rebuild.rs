//! Makes the tables again from the events alone, or compares them with what the events make.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use landfall_model::queue::Queue;
use landfall_model::{EngineEvent, Event, Fact, JournalEntry, Task, TaskId, apply};
use rusqlite::{Connection, TransactionBehavior};

use super::tables::{self, Scratch};
use crate::error::Doing;
use crate::fold::{Change, Folded, Marks, change_of};
use crate::format::{FlowText, flow_text};
use crate::tally::{Count, Counted, Key, Tally, tallies};
use crate::{ReplayStop, Seq, StoreError, reader, schema};

/// Makes the tables again, in one transaction: a failure leaves them as they were.
pub(super) fn rebuild(conn: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let doing = "rebuild the tables";
    let step = conn.transaction_with_behavior(TransactionBehavior::Immediate).doing(doing, path)?;
    refill(&step, path)?;
    step.commit().doing(doing, path)
}

/// Makes the tables again, within a transaction of the caller's.
pub(crate) fn refill(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let Refolded { flows, changes } = refold(conn, path)?;
    conn.execute_batch(schema::EMPTY_FOLDS).doing("rebuild the tables", path)?;
    for (seq, flow) in &flows {
        tables::put_flow(conn, path, *seq, flow)?;
    }
    let mut scratch = Scratch::default();
    for change in &changes {
        tables::put(conn, path, &mut scratch, Seq::FIRST, change)?;
    }
    Ok(())
}

/// Says whether the tables are what the events make.
pub(super) fn compare(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let Refolded { flows, changes } = refold(conn, path)?;
    let mut folded = Folded::default();
    for change in changes {
        folded.put(Seq::FIRST, change);
    }
    if let Some(difference) = reader::tables(conn, path)?.difference(&folded.tables()) {
        return Err(StoreError::corrupt(
            None,
            format!("the tables are not what the events make: {difference}"),
        ));
    }
    let mut made: Vec<String> = flows.into_iter().map(|(_, flow)| flow.digest).collect();
    let mut kept: Vec<String> = reader::flow_digests(conn, path)?.into_iter().collect();
    made.sort();
    kept.sort();
    if made != kept {
        return Err(StoreError::corrupt(None, "the flows are not those of the events"));
    }
    Ok(())
}

fn refold(conn: &Connection, path: &Path) -> Result<Refolded, StoreError> {
    let mut refold = Refold::default();
    reader::stream(conn, path, Seq::FIRST, &mut |seq, entry| refold.take(seq, &entry))?;
    Ok(refold.finish())
}

/// What all events together do to empty tables.
struct Refolded {
    flows: Vec<(Seq, FlowText)>,
    changes: Vec<Change>,
}

/// All tasks of a journal, in the making.
#[derive(Default)]
struct Refold {
    tasks: HashMap<TaskId, Task>,
    marks: BTreeMap<TaskId, Marks>,
    changes: Vec<Change>,
    flows: Vec<(Seq, FlowText)>,
    /// No table, but a journal in which it goes astray is as damaged as one in which a task does.
    queue: Queue,
    counts: BTreeMap<(i64, Counted, String), u64>,
}

impl Refold {
    fn take(&mut self, seq: Seq, entry: &JournalEntry) -> Result<(), ReplayStop> {
        // Offsets count from the first event.
        let nth = seq.0 - Seq::FIRST.0;
        self.changes.extend(change_of(nth, entry));
        self.tally(entry);
        let (id, event) = match &entry.fact {
            Fact::Task(id, event) => (id, event),
            Fact::Engine(EngineEvent::Queue(event)) => return Ok(self.queue.apply(entry.at, event)?),
            Fact::Engine(_) => return Ok(()),
        };
        if let Event::Bound { flow, .. } = event {
            let flow = flow_text(flow);
            if !self.flows.iter().any(|(_, known)| known.digest == flow.digest) {
                self.flows.push((seq, flow));
            }
        }
        let task = apply(self.tasks.remove(id), *id, entry.at, event)?;
        self.marks.entry(*id).or_default().note(nth, entry.at, event);
        self.tasks.insert(*id, task);
        Ok(())
    }

    /// Counts of the same thing in the same slot are one change: a journal has many times more facts than counts.
    fn tally(&mut self, entry: &JournalEntry) {
        for tally in tallies(entry) {
            match tally {
                Tally::Count(Count { slot, what, key: Key::Word(word), by }) => {
                    *self.counts.entry((slot, what, word)).or_default() += by;
                }
                // By what these are told apart depends on what was before.
                Tally::Count(Count { key: Key::Profile(_) | Key::Opinion(..), .. }) | Tally::Mark(..) => {
                    self.changes.push(Change::Tally(tally));
                }
            }
        }
    }

    fn finish(self) -> Refolded {
        let Self { tasks, marks, mut changes, flows, queue: _, counts } = self;
        changes.extend(counts.into_iter().map(|((slot, what, word), by)| {
            Change::Tally(Tally::Count(Count { slot, what, key: Key::Word(word), by }))
        }));
        changes.extend(marks.into_iter().map(|(id, marks)| marks.task(&tasks[&id])));
        Refolded { flows, changes }
    }
}

//! Makes the tables again from the events alone, or compares them with what the events make.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use landfall_model::queue::Queue;
use landfall_model::{EngineEvent, Event, Fact, JournalEntry, Task, TaskId, apply};
use rusqlite::{Connection, TransactionBehavior};

use super::tables::{self, RowBuffers};
use crate::error::StoreResultExt;
use crate::fold::{InMemoryTables, TableChange, TaskEventMarks, change_of};
use crate::format::{FlowText, flow_text};
use crate::tally::{CountChange, CountIncrement, CountKey, CountKind, count_changes};
use crate::{ReplayStop, Seq, StoreError, reader, schema};

/// Makes the tables again, in one transaction: a failure leaves them as they were.
pub(super) fn rebuild_tables(conn: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let doing = "rebuild the tables";
    let step = conn.transaction_with_behavior(TransactionBehavior::Immediate).with_context(doing, path)?;
    refill_tables(&step, path)?;
    step.commit().with_context(doing, path)
}

/// Makes the tables again, within a transaction of the caller's.
pub(crate) fn refill_tables(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let RebuiltTables { flows, changes } = refold_journal(conn, path)?;
    conn.execute_batch(schema::EMPTY_FOLDS).with_context("rebuild the tables", path)?;
    for (seq, flow) in &flows {
        tables::put_flow(conn, path, *seq, flow)?;
    }
    let mut scratch = RowBuffers::default();
    for change in &changes {
        tables::apply_table_change(conn, path, &mut scratch, Seq::FIRST, change)?;
    }
    Ok(())
}

/// Says whether the tables are what the events make.
pub(super) fn verify_tables(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let RebuiltTables { flows, changes } = refold_journal(conn, path)?;
    let mut folded = InMemoryTables::default();
    for change in changes {
        folded.apply_change(Seq::FIRST, change);
    }
    if let Some(difference) = reader::read_tables(conn, path)?.first_difference(&folded.to_tables()) {
        return Err(StoreError::corrupt_at(
            None,
            format!("the tables are not what the events make: {difference}"),
        ));
    }
    let mut made: Vec<String> = flows.into_iter().map(|(_, flow)| flow.digest).collect();
    let mut kept: Vec<String> = reader::flow_digests(conn, path)?.into_iter().collect();
    made.sort();
    kept.sort();
    if made != kept {
        return Err(StoreError::corrupt_at(None, "the flows are not those of the events"));
    }
    Ok(())
}

fn refold_journal(conn: &Connection, path: &Path) -> Result<RebuiltTables, StoreError> {
    let mut refold = TableRebuild::default();
    reader::stream_entries(conn, path, Seq::FIRST, &mut |seq, entry| refold.take(seq, &entry))?;
    Ok(refold.finish())
}

/// What all events together do to empty tables.
struct RebuiltTables {
    flows: Vec<(Seq, FlowText)>,
    changes: Vec<TableChange>,
}

/// All tasks of a journal, in the making.
#[derive(Default)]
struct TableRebuild {
    tasks: HashMap<TaskId, Task>,
    marks: BTreeMap<TaskId, TaskEventMarks>,
    changes: Vec<TableChange>,
    flows: Vec<(Seq, FlowText)>,
    /// No table, but a journal in which it goes astray is as damaged as one in which a task does.
    queue: Queue,
    counts: BTreeMap<(i64, CountKind, String), u64>,
}

impl TableRebuild {
    fn take(&mut self, seq: Seq, entry: &JournalEntry) -> Result<(), ReplayStop> {
        // Offsets count from the first event.
        let nth = seq.0 - Seq::FIRST.0;
        self.changes.extend(change_of(nth, entry));
        self.add_counts(entry);
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
        self.marks.entry(*id).or_default().note_event(nth, entry.at, event);
        self.tasks.insert(*id, task);
        Ok(())
    }

    /// Counts of the same thing in the same slot are one change: a journal has many times more facts than counts.
    fn add_counts(&mut self, entry: &JournalEntry) {
        for tally in count_changes(entry) {
            match tally {
                CountChange::Count(CountIncrement { slot, what, key: CountKey::Word(word), by }) => {
                    *self.counts.entry((slot, what, word)).or_default() += by;
                }
                // By what these are told apart depends on what was before.
                CountChange::Count(CountIncrement {
                    key: CountKey::Profile(_) | CountKey::Opinion(..),
                    ..
                })
                | CountChange::Mark(..) => {
                    self.changes.push(TableChange::Tally(tally));
                }
            }
        }
    }

    fn finish(self) -> RebuiltTables {
        let Self { tasks, marks, mut changes, flows, queue: _, counts } = self;
        changes.extend(counts.into_iter().map(|((slot, what, word), by)| {
            TableChange::Tally(CountChange::Count(CountIncrement {
                slot,
                what,
                key: CountKey::Word(word),
                by,
            }))
        }));
        changes.extend(marks.into_iter().map(|(id, marks)| marks.into_task_change(&tasks[&id])));
        RebuiltTables { flows, changes }
    }
}

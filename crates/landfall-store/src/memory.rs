//! The twin without a file: the same format, the same chain, the same tables. For tests and simulations.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use landfall_model::JournalEntry;

use crate::chain::{Hash, HashChain};
use crate::fold::{self, InMemoryTables, Tables};
use crate::format::{self, FlowCache, RawRow};
use crate::journal::PendingFrom;
use crate::{
    AppendReceipt, EntryBatch, Journal, JournalHead, PendingAck, ReplayReport, ReplayStop, Seq, StoreError,
};

/// A journal that is gone when the process is. Clones are handles to the same journal.
#[derive(Clone, Default)]
pub struct MemoryJournal {
    kept: Arc<Mutex<MemoryState>>,
}

#[derive(Default)]
struct MemoryState {
    events: Vec<MemoryRow>,
    flows: HashSet<String>,
    chain: HashChain,
    folded: InMemoryTables,
}

struct MemoryRow {
    at_ms: i64,
    task: Option<u32>,
    kind: &'static str,
    body: String,
    hash: Hash,
}

impl MemoryJournal {
    /// An empty journal.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Its tables.
    #[must_use]
    pub fn tables(&self) -> Tables {
        self.lock_state().folded.to_tables()
    }

    fn lock_state(&self) -> MutexGuard<'_, MemoryState> {
        // A panic of another holder is that test's failure; what is kept is whole between two events.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal for MemoryJournal {
    fn append_later(&self, batch: EntryBatch) -> PendingAck {
        PendingAck(PendingFrom::Known(
            batch.check_tasks_present().map(|()| self.lock_state().append_batch(&batch)),
        ))
    }

    fn replay(
        &self,
        from: Seq,
        each: &mut dyn FnMut(Seq, JournalEntry) -> Result<(), ReplayStop>,
    ) -> Result<ReplayReport, StoreError> {
        let kept = self.lock_state();
        let mut flows = FlowCache::default();
        let mut replayed = ReplayReport { events: 0, to: kept.head_at(Seq(from.0.saturating_sub(1))) };
        for (seq, event) in (1..).map(Seq).zip(&kept.events) {
            let raw =
                RawRow { seq, at_ms: event.at_ms, task: event.task, kind: event.kind, body: &event.body };
            if seq < from && event.kind != "bound" {
                continue;
            }
            let entry = format::decode_entry(raw, &mut flows)?; // an earlier one may bring a flow that is named later
            if seq < from {
                continue;
            }
            replayed =
                ReplayReport { events: replayed.events + 1, to: JournalHead { seq, hash: event.hash } };
            match each(seq, entry) {
                Ok(()) => {}
                Err(ReplayStop::Enough) => break,
                Err(ReplayStop::Illegal(source)) => return Err(StoreError::Illegal { seq, source }),
            }
        }
        Ok(replayed)
    }

    fn head(&self) -> Result<JournalHead, StoreError> {
        let kept = self.lock_state();
        Ok(kept.head_at(Seq(kept.events.len() as u64)))
    }
}

impl MemoryState {
    fn head_at(&self, seq: Seq) -> JournalHead {
        let seq = Seq(seq.0.min(self.events.len() as u64));
        let last = seq.0.checked_sub(1).and_then(|at| self.events.get(usize::try_from(at).ok()?));
        JournalHead { seq, hash: last.map_or(Hash::NONE, |event| event.hash) }
    }

    fn append_batch(&mut self, batch: &EntryBatch) -> AppendReceipt {
        let first = Seq(self.events.len() as u64 + 1);
        for entry in &batch.entries {
            let written = format::encode_entry(entry);
            let body = match &written.flow {
                Some(flow) if self.flows.insert(flow.digest.clone()) => written.body_with_flow(flow),
                Some(_) | None => written.short,
            };
            let before = self.head_at(Seq(self.events.len() as u64));
            let (at_ms, task, kind) = (written.at_ms, written.task, written.kind);
            let hash = self
                .chain
                .link_row(&before.hash, RawRow { seq: before.seq.next(), at_ms, task, kind, body: &body });
            self.events.push(MemoryRow { at_ms, task, kind, body, hash });
        }
        for change in fold::collect_changes(&batch.entries, &batch.tasks) {
            self.folded.apply_change(first, change);
        }
        AppendReceipt { last: Seq(self.events.len() as u64) }
    }
}

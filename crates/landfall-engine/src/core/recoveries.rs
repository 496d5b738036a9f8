//! What comes again and again becomes a task, so that it does not have to be recovered from for ever.

use std::sync::Arc;

use landfall_model::recovery::{RecoveryEvent, find_recurring_failures};
use landfall_model::{Event, Fact, JournalEntry, Tag, Task, TaskId, TaskSpec};

use super::{Core, CoreEnvironment};

impl Core {
    /// Proposes a task about each failure that was seen often enough, as a draft: only a person lets it start. `id` is the
    /// task it was seen at last.
    pub(super) fn propose_recurring_failures(&mut self, out: &dyn CoreEnvironment, id: TaskId) {
        let often = find_recurring_failures(self.world.tasks().map(|task| &task.recoveries));
        for candidate in often {
            let part = candidate.to_proposed_task();
            let source = format!("recovery:{}", candidate.symptom);
            let known = |task: &Arc<Task>| task.spec.source == source;
            let is_known = self.world.tasks().any(known);
            if let (false, Ok(mut spec)) = (is_known, TaskSpec::new(&part.title)) {
                spec.body = part.body;
                spec.criteria = part.criteria;
                spec.size = part.size;
                spec.tags = part.tags.iter().filter_map(|tag| tag.parse::<Tag>().ok()).collect();
                spec.source = source;
                spec.draft = true;
                self.insert_new_task(out, self.world.next_id(), spec);
            }
            let at = out.now();
            let event = Event::Recovery(RecoveryEvent::Proposed { symptom: candidate.symptom });
            let after = landfall_model::apply(Some((*self.expect_task(id)).clone()), id, at, &event)
                .expect("a task can be proposed about at any time");
            self.insert_task(after);
            self.turn.entries.push(JournalEntry { at, fact: Fact::Task(id, event) });
            let after = self.expect_task(id);
            self.turn.touched.insert(id, after);
        }
    }
}

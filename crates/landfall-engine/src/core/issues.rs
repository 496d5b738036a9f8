//! Tasks that follow issues, among each other: a whole and its parts, and those that wait for others in the tracker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use landfall_model::issue::{self, Source, Wishes};
use landfall_model::{EndKind, Ending, News, State, Task, TaskId, TaskSpec, Wait};

use super::{Core, Outside};
use crate::ask::NewTask;

impl Core {
    /// The task that follows an issue.
    #[must_use]
    pub fn follower(&self, source: &Source) -> Option<&Arc<Task>> {
        let source = source.to_string();
        self.world.tasks().find(|task| task.spec.source == source)
    }

    /// What a piece of news about one task means for the issues around it.
    pub(super) fn note_issue(&mut self, out: &dyn Outside, task: &Arc<Task>, parted: bool) {
        if parted {
            self.part(out, task);
        }
        if let State::Waiting { wait: Wait::Parts, .. } = task.state {
            self.consider_whole(out, task.id);
        }
        if let Some(parent) = task.spec.parent {
            self.consider_whole(out, parent);
        }
        if let (State::Ended(Ending { kind: EndKind::Done, .. }), Some(source)) =
            (&task.state, Source::of(&task.spec.source))
        {
            let named = format!("#{}", source.number);
            self.look_again(out, &|by| by.contains(&named));
        }
    }

    /// At the start of a run: others may have done meanwhile what was waited for.
    pub(super) fn look_at_issues(&mut self, out: &dyn Outside) {
        self.look_again(out, &|_| true);
        for whole in self.wholes.clone() {
            self.consider_whole(out, whole);
        }
    }

    fn look_again(&mut self, out: &dyn Outside, is: &dyn Fn(&[String]) -> bool) {
        let waits = |task: &&Arc<Task>| match &task.state {
            State::Waiting { wait: Wait::Blockers { by }, .. } => is(by) && self.filter.lets_go_on(task.id),
            _ => false,
        };
        for id in self.world.tasks().filter(waits).map(|task| task.id).collect::<Vec<_>>() {
            self.hear(out, id, &News::LookAgain);
        }
    }

    /// The parts of a whole become tasks. Those that are tasks already stay as they are.
    fn part(&mut self, out: &dyn Outside, whole: &Task) {
        let (Some(issue), Some(source)) = (&whole.issue, Source::of(&whole.spec.source)) else { return };
        let of = |number| Source { tracker: source.tracker.clone(), number };
        let there: BTreeMap<u64, TaskId> = issue
            .parts
            .iter()
            .filter_map(|part| Some((part.number, self.follower(&of(part.number))?.id)))
            .collect();
        let fresh: Vec<_> =
            issue.parts.iter().filter(|part| !part.done && !there.contains_key(&part.number)).collect();
        let place_of = |number: &u64| fresh.iter().position(|part| part.number == *number);
        let new = |part: &&issue::Part| {
            let mut spec =
                TaskSpec::new(&part.title).or_else(|_| TaskSpec::new(&of(part.number).to_string()));
            let spec = spec.as_mut().map(|spec| {
                spec.source = of(part.number).to_string();
                spec.parent = Some(whole.id);
                spec.size = part.size;
                spec.flow.clone_from(&whole.spec.flow);
                spec.agent.clone_from(&whole.spec.agent);
                spec.priority = whole.spec.priority;
                spec.tags.clone_from(&whole.spec.tags);
                spec.needs = part.needs.iter().filter_map(|need| there.get(need).copied()).collect();
                spec.clone()
            });
            let needs_here = part.needs.iter().filter_map(place_of).collect();
            NewTask {
                spec: spec.expect("a source is a title").clone(),
                needs_here,
                parent_here: None,
                position: None,
            }
        };
        let tasks: Vec<NewTask> = fresh.iter().map(new).collect();
        let wishes = Wishes { way: None, depth: None, ..issue.wishes.clone() };
        match self.add(out, tasks) {
            Ok(added) => {
                let ids: Vec<TaskId> = added.iter().map(|task| task.id).collect();
                if let Some(only) = &mut self.only
                    && only.contains(&whole.id)
                {
                    only.extend(ids.iter().copied().chain(there.into_values()));
                }
                for id in ids {
                    self.hear(out, id, &News::Wish(wishes.clone()));
                }
                self.refilter();
            }
            Err(error) => {
                let reason = format!("its sub-issues cannot be taken on: {error}");
                self.hear(out, whole.id, &News::Block { reason });
            }
        }
    }

    /// Tells a whole that none of its parts goes on any more, if that is so.
    fn consider_whole(&mut self, out: &dyn Outside, whole: TaskId) {
        let Some(task) = self.world.get(whole) else { return };
        let (State::Waiting { wait: Wait::Parts, .. }, Some(issue)) = (&task.state, &task.issue) else {
            return;
        };
        let Some(source) = Source::of(&task.spec.source) else { return };
        let of = |number| {
            let source = Source { tracker: source.tracker.clone(), number };
            self.follower(&source).map(|task| &**task)
        };
        if let Some(ends) = issue::ends(&issue.parts, &of) {
            self.hear(out, whole, &News::PartsOver(ends));
        }
    }

    /// Parts that may not begin yet, because enough of the same whole are worked on.
    pub(super) fn resting(&self) -> BTreeSet<TaskId> {
        let mut resting = BTreeSet::new();
        for whole in &self.wholes {
            let parts =
                self.world.tasks().filter(|task| task.spec.parent == Some(*whole)).map(|task| &**task);
            resting.append(&mut issue::resting(parts, self.rules.parts_max));
        }
        resting
    }

    /// The tasks a person named, and the parts of those.
    pub(super) fn with_parts(&self, named: &BTreeSet<TaskId>) -> BTreeSet<TaskId> {
        let mut all = named.clone();
        loop {
            let parts = self.world.tasks().filter(|task| {
                task.issue.is_some() && task.spec.parent.is_some_and(|parent| all.contains(&parent))
            });
            let more: Vec<TaskId> = parts.map(|task| task.id).filter(|id| !all.contains(id)).collect();
            if more.is_empty() {
                return all;
            }
            all.extend(more);
        }
    }
}

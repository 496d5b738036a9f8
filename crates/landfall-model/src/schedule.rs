//! Who may go on now: every task with its place in line, kept in order as tasks change.
//!
//! [`World::put`] costs the logarithm of the backlog and the number of tasks it touches; [`plan`] reads the front
//! of four lines. So the cost of a grant does not grow with the backlog.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::flow::{Flow, StepKind};
use crate::task::{Doing, State, Task};
use crate::{TaskId, Timestamp};

/// What a task needs in order to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// The right to move the base.
    Landing,
    /// Nothing that is scarce.
    Free,
    /// A checkout to verify in.
    Lane,
    /// Leave to run an agent.
    Slot,
}

impl Standing {
    /// Every kind, in the order they are served: what is nearest to landed goes first.
    pub const ALL: [Self; 4] = [Self::Landing, Self::Free, Self::Lane, Self::Slot];
}

/// How much of each there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Agents at once.
    pub slots: u32,
    /// Verifications at once.
    pub lanes: u32,
}

impl Limits {
    fn of(&self, standing: Standing) -> u32 {
        match standing {
            Standing::Landing => 1, // the base has one tip
            Standing::Free => u32::MAX,
            Standing::Lane => self.lanes,
            Standing::Slot => self.slots,
        }
    }
}

/// Leave for one task to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// This task.
    pub task: TaskId,
    /// With this.
    pub standing: Standing,
}

/// A place in line. Less is sooner: 1. the higher score, 2. the older task.
type Rank = (Reverse<i64>, TaskId);

/// All tasks, and who stands where.
#[derive(Debug, Clone, Default)]
pub struct World {
    tasks: BTreeMap<TaskId, Arc<Task>>,
    flows: BTreeMap<String, Arc<Flow>>,
    default_flow: String,
    only: Option<BTreeSet<TaskId>>,
    dependents: BTreeMap<TaskId, BTreeSet<TaskId>>,
    children: BTreeMap<TaskId, BTreeSet<TaskId>>,
    lines: BTreeMap<Standing, BTreeSet<Rank>>,
    place: BTreeMap<TaskId, (Standing, Rank)>,
    holding: BTreeMap<Standing, BTreeSet<TaskId>>,
    due: BTreeSet<(Timestamp, TaskId)>,
    gate_waits: BTreeSet<TaskId>,
}

impl World {
    /// An empty world with these flows.
    #[must_use]
    pub fn new(flows: BTreeMap<String, Arc<Flow>>, default_flow: &str) -> Self {
        Self { flows, default_flow: default_flow.to_owned(), ..Self::default() }
    }

    /// The task, if it exists.
    #[must_use]
    pub fn get(&self, id: TaskId) -> Option<&Arc<Task>> {
        self.tasks.get(&id)
    }

    /// Every task, oldest first.
    pub fn tasks(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.tasks.values()
    }

    /// The number the next task gets. Numbers are never used again.
    #[must_use]
    pub fn next_id(&self) -> TaskId {
        TaskId(self.tasks.keys().next_back().map_or(1, |last| last.0 + 1))
    }

    /// Restricts new starts to these tasks, or lifts that.
    pub fn set_only(&mut self, only: Option<BTreeSet<TaskId>>) {
        self.only = only;
        for id in self.tasks.keys().copied().collect::<Vec<_>>() {
            self.place(id);
        }
    }

    /// The flow a task follows, or would follow.
    #[must_use]
    pub fn flow_of(&self, task: &Task) -> Option<Arc<Flow>> {
        task.flow.clone().or_else(|| {
            let name = task.spec.flow.as_deref().unwrap_or(&self.default_flow);
            self.flows.get(name).cloned()
        })
    }

    /// The needs of a task that do not let it start yet.
    #[must_use]
    pub fn unmet(&self, task: &Task) -> Vec<TaskId> {
        let met = |id: &TaskId| self.tasks.get(id).is_some_and(|need| need.unblocks());
        task.spec.needs.iter().filter(|id| !met(id)).copied().collect()
    }

    /// Tasks that need this one and are not over.
    #[must_use]
    pub fn dependents(&self, id: TaskId) -> Vec<TaskId> {
        self.dependents.get(&id).into_iter().flatten().copied().collect()
    }

    /// Tasks that hold this, oldest first.
    #[must_use]
    pub fn holding(&self, standing: Standing) -> usize {
        self.holding.get(&standing).map_or(0, BTreeSet::len)
    }

    /// Tasks with something under way.
    pub fn active(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.holding.values().flatten().filter_map(|id| self.tasks.get(id))
    }

    /// How many stand in line for this.
    #[must_use]
    pub fn waiting_for(&self, standing: Standing) -> usize {
        self.lines.get(&standing).map_or(0, BTreeSet::len)
    }

    /// Whether the task stands in line for a slot that others hold.
    #[must_use]
    pub fn starved(&self, id: TaskId, limits: &Limits) -> bool {
        self.place.get(&id).is_some_and(|(standing, _)| {
            u32::try_from(self.holding(*standing)).unwrap_or(u32::MAX) >= limits.of(*standing)
        })
    }

    /// The next moment some task waits for.
    #[must_use]
    pub fn next_due(&self) -> Option<(Timestamp, TaskId)> {
        self.due.first().copied()
    }

    /// Tasks that wait for a gate to be mended.
    #[must_use]
    pub fn gate_waits(&self) -> Vec<TaskId> {
        self.gate_waits.iter().copied().collect()
    }

    /// Takes a task in, new or changed, and moves whoever it affects.
    pub fn put(&mut self, task: Task) {
        let id = task.id;
        let before = self.tasks.get(&id).cloned();
        let after = Arc::new(task);
        self.tasks.insert(id, after.clone());
        let old_needs = before.as_ref().map(|task| task.spec.needs.clone()).unwrap_or_default();
        let was_over = before.as_ref().is_some_and(|task| task.is_over());
        let needs_changed = old_needs != after.spec.needs || was_over != after.is_over();
        let did_unblock = before.as_ref().is_some_and(|task| task.unblocks());

        if let Some(due) = before.as_ref().and_then(|task| task.due()) {
            self.due.remove(&(due, id));
        }
        if let Some(due) = after.due() {
            self.due.insert((due, id));
        }
        if let State::Waiting { wait: crate::Wait::GateBroken { .. }, .. } = &after.state {
            self.gate_waits.insert(id);
        } else {
            self.gate_waits.remove(&id);
        }
        if before.as_ref().and_then(|task| task.spec.parent) != after.spec.parent || before.is_none() {
            if let Some(parent) = before.as_ref().and_then(|task| task.spec.parent) {
                self.children.entry(parent).or_default().remove(&id);
            }
            if let Some(parent) = after.spec.parent {
                self.children.entry(parent).or_default().insert(id);
            }
        }
        if needs_changed || before.is_none() {
            for need in &old_needs {
                self.dependents.entry(*need).or_default().remove(&id);
            }
            if !after.is_over() {
                for need in &after.spec.needs {
                    self.dependents.entry(*need).or_default().insert(id);
                }
            }
            // How many a task unblocks is part of its score.
            for need in old_needs.iter().chain(&after.spec.needs) {
                self.place(*need);
            }
        }
        self.hold(&after);
        self.place(id);
        if did_unblock != after.unblocks() {
            for dependent in self.dependents(id) {
                self.place(dependent);
            }
            let siblings = after.spec.parent.and_then(|parent| self.children.get(&parent)).cloned();
            for sibling in siblings.unwrap_or_default() {
                self.place(sibling);
            }
        }
    }

    /// Notes what an active task holds.
    fn hold(&mut self, task: &Task) {
        for held in self.holding.values_mut() {
            held.remove(&task.id);
        }
        let State::Active { step, doing } = &task.state else { return };
        let kind = task.flow.as_ref().and_then(|flow| flow.step(step)).map(|step| &step.kind);
        let standing = match (kind, doing) {
            (Some(StepKind::Land), _) | (_, Doing::Landing) => Standing::Landing,
            (_, Doing::Checking { .. }) => Standing::Lane,
            (_, Doing::Reporting) => Standing::Free,
            (_, Doing::Preparing { .. } | Doing::Running { .. }) => Standing::Slot,
        };
        self.holding.entry(standing).or_default().insert(task.id);
    }

    /// Puts a task where it belongs: into one line, or into none.
    fn place(&mut self, id: TaskId) {
        if let Some((standing, rank)) = self.place.remove(&id)
            && let Some(line) = self.lines.get_mut(&standing)
        {
            line.remove(&rank);
        }
        let Some(task) = self.tasks.get(&id) else { return };
        let Some(standing) = self.wants(task) else { return };
        let rank = (Reverse(score(self, task)), id);
        self.lines.entry(standing).or_default().insert(rank);
        self.place.insert(id, (standing, rank));
    }

    /// What a task stands in line for, if it may go on at all.
    fn wants(&self, task: &Task) -> Option<Standing> {
        let State::Ready { next, .. } = &task.state else { return None };
        let chosen = self.only.as_ref().is_none_or(|only| only.contains(&task.id));
        if !chosen || !self.unmet(task).is_empty() {
            return None;
        }
        let flow = self.flow_of(task)?;
        let step = flow.step(next.as_ref().unwrap_or(&flow.entry))?;
        Some(match &step.kind {
            StepKind::Agent { .. } => Standing::Slot,
            StepKind::Verify => Standing::Lane,
            StepKind::Land => Standing::Landing,
            StepKind::Report | StepKind::Ask { .. } => Standing::Free,
            StepKind::Check { .. }
            | StepKind::Review
            | StepKind::Split
            | StepKind::Target
            | StepKind::Converge => Standing::Free, // granted only to be told that it is not performed
        })
    }
}

/// How soon a task should go on; more is sooner.
///
/// 1. What was begun is finished first. 2. Priority, a hundred a level. 3. `next` and `later`. 4. `critical` 50,
///    `quick-win` 30. 5. Ten for each task it unblocks. 6. Twenty when more than half of its siblings are done.
/// 7. Fifteen less for each retry.
#[must_use]
pub fn score(world: &World, task: &Task) -> i64 {
    let mut score = 0;
    if task.attempt.0 > 0 {
        score += 10_000;
    }
    score += (5 - i64::from(task.spec.priority)) * 100;
    for tag in &task.spec.tags {
        score += match tag.as_str() {
            "next" => 200,
            "later" => -200,
            "critical" => 50,
            "quick-win" => 30,
            _ => 0,
        };
    }
    score +=
        10 * i64::try_from(world.dependents.get(&task.id).map_or(0, BTreeSet::len)).unwrap_or(i64::MAX / 20);
    if let Some(siblings) = task.spec.parent.and_then(|parent| world.children.get(&parent)) {
        let done =
            siblings.iter().filter_map(|id| world.tasks.get(id)).filter(|task| task.unblocks()).count();
        if done * 2 > siblings.len() {
            score += 20;
        }
    }
    score - 15 * i64::from(task.counters.retries)
}

/// Who may go on next, if anyone may.
#[must_use]
pub fn plan(world: &World, limits: &Limits) -> Option<Grant> {
    Standing::ALL.into_iter().find_map(|standing| {
        let held = u32::try_from(world.holding(standing)).unwrap_or(u32::MAX);
        if held >= limits.of(standing) {
            return None;
        }
        let (_, task) = world.lines.get(&standing)?.first()?;
        Some(Grant { task: *task, standing })
    })
}

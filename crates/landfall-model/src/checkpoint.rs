//! Checkpoints: where the base was at a moment a person may want to go back to.

use crate::{Commit, TaskId, Timestamp};
pub use landfall_facts::checkpoint::{CheckpointEvent, CheckpointReason};

/// Where the base was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// What people call it.
    pub name: String,
    /// When it was made.
    pub at: Timestamp,
    /// Where the base was.
    pub commit: Commit,
    /// Why it was made.
    pub why: CheckpointReason,
    /// How many tasks had landed.
    pub landed: usize,
}

/// Every checkpoint that is kept, and what landed: a fold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checkpoints {
    kept: Vec<Checkpoint>,
    landings: Vec<TaskId>,
    since: u32,
    made: u32,
}

/// How long checkpoints are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// So many.
    pub count: usize,
    /// For so long.
    pub age_ms: u64,
}

const LATEST_KEPT: usize = 3; // however old they are
/// Landings from one checkpoint to the next.
pub const EVERY: u32 = 5;

impl Checkpoints {
    /// Those that are kept, oldest first.
    #[must_use]
    pub fn kept_checkpoints(&self) -> &[Checkpoint] {
        &self.kept
    }

    /// The one called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Checkpoint> {
        self.kept.iter().find(|it| it.name == name)
    }

    /// What landed after it, in order: what going back to it takes away.
    #[must_use]
    pub fn landed_after(&self, checkpoint: &Checkpoint) -> &[TaskId] {
        self.landings.get(checkpoint.landed..).unwrap_or_default()
    }

    /// Whether enough has landed since the last one.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.since >= EVERY
    }

    /// A name for the next one.
    #[must_use]
    pub fn next_name(&self) -> String {
        let mut names = (self.made + 1..).map(|number| format!("cp-{number}"));
        names.find(|name| self.get(name).is_none()).expect("there are more numbers than checkpoints")
    }

    /// Those that need not be kept any longer: the oldest past the count, and the old ones; never those a person made,
    /// nor the latest few.
    #[must_use]
    pub fn find_outdated(&self, now: Timestamp, retention: Retention) -> Vec<String> {
        let own = self.kept.iter().filter(|it| it.why != CheckpointReason::Person).collect::<Vec<_>>();
        let latest = own.len().saturating_sub(LATEST_KEPT);
        let over = self.kept.len().saturating_sub(retention.count);
        let old = |it: &Checkpoint| it.at.plus_ms(retention.age_ms) < now;
        own.iter()
            .take(latest)
            .enumerate()
            .filter(|(place, it)| *place < over || old(it))
            .map(|(_, it)| it.name.clone())
            .collect()
    }

    /// Bookkeeping: what a fact means.
    pub fn apply(&mut self, at: Timestamp, event: &CheckpointEvent) {
        match event {
            CheckpointEvent::Made { name, commit, why } => {
                self.made += 1;
                self.since = 0;
                let landed = self.landings.len();
                self.kept.retain(|it| it.name != *name);
                let (name, commit) = (name.clone(), commit.clone());
                self.kept.push(Checkpoint { name, at, commit, why: *why, landed });
            }
            CheckpointEvent::Dropped { name } => self.kept.retain(|it| it.name != *name),
        }
    }

    /// A task landed.
    pub fn note_landing(&mut self, task: TaskId) {
        self.landings.push(task);
        self.since += 1;
    }
}

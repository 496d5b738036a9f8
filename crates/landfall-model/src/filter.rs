//! Which tasks a run or a sprint may start.

use std::collections::BTreeSet;

use crate::sprint::SprintSpec;
use crate::{Tag, TaskId, TaskSpec};

/// Restricts new starts. What is empty restricts nothing. What was begun goes on, except where a person named tasks: those
/// are all that is driven then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartFilter {
    /// Just these tasks.
    pub only: Option<BTreeSet<TaskId>>,
    /// Just these may begin; what was begun goes on.
    pub starts: Option<BTreeSet<TaskId>>,
    /// None of these may begin yet; what was begun goes on.
    pub resting: BTreeSet<TaskId>,
    /// Just the parts of these, and these themselves.
    pub parents: BTreeSet<TaskId>,
    /// Just what has one of these tags.
    pub tags_in: BTreeSet<Tag>,
    /// Nothing that has one of these, whatever else it has.
    pub tags_out: BTreeSet<Tag>,
}

impl StartFilter {
    /// The tasks that a sprint may begin.
    #[must_use]
    pub fn for_sprint(plan: &SprintSpec) -> Self {
        Self {
            only: None,
            starts: (!plan.only.is_empty()).then(|| plan.only.clone()),
            resting: BTreeSet::new(),
            parents: plan.parents.clone(),
            tags_in: plan.tags_in.clone(),
            tags_out: plan.tags_out.clone(),
        }
    }

    /// Whether the task may start.
    #[must_use]
    pub fn admits_task(&self, spec: &TaskSpec, id: TaskId) -> bool {
        let Self { only: _, starts, resting, parents, tags_in, tags_out } = self;
        let part = |parents: &BTreeSet<TaskId>| {
            parents.contains(&id) || spec.parent.is_some_and(|parent| parents.contains(&parent))
        };
        self.admits_continuation(id)
            && starts.as_ref().is_none_or(|starts| starts.contains(&id))
            && !resting.contains(&id)
            && (parents.is_empty() || part(parents))
            && (tags_in.is_empty() || !tags_in.is_disjoint(&spec.tags))
            && tags_out.is_disjoint(&spec.tags)
    }

    /// Whether the task may go on once it was begun.
    #[must_use]
    pub fn admits_continuation(&self, id: TaskId) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&id))
    }
}

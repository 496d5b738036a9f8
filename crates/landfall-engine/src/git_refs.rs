//! Names that the work of a task has in git, and what failures of git say.

use landfall_host::git::{CollectError, RefName};
use landfall_model::TaskId;

/// The name of a task's workspace and of its refs.
pub(crate) fn task_ref_name(task: TaskId) -> String {
    format!("t{}", task.0)
}

/// A ref of ours that keeps something of a task.
pub(crate) fn task_ref(kind: &str, task: TaskId, rest: &str) -> RefName {
    RefName::new(&format!("refs/landfall/{kind}/{}/{rest}", task_ref_name(task)))
        .expect("made of our own words")
}

/// What a failed collection says to a person.
pub(crate) fn collect_detail(error: &CollectError) -> String {
    match error {
        CollectError::Git(error) => error.full_message(),
        CollectError::WorkspaceGone
        | CollectError::HeadUnreadable { .. }
        | CollectError::TooManyPaths { .. }
        | CollectError::Broken { .. } => error.to_string(),
    }
}

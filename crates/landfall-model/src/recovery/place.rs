//! Where the work of an issue is, told from what it has left behind and not from what its labels say.

use crate::issue::IssuePhase;
pub use landfall_facts::recovery::is_restorable;

/// What an issue has left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IssueArtifacts {
    /// Its specification is there.
    pub spec: bool,
    /// There is a commit of its work.
    pub commit: bool,
    /// A pull request is open for it.
    pub pr_open: bool,
    /// The pull request has its review.
    pub reviewed: bool,
}

/// The phase that an issue is in, by what it has left behind.
#[must_use]
pub fn restored_phase(hints: IssueArtifacts) -> IssuePhase {
    match hints {
        IssueArtifacts { pr_open: true, reviewed: true, .. } => IssuePhase::Merge,
        IssueArtifacts { pr_open: true, reviewed: false, .. } => IssuePhase::Review,
        IssueArtifacts { commit: true, .. } => IssuePhase::Code,
        IssueArtifacts { spec: true, .. } => IssuePhase::Ready,
        IssueArtifacts { spec: false, .. } => IssuePhase::Spec,
    }
}

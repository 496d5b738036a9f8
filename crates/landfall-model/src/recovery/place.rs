//! Where the work of an issue is, told from what it has left behind and not from what its labels say.

use super::pattern::words;
use crate::issue::IssuePhase;
use landfall_facts::recovery::RecoveryOp;
pub use landfall_facts::recovery::is_restorable;

/// What an issue has left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IssueArtifacts {
    /// Its specification is there.
    pub spec: bool,
    /// Work is in its workspace and not committed.
    pub changes: bool,
    /// There is a commit of its work.
    pub commit: bool,
    /// The branch with that commit is pushed.
    pub pushed: bool,
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

words!(
    /// How far the work of an issue is.
    Milestone {
        /// Nothing is there.
        Nothing = "nothing",
        /// Something is there that is not committed.
        Changed = "changed",
        /// It is committed.
        Committed = "committed",
        /// It is pushed.
        Pushed = "pushed",
        /// It is offered as a pull request.
        Offered = "offered",
    }
);

/// How far the work of an issue is, so that nothing is done twice and nothing that was done is thrown away.
#[must_use]
pub fn reached_milestone(hints: IssueArtifacts) -> Milestone {
    match hints {
        IssueArtifacts { pr_open: true, .. } => Milestone::Offered,
        // Changes on top of commits are work in progress: whoever goes on has both.
        IssueArtifacts { changes: true, .. } => Milestone::Changed,
        IssueArtifacts { pushed: true, commit: true, .. } => Milestone::Pushed,
        IssueArtifacts { commit: true, .. } => Milestone::Committed,
        IssueArtifacts { .. } => Milestone::Nothing,
    }
}

impl Milestone {
    /// What is left to do until a pull request is open. None if an agent has to go on with the work itself.
    #[must_use]
    pub fn remaining_operations(self) -> Option<Vec<RecoveryOp>> {
        match self {
            Self::Nothing | Self::Changed => None,
            Self::Committed => Some(vec![RecoveryOp::PushBranch, RecoveryOp::OpenPr]),
            Self::Pushed => Some(vec![RecoveryOp::OpenPr]),
            Self::Offered => Some(Vec::new()),
        }
    }
}

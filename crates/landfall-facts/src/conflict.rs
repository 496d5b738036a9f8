//! What happens when a merge conflict is not resolved in time.

words! {
    /// What happens when no person resolved a conflict in time.
    #[derive(Default)]
    pub enum ConflictTimeoutAction {
        /// The task stops as blocked; it can be taken up again.
        #[default]
        Defer = "defer",
        /// The task is given up.
        Skip = "skip",
        /// The agent tries it after all.
        Retry = "retry",
        /// The person is told again, and it waits as long once more.
        Notify = "notify",
    }
}

impl ConflictTimeoutAction {
    /// What a person reads that will happen.
    #[must_use]
    pub fn to_sentence(self) -> &'static str {
        match self {
            Self::Defer => "it stops as blocked",
            Self::Skip => "it is given up",
            Self::Retry => "the agent tries it",
            Self::Notify => "you are told again",
        }
    }
}

//! The phases of an issue, as its labels say them.

/// Where an issue stands, in the word of its `phase/*` label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Somebody knows what it is.
    Issue,
    /// What is to be done is being written down.
    Spec,
    /// It can be begun.
    Ready,
    /// It is worked on.
    Code,
    /// It is read.
    Review,
    /// It goes onto the base.
    Merge,
    /// It is on the base, and its acceptance is looked at.
    Verify,
    /// Everything holds.
    Done,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Self; 8] = [
        Self::Issue,
        Self::Spec,
        Self::Ready,
        Self::Code,
        Self::Review,
        Self::Merge,
        Self::Verify,
        Self::Done,
    ];

    /// The word of its label.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Issue => "issue",
            Self::Spec => "spec",
            Self::Ready => "ready",
            Self::Code => "code",
            Self::Review => "review",
            Self::Merge => "merge",
            Self::Verify => "verify",
            Self::Done => "done",
        }
    }

    /// The phase this word means.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.word() == word)
    }
}

/// The phase of an issue that is made of others, by theirs. It never goes backwards: a part that is opened again leaves the
/// whole where it was, unless the whole was opened again itself.
#[must_use]
pub fn aggregate(now: Option<Phase>, parts: &[Option<Phase>], reopened: bool) -> Option<Phase> {
    let at_least = |phase: Phase| !parts.is_empty() && parts.iter().all(|part| *part >= Some(phase));
    let by_parts = if at_least(Phase::Verify) {
        Some(Phase::Verify) // and no further: its own acceptance is still to be looked at
    } else if parts.iter().any(|part| *part >= Some(Phase::Code)) {
        Some(Phase::Code)
    } else {
        None
    };
    match reopened {
        true => by_parts,
        false => now.max(by_parts),
    }
}

//! What goes wrong with a tracker, told apart by what can be done about it.

use landfall_model::Timestamp;
use thiserror::Error;

use super::NameError;

/// Why a tracker did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TrackerError {
    /// There is no such thing, or it is not for us to see.
    #[error("{what}: not found")]
    NotFound {
        /// What was being done.
        what: String,
        /// Where to look instead.
        hint: String,
    },
    /// It is somewhere else now: transferred or renamed. Nothing is followed by itself, nothing was changed.
    #[error("{what}: moved to {to}")]
    Moved {
        /// What was being done.
        what: String,
        /// Where it is: `owner/name` or `owner/name#12`, or an address if that is all we know.
        to: String,
    },
    /// We may not.
    #[error("{what}: not allowed: {why}")]
    Forbidden {
        /// What was being done.
        what: String,
        /// The tracker's words.
        why: String,
    },
    /// The budget of requests is used up.
    #[error("{what}: no requests left for now")]
    RateLimited {
        /// What was being done.
        what: String,
        /// When there are some again.
        until: Timestamp,
    },
    /// Too much in a short time, by a rule the tracker does not publish.
    #[error("{what}: asked to slow down")]
    SecondaryLimit {
        /// What was being done.
        what: String,
        /// When to go on.
        until: Timestamp,
    },
    /// What is there is not what we went by.
    #[error("{what}: {why}")]
    Conflict {
        /// What was being done.
        what: String,
        /// What is there instead.
        why: String,
    },
    /// It was understood and will never be done this way.
    #[error("{what}: refused: {why}")]
    Refused {
        /// What was being done.
        what: String,
        /// The tracker's words.
        why: String,
    },
    /// It cannot be reached, or broke over it.
    #[error("{what}: {why}{}", if *unsure { ", and it may have happened" } else { "" })]
    Unavailable {
        /// What was being done.
        what: String,
        /// What was seen.
        why: String,
        /// Whether it may have happened in spite of that.
        unsure: bool,
    },
    /// Landfall stops, and did not wait for it. The same may be asked again: what was made meanwhile is found.
    #[error("{what}: not waited for, because Landfall stops")]
    Stopped {
        /// What was being done.
        what: String,
    },
    /// It does not know us.
    #[error("{what}: the tracker does not know us")]
    Unauthorized {
        /// What was being done.
        what: String,
        /// What a person can do about it.
        hint: String,
    },
    /// It said something we cannot read.
    #[error("{what}: cannot be read: {why}")]
    Malformed {
        /// What was being done, or the file.
        what: String,
        /// Where it stops making sense.
        why: String,
    },
}

impl TrackerError {
    /// Whether the same may go well later without anyone doing anything, and when at the earliest.
    #[must_use]
    pub fn retry_time(&self) -> Option<Option<Timestamp>> {
        match self {
            Self::RateLimited { until, .. } | Self::SecondaryLimit { until, .. } => Some(Some(*until)),
            Self::Unavailable { .. } | Self::Stopped { .. } => Some(None),
            Self::NotFound { .. }
            | Self::Moved { .. }
            | Self::Forbidden { .. }
            | Self::Conflict { .. }
            | Self::Refused { .. }
            | Self::Unauthorized { .. }
            | Self::Malformed { .. } => None,
        }
    }

    /// What a person could do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NotFound { hint, .. } | Self::Unauthorized { hint, .. } => hint.clone(),
            Self::Moved { to, .. } => format!("name {to} instead"),
            Self::Forbidden { .. } => {
                "give the token leave for issues, pull requests and contents of this repository".to_owned()
            }
            Self::RateLimited { .. } | Self::SecondaryLimit { .. } => {
                "nothing; it goes on by itself".to_owned()
            }
            Self::Conflict { .. } => "look at what changed, then try again".to_owned(),
            Self::Refused { .. } => "see what the tracker says and change what it names".to_owned(),
            Self::Unavailable { .. } => "see that the tracker can be reached from here".to_owned(),
            Self::Stopped { .. } => "run the command again".to_owned(),
            Self::Malformed { .. } => "if a person changed the file, put it right; else report it".to_owned(),
        }
    }
}

impl From<NameError> for TrackerError {
    fn from(error: NameError) -> Self {
        Self::Malformed { what: "a name from the tracker".to_owned(), why: error.to_string() }
    }
}

//! Why a request was not carried out: a code for programs, a sentence and a hint for people.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What kind of problem it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemCode {
    /// The folder is in no git repository.
    NotARepository,
    /// The repository has no working tree.
    BareRepository,
    /// The repository has no commit yet.
    NoCommits,
    /// HEAD is on no branch, so there is no base to land on.
    DetachedHead,
    /// `landfall.toml` cannot be used.
    SettingsBroken,
    /// No flow has this name.
    UnknownFlow,
    /// A flow file cannot be used.
    FlowBroken,
    /// The needs would close a circle.
    Cycle,
    /// No task has this id.
    UnknownTask,
    /// No run has this id.
    UnknownRun,
    /// No sprint has this id.
    UnknownSprint,
    /// No checkpoint has this name.
    UnknownCheckpoint,
    /// No task fits what was chosen.
    NothingMatches,
    /// The words of the request cannot be used.
    BadInput,
    /// It is not possible in the status the task is in.
    NotNow,
    /// Another engine holds the project.
    EngineBusy,
    /// No room on the disk.
    DiskFull,
    /// The state folder cannot be written.
    ReadOnly,
    /// The state folder holds something that cannot be right.
    Corrupt,
    /// git said no.
    GitFailed,
    /// The agent's program is not there.
    AgentMissing,
    /// The agent was asked, and no answer that can be used came of it.
    AgentFailed,
    /// A fault of ours, or of the way between client and engine.
    Internal,
}

impl ProblemCode {
    /// Every code there is.
    pub const ALL: [Self; 23] = [
        Self::NotARepository,
        Self::BareRepository,
        Self::NoCommits,
        Self::DetachedHead,
        Self::SettingsBroken,
        Self::UnknownFlow,
        Self::FlowBroken,
        Self::Cycle,
        Self::UnknownTask,
        Self::UnknownRun,
        Self::UnknownSprint,
        Self::UnknownCheckpoint,
        Self::NothingMatches,
        Self::BadInput,
        Self::NotNow,
        Self::EngineBusy,
        Self::DiskFull,
        Self::ReadOnly,
        Self::Corrupt,
        Self::GitFailed,
        Self::AgentMissing,
        Self::AgentFailed,
        Self::Internal,
    ];
}

/// Why a request was not carried out. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct Problem {
    /// For programs.
    pub code: ProblemCode,
    /// What was wrong, as a lowercase fragment.
    pub message: String,
    /// What to do about it. Agents read this too: it never names a command that destroys anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The facts behind the message, for programs. Boxed: problems are returned everywhere, facts are rare.
    #[serde(default, skip_serializing_if = "is_null")]
    pub context: Box<serde_json::Value>,
}

impl Problem {
    /// A problem with nothing but its message.
    #[must_use]
    pub fn new(code: ProblemCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, context: Box::default() }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with the facts behind it.
    #[must_use]
    pub fn context(mut self, context: serde_json::Value) -> Self {
        *self.context = context;
        self
    }
}

fn is_null(value: &serde_json::Value) -> bool {
    value.is_null()
}

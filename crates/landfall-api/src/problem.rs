//! Why a request was not carried out: a code for programs, a sentence and a hint for people.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What kind of problem it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// `landfall.toml` has settings that nobody has trusted.
    NotTrusted,
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
    /// Nobody has said who they are, or they said it wrongly.
    Unauthorized,
    /// Whoever asks may not.
    Forbidden,
    /// Nothing is at this address.
    NotFound,
    /// What is at this address cannot be asked for like that.
    MethodNotAllowed,
    /// The request is longer than is taken.
    TooLarge,
    /// The request is of a kind that is not taken.
    UnsupportedMediaType,
    /// The request names a host that this is not.
    Misdirected,
    /// Too many ask at once, or one asks too often.
    TooMany,
    /// The same idempotency key came with another request.
    KeyReused,
}

impl ProblemCode {
    /// Every code there is.
    pub const ALL: [Self; 33] = [
        Self::NotARepository,
        Self::BareRepository,
        Self::NoCommits,
        Self::DetachedHead,
        Self::SettingsBroken,
        Self::NotTrusted,
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
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::TooLarge,
        Self::UnsupportedMediaType,
        Self::Misdirected,
        Self::TooMany,
        Self::KeyReused,
    ];

    /// The status of an HTTP answer with this code.
    #[must_use]
    pub const fn http_status(self) -> u16 {
        match self {
            Self::UnknownTask
            | Self::UnknownRun
            | Self::UnknownSprint
            | Self::UnknownCheckpoint
            | Self::UnknownFlow
            | Self::NothingMatches
            | Self::NotFound => 404,
            Self::BadInput | Self::Cycle | Self::FlowBroken => 422,
            Self::NotNow | Self::KeyReused => 409,
            Self::EngineBusy => 503,
            Self::DiskFull => 507,
            Self::NotARepository
            | Self::BareRepository
            | Self::NoCommits
            | Self::DetachedHead
            | Self::SettingsBroken
            | Self::NotTrusted
            | Self::AgentMissing
            | Self::AgentFailed => 424,
            Self::ReadOnly | Self::Corrupt | Self::GitFailed | Self::Internal => 500,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::MethodNotAllowed => 405,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Misdirected => 421,
            Self::TooMany => 429,
        }
    }

    /// As it is written.
    #[must_use]
    pub fn word(self) -> String {
        serde_json::to_value(self).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// Why a request was not carried out. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Error, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with the facts behind it.
    #[must_use]
    pub fn with_context(mut self, context: serde_json::Value) -> Self {
        *self.context = context;
        self
    }
}

fn is_null(value: &serde_json::Value) -> bool {
    value.is_null()
}

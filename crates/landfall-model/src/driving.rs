//! How a task is driven: who works on it, in which style, and what of an agent's session is kept.

use crate::Digest;
use crate::signal::Usage;

/// Who works on a task, and how. Settled when it is granted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Driving {
    /// The profile.
    pub profile: String,
    /// The account it works on: what is used up or logged out together.
    pub account: String,
    /// The style.
    pub style: Style,
}

/// How an agent is driven from one run to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Style {
    /// Every run is a new process without a memory of its own.
    #[default]
    Fresh,
    /// The same session of the agent is resumed, run after run.
    Session,
    /// The agent runs a loop of its own, which is watched by the files it writes: one run is the whole loop.
    Own,
    /// The engine types each next step of such a loop into one terminal.
    Dispatch,
}

impl Style {
    /// Every style there is.
    pub const ALL: [Self; 4] = [Self::Fresh, Self::Session, Self::Own, Self::Dispatch];

    /// The word in settings, flows and journals.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Session => "session",
            Self::Own => "self",
            Self::Dispatch => "dispatch",
        }
    }

    /// Whether one run is a whole loop of steps, told by files.
    #[must_use]
    pub fn strides(self) -> bool {
        match self {
            Self::Own | Self::Dispatch => true,
            Self::Fresh | Self::Session => false,
        }
    }
}

/// A session of an agent that can be gone on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The profile it belongs to.
    pub profile: String,
    /// The agent's own name for it.
    pub id: String,
    /// What it has used so far.
    pub usage: Usage,
    /// How full its context was at last.
    pub context: Option<Context>,
    /// Whether it was asked to sum itself up: once is enough.
    pub compacted: bool,
}

/// How full a context window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// Tokens in it.
    pub used: u64,
    /// Tokens it can hold.
    pub size: u64,
}

impl Context {
    /// In per cent; more than full is full.
    #[must_use]
    pub fn percent(self) -> u32 {
        let size = u128::from(self.size.max(1));
        u32::try_from(u128::from(self.used).min(size) * 100 / size).expect("at most a hundred")
    }
}

/// What a run of the agent begins with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Talk {
    /// With nothing but its prompt.
    #[default]
    New,
    /// With what an earlier session knows.
    Resumed {
        /// The agent's own name for it.
        session: String,
        /// Whether it is asked to sum itself up first, because its context is nearly full.
        compact: bool,
    },
}

/// What a run left behind besides its work.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Traces {
    /// The session that can be gone on with.
    pub session: Option<String>,
    /// The model it used.
    pub model: Option<String>,
    /// How full its context was.
    pub context: Option<Context>,
    /// What its last words come to: three times the same is a loop.
    pub words: Option<Digest>,
    /// How it was confined.
    pub sandbox: Option<String>,
    /// How often it was refused leave for something.
    pub denials: u32,
    /// The state of its module as it was left: whoever changes it meanwhile is not overruled.
    pub revision: Option<Digest>,
    /// The longest it was silent, if that was long enough to be worth knowing; otherwise 0.
    pub quiet_ms: u64,
}

/// One run of the agent in a few words, for whoever goes on without its memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    /// Which run.
    pub iteration: u32,
    /// What we made of it.
    pub verdict: crate::Verdict,
    /// Whether it left a commit.
    pub committed: bool,
}

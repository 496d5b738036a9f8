//! Who works on a task, in which style, and what one run of an agent left.

use crate::defaults::is_zero;
use serde::{Deserialize, Serialize};

use crate::Digest;

/// Who works on a task, and how. Settled when it is granted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AgentAssignment {
    /// The profile.
    pub profile: String,
    /// The account it works on: what is used up or logged out together.
    pub account: String,
    /// The style.
    pub style: AgentDriveStyle,
}

words! {
    /// What is being done about a task that is being worked on.
    pub enum TaskActivity {
        /// Its folder is made.
        Preparing = "preparing",
        /// Its agent works.
        Working = "working",
        /// Its agent is being ended.
        Stopping = "stopping",
        /// Its work is verified.
        Verifying = "verifying",
        /// It waits in the landing queue.
        InLine = "in line",
        /// It lands.
        Landing = "landing",
        /// It tells others how it ended.
        Reporting = "reporting",
        /// It exchanges something with the tracker.
        WithTracker = "with the tracker",
        /// A failure of it is being mended.
        Recovering = "recovering",
        /// No engine drives it.
        Stopped = "stopped",
    }
}

words! {
    /// How an agent is driven from one run to the next.
    #[derive(Default)]
    pub enum AgentDriveStyle {
        /// Every run is a new process without a memory of its own.
        #[default]
        Fresh = "fresh",
        /// The same session of the agent is resumed, run after run.
        Session = "session",
        /// The agent runs a loop of its own, which is watched by the files it writes: one run is the whole loop.
        Own = "self",
        /// The engine types each next step of such a loop into one terminal.
        Dispatch = "dispatch",
    }
}

impl AgentDriveStyle {
    /// Whether one run is a whole loop of steps, told by files.
    #[must_use]
    pub fn runs_own_loop(self) -> bool {
        match self {
            Self::Own | Self::Dispatch => true,
            Self::Fresh | Self::Session => false,
        }
    }
}

/// How full a context window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextUsage {
    /// Tokens in it.
    pub used: u64,
    /// Tokens it can hold.
    pub size: u64,
}

impl ContextUsage {
    /// In per cent; more than full is full.
    #[must_use]
    pub fn used_percent(self) -> u32 {
        let size = u128::from(self.size.max(1));
        u32::try_from(u128::from(self.used).min(size) * 100 / size).expect("at most a hundred")
    }
}

/// What a run of the agent begins with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum SessionStart {
    /// With nothing but its prompt.
    #[default]
    #[serde(rename = "new")]
    New,
    /// With what an earlier session knows.
    #[serde(rename = "resumed")]
    Resumed {
        /// The agent's own name for it.
        session: String,
        /// Whether it is asked to sum itself up first, because its context is nearly full.
        compact: bool,
    },
}

/// What a run left behind besides its work.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentRunTraces {
    /// The session that can be gone on with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The model it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How full its context was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextUsage>,
    /// What its last words come to: three times the same is a loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<Digest>,
    /// How it was confined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// How often it was refused leave for something.
    #[serde(skip_serializing_if = "is_zero")]
    pub denials: u32,
    /// The state of its module as it was left: whoever changes it meanwhile is not overruled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<Digest>,
    /// The longest it was silent, if that was long enough to be worth knowing; otherwise 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub quiet_ms: u64,
}

impl SessionStart {
    /// Whether it begins a new session.
    #[must_use]
    pub fn is_new(&self) -> bool {
        *self == Self::New
    }
}

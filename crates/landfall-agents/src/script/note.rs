//! The lines in which the scripted agent reports facts: one JSON object each, so that figures and dates are fields
//! and never prose.

use landfall_model::{AgentUsage, Signal, Timestamp};
use serde::{Deserialize, Serialize};

/// One such line: `{"landfall":"usage","tokens_in":12,"tokens_out":7,"micro_usd":300}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "landfall", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ScriptNote {
    /// It is up.
    Session {
        /// The name of its session.
        id: String,
    },
    /// What it has used since the last such line.
    Usage {
        /// Tokens read.
        #[serde(default)]
        tokens_in: u64,
        /// Tokens written.
        #[serde(default)]
        tokens_out: u64,
        /// Millionths of a dollar.
        #[serde(default)]
        micro_usd: u64,
    },
    /// The account is used up.
    Quota {
        /// When it resets, in milliseconds since 1970.
        #[serde(default)]
        until_ms: Option<i64>,
    },
    /// The provider had a passing trouble.
    Transient {
        /// In its words.
        detail: String,
    },
}

impl ScriptNote {
    /// Whether a line is meant as a note; [`ScriptNote::read`] says whether it is one.
    pub(super) fn is_note(line: &str) -> bool {
        line.starts_with("{\"landfall\":")
    }

    /// The note in a line.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }

    /// The line of a note, without its end.
    #[must_use]
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers always have a JSON form")
    }

    pub(super) fn into_signal(self) -> Signal {
        match self {
            Self::Session { id } => Signal::Started { session: Some(id), model: None },
            Self::Usage { tokens_in, tokens_out, micro_usd } => {
                Signal::Usage(AgentUsage { tokens_in, tokens_out, micro_usd, ..AgentUsage::default() })
            }
            Self::Quota { until_ms } => Signal::Quota { until: until_ms.map(Timestamp) },
            Self::Transient { detail } => Signal::Transient { detail },
        }
    }
}

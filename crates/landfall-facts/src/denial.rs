//! What the sandbox denied to a check, and the setting that allows it.

use serde::{Deserialize, Serialize};

words! {
    /// What the sandbox keeps a run from doing at a path.
    pub enum DeniedAccess {
        /// To read it.
        Read = "read",
        /// To change it, or to make it.
        Write = "write",
    }
}

impl DeniedAccess {
    /// The setting that allows it.
    #[must_use]
    pub fn setting_name(self) -> &'static str {
        match self {
            Self::Read => "sandbox_read",
            Self::Write => "sandbox_write",
        }
    }
}

/// A path that the sandbox denied to a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxDenial {
    /// What the check tried.
    pub access: DeniedAccess,
    /// At this path, with `~` for the home folder.
    pub path: String,
    /// The path or pattern that allows it, to be added to a setting.
    pub allow: String,
}

impl SandboxDenial {
    /// What was denied to which check, in a clause.
    #[must_use]
    pub fn to_sentence(&self, check: &str) -> String {
        format!(
            "the check `{check}` tried to {} `{}`, which the sandbox denies",
            self.access.word(),
            self.path
        )
    }
}

/// What to add to the settings so that these are allowed: `sandbox_write = ["~/.x"]`, a line for each setting.
#[must_use]
pub fn settings_that_allow(denials: &[SandboxDenial]) -> Vec<String> {
    let line = |access: DeniedAccess| {
        let mut paths: Vec<String> = denials
            .iter()
            .filter(|denial| denial.access == access)
            .map(|denial| format!("{:?}", denial.allow))
            .collect();
        paths.sort();
        paths.dedup();
        (!paths.is_empty()).then(|| format!("{} = [{}]", access.setting_name(), paths.join(", ")))
    };
    [DeniedAccess::Write, DeniedAccess::Read].into_iter().filter_map(line).collect()
}

//! What the metadata of a module says, whichever file says it.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

/// Where a module is. Eight words of the older folders, and two of notebooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModuleStatus {
    /// Nothing but an objective, or not even that.
    Draft,
    /// A plan is being made.
    Planning,
    /// The plan was accepted; work may begin.
    Review,
    /// Work is under way.
    Executing,
    /// The plan is being made anew.
    RePlanning,
    /// Done and merged.
    Complete,
    /// It cannot go on without help.
    Blocked,
    /// Given up.
    Cancelled,
    /// A stage is done, more may follow.
    Evolving,
    /// Every stage that was needed is done.
    Satisfied,
}

impl ModuleStatus {
    /// Every one there is.
    pub const ALL: [Self; 10] = [
        Self::Draft,
        Self::Planning,
        Self::Review,
        Self::Executing,
        Self::RePlanning,
        Self::Complete,
        Self::Blocked,
        Self::Cancelled,
        Self::Evolving,
        Self::Satisfied,
    ];

    /// The word in files.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Planning => "planning",
            Self::Review => "review",
            Self::Executing => "executing",
            Self::RePlanning => "re-planning",
            Self::Complete => "complete",
            Self::Blocked => "blocked",
            Self::Cancelled => "cancelled",
            Self::Evolving => "evolving",
            Self::Satisfied => "satisfied",
        }
    }

    /// All words, for messages.
    #[must_use]
    pub fn list_known() -> String {
        Self::ALL.map(Self::wire_name).join(", ")
    }

    /// Whether somebody who needs a module in `least` may start when it is in this status. Blocked, re-planning and
    /// cancelled satisfy nothing.
    #[must_use]
    pub fn satisfies(self, least: Self) -> bool {
        match (self.rank(), least.rank()) {
            (Some(rank), Some(least)) => rank >= least,
            (None, _) | (_, None) => false,
        }
    }

    fn rank(self) -> Option<u8> {
        match self {
            Self::Draft => Some(0),
            Self::Planning => Some(1),
            Self::Review => Some(2),
            Self::Executing => Some(3),
            Self::Evolving => Some(4),
            Self::Complete | Self::Satisfied => Some(5),
            Self::RePlanning | Self::Blocked | Self::Cancelled => None,
        }
    }

    /// Whether nothing more happens by itself.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Complete | Self::Satisfied | Self::Cancelled)
    }
}

impl fmt::Display for ModuleStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.wire_name())
    }
}

/// Not a status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a status; known: {known}", known = ModuleStatus::list_known())]
pub struct UnknownStatus(pub String);

impl FromStr for ModuleStatus {
    type Err = UnknownStatus;

    /// Reads the word, and what people and other tools write instead of it.
    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        let word = text.trim().to_ascii_lowercase().replace(['_', ' '], "-");
        match word.as_str() {
            "replanning" | "replan" => return Ok(Self::RePlanning),
            "completed" | "done" => return Ok(Self::Complete),
            "canceled" => return Ok(Self::Cancelled),
            "execution" | "in-progress" => return Ok(Self::Executing),
            _ => {}
        }
        let found = Self::ALL.into_iter().find(|status| status.wire_name() == word);
        found.ok_or_else(|| UnknownStatus(super::problem::shorten_text(text)))
    }
}

/// What a module in `re-planning` needs next; notebooks use the field for words of their own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ModulePhase {
    /// Nothing said.
    #[default]
    None,
    /// A plan must be made.
    NeedsPlan,
    /// A plan was made and must be checked.
    NeedsCheck,
    /// Another word: `target`, `planning`, `execution`, `finalization`, or a person's.
    Other(String),
}

impl ModulePhase {
    /// The words that mean something here.
    pub const KNOWN: [&'static str; 6] =
        ["needs-plan", "needs-check", "target", "planning", "execution", "finalization"];

    /// Reads the word.
    #[must_use]
    pub fn read(text: &str) -> Self {
        match text.trim().to_ascii_lowercase().replace('_', "-").as_str() {
            "" => Self::None,
            "needs-plan" => Self::NeedsPlan,
            "needs-check" => Self::NeedsCheck,
            _ => Self::Other(text.to_owned()),
        }
    }

    /// The word in files.
    #[must_use]
    pub fn wire_name(&self) -> &str {
        match self {
            Self::None => "",
            Self::NeedsPlan => "needs-plan",
            Self::NeedsCheck => "needs-check",
            Self::Other(word) => word,
        }
    }
}

/// A module that must have come some way before this one goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleDependency {
    /// Its name.
    pub module: String,
    /// How far; all the way, when nothing is said.
    pub least: Option<ModuleStatus>,
}

impl ModuleDependency {
    /// Whether a module in `status` is far enough.
    #[must_use]
    pub fn is_met_by(&self, status: ModuleStatus) -> bool {
        status.satisfies(self.least.unwrap_or(ModuleStatus::Complete))
    }
}

/// A stage that is done.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletedStage {
    /// Its number, from 1.
    pub stage: u32,
    /// What it was about.
    pub name: String,
    /// When it was done.
    pub completed_at: String,
    /// The commit it ended with.
    pub commit: String,
    /// How far the objective was reached, from 0 to 1.
    pub convergence: Option<f64>,
}

/// The stages of a notebook.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NotebookStages {
    /// The one under way.
    pub current: u32,
    /// How many there will be; only some old files say so.
    pub total: Option<u32>,
    /// Those that are done, oldest first.
    pub history: Vec<CompletedStage>,
}

/// Fields that only some versions wrote.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VersionSpecificFields {
    /// How often the agent's context was compacted in this iteration.
    pub compaction_count: Option<u64>,
    /// Verification cycles that are done.
    pub vfp_cycles_completed: Option<u64>,
    /// How far the phase is, from 0 to 1.
    pub phase_progress: Option<f64>,
    /// Scores of the last check, as they were written.
    pub check_score: Option<Value>,
    /// Retries of the step under way.
    pub retry_count: Option<u64>,
    /// Delegations that failed: `verify@iter3`.
    pub delegation_failures: Vec<String>,
}

/// What the metadata of a module says.
#[derive(Debug, Clone, PartialEq)]
pub struct ModuleRecord {
    /// What people call it.
    pub title: String,
    /// The kind of work; `a|b` is both.
    pub kind: String,
    /// Where it is.
    pub status: ModuleStatus,
    /// What it needs next.
    pub phase: ModulePhase,
    /// Steps of the plan that are done.
    pub completed_steps: u32,
    /// When it was made, as it was written.
    pub created: String,
    /// When it last came forward, as it was written.
    pub updated: String,
    /// What must come before.
    pub depends_on: Vec<ModuleDependency>,
    /// Words on it.
    pub tags: Vec<String>,
    /// The branch of its work.
    pub branch: String,
    /// The worktree of its work; empty when there is none.
    pub worktree: String,
    /// Its stages, if it has any.
    pub stage: Option<NotebookStages>,
    /// Counts every real change. Two changes in one second have different revisions.
    pub revision: u64,
    /// What only some versions wrote.
    pub extra: VersionSpecificFields,
}

impl ModuleRecord {
    /// A new module.
    #[must_use]
    pub fn new(title: &str, created: &str) -> Self {
        Self {
            title: title.to_owned(),
            kind: String::new(),
            status: ModuleStatus::Draft,
            phase: ModulePhase::None,
            completed_steps: 0,
            created: created.to_owned(),
            updated: created.to_owned(),
            depends_on: Vec::new(),
            tags: Vec::new(),
            branch: String::new(),
            worktree: String::new(),
            stage: None,
            revision: 0,
            extra: VersionSpecificFields::default(),
        }
    }

    /// The segments of its kind that can be used: `a|b` is two. Unusable or none: `software`.
    #[must_use]
    pub fn kinds(&self) -> Vec<&str> {
        let legal = |word: &&str| {
            !word.is_empty()
                && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-'))
        };
        let words: Vec<&str> = self.kind.split('|').map(str::trim).filter(legal).collect();
        if words.is_empty() { vec!["software"] } else { words }
    }

    /// Whether anything but the stamps differs: what counts as coming forward.
    #[must_use]
    pub fn differs_from(&self, other: &Self) -> bool {
        let stamped = Self { updated: other.updated.clone(), revision: other.revision, ..self.clone() };
        stamped != *other
    }
}

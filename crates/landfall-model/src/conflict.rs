//! Conflicts with the base: how hard they are, and who resolves them.
//!
//! What git can resolve alone never gets here. What is left goes to an agent, unless it is of a kind that agents get wrong
//! in ways no test notices: then a person looks, within a time, after which settings say what happens.

pub use landfall_facts::conflict::ConflictTimeoutAction;
use std::fmt;

/// A file in which the work and the base do not fit together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictingFile {
    /// The file.
    pub path: String,
    /// In what.
    pub kind: FileConflictKind,
    /// How many lines are in conflict, of the longer side.
    pub lines: u32,
}

/// In what two changes of a file do not fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileConflictKind {
    /// Lines.
    Content,
    /// Both added it.
    BothAdded,
    /// One changed it, the other deleted it.
    Deleted,
    /// One of them moved it.
    Renamed,
    /// It is not text.
    Binary,
    /// What it is: a link, a submodule, its mode.
    Kind,
}

impl FileConflictKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Content, Self::BothAdded, Self::Deleted, Self::Renamed, Self::Binary, Self::Kind];

    /// The word people read.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::BothAdded => "both added",
            Self::Deleted => "changed and deleted",
            Self::Renamed => "renamed",
            Self::Binary => "binary",
            Self::Kind => "kind of file",
        }
    }
}

impl fmt::Display for ConflictingFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, self.lines) {
            (FileConflictKind::Content, 0) => write!(f, "{}", self.path),
            (FileConflictKind::Content, 1) => write!(f, "{} (1 line)", self.path),
            (FileConflictKind::Content, lines) => write!(f, "{} ({lines} lines)", self.path),
            (kind, _) => write!(f, "{} ({})", self.path, kind.label()),
        }
    }
}

/// Who resolves a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConflictClass {
    /// An agent.
    Medium,
    /// A person.
    Complex,
}

const COMPLEX_LINES: u32 = 20; // more than a screenful of both sides is a design question

/// Who resolves these.
#[must_use]
pub fn classify_conflict(clashes: &[ConflictingFile]) -> ConflictClass {
    let lines: u32 = clashes.iter().map(|clash| clash.lines).fold(0, u32::saturating_add);
    let of_lines = |clash: &ConflictingFile| {
        matches!(clash.kind, FileConflictKind::Content | FileConflictKind::BothAdded)
    };
    match clashes.iter().all(of_lines) && lines < COMPLEX_LINES {
        true => ConflictClass::Medium,
        false => ConflictClass::Complex,
    }
}

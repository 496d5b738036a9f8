//! What is wrong with a script, and where.

use thiserror::Error;

/// A script that cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct ScriptError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub problem: ScriptProblem,
}

/// What can be wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScriptProblem {
    /// It is not TOML.
    #[error("not TOML: {0}")]
    Toml(String),
    /// A key that means nothing here.
    #[error("unknown key `{key}` in {place}")]
    UnknownKey {
        /// The key.
        key: String,
        /// Which table.
        place: &'static str,
        /// What may have been meant.
        nearest: Option<&'static str>,
        /// What is known there.
        known: Vec<&'static str>,
    },
    /// A word out of a closed list, and not in it.
    #[error("unknown {what} `{given}`")]
    UnknownWord {
        /// A word for what: a mode, an attack.
        what: &'static str,
        /// What was given.
        given: String,
        /// What may have been meant.
        nearest: Option<&'static str>,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// A value that cannot be meant.
    #[error("`{key}` is {given}, and should be {wanted}")]
    Value {
        /// The key.
        key: &'static str,
        /// What was given.
        given: String,
        /// What would be understood.
        wanted: &'static str,
    },
    /// A path that leads out of the workspace.
    #[error("`{key}` is `{given}`, which is not a path inside the workspace")]
    Outside {
        /// The key.
        key: &'static str,
        /// The path.
        given: String,
    },
    /// Something that must be said is not.
    #[error("{place} lacks {wanted}")]
    Missing {
        /// Which table.
        place: &'static str,
        /// What is missing.
        wanted: &'static str,
    },
    /// Two things that exclude each other.
    #[error("{place} has more than one of {of}")]
    TooMany {
        /// Which table.
        place: &'static str,
        /// Of what.
        of: &'static str,
    },
    /// A key that belongs to another mode.
    #[error("`{key}` does not go with the mode `{mode}`")]
    Misplaced {
        /// The key.
        key: &'static str,
        /// The mode it was given with.
        mode: &'static str,
        /// The modes it goes with.
        modes: Vec<&'static str>,
    },
    /// A control word that nobody would understand.
    #[error("`signal` is `{given}`, which would be {code}")]
    Signal {
        /// What was given.
        given: String,
        /// What the parser of signals would call it.
        code: &'static str,
    },
}

impl ScriptError {
    /// What a person could do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match &self.problem {
            ScriptProblem::UnknownKey { nearest: Some(word), .. } | ScriptProblem::UnknownWord { nearest: Some(word), .. } => {
                Some(format!("did you mean `{word}`?"))
            }
            ScriptProblem::UnknownKey { nearest: None, known, .. } | ScriptProblem::UnknownWord { nearest: None, known, .. } => {
                Some(format!("known are {}", known.join(", ")))
            }
            ScriptProblem::Misplaced { modes, .. } => Some(format!("it goes with {}", modes.join(", "))),
            ScriptProblem::Outside { .. } => Some("paths are relative and have no `..`".to_owned()),
            ScriptProblem::Signal { .. } => Some(
                "signals are complete, resolved, blocked:why, pending:what, progress:40, discovery-local:text, \
                 discovery-global:text, none"
                    .to_owned(),
            ),
            ScriptProblem::Toml(_) | ScriptProblem::Value { .. } | ScriptProblem::Missing { .. } | ScriptProblem::TooMany { .. } => None,
        }
    }
}

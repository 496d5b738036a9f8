//! The operations of a recovery. There is one list: what a plan may name is what the engine can do, and there are no words
//! for the rest. Nothing here takes a command line, a branch, a remote, a commit or a path. Journals hold these words: one
//! that is there stays readable.

use std::collections::BTreeMap;

use thiserror::Error;

use super::place::is_restorable;
use crate::issue::Phase;

/// One operation. Each is about the branch, the pull request and the issue of the task it is done for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Commits what the agent left uncommitted.
    CommitLeftovers,
    /// Adds a sign-off to the last commit.
    AmendSignOff,
    /// Puts the work on the base as it is now.
    RebaseOntoBase,
    /// Merges the base into the work.
    MergeBase,
    /// Pushes the branch of the task, if it is where we believe it is.
    PushBranch,
    /// Offers the branch as a pull request.
    OpenPr,
    /// Says something under the issue.
    Comment {
        /// This.
        text: String,
    },
    /// Sets the phase to where the work is.
    SetPhaseLabel {
        /// This one.
        phase: Phase,
    },
    /// Runs the checks of the pull request again.
    RerunChecks,
    /// Marks the review that is there as one.
    MarkReview,
    /// Runs a check of the project.
    RunCheck {
        /// By its name in the settings.
        name: String,
    },
}

/// How an operation is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpShape {
    /// Its name.
    pub word: &'static str,
    /// What has to be said with it.
    pub takes: Option<&'static str>,
    /// What it does, for whoever writes a plan.
    pub about: &'static str,
}

const fn shape(word: &'static str, takes: Option<&'static str>, about: &'static str) -> OpShape {
    OpShape { word, takes, about }
}

/// Every operation there is.
pub const OPS: [OpShape; 11] = [
    shape("commit-leftovers", None, "commits what is changed in the workspace and not committed"),
    shape("amend-signoff", None, "adds a sign-off line to the last commit of the branch"),
    shape(
        "rebase-onto-base",
        None,
        "puts the commits of the branch on the base as it is now, if nothing is in dispute",
    ),
    shape("merge-base", None, "merges the base into the branch, if nothing is in dispute"),
    shape("push-branch", None, "pushes the branch of the task, only if nobody else has moved it"),
    shape("open-pr", None, "offers the branch as a pull request, or finds the one that is open"),
    shape("comment", Some("text"), "says `text` under the issue"),
    shape("set-phase-label", Some("phase"), "sets the phase of the issue to where its work is"),
    shape("rerun-checks", None, "runs the failed checks of the pull request again"),
    shape("mark-review", None, "marks a review that is there but is not recognised as one"),
    shape("run-check", Some("name"), "runs the check `name` of the project's settings"),
];

/// The longest comment.
pub const COMMENT_CHARS_MAX: usize = 2_000; // a page; more than anyone reads under an issue

/// Why something is no operation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OpProblem {
    /// Nobody can do that.
    #[error("`{word}` is no operation of a recovery; allowed are {}", words())]
    Unknown {
        /// What was asked for.
        word: String,
    },
    /// It does not take that.
    #[error("`{word}` takes {}, not `{key}`", takes(.word))]
    Stray {
        /// The operation.
        word: String,
        /// What was said with it.
        key: String,
    },
    /// It takes something.
    #[error("`{word}` needs `{key}`")]
    Missing {
        /// The operation.
        word: String,
        /// What is missing.
        key: &'static str,
    },
    /// What was said with it cannot be.
    #[error("`{key}` of `{word}`: {why}")]
    Bad {
        /// The operation.
        word: String,
        /// What was said with it.
        key: &'static str,
        /// What is wrong.
        why: String,
    },
}

fn words() -> String {
    OPS.map(|shape| shape.word).join(", ")
}

fn takes(word: &str) -> String {
    match OPS.iter().find(|shape| shape.word == word).and_then(|shape| shape.takes) {
        Some(key) => format!("`{key}`"),
        None => "nothing".to_owned(),
    }
}

impl Op {
    /// The operation that is written like this.
    ///
    /// # Errors
    /// Why it is none, with what is allowed.
    pub fn read(word: &str, said: &BTreeMap<String, String>) -> Result<Self, OpProblem> {
        let Some(shape) = OPS.iter().find(|shape| shape.word == word) else {
            return Err(OpProblem::Unknown { word: short(word) });
        };
        let word = || shape.word.to_owned();
        if let Some(key) = said.keys().find(|key| Some(key.as_str()) != shape.takes) {
            return Err(OpProblem::Stray { word: word(), key: short(key) });
        }
        let value = match shape.takes {
            None => "",
            Some(key) => match said.get(key).map(|value| value.trim()) {
                Some(value) if !value.is_empty() => value,
                Some(_) | None => return Err(OpProblem::Missing { word: word(), key }),
            },
        };
        let bad = |key, why: String| OpProblem::Bad { word: word(), key, why };
        Ok(match shape.word {
            "commit-leftovers" => Self::CommitLeftovers,
            "amend-signoff" => Self::AmendSignOff,
            "rebase-onto-base" => Self::RebaseOntoBase,
            "merge-base" => Self::MergeBase,
            "push-branch" => Self::PushBranch,
            "open-pr" => Self::OpenPr,
            "comment" => {
                let chars = value.chars().count();
                if chars > COMMENT_CHARS_MAX {
                    let why = format!("it has {chars} characters; at most {COMMENT_CHARS_MAX} are said");
                    return Err(bad("text", why));
                }
                Self::Comment { text: value.to_owned() }
            }
            "set-phase-label" => match Phase::from_word(value.strip_prefix("phase/").unwrap_or(value)) {
                Some(phase) if is_restorable(phase) => Self::SetPhaseLabel { phase },
                Some(_) | None => {
                    let may = Phase::ALL.into_iter().filter(|phase| is_restorable(*phase));
                    let may: Vec<&str> = may.map(Phase::word).collect();
                    return Err(bad("phase", format!("`{}`; allowed are {}", short(value), may.join(", "))));
                }
            },
            "rerun-checks" => Self::RerunChecks,
            "mark-review" => Self::MarkReview,
            "run-check" => Self::RunCheck { name: value.to_owned() },
            other => unreachable!("`{other}` is in the list of operations and is not read"),
        })
    }

    /// The word for it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::CommitLeftovers => "commit-leftovers",
            Self::AmendSignOff => "amend-signoff",
            Self::RebaseOntoBase => "rebase-onto-base",
            Self::MergeBase => "merge-base",
            Self::PushBranch => "push-branch",
            Self::OpenPr => "open-pr",
            Self::Comment { .. } => "comment",
            Self::SetPhaseLabel { .. } => "set-phase-label",
            Self::RerunChecks => "rerun-checks",
            Self::MarkReview => "mark-review",
            Self::RunCheck { .. } => "run-check",
        }
    }

    /// What is said with it, if anything. [`Op::read`] makes the operation of it again.
    #[must_use]
    pub fn said(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Comment { text } => Some(("text", text)),
            Self::SetPhaseLabel { phase } => Some(("phase", phase.word())),
            Self::RunCheck { name } => Some(("name", name)),
            Self::CommitLeftovers
            | Self::AmendSignOff
            | Self::RebaseOntoBase
            | Self::MergeBase
            | Self::PushBranch
            | Self::OpenPr
            | Self::RerunChecks
            | Self::MarkReview => None,
        }
    }
}

/// A word of others, cut to what a message can show.
pub(super) fn short(text: &str) -> String {
    const CHARS_MAX: usize = 80;
    let line: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(CHARS_MAX + 1).collect();
    match line.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

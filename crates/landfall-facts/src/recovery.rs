//! Events of what was done about a failed step, and the operations that may be done.
//!
//! There is one list of operations: what a plan may name is what the engine can do, and there are no words for the rest.
//! None takes a command line, a branch, a remote, a commit or a path. Journals contain these words: each stays readable.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use std::collections::BTreeMap;

use thiserror::Error;

use crate::StepName;
use crate::issue::IssuePhase;

words! {
    /// Who thought of a recovery.
    pub enum RecoveryTier {
        /// What was wanted was there in spite of all.
        Reconcile = "reconcile",
        /// The catalogue.
        Pattern = "pattern",
        /// An agent that read the evidence.
        Agent = "agent",
        /// A person.
        Person = "person",
    }
}

words! {
    /// What came of a recovery.
    pub enum RecoveryOutcome {
        /// The step is done.
        Success = "success",
        /// What was to be done is done; whether the step comes to a good end is to be seen.
        Partial = "partial",
        /// Nothing did.
        Failed = "failed",
    }
}

/// One fact about recoveries of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecoveryEvent {
    /// A step failed, and something is done about it.
    #[serde(rename = "recovery-tried")]
    Tried {
        /// This step.
        step: StepName,
        /// The name of the pattern, or what it is counted as.
        symptom: String,
        /// Who thought of it.
        tier: RecoveryTier,
        /// What is done, in a word.
        action: String,
        /// The exit code of the step, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<i32>,
        /// The last lines of its log.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        tail: String,
        /// How long the step took, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        took_ms: Option<u64>,
        /// What else was known of its end, in words of the catalogue.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        known: Vec<String>,
    },
    /// An agent looked, and this is what it says.
    #[serde(rename = "recovery-diagnosed")]
    Diagnosed {
        /// At this step.
        step: StepName,
        /// What it wants; none if its plan is refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action: Option<PlanAction>,
        /// Why, or why it is refused.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        rationale: String,
        /// The operations.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ops: Vec<RecoveryOp>,
    },
    /// It is known what came of it.
    #[serde(rename = "recovery-ended")]
    Ended {
        /// Of the last thing that was tried for this step.
        step: StepName,
        /// This.
        outcome: RecoveryOutcome,
        /// In words.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        detail: String,
    },
    /// A task was proposed, so that it does not happen again.
    #[serde(rename = "recovery-proposed")]
    Proposed {
        /// This.
        symptom: String,
    },
}

impl RecoveryEvent {
    /// The name of the fact.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Tried { .. } => "recovery-tried",
            Self::Diagnosed { .. } => "recovery-diagnosed",
            Self::Ended { .. } => "recovery-ended",
            Self::Proposed { .. } => "recovery-proposed",
        }
    }

    /// What happened, in one line.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Tried { step, symptom, tier: RecoveryTier::Reconcile, .. } => {
                format!("step `{step}` is done in spite of its end ({symptom})")
            }
            Self::Tried { step, symptom, action, tier, .. } => {
                let who = match tier {
                    RecoveryTier::Agent => "an agent looks: ",
                    RecoveryTier::Person => "you: ",
                    RecoveryTier::Reconcile | RecoveryTier::Pattern => "",
                };
                format!("step `{step}` failed ({symptom}); {who}{action}")
            }
            Self::Diagnosed { action: Some(action), rationale, ops, .. } => {
                let ops: Vec<&str> = ops.iter().map(RecoveryOp::word).collect();
                let ops = if ops.is_empty() { String::new() } else { format!(" ({})", ops.join(", ")) };
                format!("an agent's plan: {}{ops}: {}", action.word(), first_line(rationale))
            }
            Self::Diagnosed { action: None, rationale, .. } => {
                format!("an agent's plan was refused: {}", first_line(rationale))
            }
            Self::Ended { step, outcome, detail } => {
                let detail =
                    if detail.is_empty() { String::new() } else { format!(": {}", first_line(detail)) };
                format!("recovery of step `{step}`: {}{detail}", outcome.word())
            }
            Self::Proposed { symptom } => format!("`{symptom}` was seen often; a task is proposed about it"),
        }
    }
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}

/// One operation. Each is about the branch, the pull request and the issue of the task it is done for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryOp {
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
        phase: IssuePhase,
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

const fn op_shape(word: &'static str, takes: Option<&'static str>, about: &'static str) -> OpShape {
    OpShape { word, takes, about }
}

/// Every operation there is.
pub const OPS: [OpShape; 11] = [
    op_shape("commit-leftovers", None, "commits what is changed in the workspace and not committed"),
    op_shape("amend-signoff", None, "adds a sign-off line to the last commit of the branch"),
    op_shape(
        "rebase-onto-base",
        None,
        "puts the commits of the branch on the base as it is now, if nothing is in dispute",
    ),
    op_shape("merge-base", None, "merges the base into the branch, if nothing is in dispute"),
    op_shape("push-branch", None, "pushes the branch of the task, only if nobody else has moved it"),
    op_shape("open-pr", None, "offers the branch as a pull request, or finds the one that is open"),
    op_shape("comment", Some("text"), "says `text` under the issue"),
    op_shape("set-phase-label", Some("phase"), "sets the phase of the issue to where its work is"),
    op_shape("rerun-checks", None, "runs the failed checks of the pull request again"),
    op_shape("mark-review", None, "marks a review that is there but is not recognised as one"),
    op_shape("run-check", Some("name"), "runs the check `name` of the project's settings"),
];

/// The longest comment.
pub const COMMENT_CHARS_MAX: usize = 2_000; // a page; more than anyone reads under an issue

/// Why something is no operation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OpProblem {
    /// Nobody can do that.
    #[error("`{word}` is no operation of a recovery; allowed are {}", list_op_names())]
    Unknown {
        /// What was asked for.
        word: String,
    },
    /// It does not take that.
    #[error("`{word}` takes {}, not `{key}`", describe_parameter(.word))]
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

fn list_op_names() -> String {
    OPS.map(|shape| shape.word).join(", ")
}

fn describe_parameter(word: &str) -> String {
    match OPS.iter().find(|shape| shape.word == word).and_then(|shape| shape.takes) {
        Some(key) => format!("`{key}`"),
        None => "nothing".to_owned(),
    }
}

impl RecoveryOp {
    /// The operation that is written like this.
    ///
    /// # Errors
    /// Why it is none, with what is allowed.
    pub fn read(word: &str, said: &BTreeMap<String, String>) -> Result<Self, OpProblem> {
        let Some(shape) = OPS.iter().find(|shape| shape.word == word) else {
            return Err(OpProblem::Unknown { word: shorten_for_message(word) });
        };
        let word = || shape.word.to_owned();
        if let Some(key) = said.keys().find(|key| Some(key.as_str()) != shape.takes) {
            return Err(OpProblem::Stray { word: word(), key: shorten_for_message(key) });
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
            "set-phase-label" => match IssuePhase::from_word(value.strip_prefix("phase/").unwrap_or(value)) {
                Some(phase) if is_restorable(phase) => Self::SetPhaseLabel { phase },
                Some(_) | None => {
                    let may = IssuePhase::ALL.into_iter().filter(|phase| is_restorable(*phase));
                    let may: Vec<&str> = may.map(IssuePhase::word).collect();
                    return Err(bad(
                        "phase",
                        format!("`{}`; allowed are {}", shorten_for_message(value), may.join(", ")),
                    ));
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

    /// What is said with it, if anything. [`RecoveryOp::read`] makes the operation of it again.
    #[must_use]
    pub fn argument_pair(&self) -> Option<(&'static str, &str)> {
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
pub fn shorten_for_message(text: &str) -> String {
    const CHARS_MAX: usize = 80;
    let line: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(CHARS_MAX + 1).collect();
    match line.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

words! {
    /// What an agent wants done about a failure.
    pub enum PlanAction {
        /// The step is tried again.
        Retry = "retry",
        /// The step counts as done, because what it was to bring about is there.
        Skip = "skip",
        /// Some operations, and then the step is looked at again.
        Recover = "recover",
        /// It stops for a person.
        Abort = "abort",
    }
}

/// Whether a recovery may set this phase. What comes after a merge is proved, not restored.
#[must_use]
pub fn is_restorable(phase: IssuePhase) -> bool {
    match phase {
        IssuePhase::Spec | IssuePhase::Ready | IssuePhase::Code | IssuePhase::Review | IssuePhase::Merge => {
            true
        }
        IssuePhase::Issue | IssuePhase::Verify | IssuePhase::Done => false,
    }
}

/// An operation as files contain it: its word, and what it takes.
#[derive(Serialize, Deserialize)]
struct RecoveryOpRecord {
    op: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    said: BTreeMap<String, String>,
}

impl Serialize for RecoveryOp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let said = self.argument_pair().map(|(key, value)| (key.to_owned(), value.to_owned()));
        RecoveryOpRecord { op: self.word().to_owned(), said: said.into_iter().collect() }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RecoveryOp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RecoveryOpRecord { op, said } = RecoveryOpRecord::deserialize(deserializer)?;
        Self::read(&op, &said).map_err(serde::de::Error::custom)
    }
}

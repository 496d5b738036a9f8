//! Whether a phase can begin, and whether it is complete, by what was seen and by nothing else. What an agent says of its own
//! work and how its process ended are not asked.

use super::{IssuePhase, IssueSnapshot, PullRequestState, is_issue_done};

/// A point on the way at which is compared what should be with what is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReconcilePoint {
    /// Somebody looked at what it is.
    Issue,
    /// What is to be done is written down.
    Spec,
    /// The work is on the base, straight from its branch.
    CodePatch,
    /// The work is offered as a pull request.
    CodePr,
    /// The pull request was read.
    Review,
    /// It was merged.
    Merge,
    /// Its acceptance was looked at.
    Verify,
}

impl ReconcilePoint {
    /// All of them, in order.
    pub const ALL: [Self; 7] =
        [Self::Issue, Self::Spec, Self::CodePatch, Self::CodePr, Self::Review, Self::Merge, Self::Verify];

    /// The word people and files use.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Issue => "issue",
            Self::Spec => "spec",
            Self::CodePatch => "code-patch",
            Self::CodePr => "code-pr",
            Self::Review => "review",
            Self::Merge => "merge",
            Self::Verify => "verify",
        }
    }

    /// The point this word means.
    #[must_use]
    pub fn from_wire_name(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|point| point.wire_name() == word)
    }
}

/// What comparing came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconcileResult {
    /// Whether what is, is what should be.
    pub matches: bool,
    /// In words.
    pub diagnosis: String,
}

fn to_reconcile_result(matches: bool, yes: &str, no: impl Into<String>) -> ReconcileResult {
    ReconcileResult { matches, diagnosis: if matches { yes.to_owned() } else { no.into() } }
}

fn describe_phase_label(seen: &IssueSnapshot) -> String {
    seen.phase.map_or_else(|| "no phase label".to_owned(), |phase| format!("label phase/{}", phase.word()))
}

fn pr_words(seen: &IssueSnapshot) -> String {
    match &seen.pr {
        Some(pr) => format!("pull request #{} is {}", pr.number, pr.state.word()),
        None => "there is no pull request of its branch".to_owned(),
    }
}

/// Whether a phase can begin. It warns, and keeps nothing from beginning.
#[must_use]
pub fn check_precondition(point: ReconcilePoint, seen: &IssueSnapshot) -> ReconcileResult {
    let pr_open = seen.pr.as_ref().is_some_and(|pr| pr.state == PullRequestState::Open);
    match point {
        ReconcilePoint::Issue => to_reconcile_result(seen.open, "it is open", "it is closed"),
        ReconcilePoint::Spec => {
            let there = matches!(seen.phase, Some(IssuePhase::Issue | IssuePhase::Spec));
            to_reconcile_result(there, "it was looked at and not begun", describe_phase_label(seen))
        }
        ReconcilePoint::CodePatch | ReconcilePoint::CodePr => to_reconcile_result(
            seen.phase == Some(IssuePhase::Ready),
            "it is ready",
            describe_phase_label(seen),
        ),
        // Whether somebody approved says nothing where the author reads their own work; our own verdict is asked for.
        ReconcilePoint::Review | ReconcilePoint::Merge => {
            to_reconcile_result(pr_open, "its pull request is open", pr_words(seen))
        }
        ReconcilePoint::Verify => {
            let there = !seen.open || seen.phase == Some(IssuePhase::Verify);
            to_reconcile_result(
                there,
                "it is on the base",
                format!("it is open, {}", describe_phase_label(seen)),
            )
        }
    }
}

/// Whether a phase is complete.
#[must_use]
pub fn check_completion(point: ReconcilePoint, seen: &IssueSnapshot) -> ReconcileResult {
    match point {
        ReconcilePoint::Issue => {
            to_reconcile_result(seen.triaged, "it has the label triaged", "the label triaged is not there")
        }
        ReconcilePoint::Spec => match (&seen.spec_file, seen.phase >= Some(IssuePhase::Ready)) {
            (Some(file), true) => {
                to_reconcile_result(true, &format!("{file} is there, {}", describe_phase_label(seen)), "")
            }
            (Some(file), false) => {
                to_reconcile_result(false, "", format!("{file} is there, but {}", describe_phase_label(seen)))
            }
            (None, _) => to_reconcile_result(false, "", "no file says what is to be done"),
        },
        ReconcilePoint::CodePatch => {
            let closed = !seen.open;
            let later = seen.phase >= Some(IssuePhase::Verify);
            let why = match (&seen.commit, closed, later) {
                (Some(commit), _, _) => format!("commit {} closes it", commit.short_hash()),
                (None, true, _) => "it is closed".to_owned(),
                (None, false, true) => describe_phase_label(seen),
                (None, false, false) => String::new(),
            };
            let no = match seen.reopened {
                Some(_) => "no commit on the base closes it since it was opened again",
                None => "no commit on the base closes it",
            };
            to_reconcile_result(!why.is_empty(), &why, no)
        }
        // One that is merged was offered: it is complete, and so is what comes after.
        ReconcilePoint::CodePr => {
            let offered = seen.pr.as_ref().is_some_and(|pr| match pr.state {
                PullRequestState::Open | PullRequestState::Merged => true,
                PullRequestState::Closed => false,
            });
            to_reconcile_result(offered, &pr_words(seen), pr_words(seen))
        }
        ReconcilePoint::Review => {
            let read = seen.pr.as_ref().is_some_and(|pr| pr.reviewed);
            to_reconcile_result(
                read,
                "the review is summed up there",
                format!("no review is summed up: {}", pr_words(seen)),
            )
        }
        ReconcilePoint::Merge => {
            let merged = seen.pr.as_ref().is_some_and(|pr| pr.state == PullRequestState::Merged);
            to_reconcile_result(merged, &pr_words(seen), pr_words(seen))
        }
        ReconcilePoint::Verify => {
            let done = is_issue_done(seen.open, seen.phase, seen.reopened.is_some());
            to_reconcile_result(
                done,
                "it is closed or done",
                format!("it is open, {}", describe_phase_label(seen)),
            )
        }
    }
}

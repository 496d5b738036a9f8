//! What is said about a verification, and what it leads to: the same words wherever they are shown.

use super::outcome::{VerifyOutcome, VerifyResult};
use super::{Criteria, Criterion, ObservationKind, VerifyKind};
use crate::issue::IssuePhase;

/// What a program greps for when a person is needed.
pub const MAX_ITERATIONS_REACHED: &str = "MAX_ITERATIONS_REACHED";

/// A criterion that was looked at.
#[derive(Debug, Clone, Copy)]
pub struct CriterionFinding<'a> {
    /// The criterion.
    pub criterion: &'a Criterion,
    /// What came of it.
    pub result: VerifyResult,
    /// What was seen.
    pub evidence: &'a str,
}

/// What follows from an outcome, on the tracker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptanceActions {
    /// The phase the issue is in then; none takes every phase away.
    pub phase: Option<&'static str>,
    /// Whether it is closed.
    pub close: bool,
    /// Whether it is opened again.
    pub reopen: bool,
}

impl AcceptanceActions {
    /// What follows from an outcome.
    #[must_use]
    pub fn for_outcome(outcome: VerifyOutcome) -> Self {
        match outcome {
            VerifyOutcome::Done => Self { phase: Some("done"), close: true, reopen: false },
            VerifyOutcome::Reopen { .. } => Self { phase: None, close: false, reopen: true },
            VerifyOutcome::LeftOver(_)
            | VerifyOutcome::Exhausted { .. }
            | VerifyOutcome::Waiting
            | VerifyOutcome::Unsure => Self { phase: Some("verify"), close: false, reopen: false },
        }
    }

    /// What follows for one that was done before. At the limit an issue is left as it is; but one that was done must not look so.
    #[must_use]
    pub fn for_done_issue(outcome: VerifyOutcome) -> Self {
        let deeds = Self::for_outcome(outcome);
        Self { reopen: deeds.reopen || matches!(outcome, VerifyOutcome::Exhausted { .. }), ..deeds }
    }
}

/// An outcome in a sentence.
#[must_use]
pub fn outcome_headline(outcome: VerifyOutcome) -> String {
    match outcome {
        VerifyOutcome::Done => "everything holds".to_owned(),
        VerifyOutcome::LeftOver(1) => {
            "everything that was looked at holds; 1 box is left for someone else".to_owned()
        }
        VerifyOutcome::LeftOver(count) => {
            format!("everything that was looked at holds; {count} boxes are left for someone else")
        }
        VerifyOutcome::Reopen { iteration } => {
            format!("something does not hold (time {iteration}); back to work")
        }
        VerifyOutcome::Exhausted { iteration } => {
            format!(
                "needs a person: something does not hold for the {} time ({MAX_ITERATIONS_REACHED})",
                format_ordinal(iteration)
            )
        }
        VerifyOutcome::Waiting => "some checks are still running; look again when they are over".to_owned(),
        VerifyOutcome::Unsure => "some criteria could not be looked at; a person decides".to_owned(),
    }
}

fn format_ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (1, rest) if rest != 11 => "st",
        (2, rest) if rest != 12 => "nd",
        (3, rest) if rest != 13 => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

const EVIDENCE_CHARS_MAX: usize = 300; // a cell of a table; the rest is in the log
const TEXT_CHARS_MAX: usize = 200;

/// What was looked at, for whoever looks again: see [`count_failures`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptanceFingerprint<'a> {
    /// The commit.
    pub commit: &'a str,
    /// The commit and what came of each criterion, in a few letters.
    pub of: &'a str,
}

/// The comment under an issue or a pull request.
#[must_use]
pub fn render_acceptance_comment(
    findings: &[CriterionFinding<'_>],
    outcome: VerifyOutcome,
    sighting: AcceptanceFingerprint<'_>,
) -> String {
    let mut text = format!(
        "### Acceptance: {}\n\n| criterion | result | evidence |\n|---|---|---|\n",
        outcome_headline(outcome)
    );
    for finding in findings {
        let (what, seen) = (
            format_cell(&finding.criterion.text, TEXT_CHARS_MAX),
            format_cell(finding.evidence, EVIDENCE_CHARS_MAX),
        );
        text.push_str(&format!("| {what} | {} | {seen} |\n", finding.result.word()));
    }
    if let VerifyOutcome::Reopen { .. } = outcome {
        text.push_str("\nMend what failed and let it be verified again. Boxes that hold are ticked.\n");
    }
    if let Some(iteration) = outcome.iteration() {
        text.push_str(&format!("\n<!-- verify-iteration: {iteration} -->"));
    }
    let AcceptanceFingerprint { commit, of } = sighting;
    text.push_str(&format!("\n<!-- verify-commit: {commit} -->\n<!-- verify-of: {of} -->\n"));
    text
}

/// Text of others in a cell: on one line, and nothing in it is markup or a marker.
fn format_cell(text: &str, chars_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown = String::new();
    for c in line.chars().take(chars_max) {
        match c {
            '<' => shown.push_str("&lt;"),
            '|' => shown.push_str("&#124;"),
            '@' => shown.push_str("@\u{200b}"), // nobody is called
            '`' => shown.push('\''),
            c if c.is_control() => shown.push('\u{fffd}'),
            c => shown.push(c),
        }
    }
    if line.chars().nth(chars_max).is_some() {
        shown.push('…');
    }
    shown
}

/// Which failure this one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureCount {
    /// Its number, from 1.
    pub iteration: u32,
    /// Whether the same was found before and told: the same commit with the same results.
    pub told: bool,
}

/// Counts by the comments of ours, oldest first. What was found of the same commit before is no new failure, whatever else was found of
/// it: nobody has worked on it since.
#[must_use]
pub fn count_failures(comments: &[&str], now: AcceptanceFingerprint<'_>) -> FailureCount {
    let marked = |comment: &str, label: &str| {
        let marks = super::extract_comments(comment);
        marks.into_iter().find_map(|mark| Some(mark.strip_prefix(label)?.trim().to_owned()))
    };
    let number = |comment: &str| marked(comment, "verify-iteration:")?.parse::<u32>().ok();
    let is_of = |comment: &str| marked(comment, "verify-of:").is_some_and(|of| of == now.of);
    let of_commit =
        |comment: &str| marked(comment, "verify-commit:").is_some_and(|commit| commit == now.commit);
    let last = comments.iter().rev().find_map(|comment| Some((number(comment)?, *comment)));
    match last {
        Some((iteration, last)) if is_of(last) || of_commit(last) => {
            let told = comments.iter().any(|it| number(it) == Some(iteration) && is_of(it));
            FailureCount { iteration, told }
        }
        _ => {
            FailureCount { iteration: super::outcome::next_iteration(comments.iter().copied()), told: false }
        }
    }
}

/// The open boxes that wait for this to happen.
fn waiting_for(criteria: &Criteria, event: ObservationKind) -> Vec<&Criterion> {
    let waits = |it: &&Criterion| !it.ticked && it.kind == VerifyKind::Observation(event);
    criteria.items.iter().filter(waits).collect()
}

/// What is said when it has happened; none if nobody waits for it.
#[must_use]
pub fn render_observation(criteria: &Criteria, event: ObservationKind) -> Option<String> {
    let waiting = waiting_for(criteria, event);
    if waiting.is_empty() {
        return None;
    }
    let lines: String =
        waiting.iter().map(|it| format!("- {}\n", format_cell(&it.text, TEXT_CHARS_MAX))).collect();
    Some(format!(
        "`{}` has happened. These boxes waited for it; let them be looked at (`landfall issue verify`), or look whether they \
         hold and tick them:\n\n{lines}",
        event.wire_name()
    ))
}

/// The open boxes that are looked at by whoever comes to the end of this phase, and say how: `when /review runs`.
#[must_use]
pub fn criteria_checked_in_phase(criteria: &Criteria, phase: IssuePhase) -> Vec<&Criterion> {
    let waits = |it: &&Criterion| {
        !it.ticked
            && it.kind == VerifyKind::Opportunistic
            && matches!(it.verify, Some(Ok(_)))
            && names_phase(&it.text, phase)
    };
    criteria.items.iter().filter(waits).collect()
}

/// Whether a text names a phase as one would call it: `/review`.
fn names_phase(text: &str, phase: IssuePhase) -> bool {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '/' || c == '-'));
    words.filter_map(|word| word.strip_prefix('/')).any(|word| match word {
        "triage" => phase == IssuePhase::Issue,
        "auto" => phase == IssuePhase::Done,
        word => word == phase.word(),
    })
}

/// What is said when boxes were looked at in passing and hold.
#[must_use]
pub fn render_passing_checks(held: &[&Criterion], phase: IssuePhase) -> String {
    let lines: String =
        held.iter().map(|it| format!("- {}\n", format_cell(&it.text, TEXT_CHARS_MAX))).collect();
    format!("Looked at when `{}` ended, and ticked because they hold:\n\n{lines}", phase.word())
}

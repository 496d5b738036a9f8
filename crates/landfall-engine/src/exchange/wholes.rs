//! A whole and its parts, in the tracker: how far they have come, whether what is done still holds, and what became of each.

use std::sync::Arc;

use landfall_model::acceptance::{AcceptanceStage, Criterion, VerifyOutcome, VerifyResult};
use landfall_model::issue::{
    AcceptanceOutcome, IssuePhase, IssueRef, Pipeline, SubIssueEnd, SubIssueOutcome, aggregate_phase,
    stays_closed,
};
use landfall_model::{ExchangeResult, Task};
use landfall_trackers::tracker::{
    CloseReason, CommentThread, Issue, IssueNumber, Marker, TrackerIssueState, neutralize_markers,
};

use super::accepting::{self, AcceptanceFacts, VerifyRequest};
use super::telling::truncate_text;
use super::{ExchangeError, IssueHandle, seeing, set_phase_label};
use crate::digests::digest_text;
use crate::engine_context::EngineContext;

/// Writes down how far the parts of a whole have come; or, when none goes on, what became of each.
pub(super) fn gather_parts(
    site: &Arc<EngineContext>,
    task: &Task,
    at: &IssueHandle,
) -> Result<ExchangeResult, ExchangeError> {
    let Some(issue) = task.issue.as_deref() else {
        return Err(ExchangeError::Else(format!("{} follows no issue", task.id)));
    };
    match &issue.ends {
        None => check_level(site, issue, at),
        Some(ends) => conclude_parts(site, task, issue, ends, at),
    }
}

/// The phase of the whole follows those of its parts. When another level is over, what the whole promises is looked at, so that what
/// goes wrong between its parts is seen early. Nothing is ticked and nothing is said by that; and what keeps it from being looked at
/// keeps nobody from working.
fn check_level(
    site: &Arc<EngineContext>,
    issue: &Pipeline,
    at: &IssueHandle,
) -> Result<ExchangeResult, ExchangeError> {
    // Where it cannot be told, its phase follows when the next part is over.
    if let Err(ExchangeError::Interrupted) = sync_phase_with_parts(at) {
        return Err(ExchangeError::Interrupted);
    }
    if !issue.level.is_higher() || !issue.wishes.accept {
        return Ok(ExchangeResult::Levelled { failing: None });
    }
    let before = |it: &Criterion| it.section == AcceptanceStage::PreMerge;
    let hearing = VerifyRequest { only: &before, judges: false, ..VerifyRequest::of_base() };
    match accepting::verify_criteria(site, at, &hearing) {
        Ok(heard) => Ok(ExchangeResult::Levelled { failing: Some(heard.failing_criteria()) }),
        Err(ExchangeError::Interrupted) => Err(ExchangeError::Interrupted),
        Err(_) => Ok(ExchangeResult::Levelled { failing: None }),
    }
}

/// Lets the whole stand where its parts do.
fn sync_phase_with_parts(at: &IssueHandle) -> Result<(), ExchangeError> {
    let children = at.tracker.list_children(at.number)?;
    let phase = |issue: &Issue| match issue.state.is_open() {
        true => seeing::phase_of(issue),
        false => Some(IssuePhase::Done),
    };
    let phases: Vec<Option<IssuePhase>> = children.iter().map(|child| phase(&child.issue)).collect();
    let now = seeing::phase_of(&at.tracker.read_issue(at.number)?);
    match aggregate_phase(now, &phases, false) {
        Some(phase) if Some(phase) != now => Ok(set_phase_label(at, phase)?),
        Some(_) | None => Ok(()),
    }
}

/// Holds what is done against the base once more, one part after another, and writes down what became of each.
fn conclude_parts(
    site: &Arc<EngineContext>,
    task: &Task,
    issue: &Pipeline,
    ends: &[SubIssueEnd],
    at: &IssueHandle,
) -> Result<ExchangeResult, ExchangeError> {
    let (mut told, mut reopened): (Vec<SubIssueEnd>, Vec<u64>) = (Vec::new(), Vec::new());
    for end in ends {
        let mut end = end.clone();
        if end.end == SubIssueOutcome::Done && issue.wishes.accept {
            let part = part_of(at, end.number)?;
            if let Some(accepted) = recheck_done_part(site, &part)? {
                if let VerifyOutcome::Reopen { .. } = accepted.outcome {
                    reopened.push(end.number);
                }
                end.end = SubIssueOutcome::Failed(explain_failed_part(&accepted));
            }
        }
        told.push(end);
    }
    let done = told.iter().filter(|end| end.end == SubIssueOutcome::Done).count();
    let rows: String = told.iter().map(format_part_row).collect();
    let again = match reopened.is_empty() {
        true => String::new(),
        false => {
            let names: Vec<String> = reopened.iter().map(|number| format!("#{number}")).collect();
            format!(
                "\nWhat was done for {} does not hold on the base as it is now: opened again.\n",
                names.join(", ")
            )
        }
    };
    let text = format!(
        "{done} of {} sub-issues are done.\n\n| issue | result |\n|---|---|\n{rows}{again}",
        told.len()
    );
    let marker =
        Marker::new(&format!("parts/{}/{}", at.task_mark(task.id), &digest_text(&text).as_str()[..16]))?;
    at.tracker.add_comment(CommentThread::Issue(at.number), &marker, &text)?;
    sync_phase_with_parts(at)?;
    Ok(ExchangeResult::Gathered { ends: told, reopened })
}

fn part_of(at: &IssueHandle, number: u64) -> Result<IssueHandle, ExchangeError> {
    let none = || ExchangeError::Else("0 is not the number of an issue".to_owned());
    Ok(IssueHandle {
        tracker: at.tracker.clone(),
        source: IssueRef { tracker: at.source.tracker.clone(), number },
        number: IssueNumber::new(number).ok_or_else(none)?,
        side: at.side.clone(),
    })
}

/// What a part that is done promised, against the base as it is now: another part may have broken it since. None if nothing fails.
/// One that fails is opened again; where somebody closed it after exactly this was told, that is theirs to decide.
fn recheck_done_part(
    site: &Arc<EngineContext>,
    part: &IssueHandle,
) -> Result<Option<AcceptanceOutcome>, ExchangeError> {
    let issue = part.tracker.read_issue(part.number)?;
    if let TrackerIssueState::Closed { why: CloseReason::NotPlanned, .. } = issue.state {
        return Ok(None); // somebody decided that it promises nothing any more
    }
    let landed = accepting::landing_of(site, part, &issue)?;
    let hearing = VerifyRequest { landed, ..VerifyRequest::of_base() };
    let heard = accepting::verify_criteria(site, part, &hearing)?;
    if !heard.checked.iter().any(|it| it.result == VerifyResult::Fail) {
        return Ok(None);
    }
    let (accepted, known) =
        accepting::settle_issue(site, part, heard, AcceptanceFacts { left: 0, was_done: true })?;
    let open = part.tracker.read_issue(part.number)?.state.is_open();
    Ok(if stays_closed(known, open) { None } else { Some(accepted) })
}

/// Why a part that was done is not, in a line.
fn explain_failed_part(accepted: &AcceptanceOutcome) -> String {
    let failed = accepted.items.iter().filter(|(_, result, _)| *result == VerifyResult::Fail);
    let words: Vec<String> = failed.map(|(words, _, seen)| format!("{words} ({seen})")).collect();
    let person = match accepted.outcome {
        VerifyOutcome::Exhausted { .. } => ", and it needs a person",
        VerifyOutcome::Done
        | VerifyOutcome::LeftOver(_)
        | VerifyOutcome::Reopen { .. }
        | VerifyOutcome::Waiting
        | VerifyOutcome::Unsure => "",
    };
    format!("it was done, and does not hold any more{person}: {}", words.join("; "))
}

fn format_part_row(end: &SubIssueEnd) -> String {
    let word = match &end.end {
        SubIssueOutcome::Done => "SUCCESS".to_owned(),
        SubIssueOutcome::Left => "LANDED (something is left for a person)".to_owned(),
        SubIssueOutcome::Failed(why) => {
            format!("FAILED ({})", neutralize_markers(&truncate_text(why)).replace(['|', '\n'], " "))
        }
        SubIssueOutcome::Skipped(by) => format!("SKIPPED (blocked by #{by})"),
    };
    format!("| #{} | {word} |\n", end.number)
}

//! What happens in one run is what boxes of other issues wait for: they are told of it, and what can be looked at in passing is.
//!
//! It keeps nothing from going on: a tracker that is away is told by whoever needs it. Repeated, it says nothing twice.

use std::sync::Arc;

use landfall_model::acceptance::{
    AcceptanceReason, Criteria, Criterion, ObservationKind, VerifyResult, criteria_checked_in_phase,
    handler_names, render_observation, render_passing_checks,
};
use landfall_model::flow::TrackerOperation;
use landfall_model::issue::{IssuePhase, IssueRef};
use landfall_model::{ExchangeResult, Task};
use landfall_trackers::tracker::{CommentThread, Issue, IssueFilter, Label, Marker, PHASE_FAMILY};

use super::accepting::{self, VerifyRequest};
use super::{ExchangeError, ExchangeInterruption, IssueHandle, ignore_unless_interrupted};
use crate::accept::{self, OBSERVED_MARKER};
use crate::digests::digest_text;
use crate::engine_context::EngineContext;

/// Issues that are looked through for boxes that wait.
const WAITING_MAX: usize = 200;

/// What the end of an exchange is to others.
pub(super) struct ExchangeNotice {
    /// This phase is over.
    phase: IssuePhase,
    /// This has happened.
    event: Option<ObservationKind>,
}

/// What an exchange that is over is to others: nothing, mostly.
pub(super) fn find_notice(
    task: &Task,
    act: Option<TrackerOperation>,
    exchanged: &ExchangeResult,
) -> Option<ExchangeNotice> {
    let of = |phase, event| Some(ExchangeNotice { phase, event });
    match (act?, exchanged) {
        (TrackerOperation::Triaged, ExchangeResult::Seen { .. }) => of(IssuePhase::Issue, None),
        (TrackerOperation::Sized, ExchangeResult::Seen { .. }) => of(IssuePhase::Spec, None),
        (TrackerOperation::Offer, ExchangeResult::Offered(_)) => of(IssuePhase::Code, None),
        (TrackerOperation::Reviewed, ExchangeResult::Told) => {
            let depth = task.issue.as_ref().and_then(|issue| issue.routed).map(|routed| routed.depth);
            of(IssuePhase::Review, depth.and_then(ObservationKind::from_review_depth))
        }
        (TrackerOperation::Merged, ExchangeResult::Told) => of(IssuePhase::Merge, None),
        (TrackerOperation::Accept, ExchangeResult::Accepted { accepted, .. }) => {
            let event = ObservationKind::from_verify_outcome(accepted.outcome)?;
            of(IssuePhase::Verify, Some(event))
        }
        (TrackerOperation::Close, ExchangeResult::Told) => of(IssuePhase::Done, None),
        _ => None,
    }
}

/// Tells those that wait for it. Nobody's work depends on it; if the engine stops, the next run does the exchange again and tells them.
pub(super) fn send_notice(
    site: &Arc<EngineContext>,
    at: &IssueHandle,
    passing: &ExchangeNotice,
) -> Result<(), ExchangeError> {
    let told = try_send_notice(site, at, Some(passing.phase), passing.event);
    ignore_unless_interrupted(told).map_err(|ExchangeInterruption| ExchangeError::Interrupted)
}

/// Tells those that wait for something that happened to an agent of a task.
pub(crate) fn notify_observers(
    site: &Arc<EngineContext>,
    task: &Task,
    event: ObservationKind,
) -> Result<(), ExchangeInterruption> {
    ignore_unless_interrupted(
        super::open_issue(site, task).and_then(|at| try_send_notice(site, &at, None, Some(event))),
    )
}

fn try_send_notice(
    site: &Arc<EngineContext>,
    at: &IssueHandle,
    phase: Option<IssuePhase>,
    event: Option<ObservationKind>,
) -> Result<(), ExchangeError> {
    let verify = Label::new(&format!("{PHASE_FAMILY}{}", IssuePhase::Verify.word()))?;
    let filter = IssueFilter { only_open: true, labels: [verify].into(), most: WAITING_MAX };
    let others: Vec<Issue> =
        at.tracker.list_issues(&filter)?.into_iter().filter(|issue| issue.number != at.number).collect();
    if others.is_empty() {
        return Ok(());
    }
    let (handlers, _) = accepting::handlers_of_base(site)?;
    let customs = handler_names(&handlers);
    for issue in others {
        let source = IssueRef { number: issue.number.get(), ..at.source.clone() };
        let side = at.side.clone();
        let other = IssueHandle { tracker: at.tracker.clone(), source, number: issue.number, side };
        let criteria = Criteria::from_body(&issue.body, &customs);
        let told = event.map_or(Ok(()), |event| comment_on_observer(&other, &criteria, event));
        let looked = phase.map_or(Ok(()), |phase| check_phase_boxes(site, &other, &issue, &criteria, phase));
        // One that cannot be told or looked at hides none of the others.
        if let Err(ExchangeError::Interrupted) = told.and(looked) {
            return Err(ExchangeError::Interrupted);
        }
    }
    Ok(())
}

/// Tells an issue whose box waits for it.
fn comment_on_observer(
    at: &IssueHandle,
    criteria: &Criteria,
    event: ObservationKind,
) -> Result<(), ExchangeError> {
    let Some(text) = render_observation(criteria, event) else { return Ok(()) };
    let marker = Marker::new(&format!("{OBSERVED_MARKER}{}/{}", event.wire_name(), at.number.get()))?;
    at.tracker.add_comment(CommentThread::Issue(at.number), &marker, &text)?;
    Ok(())
}

/// Looks at the boxes that name this phase, and ticks those that hold. What does not hold waits for the next time.
fn check_phase_boxes(
    site: &Arc<EngineContext>,
    at: &IssueHandle,
    issue: &Issue,
    criteria: &Criteria,
    phase: IssuePhase,
) -> Result<(), ExchangeError> {
    let lines: Vec<usize> = criteria_checked_in_phase(criteria, phase).iter().map(|it| it.line).collect();
    if lines.is_empty() {
        return Ok(());
    }
    if accept::is_of_another_base(&*at.tracker, issue.number, at.side.as_deref())? {
        return Ok(());
    }
    let only = |it: &Criterion| lines.contains(&it.line);
    let hearing = VerifyRequest {
        only: &only,
        judges: false,
        occasion: AcceptanceReason::Passing,
        ..VerifyRequest::of_base()
    };
    let heard = accepting::verify_criteria(site, at, &hearing)?;
    let both = heard.criteria.items.iter().zip(&heard.checked);
    let held: Vec<&Criterion> =
        both.filter(|(_, it)| it.result == VerifyResult::Pass).map(|(criterion, _)| criterion).collect();
    if held.is_empty() {
        return Ok(());
    }
    // It is said first: a box that is ticked is not looked at again, and nobody would learn why it is.
    let text = render_passing_checks(&held, phase);
    let marker =
        Marker::new(&format!("passing/{}/{}", issue.number.get(), &digest_text(&text).as_str()[..16]))?;
    at.tracker.add_comment(CommentThread::Issue(issue.number), &marker, &text)?;
    accept::tick_boxes(&*at.tracker, issue.number, &held, &heard.customs)?;
    Ok(())
}

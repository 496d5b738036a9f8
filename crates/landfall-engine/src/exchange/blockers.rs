//! What an issue waits for: the relation of its tracker and the words of its text, and whether each of them still holds it up.

use landfall_model::haul::LiveIssue;
use landfall_model::issue::{IssuePhase, blockers_in};
use landfall_trackers::tracker::{
    Blocker, Issue, IssueLocation, IssueNumber, Tracker, TrackerError, TrackerResult,
};

use super::seeing::phase_of;

/// The issues that an issue waits for or waited for. One that bears the label of the phase `done` holds nobody up, unless a person
/// opened it again. One that is only named in a text and is not there holds nobody up either.
///
/// # Errors
/// When the tracker cannot be asked.
pub fn blockers_of(tracker: &dyn Tracker, issue: &Issue) -> TrackerResult<Vec<Blocker>> {
    let related = match issue.blockers {
        Some(0) => Vec::new(), // most have none, and the answer says so
        Some(_) | None => tracker.blocked_by(issue.number)?,
    };
    with_text(tracker, issue, related)
}

/// The same, where the relation is known already.
pub(super) fn with_text(
    tracker: &dyn Tracker,
    issue: &Issue,
    related: Vec<Blocker>,
) -> TrackerResult<Vec<Blocker>> {
    let mut all = Vec::new();
    for blocker in related {
        let open = match &blocker.place {
            IssueLocation::Here(number) if blocker.open => {
                !read_live_issue(tracker, &tracker.read_issue(*number)?)?.is_done()
            }
            IssueLocation::Here(_) | IssueLocation::Elsewhere(_) => blocker.open,
        };
        all.push(Blocker { open, ..blocker });
    }
    let own = issue.number.get();
    for number in
        blockers_in(&issue.body).into_iter().filter(|number| *number != own).filter_map(IssueNumber::new)
    {
        if all.iter().any(|it| it.place == IssueLocation::Here(number)) {
            continue;
        }
        match tracker.read_issue(number) {
            Ok(named) => {
                let open = !read_live_issue(tracker, &named)?.is_done();
                all.push(Blocker { place: IssueLocation::Here(number), open });
            }
            Err(TrackerError::NotFound { .. } | TrackerError::Moved { .. }) => {} // a slip of the pen holds nobody up
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// Whether an issue is open, its phase by its labels, and whether it was opened again. The tracker is asked for that only where
/// the issue is open and labelled as done: nowhere else does it matter.
///
/// # Errors
/// When the tracker cannot be asked.
pub fn read_live_issue(tracker: &dyn Tracker, issue: &Issue) -> TrackerResult<LiveIssue> {
    let (open, phase) = (issue.state.is_open(), phase_of(issue));
    let matters = open && phase == Some(IssuePhase::Done);
    let reopened = matters && tracker.last_reopened(issue.number)?.is_some();
    Ok(LiveIssue { open, phase, reopened })
}

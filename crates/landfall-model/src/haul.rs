//! Hauls: issues that were asked for together, and what became of each. A haul says only what was asked; what is done and
//! what is left follows from the tasks and from the tracker as they are now.

use std::collections::{BTreeMap, BTreeSet};

use crate::Timestamp;
use crate::issue::{IssuePhase, is_issue_done};
use crate::task::{EndKind, Ending, Task, TaskState};
pub use landfall_facts::haul::{IssueBatchEvent, IssueBatchId, IssueSelection};

/// Issues that were asked for together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueBatch {
    /// Its name.
    pub id: IssueBatchId,
    /// When it was asked for.
    pub begun: Timestamp,
    /// How its issues were chosen.
    pub chosen: IssueSelection,
    /// The tracker they are in.
    pub tracker: String,
    /// The issues, in the order in which they are begun.
    pub issues: Vec<u64>,
}

/// Every haul there was.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IssueBatchHistory {
    all: Vec<IssueBatch>,
}

impl IssueBatchHistory {
    /// Takes a fact in.
    pub fn apply(&mut self, at: Timestamp, event: &IssueBatchEvent) {
        let IssueBatchEvent::Begun { haul, chosen, tracker, issues } = event;
        self.all.push(IssueBatch {
            id: *haul,
            begun: at,
            chosen: *chosen,
            tracker: tracker.clone(),
            issues: issues.clone(),
        });
    }

    /// All of them, oldest first.
    #[must_use]
    pub fn all_batches(&self) -> &[IssueBatch] {
        &self.all
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, id: IssueBatchId) -> Option<&IssueBatch> {
        self.all.iter().find(|haul| haul.id == id)
    }

    /// The name of the next one.
    #[must_use]
    pub fn next_id(&self) -> IssueBatchId {
        IssueBatchId(1 + self.all.iter().map(|haul| haul.id.0).max().unwrap_or(0))
    }
}

/// What became of an issue of a haul.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchIssueOutcome {
    /// It is done, as far as anybody can see.
    Done,
    /// It is not, and nothing goes on by itself.
    Failed(String),
    /// It is still to be done.
    Left,
}

/// An issue as its tracker shows it now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveIssue {
    /// Whether it waits to be done.
    pub open: bool,
    /// The phase its label says.
    pub phase: Option<IssuePhase>,
    /// Whether it was opened again. This matters only for an open issue that is labelled as done.
    pub reopened: bool,
}

impl LiveIssue {
    /// Whether nothing is left to do for it, and nobody has to wait for it.
    #[must_use]
    pub fn is_done(&self) -> bool {
        is_issue_done(self.open, self.phase, self.reopened)
    }
}

/// What became of an issue. What the tracker shows wins over what is remembered of its task.
#[must_use]
pub fn batch_issue_outcome(live: LiveIssue, task: Option<&Task>) -> BatchIssueOutcome {
    if !live.open {
        return BatchIssueOutcome::Done;
    }
    match task.map(|task| &task.state) {
        // Nobody followed it, and its label says that it is done.
        None if live.is_done() => BatchIssueOutcome::Done,
        // It landed, and what is left of it is for a person. One that was opened again is to be done again.
        Some(TaskState::Ended(Ending { kind: EndKind::Done, .. })) => {
            if live.phase == Some(IssuePhase::Verify) {
                BatchIssueOutcome::Done
            } else {
                BatchIssueOutcome::Left
            }
        }
        Some(TaskState::Ended(ending)) => {
            let detail = ending.detail.lines().next().unwrap_or_default();
            BatchIssueOutcome::Failed(if detail.is_empty() {
                ending.code.word().to_owned()
            } else {
                detail.to_owned()
            })
        }
        Some(
            TaskState::Draft
            | TaskState::Ready { .. }
            | TaskState::Active { .. }
            | TaskState::Waiting { .. }
            | TaskState::Review { .. },
        )
        | None => BatchIssueOutcome::Left,
    }
}

/// The issues in an order in which none comes before one that blocks it; otherwise as they were given.
///
/// # Errors
/// The issues of a circle, each blocked by the next and the last by the first.
pub fn order(issues: &[u64], blocked_by: &BTreeMap<u64, BTreeSet<u64>>) -> Result<Vec<u64>, Vec<u64>> {
    let blockers = |issue: u64| {
        let all = blocked_by.get(&issue).into_iter().flatten().copied();
        all.filter(|blocker| issues.contains(blocker)).collect::<Vec<u64>>()
    };
    let mut ordered: Vec<u64> = Vec::with_capacity(issues.len());
    while ordered.len() < issues.len() {
        let is_free = |issue: &&u64| {
            !ordered.contains(issue) && blockers(**issue).iter().all(|blocker| ordered.contains(blocker))
        };
        let Some(next) = issues.iter().find(is_free).copied() else {
            let stuck = issues.iter().copied().find(|issue| !ordered.contains(issue)).expect("some are left");
            return Err(find_blocker_cycle(stuck, &|issue| {
                blockers(issue).into_iter().find(|blocker| !ordered.contains(blocker))
            }));
        };
        ordered.push(next);
    }
    Ok(ordered)
}

/// What to do next about the issues of a haul that are left; nothing if none is. `through` are done by now. Going on helps only
/// if one of them can: whoever waits for an issue that stopped, or that is not among them, waits for ever.
#[must_use]
pub fn suggest_next_step(
    haul: IssueBatchId,
    left: &[u64],
    through: &[u64],
    blocked_by: &BTreeMap<u64, BTreeSet<u64>>,
) -> Option<String> {
    let in_the_way = |issue: u64| {
        let all = blocked_by.get(&issue).into_iter().flatten().copied();
        all.filter(|blocker| !through.contains(blocker)).collect::<Vec<u64>>()
    };
    if left.is_empty() {
        return None;
    }
    if left.iter().any(|issue| in_the_way(*issue).is_empty()) {
        return Some(format!("`landfall auto --batch --resume {haul}` continues with what is left"));
    }
    let first = left.iter().flat_map(|issue| in_the_way(*issue));
    let mut seen = BTreeSet::new();
    let mut all: Vec<u64> = first.chain(left.iter().copied()).collect();
    all.retain(|issue| seen.insert(*issue));
    let numbers = all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    Some(format!(
        "`landfall auto --batch {numbers}` does what is in the way first; once that is done, \
         `landfall auto --batch --resume {haul}` continues, too"
    ))
}

/// Goes from blocker to blocker until one comes again: that is where the circle is.
fn find_blocker_cycle(start: u64, blocker: &dyn Fn(u64) -> Option<u64>) -> Vec<u64> {
    let mut path = vec![start];
    loop {
        let last = *path.last().expect("it begins with one");
        let next = blocker(last).expect("whoever is stuck has a blocker that is stuck");
        if let Some(place) = path.iter().position(|issue| *issue == next) {
            return path.split_off(place);
        }
        path.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(issues: &[u64], blocked_by: &[(u64, &[u64])]) -> Result<Vec<u64>, Vec<u64>> {
        let blocked_by =
            blocked_by.iter().map(|(issue, by)| (*issue, by.iter().copied().collect())).collect();
        order(issues, &blocked_by)
    }

    #[test]
    fn issues_come_as_given_unless_one_blocks_another() {
        assert_eq!(ordered(&[3, 1, 2], &[]), Ok(vec![3, 1, 2]));
        assert_eq!(ordered(&[3, 1, 2], &[(3, &[2])]), Ok(vec![1, 2, 3]));
        assert_eq!(
            ordered(&[3, 1, 2], &[(3, &[9])]),
            Ok(vec![3, 1, 2]),
            "one outside holds nobody back here"
        );
        assert_eq!(ordered(&[1, 2, 3], &[(1, &[2]), (2, &[3])]), Ok(vec![3, 2, 1]));
    }

    #[test]
    fn a_circle_is_shown_without_what_leads_to_it() {
        assert_eq!(ordered(&[1, 2, 3, 4], &[(1, &[2]), (2, &[3]), (3, &[2])]), Err(vec![2, 3]));
        assert_eq!(ordered(&[5], &[(5, &[5])]), Err(vec![5]));
    }

    #[test]
    fn a_haul_goes_on_only_if_one_of_its_issues_can() {
        let next = |left: &[u64], through: &[u64], blocked_by: &[(u64, &[u64])]| {
            let blocked_by = blocked_by.iter().map(|(issue, by)| (*issue, by.iter().copied().collect()));
            suggest_next_step(IssueBatchId(1), left, through, &blocked_by.collect()).unwrap_or_default()
        };
        let goes_on = "`landfall auto --batch --resume H1` continues with what is left";
        assert_eq!(next(&[], &[5], &[(6, &[5])]), "");
        assert_eq!(next(&[6], &[], &[]), goes_on);
        assert_eq!(next(&[6], &[5], &[(6, &[5])]), goes_on, "what was in the way is done");
        assert_eq!(next(&[6, 7], &[], &[(6, &[5])]), goes_on, "one of them can");
        let first = "`landfall auto --batch 5 6 7` does what is in the way first; once that is done, `landfall auto --batch \
                     --resume H1` continues, too";
        assert_eq!(next(&[6, 7], &[], &[(6, &[5]), (7, &[5, 6])]), first, "the fifth stopped");
    }

    #[test]
    fn what_the_tracker_shows_wins() {
        let live = |open, phase| LiveIssue { open, phase, reopened: false };
        assert_eq!(batch_issue_outcome(live(false, None), None), BatchIssueOutcome::Done);
        assert_eq!(
            batch_issue_outcome(live(true, Some(IssuePhase::Done)), None),
            BatchIssueOutcome::Done,
            "its label counts where nobody followed it"
        );
        let again = LiveIssue { reopened: true, ..live(true, Some(IssuePhase::Done)) };
        assert_eq!(batch_issue_outcome(again, None), BatchIssueOutcome::Left, "a person opened it again");
        assert_eq!(batch_issue_outcome(live(true, Some(IssuePhase::Code)), None), BatchIssueOutcome::Left);
    }

    #[test]
    fn a_name_is_read_as_it_is_written() {
        assert_eq!("H3".parse(), Ok(IssueBatchId(3)));
        assert_eq!(IssueBatchId(3).to_string(), "H3");
        for bad in ["", "H", "H0", "S3", "+3"] {
            assert!(bad.parse::<IssueBatchId>().is_err(), "{bad}");
        }
    }
}

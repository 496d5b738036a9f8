//! An issue that is made of others: which of them are over, how far they have come, and how many are worked on at once.

use std::collections::{BTreeMap, BTreeSet};

use super::summary::is_partial;
use super::{SubIssue, SubIssueEnd, SubIssueOutcome};
use crate::acceptance::VerifyOutcome;
use crate::task::{EndKind, Ending, Feedback, Task, TaskState};
use crate::{TaskId, WaitReason};

/// How far the parts of a whole have come, and what was looked at on the way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubIssueProgress {
    /// The parts that are over.
    pub over: Vec<u64>,
    /// How many levels are over as a whole, from the first.
    pub levels: u32,
    /// How many were when the whole was last looked at.
    pub held: u32,
    /// Whether this was told.
    pub told: bool,
    /// What the whole promises and does not hold so far: the criterion, and what was seen.
    pub failing: Vec<(String, String)>,
}

impl SubIssueProgress {
    /// Whether the tracker is to be told how far the parts have come.
    #[must_use]
    pub fn is_due(&self) -> bool {
        !self.told && !self.over.is_empty()
    }

    /// Whether the whole is to be looked at: another level is over.
    #[must_use]
    pub fn is_higher(&self) -> bool {
        self.levels > self.held
    }
}

/// How the parts of a whole stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubIssuesState {
    /// Some go on, or may.
    Going {
        /// These are over.
        over: Vec<u64>,
        /// So many levels of them are over as a whole.
        levels: u32,
    },
    /// None goes on.
    Over(Vec<SubIssueEnd>),
}

/// How the parts of a whole stand.
#[must_use]
pub fn sub_issues_state<'a>(parts: &[SubIssue], task_of: &dyn Fn(u64) -> Option<&'a Task>) -> SubIssuesState {
    let known = sub_issue_outcomes(parts, task_of);
    if let Some(ends) = collect_endings(parts, task_of, &known) {
        return SubIssuesState::Over(ends);
    }
    let is_over = |level: &Vec<u64>| level.iter().all(|number| known.contains_key(number));
    let levels = dependency_levels(parts).iter().take_while(|level| is_over(level)).count();
    SubIssuesState::Going {
        over: known.into_keys().collect(),
        levels: u32::try_from(levels).unwrap_or(u32::MAX),
    }
}

/// The parts by level: those that need no other of them, those that need only these, and so on. What needs itself in a circle
/// comes last, together.
#[must_use]
pub fn dependency_levels(parts: &[SubIssue]) -> Vec<Vec<u64>> {
    let mut levels: Vec<Vec<u64>> = Vec::new();
    let mut left: Vec<&SubIssue> = parts.iter().collect();
    while !left.is_empty() {
        let open: BTreeSet<u64> = left.iter().map(|part| part.number).collect();
        let (free, rest): (Vec<&SubIssue>, Vec<&SubIssue>) =
            left.iter().partition(|part| !part.needs.iter().any(|need| open.contains(need)));
        let (level, rest) = if free.is_empty() { (rest, free) } else { (free, rest) };
        levels.push(level.iter().map(|part| part.number).collect());
        left = rest;
    }
    levels
}

/// How the parts of a whole ended; none while one of them still goes on, or may. A part that waits for one that failed does
/// not go on: it is left out, and so is whatever waits for it.
fn collect_endings<'a>(
    parts: &[SubIssue],
    task_of: &dyn Fn(u64) -> Option<&'a Task>,
    known: &BTreeMap<u64, SubIssueOutcome>,
) -> Option<Vec<SubIssueEnd>> {
    let end = |part: &SubIssue| {
        let end = known.get(&part.number)?.clone();
        Some(SubIssueEnd { number: part.number, task: task_of(part.number).map(|task| task.id), end })
    };
    parts.iter().map(end).collect()
}

/// What became of those that are over.
fn sub_issue_outcomes<'a>(
    parts: &[SubIssue],
    task_of: &dyn Fn(u64) -> Option<&'a Task>,
) -> BTreeMap<u64, SubIssueOutcome> {
    let mut known: BTreeMap<u64, SubIssueOutcome> = BTreeMap::new();
    loop {
        let before = known.len();
        for part in parts {
            if !known.contains_key(&part.number)
                && let Some(fate) = sub_issue_outcome(part, task_of(part.number), &known)
            {
                known.insert(part.number, fate);
            }
        }
        if known.len() == before {
            return known;
        }
    }
}

fn sub_issue_outcome(
    part: &SubIssue,
    task: Option<&Task>,
    known: &BTreeMap<u64, SubIssueOutcome>,
) -> Option<SubIssueOutcome> {
    if part.done {
        return Some(SubIssueOutcome::Done);
    }
    let waits = |task: &Task| {
        matches!(
            task.state,
            TaskState::Ready { .. } | TaskState::Waiting { wait: WaitReason::Blockers { .. }, .. }
        )
    };
    let begun = task.is_some_and(|task| task.counters.runs > 0 || !waits(task));
    match task.map(|task| &task.state) {
        Some(TaskState::Ended(Ending { kind: EndKind::Done, .. })) => {
            return Some(match task.is_some_and(is_accepted) {
                true => SubIssueOutcome::Done,
                false => SubIssueOutcome::Left,
            });
        }
        Some(TaskState::Ended(ending)) => {
            let detail = match ending.detail.lines().next() {
                Some(line) if !line.is_empty() => line.to_owned(),
                _ => ending.code.word().to_owned(),
            };
            return Some(SubIssueOutcome::Failed(detail));
        }
        Some(_) | None => {}
    }
    let in_the_way = part.needs.iter().find(|need| {
        matches!(
            known.get(need),
            Some(SubIssueOutcome::Failed(_) | SubIssueOutcome::Left | SubIssueOutcome::Skipped(_))
        )
    });
    in_the_way.filter(|_| !begun).map(|need| SubIssueOutcome::Skipped(*need))
}

/// Whether what the issue of a task that is done promised was seen to hold, or was not ours to see.
pub(super) fn is_accepted(task: &Task) -> bool {
    let Some(issue) = &task.issue else { return task.landed.is_none() };
    match &issue.accepted {
        Some(accepted) => accepted.outcome == VerifyOutcome::Done,
        // Whoever was not to look saw nothing, unless there was nothing left to do for the issue.
        None => {
            let settled = issue.seen.as_ref().is_some_and(|seen| !seen.open);
            task.landed.is_none() && (issue.wishes.accept || settled)
        }
    }
}

/// Whether a part is still what this task follows, when its whole is found to be made of it. Otherwise another does it: what this
/// one has done holds no more, or the issue was opened again since. One that landed and is left for a person is not done anew.
#[must_use]
pub fn is_taken_on_by(part: &SubIssue, task: &Task) -> bool {
    let done = matches!(task.state, TaskState::Ended(Ending { kind: EndKind::Done, .. }));
    part.done || !done || part.at_verify && is_partial(task)
}

/// Whether the task of a part that is over goes on because the whole is wanted: it gave up, or what is left of it is to be looked at.
#[must_use]
pub fn goes_on_with_whole(part: &SubIssue, task: &Task, accept: bool) -> bool {
    match &task.state {
        TaskState::Ended(Ending { kind: EndKind::Failed | EndKind::Timeout | EndKind::Blocked, .. }) => true,
        TaskState::Ended(Ending { kind: EndKind::Done, .. }) => accept && !part.done && is_partial(task),
        TaskState::Ended(Ending { kind: EndKind::Cancelled, .. })
        | TaskState::Draft
        | TaskState::Ready { .. }
        | TaskState::Active { .. }
        | TaskState::Waiting { .. }
        | TaskState::Review { .. } => false,
    }
}

/// What the agent of a part is told that was done before, and failed or holds no more. It carries words of the issue and of what was
/// looked at, which anybody may have written: so it is handed over as what was seen, never as a person's word.
#[must_use]
pub fn earlier_outcome_feedback(fate: &SubIssueOutcome) -> Option<Feedback> {
    match fate {
        SubIssueOutcome::Failed(why) => Some(Feedback {
            about: "What was seen on the base".to_owned(),
            text: format!("This issue was worked on before. What came of it: {why}"),
        }),
        SubIssueOutcome::Done | SubIssueOutcome::Left | SubIssueOutcome::Skipped(_) => None,
    }
}

/// Whether a part that does not hold any more is left alone: exactly this was told before, and somebody closed it since.
#[must_use]
pub fn stays_closed(told_before: bool, open: bool) -> bool {
    told_before && !open
}

/// Which parts may not begin yet, so that no more than `most` of one whole are worked on at once. Those that wait for others take
/// nobody's place: they could not begin.
#[must_use]
pub fn resting_sub_issues<'a>(
    children: impl IntoIterator<Item = &'a Task>,
    most: u32,
    could_begin: &dyn Fn(&Task) -> bool,
) -> BTreeSet<TaskId> {
    let (mut busy, mut fresh) = (0_u32, Vec::new());
    for task in children {
        match &task.state {
            TaskState::Ready { next: None, .. } if could_begin(task) => fresh.push(task.id),
            TaskState::Active { .. } | TaskState::Ready { next: Some(_), .. } => busy += 1,
            TaskState::Ready { next: None, .. }
            | TaskState::Waiting { .. }
            | TaskState::Review { .. }
            | TaskState::Draft
            | TaskState::Ended(_) => {}
        }
    }
    let free = usize::try_from(most.max(1).saturating_sub(busy)).unwrap_or(usize::MAX);
    fresh.into_iter().skip(free).collect()
}

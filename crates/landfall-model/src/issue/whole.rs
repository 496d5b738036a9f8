//! An issue that is made of others: which of them are over, and how many are worked on at once.

use std::collections::{BTreeMap, BTreeSet};

use super::{Part, PartEnd, PartFate};
use crate::acceptance::VerifyOutcome;
use crate::task::{EndKind, Ending, State, Task};
use crate::{TaskId, Wait};

/// The parts of a whole that are still to be done, in levels: each waits only for such of an earlier level.
///
/// # Errors
/// The parts that wait for each other in a circle, and those that wait for them.
pub fn levels(parts: &[Part]) -> Result<Vec<Vec<&Part>>, Vec<u64>> {
    let mut left: Vec<&Part> = parts.iter().filter(|part| !part.done).collect();
    let mut levels = Vec::new();
    while !left.is_empty() {
        let waits = |part: &&Part| part.needs.iter().any(|need| left.iter().any(|it| it.number == *need));
        let (later, now): (Vec<&Part>, Vec<&Part>) = left.iter().copied().partition(waits);
        if now.is_empty() {
            return Err(later.iter().map(|part| part.number).collect());
        }
        levels.push(now);
        left = later;
    }
    Ok(levels)
}

/// How the parts of a whole ended; none while one of them still goes on, or may. A part that waits for one that failed does
/// not go on: it is left out, and so is whatever waits for it.
#[must_use]
pub fn ends<'a>(parts: &[Part], task_of: &dyn Fn(u64) -> Option<&'a Task>) -> Option<Vec<PartEnd>> {
    let mut known: BTreeMap<u64, PartFate> = BTreeMap::new();
    loop {
        let before = known.len();
        for part in parts {
            if !known.contains_key(&part.number)
                && let Some(fate) = fate(part, task_of(part.number), &known)
            {
                known.insert(part.number, fate);
            }
        }
        if known.len() == before {
            break;
        }
    }
    let end = |part: &Part| {
        let end = known.get(&part.number)?.clone();
        Some(PartEnd { number: part.number, task: task_of(part.number).map(|task| task.id), end })
    };
    parts.iter().map(end).collect()
}

fn fate(part: &Part, task: Option<&Task>, known: &BTreeMap<u64, PartFate>) -> Option<PartFate> {
    if part.done {
        return Some(PartFate::Done);
    }
    let waits = |task: &Task| {
        matches!(task.state, State::Ready { .. } | State::Waiting { wait: Wait::Blockers { .. }, .. })
    };
    let begun = task.is_some_and(|task| task.counters.runs > 0 || !waits(task));
    match task.map(|task| &task.state) {
        Some(State::Ended(Ending { kind: EndKind::Done, .. })) => {
            return Some(match task.is_some_and(is_accepted) {
                true => PartFate::Done,
                false => PartFate::Failed("it landed, and something is left for a person".to_owned()),
            });
        }
        Some(State::Ended(ending)) => {
            let detail = match ending.detail.lines().next() {
                Some(line) if !line.is_empty() => line.to_owned(),
                _ => ending.code.word().to_owned(),
            };
            return Some(PartFate::Failed(detail));
        }
        Some(_) | None => {}
    }
    let in_the_way = part
        .needs
        .iter()
        .find(|need| matches!(known.get(need), Some(PartFate::Failed(_) | PartFate::Skipped(_))));
    in_the_way.filter(|_| !begun).map(|need| PartFate::Skipped(*need))
}

/// Whether what the issue of a task that is done promised was seen to hold, or was not ours to see.
pub(super) fn is_accepted(task: &Task) -> bool {
    let accepted = task.issue.as_ref().and_then(|issue| issue.accepted.as_ref());
    accepted.map_or(task.landed.is_none(), |accepted| accepted.outcome == VerifyOutcome::Done)
}

/// Which parts may not begin yet, so that no more than `most` of one whole are worked on at once. Those that wait for others take
/// nobody's place: they could not begin.
#[must_use]
pub fn resting<'a>(
    children: impl IntoIterator<Item = &'a Task>,
    most: u32,
    could_begin: &dyn Fn(&Task) -> bool,
) -> BTreeSet<TaskId> {
    let (mut busy, mut fresh) = (0_u32, Vec::new());
    for task in children {
        match &task.state {
            State::Ready { next: None, .. } if could_begin(task) => fresh.push(task.id),
            State::Active { .. } | State::Ready { next: Some(_), .. } => busy += 1,
            State::Ready { next: None, .. }
            | State::Waiting { .. }
            | State::Review { .. }
            | State::Draft
            | State::Ended(_) => {}
        }
    }
    let free = usize::try_from(most.max(1).saturating_sub(busy)).unwrap_or(usize::MAX);
    fresh.into_iter().skip(free).collect()
}

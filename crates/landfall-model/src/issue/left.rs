//! What is left of an issue whose work landed: boxes that somebody is to tick, or criteria that are to be looked at again.

use std::collections::BTreeSet;

use super::{IssuePhase, IssueRef, IssueRoute};
use crate::acceptance::{Criteria, VerifyKind, VerifyResult};
use crate::task::Task;

/// An issue whose work landed, as its tracker shows it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandedIssue {
    /// Whether it is open.
    pub open: bool,
    /// Whether somebody decided that nobody does it.
    pub unplanned: bool,
    /// The phase its label says.
    pub phase: Option<IssuePhase>,
    /// Its text, with its boxes.
    pub body: String,
    /// Whether its tracker closes issues by itself when work lands. Where none does, it was a person.
    pub forge: bool,
}

/// A box that is not ticked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCheckbox {
    /// Its place among the boxes, from 1.
    pub place: usize,
    /// What it says.
    pub text: String,
    /// Whether a tick is what it waits for. Of the others a look says whether they hold.
    pub by_hand: bool,
}

/// Whether somebody is still to do something about it. Whoever closes an issue says by that what only a person can see; where a forge
/// closes it, ticks do.
#[must_use]
pub fn is_left(now: &LandedIssue) -> bool {
    let decided = !now.open && (!now.forge || open_boxes(&now.body).is_empty());
    now.phase == Some(IssuePhase::Verify) && !now.unplanned && !decided
}

/// The boxes that are not ticked, as their issue shows them. Where nobody can ask the tracker, as they were last seen.
#[must_use]
pub fn left_boxes(task: &Task, now: Option<&LandedIssue>) -> Vec<OpenCheckbox> {
    let mut boxes = now.map_or_else(|| boxes_seen_open(task), |now| open_boxes(&now.body));
    for it in &mut boxes {
        it.by_hand |=
            checked_items(task).any(|(words, result, _)| *words == it.text && is_for_others(*result));
    }
    boxes
}

/// What is left, in lines for a person, with what to do about each. Where nobody can ask the tracker, as it was last seen.
#[must_use]
pub fn describe_open_boxes(task: &Task, now: Option<&LandedIssue>) -> Option<String> {
    let number = IssueRef::from_source(&task.spec.source)?.number;
    let boxes = left_boxes(task, now);
    let mut lines = vec![match &task.landed {
        Some(landed) => {
            format!("it landed as {}, and its issue #{number} is not done", landed.commit.short_hash())
        }
        None => format!("its issue #{number} is not done"),
    }];
    let line = |it: &OpenCheckbox| {
        let OpenCheckbox { place, text, by_hand } = it;
        match by_hand {
            true => format!("{place}. {text}: `landfall issue tick {number} {place}`"),
            false => format!("{place}. {text}"),
        }
    };
    lines.extend(boxes.iter().map(line));
    let looks = format!("`landfall auto {number}` looks");
    let whole =
        task.issue.as_ref().and_then(|issue| issue.routed).is_some_and(|it| it.way == IssueRoute::Split);
    lines.push(match (boxes.is_empty(), boxes.iter().any(|it| it.by_hand)) {
        (true, _) if whole => format!(
            "what is left is left of its parts: `landfall issue show {number}` lists them; once they are closed, {looks} again"
        ),
        (true, _) if now.is_some_and(|now| !now.body.is_empty()) => {
            format!("every box is ticked: {looks} again, and closes it")
        }
        (true, _) => format!("{looks} at its acceptance"),
        (false, true) => format!("once they are ticked, {looks} again, and closes it"),
        (false, false) => format!("{looks} at them again, and closes it if they hold"),
    });
    Some(lines.join("\n"))
}

fn open_boxes(body: &str) -> Vec<OpenCheckbox> {
    // Which words are commands does not matter for who ticks a box.
    let criteria = Criteria::from_body(body, &BTreeSet::new());
    let open = (1..).zip(criteria.items).filter(|(_, it)| !it.ticked);
    open.map(|(place, it)| OpenCheckbox { place, text: it.text, by_hand: it.kind != VerifyKind::Auto })
        .collect()
}

/// What was seen of each box when somebody last looked.
fn checked_items(task: &Task) -> impl Iterator<Item = &(String, VerifyResult, String)> {
    task.issue.iter().filter_map(|issue| issue.accepted.as_ref()).flat_map(|accepted| &accepted.items)
}

/// Whether looking again says nothing new, so that a tick counts.
fn is_for_others(result: VerifyResult) -> bool {
    match result {
        VerifyResult::Skipped | VerifyResult::Uncertain => true,
        VerifyResult::Pass | VerifyResult::Fail | VerifyResult::Pending | VerifyResult::PostMerge => false,
    }
}

/// The boxes that did not hold when somebody last looked.
fn boxes_seen_open(task: &Task) -> Vec<OpenCheckbox> {
    let left = (1..).zip(checked_items(task)).filter(|(_, (_, result, _))| *result != VerifyResult::Pass);
    left.map(|(place, (text, ..))| OpenCheckbox { place, text: text.clone(), by_hand: false }).collect()
}

//! What is written down in the tracker: what an issue is, what readers think, that it is over.

use std::collections::BTreeSet;
use std::sync::Arc;

use landfall_model::issue::{IssuePhase, IssueRetrospective};
use landfall_model::{ExchangeResult, Task, TaskSize};
use landfall_trackers::tracker::{
    CloseReason, CommentThread, CommitSha, Label, LabelSpec, Marker, NewReview, PrNumber, ReviewAction,
    neutralize_markers,
};
use serde::Deserialize;

use super::seeing::{self, REVIEW_MARKER};
use super::{ExchangeError, IssueHandle, set_phase_label};
use crate::engine_context::EngineContext;
use crate::papers;

/// The paper an agent leaves that found out what an issue is.
const TRIAGE: &str = "triage.json";

/// What an agent says an issue is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TriageReport {
    size: String,
    #[serde(rename = "type")]
    kind: TriageKind,
    #[serde(default)]
    priority: Option<TriageLevel>,
    #[serde(default)]
    value: Option<TriageLevel>,
    #[serde(default)]
    why: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TriageKind {
    Bug,
    Feature,
    Task,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TriageLevel {
    Low,
    Medium,
    High,
}

impl TriageKind {
    fn wire_name(self) -> &'static str {
        match self {
            Self::Bug => "bug",
            Self::Feature => "feature",
            Self::Task => "task",
        }
    }
}

impl TriageLevel {
    fn wire_name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Writes down what an agent found out about an issue. A size that a person said is left as it is.
pub(super) fn record_triage(
    site: &Arc<EngineContext>,
    task: &Task,
    at: &IssueHandle,
) -> Result<ExchangeResult, ExchangeError> {
    let unread = |why: String| Ok(ExchangeResult::Unread { why });
    let Some(digest) = task.staged.papers.get(TRIAGE) else {
        return unread(format!("`{}/{TRIAGE}` is not there", papers::FOLDER));
    };
    let text = match papers::read_paper(&site.folder.papers_path(), digest) {
        Ok(text) => text,
        Err(error) => return Err(ExchangeError::Else(format!("read the paper `{TRIAGE}`: {error}"))),
    };
    let said: TriageReport = match serde_json::from_str(&text) {
        Ok(said) => said,
        Err(error) => return unread(format!("`{TRIAGE}` is not what was asked for: {error}")),
    };
    let Ok(size) = said.size.parse::<TaskSize>() else {
        return unread(format!(
            "`{TRIAGE}` says the size `{}`; known: XS, S, M, L, XL",
            truncate_text(&said.size)
        ));
    };
    let IssueHandle { tracker, number, .. } = at;
    if tracker.read_size(*number)?.is_none() {
        tracker.set_size(*number, size)?;
    }
    label_family(at, "type/", said.kind.wire_name())?;
    for (family, level) in [("priority/", said.priority), ("value/", said.value)] {
        if let Some(level) = level {
            label_family(at, family, level.wire_name())?;
        }
    }
    let label = Label::new("triaged")?;
    ensure_label(at, &label, "Somebody looked at what it is.")?;
    tracker.change_labels(*number, &BTreeSet::from([label]), &BTreeSet::new())?;
    set_phase_label(at, IssuePhase::Issue)?;
    let marker = Marker::new(&format!("triage/{}", at.task_mark(task.id)))?;
    let why = neutralize_markers(&truncate_text(&said.why));
    let text = format!("Triage: size {size}, {}.{}", said.kind.wire_name(), prefix_space(&why));
    tracker.add_comment(CommentThread::Issue(*number), &marker, &text)?;
    Ok(ExchangeResult::Seen { seen: Box::new(seeing::read_issue_state(site, task, at)?), head: None })
}

pub(super) fn truncate_text(text: &str) -> String {
    landfall_trackers::tracker::escape_beginning(text, 1_000)
}

fn prefix_space(text: &str) -> String {
    if text.trim().is_empty() { String::new() } else { format!(" {}", text.trim()) }
}

fn ensure_label(at: &IssueHandle, label: &Label, about: &str) -> Result<(), ExchangeError> {
    let spec = LabelSpec { label: label.clone(), colour: [0xbf, 0xd4, 0xf2], about: about.to_owned() };
    Ok(at.tracker.ensure_labels(&[spec])?)
}

/// Says one word of a family, unless a person has said one already.
fn label_family(at: &IssueHandle, family: &str, word: &str) -> Result<(), ExchangeError> {
    let issue = at.tracker.read_issue(at.number)?;
    if issue.labels.iter().any(|label| label.name_within(family).is_some()) {
        return Ok(());
    }
    let label = Label::new(&format!("{family}{word}"))?;
    ensure_label(at, &label, "")?;
    at.tracker.change_labels(at.number, &BTreeSet::from([label]), &BTreeSet::new())?;
    Ok(())
}

/// Writes down what readers think of the work.
pub(super) fn record_review(task: &Task, at: &IssueHandle) -> Result<ExchangeResult, ExchangeError> {
    let issue = task.issue.as_ref();
    if let Some(pr) = issue.and_then(|issue| issue.pr.as_ref()) {
        let number = PrNumber::new(pr.number)
            .ok_or_else(|| ExchangeError::Else("a pull request has no number 0".to_owned()))?;
        let depth = issue.and_then(|issue| issue.routed).map_or("light", |routed| routed.depth.word());
        let open: Vec<String> =
            task.findings.iter().filter(|it| !it.resolved).map(|it| format!("- {it}\n")).collect();
        let found = match open.is_empty() {
            true => "Nothing is open.".to_owned(),
            false => format!("Worth knowing, and not in the way:\n\n{}", neutralize_markers(&open.concat())),
        };
        let review = NewReview {
            marker: Marker::new(&format!(
                "{REVIEW_MARKER}/{}/{}",
                at.task_mark(task.id),
                pr.head.short_hash()
            ))?,
            says: ReviewAction::Approve,
            body: format!("## Review summary\n\nRead by Landfall ({depth}). {found}"),
            commit: CommitSha::new(pr.head.as_str())?,
        };
        at.tracker.add_review(number, &review)?;
    }
    set_phase_label(at, IssuePhase::Merge)?;
    Ok(ExchangeResult::Told)
}

/// Says that everything holds, and closes the issue.
pub(super) fn close_done_issue(task: &Task, at: &IssueHandle) -> Result<ExchangeResult, ExchangeError> {
    set_phase_label(at, IssuePhase::Done)?;
    at.tracker.close_issue(at.number, CloseReason::Done)?;
    let marker = Marker::new(&format!("done/{}/{}", at.task_mark(task.id), task.landed_before.len()))?;
    let landed = task.landed.as_ref().map(|landed| format!(" It landed as {}.", landed.commit.as_str()));
    let accepted = task.issue.as_ref().and_then(|issue| issue.accepted.as_ref());
    let unasked = match accepted.is_some_and(|accepted| accepted.items.is_empty()) {
        true => " The issue has no acceptance criteria: nothing but the checks of the project was verified.",
        false => "",
    };
    let text = format!("Done.{}{unasked}", landed.unwrap_or_default());
    at.tracker.add_comment(CommentThread::Issue(at.number), &marker, &text)?;
    Ok(ExchangeResult::Told)
}

/// Says what is worth saying of an issue that is over: once, and once more where it landed again.
pub(super) fn post_retrospective_comment(
    task: &Task,
    at: &IssueHandle,
    lookback: &IssueRetrospective,
) -> Result<(), ExchangeError> {
    let marker = Marker::new(&format!("retro/{}/{}", at.task_mark(task.id), task.landed_before.len()))?;
    // Agents wrote some of it: nothing in it may be taken for a mark of ours.
    let text = lookback.to_markdown().replace("<!--", "&lt;!--");
    at.tracker.add_comment(CommentThread::Issue(at.number), &marker, &text)?;
    Ok(())
}

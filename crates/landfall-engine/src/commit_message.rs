//! What the commits of landed work say of their task and its issue.

use landfall_model::Task;
use landfall_model::issue::{self, IssueKind, IssueRef};
use landfall_trackers::registry;

/// The first line of what lands of a task. That of an issue says what kind of work it is.
pub(crate) fn commit_headline(task: &Task) -> String {
    let title = commit_subject(&task.spec.title);
    let Some(issue) = &task.issue else { return title };
    let kind = issue.seen.as_ref().and_then(|seen| IssueKind::from_wire_name(seen.kind.as_deref()?));
    issue::issue_headline(kind, &title)
}

/// A title as the first line of a commit message.
pub(crate) fn commit_subject(title: &str) -> String {
    const MAX: usize = 60;
    if title.chars().count() <= MAX {
        return title.to_owned();
    }
    let cut: String = title.chars().take(MAX - 1).collect();
    format!("{}…", cut.trim_end())
}

/// What a commit says of the issue it is for. Only a forge that keeps both closes it by that.
pub(crate) fn issue_trailers(task: &Task) -> String {
    let Some(source) = task.issue.as_ref().and_then(|_| IssueRef::from_source(&task.spec.source)) else {
        return String::new();
    };
    let closes = closing_words(task, &source).map(|words| words + "\n\n").unwrap_or_default();
    format!("{closes}Landfall-Issue: {source}\n")
}

/// The words by which a forge closes the issue of a task, where they may be said.
pub(crate) fn closing_words(task: &Task, source: &IssueRef) -> Option<String> {
    let seen = task.issue.as_ref().and_then(|issue| issue.seen.as_ref());
    let is_read_there = registry::find_tracker(&source.tracker).is_ok_and(|entry| entry.away);
    issue::closing_words(source, is_read_there, seen.is_some_and(|seen| seen.side_base))
}

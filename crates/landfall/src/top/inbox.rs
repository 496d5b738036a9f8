//! What only a person can do: how it is shown, and what can be done about it.

use landfall_api::{Action, InboxItem, InboxKind, Request};
use serde_json::Value;

/// A sign that differs in its shape.
pub fn kind_sign(kind: InboxKind) -> &'static str {
    match kind {
        InboxKind::Question => "?",
        InboxKind::Review => "◐",
        InboxKind::Login | InboxKind::Conflict | InboxKind::Escalation => "!",
        InboxKind::Blocked => "⊗",
        InboxKind::Failed => "✗",
        InboxKind::Owed => "✓",
        InboxKind::Acceptance => "☐",
        InboxKind::Paused => "‖",
    }
}

/// Whether somebody is to look at work.
pub fn is_look(kind: InboxKind) -> bool {
    matches!(kind, InboxKind::Review | InboxKind::Owed)
}

/// Whether something waits for it. A look at what has landed, or a pause of one's own, can wait.
pub fn is_urgent(kind: InboxKind) -> bool {
    match kind {
        InboxKind::Question
        | InboxKind::Login
        | InboxKind::Review
        | InboxKind::Conflict
        | InboxKind::Escalation
        | InboxKind::Blocked => true,
        InboxKind::Failed | InboxKind::Owed | InboxKind::Acceptance | InboxKind::Paused => false,
    }
}

/// The question, the first reason, what is wrong: in one line.
pub fn first_line(item: &InboxItem) -> &str {
    item.text.lines().next().unwrap_or_default()
}

/// Everything a person should know before they say something, a line each.
pub fn describe_item(item: &InboxItem) -> Vec<String> {
    let mut lines = vec![item.title.clone()];
    lines.extend(item.text.lines().map(str::to_owned));
    lines.extend(item.findings.iter().map(|finding| format!("its reviewer: {finding}")));
    lines.extend(item.reply.iter().map(|reply| format!("its agent: {reply}")));
    if !item.overdue.is_empty() {
        lines.push(format!("if nobody says anything: {}", item.overdue));
    }
    lines
}

/// The request of an action, with `text` where it is to be filled in. None when it cannot be understood: an engine newer
/// than this client.
pub fn action_request(action: &Action, text: &str) -> Option<Request> {
    let mut asked = action.asked.clone();
    if let Some(fill) = action.fill.as_ref().filter(|_| !text.is_empty()) {
        let (parent, name) = fill.at.rsplit_once('/')?;
        let parent = asked.pointer_mut(parent)?.as_object_mut()?;
        parent.insert(name.to_owned(), Value::String(text.to_owned())); // it may be left out as long as it is empty
    }
    Request::of_words(&action.op, asked).ok().flatten()
}

#[cfg(test)]
mod tests {
    use landfall_api::{Action, Cancel, Redo, Request, ReviewAsked, ReviewSaid};

    use super::action_request;
    use crate::top::sample::task_id;

    #[test]
    fn an_action_is_filled_in_where_it_says() {
        let cancel = |reason: Option<&str>| {
            Request::Cancel(Cancel {
                tasks: vec![task_id(7)],
                reason: reason.map(str::to_owned),
                cleanup: false,
            })
        };
        let action = Action::new("Cancel", &cancel(None)).with_fill("/reason", "Why", false);
        assert_eq!(action_request(&action, ""), Some(cancel(None)));
        assert_eq!(action_request(&action, "not now"), Some(cancel(Some("not now"))));
        let changes = |note: &str| {
            let said = ReviewSaid::Changes {
                issues: Vec::new(),
                note: note.to_owned(),
                redo: Redo::Keep,
                hint: None,
            };
            Request::Review(ReviewAsked { tasks: vec![task_id(7)], said })
        };
        let action = Action::new("Changes", &changes("")).with_fill("/said/note", "What", true);
        assert_eq!(action_request(&action, "names"), Some(changes("names")));
        let strange = Action { op: "no-such-thing".to_owned(), ..action };
        assert_eq!(action_request(&strange, ""), None);
    }
}

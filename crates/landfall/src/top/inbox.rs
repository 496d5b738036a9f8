//! What only a person can do, in the order it is worth doing.

use landfall_api::{ReviewLine, ReviewList, Status, TaskId, TaskLine, WaitFor};

/// Something that waits for a person.
#[derive(Debug, Clone, PartialEq)]
pub struct InboxItem {
    /// Whose.
    pub task: TaskId,
    /// What it is called.
    pub title: String,
    /// What is wanted.
    pub kind: InboxKind,
    /// The question, the first reason, what is wrong: in one line.
    pub words: String,
    /// The other reasons and findings, a line each.
    pub more: Vec<String>,
}

/// What is wanted of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InboxKind {
    /// An answer.
    Question,
    /// A look before it lands.
    Review,
    /// A login, a decision, room on the disk: what the wait says.
    Wait(WaitFor),
    /// A way on.
    Blocked,
    /// A look at what has landed, when there is time.
    Owed,
}

impl InboxKind {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Review => "review",
            Self::Wait(wait) => wait.word(),
            Self::Blocked => "blocked",
            Self::Owed => "landed",
        }
    }

    /// A sign that differs in its shape.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Question => "?",
            Self::Review => "◐",
            Self::Wait(_) => "!",
            Self::Blocked => "⊗",
            Self::Owed => "✓",
        }
    }
}

/// From the tasks that wait and the work to look at.
pub fn inbox(waiting: &[TaskLine], reviews: Option<&ReviewList>) -> Vec<InboxItem> {
    let mut items: Vec<InboxItem> = waiting.iter().filter_map(item).collect();
    if let Some(reviews) = reviews {
        items.extend(reviews.before.iter().map(|line| review(InboxKind::Review, line)));
        items.extend(reviews.after.iter().map(|line| review(InboxKind::Owed, line)));
    }
    items.sort_by_key(|item| (item.kind, item.task)); // what holds others up comes first
    items
}

fn item(line: &TaskLine) -> Option<InboxItem> {
    let detail = line.wait.as_ref().map(|wait| wait.detail.clone()).unwrap_or_default();
    let kind = match (line.status, &line.wait) {
        (Status::Blocked, _) => InboxKind::Blocked,
        (_, Some(wait)) if wait.owner == "you" => match wait.wait {
            WaitFor::Question => InboxKind::Question,
            other => InboxKind::Wait(other),
        },
        (_, Some(_) | None) => return None,
    };
    Some(InboxItem { task: line.id, title: line.title.clone(), kind, words: detail, more: Vec::new() })
}

fn review(kind: InboxKind, line: &ReviewLine) -> InboxItem {
    let mut more: Vec<String> = line.reasons.iter().map(|reason| format!("it {reason}")).collect();
    more.extend(line.findings.iter().map(|finding| format!("its reviewer: {finding}")));
    more.extend(line.reply.iter().map(|reply| format!("its agent: {reply}")));
    let words = if more.is_empty() { String::new() } else { more.remove(0) };
    InboxItem { task: line.task, title: line.title.clone(), kind, words, more }
}

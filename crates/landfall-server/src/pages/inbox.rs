//! The inbox: everything that waits for a person, one thing at a time, with all that is needed to decide.

use askama::Template;
use landfall_api::{
    Action, Ask as _, BoardAsked, ColumnName, CommandReport, DiffStat, Inbox, InboxAsked, InboxItem,
    InboxKind, InboxOrder, Nothing, Outcome, Problem, QuickIssue, TaskAsked,
};

use super::{Page, Visit, parts, words};

const LIST_MAX: u32 = 200; // one screen after the other; the rest is counted

#[derive(Template)]
#[template(path = "inbox.html")]
struct InboxPage<'a> {
    inbox: &'a Inbox,
    newest: bool,
    kind: Option<InboxKind>,
    now_ms: i64,
    open: Option<Open<'a>>,
}

/// The thing that is looked at.
struct Open<'a> {
    item: &'a InboxItem,
    /// From 1.
    place: usize,
    previous: Option<String>,
    next: Option<String>,
    forms: Vec<ActionForm>,
    /// Answers that suggest themselves, each as a form.
    choices: Vec<ActionForm>,
    why: String,
    checks: Vec<CommandReport>,
    diff: Option<DiffStat>,
}

/// An action as a form.
struct ActionForm {
    id: String,
    op: String,
    label: String,
    fields: Vec<(String, String)>,
    fill: Option<(String, String, bool)>,
    /// Complaints that can be ticked, where changes are asked for.
    issues: Vec<QuickIssue>,
    confirm: bool,
    /// What keys call it: `approve`, `changes`, `defer`, or nothing.
    word: &'static str,
    back: String,
}

pub(super) fn draw(visit: &Visit<'_>) -> Result<Page, Problem> {
    let newest = visit.asked("order") == Some("newest");
    let kind = visit.asked("kind").and_then(|word| InboxKind::ALL.into_iter().find(|it| it.word() == word));
    let inbox = visit.inbox(InboxAsked {
        order: if newest { InboxOrder::Newest } else { InboxOrder::Oldest },
        kinds: kind.into_iter().collect(),
        task: None,
        limit: LIST_MAX,
    })?;
    // The board knows the task, and not what this list calls the thing that waits.
    let of_task = visit
        .asked("task")
        .and_then(|task| inbox.items.iter().find(|item| item.task.is_some_and(|it| it.to_string() == task)));
    let wanted = visit.asked("at").or(of_task.map(|item| item.key.as_str()));
    let at = at(&inbox.items, wanted, visit.asked("then"));
    let mut open = at.map(|at| open(&inbox, at, kind, newest));
    if let Some(open) = &mut open {
        enrich(visit, open);
    }
    let page = InboxPage { inbox: &inbox, newest, kind, now_ms: visit.now_ms(), open };
    Page::new("Inbox", &page)
}

/// Which thing is looked at: the one asked for, or, once that is decided, the one that came after it.
fn at(items: &[InboxItem], at: Option<&str>, then: Option<&str>) -> Option<usize> {
    let place = |key: Option<&str>| items.iter().position(|item| Some(item.key.as_str()) == key);
    place(at).or_else(|| place(then)).or(if items.is_empty() { None } else { Some(0) })
}

/// The page that shows a thing, and knows which comes after it.
fn link(items: &[InboxItem], at: usize, kind: Option<InboxKind>, newest: bool) -> Option<String> {
    let then = items.get(at + 1).map_or("", |item| item.key.as_str());
    let kind = kind.map_or("", InboxKind::word);
    let order = if newest { "newest" } else { "" };
    let words = [("at", items.get(at)?.key.as_str()), ("then", then), ("kind", kind), ("order", order)];
    Some(super::link("/inbox", &words))
}

fn open(inbox: &Inbox, at: usize, kind: Option<InboxKind>, newest: bool) -> Open<'_> {
    let item = &inbox.items[at];
    let next = link(&inbox.items, at + 1, kind, newest);
    let back = next.clone().unwrap_or_else(|| "/inbox".to_owned());
    let made = |place: usize, action: &Action| form(&format!("{}-{place}", item.key), action, &back);
    let forms = item.actions.iter().enumerate().filter_map(|(place, action)| made(place, action)).collect();
    let answer = item.actions.iter().find(|action| action.op == "answer" && action.fill.is_some());
    let choices = item.choices.iter().enumerate().filter_map(|(place, choice)| {
        let mut action = answer?.clone();
        let at = action.fill.take()?.at;
        *action.asked.pointer_mut(&at)? = choice.as_str().into();
        action.label.clone_from(choice);
        made(100 + place, &action)
    });
    Open {
        item,
        place: at + 1,
        previous: at.checked_sub(1).and_then(|at| link(&inbox.items, at, kind, newest)),
        next,
        forms,
        choices: choices.collect(),
        why: String::new(),
        checks: Vec::new(),
        diff: None,
    }
}

/// What else helps to decide. What cannot be had is left out: the decision can be made without it.
fn enrich(visit: &Visit<'_>, open: &mut Open<'_>) {
    let Some(task) = open.item.task else { return };
    if let Ok(detail) = visit.show(TaskAsked { task }) {
        open.why = detail.why;
        open.checks = detail.gate.map(|gate| gate.commands).unwrap_or_default();
    }
    let column = match open.item.kind {
        InboxKind::Review => ColumnName::InReview,
        InboxKind::Owed | InboxKind::Acceptance => ColumnName::DoneToday,
        _ => ColumnName::NeedsYou,
    };
    if let Ok(board) = visit.board(BoardAsked { cards: LIST_MAX, columns: vec![column] }) {
        let card = board.columns.iter().flat_map(|it| &it.cards).find(|card| card.id == task);
        open.diff = card.and_then(|card| card.diff);
    }
    if open.forms.iter().any(|form| form.word == "changes")
        && let Ok(list) = visit.reviews(Nothing {})
    {
        for form in open.forms.iter_mut().filter(|form| form.word == "changes") {
            form.issues.clone_from(&list.issues);
            form.fields.retain(|(name, _)| name != "said.redo");
            // A complaint with a name is enough; words of one's own are not needed then.
            if let Some((_, _, required)) = &mut form.fill {
                *required = false;
            }
        }
    }
}

/// An action as a form; none if a form cannot say it.
fn form(id: &str, action: &Action, back: &str) -> Option<ActionForm> {
    let plain = action.op.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
    let mut fields = Vec::new();
    parts::flatten(&action.asked, "", &mut fields)?;
    let fill = action.fill.as_ref().map(|fill| {
        let name = fill.at.trim_start_matches('/').replace('/', ".");
        (name, words::line(&fill.label), fill.required)
    });
    if let Some((name, ..)) = &fill {
        fields.retain(|(field, _)| field != name);
    }
    let decision = action.asked.pointer("/said/decision").and_then(|it| it.as_str());
    let word = match (action.op.as_str(), decision) {
        ("review", Some("approve")) => "approve",
        ("review", Some("changes")) => "changes",
        ("review", Some("defer")) => "defer",
        _ => "",
    };
    (plain && !action.op.is_empty()).then(|| ActionForm {
        id: id.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' }).collect(),
        op: action.op.clone(),
        label: words::line(&action.label),
        fields,
        fill,
        issues: Vec::new(),
        confirm: action.confirm,
        word,
        back: back.to_owned(),
    })
}

/// What a kind is called on the page, and how much it presses.
fn kind_name(kind: InboxKind) -> (&'static str, &'static str) {
    match kind {
        InboxKind::Question => ("Question", "warn"),
        InboxKind::Login => ("Login wanted", "warn"),
        InboxKind::Review => ("To look at", "warn"),
        InboxKind::Conflict => ("Conflict", "warn"),
        InboxKind::Escalation => ("Stands still", "bad"),
        InboxKind::Blocked => ("Blocked", "warn"),
        InboxKind::Failed => ("Failed", "bad"),
        InboxKind::Owed => ("Landed, to look at", "info"),
        InboxKind::Acceptance => ("Boxes to tick", "info"),
        InboxKind::Paused => ("Paused", "quiet"),
    }
}

/// The symbol of what a check came to.
pub(super) fn mark(outcome: Outcome) -> (&'static str, &'static str) {
    match outcome {
        Outcome::Pass => ("✓", "good"),
        Outcome::Flaky => ("≈", "warn"),
        Outcome::PreExisting => ("=", "quiet"),
        Outcome::Fail => ("✗", "bad"),
        Outcome::Timeout => ("◷", "bad"),
        Outcome::Broken => ("⚠", "bad"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use landfall_api::{Answer, Request, ReviewAsked, ReviewSaid, TaskId};

    use super::*;

    fn item(key: &str, actions: Vec<Action>) -> InboxItem {
        InboxItem {
            key: key.to_owned(),
            kind: InboxKind::Question,
            task: Some(TaskId(7)),
            title: "<script>alert(1)</script>".to_owned(),
            text: "Which?\n- <b>tabs</b>\n- spaces\u{202e}".to_owned(),
            step: None,
            since_ms: 0,
            until_ms: None,
            overdue: String::new(),
            choices: vec!["<b>tabs</b>".to_owned(), "spaces".to_owned()],
            concerns: Vec::new(),
            findings: vec!["<i>x</i>".to_owned()],
            reply: Some("no".to_owned()),
            files: Vec::new(),
            commit: None,
            actions,
        }
    }

    fn answer() -> Action {
        let asked = Request::Answer(Answer { task: TaskId(7), text: String::new() });
        Action::new("Answer", &asked).fill("/text", "Your answer", true)
    }

    fn of(items: Vec<InboxItem>) -> Inbox {
        Inbox { seq: 1, counts: BTreeMap::from([(InboxKind::Question, items.len() as u64)]), items, more: 0 }
    }

    #[test]
    fn after_a_decision_comes_the_next() {
        let inbox = of(["a", "b", "c"].map(|key| item(key, Vec::new())).into());
        assert_eq!(at(&inbox.items, Some("b"), None), Some(1));
        assert_eq!(at(&inbox.items, Some("gone"), Some("c")), Some(2));
        assert_eq!(at(&inbox.items, Some("gone"), Some("too")), Some(0));
        assert_eq!(at(&[], Some("a"), None), None);
        let open = open(&inbox, 1, None, false);
        assert_eq!(open.next.as_deref(), Some("/inbox?at=c"));
        assert_eq!(open.previous.as_deref(), Some("/inbox?at=a&then=b"));
    }

    #[test]
    fn an_action_is_a_form_and_a_choice_fills_it() {
        let inbox = of(vec![item("a", vec![answer()])]);
        let open = open(&inbox, 0, None, false);
        assert_eq!(open.forms[0].fields, [("task".to_owned(), "T7".to_owned())]);
        assert_eq!(open.forms[0].fill.as_ref().map(|it| it.0.as_str()), Some("text"));
        let fields: Vec<_> =
            open.choices[1].fields.iter().map(|(name, text)| format!("{name}={text}")).collect();
        assert_eq!(fields, ["task=T7", "text=spaces"]);
    }

    #[test]
    fn keys_know_what_a_review_does() {
        let say = |said| Action::new("x", &Request::Review(ReviewAsked { tasks: vec![TaskId(1)], said }));
        let word = |said| form("x", &say(said), "/").expect("a form").word;
        assert_eq!(word(ReviewSaid::Approve { note: String::new() }), "approve");
        assert_eq!(word(ReviewSaid::Defer), "defer");
    }

    #[test]
    fn words_from_outside_stay_words() {
        let inbox = of(vec![item("a\" onclick=\"x", vec![answer().confirm()])]);
        let page = InboxPage {
            inbox: &inbox,
            newest: false,
            kind: None,
            now_ms: 0,
            open: Some(open(&inbox, 0, None, false)),
        };
        let html = page.render().expect("drawn");
        assert!(!html.contains("<script") && !html.contains("<b>") && !html.contains("<i>"), "{html}");
        assert!(!html.contains("\" onclick"), "{html}");
        assert!(html.contains("U+202E"), "{html}");
    }

    #[test]
    fn an_empty_inbox_says_so() {
        let inbox = of(Vec::new());
        let page = InboxPage { inbox: &inbox, newest: false, kind: None, now_ms: 0, open: None };
        assert!(page.render().expect("drawn").contains("Nothing waits for you"));
    }
}

//! The inbox: everything that waits for a person, one thing at a time, with all that is needed to decide.

use askama::Template;
use landfall_api::{
    Inbox, InboxAsked, InboxItem, InboxKind, InboxOrder, Nothing, Outcome, Problem, Request, Retry,
    TaskAsked, TypedService as _, WireTaskId,
};

use super::decide::DecisionForm;
use super::markup::Markup;
use super::task_diff::{self, DiffPreview};
use super::{PageContext, RenderedPage, parts, words};

const LIST_MAX: u32 = 500; // one screen after the other; the rest is counted
const GROUP_MIN: usize = 4; // fewer of one reason are listed one by one
const DIFF_LINES_MAX: usize = 400; // more is read on its own page

#[derive(Template)]
#[template(path = "inbox.html")]
struct InboxPage<'a> {
    inbox: &'a Inbox,
    newest: bool,
    kind: Option<InboxKind>,
    now_ms: i64,
    open: Option<InboxSelection<'a>>,
    groups: Vec<InboxGroup<'a>>,
}

/// The thing that is looked at.
struct InboxSelection<'a> {
    item: &'a InboxItem,
    /// From 1.
    place: usize,
    previous: Option<String>,
    next: Option<String>,
    decision: DecisionForm,
    why: Markup,
    checks: Vec<InboxCheck>,
    diff: Option<DiffPreview>,
}

/// A check of the last verification, with what it printed if it failed.
struct InboxCheck {
    name: String,
    outcome: Outcome,
    took: String,
    excerpt: Option<Markup>,
}

/// What waits for one reason.
struct InboxGroup<'a> {
    name: &'static str,
    tone: &'static str,
    /// The code of the reason, where all of the group have it.
    reason: Option<&'a str>,
    rows: Vec<InboxListRow<'a>>,
    is_open: bool,
    /// Retries all of them.
    retry: Option<parts::ActionButton>,
}

struct InboxListRow<'a> {
    item: &'a InboxItem,
    link: String,
    is_here: bool,
}

/// Which list is looked at.
#[derive(Clone, Copy)]
struct InboxView {
    kind: Option<InboxKind>,
    newest: bool,
}

pub(super) fn draw_inbox_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let newest = visit.query_value("order") == Some("newest");
    let kind =
        visit.query_value("kind").and_then(|word| InboxKind::ALL.into_iter().find(|it| it.word() == word));
    let mut inbox = visit.inbox(InboxAsked {
        order: if newest { InboxOrder::Newest } else { InboxOrder::Oldest },
        kinds: kind.into_iter().collect(),
        task: None,
        limit: LIST_MAX,
    })?;
    sort_items(&mut inbox.items);
    // The board knows the task, and not what this list calls the thing that waits.
    let of_task = visit
        .query_value("task")
        .and_then(|task| inbox.items.iter().find(|item| item.task.is_some_and(|it| it.to_string() == task)));
    let wanted = visit.query_value("at").or(of_task.map(|item| item.key.as_str()));
    let view = InboxView { kind, newest };
    let at =
        selected_position(&inbox.items, wanted, visit.query_value("then"), visit.parse_query_value("place"));
    let mut open = at.map(|at| open(&inbox, at, view));
    if let Some(open) = &mut open {
        add_task_details(visit, open);
    }
    let groups = group_items(&inbox.items, at, view);
    let page = InboxPage { inbox: &inbox, newest, kind, now_ms: visit.now_ms(), open, groups };
    RenderedPage::new("Inbox", &page)
}

/// Questions first, then reviews, then the rest: an agent waits for an answer, and work for a review. The order within each
/// stays, and so do those together that have one reason.
fn sort_items(items: &mut [InboxItem]) {
    items.sort_by_cached_key(|item| {
        let rank = match item.kind {
            InboxKind::Question => 0,
            InboxKind::Login => 1,
            InboxKind::Escalation => 2,
            InboxKind::Conflict => 3,
            InboxKind::Review => 4,
            InboxKind::Blocked => 5,
            InboxKind::Failed => 6,
            InboxKind::Owed => 7,
            InboxKind::Acceptance => 8,
            InboxKind::Paused => 9,
        };
        (rank, failure_code(item).map(str::to_owned))
    });
}

/// The code of why a task gave up: `nothing_changed`.
fn failure_code(item: &InboxItem) -> Option<&str> {
    if !matches!(item.kind, InboxKind::Blocked | InboxKind::Failed) {
        return None;
    }
    let code = item.text.split(':').next().unwrap_or_default();
    let is_code = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_code.then_some(code)
}

/// Which thing is looked at: the one asked for, or, once that is decided, the one that came after it, or whatever has its place
/// in the list now.
fn selected_position(
    items: &[InboxItem],
    at: Option<&str>,
    then: Option<&str>,
    place: Option<usize>,
) -> Option<usize> {
    let find = |key: Option<&str>| items.iter().position(|item| Some(item.key.as_str()) == key);
    let last = items.len().checked_sub(1)?;
    Some(
        find(at)
            .or_else(|| find(then))
            .unwrap_or_else(|| place.map_or(0, |place| place.saturating_sub(1)).min(last)),
    )
}

/// The page that shows a thing, and knows which comes after it and which place it has.
fn item_link(items: &[InboxItem], at: usize, view: InboxView) -> Option<String> {
    let then = items.get(at + 1).map_or("", |item| item.key.as_str());
    let kind = view.kind.map_or("", InboxKind::word);
    let order = if view.newest { "newest" } else { "" };
    let place = (at + 1).to_string();
    let key = items.get(at)?.key.as_str();
    Some(super::build_link(
        "/inbox",
        &[("at", key), ("then", then), ("place", &place), ("kind", kind), ("order", order)],
    ))
}

fn open(inbox: &Inbox, at: usize, view: InboxView) -> InboxSelection<'_> {
    let item = &inbox.items[at];
    let next = item_link(&inbox.items, at + 1, view);
    let back = next.clone().unwrap_or_else(|| "/inbox".to_owned());
    InboxSelection {
        item,
        place: at + 1,
        previous: at.checked_sub(1).and_then(|at| item_link(&inbox.items, at, view)),
        next,
        decision: DecisionForm::for_item(item, &back),
        why: Markup::default(),
        checks: Vec::new(),
        diff: None,
    }
}

/// The list beside it, by kind and reason.
fn group_items(items: &[InboxItem], at: Option<usize>, view: InboxView) -> Vec<InboxGroup<'_>> {
    let mut groups: Vec<(InboxKind, InboxGroup<'_>)> = Vec::new();
    for (place, item) in items.iter().enumerate() {
        let row = InboxListRow {
            item,
            link: item_link(items, place, view).unwrap_or_default(),
            is_here: at == Some(place),
        };
        let same = groups
            .last_mut()
            .filter(|(kind, group)| *kind == item.kind && group.reason == failure_code(item));
        match same {
            Some((_, group)) => group.rows.push(row),
            None => {
                let (name, tone) = kind_name(item.kind);
                let group = InboxGroup {
                    name,
                    tone,
                    reason: failure_code(item),
                    rows: vec![row],
                    is_open: true,
                    retry: None,
                };
                groups.push((item.kind, group));
            }
        }
    }
    for (kind, group) in &mut groups {
        let is_large =
            group.rows.len() >= GROUP_MIN && matches!(kind, InboxKind::Blocked | InboxKind::Failed);
        if !is_large {
            continue;
        }
        group.is_open = group.rows.iter().any(|row| row.is_here);
        let tasks: Vec<WireTaskId> = group.rows.iter().filter_map(|row| row.item.task).collect();
        let label = format!("Retry all {}", tasks.len());
        let asked = Request::Retry(Retry { tasks, fresh: false, note: None });
        group.retry = parts::act(&landfall_api::Action::new(&label, &asked).with_confirmation(), "/inbox");
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// What else helps to decide. What cannot be had is left out: the decision can be made without it.
fn add_task_details(visit: &PageContext<'_>, open: &mut InboxSelection<'_>) {
    let Some(task) = open.item.task else { return };
    if let Ok(detail) = visit.show(TaskAsked { task }) {
        open.why = words::prose(&detail.why);
        open.checks =
            detail.gate.map(|gate| gate.commands).unwrap_or_default().iter().map(to_inbox_check).collect();
    }
    if matches!(open.item.kind, InboxKind::Review | InboxKind::Owed) {
        open.diff = task_diff::preview_diff(visit, task, DIFF_LINES_MAX);
    }
    if open.decision.can_request_changes()
        && let Ok(list) = visit.reviews(Nothing {})
    {
        open.decision.add_issue_checkboxes(&list.issues);
    }
}

fn to_inbox_check(report: &landfall_api::CommandReport) -> InboxCheck {
    let failed = !matches!(report.outcome, Outcome::Pass | Outcome::Flaky);
    InboxCheck {
        name: words::line(&report.name),
        outcome: report.outcome,
        took: words::length(report.took_ms),
        excerpt: (failed && !report.excerpt.is_empty()).then(|| super::ansi::render_block(&report.excerpt)),
    }
}

/// What a kind is called on the page, and how much it presses.
pub(super) fn kind_name(kind: InboxKind) -> (&'static str, &'static str) {
    match kind {
        InboxKind::Question => ("Question", "warn"),
        InboxKind::Login => ("Login needed", "warn"),
        InboxKind::Review => ("Review", "warn"),
        InboxKind::Conflict => ("Conflict", "warn"),
        InboxKind::Escalation => ("Stopped", "bad"),
        InboxKind::Blocked => ("Blocked", "warn"),
        InboxKind::Failed => ("Failed", "bad"),
        InboxKind::Owed => ("Review after landing", "info"),
        InboxKind::Acceptance => ("Acceptance", "info"),
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

    use landfall_api::{Action, Answer};

    use super::*;

    const VIEW: InboxView = InboxView { kind: None, newest: false };

    fn item(key: &str, actions: Vec<Action>) -> InboxItem {
        InboxItem {
            key: key.to_owned(),
            kind: InboxKind::Question,
            task: Some(WireTaskId(7)),
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
        let asked = Request::Answer(Answer { task: WireTaskId(7), text: String::new() });
        Action::new("Answer", &asked).with_fill("/text", "Your answer", true)
    }

    fn of(items: Vec<InboxItem>) -> Inbox {
        Inbox { seq: 1, counts: BTreeMap::from([(InboxKind::Question, items.len() as u64)]), items, more: 0 }
    }

    #[test]
    fn after_a_decision_comes_the_next() {
        let inbox = of(["a", "b", "c"].map(|key| item(key, Vec::new())).into());
        assert_eq!(selected_position(&inbox.items, Some("b"), None, None), Some(1));
        assert_eq!(selected_position(&inbox.items, Some("gone"), Some("c"), None), Some(2));
        assert_eq!(selected_position(&inbox.items, Some("gone"), Some("too"), None), Some(0));
        assert_eq!(selected_position(&[], Some("a"), None, Some(3)), None);
        let open = open(&inbox, 1, VIEW);
        assert_eq!(open.next.as_deref(), Some("/inbox?at=c&place=3"));
        assert_eq!(open.previous.as_deref(), Some("/inbox?at=a&then=b&place=1"));
    }

    #[test]
    fn a_second_decision_does_not_lead_back_to_the_first_item() {
        // The page still has the address of the item that was decided first.
        let inbox = of(["a", "d", "e"].map(|key| item(key, Vec::new())).into());
        assert_eq!(selected_position(&inbox.items, Some("b"), Some("c"), Some(2)), Some(1));
        assert_eq!(
            selected_position(&inbox.items, Some("b"), Some("c"), Some(9)),
            Some(2),
            "the last one is the end"
        );
    }

    #[test]
    fn links_of_the_list_keep_the_place() {
        let inbox = of(["a", "b", "c"].map(|key| item(key, Vec::new())).into());
        let groups = group_items(&inbox.items, Some(0), VIEW);
        assert_eq!(groups[0].rows[1].link, "/inbox?at=b&then=c&place=2");
    }

    #[test]
    fn many_that_failed_for_one_reason_are_one_row_with_one_button() {
        let failed = |key: &str, text: &str| InboxItem {
            kind: InboxKind::Failed,
            text: text.to_owned(),
            ..item(key, Vec::new())
        };
        let mut items: Vec<InboxItem> =
            (0..5).map(|at| failed(&format!("f{at}"), "nothing_changed: it was told so")).collect();
        items.insert(2, failed("other", "agent_crashed: exit 1"));
        items.push(item("q", Vec::new()));
        sort_items(&mut items);
        assert_eq!(items[0].key, "q", "a question comes first");
        let groups = group_items(&items, Some(0), VIEW);
        let shape: Vec<_> = groups.iter().map(|it| (it.name, it.reason, it.rows.len(), it.is_open)).collect();
        assert_eq!(
            shape,
            [
                ("Question", None, 1, true),
                ("Failed", Some("agent_crashed"), 1, true),
                ("Failed", Some("nothing_changed"), 5, false)
            ]
        );
        let retry = groups[2].retry.as_ref().expect("all can be retried").to_string();
        assert!(retry.contains("Retry all 5") && retry.contains("data-confirm"), "{retry}");
    }

    fn render(inbox: &Inbox) -> String {
        let at = (!inbox.items.is_empty()).then_some(0);
        let page = InboxPage {
            inbox,
            newest: false,
            kind: None,
            now_ms: 0,
            open: at.map(|at| open(inbox, at, VIEW)),
            groups: group_items(&inbox.items, at, VIEW),
        };
        page.render().expect("drawn")
    }

    #[test]
    fn words_from_outside_stay_words() {
        let html = render(&of(vec![item("a\" onclick=\"x", vec![answer().with_confirmation(), answer()])]));
        assert!(!html.contains("<script") && !html.contains("<b>") && !html.contains("<i>"), "{html}");
        assert!(!html.contains("\" onclick"), "{html}");
        assert!(html.contains("U+202E"), "{html}");
    }

    #[test]
    fn an_empty_inbox_says_so() {
        assert!(render(&of(Vec::new())).contains("Nothing waits for you"));
    }
}

//! Everything that waits for a person, with what can be done about each.

use std::collections::BTreeMap;

use landfall_api::{self as api, Action, InboxKind, Problem, Request, ReviewSaid};
use landfall_engine::model::issue::OpenCheckbox;
use landfall_engine::model::{Task, TaskState, TaskStatus, WaitReason, review};
use landfall_engine::store::{StoreReader, TaskRow};

use crate::project::query_context::Query;
use crate::project::{conversions, problems, task_cache};
use crate::query::{open_acceptance, reviews};

const PAGE: u32 = 100;
const PAGE_MAX: u32 = 1_000;
const CHOICES_MAX: usize = 9; // as many as there are keys
const CHOICE_CHARS_MAX: usize = 120;

pub(crate) fn build_inbox(look: &Query<'_>, asked: &api::InboxAsked) -> Result<api::Inbox, Problem> {
    let Some(reader) = look.place.open_reader()? else {
        return match asked.task {
            Some(task) => Err(problems::unknown_task(conversions::model_task(task))),
            None => Ok(api::Inbox { seq: 0, counts: BTreeMap::new(), items: Vec::new(), more: 0 }),
        };
    };
    let of = |error| problems::from_store_error(&error);
    let seq = reader.head().map_err(of)?.seq.0;
    let limit = if asked.limit == 0 { PAGE } else { asked.limit.min(PAGE_MAX) };
    let wanted = |kind: InboxKind| asked.kinds.is_empty() || asked.kinds.contains(&kind);
    let mut counts: BTreeMap<InboxKind, u64> = BTreeMap::new();
    let mut rows: Vec<(InboxKind, TaskRow)> = Vec::new();
    let mut items = Vec::new();
    match asked.task.map(conversions::model_task) {
        Some(id) => {
            let row = reader.row(id).map_err(of)?.ok_or_else(|| problems::unknown_task(id))?;
            let owed = reviews::tasks_owing_review(&reader)?.contains(&id).then_some(InboxKind::Owed);
            let left = open_acceptance::list_open_acceptances(look.place, &reader)?
                .into_iter()
                .find(|it| it.row.id == id);
            if let Some(left) = left.filter(|_| wanted(InboxKind::Acceptance)) {
                counts.insert(InboxKind::Acceptance, 1);
                items.push(issue_item(&reader, &left)?);
            }
            if let Some(kind) = inbox_kind_of(&row).or(owed).filter(|kind| wanted(*kind)) {
                counts.insert(kind, 1);
                rows.push((kind, row));
            }
        }
        None => {
            let waits = reader.waits().map_err(of)?;
            for (word, many) in waits {
                let Some(kind) = word.parse().ok().and_then(inbox_kind_of_wait).filter(|kind| wanted(*kind))
                else {
                    continue;
                };
                *counts.entry(kind).or_default() += many;
                rows.extend(
                    reader.list_waiting_for(&word, limit).map_err(of)?.into_iter().map(|row| (kind, row)),
                );
            }
            let by_status = reader.counts().map_err(of)?;
            for (status, kind) in [
                (TaskStatus::Review, InboxKind::Review),
                (TaskStatus::Blocked, InboxKind::Blocked),
                (TaskStatus::Failed, InboxKind::Failed),
                (TaskStatus::Timeout, InboxKind::Failed),
            ] {
                if wanted(kind) && by_status.count_of(status) > 0 {
                    *counts.entry(kind).or_default() += by_status.count_of(status);
                    rows.extend(
                        reader.list_by_status(status, limit).map_err(of)?.into_iter().map(|row| (kind, row)),
                    );
                }
            }
            if wanted(InboxKind::Owed) {
                let owed = reviews::tasks_owing_review(&reader)?;
                if !owed.is_empty() {
                    counts.insert(InboxKind::Owed, owed.len() as u64);
                    let some = &owed[..owed.len().min(limit as usize)];
                    rows.extend(
                        reader.read_rows(some).map_err(of)?.into_iter().map(|row| (InboxKind::Owed, row)),
                    );
                }
            }
            if wanted(InboxKind::Acceptance) {
                let left = open_acceptance::list_open_acceptances(look.place, &reader)?;
                if !left.is_empty() {
                    counts.insert(InboxKind::Acceptance, left.len() as u64);
                    for it in left.iter().take(limit as usize) {
                        items.push(issue_item(&reader, it)?);
                    }
                }
            }
        }
    }
    for (kind, row) in rows {
        items.extend(inbox_item(look, &reader, kind, &row)?);
    }
    if asked.task.is_none() && wanted(InboxKind::Escalation) {
        let project = project_items(look)?;
        if !project.is_empty() {
            *counts.entry(InboxKind::Escalation).or_default() += project.len() as u64;
            items.extend(project);
        }
    }
    let urgency = |item: &api::InboxItem| match asked.order {
        api::InboxOrder::Urgent => item.kind.urgency(),
        api::InboxOrder::Oldest | api::InboxOrder::Newest => 0,
    };
    items.sort_by(|a, b| (urgency(a), a.since_ms, &a.key).cmp(&(urgency(b), b.since_ms, &b.key)));
    if asked.order == api::InboxOrder::Newest {
        items.reverse();
    }
    items.truncate(limit as usize);
    let more = counts.values().sum::<u64>().saturating_sub(items.len() as u64);
    Ok(api::Inbox { seq, counts, items, more })
}

fn inbox_kind_of_wait(wait: api::WaitFor) -> Option<InboxKind> {
    match wait {
        api::WaitFor::Question => Some(InboxKind::Question),
        api::WaitFor::Login => Some(InboxKind::Login),
        api::WaitFor::Conflict => Some(InboxKind::Conflict),
        api::WaitFor::GateBroken | api::WaitFor::Disk => Some(InboxKind::Escalation),
        api::WaitFor::Pause => Some(InboxKind::Paused),
        api::WaitFor::Dependency
        | api::WaitFor::Slot
        | api::WaitFor::Quota
        | api::WaitFor::Budget
        | api::WaitFor::SubIssues
        | api::WaitFor::Blockers
        | api::WaitFor::Backoff => None,
    }
}

fn inbox_kind_of(row: &TaskRow) -> Option<InboxKind> {
    match row.status {
        TaskStatus::Waiting => inbox_kind_of_wait(row.wait.as_deref()?.parse().ok()?),
        TaskStatus::Review => Some(InboxKind::Review),
        TaskStatus::Blocked => Some(InboxKind::Blocked),
        TaskStatus::Failed | TaskStatus::Timeout => Some(InboxKind::Failed),
        TaskStatus::Draft
        | TaskStatus::Ready
        | TaskStatus::Active
        | TaskStatus::Landing
        | TaskStatus::Done
        | TaskStatus::Cancelled => None,
    }
}

fn inbox_item(
    look: &Query<'_>,
    reader: &StoreReader,
    kind: InboxKind,
    row: &TaskRow,
) -> Result<Option<api::InboxItem>, Problem> {
    let Some(task) = task_cache::cached_task(look.place, reader, row)? else { return Ok(None) };
    // The fact that began it: what happens to the task meanwhile does not make it another need.
    let fact = match kind {
        InboxKind::Review => "review-wanted",
        InboxKind::Blocked | InboxKind::Failed => "ended",
        InboxKind::Owed => "review-owed",
        InboxKind::Acceptance => "landed",
        InboxKind::Question
        | InboxKind::Login
        | InboxKind::Conflict
        | InboxKind::Escalation
        | InboxKind::Paused => "waited",
    };
    let mut made = plain_item(reader, kind, fact, row, &task)?;
    fill_item(&mut made, &task);
    Ok(Some(made))
}

/// What is left of an issue that landed.
fn issue_item(
    reader: &StoreReader,
    left: &open_acceptance::OpenAcceptance,
) -> Result<api::InboxItem, Problem> {
    let open_acceptance::OpenAcceptance { row, task, text, issue, boxes } = left;
    let again = api::Retry { tasks: vec![conversions::task_id(row.id)], fresh: false, note: None };
    let mut actions =
        vec![Action::new("Look at it again, and close it if all holds", &Request::Retry(again))];
    for left_box in boxes.iter().filter(|left_box| left_box.by_hand) {
        let label = format!("Tick box {}: {}", left_box.place, left_box.text);
        let asked = api::IssueTick {
            issue: api::IssueNumber(*issue),
            named: checkbox_name(left_box, boxes),
            open: false,
        };
        actions.push(Action::new(&label, &Request::IssueTick(asked)));
    }
    Ok(api::InboxItem {
        text: text.clone(),
        commit: task.landed.as_ref().map(|landed| landed.commit.as_str().to_owned()),
        actions,
        ..plain_item(reader, InboxKind::Acceptance, "landed", row, task)?
    })
}

/// What a box is called by. Its words name it even if boxes before it come or go meanwhile; its place is the name where words do
/// not tell it from another.
fn checkbox_name(named: &OpenCheckbox, boxes: &[OpenCheckbox]) -> String {
    let same = |other: &&OpenCheckbox| other.text.to_lowercase() == named.text.to_lowercase();
    let is_number = named.text.trim().bytes().all(|byte| byte.is_ascii_digit());
    match is_number || boxes.iter().filter(same).count() > 1 {
        true => named.place.to_string(),
        false => named.text.clone(),
    }
}

/// A need of a task, without what is asked.
fn plain_item(
    reader: &StoreReader,
    kind: InboxKind,
    fact: &str,
    row: &TaskRow,
    task: &Task,
) -> Result<api::InboxItem, Problem> {
    let began = reader.last_of(row.id, fact).map_err(|error| problems::from_store_error(&error))?;
    let (seq, since) = began.unwrap_or((row.seq, row.changed));
    let id = conversions::task_id(row.id);
    Ok(api::InboxItem {
        key: format!("{}-{id}-{seq}", kind.word()),
        kind,
        task: Some(id),
        title: row.title.clone(),
        text: String::new(),
        step: task.step().map(|step| step.as_str().to_owned()),
        since_ms: since.0,
        until_ms: None,
        overdue: String::new(),
        choices: Vec::new(),
        concerns: Vec::new(),
        findings: Vec::new(),
        reply: None,
        files: Vec::new(),
        commit: None,
        actions: Vec::new(),
    })
}

/// What is asked, and what can be done.
fn fill_item(item: &mut api::InboxItem, task: &Task) {
    let id = conversions::task_id(task.id);
    let answer = |label: &str, text: &str| {
        Action::new(label, &Request::Answer(api::Answer { task: id, text: text.to_owned() }))
    };
    let retry = |label: &str, fresh: bool| {
        Action::new(label, &Request::Retry(api::Retry { tasks: vec![id], fresh, note: None })).with_fill(
            "/note",
            "What the agent should know this time",
            false,
        )
    };
    let cancel = || {
        Action::new(
            "Cancel the task",
            &Request::Cancel(api::Cancel { tasks: vec![id], reason: None, cleanup: false }),
        )
        .with_fill("/reason", "Why", false)
        .with_confirmation()
    };
    match &task.state {
        TaskState::Waiting { wait, .. } => match wait {
            WaitReason::Question { text } => {
                item.text.clone_from(text);
                item.choices = parse_choices(text);
                item.actions.push(answer("Answer", "").with_fill("/text", "Your answer", true));
                item.actions.push(cancel());
            }
            WaitReason::Login { account, detail, asker } => {
                item.text = format!("the account `{account}` wants a login: {detail}");
                let done = api::Answer { task: conversions::task_id(*asker), text: "done".to_owned() };
                item.actions.push(Action::new("I have logged in", &Request::Answer(done)));
            }
            WaitReason::Conflict { base, files, until, overdue } => {
                item.text = format!("it conflicts with {} in {}", base.short_hash(), files.join(", "));
                item.files.clone_from(files);
                item.commit = Some(base.as_str().to_owned());
                item.until_ms = Some(until.0);
                item.overdue = overdue.to_sentence().to_owned();
                item.actions = vec![
                    answer("I have resolved it", "resolved"),
                    answer("Say how; the agent does it", "").with_fill("/text", "How to resolve it", true),
                    retry("Begin anew on the base", true).with_confirmation(),
                    cancel(),
                ];
            }
            WaitReason::GateBroken { command, detail } => {
                item.text = format!("the check `{command}` cannot be trusted: {detail}");
                item.actions = vec![retry("The check is mended: go on", false), cancel()];
            }
            WaitReason::Disk { detail } => {
                item.text = format!("there is too little room on the disk: {detail}");
                item.actions = vec![retry("There is room: go on", false)];
            }
            WaitReason::Pause => {
                item.text = "it is paused by a person".to_owned();
                item.actions = vec![retry("Go on", false), cancel()];
            }
            WaitReason::Dependency(_)
            | WaitReason::Slot
            | WaitReason::Turn(_)
            | WaitReason::Quota { .. }
            | WaitReason::Budget { .. }
            | WaitReason::Parts
            | WaitReason::Blockers { .. }
            | WaitReason::Backoff { .. } => {}
        },
        TaskState::Review { .. } => {
            item.text = task.concerns.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            fill_positions(item, task);
            item.actions = review_actions(id, true);
        }
        TaskState::Ended(ending) if conversions::ended_without_landing(task) => {
            item.text = match ending.detail.as_str() {
                "" => ending.code.word().to_owned(),
                detail => format!("{}: {detail}", ending.code.word()),
            };
            item.actions = vec![retry("Try again", false), retry("Try again from the base", true)];
            if task.issue.is_none() && task.landed.is_none() {
                let asked = api::Accept { tasks: vec![id], reason: String::new() };
                let accept = Action::new("It is already done", &Request::Accept(asked));
                item.actions.push(accept.with_fill("/reason", "Why it is already done", true));
            }
            item.actions.push(cancel());
        }
        TaskState::Ended(_) | TaskState::Draft | TaskState::Ready { .. } | TaskState::Active { .. } => {
            if let Some(landed) = &task.landed {
                item.text = format!("landed as {}; somebody is to look at it", landed.commit.short_hash());
                item.commit = Some(landed.commit.as_str().to_owned());
            }
            fill_positions(item, task);
            item.actions = review_actions(id, false);
        }
    }
}

/// What the reviewing agent found, and what the one that did the work says.
fn fill_positions(item: &mut api::InboxItem, task: &Task) {
    item.concerns = task.concerns.iter().map(conversions::to_api_concern).collect();
    item.findings = review::blocking_findings(&task.findings).map(ToString::to_string).collect();
    item.reply = task.reply.clone().filter(|reply| !reply.is_empty());
}

fn review_actions(id: api::WireTaskId, before: bool) -> Vec<Action> {
    let say = |label: &str, said: ReviewSaid| {
        Action::new(label, &Request::Review(api::ReviewAsked { tasks: vec![id], said }))
    };
    let changes =
        ReviewSaid::Changes { issues: Vec::new(), note: String::new(), redo: api::Redo::Keep, hint: None };
    vec![
        say("Approve", ReviewSaid::Approve { note: String::new() }),
        say("Ask for changes", changes).with_fill("/said/note", "What is to be changed", true),
        say(
            if before { "Reject" } else { "Reject and take back" },
            ReviewSaid::Reject { note: String::new() },
        )
        .with_fill("/said/note", "Why it is not wanted", true)
        .with_confirmation(),
        say("Later", ReviewSaid::Defer),
    ]
}

/// Answers a question offers by listing them: `- tabs`, `1. tabs`, `a) tabs`.
fn parse_choices(text: &str) -> Vec<String> {
    let listed = |line: &str| -> Option<String> {
        let line = line.trim();
        let rest = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).or_else(|| {
            let (mark, rest) = line.split_once(['.', ')'])?;
            let short = !mark.is_empty() && mark.len() <= 2;
            (short && mark.bytes().all(|byte| byte.is_ascii_alphanumeric()) && rest.starts_with(' '))
                .then_some(rest)
        })?;
        Some(rest.trim().chars().take(CHOICE_CHARS_MAX).collect::<String>()).filter(|it| !it.is_empty())
    };
    let found: Vec<String> = text.lines().filter_map(listed).take(CHOICES_MAX).collect();
    if found.len() > 1 { found } else { Vec::new() }
}

/// What the engine cannot decide about the whole project.
fn project_items(look: &Query<'_>) -> Result<Vec<api::InboxItem>, Problem> {
    let status = look.status_report()?;
    let made = |key: String, title: &str, text: String, since_ms: i64, actions: Vec<Action>| api::InboxItem {
        key,
        kind: InboxKind::Escalation,
        task: None::<api::WireTaskId>,
        title: title.to_owned(),
        text,
        step: None,
        since_ms,
        until_ms: None,
        overdue: String::new(),
        choices: Vec::new(),
        concerns: Vec::new(),
        findings: Vec::new(),
        reply: None,
        files: Vec::new(),
        commit: None,
        actions,
    };
    let mut found = Vec::new();
    if let Some(hold) = status.queue.as_ref().and_then(|queue| queue.hold.as_ref()) {
        let resume = |keep_landed| Request::QueueResume(api::QueueResume { keep_landed });
        let mut actions = vec![Action::new("Resume the queue", &resume(false))];
        if hold.why == api::HoldReason::Rewritten {
            actions = vec![
                Action::new("Take the branch as it is", &resume(false)).with_confirmation(),
                Action::new("Bring it together with what landed", &resume(true)),
            ];
        }
        let text = format!("{}\n{}", hold.reason, hold.hint);
        let item = made(
            format!("queue-{}", hold.since_ms),
            "The landing queue is held",
            text,
            hold.since_ms,
            actions,
        );
        found.push(api::InboxItem { until_ms: hold.until_ms, ..item });
    }
    if let Some(pause) = status.pilot.as_ref().and_then(|pilot| pilot.pause.as_ref()) {
        found.push(made(
            format!("pause-{}", pause.since_ms),
            "The run starts nothing new",
            pause.reason.clone(),
            pause.since_ms,
            vec![Action::new("Resume", &Request::Resume(api::Nothing {}))],
        ));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::parse_choices;

    #[test]
    fn a_question_that_lists_answers_offers_them() {
        assert_eq!(parse_choices("Which?\n- tabs\n- spaces\n"), ["tabs", "spaces"]);
        assert_eq!(parse_choices("1. tabs\n2) spaces"), ["tabs", "spaces"]);
        assert!(parse_choices("Tabs or spaces?").is_empty());
        assert!(parse_choices("e.g. this\nv1.2 is out").is_empty());
    }
}

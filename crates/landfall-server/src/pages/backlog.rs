//! The backlog: every task in a table to be searched and changed in bulk, the order in which they come, and new ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use askama::Template;
use landfall_api::import::{self, Format};
use landfall_api::taskfile::{self, TaskFileSource};
use landfall_api::{
    Cancel, EditTask, Filter, NewTask, NewTasks, Nothing, Problem, ProblemCode, ProposalOutcome, Proposing,
    Request, Retry, Service as _, Size, Status, TaskLine, TaskRef, TypedService as _, WireTaskId,
};
use serde_json::json;

use super::{FormFields, PageContext, RenderedPage, parts, words};

const ROWS: u32 = 100; // a page that a person still looks through
const ORDER_ROWS: u32 = 60; // what can be dragged about without getting lost, and without a stutter
const BULK_MAX: usize = 500;

/// Statuses in which a task has not begun, so that its place in line means something.
const WAITS_IN_LINE: &[Status] = &[Status::Draft, Status::Ready, Status::Waiting, Status::Blocked];
/// Statuses of tasks that are not over.
const OPEN: &[Status] = &[
    Status::Draft,
    Status::Ready,
    Status::Active,
    Status::Waiting,
    Status::Blocked,
    Status::Review,
    Status::Landing,
    Status::Failed,
    Status::Timeout,
];

#[derive(Template)]
#[template(path = "backlog.html")]
struct BacklogPage {
    text: String,
    status: String,
    tag: String,
    parent: String,
    /// Whether anything is filtered.
    filtered: bool,
    tasks: Vec<TaskLine>,
    next: Option<String>,
    /// This page, to come back to.
    here: String,
    flows: Vec<String>,
    places: Vec<BacklogPosition>,
    /// What agents were asked to propose.
    proposals: Vec<Proposing>,
    now_ms: i64,
}

#[derive(Template)]
#[template(path = "backlog_order.html")]
struct BacklogOrder {
    zones: Vec<BacklogZone>,
    places: Vec<BacklogPosition>,
    more: bool,
}

/// A place in line, for a list to choose from.
#[derive(Clone, PartialEq, Eq)]
struct BacklogPosition {
    word: String,
    name: String,
}

/// Tasks at one place in line.
struct BacklogZone {
    place: BacklogPosition,
    tasks: Vec<TaskLine>,
}

pub(super) fn draw_backlog_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    if visit.query_value("view") == Some("order") {
        return draw_order_page(visit);
    }
    let status = visit.query_value("status").unwrap_or("open");
    let statuses = match status {
        "all" => Vec::new(),
        "open" => OPEN.to_vec(),
        one => one.parse().map_or_else(|_| OPEN.to_vec(), |status| vec![status]),
    };
    let filter = Filter {
        status: statuses,
        tag: visit.query_value("tag").map(str::to_owned),
        text: visit.query_value("text").map(str::to_owned),
        parent: visit.parse_query_value("parent"),
        after: visit.parse_query_value("after"),
        limit: ROWS,
    };
    let filtered =
        filter.tag.is_some() || filter.text.is_some() || filter.parent.is_some() || status != "open";
    let found = visit.list(filter)?;
    let asked = |name: &str| visit.query_value(name).unwrap_or_default().to_owned();
    let here = |after: Option<WireTaskId>| {
        let after = after.map(|it| it.to_string()).unwrap_or_default();
        let [text, status, tag, parent] = ["text", "status", "tag", "parent"].map(asked);
        let words =
            [("text", &text), ("status", &status), ("tag", &tag), ("parent", &parent), ("after", &after)];
        super::build_link("/backlog", &words.map(|(name, text)| (name, text.as_str())))
    };
    // A project whose flows cannot be read still has a backlog.
    let flows = visit.flow_list(Nothing {}).map(|list| list.flows.into_iter().map(|it| it.name).collect());
    let page = BacklogPage {
        text: asked("text"),
        status: status.to_owned(),
        tag: asked("tag"),
        parent: asked("parent"),
        filtered,
        next: found.next.map(|after| here(Some(after))),
        here: here(visit.parse_query_value("after")),
        tasks: found.tasks,
        flows: flows.unwrap_or_default(),
        places: list_positions(),
        // Nobody who cannot see proposals is kept from their tasks.
        proposals: visit.proposals(Nothing {}).map(|list| list.proposals).unwrap_or_default(),
        now_ms: visit.now_ms(),
    };
    RenderedPage::new("Backlog", &page)
}

fn draw_order_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let found =
        visit.list(Filter { status: WAITS_IN_LINE.to_vec(), limit: ORDER_ROWS, ..Filter::default() })?;
    let page = BacklogOrder {
        more: found.next.is_some(),
        zones: group_by_zone(found.tasks),
        places: list_positions(),
    };
    RenderedPage::new("Order of the backlog", &page)
}

/// Every place in line, the first one first.
fn list_positions() -> Vec<BacklogPosition> {
    let priority = |number: u8| {
        let name = match number {
            0 => "Priority 0, the most urgent".to_owned(),
            5 => "Priority 5, as usual".to_owned(),
            9 => "Priority 9, can wait".to_owned(),
            _ => format!("Priority {number}"),
        };
        BacklogPosition { word: number.to_string(), name }
    };
    let next = BacklogPosition { word: "next".to_owned(), name: "Next: two priorities sooner".to_owned() };
    let later = BacklogPosition { word: "later".to_owned(), name: "Later: two priorities later".to_owned() };
    std::iter::once(next).chain((0..=9).map(priority)).chain([later]).collect()
}

/// Where a task is in line.
fn position_of(task: &TaskLine) -> String {
    let tagged = |word: &str| task.tags.iter().any(|tag| tag == word);
    match (tagged("next"), tagged("later")) {
        (true, _) => "next".to_owned(),
        (false, true) => "later".to_owned(),
        (false, false) => task.priority.to_string(),
    }
}

fn group_by_zone(tasks: Vec<TaskLine>) -> Vec<BacklogZone> {
    let mut zones: Vec<BacklogZone> =
        list_positions().into_iter().map(|place| BacklogZone { place, tasks: Vec::new() }).collect();
    for task in tasks {
        let word = position_of(&task);
        if let Some(zone) = zones.iter_mut().find(|zone| zone.place.word == word) {
            zone.tasks.push(task);
        }
    }
    zones
}

fn bad_input(what: impl Display) -> Problem {
    Problem::new(ProblemCode::BadInput, what.to_string())
}

/// Adds the one task of the form.
pub(super) fn add(visit: &PageContext<'_>, fields: &FormFields) -> Result<String, Problem> {
    let reference = |text: &str| text.parse::<TaskRef>().map_err(bad_input);
    let task = NewTask {
        title: fields.first_text("title").ok_or_else(|| bad_input("a task has a title"))?.to_owned(),
        body: fields.first_text("body").unwrap_or_default().replace("\r\n", "\n"),
        criteria: fields.split_lines("criteria").map(str::to_owned).collect(),
        size: fields.parse_field::<Size>("size")?,
        tags: fields.split_words("tags").map(str::to_owned).collect(),
        priority: fields.parse_field("priority")?,
        needs: fields.split_words("needs").map(reference).collect::<Result<_, _>>()?,
        touches: fields.split_lines("touches").map(str::to_owned).collect(),
        parent: fields.parse_field("parent")?,
        flow: fields.first_text("flow").map(str::to_owned),
        agent: fields.first_text("agent").map(str::to_owned),
        draft: fields.first_text("draft").is_some(),
        source: "web".to_owned(),
    };
    add_tasks(visit, vec![task])
}

/// Adds every task of a text that was pasted.
pub(super) fn add_pasted_tasks(visit: &PageContext<'_>, fields: &FormFields) -> Result<String, Problem> {
    let text =
        fields.first_text("text").ok_or_else(|| bad_input("nothing was pasted"))?.replace("\r\n", "\n");
    let mut tasks = parse_pasted_text(&text)?;
    for task in &mut tasks {
        if task.source.is_empty() {
            task.source = "web".to_owned();
        }
        task.draft |= fields.first_text("draft").is_some();
    }
    add_tasks(visit, tasks)
}

fn add_tasks(visit: &PageContext<'_>, tasks: Vec<NewTask>) -> Result<String, Problem> {
    let added = visit.add(NewTasks { tasks })?;
    let ids: Vec<String> = added.tasks.iter().take(20).map(|it| it.id.to_string()).collect();
    Ok(match added.tasks.len() {
        many @ 21.. => format!("Added {many} tasks, from {}.", ids[0]),
        _ => format!("Added {}.", ids.join(", ")),
    })
}

/// The tasks of a text: a task file, a list of another tool, or a title on each line.
fn parse_pasted_text(text: &str) -> Result<Vec<NewTask>, Problem> {
    let file = TaskFileSource { name: "pasted", text };
    if taskfile::is_task_file(text) {
        let read = taskfile::read(&[file]);
        return read.map_err(|error| {
            let problem = bad_input(&error);
            match error.hint {
                Some(hint) => problem.with_hint(hint),
                None => problem,
            }
        });
    }
    let failed = |error: import::ImportError| match &error.hint {
        Some(hint) => bad_input(&error).with_hint(hint.clone()),
        None => bad_input(&error),
    };
    let format = match import::guess_format(&file) {
        Ok(format) => format,
        Err(error) if text.trim_start().starts_with(['{', '[']) => return Err(failed(error)),
        Err(_) => return Ok(parse_title_lines(text)),
    };
    let list = import::read(&file, format, None).map_err(failed)?;
    let settled = import::resolve_import(list, &BTreeMap::new(), true).map_err(failed)?;
    match settled.tasks.is_empty() {
        true => Err(bad_input(format!("this is {} in which nothing is open", format_label(format)))),
        false => Ok(settled.tasks),
    }
}

fn format_label(format: Format) -> &'static str {
    format.description()
}

/// A title on each line, with or without the sign of a list before it.
fn parse_title_lines(text: &str) -> Vec<NewTask> {
    let plain = |line: &str| {
        let line = line.trim();
        let line = line.trim_start_matches(['-', '*', '+', '•']);
        let numbered = line.trim_start_matches(|it: char| it.is_ascii_digit());
        let line = if numbered.len() < line.len() {
            numbered.strip_prefix(['.', ')']).unwrap_or(line)
        } else {
            line
        };
        line.trim().to_owned()
    };
    let titles = text.lines().map(plain).filter(|title| !title.is_empty());
    titles.map(|title| NewTask { title, ..NewTask::default() }).collect()
}

/// Changes many tasks at once: what `what` says, to each of `tasks`.
pub(super) fn change_tasks(visit: &PageContext<'_>, fields: &FormFields) -> Result<String, Problem> {
    let mut tasks = Vec::new();
    let mut seen = BTreeSet::new();
    for text in fields.all_texts("tasks[]") {
        let task: WireTaskId = text.parse().map_err(bad_input)?;
        if seen.insert(task) {
            tasks.push(task);
        }
    }
    if tasks.is_empty() {
        return Err(
            bad_input("no task is ticked").with_hint("tick those that are meant, then choose what to do")
        );
    }
    if tasks.len() > BULK_MAX {
        return Err(bad_input(format!("at most {BULK_MAX} tasks are changed at once")));
    }
    let note = fields.first_text("note").map(str::to_owned);
    let what = fields.first_text("what").ok_or_else(|| bad_input("nothing was chosen"))?;
    match what {
        "retry" => changed_tasks_text(visit.retry(Retry { tasks, fresh: false, note })?.tasks.len()),
        "fresh" => changed_tasks_text(visit.retry(Retry { tasks, fresh: true, note })?.tasks.len()),
        "cancel" => {
            changed_tasks_text(visit.cancel(Cancel { tasks, reason: note, cleanup: false })?.tasks.len())
        }
        "hold" | "release" => {
            let mut words = json!({ "tasks": tasks });
            if let (Some(note), "hold") = (note, what) {
                words["reason"] = note.into();
            }
            let asked = Request::of_words(what, words).map_err(bad_input)?;
            visit.call(asked.ok_or_else(|| bad_input(format!("this version cannot {what} tasks")))?)?;
            changed_tasks_text(tasks.len())
        }
        "ready" => change_each_task(&tasks, |task| {
            edit_task(visit, EditTask { ready: Some(true), ..EditTask::new(task) })
        }),
        "draft" => change_each_task(&tasks, |task| {
            edit_task(visit, EditTask { ready: Some(false), ..EditTask::new(task) })
        }),
        place if list_positions().iter().any(|it| it.word == place) => {
            change_each_task(&tasks, |task| move_task(visit, task, place))
        }
        other => Err(bad_input(format!("`{other}` is nothing that can be done to tasks"))),
    }
}

fn changed_tasks_text(many: usize) -> Result<String, Problem> {
    Ok(if many == 1 { "1 task changed.".to_owned() } else { format!("{many} tasks changed.") })
}

/// Does the same to each; whoever refuses keeps none of the others from it, and is named.
fn change_each_task(
    tasks: &[WireTaskId],
    change: impl Fn(WireTaskId) -> Result<(), Problem>,
) -> Result<String, Problem> {
    let refused: Vec<(WireTaskId, Problem)> =
        tasks.iter().filter_map(|task| change(*task).err().map(|problem| (*task, problem))).collect();
    let Some((_, first)) = refused.first() else { return changed_tasks_text(tasks.len()) };
    let named: Vec<String> =
        refused.iter().take(5).map(|(task, problem)| format!("{task}: {}", problem.message)).collect();
    let done = tasks.len() - refused.len();
    let problem =
        Problem::new(first.code, format!("{done} of {} tasks changed; {}", tasks.len(), named.join("; ")));
    Err(match &first.hint {
        Some(hint) => problem.with_hint(hint.clone()),
        None => problem,
    })
}

fn edit_task(visit: &PageContext<'_>, edit: EditTask) -> Result<(), Problem> {
    visit.edit(edit).map(drop)
}

/// Puts a task at a place in line: a priority, or the tag `next` or `later`.
fn move_task(visit: &PageContext<'_>, task: WireTaskId, place: &str) -> Result<(), Problem> {
    let line = visit.show(landfall_api::TaskAsked { task })?.line;
    let (tags, priority) = position_changes(&line, place);
    if tags.is_none() && priority.is_none() {
        return Ok(());
    }
    edit_task(visit, EditTask { tags, priority, ..EditTask::new(task) })
}

/// Whether a tag puts a task at the front or at the back of the line.
pub(super) fn is_place(tag: &str) -> bool {
    tag == "next" || tag == "later"
}

/// The tags and the priority that change when a task is put at a place.
fn position_changes(line: &TaskLine, place: &str) -> (Option<Vec<String>>, Option<u8>) {
    let mut tags: Vec<String> = line.tags.iter().filter(|tag| !is_place(tag)).cloned().collect();
    let priority = place.parse::<u8>().ok();
    if priority.is_none() {
        tags.push(place.to_owned());
    }
    ((tags != line.tags).then_some(tags), priority.filter(|it| *it != line.priority))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn line(id: u32, title: &str) -> TaskLine {
        TaskLine {
            id: WireTaskId(id),
            title: title.to_owned(),
            status: Status::Ready,
            wait: None,
            phase: None,
            size: None,
            tags: Vec::new(),
            priority: 5,
            needs: Vec::new(),
            parent: None,
            iterations: 0,
            landed: None,
        }
    }

    #[test]
    fn a_pasted_text_is_read_for_what_it_is() {
        let titles = |text: &str| -> Vec<String> {
            parse_pasted_text(text).expect(text).into_iter().map(|it| it.title).collect()
        };
        assert_eq!(titles("- One\n2. Two\n\n3 things to do\n"), ["One", "Two", "3 things to do"]);
        assert_eq!(titles("# Plan\n- [ ] One\n- [x] Over\n- [ ] Two\n"), ["One", "Two"]);
        assert_eq!(titles("+++\ntitle = \"One\"\n+++\nBody\n+++\ntitle = \"Two\"\n+++\n"), ["One", "Two"]);
        assert!(parse_pasted_text("{\"broken\": ").is_err());
        assert!(parse_pasted_text("- [x] Over\n").is_err());
        assert!(parse_pasted_text("+++\ntitel = \"x\"\n+++\n").is_err());
    }

    #[test]
    fn a_place_in_line_is_a_priority_or_a_tag() {
        let mut task = line(1, "x");
        assert_eq!(position_of(&task), "5");
        assert_eq!(position_changes(&task, "2"), (None, Some(2)));
        assert_eq!(position_changes(&task, "5"), (None, None));
        assert_eq!(position_changes(&task, "next"), (Some(vec!["next".to_owned()]), None));
        task.tags = vec!["later".to_owned(), "docs".to_owned()];
        assert_eq!(position_of(&task), "later");
        assert_eq!(position_changes(&task, "5"), (Some(vec!["docs".to_owned()]), None));
        let words =
            group_by_zone(vec![task]).into_iter().filter(|it| !it.tasks.is_empty()).map(|it| it.place.word);
        assert_eq!(words.collect::<Vec<_>>(), ["later"]);
    }

    #[test]
    fn titles_from_outside_stay_words() {
        let hostile = "<img src=x onerror=alert(1)>\u{202e}";
        let mut task = line(1, hostile);
        task.tags = vec![hostile.to_owned()];
        let page = BacklogPage {
            text: hostile.to_owned(),
            status: "all".to_owned(),
            tag: hostile.to_owned(),
            parent: String::new(),
            filtered: true,
            tasks: vec![task.clone()],
            next: Some("/backlog?after=T1".to_owned()),
            here: "/backlog".to_owned(),
            flows: vec![hostile.to_owned()],
            places: list_positions(),
            proposals: vec![Proposing {
                place: 1,
                goal: hostile.to_owned(),
                agent: hostile.to_owned(),
                since_ms: 0,
                told: vec![hostile.to_owned()],
                proposal: None,
                problem: Some(Problem::new(ProblemCode::AgentFailed, hostile).with_hint(hostile)),
            }],
            now_ms: 0,
        };
        let order = BacklogOrder { zones: group_by_zone(vec![task]), places: list_positions(), more: true };
        for html in [page.render().expect("drawn"), order.render().expect("drawn")] {
            assert!(!html.contains("<img") && !html.contains(" style="), "{html}");
            assert!(html.contains("&#60;img"), "{html}");
        }
    }
}

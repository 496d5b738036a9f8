//! `tasks.json` of Task Master: one list of tasks with subtasks, or several lists under their tags.

use super::json::{LocatedJson, parse};
use super::{ImportContent, ImportItem, ImportLink, ImportProblem, words};
use crate::NewTask;
use crate::nearest::nearest_word;

const USED: &[&str] = &[
    "id",
    "title",
    "description",
    "details",
    "testStrategy",
    "acceptanceCriteria",
    "status",
    "priority",
    "dependencies",
    "subtasks",
];

/// Bookkeeping of the other tool.
const SILENT: &[&str] =
    &["updatedAt", "createdAt", "parentId", "parentTaskId", "parentTask", "isSubtask", "previousStatus"];

#[derive(Clone, Copy, PartialEq)]
enum TaskmasterState {
    Open,
    Later,
    Over,
}

const STATES: &[(&str, TaskmasterState)] = &[
    ("pending", TaskmasterState::Open),
    ("in-progress", TaskmasterState::Open),
    ("blocked", TaskmasterState::Open), // what blocks it is among its dependencies
    ("deferred", TaskmasterState::Later),
    ("review", TaskmasterState::Later), // the work is there; whether more is wanted, a person says
    ("done", TaskmasterState::Over),
    ("completed", TaskmasterState::Over),
    ("cancelled", TaskmasterState::Over),
];

const PRIORITIES: &[(&str, u8)] = &[("critical", 0), ("high", 2), ("medium", 5), ("low", 8)];

/// The tag of a file that has none.
const MASTER: &str = "master";

pub(super) fn read(text: &str, list: Option<&str>) -> Result<ImportContent, ImportProblem> {
    let value = parse(text)?;
    let root = LocatedJson::at_root(&value);
    let object = root.as_object()?;
    let mut reading = ImportContent::default();
    let mut lists: Vec<(&str, LocatedJson<'_>)> = Vec::new();
    if let Some(tasks) = root.get("tasks") {
        lists.push((MASTER, tasks));
    } else {
        for key in object.keys() {
            match root.get(key).and_then(|it| it.get("tasks")) {
                Some(tasks) => lists.push((key, tasks)),
                None => reading.left_out.add(&format!("field `{}`", words::shorten_for_message(key))),
            }
        }
    }
    if lists.is_empty() {
        return Err(root
            .bad("there is no list of tasks")
            .with_hint("a tasks.json has `tasks`, or tags with `tasks` in them"));
    }
    if let Some(wanted) = list {
        let known: Vec<&str> = lists.iter().map(|(tag, _)| *tag).collect();
        if !known.contains(&wanted) {
            let hint = match nearest_word(&known, wanted) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("lists there are: {}", known.join(", ")),
            };
            return Err(root
                .bad(format!("there is no list `{}`", words::shorten_for_message(wanted)))
                .with_hint(hint));
        }
        lists.retain(|(tag, _)| *tag == wanted);
    }
    for (tag, tasks) in lists {
        for task in tasks.list()? {
            read_top_task(tag, &task, &mut reading)?;
        }
    }
    Ok(reading)
}

fn read_top_task(tag: &str, at: &LocatedJson<'_>, reading: &mut ImportContent) -> Result<(), ImportProblem> {
    let id = format!("{tag}/{}", read_id(at)?);
    let subtasks = at.get("subtasks").map_or(Ok(Vec::new()), |it| it.list())?;
    let siblings = subtasks.iter().map(read_id).collect::<Result<Vec<_>, _>>()?;
    if read_state(at)? == TaskmasterState::Over {
        // Parts of what is over are over, whatever they say: nobody ticks them one by one.
        reading.left_out.add("task that is done or cancelled");
        reading.over.extend(siblings.iter().map(|sub| format!("{id}.{sub}")));
        reading.over.insert(id);
        return Ok(());
    }
    let waits = read_needs(at, |name| format!("{tag}/{name}"))?;
    let whole = to_import_item(tag, id.clone(), at, waits, reading)?;
    reading.items.push(whole);
    for (sub, own) in subtasks.iter().zip(&siblings) {
        let part = format!("{id}.{own}");
        if read_state(sub)? == TaskmasterState::Over {
            reading.left_out.add("subtask that is done or cancelled");
            reading.over.insert(part);
            continue;
        }
        // `2` beside a subtask 2 is that one; else it is a task of the list, as `2.1` is a subtask of another.
        let waits = read_needs(sub, |name| match siblings.contains(name) {
            true => format!("{id}.{name}"),
            false => format!("{tag}/{name}"),
        })?;
        let mut part = to_import_item(tag, part, sub, waits, reading)?;
        part.parent = Some(ImportLink { to: id.clone(), place: sub.place() });
        reading.items.push(part);
    }
    Ok(())
}

fn read_id(at: &LocatedJson<'_>) -> Result<String, ImportProblem> {
    at.as_object()?;
    at.get("id").ok_or_else(|| at.bad("there is no `id`"))?.name()
}

fn read_state(at: &LocatedJson<'_>) -> Result<TaskmasterState, ImportProblem> {
    at.get("status").map_or(Ok(TaskmasterState::Open), |it| it.word("a status of Task Master", STATES))
}

fn read_needs(
    at: &LocatedJson<'_>,
    id_of: impl Fn(&String) -> String,
) -> Result<Vec<ImportLink>, ImportProblem> {
    let named = at.get("dependencies").map_or(Ok(Vec::new()), |it| it.list())?;
    named.iter().map(|it| Ok(ImportLink { to: id_of(&it.name()?), place: it.place() })).collect()
}

fn to_import_item(
    tag: &str,
    id: String,
    at: &LocatedJson<'_>,
    needs: Vec<ImportLink>,
    reading: &mut ImportContent,
) -> Result<ImportItem, ImportProblem> {
    at.count_others(USED, SILENT, &mut reading.left_out);
    let mut criteria = Vec::new();
    for key in ["acceptanceCriteria", "testStrategy"] {
        criteria.extend(at.get(key).map_or(Ok(Vec::new()), |it| it.read_criteria())?);
    }
    let task = NewTask {
        title: at.read_title("title")?,
        body: words::join_sections(&[("", at.text_at("description")?), ("Details", at.text_at("details")?)]),
        criteria,
        tags: words::to_tag(tag).filter(|_| tag != MASTER).into_iter().collect(),
        priority: at
            .get("priority")
            .map(|it| it.word("a priority of Task Master", PRIORITIES))
            .transpose()?,
        draft: read_state(at)? == TaskmasterState::Later,
        ..NewTask::default()
    };
    Ok(ImportItem { id, place: at.place(), task, needs, parent: None })
}

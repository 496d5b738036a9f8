//! `tasks.json` of Task Master: one list of tasks with subtasks, or several lists under their tags.

use super::json::{At, parse};
use super::{Bad, Item, Link, Reading, words};
use crate::NewTask;
use crate::nearest::nearest;

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
enum State {
    Open,
    Later,
    Over,
}

const STATES: &[(&str, State)] = &[
    ("pending", State::Open),
    ("in-progress", State::Open),
    ("blocked", State::Open), // what blocks it is among its dependencies
    ("deferred", State::Later),
    ("review", State::Later), // the work is there; whether more is wanted, a person says
    ("done", State::Over),
    ("completed", State::Over),
    ("cancelled", State::Over),
];

const PRIORITIES: &[(&str, u8)] = &[("critical", 0), ("high", 2), ("medium", 5), ("low", 8)];

/// The tag of a file that has none.
const MASTER: &str = "master";

pub(super) fn read(text: &str, list: Option<&str>) -> Result<Reading, Bad> {
    let value = parse(text)?;
    let root = At::root(&value);
    let object = root.object()?;
    let mut reading = Reading::default();
    let mut lists: Vec<(&str, At<'_>)> = Vec::new();
    if let Some(tasks) = root.get("tasks") {
        lists.push((MASTER, tasks));
    } else {
        for key in object.keys() {
            match root.get(key).and_then(|it| it.get("tasks")) {
                Some(tasks) => lists.push((key, tasks)),
                None => reading.left_out.add(&format!("field `{}`", words::short(key))),
            }
        }
    }
    if lists.is_empty() {
        return Err(root
            .bad("there is no list of tasks")
            .hint("a tasks.json has `tasks`, or tags with `tasks` in them"));
    }
    if let Some(wanted) = list {
        let known: Vec<&str> = lists.iter().map(|(tag, _)| *tag).collect();
        if !known.contains(&wanted) {
            let hint = match nearest(&known, wanted) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("lists there are: {}", known.join(", ")),
            };
            return Err(root.bad(format!("there is no list `{}`", words::short(wanted))).hint(hint));
        }
        lists.retain(|(tag, _)| *tag == wanted);
    }
    for (tag, tasks) in lists {
        for task in tasks.list()? {
            top(tag, &task, &mut reading)?;
        }
    }
    Ok(reading)
}

fn top(tag: &str, at: &At<'_>, reading: &mut Reading) -> Result<(), Bad> {
    let id = format!("{tag}/{}", number(at)?);
    let subtasks = at.get("subtasks").map_or(Ok(Vec::new()), |it| it.list())?;
    let siblings = subtasks.iter().map(number).collect::<Result<Vec<_>, _>>()?;
    if state(at)? == State::Over {
        // Parts of what is over are over, whatever they say: nobody ticks them one by one.
        reading.left_out.add("task that is done or cancelled");
        reading.over.extend(siblings.iter().map(|sub| format!("{id}.{sub}")));
        reading.over.insert(id);
        return Ok(());
    }
    let waits = needs(at, |name| format!("{tag}/{name}"))?;
    let whole = item(tag, id.clone(), at, waits, reading)?;
    reading.items.push(whole);
    for (sub, own) in subtasks.iter().zip(&siblings) {
        let part = format!("{id}.{own}");
        if state(sub)? == State::Over {
            reading.left_out.add("subtask that is done or cancelled");
            reading.over.insert(part);
            continue;
        }
        // `2` beside a subtask 2 is that one; else it is a task of the list, as `2.1` is a subtask of another.
        let waits = needs(sub, |name| match siblings.contains(name) {
            true => format!("{id}.{name}"),
            false => format!("{tag}/{name}"),
        })?;
        let mut part = item(tag, part, sub, waits, reading)?;
        part.parent = Some(Link { to: id.clone(), place: sub.place() });
        reading.items.push(part);
    }
    Ok(())
}

fn number(at: &At<'_>) -> Result<String, Bad> {
    at.object()?;
    at.get("id").ok_or_else(|| at.bad("there is no `id`"))?.name()
}

fn state(at: &At<'_>) -> Result<State, Bad> {
    at.get("status").map_or(Ok(State::Open), |it| it.word("a status of Task Master", STATES))
}

fn needs(at: &At<'_>, id_of: impl Fn(&String) -> String) -> Result<Vec<Link>, Bad> {
    let named = at.get("dependencies").map_or(Ok(Vec::new()), |it| it.list())?;
    named.iter().map(|it| Ok(Link { to: id_of(&it.name()?), place: it.place() })).collect()
}

fn item(tag: &str, id: String, at: &At<'_>, needs: Vec<Link>, reading: &mut Reading) -> Result<Item, Bad> {
    at.count_others(USED, SILENT, &mut reading.left_out);
    let mut criteria = Vec::new();
    for key in ["acceptanceCriteria", "testStrategy"] {
        criteria.extend(at.get(key).map_or(Ok(Vec::new()), |it| it.criteria())?);
    }
    let task = NewTask {
        title: at.title("title")?,
        body: words::body(&[("", at.text_of("description")?), ("Details", at.text_of("details")?)]),
        criteria,
        tags: words::tag(tag).filter(|_| tag != MASTER).into_iter().collect(),
        priority: at
            .get("priority")
            .map(|it| it.word("a priority of Task Master", PRIORITIES))
            .transpose()?,
        draft: state(at)? == State::Later,
        ..NewTask::default()
    };
    Ok(Item { id, place: at.place(), task, needs, parent: None })
}

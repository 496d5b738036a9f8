//! `prd.json`: user stories for a loop that takes one after the other.

use serde_json::Value;

use super::json::{At, parse};
use super::{Bad, Item, Link, Reading, words};
use crate::NewTask;

/// Where the stories are.
pub(super) const STORIES: &[&str] = &["userStories", "user_stories", "stories"];

const NEEDS: &[&str] = &["dependencies", "dependsOn", "depends_on"];

const CRITERIA: &[&str] = &["acceptanceCriteria", "acceptance_criteria", "steps"];

const USED: &[&str] = &[
    "id",
    "title",
    "description",
    "acceptanceCriteria",
    "acceptance_criteria",
    "steps",
    "priority",
    "passes",
    "status",
    "notes",
    "tags",
    "category",
    "dependencies",
    "dependsOn",
    "depends_on",
];

/// Bookkeeping of the loop.
const SILENT: &[&str] = &["retries", "attempts", "lastResult", "completedAt", "startedAt"];

const HEAD: &[&str] = &["userStories", "user_stories", "stories", "branchName", "project", "description"];

/// Bookkeeping about the document.
const HEAD_SILENT: &[&str] = &["schemaVersion", "version", "created", "createdAt", "updatedAt", "run"];

const STATES: &[(&str, State)] = &[
    ("open", State::Open),
    ("todo", State::Open),
    ("pending", State::Open),
    ("in_progress", State::Open),
    ("in-progress", State::Open),
    ("blocked", State::Open),
    ("failed", State::Open),
    ("deferred", State::Later),
    ("done", State::Over),
    ("complete", State::Over),
    ("completed", State::Over),
    ("passed", State::Over),
    ("cancelled", State::Over),
];

#[derive(Clone, Copy, PartialEq)]
enum State {
    Open,
    Later,
    Over,
}

const PRIORITIES: &[(&str, u8)] = &[("critical", 0), ("high", 2), ("medium", 5), ("low", 8)];

pub(super) fn read(text: &str) -> Result<Reading, Bad> {
    let value = parse(text)?;
    let root = At::root(&value);
    let mut reading = Reading::default();
    let stories = match root.value {
        Value::Array(_) => root.clone(),
        _ => root.first(STORIES).ok_or_else(|| {
            root.bad("there are no `userStories`").hint("a prd.json has a list of user stories")
        })?,
    };
    root.count_others(HEAD, HEAD_SILENT, &mut reading.left_out);
    // Every document counts its stories from one: the branch or the project tells them apart.
    let of = root.first(&["branchName", "project"]).map(|it| it.name()).transpose()?;
    let of = of.map(|of| of + "/").unwrap_or_default();
    let about = root.text_of("description")?;
    let mut told: Vec<(u64, Item)> = Vec::new();
    let stories = stories.list()?;
    for (place, at) in (1..).zip(&stories) {
        if let Some((rank, item)) = story(&of, about, place, at, &mut reading)? {
            told.push((rank, item));
        }
    }
    told.sort_by_key(|(rank, _)| *rank);
    reading.items = told.into_iter().map(|(_, item)| item).collect();
    if !stories.iter().any(|it| it.first(NEEDS).is_some()) {
        chain(&mut reading.items);
    }
    Ok(reading)
}

/// Stories without dependencies are written to be done in their order, each on top of the one before.
fn chain(items: &mut [Item]) {
    for place in 1..items.len() {
        let link = Link { to: items[place - 1].id.clone(), place: items[place].place.clone() };
        items[place].needs.push(link);
    }
}

fn story(
    of: &str,
    about: &str,
    place: u64,
    at: &At<'_>,
    reading: &mut Reading,
) -> Result<Option<(u64, Item)>, Bad> {
    at.object()?;
    let own = at.get("id").map_or_else(|| Ok(place.to_string()), |it| it.name())?;
    let id = format!("{of}{own}");
    let passes = at.get("passes").map_or(Ok(false), |it| it.whether())?;
    let state = at.get("status").map_or(Ok(State::Open), |it| it.word("a status of a story", STATES))?;
    if passes || state == State::Over {
        reading.left_out.add("story that passes");
        reading.over.insert(id);
        return Ok(None);
    }
    at.count_others(USED, SILENT, &mut reading.left_out);
    let description = at.text_of("description")?;
    let title = match at.get("title") {
        Some(_) => at.title("title")?,
        None => words::one_line(description),
    };
    if title.is_empty() {
        return Err(at.bad("there is no `title`"));
    }
    let (rank, priority) = match at.get("priority") {
        Some(it) if it.value.is_string() => (place, Some(it.word("a priority", PRIORITIES)?)),
        Some(it) => (it.whole()?, None),
        None => (place, None),
    };
    let mut tags = Vec::new();
    for tag in at.get("tags").map_or(Ok(Vec::new()), |it| it.list())? {
        tags.extend(words::tag(tag.text()?));
    }
    tags.extend(words::tag(at.text_of("category")?));
    let part_of = if about.is_empty() { String::new() } else { format!("This is a part of: {about}") };
    let task = NewTask {
        title,
        body: words::body(&[("", description), ("Notes", at.text_of("notes")?), ("", &part_of)]),
        criteria: at.first(CRITERIA).map_or(Ok(Vec::new()), |it| it.criteria())?,
        tags,
        priority,
        draft: state == State::Later,
        ..NewTask::default()
    };
    let mut needs = Vec::new();
    for it in at.first(NEEDS).map_or(Ok(Vec::new()), |it| it.list())? {
        needs.push(Link { to: format!("{of}{}", it.name()?), place: it.place() });
    }
    Ok(Some((rank, Item { id, place: at.place(), task, needs, parent: None })))
}

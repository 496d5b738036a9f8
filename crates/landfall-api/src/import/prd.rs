//! `prd.json`: user stories for a loop that takes one after the other.

use serde_json::Value;

use super::json::{LocatedJson, parse};
use super::{ImportContent, ImportItem, ImportLink, ImportProblem, words};
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

const STATES: &[(&str, PrdState)] = &[
    ("open", PrdState::Open),
    ("todo", PrdState::Open),
    ("pending", PrdState::Open),
    ("in_progress", PrdState::Open),
    ("in-progress", PrdState::Open),
    ("blocked", PrdState::Open),
    ("failed", PrdState::Open),
    ("deferred", PrdState::Later),
    ("done", PrdState::Over),
    ("complete", PrdState::Over),
    ("completed", PrdState::Over),
    ("passed", PrdState::Over),
    ("cancelled", PrdState::Over),
];

#[derive(Clone, Copy, PartialEq)]
enum PrdState {
    Open,
    Later,
    Over,
}

const PRIORITIES: &[(&str, u8)] = &[("critical", 0), ("high", 2), ("medium", 5), ("low", 8)];

pub(super) fn read(text: &str) -> Result<ImportContent, ImportProblem> {
    let value = parse(text)?;
    let root = LocatedJson::at_root(&value);
    let mut reading = ImportContent::default();
    let stories = match root.value {
        Value::Array(_) => root.clone(),
        _ => root.first(STORIES).ok_or_else(|| {
            root.bad("there are no `userStories`").with_hint("a prd.json has a list of user stories")
        })?,
    };
    root.count_others(HEAD, HEAD_SILENT, &mut reading.left_out);
    // Every document counts its stories from one: the branch or the project tells them apart.
    let of = root.first(&["branchName", "project"]).map(|it| it.name()).transpose()?;
    let of = of.map(|of| of + "/").unwrap_or_default();
    let about = root.text_at("description")?;
    let mut told: Vec<(u64, ImportItem)> = Vec::new();
    let stories = stories.list()?;
    for (place, at) in (1..).zip(&stories) {
        if let Some((rank, item)) = read_story(&of, about, place, at, &mut reading)? {
            told.push((rank, item));
        }
    }
    told.sort_by_key(|(rank, _)| *rank);
    reading.items = told.into_iter().map(|(_, item)| item).collect();
    if !stories.iter().any(|it| it.first(NEEDS).is_some()) {
        chain_stories(&mut reading.items);
    }
    Ok(reading)
}

/// Stories without dependencies are written to be done in their order, each on top of the one before.
fn chain_stories(items: &mut [ImportItem]) {
    for place in 1..items.len() {
        let link = ImportLink { to: items[place - 1].id.clone(), place: items[place].place.clone() };
        items[place].needs.push(link);
    }
}

fn read_story(
    of: &str,
    about: &str,
    place: u64,
    at: &LocatedJson<'_>,
    reading: &mut ImportContent,
) -> Result<Option<(u64, ImportItem)>, ImportProblem> {
    at.as_object()?;
    let own = at.get("id").map_or_else(|| Ok(place.to_string()), |it| it.name())?;
    let id = format!("{of}{own}");
    let passes = at.get("passes").map_or(Ok(false), |it| it.as_bool())?;
    let state = at.get("status").map_or(Ok(PrdState::Open), |it| it.word("a status of a story", STATES))?;
    if passes || state == PrdState::Over {
        reading.left_out.add("story that passes");
        reading.over.insert(id);
        return Ok(None);
    }
    at.count_others(USED, SILENT, &mut reading.left_out);
    let description = at.text_at("description")?;
    let title = match at.get("title") {
        Some(_) => at.read_title("title")?,
        None => words::one_line(description),
    };
    if title.is_empty() {
        return Err(at.bad("there is no `title`"));
    }
    let (rank, priority) = match at.get("priority") {
        Some(it) if it.value.is_string() => (place, Some(it.word("a priority", PRIORITIES)?)),
        Some(it) => (it.as_whole_number()?, None),
        None => (place, None),
    };
    let mut tags = Vec::new();
    for tag in at.get("tags").map_or(Ok(Vec::new()), |it| it.list())? {
        tags.extend(words::to_tag(tag.text()?));
    }
    tags.extend(words::to_tag(at.text_at("category")?));
    let part_of = if about.is_empty() { String::new() } else { format!("This is a part of: {about}") };
    let task = NewTask {
        title,
        body: words::join_sections(&[("", description), ("Notes", at.text_at("notes")?), ("", &part_of)]),
        criteria: at.first(CRITERIA).map_or(Ok(Vec::new()), |it| it.read_criteria())?,
        tags,
        priority,
        draft: state == PrdState::Later,
        ..NewTask::default()
    };
    let mut needs = Vec::new();
    for it in at.first(NEEDS).map_or(Ok(Vec::new()), |it| it.list())? {
        needs.push(ImportLink { to: format!("{of}{}", it.name()?), place: it.place() });
    }
    Ok(Some((rank, ImportItem { id, place: at.place(), task, needs, parent: None })))
}

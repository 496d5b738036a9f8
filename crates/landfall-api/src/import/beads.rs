//! Issues of beads: a JSON object on each line.

use serde_json::Value;

use super::json::{LocatedJson, json_problem};
use super::{ImportContent, ImportItem, ImportLink, ImportProblem, words};
use crate::{NewTask, Size};

/// Fields that become something here.
const USED: &[&str] = &[
    "_type",
    "id",
    "title",
    "description",
    "design",
    "acceptance_criteria",
    "notes",
    "status",
    "priority",
    "issue_type",
    "estimated_minutes",
    "labels",
    "dependencies",
    "parent",
    "pinned",
    "is_template",
    "ephemeral",
];

/// Bookkeeping of the other tool.
const SILENT: &[&str] = &[
    "content_hash",
    "created_at",
    "created_by",
    "updated_at",
    "started_at",
    "closed_at",
    "close_reason",
    "closed_by_session",
    "owner",
    "source_repo",
    "source_system",
    "dependency_count",
    "dependent_count",
    "comment_count",
    "compaction_level",
    "compacted_at",
    "compacted_at_commit",
    "original_size",
];

#[derive(Clone, Copy, PartialEq)]
enum BeadsState {
    Open,
    Later,
    Over,
    NotWork,
}

const STATES: &[(&str, BeadsState)] = &[
    ("open", BeadsState::Open),
    ("in_progress", BeadsState::Open),
    ("blocked", BeadsState::Open), // what blocks it is among its dependencies
    ("hooked", BeadsState::Open),
    ("deferred", BeadsState::Later),
    ("closed", BeadsState::Over),
    ("tombstone", BeadsState::Over),
    ("pinned", BeadsState::NotWork),
];

/// Kinds of issues that nobody works on. Others are work: a project may have kinds of its own.
const NOT_WORK: &[&str] =
    &["message", "molecule", "gate", "event", "milestone", "agent", "role", "rig", "convoy", "merge-request"];

#[derive(Clone, Copy)]
enum BeadsRelation {
    Need,
    Parent,
}

const TIES: &[(&str, BeadsRelation)] = &[
    ("blocks", BeadsRelation::Need),
    ("waits-for", BeadsRelation::Need),
    ("parent-child", BeadsRelation::Parent),
];

pub(super) fn read(text: &str) -> Result<ImportContent, ImportProblem> {
    let mut reading = ImportContent::default();
    for (line, text) in (1..).zip(text.lines()) {
        if text.trim().is_empty() {
            continue;
        }
        let value: Value = serde_json::from_str(text).map_err(|error| {
            json_problem(line, &error).with_hint("an export of beads has one JSON object on each line")
        })?;
        read_issue(&LocatedJson::on_line(line, &value), &mut reading)?;
    }
    Ok(reading)
}

fn read_issue(at: &LocatedJson<'_>, reading: &mut ImportContent) -> Result<(), ImportProblem> {
    at.as_object()?;
    match at.get("_type").map(|it| it.text()).transpose()? {
        None | Some("issue") => {}
        Some(other) => {
            reading.left_out.add(&format!("line of type `{}`", words::shorten_for_message(other)));
            return Ok(());
        }
    }
    let id = at.get("id").ok_or_else(|| at.bad("there is no `id`"))?.name()?;
    let state = at.get("status").map_or(Ok(BeadsState::Open), |it| it.word("a status of beads", STATES))?;
    let kind = at.text_at("issue_type")?;
    let flag = |key: &str| at.get(key).map_or(Ok(false), |it| it.as_bool());
    let aside = flag("pinned")? || flag("is_template")? || flag("ephemeral")?;
    if state == BeadsState::Over {
        reading.left_out.add("closed issue");
        reading.over.insert(id);
        return Ok(());
    }
    if aside || state == BeadsState::NotWork || NOT_WORK.contains(&kind) {
        reading.left_out.add("issue that is no work");
        reading.over.insert(id);
        return Ok(());
    }
    at.count_others(USED, SILENT, &mut reading.left_out);
    let mut task = NewTask {
        title: at.read_title("title")?,
        body: words::join_sections(&[
            ("", at.text_at("description")?),
            ("Design", at.text_at("design")?),
            ("Notes", at.text_at("notes")?),
        ]),
        criteria: at.get("acceptance_criteria").map_or(Ok(Vec::new()), |it| it.read_criteria())?,
        size: at.get("estimated_minutes").map(|it| it.as_whole_number()).transpose()?.map(size_for_minutes),
        priority: at.get("priority").map(|it| parse_priority(&it)).transpose()?,
        draft: state == BeadsState::Later || kind == "epic", // an epic without parts wants splitting first
        ..NewTask::default()
    };
    let labels = at.get("labels").map_or(Ok(Vec::new()), |it| it.list())?;
    for label in labels.iter().map(LocatedJson::text).collect::<Result<Vec<_>, _>>()? {
        task.tags.extend(words::to_tag(label).filter(|tag| !task.tags.contains(tag)));
    }
    if !["", "task", "epic"].contains(&kind) {
        task.tags.extend(words::to_tag(kind).filter(|tag| !task.tags.contains(tag)));
    }
    let mut item = ImportItem { id, place: at.place(), task, needs: Vec::new(), parent: None };
    for tie in at.get("dependencies").map_or(Ok(Vec::new()), |it| it.list())? {
        read_dependency(&tie, &mut item, reading)?;
    }
    if let (None, Some(parent)) = (&item.parent, at.get("parent")) {
        item.parent = Some(ImportLink { to: parent.name()?, place: parent.place() });
    }
    reading.items.push(item);
    Ok(())
}

fn read_dependency(
    tie: &LocatedJson<'_>,
    item: &mut ImportItem,
    reading: &mut ImportContent,
) -> Result<(), ImportProblem> {
    tie.as_object()?;
    let to = tie.first(&["depends_on_id", "id"]).ok_or_else(|| tie.bad("there is no `depends_on_id`"))?;
    let link = ImportLink { to: to.name()?, place: to.place() };
    let kind = tie.first(&["type", "dependency_type"]).map_or(Ok("blocks"), |it| it.text())?;
    match TIES.iter().find(|(word, _)| *word == kind) {
        Some((_, BeadsRelation::Need)) => item.needs.push(link),
        Some((_, BeadsRelation::Parent)) => item.parent = Some(link),
        None => reading.left_out.add(&format!("link of type `{}`", words::shorten_for_message(kind))),
    }
    Ok(())
}

/// 0 to 4, the middle is 2; ours are 0 to 9, the middle is 5.
fn parse_priority(at: &LocatedJson<'_>) -> Result<u8, ImportProblem> {
    const OURS: [u8; 5] = [0, 2, 5, 7, 9];
    let theirs = at.as_whole_number()?;
    usize::try_from(theirs).ok().and_then(|theirs| OURS.get(theirs).copied()).ok_or_else(|| {
        at.bad(format!("priority {theirs} is out of range")).with_hint("beads has 0 (critical) to 4")
    })
}

fn size_for_minutes(minutes: u64) -> Size {
    match minutes {
        0..=30 => Size::XS,
        31..=120 => Size::S,
        121..=300 => Size::M,
        301..=960 => Size::L,
        _ => Size::XL,
    }
}

//! Giving disk space back where it is proved that nothing is lost. What a dry run lists is what the real one removes:
//! both follow the same plan.

use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use landfall_api::{self as api, Problem, ProblemCode};
use landfall_engine::host::disk;
use landfall_engine::host::git::{RefName, Signature};
use landfall_engine::host::sitter::{self, Found};
use landfall_engine::model::{Commit, EndKind, Ending, News, State, Task, TaskId};
use landfall_engine::settings::Keep;
use landfall_engine::store::Reader;
use landfall_engine::{Ask, Engine, OpenError};

use super::desk::{age_ms, open};
use super::doctor::folders;
use super::engine_at::EngineAt;
use super::place::Place;
use super::reads::Look;
use super::{moment, problem};

/// One thing that may go.
struct Item {
    what: What,
    path: PathBuf,
    bytes: u64,
    why_safe: String,
}

enum What {
    /// The workspace of a task that is over.
    Workspace(TaskId),
    /// The record of a run of an agent or a check.
    Record,
    /// Clean checkouts that wait for the next task.
    Warm,
}

/// Says what would be removed.
pub(super) fn dry_run(look: &Look<'_>) -> Result<api::Reclaimed, Problem> {
    let items = match look.place.reader()? {
        Some(reader) => plan(look.place, &reader, &keep(look.place)?)?,
        None => Vec::new(),
    };
    Ok(answer(true, &items))
}

/// Removes it.
pub(super) fn reclaim(place: &Place) -> Result<api::Reclaimed, Problem> {
    let Some(reader) = place.reader()? else { return Ok(answer(false, &[])) };
    if EngineAt::look(place).is_alive() {
        return Err(Problem::new(
            ProblemCode::NotNow,
            "a run is under way, and this needs the project at rest",
        )
        .hint("wait until the run is over; `landfall reclaim --dry-run` works meanwhile"));
    }
    let mut engine = open(place, "landfall reclaim").map_err(|error: OpenError| problem::open(&error))?;
    // The plan is made under the lock: nothing can start between looking and removing.
    let items = plan(place, &reader, &keep(place)?)?;
    for item in &items {
        remove(&mut engine, item)?;
    }
    Ok(answer(false, &items))
}

fn keep(place: &Place) -> Result<Keep, Problem> {
    Ok(landfall_engine::engine::load_settings(&place.root).map_err(|error| problem::open(&error))?.keep)
}

fn answer(dry_run: bool, items: &[Item]) -> api::Reclaimed {
    let lines = items.iter().map(|item| api::ReclaimedItem {
        what: match item.what {
            What::Workspace(task) => format!("workspace of {task}"),
            What::Record => "record of a run".to_owned(),
            What::Warm => "clean checkouts".to_owned(),
        },
        path: item.path.display().to_string(),
        bytes: item.bytes,
        why_safe: item.why_safe.clone(),
    });
    api::Reclaimed { dry_run, items: lines.collect(), bytes: items.iter().map(|item| item.bytes).sum() }
}

fn plan(place: &Place, reader: &Reader, keep: &Keep) -> Result<Vec<Item>, Problem> {
    let mut items = Vec::new();
    for name in folders(&place.folder.workspaces()) {
        let Ok(id) = name.parse::<TaskId>() else { continue }; // not one of ours: not ours to judge
        let Some(task) = reader.task(id).map_err(|error| problem::store(&error))? else { continue };
        let Some(why_safe) = may_go(&task, keep) else { continue };
        if works(place, &name) {
            continue;
        }
        let path = place.folder.workspaces().join(&name);
        items.push(Item { what: What::Workspace(id), bytes: size(&path), path, why_safe });
    }
    for name in folders(&place.folder.attempts()) {
        let path = place.folder.attempts().join(&name);
        let Some(why_safe) = record_may_go(reader, &name, &path, keep)? else { continue };
        items.push(Item { what: What::Record, bytes: size(&path), path, why_safe });
    }
    let warm = place.folder.workspaces().join(".engine/warm");
    let many = folders(&warm).len();
    if many > 0 {
        let why_safe = format!(
            "{} without any work in them; they only save time",
            moment::count(many as u64, "checkout")
        );
        items.push(Item { what: What::Warm, bytes: size(&warm), path: warm, why_safe });
    }
    Ok(items)
}

/// Why the workspace of a task may go, if it may.
fn may_go(task: &Task, keep: &Keep) -> Option<String> {
    let State::Ended(Ending { kind, .. }) = &task.state else { return None };
    let kept = format!("unmerged work in it is kept under {} first", kept_ref(task));
    match (kind, &task.landed) {
        (EndKind::Done, Some(landed)) => {
            Some(format!("{} landed as {}; {kept}", task.id, landed.commit.short()))
        }
        (EndKind::Done, None) => Some(format!("{} is done; {kept}", task.id)),
        (EndKind::Cancelled, _) => Some(format!("{} was cancelled; {kept}", task.id)),
        (EndKind::Failed | EndKind::Timeout | EndKind::Blocked, _)
            if age_ms(task.changed.0) > keep.failed_ms =>
        {
            let limit = moment::span(keep.failed_ms);
            Some(format!("{} ended more than {limit} ago (`keep.failed`); {kept}", task.id))
        }
        (EndKind::Failed | EndKind::Timeout | EndKind::Blocked, _) => None,
    }
}

fn kept_ref(task: &Task) -> String {
    format!("refs/landfall/kept/t{}/reclaimed-{}", task.id.0, task.attempt)
}

/// Whether a process of the task may still work. Unsure counts as yes. What a sitter that vanished left behind was
/// ended by the engine before it took the attempt for lost.
fn works(place: &Place, task: &str) -> bool {
    let attempts = place.folder.attempts();
    let of_task = folders(&attempts).into_iter().filter(|name| name.split('-').next() == Some(task));
    of_task.map(|name| sitter::find(&attempts.join(name))).any(|found| match found {
        Ok(Found::Never | Found::Ended(_) | Found::Vanished) => false,
        Ok(Found::Running(_) | Found::Starting) | Err(_) => true,
    })
}

/// Why the record of a run may go, if it may.
fn record_may_go(
    reader: &Reader,
    name: &str,
    path: &std::path::Path,
    keep: &Keep,
) -> Result<Option<String>, Problem> {
    if let Ok(id) = name.split('-').next().unwrap_or_default().parse::<TaskId>() {
        let task = reader.task(id).map_err(|error| problem::store(&error))?;
        if !task.is_some_and(|task| task.is_over()) {
            return Ok(None);
        }
    }
    let written = path.metadata().and_then(|meta| meta.modified());
    let Some(since) = written.ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok()) else { return Ok(None) };
    let since_ms = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    if age_ms(since_ms) <= keep.attempts_ms {
        return Ok(None);
    }
    match sitter::find(path) {
        Ok(Found::Never | Found::Ended(_) | Found::Vanished) => {}
        Ok(Found::Running(_) | Found::Starting) | Err(_) => return Ok(None),
    }
    let limit = moment::span(keep.attempts_ms);
    Ok(Some(format!(
        "its task is over and it is older than {limit} (`keep.attempts`); what happened is in the journal"
    )))
}

fn size(path: &std::path::Path) -> u64 {
    disk::dir_size(path).unwrap_or(0) // it shrinks while we look; the number is for people
}

fn remove(engine: &mut Engine, item: &Item) -> Result<(), Problem> {
    match item.what {
        What::Workspace(id) => {
            let site = engine.site().clone();
            let Some(workspace) = site.pool.existing(&id.to_string()) else {
                // Never ready: no agent has worked in it. Its next start clears it away by itself.
                return Ok(());
            };
            let task = engine.world().get(id).cloned().ok_or_else(|| problem::unknown_task(id))?;
            let keep = RefName::new(&kept_ref(&task)).expect("made of our own words");
            let by = Signature::landfall(moment::now_ms());
            let kept = site.pool.remove(workspace, &keep, &by).map_err(|error| {
                Problem::new(ProblemCode::GitFailed, problem::chain(&error))
                    .hint("its workspace was left as it is; `landfall doctor` says more")
            })?;
            let kept = kept.refs.first().map(|(_, oid)| Commit::new(oid.as_str()));
            let news = News::WorkspaceRemoved { kept };
            match engine.once(Ask::Tell(vec![id], Box::new(news))) {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => Err(problem::ask(&error)),
                Err(error) => Err(problem::store(&error)),
            }
        }
        What::Record => {
            std::fs::remove_dir_all(&item.path).map_err(|error| problem::io("remove", &item.path, &error))
        }
        What::Warm => {
            engine.site().pool.drop_warm().map_err(|error| problem::git(&error))?;
            Ok(())
        }
    }
}

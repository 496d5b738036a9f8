//! Giving disk space back where it is proved that nothing is lost. What a dry run lists is what the real one removes:
//! both follow the same plan, which is the engine's own.

use std::collections::BTreeMap;
use std::sync::Arc;

use landfall_api::{self as api, Problem, ProblemCode};
use landfall_engine::disk::{self, Inventory, Item, Kind, Reach};
use landfall_engine::host::git::Oid;
use landfall_engine::model::{Commit, News, TaskId, Timestamp};
use landfall_engine::settings::Keep;
use landfall_engine::store::Reader;
use landfall_engine::{Ask, Engine, OpenError};

use super::desk::open;
use super::engine_at::EngineAt;
use super::place::Place;
use super::reads::Look;
use super::{moment, problem};

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
    if place.lock.is_none() && EngineAt::look(place).is_alive() {
        return Err(Problem::new(
            ProblemCode::NotNow,
            "a run is under way, and this needs the project at rest",
        )
        .hint("wait until the run is over; `landfall project reclaim --dry-run` works meanwhile"));
    }
    let mut engine =
        open(place, "landfall project reclaim").map_err(|error: OpenError| problem::open(&error))?;
    // The plan is made under the lock: nothing can start between looking and removing.
    let items = plan(place, &reader, &keep(place)?)?;
    for item in &items {
        remove(&mut engine, item)?;
    }
    Ok(answer(false, &items))
}

/// Gives the workspaces of these tasks back, as far as nothing is lost; how many commits of each are not on the base.
pub(super) fn workspaces(place: &Place, tasks: &[TaskId]) -> Result<BTreeMap<TaskId, u64>, Problem> {
    let Some(reader) = place.reader()? else { return Ok(BTreeMap::new()) };
    let mut engine = open(place, "landfall cancel").map_err(|error: OpenError| problem::open(&error))?;
    let mut gone = BTreeMap::new();
    for item in plan(place, &reader, &keep(place)?)? {
        let Kind::Workspace(id) = item.kind else { continue };
        if !tasks.contains(&id) {
            continue;
        }
        let base = engine.world().get(id).and_then(|task| task.workspace.clone());
        let kept = remove(&mut engine, &item)?;
        gone.insert(id, unmerged(&engine, base.as_ref(), kept.as_ref()));
    }
    Ok(gone)
}

/// How many commits of what was kept are not on the base; what cannot be counted is not.
fn unmerged(engine: &Engine, base: Option<&Commit>, kept: Option<&Commit>) -> u64 {
    let oid = |commit: Option<&Commit>| commit?.as_str().parse::<Oid>().ok();
    let (Some(base), Some(kept)) = (oid(base), oid(kept)) else { return 0 };
    engine.site().store.ahead(&base, &kept).map_or(0, u64::from)
}

fn keep(place: &Place) -> Result<Keep, Problem> {
    Ok(landfall_engine::engine::load_settings(&place.root).map_err(|error| problem::open(&error))?.keep)
}

fn plan(place: &Place, reader: &Reader, keep: &Keep) -> Result<Vec<Item>, Problem> {
    let now = Timestamp(moment::now_ms());
    let inventory = Inventory { folder: &place.folder, keep, now, reach: Reach::AtRest };
    let task = |id: TaskId| Ok(reader.task(id).map_err(|error| problem::store(&error))?.map(Arc::new));
    inventory.plan(&task)
}

fn answer(dry_run: bool, items: &[Item]) -> api::Reclaimed {
    let lines = items.iter().map(|item| api::ReclaimedItem {
        what: match item.kind {
            Kind::Workspace(task) => format!("workspace of {task}"),
            Kind::Record => "record of a run".to_owned(),
            Kind::Temporary | Kind::Warm => item.kind.word().to_owned(),
            Kind::Lane => "checkout for checks".to_owned(),
        },
        path: item.path.display().to_string(),
        bytes: item.bytes,
        why_safe: item.why_safe.clone(),
    });
    let mut kinds: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for item in items {
        let (count, bytes) = kinds.entry(item.kind.word()).or_default();
        (*count, *bytes) = (*count + 1, *bytes + item.bytes);
    }
    let kind = |(kind, (count, bytes)): (&str, (u64, u64))| api::ReclaimedKind {
        kind: kind.to_owned(),
        count,
        bytes,
    };
    api::Reclaimed {
        dry_run,
        items: lines.collect(),
        bytes: items.iter().map(|item| item.bytes).sum(),
        kinds: kinds.into_iter().map(kind).collect(),
    }
}

/// Removes one thing; the work of a workspace that was kept, if any was.
fn remove(engine: &mut Engine, item: &Item) -> Result<Option<Commit>, Problem> {
    let task = match item.kind {
        Kind::Workspace(id) => engine.world().get(id).cloned(),
        Kind::Record | Kind::Temporary | Kind::Warm | Kind::Lane => None,
    };
    let removed = disk::remove(engine.site(), item, task.as_deref()).map_err(|error| {
        Problem::new(ProblemCode::GitFailed, error)
            .hint("it was left as it is, and what comes after it too; `landfall doctor` says more")
    })?;
    let (Some(news), Some(task)) = (removed, task) else { return Ok(None) };
    let kept = match &news {
        News::WorkspaceRemoved { kept } => kept.clone(),
        _ => None,
    };
    match engine.once(Ask::Tell(vec![task.id], Box::new(news))) {
        Ok(Ok(_)) => Ok(kept),
        Ok(Err(error)) => Err(problem::ask(&error)),
        Err(error) => Err(problem::store(&error)),
    }
}

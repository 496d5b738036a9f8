//! Giving disk space back where it is proved that nothing is lost. What a dry run lists is what the real one removes:
//! both follow the same plan, which is the engine's own.

use std::collections::BTreeMap;

use landfall_api::{self as api, Problem, ProblemCode};
use landfall_engine::disk::{self, DiskItem, DiskItemKind};
use landfall_engine::host::git::Oid;
use landfall_engine::model::{Commit, News, TaskId};
use landfall_engine::{Engine, EngineRequest, OpenError};

use crate::project::engine_at::EngineLocation;
use crate::project::open_engine::open;
use crate::project::place::ProjectLocation;
use crate::project::problems;
use crate::query::reclaimable::{load_retention, plan, to_reclaimed};

/// Removes it.
pub(crate) fn reclaim_disk(place: &ProjectLocation) -> Result<api::Reclaimed, Problem> {
    let Some(reader) = place.open_reader()? else { return Ok(to_reclaimed(false, &[])) };
    if place.lock.is_none() && EngineLocation::locate(place).is_alive() {
        return Err(Problem::new(
            ProblemCode::NotNow,
            "a run is under way, and this needs the project at rest",
        )
        .with_hint("wait until the run is over; `landfall project reclaim --dry-run` works meanwhile"));
    }
    let mut engine =
        open(place, "landfall project reclaim").map_err(|error: OpenError| problems::open(&error))?;
    // The plan is made under the lock: nothing can start between looking and removing.
    let items = plan(place, &reader, &load_retention(place)?)?;
    for item in &items {
        remove(&mut engine, item)?;
    }
    Ok(to_reclaimed(false, &items))
}

/// Gives the workspaces of these tasks back, as far as nothing is lost; how many commits of each are not on the base.
pub(crate) fn reclaim_workspaces(
    place: &ProjectLocation,
    tasks: &[TaskId],
) -> Result<BTreeMap<TaskId, u64>, Problem> {
    let Some(reader) = place.open_reader()? else { return Ok(BTreeMap::new()) };
    let mut engine = open(place, "landfall cancel").map_err(|error: OpenError| problems::open(&error))?;
    let mut gone = BTreeMap::new();
    for item in plan(place, &reader, &load_retention(place)?)? {
        let DiskItemKind::Workspace(id) = item.kind else { continue };
        if !tasks.contains(&id) {
            continue;
        }
        let base = engine.world().get(id).and_then(|task| task.workspace.clone());
        let kept = remove(&mut engine, &item)?;
        gone.insert(id, count_unmerged_commits(&engine, base.as_ref(), kept.as_ref()));
    }
    Ok(gone)
}

/// How many commits of what was kept are not on the base; what cannot be counted is not.
fn count_unmerged_commits(engine: &Engine, base: Option<&Commit>, kept: Option<&Commit>) -> u64 {
    let oid = |commit: Option<&Commit>| commit?.as_str().parse::<Oid>().ok();
    let (Some(base), Some(kept)) = (oid(base), oid(kept)) else { return 0 };
    engine.site().store.count_ahead(&base, &kept).map_or(0, u64::from)
}

/// Removes one thing; the work of a workspace that was kept, if any was.
fn remove(engine: &mut Engine, item: &DiskItem) -> Result<Option<Commit>, Problem> {
    let task = match item.kind {
        DiskItemKind::Workspace(id) => engine.world().get(id).cloned(),
        DiskItemKind::Record | DiskItemKind::Temporary | DiskItemKind::Warm | DiskItemKind::Lane => None,
    };
    let removed = disk::remove_item(engine.site(), item, task.as_deref()).map_err(|error| {
        Problem::new(ProblemCode::GitFailed, error)
            .with_hint("it was left as it is, and what comes after it too; `landfall doctor` says more")
    })?;
    let (Some(news), Some(task)) = (removed, task) else { return Ok(None) };
    let kept = match &news {
        News::WorkspaceRemoved { kept } => kept.clone(),
        _ => None,
    };
    match engine.handle_single_request(EngineRequest::Tell(vec![task.id], Box::new(news))) {
        Ok(Ok(_)) => Ok(kept),
        Ok(Err(error)) => Err(problems::from_ask_error(&error)),
        Err(error) => Err(problems::from_store_error(&error)),
    }
}

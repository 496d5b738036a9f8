//! What could be given back of the disk. A dry run and the real one follow the same plan, which is the engine's own.

use std::collections::BTreeMap;
use std::sync::Arc;

use landfall_api::{self as api, Problem};
use landfall_engine::disk::{DiskItem, DiskItemKind, Inventory, ReclaimScope};
use landfall_engine::model::{TaskId, Timestamp};
use landfall_engine::settings::RetentionSettings;
use landfall_engine::store::StoreReader;

use crate::project::place::ProjectLocation;
use crate::project::query_context::Query;
use crate::project::{clock, problems};

/// Says what would be removed.
pub(crate) fn preview_reclaim(look: &Query<'_>) -> Result<api::Reclaimed, Problem> {
    let items = match look.place.open_reader()? {
        Some(reader) => plan(look.place, &reader, &load_retention(look.place)?)?,
        None => Vec::new(),
    };
    Ok(to_reclaimed(true, &items))
}

pub(crate) fn load_retention(place: &ProjectLocation) -> Result<RetentionSettings, Problem> {
    Ok(landfall_engine::engine::load_settings(&place.root).map_err(|error| problems::open(&error))?.keep)
}

pub(crate) fn plan(
    place: &ProjectLocation,
    reader: &StoreReader,
    keep: &RetentionSettings,
) -> Result<Vec<DiskItem>, Problem> {
    let now = Timestamp(clock::now_ms());
    let inventory = Inventory { folder: &place.folder, keep, now, reach: ReclaimScope::AtRest };
    let task =
        |id: TaskId| Ok(reader.task(id).map_err(|error| problems::from_store_error(&error))?.map(Arc::new));
    inventory.plan_removal(&task)
}

pub(crate) fn to_reclaimed(dry_run: bool, items: &[DiskItem]) -> api::Reclaimed {
    let lines = items.iter().map(|item| api::ReclaimedItem {
        what: match item.kind {
            DiskItemKind::Workspace(task) => format!("workspace of {task}"),
            DiskItemKind::Record => "record of a run".to_owned(),
            DiskItemKind::Temporary | DiskItemKind::Warm => item.kind.label().to_owned(),
            DiskItemKind::Lane => "checkout for checks".to_owned(),
        },
        path: item.path.display().to_string(),
        bytes: item.bytes,
        why_safe: item.why_safe.clone(),
    });
    let mut kinds: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for item in items {
        let (count, bytes) = kinds.entry(item.kind.label()).or_default();
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

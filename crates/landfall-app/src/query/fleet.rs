//! What is there: agents at work, folders, lanes, the disk, and what is left over.

use std::collections::BTreeMap;
use std::path::Path;

use landfall_api::{self as api, Problem};
use landfall_engine::host::disk::dir_size;
use landfall_engine::host::sitter::{self, SitterProcess, SitterState};
use landfall_engine::model::{AttemptPhase, TaskId, TaskState, TaskStatus};
use landfall_engine::store::{StoreReader, TaskRow};

use crate::project::place::ProjectLocation;
use crate::project::query_context::Query;
use crate::project::{conversions, problems, task_cache};
use crate::query::agents;
use crate::query::reclaimable;
use crate::query::tasks::disk_state;

const AGENTS_MAX: u32 = 256; // more than any run has slots
const WORKSPACES_MAX: usize = 1_000;
const TICK_MS: u64 = 10; // the kernel's, on almost every machine
const PROCESSES_MAX: usize = 4_096; // of one agent

pub(crate) fn fleet_report(look: &Query<'_>, asked: api::FleetAsked) -> Result<Box<api::Fleet>, Problem> {
    let reader = look.place.open_reader()?;
    let of = |error| problems::from_store_error(&error);
    let seq = match &reader {
        Some(reader) => reader.head().map_err(of)?.seq.0,
        None => 0,
    };
    let agents = match &reader {
        Some(reader) => list_working_agents(look, reader)?,
        None => Vec::new(),
    };
    let (workspaces, workspaces_more) = list_workspaces(look, reader.as_deref(), asked.count)?;
    let bytes = |path: &Path| asked.count.then(|| dir_size(path).ok()).flatten();
    let lanes = list_lanes(look.place).into_iter().map(|(name, check)| api::FleetLane {
        bytes: bytes(&look.place.folder.lanes_path().join(&name)),
        busy: check.is_some(),
        name,
        check,
    });
    let installed = match asked.agents {
        true => Some(agents::find_agents(look.place, &api::AgentsAsked::default(), false)?),
        false => None,
    };
    let reclaimable = match asked.count {
        true => Some(reclaimable::preview_reclaim(look)?),
        false => None,
    };
    let orphans = if asked.count { find_orphans(look, reader.as_deref())? } else { Vec::new() };
    Ok(Box::new(api::Fleet {
        seq,
        agents,
        workspaces,
        workspaces_more,
        lanes: lanes.collect(),
        warm: list_folder_names(&look.place.folder.workspaces_path().join(".engine/warm")),
        disk: disk_usage(look.place, asked.count),
        reclaimable,
        installed,
        orphans,
    }))
}

/// The lanes there are, and the check that runs in each, by the note an engine leaves there.
pub(crate) fn list_lanes(place: &ProjectLocation) -> Vec<(String, Option<String>)> {
    use std::os::unix::ffi::OsStrExt as _;
    let check = |lane: &str| {
        let noted = std::fs::read(place.folder.lanes_path().join(lane).join("running")).ok()?;
        let dir = Path::new(std::ffi::OsStr::from_bytes(&noted));
        let alive = matches!(sitter::find_sitter(dir), Ok(SitterState::Running(_) | SitterState::Starting));
        alive.then(|| dir.file_name().map(|name| name.to_string_lossy().into_owned())).flatten()
    };
    list_folder_names(&place.folder.lanes_path())
        .into_iter()
        .map(|lane| (lane.clone(), check(&lane)))
        .collect()
}

/// The names of the folders in a folder, in order.
fn list_folder_names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

fn list_working_agents(look: &Query<'_>, reader: &StoreReader) -> Result<Vec<api::FleetAgent>, Problem> {
    let live = look.engine.live_agents();
    let mut found: Vec<(api::FleetAgent, Option<SitterProcess>)> = Vec::new();
    for row in reader
        .list_by_status(TaskStatus::Active, AGENTS_MAX)
        .map_err(|error| problems::from_store_error(&error))?
    {
        let Some(task) = task_cache::cached_task(look.place, reader, &row)? else { continue };
        let TaskState::Active { doing: AttemptPhase::Running { iteration, since, .. }, .. } = &task.state
        else {
            continue;
        };
        let dir = look.place.folder.iteration_path(task.id, task.attempt, *iteration);
        let sitting = match sitter::find_sitter(&dir) {
            Ok(SitterState::Running(sitting)) => Some(sitting),
            Ok(
                SitterState::Never | SitterState::Starting | SitterState::Ended(_) | SitterState::Vanished,
            )
            | Err(_) => None,
        };
        let live = live.get(&task.id);
        let spooled = || std::fs::metadata(dir.join("out.log")).map_or(0, |meta| meta.len());
        found.push((
            api::FleetAgent {
                task: conversions::task_id(task.id),
                title: row.title,
                attempt: task.attempt.0,
                iteration: *iteration,
                pid: None,
                processes: None,
                since_ms: since.0,
                cpu_ms: None,
                memory_bytes: None,
                output_bytes: live.map_or_else(spooled, |live| live.bytes),
                agent: live.map(conversions::to_agent_at_work),
            },
            sitting,
        ));
    }
    let sittings: Vec<SitterProcess> = found.iter().filter_map(|(_, sitting)| sitting.clone()).collect();
    let mut pulses = sitter::measure_activities(&sittings).into_iter();
    let told = |(agent, sitting): (api::FleetAgent, Option<SitterProcess>)| {
        let Some(sitting) = sitting else { return agent };
        let pulse = pulses.next().unwrap_or_default();
        let (first, memory) = measure_child_processes(sitting.pid);
        api::FleetAgent {
            pid: first.or(Some(sitting.pid)),
            processes: Some(u64::from(pulse.processes) + 1),
            cpu_ms: Some(pulse.cpu_ticks * TICK_MS),
            memory_bytes: memory,
            ..agent
        }
    };
    Ok(found.into_iter().map(told).collect())
}

/// The first process below a sitter, and the memory of all of them, where the system tells.
fn measure_child_processes(sitter: i32) -> (Option<i32>, Option<u64>) {
    let children = |pid: i32| -> Option<Vec<i32>> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        Some(text.split_whitespace().filter_map(|word| word.parse().ok()).collect())
    };
    let Some(first) = children(sitter) else { return (None, None) };
    let (mut open, mut bytes, mut seen) = (first.clone(), 0, 0);
    while let Some(pid) = open.pop() {
        seen += 1;
        if seen > PROCESSES_MAX {
            break;
        }
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = resident.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        bytes += kib.unwrap_or(0) * 1024;
        open.extend(children(pid).into_iter().flatten());
    }
    (first.first().copied(), Some(bytes))
}

fn list_workspaces(
    look: &Query<'_>,
    reader: Option<&StoreReader>,
    count: bool,
) -> Result<(Vec<api::FleetWorkspace>, u64), Problem> {
    let root = look.place.folder.workspaces_path();
    let names: Vec<String> =
        list_folder_names(&root).into_iter().filter(|name| !name.starts_with('.')).collect();
    let more = names.len().saturating_sub(WORKSPACES_MAX) as u64;
    let mut found = Vec::new();
    for name in names.into_iter().take(WORKSPACES_MAX) {
        // `T7` is where an agent works, `T7-review` where a reviewing one reads.
        let id = name.split('-').next().and_then(|word| word.parse::<TaskId>().ok());
        let row = match (id, reader) {
            (Some(id), Some(reader)) => reader.row(id).map_err(|error| problems::from_store_error(&error))?,
            (_, _) => None,
        };
        let (state, why) = workspace_purpose(row.as_ref());
        found.push(api::FleetWorkspace {
            task: id.map(conversions::task_id),
            status: row.as_ref().map(|row| conversions::to_api_status(row.effective_status())),
            bytes: count.then(|| dir_size(&root.join(&name)).ok()).flatten(),
            state: state.to_owned(),
            why,
            name,
        });
    }
    Ok((found, more))
}

/// Why a workspace is there.
fn workspace_purpose(row: Option<&TaskRow>) -> (&'static str, String) {
    let Some(row) = row else { return ("left over", "no task is known for it".to_owned()) };
    let id = row.id;
    match row.status {
        TaskStatus::Active | TaskStatus::Landing => ("in use", format!("{id} is under way")),
        TaskStatus::Draft | TaskStatus::Ready | TaskStatus::Waiting | TaskStatus::Review => {
            ("kept", format!("{id} goes on in it"))
        }
        TaskStatus::Blocked | TaskStatus::Failed | TaskStatus::Timeout => {
            ("kept", format!("{id} can be tried again in it"))
        }
        TaskStatus::Done | TaskStatus::Cancelled => {
            ("left over", format!("{id} is over; `landfall project reclaim` removes it"))
        }
    }
}

fn disk_usage(place: &ProjectLocation, count: bool) -> Option<api::FleetDisk> {
    let free_bytes = disk_state(place)?.free_bytes;
    // Settings that are broken complain elsewhere.
    let settings = landfall_engine::engine::load_settings(&place.root).ok()?.disk;
    let mut used: BTreeMap<&str, u64> = BTreeMap::new();
    if count {
        let folder = &place.folder;
        for (kind, path) in [
            ("workspaces", folder.workspaces_path()),
            ("lanes", folder.lanes_path()),
            ("records", folder.attempts_path()),
            ("papers", folder.papers_path()),
            ("store", folder.store_path()),
        ] {
            used.insert(kind, dir_size(&path).unwrap_or(0));
        }
        let file = |name: &str| std::fs::metadata(folder.root().join(name)).map_or(0, |meta| meta.len());
        used.insert("journal", file("journal.db") + file("journal.db-wal"));
    }
    let mut used: Vec<api::FleetUse> =
        used.into_iter().map(|(kind, bytes)| api::FleetUse { kind: kind.to_owned(), bytes }).collect();
    used.sort_by_key(|it| std::cmp::Reverse(it.bytes));
    Some(api::FleetDisk {
        free_bytes,
        warn_bytes: settings.warn_bytes,
        pause_bytes: settings.pause_bytes,
        stop_bytes: settings.stop_bytes,
        used,
    })
}

/// Processes of ended attempts, and agents that no engine watches.
fn find_orphans(look: &Query<'_>, reader: Option<&StoreReader>) -> Result<Vec<api::FleetOrphan>, Problem> {
    if look.engine.is_alive() {
        return Ok(Vec::new()); // what runs is the engine's business
    }
    let open: Vec<String> = match reader {
        Some(reader) => crate::query::orphans::tasks_with_running_agents(look.place, reader)?
            .iter()
            .map(ToString::to_string)
            .collect(),
        None => Vec::new(),
    };
    let attempts = look.place.folder.attempts_path();
    let mut found = Vec::new();
    for name in list_folder_names(&attempts) {
        let Ok(SitterState::Running(sitting)) = sitter::find_sitter(&attempts.join(&name)) else { continue };
        let task = name.split('-').next().unwrap_or_default();
        let hint = match open.iter().any(|it| it == task) {
            true => "`landfall run` adopts it",
            false => "it ends by itself at its limit",
        };
        found.push(api::FleetOrphan { name, pid: Some(sitting.pid), hint: hint.to_owned() });
    }
    Ok(found)
}

//! After a start: what the journal expects to be under way is performed, adopted, or found to be lost.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use landfall_host::git::{GitError, Lane, Oid, RebuiltWorkspace, RefName, Signature, Workspace};
use landfall_host::mount::MountIdentity;
use landfall_host::sitter::{self, FindError, SitterState};
use landfall_model::checkout::{CheckoutAction, CheckoutEvidence, CheckoutKind, decide_checkout};
use landfall_model::resource::{OomKillCount, resource_behind_lost_engine};
use landfall_model::{Feedback, Task, TaskId, TaskState};
use serde_json::json;

use crate::agent_run::is_reader_run;
use crate::core::Core;
use crate::errand::error_chain;
use crate::gate;
use crate::git_refs::{collect_detail, task_ref};
use crate::host_context::HostContext;
use crate::ids;
use crate::land;
use crate::logfile::LogFile;
use crate::patience::abandon_run;
use crate::reader_workspace::give_up_reading;
use crate::run_folder::run_marker;

/// Ends the checks that an engine before us left running, so that the lanes are ours alone.
pub(crate) fn end_stale_checks(site: &HostContext) {
    for lane in std::fs::read_dir(site.folder.lanes_path()).into_iter().flatten().flatten() {
        let note = lane.path().join("running");
        let Ok(bytes) = std::fs::read(&note) else { continue };
        let dir = Path::new(OsStr::from_bytes(&bytes));
        if dir.starts_with(site.folder.attempts_path()) {
            gate::end_check(site, dir);
        }
        let _ = std::fs::remove_file(&note); // a note that stays is read again next time
    }
}

/// Writes objects of the store again that a fault damaged, from the user's repository and the workspaces.
///
/// # Errors
/// When the store cannot be read or written.
pub(crate) fn repair_objects(site: &HostContext) -> Result<(), GitError> {
    let names = site.pool.workspace_names()?;
    let workspaces = names.iter().filter_map(|name| site.pool.find_workspace(name));
    let of_workspaces = workspaces.map(|workspace| workspace.path().join(".git/objects"));
    let mut sources = vec![site.repo.common_dir().join("objects")];
    sources.extend(of_workspaces.filter(|folder| folder.is_dir()));
    let repairs = site.store.repair_objects(&sources)?;
    let list = |oids: &[Oid]| oids.iter().take(NAMED_MAX).map(Oid::as_str).collect::<Vec<_>>().join(", ");
    if !repairs.restored.is_empty() {
        let (count, oids) = (repairs.restored.len(), list(&repairs.restored));
        log_repair(site, "store", &format!("{count} damaged objects restored from copies: {oids}"));
    }
    if !repairs.lost.is_empty() {
        let (count, oids) = (repairs.lost.len(), list(&repairs.lost));
        log_repair(site, "store", &format!("{count} damaged objects found nowhere else, set aside: {oids}"));
    }
    if repairs.is_base_completed {
        log_repair(
            site,
            "store",
            "objects of the base were missing; copied from the repository of the project",
        );
    }
    Ok(())
}

/// How many objects are named.
const NAMED_MAX: usize = 20;

/// Sets the refs again that the journal knows and a damaged store has lost.
pub(crate) fn restore_refs(site: &HostContext, core: &Core) -> Result<(), GitError> {
    if let Some(base) = core.base_commit().map(ids::commit_to_oid)
        && site.store.read_base()?.is_none()
    {
        match site.store.contains(&base)? {
            true => {
                site.store.set_base(&base, None)?;
                log_repair(site, "store", &format!("the base is {base} again, as the journal says"));
            }
            false => log_repair(
                site,
                "store",
                &format!("the base {base} of the journal is not in the store any more"),
            ),
        }
    }
    if site.store.repairs().is_empty() {
        return Ok(());
    }
    for task in core.world().tasks().filter(|task| !task.is_over()) {
        let Some(head) = task.head.as_ref().map(ids::commit_to_oid) else { continue };
        // Not under an attempt: such a ref says that the attempt has collected all of its work.
        if site.store.contains(&head)? {
            site.store.pin_commit(&task_ref("tasks", task.id, "restored"), &head)?;
        }
    }
    for checkpoint in core.checkpoints().kept_checkpoints() {
        let commit = ids::commit_to_oid(&checkpoint.commit);
        if let Some(name) = land::checkpoint_ref(&checkpoint.name)
            && site.store.contains(&commit)?
        {
            site.store.pin_commit(&name, &commit)?;
        }
    }
    Ok(())
}

/// Replaces every checkout whose content may have been lost in a power cut, before anything is done in one. Ends with what
/// the agents must hear about it, by task: also of an earlier start that was cut short.
///
/// # Errors
/// A checkout could be neither replaced nor moved. Nothing may be done while it is there.
pub(crate) fn replace_untrusted_checkouts<'a>(
    site: &HostContext,
    tasks: impl Iterator<Item = &'a Arc<Task>>,
) -> Result<Vec<(TaskId, Feedback)>, String> {
    let tasks: BTreeMap<TaskId, &Arc<Task>> = tasks.map(|task| (task.id, task)).collect();
    let mut news = Vec::new();
    replace_lanes(site)?;
    let clean = MountIdentity::clean_mark_of(site.pool.dir());
    let current = site.pool.current_mount();
    let fate = |kind, recorded: Option<&MountIdentity>, is_occupied| {
        let (current, clean) = (current.as_ref(), clean.as_ref());
        decide_checkout(kind, &CheckoutEvidence { recorded, current, clean, is_occupied })
    };
    let may_keep = |recorded: Option<&MountIdentity>| {
        fate(CheckoutKind::Pooled, recorded, false) == CheckoutAction::Keep
    };
    match site.pool.delete_untrusted_pooled(&may_keep) {
        Ok(0) => {}
        Ok(count) => {
            log_repair(site, "pooled checkouts", &format!("{count} deleted: not synced before the last end"))
        }
        Err(error) => {
            return Err(untrusted_checkout_error(&site.folder.workspaces_path(), &error.full_message()));
        }
    }
    let names = site
        .pool
        .workspace_names()
        .map_err(|error| untrusted_checkout_error(&site.folder.workspaces_path(), &error.full_message()))?;
    for name in names {
        let Some(workspace) = site.pool.find_workspace(&name) else { continue };
        let task = name.parse::<TaskId>().ok().and_then(|id| tasks.get(&id).copied());
        let kind = if task.is_some() { CheckoutKind::TaskWorkspace } else { CheckoutKind::ReaderWorkspace };
        let recorded = workspace.recorded_mount();
        let fate = match fate(kind, recorded.as_ref(), false) {
            CheckoutAction::Keep => CheckoutAction::Keep,
            // Only now: looking for processes takes longer than all the rest.
            _ => {
                let is_occupied = is_occupied(site, &name).map_err(|error| {
                    format!(
                        "cannot tell whether an agent works in `{}`: {}",
                        workspace.path().display(),
                        error_chain(&error)
                    )
                })?;
                fate(kind, recorded.as_ref(), is_occupied)
            }
        };
        match (fate, task) {
            (CheckoutAction::Keep, _) if recorded == current => {}
            (CheckoutAction::Keep, _) => {
                let _ = site.pool.record_mount(&workspace); // without it the next start replaces it
            }
            (CheckoutAction::Rebuild, Some(task)) => rebuild_workspace(site, task, &workspace)?,
            (CheckoutAction::Rebuild | CheckoutAction::Discard | CheckoutAction::Delete, _) => {
                discard_workspace(site, &workspace)?
            }
        }
        if let Some(task) = task
            && let Some(rebuilt) = site.pool.find_workspace(&name).and_then(|it| it.unannounced_rebuild())
        {
            let feedback = rebuild_feedback(&rebuilt);
            if !task.feedback.contains(&feedback) {
                news.push((task.id, feedback));
            }
        }
    }
    // From here on the checkouts are written to, so the marks are no longer true.
    for folder in [site.pool.dir(), &site.folder.lanes_path()] {
        if let Err(error) = MountIdentity::clear_clean_mark(folder) {
            log_repair(site, "clean mark", &format!("remove the mark in `{}`: {error}", folder.display()));
        }
    }
    Ok(news)
}

/// Why no work can begin: a checkout that may have lost content is still in its place.
fn untrusted_checkout_error(path: &Path, why: &str) -> String {
    format!(
        "`{}` may have lost content when this machine or its disk stopped, and Landfall can neither replace nor move it: \
         {why}; check the permissions and the free space of that folder, then run `landfall doctor`",
        path.display()
    )
}

/// Says so if the last engine was lost while the kernel ended processes for lack of memory, and marks the beginning of this one.
pub(crate) fn look_for_oom_kills(site: &HostContext) {
    let (Ok(boot), Some(kills)) = (landfall_host::disk::boot_id(), landfall_host::memory::oom_kills()) else {
        return;
    };
    let now = OomKillCount { boot, kills };
    let path = site.folder.oom_mark();
    let last = std::fs::read_to_string(&path).ok().and_then(|text| {
        let (boot, kills) = text.trim_end().split_once(' ')?;
        Some(OomKillCount { boot: boot.to_owned(), kills: kills.parse().ok()? })
    });
    if let Some(resource) = resource_behind_lost_engine(last.as_ref(), &now) {
        let what = format!(
            "the last run did not end in order, and the kernel has ended processes since it began: this machine was out of \
             {resource}; fewer agents at once need less (`run.slots`)"
        );
        log_repair(site, "engine", &what);
    }
    let _ = std::fs::write(&path, format!("{} {}\n", now.boot, now.kills)); // without it nothing is said next time
}

/// Syncs the checkouts and marks them as clean. Only when nobody works in them any more.
pub(crate) fn mark_checkouts_clean(site: &HostContext) {
    // Without the marks the checkouts are replaced after the next start of the machine, and nothing is lost.
    let _ = MountIdentity::mark_clean(&[site.pool.dir(), &site.folder.lanes_path()]); // without it they are not trusted
    let _ = std::fs::remove_file(site.folder.oom_mark()); // there is none where the kernel does not count
}

fn replace_lanes(site: &HostContext) -> Result<(), String> {
    let folder = site.folder.lanes_path();
    let (clean, current) = (MountIdentity::clean_mark_of(&folder), MountIdentity::of_path(&folder).ok());
    let may_keep = |recorded: Option<&MountIdentity>| {
        let (current, clean) = (current.as_ref(), clean.as_ref());
        let evidence = CheckoutEvidence { recorded, current, clean, is_occupied: false };
        decide_checkout(CheckoutKind::Lane, &evidence) == CheckoutAction::Keep
    };
    match Lane::delete_untrusted_lanes(&folder, &may_keep) {
        Ok(0) => {}
        Ok(count) => log_repair(site, "lanes", &format!("{count} deleted: not synced before the last end")),
        Err(error) => return Err(untrusted_checkout_error(&folder, &error.full_message())),
    }
    Ok(())
}

/// Whether a process that was started for this workspace still runs.
///
/// # Errors
/// When this cannot be told for lack of a resource.
fn is_occupied(site: &HostContext, workspace: &str) -> Result<bool, FindError> {
    let task = workspace.split('-').next().unwrap_or(workspace);
    let prefix = format!("{task}-");
    let folder = site.folder.attempts_path();
    let unreadable = |error| FindError::in_folder(&folder, error);
    let runs = match std::fs::read_dir(&folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        runs => runs.map_err(unreadable)?,
    };
    for run in runs {
        let run = run.map_err(unreadable)?;
        if !run.file_name().to_string_lossy().starts_with(&prefix) {
            continue;
        }
        match sitter::find_sitter(&run.path()) {
            Ok(SitterState::Running(_) | SitterState::Starting) => return Ok(true),
            Err(error) if error.is_shortage() => return Err(error),
            // Its folder is damaged: whoever may still work for it is ended before the workspace is replaced.
            Err(_) => abandon_run(&run.path(), &run_marker(site, &run.path())),
            Ok(SitterState::Never | SitterState::Ended(_) | SitterState::Vanished) => {}
        }
    }
    Ok(false)
}

fn rebuild_workspace(site: &HostContext, task: &Task, workspace: &Workspace) -> Result<(), String> {
    let keep = free_keep(site, task.id);
    let by = Signature::for_engine(site.clock.now_ms());
    match site.pool.rebuild_workspace(workspace, last_collected(site, task).as_ref(), &keep, &by) {
        Ok(rebuilt) => {
            let kept = match &rebuilt.uncommitted {
                Some(commit) => format!("what was not committed is {commit}, under {keep}"),
                None => "nothing uncommitted was found".to_owned(),
            };
            log_repair(
                site,
                &format!("workspace {}", task.id),
                &format!("rebuilt from {}; {kept}", rebuilt.head),
            );
            Ok(())
        }
        Err(error) => set_aside(site, workspace, &collect_detail(&error)),
    }
}

fn discard_workspace(site: &HostContext, workspace: &Workspace) -> Result<(), String> {
    let name = workspace.name().to_ascii_lowercase();
    let keep = RefName::new(&format!("refs/landfall/kept/{name}/unclean-end"))
        .expect("a workspace has a plain name");
    let by = Signature::for_engine(site.clock.now_ms());
    match site.pool.discard_workspace(workspace, &keep, &by) {
        Ok(()) => {
            log_repair(
                site,
                &format!("workspace {}", workspace.name()),
                "removed: not synced before the last end",
            );
            Ok(())
        }
        Err(error) => set_aside(site, workspace, &collect_detail(&error)),
    }
}

/// The last resort: the folder is moved, as it is, to where a person finds it. The task makes a new one.
fn set_aside(site: &HostContext, workspace: &Workspace, why: &str) -> Result<(), String> {
    let about = format!("workspace {}", workspace.name());
    match site.pool.set_aside(workspace) {
        Ok(to) => {
            log_repair(site, &about, &format!("moved to `{}`: it could not be rebuilt: {why}", to.display()));
            Ok(())
        }
        Err(error) => {
            let why = format!("{why}; move it: {}", error.full_message());
            log_repair(site, &about, &why);
            Err(untrusted_checkout_error(workspace.path(), &why))
        }
    }
}

/// The newest commit of a task that a check has brought into the store. Refs of earlier attempts do not count: they may be of
/// work that was given up, and the journal knows the others.
fn last_collected(site: &HostContext, task: &Task) -> Option<Oid> {
    let pin = task_ref("tasks", task.id, &task.attempt.to_string());
    let pinned = site.store.resolve_ref(&pin).ok().flatten();
    let known = task.head.as_ref().map(ids::commit_to_oid);
    [pinned, known].into_iter().flatten().find(|oid| site.store.contains(oid).unwrap_or(false))
}

/// A ref that keeps nothing yet. One per power cut.
fn free_keep(site: &HostContext, task: TaskId) -> RefName {
    (1_u32..)
        .map(|number| task_ref("kept", task, &format!("unclean-end-{number}")))
        .find(|name| site.store.resolve_ref(name).is_ok_and(|kept| kept.is_none()))
        .expect("there are more numbers than power cuts")
}

/// What the agent of a rebuilt workspace has to know.
fn rebuild_feedback(rebuilt: &RebuiltWorkspace) -> Feedback {
    let head = rebuilt.head.short();
    let about = "Landfall rebuilt your working folder".to_owned();
    let text = match &rebuilt.uncommitted {
        Some(kept) => format!(
            "The machine or its disk stopped while you worked on this task. Landfall rebuilt your working folder from commit \
             {head}. It kept your uncommitted changes as commit {kept}; files in it may be empty or incomplete. Read them with \
             `git diff {head} {kept}` or `git show {kept}:PATH`, and copy only complete files."
        ),
        None => format!(
            "The machine or its disk stopped while you worked on this task. Landfall rebuilt your working folder from commit \
             {head}. Uncommitted changes may be missing: check the files before you continue."
        ),
    };
    Feedback { about, text }
}

fn log_repair(site: &HostContext, about: &str, what: &str) {
    let line = json!({ "at_ms": site.now().0, "about": about, "what": what });
    LogFile::at_path(site.folder.repairs_log()).append_line(&line);
}

/// Gives up the rooms of reviewers who are not at work: of a task that failed meanwhile, or whose engine was lost.
pub(crate) fn remove_idle_reader_rooms<'a>(site: &HostContext, tasks: impl Iterator<Item = &'a Arc<Task>>) {
    let stand: BTreeSet<String> = std::fs::read_dir(site.folder.workspaces_path())
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix("-review").map(str::to_owned))
        .collect();
    let is_idle = |task: &&Arc<Task>| {
        let at_work = matches!(task.state, TaskState::Active { .. }) && is_reader_run(task);
        stand.contains(&task.id.to_string()) && !at_work
    };
    for task in tasks.filter(|_| !stand.is_empty()).filter(is_idle) {
        // One that cannot be given up stays: `doctor` and `reclaim` see it.
        let _ = give_up_reading(site, task, task.attempt);
    }
}

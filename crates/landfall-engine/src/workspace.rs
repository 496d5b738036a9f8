//! What is run in a workspace besides its agent: commands the person wrote, over files an agent wrote. So they run in the
//! agent's own sandbox.
//!
//! `after_create` and `before_run` make the place fit to work in: when they fail, the agent does not start. The others
//! clean up: when they fail, the log says so and work goes on.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use landfall_host::git::Workspace;
use landfall_host::sitter::{self, SitterState};
use landfall_model::{Attempt, News, Task, World};
use serde_json::json;

use crate::agent_run::is_reader_run;
use crate::confine::{self, ConfinementScope};
use crate::environment::extend_environment;
use crate::errand::{self, UserCommand, UserCommandResult};
use crate::git_refs::task_ref_name;
use crate::hooks::fit_env_value;
use crate::host_context::HostContext;
use crate::logfile::LogFile;
use crate::ports;

/// Makes a new workspace fit to work in: the files that `.worktreeinclude` names, then the person's command. Repeats
/// safely: what was done for a workspace is not done again.
///
/// # Errors
/// Why no agent should start in it, for a person to read.
pub fn after_create(site: &HostContext, task: &Task, workspace: &Workspace) -> Result<(), String> {
    let done = ReadinessNote::for_workspace(site, workspace);
    if done.is_marked() {
        return Ok(());
    }
    let included =
        site.pool.copy_included_files(&site.repo, workspace).map_err(|error| error.full_message())?;
    if included.skipped_count > 0 {
        let named = |(path, why): &(Vec<u8>, _)| format!("{}: {why:?}", String::from_utf8_lossy(path));
        let skipped: Vec<String> = included.skipped.iter().take(SKIPPED_MAX).map(named).collect();
        let entry = json!({
            "at_ms": site.now().0,
            "hook": "worktreeinclude",
            "task": task.id.to_string(),
            "not_copied": included.skipped_count,
            "said": skipped.join("\n"),
        });
        LogFile::at_path(site.folder.hooks_log()).append_line(&entry);
    }
    if let Some(line) = &site.settings.workspace.after_create {
        let dir = site.folder.attempts_path().join(format!("{}-{}-i0-after_create", task.id, task.attempt));
        run_required_hook(site, task, workspace, &WorkspaceHook { word: "after_create", line, dir })?;
    }
    done.write_mark().map_err(|error| format!("note that `workspace.after_create` was run: {error}"))
}

const SKIPPED_MAX: usize = 10; // enough to see what is wrong with a list

/// Makes a workspace ready for a run of the agent.
///
/// # Errors
/// Why the agent should not start, for a person to read.
pub fn before_run(
    site: &HostContext,
    task: &Task,
    attempt: Attempt,
    iteration: u32,
    workspace: &Workspace,
) -> Result<(), String> {
    let Some(line) = &site.settings.workspace.before_run else { return Ok(()) };
    if is_reader_run(task) {
        return Ok(()); // whoever only reads has a plain checkout, and needs nothing in it
    }
    let dir = hook_run_folder(site, task, attempt, iteration, "before_run");
    run_required_hook(site, task, workspace, &WorkspaceHook { word: "before_run", line, dir })
}

/// Cleans up after a run of the agent. If that does not work out, the task says so; nothing depends on it.
pub fn after_run(site: &HostContext, task: &Task, attempt: Attempt, iteration: u32) {
    let Some(line) = &site.settings.workspace.after_run else { return };
    if is_reader_run(task) {
        return;
    }
    let Some(workspace) = site.pool.find_workspace(&task.id.to_string()) else { return };
    if site.interrupted.is_set() {
        return; // the engine is told to stop at once
    }
    let dir = hook_run_folder(site, task, attempt, iteration, "after_run");
    run_optional_hook(site, task, &workspace, &WorkspaceHook { word: "after_run", line, dir });
}

/// Cleans up before a workspace is removed. If that does not work out, the task says so; it is removed all the same.
pub fn before_remove(site: &HostContext, task: &Task, workspace: &Workspace) {
    ReadinessNote::for_workspace(site, workspace).remove_mark();
    let Some(line) = &site.settings.workspace.before_remove else { return };
    let dir = site.folder.attempts_path().join(format!("{}-{}-before_remove", task.id, task.attempt));
    run_optional_hook(site, task, workspace, &WorkspaceHook { word: "before_remove", line, dir });
}

/// A command and its moment.
struct WorkspaceHook<'a> {
    word: &'static str,
    line: &'a str,
    /// The record of the run.
    dir: PathBuf,
}

fn hook_run_folder(site: &HostContext, task: &Task, attempt: Attempt, iteration: u32, word: &str) -> PathBuf {
    // Named so that whoever stops the attempt stops this too.
    site.folder.attempts_path().join(format!("{}-{attempt}-i{iteration}-{word}", task.id))
}

fn run_optional_hook(site: &HostContext, task: &Task, workspace: &Workspace, moment: &WorkspaceHook<'_>) {
    if let Err(detail) = run_required_hook(site, task, workspace, moment) {
        site.send_news(task.id, News::HookFailed { detail });
    }
}

fn run_required_hook(
    site: &HostContext,
    task: &Task,
    workspace: &Workspace,
    moment: &WorkspaceHook<'_>,
) -> Result<(), String> {
    match run_workspace_hook(site, task, workspace, moment) {
        Ok(ran) if ran.is_well() => Ok(()),
        Ok(ran) => Err(format!("`workspace.{}` {}", moment.word, ran.describe_failure())),
        Err(error) => Err(format!("`workspace.{}` could not be run: {error}", moment.word)),
    }
}

fn run_workspace_hook(
    site: &HostContext,
    task: &Task,
    workspace: &Workspace,
    moment: &WorkspaceHook<'_>,
) -> Result<UserCommandResult, String> {
    let WorkspaceHook { word, line, dir } = moment;
    let dir = find_run_folder(dir);
    let tmp =
        confine::make_tmp(&dir).map_err(|error| format!("make a folder for temporary files: {error}"))?;
    let _tmp = RunTmpFolder(&dir);
    let profile = site.settings.agents.get(World::profile_of(task));
    let confinement = profile.map_or(site.settings.run.sandbox, |profile| profile.sandbox);
    let caches = confine::prepare_run_caches(
        &site.settings.run,
        &site.folder,
        &site.env,
        confinement,
        &workspace.caches_path(),
    )
    .map_err(|error| format!("make the caches of the workspace ready: {error}"))?;
    let env = extend_environment(&site.env, caches.env.clone());
    let reach = ConfinementScope {
        confinement,
        checkout: confine::checkout_of(&site.repo),
        work: workspace.path().to_owned(),
        tmp: tmp.clone(),
        own: Vec::new(),
        read: Vec::new(),
        caches,
    };
    let mut ours = hook_variables(site, task, workspace, word);
    ours.push(("TMPDIR".into(), tmp.into_os_string()));
    ours.extend(ports::port_variables(site, task.id)?);
    let may_hand_out = confine::may_hand_out(&site.settings.run, &reach);
    workspace.note_occupant(word, may_hand_out).map_err(|error| error.full_message())?;
    let errand = UserCommand {
        argv: errand::sh_arguments(line),
        cwd: workspace.path().to_owned(),
        env: extend_environment(&env, ours),
        stdin: Vec::new(),
        sandbox: confine::build_sandbox(site, &reach),
        limit_ms: site.settings.workspace.timeout_ms,
        grace_ms: site.settings.run.grace_ms,
    };
    let ran = errand::run_user_command(&site.program, &dir, &errand);
    if ran.as_ref().is_ok_and(|ran| ran.is_over) {
        workspace.note_vacated(word).map_err(|error| error.full_message())?;
    }
    let mut entry = json!({ "at_ms": site.now().0, "hook": word, "task": task.id.to_string() });
    match &ran {
        Ok(ran) => {
            entry["exit"] = json!(ran.exit);
            entry["timed_out"] = json!(ran.timed_out);
            entry["took_ms"] = json!(ran.took_ms);
            entry["killed"] = json!(ran.swept);
            entry["said"] = json!(ran.said);
        }
        Err(error) => entry["error"] = json!(error),
    }
    LogFile::at_path(site.folder.hooks_log()).append_line(&entry);
    ran
}

/// The folder for a run. One in which it runs, or ran well, for this very moment is gone on with: an engine died
/// meanwhile. One in which it failed is left as it is, and another is taken.
fn find_run_folder(dir: &Path) -> PathBuf {
    let name = dir.file_name().unwrap_or_default().to_owned();
    let mut dir = dir.to_owned();
    let mut number = 2;
    loop {
        match sitter::find_sitter(&dir) {
            Ok(SitterState::Never | SitterState::Running(_) | SitterState::Starting) | Err(_) => return dir,
            Ok(SitterState::Ended(ended)) if ended.exit == sitter::ChildExit::Code(0) => return dir,
            Ok(SitterState::Ended(_) | SitterState::Vanished) => {}
        }
        let mut next = name.clone();
        next.push(format!("-{number}"));
        dir.set_file_name(next);
        number += 1;
    }
}

/// The folder for temporary files of a run, given up at its end.
struct RunTmpFolder<'a>(&'a Path);

impl Drop for RunTmpFolder<'_> {
    fn drop(&mut self) {
        confine::remove_tmp(self.0);
    }
}

fn hook_variables(
    site: &HostContext,
    task: &Task,
    workspace: &Workspace,
    word: &str,
) -> Vec<(OsString, OsString)> {
    let id = task.id.to_string();
    let path = workspace.path().to_string_lossy();
    let branch = format!("landfall/{}", task_ref_name(task.id));
    let root = site.repo.root().to_string_lossy();
    let variables = [
        (["LANDFALL_HOOK", "AXIOM_EVENT"], word),
        (["LANDFALL_TASK", "AXIOM_TASK_ID"], &id),
        (["LANDFALL_TITLE", "AXIOM_TASK_TITLE"], &task.spec.title),
        (["LANDFALL_WORKSPACE", "AXIOM_WORKSPACE"], &path),
        (["LANDFALL_BRANCH", "AXIOM_BRANCH"], &branch),
        (["LANDFALL_BASE", "AXIOM_BASE"], site.branch.as_str()),
        (["LANDFALL_PROJECT", "AXIOM_PROJECT_ROOT"], &root),
    ];
    let pair = |name: &str, value: &str| (name.into(), fit_env_value(value).into());
    variables.into_iter().flat_map(|(names, value)| names.map(|name| pair(name, value))).collect()
}

/// The note that a workspace was made fit to work in. It names the very workspace: one that is made anew under the same
/// name is another.
struct ReadinessNote {
    note: PathBuf,
    mark: Option<String>,
}

impl ReadinessNote {
    fn for_workspace(site: &HostContext, workspace: &Workspace) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        // Written by the pool as the last act of making a workspace, where no agent can reach it.
        let made = site.pool.dir().join(".engine/rooms").join(workspace.name()).join("meta");
        let mark = std::fs::metadata(made).ok();
        let mark = mark.map(|it| format!("{} {} {}\n", it.ino(), it.mtime(), it.mtime_nsec()));
        Self { note: site.folder.errands_path().join(format!("{}.created", workspace.name())), mark }
    }

    fn is_marked(&self) -> bool {
        self.mark.is_some() && std::fs::read_to_string(&self.note).ok() == self.mark
    }

    fn write_mark(&self) -> std::io::Result<()> {
        let Some(mark) = &self.mark else { return Ok(()) };
        if let Some(folder) = self.note.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&self.note, mark)
    }

    fn remove_mark(&self) {
        let _ = std::fs::remove_file(&self.note); // there may be none; one that stays names a workspace that is gone
    }
}

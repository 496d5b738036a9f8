//! What a run of an agent is by its task and the settings: its profile, its workspace, how its loop is driven, and how long it
//! may be silent. Starting and following it is left to `launch` and `follow`.

use landfall_agents::LaunchProfile;
use landfall_model::liveness::LivenessLimits;
use landfall_model::recovery::RecoveryAction;
use landfall_model::{AgentDriveStyle, Task};

use crate::host_context::HostContext;
use crate::ids;

/// The profile a task is worked on with.
pub(crate) fn profile_of(site: &HostContext, task: &Task) -> Option<LaunchProfile> {
    site.settings.agents.get(profile_name(task)).map(agent_profile)
}

/// The name of the profile a task is worked on with: that of the grant.
pub(crate) fn profile_name(task: &Task) -> &str {
    let asked = || task.spec.agent.as_deref().unwrap_or("default");
    task.driving.as_ref().map_or_else(asked, |driving| driving.profile.as_str())
}

/// A profile of the settings as the agents know it.
pub fn agent_profile(profile: &crate::settings::ProfileSettings) -> LaunchProfile {
    LaunchProfile {
        name: profile.name.clone(),
        kind: profile.kind.clone(),
        run: profile.run.clone(),
        script: profile.script.as_ref().map(|path| path.to_string_lossy().into_owned()),
        model: profile.model.clone(),
        effort: profile.effort.clone(),
        turns_max: profile.turns_max,
        mcp: profile.mcp,
        terminal_poll_ms: profile.terminal_poll_ms,
        flags: profile.flags.clone(),
        env: profile.env.clone(),
    }
}

/// Where the task's branch stands; for evidence, read without a process.
pub(crate) fn head_of(site: &HostContext, task: &Task) -> Option<landfall_model::Commit> {
    let workspace = site.pool.find_workspace(&task.id.to_string())?;
    site.store.workspace_head(&workspace).map(|oid| ids::oid_to_commit(&oid))
}

/// Whether the agent of this step runs a loop of its own, told by files.
pub(crate) fn runs_own_loop(task: &Task) -> bool {
    task.runs_own_loop() && !is_reader_run(task)
}

/// Whether the steps of such a loop are typed by us, one after the other.
pub(crate) fn is_dispatched(task: &Task) -> bool {
    runs_own_loop(task)
        && task.driving.as_ref().is_some_and(|driving| driving.style == AgentDriveStyle::Dispatch)
}

/// The template by which a dispatched agent is told each of its steps.
pub(crate) const DISPATCH: &str = "dispatch";

/// How long a sitter lets its run go on. A loop of the agent's own is asked to end first, and may finish its step.
pub(crate) fn sitter_limit_ms(site: &HostContext, task: &Task, calls_model: bool, limit_ms: u64) -> u64 {
    if limit_ms == 0 {
        return 0;
    }
    let grace_ms = if runs_own_loop(task) { site.settings.run.step_grace_ms } else { 0 };
    // The wait for an answer of the model does not count, and the sitter knows nothing of that: we end such an agent in time.
    let silence_ms = if calls_model { watch_limits(site, task).silence_ms } else { 0 };
    limit_ms.saturating_add(grace_ms).saturating_add(silence_ms)
}

/// Whether the agent of a task reads the work of another.
pub(crate) fn is_reader_run(task: &Task) -> bool {
    let step = task.step().and_then(|step| task.flow.as_ref()?.find_step(step));
    step.is_some_and(|step| step.kind.is_reader_step())
}

/// The name of the workspace that the agent of a task works in. Whoever reads has one of their own: what they write there
/// goes nowhere.
pub(crate) fn workspace_name(task: &Task) -> String {
    match is_reader_run(task) {
        true => format!("{}-review", task.id),
        false => task.id.to_string(),
    }
}

/// How long the agent of a task may be silent: longer, if it was ended for that too early.
pub(crate) fn watch_limits(site: &HostContext, task: &Task) -> LivenessLimits {
    let watch = site.settings.run.watch;
    let open = task.step().and_then(|step| task.recoveries.unresolved_try(step));
    let Some(RecoveryAction::RaiseTimeout(percent)) =
        open.and_then(|it| RecoveryAction::from_text(&it.action))
    else {
        return watch;
    };
    let longer = |ms: u64| ms.saturating_mul(u64::from(percent)) / 100;
    LivenessLimits {
        silence_ms: longer(watch.silence_ms),
        first_output_ms: longer(watch.first_output_ms),
        tool_ms: longer(watch.tool_ms),
        ..watch
    }
}

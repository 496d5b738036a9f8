//! From the file as written to settings the engine works with: every default filled in, every value in one unit,
//! what does not fit together refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use landfall_model::base_gate::RedBasePolicy;
use landfall_model::checkpoint::Retention;
use landfall_model::conflict::ConflictTimeoutAction;
use landfall_model::gaming::{BaseTestMode, MutationMode};
use landfall_model::liveness::LivenessLimits;
use landfall_model::pilot::PilotMode;
use landfall_model::review::{ReviewMode, ReviewRule};
use landfall_model::sandbox::{Confinement, default_confinement};
use landfall_model::score::Dimension;
use landfall_model::{AgentDriveStyle, Budget, ConcurrencyLimits, Price, Prices, RunBudgets, Tag};
use landfall_trackers::registry;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, Deserializer, ValueDeserializer};

use super::keys::{self, UnknownSettingKey};
use super::place::{line_text, path_at, position_at, span_of};
use super::problem::SettingsProblem;
use super::raw::{
    RawBaseTests, RawCommand, RawCommandTable, RawDimension, RawDisk, RawLand, RawMode, RawMutation,
    RawOverdue, RawPrice, RawProfile, RawPublish, RawRedBase, RawRequiredSandbox, RawReview, RawReviewMode,
    RawSandbox, RawSettings, RawStyle, RawVerify,
};
use super::service::{self, HookSettings, NotificationChannel, WorkspaceSettings};
use super::shares;
use super::tracker::{self, TrackerSettings};
use super::units::{DAY, Dollars, Millis, show_bytes};
use super::wholework;

/// All settings of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What the project is.
    pub project: ProjectSettings,
    /// How work is proved.
    pub verify: VerifySettings,
    /// How the engine drives agents.
    pub run: RunSettings,
    /// The agents by the name of their profile.
    pub agents: BTreeMap<String, ProfileSettings>,
    /// How many agents may be at work at once by profile, account and area.
    pub caps: ConcurrencyLimits,
    /// What one attempt, one task may spend.
    pub attempt_budget: Budget,
    /// What one task may spend.
    pub task_budget: Budget,
    /// What a run and a day may spend.
    pub purse: RunBudgets,
    /// What models cost.
    pub prices: Prices,
    /// How proved work reaches the base branch.
    pub land: LandSettings,
    /// When a person looks at work.
    pub review: ReviewSettings,
    /// The profile that judges, if not the one that did the work.
    pub judge: Option<String>,
    /// Places of the base branch to go back to.
    pub checkpoint: CheckpointSettings,
    /// How long things are kept.
    pub keep: RetentionSettings,
    /// What happens when the disk fills up.
    pub disk: DiskSettings,
    /// What is run in a workspace besides its agent, and its ports.
    pub workspace: WorkspaceSettings,
    /// The person's own commands.
    pub hooks: HookSettings,
    /// Whom to tell.
    pub notify: Vec<NotificationChannel>,
    /// Where traces are sent.
    pub telemetry: Option<String>,
    /// Where issues are, and how they are taken from there to landed work.
    pub tracker: TrackerSettings,
    /// What was taken over from the settings of another tool, a line each.
    pub mapped: Vec<String>,
}

/// What the project is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectSettings {
    /// The branch that work lands on; without it, the one that is checked out.
    pub base: Option<String>,
    /// The flow of tasks that do not name one.
    pub flow: String,
}

/// How work is proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifySettings {
    /// Whether work may land only when there is a command to prove it.
    pub required: bool,
    /// How often a failed command is run again.
    pub retries: u32,
    /// Whether files that git ignores stay in a lane between runs.
    pub keep_ignored: bool,
    /// What a failing test of the base means.
    pub base_tests: BaseTestMode,
    /// What it means if no test notices altered lines.
    pub mutation: MutationMode,
    /// What agents do while a check does not pass on the base.
    pub red_base: RedBasePolicy,
    /// The commands, in order.
    pub commands: Vec<VerifyCommand>,
}

/// One verification command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyCommand {
    /// What people call it; no two are called the same.
    pub name: String,
    /// The command line for the shell.
    pub run: String,
    /// How long it may take.
    pub timeout_ms: u64,
    /// Whether a failure keeps work from landing.
    pub required: bool,
    /// The dimension it holds down when it fails.
    pub caps: Option<Dimension>,
    /// The folders that it installs, and what they are made from. A verification may get a copy of them.
    pub installs: Option<Installation>,
}

/// What a verification command installs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// The folders, relative to the project.
    pub folders: Vec<String>,
    /// The files and folders of the project that they depend on.
    pub sources: Vec<String>,
}

/// How the engine drives agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSettings {
    /// How many agents may work at once.
    pub slots: u32,
    /// How many verifications may run at once.
    pub lanes: u32,
    /// How often an agent may be run for one task.
    pub iterations_max: u32,
    /// How long one task may take.
    pub task_limit_ms: u64,
    /// After how many runs without a commit to warn.
    pub stuck_after: u32,
    /// How long what is borne with.
    pub watch: LivenessLimits,
    /// How often an agent may fall silent in one step.
    pub stalls_step_max: u32,
    /// How often an agent may fall silent in all.
    pub stalls_total_max: u32,
    /// How full the context of a session may be, in per cent.
    pub compact_percent: u32,
    /// How often an agent may drop its context within one run.
    pub compactions_max: u32,
    /// How agents and checks are confined.
    pub sandbox: Confinement,
    /// Whether the machine does not support what would be the level, and the settings name none.
    pub is_sandbox_lowered: bool,
    /// What may be read besides.
    pub sandbox_read: Vec<String>,
    /// Caches that each workspace and each lane changes for itself.
    pub caches: Vec<String>,
    /// What may be written besides.
    pub sandbox_write: Vec<String>,
    /// What cannot be read besides.
    pub sandbox_hide: Vec<String>,
    /// How long a process that was told to stop may take.
    pub grace_ms: u64,
    /// How long an agent with a loop of its own may take to finish its step.
    pub step_grace_ms: u64,
    /// How many bytes of output of one agent run are kept.
    pub output_cap: u64,
    /// How often an agent that crashed is started again.
    pub restarts_max: u32,
    /// After how many failures in a row a run pauses.
    pub failures_max: u32,
    /// Who picks the next task.
    pub mode: PilotMode,
    /// Names of environment variables passed on besides the safe list.
    pub env: Vec<String>,
}

/// An agent with its model, flags and environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileSettings {
    /// What settings call it.
    pub name: String,
    /// Which agent it is. Whether there is such an agent is for the registry to say.
    pub kind: String,
    /// The command line of a `command` agent.
    pub run: Option<String>,
    /// The file of a `script` agent, relative to the project.
    pub script: Option<PathBuf>,
    /// The model to ask for.
    pub model: Option<String>,
    /// How hard the model is to think.
    pub effort: Option<String>,
    /// How it is driven from run to run.
    pub style: AgentDriveStyle,
    /// What is used up together.
    pub account: String,
    /// The profile that takes over while the account is shut.
    pub failover: Option<String>,
    /// How many turns the model may take in one run.
    pub turns_max: Option<u32>,
    /// How it is confined.
    pub sandbox: Confinement,
    /// Whether it gets our MCP tools.
    pub mcp: bool,
    /// The time between two looks at its terminal, where it has one.
    pub terminal_poll_ms: u64,
    /// Names of environment variables passed on to it alone.
    pub pass_env: Vec<String>,
    /// More arguments, as they are.
    pub flags: Vec<String>,
    /// More environment.
    pub env: BTreeMap<String, String>,
}

/// How proved work reaches the base branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandSettings {
    /// Where landed work is published.
    pub publish: PublishTarget,
    /// Whether the engine commits what an agent left uncommitted.
    pub commit_leftovers: bool,
    /// How many files and folders one task may add or change.
    pub paths_max: u64,
    /// How many tasks may land together.
    pub batch: usize,
    /// How many batches are verified on top of one that has not landed.
    pub speculate: usize,
    /// Verifications without a landing before the queue is paused.
    pub runaway: u32,
    /// How long a person has for a hard conflict.
    pub conflict_wait_ms: u64,
    /// What happens after that.
    pub conflict_overdue: ConflictTimeoutAction,
}

/// When a person looks at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewSettings {
    /// The rule for most tasks.
    pub rule: ReviewRule,
    /// Modes for tasks with a tag.
    pub tags: BTreeMap<Tag, ReviewMode>,
    /// The profile that reads the work of others.
    pub agent: Option<String>,
}

/// Places of the base branch to go back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointSettings {
    /// Whether they are made as tasks land.
    pub automatic: bool,
    /// How long they are kept.
    pub retention: Retention,
}

/// Where landed work is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishTarget {
    /// The person's branch, and their checkout if it is clean.
    Checkout,
    /// A remote, never by force.
    Push {
        /// Its name or address.
        remote: String,
        /// How it gets onto the branch there.
        by: PushMode,
    },
    /// Nowhere: it stays in the store.
    None,
}

/// How landed work gets onto the branch of a remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushMode {
    /// The branch is pushed.
    Us,
    /// Nobody may push it: the forge merges a pull request.
    PullRequest,
}

/// How long things are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionSettings {
    /// The workspace of a failed task.
    pub failed_ms: u64,
    /// The logs of attempts.
    pub attempts_ms: u64,
}

/// What happens when the disk fills up, by what is still free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskSettings {
    /// Below this, warn.
    pub warn_bytes: u64,
    /// Below this, start no more agents.
    pub pause_bytes: u64,
    /// Below this, stop the agents that run.
    pub stop_bytes: u64,
}

impl Settings {
    /// The settings in `text`. Messages call the file `file`.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn parse(text: &str, file: &str) -> Result<Self, SettingsProblem> {
        Self::parse_with_wholework(None, text, file)
    }

    /// The same, over what `.wholework.yml` says where the file says nothing.
    ///
    /// # Errors
    /// The first thing that is wrong with `text`. What is wrong with the other file is said in [`Settings::mapped`].
    pub fn parse_with_wholework(
        wholework: Option<&str>,
        text: &str,
        file: &str,
    ) -> Result<Self, SettingsProblem> {
        Self::parse_for_machine(true, wholework, text, file)
    }

    /// The same, for a machine that can isolate agents or cannot: the level of the sandbox depends on it where the file names
    /// none.
    ///
    /// # Errors
    /// As for [`Settings::parse_with_wholework`].
    pub fn parse_for_machine(
        can_isolate: bool,
        wholework: Option<&str>,
        text: &str,
        file: &str,
    ) -> Result<Self, SettingsProblem> {
        let source = SettingsSource { text, file };
        let document = source.parse_document()?;
        if let Some(unknown) = keys::first_unknown_key(document.get_ref()) {
            return Err(source.unknown_key_problem(unknown));
        }
        let mut raw = RawSettings::deserialize(Deserializer::from(document.clone()))
            .map_err(|error| source.unreadable_problem(&error, &document))?;
        let said = |section: &str, key: &str| {
            let section = document.get_ref().get(section).and_then(|section| section.get_ref().as_table());
            section.is_some_and(|section| section.contains_key(key))
        };
        let mapped =
            wholework.map(|text| wholework::apply_wholework(&mut raw, &said, text)).unwrap_or_default();
        let settings =
            resolve_settings(raw, can_isolate).map_err(|fault| source.fault_problem(fault, &document))?;
        Ok(Self { mapped, ..settings })
    }

    /// The settings of an empty file.
    #[must_use]
    pub fn defaults() -> Self {
        resolve_settings(RawSettings::default(), true).expect("the defaults fit together")
    }

    /// The JSON schema of the file, for editors.
    #[must_use]
    pub fn editor_schema() -> serde_json::Value {
        keys::settings_schema().clone()
    }
}

impl VerifySettings {
    /// The `[verify]` section of a file on the base branch. Other sections are not looked at: they may be of a newer
    /// version, and they do not decide what is proved.
    ///
    /// # Errors
    /// The first thing that is wrong with the section, or with the file as TOML.
    pub fn from_base(text: &str) -> Result<Self, SettingsProblem> {
        let source = SettingsSource { text, file: "landfall.toml" };
        let document = source.parse_document()?;
        let Some(section) = document.get_ref().get("verify") else {
            return Ok(Settings::defaults().verify);
        };
        if let Some(unknown) = section.get_ref().as_table().and_then(keys::unknown_in_verify) {
            return Err(source.unknown_key_problem(unknown));
        }
        let raw = RawVerify::deserialize(ValueDeserializer::from(section.clone()))
            .map_err(|error| source.unreadable_problem(&error, &document))?;
        resolve_verify(raw).map_err(|fault| source.fault_problem(fault, &document))
    }

    /// The section as text that is the same for the same meaning: what a digest of the verification is made of.
    #[must_use]
    pub fn canonical_text(&self) -> String {
        // Debug quoting keeps a newline in a command from looking like another field.
        // When agents start is no matter of what a pass means.
        let Self { required, retries, keep_ignored, base_tests, mutation, red_base: _, commands } = self;
        let mut out = format!("required={required}\nretries={retries}\nkeep_ignored={keep_ignored}\n");
        // Defaults are left out, so that passes from before these settings stay known.
        if *base_tests != BaseTestMode::default() {
            out.push_str(&format!("base_tests={}\n", base_tests.wire_name()));
        }
        if *mutation != MutationMode::default() {
            out.push_str(&format!("mutation={}\n", mutation.wire_name()));
        }
        for VerifyCommand { name, run, timeout_ms, required, caps, installs } in commands {
            out.push_str(&format!(
                "command={name:?} run={run:?} timeout_ms={timeout_ms} required={required}\n"
            ));
            if let Some(caps) = caps {
                out.push_str(&format!("caps={}\n", caps.code()));
            }
            if let Some(Installation { folders, sources }) = installs {
                out.push_str(&format!("installs={folders:?} from={sources:?}\n"));
            }
        }
        out
    }

    /// The first commands, as long as they install something.
    #[must_use]
    pub fn installing_commands(&self) -> Vec<(&VerifyCommand, &Installation)> {
        self.commands.iter().map_while(|command| Some((command, command.installs.as_ref()?))).collect()
    }
}

/// Something that does not fit together, by the keys that lead to it.
#[derive(Debug)]
pub(super) struct SettingsMismatch {
    path: Vec<String>,
    message: String,
    hint: Option<String>,
}

impl SettingsMismatch {
    pub(super) fn new(path: &[&str], message: impl Into<String>) -> Self {
        Self { path: path.iter().map(|&key| key.to_owned()).collect(), message: message.into(), hint: None }
    }

    pub(super) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

fn resolve_settings(raw: RawSettings, can_isolate: bool) -> Result<Settings, SettingsMismatch> {
    let RawSettings { project, verify: raw_verify, run, agent, budget, price, land, keep, disk, .. } = raw;
    let RawSettings { workspace, hooks, notify, telemetry, account, area, review, judge, checkpoint, .. } =
        raw;
    let tracker = tracker::resolve_tracker(raw.tracker)?;
    // Whoever works on issues has no need of the token.
    let secrets: Vec<String> = tracker.secret_files().map(|path| path.display().to_string()).collect();
    if let Some(base) = &project.base {
        check_branch(base)?;
    }
    if project.flow.trim().is_empty() {
        return Err(SettingsMismatch::new(&["project", "flow"], "`project.flow` is empty")
            .with_hint("`loop` is the default"));
    }
    check_names(&run.env, &["run", "env"])?;
    let required = raw.sandbox.require.map(required_confinement);
    let default = default_confinement(can_isolate, required);
    let run_sandbox = resolve_confinement(run.sandbox, default);
    check_required(&["run", "sandbox"], run_sandbox, required)?;
    let slots = agent.iter().filter_map(|(name, raw)| Some((name.clone(), raw.slots?.0))).collect();
    let agents = agent
        .into_iter()
        .map(|(name, raw)| Ok((name.clone(), resolve_profile(name, raw, run_sandbox, default)?)))
        .collect::<Result<BTreeMap<_, _>, SettingsMismatch>>()?;
    for (name, profile) in &agents {
        check_required(&["agent", name, "sandbox"], profile.sandbox, required)?;
    }
    check_failovers(&agents)?;
    let review = resolve_review(review)?;
    if let Some(name) = review.agent.as_ref().filter(|name| !agents.contains_key(*name)) {
        let what = format!("`review.agent` is `{name}`, which is no agent profile");
        let known = agents.keys().cloned().collect::<Vec<_>>().join(", ");
        return Err(SettingsMismatch::new(&["review", "agent"], what).with_hint(format!("known: {known}")));
    }
    let judge = judge.agent.or_else(|| agents.contains_key("judge").then(|| "judge".to_owned()));
    if let Some(name) = judge.as_ref().filter(|name| !agents.contains_key(*name)) {
        let what = format!("`judge.agent` is `{name}`, which is no agent profile");
        let known = agents.keys().cloned().collect::<Vec<_>>().join(", ");
        return Err(SettingsMismatch::new(&["judge", "agent"], what).with_hint(format!("known: {known}")));
    }
    let caps = shares::resolve_caps(slots, account, area, &agents)?;
    let budget_of = |usd: Option<Dollars>, tokens, turns, time_ms| Budget {
        micro_usd: usd.map(|usd| usd.0),
        tokens,
        turns,
        time_ms,
    };
    let ms = |time: Option<Millis<1000, { 365 * DAY }>>| time.map(|time| time.0);
    let b = budget;
    let attempt_budget = budget_of(b.attempt_usd, b.attempt_tokens, b.attempt_turns, ms(b.attempt_time));
    let task_budget = budget_of(b.task_usd, b.task_tokens, b.task_turns, ms(b.task_time));
    let run_budget = budget_of(b.run_usd, b.run_tokens, b.run_turns, ms(b.run_time));
    let day_budget = budget_of(b.day_usd, b.day_tokens, b.day_turns, ms(b.day_time));
    Ok(Settings {
        project: ProjectSettings { base: project.base, flow: project.flow },
        verify: resolve_verify(raw_verify)?,
        run: RunSettings {
            slots: run.slots.0,
            lanes: run.lanes.0,
            iterations_max: run.iterations_max.0,
            task_limit_ms: run.task_limit.0,
            stuck_after: run.stuck_after.0,
            watch: LivenessLimits {
                beat_ms: run.heartbeat.0,
                beats: run.heartbeats.0,
                silence_ms: run.silence.0,
                first_output_ms: run.first_output.0,
                tool_ms: run.tool_limit.0,
            },
            stalls_step_max: run.stalls_step_max.0,
            stalls_total_max: run.stalls_total_max.0,
            compact_percent: run.compact_at.0,
            compactions_max: run.compactions_max.0,
            sandbox: run_sandbox,
            is_sandbox_lowered: matches!(run.sandbox, RawSandbox::Auto)
                && run_sandbox < Confinement::Isolated,
            sandbox_read: run.sandbox_read,
            caches: run.caches,
            sandbox_write: run.sandbox_write,
            sandbox_hide: run.sandbox_hide.into_iter().chain(secrets).collect(),
            grace_ms: run.grace.0,
            step_grace_ms: run.step_grace.0,
            output_cap: run.output_cap.0,
            restarts_max: run.restarts_max.0,
            failures_max: run.failures_max.0,
            mode: match run.mode {
                RawMode::Autopilot => PilotMode::Autopilot,
                RawMode::SemiAuto => PilotMode::SemiAuto,
            },
            env: run.env,
        },
        agents,
        caps,
        attempt_budget,
        task_budget,
        purse: RunBudgets { run: run_budget, day: day_budget },
        prices: resolve_prices(price),
        land: resolve_publishing(land, &tracker)?,
        review,
        judge,
        checkpoint: CheckpointSettings {
            automatic: checkpoint.automatic,
            retention: Retention {
                count: usize::try_from(checkpoint.keep.0).expect("at most 1000"),
                age_ms: checkpoint.keep_for.0,
            },
        },
        keep: RetentionSettings { failed_ms: keep.failed.0, attempts_ms: keep.attempts.0 },
        disk: resolve_disk(&disk)?,
        workspace: service::resolve_workspace(workspace)?,
        hooks: service::resolve_hooks(hooks)?,
        notify: service::resolve_channels(notify)?,
        telemetry: service::resolve_telemetry(telemetry)?,
        tracker,
        mapped: Vec::new(),
    })
}

/// Refuses what could not be a branch, or could be read as an option; git has the last word.
fn check_branch(base: &str) -> Result<(), SettingsMismatch> {
    let odd = |c: char| c.is_whitespace() || c.is_control() || "~^:?*[\\".contains(c);
    if base.is_empty() || base.starts_with('-') || base.contains("..") || base.contains(odd) {
        let what = format!("`{}` is not the name of a branch", base.escape_debug());
        return Err(
            SettingsMismatch::new(&["project", "base"], what).with_hint("a local branch such as `main`")
        );
    }
    Ok(())
}

/// What a command installs, if it says so. `at` is its place in the list.
fn resolve_installation(
    folders: Vec<String>,
    sources: Vec<String>,
    is_first: bool,
    at: &str,
) -> Result<Option<Installation>, SettingsMismatch> {
    let fault = |key: &str, what: String| SettingsMismatch::new(&["verify", "command", at, key], what);
    let is_plain = |path: &String| {
        !path.contains(char::is_control)
            && path.split('/').all(|part| !["", ".", "..", ".git"].contains(&part))
    };
    for (key, paths) in [("installs", &folders), ("installs_from", &sources)] {
        if let Some(path) = paths.iter().find(|path| !is_plain(path)) {
            let what = format!("`{}` is no path inside of the project", path.escape_debug());
            return Err(fault(key, what).with_hint("relative, without `..`: `node_modules`"));
        }
    }
    match (folders.is_empty(), sources.is_empty()) {
        (true, true) => Ok(None),
        (true, false) => Err(fault("installs_from", "`installs_from` without `installs`".to_owned())
            .with_hint("name the folders that the command fills: `installs = [\"node_modules\"]`")),
        (false, true) => Err(fault("installs", "`installs` without `installs_from`".to_owned()).with_hint(
            "name what they depend on: `installs_from = [\"package.json\", \"package-lock.json\"]`",
        )),
        (false, false) if !is_first => {
            Err(fault("installs", "only the first commands may have `installs`".to_owned())
                .with_hint("list the commands that install before all others"))
        }
        (false, false) => Ok(Some(Installation { folders, sources })),
    }
}

fn resolve_verify(raw: RawVerify) -> Result<VerifySettings, SettingsMismatch> {
    let mut names = BTreeSet::new();
    let mut commands: Vec<VerifyCommand> = Vec::new();
    for (at, command) in raw.command.into_iter().enumerate() {
        let at = at.to_string();
        let RawCommandTable { name, run, timeout, required, caps, installs, installs_from } = match command {
            RawCommand::Line(run) => RawCommandTable {
                name: None,
                run,
                timeout: None,
                required: true,
                caps: None,
                installs: Vec::new(),
                installs_from: Vec::new(),
            },
            RawCommand::Table(table) => table,
        };
        if run.trim().is_empty() || run.contains('\0') {
            let fault =
                SettingsMismatch::new(&["verify", "command", &at, "run"], "a verification command is empty");
            return Err(fault.with_hint("take it out, or say what to run"));
        }
        let name = match name {
            None => derive_name(&run, &names),
            Some(name) if name.trim().is_empty() || name.contains(char::is_control) => {
                let what = format!("`{}` is no name for a command", name.escape_debug());
                return Err(SettingsMismatch::new(&["verify", "command", &at, "name"], what)
                    .with_hint("one line of text"));
            }
            Some(name) if names.contains(&name) => {
                let what = format!("two commands are called `{name}`");
                return Err(SettingsMismatch::new(&["verify", "command", &at, "name"], what)
                    .with_hint("call one of them otherwise"));
            }
            Some(name) => name,
        };
        names.insert(name.clone());
        let timeout_ms = timeout.unwrap_or(raw.timeout).0;
        let is_first = commands.iter().all(|command| command.installs.is_some());
        let installs = resolve_installation(installs, installs_from, is_first, &at)?;
        let caps = caps.map(resolve_dimension);
        commands.push(VerifyCommand { name, run, timeout_ms, required, caps, installs });
    }
    if let Some(last) = commands.len().checked_sub(1)
        && commands.iter().all(|command| command.installs.is_some())
    {
        // A verification that copies all of them would run nothing and pass.
        let what = "every verification command has `installs`, so none would verify the work";
        let fault = SettingsMismatch::new(&["verify", "command", &last.to_string(), "installs"], what);
        return Err(
            fault.with_hint("add a command without `installs` that runs the tests, or remove `installs`")
        );
    }
    let base_tests = match raw.base_tests {
        RawBaseTests::Review => BaseTestMode::Review,
        RawBaseTests::Report => BaseTestMode::Report,
        RawBaseTests::Off => BaseTestMode::Off,
    };
    let mutation = match raw.mutation {
        RawMutation::Review => MutationMode::Review,
        RawMutation::Report => MutationMode::Report,
        RawMutation::Off => MutationMode::Off,
    };
    Ok(VerifySettings {
        required: raw.required,
        retries: raw.retries.0,
        keep_ignored: raw.keep_ignored,
        base_tests,
        mutation,
        red_base: match raw.red_base {
            RawRedBase::Wait => RedBasePolicy::Wait,
            RawRedBase::Start => RedBasePolicy::Start,
        },
        commands,
    })
}

fn resolve_dimension(raw: RawDimension) -> Dimension {
    match raw {
        RawDimension::D1 => Dimension::Correctness,
        RawDimension::D2 => Dimension::Security,
        RawDimension::D3 => Dimension::Reliability,
        RawDimension::D4 => Dimension::Performance,
        RawDimension::D5 => Dimension::Architecture,
        RawDimension::D6 => Dimension::Maintainability,
    }
}

/// A name for a command that has none: its first line, and a number if that is taken.
fn derive_name(run: &str, taken: &BTreeSet<String>) -> String {
    const NAME_MAX: usize = 60; // a column in a report
    let words: String =
        run.trim().lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).collect();
    let mut name: String = words.chars().take(NAME_MAX).collect();
    if name.len() < words.len() {
        name.push('…');
    }
    let numbered = (2..).map(|number| format!("{name} ({number})"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name));
    free.expect("numbers do not run out")
}

pub(super) fn check_names(names: &[String], path: &[&str]) -> Result<(), SettingsMismatch> {
    for name in names {
        if name.is_empty() || name.contains(['=', '\0']) {
            let dotted = path.join(".");
            let what = format!("`{}` in `{dotted}` is not the name of a variable", name.escape_debug());
            return Err(
                SettingsMismatch::new(path, what).with_hint("names only; values come from the environment")
            );
        }
    }
    Ok(())
}

/// Whoever takes over must be there, and must not lead back.
fn check_failovers(agents: &BTreeMap<String, ProfileSettings>) -> Result<(), SettingsMismatch> {
    for (name, profile) in agents {
        let mut seen = vec![name.as_str()];
        let mut at = profile;
        while let Some(next) = &at.failover {
            let path = ["agent", seen.last().expect("it begins with one"), "failover"];
            let Some(found) = agents.get(next) else {
                let known = agents.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                let what = format!("`failover` names the profile `{next}`, which is not there");
                return Err(SettingsMismatch::new(&path, what).with_hint(format!("the profiles are {known}")));
            };
            if seen.contains(&next.as_str()) {
                let what = format!("`failover` leads round in a circle: {} → {next}", seen.join(" → "));
                return Err(SettingsMismatch::new(&path, what));
            }
            seen.push(next);
            at = found;
        }
    }
    Ok(())
}

fn resolve_confinement(raw: RawSandbox, default: Confinement) -> Confinement {
    match raw {
        RawSandbox::Auto => default,
        RawSandbox::Strict => Confinement::Strict,
        RawSandbox::Isolated => Confinement::Isolated,
        RawSandbox::Write => Confinement::Write,
        RawSandbox::Off => Confinement::Off,
    }
}

fn required_confinement(raw: RawRequiredSandbox) -> Confinement {
    match raw {
        RawRequiredSandbox::Strict => Confinement::Strict,
        RawRequiredSandbox::Isolated => Confinement::Isolated,
        RawRequiredSandbox::Write => Confinement::Write,
    }
}

fn check_required(
    path: &[&str],
    level: Confinement,
    required: Option<Confinement>,
) -> Result<(), SettingsMismatch> {
    match required {
        Some(required) if level < required => {
            let (level, required) = (level.word(), required.word());
            let what =
                format!("`{}` is \"{level}\", and `sandbox.require` is \"{required}\"", path.join("."));
            Err(SettingsMismatch::new(path, what).with_hint("take this line out, or lower `sandbox.require`"))
        }
        _ => Ok(()),
    }
}

/// The prices that come with Landfall.
const PRICES: &str = include_str!("../../prices.toml");

/// The known prices, and those of the project, which win by name.
fn resolve_prices(own: BTreeMap<String, RawPrice>) -> Prices {
    let known: BTreeMap<String, RawPrice> = toml::from_str(PRICES).expect("the prices we ship can be read");
    let price = |raw: RawPrice| Price {
        input: raw.input.0,
        cached: raw.cached.unwrap_or(raw.input).0,
        output: raw.output.0,
    };
    Prices(known.into_iter().chain(own).map(|(model, raw)| (model, price(raw))).collect())
}

fn resolve_profile(
    name: String,
    raw: RawProfile,
    sandbox: Confinement,
    default: Confinement,
) -> Result<ProfileSettings, SettingsMismatch> {
    let odd = |c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if name.is_empty() || name.contains(odd) {
        let what = format!("`{}` is no name for an agent", name.escape_debug());
        return Err(
            SettingsMismatch::new(&["agent", &name], what).with_hint("letters, digits, `-`, `_` and `.`")
        );
    }
    if raw.kind.trim().is_empty() {
        let what = format!("`kind` in [agent.{name}] is empty");
        return Err(SettingsMismatch::new(&["agent", &name, "kind"], what)
            .with_hint("`landfall agents` lists the known kinds"));
    }
    for variable in raw.env.keys() {
        if variable.is_empty() || variable.contains(['=', '\0']) {
            let what =
                format!("`{}` in [agent.{name}.env] is not the name of a variable", variable.escape_debug());
            return Err(SettingsMismatch::new(&["agent", &name, "env", variable], what));
        }
    }
    check_names(&raw.pass_env, &["agent", &name, "pass_env"])?;
    let style = match raw.style {
        RawStyle::Fresh => AgentDriveStyle::Fresh,
        RawStyle::Session => AgentDriveStyle::Session,
        RawStyle::Own => AgentDriveStyle::Own,
        RawStyle::Dispatch => AgentDriveStyle::Dispatch,
    };
    Ok(ProfileSettings {
        name,
        style,
        account: raw.account.unwrap_or_else(|| raw.kind.clone()),
        kind: raw.kind,
        run: raw.run,
        script: raw.script,
        model: raw.model,
        effort: raw.effort,
        failover: raw.failover,
        turns_max: raw.turns_max.map(|turns| turns.0),
        sandbox: raw.sandbox.map_or(sandbox, |raw| resolve_confinement(raw, default)),
        mcp: raw.mcp,
        terminal_poll_ms: raw.terminal_poll.0,
        pass_env: raw.pass_env,
        flags: raw.flags,
        env: raw.env,
    })
}

fn resolve_publishing(raw: RawLand, tracker: &TrackerSettings) -> Result<LandSettings, SettingsMismatch> {
    let forge = tracker.kind.is_some_and(|kind| registry::find_tracker(kind).is_ok_and(|entry| entry.away));
    if matches!(raw.publish, RawPublish::PullRequest) && !forge {
        let what = format!(
            "`land.publish` is \"pull-request\", and the tracker `{}` merges none",
            tracker.kind.unwrap_or("none")
        );
        let fault = SettingsMismatch::new(&["land", "publish"], what);
        return Err(
            fault.with_hint("set `tracker.kind` to a forge such as \"github\", or publish by \"push\"")
        );
    }
    let publish = match (raw.publish, raw.remote) {
        (RawPublish::Push | RawPublish::PullRequest, Some(remote))
            if remote.is_empty() || remote.starts_with('-') =>
        {
            let what = format!("`{}` is not a remote", remote.escape_debug());
            return Err(SettingsMismatch::new(&["land", "remote"], what)
                .with_hint("a name such as `origin`, or an address"));
        }
        (RawPublish::Push | RawPublish::PullRequest, remote) => PublishTarget::Push {
            remote: remote.unwrap_or_else(|| "origin".to_owned()),
            by: if matches!(raw.publish, RawPublish::Push) { PushMode::Us } else { PushMode::PullRequest },
        },
        (RawPublish::Checkout | RawPublish::None, Some(_)) => {
            let fault =
                SettingsMismatch::new(&["land", "remote"], "`land.remote` is set, but nothing is pushed");
            return Err(fault.with_hint("set `publish = \"push\"`, or take `remote` out"));
        }
        (RawPublish::Checkout, None) => PublishTarget::Checkout,
        (RawPublish::None, None) => PublishTarget::None,
    };
    Ok(LandSettings {
        publish,
        commit_leftovers: raw.commit_leftovers,
        paths_max: raw.paths_max.0.into(),
        batch: usize::try_from(raw.batch.0).expect("at most 32"),
        speculate: usize::try_from(raw.speculate.0).expect("at most 4"),
        runaway: raw.runaway.0,
        conflict_wait_ms: raw.conflict_wait.0,
        conflict_overdue: match raw.conflict_overdue {
            RawOverdue::Defer => ConflictTimeoutAction::Defer,
            RawOverdue::Skip => ConflictTimeoutAction::Skip,
            RawOverdue::Retry => ConflictTimeoutAction::Retry,
            RawOverdue::Notify => ConflictTimeoutAction::Notify,
        },
    })
}

fn resolve_review(raw: RawReview) -> Result<ReviewSettings, SettingsMismatch> {
    let mode = |raw: RawReviewMode| match raw {
        RawReviewMode::Skip => ReviewMode::Skip,
        RawReviewMode::AutoApprove => ReviewMode::AutoApprove,
        RawReviewMode::Batch => ReviewMode::Batch,
        RawReviewMode::PerTask => ReviewMode::PerTask,
    };
    let tag = |(name, raw): (String, RawReviewMode)| match name.parse::<Tag>() {
        Ok(tag) => Ok((tag, mode(raw))),
        Err(error) => Err(SettingsMismatch::new(&["review", "tags", &name], error.to_string())),
    };
    Ok(ReviewSettings {
        rule: ReviewRule { mode: mode(raw.mode), iterations_max: raw.iterations_max.0, after: false },
        tags: raw.tags.into_iter().map(tag).collect::<Result<_, _>>()?,
        agent: raw.agent,
    })
}

fn resolve_disk(raw: &RawDisk) -> Result<DiskSettings, SettingsMismatch> {
    let (warn, pause, stop) = (raw.warn.0, raw.pause.0, raw.stop.0);
    let upside_down = |lower: &str, low: u64, upper: &str, high: u64| {
        let (low, high) = (show_bytes(low), show_bytes(high));
        let what = format!("`disk.{lower}` ({low}) is more than `disk.{upper}` ({high})");
        SettingsMismatch::new(&["disk", lower], what)
            .with_hint("`warn` comes first, then `pause`, then `stop`")
    };
    if stop > pause {
        return Err(upside_down("stop", stop, "pause", pause));
    }
    if pause > warn {
        return Err(upside_down("pause", pause, "warn", warn));
    }
    Ok(DiskSettings { warn_bytes: warn, pause_bytes: pause, stop_bytes: stop })
}

/// A file and what messages call it.
struct SettingsSource<'a> {
    text: &'a str,
    file: &'a str,
}

impl<'a> SettingsSource<'a> {
    fn parse_document(&self) -> Result<Spanned<DeTable<'a>>, SettingsProblem> {
        DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map(|span| span.start);
            let mut problem =
                self.problem_at(at, format!("not TOML: {}", error.message().replace('\n', "; ")));
            if let Some(line) = problem.line.and_then(|line| line_text(self.text, line)) {
                problem.message.push_str(&format!(", in `{line}`"));
            }
            problem
        })
    }

    fn unreadable_problem(
        &self,
        error: &toml::de::Error,
        document: &Spanned<DeTable<'_>>,
    ) -> SettingsProblem {
        let at = error.span().map(|span| span.start);
        let path = at.map(|at| path_at(document.get_ref(), at)).unwrap_or_default();
        self.problem_at(at, explain_reader_message(&path, error.message()))
    }

    fn unknown_key_problem(&self, unknown: UnknownSettingKey) -> SettingsProblem {
        let problem = self.problem_at(Some(unknown.span.start), unknown.message);
        SettingsProblem { hint: Some(unknown.hint), ..problem }
    }

    fn fault_problem(&self, fault: SettingsMismatch, document: &Spanned<DeTable<'_>>) -> SettingsProblem {
        let path: Vec<&str> = fault.path.iter().map(String::as_str).collect();
        let at = span_of(document, &path).map(|span| span.start);
        SettingsProblem { hint: fault.hint, ..self.problem_at(at, fault.message) }
    }

    fn problem_at(&self, at: Option<usize>, message: String) -> SettingsProblem {
        let place = at.map(|at| position_at(self.text, at));
        SettingsProblem {
            file: self.file.to_owned(),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
            message,
            hint: None,
        }
    }
}

/// What the reader said about the value at `path`, in our words where its own are about programming.
fn explain_reader_message(path: &[String], message: &str) -> String {
    let dotted = path.join(".");
    if let Some(field) = message.strip_prefix("missing field ") {
        return format!("{field} is missing in [{dotted}]");
    }
    let said = match message.rsplit_once(", expected ") {
        Some((found, wanted)) => {
            let found = found.replacen("unknown variant", "unknown word", 1);
            let found = shorten_message(found.strip_prefix("invalid type: ").unwrap_or(&found));
            let wanted = match wanted {
                "a sequence" => "a list",
                "a boolean" => "true or false",
                "a string" => "text in quotes",
                "a map" => "a table",
                wanted if wanted.starts_with("struct ") => "a table",
                wanted => wanted,
            };
            format!("expected {wanted}, found {found}")
        }
        None => shorten_message(message),
    };
    if path.is_empty() { said } else { format!("`{dotted}`: {said}") }
}

/// The beginning of a message: a value in it may be of any length.
fn shorten_message(message: &str) -> String {
    const SHOWN_MAX: usize = 200; // a message is read in a line or two
    let mut shown: String = message.chars().take(SHOWN_MAX).collect();
    if shown.len() < message.len() {
        shown.push('…');
    }
    shown
}

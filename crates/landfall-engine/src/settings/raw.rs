//! `landfall.toml` as it is written: a field is a setting, its comment is its documentation, and the defaults stand
//! below it. The schema and the reference page are made from this file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use landfall_model::POLL_MS;
use landfall_trackers::github::GithubRetryPolicy;

use super::units::{BoundedInteger, ByteSize, DAY, Dollars, GIB, KIB, MIB, MINUTE, Millis, SECOND, TIB};

/// Settings of a Landfall project. Every key has a default, so an empty file is valid.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "landfall.toml")]
pub struct RawSettings {
    /// What the project is.
    pub project: RawProject,
    /// How work is proved. Read from the base branch: a change cannot loosen the checks it is judged by.
    pub verify: RawVerify,
    /// How the engine drives agents.
    pub run: RawRun,
    /// What the sandbox must be for agents and checks to start.
    pub sandbox: RawSandboxPolicy,
    /// The agents, as named profiles. `default` does the work unless a task asks for another.
    pub agent: BTreeMap<String, RawProfile>,
    /// The accounts that agents work on, as `account` in their profiles names them.
    pub account: BTreeMap<String, RawAccount>,
    /// Parts of the repository where only so many agents may work at once. A task is in an area if it touches one of its
    /// paths: by what its `touches` say, and by what it was seen to change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub area: Vec<RawArea>,
    /// What may be spent. A key that is not there is no bound. Agents start only while there is something left, and end
    /// when it is used up: at most one turn of each is spent beyond.
    pub budget: RawBudget,
    /// What a million tokens cost, by the beginning of a model's name; it is added to the prices Landfall knows. Agents
    /// that report what they cost are believed over it.
    pub price: BTreeMap<String, RawPrice>,
    /// How proved work reaches the base branch and you.
    pub land: RawLand,
    /// When a person looks at work.
    pub review: RawReview,
    /// Who judges plans and work in flows with checks.
    pub judge: RawJudge,
    /// Places of the base branch to go back to.
    pub checkpoint: RawCheckpoint,
    /// How long things are kept.
    pub keep: RawKeep,
    /// What happens when the disk fills up, by what is still free where the state lives.
    pub disk: RawDisk,
    /// What is run in a task's workspace besides its agent, inside the same sandbox, and the ports it gets.
    pub workspace: RawWorkspace,
    /// Commands of yours, run when something has happened. They run in the project root, outside of the sandbox, and
    /// nothing waits for them. What happened is in their environment and, as JSON, on their stdin. They count only after you
    /// have trusted them: `landfall trust`.
    pub hooks: RawHooks,
    /// Whom to tell, and of what. Each is a section of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notify: Vec<RawNotify>,
    /// What is told to tools that watch over programs.
    pub telemetry: RawTelemetry,
    /// Where issues are, and how they are taken from there to landed work.
    pub tracker: RawTracker,
}

/// Where issues are, and how they are taken from there to landed work.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RawTracker {
    /// Where issues are: `local` (files, without an account or a network), `github`, or `none`.
    pub kind: String,
    /// The repository, written `owner/name`. Without it, the one that the git remote `origin` leads to. Files need none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// The address of a server of your own, such as `https://git.example.com`. Without it, the public one, or the one that
    /// `origin` leads to. It counts only after you have trusted it: `landfall trust`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The file that holds the token. Without it, the environment (`GH_TOKEN`, `GITHUB_TOKEN`; `GH_ENTERPRISE_TOKEN` for a
    /// server of your own), then `gh auth token`. The token is never shown, and agents cannot read the file. For a server of
    /// your own, `url` or the variable `GH_HOST` has to name it. It counts only after you have trusted it: `landfall trust`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// The file that holds the secret of a webhook. With it, `landfall serve` is told at `/hooks/github` where something changed,
    /// and notes it for the next look. It is kept as the token is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_secret_file: Option<PathBuf>,
    /// The folder of issues that are files. Without it, one beside Landfall's state, where no agent writes.
    /// `.landfall/issues` keeps them in the history of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// The field of projects that holds the size of an issue. It is believed before a `size/…` label; empty for none.
    pub size_field: String,
    /// The time between two questions: what changed there, and whether the checks of a forge are over.
    pub poll: Millis<100, DAY>,
    /// The shortest time between two changes on a forge. GitHub asks for one second; choose a shorter time only for a server of
    /// your own.
    pub write_pause: Millis<0, MINUTE>,
    /// The folder of the files that say how an issue is to be done, in the repository.
    pub spec_path: String,
    /// Whether even small issues land by a pull request.
    pub always_pr: bool,
    /// Whether issues are made of what agents propose when they look back and think worth one. Otherwise they are only listed, by
    /// `landfall issue proposals`.
    pub file_proposals: bool,
    /// How often an issue that turns out not to hold is opened again, before a person has to look at it.
    pub verify_iterations_max: BoundedInteger<1, 20>,
    /// How many parts of one large issue are worked on at once.
    pub concurrent: BoundedInteger<1, 64>,
    /// Where what landed runs: `{{base_url}}` in what is verified after landing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub production_url: Option<String>,
    /// Where work that has not landed can be looked at: `{{base_url}}` in what is verified before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview_url: Option<String>,
    /// Where the project runs on this machine, if it does: `{{base_url}}` where no other is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_url: Option<String>,
    /// Files and patterns that may be changed in the checkout while issues are verified.
    pub verify_ignore: Vec<String>,
}

impl Default for RawTracker {
    fn default() -> Self {
        Self {
            kind: landfall_trackers::registry::DEFAULT.to_owned(),
            repository: None,
            url: None,
            token_file: None,
            webhook_secret_file: None,
            folder: None,
            size_field: "Size".to_owned(),
            poll: Millis(POLL_MS),
            write_pause: Millis(GithubRetryPolicy::default().write_gap_ms),
            spec_path: "docs/spec".to_owned(),
            always_pr: false,
            file_proposals: false,
            verify_iterations_max: BoundedInteger(3),
            concurrent: BoundedInteger(5),
            production_url: None,
            preview_url: None,
            local_url: None,
            verify_ignore: Vec::new(),
        }
    }
}

/// What is told to tools that watch over programs.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RawTelemetry {
    /// The address of an OpenTelemetry collector, such as `http://127.0.0.1:4318`. Runs, tasks, attempts, iterations, verifications
    /// and landings are sent there as traces (OTLP over HTTP, in JSON). Nothing waits for it. Without it, nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otlp: Option<String>,
}

/// What the project is.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RawProject {
    /// The branch that work lands on. Without it, the branch that is checked out when the engine starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The flow of tasks that do not name one.
    pub flow: String,
}

impl Default for RawProject {
    fn default() -> Self {
        Self { base: None, flow: "loop".to_owned() }
    }
}

/// How work is proved.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RawVerify {
    /// Whether work may land only when at least one command is there to prove it. Without commands and without this,
    /// verification passes with the warning `VERIFICATION_EMPTY`.
    pub required: bool,
    /// How often a failed command is run again. A pass after a failure is recorded as flaky.
    pub retries: BoundedInteger<0, 5>,
    /// Whether files that git ignores (`target/`, `node_modules/`) stay in the verification checkout from one
    /// verification to the next. Builds are much faster with them, but the code under test runs there: what one task's
    /// tests leave behind can turn the next verification green or red. Without this each verification starts from
    /// nothing but the commit; its own commands always share what they build.
    /// Whatever this says, nothing is kept of checks that could hand files to other runs: at level `write`, and with
    /// `run.sandbox_write`.
    pub keep_ignored: bool,
    /// What follows when a test of the base that the work changed or deleted fails against the work. Landfall runs the base's
    /// version of those test files once more, against the code of the work.
    pub base_tests: RawBaseTests,
    /// What follows when no test notices that lines of the change are altered. If the work adds or rewrites tests, Landfall alters
    /// a changed line of the product and runs the commands, until one fails: at most four times, for as long as twice the checks
    /// took, and only if they took less than 30 seconds.
    pub mutation: RawMutation,
    /// What agents do while a check does not pass on the base itself, without any work. Landfall runs the checks there before the
    /// first agent starts; a pass is remembered.
    pub red_base: RawRedBase,
    /// How long a command may take that sets no `timeout` of its own.
    pub timeout: Millis<100, DAY>,
    /// The commands, in order: tables (`[[verify.command]]`), or plain lines (`command = ["cargo test"]`).
    pub command: Vec<RawCommand>,
}

impl Default for RawVerify {
    fn default() -> Self {
        Self {
            required: false,
            retries: BoundedInteger(1),
            keep_ignored: false,
            base_tests: RawBaseTests::Review,
            mutation: RawMutation::Report,
            red_base: RawRedBase::Wait,
            timeout: Millis(5 * MINUTE),
            command: Vec::new(),
        }
    }
}

/// What a failing test of the base means.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RawBaseTests {
    /// A person looks at the work before it lands.
    Review,
    /// The work lands; its certificate names the tests.
    Report,
    /// The tests of the base are not run.
    Off,
}

/// What it means if no test notices altered lines.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RawMutation {
    /// A person looks at the work before it lands.
    Review,
    /// The work lands; its certificate names the tests and the lines.
    Report,
    /// No line is altered.
    Off,
}

/// What agents do while a check does not pass on the base.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RawRedBase {
    /// None starts until the checks pass on the base.
    Wait,
    /// They start, for example to repair the check. The checks do not run on the base before.
    Start,
}

/// A verification command: a line for the shell, or a table that says more.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum RawCommand {
    /// A line for the shell.
    Line(String),
    /// A line with its name and limits.
    Table(RawCommandTable),
}

/// One verification command.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawCommandTable {
    /// What people call it. Without it, the command line itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The command line, run by `sh -c` in a clean checkout.
    pub run: String,
    /// How long it may take. Without it, `verify.timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Millis<100, DAY>>,
    /// Whether a failure keeps work from landing. When `false`, it is a warning.
    #[serde(default = "yes")]
    pub required: bool,
    /// The dimension that a judge cannot score above 0.4 while this command fails: `d1` (correctness) to `d6`
    /// (maintainability). For lint, coverage and the like, with `required = false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caps: Option<RawDimension>,
    /// Folders that the command fills and that git ignores, such as `["node_modules"]`. If work leaves the files of
    /// `installs_from` as they are, its verification gets a copy of what the command installs on the base, and the command does
    /// not run. Only for the first commands of the list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub installs: Vec<String>,
    /// All files and folders of the project that `installs` depends on, such as `["package.json", "package-lock.json"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub installs_from: Vec<String>,
}

/// One of the six dimensions that a judge scores.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RawDimension {
    /// Correctness.
    D1,
    /// Security.
    D2,
    /// Reliability.
    D3,
    /// Performance.
    D4,
    /// Architecture.
    D5,
    /// Maintainability.
    D6,
}

fn yes() -> bool {
    true
}

fn terminal_poll() -> Millis<10, { 10 * SECOND }> {
    Millis(landfall_agents::tmux::POLL_MS)
}

/// How the engine drives agents.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RawRun {
    /// How many agents may work at once.
    pub slots: BoundedInteger<1, 64>,
    /// How many verifications may run at once, each in its own checkout.
    pub lanes: BoundedInteger<1, 16>,
    /// How often an agent may be run for one task.
    pub iterations_max: BoundedInteger<1, 1000>,
    /// How long one task may take. Waits for a person, a quota or a slot do not count.
    pub task_limit: Millis<100, { 30 * DAY }>,
    /// After how many runs in a row without a commit to warn that an agent may be stuck. If its work is red and unchanged then, the task fails.
    pub stuck_after: BoundedInteger<1, 1000>,
    /// An agent without any sign of life for so long is ended: no output, no CPU time, no data moved, no change in its
    /// workspace.
    pub silence: Millis<100, { 7 * DAY }>,
    /// An agent that has not written a first word after so long, and shows no other sign of life, is ended.
    pub first_output: Millis<100, { 7 * DAY }>,
    /// How often signs of life are looked for.
    pub heartbeat: Millis<50, { 60 * MINUTE }>,
    /// After how many looks without one an agent counts as waiting for the model.
    pub heartbeats: BoundedInteger<1, 100>,
    /// How long a tool of an agent may run without any sign of life.
    pub tool_limit: Millis<100, { 7 * DAY }>,
    /// How often an agent may fall silent in one step before the task is given up. Progress resets it.
    pub stalls_step_max: BoundedInteger<0, 100>,
    /// How often an agent may fall silent in all before the task is given up.
    pub stalls_total_max: BoundedInteger<0, 1000>,
    /// Has no effect: passing errors of a provider wait at the account, without a limit of tries. Accepted so that older
    /// settings stay valid.
    pub transients_max: BoundedInteger<0, 1000>,
    /// How full the context of a session may be, in per cent, before it is asked to sum itself up; once per session.
    pub compact_at: BoundedInteger<1, 100>,
    /// An agent that drops its context so often within one run is stopped.
    pub compactions_max: BoundedInteger<1, 100>,
    /// How agents and checks are confined.
    pub sandbox: RawSandbox,
    /// More files and folders that agents and checks may read in the sandbox. The home folder is hidden but for toolchains,
    /// downloaded packages and the agent's own state. `~` is your home folder.
    pub sandbox_read: Vec<String>,
    /// Caches of package managers that agents and checks use without changing them: each workspace and each lane keeps its
    /// changes for itself. `~` is your home folder.
    pub caches: Vec<String>,
    /// More files and folders that agents and checks may write in the sandbox, besides their workspace, a folder for
    /// temporary files and the agent's own state. They all change the same files. `~` is your home folder. In the last part of a
    /// path, `*` stands for any text. At `isolated` and `strict`, what is not there yet in the home folder is made in an empty
    /// folder of the run's own.
    pub sandbox_write: Vec<String>,
    /// More files and folders that cannot be read in the sandbox, besides Landfall's own state, the home folder and the
    /// usual places of secrets (`~/.ssh`, `~/.gnupg`, `~/.aws` and the like).
    pub sandbox_hide: Vec<String>,
    /// How long a process that was told to stop may take before it is killed.
    pub grace: Millis<0, { 10 * MINUTE }>,
    /// How long an agent that runs its own loop may take to finish its step after it was asked to stop. Then it is told to
    /// stop like any other.
    pub step_grace: Millis<0, { 120 * MINUTE }>,
    /// How much output of one agent run is kept. The rest is dropped, with a mark where.
    pub output_cap: ByteSize<{ 64 * KIB }, { 10 * GIB }>,
    /// How often an agent that crashed or vanished is started again for one task.
    pub restarts_max: BoundedInteger<0, 100>,
    /// After how many tasks in a row that failed or ran out a run pauses. 0 never does.
    pub failures_max: BoundedInteger<0, 1000>,
    /// Who picks the next task.
    pub mode: RawMode,
    /// Names of environment variables passed on to agents and checks, besides a short safe list such as `PATH` and
    /// `HOME`.
    pub env: Vec<String>,
}

impl Default for RawRun {
    fn default() -> Self {
        Self {
            slots: BoundedInteger(3),
            lanes: BoundedInteger(1),
            iterations_max: BoundedInteger(50),
            task_limit: Millis(30 * MINUTE),
            stuck_after: BoundedInteger(5),
            silence: Millis(10 * MINUTE),
            first_output: Millis(2 * MINUTE),
            heartbeat: Millis(MINUTE),
            heartbeats: BoundedInteger(3),
            tool_limit: Millis(45 * MINUTE),
            stalls_step_max: BoundedInteger(3),
            stalls_total_max: BoundedInteger(10),
            transients_max: BoundedInteger(20),
            compact_at: BoundedInteger(82),
            compactions_max: BoundedInteger(3),
            sandbox: RawSandbox::Auto,
            sandbox_read: Vec::new(),
            caches: Vec::new(),
            sandbox_write: Vec::new(),
            sandbox_hide: Vec::new(),
            grace: Millis(10 * SECOND),
            step_grace: Millis(5 * MINUTE),
            output_cap: ByteSize(64 * MIB),
            restarts_max: BoundedInteger(3),
            failures_max: BoundedInteger(3),
            mode: RawMode::Autopilot,
            env: Vec::new(),
        }
    }
}

/// Who picks the next task.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RawMode {
    /// The engine: every slot is filled.
    Autopilot,
    /// You: one task, then it waits.
    SemiAuto,
}

/// An agent with its model, flags and environment.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawProfile {
    /// Which agent it is. `landfall agents` lists the known ones.
    pub kind: String,
    /// The command line, for agents of kind `command`. The prompt arrives on its stdin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The file to play, for agents of kind `script`. Relative to the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<PathBuf>,
    /// The model to ask for. Without it, what the agent takes by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How hard the model is to think, in the agent's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Whether each run is a new process without memory, the same session of the agent is resumed run after run, or the
    /// agent runs a loop of its own.
    #[serde(default)]
    pub style: RawStyle,
    /// What is used up together: profiles with the same account wait together for its quota or its login. Without it,
    /// the kind of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The profile that takes over while the account of this one is used up or logged out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover: Option<String>,
    /// How many agents of this profile may work at once. Without it, as many as there are slots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<BoundedInteger<1, 64>>,
    /// How many turns the model may take in one run, where the agent can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns_max: Option<BoundedInteger<1, 100_000>>,
    /// How this agent is confined. Without it, as `run.sandbox` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<RawSandbox>,
    /// Whether the agent gets Landfall's MCP tools (`signal`, `ask`, `discovery`, `follow_up`), where it can have any.
    #[serde(default = "yes")]
    pub mcp: bool,
    /// The time between two looks at the agent's terminal, for agents of kind `tmux`. The pauses before keys are pressed scale
    /// with it.
    #[serde(default = "terminal_poll")]
    pub terminal_poll: Millis<10, { 10 * SECOND }>,
    /// More arguments for the agent, as they are.
    #[serde(default)]
    pub flags: Vec<String>,
    /// More environment variables for the agent, with their values.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Names of environment variables passed on to this agent alone. Keys such as `ANTHROPIC_API_KEY` are not passed
    /// on unless they are named here, so that an agent uses the login you pay for.
    #[serde(default)]
    pub pass_env: Vec<String>,
}

/// What many agents share.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawAccount {
    /// How many agents may work on it at once. Without it, as many as there are slots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<BoundedInteger<1, 64>>,
}

/// A part of the repository.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawArea {
    /// What people call it.
    pub name: String,
    /// What belongs to it: files, folders (`web/`) and patterns (`**/*.sql`), as seen from the root of the project.
    pub paths: Vec<String>,
    /// How many agents may work in it at once.
    pub slots: BoundedInteger<1, 64>,
}

/// Whether an agent keeps its memory from run to run.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RawStyle {
    /// Every run is a new process without a memory of its own.
    #[default]
    Fresh,
    /// The same session of the agent is resumed, run after run. When it is gone, a new one is told what happened so far.
    Session,
    /// The agent runs a loop of its own and says by files where it is (`.auto-signal`, `.status.json`). One run is the whole
    /// loop.
    #[serde(rename = "self")]
    Own,
    /// As `self`, but Landfall types each next step into the agent's terminal. For agents of kind `tmux`.
    Dispatch,
}

/// How agents and checks are confined.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RawSandbox {
    /// `isolated` if this machine supports it, otherwise `write`; never a lower level than `sandbox.require`.
    Auto,
    /// As `isolated`, and no network.
    Strict,
    /// As `write`, with folders for temporary files, terminals and shared memory of its own. The rest of the machine is
    /// read-only, hidden files are not there, and local services cannot be reached by their sockets. The network is open.
    Isolated,
    /// Writes only to the workspace, a folder for temporary files and the agent's own state; Landfall's state, the home folder
    /// and secrets cannot be read; no terminals; no signals to processes outside.
    Write,
    /// Not at all: agents run as you, and can do what you can.
    Off,
}

/// What the sandbox must be for agents and checks to start.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RawSandboxPolicy {
    /// The lowest level at which anything is started. If this machine does not support it, nothing starts. A lower level in
    /// `run.sandbox` or in a profile is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require: Option<RawRequiredSandbox>,
}

/// A level that can be required.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RawRequiredSandbox {
    /// No network either.
    Strict,
    /// A view of the machine of its own.
    Isolated,
    /// No writing outside.
    Write,
}

/// What may be spent, by attempt (one try of a step), task, run (one `landfall run`) and day.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RawBudget {
    /// Dollars of one attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_usd: Option<Dollars>,
    /// Tokens of one attempt, read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_tokens: Option<u64>,
    /// Turns of the model in one attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_turns: Option<u64>,
    /// Working time of the agent in one attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_time: Option<Millis<1000, { 365 * DAY }>>,
    /// Dollars of one task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_usd: Option<Dollars>,
    /// Tokens of one task, read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_tokens: Option<u64>,
    /// Turns of the model in one task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_turns: Option<u64>,
    /// Working time of agents in one task; `run.task_limit` counts verification, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_time: Option<Millis<1000, { 365 * DAY }>>,
    /// Dollars of one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_usd: Option<Dollars>,
    /// Tokens of one run, read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_tokens: Option<u64>,
    /// Turns of the model in one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_turns: Option<u64>,
    /// Working time of agents in one run, all slots together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_time: Option<Millis<1000, { 365 * DAY }>>,
    /// Dollars of one day, from midnight to midnight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_usd: Option<Dollars>,
    /// Tokens of one day, read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_tokens: Option<u64>,
    /// Turns of the model in one day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_turns: Option<u64>,
    /// Working time of agents in one day, all slots together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_time: Option<Millis<1000, { 365 * DAY }>>,
}

/// What a million tokens of a model cost.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawPrice {
    /// Dollars for a million tokens read.
    pub input: Dollars,
    /// Dollars for a million tokens read from a cache. Without it, as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<Dollars>,
    /// Dollars for a million tokens written.
    pub output: Dollars,
}

/// How proved work reaches the base branch and you.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RawLand {
    /// Where landed work is published.
    pub publish: RawPublish,
    /// The remote to push to, with `publish = "push"` or `"pull-request"`. Without it, `origin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Whether the engine commits what an agent left uncommitted.
    pub commit_leftovers: bool,
    /// How many files and folders one task may add or change. More is refused, and the agent is told.
    pub paths_max: BoundedInteger<1, 10_000_000>,
    /// How many verified tasks may land together, as one merge commit that is verified as a whole. 1 lands each alone.
    pub batch: BoundedInteger<1, 32>,
    /// How many batches are verified on top of one that has not landed yet. 0 waits for each.
    pub speculate: BoundedInteger<0, 4>,
    /// After how many verifications of the landing queue in a row without a landing it is paused, with a reason.
    pub runaway: BoundedInteger<1, 1000>,
    /// How long you have to resolve a conflict that is too hard for an agent: 20 lines and more, a file that one side
    /// deleted or renamed, a binary file.
    pub conflict_wait: Millis<1000, { 30 * DAY }>,
    /// What happens after that.
    pub conflict_overdue: RawOverdue,
}

impl Default for RawLand {
    fn default() -> Self {
        Self {
            publish: RawPublish::Checkout,
            remote: None,
            commit_leftovers: true,
            paths_max: BoundedInteger(200_000),
            batch: BoundedInteger(4),
            speculate: BoundedInteger(1),
            runaway: BoundedInteger(20),
            conflict_wait: Millis(60 * MINUTE),
            conflict_overdue: RawOverdue::Defer,
        }
    }
}

/// What happens to a conflict that nobody resolved in time.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RawOverdue {
    /// The task stops as blocked; `landfall retry` takes it up again.
    Defer,
    /// The task is given up.
    Skip,
    /// The agent tries it after all.
    Retry,
    /// You are told again, and it waits as long once more.
    Notify,
}

/// When a person looks at work. Changes to protected paths and to tests are always shown to a person before they land.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RawReview {
    /// When a person looks.
    pub mode: RawReviewMode,
    /// With `auto-approve`: runs of the agent up to which work counts as smooth.
    pub iterations_max: BoundedInteger<1, 1000>,
    /// Modes for tasks with a tag; where several apply, the strictest counts.
    pub tags: BTreeMap<String, RawReviewMode>,
    /// The agent profile that reads work in flows with a review. Without it, a fresh run of the profile that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

impl Default for RawReview {
    fn default() -> Self {
        Self {
            mode: RawReviewMode::Skip,
            iterations_max: BoundedInteger(3),
            tags: BTreeMap::new(),
            agent: None,
        }
    }
}

/// Who judges plans and work in flows with checks.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RawJudge {
    /// The agent profile that judges. Without it, the profile `judge` if there is one, else a fresh run of the profile that
    /// did the work, which is the weaker choice: it judges its own kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// When a person looks at work.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RawReviewMode {
    /// Never, unless the change itself gives reason to.
    Skip,
    /// Before it lands, unless it went smoothly: few iterations, every check passed at once, no question on the way.
    AutoApprove,
    /// After it landed, when there is time; nothing waits for it.
    Batch,
    /// Before every landing.
    PerTask,
}

/// Checkpoints: places of the base branch to go back to.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RawCheckpoint {
    /// Whether one is made after every five landed tasks.
    pub automatic: bool,
    /// How many are kept. Those you made by name and the latest three always are.
    pub keep: BoundedInteger<3, 1000>,
    /// How long they are kept.
    pub keep_for: Millis<0, { 3650 * DAY }>,
}

impl Default for RawCheckpoint {
    fn default() -> Self {
        Self { automatic: true, keep: BoundedInteger(50), keep_for: Millis(30 * DAY) }
    }
}

/// Where landed work is published.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RawPublish {
    /// Your branch is moved forward, and your checkout with it if it is clean. Nothing is ever overwritten.
    Checkout,
    /// The base branch is pushed to `remote`, never by force.
    Push,
    /// For a base branch that nobody may push: it is pushed to `remote` as `landfall/land-…`, and the forge merges that by a
    /// pull request once its own checks are green.
    PullRequest,
    /// It stays in Landfall's own repository until you fetch it.
    None,
}

/// How long things are kept.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RawKeep {
    /// The workspace of a task that failed.
    pub failed: Millis<0, { 3650 * DAY }>,
    /// The logs and prompts of attempts.
    pub attempts: Millis<0, { 3650 * DAY }>,
}

impl Default for RawKeep {
    fn default() -> Self {
        Self { failed: Millis(7 * DAY), attempts: Millis(30 * DAY) }
    }
}

/// What happens when the disk fills up, by what is still free where the state lives.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RawDisk {
    /// Below this, warn.
    pub warn: ByteSize<0, { 100 * TIB }>,
    /// Below this, start no more agents.
    pub pause: ByteSize<0, { 100 * TIB }>,
    /// Below this, stop the agents that run.
    pub stop: ByteSize<0, { 100 * TIB }>,
}

impl Default for RawDisk {
    fn default() -> Self {
        Self { warn: ByteSize(1_000_000_000), pause: ByteSize(500_000_000), stop: ByteSize(100_000_000) }
    }
}

/// What is run in a task's workspace besides its agent, inside the same sandbox, and the ports it gets.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RawWorkspace {
    /// Run once, when the workspace has been made: to install what the project needs. A failure keeps the agent from
    /// starting; it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_create: Option<String>,
    /// Run before every run of the agent. A failure keeps the agent from starting; it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_run: Option<String>,
    /// Run after every run of the agent. A failure is a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_run: Option<String>,
    /// Run before the workspace is removed. A failure is a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_remove: Option<String>,
    /// How long each of these may take.
    pub timeout: Millis<{ SECOND / 10 }, DAY>,
    /// Ports for the tasks at work, written `41000-41999`. Each workspace has a block of them to itself: `LANDFALL_PORT`
    /// is the first, `LANDFALL_PORTS` all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<String>,
    /// How many ports are in a block.
    pub ports_each: BoundedInteger<1, 1000>,
}

impl Default for RawWorkspace {
    fn default() -> Self {
        Self {
            after_create: None,
            before_run: None,
            after_run: None,
            before_remove: None,
            timeout: Millis(5 * MINUTE),
            ports: None,
            ports_each: BoundedInteger(10),
        }
    }
}

/// Commands of yours, run when something has happened.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RawHooks {
    /// An agent is about to start on a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pre_start: Option<String>,
    /// The work of a task is done and verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post_complete: Option<String>,
    /// The work of a task is about to land.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pre_merge: Option<String>,
    /// The work of a task has landed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post_merge: Option<String>,
    /// The work of a task does not merge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_conflict: Option<String>,
    /// An agent found out something worth knowing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_discovery: Option<String>,
    /// A task, or all of them, wait for leave to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_pause: Option<String>,
    /// A task failed or ran out of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_error: Option<String>,
    /// Only a person can go on: a question, a review, a login, a broken check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_escalation: Option<String>,
    /// How long a hook may take. Then it is asked to end, and five seconds later killed, with all it started.
    pub timeout: Millis<{ SECOND / 10 }, { 60 * MINUTE }>,
    /// Names of environment variables passed on to hooks, besides those that agents get.
    pub env: Vec<String>,
}

impl Default for RawHooks {
    fn default() -> Self {
        Self {
            pre_start: None,
            post_complete: None,
            pre_merge: None,
            post_merge: None,
            on_conflict: None,
            on_discovery: None,
            on_pause: None,
            on_error: None,
            on_escalation: None,
            timeout: Millis(30 * SECOND),
            env: Vec::new(),
        }
    }
}

/// One way to tell someone.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawNotify {
    /// How.
    pub kind: RawNotifyKind,
    /// The address, for `webhook`, `ntfy` (with the topic at its end) and `slack`. It is never shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The environment variable that holds the address, so that it need not stand in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_env: Option<String>,
    /// The environment variable that holds a token, sent as `Authorization: Bearer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// The command line, for `command`. The message is in its environment and, as JSON, on its stdin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The least that is told.
    #[serde(default)]
    pub priority: RawPriority,
    /// What is told of: `question`, `escalation`, `paused`, `alarm`, `held`, `run-over`, `sprint-over`, `failed`, `landed`.
    /// Without it, everything of that priority.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
}

/// How someone is told.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RawNotifyKind {
    /// On this desktop, by `notify-send`.
    Desktop,
    /// JSON, posted to an address.
    Webhook,
    /// By an ntfy server.
    Ntfy,
    /// By an incoming webhook of Slack, or of something that understands the same.
    Slack,
    /// By a command of yours.
    Command,
}

/// How much something matters.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RawPriority {
    /// Everything: each landing, too.
    Low,
    /// What one wants to know the same day: a run is over, a task failed.
    #[default]
    Normal,
    /// What waits for a person.
    High,
    /// What is wrong with the result itself.
    Urgent,
}

// By hand, because an untagged enum only ever says that nothing matched.
impl<'de> Deserialize<'de> for RawCommand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RawCommandVisitor;
        impl<'de> Visitor<'de> for RawCommandVisitor {
            type Value = RawCommand;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a command line or a table with `run`")
            }

            fn visit_str<E: Error>(self, line: &str) -> Result<RawCommand, E> {
                Ok(RawCommand::Line(line.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<RawCommand, A::Error> {
                RawCommandTable::deserialize(MapAccessDeserializer::new(table)).map(RawCommand::Table)
            }
        }
        deserializer.deserialize_any(RawCommandVisitor)
    }
}

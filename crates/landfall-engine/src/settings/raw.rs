//! `landfall.toml` as it is written: a field is a setting, its comment is its documentation, and the defaults stand
//! below it. The schema and the reference page are made from this file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::units::{Bytes, DAY, GIB, KIB, MIB, MINUTE, Millis, SECOND, TIB, Whole};

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
    /// The agents, as named profiles. `default` does the work unless a task asks for another.
    pub agent: BTreeMap<String, RawProfile>,
    /// How proved work reaches the base branch and you.
    pub land: RawLand,
    /// How long things are kept.
    pub keep: RawKeep,
    /// What happens when the disk fills up, by what is still free where the state lives.
    pub disk: RawDisk,
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
    pub retries: Whole<0, 5>,
    /// Whether files that git ignores (`target/`, `node_modules/`) stay in the verification checkout from one
    /// verification to the next. Builds are much faster with them, but the code under test runs there: what one task's
    /// tests leave behind can turn the next verification green or red. Without this each verification starts from
    /// nothing but the commit; its own commands always share what they build.
    pub keep_ignored: bool,
    /// How long a command may take that sets no `timeout` of its own.
    pub timeout: Millis<100, DAY>,
    /// The commands, in order: tables (`[[verify.command]]`), or plain lines (`command = ["cargo test"]`).
    pub command: Vec<RawCommand>,
}

impl Default for RawVerify {
    fn default() -> Self {
        Self {
            required: false,
            retries: Whole(1),
            keep_ignored: false,
            timeout: Millis(5 * MINUTE),
            command: Vec::new(),
        }
    }
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
}

fn yes() -> bool {
    true
}

/// How the engine drives agents.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RawRun {
    /// How many agents may work at once.
    pub slots: Whole<1, 64>,
    /// How many verifications may run at once, each in its own checkout.
    pub lanes: Whole<1, 16>,
    /// How often an agent may be run for one task.
    pub iterations_max: Whole<1, 1000>,
    /// How long one task may take. Waits for a person, a quota or a slot do not count.
    pub task_limit: Millis<100, { 30 * DAY }>,
    /// After how many runs in a row without a commit to warn that an agent may be stuck.
    pub stuck_after: Whole<1, 1000>,
    /// An agent that writes nothing and uses no CPU time for so long is ended.
    pub silence: Millis<100, { 7 * DAY }>,
    /// How long a process that was told to stop may take before it is killed.
    pub grace: Millis<0, { 10 * MINUTE }>,
    /// How much output of one agent run is kept. The rest is dropped, with a mark where.
    pub output_cap: Bytes<{ 64 * KIB }, { 10 * GIB }>,
    /// How often an agent that crashed or vanished is started again for one task.
    pub restarts_max: Whole<0, 100>,
    /// Names of environment variables passed on to agents and checks, besides a short safe list such as `PATH` and
    /// `HOME`.
    pub env: Vec<String>,
}

impl Default for RawRun {
    fn default() -> Self {
        Self {
            slots: Whole(3),
            lanes: Whole(1),
            iterations_max: Whole(50),
            task_limit: Millis(30 * MINUTE),
            stuck_after: Whole(5),
            silence: Millis(15 * MINUTE),
            grace: Millis(10 * SECOND),
            output_cap: Bytes(64 * MIB),
            restarts_max: Whole(3),
            env: Vec::new(),
        }
    }
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
    /// More arguments for the agent, as they are.
    #[serde(default)]
    pub flags: Vec<String>,
    /// More environment variables for the agent, with their values.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// How proved work reaches the base branch and you.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RawLand {
    /// Where landed work is published.
    pub publish: RawPublish,
    /// The remote to push to, with `publish = "push"`. Without it, `origin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Whether the engine commits what an agent left uncommitted.
    pub commit_leftovers: bool,
}

impl Default for RawLand {
    fn default() -> Self {
        Self { publish: RawPublish::Checkout, remote: None, commit_leftovers: true }
    }
}

/// Where landed work is published.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RawPublish {
    /// Your branch is moved forward, and your checkout with it if it is clean. Nothing is ever overwritten.
    Checkout,
    /// The base branch is pushed to `remote`, never by force.
    Push,
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
    pub warn: Bytes<0, { 100 * TIB }>,
    /// Below this, start no more agents.
    pub pause: Bytes<0, { 100 * TIB }>,
    /// Below this, stop the agents that run.
    pub stop: Bytes<0, { 100 * TIB }>,
}

impl Default for RawDisk {
    fn default() -> Self {
        Self { warn: Bytes(1_000_000_000), pause: Bytes(500_000_000), stop: Bytes(100_000_000) }
    }
}

// By hand, because an untagged enum only ever says that nothing matched.
impl<'de> Deserialize<'de> for RawCommand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
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
        deserializer.deserialize_any(Either)
    }
}

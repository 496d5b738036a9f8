//! Setting up, looking after, and giving space back.

use serde::{Deserialize, Serialize};

use crate::{CommandReport, Outcome, WireTaskId};

/// What `init` found out about a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InitFound {
    /// The root of the repository.
    pub root: String,
    /// The branch that work lands on.
    pub base: String,
    /// How the project is tested.
    pub commands: Vec<InitCommand>,
    /// The agent that was found; none when there is none of those it looks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<InitAgent>,
    /// Folders that its tools keep their caches in, which the sandbox leaves open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<String>,
    /// The level of the sandbox that agents and checks run in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sandbox: String,
    /// What that level leaves open, a phrase each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandbox_leaves_open: Vec<String>,
    /// All agents that are installed; the first one is set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<InitAgent>,
    /// Programs that the checks need and that are not installed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_tools: Vec<String>,
    /// What the checks came to on the base; none if they did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<ProjectChecked>,
    /// The file that holds the settings.
    pub file: String,
    /// Whether this call wrote it. An existing one is left as it is.
    pub written: bool,
}

/// What the checks of a project came to on one commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProjectChecked {
    /// The task whose work was checked; none for the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<WireTaskId>,
    /// The base branch.
    pub branch: String,
    /// The commit that was checked. For a task it is the merge of its work with the base.
    pub commit: String,
    /// Its tree.
    pub tree: String,
    /// The worst outcome of the required checks.
    pub outcome: Outcome,
    /// The checks that ran, in their order. The first required one that does not pass is the last.
    pub commands: Vec<CommandReport>,
    /// The level of the sandbox they ran in.
    pub sandbox: String,
    /// Whether an earlier pass of the same tree, rules and environment was taken over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reused: bool,
    /// How long it took.
    pub took_ms: u64,
    /// The settings under `[run]` that allow what the sandbox denied, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
}

/// What each level of the sandbox allows on this machine, found out by trying.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SandboxReport {
    /// The level that agents and checks of the project run in.
    pub level: String,
    /// What that level leaves open, a phrase each.
    pub leaves_open: Vec<String>,
    /// The version of Landlock in the kernel; 0 if there is none.
    pub landlock: u32,
    /// The levels that this machine supports.
    pub supported: Vec<String>,
    /// How long the probes took.
    pub took_ms: u64,
    /// What was tried.
    pub probes: Vec<SandboxProbe>,
}

/// One thing that was tried in the sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SandboxProbe {
    /// A word for programs.
    pub name: String,
    /// What was tried.
    pub what: String,
    /// `allowed`, `refused` or `untested`, by level.
    pub outcomes: std::collections::BTreeMap<String, String>,
}

/// A task module that was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModuleMade {
    /// Its folder, below the root of the repository.
    pub module: String,
    /// The files that were written, below the root.
    pub files: Vec<String>,
    /// The branch that is set aside for its work.
    pub branch: String,
    /// The worktree that is set aside for its work; empty when there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub worktree: String,
    /// The commit that has the files; none: nothing was committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// What came of mending task modules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModulesMended {
    /// Those that were broken.
    pub mended: Vec<ModuleMended>,
    /// How many were fine.
    pub fine: u64,
}

/// A task module whose metadata was broken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModuleMended {
    /// Its folder, below the root of the repository.
    pub module: String,
    /// What was wrong.
    pub wrong: String,
    /// What was done about it.
    pub done: String,
    /// Where the broken file is kept, below the root.
    pub copy: String,
    /// The note about it, below the root.
    pub note: String,
}

/// An agent that is installed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InitAgent {
    /// Its kind.
    pub kind: String,
    /// Where its program is.
    pub path: String,
    /// How to log in.
    pub login: String,
}

/// A command that tests the project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InitCommand {
    /// What to call it.
    pub name: String,
    /// What to run.
    pub run: String,
    /// The file that gave it away.
    pub found_in: String,
    /// The folders that it installs and that a verification may copy from the base.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub installs: Vec<String>,
    /// The files of the project that these folders depend on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub installs_from: Vec<String>,
}

/// Whether all is well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Health {
    /// What was looked at.
    pub checks: Vec<Check>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// What.
    pub name: String,
    /// How it stands.
    pub state: CheckState,
    /// What was seen.
    pub detail: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// How a thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CheckState {
    /// Well.
    Ok,
    /// It works, but someone should know.
    Warn,
    /// It does not work.
    Bad,
}

/// What was removed, or would be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reclaimed {
    /// Whether nothing was removed yet.
    pub dry_run: bool,
    /// Each thing.
    pub items: Vec<ReclaimedItem>,
    /// All of them together.
    pub bytes: u64,
    /// The same by kind.
    #[serde(default)]
    pub kinds: Vec<ReclaimedKind>,
}

/// How much of one kind there is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReclaimedKind {
    /// The kind.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// How much space they take together.
    pub bytes: u64,
}

/// One thing that is not needed any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReclaimedItem {
    /// What it is.
    pub what: String,
    /// Where it is.
    pub path: String,
    /// How much space it takes.
    pub bytes: u64,
    /// Why nothing is lost with it.
    pub why_safe: String,
}

//! Results of checks.

use crate::defaults::is_false;
use serde::{Deserialize, Serialize};

use crate::denial::{SandboxDenial, settings_that_allow};
use crate::sandbox::Confinement;
use crate::score::Dimension;
use crate::{Commit, Digest, Tree};

words! {
    /// What one check, or all of them together, came to.
    pub enum CheckOutcome {
        /// It passed.
        Pass = "pass",
        /// It failed and then passed on the same tree.
        Flaky = "flaky",
        /// It fails on the base as well.
        PreExisting = "pre-existing",
        /// It failed.
        Fail = "fail",
        /// It ran into its limit.
        Timeout = "timeout",
        /// It could not run, or ran no test: this says nothing about the work.
        Broken = "broken",
    }
}

impl CheckOutcome {
    /// Whether work may land on it.
    #[must_use]
    pub fn is_green(self) -> bool {
        match self {
            Self::Pass | Self::Flaky => true,
            Self::PreExisting | Self::Fail | Self::Timeout | Self::Broken => false,
        }
    }
}

/// One command of the gate and what it came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandResult {
    /// What the person calls it.
    pub name: String,
    /// What was run.
    pub command: String,
    /// Whether the work may not land without it.
    pub required: bool,
    /// What it came to.
    pub outcome: CheckOutcome,
    /// How it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// How long it took.
    pub took_ms: u64,
    /// How long it might have taken.
    pub limit_ms: u64,
    /// How many tests it ran, if its output tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<u64>,
    /// The end of its output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub excerpt: String,
    /// The dimension it holds down when it fails, whatever a judge thinks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caps: Option<Dimension>,
    /// What the sandbox denied to it, if it did not pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<SandboxDenial>,
    /// Whether it did not run, because what it installs was copied from an installation of the base.
    #[serde(default, skip_serializing_if = "is_false")]
    pub copied_from_base: bool,
}

impl CommandResult {
    /// What the sandbox denied, and what allows it, in a sentence; none if it denied nothing.
    #[must_use]
    pub fn denial_text(&self) -> Option<String> {
        let first = self.denied.first()?;
        let allow = settings_that_allow(&self.denied).join(" and ");
        Some(format!(
            "{}; allow it with `{allow}` under [run] in landfall.toml",
            first.to_sentence(&self.name)
        ))
    }
}

/// All that verification saw of one tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateReport {
    /// The base the work was merged into.
    pub base: Commit,
    /// The work.
    pub head: Commit,
    /// The merge of both: what would land.
    pub commit: Commit,
    /// Its tree: what was checked out.
    pub tree: Tree,
    /// The verify section, as it stands on the base.
    pub config: Digest,
    /// The machine it ran on: its system, its architecture, its `PATH`.
    pub environment: Digest,
    /// Each command.
    pub commands: Vec<CommandResult>,
    /// How long it took in all.
    pub took_ms: u64,
    /// Whether a pass for the same tree, section and machine was taken over instead of a run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reused: bool,
    /// Whether a gate without commands is refused.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    /// How the commands were confined; none in a journal from before that was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Confinement>,
}

/// So much of what a failing command wrote stands where people read why; the rest is in the log.
const LAST_LINES: usize = 3;

impl GateReport {
    /// The dimensions that failing commands hold down, with their names.
    pub fn dimension_caps(&self) -> impl Iterator<Item = (Dimension, String)> + '_ {
        let failing = self.commands.iter().filter(|it| !it.outcome.is_green());
        failing.filter_map(|it| Some((it.caps?, it.name.clone())))
    }

    /// What it amounts to: the worst of the required commands. No command at all is a pass with a loud warning,
    /// unless the project requires one.
    #[must_use]
    pub fn outcome(&self) -> CheckOutcome {
        let worst = self.commands.iter().filter(|it| it.required).map(|it| it.outcome).max();
        match worst {
            Some(outcome) => outcome,
            None if self.required => CheckOutcome::Broken,
            None => CheckOutcome::Pass,
        }
    }

    /// Whether nothing at all was checked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// How many tests ran in all, if any command told.
    #[must_use]
    pub fn test_count(&self) -> Option<u64> {
        let told: Vec<u64> = self.commands.iter().filter_map(|it| it.tests).collect();
        if told.is_empty() { None } else { Some(told.iter().fold(0, |sum, n| n.saturating_add(sum))) }
    }

    /// Whether it says once more what was known: the same files were checked the same way before, and were red then, too.
    #[must_use]
    pub fn repeats_failure(&self, before: &Self) -> bool {
        let red = |report: &Self| matches!(report.outcome(), CheckOutcome::Fail | CheckOutcome::Timeout);
        let same = self.tree == before.tree && self.config == before.config;
        same && self.environment == before.environment && red(self) && red(before)
    }

    /// Which commands fail and what each wrote last, in one line; nothing if none does.
    #[must_use]
    pub fn describe_failures(&self) -> String {
        let one = |command: &CommandResult| {
            let how = match (command.outcome, command.exit) {
                (CheckOutcome::Timeout, _) => format!("no end after {}s", command.limit_ms / 1000),
                (_, Some(0)) if command.tests == Some(0) => "ran no test".to_owned(),
                (_, Some(code)) => format!("exit {code}"),
                (_, None) => "killed".to_owned(),
            };
            let written = command.excerpt.lines().map(str::trim).filter(|line| !line.is_empty());
            let mut last: Vec<&str> = written.rev().take(LAST_LINES).collect();
            last.reverse();
            match last.is_empty() {
                true => format!("`{}` fails ({how})", command.name),
                false => format!("`{}` fails ({how}), and writes: {}", command.name, last.join(" / ")),
            }
        };
        self.blocking_commands().map(one).collect::<Vec<_>>().join("; ")
    }

    /// The commands that keep the work from landing.
    pub fn blocking_commands(&self) -> impl Iterator<Item = &CommandResult> {
        self.commands.iter().filter(|it| it.required && !it.outcome.is_green())
    }
}

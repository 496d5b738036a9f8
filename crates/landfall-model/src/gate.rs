//! Verification: what the commands of a project showed, and what that amounts to.

mod count;

use crate::denial::{SandboxDenial, settings_that_allow};
use crate::sandbox::Confinement;
use crate::score::Dimension;
use crate::{Commit, Digest, Tree};

pub use count::count_tests;
pub(crate) use count::without_colour;

/// What one check, or all of them together, came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It passed.
    Pass,
    /// It failed and then passed on the same tree.
    Flaky,
    /// It fails on the base as well.
    PreExisting,
    /// It failed.
    Fail,
    /// It ran into its limit.
    Timeout,
    /// It could not run, or ran no test: this says nothing about the work.
    Broken,
}

impl Outcome {
    /// Every outcome there is.
    pub const ALL: [Self; 6] =
        [Self::Pass, Self::Flaky, Self::PreExisting, Self::Fail, Self::Timeout, Self::Broken];

    /// The word people read.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Flaky => "flaky",
            Self::PreExisting => "pre-existing",
            Self::Fail => "fail",
            Self::Timeout => "timeout",
            Self::Broken => "broken",
        }
    }

    /// Whether work may land on it.
    #[must_use]
    pub fn is_green(self) -> bool {
        match self {
            Self::Pass | Self::Flaky => true,
            Self::PreExisting | Self::Fail | Self::Timeout | Self::Broken => false,
        }
    }
}

/// What one run of one command showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// How it exited, 128 and the signal if one ended it; none when that was not seen.
    pub exit: Option<i32>,
    /// Whether it ran into its limit.
    pub timed_out: bool,
    /// How many tests it says it ran, if its output tells.
    pub tests: Option<u64>,
    /// Whether the sandbox denied it a path, as its output says and its rules confirm.
    pub is_denied: bool,
}

impl Seen {
    fn alone(&self) -> Outcome {
        if self.timed_out {
            return Outcome::Timeout;
        }
        match (self.exit, self.tests) {
            (Some(126 | 127), _) | (None, _) | (_, Some(0)) => Outcome::Broken,
            (Some(0), _) => Outcome::Pass,
            (Some(_), _) => Outcome::Fail,
        }
    }
}

/// What a command came to, from its run on the work, the same again, and its run on the base.
///
/// A command that cannot run on the work and passes on the base fails: this machine can run it, so the work broke it.
/// Otherwise it would hold up every other task. A command that cannot run on the base either is broken. A failure is the
/// work's own unless a second run passes or the base fails too. A base on which the command could not run at all says
/// nothing about the work: the first tests of a project fail on their own account. If the sandbox denies a path on the work
/// and on the base, the settings are to blame, and the command is broken.
#[must_use]
pub fn weigh(on_work: &Seen, again: Option<&Seen>, on_base: Option<&Seen>) -> Outcome {
    let first = on_work.alone();
    let passes = |seen: Option<&Seen>| seen.is_some_and(|seen| seen.alone() == Outcome::Pass);
    match first {
        Outcome::Pass | Outcome::Flaky | Outcome::PreExisting => first,
        Outcome::Broken if !passes(on_base) => Outcome::Broken,
        Outcome::Broken if passes(again) => Outcome::Flaky,
        Outcome::Broken => Outcome::Fail,
        Outcome::Fail | Outcome::Timeout => {
            if passes(again) {
                Outcome::Flaky
            } else if on_base.is_some_and(|seen| matches!(seen.alone(), Outcome::Fail | Outcome::Timeout)) {
                let is_denied = on_work.is_denied && on_base.is_some_and(|seen| seen.is_denied);
                if is_denied { Outcome::Broken } else { Outcome::PreExisting }
            } else {
                first
            }
        }
    }
}

/// One command of the gate and what it came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandResult {
    /// What the person calls it.
    pub name: String,
    /// What was run.
    pub command: String,
    /// Whether the work may not land without it.
    pub required: bool,
    /// What it came to.
    pub outcome: Outcome,
    /// How it exited.
    pub exit: Option<i32>,
    /// How long it took.
    pub took_ms: u64,
    /// How long it might have taken.
    pub limit_ms: u64,
    /// How many tests it ran, if its output tells.
    pub tests: Option<u64>,
    /// The end of its output.
    pub excerpt: String,
    /// The dimension it holds down when it fails, whatever a judge thinks.
    pub caps: Option<Dimension>,
    /// What the sandbox denied to it, if it did not pass.
    pub denied: Vec<SandboxDenial>,
}

impl CommandResult {
    /// What the sandbox denied, and what allows it, in a sentence; none if it denied nothing.
    #[must_use]
    pub fn denial_text(&self) -> Option<String> {
        let first = self.denied.first()?;
        let allow = settings_that_allow(&self.denied).join(" and ");
        Some(format!("{}; allow it with `{allow}` under [run] in landfall.toml", first.sentence(&self.name)))
    }
}

/// All that verification saw of one tree.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    pub reused: bool,
    /// Whether a gate without commands is refused.
    pub required: bool,
    /// How the commands were confined; none in a journal from before that was recorded.
    pub sandbox: Option<Confinement>,
}

/// So much of what a failing command wrote stands where people read why; the rest is in the log.
const LAST_LINES: usize = 3;

impl GateReport {
    /// The dimensions that failing commands hold down, with their names.
    pub fn caps(&self) -> impl Iterator<Item = (Dimension, String)> + '_ {
        let failing = self.commands.iter().filter(|it| !it.outcome.is_green());
        failing.filter_map(|it| Some((it.caps?, it.name.clone())))
    }

    /// What it amounts to: the worst of the required commands. No command at all is a pass with a loud warning,
    /// unless the project requires one.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let worst = self.commands.iter().filter(|it| it.required).map(|it| it.outcome).max();
        match worst {
            Some(outcome) => outcome,
            None if self.required => Outcome::Broken,
            None => Outcome::Pass,
        }
    }

    /// Whether nothing at all was checked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// How many tests ran in all, if any command told.
    #[must_use]
    pub fn tests(&self) -> Option<u64> {
        let told: Vec<u64> = self.commands.iter().filter_map(|it| it.tests).collect();
        if told.is_empty() { None } else { Some(told.iter().fold(0, |sum, n| n.saturating_add(sum))) }
    }

    /// Whether it says once more what was known: the same files were checked the same way before, and were red then, too.
    #[must_use]
    pub fn repeats(&self, before: &Self) -> bool {
        let red = |report: &Self| matches!(report.outcome(), Outcome::Fail | Outcome::Timeout);
        let same = self.tree == before.tree && self.config == before.config;
        same && self.environment == before.environment && red(self) && red(before)
    }

    /// Which commands fail and what each wrote last, in one line; nothing if none does.
    #[must_use]
    pub fn complaint(&self) -> String {
        let one = |command: &CommandResult| {
            let how = match (command.outcome, command.exit) {
                (Outcome::Timeout, _) => format!("no end after {}s", command.limit_ms / 1000),
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
        self.offenders().map(one).collect::<Vec<_>>().join("; ")
    }

    /// The commands that keep the work from landing.
    pub fn offenders(&self) -> impl Iterator<Item = &CommandResult> {
        self.commands.iter().filter(|it| it.required && !it.outcome.is_green())
    }
}

//! Whether a person looks at work, and when: before it lands, afterwards, or not at all.

use crate::gate::{GateReport, Outcome};
use crate::task::{Concern, ConcernCode, Task};

/// When a person looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ReviewMode {
    /// Never, unless the change itself gives reason to.
    #[default]
    Skip,
    /// Before landing, unless it went smoothly.
    AutoApprove,
    /// After landing, when there is time: nothing waits for it.
    Batch,
    /// Before every landing.
    PerTask,
}

impl ReviewMode {
    /// Every mode; the later one is stricter.
    pub const ALL: [Self; 4] = [Self::Skip, Self::AutoApprove, Self::Batch, Self::PerTask];

    /// The word in settings.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::AutoApprove => "auto-approve",
            Self::Batch => "batch",
            Self::PerTask => "per-task",
        }
    }
}

/// How a task is reviewed, settled when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewRule {
    /// When a person looks.
    pub mode: ReviewMode,
    /// Runs of the agent up to which work counts as smooth.
    pub iterations_max: u32,
}

impl Default for ReviewRule {
    fn default() -> Self {
        Self { mode: ReviewMode::Skip, iterations_max: 3 }
    }
}

/// What gives reason to look before this lands, besides what is in the change itself.
#[must_use]
pub fn reasons(task: &Task, report: &GateReport) -> Vec<Concern> {
    // What a person asked to be taken back was made by no agent.
    if task.counters.runs == 0 {
        return Vec::new();
    }
    let rule = task.limits.review;
    let asked = |detail: String| Concern { code: ConcernCode::ReviewAsked, detail };
    match rule.mode {
        ReviewMode::Skip | ReviewMode::Batch => Vec::new(),
        ReviewMode::PerTask => vec![asked("a person looks at every task".to_owned())],
        ReviewMode::AutoApprove => {
            let mut found = Vec::new();
            let runs = task.counters.iterations;
            if runs > rule.iterations_max {
                found.push(asked(format!("it took {runs} iterations, more than {}", rule.iterations_max)));
            }
            if task.counters.asked > 0 {
                found.push(asked("its agent was blocked or had a question on the way".to_owned()));
            }
            let unclean = report.commands.iter().find(|command| command.outcome != Outcome::Pass);
            if let Some(command) = unclean {
                let word = command.outcome.word();
                found.push(asked(format!("the check `{}` ended as {word}", command.name)));
            }
            if report.is_empty() {
                found.push(asked("nothing was verified".to_owned()));
            }
            found
        }
    }
}

/// What is to happen to work that a person wants changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redo {
    /// It goes on from what is there.
    Keep,
    /// It begins anew; what is there is kept under a ref.
    Fresh,
    /// It goes on from this earlier state of its own work.
    From(crate::Commit),
}

/// Complaints that come up so often that they have a name.
pub const QUICK_ISSUES: [(&str, &str); 8] = [
    ("tests", "There are no tests for it, or they do not test what matters."),
    ("scope", "It changes more than the task asks for."),
    ("criteria", "An acceptance criterion is not met."),
    ("style", "It does not read like the code around it."),
    ("docs", "The documentation does not say what changed."),
    ("errors", "Errors are swallowed or not told to whoever could act on them."),
    ("performance", "It is too slow for what it does."),
    ("security", "It trusts what it should check."),
];

/// A person's complaints as words for the agent.
#[must_use]
pub fn complaint(issues: &[String], text: &str) -> String {
    let mut lines: Vec<String> = issues
        .iter()
        .map(|issue| match QUICK_ISSUES.iter().find(|(name, _)| name == issue) {
            Some((_, sentence)) => format!("- {sentence}"),
            None => format!("- {issue}"),
        })
        .collect();
    if !text.trim().is_empty() {
        lines.push(text.trim().to_owned());
    }
    lines.join("\n")
}

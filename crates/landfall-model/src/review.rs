//! Whether a person looks at work, and when: before it lands, afterwards, or not at all.

use crate::gate::{GateReport, Outcome};
use crate::task::{Concern, ConcernCode, Task};

/// When a person looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ReviewMode {
    /// Never, unless the change itself gives reason to.
    #[default]
    Skip,
    /// After landing, when there is time: nothing waits for it.
    Batch,
    /// Before landing, unless it went smoothly.
    AutoApprove,
    /// Before every landing.
    PerTask,
}

impl ReviewMode {
    /// Every mode; the later one is stricter.
    pub const ALL: [Self; 4] = [Self::Skip, Self::Batch, Self::AutoApprove, Self::PerTask];

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
    /// Whether a person looks afterwards as well, whatever happened before.
    pub after: bool,
}

impl Default for ReviewRule {
    fn default() -> Self {
        Self { mode: ReviewMode::Skip, iterations_max: 3, after: false }
    }
}

impl ReviewRule {
    /// The rule for a task whose tags say so, in a sprint that may want everything looked at afterwards. The strictest
    /// counts, and to look afterwards is no excuse not to look before.
    #[must_use]
    pub fn with(self, by_tags: impl IntoIterator<Item = ReviewMode>, sprint_looks_after: bool) -> Self {
        let modes: Vec<ReviewMode> = std::iter::once(self.mode).chain(by_tags).collect();
        let after = modes.contains(&ReviewMode::Batch) || sprint_looks_after;
        Self { mode: modes.into_iter().max().unwrap_or_default(), after, ..self }
    }
}

/// What gives reason to look before this lands, besides what is in the change itself.
#[must_use]
pub fn reasons(task: &Task, report: &GateReport) -> Vec<Concern> {
    // What a person asked to be taken back was made by no agent.
    if !task.is_made_by_an_agent() {
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

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Could be better.
    Minor,
    /// Should not land so.
    Major,
    /// Must not land.
    Blocker,
}

impl Severity {
    /// Every severity, the least first.
    pub const ALL: [Self; 4] = [Self::Info, Self::Minor, Self::Major, Self::Blocker];

    /// The word people and reviewers use.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Minor => "minor",
            Self::Major => "major",
            Self::Blocker => "blocker",
        }
    }

    /// Whether it keeps work from landing.
    #[must_use]
    pub fn blocks(self) -> bool {
        self >= Self::Major
    }
}

/// Something a reviewer found, under a name that stays the same from one review to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// `F1`, `F2`, … within the task.
    pub id: String,
    /// How much it matters.
    pub severity: Severity,
    /// In one line.
    pub title: String,
    /// In full.
    pub detail: String,
    /// Where: a file, with a line after a colon if there is one.
    pub place: String,
    /// Whether a later review found it dealt with.
    pub resolved: bool,
}

/// What a reviewer said, as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Opinion {
    /// What they found. One that repeats an earlier finding names it.
    pub findings: Vec<Said>,
    /// Earlier findings that are dealt with.
    pub resolved: Vec<String>,
}

/// One finding in the reviewer's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The earlier finding it is about.
    pub id: Option<String>,
    /// How much it matters.
    pub severity: Severity,
    /// In one line.
    pub title: String,
    /// In full.
    pub detail: String,
    /// Where.
    pub place: String,
    /// The command that fails until it is dealt with, if a judge named one.
    pub test: Option<String>,
}

/// The findings after one more review. What was found before stays open until a reviewer says that it is dealt with.
#[must_use]
pub fn merged(known: &[Finding], opinion: &Opinion) -> Vec<Finding> {
    let mut all: Vec<Finding> = known.to_vec();
    for finding in &mut all {
        finding.resolved |= opinion.resolved.contains(&finding.id);
    }
    let mut worst: Vec<&Said> = opinion.findings.iter().collect();
    worst.sort_by_key(|said| std::cmp::Reverse(said.severity)); // what matters most is never left out
    for said in worst.into_iter().take(FINDINGS_MAX) {
        let same = |finding: &&mut Finding| match &said.id {
            Some(id) => finding.id == *id,
            None => finding.title == said.title && finding.place == said.place,
        };
        if let Some(finding) = all.iter_mut().find(same) {
            finding.severity = said.severity;
            finding.resolved = false;
            finding.detail.clone_from(&said.detail);
            continue;
        }
        all.push(Finding {
            id: format!("F{}", all.len() + 1),
            severity: said.severity,
            title: said.title.clone(),
            detail: said.detail.clone(),
            place: said.place.clone(),
            resolved: false,
        });
    }
    all
}

/// Rounds between a reviewer and an agent before a person weighs both.
pub const ROUNDS_MAX: u32 = 3;
const FINDINGS_MAX: usize = 50; // a reviewer who finds more has not chosen

/// The findings that keep work from landing.
pub fn blocking(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(|finding| !finding.resolved && finding.severity.blocks())
}

/// A finding as people and agents read it.
impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { id, severity, title, place, .. } = self;
        match place.as_str() {
            "" => write!(f, "{id} ({}): {title}", severity.word()),
            place => write!(f, "{id} ({}, {place}): {title}", severity.word()),
        }
    }
}

//! Whether a person looks at work, and when: before it lands, afterwards, or not at all.

use crate::gate::{CheckOutcome, GateReport};
use crate::task::{ChangeConcern, ConcernCode, Task};
pub use landfall_facts::review::{Finding, FindingSeverity, ReviewMode, ReviewRule};

/// What gives reason to look before this lands, besides what is in the change itself.
#[must_use]
pub fn review_reasons(task: &Task, report: &GateReport) -> Vec<ChangeConcern> {
    // What a person asked to be taken back was made by no agent.
    if !task.is_made_by_an_agent() {
        return Vec::new();
    }
    let rule = task.limits.review;
    let asked = |detail: String| ChangeConcern { code: ConcernCode::ReviewAsked, detail };
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
            let unclean = report.commands.iter().find(|command| command.outcome != CheckOutcome::Pass);
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
pub enum RedoChoice {
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
pub fn format_complaint(issues: &[String], text: &str) -> String {
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

/// What a reviewer said, as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReviewOpinion {
    /// What they found. One that repeats an earlier finding names it.
    pub findings: Vec<ReviewerFinding>,
    /// Earlier findings that are dealt with.
    pub resolved: Vec<String>,
}

/// One finding in the reviewer's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewerFinding {
    /// The earlier finding it is about.
    pub id: Option<String>,
    /// How much it matters.
    pub severity: FindingSeverity,
    /// In one line.
    pub title: String,
    /// In full.
    pub detail: String,
    /// Where.
    pub place: String,
    /// The command that fails until it is dealt with, if a judge named one.
    pub test: Option<String>,
}

impl ReviewerFinding {
    /// It in one line, with its place.
    #[must_use]
    pub fn line(&self) -> String {
        let place = if self.place.is_empty() { String::new() } else { format!(" ({})", self.place) };
        format!("{}{place}: {}", self.severity.word(), self.title)
    }
}

/// The findings after one more review. What was found before stays open until a reviewer says that it is dealt with.
#[must_use]
pub fn merge_findings(known: &[Finding], opinion: &ReviewOpinion) -> Vec<Finding> {
    let mut all: Vec<Finding> = known.to_vec();
    for finding in &mut all {
        finding.resolved |= opinion.resolved.contains(&finding.id);
    }
    let mut worst: Vec<&ReviewerFinding> = opinion.findings.iter().collect();
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
pub fn blocking_findings(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(|finding| !finding.resolved && finding.severity.blocks_landing())
}

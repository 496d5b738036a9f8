//! What recoveries tell people: an entry of the log for each, and a task about what comes again and again.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{Recoveries, Recovery, RecoveryTier};
use crate::proposal::ProposedTask;
use crate::{TaskSize, Timestamp};
use landfall_facts::recovery::RecoveryOp;

/// So often a symptom is seen before a task is proposed about it.
pub const PROMOTED_AT: usize = 3;

const TAIL_LINES_SHOWN: usize = 20; // enough to know it again
const FENCE_MIN: usize = 3;

/// One recovery as Markdown. `when` is its moment, `subject` what it was about, in words.
#[must_use]
pub fn render_recovery_entry(recovery: &Recovery, when: &str, subject: &str, seen: usize) -> String {
    let Recovery { step, symptom, tier, action, exit, tail, took_ms, known, diagnosis, outcome, .. } =
        recovery;
    let source = match tier {
        RecoveryTier::Reconcile => "reconciler",
        RecoveryTier::Pattern => "catalogue",
        RecoveryTier::Agent => "recovery agent",
        RecoveryTier::Person => "a person",
    };
    let exit = exit.map_or_else(|| "not known".to_owned(), |code| code.to_string());
    let mut text = format!(
        "### {when}: {symptom}\n\n#### Context\n\n- Subject: {subject}\n- Step: {step}\n- Source: {source}\n- Exit code: {exit}\n"
    );
    if let Some(took_ms) = took_ms {
        text.push_str(&format!("- Took: {} s\n", took_ms / 1_000));
    }
    if !known.is_empty() {
        let known: Vec<&str> = known.iter().map(|it| it.word()).collect();
        text.push_str(&format!("- Known: {}\n", known.join(", ")));
    }
    let lines: Vec<&str> = tail.lines().collect();
    let lines = &lines[lines.len().saturating_sub(TAIL_LINES_SHOWN)..];
    if !lines.is_empty() {
        let fence = code_fence_for(lines);
        text.push_str(&format!("\n{fence}text\n{}\n{fence}\n", lines.join("\n")));
    }
    let (said, applied) = match diagnosis {
        Some(diagnosis) => {
            let ops: Vec<&str> = diagnosis.ops.iter().map(RecoveryOp::word).collect();
            let what = diagnosis.action.map_or("nothing: the plan was refused", |action| action.word());
            let applied =
                if ops.is_empty() { what.to_owned() } else { format!("{what}: {}", ops.join(", ")) };
            (diagnosis.rationale.trim().to_owned(), applied)
        }
        None if *tier == RecoveryTier::Reconcile => {
            ("What the step was to bring about is there, whatever its end says.".to_owned(), action.clone())
        }
        None if *tier == RecoveryTier::Agent => ("An agent looked at it.".to_owned(), action.clone()),
        None => (format!("It fits `{symptom}`."), action.clone()),
    };
    let outcome = match outcome {
        Some((outcome, detail)) if detail.is_empty() => outcome.word().to_owned(),
        Some((outcome, detail)) => format!("{}: {detail}", outcome.word()),
        None => "not known yet".to_owned(),
    };
    let candidate = if seen >= PROMOTED_AT {
        format!("seen {seen} times: worth a task")
    } else {
        format!("seen {seen} of {PROMOTED_AT} times")
    };
    text.push_str(&format!(
        "\n#### Diagnosis\n\n{said}\n\n#### Recovery applied\n\n{applied}\n\n#### Outcome\n\n{outcome}\n\n\
         #### Improvement candidate\n\n{candidate}\n"
    ));
    text
}

/// Every recovery of a project as entries, newest first; each with the words for what it was about. `when` says a moment.
#[must_use]
pub fn project_log<'a>(
    all: impl IntoIterator<Item = (String, &'a Recoveries)>,
    when: &dyn Fn(Timestamp) -> String,
) -> Vec<String> {
    let mut tried: Vec<(String, &Recovery)> = Vec::new();
    for (subject, recoveries) in all {
        tried.extend(recoveries.tried.iter().map(|it| (subject.clone(), it)));
    }
    tried.sort_by_key(|(_, it)| it.at);
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut entries = Vec::new();
    for (subject, recovery) in &tried {
        let count = seen.entry(&recovery.symptom).or_default();
        *count += 1;
        entries.push(render_recovery_entry(recovery, &when(recovery.at), subject, *count));
    }
    entries.reverse();
    entries
}

/// A fence that the text in it cannot end.
fn code_fence_for(lines: &[&str]) -> String {
    let longest = lines.iter().map(|line| line.len() - line.trim_start_matches('`').len()).max().unwrap_or(0);
    let indented = lines
        .iter()
        .map(|line| line.trim_start())
        .map(|line| line.len() - line.trim_start_matches('`').len());
    "`".repeat(indented.max().unwrap_or(0).max(longest).max(FENCE_MIN - 1) + 1)
}

/// Something that comes again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternCandidate {
    /// What.
    pub symptom: String,
    /// How often.
    pub seen: usize,
    /// The steps it was seen at.
    pub steps: BTreeSet<String>,
}

impl PatternCandidate {
    /// The task that is proposed about it.
    #[must_use]
    pub fn to_proposed_task(&self) -> ProposedTask {
        let Self { symptom, seen, steps } = self;
        let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
        ProposedTask {
            id: format!("recovery/{symptom}"),
            title: format!("Keep `{symptom}` from happening"),
            body: format!(
                "`{symptom}` was recovered from {seen} times, at {}. Each time cost a part of a run. Find out what \
                 brings it about and put an end to it, or say why it has to be lived with.",
                steps.join(", ")
            ),
            criteria: vec![format!(
                "what brought `{symptom}` about is named, with a test that shows it gone"
            )],
            size: Some(TaskSize::S),
            tags: vec!["recovery".to_owned()],
            ..ProposedTask::default()
        }
    }
}

/// What was seen often and never proposed, over all tasks. Work that was there in spite of its exit code is no trouble
/// and does not count.
#[must_use]
pub fn find_recurring_failures<'a>(all: impl IntoIterator<Item = &'a Recoveries>) -> Vec<PatternCandidate> {
    let mut proposed: BTreeSet<&str> = BTreeSet::new();
    let mut seen: BTreeMap<&str, PatternCandidate> = BTreeMap::new();
    for recoveries in all {
        proposed.extend(recoveries.proposed.iter().map(String::as_str));
        for recovery in recoveries.tried.iter().filter(|it| it.tier != RecoveryTier::Reconcile) {
            let candidate = seen.entry(&recovery.symptom).or_insert_with(|| PatternCandidate {
                symptom: recovery.symptom.clone(),
                seen: 0,
                steps: BTreeSet::new(),
            });
            candidate.seen += 1;
            candidate.steps.insert(recovery.step.to_string());
        }
    }
    let often = seen.into_values().filter(|it| it.seen >= PROMOTED_AT);
    often.filter(|it| !proposed.contains(it.symptom.as_str())).collect()
}

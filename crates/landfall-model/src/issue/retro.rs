//! What is said about an issue when it is over: always of one that was made of others, otherwise only if something was out of
//! the ordinary.

use std::collections::BTreeMap;

use super::paper::IssueDocument;
use super::trail::{IssueTraceEvent, Trace};
use super::{IssueRef, IssueRoute, Pipeline, SubIssueEnd, SubIssueOutcome};
use crate::Task;
use crate::recovery::RecoveryOutcome;

/// What is said afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IssueRetrospective {
    /// `SUCCESS`, or `FAILED (…)`.
    pub result: String,
    /// What was out of the ordinary, a line each.
    pub unusual: Vec<String>,
    /// What became of the issues it was made of.
    pub parts: Vec<PartLine>,
    /// What was left for later on purpose.
    pub deferred: Vec<String>,
    /// What its spec was asked for and does not say.
    pub gaps: Vec<String>,
    /// What should be done otherwise in future: the tier and the title.
    pub proposals: Vec<(&'static str, String)>,
}

/// What became of an issue that another is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartLine {
    /// Its number.
    pub number: u64,
    /// Its title; empty if it is not known any more.
    pub title: String,
    /// `SUCCESS`, `FAILED (…)` and so on.
    pub result: String,
    /// The way it took by its size.
    pub route: String,
    /// With which others it was worked on at the same time, and what it waited for.
    pub notes: String,
}

/// What is said about the issue of a task; none if nothing is worth saying. `result` is how it ended, in a word of the log; none
/// while it is about to end well. `paper` is its spec, or what takes its place.
#[must_use]
pub fn issue_retrospective(
    task: &Task,
    trail: &[Trace],
    paper: Option<&IssueDocument>,
) -> Option<IssueRetrospective> {
    let issue = task.issue.as_deref()?;
    IssueRef::from_source(&task.spec.source)?;
    let split = issue.routed.is_some_and(|routed| routed.way == IssueRoute::Split);
    let unusual = list_unusual_events(trail);
    // Work without a spec leaves its retrospective in a paper that only this machine has: it is written down in the tracker.
    let is_without_spec = issue.routed.is_some_and(|routed| !routed.spec);
    let is_transcribed = is_without_spec && paper.is_some_and(|paper| paper.all_proposals().next().is_some());
    if unusual.is_empty() && !split && !is_transcribed {
        return None;
    }
    let ended = trail.iter().rev().find_map(|trace| match &trace.what {
        IssueTraceEvent::SubComplete { result } => Some(Some(result.clone())),
        IssueTraceEvent::SubStart { .. } => Some(None), // taken up again since
        _ => None,
    });
    let bug = issue.seen.as_ref().is_some_and(|seen| seen.kind.as_deref() == Some("bug"));
    let specified = issue.routed.is_some_and(|routed| routed.spec);
    let gaps = paper.filter(|_| specified).map(|paper| paper.missing_sections(bug)).unwrap_or_default();
    let handoff = paper.and_then(|paper| paper.handoff.as_ref());
    let proposals = paper.map(|paper| {
        paper.all_proposals().map(|(_, it)| (it.tier.wire_name(), it.title.clone())).collect::<Vec<_>>()
    });
    Some(IssueRetrospective {
        result: ended.flatten().unwrap_or_else(|| "SUCCESS".to_owned()),
        unusual,
        parts: issue.ends.iter().flatten().map(|end| format_sub_issue(issue, end)).collect(),
        deferred: handoff.map(|handoff| handoff.deferred.clone()).unwrap_or_default(),
        gaps: gaps.into_iter().map(ToOwned::to_owned).collect(),
        proposals: proposals.unwrap_or_default(),
    })
}

fn format_sub_issue(issue: &Pipeline, SubIssueEnd { number, end, .. }: &SubIssueEnd) -> PartLine {
    let result = match end {
        SubIssueOutcome::Done => "SUCCESS".to_owned(),
        SubIssueOutcome::Left => "LANDED (something is left for a person)".to_owned(),
        SubIssueOutcome::Failed(why) => format!("FAILED ({})", why.lines().next().unwrap_or_default()),
        SubIssueOutcome::Skipped(by) => format!("SKIPPED (blocked by #{by})"),
    };
    let known = issue.parts.iter().find(|part| part.number == *number);
    let named = |numbers: &[u64]| numbers.iter().map(|it| format!("#{it}")).collect::<Vec<_>>().join(", ");
    let levels = super::dependency_levels(&issue.parts);
    let beside: Vec<u64> = levels.into_iter().filter(|level| level.contains(number)).flatten().collect();
    let beside: Vec<u64> = beside.into_iter().filter(|it| it != number).collect();
    let mut notes = Vec::new();
    if !beside.is_empty() {
        notes.push(format!("in parallel with {}", named(&beside)));
    }
    if let Some(part) = known.filter(|part| !part.needs.is_empty()) {
        notes.push(format!("after {}", named(&part.needs)));
    }
    PartLine {
        number: *number,
        title: known.map(|part| part.title.clone()).unwrap_or_default(),
        result,
        route: known.map(|part| super::route_issue(part.size, &issue.wishes).label()).unwrap_or_default(),
        notes: notes.join("; "),
    }
}

/// What was out of the ordinary: a phase that was done again, a recovery, a person who stepped in, a limit that was hit.
fn list_unusual_events(trail: &[Trace]) -> Vec<String> {
    let mut begun: BTreeMap<&str, u32> = BTreeMap::new();
    let mut lines: Vec<String> = Vec::new();
    let mut counted: Vec<(String, u32)> = Vec::new();
    let mut count = |line: String| match counted.iter_mut().find(|(known, _)| *known == line) {
        Some((_, many)) => *many += 1,
        None => counted.push((line, 1)),
    };
    for Trace { what, .. } in trail {
        match what {
            IssueTraceEvent::PhaseStart { phase } => *begun.entry(phase).or_default() += 1,
            IssueTraceEvent::Recovery { phase, tier, symptom, result }
                if *result != RecoveryOutcome::Partial =>
            {
                count(format!("{phase}: `{symptom}`, recovered by tier {tier}: {result}"));
            }
            IssueTraceEvent::Anomaly { phase, pattern, .. }
                if pattern == "base-conflict" || pattern == "red-together" =>
            {
                count(format!("{phase}: {pattern}"));
            }
            IssueTraceEvent::WatchdogKill { phase, .. } => {
                count(format!("{phase}: silent for too long, and ended"))
            }
            IssueTraceEvent::ManualIntervention { phase, kind } => {
                count(format!("{phase}: a person stepped in ({kind})"))
            }
            IssueTraceEvent::VerifyReopenCycle { iteration, reason } => {
                lines.push(format!("verify: opened again ({iteration}): {reason}"));
            }
            IssueTraceEvent::SizeRefresh { from, to, .. } => {
                lines.push(format!("its size went from {from} to {to}"))
            }
            IssueTraceEvent::Recovery { .. }
            | IssueTraceEvent::Anomaly { .. }
            | IssueTraceEvent::SubStart { .. }
            | IssueTraceEvent::WrapperExit { .. }
            | IssueTraceEvent::MaxSilentWindow { .. }
            | IssueTraceEvent::TokenUsage { .. }
            | IssueTraceEvent::PhaseComplete { .. }
            | IssueTraceEvent::SubComplete { .. }
            | IssueTraceEvent::ConcurrentCommit { .. }
            | IssueTraceEvent::CiWait { .. }
            | IssueTraceEvent::TestResult { .. } => {}
        }
    }
    let again = begun.iter().filter(|(_, many)| **many > 1);
    let again = again.map(|(phase, many)| format!("{phase}: begun {many} times"));
    let counted = counted.into_iter().map(|(line, many)| match many {
        1 => line,
        many => format!("{line} ({many} times)"),
    });
    again.chain(counted).chain(lines).collect()
}

impl IssueRetrospective {
    /// The issues it was made of, as a table.
    fn parts_table(&self) -> String {
        let cell = |text: &str| match text {
            "" => "-".to_owned(),
            text => text.replace('|', "\\|").replace('\n', " "),
        };
        let row = |it: &PartLine| {
            let PartLine { number, title, result, route, notes } = it;
            let [title, result, route, notes] = [title, result, route, notes].map(|text| cell(text));
            format!("| #{number} | {title} | {route} | {result} | {notes} |\n")
        };
        let rows: String = self.parts.iter().map(row).collect();
        match rows.as_str() {
            "" => rows,
            _ => format!(
                "\n### Sub-issues\n\n| # | Title | Route | Result | Notes |\n|---|---|---|---|---|\n{rows}"
            ),
        }
    }

    /// As Markdown, below a heading of its own.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let list = |name: &str, lines: &[String]| -> String {
            let lines: String = lines.iter().map(|line| format!("- {}\n", line.replace('\n', " "))).collect();
            if lines.is_empty() { lines } else { format!("\n### {name}\n\n{lines}") }
        };
        let proposals: Vec<String> =
            self.proposals.iter().map(|(tier, title)| format!("[{tier}] {title}")).collect();
        format!(
            "## Auto Retrospective\n\nResult: {}\n{}{}{}{}{}",
            self.result,
            self.parts_table(),
            list("Out of the ordinary", &self.unusual),
            list("Deferred Items", &self.deferred),
            list("What the spec did not say", &self.gaps),
            list("Improvement Proposals", &proposals),
        )
    }
}

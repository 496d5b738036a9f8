//! The attempts of a task, folded from its events.

use landfall_api::{AgentRun, AttemptKind, AttemptLine, Usage};
use landfall_engine::model::gate::CheckOutcome;
use landfall_engine::model::{
    AgentRunTraces, ContextUsage, EndKind, Event, Fact, JournalEntry, SessionStart,
};

use crate::project::conversions;
use crate::project::sentences;

/// Each attempt with how it ended, oldest first.
pub(crate) fn collect_attempts<'a>(entries: impl Iterator<Item = &'a JournalEntry>) -> Vec<AttemptLine> {
    let mut attempts: Vec<AttemptLine> = Vec::new();
    let mut profile = String::new();
    for entry in entries {
        let Fact::Task(_, event) = &entry.fact else { continue };
        if let Event::Bound { driving, .. } = event {
            profile.clone_from(&driving.profile);
        }
        if let Event::Entered { attempt, step, .. } = event {
            // An attempt that is followed by another is over, even if no event of its own says so.
            if let Some(before) = attempts.last_mut()
                && before.ended_ms.is_none()
            {
                before.ended_ms = Some(entry.at.0);
            }
            attempts.push(AttemptLine {
                attempt: attempt.0,
                step: step.as_str().to_owned(),
                began_ms: entry.at.0,
                ended_ms: None,
                iterations: 0,
                end: "under way".to_owned(),
                kind: AttemptKind::Other,
                has_failed: false,
                runs: Vec::new(),
            });
            continue;
        }
        let Some(attempt) = attempts.last_mut() else { continue };
        classify_attempt(attempt, event);
        let end = match event {
            Event::IterationBegan { iteration, talk, .. } => {
                attempt.runs.push(AgentRun {
                    iteration: *iteration,
                    began_ms: entry.at.0,
                    took_ms: None,
                    profile: profile.clone(),
                    model: None,
                    session: None,
                    resumed: *talk != SessionStart::New,
                    sandbox: None,
                    context_percent: None,
                    usage: Usage::default(),
                    verdict: "at work".to_owned(),
                });
                None
            }
            Event::IterationEnded { verdict, took_ms, usage, traces, .. } => {
                attempt.iterations += 1;
                attempt.end = sentences::verdict_words(verdict);
                if let Some(run) = attempt.runs.last_mut() {
                    let AgentRunTraces { session, model, context, sandbox, .. } = traces.clone();
                    run.took_ms = Some(*took_ms);
                    (run.session, run.model, run.sandbox) = (session, model, sandbox);
                    run.context_percent = context.map(ContextUsage::used_percent);
                    run.usage = conversions::to_api_usage(*usage);
                    run.verdict = sentences::verdict_words(verdict);
                }
                None
            }
            Event::Verified { report, .. } => {
                attempt.end = format!("{}: {}", report.outcome().word(), sentences::gate_summary(report));
                None
            }
            Event::Conflicted { paths, .. } => Some(format!("conflict in {}", paths.join(", "))),
            Event::BaseMoved { to, .. } => Some(format!("the base moved to {} first", to.short_hash())),
            Event::Ejected { batch, report, .. } => {
                Some(format!("sent back out of {batch}: {}", sentences::gate_summary(report)))
            }
            Event::Opinion { findings, .. } => {
                attempt.end = sentences::review_opinion(findings.as_deref());
                None
            }
            Event::LandingBegan { batch, .. } => {
                attempt.end = format!("landing in {batch}");
                None
            }
            Event::Requeued { .. } => {
                attempt.end = "stands in the landing queue again".to_owned();
                None
            }
            Event::Landed { commit, .. } => Some(format!("landed as {}", commit.short_hash())),
            Event::Reported { .. } => Some("the report is written".to_owned()),
            Event::Yielded { why, .. } => Some(sentences::yield_reason_label(*why).to_owned()),
            Event::Ended(ending) => Some(sentences::ending_label(ending)),
            Event::Left { .. } | Event::Waited { .. } | Event::ReviewWanted { .. } => {
                Some(attempt.end.clone())
            }
            _ => None,
        };
        if let Some(end) = end
            && attempt.ended_ms.is_none()
        {
            attempt.end = end;
            attempt.ended_ms = Some(entry.at.0);
        }
    }
    attempts
}

/// Learns from an event what was done in an attempt, and whether it came to nothing.
fn classify_attempt(attempt: &mut AttemptLine, event: &Event) {
    match event {
        Event::IterationBegan { .. } => attempt.kind = AttemptKind::Agent,
        Event::Verified { report, .. } => {
            if attempt.kind == AttemptKind::Other {
                attempt.kind = AttemptKind::Checks;
            }
            attempt.has_failed = !matches!(
                report.outcome(),
                CheckOutcome::Pass | CheckOutcome::Flaky | CheckOutcome::PreExisting
            );
        }
        Event::LandingBegan { .. } | Event::Requeued { .. } | Event::Landed { .. } => {
            attempt.kind = AttemptKind::Landing;
        }
        Event::Ejected { .. } => (attempt.kind, attempt.has_failed) = (AttemptKind::Landing, true),
        Event::Conflicted { .. } => attempt.has_failed = true,
        Event::Ended(ending) => {
            attempt.has_failed |= !matches!(ending.kind, EndKind::Done | EndKind::Cancelled)
        }
        _ => {}
    }
}

//! What is left for people and programs: a report per task, and a certificate per landing.

use std::path::Path;
use std::sync::Arc;

use landfall_host::{crash, disk};
use landfall_model::gaming::{MutationTrial, TestEvidence};
use landfall_model::gate::GateReport;
use landfall_model::issue::{self, IssueDocument, IssueRef, IssueRetrospective, ProposalTier};
use landfall_model::recovery::render_recovery_entry;
use landfall_model::sandbox::Confinement;
use landfall_model::{
    Attempt, Digest, EndCode, EndKind, Ending, Fact, News, Task, TaskState, TaskStatus, Timestamp,
};
use landfall_store::{Seq, StoreReader};
use landfall_trackers::tracker::{TrackerError, TrackerResult};
use serde_json::{Value, json};

use crate::digests::digest_text;
use crate::engine_context::EngineContext;
use crate::exchange::{self, ExchangeInterruption};
use crate::improve::{self, ProposalOrigin};
use crate::land;

/// Writes the report, and the certificate if the task landed. Files are named by their hash, so writing twice is
/// writing once.
pub(crate) fn write_report(site: &Arc<EngineContext>, task: &Task, attempt: Attempt) {
    let paper = task.issue.as_ref().and_then(|_| paper_of(site, task));
    let lookback = build_retrospective(&site.folder.journal_path(), task, paper.as_ref());
    let told =
        lookback.as_ref().map_or(Ok(()), |lookback| exchange::post_retrospective(site, task, lookback));
    let filed = match paper.filter(|_| site.settings.tracker.file_proposals && told.is_ok()) {
        Some(paper) => file_proposals(site, task, &paper),
        None => Ok(()),
    };
    if told.and(filed) == Err(ExchangeInterruption) {
        return site.note_cut_short(task.id);
    }
    let news = match try_write(&site.folder.papers_path(), task, lookback.as_ref()) {
        Ok((report, certificate)) => News::Reported { attempt, report, certificate },
        Err(error) => {
            News::MachineFailed { attempt, detail: format!("write the report: {error}"), hopeless: false }
        }
    };
    site.send_news(task.id, news);
}

/// What the agents of the issue of a task left: on the base, once it is there.
fn paper_of(site: &EngineContext, task: &Task) -> Option<IssueDocument> {
    let base = land::sync_base(site).ok()?;
    improve::find_paper(
        &site.store,
        &base,
        &site.settings.tracker.spec_path,
        &site.folder.papers_path(),
        task,
    )
}

/// What is worth saying about an issue that is over; none of a task that follows none, or if all went as it should. What cannot
/// be read is not said.
#[must_use]
pub fn build_retrospective(
    journal: &Path,
    task: &Task,
    paper: Option<&IssueDocument>,
) -> Option<IssueRetrospective> {
    task.issue.as_ref()?;
    let reader = StoreReader::open(journal).ok()?;
    let facts = reader.events(Seq::ZERO, Some(task.id), u32::MAX).ok()?;
    let facts = facts.iter().filter_map(|(_, entry)| match &entry.fact {
        Fact::Task(_, event) => Some((entry.at, event)),
        Fact::Engine(_) => None,
    });
    issue::issue_retrospective(task, &issue::build_trail(task.flow.as_deref(), facts), paper)
}

const FILED_MAX: usize = 5; // an agent that proposes more has not thought about them

/// Makes issues of what the agents of an issue think worth one. Nothing waits for it: whoever asks later finds them where they are.
fn file_proposals(
    site: &EngineContext,
    task: &Task,
    paper: &IssueDocument,
) -> Result<(), ExchangeInterruption> {
    let number = IssueRef::from_source(&task.spec.source).map_or(0, |source| source.number);
    let wanted = improve::proposals_of_paper(paper, &|phase| ProposalOrigin::Spec { issue: number, phase });
    let wanted = improve::merge_proposals(wanted);
    let mut wanted = wanted.iter().filter(|it| it.tier == ProposalTier::Issue).take(FILED_MAX).peekable();
    if wanted.peek().is_none() {
        return Ok(());
    }
    let mut file_all = || -> TrackerResult<()> {
        let tracker = exchange::project_tracker(site)?;
        let known = improve::open_issues(&*tracker)?;
        wanted.try_for_each(|proposal| improve::file_proposal(&*tracker, &known, proposal).map(drop))
    };
    match file_all() {
        Err(TrackerError::Stopped { .. }) => Err(ExchangeInterruption),
        Ok(()) | Err(_) => Ok(()), // `landfall issue proposals` still has them
    }
}

fn try_write(
    papers: &Path,
    task: &Task,
    lookback: Option<&IssueRetrospective>,
) -> std::io::Result<(Digest, Option<Digest>)> {
    let keep = |text: &str, ending: &str| -> std::io::Result<Digest> {
        let digest = digest_text(text);
        disk::write_atomic(&papers.join(format!("{digest}.{ending}")), text.as_bytes())?;
        crash::pass_point("report.paper");
        Ok(digest)
    };
    let certificate = match certificate_of(task) {
        Some(value) => {
            let text = serde_json::to_string_pretty(&value).expect("a value of ours is JSON");
            Some(keep(&text, "json")?)
        }
        None => None,
    };
    // The report speaks of the task as it is when the report is done.
    let mut told = task.clone();
    let code = if task.landed.is_some() { EndCode::Landed } else { EndCode::Accepted };
    told.state = TaskState::Ended(Ending { kind: EndKind::Done, code, detail: String::new() });
    let report = keep(&report_of(&told, lookback, &format_timestamp), "md")?;
    Ok((report, certificate))
}

fn format_timestamp(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0)
        .map_or_else(|_| at.0.to_string(), |moment| moment.strftime("%F %T UTC").to_string())
}

/// The evidence of a landing: what was wanted, what was run, what was seen, where it went, and how that was checked.
#[must_use]
pub fn certificate_of(task: &Task) -> Option<Value> {
    let (landed, gate) = (task.landed.as_ref()?, task.gate.as_ref()?);
    let commands: Vec<Value> = gate
        .commands
        .iter()
        .map(|it| {
            json!({
                "name": it.name, "command": it.command, "required": it.required, "outcome": it.outcome.word(),
                "exit": it.exit, "tests_run": it.tests, "took_ms": it.took_ms,
                "copied_from_base": it.copied_from_base,
            })
        })
        .collect();
    let review = if task.concerns.is_empty() {
        Value::Null
    } else {
        let concerns: Vec<Value> =
            task.concerns.iter().map(|it| json!({ "code": it.code.word(), "detail": it.detail })).collect();
        let approved = task.approved.as_ref();
        json!({
            "concerns": concerns,
            "approved_tree": approved.map(|(tree, _)| tree.as_str()),
            "note": approved.map(|(_, note)| note),
        })
    };
    let mut warnings: Vec<String> = task.warnings.iter().map(landfall_model::Warning::to_sentence).collect();
    let base_tests = task.evidence.as_ref().and_then(|evidence| evidence.base_tests.as_ref());
    if let Some(run) = base_tests.filter(|run| !run.outcome.is_green()) {
        warnings.push(format!("the work fails tests of the base: {}", run.summary_text()));
    }
    let mutations = task.evidence.as_ref().and_then(|evidence| evidence.mutations.as_ref());
    if let Some(run) = mutations.filter(|run| run.is_finding()) {
        warnings.push(format!("the tests may be unable to fail: {}", run.summary_text()));
    }
    let sandbox_of =
        |level: Confinement| json!({ "level": level.word(), "leaves_open": level.leaves_open() });
    let work = json!({
        "head": gate.head.as_str(),
        "iterations": task.counters.iterations,
        "attempt": task.attempt.0,
        "sandbox": task.lowest_confinement.map(sandbox_of),
    });
    Some(json!({
        "v": 1,
        "task": task.id.to_string(),
        "title": task.spec.title,
        "criteria": task.spec.criteria,
        "verification": {
            "outcome": gate.outcome().word(),
            "empty": gate.is_empty(),
            "commands": commands,
            "tests_run": gate.test_count(),
            "tree": gate.tree.as_str(),
            "section": gate.config.as_str(),
            "environment": gate.environment.as_str(),
            "pass_taken_over": gate.reused,
            "sandbox": gate.sandbox.map(sandbox_of),
        },
        "tests": tests_of(task),
        "review": review,
        "work": work,
        "landing": {
            "commit": landed.commit.as_str(),
            "base_before": landed.base_before.as_str(),
            "tree": landed.tree.as_str(),
            "at_ms": landed.at.0,
            "proof": landed.proof,
        },
        "warnings": warnings,
    }))
}

/// What is known of the tests besides that they passed. None for work that was verified before this was recorded.
fn tests_of(task: &Task) -> Value {
    let Some(TestEvidence { protected, base_tests, tests_run_on_base, counts, mutations }) = &task.evidence
    else {
        return Value::Null;
    };
    // A person's word counts for all that they were shown; without concerns nobody was asked.
    let approved = task.approved.as_ref().filter(|_| !task.concerns.is_empty()).map(|(_, note)| note);
    let protected: Vec<Value> = protected
        .iter()
        .map(|change| {
            json!({
                "path": change.path, "used_by": change.used_by, "lines": change.lines,
                "approved_by": approved.map(|_| "person"), "note": approved,
            })
        })
        .collect();
    let base_tests = base_tests.as_ref().map(|run| {
        json!({
            "files": run.files, "outcome": run.outcome.word(), "failing": run.failing, "took_ms": run.took_ms,
        })
    });
    let mutations = mutations.as_ref().map(|run| {
        let trial = |MutationTrial { path, line, before, after, outcome }: &MutationTrial| {
            json!({ "path": path, "line": line, "before": before, "after": after, "outcome": outcome.word() })
        };
        let tried: Vec<Value> = run.trials.iter().map(trial).collect();
        json!({ "tests": run.tests, "tried": tried, "took_ms": run.took_ms })
    });
    json!({
        "protected_inputs": protected,
        "base_tests": base_tests,
        "mutations": mutations,
        "tests_run_on_base": tests_run_on_base,
        "tests_run": task.gate.as_ref().and_then(GateReport::test_count),
        "in_changed_files": {
            "tests_before": counts.tests_before,
            "tests_after": counts.tests_after,
            "assertions_before": counts.assertions_before,
            "assertions_after": counts.assertions_after,
        },
    })
}

/// A task's report for people, in Markdown.
#[must_use]
pub fn report_of(
    task: &Task,
    lookback: Option<&IssueRetrospective>,
    when: &dyn Fn(Timestamp) -> String,
) -> String {
    let mut out = format!("# {}: {}\n\n", task.id, task.spec.title);
    let why = landfall_model::explain_task_state(task, &[], None, when);
    out.push_str(&format!("{why}\n\n"));
    out.push_str(&format!("- status: {}\n- added: {}\n", TaskStatus::for_task(task), when(task.created)));
    let counters = &task.counters;
    out.push_str(&format!(
        "- iterations: {} of {}\n- working time: {:.1}s\n- tokens: {}{} in, {} out\n",
        counters.iterations,
        task.limits.iterations_max,
        seconds(counters.spent_ms),
        if counters.usage.at_least { "at least " } else { "" },
        counters.usage.tokens_in,
        counters.usage.tokens_out
    ));
    if !task.spec.criteria.is_empty() {
        out.push_str("\n## Criteria\n\n");
        for criterion in &task.spec.criteria {
            out.push_str(&format!("- {criterion}\n"));
        }
    }
    if let Some(gate) = &task.gate {
        out.push_str(&render_verification(gate));
    }
    if let Some(landed) = &task.landed {
        out.push_str(&format!(
            "\n## Landing\n\n- commit: `{}`\n- before: `{}`\n- tree: `{}`\n- proof: {}\n",
            landed.commit, landed.base_before, landed.tree, landed.proof
        ));
    }
    if !task.concerns.is_empty() {
        out.push_str("\n## Review\n\n");
        for concern in &task.concerns {
            out.push_str(&format!("- it {concern}\n"));
        }
        match &task.approved {
            Some((tree, note)) => out.push_str(&format!("- a person approved tree `{tree}`: {note}\n")),
            None => out.push_str("- no person has approved it\n"),
        }
    }
    if !task.warnings.is_empty() {
        out.push_str("\n## Warnings\n\n");
        for warning in &task.warnings {
            out.push_str(&format!("- {}\n", warning.to_sentence()));
        }
    }
    if !task.recoveries.tried.is_empty() {
        out.push_str("\n## Recoveries\n");
        for (place, recovery) in task.recoveries.tried.iter().enumerate() {
            let so_far = &task.recoveries.tried[..=place];
            let seen = so_far.iter().filter(|it| it.symptom == recovery.symptom).count();
            let subject = format!("{} ({})", task.spec.title, task.spec.source);
            out.push_str(&format!(
                "\n{}",
                render_recovery_entry(recovery, &when(recovery.at), &subject, seen)
            ));
        }
    }
    if let Some(lookback) = lookback {
        out.push_str(&format!("\n{}", lookback.to_markdown()));
    }
    if !task.feedback.is_empty() {
        out.push_str("\n## What the agent will be told next\n");
        for feedback in &task.feedback {
            out.push_str(&format!("\n### {}\n\n```\n{}\n```\n", feedback.about, feedback.text.trim_end()));
        }
    }
    out
}

fn seconds(ms: u64) -> f64 {
    f64::from(u32::try_from(ms).unwrap_or(u32::MAX)) / 1000.0
}

fn render_verification(gate: &GateReport) -> String {
    let taken = if gate.reused { " (reused from an earlier pass of the same tree)" } else { "" };
    let mut out = format!("\n## Verification: {}{taken}\n\n", gate.outcome().word());
    if gate.is_empty() {
        out.push_str("**VERIFICATION_EMPTY: no check is configured, so nothing was verified.**\n");
        return out;
    }
    out.push_str("| check | outcome | exit | tests | time |\n|---|---|---|---|---|\n");
    for it in &gate.commands {
        let number = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
        out.push_str(&format!(
            "| `{}` | {} | {} | {} | {:.1}s |\n",
            it.command.replace('|', "\\|"),
            it.outcome.word(),
            number(it.exit.map(|code| code.to_string())),
            number(it.tests.map(|tests| tests.to_string())),
            seconds(it.took_ms)
        ));
    }
    for it in gate.blocking_commands() {
        out.push_str(&format!("\n`{}` said:\n\n```\n{}\n```\n", it.name, it.excerpt.trim_end()));
    }
    out
}

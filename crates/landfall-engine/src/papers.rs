//! The papers of a task: what its agents write for each other, and what the engine tells them.
//!
//! They lie in `.landfall/task/` of a workspace and are excluded from git there: nothing of them lands, and a branch that
//! goes back to an earlier commit does not take them along. What agents wrote is kept by its hash, with the journal; what
//! the engine tells is made anew for every run.

use std::path::Path;

use landfall_host::disk;
use landfall_host::git::Workspace;
use landfall_model::convergence::{AcceptedStage, format_share};
use landfall_model::objective::{Objective, RefinementStatus};
use landfall_model::plan::PlanOutline;
use landfall_model::score::{Dimension, format_score};
use landfall_model::staged::{JudgeResult, PLAN};
use landfall_model::{Digest, StepKind, Task};

use crate::digests::digest_text;
use crate::host_context::HostContext;

/// Where they lie, for git: nothing below it is work.
pub(crate) const PATTERN: &str = "/.landfall/task/";

/// The same for people and prompts.
pub(crate) const FOLDER: &str = ".landfall/task";

const PARTS: [&str; 2] = [".landfall", "task"];

/// What the engine tells; an agent that writes to it talks to itself.
const TOLD: [&str; 5] = ["objective.md", "stage.md", "stages.md", "exclusions.md", "summary.md"];

/// Whether a task has papers at all: only flows with a plan, a judge or an objective use them.
pub(crate) fn has_any(task: &Task) -> bool {
    let steps = task.flow.iter().flat_map(|flow| flow.steps.iter());
    let mut kinds = steps.map(|step| &step.kind);
    kinds.any(|kind| match kind {
        StepKind::Check { .. } | StepKind::Target | StepKind::Converge => true,
        StepKind::Agent { output, .. } => output.iter().any(|path| path.starts_with(FOLDER)),
        StepKind::Verify
        | StepKind::Review
        | StepKind::Land
        | StepKind::Report
        | StepKind::Ask { .. }
        | StepKind::Tracker { .. }
        | StepKind::Split => false,
    })
}

/// Puts the papers of a task into a workspace.
pub(crate) fn put_papers(site: &HostContext, task: &Task, workspace: &Workspace) -> Result<(), String> {
    if !has_any(task) {
        return Ok(());
    }
    let mut all = Vec::new();
    for (name, digest) in &task.staged.papers {
        let text = read_paper(&site.folder.papers_path(), digest)
            .map_err(|error| format!("read the paper `{name}`: {error}"))?;
        all.push((name.clone(), text.into_bytes()));
    }
    all.extend(
        render_engine_papers(task).into_iter().map(|(name, text)| (name.to_owned(), text.into_bytes())),
    );
    workspace
        .write_workspace_files(&PARTS, &all)
        .map_err(|error| format!("write the papers into `{FOLDER}`: {error}"))
}

/// A paper by its hash.
pub fn read_paper(papers: &Path, digest: &Digest) -> std::io::Result<String> {
    std::fs::read_to_string(papers.join(format!("{digest}.md")))
}

/// Keeps a paper by its hash.
///
/// # Errors
/// Why it could not be written.
pub fn store_paper(papers: &Path, text: &str) -> std::io::Result<Digest> {
    let hash = digest_text(text);
    let file = papers.join(format!("{hash}.md"));
    if !file.exists() {
        disk::write_atomic(&file, text.as_bytes())?;
    }
    Ok(hash)
}

/// What an agent left: kept by hash, and the outline of its plan.
pub(crate) fn collect_papers(
    site: &HostContext,
    task: &Task,
    workspace: &Workspace,
) -> (Vec<(String, Digest)>, Option<PlanOutline>) {
    if !has_any(task) {
        return (Vec::new(), None);
    }
    let mut kept = Vec::new();
    let mut outline = None;
    for (name, bytes) in workspace.read_workspace_files(&PARTS).unwrap_or_default() {
        if TOLD.contains(&name.as_str()) || name.starts_with(".plan-superseded") {
            continue;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if text.trim().is_empty() {
            continue;
        }
        let Ok(hash) = store_paper(&site.folder.papers_path(), &text) else {
            continue; // it is not kept, so nobody is told that it is
        };
        if name == PLAN {
            outline = Some(PlanOutline::read(&text));
        }
        kept.push((name, hash));
    }
    (kept, outline)
}

/// What the engine tells whoever works on a task, by name.
#[must_use]
pub fn render_engine_papers(task: &Task) -> Vec<(&'static str, String)> {
    let staged = &task.staged;
    let mut all = vec![("summary.md", render_summary(task))];
    if let Some(objective) = &staged.objective {
        all.push(("objective.md", objective_text(task, objective)));
    }
    if let Some(focus) = &staged.focus {
        let mut text = format!("# Stage {}\n\nThis stage is for:\n\n", focus.number);
        for requirement in
            staged.baseline_requirements().iter().filter(|it| focus.requirements.contains(&it.number))
        {
            text.push_str(&format!(
                "- R{} ({}): {}\n",
                requirement.number,
                requirement.weight.word(),
                requirement.text
            ));
            if !requirement.criteria.is_empty() {
                text.push_str(&format!("  It holds when: {}\n", requirement.criteria));
            }
        }
        all.push(("stage.md", text));
    }
    if !staged.stages.is_empty() {
        let reports: Vec<String> = staged.stages.iter().map(|stage| stage_report(task, stage)).collect();
        all.push(("stages.md", reports.join("\n")));
    }
    if !staged.exclusions.is_empty() {
        let mut text = "# What was tried and given up\n\nDo not take one of these ways again.\n\n".to_owned();
        for exclusion in &staged.exclusions {
            text.push_str(&format!(
                "- {} ({}). Its work is commit {}.\n",
                exclusion.direction,
                exclusion.reason,
                exclusion.abandoned.short_hash()
            ));
        }
        all.push(("exclusions.md", text));
    }
    all
}

/// What an accepted stage came to, and what of it is worth knowing later.
#[must_use]
pub fn stage_report(task: &Task, stage: &AcceptedStage) -> String {
    let staged = &task.staged;
    let before = staged.stages.iter().rev().find(|it| it.number < stage.number);
    let moved = format!(
        "{} → {}",
        format_share(before.map_or(0, |it| it.convergence)),
        format_share(stage.convergence)
    );
    let mut text = format!(
        "# Report of stage {}\n\n- Convergence: {moved}\n- Commit: `{}`\n\n## Requirements\n\n",
        stage.number, stage.commit
    );
    for requirement in staged.baseline_requirements().iter().filter(|it| stage.focus.contains(&it.number)) {
        let covered = stage.coverage.get(&requirement.number).copied().unwrap_or(0);
        let (number, words) = (requirement.number, &requirement.text);
        text.push_str(&format!("- R{number}, covered {}: {words}\n", format_score(covered)));
    }
    let judged: Vec<&JudgeResult> =
        staged.judged.iter().filter(|it| it.stage == Some(stage.number)).collect();
    let given_up = staged.exclusions.iter().filter(|it| it.stage == stage.number);
    let mut lines: Vec<String> =
        given_up.map(|it| format!("given up before: {} ({})", it.direction, it.reason)).collect();
    let back = judged.iter().filter(|it| it.result != it.checkpoint.pass_result()).count();
    if back > 0 {
        lines.push(format!("sent back by its judges: {back}"));
    }
    for finding in judged.iter().flat_map(|it| &it.findings) {
        if !lines.contains(finding) {
            lines.push(finding.clone());
        }
    }
    if !lines.is_empty() {
        text.push_str("\n## Highlights\n\n");
        text.push_str(&lines.iter().map(|line| format!("- {line}\n")).collect::<String>());
    }
    text
}

fn objective_text(task: &Task, objective: &Objective) -> String {
    let coverage = task.staged.stages.last().map(|stage| &stage.coverage);
    let mut text = format!("# Objective of {}: {}\n\n", task.id, task.spec.title);
    for (at, item) in objective.items.iter().enumerate() {
        text.push_str(&format!("## {}. {}\n\n| # | Requirement | Acceptance Criteria | Weight | Covered |\n|---|---|---|---|---|\n", at + 1, item.text));
        for requirement in &item.requirements {
            let covered =
                coverage.and_then(|coverage| coverage.get(&requirement.number)).copied().unwrap_or(0);
            text.push_str(&format!(
                "| R{} | {} | {} | {} | {} |\n",
                requirement.number,
                escape_cell(&requirement.text),
                escape_cell(&requirement.criteria),
                requirement.weight.word(),
                format_score(covered)
            ));
        }
        text.push('\n');
    }
    if !objective.constraints.is_empty() {
        text.push_str("## Constraints\n\n");
        for constraint in &objective.constraints {
            text.push_str(&format!("- {constraint}\n"));
        }
    }
    text
}

fn escape_cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

const JUDGED_SHOWN: usize = 5;

/// Where a task stands, so that whoever comes without a memory can go on.
fn render_summary(task: &Task) -> String {
    let staged = &task.staged;
    let plan = &staged.plan;
    let phase = task.phase().unwrap_or("-");
    let mut text = format!(
        "# {}: {}\n\nPhase: {phase} | Progress: {}/{} steps",
        task.id, task.spec.title, plan.done, plan.steps
    );
    if let Some(focus) = &staged.focus {
        text.push_str(&format!(" | Stage: {}", focus.number));
    }
    text.push_str(&format!(" | Runs: {}\n", task.counters.runs));
    if !staged.stages.is_empty() {
        text.push_str("\n## Stages so far\n\n");
        for stage in &staged.stages {
            let names = stage.focus.iter().map(|number| format!("R{number}")).collect::<Vec<_>>().join(", ");
            text.push_str(&format!(
                "- {}: {names}; convergence {}\n",
                stage.number,
                format_share(stage.convergence)
            ));
        }
    }
    let from = staged.judged.len().saturating_sub(JUDGED_SHOWN);
    if !staged.judged.is_empty() {
        text.push_str("\n## What judges said\n\n");
        for judged in &staged.judged[from..] {
            text.push_str(&format!("- {}\n", judged_line(judged)));
        }
        if let Some(judged) = staged.last_judged() {
            text.push_str(&judged.findings.iter().map(|line| format!("  - {line}\n")).collect::<String>());
        }
    }
    if !staged.proofs.all.is_empty() {
        let (proved, all) = staged.proofs.count_proved();
        text.push_str(&format!("\n## Checks that the plan and judges named: {proved} of {all} proved\n\n"));
        for proof in &staged.proofs.all {
            text.push_str(&format!("- {}\n", proof.line()));
        }
        if staged.proofs.anomalies > 0 {
            text.push_str(&format!(
                "\nSo often one that passed did not any more: {}\n",
                staged.proofs.anomalies
            ));
        }
    }
    let open: Vec<_> =
        staged.refinements.iter().filter(|it| !matches!(it.state, RefinementStatus::Withdrawn)).collect();
    if !open.is_empty() {
        text.push_str("\n## What the person wants otherwise\n\n");
        for refinement in open {
            text.push_str(&format!("- {}. {}\n", refinement.number, refinement.text.replace('\n', " ")));
        }
    }
    text
}

/// What a judge said, in a line.
#[must_use]
pub fn judged_line(judged: &JudgeResult) -> String {
    let mut line = format!("{}: {}", judged.checkpoint.word(), judged.result.word());
    if let Some(composite) = judged.composite {
        line.push_str(&format!(", composite {}", format_score(composite / 1000)));
    }
    if let Some(scores) = judged.scores {
        let all = Dimension::ALL.map(|it| format!("{} {}", it.code(), format_score(scores.of(it))));
        line.push_str(&format!(" ({})", all.join(", ")));
    }
    if !judged.reasons.is_empty() {
        line.push_str(&format!(": {}", judged.reasons.join("; ")));
    }
    line
}

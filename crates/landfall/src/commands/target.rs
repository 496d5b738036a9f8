//! `landfall objective show`: what a task is for, in a dialogue.

use landfall_api::{Target, TargetConfirm, TargetSay, TaskAsked, TypedService, WireTaskId};
use landfall_text::control_chars::{escape_block, escape_line};

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Show the objective of a task, answer questions about it or confirm it
///
/// TEXT answers the question about the objective. `OK` or `--ok` confirms the objective as it was last shown. After that, the task
/// continues without you.
#[derive(clap::Args)]
pub struct Args {
    /// Task, such as T7
    task: WireTaskId,

    /// What to change, add or leave out; `-` reads stdin. Without it, the objective is shown
    #[arg(value_name = "TEXT")]
    words: Vec<String>,

    /// Confirm the objective as it was last shown
    #[arg(long, conflicts_with_all = ["words", "satisfy"])]
    ok: bool,

    /// Confirm that the objective is met, if the flow of the task asks you
    #[arg(long, conflicts_with = "words")]
    satisfy: bool,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let task = args.task;
    let service = context.open_service()?;
    if args.ok {
        let target = service.target(TaskAsked { task })?;
        let changed = service.target_confirm(TargetConfirm { task, revision: target.revision })?;
        context.print_answer(&changed, words::render_changed)?;
    } else if args.satisfy {
        let target = service.target(TaskAsked { task })?;
        if target.question.is_none() || target.confirmed != Some(target.revision) {
            return Err(CommandFailure::new(
                CliExit::NotNow,
                format!("{task} does not ask whether its objective is met"),
            )
            .with_hint("a flow asks that with a step of kind `ask`; without one the figures decide"));
        }
        let answer = landfall_api::Answer { task, text: "satisfied".to_owned() };
        context.print_answer(&service.answer(answer)?, words::render_changed)?;
    } else if args.words.is_empty() {
        let target = service.target(TaskAsked { task })?;
        context.print_answer(&*target, render_target)?;
    } else {
        let text = words::read_words(context, &args.words)?;
        context.print_answer(&service.target_say(TargetSay { task, text })?, words::render_changed)?;
    }
    Ok(CliExit::Ok)
}

fn render_target(target: &Target) -> String {
    let mut text = format!("{}\n", escape_line(&target.progress.strip));
    let confirmed = match (target.revision, target.confirmed) {
        (0, _) => "no objective is worked out yet".to_owned(),
        (revision, Some(confirmed)) if revision == confirmed => {
            format!("objective, revision {revision}, confirmed")
        }
        (revision, _) if target.awaits => format!("objective, revision {revision}; it waits for your OK"),
        (revision, _) => format!("objective, revision {revision}, not confirmed"),
    };
    text.push_str(&format!("\n{confirmed}\n"));
    for (at, item) in target.items.iter().enumerate() {
        text.push_str(&format!("{}. {}\n", at + 1, escape_line(&item.text)));
        for it in &item.requirements {
            let covered = it.coverage.map(|share| format!(", covered {share:.2}")).unwrap_or_default();
            let focus = if it.focus { ", in this stage" } else { "" };
            text.push_str(&format!(
                "   R{} ({}{covered}{focus}) {}\n",
                it.number,
                escape_line(&it.weight),
                escape_line(&it.text)
            ));
            if !it.criteria.is_empty() {
                text.push_str(&format!("      holds when: {}\n", escape_line(&it.criteria)));
            }
        }
    }
    for constraint in &target.constraints {
        text.push_str(&format!("   always: {}\n", escape_line(constraint)));
    }
    if !target.plan.is_empty() {
        text.push_str(&format!("\nplan, {} of {} done\n", target.progress.plan_done, target.plan.len()));
        for step in &target.plan {
            let mark = if step.done { "x" } else { " " };
            text.push_str(&format!("   [{mark}] {}. {}\n", step.number, escape_line(&step.title)));
        }
    }
    if !target.proofs.is_empty() {
        text.push_str(&format!("\nchecks, {}/{} proved\n", target.progress.proofs_done, target.proofs.len()));
        for proof in &target.proofs {
            let (of, command) = (escape_line(&proof.of), escape_line(&proof.command));
            text.push_str(&format!("   {of}, {}: {command}\n", escape_line(&proof.standing)));
        }
    }
    if !target.stages.is_empty() || target.stage.is_some() {
        text.push_str("\nstages\n");
        for stage in &target.stages {
            text.push_str(&format!(
                "   {} for {}: convergence {:.4}\n",
                stage.number,
                join_requirement_numbers(&stage.focus),
                stage.convergence
            ));
        }
        if let Some(stage) = &target.stage {
            text.push_str(&format!(
                "   {} for {}: under way\n",
                stage.number,
                join_requirement_numbers(&stage.focus)
            ));
        }
        text.push_str(&format!("   met at {:.2}\n", target.satisfied_at));
    }
    for it in &target.exclusions {
        text.push_str(&format!(
            "   given up: {} ({})\n",
            escape_line(&it.direction),
            escape_line(&it.reason)
        ));
    }
    if !target.refinements.is_empty() {
        text.push_str("\nrefinements\n");
        for it in &target.refinements {
            let impact = it.impact.as_ref().map(|impact| format!(", {impact}")).unwrap_or_default();
            text.push_str(&format!(
                "   {} ({}{}) {}\n",
                it.number,
                it.state,
                escape_line(&impact),
                escape_line(&it.text)
            ));
        }
    }
    if !target.thresholds.is_empty() {
        let all: Vec<String> = target
            .thresholds
            .iter()
            .map(|it| format!("{} {:.2} ({})", escape_line(&it.step), it.threshold, it.checkpoint))
            .collect();
        text.push_str(&format!("\nthresholds in force: {}\n", all.join(", ")));
    }
    if !target.judgements.is_empty() {
        text.push_str("\njudgements, the latest last\n");
        for it in &target.judgements {
            let stage = it.stage.map(|stage| format!("stage {stage} ")).unwrap_or_default();
            let composite = it.composite.map(|share| format!(" {share:.3}")).unwrap_or_default();
            let scores: Vec<String> =
                it.scores.iter().map(|it| format!("{} {:.2}", it.code, it.score)).collect();
            text.push_str(&format!(
                "   {stage}{} {}{composite} {}\n",
                it.checkpoint,
                escape_line(&it.verdict),
                escape_line(&scores.join(" "))
            ));
            for reason in &it.reasons {
                text.push_str(&format!("      {}\n", escape_line(reason)));
            }
            for finding in &it.findings {
                text.push_str(&format!("      found: {}\n", escape_line(finding)));
            }
        }
    }
    if let Some(question) = &target.question {
        text.push_str(&format!("\nit asks you:\n{}\n", escape_block(question)));
    }
    text
}

fn join_requirement_numbers(numbers: &[u32]) -> String {
    numbers.iter().map(|number| format!("R{number}")).collect::<Vec<_>>().join(", ")
}

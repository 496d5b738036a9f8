//! `landfall show`: all there is to know about one task.

use landfall_api::{
    AgentRun, CommandReport, Gate, PhaseMark, PhaseState, Progress, Publication, TaskAsked, TaskDetail,
    TypedService, WireTaskId,
};
use landfall_text::control_chars::{escape_block, escape_line};

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Show one task in detail
#[derive(clap::Args)]
pub struct Args {
    /// Task, such as T7; `#12` is the task of issue 12
    task: WireTaskId,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let task = context.open_service()?.show(TaskAsked { task: args.task })?;
    context.print_answer(&*task, render_task)?;
    Ok(CliExit::Ok)
}

fn render_task(task: &TaskDetail) -> String {
    let mut page = TextPage(format!("{} {}\n\n", task.line.id, escape_line(&task.line.title)));
    add_status(&mut page, task);
    add_wishes(&mut page, task);
    add_usage(&mut page, task);
    if let Some(gate) = &task.gate {
        add_gate(&mut page, gate);
    }
    add_landing(&mut page, task);
    for warning in &task.warnings {
        page.add_line("warning", warning);
    }
    if !task.body.is_empty() {
        page.add_block("body", &task.body);
    }
    if let Some(feedback) = &task.feedback {
        page.add_block("what the agent is told next", feedback);
    }
    for message in &task.messages {
        page.add_block("what the agent hears from you next", message);
    }
    if let Some(gate) = &task.gate {
        for command in gate.commands.iter().filter(|it| !it.excerpt.is_empty()) {
            page.add_block(&format!("output of {}", escape_line(&command.name)), &command.excerpt);
        }
    }
    page.0
}

/// Lines with a name, then blocks.
struct TextPage(String);

impl TextPage {
    fn add_line(&mut self, name: &str, value: &str) {
        self.0 += &format!("{name:<11} {}\n", escape_line(value));
    }

    fn add_lines(&mut self, name: &str, values: &[String]) {
        for (place, value) in values.iter().enumerate() {
            self.add_line(if place == 0 { name } else { "" }, value);
        }
    }

    fn add_block(&mut self, name: &str, text: &str) {
        self.0 += &format!("\n{name}:\n");
        for line in escape_block(text).lines() {
            self.0 += &format!("    {line}\n");
        }
    }
}

fn add_status(page: &mut TextPage, task: &TaskDetail) {
    let mut status = task.line.status.to_string();
    if let Some(wait) = &task.line.wait {
        status += &format!(" ({})", wait.wait);
    }
    if let Some(step) = &task.step {
        status += &format!(", step {step}");
    }
    if let Some(phase) = &task.line.phase {
        status += &format!(", phase {phase}");
    }
    page.add_line("status", &status);
    page.add_line("why", &task.why);
    if let Some(progress) = &task.progress {
        add_progress(page, progress);
    }
    if let Some(wait) = &task.line.wait {
        let until = wait
            .until_ms
            .map(|at| format!(", until {}", landfall_text::format_local(at)))
            .unwrap_or_default();
        page.add_line("ended by", &format!("{}{until}", wait.owner));
    }
    if let Some(reason) = &task.held {
        let reason = if reason.is_empty() { "by you" } else { reason };
        page.add_line("held", reason);
    }
    for concern in &task.concerns {
        page.add_line("look at", &concern.text);
    }
}

/// How far a task with a plan is.
fn add_progress(page: &mut TextPage, progress: &Progress) {
    let phases: Vec<String> = progress.phases.iter().map(phase_mark_text).collect();
    if !phases.is_empty() {
        page.add_line("phases", &phases.join(" → "));
    }
    if progress.plan_steps > 0 {
        page.add_line("plan", &format!("{} of {} steps done", progress.plan_done, progress.plan_steps));
    }
    if progress.proofs > 0 {
        let lost = match progress.anomalies {
            0 => String::new(),
            some => format!(", {some} lost on the way"),
        };
        page.add_line("checks", &format!("{}/{} proved{lost}", progress.proofs_done, progress.proofs));
    }
    if let Some(stage) = progress.stage {
        let close =
            progress.convergence.map(|it| format!(", convergence {it:.4} so far")).unwrap_or_default();
        page.add_line("stage", &format!("{stage}{close}"));
    }
    if let Some(verdict) = &progress.verdict {
        let composite = progress.composite.map(|it| format!(", composite {it:.3}")).unwrap_or_default();
        page.add_line("judged", &format!("{verdict}{composite}"));
    }
    if progress.fixes_max > 0 {
        page.add_line(
            "rounds",
            &format!("sent back by its judge {} of at most {} times", progress.fixes, progress.fixes_max),
        );
    }
    if !progress.can_do.is_empty() {
        page.add_line("by hand", &format!("landfall task do: {}", progress.can_do.join(", ")));
    }
}

fn phase_mark_text(phase: &PhaseMark) -> String {
    let percent = phase.percent.map(|it| format!(" {it} %")).unwrap_or_default();
    match phase.state {
        PhaseState::Done => format!("[{} ✓]", phase.phase),
        PhaseState::Now => format!("[{} ●{percent}]", phase.phase),
        PhaseState::Stopped => format!("[{} ✗]", phase.phase),
        PhaseState::Next => format!("[{}]", phase.phase),
    }
}

fn add_wishes(page: &mut TextPage, task: &TaskDetail) {
    let line = &task.line;
    page.add_lines("criteria", &task.criteria);
    page.add_line("priority", &line.priority.to_string());
    if let Some(size) = line.size {
        page.add_line("size", size.word());
    }
    if !line.tags.is_empty() {
        page.add_line("tags", &line.tags.join(", "));
    }
    if !line.needs.is_empty() {
        page.add_line("needs", &line.needs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
    }
    if !task.touches.is_empty() {
        page.add_line("touches", &task.touches.join(", "));
    }
    if let Some(parent) = line.parent {
        page.add_line("part of", &parent.to_string());
    }
    page.add_line("flow", &task.flow);
    page.add_line("agent", &task.agent);
    page.add_line("added", &format!("{} ({})", landfall_text::format_local(task.added_ms), task.source));
}

fn add_usage(page: &mut TextPage, task: &TaskDetail) {
    page.add_line("iterations", &format!("{} of {}", task.line.iterations, task.iterations_max));
    page.add_line(
        "time",
        &format!(
            "{} of {}",
            landfall_text::format_duration(task.spent_ms),
            landfall_text::format_duration(task.limit_ms)
        ),
    );
    page.add_line("tokens", &words::render_usage(&task.usage));
    if let Some(cost) = words::render_cost(&task.usage) {
        let from = task.usage.cost_from.map(|from| format!(", {}", from.label())).unwrap_or_default();
        page.add_line("cost", &format!("{cost}{from}"));
    }
    page.add_lines("budget", &task.budgets.iter().map(words::render_budget).collect::<Vec<_>>());
    if let Some(limits) = &task.own_limits {
        let iterations = limits.iterations.map(|max| landfall_text::pluralize(u64::from(max), "iteration"));
        let parts = [
            iterations,
            limits.time_ms.map(landfall_text::format_duration),
            limits.usd.map(landfall_text::format_usd),
        ];
        page.add_line("your limits", &parts.into_iter().flatten().collect::<Vec<_>>().join(", "));
    }
    for counter in task.counters.iter().filter(|counter| counter.used > 0) {
        let max = counter.max.map(|max| format!(" of {max}")).unwrap_or_default();
        page.add_line("counted", &format!("{}: {}{max}", counter.name, counter.used));
    }
    let mut attempts: Vec<String> = Vec::new();
    for it in &task.attempts {
        let took = it.ended_ms.map(|end| u64::try_from(end - it.began_ms).unwrap_or(0));
        let took =
            took.map(|ms| format!(" after {}", landfall_text::format_duration(ms))).unwrap_or_default();
        attempts.push(format!(
            "{} {} at {}: {}{took}",
            it.attempt,
            it.step,
            landfall_text::format_local(it.began_ms),
            it.end
        ));
        attempts.extend(it.runs.iter().map(|run| format!("  {}", agent_run_text(run))));
    }
    page.add_lines("attempts", &attempts);
    if let Some(branch) = &task.branch {
        page.add_line("branch", branch);
    }
    if let Some(workspace) = &task.workspace {
        page.add_line("workspace", workspace);
    }
}

/// One run of the agent: `iteration 2 by default with sonnet (session s-1, sandbox write): …`.
fn agent_run_text(run: &AgentRun) -> String {
    let model = run.model.as_ref().map(|model| format!(" with {model}")).unwrap_or_default();
    let mut about = Vec::new();
    if let Some(session) = &run.session {
        let resumed = if run.resumed { "resumed session" } else { "session" };
        about.push(format!("{resumed} {session}"));
    } else if run.resumed {
        about.push("resumed".to_owned());
    }
    about.extend(run.sandbox.as_ref().map(|level| format!("sandbox {level}")));
    about.extend(run.context_percent.map(|percent| format!("context {percent} %")));
    let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
    let took =
        run.took_ms.map(|ms| format!(" after {}", landfall_text::format_duration(ms))).unwrap_or_default();
    let mut used = Vec::new();
    if run.usage.tokens_in + run.usage.tokens_out > 0 {
        let tokens = landfall_text::format_count(run.usage.tokens_in + run.usage.tokens_out);
        used.push(format!("{}{tokens} tokens", run.usage.prefix()));
    }
    used.extend(words::render_cost(&run.usage));
    let used = if used.is_empty() { String::new() } else { format!(", {}", used.join(", ")) };
    format!("iteration {} by {}{model}{about}: {}{took}{used}", run.iteration, run.profile, run.verdict)
}

fn add_gate(page: &mut TextPage, gate: &Gate) {
    let reused = if gate.reused { ", an earlier pass for the same tree" } else { "" };
    let empty = if gate.empty { ", NOTHING WAS CHECKED: no command is set" } else { "" };
    let tree = landfall_text::short_commit(&gate.tree);
    page.add_line(
        "verified",
        &format!(
            "{} in {} on tree {tree}{reused}{empty}",
            gate.outcome,
            landfall_text::format_duration(gate.took_ms)
        ),
    );
    page.add_lines("", &gate.commands.iter().map(check_line).collect::<Vec<_>>());
}

fn check_line(it: &CommandReport) -> String {
    let exit = it.exit.map(|exit| format!(", exit {exit}")).unwrap_or_default();
    let tests =
        it.tests.map(|tests| format!(", {}", landfall_text::pluralize(tests, "test"))).unwrap_or_default();
    let optional = if it.required { "" } else { ", not required" };
    if it.copied_from_base {
        return format!("{:<12} {} `{}` (copied from the base{optional})", it.outcome, it.name, it.command);
    }
    let took = format!(
        "{} of {}",
        landfall_text::format_duration(it.took_ms),
        landfall_text::format_duration(it.limit_ms)
    );
    format!("{:<12} {} `{}` ({took}{exit}{tests}{optional})", it.outcome, it.name, it.command)
}

fn add_landing(page: &mut TextPage, task: &TaskDetail) {
    let Some(landed) = &task.landed_as else { return };
    let from = landfall_text::short_commit(&landed.base_before);
    let commit = landfall_text::short_commit(&landed.commit);
    page.add_line("landed", &format!("{commit} on {from} at {}", landfall_text::format_local(landed.at_ms)));
    page.add_line("proof", &landed.proof);
    match &landed.publication {
        Publication::Published => page.add_line("published", "your repository has it"),
        Publication::Held(reason) => page.add_line("published", &format!("not yet: {reason}")),
    }
}

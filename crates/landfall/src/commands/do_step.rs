//! `landfall task do`: one step of a task by hand.

use landfall_api::{
    DoAsked, FlowCheckpoint, Nothing, Status, StepDone, TaskAsked, TaskDetail, TypedService, UnknownWord,
    WaitFor, WireTaskId,
};
use landfall_app::run_handle::RunAsked;
use landfall_text::control_chars::escape_line;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::{live, presence};

/// Run one step of a task now
///
/// Steps are `plan`, `check`, `exec`, `verify`, `land`, `report` and `target`. The flow and the phase of the task decide which are
/// possible; others are refused with a list of the possible ones. Without a run, the step runs here and nothing follows it. During a
/// run, it follows the current step, and the flow continues from its result.
#[derive(clap::Args)]
pub struct Args {
    /// Task, such as T7
    task: WireTaskId,

    /// Step to run
    command: String,

    /// Which check: `post-plan`, `mid-exec` or `post-exec`
    #[arg(long, value_name = "CHECKPOINT", value_parser = checkpoint)]
    checkpoint: Option<FlowCheckpoint>,

    /// Only this step of the plan; use with `exec`
    #[arg(long, value_name = "N")]
    step: Option<u32>,

    /// Continue with the task afterwards, as `landfall run` would
    #[arg(long)]
    run: bool,
}

fn checkpoint(text: &str) -> Result<FlowCheckpoint, String> {
    text.parse().map_err(|error: UnknownWord| error.to_string())
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let Args { task, command, checkpoint, step, run } = args;
    let service = context.open_service()?;
    let under_way = service.status(Nothing {})?.run.is_some();
    let before = service.show(TaskAsked { task })?;
    if !under_way && before.line.wait.as_ref().is_some_and(|wait| wait.wait == WaitFor::Dependency) {
        let needs = before.line.wait.as_ref().map(|wait| wait.detail.clone()).unwrap_or_default();
        return Err(CommandFailure::new(CliExit::NotNow, format!("{task} needs {needs} first"))
            .with_hint(format!("`landfall run {task}` does those too")));
    }
    let alone = !under_way && !run;
    let asked = DoAsked { task, command: command.clone(), checkpoint, step, alone };
    let changed = service.task_do(asked)?;
    drop(service); // nothing is held while it is driven
    let text = changed.tasks.first().map(|line| line.text.clone()).unwrap_or_default();
    if under_way {
        let now = context.open_service()?.show(TaskAsked { task })?;
        let done = step_outcome(&before, command, &now, false, text);
        context.print_answer(&done, |done| format!("{}\n", escape_line(&done.text)))?;
        return Ok(CliExit::Ok);
    }
    let interrupts = live::Interrupts::start_listening()?;
    let attended = presence::absence_reason(false).is_none();
    let asked = RunAsked { tasks: vec![task], attended, ..RunAsked::default() };
    let mut driven = landfall_app::run(&context.at, asked)?;
    let outcome = live::watch_run(driven.as_mut(), &interrupts);
    drop(driven); // the project is free again
    let after = context.open_service()?.show(TaskAsked { task })?;
    let exit = match live::exit_for_run(&outcome, &interrupts) {
        CliExit::Ok | CliExit::SomeDidNotLand | CliExit::NeedsYou | CliExit::TooManyDeferred => {
            exit_for_task(&after)
        }
        other => other,
    };
    let done = step_outcome(&before, command, &after, true, String::new());
    context.print_answer(&done, render_step)?;
    Ok(exit)
}

/// What the exit code says: the step is over, a person is wanted, or the task is.
fn exit_for_task(task: &TaskDetail) -> CliExit {
    match task.line.status {
        Status::Failed | Status::Timeout | Status::Blocked => CliExit::SomeDidNotLand,
        Status::Review => CliExit::NeedsYou,
        Status::Waiting => match task.line.wait.as_ref().map(|wait| wait.wait) {
            // Held because only one step was wanted: that is over.
            Some(WaitFor::Pause) if task.held.is_some() => CliExit::Ok,
            Some(_) => CliExit::NeedsYou,
            None => CliExit::Ok,
        },
        Status::Draft
        | Status::Ready
        | Status::Active
        | Status::Landing
        | Status::Done
        | Status::Cancelled => CliExit::Ok,
    }
}

fn step_outcome(
    before: &TaskDetail,
    command: String,
    after: &TaskDetail,
    driven: bool,
    text: String,
) -> StepDone {
    let attempts: Vec<_> = after.attempts.iter().filter(|it| it.attempt > before.attempt).cloned().collect();
    let phase = after.progress.as_ref().map(|it| it.phase.clone()).or_else(|| after.line.phase.clone());
    let text = if text.is_empty() { after.why.clone() } else { text };
    StepDone {
        task: after.line.id,
        command,
        driven,
        status: after.line.status,
        phase,
        attempts,
        progress: after.progress.clone(),
        text,
    }
}

fn render_step(done: &StepDone) -> String {
    let mut text = String::new();
    for attempt in &done.attempts {
        text.push_str(&format!("{}: {}\n", escape_line(&attempt.step), escape_line(&attempt.end)));
    }
    if let Some(progress) = &done.progress {
        text.push_str(&format!("{}: {}\n", done.task, escape_line(&progress.strip)));
        if !progress.can_do.is_empty() {
            text.push_str(&format!("by hand next: {}\n", escape_line(&progress.can_do.join(", "))));
        }
    }
    text.push_str(&format!("{}\n", escape_line(&done.text)));
    text
}

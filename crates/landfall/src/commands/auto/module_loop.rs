//! `landfall auto MODULE`: starts, stops or shows the loop of a task module.

use landfall_api::{
    LOOP_ITERATIONS, LOOP_MINUTES, LoopAsked, LoopLine, LoopList, LoopOf, LoopStatus, LoopsAsked, ReportOf,
    Status, TaskAsked, TypedService, WireTaskId,
};
use landfall_text::control_chars::{escape_block, escape_line};
use landfall_text::format_duration;

use super::{ModuleWords, drive_or_watch};
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::say::{print_data, print_json, print_message};

pub(super) fn run(
    path: &str,
    words: &ModuleWords,
    non_interactive: bool,
    context: &CliContext,
) -> Result<CliExit, CommandFailure> {
    let dir = context.path(path.as_ref()).to_string_lossy().into_owned();
    if words.status {
        return show(path, &dir, context);
    }
    if words.stop {
        return stop(path, &dir, context);
    }
    if let Some(done) = finished_task(&dir, context)? {
        return report(path, done, context);
    }
    start(path, dir, words, non_interactive, context)
}

/// Loops of the module, newest first.
fn loops(dir: &str, context: &CliContext) -> Result<LoopList, CommandFailure> {
    Ok(context.open_service()?.loops(LoopsAsked { dir: Some(dir.to_owned()), ..LoopsAsked::default() })?)
}

fn show(path: &str, dir: &str, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let mut list = loops(dir, context)?;
    list.loops.truncate(1);
    context.print_answer(&list, |list| list.loops.iter().map(loop_text).collect())?;
    if list.loops.is_empty() && !context.json {
        print_message(&format!("`{path}` has had no loop; `landfall auto {path}` starts one"));
    }
    Ok(CliExit::Ok)
}

fn stop(path: &str, dir: &str, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let held = loops(dir, context)?.loops.into_iter().find(|of| of.holds);
    let Some(held) = held else {
        return Err(CommandFailure::new(CliExit::NotNow, format!("`{path}` has no loop to stop"))
            .with_hint(format!("`landfall auto {path} --status` shows the last one")));
    };
    let line = context.open_service()?.loop_stop(LoopOf { session: held.session })?;
    context.print_answer(&*line, loop_text)?;
    Ok(CliExit::Ok)
}

/// The task of a module that is done.
fn finished_task(dir: &str, context: &CliContext) -> Result<Option<WireTaskId>, CommandFailure> {
    let Some(task) = landfall_app::task_of_module(&context.at, dir)? else { return Ok(None) };
    let status = context.open_service()?.show(TaskAsked { task })?.line.status;
    Ok((status == Status::Done).then_some(task))
}

/// A module that is complete: its report, and nothing is started.
fn report(path: &str, task: WireTaskId, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let report = context.open_service()?.report(ReportOf::Task(task).into())?;
    match context.json {
        true => print_json(&report)?,
        false => {
            print_message(&format!("`{path}` is complete; nothing is started"));
            print_data(&escape_block(&report.markdown))?;
        }
    }
    Ok(CliExit::Ok)
}

fn start(
    path: &str,
    dir: String,
    words: &ModuleWords,
    non_interactive: bool,
    context: &CliContext,
) -> Result<CliExit, CommandFailure> {
    let asked = LoopAsked {
        session: session_of(path),
        dir: dir.clone(),
        iterations: words.iterations.unwrap_or(LOOP_ITERATIONS),
        minutes: words.minutes.unwrap_or(LOOP_MINUTES),
        flow: None,
    };
    let session = asked.session.clone();
    let line = context.open_service()?.loop_start(asked)?;
    if !context.json {
        print_message(loop_text(&line).trim_end());
    }
    let newest = || -> Result<Option<LoopLine>, CommandFailure> {
        Ok(loops(&dir, context)?.loops.into_iter().find(|of| of.session == session))
    };
    let is_over = || Ok(newest()?.is_none_or(|of| of.ended_ms.is_some()));
    let driven = drive_or_watch(&[line.task], non_interactive, context, &is_over)?;
    let line = newest()?.map_or(line, Box::new);
    context.print_answer(&*line, loop_text)?;
    Ok(match (driven.interrupted, line.reason.as_deref()) {
        (true, _) => CliExit::Interrupted,
        (false, Some("complete")) => CliExit::Ok,
        (false, _) => driven.run.map_or(CliExit::SomeDidNotLand, |(_, exit)| exit),
    })
}

/// The session that the loops of this command belong to: one for each module.
fn session_of(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let name: String =
        parts.join(":").chars().filter(|char| !char.is_whitespace() && !char.is_control()).collect();
    format!("auto:{name}")
}

fn loop_text(line: &LoopLine) -> String {
    let word = line.status.word();
    let step = line.agent_step.as_ref().map(|step| format!(", step {step}")).unwrap_or_default();
    let reason = match (line.status, &line.reason) {
        (LoopStatus::Stopped | LoopStatus::Failed, Some(reason)) => format!(" ({reason})"),
        _ => String::new(),
    };
    let used = format_duration(line.elapsed_ms);
    format!(
        "{} {word}{reason}: iteration {} of {}, {used} of {} min{step}\n   {}\n",
        line.task,
        line.iterations,
        line.iterations_max,
        line.minutes_max,
        escape_line(&line.text)
    )
}

#[cfg(test)]
mod tests {
    use super::session_of;

    #[test]
    fn each_module_has_a_session_of_its_own() {
        assert_eq!(session_of("AiTasks/auth/"), "auto:AiTasks:auth");
        assert_eq!(session_of("./TASK/auth"), "auto:TASK:auth");
    }
}

//! `landfall log`: the journal, for people.

use std::time::Duration;

use landfall_api::{
    LogAsked, LogEntry, Output, OutputAsked, OutputOf, Said, StateVersion, TypedService, WireTaskId,
};
use landfall_text::control_chars::escape_line;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::say::{print_data, print_json};
use crate::tone;

const LOOK_EVERY: Duration = Duration::from_millis(300); // quick for a reader, nothing for the engine

/// Show what happened, one line per event
#[derive(clap::Args)]
pub struct Args {
    /// Only events of this task
    task: Option<WireTaskId>,

    /// Keep printing new events until interrupted; with --json, one object per line
    #[arg(short, long)]
    follow: bool,

    /// Events after this sequence number, instead of the newest
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,

    /// Show the output of the task's latest agent run instead
    #[arg(long, requires = "task", conflicts_with = "after")]
    agent: bool,

    /// Show the output of the latest run of this check instead
    #[arg(long, value_name = "NAME", requires = "task", conflicts_with_all = ["after", "agent"])]
    check: Option<String>,

    /// Only output lines that contain this text
    #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true)]
    search: String,

    /// Maximum number of events to start with
    #[arg(short = 'n', long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let Args { task, follow, after, limit, agent, check, search } = args;
    if let Some(task) = task.filter(|_| agent || check.is_some()) {
        return print_output(task, check, search, follow, limit, context);
    }
    if !search.is_empty() {
        return Err(CommandFailure::usage_error("`--search` is for what an agent or a check printed")
            .with_hint("add `--agent`"));
    }
    let mut asked = LogAsked { after, task, limit, last: after.is_none() };
    let mut page = context.open_service()?.log(asked.clone())?;
    if !follow {
        context.print_answer(&page, |page| page.entries.iter().map(journal_line).collect())?;
        return Ok(CliExit::Ok);
    }
    loop {
        if context.json {
            for entry in &page.entries {
                print_json(entry)?;
            }
        } else if !page.entries.is_empty() {
            print_data(&page.entries.iter().map(journal_line).collect::<String>())?;
        }
        if !page.more {
            context.open_service()?.wait_for_change(StateVersion::default(), LOOK_EVERY);
        }
        asked = LogAsked { after: Some(page.next), last: false, ..asked };
        page = context.open_service()?.log(asked.clone())?;
    }
}

/// Shows the end of what was printed, and what is printed then. A run that follows is shown as well.
fn print_output(
    task: WireTaskId,
    check: Option<String>,
    search: String,
    follow: bool,
    limit: u32,
    context: &CliContext,
) -> Result<CliExit, CommandFailure> {
    let service = context.open_service()?;
    let of = match check {
        Some(_) => OutputOf { check, ..OutputOf::latest_of(task) },
        // Checks and hooks print as well; the latest run of the agent is meant.
        None => {
            let runs = service.outputs(landfall_api::TaskAsked { task })?.outputs;
            let last = runs.into_iter().rfind(|it| it.kind == landfall_api::OutputKind::Agent);
            OutputOf { key: last.map(|it| it.key), ..OutputOf::latest_of(task) }
        }
    };
    let asked =
        OutputAsked { of, at: None, backward: true, lines: limit, search, levels: Vec::new(), raw: false };
    let mut page = service.output(asked.clone())?;
    if !follow {
        context.print_answer(&page, |page| page.lines.iter().map(output_line).collect())?;
        return Ok(CliExit::Ok);
    }
    let show = |page: &Output| -> Result<(), CommandFailure> {
        match context.json {
            true => page.lines.iter().try_for_each(print_json),
            false if page.lines.is_empty() => Ok(()),
            false => print_data(&page.lines.iter().map(output_line).collect::<String>()),
        }
    };
    show(&page)?;
    let key = page.output.key.clone();
    while page.output.grows || !page.last {
        if page.last {
            service.wait_for_change(StateVersion::default(), LOOK_EVERY);
        }
        let of = OutputOf { key: Some(key.clone()), ..asked.of.clone() };
        page = service.output(OutputAsked { of, at: Some(page.next), backward: false, ..asked.clone() })?;
        show(&page)?;
    }
    Ok(CliExit::Ok)
}

fn output_line(line: &Said) -> String {
    let more = if line.cut { " …" } else { "" };
    format!("{:<5} {}{more}\n", line.level.word(), escape_line(&line.text))
}

fn journal_line(entry: &LogEntry) -> String {
    let task = entry.task.map(|task| task.to_string()).unwrap_or_default();
    let moment = landfall_text::format_local(entry.at_ms);
    let head = format!("{:>6} {moment} {task:<4} ", entry.seq);
    let line = format!("{head}{}", escape_line(&entry.text));
    match tone::terminal_columns() {
        Some(columns) if columns > head.len() * 2 => tone::wrap_line(&line, columns, &" ".repeat(head.len())),
        Some(_) | None => line + "\n",
    }
}

//! `landfall status`: what goes on, what waits, and how the project stands.

use landfall_api::{Ask, Nothing, Status, StatusReport};

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::format;
use crate::say::clean;
use crate::table::Table;

/// Shows what goes on, what waits and for whom, and how the project stands.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(Args {}: Args, context: &Context) -> Result<Exit, Failure> {
    let report = context.service()?.status(Nothing {})?;
    context.answer(&report, |report| text(report, format::now_ms()))?;
    Ok(Exit::Ok)
}

fn text(report: &StatusReport, now_ms: i64) -> String {
    let mut text = String::new();
    let since = |at: i64| format::duration(u64::try_from(now_ms - at).unwrap_or(0));
    match &report.run {
        Some(run) => {
            let slots = format::plural(run.slots.into(), "slot");
            let mode = clean(&run.mode);
            text += &format!("run     {} {mode} for {} with {slots}\n", run.run, since(run.since_ms));
        }
        None => text += "run     none; `landfall run` starts one\n",
    }
    if let Some(engine) = &report.engine {
        let version = clean(&engine.version);
        text += &format!("engine  process {}, version {version}, for {}\n", engine.pid, since(engine.since_ms));
    }
    let counts: Vec<String> = Status::ALL
        .iter()
        .filter_map(|status| report.counts.get(status).map(|count| format!("{count} {status}")))
        .collect();
    text += &format!("tasks   {}\n", if counts.is_empty() { "none".to_owned() } else { counts.join(", ") });
    let base = &report.base;
    let published = if base.published { "" } else { ", not yet in your repository" };
    text += &format!("base    {} at {}{published}\n", clean(&base.branch), clean(format::commit(&base.commit)));
    if let Some(held) = &base.held {
        text += &format!("held    {}\n", clean(held));
    }
    if let Some(disk) = &report.disk {
        let used = disk.used_bytes.map(|used| format!(", {} used here", format::bytes(used))).unwrap_or_default();
        text += &format!("disk    {} free{used}\n", format::bytes(disk.free_bytes));
    }
    for warning in &report.warnings {
        text += &format!("warning {}\n", clean(warning));
    }
    if !report.active.is_empty() {
        let mut table = Table::new(&["TASK", "DOING", "ITERATION", "TIME", "TOKENS", "TITLE"]);
        for line in &report.active {
            table.row([
                &line.task.to_string(),
                &format!("{} ({})", line.doing, line.step),
                &format!("{}/{}", line.iteration, line.iterations_max),
                &format::duration(line.elapsed_ms),
                &format::count(line.tokens),
                &line.title,
            ]);
        }
        text += &format!("\n{}", table.text());
    }
    if !report.waiting.is_empty() {
        let mut table = Table::new(&["WAITS FOR", "ENDED BY", "UNTIL", "TASKS", "DETAIL"]);
        for group in &report.waiting {
            let tasks: Vec<String> = group.tasks.iter().map(ToString::to_string).collect();
            table.row([
                group.wait.word(),
                &group.owner,
                &group.until_ms.map(format::moment).unwrap_or_default(),
                &tasks.join(","),
                &group.detail,
            ]);
        }
        text += &format!("\n{}", table.text());
    }
    text
}

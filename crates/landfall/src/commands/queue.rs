//! `landfall queue`: the landing queue.

use landfall_api::{
    BatchLine, Nothing, PauseAsked, QueueReport, QueueResume, TaskAsked, TypedService, WireTaskId,
};
use landfall_text::control_chars::escape_line;

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::table::Table;

/// Show, pause or resume the landing queue
///
/// Verified tasks wait in the queue. Landfall merges and verifies the first tasks together. If a batch fails, Landfall bisects it to
/// find the culprit, and lands the others.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Option<QueueSubcommand>,
}

#[derive(clap::Subcommand)]
enum QueueSubcommand {
    /// Show the queue, current and recent batches, and flaky checks
    Show,
    /// Pause the queue; a landing in progress finishes
    Pause {
        /// Reason, shown where the queue is shown
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Resume the queue
    Resume {
        /// If your branch was rewritten, merge it with what landed; without this option your branch becomes the base as it is
        #[arg(long)]
        keep_landed: bool,
    },
    /// Remove a task from the queue
    ///
    /// Its work is kept. `landfall retry` puts it back into the queue.
    Eject {
        /// Task, such as T7
        task: WireTaskId,
    },
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let service = context.open_service()?;
    match args.action.unwrap_or(QueueSubcommand::Show) {
        QueueSubcommand::Show => {
            let report = service.queue(Nothing {})?;
            context.print_answer(&*report, render_queue)?;
        }
        QueueSubcommand::Pause { reason } => {
            let changed = service.queue_pause(PauseAsked { reason })?;
            context.print_answer(&changed, |changed| format!("{}\n", escape_line(&changed.text)))?;
        }
        QueueSubcommand::Resume { keep_landed } => {
            let changed = service.queue_resume(QueueResume { keep_landed })?;
            context.print_answer(&changed, |changed| format!("{}\n", escape_line(&changed.text)))?;
        }
        QueueSubcommand::Eject { task } => {
            let changed = service.queue_eject(TaskAsked { task })?;
            context.print_answer(&changed, words::render_changed)?;
        }
    }
    Ok(CliExit::Ok)
}

fn render_queue(report: &QueueReport) -> String {
    let mut text = String::new();
    if let Some(hold) = &report.hold {
        let until =
            hold.until_ms.map(|at| format!(" until {}", landfall_text::format_local(at))).unwrap_or_default();
        text += &format!(
            "HELD since {}{until}: {}\n",
            landfall_text::format_local(hold.since_ms),
            escape_line(&hold.reason)
        );
        text += &format!("     {}\n\n", escape_line(&hold.hint));
    }
    if report.line.is_empty() && report.batches.is_empty() {
        text += "the landing queue is empty\n";
    }
    if !report.line.is_empty() {
        let mut table = Table::new(&["PLACE", "TASK", "SINCE", "WHERE", "TITLE"]);
        for place in &report.line {
            table.add_row([
                &place.place.to_string(),
                &place.task.to_string(),
                &landfall_text::format_clock(place.since_ms),
                &place.text,
                &place.title,
            ]);
        }
        text += &table.to_text();
    }
    if !report.batches.is_empty() {
        text += &format!("\non their way\n{}", render_batches(&report.batches));
    }
    if !report.past.is_empty() {
        text += &format!("\nlatest\n{}", render_batches(&report.past));
    }
    if !report.flakes.is_empty() {
        let mut table = Table::new(&["FLAKY CHECK", "FAILED, THEN PASSED", "LAST"]);
        for flake in &report.flakes {
            table.add_row([
                &flake.check,
                &format!("{} of {}", flake.flakes, landfall_text::pluralize(flake.runs, "run")),
                &flake.last_ms.map(landfall_text::format_local).unwrap_or_default(),
            ]);
        }
        text += &format!("\n{}", table.to_text());
    }
    text
}

/// `B7  T1 T2 T3 T4 T5   5 ✗ → 2 ✓ → 3 ✓ → 4 ✗   T4 made it red; the first 3 landed`.
fn render_batches(batches: &[BatchLine]) -> String {
    let members: Vec<String> = batches
        .iter()
        .map(|batch| batch.members.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        .collect();
    let wide = |texts: &mut dyn Iterator<Item = &str>| {
        texts.map(console::measure_text_width).max().unwrap_or(0).min(60) // a batch of dozens is rare
    };
    let names = wide(&mut batches.iter().map(|batch| batch.batch.as_str()));
    let who = wide(&mut members.iter().map(String::as_str));
    let looks = wide(&mut batches.iter().map(|batch| batch.drawing.as_str()));
    let mut text = String::new();
    for (batch, members) in batches.iter().zip(&members) {
        let mut end = Vec::new();
        end.extend(batch.on.as_ref().map(|on| format!("on top of {on}")));
        end.extend(batch.culprit.map(|task| format!("{task} made it red")));
        if batch.culprit.is_none_or(|task| batch.doing != format!("{task} made it red")) {
            end.push(batch.doing.clone());
        }
        let commit =
            batch.commit.as_deref().map(|commit| format!(" as {}", landfall_text::short_commit(commit)));
        let when = batch.ended_ms.map(|at| format!(", {}", landfall_text::format_local(at)));
        text += &format!(
            "  {}  {}   {}   {}{}{}\n",
            console::pad_str(&batch.batch, names, console::Alignment::Left, None),
            console::pad_str(members, who, console::Alignment::Left, None),
            console::pad_str(&batch.drawing, looks, console::Alignment::Left, None),
            escape_line(&end.join("; ")),
            commit.unwrap_or_default(),
            when.unwrap_or_default(),
        );
    }
    text
}

//! The report of a run for the terminal.

use landfall_api::{RunReport, RunResult};
use landfall_app::run_text::{group_by_result, run_figures, run_headline, run_name};
use landfall_text::control_chars::escape_line;
use landfall_text::{capitalize, format_duration, format_local, format_usd, short_commit};

use crate::table::Table;
use crate::tone::{TextTone, paint_text};

/// The report of a run for the terminal.
pub fn render_run_report(report: &RunReport, now_ms: i64) -> String {
    let RunReport { run, tasks, notes } = report;
    let mut text = format!("{} of {}\n", run_name(run), format_local(run.began_ms));
    let good = run.counts.failed == 0 && run.counts.behind == 0;
    text +=
        &format!("{}\n\n", paint_text(if good { TextTone::Good } else { TextTone::Bad }, &run_headline(run)));
    for (name, value) in run_figures(run, now_ms) {
        text += &format!("  {name:<7} {}\n", escape_line(&value));
    }
    for note in notes {
        text += &format!("\n{}\n", paint_text(TextTone::Warn, &escape_line(note)));
    }
    for (result, tasks) in group_by_result(tasks) {
        text += &format!(
            "\n{} ({})\n",
            paint_text(TextTone::for_result(result), &capitalize(result.label())),
            tasks.len()
        );
        let mut table = Table::new(&["TASK", "ITERATIONS", "AGENTS", "COST", "COMMIT", "TITLE"]);
        for task in &tasks {
            table.add_row([
                &task.task.to_string(),
                &task.iterations.to_string(),
                &format_duration(task.agent_ms),
                &task.usage.cost_usd.map(format_usd).unwrap_or_default(),
                task.commit.as_deref().map_or("", short_commit),
                &task.title,
            ]);
        }
        text += &table.to_text();
        if result != RunResult::Landed {
            for task in tasks {
                text += &format!("- {}\n", escape_line(&task.why));
            }
        }
    }
    text
}

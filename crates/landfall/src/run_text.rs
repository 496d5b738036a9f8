//! A run in words, for the terminal and for its report: both are written from the same figures.

use landfall_api::{RunLine, RunReport, RunResult, RunTaskLine};

use crate::table::Table;
use crate::tone::{TextTone, paint};
use landfall_text::control_chars::escape_line;
use landfall_text::{
    capitalize as capital, format_count as count, format_duration as duration, format_local as moment,
    format_times as times, format_usd as usd, pluralize as plural, short_commit as commit,
};

/// `14 of 20 tasks landed; 2 failed or blocked, 4 stuck behind others`. The numbers add up.
pub fn headline(run: &RunLine) -> String {
    let mut text = format!("{} of {} landed", run.counts.landed, plural(run.counts.total(), "task"));
    for (place, (result, count)) in run.others().into_iter().enumerate() {
        text += &format!("{} {count} {}", if place == 0 { ";" } else { "," }, result.words());
    }
    text
}

/// The figures of a run with their names, in the order to read them.
pub fn figures(run: &RunLine, now_ms: i64) -> Vec<(&'static str, String)> {
    let mut all = vec![("ended", run.end.clone())];
    let paused = match run.paused_ms {
        0 => String::new(),
        ms => format!(", {} of it paused", duration(ms)),
    };
    all.push(("time", duration(run.took_ms(now_ms)) + &paused));
    if run.engines_lost > 0 {
        let down = match run.down_ms {
            0 => String::new(),
            ms => format!(", {} without an engine (not in the time above)", duration(ms)),
        };
        all.push(("killed", times(run.engines_lost) + &down));
    }
    let prefix = run.usage.prefix();
    if let Some(cost) = run.usage.cost_usd {
        let each = run.cost_per_landed().map(|each| format!(", {} for each landed task", usd(each)));
        all.push(("cost", format!("{prefix}{}{}", usd(cost), each.unwrap_or_default())));
    }
    let tokens = count(run.usage.tokens_in.saturating_add(run.usage.tokens_out));
    all.push(("tokens", format!("{prefix}{tokens}")));
    all.push(("agents", format!("{} of working time", duration(run.agent_ms))));
    all
}

/// `R1`, or `R1 (R2, R3)` if further engines took it over.
fn name(run: &RunLine) -> String {
    match run.taken_over_by.as_slice() {
        [] => run.run.to_string(),
        more => {
            let more: Vec<String> = more.iter().map(ToString::to_string).collect();
            format!("{} ({})", run.run, more.join(", "))
        }
    }
}

/// The tasks of a run by what has become of them; those that landed come last.
fn groups(tasks: &[RunTaskLine]) -> impl Iterator<Item = (RunResult, Vec<&RunTaskLine>)> {
    let order = RunResult::ALL.into_iter().skip(1).chain([RunResult::Landed]);
    order
        .map(move |result| (result, tasks.iter().filter(|task| task.result == result).collect::<Vec<_>>()))
        .filter(|(_, tasks)| !tasks.is_empty())
}

/// The report of a run for the terminal.
pub fn text(report: &RunReport, now_ms: i64) -> String {
    let RunReport { run, tasks, notes } = report;
    let mut text = format!("{} of {}\n", name(run), moment(run.began_ms));
    let good = run.counts.failed == 0 && run.counts.behind == 0;
    text += &format!("{}\n\n", paint(if good { TextTone::Good } else { TextTone::Bad }, &headline(run)));
    for (name, value) in figures(run, now_ms) {
        text += &format!("  {name:<7} {}\n", escape_line(&value));
    }
    for note in notes {
        text += &format!("\n{}\n", paint(TextTone::Warn, &escape_line(note)));
    }
    for (result, tasks) in groups(tasks) {
        text += &format!(
            "\n{} ({})\n",
            paint(TextTone::of_result(result), &capital(result.words())),
            tasks.len()
        );
        let mut table = Table::new(&["TASK", "ITERATIONS", "AGENTS", "COST", "COMMIT", "TITLE"]);
        for task in &tasks {
            table.row([
                &task.task.to_string(),
                &task.iterations.to_string(),
                &duration(task.agent_ms),
                &task.usage.cost_usd.map(usd).unwrap_or_default(),
                task.commit.as_deref().map_or("", commit),
                &task.title,
            ]);
        }
        text += &table.text();
        if result != RunResult::Landed {
            for task in tasks {
                text += &format!("- {}\n", escape_line(&task.why));
            }
        }
    }
    text
}

/// The report of a run in Markdown.
pub fn markdown(report: &RunReport, now_ms: i64) -> String {
    let RunReport { run, tasks, notes } = report;
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let mut out = format!("# Run {} of {}\n\n{}.\n\n", name(run), moment(run.began_ms), headline(run));
    for (name, value) in figures(run, now_ms) {
        out += &format!("- {name}: {value}\n");
    }
    for note in notes {
        out += &format!("\n**{note}**\n");
    }
    for (result, tasks) in groups(tasks) {
        out += &format!("\n## {}: {}\n\n", capital(result.words()), tasks.len());
        out += "| task | iterations | agents | cost | commit | why |\n|---|--:|--:|--:|---|---|\n";
        for task in tasks {
            out += &format!(
                "| {} {} | {} | {} | {} | {} | {} |\n",
                task.task,
                cell(&task.title),
                task.iterations,
                duration(task.agent_ms),
                task.usage.cost_usd.map(usd).unwrap_or_default(),
                task.commit.as_deref().map_or("", commit),
                cell(&task.why),
            );
        }
    }
    out
}

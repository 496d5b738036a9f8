//! A run in words: its headline, its figures and its report in Markdown. The terminal shows the same figures.

use landfall_api::{RunLine, RunReport, RunResult, RunTaskLine};
use landfall_text::{
    capitalize, format_count, format_duration, format_local, format_times, format_usd, pluralize,
    short_commit,
};

/// `14 of 20 tasks landed; 2 failed or blocked, 4 stuck behind others`. The numbers add up.
pub fn run_headline(run: &RunLine) -> String {
    let mut text = format!("{} of {} landed", run.counts.landed, pluralize(run.counts.total(), "task"));
    for (place, (result, count)) in run.other_counts().into_iter().enumerate() {
        text += &format!("{} {count} {}", if place == 0 { ";" } else { "," }, result.label());
    }
    text
}

/// The figures of a run with their names, in the order to read them.
pub fn run_figures(run: &RunLine, now_ms: i64) -> Vec<(&'static str, String)> {
    let mut all = vec![("ended", run.end.clone())];
    let paused = match run.paused_ms {
        0 => String::new(),
        ms => format!(", {} of it paused", format_duration(ms)),
    };
    all.push(("time", format_duration(run.took_ms(now_ms)) + &paused));
    if run.engines_lost > 0 {
        let down = match run.down_ms {
            0 => String::new(),
            ms => format!(", {} without an engine (not in the time above)", format_duration(ms)),
        };
        all.push(("killed", format_times(run.engines_lost) + &down));
    }
    let prefix = run.usage.prefix();
    if let Some(cost) = run.usage.cost_usd {
        let each = run.cost_per_landed().map(|each| format!(", {} for each landed task", format_usd(each)));
        all.push(("cost", format!("{prefix}{}{}", format_usd(cost), each.unwrap_or_default())));
    }
    let tokens = format_count(run.usage.tokens_in.saturating_add(run.usage.tokens_out));
    all.push(("tokens", format!("{prefix}{tokens}")));
    all.push(("agents", format!("{} of working time", format_duration(run.agent_ms))));
    all
}

/// `R1`, or `R1 (R2, R3)` if further engines took it over.
pub fn run_name(run: &RunLine) -> String {
    match run.taken_over_by.as_slice() {
        [] => run.run.to_string(),
        more => {
            let more: Vec<String> = more.iter().map(ToString::to_string).collect();
            format!("{} ({})", run.run, more.join(", "))
        }
    }
}

/// The tasks of a run by what has become of them; those that landed come last.
pub fn group_by_result(tasks: &[RunTaskLine]) -> impl Iterator<Item = (RunResult, Vec<&RunTaskLine>)> {
    let order = RunResult::ALL.into_iter().skip(1).chain([RunResult::Landed]);
    order
        .map(move |result| (result, tasks.iter().filter(|task| task.result == result).collect::<Vec<_>>()))
        .filter(|(_, tasks)| !tasks.is_empty())
}

/// The report of a run in Markdown.
pub fn render_run_markdown(report: &RunReport, now_ms: i64) -> String {
    let RunReport { run, tasks, notes } = report;
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let mut out =
        format!("# Run {} of {}\n\n{}.\n\n", run_name(run), format_local(run.began_ms), run_headline(run));
    for (name, value) in run_figures(run, now_ms) {
        out += &format!("- {name}: {value}\n");
    }
    for note in notes {
        out += &format!("\n**{note}**\n");
    }
    for (result, tasks) in group_by_result(tasks) {
        out += &format!("\n## {}: {}\n\n", capitalize(result.label()), tasks.len());
        out += "| task | iterations | agents | cost | commit | why |\n|---|--:|--:|--:|---|---|\n";
        for task in tasks {
            out += &format!(
                "| {} {} | {} | {} | {} | {} | {} |\n",
                task.task,
                cell(&task.title),
                task.iterations,
                format_duration(task.agent_ms),
                task.usage.cost_usd.map(format_usd).unwrap_or_default(),
                task.commit.as_deref().map_or("", short_commit),
                cell(&task.why),
            );
        }
    }
    out
}

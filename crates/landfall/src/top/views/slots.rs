//! Who is at work.

use landfall_api::{ActiveLine, TaskActivity};
use landfall_text::control_chars::escape_line;
use ratatui::text::{Line, Span};

use super::{fit_columns, window_start};
use crate::top::state::TuiState;
use crate::top::theme::Theme;

/// The agents at work, two rows each: the figures, and the last words.
pub fn slot_lines(
    state: &TuiState,
    width: usize,
    rows: usize,
    focused: bool,
    theme: Theme,
) -> Vec<Line<'static>> {
    let Some(status) = state.status_report() else { return super::loading_lines(width) };
    if status.active.is_empty() {
        let hint = match &status.run {
            Some(_) => "nobody is at work just now",
            None => "no run is under way; s starts one",
        };
        return vec![Line::styled(hint, Theme::dim())];
    }
    let chosen = state.slot.current_index(&state.active_tasks());
    let each = 2;
    let from = window_start(chosen, status.active.len(), rows / each);
    let age = if status.run.is_some() { state.status_age_ms() } else { 0 };
    let mut lines = Vec::new();
    for (place, line) in status.active.iter().enumerate().skip(from).take(rows.div_ceil(each)) {
        let is_chosen = focused && place == chosen;
        lines.extend(slot_rows(place + 1, line, age, width, is_chosen, theme));
    }
    lines.truncate(rows);
    lines
}

fn slot_rows(
    number: usize,
    line: &ActiveLine,
    age: u64,
    width: usize,
    chosen: bool,
    theme: Theme,
) -> [Line<'static>; 2] {
    let agent = line.agent.as_ref();
    let class = agent.and_then(|agent| agent.class.as_deref());
    let doing = class.filter(|_| line.doing == TaskActivity::Working).unwrap_or(line.doing.word());
    let figures = format!(
        "{:>7} {:>7} {:>6}{}",
        format!("{}/{}", line.iteration, line.iterations_max),
        landfall_text::format_duration(line.elapsed_ms.saturating_add(age)),
        landfall_text::format_count(line.tokens),
        line.cost_usd.map(|usd| format!(" {:>6}", landfall_text::format_usd(usd))).unwrap_or_default(),
    );
    let mark = if chosen { "▶" } else { " " };
    let start = format!("{mark}{number} {:<5} ", line.task.to_string());
    let state_of =
        fit_columns(&escape_line(&format!("{} · {}", line.step, doing)), if width > 100 { 30 } else { 18 });
    let used =
        console::measure_text_width(&start) + console::measure_text_width(&state_of) + figures.len() + 2;
    let title = fit_columns(&escape_line(&line.title), width.saturating_sub(used));
    let style = if chosen { Theme::chosen() } else { Theme::strong() };
    let alarm = matches!(class, Some("looping" | "dead" | "waiting for a person"));
    let doing_style = if alarm { theme.warn() } else { theme.lively() };
    let first = Line::from(vec![
        Span::styled(format!("{start}{title} "), style),
        Span::styled(state_of, doing_style),
        Span::raw(format!(" {figures}")),
    ]);
    let mut more: Vec<String> = Vec::new();
    if let Some(agent) = agent {
        more.push(agent.profile.clone());
        more.extend(agent.model.clone());
        more.extend(agent.progress.map(|percent| format!("{percent} %")));
        more.extend(agent.context_percent.map(|percent| format!("context {percent} %")));
        let said = if agent.words.is_empty() { &agent.evidence } else { &agent.words };
        more.push(said.clone());
    }
    if let Some(check) = &line.check {
        let (elapsed, limit) = (
            landfall_text::format_duration(check.elapsed_ms),
            landfall_text::format_duration(check.limit_ms),
        );
        more.push(format!("check {}, {elapsed} of {limit}", check.check));
        more.push(check.last_line.clone());
    }
    more.retain(|part| !part.is_empty());
    let more = escape_line(&more.join(" · ")).into_owned();
    [
        first,
        Line::styled(
            format!("         {}", crate::say::shorten_to_columns(&more, width.saturating_sub(9))),
            Theme::dim(),
        ),
    ]
}

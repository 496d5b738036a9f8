//! Every task, one row each.

use landfall_api::TaskLine;
use landfall_text::control_chars::escape_line;
use ratatui::text::{Line, Span};

use super::{fit_columns, status_sign, window_start};
use crate::say::shorten_to_columns;
use crate::top::state::TuiState;
use crate::top::theme::Theme;

/// Whether every word stands in its id, title, status or tags.
pub fn matches_words(line: &TaskLine, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let wait = line.wait.as_ref().map(|wait| wait.wait.word()).unwrap_or_default();
    let text =
        format!("{} {} {} {wait} {}", line.id, line.title, line.status, line.tags.join(" ")).to_lowercase();
    words.iter().all(|word| text.contains(word))
}

/// Those around the one that is chosen.
pub fn backlog_lines(
    state: &TuiState,
    width: usize,
    rows: usize,
    focused: bool,
    theme: Theme,
) -> Vec<Line<'static>> {
    if state.backlog_shown.is_empty() {
        let text = match (state.filter.is_empty(), &state.status) {
            (false, _) => "no task has these words; Esc takes the filter away",
            (true, None) => "one moment …",
            (true, Some(_)) if state.status_report().is_some_and(|status| !status.counts.is_empty()) => {
                "one moment …"
            }
            (true, Some(_)) => "no tasks yet; `landfall add \"…\"` adds one",
        };
        return vec![Line::styled(text, Theme::dim())];
    }
    let chosen = state.task.current_index(&state.backlog_tasks());
    let from = window_start(chosen, state.backlog_shown.len(), rows);
    let shown = state.backlog_shown.iter().enumerate().skip(from).take(rows);
    shown.map(|(at, place)| task_row(&state.backlog[*place], width, focused && at == chosen, theme)).collect()
}

fn task_row(line: &TaskLine, width: usize, chosen: bool, theme: Theme) -> Line<'static> {
    let mark = if chosen { "▶" } else { " " };
    let (sign, style) = status_sign(line.status, theme);
    let start = format!("{mark}{:<6} ", line.id.to_string());
    let status = format!("{sign} {:<9} ", line.status);
    let mut more: Vec<String> = line.wait.iter().map(|wait| format!("for {}", wait.wait.word())).collect();
    more.extend(line.size.map(|size| size.word().to_owned()));
    if line.priority != 5 {
        more.push(format!("priority {}", line.priority));
    }
    more.extend(line.tags.iter().map(|tag| format!("#{tag}")));
    if !line.needs.is_empty() {
        let needs: Vec<String> = line.needs.iter().map(ToString::to_string).collect();
        more.push(format!("needs {}", needs.join(" ")));
    }
    let more = escape_line(&more.join(" · ")).into_owned();
    let more = shorten_to_columns(&more, width / 3).into_owned();
    let used = start.chars().count() + status.chars().count() + console::measure_text_width(&more) + 1;
    let title = fit_columns(&escape_line(&line.title), width.saturating_sub(used));
    let row = if chosen { Theme::chosen() } else { ratatui::style::Style::new() };
    Line::from(vec![
        Span::styled(start, row),
        Span::styled(status, style),
        Span::styled(title, row),
        Span::styled(format!(" {more}"), Theme::dim()),
    ])
}

//! The journal.

use landfall_api::LogEntry;
use landfall_text::control_chars::escape_line;
use ratatui::text::{Line, Span};

use super::window_start;
use crate::top::state::TuiState;
use crate::top::theme::Theme;

/// Whether every word stands in it.
pub fn matches_words(entry: &LogEntry, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let task = entry.task.map(|task| task.to_string()).unwrap_or_default();
    let text = format!("{task} {} {}", entry.kind, entry.text).to_lowercase();
    words.iter().all(|word| text.contains(word))
}

/// The newest entries, or those around the one that is looked at.
pub fn log_lines(state: &TuiState, rows: usize, focused: bool, theme: Theme) -> Vec<Line<'static>> {
    let entries = state.shown_entries();
    if entries.is_empty() {
        let text =
            if state.log_filter.is_empty() { "nothing has happened yet" } else { "nothing has these words" };
        return vec![Line::styled(text, Theme::dim())];
    }
    let last = entries.len() - 1;
    let place = state.entry.and_then(|seq| entries.iter().position(|entry| entry.seq == seq));
    let from = match place {
        Some(place) => window_start(place, entries.len(), rows),
        None => entries.len().saturating_sub(rows),
    };
    let chosen = place.unwrap_or(last);
    let mut lines = Vec::new();
    for (at, entry) in entries.iter().enumerate().skip(from).take(rows) {
        let line = entry_line(entry, theme);
        let is_chosen = focused && at == chosen && state.entry.is_some();
        lines.push(if is_chosen { line.style(Theme::chosen()) } else { line });
    }
    lines
}

/// One entry.
pub fn entry_line(entry: &LogEntry, theme: Theme) -> Line<'static> {
    let task = entry.task.map(|task| task.to_string()).unwrap_or_default();
    let style = match entry.kind.as_str() {
        "landed" => theme.good(),
        kind if kind.contains("failed") || kind.contains("ejected") => theme.bad(),
        _ => ratatui::style::Style::new(),
    };
    Line::from(vec![
        Span::styled(format!("{} ", landfall_text::format_clock(entry.at_ms)), Theme::dim()),
        Span::styled(format!("{task:<5} "), Theme::strong()),
        Span::styled(escape_line(&entry.text).into_owned(), style),
    ])
}

//! What waits for a person.

use landfall_api::InboxKind;
use landfall_text::control_chars::escape_line;
use ratatui::text::{Line, Span};

use super::{fit_columns, window_start};
use crate::say::shorten_to_columns;
use crate::top::inbox::{describe_item, first_line, kind_sign};
use crate::top::state::TuiState;
use crate::top::theme::Theme;

/// The items, two rows each: what is wanted, and the words of it.
pub fn inbox_lines(
    state: &TuiState,
    width: usize,
    rows: usize,
    focused: bool,
    theme: Theme,
) -> Vec<Line<'static>> {
    let Some(items) = &state.inbox else { return super::loading_lines(width) };
    if items.is_empty() {
        return vec![Line::styled("nothing waits for you", Theme::dim())];
    }
    let chosen = state.item.current_index(&state.inbox_keys());
    let from = window_start(chosen, items.len(), rows / 2);
    let mut lines = Vec::new();
    for (place, item) in items.iter().enumerate().skip(from).take(rows.div_ceil(2)) {
        let is_chosen = focused && place == chosen;
        let mark = if is_chosen { "▶" } else { " " };
        let word = format!("{} {:<10}", kind_sign(item.kind), item.kind.word());
        let style = match item.kind {
            InboxKind::Question
            | InboxKind::Review
            | InboxKind::Login
            | InboxKind::Conflict
            | InboxKind::Escalation => theme.warn(),
            InboxKind::Blocked | InboxKind::Failed => theme.bad(),
            InboxKind::Owed | InboxKind::Acceptance => theme.good(),
            InboxKind::Paused => ratatui::style::Style::new(),
        };
        let start = format!("{mark}{:<5} ", item.task.map(|task| task.to_string()).unwrap_or_default());
        let room = width.saturating_sub(start.chars().count() + word.chars().count() + 2);
        let row = if is_chosen { Theme::chosen() } else { Theme::strong() };
        lines.push(Line::from(vec![
            Span::styled(start, row),
            Span::styled(format!("{word} "), style),
            Span::styled(fit_columns(&escape_line(&item.title), room), row),
        ]));
        let more = match describe_item(item).len().saturating_sub(2) {
            0 => String::new(),
            more => format!(" (+{more})"),
        };
        let text = escape_line(first_line(item));
        let text = shorten_to_columns(&text, width.saturating_sub(8 + more.len()));
        lines.push(Line::raw(format!("       {text}{more}")));
    }
    lines.truncate(rows);
    lines
}

//! What waits for a person.

use ratatui::text::{Line, Span};

use super::{fit, window};
use crate::say::{clean, shorten};
use crate::top::inbox::InboxKind;
use crate::top::state::State;
use crate::top::theme::Theme;

/// The items, two rows each: what is wanted, and the words of it.
pub fn lines(state: &State, width: usize, rows: usize, focused: bool, theme: Theme) -> Vec<Line<'static>> {
    if state.reviews.is_none() {
        return super::not_yet(width);
    }
    if state.inbox.is_empty() {
        return vec![Line::styled("nothing waits for you", Theme::dim())];
    }
    let chosen = state.item.at(&state.items());
    let from = window(chosen, state.inbox.len(), rows / 2);
    let mut lines = Vec::new();
    for (place, item) in state.inbox.iter().enumerate().skip(from).take(rows.div_ceil(2)) {
        let is_chosen = focused && place == chosen;
        let mark = if is_chosen { "▶" } else { " " };
        let word = format!("{} {:<9}", item.kind.sign(), item.kind.word());
        let style = match item.kind {
            InboxKind::Question | InboxKind::Review | InboxKind::Wait(_) => theme.warn(),
            InboxKind::Blocked => theme.bad(),
            InboxKind::Owed => theme.good(),
        };
        let start = format!("{mark}{:<5} ", item.task.to_string());
        let room = width.saturating_sub(start.chars().count() + word.chars().count() + 2);
        let row = if is_chosen { Theme::chosen() } else { Theme::strong() };
        lines.push(Line::from(vec![
            Span::styled(start, row),
            Span::styled(format!("{word} "), style),
            Span::styled(fit(&clean(&item.title), room), row),
        ]));
        let more = if item.more.is_empty() { String::new() } else { format!(" (+{})", item.more.len()) };
        let words = clean(&item.words);
        lines.push(Line::raw(format!(
            "       {}{more}",
            shorten(&words, width.saturating_sub(8 + more.len()))
        )));
    }
    lines.truncate(rows);
    lines
}

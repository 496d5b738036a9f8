//! The landing queue: who stands in line, what is verified together, and the search for whoever made a batch red.

use landfall_api::{BatchLine, QueueReport};
use landfall_text::control_chars::escape_line;
use ratatui::text::{Line, Span};

use super::text::WrappedText;
use super::{fit_columns, window_start};
use crate::say::shorten_to_columns;
use crate::top::state::TuiState;
use crate::top::theme::Theme;

/// The line and the batches, a row each.
pub fn queue_lines(
    state: &TuiState,
    width: usize,
    rows: usize,
    focused: bool,
    theme: Theme,
) -> Vec<Line<'static>> {
    let Some(queue) = &state.queue else { return super::loading_lines(width) };
    let mut lines = Vec::new();
    if let Some(hold) = &queue.hold {
        let text = format!("HELD: {}; {}", hold.reason, hold.hint);
        lines.push(Line::styled(shorten_to_columns(&escape_line(&text), width).into_owned(), theme.warn()));
    }
    for batch in &queue.batches {
        lines.push(Line::raw(shorten_to_columns(&batch_line(batch), width).into_owned()));
    }
    if queue.line.is_empty() && lines.is_empty() {
        let latest = queue.past.first().map(|batch| format!("; latest: {}", batch_line(batch)));
        let text = format!("the landing queue is empty{}", latest.unwrap_or_default());
        return vec![Line::styled(shorten_to_columns(&text, width).into_owned(), Theme::dim())];
    }
    let room = rows.saturating_sub(lines.len()).max(1);
    let chosen = state.place.current_index(&state.queued_tasks());
    let from = window_start(chosen, queue.line.len(), room);
    for (place, line) in queue.line.iter().enumerate().skip(from).take(room) {
        let is_chosen = focused && place == chosen;
        let mark = if is_chosen { "▶" } else { " " };
        let start = format!("{mark}{:>2} {:<5} ", line.place, line.task.to_string());
        let half = width.saturating_sub(start.len()) / 2;
        let row = if is_chosen { Theme::chosen() } else { Theme::strong() };
        lines.push(Line::from(vec![
            Span::styled(
                format!("{start}{}", fit_columns(&escape_line(&line.title), half.saturating_sub(1))),
                row,
            ),
            Span::raw(format!(" {}", shorten_to_columns(&escape_line(&line.text), half))),
        ]));
    }
    lines.truncate(rows);
    lines
}

/// `B7 T1 T2 T3  3 ✗ → 1 ✓  verifying`.
fn batch_line(batch: &BatchLine) -> String {
    let members: Vec<String> = batch.members.iter().map(ToString::to_string).collect();
    let on = batch.on.as_ref().map(|on| format!("on {on}; ")).unwrap_or_default();
    let culprit = batch.culprit.map(|task| format!("; {task} made it red")).unwrap_or_default();
    let text =
        format!("{} {}  {}  {on}{}{culprit}", batch.batch, members.join(" "), batch.drawing, batch.doing);
    escape_line(&text).into_owned()
}

/// All of it.
pub fn queue_report_lines(state: &TuiState, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let Some(queue) = &state.queue else { return super::loading_lines(width) };
    let QueueReport { line, batches, hold, past, flakes } = &**queue;
    let mut text = WrappedText::new(width);
    if let Some(hold) = hold {
        let since = landfall_text::format_local(hold.since_ms);
        text.add_styled(&format!("HELD since {since}: {}", hold.reason), theme.warn());
        text.add_paragraph(&hold.hint);
    }
    text.add_heading("In line");
    if line.is_empty() {
        text.add_paragraph("nobody");
    }
    for place in line {
        let since = landfall_text::format_clock(place.since_ms);
        let sign = format!("{:>3} {:<5} {since}", place.place, place.task.to_string());
        text.add_item(&sign, Theme::strong(), &format!("{} · {}", place.title, place.text));
    }
    text.add_heading("On their way");
    if batches.is_empty() {
        text.add_paragraph("no batch");
    }
    for batch in batches {
        text.add_paragraph(&batch_line(batch));
    }
    if !past.is_empty() {
        text.add_heading("Latest");
    }
    for batch in past {
        let ended =
            batch.ended_ms.map(|at| format!(", {}", landfall_text::format_local(at))).unwrap_or_default();
        text.add_paragraph(&format!("{}{ended}", batch_line(batch)));
    }
    if !flakes.is_empty() {
        text.add_heading("Checks that failed and then passed on the same tree");
    }
    for flake in flakes {
        text.add_paragraph(&format!("{}: {} of {} runs", flake.check, flake.flakes, flake.runs));
    }
    text.lines
}

//! What stands in each panel and on each screen, as lines. Whatever came from outside is cleaned here.

pub mod backlog;
pub mod doctor;
pub mod help;
pub mod inbox;
pub mod log;
pub mod queue;
pub mod slots;
pub mod sprint;
pub mod task;
pub mod text;

use std::borrow::Cow;

use landfall_api::Status;
use landfall_text::control_chars::escape_line;
use ratatui::style::Style;
use ratatui::text::Line;

use super::state::{TuiOverlay, TuiState};
use super::theme::Theme;
use crate::say::shorten_to_columns;
use text::WrappedText;

/// What a screen shows: built at once where it is short, taken line by line where it is long.
pub enum ViewContent<'a> {
    /// Lines that are there.
    Built(Vec<Line<'static>>),
    /// Lines as they came, drawn when they are seen.
    Raw(&'a [String], fn(&str, Theme) -> Style),
    /// Entries of the journal.
    Log(&'a [landfall_api::LogEntry]),
    /// What an agent printed.
    Output(&'a [landfall_api::Said]),
}

impl ViewContent<'_> {
    /// How many lines there are.
    pub fn line_count(&self) -> usize {
        match self {
            Self::Built(lines) => lines.len(),
            Self::Raw(lines, _) => lines.len(),
            Self::Log(entries) => entries.len(),
            Self::Output(lines) => lines.len(),
        }
    }

    /// The words of a line, to look through.
    fn plain_line(&self, place: usize) -> Cow<'_, str> {
        match self {
            Self::Built(lines) => {
                lines[place].spans.iter().map(|span| span.content.as_ref()).collect::<String>().into()
            }
            Self::Raw(lines, _) => Cow::Borrowed(&lines[place]),
            Self::Log(entries) => Cow::Borrowed(&entries[place].text),
            Self::Output(lines) => Cow::Borrowed(&lines[place].text),
        }
    }

    /// These lines, drawn.
    pub fn draw_lines(&self, from: usize, rows: usize, theme: Theme) -> Vec<Line<'static>> {
        let to = self.line_count().min(from.saturating_add(rows));
        let from = from.min(to);
        match self {
            Self::Built(lines) => lines[from..to].to_vec(),
            Self::Raw(lines, style) => {
                let line = |line: &String| {
                    Line::styled(escape_line(&line.replace('\t', "    ")).into_owned(), style(line, theme))
                };
                lines[from..to].iter().map(line).collect()
            }
            Self::Output(lines) => {
                lines[from..to].iter().map(|line| task::output_line(line, theme)).collect()
            }
            Self::Log(entries) => {
                entries[from..to].iter().map(|entry| log::entry_line(entry, theme)).collect()
            }
        }
    }
}

/// What the screen on top shows.
pub fn current_content(state: &TuiState, theme: Theme) -> ViewContent<'_> {
    let width = usize::from(state.size.0).saturating_sub(2);
    match state.screens.last() {
        Some(TuiOverlay::Task) => task::task_content(state, width, theme),
        Some(TuiOverlay::Queue) => ViewContent::Built(queue::queue_report_lines(state, width, theme)),
        Some(TuiOverlay::Discoveries) => ViewContent::Built(doctor::discovery_lines(state, width, theme)),
        Some(TuiOverlay::Doctor) => ViewContent::Built(doctor::health_lines(state, width, theme)),
        Some(TuiOverlay::Sprint) => ViewContent::Built(sprint::sprint_report_lines(state, width, theme)),
        Some(TuiOverlay::Help) => ViewContent::Built(help::keys(width)),
        None => ViewContent::Built(Vec::new()),
    }
}

const PLAIN: Theme = Theme { colour: false };

/// How many lines the screen on top has.
pub fn lines_count(state: &TuiState) -> usize {
    current_content(state, PLAIN).line_count()
}

/// How many of them are seen at once: all rows but the header, the frame and the footer.
pub fn page_rows(state: &TuiState) -> usize {
    usize::from(state.size.1).saturating_sub(4).max(1)
}

/// The first line from there on with these words, whatever the case.
pub fn find_text(state: &TuiState, sought: &str, from: usize) -> Option<usize> {
    let content = current_content(state, PLAIN);
    let sought = sought.to_lowercase();
    (from..content.line_count()).find(|place| content.plain_line(*place).to_lowercase().contains(&sought))
}

/// The words of a filter.
pub fn filter_words(filter: &str) -> Vec<String> {
    filter.split_whitespace().map(str::to_lowercase).collect()
}

/// Whether nothing happens to such a task by itself any more.
pub fn is_over(status: Status) -> bool {
    match status {
        Status::Done | Status::Failed | Status::Timeout | Status::Cancelled => true,
        Status::Draft
        | Status::Ready
        | Status::Active
        | Status::Waiting
        | Status::Blocked
        | Status::Review
        | Status::Landing => false,
    }
}

/// A sign that differs in its shape, and a style.
pub fn status_sign(status: Status, theme: Theme) -> (&'static str, Style) {
    match status {
        Status::Draft => ("·", Theme::dim()),
        Status::Ready => ("→", Style::new()),
        Status::Active => ("●", theme.lively()),
        Status::Waiting => ("…", Style::new()),
        Status::Blocked => ("⊗", theme.bad()),
        Status::Review => ("◐", theme.warn()),
        Status::Landing => ("↑", theme.lively()),
        Status::Done => ("✓", theme.good()),
        Status::Failed => ("✗", theme.bad()),
        Status::Timeout => ("◷", theme.bad()),
        Status::Cancelled => ("–", Theme::dim()),
    }
}

/// Exactly so many columns: cut with `…`, or filled up. The text is already clean.
pub fn fit_columns(text: &str, columns: usize) -> String {
    let text = shorten_to_columns(text, columns);
    let wide = console::measure_text_width(&text);
    format!("{text}{}", " ".repeat(columns.saturating_sub(wide)))
}

/// A bar of so many columns.
pub fn draw_bar(part: f64, columns: usize) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "between nothing and the width of a screen"
    )]
    let full = (part.clamp(0.0, 1.0) * columns as f64).round() as usize;
    format!("{}{}", "█".repeat(full), "░".repeat(columns - full))
}

/// Where a list begins, so that what is chosen is in sight.
pub fn window_start(chosen: usize, count: usize, rows: usize) -> usize {
    chosen.saturating_sub(rows / 2).min(count.saturating_sub(rows))
}

/// Says that something did not come yet.
pub fn loading_lines(width: usize) -> Vec<Line<'static>> {
    let mut text = WrappedText::new(width);
    text.add_paragraph("one moment …");
    text.lines
}

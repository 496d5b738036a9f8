//! Puts panels, screens, popups and toasts on the screen: all of them where there is room, one at a time where there is not.

use landfall_text::control_chars::escape_line;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Paragraph};

use super::header;
use super::state::{
    DashboardPanel, MessageTone, Popup, PopupChoice, Scroll, TaskView, TextPopup, TuiOverlay, TuiState,
};
use super::theme::Theme;
use super::views::{self, text::WrappedText};
use crate::say::shorten_to_columns;

const ALL_COLUMNS_MIN: u16 = 30; // below that only a word of apology fits
const ALL_ROWS_MIN: u16 = 8;

/// Draws everything.
pub fn draw_screen(frame: &mut Frame<'_>, state: &TuiState, theme: Theme) {
    let area = frame.area();
    if area.width < ALL_COLUMNS_MIN || area.height < ALL_ROWS_MIN {
        let text = format!(
            "{}×{} is too small; {ALL_COLUMNS_MIN}×{ALL_ROWS_MIN} is the least",
            area.width, area.height
        );
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    match state.screens.last() {
        None if state.is_wide() => draw_wide_dashboard(frame, area, state, theme),
        None => draw_narrow_dashboard(frame, area, state, theme),
        Some(screen) => draw_overlay(frame, area, *screen, state, theme),
    }
    draw_toasts(frame, area, state, theme);
    match &state.popup {
        Some(Popup::Text(popup)) if popup.is_below() => draw_bottom_popup(frame, area, popup),
        Some(Popup::Text(popup)) => draw_text_popup(frame, area, popup, theme),
        Some(Popup::Choice { title, text, ways }) => draw_choice_popup(frame, area, title, text, ways, theme),
        None => {}
    }
}

fn draw_wide_dashboard(frame: &mut Frame<'_>, area: Rect, state: &TuiState, theme: Theme) {
    let head = header::header_lines(state, area.width.into(), 6, theme);
    let [top, body, counts, bottom] = Layout::vertical([
        Constraint::Length(row_count(&head)),
        Constraint::Fill(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(head), top);
    let [left, right] =
        Layout::horizontal([Constraint::Percentage(55), Constraint::Percentage(45)]).areas(body);
    let at_work = u16::try_from(state.active_tasks().len().max(1) * 2 + 2).unwrap_or(u16::MAX);
    let [slots, backlog] =
        Layout::vertical([Constraint::Length(at_work.min(body.height / 2)), Constraint::Fill(1)]).areas(left);
    let wanted = u16::try_from(state.inbox_items().len().max(1) * 2 + 2).unwrap_or(u16::MAX);
    let [inbox, queue, log] = Layout::vertical([
        Constraint::Length(wanted.clamp(5, body.height / 3)),
        Constraint::Length(queue_rows(state).clamp(3, body.height / 4)),
        Constraint::Fill(1),
    ])
    .areas(right);
    for (panel, area) in DashboardPanel::ALL.into_iter().zip([slots, inbox, queue, log, backlog]) {
        draw_panel(frame, area, panel, state, theme);
    }
    frame.render_widget(Paragraph::new(counts_line(state, area.width.into())), counts);
    frame.render_widget(Paragraph::new(key_hints(state, area.width.into())), bottom);
}

fn queue_rows(state: &TuiState) -> u16 {
    let many = state
        .queue
        .as_ref()
        .map_or(1, |queue| queue.line.len() + queue.batches.len() + usize::from(queue.hold.is_some()));
    u16::try_from(many.max(1) + 2).unwrap_or(u16::MAX)
}

fn draw_narrow_dashboard(frame: &mut Frame<'_>, area: Rect, state: &TuiState, theme: Theme) {
    let head = header::header_lines(state, area.width.into(), 4, theme);
    let [top, tabs, body, bottom] = Layout::vertical([
        Constraint::Length(row_count(&head)),
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(head), top);
    let mut spans = Vec::new();
    for panel in DashboardPanel::ALL {
        let text = format!(" {} ", tab_name(panel, state));
        let style = if panel == state.focus { Theme::chosen() } else { Style::new() };
        spans.push(Span::styled(text, style));
    }
    frame.render_widget(Paragraph::new(Line::from(spans)), tabs);
    draw_panel(frame, body, state.focus, state, theme);
    frame.render_widget(Paragraph::new(key_hints(state, area.width.into())), bottom);
}

fn row_count(lines: &[Line<'_>]) -> u16 {
    u16::try_from(lines.len()).unwrap_or(u16::MAX)
}

/// The name of a panel and how much is in it.
fn tab_name(panel: DashboardPanel, state: &TuiState) -> String {
    match panel {
        DashboardPanel::Slots => format!("Slots {}", state.active_tasks().len()),
        DashboardPanel::Inbox => format!("Inbox {}", state.inbox_items().len() as u64 + state.inbox_more),
        DashboardPanel::Queue => format!("Queue {}", state.queued_tasks().len()),
        DashboardPanel::Log => "Log".to_owned(),
        DashboardPanel::Backlog => format!("Backlog {}", state.backlog.len()),
    }
}

fn panel_title(panel: DashboardPanel, state: &TuiState) -> String {
    let filter =
        |text: &str| if text.is_empty() { String::new() } else { format!(" /{}", escape_line(text)) };
    match panel {
        DashboardPanel::Log if state.entry.is_some() => {
            format!("Log{} · stands still, G follows", filter(&state.log_filter))
        }
        DashboardPanel::Log => format!("Log{}", filter(&state.log_filter)),
        DashboardPanel::Backlog if state.backlog_shown.len() != state.backlog.len() => {
            format!(
                "Backlog {} of {}{}",
                state.backlog_shown.len(),
                state.backlog.len(),
                filter(&state.filter)
            )
        }
        DashboardPanel::Slots | DashboardPanel::Inbox | DashboardPanel::Queue | DashboardPanel::Backlog => {
            tab_name(panel, state)
        }
    }
}

fn draw_panel(frame: &mut Frame<'_>, area: Rect, panel: DashboardPanel, state: &TuiState, theme: Theme) {
    let focused = panel == state.focus;
    let block = panel_block(&panel_title(panel, state), focused);
    let inside = block.inner(area);
    let (width, rows) = (usize::from(inside.width), usize::from(inside.height));
    let lines = match panel {
        DashboardPanel::Slots => views::slots::slot_lines(state, width, rows, focused, theme),
        DashboardPanel::Inbox => views::inbox::inbox_lines(state, width, rows, focused, theme),
        DashboardPanel::Queue => views::queue::queue_lines(state, width, rows, focused, theme),
        DashboardPanel::Log => views::log::log_lines(state, rows, focused, theme),
        DashboardPanel::Backlog => views::backlog::backlog_lines(state, width, rows, focused, theme),
    };
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// A thick frame has the keys: seen without colour.
fn panel_block(title: &str, focused: bool) -> Block<'static> {
    let kind = if focused { BorderType::Thick } else { BorderType::Plain };
    let style = if focused { Style::new() } else { Theme::dim() };
    let title = Span::styled(format!(" {title} "), Theme::strong());
    Block::bordered().border_type(kind).border_style(style).title(title)
}

fn draw_overlay(frame: &mut Frame<'_>, area: Rect, screen: TuiOverlay, state: &TuiState, theme: Theme) {
    let head = header::header_lines(state, area.width.into(), 1, theme);
    let [top, body, bottom] =
        Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)]).areas(area);
    frame.render_widget(Paragraph::new(head), top);
    let block = match screen {
        TuiOverlay::Task => task_block(state, area.width.into()),
        TuiOverlay::Queue => panel_block("Landing queue", true),
        TuiOverlay::Discoveries => panel_block("What agents found out", true),
        TuiOverlay::Doctor => panel_block("Whether everything is well", true),
        TuiOverlay::Sprint => panel_block("Sprint", true),
        TuiOverlay::Help => panel_block("Keys", true),
    };
    let content = views::current_content(state, theme);
    let rows = usize::from(block.inner(body).height);
    let last = content.line_count().saturating_sub(rows);
    let from = match state.page_scroll() {
        Scroll::At(line) => line.min(last),
        Scroll::End => last,
    };
    let block = if content.line_count() > rows {
        let seen =
            format!(" {}–{} of {} ", from + 1, (from + rows).min(content.line_count()), content.line_count());
        block.title_bottom(Line::raw(seen).right_aligned())
    } else {
        block
    };
    frame.render_widget(Paragraph::new(content.draw_lines(from, rows, theme)).block(block), body);
    frame.render_widget(Paragraph::new(key_hints(state, area.width.into())), bottom);
}

/// The task and its pages, the open one marked.
fn task_block(state: &TuiState, width: usize) -> Block<'static> {
    let Some(open) = &state.open else { return panel_block("", true) };
    let title =
        open.detail.as_ref().map(|detail| escape_line(&detail.line.title).into_owned()).unwrap_or_default();
    let pages: Vec<String> = TaskView::ALL
        .iter()
        .map(
            |page| {
                if *page == open.page { format!("[{}]", page.name()) } else { format!(" {} ", page.name()) }
            },
        )
        .collect();
    let pages = pages.concat();
    let room = width.saturating_sub(pages.len() + 8);
    let title = shorten_to_columns(&format!("{} {title}", open.task), room).into_owned();
    panel_block(&title, true).title(Line::raw(format!(" {pages} ")).right_aligned())
}

fn counts_line(state: &TuiState, width: usize) -> Line<'static> {
    let Some(status) = state.status_report() else { return Line::default() };
    let counts: Vec<String> = status
        .counts
        .iter()
        .map(|(status, count)| {
            let (sign, _) = views::status_sign(*status, Theme { colour: false });
            format!("{sign} {count} {status}")
        })
        .collect();
    let mut text = if counts.is_empty() { "no tasks yet".to_owned() } else { counts.join("  ") };
    if let Some(disk) = &status.disk {
        text += &format!("  │ {} free", landfall_text::format_bytes(disk.free_bytes));
    }
    Line::styled(shorten_to_columns(&text, width).into_owned(), Theme::dim())
}

fn key_hints(state: &TuiState, width: usize) -> Line<'static> {
    let text = match (state.screens.last(), state.focus) {
        (Some(TuiOverlay::Task), _) => {
            "? keys · Esc back · Tab page · a answer, approve · c changes · x stop · r retry · / find"
        }
        (Some(_), _) => "? keys · Esc back · j k scroll · / find",
        (None, DashboardPanel::Slots) => {
            "? keys · Tab panel · Enter open · x stop · p pause · s run · Space autopilot · q quit"
        }
        (None, DashboardPanel::Inbox) => {
            "? keys · Tab panel · a answer, approve · c changes · d defer · r retry · D diff · q quit"
        }
        (None, DashboardPanel::Queue) => "? keys · Tab panel · Enter open · M all of it · q quit",
        (None, DashboardPanel::Log) => {
            "? keys · Tab panel · k back · G follow · / filter · Enter open · q quit"
        }
        (None, DashboardPanel::Backlog) => {
            "? keys · Tab panel · / filter · Enter open · l log · D diff · x stop · r retry · n pick · q quit"
        }
    };
    Line::styled(shorten_to_columns(text, width).into_owned(), Theme::dim())
}

/// Bottom right, above the last line.
fn draw_toasts(frame: &mut Frame<'_>, area: Rect, state: &TuiState, theme: Theme) {
    if state.toasts.is_empty() {
        return;
    }
    let width = area.width.saturating_sub(4).min(76);
    let mut text = WrappedText::new(usize::from(width.saturating_sub(2)));
    for toast in &state.toasts {
        let style = match toast.tone {
            MessageTone::Info => theme.lively(),
            MessageTone::Warn => theme.warn(),
            MessageTone::Bad => theme.bad(),
        };
        text.add_item(toast.tone.sign(), style, &toast.text);
    }
    let lines = text.lines;
    let height = row_count(&lines).saturating_add(2).min(area.height.saturating_sub(4));
    let place = Rect {
        x: area.right().saturating_sub(width + 1),
        y: area.bottom().saturating_sub(height + 1),
        width,
        height,
    };
    frame.render_widget(Clear, place);
    frame.render_widget(
        Paragraph::new(lines).block(Block::bordered().border_type(BorderType::Rounded)),
        place,
    );
}

/// A text in the last line.
fn draw_bottom_popup(frame: &mut Frame<'_>, area: Rect, popup: &TextPopup) {
    let place = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
    let label = format!("{}: ", popup.title);
    let room = usize::from(area.width).saturating_sub(label.len()).max(2);
    let (rows, (row, column)) = popup.line.wrap_rows(room);
    frame.render_widget(Clear, place);
    let line = Line::from(vec![Span::styled(label.clone(), Theme::strong()), Span::raw(rows[row].clone())]);
    frame.render_widget(Paragraph::new(line), place);
    frame.set_cursor_position((place.x + to_cell(label.len() + column), place.y));
}

fn to_cell(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

fn center_rect(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}

fn draw_text_popup(frame: &mut Frame<'_>, area: Rect, popup: &TextPopup, theme: Theme) {
    const TYPED_ROWS_MAX: usize = 8; // what is typed scrolls beyond that
    let width = area.width.saturating_sub(4).min(96);
    let room = usize::from(width.saturating_sub(4));
    let mut text = WrappedText::new(room);
    popup.text.iter().filter(|line| !line.is_empty()).for_each(|line| text.add_paragraph(line));
    let tail = 3 + popup.issues.len() + TYPED_ROWS_MAX;
    let about_max = usize::from(area.height).saturating_sub(tail + 4).max(2);
    text.lines.truncate(about_max);
    let (typed, (row, column)) = popup.line.wrap_rows(room);
    let from = row.saturating_sub(TYPED_ROWS_MAX - 1);
    let shown = typed.len().min(TYPED_ROWS_MAX);
    let mut lines = text.lines;
    lines.push(Line::default());
    let first = lines.len();
    for (place, row) in typed.iter().skip(from).take(shown).enumerate() {
        let mark = if place == 0 { "> " } else { "  " };
        lines.push(Line::raw(format!("{mark}{row}")));
    }
    for (place, (name, meaning, chosen)) in popup.issues.iter().enumerate() {
        let sign = if *chosen { "[x]" } else { "[ ]" };
        let style = if popup.field == place + 1 { Theme::chosen() } else { Style::new() };
        let text = format!("{sign} {name:<12} {meaning}");
        lines.push(Line::styled(shorten_to_columns(&escape_line(&text), room).into_owned(), style));
    }
    lines.push(Line::default());
    let (last, style) = match (&popup.problem, popup.sending) {
        (Some(problem), _) => (format!("✗ {}", escape_line(problem)), theme.bad()),
        (None, true) => ("sent; one moment …".to_owned(), Theme::strong()),
        (None, false) if popup.issues.is_empty() => {
            ("Enter sends · ^J new line · Esc leaves".to_owned(), Theme::dim())
        }
        (None, false) => {
            ("Enter sends · ↓ list, Space chooses · ^J new line · Esc leaves".to_owned(), Theme::dim())
        }
    };
    lines.extend(views::text::wrap_text(&last, room).into_iter().map(|row| Line::styled(row, style)));
    let place = center_rect(area, width, row_count(&lines).saturating_add(2));
    let title =
        Span::styled(format!(" {} ", shorten_to_columns(&escape_line(&popup.title), room)), Theme::strong());
    let block = Block::bordered().border_type(BorderType::Double).title(title);
    let inside = block.inner(place);
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(block), place);
    if popup.field == 0 {
        let (x, y) = (inside.x + to_cell(column + 2), inside.y + to_cell(first + row - from));
        frame.set_cursor_position((
            x.min(place.right().saturating_sub(1)),
            y.min(place.bottom().saturating_sub(1)),
        ));
    }
}

fn draw_choice_popup(
    frame: &mut Frame<'_>,
    area: Rect,
    title: &str,
    about: &[String],
    ways: &[PopupChoice],
    theme: Theme,
) {
    let width = area.width.saturating_sub(4).min(72);
    let mut text = WrappedText::new(usize::from(width.saturating_sub(2)));
    about.iter().for_each(|line| text.add_paragraph(line));
    text.lines.push(Line::default());
    for way in ways {
        text.add_item(&format!("[{}]", way.key), Theme::strong(), &way.label);
    }
    text.add_item("[Esc]", Theme::strong(), "leaves it as it is");
    let place = center_rect(area, width, row_count(&text.lines).saturating_add(2));
    let title = Span::styled(format!(" {} ", escape_line(title)), theme.warn());
    frame.render_widget(Clear, place);
    frame.render_widget(
        Paragraph::new(text.lines).block(Block::bordered().border_type(BorderType::Double).title(title)),
        place,
    );
}

#[cfg(test)]
mod tests;

//! Whether everything is well, and what agents found out.

use landfall_api::CheckState;
use ratatui::text::Line;

use super::text::WrappedText;
use crate::top::state::TuiState;
use crate::top::theme::Theme;

/// What `landfall doctor` says.
pub fn health_lines(state: &TuiState, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let Some(health) = &state.health else { return super::loading_lines(width) };
    let mut text = WrappedText::new(width);
    for check in &health.checks {
        let (sign, style) = match check.state {
            CheckState::Ok => ("✓", theme.good()),
            CheckState::Warn => ("!", theme.warn()),
            CheckState::Bad => ("✗", theme.bad()),
        };
        text.add_item(sign, style, &format!("{}: {}", check.name, check.detail));
        if let Some(hint) = &check.hint {
            text.add_item("   ", Theme::dim(), hint);
        }
    }
    text.lines
}

/// What agents found out, newest last.
pub fn discovery_lines(state: &TuiState, width: usize, _theme: Theme) -> Vec<Line<'static>> {
    let Some(list) = &state.discoveries else { return super::loading_lines(width) };
    let mut text = WrappedText::new(width);
    if list.discoveries.is_empty() {
        text.add_paragraph("no agent has found anything out yet");
    }
    for found in &list.discoveries {
        let whom = if found.global { "for all" } else { "for its kin" };
        let times = if found.times > 1 { format!(", {} times", found.times) } else { String::new() };
        let head = format!("{} {} {whom}, {}{times}", found.number, found.task, found.impact);
        text.add_item(
            "•",
            Theme::strong(),
            &format!("{} ({head}, {})", found.text, landfall_text::format_local(found.at_ms)),
        );
    }
    text.lines
}

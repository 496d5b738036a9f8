//! The sprint: how far it is, and what became of each of its tasks.

use landfall_api::{SprintFate, SprintGoal, SprintReport};
use ratatui::text::Line;

use super::text::WrappedText;
use super::{draw_bar, status_sign};
use crate::top::state::TuiState;
use crate::top::theme::Theme;

/// How far it is, between 0 and 1.
#[expect(clippy::cast_precision_loss, reason = "a bar is no finer than a screen")]
pub fn sprint_progress(sprint: &SprintReport, now_ms: i64) -> f64 {
    let landed = sprint.tasks.iter().filter(|task| task.fate == SprintFate::Landed).count() as f64;
    match sprint.plan.goal {
        SprintGoal::Count { count } => {
            let verified = sprint.tasks.iter().filter(|task| task.verified).count() as f64;
            verified / f64::from(count.max(1))
        }
        SprintGoal::Duration { duration_ms } => sprint.worked_ms as f64 / duration_ms.max(1) as f64,
        SprintGoal::UntilTime { until_ms } => {
            (now_ms - sprint.started_ms) as f64 / (until_ms - sprint.started_ms).max(1) as f64
        }
        SprintGoal::NoReady => landed / (sprint.tasks.len() as f64 + sprint.ready as f64).max(1.0),
    }
}

/// All of it.
pub fn sprint_report_lines(state: &TuiState, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut text = WrappedText::new(width);
    let Some(sprint) = &state.sprint else {
        text.add_paragraph("no sprint is open; `landfall sprint` starts one");
        return text.lines;
    };
    text.add_styled(&sprint.bar, Theme::strong());
    text.add_paragraph(&draw_bar(sprint_progress(sprint, state.now_ms), width.min(60)));
    text.add_paragraph(&sprint.verdict);
    text.add_field("phase", &format!("{} {}", sprint.phase, sprint.because));
    text.add_field("began", &landfall_text::format_local(sprint.started_ms));
    text.add_field("worked", &landfall_text::format_duration(sprint.worked_ms));
    let cost = sprint.cost_usd.map(|usd| format!(", {}", landfall_text::format_usd(usd))).unwrap_or_default();
    text.add_field("spent", &format!("{} tokens{cost}", landfall_text::format_count(sprint.tokens)));
    if let Some(at) = sprint.forecast_ms {
        let many = landfall_text::pluralize(sprint.forecast_of, "task");
        text.add_field(
            "forecast",
            &format!("{many} would have landed by {}", landfall_text::format_until(at, state.now_ms)),
        );
    }
    text.add_heading("Tasks");
    for task in &sprint.tasks {
        let (sign, style) = status_sign(task.status, theme);
        text.add_item(
            &format!("{sign} {:<5}", task.task.to_string()),
            style,
            &format!("{} · {} · {}", task.title, task.fate, task.why),
        );
    }
    text.lines
}

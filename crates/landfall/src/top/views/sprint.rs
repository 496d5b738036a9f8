//! The sprint: how far it is, and what became of each of its tasks.

use landfall_api::{SprintFate, SprintGoal, SprintReport};
use ratatui::text::Line;

use super::text::WrappedText;
use super::{bar, sign};
use crate::top::state::TuiState;
use crate::top::theme::Theme;

/// How far it is, between 0 and 1.
#[expect(clippy::cast_precision_loss, reason = "a bar is no finer than a screen")]
pub fn progress(sprint: &SprintReport, now_ms: i64) -> f64 {
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
pub fn report(state: &TuiState, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut text = WrappedText::new(width);
    let Some(sprint) = &state.sprint else {
        text.para("no sprint is open; `landfall sprint` starts one");
        return text.lines;
    };
    text.styled(&sprint.bar, Theme::strong());
    text.para(&bar(progress(sprint, state.now_ms), width.min(60)));
    text.para(&sprint.verdict);
    text.field("phase", &format!("{} {}", sprint.phase, sprint.because));
    text.field("began", &landfall_text::format_local(sprint.started_ms));
    text.field("worked", &landfall_text::format_duration(sprint.worked_ms));
    let cost = sprint.cost_usd.map(|usd| format!(", {}", landfall_text::format_usd(usd))).unwrap_or_default();
    text.field("spent", &format!("{} tokens{cost}", landfall_text::format_count(sprint.tokens)));
    if let Some(at) = sprint.forecast_ms {
        let many = landfall_text::pluralize(sprint.forecast_of, "task");
        text.field(
            "forecast",
            &format!("{many} would have landed by {}", landfall_text::format_until(at, state.now_ms)),
        );
    }
    text.head("Tasks");
    for task in &sprint.tasks {
        let (sign, style) = sign(task.status, theme);
        text.item(
            &format!("{sign} {:<5}", task.task.to_string()),
            style,
            &format!("{} · {} · {}", task.title, task.fate, task.why),
        );
    }
    text.lines
}

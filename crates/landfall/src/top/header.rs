//! The first lines: who picks, the run, slots, money, allowances, the sprint; and what must not be missed.

use landfall_api::{AccountLine, AccountStanding, BudgetScope, Mode, PilotPhase, StatusReport};
use landfall_text::control_chars::escape_line;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::inbox::is_urgent;
use super::state::{ConnectionState, TuiState};
use super::theme::Theme;
use super::views::{draw_bar, sprint};
use crate::say::shorten_to_columns;

type HeaderSpan = (String, Style);

/// At most so many lines.
pub fn header_lines(state: &TuiState, width: usize, rows: usize, theme: Theme) -> Vec<Line<'static>> {
    let alerts = alert_spans(state, theme);
    let mut lines =
        flow_spans(header_spans(state, theme), width, rows.saturating_sub(alerts.len().min(rows / 2)).max(1));
    if let Some(line) = sprint_line(state, width) {
        lines.push(line);
    }
    lines.extend(
        alerts
            .into_iter()
            .map(|(text, style)| Line::styled(shorten_to_columns(&text, width).into_owned(), style)),
    );
    lines.truncate(rows.max(1));
    lines
}

/// One after the other, as many as fit into a line.
fn flow_spans(parts: Vec<HeaderSpan>, width: usize, rows: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = vec![Line::default()];
    let mut used = 0;
    for (text, style) in parts {
        let wide = console::measure_text_width(&text);
        let gap = if used == 0 { 0 } else { 3 };
        if used > 0 && used + gap + wide > width {
            if lines.len() == rows {
                break;
            }
            lines.push(Line::default());
            used = 0;
        }
        let line = lines.last_mut().expect("never empty");
        if used > 0 {
            line.push_span(Span::styled(" │ ", Theme::dim()));
            used += 3;
        }
        line.push_span(Span::styled(text, style));
        used += wide;
    }
    lines
}

fn header_spans(state: &TuiState, theme: Theme) -> Vec<HeaderSpan> {
    let plain = Style::new();
    let Some(status) = state.status_report() else {
        return vec![("landfall".to_owned(), Theme::strong()), ("one moment …".to_owned(), plain)];
    };
    let mut parts = vec![mode_span(status, theme)];
    match &status.run {
        Some(run) => {
            let took =
                landfall_text::format_duration(u64::try_from(state.now_ms - run.since_ms).unwrap_or(0));
            parts.push((escape_line(&format!("{} {} {took}", run.run, run.mode)).into_owned(), plain));
            parts.push((format!("slots {}/{}", run.agents, run.slots), plain));
        }
        None if status.engine.is_some() => parts.push(("no run".to_owned(), plain)),
        None => parts.push(("no engine runs".to_owned(), plain)),
    }
    let urgent = state.inbox_items().iter().filter(|item| is_urgent(item.kind)).count();
    if urgent > 0 {
        parts.push((format!("{urgent} for you"), theme.warn()));
    }
    let today = status.spending.iter().find(|line| line.scope == BudgetScope::Day);
    if let Some(spent) = today.or(status.spending.first()) {
        let tokens =
            landfall_text::format_count(spent.usage.tokens_in.saturating_add(spent.usage.tokens_out));
        let cost = crate::commands::words::render_cost(&spent.usage);
        let cost = cost.map(|cost| format!("{cost} · ")).unwrap_or_default();
        let when = if spent.scope == BudgetScope::Day { "today" } else { "this run" };
        parts.push((format!("{when} {cost}{}{tokens} tokens", spent.usage.prefix()), plain));
    }
    parts.extend(status.accounts.iter().map(|account| quota_span(account, state.now_ms, theme)));
    let base = &status.base;
    parts.push((
        escape_line(&format!("{} {}", base.branch, landfall_text::short_commit(&base.commit))).into_owned(),
        Theme::dim(),
    ));
    parts
}

fn mode_span(status: &StatusReport, theme: Theme) -> HeaderSpan {
    match status.pilot.as_ref().map(|pilot| (pilot.mode, pilot.pause.is_some())) {
        Some((_, true)) => ("‖ paused".to_owned(), theme.warn()),
        Some((Mode::Autopilot, false)) if status.run.is_some() => ("● autopilot".to_owned(), theme.good()),
        Some((Mode::SemiAuto, false)) if status.run.is_some() => ("○ semi-auto".to_owned(), theme.lively()),
        Some(_) | None => ("○ at rest".to_owned(), Theme::strong()),
    }
}

fn quota_span(account: &AccountLine, now_ms: i64, theme: Theme) -> HeaderSpan {
    let left = |at: Option<i64>| {
        let left = at.filter(|at| *at > now_ms).map(|at| u64::try_from(at - now_ms).unwrap_or(0));
        left.map(landfall_text::format_duration)
    };
    let name = escape_line(&account.account).into_owned();
    match account.state {
        AccountStanding::Open => {
            let used = account
                .used_percent
                .map(|used| format!("{used} % used"))
                .unwrap_or_else(|| "open".to_owned());
            let resets = left(account.resets_ms).map(|left| format!(", anew in {left}")).unwrap_or_default();
            (format!("{name} {used}{resets}"), Style::new())
        }
        AccountStanding::UsedUp | AccountStanding::Troubled => {
            let what = if account.state == AccountStanding::UsedUp { "used up" } else { "has trouble" };
            let guess = if account.until_is_a_guess { " (a guess)" } else { "" };
            let left = left(account.until_ms)
                .map_or_else(|| "tried now".to_owned(), |left| format!("{left} left{guess}"));
            (format!("{name} {what}, {left}"), theme.warn())
        }
        AccountStanding::LoggedOut => (format!("{name} wants a login"), theme.warn()),
    }
}

fn sprint_line(state: &TuiState, width: usize) -> Option<Line<'static>> {
    let text = state.status_report()?.sprint.as_ref()?;
    let columns = (width / 5).min(30);
    let drawn = state
        .sprint
        .as_ref()
        .map(|report| draw_bar(sprint::sprint_progress(report, state.now_ms), columns) + " ");
    let text = format!("{}{}", drawn.unwrap_or_default(), escape_line(text));
    Some(Line::raw(shorten_to_columns(&text, width).into_owned()))
}

/// What a person must not miss.
fn alert_spans(state: &TuiState, theme: Theme) -> Vec<HeaderSpan> {
    let mut alerts = Vec::new();
    if let ConnectionState::Lost { since_ms, problem } = &state.link {
        let since = landfall_text::format_duration(u64::try_from(state.now_ms - since_ms).unwrap_or(0));
        alerts.push((
            format!("CANNOT BE REACHED for {since}, trying again: {}", escape_line(&problem.message)),
            theme.bad(),
        ));
    }
    let Some(status) = state.status_report() else { return alerts };
    if let Some(pause) = status.pilot.as_ref().and_then(|pilot| pilot.pause.as_ref()) {
        alerts.push((format!("PAUSED: {} · p goes on", escape_line(&pause.reason)), theme.warn()));
    } else if let Some(pilot) = status.pilot.as_ref().filter(|pilot| pilot.phase == PilotPhase::WaitingUser) {
        alerts.push((format!("YOUR TURN: {}", escape_line(&pilot.text)), theme.warn()));
    }
    if let Some(spent) = crate::commands::words::blocking_budget(&status.budgets) {
        alerts.push((format!("OUT OF BUDGET: {}", escape_line(&spent)), theme.warn()));
    }
    if let Some(hold) = status.queue.as_ref().and_then(|queue| queue.hold.as_ref()) {
        alerts.push((format!("NOTHING LANDS: {} · M says more", escape_line(&hold.reason)), theme.warn()));
    }
    if let Some(held) = &status.base.held {
        alerts.push((format!("HELD: {}", escape_line(held)), theme.warn()));
    }
    alerts.extend(status.warnings.iter().map(|text| (format!("! {}", escape_line(text)), theme.warn())));
    alerts
}

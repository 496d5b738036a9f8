//! Sessions: who is let in, and letting somebody in.

use askama::Template;
use landfall_api::{
    AgentToken, AgentTokenAsked, Nothing, PairAsked, Pairing, Problem, SessionLine, TypedService as _,
};

use super::{PageContext, RenderedPage, parts, sessions as here, words}; // templates reach functions by a path only
use crate::keys;

pub(super) fn draw_sessions_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    render_sessions_page(visit, None, None)
}

/// The same with a link that was just made. It is shown only here.
pub(super) fn draw_pairing_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let label = visit.query_value("label").unwrap_or_default().to_owned();
    render_sessions_page(visit, Some(visit.pair(PairAsked { label })?), None)
}

/// The same with a token for an agent that was just made. It is shown only here.
pub(super) fn draw_agent_token_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let label = visit.query_value("label").unwrap_or_default().to_owned();
    render_sessions_page(visit, None, Some(visit.agent_token(AgentTokenAsked { label })?))
}

fn render_sessions_page(
    visit: &PageContext<'_>,
    pairing: Option<Pairing>,
    token: Option<AgentToken>,
) -> Result<RenderedPage, Problem> {
    let sessions = visit.sessions(Nothing {})?.sessions;
    RenderedPage::new("Access", &SessionsPage { now_ms: keys::now_ms(), sessions, pairing, token })
}

#[derive(Template)]
#[template(path = "sessions.html")]
struct SessionsPage {
    now_ms: i64,
    sessions: Vec<SessionLine>,
    pairing: Option<Pairing>,
    token: Option<AgentToken>,
}

/// The dark squares of a picture, a rectangle for each stretch: column, row, width.
fn dark(squares: &[String]) -> Vec<(usize, usize, usize)> {
    let mut found = Vec::new();
    for (y, row) in squares.iter().enumerate() {
        let mut start = None;
        for (x, square) in row.chars().chain(['.']).enumerate() {
            match (start, square) {
                (None, '#') => start = Some(x),
                (Some(from), it) if it != '#' => {
                    found.push((from, y, x - from));
                    start = None;
                }
                (None | Some(_), _) => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_drawn_by_its_dark_stretches() {
        let squares = ["##.#", "....", ".###"].map(str::to_owned);
        assert_eq!(dark(&squares), [(0, 0, 2), (3, 0, 1), (1, 2, 3)]);
    }

    #[test]
    fn what_a_browser_calls_itself_is_escaped() {
        let line = SessionLine {
            session: "s1".to_owned(),
            agent: false,
            label: "<script>alert(1)</script>\u{202e}".to_owned(),
            since_ms: 0,
            seen_ms: 0,
            until_ms: 1,
            this: true,
        };
        let html = SessionsPage { now_ms: 0, sessions: vec![line], pairing: None, token: None }.to_string();
        assert!(!html.contains("<script"), "{html}");
        assert!(html.contains("⟨U+202E⟩"), "{html}");
    }
}

use landfall_api::{Action, Response, RunState, TaskAsked, WireRunId, WireTaskId};
use serde_json::json;

use super::*;
use crate::pages::tests::{Made, draw_path};

/// Breaks out of text, of attributes and of templates, and hides what it is.
fn hostile_text(field: &str) -> String {
    format!("{field}\"'><img src=x onerror=alert(1)><script>alert(2)</script>&lt;{{{{7*7}}}}\u{202e}\x1b[2J")
}

fn board_card(id: u32, status: &str) -> serde_json::Value {
    json!({
        "id": format!("T{id}"), "title": hostile_text("title"), "status": status,
        "wait": {"for": "quota", "owner": hostile_text("owner"), "until_ms": 9_000_000, "detail": hostile_text("waitdetail")},
        "phase": hostile_text("phase"), "step": hostile_text("step"), "doing": hostile_text("doing"), "detail": hostile_text("detail"),
        "profile": hostile_text("profile"),
        "agent": {"profile": hostile_text("agentprofile"), "model": hostile_text("model"), "sandbox": hostile_text("sandbox"),
                  "class": hostile_text("class"), "evidence": hostile_text("evidence"), "words": hostile_text("words")},
        "iteration": 2, "iterations_max": 50, "attempt": 1, "elapsed_ms": 72_000, "tokens": 12_345, "cost_usd": 0.5,
        "diff": {"files": 1, "added": 12, "removed": 3},
        "checks": [{"name": hostile_text("check"), "state": "over", "outcome": "timeout", "took_ms": 42_000, "limit_ms": 600_000}],
        "unmet": 1, "size": "M", "tags": [hostile_text("tag")], "priority": 5, "since_ms": 0, "commit": hostile_text("commit"),
    })
}

fn board_column(name: &str, count: u64, cards: &[serde_json::Value]) -> serde_json::Value {
    json!({"name": name, "count": count, "cards": cards, "more": count - cards.len() as u64})
}

fn sample_board(columns: &[serde_json::Value]) -> Board {
    let board = json!({
        "seq": 7, "at_ms": 100_000, "columns": columns, "counts": {"active": 1, "ready": 10_000, "done": 3}, "reviews_owed": 0,
        "problems": [{"key": hostile_text("key"), "severity": "error", "kind": "queue-held", "text": hostile_text("trouble"), "task": "T9",
                      "hint": hostile_text("hint"), "until_ms": 200_000}],
        "sprint": hostile_text("sprint"),
        "next_landing": {"place": 1, "task": "T4", "title": hostile_text("landing"), "since_ms": 0, "text": hostile_text("landingtext")},
        "accounts": [{"account": hostile_text("account"), "state": "used-up", "until_ms": 3_700_000, "used_percent": 100}],
        "spending": [], "budgets": [{"scope": "day", "of": "usd", "used": 30.0, "max": 40.0}],
        "base": {"branch": hostile_text("branch"), "commit": "c", "published": true},
    });
    serde_json::from_value(board).expect("it is a board")
}

fn all_columns() -> Vec<serde_json::Value> {
    let of = |name: &str, status: &str| board_column(name, 1, &[board_card(1, status)]);
    vec![
        of("working", "active"),
        of("needs-you", "failed"),
        of("in-review", "review"),
        of("landing", "landing"),
        of("done-today", "done"),
        board_column("next", 10_000, &[board_card(2, "ready")]),
        of("waiting", "waiting"),
    ]
}

#[test]
fn nothing_that_comes_from_outside_becomes_markup() {
    let mut board = sample_board(&all_columns());
    let mut action = Action::new(
        &hostile_text("action"),
        &landfall_api::Request::Rollback(TaskAsked { task: WireTaskId(1) }),
    )
    .with_fill("/note", &hostile_text("fill"), true)
    .with_confirmation();
    action.asked["field"] = hostile_text("asked").into();
    board.problems[0].actions.push(action);
    let html = draw_path("/", &Made::from_answers(vec![Response::Board(Box::new(board))]));
    // What a form sends back is not shown and must stay as it was.
    let shown: Vec<&str> = html
        .split("<input type=\"hidden\"")
        .map(|it| it.split_once('>').map_or(it, |(_, rest)| rest))
        .collect();
    for sign in ["\u{202e}", "\x1b"] {
        assert!(shown[1..].iter().all(|it| !it.contains(sign)), "{sign:?} is shown");
    }
    for sign in ["<img", "<script>", "\"'>", " onerror=alert(1)>"] {
        let at = html.find(sign);
        assert!(at.is_none(), "{sign:?}: {}", &html[at.unwrap_or(0)..].chars().take(300).collect::<String>());
    }
    for field in [
        "title",
        "phase",
        "class",
        "words",
        "model",
        "agentprofile",
        "check",
        "tag",
        "trouble",
        "hint",
        "sprint",
        "landing",
        "account",
        "action",
        "fill",
        "asked",
    ] {
        // A sentence begins with a capital letter.
        assert!(html.to_lowercase().contains(&format!("{field}&#34;&#39;&#62;")), "{field} is not drawn");
    }
}

#[test]
fn a_card_shows_what_the_work_is_at() {
    let mut board = sample_board(&all_columns());
    board.run =
        Some(RunState { run: WireRunId(3), since_ms: 0, slots: 3, agents: 1, mode: "running".to_owned() });
    let html = draw_path("/", &Made::from_answers(vec![Response::Board(Box::new(board))]));
    for fact in [
        r#"id="card-T1""#,
        "iteration <span data-live=\"iteration\">2</span>/50",
        ">1m 12s</span>",
        "12.3k</span> tokens",
        "$0.50",
        "+12</span>",
        "in 1 file<",
        "TIMEOUT (42s / 10m)",
        "and 9999 more",
        "opens in",
        "$30.00 of $40.00",
        r#"class="bar warn""#,
        "agents <b>1/3</b>",
        r#"action="/do/pause""#,
        r#"name="tags[]" value="later""#,
    ] {
        assert!(html.contains(fact), "{fact:?} is not in {html}");
    }
    assert!(!html.contains("Nothing runs."), "a run is under way");
}

#[test]
fn an_empty_project_says_what_to_do() {
    let mut board = sample_board(&[]);
    board.counts.clear();
    let html = draw_path("/", &Made::from_answers(vec![Response::Board(Box::new(board))]));
    assert!(html.contains("No task yet") && html.contains("landfall add"), "{html}");
}

#[test]
fn a_project_at_rest_offers_to_start() {
    let html =
        draw_path("/", &Made::from_answers(vec![Response::Board(Box::new(sample_board(&all_columns())))]));
    assert!(html.contains("Nothing runs.") && html.contains(r#"action="/do/run_start""#), "{html}");
    assert!(!html.contains(r#"action="/do/pause""#), "nothing is there to be paused");
}

fn running_state(agents: u32, slots: u32) -> Option<RunState> {
    Some(RunState { run: WireRunId(3), since_ms: 0, slots, agents, mode: "running".to_owned() })
}

#[test]
fn tasks_that_are_verified_are_not_agents() {
    let mut board = sample_board(&all_columns());
    board.counts.insert(Status::Active, 7);
    board.run = running_state(2, 6);
    let html = draw_path("/", &Made::from_answers(vec![Response::Board(Box::new(board))]));
    assert!(html.contains("agents <b>2/6</b>"), "{html}");
}

#[test]
fn a_run_that_may_spend_nothing_is_not_called_running() {
    let mut board = sample_board(&all_columns());
    board.run = running_state(0, 6);
    board.problems[0].kind = landfall_api::TroubleKind::Budget;
    let html = draw_path("/", &Made::from_answers(vec![Response::Board(Box::new(board))]));
    assert!(html.contains("out of budget") && !html.contains("</span>running</span>"), "{html}");
    assert!(html.contains(r#"action="/do/pause""#), "it can be paused and stopped as ever");
}

#[test]
fn stopping_a_task_promises_what_happens() {
    let html =
        draw_path("/", &Made::from_answers(vec![Response::Board(Box::new(sample_board(&all_columns())))]));
    assert!(html.contains("Stop T1? Its agent ends within seconds. Its work is kept."), "{html}");
    assert!(!html.contains("finishes first"), "{html}");
}

#[test]
fn questions_come_first_and_columns_in_the_order_of_attention() {
    let mut question = board_card(4, "waiting");
    question["wait"] = json!({"for": "question", "owner": "you", "detail": "blue or green?"});
    let needs_you = board_column("needs-you", 2, &[board_card(3, "failed"), question]);
    let board = sample_board(&[board_column("working", 0, &[]), needs_you]);
    let html = draw_path("/", &Made::from_answers(vec![Response::Board(Box::new(board))]));
    let at = |what: &str| html.find(what).unwrap_or_else(|| panic!("{what} is not there"));
    assert!(at("id=\"card-T4\"") < at("id=\"card-T3\""), "{html}");
    assert!(at("column-needs-you") < at("column-working"), "{html}");
    assert!(html.contains("href=\"/tasks/T4#decide\"") && html.contains(">Answer</a>"), "{html}");
}

fn sprint_report(goal: &serde_json::Value, phase: &str) -> SprintReport {
    let report = json!({
        "sprint": "S2", "phase": phase, "driven": true, "started_ms": 0, "worked_ms": 1_000_000, "paused_ms": 0, "ready_at_start": 3,
        "plan": {"goal": goal, "only": [], "parents": [], "tags": [], "not_tags": [], "checkpoint": false, "pause_on_error": false,
                 "batch_review": false},
        "ready": 0, "bar": "SPRINT", "verdict": "", "landed": 4, "total": 13, "tasks": [], "tokens": 0, "burn_up": [],
        "forecast_ms": 9_000_000, "forecast_of": 9,
    });
    serde_json::from_value(report).expect("it is a report")
}

/// The line of the sprint on the board.
fn sprint_line(report: SprintReport) -> String {
    let made = Made::from_answers(vec![
        Response::Board(Box::new(sample_board(&all_columns()))),
        Response::Sprint(Box::new(report)),
    ]);
    let html = draw_path("/", &made);
    let at = html.find("id=\"sprint-bar\"").expect("it has a line");
    html[at..].split("</section>").next().unwrap_or_default().to_owned()
}

#[test]
fn the_bar_of_a_sprint_is_as_full_as_its_figures_say() {
    let line = sprint_line(sprint_report(&json!({"type": "no_ready"}), "running"));
    assert!(line.contains("class=\"fill\" width=\"31%\""), "4 of 13: {line}");
    assert!(line.contains("expected <time"), "{line}");
}

#[test]
fn the_time_left_of_a_paused_sprint_stands_still() {
    let goal = json!({"type": "duration", "duration_ms": 4_600_000});
    assert!(sprint_line(sprint_report(&goal, "running")).contains("data-until"), "it is counted down");
    let line = sprint_line(sprint_report(&goal, "paused"));
    assert!(line.contains("1h of work left") && !line.contains("<time"), "{line}");
    let line = sprint_line(sprint_report(&json!({"type": "no_ready"}), "paused"));
    assert!(!line.contains("expected"), "{line}");
}

#[test]
fn where_a_sprint_is_open_no_other_is_offered() {
    let page = |phase: &str| {
        let report = sprint_report(&json!({"type": "no_ready"}), phase);
        draw_path("/sprint", &Made::from_answers(vec![Response::Sprint(Box::new(report))]))
    };
    assert!(!page("running").contains("id=\"start\""));
    assert!(page("over").contains("id=\"start\""));
}

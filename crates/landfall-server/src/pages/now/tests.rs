use landfall_api::{Action, Response, RunId, RunState, TaskAsked, TaskId};
use serde_json::json;

use super::*;
use crate::pages::tests::{Made, draw};

/// Breaks out of text, of attributes and of templates, and hides what it is.
fn hostile(field: &str) -> String {
    format!("{field}\"'><img src=x onerror=alert(1)><script>alert(2)</script>&lt;{{{{7*7}}}}\u{202e}\x1b[2J")
}

fn card(id: u32, status: &str) -> serde_json::Value {
    json!({
        "id": format!("T{id}"), "title": hostile("title"), "status": status,
        "wait": {"for": "quota", "owner": hostile("owner"), "until_ms": 9_000_000, "detail": hostile("waitdetail")},
        "phase": hostile("phase"), "step": hostile("step"), "doing": hostile("doing"), "detail": hostile("detail"),
        "profile": hostile("profile"),
        "agent": {"profile": hostile("agentprofile"), "model": hostile("model"), "sandbox": hostile("sandbox"),
                  "class": hostile("class"), "evidence": hostile("evidence"), "words": hostile("words")},
        "iteration": 2, "iterations_max": 50, "attempt": 1, "elapsed_ms": 72_000, "tokens": 12_345, "cost_usd": 0.5,
        "diff": {"files": 1, "added": 12, "removed": 3},
        "checks": [{"name": hostile("check"), "state": "over", "outcome": "timeout", "took_ms": 42_000, "limit_ms": 600_000}],
        "unmet": 1, "size": "M", "tags": [hostile("tag")], "priority": 5, "since_ms": 0, "commit": hostile("commit"),
    })
}

fn column(name: &str, count: u64, cards: &[serde_json::Value]) -> serde_json::Value {
    json!({"name": name, "count": count, "cards": cards, "more": count - cards.len() as u64})
}

fn board(columns: &[serde_json::Value]) -> Board {
    let board = json!({
        "seq": 7, "at_ms": 100_000, "columns": columns, "counts": {"active": 1, "ready": 10_000, "done": 3}, "reviews_owed": 0,
        "problems": [{"key": hostile("key"), "severity": "error", "kind": "queue-held", "text": hostile("trouble"), "task": "T9",
                      "hint": hostile("hint"), "until_ms": 200_000}],
        "sprint": hostile("sprint"),
        "next_landing": {"place": 1, "task": "T4", "title": hostile("landing"), "since_ms": 0, "text": hostile("landingtext")},
        "accounts": [{"account": hostile("account"), "state": "used-up", "until_ms": 3_700_000, "used_percent": 100}],
        "spending": [], "budgets": [{"scope": "day", "of": "usd", "used": 30.0, "max": 40.0}],
        "base": {"branch": hostile("branch"), "commit": "c", "published": true},
    });
    serde_json::from_value(board).expect("it is a board")
}

fn all_columns() -> Vec<serde_json::Value> {
    let of = |name: &str, status: &str| column(name, 1, &[card(1, status)]);
    vec![
        of("working", "active"),
        of("needs-you", "failed"),
        of("in-review", "review"),
        of("landing", "landing"),
        of("done-today", "done"),
        column("next", 10_000, &[card(2, "ready")]),
        of("waiting", "waiting"),
    ]
}

#[test]
fn nothing_that_comes_from_outside_becomes_markup() {
    let mut board = board(&all_columns());
    let mut action =
        Action::new(&hostile("action"), &landfall_api::Request::Rollback(TaskAsked { task: TaskId(1) }))
            .fill("/note", &hostile("fill"), true)
            .confirm();
    action.asked["field"] = hostile("asked").into();
    board.problems[0].actions.push(action);
    let html = draw("/", &Made::of(vec![Response::Board(Box::new(board))]));
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
    let mut board = board(&all_columns());
    board.run = Some(RunState { run: RunId(3), since_ms: 0, slots: 3, mode: "running".to_owned() });
    let html = draw("/", &Made::of(vec![Response::Board(Box::new(board))]));
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
    let mut board = board(&[]);
    board.counts.clear();
    let html = draw("/", &Made::of(vec![Response::Board(Box::new(board))]));
    assert!(html.contains("No task yet") && html.contains("landfall add"), "{html}");
}

#[test]
fn a_project_at_rest_offers_to_start() {
    let html = draw("/", &Made::of(vec![Response::Board(Box::new(board(&all_columns())))]));
    assert!(html.contains("Nothing runs.") && html.contains(r#"action="/do/run_start""#), "{html}");
    assert!(!html.contains(r#"action="/do/pause""#), "nothing is there to be paused");
}

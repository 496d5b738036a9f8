//! Loops over modules: the strip on the page of a task, and the answers that older clients read.

use serde_json::json;

use crate::support::Place;

fn line(status: &str) -> serde_json::Value {
    json!({
        "session": "main", "dir": "/p/AiTasks/auth", "task": "T7", "status": status, "holds": status != "stopped",
        "iterations": 3, "iterations_max": 20, "elapsed_ms": 231_000, "minutes_max": 30, "step": "exec",
        "started_ms": 1_785_283_200_000_i64, "recoveries_step": 0, "recoveries": 1, "restarts": 2, "text": "T7 is worked on.",
    })
}

#[test]
fn the_page_of_a_modules_task_begins_a_loop_and_shows_how_far_it_is() {
    let place = Place::new();
    let page = |cookie: &str| place.ask("GET", "/tasks/T7").with("Cookie", cookie).send().body;
    let cookie = place.sign_in();
    assert!(!page(&cookie).contains("task-loop"), "only modules have loops");
    place.toy.answer("show", "/source", json!("module:AiTasks/auth"));
    let before = page(&cookie);
    for wanted in [
        "action=\"/do/loop_start\"",
        "name=\"iterations:n\"",
        "value=\"20\"",
        "value=\"30\"",
        "value=\"AiTasks/auth\"",
    ] {
        assert!(before.contains(wanted), "{wanted} is missing");
    }
    assert!(!before.contains("loop-strip"));
    place.toy.answer("loops", "/loops", json!([line("running")]));
    let running = page(&cookie);
    for wanted in
        ["id=\"loop-status\">running<", ">3/20<", ">3m 51s/30m<", ">exec<", "action=\"/do/loop_stop\""]
    {
        assert!(running.contains(wanted), "{wanted} is missing: {running}");
    }
    assert!(!running.contains("/do/loop_start"), "one at a time");
    place.toy.answer("loops", "/loops", json!([line("stopping")]));
    let stopping = page(&cookie);
    assert!(stopping.contains("id=\"loop-status\">stopping<") && !stopping.contains("/do/loop_stop"));
    place.toy.answer("loops", "/loops", json!([line("stopped")]));
    let stopped = page(&cookie);
    assert!(stopped.contains("id=\"loop-status\">stopped<") && stopped.contains("/do/loop_start"));
}

#[test]
fn older_clients_read_the_row_in_their_own_words() {
    let place = Place::new();
    place.toy.answer("loops", "/loops", json!([line("running")]));
    let answer = place.owner("GET", "/api/sessions/main/task-auto").send();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(
        answer.value(),
        json!({
            "session_name": "main", "task_dir": "/p/AiTasks/auth", "status": "running", "max_iterations": 20,
            "timeout_minutes": 30, "iteration_count": 3, "started_at": "2026-07-29T00:00:00Z", "last_signal_at": "",
            "recovery_count_step": 0, "recovery_count_total": 1, "stall_count": 0, "quota_wait_since": "",
            "restart_count": 2, "elapsed_seconds": 231, "current_step": "exec", "ended_at": "", "stop_reason": "",
            "task": "T7",
        })
    );
    let found = place.owner("GET", "/api/task-auto/lookup?taskDir=/p/AiTasks/auth").send();
    assert_eq!(found.value(), json!({ "session_name": "main", "status": "running" }));
}

//! Loops over modules as older clients ask for them, from outside: over HTTP, against `landfall serve`, by the scripted agent.

use std::time::{Duration, Instant};

use landfall_testkit::ScratchProject;
use serde_json::{Value, json};

use crate::hold_file::HoldFile;
use crate::lifecycle::{plans, says, works};
use crate::serve::Served;
use crate::styles::{Style, in_styles};

const GOOD: &str = r#"{"scores":{"d1":0.9,"d2":0.9,"d3":0.9,"d4":0.9,"d5":0.9,"d6":0.9},"reason":"fine"}"#;
const TIME_MAX: Duration = Duration::from_secs(90);

/// A project with a module whose work follows this script.
fn with_module(name: &str, script: &[String]) -> ScratchProject {
    with_module_in(Style::Fresh, name, script)
}

fn with_module_in(style: Style, name: &str, script: &[String]) -> ScratchProject {
    let scratch = style.scratch();
    module(&scratch, name, &[&[style.script("")], script].concat());
    scratch
}

/// A project with a module whose planning is held up.
fn with_slow_module(style: Style, name: &str, file: &str) -> (ScratchProject, HoldFile) {
    let scratch = style.scratch();
    let hold = HoldFile::new(&scratch, name);
    module(&scratch, name, &[&[style.script("")], &slow_script(&hold, file)[..]].concat());
    (scratch, hold)
}

fn module(scratch: &ScratchProject, name: &str, script: &[String]) {
    let index = json!({ "title": format!("Module {name}"), "status": "draft" });
    scratch.file(&format!("AiTasks/{name}/.index.json"), &index.to_string());
    let target = format!(
        "# Objective\n\nDo as the script says, in {name}.\n\n```landfall-script\n{}```\n",
        script.concat()
    );
    scratch.file(&format!("AiTasks/{name}/.target.md"), &target);
    scratch.commit(&format!("module {name}"));
}

/// A script that plans, is judged, works and is judged.
fn script(file: &str) -> Vec<String> {
    vec![
        plans("plan", "one", 1, ""),
        says("check-plan", GOOD),
        works("exec", file, "\"complete\""),
        says("check-exec", GOOD),
    ]
}

/// The same, but planning goes on until the test says otherwise.
fn slow_script(hold: &HoldFile, file: &str) -> Vec<String> {
    vec![hold.in_step("plan", &script(file).concat())]
}

fn dir(scratch: &ScratchProject, name: &str) -> String {
    let root = scratch.project().canonicalize().expect("it is there");
    root.join("AiTasks").join(name).display().to_string()
}

struct Client<'a>(&'a Served);

impl Client<'_> {
    fn said((status, body): (u16, String)) -> (u16, Value) {
        (status, serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}")))
    }

    fn post(&self, session: &str, body: &Value) -> (u16, Value) {
        Self::said(self.0.post(&format!("/api/sessions/{session}/task-auto"), &body.to_string()))
    }

    fn get(&self, session: &str) -> (u16, Value) {
        Self::said(self.0.get(&format!("/api/sessions/{session}/task-auto")))
    }

    fn delete(&self, session: &str) -> (u16, Value) {
        let headers = format!("Authorization: Bearer {}\r\n", self.0.token);
        Self::said(self.0.ask("DELETE", &format!("/api/sessions/{session}/task-auto"), &headers, ""))
    }

    fn lookup(&self, dir: &str) -> (u16, Value) {
        Self::said(self.0.get(&format!("/api/task-auto/lookup?taskDir={dir}")))
    }

    /// The row once it is as wanted.
    #[track_caller]
    fn until(&self, session: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let (status, row) = self.get(session);
            if status == 200 && holds(&row) {
                return row;
            }
            assert!(began.elapsed() < TIME_MAX, "waited for {what}: {status} {row}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    #[track_caller]
    fn until_status(&self, session: &str, status: &str) -> Value {
        self.until(session, status, |row| row["status"] == status)
    }

    /// Waits until the agent is at work on the first step.
    #[track_caller]
    fn until_at_work(&self, scratch: &ScratchProject, task: &str) {
        scratch.eventually("the agent is at work", || {
            let (_, shown) = self.0.get(&format!("/api/v1/tasks/{task}"));
            let shown: Value = serde_json::from_str(&shown).unwrap_or_default();
            let runs = scratch.root().join("state/attempts").read_dir().into_iter().flatten().flatten();
            let mut names = runs.map(|run| run.file_name().to_string_lossy().into_owned());
            shown["attempts"].as_array().is_some_and(|attempts| !attempts.is_empty())
                && names.any(|name| name.starts_with(&format!("{task}-a"))) // and not a check of the base alone
        });
    }
}

fn behaviour_01_a_second_start_is_refused_naming_the_holder(style: Style) {
    let (scratch, hold) = with_slow_module(style, "auth", "done.txt");
    let dir = dir(&scratch, "auth");
    let served = Served::start(&scratch, &[]);
    let client = Client(&served);
    let (status, row) = client.post("main", &json!({ "taskDir": dir }));
    assert_eq!(status, 200, "{row}");
    assert_eq!((&row["session_name"], &row["task_dir"]), (&json!("main"), &json!(dir)), "{row}");
    assert_eq!((&row["max_iterations"], &row["timeout_minutes"]), (&json!(20), &json!(30)), "the defaults");
    assert_eq!((&row["status"], &row["iteration_count"]), (&json!("running"), &json!(0)), "{row}");
    for field in ["recovery_count_step", "recovery_count_total", "stall_count", "restart_count"] {
        assert_eq!(row[field], 0, "{row}");
    }
    assert_eq!((&row["quota_wait_since"], &row["last_signal_at"]), (&json!(""), &json!("")), "{row}");
    assert!(row["started_at"].as_str().is_some_and(|it| it.ends_with('Z')), "{row}");
    for session in ["main", "other"] {
        let (status, refused) = client.post(session, &json!({ "taskDir": dir }));
        assert_eq!((status, &refused["holder"]), (409, &json!("main")), "{session}: {refused}");
        assert_eq!((&refused["task_dir"], &refused["status"]), (&json!(dir), &json!("running")), "{refused}");
        assert!(refused["error"].as_str().is_some_and(|it| it.contains("`main`")), "{refused}");
    }
    assert_eq!(client.lookup(&dir), (200, json!({ "session_name": "main", "status": "running" })));
    assert_eq!(client.get("other").0, 404, "whoever was refused has none");
    // Whoever asked has hung up long ago; the server goes on.
    hold.release();
    let row = client.until_status("main", "stopped");
    assert_eq!((&row["stop_reason"], &row["current_step"]), (&json!("complete"), &json!("")), "{row}");
    assert_eq!(row["iteration_count"], 4, "planning, judging, working and judging: {row}");
    assert_ne!((&row["last_signal_at"], &row["ended_at"]), (&json!(""), &json!("")), "{row}");
    scratch.eventually("the work is in the person's repository", || {
        scratch.project().join("done.txt").is_file()
    });
    assert_eq!(client.lookup(&dir).0, 404, "nobody holds it any more");
    assert_eq!(client.delete("main").0, 404, "it is over");
    let (status, refused) = client.post("main", &json!({ "taskDir": dir }));
    assert_eq!((status, refused.get("holder")), (409, None), "what is done is not done again: {refused}");
    assert_eq!(client.get("main").1["stop_reason"], "complete", "and what was is kept");
    served.end();
}
in_styles!(behaviour_01_a_second_start_is_refused_naming_the_holder: fresh, session);

#[test]
fn bodies_that_make_no_sense_and_folders_that_are_none_begin_nothing() {
    let scratch = with_module("auth", &script("done.txt"));
    module(&scratch, "stuck", &script("stuck.txt"));
    let index = json!({ "title": "Stuck", "status": "blocked", "reason": "it has no access to the server" });
    scratch.file("AiTasks/stuck/.index.json", &index.to_string());
    scratch.file("AiTasks/empty/.target.md", "# Objective\n\n");
    scratch.file("AiTasks/nothing/readme.txt", "no module");
    scratch.file("src/lib.rs", "");
    std::os::unix::fs::symlink("auth", scratch.project().join("AiTasks/link")).expect("a link");
    let root = scratch.project().canonicalize().expect("it is there").display().to_string();
    let served = Served::start(&scratch, &[]);
    let client = Client(&served);
    let with = |dir: String| json!({ "taskDir": dir });
    let good = format!("{root}/AiTasks/auth");
    for (body, wanted) in [
        (json!({}), 400),
        (json!([]), 400),
        (json!({ "taskDir": 7 }), 400),
        (with(String::new()), 400),
        (with("AiTasks/auth".to_owned()), 400),
        (with("/etc".to_owned()), 400),
        (with(root.clone()), 400),
        (with(format!("{root}/AiTasks")), 400),
        (with(format!("{root}/src")), 400),
        (with(format!("{root}/AiTasks/auth/../../src")), 400),
        (with(format!("{root}/AiTasks/link")), 400),
        (with(format!("{root}/AiTasks/nothing")), 400),
        (with(format!("{root}/AiTasks/missing")), 404),
        (with(format!("{root}/AiTasks/empty")), 409),
        (json!({ "taskDir": good, "maxIterations": 0 }), 400),
        (json!({ "taskDir": good, "maxIterations": -1 }), 400),
        (json!({ "taskDir": good, "maxIterations": "20" }), 400),
        (json!({ "taskDir": good, "timeoutMinutes": 0 }), 400),
        (json!({ "taskDir": good, "timeoutMinutes": 1e12 }), 400),
    ] {
        let (status, said) = client.post("main", &body);
        assert_eq!(status, wanted, "{body}: {said}");
        assert!(said["error"].as_str().is_some_and(|it| !it.is_empty()), "{body}: {said}");
        assert!(said.get("holder").is_none(), "{body}: {said}");
    }
    let (status, _) = served.post("/api/sessions/main/task-auto", "{\"taskDir\": ");
    assert_eq!(status, 400);
    assert_eq!(client.post("a%20b", &with(good.clone())).0, 400, "no name for a session");
    assert_eq!((client.get("main").0, client.delete("main").0), (404, 404));
    assert_eq!((client.lookup("AiTasks/auth").0, client.lookup(&good).0), (400, 404));
    assert_eq!(Client::said(served.get("/api/task-auto/lookup")).0, 400);
    let (status, list) = served.get("/api/v1/tasks");
    assert_eq!((status, list.contains("Module auth")), (200, false), "no task was made");
    let (status, _) =
        served.ask("POST", "/api/sessions/main/task-auto", "Content-Type: application/json\r\n", "{}");
    assert_eq!(status, 401, "a token is wanted");
    // What is blocked is refused with the reason: that of its folder, then that of its task.
    let blocked = with(format!("{root}/AiTasks/stuck"));
    let refused = |why: &str| {
        let (status, said) = client.post("main", &blocked);
        assert!(
            status == 409 && said["error"].as_str().is_some_and(|it| it.contains(why)),
            "{status} {said}"
        );
    };
    refused("it has no access to the server");
    scratch.landfall(&["import", "AiTasks/stuck"]).ok();
    refused("it has no access to the server");
    scratch.landfall(&["edit", "T1", "--ready"]).ok();
    scratch.landfall(&["block", "T1", "the server is down"]).ok();
    refused("the server is down");
    assert_eq!(scratch.status("T1"), "blocked");
    served.end();
}

fn behaviour_16_edge_3_a_stop_finishes_the_step_and_nobody_else_begins_meanwhile(style: Style) {
    let (scratch, hold) = with_slow_module(style, "auth", "done.txt");
    let dir = dir(&scratch, "auth");
    let served = Served::start(&scratch, &[]);
    let client = Client(&served);
    let (_, row) = client.post("main", &json!({ "taskDir": dir, "maxIterations": 7, "timeoutMinutes": 9 }));
    assert_eq!((&row["max_iterations"], &row["timeout_minutes"]), (&json!(7), &json!(9)), "{row}");
    client.until_at_work(&scratch, "T1");
    let (status, row) = client.delete("main");
    assert_eq!(
        (status, &row["status"], &row["current_step"]),
        (200, &json!("stopping"), &json!("plan")),
        "{row}"
    );
    assert_eq!(client.delete("main").1["status"], "stopping", "asking again changes nothing");
    let (status, refused) = client.post("other", &json!({ "taskDir": dir }));
    assert_eq!((status, &refused["holder"], &refused["status"]), (409, &json!("main"), &json!("stopping")));
    assert_eq!(client.lookup(&dir).1["status"], "stopping");
    hold.release();
    let row = client.until_status("main", "stopped");
    assert_eq!((&row["stop_reason"], &row["iteration_count"]), (&json!("user_stop"), &json!(1)), "{row}");
    assert_eq!(client.lookup(&dir).0, 404);
    assert_eq!(scratch.status("T1"), "waiting", "it waits for whoever begins it again");
    // Another session takes it up where it was.
    let (status, row) = client.post("other", &json!({ "taskDir": dir }));
    assert_eq!((status, &row["task"]), (200, &json!("T1")), "{row}");
    let row = client.until_status("other", "stopped");
    assert_eq!((&row["stop_reason"], &row["iteration_count"]), (&json!("complete"), &json!(3)), "{row}");
    let (_, loops) = served.get("/api/v1/loops?task=T1");
    let loops: Value = serde_json::from_str(&loops).expect("json");
    let sessions: Vec<&Value> =
        loops["loops"].as_array().expect("a list").iter().map(|it| &it["session"]).collect();
    assert_eq!(sessions, ["other", "main"], "both are kept, the newest first");
    served.end();
}
in_styles!(behaviour_16_edge_3_a_stop_finishes_the_step_and_nobody_else_begins_meanwhile: fresh, session);

#[test]
fn edge_4_a_persons_stop_outlives_a_server_that_was_killed() {
    let (scratch, hold) = with_slow_module(Style::Fresh, "auth", "done.txt");
    let dir = dir(&scratch, "auth");
    let mut served = Served::start(&scratch, &[]);
    let client = Client(&served);
    client.post("main", &json!({ "taskDir": dir }));
    client.until_at_work(&scratch, "T1");
    assert_eq!(client.delete("main").1["status"], "stopping");
    served.process.kill();
    let served = Served::start(&scratch, &[]);
    let client = Client(&served);
    hold.release();
    let row = client.until_status("main", "stopped");
    assert_eq!((&row["stop_reason"], &row["iteration_count"]), (&json!("user_stop"), &json!(1)), "{row}");
    scratch.eventually("the run is over", || {
        let (_, now) = served.get("/api/v1/status");
        serde_json::from_str::<Value>(&now).is_ok_and(|now| now["run"].is_null())
    });
    assert_eq!(client.get("main").1["iteration_count"], 1, "it stays stopped");
    assert_eq!(scratch.status("T1"), "waiting");
    served.end();
}

#[test]
fn edge_9_a_loop_goes_on_by_itself_after_an_outage_that_takes_none_of_its_time() {
    let slow = script("done.txt").concat().replacen("signal =", "sleep = \"1s\"\nsignal =", 1);
    let scratch = with_module("auth", &[slow]);
    let dir = dir(&scratch, "auth");
    let mut served = Served::start(&scratch, &[]);
    let client = Client(&served);
    let began = Instant::now();
    client.post("main", &json!({ "taskDir": dir }));
    client.until_at_work(&scratch, "T1");
    served.process.kill();
    for process in landfall_testkit::left_behind(scratch.root()) {
        let _ = std::process::Command::new("kill").args(["-9", &process.pid.to_string()]).status(); // it is over
    }
    // Times are told in whole seconds: two of them would be seen if they counted.
    let outage = Duration::from_secs(2);
    std::thread::sleep(outage);
    let served = Served::start(&scratch, &[]);
    let client = Client(&served);
    let row = client.until_status("main", "stopped");
    assert_eq!(row["stop_reason"], "complete", "{row}");
    let elapsed = Duration::from_secs(row["elapsed_seconds"].as_u64().expect("a number"));
    let most = began.elapsed() - outage;
    assert!(elapsed <= most && elapsed >= Duration::from_secs(1), "{elapsed:?}, at most {most:?}: {row}");
    let (_, loops) = served.get("/api/v1/loops");
    let loops: Value = serde_json::from_str(&loops).expect("json");
    assert_eq!(loops["loops"].as_array().map(Vec::len), Some(1), "it is the same loop: {loops}");
    served.end();
}

#[test]
fn c15_a_loop_stops_when_as_many_iterations_are_completed_as_there_may_be() {
    let scratch = with_module("auth", &script("done.txt"));
    let dir = dir(&scratch, "auth");
    let served = Served::start(&scratch, &[]);
    let client = Client(&served);
    client.post("main", &json!({ "taskDir": dir, "maxIterations": 2 }));
    let row = client.until_status("main", "stopped");
    assert_eq!(
        (&row["stop_reason"], &row["iteration_count"]),
        (&json!("max_iterations"), &json!(2)),
        "{row}"
    );
    client.post("main", &json!({ "taskDir": dir }));
    let row = client.until("main", "another loop to be over", |row| {
        row["status"] == "stopped" && row["max_iterations"] == 20
    });
    assert_eq!(row["stop_reason"], "complete", "with more it is done: {row}");
    served.end();
}

#[test]
fn c42_a_loop_whose_agent_keeps_crashing_is_failed_and_kept_until_it_was_seen() {
    let scratch = with_module("auth", &["[[step.plan]]\nmisbehave = \"crash\"\n".to_owned()]);
    let dir = dir(&scratch, "auth");
    let served = Served::start(&scratch, &[]);
    let client = Client(&served);
    client.post("main", &json!({ "taskDir": dir }));
    let row = client.until_status("main", "failed");
    assert!(row["restart_count"].as_u64().is_some_and(|it| it >= 3), "{row}");
    let (status, refused) = client.post("other", &json!({ "taskDir": dir }));
    assert_eq!((status, &refused["holder"], &refused["status"]), (409, &json!("main"), &json!("failed")));
    assert_eq!(client.lookup(&dir), (200, json!({ "session_name": "main", "status": "failed" })));
    let (status, row) = client.delete("main");
    assert_eq!((status, &row["status"]), (200, &json!("failed")), "what happened stays so: {row}");
    assert_eq!(client.lookup(&dir).0, 404);
    assert_eq!(client.post("other", &json!({ "taskDir": dir })).0, 200, "it may be tried again");
    client.until_status("other", "failed");
    served.end();
}

#[test]
fn loops_of_two_sessions_go_on_side_by_side() {
    let (scratch, hold) = with_slow_module(Style::Fresh, "one", "one.txt");
    module(&scratch, "two", &slow_script(&hold, "two.txt"));
    let other = scratch.task("Nobody asked for it", "signal = \"complete\"\n", &[]);
    let served = Served::start(&scratch, &[]);
    let client = Client(&served);
    client.post("a", &json!({ "taskDir": dir(&scratch, "one") }));
    let (status, row) = client.post("b", &json!({ "taskDir": dir(&scratch, "two") }));
    assert_eq!(status, 200, "{row}");
    client.until("b", "it began while the other is at work", |_| {
        let (_, now) = served.get("/api/v1/status");
        let now: Value = serde_json::from_str(&now).unwrap_or_default();
        now["active"].as_array().is_some_and(|it| it.len() == 2)
    });
    hold.release();
    for session in ["a", "b"] {
        assert_eq!(client.until_status(session, "stopped")["stop_reason"], "complete");
    }
    assert_eq!(scratch.status(&other), "ready", "only what was asked for");
    served.end();
}

#[test]
fn the_row_names_the_step_as_an_agent_calls_it() {
    let scratch = ScratchProject::new(crate::LANDFALL);
    let hold = HoldFile::new(&scratch, "judge");
    let held = hold.in_step("check-plan", &script("done.txt").concat());
    module(&scratch, "auth", &[held]);
    let dir = dir(&scratch, "auth");
    let served = Served::start(&scratch, &[]);
    let client = Client(&served);
    client.post("main", &json!({ "taskDir": dir }));
    // The flow calls it `check-plan`.
    let row = client.until("main", "the check of the plan", |row| row["current_step"] == "check");
    assert_eq!((&row["stall_count"], &row["recovery_count_total"]), (&json!(0), &json!(0)), "{row}");
    hold.release();
    client.until_status("main", "stopped");
    served.end();
}

//! A project that is kept by a server: what is written while nothing runs, by whom, and what a fault leaves behind.

use std::time::{Duration, Instant};

use landfall_api::RunEnded;
use landfall_testkit::ScratchProject;
use serde_json::{Value, json};

use crate::LANDFALL;
use crate::hold_file::HoldFile;
use crate::sandbox::open;
use crate::serve::{Served, outcome, writes};

fn titles(scratch: &ScratchProject) -> Vec<String> {
    let list = scratch.landfall(&["--json", "list"]).json();
    let tasks = list["tasks"].as_array().expect("a list").clone();
    tasks.iter().map(|task| task["title"].as_str().expect("a title").to_owned()).collect()
}

/// What an agent does to steer the server, and where it writes what it was told.
fn steers(scratch: &ScratchProject, marks: &std::path::Path) -> String {
    format!(
        "cd {}; for it in 'add planted' 'cancel T1' 'pair' 'token --agent x'; do LANDFALL_STATE={} {LANDFALL} $it; done >> {} 2>&1; true",
        scratch.project().display(),
        scratch.state().display(),
        marks.display(),
    )
}

#[track_caller]
fn was_refused(scratch: &ScratchProject, marks: &std::path::Path, titles_before: &[&str]) {
    let said = std::fs::read_to_string(marks).expect("it tried");
    assert!(said.matches("an agent at work may not ask the engine").count() >= 4, "{said}");
    assert_eq!(titles(scratch), titles_before, "{said}");
    assert_ne!(scratch.status("T1"), "cancelled", "{said}");
}

#[test]
fn an_agent_that_outlived_its_server_does_not_steer_the_next_one_at_rest() {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = open(&scratch);
    // Where it can reach the server's socket; at a higher level the state folder is not there for it.
    crate::sandbox::run_setting(&scratch, "sandbox = \"write\"");
    let (go, marks, begun) = (folder.join("go"), folder.join("marks"), folder.join("begun"));
    let command = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.05; done; {}; touch {}.done",
        begun.display(),
        go.display(),
        steers(&scratch, &marks),
        marks.display()
    );
    scratch.task("Steers", &format!("run = [\"sh\", \"-c\", {command:?}]\n{}", writes("b.txt")), &[]);
    let mut served = Served::start(&scratch, &["--run"]);
    scratch.eventually("the agent is at work", || begun.exists());
    served.process.kill();
    let next = Served::start(&scratch, &[]);
    std::fs::write(&go, "").expect("ours");
    let done = folder.join("marks.done");
    scratch.eventually("it has tried", || done.exists());
    was_refused(&scratch, &marks, &["Steers"]);
    // A person is let in meanwhile.
    scratch.landfall(&["add", "By a person"]).ok();
    next.end();
}

#[test]
fn an_agent_that_proposes_does_not_steer_the_server_at_rest() {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = open(&scratch);
    // As above.
    crate::sandbox::run_setting(&scratch, "sandbox = \"write\"");
    let marks = folder.join("marks");
    let run = format!("run = [\"sh\", \"-c\", {:?}]", steers(&scratch, &marks));
    scratch.file("plan.toml", &format!("[[iteration]]\n{run}\nsay = \"nothing to propose\"\n"));
    scratch.more_settings("[agent.planner]\nkind = \"script\"\nscript = \"plan.toml\"\n");
    scratch.task("Stays", &writes("b.txt"), &[]);
    let served = Served::start(&scratch, &[]);
    let body = json!({ "goal": "anything", "agent": "planner" }).to_string();
    let (status, said) = served.post("/api/v1/proposals", &body);
    assert_eq!(status, 200, "{said}");
    scratch.eventually("it has tried", || {
        std::fs::read_to_string(&marks).is_ok_and(|said| said.matches("may not ask the engine").count() >= 4)
    });
    was_refused(&scratch, &marks, &["Stays"]);
    served.end();
}

/// Keeps everybody from writing to the journal.
fn shut(scratch: &ScratchProject) -> rusqlite::Connection {
    let journal = rusqlite::Connection::open(scratch.state().join("journal.db")).expect("the journal");
    journal.busy_timeout(Duration::from_secs(20)).expect("patience");
    journal.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
    journal
}

#[test]
fn what_could_not_be_written_at_rest_did_not_happen() {
    let scratch = ScratchProject::new(LANDFALL);
    let served = Served::start(&scratch, &[]);
    scratch.task("Waits", &writes("b.txt"), &[]);
    let journal = shut(&scratch);
    for args in [&["hold", "T1"][..], &["add", "Never"]] {
        let said = scratch.landfall(args);
        assert_ne!(said.code, Some(0), "{args:?}: {}", said.out);
    }
    journal.execute_batch("ROLLBACK").expect("ours");
    drop(journal);
    // The server does not think that it is held, nor that there is another task.
    let gone = scratch.landfall(&["cancel", "T2"]);
    assert!(gone.code != Some(0) && gone.err.contains("T2"), "{gone:?}");
    scratch.landfall(&["hold", "T1"]).ok();
    assert_eq!(scratch.facts("T1", "held").len(), 1, "it is held in the journal too");
    assert_eq!(scratch.task("Next", &writes("c.txt"), &[]), "T2");
    assert_eq!(titles(&scratch), ["Waits", "Next"]);
    served.end();
    // And the journal can be read by whoever comes next.
    assert_eq!(titles(&scratch), ["Waits", "Next"]);
    scratch.landfall(&["doctor"]).ok();
}

#[test]
fn a_served_project_is_cleaned_and_rebuilt_and_written_to_afterwards() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[keep]\nfailed = \"0s\"");
    let served = Served::start(&scratch, &[]);
    scratch.task("Blocked", "signal = \"blocked:no key\"\n[[write]]\npath = \"x\"\ntext = \"y\"\n", &[]);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "blocked");
    scratch.landfall(&["cancel", "T1"]).ok();
    let (status, said) = served.post("/api/v1/reclaim", "{}");
    assert_eq!(status, 200, "{said}");
    let said: Value = serde_json::from_str(&said).expect("json");
    assert!(said["items"].to_string().contains("workspace of T1"), "something was written by it: {said}");
    // The engine that rests knows what was written beside it.
    scratch.landfall(&["add", "After the cleaning"]).ok();
    scratch.landfall(&["hold", "T2"]).ok();
    let (status, said) = served.post("/api/v1/doctor/rebuild", "{}");
    assert_eq!(status, 200, "{said}");
    scratch.landfall(&["add", "After the rebuilding"]).ok();
    assert_eq!(titles(&scratch), ["Blocked", "After the cleaning", "After the rebuilding"]);
    // While a run is under way, neither is done.
    let hold = HoldFile::new(&scratch, "slow");
    let slow = format!("{}{}", hold.line(), writes("c.txt"));
    scratch.task("Slow", &slow, &["--priority", "1"]);
    let (status, said) = served.post("/api/v1/runs", "{}");
    assert_eq!(status, 200, "{said}");
    for target in ["/api/v1/reclaim", "/api/v1/doctor/rebuild"] {
        let (status, said) = served.post(target, "{}");
        assert!(status == 409 && said.contains("a run is under way"), "{target}: {status} {said}");
    }
    hold.release();
    scratch.eventually("it lands", || scratch.status("T4") == "done");
    served.end();
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn a_run_that_nobody_attends_does_not_wait_where_the_project_is_served() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[run]\nslots = 1\nrestarts_max = 0\nfailures_max = 1\n");
    scratch.task("Asks", "signal = \"pending:red or blue?\"", &["--priority", "1"]);
    scratch.task("Fails", "misbehave = \"fail\"\n", &["--priority", "2"]);
    scratch.task("Good", &writes("f3"), &["--priority", "3"]);
    let served = Served::start(&scratch, &[]);
    let began = Instant::now();
    let run = scratch.landfall(&["run", "--non-interactive"]);
    assert_eq!(run.code, Some(9), "{}\n{}", run.out, run.err);
    assert!(began.elapsed() < Duration::from_secs(30));
    // One that is attended pauses after the failure, and waits for somebody to resume it.
    assert_eq!(["T1", "T2", "T3"].map(|task| scratch.status(task)), ["waiting", "failed", "ready"]);
    served.end();
}

#[test]
fn a_fault_of_the_engine_ends_its_run_and_not_the_server() {
    let mut scratch = ScratchProject::new(LANDFALL);
    scratch.task("Lands", &writes("b.txt"), &[]);
    scratch.set("LANDFALL_CRASH", "panic:journal.append.before:2");
    let served = Served::start(&scratch, &[]);
    scratch.unset("LANDFALL_CRASH");
    let (status, said) = served.post("/api/v1/runs", "{}");
    assert_eq!(status, 200, "{said}");
    let ended = outcome(&served.client());
    assert!(matches!(ended.ended, RunEnded::Broken(_)), "{ended:?}");
    assert!(format!("{ended:?}").contains("the engine has a fault"), "{ended:?}");
    // Nothing of what was acknowledged is lost, and the next run goes on from there.
    scratch.landfall(&["add", "Still served", "--draft"]).ok();
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    assert_eq!(scratch.git(&["show", "main:b.txt"]), "here");
    served.end();
    assert_eq!(scratch.left_behind(), []);
}

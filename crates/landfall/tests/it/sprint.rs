//! Sprints from outside: a goal, a choice of tasks, and a report that is honest about a bad night.

use landfall_testkit::ScratchProject;
use serde_json::Value;

use crate::LANDFALL;
use crate::autopilot::writes;
use crate::hold_file::HoldFile;

#[test]
fn a_sprint_reports_what_landed_and_what_did_not() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[run]\nslots = 1\nrestarts_max = 0");
    scratch.task("First", &writes("a.txt.new"), &[]);
    scratch.task("Crashes", "exit = 3", &[]);
    scratch.task("Cannot", "signal = \"blocked:no key\"", &[]);
    scratch.task("Asks", "signal = \"pending:Tabs or spaces?\"", &[]);
    scratch.task("Last", &writes("b.txt"), &[]);
    let said = scratch.landfall(&["sprint", "start", "--no-ready", "--batch-review"]);
    assert_eq!(said.code, Some(8), "some did not land: {}", said.err);
    assert!(
        said.out.contains("S1: 2 of 5 tasks landed, 1 failed, 1 blocked, 1 not finished"),
        "{}",
        said.out
    );

    let report = scratch.landfall(&["sprint", "report"]).ok();
    let commit = scratch.detail("T1")["landed"].as_str().expect("it landed")[..10].to_owned();
    for word in
        [commit.as_str(), "## Did not land", "agent_crashed", "no key", "## Waits for you", "Tabs or spaces?"]
    {
        assert!(report.contains(word), "{word}: {report}");
    }
    assert!(report.contains("T5 Last: has landed, and is to be looked at"), "{report}");
    let status = scratch.landfall(&["sprint", "status"]).ok();
    assert!(status.contains("SPRINT | 2/5 tasks | 2 failed | Until nothing is ready | over"), "{status}");

    let lines = scratch.landfall(&["sprint", "list", "--jsonl"]).ok();
    let record: Value = serde_json::from_str(lines.trim()).expect("one line, one sprint");
    let mut fields: Vec<&str> = record.as_object().expect("an object").keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            "completedTasks",
            "end",
            "endedAt",
            "failedTasks",
            "id",
            "phase",
            "reviewingTasks",
            "settings",
            "startedAt",
            "target",
            "taskStats",
            "totalTasks"
        ]
    );
    assert_eq!(record["target"]["type"], "no_ready");
    assert_eq!((record["totalTasks"].as_u64(), record["completedTasks"].as_u64()), (Some(5), Some(2)));
    let stat = &record["taskStats"][0];
    assert_eq!((stat["taskId"].as_str(), stat["verificationPassed"].as_bool()), (Some("T1"), Some(true)));
    assert!(stat["completedAt"].as_str() > stat["startedAt"].as_str(), "{stat}");
    assert_eq!(record["settings"]["maxIterations"], 50);

    // What a person says of it later is in its record.
    scratch.landfall(&["review", "T1", "approve"]).ok();
    let record = scratch.landfall(&["--json", "sprint", "list"]).json()["sprints"][0].clone();
    assert_eq!(record["taskStats"][0]["reviewDecision"], "approved");
}

#[test]
fn a_sprint_that_pauses_on_an_error_goes_on_in_another_run() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[run]\nslots = 1\nrestarts_max = 0");
    scratch.task("Crashes", "exit = 3", &[]);
    scratch.task("Second", &writes("b.txt"), &[]);
    scratch.task("Other", &writes("c.txt"), &["--tag", "other"]);
    let said =
        scratch.landfall(&["sprint", "start", "--duration", "6h", "--pause-on-error", "--not-tag", "other"]);
    assert_eq!(said.code, Some(9), "{}", said.err);
    assert!(
        said.out.contains("PAUSED: T1 failed") && said.out.contains("landfall sprint resume"),
        "{}",
        said.out
    );
    let open = scratch.landfall(&["sprint", "start", "--count", "1"]);
    assert!(open.code == Some(6) && open.err.contains("S1 is not over"), "{open:?}");

    // Another run is not the sprint's.
    scratch.landfall(&["run", "T3"]).ok();
    let report = scratch.landfall(&["--json", "sprint", "status"]).json();
    assert_eq!((report["phase"].as_str(), report["driven"].as_bool()), (Some("paused"), Some(false)));
    assert_eq!(report["tasks"].as_array().map(Vec::len), Some(1), "{report}");

    let said = scratch.landfall(&["sprint", "resume"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(scratch.status("T2"), "done");
    let report = scratch.landfall(&["--json", "sprint", "status"]).json();
    assert_eq!(report["phase"], "over", "nothing was left that could start: {report}");
    let again = scratch.landfall(&["sprint", "resume"]);
    assert!(again.code == Some(6) && again.err.contains("no sprint is open"), "{again:?}");
}

#[test]
fn a_count_is_a_goal_and_a_checkpoint_is_made_before() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[run]\nslots = 1");
    scratch.task("Zero", &writes("0.txt"), &[]);
    scratch.landfall(&["run"]).ok();
    let before = scratch.git(&["rev-parse", "main"]);
    for number in 1..=6 {
        scratch.task(&format!("Task {number}"), &writes(&format!("{number}.txt")), &[]);
    }
    let said = scratch.landfall(&["--json", "sprint", "start", "--count", "2"]);
    assert_eq!((said.code, said.json()["ended"].as_str()), (Some(0), Some("goal")), "{}", said.err);
    assert_eq!(said.json()["sprint"], "S1");
    let report = scratch.landfall(&["--json", "sprint", "report", "S1"]).json();
    let landed = report["burn_up"].as_array().map_or(0, Vec::len);
    assert!((2..6).contains(&landed), "what was under way is finished, and no more begins: {report}");
    let made = scratch.landfall(&["--json", "checkpoint"]).json()["checkpoints"][0].clone();
    assert_eq!((made["why"].as_str(), made["commit"].as_str()), (Some("sprint"), Some(before.as_str())));
    let none = scratch.landfall(&["sprint", "report", "S7"]);
    assert!(none.code == Some(5) && none.err.contains("S7"), "{none:?}");
}

#[test]
fn a_dry_run_says_what_would_be_in_it_and_begins_nothing() {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = scratch.task("Folder", &writes("a.txt.new"), &["--draft"]);
    scratch.task("Part", &writes("b.txt"), &["--parent", &folder, "--tag", "quick"]);
    scratch.task("Needs it", &writes("c.txt"), &["--parent", &folder, "--needs", "T2"]);
    scratch.task("Other", &writes("d.txt"), &["--tag", "quick"]);
    let seen = |args: &[&str]| {
        let mut all = vec!["--json", "sprint", "start", "--dry-run"];
        all.extend(args);
        let preview = scratch.landfall(&all).json();
        let names = |part: &str| -> Vec<String> {
            let list = preview[part].as_array().expect("a list");
            list.iter().map(|it| it["task"].as_str().expect("an id").to_owned()).collect()
        };
        (names("ready"), names("later"))
    };
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    assert_eq!(seen(&["--no-ready"]), (ids(&["T2", "T4"]), ids(&["T3"])));
    assert_eq!(seen(&["--no-ready", "--parent", "T1"]), (ids(&["T2"]), ids(&["T3"])));
    assert_eq!(seen(&["--count", "1", "--tag", "quick", "--only", "T4"]), (ids(&["T4"]), ids(&[])));
    assert_eq!(seen(&["--no-ready", "--not-tag", "quick"]), (ids(&[]), ids(&["T3"])));
    let none = scratch.landfall(&["sprint", "start", "--dry-run", "--no-ready", "--only", "T9"]);
    assert_eq!(none.code, Some(5), "{none:?}");
    assert!(scratch.log().iter().all(|it| it["kind"] != "run-started" && it["kind"] != "sprint-started"));

    // A time that is past is tomorrow's, and that is said.
    let said = scratch.landfall(&["sprint", "start", "--dry-run", "--until", "00:00"]);
    assert!(said.code == Some(0) && said.err.contains("tomorrow at 00:00"), "{said:?}");
    for bad in [&["--until", "25:00"][..], &["--duration", "soon"], &["--count", "0"], &[]] {
        let mut all = vec!["sprint", "start", "--dry-run"];
        all.extend(bad);
        assert_eq!(scratch.landfall(&all).code, Some(2), "{bad:?}");
    }
}

#[test]
fn a_sprint_is_paused_resumed_and_cancelled_while_it_runs() {
    let scratch = ScratchProject::new(LANDFALL);
    let holds = ["cancel", "pause"].map(|name| HoldFile::new(&scratch, name));
    for number in 1..=8 {
        let hold = &holds[usize::from(number > 1)];
        let script = format!("{}{}", hold.line(), writes(&format!("{number}.txt")));
        scratch.task(&format!("Task {number}"), &script, &[]);
    }
    let mut run = scratch.start(&["sprint", "start", "--duration", "1h", "--slots", "1"]);
    scratch.eventually("a task at work", || scratch.status("T1") == "active");
    let said = scratch.landfall(&["sprint", "cancel"]).ok();
    assert!(said.contains("S1 starts nothing new"), "{said}");
    holds[0].release();
    assert_eq!(run.wait(std::time::Duration::from_secs(30)), Some(0), "{}", scratch.heard());
    let report = scratch.landfall(&["--json", "sprint", "status"]).json();
    assert_eq!(
        (report["phase"].as_str(), report["because"].as_str()),
        (Some("over"), Some("a person ended it"))
    );
    assert_eq!(scratch.status("T8"), "ready");

    let mut run = scratch.start(&["sprint", "start", "--no-ready", "--slots", "1"]);
    scratch.eventually("a sprint", || {
        scratch.landfall(&["--json", "sprint", "status"]).json()["driven"] == true
    });
    scratch.landfall(&["sprint", "pause", "--reason", "lunch"]).ok();
    holds[1].release();
    // Nobody is there to let it go on, so its run ends; the sprint stays open.
    assert_eq!(run.wait(std::time::Duration::from_secs(30)), Some(9), "{}", scratch.heard());
    let status = scratch.landfall(&["status"]).ok();
    assert!(status.contains("S2 SPRINT") && status.contains("PAUSED: lunch"), "{status}");
    let said = scratch.landfall(&["sprint", "cancel"]).ok();
    assert!(said.contains("S2 is over"), "{said}");
    assert!(!scratch.landfall(&["status"]).ok().contains("SPRINT"));
}

#[test]
fn a_sprint_that_no_task_fits_is_refused_with_a_word_of_its_own() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("Another", "signal = \"complete\"\n[[write]]\npath = \"b\"\ntext = \"b\"\n", &[]);
    let refused = scratch.landfall(&["sprint", "start", "--count", "1", "--tag", "nobody-has-it"]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    assert!(refused.err.contains("no task that could be worked on fits this sprint"), "{}", refused.err);
    let list = scratch.landfall(&["--json", "sprint", "list"]).json();
    assert_eq!(list["sprints"].as_array().map(Vec::len), Some(0), "it did not begin: {list}");
}

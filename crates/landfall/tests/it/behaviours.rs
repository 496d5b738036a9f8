//! What a person sees of a night on autopilot: who goes first, who frees a slot, when it pauses, and when a sprint is over.

use std::path::Path;

use landfall_testkit::ScratchProject;
use serde_json::Value;

use crate::LANDFALL;
use crate::autopilot::OnTerminal;
use crate::batches::{fill, held};
use crate::hold_file::HoldFile;
use crate::sandbox::open;

fn writes(name: &str) -> String {
    format!("signal = \"complete\"\n[[write]]\npath = \"{name}\"\ntext = \"{name}\\n\"\n")
}

/// A script that says in a file outside that its turn has come, and then does as `script` says.
fn told(order: &Path, name: &str, script: &str) -> String {
    format!("run = [\"sh\", \"-c\", \"echo {name} >> {}\"]\n{script}", order.display())
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

const FAILS: &str = "misbehave = \"fail\"";

// Slots.

#[test]
fn c16_blocked_and_pending_free_the_slot_and_the_others_go_on() {
    let scratch = ScratchProject::new(LANDFALL);
    let order = open(&scratch).join("order");
    scratch.task(
        "Blocked",
        &told(&order, "blocked", "signal = \"blocked:no network\""),
        &["--priority", "1"],
    );
    let asks = "[[iteration]]\nsignal = \"pending:red or blue?\"\n[[iteration]]\nsignal = \"complete\"\n\
                [[iteration.write]]\npath = \"colour\"\ntext = \"blue\\n\"\n";
    scratch.task("Asks", &told(&order, "asks", asks), &["--priority", "2"]);
    scratch.task("Works", &told(&order, "works", &writes("f3")), &["--priority", "3"]);
    let run = scratch.landfall(&["run", "--slots", "1"]);
    assert_eq!(run.code, Some(8), "{}\n{}", run.out, run.err);
    assert_eq!(lines(&order), ["blocked", "asks", "works"]);
    assert_eq!(["T1", "T2", "T3"].map(|task| scratch.status(task)), ["blocked", "waiting", "done"]);
    assert!(scratch.why("T1").contains("no network"), "{}", scratch.why("T1"));
    // The question is told while the run goes on, and again at its end with what to do about it.
    assert!(run.err.contains("red or blue?"), "{}", run.err);
    assert!(run.out.contains("needs you: T2") && run.out.contains("landfall answer T2"), "{}", run.out);
    let needs = scratch.landfall(&["status"]).ok();
    assert!(needs.contains("red or blue?"), "{needs}");
    scratch.landfall(&["answer", "T2", "blue"]).ok();
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.git(&["show", "main:colour"]), "blue");
    assert!(scratch.prompts("T2")[1].contains("blue"), "{}", scratch.prompts("T2")[1]);
}

// Who goes first.

#[test]
fn who_unblocks_others_goes_first_and_who_was_retried_goes_last() {
    let scratch = ScratchProject::new(LANDFALL);
    let order = open(&scratch).join("order");
    let again = "[[iteration]]\nsignal = \"blocked:not yet\"\n[[iteration]]\nsignal = \"complete\"\n\
                 [[iteration.write]]\npath = \"f1\"\ntext = \"f1\\n\"\n";
    scratch.task("Retried", &told(&order, "retried", again), &[]);
    scratch.landfall(&["run"]);
    scratch.landfall(&["retry", "T1"]).ok();
    std::fs::remove_file(&order).expect("ours");
    scratch.task("Plain", &told(&order, "plain", &writes("f2")), &[]);
    scratch.task("Needed", &told(&order, "needed", &writes("f3")), &[]);
    scratch.task("Quick", &told(&order, "quick", &writes("f4")), &["--tag", "quick-win"]);
    scratch.task("Critical", &told(&order, "critical", &writes("f5")), &["--tag", "critical"]);
    scratch.task("After 1", &told(&order, "after", &writes("f6")), &["--needs", "T3", "--priority", "9"]);
    scratch.task("After 2", &told(&order, "after", &writes("f7")), &["--needs", "T3", "--priority", "9"]);
    scratch.landfall(&["run", "--slots", "1"]).ok();
    // 50, 30, 10 for each of two, nothing, and 15 less.
    assert_eq!(lines(&order), ["critical", "quick", "needed", "plain", "retried", "after", "after"]);
}

// Failures in a row.

#[test]
fn what_is_blocked_does_not_count_as_a_failure_and_what_lands_wipes_the_slate() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[run]\nslots = 1\nrestarts_max = 0\nfailures_max = 3");
    let blocked = "signal = \"blocked:no\"";
    let stories = [FAILS, FAILS, blocked, "ok", FAILS, blocked, FAILS, "ok"];
    for (place, story) in stories.iter().enumerate() {
        let script = if *story == "ok" { writes(&format!("f{place}")) } else { (*story).to_owned() };
        let mut more = vec!["--priority".to_owned(), place.to_string()];
        // It has landed before the next fails; verification takes no slot.
        more.extend((place > 3).then(|| ["--needs".to_owned(), "T4".to_owned()]).into_iter().flatten());
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        scratch.task(&format!("Number {place}"), &script, &more);
    }
    let run = scratch.landfall(&["--json", "run"]);
    assert_eq!(run.code, Some(8), "{}", run.err);
    assert_eq!(run.json()["ended"], "finished", "never three in a row");
    assert_eq!(["T4", "T8"].map(|task| scratch.status(task)), ["done", "done"]);
}

#[test]
fn three_failures_in_a_row_pause_and_a_person_who_is_there_lets_it_go_on() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[run]\nslots = 1\nrestarts_max = 0");
    for place in 1..=3 {
        scratch.task(&format!("Bad {place}"), FAILS, &["--priority", &place.to_string()]);
    }
    scratch.task("Good", &writes("good"), &["--priority", "4"]);
    let mut run = OnTerminal::start(&scratch, &["run"], &[]);
    scratch.eventually("the pause", || scratch.landfall(&["--json", "auto"]).json()["phase"] == "paused");
    let pause = scratch.landfall(&["--json", "auto"]).json()["pause"].clone();
    assert_eq!(pause["why"], "failures", "{pause}");
    assert!(pause["reason"].as_str().is_some_and(|reason| reason.contains("T1, T2, T3")), "{pause}");
    assert_eq!(scratch.status("T4"), "ready");
    assert!(!run.is_over(), "somebody is there, so it waits");
    scratch.landfall(&["resume"]).ok();
    assert_eq!(run.end(&scratch), Some(8), "{}", run.screen());
    assert_eq!(scratch.status("T4"), "done");
}

#[test]
fn without_a_limit_failures_pause_nothing() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[run]\nslots = 1\nrestarts_max = 0\nfailures_max = 0");
    for place in 1..=4 {
        scratch.task(&format!("Bad {place}"), FAILS, &["--priority", &place.to_string()]);
    }
    scratch.task("Good", &writes("good"), &["--priority", "5"]);
    assert_eq!(scratch.landfall(&["run"]).code, Some(8));
    assert_eq!(scratch.status("T5"), "done");
}

#[test]
fn five_runs_without_a_commit_are_told_while_it_goes_on() {
    let scratch = ScratchProject::new(LANDFALL);
    let mut script = String::new();
    for place in 1..=5 {
        script.push_str(&format!("[[iteration]]\nsay = \"thinking, part {place}\"\n"));
    }
    script.push_str(
        "[[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"f1\"\ntext = \"f1\\n\"\n",
    );
    scratch.task("Slow", &script, &[]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    assert!(run.err.contains("5 iterations in a row left no commit"), "{}", run.err);
    assert_eq!(scratch.status("T1"), "done", "a warning is no verdict");
}

// Pauses.

#[test]
fn a_pause_lets_iterations_finish_and_what_they_did_lands_after_it() {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = open(&scratch);
    let (began, go) = (folder.join("began"), folder.join("go"));
    let script = format!(
        "run = [\"sh\", \"-c\", \"touch {}; while [ ! -e {} ]; do sleep 0.02; done\"]\n{}",
        began.display(),
        go.display(),
        writes("f1")
    );
    scratch.task("Under way", &script, &[]);
    scratch.task("Next", &writes("f2"), &[]);
    let mut run = OnTerminal::start(&scratch, &["run", "--slots", "1"], &[]);
    scratch.eventually("the agent", || began.exists());
    scratch.landfall(&["pause", "--reason", "lunch"]).ok();
    std::fs::write(&go, "").expect("ours");
    scratch.eventually("the iteration to end", || !scratch.facts("T1", "iteration-ended").is_empty());
    assert_eq!(scratch.detail("T1")["iterations"], 1, "it was not cut short");
    assert_eq!(scratch.prompts("T2").len(), 0, "nothing new begins");
    scratch.landfall(&["resume"]).ok();
    assert_eq!(run.end(&scratch), Some(0), "{}", run.screen());
    assert_eq!(["T1", "T2"].map(|task| scratch.status(task)), ["done", "done"]);
    assert_eq!(scratch.prompts("T1").len(), 1, "its work was not done twice");
}

// Sprints.

fn record(scratch: &ScratchProject) -> Value {
    let lines = scratch.landfall(&["sprint", "list", "--jsonl"]).ok();
    assert_eq!(lines.lines().count(), 1, "{lines}");
    serde_json::from_str(&lines).expect("a line of JSON")
}

/// More tasks than there is time for, because they wait for a file, and one that is excluded.
fn many() -> (ScratchProject, HoldFile) {
    let scratch = ScratchProject::new(LANDFALL);
    let hold = HoldFile::new(&scratch, "sprint");
    scratch.task("Not this one", &writes("f1"), &["--tag", "risky", "--priority", "0"]);
    for place in 2..=30 {
        let script = format!("{}{}", hold.line(), writes(&format!("f{place}")));
        scratch.task(&format!("Number {place}"), &script, &[]);
    }
    (scratch, hold)
}

/// Tells the story with more and more seconds, until there are enough for two agents to begin. That depends on what else the
/// machine does.
fn with_enough_time(story: impl Fn(u32) -> bool) {
    assert!([3, 12, 48].into_iter().any(story), "no two agents begin in 48 seconds");
}

/// Whether this is in the journal.
fn is_fact(scratch: &ScratchProject, kind: &str) -> bool {
    scratch.log().iter().any(|entry| entry["kind"] == kind)
}

/// Runs a sprint whose first agents wait until `is_time` says so. False: it was over before two of them were at work.
#[track_caller]
fn stopped_in_time(
    scratch: &ScratchProject,
    hold: &HoldFile,
    kind: &str,
    args: &[&str],
    is_time: impl Fn() -> bool,
) -> bool {
    let mut all = vec!["--json", "sprint", "start", "--slots", "2", "--not-tag", "risky"];
    all.extend(args);
    let at_work = || ["T2", "T3"].iter().all(|task| !scratch.facts(task, "iteration-began").is_empty());
    let (run, in_time) = std::thread::scope(|scope| {
        let run = scope.spawn(|| scratch.landfall(&all));
        scratch.eventually("the time to come, or the end", || is_time() || run.is_finished());
        let in_time = at_work();
        hold.release();
        (run.join().expect("it says how it ended"), in_time)
    });
    if !in_time {
        return false;
    }
    assert_eq!((run.code, run.json()["ended"].as_str()), (Some(0), Some("goal")), "{}", run.err);
    let record = record(scratch);
    assert_eq!(
        (record["id"].as_str(), record["target"]["type"].as_str()),
        (Some("S1"), Some(kind)),
        "{record}"
    );
    assert_eq!(record["end"], "goal", "{record}");
    let completed = record["completedTasks"].as_u64().expect("a number");
    assert!((1..29).contains(&completed), "it got somewhere and stopped: {record}");
    assert_eq!(record["taskStats"].as_array().map(|all| all.len() as u64), record["totalTasks"].as_u64());
    assert_eq!(scratch.status("T1"), "ready", "what is excluded is not begun");
    for stat in record["taskStats"].as_array().expect("a list") {
        let task = stat["taskId"].as_str().expect("an id");
        assert_eq!(scratch.status(task), "done", "what was begun is finished: {}", scratch.why(task));
    }
    assert_eq!(scratch.left_behind(), []);
    true
}

#[test]
fn a_sprint_for_a_time_begins_nothing_after_it_and_finishes_what_is_under_way() {
    with_enough_time(|seconds| {
        let (scratch, hold) = many();
        let before = scratch.git(&["rev-parse", "main"]);
        let is_over = || is_fact(&scratch, "sprint-completing");
        let duration = format!("{seconds}s");
        if !stopped_in_time(&scratch, &hold, "duration", &["--duration", &duration], is_over) {
            return false;
        }
        assert_eq!(record(&scratch)["completedTasks"], 2, "those that were under way");
        let made = scratch.landfall(&["--json", "checkpoint"]).json()["checkpoints"].clone();
        let of_the_sprint = |it: &&Value| it["why"] == "sprint";
        let made = made.as_array().and_then(|all| all.iter().find(of_the_sprint).cloned());
        assert_eq!(made.expect("one was made before")["commit"], before, "where the base was before it");
        true
    });
}

#[test]
fn a_sprint_until_a_time_of_day_is_over_then() {
    with_enough_time(|seconds| {
        let (scratch, hold) = many();
        let at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(i64::from(seconds));
        let at = at.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y-%m-%d %H:%M:%S").to_string();
        let is_over = || is_fact(&scratch, "sprint-completing");
        let args = ["--until", &at, "--no-checkpoint"];
        if !stopped_in_time(&scratch, &hold, "until_time", &args, is_over) {
            return false;
        }
        let made = scratch.landfall(&["--json", "checkpoint"]).json()["checkpoints"].clone();
        assert!(made.as_array().is_some_and(|all| all.iter().all(|it| it["why"] != "sprint")), "{made}");
        true
    });
}

#[test]
fn a_sprint_by_count_begins_no_more_than_it_needs() {
    let (scratch, hold) = many();
    let at_work = || ["T2", "T3"].iter().all(|task| !scratch.facts(task, "iteration-began").is_empty());
    assert!(stopped_in_time(&scratch, &hold, "count", &["--count", "3"], at_work));
    let record = record(&scratch);
    assert!(record["completedTasks"].as_u64().is_some_and(|count| (3..=4).contains(&count)), "{record}");
}

#[test]
fn a_sprint_until_nothing_is_ready_ends_when_only_the_excluded_is_left() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("One", &writes("f1"), &[]);
    scratch.task("After it", &writes("f2"), &["--needs", "T1"]);
    scratch.task("Stuck", "signal = \"blocked:no\"", &[]);
    scratch.task("Not this one", &writes("f4"), &["--tag", "risky"]);
    let run = scratch.landfall(&["sprint", "start", "--no-ready", "--not-tag", "risky"]);
    assert_eq!(run.code, Some(8), "{}\n{}", run.out, run.err);
    let record = record(&scratch);
    assert_eq!(
        (record["target"]["type"].as_str(), record["end"].as_str()),
        (Some("no_ready"), Some("nothing-left"))
    );
    assert_eq!(
        (record["completedTasks"].as_u64(), record["failedTasks"].as_u64()),
        (Some(2), Some(1)),
        "{record}"
    );
    assert_eq!(scratch.status("T4"), "ready");
}

// Checks, in the landing queue.

#[test]
fn a_check_that_runs_out_of_time_in_the_queue_is_told_with_its_limit() {
    let scratch = held("batch = 2", "if [ -e f1 ] && [ -e f2 ]; then sleep 300; fi");
    let settings = std::fs::read_to_string(scratch.project().join("landfall.toml")).expect("ours");
    scratch.settings(&settings.replace("timeout = \"20s\"", "timeout = \"8s\""));
    let second = "[[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"f2\"\ntext = \"f2\\n\"\n\
                  [[iteration]]\nsignal = \"blocked:slow\"\n";
    scratch.task("f1", &writes("f1"), &[]);
    scratch.task("f2", second, &[]);
    fill(&scratch, &["T1", "T2"]);
    scratch.landfall(&["queue", "resume"]).ok();
    assert_eq!(scratch.landfall(&["run"]).code, Some(8));
    assert_eq!(["T1", "T2"].map(|task| scratch.status(task)), ["done", "blocked"]);
    assert!(scratch.prompts("T2")[1].contains("TIMEOUT (8s / 8s)"), "{}", scratch.prompts("T2")[1]);
}

#[test]
fn without_checks_work_lands_with_a_warning_that_is_seen() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings("[agent.default]\nkind = \"script\"\n");
    scratch.task("Unproved", &writes("f1"), &[]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    let text = run.out + &run.err + &scratch.landfall(&["show", "T1"]).ok();
    assert!(text.contains("VERIFICATION_EMPTY") || text.contains("no check"), "{text}");
}

// Nobody is there.

#[test]
fn a_run_that_nobody_attends_never_waits_for_a_person() {
    for (name, value, flag) in
        [("CI", "true", None), ("LANDFALL_NON_INTERACTIVE", "1", None), ("X", "", Some("--non-interactive"))]
    {
        let mut scratch = ScratchProject::new(LANDFALL);
        scratch.set(name, value);
        scratch.more_settings(
            "[run]\nslots = 1\nrestarts_max = 0\nfailures_max = 1\n[review]\nmode = \"per-task\"",
        );
        scratch.task("Asks", "signal = \"pending:red or blue?\"", &["--priority", "1"]);
        scratch.task("Reviewed", &writes("f2"), &["--priority", "2"]);
        scratch.task("Fails", FAILS, &["--priority", "3"]);
        scratch.task("Good", &writes("f4"), &["--priority", "4"]);
        let mut args = vec!["run"];
        args.extend(flag);
        let run = scratch.landfall(&args);
        assert_eq!(run.code, Some(9), "{name}: {}\n{}", run.out, run.err);
        assert_eq!(
            ["T1", "T2", "T3", "T4"].map(|task| scratch.status(task)),
            ["waiting", "review", "failed", "ready"],
            "{name}"
        );
    }
}

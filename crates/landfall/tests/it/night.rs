//! A night of 20 tasks in which the engine is killed twice: one report, whose counts add up, the same everywhere.

use std::path::Path;
use std::time::Duration;

use landfall_testkit::ScratchProject;
use serde_json::Value;

use crate::LANDFALL;
use crate::sandbox::{open, open_folder};

const USAGE: &str = "usage = { tokens_in = 900, tokens_out = 100, micro_usd = 10000 }\n";

/// An agent that writes a file of its own; it waits for another file before that, if one is named.
fn works(number: u32, wait: Option<&Path>) -> String {
    let wait = wait.map_or_else(String::new, |go| {
        let wait = format!("while [ ! -e {} ]; do sleep 0.05; done", go.display());
        format!("run = [\"sh\", \"-c\", {wait:?}]\n")
    });
    format!(
        "{USAGE}{wait}signal = \"complete\"\n[[write]]\npath = \"f{number}.txt\"\ntext = \"{number}\\n\"\n"
    )
}

/// 12 tasks that land, two that fail, four behind those, one with a question, one that a person cancels.
fn backlog() -> ScratchProject {
    let mut scratch = ScratchProject::new(LANDFALL);
    scratch.be_patient(Duration::from_secs(120));
    let folder = open(&scratch);
    for number in 1..=12 {
        let go = folder.join(format!("go-{number}"));
        let wait = [5, 9].contains(&number).then_some(go.as_path());
        // The two that wait come after all before them, so that a kill finds some landed and some not begun.
        let needs = match number {
            5 | 9 => "T1,T2,T3,T4".to_owned(),
            6..=8 => "T5".to_owned(),
            10..=12 => "T9".to_owned(),
            _ => String::new(),
        };
        let more = if needs.is_empty() { Vec::new() } else { vec!["--needs", needs.as_str()] };
        scratch.task(&format!("Write {number}"), &works(number, wait), &more);
    }
    let blocked = |why: &str| format!("{USAGE}signal = \"blocked:{why}\"\n");
    scratch.task("Blocked", &blocked("no idea"), &[]); // T13
    scratch.task("Behind it", &works(14, None), &["--needs", "T13"]);
    scratch.task("Behind it too", &works(15, None), &["--needs", "T13"]);
    scratch.task("Behind what is behind it", &works(16, None), &["--needs", "T15"]);
    scratch.task("Asks", &format!("{USAGE}signal = \"pending:tabs or spaces?\"\n"), &[]); // T17
    scratch.task("Blocked as well", &blocked("no way"), &[]); // T18
    scratch.task("Wanted no more", &works(19, None), &["--needs", "T9"]);
    scratch.task("Behind the question", &works(20, None), &["--needs", "T17"]);
    scratch
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is a number"))
}

#[test]
fn a_night_of_20_tasks_with_two_kills_has_one_report_that_adds_up() {
    let scratch = backlog();
    let folder = open_folder(&scratch);
    let is_done = |task: &str| scratch.status(task) == "done";
    let begun = |task: &str| !scratch.facts(task, "iteration-began").is_empty();

    let mut first = scratch.start(&["run", "--slots", "3"]);
    scratch.eventually("the first tasks to land", || ["T1", "T2", "T3", "T4"].into_iter().all(is_done));
    scratch.eventually("T5 to be worked on", || begun("T5"));
    first.kill();
    let status = scratch.landfall(&["status"]).ok();
    assert!(status.contains("the engine of R1 is gone"), "{status}");
    scratch.landfall(&["cancel", "T19"]).ok();

    let mut second = scratch.start(&["run", "--slots", "3"]);
    std::fs::write(folder.join("go-5"), "").expect("a file can be written");
    scratch.eventually("T6 to T8 to land", || ["T6", "T7", "T8"].into_iter().all(is_done));
    scratch.eventually("T9 to be worked on", || begun("T9"));
    second.kill();

    std::fs::write(folder.join("go-9"), "").expect("a file can be written");
    let last = scratch.landfall(&["run", "--slots", "3"]);
    assert!(last.out.contains("R1: 12 of 20 tasks landed"), "{}{}", last.out, last.err);

    // One report, under the number of the first run and under those of the engines that took over.
    let report = scratch.landfall(&["--json", "report"]).json();
    for run in ["R1", "R2", "R3"] {
        let same = scratch.landfall(&["--json", "report", run]).json();
        assert_eq!(same["run"]["run"]["run"], "R1", "{run}");
        assert_eq!(same["run"]["run"]["counts"], report["run"]["run"]["counts"], "{run}");
    }
    let run = &report["run"]["run"];
    assert_eq!(run["taken_over_by"], serde_json::json!(["R2", "R3"]));
    let count = |name: &str| number(&run["counts"][name]);
    for (name, expected) in [("landed", 12), ("failed", 2), ("behind", 4), ("needs_you", 1), ("cancelled", 1)]
    {
        assert_eq!(count(name), expected, "{name}: {report:#}");
    }
    let all: u64 = run["counts"].as_object().expect("counts").values().map(number).sum();
    assert_eq!(all, 20, "{report:#}");
    assert_eq!(report["run"]["tasks"].as_array().map(Vec::len), Some(20), "{report:#}");
    assert_eq!(number(&run["engines_lost"]), 2);
    assert!(number(&run["down_ms"]) > 0 && run["paused_ms"] == 0, "{run:#}");

    // What was used is what the journal says, once.
    let ended = scratch.log().into_iter().filter(|entry| entry["kind"] == "iteration-ended").count() as u64;
    let tokens = number(&run["usage"]["tokens_in"]) + number(&run["usage"]["tokens_out"]);
    let of_tasks: u64 = (report["run"]["tasks"].as_array().into_iter().flatten())
        .map(|task| number(&task["iterations"]))
        .sum();
    assert_eq!(of_tasks, ended, "{report:#}");
    assert!(tokens <= ended * 1_000 && tokens >= 12_000, "{tokens} tokens of {ended} iterations");
    let behind: Vec<&str> = (report["run"]["tasks"].as_array().into_iter().flatten())
        .filter_map(|task| task["behind"].as_str())
        .collect();
    assert_eq!(behind, ["T13", "T13", "T13", "T17"]);

    // For people: the same figures on the terminal and in the file.
    let text = scratch.landfall(&["report"]).ok();
    let file = std::fs::read_to_string(scratch.state().join("papers/R1.md")).unwrap_or_default();
    for wanted in ["12 of 20 tasks landed", "2 failed or blocked", "4 stuck behind others", "killed"] {
        assert!(text.contains(wanted), "{wanted}: {text}");
        assert!(file.contains(wanted), "{wanted}: {file}");
    }
}

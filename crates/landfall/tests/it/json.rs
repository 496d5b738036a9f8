//! `--json`: every command, its answers and its errors.

use landfall_api::{FlowChecked, FlowDrawing, FlowList, Health, LogPage, Reclaimed};
use serde_json::Value;

use crate::support::TestEnvironment;

#[test]
fn every_answer_is_one_line_of_json() {
    let place = TestEnvironment::new();
    place.add(&["one"]);
    for args in [
        &["list"][..],
        &["show", "T1"],
        &["why", "T1"],
        &["status"],
        &["inbox"],
        &["graph"],
        &["stats"],
        &["log"],
        &["flow", "list"],
        &["flow", "show", "loop"],
        &["export"],
        &["doctor"],
        &["reclaim", "--dry-run"],
        &["completions", "bash"],
    ] {
        let said = place.landfall(&[args, &["--json"]].concat());
        assert!(matches!(said.code, Some(0 | 10)), "{args:?}: {said:?}");
        assert_eq!(said.out.trim_end().lines().count(), 1, "{args:?}: {}", said.out);
        let value: Value =
            serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{args:?}: {error}"));
        assert!(value.is_object(), "{args:?}: {value}");
    }
}

#[test]
fn errors_are_json_on_stderr() {
    let place = TestEnvironment::new();
    for (args, exit, word, problem) in [
        (&["why", "T9"][..], 5, "unknown-thing", Value::from("unknown-task")),
        (&["frobnicate"], 2, "usage", Value::Null),
        (&["add", "x", "--flow", "none"], 5, "unknown-thing", Value::from("unknown-flow")),
    ] {
        let said = place.landfall(&[&["--json"], args].concat());
        assert_eq!((said.code, said.out.as_str()), (Some(exit), ""), "{said:?}");
        let error: Value = serde_json::from_str(&said.err).unwrap_or_else(|_| panic!("{said:?}"));
        assert_eq!(error["error"]["exit"], exit);
        assert_eq!(error["error"]["word"], word);
        assert_eq!(error["error"]["problem"], problem);
        assert!(error["error"]["message"].is_string() && error["error"]["hint"].is_string(), "{error}");
    }
}

#[test]
fn what_a_terminal_would_obey_is_escaped_and_means_the_same() {
    let place = TestEnvironment::new();
    let body = "\u{1b}[31mred\u{9b}2J \u{202e}txt";
    place.add(&["plain \u{202e}desrever", "--body", body]);
    let said = place.landfall(&["--json", "show", "T1"]).works();
    assert!(!said.out.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{}", said.out);
    let value: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(value["body"], body);
    let text = place.landfall(&["show", "T1"]).works().out + &place.landfall(&["list"]).works().out;
    assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{text}");
    assert!(text.contains("\\u{1b}[31mred\\u{9b}2J \\u{202e}txt"), "{text}");
}

#[test]
fn flows_doctor_and_reclaim_answer() {
    let place = TestEnvironment::new();
    place.add(&["one"]);
    let flows: FlowList = place.json(&["flow", "list"]);
    assert!(flows.flows.iter().any(|flow| flow.name == "loop" && flow.default), "{flows:?}");
    for flow in &flows.flows {
        let drawing: FlowDrawing = place.json(&["flow", "show", &flow.name, "--mermaid"]);
        assert!(drawing.text.contains("-->"), "{drawing:?}");
        let text = place.landfall(&["flow", "show", &flow.name]).works().out;
        assert!(flow.steps.iter().all(|step| text.contains(step.as_str())), "{text}");
    }
    place.write("empty.toml", "");
    let said = place.landfall(&["--json", "flow", "check", "empty.toml"]);
    let checked: FlowChecked = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!((said.code, checked.problems.is_empty()), (Some(4), false), "{said:?}");
    let health: Health = serde_json::from_str(&place.landfall(&["--json", "doctor"]).out).expect("JSON");
    assert!(!health.checks.is_empty());
    let reclaimed: Reclaimed = place.json(&["reclaim", "--dry-run"]);
    assert!(reclaimed.dry_run);
    place.landfall(&["doctor", "--rebuild"]).works();
    let log: LogPage = place.json(&["log"]);
    assert!(!log.entries.is_empty(), "the journal is never changed");
}

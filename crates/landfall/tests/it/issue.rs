//! `landfall issue`: by files and by a GitHub of ours, the same words do the same.

use std::fs;

use landfall_testkit::{CommandOutput, FAKE_TOKEN, FakeGithub, ScratchProject};
use serde_json::{Value, json};

use crate::LANDFALL;
use crate::both::SHORT_WAITS;
use crate::serve::Served;

fn with_github(fake: &FakeGithub) -> ScratchProject {
    let mut scratch = ScratchProject::new(LANDFALL);
    scratch.settings(&format!(
        "[tracker]\nkind = \"github\"\nrepository = \"o/r\"\nurl = \"{}\"\n{SHORT_WAITS}",
        fake.url()
    ));
    scratch.set("GH_ENTERPRISE_TOKEN", FAKE_TOKEN);
    scratch
}

fn issue(scratch: &ScratchProject, args: &[&str]) -> CommandOutput {
    scratch.landfall(&[&["issue"], args].concat())
}

fn json_of(scratch: &ScratchProject, args: &[&str]) -> Value {
    scratch.landfall(&[&["--json", "issue"], args].concat()).json()
}

/// A day with issues: what a person does, and what is there then.
fn check_a_day_with_issues(scratch: &ScratchProject) {
    let empty = issue(scratch, &["list"]);
    assert!(empty.err.contains("`landfall issue new"), "{}", empty.err);
    assert_eq!(empty.ok(), "");
    assert_eq!(
        issue(scratch, &["new", "Read tabs", "--label", "triaged", "--size", "xl"]).ok(),
        "#1 Read tabs\n"
    );
    let body = scratch.landfall_with(
        &["issue", "new", "Split lines", "--parent", "1", "--body-file", "-"],
        b"two\nlines\n",
    );
    assert_eq!(body.ok(), "#2 Split lines\n");
    let third = issue(
        scratch,
        &["new", "Join them", "--parent", "#1", "--blocked-by", "2", "--size", "S", "--body", "x"],
    );
    assert_eq!(third.ok(), "#3 Join them\n");

    let list = json_of(scratch, &["list"]);
    let numbers: Vec<_> =
        list["issues"].as_array().expect("a list").iter().map(|it| it["number"].clone()).collect();
    assert_eq!(numbers, [3, 2, 1], "newest first");
    assert_eq!(json_of(scratch, &["list", "--label", "triaged"])["issues"].as_array().map(Vec::len), Some(1));
    let whole = json_of(scratch, &["show", "1"]);
    assert_eq!((&whole["issue"]["size"], &whole["issue"]["state"]), (&json!("XL"), &json!("open")));
    let parts: Vec<_> =
        whole["children"].as_array().expect("parts").iter().map(|it| it["number"].clone()).collect();
    assert_eq!(parts, [2, 3]);
    assert_eq!(
        json_of(scratch, &["show", "2"])["body"],
        "two\nlines",
        "the marker is ours, not the person's"
    );
    assert_eq!(json_of(scratch, &["show", "3"])["blocked_by"], json!([{ "issue": "#2", "open": true }]));

    // What is said twice is meant twice.
    for _ in 0..2 {
        assert_eq!(
            issue(scratch, &["comment", "2", "Tabs", "count", "as", "8."]).ok(),
            "#2 has one comment more\n"
        );
    }
    assert_eq!(issue(scratch, &["close", "2"]).ok(), "#2 is closed as done\n");
    assert_eq!(issue(scratch, &["close", "3", "--not-planned"]).ok(), "#3 is closed as not planned\n");
    let shown = json_of(scratch, &["show", "2"]);
    assert_eq!(
        (&shown["issue"]["state"], &shown["comments"][1]["body"]),
        (&json!("done"), &json!("Tabs count as 8."))
    );
    assert_eq!(json_of(scratch, &["list"])["issues"].as_array().map(Vec::len), Some(1));
    assert_eq!(json_of(scratch, &["list", "--all"])["issues"][0]["state"], "not-planned");
    assert_eq!(issue(scratch, &["reopen", "3"]).ok(), "#3 is open\n");
    let said = issue(scratch, &["label", "3", "--add", "phase/ready", "--remove", "size/S"]).ok();
    assert_eq!(said, "#3 has the labels phase/ready\n");
    assert_eq!(issue(scratch, &["size", "3", "m"]).ok(), "#3 has the size M\n");
    assert_eq!(json_of(scratch, &["show", "3"])["issue"]["labels"], json!(["phase/ready", "size/M"]));
    let edited = issue(
        scratch,
        &[
            "edit",
            "3",
            "--title",
            "Join the lines",
            "--body",
            "- [ ] first\n- [ ] second\n",
            "--size",
            "l",
            "--label",
            "bug",
            "--unlabel",
            "phase/ready",
        ],
    );
    assert_eq!(edited.ok(), "#3 has a new title, a new text, the size L, the labels bug, size/L\n");
    let shown = json_of(scratch, &["show", "3"]);
    assert_eq!(
        (&shown["issue"]["title"], &shown["body"], &shown["issue"]["labels"]),
        (&json!("Join the lines"), &json!("- [ ] first\n- [ ] second"), &json!(["bug", "size/L"]))
    );
    assert_eq!(issue(scratch, &["tick", "3", "2"]).ok(), "#3: \"second\" is ticked; 1 open box left\n");
    assert_eq!(issue(scratch, &["tick", "3", "first"]).ok(), "#3: \"first\" is ticked; 0 open boxes left\n");
    assert_eq!(
        issue(scratch, &["tick", "#3", "2", "--untick"]).ok(),
        "#3: \"second\" is open; 1 open box left\n"
    );
    assert_eq!(json_of(scratch, &["show", "3"])["body"], "- [x] first\n- [ ] second");
    let third = issue(scratch, &["tick", "3", "third"]);
    assert!(third.code == Some(2) && third.err.contains("1. first; 2. second"), "{}", third.err);
    assert_eq!(
        issue(scratch, &["edit", "3", "--unblock", "2", "--blocked-by", "1"]).ok(),
        "#3 waits for #1\n"
    );
    assert_eq!(json_of(scratch, &["show", "3"])["blocked_by"], json!([{ "issue": "#1", "open": true }]));
    assert_eq!(issue(scratch, &["edit", "3", "--unblock", "1"]).ok(), "#3 waits for nothing\n");
    let none = issue(scratch, &["edit", "3", "--title", "Split them", "--unblock", "99"]);
    assert!(none.code != Some(0) && none.err.contains("#99"), "{}", none.err);
    assert_eq!(json_of(scratch, &["show", "3"])["issue"]["title"], "Join the lines", "nothing is half done");
    issue(scratch, &["edit", "3", "--title", "Join them"]).ok();
    let text = issue(scratch, &["show", "1"]).ok();
    for words in
        ["#1 Read tabs\nopen, size XL, by ", "labels: triaged", "[x] #2 Split lines", "[ ] #3 Join them"]
    {
        assert!(text.contains(words), "{words} in {text}");
    }

    let unknown = issue(scratch, &["show", "99"]);
    assert_eq!(unknown.code, Some(5), "{}", unknown.err);
    assert!(unknown.err.contains("not found"), "{}", unknown.err);
    for args in [
        &["show", "0"][..],
        &["show", "x"],
        &["show", "+1"],
        &["new", ""],
        &["new", "x", "--label", "a,b"],
        &["label", "1"],
        &["size", "1", "XXL"],
        &["comment", "1", " "],
        &["edit", "1"],
        &["edit", "1", "--title", " "],
        &["edit", "1", "--label", "a,b"],
        &["tick", "1", "1"],
    ] {
        let refused = issue(scratch, args);
        assert_eq!(refused.code, Some(2), "{args:?}: {}", refused.err);
    }
    assert_eq!(
        json_of(scratch, &["list", "--all"])["issues"].as_array().map(Vec::len),
        Some(3),
        "nothing was made"
    );
}

#[test]
fn issues_are_files_where_nobody_says_otherwise() {
    let scratch = ScratchProject::new(LANDFALL);
    check_a_day_with_issues(&scratch);
    assert!(scratch.state().join("issues/1.md").is_file(), "beside the state, where no agent writes");
    assert_eq!(scratch.git(&["status", "--porcelain"]), "", "and not in the checkout");
}

#[test]
fn issues_on_github_answer_to_the_same_words() {
    let fake = FakeGithub::start();
    let scratch = with_github(&fake);
    check_a_day_with_issues(&scratch);
    assert_eq!(fake.world(|world| world.issues[&1].children.clone()), [2, 3]);
    assert_eq!(fake.world(|world| world.issues[&2].comments.len()), 2);
}

#[test]
fn text_of_others_reaches_no_terminal_as_it_is() {
    let fake = FakeGithub::start();
    let scratch = with_github(&fake);
    issue(&scratch, &["new", "plain"]).ok();
    fake.world(|world| {
        let it = world.issues.get_mut(&1).expect("it is there");
        it.title = "\u{1b}]0;owned\u{7}\u{202e}txt".to_owned();
        it.body = Some("\u{1b}[2Jgone\r\n- [ ] a".to_owned());
    });
    for args in [&["list"][..], &["show", "1"]] {
        let said = issue(&scratch, args);
        assert!(!said.out.contains(['\u{1b}', '\u{7}', '\u{202e}', '\r']), "{:?}", said.out);
        assert!(said.out.contains("owned"), "{:?}", said.out);
    }
}

#[test]
fn a_token_that_is_not_taken_is_said_and_shown_nowhere() {
    let fake = FakeGithub::start();
    let mut scratch = with_github(&fake);
    let file = scratch.root().join("token");
    fs::write(&file, "wrong-secret-token\n").expect("written");
    scratch.more_settings(&format!("token_file = {file:?}\n"));
    let refused = issue(&scratch, &["list"]);
    assert_eq!(refused.code, Some(6), "{}", refused.err);
    assert!(refused.err.contains("does not know us") && refused.err.contains("hint: "), "{}", refused.err);
    assert!(!refused.err.contains("secret-token"), "{}", refused.err);
    let doctor = scratch.landfall(&["doctor"]);
    assert!(
        doctor.out.contains(&format!("tracker: github: o/r on {}, with the token of", &fake.url()[7..])),
        "{}",
        doctor.out
    );
    assert!(!doctor.out.contains("secret-token"), "{}", doctor.out);
    fs::write(&file, FAKE_TOKEN).expect("written");
    issue(&scratch, &["list"]).ok();
    // Nobody has one: where to put it is said.
    scratch.settings(&format!(
        "[tracker]\nkind = \"github\"\nrepository = \"o/r\"\nurl = \"{}\"\n{SHORT_WAITS}",
        fake.url()
    ));
    scratch.unset("GH_ENTERPRISE_TOKEN");
    let none = issue(&scratch, &["list"]);
    assert!(none.code == Some(6) && none.err.contains("GH_ENTERPRISE_TOKEN"), "{}", none.err);
    let doctor = scratch.landfall(&["doctor"]);
    assert!(
        doctor.out.contains("BAD   tracker: ") && doctor.out.contains("there is no token"),
        "{}",
        doctor.out
    );
}

#[test]
fn without_a_tracker_or_a_repository_settings_are_named() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings("[tracker]\nkind = \"none\"\n");
    let none = issue(&scratch, &["list"]);
    assert_eq!(none.code, Some(4), "{}", none.err);
    assert!(none.err.contains("`tracker.kind` in landfall.toml is `none`"), "{}", none.err);
    scratch.settings("[tracker]\nkind = \"github\"\n");
    let lost = issue(&scratch, &["list"]);
    assert_eq!(lost.code, Some(4), "{}", lost.err);
    assert!(
        lost.err.contains("no remote `origin`") && lost.err.contains("tracker.repository"),
        "{}",
        lost.err
    );
}

#[test]
fn settings_of_another_tool_are_taken_over_with_a_line_about_it() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.file(".wholework.yml", "spec-path: specs\npermission-mode: auto\nverify-max-iterations: many\n");
    let doctor = scratch.landfall(&["doctor"]).out;
    for words in [
        "ok    tracker: local: ",
        "ok    settings of another tool: .wholework.yml: taken over: spec-path → tracker.spec_path; \
         without a counterpart here: permission-mode\n",
        "warn  settings of another tool: .wholework.yml:3: `verify-max-iterations`: `many` is not a whole number",
    ] {
        assert!(doctor.contains(words), "{words} in {doctor}");
    }
}

/// What GitHub sends about issue 7 of `o/r`, and its signature with `hook-secret`.
const DELIVERY: &str = r#"{"action":"labeled","issue":{"number":7},"repository":{"full_name":"o/r"}}"#;
const SIGNATURE: &str = "sha256=128e98a38e76f263be6a1376c80a26887561a06fc61ec56d777462899d9e0e5c";

#[test]
fn a_webhook_is_heard_if_it_is_signed_and_leaves_a_mark_once() {
    let scratch = ScratchProject::new(LANDFALL);
    let secret = scratch.root().join("secret");
    fs::write(&secret, "hook-secret\n").expect("written");
    scratch.settings("[tracker]\nkind = \"github\"\nrepository = \"o/r\"\n");
    let served = Served::start(&scratch, &[]);
    let send = |to: &str, id: &str, signature: &str| {
        let headers = format!(
            "X-GitHub-Event: issues\r\nX-GitHub-Delivery: {id}\r\nX-Hub-Signature-256: {signature}\r\nContent-Type: application/json\r\n"
        );
        served.ask("POST", to, &headers, DELIVERY).0
    };
    let mark = scratch.state().join("nudges/issue-7");
    assert_eq!(send("/hooks/github", "1", SIGNATURE), 404, "nobody set one up");
    scratch.settings(&format!(
        "[tracker]\nkind = \"github\"\nrepository = \"o/r\"\nwebhook_secret_file = {secret:?}\n"
    ));
    let forged = format!("sha256={}", "0".repeat(64));
    assert_eq!(send("/hooks/github", "1", SIGNATURE), 424, "nobody has trusted that file");
    scratch.trust();
    assert_eq!(send("/hooks/github", "1", &forged), 403);
    assert_eq!(send("/hooks/github", "1", ""), 403);
    assert_eq!(send("/hooks/local", "1", SIGNATURE), 404, "this is another tracker");
    assert!(!mark.exists(), "what is not believed leaves nothing");
    assert_eq!(send("/hooks/github", "1", SIGNATURE), 200, "a forged one did not use its id up");
    assert!(mark.exists());
    fs::remove_file(&mark).expect("whoever polls takes it");
    assert_eq!(send("/hooks/github", "1", SIGNATURE), 200);
    assert!(!mark.exists(), "the same one again is nothing new");
    assert_eq!(send("/hooks/github", "2", SIGNATURE), 200);
    assert!(mark.exists());
    served.end();
}

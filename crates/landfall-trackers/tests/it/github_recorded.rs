//! Answers that GitHub really gave, from `fixtures/github/recorded`, read by the adapter.

use std::path::Path;

use landfall_testkit::GithubFault;
use landfall_trackers::tracker::{
    ChecksSum, CommitSha, Conclusion, CreateOutcome, ForgeCheckState, IssueFilter, LabelSpec, Tracker,
    TrackerError, sum_checks,
};
use serde_json::Value;

use crate::world::{Fake, fake, label, labels, new_issue};

/// The answers of a scenario, in their order, each with the method and path of its request.
fn recorded(scenario: &str) -> Vec<(String, String, GithubFault)> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/github/recorded/{scenario}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let all: Vec<Value> = serde_json::from_str(&text).expect("a list");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let one = |it: &Value| {
        let kept = it["headers"].as_object().expect("headers").iter();
        // The fake says what the body is by itself.
        let headers =
            kept.filter(|(name, _)| *name != "content-type").map(|(name, value)| (name.clone(), text(value)));
        let status = it["status"].as_u64().and_then(|it| u16::try_from(it).ok()).expect("a status");
        let recorded =
            GithubFault::Recorded { status, headers: headers.collect(), body: it["response"].clone() };
        (text(&it["method"]), text(&it["path"]), recorded)
    };
    all.iter().map(one).collect()
}

/// Has the fake answer the next request of this kind as GitHub answered the given one of a scenario.
fn play(it: &Fake, method: &'static str, ending: &str, scenario: &str, index: usize) {
    let (recorded_method, _, answer) = recorded(scenario).swap_remove(index);
    assert_eq!(recorded_method, method, "{scenario} {index}");
    it.fake.fault(method, ending, 1, answer);
}

#[test]
fn a_list_is_followed_over_its_pages() {
    let it = fake();
    for (index, (_, path, _)) in recorded("paginate-issues").iter().enumerate() {
        let ending = if path.starts_with("/repositories/") {
            "/repositories/1000/issues"
        } else {
            "/repos/o/r/issues"
        };
        play(&it, "GET", ending, "paginate-issues", index);
    }
    let filter = IssueFilter { only_open: true, labels: [].into(), most: 100 };
    let issues = it.github.list_issues(&filter).expect("a list");
    let numbers: Vec<u64> = issues.iter().map(|issue| issue.number.get()).collect();
    assert_eq!(numbers, (1..=13).rev().collect::<Vec<_>>());
    assert_eq!(issues[0].author.as_deref(), Some("octokit-fixture-user-a"));
}

#[test]
fn a_renamed_repository_is_named() {
    let it = fake();
    play(&it, "GET", "/repos/o/r", "rename-repository", 1);
    play(&it, "GET", "/repositories/1000", "rename-repository", 2);
    let error = it.github.default_branch().expect_err("it was renamed");
    let to = "octokit-fixture-org/rename-repository-newname".to_owned();
    assert_eq!(error, TrackerError::Moved { what: "read about o/r".to_owned(), to });
}

#[test]
fn another_repository_is_not_taken_for_ours() {
    let it = fake();
    play(&it, "GET", "/repos/o/r", "get-repository", 0);
    let error = it.github.default_branch().expect_err("it is another");
    assert!(
        matches!(&error, TrackerError::Moved { to, .. } if to == "octokit-fixture-org/hello-world"),
        "{error:?}"
    );
}

#[test]
fn labels_are_read_and_made() {
    let spec =
        |text: &str| LabelSpec { label: label(text), colour: [0x66, 0x33, 0x99], about: String::new() };
    let it = fake();
    play(&it, "GET", "/labels", "labels", 0);
    play(&it, "POST", "/labels", "labels", 1);
    it.github.ensure_labels(&[spec("bug"), spec("test-label")]).expect("they are there");
    assert_eq!(it.fake.count("POST", "/labels"), 1);
    // Somebody was faster: it is refused, looked for and found.
    play(&it, "POST", "/labels", "errors", 0);
    play(&it, "GET", "/labels/test-label", "labels", 2);
    it.github.ensure_labels(&[spec("test-label")]).expect("it is there");
    // Refused, and not there.
    play(&it, "POST", "/labels", "errors", 0);
    let error = it.github.ensure_labels(&[spec("other")]).expect_err("refused");
    assert!(
        matches!(&error, TrackerError::Refused { why, .. } if why == "Validation Failed: color invalid"),
        "{error:?}"
    );
}

#[test]
fn an_issue_is_made_and_labelled() {
    let it = fake();
    play(&it, "POST", "/issues", "add-labels-to-issue", 0);
    let CreateOutcome::Made(issue) = it.github.create_issue(&new_issue("a", "t", "b")).expect("made") else {
        panic!("made")
    };
    assert_eq!((issue.number.get(), issue.title.as_str()), (1, "Issue without a label"));
    it.fake.world(|world| world.opened("the same", "", &[]));
    play(&it, "POST", "/labels", "add-labels-to-issue", 1);
    it.github.change_labels(issue.number, &labels(["Foo"]), &[].into()).expect("labelled");
}

#[test]
fn a_commit_has_its_statuses() {
    let it = fake();
    play(&it, "GET", "/status", "create-status", 3);
    let commit = CommitSha::new("0000000000000000000000000000000000000001").expect("a commit");
    let checks = it.github.list_checks(&commit).expect("checks");
    assert_eq!(sum_checks(&checks), ChecksSum::Failed);
    assert!(
        checks.iter().any(|check| check.state == ForgeCheckState::Done(Conclusion::Failure)),
        "{checks:?}"
    );
}

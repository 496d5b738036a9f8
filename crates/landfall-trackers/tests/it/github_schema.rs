//! GitHub's own description of its API, which is no part of this repository: `cargo xtask github` fetches it and says where it is.
//!
//! Every request we send is one it describes, every answer of the fake has its shapes, and every answer it shows or allows is one
//! we can read.

use std::collections::BTreeSet;
use std::path::Path;

use landfall_model::{TaskSize, Timestamp};
use landfall_testkit::{FakeCheck, FakeJob, GithubFault, skip_test};
use landfall_trackers::github::Github;
use landfall_trackers::tracker::{
    CloseReason, CommitSha, Cursor, IssueFilter, IssueTextEdit, LabelSpec, NewPullRequest, NewReview,
    PHASE_FAMILY, PrNumber, PullRequestMerge, ReviewAction, Title, Tracker, TrackerBranchName, TrackerError,
    TrackerResult,
};

use crate::schema::{Description, Sample};
use crate::world::{Fake, fake, label, labels, make, marker, new_issue, number};

/// Everything the adapter asks of REST: method, the operation's name, the end of the path.
const OPERATIONS: &[(&str, &str)] = &[
    ("users/get-authenticated", "GET"),
    ("repos/get", "GET"),
    ("issues/list-for-repo", "GET"),
    ("issues/create", "POST"),
    ("issues/get", "GET"),
    ("issues/update", "PATCH"),
    ("issues/list-events", "GET"),
    ("issues/list-comments", "GET"),
    ("issues/create-comment", "POST"),
    ("issues/delete-comment", "DELETE"),
    ("issues/list-labels-on-issue", "GET"),
    ("issues/add-labels", "POST"),
    ("issues/remove-label", "DELETE"),
    ("issues/list-labels-for-repo", "GET"),
    ("issues/create-label", "POST"),
    ("issues/get-label", "GET"),
    ("issues/list-sub-issues", "GET"),
    ("issues/add-sub-issue", "POST"),
    ("issues/get-parent", "GET"),
    ("issues/list-dependencies-blocked-by", "GET"),
    ("issues/add-blocked-by-dependency", "POST"),
    ("issues/remove-dependency-blocked-by", "DELETE"),
    ("pulls/list", "GET"),
    ("pulls/create", "POST"),
    ("pulls/get", "GET"),
    ("pulls/update", "PATCH"),
    ("pulls/merge", "PUT"),
    ("pulls/list-reviews", "GET"),
    ("pulls/create-review", "POST"),
    ("checks/list-for-ref", "GET"),
    ("checks/list-annotations", "GET"),
    ("actions/list-workflow-runs-for-repo", "GET"),
    ("actions/get-workflow-run", "GET"),
    ("actions/list-jobs-for-workflow-run", "GET"),
    ("actions/re-run-workflow-failed-jobs", "POST"),
    ("repos/get-combined-status-for-ref", "GET"),
];

/// GitHub's own description of its API; none where `cargo xtask test` could not fetch it.
fn description() -> Option<Description> {
    let path = std::env::var_os("LANDFALL_GITHUB_API");
    if path.is_none() {
        skip_test("GitHub's API description is not there; `cargo xtask test` fetches it");
    }
    Some(Description::read(Path::new(&path?)))
}

fn sha(digit: char) -> CommitSha {
    CommitSha::new(&digit.to_string().repeat(40)).expect("a commit")
}

fn branch(name: &str) -> TrackerBranchName {
    TrackerBranchName::new(name).expect("a branch")
}

fn pull() -> NewPullRequest {
    NewPullRequest {
        head: branch("work"),
        head_sha: sha('a'),
        base: branch("main"),
        title: Title::from_text("a change"),
        body: "why".to_owned(),
        draft: true,
    }
}

fn review(key: &str, says: ReviewAction) -> NewReview {
    NewReview { marker: marker(key), says, body: "text".to_owned(), commit: sha('a') }
}

fn merge() -> PullRequestMerge {
    PullRequestMerge {
        expected: sha('a'),
        subject: Title::from_text("t"),
        body: "b".to_owned(),
        landed: None,
    }
}

fn all() -> IssueFilter {
    IssueFilter { only_open: false, labels: labels(["triaged"]), most: 500 }
}

fn spec(text: &str) -> LabelSpec {
    LabelSpec { label: label(text), colour: [255, 0, 16], about: "x".repeat(200) }
}

/// Does everything a tracker can, so that every kind of request is sent.
fn everything(it: &Fake) {
    let github = &it.github;
    it.fake.world(|world| {
        world.branches.insert("work".to_owned(), "a".repeat(40));
        let check = FakeCheck { name: "a".to_owned(), status: "queued".to_owned(), conclusion: None };
        world.checks.insert("a".repeat(40), vec![check]);
        world.checks.insert("b".repeat(40), vec![FakeCheck::over("b", "failure")]);
        let remarks = vec!["it broke".to_owned()];
        let job = FakeJob { remarks, again: vec!["success".to_owned()], ..FakeJob::tested("failure") };
        world.jobs.insert(("b".repeat(40), "b".to_owned()), job);
        for index in 0..120 {
            world.opened(&format!("old {index}"), "", &["triaged"]);
        }
    });
    let done: TrackerResult<()> = (|| {
        github.default_branch()?;
        let [one, two] = ["one", "two"].map(|title| make(github, title).number);
        github.read_issue(one)?;
        github.list_issues(&all())?;
        github.edit_issue(
            one,
            &IssueTextEdit { title: Some(Title::from_text("t")), body: Some("b".to_owned()) },
        )?;
        github.close_issue(one, CloseReason::NotPlanned)?;
        github.close_issue(one, CloseReason::Done)?;
        github.reopen_issue(one)?;
        github.last_reopened(one)?;
        it.fake.fault("POST", "/comments", 1, GithubFault::Twice);
        github.add_comment(one.into(), &marker("a"), "text")?;
        github.list_comments(one.into())?;
        it.fake.fault("POST", "/labels", 1, GithubFault::DoneBut(502));
        github.ensure_labels(&[spec("phase/ready"), spec("phase/code")])?;
        github.change_labels(one, &labels(["phase/spec", "a b/ü"]), &labels(["x"]))?;
        github.swap_label(one, PHASE_FAMILY, Some(&label("phase/ready")))?;
        github.read_size(one)?;
        github.set_size(one, TaskSize::M)?;
        github.add_child(one, two)?;
        github.add_blocker(two, number(1))?;
        github.remove_blocker(two, number(1))?;
        github.list_children(one)?;
        github.find_parent(two)?;
        let it = github.create_pull_request(&pull())?.into_inner().number;
        github.pull_request(it)?;
        github.mark_ready(it)?;
        github.add_review(it, &review("r", ReviewAction::Approve))?;
        github.list_reviews(it)?;
        github.add_comment(it.into(), &marker("a"), "text")?;
        github.list_checks(&sha('a'))?;
        github.failed_jobs(&sha('b'))?;
        github.rerun_checks(&sha('b'))?;
        github.merge_pull_request(it, &merge())?;
        let again = NewPullRequest { title: Title::from_text("again"), ..pull() };
        github.close_pull_request(github.create_pull_request(&again)?.into_inner().number)?;
        github.list_changes(&Cursor::from(Timestamp(0)))?;
        Ok(())
    })();
    done.expect("the fake does it all");
}

#[test]
fn every_request_is_as_github_describes_it() {
    let Some(description) = description() else { return };
    let it = fake();
    everything(&it);
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for heard in it.fake.heard() {
        if heard.path == "/api/graphql" {
            continue;
        }
        // The next page is where GitHub says it is; the description names repositories by owner and name alone.
        let path = heard.path.replace("/repositories/1/", "/repos/o/r/");
        let request = format!("{} {}", heard.method, heard.path);
        let Some(operation) = description.operation(&heard.method, &path) else {
            wrong.push(format!("{request}: not described"));
            continue;
        };
        seen.insert((operation.id.to_owned(), heard.method.clone()));
        let faults = description.wrong_request(operation, &path, &heard.query, &heard.body);
        wrong.extend(faults.into_iter().map(|fault| format!("{request}: {fault}")));
        let accept = heard.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("accept"));
        assert_eq!(accept.map(|(_, value)| value.as_str()), Some("application/vnd.github+json"));
        // The fake is believed because it answers as GitHub does.
        if matches!(heard.status, 200 | 201 | 422) {
            let faults = description.wrong_answer(operation, heard.status, &heard.answer);
            wrong.extend(
                faults.into_iter().map(|fault| format!("the fake, {request} {}: {fault}", heard.status)),
            );
        }
        if !matches!(heard.status, 304 | 500.. | 404) && !description.knows(operation, heard.status) {
            wrong.push(format!("the fake, {request}: {} is not described", heard.status));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let expected: BTreeSet<_> =
        OPERATIONS.iter().map(|(id, method)| ((*id).to_owned(), (*method).to_owned())).collect();
    assert_eq!(seen, expected);
    eprintln!("{} requests of {} operations are as described", it.fake.heard().len(), seen.len());
}

/// How an answer to an operation is read: a call that sends the request, and what the path of the request ends with.
struct Reading {
    operation: &'static str,
    method: &'static str,
    path: &'static str,
    call: fn(&Github) -> TrackerResult<()>,
}

fn pr(number: u64) -> PrNumber {
    PrNumber::new(number).expect("not 0")
}

/// One for every operation whose answer is read.
fn readings() -> Vec<Reading> {
    macro_rules! reading {
        ($operation:literal, $method:literal, $path:literal, $call:expr) => {
            Reading { operation: $operation, method: $method, path: $path, call: $call }
        };
    }
    vec![
        reading!("repos/get", "GET", "/repos/o/r", |it| it.default_branch().map(drop)),
        reading!("issues/list-for-repo", "GET", "/repos/o/r/issues", |it| it.list_issues(&all()).map(drop)),
        reading!("issues/get", "GET", "/repos/o/r/issues/1", |it| it.read_issue(number(1)).map(drop)),
        reading!("issues/create", "POST", "/repos/o/r/issues", |it| {
            it.create_issue(&new_issue("new", "t", "b")).map(drop)
        }),
        reading!("issues/update", "PATCH", "/repos/o/r/issues/1", |it| {
            it.edit_issue(number(1), &IssueTextEdit { title: None, body: Some("x".to_owned()) }).map(drop)
        }),
        reading!("issues/list-events", "GET", "/repos/o/r/issues/1/events", |it| it
            .last_reopened(number(1))
            .map(drop)),
        reading!("issues/list-comments", "GET", "/repos/o/r/issues/1/comments", |it| {
            it.list_comments(number(1).into()).map(drop)
        }),
        reading!("issues/create-comment", "POST", "/repos/o/r/issues/1/comments", |it| {
            it.add_comment(number(1).into(), &marker("c"), "x").map(drop)
        }),
        reading!("issues/list-labels-on-issue", "GET", "/repos/o/r/issues/1/labels", |it| {
            it.change_labels(number(1), &[].into(), &[].into()).map(drop)
        }),
        reading!("issues/list-labels-for-repo", "GET", "/repos/o/r/labels", |it| it
            .ensure_labels(&[])
            .map(drop)),
        reading!("issues/list-sub-issues", "GET", "/repos/o/r/issues/1/sub_issues", |it| it
            .list_children(number(1))
            .map(drop)),
        reading!("issues/get-parent", "GET", "/repos/o/r/issues/1/parent", |it| it
            .find_parent(number(1))
            .map(drop)),
        reading!(
            "issues/list-dependencies-blocked-by",
            "GET",
            "/repos/o/r/issues/1/dependencies/blocked_by",
            |it| { it.blocked_by(number(1)).map(drop) }
        ),
        reading!("pulls/list", "GET", "/repos/o/r/pulls", |it| it
            .pull_requests_of(&branch("work"))
            .map(drop)),
        reading!("pulls/create", "POST", "/repos/o/r/pulls", |it| {
            it.create_pull_request(&NewPullRequest { base: branch("other"), ..pull() }).map(drop)
        }),
        reading!("pulls/get", "GET", "/repos/o/r/pulls/2", |it| it.pull_request(pr(2)).map(drop)),
        reading!("pulls/merge", "PUT", "/repos/o/r/pulls/2/merge", |it| it
            .merge_pull_request(pr(2), &merge())
            .map(drop)),
        reading!("pulls/list-reviews", "GET", "/repos/o/r/pulls/2/reviews", |it| it
            .list_reviews(pr(2))
            .map(drop)),
        reading!("pulls/create-review", "POST", "/repos/o/r/pulls/2/reviews", |it| {
            it.add_review(pr(2), &review("r", ReviewAction::Comment)).map(drop)
        }),
        reading!("checks/list-for-ref", "GET", "/check-runs", |it| it.list_checks(&sha('a')).map(drop)),
        reading!("repos/get-combined-status-for-ref", "GET", "/status", |it| it
            .list_checks(&sha('a'))
            .map(drop)),
        reading!("actions/list-workflow-runs-for-repo", "GET", "/repos/o/r/actions/runs", |it| it
            .failed_jobs(&sha('a'))
            .map(drop)),
        reading!("actions/get-workflow-run", "GET", "/repos/o/r/actions/runs/2863311531", |it| it
            .rerun_checks(&sha('a'))
            .map(drop)),
        reading!(
            "actions/list-jobs-for-workflow-run",
            "GET",
            "/repos/o/r/actions/runs/2863311531/jobs",
            |it| { it.failed_jobs(&sha('a')).map(drop) }
        ),
        reading!(
            "checks/list-annotations",
            "GET",
            "/repos/o/r/check-runs/286331153101000/annotations",
            |it| { it.failed_jobs(&sha('a')).map(drop) }
        ),
        reading!("users/get-authenticated", "GET", "/user", |it| it
            .add_comment(number(1).into(), &marker("d"), "x")
            .map(drop)),
    ]
}

/// Answers whose body nobody reads, or which are read like another of the list.
const UNREAD: &[&str] = &[
    "issues/add-blocked-by-dependency",
    "issues/add-labels",
    "issues/add-sub-issue",
    "issues/create-label",
    "issues/delete-comment",
    "issues/get-label",
    "issues/remove-dependency-blocked-by",
    "issues/remove-label",
    "pulls/update",
    "actions/re-run-workflow-failed-jobs",
];

#[test]
fn every_answer_that_github_describes_can_be_read() {
    let Some(description) = description() else { return };
    let mut read = BTreeSet::new();
    let (mut examples, mut samples) = (0, 0);
    for reading in readings() {
        read.insert(reading.operation);
        let path = match reading.path {
            "/check-runs" | "/status" => format!("/repos/o/r/commits/{}{}", sha('a'), reading.path),
            path => path.to_owned(),
        };
        let operation = description.operation(reading.method, &path).expect("it is described");
        assert_eq!(operation.id, reading.operation);
        let shown = description.examples(operation);
        assert!(!shown.is_empty(), "{}: no example", reading.operation);
        examples += shown.len();
        let state = match reading.operation {
            "pulls/list-reviews" | "pulls/create-review" => "CHANGES_REQUESTED",
            "repos/get-combined-status-for-ref" => "success",
            "actions/list-jobs-for-workflow-run" => "completed",
            _ => "closed",
        };
        let made = [Sample::Least, Sample::Most];
        let made = made.map(|which| description.sample(operation, which, state).expect("a shape"));
        samples += made.len();
        for answer in shown.into_iter().chain(made) {
            let it = fake();
            it.fake.world(|world| {
                world.opened("an issue", "", &[]);
                for branch in ["work", "other"] {
                    world.branches.insert(branch.to_owned(), "a".repeat(40));
                }
                world.checks.insert("a".repeat(40), vec![FakeCheck::over("a", "failure")]);
            });
            let made =
                it.github.create_pull_request(&NewPullRequest { draft: false, ..pull() }).expect("made");
            assert_eq!(made.into_inner().number, pr(2));
            it.fake.fault(reading.method, reading.path, 1, GithubFault::Garbled(answer.to_string()));
            let came = (reading.call)(&it.github);
            // That an example is of another repository may be said; that it cannot be read may not.
            assert!(
                !matches!(came, Err(TrackerError::Malformed { .. })),
                "{}: {came:?}\n{answer}",
                reading.operation
            );
            let sent = it.fake.heard().iter().any(|heard| {
                heard.method == reading.method && heard.answer != answer && heard.path.ends_with(reading.path)
            });
            assert!(sent, "{}: the request was not sent", reading.operation);
        }
    }
    let known: BTreeSet<_> = OPERATIONS.iter().map(|(id, _)| *id).collect();
    let unread: BTreeSet<_> = UNREAD.iter().copied().collect();
    assert_eq!(read.union(&unread).copied().collect::<BTreeSet<_>>(), known);
    eprintln!("{examples} examples and {samples} samples of {} operations were read", read.len());
}

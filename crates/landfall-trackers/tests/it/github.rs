//! GitHub on a bad day: what breaks, gets lost, comes twice, moves, and is changed by others at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use landfall_model::{TaskSize, Timestamp};
use landfall_testkit::{FakeCheck, FakeGithub, FakeJob, FakePull, FakeRepository, FakeStatus, GithubFault};
use landfall_trackers::github::{Github, GithubEndpoints, GithubRetryPolicy, GithubSetup, TokenSources};
use landfall_trackers::tracker::{
    ChecksSum, CommentThread, CommitSha, Conclusion, CreateOutcome, Cursor, ForgeCheckState, IssueFilter,
    IssueLocation, IssueSize, NewPullRequest, NewReview, PHASE_FAMILY, PullRequestMerge, RepoName,
    ReviewAction, SizeSource, Title, Tracker, TrackerBranchName, TrackerClock as _, TrackerError, WaitEnd,
    sum_checks,
};

use crate::world::{Fake, PATIENCE, TestClock, fake, github, label, labels, make, marker, new_issue, number};

fn sha(digit: char) -> CommitSha {
    CommitSha::new(&digit.to_string().repeat(40)).expect("a commit")
}

fn branch(name: &str) -> TrackerBranchName {
    TrackerBranchName::new(name).expect("a branch")
}

fn new_pull() -> NewPullRequest {
    NewPullRequest {
        head: branch("work"),
        head_sha: sha('a'),
        base: branch("main"),
        title: Title::from_text("a change"),
        body: "why".to_owned(),
        draft: false,
    }
}

fn merge(expected: CommitSha) -> PullRequestMerge {
    PullRequestMerge { expected, subject: Title::from_text("feat: it"), body: String::new(), landed: None }
}

/// Every way to lose an answer after it was done.
fn lost() -> [(&'static str, GithubFault); 3] {
    [("502", GithubFault::DoneBut(502)), ("500", GithubFault::DoneBut(500)), ("cut", GithubFault::DoneAndCut)]
}

/// Every way to fail before anything was done.
fn broken() -> [(&'static str, GithubFault); 4] {
    [
        ("500", GithubFault::Status(500)),
        ("502", GithubFault::Status(502)),
        ("503", GithubFault::Status(503)),
        ("secondary", GithubFault::Secondary(Some(2))),
    ]
}

fn with_pull(it: &Fake) -> landfall_trackers::tracker::PullRequest {
    it.fake.world(|world| world.branches.insert("work".to_owned(), "a".repeat(40)));
    it.github.create_pull_request(&new_pull()).expect("made").into_inner()
}

#[test]
fn what_is_made_is_there_once_whatever_becomes_of_the_answer() {
    for (name, trouble) in lost().into_iter().chain(broken()) {
        let it = fake();
        it.fake.world(|world| world.branches.insert("work".to_owned(), "a".repeat(40)));
        let issue = make(&it.github, "an issue").number;
        let other = make(&it.github, "another").number;
        let fault = |ending: &str, method| it.fake.fault(method, ending, 1, trouble.clone());
        fault("/issues", "POST");
        let new = new_issue("new/1", "made under stress", "");
        assert!(matches!(it.github.create_issue(&new), Ok(CreateOutcome::Made(_))), "{name}");
        fault("/comments", "POST");
        let said = it.github.add_comment(issue.into(), &marker("said/1"), "x");
        assert!(matches!(said, Ok(CreateOutcome::Made(_))), "{name}: {said:?}");
        fault("/pulls", "POST");
        let pull = it.github.create_pull_request(&new_pull()).expect(name).into_inner().number;
        fault("/reviews", "POST");
        let review = NewReview {
            marker: marker("r/1"),
            says: ReviewAction::Comment,
            body: "ok".to_owned(),
            commit: sha('a'),
        };
        it.github.add_review(pull, &review).expect(name);
        fault("/sub_issues", "POST");
        it.github.add_child(issue, other).expect(name);
        fault("/blocked_by", "POST");
        it.github.add_blocker(issue, other).expect(name);
        fault("/merge", "PUT");
        let merged = it.github.merge_pull_request(pull, &merge(sha('a'))).expect(name);
        assert!(merged.commit.is_some() && !merged.already, "{name}: {merged:?}");
        it.fake.world(|world| {
            assert_eq!(world.issues.len(), 3, "{name}");
            assert_eq!(world.issues[&issue.get()].comments.len(), 1, "{name}");
            assert_eq!(world.issues[&issue.get()].children, [other.get()], "{name}");
            assert_eq!(world.issues[&issue.get()].blocked_by, [other.get()], "{name}");
            assert_eq!(world.pulls.len(), 1, "{name}");
            assert_eq!(world.pulls[&pull.get()].reviews.len(), 1, "{name}");
        });
    }
}

#[test]
fn an_answer_that_never_comes_is_looked_for() {
    let it = fake();
    let issue = make(&it.github, "an issue").number;
    let pull = with_pull(&it).number;
    for (method, ending) in [("POST", "/comments"), ("PUT", "/merge"), ("POST", "/issues")] {
        it.fake.fault(method, ending, 1, GithubFault::DoneAndSilent);
    }
    assert!(matches!(it.github.add_comment(issue.into(), &marker("a"), "x"), Ok(CreateOutcome::Made(_))));
    assert!(it.github.merge_pull_request(pull, &merge(sha('a'))).expect("merged").commit.is_some());
    assert!(matches!(it.github.create_issue(&new_issue("new/1", "t", "")), Ok(CreateOutcome::Made(_))));
    assert_eq!(it.fake.world(|world| (world.issues[&1].comments.len(), world.issues.len())), (1, 2));
    for (method, ending) in [("POST", "/comments"), ("PUT", "/merge")] {
        assert_eq!(it.fake.count(method, ending), 1, "{ending}");
    }
}

#[test]
fn changes_that_may_be_repeated_are() {
    for (name, trouble) in lost().into_iter().chain(broken()) {
        let it = fake();
        let issue = make(&it.github, "an issue").number;
        let fault = |method, ending: &str| it.fake.fault(method, ending, 2, trouble.clone());
        fault("POST", "/labels");
        fault("DELETE", "/labels/phase%2Fissue");
        it.github.change_labels(issue, &labels(["phase/issue"]), &[].into()).expect(name);
        let now = it.github.swap_label(issue, PHASE_FAMILY, Some(&label("phase/spec"))).expect(name);
        assert_eq!(now, labels(["phase/spec"]), "{name}");
        fault("PATCH", "/issues/1");
        it.github.close_issue(issue, landfall_trackers::tracker::CloseReason::Done).expect(name);
        it.fake.world(|world| assert!(world.issues[&1].closed.is_some(), "{name}"));
    }
}

#[test]
fn a_request_that_arrives_twice_leaves_one() {
    let it = fake();
    let issue = make(&it.github, "an issue").number;
    it.fake.fault("POST", "/comments", 1, GithubFault::Twice);
    let said = it.github.add_comment(issue.into(), &marker("said/1"), "x").expect("said").into_inner();
    it.fake.world(|world| {
        let comments = &world.issues[&issue.get()].comments;
        assert_eq!(comments.iter().map(|it| it.id).collect::<Vec<_>>(), [said.id]);
    });
    it.fake.fault("POST", "/issues", 1, GithubFault::Twice);
    let made = it.github.create_issue(&new_issue("new/1", "twice", "")).expect("made").into_inner();
    let open = IssueFilter { only_open: true, labels: [].into(), most: 10 };
    let open: Vec<_> =
        it.github.list_issues(&open).expect("a list").into_iter().map(|it| it.number).collect();
    assert_eq!(open, [made.number, issue]);
    // The second merge of the same is refused by GitHub, and is none.
    let pull = with_pull(&it).number;
    it.fake.fault("PUT", "/merge", 1, GithubFault::Twice);
    let error = it.github.merge_pull_request(pull, &merge(sha('a'))).err();
    assert!(matches!(error, Some(TrackerError::Conflict { .. })), "{error:?}");
    assert!(it.github.merge_pull_request(pull, &merge(sha('a'))).expect("it is merged").already);
}

#[test]
fn a_server_that_stays_broken_is_an_answer_that_says_whether_it_may_have_happened() {
    let it = fake();
    let issue = make(&it.github, "an issue").number;
    it.fake.fault("GET", "/issues/1", 4, GithubFault::Status(500));
    let error = it.github.read_issue(issue).expect_err("broken four times");
    assert_eq!(
        error,
        TrackerError::Unavailable {
            what: "read issue #1".to_owned(),
            why: "GitHub answered 500".to_owned(),
            unsure: false
        }
    );
    assert_eq!(it.fake.count("GET", "/issues/1"), 4);
    it.github.read_issue(issue).expect("it is well again");
    it.fake.fault("POST", "/comments", 99, GithubFault::Status(502));
    let error = it.github.add_comment(issue.into(), &marker("a"), "x").expect_err("broken");
    assert!(matches!(error, TrackerError::Unavailable { unsure: true, .. }), "{error:?}");
    assert_eq!(it.fake.count("POST", "/comments"), 4);
    assert!(error.retry_time().is_some());
    // Nobody is there: nothing can have happened.
    let gone = FakeGithub::start();
    let nobody = github(&gone, TestClock::new(), PATIENCE);
    drop(gone);
    let error = nobody
        .close_issue(number(1), landfall_trackers::tracker::CloseReason::Done)
        .expect_err("nobody is there");
    assert!(matches!(error, TrackerError::Unavailable { unsure: false, .. }), "{error:?}");
}

#[test]
fn limits_are_waited_for_when_short_and_told_when_long() {
    let it = fake();
    let issue = make(&it.github, "an issue").number;
    it.fake.fault("GET", "/issues/1", 1, GithubFault::Secondary(Some(7)));
    it.github.read_issue(issue).expect("after seven seconds");
    assert!((6_900..8_000).contains(&it.clock.waited()), "{}", it.clock.waited());
    // Without a word on how long it is a minute.
    it.fake.fault("GET", "/issues/1", 1, GithubFault::Secondary(None));
    it.github.read_issue(issue).expect("after a minute");
    assert!((66_900..69_000).contains(&it.clock.waited()), "{}", it.clock.waited());
    // An hour is for whoever asked to decide; nothing is asked meanwhile, by any thread.
    it.fake.fault("GET", "/issues/1", 1, GithubFault::Exhausted(3_000));
    let Err(TrackerError::RateLimited { until, .. }) = it.github.read_issue(issue) else {
        panic!("no requests are left")
    };
    let asked = it.fake.heard().len();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let error = it.github.list_comments(issue.into()).expect_err("none are left");
                assert_eq!(error.retry_time(), Some(Some(until)));
            });
        }
    });
    assert_eq!(it.fake.heard().len(), asked);
    let wait = until.0 - it.clock.now().0;
    assert!((2_900_000..3_000_100).contains(&wait), "{wait}");
    assert_eq!(it.clock.wait(3_000_000), WaitEnd::Elapsed);
    it.github.read_issue(issue).expect("there are some again");
}

#[test]
fn a_stop_ends_every_wait_and_loses_no_comment() {
    let fake = FakeGithub::start();
    let clock = TestClock::new();
    let github = github(&fake, Arc::clone(&clock), GithubRetryPolicy { write_gap_ms: 1_000, ..PATIENCE });
    let issue = make(&github, "an issue").number;
    let comment = || github.add_comment(issue.into(), &marker("a"), "x");
    let told = |error: TrackerError| {
        assert!(matches!(error, TrackerError::Stopped { .. }), "{error:?}");
        assert_eq!(error.retry_time(), Some(None), "the same may be asked again");
    };
    clock.stop(true);
    let (waited, asked) = (clock.waited(), fake.count("POST", "/comments"));
    told(comment().expect_err("another change was made a moment ago"));
    clock.stop(false);
    assert_eq!(fake.count("POST", "/comments"), asked, "nothing was begun");
    let moves = |ms| assert_eq!(clock.wait(ms), WaitEnd::Elapsed);
    moves(2_000);
    clock.stop(true);
    fake.fault("GET", "/comments", 1, GithubFault::Secondary(Some(60)));
    told(comment().expect_err("asked to slow down for a minute"));
    clock.stop(false);
    moves(62_000);
    clock.stop(true);
    // The comment is made, and the answer is lost: the next one who asks finds it.
    fake.fault("POST", "/comments", 1, GithubFault::DoneBut(502));
    told(comment().expect_err("the answer was lost"));
    assert!(matches!(comment(), Ok(CreateOutcome::Found(_))), "it is there");
    assert_eq!(clock.waited() - waited, 64_000, "only the test has waited");
    assert_eq!(fake.count("POST", "/comments"), asked + 1);
    assert_eq!(github.list_comments(issue.into()).map(|all| all.len()), Ok(1));
}

#[test]
fn the_budget_is_one_for_all_threads() {
    let it = fake();
    let issue = make(&it.github, "an issue").number;
    it.fake.world(|world| world.left = 5);
    it.github.list_comments(issue.into()).expect("one of five");
    let well = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| match it.github.pull_requests_of(&branch("x")) {
                Ok(_) => drop(well.fetch_add(1, Ordering::SeqCst)),
                Err(TrackerError::RateLimited { .. }) => {}
                Err(error) => panic!("{error}"),
            });
        }
    });
    // GitHub refused nobody: we knew.
    assert!(well.load(Ordering::SeqCst) >= 4, "{well:?}");
    assert_eq!(it.fake.heard().iter().filter(|heard| heard.status == 403).count(), 0);
}

#[test]
fn writes_keep_a_second_of_distance_unless_told_otherwise() {
    let fake = FakeGithub::start();
    let clock = TestClock::new();
    let write_gap_ms = GithubRetryPolicy::default().write_gap_ms;
    let github = github(&fake, Arc::clone(&clock), GithubRetryPolicy { write_gap_ms, ..PATIENCE });
    let issue = make(&github, "an issue").number;
    let before = clock.waited();
    for index in 0..5 {
        github.add_comment(issue.into(), &marker(&format!("a/{index}")), "x").expect("said");
    }
    assert!((4_800..=5_000).contains(&(clock.waited() - before)), "{}", clock.waited() - before);
}

#[test]
fn what_has_not_changed_costs_nothing() {
    let it = fake();
    let issue = make(&it.github, "an issue").number;
    it.github.read_issue(issue).expect("there");
    let left = it.fake.world(|world| world.left);
    for _ in 0..3 {
        it.github.read_issue(issue).expect("there");
    }
    assert_eq!(it.fake.world(|world| world.left), left);
    it.fake.world(|world| world.issues.get_mut(&1).expect("there").title = "changed".to_owned());
    assert_eq!(it.github.read_issue(issue).expect("there").title, "changed");
}

#[test]
fn lists_are_read_to_their_end() {
    let it = fake();
    it.fake.world(|world| {
        for index in 1..=250 {
            world.opened(&format!("issue {index}"), "", &["triaged"]);
        }
        for index in 0..201 {
            world.said(1, "someone", &format!("comment {index}"));
        }
    });
    let filter = IssueFilter { only_open: true, labels: labels(["triaged"]), most: 1_000 };
    let issues = it.github.list_issues(&filter).expect("a list");
    let numbers: Vec<u64> = issues.iter().map(|issue| issue.number.get()).collect();
    assert_eq!(numbers, (1..=250).rev().collect::<Vec<_>>());
    assert_eq!(it.fake.count("GET", "/issues"), 3);
    // Enough is enough: 100 are one page.
    assert_eq!(it.github.list_issues(&IssueFilter { most: 100, ..filter }).expect("a list").len(), 100);
    assert_eq!(it.fake.count("GET", "/issues"), 4);
    assert_eq!(it.github.list_comments(number(1).into()).expect("comments").len(), 201);
    // A comment of ours on the third page is found.
    it.github.add_comment(number(1).into(), &marker("late"), "x").expect("said");
    assert!(matches!(
        it.github.add_comment(number(1).into(), &marker("late"), "x"),
        Ok(CreateOutcome::Found(_))
    ));
    let (changes, _) = it.github.list_changes(&Cursor::from(Timestamp(0))).expect("changes");
    assert_eq!(changes.len(), 250);
}

#[test]
fn a_page_elsewhere_is_not_fetched() {
    let it = fake();
    let evil = FakeGithub::start();
    let link = evil.url();
    it.fake.world(|world| world.opened("an issue", "", &[]));
    it.fake.fault(
        "GET",
        "/issues/1",
        1,
        GithubFault::Then(Arc::new(|world: &mut FakeRepository| {
            world.transferred.insert(1, "x/y#5".to_owned());
        })),
    );
    it.github.read_issue(number(1)).expect("there");
    // It moved; where to is read from GitHub alone, and nothing was sent elsewhere.
    let error = it.github.read_issue(number(1)).expect_err("it moved");
    assert_eq!(error, TrackerError::Moved { what: "read issue #1".to_owned(), to: "x/y#5".to_owned() });
    assert_eq!(error.hint(), "name x/y#5 instead");
    assert!(evil.heard().is_empty(), "{link}");
}

#[test]
fn what_moved_is_said_and_not_followed() {
    let it = fake();
    let issue = make(&it.github, "an issue").number;
    it.fake.world(|world| world.transferred.insert(1, "other/place#42".to_owned()));
    let moved = |error| matches!(error, TrackerError::Moved { to, .. } if to == "other/place#42");
    assert!(moved(it.github.read_issue(issue).expect_err("moved")));
    assert!(moved(it.github.add_comment(issue.into(), &marker("a"), "x").expect_err("moved")));
    assert!(moved(it.github.swap_label(issue, PHASE_FAMILY, None).expect_err("moved")));
    // Once the redirect is gone too, it is simply not there.
    it.fake.world(|world| {
        world.transferred.clear();
        world.issues.clear();
    });
    assert!(matches!(it.github.read_issue(issue), Err(TrackerError::NotFound { .. })));
    // The whole repository has another name.
    it.fake.world(|world| {
        world.former = Some("o/r".to_owned());
        world.repository = "o/new-name".to_owned();
        world.opened("an issue", "", &[]);
    });
    let error = it.github.default_branch().expect_err("renamed");
    assert!(matches!(&error, TrackerError::Moved { to, .. } if to == "o/new-name"), "{error:?}");
    let error = it.github.read_issue(number(1)).expect_err("renamed");
    assert!(matches!(&error, TrackerError::Moved { to, .. } if to == "o/new-name#1"), "{error:?}");
}

#[test]
fn what_is_waited_for_and_moved_away_can_be_waited_for_no_longer() {
    let it = fake();
    let [one, two, three] = ["one", "two", "three"].map(|title| make(&it.github, title).number);
    it.github.add_blocker(one, two).expect("waits");
    it.github.add_blocker(one, three).expect("waits");
    it.fake.world(|world| world.transferred.insert(two.get(), "other/place#42".to_owned()));
    let waits =
        || it.github.blocked_by(one).expect("known").into_iter().map(|it| it.place).collect::<Vec<_>>();
    assert_eq!(waits(), [IssueLocation::Elsewhere("other/place#42".to_owned()), IssueLocation::Here(three)]);
    for _ in 0..2 {
        it.github.remove_blocker(one, two).expect("it waits no longer");
        assert_eq!(waits(), [IssueLocation::Here(three)]);
    }
}

#[test]
fn a_default_branch_that_is_renamed_is_known_at_once() {
    let it = fake();
    assert_eq!(it.github.default_branch(), Ok(Some(branch("main"))));
    it.fake.world(|world| {
        world.default_branch = "trunk".to_owned();
        let head = world.branches.remove("main").expect("there");
        world.branches.insert("trunk".to_owned(), head);
        world.branches.insert("work".to_owned(), "a".repeat(40));
    });
    assert_eq!(it.github.default_branch(), Ok(Some(branch("trunk"))));
    let error = it.github.create_pull_request(&new_pull()).expect_err("there is no main");
    assert!(matches!(&error, TrackerError::Refused { why, .. } if why.contains("base invalid")), "{error:?}");
    it.github.create_pull_request(&NewPullRequest { base: branch("trunk"), ..new_pull() }).expect("made");
}

#[test]
fn labels_that_others_change_at_the_same_time_settle_or_are_told() {
    let it = fake();
    let issue = make(&it.github, "an issue").number;
    // Someone sets another phase right after us, once: we are the last to speak.
    let racer = |world: &mut FakeRepository| {
        world.issues.get_mut(&1).expect("there").labels.push("phase/review".to_owned())
    };
    it.fake.fault("POST", "/labels", 1, GithubFault::Then(Arc::new(racer)));
    let now = it.github.swap_label(issue, PHASE_FAMILY, Some(&label("phase/code"))).expect("settled");
    assert_eq!(now, labels(["phase/code"]));
    // Someone takes ours away, once.
    let thief = |world: &mut FakeRepository| world.issues.get_mut(&1).expect("there").labels.clear();
    it.fake.fault("POST", "/labels", 1, GithubFault::Then(Arc::new(thief)));
    let now = it.github.swap_label(issue, PHASE_FAMILY, Some(&label("phase/verify"))).expect("settled");
    assert_eq!(now, labels(["phase/verify"]));
    // Someone takes away what we are about to take away.
    let first = |world: &mut FakeRepository| {
        world.issues.get_mut(&1).expect("there").labels.retain(|label| label != "phase/verify");
    };
    it.fake.fault("POST", "/labels", 1, GithubFault::Then(Arc::new(first)));
    it.github.swap_label(issue, PHASE_FAMILY, Some(&label("phase/done"))).expect("settled");
    // Someone who never stops is for a person to see.
    it.fake.fault("POST", "/labels", 99, GithubFault::Then(Arc::new(thief)));
    let error = it.github.swap_label(issue, PHASE_FAMILY, Some(&label("phase/code"))).expect_err("a fight");
    assert!(matches!(error, TrackerError::Conflict { .. }), "{error:?}");
}

#[test]
fn a_marker_of_somebody_else_counts_for_nothing() {
    let it = fake();
    let issue = it.fake.world(|world| {
        let number = world.opened("an issue", "x\n\n<!-- landfall:new/1 -->", &[]);
        world.said(number, "someone", "haha\n\n<!-- landfall:said/1 -->");
        number
    });
    let thread = CommentThread::Issue(number(issue));
    assert!(matches!(
        it.github.add_comment(thread, &marker("said/1"), "the truth"),
        Ok(CreateOutcome::Made(_))
    ));
    assert!(matches!(
        it.github.add_comment(thread, &marker("said/1"), "the truth"),
        Ok(CreateOutcome::Found(_))
    ));
    assert!(matches!(it.github.create_issue(&new_issue("new/1", "t", "")), Ok(CreateOutcome::Made(_))));
    let comments = it.github.list_comments(thread).expect("comments");
    assert_eq!(
        comments.iter().map(|it| (it.ours, it.marker().is_some())).collect::<Vec<_>>(),
        [(false, false), (true, true)]
    );
}

#[test]
fn an_app_knows_its_own_words() {
    let it = fake();
    it.fake.world(|world| world.login = "landfall[bot]".to_owned());
    let issue = make(&it.github, "an issue").number;
    it.github.add_comment(issue.into(), &marker("a"), "x").expect("said");
    assert!(matches!(it.github.add_comment(issue.into(), &marker("a"), "x"), Ok(CreateOutcome::Found(_))));
}

#[test]
fn a_size_stands_in_the_field_of_a_project_before_the_label() {
    let it = fake();
    let issue = make(&it.github, "an issue").number;
    it.github.set_size(issue, TaskSize::S).expect("set");
    it.fake.world(|world| {
        world.has_projects = true;
        world.issues.get_mut(&1).expect("there").size = Some("L".to_owned());
    });
    let seen = |size, stands| Ok(Some(IssueSize { size, stands }));
    assert_eq!(it.github.read_size(issue), seen(TaskSize::L, SizeSource::Field));
    assert_eq!(it.github.set_size(issue, TaskSize::M), Ok(SizeSource::Field));
    assert_eq!(it.github.read_size(issue), seen(TaskSize::M, SizeSource::Field));
    // An empty field says nothing; the label does.
    it.fake.world(|world| world.issues.get_mut(&1).expect("there").size = None);
    assert_eq!(it.github.read_size(issue), seen(TaskSize::S, SizeSource::Label));
}

#[test]
fn checks_are_read_by_what_they_concluded() {
    let it = fake();
    let run = |name: &str, conclusion: Option<&str>| FakeCheck {
        name: name.to_owned(),
        status: if conclusion.is_some() { "completed" } else { "in_progress" }.to_owned(),
        conclusion: conclusion.map(str::to_owned),
    };
    let commit = sha('a');
    let set = |runs: Vec<FakeCheck>, statuses: Vec<FakeStatus>| {
        it.fake.world(|world| {
            world.checks.insert("a".repeat(40), runs);
            world.statuses.insert("a".repeat(40), statuses);
        });
        sum_checks(&it.github.list_checks(&commit).expect("checks"))
    };
    assert_eq!(set(vec![run("failure injection", Some("success"))], vec![]), ChecksSum::Passed);
    assert_eq!(set(vec![run("a", Some("success")), run("b", None)], vec![]), ChecksSum::Pending);
    let status = |state: &str| FakeStatus { context: "ci/old".to_owned(), state: state.to_owned() };
    assert_eq!(set(vec![run("a", Some("success"))], vec![status("error")]), ChecksSum::Failed);
    assert_eq!(set(vec![], vec![status("success")]), ChecksSum::Passed);
    assert_eq!(set(vec![run("a", Some("startup_failure"))], vec![]), ChecksSum::Broken);
    // More than a page, and the last one failed.
    let mut many: Vec<_> = (0..130).map(|index| run(&format!("job {index}"), Some("success"))).collect();
    many.push(run("the last", Some("failure")));
    assert_eq!(set(many, vec![]), ChecksSum::Failed);
    let checks = it.github.list_checks(&commit).expect("checks");
    assert_eq!((checks.len(), checks[130].state), (131, ForgeCheckState::Done(Conclusion::Failure)));
    // A word we do not know is no pass.
    it.fake.world(|world| world.checks.insert("a".repeat(40), vec![run("a", Some("splendid"))]));
    let error = it.github.list_checks(&commit).expect_err("an unknown word");
    assert!(matches!(&error, TrackerError::Malformed { why, .. } if why.contains("splendid")), "{error:?}");
}

/// A commit with a job that passed and one that failed, which ends like this when it is run again.
fn red(it: &Fake, again: &[&str]) -> CommitSha {
    let (commit, key) = (sha('a'), "a".repeat(40));
    let again = again.iter().map(|word| (*word).to_owned()).collect();
    let remarks = vec!["Process completed with exit code 1.".to_owned()];
    it.fake.world(|world| {
        let checks = vec![FakeCheck::over("lint", "success"), FakeCheck::over("test", "failure")];
        world.checks.insert(key.clone(), checks);
        world.jobs.insert((key, "test".to_owned()), FakeJob { remarks, again, ..FakeJob::tested("failure") });
    });
    commit
}

fn ends(it: &Fake, commit: &CommitSha) -> Vec<ForgeCheckState> {
    it.github.list_checks(commit).expect("checks").into_iter().map(|check| check.state).collect()
}

const PASSED: ForgeCheckState = ForgeCheckState::Done(Conclusion::Success);
const FAILED: ForgeCheckState = ForgeCheckState::Done(Conclusion::Failure);

#[test]
fn a_job_that_failed_tells_its_steps_and_what_was_remarked() {
    let it = fake();
    let commit = red(&it, &[]);
    let checks = it.github.list_checks(&commit).expect("checks");
    let failed = it.github.failed_jobs(&commit).expect("jobs");
    assert_eq!(failed.len(), 1, "what passed is not asked about: {failed:?}");
    assert_eq!(Some(failed[0].check), checks[1].id, "a job is known by its check");
    let steps: Vec<_> = failed[0].steps.iter().map(|step| (step.name.as_str(), step.ended)).collect();
    let expected = [("Set up job", Some(Conclusion::Success)), ("Run tests", Some(Conclusion::Failure))];
    assert_eq!(steps, expected);
    assert_eq!(failed[0].remarks, ["Process completed with exit code 1."]);
    // A step whose end nobody saw has none.
    it.fake.world(|world| {
        let job = world.jobs.values_mut().next().expect("the job");
        job.steps = vec![("Run tests".to_owned(), None)];
    });
    assert_eq!(it.github.failed_jobs(&commit).expect("jobs")[0].steps[0].ended, None);
    // Whoever may not look, and a server without runs, know nothing: that is no failure.
    for status in [403, 404] {
        it.fake.fault("GET", "/actions/runs", 1, GithubFault::Status(status));
        assert_eq!(it.github.failed_jobs(&commit).expect("nothing is known"), []);
    }
    assert_eq!(it.github.failed_jobs(&sha('b')).expect("a commit without runs"), []);
}

#[test]
fn what_failed_is_run_again_once_whatever_becomes_of_the_answer() {
    let it = fake();
    let commit = red(&it, &["success"]);
    let before = it.github.list_checks(&commit).expect("checks");
    assert_eq!(it.github.rerun_checks(&commit).expect("run again"), 1);
    assert_eq!(ends(&it, &commit), [PASSED, PASSED]);
    let after = it.github.list_checks(&commit).expect("checks");
    assert_ne!(before[1].id, after[1].id, "another run of the same job is another check");
    assert_eq!(it.github.rerun_checks(&commit).expect("nothing is red"), 0);
    assert_eq!(it.fake.count("POST", "/rerun-failed-jobs"), 1);

    for trouble in [
        GithubFault::DoneAndCut,
        GithubFault::DoneBut(502),
        GithubFault::Status(503),
        GithubFault::DoneAndSilent,
    ] {
        let it = fake();
        let commit = red(&it, &["failure", "success"]);
        it.fake.fault("POST", "/rerun-failed-jobs", 1, trouble);
        assert_eq!(it.github.rerun_checks(&commit).expect("run again"), 1);
        assert_eq!(it.fake.world(|world| world.reruns.values().copied().collect::<Vec<_>>()), [1]);
        assert_eq!(ends(&it, &commit), [PASSED, FAILED], "it failed again, and was not run a third time");
    }
}

#[test]
fn what_cannot_be_run_again_is_left_as_it_is() {
    let it = fake();
    let commit = red(&it, &[]);
    for status in [403, 422] {
        it.fake.fault("POST", "/rerun-failed-jobs", 1, GithubFault::Status(status));
        assert_eq!(it.github.rerun_checks(&commit).expect("that is an answer"), 0);
    }
    // A run that is under way is nobody's to run again.
    it.fake.world(|world| {
        let checks = world.checks.values_mut().next().expect("checks");
        checks.push(FakeCheck {
            name: "slow".to_owned(),
            status: "in_progress".to_owned(),
            conclusion: None,
        });
    });
    assert_eq!(it.github.rerun_checks(&commit).expect("it goes on"), 0);
    assert_eq!(it.github.failed_jobs(&commit).expect("jobs").len(), 1, "it tells why it failed all the same");
    assert_eq!(it.fake.world(|world| world.reruns.len()), 0);
    assert_eq!(it.github.rerun_checks(&sha('b')).expect("no runs"), 0);
}

#[test]
fn a_pull_request_of_a_fork_is_not_ours() {
    let it = fake();
    it.fake.world(|world| {
        world.branches.insert("work".to_owned(), "a".repeat(40));
        let pull = FakePull {
            title: "mine".to_owned(),
            head: "work".to_owned(),
            head_repository: "stranger/r".to_owned(),
            base: "main".to_owned(),
            author: "stranger".to_owned(),
            ..FakePull::default()
        };
        world.pulls.insert(1, pull);
    });
    assert_eq!(it.github.pull_requests_of(&branch("work")), Ok(vec![]));
}

#[test]
fn what_cannot_be_read_is_said_and_nothing_is_assumed() {
    let it = fake();
    let issue = make(&it.github, "an issue").number;
    for text in ["", "<html>", "[]", "{}", r#"{"number":0}"#] {
        it.fake.fault("GET", "/issues/1", 1, GithubFault::Garbled(text.to_owned()));
        let error = it.github.read_issue(issue).expect_err("garbled");
        assert!(matches!(error, TrackerError::Malformed { .. }), "{text}: {error:?}");
    }
    // Garbled after it was done: the next call finds it.
    it.fake.fault("POST", "/comments", 1, GithubFault::Garbled("<html>".to_owned()));
    it.github.add_comment(issue.into(), &marker("a"), "x").expect_err("garbled");
    assert!(matches!(it.github.add_comment(issue.into(), &marker("a"), "x"), Ok(CreateOutcome::Found(_))));
}

#[test]
fn a_token_that_was_renewed_is_read_again() {
    let fake = FakeGithub::start();
    let asked = Arc::new(AtomicU32::new(0));
    let ask = {
        let asked = Arc::clone(&asked);
        move || Ok(if asked.fetch_add(1, Ordering::SeqCst) < 2 { "old".to_owned() } else { "new".to_owned() })
    };
    fake.world(|world| world.token = "old".to_owned());
    let github = |token| {
        Github::new(GithubSetup {
            base: GithubEndpoints::new(&fake.url()).expect("an address"),
            repository: RepoName::new("o/r").expect("a name"),
            token,
            proxy: None,
            size_field: None,
            patience: PATIENCE,
            clock: TestClock::new(),
        })
        .expect("it can be made")
    };
    let renewing = github(TokenSources::default().with_provider("gh auth token", Arc::new(ask)));
    renewing.default_branch().expect("known");
    fake.world(|world| world.token = "new".to_owned());
    let error = renewing.default_branch().expect_err("the same token again");
    assert!(
        matches!(&error, TrackerError::Unauthorized { hint, .. } if hint.contains("GH_ENTERPRISE_TOKEN")),
        "{error:?}"
    );
    renewing.default_branch().expect("the new one");
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    let none = github(TokenSources::default());
    let error = none.default_branch().expect_err("no token");
    assert!(
        matches!(&error, TrackerError::Unauthorized { hint, .. } if hint.contains("no token is set")),
        "{error:?}"
    );
    assert!(!format!("{error} {error:?} {}", error.hint()).contains("old"));
}

#[test]
fn long_texts_are_cut_and_keep_their_marker() {
    let it = fake();
    let issue = make(&it.github, "an issue").number;
    let said = it
        .github
        .add_comment(issue.into(), &marker("long"), &"ü".repeat(100_000))
        .expect("said")
        .into_inner();
    assert!(said.body.chars().count() < 65_536 && said.marker() == Some(marker("long")));
    assert!(matches!(it.github.add_comment(issue.into(), &marker("long"), "x"), Ok(CreateOutcome::Found(_))));
}

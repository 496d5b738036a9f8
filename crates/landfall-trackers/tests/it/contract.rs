//! What every tracker does. One story each; the registry says who must tell them.

use std::collections::BTreeSet;

use landfall_model::{TaskSize, Timestamp};
use landfall_trackers::registry::TRACKERS;
use landfall_trackers::tracker::{
    Blocker, ChecksSum, CloseReason, CommentThread, CommitSha, CompletedMerge, CreateOutcome, Cursor,
    IssueFilter, IssueLocation, IssueTextEdit, LabelSpec, NewPullRequest, NewReview, PHASE_FAMILY, PrNumber,
    PrState, PullRequestMerge, ReviewAction, SizeSource, Title, Tracker, TrackerBranchName, TrackerError,
    TrackerIssueState, sum_checks,
};

use crate::world::{fake, files, label, labels, make, marker, new_issue, number};

/// What a tracker has to be told from outside, because it is not its own to do.
struct Hands<'a> {
    tracker: &'a dyn Tracker,
    /// Puts a branch where the tracker can see it.
    push: &'a dyn Fn(&str, &str),
}

/// Runs a story with every tracker of the registry.
fn each(story: impl Fn(&Hands<'_>)) {
    for entry in TRACKERS {
        match entry.name {
            "local" => {
                let files = files();
                story(&Hands { tracker: &files.local, push: &|_, _| {} });
            }
            "github" => {
                let it = fake();
                let push = |branch: &str, commit: &str| {
                    it.fake.world(|world| world.branches.insert(branch.to_owned(), commit.to_owned()));
                };
                story(&Hands { tracker: &it.github, push: &push });
            }
            other => panic!("the contract does not know how to set up `{other}`"),
        }
    }
}

fn sha(digit: char) -> CommitSha {
    CommitSha::new(&digit.to_string().repeat(40)).expect("a commit")
}

fn branch(name: &str) -> TrackerBranchName {
    TrackerBranchName::new(name).expect("a branch")
}

fn new_pull(head: &str, commit: CommitSha) -> NewPullRequest {
    NewPullRequest {
        head: branch(head),
        head_sha: commit,
        base: branch("main"),
        title: Title::from_text("a change"),
        body: "why".to_owned(),
        draft: false,
    }
}

fn all() -> IssueFilter {
    IssueFilter { only_open: false, labels: BTreeSet::new(), most: 1_000 }
}

#[test]
fn an_issue_is_made_once_and_read_back_as_it_was_written() {
    each(|Hands { tracker, .. }| {
        let mut new = new_issue("a/1", "Fix \"it\" & <b>", "line 1\r\nline 2\n\n+++\n---\n# not a head\n  ");
        new.labels = labels(["phase/issue", "type/bug"]);
        let CreateOutcome::Made(made) = tracker.create_issue(&new).expect("made") else {
            panic!("nothing was there")
        };
        let read = tracker.read_issue(made.number).expect("it is there");
        assert_eq!(read.title, "Fix \"it\" & <b>");
        assert!(read.body.starts_with("line 1\r\nline 2\n\n+++\n---\n# not a head"), "{:?}", read.body);
        assert_eq!(read.labels, new.labels);
        assert_eq!((read.state, read.comments, read.children), (TrackerIssueState::Open, 0, 0));
        // Asked for again, in whatever words, it is the same one.
        let again = tracker.create_issue(&new_issue("a/1", "other words", "")).expect("found");
        assert_eq!(again, CreateOutcome::Found(read));
        assert_eq!(tracker.list_issues(&all()).expect("a list").len(), 1);
    });
}

#[test]
fn what_is_not_there_is_not_found() {
    each(|Hands { tracker, .. }| {
        let missing = |error| matches!(error, TrackerError::NotFound { .. });
        assert!(missing(tracker.read_issue(number(9)).expect_err("nothing is there")));
        assert!(missing(tracker.list_comments(number(9).into()).expect_err("nothing is there")));
        assert!(missing(
            tracker.add_comment(number(9).into(), &marker("a"), "x").expect_err("nothing is there")
        ));
        assert!(missing(tracker.list_children(number(9)).expect_err("nothing is there")));
        assert!(missing(tracker.close_issue(number(9), CloseReason::Done).expect_err("nothing is there")));
        assert!(missing(
            tracker.pull_request(PrNumber::new(9).expect("not 0")).expect_err("nothing is there")
        ));
        let issue = make(*tracker, "an issue");
        let as_pull = PrNumber::new(issue.number.get()).expect("not 0");
        assert!(missing(tracker.pull_request(as_pull).expect_err("it is an issue")));
    });
}

#[test]
fn issues_come_newest_first_by_state_and_labels() {
    each(|Hands { tracker, .. }| {
        let made: Vec<_> = (1..=4).map(|index| make(*tracker, &format!("issue {index}")).number).collect();
        for index in [0, 1, 3] {
            tracker.change_labels(made[index], &labels(["triaged"]), &[].into()).expect("labelled");
        }
        tracker.close_issue(made[3], CloseReason::Done).expect("closed");
        let numbers = |filter: &IssueFilter| -> Vec<_> {
            tracker.list_issues(filter).expect("a list").into_iter().map(|issue| issue.number).collect()
        };
        let triaged = IssueFilter { only_open: true, labels: labels(["Triaged"]), most: 10 };
        assert_eq!(numbers(&triaged), [made[1], made[0]]);
        assert_eq!(numbers(&IssueFilter { most: 1, ..triaged }), [made[1]]);
        assert_eq!(numbers(&all()), [made[3], made[2], made[1], made[0]]);
    });
}

#[test]
fn words_are_changed_and_the_rest_stays() {
    each(|Hands { tracker, .. }| {
        let issue = make(*tracker, "before");
        let edit = IssueTextEdit { title: Some(Title::from_text("after")), body: None };
        let edited = tracker.edit_issue(issue.number, &edit).expect("edited");
        assert_eq!((edited.title.as_str(), &edited.body), ("after", &issue.body));
        let edit = IssueTextEdit { title: None, body: Some("- [x] done".to_owned()) };
        assert_eq!(tracker.edit_issue(issue.number, &edit).expect("edited").body, "- [x] done");
        assert_eq!(tracker.read_issue(issue.number).expect("there").title, "after");
        let nothing = tracker.edit_issue(issue.number, &IssueTextEdit::default()).expect("nothing to do");
        assert_eq!(nothing.body, "- [x] done");
    });
}

#[test]
fn an_issue_is_closed_and_opened_again_and_the_moment_is_known() {
    each(|Hands { tracker, .. }| {
        let issue = make(*tracker, "an issue").number;
        assert_eq!(tracker.last_reopened(issue), Ok(None));
        let closed = tracker.close_issue(issue, CloseReason::NotPlanned).expect("closed");
        assert!(
            matches!(closed.state, TrackerIssueState::Closed { why: CloseReason::NotPlanned, at: Some(_) }),
            "{closed:?}"
        );
        assert_eq!(tracker.close_issue(issue, CloseReason::NotPlanned).expect("closed already"), closed);
        let done = tracker.close_issue(issue, CloseReason::Done).expect("closed for another reason").state;
        assert!(matches!(done, TrackerIssueState::Closed { why: CloseReason::Done, .. }), "{done:?}");
        assert!(tracker.reopen_issue(issue).expect("open").state.is_open());
        let first = tracker.last_reopened(issue).expect("known").expect("it was");
        assert!(tracker.reopen_issue(issue).expect("open already").state.is_open());
        assert_eq!(tracker.last_reopened(issue), Ok(Some(first)));
        tracker.close_issue(issue, CloseReason::Done).expect("closed");
        tracker.reopen_issue(issue).expect("open");
        assert!(tracker.last_reopened(issue).expect("known").expect("it was") > first);
    });
}

#[test]
fn a_comment_is_said_once() {
    each(|Hands { tracker, .. }| {
        let issue = make(*tracker, "an issue").number;
        let thread = CommentThread::Issue(issue);
        let once = tracker
            .add_comment(thread, &marker("verify/1"), "FAIL: <!-- landfall:verify/2 -->")
            .expect("said");
        let CreateOutcome::Made(first) = once else { panic!("nothing was said before") };
        assert_eq!(first.marker(), Some(marker("verify/1")));
        let again = tracker.add_comment(thread, &marker("verify/1"), "other words").expect("found");
        assert_eq!(again, CreateOutcome::Found(first));
        // A marker that an agent wrote into the text is none.
        assert!(matches!(
            tracker.add_comment(thread, &marker("verify/2"), "x").expect("said"),
            CreateOutcome::Made(_)
        ));
        let said = tracker.list_comments(thread).expect("comments");
        let markers: Vec<_> = said.iter().filter_map(|comment| comment.marker()).collect();
        assert_eq!(markers, [marker("verify/1"), marker("verify/2")]);
        assert_eq!(tracker.read_issue(issue).expect("there").comments, 2);
    });
}

#[test]
fn of_a_family_of_labels_one_is_left() {
    each(|Hands { tracker, .. }| {
        let about = |text| LabelSpec { label: label(text), colour: [1, 2, 3], about: "a phase".to_owned() };
        tracker.ensure_labels(&[about("phase/spec"), about("phase/ready")]).expect("they are there");
        tracker.ensure_labels(&[about("phase/spec"), about("Phase/Ready")]).expect("and stay");
        let issue = make(*tracker, "an issue").number;
        tracker
            .change_labels(issue, &labels(["phase/spec", "phase/code", "keep"]), &[].into())
            .expect("labelled");
        let swap = |to: Option<&str>| {
            let to = to.map(label);
            tracker.swap_label(issue, PHASE_FAMILY, to.as_ref()).expect("swapped")
        };
        assert_eq!(swap(Some("phase/ready")), labels(["keep", "phase/ready"]));
        assert_eq!(swap(Some("phase/ready")), labels(["keep", "phase/ready"]));
        assert_eq!(swap(None), labels(["keep"]));
        let both =
            tracker.change_labels(issue, &labels(["a"]), &labels(["keep", "never there"])).expect("changed");
        assert_eq!(both, labels(["a"]));
        assert_eq!(tracker.read_issue(issue).expect("there").labels, labels(["a"]));
    });
}

#[test]
fn a_size_is_read_where_it_was_written() {
    each(|Hands { tracker, .. }| {
        let issue = make(*tracker, "an issue").number;
        assert_eq!(tracker.read_size(issue), Ok(None));
        assert_eq!(tracker.set_size(issue, TaskSize::M), Ok(SizeSource::Label));
        assert_eq!(tracker.set_size(issue, TaskSize::XL), Ok(SizeSource::Label));
        assert_eq!(tracker.read_size(issue).expect("known").map(|seen| seen.size), Some(TaskSize::XL));
        // Two sizes are none.
        tracker.change_labels(issue, &labels(["size/S"]), &[].into()).expect("labelled");
        assert_eq!(tracker.read_size(issue), Ok(None));
    });
}

#[test]
fn an_issue_has_parts_that_wait_for_one_another() {
    each(|Hands { tracker, .. }| {
        let [parent, one, two, three] =
            ["parent", "one", "two", "three"].map(|title| make(*tracker, title).number);
        for child in [two, one, three, two] {
            tracker.add_child(parent, child).expect("part of it");
        }
        for _ in 0..2 {
            tracker.add_blocker(two, one).expect("waits");
        }
        tracker.add_blocker(two, three).expect("waits");
        tracker.close_issue(one, CloseReason::Done).expect("closed");
        let children = tracker.list_children(parent).expect("parts");
        let order: Vec<_> = children.iter().map(|child| child.issue.number).collect();
        assert_eq!(order, [two, one, three]);
        let waits = [
            Blocker { place: IssueLocation::Here(one), open: false },
            Blocker { place: IssueLocation::Here(three), open: true },
        ];
        assert_eq!(children[0].blocked_by, waits);
        assert_eq!(children[1].blocked_by, []);
        assert_eq!(tracker.blocked_by(two).expect("known"), waits);
        assert_eq!(tracker.read_issue(parent).expect("there").children, 3);
        assert_eq!(tracker.list_children(one).expect("none"), []);
        assert_eq!(tracker.find_parent(one), Ok(Some(IssueLocation::Here(parent))));
        assert_eq!(tracker.find_parent(parent), Ok(None));
        assert!(matches!(tracker.find_parent(number(99)), Err(TrackerError::NotFound { .. })));
        // What is taken away twice is gone once, and what it does not wait for changes nothing.
        for _ in 0..2 {
            tracker.remove_blocker(two, three).expect("it waits no longer");
        }
        tracker.remove_blocker(one, three).expect("it never did");
        assert_eq!(tracker.blocked_by(two).expect("known"), waits[..1]);
        // A part has one whole.
        let elsewhere = tracker.add_child(three, two).expect_err("it is part of another");
        assert!(
            matches!(elsewhere, TrackerError::Conflict { .. } | TrackerError::Refused { .. }),
            "{elsewhere:?}"
        );
    });
}

#[test]
fn a_branch_has_one_open_pull_request() {
    each(|Hands { tracker, push }| {
        push("work-1", sha('a').as_str());
        push("work-12", sha('b').as_str());
        let CreateOutcome::Made(pull) =
            tracker.create_pull_request(&new_pull("work-1", sha('a'))).expect("made")
        else {
            panic!("nothing was there")
        };
        assert_eq!((pull.head.clone(), pull.base.clone()), (Some(branch("work-1")), Some(branch("main"))));
        assert_eq!(
            (pull.head_sha.clone(), pull.state.clone(), pull.head_is_here),
            (sha('a'), PrState::Open, true)
        );
        let again = tracker.create_pull_request(&new_pull("work-1", sha('a'))).expect("found");
        assert_eq!(again.into_inner().number, pull.number);
        let other = tracker.create_pull_request(&new_pull("work-12", sha('b'))).expect("made").into_inner();
        // The branch is compared, not its beginning.
        let of = |name| -> Vec<_> {
            tracker.pull_requests_of(&branch(name)).expect("a list").into_iter().map(|it| it.number).collect()
        };
        assert_eq!(
            (of("work-1"), of("work-12"), of("work")),
            (vec![pull.number], vec![other.number], vec![])
        );
        tracker.close_pull_request(pull.number).expect("closed");
        tracker.close_pull_request(pull.number).expect("closed already");
        let next = tracker.create_pull_request(&new_pull("work-1", sha('a'))).expect("made").into_inner();
        assert_eq!(of("work-1"), [next.number, pull.number]);
        // Pull requests are not among the issues.
        assert_eq!(tracker.list_issues(&all()), Ok(vec![]));
    });
}

#[test]
fn a_pull_request_is_merged_once_and_only_with_the_head_we_know() {
    each(|Hands { tracker, push }| {
        push("work", sha('a').as_str());
        let mut new = new_pull("work", sha('a'));
        new.draft = true;
        let pull = tracker.create_pull_request(&new).expect("made").into_inner();
        assert_eq!(pull.state, PrState::Draft);
        let merge = |expected| PullRequestMerge {
            expected,
            subject: Title::from_text("feat: it (#1)"),
            body: "closes #1".to_owned(),
            landed: Some(sha('c')),
        };
        let conflict = |error| matches!(error, TrackerError::Conflict { .. });
        assert!(conflict(
            tracker.merge_pull_request(pull.number, &merge(sha('a'))).expect_err("it is a draft")
        ));
        for _ in 0..2 {
            tracker.mark_ready(pull.number).expect("ready");
        }
        assert_eq!(tracker.pull_request(pull.number).expect("there").state, PrState::Open);
        push("work", sha('b').as_str());
        tracker.note_pushed(pull.number, &sha('b')).expect("heard");
        assert!(conflict(
            tracker.merge_pull_request(pull.number, &merge(sha('a'))).expect_err("the head moved")
        ));
        let merged = tracker.merge_pull_request(pull.number, &merge(sha('b'))).expect("merged");
        assert!(!merged.already && merged.commit.is_some(), "{merged:?}");
        let again = tracker.merge_pull_request(pull.number, &merge(sha('b'))).expect("merged already");
        assert_eq!(again, CompletedMerge { already: true, ..merged.clone() });
        let state = tracker.pull_request(pull.number).expect("there").state;
        assert_eq!(state, PrState::Merged { commit: merged.commit });
        assert!(conflict(
            tracker.merge_pull_request(pull.number, &merge(sha('a'))).expect_err("another head was merged")
        ));
        tracker.close_pull_request(pull.number).expect("nothing to close");
    });
}

#[test]
fn a_pull_request_is_reviewed_and_talked_about_once() {
    each(|Hands { tracker, push }| {
        push("work", sha('a').as_str());
        let pull =
            tracker.create_pull_request(&new_pull("work", sha('a'))).expect("made").into_inner().number;
        let new = NewReview {
            marker: marker("review/1"),
            says: ReviewAction::RequestChanges,
            body: "MUST: mend it".to_owned(),
            commit: sha('a'),
        };
        let CreateOutcome::Made(review) = tracker.add_review(pull, &new).expect("reviewed") else {
            panic!("the first")
        };
        assert!(review.ours && review.body.starts_with("MUST: mend it"), "{review:?}");
        assert_eq!(review.commit, Some(sha('a')));
        assert_eq!(tracker.add_review(pull, &new).expect("found"), CreateOutcome::Found(review.clone()));
        assert_eq!(tracker.list_reviews(pull), Ok(vec![review]));
        let thread = CommentThread::PullRequest(pull);
        tracker.add_comment(thread, &marker("a"), "fixed").expect("said");
        tracker.add_comment(thread, &marker("a"), "fixed").expect("said before");
        assert_eq!(tracker.list_comments(thread).expect("comments").len(), 1);
        assert_eq!(sum_checks(&tracker.list_checks(&sha('a')).expect("none")), ChecksSum::None);
    });
}

#[test]
fn changes_are_heard_of_once() {
    each(|Hands { tracker, push }| {
        let [one, two] = ["one", "two"].map(|title| make(*tracker, title).number);
        let (seen, cursor) = tracker.list_changes(&Cursor::from(Timestamp(0))).expect("changes");
        let threads = |changes: &[landfall_trackers::tracker::TrackerChange]| -> Vec<CommentThread> {
            changes.iter().map(|change| change.thread).collect()
        };
        assert_eq!(threads(&seen), [one.into(), two.into()]);
        let (seen, cursor) = tracker.list_changes(&cursor).expect("changes");
        assert_eq!(seen, []);
        tracker.add_comment(one.into(), &marker("a"), "x").expect("said");
        let cursor: Cursor = cursor.to_string().parse().expect("what it wrote");
        let (seen, cursor) = tracker.list_changes(&cursor).expect("changes");
        assert_eq!(threads(&seen), [one.into()]);
        push("work", sha('a').as_str());
        let pull =
            tracker.create_pull_request(&new_pull("work", sha('a'))).expect("made").into_inner().number;
        let (seen, cursor) = tracker.list_changes(&cursor).expect("changes");
        assert_eq!(threads(&seen), [pull.into()]);
        assert_eq!(tracker.list_changes(&cursor).expect("changes").0, []);
    });
}

#[test]
fn a_name_that_is_no_tracker_is_refused_with_those_that_are() {
    let error = landfall_trackers::registry::find_tracker("gitlab").err().expect("there is none");
    assert_eq!(error.to_string(), "unknown tracker `gitlab`; known are github, local");
    assert!(TRACKERS.is_sorted_by_key(|entry| entry.name));
}

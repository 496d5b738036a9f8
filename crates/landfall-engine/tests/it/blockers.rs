//! What an issue waits for: by the relation of its tracker, by its text, and until when.

use std::collections::BTreeSet;
use std::sync::Arc;

use landfall_engine::exchange::{blockers_of, read_idle_sub_issues};
use landfall_model::Timestamp;
use landfall_trackers::local::LocalTracker;
use landfall_trackers::tracker::{
    CloseReason, IssueNumber, Label, Marker, NewIssue, PHASE_FAMILY, Title, Tracker, TrackerClock, WaitEnd,
};

struct Noon;

impl TrackerClock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp(43_200_000)
    }

    fn wait(&self, _: u64) -> WaitEnd {
        WaitEnd::Elapsed
    }
}

struct Board {
    _folder: tempfile::TempDir,
    tracker: LocalTracker,
}

impl Board {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let tracker = LocalTracker::new(&folder.path().join("issues"), "landfall", Arc::new(Noon));
        Self { _folder: folder, tracker }
    }

    fn issue(&self, title: &str, body: &str) -> IssueNumber {
        let new = NewIssue {
            marker: Marker::new(&format!("test/{}", title.to_lowercase())).expect("a key"),
            title: Title::from_text(title),
            body: body.to_owned(),
            labels: BTreeSet::new(),
        };
        self.tracker.create_issue(&new).expect("made").into_inner().number
    }

    fn label_done(&self, number: IssueNumber) {
        let done = Label::new("phase/done").expect("a label");
        self.tracker.swap_label(number, PHASE_FAMILY, Some(&done)).expect("labelled");
    }

    /// What an issue waits for, as `#1 open`.
    #[track_caller]
    fn check(&self, number: IssueNumber, expected: &[&str]) {
        let issue = self.tracker.read_issue(number).expect("it is there");
        let found = blockers_of(&self.tracker, &issue).expect("it can be asked");
        let shown: Vec<String> = found
            .iter()
            .map(|it| format!("{} {}", it.place, if it.open { "open" } else { "over" }))
            .collect();
        assert_eq!(shown, expected);
    }
}

#[test]
fn an_issue_waits_for_what_its_text_names_until_that_is_closed() {
    let board = Board::new();
    let (one, two) = (board.issue("One", ""), board.issue("Two", ""));
    let last = board.issue("Last", "Blocked by #1, #2 and #77. Blocked by #3.\n\n    see #1");
    board.tracker.add_blocker(last, one).expect("related");
    board.check(last, &["#1 open", "#2 open"]); // once each; one that is not there and the issue itself count for nothing
    board.tracker.close_issue(two, CloseReason::Done).expect("closed");
    board.check(last, &["#1 open", "#2 over"]);
}

#[test]
fn a_blocker_with_the_label_done_holds_nobody_up() {
    let board = Board::new();
    let (one, two) = (board.issue("One", ""), board.issue("Two", ""));
    let last = board.issue("Last", "Blocked by #2");
    board.tracker.add_blocker(last, one).expect("related");
    board.label_done(one);
    board.label_done(two);
    board.check(last, &["#1 over", "#2 over"]);
}

#[test]
fn a_done_blocker_that_is_opened_again_blocks_again() {
    let board = Board::new();
    let (one, two) = (board.issue("One", ""), board.issue("Two", ""));
    let last = board.issue("Last", "Blocked by #2");
    board.tracker.add_blocker(last, one).expect("related");
    for blocker in [one, two] {
        board.label_done(blocker);
        board.tracker.close_issue(blocker, CloseReason::Done).expect("closed");
    }
    board.check(last, &["#1 over", "#2 over"]);
    for blocker in [one, two] {
        board.tracker.reopen_issue(blocker).expect("opened"); // the label stays
    }
    board.check(last, &["#1 open", "#2 open"]);
}

#[test]
fn a_text_makes_no_parent_wait_for_its_parts_and_no_part_for_its_parent() {
    let board = Board::new();
    let whole = board.issue("Whole", "Blocked by #2, #3 and #4");
    let (one, two) = (board.issue("One", "Blocked by #1 and #3"), board.issue("Two", ""));
    board.issue("Other", "");
    for part in [one, two] {
        board.tracker.add_child(whole, part).expect("a part");
    }
    board.check(whole, &["#4 open"]);
    board.check(one, &["#3 open"]);
}

#[test]
fn a_part_with_the_label_done_is_done_unless_it_was_opened_again() {
    let board = Board::new();
    let (whole, one, two) =
        (board.issue("Whole", ""), board.issue("One", ""), board.issue("Two", "Blocked by #2"));
    for part in [one, two] {
        board.tracker.add_child(whole, part).expect("a part");
    }
    board.label_done(one);
    let parts = || {
        let parts = read_idle_sub_issues(&board.tracker, whole).expect("it can be asked");
        parts.into_iter().map(|it| (it.number, it.done, it.needs)).collect::<Vec<_>>()
    };
    assert_eq!(parts(), [(2, true, vec![]), (3, false, vec![2])], "a text counts among parts as well");
    board.tracker.close_issue(one, CloseReason::Done).expect("closed");
    board.tracker.reopen_issue(one).expect("opened");
    assert_eq!(parts()[0], (2, false, vec![]));
}

//! Issues as files: what people, crashes and agents do to a folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use landfall_trackers::local::LocalTracker;
use landfall_trackers::tracker::{
    CommitSha, CreateOutcome, IssueFilter, NewPullRequest, PullRequestMerge, Title, Tracker, TrackerError,
};

use crate::world::{TestClock, files, labels, make, marker, new_issue, number};

fn all() -> IssueFilter {
    IssueFilter { only_open: false, labels: [].into(), most: 1_000 }
}

#[test]
fn a_person_writes_an_issue_with_an_editor() {
    let files = files();
    let folder = files.folder.path().join("issues");
    fs::create_dir_all(&folder).expect("a folder");
    let text = "+++\nkind = \"issue\"\ntitle = \"By hand\"\nlabels = [\"size/S\"]\ncreated = \"2026-01-02T03:04:05Z\"\nmood = \"good\"\n+++\n\n- [ ] one\n";
    fs::write(folder.join("7.md"), text).expect("written");
    fs::write(folder.join("README.md"), "not an issue").expect("written");
    fs::write(folder.join("007.md"), "not an issue").expect("written");
    let issue = files.local.read_issue(number(7)).expect("it is one");
    assert_eq!((issue.title.as_str(), issue.body.as_str()), ("By hand", "- [ ] one"));
    assert_eq!(issue.labels, labels(["size/S"]));
    // What is changed keeps what a person added, and the next number is one nobody had.
    files.local.change_labels(number(7), &labels(["triaged"]), &[].into()).expect("labelled");
    let text = fs::read_to_string(folder.join("7.md")).expect("a file");
    assert!(text.contains("mood = \"good\"") && text.contains("triaged"), "{text}");
    assert_eq!(make(&files.local, "next").number, number(8));
    fs::remove_file(folder.join("8.md")).expect("deleted");
    assert_eq!(make(&files.local, "after").number, number(9));
    // Line ends of another system.
    fs::write(folder.join("10.md"), text.replace('\n', "\r\n")).expect("written");
    assert_eq!(files.local.read_issue(number(10)).expect("it is one").title, "By hand");
}

#[test]
fn a_file_that_makes_no_sense_is_named() {
    let files = files();
    let folder = files.folder.path().join("issues");
    fs::create_dir_all(&folder).expect("a folder");
    let broken = [
        "",
        "no head",
        "+++\n",
        "+++\n+++\n",
        "+++\nkind = \"issue\"\n",
        "+++\nkind = \"wish\"\ncreated = \"2026-01-02T03:04:05Z\"\n+++\n",
        "+++\nkind = \"issue\"\ncreated = \"yesterday\"\n+++\n",
        "+++\nkind = \"issue\"\ncreated = \"2026-01-02T03:04:05Z\"\nlabels = [\"a,b\"]\n+++\n",
        "+++\nkind = \"issue\"\ncreated = \"2026-01-02T03:04:05Z\"\nstate = \"merged\"\n+++\n",
    ];
    for text in broken {
        fs::write(folder.join("1.md"), text).expect("written");
        let error = files.local.read_issue(number(1)).expect_err("it makes no sense");
        let TrackerError::Malformed { what, why } = &error else { panic!("{text:?}: {error:?}") };
        assert!(what.ends_with("1.md") && !why.is_empty(), "{error}");
        assert_eq!(files.local.list_unreadable(), Ok(vec![error.clone()]), "{text:?}");
    }
    fs::write(folder.join("1.md"), [0xff, 0xfe]).expect("written");
    assert!(matches!(files.local.read_issue(number(1)), Err(TrackerError::Malformed { .. })));
}

#[test]
fn a_file_that_makes_no_sense_leaves_the_others_readable_and_says_in_which_line_it_is() {
    let files = files();
    let folder = files.folder.path().join("issues");
    let [one, three] = ["one", "three"].map(|title| make(&files.local, title));
    let broken =
        "+++\nkind = \"issue\"\ntitle = \"two\ncreated = \"2026-01-02T03:04:05Z\"\n+++\n\nlandfall: own/1\n";
    fs::write(folder.join("7.md"), broken).expect("written");
    assert_eq!(files.local.list_issues(&all()), Ok(vec![three, one]), "the others are shown");
    let unread = files.local.list_unreadable().expect("looked at");
    let [TrackerError::Malformed { what, why }] = &unread[..] else { panic!("{unread:?}") };
    assert!(what.ends_with("7.md") && why.starts_with("line 3: "), "{what}: {why}");
    assert_eq!(make(&files.local, "next").number, number(8), "and new ones are made");
    // What may be there already is not made again.
    let again = files.local.create_issue(&new_issue("own/1", "two", ""));
    assert!(matches!(again, Err(TrackerError::Malformed { .. })), "{again:?}");
    let missing = files.local.read_issue(number(99)).expect_err("nobody made it");
    assert!(missing.hint().contains("landfall issue list") && !missing.hint().contains("token"), "{missing}");
}

#[test]
fn what_is_no_file_is_not_followed_and_not_waited_for() {
    let files = files();
    let folder = files.folder.path().join("issues");
    fs::create_dir_all(&folder).expect("a folder");
    let secret = files.folder.path().join("secret.md");
    fs::write(
        &secret,
        "+++\nkind = \"issue\"\ntitle = \"secret\"\ncreated = \"2026-01-02T03:04:05Z\"\n+++\n",
    )
    .expect("written");
    symlink(&secret, folder.join("1.md")).expect("a link");
    fs::create_dir(folder.join("2.md")).expect("a folder");
    let pipe = std::process::Command::new("mkfifo").arg(folder.join("3.md")).status().expect("mkfifo runs");
    assert!(pipe.success());
    for index in 1..=3 {
        let error = files.local.read_issue(number(index)).expect_err("it is no file");
        assert!(matches!(error, TrackerError::Malformed { .. }), "{index}: {error:?}");
    }
    // Nor is a link written through: what was behind it stays.
    let error = files.local.close_issue(number(1), landfall_trackers::tracker::CloseReason::Done);
    assert!(matches!(error, Err(TrackerError::Malformed { .. })));
    assert!(fs::read_to_string(&secret).expect("a file").contains("secret"));
}

#[test]
fn many_write_at_once_and_nothing_is_lost_or_doubled() {
    let files = files();
    let folder = files.folder.path().join("issues");
    let issue = make(&files.local, "shared").number;
    std::thread::scope(|scope| {
        for writer in 0..6 {
            let folder = &folder;
            scope.spawn(move || {
                // Each as another process would be: with a tracker of its own.
                let local = LocalTracker::new(folder, "landfall", TestClock::new());
                for index in 0..5 {
                    local
                        .change_labels(issue, &labels([&format!("l/{writer}-{index}")]), &[].into())
                        .expect("labelled");
                    local
                        .add_comment(issue.into(), &marker(&format!("shared/{index}")), "said")
                        .expect("said");
                    local
                        .create_issue(&new_issue(&format!("same/{index}"), "same", ""))
                        .expect("made or found");
                    local
                        .create_issue(&new_issue(&format!("own/{writer}/{index}"), "own", ""))
                        .expect("made");
                    local.read_issue(issue).expect("readers need no lock");
                }
            });
        }
    });
    assert_eq!(files.local.read_issue(issue).expect("there").labels.len(), 30);
    assert_eq!(files.local.list_comments(issue.into()).expect("comments").len(), 5);
    assert_eq!(files.local.list_issues(&all()).expect("a list").len(), 1 + 5 + 30);
}

#[test]
fn a_write_that_was_cut_short_is_not_seen() {
    let files = files();
    let issue = make(&files.local, "an issue");
    // What a crash leaves: the name nobody reads.
    let left = files.folder.path().join("issues/.new");
    fs::write(&left, "+++\nhalf").expect("written");
    assert_eq!(files.local.list_issues(&all()), Ok(vec![issue.clone()]));
    files.local.close_issue(issue.number, landfall_trackers::tracker::CloseReason::Done).expect("closed");
    assert!(!left.exists());
}

#[test]
fn a_merge_is_written_down_only_with_the_commit_that_landed() {
    let files = files();
    let commit = CommitSha::new(&"a".repeat(40)).expect("a commit");
    let branch = |name| landfall_trackers::tracker::TrackerBranchName::new(name).expect("a branch");
    let new = NewPullRequest {
        head: branch("work"),
        head_sha: commit.clone(),
        base: branch("main"),
        title: Title::from_text("t"),
        body: String::new(),
        draft: false,
    };
    let pull = files.local.create_pull_request(&new).expect("made").into_inner().number;
    let merge = PullRequestMerge {
        expected: commit,
        subject: Title::from_text("t"),
        body: String::new(),
        landed: None,
    };
    assert!(matches!(files.local.merge_pull_request(pull, &merge), Err(TrackerError::Refused { .. })));
    assert!(files.local.pull_request(pull).expect("there").state.is_open());
}

#[test]
fn a_folder_that_cannot_be_written_is_an_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    let local = LocalTracker::new(&file.join("issues"), "landfall", TestClock::new());
    let error = local.create_issue(&new_issue("a", "t", "b")).expect_err("a file is in the way");
    assert!(matches!(error, TrackerError::Unavailable { unsure: false, .. }), "{error:?}");
    let error = local.create_issue(&new_issue("a", "t", &"x".repeat(3 << 20))).expect_err("still");
    assert!(matches!(error, TrackerError::Unavailable { .. }), "{error:?}");
    let local = Arc::new(LocalTracker::new(&folder.path().join("issues"), "landfall", TestClock::new()));
    let error = local
        .create_issue(&new_issue("a", "t", &"x".repeat(3 << 20)))
        .expect_err("too long to be read again");
    assert!(matches!(error, TrackerError::Refused { .. }), "{error:?}");
    assert!(matches!(local.create_issue(&new_issue("a", "t", "b")).expect("made"), CreateOutcome::Made(_)));
}

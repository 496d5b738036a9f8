//! The operations of a recovery, on real repositories and a real tracker of files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use landfall_engine::host::git::{Oid, Signature, Workspace};
use landfall_engine::recover_ops::{OpsError, RecoveryOpContext, RecoveryOpsResult, perform_operations};
use landfall_model::issue::{IssuePhase, Pipeline, PullRequestRef, is_of_round};
use landfall_model::recovery::{IssueArtifacts, RecoveryAction, RecoveryOp};
use landfall_model::{Commit, TaskId, Timestamp};
use landfall_trackers::local::LocalTracker;
use landfall_trackers::tracker::{
    CloseReason, CommentThread, CommitSha, IssueNumber, Marker, NewIssue, PHASE_FAMILY, PullRequestMerge,
    Title, Tracker as _, TrackerBranchName, TrackerClock, WaitEnd,
};

use crate::workspace::Scene;

struct Noon;

impl TrackerClock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp(1_700_000_000_000)
    }

    fn wait(&self, _: u64) -> WaitEnd {
        WaitEnd::Elapsed
    }
}

fn git(root: &Path, args: &[&str]) -> String {
    let done = Command::new("git")
        .current_dir(root)
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git is there");
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text").trim().to_owned()
}

/// A project with a remote, an issue, and a workspace in which an agent has committed.
struct Case {
    scene: Scene,
    tracker: LocalTracker,
    issue: IssueNumber,
    workspace: Workspace,
    hints: IssueArtifacts,
    /// The pull request of the round of work that is under way, and how many rounds were before.
    round: (Option<u64>, u32),
}

impl Case {
    fn new() -> Self {
        let scene = Scene::new("");
        let at = |name: &str| scene.folder.path().join(name);
        git(scene.folder.path(), &["init", "-q", "--bare", "forge.git"]);
        let forge = at("forge.git").to_str().expect("text").to_owned();
        git(&at("shop"), &["remote", "add", "origin", &forge]);
        git(&at("shop"), &["push", "-q", "origin", "main"]);
        let tracker = LocalTracker::new(&at("issues"), "landfall", Arc::new(Noon));
        let new = NewIssue {
            marker: Marker::new("test/1").expect("a key"),
            title: Title::from_text("Greet by name"),
            body: String::new(),
            labels: Default::default(),
        };
        let issue = tracker.create_issue(&new).expect("it is made").into_inner().number;
        let workspace = scene.workspace();
        let site = scene.site();
        let base = site.store.import_branch(&site.repo, &site.branch).expect("a commit");
        site.store.set_base(&base, None).expect("git runs");
        let case = Self {
            scene,
            tracker,
            issue,
            workspace,
            hints: IssueArtifacts { spec: true, commit: true, ..IssueArtifacts::default() },
            round: (None, 0),
        };
        case.work("greet.txt", "hello\n");
        case
    }

    fn at(&self, name: &str) -> PathBuf {
        self.scene.folder.path().join(name)
    }

    /// The agent commits a file.
    fn work(&self, name: &str, text: &str) -> Oid {
        std::fs::write(self.workspace.path().join(name), text).expect("a file");
        git(self.workspace.path(), &["add", "."]);
        git(self.workspace.path(), &["commit", "-qm", &format!("feat: {name}")]);
        self.head()
    }

    fn head(&self) -> Oid {
        self.scene.site().store.workspace_head(&self.workspace).expect("it has one")
    }

    /// Brings the work into the store, as verification does.
    fn collected(&self) -> Oid {
        let options = landfall_engine::host::git::CollectOptions {
            pin: Some(landfall_engine::host::git::RefName::new("refs/landfall/tasks/t7/1").expect("a name")),
            commit_leftovers: None,
            lost_head: landfall_engine::host::git::LostHeadPolicy::Refuse,
            aside: None,
            paths_max: 200_000,
        };
        self.scene.site().store.collect_work(&self.workspace, &options).expect("it is there").head
    }

    /// A person commits to the base.
    fn base_moves(&self, name: &str, text: &str) {
        std::fs::write(self.at("shop").join(name), text).expect("a file");
        git(&self.at("shop"), &["add", "."]);
        git(&self.at("shop"), &["commit", "-qm", "elsewhere"]);
        let site = self.scene.site();
        let before = site.store.read_base().expect("readable");
        let tip = site.store.import_branch(&site.repo, &site.branch).expect("a commit");
        site.store.set_base(&tip, before.as_ref()).expect("git runs");
    }

    fn perform(&self, head: &Oid, ops: &[RecoveryOp]) -> Result<RecoveryOpsResult, OpsError> {
        let site = self.scene.site();
        let branch = TrackerBranchName::new("landfall/t7").expect("a name");
        let base = TrackerBranchName::new("main").expect("a name");
        let by = Signature {
            name: "Ada".to_owned(),
            email: "ada@example.org".to_owned(),
            at_ms: 1_700_000_000_000,
        };
        let run_check = |name: &str, _: &Oid| match name {
            "test" => Ok(()),
            other => Err(format!("`{other}` ended with code 1")),
        };
        let (pr, reworks) = self.round;
        let commit = Commit::new(head.as_str());
        let pr = pr.map(|number| PullRequestRef { number, url: String::new(), head: commit });
        let pipeline = Pipeline { pr, reworks, ..Pipeline::default() };
        let ground = RecoveryOpContext {
            store: &site.store,
            repo: &site.repo,
            tracker: &self.tracker,
            remote: Some("origin"),
            task: TaskId(7),
            key: "t1",
            mark: "1-1",
            issue: self.issue,
            workspace: Some(&self.workspace),
            head,
            branch: &branch,
            base: &base,
            title: "Greet by name",
            body: "for everyone",
            by: &by,
            is_of_round: &|pr| is_of_round(pr.get(), &pipeline),
            hints: &|| Ok(self.hints),
            run_check: &run_check,
        };
        perform_operations(&ground, ops)
    }

    fn forge(&self, args: &[&str]) -> String {
        git(&self.at("forge.git"), args)
    }
}

#[test]
fn committed_work_that_was_never_offered_is_put_on_the_base_pushed_and_offered_once() {
    let case = Case::new();
    let head = case.collected();
    case.base_moves("other.txt", "x\n");
    let ops = RecoveryAction::OpenPr.to_operations();
    let did = case.perform(&head, &ops).unwrap_or_else(|error| panic!("{error}"));
    assert_ne!(did.head, head);
    assert_eq!(case.forge(&["rev-parse", "landfall/t7"]), did.head.as_str());
    let files = case.forge(&["ls-tree", "--name-only", "-r", "landfall/t7"]);
    assert_eq!(files, "greet.txt\nlandfall.toml\nother.txt");
    assert_eq!(
        case.forge(&["log", "--format=%an %cn %s", "main..landfall/t7"]).lines().next(),
        Some("A Ada feat: greet.txt")
    );
    let pr = case.tracker.pull_request(did.pr.expect("it was made")).expect("it is there");
    assert_eq!((pr.head_sha.as_str(), pr.title.as_str()), (did.head.as_str(), "Greet by name"));

    // The same again, from what came of it: nothing is done twice.
    let again = case.perform(&did.head, &ops).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((again.head, again.pr), (did.head.clone(), did.pr));
    assert_eq!(
        case.tracker
            .pull_requests_of(&TrackerBranchName::new("landfall/t7").expect("a name"))
            .expect("read")
            .len(),
        1
    );
    // What the work was before is kept.
    let kept = landfall_engine::host::git::RefName::new("refs/landfall/kept/t7/before-1-1").expect("a name");
    assert_eq!(case.scene.site().store.resolve_ref(&kept).expect("readable"), Some(head));
}

#[test]
fn a_sign_off_is_added_once_and_pushed_over_our_own_commit_only() {
    let case = Case::new();
    let head = case.collected();
    case.perform(&head, &[RecoveryOp::PushBranch]).expect("pushed");
    let did = case
        .perform(&head, &RecoveryAction::SignOff.to_operations())
        .unwrap_or_else(|error| panic!("{error}"));
    let message = case.forge(&["log", "-1", "--format=%B", "landfall/t7"]);
    assert_eq!(message, "feat: greet.txt\n\nSigned-off-by: Ada <ada@example.org>");
    let again = case.perform(&did.head, &[RecoveryOp::AmendSignOff]).expect("it is signed off");
    assert_eq!(
        (again.head, again.lines),
        (did.head.clone(), vec!["the last commit is signed off".to_owned()])
    );

    // Someone else moves the branch: from then on it is theirs.
    let other = case.at("other");
    git(
        &case.at("."),
        &["clone", "-q", "-b", "landfall/t7", case.at("forge.git").to_str().expect("text"), "other"],
    );
    git(&other, &["commit", "-q", "--allow-empty", "-m", "mine"]);
    git(&other, &["push", "-q"]);
    let theirs = case.forge(&["rev-parse", "landfall/t7"]);
    let head = case.work("more.txt", "more\n");
    assert_eq!(case.collected(), head);
    let error = case.perform(&head, &[RecoveryOp::PushBranch]).expect_err("it is theirs");
    assert!(matches!(&error, OpsError::Failed { number: 1, op: "push-branch", .. }), "{error}");
    assert_eq!(case.forge(&["rev-parse", "landfall/t7"]), theirs, "nothing was overwritten");
}

#[test]
fn what_is_in_dispute_is_not_guessed_and_what_came_before_it_is_told() {
    let case = Case::new();
    let head = case.collected();
    case.base_moves("greet.txt", "good day\n");
    for op in [RecoveryOp::RebaseOntoBase, RecoveryOp::MergeBase] {
        let ops = [RecoveryOp::RunCheck { name: "test".to_owned() }, op, RecoveryOp::PushBranch];
        let OpsError::Failed { number, why, did, .. } = case.perform(&head, &ops).expect_err("a dispute")
        else {
            panic!("nothing has changed")
        };
        assert_eq!((number, why.as_str()), (2, "the base has changed the same lines in greet.txt"));
        assert_eq!((did.head, did.lines), (head.clone(), vec!["check `test` passes".to_owned()]));
    }
    assert_eq!(case.forge(&["branch", "--list", "landfall/*"]), "", "nothing was pushed");
}

#[test]
fn leftovers_are_committed_and_the_base_is_merged() {
    let case = Case::new();
    let head = case.collected();
    case.base_moves("other.txt", "x\n");
    std::fs::write(case.workspace.path().join("left.txt"), "left\n").expect("a file");
    let did = case
        .perform(&head, &[RecoveryOp::CommitLeftovers, RecoveryOp::MergeBase])
        .unwrap_or_else(|error| panic!("{error}"));
    let store = &case.scene.site().store;
    let read = |name: &str| store.read_blob(&did.head, name.as_bytes(), 100).expect("readable");
    assert!(["greet.txt", "left.txt", "other.txt"].iter().all(|name| read(name).is_some()));
    assert_eq!(store.parents_of(&did.head).expect("readable").len(), 2);
}

#[test]
fn nothing_is_done_when_things_have_changed() {
    let case = Case::new();
    let head = case.collected();
    case.work("more.txt", "more\n");
    let error = case.perform(&head, &[RecoveryOp::PushBranch]).expect_err("the agent went on");
    assert!(matches!(&error, OpsError::Changed(why) if why.starts_with("the work has moved to ")), "{error}");
    let head = case.collected();
    case.tracker.close_issue(case.issue, CloseReason::NotPlanned).expect("closed");
    let error = case.perform(&head, &[RecoveryOp::PushBranch]).expect_err("nobody wants it any more");
    assert_eq!(error.to_string(), "nothing was done, because things have changed: issue #1 was closed");
    assert_eq!(case.forge(&["branch", "--list", "landfall/*"]), "");
}

#[test]
fn the_base_itself_is_never_amended_or_pushed() {
    let case = Case::new();
    let base = case.scene.site().store.read_base().expect("readable").expect("set");
    case.collected();
    for op in
        [RecoveryOp::AmendSignOff, RecoveryOp::RebaseOntoBase, RecoveryOp::PushBranch, RecoveryOp::OpenPr]
    {
        let error = case.perform(&base, std::slice::from_ref(&op)).expect_err("there is no work");
        assert!(error.to_string().ends_with("there are no commits besides those of the base"), "{error}");
    }
    let site = case.scene.site();
    let main = landfall_engine::host::git::BranchName::new("main").expect("a name");
    let refused = site.store.push_task_branch(&site.repo, "origin", &main, &case.head(), Some(&base));
    assert!(refused.is_err(), "whoever asks");
}

#[test]
fn the_tracker_is_told_what_is_so_and_nothing_twice() {
    let case = Case::new();
    let head = case.collected();
    let label = |phase| RecoveryOp::SetPhaseLabel { phase };
    let error = case.perform(&head, &[label(IssuePhase::Merge)]).expect_err("nothing is open");
    assert!(error.to_string().ends_with("its work says `code`, not `merge`"), "{error}");
    let ops = [
        label(IssuePhase::Code),
        RecoveryOp::Comment { text: "It was not pushed. <!-- landfall:review-summary -->".to_owned() },
        RecoveryOp::Comment { text: "It is now.".to_owned() },
    ];
    for _ in 0..2 {
        case.perform(&head, &ops).unwrap_or_else(|error| panic!("{error}"));
    }
    let issue = case.tracker.read_issue(case.issue).expect("it is there");
    assert_eq!(
        issue.labels.iter().filter_map(|it| it.name_within(PHASE_FAMILY)).collect::<Vec<_>>(),
        ["code"]
    );
    let comments = case.tracker.list_comments(CommentThread::Issue(case.issue)).expect("read");
    assert_eq!(comments.len(), 2);
    assert!(comments[0].body.contains("<!-- quoted landfall:review-summary -->"), "an agent makes no marks");

    let error = case.perform(&head, &[RecoveryOp::MarkReview]).expect_err("nothing is open");
    assert!(error.to_string().ends_with("there is no open pull request"), "{error}");
    let pr = case
        .perform(&head, &[RecoveryOp::PushBranch, RecoveryOp::OpenPr])
        .expect("offered")
        .pr
        .expect("it was made");
    let error = case.perform(&head, &[RecoveryOp::MarkReview]).expect_err("there is no review");
    assert!(error.to_string().contains("has no review of ours"), "{error}");
    let thread = CommentThread::PullRequest(pr);
    let marker = Marker::new("review/1").expect("a key");
    case.tracker.add_comment(thread, &marker, "## Review Summary\nfine").expect("said");
    for _ in 0..2 {
        case.perform(&head, &[RecoveryOp::MarkReview]).unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(case.tracker.list_comments(thread).expect("read").len(), 2);
    let did = case.perform(&head, &[RecoveryOp::RerunChecks]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(did.lines, [format!("nothing of {pr} can be run again")], "files run no checks");
}

#[test]
fn a_pull_request_of_an_earlier_round_that_was_merged_keeps_nothing_from_being_done() {
    let mut case = Case::new();
    let head = case.collected();
    let first = case
        .perform(&head, &[RecoveryOp::PushBranch, RecoveryOp::OpenPr])
        .expect("offered")
        .pr
        .expect("it was made");
    let sha = CommitSha::new(head.as_str()).expect("a commit");
    let merge = PullRequestMerge {
        expected: sha.clone(),
        subject: Title::from_text("Greet by name"),
        body: String::new(),
        landed: Some(sha),
    };
    case.tracker.merge_pull_request(first, &merge).expect("merged");
    for round in [(None, 0), (Some(first.get()), 0), (Some(first.get()), 1)] {
        case.round = round;
        let error = case.perform(&head, &[RecoveryOp::PushBranch]).expect_err("it is over");
        assert!(error.to_string().contains("was merged"), "{round:?}: {error}");
    }
    // What landed did not hold: it is worked on again, and offered anew.
    case.round = (None, 1);
    let again = case.work("greet.txt", "hello again\n");
    let second =
        case.perform(&again, &[RecoveryOp::CommitLeftovers, RecoveryOp::PushBranch, RecoveryOp::OpenPr]);
    let second = second.unwrap_or_else(|error| panic!("{error}")).pr.expect("it was made");
    assert_ne!(first, second);
    case.round = (Some(second.get()), 1);
    case.perform(&again, &[RecoveryOp::PushBranch]).unwrap_or_else(|error| panic!("{error}"));
}

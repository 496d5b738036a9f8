//! A tracker that hears no secrets: whatever is written to it goes through a veil first. There is no other way to one, so that nobody
//! who writes has to think of it.

use std::collections::BTreeSet;

use landfall_model::{TaskSize, Timestamp};
use landfall_trackers::tracker::{
    Blocker, ChildIssue, CloseReason, Comment, CommentThread, CommitSha, CompletedMerge, CreateOutcome,
    Cursor, FailedJob, ForgeCheck, Issue, IssueFilter, IssueLocation, IssueNumber, IssueSize, IssueTextEdit,
    Label, LabelSpec, Marker, NewIssue, NewPullRequest, NewReview, PrNumber, PullRequest, PullRequestMerge,
    SizeSource, Title, Tracker, TrackerBranchName, TrackerChange, TrackerError, TrackerResult, TrackerReview,
};

use crate::secrets::SecretMask;

/// A tracker behind a veil.
pub(super) struct MaskedTracker {
    inner: Box<dyn Tracker>,
    veil: SecretMask,
}

impl MaskedTracker {
    pub(super) fn new(inner: Box<dyn Tracker>, veil: SecretMask) -> Self {
        Self { inner, veil }
    }

    fn mask_title(&self, title: &Title) -> Title {
        Title::from_text(&self.veil.mask_text(title.as_str()))
    }

    /// A name is what others find something by: it cannot be changed, so it is refused.
    fn check_name(&self, what: &str, name: &str) -> TrackerResult<()> {
        if !self.veil.is_secret_name(name) {
            return Ok(());
        }
        let why = format!("the name of the {what} holds a secret, or what looks like one");
        Err(TrackerError::Refused { what: format!("name a {what}"), why })
    }

    fn check_labels<'a>(&self, labels: impl IntoIterator<Item = &'a Label>) -> TrackerResult<()> {
        labels.into_iter().try_for_each(|label| self.check_name("label", label.as_str()))
    }
}

/// What writes words goes through the veil. All the rest is asked as it is.
impl Tracker for MaskedTracker {
    fn list_unreadable(&self) -> TrackerResult<Vec<TrackerError>> {
        self.inner.list_unreadable()
    }

    fn create_issue(&self, new: &NewIssue) -> TrackerResult<CreateOutcome<Issue>> {
        self.check_labels(&new.labels)?;
        let (title, body) = (self.mask_title(&new.title), self.veil.mask_text(&new.body));
        self.inner.create_issue(&NewIssue { title, body, ..new.clone() })
    }

    fn edit_issue(&self, number: IssueNumber, edit: &IssueTextEdit) -> TrackerResult<Issue> {
        let touched = |text: &str| self.veil.contains_secret(text);
        let title = edit.title.as_ref().map(|title| self.mask_title(title));
        let body = match &edit.body {
            // A person may have written something there that only looks like a secret; a tick does not take it away.
            Some(body) if touched(body) => {
                Some(self.veil.mask_text_except(body, &self.inner.read_issue(number)?.body))
            }
            other => other.clone(),
        };
        self.inner.edit_issue(number, &IssueTextEdit { title, body })
    }

    fn add_comment(
        &self,
        thread: CommentThread,
        marker: &Marker,
        body: &str,
    ) -> TrackerResult<CreateOutcome<Comment>> {
        self.inner.add_comment(thread, marker, &self.veil.mask_text(body))
    }

    fn ensure_labels(&self, labels: &[LabelSpec]) -> TrackerResult<()> {
        self.check_labels(labels.iter().map(|spec| &spec.label))?;
        let veiled = |spec: &LabelSpec| LabelSpec { about: self.veil.mask_text(&spec.about), ..spec.clone() };
        self.inner.ensure_labels(&labels.iter().map(veiled).collect::<Vec<_>>())
    }

    fn change_labels(
        &self,
        number: IssueNumber,
        add: &BTreeSet<Label>,
        remove: &BTreeSet<Label>,
    ) -> TrackerResult<BTreeSet<Label>> {
        self.check_labels(add)?;
        self.inner.change_labels(number, add, remove)
    }

    fn swap_label(
        &self,
        number: IssueNumber,
        family: &str,
        to: Option<&Label>,
    ) -> TrackerResult<BTreeSet<Label>> {
        self.check_labels(to)?;
        self.inner.swap_label(number, family, to)
    }

    fn create_pull_request(&self, new: &NewPullRequest) -> TrackerResult<CreateOutcome<PullRequest>> {
        self.check_name("branch", new.head.as_str())?;
        let (title, body) = (self.mask_title(&new.title), self.veil.mask_text(&new.body));
        self.inner.create_pull_request(&NewPullRequest { title, body, ..new.clone() })
    }

    fn merge_pull_request(
        &self,
        number: PrNumber,
        merge: &PullRequestMerge,
    ) -> TrackerResult<CompletedMerge> {
        let (subject, body) = (self.mask_title(&merge.subject), self.veil.mask_text(&merge.body));
        self.inner.merge_pull_request(number, &PullRequestMerge { subject, body, ..merge.clone() })
    }

    fn add_review(&self, number: PrNumber, new: &NewReview) -> TrackerResult<CreateOutcome<TrackerReview>> {
        self.inner.add_review(number, &NewReview { body: self.veil.mask_text(&new.body), ..new.clone() })
    }

    fn keeps_branches(&self) -> bool {
        self.inner.keeps_branches()
    }

    fn default_branch(&self) -> TrackerResult<Option<TrackerBranchName>> {
        self.inner.default_branch()
    }

    fn read_issue(&self, number: IssueNumber) -> TrackerResult<Issue> {
        self.inner.read_issue(number)
    }

    fn list_issues(&self, filter: &IssueFilter) -> TrackerResult<Vec<Issue>> {
        self.inner.list_issues(filter)
    }

    fn close_issue(&self, number: IssueNumber, why: CloseReason) -> TrackerResult<Issue> {
        self.inner.close_issue(number, why)
    }

    fn reopen_issue(&self, number: IssueNumber) -> TrackerResult<Issue> {
        self.inner.reopen_issue(number)
    }

    fn last_reopened(&self, number: IssueNumber) -> TrackerResult<Option<Timestamp>> {
        self.inner.last_reopened(number)
    }

    fn list_comments(&self, thread: CommentThread) -> TrackerResult<Vec<Comment>> {
        self.inner.list_comments(thread)
    }

    fn read_size(&self, number: IssueNumber) -> TrackerResult<Option<IssueSize>> {
        self.inner.read_size(number)
    }

    fn set_size(&self, number: IssueNumber, size: TaskSize) -> TrackerResult<SizeSource> {
        self.inner.set_size(number, size)
    }

    fn list_children(&self, number: IssueNumber) -> TrackerResult<Vec<ChildIssue>> {
        self.inner.list_children(number)
    }

    fn add_child(&self, parent: IssueNumber, child: IssueNumber) -> TrackerResult<()> {
        self.inner.add_child(parent, child)
    }

    fn find_parent(&self, number: IssueNumber) -> TrackerResult<Option<IssueLocation>> {
        self.inner.find_parent(number)
    }

    fn blocked_by(&self, number: IssueNumber) -> TrackerResult<Vec<Blocker>> {
        self.inner.blocked_by(number)
    }

    fn add_blocker(&self, number: IssueNumber, blocker: IssueNumber) -> TrackerResult<()> {
        self.inner.add_blocker(number, blocker)
    }

    fn remove_blocker(&self, number: IssueNumber, blocker: IssueNumber) -> TrackerResult<()> {
        self.inner.remove_blocker(number, blocker)
    }

    fn pull_request(&self, number: PrNumber) -> TrackerResult<PullRequest> {
        self.inner.pull_request(number)
    }

    fn pull_requests_of(&self, head: &TrackerBranchName) -> TrackerResult<Vec<PullRequest>> {
        self.inner.pull_requests_of(head)
    }

    fn note_pushed(&self, number: PrNumber, head: &CommitSha) -> TrackerResult<()> {
        self.inner.note_pushed(number, head)
    }

    fn mark_ready(&self, number: PrNumber) -> TrackerResult<()> {
        self.inner.mark_ready(number)
    }

    fn close_pull_request(&self, number: PrNumber) -> TrackerResult<()> {
        self.inner.close_pull_request(number)
    }

    fn list_reviews(&self, number: PrNumber) -> TrackerResult<Vec<TrackerReview>> {
        self.inner.list_reviews(number)
    }

    fn list_checks(&self, commit: &CommitSha) -> TrackerResult<Vec<ForgeCheck>> {
        self.inner.list_checks(commit)
    }

    fn failed_jobs(&self, commit: &CommitSha) -> TrackerResult<Vec<FailedJob>> {
        self.inner.failed_jobs(commit)
    }

    fn rerun_checks(&self, commit: &CommitSha) -> TrackerResult<usize> {
        self.inner.rerun_checks(commit)
    }

    fn list_changes(&self, since: &Cursor) -> TrackerResult<(Vec<TrackerChange>, Cursor)> {
        self.inner.list_changes(since)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;

    use landfall_trackers::tracker::ReviewAction;

    use super::*;
    use crate::folder::StateFolder;
    use crate::secrets::tests::sample_secrets;
    use crate::settings::Settings;
    use crate::tracker::{TrackerEnv, open_tracker};

    /// Everything that was written to files below a folder.
    fn read_written_files(folder: &Path) -> String {
        let mut all = String::new();
        for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            match path.is_dir() {
                true => all.push_str(&read_written_files(&path)),
                false => all.push_str(&String::from_utf8_lossy(&std::fs::read(&path).expect("a file"))),
            }
        }
        all
    }

    /// Writes this with every word of the trait that takes any.
    fn write_in_every_field(tracker: &dyn Tracker, text: &str) {
        let marker = |key: &str| Marker::new(key).expect("a key");
        let sha = CommitSha::new(&"a".repeat(40)).expect("a commit");
        let branch = |name: &str| TrackerBranchName::new(name).expect("a name");
        let title = || Title::from_text(text);
        let new = NewIssue {
            marker: marker("new"),
            title: title(),
            body: text.to_owned(),
            labels: BTreeSet::new(),
        };
        let issue = tracker.create_issue(&new).expect("made").into_inner();
        let edit = IssueTextEdit { title: Some(title()), body: Some(format!("edited: {text}")) };
        tracker.edit_issue(issue.number, &edit).expect("edited");
        tracker.add_comment(CommentThread::Issue(issue.number), &marker("said"), text).expect("said");
        let label = Label::new("night").expect("a label");
        let spec = LabelSpec { label, colour: [0, 0, 0], about: text.to_owned() };
        tracker.ensure_labels(&[spec]).expect("there");
        let pr = NewPullRequest {
            head: branch("landfall/issue-1"),
            head_sha: sha.clone(),
            base: branch("main"),
            title: title(),
            body: text.to_owned(),
            draft: false,
        };
        let pr = tracker.create_pull_request(&pr).expect("made").into_inner();
        tracker.add_comment(CommentThread::PullRequest(pr.number), &marker("pr"), text).expect("said");
        let review = NewReview {
            marker: marker("review"),
            says: ReviewAction::Comment,
            body: text.to_owned(),
            commit: sha.clone(),
        };
        tracker.add_review(pr.number, &review).expect("reviewed");
        let merge = PullRequestMerge {
            expected: sha.clone(),
            subject: title(),
            body: text.to_owned(),
            landed: Some(sha.clone()),
        };
        tracker.merge_pull_request(pr.number, &merge).expect("merged");
    }

    #[test]
    fn no_secret_reaches_a_tracker_by_any_of_its_writes() {
        let known = ["canary-of-the-environment", "canary-of-a-profile"];
        let settings = "[agent.default]\nkind = \"script\"\nenv = { MY_API_KEY = \"canary-of-a-profile\" }\n";
        let settings =
            Settings::parse(settings, "landfall.toml").unwrap_or_else(|problem| panic!("{problem}"));
        let environment = [(OsString::from("DEPLOY_TOKEN"), OsString::from(known[0]))];
        for secret in sample_secrets().into_iter().chain(known.map(str::to_owned)) {
            let folder = tempfile::tempdir().expect("a folder");
            let state = StateFolder::at_root(folder.path().to_owned());
            let around = TrackerEnv {
                root: folder.path(),
                folder: &state,
                environment: &environment,
                author: "a person",
            };
            let tracker = open_tracker(&settings, &around).expect("it opens");
            let line = secret.lines().next().expect("a line").to_owned();
            write_in_every_field(&*tracker, &format!("see {secret}"));
            let all = read_written_files(folder.path());
            let last = secret.lines().nth(1).unwrap_or(&line);
            assert!(!all.contains(last), "{secret} got through:\n{all}");
            assert!(all.matches("***").count() >= 7, "something was written: {all}");
        }
    }

    #[test]
    fn a_name_that_holds_a_secret_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateFolder::at_root(folder.path().to_owned());
        let around = TrackerEnv { root: folder.path(), folder: &state, environment: &[], author: "a person" };
        let settings = Settings::parse("", "landfall.toml").unwrap_or_else(|problem| panic!("{problem}"));
        let tracker = open_tracker(&settings, &around).expect("it opens");
        let label = Label::new(&sample_secrets()[4]).expect("a label");
        let labels = BTreeSet::from([label.clone()]);
        let marker = Marker::new("new").expect("a key");
        let new =
            NewIssue { marker, title: Title::from_text("A"), body: String::new(), labels: labels.clone() };
        let why = tracker.create_issue(&new).map(drop).expect_err("refused").to_string();
        assert!(why.contains("the name of the label") && !why.contains(label.as_str()), "{why}");
        let plain = NewIssue { labels: BTreeSet::new(), ..new };
        let number = tracker.create_issue(&plain).expect("made").into_inner().number;
        assert!(tracker.change_labels(number, &labels, &BTreeSet::new()).is_err());
        assert!(tracker.swap_label(number, "glpat", Some(&label)).is_err());
        assert!(tracker.change_labels(number, &BTreeSet::new(), &labels).is_ok(), "it may be taken away");
    }

    #[test]
    fn a_tick_leaves_what_a_person_wrote() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateFolder::at_root(folder.path().to_owned());
        let around = TrackerEnv { root: folder.path(), folder: &state, environment: &[], author: "a person" };
        let settings = Settings::parse("", "landfall.toml").unwrap_or_else(|problem| panic!("{problem}"));
        let tracker = open_tracker(&settings, &around).expect("it opens");
        let marker = Marker::new("new").expect("a key");
        let new =
            NewIssue { marker, title: Title::from_text("A"), body: "x".to_owned(), labels: BTreeSet::new() };
        let number = tracker.create_issue(&new).expect("made").into_inner().number;
        let (theirs, ours) = (&sample_secrets()[0], &sample_secrets()[4]);
        let file = written_file(&state.issues_path());
        let text =
            std::fs::read_to_string(&file).expect("a file").replace("\nx", &format!("\n- [ ] {theirs}"));
        std::fs::write(&file, text).expect("a person writes");
        let body = tracker.read_issue(number).expect("there").body;
        assert!(body.contains(theirs.as_str()), "{body}");
        let body = format!("{} {ours}", body.replace("[ ]", "[x]"));
        let edit = IssueTextEdit { title: None, body: Some(body) };
        let after = tracker.edit_issue(number, &edit).expect("edited").body;
        assert!(after.contains(&format!("[x] {theirs}")) && after.ends_with("***"), "{after}");
    }

    fn written_file(folder: &Path) -> std::path::PathBuf {
        let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("one").path());
        entries.filter(|path| path.extension().is_some_and(|it| it == "md")).min().expect("an issue")
    }
}

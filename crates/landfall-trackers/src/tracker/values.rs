//! What a tracker knows, as plain values. None of them is a type of a client or of a wire.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use landfall_model::{TaskSize, Timestamp};

use super::{CommitSha, IssueNumber, Label, Marker, PrNumber, Title, TrackerBranchName};

/// An issue, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// Its number.
    pub number: IssueNumber,
    /// The title as it is there: text of others.
    pub title: String,
    /// The body as it is there: text of others.
    pub body: String,
    /// Open or closed.
    pub state: TrackerIssueState,
    /// Its labels.
    pub labels: BTreeSet<Label>,
    /// Whose it is.
    pub assignees: Vec<String>,
    /// Who wrote it; none if the account is gone.
    pub author: Option<String>,
    /// How many comments there are.
    pub comments: u64,
    /// How many issues it is made of.
    pub children: u64,
    /// How many issues it waits for, if the tracker says so by the way; ask for them by name otherwise.
    pub blockers: Option<u64>,
    /// When it was made.
    pub created: Timestamp,
    /// When anything about it last changed.
    pub updated: Timestamp,
    /// Where a person looks at it.
    pub url: String,
}

impl Issue {
    /// The size its `size/*` label says. Two that differ say nothing.
    #[must_use]
    pub fn labelled_size(&self) -> Option<TaskSize> {
        let said: BTreeSet<TaskSize> =
            self.labels.iter().filter_map(|label| label.name_within(SIZE_FAMILY)?.parse().ok()).collect();
        let mut said = said.into_iter();
        said.next().filter(|_| said.next().is_none())
    }
}

/// What the labels of sizes begin with.
pub const SIZE_FAMILY: &str = "size/";
/// What the labels of phases begin with.
pub const PHASE_FAMILY: &str = "phase/";

/// Whether an issue is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrackerIssueState {
    /// It waits to be done.
    Open,
    /// It does not, since then and for this reason.
    Closed {
        /// Why.
        why: CloseReason,
        /// When, if the tracker says.
        at: Option<Timestamp>,
    },
}

impl TrackerIssueState {
    /// Whether it is open.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Open)
    }
}

/// Why an issue is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// It is done.
    Done,
    /// Nobody will do it.
    NotPlanned,
}

/// How big an issue is, and where that stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IssueSize {
    /// The size.
    pub size: TaskSize,
    /// Where it was found.
    pub stands: SizeSource,
}

/// Where a size is written down. A field of a project is believed before a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeSource {
    /// In the size field of a project.
    Field,
    /// In a `size/*` label.
    Label,
}

/// An issue to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewIssue {
    /// What it is known again by.
    pub marker: Marker,
    /// Its title.
    pub title: Title,
    /// Its body.
    pub body: String,
    /// Its labels.
    pub labels: BTreeSet<Label>,
}

/// What to change about an issue's words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IssueTextEdit {
    /// A new title.
    pub title: Option<Title>,
    /// A new body.
    pub body: Option<String>,
}

/// Which issues are asked for. Newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueFilter {
    /// Only open ones.
    pub only_open: bool,
    /// With all of these labels.
    pub labels: BTreeSet<Label>,
    /// No more than this many.
    pub most: usize,
}

/// Who hears a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommentThread {
    /// Under an issue.
    Issue(IssueNumber),
    /// Under a pull request.
    PullRequest(PrNumber),
}

impl CommentThread {
    /// Its number: issues and pull requests are counted together.
    #[must_use]
    pub fn number(self) -> u64 {
        match self {
            Self::Issue(number) => number.get(),
            Self::PullRequest(number) => number.get(),
        }
    }
}

impl fmt::Display for CommentThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Issue(number) => write!(f, "issue {number}"),
            Self::PullRequest(number) => write!(f, "pull request {number}"),
        }
    }
}

impl From<IssueNumber> for CommentThread {
    fn from(number: IssueNumber) -> Self {
        Self::Issue(number)
    }
}

impl From<PrNumber> for CommentThread {
    fn from(number: PrNumber) -> Self {
        Self::PullRequest(number)
    }
}

/// A comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// Its number, across all comments of the tracker or of the thread.
    pub id: u64,
    /// Who wrote it; none if the account is gone.
    pub author: Option<String>,
    /// Whether we wrote it: only then its marker counts.
    pub ours: bool,
    /// The text as it is there.
    pub body: String,
    /// When it was made.
    pub created: Timestamp,
}

impl Comment {
    /// The marker it bears, if it is ours.
    #[must_use]
    pub fn marker(&self) -> Option<Marker> {
        Marker::split_marker(&self.body).filter(|_| self.ours).map(|(marker, _)| marker)
    }
}

/// Something that is to be there once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreateOutcome<T> {
    /// It was made now.
    Made(T),
    /// It was there already.
    Found(T),
}

impl<T> CreateOutcome<T> {
    /// The thing, either way.
    pub fn into_inner(self) -> T {
        match self {
            Self::Made(it) | Self::Found(it) => it,
        }
    }
}

/// A label as a repository keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSpec {
    /// The label.
    pub label: Label,
    /// Its colour: six hexadecimal digits.
    pub colour: [u8; 3],
    /// What it is for.
    pub about: String,
}

/// An issue among the children of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildIssue {
    /// The issue.
    pub issue: Issue,
    /// The issues it waits for, in the order of the tracker.
    pub blocked_by: Vec<Blocker>,
}

/// An issue that another waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// Which.
    pub place: IssueLocation,
    /// Whether it is open. A closed one holds nobody up.
    pub open: bool,
}

/// Where an issue is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssueLocation {
    /// In this tracker.
    Here(IssueNumber),
    /// In another repository, written `owner/name#12`.
    Elsewhere(String),
}

impl fmt::Display for IssueLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(number) => write!(f, "{number}"),
            Self::Elsewhere(place) => f.write_str(place),
        }
    }
}

/// A pull request, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number.
    pub number: PrNumber,
    /// The title: text of others.
    pub title: String,
    /// The body: text of others.
    pub body: String,
    /// Open, merged or closed.
    pub state: PrState,
    /// The branch with the work; none if its name is one we would not touch.
    pub head: Option<TrackerBranchName>,
    /// Whether the branch is in the same repository. One of a stranger's fork is not.
    pub head_is_here: bool,
    /// What the branch points at.
    pub head_sha: CommitSha,
    /// The branch it is to be merged into; none if its name is one we would not touch.
    pub base: Option<TrackerBranchName>,
    /// Who made it; none if the account is gone.
    pub author: Option<String>,
    /// Whether it merges, if that is known yet.
    pub merges: Option<bool>,
    /// When it was made.
    pub created: Timestamp,
    /// Where a person looks at it.
    pub url: String,
}

/// Where a pull request stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrState {
    /// It waits, and is not said to be ready.
    Draft,
    /// It waits to be merged.
    Open,
    /// It was closed without.
    Closed,
    /// It is merged.
    Merged {
        /// The commit that came of it, if the tracker says.
        commit: Option<CommitSha>,
    },
}

impl PrState {
    /// Whether it waits to be merged, ready or not.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Draft | Self::Open)
    }
}

/// A pull request to be made. There is one for a head and a base at most, so it needs no marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPullRequest {
    /// The branch with the work. It is pushed already.
    pub head: TrackerBranchName,
    /// What it points at. A tracker that keeps no branches writes it down.
    pub head_sha: CommitSha,
    /// The branch it is to be merged into.
    pub base: TrackerBranchName,
    /// Its title.
    pub title: Title,
    /// Its body.
    pub body: String,
    /// Whether it is not ready yet.
    pub draft: bool,
}

/// A merge that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequestMerge {
    /// What the head has to point at, or nothing is merged.
    pub expected: CommitSha,
    /// The first line of the message.
    pub subject: Title,
    /// The rest of it.
    pub body: String,
    /// The commit that is on the base already. A tracker that keeps no branches only writes down that it is.
    pub landed: Option<CommitSha>,
}

/// A merge that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletedMerge {
    /// The commit that came of it, if the tracker says.
    pub commit: Option<CommitSha>,
    /// Whether it had happened before we asked.
    pub already: bool,
}

/// A review of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackerReview {
    /// Its number.
    pub id: u64,
    /// Who wrote it; none if the account is gone.
    pub author: Option<String>,
    /// Whether we wrote it.
    pub ours: bool,
    /// What it says about the whole.
    pub verdict: ReviewVerdict,
    /// The text as it is there.
    pub body: String,
    /// The commit it is about, if the tracker says.
    pub commit: Option<CommitSha>,
}

/// What a review says about the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewVerdict {
    /// It may be merged.
    Approved,
    /// It may not, as it is.
    ChangesRequested,
    /// Neither.
    Commented,
    /// It said something once, and no longer counts.
    Dismissed,
    /// It is being written.
    Pending,
}

/// A review to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReview {
    /// What it is known again by.
    pub marker: Marker,
    /// What it says. GitHub lets nobody approve what is their own; it becomes a comment there.
    pub says: ReviewAction,
    /// The text.
    pub body: String,
    /// The commit it is about.
    pub commit: CommitSha,
}

/// What a review of ours can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewAction {
    /// It may be merged.
    Approve,
    /// It may not, as it is.
    RequestChanges,
    /// Neither.
    Comment,
}

/// One job that looks at a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgeCheck {
    /// What the tracker knows it by; another run of the same job has another one.
    pub id: Option<u64>,
    /// What it is called: text of others. Never read for words such as "fail".
    pub name: String,
    /// Who runs it, if the tracker says.
    pub by: Option<String>,
    /// How far it is.
    pub state: ForgeCheckState,
    /// When it began.
    pub started: Option<Timestamp>,
    /// Where a person looks at it.
    pub url: Option<String>,
}

/// How far a check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgeCheckState {
    /// It waits for its turn, or for someone.
    Waiting,
    /// It runs.
    Running,
    /// It is over.
    Done(Conclusion),
}

/// How a check ended. The words are GitHub's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Conclusion {
    /// It passed.
    Success,
    /// It failed.
    Failure,
    /// It says nothing either way.
    Neutral,
    /// Someone or something ended it.
    Cancelled,
    /// It was left out.
    Skipped,
    /// It took too long.
    TimedOut,
    /// A person has to do something.
    ActionRequired,
    /// It was forgotten: no news for two weeks.
    Stale,
    /// It could not even begin.
    StartupFailure,
}

/// How a job that failed came to fail, as its runner tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedJob {
    /// The check it is: see [`ForgeCheck::id`].
    pub check: u64,
    /// Its steps, in their order.
    pub steps: Vec<JobStep>,
    /// What its runner or its steps remarked about the failure: text of others.
    pub remarks: Vec<String>,
}

/// A step of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobStep {
    /// What it is called: text of others.
    pub name: String,
    /// How it ended; none if nobody saw its end.
    pub ended: Option<Conclusion>,
}

/// What the checks of a commit come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksSum {
    /// There are none. That is no pass.
    None,
    /// Some are not over, and none has failed.
    Pending,
    /// All are over and none has failed; at least one passed.
    Passed,
    /// At least one failed.
    Failed,
    /// None failed, but some were cancelled, timed out or could not begin: it says nothing about the commit.
    Broken,
}

/// Adds checks up, by what they concluded and by nothing else.
#[must_use]
pub fn sum_checks(checks: &[ForgeCheck]) -> ChecksSum {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for check in checks {
        let kind = match check.state {
            ForgeCheckState::Waiting | ForgeCheckState::Running => "pending",
            ForgeCheckState::Done(Conclusion::Success) => "passed",
            ForgeCheckState::Done(Conclusion::Failure) => "failed",
            ForgeCheckState::Done(Conclusion::Neutral | Conclusion::Skipped) => "silent",
            ForgeCheckState::Done(
                Conclusion::Cancelled
                | Conclusion::TimedOut
                | Conclusion::ActionRequired
                | Conclusion::Stale
                | Conclusion::StartupFailure,
            ) => "broken",
        };
        *counts.entry(kind).or_default() += 1;
    }
    let some = |kind: &str| counts.contains_key(kind);
    if some("failed") {
        ChecksSum::Failed
    } else if some("pending") {
        ChecksSum::Pending
    } else if some("broken") {
        ChecksSum::Broken
    } else if some("passed") {
        ChecksSum::Passed
    } else {
        ChecksSum::None
    }
}

/// Up to where changes were heard of. Kept as text; what is in it concerns the tracker that made it alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cursor {
    /// Everything before this was heard of.
    pub at: Timestamp,
    /// What was heard of at exactly that moment: moments are coarse, and several things happen in one.
    pub heard: BTreeSet<u64>,
}

impl Cursor {
    /// The first cursor: everything from this moment on.
    #[must_use]
    pub fn from(at: Timestamp) -> Self {
        Self { at, heard: BTreeSet::new() }
    }

    /// What of these is new, oldest first, and the cursor after them.
    #[must_use]
    pub fn advance_past(&self, mut seen: Vec<TrackerChange>) -> (Vec<TrackerChange>, Self) {
        seen.sort_by_key(|change| (change.at, change.thread));
        seen.retain(|change| {
            change.at > self.at || (change.at == self.at && !self.heard.contains(&change.thread.number()))
        });
        let mut next = self.clone();
        for change in &seen {
            if change.at > next.at {
                next = Self::from(change.at);
            }
            next.heard.insert(change.thread.number());
        }
        (seen, next)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.at.0)?;
        self.heard.iter().try_for_each(|number| write!(f, " {number}"))
    }
}

impl std::str::FromStr for Cursor {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = text.split(' ');
        let at = Timestamp(words.next().unwrap_or_default().parse()?);
        Ok(Self { at, heard: words.map(str::parse).collect::<Result<_, _>>()? })
    }
}

/// Something changed about an issue or a pull request. What, is read from the tracker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackerChange {
    /// Where.
    pub thread: CommentThread,
    /// When.
    pub at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, state: ForgeCheckState) -> ForgeCheck {
        ForgeCheck { id: None, name: name.to_owned(), by: None, state, started: None, url: None }
    }

    #[test]
    fn a_job_called_fail_that_passed_has_passed() {
        let passed = ForgeCheckState::Done(Conclusion::Success);
        assert_eq!(sum_checks(&[check("should-fail / failure modes", passed)]), ChecksSum::Passed);
        assert_eq!(sum_checks(&[]), ChecksSum::None);
        assert_eq!(
            sum_checks(&[check("skipped", ForgeCheckState::Done(Conclusion::Skipped))]),
            ChecksSum::None
        );
        assert_eq!(
            sum_checks(&[check("a", passed), check("b", ForgeCheckState::Running)]),
            ChecksSum::Pending
        );
        let cancelled = ForgeCheckState::Done(Conclusion::Cancelled);
        assert_eq!(sum_checks(&[check("a", passed), check("success", cancelled)]), ChecksSum::Broken);
        let failed = ForgeCheckState::Done(Conclusion::Failure);
        assert_eq!(
            sum_checks(&[check("success", failed), check("b", ForgeCheckState::Running)]),
            ChecksSum::Failed
        );
    }

    #[test]
    fn a_cursor_forgets_nothing_and_repeats_nothing_within_a_moment() {
        let change = |number, at| TrackerChange {
            thread: CommentThread::Issue(IssueNumber::new(number).expect("not 0")),
            at: Timestamp(at),
        };
        let numbers =
            |changes: &[TrackerChange]| changes.iter().map(|it| it.thread.number()).collect::<Vec<_>>();
        let (new, cursor) = Cursor::default().advance_past(vec![change(2, 5), change(1, 5), change(3, 4)]);
        assert_eq!((numbers(&new), cursor.to_string()), (vec![3, 1, 2], "5 1 2".to_owned()));
        // The same moment again, with one more that was not there before.
        let cursor: Cursor = cursor.to_string().parse().expect("what it wrote");
        let (new, cursor) = cursor.advance_past(vec![change(1, 5), change(2, 5), change(9, 5)]);
        assert_eq!((numbers(&new), cursor.to_string()), (vec![9], "5 1 2 9".to_owned()));
        let (new, cursor) = cursor.advance_past(vec![change(1, 6), change(2, 5)]);
        assert_eq!((numbers(&new), cursor.to_string()), (vec![1], "6 1".to_owned()));
        assert!("5 x".parse::<Cursor>().is_err() && "".parse::<Cursor>().is_err());
    }
}

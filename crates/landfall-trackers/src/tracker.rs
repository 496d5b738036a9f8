//! What every tracker can do. Calls block and may take as long as a network takes; the engine makes them in threads of
//! their own. A tracker never decides: it is asked, it writes what it is told, and it writes nothing twice.
//!
//! Whatever is created bears a [`Marker`], or is the only one of its kind (a pull request of a branch). It is looked for
//! before it is made and again when an answer was lost, so each of these calls may simply be repeated.

mod error;
mod names;
mod values;

use std::collections::BTreeSet;

use landfall_model::{TaskSize, Timestamp};

pub use error::TrackerError;
pub use names::{
    CommitSha, IssueNumber, Label, Marker, NameError, PrNumber, RepoName, Slug, Title, TrackerBranchName,
    escape_beginning, neutralize_markers,
};
pub use values::{
    Blocker, ChecksSum, ChildIssue, CloseReason, Comment, CommentThread, CompletedMerge, Conclusion,
    CreateOutcome, Cursor, FailedJob, ForgeCheck, ForgeCheckState, Issue, IssueFilter, IssueLocation,
    IssueSize, IssueTextEdit, JobStep, LabelSpec, NewIssue, NewPullRequest, NewReview, PHASE_FAMILY, PrState,
    PullRequest, PullRequestMerge, ReviewAction, ReviewVerdict, SIZE_FAMILY, SizeSource, TrackerChange,
    TrackerIssueState, TrackerReview, sum_checks,
};

/// What a tracker answers.
pub type TrackerResult<T> = Result<T, TrackerError>;

/// The time, handed in so that tests can hold it.
pub trait TrackerClock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
    /// Returns after so many milliseconds, or at once if whoever asks is to stop.
    fn wait(&self, ms: u64) -> WaitEnd;
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum WaitEnd {
    /// The time is over.
    Elapsed,
    /// Whoever asks is to stop: nothing is waited for any more.
    Stopped,
}

/// Where issues and pull requests are kept. Nothing has an answer of its own here: one tracker stands before another, and must
/// hand on all that is asked.
pub trait Tracker: Send + Sync {
    /// Whether it keeps the branches of pull requests, so that it merges them. One that does not only writes down
    /// what was landed.
    fn keeps_branches(&self) -> bool;
    /// The branch work is merged into unless someone says otherwise, as it is called now. None if it keeps none.
    fn default_branch(&self) -> TrackerResult<Option<TrackerBranchName>>;

    /// An issue. A pull request is none.
    fn read_issue(&self, number: IssueNumber) -> TrackerResult<Issue>;
    /// Issues, newest first. Pull requests are none.
    fn list_issues(&self, filter: &IssueFilter) -> TrackerResult<Vec<Issue>>;
    /// What is among its issues and pull requests and cannot be read: a list leaves it out. A tracker whose records only it
    /// writes has none.
    fn list_unreadable(&self) -> TrackerResult<Vec<TrackerError>>;
    /// Makes an issue, once.
    fn create_issue(&self, new: &NewIssue) -> TrackerResult<CreateOutcome<Issue>>;
    /// Changes its words.
    fn edit_issue(&self, number: IssueNumber, edit: &IssueTextEdit) -> TrackerResult<Issue>;
    /// Closes it. One that is closed for the same reason stays as it is.
    fn close_issue(&self, number: IssueNumber, why: CloseReason) -> TrackerResult<Issue>;
    /// Opens it again. One that is open stays as it is.
    fn reopen_issue(&self, number: IssueNumber) -> TrackerResult<Issue>;
    /// When it was last opened again, if ever.
    fn last_reopened(&self, number: IssueNumber) -> TrackerResult<Option<Timestamp>>;

    /// All comments, oldest first.
    fn list_comments(&self, thread: CommentThread) -> TrackerResult<Vec<Comment>>;
    /// Says something, once.
    fn add_comment(
        &self,
        thread: CommentThread,
        marker: &Marker,
        body: &str,
    ) -> TrackerResult<CreateOutcome<Comment>>;

    /// Sees that a repository has these labels. Those it has stay as they are.
    fn ensure_labels(&self, labels: &[LabelSpec]) -> TrackerResult<()>;
    /// Adds and takes away labels, and answers with those that are there then.
    fn change_labels(
        &self,
        number: IssueNumber,
        add: &BTreeSet<Label>,
        remove: &BTreeSet<Label>,
    ) -> TrackerResult<BTreeSet<Label>>;
    /// Of all labels that begin with `family`, leaves this one alone, or none. Looks again afterwards: others change
    /// labels at the same time.
    fn swap_label(
        &self,
        number: IssueNumber,
        family: &str,
        to: Option<&Label>,
    ) -> TrackerResult<BTreeSet<Label>>;
    /// How big it is: the field of a project first, then the label.
    fn read_size(&self, number: IssueNumber) -> TrackerResult<Option<IssueSize>>;
    /// Says how big it is, where sizes are kept.
    fn set_size(&self, number: IssueNumber, size: TaskSize) -> TrackerResult<SizeSource>;

    /// The issues it is made of, in their order, with what each waits for. Refused if one of them is elsewhere: whoever
    /// asks would take the rest for the whole.
    fn list_children(&self, number: IssueNumber) -> TrackerResult<Vec<ChildIssue>>;
    /// Makes one issue part of another. One that is part of it already stays where it is.
    fn add_child(&self, parent: IssueNumber, child: IssueNumber) -> TrackerResult<()>;
    /// The issue it is a part of, if it is one.
    fn find_parent(&self, number: IssueNumber) -> TrackerResult<Option<IssueLocation>>;
    /// The issues it waits for or waited for.
    fn blocked_by(&self, number: IssueNumber) -> TrackerResult<Vec<Blocker>>;
    /// Makes one issue wait for another. One that does already goes on doing so.
    fn add_blocker(&self, number: IssueNumber, blocker: IssueNumber) -> TrackerResult<()>;
    /// Makes one issue wait for another no longer. One that does not wait for it stays as it is.
    fn remove_blocker(&self, number: IssueNumber, blocker: IssueNumber) -> TrackerResult<()>;

    /// A pull request.
    fn pull_request(&self, number: PrNumber) -> TrackerResult<PullRequest>;
    /// The pull requests of exactly this branch of this repository, newest first.
    fn pull_requests_of(&self, head: &TrackerBranchName) -> TrackerResult<Vec<PullRequest>>;
    /// Makes a pull request, unless one is open for the same branches.
    fn create_pull_request(&self, new: &NewPullRequest) -> TrackerResult<CreateOutcome<PullRequest>>;
    /// Tells that the branch was pushed. A tracker that keeps branches knows.
    fn note_pushed(&self, number: PrNumber, head: &CommitSha) -> TrackerResult<()>;
    /// Says that a draft is ready. One that is ready stays so.
    fn mark_ready(&self, number: PrNumber) -> TrackerResult<()>;
    /// Merges, with every commit of it, if the head is what we believe it is. One that is merged already stays so.
    fn merge_pull_request(&self, number: PrNumber, merge: &PullRequestMerge)
    -> TrackerResult<CompletedMerge>;
    /// Closes it without merging. One that is closed stays so.
    fn close_pull_request(&self, number: PrNumber) -> TrackerResult<()>;
    /// All reviews, oldest first.
    fn list_reviews(&self, number: PrNumber) -> TrackerResult<Vec<TrackerReview>>;
    /// Reviews, once.
    fn add_review(&self, number: PrNumber, new: &NewReview) -> TrackerResult<CreateOutcome<TrackerReview>>;
    /// The jobs that look at a commit, each in its newest run.
    fn list_checks(&self, commit: &CommitSha) -> TrackerResult<Vec<ForgeCheck>>;
    /// How the jobs that failed on a commit came to fail, as far as that can be told. A tracker that runs nothing knows
    /// nothing.
    fn failed_jobs(&self, commit: &CommitSha) -> TrackerResult<Vec<FailedJob>>;
    /// Has the jobs run again that failed or were broken off, and says of how many runs. None of a tracker that runs
    /// nothing. Runs that are under way are left alone, so asking again starts nothing twice.
    fn rerun_checks(&self, commit: &CommitSha) -> TrackerResult<usize>;

    /// What changed since then, oldest first.
    fn list_changes(&self, since: &Cursor) -> TrackerResult<(Vec<TrackerChange>, Cursor)>;
}

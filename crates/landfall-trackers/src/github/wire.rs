//! GitHub's answers, as much of them as we read. Fields we do not need are left out, so that they may change.

use std::collections::BTreeSet;

use landfall_model::Timestamp;
use serde::{Deserialize, Deserializer};

use super::client::repository_of;
use crate::tracker::{
    CloseReason, CommitSha, Conclusion, ForgeCheck, ForgeCheckState, Issue, IssueNumber, JobStep, Label,
    PrNumber, PrState, PullRequest, ReviewVerdict, TrackerBranchName, TrackerError, TrackerIssueState,
    TrackerResult, escape_beginning,
};

#[derive(Debug, Deserialize)]
pub(super) struct User {
    pub login: String,
    #[serde(default, rename = "type")]
    pub kind: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Repository {
    pub full_name: String,
    pub default_branch: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct IssueWire {
    /// What other requests want instead of the number.
    pub id: u64,
    pub number: u64,
    pub title: String,
    pub body: Option<String>,
    pub state: GithubOpenState,
    pub state_reason: Option<String>,
    #[serde(default)]
    pub labels: Vec<LabelWire>,
    #[serde(default)]
    pub assignees: Option<Vec<User>>,
    pub user: Option<User>,
    #[serde(default)]
    pub comments: u64,
    pub sub_issues_summary: Option<SubIssues>,
    pub issue_dependencies_summary: Option<Dependencies>,
    #[serde(deserialize_with = "moment")]
    pub created_at: Timestamp,
    #[serde(deserialize_with = "moment")]
    pub updated_at: Timestamp,
    #[serde(default, deserialize_with = "maybe_moment")]
    pub closed_at: Option<Timestamp>,
    #[serde(default)]
    pub html_url: String,
    #[serde(default)]
    pub repository_url: String,
    /// Pull requests are among the issues; this tells them.
    pub pull_request: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum GithubOpenState {
    Open,
    Closed,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum LabelWire {
    Name(String),
    Whole { name: Option<String> },
}

#[derive(Debug, Deserialize)]
pub(super) struct SubIssues {
    pub total: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Dependencies {
    pub total_blocked_by: u64,
}

impl IssueWire {
    /// `owner/name` it is in, if the answer says.
    pub(super) fn repository_name(&self) -> Option<String> {
        repository_of(&self.repository_url)
    }

    pub(super) fn into_issue(self) -> TrackerResult<Issue> {
        let number =
            IssueNumber::new(self.number).ok_or_else(|| malformed_error("issue", "its number is 0"))?;
        let state = match (self.state, self.state_reason.as_deref()) {
            (GithubOpenState::Open, _) => TrackerIssueState::Open,
            (GithubOpenState::Closed, Some("not_planned" | "duplicate")) => {
                TrackerIssueState::Closed { why: CloseReason::NotPlanned, at: self.closed_at }
            }
            (GithubOpenState::Closed, _) => {
                TrackerIssueState::Closed { why: CloseReason::Done, at: self.closed_at }
            }
        };
        Ok(Issue {
            number,
            title: self.title,
            body: self.body.unwrap_or_default(),
            state,
            labels: parse_labels(self.labels),
            assignees: self.assignees.unwrap_or_default().into_iter().map(|user| user.login).collect(),
            author: self.user.map(|user| user.login),
            comments: self.comments,
            children: self.sub_issues_summary.map_or(0, |summary| summary.total),
            blockers: self.issue_dependencies_summary.map(|summary| summary.total_blocked_by),
            created: self.created_at,
            updated: self.updated_at,
            url: self.html_url,
        })
    }
}

/// The labels among what is said to be some. One we could not name is made one we can; nobody asks for it by name.
pub(super) fn parse_labels(wire: Vec<LabelWire>) -> BTreeSet<Label> {
    let names = wire.into_iter().filter_map(|label| match label {
        LabelWire::Name(name) => Some(name),
        LabelWire::Whole { name } => name,
    });
    names
        .filter_map(|name| {
            Label::new(&name)
                .or_else(|_| Label::new(escape_beginning(&name, 50).replace(',', " ").trim()))
                .ok()
        })
        .collect()
}

#[derive(Debug, Deserialize)]
pub(super) struct CommentWire {
    pub id: u64,
    pub user: Option<User>,
    pub body: Option<String>,
    #[serde(deserialize_with = "moment")]
    pub created_at: Timestamp,
}

#[derive(Debug, Deserialize)]
pub(super) struct EventWire {
    #[serde(default)]
    pub event: String,
    /// Some kinds have none; the one we look for has.
    pub created_at: Option<String>,
}

impl EventWire {
    /// When an issue was opened again, if this is that.
    pub(super) fn reopened_at(&self) -> TrackerResult<Option<Timestamp>> {
        if self.event != "reopened" {
            return Ok(None);
        }
        let at = self.created_at.as_deref().ok_or_else(|| malformed_error("event", "a moment is missing"))?;
        let at: jiff::Timestamp =
            at.parse().map_err(|error: jiff::Error| malformed_error("event", &error.to_string()))?;
        Ok(Some(Timestamp(at.as_millisecond())))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct PullWire {
    pub number: u64,
    /// What GraphQL calls it.
    pub node_id: String,
    pub title: String,
    pub body: Option<String>,
    pub state: GithubOpenState,
    #[serde(default)]
    pub draft: bool,
    #[serde(default, deserialize_with = "maybe_moment")]
    pub merged_at: Option<Timestamp>,
    pub merge_commit_sha: Option<String>,
    #[serde(default)]
    pub mergeable: Option<bool>,
    pub user: Option<User>,
    pub head: PullRequestSide,
    pub base: PullRequestSide,
    #[serde(deserialize_with = "moment")]
    pub created_at: Timestamp,
    #[serde(default)]
    pub html_url: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct PullRequestSide {
    #[serde(rename = "ref")]
    pub name: String,
    pub sha: String,
    /// None when the fork is gone.
    pub repo: Option<SideRepository>,
}

#[derive(Debug, Deserialize)]
pub(super) struct SideRepository {
    pub full_name: String,
}

impl PullWire {
    pub(super) fn into_pull_request(self) -> TrackerResult<PullRequest> {
        let number =
            PrNumber::new(self.number).ok_or_else(|| malformed_error("pull request", "its number is 0"))?;
        let state = match (self.state, self.merged_at) {
            // Until it is merged, the commit is one that GitHub tried the merge with.
            (_, Some(_)) => {
                PrState::Merged { commit: self.merge_commit_sha.as_deref().map(CommitSha::new).transpose()? }
            }
            (GithubOpenState::Closed, None) => PrState::Closed,
            (GithubOpenState::Open, None) if self.draft => PrState::Draft,
            (GithubOpenState::Open, None) => PrState::Open,
        };
        let here = |side: &PullRequestSide| side.repo.as_ref().map(|repo| repo.full_name.to_lowercase());
        Ok(PullRequest {
            number,
            title: self.title,
            body: self.body.unwrap_or_default(),
            state,
            head: TrackerBranchName::new(&self.head.name).ok(),
            head_is_here: here(&self.head).is_some() && here(&self.head) == here(&self.base),
            head_sha: CommitSha::new(&self.head.sha)?,
            base: TrackerBranchName::new(&self.base.name).ok(),
            author: self.user.map(|user| user.login),
            merges: self.mergeable,
            created: self.created_at,
            url: self.html_url,
        })
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct MergeWire {
    pub sha: String,
    pub merged: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct ReviewWire {
    pub id: u64,
    pub user: Option<User>,
    pub body: Option<String>,
    pub state: ReviewState,
    pub commit_id: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum ReviewState {
    Approved,
    ChangesRequested,
    Commented,
    Dismissed,
    Pending,
}

impl From<ReviewState> for ReviewVerdict {
    fn from(state: ReviewState) -> Self {
        match state {
            ReviewState::Approved => Self::Approved,
            ReviewState::ChangesRequested => Self::ChangesRequested,
            ReviewState::Commented => Self::Commented,
            ReviewState::Dismissed => Self::Dismissed,
            ReviewState::Pending => Self::Pending,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct CheckRuns {
    pub check_runs: Vec<CheckRun>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CheckRun {
    pub id: u64,
    pub name: String,
    pub status: CheckStatus,
    pub conclusion: Option<ConclusionWire>,
    pub app: Option<GithubApp>,
    #[serde(default, deserialize_with = "maybe_moment")]
    pub started_at: Option<Timestamp>,
    pub html_url: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct GithubApp {
    pub name: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CheckStatus {
    Queued,
    InProgress,
    Completed,
    Waiting,
    Requested,
    Pending,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ConclusionWire {
    Success,
    Failure,
    Neutral,
    Cancelled,
    Skipped,
    TimedOut,
    ActionRequired,
    Stale,
    StartupFailure,
}

impl From<ConclusionWire> for Conclusion {
    fn from(wire: ConclusionWire) -> Self {
        match wire {
            ConclusionWire::Success => Self::Success,
            ConclusionWire::Failure => Self::Failure,
            ConclusionWire::Neutral => Self::Neutral,
            ConclusionWire::Cancelled => Self::Cancelled,
            ConclusionWire::Skipped => Self::Skipped,
            ConclusionWire::TimedOut => Self::TimedOut,
            ConclusionWire::ActionRequired => Self::ActionRequired,
            ConclusionWire::Stale => Self::Stale,
            ConclusionWire::StartupFailure => Self::StartupFailure,
        }
    }
}

impl CheckRun {
    pub(super) fn into_check(self) -> TrackerResult<ForgeCheck> {
        let state = match (self.status, self.conclusion) {
            (CheckStatus::Completed, Some(conclusion)) => ForgeCheckState::Done(conclusion.into()),
            (CheckStatus::Completed, None) => {
                return Err(malformed_error("check", "it is over without a conclusion"));
            }
            (CheckStatus::InProgress, _) => ForgeCheckState::Running,
            (
                CheckStatus::Queued | CheckStatus::Waiting | CheckStatus::Requested | CheckStatus::Pending,
                _,
            ) => ForgeCheckState::Waiting,
        };
        let by = self.app.map(|app| app.name);
        let (name, started, url) = (self.name, self.started_at, self.html_url);
        Ok(ForgeCheck { id: Some(self.id), name, by, state, started, url })
    }
}

/// Runs of workflows.
#[derive(Debug, Deserialize)]
pub(super) struct GithubWorkflowRuns {
    pub workflow_runs: Vec<GithubWorkflowRun>,
}

/// A run of a workflow. Its words are open lists at GitHub, so they are read as text.
#[derive(Debug, Deserialize)]
pub(super) struct GithubWorkflowRun {
    pub id: u64,
    pub head_sha: String,
    pub status: Option<String>,
    pub conclusion: Option<String>,
    /// How often it was run.
    pub run_attempt: Option<u64>,
}

impl GithubWorkflowRun {
    /// Whether it is over, and some of it failed or was broken off.
    pub(super) fn is_red(&self) -> bool {
        let red = ["failure", "cancelled", "timed_out", "startup_failure", "stale"];
        self.is_over() && self.conclusion.as_deref().is_some_and(|word| red.contains(&word))
    }

    /// Whether nothing of it goes on.
    pub(super) fn is_over(&self) -> bool {
        self.status.as_deref() == Some("completed")
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Jobs {
    pub jobs: Vec<GithubJob>,
}

/// A job of a run. It is a check, and both have one number.
#[derive(Debug, Deserialize)]
pub(super) struct GithubJob {
    pub id: u64,
    pub conclusion: Option<ConclusionWire>,
    #[serde(default)]
    pub steps: Vec<GithubJobStep>,
}

#[derive(Debug, Deserialize)]
pub(super) struct GithubJobStep {
    pub name: String,
    pub conclusion: Option<String>,
}

impl From<GithubJobStep> for JobStep {
    fn from(wire: GithubJobStep) -> Self {
        // The description has no list of these words; those that are no conclusion of a check are no end.
        let word = serde_json::Value::from(wire.conclusion);
        let ended = serde_json::from_value::<ConclusionWire>(word).ok().map(Conclusion::from);
        Self { name: wire.name, ended }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct GithubCheckAnnotation {
    pub annotation_level: Option<String>,
    pub message: Option<String>,
}

/// The older way to tell about a commit.
#[derive(Debug, Deserialize)]
pub(super) struct CombinedStatus {
    pub statuses: Vec<StatusWire>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StatusWire {
    pub context: String,
    pub state: StatusState,
    pub target_url: Option<String>,
    #[serde(default, deserialize_with = "maybe_moment")]
    pub created_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum StatusState {
    Success,
    Failure,
    Error,
    Pending,
}

impl From<StatusWire> for ForgeCheck {
    fn from(wire: StatusWire) -> Self {
        let state = match wire.state {
            StatusState::Success => ForgeCheckState::Done(Conclusion::Success),
            StatusState::Failure | StatusState::Error => ForgeCheckState::Done(Conclusion::Failure),
            StatusState::Pending => ForgeCheckState::Waiting,
        };
        let (name, started, url) = (wire.context, wire.created_at, wire.target_url);
        Self { id: None, name, by: None, state, started, url }
    }
}

pub(super) fn malformed_error(what: &str, why: &str) -> TrackerError {
    TrackerError::Malformed { what: what.to_owned(), why: why.to_owned() }
}

fn moment<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
    maybe_moment(from)?.ok_or_else(|| serde::de::Error::custom("a moment is missing"))
}

fn maybe_moment<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    let at: jiff::Timestamp = text.parse().map_err(serde::de::Error::custom)?;
    Ok(Some(Timestamp(at.as_millisecond())))
}

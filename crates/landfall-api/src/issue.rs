//! Issues of the project's tracker. Titles and texts are those of others.

use serde::{Deserialize, Serialize};

use crate::{IssueNumber, IssueSummary, Size, WireTaskId};

/// What a tracker sent by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackerWebhook {
    /// Which tracker it says it is.
    pub tracker: String,
    /// Its own headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, as it came.
    pub body: Vec<u8>,
}

/// Asks about one issue, or one pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct IssueAsked {
    /// Which.
    pub issue: IssueNumber,
}

/// Which issues are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct IssuesAsked {
    /// Closed ones too.
    pub all: bool,
    /// With all of these labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// At most so many.
    pub limit: u32,
}

impl Default for IssuesAsked {
    fn default() -> Self {
        Self { all: false, labels: Vec::new(), limit: 30 }
    }
}

/// An issue that is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct IssueNew {
    /// Its title.
    pub title: String,
    /// Its text.
    #[serde(default)]
    pub body: String,
    /// Its labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// The issue it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<IssueNumber>,
    /// Issues it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<IssueNumber>,
}

/// What is to become of an issue, all at once. What is left out stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct IssueEdit {
    /// Which.
    pub issue: IssueNumber,
    /// A new title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A new text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Another size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Labels that come.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// Labels that go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
    /// Issues it waits for from now on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub block: Vec<IssueNumber>,
    /// Issues it waits for no longer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unblock: Vec<IssueNumber>,
}

impl IssueEdit {
    /// One that changes nothing yet.
    #[must_use]
    pub fn for_issue(issue: IssueNumber) -> Self {
        Self {
            issue,
            title: None,
            body: None,
            size: None,
            add: Vec::new(),
            remove: Vec::new(),
            block: Vec::new(),
            unblock: Vec::new(),
        }
    }
}

/// Something that is said about an issue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct IssueSay {
    /// Which.
    pub issue: IssueNumber,
    /// What.
    pub text: String,
}

/// Closes an issue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct IssueClose {
    /// Which.
    pub issue: IssueNumber,
    /// Nobody will do it; otherwise it is done.
    #[serde(default)]
    pub not_planned: bool,
}

/// Ticks a box of an issue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct IssueTick {
    /// Which.
    pub issue: IssueNumber,
    /// The place of the box among its boxes, or words of it.
    pub named: String,
    /// Whether it is opened again.
    #[serde(default)]
    pub open: bool,
}

/// Asks what became of the issues of some tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct IssueSummariesAsked {
    /// The tasks.
    pub tasks: Vec<WireTaskId>,
}

/// What became of issues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssueSummaries {
    /// Each of them, in the order of the tasks.
    pub issues: Vec<IssueSummary>,
}

/// Where an issue stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum IssueState {
    /// It waits to be done.
    Open,
    /// It is done.
    Done,
    /// Nobody will do it.
    NotPlanned,
}

impl IssueState {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Done => "done",
            Self::NotPlanned => "not-planned",
        }
    }
}

/// An issue in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssueLine {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Where it stands.
    pub state: IssueState,
    /// Its labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Its size; in a list only as far as a label says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Who wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// How many comments there are.
    pub comments: u64,
    /// When anything about it last changed.
    pub updated_ms: i64,
    /// Where a person looks at it: an address, or a file.
    pub url: String,
}

/// Issues, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssueList {
    /// The tracker they are in.
    pub tracker: String,
    /// Where that is: a folder, or a repository and its host.
    pub place: String,
    /// The issues.
    pub issues: Vec<IssueLine>,
    /// What is there and cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableIssue>,
}

/// Something among the issues that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnreadableIssue {
    /// Which file.
    pub what: String,
    /// What is wrong with it, with its line where one is known.
    pub why: String,
}

/// An issue that was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssueMade {
    /// The issue.
    pub issue: IssueLine,
}

/// An issue that was changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssueChanged {
    /// The issue, as it is now.
    pub issue: IssueLine,
    /// What became of it, in words.
    pub text: String,
}

/// Everything about one issue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssueDetail {
    /// What a list shows.
    pub issue: IssueLine,
    /// Its text.
    pub body: String,
    /// When it was made.
    pub created_ms: i64,
    /// The issue it is a part of: `#12`, or `owner/name#12` if that is elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Issues it is made of, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<IssueLine>,
    /// Issues it waits for, or waited for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<IssueBlocker>,
    /// What was said about it, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<IssueComment>,
    /// What could not be found out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// An issue that another waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssueBlocker {
    /// `#12`, or `owner/name#12` if it is elsewhere.
    pub issue: String,
    /// Whether it is open. A closed one holds nobody up.
    pub open: bool,
}

/// A comment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssueComment {
    /// Its number.
    pub id: u64,
    /// Who wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// When.
    pub at_ms: i64,
    /// The text.
    pub body: String,
}

/// Everything about a pull request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PullRequestDetail {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Where it stands: `draft`, `open`, `merged` or `closed`.
    pub state: String,
    /// The branch with the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The branch it is to be merged into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// What the branch points at.
    pub head: String,
    /// What came of the merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<String>,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// When.
    pub created_ms: i64,
    /// Where a person looks at it: an address, or a file.
    pub url: String,
    /// Its text.
    pub body: String,
    /// What readers said, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<PullRequestReview>,
    /// The jobs of the forge that look at its head.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<PullRequestCheck>,
    /// What was said about it, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<IssueComment>,
}

/// What a reader said of a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PullRequestReview {
    /// Who.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// `approved`, `changes-requested`, `commented`, `dismissed` or `pending`.
    pub verdict: String,
    /// The commit it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The text.
    pub body: String,
}

/// A job of the forge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PullRequestCheck {
    /// What it is called.
    pub name: String,
    /// `waiting`, `running`, or how it ended: `success`, `failure`, `cancelled` and the like.
    pub state: String,
}

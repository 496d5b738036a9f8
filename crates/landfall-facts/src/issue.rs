//! Events of the issue that a task follows.

use crate::defaults::{is_false, is_true, yes};
use serde::{Deserialize, Serialize};

use crate::acceptance::{VerifyOutcome, VerifyResult};
use crate::{Attempt, Commit, TaskId, TaskSize, Timestamp};

words! {
    /// What became of an issue, in a word.
    pub enum IssueStanding {
        /// Everything holds.
        Complete = "complete",
        /// It landed; something is left for a person, or for another time.
        Partial = "partial",
        /// It ended in a phase without success.
        Stopped = "stopped",
        /// It failed as often as is allowed: only a person can go on.
        NeedsPerson = "needs-person",
        /// It waits.
        Waits = "waits",
        /// It goes on with the next run.
        UnderWay = "under-way",
    }
}

impl IssueStanding {
    /// Whether it gave up.
    #[must_use]
    pub const fn has_stopped(self) -> bool {
        matches!(self, Self::Stopped | Self::NeedsPerson)
    }

    /// Whether nothing more happens to it by itself.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Complete | Self::Partial) || self.has_stopped()
    }
}

words! {
    /// Where an issue stands, in the word of its `phase/*` label.
    pub enum IssuePhase {
        /// Somebody knows what it is.
        Issue = "issue",
        /// What is to be done is being written down.
        Spec = "spec",
        /// It can be begun.
        Ready = "ready",
        /// It is worked on.
        Code = "code",
        /// It is read.
        Review = "review",
        /// It goes onto the base.
        Merge = "merge",
        /// It is on the base, and its acceptance is looked at.
        Verify = "verify",
        /// Everything holds.
        Done = "done",
    }
}

/// How the work of an issue gets onto the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum IssueRoute {
    /// Straight from its branch.
    #[serde(rename = "patch")]
    Patch,
    /// By a pull request that is reviewed first.
    #[serde(rename = "pr")]
    Pr,
    /// By the issues it is made of.
    #[serde(rename = "split")]
    Split,
}

impl IssueRoute {
    /// The word people and files use.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Patch => "patch",
            Self::Pr => "pr",
            Self::Split => "sub-issues",
        }
    }
}

words! {
    /// How closely a pull request is read.
    pub enum ReviewDepth {
        /// Not at all.
        None = "none",
        /// By one reader.
        Light = "light",
        /// By several, and what they find is verified.
        Full = "full",
    }
}

/// What a person said about the way an issue is to take. What they did not say follows from its size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueOptions {
    /// This way, whatever its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<IssueRoute>,
    /// Read this closely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<ReviewDepth>,
    /// Whether its acceptance is looked at once it has landed; otherwise it is left for a person.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub accept: bool,
    /// Whether the project wants a pull request for everything.
    #[serde(default, skip_serializing_if = "is_false")]
    pub always_pr: bool,
}

impl Default for IssueOptions {
    fn default() -> Self {
        Self { way: None, depth: None, accept: true, always_pr: false }
    }
}

/// The way that was found for an issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutingDecision {
    /// By this size; none if nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<TaskSize>,
    /// This way.
    pub way: IssueRoute,
    /// Whether what is to be done is written down before it is done.
    pub spec: bool,
    /// How closely it is read.
    pub depth: ReviewDepth,
}

impl RoutingDecision {
    /// The phases it goes through, in order, as `[n/m]` counts them.
    #[must_use]
    pub fn phases(&self) -> Vec<&'static str> {
        let mut phases = Vec::new();
        if self.spec {
            phases.push("spec");
        }
        match self.way {
            IssueRoute::Patch => phases.push("code"),
            IssueRoute::Pr if self.depth == ReviewDepth::None => phases.extend(["code", "merge"]),
            IssueRoute::Pr => phases.extend(["code", "review", "merge"]),
            IssueRoute::Split => phases.push("sub-issues"),
        }
        phases.push("verify");
        phases
    }

    /// In words: `M: pull request, light review`.
    #[must_use]
    pub fn label(&self) -> String {
        let size = self.size.map_or_else(|| "no size".to_owned(), |size| size.to_string());
        let how = match (self.way, self.depth) {
            (IssueRoute::Patch, _) => "patch".to_owned(),
            (IssueRoute::Split, _) => "sub-issues".to_owned(),
            (IssueRoute::Pr, ReviewDepth::None) => "pull request without review".to_owned(),
            (IssueRoute::Pr, depth) => format!("pull request, {} review", depth.word()),
        };
        format!("{size}: {how}{}", if self.spec { ", spec first" } else { "" })
    }
}

/// What was seen of an issue, all at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IssueSnapshot {
    /// Its number.
    pub number: u64,
    /// Its title and body, as they are there.
    #[serde(flatten, with = "title_and_body")]
    pub words: (String, String),
    /// Whether it waits to be done.
    pub open: bool,
    /// The phase its label says; of several, the furthest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<IssuePhase>,
    /// All its labels.
    pub labels: Vec<String>,
    /// Whether somebody has looked at what it is.
    #[serde(default, skip_serializing_if = "is_false")]
    pub triaged: bool,
    /// How big it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<TaskSize>,
    /// What kind of work its label says it is: `bug`, `feature`, `task`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The pull request of its branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr: Option<PullRequestSnapshot>,
    /// Where what is to be done is written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_file: Option<String>,
    /// The newest commit on the base that says it closes it, made after it was last opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
    /// When it was last opened again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopened: Option<Timestamp>,
    /// How many issues it is made of.
    #[serde(default)]
    pub parts: u32,
    /// The open issues it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<String>,
    /// Whether the base is another branch than the one whose commits close issues there.
    #[serde(default, skip_serializing_if = "is_false")]
    pub side_base: bool,
}

/// What was seen of a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestSnapshot {
    /// Its number.
    pub number: u64,
    /// Where a person looks at it.
    pub url: String,
    /// Where it stands.
    pub state: PullRequestState,
    /// What its branch points at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Commit>,
    /// Whether a reader of ours has summed up what they think of it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reviewed: bool,
}

/// Where a pull request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PullRequestState {
    /// It waits to be merged.
    #[serde(rename = "open")]
    Open,
    /// It was closed without.
    #[serde(rename = "closed")]
    Closed,
    /// It is merged.
    #[serde(rename = "merged")]
    Merged,
}

impl PullRequestState {
    /// The word trackers use.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "OPEN",
            Self::Closed => "CLOSED",
            Self::Merged => "MERGED",
        }
    }
}

/// A pull request of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestRef {
    /// Its number.
    pub number: u64,
    /// Where a person looks at it.
    pub url: String,
    /// The work it was last told of.
    pub head: Commit,
}

/// What the checks of a forge came to for a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CiStatus {
    /// There are none.
    #[serde(rename = "absent")]
    Absent,
    /// Some are not over.
    #[serde(rename = "running")]
    Running(Vec<String>),
    /// All that count passed.
    #[serde(rename = "passed")]
    Passed,
    /// These failed, and did not fail on the base.
    #[serde(rename = "failed")]
    Failed(Vec<String>),
    /// These failed on the base as well.
    #[serde(rename = "pre-existing")]
    PreExisting(Vec<String>),
    /// These say nothing about the commit: cancelled, timed out, could not begin.
    #[serde(rename = "broken")]
    Broken(Vec<String>),
}

/// What looking at the acceptance of an issue came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptanceOutcome {
    /// Each criterion: its words, the result, what was seen.
    #[serde(with = "items")]
    pub items: Vec<(String, VerifyResult, String)>,
    /// What they come to.
    pub outcome: VerifyOutcome,
}

impl AcceptanceOutcome {
    /// What does not hold, for whoever is to mend it.
    #[must_use]
    pub fn describe_failed_items(&self) -> String {
        let failed = self.items.iter().filter(|(_, result, _)| *result == VerifyResult::Fail);
        failed.map(|(words, _, seen)| format!("- {words}\n  {}\n", seen.replace('\n', "\n  "))).collect()
    }
}

/// One of the issues that another is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubIssue {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// How big it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<TaskSize>,
    /// Whether it is done already.
    #[serde(default, skip_serializing_if = "is_false")]
    pub done: bool,
    /// Whether it landed, as its label says, and its acceptance is all that is left.
    #[serde(default, skip_serializing_if = "is_false")]
    pub at_verify: bool,
    /// The parts of the same whole that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<u64>,
}

/// How a part ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SubIssueEndRecord", into = "SubIssueEndRecord")]
pub struct SubIssueEnd {
    /// Its number.
    pub number: u64,
    /// Its task, if it has one.
    pub task: Option<TaskId>,
    /// How.
    pub end: SubIssueOutcome,
}

/// What became of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubIssueOutcome {
    /// It is done.
    Done,
    /// It landed, and something of it is left for a person to look at.
    Left,
    /// It is not, for this reason.
    Failed(String),
    /// It never began: this one is in its way.
    Skipped(u64),
}

/// A fact about a task that follows an issue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum IssueEvent {
    /// A person wants it done, in this way.
    #[serde(rename = "issue-wanted")]
    Wanted(IssueOptions),
    /// It was looked at.
    #[serde(rename = "issue-seen")]
    Seen {
        /// By this attempt.
        attempt: Attempt,
        /// And was like this.
        #[serde(flatten)]
        seen: Box<IssueSnapshot>,
    },
    /// The way it takes was settled, or changed.
    #[serde(rename = "issue-routed")]
    Routed(RoutingDecision),
    /// Its work was offered as a pull request.
    #[serde(rename = "issue-offered")]
    Offered {
        /// By this attempt.
        attempt: Attempt,
        /// This one.
        #[serde(flatten)]
        pr: PullRequestRef,
    },
    /// The forge's own checks were looked at.
    #[serde(rename = "issue-checks")]
    Checks {
        /// By this attempt.
        attempt: Attempt,
        /// And came to this.
        ci: CiStatus,
    },
    /// Its acceptance was looked at.
    #[serde(rename = "issue-accepted")]
    Accepted {
        /// By this attempt.
        attempt: Attempt,
        /// And came to this.
        #[serde(flatten)]
        accepted: AcceptanceOutcome,
    },
    /// Something outside was looked for and had not happened.
    #[serde(rename = "issue-looked")]
    Looked {
        /// By this attempt.
        attempt: Attempt,
    },
    /// It landed and does not hold what it promised: it is to be worked on again.
    #[serde(rename = "issue-reworked")]
    Reworked {
        /// By this attempt.
        attempt: Attempt,
    },
    /// It was found to be made of others.
    #[serde(rename = "issue-parted")]
    Parted {
        /// By this attempt.
        attempt: Attempt,
        /// These.
        parts: Vec<SubIssue>,
    },
    /// None of its parts goes on any more; or how they ended was looked at again.
    #[serde(rename = "issue-parts-over", with = "ends")]
    PartsOver(Vec<SubIssueEnd>),
    /// More of its parts are over, and others go on.
    #[serde(rename = "issue-parts-came")]
    PartsCame {
        /// These are.
        over: Vec<u64>,
        /// So many levels of them are over as a whole.
        levels: u32,
    },
    /// What it promises as a whole was looked at while its parts go on.
    #[serde(rename = "issue-levelled")]
    Levelled {
        /// By this attempt.
        attempt: Attempt,
        /// What does not hold so far: the criterion, and what was seen.
        #[serde(with = "failing")]
        failing: Vec<(String, String)>,
    },
}

impl IssueEvent {
    /// The attempt it belongs to, if it belongs to one.
    #[must_use]
    pub fn fencing_attempt(&self) -> Option<Attempt> {
        match self {
            Self::Seen { attempt, .. }
            | Self::Offered { attempt, .. }
            | Self::Checks { attempt, .. }
            | Self::Accepted { attempt, .. }
            | Self::Looked { attempt }
            | Self::Reworked { attempt }
            | Self::Levelled { attempt, .. }
            | Self::Parted { attempt, .. } => Some(*attempt),
            Self::Wanted(_) | Self::Routed(_) | Self::PartsOver(_) | Self::PartsCame { .. } => None,
        }
    }

    /// In one line, for people.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Wanted(IssueOptions { way: None, depth: None, .. }) => {
                "follows its issue, the way its size says".to_owned()
            }
            Self::Wanted(IssueOptions { way, depth, .. }) => {
                let way = way.map(|way| format!(" by {}", way.word())).unwrap_or_default();
                let depth = depth.map(|depth| format!(", {} review", depth.word())).unwrap_or_default();
                format!("follows its issue{way}{depth}, as you said")
            }
            Self::Seen { seen, .. } => {
                let state = if seen.open { "open" } else { "closed" };
                let phase = seen.phase.map(|phase| format!(", phase/{}", phase.word())).unwrap_or_default();
                let pr =
                    seen.pr.as_ref().map(|pr| format!(", pull request #{} {}", pr.number, pr.state.word()));
                format!("issue #{} is {state}{phase}{}", seen.number, pr.unwrap_or_default())
            }
            Self::Routed(routed) => format!("takes the way of {}", routed.label()),
            Self::Offered { pr, .. } => {
                format!("offered as pull request #{} ({})", pr.number, pr.head.short_hash())
            }
            Self::Checks { ci, .. } => match ci {
                CiStatus::Absent => "the forge has no checks".to_owned(),
                CiStatus::Passed => "the checks of the forge passed".to_owned(),
                CiStatus::Running(names) => format!("checks of the forge run: {}", names.join(", ")),
                CiStatus::Failed(names) => format!("checks of the forge failed: {}", names.join(", ")),
                CiStatus::PreExisting(names) => {
                    format!("checks that fail on the base as well: {}", names.join(", "))
                }
                CiStatus::Broken(names) => {
                    format!("checks that say nothing about the work: {}", names.join(", "))
                }
            },
            Self::Accepted { accepted, .. } => {
                let count =
                    |wanted: VerifyResult| accepted.items.iter().filter(|(_, it, _)| *it == wanted).count();
                let (pass, fail) = (count(VerifyResult::Pass), count(VerifyResult::Fail));
                let rest = accepted.items.len() - pass - fail;
                if accepted.items.is_empty() {
                    return "acceptance: the issue has no criteria, so nothing was held against it"
                        .to_owned();
                }
                format!("acceptance: {pass} hold, {fail} do not, {rest} are left")
            }
            Self::Looked { .. } => "looked, and it had not happened yet".to_owned(),
            Self::Reworked { .. } => {
                "goes back to work: what landed does not hold what was promised".to_owned()
            }
            Self::Parted { parts, .. } => format!("is made of {} issues", parts.len()),
            Self::PartsOver(ends) => {
                let done = ends.iter().filter(|end| end.end == SubIssueOutcome::Done).count();
                format!("{done} of its {} issues are done, and none goes on", ends.len())
            }
            Self::PartsCame { over, levels } => {
                let over: Vec<String> = over.iter().map(|number| format!("#{number}")).collect();
                format!("of its issues {} are over ({levels} levels), and others go on", over.join(", "))
            }
            Self::Levelled { failing, .. } if failing.is_empty() => {
                "was looked at as a whole while its issues go on".to_owned()
            }
            Self::Levelled { failing, .. } => {
                let words: Vec<&str> = failing.iter().map(|(words, _)| words.as_str()).collect();
                format!("as a whole, this does not hold so far: {}", words.join("; "))
            }
        }
    }

    /// Its name, as logs show it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Wanted(_) => "issue-wanted",
            Self::Seen { .. } => "issue-seen",
            Self::Routed(_) => "issue-routed",
            Self::Offered { .. } => "issue-offered",
            Self::Checks { .. } => "issue-checks",
            Self::Accepted { .. } => "issue-accepted",
            Self::Looked { .. } => "issue-looked",
            Self::Reworked { .. } => "issue-reworked",
            Self::Parted { .. } => "issue-parted",
            Self::PartsOver(_) => "issue-parts-over",
            Self::PartsCame { .. } => "issue-parts-came",
            Self::Levelled { .. } => "issue-levelled",
        }
    }
}

impl ReviewDepth {
    /// How many readers there are, one after another. The last of several holds what the others found against the work.
    #[must_use]
    pub fn reader_count(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Light => 1,
            Self::Full => 4,
        }
    }
}

/// The end of a part as the journal contains it.
#[derive(Clone, Serialize, Deserialize)]
struct SubIssueEndRecord {
    number: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<TaskId>,
    end: SubIssueOutcomeRecord,
    /// It landed, and something is left for a person: an older reader takes it for one that failed.
    #[serde(default, skip_serializing_if = "is_false")]
    left: bool,
}

#[derive(Clone, Serialize, Deserialize)]
enum SubIssueOutcomeRecord {
    #[serde(rename = "done")]
    Done,
    #[serde(rename = "failed")]
    Failed(String),
    #[serde(rename = "skipped")]
    Skipped(u64),
}

impl From<SubIssueEnd> for SubIssueEndRecord {
    fn from(SubIssueEnd { number, task, end }: SubIssueEnd) -> Self {
        let left = end == SubIssueOutcome::Left;
        let end = match end {
            SubIssueOutcome::Done => SubIssueOutcomeRecord::Done,
            SubIssueOutcome::Left => {
                SubIssueOutcomeRecord::Failed("it landed, and something is left for a person".to_owned())
            }
            SubIssueOutcome::Failed(why) => SubIssueOutcomeRecord::Failed(why),
            SubIssueOutcome::Skipped(by) => SubIssueOutcomeRecord::Skipped(by),
        };
        Self { number, task, end, left }
    }
}

impl From<SubIssueEndRecord> for SubIssueEnd {
    fn from(SubIssueEndRecord { number, task, end, left }: SubIssueEndRecord) -> Self {
        let end = match end {
            SubIssueOutcomeRecord::Done => SubIssueOutcome::Done,
            SubIssueOutcomeRecord::Failed(_) if left => SubIssueOutcome::Left,
            SubIssueOutcomeRecord::Failed(why) => SubIssueOutcome::Failed(why),
            SubIssueOutcomeRecord::Skipped(by) => SubIssueOutcome::Skipped(by),
        };
        Self { number, task, end }
    }
}

/// The ends of parts are the only field of their body.
mod ends {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::SubIssueEnd;

    #[derive(Serialize)]
    struct SubIssueEndsBodyRef<'a> {
        ends: &'a [SubIssueEnd],
    }

    #[derive(Deserialize)]
    struct SubIssueEndsBody {
        ends: Vec<SubIssueEnd>,
    }

    pub(super) fn serialize<S: Serializer>(ends: &[SubIssueEnd], serializer: S) -> Result<S::Ok, S::Error> {
        SubIssueEndsBodyRef { ends }.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<SubIssueEnd>, D::Error> {
        SubIssueEndsBody::deserialize(deserializer).map(|body| body.ends)
    }
}

/// The title and the body of an issue stand beside its other fields.
mod title_and_body {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize)]
    struct TitleAndBodyRef<'a> {
        title: &'a str,
        body: &'a str,
    }

    #[derive(Deserialize)]
    struct TitleAndBody {
        title: String,
        body: String,
    }

    pub(super) fn serialize<S: Serializer>(
        (title, body): &(String, String),
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        TitleAndBodyRef { title, body }.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<(String, String), D::Error> {
        TitleAndBody::deserialize(deserializer).map(|fields| (fields.title, fields.body))
    }
}

/// Criteria and what came of each, as objects.
mod items {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::acceptance::VerifyResult;

    #[derive(Serialize, Deserialize)]
    struct AcceptanceItem {
        text: String,
        result: VerifyResult,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        seen: String,
    }

    pub(super) fn serialize<S: Serializer>(
        items: &[(String, VerifyResult, String)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let item = |(text, result, seen): &(String, VerifyResult, String)| AcceptanceItem {
            text: text.clone(),
            result: *result,
            seen: seen.clone(),
        };
        serializer.collect_seq(items.iter().map(item))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(String, VerifyResult, String)>, D::Error> {
        let items = Vec::<AcceptanceItem>::deserialize(deserializer)?;
        Ok(items.into_iter().map(|item| (item.text, item.result, item.seen)).collect())
    }
}

/// Criteria that do not hold, as objects.
mod failing {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct FailingCriterion {
        text: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        seen: String,
    }

    pub(super) fn serialize<S: Serializer>(
        failing: &[(String, String)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let criterion =
            |(text, seen): &(String, String)| FailingCriterion { text: text.clone(), seen: seen.clone() };
        serializer.collect_seq(failing.iter().map(criterion))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(String, String)>, D::Error> {
        let failing = Vec::<FailingCriterion>::deserialize(deserializer)?;
        Ok(failing.into_iter().map(|criterion| (criterion.text, criterion.seen)).collect())
    }
}

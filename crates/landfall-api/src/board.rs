//! The board: tasks by what they need from a person, and what is wrong.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    AccountLine, Action, AgentAtWork, Base, BudgetLine, DiskState, EngineState, Outcome, Pilot, QueueBrief,
    QueuePlace, RunState, Size, SpendingLine, Status, Wait, WireTaskId,
};

/// Asks for the board.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BoardAsked {
    /// At most so many cards in a column; 50 when it is 0, never more than 500.
    pub cards: u32,
    /// Only these columns; all, if empty. The others are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ColumnName>,
}

/// Which column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ColumnName {
    /// Being worked on or verified.
    Working,
    /// Cannot go on without a person: questions, logins, conflicts, broken gates, blocked and failed tasks.
    NeedsYou,
    /// Verified; a person looks at it before it lands.
    InReview,
    /// In the landing queue, or being landed.
    Landing,
    /// Landed since midnight.
    DoneToday,
    /// Can start, first in line first.
    Next,
    /// Waits for something other than a person.
    Waiting,
}

impl ColumnName {
    /// Every one there is, in the order they are shown.
    pub const ALL: [Self; 7] = [
        Self::Working,
        Self::NeedsYou,
        Self::InReview,
        Self::Landing,
        Self::DoneToday,
        Self::Next,
        Self::Waiting,
    ];

    /// The word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::NeedsYou => "needs-you",
            Self::InReview => "in-review",
            Self::Landing => "landing",
            Self::DoneToday => "done-today",
            Self::Next => "next",
            Self::Waiting => "waiting",
        }
    }
}

/// The board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Board {
    /// The last fact of the journal this is true for: what comes after it is news.
    pub seq: u64,
    /// The moment it was made.
    pub at_ms: i64,
    /// The columns, in the order they are shown.
    pub columns: Vec<Column>,
    /// What is wrong, the worst first.
    pub problems: Vec<Trouble>,
    /// How many tasks are in each status; a status without tasks is left out.
    pub counts: BTreeMap<Status, u64>,
    /// The engine that holds the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineState>,
    /// The run under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunState>,
    /// Who picks tasks in the run under way, and whether anything begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pilot: Option<Box<Pilot>>,
    /// The open sprint in one line; `sprint` says more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sprint: Option<String>,
    /// The landing queue, if anybody stands in it or it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Box<QueueBrief>>,
    /// Who lands next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_landing: Option<QueuePlace>,
    /// How many landed tasks a person is still to look at.
    pub reviews_owed: u64,
    /// How many issues landed and wait for somebody to tick a box, or to have them looked at again.
    #[serde(default)]
    pub issues_left: u64,
    /// Accounts that are shut, or of whose allowance an agent has told.
    pub accounts: Vec<AccountLine>,
    /// What was spent in the run under way and today, where that is known.
    pub spending: Vec<SpendingLine>,
    /// The budgets of the run and the day.
    pub budgets: Vec<BudgetLine>,
    /// The branch that work lands on.
    pub base: Base,
    /// The disk that holds the state folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskState>,
}

/// One column of the board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Column {
    /// Which.
    pub name: ColumnName,
    /// How many tasks belong in it.
    pub count: u64,
    /// The first of them: those that need attention longest first, landed ones newest first, the line in its order.
    pub cards: Vec<Card>,
    /// How many more there are than cards.
    pub more: u64,
}

/// A task on the board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Card {
    /// Which.
    pub id: WireTaskId,
    /// What it is called.
    pub title: String,
    /// Where it is.
    pub status: Status,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    /// The flow's own word for where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The step it is in, or will go on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// What is being done, in a word or two, if it is being worked on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doing: String,
    /// Why it is where it is, in a line: how it failed, what it asks, the concerns.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The agent profile it takes.
    pub profile: String,
    /// The agent at work on it, with its model, how it is and what it said or did last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentAtWork>,
    /// The iteration of the agent, counted from 1; 0 before the first.
    pub iteration: u32,
    /// How many there may be; 0 before it first began.
    pub iterations_max: u32,
    /// The attempt; 0 before the first.
    pub attempt: u32,
    /// Time spent on it, what runs now included.
    pub elapsed_ms: u64,
    /// Tokens used so far.
    pub tokens: u64,
    /// Money used so far, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// What its work changes, if it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<DiffStat>,
    /// The checks of the last verification, or of the one that runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckMark>,
    /// How far it is, where its flow has a plan, a judge or an objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Box<crate::Progress>>,
    /// How many tasks it needs that have not landed.
    #[serde(default)]
    pub unmet: u32,
    /// How much work it is thought to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Words on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// 0 is the most urgent, 9 can wait.
    pub priority: u8,
    /// It has been like this since then.
    pub since_ms: i64,
    /// The commit it landed as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether its verification ran no check at all, so that its pass proves nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unverified: bool,
}

/// How much a piece of work changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiffStat {
    /// Files.
    pub files: u64,
    /// Lines that are new.
    pub added: u64,
    /// Lines that are gone.
    pub removed: u64,
}

/// A check in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckMark {
    /// What the person calls it.
    pub name: String,
    /// How it stands.
    pub state: MarkState,
    /// What it came to; none while it waits or runs, or the verification it belongs to is not over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// How long it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<u64>,
}

/// How a check stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MarkState {
    /// Others come first.
    Waiting,
    /// It runs.
    Running,
    /// It is over.
    Over,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trouble {
    /// The same for as long as it is the same trouble: to keep or to hide it.
    pub key: String,
    /// How bad it is.
    pub severity: Severity,
    /// What kind.
    pub kind: TroubleKind,
    /// What is wrong, in one sentence.
    pub text: String,
    /// The task it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<WireTaskId>,
    /// Since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<i64>,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
    /// What to do about it, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// The same, ready to be sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
}

/// How bad something is, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Broken: work stands still.
    Error,
    /// Someone should decide.
    Warning,
    /// Good to know; it ends by itself.
    Info,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TroubleKind {
    /// An agent has said nothing for long.
    Stalled,
    /// An agent does the same over and over.
    Looping,
    /// An agent is gone.
    Dead,
    /// Several iterations left no commit.
    Stuck,
    /// An account cannot be worked on.
    Account,
    /// Nothing is taken from the landing queue.
    QueueHeld,
    /// A check cannot be trusted.
    GateBroken,
    /// The disk has too little room.
    Disk,
    /// The run starts nothing new.
    Paused,
    /// A budget is used up.
    Budget,
    /// Landed work is not in the person's repository.
    Unpublished,
    /// Works under way that do not fit together.
    Clash,
    /// Anything else a person should know.
    Warning,
}

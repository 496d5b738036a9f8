//! What goes on: runs, the engine, and the lines of `status`.

use std::collections::BTreeMap;

use landfall_facts::driving::TaskActivity;
use serde::{Deserialize, Serialize};

use crate::{
    AccountLine, BudgetLine, Pilot, Problem, QueueBrief, SpendingLine, Status, Usage, WaitFor, WireRunId,
    WireSprintId, WireTaskId,
};

/// A request without words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Nothing {}

/// How the project stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusReport {
    /// How many tasks are in each status; a status without tasks is left out.
    pub counts: BTreeMap<Status, u64>,
    /// The run under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunState>,
    /// The engine that holds the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineState>,
    /// What is being worked on.
    pub active: Vec<ActiveLine>,
    /// The checks that run now: on tasks, on batches of the landing queue, on the base.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<RunningCheckLine>,
    /// Who picks tasks in the run under way, and whether anything begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pilot: Option<Box<Pilot>>,
    /// The landing queue, if anybody stands in it or it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Box<QueueBrief>>,
    /// The open sprint in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sprint: Option<String>,
    /// Works under way that do not fit together as they stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clashes: Vec<ClashLine>,
    /// How many landed tasks a person is still to look at.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reviews_owed: u64,
    /// How many issues landed and wait for somebody to tick a box, or to have them looked at again.
    #[serde(default)]
    pub issues_left: u64,
    /// What waits, by what for.
    pub waiting: Vec<WaitingGroup>,
    /// Accounts that are shut, or of whose allowance an agent has told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<AccountLine>,
    /// What was spent in the run under way and today, where that is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spending: Vec<SpendingLine>,
    /// The budgets of the run and the day.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetLine>,
    /// The branch that work lands on.
    pub base: Base,
    /// The disk that holds the state folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskState>,
    /// What a person should know and do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Two works under way that do not fit together as they stand. It is seen by merging them for a try; nothing follows from
/// it: whoever lands second resolves what is left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClashLine {
    /// One of them.
    pub task: WireTaskId,
    /// The other.
    pub with: WireTaskId,
    /// In these files.
    pub files: Vec<String>,
}

/// The run under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunState {
    /// Its id.
    pub run: WireRunId,
    /// When it began.
    pub since_ms: i64,
    /// How many agents may work at once.
    pub slots: u32,
    /// How many of these slots are taken. A task that is verified or lands takes none.
    #[serde(default)]
    pub agents: u32,
    /// Running, draining, stopping: in the engine's words.
    pub mode: String,
}

/// The engine that holds the project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineState {
    /// Its process.
    pub pid: u32,
    /// When it began.
    pub since_ms: i64,
    /// Its version.
    pub version: String,
}

/// A task that is being worked on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActiveLine {
    /// Which.
    pub task: WireTaskId,
    /// What it is called.
    pub title: String,
    /// The step of its flow.
    pub step: String,
    /// What is being done, in a word or two.
    pub doing: TaskActivity,
    /// The iteration of the agent, counted from 1; 0 before the first.
    pub iteration: u32,
    /// How many there may be.
    pub iterations_max: u32,
    /// Time spent on the task so far.
    pub elapsed_ms: u64,
    /// Tokens used so far.
    pub tokens: u64,
    /// Money used so far, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The agent at work on it, if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentAtWork>,
    /// The check that runs on it, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<RunningCheckLine>,
    /// How far it is, where its flow has a plan, a judge or an objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Box<crate::Progress>>,
}

/// A check that runs now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunningCheckLine {
    /// What it verifies: a task (`T7`), a batch (`B3`) or the base (`base`).
    pub of: String,
    /// What it is called.
    pub check: String,
    /// How long it has run.
    pub elapsed_ms: u64,
    /// How long it may run.
    pub limit_ms: u64,
    /// The last line that it wrote.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_line: String,
}

/// An agent at work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentAtWork {
    /// The profile.
    pub profile: String,
    /// The model it uses, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How it is confined: `strict`, `isolated`, `write` or `off`.
    pub sandbox: String,
    /// What it is at: `working`, `in a tool`, `waiting for the model`, `waiting for a person`, `looping`, `dead`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The evidence for that.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// How full its context is, in per cent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_percent: Option<u32>,
    /// How far it says it is, in per cent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<u8>,
    /// The last it said, one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
}

/// Tasks that wait for the same thing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitingGroup {
    /// What for.
    #[serde(rename = "for")]
    pub wait: WaitFor,
    /// Who ends it.
    pub owner: String,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
    /// More, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Who waits.
    pub tasks: Vec<WireTaskId>,
}

/// The branch that work lands on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Base {
    /// Its name.
    pub branch: String,
    /// Where it stands in the store.
    pub commit: String,
    /// Whether the person's repository has it too.
    pub published: bool,
    /// Why the store is ahead or the queue holds, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// Why landed work is not in the user's repository yet, and the command that brings it in. Absent if it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpublished: Option<String>,
}

/// A disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskState {
    /// What is left.
    pub free_bytes: u64,
    /// What Landfall uses for this project, if it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
}

/// Asks to stop.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct StopAsked {
    /// Only this task; the whole run otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<WireTaskId>,
    /// At once, not at the end of the iteration. The work is kept.
    pub now: bool,
}

/// What is being stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stopped {
    /// The run, if the whole of it stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<WireRunId>,
    /// The tasks that were at work.
    pub tasks: Vec<WireTaskId>,
    /// What happens now, in one sentence.
    pub text: String,
    /// What is stopped and when: each agent and each check, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

/// The runs there were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunList {
    /// Newest first.
    pub runs: Vec<RunLine>,
}

/// One run: from its start until it ended by itself or was stopped, over all engines that drove it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunLine {
    /// Its id.
    pub run: WireRunId,
    /// The ids under which further engines drove it, after the one before was lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_over_by: Vec<WireRunId>,
    /// When it began.
    pub began_ms: i64,
    /// When it ended. If its engine was lost, the last that it wrote; absent while the run goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<i64>,
    /// How it ended, in a word or two.
    pub end: String,
    /// What has become of its tasks.
    #[serde(default)]
    pub counts: RunCounts,
    /// The tasks that were worked on or landed in it, in the order of ids; at most 200.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<WireTaskId>,
    /// What its agents used, in tokens and money.
    #[serde(default)]
    pub usage: Usage,
    /// Working time of its agents, added up.
    #[serde(default)]
    pub agent_ms: u64,
    /// How often its engine was lost.
    #[serde(default)]
    pub engines_lost: u64,
    /// How long it had no engine.
    #[serde(default)]
    pub down_ms: u64,
    /// How long it was paused, without the time it had no engine.
    #[serde(default)]
    pub paused_ms: u64,
}

impl RunLine {
    /// How long it took, with pauses and without the time it had no engine.
    #[must_use]
    pub fn took_ms(&self, now_ms: i64) -> u64 {
        let whole = self.ended_ms.unwrap_or(now_ms).saturating_sub(self.began_ms);
        u64::try_from(whole).unwrap_or(0).saturating_sub(self.down_ms)
    }

    /// What it cost for each task that landed, if that is known.
    #[must_use]
    pub fn cost_per_landed(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "nobody lands that many tasks")]
        let each = |cost: f64| (self.counts.landed > 0).then(|| cost / self.counts.landed as f64);
        self.usage.cost_usd.and_then(each)
    }

    /// Everything but the tasks that landed, in the order a person wants to know it: `2 failed`, `3 behind others`.
    #[must_use]
    pub fn other_counts(&self) -> Vec<(RunResult, u64)> {
        RunResult::ALL
            .into_iter()
            .filter(|result| *result != RunResult::Landed)
            .map(|result| (result, self.counts.of(result)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

/// How many tasks of a run have come to what. Each task is counted once, so that the numbers add up to all tasks of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RunCounts {
    /// Tasks that landed in it.
    pub landed: u64,
    /// Tasks that were accepted without a landing.
    pub accepted: u64,
    /// Tasks that failed, ran out or were blocked.
    pub failed: u64,
    /// Tasks that wait for you.
    pub needs_you: u64,
    /// Tasks that wait behind one that has not landed.
    pub behind: u64,
    /// Tasks that wait for something else, such as an account.
    pub waiting: u64,
    /// Tasks that are being worked on.
    pub at_work: u64,
    /// Tasks that could start and were not worked on.
    pub not_started: u64,
    /// Tasks that were cancelled.
    pub cancelled: u64,
}

impl RunCounts {
    /// The number of one result.
    #[must_use]
    pub fn of(&self, result: RunResult) -> u64 {
        match result {
            RunResult::Landed => self.landed,
            RunResult::Accepted => self.accepted,
            RunResult::Failed => self.failed,
            RunResult::NeedsYou => self.needs_you,
            RunResult::Behind => self.behind,
            RunResult::Waiting => self.waiting,
            RunResult::AtWork => self.at_work,
            RunResult::NotStarted => self.not_started,
            RunResult::Cancelled => self.cancelled,
        }
    }

    /// All tasks of the run.
    #[must_use]
    pub fn total(&self) -> u64 {
        RunResult::ALL.into_iter().map(|result| self.of(result)).sum()
    }
}

/// What has become of a task of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunResult {
    /// It landed in the run.
    Landed,
    /// It was accepted without a landing.
    Accepted,
    /// It failed, ran out or was blocked.
    Failed,
    /// It waits for you.
    NeedsYou,
    /// It waits behind a task that has not landed.
    Behind,
    /// It waits for something else.
    Waiting,
    /// It is being worked on.
    AtWork,
    /// It could start and was not worked on.
    NotStarted,
    /// It was cancelled.
    Cancelled,
}

impl RunResult {
    /// Every result, in the order a person wants to know it.
    pub const ALL: [Self; 9] = [
        Self::Landed,
        Self::Accepted,
        Self::Failed,
        Self::NeedsYou,
        Self::Behind,
        Self::Waiting,
        Self::AtWork,
        Self::NotStarted,
        Self::Cancelled,
    ];

    /// As people read it after a number: `3 behind others`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Landed => "landed",
            Self::Accepted => "accepted without landing",
            Self::Failed => "failed or blocked",
            Self::NeedsYou => "for you",
            Self::Behind => "stuck behind others",
            Self::Waiting => "waiting",
            Self::AtWork => "at work",
            Self::NotStarted => "not started",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A task of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunTaskLine {
    /// Its id.
    pub task: WireTaskId,
    /// What is wanted.
    pub title: String,
    /// What had become of it when the run ended, or now.
    pub result: RunResult,
    /// The task it waits behind in the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<WireTaskId>,
    /// Its status now.
    pub status: Status,
    /// Iterations in the run.
    pub iterations: u32,
    /// Working time of its agents in the run.
    pub agent_ms: u64,
    /// What it used in the run.
    #[serde(default)]
    pub usage: Usage,
    /// The commit it landed as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Why it is as it is, in one sentence.
    pub why: String,
}

/// A run with its tasks: the one source of every report about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunReport {
    /// Its figures.
    pub run: RunLine,
    /// Its tasks: those that landed last, the others before them.
    pub tasks: Vec<RunTaskLine>,
    /// Why landed work is not in your branch, or the queue is held; a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How a run ended, and what became of each of its tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunOutcome {
    /// Its id.
    pub run: WireRunId,
    /// How it ended.
    pub ended: RunEnded,
    /// The tasks it was about, in the order of ids.
    pub tasks: Vec<OutcomeLine>,
    /// How long it took.
    pub elapsed_ms: u64,
    /// Tokens used in it.
    pub tokens: u64,
    /// Money used in it, if an agent told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// What a person should know, a sentence each: an empty gate, a held base, a task that was stuck.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What only a person can do now, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs_you: Vec<String>,
    /// The sprint it was for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sprint: Option<WireSprintId>,
    /// The file that holds the report of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// The run over all engines that drove it, if it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<Box<RunLine>>,
}

impl RunOutcome {
    /// A run of which nothing more is known.
    #[must_use]
    pub fn broken_run(problem: Problem) -> Self {
        Self {
            run: WireRunId(0),
            ended: RunEnded::Broken(problem),
            tasks: Vec::new(),
            elapsed_ms: 0,
            tokens: 0,
            cost_usd: None,
            warnings: Vec::new(),
            needs_you: Vec::new(),
            sprint: None,
            report: None,
            line: None,
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RunEnded {
    /// Nothing is left that can go on by itself.
    Finished,
    /// One task was done, in semi-automatic mode, and nobody was there to pick another.
    OneDone,
    /// The goal of its sprint was reached.
    Goal,
    /// It was paused, for this reason, and nobody was there to resume it.
    Paused(String),
    /// A person asked for it; iterations under way were finished.
    Drained,
    /// A person asked for it at once.
    Stopped,
    /// Nobody was there, and so many tasks were put aside for a person that it failed as a whole.
    Deferred(u64),
    /// It holds, for this reason: a broken gate, a full disk, too many failures in a row.
    Held(String),
    /// The engine cannot go on.
    Broken(Problem),
}

/// What became of one task in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutcomeLine {
    /// Which.
    pub task: WireTaskId,
    /// What it is called.
    pub title: String,
    /// Where it is now.
    pub status: Status,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitFor>,
    /// Iterations used.
    pub iterations: u32,
    /// Time spent on it.
    pub spent_ms: u64,
    /// Tokens used.
    pub tokens: u64,
    /// The commit it landed as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Why it is where it is, in one sentence.
    pub why: String,
}

//! What drives the backlog: who picks tasks, pauses, sprints, the landing queue, reviews and checkpoints.

use landfall_facts::pilot::{PauseReason, PilotPhase};
use landfall_facts::queue::HoldReason;
use landfall_facts::sprint::{SprintFate, SprintStage};
use serde::{Deserialize, Serialize};

use crate::{Mode, Outcome, Status, WireRunId, WireSprintId, WireTaskId};

/// Asks to begin nothing new.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PauseAsked {
    /// Why, in the person's words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Changes who picks tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AutoAsked {
    /// Who is to pick from now on.
    pub mode: Mode,
}

/// Who picks tasks, and whether anything begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pilot {
    /// The run under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<WireRunId>,
    /// Who picks.
    pub mode: Mode,
    /// `idle`, `running`, `paused`, `waiting for you` or `completed`.
    pub phase: PilotPhase,
    /// Why nothing begins, if it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<PauseLine>,
    /// What a person picked and is being worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picked: Option<WireTaskId>,
    /// What would be picked next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<TaskBrief>,
    /// How many tasks could start.
    pub ready: u64,
    /// How many agents may work at once.
    pub slots: u32,
    /// How it is, and what can be done, in one sentence.
    pub text: String,
}

/// A pause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PauseLine {
    /// `person`, `failures` or `sprint-error`.
    pub why: PauseReason,
    /// In words.
    pub reason: String,
    /// Since then.
    pub since_ms: i64,
}

/// A task by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskBrief {
    /// Which.
    pub task: WireTaskId,
    /// What it is called.
    pub title: String,
}

/// Picks the next task of a semi-automatic run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct NextAsked {
    /// This one; the first in line otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<WireTaskId>,
}

/// What was picked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Picked {
    /// Which.
    pub task: WireTaskId,
    /// What it is called.
    pub title: String,
    /// What happens now, in one sentence.
    pub text: String,
}

/// When a sprint has what it wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SprintGoal {
    /// So many tasks are verified.
    Count {
        /// How many.
        count: u32,
    },
    /// It went on for so long, pauses not counted.
    Duration {
        /// How long.
        duration_ms: u64,
    },
    /// It is that late.
    UntilTime {
        /// When.
        until_ms: i64,
    },
    /// Nothing is ready any more.
    NoReady,
}

/// What a sprint is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SprintPlan {
    /// When it is over.
    pub goal: SprintGoal,
    /// Only these tasks; none means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<WireTaskId>,
    /// Only parts of these; none means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<WireTaskId>,
    /// Only with one of these tags; none means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// None with one of these tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_tags: Vec<String>,
    /// A checkpoint is made before it.
    pub checkpoint: bool,
    /// The first task that fails pauses it.
    pub pause_on_error: bool,
    /// What lands is looked at by a person afterwards.
    pub batch_review: bool,
}

/// What a sprint would be, before it begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SprintPreview {
    /// What was asked for.
    pub plan: SprintPlan,
    /// The tasks that could begin at once, those first that would be picked first.
    pub ready: Vec<TaskBrief>,
    /// Those that belong to it, and need others to land first.
    pub later: Vec<TaskBrief>,
    /// How many more there are than are named.
    pub more: u64,
    /// How many agents may work at once.
    pub slots: u32,
    /// How long a task has taken so far, on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each_ms: Option<u64>,
    /// How long it would take at that pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_ms: Option<u64>,
    /// How many tasks fit into it at that pace, where time ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fits: Option<u64>,
}

/// Asks for one sprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SprintOf {
    /// Which; the newest otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sprint: Option<WireSprintId>,
}

/// A sprint and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SprintReport {
    /// Its id.
    pub sprint: WireSprintId,
    /// What it was to be.
    pub plan: SprintPlan,
    /// `running`, `paused`, `completing` or `over`.
    pub phase: SprintStage,
    /// Whether a run of it is under way.
    pub driven: bool,
    /// Why it is paused, or how it ended, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub because: String,
    /// When it began.
    pub started_ms: i64,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<i64>,
    /// How long it has gone on, pauses not counted.
    pub worked_ms: u64,
    /// How long it was paused.
    pub paused_ms: u64,
    /// How many tasks could start when it began.
    pub ready_at_start: u32,
    /// How many could start now.
    pub ready: u64,
    /// It in one line: `SPRINT | 14/23 tasks | 2 failed | Until 08:00 (6h 23m left)`.
    pub bar: String,
    /// What became of it, in one sentence.
    pub verdict: String,
    /// How many tasks landed.
    #[serde(default)]
    pub landed: u64,
    /// How many tasks it is about: those its goal wants, else those it began and those that could start now.
    #[serde(default)]
    pub total: u64,
    /// What became of each task it began, in the order they began.
    pub tasks: Vec<SprintTask>,
    /// Tokens used in it.
    pub tokens: u64,
    /// Money used in it, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How many had landed at each landing.
    pub burn_up: Vec<BurnPoint>,
    /// When what is left would have landed, at the pace of the last half of what landed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast_ms: Option<i64>,
    /// How many tasks the forecast is about.
    pub forecast_of: u64,
}

/// How many tasks had landed at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BurnPoint {
    /// When.
    pub at_ms: i64,
    /// How many.
    pub landed: u64,
}

/// What became of one task in a sprint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SprintTask {
    /// Which.
    pub task: WireTaskId,
    /// What it is called.
    pub title: String,
    /// `open`, `landed`, `failed`, `timeout`, `blocked` or `cancelled`.
    pub fate: SprintFate,
    /// Where it is now.
    pub status: Status,
    /// When it first began in the sprint.
    pub started_ms: i64,
    /// When it landed, or gave up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_ms: Option<i64>,
    /// Runs of its agent in the sprint.
    pub iterations: u32,
    /// Whether its work is verified.
    pub verified: bool,
    /// Whether it was ever sent back out of the landing queue.
    pub ejected: bool,
    /// Why it was, the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_back: Option<String>,
    /// Whether a person must do something before it goes on.
    pub needs_you: bool,
    /// What a person said of it: `approved`, `redo`, `rejected`, `deferred` or `skipped`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<String>,
    /// Whether a person is still to look at what landed.
    pub owed: bool,
    /// The commit it landed as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Tokens used in the sprint.
    pub tokens: u64,
    /// Money used in the sprint, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Why it is where it is, in one sentence.
    pub why: String,
}

/// The sprints there were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SprintList {
    /// Oldest first.
    pub sprints: Vec<SprintRecord>,
}

/// A sprint as a line of a file: what `sprint list --jsonl` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SprintRecord {
    /// Its id.
    pub id: WireSprintId,
    /// When it began, as RFC 3339.
    pub started_at: String,
    /// When it ended.
    pub ended_at: Option<String>,
    /// What it wanted.
    pub target: SprintTarget,
    /// `running`, `paused`, `completing` or `over`.
    pub phase: SprintStage,
    /// How it ended: `goal`, `nothing-left`, `cancelled` or `spent`.
    pub end: Option<String>,
    /// How many tasks it began.
    pub total_tasks: u64,
    /// How many landed.
    pub completed_tasks: u64,
    /// How many gave up, ran out or are blocked.
    pub failed_tasks: u64,
    /// How many wait for a person to look.
    pub reviewing_tasks: u64,
    /// What became of each.
    pub task_stats: Vec<SprintTaskStat>,
    /// How it was set.
    pub settings: SprintSettings,
}

/// What a sprint wanted, in the words of its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SprintTarget {
    /// `count`, `duration`, `until_time` or `no_ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// How many tasks, how many hours, or when as RFC 3339.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub value: serde_json::Value,
}

/// What became of one task, in the words of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SprintTaskStat {
    /// Which.
    pub task_id: WireTaskId,
    /// When it first began in the sprint, as RFC 3339.
    pub started_at: String,
    /// When it landed, or gave up.
    pub completed_at: Option<String>,
    /// Runs of its agent in the sprint.
    pub iterations: u32,
    /// Whether its work is verified.
    pub verification_passed: bool,
    /// What a person said of it.
    pub review_decision: Option<String>,
}

/// How a sprint was set, in the words of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SprintSettings {
    /// Iterations of a task at most.
    pub max_iterations: u32,
    /// Minutes of a task at most.
    pub task_timeout: u64,
    /// Whether a task that is stuck pauses it. It is warned about, and goes on until its limits.
    pub pause_on_stuck: bool,
    /// Whether the first task that fails pauses it.
    pub pause_on_errors: bool,
}

/// A sprint that was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SprintChanged {
    /// Which.
    pub sprint: WireSprintId,
    /// What happens now, in one sentence.
    pub text: String,
}

/// The landing queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueReport {
    /// Whoever stands in line, first come first.
    pub line: Vec<QueuePlace>,
    /// The batches on their way, in the order they land.
    pub batches: Vec<BatchLine>,
    /// Why nothing is taken from the line, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<HoldLine>,
    /// The latest batches that are over, newest first.
    pub past: Vec<BatchLine>,
    /// Checks that failed and then passed on the same tree, the worst first.
    pub flakes: Vec<FlakeLine>,
}

/// A place in the line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueuePlace {
    /// From 1.
    pub place: u64,
    /// Who.
    pub task: WireTaskId,
    /// What it is called.
    pub title: String,
    /// Since then.
    pub since_ms: i64,
    /// The batch it is in, such as `B7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// What it waits for, in a few words.
    pub text: String,
}

/// Tasks that land together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BatchLine {
    /// Its name, such as `B7`.
    pub batch: String,
    /// The batch it stands on, as long as that one has not landed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Who is in it, in the order they are merged.
    pub members: Vec<WireTaskId>,
    /// What they are called, in the same order; `queue` says it, other answers do not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub titles: Vec<String>,
    /// What is being done about it, or how it ended, in a few words.
    pub doing: String,
    /// Every look at it: how many members from the front were verified together, and what came of it.
    pub looks: Vec<BatchLook>,
    /// The looks drawn: `5 ✗ → 2 ✓ → 3 ✓ → 4 ✗`.
    pub drawing: String,
    /// Whoever made it red, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub culprit: Option<WireTaskId>,
    /// The commit it landed as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<i64>,
}

/// One look at a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BatchLook {
    /// How many members from the front.
    pub count: u64,
    /// What came of it.
    pub outcome: Outcome,
}

/// Why nothing is taken from the line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HoldLine {
    /// `gate`, `runaway`, `machine`, `person`, `rewritten` or `deleted`.
    pub why: HoldReason,
    /// In words.
    pub reason: String,
    /// Since then.
    pub since_ms: i64,
    /// Until then, if it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
    /// What lets it move again.
    pub hint: String,
}

/// How often a check was flaky.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlakeLine {
    /// Its name.
    pub check: String,
    /// How often it ran.
    pub runs: u64,
    /// How often it failed and then passed on the same tree.
    pub flakes: u64,
    /// When it last did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ms: Option<i64>,
}

/// Lets the landing queue move again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct QueueResume {
    /// Where the branch was rewritten: what landed stays, and both are brought together. The branch as it is becomes the base
    /// otherwise.
    pub keep_landed: bool,
}

/// The landing queue was held, or moves again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueChanged {
    /// Whether it is held now.
    pub held: bool,
    /// How many stand in line.
    pub waiting: u64,
    /// What happens now, in one sentence.
    pub text: String,
}

/// The landing queue in a few words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueBrief {
    /// How many stand in line.
    pub waiting: u64,
    /// The batches on their way.
    pub batches: Vec<BatchLine>,
    /// Why nothing is taken from the line, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<HoldLine>,
}

/// What a person is to look at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReviewList {
    /// Work that does not land before somebody has looked.
    pub before: Vec<ReviewLine>,
    /// Landed work that somebody is to look at when there is time.
    pub after: Vec<ReviewLine>,
    /// Complaints that have a name.
    pub issues: Vec<QuickIssue>,
}

/// Work to look at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReviewLine {
    /// Which.
    pub task: WireTaskId,
    /// What it is called.
    pub title: String,
    /// Since then.
    pub since_ms: i64,
    /// Why a person is to look, a sentence each.
    pub reasons: Vec<String>,
    /// What a reviewing agent found and still stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// What the agent that did the work says about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// The commit it landed as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Attempts whose work is kept, to go back to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<u32>,
}

/// A complaint that has a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuickIssue {
    /// What it is called.
    pub name: String,
    /// What the agent is told.
    pub text: String,
}

/// Says what is to become of work that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReviewAsked {
    /// Of these.
    pub tasks: Vec<WireTaskId>,
    /// This.
    pub said: ReviewSaid,
}

/// What a person says of work they looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "decision", rename_all = "kebab-case")]
pub enum ReviewSaid {
    /// It is good.
    Approve {
        /// With a note.
        #[serde(default)]
        note: String,
    },
    /// It is to be changed.
    Changes {
        /// By their names, or in words.
        #[serde(default)]
        issues: Vec<String>,
        /// In words.
        #[serde(default)]
        note: String,
        /// From where.
        #[serde(default)]
        redo: Redo,
        /// Before or after others.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<RedoHint>,
    },
    /// It is not wanted.
    Reject {
        /// Because.
        note: String,
    },
    /// Nobody need look.
    Skip,
    /// Not now.
    Defer,
}

/// What happens to work that is to be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Redo {
    /// It goes on from what is there.
    #[default]
    Keep,
    /// It begins anew; what is there is kept under a ref.
    Fresh,
    /// It goes on from what this attempt left.
    From(u32),
}

/// When work that is to be changed is taken up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RedoHint {
    /// Before others.
    Next,
    /// After others.
    Later,
}

/// The checkpoints there are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckpointList {
    /// Newest first.
    pub checkpoints: Vec<CheckpointLine>,
}

/// Where the base was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckpointLine {
    /// What it is called.
    pub name: String,
    /// When it was made.
    pub at_ms: i64,
    /// Where the base was.
    pub commit: String,
    /// `landings`, `sprint`, `person` or `restore`.
    pub why: String,
    /// How many tasks have landed since.
    pub landed_since: u64,
}

/// Asks for a checkpoint by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckpointAsked {
    /// What it is called.
    pub name: String,
}

/// What going back to a checkpoint takes away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckpointDetail {
    /// It.
    pub checkpoint: CheckpointLine,
    /// What landed after it, in order.
    pub lost: Vec<LostTask>,
    /// What people committed after it, oldest first: it goes away as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<LostCommit>,
}

/// A commit of a person whose changes go away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostCommit {
    /// Which.
    pub commit: String,
    /// The first line of its message.
    pub title: String,
    /// Who wrote it.
    pub author: String,
}

/// Landed work that goes away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostTask {
    /// Which.
    pub task: WireTaskId,
    /// What it is called.
    pub title: String,
    /// The commit it landed as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// Asks for a checkpoint of the base.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CheckpointNew {
    /// Under this name; one is made up otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The base is to be as it was at a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Restored {
    /// The checkpoint.
    pub name: String,
    /// The task that brings it back.
    pub task: WireTaskId,
    /// What it takes away.
    pub lost: Vec<LostTask>,
    /// What happens now, in one sentence.
    pub text: String,
}

/// Which checkpoints need not be kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CheckpointDrop {
    /// These, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Those older than that, except the latest three and those a person made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub older_than_ms: Option<u64>,
    /// The oldest, so that this many are left, except those.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<u32>,
}

/// Checkpoints that are no longer kept. The commits themselves stay in the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckpointsDropped {
    /// Their names.
    pub names: Vec<String>,
    /// How many are left.
    pub left: u64,
}

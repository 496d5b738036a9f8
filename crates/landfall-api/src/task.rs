//! Tasks as clients write and read them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Blob, RunReport, TaskRef, WireRunId, WireTaskId};

/// A word that is not one of the known ones.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is not {wanted}; known: {known}")]
pub struct UnknownWord {
    /// What was given, cut to a readable length.
    pub text: String,
    /// What it should be.
    pub wanted: &'static str,
    /// The words there are.
    pub known: String,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident ($wanted:literal) { $($(#[$each:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name {
            $($(#[$each])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// Every one there is.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The word people and files use.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.word())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                Self::ALL.iter().copied().find(|it| it.word().eq_ignore_ascii_case(text)).ok_or_else(|| UnknownWord {
                    text: text.chars().take(40).collect(),
                    wanted: $wanted,
                    known: [$($word),*].join(", "),
                })
            }
        }
    };
}

pub(crate) use words;

words! {
    /// Where a task is, in one word.
    Status ("a status") {
        /// Not to be started yet.
        Draft = "draft",
        /// Can start.
        Ready = "ready",
        /// Being worked on.
        Active = "active",
        /// Waits for something with a name.
        Waiting = "waiting",
        /// Cannot go on without a person.
        Blocked = "blocked",
        /// A person must look at it.
        Review = "review",
        /// Verified, on its way onto the base.
        Landing = "landing",
        /// Landed, or accepted in a flow without landing.
        Done = "done",
        /// Gave up.
        Failed = "failed",
        /// Used up its time or its iterations.
        Timeout = "timeout",
        /// A person wants it no more.
        Cancelled = "cancelled",
    }
}

words! {
    /// What a waiting task waits for.
    WaitFor ("something to wait for") {
        /// Tasks it needs that have not landed.
        Dependency = "dependency",
        /// A slot that others hold.
        Slot = "slot",
        /// An account.
        Quota = "quota",
        /// A person's login to the agent's account.
        Login = "login",
        /// Money, tokens, turns or time to spend.
        Budget = "budget",
        /// A person's answer.
        Question = "question",
        /// A pause before trying again.
        Backoff = "backoff",
        /// Room on the disk.
        Disk = "disk",
        /// A person's leave to go on.
        Pause = "pause",
        /// A person who resolves a conflict with the base.
        Conflict = "conflict",
        /// A check that cannot be trusted.
        GateBroken = "gate broken",
        /// The issues it is made of.
        SubIssues = "sub-issues",
        /// Issues that are to be done before it.
        Blockers = "blocked by issues",
    }
}

words! {
    /// Who picks the next task of a run.
    Mode ("a mode") {
        /// The engine: every slot is filled.
        Autopilot = "autopilot",
        /// A person: one task, then it waits.
        SemiAuto = "semi-auto",
    }
}

words! {
    /// How much work a task is thought to be.
    Size ("a size") {
        /// A line or two.
        XS = "XS",
        /// An hour of a person.
        S = "S",
        /// Half a day.
        M = "M",
        /// A day or two.
        L = "L",
        /// More; wants splitting.
        XL = "XL",
    }
}

words! {
    /// What a check came to.
    Outcome ("an outcome") {
        /// It passed.
        Pass = "pass",
        /// It failed and then passed on the same tree.
        Flaky = "flaky",
        /// It fails on the base as well.
        PreExisting = "pre-existing",
        /// It failed.
        Fail = "fail",
        /// It ran into its limit.
        Timeout = "timeout",
        /// It could not run, or ran no test.
        Broken = "broken",
    }
}

/// A task to add.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct NewTask {
    /// One line.
    pub title: String,
    /// As long as it needs to be.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// What must hold when it is done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<String>,
    /// How much work it is thought to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Words on it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// 0 is the most urgent, 9 can wait; 5 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Tasks that must land first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<TaskRef>,
    /// Files, folders and patterns it is thought to change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<String>,
    /// The task this one is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskRef>,
    /// The flow; the project's default when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// The agent profile; `default` when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// A draft is not started until it is edited out of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub draft: bool,
    /// Where it came from: `cli`, `stdin`, `file:…`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
}

/// Tasks to add, all or none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewTasks {
    /// In the order in which they get their ids.
    pub tasks: Vec<NewTask>,
}

/// Tasks that were added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Added {
    /// In the order of the request.
    pub tasks: Vec<TaskLine>,
}

/// Asks about one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskAsked {
    /// Which.
    pub task: WireTaskId,
}

/// Which tasks to list. Everything given must hold.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Filter {
    /// In one of these statuses; any, if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<Status>,
    /// With this tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// With this in the title or body, whatever the case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Parts of this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<WireTaskId>,
    /// Tasks after this one, in the order of ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<WireTaskId>,
    /// At most so many; 0 leaves it to the engine.
    pub limit: u32,
}

/// A page of tasks, in the order of ids.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskPage {
    /// The tasks.
    pub tasks: Vec<TaskLine>,
    /// What to ask for `after` to get the next page; none when this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<WireTaskId>,
}

/// A task in one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskLine {
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
    /// How much work it is thought to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Words on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// 0 is the most urgent, 9 can wait.
    pub priority: u8,
    /// Tasks that must land first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<WireTaskId>,
    /// The task this one is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<WireTaskId>,
    /// Iterations used so far.
    pub iterations: u32,
    /// The commit it landed as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed: Option<String>,
}

/// What a task waits for, who ends it, and when it ends by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Wait {
    /// What for.
    #[serde(rename = "for")]
    pub wait: WaitFor,
    /// Who ends it.
    pub owner: String,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
    /// The question, the broken check, the tasks: in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// All there is to know about one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskDetail {
    /// Its line in a list.
    #[serde(flatten)]
    pub line: TaskLine,
    /// Why it is where it is, in one sentence.
    pub why: String,
    /// What is wanted.
    pub body: String,
    /// What must hold when it is done.
    pub criteria: Vec<String>,
    /// Files, folders and patterns it is thought to change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<String>,
    /// The flow it takes.
    pub flow: String,
    /// The agent profile it takes.
    pub agent: String,
    /// Where it came from.
    pub source: String,
    /// The step it is in, or will go on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The attempt; 0 before the first.
    pub attempt: u32,
    /// How many iterations there may be.
    pub iterations_max: u32,
    /// What was counted, one per cause.
    pub counters: Vec<Counter>,
    /// Time spent on it.
    pub spent_ms: u64,
    /// How much time there may be.
    pub limit_ms: u64,
    /// Tokens used.
    pub tokens: u64,
    /// Money used, if an agent told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The same in full.
    #[serde(default)]
    pub usage: crate::Usage,
    /// What it may spend, as its settings were when it last started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<crate::BudgetLine>,
    /// The last verification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// Why a person must look at it before it lands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub concerns: Vec<Concern>,
    /// What the agent is told next time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// What people said to the agent and it has not heard yet, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
    /// A person keeps it from going on, for this reason; it may be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// The limits a person set for it alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_limits: Option<crate::OwnLimits>,
    /// How it landed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed_as: Option<Landed>,
    /// What a person should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// How far it is, where its flow has a plan, a judge or an objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Box<crate::Progress>>,
    /// The branch its work is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The folder its agent works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Its attempts, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptLine>,
    /// When it was added.
    pub added_ms: i64,
}

/// How often something happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counter {
    /// What.
    pub name: String,
    /// How often.
    pub used: u64,
    /// How often it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}

/// What verification saw of one tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gate {
    /// What it amounts to.
    pub outcome: Outcome,
    /// The base the work was merged into.
    pub base: String,
    /// The work.
    pub head: String,
    /// The merge of both: what would land.
    pub commit: String,
    /// Its tree: what was checked out.
    pub tree: String,
    /// Each command.
    pub commands: Vec<CommandReport>,
    /// How long it took in all.
    pub took_ms: u64,
    /// Whether an earlier pass for the same tree, section and machine was taken over.
    pub reused: bool,
    /// Whether there was nothing to run, so that a pass means nothing.
    pub empty: bool,
}

/// What one command of the gate showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandReport {
    /// What the person calls it.
    pub name: String,
    /// What was run.
    pub command: String,
    /// Whether work may not land without it.
    pub required: bool,
    /// What it came to.
    pub outcome: Outcome,
    /// How it exited; none when a signal ended it or it never ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// How long it took.
    pub took_ms: u64,
    /// How long it might have taken.
    pub limit_ms: u64,
    /// How many tests it says it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<u64>,
    /// The end of its output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub excerpt: String,
    /// What the sandbox denied to it, if it did not pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<DeniedPath>,
    /// Whether it did not run, because what it installs was copied from an installation of the base.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copied_from_base: bool,
}

/// A path that the sandbox denied to a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeniedPath {
    /// `read` or `write`.
    pub access: String,
    /// The path, with `~` for the home folder.
    pub path: String,
    /// The path or pattern that allows it in `sandbox_read` or `sandbox_write`.
    pub allow: String,
}

/// Why a person must look at a task before it lands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Concern {
    /// For programs.
    pub code: String,
    /// For people.
    pub text: String,
}

/// How a task landed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Landed {
    /// The commit on the base.
    pub commit: String,
    /// Where the base stood before.
    pub base_before: String,
    /// The tree that was verified and landed.
    pub tree: String,
    /// How it is known that the landed tree is the verified one.
    pub proof: String,
    /// When.
    pub at_ms: i64,
    /// Whether the person's repository has it.
    pub publication: Publication,
}

/// Whether the person's repository has a landed commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Publication {
    /// It has it.
    Published,
    /// It does not have it yet, for this reason; the next run tries again.
    Held(String),
}

/// One try of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AttemptLine {
    /// Its number.
    pub attempt: u32,
    /// The step it tried.
    pub step: String,
    /// When it began.
    pub began_ms: i64,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<i64>,
    /// Iterations in it.
    pub iterations: u32,
    /// How it ended, in one line.
    pub end: String,
    /// What was done in it.
    #[serde(default)]
    pub kind: AttemptKind,
    /// Whether it came to nothing: its work was red, or the task gave up in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_failed: bool,
    /// The runs of the agent in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<crate::AgentRun>,
}

/// What was done in an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AttemptKind {
    /// An agent worked.
    Agent,
    /// Checks ran.
    Checks,
    /// It stood in the landing queue, and landed if nothing went wrong.
    Landing,
    /// Something else, such as writing the report.
    #[default]
    Other,
}

/// Changes to the words of a task. What is left out stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EditTask {
    /// Which.
    pub task: WireTaskId,
    /// Its new title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its new body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Its new criteria, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criteria: Option<Vec<String>>,
    /// Its new size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Its new tags, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Its new priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Its new needs, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<Vec<WireTaskId>>,
    /// What it is thought to change, all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub touches: Option<Vec<String>>,
    /// Its new parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<WireTaskId>,
    /// Its new flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Its new agent profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What goes back to not being set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clear: Vec<Clear>,
    /// Whether it may start: true takes it out of draft, false back into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
}

impl EditTask {
    /// No change yet.
    #[must_use]
    pub fn new(task: WireTaskId) -> Self {
        Self {
            task,
            title: None,
            body: None,
            criteria: None,
            size: None,
            tags: None,
            priority: None,
            needs: None,
            touches: None,
            parent: None,
            flow: None,
            agent: None,
            clear: Vec::new(),
            ready: None,
        }
    }
}

words! {
    /// What can go back to not being set.
    Clear ("something that can be cleared") {
        /// The size.
        Size = "size",
        /// The parent.
        Parent = "parent",
        /// The flow: the project's default again.
        Flow = "flow",
        /// The agent: `default` again.
        Agent = "agent",
    }
}

/// Tasks that changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Changed {
    /// In the order of the request.
    pub tasks: Vec<ChangedTask>,
}

/// A task that changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangedTask {
    /// Which.
    pub id: WireTaskId,
    /// Where it is now.
    pub status: Status,
    /// What happened, in one sentence.
    pub text: String,
}

/// Why a task is where it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Why {
    /// Which.
    pub task: WireTaskId,
    /// Where it is.
    pub status: Status,
    /// In one sentence.
    pub sentence: String,
    /// More, a line each.
    pub details: Vec<String>,
    /// How far it is, where its flow has a plan, a judge or an objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Box<crate::Progress>>,
    /// Works under way that it does not fit together with as they stand; it is the `task` of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clashes: Vec<crate::ClashLine>,
}

/// What a task changes, as a unified diff.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diff {
    /// Which.
    pub task: WireTaskId,
    /// From this commit.
    pub from: String,
    /// To this one.
    pub to: String,
    /// The diff.
    pub diff: Blob,
}

/// Lets tasks start again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Retry {
    /// Which.
    pub tasks: Vec<WireTaskId>,
    /// From a new workspace at the base. The earlier work is kept under a ref.
    #[serde(default)]
    pub fresh: bool,
    /// What the agent should know this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Ends tasks as done without a landing of their own; the tasks that need them go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Accept {
    /// Which.
    pub tasks: Vec<WireTaskId>,
    /// Why they are already done.
    pub reason: String,
}

/// Ends tasks that are wanted no more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cancel {
    /// Which.
    pub tasks: Vec<WireTaskId>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Gives their workspaces back too. What has not landed is kept under a ref.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cleanup: bool,
}

/// Answers a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// Whose.
    pub task: WireTaskId,
    /// The answer; `approve` lets a task in review land.
    pub text: String,
}

/// A landed task that is being taken back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RolledBack {
    /// Which.
    pub task: WireTaskId,
    /// The task that undoes it, if it needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_task: Option<WireTaskId>,
    /// What happens now, in one sentence.
    pub text: String,
}

/// The evidence of a landed task, in its own versioned shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CertificateJson {
    /// Whose.
    pub task: WireTaskId,
    /// The certificate.
    pub certificate: serde_json::Value,
}

/// What to report about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ReportOf {
    /// A task.
    Task(WireTaskId),
    /// A run.
    Run(WireRunId),
    /// The newest run.
    LastRun,
}

/// Asks for a report; about the newest run, if nothing is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ReportAsked {
    /// About this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<WireTaskId>,
    /// About this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<WireRunId>,
}

impl From<ReportOf> for ReportAsked {
    fn from(of: ReportOf) -> Self {
        match of {
            ReportOf::Task(task) => Self { task: Some(task), run: None },
            ReportOf::Run(run) => Self { task: None, run: Some(run) },
            ReportOf::LastRun => Self::default(),
        }
    }
}

/// A report for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// What it is about.
    pub of: ReportOf,
    /// The report.
    pub markdown: String,
    /// The figures it is written from, of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Box<RunReport>>,
}

/// Asks for tasks as files.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Export {
    /// Which; all of them, if empty.
    pub tasks: Vec<WireTaskId>,
}

/// Tasks as files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Exported {
    /// One each.
    pub files: Vec<ExportedFile>,
}

/// A task as a file that `add -f` reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExportedFile {
    /// A file name without folders, such as `T7-fix-the-parser.md`.
    pub name: String,
    /// What is in it.
    pub text: String,
}

impl WaitFor {
    /// Whether only a person ends it.
    #[must_use]
    pub fn is_yours(self) -> bool {
        match self {
            Self::Question | Self::Login | Self::Disk | Self::Pause | Self::Conflict | Self::GateBroken => {
                true
            }
            Self::Dependency
            | Self::Slot
            | Self::Quota
            | Self::Budget
            | Self::SubIssues
            | Self::Blockers
            | Self::Backoff => false,
        }
    }
}

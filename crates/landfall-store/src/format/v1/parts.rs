//! The parts that several bodies share: words, specs, flows, reports, and their conversions both ways.

use std::collections::BTreeMap;

use landfall_model as model;
use landfall_model::{Commit, Digest, StepName, TaskId, Timestamp, Tree};
use serde::{Deserialize, Serialize};

use super::issue::Act;
use super::staged::{Checkpoint, Dimension, Tuning};
use crate::format::text::Text;

/// An enum of plain words. The words are the format's own: the model may rename its variants freely.
macro_rules! words {
    ($name:ident = $model:ty { $($variant:ident = $word:literal),+ $(,)? }) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub(super) enum $name {
            $(#[serde(rename = $word)] $variant),+
        }

        impl From<$model> for $name {
            fn from(it: $model) -> Self {
                match it {
                    $(<$model>::$variant => Self::$variant),+
                }
            }
        }

        impl From<$name> for $model {
            fn from(it: $name) -> Self {
                match it {
                    $($name::$variant => Self::$variant),+
                }
            }
        }
    };
}

pub(super) use words;

words!(Size = model::Size { XS = "XS", S = "S", M = "M", L = "L", XL = "XL" });
words!(StepResult = model::StepResult {
    Done = "done",
    Blocked = "blocked",
    MidExec = "mid-exec",
    Pass = "pass",
    Fail = "fail",
    Conflict = "conflict",
    Landed = "landed",
    Red = "red",
    Answered = "answered",
    Approved = "approved",
    Changes = "changes",
    CheckPass = "PASS",
    NeedsRevision = "NEEDS_REVISION",
    Accept = "ACCEPT",
    NeedsFix = "NEEDS_FIX",
    Replan = "REPLAN",
    Continue = "CONTINUE",
    CheckBlocked = "BLOCKED",
    Satisfied = "satisfied",
    Rollback = "rollback",
    Triage = "triage",
    Spec = "spec",
    Code = "code",
    Offered = "offered",
    Split = "split",
    Patch = "patch",
    Pr = "pr",
    Partial = "partial",
});
words!(Opening = model::Opening {
    Workspace = "workspace",
    FreshWorkspace = "fresh-workspace",
    Check = "check",
    Land = "land",
    Queue = "queue",
    Report = "report",
    Exchange = "exchange",
    Recover = "recover",
});
words!(Outcome = model::gate::Outcome {
    Pass = "pass",
    Flaky = "flaky",
    PreExisting = "pre-existing",
    Fail = "fail",
    Timeout = "timeout",
    Broken = "broken",
});
words!(MutationOutcome = model::gaming::MutationOutcome {
    Caught = "caught",
    Survived = "survived",
    Unbuilt = "unbuilt",
});
words!(ConcernCode = model::ConcernCode {
    ProtectedPath = "protected-path",
    TestDeleted = "test-deleted",
    TestSkipped = "test-skipped",
    TestRemoved = "test-removed",
    FewerTests = "fewer-tests",
    ProtectedInput = "protected-input",
    EmptyTest = "empty-test",
    RunnerPatched = "runner-patched",
    BaseTestFails = "base-test-fails",
    ReviewAsked = "review-asked",
    Disputed = "disputed",
});
words!(Severity = model::review::Severity {
    Info = "info",
    Minor = "minor",
    Major = "major",
    Blocker = "blocker",
});
words!(EndKind = model::EndKind {
    Done = "done",
    Failed = "failed",
    Timeout = "timeout",
    Blocked = "blocked",
    Cancelled = "cancelled",
});
words!(EndCode = model::EndCode {
    Landed = "landed",
    Accepted = "accepted",
    MaxIterations = "max_iterations",
    TaskLimit = "task_limit",
    AgentBlocked = "agent_blocked",
    AgentCrashed = "agent_crashed",
    AgentLost = "agent_lost",
    AgentNotStarted = "agent_not_started",
    StallLimit = "stall_limit",
    TransientLimit = "transient_limit",
    ReasoningLoop = "reasoning_loop",
    Budget = "budget",
    ContextBudget = "context_budget",
    NothingChanged = "nothing_changed",
    EdgeLimit = "edge_limit",
    FlowStop = "flow_stop",
    ConflictLimit = "conflict_limit",
    LandingMismatch = "landing_mismatch",
    Machine = "machine",
    UnsupportedStep = "unsupported_step",
    Rejected = "rejected",
    Person = "person",
    EmptyTarget = "empty_target",
    CheckBlocked = "check_blocked",
    CheckFailed = "check_failed",
    DirectionsUsedUp = "directions_used_up",
    AcceptanceFailed = "acceptance_failed",
    PartsFailed = "parts_failed",
    Tracker = "tracker",
    RecoveryFailed = "recovery_failed",
    OutputMissing = "output_missing",
});
words!(Parting = model::Parting {
    Drained = "drained",
    Stopped = "stopped",
    Crashed = "crashed",
    Lost = "lost",
    Stalled = "stalled",
    NotStarted = "not-started",
    Quota = "quota",
    Transient = "transient",
    Asked = "asked",
    GateBroken = "gate-broken",
    NothingChanged = "nothing-changed",
    Machine = "machine",
    Budget = "budget",
    Overspent = "overspent",
    Login = "login",
    Looping = "looping",
    SessionGone = "session-gone",
    OutputMissing = "output-missing",
    Redirected = "redirected",
    Held = "held",
    Recovered = "recovered",
    NotYet = "not-yet",
    Shortage = "shortage",
});
words!(RunEnd = model::RunEnd {
    NothingLeft = "nothing-left",
    Drained = "drained",
    Interrupted = "interrupted",
    Paused = "paused",
    Goal = "goal",
    OneDone = "one-done",
    Spent = "spent",
    Lost = "lost",
});
words!(Scope = model::Scope { Attempt = "attempt", Task = "task", Run = "run", Day = "day" });
words!(Style = model::Style { Fresh = "fresh", Session = "session", Own = "self", Dispatch = "dispatch" });
words!(Overdue = model::conflict::Overdue {
    Defer = "defer",
    Skip = "skip",
    Retry = "retry",
    Notify = "notify",
});
words!(ReviewMode = model::review::ReviewMode {
    Skip = "skip",
    AutoApprove = "auto-approve",
    Batch = "batch",
    PerTask = "per-task",
});
words!(ReviewDecision = model::sprint::ReviewDecision {
    Approved = "approved",
    Redo = "redo",
    Rejected = "rejected",
    Deferred = "deferred",
    Skipped = "skipped",
});

#[derive(Serialize, Deserialize)]
pub(super) struct Spec<'a> {
    #[serde(borrow)]
    title: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "Text::is_empty")]
    body: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    criteria: Vec<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<Size>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<Text<'a>>,
    priority: u8,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    needs: Vec<u32>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    touches: Vec<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<u32>,
    #[serde(borrow)]
    source: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    flow: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    agent: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "is_false")]
    draft: bool,
}

impl<'a> From<&'a model::TaskSpec> for Spec<'a> {
    fn from(spec: &'a model::TaskSpec) -> Self {
        let model::TaskSpec {
            title,
            body,
            criteria,
            size,
            tags,
            priority,
            needs,
            touches,
            parent,
            source,
            flow,
            agent,
            draft,
        } = spec;
        Self {
            title: title.into(),
            body: body.into(),
            criteria: criteria.iter().map(Text::from).collect(),
            size: size.map(Size::from),
            tags: tags.iter().map(|tag| tag.as_str().into()).collect(),
            priority: *priority,
            needs: needs.iter().map(|need| need.0).collect(),
            touches: touches.iter().map(|touch| touch.as_str().into()).collect(),
            parent: parent.map(|parent| parent.0),
            source: source.into(),
            flow: flow.as_ref().map(Text::from),
            agent: agent.as_ref().map(Text::from),
            draft: *draft,
        }
    }
}

impl Spec<'_> {
    pub(super) fn model(self) -> Result<model::TaskSpec, String> {
        let tag = |text: Text<'_>| text.as_str().parse().map_err(|error: model::SpecError| error.to_string());
        let touch =
            |text: Text<'_>| text.as_str().parse().map_err(|error: model::SpecError| error.to_string());
        Ok(model::TaskSpec {
            title: self.title.into_string(),
            body: self.body.into_string(),
            criteria: strings(self.criteria),
            size: self.size.map(model::Size::from),
            tags: self.tags.into_iter().map(tag).collect::<Result<_, _>>()?,
            priority: self.priority,
            needs: self.needs.into_iter().map(TaskId).collect(),
            touches: self.touches.into_iter().map(touch).collect::<Result<_, _>>()?,
            parent: self.parent.map(TaskId),
            source: self.source.into_string(),
            flow: self.flow.map(Text::into_string),
            agent: self.agent.map(Text::into_string),
            draft: self.draft,
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Limits {
    iterations_max: u32,
    task_ms: u64,
    stuck_after: u32,
    restarts_max: u32,
    stalls_step_max: u32,
    stalls_total_max: u32,
    /// A limit that is not kept any more. Older versions do not read limits without it.
    #[serde(default = "transients_max")]
    transients_max: u32,
    conflicts_max: u32,
    #[serde(default = "loops_max")]
    loops_max: u32,
    #[serde(default = "compact_percent")]
    compact_percent: u32,
    #[serde(default)]
    attempt_budget: Budget,
    #[serde(default)]
    task_budget: Budget,
    #[serde(default = "conflict_ms", skip_serializing_if = "is_conflict_ms")]
    conflict_ms: u64,
    #[serde(default = "overdue", skip_serializing_if = "is_overdue")]
    overdue: Overdue,
    #[serde(default, skip_serializing_if = "ReviewRule::is_silent")]
    review: ReviewRule,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tuning: Option<Tuning>,
}

// What a journal means that says nothing of these is settled for good, whatever the model's own defaults become.

fn conflict_ms() -> u64 {
    60 * 60 * 1000
}

fn is_conflict_ms(ms: &u64) -> bool {
    *ms == conflict_ms()
}

fn overdue() -> Overdue {
    Overdue::Defer
}

fn is_overdue(action: &Overdue) -> bool {
    *action == overdue()
}

#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct ReviewRule {
    mode: ReviewMode,
    iterations_max: u32,
    #[serde(default, skip_serializing_if = "is_false")]
    after: bool,
}

impl Default for ReviewRule {
    fn default() -> Self {
        Self { mode: ReviewMode::Skip, iterations_max: 3, after: false }
    }
}

impl ReviewRule {
    fn is_silent(&self) -> bool {
        *self == Self::default()
    }
}

impl From<model::review::ReviewRule> for ReviewRule {
    fn from(rule: model::review::ReviewRule) -> Self {
        let model::review::ReviewRule { mode, iterations_max, after } = rule;
        Self { mode: mode.into(), iterations_max, after }
    }
}

impl From<ReviewRule> for model::review::ReviewRule {
    fn from(rule: ReviewRule) -> Self {
        let ReviewRule { mode, iterations_max, after } = rule;
        Self { mode: mode.into(), iterations_max, after }
    }
}

fn loops_max() -> u32 {
    model::TaskLimits::default().loops_max
}

fn compact_percent() -> u32 {
    model::TaskLimits::default().compact_percent
}

#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
pub(super) struct Budget {
    #[serde(skip_serializing_if = "Option::is_none")]
    micro_usd: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_ms: Option<u64>,
}

impl From<model::Budget> for Budget {
    fn from(budget: model::Budget) -> Self {
        let model::Budget { micro_usd, tokens, turns, time_ms } = budget;
        Self { micro_usd, tokens, turns, time_ms }
    }
}

impl From<Budget> for model::Budget {
    fn from(budget: Budget) -> Self {
        let Budget { micro_usd, tokens, turns, time_ms } = budget;
        Self { micro_usd, tokens, turns, time_ms }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Stride<'a> {
    #[serde(borrow)]
    step: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "Text::is_empty")]
    result: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "Text::is_empty")]
    next: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "Text::is_empty")]
    checkpoint: Text<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    iteration: Option<u32>,
    #[serde(default, skip_serializing_if = "is_zero")]
    compactions: u32,
    #[serde(borrow)]
    mark: Text<'a>,
}

impl<'a> From<&'a model::Stride> for Stride<'a> {
    fn from(stride: &'a model::Stride) -> Self {
        let model::Stride { step, result, next, checkpoint, iteration, compactions, mark } = stride;
        Self {
            step: step.into(),
            result: result.into(),
            next: next.into(),
            checkpoint: checkpoint.into(),
            iteration: *iteration,
            compactions: *compactions,
            mark: mark.into(),
        }
    }
}

impl From<Stride<'_>> for model::Stride {
    fn from(stride: Stride<'_>) -> Self {
        let Stride { step, result, next, checkpoint, iteration, compactions, mark } = stride;
        Self {
            step: step.into_string(),
            result: result.into_string(),
            next: next.into_string(),
            checkpoint: checkpoint.into_string(),
            iteration,
            compactions,
            mark: mark.into_string(),
        }
    }
}

#[derive(Serialize, Deserialize, Default)]
pub(super) struct Driving<'a> {
    #[serde(borrow)]
    profile: Text<'a>,
    #[serde(borrow)]
    account: Text<'a>,
    style: Style,
}

impl Default for Style {
    fn default() -> Self {
        model::Style::default().into()
    }
}

impl<'a> From<&'a model::Driving> for Driving<'a> {
    fn from(driving: &'a model::Driving) -> Self {
        let model::Driving { profile, account, style } = driving;
        Self { profile: profile.into(), account: account.into(), style: (*style).into() }
    }
}

impl From<Driving<'_>> for model::Driving {
    fn from(driving: Driving<'_>) -> Self {
        let Driving { profile, account, style } = driving;
        Self { profile: profile.into_string(), account: account.into_string(), style: style.into() }
    }
}

#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Talk<'a> {
    #[default]
    New,
    Resumed {
        #[serde(borrow)]
        session: Text<'a>,
        compact: bool,
    },
}

impl Talk<'_> {
    pub(super) fn is_new(&self) -> bool {
        matches!(self, Self::New)
    }
}

impl<'a> From<&'a model::Talk> for Talk<'a> {
    fn from(talk: &'a model::Talk) -> Self {
        match talk {
            model::Talk::New => Self::New,
            model::Talk::Resumed { session, compact } => {
                Self::Resumed { session: session.into(), compact: *compact }
            }
        }
    }
}

impl From<Talk<'_>> for model::Talk {
    fn from(talk: Talk<'_>) -> Self {
        match talk {
            Talk::New => Self::New,
            Talk::Resumed { session, compact } => Self::Resumed { session: session.into_string(), compact },
        }
    }
}

#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
pub(super) struct Traces<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    session: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    model: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Context>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    words: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    sandbox: Option<Text<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    denials: u32,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    revision: Option<Text<'a>>,
    #[serde(skip_serializing_if = "is_none")]
    quiet_ms: u64,
}

fn is_none(number: &u64) -> bool {
    *number == 0
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Serialize, Deserialize)]
pub(super) struct Context {
    used: u64,
    size: u64,
}

impl<'a> From<&'a model::Traces> for Traces<'a> {
    fn from(traces: &'a model::Traces) -> Self {
        let model::Traces { session, model, context, words, sandbox, denials, revision, quiet_ms } = traces;
        Self {
            session: session.as_ref().map(Into::into),
            model: model.as_ref().map(Into::into),
            context: context.map(|it| Context { used: it.used, size: it.size }),
            words: words.as_ref().map(|words| words.as_str().into()),
            sandbox: sandbox.as_ref().map(Into::into),
            denials: *denials,
            revision: revision.as_ref().map(|revision| revision.as_str().into()),
            quiet_ms: *quiet_ms,
        }
    }
}

impl From<Traces<'_>> for model::Traces {
    fn from(traces: Traces<'_>) -> Self {
        let Traces { session, model, context, words, sandbox, denials, revision, quiet_ms } = traces;
        Self {
            session: session.map(Text::into_string),
            model: model.map(Text::into_string),
            context: context.map(|it| model::Context { used: it.used, size: it.size }),
            words: words.map(|words| model::Digest::new(words.as_str())),
            sandbox: sandbox.map(Text::into_string),
            denials,
            revision: revision.map(|revision| model::Digest::new(revision.as_str())),
            quiet_ms,
        }
    }
}

/// Before the tries of an account were counted, a trouble was noted after the second of a task.
fn tries() -> u32 {
    2
}

fn is_first_trouble(tries: &u32) -> bool {
    *tries == self::tries()
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AccountState {
    Open,
    UsedUp {
        until: i64,
        #[serde(default, skip_serializing_if = "is_false")]
        guessed: bool,
    },
    Troubled {
        until: i64,
        #[serde(default = "tries", skip_serializing_if = "is_first_trouble")]
        tries: u32,
    },
    LoggedOut {
        task: u32,
    },
}

impl From<&model::AccountState> for AccountState {
    fn from(state: &model::AccountState) -> Self {
        match state {
            model::AccountState::Open => Self::Open,
            model::AccountState::UsedUp { until, guessed } => {
                Self::UsedUp { until: until.0, guessed: *guessed }
            }
            model::AccountState::Troubled { until, tries } => {
                Self::Troubled { until: until.0, tries: *tries }
            }
            model::AccountState::LoggedOut { task } => Self::LoggedOut { task: task.0 },
        }
    }
}

impl From<AccountState> for model::AccountState {
    fn from(state: AccountState) -> Self {
        match state {
            AccountState::Open => Self::Open,
            AccountState::UsedUp { until, guessed } => Self::UsedUp { until: Timestamp(until), guessed },
            AccountState::Troubled { until, tries } => Self::Troubled { until: Timestamp(until), tries },
            AccountState::LoggedOut { task } => Self::LoggedOut { task: TaskId(task) },
        }
    }
}

/// What it usually was.
fn transients_max() -> u32 {
    20
}

impl From<&model::TaskLimits> for Limits {
    fn from(limits: &model::TaskLimits) -> Self {
        let model::TaskLimits {
            iterations_max,
            task_ms,
            stuck_after,
            restarts_max,
            stalls_step_max,
            stalls_total_max,
            conflicts_max,
            conflict_ms,
            overdue,
            review,
            loops_max,
            compact_percent,
            attempt_budget,
            task_budget,
            tuning,
        } = limits.clone();
        Self {
            iterations_max,
            task_ms,
            stuck_after,
            restarts_max,
            stalls_step_max,
            stalls_total_max,
            transients_max: transients_max(),
            conflicts_max,
            loops_max,
            compact_percent,
            attempt_budget: attempt_budget.into(),
            task_budget: task_budget.into(),
            conflict_ms,
            overdue: overdue.into(),
            review: review.into(),
            tuning: tuning.map(Tuning::from),
        }
    }
}

impl From<Limits> for model::TaskLimits {
    fn from(limits: Limits) -> Self {
        let Limits {
            iterations_max,
            task_ms,
            stuck_after,
            restarts_max,
            stalls_step_max,
            stalls_total_max,
            transients_max: _,
            conflicts_max,
            loops_max,
            compact_percent,
            attempt_budget,
            task_budget,
            conflict_ms,
            overdue,
            review,
            tuning,
        } = limits;
        Self {
            iterations_max,
            task_ms,
            stuck_after,
            restarts_max,
            stalls_step_max,
            stalls_total_max,
            conflicts_max,
            loops_max,
            compact_percent,
            attempt_budget: attempt_budget.into(),
            task_budget: task_budget.into(),
            conflict_ms,
            overdue: overdue.into(),
            review: review.into(),
            tuning: tuning.map(model::tune::Params::from),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Flow<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    about: Text<'a>,
    #[serde(borrow)]
    entry: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "BTreeMap::is_empty")]
    entries: BTreeMap<Text<'a>, Text<'a>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    commands: BTreeMap<String, BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    style: Option<Style>,
    #[serde(borrow)]
    steps: Vec<Step<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Step<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    kind: StepKind<'a>,
    #[serde(borrow)]
    phase: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    before: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    agent: Option<Text<'a>>,
    #[serde(borrow)]
    on: Vec<Edge<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Edge<'a> {
    result: StepResult,
    #[serde(borrow)]
    to: Target<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Target<'a> {
    #[serde(borrow)]
    Step(Text<'a>),
    End,
    Stop,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StepKind<'a> {
    Agent {
        #[serde(borrow)]
        prompt: Text<'a>,
        #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
        output: Vec<Text<'a>>,
        iterate: bool,
        #[serde(default, skip_serializing_if = "is_zero")]
        every: u32,
    },
    Verify,
    Check {
        checkpoint: Checkpoint,
        threshold: u32,
    },
    Review,
    Land,
    Report,
    Ask {
        #[serde(borrow)]
        question: Text<'a>,
    },
    Split,
    Tracker {
        act: Act,
    },
    Target,
    Converge,
}

impl<'a> From<&'a model::Flow> for Flow<'a> {
    fn from(flow: &'a model::Flow) -> Self {
        let model::Flow { name, about, entry, entries, commands, style, steps } = flow;
        let texts = |by: &BTreeMap<String, StepName>| {
            by.iter().map(|(phase, step)| (phase.clone(), step.as_str().to_owned())).collect()
        };
        Self {
            name: name.into(),
            about: about.into(),
            entry: entry.as_str().into(),
            entries: entries.iter().map(|(phase, step)| (phase.into(), step.as_str().into())).collect(),
            commands: commands.iter().map(|(command, by)| (command.clone(), texts(by))).collect(),
            style: style.map(Into::into),
            steps: steps.iter().map(Step::from).collect(),
        }
    }
}

impl From<Flow<'_>> for model::Flow {
    fn from(flow: Flow<'_>) -> Self {
        let Flow { name, about, entry, entries, commands, style, steps } = flow;
        let steps_of = |by: BTreeMap<String, String>| {
            by.into_iter().map(|(phase, step)| (phase, StepName::new(&step))).collect()
        };
        Self {
            name: name.into_string(),
            about: about.into_string(),
            entry: StepName::new(entry.as_str()),
            entries: entries
                .into_iter()
                .map(|(phase, step)| (phase.into_string(), StepName::new(step.as_str())))
                .collect(),
            commands: commands.into_iter().map(|(command, by)| (command, steps_of(by))).collect(),
            style: style.map(Into::into),
            steps: steps.into_iter().map(model::Step::from).collect(),
        }
    }
}

impl<'a> From<&'a model::Step> for Step<'a> {
    fn from(step: &'a model::Step) -> Self {
        let model::Step { name, kind, phase, before, agent, on } = step;
        Self {
            name: name.as_str().into(),
            kind: kind.into(),
            phase: phase.into(),
            before: before.as_ref().map(Text::from),
            agent: agent.as_ref().map(Text::from),
            on: on.iter().map(Edge::from).collect(),
        }
    }
}

impl From<Step<'_>> for model::Step {
    fn from(step: Step<'_>) -> Self {
        let Step { name, kind, phase, before, agent, on } = step;
        Self {
            name: StepName::new(name.as_str()),
            kind: kind.into(),
            phase: phase.into_string(),
            before: before.map(Text::into_string),
            agent: agent.map(Text::into_string),
            on: on.into_iter().map(model::flow::Edge::from).collect(),
        }
    }
}

impl<'a> From<&'a model::flow::Edge> for Edge<'a> {
    fn from(edge: &'a model::flow::Edge) -> Self {
        let model::flow::Edge { result, to, max } = edge;
        Self { result: (*result).into(), to: to.into(), max: *max }
    }
}

impl From<Edge<'_>> for model::flow::Edge {
    fn from(edge: Edge<'_>) -> Self {
        let Edge { result, to, max } = edge;
        Self { result: result.into(), to: to.into(), max }
    }
}

impl<'a> From<&'a model::Target> for Target<'a> {
    fn from(target: &'a model::Target) -> Self {
        match target {
            model::Target::Step(name) => Self::Step(name.as_str().into()),
            model::Target::End => Self::End,
            model::Target::Stop => Self::Stop,
        }
    }
}

impl From<Target<'_>> for model::Target {
    fn from(target: Target<'_>) -> Self {
        match target {
            Target::Step(name) => Self::Step(StepName::new(name.as_str())),
            Target::End => Self::End,
            Target::Stop => Self::Stop,
        }
    }
}

impl<'a> From<&'a model::StepKind> for StepKind<'a> {
    fn from(kind: &'a model::StepKind) -> Self {
        match kind {
            model::StepKind::Agent { prompt, output, iterate, every } => Self::Agent {
                prompt: prompt.into(),
                output: output.iter().map(Text::from).collect(),
                iterate: *iterate,
                every: *every,
            },
            model::StepKind::Verify => Self::Verify,
            model::StepKind::Check { checkpoint, threshold } => {
                Self::Check { checkpoint: (*checkpoint).into(), threshold: *threshold }
            }
            model::StepKind::Review => Self::Review,
            model::StepKind::Land => Self::Land,
            model::StepKind::Report => Self::Report,
            model::StepKind::Ask { question } => Self::Ask { question: question.into() },
            model::StepKind::Split => Self::Split,
            model::StepKind::Tracker { act } => Self::Tracker { act: (*act).into() },
            model::StepKind::Target => Self::Target,
            model::StepKind::Converge => Self::Converge,
        }
    }
}

impl From<StepKind<'_>> for model::StepKind {
    fn from(kind: StepKind<'_>) -> Self {
        match kind {
            StepKind::Agent { prompt, output, iterate, every } => {
                Self::Agent { prompt: prompt.into_string(), output: strings(output), iterate, every }
            }
            StepKind::Verify => Self::Verify,
            StepKind::Check { checkpoint, threshold } => {
                Self::Check { checkpoint: checkpoint.into(), threshold }
            }
            StepKind::Review => Self::Review,
            StepKind::Land => Self::Land,
            StepKind::Report => Self::Report,
            StepKind::Ask { question } => Self::Ask { question: question.into_string() },
            StepKind::Split => Self::Split,
            StepKind::Tracker { act } => Self::Tracker { act: act.into() },
            StepKind::Target => Self::Target,
            StepKind::Converge => Self::Converge,
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Report<'a> {
    #[serde(borrow)]
    base: Text<'a>,
    #[serde(borrow)]
    head: Text<'a>,
    #[serde(borrow)]
    commit: Text<'a>,
    #[serde(borrow)]
    tree: Text<'a>,
    #[serde(borrow)]
    config: Text<'a>,
    #[serde(borrow)]
    environment: Text<'a>,
    #[serde(borrow)]
    commands: Vec<Command<'a>>,
    took_ms: u64,
    #[serde(default, skip_serializing_if = "is_false")]
    reused: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sandbox: Option<SandboxLevel>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SandboxLevel {
    Off,
    Write,
    Isolated,
    Strict,
}

impl From<model::sandbox::Confinement> for SandboxLevel {
    fn from(level: model::sandbox::Confinement) -> Self {
        match level {
            model::sandbox::Confinement::Off => Self::Off,
            model::sandbox::Confinement::Write => Self::Write,
            model::sandbox::Confinement::Isolated => Self::Isolated,
            model::sandbox::Confinement::Strict => Self::Strict,
        }
    }
}

impl From<SandboxLevel> for model::sandbox::Confinement {
    fn from(level: SandboxLevel) -> Self {
        match level {
            SandboxLevel::Off => Self::Off,
            SandboxLevel::Write => Self::Write,
            SandboxLevel::Isolated => Self::Isolated,
            SandboxLevel::Strict => Self::Strict,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Command<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    command: Text<'a>,
    required: bool,
    outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
    took_ms: u64,
    limit_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tests: Option<u64>,
    #[serde(borrow, default, skip_serializing_if = "Text::is_empty")]
    excerpt: Text<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    caps: Option<Dimension>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    denied: Vec<DeniedBody<'a>>,
}

#[derive(Serialize, Deserialize)]
struct DeniedBody<'a> {
    access: AccessBody,
    #[serde(borrow)]
    path: Text<'a>,
    #[serde(borrow)]
    allow: Text<'a>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AccessBody {
    Read,
    Write,
}

impl<'a> From<&'a model::denial::SandboxDenial> for DeniedBody<'a> {
    fn from(denial: &'a model::denial::SandboxDenial) -> Self {
        let model::denial::SandboxDenial { access, path, allow } = denial;
        let access = match access {
            model::denial::DeniedAccess::Read => AccessBody::Read,
            model::denial::DeniedAccess::Write => AccessBody::Write,
        };
        Self { access, path: path.into(), allow: allow.into() }
    }
}

impl From<DeniedBody<'_>> for model::denial::SandboxDenial {
    fn from(denied: DeniedBody<'_>) -> Self {
        let access = match denied.access {
            AccessBody::Read => model::denial::DeniedAccess::Read,
            AccessBody::Write => model::denial::DeniedAccess::Write,
        };
        Self { access, path: denied.path.into_string(), allow: denied.allow.into_string() }
    }
}

impl<'a> From<&'a model::gate::GateReport> for Report<'a> {
    fn from(report: &'a model::gate::GateReport) -> Self {
        let model::gate::GateReport {
            base,
            head,
            commit,
            tree,
            config,
            environment,
            commands,
            took_ms,
            reused,
            required,
            sandbox,
        } = report;
        Self {
            base: base.as_str().into(),
            head: head.as_str().into(),
            commit: commit.as_str().into(),
            tree: tree.as_str().into(),
            config: config.as_str().into(),
            environment: environment.as_str().into(),
            commands: commands.iter().map(Command::from).collect(),
            took_ms: *took_ms,
            reused: *reused,
            required: *required,
            sandbox: sandbox.map(SandboxLevel::from),
        }
    }
}

impl From<Report<'_>> for model::gate::GateReport {
    fn from(report: Report<'_>) -> Self {
        let Report { base, head, commit, tree, config, environment, commands, .. } = report;
        let Report { took_ms, reused, required, sandbox, .. } = report;
        Self {
            base: Commit::new(base.as_str()),
            head: Commit::new(head.as_str()),
            commit: Commit::new(commit.as_str()),
            tree: Tree::new(tree.as_str()),
            config: Digest::new(config.as_str()),
            environment: Digest::new(environment.as_str()),
            commands: commands.into_iter().map(model::gate::CommandResult::from).collect(),
            took_ms,
            reused,
            required,
            sandbox: sandbox.map(model::sandbox::Confinement::from),
        }
    }
}

impl<'a> From<&'a model::gate::CommandResult> for Command<'a> {
    fn from(result: &'a model::gate::CommandResult) -> Self {
        let model::gate::CommandResult {
            name,
            command,
            required,
            outcome,
            exit,
            took_ms,
            limit_ms,
            tests,
            excerpt,
            caps,
            denied,
            copied_from_base: _, // no command is copied yet
        } = result;
        Self {
            name: name.into(),
            command: command.into(),
            required: *required,
            outcome: (*outcome).into(),
            exit: *exit,
            took_ms: *took_ms,
            limit_ms: *limit_ms,
            tests: *tests,
            excerpt: excerpt.into(),
            caps: caps.map(Dimension::from),
            denied: denied.iter().map(DeniedBody::from).collect(),
        }
    }
}

impl From<Command<'_>> for model::gate::CommandResult {
    fn from(result: Command<'_>) -> Self {
        let Command { name, command, required, outcome, exit, took_ms, limit_ms, .. } = result;
        let Command { tests, excerpt, caps, denied, .. } = result;
        Self {
            name: name.into_string(),
            command: command.into_string(),
            required,
            outcome: outcome.into(),
            exit,
            took_ms,
            limit_ms,
            tests,
            excerpt: excerpt.into_string(),
            caps: caps.map(model::score::Dimension::from),
            denied: denied.into_iter().map(model::denial::SandboxDenial::from).collect(),
            copied_from_base: false,
        }
    }
}

fn is_nothing(number: &u64) -> bool {
    *number == 0
}

#[derive(Serialize, Deserialize)]
pub(super) struct Usage {
    tokens_in: u64,
    tokens_cached: u64,
    tokens_out: u64,
    turns: u64,
    micro_usd: u64,
    micro_usd_priced: u64,
    #[serde(default, skip_serializing_if = "is_nothing")]
    tokens_unpriced: u64,
    #[serde(default, skip_serializing_if = "is_false")]
    at_least: bool,
}

impl From<model::Usage> for Usage {
    fn from(usage: model::Usage) -> Self {
        let model::Usage {
            tokens_in,
            tokens_cached,
            tokens_out,
            turns,
            micro_usd,
            micro_usd_priced,
            tokens_unpriced,
            at_least,
        } = usage;
        Self {
            tokens_in,
            tokens_cached,
            tokens_out,
            turns,
            micro_usd,
            micro_usd_priced,
            tokens_unpriced,
            at_least,
        }
    }
}

impl From<Usage> for model::Usage {
    fn from(usage: Usage) -> Self {
        let Usage {
            tokens_in,
            tokens_cached,
            tokens_out,
            turns,
            micro_usd,
            micro_usd_priced,
            tokens_unpriced,
            at_least,
        } = usage;
        Self {
            tokens_in,
            tokens_cached,
            tokens_out,
            turns,
            micro_usd,
            micro_usd_priced,
            tokens_unpriced,
            at_least,
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Feedback<'a> {
    #[serde(borrow)]
    about: Text<'a>,
    #[serde(borrow)]
    text: Text<'a>,
}

impl<'a> From<&'a model::Feedback> for Feedback<'a> {
    fn from(feedback: &'a model::Feedback) -> Self {
        let model::Feedback { about, text } = feedback;
        Self { about: about.into(), text: text.into() }
    }
}

impl From<Feedback<'_>> for model::Feedback {
    fn from(feedback: Feedback<'_>) -> Self {
        Self { about: feedback.about.into_string(), text: feedback.text.into_string() }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Finding<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    severity: Severity,
    #[serde(borrow)]
    title: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "Text::is_empty")]
    detail: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "Text::is_empty")]
    place: Text<'a>,
    #[serde(default, skip_serializing_if = "is_false")]
    resolved: bool,
}

impl<'a> From<&'a model::review::Finding> for Finding<'a> {
    fn from(finding: &'a model::review::Finding) -> Self {
        let model::review::Finding { id, severity, title, detail, place, resolved } = finding;
        Self {
            id: id.into(),
            severity: (*severity).into(),
            title: title.into(),
            detail: detail.into(),
            place: place.into(),
            resolved: *resolved,
        }
    }
}

impl From<Finding<'_>> for model::review::Finding {
    fn from(finding: Finding<'_>) -> Self {
        Self {
            id: finding.id.into_string(),
            severity: finding.severity.into(),
            title: finding.title.into_string(),
            detail: finding.detail.into_string(),
            place: finding.place.into_string(),
            resolved: finding.resolved,
        }
    }
}

/// What is known of the tests of a change. Fields that are nothing are left out.
#[derive(Serialize, Deserialize)]
pub(super) struct TestEvidence<'a> {
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    protected: Vec<ProtectedChange<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    base_tests: Option<BaseTestRun<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tests_run_on_base: Option<u64>,
    /// Tests before and after, assertions before and after.
    #[serde(default)]
    counts: [u64; 4],
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    mutations: Option<MutationRun<'a>>,
}

#[derive(Serialize, Deserialize)]
struct MutationRun<'a> {
    #[serde(borrow)]
    tests: Vec<Text<'a>>,
    #[serde(borrow)]
    trials: Vec<MutationTrial<'a>>,
    took_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct MutationTrial<'a> {
    #[serde(borrow)]
    path: Text<'a>,
    line: u64,
    #[serde(borrow)]
    before: Text<'a>,
    #[serde(borrow)]
    after: Text<'a>,
    outcome: MutationOutcome,
}

#[derive(Serialize, Deserialize)]
struct ProtectedChange<'a> {
    #[serde(borrow)]
    path: Text<'a>,
    #[serde(borrow)]
    used_by: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    lines: Vec<Text<'a>>,
}

#[derive(Serialize, Deserialize)]
struct BaseTestRun<'a> {
    #[serde(borrow)]
    files: Vec<Text<'a>>,
    outcome: Outcome,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    failing: Vec<Text<'a>>,
    took_ms: u64,
}

impl<'a> From<&'a model::gaming::TestEvidence> for TestEvidence<'a> {
    fn from(evidence: &'a model::gaming::TestEvidence) -> Self {
        let model::gaming::TestEvidence { protected, base_tests, tests_run_on_base, counts, mutations } =
            evidence;
        let model::gaming::TestCounts { tests_before, tests_after, assertions_before, assertions_after } =
            counts;
        let texts = |texts: &'a [String]| texts.iter().map(|text| text.as_str().into()).collect();
        let change = |change: &'a model::gaming::ProtectedChange| ProtectedChange {
            path: change.path.as_str().into(),
            used_by: change.used_by.as_str().into(),
            lines: texts(&change.lines),
        };
        let run = |run: &'a model::gaming::BaseTestRun| BaseTestRun {
            files: texts(&run.files),
            outcome: run.outcome.into(),
            failing: texts(&run.failing),
            took_ms: run.took_ms,
        };
        let trial = |trial: &'a model::gaming::MutationTrial| MutationTrial {
            path: trial.path.as_str().into(),
            line: trial.line,
            before: trial.before.as_str().into(),
            after: trial.after.as_str().into(),
            outcome: trial.outcome.into(),
        };
        let mutation_run = |run: &'a model::gaming::MutationRun| MutationRun {
            tests: texts(&run.tests),
            trials: run.trials.iter().map(trial).collect(),
            took_ms: run.took_ms,
        };
        Self {
            protected: protected.iter().map(change).collect(),
            base_tests: base_tests.as_ref().map(run),
            tests_run_on_base: *tests_run_on_base,
            counts: [*tests_before, *tests_after, *assertions_before, *assertions_after],
            mutations: mutations.as_ref().map(mutation_run),
        }
    }
}

impl From<TestEvidence<'_>> for model::gaming::TestEvidence {
    fn from(evidence: TestEvidence<'_>) -> Self {
        let TestEvidence { protected, base_tests, tests_run_on_base, counts, mutations } = evidence;
        let [tests_before, tests_after, assertions_before, assertions_after] = counts;
        fn texts(texts: Vec<Text<'_>>) -> Vec<String> {
            texts.into_iter().map(Text::into_string).collect()
        }
        let change = |change: ProtectedChange<'_>| model::gaming::ProtectedChange {
            path: change.path.into_string(),
            used_by: change.used_by.into_string(),
            lines: texts(change.lines),
        };
        let run = |run: BaseTestRun<'_>| model::gaming::BaseTestRun {
            files: texts(run.files),
            outcome: run.outcome.into(),
            failing: texts(run.failing),
            took_ms: run.took_ms,
        };
        let trial = |trial: MutationTrial<'_>| model::gaming::MutationTrial {
            path: trial.path.into_string(),
            line: trial.line,
            before: trial.before.into_string(),
            after: trial.after.into_string(),
            outcome: trial.outcome.into(),
        };
        let mutation_run = |run: MutationRun<'_>| model::gaming::MutationRun {
            tests: texts(run.tests),
            trials: run.trials.into_iter().map(trial).collect(),
            took_ms: run.took_ms,
        };
        Self {
            protected: protected.into_iter().map(change).collect(),
            base_tests: base_tests.map(run),
            tests_run_on_base,
            counts: model::gaming::TestCounts {
                tests_before,
                tests_after,
                assertions_before,
                assertions_after,
            },
            mutations: mutations.map(mutation_run),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Concern<'a> {
    code: ConcernCode,
    #[serde(borrow)]
    detail: Text<'a>,
}

impl<'a> From<&'a model::Concern> for Concern<'a> {
    fn from(concern: &'a model::Concern) -> Self {
        let model::Concern { code, detail } = concern;
        Self { code: (*code).into(), detail: detail.into() }
    }
}

impl From<Concern<'_>> for model::Concern {
    fn from(concern: Concern<'_>) -> Self {
        Self { code: concern.code.into(), detail: concern.detail.into_string() }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Exit<'a> {
    Code(i32),
    Signal(i32),
    Deadline,
    Silent,
    Looping,
    OverBudget {
        scope: Scope,
        #[serde(borrow)]
        what: Text<'a>,
    },
    ContextUsedUp,
    Asked,
    NotStarted {
        #[serde(borrow)]
        detail: Text<'a>,
        hopeless: bool,
    },
    Lost,
}

impl<'a> From<&'a model::Exit> for Exit<'a> {
    fn from(exit: &'a model::Exit) -> Self {
        match exit {
            model::Exit::Code(code) => Self::Code(*code),
            model::Exit::Signal(signal) => Self::Signal(*signal),
            model::Exit::Deadline => Self::Deadline,
            model::Exit::Silent => Self::Silent,
            model::Exit::Looping => Self::Looping,
            model::Exit::OverBudget { scope, what } => {
                Self::OverBudget { scope: (*scope).into(), what: what.into() }
            }
            model::Exit::ContextUsedUp => Self::ContextUsedUp,
            model::Exit::Asked => Self::Asked,
            model::Exit::NotStarted { detail, hopeless } => {
                Self::NotStarted { detail: detail.into(), hopeless: *hopeless }
            }
            model::Exit::Lost => Self::Lost,
        }
    }
}

impl From<Exit<'_>> for model::Exit {
    fn from(exit: Exit<'_>) -> Self {
        match exit {
            Exit::Code(code) => Self::Code(code),
            Exit::Signal(signal) => Self::Signal(signal),
            Exit::Deadline => Self::Deadline,
            Exit::Silent => Self::Silent,
            Exit::Looping => Self::Looping,
            Exit::OverBudget { scope, what } => {
                Self::OverBudget { scope: scope.into(), what: what.into_string() }
            }
            Exit::ContextUsedUp => Self::ContextUsedUp,
            Exit::Asked => Self::Asked,
            Exit::NotStarted { detail, hopeless } => {
                Self::NotStarted { detail: detail.into_string(), hopeless }
            }
            Exit::Lost => Self::Lost,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict<'a> {
    Complete,
    Blocked {
        #[serde(borrow)]
        reason: Text<'a>,
    },
    Pending {
        #[serde(borrow)]
        question: Text<'a>,
    },
    Checkpoint {
        #[serde(borrow)]
        reason: Text<'a>,
    },
    Continue,
    Quota {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<i64>,
    },
    Transient {
        #[serde(borrow)]
        detail: Text<'a>,
    },
    Unauthorized {
        #[serde(borrow)]
        detail: Text<'a>,
    },
    SessionGone,
    Looping,
    OverBudget {
        scope: Scope,
        #[serde(borrow)]
        what: Text<'a>,
    },
    ContextUsedUp,
    Crashed {
        #[serde(borrow)]
        detail: Text<'a>,
    },
    OutOfTime,
    Stalled,
    Stopped,
    NotStarted {
        #[serde(borrow)]
        detail: Text<'a>,
        hopeless: bool,
    },
    Lost,
}

impl<'a> From<&'a model::Verdict> for Verdict<'a> {
    fn from(verdict: &'a model::Verdict) -> Self {
        match verdict {
            model::Verdict::Complete => Self::Complete,
            model::Verdict::Blocked { reason } => Self::Blocked { reason: reason.into() },
            model::Verdict::Pending { question } => Self::Pending { question: question.into() },
            model::Verdict::Checkpoint { reason } => Self::Checkpoint { reason: reason.into() },
            model::Verdict::Continue => Self::Continue,
            model::Verdict::Quota { until } => Self::Quota { until: until.map(|at| at.0) },
            model::Verdict::Transient { detail } => Self::Transient { detail: detail.into() },
            model::Verdict::Unauthorized { detail } => Self::Unauthorized { detail: detail.into() },
            model::Verdict::SessionGone => Self::SessionGone,
            model::Verdict::Looping => Self::Looping,
            model::Verdict::OverBudget { scope, what } => {
                Self::OverBudget { scope: (*scope).into(), what: what.into() }
            }
            model::Verdict::ContextUsedUp => Self::ContextUsedUp,
            model::Verdict::Crashed { detail } => Self::Crashed { detail: detail.into() },
            model::Verdict::OutOfTime => Self::OutOfTime,
            model::Verdict::Stalled => Self::Stalled,
            model::Verdict::Stopped => Self::Stopped,
            model::Verdict::NotStarted { detail, hopeless } => {
                Self::NotStarted { detail: detail.into(), hopeless: *hopeless }
            }
            model::Verdict::Lost => Self::Lost,
        }
    }
}

impl From<Verdict<'_>> for model::Verdict {
    fn from(verdict: Verdict<'_>) -> Self {
        match verdict {
            Verdict::Complete => Self::Complete,
            Verdict::Blocked { reason } => Self::Blocked { reason: reason.into_string() },
            Verdict::Pending { question } => Self::Pending { question: question.into_string() },
            Verdict::Checkpoint { reason } => Self::Checkpoint { reason: reason.into_string() },
            Verdict::Continue => Self::Continue,
            Verdict::Quota { until } => Self::Quota { until: until.map(Timestamp) },
            Verdict::Transient { detail } => Self::Transient { detail: detail.into_string() },
            Verdict::Unauthorized { detail } => Self::Unauthorized { detail: detail.into_string() },
            Verdict::SessionGone => Self::SessionGone,
            Verdict::Looping => Self::Looping,
            Verdict::OverBudget { scope, what } => {
                Self::OverBudget { scope: scope.into(), what: what.into_string() }
            }
            Verdict::ContextUsedUp => Self::ContextUsedUp,
            Verdict::Crashed { detail } => Self::Crashed { detail: detail.into_string() },
            Verdict::OutOfTime => Self::OutOfTime,
            Verdict::Stalled => Self::Stalled,
            Verdict::Stopped => Self::Stopped,
            Verdict::NotStarted { detail, hopeless } => {
                Self::NotStarted { detail: detail.into_string(), hopeless }
            }
            Verdict::Lost => Self::Lost,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Wait<'a> {
    Dependency(Vec<u32>),
    Slot,
    Quota {
        until: i64,
        #[serde(default, skip_serializing_if = "is_false")]
        guessed: bool,
    },
    Login {
        #[serde(borrow)]
        account: Text<'a>,
        #[serde(borrow)]
        detail: Text<'a>,
        asker: u32,
    },
    Budget {
        #[serde(borrow)]
        what: Text<'a>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<i64>,
    },
    Question {
        #[serde(borrow)]
        text: Text<'a>,
    },
    Backoff {
        until: i64,
        #[serde(borrow)]
        cause: Text<'a>,
    },
    Disk {
        #[serde(borrow)]
        detail: Text<'a>,
    },
    Pause,
    Parts,
    Blockers {
        by: Vec<String>,
    },
    Conflict {
        #[serde(borrow)]
        base: Text<'a>,
        #[serde(borrow)]
        files: Vec<Text<'a>>,
        until: i64,
        overdue: Overdue,
    },
    GateBroken {
        #[serde(borrow)]
        command: Text<'a>,
        #[serde(borrow)]
        detail: Text<'a>,
    },
}

impl<'a> From<&'a model::Wait> for Wait<'a> {
    fn from(wait: &'a model::Wait) -> Self {
        match wait {
            model::Wait::Dependency(needs) => Self::Dependency(needs.iter().map(|need| need.0).collect()),
            // Whose turn it is follows from who is at work; nobody waits for that in the journal.
            model::Wait::Slot | model::Wait::Turn(_) => Self::Slot,
            model::Wait::Quota { until, guessed } => Self::Quota { until: until.0, guessed: *guessed },
            model::Wait::Login { account, detail, asker } => {
                Self::Login { account: account.into(), detail: detail.into(), asker: asker.0 }
            }
            model::Wait::Budget { what, until } => {
                Self::Budget { what: what.into(), until: until.map(|at| at.0) }
            }
            model::Wait::Question { text } => Self::Question { text: text.into() },
            model::Wait::Backoff { until, cause } => Self::Backoff { until: until.0, cause: cause.into() },
            model::Wait::Disk { detail } => Self::Disk { detail: detail.into() },
            model::Wait::Pause => Self::Pause,
            model::Wait::Parts => Self::Parts,
            model::Wait::Blockers { by } => Self::Blockers { by: by.clone() },
            model::Wait::Conflict { base, files, until, overdue } => Self::Conflict {
                base: base.as_str().into(),
                files: files.iter().map(Text::from).collect(),
                until: until.0,
                overdue: (*overdue).into(),
            },
            model::Wait::GateBroken { command, detail } => {
                Self::GateBroken { command: command.into(), detail: detail.into() }
            }
        }
    }
}

impl From<Wait<'_>> for model::Wait {
    fn from(wait: Wait<'_>) -> Self {
        match wait {
            Wait::Dependency(needs) => Self::Dependency(needs.into_iter().map(TaskId).collect()),
            Wait::Slot => Self::Slot,
            Wait::Quota { until, guessed } => Self::Quota { until: Timestamp(until), guessed },
            Wait::Login { account, detail, asker } => Self::Login {
                account: account.into_string(),
                detail: detail.into_string(),
                asker: TaskId(asker),
            },
            Wait::Budget { what, until } => {
                Self::Budget { what: what.into_string(), until: until.map(Timestamp) }
            }
            Wait::Question { text } => Self::Question { text: text.into_string() },
            Wait::Backoff { until, cause } => {
                Self::Backoff { until: Timestamp(until), cause: cause.into_string() }
            }
            Wait::Disk { detail } => Self::Disk { detail: detail.into_string() },
            Wait::Pause => Self::Pause,
            Wait::Parts => Self::Parts,
            Wait::Blockers { by } => Self::Blockers { by },
            Wait::Conflict { base, files, until, overdue } => Self::Conflict {
                base: Commit::new(base.as_str()),
                files: strings(files),
                until: Timestamp(until),
                overdue: overdue.into(),
            },
            Wait::GateBroken { command, detail } => {
                Self::GateBroken { command: command.into_string(), detail: detail.into_string() }
            }
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Stop<'a> {
    Pause,
    Interrupt,
    Cancel {
        #[serde(borrow)]
        reason: Text<'a>,
    },
    Redirect,
    Block {
        #[serde(borrow)]
        reason: Text<'a>,
    },
}

impl<'a> From<&'a model::Stop> for Stop<'a> {
    fn from(stop: &'a model::Stop) -> Self {
        match stop {
            model::Stop::Pause => Self::Pause,
            model::Stop::Interrupt => Self::Interrupt,
            model::Stop::Cancel { reason } => Self::Cancel { reason: reason.into() },
            model::Stop::Redirect => Self::Redirect,
            model::Stop::Block { reason } => Self::Block { reason: reason.into() },
        }
    }
}

impl From<Stop<'_>> for model::Stop {
    fn from(stop: Stop<'_>) -> Self {
        match stop {
            Stop::Pause => Self::Pause,
            Stop::Interrupt => Self::Interrupt,
            Stop::Cancel { reason } => Self::Cancel { reason: reason.into_string() },
            Stop::Redirect => Self::Redirect,
            Stop::Block { reason } => Self::Block { reason: reason.into_string() },
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Warning<'a> {
    Stuck {
        iterations: u32,
    },
    NearIterationsMax {
        used: u32,
        max: u32,
    },
    VerificationEmpty,
    OptionalFailed {
        #[serde(borrow)]
        command: Text<'a>,
    },
    Flaky {
        #[serde(borrow)]
        command: Text<'a>,
    },
    SignalMalformed {
        #[serde(borrow)]
        code: Text<'a>,
        #[serde(borrow)]
        text: Text<'a>,
    },
    LeftoversCommitted,
    SettingsTouched {
        #[serde(borrow)]
        path: Text<'a>,
    },
    Discovery {
        global: bool,
        #[serde(borrow)]
        text: Text<'a>,
    },
    HookFailed {
        #[serde(borrow)]
        detail: Text<'a>,
    },
    Folder {
        #[serde(borrow)]
        what: Text<'a>,
    },
}

impl<'a> From<&'a model::Warning> for Warning<'a> {
    fn from(warning: &'a model::Warning) -> Self {
        match warning {
            model::Warning::Stuck { iterations } => Self::Stuck { iterations: *iterations },
            model::Warning::NearIterationsMax { used, max } => {
                Self::NearIterationsMax { used: *used, max: *max }
            }
            model::Warning::VerificationEmpty => Self::VerificationEmpty,
            model::Warning::OptionalFailed { command } => Self::OptionalFailed { command: command.into() },
            model::Warning::Flaky { command } => Self::Flaky { command: command.into() },
            model::Warning::SignalMalformed { code, text } => {
                Self::SignalMalformed { code: code.into(), text: text.into() }
            }
            model::Warning::LeftoversCommitted => Self::LeftoversCommitted,
            model::Warning::SettingsTouched { path } => Self::SettingsTouched { path: path.into() },
            model::Warning::Discovery { global, text } => {
                Self::Discovery { global: *global, text: text.into() }
            }
            model::Warning::HookFailed { detail } => Self::HookFailed { detail: detail.into() },
            model::Warning::Folder { what } => Self::Folder { what: what.into() },
        }
    }
}

impl From<Warning<'_>> for model::Warning {
    fn from(warning: Warning<'_>) -> Self {
        match warning {
            Warning::Stuck { iterations } => Self::Stuck { iterations },
            Warning::NearIterationsMax { used, max } => Self::NearIterationsMax { used, max },
            Warning::VerificationEmpty => Self::VerificationEmpty,
            Warning::OptionalFailed { command } => Self::OptionalFailed { command: command.into_string() },
            Warning::Flaky { command } => Self::Flaky { command: command.into_string() },
            Warning::SignalMalformed { code, text } => {
                Self::SignalMalformed { code: code.into_string(), text: text.into_string() }
            }
            Warning::LeftoversCommitted => Self::LeftoversCommitted,
            Warning::SettingsTouched { path } => Self::SettingsTouched { path: path.into_string() },
            Warning::Discovery { global, text } => Self::Discovery { global, text: text.into_string() },
            Warning::HookFailed { detail } => Self::HookFailed { detail: detail.into_string() },
            Warning::Folder { what } => Self::Folder { what: what.into_string() },
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Mover {
    Landing(u32),
    Person,
    Rebuild,
}

impl From<model::Mover> for Mover {
    fn from(mover: model::Mover) -> Self {
        match mover {
            model::Mover::Landing(task) => Self::Landing(task.0),
            model::Mover::Person => Self::Person,
            model::Mover::Rebuild => Self::Rebuild,
        }
    }
}

impl From<Mover> for model::Mover {
    fn from(mover: Mover) -> Self {
        match mover {
            Mover::Landing(task) => Self::Landing(TaskId(task)),
            Mover::Person => Self::Person,
            Mover::Rebuild => Self::Rebuild,
        }
    }
}

pub(super) fn strings(texts: Vec<Text<'_>>) -> Vec<String> {
    texts.into_iter().map(Text::into_string).collect()
}

pub(super) fn is_false(it: &bool) -> bool {
    !*it
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_silence_is_kept_and_none_is_not_written() {
        let quiet = model::Traces { quiet_ms: 61_000, ..model::Traces::default() };
        let text = serde_json::to_string(&Traces::from(&quiet)).expect("it is JSON");
        assert_eq!(text, r#"{"quiet_ms":61000}"#);
        let read: Traces<'_> = serde_json::from_str(&text).expect("it is read again");
        assert_eq!(model::Traces::from(read), quiet);
        let none = serde_json::to_string(&Traces::from(&model::Traces::default())).expect("it is JSON");
        assert_eq!(none, "{}");
    }
}

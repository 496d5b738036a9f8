//! The wire: what a client asks the engine and what it answers.
//!
//! The types here are the wire's own, with a version. The words of small enums are those of `landfall-facts`: the journal, the wire
//! and the pages use the same ones. Whoever holds the engine writes the conversions out. One line in [`operation`] makes an operation; [`Service`] is what the engine
//! implements, [`TypedService`] is how a client reads best, and [`socket`] carries both between processes.
//!
//! Moments are Unix milliseconds and end in `_ms`, as durations do. Text that came from tasks or agents is as they
//! wrote it: whoever shows it on a terminal cleans it first.

mod access;
mod action;
mod agents;
mod autopilot;
mod blob;
mod board;
pub mod client;
mod discovery;
mod fleet;
mod flow;
mod follow;
mod graph;
pub mod http;
mod ids;
pub mod import;
mod inbox;
mod intervention;
mod issue;
mod journal;
mod keeping;
mod loops;
mod nearest;
#[cfg(feature = "schema")]
pub mod openapi;
pub mod operation;
mod output;
mod problem;
mod proposal;
mod rollup;
mod run;
mod running;
pub mod secret_file;
mod settings;
pub mod socket;
mod socket_key;
mod staged;
mod stats;
mod task;
pub mod taskfile;
mod verification;

pub use landfall_facts::driving::TaskActivity;
pub use landfall_facts::issue::IssueStanding;
pub use landfall_facts::pilot::{PauseReason, PilotPhase};
pub use landfall_facts::queue::HoldReason;
pub use landfall_facts::sprint::{SprintFate, SprintStage};
pub use landfall_facts::{BudgetScope, WaitOwner};

pub use access::{AgentToken, AgentTokenAsked, PairAsked, Pairing, SessionLine, SessionList, SessionOf};
pub use action::{Action, Fill};
pub use agents::{
    AccountLine, AccountStanding, AgentKind, AgentProfile, AgentRun, AgentsAsked, AgentsFound, BudgetLine,
    BudgetOf, Consulted, CostFrom, ProbeAnswer, Probed, SpendingLine, Usage,
};
pub use autopilot::{
    AutoAsked, BatchLine, BatchLook, BurnPoint, CheckpointAsked, CheckpointDetail, CheckpointDrop,
    CheckpointLine, CheckpointList, CheckpointNew, CheckpointsDropped, FlakeLine, HoldLine, LostCommit,
    LostTask, NextAsked, PauseAsked, PauseLine, Picked, Pilot, QueueBrief, QueueChanged, QueuePlace,
    QueueReport, QueueResume, QuickIssue, Redo, RedoHint, Restored, ReviewAsked, ReviewLine, ReviewList,
    ReviewSaid, SprintChanged, SprintGoal, SprintList, SprintOf, SprintPlan, SprintPreview, SprintRecord,
    SprintReport, SprintSettings, SprintTarget, SprintTask, SprintTaskStat, TaskBrief,
};
pub use blob::{Blob, NotBase64};
pub use board::{
    Board, BoardAsked, Card, CheckMark, Column, ColumnName, DiffStat, MarkState, Severity, Trouble,
    TroubleKind,
};
pub use discovery::{DiscoveriesAsked, DiscoveryDrop, DiscoveryLine, DiscoveryList};
pub use fleet::{Fleet, FleetAgent, FleetAsked, FleetDisk, FleetLane, FleetOrphan, FleetUse, FleetWorkspace};
pub use flow::{
    FlowCheck, FlowChecked, FlowDrawing, FlowForm, FlowLine, FlowList, FlowOrigin, FlowProblem, FlowShow,
};
pub use follow::{
    AutoReport, FollowedIssue, FollowedPart, HaulLine, HaulList, IssueReview, IssueSummary, IssueWay,
    IssuesFollow, IssuesFollowed, LeftOutIssue, PhaseLine, ReconcileAsked, Reconciliation,
    ReconciliationSeen,
};
pub use graph::{EdgeKind, Graph, GraphAsked, GraphEdge, GraphNode};
pub use ids::{BadId, HaulId, IssueNumber, TaskRef, WireRunId, WireSprintId, WireTaskId};
pub use import::{ImportText, Imported};
pub use inbox::{Inbox, InboxAsked, InboxItem, InboxKind, InboxOrder};
pub use intervention::{Block, DiffAsked, Hold, Limits, Message, OwnLimits, Release};
pub use issue::{
    IssueAsked, IssueBlocker, IssueChanged, IssueClose, IssueComment, IssueDetail, IssueEdit, IssueLine,
    IssueList, IssueMade, IssueNew, IssueSay, IssueState, IssueSummaries, IssueSummariesAsked, IssueTick,
    IssuesAsked, PullRequestCheck, PullRequestDetail, PullRequestReview, TrackerWebhook, UnreadableIssue,
};
pub use journal::{LogAsked, LogEntry, LogPage};
pub use keeping::{
    Check, CheckState, Health, InitAgent, InitCommand, InitFound, ModuleMade, ModuleMended, ModulesMended,
    ProjectChecked, Reclaimed, ReclaimedItem, ReclaimedKind, SandboxProbe, SandboxReport,
};
pub use loops::{
    LOOP_ITERATIONS, LOOP_MINUTES, LoopAsked, LoopLine, LoopList, LoopOf, LoopStatus, LoopsAsked, TaskAuto,
    TaskAutoAsked, TaskAutoError, TaskAutoHolder,
};
pub use nearest::nearest_word;
pub use operation::{
    Access, HttpMethod, OperationCost, OperationRoute, Request, Response, Service, StateVersion, TypedService,
};
pub use output::{
    Level, Output, OutputAsked, OutputBytes, OutputKind, OutputLine, OutputList, OutputOf, OutputRange, Said,
    ToolOutcome,
};
pub use problem::{Problem, ProblemCode};
pub use proposal::{Proposal, ProposalList, ProposalOf, ProposalOutcome, ProposeStart, Proposing};
pub use rollup::{
    Improvement, ImprovementList, ImprovementsFile, IssueEvents, IssueEventsAsked, IssueTrace, Rollup,
    RollupAsked, RollupCount, RollupPhase, RollupRecovery, RollupSession, RollupTokens, RollupWait,
};
pub use run::{
    ActiveLine, AgentAtWork, Base, ClashLine, DiskState, EngineState, Nothing, OutcomeLine, RunCounts,
    RunEnded, RunLine, RunList, RunOutcome, RunReport, RunResult, RunState, RunTaskLine, RunningCheckLine,
    StatusReport, StopAsked, Stopped, WaitingGroup,
};
pub use running::{NewsLine, RunAsked, RunMode, RunNowAsked, RunStarted, RunView, SlotLine, SprintAsked};
pub use settings::{SettingKey, SettingProblem, SettingSection, SettingsReport};
pub use socket_key::SocketKey;
pub use staged::{
    Annotate, Annotated, DoAsked, ExclusionLine, FlowCheckpoint, JudgeAgreement, JudgementLine, Note,
    NoteKind, Paper, PaperAsked, PaperLine, PaperList, PhaseMark, PhaseState, PlanStepLine, Progress,
    ProofLine, Refine, RefineWithdraw, RefinementLine, RefinementState, RequirementLine, ScoreLine,
    StageLine, StageNow, StepDone, Target, TargetConfirm, TargetItem, TargetSay, Threshold,
};
pub use stats::{
    Agreement, Spread, Stats, StatsAsked, StatsCount, StatsDay, StatsGate, StatsProfile, StatsSum,
};
pub use task::{
    Accept, Added, Answer, AttemptKind, AttemptLine, Cancel, CertificateJson, Changed, ChangedTask, Clear,
    CommandReport, Concern, Counter, DeniedPath, Diff, EditTask, Export, Exported, ExportedFile, Filter,
    Gate, Landed, Mode, NewTask, NewTasks, Outcome, Publication, Report, ReportAsked, ReportOf, Retry,
    RolledBack, Size, Status, TaskAsked, TaskDetail, TaskLine, TaskPage, UnknownWord, Wait, WaitFor, Why,
};
pub use verification::{CriterionSeen, IssueVerified, VerifyAsked};

/// The version of the wire. A client and an engine with different ones refuse each other.
pub const VERSION: u32 = 1;

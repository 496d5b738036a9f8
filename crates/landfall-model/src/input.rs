//! News: everything a task can hear, as one closed enum. Times arrive in here.

use std::sync::Arc;

use crate::annotate;
use crate::audit::ChangeSize;
use crate::budget::ExhaustedBudget;
use crate::conflict::ConflictingFile;
use crate::driving::{AgentAssignment, AgentRunTraces};
use crate::flow::Flow;
use crate::gaming::TestEvidence;
use crate::gate::GateReport;
use crate::issue::{
    AcceptanceOutcome, CiStatus, IssueOptions, IssueResolution, IssueSnapshot, PullRequestRef, SubIssue,
    SubIssueEnd,
};
use crate::plan::PlanOutline;
use crate::proof;
use crate::queue::BatchId;
use crate::recovery::{PlanAction, RecoveryContext, RecoveryOp};
use crate::resource::MachineResource;
use crate::review::RedoChoice;
use crate::score::GatePoint;
use crate::signal::{AgentUsage, Signal};
use crate::task::{ChangeConcern, Feedback, TaskLimitOverrides, TaskLimits};
use crate::{
    AgentExit, AgentRunEvidence, Attempt, Commit, Digest, LoopStep, RunId, TaskSpec, Timestamp, Tree,
};
pub use landfall_facts::parting::YieldReason;

/// One piece of news for one task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskInput {
    /// The wall clock when it came in.
    pub at: Timestamp,
    /// What the engine is doing as a whole.
    pub drive: IntakeState,
    /// A budget of the run or the day that is used up: no agent begins.
    pub spent: Option<ExhaustedBudget>,
    /// Whether somebody is there: a conflict for a person is put aside at once where nobody is.
    pub attended: bool,
    /// The time between two questions to a tracker about something that happens there, in milliseconds.
    pub poll_ms: u64,
    /// The news.
    pub news: News,
}

/// The flow that a task which has not started would follow before and after an edit.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowChange {
    /// Before.
    pub from: Arc<Flow>,
    /// After.
    pub to: Arc<Flow>,
}

/// The time between two questions to a tracker, unless the settings choose another.
pub const POLL_MS: u64 = 60_000;

/// Whether new work may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntakeState {
    /// It may.
    Running,
    /// What is under way is finished; nothing new begins.
    Draining,
}

/// What a task can hear.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "news is made one at a time and dropped at once")]
pub enum News {
    /// A person changed its words.
    Edit {
        /// To these.
        spec: TaskSpec,
        /// It has not started, and follows another flow with these words.
        flows: Option<FlowChange>,
    },
    /// It may start now: a slot, a lane or the landing is its own.
    Granted {
        /// In this run.
        run: RunId,
        /// By this flow, if it has none yet.
        flow: Arc<Flow>,
        /// Within these limits.
        limits: TaskLimits,
        /// By this profile, in this style.
        driving: AgentAssignment,
    },
    /// Its workspace stands.
    WorkspaceReady {
        /// For this attempt.
        attempt: Attempt,
        /// Branched off here.
        base: Commit,
    },
    /// Something on this machine failed while performing an effect.
    MachineFailed {
        /// Of this attempt.
        attempt: Attempt,
        /// What and why.
        detail: String,
        /// Whether trying again could help.
        hopeless: bool,
    },
    /// The machine ran out of something while an effect was performed. If it is still missing, no try is counted.
    Exhausted {
        /// Of this attempt.
        attempt: Attempt,
        /// What there was none of.
        resource: MachineResource,
        /// Whether it was still missing right after the failure.
        is_missing: bool,
        /// What failed for want of it.
        detail: String,
    },
    /// A run of the agent ended.
    AgentEnded(EndedRun),
    /// The agent has finished a step of a loop of its own.
    Strode {
        /// Within this attempt.
        attempt: Attempt,
        /// In this run.
        iteration: u32,
        /// This one.
        stride: LoopStep,
    },
    /// The running agent waits for its account.
    AccountWaitBegan {
        /// Within this attempt.
        attempt: Attempt,
        /// In this run.
        iteration: u32,
        /// When it resets, if the agent said.
        until: Option<Timestamp>,
    },
    /// It goes on.
    AccountWaitEnded {
        /// Within this attempt.
        attempt: Attempt,
        /// In this run.
        iteration: u32,
    },
    /// The work was brought in, merged and checked.
    Checked {
        /// For this attempt.
        attempt: Attempt,
        /// The tip of the work.
        head: Commit,
        /// Whether the engine had to commit leftovers.
        leftovers: bool,
        /// What verification saw.
        report: GateReport,
        /// What a person should look at before it lands.
        concerns: Vec<ChangeConcern>,
        /// What is known of its tests besides that they passed; none if it is not green.
        evidence: Option<TestEvidence>,
        /// What the checks showed that its plan and its judges named, each with the end of its output.
        proofs: Vec<(proof::ProofRun, String)>,
        /// How large the change of the stage is, where judges look at it.
        extent: Option<ChangeSize>,
    },
    /// The work was brought in but does not merge.
    MergeConflict {
        /// For this attempt.
        attempt: Attempt,
        /// The tip of the work.
        head: Commit,
        /// The base it does not merge into.
        base: Commit,
        /// In these files.
        clashes: Vec<ConflictingFile>,
    },
    /// There is no work: the branch is where it began.
    NothingChanged {
        /// For this attempt.
        attempt: Attempt,
    },
    /// Its workspace was made again after an unclean end, so not all that its agent called complete may be there.
    WorkspaceRebuilt {
        /// For this attempt.
        attempt: Attempt,
    },
    /// It is part of a batch that was verified, and the base is being moved there.
    LandingBegan {
        /// For this attempt.
        attempt: Attempt,
        /// This batch.
        batch: BatchId,
        /// What was seen of it.
        report: GateReport,
    },
    /// A command a person set for its workspace failed where nothing depends on it.
    HookFailed {
        /// What it came to.
        detail: String,
    },
    /// Somebody changed the folder of its module in a way that is not taken over, or that had to be mended.
    FolderChanged {
        /// What was seen, and what was made of it.
        what: String,
    },
    /// Its batch passed, but it runs fewer tests than the base it would land on: a person looks first.
    Doubted {
        /// The attempt that stands in line.
        attempt: Attempt,
        /// What to look at.
        concerns: Vec<ChangeConcern>,
    },
    /// Together with what landed before it, it is red.
    Ejected {
        /// For this attempt.
        attempt: Attempt,
        /// From this batch.
        batch: BatchId,
        /// What was seen.
        report: GateReport,
    },
    /// Moving the base failed, and whether it was moved is not known.
    LandUnsure {
        /// For this attempt.
        attempt: Attempt,
    },
    /// The base now holds the work.
    Landed {
        /// For this attempt.
        attempt: Attempt,
        /// The commit the base was moved to.
        commit: Commit,
        /// What it was moved from.
        base_before: Commit,
        /// Its tree.
        tree: Tree,
        /// What the independent check saw.
        proof: String,
    },
    /// The base is no longer where the work was verified.
    LandMoved {
        /// For this attempt.
        attempt: Attempt,
        /// It is here now.
        to: Commit,
    },
    /// The independent check after landing did not agree.
    LandMismatch {
        /// For this attempt.
        attempt: Attempt,
        /// In what.
        detail: String,
    },
    /// The report and the certificate are written.
    Reported {
        /// For this attempt.
        attempt: Attempt,
        /// The report.
        report: Digest,
        /// The certificate, if it landed.
        certificate: Option<Digest>,
    },
    /// The moment a wait was for has come.
    Due,
    /// The base moved: a gate that was broken may be whole.
    BaseAdvanced,
    /// The account it waits for, or one that takes over, can be worked on.
    RouteOpened,
    /// A person answered, or reviewed.
    Answer {
        /// In these words.
        text: String,
    },
    /// A person looked at it.
    Review(ReviewInput),
    /// A person wants it stopped; it can be taken up again.
    StopTask,
    /// The engine is stopping now and cannot wait for the iteration.
    Interrupt,
    /// A person wants it no more.
    Cancel {
        /// Because.
        reason: String,
    },
    /// A person wants it tried again.
    Retry {
        /// From a new workspace.
        fresh: bool,
        /// With a word to the agent.
        note: Option<String>,
    },
    /// The workspace is gone; what was in it is kept.
    WorkspaceRemoved {
        /// The tip of what was kept.
        kept: Option<Commit>,
    },
    /// A person says something to its agent.
    Message {
        /// In these words.
        text: String,
        /// The run under way ends for it, and the next begins with it.
        now: bool,
    },
    /// A person wants it to wait once the run under way is over.
    Hold {
        /// Because; may be empty.
        reason: String,
    },
    /// A person lets it go on.
    Release,
    /// A person says that it is done without a landing of its own.
    Accept {
        /// Because.
        reason: String,
    },
    /// A person says that it cannot go on.
    Block {
        /// Because.
        reason: String,
    },
    /// A person sets limits for this task alone.
    SetLimits {
        /// These; what is not named stays as it is.
        limits: TaskLimitOverrides,
    },
    /// A person wants one step done now.
    Do {
        /// By the flow's word for it: `plan`, `check`, `exec`.
        command: String,
        /// Of several checks, this one.
        checkpoint: Option<GatePoint>,
        /// And nothing after it in the same run.
        alone: bool,
        /// What its agent is told with it.
        note: Option<String>,
        /// The flow of a task that is not bound to one yet.
        flow: Option<Arc<Flow>>,
    },
    /// A person changed their mind about what is wanted, or wants more of what is done.
    Refine {
        /// In their words.
        text: String,
    },
    /// A person takes a refinement back.
    Withdraw {
        /// By its number.
        number: u32,
    },
    /// The next run of its agent should know this, which no person said to it.
    Inform(Feedback),
    /// A person wrote into the margin of a paper.
    Annotate(AnnotatedDocument),
    /// A person said how the issue it follows is to be done.
    Wish(IssueOptions),
    /// The tracker was asked or told.
    Exchanged {
        /// For this attempt.
        attempt: Attempt,
        /// What came of it.
        exchanged: ExchangeResult,
    },
    /// None of the issues it is made of goes on any more.
    PartsOver(Vec<SubIssueEnd>),
    /// More of the issues it is made of are over, and others go on.
    PartsCame {
        /// These are.
        over: Vec<u64>,
        /// So many levels of them are over as a whole.
        levels: u32,
    },
    /// What it waited for in the tracker may have happened.
    LookAgain,
    /// What was to be done about a step that failed was done, or could not be.
    Recovered {
        /// For this attempt.
        attempt: Attempt,
        /// What came of it.
        recovered: RecoveryResult,
    },
}

/// What came of a recovery.
#[derive(Debug, Clone, PartialEq)]
pub enum RecoveryResult {
    /// An agent looked.
    Diagnosed {
        /// What it wants; none if its plan is refused.
        action: Option<PlanAction>,
        /// Why, or why it is refused.
        rationale: String,
        /// The operations.
        ops: Vec<RecoveryOp>,
        /// Who looked.
        profile: String,
        /// What it used.
        usage: AgentUsage,
        /// How long it took.
        took_ms: u64,
    },
    /// The operations are done.
    Done {
        /// Where the work stands now, if they moved it.
        head: Option<Commit>,
        /// A line for each.
        lines: Vec<String>,
    },
    /// It could not be done.
    Failed {
        /// Why.
        why: String,
    },
    /// The run is being stopped: the next one does it.
    PutOff,
}

/// What came of an exchange with a tracker.
#[derive(Debug, Clone, PartialEq)]
pub enum ExchangeResult {
    /// The issue was looked at.
    Seen {
        /// It is like this.
        seen: Box<IssueSnapshot>,
        /// The work of its pull request, pinned in the store.
        head: Option<Commit>,
    },
    /// What an agent was to leave cannot be read.
    Unread {
        /// Because.
        why: String,
    },
    /// The work is offered; none: its way is straight onto the base.
    Offered(Option<PullRequestRef>),
    /// The issue was closed since the task began, and nothing was done.
    Closed(IssueResolution),
    /// The checks of the forge were looked at.
    Checks {
        /// They came to this.
        ci: CiStatus,
        /// What is done about it, if something is.
        climbed: Option<RecoveryContext>,
    },
    /// What was promised was held against what is there.
    Accepted {
        /// It came to this.
        accepted: AcceptanceOutcome,
        /// What is done about what does not hold, if something does not.
        climbed: Option<RecoveryContext>,
    },
    /// It is made of these.
    Parts(Vec<SubIssue>),
    /// What was to be written down is.
    Told,
    /// What became of its parts is written down.
    Gathered {
        /// How they ended, once what is done was held against the base once more.
        ends: Vec<SubIssueEnd>,
        /// Those that were opened again, because they hold no more.
        reopened: Vec<u64>,
    },
    /// How far its parts have come is written down.
    Levelled {
        /// What does not hold of the whole so far; none if nobody looked.
        failing: Option<Vec<(String, String)>>,
    },
    /// What is waited for has not happened yet.
    NotYet {
        /// This.
        what: String,
    },
    /// The tracker could not be asked.
    Trouble {
        /// What and why.
        detail: String,
        /// When to ask again, if it says.
        until: Option<Timestamp>,
        /// Whether asking again could help.
        hopeless: bool,
    },
    /// It could not be done, and asking again would not help by itself.
    Stuck(RecoveryContext),
}

/// A paper that a person annotated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotatedDocument {
    /// Its name.
    pub name: String,
    /// As it was when they read it.
    pub of: Digest,
    /// As it is now.
    pub paper: Digest,
    /// What the engine reads out of it, if it is the plan.
    pub outline: Option<PlanOutline>,
    /// How much that matters.
    pub impact: annotate::AnnotationImpact,
    /// Where the task goes on because of it.
    pub onward: annotate::AnnotationResumePoint,
}

/// What a person says of work they looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewInput {
    /// It is good.
    Approve {
        /// With a note.
        note: String,
    },
    /// It is to be changed.
    Changes {
        /// By their names, or in words.
        issues: Vec<String>,
        /// In words.
        note: String,
        /// From what is there, or anew.
        redo: RedoChoice,
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

/// What is known when a run of the agent is over.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedRun {
    /// Within this attempt.
    pub attempt: Attempt,
    /// Which one.
    pub iteration: u32,
    /// How the process ended.
    pub exit: AgentExit,
    /// What was heard.
    pub seen: Vec<Signal>,
    /// What was found.
    pub evidence: AgentRunEvidence,
    /// How long it took.
    pub took_ms: u64,
    /// What it used.
    pub usage: AgentUsage,
    /// What else it left.
    pub traces: AgentRunTraces,
    /// What is done about it, if it ended in a way that something is done about.
    pub climbed: Option<RecoveryContext>,
}

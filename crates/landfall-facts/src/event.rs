//! Facts: what has happened to a task, in the past tense. The journal is a row of these.

use crate::defaults::is_false;
use serde::{Deserialize, Serialize, Serializer};

use std::sync::Arc;

use crate::account::AccountState;
use crate::auto::AutoEvent;
use crate::budget::BudgetScope;
use crate::checkpoint::CheckpointEvent;
use crate::driving::{AgentAssignment, AgentRunTraces, SessionStart};
use crate::evidence::TestEvidence;
use crate::flow::{EdgeTarget, Flow};
use crate::gate::GateReport;
use crate::haul::IssueBatchEvent;
use crate::issue::IssueEvent;
use crate::parting::YieldReason;
use crate::pilot::PilotEvent;
use crate::queue::{BatchId, QueueEvent};
use crate::recovery::RecoveryEvent;
use crate::review::Finding;
use crate::signal::AgentUsage;
use crate::sprint::{ReviewDecision, SprintEvent};
use crate::staged::StagedEvent;
use crate::verdict::Verdict;
use crate::{
    Attempt, Commit, Digest, LoopStep, RunId, StepName, TaskId, TaskSpec, Timestamp, Tree, WaitReason,
};
use crate::{ChangeConcern, Ending, Feedback, StopRequest, TaskLimitOverrides, TaskLimits};

/// One fact about one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// It was asked for.
    #[serde(rename = "added")]
    Added {
        /// In these words.
        spec: TaskSpec,
    },
    /// Its words were changed.
    #[serde(rename = "edited")]
    Edited {
        /// To these.
        spec: TaskSpec,
    },
    /// Its work already exists as a commit (a rollback brings its own).
    #[serde(rename = "offered")]
    Offered {
        /// That commit, pinned in the store.
        head: Commit,
    },
    /// It was bound to a flow and limits.
    #[serde(rename = "bound")]
    Bound {
        /// The flow, frozen for this task.
        #[serde(with = "shared")]
        flow: Arc<Flow>,
        /// What it may use.
        limits: TaskLimits,
        /// Who works on it, and how.
        #[serde(default)]
        driving: AgentAssignment,
    },
    /// A try of a step began.
    #[serde(rename = "entered")]
    Entered {
        /// Under this number.
        attempt: Attempt,
        /// Of this step.
        step: StepName,
        /// In this run.
        run: RunId,
        /// Beginning with this.
        opening: AttemptStart,
    },
    /// Its workspace stands.
    #[serde(rename = "workspace-made")]
    WorkspaceMade {
        /// For this attempt.
        attempt: Attempt,
        /// Branched off here.
        base: Commit,
    },
    /// A run of the agent began.
    #[serde(rename = "iteration-began")]
    IterationBegan {
        /// Within this attempt.
        attempt: Attempt,
        /// The count over the task's life, from 1.
        iteration: u32,
        /// What it begins with.
        #[serde(default, skip_serializing_if = "SessionStart::is_new")]
        talk: SessionStart,
    },
    /// A run of the agent ended.
    #[serde(rename = "iteration-ended")]
    IterationEnded {
        /// Within this attempt.
        attempt: Attempt,
        /// Which one.
        iteration: u32,
        /// How the process ended.
        exit: AgentExit,
        /// What we make of it.
        verdict: Verdict,
        /// How long it took.
        took_ms: u64,
        /// What it used.
        usage: AgentUsage,
        /// Where its branch stood afterwards.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<Commit>,
        /// What else it left.
        #[serde(default)]
        traces: AgentRunTraces,
    },
    /// Something a person should know, which changes nothing.
    #[serde(rename = "warned", with = "warning")]
    Warned(Warning),
    /// Its work was brought into the store.
    #[serde(rename = "collected")]
    Collected {
        /// By this attempt.
        attempt: Attempt,
        /// The tip of the work.
        head: Commit,
        /// Whether the engine had to commit leftovers.
        leftovers: bool,
    },
    /// The work was checked on the base.
    #[serde(rename = "verified")]
    Verified {
        /// By this attempt.
        attempt: Attempt,
        /// All that was seen.
        report: GateReport,
        /// What is known of its tests besides that they passed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<TestEvidence>,
    },
    /// The work does not merge into the base.
    #[serde(rename = "conflicted")]
    Conflicted {
        /// Seen by this attempt.
        attempt: Attempt,
        /// On this base.
        base: Commit,
        /// In these files.
        paths: Vec<String>,
    },
    /// The base moved while the work waited to land.
    #[serde(rename = "base-moved")]
    BaseMoved {
        /// Seen by this attempt.
        attempt: Attempt,
        /// To here.
        to: Commit,
    },
    /// A step ended and the flow went on.
    #[serde(rename = "left")]
    Left {
        /// The attempt that ended.
        attempt: Attempt,
        /// Of this step.
        step: StepName,
        /// With this result.
        result: StepResult,
        /// To there.
        to: EdgeTarget,
        /// What the next attempt should know.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<Feedback>,
    },
    /// An attempt ended without a result; the step is to be tried again.
    #[serde(rename = "yielded")]
    Yielded {
        /// The attempt that ended.
        attempt: Attempt,
        /// Why.
        why: YieldReason,
        /// What the next attempt should know.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<Feedback>,
    },
    /// It waits for something with a name.
    #[serde(rename = "waited")]
    Waited {
        /// For this.
        #[serde(serialize_with = "without_turn")]
        wait: WaitReason,
        /// The step to go on with.
        then: StepName,
    },
    /// The wait is over.
    #[serde(rename = "resumed")]
    Resumed {
        /// What the next attempt should know.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<Feedback>,
    },
    /// A person must look before it lands.
    #[serde(rename = "review-wanted")]
    ReviewWanted {
        /// Because of these.
        concerns: Vec<ChangeConcern>,
        /// The step to go on with.
        then: StepName,
    },
    /// A person looked.
    #[serde(rename = "reviewed")]
    Reviewed {
        /// And let it pass, or not.
        approved: bool,
        /// In their words.
        note: String,
    },
    /// It was verified together with others, and the base is being moved there.
    #[serde(rename = "landing-began")]
    LandingBegan {
        /// For this attempt.
        attempt: Attempt,
        /// As part of this batch.
        batch: BatchId,
        /// What was seen of the batch.
        report: GateReport,
    },
    /// Its landing came to nothing; it stands in line again.
    #[serde(rename = "requeued")]
    Requeued {
        /// This attempt.
        attempt: Attempt,
        /// Whether the base may hold it all the same.
        unsure: bool,
    },
    /// Together with what landed before it, it is red: it does not land.
    #[serde(rename = "ejected")]
    Ejected {
        /// This attempt.
        attempt: Attempt,
        /// From this batch.
        batch: BatchId,
        /// What was seen.
        report: GateReport,
    },
    /// A reviewer read the work; none: what they said could not be read.
    #[serde(rename = "opinion")]
    Opinion {
        /// In this attempt.
        attempt: Attempt,
        /// The work as it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<Commit>,
        /// All findings so far.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        findings: Option<Vec<Finding>>,
    },
    /// What the agent says about open findings, for a person to weigh.
    #[serde(rename = "replied")]
    Replied {
        /// In its words.
        text: String,
    },
    /// The agent has finished a step of a loop of its own, by its own word.
    #[serde(rename = "strode")]
    Strode {
        /// In this attempt.
        attempt: Attempt,
        /// This one.
        stride: LoopStep,
    },
    /// The running agent waits for its account: this is no working time.
    #[serde(rename = "account-wait-began")]
    AccountWaitBegan {
        /// In this attempt.
        attempt: Attempt,
        /// When it resets, if the agent said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// The running agent goes on.
    #[serde(rename = "account-wait-ended")]
    AccountWaitEnded {
        /// In this attempt.
        attempt: Attempt,
    },
    /// It goes back to an earlier state of its own work.
    #[serde(rename = "sent-back")]
    SentBack {
        /// To this.
        to: Commit,
    },
    /// It landed, and a person is to look at it when there is time.
    #[serde(rename = "review-owed")]
    ReviewOwed,
    /// A person has looked at landed work.
    #[serde(rename = "signed")]
    Signed {
        /// And says so.
        decision: ReviewDecision,
        /// In their words.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        note: String,
    },
    /// The base now holds the work.
    #[serde(rename = "landed")]
    Landed {
        /// By this attempt.
        attempt: Attempt,
        /// The commit the base was moved to.
        commit: Commit,
        /// What it was moved from.
        base_before: Commit,
        /// Its tree, which is the tree that was verified.
        tree: Tree,
        /// What the independent check afterwards saw.
        proof: String,
    },
    /// The report and the certificate were written.
    #[serde(rename = "reported")]
    Reported {
        /// By this attempt.
        attempt: Attempt,
        /// The report.
        report: Digest,
        /// The certificate, if it landed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        certificate: Option<Digest>,
    },
    /// A person or a limit wants the attempt to end.
    #[serde(rename = "stop-asked")]
    StopAsked {
        /// How, and what follows.
        stop: StopRequest,
    },
    /// It ended.
    #[serde(rename = "ended")]
    Ended(Ending),
    /// It was taken up again after an end.
    #[serde(rename = "retried")]
    Retried {
        /// Whether the old workspace was given up.
        fresh: bool,
        /// What the next attempt should know.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<Feedback>,
    },
    /// The workspace is gone; what was in it is kept under a ref.
    #[serde(rename = "workspace-removed")]
    WorkspaceRemoved {
        /// The tip of what was kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<Commit>,
    },
    /// Something was said to its agent.
    #[serde(rename = "messaged")]
    Messaged {
        /// Under this heading, where it is no person who says it: the words of others are not a person's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        about: Option<String>,
        /// In these words.
        text: String,
    },
    /// A person keeps it from going on.
    #[serde(rename = "held")]
    Held {
        /// Because; may be empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    /// A person lets it go on.
    #[serde(rename = "released")]
    Released,
    /// A person set limits for this task alone.
    #[serde(
        rename = "limits-set",
        serialize_with = "Serialize::serialize",
        deserialize_with = "Deserialize::deserialize"
    )]
    LimitsSet {
        /// These; what is not named stays as it is.
        limits: TaskLimitOverrides,
    },
    /// Something about its plan, its objective or its stages.
    #[serde(rename = "staged", skip_deserializing)]
    Staged(StagedEvent),
    /// A person wants this step next.
    #[serde(rename = "directed")]
    Directed {
        /// This one.
        step: StepName,
        /// And nothing after it in the same run.
        #[serde(default, skip_serializing_if = "is_false")]
        alone: bool,
    },
    /// A person wants more of what was done.
    #[serde(rename = "reopened")]
    Reopened {
        /// In their words.
        text: String,
    },
    /// Something about the issue it follows.
    #[serde(rename = "issue", skip_deserializing)]
    Issue(IssueEvent),
    /// Something was done about a step that failed.
    #[serde(rename = "recovery", skip_deserializing)]
    Recovery(RecoveryEvent),
}

words! {
    /// What an attempt begins with.
    pub enum AttemptStart {
        /// With its workspace, as it stands.
        Workspace = "workspace",
        /// With a new workspace; what stands is kept under a ref.
        FreshWorkspace = "fresh-workspace",
        /// With bringing the work in, merging and verifying it.
        Check = "check",
        /// With moving the base.
        Land = "land",
        /// With standing in line to land.
        Queue = "queue",
        /// With writing the report.
        Report = "report",
        /// With the tracker.
        Exchange = "exchange",
        /// With what is done about a failure.
        Recover = "recover",
    }
}

/// How an agent's process ended, as far as we know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgentExit {
    /// With this code.
    #[serde(rename = "code")]
    Code(i32),
    /// By this signal, not sent by us.
    #[serde(rename = "signal")]
    Signal(i32),
    /// Killed at its hard limit.
    #[serde(rename = "deadline")]
    Deadline,
    /// Killed because it was silent for too long.
    #[serde(rename = "silent")]
    Silent,
    /// Killed because it said the same thing over and over.
    #[serde(rename = "looping")]
    Looping,
    /// Killed because a budget was used up.
    #[serde(rename = "over-budget")]
    OverBudget {
        /// Whose.
        scope: BudgetScope,
        /// How much of how much.
        what: String,
    },
    /// Killed because it had to drop its context again and again.
    #[serde(rename = "context-used-up")]
    ContextUsedUp,
    /// Killed because we were asked to.
    #[serde(rename = "asked")]
    Asked,
    /// It never ran.
    #[serde(rename = "not-started")]
    NotStarted {
        /// Why.
        detail: String,
        /// Whether trying again could help.
        hopeless: bool,
    },
    /// It vanished, and its end was not seen.
    #[serde(rename = "lost")]
    Lost,
}

words! {
    /// How a step ended. Which of them a step can end with depends on its kind.
    pub enum StepResult {
        /// The agent finished, or the report is written.
        Done = "done",
        /// The agent cannot go on.
        Blocked = "blocked",
        /// The agent met something that wants a check before it goes on.
        MidExec = "mid-exec",
        /// Verification passed.
        Pass = "pass",
        /// Verification failed.
        Fail = "fail",
        /// The work does not merge.
        Conflict = "conflict",
        /// The base holds the work.
        Landed = "landed",
        /// Green alone, red together with what landed meanwhile.
        Red = "red",
        /// A person answered.
        Answered = "answered",
        /// A reviewer agreed.
        Approved = "approved",
        /// A reviewer wants changes.
        Changes = "changes",
        /// A judge: the plan is good.
        CheckPass = "PASS",
        /// A judge: the plan needs work.
        NeedsRevision = "NEEDS_REVISION",
        /// A judge: the result is good.
        Accept = "ACCEPT",
        /// A judge: the result needs work.
        NeedsFix = "NEEDS_FIX",
        /// A judge: another plan.
        Replan = "REPLAN",
        /// A judge: go on.
        Continue = "CONTINUE",
        /// A judge: it cannot be done as it stands.
        CheckBlocked = "BLOCKED",
        /// The objective is met.
        Satisfied = "satisfied",
        /// It came no closer: back to where it was.
        Rollback = "rollback",
        /// An issue: somebody has to find out what it is.
        Triage = "triage",
        /// An issue: what is to be done has to be written down.
        Spec = "spec",
        /// An issue: it can be worked on.
        Code = "code",
        /// An issue: its work is there already.
        Offered = "offered",
        /// An issue: it is made of others.
        Split = "split",
        /// Its way is straight onto the base.
        Patch = "patch",
        /// Its way is a pull request.
        Pr = "pr",
        /// What could be looked at holds; something is left for others.
        Partial = "partial",
    }
}

/// Something a person should know, which changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Warning {
    /// This many runs of the agent in a row left no commit.
    #[serde(rename = "stuck")]
    Stuck {
        /// How many.
        iterations: u32,
    },
    /// Most of the iterations are used.
    #[serde(rename = "near-iterations-max")]
    NearIterationsMax {
        /// Used.
        used: u32,
        /// Of.
        max: u32,
    },
    /// There was nothing to verify with.
    #[serde(rename = "verification-empty")]
    VerificationEmpty,
    /// An optional check failed.
    #[serde(rename = "optional-failed")]
    OptionalFailed {
        /// Its name.
        command: String,
    },
    /// A check failed and then passed on the same tree.
    #[serde(rename = "flaky")]
    Flaky {
        /// Its name.
        command: String,
    },
    /// A control word could not be understood.
    #[serde(rename = "signal-malformed")]
    SignalMalformed {
        /// What was wrong with it.
        code: String,
        /// What it was.
        text: String,
    },
    /// The engine committed what the agent had left uncommitted.
    #[serde(rename = "leftovers-committed")]
    LeftoversCommitted,
    /// While the agent ran, something changed in its own settings that decides what it runs for a person.
    #[serde(rename = "settings-touched")]
    SettingsTouched {
        /// The file or folder.
        path: String,
    },
    /// The agent found out something worth knowing.
    #[serde(rename = "discovery")]
    Discovery {
        /// For every task, not just this one.
        global: bool,
        /// What.
        text: String,
    },
    /// A command a person set for its workspace failed where nothing depends on it.
    #[serde(rename = "hook-failed")]
    HookFailed {
        /// What it came to.
        detail: String,
    },
    /// Somebody changed the folder of its module in a way that is not taken over, or that had to be mended.
    #[serde(rename = "folder")]
    Folder {
        /// What was seen, and what was made of it.
        what: String,
    },
}

/// One fact: of a task, or of the engine as a whole.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// Of a task.
    Task(TaskId, Event),
    /// Of the engine.
    Engine(EngineEvent),
}

/// A fact and its moment: what the journal keeps.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalEntry {
    /// When, by the wall clock. For people; order comes from the journal's sequence.
    pub at: Timestamp,
    /// What.
    pub fact: Fact,
}

/// One fact about the engine as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum EngineEvent {
    /// An engine took the journal over.
    #[serde(rename = "engine-started")]
    Started {
        /// Of this version.
        version: String,
    },
    /// A run began.
    #[serde(rename = "run-started")]
    RunStarted {
        /// Under this number.
        run: RunId,
        /// With this many slots.
        slots: u32,
        /// Only for these tasks; empty means all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        only: Vec<TaskId>,
    },
    /// A run ended.
    #[serde(rename = "run-ended")]
    RunEnded {
        /// This one.
        run: RunId,
        /// Because.
        why: RunEnd,
    },
    /// The base is somewhere else now.
    #[serde(rename = "engine-base-moved")]
    BaseMoved {
        /// It was here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Commit>,
        /// It is here.
        to: Commit,
        /// By this.
        by: BaseMover,
    },
    /// The person's repository has the base.
    #[serde(rename = "published")]
    Published {
        /// This commit.
        commit: Commit,
        /// In this way.
        how: String,
    },
    /// The person's repository could not be brought up to date.
    #[serde(rename = "publish-held")]
    PublishHeld {
        /// With this commit.
        commit: Commit,
        /// Because.
        reason: String,
    },
    /// An account can be worked on, or cannot.
    #[serde(rename = "account")]
    Account {
        /// This one.
        account: String,
        /// How it stands now.
        state: AccountState,
    },
    /// Something about the landing queue.
    #[serde(rename = "queue", skip_deserializing)]
    Queue(QueueEvent),
    /// Something about who picks tasks, and pauses.
    #[serde(rename = "pilot", skip_deserializing)]
    Pilot(PilotEvent),
    /// Something about a sprint.
    #[serde(rename = "sprint", skip_deserializing)]
    Sprint(SprintEvent),
    /// Something about a checkpoint.
    #[serde(rename = "checkpoint", skip_deserializing)]
    Checkpoint(CheckpointEvent),
    /// The checks were run on the base itself.
    #[serde(rename = "measured")]
    Measured {
        /// What was seen.
        report: GateReport,
    },
    /// A person withdrew what an agent had found out.
    #[serde(rename = "discovery-dropped")]
    DiscoveryDropped {
        /// Its number.
        number: u32,
    },
    /// An agent was asked something outside of any task.
    #[serde(rename = "consulted")]
    Consulted {
        /// What for, in a word: `proposal`, `probe`.
        about: String,
        /// By this profile.
        profile: String,
        /// What it used.
        usage: AgentUsage,
        /// How long it took.
        took_ms: u64,
    },
    /// Something about a loop.
    #[serde(rename = "auto", skip_deserializing)]
    Auto(AutoEvent),
    /// Something about issues that were asked for together.
    #[serde(rename = "haul", skip_deserializing)]
    Haul(IssueBatchEvent),
}

words! {
    /// Why a run ended.
    pub enum RunEnd {
        /// Nothing is left that could start by itself.
        NothingLeft = "nothing-left",
        /// A person stopped it between iterations.
        Drained = "drained",
        /// A person stopped it at once.
        Interrupted = "interrupted",
        /// It was paused, and nobody was there to let it go on.
        Paused = "paused",
        /// The goal of the sprint was reached.
        Goal = "goal",
        /// One task was done, in semi-automatic mode, and nobody was there to pick another.
        OneDone = "one-done",
        /// The budget of the run, or of the day, was used up.
        Spent = "spent",
        /// The engine was gone; found out afterwards.
        Lost = "lost",
    }
}

/// Who moved the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum BaseMover {
    /// The landing of this task, alone or with others.
    #[serde(rename = "landing")]
    Landing(TaskId),
    /// A person, in their own repository.
    #[serde(rename = "person")]
    Person,
    /// The engine, to bring a person's commits and landed work together.
    #[serde(rename = "rebuild")]
    Rebuild,
}

/// A flow that several tasks share. The journal writes it once and names it by its digest.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::Flow;

    pub(super) fn serialize<S: Serializer>(flow: &Arc<Flow>, serializer: S) -> Result<S::Ok, S::Error> {
        flow.as_ref().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Flow>, D::Error> {
        Flow::deserialize(deserializer).map(Arc::new)
    }
}

/// A warning is the only field of its body.
mod warning {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Warning;

    #[derive(Serialize)]
    struct WarningBodyRef<'a> {
        warning: &'a Warning,
    }

    #[derive(Deserialize)]
    struct WarningBody {
        warning: Warning,
    }

    pub(super) fn serialize<S: Serializer>(warning: &Warning, serializer: S) -> Result<S::Ok, S::Error> {
        WarningBodyRef { warning }.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Warning, D::Error> {
        WarningBody::deserialize(deserializer).map(|body| body.warning)
    }
}

/// Which slot a task waits for follows from the tasks at work, so a fact says only that it waits for one.
fn without_turn<S: Serializer>(wait: &WaitReason, serializer: S) -> Result<S::Ok, S::Error> {
    match wait {
        WaitReason::Turn(_) => WaitReason::Slot.serialize(serializer),
        wait => wait.serialize(serializer),
    }
}

impl Event {
    /// The attempt whose news this was; it must be the current one.
    #[must_use]
    pub fn fencing_attempt(&self) -> Option<Attempt> {
        match self {
            Self::WorkspaceMade { attempt, .. }
            | Self::IterationBegan { attempt, .. }
            | Self::IterationEnded { attempt, .. }
            | Self::Collected { attempt, .. }
            | Self::Verified { attempt, .. }
            | Self::Conflicted { attempt, .. }
            | Self::BaseMoved { attempt, .. }
            | Self::Left { attempt, .. }
            | Self::Yielded { attempt, .. }
            | Self::Opinion { attempt, .. }
            | Self::Strode { attempt, .. }
            | Self::AccountWaitBegan { attempt, .. }
            | Self::AccountWaitEnded { attempt }
            | Self::LandingBegan { attempt, .. }
            | Self::Requeued { attempt, .. }
            | Self::Ejected { attempt, .. }
            | Self::Landed { attempt, .. }
            | Self::Reported { attempt, .. } => Some(*attempt),
            Self::Added { .. }
            | Self::Edited { .. }
            | Self::Offered { .. }
            | Self::Bound { .. }
            | Self::Entered { .. }
            | Self::Warned(_)
            | Self::Waited { .. }
            | Self::Resumed { .. }
            | Self::ReviewWanted { .. }
            | Self::Reviewed { .. }
            | Self::Replied { .. }
            | Self::SentBack { .. }
            | Self::ReviewOwed
            | Self::Signed { .. }
            | Self::StopAsked { .. }
            | Self::Ended(_)
            | Self::Retried { .. }
            | Self::WorkspaceRemoved { .. }
            | Self::Messaged { .. }
            | Self::Held { .. }
            | Self::Released
            | Self::LimitsSet { .. }
            | Self::Directed { .. }
            | Self::Reopened { .. }
            | Self::Recovery(_) => None,
            Self::Staged(event) => event.fencing_attempt(),
            Self::Issue(event) => event.fencing_attempt(),
        }
    }

    /// The event's name, as journal and log write it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Added { .. } => "added",
            Self::Edited { .. } => "edited",
            Self::Offered { .. } => "offered",
            Self::Bound { .. } => "bound",
            Self::Entered { .. } => "entered",
            Self::WorkspaceMade { .. } => "workspace-made",
            Self::IterationBegan { .. } => "iteration-began",
            Self::IterationEnded { .. } => "iteration-ended",
            Self::Warned(_) => "warned",
            Self::Collected { .. } => "collected",
            Self::Verified { .. } => "verified",
            Self::Conflicted { .. } => "conflicted",
            Self::BaseMoved { .. } => "base-moved",
            Self::Left { .. } => "left",
            Self::Yielded { .. } => "yielded",
            Self::Waited { .. } => "waited",
            Self::Resumed { .. } => "resumed",
            Self::ReviewWanted { .. } => "review-wanted",
            Self::Reviewed { .. } => "reviewed",
            Self::Opinion { .. } => "opinion",
            Self::Replied { .. } => "replied",
            Self::Strode { .. } => "strode",
            Self::AccountWaitBegan { .. } => "account-wait-began",
            Self::AccountWaitEnded { .. } => "account-wait-ended",
            Self::SentBack { .. } => "sent-back",
            Self::ReviewOwed => "review-owed",
            Self::Signed { .. } => "signed",
            Self::LandingBegan { .. } => "landing-began",
            Self::Requeued { .. } => "requeued",
            Self::Ejected { .. } => "ejected",
            Self::Landed { .. } => "landed",
            Self::Reported { .. } => "reported",
            Self::StopAsked { .. } => "stop-asked",
            Self::Ended(_) => "ended",
            Self::Retried { .. } => "retried",
            Self::WorkspaceRemoved { .. } => "workspace-removed",
            Self::Messaged { .. } => "messaged",
            Self::Held { .. } => "held",
            Self::Released => "released",
            Self::LimitsSet { .. } => "limits-set",
            Self::Staged(event) => event.name(),
            Self::Directed { .. } => "directed",
            Self::Reopened { .. } => "reopened",
            Self::Issue(event) => event.name(),
            Self::Recovery(event) => event.name(),
        }
    }
}

impl Warning {
    /// The warning in a sentence.
    #[must_use]
    pub fn to_sentence(&self) -> String {
        match self {
            Self::Stuck { iterations } => format!("{iterations} iterations in a row left no commit"),
            Self::NearIterationsMax { used, max } => format!("{used} of {max} iterations are used"),
            Self::VerificationEmpty => {
                "VERIFICATION_EMPTY: no check is configured, so nothing was verified".to_owned()
            }
            Self::OptionalFailed { command } => format!("the optional check `{command}` failed"),
            Self::Flaky { command } => format!("the check `{command}` failed once and then passed: flaky"),
            Self::SignalMalformed { code, text } => format!("{code}: {text}"),
            Self::SettingsTouched { path } => format!(
                "AGENT_SETTINGS_CHANGED: `{path}` changed while the agent ran; look at it before you start that agent yourself"
            ),
            Self::Discovery { global: false, text } => format!("the agent found out: {text}"),
            Self::Discovery { global: true, text } => {
                format!("the agent found out, for every task: {text}")
            }
            Self::HookFailed { detail } => detail.clone(),
            Self::Folder { what } => what.clone(),
            Self::LeftoversCommitted => "the engine committed what the agent had left uncommitted".to_owned(),
        }
    }
}

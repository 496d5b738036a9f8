//! Facts: what has happened to a task, in the past tense. The journal is a row of these.

use std::sync::Arc;

use crate::account::AccountState;
use crate::auto::AutoEvent;
use crate::budget::Scope;
use crate::checkpoint::CheckpointEvent;
use crate::driving::{Driving, Talk, Traces};
use crate::flow::{Flow, Target};
use crate::gaming::TestEvidence;
use crate::gate::GateReport;
use crate::haul::HaulEvent;
use crate::input::Parting;
use crate::issue::IssueEvent;
use crate::judge::Verdict;
use crate::pilot::PilotEvent;
use crate::queue::{BatchId, QueueEvent};
use crate::recovery::RecoveryEvent;
use crate::review::Finding;
use crate::signal::Usage;
use crate::sprint::{ReviewDecision, SprintEvent};
use crate::staged::StagedEvent;
use crate::task::{Concern, Ending, Feedback, OwnLimits, Stop, TaskLimits};
use crate::{Attempt, Commit, Digest, RunId, StepName, Stride, TaskId, TaskSpec, Timestamp, Tree, Wait};

/// One fact about one task.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// It was asked for.
    Added {
        /// In these words.
        spec: TaskSpec,
    },
    /// Its words were changed.
    Edited {
        /// To these.
        spec: TaskSpec,
    },
    /// Its work already exists as a commit (a rollback brings its own).
    Offered {
        /// That commit, pinned in the store.
        head: Commit,
    },
    /// It was bound to a flow and limits.
    Bound {
        /// The flow, frozen for this task.
        flow: Arc<Flow>,
        /// What it may use.
        limits: TaskLimits,
        /// Who works on it, and how.
        driving: Driving,
    },
    /// A try of a step began.
    Entered {
        /// Under this number.
        attempt: Attempt,
        /// Of this step.
        step: StepName,
        /// In this run.
        run: RunId,
        /// Beginning with this.
        opening: Opening,
    },
    /// Its workspace stands.
    WorkspaceMade {
        /// For this attempt.
        attempt: Attempt,
        /// Branched off here.
        base: Commit,
    },
    /// A run of the agent began.
    IterationBegan {
        /// Within this attempt.
        attempt: Attempt,
        /// The count over the task's life, from 1.
        iteration: u32,
        /// What it begins with.
        talk: Talk,
    },
    /// A run of the agent ended.
    IterationEnded {
        /// Within this attempt.
        attempt: Attempt,
        /// Which one.
        iteration: u32,
        /// How the process ended.
        exit: Exit,
        /// What we make of it.
        verdict: Verdict,
        /// How long it took.
        took_ms: u64,
        /// What it used.
        usage: Usage,
        /// Where its branch stood afterwards.
        head: Option<Commit>,
        /// What else it left.
        traces: Traces,
    },
    /// Something a person should know, which changes nothing.
    Warned(Warning),
    /// Its work was brought into the store.
    Collected {
        /// By this attempt.
        attempt: Attempt,
        /// The tip of the work.
        head: Commit,
        /// Whether the engine had to commit leftovers.
        leftovers: bool,
    },
    /// The work was checked on the base.
    Verified {
        /// By this attempt.
        attempt: Attempt,
        /// All that was seen.
        report: GateReport,
        /// What is known of its tests besides that they passed.
        evidence: Option<TestEvidence>,
    },
    /// The work does not merge into the base.
    Conflicted {
        /// Seen by this attempt.
        attempt: Attempt,
        /// On this base.
        base: Commit,
        /// In these files.
        paths: Vec<String>,
    },
    /// The base moved while the work waited to land.
    BaseMoved {
        /// Seen by this attempt.
        attempt: Attempt,
        /// To here.
        to: Commit,
    },
    /// A step ended and the flow went on.
    Left {
        /// The attempt that ended.
        attempt: Attempt,
        /// Of this step.
        step: StepName,
        /// With this result.
        result: StepResult,
        /// To there.
        to: Target,
        /// What the next attempt should know.
        feedback: Option<Feedback>,
    },
    /// An attempt ended without a result; the step is to be tried again.
    Yielded {
        /// The attempt that ended.
        attempt: Attempt,
        /// Why.
        why: Parting,
        /// What the next attempt should know.
        feedback: Option<Feedback>,
    },
    /// It waits for something with a name.
    Waited {
        /// For this.
        wait: Wait,
        /// The step to go on with.
        then: StepName,
    },
    /// The wait is over.
    Resumed {
        /// What the next attempt should know.
        feedback: Option<Feedback>,
    },
    /// A person must look before it lands.
    ReviewWanted {
        /// Because of these.
        concerns: Vec<Concern>,
        /// The step to go on with.
        then: StepName,
    },
    /// A person looked.
    Reviewed {
        /// And let it pass, or not.
        approved: bool,
        /// In their words.
        note: String,
    },
    /// It was verified together with others, and the base is being moved there.
    LandingBegan {
        /// For this attempt.
        attempt: Attempt,
        /// As part of this batch.
        batch: BatchId,
        /// What was seen of the batch.
        report: GateReport,
    },
    /// Its landing came to nothing; it stands in line again.
    Requeued {
        /// This attempt.
        attempt: Attempt,
        /// Whether the base may hold it all the same.
        unsure: bool,
    },
    /// Together with what landed before it, it is red: it does not land.
    Ejected {
        /// This attempt.
        attempt: Attempt,
        /// From this batch.
        batch: BatchId,
        /// What was seen.
        report: GateReport,
    },
    /// A reviewer read the work; none: what they said could not be read.
    Opinion {
        /// In this attempt.
        attempt: Attempt,
        /// The work as it was.
        head: Option<Commit>,
        /// All findings so far.
        findings: Option<Vec<Finding>>,
    },
    /// What the agent says about open findings, for a person to weigh.
    Replied {
        /// In its words.
        text: String,
    },
    /// The agent has finished a step of a loop of its own, by its own word.
    Strode {
        /// In this attempt.
        attempt: Attempt,
        /// This one.
        stride: Stride,
    },
    /// The running agent waits for its account: this is no working time.
    AccountWaitBegan {
        /// In this attempt.
        attempt: Attempt,
        /// When it resets, if the agent said.
        until: Option<Timestamp>,
    },
    /// The running agent goes on.
    AccountWaitEnded {
        /// In this attempt.
        attempt: Attempt,
    },
    /// It goes back to an earlier state of its own work.
    SentBack {
        /// To this.
        to: Commit,
    },
    /// It landed, and a person is to look at it when there is time.
    ReviewOwed,
    /// A person has looked at landed work.
    Signed {
        /// And says so.
        decision: ReviewDecision,
        /// In their words.
        note: String,
    },
    /// The base now holds the work.
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
    Reported {
        /// By this attempt.
        attempt: Attempt,
        /// The report.
        report: Digest,
        /// The certificate, if it landed.
        certificate: Option<Digest>,
    },
    /// A person or a limit wants the attempt to end.
    StopAsked {
        /// How, and what follows.
        stop: Stop,
    },
    /// It ended.
    Ended(Ending),
    /// It was taken up again after an end.
    Retried {
        /// Whether the old workspace was given up.
        fresh: bool,
        /// What the next attempt should know.
        feedback: Option<Feedback>,
    },
    /// The workspace is gone; what was in it is kept under a ref.
    WorkspaceRemoved {
        /// The tip of what was kept.
        kept: Option<Commit>,
    },
    /// Something was said to its agent.
    Messaged {
        /// Under this heading, where it is no person who says it: the words of others are not a person's.
        about: Option<String>,
        /// In these words.
        text: String,
    },
    /// A person keeps it from going on.
    Held {
        /// Because; may be empty.
        reason: String,
    },
    /// A person lets it go on.
    Released,
    /// A person set limits for this task alone.
    LimitsSet {
        /// These; what is not named stays as it is.
        limits: OwnLimits,
    },
    /// Something about its plan, its objective or its stages.
    Staged(StagedEvent),
    /// A person wants this step next.
    Directed {
        /// This one.
        step: StepName,
        /// And nothing after it in the same run.
        alone: bool,
    },
    /// A person wants more of what was done.
    Reopened {
        /// In their words.
        text: String,
    },
    /// Something about the issue it follows.
    Issue(IssueEvent),
    /// Something was done about a step that failed.
    Recovery(RecoveryEvent),
}

/// What an attempt begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Opening {
    /// With its workspace, as it stands.
    Workspace,
    /// With a new workspace; what stands is kept under a ref.
    FreshWorkspace,
    /// With bringing the work in, merging and verifying it.
    Check,
    /// With moving the base.
    Land,
    /// With standing in line to land.
    Queue,
    /// With writing the report.
    Report,
    /// With the tracker.
    Exchange,
    /// With what is done about a failure.
    Recover,
}

/// How an agent's process ended, as far as we know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal, not sent by us.
    Signal(i32),
    /// Killed at its hard limit.
    Deadline,
    /// Killed because it was silent for too long.
    Silent,
    /// Killed because it said the same thing over and over.
    Looping,
    /// Killed because a budget was used up.
    OverBudget {
        /// Whose.
        scope: Scope,
        /// How much of how much.
        what: String,
    },
    /// Killed because it had to drop its context again and again.
    ContextUsedUp,
    /// Killed because we were asked to.
    Asked,
    /// It never ran.
    NotStarted {
        /// Why.
        detail: String,
        /// Whether trying again could help.
        hopeless: bool,
    },
    /// It vanished, and its end was not seen.
    Lost,
}

/// How a step ended. Which of them a step can end with depends on its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepResult {
    /// The agent finished, or the report is written.
    Done,
    /// The agent cannot go on.
    Blocked,
    /// The agent met something that wants a check before it goes on.
    MidExec,
    /// Verification passed.
    Pass,
    /// Verification failed.
    Fail,
    /// The work does not merge.
    Conflict,
    /// The base holds the work.
    Landed,
    /// Green alone, red together with what landed meanwhile.
    Red,
    /// A person answered.
    Answered,
    /// A reviewer agreed.
    Approved,
    /// A reviewer wants changes.
    Changes,
    /// A judge: the plan is good.
    CheckPass,
    /// A judge: the plan needs work.
    NeedsRevision,
    /// A judge: the result is good.
    Accept,
    /// A judge: the result needs work.
    NeedsFix,
    /// A judge: another plan.
    Replan,
    /// A judge: go on.
    Continue,
    /// A judge: it cannot be done as it stands.
    CheckBlocked,
    /// The objective is met.
    Satisfied,
    /// It came no closer: back to where it was.
    Rollback,
    /// An issue: somebody has to find out what it is.
    Triage,
    /// An issue: what is to be done has to be written down.
    Spec,
    /// An issue: it can be worked on.
    Code,
    /// An issue: its work is there already.
    Offered,
    /// An issue: it is made of others.
    Split,
    /// Its way is straight onto the base.
    Patch,
    /// Its way is a pull request.
    Pr,
    /// What could be looked at holds; something is left for others.
    Partial,
}

impl StepResult {
    /// Every result there is.
    pub const ALL: [Self; 28] = [
        Self::Done,
        Self::Blocked,
        Self::MidExec,
        Self::Pass,
        Self::Fail,
        Self::Conflict,
        Self::Landed,
        Self::Red,
        Self::Answered,
        Self::Approved,
        Self::Changes,
        Self::CheckPass,
        Self::NeedsRevision,
        Self::Accept,
        Self::NeedsFix,
        Self::Replan,
        Self::Continue,
        Self::CheckBlocked,
        Self::Satisfied,
        Self::Rollback,
        Self::Triage,
        Self::Spec,
        Self::Code,
        Self::Offered,
        Self::Split,
        Self::Patch,
        Self::Pr,
        Self::Partial,
    ];

    /// The word in a flow file.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Blocked => "blocked",
            Self::MidExec => "mid-exec",
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Conflict => "conflict",
            Self::Landed => "landed",
            Self::Red => "red",
            Self::Answered => "answered",
            Self::Approved => "approved",
            Self::Changes => "changes",
            Self::CheckPass => "PASS",
            Self::NeedsRevision => "NEEDS_REVISION",
            Self::Accept => "ACCEPT",
            Self::NeedsFix => "NEEDS_FIX",
            Self::Replan => "REPLAN",
            Self::Continue => "CONTINUE",
            Self::CheckBlocked => "BLOCKED",
            Self::Satisfied => "satisfied",
            Self::Rollback => "rollback",
            Self::Triage => "triage",
            Self::Spec => "spec",
            Self::Code => "code",
            Self::Offered => "offered",
            Self::Split => "split",
            Self::Patch => "patch",
            Self::Pr => "pr",
            Self::Partial => "partial",
        }
    }

    /// The result a flow file means by `word`.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|result| result.word() == word)
    }
}

/// Something a person should know, which changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// This many runs of the agent in a row left no commit.
    Stuck {
        /// How many.
        iterations: u32,
    },
    /// Most of the iterations are used.
    NearIterationsMax {
        /// Used.
        used: u32,
        /// Of.
        max: u32,
    },
    /// There was nothing to verify with.
    VerificationEmpty,
    /// An optional check failed.
    OptionalFailed {
        /// Its name.
        command: String,
    },
    /// A check failed and then passed on the same tree.
    Flaky {
        /// Its name.
        command: String,
    },
    /// A control word could not be understood.
    SignalMalformed {
        /// What was wrong with it.
        code: String,
        /// What it was.
        text: String,
    },
    /// The engine committed what the agent had left uncommitted.
    LeftoversCommitted,
    /// While the agent ran, something changed in its own settings that decides what it runs for a person.
    SettingsTouched {
        /// The file or folder.
        path: String,
    },
    /// The agent found out something worth knowing.
    Discovery {
        /// For every task, not just this one.
        global: bool,
        /// What.
        text: String,
    },
    /// A command a person set for its workspace failed where nothing depends on it.
    HookFailed {
        /// What it came to.
        detail: String,
    },
    /// Somebody changed the folder of its module in a way that is not taken over, or that had to be mended.
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
pub struct Entry {
    /// When, by the wall clock. For people; order comes from the journal's sequence.
    pub at: Timestamp,
    /// What.
    pub fact: Fact,
}

/// One fact about the engine as a whole.
#[derive(Debug, Clone, PartialEq)]
pub enum EngineEvent {
    /// An engine took the journal over.
    Started {
        /// Of this version.
        version: String,
    },
    /// A run began.
    RunStarted {
        /// Under this number.
        run: RunId,
        /// With this many slots.
        slots: u32,
        /// Only for these tasks; empty means all.
        only: Vec<TaskId>,
    },
    /// A run ended.
    RunEnded {
        /// This one.
        run: RunId,
        /// Because.
        why: RunEnd,
    },
    /// The base is somewhere else now.
    BaseMoved {
        /// It was here.
        from: Option<Commit>,
        /// It is here.
        to: Commit,
        /// By this.
        by: Mover,
    },
    /// The person's repository has the base.
    Published {
        /// This commit.
        commit: Commit,
        /// In this way.
        how: String,
    },
    /// The person's repository could not be brought up to date.
    PublishHeld {
        /// With this commit.
        commit: Commit,
        /// Because.
        reason: String,
    },
    /// An account can be worked on, or cannot.
    Account {
        /// This one.
        account: String,
        /// How it stands now.
        state: AccountState,
    },
    /// Something about the landing queue.
    Queue(QueueEvent),
    /// Something about who picks tasks, and pauses.
    Pilot(PilotEvent),
    /// Something about a sprint.
    Sprint(SprintEvent),
    /// Something about a checkpoint.
    Checkpoint(CheckpointEvent),
    /// The checks were run on the base itself.
    Measured {
        /// What was seen.
        report: GateReport,
    },
    /// A person withdrew what an agent had found out.
    DiscoveryDropped {
        /// Its number.
        number: u32,
    },
    /// An agent was asked something outside of any task.
    Consulted {
        /// What for, in a word: `proposal`, `probe`.
        about: String,
        /// By this profile.
        profile: String,
        /// What it used.
        usage: Usage,
        /// How long it took.
        took_ms: u64,
    },
    /// Something about a loop.
    Auto(AutoEvent),
    /// Something about issues that were asked for together.
    Haul(HaulEvent),
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunEnd {
    /// Nothing is left that could start by itself.
    NothingLeft,
    /// A person stopped it between iterations.
    Drained,
    /// A person stopped it at once.
    Interrupted,
    /// It was paused, and nobody was there to let it go on.
    Paused,
    /// The goal of the sprint was reached.
    Goal,
    /// One task was done, in semi-automatic mode, and nobody was there to pick another.
    OneDone,
    /// The budget of the run, or of the day, was used up.
    Spent,
    /// The engine was gone; found out afterwards.
    Lost,
}

/// Who moved the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mover {
    /// The landing of this task, alone or with others.
    Landing(TaskId),
    /// A person, in their own repository.
    Person,
    /// The engine, to bring a person's commits and landed work together.
    Rebuild,
}

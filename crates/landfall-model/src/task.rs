//! One task as it stands: the fold of its events.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::budget::{Spending, format_micro_usd};
use crate::decide::{add_jitter, spell_ms};
use crate::driving::{AgentAssignment, AgentDriveStyle, AgentSession, ContextUsage, PastRun, SessionStart};
use crate::flow::{Flow, StepKind};
use crate::gaming::TestEvidence;
use crate::gate::GateReport;
use crate::issue::Pipeline;
use crate::liveness::AccountWaitTime;
use crate::recovery::Recoveries;
use crate::review::Finding;
use crate::sandbox::Confinement;
use crate::signal::AgentUsage;
use crate::sprint::ReviewDecision;
use crate::staged::StagedState;
use crate::{
    Attempt, Commit, Digest, LoopStep, RunId, StepName, StepResult, TaskId, TaskSpec, Timestamp, Tree,
    WaitReason, Warning,
};
pub use landfall_facts::concern::{ChangeConcern, ConcernCode, Feedback};
pub use landfall_facts::ending::{EndCode, EndKind, Ending, StopRequest};
pub use landfall_facts::limits::{TaskLimitOverrides, TaskLimits};

/// A task. Only [`apply`](crate::apply()) changes one.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its name.
    pub id: TaskId,
    /// What is wanted.
    pub spec: TaskSpec,
    /// When it was asked for.
    pub created: Timestamp,
    /// When anything last happened to it.
    pub changed: Timestamp,
    /// How it is done; frozen when it first starts.
    pub flow: Option<Arc<Flow>>,
    /// What it may use.
    pub limits: TaskLimits,
    /// Who works on it, and how; settled with each grant.
    pub driving: Option<AgentAssignment>,
    /// The agent's session that can be gone on with.
    pub session: Option<AgentSession>,
    /// The latest runs of the agent, for whoever goes on without its memory.
    pub past: Vec<PastRun>,
    /// The last step that an agent with a loop of its own has finished.
    pub stride: Option<LoopStep>,
    /// The state of its module as the last run left it.
    pub revision: Option<Digest>,
    /// What the last run of the agent said at its end.
    pub last_words: Option<Digest>,
    /// What the running agent has waited for its account.
    pub account_waits: AccountWaitTime,
    /// Where it is.
    pub state: TaskState,
    /// The latest attempt: the fence.
    pub attempt: Attempt,
    /// The run of the latest attempt.
    pub run: Option<RunId>,
    /// What has been spent, one counter per cause.
    pub counters: Counters,
    /// The base its workspace branched off, if it has one.
    pub workspace: Option<Commit>,
    /// Whether a workspace that nobody wants any more still stands: the next one replaces it.
    pub has_discarded_workspace: bool,
    /// The tip of its work in the store.
    pub head: Option<Commit>,
    /// Where its branch stood after the last run of the agent.
    pub seen_head: Option<Commit>,
    /// What verification saw last.
    pub gate: Option<GateReport>,
    /// What its last green verification knew of its tests, besides that they passed.
    pub evidence: Option<TestEvidence>,
    /// The lowest level of the sandbox that an agent worked on it at.
    pub lowest_confinement: Option<Confinement>,
    /// Whether what verification saw last may land: nobody need look at it, or somebody did.
    pub cleared: bool,
    /// What the next run of the agent should know.
    pub feedback: Vec<Feedback>,
    /// What a person must look at before it lands, and whether they did.
    pub concerns: Vec<ChangeConcern>,
    /// The tree a person approved, with their note.
    pub approved: Option<(Tree, String)>,
    /// The work a person approved: the same work on a newer base needs no second look.
    pub approved_head: Option<Commit>,
    /// A landing that was ordered and whose outcome is not known yet: the base may hold it.
    pub landing: Option<LandingCandidate>,
    /// Where it landed.
    pub landed: Option<LandingRecord>,
    /// What a person should know.
    pub warnings: Vec<Warning>,
    /// Its report and certificate.
    pub reported: Option<(Digest, Option<Digest>)>,
    /// What reviewers found, and the work they read last.
    pub findings: Vec<Finding>,
    /// The work a reviewer read last.
    pub reviewed_head: Option<Commit>,
    /// What the agent said about open findings.
    pub reply: Option<String>,
    /// An earlier state of its work that the next workspace begins with.
    pub restart: Option<Commit>,
    /// Whether a person is still to look at what landed, and what they said.
    pub sign_off: SignOff,
    /// What people said to its agent and no prompt has carried yet, in order.
    pub messages: Vec<String>,
    /// What they said that the run under way carries.
    pub carried: Vec<String>,
    /// A person keeps it from going on.
    pub hold: Option<TaskHold>,
    /// The limits a person set for this task alone.
    pub own_limits: TaskLimitOverrides,
    /// Its plan, its objective and its stages.
    pub staged: StagedState,
    /// The step a person wants next, once what is under way is over.
    pub directed: Option<RequestedStep>,
    /// The step it was in last, for whoever takes it up again.
    pub last_step: Option<StepName>,
    /// Where it landed before it was reopened.
    pub landed_before: Vec<LandingRecord>,
    /// The issue it follows, if it follows one.
    pub issue: Option<Box<Pipeline>>,
    /// What was done about steps that failed.
    pub recoveries: Recoveries,
}

/// A step that a person wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedStep {
    /// This one.
    pub step: StepName,
    /// And nothing after it in the same run.
    pub alone: bool,
}

impl Task {
    /// A task that was just asked for.
    #[must_use]
    pub fn from_spec(id: TaskId, spec: TaskSpec, at: Timestamp) -> Self {
        let state = if spec.draft { TaskState::Draft } else { TaskState::Ready { next: None, since: at } };
        Self {
            id,
            spec,
            created: at,
            changed: at,
            flow: None,
            limits: TaskLimits::default(),
            driving: None,
            session: None,
            past: Vec::new(),
            stride: None,
            revision: None,
            last_words: None,
            account_waits: AccountWaitTime::default(),
            state,
            attempt: Attempt::default(),
            run: None,
            counters: Counters::default(),
            workspace: None,
            has_discarded_workspace: false,
            head: None,
            seen_head: None,
            gate: None,
            evidence: None,
            lowest_confinement: None,
            cleared: false,
            feedback: Vec::new(),
            concerns: Vec::new(),
            approved: None,
            approved_head: None,
            landing: None,
            landed: None,
            warnings: Vec::new(),
            reported: None,
            findings: Vec::new(),
            reviewed_head: None,
            reply: None,
            restart: None,
            sign_off: SignOff::NotOwed,
            messages: Vec::new(),
            carried: Vec::new(),
            hold: None,
            own_limits: TaskLimitOverrides::default(),
            staged: StagedState::default(),
            directed: None,
            last_step: None,
            landed_before: Vec::new(),
            issue: None,
            recoveries: Recoveries::default(),
        }
    }

    /// Whether an agent made its work: ours, or whoever offered the pull request of its issue. What a person asked to be taken
    /// back was made by none.
    #[must_use]
    pub fn is_made_by_an_agent(&self) -> bool {
        self.counters.runs > 0 || self.issue.is_some()
    }

    /// Whether it would go on if a person did not keep it from that.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.hold.is_some() && matches!(self.state, TaskState::Ready { .. })
    }

    /// Whether a folder with work of it stands, wanted or not.
    #[must_use]
    pub fn has_any_workspace(&self) -> bool {
        self.workspace.is_some() || self.has_discarded_workspace
    }

    /// Everything of it that landed, oldest first: work that landed may have been worked on again.
    pub fn landings(&self) -> impl DoubleEndedIterator<Item = &LandingRecord> {
        self.landed_before.iter().chain(&self.landed)
    }

    /// Whether tasks that need this one may start.
    #[must_use]
    pub fn unblocks_dependents(&self) -> bool {
        let done = matches!(self.state, TaskState::Ended(Ending { kind: EndKind::Done, .. }));
        self.landed.is_some() || done || !self.landed_before.is_empty()
    }

    /// Whether its work was last verified by no check at all. What an earlier try was warned of is over once a later one was verified.
    #[must_use]
    pub fn is_unproved(&self) -> bool {
        let warned = self.warnings.contains(&Warning::VerificationEmpty);
        self.gate.as_ref().map_or(warned, GateReport::is_empty)
    }

    /// Whether nothing more happens to it unless a person says so.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.state, TaskState::Ended(_))
    }

    /// Whether it waits for a person to resolve a conflict.
    #[must_use]
    pub fn waits_for_a_resolution(&self) -> bool {
        matches!(&self.state, TaskState::Waiting { wait: WaitReason::Conflict { .. }, .. })
    }

    /// Whether something more follows by itself: nobody has to be asked, and no other task is waited for.
    #[must_use]
    pub fn continues_by_itself(&self) -> bool {
        match &self.state {
            TaskState::Active { .. } => true,
            TaskState::Ready { .. } => !self.is_held(),
            TaskState::Waiting { .. } => self.due_at().is_some(),
            TaskState::Draft | TaskState::Review { .. } | TaskState::Ended(_) => false,
        }
    }

    /// The moment it waits for, if it waits for one.
    #[must_use]
    pub fn due_at(&self) -> Option<Timestamp> {
        match &self.state {
            // A little after the reset, and not all at once.
            TaskState::Waiting { wait: WaitReason::Quota { until, .. }, .. } => {
                Some(until.plus_ms(add_jitter(self.id, QUOTA_JITTER_MS)))
            }
            TaskState::Waiting {
                wait: WaitReason::Backoff { until, .. } | WaitReason::Conflict { until, .. },
                ..
            } => Some(*until),
            TaskState::Waiting { .. }
            | TaskState::Draft
            | TaskState::Ready { .. }
            | TaskState::Active { .. }
            | TaskState::Review { .. }
            | TaskState::Ended(_) => None,
        }
    }

    /// The step it is in, or would go on with.
    #[must_use]
    pub fn step(&self) -> Option<&StepName> {
        match &self.state {
            TaskState::Active { step, .. } => Some(step),
            TaskState::Ready { next, .. } => next.as_ref(),
            TaskState::Waiting { then, .. } | TaskState::Review { then } => Some(then),
            TaskState::Draft | TaskState::Ended(_) => None,
        }
    }

    /// The step it goes on with when it is granted. What has landed, or may have, never begins anew: only what
    /// comes after the landing is owed.
    #[must_use]
    pub fn next_step<'a>(&'a self, flow: &'a Flow) -> &'a StepName {
        let from_landing = self.landed.is_some() || self.landing.is_some();
        let land = || flow.steps.iter().find(|step| matches!(step.kind, StepKind::Land));
        match self.step() {
            // A task that has not started may be given another flow.
            Some(step) if flow.find_step(step).is_some() => step,
            Some(_) => &flow.entry,
            None if from_landing => land().map_or(&flow.entry, |step| &step.name),
            None => &flow.entry,
        }
    }

    /// The flow's own word for where it is.
    #[must_use]
    pub fn phase(&self) -> Option<&str> {
        self.phase_in(self.flow.as_ref()?)
    }

    fn phase_in<'a>(&'a self, flow: &'a Flow) -> Option<&'a str> {
        let step = flow.find_step(self.step()?)?;
        // It is the word of a task that comes there, not of one that is sent back: that one has begun.
        let from = self.last_step.as_ref().and_then(|last| flow.find_step(last));
        let sent_back = from.is_some_and(|from| {
            from.phase == step.phase || matches!(from.kind, StepKind::Converge | StepKind::Land)
        });
        match (&self.state, &step.before) {
            (TaskState::Ready { .. }, Some(before)) if !sent_back => Some(before),
            _ => Some(&step.phase),
        }
    }

    /// The same in the flow that it will have, for a task that is bound to none yet.
    #[must_use]
    pub fn phase_word_in(&self, flow: &Flow) -> String {
        match (&self.state, &self.flow) {
            (TaskState::Ready { next: Some(_), .. }, None) => {
                self.phase_in(flow).unwrap_or("draft").to_owned()
            }
            _ => self.phase_word(),
        }
    }

    /// The word for where it is, whatever its state: what a flow's entries and commands go by.
    #[must_use]
    pub fn phase_word(&self) -> String {
        match &self.state {
            TaskState::Draft => "draft".to_owned(),
            TaskState::Ended(ending) => match ending.kind {
                EndKind::Done => "complete".to_owned(),
                EndKind::Cancelled => "cancelled".to_owned(),
                EndKind::Failed | EndKind::Timeout | EndKind::Blocked => "blocked".to_owned(),
            },
            TaskState::Ready { .. }
            | TaskState::Active { .. }
            | TaskState::Waiting { .. }
            | TaskState::Review { .. } => self.phase().unwrap_or("draft").to_owned(),
        }
    }

    /// What the next run of the agent begins with.
    #[must_use]
    pub fn session_start(&self) -> SessionStart {
        if self.is_read() {
            return SessionStart::New; // who judges does not go on with the thoughts of who worked
        }
        match (&self.driving, &self.session) {
            (Some(AgentAssignment { profile, style: AgentDriveStyle::Session, .. }), Some(session))
                if session.profile == *profile =>
            {
                let percent = session.context.map_or(0, ContextUsage::used_percent);
                let compact = !session.compacted && percent >= self.limits.compact_percent;
                SessionStart::Resumed { session: session.id.clone(), compact }
            }
            _ => SessionStart::New,
        }
    }

    /// Whether it is in a step that only reads the work.
    fn is_read(&self) -> bool {
        let step = self.step().zip(self.flow.as_ref()).and_then(|(step, flow)| flow.find_step(step));
        step.is_some_and(|step| step.kind.is_reader_step())
    }

    /// Whether its agent runs a loop of its own, told by files.
    #[must_use]
    pub fn runs_own_loop(&self) -> bool {
        self.driving.as_ref().is_some_and(|driving| driving.style.runs_own_loop())
    }

    /// How many iterations are done: runs of the agent, or steps of its own loop.
    #[must_use]
    pub fn iterations_done(&self) -> u32 {
        let Counters { iterations, strides, .. } = self.counters;
        if self.runs_own_loop() { iterations.max(strides) } else { iterations }
    }

    /// How much of its time is left.
    #[must_use]
    pub fn time_left_ms(&self) -> u64 {
        self.limits.task_ms.saturating_sub(self.counters.spent_ms)
    }
}

const QUOTA_JITTER_MS: u64 = 5_000;

/// Where a task is. Each variant carries just what is true then.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskState {
    /// Not to be started yet.
    Draft,
    /// Wants to go on as soon as it may.
    Ready {
        /// With this step; none means the flow's entry.
        next: Option<StepName>,
        /// Since then.
        since: Timestamp,
    },
    /// An attempt is under way.
    Active {
        /// Of this step.
        step: StepName,
        /// And this is being done.
        doing: AttemptPhase,
    },
    /// Waits for something with a name.
    Waiting {
        /// For this.
        wait: WaitReason,
        /// The step to go on with.
        then: StepName,
        /// Since then.
        since: Timestamp,
    },
    /// A person must look at it.
    Review {
        /// The step to go on with.
        then: StepName,
    },
    /// It is over.
    Ended(Ending),
}

/// What is being done in an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptPhase {
    /// Its workspace is being made.
    Preparing {
        /// From scratch.
        fresh: bool,
        /// A person wants it stopped as soon as that is over.
        stop: Option<StopRequest>,
    },
    /// The agent runs.
    Running {
        /// This run.
        iteration: u32,
        /// Since then.
        since: Timestamp,
        /// Whether it was told to end, and what follows.
        stop: Option<StopRequest>,
        /// What it began with.
        talk: SessionStart,
    },
    /// The work is brought in, merged and checked.
    Checking {
        /// A person wants it stopped as soon as that is over.
        stop: Option<StopRequest>,
    },
    /// It is verified and stands in the landing queue.
    Queued {
        /// Since then.
        since: Timestamp,
    },
    /// The base is being moved.
    Landing,
    /// The report is being written.
    Reporting,
    /// The tracker is asked or told.
    Exchanging {
        /// A person wants it stopped as soon as that is over.
        stop: Option<StopRequest>,
    },
    /// Something is done about its failure.
    Recovering {
        /// A person wants it stopped as soon as that is over.
        stop: Option<StopRequest>,
    },
}

/// Why a person keeps a task from going on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskHold {
    /// In their words; may be empty.
    pub reason: String,
    /// Since then.
    pub since: Timestamp,
    /// Only until the run ends: they wanted one step.
    pub this_run: bool,
}

/// The limits of one task in words; none if it has none of its own.
#[must_use]
pub fn own_limits_text(limits: TaskLimitOverrides) -> Option<String> {
    let iterations = limits.iterations_max.map(|max| match max {
        1 => "1 iteration".to_owned(),
        max => format!("{max} iterations"),
    });
    let time = limits.task_ms.map(|ms| format!("{} of working time", spell_ms(ms)));
    let parts: Vec<String> =
        [iterations, time, limits.micro_usd.map(format_micro_usd)].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Whether a person looks at landed work.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SignOff {
    /// Nobody need look.
    #[default]
    NotOwed,
    /// When there is time.
    Owed,
    /// Somebody has.
    Given(ReviewDecision, String),
}

/// A commit that was merged and verified, ready to land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandingCandidate {
    /// The base it was merged into.
    pub base: Commit,
    /// The work.
    pub head: Commit,
    /// The merge.
    pub commit: Commit,
    /// Its tree.
    pub tree: Tree,
}

/// Where a task landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandingRecord {
    /// The commit the base was moved to.
    pub commit: Commit,
    /// What it was moved from.
    pub base_before: Commit,
    /// Its tree.
    pub tree: Tree,
    /// What the independent check saw.
    pub proof: String,
    /// When.
    pub at: Timestamp,
}

/// What has been spent. One cause, one counter.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counters {
    /// Runs of the agent that ended by themselves.
    pub iterations: u32,
    /// Runs of the agent that began, whatever became of them; nothing resets it.
    pub runs: u32,
    /// The same, of each step.
    pub step_runs: BTreeMap<StepName, u32>,
    /// Steps of a loop of the agent's own, by its word.
    pub strides: u32,
    /// Runs in a row that left no commit.
    pub fruitless: u32,
    /// How often each bounded edge of the flow was taken.
    pub edges: BTreeMap<(StepName, StepResult), u32>,
    /// Crashes and losses of the agent; a run that ends well resets it.
    pub restarts: u32,
    /// Stalls in this step.
    pub stalls_step: u32,
    /// Stalls in all.
    pub stalls_total: u32,
    /// Conflicts with the base.
    pub conflicts: u32,
    /// Verifications that failed.
    pub verify_rounds: u32,
    /// Passing troubles in a row.
    pub transients: u32,
    /// Waits for an account.
    pub quota_waits: u32,
    /// Times its agent was blocked or had a question.
    pub asked: u32,
    /// Times a reviewer read it.
    pub reviews: u32,
    /// Leave that was asked for and not given.
    pub permission_denials: u32,
    /// Times the agent was told that it goes round in a circle; a commit resets it.
    pub loops: u32,
    /// Runs in a row that ended in the same words and left no commit.
    pub same_words: u32,
    /// Sessions that were gone when they were wanted.
    pub sessions_lost: u32,
    /// Logins that were asked for.
    pub logins: u32,
    /// Attempts that used up their budget.
    pub overspent: u32,
    /// COMPLETE without a change, in a row.
    pub empty_claims: u32,
    /// Runs that did not leave behind what their step must, in a row; a step that is left resets it.
    pub outputs_missing: u32,
    /// Troubles of this machine in a row.
    pub machine: u32,
    /// Failures for lack of a resource, in a row, while it could be had again.
    pub shortages: u32,
    /// Times a person took it up again.
    pub retries: u32,
    /// Working time.
    pub spent_ms: u64,
    /// Tokens and money.
    pub usage: AgentUsage,
    /// Working time of agents alone.
    pub agent_ms: u64,
    /// What this attempt has spent.
    pub attempt: Spending,
}

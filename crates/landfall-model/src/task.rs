//! One task as it stands: the fold of its events.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::budget::{Budget, Spending, usd};
use crate::conflict::Overdue;
use crate::decide::{jittered, spell_ms};
use crate::driving::{Context, Driving, Past, Session, Style, Talk};
use crate::flow::{Flow, StepKind};
use crate::gaming::TestEvidence;
use crate::gate::GateReport;
use crate::issue::Pipeline;
use crate::liveness::AccountWaits;
use crate::recovery::Recoveries;
use crate::review::{Finding, ReviewRule};
use crate::sandbox::Confinement;
use crate::signal::Usage;
use crate::sprint::ReviewDecision;
use crate::staged::Staged;
use crate::tune::Params;
use crate::{
    Attempt, Commit, Digest, RunId, StepName, StepResult, Stride, TaskId, TaskSpec, Timestamp, Tree, Wait,
    Warning,
};

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
    pub driving: Option<Driving>,
    /// The agent's session that can be gone on with.
    pub session: Option<Session>,
    /// The latest runs of the agent, for whoever goes on without its memory.
    pub past: Vec<Past>,
    /// The last step that an agent with a loop of its own has finished.
    pub stride: Option<Stride>,
    /// The state of its module as the last run left it.
    pub revision: Option<Digest>,
    /// What the last run of the agent said at its end.
    pub last_words: Option<Digest>,
    /// What the running agent has waited for its account.
    pub account_waits: AccountWaits,
    /// Where it is.
    pub state: State,
    /// The latest attempt: the fence.
    pub attempt: Attempt,
    /// The run of the latest attempt.
    pub run: Option<RunId>,
    /// What has been spent, one counter per cause.
    pub counters: Counters,
    /// The base its workspace branched off, if it has one.
    pub workspace: Option<Commit>,
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
    pub concerns: Vec<Concern>,
    /// The tree a person approved, with their note.
    pub approved: Option<(Tree, String)>,
    /// The work a person approved: the same work on a newer base needs no second look.
    pub approved_head: Option<Commit>,
    /// A landing that was ordered and whose outcome is not known yet: the base may hold it.
    pub landing: Option<Candidate>,
    /// Where it landed.
    pub landed: Option<Landed>,
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
    pub hold: Option<Hold>,
    /// The limits a person set for this task alone.
    pub own_limits: OwnLimits,
    /// Its plan, its objective and its stages.
    pub staged: Staged,
    /// The step a person wants next, once what is under way is over.
    pub directed: Option<Directed>,
    /// The step it was in last, for whoever takes it up again.
    pub last_step: Option<StepName>,
    /// Where it landed before it was reopened.
    pub landed_before: Vec<Landed>,
    /// The issue it follows, if it follows one.
    pub issue: Option<Box<Pipeline>>,
    /// What was done about steps that failed.
    pub recoveries: Recoveries,
}

/// A step that a person wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directed {
    /// This one.
    pub step: StepName,
    /// And nothing after it in the same run.
    pub alone: bool,
}

impl Task {
    /// A task that was just asked for.
    #[must_use]
    pub fn added(id: TaskId, spec: TaskSpec, at: Timestamp) -> Self {
        let state = if spec.draft { State::Draft } else { State::Ready { next: None, since: at } };
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
            account_waits: AccountWaits::default(),
            state,
            attempt: Attempt::default(),
            run: None,
            counters: Counters::default(),
            workspace: None,
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
            own_limits: OwnLimits::default(),
            staged: Staged::default(),
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
        self.hold.is_some() && matches!(self.state, State::Ready { .. })
    }

    /// Everything of it that landed, oldest first: work that landed may have been worked on again.
    pub fn landings(&self) -> impl DoubleEndedIterator<Item = &Landed> {
        self.landed_before.iter().chain(&self.landed)
    }

    /// Whether tasks that need this one may start.
    #[must_use]
    pub fn unblocks(&self) -> bool {
        let done = matches!(self.state, State::Ended(Ending { kind: EndKind::Done, .. }));
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
        matches!(self.state, State::Ended(_))
    }

    /// Whether it waits for a person to resolve a conflict.
    #[must_use]
    pub fn waits_for_a_resolution(&self) -> bool {
        matches!(&self.state, State::Waiting { wait: Wait::Conflict { .. }, .. })
    }

    /// Whether something more follows by itself: nobody has to be asked, and no other task is waited for.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        match &self.state {
            State::Active { .. } => true,
            State::Ready { .. } => !self.is_held(),
            State::Waiting { .. } => self.due().is_some(),
            State::Draft | State::Review { .. } | State::Ended(_) => false,
        }
    }

    /// The moment it waits for, if it waits for one.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        match &self.state {
            // A little after the reset, and not all at once.
            State::Waiting { wait: Wait::Quota { until, .. }, .. } => {
                Some(until.plus_ms(jittered(self.id, QUOTA_JITTER_MS)))
            }
            State::Waiting { wait: Wait::Backoff { until, .. } | Wait::Conflict { until, .. }, .. } => {
                Some(*until)
            }
            State::Waiting { .. }
            | State::Draft
            | State::Ready { .. }
            | State::Active { .. }
            | State::Review { .. }
            | State::Ended(_) => None,
        }
    }

    /// The step it is in, or would go on with.
    #[must_use]
    pub fn step(&self) -> Option<&StepName> {
        match &self.state {
            State::Active { step, .. } => Some(step),
            State::Ready { next, .. } => next.as_ref(),
            State::Waiting { then, .. } | State::Review { then } => Some(then),
            State::Draft | State::Ended(_) => None,
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
            Some(step) if flow.step(step).is_some() => step,
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
        let step = flow.step(self.step()?)?;
        // It is the word of a task that comes there, not of one that is sent back: that one has begun.
        let from = self.last_step.as_ref().and_then(|last| flow.step(last));
        let sent_back = from.is_some_and(|from| {
            from.phase == step.phase || matches!(from.kind, StepKind::Converge | StepKind::Land)
        });
        match (&self.state, &step.before) {
            (State::Ready { .. }, Some(before)) if !sent_back => Some(before),
            _ => Some(&step.phase),
        }
    }

    /// The same in the flow that it will have, for a task that is bound to none yet.
    #[must_use]
    pub fn phase_word_in(&self, flow: &Flow) -> String {
        match (&self.state, &self.flow) {
            (State::Ready { next: Some(_), .. }, None) => self.phase_in(flow).unwrap_or("draft").to_owned(),
            _ => self.phase_word(),
        }
    }

    /// The word for where it is, whatever its state: what a flow's entries and commands go by.
    #[must_use]
    pub fn phase_word(&self) -> String {
        match &self.state {
            State::Draft => "draft".to_owned(),
            State::Ended(ending) => match ending.kind {
                EndKind::Done => "complete".to_owned(),
                EndKind::Cancelled => "cancelled".to_owned(),
                EndKind::Failed | EndKind::Timeout | EndKind::Blocked => "blocked".to_owned(),
            },
            State::Ready { .. } | State::Active { .. } | State::Waiting { .. } | State::Review { .. } => {
                self.phase().unwrap_or("draft").to_owned()
            }
        }
    }

    /// What the next run of the agent begins with.
    #[must_use]
    pub fn talk(&self) -> Talk {
        if self.is_read() {
            return Talk::New; // who judges does not go on with the thoughts of who worked
        }
        match (&self.driving, &self.session) {
            (Some(Driving { profile, style: Style::Session, .. }), Some(session))
                if session.profile == *profile =>
            {
                let percent = session.context.map_or(0, Context::percent);
                let compact = !session.compacted && percent >= self.limits.compact_percent;
                Talk::Resumed { session: session.id.clone(), compact }
            }
            _ => Talk::New,
        }
    }

    /// Whether it is in a step that only reads the work.
    fn is_read(&self) -> bool {
        let step = self.step().zip(self.flow.as_ref()).and_then(|(step, flow)| flow.step(step));
        step.is_some_and(|step| step.kind.reads())
    }

    /// Whether its agent runs a loop of its own, told by files.
    #[must_use]
    pub fn strides(&self) -> bool {
        self.driving.as_ref().is_some_and(|driving| driving.style.strides())
    }

    /// How many iterations are done: runs of the agent, or steps of its own loop.
    #[must_use]
    pub fn iterations_done(&self) -> u32 {
        let Counters { iterations, strides, .. } = self.counters;
        if self.strides() { iterations.max(strides) } else { iterations }
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
pub enum State {
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
        doing: Doing,
    },
    /// Waits for something with a name.
    Waiting {
        /// For this.
        wait: Wait,
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
pub enum Doing {
    /// Its workspace is being made.
    Preparing {
        /// From scratch.
        fresh: bool,
        /// A person wants it stopped as soon as that is over.
        stop: Option<Stop>,
    },
    /// The agent runs.
    Running {
        /// This run.
        iteration: u32,
        /// Since then.
        since: Timestamp,
        /// Whether it was told to end, and what follows.
        stop: Option<Stop>,
        /// What it began with.
        talk: Talk,
    },
    /// The work is brought in, merged and checked.
    Checking {
        /// A person wants it stopped as soon as that is over.
        stop: Option<Stop>,
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
        stop: Option<Stop>,
    },
    /// Something is done about its failure.
    Recovering {
        /// A person wants it stopped as soon as that is over.
        stop: Option<Stop>,
    },
}

/// Why an attempt is to end early, and what follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// A person stopped it; it waits until they want it again.
    Pause,
    /// The engine is stopping; it goes on next time.
    Interrupt,
    /// A person wants it no more.
    Cancel {
        /// Because.
        reason: String,
    },
    /// A person said something that the agent is to hear at once; it goes on with that.
    Redirect,
    /// A person says that it cannot go on.
    Block {
        /// Because.
        reason: String,
    },
}

/// Why a person keeps a task from going on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// In their words; may be empty.
    pub reason: String,
    /// Since then.
    pub since: Timestamp,
    /// Only until the run ends: they wanted one step.
    pub this_run: bool,
}

/// The limits a person set for one task. They stand above the settings, whatever becomes of those.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnLimits {
    /// Runs of the agent in all.
    pub iterations_max: Option<u32>,
    /// Working time in all.
    pub task_ms: Option<u64>,
    /// Money in all, in millionths of a dollar.
    pub micro_usd: Option<u64>,
}

impl OwnLimits {
    /// These, and what `newer` says instead.
    #[must_use]
    pub fn and(self, newer: Self) -> Self {
        Self {
            iterations_max: newer.iterations_max.or(self.iterations_max),
            task_ms: newer.task_ms.or(self.task_ms),
            micro_usd: newer.micro_usd.or(self.micro_usd),
        }
    }

    /// What a task may use when the settings say `limits`.
    #[must_use]
    pub fn over(self, mut limits: TaskLimits) -> TaskLimits {
        limits.iterations_max = self.iterations_max.unwrap_or(limits.iterations_max);
        limits.task_ms = self.task_ms.unwrap_or(limits.task_ms);
        limits.task_budget.micro_usd = self.micro_usd.or(limits.task_budget.micro_usd);
        limits
    }

    /// In words; none if there are none.
    #[must_use]
    pub fn words(self) -> Option<String> {
        let iterations = self.iterations_max.map(|max| match max {
            1 => "1 iteration".to_owned(),
            max => format!("{max} iterations"),
        });
        let time = self.task_ms.map(|ms| format!("{} of working time", spell_ms(ms)));
        let parts: Vec<String> = [iterations, time, self.micro_usd.map(usd)].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
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
pub struct Candidate {
    /// The base it was merged into.
    pub base: Commit,
    /// The work.
    pub head: Commit,
    /// The merge.
    pub commit: Commit,
    /// Its tree.
    pub tree: Tree,
}

/// What the next run of the agent should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feedback {
    /// A heading.
    pub about: String,
    /// The words.
    pub text: String,
}

/// Something about a change that wants a person's eye.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concern {
    /// What it is.
    pub code: ConcernCode,
    /// Where.
    pub detail: String,
}

/// The kinds of concern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConcernCode {
    /// It touches the rules it is judged by.
    ProtectedPath,
    /// It deletes a test file.
    TestDeleted,
    /// It switches a test off.
    TestSkipped,
    /// It removes test functions.
    TestRemoved,
    /// Fewer tests ran than on the base.
    FewerTests,
    /// It changes a file that decides what the checks do.
    ProtectedInput,
    /// A test lost its assertions, or cannot fail.
    EmptyTest,
    /// Code reaches into the test runner.
    RunnerPatched,
    /// A test of the base fails against the work.
    BaseTestFails,
    /// Settings want a person to look.
    ReviewAsked,
    /// A reviewer and the agent do not agree.
    Disputed,
}

impl ConcernCode {
    /// Every code there is.
    pub const ALL: [Self; 11] = [
        Self::ProtectedPath,
        Self::TestDeleted,
        Self::TestSkipped,
        Self::TestRemoved,
        Self::FewerTests,
        Self::ProtectedInput,
        Self::EmptyTest,
        Self::RunnerPatched,
        Self::BaseTestFails,
        Self::ReviewAsked,
        Self::Disputed,
    ];

    /// The word people and files use.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::ProtectedPath => "protected-path",
            Self::TestDeleted => "test-deleted",
            Self::TestSkipped => "test-skipped",
            Self::TestRemoved => "test-removed",
            Self::FewerTests => "fewer-tests",
            Self::ProtectedInput => "protected-input",
            Self::EmptyTest => "empty-test",
            Self::RunnerPatched => "runner-patched",
            Self::BaseTestFails => "base-test-fails",
            Self::ReviewAsked => "review-asked",
            Self::Disputed => "disputed",
        }
    }
}

impl fmt::Display for Concern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.code {
            ConcernCode::ProtectedPath => "changes a protected path",
            ConcernCode::TestDeleted => "deletes a test file",
            ConcernCode::TestSkipped => "switches a test off",
            ConcernCode::TestRemoved => "removes tests",
            ConcernCode::FewerTests => "runs fewer tests than the base",
            ConcernCode::ProtectedInput => "changes what the checks do",
            ConcernCode::EmptyTest => "empties tests",
            ConcernCode::RunnerPatched => "reaches into the test runner",
            ConcernCode::BaseTestFails => "fails tests of the base",
            ConcernCode::ReviewAsked => "is to be reviewed",
            ConcernCode::Disputed => "is disputed between reviewer and agent",
        };
        write!(f, "{what}: {}", self.detail)
    }
}

/// Where a task landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
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

/// What may be used, frozen into the journal when a task is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskLimits {
    /// Runs of the agent in all.
    pub iterations_max: u32,
    /// Working time in all: agents and verification; waits do not count.
    pub task_ms: u64,
    /// Runs in a row without a commit before a warning; before the end, where the unchanged work is red.
    pub stuck_after: u32,
    /// Crashes and losses of the agent before giving up.
    pub restarts_max: u32,
    /// Stalls in one step before giving up; progress resets it.
    pub stalls_step_max: u32,
    /// Stalls in all before giving up; only a person's retry resets it.
    pub stalls_total_max: u32,
    /// Conflicts with the base before a person is asked.
    pub conflicts_max: u32,
    /// How long a person has for a conflict that is theirs.
    pub conflict_ms: u64,
    /// What happens after that.
    pub overdue: Overdue,
    /// Whether a person looks at it.
    pub review: ReviewRule,
    /// Times the agent may be told that it goes round in a circle.
    pub loops_max: u32,
    /// How full a context may be, in per cent, before its session is asked to sum itself up.
    pub compact_percent: u32,
    /// What one attempt may spend.
    pub attempt_budget: Budget,
    /// What the task may spend.
    pub task_budget: Budget,
    /// What its kind asks of checks, as far as earlier tasks of that kind taught; none when nobody said what kind it is.
    pub tuning: Option<Params>,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            iterations_max: 50,
            task_ms: 30 * 60 * 1000,
            stuck_after: 5,
            restarts_max: 3,
            stalls_step_max: 3,
            stalls_total_max: 10,
            conflicts_max: 3,
            conflict_ms: 60 * 60 * 1000,
            overdue: Overdue::Defer,
            review: ReviewRule::default(),
            loops_max: 3,
            compact_percent: 82,
            attempt_budget: Budget::default(),
            task_budget: Budget::default(),
            tuning: None,
        }
    }
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
    pub usage: Usage,
    /// Working time of agents alone.
    pub agent_ms: u64,
    /// What this attempt has spent.
    pub attempt: Spending,
}

/// How a task is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// The status it leaves.
    pub kind: EndKind,
    /// The named reason.
    pub code: EndCode,
    /// In words.
    pub detail: String,
}

/// The statuses a task can end in. Only `Done` and `Cancelled` are final; a person may retry the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndKind {
    /// Landed, or accepted in a flow without landing.
    Done,
    /// Gave up.
    Failed,
    /// Used up its time or its iterations.
    Timeout,
    /// Cannot go on without a person.
    Blocked,
    /// A person wants it no more.
    Cancelled,
}

impl EndKind {
    /// Every kind there is.
    pub const ALL: [Self; 5] = [Self::Done, Self::Failed, Self::Timeout, Self::Blocked, Self::Cancelled];
}

/// Named reasons for an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndCode {
    /// The base holds it.
    Landed,
    /// The flow has no landing and reached its end.
    Accepted,
    /// Every iteration was used.
    MaxIterations,
    /// The working time was used.
    TaskLimit,
    /// The agent said so.
    AgentBlocked,
    /// The agent crashed too often.
    AgentCrashed,
    /// The agent vanished too often.
    AgentLost,
    /// The agent could not be started.
    AgentNotStarted,
    /// The agent stalled too often.
    StallLimit,
    /// The provider's troubles did not pass.
    TransientLimit,
    /// The agent went round in a circle and could not be brought out of it.
    ReasoningLoop,
    /// A budget was used.
    Budget,
    /// The agent ran out of context again and again.
    ContextBudget,
    /// COMPLETE without a change: twice on no work at all, or again and again on work that is red.
    NothingChanged,
    /// An edge of the flow was taken as often as it may.
    EdgeLimit,
    /// The flow says stop.
    FlowStop,
    /// It conflicts with the base and the agent could not resolve it.
    ConflictLimit,
    /// The independent check after landing did not agree.
    LandingMismatch,
    /// Something on this machine failed for good.
    Machine,
    /// The flow has a step this version does not perform.
    UnsupportedStep,
    /// A reviewer said no.
    Rejected,
    /// A person said so.
    Person,
    /// Its target says nothing.
    EmptyTarget,
    /// The judge says that it cannot be done as it stands.
    CheckBlocked,
    /// The judge failed: nothing is known of the work.
    CheckFailed,
    /// Every direction toward its objective was tried.
    DirectionsUsedUp,
    /// What was promised does not hold, as often as it was mended.
    AcceptanceFailed,
    /// Some of the issues it is made of are not done.
    PartsFailed,
    /// The tracker says no.
    Tracker,
    /// A step failed, and nothing that was tried helped.
    RecoveryFailed,
    /// A step did not leave behind what it must, as often as it may be tried.
    OutputMissing,
}

impl EndCode {
    /// Every code there is.
    pub const ALL: [Self; 31] = [
        Self::Landed,
        Self::Accepted,
        Self::MaxIterations,
        Self::TaskLimit,
        Self::AgentBlocked,
        Self::AgentCrashed,
        Self::AgentLost,
        Self::AgentNotStarted,
        Self::StallLimit,
        Self::TransientLimit,
        Self::ReasoningLoop,
        Self::Budget,
        Self::ContextBudget,
        Self::NothingChanged,
        Self::EdgeLimit,
        Self::FlowStop,
        Self::ConflictLimit,
        Self::LandingMismatch,
        Self::Machine,
        Self::UnsupportedStep,
        Self::Rejected,
        Self::Person,
        Self::EmptyTarget,
        Self::CheckBlocked,
        Self::CheckFailed,
        Self::DirectionsUsedUp,
        Self::AcceptanceFailed,
        Self::PartsFailed,
        Self::Tracker,
        Self::RecoveryFailed,
        Self::OutputMissing,
    ];

    /// The word people and files use.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Landed => "landed",
            Self::Accepted => "accepted",
            Self::MaxIterations => "max_iterations",
            Self::TaskLimit => "task_limit",
            Self::AgentBlocked => "agent_blocked",
            Self::AgentCrashed => "agent_crashed",
            Self::AgentLost => "agent_lost",
            Self::AgentNotStarted => "agent_not_started",
            Self::StallLimit => "stall_limit",
            Self::TransientLimit => "transient_limit",
            Self::ReasoningLoop => "reasoning_loop",
            Self::Budget => "budget",
            Self::ContextBudget => "context_budget",
            Self::NothingChanged => "nothing_changed",
            Self::EdgeLimit => "edge_limit",
            Self::FlowStop => "flow_stop",
            Self::ConflictLimit => "conflict_limit",
            Self::LandingMismatch => "landing_mismatch",
            Self::Machine => "machine",
            Self::UnsupportedStep => "unsupported_step",
            Self::Rejected => "rejected",
            Self::Person => "person",
            Self::EmptyTarget => "empty_target",
            Self::CheckBlocked => "check_blocked",
            Self::CheckFailed => "check_failed",
            Self::DirectionsUsedUp => "directions_used_up",
            Self::AcceptanceFailed => "acceptance_failed",
            Self::PartsFailed => "parts_failed",
            Self::Tracker => "tracker",
            Self::RecoveryFailed => "recovery_failed",
            Self::OutputMissing => "output_missing",
        }
    }
}

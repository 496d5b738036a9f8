//! The catalogue: what a failure looks like, and the one thing that is done about it.

use std::collections::BTreeSet;

use crate::AgentExit;
use crate::issue::ReconcilePoint;
use landfall_facts::recovery::RecoveryOp;

/// How many lines of a log are looked at: the end of it, where failures are told.
pub const TAIL_LINES_MAX: usize = 200;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$about])* $variant),+
        }

        impl $name {
            /// All there are.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word for it in files.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// What `word` means.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|it| it.word() == word)
            }
        }
    };
}

words!(
    /// Something that is known of a failed step. What nobody looked for is not in a set of these, and neither is its
    /// opposite.
    Known {
        /// There is a commit for the issue, here or where it is published.
        Commit = "commit",
        /// There is none, and what is published was fetched before saying so.
        NoCommit = "no-commit",
        /// The agent says that it has done it.
        ClaimsSuccess = "claims-success",
        /// It said nothing for as long as it may be silent.
        Silence = "silence",
        /// It was waiting for the checks of a pull request.
        WaitedForChecks = "waited-for-checks",
        /// Its process is gone and nobody saw its end.
        Vanished = "vanished",
        /// Changes that belong to the work are not committed.
        OwnChanges = "own-changes",
        /// The pull request has neither a review nor a comment.
        NoReview = "no-review",
        /// A check failed that did not fail on the base.
        ChecksFailed = "checks-failed",
        /// A check failed that passed on the same commit before.
        ChecksFlaky = "checks-flaky",
        /// Checks were cancelled, timed out or could not begin: they say nothing about the commit.
        ChecksBroken = "checks-broken",
        /// What fails on the work fails on the base too.
        FailsOnBase = "fails-on-base",
        /// The base has moved, and the work merges with it.
        BaseMovedApart = "base-moved-apart",
        /// The base has moved, and the work is in dispute with it.
        BaseMovedOverlapping = "base-moved-overlapping",
        /// A criterion of the issue does not hold.
        CriterionFails = "criterion-fails",
    }
);

/// Something a pattern is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternCondition {
    /// The end of the log holds this text, letter by letter.
    Says(String),
    /// It ended with one of these codes.
    Exit(Vec<i32>),
    /// Whether what it was to bring about is there.
    Matches(bool),
    /// It took less than so many seconds.
    UnderSeconds(u64),
    /// This is known.
    Fact(Known),
}

impl PatternCondition {
    fn is_seen(&self, symptoms: &Symptoms) -> bool {
        match self {
            Self::Says(text) => symptoms.tail.contains(text.as_str()),
            Self::Exit(codes) => symptoms.exit.is_some_and(|code| codes.contains(&code)),
            Self::Matches(wanted) => symptoms.matches == Some(*wanted),
            Self::UnderSeconds(seconds) => symptoms.took_ms < seconds.saturating_mul(1_000),
            Self::Fact(fact) => symptoms.facts.contains(fact),
        }
    }
}

/// What is done about a pattern. Whatever it is, what the step was to bring about is looked for again before anything is
/// believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryAction {
    /// The step is tried again.
    Retry,
    /// The step is tried again after so many seconds.
    RetryAfter(u64),
    /// The step goes on from where the work of the issue is.
    Resume,
    /// The work is put on the base, pushed and offered.
    OpenPr,
    /// The work is put on the base and pushed.
    Rebase,
    /// The last commit is signed off and pushed.
    SignOff,
    /// The checks are waited for.
    WaitCi,
    /// The checks are run again.
    RerunCi,
    /// The phase is set to where the work is, and the step is tried again.
    RestoreLabel,
    /// The review is done again, from the beginning.
    RerunReview,
    /// The review that is there is marked as one.
    MarkReview,
    /// The step is tried again with so many percent of the time it had.
    RaiseTimeout(u32),
    /// The step is tried again in a new workspace; what was in the old one is kept.
    CleanUnrelated,
    /// It goes on as if nothing had happened: what failed does not count.
    Proceed,
    /// No more of the catalogue: an agent is to look.
    Escalate,
    /// It stops for a person.
    Stop,
}

impl RecoveryAction {
    /// Every action, with a made-up number where it has one.
    pub const ALL: [Self; 16] = [
        Self::Retry,
        Self::RetryAfter(0),
        Self::Resume,
        Self::OpenPr,
        Self::Rebase,
        Self::SignOff,
        Self::WaitCi,
        Self::RerunCi,
        Self::RestoreLabel,
        Self::RerunReview,
        Self::MarkReview,
        Self::RaiseTimeout(0),
        Self::CleanUnrelated,
        Self::Proceed,
        Self::Escalate,
        Self::Stop,
    ];

    /// The word for it in files.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::RetryAfter(_) => "retry-after",
            Self::Resume => "resume",
            Self::OpenPr => "open-pr",
            Self::Rebase => "rebase",
            Self::SignOff => "sign-off",
            Self::WaitCi => "wait-ci",
            Self::RerunCi => "rerun-ci",
            Self::RestoreLabel => "restore-label",
            Self::RerunReview => "rerun-review",
            Self::MarkReview => "mark-review",
            Self::RaiseTimeout(_) => "raise-timeout",
            Self::CleanUnrelated => "clean-unrelated",
            Self::Proceed => "proceed",
            Self::Escalate => "escalate",
            Self::Stop => "stop",
        }
    }

    /// The word and its number, as a fact of a task says it.
    #[must_use]
    pub fn to_text(self) -> String {
        match self {
            Self::RetryAfter(seconds) => format!("{} {seconds}", self.wire_name()),
            Self::RaiseTimeout(percent) => format!("{} {percent}", self.wire_name()),
            _ => self.wire_name().to_owned(),
        }
    }

    /// The action that is said like this.
    #[must_use]
    pub fn from_text(said: &str) -> Option<Self> {
        let (word, number) = said.split_once(' ').unwrap_or((said, ""));
        let plain = Self::ALL.into_iter().find(|action| action.wire_name() == word)?;
        match plain {
            Self::RetryAfter(_) => Some(Self::RetryAfter(number.parse().ok()?)),
            Self::RaiseTimeout(_) => Some(Self::RaiseTimeout(number.parse().ok()?)),
            other => number.is_empty().then_some(other),
        }
    }

    /// The operations it takes before the step goes on. One that says where the work is cannot be known here:
    /// [`restored_phase`](super::restored_phase) names the phase.
    #[must_use]
    pub fn to_operations(self) -> Vec<RecoveryOp> {
        match self {
            Self::OpenPr => vec![RecoveryOp::RebaseOntoBase, RecoveryOp::PushBranch, RecoveryOp::OpenPr],
            Self::Rebase => vec![RecoveryOp::RebaseOntoBase, RecoveryOp::PushBranch],
            Self::SignOff => vec![RecoveryOp::AmendSignOff, RecoveryOp::PushBranch],
            Self::RerunCi => vec![RecoveryOp::RerunChecks],
            Self::MarkReview => vec![RecoveryOp::MarkReview],
            Self::Retry
            | Self::RetryAfter(_)
            | Self::Resume
            | Self::WaitCi
            | Self::RestoreLabel
            | Self::RerunReview
            | Self::RaiseTimeout(_)
            | Self::CleanUnrelated
            | Self::Proceed
            | Self::Escalate
            | Self::Stop => Vec::new(),
        }
    }
}

/// A failure that is known, and what is done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// What it is called.
    pub name: String,
    /// What it is, in a sentence for people.
    pub about: String,
    /// In these phases; none means in all.
    pub phases: Vec<ReconcilePoint>,
    /// All of these must be seen.
    pub all: Vec<PatternCondition>,
    /// And at least one of these, if there are any.
    pub any: Vec<PatternCondition>,
    /// What is done.
    pub action: RecoveryAction,
    /// So often for one step of one task.
    pub limit: u32,
    /// A failure that it fits.
    pub sample: PatternSample,
}

impl Pattern {
    /// Whether it fits. One without any sign fits nothing: it would hide all that come after it.
    #[must_use]
    pub fn matches_symptoms(&self, symptoms: &Symptoms) -> bool {
        let somewhere = self.phases.is_empty() || self.phases.contains(&symptoms.phase);
        let all = self.all.iter().all(|sign| sign.is_seen(symptoms));
        let any = self.any.is_empty() || self.any.iter().any(|sign| sign.is_seen(symptoms));
        let has_signs = !(self.all.is_empty() && self.any.is_empty());
        has_signs && somewhere && all && any
    }

    /// Its sample, as if that had just happened.
    #[must_use]
    pub fn sample_symptoms(&self) -> Symptoms {
        let PatternSample { phase, log, exit, took_s, matches, facts } = &self.sample;
        Symptoms {
            phase: *phase,
            exit: *exit,
            took_ms: took_s.saturating_mul(1_000),
            tail: log.clone(),
            matches: *matches,
            facts: facts.clone(),
        }
    }
}

/// A failure that a pattern fits, so that the catalogue can be tried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternSample {
    /// In this phase.
    pub phase: ReconcilePoint,
    /// The end of the log.
    pub log: String,
    /// The exit code.
    pub exit: Option<i32>,
    /// How long it took, in seconds.
    pub took_s: u64,
    /// Whether what it was to bring about was there.
    pub matches: Option<bool>,
    /// What else was known.
    pub facts: BTreeSet<Known>,
}

/// What is known of a step that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symptoms {
    /// Its phase.
    pub phase: ReconcilePoint,
    /// Its exit code; a signal is 128 and its number. None if nobody knows.
    pub exit: Option<i32>,
    /// How long it took.
    pub took_ms: u64,
    /// The end of its log.
    pub tail: String,
    /// Whether what it was to bring about is there; none if that could not be found out.
    pub matches: Option<bool>,
    /// What else is known.
    pub facts: BTreeSet<Known>,
}

impl Symptoms {
    /// What the end of a step says by itself. Of the log only the end is kept; more facts may be put in afterwards.
    #[must_use]
    pub fn from_step_end(
        phase: ReconcilePoint,
        exit: &AgentExit,
        took_ms: u64,
        log: &str,
        matches: Option<bool>,
    ) -> Self {
        let mut facts = BTreeSet::new();
        let code = match exit {
            AgentExit::Code(code) => Some(*code),
            AgentExit::Signal(signal) => Some(128_i32.saturating_add(*signal)),
            AgentExit::Silent => {
                facts.insert(Known::Silence);
                Some(143)
            }
            AgentExit::Deadline
            | AgentExit::Looping
            | AgentExit::ContextUsedUp
            | AgentExit::OverBudget { .. }
            | AgentExit::Asked => Some(143),
            AgentExit::NotStarted { .. } => None,
            AgentExit::Lost => {
                facts.insert(Known::Vanished);
                None
            }
        };
        let tail = last_lines(log);
        if claims_success(&tail) {
            facts.insert(Known::ClaimsSuccess);
        }
        Self { phase, exit: code, took_ms, tail, matches, facts }
    }

    /// What a failure is called that no pattern fits, for counting.
    #[must_use]
    pub fn name(&self) -> String {
        let exit = self.exit.map_or_else(|| "unknown-exit".to_owned(), |code| format!("exit-{code}"));
        format!("unknown/{}/{exit}", self.phase.wire_name())
    }
}

/// The last lines of a log.
fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES_MAX)..].join("\n")
}

/// What agents say when they think that they are done, in small letters. It proves nothing: it tells a run that
/// did nothing from one that gave up.
const CLAIMS: [&str; 9] = [
    "successfully completed",
    "completed successfully",
    "implementation is complete",
    "the task is complete",
    "all done",
    "everything is in place",
    "i have implemented",
    "i've implemented",
    "has been implemented",
];

/// Whether the end of a log says that the work is done.
#[must_use]
pub fn claims_success(log: &str) -> bool {
    let log = log.to_lowercase();
    CLAIMS.iter().any(|claim| log.contains(claim))
}

/// The first pattern that fits.
#[must_use]
pub fn detect_pattern<'a>(catalogue: &'a [Pattern], symptoms: &Symptoms) -> Option<&'a Pattern> {
    catalogue.iter().find(|pattern| pattern.matches_symptoms(symptoms))
}

/// Every pattern whose own sample it does not get, with what gets it instead. A catalogue without any is in order.
#[must_use]
pub fn find_shadowed_patterns(catalogue: &[Pattern]) -> Vec<(&Pattern, Option<&Pattern>)> {
    let found =
        catalogue.iter().map(|pattern| (pattern, detect_pattern(catalogue, &pattern.sample_symptoms())));
    found.filter(|(pattern, found)| found.is_none_or(|found| found.name != pattern.name)).collect()
}

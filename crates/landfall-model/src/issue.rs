//! The way of an issue from its tracker onto the base: how it is routed by its size, what was seen of it, and what of its
//! phases is complete by what was seen. Nobody is asked here; whoever asks a tracker brings what it said.

mod blocked;
mod ci;
mod kind;
mod left;
mod paper;
mod phase;
mod progress;
mod reconcile;
mod rest;
mod retro;
mod rollup;
mod summary;
mod trail;
mod whole;

use std::fmt;

use crate::acceptance::VerifyOutcome;
use crate::flow::TrackerOperation;
use crate::{Commit, TaskSize, Timestamp};

pub use blocked::blockers_in;
pub use ci::{ChecksWait, CiCheck, CiCheckState, CiJobReport, StepEnd, assess_ci_checks, is_ci_overdue};
pub use kind::{IssueKind, closing_words, issue_headline};
pub use landfall_facts::issue::{
    AcceptanceOutcome, CiStatus, IssueEvent, IssueOptions, IssueRoute, IssueSnapshot, PullRequestRef,
    PullRequestSnapshot, PullRequestState, ReviewDepth, RoutingDecision, SubIssue, SubIssueEnd,
    SubIssueOutcome,
};
pub use left::{LandedIssue, OpenCheckbox, describe_open_boxes, is_left, left_boxes};
pub use paper::{
    DocumentSection, Handoff, ImprovementIdea, ImprovementTier as ProposalTier, IssueDocument, Retrospective,
    later_handoff, normalize_title,
};
pub use phase::{IssuePhase, aggregate_phase};
pub use progress::{IssueProgress, PhaseProgress, PhaseStatus};
pub use reconcile::{ReconcilePoint, ReconcileResult, check_completion, check_precondition};
pub use rest::{WaitTimes, WaitsFor};
pub use retro::{IssueRetrospective, PartLine, issue_retrospective};
pub use rollup::{PhaseRow, RecoveryRow, SessionRow, TokenRow, TraceRollup, roll_up_traces};
pub use summary::{
    IssueSummaryState, Summary, SummaryRow, describe_left_open, describe_unmet_criteria,
    explain_issue_closed, is_of_another_base, is_partial, is_through, suggest_resume, summarize_issue,
};
pub use trail::{IssueTraceEvent, Trace, build_trail};
pub use whole::{
    SubIssueProgress, SubIssuesState, dependency_levels, earlier_outcome_feedback, goes_on_with_whole,
    is_taken_on_by, resting_sub_issues, stays_closed, sub_issues_state,
};

/// An issue by its tracker and its number: what a task that follows it has as its source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IssueRef {
    /// The tracker, as settings call it.
    pub tracker: String,
    /// The number there.
    pub number: u64,
}

impl fmt::Display for IssueRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:#{}", self.tracker, self.number)
    }
}

impl IssueRef {
    /// The issue a task came from, if it came from one.
    #[must_use]
    pub fn from_source(source: &str) -> Option<Self> {
        let (tracker, number) = source.split_once(":#")?;
        let number = number.parse().ok().filter(|number| *number > 0)?;
        let word = !tracker.is_empty() && tracker.bytes().all(|byte| byte.is_ascii_lowercase());
        word.then(|| Self { tracker: tracker.to_owned(), number })
    }
}

/// The way for an issue of this size. A person's wishes win; a project may want a pull request for everything.
#[must_use]
pub fn route_issue(size: Option<TaskSize>, wishes: &IssueOptions) -> RoutingDecision {
    let (way, spec, depth) = match size {
        Some(TaskSize::XS) => (IssueRoute::Patch, false, ReviewDepth::None),
        Some(TaskSize::S) => (IssueRoute::Patch, true, ReviewDepth::None),
        Some(TaskSize::M) => (IssueRoute::Pr, true, ReviewDepth::Light),
        Some(TaskSize::L) => (IssueRoute::Pr, true, ReviewDepth::Full),
        Some(TaskSize::XL) => (IssueRoute::Split, false, ReviewDepth::Full),
        // Nobody is there to ask: the careful way.
        None => (IssueRoute::Pr, true, ReviewDepth::Light),
    };
    let way = match (wishes.way, way) {
        (Some(wanted), _) => wanted,
        (None, IssueRoute::Patch)
            if wishes.always_pr || wishes.depth.is_some_and(|depth| depth > ReviewDepth::None) =>
        {
            IssueRoute::Pr
        }
        (None, way) => way,
    };
    let spec = spec || (size == Some(TaskSize::XL) && way != IssueRoute::Split);
    let depth = match (way, wishes.depth) {
        (IssueRoute::Patch, _) => ReviewDepth::None,
        (IssueRoute::Split, _) => ReviewDepth::None,
        (IssueRoute::Pr, Some(wanted)) => wanted,
        (IssueRoute::Pr, None) => depth.max(ReviewDepth::Light),
    };
    RoutingDecision { size, way, spec, depth }
}

/// Where an issue goes on, by what was seen of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NextPhase {
    /// It is looked at: what it is, how big it is.
    Triage,
    /// What is to be done is written down.
    Spec,
    /// It is done.
    Code,
    /// Its pull request is there: it is taken up.
    Verify,
    /// It is on the base: its acceptance is looked at.
    Accept,
    /// It is made of others.
    Split,
    /// Nothing is left to do.
    Done,
}

/// Where an issue goes on. What is seen wins over what was remembered.
#[must_use]
pub fn next_phase(seen: &IssueSnapshot, routed: &RoutingDecision) -> NextPhase {
    if !seen.open && seen.phase != Some(IssuePhase::Verify) {
        return match check_completion(ReconcilePoint::Verify, seen).matches {
            // Closed, and its acceptance was never looked at: by hand, or by a commit from elsewhere.
            true if seen.phase.is_some_and(|phase| phase < IssuePhase::Verify) => NextPhase::Accept,
            true => NextPhase::Done,
            false => NextPhase::Accept,
        };
    }
    // Open and labelled as done, with nothing of it on the base: whoever set the label decided so, unless it was opened again.
    // Of an issue that is made of others nothing lands: the label may be ours, and closing it failed. Its way ends with closing it.
    let is_whole = routed.way == IssueRoute::Split && seen.parts > 0;
    let has_work = seen.commit.is_some() || seen.pr.is_some() || is_whole;
    if seen.open && is_issue_done(seen.open, seen.phase, seen.reopened.is_some()) && !has_work {
        return NextPhase::Done;
    }
    // Otherwise somebody opened it again, or it was never closed. What can be seen says which.
    let phase = seen.phase.filter(|phase| *phase != IssuePhase::Done);
    if wants_triage(seen.triaged, seen.phase) {
        return NextPhase::Triage;
    }
    if routed.way == IssueRoute::Split {
        return NextPhase::Split;
    }
    if phase == Some(IssuePhase::Verify) || seen.commit.is_some() {
        return NextPhase::Accept;
    }
    match &seen.pr {
        Some(PullRequestSnapshot { state: PullRequestState::Merged, .. }) => return NextPhase::Accept,
        Some(PullRequestSnapshot { state: PullRequestState::Open, head: Some(_), .. }) => {
            return NextPhase::Verify;
        }
        Some(_) | None => {}
    }
    let specified = phase >= Some(IssuePhase::Ready) || seen.spec_file.is_some();
    if routed.spec && !specified { NextPhase::Spec } else { NextPhase::Code }
}

/// Whether nothing is left to do for an issue, and nobody has to wait for it. The label of the phase `done` counts on an open issue,
/// too, unless a person opened the issue again: the label stays, and what it says is no longer true.
#[must_use]
pub fn is_issue_done(open: bool, phase: Option<IssuePhase>, reopened: bool) -> bool {
    !open || phase == Some(IssuePhase::Done) && !reopened
}

/// Whether somebody has to find out first what an open issue is.
#[must_use]
pub fn wants_triage(triaged: bool, phase: Option<IssuePhase>) -> bool {
    !triaged && phase <= Some(IssuePhase::Issue)
}

/// Whether there is anything of an issue that its criteria could be held against: it is closed, it is on the base as far as can be
/// seen, or it was `verified` before and sent back. One that nobody worked on is only looked at.
#[must_use]
pub fn is_begun(seen: &IssueSnapshot, verified: bool) -> bool {
    let merged = seen.pr.as_ref().is_some_and(|pr| pr.state == PullRequestState::Merged);
    verified || !seen.open || seen.phase >= Some(IssuePhase::Verify) || seen.commit.is_some() || merged
}

/// What an issue without criteria comes to. What landed, and a whole whose parts are done, is done; where nothing of ours landed, nothing
/// says that it is.
#[must_use]
pub fn outcome_without_criteria(landed: bool, whole: bool) -> VerifyOutcome {
    if landed || whole { VerifyOutcome::Done } else { VerifyOutcome::Unsure }
}

/// What a whole comes to when so many of its parts landed and are left for a person: no further than they are.
#[must_use]
pub fn with_left(outcome: VerifyOutcome, left: usize) -> VerifyOutcome {
    match outcome {
        VerifyOutcome::Done if left > 0 => VerifyOutcome::LeftOver(left),
        VerifyOutcome::LeftOver(own) => VerifyOutcome::LeftOver(own + left),
        VerifyOutcome::Done
        | VerifyOutcome::Reopen { .. }
        | VerifyOutcome::Exhausted { .. }
        | VerifyOutcome::Waiting
        | VerifyOutcome::Unsure => outcome,
    }
}

/// How many of these parts landed and are left for a person, by what can be seen of them.
#[must_use]
pub fn count_parts_left(parts: &[SubIssue]) -> usize {
    parts.iter().filter(|part| !part.done && part.at_verify).count()
}

/// Whether checks of a forge that are not there yet may still begin. Where the base has none, none come; and a forge takes a moment, but
/// no more than that.
#[must_use]
pub fn checks_may_begin(base_has_some: bool, since: Option<Timestamp>, now: Timestamp) -> bool {
    base_has_some && since.is_none_or(|since| now < since.plus_ms(CHECKS_BEGIN_MS))
}

const CHECKS_BEGIN_MS: u64 = 90_000; // a forge under load; ours have passed already

/// Whether a forge that did not merge verified work when it was asked may yet do so by itself: it looks at the work, or was
/// told of it only just now. Otherwise a person has to do something there.
#[must_use]
pub fn may_merge_yet(checks: &CiStatus, base_has_some: bool, waited: MergeWait) -> bool {
    match checks {
        CiStatus::Running(_) => waited.total_ms < CHECKS_END_MS,
        CiStatus::Absent if base_has_some => waited.total_ms < CHECKS_BEGIN_MS,
        // Checks may have ended after the forge was asked to merge: it is asked again, some times.
        CiStatus::Absent | CiStatus::Passed => waited.asked_since_running < FORGE_NOTICES_AFTER,
        CiStatus::Failed(_) | CiStatus::PreExisting(_) | CiStatus::Broken(_) => false,
    }
}

/// How long a forge that does not merge was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeWait {
    /// Since it was first asked, in milliseconds.
    pub total_ms: u64,
    /// How often it refused since its checks were last seen to run, or since it was first asked.
    pub asked_since_running: u32,
}

/// How long to leave a forge alone that refused to merge so often, where nothing has changed since: a person has to do something
/// there, and may be asleep.
#[must_use]
pub fn refused_merge_pause_ms(times: u32) -> u64 {
    crate::decide::backoff_ms(times, REFUSED_MS, REFUSED_MAX_MS)
}

const REFUSED_MS: u64 = 60_000;
const REFUSED_MAX_MS: u64 = 1_800_000;
const CHECKS_END_MS: u64 = 1_200_000; // longer than most; whoever waits then is told, and the next run goes on
const FORGE_NOTICES_AFTER: u32 = 4; // questions until it knows of a push, and that checks are over

/// How an issue was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IssueResolution {
    /// What it asks for is there.
    Done,
    /// Nobody will do it.
    NotPlanned,
}

impl IssueResolution {
    /// The words people use.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::NotPlanned => "not planned",
        }
    }
}

/// Whether a task stops before `act` because its issue was closed since it began. Until the work has landed it is a person who
/// closes it. After that a forge closes it by itself, and so do we, as done: what was promised is still held against what landed.
/// What nobody will do any more is left alone in any case. Where work was `made` and is kept, the task is not over by that: it goes on
/// once the issue is open again.
#[must_use]
pub fn stops_at(act: TrackerOperation, closed: IssueResolution, made: bool) -> bool {
    match (act, closed) {
        (TrackerOperation::Observe, IssueResolution::NotPlanned) => made,
        (TrackerOperation::Observe, IssueResolution::Done) => false, // it says by itself where an issue goes on that is closed
        (
            TrackerOperation::Triaged
            | TrackerOperation::Sized
            | TrackerOperation::Offer
            | TrackerOperation::Checks
            | TrackerOperation::Reviewed
            | TrackerOperation::Gather,
            _,
        ) => true,
        (
            TrackerOperation::Merged | TrackerOperation::Accept | TrackerOperation::Close,
            IssueResolution::NotPlanned,
        ) => true,
        (
            TrackerOperation::Merged | TrackerOperation::Accept | TrackerOperation::Close,
            IssueResolution::Done,
        ) => false,
    }
}

/// Whether a pull request of an issue's branch belongs to the round of work that is under way: it is the one that was offered in
/// it. What landed and did not hold was an earlier round.
#[must_use]
pub fn is_of_round(number: u64, pipeline: &Pipeline) -> bool {
    match &pipeline.pr {
        Some(pr) => pr.number == number,
        None => pipeline.reworks == 0,
    }
}

/// What is known of the issue a task follows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pipeline {
    /// What a person said about the way.
    pub wishes: IssueOptions,
    /// What was last seen.
    pub seen: Option<IssueSnapshot>,
    /// The way it takes.
    pub routed: Option<RoutingDecision>,
    /// Its pull request.
    pub pr: Option<PullRequestRef>,
    /// What the forge's checks last came to, and since when they have been waited for.
    pub ci: Option<(CiStatus, Timestamp)>,
    /// What its acceptance last came to.
    pub accepted: Option<AcceptanceOutcome>,
    /// How often it landed and did not hold what it promised.
    pub reworks: u32,
    /// What it is made of.
    pub parts: Vec<SubIssue>,
    /// How they ended, once none goes on.
    pub ends: Option<Vec<SubIssueEnd>>,
    /// How they ended the time before, if it was made of others before.
    pub ended_before: Vec<SubIssueEnd>,
    /// How far its parts have come, while some go on.
    pub level: SubIssueProgress,
    /// Readers that have read the work as it is.
    pub readers: u32,
    /// How often something outside was looked for in vain.
    pub looks: u32,
    /// Where the branch stood when an agent last committed work, and not only papers about it.
    pub authored: Option<Commit>,
}

impl Pipeline {
    /// How many of its parts landed and are left for a person.
    #[must_use]
    pub fn parts_left(&self) -> usize {
        self.ends.iter().flatten().filter(|end| end.end == SubIssueOutcome::Left).count()
    }

    /// How many readers the work has.
    #[must_use]
    pub fn readers_wanted(&self) -> u32 {
        self.routed.map_or(1, |routed| routed.depth.reader_count().max(1))
    }

    /// One more reader has read the work; whether another is to.
    pub(crate) fn read_once_more(&mut self) -> bool {
        self.readers += 1;
        let more = self.readers < self.readers_wanted();
        if !more {
            self.readers = 0;
        }
        more
    }

    pub(crate) fn apply_event(&mut self, at: Timestamp, event: &IssueEvent) {
        match event {
            IssueEvent::Wanted(wishes) => self.wishes = wishes.clone(),
            IssueEvent::Seen { seen, .. } => {
                self.seen = Some((**seen).clone());
                self.looks = 0;
            }
            IssueEvent::Routed(routed) => self.routed = Some(*routed),
            IssueEvent::Offered { pr, .. } => {
                self.pr = Some(pr.clone());
                self.ci = None;
            }
            IssueEvent::Checks { ci, .. } => {
                let since = self.ci.as_ref().map_or(at, |(_, since)| *since);
                self.ci = Some((ci.clone(), since));
            }
            IssueEvent::Accepted { accepted, .. } => self.accepted = Some(accepted.clone()),
            IssueEvent::Looked { .. } => self.looks += 1,
            IssueEvent::Reworked { .. } => {
                self.reworks += 1;
                (self.pr, self.ci, self.readers, self.looks) = (None, None, 0, 0);
            }
            IssueEvent::Parted { parts, .. } => {
                self.parts.clone_from(parts);
                self.ended_before = self.ends.take().unwrap_or_default();
                self.level = SubIssueProgress::default();
            }
            IssueEvent::PartsOver(ends) => self.ends = Some(ends.clone()),
            IssueEvent::PartsCame { over, levels } => {
                (self.level.over, self.level.levels) = (over.clone(), *levels);
                self.level.told = false;
            }
            IssueEvent::Levelled { failing, .. } => {
                let levels = self.level.levels;
                (self.level.failing, self.level.held, self.level.told) = (failing.clone(), levels, true);
                self.looks = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests;

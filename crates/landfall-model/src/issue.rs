//! The way of an issue from its tracker onto the base: how it is routed by its size, what was seen of it, and what of its
//! phases is complete by what was seen. Nobody is asked here; whoever asks a tracker brings what it said.

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

use crate::acceptance::{VerifyOutcome, VerifyResult};
use crate::flow::Act;
use crate::{Attempt, Commit, Size, TaskId, Timestamp};

pub use ci::{CheckStand, SeenCheck, SeenJob, StepEnd, Waited, overdue, weigh};
pub use kind::{IssueKind, closing_words, headline};
pub use left::{LandedIssue, LeftBox, is_left, left_boxes, left_words};
pub use paper::{
    Handoff, Improvement, Paper, Retrospective, Section, Tier as ProposalTier, later, normalised,
};
pub use phase::{Phase, aggregate};
pub use progress::{Mark, Progress, Row};
pub use reconcile::{Point, Reconciled, completion, precondition};
pub use rest::{Waits, WaitsFor};
pub use retro::{Lookback, lookback};
pub use rollup::{PhaseRow, RecoveryRow, Rollup, SessionRow, TokenRow, rollup};
pub use summary::{
    Stand, Summary, SummaryRow, again, closed_meanwhile, is_of_another_base, is_partial, is_through,
    left_open, summary, unmet,
};
pub use trail::{Happening, Trace, trail};
pub use whole::{
    Level, Parts, goes_on_with_whole, is_taken_on_by, known_before, levels, resting, stand, stays_closed,
};

/// An issue by its tracker and its number: what a task that follows it has as its source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// The tracker, as settings call it.
    pub tracker: String,
    /// The number there.
    pub number: u64,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:#{}", self.tracker, self.number)
    }
}

impl Source {
    /// The issue a task came from, if it came from one.
    #[must_use]
    pub fn of(source: &str) -> Option<Self> {
        let (tracker, number) = source.split_once(":#")?;
        let number = number.parse().ok().filter(|number| *number > 0)?;
        let word = !tracker.is_empty() && tracker.bytes().all(|byte| byte.is_ascii_lowercase());
        word.then(|| Self { tracker: tracker.to_owned(), number })
    }
}

/// How the work of an issue gets onto the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// Straight from its branch.
    Patch,
    /// By a pull request that is reviewed first.
    Pr,
    /// By the issues it is made of.
    Split,
}

impl Way {
    /// The word people and files use.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Patch => "patch",
            Self::Pr => "pr",
            Self::Split => "sub-issues",
        }
    }
}

/// How closely a pull request is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Depth {
    /// Not at all.
    None,
    /// By one reader.
    Light,
    /// By several, and what they find is verified.
    Full,
}

impl Depth {
    /// Every depth, the least first.
    pub const ALL: [Self; 3] = [Self::None, Self::Light, Self::Full];

    /// The word people and files use.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Light => "light",
            Self::Full => "full",
        }
    }
}

/// What a person said about the way an issue is to take. What they did not say follows from its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wishes {
    /// This way, whatever its size.
    pub way: Option<Way>,
    /// Read this closely.
    pub depth: Option<Depth>,
    /// Whether its acceptance is looked at once it has landed; otherwise it is left for a person.
    pub accept: bool,
    /// Whether the project wants a pull request for everything.
    pub always_pr: bool,
}

impl Default for Wishes {
    fn default() -> Self {
        Self { way: None, depth: None, accept: true, always_pr: false }
    }
}

/// The way that was found for an issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Routed {
    /// By this size; none if nobody said.
    pub size: Option<Size>,
    /// This way.
    pub way: Way,
    /// Whether what is to be done is written down before it is done.
    pub spec: bool,
    /// How closely it is read.
    pub depth: Depth,
}

/// The way for an issue of this size. A person's wishes win; a project may want a pull request for everything.
#[must_use]
pub fn route(size: Option<Size>, wishes: &Wishes) -> Routed {
    let (way, spec, depth) = match size {
        Some(Size::XS) => (Way::Patch, false, Depth::None),
        Some(Size::S) => (Way::Patch, true, Depth::None),
        Some(Size::M) => (Way::Pr, true, Depth::Light),
        Some(Size::L) => (Way::Pr, true, Depth::Full),
        Some(Size::XL) => (Way::Split, false, Depth::Full),
        // Nobody is there to ask: the careful way.
        None => (Way::Pr, true, Depth::Light),
    };
    let way = match (wishes.way, way) {
        (Some(wanted), _) => wanted,
        (None, Way::Patch) if wishes.always_pr || wishes.depth.is_some_and(|depth| depth > Depth::None) => {
            Way::Pr
        }
        (None, way) => way,
    };
    let spec = spec || (size == Some(Size::XL) && way != Way::Split);
    let depth = match (way, wishes.depth) {
        (Way::Patch, _) => Depth::None,
        (Way::Split, _) => Depth::None,
        (Way::Pr, Some(wanted)) => wanted,
        (Way::Pr, None) => depth.max(Depth::Light),
    };
    Routed { size, way, spec, depth }
}

impl Routed {
    /// The phases it goes through, in order, as `[n/m]` counts them.
    #[must_use]
    pub fn phases(&self) -> Vec<&'static str> {
        let mut phases = Vec::new();
        if self.spec {
            phases.push("spec");
        }
        match self.way {
            Way::Patch => phases.push("code"),
            Way::Pr if self.depth == Depth::None => phases.extend(["code", "merge"]),
            Way::Pr => phases.extend(["code", "review", "merge"]),
            Way::Split => phases.push("sub-issues"),
        }
        phases.push("verify");
        phases
    }

    /// In words: `M: pull request, light review`.
    #[must_use]
    pub fn words(&self) -> String {
        let size = self.size.map_or_else(|| "no size".to_owned(), |size| size.to_string());
        let how = match (self.way, self.depth) {
            (Way::Patch, _) => "patch".to_owned(),
            (Way::Split, _) => "sub-issues".to_owned(),
            (Way::Pr, Depth::None) => "pull request without review".to_owned(),
            (Way::Pr, depth) => format!("pull request, {} review", depth.word()),
        };
        format!("{size}: {how}{}", if self.spec { ", spec first" } else { "" })
    }
}

/// What was seen of an issue, all at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// Its number.
    pub number: u64,
    /// Its title and body, as they are there.
    pub words: (String, String),
    /// Whether it waits to be done.
    pub open: bool,
    /// The phase its label says; of several, the furthest.
    pub phase: Option<Phase>,
    /// All its labels.
    pub labels: Vec<String>,
    /// Whether somebody has looked at what it is.
    pub triaged: bool,
    /// How big it is.
    pub size: Option<Size>,
    /// What kind of work its label says it is: `bug`, `feature`, `task`.
    pub kind: Option<String>,
    /// The pull request of its branch.
    pub pr: Option<SeenPr>,
    /// Where what is to be done is written down.
    pub spec_file: Option<String>,
    /// The newest commit on the base that says it closes it, made after it was last opened.
    pub commit: Option<Commit>,
    /// When it was last opened again.
    pub reopened: Option<Timestamp>,
    /// How many issues it is made of.
    pub parts: u32,
    /// The open issues it waits for.
    pub blockers: Vec<String>,
    /// Whether the base is another branch than the one whose commits close issues there.
    pub side_base: bool,
}

/// What was seen of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenPr {
    /// Its number.
    pub number: u64,
    /// Where a person looks at it.
    pub url: String,
    /// Where it stands.
    pub state: SeenPrState,
    /// What its branch points at.
    pub head: Option<Commit>,
    /// Whether a reader of ours has summed up what they think of it.
    pub reviewed: bool,
}

/// Where a pull request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SeenPrState {
    /// It waits to be merged.
    Open,
    /// It was closed without.
    Closed,
    /// It is merged.
    Merged,
}

impl SeenPrState {
    /// The word trackers use.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "OPEN",
            Self::Closed => "CLOSED",
            Self::Merged => "MERGED",
        }
    }
}

/// Where an issue goes on, by what was seen of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Onward {
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
pub fn onward(seen: &Seen, routed: &Routed) -> Onward {
    if !seen.open && seen.phase != Some(Phase::Verify) {
        return match completion(Point::Verify, seen).matches {
            // Closed, and its acceptance was never looked at: by hand, or by a commit from elsewhere.
            true if seen.phase.is_some_and(|phase| phase < Phase::Verify) => Onward::Accept,
            true => Onward::Done,
            false => Onward::Accept,
        };
    }
    // Open and said to be done: somebody opened it again, or it was never closed. What can be seen says which.
    let phase = seen.phase.filter(|phase| *phase != Phase::Done);
    if wants_triage(seen.triaged, seen.phase) {
        return Onward::Triage;
    }
    if routed.way == Way::Split {
        return Onward::Split;
    }
    if phase == Some(Phase::Verify) || seen.commit.is_some() {
        return Onward::Accept;
    }
    match &seen.pr {
        Some(SeenPr { state: SeenPrState::Merged, .. }) => return Onward::Accept,
        Some(SeenPr { state: SeenPrState::Open, head: Some(_), .. }) => return Onward::Verify,
        Some(_) | None => {}
    }
    let specified = phase >= Some(Phase::Ready) || seen.spec_file.is_some();
    if routed.spec && !specified { Onward::Spec } else { Onward::Code }
}

/// Whether somebody has to find out first what an open issue is.
#[must_use]
pub fn wants_triage(triaged: bool, phase: Option<Phase>) -> bool {
    !triaged && phase <= Some(Phase::Issue)
}

/// Whether there is anything of an issue that its criteria could be held against: it is closed, it is on the base as far as can be
/// seen, or it was `verified` before and sent back. One that nobody worked on is only looked at.
#[must_use]
pub fn is_begun(seen: &Seen, verified: bool) -> bool {
    let merged = seen.pr.as_ref().is_some_and(|pr| pr.state == SeenPrState::Merged);
    verified || !seen.open || seen.phase >= Some(Phase::Verify) || seen.commit.is_some() || merged
}

/// What an issue without criteria comes to. What landed, and a whole whose parts are done, is done; where nothing of ours landed, nothing
/// says that it is.
#[must_use]
pub fn unasked(landed: bool, whole: bool) -> VerifyOutcome {
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
pub fn left_of(parts: &[Part]) -> usize {
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
pub fn may_merge_yet(checks: &Ci, base_has_some: bool, waited: MergeWait) -> bool {
    match checks {
        Ci::Running(_) => waited.total_ms < CHECKS_END_MS,
        Ci::Absent if base_has_some => waited.total_ms < CHECKS_BEGIN_MS,
        // Checks may have ended after the forge was asked to merge: it is asked again, some times.
        Ci::Absent | Ci::Passed => waited.asked_since_running < FORGE_NOTICES_AFTER,
        Ci::Failed(_) | Ci::PreExisting(_) | Ci::Broken(_) => false,
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
pub fn refused_rest_ms(times: u32) -> u64 {
    crate::decide::backoff_ms(times, REFUSED_MS, REFUSED_MAX_MS)
}

const REFUSED_MS: u64 = 60_000;
const REFUSED_MAX_MS: u64 = 1_800_000;
const CHECKS_END_MS: u64 = 1_200_000; // longer than most; whoever waits then is told, and the next run goes on
const FORGE_NOTICES_AFTER: u32 = 4; // questions until it knows of a push, and that checks are over

/// How an issue was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClosedAs {
    /// What it asks for is there.
    Done,
    /// Nobody will do it.
    NotPlanned,
}

impl ClosedAs {
    /// The words people use.
    #[must_use]
    pub fn words(self) -> &'static str {
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
pub fn stops_at(act: Act, closed: ClosedAs, made: bool) -> bool {
    match (act, closed) {
        (Act::Observe, ClosedAs::NotPlanned) => made,
        (Act::Observe, ClosedAs::Done) => false, // it says by itself where an issue goes on that is closed
        (Act::Triaged | Act::Sized | Act::Offer | Act::Checks | Act::Reviewed | Act::Gather, _) => true,
        (Act::Merged | Act::Accept | Act::Close, ClosedAs::NotPlanned) => true,
        (Act::Merged | Act::Accept | Act::Close, ClosedAs::Done) => false,
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

/// A pull request of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pr {
    /// Its number.
    pub number: u64,
    /// Where a person looks at it.
    pub url: String,
    /// The work it was last told of.
    pub head: Commit,
}

/// What the checks of a forge came to for a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ci {
    /// There are none.
    Absent,
    /// Some are not over.
    Running(Vec<String>),
    /// All that count passed.
    Passed,
    /// These failed, and did not fail on the base.
    Failed(Vec<String>),
    /// These failed on the base as well.
    PreExisting(Vec<String>),
    /// These say nothing about the commit: cancelled, timed out, could not begin.
    Broken(Vec<String>),
}

/// What looking at the acceptance of an issue came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// Each criterion: its words, the result, what was seen.
    pub items: Vec<(String, VerifyResult, String)>,
    /// What they come to.
    pub outcome: VerifyOutcome,
}

impl Accepted {
    /// What does not hold, for whoever is to mend it.
    #[must_use]
    pub fn complaint(&self) -> String {
        let failed = self.items.iter().filter(|(_, result, _)| *result == VerifyResult::Fail);
        failed.map(|(words, _, seen)| format!("- {words}\n  {}\n", seen.replace('\n', "\n  "))).collect()
    }
}

/// One of the issues that another is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// How big it is.
    pub size: Option<Size>,
    /// Whether it is done already.
    pub done: bool,
    /// Whether it landed, as its label says, and its acceptance is all that is left.
    pub at_verify: bool,
    /// The parts of the same whole that it waits for.
    pub needs: Vec<u64>,
}

/// How a part ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartEnd {
    /// Its number.
    pub number: u64,
    /// Its task, if it has one.
    pub task: Option<TaskId>,
    /// How.
    pub end: PartFate,
}

/// What became of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartFate {
    /// It is done.
    Done,
    /// It landed, and something of it is left for a person to look at.
    Left,
    /// It is not, for this reason.
    Failed(String),
    /// It never began: this one is in its way.
    Skipped(u64),
}

/// A fact about a task that follows an issue.
#[derive(Debug, Clone, PartialEq)]
pub enum IssueEvent {
    /// A person wants it done, in this way.
    Wanted(Wishes),
    /// It was looked at.
    Seen {
        /// By this attempt.
        attempt: Attempt,
        /// And was like this.
        seen: Box<Seen>,
    },
    /// The way it takes was settled, or changed.
    Routed(Routed),
    /// Its work was offered as a pull request.
    Offered {
        /// By this attempt.
        attempt: Attempt,
        /// This one.
        pr: Pr,
    },
    /// The forge's own checks were looked at.
    Checks {
        /// By this attempt.
        attempt: Attempt,
        /// And came to this.
        ci: Ci,
    },
    /// Its acceptance was looked at.
    Accepted {
        /// By this attempt.
        attempt: Attempt,
        /// And came to this.
        accepted: Accepted,
    },
    /// Something outside was looked for and had not happened.
    Looked {
        /// By this attempt.
        attempt: Attempt,
    },
    /// It landed and does not hold what it promised: it is to be worked on again.
    Reworked {
        /// By this attempt.
        attempt: Attempt,
    },
    /// It was found to be made of others.
    Parted {
        /// By this attempt.
        attempt: Attempt,
        /// These.
        parts: Vec<Part>,
    },
    /// None of its parts goes on any more; or how they ended was looked at again.
    PartsOver(Vec<PartEnd>),
    /// More of its parts are over, and others go on.
    PartsCame {
        /// These are.
        over: Vec<u64>,
        /// So many levels of them are over as a whole.
        levels: u32,
    },
    /// What it promises as a whole was looked at while its parts go on.
    Levelled {
        /// By this attempt.
        attempt: Attempt,
        /// What does not hold so far: the criterion, and what was seen.
        failing: Vec<(String, String)>,
    },
}

impl IssueEvent {
    /// The attempt it belongs to, if it belongs to one.
    #[must_use]
    pub fn fence(&self) -> Option<Attempt> {
        match self {
            Self::Seen { attempt, .. }
            | Self::Offered { attempt, .. }
            | Self::Checks { attempt, .. }
            | Self::Accepted { attempt, .. }
            | Self::Looked { attempt }
            | Self::Reworked { attempt }
            | Self::Levelled { attempt, .. }
            | Self::Parted { attempt, .. } => Some(*attempt),
            Self::Wanted(_) | Self::Routed(_) | Self::PartsOver(_) | Self::PartsCame { .. } => None,
        }
    }

    /// In one line, for people.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Wanted(Wishes { way: None, depth: None, .. }) => {
                "follows its issue, the way its size says".to_owned()
            }
            Self::Wanted(Wishes { way, depth, .. }) => {
                let way = way.map(|way| format!(" by {}", way.word())).unwrap_or_default();
                let depth = depth.map(|depth| format!(", {} review", depth.word())).unwrap_or_default();
                format!("follows its issue{way}{depth}, as you said")
            }
            Self::Seen { seen, .. } => {
                let state = if seen.open { "open" } else { "closed" };
                let phase = seen.phase.map(|phase| format!(", phase/{}", phase.word())).unwrap_or_default();
                let pr =
                    seen.pr.as_ref().map(|pr| format!(", pull request #{} {}", pr.number, pr.state.word()));
                format!("issue #{} is {state}{phase}{}", seen.number, pr.unwrap_or_default())
            }
            Self::Routed(routed) => format!("takes the way of {}", routed.words()),
            Self::Offered { pr, .. } => {
                format!("offered as pull request #{} ({})", pr.number, pr.head.short())
            }
            Self::Checks { ci, .. } => match ci {
                Ci::Absent => "the forge has no checks".to_owned(),
                Ci::Passed => "the checks of the forge passed".to_owned(),
                Ci::Running(names) => format!("checks of the forge run: {}", names.join(", ")),
                Ci::Failed(names) => format!("checks of the forge failed: {}", names.join(", ")),
                Ci::PreExisting(names) => {
                    format!("checks that fail on the base as well: {}", names.join(", "))
                }
                Ci::Broken(names) => format!("checks that say nothing about the work: {}", names.join(", ")),
            },
            Self::Accepted { accepted, .. } => {
                let count =
                    |wanted: VerifyResult| accepted.items.iter().filter(|(_, it, _)| *it == wanted).count();
                let (pass, fail) = (count(VerifyResult::Pass), count(VerifyResult::Fail));
                let rest = accepted.items.len() - pass - fail;
                if accepted.items.is_empty() {
                    return "acceptance: the issue has no criteria, so nothing was held against it"
                        .to_owned();
                }
                format!("acceptance: {pass} hold, {fail} do not, {rest} are left")
            }
            Self::Looked { .. } => "looked, and it had not happened yet".to_owned(),
            Self::Reworked { .. } => {
                "goes back to work: what landed does not hold what was promised".to_owned()
            }
            Self::Parted { parts, .. } => format!("is made of {} issues", parts.len()),
            Self::PartsOver(ends) => {
                let done = ends.iter().filter(|end| end.end == PartFate::Done).count();
                format!("{done} of its {} issues are done, and none goes on", ends.len())
            }
            Self::PartsCame { over, levels } => {
                let over: Vec<String> = over.iter().map(|number| format!("#{number}")).collect();
                format!("of its issues {} are over ({levels} levels), and others go on", over.join(", "))
            }
            Self::Levelled { failing, .. } if failing.is_empty() => {
                "was looked at as a whole while its issues go on".to_owned()
            }
            Self::Levelled { failing, .. } => {
                let words: Vec<&str> = failing.iter().map(|(words, _)| words.as_str()).collect();
                format!("as a whole, this does not hold so far: {}", words.join("; "))
            }
        }
    }

    /// Its name, as logs show it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Wanted(_) => "issue-wanted",
            Self::Seen { .. } => "issue-seen",
            Self::Routed(_) => "issue-routed",
            Self::Offered { .. } => "issue-offered",
            Self::Checks { .. } => "issue-checks",
            Self::Accepted { .. } => "issue-accepted",
            Self::Looked { .. } => "issue-looked",
            Self::Reworked { .. } => "issue-reworked",
            Self::Parted { .. } => "issue-parted",
            Self::PartsOver(_) => "issue-parts-over",
            Self::PartsCame { .. } => "issue-parts-came",
            Self::Levelled { .. } => "issue-levelled",
        }
    }
}

/// What is known of the issue a task follows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pipeline {
    /// What a person said about the way.
    pub wishes: Wishes,
    /// What was last seen.
    pub seen: Option<Seen>,
    /// The way it takes.
    pub routed: Option<Routed>,
    /// Its pull request.
    pub pr: Option<Pr>,
    /// What the forge's checks last came to, and since when they have been waited for.
    pub ci: Option<(Ci, Timestamp)>,
    /// What its acceptance last came to.
    pub accepted: Option<Accepted>,
    /// How often it landed and did not hold what it promised.
    pub reworks: u32,
    /// What it is made of.
    pub parts: Vec<Part>,
    /// How they ended, once none goes on.
    pub ends: Option<Vec<PartEnd>>,
    /// How they ended the time before, if it was made of others before.
    pub ended_before: Vec<PartEnd>,
    /// How far its parts have come, while some go on.
    pub level: Level,
    /// Readers that have read the work as it is.
    pub readers: u32,
    /// How often something outside was looked for in vain.
    pub looks: u32,
    /// Where the branch stood when an agent last committed work, and not only papers about it.
    pub authored: Option<Commit>,
}

impl Depth {
    /// How many readers there are, one after another. The last of several holds what the others found against the work.
    #[must_use]
    pub fn readers(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Light => 1,
            Self::Full => 4,
        }
    }
}

impl Pipeline {
    /// How many of its parts landed and are left for a person.
    #[must_use]
    pub fn parts_left(&self) -> usize {
        self.ends.iter().flatten().filter(|end| end.end == PartFate::Left).count()
    }

    /// How many readers the work has.
    #[must_use]
    pub fn readers_wanted(&self) -> u32 {
        self.routed.map_or(1, |routed| routed.depth.readers().max(1))
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

    pub(crate) fn absorb(&mut self, at: Timestamp, event: &IssueEvent) {
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
                self.level = Level::default();
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

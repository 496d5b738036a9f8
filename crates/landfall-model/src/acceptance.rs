//! Acceptance criteria: the boxes in an issue, the hints beside them that say how to verify, and what the results come to. Running
//! the checks is left to others; nothing here touches a file or a network.

mod address;
mod catalogue;
mod handler;
mod hint;
mod outcome;
mod words;

use std::collections::BTreeSet;

use crate::event::AgentExit;
use crate::issue::ReviewDepth;

pub use address::{AddressTemplate, WebAddress, is_loopback, is_private};
pub use catalogue::{CATALOGUE, CommandSpec, Permission, SafeModeRule};
pub use handler::{CustomVerifyCommand, HANDLER_FOLDERS, handler_names};
pub use hint::{CriterionCheck, GithubQuery, HintError, MatchCount, RepoPath, VerifyHint};
pub use outcome::{
    AcceptanceMode, AcceptanceReason, BaseUrls, CriterionContext, CriterionPlan, DeploymentKind,
    ITERATIONS_MAX, ON_TRUST, VerifyOutcome, VerifyResult, gains_from_full_mode, moves_issue, next_iteration,
    outcome, outcome_after_manual_close, plan, results_with_ticks,
};
pub use words::{
    AcceptanceActions, AcceptanceFingerprint, CriterionFinding, FailureCount, MAX_ITERATIONS_REACHED,
    count_failures, criteria_checked_in_phase, outcome_headline, render_acceptance_comment,
    render_observation, render_passing_checks,
};

/// What an issue asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Criteria {
    /// The boxes, in their order.
    pub items: Vec<Criterion>,
    /// Whether the issue says that it changes nothing but its own words: no commit is to be expected.
    pub metadata_only: bool,
}

/// One box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Criterion {
    /// The line it stands on, from 0.
    pub line: usize,
    /// Whether it is ticked.
    pub ticked: bool,
    /// When it can be looked at.
    pub section: AcceptanceStage,
    /// What it says, without hints.
    pub text: String,
    /// How it is verified; an error is a hint that cannot be understood, and no hint is none.
    pub verify: Option<Result<VerifyHint, HintError>>,
    /// Who looks, and when.
    pub kind: VerifyKind,
}

/// When a criterion can be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptanceStage {
    /// Before the work is merged.
    PreMerge,
    /// Only when it is.
    PostMerge,
}

/// Who looks at a criterion, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyKind {
    /// Landfall, with the command beside it.
    Auto,
    /// Whoever comes by.
    Opportunistic,
    /// Whoever sees this happen.
    Observation(ObservationKind),
    /// A person.
    Manual,
}

/// What an observation waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObservationKind {
    /// A full review of a pull request.
    PrReviewFull,
    /// A light one.
    PrReviewLight,
    /// A run over an issue.
    AutoRun,
    /// An agent that was ended because it went silent.
    WatchdogKill,
    /// Work that was sent back.
    FixCycle,
}

impl ObservationKind {
    /// What a review of this depth is; none is no review.
    #[must_use]
    pub fn from_review_depth(depth: ReviewDepth) -> Option<Self> {
        match depth {
            ReviewDepth::None => None,
            ReviewDepth::Light => Some(Self::PrReviewLight),
            ReviewDepth::Full => Some(Self::PrReviewFull),
        }
    }

    /// What the end of an agent is, if anybody waits for such an end.
    #[must_use]
    pub fn from_agent_exit(exit: &AgentExit) -> Option<Self> {
        match exit {
            AgentExit::Silent => Some(Self::WatchdogKill),
            _ => None,
        }
    }

    /// What the verification of an issue is; one that waits for checks is not over.
    #[must_use]
    pub fn from_verify_outcome(outcome: VerifyOutcome) -> Option<Self> {
        match outcome {
            VerifyOutcome::Waiting => None,
            VerifyOutcome::Reopen { .. } => Some(Self::FixCycle),
            VerifyOutcome::Done
            | VerifyOutcome::LeftOver(_)
            | VerifyOutcome::Exhausted { .. }
            | VerifyOutcome::Unsure => Some(Self::AutoRun),
        }
    }

    /// The event of this word.
    #[must_use]
    pub fn from_wire_name(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.wire_name() == word)
    }

    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::PrReviewFull, Self::PrReviewLight, Self::AutoRun, Self::WatchdogKill, Self::FixCycle];

    /// Its word.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::PrReviewFull => "pr-review-full",
            Self::PrReviewLight => "pr-review-light",
            Self::AutoRun => "auto-run",
            Self::WatchdogKill => "watchdog-kill",
            Self::FixCycle => "fix-cycle",
        }
    }
}

/// Boxes beyond this are not read; nobody accepts by a list that long.
const ITEMS_MAX: usize = 500;

impl Criteria {
    /// The criteria in the body of an issue. `customs` are the names of verify commands the project has of its own.
    ///
    /// Boxes below a heading `Pre-merge` or `Post-merge` count. Without such headings all boxes count as pre-merge: those below
    /// `Acceptance Criteria` if there is such a heading, else all there are.
    #[must_use]
    pub fn from_body(body: &str, customs: &BTreeSet<String>) -> Self {
        let lines: Vec<MarkdownLine<'_>> = markdown_lines(body).collect();
        let has = |wanted: fn(&str) -> bool| {
            lines.iter().any(|line| line.parse_heading().is_some_and(|(_, text)| wanted(text)))
        };
        let parted = has(|text| section_of(text).is_some());
        let gathered = has(is_gathering);
        let mut place: Option<(usize, AcceptanceStage)> =
            (!parted && !gathered).then_some((0, AcceptanceStage::PreMerge));
        let mut items = Vec::new();
        for line in &lines {
            if let Some((level, text)) = line.parse_heading() {
                let opens = if parted {
                    section_of(text)
                } else {
                    is_gathering(text).then_some(AcceptanceStage::PreMerge)
                };
                place = match (opens, place) {
                    (Some(section), _) => Some((level, section)),
                    // A deeper heading stays inside.
                    (None, Some((outer, section))) if outer == 0 || level > outer => Some((outer, section)),
                    (None, _) => None,
                };
            }
            if let (Some((_, section)), Some((ticked, text))) = (place, line.ticked_box())
                && items.len() < ITEMS_MAX
            {
                items.push(Criterion::from_item(line.index, section, ticked, text, customs));
            }
        }
        let marks = lines.iter().filter(|line| !line.fenced).flat_map(|line| extract_comments(line.text));
        let metadata_only = marks.into_iter().any(|mark| mark == "implementation-type: metadata-only");
        Self { items, metadata_only }
    }
}

impl Criterion {
    fn from_item(
        line: usize,
        section: AcceptanceStage,
        ticked: bool,
        text: &str,
        customs: &BTreeSet<String>,
    ) -> Self {
        let mut verify = None;
        let mut kind = None;
        for comment in extract_comments(text) {
            if let Some(command) = comment.strip_prefix("verify:") {
                let read = VerifyHint::parse(command, customs);
                // Two ways to verify one thing: neither is chosen.
                verify = Some(if verify.is_some() { Err(HintError::Twice) } else { read });
            } else if let Some(word) = comment.strip_prefix("verify-type:") {
                kind = kind_of(word);
            }
        }
        let kind = kind.unwrap_or(if verify.is_some() { VerifyKind::Auto } else { VerifyKind::Manual });
        Self { line, ticked, section, text: strip_comments(text), verify, kind }
    }
}

/// The body with the boxes on these lines ticked. Lines that hold no box stay as they are: someone may have edited them.
#[must_use]
pub fn tick_boxes(body: &str, which: &BTreeSet<usize>) -> String {
    set_boxes(body, which, true)
}

/// The body with the boxes on these lines open again.
#[must_use]
pub fn untick_boxes(body: &str, which: &BTreeSet<usize>) -> String {
    set_boxes(body, which, false)
}

fn set_boxes(body: &str, which: &BTreeSet<usize>, to: bool) -> String {
    let mut marked = String::with_capacity(body.len());
    for line in markdown_lines(body) {
        let other = line.ticked_box().is_some_and(|(ticked, _)| ticked != to);
        let (from, into) = if to { (["[ ]", "[ ]"], "[x]") } else { (["[x]", "[X]"], "[ ]") };
        let at = from.into_iter().filter_map(|it| line.text.find(it)).min();
        match (which.contains(&line.index) && other, at) {
            (true, Some(at)) => {
                marked.push_str(&line.text[..at]);
                marked.push_str(into);
                marked.push_str(&line.text[at + 3..]);
            }
            (true, None) | (false, _) => marked.push_str(line.text),
        }
    }
    marked
}

/// The box that somebody names: by its place among the boxes, from 1, by its words, or by a part of them that no other has.
///
/// # Errors
/// Why it is none of them, or more than one.
pub fn find_box<'a>(criteria: &'a Criteria, named: &str) -> Result<&'a Criterion, String> {
    let named = named.trim();
    let items = &criteria.items;
    if items.is_empty() {
        return Err("it has no boxes".to_owned());
    }
    if !named.is_empty() && named.bytes().all(|byte| byte.is_ascii_digit()) {
        let place = named.parse::<usize>().ok().and_then(|place| place.checked_sub(1));
        return place
            .and_then(|place| items.get(place))
            .ok_or_else(|| format!("there is no box {named}: there are {}", items.len()));
    }
    let lower = named.to_lowercase();
    let exact: Vec<&Criterion> = items.iter().filter(|it| it.text.to_lowercase() == lower).collect();
    let part =
        || items.iter().filter(|it| !lower.is_empty() && it.text.to_lowercase().contains(&lower)).collect();
    let found: Vec<&Criterion> = if exact.is_empty() { part() } else { exact };
    match found[..] {
        [one] => Ok(one),
        [] => Err(format!("no box says `{named}`")),
        _ => Err(format!("{} boxes say `{named}`", found.len())),
    }
}

/// The body with the boxes of these criteria ticked, wherever they stand now: someone may have edited the rest since they were
/// read. A criterion that was itself changed, or that stands there twice, is left alone.
#[must_use]
pub fn retick_boxes(body: &str, read: &[&Criterion], customs: &BTreeSet<String>) -> String {
    let now = Criteria::from_body(body, customs);
    let same = |a: &Criterion, b: &Criterion| {
        (a.section, &a.text, &a.verify, a.kind) == (b.section, &b.text, &b.verify, b.kind)
    };
    let place = |criterion: &&Criterion| {
        let mut places = now.items.iter().filter(|it| same(it, criterion));
        places.next().filter(|_| places.next().is_none()).map(|it| it.line)
    };
    tick_boxes(body, &read.iter().filter_map(place).collect())
}

/// A line with its end.
struct MarkdownLine<'a> {
    index: usize,
    text: &'a str,
    /// Inside a block of code, where nothing means anything.
    fenced: bool,
}

fn markdown_lines(body: &str) -> impl Iterator<Item = MarkdownLine<'_>> {
    let mut fence: Option<(char, usize)> = None;
    body.split_inclusive('\n').enumerate().map(move |(index, text)| {
        let start = text.trim_start();
        let length = |c: char| start.chars().take_while(|it| *it == c).count();
        let opens = ['`', '~'].into_iter().map(|c| (c, length(c))).find(|(_, count)| *count >= 3);
        let mut fenced = fence.is_some();
        match (fence, opens) {
            (None, Some(open)) => {
                fence = Some(open);
                fenced = true;
            }
            (Some((c, count)), Some((this, more))) if this == c && more >= count => fence = None,
            (None | Some(_), None | Some(_)) => {}
        }
        MarkdownLine { index, text, fenced }
    })
}

impl<'a> MarkdownLine<'a> {
    fn parse_heading(&self) -> Option<(usize, &'a str)> {
        let level = self.text.bytes().take_while(|byte| *byte == b'#').count();
        let text = self.text.get(level..)?;
        let is = !self.fenced && (1..=6).contains(&level) && text.starts_with([' ', '\t']);
        is.then(|| (level, text.trim()))
    }

    /// Whether a box is ticked, and what stands behind it.
    fn ticked_box(&self) -> Option<(bool, &'a str)> {
        let text = self.text.trim();
        let text = text
            .strip_prefix("- ")
            .or_else(|| text.strip_prefix("* "))
            .or_else(|| text.strip_prefix("+ "))?;
        let text = text.trim_start();
        let (ticked, rest) =
            match (text.strip_prefix("[ ]"), text.strip_prefix("[x]").or_else(|| text.strip_prefix("[X]"))) {
                (Some(rest), _) => (false, rest),
                (None, Some(rest)) => (true, rest),
                (None, None) => return None,
            };
        (!self.fenced && rest.starts_with([' ', '\t'])).then(|| (ticked, rest.trim()))
    }
}

fn section_of(heading: &str) -> Option<AcceptanceStage> {
    let text = heading.to_lowercase();
    if text.starts_with("pre-merge") {
        Some(AcceptanceStage::PreMerge)
    } else if text.starts_with("post-merge") {
        Some(AcceptanceStage::PostMerge)
    } else {
        None
    }
}

fn is_gathering(heading: &str) -> bool {
    heading.to_lowercase().starts_with("acceptance criteria")
}

/// What stands in the comments of a line, trimmed.
fn extract_comments(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("<!--") {
        let Some((comment, after)) = after.split_once("-->") else { break };
        found.push(comment.trim());
        rest = after;
    }
    found
}

/// A line without its comments.
fn strip_comments(text: &str) -> String {
    let mut bare = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!--") {
        let Some((_, after)) = after.split_once("-->") else { break };
        bare.push_str(before);
        rest = after;
    }
    bare.push_str(rest);
    bare.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The kind a `verify-type` names. An event nobody knows is looked at when someone comes by.
fn kind_of(word: &str) -> Option<VerifyKind> {
    let mut words = word.split_whitespace();
    match words.next()? {
        "auto" => Some(VerifyKind::Auto),
        "opportunistic" => Some(VerifyKind::Opportunistic),
        "manual" => Some(VerifyKind::Manual),
        "observation" => {
            let event = words.find_map(|word| word.strip_prefix("event="));
            Some(
                event
                    .and_then(ObservationKind::from_wire_name)
                    .map_or(VerifyKind::Opportunistic, VerifyKind::Observation),
            )
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;

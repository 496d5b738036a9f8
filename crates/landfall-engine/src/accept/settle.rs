//! What follows from a verification, on the tracker: boxes are ticked, something is said, the issue is closed, opened again or left
//! for a person. Repeated, it changes nothing.

use std::collections::BTreeSet;

use landfall_model::acceptance::{
    AcceptanceActions, AcceptanceFingerprint, Criteria, Criterion, CriterionFinding, FailureCount, ON_TRUST,
    VerifyOutcome, VerifyResult, count_failures, moves_issue, outcome, outcome_after_manual_close,
    render_acceptance_comment, results_with_ticks, retick_boxes,
};
use landfall_model::issue::{self, IssuePhase, with_left};
use landfall_trackers::tracker::{
    CloseReason, Comment, CommentThread, CreateOutcome, Issue, IssueNumber, IssueTextEdit, Label, LabelSpec,
    Marker, PHASE_FAMILY, PrNumber, Tracker, TrackerError, TrackerIssueState, TrackerResult,
};

use super::CriterionResult;
use crate::exchange::PHASE_COLOUR;

/// A verification that is over.
pub struct AcceptanceSettlement<'a> {
    /// Where the issue is.
    pub tracker: &'a dyn Tracker,
    /// Which issue.
    pub issue: IssueNumber,
    /// Its criteria.
    pub criteria: &'a Criteria,
    /// What came of each.
    pub checked: &'a [CriterionResult],
    /// The names of the project's own commands: the body is read again with them.
    pub customs: &'a BTreeSet<String>,
    /// The commit that was looked at.
    pub commit: &'a str,
    /// How often it may fail before a person is needed.
    pub iterations_max: u32,
    /// The pull request, while it is open. Then the issue stays where it is, and the pull request is told.
    pub open_pr: Option<PrNumber>,
    /// So many of the issues it is made of landed and are left for a person.
    pub left: usize,
    /// Whether it was done before, and is looked at once more.
    pub was_done: bool,
    /// What the base is called in names, where it is not the project's own: what was found on another one says nothing here.
    pub side: Option<&'a str>,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptanceReport {
    /// What it came to.
    pub outcome: VerifyOutcome,
    /// How many boxes were ticked now.
    pub ticked: usize,
    /// Whether something new was said.
    pub told: bool,
    /// Whether the very same was found before. Then nothing was changed.
    pub known: bool,
    /// Whether it was done before and this look said nothing against it. Then it stays so, and nothing is told.
    pub stays: bool,
    /// What came of each criterion, with what is taken on trust.
    pub checked: Vec<CriterionResult>,
}

impl AcceptanceSettlement<'_> {
    /// What was looked at and what came of it, in a few letters: the same again is no news.
    fn compute_fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.commit.as_bytes());
        for (criterion, checked) in self.criteria.items.iter().zip(self.checked) {
            for part in [criterion.text.as_str(), checked.result.word()] {
                hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
            }
        }
        if self.left > 0 {
            hasher.update(&(self.left as u64).to_le_bytes());
        }
        hasher.finalize().to_hex().as_str()[..16].to_owned()
    }

    fn comment_thread(&self) -> CommentThread {
        self.open_pr.map_or(CommentThread::Issue(self.issue), CommentThread::PullRequest)
    }

    /// What it comes to and what came of each criterion, without changing anything.
    pub fn compute_outcome(&self) -> TrackerResult<(VerifyOutcome, Vec<CriterionResult>)> {
        self.evaluate_outcome().map(|(outcome, _, checked)| (outcome, checked))
    }

    /// What came of each criterion; a box that is ticked speaks for what cannot be looked at, and that is said.
    fn trust_ticked_boxes(&self, looked: bool) -> Vec<CriterionResult> {
        let results: Vec<VerifyResult> = self.checked.iter().map(|it| it.result).collect();
        let trusted = results_with_ticks(self.criteria, &results, looked);
        let all = self.criteria.items.iter().zip(self.checked).zip(trusted);
        all.map(|((criterion, it), result)| {
            let unseen = matches!(result, VerifyResult::Skipped | VerifyResult::PostMerge);
            let evidence = match looked && criterion.ticked && unseen {
                true => format!("{ON_TRUST} ({})", it.evidence),
                false => it.evidence.clone(),
            };
            CriterionResult { result, evidence, took_ms: it.took_ms }
        })
        .collect()
    }

    /// Whether it is done and stays so, whatever could not be said about it now.
    pub fn stays_done(&self, outcome: VerifyOutcome) -> TrackerResult<bool> {
        Ok(self.open_pr.is_none() && !moves_issue(outcome, is_done(&self.tracker.read_issue(self.issue)?)))
    }

    fn is_own(&self, comment: &Comment) -> bool {
        verdict_base(comment).is_some_and(|side| side.as_deref() == self.side)
    }

    fn evaluate_outcome(&self) -> TrackerResult<(VerifyOutcome, FailureCount, Vec<CriterionResult>)> {
        let comments = self.tracker.list_comments(self.comment_thread())?;
        // Only what this function said counts: others of ours carry words of agents.
        let ours: Vec<&str> =
            comments.iter().filter(|it| self.is_own(it)).map(|it| it.body.as_str()).collect();
        let counted = count_failures(
            &ours,
            AcceptanceFingerprint { commit: self.commit, of: &self.compute_fingerprint() },
        );
        let checked = self.trust_ticked_boxes(!ours.is_empty());
        let results: Vec<VerifyResult> = checked.iter().map(|it| it.result).collect();
        let own = outcome(self.criteria, &results, counted.iteration, self.iterations_max);
        // A forge closes issues by itself when work is merged; where none does, it was a person.
        let by_hand = || -> TrackerResult<bool> {
            Ok(!self.tracker.keeps_branches() && !self.tracker.read_issue(self.issue)?.state.is_open())
        };
        let own = if self.open_pr.is_none() && by_hand()? { outcome_after_manual_close(own) } else { own };
        Ok((with_left(own, self.left), counted, checked))
    }
}

const VERDICT: &str = "verify/";

/// Of a comment that says what a verification came to: of which base, as it is called in names.
fn verdict_base(comment: &Comment) -> Option<Option<String>> {
    let marker = comment.marker()?;
    let (of, _) = marker.key().strip_prefix(VERDICT)?.split_once('/')?;
    Some(of.split_once('.').map(|(_, side)| side.to_owned()))
}

/// Whether somebody verified it before on this base and told it.
pub fn was_verified(tracker: &dyn Tracker, issue: IssueNumber, side: Option<&str>) -> TrackerResult<bool> {
    Ok(tracker
        .list_comments(CommentThread::Issue(issue))?
        .iter()
        .any(|it| verdict_base(it).is_some_and(|it| it.as_deref() == side)))
}

/// Whether it was verified on other bases alone: then it is not this one's to look at.
pub fn is_of_another_base(
    tracker: &dyn Tracker,
    number: IssueNumber,
    side: Option<&str>,
) -> TrackerResult<bool> {
    let comments = tracker.list_comments(CommentThread::Issue(number))?;
    let sides: Vec<Option<String>> = comments.iter().filter_map(verdict_base).collect();
    Ok(issue::is_of_another_base(&sides, side))
}

/// Ticks the boxes of what holds, in the body as it is now. Answers how many.
pub fn tick_boxes(
    tracker: &dyn Tracker,
    issue: IssueNumber,
    holding: &[&Criterion],
    customs: &BTreeSet<String>,
) -> TrackerResult<usize> {
    let open: Vec<&Criterion> = holding.iter().copied().filter(|it| !it.ticked).collect();
    if open.is_empty() {
        return Ok(0);
    }
    let body = tracker.read_issue(issue)?.body;
    let ticked = retick_boxes(&body, &open, customs);
    if ticked == body {
        return Ok(0);
    }
    let count = body.bytes().zip(ticked.bytes()).filter(|(before, after)| before != after).count();
    tracker.edit_issue(issue, &IssueTextEdit { title: None, body: Some(ticked) })?;
    Ok(count)
}

/// Ticks, tells, and moves the issue as the outcome says.
pub fn settle_acceptance(settling: &AcceptanceSettlement<'_>) -> TrackerResult<AcceptanceReport> {
    let AcceptanceSettlement { tracker, issue, criteria, checked, .. } = *settling;
    let both = || criteria.items.iter().zip(checked);
    let holding: Vec<&Criterion> =
        both().filter(|(_, it)| it.result == VerifyResult::Pass).map(|(criterion, _)| criterion).collect();
    let ticked = tick_boxes(tracker, issue, &holding, settling.customs)?;
    let (outcome, counted, trusted) = settling.evaluate_outcome()?;
    let known = counted.told && outcome.iteration().is_some();
    if known {
        // It was sent back for exactly this. Whatever became of it since is not undone.
        return Ok(AcceptanceReport { outcome, ticked, told: false, known, stays: false, checked: trusted });
    }
    if settling.stays_done(outcome)? {
        return Ok(AcceptanceReport { outcome, ticked, told: false, known, stays: true, checked: trusted });
    }
    let findings: Vec<CriterionFinding<'_>> = criteria
        .items
        .iter()
        .zip(&trusted)
        .map(|(criterion, it)| CriterionFinding { criterion, result: it.result, evidence: &it.evidence })
        .collect();
    let of = settling.compute_fingerprint();
    let sighting = AcceptanceFingerprint { commit: settling.commit, of: &of };
    let side = settling.side.map(|side| format!(".{side}")).unwrap_or_default();
    let key = match outcome.iteration() {
        Some(iteration) => format!("{VERDICT}{}{side}/{of}/{iteration}", issue.get()),
        None => format!("{VERDICT}{}{side}/{of}", issue.get()),
    };
    // The issue is moved before it is told: a comment says that all the rest is done.
    if settling.open_pr.is_none() {
        let deeds = if settling.was_done {
            AcceptanceActions::for_done_issue(outcome)
        } else {
            AcceptanceActions::for_outcome(outcome)
        };
        move_issue(tracker, issue, deeds)?;
    }
    let said = tracker.add_comment(
        settling.comment_thread(),
        &Marker::new(&key)?,
        &render_acceptance_comment(&findings, outcome, sighting),
    )?;
    let told = matches!(said, CreateOutcome::Made(_));
    Ok(AcceptanceReport { outcome, ticked, told, known, stays: false, checked: trusted })
}

/// Whether an issue is closed, and was found to hold.
fn is_done(issue: &Issue) -> bool {
    let done = |label: &Label| label.name_within(PHASE_FAMILY) == Some(IssuePhase::Done.word());
    !issue.state.is_open() && issue.labels.iter().any(done)
}

fn move_issue(tracker: &dyn Tracker, issue: IssueNumber, deeds: AcceptanceActions) -> TrackerResult<()> {
    let label = match deeds.phase {
        None => None,
        Some(phase) => Some(Label::new(&format!("{PHASE_FAMILY}{phase}")).map_err(TrackerError::from)?),
    };
    if let Some(label) = &label {
        let about = "Where the issue stands.".to_owned();
        tracker.ensure_labels(&[LabelSpec { label: label.clone(), colour: PHASE_COLOUR, about }])?;
    }
    if deeds.reopen {
        tracker.reopen_issue(issue)?;
    }
    tracker.swap_label(issue, PHASE_FAMILY, label.as_ref())?;
    if deeds.close && tracker.read_issue(issue)?.state == TrackerIssueState::Open {
        tracker.close_issue(issue, CloseReason::Done)?;
    }
    Ok(())
}

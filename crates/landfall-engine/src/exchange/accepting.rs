//! Holding what an issue promised against what has landed.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use landfall_host::git::Oid;
use landfall_model::acceptance::{
    AcceptanceMode, AcceptanceReason, Criteria, Criterion, CustomVerifyCommand, VerifyOutcome, VerifyResult,
};
use landfall_model::flow::TrackerOperation;
use landfall_model::issue::{AcceptanceOutcome, IssuePhase, outcome_without_criteria, with_left};
use landfall_model::recovery;
use landfall_model::{EngineEvent, ExchangeResult, Spending, Task};
use landfall_trackers::tracker::{CommitSha, Issue, PrNumber};

use super::{ExchangeError, IssueHandle, seeing, set_phase_label};
use crate::accept::{
    self, AcceptanceContext, AcceptanceSettlement, AcceptanceTree, CommandCheckout, CriterionResult,
    IssueText, Judge, JudgeAgent, ShellContext,
};
use crate::engine_context::EngineContext;
use crate::host_context::HostContext;
use crate::ids;
use crate::land;
use crate::mail::EngineMessage;

const DIFF_BYTES_MAX: usize = 1 << 20;

/// Looks at every criterion on what landed, ticks the boxes, and moves the issue as the outcome says.
pub(super) fn accept_landed_work(
    site: &Arc<EngineContext>,
    task: &Task,
    at: &IssueHandle,
) -> Result<ExchangeResult, ExchangeError> {
    let issue = task.issue.as_ref();
    let pr = issue.and_then(|issue| PrNumber::new(issue.pr.as_ref()?.number));
    let landed = task.landed.as_ref().map(|landed| LandingPoint {
        commit: ids::commit_to_oid(&landed.commit),
        before: ids::commit_to_oid(&landed.base_before),
    });
    let left = issue.map_or(0, |issue| issue.parts_left());
    let heard = verify_criteria(site, at, &VerifyRequest { landed, pr, ..VerifyRequest::of_base() })?;
    if heard.criteria.items.is_empty() {
        // Nothing is claimed about what nobody asked for; it is said where the issue is closed.
        let whole = issue.is_some_and(|issue| issue.ends.is_some());
        let outcome = with_left(outcome_without_criteria(task.landed.is_some(), whole), left);
        if let VerifyOutcome::LeftOver(_) = outcome {
            set_phase_label(at, IssuePhase::Verify)?;
        }
        return Ok(ExchangeResult::Accepted {
            accepted: AcceptanceOutcome { items: Vec::new(), outcome },
            climbed: None,
        });
    }
    // It took a while: what a person decided meanwhile stands.
    if let Some(closed) = super::find_external_close(task, Some(TrackerOperation::Accept), at)? {
        return Ok(ExchangeResult::Closed(closed));
    }
    let (accepted, _) = settle_issue(site, at, heard, AcceptanceFacts { left, was_done: false })?;
    let climbed = recovery::recovery_after_acceptance(&site.catalogue, task, &accepted);
    Ok(ExchangeResult::Accepted { accepted, climbed })
}

/// Where the work of an issue came onto the base.
pub(super) struct LandingPoint {
    /// As this commit.
    pub commit: Oid,
    /// When the base was here.
    pub before: Oid,
}

/// What is looked at, and how.
pub(super) struct VerifyRequest<'a> {
    /// Where the work landed, if that is known.
    pub landed: Option<LandingPoint>,
    /// Its pull request.
    pub pr: Option<PrNumber>,
    /// Only these.
    pub only: &'a dyn Fn(&Criterion) -> bool,
    /// Whether agents are asked for their judgement: that costs something.
    pub judges: bool,
    /// Why it is looked.
    pub occasion: AcceptanceReason,
}

impl VerifyRequest<'_> {
    /// Everything, on the base as it is.
    pub fn of_base() -> Self {
        Self { landed: None, pr: None, only: &|_| true, judges: true, occasion: AcceptanceReason::Verify }
    }
}

/// What was looked at, and what came of it.
pub(super) struct AcceptanceResult {
    pub criteria: Criteria,
    pub customs: BTreeSet<String>,
    pub checked: Vec<CriterionResult>,
    pub commit: Oid,
}

impl AcceptanceResult {
    /// What does not hold: the criterion, and what was seen.
    pub fn failing_criteria(&self) -> Vec<(String, String)> {
        let both = self.criteria.items.iter().zip(&self.checked);
        let failing = both.filter(|(_, it)| it.result == VerifyResult::Fail);
        failing.map(|(criterion, it)| (criterion.text.clone(), it.evidence.clone())).collect()
    }
}

/// Where the work of an issue landed, by what the base says.
pub(super) fn landing_of(
    site: &EngineContext,
    at: &IssueHandle,
    issue: &Issue,
) -> Result<Option<LandingPoint>, ExchangeError> {
    let Some(commit) = seeing::find_landed_commit(site, at, issue)? else { return Ok(None) };
    let commit = ids::commit_to_oid(&commit);
    let before = site.store.parents_of(&commit)?.into_iter().next();
    Ok(before.map(|before| LandingPoint { commit, before }))
}

/// The verify commands of the project's own, as the base has them.
pub(super) fn handlers_of_base(
    site: &EngineContext,
) -> Result<(Vec<CustomVerifyCommand>, Vec<String>), ExchangeError> {
    let base = land::sync_base(site)?;
    site.store.lend_commit(&site.repo, &base)?;
    Ok(accept::find_verify_handlers(&AcceptanceTree::Commit(site.repo.tree_at(&base)?)))
}

/// Looks at the criteria of an issue. Nothing is changed by it.
pub(super) fn verify_criteria(
    site: &Arc<EngineContext>,
    at: &IssueHandle,
    hearing: &VerifyRequest<'_>,
) -> Result<AcceptanceResult, ExchangeError> {
    let issue = at.tracker.read_issue(at.number)?;
    // What is on the base now: a person may have mended it there since.
    let base = land::sync_base(site)?;
    let commit = match &hearing.landed {
        Some(landed) if !site.store.is_ancestor(&landed.commit, &base)? => landed.commit.clone(),
        Some(_) | None => base,
    };
    site.store.lend_commit(&site.repo, &commit)?;
    let tree = AcceptanceTree::Commit(site.repo.tree_at(&commit)?);
    // What the work itself says about how it is verified is not asked.
    let before = hearing.landed.as_ref().map_or_else(|| commit.clone(), |landed| landed.before.clone());
    site.store.lend_commit(&site.repo, &before)?;
    let (handlers, _) = accept::find_verify_handlers(&AcceptanceTree::Commit(site.repo.tree_at(&before)?));
    let customs: BTreeSet<String> = handlers.iter().map(|handler| handler.name.clone()).collect();
    let mut criteria = Criteria::from_body(&issue.body, &customs);
    criteria.items.retain(|it| (hearing.only)(it));
    if criteria.items.is_empty() {
        return Ok(AcceptanceResult { criteria, customs, checked: Vec::new(), commit });
    }
    let diff = hearing.landed.as_ref().and_then(|landed| read_diff(site, &landed.before, &landed.commit));
    let shell = ShellContext {
        settings: &site.settings.run,
        folder: &site.folder,
        program: &site.program,
        environment: &site.environment,
        root: site.repo.root(),
        checkout: CommandCheckout::Of(&site.repo, &commit),
    };
    let settings = &site.settings.tracker;
    let is_stopped = || site.interrupted.is_set();
    let judge = site.settings.judge.as_deref().unwrap_or("default");
    let asking = site.settings.agents.get(judge).filter(|_| hearing.judges).map(|profile| JudgeAgent {
        settings: &site.settings,
        profile,
        root: site.repo.root(),
        folder: &site.folder,
        program: &site.program,
        environment: &site.environment,
        today: site.current_spending().1,
        is_stopped: &is_stopped,
        used: RefCell::default(),
    });
    let happened = accept::find_observed_events(&*at.tracker, at.number, &criteria)?;
    let ground = AcceptanceContext {
        tree: &tree,
        issue: IssueText { title: &issue.title, body: &issue.body },
        mode: settings.verify_mode(),
        merged: true,
        leave: settings.verify_mode() == AcceptanceMode::Full,
        occasion: hearing.occasion,
        happened: &happened,
        base_url: settings.production_url.as_ref(),
        allow_localhost: false,
        handlers: &handlers,
        tracker: Some(&*at.tracker),
        pr: hearing.pr,
        head: Some(CommitSha::new(commit.as_str())?),
        diff: diff.as_deref(),
        spec_folder: &settings.spec_path,
        judge: asking.as_ref().map(|asking| asking as &dyn Judge),
        shell: Some(&shell),
    };
    let checked = accept::check_criteria(&criteria, &ground);
    if is_stopped() {
        return Err(ExchangeError::Interrupted); // what was cut short is not believed
    }
    if let Some(asking) = &asking {
        let used = *asking.used.borrow();
        if used != Spending::default() {
            let fact = EngineEvent::Consulted {
                about: format!("acceptance of {}", at.source),
                profile: judge.to_owned(),
                usage: used.usage,
                took_ms: used.time_ms,
            };
            let _ = site.mail.send(EngineMessage::Fact(fact)); // the engine has left: nobody counts any more
        }
    }
    Ok(AcceptanceResult { criteria, customs, checked, commit })
}

/// What else bears on what follows from a verification.
pub(super) struct AcceptanceFacts {
    /// So many of its parts are left for a person.
    pub left: usize,
    /// It was done before, and is looked at once more.
    pub was_done: bool,
}

/// Ticks the boxes, and moves the issue as the outcome says. Answers, too, whether exactly this was told before: then nothing was
/// changed.
pub(super) fn settle_issue(
    site: &EngineContext,
    at: &IssueHandle,
    heard: AcceptanceResult,
    bearing: AcceptanceFacts,
) -> Result<(AcceptanceOutcome, bool), ExchangeError> {
    let AcceptanceFacts { left, was_done } = bearing;
    let AcceptanceResult { criteria, customs, checked, commit } = heard;
    let settled = accept::settle_acceptance(&AcceptanceSettlement {
        tracker: &*at.tracker,
        issue: at.number,
        criteria: &criteria,
        checked: &checked,
        customs: &customs,
        commit: commit.as_str(),
        iterations_max: site.settings.tracker.verify_iterations_max,
        open_pr: None,
        left,
        was_done,
        side: at.side.as_deref(),
    })?;
    let items = criteria.items.iter().zip(settled.checked);
    let items = items.map(|(criterion, it)| (criterion.text.clone(), it.result, it.evidence)).collect();
    Ok((AcceptanceOutcome { items, outcome: settled.outcome }, settled.known))
}

fn read_diff(site: &HostContext, before: &Oid, after: &Oid) -> Option<String> {
    site.store.lend_commit(&site.repo, after).ok()?;
    let bytes = site.repo.diff_since(before, after, DIFF_BYTES_MAX).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

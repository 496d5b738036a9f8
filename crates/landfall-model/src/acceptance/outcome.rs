//! What is done about a criterion, and what all results come to.

use super::address::WebAddress;
use super::catalogue::{Permission, SafeModeRule};
use super::handler::CustomVerifyCommand;
use super::hint::{CriterionCheck, VerifyHint};
use super::{AcceptanceStage, Criteria, Criterion, ObservationKind, VerifyKind};
pub use landfall_facts::acceptance::{VerifyOutcome, VerifyResult};

/// What the text of an issue may set going.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptanceMode {
    /// Nothing that runs: anyone may have written the issue.
    Safe,
    /// What the project allows.
    Full,
}

/// What is known when criteria are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CriterionContext<'a> {
    /// What may be set going.
    pub mode: AcceptanceMode,
    /// Whether the work is merged.
    pub merged: bool,
    /// Whether commands that need leave have it.
    pub leave: bool,
    /// Where `{{base_url}}` leads in this phase.
    pub base_url: Option<&'a WebAddress>,
    /// Whether a person said that this machine itself may be asked. An issue cannot say so.
    pub allow_localhost: bool,
    /// The commands of the project's own.
    pub handlers: &'a [CustomVerifyCommand],
    /// Why it is looked.
    pub occasion: AcceptanceReason,
    /// What has happened that criteria wait for.
    pub happened: &'a [ObservationKind],
}

/// Why criteria are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptanceReason {
    /// They are to be verified.
    Verify,
    /// Something else ended, and whoever comes by looks.
    Passing,
}

/// Where a site can be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeploymentKind {
    /// While the work is done: on this machine.
    Local,
    /// While it is reviewed: where it is tried out.
    Preview,
    /// When it is merged: where everybody sees it.
    Production,
}

/// Where `{{base_url}}` leads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BaseUrls {
    /// On this machine.
    pub local: Option<WebAddress>,
    /// Where work is tried out.
    pub preview: Option<WebAddress>,
    /// Where everybody sees it.
    pub production: Option<WebAddress>,
}

impl BaseUrls {
    /// The one for this place. None is none: another place would answer for something else.
    #[must_use]
    pub fn for_deployment(&self, place: DeploymentKind) -> Option<&WebAddress> {
        match place {
            DeploymentKind::Local => self.local.as_ref(),
            DeploymentKind::Preview => self.preview.as_ref(),
            DeploymentKind::Production => self.production.as_ref(),
        }
    }
}

/// What is done about a criterion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CriterionPlan<'a> {
    /// Run the check, at this address if it has one.
    Run(&'a VerifyHint, Option<WebAddress>),
    /// Look for a check of the forge that runs this command, and take over what it says.
    AskChecks(&'a str),
    /// The result is known without looking, and why.
    Known(VerifyResult, String),
}

/// What to do about a criterion. A ticked box is looked at again: boxes are ticked by anybody.
#[must_use]
pub fn plan<'a>(criterion: &'a Criterion, standing: CriterionContext<'_>) -> CriterionPlan<'a> {
    let known = |result, why: &str| CriterionPlan::Known(result, why.to_owned());
    if criterion.section == AcceptanceStage::PostMerge && !standing.merged {
        return known(VerifyResult::PostMerge, "it can be looked at only after the merge");
    }
    match criterion.kind {
        VerifyKind::Auto => {}
        VerifyKind::Opportunistic
            if standing.occasion == AcceptanceReason::Passing && criterion.verify.is_some() => {}
        VerifyKind::Opportunistic => {
            return known(VerifyResult::Skipped, "it is looked at when someone comes by");
        }
        VerifyKind::Observation(event)
            if standing.happened.contains(&event) && criterion.verify.is_some() => {}
        VerifyKind::Observation(event) if standing.happened.contains(&event) => {
            return CriterionPlan::Known(
                VerifyResult::Skipped,
                format!("{} has happened: a person looks at it", event.wire_name()),
            );
        }
        VerifyKind::Observation(event) => {
            return CriterionPlan::Known(
                VerifyResult::Skipped,
                format!("it waits for {}", event.wire_name()),
            );
        }
        VerifyKind::Manual => return known(VerifyResult::Skipped, "a person looks at it"),
    }
    let verify = match &criterion.verify {
        Some(Ok(verify)) => verify,
        Some(Err(error)) => return CriterionPlan::Known(VerifyResult::Uncertain, error.to_string()),
        None => return known(VerifyResult::Uncertain, "it is to be verified and does not say how"),
    };
    let address = match verify.address_template() {
        None => None,
        Some(template) => match template.resolve(standing.base_url) {
            Some(address) => Some(address),
            None => return known(VerifyResult::Uncertain, "where `{{base_url}}` leads is not known here"),
        },
    };
    // A condition is a command, too.
    if verify.when.is_some() && (standing.mode == AcceptanceMode::Safe || !standing.leave) {
        return known(VerifyResult::Uncertain, "its condition is a command, and none may be run here");
    }
    // A verification looks. What may do more is nobody's criterion, whoever allows it.
    if let CriterionCheck::GithubCheck { query, .. } = &verify.check
        && !query.only_reads
    {
        return known(VerifyResult::Uncertain, "it may do more than read");
    }
    let handler = standing.handlers.iter().find(|handler| handler.name == verify.check.name());
    let (permission, in_safe_mode) = match (verify.command_spec(), handler) {
        (Some(spec), _) => (spec.permission, spec.in_safe_mode),
        (None, Some(handler)) if handler.in_safe_mode => (handler.permission, SafeModeRule::Runs),
        (None, Some(handler)) => (handler.permission, SafeModeRule::Open),
        (None, None) => (Permission::Ask, SafeModeRule::Open),
    };
    // In safe mode only what was allowed once and for all goes by itself.
    if verify.command_spec().is_none() && permission == Permission::Ask && !standing.leave {
        return known(VerifyResult::Uncertain, "the project does not allow it");
    }
    if standing.mode == AcceptanceMode::Full {
        return match permission {
            Permission::Ask if !standing.leave => {
                known(VerifyResult::Uncertain, "the project does not allow it")
            }
            Permission::Allow | Permission::Ask => CriterionPlan::Run(verify, address),
        };
    }
    match in_safe_mode {
        SafeModeRule::Runs => CriterionPlan::Run(verify, address),
        SafeModeRule::PublicOnly => match address {
            Some(address)
                if address.is_private_by_name() && !(standing.allow_localhost && address.is_localhost()) =>
            {
                known(VerifyResult::Uncertain, "its address is a private one")
            }
            Some(_) | None => CriterionPlan::Run(verify, address),
        },
        SafeModeRule::ReadOnly => CriterionPlan::Run(verify, address),
        SafeModeRule::FromChecks => match &verify.check {
            CriterionCheck::Command(command) => CriterionPlan::AskChecks(command),
            _ => known(VerifyResult::Uncertain, "it runs something, and nothing is run in safe mode"),
        },
        SafeModeRule::Open => {
            known(VerifyResult::Uncertain, "it runs something, and nothing is run in safe mode")
        }
    }
}

/// The limit nobody raises further.
pub const ITERATIONS_MAX: u32 = 20;

/// The number of the next failure, by the markers in the comments of ours: `<!-- verify-iteration: 2 -->`.
#[must_use]
pub fn next_iteration<'a>(comments: impl IntoIterator<Item = &'a str>) -> u32 {
    let numbers = comments
        .into_iter()
        .flat_map(super::extract_comments)
        .filter_map(|comment| comment.strip_prefix("verify-iteration:")?.trim().parse::<u32>().ok());
    numbers.max().unwrap_or(0).saturating_add(1)
}

/// What an outcome becomes by the word of a person who closed the issue themselves: the boxes that only a person can tick hold.
/// What failed, and what nobody could look at, is not theirs to say by that.
#[must_use]
pub fn outcome_after_manual_close(outcome: VerifyOutcome) -> VerifyOutcome {
    match outcome {
        VerifyOutcome::LeftOver(_) => VerifyOutcome::Done,
        VerifyOutcome::Done
        | VerifyOutcome::Reopen { .. }
        | VerifyOutcome::Exhausted { .. }
        | VerifyOutcome::Waiting
        | VerifyOutcome::Unsure => outcome,
    }
}

/// Whether an outcome moves an issue. One that is `done` is moved by what does not hold, and not by a look that could not say.
#[must_use]
pub fn moves_issue(outcome: VerifyOutcome, done: bool) -> bool {
    match outcome {
        VerifyOutcome::Done | VerifyOutcome::Reopen { .. } | VerifyOutcome::Exhausted { .. } => true,
        VerifyOutcome::LeftOver(_) | VerifyOutcome::Waiting | VerifyOutcome::Unsure => !done,
    }
}

/// Whether a look that may run commands would say more about a criterion than one that may not.
#[must_use]
pub fn gains_from_full_mode(criterion: &Criterion) -> bool {
    let Some(Ok(verify)) = &criterion.verify else { return false };
    let in_safe_mode = verify.command_spec().map_or(SafeModeRule::Open, |spec| spec.in_safe_mode);
    match in_safe_mode {
        SafeModeRule::FromChecks | SafeModeRule::Open | SafeModeRule::PublicOnly => {
            !matches!(verify.check.name(), "mcp_call") // nobody looks at that yet
        }
        SafeModeRule::Runs | SafeModeRule::ReadOnly => verify.when.is_some(),
    }
}

/// What is said of a box that somebody ticked and nobody can look at.
pub const ON_TRUST: &str = "taken on trust: the box is ticked";

/// The results, where boxes that were ticked after somebody had `looked` speak for what cannot be looked at now: an earlier look found
/// that they hold, or a person did who was told of them. Boxes that were ticked before anybody looked say nothing.
#[must_use]
pub fn results_with_ticks(criteria: &Criteria, results: &[VerifyResult], looked: bool) -> Vec<VerifyResult> {
    let both = criteria.items.iter().zip(results);
    both.map(|(criterion, result)| match result {
        VerifyResult::Uncertain if looked && criterion.ticked => VerifyResult::Skipped,
        result => *result,
    })
    .collect()
}

/// What the results come to, one for each criterion. `iteration` is the number this failure would have.
#[must_use]
pub fn outcome(
    criteria: &Criteria,
    results: &[VerifyResult],
    iteration: u32,
    iterations_max: u32,
) -> VerifyOutcome {
    let has = |wanted: VerifyResult| results.contains(&wanted);
    if has(VerifyResult::Fail) {
        return if iteration < iterations_max.min(ITERATIONS_MAX) {
            VerifyOutcome::Reopen { iteration }
        } else {
            VerifyOutcome::Exhausted { iteration }
        };
    }
    if has(VerifyResult::Pending) {
        return VerifyOutcome::Waiting;
    }
    if has(VerifyResult::Uncertain) {
        return VerifyOutcome::Unsure;
    }
    let left = criteria.items.iter().zip(results).filter(|(criterion, result)| {
        let others = !matches!(criterion.kind, VerifyKind::Auto);
        !criterion.ticked
            && (others && **result == VerifyResult::Skipped || **result == VerifyResult::PostMerge)
    });
    match left.count() {
        0 => VerifyOutcome::Done,
        count => VerifyOutcome::LeftOver(count),
    }
}

//! Exchanges with the tracker of a task: one arm per act, each in a thread of its own, each answered by news.
//!
//! Every exchange may be repeated after a crash. What it makes bears a marker or is the only one of its kind, so that
//! performing it twice has the effect of once. What follows from an answer is for the model to say.

mod accepting;
mod blockers;
mod observing;
pub(crate) mod offering;
mod seeing;
mod telling;
mod wholes;

use std::sync::Arc;

use landfall_host::git::{BranchName as GitBranch, GitError, Oid, Repo, Store};
use landfall_model::flow::TrackerOperation;
use landfall_model::issue::{
    IssuePhase, IssueRef, IssueResolution, IssueRetrospective, IssueSnapshot, SubIssue, stops_at,
};
use landfall_model::{Attempt, ExchangeResult, News, Task, TaskId};
use landfall_trackers::tracker::{
    CloseReason, IssueNumber, Label, LabelSpec, NameError, PHASE_FAMILY, PrNumber, Slug, Tracker,
    TrackerBranchName, TrackerError, TrackerIssueState, TrackerResult,
};
use thiserror::Error;

pub use blockers::{blockers_of, read_live_issue};
pub(crate) use observing::notify_observers as tell_observers;
pub use seeing::phase_of;
pub(crate) use seeing::{is_spec, read_issue_state};

use crate::engine_context::EngineContext;
use crate::git_refs::task_ref_name;
use crate::host_context::HostContext;
use crate::ids;
use crate::recovering;
use crate::tracker::{self, TrackerEnv};

/// The tracker of the project, opened when it is first needed.
pub(crate) fn project_tracker(site: &EngineContext) -> TrackerResult<Arc<dyn Tracker>> {
    let open = || {
        let around = TrackerEnv {
            root: site.repo.root(),
            folder: &site.folder,
            environment: &site.environment,
            author: "landfall",
        };
        tracker::open_interruptible_tracker(&site.settings, &around, Arc::clone(&site.interrupted))
            .map(Arc::from)
    };
    site.tracker.get_or_init(open).clone()
}

/// Why an exchange came to nothing.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// The tracker.
    #[error(transparent)]
    Tracker(TrackerError),
    /// Git.
    #[error(transparent)]
    Git(GitError),
    /// It was refused, and something may be done about that.
    #[error("{0}")]
    Refused(String),
    /// Something else.
    #[error("{0}")]
    Else(String),
    /// The engine is stopping: nothing is known, and nothing is told.
    #[error("the engine is stopping")]
    Interrupted,
}

/// What is asked of an issue while no engine need run.
pub struct IdleIssueContext<'a> {
    /// Where it is kept.
    pub tracker: Arc<dyn Tracker>,
    /// The issue.
    pub source: IssueRef,
    /// Its pull request, where somebody says which it is; otherwise the one of its branch.
    pub pr: Option<u64>,
    /// Its task, if it has one.
    pub task: Option<&'a Task>,
    /// The store. Nothing lands in it by this.
    pub store: &'a Store,
    /// The person's repository.
    pub repo: &'a Repo,
    /// The branch that work lands on.
    pub branch: &'a GitBranch,
    /// What it is called in names, where it is not the project's own.
    pub side: Option<String>,
    /// The folder of files that say what is to be done.
    pub spec_path: &'a str,
}

/// Everything that can be seen of an issue at this moment, by whoever asks.
///
/// # Errors
/// Why it could not be looked at.
pub fn read_idle_issue_state(asked: IdleIssueContext<'_>) -> Result<IssueSnapshot, ExchangeError> {
    let IdleIssueContext { tracker, source, pr, task, store, repo, branch, spec_path, side } = asked;
    let none = |what: &str| ExchangeError::Else(format!("0 is not the number of {what}"));
    let number = IssueNumber::new(source.number).ok_or_else(|| none("an issue"))?;
    let pr = pr.map(|pr| PrNumber::new(pr).ok_or_else(|| none("a pull request"))).transpose()?;
    let theirs = store.import_branch(repo, branch)?;
    let base = landed_base(store, theirs)?;
    let work = task.map(|task| task.seen_head.iter().chain(&task.head).map(ids::commit_to_oid).collect());
    let ground = seeing::ObservationContext {
        store,
        base,
        spec_path,
        work: work.unwrap_or_default(),
        pr,
        branch: branch.as_str(),
    };
    seeing::read_issue_state_in(&ground, &IssueHandle { tracker, source, number, side })
}

/// Where everything is that has landed, by whoever asks: the base of the store, or `theirs` (a branch of the person or of a forge) where
/// that holds all of it and perhaps more. Landed work may have to wait before it comes into a branch.
///
/// # Errors
/// When git cannot be asked.
pub fn landed_base(store: &Store, theirs: Oid) -> Result<Oid, GitError> {
    Ok(match store.read_base()? {
        // A commit that the store has never seen is newer than all it has.
        Some(ours) if store.contains(&theirs)? && !store.is_ancestor(&ours, &theirs)? => ours,
        Some(_) | None => theirs,
    })
}

/// What an issue is made of, by whoever asks.
///
/// # Errors
/// Why it could not be looked at.
pub fn read_idle_sub_issues(
    tracker: &dyn Tracker,
    number: IssueNumber,
) -> Result<Vec<SubIssue>, ExchangeError> {
    seeing::read_sub_issues(tracker, number)
}

impl From<TrackerError> for ExchangeError {
    fn from(error: TrackerError) -> Self {
        match error {
            TrackerError::Stopped { .. } => Self::Interrupted,
            error => Self::Tracker(error),
        }
    }
}

impl From<NameError> for ExchangeError {
    fn from(error: NameError) -> Self {
        Self::Tracker(error.into())
    }
}

impl From<GitError> for ExchangeError {
    fn from(error: GitError) -> Self {
        Self::Git(error)
    }
}

impl From<ExchangeError> for ExchangeResult {
    fn from(trouble: ExchangeError) -> Self {
        match trouble {
            ExchangeError::Tracker(error) => {
                let passes = error.retry_time();
                let detail = match passes {
                    Some(_) => error.to_string(),
                    None => format!("{error}; {}", error.hint()),
                };
                Self::Trouble { detail, until: passes.flatten(), hopeless: passes.is_none() }
            }
            ExchangeError::Git(error) => {
                Self::Trouble { detail: error.full_message(), until: None, hopeless: false }
            }
            ExchangeError::Refused(detail) | ExchangeError::Else(detail) => {
                Self::Trouble { detail, until: None, hopeless: true }
            }
            ExchangeError::Interrupted => unreachable!("whoever is interrupted tells nothing"),
        }
    }
}

/// The issue of a task and where it is kept.
pub(crate) struct IssueHandle {
    pub tracker: Arc<dyn Tracker>,
    pub source: IssueRef,
    pub number: IssueNumber,
    /// What the base is called in names, where it is not the project's own.
    pub side: Option<String>,
}

impl IssueHandle {
    /// The branch its work is offered on.
    pub fn work_branch(&self) -> TrackerBranchName {
        branch_of(self.number, self.side.as_deref())
    }

    /// A task in marks of the tracker: those of another base count their own.
    pub fn task_mark(&self, task: TaskId) -> String {
        let side = self.side.iter().map(|side| format!(".{side}")).collect::<String>();
        format!("{}{side}", task_ref_name(task))
    }
}

/// Performs an exchange for `task` and tells what came of it.
pub(crate) fn run_exchange(
    site: &Arc<EngineContext>,
    task: &Task,
    attempt: Attempt,
    act: Option<TrackerOperation>,
) {
    let done = perform_act(site, task, attempt, act);
    if matches!(done, Err(ExchangeError::Interrupted)) {
        return; // the journal expects it: the next run does it again
    }
    let exchanged = done.unwrap_or_else(|trouble| match refusal_detail(&trouble) {
        Some(detail) if matches!(act, Some(TrackerOperation::Offer | TrackerOperation::Merged)) => {
            recovering::recovery_for_refusal(site, task, &detail)
                .map_or_else(|| trouble.into(), ExchangeResult::Stuck)
        }
        Some(_) | None => trouble.into(),
    });
    site.send_news(task.id, News::Exchanged { attempt, exchanged });
}

/// Why the other side said no, if that may have to do with the work.
fn refusal_detail(trouble: &ExchangeError) -> Option<String> {
    match trouble {
        ExchangeError::Refused(detail) => Some(detail.clone()),
        ExchangeError::Tracker(error @ (TrackerError::Refused { .. } | TrackerError::Conflict { .. })) => {
            error.retry_time().is_none().then(|| error.to_string())
        }
        ExchangeError::Tracker(_)
        | ExchangeError::Git(_)
        | ExchangeError::Else(_)
        | ExchangeError::Interrupted => None,
    }
}

fn perform_act(
    site: &Arc<EngineContext>,
    task: &Task,
    attempt: Attempt,
    act: Option<TrackerOperation>,
) -> Result<ExchangeResult, ExchangeError> {
    let at = open_issue(site, task)?;
    if let Some(closed) = find_external_close(task, act, &at)? {
        return Ok(ExchangeResult::Closed(closed));
    }
    let exchanged = run_act(site, task, attempt, act, &at)?;
    if let Some(passing) = observing::find_notice(task, act, &exchanged) {
        observing::send_notice(site, &at, &passing)?;
    }
    Ok(exchanged)
}

fn run_act(
    site: &Arc<EngineContext>,
    task: &Task,
    attempt: Attempt,
    act: Option<TrackerOperation>,
    at: &IssueHandle,
) -> Result<ExchangeResult, ExchangeError> {
    match act {
        Some(TrackerOperation::Observe) => seeing::observe_issue(site, task, at),
        Some(TrackerOperation::Triaged) => telling::record_triage(site, task, at),
        Some(TrackerOperation::Sized) => seeing::observe_size(site, task, at),
        Some(TrackerOperation::Offer) => offering::offer_pull_request(site, task, attempt, at),
        Some(TrackerOperation::Checks) => seeing::read_forge_checks(site, task, at),
        Some(TrackerOperation::Reviewed) => telling::record_review(task, at),
        Some(TrackerOperation::Merged) => offering::confirm_landing(site, task, at),
        Some(TrackerOperation::Accept) => accepting::accept_landed_work(site, task, at),
        Some(TrackerOperation::Gather) => wholes::gather_parts(site, task, at),
        Some(TrackerOperation::Close) => telling::close_done_issue(task, at),
        None => seeing::list_sub_issues(at),
    }
}

/// How the issue was closed, if that was since its task looked at it and nothing is to be done against it.
fn find_external_close(
    task: &Task,
    act: Option<TrackerOperation>,
    at: &IssueHandle,
) -> TrackerResult<Option<IssueResolution>> {
    let was_open = task.issue.as_ref().and_then(|issue| issue.seen.as_ref()).is_some_and(|seen| seen.open);
    let Some(act) = act.filter(|_| was_open) else { return Ok(None) };
    // Where no way of closing it would stop anything, nobody needs to look.
    let made = task.head.is_some() && task.landed.is_none();
    if ![IssueResolution::Done, IssueResolution::NotPlanned]
        .into_iter()
        .any(|closed| stops_at(act, closed, made))
    {
        return Ok(None);
    }
    let closed = match at.tracker.read_issue(at.number)?.state {
        TrackerIssueState::Open => return Ok(None),
        TrackerIssueState::Closed { why: CloseReason::Done, .. } => IssueResolution::Done,
        TrackerIssueState::Closed { why: CloseReason::NotPlanned, .. } => IssueResolution::NotPlanned,
    };
    Ok(Some(closed).filter(|closed| stops_at(act, *closed, made)))
}

pub(crate) fn open_issue(site: &EngineContext, task: &Task) -> Result<IssueHandle, ExchangeError> {
    let kind = site.settings.tracker.kind.unwrap_or("none");
    let source = IssueRef::from_source(&task.spec.source)
        .ok_or_else(|| ExchangeError::Else(format!("{} does not come from an issue", task.id)))?;
    if source.tracker != kind {
        return Err(ExchangeError::Else(format!(
            "{} follows an issue of the tracker `{}`, and the project's tracker is `{kind}`",
            task.id, source.tracker
        )));
    }
    let number = IssueNumber::new(source.number).expect("a source has no number 0");
    let side = site.folder.side_name().map(str::to_owned);
    Ok(IssueHandle { tracker: project_tracker(site)?, source, number, side })
}

/// The branch the work of an issue is offered on; with the base's name where that is not the project's own.
#[must_use]
pub fn branch_of(number: IssueNumber, side: Option<&str>) -> TrackerBranchName {
    let side = side.map(|side| format!("-on-{side}")).unwrap_or_default();
    TrackerBranchName::new(&format!("landfall/issue-{}{side}", number.get())).expect("made of our own words")
}

/// The engine is stopping, and something that a tracker is to be told was left to the next run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExchangeInterruption;

/// The result of what keeps nothing from going on: only a stop matters, since the next run can do it again.
fn ignore_unless_interrupted<T>(told: Result<T, ExchangeError>) -> Result<(), ExchangeInterruption> {
    match told {
        Err(ExchangeError::Interrupted) => Err(ExchangeInterruption),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Says in the tracker what is worth saying of an issue that is over. Nothing waits for it: a tracker that is away is not told, and its
/// report has it.
pub(crate) fn post_retrospective(
    site: &EngineContext,
    task: &Task,
    lookback: &IssueRetrospective,
) -> Result<(), ExchangeInterruption> {
    ignore_unless_interrupted(
        open_issue(site, task).and_then(|at| telling::post_retrospective_comment(task, &at, lookback)),
    )
}

/// In a flow: the file that says what is to be done for an issue.
pub(crate) const SPEC: &str = "{spec}";

/// The file that says what is to be done for the issue of a task: as it is called, or is to be called.
pub(crate) fn spec_of(site: &HostContext, task: &Task) -> Option<String> {
    let issue = task.issue.as_ref()?;
    let source = IssueRef::from_source(&task.spec.source)?;
    if !issue.routed.is_some_and(|routed| routed.spec) {
        return None;
    }
    let slug = Slug::from_text(&task.spec.title);
    let name = format!("{}/issue-{}-{}.md", site.settings.tracker.spec_path, source.number, slug.as_str());
    Some(issue.seen.as_ref().and_then(|seen| seen.spec_file.clone()).unwrap_or(name))
}

/// Says in the tracker where an issue stands. Labels that a repository does not have yet are made first.
pub(crate) fn set_phase_label(at: &IssueHandle, phase: IssuePhase) -> TrackerResult<()> {
    let label = Label::new(&format!("{PHASE_FAMILY}{}", phase.word()))?;
    let about = "Where the issue stands.".to_owned();
    at.tracker.ensure_labels(&[LabelSpec { label: label.clone(), colour: PHASE_COLOUR, about }])?;
    at.tracker.swap_label(at.number, PHASE_FAMILY, Some(&label)).map(drop)
}

/// The colour of the labels that say where an issue stands, whoever makes them.
pub(crate) const PHASE_COLOUR: [u8; 3] = [0x1f, 0x6f, 0xeb];

/// Says in the tracker that a step of a task begins. It keeps nothing from beginning: the next exchange says it again.
pub(crate) fn announce_step(site: &EngineContext, task: &Task) {
    if task.issue.is_none() {
        return;
    }
    let step = task.step().and_then(|step| task.flow.as_ref()?.find_step(step));
    let Some(phase) = step.and_then(|step| IssuePhase::from_word(&step.phase)) else { return };
    if let Ok(at) = open_issue(site, task) {
        let _ = set_phase_label(&at, phase); // a tracker that is away is told by the exchange that needs it
    }
}

//! What can be seen of an issue: in the tracker, on the base, and in the store.

use std::sync::Arc;

use landfall_host::git::{BranchName as GitBranch, BranchNews, CommitLogEntry, LogRange, Oid, Store};
use landfall_model::issue::{
    ChecksWait, CiCheck, CiCheckState, CiJobReport, CiStatus, IssueKind, IssuePhase, IssueSnapshot,
    PullRequestSnapshot, PullRequestState, StepEnd, SubIssue, assess_ci_checks,
};
use landfall_model::{Commit, ExchangeResult, Task, Timestamp};
use landfall_trackers::tracker::{
    Blocker, ChildIssue, CloseReason, CommentThread, CommitSha, Conclusion, FailedJob, ForgeCheck,
    ForgeCheckState, Issue, IssueLocation, IssueNumber, JobStep, Marker, PHASE_FAMILY, PrNumber, PrState,
    PullRequest, Tracker, TrackerIssueState, TrackerResult, escape_beginning,
};

use super::blockers::{BlockerReader, blockers_of};
use super::{ExchangeError, IssueHandle, set_phase_label};
use crate::engine_context::EngineContext;
use crate::ids;
use crate::land;
use crate::recovering;
use crate::settings::PublishTarget;

/// What a summary of our readers is known by, in comments and reviews.
pub(super) const REVIEW_MARKER: &str = "review-summary";
/// Commits of the base that are looked through for one that closes an issue.
const COMMITS_MAX: u32 = 5_000; // with those of every agent; the line of the base is a fifth of them or so
/// Issues that one may be made of.
const PARTS_MAX: usize = 100;

/// Looks at an issue, and brings the work of its pull request into the store.
pub(super) fn observe_issue(
    site: &Arc<EngineContext>,
    task: &Task,
    at: &IssueHandle,
) -> Result<ExchangeResult, ExchangeError> {
    let seen = read_issue_state(site, task, at)?;
    let head = match &seen.pr {
        Some(PullRequestSnapshot { state: PullRequestState::Open, head: Some(head), .. }) => {
            fetch_pull_request_head(site, at, head)?
        }
        Some(_) | None => None,
    };
    Ok(ExchangeResult::Seen { seen: Box::new(seen), head })
}

/// Looks again once it is known what is to be done: sizes change with that.
pub(super) fn observe_size(
    site: &Arc<EngineContext>,
    task: &Task,
    at: &IssueHandle,
) -> Result<ExchangeResult, ExchangeError> {
    set_phase_label(at, IssuePhase::Ready)?;
    let seen = read_issue_state(site, task, at)?;
    Ok(ExchangeResult::Seen { seen: Box::new(seen), head: None })
}

/// Where commits and files are looked for.
pub(super) struct ObservationContext<'a> {
    pub store: &'a Store,
    pub base: Oid,
    /// The folder of files that say what is to be done.
    pub spec_path: &'a str,
    /// The work of the issue, as far as it is known.
    pub work: Vec<Oid>,
    /// Its pull request, where somebody says which it is.
    pub pr: Option<PrNumber>,
    /// The branch that work lands on.
    pub branch: &'a str,
}

/// Everything that is known of an issue at this moment.
pub(crate) fn read_issue_state(
    site: &EngineContext,
    task: &Task,
    at: &IssueHandle,
) -> Result<IssueSnapshot, ExchangeError> {
    let ground = ObservationContext {
        store: &site.store,
        base: land::sync_base(site)?,
        spec_path: &site.settings.tracker.spec_path,
        work: task.seen_head.iter().chain(&task.head).map(ids::commit_to_oid).collect(),
        pr: None,
        branch: site.branch.as_str(),
    };
    read_issue_state_in(&ground, at)
}

/// The same, for whoever brings the ground.
pub(super) fn read_issue_state_in(
    ground: &ObservationContext<'_>,
    at: &IssueHandle,
) -> Result<IssueSnapshot, ExchangeError> {
    let IssueHandle { tracker, number, source, .. } = at;
    let issue = tracker.read_issue(*number)?;
    let reopened = tracker.last_reopened(*number)?;
    let labels: Vec<String> = issue.labels.iter().map(|label| label.as_str().to_owned()).collect();
    let blockers = blockers_of(&**tracker, &issue)?;
    let default = tracker.default_branch()?;
    Ok(IssueSnapshot {
        number: source.number,
        words: (issue.title.clone(), issue.body.clone()),
        open: issue.state.is_open(),
        // Whoever says that nobody will do it has decided; nothing is left to look at.
        phase: match issue.state {
            TrackerIssueState::Closed { why: CloseReason::NotPlanned, .. } => Some(IssuePhase::Done),
            TrackerIssueState::Closed { .. } | TrackerIssueState::Open => phase_of(&issue),
        },
        triaged: labels.iter().any(|label| label == "triaged"),
        size: tracker.read_size(*number)?.map(|seen| seen.size),
        kind: IssueKind::from_labels(labels.iter().map(String::as_str))
            .map(|kind| kind.wire_name().to_owned()),
        labels,
        pr: match ground.pr {
            Some(number) => Some(seen_pr(at, &tracker.pull_request(number)?)?),
            None => pull_request(at, reopened)?,
        },
        spec_file: spec_file(ground, *number)?,
        commit: closing_commit(ground, at, issue.created, reopened)?,
        reopened,
        parts: u32::try_from(issue.children).unwrap_or(u32::MAX),
        blockers: blockers.iter().filter(|it| it.open).map(|it| it.place.to_string()).collect(),
        side_base: default.is_some_and(|default| default.as_str() != ground.branch),
    })
}

/// The newest commit of the base that says it closes the issue, whenever that was.
pub(super) fn find_landed_commit(
    site: &EngineContext,
    at: &IssueHandle,
    issue: &Issue,
) -> Result<Option<Commit>, ExchangeError> {
    let ground = ObservationContext {
        store: &site.store,
        base: land::sync_base(site)?,
        spec_path: &site.settings.tracker.spec_path,
        work: Vec::new(),
        pr: None,
        branch: site.branch.as_str(),
    };
    closing_commit(&ground, at, issue.created, None)
}

/// The phase the labels say; of several, the furthest.
#[must_use]
pub fn phase_of(issue: &Issue) -> Option<IssuePhase> {
    issue.labels.iter().filter_map(|label| IssuePhase::from_word(label.name_within(PHASE_FAMILY)?)).max()
}

/// The pull request of the issue's branch: the open one, or else the newest. What was merged or closed before the issue was
/// opened again says nothing about it.
fn pull_request(at: &IssueHandle, reopened: Option<Timestamp>) -> TrackerResult<Option<PullRequestSnapshot>> {
    let all = at.tracker.pull_requests_of(&at.work_branch())?;
    let counts = |pr: &&PullRequest| pr.state.is_open() || reopened.is_none_or(|at| pr.created > at);
    let open = all.iter().find(|pr| pr.state.is_open() && pr.head_is_here);
    let Some(pr) = open.or_else(|| all.iter().find(counts)) else { return Ok(None) };
    seen_pr(at, pr).map(Some)
}

fn seen_pr(at: &IssueHandle, pr: &PullRequest) -> TrackerResult<PullRequestSnapshot> {
    let state = match pr.state {
        PrState::Draft | PrState::Open => PullRequestState::Open,
        PrState::Closed => PullRequestState::Closed,
        PrState::Merged { .. } => PullRequestState::Merged,
    };
    Ok(PullRequestSnapshot {
        number: pr.number.get(),
        url: pr.url.clone(),
        state,
        head: Some(Commit::new(pr.head_sha.as_str())),
        reviewed: has_our_review(at, pr)?,
    })
}

fn has_our_review(at: &IssueHandle, pr: &PullRequest) -> TrackerResult<bool> {
    let marked = |marker: Option<String>| marker.is_some_and(|key| key.starts_with(REVIEW_MARKER));
    let comments = at.tracker.list_comments(CommentThread::PullRequest(pr.number))?;
    if comments.iter().any(|it| marked(it.marker().map(|marker| marker.key().to_owned()))) {
        return Ok(true);
    }
    let reviews = at.tracker.list_reviews(pr.number)?;
    let ours = reviews
        .iter()
        .filter(|it| it.ours)
        .filter_map(|it| Marker::split_marker(&it.body).map(|(marker, _)| marker.key().to_owned()));
    Ok(ours.map(Some).any(marked))
}

/// The file that says what is to be done: on the task's own work, or on the base.
fn spec_file(ground: &ObservationContext<'_>, number: IssueNumber) -> Result<Option<String>, ExchangeError> {
    let folder = ground.spec_path;
    for commit in ground.work.iter().chain([&ground.base]) {
        if !ground.store.contains(commit)? {
            continue; // it is in a workspace only
        }
        if let Some(name) =
            ground.store.names_in(commit, folder)?.into_iter().find(|name| is_spec(name, number))
        {
            return Ok(Some(format!("{folder}/{name}")));
        }
    }
    Ok(None)
}

/// Whether a file is the spec of an issue: `issue-7-….md`.
pub(crate) fn is_spec(name: &str, number: IssueNumber) -> bool {
    let rest = name.strip_prefix("issue-").and_then(|rest| rest.strip_prefix(&number.get().to_string()));
    rest.is_some_and(|rest| rest == ".md" || rest.starts_with('-') && rest.ends_with(".md"))
}

/// The newest commit of the base that says it closes the issue, made after it was last opened again.
fn closing_commit(
    ground: &ObservationContext<'_>,
    at: &IssueHandle,
    made: Timestamp,
    reopened: Option<Timestamp>,
) -> Result<Option<Commit>, ExchangeError> {
    let range = LogRange { to: ground.base.clone(), from: None, first_parent: false };
    let closes = |message: &str| {
        let ours =
            message.lines().any(|line| line.strip_prefix("Landfall-Issue: ") == Some(&at.source.to_string()));
        ours || at.tracker.keeps_branches() && is_closing_message(message, at.source.number)
    };
    let line = land::list_landings(ground.store, &range, COMMITS_MAX)?;
    let found = line.into_iter().find(|entry| closes(&entry.message));
    // A commit knows seconds, a tracker milliseconds: within the same second the commit is the older one.
    // What was there before the issue speaks of another with the same number: a repository that was copied has such.
    let after = |entry: &CommitLogEntry| {
        entry.author.at_ms + 999 >= made.0 && reopened.is_none_or(|at| entry.author.at_ms > at.0)
    };
    let counts = found.filter(after);
    Ok(counts.map(|entry| ids::oid_to_commit(&entry.oid)))
}

/// Whether a message says, in a forge's own words, that it closes this issue.
fn is_closing_message(message: &str, number: u64) -> bool {
    const WORDS: [&str; 9] =
        ["close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved"];
    let words: Vec<String> = message.split_whitespace().map(str::to_lowercase).collect();
    words.windows(2).any(|pair| {
        let verb = pair[0].trim_start_matches('(').trim_end_matches(':');
        let named = pair[1].trim_end_matches([')', '.', ',', ';']);
        WORDS.contains(&verb) && named == format!("#{number}")
    })
}

/// The work of an open pull request, in the store. Where branches are kept elsewhere, it is fetched.
fn fetch_pull_request_head(
    site: &EngineContext,
    at: &IssueHandle,
    head: &Commit,
) -> Result<Option<Commit>, ExchangeError> {
    let oid = ids::commit_to_oid(head);
    if site.store.contains(&oid)? {
        return Ok(Some(head.clone()));
    }
    let PublishTarget::Push { remote, .. } = &site.settings.land.publish else { return Ok(None) };
    if !at.tracker.keeps_branches() {
        return Ok(None);
    }
    let branch =
        GitBranch::new(at.work_branch().as_str()).map_err(|error| ExchangeError::Else(error.to_string()))?;
    let base = land::sync_base(site)?;
    let tip = match site.store.remote_news(&site.repo, remote, &branch, &base)? {
        BranchNews::Ahead { new, .. } | BranchNews::Rewritten { new, .. } => Some(new),
        BranchNews::Same | BranchNews::Deleted | BranchNews::Unborn => None,
    };
    Ok(tip.map(|tip| ids::oid_to_commit(&tip)))
}

/// What an issue is made of, and what of that waits for what. Only needs among the parts count here.
pub(super) fn list_sub_issues(at: &IssueHandle) -> Result<ExchangeResult, ExchangeError> {
    read_sub_issues(&*at.tracker, at.number).map(ExchangeResult::Parts)
}

/// The same, for whoever brings the tracker.
pub(super) fn read_sub_issues(
    tracker: &dyn Tracker,
    number: IssueNumber,
) -> Result<Vec<SubIssue>, ExchangeError> {
    let children = tracker.list_children(number)?;
    if children.len() > PARTS_MAX {
        return Err(ExchangeError::Else(format!(
            "{number} is made of {} issues; at most {PARTS_MAX} are taken on at once",
            children.len()
        )));
    }
    let inside: Vec<u64> = children.iter().map(|child| child.issue.number.get()).collect();
    let here = |blocker: &Blocker| match &blocker.place {
        IssueLocation::Here(number) => Some(number.get()).filter(|number| inside.contains(number)),
        IssueLocation::Elsewhere(_) => None,
    };
    let mut reader = BlockerReader::new(tracker);
    let mut done = Vec::new();
    for ChildIssue { issue, .. } in &children {
        reader.note_parent(issue.number, number);
        done.push(reader.note_issue(issue)?);
    }
    let mut parts = Vec::new();
    for (ChildIssue { issue, blocked_by }, done) in children.iter().zip(done) {
        let blocked_by = reader.read_blockers(issue, blocked_by.clone())?;
        parts.push(SubIssue {
            number: issue.number.get(),
            title: issue.title.clone(),
            size: tracker.read_size(issue.number)?.map(|seen| seen.size),
            done,
            at_verify: phase_of(issue) == Some(IssuePhase::Verify),
            needs: blocked_by.iter().filter_map(here).collect(),
        });
    }
    Ok(parts)
}

/// What the checks of the forge say about the offered work, held against those of the base it was merged with.
pub(super) fn read_forge_checks(
    site: &EngineContext,
    task: &Task,
    at: &IssueHandle,
) -> Result<ExchangeResult, ExchangeError> {
    let Some((issue, pr)) = task.issue.as_ref().and_then(|issue| Some((issue, issue.pr.as_ref()?))) else {
        return Ok(ExchangeResult::Checks { ci: CiStatus::Absent, climbed: None });
    };
    let here = checks_of(at, pr.head.as_str(), &|_| true)?;
    let says_something = |check: &CiCheck| check.stand != CiCheckState::Silent;
    let fails: Vec<&str> = here.iter().filter(|it| it.has_failed()).map(|it| it.name.as_str()).collect();
    let base = task.gate.as_ref().map(|gate| &gate.base).or(task.workspace.as_ref());
    // Where all is well here, nobody needs to know how the base is.
    let base = base.filter(|_| !fails.is_empty() || !here.iter().any(says_something));
    let base = match base.filter(|_| at.tracker.keeps_branches()) {
        Some(base) => checks_of(at, base.as_str(), &|name| fails.contains(&name))?,
        None => Vec::new(),
    };
    let now = site.now();
    let waited = match task.step() {
        Some(step) => ChecksWait::for_step(issue, &task.recoveries, step, now),
        None => ChecksWait { since: None, overdue: false, now }, // nobody waits for them
    };
    let ci = assess_ci_checks(&here, &base, waited);
    let climbed = recovering::recovery_for_checks(site, task, &ci);
    Ok(ExchangeResult::Checks { ci, climbed })
}

/// The checks of a commit. How they failed is asked for only where one did whose name is wanted.
fn checks_of(at: &IssueHandle, commit: &str, wanted: &dyn Fn(&str) -> bool) -> TrackerResult<Vec<CiCheck>> {
    let commit = CommitSha::new(commit)?;
    let checks = at.tracker.list_checks(&commit)?;
    let failed =
        |check: &ForgeCheck| check.state == ForgeCheckState::Done(Conclusion::Failure) && wanted(&check.name);
    let jobs = match checks.iter().any(failed) {
        true => at.tracker.failed_jobs(&commit)?,
        false => Vec::new(),
    };
    let seen = |check: &ForgeCheck| CiCheck {
        name: check.name.clone(),
        shown: escape_beginning(&check.name, 80),
        stand: match check.state {
            ForgeCheckState::Waiting => CiCheckState::Queued,
            ForgeCheckState::Running => CiCheckState::Running,
            ForgeCheckState::Done(Conclusion::Success) => CiCheckState::Passed,
            ForgeCheckState::Done(Conclusion::Neutral | Conclusion::Skipped) => CiCheckState::Silent,
            ForgeCheckState::Done(Conclusion::Failure) => {
                CiCheckState::Failed(jobs.iter().find(|job| Some(job.check) == check.id).map(to_seen_job))
            }
            ForgeCheckState::Done(
                Conclusion::Cancelled
                | Conclusion::TimedOut
                | Conclusion::ActionRequired
                | Conclusion::Stale
                | Conclusion::StartupFailure,
            ) => CiCheckState::Broken,
        },
    };
    Ok(checks.iter().map(seen).collect())
}

fn to_seen_job(job: &FailedJob) -> CiJobReport {
    let end = |step: &JobStep| match step.ended {
        Some(Conclusion::Success | Conclusion::Neutral | Conclusion::Skipped) => StepEnd::Fine,
        Some(Conclusion::Failure | Conclusion::TimedOut | Conclusion::ActionRequired) => StepEnd::Failed,
        Some(Conclusion::Cancelled | Conclusion::Stale | Conclusion::StartupFailure) | None => StepEnd::Cut,
    };
    CiJobReport {
        steps: job.steps.iter().map(|step| (step.name.clone(), end(step))).collect(),
        remarks: job.remarks.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_of_a_forge_close_an_issue() {
        let of = |message: &str| is_closing_message(message, 7);
        for yes in ["Fix the door (closes #7)", "fixes: #7", "a\n\nResolves #7.", "CLOSES #7"] {
            assert!(of(yes), "{yes}");
        }
        for no in ["closes #70", "see #7", "closes 7", "closes\u{a0}# 7", "encloses #7", "closes #17"] {
            assert!(!of(no), "{no}");
        }
    }

    #[test]
    fn a_spec_is_known_by_its_whole_number() {
        let number = IssueNumber::new(7).expect("not 0");
        assert!(is_spec("issue-7-door.md", number) && is_spec("issue-7.md", number));
        assert!(!is_spec("issue-70-door.md", number) && !is_spec("issue-7-door.txt", number));
    }
}

//! Offering work as a pull request, and writing down that it landed.

use std::sync::Arc;

use landfall_host::git::{BranchName as GitBranch, HeldReason, Oid, PublishOutcome};
use landfall_model::issue::{IssuePhase, IssueRoute, PullRequestRef};
use landfall_model::{Attempt, Commit, ExchangeResult, Task};
use landfall_trackers::tracker::{
    CommentThread, CommitSha, Marker, NewPullRequest, PrState, PullRequest, PullRequestMerge, Title,
    TrackerBranchName, neutralize_markers,
};

use super::{ExchangeError, IssueHandle, set_phase_label};
use crate::commit_message::{closing_words, commit_headline};
use crate::engine_context::EngineContext;
use crate::git_refs::task_ref_name;
use crate::host_context::HostContext;
use crate::ids;
use crate::settings::PublishTarget;

/// Offers the work as a pull request, if it takes that way. The branch is pushed where branches are kept.
pub(super) fn offer_pull_request(
    site: &Arc<EngineContext>,
    task: &Task,
    attempt: Attempt,
    at: &IssueHandle,
) -> Result<ExchangeResult, ExchangeError> {
    let way = task.issue.as_ref().and_then(|issue| issue.routed).map(|routed| routed.way);
    if way != Some(IssueRoute::Pr) {
        return Ok(ExchangeResult::Offered(None));
    }
    let head =
        task.head.as_ref().ok_or_else(|| ExchangeError::Else("there is no work to offer".to_owned()))?;
    let sha = CommitSha::new(head.as_str())?;
    let branch = at.work_branch();
    let known = task.issue.as_ref().and_then(|issue| issue.pr.as_ref());
    if at.tracker.keeps_branches() {
        let PublishTarget::Push { remote, .. } = &site.settings.land.publish else {
            let why = format!(
                "the tracker `{}` keeps branches, and none is pushed: set `land.publish` to \"push\" or \"pull-request\" in landfall.toml",
                at.source.tracker
            );
            return Err(ExchangeError::Else(why));
        };
        push_branch(
            site,
            remote,
            &branch,
            &ids::commit_to_oid(head),
            known.map(|pr| ids::commit_to_oid(&pr.head)),
        )?;
    }
    let new = NewPullRequest {
        head: branch,
        head_sha: sha.clone(),
        base: TrackerBranchName::new(site.branch.as_str())?,
        title: Title::from_text(&commit_headline(task)),
        body: pull_request_body(task, at),
        draft: false,
    };
    let pr = at.tracker.create_pull_request(&new)?.into_inner();
    if pr.head_sha != sha {
        at.tracker.note_pushed(pr.number, &sha)?;
    }
    if pr.state == PrState::Draft {
        at.tracker.mark_ready(pr.number)?;
    }
    post_findings(task, attempt, at, &pr)?;
    set_phase_label(at, IssuePhase::Review)?;
    Ok(ExchangeResult::Offered(Some(PullRequestRef {
        number: pr.number.get(),
        url: pr.url,
        head: head.clone(),
    })))
}

pub(crate) fn pull_request_body(task: &Task, at: &IssueHandle) -> String {
    let closes = closing_words(task, &at.source);
    let closes = closes.unwrap_or_else(|| format!("For issue #{}", at.source.number));
    let checks = task.gate.as_ref().filter(|gate| !gate.commands.is_empty()).map(|gate| {
        let names: Vec<String> =
            gate.commands.iter().map(|it| format!("- `{}`: {}", it.name, it.outcome.word())).collect();
        format!("\n\nVerified by Landfall on a clean checkout, merged with the base:\n\n{}", names.join("\n"))
    });
    format!("{closes}\n\nMade by Landfall as {}.{}", task.id, checks.unwrap_or_default())
}

/// What readers found and the author dealt with since: each round once.
fn post_findings(
    task: &Task,
    attempt: Attempt,
    at: &IssueHandle,
    pr: &PullRequest,
) -> Result<(), ExchangeError> {
    let rounds = task.counters.reviews;
    if rounds == 0 || task.findings.is_empty() {
        return Ok(());
    }
    let lines: String = task.findings.iter().map(|finding| format!("- {finding}\n")).collect();
    let marker = Marker::new(&format!("review-round/{}/{}", task_ref_name(task.id), rounds))?;
    let text = format!(
        "Review round {rounds} found:\n\n{}\nDealt with in attempt {attempt}.",
        neutralize_markers(&lines)
    );
    at.tracker.add_comment(CommentThread::PullRequest(pr.number), &marker, &text)?;
    Ok(())
}

/// Pushes a branch of ours, from where we left it. Work of others there is not overwritten.
pub(crate) fn push_branch(
    site: &EngineContext,
    remote: &str,
    branch: &TrackerBranchName,
    head: &Oid,
    known: Option<Oid>,
) -> Result<(), ExchangeError> {
    let name = GitBranch::new(branch.as_str()).map_err(|error| ExchangeError::Else(error.to_string()))?;
    let seen = site.store.remote_seen(remote, &name)?.or(known);
    let tries = [seen.clone(), Some(head.clone()), None];
    let mut said = String::new();
    for expected in tries {
        match site.store.push_task_branch(&site.repo, remote, &name, head, expected.as_ref())? {
            PublishOutcome::Done(_) | PublishOutcome::Already => return Ok(()),
            PublishOutcome::Held(HeldReason::Remote { stderr }) => said = stderr,
            PublishOutcome::Held(other) => said = format!("{other:?}"),
        }
        if !said.contains("stale info") {
            break;
        }
    }
    Err(ExchangeError::Refused(format!("the branch `{branch}` could not be pushed to `{remote}`: {said}")))
}

/// Writes down that the work landed, once that can be seen from outside.
pub(super) fn confirm_landing(
    site: &Arc<EngineContext>,
    task: &Task,
    at: &IssueHandle,
) -> Result<ExchangeResult, ExchangeError> {
    let Some(landed) = &task.landed else {
        return Err(ExchangeError::Else("nothing has landed".to_owned()));
    };
    if at.tracker.keeps_branches() && !is_published(site, &landed.commit)? {
        let what = "the landing was not published yet".to_owned();
        return Ok(ExchangeResult::NotYet { what });
    }
    let Some(pr) = task.issue.as_ref().and_then(|issue| issue.pr.as_ref()) else {
        set_phase_label(at, IssuePhase::Verify)?;
        return Ok(ExchangeResult::Told);
    };
    let number = landfall_trackers::tracker::PrNumber::new(pr.number)
        .ok_or_else(|| ExchangeError::Else("a pull request has no number 0".to_owned()))?;
    let seen = at.tracker.pull_request(number)?;
    match seen.state {
        PrState::Merged { .. } => drop_branch(site, at, &seen.head_sha),
        PrState::Draft | PrState::Open if at.tracker.keeps_branches() => {
            // The base holds its head: the forge sees that by itself, a moment later.
            return Ok(ExchangeResult::NotYet {
                what: format!("pull request #{} is not shown as merged yet", pr.number),
            });
        }
        PrState::Draft | PrState::Open => {
            let merge = PullRequestMerge {
                expected: seen.head_sha.clone(),
                subject: Title::from_text(&commit_headline(task)),
                body: String::new(),
                landed: Some(CommitSha::new(landed.commit.as_str())?),
            };
            at.tracker.merge_pull_request(number, &merge)?;
        }
        PrState::Closed => {
            let marker =
                Marker::new(&format!("landed/{}/{}", task_ref_name(task.id), landed.commit.short_hash()))?;
            let text = format!("This was closed, and its work has landed as {}.", landed.commit.as_str());
            at.tracker.add_comment(CommentThread::PullRequest(number), &marker, &text)?;
        }
    }
    set_phase_label(at, IssuePhase::Verify)?;
    Ok(ExchangeResult::Told)
}

/// Takes the branch of a merged pull request away where it was pushed to. One that stays, or holds more by now, is in nobody's way.
fn drop_branch(site: &EngineContext, at: &IssueHandle, head: &CommitSha) {
    let PublishTarget::Push { remote, .. } = &site.settings.land.publish else { return };
    let (Ok(branch), Ok(head)) = (GitBranch::new(at.work_branch().as_str()), head.as_str().parse::<Oid>())
    else {
        return;
    };
    if at.tracker.keeps_branches() {
        let _ = site.store.drop_task_branch(&site.repo, remote, &branch, &head); // see above
    }
}

/// Whether the branch that is pushed to holds a commit, as far as we know.
fn is_published(site: &HostContext, commit: &Commit) -> Result<bool, ExchangeError> {
    let PublishTarget::Push { remote, .. } = &site.settings.land.publish else { return Ok(true) };
    let Some(seen) = site.store.remote_seen(remote, &site.branch)? else { return Ok(false) };
    Ok(site.store.is_ancestor(&ids::commit_to_oid(commit), &seen)?)
}

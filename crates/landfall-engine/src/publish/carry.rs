//! For a base that nobody may push: landed work is offered as a pull request of its own, and the forge merges it.
//!
//! What is offered holds all that the branch of the remote holds, so the merge has the very tree that was verified. Commits that
//! others bring there meanwhile are taken in and verified with it first; what falls into the moment of the merge itself
//! is taken in afterwards, like any push of theirs.

use std::time::Duration;

use landfall_host::crash;
use landfall_host::git::{BranchName as GitBranch, CommitLogEntry, LogRange, Oid};
use landfall_model::issue::{CiStatus, MergeWait, may_merge_yet};
use landfall_trackers::tracker::{
    ChecksSum, CommitSha, NewPullRequest, PrState, PullRequestMerge, Title, Tracker, TrackerBranchName,
    TrackerError, TrackerResult, neutralize_markers, sum_checks,
};

use crate::engine_context::EngineContext;
use crate::exchange::{ExchangeError, offering, project_tracker};
use crate::land;

/// What the branch that is offered begins with. Each offer has one of its own: nobody has to be asked where it was left.
const LAND: &str = "landfall/land-";
const COMMITS_MAX: u32 = 1_000;
const SUBJECTS_MAX: usize = 50; // more than one landing brings together; a longer list is read by nobody
/// The longest time between two questions whether the forge merges: its checks take minutes.
const ASK_MS_MAX: u64 = 5_000;

/// What came of it.
pub(super) enum PullRequestResult {
    /// It is on the branch.
    Merged {
        /// By what, in words.
        how: String,
    },
    /// Others brought something: there is more to be verified first.
    Moved,
    /// The engine is stopping; the next run goes on.
    Interrupted,
}

/// Has the forge bring `ours` onto the branch of the remote.
pub(super) fn merge_by_pull_request(
    site: &EngineContext,
    remote: &str,
    ours: &Oid,
) -> Result<PullRequestResult, ExchangeError> {
    let tracker = project_tracker(site)?;
    let head = TrackerBranchName::new(&format!("{LAND}{}", ours.short()))?;
    let sha = CommitSha::new(ours.as_str())?;
    let there = site.store.remote_seen(remote, &site.branch)?;
    let range = LogRange { from: there.clone(), to: ours.clone(), first_parent: false };
    let mut landings = land::list_landings(&site.store, &range, COMMITS_MAX)?;
    landings.truncate(SUBJECTS_MAX);
    let newest = tracker.pull_requests_of(&head)?.into_iter().next();
    if let Some(pr) = newest.filter(|pr| pr.state == PrState::Closed && pr.head_sha == sha) {
        return Err(ExchangeError::Refused(format!(
            "somebody closed pull request #{}, which brings landed work to `{}`; open it again to let it land, or take the work back with `landfall rollback`",
            pr.number.get(),
            site.branch.as_str()
        )));
    }
    offering::push_branch(site, remote, &head, ours, None)?;
    let title = Title::from_text(&landing_title(&landings));
    let new = NewPullRequest {
        head: head.clone(),
        head_sha: sha.clone(),
        base: TrackerBranchName::new(site.branch.as_str())?,
        title: title.clone(),
        body: landing_body(&landings),
        draft: false,
    };
    let pr = tracker.create_pull_request(&new)?.into_inner();
    if pr.state == PrState::Draft {
        tracker.mark_ready(pr.number)?;
    }
    let base_has_some = match &there {
        Some(there) => sum_checks(&tracker.list_checks(&CommitSha::new(there.as_str())?)?) != ChecksSum::None,
        None => false,
    };
    let began = site.clock.mono_ms();
    let mut asked_since_running = 0;
    let merge = PullRequestMerge { expected: sha.clone(), subject: title, body: String::new(), landed: None };
    loop {
        // Landings that come meanwhile are for the next offer. What others brought is verified with this one first.
        let seen = land::observe_remote_now(site)?;
        let holds_all = match site.store.remote_seen(remote, &site.branch)? {
            Some(tip) => site.store.is_ancestor(&tip, ours)?,
            None => true,
        };
        if !holds_all || seen.trouble.is_some() {
            return Ok(PullRequestResult::Moved);
        }
        crash::pass_point("publish.merge.before");
        let no = match tracker.merge_pull_request(pr.number, &merge) {
            Ok(_) => {
                crash::pass_point("publish.merge.after");
                let name =
                    GitBranch::new(head.as_str()).map_err(|error| ExchangeError::Else(error.to_string()))?;
                let _ = site.store.drop_task_branch(&site.repo, remote, &name, ours); // one that stays is in nobody's way
                return Ok(PullRequestResult::Merged {
                    how: format!("it was merged as pull request #{}", pr.number.get()),
                });
            }
            Err(error @ (TrackerError::Conflict { .. } | TrackerError::Refused { .. })) => error,
            Err(error) => return Err(error.into()),
        };
        let checks = summarize_checks(&*tracker, &sha)?;
        asked_since_running =
            if matches!(checks, CiStatus::Running(_)) { 0 } else { asked_since_running + 1 };
        let total_ms = site.clock.mono_ms().saturating_sub(began);
        if !may_merge_yet(&checks, base_has_some, MergeWait { total_ms, asked_since_running }) {
            return Err(ExchangeError::Refused(format!(
                "pull request #{} brings landed work to `{}`, and is not merged{}: {no}; see {}",
                pr.number.get(),
                site.branch.as_str(),
                check_delay_reason(&checks),
                pr.url
            )));
        }
        let pause_ms = site.settings.tracker.poll_ms.min(ASK_MS_MAX);
        if site.interrupted.wait(Duration::from_millis(pause_ms)) {
            return Ok(PullRequestResult::Interrupted);
        }
    }
}

fn summarize_checks(tracker: &dyn Tracker, sha: &CommitSha) -> TrackerResult<CiStatus> {
    let all = tracker.list_checks(sha)?;
    let names = || all.iter().map(|check| check.name.clone()).collect();
    Ok(match sum_checks(&all) {
        ChecksSum::None => CiStatus::Absent,
        ChecksSum::Pending => CiStatus::Running(names()),
        ChecksSum::Passed => CiStatus::Passed,
        ChecksSum::Failed => CiStatus::Failed(names()),
        ChecksSum::Broken => CiStatus::Broken(names()),
    })
}

fn check_delay_reason(checks: &CiStatus) -> &'static str {
    match checks {
        CiStatus::Failed(_) | CiStatus::PreExisting(_) => ", for checks of the forge failed",
        CiStatus::Broken(_) => ", for checks of the forge were broken off",
        CiStatus::Running(_) => ", for checks of the forge take very long",
        CiStatus::Absent | CiStatus::Passed => "",
    }
}

fn landing_title(landings: &[CommitLogEntry]) -> String {
    match landings {
        [one] => format!("Land: {}", one.subject),
        all => format!("Land {} changes", all.len()),
    }
}

fn landing_body(landings: &[CommitLogEntry]) -> String {
    let lines: String =
        landings.iter().map(|it| format!("- {}\n", neutralize_markers(&it.subject))).collect();
    format!(
        "Verified by Landfall as a whole, on a clean checkout that holds the branch as it is:\n\n{lines}\n\
         Merge it with a merge commit: each commit is named by the certificate of its task.\n"
    )
}

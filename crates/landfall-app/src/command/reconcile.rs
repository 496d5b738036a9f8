//! Whether a phase of an issue is complete, by what can be seen and by nothing else.

use landfall_api::{self as api, Problem, ProblemCode};
use landfall_engine::engine::load_settings;
use landfall_engine::exchange::{ExchangeError, IdleIssueContext, read_idle_issue_state};
use landfall_engine::host::git::{BranchName, Git, Repo, Store};
use landfall_engine::model::Timestamp;
use landfall_engine::model::issue::{
    IssueRef, IssueSnapshot, ReconcilePoint, check_completion, check_precondition,
};

use crate::project::place::ProjectLocation;
use crate::project::problems;
use crate::query::{backlog, issues};

/// The words for phases.
pub fn points() -> Vec<&'static str> {
    ReconcilePoint::ALL.into_iter().map(ReconcilePoint::wire_name).collect()
}

pub(crate) fn reconcile_issue(
    place: &ProjectLocation,
    asked: &api::ReconcileAsked,
) -> Result<api::Reconciliation, Problem> {
    let point = ReconcilePoint::from_wire_name(&asked.phase).ok_or_else(|| {
        Problem::new(ProblemCode::BadInput, format!("there is no phase `{}`", asked.phase))
            .with_hint(format!("known: {}", points().join(", ")))
    })?;
    let seen = take_issue_snapshot(place, asked.issue.0, asked.pr.map(|pr| pr.0))?;
    let reconciled =
        if asked.begin { check_precondition(point, &seen) } else { check_completion(point, &seen) };
    Ok(api::Reconciliation {
        schema_version: "v1".to_owned(),
        phase: point.wire_name().to_owned(),
        matches_expected: reconciled.matches,
        actual: to_reconciliation_seen(&seen),
        diagnosis: reconciled.diagnosis,
    })
}

/// Everything that can be seen of an issue now.
pub(crate) fn take_issue_snapshot(
    place: &ProjectLocation,
    issue: u64,
    pr: Option<u64>,
) -> Result<IssueSnapshot, Problem> {
    let settings = load_settings(&place.root).map_err(|error| problems::open(&error))?.tracker;
    let tracker = settings.kind.unwrap_or("none").to_owned();
    let source = IssueRef { tracker, number: issue };
    let git = Git::find_installed().map_err(|error| problems::from_git_error(&error))?;
    let repo = Repo::discover(&git, &place.root).map_err(problems::from_repo_problem)?;
    place
        .folder
        .create_folders()
        .map_err(|error| problems::from_io_error("make", place.folder.root(), &error))?;
    let store = Store::open(&git, &place.folder.store_path(), &repo)
        .map_err(|error| problems::from_git_error(&error))?;
    let branch: BranchName = place.base_branch_or_empty().parse().map_err(|_| problems::detached_head())?;
    let sources = backlog::list_task_sources(place)?;
    let name = source.to_string();
    let id = sources.iter().rev().find(|(_, source)| *source == name).map(|(id, _)| *id);
    let task = match (place.open_reader()?, id) {
        (Some(reader), Some(id)) => reader.task(id).map_err(|error| problems::from_store_error(&error))?,
        (Some(_) | None, _) => None,
    };
    read_idle_issue_state(IdleIssueContext {
        tracker: issues::open(place)?,
        source,
        pr,
        task: task.as_ref(),
        store: &store,
        repo: &repo,
        branch: &branch,
        side: place.folder.side_name().map(str::to_owned),
        spec_path: &settings.spec_path,
    })
    .map_err(exchange_problem)
}

/// What kept somebody from looking at an issue.
pub(crate) fn exchange_problem(trouble: ExchangeError) -> Problem {
    match trouble {
        ExchangeError::Tracker(error) => issues::tracker_problem(&error),
        ExchangeError::Git(error) => problems::from_git_error(&error),
        ExchangeError::Refused(what) | ExchangeError::Else(what) => Problem::new(ProblemCode::BadInput, what),
        ExchangeError::Interrupted => Problem::new(ProblemCode::NotNow, "the engine is stopping"),
    }
}

fn to_reconciliation_seen(seen: &IssueSnapshot) -> api::ReconciliationSeen {
    let pr = seen.pr.as_ref();
    let commit = seen.commit.as_ref().map(|commit| commit.as_str().to_owned());
    api::ReconciliationSeen {
        labels: seen.labels.clone(),
        pr_state: pr.map(|pr| pr.state.word().to_owned()),
        pr_number: pr.map(|pr| pr.number),
        commits_found: commit.is_some(),
        spec_file: seen.spec_file.clone(),
        issue_state: if seen.open { "OPEN" } else { "CLOSED" }.to_owned(),
        reopen_ts: seen.reopened.map(format_utc),
        hint_recent_commit: commit,
        hint_pr_state: pr.map(|pr| {
            let read = if pr.reviewed { ", its review is summed up" } else { "" };
            format!("pull request #{} is {}{read}", pr.number, pr.state.word())
        }),
    }
}

fn format_utc(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| at.0.to_string(), |at| at.to_string())
}

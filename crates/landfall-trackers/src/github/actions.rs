//! What GitHub's own runners tell about jobs that failed, and having them run again.
//!
//! Checks of other services can be asked for again by those services alone. Whoever may not look at the runs of a repository
//! knows nothing about them: that is no failure, it only leaves more to the checks themselves.

use std::collections::BTreeSet;

use serde_json::json;

use super::Github;
use super::client::{GithubMethod, GithubRequest, RetryEffect, read};
use super::wire::{
    ConclusionWire, GithubCheckAnnotation, GithubJob, GithubWorkflowRun, GithubWorkflowRuns, Jobs,
};
use crate::tracker::{
    CommitSha, FailedJob, JobStep, Tracker as _, TrackerError, TrackerResult, escape_beginning,
};

/// Jobs whose remarks are read: a matrix that fails everywhere says the same thing everywhere.
const REMARKS_OF_JOBS_MAX: usize = 20;
const REMARKS_MAX: usize = 20;
const REMARK_CHARS_MAX: usize = 500;

impl Github {
    /// The jobs that failed on a commit, in the last attempt of each run, whether or not the run goes on.
    pub(super) fn jobs_that_failed(&self, commit: &CommitSha) -> TrackerResult<Vec<FailedJob>> {
        let mut failed = Vec::new();
        for run in self.list_workflow_runs(commit)?.into_iter().filter(|run| run.is_red() || !run.is_over()) {
            let jobs = self.list_jobs(&run)?.into_iter();
            failed.extend(jobs.filter(|job| matches!(job.conclusion, Some(ConclusionWire::Failure))));
        }
        let mut told = Vec::new();
        for (place, job) in failed.into_iter().enumerate() {
            let remarks = if place < REMARKS_OF_JOBS_MAX { self.list_annotations(&job)? } else { Vec::new() };
            let steps = job.steps.into_iter().map(JobStep::from).collect();
            told.push(FailedJob { check: job.id, steps, remarks });
        }
        Ok(told)
    }

    /// Has what failed run again; of how many runs. It returns when the checks that were red are no longer the newest: whoever
    /// looks then does not see the old end once more.
    pub(super) fn run_again(&self, commit: &CommitSha) -> TrackerResult<usize> {
        let mut count = 0;
        let mut old = BTreeSet::new();
        for run in self.list_workflow_runs(commit)?.into_iter().filter(GithubWorkflowRun::is_red) {
            let what = format!("run the failed jobs of run {} again", run.id);
            let jobs = self.list_jobs(&run)?;
            let path = self.path(["actions", "runs", &run.id.to_string(), "rerun-failed-jobs"]);
            let call = GithubRequest::write(&what, GithubMethod::Post, path, json!({}), RetryEffect::Twice);
            let began = || {
                let now = self.run(run.id)?;
                Ok((!now.is_over() || now.run_attempt > run.run_attempt).then_some(()))
            };
            match self.create_once(&what, began, || self.client.send_only(&call)) {
                Ok(_) => {
                    count += 1;
                    old.extend(jobs.iter().filter(|job| job.is_red()).map(|job| job.id));
                }
                // It is too old to be run again, or not ours to run.
                Err(TrackerError::Forbidden { .. } | TrackerError::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        for tried in 1..=self.client.patience.tries_max {
            let now = self.list_checks(commit)?;
            if !now.iter().any(|check| check.id.is_some_and(|id| old.contains(&id))) {
                break;
            }
            self.client.wait_before_retry(&format!("read the checks of {commit}"), tried)?;
        }
        Ok(count)
    }

    /// The runs of a commit.
    fn list_workflow_runs(&self, commit: &CommitSha) -> TrackerResult<Vec<GithubWorkflowRun>> {
        let what = format!("read the runs of {commit}");
        let call =
            GithubRequest::get(&what, self.path(["actions", "runs"])).query("head_sha", commit.as_str());
        let pages = self.client.fetch_pages(
            call,
            |what, body| Ok(read::<GithubWorkflowRuns>(what, body)?.workflow_runs),
            |_| false,
        );
        let runs = empty_if_unknown(pages.map(|pages| pages.items))?;
        let mut seen = BTreeSet::new();
        let here = |run: &GithubWorkflowRun| run.head_sha.eq_ignore_ascii_case(commit.as_str());
        Ok(runs.into_iter().filter(|run| here(run) && seen.insert(run.id)).collect())
    }

    fn run(&self, id: u64) -> TrackerResult<GithubWorkflowRun> {
        let path = self.path(["actions", "runs", &id.to_string()]);
        self.client.fetch_json_uncached(&GithubRequest::get(format!("read run {id}"), path))
    }

    fn list_jobs(&self, run: &GithubWorkflowRun) -> TrackerResult<Vec<GithubJob>> {
        let path = self.path(["actions", "runs", &run.id.to_string(), "jobs"]);
        let call =
            GithubRequest::get(format!("read the jobs of run {}", run.id), path).query("filter", "latest");
        let pages = self.client.fetch_pages(call, |what, body| Ok(read::<Jobs>(what, body)?.jobs), |_| false);
        empty_if_unknown(pages.map(|pages| pages.items))
    }

    /// What was remarked about the failure of a job.
    fn list_annotations(&self, job: &GithubJob) -> TrackerResult<Vec<String>> {
        let path = self.path(["check-runs", &job.id.to_string(), "annotations"]);
        let all: Vec<GithubCheckAnnotation> = empty_if_unknown(
            self.client.fetch_list(GithubRequest::get(format!("read the remarks of job {}", job.id), path)),
        )?;
        let failures = all.into_iter().filter(|it| it.annotation_level.as_deref() == Some("failure"));
        let words =
            failures.filter_map(|it| it.message).map(|words| escape_beginning(&words, REMARK_CHARS_MAX));
        Ok(words.take(REMARKS_MAX).collect())
    }
}

impl GithubJob {
    fn is_red(&self) -> bool {
        match self.conclusion {
            Some(ConclusionWire::Success | ConclusionWire::Neutral | ConclusionWire::Skipped) | None => false,
            Some(
                ConclusionWire::Failure
                | ConclusionWire::Cancelled
                | ConclusionWire::TimedOut
                | ConclusionWire::ActionRequired
                | ConclusionWire::Stale
                | ConclusionWire::StartupFailure,
            ) => true,
        }
    }
}

/// What may not be looked at, and what a server does not have, is not known.
fn empty_if_unknown<T>(answer: TrackerResult<Vec<T>>) -> TrackerResult<Vec<T>> {
    match answer {
        Err(TrackerError::Forbidden { .. } | TrackerError::NotFound { .. }) => Ok(Vec::new()),
        other => other,
    }
}

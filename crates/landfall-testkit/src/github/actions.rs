//! Runs of workflows, their jobs and the checks these are. Each commit has one run.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::FakeGithubReply;
use super::routes::{QueryParams, paged, value};
use super::state::{FakeCheck, FakeRepository, moment, run_of};

/// Does what a request about them asks for, and answers.
pub(super) fn route(
    world: &mut FakeRepository,
    at: SocketAddr,
    method: &str,
    parts: &[&str],
    query: &QueryParams,
) -> Option<FakeGithubReply> {
    match (method, parts) {
        ("GET", ["commits", sha, "check-runs"]) => {
            let runs = world.checks.get(*sha).map(Vec::as_slice).unwrap_or_default().iter().enumerate();
            let runs = runs.map(|(place, check)| check_run(world, at, sha, place, check)).collect();
            Some(listed(at, &parts.join("/"), query, "check_runs", runs))
        }
        ("GET", ["check-runs", id, "annotations"]) => {
            let (sha, place) = world.checks.keys().find_map(|sha| {
                let all = 0..world.checks[sha].len();
                Some((sha, all.into_iter().find(|place| check_id(world, sha, *place).to_string() == *id)?))
            })?;
            let name = world.checks[sha][place].name.clone();
            let job = world.jobs.get(&(sha.clone(), name)).cloned().unwrap_or_default();
            Some(FakeGithubReply::new(200, job.remarks.iter().map(|remark| annotation(at, remark)).collect()))
        }
        ("GET", ["actions", "runs"]) => {
            let wanted = value(query, "head_sha");
            let runs = world.checks.keys().filter(|sha| wanted.is_none_or(|wanted| wanted == *sha));
            let runs = runs.map(|sha| run(world, at, sha)).collect();
            Some(listed(at, "actions/runs", query, "workflow_runs", runs))
        }
        (_, ["actions", "runs", id, rest @ ..]) => {
            let sha = world.checks.keys().find(|sha| run_of(sha).to_string() == *id)?.clone();
            match (method, rest) {
                ("GET", []) => Some(FakeGithubReply::new(200, run(world, at, &sha))),
                ("GET", ["jobs"]) => {
                    let jobs = world.checks[&sha].iter().enumerate();
                    let jobs = jobs.map(|(place, check)| job(world, at, &sha, place, check)).collect();
                    Some(listed(at, &parts.join("/"), query, "jobs", jobs))
                }
                ("POST", ["rerun-failed-jobs"]) => Some(run_again(world, &sha)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// A page of a list that stands in an object with its length.
fn listed(
    at: SocketAddr,
    below: &str,
    query: &QueryParams,
    name: &str,
    items: Vec<Value>,
) -> FakeGithubReply {
    let total = items.len();
    let page = paged(at, &format!("/repos/o/r/{below}"), query, FakeGithubReply::new(200, items.into()));
    let mut body = json!({ "total_count": total });
    body[name] = page.body;
    FakeGithubReply { body, ..page }
}

fn attempt(world: &FakeRepository, sha: &str) -> u64 {
    1 + world.reruns.get(sha).copied().unwrap_or_default()
}

/// The check of another attempt is another one.
fn check_id(world: &FakeRepository, sha: &str, place: usize) -> u64 {
    let place = u64::try_from(place).expect("few");
    (run_of(sha) * 100 + attempt(world, sha)) * 1_000 + place
}

fn is_red(check: &FakeCheck) -> bool {
    check.conclusion.as_deref().is_some_and(|word| !matches!(word, "success" | "neutral" | "skipped"))
}

fn check_run(world: &FakeRepository, at: SocketAddr, sha: &str, place: usize, check: &FakeCheck) -> Value {
    let id = check_id(world, sha, place);
    json!({
        "id": id, "name": check.name, "head_sha": sha, "status": check.status, "conclusion": check.conclusion,
        "started_at": moment(world.now), "completed_at": check.conclusion.as_ref().map(|_| moment(world.now)),
        "html_url": format!("http://{at}/runs/{id}"),
        "app": { "id": 1, "name": "GitHub Actions", "slug": "github-actions" },
    })
}

fn run(world: &FakeRepository, at: SocketAddr, sha: &str) -> Value {
    let checks = &world.checks[sha];
    let over = checks.iter().all(|check| check.conclusion.is_some());
    let red = checks.iter().find(|check| is_red(check)).and_then(|check| check.conclusion.clone());
    let conclusion = over.then(|| red.unwrap_or_else(|| "success".to_owned()));
    let id = run_of(sha);
    let url = format!("http://{at}/api/v3/repos/{}/actions/runs/{id}", world.repository);
    json!({
        "id": id, "node_id": format!("WFR_{id}"), "name": "CI", "head_branch": null, "head_sha": sha,
        "path": ".github/workflows/ci.yml", "run_number": 1, "run_attempt": attempt(world, sha), "event": "push",
        "status": if over { "completed" } else { "in_progress" }, "conclusion": conclusion, "workflow_id": 1,
        "url": url, "html_url": format!("http://{at}/{}/actions/runs/{id}", world.repository),
        "created_at": moment(world.now), "updated_at": moment(world.now), "pull_requests": [],
    })
}

fn job(world: &FakeRepository, at: SocketAddr, sha: &str, place: usize, check: &FakeCheck) -> Value {
    let id = check_id(world, sha, place);
    let known = world.jobs.get(&(sha.to_owned(), check.name.clone())).cloned().unwrap_or_default();
    let steps = known.steps.iter().zip(1..);
    let steps: Vec<Value> = steps
        .map(|((name, ended), number)| {
            let status = if ended.is_some() { "completed" } else { "in_progress" };
            json!({ "name": name, "status": status, "conclusion": ended, "number": number })
        })
        .collect();
    let url = format!("http://{at}/api/v3/repos/{}", world.repository);
    json!({
        "id": id, "run_id": run_of(sha), "run_url": format!("{url}/actions/runs/{}", run_of(sha)),
        "node_id": format!("CR_{id}"), "head_sha": sha, "url": format!("{url}/actions/jobs/{id}"), "html_url": null,
        "status": check.status, "conclusion": check.conclusion, "created_at": moment(world.now),
        "started_at": moment(world.now), "completed_at": check.conclusion.as_ref().map(|_| moment(world.now)),
        "name": check.name, "steps": steps, "check_run_url": format!("{url}/check-runs/{id}"), "labels": [],
        "runner_id": null, "runner_name": null, "runner_group_id": null, "runner_group_name": null,
        "workflow_name": "CI", "head_branch": null,
    })
}

fn annotation(at: SocketAddr, remark: &str) -> Value {
    json!({
        "path": ".github", "start_line": 1, "end_line": 1, "start_column": null, "end_column": null,
        "annotation_level": "failure", "title": "", "message": remark, "raw_details": "",
        "blob_href": format!("http://{at}/blob"),
    })
}

fn run_again(world: &mut FakeRepository, sha: &str) -> FakeGithubReply {
    let checks = world.checks.get_mut(sha).expect("the caller found it");
    if checks.iter().any(|check| check.conclusion.is_none()) {
        return FakeGithubReply::said(403, "This workflow is already running");
    }
    if !checks.iter().any(is_red) {
        return FakeGithubReply::said(403, "This workflow run cannot be retried");
    }
    for check in checks.iter_mut().filter(|check| is_red(check)) {
        let job = world.jobs.entry((sha.to_owned(), check.name.clone())).or_default();
        if !job.again.is_empty() {
            check.conclusion = Some(job.again.remove(0));
        }
    }
    *world.reruns.entry(sha.to_owned()).or_default() += 1;
    FakeGithubReply::new(201, json!({}))
}

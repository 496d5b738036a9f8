//! What a forge is asked. A query is written as words of its command line client, and answered by the tracker: nothing is put into
//! a shell, and nothing is asked that is not in this file.

use landfall_model::acceptance::GithubQuery;
use landfall_trackers::tracker::{
    ChecksSum, CommitSha, Conclusion, ForgeCheck, ForgeCheckState, Issue, IssueNumber, PrNumber, PrState,
    PullRequest, ReviewVerdict, Tracker, TrackerError, TrackerIssueState, sum_checks,
};
use serde_json::{Map, Value, json};

use super::files::shorten_to_line;
use super::json_path;
use super::shell::ShellWorkspace;
use super::tree::AcceptanceTree;
use super::workflow::{self, WorkflowJob};
use super::{
    AcceptanceContext, CheckEvidence, fail_with_evidence, pass_or_fail, pass_with_evidence, pending_because,
    uncertain_because,
};

/// What is asked, understood.
#[derive(Debug, PartialEq, Eq)]
enum ForgeQuery {
    Issue(u64),
    Pull(Option<u64>),
    Checks(Option<u64>),
    Runs,
    /// Something the tracker does not answer: the client does, if it is installed.
    Client,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct ForgeQueryOptions {
    fields: Option<Vec<String>>,
    path: Option<String>,
    workflow: Option<String>,
}

fn parse_github_query(query: &GithubQuery) -> Result<(ForgeQuery, ForgeQueryOptions), String> {
    let mut plain: Vec<&str> = Vec::new();
    let mut shown = ForgeQueryOptions::default();
    let mut words = query.words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            plain.push(word);
            continue;
        }
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let mut value = || value.or_else(|| words.next()).unwrap_or_default().to_owned();
        match name {
            "--json" => shown.fields = Some(value().split(',').map(|it| it.trim().to_owned()).collect()),
            "--jq" | "-q" => shown.path = Some(value()),
            "--repo" | "-R" => return Err("only this repository is asked".to_owned()),
            "--workflow" => shown.workflow = Some(value()),
            // The commit that is looked at is on one branch, and has one answer.
            "--branch" | "--limit" => drop(value()),
            "--comments" | "--paginate" | "--required" => {}
            _ => return Err(format!("`{}` is no option that only shows", shorten_to_line(name))),
        }
    }
    let number = |text: &str| {
        let digits = text.strip_prefix('#').unwrap_or(text);
        digits.parse::<u64>().map_err(|_| format!("`{}` is no number", shorten_to_line(text)))
    };
    let asked = match plain[..] {
        ["issue", "view", issue] => ForgeQuery::Issue(number(issue)?),
        ["pr", "view"] => ForgeQuery::Pull(None),
        ["pr", "view", pull] => ForgeQuery::Pull(Some(number(pull)?)),
        ["pr", "checks"] => ForgeQuery::Checks(None),
        ["pr", "checks", pull] => ForgeQuery::Checks(Some(number(pull)?)),
        ["run", "list"] => ForgeQuery::Runs,
        ["api", path] if path.trim_start_matches('/').starts_with("repos/") && !path.contains("..") => {
            ForgeQuery::Client
        }
        ["run", "view", run] => {
            number(run)?;
            ForgeQuery::Client
        }
        _ => {
            return Err("known are `gh issue view N`, `gh pr view`, `gh pr checks`, `gh run list`, `gh run view N` and \
                 `gh api repos/…`"
                .to_owned());
        }
    };
    Ok((asked, shown))
}

fn uncertain_tracker_error(error: &TrackerError) -> CheckEvidence {
    uncertain_because(format!("the tracker did not answer: {error}"))
}

/// Asks, and looks for the value in the answer.
pub(super) fn check_github_query(
    ground: &AcceptanceContext<'_>,
    shop: Option<&ShellWorkspace<'_>>,
    query: &GithubQuery,
    value: &str,
) -> CheckEvidence {
    let (asked, shown) = match parse_github_query(query) {
        Ok(both) => both,
        Err(why) => return uncertain_because(why),
    };
    if asked == ForgeQuery::Client {
        return query_gh_client(shop, query, value);
    }
    let Some(tracker) = ground.tracker else {
        return uncertain_because("there is no tracker to ask".to_owned());
    };
    match answer_github_query(ground, tracker, &asked, &shown, value) {
        Ok(saw) | Err(saw) => saw,
    }
}

fn answer_github_query(
    ground: &AcceptanceContext<'_>,
    tracker: &dyn Tracker,
    asked: &ForgeQuery,
    shown: &ForgeQueryOptions,
    value: &str,
) -> Result<CheckEvidence, CheckEvidence> {
    let trouble = |error: TrackerError| uncertain_tracker_error(&error);
    let pull = |number: &Option<u64>| {
        let number = match number {
            Some(number) => PrNumber::new(*number),
            None => ground.pr,
        };
        number.ok_or_else(|| uncertain_because("no pull request is known here".to_owned()))
    };
    match asked {
        ForgeQuery::Issue(number) => {
            let number = IssueNumber::new(*number)
                .ok_or_else(|| uncertain_because("numbers begin at 1".to_owned()))?;
            let issue = tracker.read_issue(number).map_err(trouble)?;
            let wants = |field: &str| shown.fields.iter().flatten().any(|it| it == field);
            let comments = if wants("comments") {
                tracker.list_comments(number.into()).map_err(trouble)?
            } else {
                Vec::new()
            };
            let mut view = issue_to_json(&issue);
            view.insert("comments".into(), comments.iter().map(|it| json!({"body": it.body})).collect());
            evaluate_view(view, shown, value)
        }
        ForgeQuery::Pull(number) => {
            let number = pull(number)?;
            let seen = tracker.pull_request(number).map_err(trouble)?;
            let mut view = pull_request_to_json(&seen);
            if shown.fields.iter().flatten().any(|it| it == "reviewDecision") {
                let reviews = tracker.list_reviews(number).map_err(trouble)?;
                let last = reviews.iter().rev().find_map(|review| match review.verdict {
                    ReviewVerdict::Approved => Some("APPROVED"),
                    ReviewVerdict::ChangesRequested => Some("CHANGES_REQUESTED"),
                    ReviewVerdict::Commented | ReviewVerdict::Dismissed | ReviewVerdict::Pending => None,
                });
                view.insert("reviewDecision".into(), last.unwrap_or("").into());
            }
            evaluate_view(view, shown, value)
        }
        ForgeQuery::Checks(number) => {
            let head = tracker.pull_request(pull(number)?).map_err(trouble)?.head_sha;
            let checks = tracker.list_checks(&head).map_err(trouble)?;
            Ok(evaluate_checks(ground.tree, &checks, shown, value))
        }
        ForgeQuery::Runs => {
            let head = find_head_commit(ground)
                .ok_or_else(|| uncertain_because("no commit is known here".to_owned()))?;
            let mut checks = tracker.list_checks(&head).map_err(trouble)?;
            if let Some(workflow) = &shown.workflow {
                let jobs = jobs_of(ground.tree, workflow).ok_or_else(|| {
                    uncertain_because(format!("there is no workflow `{}`", shorten_to_line(workflow)))
                })?;
                checks.retain(|check| jobs.iter().any(|job| job.is_called(&check.name)));
            }
            Ok(evaluate_runs(&checks, shown, value))
        }
        ForgeQuery::Client => Err(uncertain_because("the tracker does not answer this".to_owned())),
    }
}

/// The commit whose checks count.
fn find_head_commit(ground: &AcceptanceContext<'_>) -> Option<CommitSha> {
    ground.head.clone().or_else(|| CommitSha::new(ground.tree.commit()?).ok())
}

fn issue_to_json(issue: &Issue) -> Map<String, Value> {
    let labels: Vec<Value> = issue.labels.iter().map(|label| json!({"name": label.as_str()})).collect();
    let state = match issue.state {
        TrackerIssueState::Open => "OPEN",
        TrackerIssueState::Closed { .. } => "CLOSED",
    };
    into_json_object(json!({
        "number": issue.number.get(),
        "title": issue.title,
        "state": state,
        "labels": labels,
        "url": issue.url,
        "author": {"login": issue.author},
        "assignees": issue.assignees.iter().map(|it| json!({"login": it})).collect::<Vec<_>>(),
        "body": issue.body,
    }))
}

fn pull_request_to_json(pull: &PullRequest) -> Map<String, Value> {
    let state = match pull.state {
        PrState::Draft | PrState::Open => "OPEN",
        PrState::Closed => "CLOSED",
        PrState::Merged { .. } => "MERGED",
    };
    let merges = pull.merges.map_or("UNKNOWN", |it| if it { "MERGEABLE" } else { "CONFLICTING" });
    into_json_object(json!({
        "number": pull.number.get(),
        "title": pull.title,
        "state": state,
        "isDraft": pull.state == PrState::Draft,
        "headRefName": pull.head.as_ref().map(ToString::to_string),
        "headRefOid": pull.head_sha.as_str(),
        "baseRefName": pull.base.as_ref().map(ToString::to_string),
        "mergeable": merges,
        "url": pull.url,
        "author": {"login": pull.author},
        "body": pull.body,
    }))
}

fn into_json_object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// The answer as the client would write it.
fn evaluate_view(
    view: Map<String, Value>,
    shown: &ForgeQueryOptions,
    value: &str,
) -> Result<CheckEvidence, CheckEvidence> {
    let text = match (&shown.fields, &shown.path) {
        (None, None) => {
            let line = |(key, value): (&String, &Value)| {
                format!("{key}:\t{}\n", json_path::format_values_raw(std::slice::from_ref(value)))
            };
            view.iter().map(line).collect()
        }
        (None, Some(_)) => return Err(uncertain_because("`--jq` goes with `--json`".to_owned())),
        (Some(fields), path) => {
            let picked = pick_fields(&view, fields)?;
            format_json_value(Value::Object(picked), path.as_deref())?
        }
    };
    Ok(check_text_contains(&text, value))
}

fn pick_fields(view: &Map<String, Value>, fields: &[String]) -> Result<Map<String, Value>, CheckEvidence> {
    let one = |field: &String| match view.get(field) {
        Some(value) => Ok((field.clone(), value.clone())),
        None => {
            let known: Vec<&str> = view.keys().map(String::as_str).collect();
            Err(uncertain_because(format!(
                "unknown field `{}`; known are {}",
                shorten_to_line(field),
                known.join(", ")
            )))
        }
    };
    fields.iter().map(one).collect()
}

fn format_json_value(value: Value, path: Option<&str>) -> Result<String, CheckEvidence> {
    let Some(path) = path else { return Ok(value.to_string()) };
    let found =
        json_path::parse_json_path(path).and_then(|query| query.run(&value)).map_err(uncertain_because)?;
    Ok(json_path::format_values_raw(&found))
}

fn check_text_contains(text: &str, value: &str) -> CheckEvidence {
    let how = if text.contains(value) { "contains" } else { "does not contain" };
    pass_or_fail(text.contains(value), format!("the answer {how} `{}`", shorten_to_line(value)))
}

fn check_state_and_bucket(state: ForgeCheckState) -> (&'static str, &'static str) {
    match state {
        ForgeCheckState::Waiting => ("QUEUED", "pending"),
        ForgeCheckState::Running => ("IN_PROGRESS", "pending"),
        ForgeCheckState::Done(Conclusion::Success) => ("SUCCESS", "pass"),
        ForgeCheckState::Done(Conclusion::Failure) => ("FAILURE", "fail"),
        ForgeCheckState::Done(Conclusion::Neutral) => ("NEUTRAL", "skipping"),
        ForgeCheckState::Done(Conclusion::Skipped) => ("SKIPPED", "skipping"),
        ForgeCheckState::Done(Conclusion::Cancelled) => ("CANCELLED", "cancel"),
        ForgeCheckState::Done(Conclusion::TimedOut) => ("TIMED_OUT", "fail"),
        ForgeCheckState::Done(Conclusion::ActionRequired) => ("ACTION_REQUIRED", "fail"),
        ForgeCheckState::Done(Conclusion::Stale) => ("STALE", "fail"),
        ForgeCheckState::Done(Conclusion::StartupFailure) => ("STARTUP_FAILURE", "fail"),
    }
}

/// Words that say of all checks that they passed. That one of several did is no answer to them.
const PASSED: [&str; 4] = ["pass", "passed", "success", "SUCCESS"];

/// Whether checks are as they should be. A word such as `pass` is about all of them; anything else is the name or the key of a job.
fn evaluate_checks(
    tree: &AcceptanceTree,
    checks: &[ForgeCheck],
    shown: &ForgeQueryOptions,
    value: &str,
) -> CheckEvidence {
    if PASSED.contains(&value) || checks.is_empty() {
        return evaluate_check_sum(checks, "the checks");
    }
    if shown.fields.is_some() {
        return evaluate_check_list(checks, checks.iter().map(check_to_json_row).collect(), shown, value);
    }
    let jobs = list_workflow_jobs(tree);
    let is_meant = |check: &&ForgeCheck| {
        check.name.contains(value) || jobs.iter().any(|job| job.key == value && job.is_called(&check.name))
    };
    let of: Vec<ForgeCheck> = checks.iter().filter(is_meant).cloned().collect();
    match (of.is_empty(), sum_checks(checks)) {
        (false, _) => evaluate_check_sum(&of, &format!("`{}`", shorten_to_line(value))),
        (true, ChecksSum::Pending) => {
            pending_because(format!("no check is called `{}` yet", shorten_to_line(value)))
        }
        (true, _) => fail_with_evidence(format!("no check is called `{}`", shorten_to_line(value))),
    }
}

/// Whether the runs of a commit are as they should be. Its checks come to one run: one job that passed is not the whole.
fn evaluate_runs(checks: &[ForgeCheck], shown: &ForgeQueryOptions, value: &str) -> CheckEvidence {
    if PASSED.contains(&value) || checks.is_empty() || shown.fields.is_none() {
        return evaluate_check_sum(checks, "the runs");
    }
    let state = match sum_checks(checks) {
        ChecksSum::None | ChecksSum::Pending => ForgeCheckState::Running,
        ChecksSum::Passed => ForgeCheckState::Done(Conclusion::Success),
        ChecksSum::Failed => ForgeCheckState::Done(Conclusion::Failure),
        ChecksSum::Broken => ForgeCheckState::Done(Conclusion::Cancelled),
    };
    let whole =
        ForgeCheck { id: None, name: "all jobs".to_owned(), by: None, state, started: None, url: None };
    evaluate_check_list(checks, vec![check_to_json_row(&whole)], shown, value)
}

fn check_to_json_row(check: &ForgeCheck) -> Map<String, Value> {
    let (state, bucket) = check_state_and_bucket(check.state);
    let (status, conclusion) = match check.state {
        ForgeCheckState::Waiting => ("queued", String::new()),
        ForgeCheckState::Running => ("in_progress", String::new()),
        ForgeCheckState::Done(_) => ("completed", state.to_lowercase()),
    };
    into_json_object(json!({
        "name": check.name, "state": state, "bucket": bucket, "status": status, "conclusion": conclusion,
        "workflowName": check.by,
    }))
}

fn evaluate_check_list(
    checks: &[ForgeCheck],
    rows: Vec<Map<String, Value>>,
    shown: &ForgeQueryOptions,
    value: &str,
) -> CheckEvidence {
    let fields = shown.fields.as_deref().unwrap_or_default();
    let rows: Result<Vec<Value>, CheckEvidence> =
        rows.iter().map(|row| pick_fields(row, fields).map(Value::Object)).collect();
    match rows.and_then(|rows| format_json_value(Value::Array(rows), shown.path.as_deref())) {
        Err(saw) => saw,
        Ok(text) if text.contains(value) => check_text_contains(&text, value),
        Ok(_) if sum_checks(checks) == ChecksSum::Pending => {
            pending_because("checks are still running".to_owned())
        }
        Ok(_) if sum_checks(checks) == ChecksSum::Broken => uncertain_broken_checks("the checks"),
        Ok(text) => check_text_contains(&text, value),
    }
}

fn uncertain_broken_checks(what: &str) -> CheckEvidence {
    uncertain_because(format!("{what} were cut off or could not begin: that says nothing about the work"))
}

fn evaluate_check_sum(checks: &[ForgeCheck], what: &str) -> CheckEvidence {
    match sum_checks(checks) {
        ChecksSum::None => uncertain_because(format!("{what}: no check has said anything")),
        ChecksSum::Pending => pending_because(format!("{what}: still running")),
        ChecksSum::Passed => pass_with_evidence(format!("{what}: passed")),
        ChecksSum::Failed => {
            let failed = checks.iter().filter(|it| it.state == ForgeCheckState::Done(Conclusion::Failure));
            let names: Vec<String> =
                failed.take(3).map(|it| format!("`{}`", shorten_to_line(&it.name))).collect();
            fail_with_evidence(format!("{what}: {} failed", names.join(", ")))
        }
        ChecksSum::Broken => uncertain_broken_checks(what),
    }
}

/// The workflow files, with their names.
fn list_workflow_files(tree: &AcceptanceTree) -> Vec<(String, String)> {
    const FOLDER: &str = ".github/workflows";
    let names = tree.list_names(FOLDER).unwrap_or_default();
    let files = names.into_iter().filter(|name| name.ends_with(".yml") || name.ends_with(".yaml"));
    files
        .filter_map(|name| Some((tree.read_text(&format!("{FOLDER}/{name}")).ok()??, name)))
        .map(|(text, name)| (name, text))
        .collect()
}

fn list_workflow_jobs(tree: &AcceptanceTree) -> Vec<WorkflowJob> {
    list_workflow_files(tree).iter().flat_map(|(_, text)| workflow::parse_workflow_jobs(text)).collect()
}

/// The jobs of one workflow, by its file or by what it calls itself.
fn jobs_of(tree: &AcceptanceTree, wanted: &str) -> Option<Vec<WorkflowJob>> {
    let called = |text: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix("name:"))
            .map(|name| name.trim().trim_matches(['"', '\'']).to_owned())
    };
    let all = list_workflow_files(tree);
    let found = all.iter().find(|(name, text)| name == wanted || called(text).as_deref() == Some(wanted));
    found.map(|(_, text)| workflow::parse_workflow_jobs(text))
}

/// What the forge's own run of a command came to: for where we run nothing ourselves.
pub(super) fn check_command_on_forge(ground: &AcceptanceContext<'_>, line: &str) -> CheckEvidence {
    let nothing = || {
        uncertain_because(
            "it is a command, none is run in safe mode, and no check of the forge runs it".to_owned(),
        )
    };
    let (Some(tracker), Some(head)) = (ground.tracker, find_head_commit(ground)) else { return nothing() };
    let jobs: Vec<WorkflowJob> = list_workflow_jobs(ground.tree)
        .into_iter()
        .filter(|job| job.runs.iter().any(|it| it == line.trim()))
        .collect();
    if jobs.is_empty() {
        return nothing();
    }
    let checks = match tracker.list_checks(&head) {
        Ok(checks) => checks,
        Err(error) => return uncertain_tracker_error(&error),
    };
    let of: Vec<ForgeCheck> =
        checks.into_iter().filter(|check| jobs.iter().any(|job| job.is_called(&check.name))).collect();
    if of.is_empty() { nothing() } else { evaluate_check_sum(&of, "the check that runs it") }
}

/// Asks the client, with words that were understood above. What it says is not shown: it may be more than the readers of the issue
/// may see.
fn query_gh_client(shop: Option<&ShellWorkspace<'_>>, query: &GithubQuery, value: &str) -> CheckEvidence {
    const LIMIT_MS: u64 = 30_000;
    let Some((shop, program)) = shop.and_then(|shop| Some((shop, shop.on_path(&["gh"])?))) else {
        return uncertain_because("the tracker does not answer this, and `gh` is not installed".to_owned());
    };
    let argv = std::iter::once(program.into()).chain(query.words.iter().map(Into::into)).collect();
    match shop.run_outside(argv, LIMIT_MS) {
        Err(why) => uncertain_because(format!("`gh` could not be run: {why}")),
        Ok(said) if said.ran.is_well() => check_text_contains(&String::from_utf8_lossy(&said.out), value),
        Ok(said) if said.ran.timed_out => uncertain_because("`gh` did not answer in time".to_owned()),
        Ok(said) => uncertain_because(format!("`gh` ended with code {}", said.ran.exit.unwrap_or(-1))),
    }
}

//! The ladder of recoveries for tasks that follow an issue: what the end of a step looks like is put together here and handed
//! to the model, which says what follows; operations and the agent that looks are performed here when it says so.

use std::path::Path;
use std::sync::Arc;

use landfall_host::git::{CollectOptions, LostHeadPolicy, MergeResult, Oid, Signature, Workspace};
use landfall_model::issue::{
    CiStatus, IssueSnapshot, PullRequestState, ReconcilePoint, ReconcileResult, check_completion, is_of_round,
};
use landfall_model::recovery::{
    self, AgentAvailability, IssueArtifacts, Known, PendingRecovery, PlanAction, Recovery, RecoveryContext,
    RecoveryOp, Symptoms, base_moved_fact, has_step_result, reconcile_point,
};
use landfall_model::{
    AgentExit, AgentRunEvidence, Attempt, BudgetScope, EndedRun, News, RecoveryResult, Spending, StepKind,
    Task,
};
use landfall_trackers::tracker::TrackerBranchName;
use serde_json::json;

use crate::agent_run::{head_of, is_reader_run};
use crate::commit_message::commit_headline;
use crate::diagnose::{self, DiagnosisRequest};
use crate::engine_context::EngineContext;
use crate::exchange::{self, offering};
use crate::git_refs::{collect_detail, task_ref};
use crate::host_context::HostContext;
use crate::ids;
use crate::output_text::read_text_tail;
use crate::recover_ops::{self, OpsError};
use crate::settings::PublishTarget;
use crate::step_outputs::missing_outputs;
use crate::{gate, land};

const OUT_BYTES_MAX: u64 = 64 * 1024; // the last lines are what is looked at
const ERR_BYTES_MAX: u64 = 16 * 1024;

/// The end of a run, with what is done about it.
pub(crate) fn attach_recovery(site: &HostContext, task: &Task, run: EndedRun) -> EndedRun {
    if task.issue.is_none() {
        return run;
    }
    let dir = site.folder.iteration_path(task.id, run.attempt, run.iteration);
    let log = log_of(&dir);
    let changed = run.exit == AgentExit::Code(0)
        && !run.evidence.has_committed()
        && !is_reader_run(task)
        && is_changed(site, task);
    let climbed =
        recovery::recovery_after_run(&site.catalogue, AgentAvailability::Free, task, &run, &log, changed);
    EndedRun { climbed, ..run }
}

/// What a run wrote, the end of it.
fn log_of(dir: &Path) -> String {
    let (out, err) = (
        read_text_tail(&dir.join("out.log"), OUT_BYTES_MAX),
        read_text_tail(&dir.join("err.log"), ERR_BYTES_MAX),
    );
    if err.trim().is_empty() { out } else { format!("{}\n{err}", out.trim_end()) }
}

/// Whether changes lie in the workspace that nobody has committed.
fn is_changed(site: &HostContext, task: &Task) -> bool {
    let options = CollectOptions {
        pin: None,
        commit_leftovers: None,
        lost_head: LostHeadPolicy::UseBase,
        aside: None,
        paths_max: site.settings.land.paths_max,
    };
    let workspace = site.pool.find_workspace(&task.id.to_string());
    let seen = workspace.map(|workspace| site.store.collect_work(&workspace, &options));
    // One that cannot be read is for verification to complain about.
    seen.is_none_or(|seen| seen.map_or(true, |seen| seen.dirty_count > 0))
}

/// What follows from an exchange that was refused.
pub(crate) fn recovery_for_refusal(
    site: &EngineContext,
    task: &Task,
    detail: &str,
) -> Option<RecoveryContext> {
    recovery::recovery_after_exchange(
        &site.catalogue,
        AgentAvailability::Free,
        task,
        detail,
        check_moved_base(site, task),
    )
}

/// Whether the base has moved since the work was made, also where others push to, and whether the two still go together.
fn check_moved_base(site: &EngineContext, task: &Task) -> Option<Known> {
    let head = ids::commit_to_oid(task.head.as_ref().filter(|_| task.landed.is_none())?);
    let base = land::observe_remote(site, 0).ok()?.ours; // one that cannot be asked is not known to have moved
    let held = site.store.is_ancestor(&base, &head).ok()?;
    let merges = held || matches!(site.store.merge_commits(&base, &head).ok()?, MergeResult::Clean { .. });
    base_moved_fact(held, merges)
}

/// What is done about what the checks of the forge came to.
pub(crate) fn recovery_for_checks(site: &HostContext, task: &Task, ci: &CiStatus) -> Option<RecoveryContext> {
    recovery::recovery_after_checks(&site.catalogue, task, ci, site.now())
}

/// Does what is due about a failure of `task`, and tells what came of it. All of it may be repeated: operations find what is
/// done already, and whoever was asked and not heard is asked again.
pub(crate) fn perform_recovery(site: &Arc<EngineContext>, task: &Task, attempt: Attempt) {
    let Some(step) = task.step() else { return };
    let open = task.recoveries.unresolved_try(step);
    let due = task.recoveries.pending_recovery(step);
    let recovered = match (due.clone(), open) {
        (Some(PendingRecovery::Diagnosis), Some(open)) => ask_recovery_agent(site, task, attempt, open),
        (Some(PendingRecovery::Ops(ops)), Some(_)) => perform_operations(site, task, attempt, &ops),
        (Some(_), None) | (None, _) => Ok(conclude_without_due(open)),
    };
    if site.interrupted.is_set() {
        return; // the journal expects it, and the next run does it again
    }
    let recovered = match (recovered, due) {
        // Whoever stopped the run does not wait for the agent that looks. Operations are finished.
        (Err(_), Some(PendingRecovery::Diagnosis)) if is_stopping(site) => RecoveryResult::PutOff,
        (recovered, _) => recovered.unwrap_or_else(|why| RecoveryResult::Failed { why }),
    };
    site.send_news(task.id, News::Recovered { attempt, recovered });
}

fn is_stopping(site: &EngineContext) -> bool {
    site.live.lock().view.stopping
}

/// Nothing is due any more: the journal was cut after an agent had looked.
fn conclude_without_due(open: Option<&Recovery>) -> RecoveryResult {
    match open.and_then(|it| it.diagnosis.as_ref()) {
        Some(said) if matches!(said.action, None | Some(PlanAction::Abort)) => {
            RecoveryResult::Failed { why: said.rationale.clone() }
        }
        Some(_) | None => RecoveryResult::Done { head: None, lines: Vec::new() },
    }
}

fn ask_recovery_agent(
    site: &Arc<EngineContext>,
    task: &Task,
    attempt: Attempt,
    open: &Recovery,
) -> Result<RecoveryResult, String> {
    let is_stopped = || site.interrupted.is_set() || is_stopping(site) || site.is_stopped(task.id, attempt);
    let turn = site.active.begin_diagnosis(&is_stopped);
    let Some(_alone) = turn else {
        return Err("it was stopped before the recovery agent could look".to_owned());
    };
    let name = task.driving.as_ref().map_or("default", |driving| driving.profile.as_str());
    let profile = site.settings.agents.get(name).ok_or_else(|| format!("there is no agent `{name}`"))?;
    let symptoms = collect_symptoms(site, task, open)?;
    let desked = exchange::open_issue(site, task).ok();
    let seen = desked.as_ref().and_then(|at| exchange::read_issue_state(site, task, at).ok());
    let branch = desked.as_ref().map(|at| at.work_branch().to_string()).unwrap_or_default();
    let labels = seen.as_ref().map(|seen| seen.labels.clone()).unwrap_or_default();
    let pull_request = seen.as_ref().and_then(|seen| seen.pr.as_ref());
    let pull_request = pull_request.map(|pr| format!("#{} is {}", pr.number, pr.state.word()));
    let reconciled = seen.as_ref().map(|seen| reconciliation(symptoms.phase, seen)).unwrap_or_default();
    let before = task.recoveries.tried.iter().filter(|it| !std::ptr::eq(*it, open));
    let tried: Vec<String> =
        before.map(|it| format!("- `{}` at `{}`: {}", it.symptom, it.step, it.action)).collect();
    let (_, today) = site.current_spending();
    let spent = Spending { usage: task.counters.usage, time_ms: task.counters.agent_ms };
    let asked = DiagnosisRequest {
        settings: &site.settings,
        profile,
        root: site.repo.root(),
        folder: &site.folder,
        program: &site.program,
        environment: &site.environment,
        prompts: &site.prompts,
        evidence: diagnose::FailureEvidence {
            task: &task.id.to_string(),
            title: &task.spec.title,
            step: open.step.as_str(),
            branch: &branch,
            symptoms: &symptoms,
            reconciled: &reconciled,
            labels: &labels,
            pull_request: &pull_request.unwrap_or_default(),
            tried: &tried,
        },
        budgets: vec![
            (BudgetScope::Task, task.limits.task_budget, spent),
            (BudgetScope::Day, site.settings.purse.day, today),
        ],
        is_stopped: &is_stopped,
    };
    let said = diagnose::diagnose_failure(&asked)?;
    let (action, rationale, ops) = match said.plan {
        Ok(plan) => (Some(plan.action()), plan.rationale().to_owned(), plan.steps().to_vec()),
        Err(problem) => (None, problem.to_string(), Vec::new()),
    };
    let (profile, usage, took_ms) = (name.to_owned(), said.usage, said.took_ms);
    Ok(RecoveryResult::Diagnosed { action, rationale, ops, profile, usage, took_ms })
}

/// What can be seen of a phase, as `landfall issue reconcile` shows it.
fn reconciliation(point: ReconcilePoint, seen: &IssueSnapshot) -> String {
    let ReconcileResult { matches, diagnosis } = check_completion(point, seen);
    let pr = seen.pr.as_ref();
    let snapshot = json!({
        "schema_version": "v1",
        "phase": point.wire_name(),
        "matches_expected": matches,
        "actual": {
            "labels": seen.labels,
            "issue_state": if seen.open { "OPEN" } else { "CLOSED" },
            "pr_number": pr.map(|pr| pr.number),
            "pr_state": pr.map(|pr| pr.state.word()),
            "review_is_summed_up": pr.is_some_and(|pr| pr.reviewed),
            "commit": seen.commit.as_ref().map(ToString::to_string),
            "spec_file": seen.spec_file,
            "blocked_by": seen.blockers,
        },
        "diagnosis": diagnosis,
    });
    serde_json::to_string_pretty(&snapshot).expect("a value of ours is JSON")
}

/// The failure as the journal knows it, and what can be seen of it now.
fn collect_symptoms(site: &HostContext, task: &Task, open: &Recovery) -> Result<Symptoms, String> {
    let step = task.flow.as_ref().and_then(|flow| flow.find_step(&open.step));
    let step = step.ok_or_else(|| format!("its flow has no step `{}`", open.step))?;
    let phase = reconcile_point(task, step)
        .ok_or_else(|| format!("step `{}` is of no phase of an issue", open.step))?;
    let evidence = AgentRunEvidence {
        head_before: task.seen_head.clone(),
        head_after: head_of(site, task),
        missing: missing_outputs(site, task, 0),
        ..AgentRunEvidence::default()
    };
    let matches = has_step_result(task, step, &evidence, false);
    let took_ms = open.took_ms.unwrap_or_default();
    let mut symptoms = Symptoms::from_step_end(phase, &AgentExit::Lost, took_ms, &open.tail, matches);
    symptoms.exit = open.exit;
    symptoms.facts.remove(&Known::Vanished);
    symptoms.facts.extend(&open.known);
    if task.head.is_some() || matches == Some(true) {
        symptoms.facts.insert(Known::Commit);
    }
    Ok(symptoms)
}

/// Carries operations out.
fn perform_operations(
    site: &Arc<EngineContext>,
    task: &Task,
    attempt: Attempt,
    ops: &[RecoveryOp],
) -> Result<RecoveryResult, String> {
    let at = exchange::open_issue(site, task).map_err(|trouble| trouble.to_string())?;
    let workspace = site.pool.find_workspace(&task.id.to_string());
    let head = collect_tip(site, task, workspace.as_ref())?;
    let base = TrackerBranchName::new(site.branch.as_str()).map_err(|error| error.to_string())?;
    let remote = match &site.settings.land.publish {
        PublishTarget::Push { remote, .. } if at.tracker.keeps_branches() => Some(remote.as_str()),
        _ => None,
    };
    let by = Signature::for_engine(site.clock.now_ms());
    let hints = || {
        let seen = exchange::read_issue_state(site, task, &at).map_err(|trouble| trouble.to_string())?;
        let base = land::sync_base(site).map_err(|error| error.full_message())?;
        let commit = !site.store.is_ancestor(&head, &base).map_err(|error| error.full_message())?;
        let pr = seen.pr.as_ref().filter(|pr| pr.state == PullRequestState::Open);
        Ok(IssueArtifacts {
            spec: seen.spec_file.is_some(),
            commit,
            pr_open: pr.is_some(),
            reviewed: pr.is_some_and(|pr| pr.reviewed),
        })
    };
    let ground = recover_ops::RecoveryOpContext {
        store: &site.store,
        repo: &site.repo,
        tracker: &*at.tracker,
        remote,
        task: task.id,
        key: &at.task_mark(task.id),
        mark: &format!("{}", attempt.0),
        issue: at.number,
        workspace: workspace.as_ref().filter(|_| is_worked_in(task)),
        head: &head,
        branch: &at.work_branch(),
        base: &base,
        title: &commit_headline(task),
        body: &offering::pull_request_body(task, &at),
        by: &by,
        is_of_round: &|pr| task.issue.as_ref().is_none_or(|issue| is_of_round(pr.get(), issue)),
        hints: &hints,
        run_check: &|name, head| run_check(site, task, name, head),
    };
    let did = match recover_ops::perform_operations(&ground, ops) {
        Ok(did) => did,
        Err(error @ OpsError::Changed(_)) => return Err(error.to_string()),
        Err(error @ OpsError::Failed { .. }) => return Err(error.to_string()),
    };
    let moved = (did.head != head).then(|| ids::oid_to_commit(&did.head));
    Ok(RecoveryResult::Done { head: moved, lines: did.lines })
}

/// Whether the step of a task works in its workspace, rather than with what is in the store.
fn is_worked_in(task: &Task) -> bool {
    let step = task.step().and_then(|step| task.flow.as_ref()?.find_step(step));
    step.is_some_and(|step| matches!(step.kind, StepKind::Agent { .. }))
}

/// The tip of the work, in the store.
fn collect_tip(site: &HostContext, task: &Task, workspace: Option<&Workspace>) -> Result<Oid, String> {
    if let (Some(workspace), true) = (workspace, is_worked_in(task) || task.head.is_none()) {
        let pin = Some(task_ref("tasks", task.id, "recovering"));
        let options = CollectOptions {
            pin,
            commit_leftovers: None,
            lost_head: LostHeadPolicy::Refuse,
            aside: None,
            paths_max: site.settings.land.paths_max,
        };
        let collected =
            site.store.collect_work(workspace, &options).map_err(|error| collect_detail(&error))?;
        return Ok(collected.agent_head);
    }
    let head = task.head.as_ref().map(ids::commit_to_oid);
    head.ok_or_else(|| "there is no work yet".to_owned())
}

/// Runs a check of the project on the work as it would land.
fn run_check(site: &EngineContext, task: &Task, name: &str, head: &Oid) -> Result<(), String> {
    let base = land::sync_base(site).map_err(|error| error.full_message())?;
    let tree = match site.store.merge_commits(&base, head).map_err(|error| error.full_message())? {
        MergeResult::Clean { tree } => tree,
        MergeResult::Conflict { .. } => return Err("the work does not merge into the base".to_owned()),
    };
    let by = Signature::for_engine(site.clock.now_ms());
    let message = format!("{} on its base, to be checked\n", task.id);
    let merged = site.store.create_commit(&tree, &[base.clone(), head.clone()], &message, &by, &by);
    let merged = merged.map_err(|error| error.full_message())?;
    let about = format!("{}-recovery", task.id);
    let report =
        gate::verify_merge(site, &about, &base, head, &merged).map_err(|error| error.full_message())?;
    let report = report.ok_or("the engine is being stopped")?;
    match report.commands.iter().find(|it| it.name == name) {
        Some(it) if it.outcome.is_green() => Ok(()),
        Some(it) => Err(format!("check `{name}`: {}", it.outcome.word())),
        None => Err(format!("check `{name}` was not come to: one before it does not pass")),
    }
}

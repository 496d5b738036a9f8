//! The end of a run, or of an exchange, as the ladder sees it: whether what it was to bring about is there, and which rung
//! follows.

use std::collections::BTreeSet;

use super::event::Recoveries;
use super::ladder::{AgentAvailability, TierDecision, decide_tier};
use super::pattern::{Known, Pattern, RecoveryAction, Symptoms, detect_pattern};
use crate::acceptance::VerifyOutcome;
use crate::event::AgentExit;
use crate::flow::{FlowStep, StepKind};
use crate::input::EndedRun;
use crate::issue::{self, AcceptanceOutcome, CiStatus, IssuePhase, IssueRoute, ReconcilePoint};
use crate::judge::{AgentRunEvidence, Verdict, judge};
use crate::task::Task;
use crate::{StepName, Timestamp};

/// So much of a log goes into the journal: enough to know the failure again.
const TAIL_LINES_KEPT: usize = 60;
const LINE_CHARS_KEPT: usize = 300;

/// What is done about the end of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryContext {
    /// What it is counted as.
    pub symptom: String,
    /// The exit code, if it is known.
    pub exit: Option<i32>,
    /// The last lines of its log.
    pub tail: String,
    /// How long it took; 0 if that is not known.
    pub took_ms: u64,
    /// What else is known of it.
    pub known: BTreeSet<Known>,
    /// What follows.
    pub climb: RecoveryStep,
}

/// What follows from the end of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryStep {
    /// It is done in spite of all.
    Done,
    /// What the catalogue says.
    Act(RecoveryAction),
    /// An agent is to look.
    Diagnose,
    /// An agent is to look, as soon as it can.
    Wait,
    /// A person is to look, because of this.
    Stop(String),
}

impl RecoveryContext {
    fn from_symptoms(
        catalogue: &[Pattern],
        past: &Recoveries,
        agent: AgentAvailability,
        step: &StepName,
        symptoms: &Symptoms,
    ) -> Self {
        let known = detect_pattern(catalogue, symptoms).map(|pattern| pattern.name.clone());
        let climb = match decide_tier(catalogue, past, agent, step, symptoms) {
            TierDecision::Done => RecoveryStep::Done,
            TierDecision::Act(pattern) => RecoveryStep::Act(pattern.action),
            TierDecision::Diagnose(_) => RecoveryStep::Diagnose,
            TierDecision::Wait => RecoveryStep::Wait,
            TierDecision::Stop(why) => RecoveryStep::Stop(why),
        };
        let symptom = known.unwrap_or_else(|| symptoms.name());
        Self {
            symptom,
            exit: symptoms.exit,
            tail: keep_tail(&symptoms.tail),
            took_ms: symptoms.took_ms,
            known: symptoms.facts.clone(),
            climb,
        }
    }
}

fn keep_tail(tail: &str) -> String {
    let lines: Vec<&str> = tail.lines().collect();
    let lines = lines[lines.len().saturating_sub(TAIL_LINES_KEPT)..].iter();
    lines.map(|line| line.chars().take(LINE_CHARS_KEPT).collect::<String>()).collect::<Vec<_>>().join("\n")
}

/// The point on the way of its issue that a step of a task is about.
#[must_use]
pub fn reconcile_point(task: &Task, step: &FlowStep) -> Option<ReconcilePoint> {
    let way = task.issue.as_ref()?.routed.map(|routed| routed.way);
    Some(match IssuePhase::from_word(&step.phase)? {
        IssuePhase::Issue => ReconcilePoint::Issue,
        IssuePhase::Spec | IssuePhase::Ready => ReconcilePoint::Spec,
        IssuePhase::Code if way == Some(IssueRoute::Pr) => ReconcilePoint::CodePr,
        IssuePhase::Code => ReconcilePoint::CodePatch,
        IssuePhase::Review => ReconcilePoint::Review,
        IssuePhase::Merge => ReconcilePoint::Merge,
        IssuePhase::Verify | IssuePhase::Done => ReconcilePoint::Verify,
    })
}

/// Whether what an agent's step was to bring about is there; none if that cannot be told. `clean` says that the agent came
/// to an end of its own.
#[must_use]
pub fn has_step_result(
    task: &Task,
    step: &FlowStep,
    evidence: &AgentRunEvidence,
    clean: bool,
) -> Option<bool> {
    match &step.kind {
        StepKind::Review => Some(evidence.opinion.is_some()),
        StepKind::Agent { iterate: true, .. } => {
            let head = evidence.head_after.as_ref()?;
            let authored = task.issue.as_ref().and_then(|issue| issue.authored.as_ref());
            let is_there = evidence.has_committed() || authored == Some(head);
            // What was sent back is not done before something has changed; an agent may say that nothing needs to.
            let sent_back = !clean && task.head.as_ref() == Some(head);
            Some(is_there && !sent_back)
        }
        StepKind::Agent { output, .. } if output.is_empty() => None,
        StepKind::Agent { .. } => Some(evidence.missing.is_empty()),
        StepKind::Verify
        | StepKind::Land
        | StepKind::Report
        | StepKind::Ask { .. }
        | StepKind::Split
        | StepKind::Tracker { .. }
        | StepKind::Check { .. }
        | StepKind::Target
        | StepKind::Converge => None,
    }
}

/// How the run of an agent ended, for the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgentEndKind {
    /// By itself, without trouble.
    Clean,
    /// In a way that says nothing about the work.
    Trouble,
}

/// Whether the ladder is for such an end. Accounts, budgets, providers and people are dealt with elsewhere.
fn agent_end_kind(verdict: &Verdict) -> Option<AgentEndKind> {
    match verdict {
        Verdict::Complete | Verdict::Continue => Some(AgentEndKind::Clean),
        Verdict::Crashed { .. }
        | Verdict::Stalled
        | Verdict::Looping
        | Verdict::Stopped
        | Verdict::Lost
        | Verdict::NotStarted { hopeless: false, .. } => Some(AgentEndKind::Trouble),
        Verdict::NotStarted { hopeless: true, .. }
        | Verdict::Blocked { .. }
        | Verdict::Pending { .. }
        | Verdict::Checkpoint { .. }
        | Verdict::Quota { .. }
        | Verdict::Transient { .. }
        | Verdict::Unauthorized { .. }
        | Verdict::SessionGone
        | Verdict::OverBudget { .. }
        | Verdict::ContextUsedUp
        | Verdict::OutOfTime => None,
    }
}

/// Whether the ladder is for such an end.
pub(crate) fn is_climbed(verdict: &Verdict) -> bool {
    agent_end_kind(verdict).is_some()
}

/// Which rung follows from the end of a run. None where nothing has to be done about it: the task follows no issue, the end
/// is not one for the ladder, or all is well. `changed` says that there are changes nobody has committed: the engine commits
/// those when the work is verified. `log` is the end of what the run wrote.
#[must_use]
pub fn recovery_after_run(
    catalogue: &[Pattern],
    agent: AgentAvailability,
    task: &Task,
    run: &EndedRun,
    log: &str,
    changed: bool,
) -> Option<RecoveryContext> {
    task.issue.as_ref()?;
    let step = task.flow.as_ref()?.find_step(task.step()?)?;
    if !matches!(step.kind, StepKind::Agent { .. } | StepKind::Review) {
        return None;
    }
    let verdict = judge(&run.seen, &run.exit, &run.evidence);
    let manner = agent_end_kind(&verdict)?;
    let matches = has_step_result(task, step, &run.evidence, manner == AgentEndKind::Clean);
    if matches!(verdict, Verdict::NotStarted { .. }) && matches != Some(true) {
        return None; // it is this machine that failed, not the step: it is tried again within its limits
    }
    let works = matches!(step.kind, StepKind::Agent { iterate: true, .. });
    if manner == AgentEndKind::Clean && (matches != Some(false) || works && changed) {
        return None;
    }
    let mut symptoms =
        Symptoms::from_step_end(reconcile_point(task, step)?, &run.exit, run.took_ms, log, matches);
    if manner == AgentEndKind::Clean {
        symptoms.facts.insert(Known::ClaimsSuccess); // whoever ends without a word of trouble says so
    }
    match (works, matches) {
        (true, Some(true)) => {
            symptoms.facts.insert(Known::Commit); // a set has it once
        }
        (true, Some(false)) if task.head.is_none() => {
            symptoms.facts.insert(Known::NoCommit);
        }
        (true, _) | (false, _) => {}
    }
    if changed {
        symptoms.facts.insert(Known::OwnChanges);
    }
    if step.kind == StepKind::Review && run.evidence.opinion.is_none() {
        symptoms.facts.insert(Known::NoReview);
    }
    let offered = task.issue.as_ref().is_some_and(|issue| issue.pr.is_some());
    if offered && waits_for_checks(&symptoms.tail) {
        symptoms.facts.insert(Known::WaitedForChecks);
    }
    Some(RecoveryContext::from_symptoms(catalogue, &task.recoveries, agent, &step.name, &symptoms))
}

/// What agents say, and run, that wait for the checks of their pull request; in small letters.
const WAITS: [&str; 4] = ["waiting for checks", "wait for ci", "waiting for ci", "gh pr checks --watch"];

/// Whether the last words of a run are about checks of a forge that it waits for.
fn waits_for_checks(tail: &str) -> bool {
    let last: Vec<&str> = tail.lines().rev().filter(|line| !line.trim().is_empty()).take(5).collect();
    let last = last.join("\n").to_lowercase();
    let counted = last.contains("waiting for ") && last.contains(" checks of #");
    counted || WAITS.iter().any(|words| last.contains(words))
}

/// What is known by how the base stands to the work: whether the work holds it, and whether the two merge. Nothing, if the base
/// has not moved.
#[must_use]
pub fn base_moved_fact(held: bool, merges: bool) -> Option<Known> {
    match (held, merges) {
        (true, _) => None,
        (false, true) => Some(Known::BaseMovedApart),
        (false, false) => Some(Known::BaseMovedOverlapping),
    }
}

/// Which rung follows from an exchange that did not work out, in these words. `facts` are what else is known of it.
#[must_use]
pub fn recovery_after_exchange(
    catalogue: &[Pattern],
    agent: AgentAvailability,
    task: &Task,
    detail: &str,
    facts: impl IntoIterator<Item = Known>,
) -> Option<RecoveryContext> {
    let step = task.flow.as_ref()?.find_step(task.step()?)?;
    let mut symptoms =
        Symptoms::from_step_end(reconcile_point(task, step)?, &AgentExit::Code(1), 0, detail, Some(false));
    symptoms.facts.extend(facts);
    if task.head.is_some() {
        symptoms.facts.insert(Known::Commit);
    }
    Some(RecoveryContext::from_symptoms(catalogue, &task.recoveries, agent, &step.name, &symptoms))
}

/// Which rung follows from what the checks of the forge came to. None where nothing has to be done about it. What was tried
/// for a commit before this one does not count: each may be unlucky once.
#[must_use]
pub fn recovery_after_checks(
    catalogue: &[Pattern],
    task: &Task,
    ci: &CiStatus,
    now: Timestamp,
) -> Option<RecoveryContext> {
    let pipeline = task.issue.as_ref()?;
    let step = task.flow.as_ref()?.find_step(task.step()?)?;
    let passed_before = matches!(pipeline.ci, Some((CiStatus::Passed, _)));
    let (facts, names) = match ci {
        CiStatus::Absent | CiStatus::Passed => return None,
        CiStatus::Running(_) if !issue::is_ci_overdue(pipeline, &task.recoveries, &step.name, now) => {
            return None;
        }
        CiStatus::Running(names) => (vec![Known::Silence, Known::WaitedForChecks], names),
        CiStatus::Failed(names) if passed_before => (vec![Known::ChecksFlaky], names),
        CiStatus::Failed(names) => (vec![Known::ChecksFailed], names),
        CiStatus::PreExisting(names) => (vec![Known::FailsOnBase], names),
        CiStatus::Broken(names) => (vec![Known::ChecksBroken], names),
    };
    let mut symptoms = Symptoms::from_step_end(
        reconcile_point(task, step)?,
        &AgentExit::Code(0),
        0,
        &names.join("\n"),
        Some(false),
    );
    symptoms.exit = None; // no program of ours ended
    symptoms.facts = facts.into_iter().collect();
    symptoms.facts.insert(Known::Commit);
    let mut past = task.recoveries.clone();
    let first = pipeline.ci.as_ref().map(|(_, since)| *since);
    let of_this = past.tried.iter().position(|it| first.is_some_and(|first| it.at >= first));
    past.past = past.past.max(of_this.unwrap_or(past.tried.len()));
    Some(RecoveryContext::from_symptoms(catalogue, &past, AgentAvailability::Off, &step.name, &symptoms))
}

/// What is done about what landed and does not hold what its issue promises. None where it holds, and where the catalogue does
/// not know about it.
#[must_use]
pub fn recovery_after_acceptance(
    catalogue: &[Pattern],
    task: &Task,
    accepted: &AcceptanceOutcome,
) -> Option<RecoveryContext> {
    let VerifyOutcome::Reopen { .. } = accepted.outcome else { return None };
    let step = task.flow.as_ref()?.find_step(task.step()?)?;
    let mut symptoms = Symptoms::from_step_end(
        reconcile_point(task, step)?,
        &AgentExit::Code(0),
        0,
        &accepted.describe_failed_items(),
        Some(false),
    );
    symptoms.facts = [Known::CriterionFails].into();
    let pattern = detect_pattern(catalogue, &symptoms)?;
    let climb = match pattern.action {
        RecoveryAction::Stop => RecoveryStep::Stop(format!("`{}`: {}", pattern.name, pattern.about)),
        action => RecoveryStep::Act(action),
    };
    let (symptom, tail) = (pattern.name.clone(), keep_tail(&symptoms.tail));
    Some(RecoveryContext { symptom, exit: None, tail, took_ms: 0, known: symptoms.facts, climb })
}

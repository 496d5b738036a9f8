//! The end of a run, or of an exchange, as the ladder sees it: whether what it was to bring about is there, and which rung
//! follows.

use super::event::Recoveries;
use super::ladder::{Agent, Rung, climb};
use super::pattern::{Action, Known, Pattern, Symptoms, detect};
use crate::StepName;
use crate::event::Exit;
use crate::flow::{Step, StepKind};
use crate::input::EndedRun;
use crate::issue::{Phase, Point, Way};
use crate::judge::{Evidence, Verdict, judge};
use crate::task::Task;

/// So much of a log goes into the journal: enough to know the failure again.
const TAIL_LINES_KEPT: usize = 60;
const LINE_CHARS_KEPT: usize = 300;

/// What is done about the end of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Climbed {
    /// What it is counted as.
    pub symptom: String,
    /// The exit code, if it is known.
    pub exit: Option<i32>,
    /// The last lines of its log.
    pub tail: String,
    /// What follows.
    pub climb: Climb,
}

/// What follows from the end of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Climb {
    /// It is done in spite of all.
    Done,
    /// What the catalogue says.
    Act(Action),
    /// An agent is to look.
    Diagnose,
    /// An agent is to look, as soon as it can.
    Wait,
    /// A person is to look, because of this.
    Stop(String),
}

impl Climbed {
    fn of(
        catalogue: &[Pattern],
        past: &Recoveries,
        agent: Agent,
        step: &StepName,
        symptoms: &Symptoms,
    ) -> Self {
        let known = detect(catalogue, symptoms).map(|pattern| pattern.name.clone());
        let climb = match climb(catalogue, past, agent, step, symptoms) {
            Rung::Done => Climb::Done,
            Rung::Act(pattern) => Climb::Act(pattern.action),
            Rung::Diagnose(_) => Climb::Diagnose,
            Rung::Wait => Climb::Wait,
            Rung::Stop(why) => Climb::Stop(why),
        };
        let symptom = known.unwrap_or_else(|| symptoms.name());
        Self { symptom, exit: symptoms.exit, tail: kept(&symptoms.tail), climb }
    }
}

fn kept(tail: &str) -> String {
    let lines: Vec<&str> = tail.lines().collect();
    let lines = lines[lines.len().saturating_sub(TAIL_LINES_KEPT)..].iter();
    lines.map(|line| line.chars().take(LINE_CHARS_KEPT).collect::<String>()).collect::<Vec<_>>().join("\n")
}

/// The point on the way of its issue that a step of a task is about.
#[must_use]
pub fn point(task: &Task, step: &Step) -> Option<Point> {
    let way = task.issue.as_ref()?.routed.map(|routed| routed.way);
    Some(match Phase::from_word(&step.phase)? {
        Phase::Issue => Point::Issue,
        Phase::Spec | Phase::Ready => Point::Spec,
        Phase::Code if way == Some(Way::Pr) => Point::CodePr,
        Phase::Code => Point::CodePatch,
        Phase::Review => Point::Review,
        Phase::Merge => Point::Merge,
        Phase::Verify | Phase::Done => Point::Verify,
    })
}

/// Whether what an agent's step was to bring about is there; none if that cannot be told. `clean` says that the agent came
/// to an end of its own.
#[must_use]
pub fn brought_about(task: &Task, step: &Step, evidence: &Evidence, clean: bool) -> Option<bool> {
    match &step.kind {
        StepKind::Review => Some(evidence.opinion.is_some()),
        StepKind::Agent { iterate: true, .. } => {
            let head = evidence.head_after.as_ref()?;
            let authored = task.issue.as_ref().and_then(|issue| issue.authored.as_ref());
            let is_there = evidence.committed() || authored == Some(head);
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
enum Manner {
    /// By itself, without trouble.
    Clean,
    /// In a way that says nothing about the work.
    Trouble,
}

/// Whether the ladder is for such an end. Accounts, budgets, providers and people are dealt with elsewhere.
fn manner(verdict: &Verdict) -> Option<Manner> {
    match verdict {
        Verdict::Complete | Verdict::Continue => Some(Manner::Clean),
        Verdict::Crashed { .. }
        | Verdict::Stalled
        | Verdict::Looping
        | Verdict::Stopped
        | Verdict::Lost
        | Verdict::NotStarted { hopeless: false, .. } => Some(Manner::Trouble),
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
    manner(verdict).is_some()
}

/// Which rung follows from the end of a run. None where nothing has to be done about it: the task follows no issue, the end
/// is not one for the ladder, or all is well. `changed` says that there are changes nobody has committed: the engine commits
/// those when the work is verified. `log` is the end of what the run wrote.
#[must_use]
pub fn look(
    catalogue: &[Pattern],
    agent: Agent,
    task: &Task,
    run: &EndedRun,
    log: &str,
    changed: bool,
) -> Option<Climbed> {
    task.issue.as_ref()?;
    let step = task.flow.as_ref()?.step(task.step()?)?;
    if !matches!(step.kind, StepKind::Agent { .. } | StepKind::Review) {
        return None;
    }
    let manner = manner(&judge(&run.seen, &run.exit, &run.evidence))?;
    let matches = brought_about(task, step, &run.evidence, manner == Manner::Clean);
    let works = matches!(step.kind, StepKind::Agent { iterate: true, .. });
    if manner == Manner::Clean && (matches != Some(false) || works && changed) {
        return None;
    }
    let mut symptoms = Symptoms::of(point(task, step)?, &run.exit, run.took_ms, log, matches);
    if manner == Manner::Clean {
        symptoms.facts.insert(Known::ClaimsSuccess); // whoever ends without a word of trouble says so
    }
    match (works, matches) {
        (true, Some(true)) => drop(symptoms.facts.insert(Known::Commit)), // a set has it once
        (true, Some(false)) if task.head.is_none() => drop(symptoms.facts.insert(Known::NoCommit)),
        (true, _) | (false, _) => {}
    }
    if step.kind == StepKind::Review && run.evidence.opinion.is_none() {
        symptoms.facts.insert(Known::NoReview);
    }
    Some(Climbed::of(catalogue, &task.recoveries, agent, &step.name, &symptoms))
}

/// Which rung follows from an exchange that did not work out, in these words.
#[must_use]
pub fn stuck(catalogue: &[Pattern], agent: Agent, task: &Task, detail: &str) -> Option<Climbed> {
    let step = task.flow.as_ref()?.step(task.step()?)?;
    let mut symptoms = Symptoms::of(point(task, step)?, &Exit::Code(1), 0, detail, Some(false));
    if task.head.is_some() {
        symptoms.facts.insert(Known::Commit);
    }
    Some(Climbed::of(catalogue, &task.recoveries, agent, &step.name, &symptoms))
}

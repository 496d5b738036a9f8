//! Tasks with a plan, a judge or an objective, as people see them: how far they are, what they are for, their papers.

use std::sync::Arc;

use landfall_api::{self as api, FlowCheckpoint, PhaseState, Problem, ProblemCode};
use landfall_engine::flows;
use landfall_engine::model::audit;
use landfall_engine::model::convergence::{SATISFIED, WHOLE, format_share};
use landfall_engine::model::objective::{Objective, RefinementStatus, Requirement};
use landfall_engine::model::plan::PlanOutline;
use landfall_engine::model::proof::Proof;
use landfall_engine::model::score::{Dimension, GATE, GatePoint};
use landfall_engine::model::staged::{JudgeResult, PLAN};
use landfall_engine::model::tune;
use landfall_engine::model::{
    Digest, EndKind, Ending, Flow, FlowStep, StepKind, Task, TaskId, TaskState, WaitReason, possible_commands,
};
use landfall_engine::papers;
use landfall_text::pluralize;

use crate::project::place::ProjectLocation;
use crate::project::query_context::Query;
use crate::project::{conversions, problems};

/// A figure out of `whole`, as clients see it.
fn to_fraction(figure: u32, whole: u32) -> f64 {
    f64::from(figure) / f64::from(whole)
}

fn count_to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The flow a task is bound to, or would be.
pub(crate) fn task_flow(place: &ProjectLocation, task: &Task) -> Option<Arc<Flow>> {
    if let Some(flow) = &task.flow {
        return Some(Arc::clone(flow));
    }
    let name = match &task.spec.flow {
        Some(name) => name.clone(),
        None => landfall_engine::engine::load_settings(&place.root).ok()?.project.flow,
    };
    let loaded = flows::load_flows(Some(&place.root.join(".landfall/flows")));
    loaded.flows.get(&name).cloned()
}

/// How far a task is, as far as its own facts say; none where its flow has neither plan nor judge.
pub(crate) fn task_progress(task: &Task) -> Option<Box<api::Progress>> {
    progress_in(task, task.flow.as_deref()?)
}

/// The same in this flow.
pub(crate) fn progress_in(task: &Task, flow: &Flow) -> Option<Box<api::Progress>> {
    let judged =
        |step: &FlowStep| matches!(step.kind, StepKind::Check { .. } | StepKind::Target | StepKind::Converge);
    if flow.commands.is_empty() && !flow.steps.iter().any(judged) {
        return None;
    }
    let staged = &task.staged;
    let last = staged.last_judged();
    let phase = task.phase_word();
    let fixes = audit::audit_budget(task, flow).unwrap_or_default();
    Some(Box::new(api::Progress {
        phases: phase_marks(task, flow),
        plan_steps: staged.plan.steps,
        plan_done: staged.plan.done,
        proofs: count_to_u32(staged.proofs.count_proved().1),
        proofs_done: count_to_u32(staged.proofs.count_proved().0),
        anomalies: staged.proofs.anomalies,
        fixes: fixes.0,
        fixes_max: fixes.1,
        stage: staged.focus.as_ref().map(|focus| focus.number),
        convergence: staged.stages.last().map(|stage| to_fraction(stage.convergence, WHOLE)),
        composite: last.and_then(|judged| judged.composite).map(|it| to_fraction(it, 1_000_000)),
        verdict: last.map(|judged| judged.result.word().to_owned()),
        can_do: can_do(task, flow, &phase),
        directed: task.directed.as_ref().map(|directed| directed.step.as_str().to_owned()),
        strip: status_strip(task, flow, &phase),
        phase,
    }))
}

/// What a person can have done by hand where the task is.
fn can_do(task: &Task, flow: &Flow, phase: &str) -> Vec<String> {
    let over =
        matches!(&task.state, TaskState::Ended(Ending { kind: EndKind::Done | EndKind::Cancelled, .. }));
    if over {
        return Vec::new();
    }
    possible_commands(task, flow, phase)
}

/// The phases of a flow in order, and where the task is among them.
fn phase_marks(task: &Task, flow: &Flow) -> Vec<api::PhaseMark> {
    let at = task.step().or(task.last_step.as_ref()).and_then(|step| flow.find_step(step));
    let here = at.map(|step| step.phase.as_str());
    let mut names: Vec<&str> = Vec::new();
    for step in &flow.steps {
        let aside = step.phase == "re-planning" && here != Some("re-planning"); // a way round, not a way on
        if !aside && !names.contains(&step.phase.as_str()) {
            names.push(&step.phase);
        }
    }
    let place = here.and_then(|here| names.iter().position(|name| *name == here));
    let (done, stopped) = match &task.state {
        TaskState::Ended(Ending { kind: EndKind::Done, .. }) => (true, false),
        TaskState::Ended(_) => (false, true),
        _ => (false, false),
    };
    // On its way there, and not in it yet.
    let before = at.is_some_and(|step| step.before.as_deref() == task.phase());
    let percent = |name: &str| match (name, task.staged.plan.steps) {
        ("executing", steps) if steps > 0 => Some(task.staged.plan.done * 100 / steps),
        _ => None,
    };
    let mark = |(index, name): (usize, &&str)| {
        let state = match place {
            _ if done => PhaseState::Done,
            Some(place) if index < place => PhaseState::Done,
            Some(place) if index == place && stopped => PhaseState::Stopped,
            Some(place) if index == place && !before => PhaseState::Now,
            Some(_) | None => PhaseState::Next,
        };
        let percent = if state == PhaseState::Now { percent(name) } else { None };
        api::PhaseMark { phase: (*name).to_owned(), state, percent }
    };
    names.iter().enumerate().map(mark).collect()
}

/// Where it is in a line: status, phase, the last step with what came of it, the next, and how many runs there were.
fn status_strip(task: &Task, flow: &Flow, phase: &str) -> String {
    let status = landfall_engine::model::TaskStatus::for_task(task);
    let mut line = format!("{} · {phase}", status.wire_name());
    if let Some(step) = &task.last_step {
        let under_way = matches!(&task.state, TaskState::Active { step: at, .. } if at == step);
        let result = match flow.find_step(step).map(|step| &step.kind) {
            _ if under_way => "at work".to_owned(),
            Some(StepKind::Check { .. }) => {
                task.staged.last_judged().map(|it| it.result.word().to_owned()).unwrap_or_default()
            }
            Some(StepKind::Verify) => {
                task.gate.as_ref().map(|it| it.outcome().word().to_owned()).unwrap_or_default()
            }
            _ => String::new(),
        };
        line.push_str(&format!(" · {step}"));
        if !result.is_empty() {
            line.push_str(&format!(":{result}"));
        }
        let next = task.directed.as_ref().map(|directed| &directed.step).or_else(|| task.step());
        if let Some(next) = next.filter(|next| *next != step) {
            line.push_str(&format!(" → {next}"));
        }
    }
    line.push_str(&format!(" #{}", task.counters.runs));
    line
}

pub(crate) fn wire_checkpoint(checkpoint: GatePoint) -> FlowCheckpoint {
    match checkpoint {
        GatePoint::PostPlan => FlowCheckpoint::PostPlan,
        GatePoint::MidExec => FlowCheckpoint::MidExec,
        GatePoint::PostExec => FlowCheckpoint::PostExec,
    }
}

pub(crate) fn model_checkpoint(checkpoint: FlowCheckpoint) -> GatePoint {
    match checkpoint {
        FlowCheckpoint::PostPlan => GatePoint::PostPlan,
        FlowCheckpoint::MidExec => GatePoint::MidExec,
        FlowCheckpoint::PostExec => GatePoint::PostExec,
    }
}

/// What a task is for, how close it is, and what judges said of it.
pub(crate) fn task_target(look: &Query<'_>, id: TaskId) -> Result<Box<api::Target>, Problem> {
    let reader = reader_for_task(look, id)?;
    let task = look.load_task(&reader, id)?;
    let flow = task_flow(look.place, &task);
    let progress =
        flow.as_deref().and_then(|flow| progress_in(&task, flow)).ok_or_else(|| no_plan_problem(&task))?;
    let staged = &task.staged;
    let none = Objective::default();
    let objective = staged.objective.as_ref().unwrap_or(&none);
    let coverage = staged.judged.iter().rev().find(|judged| !judged.coverage.is_empty());
    let coverage =
        coverage.map(|judged| &judged.coverage).or(staged.stages.last().map(|stage| &stage.coverage));
    let requirement = |it: &Requirement| api::RequirementLine {
        number: it.number,
        text: it.text.clone(),
        criteria: it.criteria.clone(),
        weight: it.weight.word().to_owned(),
        coverage: coverage.and_then(|all| all.get(&it.number)).map(|it| to_fraction(*it, 1000)),
        focus: staged.focus.as_ref().is_some_and(|focus| focus.requirements.contains(&it.number)),
    };
    let question = match &task.state {
        TaskState::Waiting { wait: WaitReason::Question { text }, .. } => Some(text.clone()),
        _ => None,
    };
    let thresholds = flow.iter().flat_map(|flow| &flow.steps).filter_map(|step| match step.kind {
        StepKind::Check { checkpoint, threshold } => Some(api::Threshold {
            step: step.name.as_str().to_owned(),
            checkpoint: wire_checkpoint(checkpoint),
            threshold: to_fraction(tune::applied_threshold(&task, checkpoint, threshold), 1000),
        }),
        _ => None,
    });
    Ok(Box::new(api::Target {
        task: conversions::task_id(id),
        progress: *progress,
        items: objective
            .items
            .iter()
            .map(|item| api::TargetItem {
                text: item.text.clone(),
                requirements: item.requirements.iter().map(requirement).collect(),
            })
            .collect(),
        constraints: objective.constraints.clone(),
        revision: objective.revision,
        shown: objective.shown,
        confirmed: objective.confirmed,
        awaits: question.is_some() && objective.needs_approval(),
        question,
        satisfied_at: to_fraction(SATISFIED, WHOLE),
        stage: staged
            .focus
            .as_ref()
            .map(|focus| api::StageNow { number: focus.number, focus: focus.requirements.clone() }),
        stages: staged
            .stages
            .iter()
            .map(|stage| api::StageLine {
                number: stage.number,
                focus: stage.focus.clone(),
                commit: stage.commit.as_str().to_owned(),
                convergence: to_fraction(stage.convergence, WHOLE),
            })
            .collect(),
        exclusions: staged
            .exclusions
            .iter()
            .map(|it| api::ExclusionLine {
                stage: it.stage,
                direction: it.direction.clone(),
                reason: it.reason.clone(),
                abandoned: it.abandoned.as_str().to_owned(),
                from: to_fraction(it.from, WHOLE),
                to: to_fraction(it.to, WHOLE),
            })
            .collect(),
        refinements: staged
            .refinements
            .iter()
            .map(|it| {
                let (state, impact) = match it.state {
                    RefinementStatus::Pending => (api::RefinementState::Pending, None),
                    RefinementStatus::Weighed(impact) => {
                        (api::RefinementState::Weighed, Some(impact.word().to_owned()))
                    }
                    RefinementStatus::TakenIn => (api::RefinementState::TakenIn, None),
                    RefinementStatus::Withdrawn => (api::RefinementState::Withdrawn, None),
                };
                api::RefinementLine {
                    number: it.number,
                    at_ms: it.at.0,
                    text: it.text.clone(),
                    state,
                    impact,
                }
            })
            .collect(),
        judgements: staged
            .judged
            .iter()
            .map(|judged| to_judgement_line(judged, tune::applied_weights(&task)))
            .collect(),
        thresholds: thresholds.collect(),
        plan: plan_steps(look.place, &task),
        proofs: staged.proofs.all.iter().map(proof_line).collect(),
    }))
}

fn proof_line(proof: &Proof) -> api::ProofLine {
    let promise = &proof.promise;
    api::ProofLine {
        of: promise.of.to_string(),
        about: promise.about.clone(),
        command: promise.command.clone(),
        standing: proof.proof_state().label().to_owned(),
    }
}

fn to_judgement_line(judged: &JudgeResult, weights: [u32; 6]) -> api::JudgementLine {
    let gate = |dimension: Dimension| Dimension::GATES.contains(&dimension).then(|| to_fraction(GATE, 1000));
    let scores = judged.scores.iter().flat_map(|scores| {
        Dimension::ALL.into_iter().zip(weights).map(move |(dimension, weight)| api::ScoreLine {
            code: dimension.code().to_owned(),
            name: dimension.word().to_owned(),
            score: to_fraction(scores.of(dimension), 1000),
            weight: to_fraction(weight, 1000),
            gate: gate(dimension),
        })
    });
    api::JudgementLine {
        at_ms: judged.at.0,
        checkpoint: wire_checkpoint(judged.checkpoint),
        stage: judged.stage,
        head: judged.head.as_ref().map(|head| head.as_str().to_owned()),
        scores: scores.collect(),
        composite: judged.composite.map(|it| to_fraction(it, 1_000_000)),
        verdict: judged.result.word().to_owned(),
        passed: judged.result == judged.checkpoint.pass_result(),
        reasons: judged.reasons.clone(),
        findings: judged.findings.clone(),
    }
}

/// The steps of its plan; none if the plan cannot be read.
fn plan_steps(place: &ProjectLocation, task: &Task) -> Vec<api::PlanStepLine> {
    let plan = task.staged.papers.get(PLAN);
    let text = plan
        .and_then(|digest| papers::read_paper(&place.folder.papers_path(), digest).ok())
        .unwrap_or_default();
    let done = task.staged.plan.done;
    let steps = PlanOutline::read(&text).steps.into_iter();
    steps
        .map(|step| api::PlanStepLine {
            number: step.number,
            title: step.title,
            covers: step.covers.into_iter().collect(),
            done: step.number <= done,
        })
        .collect()
}

/// The papers of a task.
pub(crate) fn list_papers(look: &Query<'_>, id: TaskId) -> Result<api::PaperList, Problem> {
    let reader = reader_for_task(look, id)?;
    let task = look.load_task(&reader, id)?;
    let folder = look.place.folder.papers_path();
    let bytes = |digest: &Digest| papers::read_paper(&folder, digest).map_or(0, |text| text.len() as u64);
    let kept = task.staged.papers.iter().map(|(name, digest)| api::PaperLine {
        name: name.clone(),
        bytes: bytes(digest),
        told: false,
    });
    let told = papers_told_to_agent(look.place, &task).into_iter().map(|(name, text)| api::PaperLine {
        name: name.to_owned(),
        bytes: text.len() as u64,
        told: true,
    });
    Ok(api::PaperList { task: conversions::task_id(id), papers: kept.chain(told).collect() })
}

fn papers_told_to_agent(place: &ProjectLocation, task: &Task) -> Vec<(&'static str, String)> {
    let flow = task_flow(place, task);
    match flow.as_deref().and_then(|flow| progress_in(task, flow)) {
        Some(_) => papers::render_engine_papers(task),
        None => Vec::new(),
    }
}

/// One paper of a task.
pub(crate) fn task_paper(look: &Query<'_>, asked: &api::PaperAsked) -> Result<Box<api::Paper>, Problem> {
    let id = conversions::model_task(asked.task);
    let reader = reader_for_task(look, id)?;
    let task = look.load_task(&reader, id)?;
    let made = |text: String, told: bool| {
        Box::new(api::Paper { task: asked.task, name: asked.name.clone(), text, told })
    };
    if let Some(digest) = task.staged.papers.get(&asked.name) {
        let folder = look.place.folder.papers_path();
        let text = papers::read_paper(&folder, digest).map_err(|error| {
            problems::from_io_error("read the paper", &folder.join(format!("{digest}.md")), &error)
        })?;
        return Ok(made(text, false));
    }
    let told = papers_told_to_agent(look.place, &task);
    match told.into_iter().find(|(name, _)| *name == asked.name) {
        Some((_, text)) => Ok(made(text, true)),
        None => Err(unknown_paper_problem(look.place, &task, &asked.name)),
    }
}

/// A task has no such paper.
pub(crate) fn unknown_paper_problem(place: &ProjectLocation, task: &Task, name: &str) -> Problem {
    let told = papers_told_to_agent(place, task);
    let known: Vec<&str> =
        task.staged.papers.keys().map(String::as_str).chain(told.iter().map(|(name, _)| *name)).collect();
    let shown: String = name.chars().take(100).collect();
    let problem = Problem::new(ProblemCode::NotNow, format!("{} has no paper `{shown}`", task.id));
    match known.is_empty() {
        true => problem
            .with_hint("only a task whose flow has a plan or a judge has papers, once its agents wrote some"),
        false => problem.with_hint(format!("it has: {}", known.join(", "))),
    }
}

/// A task whose flow knows nothing of plans and objectives.
pub(crate) fn no_plan_problem(task: &Task) -> Problem {
    Problem::new(
        ProblemCode::NotNow,
        format!("the flow of {} has no plan, no judge and no objective", task.id),
    )
    .with_hint(
        "`landfall edit` with `--flow lifecycle` or `--flow staged` gives it one, before it first starts",
    )
}

pub(crate) fn reader_for_task(
    look: &Query<'_>,
    id: TaskId,
) -> Result<crate::project::reader_pool::PooledReader, Problem> {
    look.place.open_reader()?.ok_or_else(|| problems::unknown_task(id))
}

/// What `why` says besides, for a task with a plan.
pub(crate) fn target_details(task: &Task) -> Vec<String> {
    let Some(progress) = task_progress(task) else { return Vec::new() };
    let mut lines = Vec::new();
    if progress.plan_steps > 0 {
        lines.push(format!("its plan: {} of {} steps are done", progress.plan_done, progress.plan_steps));
    }
    if let Some(stage) = progress.stage {
        let close = task.staged.stages.last().map(|stage| format_share(stage.convergence));
        let close = close.map(|it| format!("; convergence is {it}")).unwrap_or_default();
        lines.push(format!("stage {stage} is under way{close}"));
    }
    if let Some(judged) = task.staged.last_judged() {
        lines.push(format!(
            "judged last, {}",
            crate::project::sentences::one_line(&papers::judged_line(judged))
        ));
    }
    let open = task.staged.open_refinements().count();
    if open > 0 {
        lines.push(format!("{} of yours is still to be dealt with", pluralize(open as u64, "refinement")));
    }
    if let Some(step) = &progress.directed {
        lines.push(format!("you want `{step}` next"));
    }
    if !progress.can_do.is_empty() {
        let id = task.id;
        lines.push(format!("by hand you can `landfall task do {id}`: {}", progress.can_do.join(", ")));
    }
    lines
}

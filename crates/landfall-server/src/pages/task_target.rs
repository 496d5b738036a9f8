//! What a task is for and how close it is: the dialogue about its objective, its plan, what judges said, its stages. And
//! one step by hand.

use askama::Template;
use landfall_api::{
    DoAsked, JudgementLine, Nothing, Problem, ProblemCode, Progress, ProofLine, RefinementLine, RunAsked,
    Target, TaskAsked, TypedService as _, WireTaskId,
};

use super::parts::{self, ProgressBar, RelativeTime};
use super::plot::{PlotFigure, PlotUnit, Series, draw_bars};
use super::task::{self, TaskPageHead};
use super::{FormFields, PageContext, RenderedPage, words};

/// How far a task with a plan is, for the head of its pages.
pub(super) struct PlanProgress {
    /// The phases: the sign, the word, how it stands there, and how far it is.
    pub(super) phases: Vec<(&'static str, String, &'static str, String)>,
    /// Where it is, in a line.
    pub(super) strip: String,
}

/// The way of a task.
pub(super) fn plan_progress(progress: &Progress) -> PlanProgress {
    use landfall_api::PhaseState as S;
    let mark = |it: &landfall_api::PhaseMark| {
        let sign = match it.state {
            S::Done => "✓",
            S::Now => "●",
            S::Stopped => "✗",
            S::Next => "○",
        };
        let percent = it.percent.map(|percent| format!("{percent} %")).unwrap_or_default();
        (sign, words::line(&it.phase), it.state.word(), percent)
    };
    PlanProgress { phases: progress.phases.iter().map(mark).collect(), strip: words::line(&progress.strip) }
}

/// Something that can be done by hand: how it is called, the command, and which of several checks.
pub(super) struct ManualStep {
    pub(super) name: String,
    pub(super) command: String,
    pub(super) checkpoint: String,
}

/// What can be done by hand where the task is.
pub(super) fn manual_steps(progress: &Progress) -> Vec<ManualStep> {
    let made = |command: &String| {
        let (first, checkpoint) = command.split_once('/').unwrap_or((command, ""));
        let name = if checkpoint.is_empty() { first.to_owned() } else { format!("{first} {checkpoint}") };
        ManualStep { name: words::line(&name), command: first.to_owned(), checkpoint: checkpoint.to_owned() }
    };
    progress.can_do.iter().map(made).collect()
}

/// A form: one step by hand. Where nothing runs, a run begins for just that step.
pub(super) fn do_step(visit: &PageContext<'_>, fields: &FormFields) -> Result<String, Problem> {
    let missing = |what: &str| Problem::new(ProblemCode::BadInput, format!("the form says no {what}"));
    let task: WireTaskId = fields.parse_field("task")?.ok_or_else(|| missing("task"))?;
    let command = fields.first_text("command").ok_or_else(|| missing("command"))?.to_owned();
    let checkpoint = fields.parse_field("checkpoint")?;
    let running = visit.status(Nothing {})?.run.is_some();
    let asked = DoAsked { task, command, checkpoint, step: fields.parse_field("step")?, alone: !running };
    let changed = visit.task_do(asked)?;
    if !running {
        visit.run_start(RunAsked { tasks: vec![task], ..RunAsked::default() })?;
    }
    Ok(changed.tasks.first().map(|it| it.text.clone()).unwrap_or_default())
}

/// A requirement with how far it is covered.
struct RequirementRow {
    number: u32,
    text: String,
    criteria: String,
    weight: String,
    covered: String,
    bar: Option<ProgressBar>,
    focus: bool,
}

/// One dimension of a judgement.
struct Gauge {
    code: String,
    name: String,
    score: String,
    /// What follows, in words.
    word: String,
    tone: &'static str,
    weight: String,
    bar: ProgressBar,
}

/// A judgement in a row.
struct JudgementRow {
    when: RelativeTime,
    stage: String,
    checkpoint: &'static str,
    verdict: String,
    sign: &'static str,
    tone: &'static str,
    composite: String,
    scores: Vec<(String, String)>,
    reasons: Vec<String>,
}

/// What judges said and how close it is, for the tab of gates.
#[derive(Template)]
#[template(path = "task_judged.html")]
pub(super) struct JudgesPanel {
    id: WireTaskId,
    gauges: Vec<Gauge>,
    last: String,
    history: Vec<JudgementRow>,
    proofs: Vec<ProofLine>,
    proved: String,
    thresholds: Vec<(String, &'static str, String)>,
    plot: Option<PlotFigure>,
    requirements: Vec<RequirementRow>,
    exclusions: Vec<(String, String, String, String)>,
    refinements: Vec<RefinementRow>,
    back: String,
}

impl askama::filters::HtmlSafe for JudgesPanel {} // its template escapes every word

/// A refinement in a row.
struct RefinementRow {
    number: u32,
    text: String,
    state: String,
    when: RelativeTime,
    open: bool,
}

fn to_refinement_row(now_ms: i64, it: &RefinementLine) -> RefinementRow {
    let impact = it.impact.as_ref().map(|impact| format!(", {impact} impact")).unwrap_or_default();
    RefinementRow {
        number: it.number,
        text: words::visible(&it.text),
        state: words::line(&format!("{}{impact}", it.state)),
        when: parts::ago(now_ms, it.at_ms),
        open: it.state.is_open(),
    }
}

fn format_two_decimals(share: f64) -> String {
    format!("{share:.2}")
}

fn build_gauges(judged: &JudgementLine) -> Vec<Gauge> {
    let gauge = |it: &landfall_api::ScoreLine| {
        let (word, tone) = match it.gate {
            Some(gate) if it.score < gate => {
                (format!("blocks: below its gate of {}", format_two_decimals(gate)), "bad")
            }
            Some(gate) => (format!("passes its gate of {}", format_two_decimals(gate)), "good"),
            None => ("counts in the mean".to_owned(), "info"),
        };
        let label = format!("{} {}: {} of 1, {word}", it.code, it.name, format_two_decimals(it.score));
        Gauge {
            code: words::line(&it.code),
            name: words::line(&it.name),
            score: format_two_decimals(it.score),
            bar: parts::progress_bar(it.score * 100.0, tone, words::line(&label)),
            word,
            tone,
            weight: format_two_decimals(it.weight),
        }
    };
    judged.scores.iter().map(gauge).collect()
}

fn to_judgement_row(now_ms: i64, it: &JudgementLine) -> JudgementRow {
    let (sign, tone) = if it.passed { ("✓", "good") } else { ("✗", "bad") };
    JudgementRow {
        when: parts::ago(now_ms, it.at_ms),
        stage: it.stage.map(|stage| stage.to_string()).unwrap_or_default(),
        checkpoint: it.checkpoint.word(),
        verdict: words::line(&it.verdict),
        sign,
        tone,
        composite: it.composite.map(|it| format!("{it:.3}")).unwrap_or_default(),
        scores: it.scores.iter().map(|it| (words::line(&it.code), format_two_decimals(it.score))).collect(),
        reasons: it.reasons.iter().chain(&it.findings).map(|it| words::line(it)).collect(),
    }
}

fn requirement_rows(target: &Target) -> Vec<RequirementRow> {
    let all = target.items.iter().flat_map(|item| &item.requirements);
    all.map(|it| RequirementRow {
        number: it.number,
        text: words::line(&it.text),
        criteria: words::line(&it.criteria),
        weight: words::line(&it.weight),
        covered: it.coverage.map_or_else(|| "not judged".to_owned(), format_two_decimals),
        bar: it.coverage.map(|share| {
            let tone = if share >= 1.0 { "good" } else { "info" };
            parts::progress_bar(
                share * 100.0,
                tone,
                format!("R{} is covered {} of 1", it.number, format_two_decimals(share)),
            )
        }),
        focus: it.focus,
    })
    .collect()
}

/// What judges said of a task; none where no judge is asked.
pub(super) fn judges_panel(visit: &PageContext<'_>, head: &TaskPageHead) -> Option<JudgesPanel> {
    head.detail.progress.as_ref()?;
    let target = visit.target(TaskAsked { task: head.id }).ok()?;
    let last = target.judgements.iter().rev().find(|it| !it.scores.is_empty());
    let labels: Vec<String> = target.stages.iter().map(|it| format!("stage {}", it.number)).collect();
    let values = target.stages.iter().map(|it| it.convergence).collect();
    let series = [Series { name: "convergence", values }];
    let title = format!("Convergence by stage, met at {}", format_two_decimals(target.satisfied_at));
    Some(JudgesPanel {
        id: head.id,
        gauges: last.map(build_gauges).unwrap_or_default(),
        last: last
            .map(|it| {
                let composite = it.composite.map(|it| format!(", composite {it:.3}")).unwrap_or_default();
                words::line(&format!("{}: {}{composite}", it.checkpoint, it.verdict))
            })
            .unwrap_or_default(),
        history: target.judgements.iter().rev().map(|it| to_judgement_row(head.now_ms, it)).collect(),
        proofs: target.proofs.clone(),
        proved: format!("{}/{} proved", target.progress.proofs_done, target.proofs.len()),
        thresholds: target
            .thresholds
            .iter()
            .map(|it| (words::line(&it.step), it.checkpoint.word(), format_two_decimals(it.threshold)))
            .collect(),
        plot: (!target.stages.is_empty())
            .then(|| draw_bars("convergence", &title, PlotUnit::Share, &labels, &series)),
        requirements: requirement_rows(&target),
        exclusions: target
            .exclusions
            .iter()
            .map(|it| {
                let moved = format!("{:.4} → {:.4}", it.from, it.to);
                (
                    words::line(&it.direction),
                    words::line(&it.reason),
                    moved,
                    task::short_commit(&it.abandoned),
                )
            })
            .collect(),
        refinements: target.refinements.iter().map(|it| to_refinement_row(head.now_ms, it)).collect(),
        back: head.path("gates"),
    })
}

/// One part of the objective.
struct TargetPageItem {
    text: String,
    requirements: Vec<RequirementRow>,
}

#[derive(Template)]
#[template(path = "task_target.html")]
struct TargetPage<'a> {
    head: &'a TaskPageHead,
    none: Option<String>,
    items: Vec<TargetPageItem>,
    constraints: Vec<String>,
    standing: String,
    awaits: Option<u32>,
    question: Option<String>,
    plan: Vec<(bool, u32, String, String)>,
    plan_done: u32,
    stage: Option<String>,
    papers: Vec<(String, String, &'static str)>,
    paper: Option<(String, String)>,
    back: String,
}

pub(super) fn draw_target_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let head = TaskPageHead::load_head(visit, "target")?;
    let back = head.path("target");
    let (target, none) = match visit.target(TaskAsked { task: head.id }) {
        Ok(target) => (Some(target), None),
        Err(problem) => (None, Some(words::sentence(&problem.message))),
    };
    let list = visit.papers(TaskAsked { task: head.id }).map(|list| list.papers).unwrap_or_default();
    let papers = list.iter().map(|it| {
        let by = if it.told { "the engine" } else { "agents and you" };
        (words::line(&it.name), super::build_link(&back, &[("paper", &it.name)]), by)
    });
    let paper = visit.query_value("paper").and_then(|name| {
        let asked = landfall_api::PaperAsked { task: head.id, name: name.to_owned() };
        let paper = visit.paper(asked).ok()?;
        Some((words::line(&paper.name), words::visible(&paper.text)))
    });
    let names =
        |numbers: &[u32]| numbers.iter().map(|number| format!("R{number}")).collect::<Vec<_>>().join(", ");
    let of = target.as_deref();
    let standing = match of {
        None => String::new(),
        Some(it) if it.revision == 0 => "No objective is worked out yet.".to_owned(),
        Some(it) if it.confirmed == Some(it.revision) => {
            format!("Revision {}, confirmed: it goes by itself.", it.revision)
        }
        Some(it) if it.awaits => format!("Revision {}: it waits for your OK.", it.revision),
        Some(it) => format!("Revision {}, not confirmed.", it.revision),
    };
    let all = of.map(requirement_rows).unwrap_or_default();
    let mut rest = all.into_iter();
    let items = of.iter().flat_map(|it| &it.items).map(|item| TargetPageItem {
        text: words::line(&item.text),
        requirements: rest.by_ref().take(item.requirements.len()).collect(),
    });
    let items: Vec<TargetPageItem> = items.collect();
    let page = TargetPage {
        none,
        items,
        constraints: of.iter().flat_map(|it| &it.constraints).map(|it| words::line(it)).collect(),
        standing,
        awaits: of.filter(|it| it.awaits).map(|it| it.revision),
        question: of.and_then(|it| it.question.as_deref()).map(words::visible),
        plan: of
            .iter()
            .flat_map(|it| &it.plan)
            .map(|it| (it.done, it.number, words::line(&it.title), names(&it.covers)))
            .collect(),
        plan_done: of.map_or(0, |it| it.progress.plan_done),
        stage: of
            .and_then(|it| it.stage.as_ref())
            .map(|it| format!("Stage {} is for {}.", it.number, names(&it.focus))),
        papers: papers.collect(),
        paper,
        back,
        head: &head,
    };
    head.render_page("target", &page)
}

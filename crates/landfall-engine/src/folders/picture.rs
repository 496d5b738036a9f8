//! What the folder of a module shows of its task: the metadata and the papers, made from the state of the journal and from
//! what lies there. It decides nothing and touches no disk.

use landfall_model::convergence::format_share;
use landfall_model::objective::{RefinementStatus, Weight};
use landfall_model::score::{Dimension, GatePoint, format_score};
use landfall_model::staged::{JudgeResult, PLAN, superseded_plan_name};
use landfall_model::stride::{ENDS, STEPS, agent_step};
use landfall_model::{Digest, EndKind, Ending, StepKind, Task, TaskState, Timestamp};
use landfall_trackers::modules::baseline::{Baseline, BaselineRow};
use landfall_trackers::modules::entry::{EntryFolder, EntryName};
use landfall_trackers::modules::folder::{self, ModuleKind, TARGET};
use landfall_trackers::modules::project::DatedEntry;
use landfall_trackers::modules::refinement::Refinements;
use landfall_trackers::modules::signal::LoopSignal;
use landfall_trackers::modules::summary::{self, SummaryHeader, SummarySections};
use landfall_trackers::modules::target::ModuleTarget;
use landfall_trackers::modules::text::{format_day, format_timestamp, plain_line, strip_markup};
use landfall_trackers::modules::{
    CompletedStage, MetadataFormat, ModuleDocuments, ModuleFolderSnapshot, ModulePhase, ModuleRecord,
    ModuleStatus, NotebookStages, target,
};
use serde_json::{Map, Value, json};

use crate::papers::{judged_line, render_engine_papers, stage_report};

/// Whether anything has happened to the task that its folder does not say itself. Until then the folder is right.
pub(super) fn has_begun(task: &Task) -> bool {
    task.attempt.0 > 0 || task.is_over()
}

/// The metadata of a module as its task stands. What the journal does not know stays as it is.
pub(super) fn build_module(task: &Task, seen: &ModuleFolderSnapshot, now: Timestamp) -> ModuleRecord {
    let there = match &seen.metadata {
        Some(Ok(metadata)) => metadata.module.clone(),
        Some(Err(_)) | None => ModuleRecord::new(&task.spec.title, &format_timestamp(task.created)),
    };
    let mut module = there.clone();
    if plain_line(&there.title) != task.spec.title && !task.spec.title.is_empty() {
        module.title.clone_from(&task.spec.title);
    }
    if !has_begun(task) {
        return module;
    }
    module.status = folder_status(task, seen.place.sort);
    module.phase = folder_phase(task, module.status, &there.phase);
    if task.staged.papers.contains_key(PLAN) {
        module.completed_steps = task.staged.plan.done;
    }
    if has_stages(task) {
        module.stage = Some(build_stage(task, there.stage.as_ref(), now));
    }
    if seen.form == MetadataFormat::StatusJson || there.extra.check_score.is_some() {
        module.extra.check_score =
            task.staged.last_judged().and_then(score_to_json).or(there.extra.check_score);
    }
    module
}

/// The word of the folders for where a task is.
fn folder_status(task: &Task, sort: ModuleKind) -> ModuleStatus {
    let done = match sort {
        ModuleKind::Notebook => ModuleStatus::Satisfied,
        ModuleKind::Task | ModuleKind::AiTasks => ModuleStatus::Complete,
    };
    match &task.state {
        TaskState::Ended(Ending { kind: EndKind::Done, .. }) => done,
        _ => match task.phase_word().as_str() {
            "complete" => done, // landed, its report is being written
            "target" => ModuleStatus::Draft,
            "accepted" => ModuleStatus::Evolving,
            // A flow of one's own has words of its own.
            word => word.parse().unwrap_or(ModuleStatus::Executing),
        },
    }
}

/// What a module in `re-planning` needs next. Notebooks that use the field for words of their own keep doing so.
fn folder_phase(task: &Task, status: ModuleStatus, there: &ModulePhase) -> ModulePhase {
    if status == ModuleStatus::RePlanning {
        let step = task.step().zip(task.flow.as_ref()).and_then(|(step, flow)| flow.find_step(step));
        return match step.map(|step| &step.kind) {
            Some(StepKind::Check { .. }) => ModulePhase::NeedsCheck,
            _ => ModulePhase::NeedsPlan,
        };
    }
    match there {
        ModulePhase::Other(word) if ModulePhase::KNOWN.contains(&word.as_str()) => {
            let word = match status {
                ModuleStatus::Draft => "target",
                ModuleStatus::Planning | ModuleStatus::RePlanning => "planning",
                ModuleStatus::Review | ModuleStatus::Executing | ModuleStatus::Blocked => "execution",
                ModuleStatus::Evolving
                | ModuleStatus::Satisfied
                | ModuleStatus::Complete
                | ModuleStatus::Cancelled => "finalization",
            };
            ModulePhase::Other(word.to_owned())
        }
        ModulePhase::Other(word) => ModulePhase::Other(word.clone()),
        ModulePhase::None | ModulePhase::NeedsPlan | ModulePhase::NeedsCheck => ModulePhase::None,
    }
}

fn has_stages(task: &Task) -> bool {
    let steps = task.flow.iter().flat_map(|flow| flow.steps.iter());
    steps.map(|step| &step.kind).any(|kind| *kind == StepKind::Converge)
}

fn build_stage(task: &Task, there: Option<&NotebookStages>, now: Timestamp) -> NotebookStages {
    let staged = &task.staged;
    let history = staged.stages.iter().map(|it| {
        let commit = it.commit.as_str();
        let known = there.and_then(|there| {
            there.history.iter().find(|old| old.stage == it.number && old.commit == commit)
        });
        known.cloned().unwrap_or_else(|| CompletedStage {
            stage: it.number,
            name: it.focus.iter().map(|number| format!("R{number}")).collect::<Vec<_>>().join(", "),
            completed_at: format_timestamp(now),
            commit: commit.to_owned(),
            convergence: format_share(it.convergence).parse().ok(),
        })
    });
    NotebookStages {
        current: staged.focus.as_ref().map_or(1, |focus| focus.number),
        total: there.and_then(|there| there.total),
        history: history.collect(),
    }
}

fn score_to_json(judged: &JudgeResult) -> Option<Value> {
    let number = |text: String| text.parse::<f64>().map_or(Value::Null, Value::from);
    let (scores, composite) = (judged.scores?, judged.composite?);
    let mut all = json!({ "overall": number(format_score(composite / 1000)) });
    let names = ["correctness", "security", "reliability", "performance", "architecture", "maintainability"];
    for (nth, (dimension, name)) in (1..).zip(Dimension::ALL.into_iter().zip(names)) {
        all[format!("d{nth}_{name}")] = number(format_score(scores.of(dimension)));
    }
    Some(all)
}

/// The signal for whoever watches the folder: the step that ended last, and what follows. None before a step has ended. A step that a
/// person ran by hand has no iteration.
pub(super) fn signal(task: &Task) -> Option<LoopSignal> {
    if !has_begun(task) {
        return None;
    }
    if let Some(stride) = task.stride.as_ref().filter(|_| task.runs_own_loop()) {
        let word = |text: &str, known: &[&str], or: &str| match known.contains(&text) {
            true => text.to_owned(),
            false => or.to_owned(),
        };
        return Some(LoopSignal {
            step: stride.step.clone(),
            result: stride.result.clone(),
            next: word(&stride.next, &[STEPS, ENDS].concat(), "(none)"),
            checkpoint: stride.checkpoint.clone(),
            iteration: Some(u64::from(task.iterations_done())),
            timestamp: format_timestamp(task.changed),
            extra: Map::new(),
        });
    }
    let step = task.flow.as_ref()?.find_step(task.step()?)?;
    let judged = task.staged.last_judged();
    let next = agent_step(&step.kind);
    let (ended, result, checkpoint) = match &step.kind {
        StepKind::Check { checkpoint: GatePoint::PostPlan, .. } => ("plan", "(generated)", ""),
        StepKind::Check { checkpoint: GatePoint::MidExec, .. } => ("exec", "(mid-exec)", "mid-exec"),
        StepKind::Check { checkpoint: GatePoint::PostExec, .. } => ("verify", "(pass)", "post-exec"),
        StepKind::Verify => ("exec", "(done)", "post-exec"),
        StepKind::Agent { .. } | StepKind::Land => {
            let judged = judged?;
            ("check", judged.result.word(), judged.checkpoint.word())
        }
        StepKind::Report => ("merge", "success", ""),
        StepKind::Review
        | StepKind::Ask { .. }
        | StepKind::Split
        | StepKind::Tracker { .. }
        | StepKind::Target
        | StepKind::Converge => return None,
    };
    let is_by_hand = task.hold.as_ref().is_some_and(|hold| hold.this_run);
    Some(LoopSignal {
        step: ended.to_owned(),
        result: result.to_owned(),
        next: next.to_owned(),
        checkpoint: checkpoint.to_owned(),
        iteration: (!is_by_hand).then(|| u64::from(task.iterations_done())),
        timestamp: format_timestamp(task.changed),
        extra: Map::new(),
    })
}

/// The papers of a module as the journal has them. `read` gives the text of a paper by its hash.
pub(super) fn build_papers(
    task: &Task,
    module: &ModuleRecord,
    seen: &ModuleFolderSnapshot,
    read: &dyn Fn(&Digest) -> Option<String>,
) -> ModuleDocuments {
    let staged = &task.staged;
    let mut papers = ModuleDocuments { target: target_of(task, seen), ..ModuleDocuments::default() };
    if !has_begun(task) {
        return papers;
    }
    for number in 1..=staged.plan.superseded {
        papers.superseded.extend(staged.papers.get(&superseded_plan_name(number)).and_then(read));
    }
    papers.closed_stages = match &staged.focus {
        Some(focus) => staged.stages.iter().map(|it| it.number).filter(|it| *it < focus.number).collect(),
        None => staged.stages.iter().map(|it| it.number).collect(),
    };
    papers.plan = staged.papers.get(PLAN).and_then(read).filter(|plan| {
        // The plan of a stage that is closed lies apart; the one of the next is not written yet.
        let closed = papers.closed_stages.last();
        let apart = closed.and_then(|stage| seen.file_text(&format!(".plan-stage-{stage}.md")));
        let to_move = seen.file_text(folder::PLAN).filter(|_| closed.is_some() && apart.is_none());
        apart.or(to_move).is_none_or(|apart| apart != *plan)
    });
    papers.refinements = merge_refinements(task, seen);
    papers.baseline = render_baseline(task);
    papers.summary = Some(summary_of(task, module));
    papers.report = task.reported.as_ref().and_then(|(report, _)| read(report));
    papers.exclusions = render_engine_papers(task)
        .into_iter()
        .find(|(name, _)| *name == "exclusions.md")
        .map(|(_, text)| text);
    let now_in = staged.focus.as_ref().map(|focus| focus.number);
    let judged = staged.judged.iter().filter(|it| it.stage.is_none() || it.stage == now_in);
    papers.entries = judged.map(build_analysis_entry).collect();
    papers.entries.extend(staged.stages.iter().map(|stage| {
        let judged = staged.judged.iter().rev().find(|it| it.stage == Some(stage.number));
        let at = judged.map_or(task.created, |it| it.at);
        let name = EntryName::new(&format_day(at), &format!("stage-{}-report", stage.number));
        DatedEntry { shelf: EntryFolder::Notes, name, text: stage_report(task, stage) }
    }));
    papers
}

/// The file that says what is wanted, where it is to say something else: the words of the task, and the objective that was worked
/// out with a person.
fn target_of(task: &Task, seen: &ModuleFolderSnapshot) -> Option<String> {
    let there = seen.file_text(TARGET).unwrap_or_default();
    let items = objective_items(task);
    let body = task.spec.body.trim_end();
    let is_said = body.trim().is_empty() || strip_markup(&there).trim() == body.trim();
    let words = if is_said { there.clone() } else { format!("{body}\n") };
    let wanted = match items.as_slice() {
        [] => words,
        items => ModuleTarget::read(&words).with_items(items).text().to_owned(),
    };
    let is_shown = wanted == there || strip_markup(&wanted).trim() == strip_markup(&there).trim();
    (!is_shown).then_some(wanted)
}

/// Whether the words of a person are lost when the file that says what is wanted is written: lines of the objective are counted
/// anew, and everything else is theirs.
pub(super) fn replaces_words(task: &Task, seen: &ModuleFolderSnapshot) -> bool {
    let Some(wanted) = target_of(task, seen) else { return false };
    let there = seen.read_target();
    let items = objective_items(task);
    let keeps_items = there.items.iter().all(|it| items.iter().any(|new| new.text == it.text));
    !keeps_items || there.with_items(&items).text() != wanted
}

/// The lines of the objective as a target file has them.
fn objective_items(task: &Task) -> Vec<target::ModuleTargetItem> {
    let Some(objective) = &task.staged.objective else { return Vec::new() };
    let mark = if objective.is_confirmed() {
        target::AgreementState::Confirmed
    } else {
        target::AgreementState::None
    };
    let all = objective.items.iter().map(|item| target::ModuleTargetItem {
        text: plain_line(&item.text),
        detail: target::RequirementDetail::Requirements(
            u32::try_from(item.requirements.len()).unwrap_or(u32::MAX),
        ),
        mark,
    });
    all.collect()
}

/// What a judge said, as an entry of its own.
fn build_analysis_entry(judged: &JudgeResult) -> DatedEntry {
    let about = format!("{}-{}", judged.checkpoint.word(), judged.result.word()).replace('_', "-");
    let mut text = format!(
        "# {}\n\n{}\n\n{}\n",
        judged.checkpoint.word(),
        format_timestamp(judged.at),
        judged_line(judged)
    );
    if !judged.findings.is_empty() {
        text.push_str("\n## Findings\n\n");
        text.push_str(&judged.findings.iter().map(|line| format!("- {line}\n")).collect::<String>());
    }
    DatedEntry { shelf: EntryFolder::Analysis, name: EntryName::new(&format_day(judged.at), &about), text }
}

/// What a person wants otherwise: lines are only added.
fn merge_refinements(task: &Task, seen: &ModuleFolderSnapshot) -> Option<String> {
    let mut all = Refinements::read(&seen.file_text(REFINEMENTS).unwrap_or_default());
    let open = task.staged.refinements.iter().filter(|it| !matches!(it.state, RefinementStatus::Withdrawn));
    for it in open {
        let text = plain_line(&it.text);
        if !all.pending.iter().any(|known| plain_line(&known.text) == text) {
            let at: String = format_timestamp(it.at).replace('T', " ").chars().take(16).collect();
            all = all.with_entry(&at, &text);
        }
    }
    Some(all.text().to_owned()).filter(|text| !text.is_empty())
}

/// Where refinements lie.
pub(super) const REFINEMENTS: &str = ".pending-refinements.md";

fn render_baseline(task: &Task) -> Option<String> {
    let objective = task.staged.objective.as_ref().filter(|objective| objective.is_confirmed())?;
    let rows = objective.items.iter().flat_map(|item| {
        item.requirements.iter().map(|it| BaselineRow {
            r: it.number,
            text: it.text.clone(),
            weight: match it.weight {
                Weight::Critical => target::ModuleWeight::Critical,
                Weight::Important => target::ModuleWeight::Important,
                Weight::Optional => target::ModuleWeight::Optional,
            },
            source: item.text.clone(),
        })
    });
    let generated_from = format!("revision {} of the objective of {}", objective.revision, task.id);
    Some(Baseline { generated_from, updated: format_day(task.created), rows: rows.collect() }.to_text())
}

const JUDGED_SHOWN: usize = 5; // the rest is in `.analysis/`

fn summary_of(task: &Task, module: &ModuleRecord) -> String {
    let staged = &task.staged;
    let steps = staged.papers.contains_key(PLAN).then_some(staged.plan.steps);
    let next = task.step().map_or("-", |step| step.as_str());
    let from = staged.judged.len().saturating_sub(JUDGED_SHOWN);
    let why = landfall_model::explain_task_state(task, &[], None, &format_timestamp);
    let layers = SummarySections {
        plan: steps.map_or_else(String::new, |steps| {
            format!("The plan has {steps} steps; {} are done. It is in `.plan.md`.", staged.plan.done)
        }),
        state: format!("{}: {why}", task.id),
        decisions: staged.judged[from..].iter().map(judged_line).collect(),
        issues: task.warnings.iter().map(landfall_model::Warning::to_sentence).collect(),
        lessons: staged.exclusions.iter().map(|it| format!("{} ({})", it.direction, it.reason)).collect(),
    };
    summary::write(&module.title, &SummaryHeader::for_module(module, next, steps), &layers)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use landfall_model::convergence;
    use landfall_model::objective::{Objective, ObjectiveItem, Requirement};
    use landfall_model::{Attempt, Commit, StepResult, TaskId, TaskSpec};
    use landfall_trackers::modules::folder::{FileSnapshot, ModuleLocation};

    use super::*;

    fn seen(target: &str) -> ModuleFolderSnapshot {
        let place = ModuleLocation {
            root: "/project".into(),
            path: ".worktrees/task-n/.working".into(),
            name: "n".to_owned(),
            sort: ModuleKind::Notebook,
        };
        let files = BTreeMap::from([(TARGET.to_owned(), FileSnapshot::new(target.as_bytes().to_vec()))]);
        ModuleFolderSnapshot {
            place,
            form: MetadataFormat::StatusJson,
            metadata: None,
            files,
            warnings: Vec::new(),
        }
    }

    /// A task with the body and an objective of one item that a person confirmed.
    fn task(body: &str) -> Task {
        let mut spec = TaskSpec::new("a task").expect("a title");
        spec.body = body.trim().to_owned();
        let mut task = Task::from_spec(TaskId(1), spec, Timestamp(0));
        let requirements = vec![Requirement::new(1, "a file is written", "", Weight::Critical)];
        let items = vec![ObjectiveItem { text: "Export a report".to_owned(), requirements }];
        let (revision, shown, confirmed) = (1, Some(1), Some(1));
        task.staged.objective =
            Some(Objective { items, constraints: Vec::new(), revision, shown, confirmed });
        task
    }

    #[test]
    fn the_objective_is_written_into_the_target_once_and_keeps_the_words_around_it() {
        let body = "# Reports\n\n## Overall Objective\n\nPeople want reports.\n\n## Constraints\n\n- small\n";
        let task = task(body);
        let first = target_of(&task, &seen(body)).expect("it says something else now");
        assert!(first.contains("- Export a report (R: 1) [CONFIRMED]"), "{first}");
        assert!(first.contains("People want reports.") && first.contains("- small"), "{first}");
        assert!(!replaces_words(&task, &seen(body)), "nothing of a person's is lost");
        assert_eq!(target_of(&task, &seen(&first)), None, "it is shown");
        let by_hand = body.replace("People want reports.", "- Print it");
        assert!(
            replaces_words(&task, &seen(&by_hand)),
            "a line of a person's gives way, and is kept beside it"
        );
    }

    #[test]
    fn each_accepted_stage_has_a_report_with_what_is_worth_knowing() {
        let mut task = task("Reports.");
        task.attempt = Attempt(3);
        task.staged.stages.push(convergence::AcceptedStage {
            number: 1,
            focus: vec![1],
            commit: Commit::new("1111111111111111111111111111111111111111"),
            coverage: BTreeMap::from([(1, 500)]),
            convergence: 5_000,
        });
        task.staged.judged.push(JudgeResult {
            checkpoint: landfall_model::score::GatePoint::PostExec,
            stage: Some(1),
            head: None,
            scores: None,
            composite: None,
            result: StepResult::NeedsFix,
            reasons: Vec::new(),
            coverage: BTreeMap::new(),
            findings: vec!["major (src/export.rs): it forgets the header".to_owned()],
            at: Timestamp(0),
        });
        let of_plan = JudgeResult { stage: None, ..task.staged.judged[0].clone() };
        task.staged.judged.push(of_plan);
        let seen = seen("Reports.\n");
        let papers = build_papers(&task, &ModuleRecord::new("a task", ""), &seen, &|_| None);
        let report = papers.entries.iter().find(|it| it.name.about.contains("stage-1-report"));
        let text = &report.expect("there is a report of stage 1").text;
        for said in
            ["0.0000 → 0.5000", "R1, covered 0.50", "sent back by its judges: 1", "it forgets the header"]
        {
            assert!(text.contains(said), "{said} in:\n{text}");
        }
        let analysis =
            papers.entries.iter().find(|it| it.shelf == EntryFolder::Analysis).expect("a judge spoke");
        assert!(analysis.text.contains("## Findings\n\n- major (src/export.rs)"), "{}", analysis.text);
    }
}

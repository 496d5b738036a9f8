//! What a person does by hand about a task with a plan: a step now, the objective, a refinement, the margin of a paper.

use landfall_api::{self as api, Problem, ProblemCode};
use landfall_engine::model::annotate::{
    self, Annotation, AnnotationBlocker, AnnotationResumePoint, CommentKind, DocumentSubject,
};
use landfall_engine::model::objective::Objective;
use landfall_engine::model::plan::PlanOutline;
use landfall_engine::model::staged::PLAN;
use landfall_engine::model::{AnnotatedDocument, AttemptPhase, News, StepKind, Task, TaskState, WaitReason};
use landfall_engine::papers;

use crate::command::intervene::{MESSAGE_BYTES_MAX, check_text};
use crate::project::command_handler::CommandHandler;
use crate::project::{conversions, problems};
use crate::query::targets;

const NOTES_MAX: usize = 200; // a plan that needs more is written anew
const PAPER_BYTES_MAX: usize = 1024 * 1024; // what an agent could still read

impl CommandHandler<'_> {
    pub fn run_manual_step(&self, asked: &api::DoAsked) -> Result<api::Changed, Problem> {
        let id = conversions::model_task(asked.task);
        let command = asked.command.trim().to_lowercase();
        let task = self.query().load_task(&*self.reader_for_task(id)?, id)?;
        let note = asked.step.map(|step| single_step_instruction(&task, &command, step)).transpose()?;
        let checkpoint = asked.checkpoint.map(targets::model_checkpoint);
        let news = News::Do { command: command.clone(), checkpoint, alone: asked.alone, note, flow: None };
        let changed = self.send_news(&[asked.task], news)?;
        let step = changed.first().and_then(|task| task.directed.as_ref().map(|it| it.step.to_string()));
        let step = step.map(|step| format!(" (step {step})")).unwrap_or_default();
        let under_way = changed.first().is_some_and(|task| matches!(task.state, TaskState::Active { .. }));
        let when = match (under_way, self.engine.is_alive(), asked.alone) {
            (true, ..) => "once the step under way is over",
            (false, true, _) => "next",
            (false, false, true) => "in the next run, and nothing after it",
            (false, false, false) => "in the next run",
        };
        self.describe_changes(&changed, &format!("does `{command}`{step} {when}"))
    }

    pub fn refine_task(&self, asked: &api::Refine) -> Result<api::Changed, Problem> {
        let text = check_text(&asked.text, "refinement", MESSAGE_BYTES_MAX)?;
        let id = conversions::model_task(asked.task);
        let before = self.query().load_task(&*self.reader_for_task(id)?, id)?;
        let changed = self.send_news(&[asked.task], News::Refine { text })?;
        let what = match (before.is_over(), changed.first()) {
            (true, Some(task)) if !task.is_over() => "is taken up again with it".to_owned(),
            (_, Some(task)) => {
                let number = task.staged.refinements.last().map_or(0, |it| it.number);
                let who = match targets::task_flow(self.place, task) {
                    Some(flow) if !flow.has_judge() => "the next run of its agent hears it",
                    Some(_) | None => "the next check weighs it",
                };
                format!("has it as refinement {number}; {who}, and until then you can take it back")
            }
            (_, None) => "has it".to_owned(),
        };
        self.describe_changes(&changed, &what)
    }

    pub fn withdraw_refinement(&self, asked: api::RefineWithdraw) -> Result<api::Changed, Problem> {
        let changed = self.send_news(&[asked.task], News::Withdraw { number: asked.number })?;
        self.describe_changes(&changed, &format!("does without refinement {}", asked.number))
    }

    pub fn comment_on_target(&self, asked: &api::TargetSay) -> Result<api::Changed, Problem> {
        let text = check_text(&asked.text, "text", MESSAGE_BYTES_MAX)?;
        let task = self.task_with_objective(asked.task)?;
        let was_confirmed = is_confirmed(&task);
        if !asks_about_its_objective(&task) {
            let message = News::Message { text, now: false };
            let changed = self.send_news(&[asked.task], message)?;
            return self.describe_changes(
                &changed,
                "works what you said into its objective when it is worked out next",
            );
        }
        let changed = self.send_news(&[asked.task], News::Answer { text })?;
        let what = match changed.first() {
            Some(task) if is_confirmed(task) && !was_confirmed => CONFIRMED,
            Some(task) if asks_about_its_objective(task) => {
                "shows you its objective as it is now; say yes to that"
            }
            _ => "works what you said into its objective, and asks again",
        };
        self.describe_changes(&changed, what)
    }

    pub fn confirm_target(&self, asked: api::TargetConfirm) -> Result<api::Changed, Problem> {
        let task = self.task_with_objective(asked.task)?;
        let id = task.id;
        let refuse = |what: String| {
            Err(Problem::new(ProblemCode::NotNow, what)
                .with_hint(format!("`landfall objective show {id}` shows its objective as it is now")))
        };
        let Some(objective) = &task.staged.objective else {
            return refuse(format!("{id} has no objective yet"));
        };
        if objective.is_confirmed() {
            return refuse(format!("the objective of {id} is confirmed already"));
        }
        if asked.revision != objective.revision {
            return refuse(format!(
                "the objective of {id} has changed since: you read revision {}, it is {} now",
                asked.revision, objective.revision
            ));
        }
        if !(objective.needs_approval() && asks_about_its_objective(&task)) {
            return refuse(format!("the objective of {id} was not shown to you yet"));
        }
        let changed = self.send_news(&[asked.task], News::Answer { text: "OK".to_owned() })?;
        self.describe_changes(&changed, CONFIRMED)
    }

    pub fn annotate_paper(&self, asked: &api::Annotate) -> Result<api::Annotated, Problem> {
        let bad = |what: String| Problem::new(ProblemCode::BadInput, what);
        let id = conversions::model_task(asked.task);
        let task = self.query().load_task(&*self.reader_for_task(id)?, id)?;
        if asked.notes.is_empty() || asked.notes.len() > NOTES_MAX {
            return Err(bad(format!("there are {} annotations", asked.notes.len()))
                .with_hint(format!("1 to {NOTES_MAX} at once")));
        }
        let Some(of) = task.staged.papers.get(&asked.paper).cloned() else {
            return Err(targets::unknown_paper_problem(self.place, &task, &asked.paper));
        };
        let notes = asked.notes.iter().map(to_annotation).collect::<Result<Vec<_>, _>>()?;
        let phase = task.phase_word();
        let at_work = matches!(
            task.state,
            TaskState::Active { doing: AttemptPhase::Preparing { .. } | AttemptPhase::Running { .. }, .. }
        );
        annotate::check_annotations_allowed(&phase, at_work, &notes).map_err(|closed| {
            let hint = match closed {
                AnnotationBlocker::AtWork => format!(
                    "`landfall task tell {id}` says it to the agent; `landfall task hold {id}` waits for its end"
                ),
                AnnotationBlocker::Over | AnnotationBlocker::Accepted => {
                    format!("`landfall objective refine {id}` says what you want otherwise")
                }
            };
            Problem::new(ProblemCode::NotNow, format!("{id} takes no such annotation: {closed}")).with_hint(hint)
        })?;
        let folder = self.place.folder.papers_path();
        let text = papers::read_paper(&folder, &of)
            .map_err(|error| problems::from_io_error("read", &folder, &error))?;
        let after = annotate::apply(&text, &notes).map_err(|refused| {
            bad(format!("nothing was written: {refused}"))
                .with_hint(format!("`landfall task papers {id} {}` shows the text as it is now", asked.paper))
        })?;
        if after.len() > PAPER_BYTES_MAX {
            return Err(bad(format!(
                "the paper would have {} bytes; at most {PAPER_BYTES_MAX} are read",
                after.len()
            )));
        }
        let layer = DocumentSubject::from_path(&asked.paper);
        let (impact, onward) = annotate::assess_annotations(notes.iter().map(|note| (layer, note)));
        let paper = papers::store_paper(&folder, &after)
            .map_err(|error| problems::from_io_error("write into", &folder, &error))?;
        let outline = (asked.paper == PLAN).then(|| PlanOutline::read(&after));
        let news = AnnotatedDocument { name: asked.paper.clone(), of, paper, outline, impact, onward };
        let changed = self.send_news(&[asked.task], News::Annotate(news))?;
        let directed = changed.first().and_then(|task| task.directed.as_ref());
        let next = match (onward, directed) {
            (AnnotationResumePoint::GoOn, _) | (_, None) => "it goes on as it was".to_owned(),
            (_, Some(directed)) => format!("it goes on with `{}`", directed.step),
        };
        let answer = self.describe_changes(&changed, "is annotated")?;
        Ok(api::Annotated {
            task: asked.task,
            paper: asked.paper.clone(),
            impact: impact.word().to_owned(),
            status: answer.tasks.first().map_or(
                conversions::to_api_status(landfall_engine::model::TaskStatus::for_task(&task)),
                |it| it.status,
            ),
            text: format!("{} of {id} is annotated ({} impact); {next}.", asked.paper, impact.word()),
        })
    }

    /// A task whose flow works its objective out.
    fn task_with_objective(&self, task: api::WireTaskId) -> Result<Task, Problem> {
        let id = conversions::model_task(task);
        let task = self.query().load_task(&*self.reader_for_task(id)?, id)?;
        let flow = targets::task_flow(self.place, &task);
        let has = flow.is_some_and(|flow| flow.steps.iter().any(|step| step.kind == StepKind::Target));
        if has {
            return Ok(task);
        }
        Err(Problem::new(ProblemCode::NotNow, format!("the flow of {id} works no objective out"))
            .with_hint("`landfall edit` with `--flow staged` gives it one that does, before it first starts"))
    }
}

const CONFIRMED: &str = "has its objective confirmed; from here on it goes by itself";

fn is_confirmed(task: &Task) -> bool {
    task.staged.objective.as_ref().is_some_and(Objective::is_confirmed)
}

/// Whether the question it waits with is about its objective.
fn asks_about_its_objective(task: &Task) -> bool {
    let TaskState::Waiting { wait: WaitReason::Question { .. }, then, .. } = &task.state else {
        return false;
    };
    let step = task.flow.as_ref().and_then(|flow| flow.find_step(then));
    step.is_some_and(|step| step.kind == StepKind::Target)
}

/// What the agent is told of whom a person wants one step of the plan.
fn single_step_instruction(task: &Task, command: &str, step: u32) -> Result<String, Problem> {
    let bad = |what: String| Problem::new(ProblemCode::BadInput, what);
    if command != "exec" {
        return Err(bad(format!("`{command}` has no steps of a plan")).with_hint("`--step` goes with `exec`"));
    }
    let steps = task.staged.plan.steps;
    if step == 0 || step > steps {
        let what = match steps {
            0 => format!("{} has no plan with steps yet", task.id),
            _ => format!("the plan of {} has {steps} steps; there is no step {step}", task.id),
        };
        return Err(bad(what).with_hint(format!("`landfall objective show {}` shows them", task.id)));
    }
    Ok(format!(
        "Do step {step} of the plan now, and no other. When it is done, say STEP:{step} and then \
         CHECK:step {step} was asked for by hand. Do not say that the whole is complete."
    ))
}

fn to_annotation(note: &api::Note) -> Result<Annotation, Problem> {
    let api::Note { kind, before, selected, text, after } = note;
    let made = match kind {
        api::NoteKind::Insert => Annotation::insert(before, text, after),
        api::NoteKind::Delete => Annotation::new_deletion(before, selected, after),
        api::NoteKind::Replace => Annotation::replace(before, selected, text, after),
        api::NoteKind::Comment => Annotation::new_comment(CommentKind::Note, before, selected, text, after),
    };
    made.map_err(|error| {
        Problem::new(ProblemCode::BadInput, error.to_string()).with_hint(
            "an annotation says the line, up to 20 characters before its place and up to 20 behind it",
        )
    })
}

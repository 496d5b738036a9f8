//! What changes something: each request becomes what the engine can be asked, and its reply an answer of the wire.

use std::collections::BTreeSet;
use std::sync::Arc;

use landfall_api::{self as api, Problem, ProblemCode, Request, Response};
use landfall_engine::model::{Event, News, PathPattern, Tag, Task, TaskId, TaskSpec};
use landfall_engine::store::{StoreReader, TaskRow};
use landfall_engine::{EngineReply, EngineRequest, NewTaskSpec};
use landfall_text::{format_duration, pluralize};

use crate::command::{modules, propose};
use crate::project::command_handler::{CommandHandler, EngineCall, unexpected_reply};
use crate::project::conversions::TaskRelations;
use crate::project::dead_ends;
use crate::project::engine_at::EngineLocation;
use crate::project::place::ProjectLocation;
use crate::project::{conversions, problems, trust};
use crate::query::tasks::{self, why_sentence};
use crate::query::{orphans, running_checks};

/// Carries a write out.
pub(crate) fn write(
    place: &ProjectLocation,
    engine: &EngineLocation,
    ask: EngineCall<'_>,
    request: Request,
) -> Result<Response, Problem> {
    let clerk = CommandHandler { place, engine, ask };
    Ok(match request {
        Request::Add(asked) => Response::Add(clerk.add(asked)?),
        Request::Edit(asked) => Response::Edit(clerk.edit_task(asked)?),
        Request::ProposalAccept(of) => Response::ProposalAccept(clerk.accept_proposal(of.number)?),
        Request::Stop(asked) => Response::Stop(clerk.stop(&asked)?),
        Request::Retry(asked) => Response::Retry(clerk.retry_tasks(asked)?),
        Request::Cancel(asked) => Response::Cancel(clerk.cancel_tasks(asked)?),
        Request::Answer(asked) => Response::Answer(clerk.answer_task(asked)?),
        Request::Message(asked) => Response::Message(clerk.message_task(asked)?),
        Request::Hold(asked) => Response::Hold(clerk.hold_tasks(asked)?),
        Request::Release(asked) => Response::Release(clerk.release_tasks(&asked)?),
        Request::Accept(asked) => Response::Accept(clerk.accept_tasks(&asked)?),
        Request::Block(asked) => Response::Block(clerk.block_tasks(&asked)?),
        Request::Limits(asked) => Response::Limits(clerk.set_task_limits(&asked)?),
        Request::TaskDo(asked) => Response::TaskDo(clerk.run_manual_step(&asked)?),
        Request::TargetSay(asked) => Response::TargetSay(clerk.comment_on_target(&asked)?),
        Request::TargetConfirm(asked) => Response::TargetConfirm(clerk.confirm_target(asked)?),
        Request::Refine(asked) => Response::Refine(clerk.refine_task(&asked)?),
        Request::RefineWithdraw(asked) => Response::RefineWithdraw(clerk.withdraw_refinement(asked)?),
        Request::Annotate(asked) => Response::Annotate(clerk.annotate_paper(&asked)?),
        Request::Rollback(asked) => {
            Response::Rollback(clerk.rollback_task(conversions::model_task(asked.task))?)
        }
        Request::Pause(asked) => Response::Pause(clerk.pause_run(&asked)?),
        Request::Resume(_) => Response::Resume(clerk.resume_run()?),
        Request::Auto(asked) => Response::Auto(clerk.set_mode(asked.mode)?),
        Request::Next(asked) => Response::Next(clerk.next(asked.task.map(conversions::model_task))?),
        Request::SprintPause(asked) => Response::SprintPause(clerk.pause_sprint(&asked)?),
        Request::SprintResume(_) => Response::SprintResume(clerk.resume_sprint()?),
        Request::SprintCancel(_) => Response::SprintCancel(clerk.cancel_sprint()?),
        Request::QueuePause(asked) => Response::QueuePause(clerk.pause_queue(&asked)?),
        Request::QueueResume(asked) => Response::QueueResume(clerk.resume_queue(&asked)?),
        Request::QueueEject(asked) => {
            Response::QueueEject(clerk.eject_from_queue(conversions::model_task(asked.task))?)
        }
        Request::Review(asked) => Response::Review(clerk.review_tasks(asked)?),
        Request::CheckpointCreate(asked) => Response::CheckpointCreate(clerk.create_checkpoint(asked.name)?),
        Request::CheckpointRestore(asked) => {
            Response::CheckpointRestore(clerk.restore_checkpoint(&asked.name)?)
        }
        Request::CheckpointDrop(asked) => Response::CheckpointDrop(clerk.drop_checkpoints(&asked)?),
        Request::DiscoveryDrop(asked) => Response::DiscoveryDrop(clerk.drop_discoveries(&asked)?),
        Request::Consulted(asked) => Response::Consulted(clerk.note_consultation(asked)?),
        Request::LoopStart(asked) => Response::LoopStart(clerk.start_loop(asked)?),
        Request::LoopStop(asked) => Response::LoopStop(clerk.stop_loop(&asked)?),
        Request::IssuesFollow(asked) => Response::IssuesFollow(clerk.follow_issues(&asked)?),
        other => unreachable!("`{}` is not a write", other.name()),
    })
}

/// What cannot be done while no engine runs, said without opening one.
pub(crate) fn refuse_without_engine(
    place: &ProjectLocation,
    request: &Request,
) -> Result<Option<Problem>, Problem> {
    match request {
        Request::Stop(api::StopAsked { task: None, .. }) => {}
        Request::Pause(_)
        | Request::Resume(_)
        | Request::Next(_)
        | Request::SprintPause(_)
        | Request::SprintResume(_) => {
            return Ok(Some(no_run_problem("`landfall run` starts one; without one nothing begins")));
        }
        Request::Auto(_) => {
            return Ok(Some(no_run_problem(
                "`landfall run --mode autopilot` or `--mode semi-auto` starts one that way",
            )));
        }
        _ => return Ok(None),
    }
    let reader = place.open_reader()?;
    let agents = match &reader {
        Some(reader) => orphans::tasks_with_running_agents(place, reader)?,
        None => Vec::new(),
    };
    if agents.is_empty() {
        return Ok(Some(
            Problem::new(ProblemCode::NotNow, "no run is under way, so there is nothing to stop")
                .with_hint("`landfall status` shows how the project stands"),
        ));
    }
    let message = format!(
        "no engine runs, but it left {} at work: {}",
        pluralize(agents.len() as u64, "agent"),
        conversions::join_ids(&agents)
    );
    let first = agents[0];
    let hint = match agents.len() {
        1 => format!("`landfall run` adopts it; `landfall stop {first}` stops it and keeps its work"),
        _ => format!("`landfall run` adopts them; `landfall stop {first}` stops that one and keeps its work"),
    };
    Ok(Some(Problem::new(ProblemCode::NotNow, message).with_hint(hint)))
}

fn no_run_problem(hint: &str) -> Problem {
    Problem::new(ProblemCode::NotNow, "no run is under way").with_hint(hint)
}

impl CommandHandler<'_> {
    fn add(&self, asked: api::NewTasks) -> Result<api::Added, Problem> {
        if asked.tasks.is_empty() {
            return Ok(api::Added { tasks: Vec::new() });
        }
        let many = asked.tasks.len();
        let new = |task| {
            let mut new = new_task(task, many)?;
            new.position = modules::find_imported_progress(self.place, &new.spec.source)?;
            Ok(new)
        };
        let tasks = asked.tasks.into_iter().map(new).collect::<Result<Vec<_>, Problem>>()?;
        let added = self.request_tasks(EngineRequest::Add(tasks))?;
        let reader = self.open_reader()?;
        let mut lines = Vec::new();
        for task in added {
            // Made from the task itself: a hundred thousand of them are not read back one by one.
            let needs: Vec<TaskId> = task.spec.needs.iter().copied().collect();
            let unmet = match needs.is_empty() {
                true => Vec::new(),
                false => reader.unmet(task.id).map_err(|error| problems::from_store_error(&error))?,
            };
            let mut row = TaskRow::from_task(&task);
            row.unmet = u32::try_from(unmet.len()).unwrap_or(u32::MAX);
            lines.push(conversions::to_task_line(
                row,
                &TaskRelations { needs, unmet, ..TaskRelations::default() },
            ));
        }
        Ok(api::Added { tasks: lines })
    }

    fn edit_task(&self, asked: api::EditTask) -> Result<api::Changed, Problem> {
        let id = conversions::model_task(asked.task);
        let before = self.query().load_task(&*self.reader_for_task(id)?, id)?;
        let spec = edit_spec(before.spec.clone(), asked)?;
        if spec == before.spec {
            return self.describe_changes(&[Arc::new(before)], "is as it was");
        }
        let changed = self.request_tasks(EngineRequest::Edit(id, Box::new(spec)))?;
        self.describe_changes(&changed, "was changed")
    }

    /// Lets the drafts of a proposal start, all or none.
    fn accept_proposal(&self, number: u32) -> Result<api::Changed, Problem> {
        let drafts = propose::find_proposal_drafts(self.place, number)?;
        let changed = self.request_tasks(EngineRequest::Ready(drafts))?;
        self.describe_changes(&changed, "was changed")
    }

    fn stop(&self, asked: &api::StopAsked) -> Result<api::Stopped, Problem> {
        if let Some(task) = asked.task {
            let id = conversions::model_task(task);
            let changed = self.request_tasks(EngineRequest::Tell(vec![id], Box::new(News::StopTask)))?;
            let sentence =
                changed.first().map_or(String::new(), |task| why_sentence(task, &TaskRelations::default()));
            return Ok(api::Stopped { run: None, tasks: vec![task], text: sentence, details: Vec::new() });
        }
        let reader = self.open_reader()?;
        let at_work = orphans::tasks_with_running_agents(self.place, &reader)?;
        let checks = self.engine.running_checks();
        let run = reader.runs(1).map_err(|error| problems::from_store_error(&error))?.pop();
        let agents = match (self.ask)(EngineRequest::StopRun { now: asked.now })? {
            EngineReply::Stopping { agents } => agents as u64,
            other => return Err(unexpected_reply("a stop", &other)),
        };
        let text = match (agents, asked.now) {
            (0, true) => "the run ends now.".to_owned(),
            (0, false) => "the run ends as soon as what is being verified or landed is through.".to_owned(),
            (many, true) => format!("{} being stopped; their work is kept.", agents_are(many)),
            (many, false) => {
                format!("the run ends when {} finished the iteration under way.", agents_have(many))
            }
        };
        let mut details = Vec::new();
        for id in &at_work {
            let Some(task) = reader.task(*id).map_err(|error| problems::from_store_error(&error))? else {
                continue;
            };
            let when = if asked.now { "stops within seconds" } else { "stops after this iteration" };
            details.push(format!("{id}: iteration {} of its agent {when}", tasks::current_iteration(&task)));
        }
        for check in &checks {
            let when = match asked.now {
                true => "ends now and runs again in the next run".to_owned(),
                false => {
                    let left = check.limit_ms.saturating_sub(check.elapsed_ms);
                    format!("runs to its end, at most {} more", format_duration(left))
                }
            };
            details.push(format!("{}: check {} {when}", check.of, running_checks::check_brief(check)));
        }
        let tasks = at_work.into_iter().map(conversions::task_id).collect();
        Ok(api::Stopped { run: run.map(|run| conversions::run_id(run.id)), tasks, text, details })
    }

    fn retry_tasks(&self, asked: api::Retry) -> Result<api::Changed, Problem> {
        let news = News::Retry { fresh: asked.fresh, note: asked.note };
        let changed = self.send_news(&asked.tasks, news)?;
        let what = if asked.fresh { "is taken up again from a new workspace" } else { "is taken up again" };
        self.describe_changes(&changed, what)
    }

    fn cancel_tasks(&self, asked: api::Cancel) -> Result<api::Changed, Problem> {
        let loops = self.open_reader()?.loops().map_err(|error| problems::from_store_error(&error))?;
        for id in asked.tasks.iter().copied().map(conversions::model_task) {
            let task = self.query().load_task(&*self.reader_for_task(id)?, id)?;
            let session =
                loops.all_loops().iter().rev().find(|it| it.task == id).map(|it| it.session.as_str());
            modules::check_may_cancel(self.place, &task.spec.source, session)?;
        }
        let news = News::Cancel { reason: asked.reason.unwrap_or_default() };
        let changed = self.send_news(&asked.tasks, news)?;
        let mut answer = self.describe_changes(&changed, "was cancelled; its work is kept")?;
        let reader = self.open_reader()?;
        for (line, task) in answer.tasks.iter_mut().zip(&changed) {
            if !task.is_over() {
                line.text =
                    format!("{} is being stopped and will then be cancelled; its work is kept.", task.id);
            }
            let needed_by = self.open_dependents(&reader, task.id)?;
            if let Some(ways) = dead_ends::dead_end_hint(task.id, &needed_by) {
                line.text = format!("{} {ways}", line.text);
            }
        }
        Ok(answer)
    }

    /// Tasks that need this one and are not over.
    fn open_dependents(&self, reader: &StoreReader, id: TaskId) -> Result<Vec<TaskId>, Problem> {
        let of = |error| problems::from_store_error(&error);
        let mut open = Vec::new();
        for dependent in reader.dependents(id).map_err(of)? {
            let task = reader.task(dependent).map_err(of)?;
            open.extend(task.filter(|task| !task.is_over()).map(|task| task.id));
        }
        Ok(open)
    }

    fn accept_tasks(&self, asked: &api::Accept) -> Result<api::Changed, Problem> {
        let reason = asked.reason.trim().to_owned();
        if reason.is_empty() {
            return Err(Problem::new(ProblemCode::BadInput, "the reason is empty")
                .with_hint("say in a few words where it was done, such as a commit"));
        }
        let changed = self.send_news(&asked.tasks, News::Accept { reason })?;
        self.describe_changes(&changed, "is done; the tasks that need it go on")
    }

    fn answer_task(&self, asked: api::Answer) -> Result<api::Changed, Problem> {
        if asked.text.trim().is_empty() {
            return Err(Problem::new(ProblemCode::BadInput, "the answer is empty")
                .with_hint("say it in a few words; `approve` lets a task in review land"));
        }
        let id = conversions::model_task(asked.task);
        let before = self.query().load_task(&*self.reader_for_task(id)?, id)?;
        let changed = self.send_news(&[asked.task], News::Answer { text: asked.text })?;
        let was_review = matches!(before.state, landfall_engine::model::TaskState::Review { .. });
        let approved =
            changed.first().is_some_and(|task| task.approved.is_some() && task.approved != before.approved);
        if let (true, Some(task)) = (approved, changed.first()) {
            trust::trust_approved_work(&self.query(), task)?; // as after `landfall review`
        }
        let what = match (was_review, approved) {
            (true, true) => "is approved and lands next",
            (true, false) => "goes back to its agent with what you said",
            (false, _) => "has its answer and goes on",
        };
        self.describe_changes(&changed, what)
    }

    pub fn send_news(&self, tasks: &[api::WireTaskId], news: News) -> Result<Vec<Arc<Task>>, Problem> {
        let mut seen = BTreeSet::new();
        let ids = tasks.iter().copied().map(conversions::model_task).filter(|id| seen.insert(*id)).collect();
        self.request_tasks(EngineRequest::Tell(ids, Box::new(news)))
    }

    fn rollback_task(&self, id: TaskId) -> Result<api::RolledBack, Problem> {
        let before = self.query().load_task(&*self.reader_for_task(id)?, id)?;
        let task = conversions::task_id(id);
        let all: Vec<&str> = before.landings().map(|landed| landed.commit.short_hash()).collect();
        if before.landed.is_some() || before.is_over() && !all.is_empty() {
            let made = self.request_tasks(EngineRequest::Rollback(id))?;
            let new = made.first().map(|task| task.id);
            let who = new.map_or("a new task".to_owned(), |new| new.to_string());
            let when = if self.engine.is_alive() { "now" } else { "by the next `landfall run`" };
            let text = format!(
                "{who} undoes {id} (commit {}); it is verified and landed like any other change, {when}.",
                all.join(", commit ")
            );
            return Ok(api::RolledBack { task, new_task: new.map(conversions::task_id), text });
        }
        if !conversions::ended_without_landing(&before) {
            let message = format!("{id} has not landed, so there is nothing to take back");
            let hint = match before.is_over() {
                true => format!("`landfall why {id}` shows its state"),
                false => format!(
                    "`landfall cancel {id}` ends it, `landfall stop {id}` pauses it; both keep its work"
                ),
            };
            return Err(Problem::new(ProblemCode::NotNow, message).with_hint(hint));
        }
        self.send_news(&[task], News::Retry { fresh: true, note: None })?;
        let kept = if before.workspace.is_some() {
            let attempt = before.attempt.next();
            format!(
                " Unmerged work of it will be kept in the store under refs/landfall/kept/t{}/{attempt}.",
                id.0
            )
        } else {
            String::new()
        };
        let text = format!("{id} had not landed; it starts again from a new workspace at the base.{kept}");
        Ok(api::RolledBack { task, new_task: None, text })
    }

    pub fn describe_changes(&self, tasks: &[Arc<Task>], what: &str) -> Result<api::Changed, Problem> {
        let reader = self.open_reader()?;
        let mut lines = Vec::new();
        for task in tasks {
            let row = reader.row(task.id).map_err(|error| problems::from_store_error(&error))?;
            let status =
                row.map_or(landfall_engine::model::TaskStatus::for_task(task), |row| row.effective_status());
            let text = format!("{} {what}.", task.id);
            lines.push(api::ChangedTask {
                id: conversions::task_id(task.id),
                status: conversions::to_api_status(status),
                text,
            });
        }
        Ok(api::Changed { tasks: lines })
    }
}

fn agents_are(many: u64) -> String {
    if many == 1 { "1 agent is".to_owned() } else { format!("{many} agents are") }
}

fn agents_have(many: u64) -> String {
    if many == 1 { "1 agent has".to_owned() } else { format!("{many} agents have") }
}

/// A task of the wire, its batch having `many`.
fn new_task(task: api::NewTask, many: usize) -> Result<NewTaskSpec, Problem> {
    let api::NewTask {
        title,
        body,
        criteria,
        size,
        tags,
        priority,
        needs,
        touches,
        parent,
        flow,
        agent,
        draft,
        source,
    } = task;
    let mut spec = TaskSpec::new(&title).map_err(|error| problems::bad_spec(&error))?;
    spec.body = body;
    spec.criteria = criteria;
    spec.size = size.map(conversions::model_size);
    spec.tags = model_tags(&tags)?;
    if let Some(priority) = priority {
        spec.priority = priority;
    }
    spec.touches = model_touches(&touches)?;
    spec.flow = flow;
    spec.agent = agent;
    spec.draft = draft;
    if !source.is_empty() {
        spec.source = source;
    }
    let mut needs_here = Vec::new();
    for need in needs {
        match need {
            api::TaskRef::Task(id) => {
                spec.needs.insert(conversions::model_task(id)); // named twice is needed once
            }
            api::TaskRef::Batch(place) => needs_here.push(batch_index(place, many)?),
        }
    }
    let parent_here = match parent {
        Some(api::TaskRef::Task(id)) => {
            spec.parent = Some(conversions::model_task(id));
            None
        }
        Some(api::TaskRef::Batch(place)) => Some(batch_index(place, many)?),
        None => None,
    };
    spec.check_bounds().map_err(|error| problems::bad_spec(&error))?;
    Ok(NewTaskSpec { spec, needs_here, parent_here, position: None })
}

fn batch_index(place: u32, many: usize) -> Result<usize, Problem> {
    let index = usize::try_from(place).unwrap_or(usize::MAX).wrapping_sub(1);
    if index < many {
        return Ok(index);
    }
    Err(Problem::new(ProblemCode::BadInput, format!("`#{place}` is not in this batch of {many}"))
        .with_hint("`#1` is the first task of the batch"))
}

fn model_tags(tags: &[String]) -> Result<BTreeSet<Tag>, Problem> {
    tags.iter().map(|tag| tag.parse()).collect::<Result<_, _>>().map_err(|error| problems::bad_spec(&error))
}

fn model_touches(touches: &[String]) -> Result<BTreeSet<PathPattern>, Problem> {
    let parse = |touch: &String| touch.parse();
    touches.iter().map(parse).collect::<Result<_, _>>().map_err(|error| problems::bad_spec(&error))
}

fn edit_spec(mut spec: TaskSpec, asked: api::EditTask) -> Result<TaskSpec, Problem> {
    let api::EditTask {
        task: _,
        title,
        body,
        criteria,
        size,
        tags,
        priority,
        needs,
        touches,
        parent,
        flow,
        agent,
        clear,
        ready,
    } = asked;
    if let Some(title) = title {
        spec.title = TaskSpec::new(&title).map_err(|error| problems::bad_spec(&error))?.title;
    }
    if let Some(body) = body {
        spec.body = body;
    }
    if let Some(criteria) = criteria {
        spec.criteria = criteria;
    }
    if let Some(size) = size {
        spec.size = Some(conversions::model_size(size));
    }
    if let Some(tags) = tags {
        spec.tags = model_tags(&tags)?;
    }
    if let Some(priority) = priority {
        spec.priority = priority;
    }
    if let Some(needs) = needs {
        spec.needs = needs.into_iter().map(conversions::model_task).collect();
    }
    if let Some(touches) = touches {
        spec.touches = model_touches(&touches)?;
    }
    if let Some(parent) = parent {
        spec.parent = Some(conversions::model_task(parent));
    }
    if let Some(flow) = flow {
        spec.flow = Some(flow);
    }
    if let Some(agent) = agent {
        spec.agent = Some(agent);
    }
    if let Some(ready) = ready {
        spec.draft = !ready;
    }
    for what in clear {
        match what {
            api::Clear::Size => spec.size = None,
            api::Clear::Parent => spec.parent = None,
            api::Clear::Flow => spec.flow = None,
            api::Clear::Agent => spec.agent = None,
        }
    }
    spec.check_bounds().map_err(|error| problems::bad_spec(&error))?;
    Ok(spec)
}

/// The tasks a run is about: those asked for and what they still need. All, if nothing was asked for.
pub(crate) fn resolve_run_tasks(
    reader: Option<&StoreReader>,
    asked: &[api::WireTaskId],
) -> Result<Vec<TaskId>, Problem> {
    let mut chosen = BTreeSet::new();
    let mut open: Vec<TaskId> = asked.iter().copied().map(conversions::model_task).collect();
    let Some(reader) = reader else {
        return match open.pop() {
            Some(id) => Err(problems::unknown_task(id)),
            None => Ok(Vec::new()),
        };
    };
    while let Some(id) = open.pop() {
        if reader.row(id).map_err(|error| problems::from_store_error(&error))?.is_none() {
            return Err(problems::unknown_task(id));
        }
        if chosen.insert(id) {
            open.extend(reader.unmet(id).map_err(|error| problems::from_store_error(&error))?);
        }
    }
    Ok(chosen.into_iter().collect())
}

/// Whether a fact is one of those that end a task without landing.
pub(crate) fn is_failure(event: &Event) -> bool {
    match event {
        Event::Ended(ending) => match ending.kind {
            landfall_engine::model::EndKind::Failed
            | landfall_engine::model::EndKind::Timeout
            | landfall_engine::model::EndKind::Blocked => true,
            landfall_engine::model::EndKind::Done | landfall_engine::model::EndKind::Cancelled => false,
        },
        Event::Left { to: landfall_engine::model::EdgeTarget::Stop, .. } => true,
        _ => false,
    }
}

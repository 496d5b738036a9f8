//! Loops: a session of a client has a module's task worked on, within limits of its own.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use landfall_api::{self as api, Problem, ProblemCode};
use landfall_engine::EngineRequest;
use landfall_engine::model::auto::{AgentLoop, LoopEndReason, LoopState};
use landfall_engine::model::stride::current_agent_step;
use landfall_engine::model::{AttemptPhase, EndCode, EndKind, Task, TaskId, TaskState};
use landfall_engine::store::StoreReader;
use landfall_trackers::modules::folder::{FolderError, find_at};
use landfall_trackers::modules::spec::{ModuleTaskError, find_unmet_needs};
use landfall_trackers::modules::{self, Metadata, ModuleFolderSnapshot, ModuleSpec, ModuleStatus};

use crate::project::command_handler::CommandHandler;
use crate::project::conversions::TaskRelations;
use crate::project::place::ProjectLocation;
use crate::project::query_context::Query;
use crate::project::{clock, conversions, problems};
use crate::query::backlog;
use crate::query::tasks::why_sentence;

const ITERATIONS_MAX: u32 = 10_000; // nobody waits for more
const MINUTES_MAX: u32 = 100 * 24 * 60;
const SESSION_CHARS_MAX: usize = 200;

impl CommandHandler<'_> {
    /// Begins a loop; the task of the module is made if there is none.
    pub fn start_loop(&self, asked: api::LoopAsked) -> Result<Box<api::LoopLine>, Problem> {
        let api::LoopAsked { session, dir, iterations, minutes, flow } = asked;
        check_session(&session)?;
        for (name, number, max) in
            [("iterations", iterations, ITERATIONS_MAX), ("minutes", minutes, MINUTES_MAX)]
        {
            if !(1..=max).contains(&number) {
                return Err(bad_input(format!("{number} is no number of {name}; 1 to {max} are")));
            }
        }
        let place = locate_module(self.place, &dir)?;
        let module = place.shown_path();
        let seen = modules::read(&place).map_err(|error| unreadable_module_problem(&module, &error))?;
        let wanted = modules::read_wanted_task(&seen).map_err(|error| not_a_task_problem(&module, &error))?;
        let known = backlog::tasks_by_source(self.place)?;
        let task = match known.get(&wanted.spec.source) {
            Some(task) => self.find_task(conversions::model_task(*task))?,
            None => None,
        };
        self.check_module(&seen, &wanted, task.as_ref())?;
        let mut spec = wanted.spec;
        if let Some(flow) = &flow {
            spec.flow = Some(flow.clone());
        }
        let root = module.rsplit_once('/').map(|(root, _)| root).unwrap_or_default();
        for need in &wanted.needs {
            if let Some(task) = known.get(&format!("module:{root}/{}", need.module)) {
                spec.needs.insert(conversions::model_task(*task));
            }
        }
        let position = crate::command::modules::find_imported_progress(self.place, &spec.source)?;
        let asked = landfall_engine::LoopRequest {
            session: session.clone(),
            module,
            spec,
            flow,
            position,
            iterations_max: iterations,
            minutes_max: minutes,
        };
        self.request_tasks(EngineRequest::LoopStart(Box::new(asked)))
            .map_err(|problem| self.name_holding_folder(problem))?;
        self.find_loop_line(&session)
    }

    /// Ends the loop of a session, once what is under way is finished.
    pub fn stop_loop(&self, asked: &api::LoopOf) -> Result<Box<api::LoopLine>, Problem> {
        self.request_tasks(EngineRequest::LoopStop { session: asked.session.clone() })?;
        self.find_loop_line(&asked.session)
    }

    /// Names the folder of the loop that is in the way as clients do.
    fn name_holding_folder(&self, mut problem: Problem) -> Problem {
        let module = problem.context.get("module").and_then(|it| it.as_str());
        if let Some(dir) = module.map(|module| self.place.root.join(module).display().to_string()) {
            problem.context["task_dir"] = dir.into();
        }
        problem
    }

    fn find_loop_line(&self, session: &str) -> Result<Box<api::LoopLine>, Problem> {
        let asked = api::LoopsAsked { session: Some(session.to_owned()), ..api::LoopsAsked::default() };
        let list = list_loops(&self.query(), &asked)?.loops;
        let missing = || Problem::new(ProblemCode::Internal, "the loop is not there after it was written");
        list.into_iter().next().map(Box::new).ok_or_else(missing)
    }

    fn find_task(&self, id: TaskId) -> Result<Option<Task>, Problem> {
        let Some(reader) = self.place.open_reader()? else { return Ok(None) };
        reader.task(id).map_err(|error| problems::from_store_error(&error))
    }

    /// Whether a module can be worked on, before there is a task that says so itself.
    fn check_module(
        &self,
        seen: &ModuleFolderSnapshot,
        wanted: &ModuleSpec,
        task: Option<&Task>,
    ) -> Result<(), Problem> {
        let module = seen.place.shown_path();
        let not_now = |what: String| Problem::new(ProblemCode::NotNow, what);
        if wanted.spec.draft {
            return Err(not_now(format!("`{module}` has no objective yet"))
                .with_hint(format!("fill `{module}/.target.md` first")));
        }
        // Until its task has begun, the folder says how it stands; after that it shows the task.
        let is_begun = task.is_some_and(|task| task.attempt.0 > 0 || task.is_over());
        if !is_begun && wanted.status == ModuleStatus::Blocked {
            let reason =
                seen.metadata.as_ref().and_then(|it| it.as_ref().ok()).and_then(Metadata::blocked_reason);
            let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            return Err(not_now(format!("`{module}` is blocked{because}")).with_hint(
                "see to the reason, then set its `status` to the one it had before, or to `planning`",
            ));
        }
        if let Some(task) = task
            && let TaskState::Ended(ending) = &task.state
            && ending.kind == EndKind::Blocked
            && ending.code != EndCode::EmptyTarget
        {
            let why = why_sentence(task, &TaskRelations::default());
            let hint = format!("see to the reason, then `landfall retry {}` continues it", task.id);
            let message = format!("`{module}` cannot be started: {}", why.trim_end_matches('.'));
            return Err(not_now(message).with_hint(hint));
        }
        if task.is_none()
            && matches!(
                wanted.status,
                ModuleStatus::Complete | ModuleStatus::Satisfied | ModuleStatus::Cancelled
            )
        {
            return Err(not_now(format!("`{module}` is {}; there is nothing left to do", wanted.status))
                .with_hint("set its status back if more is wanted"));
        }
        let root = seen.place.path.parent().unwrap_or(Path::new(""));
        let status = |need: &str| {
            let folder = self.place.root.join(root).join(need);
            let found = find_at(&self.place.root, &folder).ok()?;
            let seen = modules::read(found.modules.first()?).ok()?;
            modules::read_wanted_task(&seen).ok().map(|wanted| wanted.status)
        };
        let has_task = backlog::tasks_by_source(self.place)?;
        let shown = |need: &str| format!("module:{}/{need}", root.display());
        let missing = find_unmet_needs(&wanted.needs, status);
        let missing = missing.iter().filter(|(need, _)| !has_task.contains_key(&shown(&need.module)));
        let missing: Vec<&str> = missing.map(|(need, _)| need.module.as_str()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(not_now(format!("`{module}` needs what is not done: {}", missing.join(", ")))
            .with_hint("begin with those"))
    }
}

/// Loops, newest first.
pub(crate) fn list_loops(look: &Query<'_>, asked: &api::LoopsAsked) -> Result<api::LoopList, Problem> {
    let module = asked.dir.as_deref().map(|dir| module_name(look.place, dir)).transpose()?;
    let Some(reader) = look.place.open_reader()? else { return Ok(api::LoopList::default()) };
    let loops = reader.loops().map_err(|error| problems::from_store_error(&error))?;
    let wanted = |it: &&AgentLoop| {
        asked.session.as_ref().is_none_or(|session| *session == it.session)
            && module.as_ref().is_none_or(|module| *module == it.module)
            && asked.task.is_none_or(|task| conversions::model_task(task) == it.task)
    };
    let mut lines = Vec::new();
    for it in loops.all_loops().iter().rev().filter(wanted) {
        let task = reader.task(it.task).map_err(|error| problems::from_store_error(&error))?;
        lines.push(to_loop_line(look, it, task.as_ref()));
    }
    Ok(api::LoopList { loops: lines })
}

/// The task of the module at a path.
pub(crate) fn task_of_module(place: &ProjectLocation, dir: &str) -> Result<Option<api::WireTaskId>, Problem> {
    let module = module_name(place, dir)?;
    Ok(backlog::tasks_by_source(place)?.remove(&format!("module:{module}")))
}

/// The tasks whose loops are to go on, or to come to an end, and that could by themselves.
pub(crate) fn tasks_to_drive(reader: &StoreReader) -> Result<Vec<api::WireTaskId>, Problem> {
    let loops = reader.loops().map_err(|error| problems::from_store_error(&error))?;
    let open: BTreeSet<TaskId> =
        loops.all_loops().iter().filter(|it| it.over.is_none()).map(|it| it.task).collect();
    let mut tasks = Vec::new();
    for id in open {
        let task = reader.task(id).map_err(|error| problems::from_store_error(&error))?;
        if task.is_some_and(|task| task.continues_by_itself()) {
            tasks.push(conversions::task_id(id));
        }
    }
    Ok(tasks)
}

fn to_loop_line(look: &Query<'_>, it: &AgentLoop, task: Option<&Task>) -> api::LoopLine {
    let going = task.filter(|_| it.over.is_none());
    // Time in which nobody drives does not count; what an agent works meanwhile is known when it is adopted.
    let under_way = going.filter(|_| look.engine.is_alive()).and_then(|task| match &task.state {
        TaskState::Active { doing: AttemptPhase::Running { since, .. }, .. } => {
            u64::try_from(clock::now_ms() - since.0).ok()
        }
        _ => None,
    });
    let status = match it.loop_state() {
        LoopState::Running => api::LoopStatus::Running,
        LoopState::Stopping => api::LoopStatus::Stopping,
        LoopState::Stopped => api::LoopStatus::Stopped,
        LoopState::Failed => api::LoopStatus::Failed,
    };
    let text = match (&it.over, going) {
        (None, Some(task)) if it.stop.is_some() => {
            format!("{} finishes what is under way, and stops.", task.id)
        }
        (None, Some(task)) => why_sentence(task, &TaskRelations::default()),
        (None, None) => String::new(),
        (Some(over), _) => match over.why {
            LoopEndReason::Person => "It was stopped; its work is kept.".to_owned(),
            LoopEndReason::Task(..) => {
                task.map(|task| why_sentence(task, &TaskRelations::default())).unwrap_or_default()
            }
        },
    };
    api::LoopLine {
        session: it.session.clone(),
        dir: look.place.root.join(&it.module).display().to_string(),
        task: conversions::task_id(it.task),
        status,
        holds: it.holds_session(),
        iterations: it.iterations,
        iterations_max: it.iterations_max,
        elapsed_ms: it.spent_ms + under_way.unwrap_or(0),
        minutes_max: it.minutes_max,
        step: going.and_then(|task| task.step()).map(|step| step.as_str().to_owned()),
        agent_step: going.and_then(current_agent_step),
        started_ms: it.started.0,
        signal_ms: it.signal.map(|at| at.0),
        recoveries_step: it.stalls_step,
        recoveries: it.stalls,
        stalls: it.stalls_in_row,
        quota_since_ms: it.quota_since.map(|at| at.0),
        restarts: it.restarts,
        ended_ms: it.over.map(|over| over.at.0),
        reason: it.over.map(|over| over.why.wire_name().to_owned()),
        text,
    }
}

fn check_session(session: &str) -> Result<(), Problem> {
    let fits = !session.is_empty()
        && session.chars().count() <= SESSION_CHARS_MAX
        && session.chars().all(|char| !char.is_control() && !char.is_whitespace() && char != '/');
    if fits {
        return Ok(());
    }
    Err(bad_input("that is no name for a session".to_owned())
        .with_hint(format!("1 to {SESSION_CHARS_MAX} visible characters, without `/`")))
}

/// The module at a path that a client named.
fn locate_module(place: &ProjectLocation, dir: &str) -> Result<modules::ModuleLocation, Problem> {
    let name = module_name(place, dir)?;
    let found = find_at(&place.root, &place.root.join(&name)).map_err(|error| folder_problem(dir, &error))?;
    let here = found.modules.into_iter().find(|it| it.path == Path::new(&name));
    here.ok_or_else(|| {
        let why = found.passed.iter().find(|it| it.path == Path::new(&name)).map(|it| it.why.as_str());
        let why = why.unwrap_or("there is no metadata and no target in it");
        bad_input(format!("`{}` is no module: {why}", truncate_dir(dir)))
            .with_hint("modules are below `TASK/` and `AiTasks/`; a notebook's folder ends in `/.working`")
    })
}

/// The folder below the project, as modules are called there.
fn module_name(place: &ProjectLocation, dir: &str) -> Result<String, Problem> {
    let outside = || {
        bad_input(format!("`{}` is not inside the project", truncate_dir(dir)))
            .with_hint("the server keeps one project; the module's folder is below its root")
    };
    if dir.is_empty() || dir.contains('\0') {
        return Err(bad_input("no folder is named".to_owned()).with_hint("name the module's folder"));
    }
    let plain: PathBuf = place.root.join(dir).components().collect(); // without `.` and slashes at the end
    if plain.components().any(|part| part == Component::ParentDir) {
        return Err(outside());
    }
    // Links above the project are the machine's business; below it the modules look after them.
    let below = match plain.strip_prefix(&place.root) {
        Ok(below) => below.to_owned(),
        Err(_) => {
            let real = std::fs::canonicalize(&plain).map_err(|_| outside())?;
            real.strip_prefix(&place.root).map_err(|_| outside())?.to_owned()
        }
    };
    if below.as_os_str().is_empty() {
        return Err(bad_input(format!("`{}` is the project itself", truncate_dir(dir)))
            .with_hint("name a module below it"));
    }
    let notebook = below.starts_with(".worktrees") && below.components().count() == 2;
    let below = if notebook { below.join(modules::folder::WORKING) } else { below };
    Ok(below.display().to_string())
}

fn folder_problem(dir: &str, error: &FolderError) -> Problem {
    match error {
        FolderError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            Problem::new(ProblemCode::NotFound, format!("there is no folder `{}`", truncate_dir(dir)))
                .with_hint("make the module first")
        }
        FolderError::Io { source, .. } => bad_input(format!("look into `{}`: {source}", truncate_dir(dir))),
        FolderError::Outside(_) | FolderError::Name(_) | FolderError::Link(_) | FolderError::File(_) => {
            bad_input(error.to_string())
        }
    }
}

fn unreadable_module_problem(module: &str, error: &FolderError) -> Problem {
    bad_input(format!("`{module}` cannot be read: {error}"))
}

fn not_a_task_problem(module: &str, error: &ModuleTaskError) -> Problem {
    bad_input(format!("`{module}` is no task: {error}")).with_hint("mend its metadata; nothing was changed")
}

fn bad_input(what: String) -> Problem {
    Problem::new(ProblemCode::BadInput, what)
}

fn truncate_dir(dir: &str) -> String {
    const CHARS_MAX: usize = 300; // a path of a person is shorter
    dir.chars().take(CHARS_MAX).collect()
}

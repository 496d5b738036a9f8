//! Task modules: folders of the project that hold tasks as files, read for an import, made and mended.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::error::Error;
use std::path::Path;

use landfall_api::import::{Format, ImportFile, ImportItem, ImportLink, ImportPlace as At, LeftOutCounts};
use landfall_api::{ModuleMade, ModuleMended, ModulesMended, NewTask, Problem, ProblemCode};
use landfall_engine::host::git::{BranchName, CheckoutHead, Git, Repo};
use landfall_engine::model::plan::PlanOutline;
use landfall_engine::{ImportedProgress, papers};
use landfall_trackers::modules::folder::{FolderError, ModuleKind, PLAN, find_at, find_modules};
use landfall_trackers::modules::hooks::ModuleHooks;
use landfall_trackers::modules::init::{self, InitError, ModuleInitRequest};
use landfall_trackers::modules::lock::{Lock, ModuleLockError};
use landfall_trackers::modules::mend::{self, RepairOrigin};
use landfall_trackers::modules::spec::ModuleTaskError;
use landfall_trackers::modules::write::{FILE_BYTES_MAX, FileError, read_below};
use landfall_trackers::modules::{
    ModuleFolderSnapshot, ModuleLocation as Module, ModuleSpec, ModuleStatus, apply, read, read_wanted_task,
};

use crate::project::place::ProjectLocation;
use crate::project::{clock, problems};

/// A module that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleRequest {
    /// Its folder.
    pub name: String,
    /// What people call it.
    pub title: Option<String>,
    /// Words on it.
    pub tags: Vec<String>,
    /// Whether a worktree is set aside for it.
    pub worktree: bool,
    /// Whether it lies below `TASK/`.
    pub old: bool,
    /// Whether its files are committed.
    pub commit: bool,
}

/// Makes a module.
pub(crate) fn init_module(place: &ProjectLocation, asked: &ModuleRequest) -> Result<ModuleMade, Problem> {
    let ask = ModuleInitRequest {
        name: asked.name.clone(),
        title: asked.title.clone(),
        tags: asked.tags.clone(),
        worktree: asked.worktree,
        sort: if asked.old { ModuleKind::Task } else { ModuleKind::AiTasks },
    };
    let refused = |error: InitError| {
        let problem = Problem::new(ProblemCode::BadInput, error_chain(&error));
        match error.hint() {
            Some(hint) => problem.with_hint(hint),
            None => problem,
        }
    };
    let mut around = init::read_init_context(&place.root, &ask).map_err(refused)?;
    let git = Git::find_installed().map_err(|error| problems::from_git_error(&error))?;
    let repo = Repo::discover(&git, &place.root).map_err(problems::from_repo_problem)?;
    let branch = BranchName::new(&ask.branch_name())
        .map_err(|error| Problem::new(ProblemCode::BadInput, error.to_string()))?;
    around.branch_exists =
        repo.branch_tip(&branch).map_err(|error| problems::from_git_error(&error))?.is_some();
    if asked.commit {
        around.dirty = repo.list_uncommitted().map_err(|error| problems::from_git_error(&error))?;
    }
    let writes = init::plan_init(&ask, &around, current_timestamp()).map_err(refused)?;
    let applied = apply(&place.root, &writes).map_err(|error| file_problem(&error))?;
    if let Some(path) = applied.refused.first() {
        let message = format!("`{path}` was changed by somebody else just now");
        return Err(Problem::new(ProblemCode::NotNow, message).with_hint("look at it, then try again"));
    }
    let root = if asked.old { "TASK" } else { "AiTasks" };
    let files: Vec<String> = writes.iter().map(|write| write.path().to_owned()).collect();
    let commit = match asked.commit {
        false => None,
        true => {
            let title = ask.title.as_deref().unwrap_or(&ask.name);
            let message = format!("ai-cli-task({}):init {title}", ask.name);
            let commit = repo.commit_files(&files, &message).map_err(|error| {
                problems::from_git_error(&error).with_hint("the files are there; commit them yourself")
            })?;
            Some(commit.as_str().to_owned())
        }
    };
    Ok(ModuleMade {
        module: format!("{root}/{}", ask.name),
        files,
        commit,
        branch: ask.branch_name(),
        worktree: ask.worktree_path(),
    })
}

/// Mends the modules at a path, or all there are.
pub(crate) fn repair_modules(place: &ProjectLocation, path: Option<&Path>) -> Result<ModulesMended, Problem> {
    let found = match path {
        Some(path) => find_at(&place.root, path),
        None => find_modules(&place.root),
    };
    let found = found.map_err(|error| folder_problem(&error))?;
    let (mut all, mut fine) = (Vec::new(), 0);
    for module in &found.modules {
        let seen = read(module).map_err(|error| folder_problem(&error))?;
        let Some(wrong) = seen.problems().first().map(ToString::to_string) else {
            fine += 1;
            continue;
        };
        let _lock = Lock::take(&module.to_path(), "landfall", current_timestamp())
            .map_err(|error| locked_module_problem(module, &error))?;
        let mended = mend::repair_folder_metadata(
            &seen,
            |path| read_committed_file(place, module, path),
            current_timestamp(),
        )
        .map_err(|error| file_problem(&error))?;
        let Some(mended) = mended else {
            fine += 1; // somebody wrote it anew meanwhile
            continue;
        };
        let below = |path: &str| format!("{}/{path}", module.shown_path());
        all.push(ModuleMended {
            module: module.shown_path(),
            wrong,
            done: match &mended.origin {
                RepairOrigin::Fields(fields) => format!("mended {}", fields.join(", ")),
                RepairOrigin::Head => "restored from the last commit".to_owned(),
                RepairOrigin::Rebuilt(_) => "built anew as a draft".to_owned(),
            },
            copy: below(&mended.copy),
            note: below(&mended.note),
        });
    }
    Ok(ModulesMended { mended: all, fine })
}

/// The bytes of a file in the last commit: of the project, or of the worktree that is a notebook's. Whatever stands in the
/// way: then there is none.
fn read_committed_file(place: &ProjectLocation, module: &Module, path: &str) -> Option<Vec<u8>> {
    let worktree = module.path.parent().filter(|_| module.sort == ModuleKind::Notebook);
    let root = worktree.map_or_else(|| place.root.clone(), |worktree| place.root.join(worktree));
    let path = match worktree {
        Some(worktree) => Path::new(path).strip_prefix(worktree).ok()?.to_str()?,
        None => path,
    };
    let git = Git::find_installed().ok()?;
    let repo = Repo::discover(&git, &root).ok()?;
    let tip = match repo.read_head().ok()? {
        CheckoutHead::Branch { tip, .. } | CheckoutHead::Detached { tip } => tip,
        CheckoutHead::Unborn { .. } => return None,
    };
    let max = usize::try_from(FILE_BYTES_MAX).unwrap_or(usize::MAX);
    repo.read_file(&tip, path, max).ok()?
}

/// The modules at a path, and those they need, as a list to import.
pub(crate) fn list_importable_modules(place: &ProjectLocation, path: &str) -> Result<ImportFile, Problem> {
    let asked = find_at(&place.root, Path::new(path)).map_err(|error| folder_problem(&error))?;
    let all = find_modules(&place.root).map_err(|error| folder_problem(&error))?;
    let mut list = ImportFile {
        file: path.to_owned(),
        format: Format::Modules,
        items: Vec::new(),
        over: BTreeSet::new(),
        left_out: LeftOutCounts::default(),
    };
    for passed in &asked.passed {
        list.left_out.add(&format!("{}: {}", passed.path.display(), passed.why));
    }
    if asked.modules.is_empty() {
        return Err(Problem::new(ProblemCode::BadInput, format!("there are no task modules in `{path}`"))
            .with_hint("`landfall project module init NAME` creates one"));
    }
    for file in hook_files(&asked.modules) {
        if let Some(refused) = refuse_hooks(place, &file) {
            list.left_out.add(&refused);
        }
    }
    let mut open: VecDeque<Module> = asked.modules.into();
    let mut known: BTreeMap<String, Option<ModuleStatus>> = BTreeMap::new();
    while let Some(module) = open.pop_front() {
        let id = module.shown_path();
        if known.contains_key(&id) {
            continue;
        }
        let task = read_module_spec(&module)?;
        known.insert(id.clone(), Some(task.status));
        for warning in &task.warnings {
            list.left_out.add(warning);
        }
        if task.status.is_over() {
            list.left_out.add(&format!("module that is {}", task.status));
            list.over.insert(id);
            continue;
        }
        let mut needs = Vec::new();
        for need in &task.needs {
            // A module of the same root is meant before one of another.
            let same = |it: &&Module| it.name == need.module && it.sort == module.sort;
            let other = all
                .modules
                .iter()
                .find(same)
                .or_else(|| all.modules.iter().find(|it| it.name == need.module));
            let Some(other) = other else {
                let message = format!("{id}: it needs the module `{}`, which is not there", need.module);
                return Err(Problem::new(ProblemCode::BadInput, message)
                    .with_hint("mend `depends_on`; nothing was added"));
            };
            if need.is_met_by(read_module_spec(other)?.status) {
                list.left_out.add("need that is met already");
                continue;
            }
            if need
                .least
                .is_some_and(|least| !matches!(least, ModuleStatus::Complete | ModuleStatus::Satisfied))
            {
                list.left_out.add("minimum status of a need: the task waits until it is done");
            }
            needs.push(ImportLink { to: other.shown_path(), place: At::Path(id.clone()) });
            open.push_back(other.clone());
        }
        list.items.push(to_import_item(&id, &task, needs));
    }
    Ok(list)
}

/// Where the modules and their roots may have commands of their own.
fn hook_files(modules: &[Module]) -> BTreeSet<String> {
    let folders = modules.iter().flat_map(|module| [Some(module.path.as_path()), module.path.parent()]);
    folders.flatten().map(|folder| folder.join(HOOKS_FILE).display().to_string()).collect()
}

/// Commands of a module's folder are not run: whoever wrote the repository would run them on this machine.
fn refuse_hooks(place: &ProjectLocation, file: &str) -> Option<String> {
    let bytes = read_below(&place.root, file).ok()??;
    let hooks = ModuleHooks::read(file, &String::from_utf8_lossy(&bytes));
    let statuses: Vec<&str> = hooks.commands.keys().map(String::as_str).collect();
    (!statuses.is_empty()).then(|| {
        format!(
            "{file}: its commands for {} do not run; put them into `[hooks]` of landfall.toml and allow them with `landfall trust`",
            statuses.join(", ")
        )
    })
}

const HOOKS_FILE: &str = ".hooks.md";

fn to_import_item(id: &str, task: &ModuleSpec, needs: Vec<ImportLink>) -> ImportItem {
    let spec = &task.spec;
    let new = NewTask {
        title: spec.title.clone(),
        body: spec.body.clone(),
        criteria: spec.criteria.clone(),
        tags: spec.tags.iter().map(ToString::to_string).collect(),
        flow: spec.flow.clone(),
        // What is blocked waits for a person, here as there.
        draft: spec.draft || task.status == ModuleStatus::Blocked,
        ..NewTask::default()
    };
    ImportItem { id: id.to_owned(), place: At::Path(id.to_owned()), task: new, needs, parent: None }
}

fn read_module_spec(module: &Module) -> Result<ModuleSpec, Problem> {
    let seen: ModuleFolderSnapshot = read(module).map_err(|error| folder_problem(&error))?;
    read_wanted_task(&seen).map_err(|error| {
        let problem = Problem::new(ProblemCode::BadInput, error.to_string());
        match error {
            ModuleTaskError::Unread(_) => problem.with_hint(format!(
                "mend it by hand, or `landfall project module mend {}`; nothing was added",
                module.shown_path()
            )),
            ModuleTaskError::Spec(_) => problem.with_hint("nothing was added"),
        }
    })
}

/// Where the task of a module stands as its folder says; none: at the beginning, or it is of no module. A notebook begins
/// with its objective, which a person has to confirm here.
pub(crate) fn find_imported_progress(
    place: &ProjectLocation,
    source: &str,
) -> Result<Option<ImportedProgress>, Problem> {
    let Some(path) = source.strip_prefix("module:") else { return Ok(None) };
    let Ok(found) = find_at(&place.root, Path::new(path)) else { return Ok(None) };
    let Some(module) = found.modules.iter().find(|it| it.sort != ModuleKind::Notebook) else {
        return Ok(None);
    };
    let Ok(seen) = read(module) else { return Ok(None) };
    let (Ok(task), Some(Ok(metadata))) = (read_wanted_task(&seen), &seen.metadata) else { return Ok(None) };
    if matches!(task.status, ModuleStatus::Draft | ModuleStatus::Blocked) || task.status.is_over() {
        return Ok(None);
    }
    let plan = match seen.file_text(PLAN).filter(|_| seen.has_plan()) {
        None => None,
        Some(text) => {
            let folder = place.folder.papers_path();
            let paper = papers::store_paper(&folder, &text)
                .map_err(|error| problems::from_io_error("write into", &folder, &error))?;
            Some((paper, PlanOutline::read(&text)))
        }
    };
    let (entry, done, branch) = (task.entry, task.completed_steps, metadata.module.branch.clone());
    Ok(Some(ImportedProgress { entry, plan, done, branch, work: None }))
}

/// Whether a person may cancel the task of a module: what its own session holds is taken over, what another holds that lives
/// is respected.
pub(crate) fn check_may_cancel(
    place: &ProjectLocation,
    source: &str,
    session: Option<&str>,
) -> Result<(), Problem> {
    let Some(path) = source.strip_prefix("module:") else { return Ok(()) };
    let Ok(found) = find_at(&place.root, Path::new(path)) else { return Ok(()) };
    let Some(module) = found.modules.first() else { return Ok(()) };
    let Some(holder) = Lock::find_holder(&module.to_path(), current_timestamp()) else { return Ok(()) };
    if holder.session == "landfall" {
        return Ok(()); // the engine writes, for a moment
    }
    match session.filter(|session| *session == holder.session) {
        Some(session) => Lock::take_over(&module.to_path(), session, current_timestamp()).map(drop),
        None => Err(ModuleLockError::Held(holder)),
    }
    .map_err(|error| locked_module_problem(module, &error))
}

fn current_timestamp() -> landfall_engine::model::Timestamp {
    landfall_engine::model::Timestamp(clock::now_ms())
}

fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(error) = below {
        text += &format!(": {error}");
        below = error.source();
    }
    text
}

fn folder_problem(error: &FolderError) -> Problem {
    match error {
        FolderError::File(error) => file_problem(error),
        FolderError::Io { .. } | FolderError::Outside(_) | FolderError::Name(_) | FolderError::Link(_) => {
            Problem::new(ProblemCode::BadInput, error_chain(error))
                .with_hint("name AiTasks, TASK, one module, or a notebook's worktree")
        }
    }
}

fn file_problem(error: &FileError) -> Problem {
    match error {
        FileError::Outside(_) | FileError::Link(_) | FileError::Large { .. } => {
            Problem::new(ProblemCode::BadInput, error_chain(error))
        }
        FileError::Io { source, .. } => {
            let code = match source.kind() {
                std::io::ErrorKind::StorageFull => ProblemCode::DiskFull,
                _ => ProblemCode::ReadOnly,
            };
            Problem::new(code, error_chain(error))
        }
    }
}

fn locked_module_problem(module: &Module, error: &ModuleLockError) -> Problem {
    let problem =
        Problem::new(ProblemCode::NotNow, format!("{}: {}", module.shown_path(), error_chain(error)));
    problem.with_hint("wait until whoever works there is done")
}

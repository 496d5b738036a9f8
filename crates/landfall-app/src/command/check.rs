//! Runs the checks of a project for a person: on its base, on the work of a task, or on the base as it will be with new settings.

use std::time::Duration;

use landfall_api::{self as api, Problem, ProblemCode, ProjectChecked};
use landfall_engine::EngineRequest;
use landfall_engine::exchange::landed_base;
use landfall_engine::host::clock::{Clock as _, SystemClock};
use landfall_engine::host::git::{BranchName, Git, MergeResult, Oid, Repo, Signature, Store};
use landfall_engine::model::denial::settings_that_allow;
use landfall_engine::model::gate::{CommandResult, GateReport};
use landfall_engine::model::{EngineEvent, Fact, JournalEntry, TaskId};
use landfall_engine::project_check::{
    CheckError, CheckRequest, CheckWatcher, commit_with_file, expected_report, run_checks,
};
use landfall_engine::settings::{Settings, VerifyCommand};
use landfall_engine::{Engine, OpenError, engine};

use crate::project::engine_at::EngineLocation;
use crate::project::open_engine;
use crate::project::place::ProjectLocation;
use crate::project::{conversions, problems, trust};

/// What to check.
#[derive(Debug, Clone, Default)]
pub struct CheckOptions {
    /// The work of this task; otherwise the base.
    pub task: Option<api::WireTaskId>,
    /// Outside of the sandbox, as the user would.
    pub is_unconfined: bool,
    /// How long all commands together may take, besides their own limits.
    pub limit: Option<Duration>,
    /// Whether a pass that is known already is enough.
    pub may_be_known: bool,
    /// Whether nothing may be written but the checkout: neither the journal nor repairs.
    pub is_look: bool,
    /// The base as it will be once `landfall.toml` is committed as it is.
    pub with_own_settings: bool,
}

/// Who watches the checks run, in words of the wire.
pub trait CheckView {
    /// A check begins: its name and its command line.
    fn command_started(&mut self, name: &str, run: &str);
    /// It has written this line.
    fn line_written(&mut self, line: &str);
    /// It has ended.
    fn command_ended(&mut self, result: &api::CommandReport);
    /// Whether the user wants no more of it.
    fn is_stopped(&self) -> bool;
}

/// Runs the checks. None: the user stopped them.
pub(crate) fn check_project(
    place: &ProjectLocation,
    asked: &CheckOptions,
    view: &mut dyn CheckView,
) -> Result<Option<ProjectChecked>, Problem> {
    let settings = engine::load_settings(&place.root).map_err(|error| problems::open(&error))?;
    trust::check_trust(place, &settings)?;
    // Without an engine, one is opened for a moment: it makes the state, and knows what has passed.
    let engine = match EngineLocation::locate(place) {
        EngineLocation::Nowhere if asked.is_look => None,
        EngineLocation::Nowhere => match open_engine::open(place, "landfall check") {
            Ok(engine) => Some(engine),
            Err(OpenError::Lock(_)) => None, // another command writes: the checks need none of it
            Err(error) => return Err(problems::open(&error)),
        },
        EngineLocation::Here { .. } | EngineLocation::There { .. } | EngineLocation::Resting { .. } => None,
    };
    let ground = CheckContext::for_project(place, asked)?;
    let (program, environment) = (open_engine::own_executable(), place.engine_environment());
    let request = CheckRequest {
        settings: &settings,
        root: &place.root,
        folder: &place.folder,
        store: &ground.store,
        program: &program,
        environment: &environment,
        base: &ground.rules,
        commit: &ground.commit,
        is_unconfined: asked.is_unconfined,
        limit: asked.limit,
    };
    if asked.may_be_known {
        let expected = expected_report(&request).map_err(|error| check_problem(&error))?;
        if let Some(known) = find_known_pass(place, engine.as_ref(), &expected)? {
            return Ok(Some(to_project_checked(&ground, asked, &settings, &known)));
        }
    }
    drop(engine); // checks take long, and other commands want its lock
    let report = match run_checks(&request, &mut CheckRelay(view)) {
        Ok(report) => report,
        Err(CheckError::Stopped) => return Ok(None),
        Err(error) => return Err(check_problem(&error)),
    };
    if asked.task.is_none() && !asked.is_unconfined && !asked.is_look {
        record_measurement(place, &report);
    }
    Ok(Some(to_project_checked(&ground, asked, &settings, &report)))
}

/// A pass that is known of what would be checked. Without an engine the last look at the base counts.
fn find_known_pass(
    place: &ProjectLocation,
    engine: Option<&Engine>,
    expected: &GateReport,
) -> Result<Option<GateReport>, Problem> {
    if let Some(engine) = engine {
        return Ok(engine.site().known_pass(expected));
    }
    let Some(reader) = place.open_reader()? else { return Ok(None) };
    let newest = reader.latest(&["measured"]).map_err(|error| problems::from_store_error(&error))?;
    let Some((_, JournalEntry { fact: Fact::Engine(EngineEvent::Measured { report }), .. })) = newest else {
        return Ok(None);
    };
    let is_same = report.tree == expected.tree
        && report.config == expected.config
        && report.environment == expected.environment;
    Ok((is_same && report.outcome().is_green()).then_some(GateReport { reused: true, ..report }))
}

/// Writes down what was seen of the base, so that a run need not look again. While an engine runs it looks for itself.
fn record_measurement(place: &ProjectLocation, report: &GateReport) {
    if report.is_empty() {
        return;
    }
    if let Ok(mut engine) = open_engine::open(place, "landfall check") {
        let _ = engine.handle_single_request(EngineRequest::Measured(Box::new(report.clone()))); // what is not written is checked again by the run
    }
}

/// What is checked, and by which rules.
struct CheckContext {
    store: Store,
    branch: String,
    /// The commit whose rules count.
    rules: Oid,
    commit: Oid,
}

impl CheckContext {
    fn for_project(place: &ProjectLocation, asked: &CheckOptions) -> Result<Self, Problem> {
        let of = |error| problems::from_git_error(&error);
        let git = Git::find_installed().map_err(of)?;
        let repo = Repo::discover(&git, &place.root).map_err(problems::from_repo_problem)?;
        let branch = place.base_branch_or_empty();
        let name = BranchName::new(&branch).map_err(|_| problems::detached_head())?;
        let store = Store::open(&git, &place.folder.store_path(), &repo).map_err(of)?;
        if repo.branch_tip(&name).map_err(of)?.is_none() {
            return Err(problems::no_commits(&branch));
        }
        let theirs = store.import_branch(&repo, &name).map_err(of)?;
        let base = landed_base(&store, theirs).map_err(of)?;
        let (rules, commit) = match asked.task {
            Some(task) => {
                (base.clone(), merge_task_work(place, &store, &base, conversions::model_task(task))?)
            }
            None if asked.with_own_settings => {
                let text = place.settings_text().unwrap_or_default();
                let commit = commit_with_file(&store, &base, "landfall.toml", &text).map_err(of)?;
                let commit: Oid = commit.as_str().parse().expect("git has just made it");
                (commit.clone(), commit)
            }
            None => (base.clone(), base),
        };
        Ok(Self { store, branch, rules, commit })
    }
}

/// The work of a task, merged with the base: what would land.
fn merge_task_work(place: &ProjectLocation, store: &Store, base: &Oid, id: TaskId) -> Result<Oid, Problem> {
    let of = |error| problems::from_git_error(&error);
    let reader = place.open_reader()?.ok_or_else(|| problems::unknown_task(id))?;
    let task = reader
        .task(id)
        .map_err(|error| problems::from_store_error(&error))?
        .ok_or_else(|| problems::unknown_task(id))?;
    let head = match (&task.landed, &task.head) {
        (Some(landed), _) => &landed.commit,
        (None, Some(head)) => head,
        (None, None) => {
            return Err(Problem::new(ProblemCode::NotNow, format!("{id} has no work yet")).with_hint(
                format!("`landfall why {id}` shows its state; `landfall check` checks the base"),
            ));
        }
    };
    let head: Oid = head.as_str().parse().expect("commits in the journal came from git");
    if store.is_ancestor(&head, base).map_err(of)? {
        return Ok(head);
    }
    let tree = match store.merge_commits(base, &head).map_err(of)? {
        MergeResult::Clean { tree } => tree,
        MergeResult::Conflict { paths, .. } => {
            let files: Vec<String> =
                paths.iter().map(|path| String::from_utf8_lossy(&path.path).into_owned()).collect();
            let what = format!("the work of {id} conflicts with the base in {}", files.join(", "));
            return Err(Problem::new(ProblemCode::NotNow, what)
                .with_hint(format!("`landfall why {id}` says who resolves it")));
        }
    };
    let by = Signature::for_engine(SystemClock.now_ms());
    store
        .create_commit(&tree, &[base.clone(), head], &format!("{id} merged for a check\n"), &by, &by)
        .map_err(of)
}

fn to_project_checked(
    ground: &CheckContext,
    asked: &CheckOptions,
    settings: &Settings,
    report: &GateReport,
) -> ProjectChecked {
    let denied: Vec<_> = report.commands.iter().flat_map(|command| command.denied.clone()).collect();
    let gate = conversions::to_api_gate(report);
    let level = if asked.is_unconfined { "off" } else { settings.run.sandbox.word() };
    ProjectChecked {
        task: asked.task,
        branch: ground.branch.clone(),
        commit: gate.commit,
        tree: gate.tree,
        outcome: gate.outcome,
        commands: gate.commands,
        sandbox: level.to_owned(),
        reused: gate.reused,
        took_ms: gate.took_ms,
        allow: settings_that_allow(&denied),
    }
}

fn check_problem(error: &CheckError) -> Problem {
    match error {
        CheckError::Busy(error) => problems::lock(error),
        CheckError::Git(error) => problems::from_git_error(error),
        CheckError::Rules(what) => Problem::new(
            ProblemCode::SettingsBroken,
            format!("the settings on the base cannot be read: {what}"),
        )
        .with_hint("commit a landfall.toml that can be read: checks are read from the base branch"),
        CheckError::Stopped => Problem::new(ProblemCode::NotNow, "the checks were stopped"),
        CheckError::Machine { .. } => Problem::new(ProblemCode::Internal, error.to_string())
            .with_hint("`landfall doctor` says whether something is missing on this machine"),
    }
}

/// Turns what the engine says into words of the wire.
struct CheckRelay<'a>(&'a mut dyn CheckView);

impl CheckWatcher for CheckRelay<'_> {
    fn command_started(&mut self, command: &VerifyCommand) {
        self.0.command_started(&command.name, &command.run);
    }

    fn line_written(&mut self, line: &str) {
        self.0.line_written(line);
    }

    fn command_ended(&mut self, result: &CommandResult) {
        self.0.command_ended(&conversions::to_command_report(result));
    }

    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }
}

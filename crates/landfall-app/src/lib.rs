//! The application layer: what can be asked of a project, between the command line, the server and the engine.
//!
//! `service` answers requests about a project: each is either a `query`, answered from the tables, or a `command`,
//! carried out through the engine. `run` drives the project in this process, `serve` keeps it between runs.

mod command;
mod demo;
mod loop_console;
mod project;
mod query;
mod run;
mod serve;
mod service;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use landfall_api::{
    AgentsAsked, AgentsFound, HaulId, ModuleMade, ModulesMended, NewsLine, Problem, ProblemCode, Proposal,
    Service, TypedService as _, WireTaskId,
};
use landfall_engine::model::haul;

use command::{check, follow_issues, modules, propose, reconcile, verify};
use project::place::{self, ProjectLocation};
use project::{conversions, trust};
use query::{agents, certificate, sandbox_probes, terminal};
use run::{detach, remote};
use service::ProjectService;

pub use project::clock;
pub use query::run_text;
pub use run::run_handle;

use run_handle::{RunAsked, RunHandle};

pub use landfall_engine::host::user_file::{USER_FILE_BYTES_MAX, read_user_file, read_user_text};

pub use landfall_server::OPENAPI;

pub use certificate::check_certificate;
pub use check::{CheckOptions, CheckView};
pub use demo::Demo;
pub use detach::DetachedRun;
pub use landfall_engine::trust::TrustedBy;
pub use modules::ModuleRequest;
pub use propose::ProposeOptions;
pub use reconcile::points;
pub use sandbox_probes::{run_sandbox_attempts, sandbox_report};
pub use serve::{ProjectServer, ServeOptions};
pub use trust::TrustReport;

/// Which project is meant: the one around a folder, and which of its bases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectLocator {
    /// The folder.
    pub dir: PathBuf,
    /// The branch that work lands on; none for the project's own.
    pub base: Option<String>,
}

/// Where a project is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectCheckout {
    /// The root of its repository: where `landfall.toml` belongs.
    pub root: PathBuf,
    /// The branch HEAD is on: what `init` proposes to land on.
    pub branch: String,
}

/// Owns one agent process. Returns the exit code.
pub fn run_sitter(dir: &OsStr) -> u8 {
    landfall_engine::host::sitter::run_sitter(Path::new(dir))
}

/// The project at `at`.
pub fn find_project(at: &ProjectLocator) -> Result<ProjectCheckout, Problem> {
    let place = ProjectLocation::find(at)?;
    let branch = place::read_branch_from_git(&place)?;
    Ok(ProjectCheckout { root: place.root, branch })
}

/// Whoever answers for the project at `at`.
pub fn open_service(at: &ProjectLocator) -> Result<Box<dyn Service>, Problem> {
    Ok(Box::new(ProjectService::through_socket(ProjectLocation::find(at)?)))
}

/// The agents there are, with the profiles of the project at `at`, if there is one.
pub fn find_agents(at: &ProjectLocator, asked: AgentsAsked, probe: bool) -> Result<AgentsFound, Problem> {
    match open_service(at) {
        Ok(service) if probe => service.probe(asked),
        Ok(service) => service.agents(asked),
        Err(problem) if problem.code == ProblemCode::NotARepository && asked.profile.is_none() => {
            Ok(AgentsFound { kinds: agents::list_agent_kinds(), profiles: Vec::new() })
        }
        Err(problem) => Err(problem),
    }
}

/// The level of the sandbox that agents and checks of this project run in; without settings, the default of this machine.
pub fn sandbox_level(root: &Path) -> landfall_engine::settings::Confinement {
    use landfall_engine::model::sandbox::default_confinement;
    let default = || default_confinement(landfall_engine::host::sandbox::can_isolate(), None);
    landfall_engine::engine::load_settings(root).map_or_else(|_| default(), |settings| settings.run.sandbox)
}

/// The ready-made agents that are installed: the kind of each, where it is, and how to log in to it.
pub fn installed_agents() -> Vec<(String, PathBuf, String)> {
    let ready_made = landfall_agents::registry::AGENTS.iter().filter(|entry| entry.is_ready_made);
    let find = |entry: &landfall_agents::registry::AgentEntry| {
        let kind = entry.name.to_owned();
        let profile = landfall_agents::LaunchProfile {
            kind: kind.clone(),
            ..landfall_agents::LaunchProfile::default()
        };
        let needs = entry.create_agent().list_requirements(&profile);
        Some((kind, agents::find_on_path(&needs.program?)?, needs.login.to_owned()))
    };
    ready_made.filter_map(find).collect()
}

/// Whether agents of this kind report the tokens they use, but not what they cost.
pub fn reports_tokens_alone(kind: &str) -> bool {
    use landfall_agents::registry::{UsageReport, find_agent};
    find_agent(kind).is_ok_and(|entry| entry.usage == UsageReport::Tokens)
}

/// Where to attach to the agent of a task in the project at `at`.
pub fn find_attach_target(
    at: &ProjectLocator,
    task: landfall_api::WireTaskId,
) -> Result<landfall_agents::tmux::AttachTarget, Problem> {
    terminal::find_attach_target(&ProjectLocation::find(at)?, conversions::model_task(task))
}

/// Makes a task module in the project at `at`.
pub fn init_module(at: &ProjectLocator, ask: &ModuleRequest) -> Result<ModuleMade, Problem> {
    modules::init_module(&ProjectLocation::find(at)?, ask)
}

/// Mends the task modules below `path`, or all of them, in the project at `at`.
pub fn repair_modules(at: &ProjectLocator, path: Option<&Path>) -> Result<ModulesMended, Problem> {
    modules::repair_modules(&ProjectLocation::find(at)?, path)
}

/// Looks at the acceptance criteria of an issue of the project at `at`, and does what follows. `tell` hears how it goes.
pub fn verify_issue(
    at: &ProjectLocator,
    asked: &landfall_api::VerifyAsked,
    tell: &mut dyn FnMut(&str),
) -> Result<landfall_api::IssueVerified, Problem> {
    verify::verify_issue(&ProjectLocation::find(at)?, asked, &|| false, tell)
}

/// Runs the checks of the project at `at`. None: the user stopped them.
pub fn check_project(
    at: &ProjectLocator,
    asked: &CheckOptions,
    view: &mut dyn CheckView,
) -> Result<Option<landfall_api::ProjectChecked>, Problem> {
    check::check_project(&ProjectLocation::find(at)?, asked, view)
}

/// Whether the project at `at` has a journal that can be read.
pub fn has_journal(at: &ProjectLocator) -> bool {
    ProjectLocation::find(at).and_then(|place| place.open_reader()).is_ok_and(|reader| reader.is_some())
}

/// The files that git tracks in the project at `at`.
pub fn tracked_files(at: &ProjectLocator) -> Result<BTreeSet<String>, Problem> {
    place::tracked_files(&ProjectLocation::find(at)?)
}

/// Where a program is, if it is installed.
pub fn find_program_on_path(program: &str) -> Option<PathBuf> {
    agents::find_on_path(program)
}

/// The task that follows an issue in the project at `at`.
pub fn find_issue_task(at: &ProjectLocator, issue: u64) -> Result<Option<WireTaskId>, Problem> {
    follow_issues::find_issue_task(&ProjectLocation::find(at)?, issue)
}

/// The task of the module in a folder of the project at `at`, if it has one.
pub fn task_of_module(at: &ProjectLocator, dir: &str) -> Result<Option<WireTaskId>, Problem> {
    command::loops::task_of_module(&ProjectLocation::find(at)?, dir)
}

/// Why no task follows an issue of the project at `at`: nobody follows it yet, or it is no issue.
pub fn unfollowed_issue_problem(at: &ProjectLocator, issue: u64) -> Problem {
    ProjectLocation::find(at)
        .map_or_else(|problem| problem, |place| follow_issues::unfollowed_issue_problem(&place, issue))
}

/// The same by the way: where it would take long to find out, nothing is said.
pub fn find_issue_task_quickly(at: &ProjectLocator, issue: u64) -> Option<WireTaskId> {
    follow_issues::find_issue_task_quickly(&ProjectLocation::find(at).ok()?, issue)
}

/// Watches tasks in a run that another process drives, until they are over, it is, or `tell` has heard enough. Whether there was
/// such a run.
pub fn watch_tasks(
    at: &ProjectLocator,
    tasks: &[WireTaskId],
    tell: &mut dyn FnMut(&[NewsLine]) -> bool,
) -> Result<bool, Problem> {
    follow_issues::watch_tasks(&ProjectLocation::find(at)?, tasks, tell)
}

/// What to do next about the issues of a batch that are left, if some are: see [`haul::suggest_next_step`].
pub fn batch_next_step(
    batch: HaulId,
    left: &[u64],
    through: &[u64],
    blocked_by: &BTreeMap<u64, BTreeSet<u64>>,
) -> Option<String> {
    haul::suggest_next_step(haul::IssueBatchId(batch.0), left, through, blocked_by)
}

/// The branch that is meant, where that is not the base of the project, and the other ones that work lands on.
pub fn list_other_bases(at: &ProjectLocator) -> (Option<String>, Vec<String>) {
    let Ok(place) = ProjectLocation::find(at) else { return (None, Vec::new()) };
    let mut others = place.folder.list_bases();
    others.retain(|base| Some(base) != place.base.as_ref());
    (place.base, others)
}

/// Has an agent propose tasks for the project at `at`. Nothing is added yet. `tell` hears how it goes.
pub fn propose_tasks(
    at: &ProjectLocator,
    asked: &ProposeOptions<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<Proposal, Problem> {
    propose::propose_tasks(&ProjectLocation::find(at)?, asked, tell)
}

/// Drives the project at `at`: by the server that keeps it, or in this process.
pub fn run(at: &ProjectLocator, asked: RunAsked) -> Result<Box<dyn RunHandle>, Problem> {
    let place = ProjectLocation::find(at)?;
    match remote::start(&place, &asked)? {
        Some(run) => Ok(Box::new(run)),
        None => Ok(Box::new(run::start(place, &asked)?)),
    }
}

/// Begins to drive the project at `at`, and leaves: the server that keeps it goes on, or a process of its own.
pub fn run_detached(at: &ProjectLocator, asked: &RunAsked) -> Result<DetachedRun, Problem> {
    detach::start(&ProjectLocation::find(at)?, asked)
}

/// Keeps the project at `at`, and serves it.
pub fn serve_project(at: &ProjectLocator, asked: ServeOptions) -> Result<ProjectServer, Problem> {
    serve::start(ProjectLocation::find(at)?, asked)
}

/// The token that opens the server of the project at `at`; `renew` makes a new one.
pub fn access_token(at: &ProjectLocator, renew: bool) -> Result<String, Problem> {
    serve::access_token(&ProjectLocation::find(at)?, renew)
}

/// What of the settings of the project at `at` has to be trusted.
pub fn trust_report(at: &ProjectLocator) -> Result<TrustReport, Problem> {
    trust::trust_report(&ProjectLocation::find(at)?)
}

/// Trusts the settings of the project at `at`, if they have this digest.
pub fn trust_settings(at: &ProjectLocator, digest: &str, by: TrustedBy) -> Result<TrustReport, Problem> {
    trust::trust_settings(&ProjectLocation::find(at)?, digest, by)
}

/// Trusts the settings of the project at `at` as they are: the person has just had them written.
pub fn trust_own_settings(at: &ProjectLocator) -> Result<(), Problem> {
    trust::trust_own_settings(&ProjectLocation::find(at)?)
}

/// Makes a project to look at, in `dir` or in a temporary folder, and drives it.
pub fn start_demo(dir: Option<&Path>) -> Result<Demo, Problem> {
    demo::start(dir)
}

//! Puts the house together: the only part of the binary that names the engine.
//!
//! `place` finds the project, `desk` answers requests about it: `reads` and its neighbours from the tables, `writes`
//! through the engine. `run` drives, `demo` makes something to drive. Conversions are in `wire`, sentences in `words`
//! and `moment`, and what goes wrong becomes a problem in `problem`.

mod agents;
mod attempts;
mod backlog;
mod board;
mod by_hand;
mod checkpoints;
mod consulted;
mod demo;
mod desk;
mod detach;
mod discoveries;
mod doctor;
mod engine_at;
mod fleet;
mod flows;
mod follow;
mod graph;
mod hidden;
mod history;
mod holds;
mod import;
mod inbox;
mod intervene;
mod issues;
mod judges;
mod keeper;
mod known;
mod looks;
mod loops;
mod modules;
mod moment;
mod orphans;
mod output;
mod pilot;
mod place;
mod problem;
mod proposals;
mod propose;
mod queue;
mod reads;
mod reclaim;
mod reconcile;
mod remote;
mod reports;
mod run;
mod serve;
mod settings;
mod sprints;
mod staged;
mod stats;
mod tables;
mod targets;
mod terminal;
mod verify;
mod wire;
mod words;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use landfall_api::{
    AgentsAsked, AgentsFound, Ask as _, HaulId, HaulList, ImprovementList, IssueChanged, IssueDetail,
    IssueList, IssueMade, IssueSummary, IssueTrace, IssuesFollow, IssuesFollowed, ModuleMade, ModulesMended,
    NewsLine, Problem, ProblemCode, Proposal, PullRequestDetail, Reconciliation, Rollup, Service, TaskId,
};
use landfall_engine::model::haul;

use crate::running::{RunAsked, RunHandle};
use desk::Desk;
use place::Place;

pub use demo::Demo;
pub use detach::Detached;
pub use issues::{IssueAsked, IssueChange, IssueEdited, IssuesAsked};
pub use modules::ModuleAsked;
pub use propose::ProposeAsked;
pub use reconcile::{ReconcileAsked, points};
pub use serve::{Serve, ServeAsked};
pub use verify::VerifyAsked;

/// Where a project is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The root of its repository: where `landfall.toml` belongs.
    pub root: PathBuf,
    /// The branch HEAD is on: what `init` proposes to land on.
    pub branch: String,
}

/// Owns one agent process. Returns the exit code.
pub fn sit(dir: &OsStr) -> u8 {
    landfall_engine::host::sitter::sit(Path::new(dir))
}

/// The project around `dir`.
pub fn project(dir: &Path) -> Result<Project, Problem> {
    let place = Place::find(dir)?;
    let branch = place::branch_by_git(&place)?;
    Ok(Project { root: place.root, branch })
}

/// Whoever answers for the project around `dir`.
pub fn service(dir: &Path) -> Result<Box<dyn Service>, Problem> {
    Ok(Box::new(Desk::door(Place::find(dir)?)))
}

/// The agents there are, with the profiles of the project around `dir`, if there is one.
pub fn agents(dir: &Path, asked: AgentsAsked, probe: bool) -> Result<AgentsFound, Problem> {
    match service(dir) {
        Ok(service) if probe => service.probe(asked),
        Ok(service) => service.agents(asked),
        Err(problem) if problem.code == ProblemCode::NotARepository && asked.profile.is_none() => {
            Ok(AgentsFound { kinds: agents::kinds(), profiles: Vec::new() })
        }
        Err(problem) => Err(problem),
    }
}

/// Where an agent of this kind is installed, and how to log in to it; none when it is not.
pub fn installed(kind: &str) -> Option<(PathBuf, String)> {
    let entry = landfall_agents::registry::find(kind).ok()?;
    let profile = landfall_agents::Profile { kind: kind.to_owned(), ..landfall_agents::Profile::default() };
    let needs = entry.agent().needs(&profile);
    Some((agents::on_path(&needs.program?)?, needs.login.to_owned()))
}

/// Where to attach to the agent of a task in the project around `dir`.
pub fn terminal(dir: &Path, task: landfall_api::TaskId) -> Result<landfall_agents::tmux::Terminal, Problem> {
    terminal::of(&Place::find(dir)?, wire::model_task(task))
}

/// Makes a task module in the project around `dir`.
pub fn module_init(dir: &Path, ask: &ModuleAsked) -> Result<ModuleMade, Problem> {
    modules::init(&Place::find(dir)?, ask)
}

/// Mends the task modules below `path`, or all of them, in the project around `dir`.
pub fn module_mend(dir: &Path, path: Option<&Path>) -> Result<ModulesMended, Problem> {
    modules::mend(&Place::find(dir)?, path)
}

/// Looks at the acceptance criteria of an issue of the project around `dir`, and does what follows. `tell` hears how it goes.
pub fn verify(
    dir: &Path,
    asked: &VerifyAsked,
    tell: &mut dyn FnMut(&str),
) -> Result<landfall_api::IssueVerified, Problem> {
    verify::verify(&Place::find(dir)?, asked, tell)
}

/// Makes an issue in the tracker of the project around `dir`.
pub fn issue_new(dir: &Path, asked: &IssueAsked) -> Result<IssueMade, Problem> {
    issues::make(&Place::find(dir)?, asked)
}

/// The issues of the project around `dir`.
pub fn issue_list(dir: &Path, asked: &IssuesAsked) -> Result<IssueList, Problem> {
    issues::list(&Place::find(dir)?, asked)
}

/// Everything about one issue of the project around `dir`.
pub fn issue_show(dir: &Path, issue: u64) -> Result<IssueDetail, Problem> {
    issues::show(&Place::find(dir)?, issue)
}

/// Everything about a pull request of the project around `dir`, or about the one of an issue.
pub fn issue_pr(dir: &Path, number: u64) -> Result<PullRequestDetail, Problem> {
    issues::pull_request(&Place::find(dir)?, number)
}

/// Changes an issue of the project around `dir`.
pub fn issue_change(dir: &Path, issue: u64, change: &IssueChange) -> Result<IssueChanged, Problem> {
    issues::change(&Place::find(dir)?, issue, change)
}

/// The task that follows an issue in the project around `dir`.
pub fn task_of_issue(dir: &Path, issue: u64) -> Result<Option<TaskId>, Problem> {
    follow::task_of_issue(&Place::find(dir)?, issue)
}

/// Why no task follows an issue of the project around `dir`: nobody follows it yet, or it is no issue.
pub fn unfollowed_issue(dir: &Path, issue: u64) -> Problem {
    Place::find(dir).map_or_else(|problem| problem, |place| follow::unfollowed(&place, issue))
}

/// The same by the way: where it would take long to find out, nothing is said.
pub fn likely_task_of_issue(dir: &Path, issue: u64) -> Option<TaskId> {
    follow::likely_task_of_issue(&Place::find(dir).ok()?, issue)
}

/// Watches tasks in a run that another process drives, until they are over, it is, or `tell` has heard enough. Whether there was
/// such a run.
pub fn watch_tasks(
    dir: &Path,
    tasks: &[TaskId],
    tell: &mut dyn FnMut(&[NewsLine]) -> bool,
) -> Result<bool, Problem> {
    follow::watch(&Place::find(dir)?, tasks, tell)
}

/// Which issues would be followed in the project around `dir`, and how. Nothing is changed.
pub fn follow_preview(dir: &Path, asked: &IssuesFollow) -> Result<IssuesFollowed, Problem> {
    follow::preview(&Place::find(dir)?, asked)
}

/// What to do next about the issues of a batch that are left, if some are: see [`haul::onward`].
pub fn batch_onward(
    batch: HaulId,
    left: &[u64],
    through: &[u64],
    blocked_by: &BTreeMap<u64, BTreeSet<u64>>,
) -> Option<String> {
    haul::onward(haul::HaulId(batch.0), left, through, blocked_by)
}

/// What became of the issues of these tasks.
pub fn issue_summaries(dir: &Path, tasks: &[TaskId]) -> Result<Vec<IssueSummary>, Problem> {
    follow::summaries(&Place::find(dir)?, tasks)
}

/// What happened to issues of the project around `dir`, oldest first; to all of them, if none is named.
pub fn issue_events(dir: &Path, issues: &[u64]) -> Result<Vec<IssueTrace>, Problem> {
    history::events(&Place::find(dir)?, issues)
}

/// What agents propose when they look back. Of those that are named, issues are made.
pub fn issue_proposals(dir: &Path, file: &[String]) -> Result<ImprovementList, Problem> {
    history::proposals(&Place::find(dir)?, file)
}

/// What happened to issues in the last days, summed up.
pub fn rollup(dir: &Path, days: u32) -> Result<Rollup, Problem> {
    history::rollup(&Place::find(dir)?, days)
}

/// Batches of issues of which something is left, newest first.
pub fn issue_batches(dir: &Path) -> Result<HaulList, Problem> {
    follow::batches(&Place::find(dir)?)
}

/// The branch that work lands on, as far as files tell.
pub fn base(dir: &Path) -> Result<String, Problem> {
    Ok(Place::find(dir)?.branch())
}

/// Whether a phase of an issue is complete, by what can be seen.
pub fn reconcile(dir: &Path, asked: &ReconcileAsked) -> Result<Reconciliation, Problem> {
    reconcile::reconcile(&Place::find(dir)?, asked)
}

/// Has an agent propose tasks for the project around `dir`. Nothing is added yet. `tell` hears how it goes.
pub fn propose(
    dir: &Path,
    asked: &ProposeAsked<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<Proposal, Problem> {
    propose::propose(&Place::find(dir)?, asked, tell)
}

/// Drives the project around `dir`: by the server that keeps it, or in this process.
pub fn run(dir: &Path, asked: RunAsked) -> Result<Box<dyn RunHandle>, Problem> {
    let place = Place::find(dir)?;
    match remote::start(&place, &asked)? {
        Some(run) => Ok(Box::new(run)),
        None => Ok(Box::new(run::start(place, &asked)?)),
    }
}

/// Begins to drive the project around `dir`, and leaves: the server that keeps it goes on, or a process of its own.
pub fn run_detached(dir: &Path, asked: &RunAsked) -> Result<Detached, Problem> {
    detach::start(&Place::find(dir)?, asked)
}

/// Keeps the project around `dir`, and serves it.
pub fn serve(dir: &Path, asked: ServeAsked) -> Result<Serve, Problem> {
    serve::start(Place::find(dir)?, asked)
}

/// The token that opens the server of the project around `dir`; `renew` makes a new one.
pub fn token(dir: &Path, renew: bool) -> Result<String, Problem> {
    serve::token(&Place::find(dir)?, renew)
}

/// Makes a project to look at, in `dir` or in a temporary folder, and drives it.
pub fn demo(dir: Option<&Path>) -> Result<Demo, Problem> {
    demo::start(dir)
}

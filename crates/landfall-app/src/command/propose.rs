//! Has an agent propose tasks for a goal, and makes them what can be added.

use std::collections::BTreeMap;

use landfall_api::{NewTask, Problem, ProblemCode, Proposal, ProposalOutcome, TaskRef};
use landfall_engine::engine;
use landfall_engine::model::proposal::{ProposalDependency, ProposalPlan};
use landfall_engine::model::{AgentUsage, Spending, TaskId, TaskStatus};
use landfall_engine::propose::{ProposalProgress, ProposalResult, ProposeError};

use crate::project::engine_at::EngineLocation;
use crate::project::open_engine;
use crate::project::place::ProjectLocation;
use crate::project::{conversions, problems, trust};
use crate::query::start_blockers::StartBlockers;
use crate::query::{agents, backlog, extra_usage};

/// What to propose tasks for, and how.
pub struct ProposeOptions<'a> {
    /// What is wanted.
    pub goal: &'a str,
    /// Where that came from.
    pub source: &'a str,
    /// The profile.
    pub agent: &'a str,
    /// At most so many tasks.
    pub tasks_max: usize,
    /// Whether whoever asked has left.
    pub is_stopped: &'a dyn Fn() -> bool,
}

const SOURCE: &str = "proposal:";

pub(crate) fn propose_tasks(
    place: &ProjectLocation,
    asked: &ProposeOptions<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<Proposal, Problem> {
    let settings = engine::load_settings(&place.root).map_err(|error| problems::open(&error))?;
    trust::check_trust(place, &settings)?;
    let Some(profile) = settings.agents.get(asked.agent) else {
        return Err(agents::unknown_profile_problem(&settings, asked.agent));
    };
    agents::check_profile(profile)
        .map_err(|unfit| Problem::new(ProblemCode::AgentMissing, unfit.problem).with_hint(unfit.hint))?;
    let base = place.base_branch_or_empty();
    if base.is_empty() {
        return Err(problems::detached_head());
    }
    let today = match place.open_reader()? {
        Some(reader) => {
            StartBlockers::load_current(place, &EngineLocation::locate(place), &reader)?.spending_today()
        }
        None => Spending::default(),
    };
    let (known, lines) = backlog::list_existing_tasks(place)?;
    let environment = place.engine_environment();
    let question = landfall_engine::propose::ProposeContext {
        settings: &settings,
        profile,
        root: &place.root,
        base: &base,
        folder: &place.folder,
        program: open_engine::own_executable(),
        environment: &environment,
        goal: asked.goal,
        source: asked.source,
        tasks_max: asked.tasks_max,
        known: &known,
        backlog: lines,
        today,
        is_stopped: asked.is_stopped,
    };
    let (mut used, mut took_ms) = (AgentUsage::default(), 0_u64);
    let mut told = |news: &ProposalProgress| match news {
        ProposalProgress::Asked { round: 1, .. } => {
            tell(&format!("asking {} ({}) for tasks; that takes minutes", asked.agent, profile.kind));
        }
        ProposalProgress::Asked { round, rounds_max } => {
            tell(&format!("round {round} of at most {rounds_max}"))
        }
        ProposalProgress::Answered { usage, took_ms: took } => {
            used = used.plus(*usage);
            took_ms = took_ms.saturating_add(*took);
        }
        ProposalProgress::SentBack { problems } => {
            let lines: String = problems.iter().map(|it| format!("\n  - {it}")).collect();
            tell(&format!("the answer will not do:{lines}"));
        }
    };
    let proposed = landfall_engine::propose::propose_tasks(&question, &mut told);
    // What came to nothing has cost as much.
    if took_ms > 0
        && let Err(problem) = extra_usage::note_extra_usage(place, ("proposal", asked.agent), used, took_ms)
    {
        tell(&format!("what it used is not in the ledger of the day: {}", problem.message));
    }
    let ProposalResult { plan, mended, effort } = proposed.map_err(|error| propose_problem(&error))?;
    let number = next_proposal_number(place)?;
    Ok(Proposal {
        number,
        agent: asked.agent.to_owned(),
        model: effort.model,
        tasks: to_new_tasks(&plan, &format!("{SOURCE}{number}")),
        mended: mended.iter().map(ToString::to_string).collect(),
        rounds: effort.rounds,
        usage: conversions::to_api_usage(effort.usage),
        took_ms: effort.took_ms,
        outcome: ProposalOutcome::Shown,
        added: Vec::new(),
    })
}

fn propose_problem(error: &ProposeError) -> Problem {
    let (code, hint) = match error {
        ProposeError::NotAsked(_) => {
            (ProblemCode::AgentMissing, "`landfall agents --probe` says whether the agent answers".to_owned())
        }
        ProposeError::Project(_) => (ProblemCode::GitFailed, "`landfall doctor` looks at git".to_owned()),
        ProposeError::Prompt(problem) => (
            ProblemCode::SettingsBroken,
            problem.hint.clone().unwrap_or_else(|| "mend the template".to_owned()),
        ),
        ProposeError::NoGood { .. } => (
            ProblemCode::AgentFailed,
            "say the goal more precisely, or ask another agent with `--agent`; nothing was added".to_owned(),
        ),
        ProposeError::NothingNew => (
            ProblemCode::AgentFailed,
            "`landfall list` shows the tasks there are; nothing was added".to_owned(),
        ),
        ProposeError::Declined(_) => {
            (ProblemCode::AgentFailed, "say the goal more precisely; nothing was added".to_owned())
        }
        ProposeError::Quota { until } => {
            let when = until.map(|until| format!(" until {}", landfall_text::format_local(until.0)));
            (
                ProblemCode::AgentFailed,
                format!("wait{}, or ask another agent with `--agent`", when.unwrap_or_default()),
            )
        }
        ProposeError::Login(_) => {
            (ProblemCode::AgentFailed, "log in to it; `landfall agents` says how".to_owned())
        }
        ProposeError::OutOfTime => (
            ProblemCode::AgentFailed,
            "`run.task_limit` in landfall.toml is how long it may take; nothing was added".to_owned(),
        ),
        ProposeError::OverBudget { .. } => (
            ProblemCode::NotNow,
            "`[budget]` in landfall.toml says what may be spent; nothing was added".to_owned(),
        ),
        ProposeError::Failed(_) => (
            ProblemCode::AgentFailed,
            "`landfall agents --probe` says whether the agent answers; nothing was added".to_owned(),
        ),
        ProposeError::Stopped => (ProblemCode::NotNow, "nothing was added".to_owned()),
    };
    Problem::new(code, error.to_string()).with_hint(hint)
}

/// The number of the next proposal: one more than any task came from.
fn next_proposal_number(place: &ProjectLocation) -> Result<u32, Problem> {
    let numbers = backlog::list_task_sources(place)?
        .into_iter()
        .filter_map(|(_, source)| parse_proposal_number(&source));
    Ok(numbers.max().unwrap_or(0).saturating_add(1))
}

fn parse_proposal_number(source: &str) -> Option<u32> {
    source.strip_prefix(SOURCE)?.parse().ok()
}

/// The tasks of a plan, each group just before the first of its tasks.
fn to_new_tasks(plan: &ProposalPlan, source: &str) -> Vec<NewTask> {
    enum ProposalRow {
        Group(usize),
        Task(usize),
    }
    let mut rows: Vec<ProposalRow> = Vec::new();
    let mut group_at: BTreeMap<usize, u32> = BTreeMap::new();
    let mut task_at: BTreeMap<usize, u32> = BTreeMap::new();
    let number = |rows: &[ProposalRow]| u32::try_from(rows.len()).expect("a proposal is small");
    for (place, task) in plan.tasks.iter().enumerate() {
        if let Some(group) = task.group.filter(|group| !group_at.contains_key(group)) {
            rows.push(ProposalRow::Group(group));
            group_at.insert(group, number(&rows));
        }
        rows.push(ProposalRow::Task(place));
        task_at.insert(place, number(&rows));
    }
    let of = |row: &ProposalRow| match row {
        ProposalRow::Group(place) => NewTask {
            title: plan.groups[*place].title.clone(),
            body: plan.groups[*place].body.clone(),
            draft: true,
            source: source.to_owned(),
            ..NewTask::default()
        },
        ProposalRow::Task(place) => {
            let planned = &plan.tasks[*place];
            let part = &planned.part;
            let need = |need: &ProposalDependency| match need {
                ProposalDependency::Here(place) => TaskRef::Batch(task_at[place]),
                ProposalDependency::There(id) => TaskRef::Task(conversions::task_id(*id)),
            };
            NewTask {
                title: part.title.clone(),
                body: part.body.clone(),
                criteria: part.criteria.clone(),
                size: part.size.map(conversions::to_api_size),
                tags: part.tags.clone(),
                priority: part.priority,
                needs: planned.needs.iter().map(need).collect(),
                touches: part.touches.clone(),
                parent: planned.group.map(|group| TaskRef::Batch(group_at[&group])),
                source: source.to_owned(),
                ..NewTask::default()
            }
        }
    };
    rows.iter().map(of).collect()
}

/// The drafts of a proposal; groups stay drafts.
pub(crate) fn find_proposal_drafts(place: &ProjectLocation, number: u32) -> Result<Vec<TaskId>, Problem> {
    let none = |what: String| {
        Problem::new(ProblemCode::UnknownTask, what)
            .with_hint("`landfall list --status draft` shows the drafts there are")
    };
    let of: Vec<TaskId> = backlog::list_task_sources(place)?
        .into_iter()
        .filter(|(_, source)| parse_proposal_number(source) == Some(number))
        .map(|(id, _)| id)
        .collect();
    let Some(reader) = place.open_reader()?.filter(|_| !of.is_empty()) else {
        return Err(none(format!("there is no proposal {number}")));
    };
    let rows = backlog::list_task_rows(&reader)?;
    let groups = backlog::find_group_tasks(&rows);
    let drafts: Vec<TaskId> = rows
        .iter()
        .filter(|row| row.status == TaskStatus::Draft && of.contains(&row.id) && !groups.contains(&row.id))
        .map(|row| row.id)
        .collect();
    if drafts.is_empty() {
        return Err(none(format!("proposal {number} has no drafts any more")));
    }
    Ok(drafts)
}

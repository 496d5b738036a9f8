//! What happened to issues: the log of each, what they come to together, and what their agents propose when they look back.

use std::collections::{BTreeMap, BTreeSet};

use landfall_api::{self as api, Problem, ProblemCode};
use landfall_engine::engine::load_settings;
use landfall_engine::host::git::{Git, Oid, Repo, Store};
use landfall_engine::improve::{self, ImprovementProposal, ProposalOrigin};
use landfall_engine::model::haul::IssueBatchHistory;
use landfall_engine::model::issue::{self, IssueDocument, IssueRef, Trace};
use landfall_engine::model::recovery::project_log;
use landfall_engine::model::{Fact, Task, TaskId, TaskStatus, Timestamp};
use landfall_engine::store::{Seq, StoreReader};

use crate::project::place::ProjectLocation;
use crate::project::{clock, conversions, problems};
use crate::query::{backlog, issues};

/// The name of the fact that a task begins to follow an issue with.
const FOLLOWS: &str = "issue-wanted";
const DAY_MS: i64 = 86_400_000;

const DAYS: u32 = 30;
const DAYS_MAX: u32 = 366;
const LINES: u32 = 1_000; // a page, where nobody says how long it is to be
const LINES_MAX: u32 = 10_000; // some megabytes of JSON

/// A page of the log of issues, oldest line first; of all that were ever followed, if none is named.
pub(crate) fn list_issue_events(
    place: &ProjectLocation,
    asked: &api::IssueEventsAsked,
) -> Result<api::IssueEvents, Problem> {
    let numbers = &asked.issue;
    let all = collect_trails(place, None)?;
    for number in numbers {
        if !all.iter().any(|(known, _)| known == number) {
            let what = format!("no task follows #{number}, so nothing has happened to it here");
            return Err(Problem::new(ProblemCode::NotFound, what)
                .with_hint(format!("`landfall auto {number}` follows it")));
        }
    }
    let wanted = |number: &u64| numbers.is_empty() || numbers.contains(number);
    let mut lines: Vec<(Timestamp, api::IssueTrace)> = Vec::new();
    for (number, trail) in all.iter().filter(|(number, _)| wanted(number)) {
        lines.extend(trail.iter().map(|trace| (trace.at, to_issue_trace(*number, trace))));
    }
    lines.sort_by_key(|(at, _)| *at); // stable: within one moment each issue keeps its order
    let count = if asked.limit == 0 { LINES } else { asked.limit.min(LINES_MAX) } as usize;
    let from = usize::try_from(asked.after.unwrap_or(0)).unwrap_or(usize::MAX).min(lines.len());
    let until = from.saturating_add(count).min(lines.len());
    let next = (until < lines.len()).then_some(until as u64);
    let events = lines.drain(from..until).map(|(_, line)| line).collect();
    Ok(api::IssueEvents { events, next })
}

fn to_issue_trace(issue: u64, trace: &Trace) -> api::IssueTrace {
    let fields = trace.what.named_fields().into_iter().filter(|(_, value)| !value.is_empty());
    api::IssueTrace {
        ts: format_utc(trace.at),
        issue,
        event: trace.what.wire_name().to_owned(),
        session_id: trace.run.map(|run| run.to_string()).unwrap_or_default(),
        fields: fields.map(|(name, value)| (name.to_owned(), value)).collect(),
    }
}

fn format_utc(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| at.0.to_string(), |at| format!("{at:.3}"))
}

/// What happened to issues in the last days, summed up.
pub(crate) fn issue_rollup(
    place: &ProjectLocation,
    asked: api::RollupAsked,
) -> Result<Box<api::Rollup>, Problem> {
    let days = if asked.days == 0 { DAYS } else { asked.days.min(DAYS_MAX) };
    let since = Timestamp(clock::now_ms() - i64::from(days) * DAY_MS);
    let all = collect_trails(place, Some(since))?;
    let sum = issue::roll_up_traces(all.iter().map(|(number, trail)| (*number, &trail[..])), since);
    let hauls = match place.open_reader()? {
        Some(reader) => reader.hauls().map_err(|error| problems::from_store_error(&error))?,
        None => IssueBatchHistory::default(),
    };
    let batches = |it: &issue::SessionRow| -> Vec<String> {
        let of = hauls.all_batches().iter().filter(|haul| haul.begun <= it.until);
        of.filter(|haul| haul.issues.iter().any(|number| it.issues.contains(number)))
            .map(|haul| haul.id.to_string())
            .collect()
    };
    let count = |(what, count): (String, u64)| api::RollupCount { what, count };
    let sessions = sum.sessions.iter().map(|it| api::RollupSession {
        session: it.run.to_string(),
        batches: batches(it),
        from_ms: it.from.0,
        until_ms: it.until.0,
        issues: it.issues.iter().copied().collect(),
        done: it.done,
        failed: it.failed,
    });
    Ok(Box::new(api::Rollup {
        from_ms: since.0,
        sessions: sessions.collect(),
        phases: sum.phases.into_iter().map(to_rollup_phase).collect(),
        recoveries: sum.recoveries.into_iter().map(to_rollup_recovery).collect(),
        anomalies: sum.anomalies.into_iter().map(count).collect(),
        interventions: sum.interventions.into_iter().map(count).collect(),
        tokens: sum.tokens.into_iter().map(to_rollup_tokens).collect(),
        recovery_log: recovery_log(place, since)?,
    }))
}

/// The recoveries of all tasks that changed since then.
fn recovery_log(place: &ProjectLocation, since: Timestamp) -> Result<Vec<String>, Problem> {
    let Some(reader) = place.open_reader()? else { return Ok(Vec::new()) };
    let tasks = list_following_tasks(&reader)?;
    let recent = tasks.iter().filter(|task| task.changed >= since);
    let all = recent.map(|task| {
        let subject = format!("{}: {} ({})", task.id, task.spec.title, task.spec.source);
        (subject, &task.recoveries)
    });
    Ok(project_log(all, &format_utc))
}

fn to_rollup_phase(it: issue::PhaseRow) -> api::RollupPhase {
    api::RollupPhase {
        phase: it.phase,
        begun: it.begun,
        count: it.count,
        median_ms: it.median_ms,
        p95_ms: it.p95_ms,
        worked_ms: it.worked_ms,
        waited_ms: it.waits.iter().map(|(_, ms)| ms).sum(),
        waits: it
            .waits
            .iter()
            .map(|(what, ms)| api::RollupWait { what: what.wire_name().to_owned(), ms: *ms })
            .collect(),
    }
}

fn to_rollup_recovery(it: issue::RecoveryRow) -> api::RollupRecovery {
    api::RollupRecovery { tier: it.tier, count: it.count, success: it.success, failed: it.failed }
}

fn to_rollup_tokens(it: issue::TokenRow) -> api::RollupTokens {
    api::RollupTokens {
        phase: it.phase,
        model: it.model,
        runs: it.runs,
        tokens_in: it.usage.tokens_in,
        tokens_cached: it.usage.tokens_cached,
        tokens_out: it.usage.tokens_out,
        cost_usd: conversions::micro_to_usd(it.usage.micro_usd),
    }
}

/// The log of every task that follows an issue, by the number of the issue; only of those to which something happened since then.
fn collect_trails(
    place: &ProjectLocation,
    since: Option<Timestamp>,
) -> Result<Vec<(u64, Vec<Trace>)>, Problem> {
    let Some(reader) = place.open_reader()? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for task in list_following_tasks(&reader)? {
        let Some(source) = IssueRef::from_source(&task.spec.source) else { continue };
        if since.is_some_and(|since| task.changed < since) {
            continue;
        }
        all.push((source.number, task_trail(&reader, &task)?));
    }
    Ok(all)
}

fn task_trail(reader: &StoreReader, task: &Task) -> Result<Vec<Trace>, Problem> {
    let events = reader
        .events(Seq::ZERO, Some(task.id), u32::MAX)
        .map_err(|error| problems::from_store_error(&error))?;
    let facts = events.iter().filter_map(|(_, entry)| match &entry.fact {
        Fact::Task(_, event) => Some((entry.at, event)),
        Fact::Engine(_) => None,
    });
    Ok(issue::build_trail(task.flow.as_deref(), facts))
}

/// The tasks that follow issues.
fn list_following_tasks(reader: &StoreReader) -> Result<Vec<Task>, Problem> {
    let of = |error| problems::from_store_error(&error);
    let ids: BTreeSet<TaskId> = reader.tasks_with_kind(FOLLOWS).map_err(of)?;
    let mut tasks = Vec::new();
    for id in ids {
        tasks.extend(reader.task(id).map_err(of)?);
    }
    Ok(tasks)
}

/// What is worth saying about the issue of a task.
pub(crate) fn build_retrospective(
    place: &ProjectLocation,
    reader: &StoreReader,
    task: &Task,
) -> Result<Option<issue::IssueRetrospective>, Problem> {
    if task.issue.is_none() {
        return Ok(None);
    }
    // A report is worth reading also where the repository cannot be asked.
    let paper = find_issue_document(place, task).unwrap_or_default();
    Ok(issue::issue_retrospective(task, &task_trail(reader, task)?, paper.as_ref()))
}

fn find_issue_document(place: &ProjectLocation, task: &Task) -> Result<Option<IssueDocument>, Problem> {
    let settings = load_settings(&place.root).map_err(|error| problems::open(&error))?.tracker;
    let Some((store, base)) = open_store_and_base(place)? else { return Ok(None) };
    Ok(improve::find_paper(&store, &base, &settings.spec_path, &place.folder.papers_path(), task))
}

/// The store and the base in it; none before anything was worked on.
fn open_store_and_base(place: &ProjectLocation) -> Result<Option<(Store, Oid)>, Problem> {
    if !place.folder.store_path().exists() {
        return Ok(None);
    }
    let git = Git::find_installed().map_err(|error| problems::from_git_error(&error))?;
    let repo = Repo::discover(&git, &place.root).map_err(problems::from_repo_problem)?;
    let store = Store::open(&git, &place.folder.store_path(), &repo)
        .map_err(|error| problems::from_git_error(&error))?;
    let base = store.read_base().map_err(|error| problems::from_git_error(&error))?;
    Ok(base.map(|base| (store, base)))
}

/// Makes issues of what agents propose.
pub(crate) fn file_improvements(
    place: &ProjectLocation,
    asked: &api::ImprovementsFile,
) -> Result<api::ImprovementList, Problem> {
    if asked.ids.is_empty() {
        let none = Problem::new(ProblemCode::BadInput, "no proposal is named");
        return Err(none.with_hint("`landfall issue proposals` lists them"));
    }
    list_improvements(place, &asked.ids)
}

/// What agents propose; of those that `file` names, issues are made first.
pub(crate) fn list_improvements(
    place: &ProjectLocation,
    file: &[String],
) -> Result<api::ImprovementList, Problem> {
    let settings = load_settings(&place.root).map_err(|error| problems::open(&error))?.tracker;
    let mut all = match open_store_and_base(place)? {
        Some((store, base)) => improve::proposals_in_specs(&store, &base, &settings.spec_path)
            .map_err(|error| problems::from_git_error(&error))?,
        None => Vec::new(),
    };
    if let Some(reader) = place.open_reader()? {
        let mut tasks = list_following_tasks(&reader)?;
        let known: BTreeSet<TaskId> = tasks.iter().map(|task| task.id).collect();
        for row in backlog::list_task_rows(&reader)? {
            if row.status == TaskStatus::Draft && !known.contains(&row.id) {
                tasks.extend(reader.task(row.id).map_err(|error| problems::from_store_error(&error))?);
            }
        }
        all.extend(improve::proposals_of_tasks(&place.folder.papers_path(), &tasks));
    }
    let all = improve::merge_proposals(all);
    let chosen = file
        .iter()
        .map(|id| find_improvement(&all, id))
        .collect::<Result<Vec<&ImprovementProposal>, Problem>>()?;
    let failed = |error| issues::tracker_problem(&error);
    let mut known: BTreeMap<String, u64> = BTreeMap::new();
    // One that nobody wants is asked only to say so.
    if !file.is_empty() || settings.kind.is_some() && !all.is_empty() {
        let tracker = issues::open(place)?;
        known = improve::open_issues(&*tracker).map_err(failed)?;
        for proposal in chosen {
            let (number, _) = improve::file_proposal(&*tracker, &known, proposal).map_err(failed)?;
            known.insert(proposal.id.clone(), number);
        }
    }
    let shown = |it: &ImprovementProposal| api::Improvement {
        id: it.id.clone(),
        tier: it.tier.wire_name().to_owned(),
        title: it.title.clone(),
        text: it.text.clone(),
        from: it.from(),
        issue: known.get(&it.id).copied(),
        draft: match &it.origin {
            ProposalOrigin::Recovery { draft } => Some(conversions::task_id(*draft)),
            ProposalOrigin::Spec { .. } | ProposalOrigin::Paper { .. } => None,
        },
    };
    Ok(api::ImprovementList { proposals: all.iter().map(shown).collect() })
}

/// The proposal that a person means.
fn find_improvement<'a>(
    all: &'a [ImprovementProposal],
    id: &str,
) -> Result<&'a ImprovementProposal, Problem> {
    let bad = |what: String| Problem::new(ProblemCode::BadInput, what);
    let fits: Vec<&ImprovementProposal> =
        all.iter().filter(|it| !id.is_empty() && it.id.starts_with(id)).collect();
    match fits[..] {
        [one] => Ok(one),
        [] => {
            Err(bad(format!("there is no proposal `{id}`"))
                .with_hint("`landfall issue proposals` lists them"))
        }
        _ => {
            Err(bad(format!("`{id}` is the beginning of {} proposals", fits.len()))
                .with_hint("say more of it"))
        }
    }
}

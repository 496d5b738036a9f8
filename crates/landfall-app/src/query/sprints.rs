//! Sprints for people: what one would be, how it goes, and what became of it.

use std::collections::BTreeSet;

use jiff::Timestamp as Moment;
use landfall_api::{self as api, Problem, ProblemCode};
use landfall_engine::model::sprint::{
    Fate, Sprint, SprintEndCondition, SprintEvent, SprintPhase, SprintSpec, TaskStat,
};
use landfall_engine::model::{
    EngineEvent, Event, Fact, SignOff, SprintId, StartFilter, Tag, Task, TaskId, TaskSpec, TaskState,
    TaskStatus, Timestamp,
};
use landfall_engine::settings::Settings;
use landfall_engine::store::{Seq, StoreReader, TaskFilter as RowFilter, TaskRow};
use landfall_engine::{EngineReply, EngineRequest};
use landfall_text::{format_duration, format_until, pluralize};

use crate::project::command_handler::{CommandHandler, unexpected_reply};
use crate::project::conversions::TaskRelations;
use crate::project::query_context::Query;
use crate::project::sentences;
use crate::project::{clock, conversions, problems};
use crate::query::autopilot;
use crate::query::tasks::why_sentence;

const NAMED_MAX: usize = 100; // tasks a preview names; the rest is counted
const ROWS_MAX: u32 = 100_000;
const PACE_TASKS: usize = 20; // landed tasks that tell how long one takes

/// A plan as the model has it.
pub(crate) fn model_plan(plan: &api::SprintPlan) -> Result<SprintSpec, Problem> {
    let goal = match plan.goal {
        api::SprintGoal::Count { count: 0 } => {
            return Err(Problem::new(ProblemCode::BadInput, "a sprint of no tasks has nothing to do")
                .with_hint("`--count 10` ends it when ten tasks are verified"));
        }
        api::SprintGoal::Count { count } => SprintEndCondition::Count(count),
        api::SprintGoal::Duration { duration_ms } => SprintEndCondition::Duration { ms: duration_ms },
        api::SprintGoal::UntilTime { until_ms } => SprintEndCondition::Until(Timestamp(until_ms)),
        api::SprintGoal::NoReady => SprintEndCondition::NoReady,
    };
    let tags = |tags: &[String]| -> Result<BTreeSet<Tag>, Problem> {
        let parsed = tags.iter().map(|tag| tag.parse()).collect::<Result<_, _>>();
        parsed.map_err(|error| problems::bad_spec(&error))
    };
    let ids = |ids: &[api::WireTaskId]| ids.iter().copied().map(conversions::model_task).collect();
    Ok(SprintSpec {
        goal,
        only: ids(&plan.only),
        parents: ids(&plan.parents),
        tags_in: tags(&plan.tags)?,
        tags_out: tags(&plan.not_tags)?,
        checkpoint: plan.checkpoint,
        pause_on_error: plan.pause_on_error,
        batch_review: plan.batch_review,
    })
}

/// Whether the tasks it names are there.
pub(crate) fn check_tasks(reader: Option<&StoreReader>, plan: &SprintSpec) -> Result<(), Problem> {
    for id in plan.only.iter().chain(&plan.parents) {
        let known = match reader {
            Some(reader) => reader.row(*id).map_err(|error| problems::from_store_error(&error))?.is_some(),
            None => false,
        };
        if !known {
            return Err(problems::unknown_task(*id));
        }
    }
    Ok(())
}

fn plan(plan: &SprintSpec) -> api::SprintPlan {
    let SprintSpec { goal, only, parents, tags_in, tags_out, checkpoint, pause_on_error, batch_review } =
        plan;
    let ids = |ids: &BTreeSet<TaskId>| ids.iter().copied().map(conversions::task_id).collect();
    api::SprintPlan {
        goal: match goal {
            SprintEndCondition::Count(count) => api::SprintGoal::Count { count: *count },
            SprintEndCondition::Duration { ms } => api::SprintGoal::Duration { duration_ms: *ms },
            SprintEndCondition::Until(at) => api::SprintGoal::UntilTime { until_ms: at.0 },
            SprintEndCondition::NoReady => api::SprintGoal::NoReady,
        },
        only: ids(only),
        parents: ids(parents),
        tags: tags_in.iter().map(ToString::to_string).collect(),
        not_tags: tags_out.iter().map(ToString::to_string).collect(),
        checkpoint: *checkpoint,
        pause_on_error: *pause_on_error,
        batch_review: *batch_review,
    }
}

/// Which tasks it may begin.
pub(crate) fn start_filter(plan: &SprintSpec) -> StartFilter {
    StartFilter {
        only: None,
        starts: (!plan.only.is_empty()).then(|| plan.only.clone()),
        resting: BTreeSet::new(),
        parents: plan.parents.clone(),
        tags_in: plan.tags_in.clone(),
        tags_out: plan.tags_out.clone(),
    }
}

fn admits_row(filter: &StartFilter, row: &TaskRow) -> bool {
    let Ok(mut spec) = TaskSpec::new(&row.title) else { return false };
    spec.parent = row.parent;
    spec.tags = row.tags.iter().filter_map(|tag| tag.parse().ok()).collect();
    filter.admits_task(&spec, row.id)
}

fn load_settings_or_defaults(look: &Query<'_>) -> Settings {
    // Broken ones complain where they are used.
    landfall_engine::engine::load_settings(&look.place.root).unwrap_or_else(|_| Settings::defaults())
}

/// What a sprint would be.
pub(crate) fn preview_sprint(
    look: &Query<'_>,
    asked: api::SprintPlan,
) -> Result<api::SprintPreview, Problem> {
    let of = |error| problems::from_store_error(&error);
    let model = model_plan(&asked)?;
    let reader = look.place.open_reader()?;
    check_tasks(reader.as_deref(), &model)?;
    let filter = start_filter(&model);
    let (mut ready, mut later, mut each_ms) = (Vec::new(), Vec::new(), None);
    if let Some(reader) = &reader {
        let brief = |row: TaskRow| api::TaskBrief { task: conversions::task_id(row.id), title: row.title };
        let fits = |row: &TaskRow| admits_row(&filter, row);
        ready = reader.next(ROWS_MAX).map_err(of)?.into_iter().filter(fits).map(brief).collect();
        later = reader.held(ROWS_MAX).map_err(of)?.into_iter().filter(fits).map(brief).collect();
        each_ms = recent_task_ms(reader)?;
    }
    let all = (ready.len() + later.len()) as u64;
    let slots = load_settings_or_defaults(look).run.slots;
    let (total_ms, fits) = match (each_ms, &asked.goal) {
        (None, _) => (None, None),
        (Some(each), api::SprintGoal::Count { count }) => {
            (Some(estimate_span_ms(each, all.min(u64::from(*count)), slots)), None)
        }
        (Some(each), api::SprintGoal::NoReady) => (Some(estimate_span_ms(each, all, slots)), None),
        (Some(each), api::SprintGoal::Duration { duration_ms }) => {
            (None, Some(tasks_within(each, *duration_ms, slots).min(all)))
        }
        (Some(each), api::SprintGoal::UntilTime { until_ms }) => {
            let left = u64::try_from(until_ms - clock::now_ms()).unwrap_or(0);
            (None, Some(tasks_within(each, left, slots).min(all)))
        }
    };
    let more = (ready.len().saturating_sub(NAMED_MAX) + later.len().saturating_sub(NAMED_MAX)) as u64;
    ready.truncate(NAMED_MAX);
    later.truncate(NAMED_MAX);
    Ok(api::SprintPreview { plan: asked, ready, later, more, slots, each_ms, total_ms, fits })
}

fn estimate_span_ms(each_ms: u64, tasks: u64, slots: u32) -> u64 {
    each_ms.saturating_mul(tasks.div_ceil(u64::from(slots.max(1))))
}

fn tasks_within(each_ms: u64, span_ms: u64, slots: u32) -> u64 {
    (span_ms / each_ms.max(1)).saturating_mul(u64::from(slots))
}

/// How long a task took, over the latest that landed.
fn recent_task_ms(reader: &StoreReader) -> Result<Option<u64>, Problem> {
    const LOOK_BACK: u32 = 500; // ids; a project whose latest tasks all failed has no pace
    let of = |error| problems::from_store_error(&error);
    let last = reader.max_task_id().map_err(of)?.map_or(0, |id| id.0);
    let done = RowFilter { status: Some(TaskStatus::Done), ..RowFilter::default() };
    let after = last.checked_sub(LOOK_BACK).map(TaskId);
    let rows = reader.tasks(&done, after, LOOK_BACK).map_err(of)?;
    let mut spans = Vec::new();
    for row in rows.iter().rev().take(PACE_TASKS) {
        if let Some(task) = reader.task(row.id).map_err(of)?
            && task.landed.is_some()
            && task.counters.runs > 0
        {
            spans.push(task.counters.spent_ms);
        }
    }
    let many = spans.len() as u64;
    Ok((many > 0).then(|| spans.iter().sum::<u64>() / many))
}

/// How many tasks a sprint could still begin.
fn count_ready_tasks(reader: &StoreReader, sprint: &Sprint) -> Result<u64, Problem> {
    let filter = start_filter(&sprint.plan);
    let rows = reader.next(ROWS_MAX).map_err(|error| problems::from_store_error(&error))?;
    Ok(rows.iter().filter(|row| admits_row(&filter, row) && !sprint.tasks.contains_key(&row.id)).count()
        as u64)
}

/// How many tasks of a sprint landed, and how many it is about. Every bar and every line of a sprint shows these two.
fn sprint_progress(sprint: &Sprint, ready: u64) -> (u64, u64) {
    let total = match sprint.plan.goal {
        SprintEndCondition::Count(count) => u64::from(count),
        SprintEndCondition::Duration { .. } | SprintEndCondition::Until(_) | SprintEndCondition::NoReady => {
            sprint.tasks.len() as u64 + ready
        }
    };
    (sprint.count_in_status(Fate::Landed) as u64, total)
}

/// A sprint in one line: `SPRINT | 14/23 tasks | 2 failed | Until 08:00 (6h 23m left)`.
pub(crate) fn sprint_bar(sprint: &Sprint, ready: u64, now: Timestamp) -> String {
    let failed = (sprint.count_in_status(Fate::Failed)
        + sprint.count_in_status(Fate::Timeout)
        + sprint.count_in_status(Fate::Blocked)) as u64;
    let (landed, total) = sprint_progress(sprint, ready);
    let mut parts = vec!["SPRINT".to_owned(), format!("{landed}/{total} tasks")];
    if failed > 0 {
        parts.push(format!("{failed} failed"));
    }
    let left = |ms: u64| match sprint.is_over() {
        true => String::new(),
        false => format!(" ({} left)", format_duration(ms.next_multiple_of(1000))),
    };
    parts.push(match sprint.plan.goal {
        SprintEndCondition::Count(count) => {
            format!("Until {} are verified", pluralize(u64::from(count), "task"))
        }
        SprintEndCondition::Duration { ms } => {
            let gone = sprint.worked_ms(now);
            format!("For {}{}", format_duration(ms), left(ms.saturating_sub(gone)))
        }
        SprintEndCondition::Until(at) => {
            let ms = u64::try_from(at.0 - now.0).unwrap_or(0);
            format!("Until {}{}", format_until(at.0, clock::now_ms()), left(ms))
        }
        SprintEndCondition::NoReady => "Until nothing is ready".to_owned(),
    });
    match &sprint.phase {
        SprintPhase::Running => {}
        SprintPhase::Paused { reason, .. } => parts.push(format!("PAUSED: {reason}")),
        SprintPhase::Completing { .. } => parts.push("finishing what is under way".to_owned()),
        SprintPhase::Over { why, .. } => parts.push(format!("over: {}", sentences::sprint_end(*why))),
    }
    parts.join(" | ")
}

/// The open sprint in one line, if there is one.
pub(crate) fn open_sprint_bar(reader: &StoreReader) -> Result<Option<String>, Problem> {
    const KINDS: [&str; 5] =
        ["sprint-started", "sprint-paused", "sprint-resumed", "sprint-completing", "sprint-ended"];
    let of = |error| problems::from_store_error(&error);
    let Some((_, newest)) = reader.latest(&KINDS).map_err(of)? else { return Ok(None) };
    if matches!(newest.fact, Fact::Engine(EngineEvent::Sprint(SprintEvent::Ended { .. }))) {
        return Ok(None);
    }
    let sprints = reader.sprints().map_err(of)?;
    let Some(open) = sprints.open() else { return Ok(None) };
    let ready = count_ready_tasks(reader, open)?;
    Ok(Some(format!("{} {}", open.id, sprint_bar(open, ready, Timestamp(clock::now_ms())))))
}

fn unknown_sprint_problem(sprint: Option<SprintId>) -> Problem {
    match sprint {
        Some(id) => Problem::new(ProblemCode::UnknownSprint, format!("there is no sprint {id}"))
            .with_hint("`landfall sprint list` shows those there were"),
        None => Problem::new(ProblemCode::UnknownSprint, "there is no sprint yet")
            .with_hint("`landfall sprint start --count 10` starts one"),
    }
}

/// One sprint, and what became of it.
pub(crate) fn sprint_report(
    look: &Query<'_>,
    asked: Option<SprintId>,
) -> Result<Box<api::SprintReport>, Problem> {
    let of = |error| problems::from_store_error(&error);
    let reader = look.place.open_reader()?.ok_or_else(|| unknown_sprint_problem(asked))?;
    let sprints = reader.sprints().map_err(of)?;
    let found = match asked {
        Some(id) => sprints.all_sprints().iter().find(|sprint| sprint.id == id),
        None => sprints.all_sprints().last(),
    };
    let sprint = found.ok_or_else(|| unknown_sprint_problem(asked))?;
    let now = Timestamp(clock::now_ms());
    let ready = if sprint.is_over() { 0 } else { count_ready_tasks(&reader, sprint)? };
    let mut tasks = Vec::new();
    for (id, stat) in &sprint.tasks {
        tasks.extend(reader.task(*id).map_err(of)?.map(|task| task_line(&reader, &task, stat)).transpose()?);
    }
    tasks.sort_by_key(|line: &api::SprintTask| (line.started_ms, line.task));
    let tokens = sprint.tasks.values().map(|stat| stat.tokens).sum();
    let cost: u64 = sprint.tasks.values().map(|stat| stat.micro_usd).sum();
    let (landed, total) = sprint_progress(sprint, ready);
    let more = match sprint.plan.goal {
        _ if sprint.is_over() => 0,
        SprintEndCondition::Count(count) => u64::from(count).saturating_sub(landed),
        SprintEndCondition::Duration { .. } | SprintEndCondition::Until(_) | SprintEndCondition::NoReady => {
            sprint.count_in_status(Fate::Open) as u64 + ready
        }
    };
    let forecast = match sprint.phase {
        // The forecast counts from the last landing: during a pause it would move away.
        SprintPhase::Paused { .. } => None,
        SprintPhase::Running | SprintPhase::Completing { .. } | SprintPhase::Over { .. } => {
            sprint.forecast_completion(now, usize::try_from(more).unwrap_or(usize::MAX))
        }
    };
    let because = match &sprint.phase {
        SprintPhase::Running => String::new(),
        SprintPhase::Paused { reason, .. } => reason.clone(),
        SprintPhase::Completing { why } | SprintPhase::Over { why, .. } => {
            sentences::sprint_end(*why).to_owned()
        }
    };
    let burn = |(place, (at, _)): (usize, &(Timestamp, TaskId))| api::BurnPoint {
        at_ms: at.0,
        landed: place as u64 + 1,
    };
    Ok(Box::new(api::SprintReport {
        sprint: conversions::sprint_id(sprint.id),
        plan: plan(&sprint.plan),
        phase: sprint.phase.stage(),
        driven: is_driven(look, &reader, sprint)?,
        because,
        started_ms: sprint.started.0,
        ended_ms: sprint_end_time(sprint).map(|at| at.0),
        worked_ms: sprint.worked_ms(now),
        paused_ms: paused_ms(sprint, now),
        ready_at_start: sprint.ready,
        ready,
        bar: sprint_bar(sprint, ready, now),
        verdict: sprint_verdict(sprint, &tasks),
        landed,
        total,
        tokens,
        cost_usd: conversions::micro_to_usd(cost),
        burn_up: sprint.landings.iter().enumerate().map(burn).collect(),
        forecast_ms: forecast.map(|at| at.0),
        forecast_of: more,
        tasks,
    }))
}

fn sprint_end_time(sprint: &Sprint) -> Option<Timestamp> {
    match &sprint.phase {
        SprintPhase::Over { at, .. } => Some(*at),
        SprintPhase::Running | SprintPhase::Paused { .. } | SprintPhase::Completing { .. } => None,
    }
}

fn paused_ms(sprint: &Sprint, now: Timestamp) -> u64 {
    let pause = match &sprint.phase {
        SprintPhase::Paused { since, .. } => u64::try_from(now.0 - since.0).unwrap_or(0),
        SprintPhase::Running | SprintPhase::Completing { .. } | SprintPhase::Over { .. } => 0,
    };
    sprint.paused_ms + pause
}

/// Whether the run under way is for it.
fn is_driven(look: &Query<'_>, reader: &StoreReader, sprint: &Sprint) -> Result<bool, Problem> {
    if sprint.is_over() || autopilot::find_active_run(look, reader)?.is_none() {
        return Ok(false);
    }
    Ok(match &sprint.phase {
        SprintPhase::Running | SprintPhase::Completing { .. } => true,
        // Another run than its own would have been begun without it, and is not paused by the same.
        SprintPhase::Paused { .. } => {
            reader.pilot().map_err(|error| problems::from_store_error(&error))?.pause().is_some()
        }
        SprintPhase::Over { .. } => false,
    })
}

fn task_line(reader: &StoreReader, task: &Task, stat: &TaskStat) -> Result<api::SprintTask, Problem> {
    let unmet = reader.unmet(task.id).map_err(|error| problems::from_store_error(&error))?;
    let sent_back = match stat.ejected {
        true => reader
            .events(Seq::ZERO, Some(task.id), u32::MAX)
            .map_err(|error| problems::from_store_error(&error))?,
        false => Vec::new(),
    };
    let sent_back = sent_back.iter().rev().find_map(|(_, entry)| match &entry.fact {
        Fact::Task(_, event @ Event::Ejected { .. }) => Some(sentences::event_sentence(event)),
        Fact::Task(..) | Fact::Engine(_) => None,
    });
    let needs_you = match &task.state {
        TaskState::Waiting { wait, .. } => wait.owner_label() == api::WaitOwner::You,
        TaskState::Review { .. } => true,
        TaskState::Ended(_) => conversions::ended_without_landing(task),
        TaskState::Draft | TaskState::Ready { .. } | TaskState::Active { .. } => false,
    };
    Ok(api::SprintTask {
        task: conversions::task_id(task.id),
        title: task.spec.title.clone(),
        fate: stat.fate,
        status: conversions::to_api_status(TaskStatus::for_task_among_others(task, &unmet, false)),
        started_ms: stat.started.0,
        completed_ms: stat.completed.map(|at| at.0),
        iterations: stat.iterations,
        verified: stat.verified,
        ejected: stat.ejected,
        sent_back,
        needs_you,
        review: stat.review.map(|decision| decision.word().to_owned()),
        owed: task.sign_off == SignOff::Owed,
        commit: task.landed.as_ref().map(|landed| landed.commit.as_str().to_owned()),
        tokens: stat.tokens,
        cost_usd: conversions::micro_to_usd(stat.micro_usd),
        why: why_sentence(task, &TaskRelations::with_unmet_needs(reader, unmet)?),
    })
}

/// What became of it, in one sentence: the bad news is not left out.
fn sprint_verdict(sprint: &Sprint, tasks: &[api::SprintTask]) -> String {
    let count = |fate: Fate| sprint.count_in_status(fate) as u64;
    let landed = count(Fate::Landed);
    let mut parts = vec![match (landed, tasks.len()) {
        (_, 0) => "no task was begun".to_owned(),
        (0, begun) => format!("nothing landed of {}", pluralize(begun as u64, "task")),
        (landed, begun) => format!("{landed} of {} landed", pluralize(begun as u64, "task")),
    }];
    for (many, what) in [
        (count(Fate::Failed), "failed"),
        (count(Fate::Timeout), "ran out"),
        (count(Fate::Blocked), "blocked"),
        (count(Fate::Cancelled), "cancelled"),
        (count(Fate::Open), "not finished"),
    ] {
        if many > 0 {
            parts.push(format!("{many} {what}"));
        }
    }
    let ejected = sprint.tasks.values().filter(|stat| stat.ejected).count();
    if ejected > 0 {
        parts.push(format!("{ejected} sent back out of the landing queue on the way"));
    }
    if let (SprintEndCondition::Count(wanted), true) = (sprint.plan.goal, sprint.is_over())
        && landed < u64::from(wanted)
    {
        parts.push(format!("{wanted} were wanted"));
    }
    let mut text = parts.join(", ");
    text.push('.');
    text
}

/// Every sprint there was.
pub(crate) fn list_sprints(look: &Query<'_>) -> Result<api::SprintList, Problem> {
    let Some(reader) = look.place.open_reader()? else { return Ok(api::SprintList { sprints: Vec::new() }) };
    let sprints = reader.sprints().map_err(|error| problems::from_store_error(&error))?;
    let settings = load_settings_or_defaults(look);
    Ok(api::SprintList {
        sprints: sprints.all_sprints().iter().map(|sprint| to_sprint_record(sprint, &settings)).collect(),
    })
}

fn to_sprint_record(sprint: &Sprint, settings: &Settings) -> api::SprintRecord {
    use serde_json::json;
    const HOUR_MS: f64 = 3_600_000.0;
    #[expect(clippy::cast_precision_loss, reason = "hours of a sprint are few")]
    let value = match sprint.plan.goal {
        SprintEndCondition::Count(count) => json!(count),
        SprintEndCondition::Duration { ms } => json!(ms as f64 / HOUR_MS),
        SprintEndCondition::Until(at) => json!(format_rfc3339(at)),
        SprintEndCondition::NoReady => serde_json::Value::Null,
    };
    let stat = |(task, stat): (&TaskId, &TaskStat)| api::SprintTaskStat {
        task_id: conversions::task_id(*task),
        started_at: format_rfc3339(stat.started),
        completed_at: stat.completed.map(format_rfc3339),
        iterations: stat.iterations,
        verification_passed: stat.verified,
        review_decision: stat.review.map(|decision| decision.word().to_owned()),
    };
    let count = |fate: Fate| sprint.count_in_status(fate) as u64;
    api::SprintRecord {
        id: conversions::sprint_id(sprint.id),
        started_at: format_rfc3339(sprint.started),
        ended_at: sprint_end_time(sprint).map(format_rfc3339),
        target: api::SprintTarget { kind: sprint.plan.goal.word().to_owned(), value },
        phase: sprint.phase.stage(),
        end: match &sprint.phase {
            SprintPhase::Over { why, .. } => Some(why.word().to_owned()),
            SprintPhase::Running | SprintPhase::Paused { .. } | SprintPhase::Completing { .. } => None,
        },
        total_tasks: sprint.tasks.len() as u64,
        completed_tasks: count(Fate::Landed),
        failed_tasks: count(Fate::Failed) + count(Fate::Timeout) + count(Fate::Blocked),
        reviewing_tasks: sprint.tasks.values().filter(|stat| stat.reviewing).count() as u64,
        task_stats: sprint.tasks.iter().map(stat).collect(),
        settings: api::SprintSettings {
            max_iterations: settings.run.iterations_max,
            task_timeout: settings.run.task_limit_ms / 60_000,
            pause_on_stuck: false,
            pause_on_errors: sprint.plan.pause_on_error,
        },
    }
}

fn format_rfc3339(at: Timestamp) -> String {
    Moment::from_millisecond(at.0).map_or_else(|_| at.0.to_string(), |at| at.to_string())
}

impl CommandHandler<'_> {
    fn open_sprint(&self) -> Result<Sprint, Problem> {
        let none = || problems::from_ask_error(&landfall_engine::AskError::NoSprint);
        let reader = self.place.open_reader()?.ok_or_else(none)?;
        let sprints = reader.sprints().map_err(|error| problems::from_store_error(&error))?;
        sprints.open().cloned().ok_or_else(none)
    }

    fn is_sprint_driven(&self, sprint: &Sprint) -> Result<bool, Problem> {
        is_driven(&self.query(), &*self.open_reader()?, sprint)
    }

    pub fn pause_sprint(&self, asked: &api::PauseAsked) -> Result<api::SprintChanged, Problem> {
        let sprint = self.open_sprint()?;
        let id = sprint.id;
        if !self.is_sprint_driven(&sprint)? {
            return Err(Problem::new(
                ProblemCode::NotNow,
                format!("{id} is not being driven, so nothing of it begins"),
            )
            .with_hint("`landfall sprint resume` continues it"));
        }
        self.request_done(EngineRequest::Pause { reason: asked.reason.trim().to_owned() })?;
        let text =
            format!("{id} is paused; iterations under way finish, and `landfall sprint resume` continues.");
        Ok(api::SprintChanged { sprint: conversions::sprint_id(id), text })
    }

    pub fn resume_sprint(&self) -> Result<api::SprintChanged, Problem> {
        let sprint = self.open_sprint()?;
        let id = sprint.id;
        if !self.is_sprint_driven(&sprint)? {
            return Err(Problem::new(ProblemCode::NotNow, format!("the run under way is not for {id}"))
                .with_hint(
                    "when it is over, or after `landfall stop`, `landfall sprint resume` continues it",
                ));
        }
        self.request_done(EngineRequest::Resume)?;
        Ok(api::SprintChanged { sprint: conversions::sprint_id(id), text: format!("{id} goes on.") })
    }

    pub fn cancel_sprint(&self) -> Result<api::SprintChanged, Problem> {
        let id = match (self.ask)(EngineRequest::CancelSprint)? {
            EngineReply::Sprint(id) => id,
            other => return Err(unexpected_reply("a sprint", &other)),
        };
        let text = match self.engine.is_alive() {
            true => format!("{id} starts nothing new; what is under way is finished, then it is over."),
            false => format!("{id} is over; tasks it began go on with the next `landfall run`."),
        };
        Ok(api::SprintChanged { sprint: conversions::sprint_id(id), text })
    }
}

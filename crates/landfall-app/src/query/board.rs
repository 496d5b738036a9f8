//! The board: a page of each column from the tables, and what is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use landfall_api::{self as api, Action, ColumnName, Problem, Request};
use landfall_engine::model::liveness::AgentActivity;
use landfall_engine::model::{
    AttemptPhase, Task, TaskId, TaskState, TaskStatus, Timestamp, WaitReason, Warning,
};
use landfall_engine::settings::VerifySettings;
use landfall_engine::store::{StoreReader, TaskCounts, TaskRow};
use landfall_engine::{LiveAgent, RunningCheck};

use crate::project::conversions::{self, TaskRelations};
use crate::project::query_context::Query;
use crate::project::sentences;
use crate::project::task_cache::{self, Diffstats, TableSnapshot};
use crate::project::{clock, problems};
use crate::query::start_blockers::StartBlockers;
use crate::query::tasks;
use crate::query::{queue, running_checks};

const CARDS: u32 = 50;
const CARDS_MAX: u32 = 500;
const PROBLEMS_MAX: usize = 100; // more than a person takes in; the columns have the rest

/// What only a person ends, by the name of the wait.
const FOR_A_PERSON: [api::WaitFor; 6] = [
    api::WaitFor::Question,
    api::WaitFor::Conflict,
    api::WaitFor::Login,
    api::WaitFor::GateBroken,
    api::WaitFor::Disk,
    api::WaitFor::Pause,
];
const GAVE_UP: [TaskStatus; 3] = [TaskStatus::Blocked, TaskStatus::Failed, TaskStatus::Timeout];

pub(crate) fn build_board(look: &Query<'_>, asked: &api::BoardAsked) -> Result<Box<api::Board>, Problem> {
    let limit = if asked.cards == 0 { CARDS } else { asked.cards.min(CARDS_MAX) };
    let wanted: Vec<ColumnName> = ColumnName::ALL
        .into_iter()
        .filter(|it| asked.columns.is_empty() || asked.columns.contains(it))
        .collect();
    let reader = look.place.open_reader()?;
    // First the number, then the tables: what is written in between is told again, and nothing is missed.
    let moment = match &reader {
        Some(reader) => Some(task_cache::table_snapshot(look.place, reader)?),
        None => None,
    };
    let seq = moment.as_ref().map_or(0, |moment| moment.seq().0);
    let holds = match &reader {
        Some(reader) => StartBlockers::load_current(look.place, look.engine, reader)?,
        None => StartBlockers::default(),
    };
    let status = match &reader {
        Some(reader) => look.status_report_from(reader, &holds)?,
        None => look.status_report()?,
    };
    let live = look.engine.live_agents();
    let (mut columns, mut problems) = (Vec::new(), Vec::new());
    match reader.as_deref().zip(moment) {
        Some((reader, moment)) => {
            let mut maker = BoardBuilder::new(look, reader, moment, holds, &live, limit)?;
            for name in wanted {
                columns.push(maker.build_column(name)?);
            }
            problems = find_troubles(look, &maker, &status);
        }
        None => {
            let empty = |name| api::Column { name, count: 0, cards: Vec::new(), more: 0 };
            columns.extend(wanted.into_iter().map(empty));
            problems.extend(status.warnings.iter().map(|text| warning_trouble(text)));
        }
    }
    let next_landing = match &reader {
        Some(reader) => find_queue_front(look, reader, status.queue.as_deref())?,
        None => None,
    };
    let api::StatusReport {
        counts,
        run,
        engine,
        active: _,
        clashes: _,
        pilot,
        queue,
        sprint,
        reviews_owed,
        issues_left,
        waiting: _,
        accounts,
        spending,
        budgets,
        base,
        disk,
        warnings: _,
        checks: _,
    } = *status;
    Ok(Box::new(api::Board {
        seq,
        at_ms: clock::now_ms(),
        columns,
        problems,
        counts,
        engine,
        run,
        pilot,
        sprint,
        queue,
        next_landing,
        reviews_owed,
        issues_left,
        accounts,
        spending,
        budgets,
        base,
        disk,
    }))
}

/// Whoever is at the front of the landing queue.
fn find_queue_front(
    look: &Query<'_>,
    reader: &StoreReader,
    brief: Option<&api::QueueBrief>,
) -> Result<Option<api::QueuePlace>, Problem> {
    if brief.is_none_or(|brief| brief.waiting == 0) {
        return Ok(None);
    }
    let of = |error| problems::from_store_error(&error);
    let queue = match look.engine.with_snapshot(|view| view.queue.clone()) {
        Some(queue) => queue,
        None => reader.queue().map_err(of)?,
    };
    let Some(id) = queue.line().next() else { return Ok(None) };
    let Some(row) = reader.row(id).map_err(of)? else { return Ok(None) };
    let Some(task) = task_cache::cached_task(look.place, reader, &row)? else { return Ok(None) };
    Ok(Some(queue::queue_place(&queue, &task, 1)))
}

/// Makes columns of rows.
struct BoardBuilder<'a> {
    look: &'a Query<'a>,
    reader: &'a StoreReader,
    moment: Arc<TableSnapshot>,
    live: &'a BTreeMap<TaskId, LiveAgent>,
    limit: u32,
    holds: StartBlockers,
    counts: Arc<TaskCounts>,
    waits: BTreeMap<api::WaitFor, u64>,
    diffs: Diffstats<'a>,
    /// The checks that run now: the task they are for, and which of the gate's commands.
    checking: BTreeMap<TaskId, usize>,
    /// How far they are.
    checks: Vec<RunningCheck>,
    verify: Option<VerifySettings>,
    seen: BTreeMap<TaskId, Arc<Task>>,
}

impl<'a> BoardBuilder<'a> {
    fn new(
        look: &'a Query<'a>,
        reader: &'a StoreReader,
        moment: Arc<TableSnapshot>,
        holds: StartBlockers,
        live: &'a BTreeMap<TaskId, LiveAgent>,
        limit: u32,
    ) -> Result<Self, Problem> {
        let of = |error| problems::from_store_error(&error);
        let waits = reader.waits().map_err(of)?;
        let waits = waits.into_iter().filter_map(|(word, many)| Some((word.parse().ok()?, many)));
        let checking = find_running_checks(look);
        let verify = match checking.is_empty() {
            true => None,
            // Settings that are broken complain elsewhere.
            false => {
                landfall_engine::engine::load_settings(&look.place.root).ok().map(|settings| settings.verify)
            }
        };
        Ok(Self {
            look,
            reader,
            live,
            limit,
            holds,
            counts: moment.task_counts(reader)?,
            moment,
            waits: waits.collect(),
            diffs: Diffstats::new(look),
            checking,
            checks: look.engine.running_checks(),
            verify,
            seen: BTreeMap::new(),
        })
    }

    /// What a task is at, in a word.
    fn activity_label(&self, task: &Task) -> String {
        match &task.state {
            TaskState::Active { .. }
                if !self.look.engine.is_alive() && running_checks::engineless_task_text(task).is_some() =>
            {
                api::TaskActivity::Stopped.word().to_owned()
            }
            TaskState::Active { doing, .. } => tasks::activity(doing).word().to_owned(),
            TaskState::Draft
            | TaskState::Ready { .. }
            | TaskState::Waiting { .. }
            | TaskState::Review { .. }
            | TaskState::Ended(_) => String::new(),
        }
    }

    fn build_column(&mut self, name: ColumnName) -> Result<api::Column, Problem> {
        let of = |error| problems::from_store_error(&error);
        let (reader, limit) = (self.reader, self.limit);
        let waiting = |waits: &BTreeMap<api::WaitFor, u64>, person: bool| -> u64 {
            waits.iter().filter(|(wait, _)| FOR_A_PERSON.contains(wait) == person).map(|(_, many)| many).sum()
        };
        let mut cards = Vec::new();
        let count = match name {
            ColumnName::Working => {
                let rows = self.moment.active_tasks(self.look.place, reader)?;
                for (row, _) in rows.iter().take(limit as usize) {
                    cards.push(self.build_card(row.clone(), true)?);
                }
                self.counts.count_of(TaskStatus::Active)
            }
            ColumnName::InReview => {
                for row in reader.list_by_status(TaskStatus::Review, limit).map_err(of)? {
                    cards.push(self.build_card(row, true)?);
                }
                self.counts.count_of(TaskStatus::Review)
            }
            ColumnName::Landing => {
                for row in reader.list_by_status(TaskStatus::Landing, limit).map_err(of)? {
                    cards.push(self.build_card(row, true)?);
                }
                self.counts.count_of(TaskStatus::Landing)
            }
            ColumnName::NeedsYou => {
                let mut rows = Vec::new();
                for wait in FOR_A_PERSON.into_iter().filter(|wait| self.waits.contains_key(wait)) {
                    rows.extend(reader.list_waiting_for(wait.word(), limit).map_err(of)?);
                }
                for status in GAVE_UP {
                    rows.extend(reader.list_by_status(status, limit).map_err(of)?);
                }
                rows.sort_by_key(|row| (row.changed, row.id));
                rows.truncate(limit as usize);
                for row in rows {
                    cards.push(self.build_card(row, true)?);
                }
                waiting(&self.waits, true)
                    + GAVE_UP.map(|status| self.counts.count_of(status)).iter().sum::<u64>()
            }
            ColumnName::DoneToday => {
                let midnight = landfall_engine::local_day(Timestamp(clock::now_ms())).from;
                for (row, at) in reader.done_since(midnight, limit).map_err(of)? {
                    let card = self.build_card(row, true)?;
                    cards.push(api::Card { since_ms: at.0, ..card });
                }
                reader.count_done_since(midnight).map_err(of)?
            }
            ColumnName::Next => {
                for row in self.moment.next(reader, limit)? {
                    cards.push(self.build_card(row, false)?);
                }
                self.counts.count_of(TaskStatus::Ready)
            }
            ColumnName::Waiting => {
                let mut rows = Vec::new();
                for wait in self.waits.keys().filter(|wait| !FOR_A_PERSON.contains(wait)) {
                    rows.extend(reader.list_waiting_for(wait.word(), limit).map_err(of)?);
                }
                rows.sort_by_key(|row| (row.due.is_none(), row.due, row.id));
                rows.truncate(limit as usize);
                let left = limit.saturating_sub(u32::try_from(rows.len()).unwrap_or(limit));
                rows.extend(reader.held(left).map_err(of)?);
                for row in rows {
                    cards.push(self.build_card(row, false)?);
                }
                waiting(&self.waits, false) + self.counts.dependency
            }
        };
        if matches!(name, ColumnName::Working | ColumnName::InReview | ColumnName::Landing) {
            cards.sort_by_key(|card| (card.since_ms, card.id));
        }
        let more = count.saturating_sub(cards.len() as u64);
        Ok(api::Column { name, count, cards, more })
    }

    /// A row as a card; with `whole`, what only the task's own facts say as well.
    fn build_card(&mut self, row: TaskRow, whole: bool) -> Result<api::Card, Problem> {
        let task = match whole {
            true => task_cache::cached_task(self.look.place, self.reader, &row)?,
            false => None,
        };
        let live = self.live.get(&row.id);
        let among = match row.unmet {
            0 => TaskRelations { held: self.holds.hold_reason(&row), ..TaskRelations::default() },
            _ => {
                let unmet = self.reader.unmet(row.id).map_err(|error| problems::from_store_error(&error))?;
                match whole {
                    true => TaskRelations::with_unmet_needs(self.reader, unmet)?,
                    false => TaskRelations { unmet, ..TaskRelations::default() },
                }
            }
        };
        let usage = live.map(|live| live.usage).unwrap_or_default();
        let (tokens, micro_usd) =
            (row.tokens + conversions::total_tokens(usage), row.micro_usd + usage.micro_usd);
        let card = api::Card {
            id: conversions::task_id(row.id),
            status: conversions::to_api_status(conversions::row_status(&row, among.held.is_some())),
            wait: conversions::row_wait(&row, &among),
            phase: row.phase.clone(),
            step: row.step.clone(),
            doing: match running_checks::check_of_task(&self.checks, row.id) {
                Some(check) => running_checks::check_brief(check),
                None => task.as_deref().map(|task| self.activity_label(task)).unwrap_or_default(),
            },
            detail: row.asks.clone().unwrap_or_else(|| ending_detail(&row)),
            profile: task
                .as_deref()
                .and_then(|task| task.driving.as_ref().map(|driving| driving.profile.clone()))
                .or_else(|| row.agent.clone())
                .unwrap_or_else(|| "default".to_owned()),
            agent: live.map(conversions::to_agent_at_work),
            iteration: task.as_deref().map_or(row.iterations, tasks::current_iteration),
            iterations_max: row.iterations_max,
            attempt: row.attempt.0,
            elapsed_ms: task.as_deref().map_or(0, |task| tasks::elapsed_ms(task, clock::now_ms())),
            tokens,
            cost_usd: conversions::micro_to_usd(micro_usd),
            diff: task.as_deref().and_then(|task| self.diffs.task_diffstat(task)),
            checks: task.as_deref().map(|task| self.check_marks(task)).unwrap_or_default(),
            unmet: row.unmet,
            progress: task.as_deref().and_then(crate::query::targets::task_progress),
            size: row.size.map(conversions::to_api_size),
            tags: row.tags.clone(),
            priority: row.priority,
            since_ms: task.as_deref().map_or(row.changed, since_when).0,
            commit: row.landed.as_ref().map(|commit| commit.as_str().to_owned()),
            unverified: task
                .as_deref()
                .and_then(|task| task.gate.as_ref())
                .is_some_and(|gate| gate.is_empty()),
            title: row.title,
        };
        if let Some(task) = task {
            self.seen.insert(row.id, task);
        }
        Ok(card)
    }

    /// The checks of the verification that runs, or of the last one.
    fn check_marks(&self, task: &Task) -> Vec<api::CheckMark> {
        if let (Some(place), Some(verify)) = (self.checking.get(&task.id), &self.verify) {
            let mark = |(at, command): (usize, &landfall_engine::settings::VerifyCommand)| api::CheckMark {
                name: command.name.clone(),
                state: match at.cmp(place) {
                    std::cmp::Ordering::Less => api::MarkState::Over,
                    std::cmp::Ordering::Equal => api::MarkState::Running,
                    std::cmp::Ordering::Greater => api::MarkState::Waiting,
                },
                outcome: None,
                took_ms: None,
                limit_ms: Some(command.timeout_ms),
            };
            return verify.commands.iter().enumerate().map(mark).collect();
        }
        let Some(gate) = &task.gate else { return Vec::new() };
        let mark = |command: &landfall_engine::model::gate::CommandResult| api::CheckMark {
            name: command.name.clone(),
            state: api::MarkState::Over,
            outcome: Some(conversions::to_api_outcome(command.outcome)),
            took_ms: Some(command.took_ms),
            limit_ms: Some(command.limit_ms),
        };
        gate.commands.iter().map(mark).collect()
    }
}

/// Which checks run, by the notes their lanes hold: the task, and which command of the gate.
fn find_running_checks(look: &Query<'_>) -> BTreeMap<TaskId, usize> {
    let running = crate::query::fleet::list_lanes(look.place).into_iter().filter_map(|(_, check)| check);
    let parsed = running.filter_map(|name| {
        let mut parts = name.split('-');
        let task = parts.next()?.parse::<TaskId>().ok()?;
        let place = parts.find_map(|part| part.strip_prefix('v')?.parse::<usize>().ok())?;
        Some((task, place))
    });
    parsed.collect()
}

/// Why a task ended, in a line.
fn ending_detail(row: &TaskRow) -> String {
    match (&row.ended, row.detail.is_empty()) {
        // The status says what became of it; a code beside a sentence tells nobody more.
        (Some(_), false) if row.landed.is_none() => row.detail.clone(),
        (Some(code), true) if row.landed.is_none() => code.clone(),
        _ => String::new(),
    }
}

/// When it came to be where it is.
fn since_when(task: &Task) -> Timestamp {
    match &task.state {
        TaskState::Ready { since, .. }
        | TaskState::Waiting { since, .. }
        | TaskState::Active {
            doing: AttemptPhase::Running { since, .. } | AttemptPhase::Queued { since },
            ..
        } => *since,
        TaskState::Active { .. } | TaskState::Draft | TaskState::Review { .. } | TaskState::Ended(_) => {
            task.changed
        }
    }
}

/// What is wrong, the worst first.
fn find_troubles(
    look: &Query<'_>,
    maker: &BoardBuilder<'_>,
    status: &api::StatusReport,
) -> Vec<api::Trouble> {
    let mut found = Vec::new();
    for (id, live) in maker.live {
        found.extend(agent_trouble(*id, live));
    }
    for (id, task) in &maker.seen {
        found.extend(task_troubles(*id, task));
    }
    found.extend(status.accounts.iter().filter_map(account_trouble));
    if let Some(hold) = status.queue.as_ref().and_then(|queue| queue.hold.as_ref()) {
        let resume = Request::QueueResume(api::QueueResume::default());
        found.push(api::Trouble {
            since_ms: Some(hold.since_ms),
            until_ms: hold.until_ms,
            hint: hold.hint.clone(),
            actions: vec![Action::new("Resume the queue", &resume)],
            ..new_trouble(
                format!("queue-held-{}", hold.since_ms),
                if hold.why == api::HoldReason::Person {
                    api::Severity::Warning
                } else {
                    api::Severity::Error
                },
                api::TroubleKind::QueueHeld,
                format!("the landing queue is held: {}", hold.reason),
            )
        });
    }
    if let Some(pause) = status.pilot.as_ref().and_then(|pilot| pilot.pause.as_ref()) {
        found.push(api::Trouble {
            since_ms: Some(pause.since_ms),
            hint: "`landfall run resume` lets it continue".to_owned(),
            actions: vec![Action::new("Resume", &Request::Resume(api::Nothing {}))],
            ..new_trouble(
                format!("paused-{}", pause.since_ms),
                if pause.why == api::PauseReason::Person {
                    api::Severity::Info
                } else {
                    api::Severity::Error
                },
                api::TroubleKind::Paused,
                format!("the run starts nothing new: {}", pause.reason),
            )
        });
    }
    if let Some(spent) = &maker.holds.spent {
        found.push(api::Trouble {
            until_ms: spent.until.map(|until| until.0),
            hint: match spent.until {
                Some(_) => "agents start again by themselves then; a higher budget in the settings is used by the next run".to_owned(),
                None => "the next `landfall run` continues".to_owned(),
            },
            ..new_trouble(
                "budget".to_owned(),
                api::Severity::Warning,
                api::TroubleKind::Budget,
                sentences::exhausted_budget_text(spent),
            )
        });
    }
    if let Some((low_disk, clashes)) =
        look.engine.with_snapshot(|view| (view.low_disk.clone(), view.clashes.clone()))
    {
        if let Some(text) = low_disk {
            found.push(api::Trouble {
                hint: "`landfall project reclaim --dry-run` shows what can be given back".to_owned(),
                ..new_trouble("disk".to_owned(), api::Severity::Error, api::TroubleKind::Disk, text)
            });
        }
        for ((one, other), files) in clashes {
            found.push(api::Trouble {
                task: Some(conversions::task_id(one)),
                hint: "whoever lands second has to resolve it".to_owned(),
                ..new_trouble(
                    format!("clash-{one}-{other}"),
                    api::Severity::Info,
                    api::TroubleKind::Clash,
                    format!("{one} and {other} change the same lines of {}", files.join(", ")),
                )
            });
        }
    }
    found.extend(status.warnings.iter().map(|text| warning_trouble(text)));
    let mut known = BTreeSet::new();
    found.retain(|it| known.insert(it.key.clone()));
    found.sort_by(|a, b| (a.severity, a.since_ms, &a.key).cmp(&(b.severity, b.since_ms, &b.key)));
    found.truncate(PROBLEMS_MAX);
    found
}

fn new_trouble(key: String, severity: api::Severity, kind: api::TroubleKind, text: String) -> api::Trouble {
    api::Trouble {
        key,
        severity,
        kind,
        text,
        task: None,
        since_ms: None,
        until_ms: None,
        hint: String::new(),
        actions: Vec::new(),
    }
}

fn warning_trouble(text: &str) -> api::Trouble {
    let key: String = text.chars().filter(|c| !c.is_ascii_digit()).take(60).collect(); // figures in it change
    let kind = match () {
        () if text.contains("not in your branch") => api::TroubleKind::Unpublished,
        () if text.contains("left on the disk") => api::TroubleKind::Disk,
        () => api::TroubleKind::Warning,
    };
    new_trouble(format!("warning-{key}"), api::Severity::Warning, kind, text.to_owned())
}

const STALLED_MS: u64 = 5 * 60 * 1000; // longer than a model thinks; a build that is at work counts as working

fn agent_trouble(id: TaskId, live: &LiveAgent) -> Option<api::Trouble> {
    let (severity, kind, what) = match live.class {
        Some(AgentActivity::Looping) => {
            (api::Severity::Warning, api::TroubleKind::Looping, "does the same over and over")
        }
        Some(AgentActivity::Unanswered) => {
            (api::Severity::Warning, api::TroubleKind::Stalled, "is not answered by its model")
        }
        Some(AgentActivity::Dead) => (api::Severity::Error, api::TroubleKind::Dead, "shows no sign of life"),
        Some(AgentActivity::WaitingForModel | AgentActivity::WaitingForPerson)
            if live.quiet_ms > STALLED_MS =>
        {
            (api::Severity::Warning, api::TroubleKind::Stalled, "has said nothing for long")
        }
        Some(
            AgentActivity::Working
            | AgentActivity::InTool
            | AgentActivity::WaitingForModel
            | AgentActivity::WaitingForPerson,
        )
        | None => {
            return None;
        }
    };
    // One task is stopped at once: its agent ends within seconds.
    let stop = Request::Stop(api::StopAsked { task: Some(conversions::task_id(id)), now: false });
    Some(api::Trouble {
        task: Some(conversions::task_id(id)),
        hint: format!("`landfall log {id} --agent` shows what it said; `landfall stop {id}` pauses it"),
        actions: vec![Action::new("Stop its agent", &stop).with_confirmation()],
        ..new_trouble(
            format!("agent-{id}-{}", what.split(' ').next().unwrap_or_default()),
            severity,
            kind,
            match live.evidence.as_str() {
                "" => format!("the agent of {id} {what}"),
                evidence => format!("the agent of {id} {what}: {evidence}"),
            },
        )
    })
}

fn task_troubles(id: TaskId, task: &Task) -> Vec<api::Trouble> {
    let mut found = Vec::new();
    if let TaskState::Waiting { wait: WaitReason::GateBroken { command, detail }, since, .. } = &task.state {
        let retry =
            Request::Retry(api::Retry { tasks: vec![conversions::task_id(id)], fresh: false, note: None });
        found.push(api::Trouble {
            task: Some(conversions::task_id(id)),
            since_ms: Some(since.0),
            hint: "mend the check on the base branch; a new commit there lets it go on".to_owned(),
            actions: vec![Action::new("Try again", &retry)],
            ..new_trouble(
                format!("gate-{command}"),
                api::Severity::Error,
                api::TroubleKind::GateBroken,
                format!("the check `{command}` cannot be trusted: {detail}"),
            )
        });
    }
    let stuck = task.warnings.iter().rev().find_map(|warning| match warning {
        Warning::Stuck { iterations } => Some(*iterations),
        _ => None,
    });
    if let (Some(iterations), TaskState::Active { .. }) = (stuck, &task.state)
        && task.counters.fruitless >= iterations
    {
        found.push(api::Trouble {
            task: Some(conversions::task_id(id)),
            hint: format!("`landfall log {id} --agent` shows what it does; `landfall stop {id}` pauses it"),
            ..new_trouble(
                format!("stuck-{id}"),
                api::Severity::Warning,
                api::TroubleKind::Stuck,
                format!("{id} has left no commit in {} iterations", task.counters.fruitless),
            )
        });
    }
    found
}

fn account_trouble(line: &api::AccountLine) -> Option<api::Trouble> {
    let account = &line.account;
    let (severity, text, hint) = match line.state {
        api::AccountStanding::Open => return None,
        api::AccountStanding::UsedUp => (
            api::Severity::Info,
            format!("the account `{account}` is used up"),
            match line.until_is_a_guess {
                true => {
                    "no reset was named, so the time is a guess; one agent tries it then, and nothing is lost meanwhile"
                }
                false => "one agent tries it after its reset; nothing is lost meanwhile",
            },
        ),
        api::AccountStanding::Troubled => (
            api::Severity::Info,
            format!("the provider of the account `{account}` has a passing trouble"),
            "one agent tries it a little later",
        ),
        api::AccountStanding::LoggedOut => (
            api::Severity::Error,
            format!("the account `{account}` wants a login"),
            "log in, then answer the task that asks with `done`",
        ),
    };
    let actions = match (line.state, line.tasks.first()) {
        (api::AccountStanding::LoggedOut, Some(task)) => {
            let done = Request::Answer(api::Answer { task: *task, text: "done".to_owned() });
            vec![Action::new("I have logged in", &done)]
        }
        _ => Vec::new(),
    };
    Some(api::Trouble {
        until_ms: line.until_ms,
        hint: hint.to_owned(),
        actions,
        ..new_trouble(format!("account-{account}"), severity, api::TroubleKind::Account, text)
    })
}

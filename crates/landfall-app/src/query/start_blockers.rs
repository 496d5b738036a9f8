//! What keeps tasks from starting although they could: slots, accounts, budgets. The engine that runs knows; without one,
//! the tables and the settings say what the next run will find.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use landfall_api::{self as api, Problem};
use landfall_engine::flows;
use landfall_engine::model::{
    AccountState, EngineEvent, Event, ExhaustedBudget, Fact, Flow, RunBudgets, SpendLog, Spending, StepKind,
    Task, TaskId, TaskStatus, Timestamp, WaitReason, World,
};
use landfall_engine::settings::Settings;
use landfall_engine::store::{RunRow, StoreReader, TaskRow};
use landfall_engine::{AccountAllowance, engine, local_day};

use crate::project::engine_at::EngineLocation;
use crate::project::place::ProjectLocation;
use crate::project::{clock, conversions, problems, task_cache};

/// What holds tasks back now.
#[derive(Default)]
pub(crate) struct StartBlockers {
    /// The run under way.
    pub run: Option<RunRow>,
    /// How many slots are taken.
    pub agents: u32,
    /// Every slot is taken.
    pub full: bool,
    /// The budget that is used up.
    pub spent: Option<ExhaustedBudget>,
    /// Those at the front of the line whose turn it is not.
    turns: BTreeMap<TaskId, WaitReason>,
    /// Accounts that are not open.
    shut: BTreeMap<String, AccountState>,
    allowances: BTreeMap<String, AccountAllowance>,
    spending: Option<(Spending, Spending)>,
    purse: RunBudgets,
    /// Routes, accounts and the tasks at work: the model's own rule is asked.
    world: World,
    flows: BTreeMap<String, Arc<Flow>>,
    flow: String,
}

const ROWS_MAX: u32 = 1_000; // tasks that wait that are looked at; a list has no more

impl StartBlockers {
    /// As it is now.
    pub fn load_current(
        place: &ProjectLocation,
        engine: &EngineLocation,
        reader: &StoreReader,
    ) -> Result<Self, Problem> {
        let of = |error| problems::from_store_error(&error);
        let newest = reader.runs(1).map_err(of)?.pop();
        let run = newest.filter(|run| run.ended.is_none() && engine.is_alive());
        let at_work = match &run {
            Some(_) => task_cache::table_snapshot(place, reader)?.active_tasks(place, reader)?,
            None => Arc::default(),
        };
        let holding = at_work.iter().filter(|(_, task)| crate::query::tasks::holds_slot(task)).count();
        let full = run.as_ref().is_some_and(|run| holding >= run.slots as usize);
        let agents = u32::try_from(holding).unwrap_or(u32::MAX);
        let mut holds = Self { run, agents, full, ..Self::default() };
        let settings = match engine {
            EngineLocation::Here { site } => {
                let state = site.live.lock();
                let view = &state.view;
                holds.spent.clone_from(&view.spent);
                holds.shut.clone_from(&view.shut);
                holds.turns.clone_from(&view.turns);
                holds.allowances.clone_from(&view.allowances);
                drop(state);
                holds.spending = Some(site.current_spending());
                Some(site.settings.clone())
            }
            EngineLocation::There { .. } | EngineLocation::Resting { .. } | EngineLocation::Nowhere => {
                holds.load_at_rest(place, reader)?
            }
        };
        let Some(settings) = settings else { return Ok(holds) };
        holds.purse = settings.purse;
        if holds.is_shut() {
            holds.prepare_world(place, &settings, &at_work);
        }
        Ok(holds)
    }

    /// What the next run will find, by the tables. Settings are read only where they matter, and given back then: this
    /// is on the way of every `list`.
    fn load_at_rest(
        &mut self,
        place: &ProjectLocation,
        reader: &StoreReader,
    ) -> Result<Option<Settings>, Problem> {
        let of = |error| problems::from_store_error(&error);
        for row in reader.waiting(ROWS_MAX).map_err(of)? {
            let wait: Option<api::WaitFor> = row.wait.as_deref().and_then(|word| word.parse().ok());
            let state = match (wait, row.due) {
                (Some(api::WaitFor::Quota), Some(until)) => {
                    AccountState::UsedUp { until, guessed: row.detail == landfall_engine::store::GUESS }
                }
                (Some(api::WaitFor::Login), _) => AccountState::LoggedOut { task: row.id },
                _ => continue,
            };
            let task = reader.task(row.id).map_err(of)?;
            if let Some(driving) = task.and_then(|task| task.driving) {
                self.shut.insert(driving.account, state);
            }
        }
        let budget = place.settings_text().is_some_and(|text| text.contains("day_"));
        if self.shut.is_empty() && !budget {
            return Ok(None);
        }
        // Settings that are broken complain where they are used.
        let Ok(settings) = engine::load_settings(&place.root) else { return Ok(None) };
        if settings.purse.day != landfall_engine::model::Budget::default() {
            let today = local_day(Timestamp(clock::now_ms()));
            let mut ledger = SpendLog::default();
            self.spending =
                Some((Spending::default(), read_spending_since(reader, today.from, &mut ledger)?));
            let purse = RunBudgets { day: settings.purse.day, ..RunBudgets::default() };
            self.spent = purse.exhausted_budget(&ledger, Spending::default(), today);
        }
        Ok(Some(settings))
    }

    /// Makes ready to say what each task waits for.
    fn prepare_world(
        &mut self,
        place: &ProjectLocation,
        settings: &Settings,
        at_work: &[(TaskRow, Arc<Task>)],
    ) {
        self.flows = flows::load_flows(Some(&place.root.join(".landfall/flows"))).flows;
        self.flow.clone_from(&settings.project.flow);
        self.world.set_routes(engine::profile_routes(settings));
        for (account, state) in &self.shut {
            self.world.set_account(account, state.clone());
        }
        for (_, task) in at_work {
            self.world.put_task(Task::clone(task));
        }
    }

    /// Whether anything but slots may hold a task back.
    pub fn is_shut(&self) -> bool {
        self.spent.is_some() || !self.shut.is_empty()
    }

    /// Whether any task that could start may be held back.
    pub fn may_hold_tasks(&self) -> bool {
        self.full || self.is_shut() || !self.turns.is_empty()
    }

    /// How many of those at the front of the line one must look at, to know what everybody waits for and to name `named` who
    /// wait for a slot; none where that takes all of them.
    pub fn front_rows_needed(&self, named: u32) -> Option<u32> {
        let turns = u32::try_from(self.turns.len()).unwrap_or(u32::MAX);
        (self.full && !self.is_shut()).then(|| named.saturating_add(turns))
    }

    /// What keeps a task from starting that could otherwise.
    pub fn hold_reason(&self, row: &TaskRow) -> Option<WaitReason> {
        if row.status != TaskStatus::Ready || row.unmet > 0 {
            return None;
        }
        if self.is_shut() && self.needs_agent(row) {
            if let Some(ExhaustedBudget { what, until, .. }) = &self.spent {
                return Some(WaitReason::Budget { what: what.clone(), until: *until });
            }
            if let Err(wait) = self.world.open_route(profile_name(row), Timestamp(clock::now_ms())) {
                return Some(wait);
            }
        }
        self.turns.get(&row.id).cloned().or_else(|| self.full.then_some(WaitReason::Slot))
    }

    /// The account a task waits for, if it is one.
    pub fn account_of<'a>(&'a self, row: &'a TaskRow) -> &'a str {
        self.world.account_of(profile_name(row))
    }

    /// Whether its next step needs an agent.
    fn needs_agent(&self, row: &TaskRow) -> bool {
        let Some(flow) = self.flows.get(row.flow.as_deref().unwrap_or(&self.flow)) else { return true };
        let step = row.step.as_deref().unwrap_or(flow.entry.as_str());
        let step = flow.steps.iter().find(|it| it.name.as_str() == step);
        step.is_none_or(|step| matches!(step.kind, StepKind::Agent { .. }))
    }

    /// The accounts worth a line, with those who wait for each.
    pub fn account_lines(
        &self,
        waiting: &BTreeMap<String, BTreeSet<api::WireTaskId>>,
    ) -> Vec<api::AccountLine> {
        let names: BTreeSet<&String> = self.shut.keys().chain(self.allowances.keys()).collect();
        let now = Timestamp(clock::now_ms());
        let line = |account: &String| {
            let is_guess = matches!(self.shut.get(account), Some(AccountState::UsedUp { guessed: true, .. }));
            let (state, until) = match self.shut.get(account) {
                None | Some(AccountState::Open) => (api::AccountStanding::Open, None),
                Some(AccountState::UsedUp { until, .. }) => (api::AccountStanding::UsedUp, Some(until.0)),
                Some(AccountState::Troubled { until, .. }) => (api::AccountStanding::Troubled, Some(until.0)),
                Some(AccountState::LoggedOut { .. }) => (api::AccountStanding::LoggedOut, None),
            };
            let allowance =
                self.allowances.get(account).filter(|it| it.until.is_none_or(|until| until > now));
            api::AccountLine {
                account: account.clone(),
                state,
                until_ms: until,
                until_is_a_guess: is_guess,
                used_percent: allowance.map(|it| it.used_percent),
                resets_ms: allowance.and_then(|it| it.until).map(|until| until.0),
                tasks: waiting.get(account).into_iter().flatten().copied().collect(),
            }
        };
        let told =
            |line: &api::AccountLine| line.state != api::AccountStanding::Open || line.used_percent.is_some();
        names.into_iter().map(line).filter(told).collect()
    }

    /// What was spent today, as far as there is a budget for it.
    pub fn spending_today(&self) -> Spending {
        self.spending.map(|(_, today)| today).unwrap_or_default()
    }

    /// What was spent, and the budgets for it. Without an engine and without a budget for the day, the journal says it.
    pub fn spending_lines(
        &self,
        reader: &StoreReader,
    ) -> Result<(Vec<api::SpendingLine>, Vec<api::BudgetLine>), Problem> {
        let (run, today) = match self.spending {
            Some(spending) => spending,
            None => {
                let today = local_day(Timestamp(clock::now_ms()));
                (Spending::default(), read_spending_since(reader, today.from, &mut SpendLog::default())?)
            }
        };
        let runs = self.run.is_some().then_some((api::BudgetScope::Run, run, self.purse.run));
        let scopes: Vec<_> =
            runs.into_iter().chain([(api::BudgetScope::Day, today, self.purse.day)]).collect();
        let told = |spent: &Spending| *spent != Spending::default();
        let lines = scopes.iter().filter(|(_, spent, _)| told(spent)).map(|(scope, spent, _)| {
            let usage = conversions::to_api_usage(spent.usage);
            api::SpendingLine { scope: *scope, usage, time_ms: spent.time_ms }
        });
        let budgets = scopes
            .iter()
            .flat_map(|(scope, spent, budget)| conversions::list_budget_lines(*scope, *spent, budget));
        Ok((lines.collect(), budgets.collect()))
    }
}

fn profile_name(row: &TaskRow) -> &str {
    row.agent.as_deref().unwrap_or("default")
}

/// What the journal says was spent since then. It is read from its end, as far back as that.
fn read_spending_since(
    reader: &StoreReader,
    from: Timestamp,
    ledger: &mut SpendLog,
) -> Result<Spending, Problem> {
    const PAGE: u32 = 2_000;
    const EVENTS_MAX: u32 = 256_000; // a day of more is not counted while nobody drives
    let mut page = PAGE;
    let events = loop {
        let events = reader.tail(page).map_err(|error| problems::from_store_error(&error))?;
        let whole = events.len() < page as usize || events.first().is_none_or(|(_, it)| it.at < from);
        if whole || page >= EVENTS_MAX {
            break events;
        }
        page *= 4;
    };
    for (_, entry) in events.iter().filter(|(_, entry)| entry.at >= from) {
        match &entry.fact {
            Fact::Task(_, Event::IterationEnded { usage, took_ms, .. })
            | Fact::Engine(EngineEvent::Consulted { usage, took_ms, .. }) => {
                ledger.note(entry.at, Spending { usage: *usage, time_ms: *took_ms });
            }
            Fact::Task(..) | Fact::Engine(_) => {}
        }
    }
    Ok(ledger.spent_since(from))
}

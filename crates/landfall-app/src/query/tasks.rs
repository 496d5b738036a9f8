//! What can be answered by looking: from the tables, without git, without replay, beside a running engine or without
//! one. A project whose journal has not begun answers as an empty one.

use std::collections::{BTreeMap, BTreeSet};

use conversions::TaskRelations;
use landfall_api::{self as api, Problem, ProblemCode};
use landfall_engine::host::disk;
use landfall_engine::host::git::{BASE_REF, DiffOptions, Git, Oid, Repo, Store};
use landfall_engine::model::base_gate::explain_base_failure;
use landfall_engine::model::pilot::{PilotEvent, PilotMode};
use landfall_engine::model::sprint::SprintPhase;
use landfall_engine::model::{
    AgentUsage, AttemptPhase, Commit, EngineEvent, Event, Fact, JournalEntry, QueueEvent, RunEnd, Spending,
    Task, TaskId, TaskState, TaskStatus, WaitReason, own_limits_text,
};
use landfall_engine::settings::PublishTarget;
use landfall_engine::store::{Seq, StoreReader, TaskFilter, TaskRow, encode_as_json};
use landfall_engine::{LiveAgent, LiveSnapshot, journal_link};
use landfall_text::{format_bytes, pluralize};

use crate::project::engine_at::EngineLocation;
use crate::project::place::ProjectLocation;
use crate::project::query_context::Query;
use crate::project::reader_pool::PooledReader;
use crate::project::task_cache::TableSnapshot;
use crate::project::{clock, conversions, problems, task_cache};
use crate::project::{dead_ends, sentences};
use crate::query::autopilot;
use crate::query::start_blockers::StartBlockers;
use crate::query::{interrupted_publish, open_acceptance, queue, reviews, running_checks, sprints};

const PAGE: u32 = 100; // what a list shows when nobody says how much
const PAGE_MAX: u32 = 1_000; // more is asked for page by page
const LOG_PAGE: u32 = 200;
const GROUP_TASKS_MAX: u32 = 20; // ids named per wait; the rest is counted

impl Query<'_> {
    fn open_reader(&self) -> Result<Option<PooledReader>, Problem> {
        self.place.open_reader()
    }

    /// The tables; a project without any has no task that could be asked about.
    fn reader_for_task(&self, task: TaskId) -> Result<PooledReader, Problem> {
        self.open_reader()?.ok_or_else(|| problems::unknown_task(task))
    }

    fn start_blockers(&self, reader: &StoreReader) -> Result<StartBlockers, Problem> {
        StartBlockers::load_current(self.place, self.engine, reader)
    }

    fn task_relations(
        &self,
        reader: &StoreReader,
        row: &TaskRow,
        holds: &StartBlockers,
    ) -> Result<TaskRelations, Problem> {
        let of = |error| problems::from_store_error(&error);
        let mut needs = reader.needs_graph(&[row.id]).map_err(of)?;
        let needs = needs.remove(&row.id).unwrap_or_default();
        let unmet = if row.unmet > 0 { reader.unmet(row.id).map_err(of)? } else { Vec::new() };
        Ok(TaskRelations {
            needs,
            held: holds.hold_reason(row),
            ..TaskRelations::with_unmet_needs(reader, unmet)?
        })
    }

    pub fn list_tasks(&self, asked: &api::Filter) -> Result<api::TaskPage, Problem> {
        let Some(reader) = self.open_reader()? else {
            return Ok(api::TaskPage { tasks: Vec::new(), next: None });
        };
        let limit = page_size(asked.limit, PAGE);
        let after = asked.after.map(conversions::model_task);
        let holds = self.start_blockers(&reader)?;
        let mut rows: BTreeMap<TaskId, TaskRow> = BTreeMap::new();
        for status in stored_statuses(&asked.status, holds.may_hold_tasks()) {
            let filter = TaskFilter {
                status,
                tag: asked.tag.clone(),
                text: asked.text.clone(),
                parent: asked.parent.map(conversions::model_task),
            };
            // One more than wanted says whether there is a next page.
            let found = reader
                .tasks(&filter, after, limit + 1)
                .map_err(|error| problems::from_store_error(&error))?;
            rows.extend(found.into_iter().map(|row| (row.id, row)));
        }
        let wanted = |row: &TaskRow| {
            asked.status.is_empty()
                || asked.status.contains(&conversions::to_api_status(conversions::row_status(
                    row,
                    holds.hold_reason(row).is_some(),
                )))
        };
        let rows: Vec<TaskRow> = rows.into_values().filter(wanted).take(limit as usize + 1).collect();
        let more = rows.len() > limit as usize;
        let mut tasks = Vec::new();
        let ids: Vec<TaskId> = rows.iter().map(|row| row.id).collect();
        let mut needs = reader.needs_graph(&ids).map_err(|error| problems::from_store_error(&error))?;
        for row in rows.into_iter().take(limit as usize) {
            let unmet = match row.unmet {
                0 => Vec::new(),
                _ => reader.unmet(row.id).map_err(|error| problems::from_store_error(&error))?,
            };
            let needs = needs.remove(&row.id).unwrap_or_default();
            let among = TaskRelations { needs, unmet, held: holds.hold_reason(&row), dead_end: None };
            tasks.push(conversions::to_task_line(row, &among));
        }
        let next = tasks.last().map(|task| task.id).filter(|_| more);
        Ok(api::TaskPage { tasks, next })
    }

    pub fn task_detail(&self, id: TaskId) -> Result<Box<api::TaskDetail>, Problem> {
        let reader = self.reader_for_task(id)?;
        let of = |error| problems::from_store_error(&error);
        let row = reader.row(id).map_err(of)?.ok_or_else(|| problems::unknown_task(id))?;
        let task =
            task_cache::cached_task(self.place, &reader, &row)?.ok_or_else(|| problems::unknown_task(id))?;
        let among = self.task_relations(&reader, &row, &self.start_blockers(&reader)?)?;
        let sentence = self.task_sentence(&reader, &task, &row, &among);
        let mut attempts = task_cache::cached_attempts(self.place, &reader, &row)?.to_vec();
        let mut usage = task.counters.usage;
        // The journal learns what an iteration used when it is over. Until then the engine knows.
        let mut running = AgentUsage::default();
        if let Some(live) = self.engine.live_agents().get(&id) {
            running = live.usage;
            usage = usage.plus(live.usage);
            if let Some(run) = attempts.last_mut().and_then(|attempt| attempt.runs.last_mut())
                && run.took_ms.is_none()
            {
                run.usage = conversions::to_api_usage(live.usage);
                run.model = run.model.take().or_else(|| live.model.clone());
            }
        }
        let feedback: Vec<String> =
            task.feedback.iter().map(|it| format!("{}\n{}", it.about, it.text.trim_end())).collect();
        let workspace = self.place.folder.workspaces_path().join(id.to_string());
        let has_workspace = task.workspace.is_some() && workspace.is_dir();
        Ok(Box::new(api::TaskDetail {
            why: sentence,
            body: task.spec.body.clone(),
            criteria: task.spec.criteria.clone(),
            touches: task.spec.touches.iter().map(ToString::to_string).collect(),
            flow: self.flow_name(&task),
            agent: task.spec.agent.clone().unwrap_or_else(|| "default".to_owned()),
            source: task.spec.source.clone(),
            step: task.step().map(|step| step.as_str().to_owned()),
            attempt: task.attempt.0,
            iterations_max: task.limits.iterations_max,
            counters: conversions::list_counters(&task),
            spent_ms: elapsed_ms(&task, clock::now_ms()),
            limit_ms: task.limits.task_ms,
            tokens: conversions::total_tokens(usage),
            cost_usd: conversions::micro_to_usd(usage.micro_usd),
            usage: conversions::to_api_usage(usage),
            budgets: task_budgets(&task, running),
            gate: task.gate.as_ref().map(conversions::to_api_gate),
            concerns: task.concerns.iter().map(conversions::to_api_concern).collect(),
            feedback: (!feedback.is_empty()).then(|| feedback.join("\n\n")),
            messages: task.messages.clone(),
            held: task.hold.as_ref().map(|hold| hold.reason.clone()),
            own_limits: conversions::to_own_limits(task.own_limits),
            landed_as: self.landing_detail(&reader, &task)?,
            warnings: task.warnings.iter().map(landfall_engine::model::Warning::to_sentence).collect(),
            progress: crate::query::targets::task_flow(self.place, &task)
                .and_then(|flow| crate::query::targets::progress_in(&task, &flow)),
            branch: has_workspace.then(|| format!("landfall/t{}", id.0)),
            workspace: has_workspace.then(|| workspace.display().to_string()),
            attempts,
            added_ms: task.created.0,
            line: conversions::to_task_line(row, &among),
        }))
    }

    fn flow_name(&self, task: &Task) -> String {
        let bound = task.flow.as_ref().map(|flow| flow.name.clone());
        bound.or_else(|| task.spec.flow.clone()).unwrap_or_else(|| self.default_flow())
    }

    fn default_flow(&self) -> String {
        if let EngineLocation::Here { site } = self.engine {
            return site.settings.project.flow.clone();
        }
        let loaded = landfall_engine::engine::load_settings(&self.place.root);
        loaded.map_or_else(|_| "loop".to_owned(), |settings| settings.project.flow) // broken ones complain elsewhere
    }

    fn landing_detail(&self, reader: &StoreReader, task: &Task) -> Result<Option<api::Landed>, Problem> {
        let Some(landed) = &task.landed else { return Ok(None) };
        let base = self.base_status(reader)?;
        let publication = match base.held {
            Some(reason) if !base.published => api::Publication::Held(reason),
            Some(_) | None => api::Publication::Published,
        };
        Ok(Some(api::Landed {
            commit: landed.commit.as_str().to_owned(),
            base_before: landed.base_before.as_str().to_owned(),
            tree: landed.tree.as_str().to_owned(),
            proof: landed.proof.clone(),
            at_ms: landed.at.0,
            publication,
        }))
    }

    pub fn explain_task(&self, id: TaskId) -> Result<api::Why, Problem> {
        let reader = self.reader_for_task(id)?;
        let of = |error| problems::from_store_error(&error);
        let row = reader.row(id).map_err(of)?.ok_or_else(|| problems::unknown_task(id))?;
        let task = reader.task(id).map_err(of)?.ok_or_else(|| problems::unknown_task(id))?;
        // Only a task that could start wants to know what is in its way.
        let holds = if row.effective_status() == TaskStatus::Ready {
            self.start_blockers(&reader)?
        } else {
            StartBlockers::default()
        };
        let among = self.task_relations(&reader, &row, &holds)?;
        let status = conversions::to_api_status(conversions::row_status(&row, among.held.is_some()));
        let account =
            matches!(among.held, Some(WaitReason::Quota { .. })).then(|| holds.account_of(&row).to_owned());
        let account = account.or_else(|| account_waited_for(&task));
        let mut details = queue::queue_details(&reader, &task)?;
        details.extend(self::task_details(&reader, &task, &among)?);
        details.extend(account.map(|account| {
            format!("the account is `{account}`; `landfall status` shows who else waits for it")
        }));
        details.extend(crate::query::targets::target_details(&task));
        let sentence = self.task_sentence(&reader, &task, &row, &among);
        let progress = crate::query::targets::task_progress(&task);
        let task = conversions::task_id(id);
        let clashes =
            self.list_clashes().into_iter().filter_map(|clash| clash_seen_from(task, clash)).collect();
        Ok(api::Why { task, status, sentence, details, progress, clashes })
    }

    /// Works under way that do not fit together. Only the process that drives them knows.
    fn list_clashes(&self) -> Vec<api::ClashLine> {
        let seen = self.engine.with_snapshot(|view| view.clashes.clone()).unwrap_or_default();
        let line = |((task, with), files)| api::ClashLine {
            task: conversions::task_id(task),
            with: conversions::task_id(with),
            files,
        };
        seen.into_iter().map(line).collect()
    }

    /// Why a task is where it is; a run that does not begin it is named.
    fn task_sentence(
        &self,
        reader: &StoreReader,
        task: &Task,
        row: &TaskRow,
        among: &TaskRelations,
    ) -> String {
        let free = row.effective_status() == TaskStatus::Ready && among.held.is_none();
        let why = if free {
            self.engine.with_snapshot(|view| not_begun_reason(task, view)).flatten()
        } else {
            None
        };
        let red = || match free && !self.engine.is_alive() {
            true => self.red_base_text(reader).ok().flatten().map(|reason| base_hold_text(&reason)),
            false => None,
        };
        if let Some(check) = running_checks::check_of_task(&self.engine.running_checks(), task.id) {
            return format!("{} {}", task.id, running_checks::check_sentence(check));
        }
        if !self.engine.is_alive()
            && let Some(stopped) = running_checks::engineless_task_text(task)
        {
            return stopped;
        }
        match why.or_else(red) {
            Some(why) => format!("{} {why}", task.id),
            None => why_sentence(task, among),
        }
    }

    pub fn status_report(&self) -> Result<Box<api::StatusReport>, Problem> {
        let Some(reader) = self.open_reader()? else {
            let (branch, disk) = (self.place.base_branch_or_empty(), disk_state(self.place));
            let commit = self.place.branch_tip(&branch).unwrap_or_default();
            return Ok(Box::new(api::StatusReport {
                counts: BTreeMap::new(),
                run: None,
                engine: None,
                checks: Vec::new(),
                active: Vec::new(),
                pilot: None,
                queue: None,
                sprint: None,
                clashes: Vec::new(),
                reviews_owed: 0,
                issues_left: 0,
                waiting: Vec::new(),
                accounts: Vec::new(),
                spending: Vec::new(),
                budgets: Vec::new(),
                base: api::Base { branch, commit, published: true, held: None, unpublished: None },
                warnings: lost_journal_warning(self.place)
                    .into_iter()
                    .chain(lowered_sandbox_warning(self.place))
                    .chain(disk_warnings(self.place, disk.as_ref()))
                    .collect(),
                disk,
            }));
        };
        let holds = self.start_blockers(&reader)?;
        self.status_report_from(&reader, &holds)
    }

    /// The same, by tables that are open already.
    pub fn status_report_from(
        &self,
        reader: &StoreReader,
        holds: &StartBlockers,
    ) -> Result<Box<api::StatusReport>, Problem> {
        let disk = disk_state(self.place);
        // Before anything is read that depends on the checkout.
        let cleaned = interrupted_publish::clean_up_here(self.place).into_sentence();
        let moment = task_cache::table_snapshot(self.place, reader)?;
        let counted = moment.task_counts(reader)?;
        let ready = counted.count_of(TaskStatus::Ready);
        let mut waits = WaitGroups::load_stored(self.place, reader)?;
        let held = waits.add_held(&moment, reader, holds, ready)?;
        let mut counts: BTreeMap<api::Status, u64> = BTreeMap::new();
        for (status, many) in &counted.by {
            let many = if *status == TaskStatus::Ready { many.saturating_sub(held) } else { *many };
            *counts.entry(conversions::to_api_status(*status)).or_default() += many;
        }
        *counts.entry(api::Status::Waiting).or_default() += counted.dependency + held;
        counts.retain(|_, many| *many > 0);

        let accounts = holds.account_lines(&waits.accounts);
        let (spending, budgets) = holds.spending_lines(reader)?;
        let mut waiting = waits.into_groups();
        if counted.dependency > 0 {
            waiting.push(dependency_group(reader, counted.dependency)?);
        }
        let base = self.base_status(reader)?;
        let pilot = self.current_pilot(reader, holds, ready)?;
        let queue = self.queue_brief(reader, counted.count_of(TaskStatus::Landing))?;
        let mut warnings = Vec::new();
        if let Some(reason) = base.held.as_ref().filter(|_| !base.published) {
            warnings.push(format!("landed work is not in your branch yet: {reason}"));
        }
        warnings.extend(cleaned);
        warnings.extend(self.red_base_text(reader)?.map(|reason| {
            format!("no agent starts: {reason}; `landfall check` shows it and how to mend it")
        }));
        warnings.extend(stale_journal_warning(self.place));
        warnings.extend(older_journals_warning(self.place));
        if let Some(shortage) = self.engine.with_snapshot(|view| view.shortage.clone()).flatten() {
            let (resource, detail) = (shortage.resource, shortage.detail);
            warnings.push(format!(
                "nothing is started: this machine is out of {resource} ({detail}); Landfall continues by itself"
            ));
        }
        warnings.extend(self.orphaned_run_text(reader)?);
        warnings.extend(paused_run_text(reader)?);
        warnings.extend(lowered_sandbox_warning(self.place));
        warnings.extend(disk_warnings(self.place, disk.as_ref()));
        Ok(Box::new(api::StatusReport {
            counts,
            engine: self.engine.engine_state(holds.run.as_ref().map(|run| run.started.0)),
            run: holds.run.as_ref().map(|run| api::RunState {
                run: conversions::run_id(run.id),
                since_ms: run.started.0,
                slots: run.slots,
                agents: holds.agents,
                mode: self.engine.mode_label().to_owned(),
            }),
            checks: self.engine.running_checks().iter().map(running_checks::to_running_check_line).collect(),
            active: active_lines(self, reader, &moment)?,
            pilot,
            queue,
            sprint: sprints::open_sprint_bar(reader)?,
            clashes: self.list_clashes(),
            reviews_owed: reviews::tasks_owing_review(reader)?.len() as u64,
            issues_left: open_acceptance::list_open_acceptances(self.place, reader)?.len() as u64,
            waiting,
            accounts,
            spending,
            budgets,
            base,
            disk,
            warnings,
        }))
    }

    /// How the run under way is driven.
    fn current_pilot(
        &self,
        reader: &StoreReader,
        holds: &StartBlockers,
        ready: u64,
    ) -> Result<Option<Box<api::Pilot>>, Problem> {
        let Some(run) = &holds.run else { return Ok(None) };
        let pilot = match self.engine.with_snapshot(|view| view.pilot.clone()) {
            Some(pilot) => pilot,
            None => reader.pilot().map_err(|error| problems::from_store_error(&error))?,
        };
        Ok(Some(Box::new(autopilot::to_api_pilot(
            &pilot,
            run,
            ready,
            autopilot::next_task_brief(reader)?,
            holds.spent.as_ref(),
        ))))
    }

    /// The landing queue, if there is something to say of it. Its history is read only then.
    fn queue_brief(
        &self,
        reader: &StoreReader,
        landing: u64,
    ) -> Result<Option<Box<api::QueueBrief>>, Problem> {
        let of = |error| problems::from_store_error(&error);
        if let Some(brief) = self.engine.with_snapshot(|view| queue::queue_brief(&view.queue)) {
            return Ok(brief);
        }
        let newest = reader.latest(&["queue-held", "queue-resumed"]).map_err(of)?;
        let held = newest.is_some_and(|(_, entry)| {
            matches!(entry.fact, Fact::Engine(EngineEvent::Queue(QueueEvent::Held { .. })))
        });
        match landing > 0 || held {
            true => Ok(queue::queue_brief(&reader.queue().map_err(of)?)),
            false => Ok(None),
        }
    }

    /// What to say about a run whose engine is gone.
    fn orphaned_run_text(&self, reader: &StoreReader) -> Result<Option<String>, Problem> {
        let newest = reader.runs(1).map_err(|error| problems::from_store_error(&error))?.pop();
        let Some(run) = newest.filter(|run| run.ended.is_none() && !self.engine.is_alive()) else {
            return Ok(None);
        };
        let agents = crate::query::orphans::tasks_with_running_agents(self.place, reader)?;
        let still = match agents.len() {
            0 => String::new(),
            many => format!("; {} still at work and will be adopted", pluralize(many as u64, "agent")),
        };
        let of = |error| problems::from_store_error(&error);
        let resume = match reader.sprints().map_err(of)?.open().is_some() {
            true => "landfall sprint resume",
            false => "landfall run",
        };
        Ok(Some(format!("the engine of {} is gone{still}; `{resume}` goes on where it was", run.id)))
    }

    /// Where the base stands, and whether the person has it.
    pub fn base_status(&self, reader: &StoreReader) -> Result<api::Base, Problem> {
        let base = reader.base().map_err(|error| problems::from_store_error(&error))?;
        let branch = self.place.base_branch_or_empty();
        let tip = self.place.branch_tip(&branch);
        let Some(commit) = base.commit else {
            let commit = tip.unwrap_or_default();
            return Ok(api::Base { branch, commit, published: true, held: None, unpublished: None });
        };
        // Asked of the repository itself: the person may have taken the work in by hand since.
        let published = match &tip {
            Some(tip) => {
                tip == commit.as_str() || (base.held.is_none() && base.published.as_ref() == Some(&commit))
            }
            None => base.published.as_ref() == Some(&commit),
        };
        let held = if published { None } else { base.held };
        let unpublished = (!published).then(|| held.clone().unwrap_or_else(|| self.unpublished_reason()));
        Ok(api::Base { branch, commit: commit.as_str().to_owned(), published, held, unpublished })
    }

    /// Why no agent starts on the base where it is now, as far as it was checked.
    pub fn red_base_text(&self, reader: &StoreReader) -> Result<Option<String>, Problem> {
        let newest = reader.latest(&["measured"]).map_err(|error| problems::from_store_error(&error))?;
        let Some((_, JournalEntry { fact: Fact::Engine(EngineEvent::Measured { report }), .. })) = newest
        else {
            return Ok(None);
        };
        let Some(reason) = explain_base_failure(&report) else { return Ok(None) };
        let base = reader.base().map_err(|error| problems::from_store_error(&error))?;
        // What the user has committed since was not checked yet. Landed work may still wait to come into their branch.
        let tip = self.place.branch_tip(&self.place.base_branch_or_empty());
        let published = base.published.as_ref().map(|commit| commit.as_str());
        let is_known = |tip: &str| tip == report.commit.as_str() || Some(tip) == published;
        let is_present = base.commit.as_ref() == Some(&report.commit) && tip.as_deref().is_none_or(is_known);
        Ok(is_present.then_some(reason))
    }

    /// Why landed work is not in the user's repository although nothing stopped it.
    fn unpublished_reason(&self) -> String {
        let settings = landfall_engine::engine::load_settings(&self.place.root);
        if settings.is_ok_and(|settings| settings.land.publish == PublishTarget::None) {
            return format!(
                "`land.publish` is \"none\"; `git fetch {} {BASE_REF}` and `git merge FETCH_HEAD` bring it in",
                self.place.folder.store_path().display()
            );
        }
        if self.engine.is_alive() {
            return "the running engine publishes it within seconds; `landfall status` shows the result"
                .to_owned();
        }
        "the last run ended before it was published; `landfall run` publishes it".to_owned()
    }

    pub fn journal_page(&self, asked: &api::LogAsked) -> Result<api::LogPage, Problem> {
        let after = asked.after.unwrap_or(0);
        let Some(reader) = self.open_reader()? else {
            return match asked.task {
                Some(task) => Err(problems::unknown_task(conversions::model_task(task))),
                None => Ok(api::LogPage { entries: Vec::new(), next: after, more: false }),
            };
        };
        let of = |error| problems::from_store_error(&error);
        let limit = page_size(asked.limit, LOG_PAGE);
        let task = asked.task.map(conversions::model_task);
        if let Some(task) = task
            && reader.row(task).map_err(of)?.is_none()
        {
            return Err(problems::unknown_task(task));
        }
        let mut found = match (asked.last, task) {
            (true, None) => reader.tail(limit).map_err(of)?,
            (true, Some(_)) => {
                let mut all = reader.events(Seq::ZERO, task, u32::MAX).map_err(of)?;
                all.split_off(all.len().saturating_sub(limit as usize))
            }
            (false, _) => reader.events(Seq(after), task, limit + 1).map_err(of)?,
        };
        let more = !asked.last && found.len() > limit as usize;
        found.truncate(limit as usize);
        let next = found.last().map_or(after, |(seq, _)| seq.0);
        let entries = found
            .into_iter()
            .map(|(seq, entry)| {
                let (task, text) = match &entry.fact {
                    Fact::Task(id, event) => {
                        (Some(conversions::task_id(*id)), sentences::event_sentence(event))
                    }
                    Fact::Engine(event) => (None, sentences::engine_event_sentence(event)),
                };
                let (kind, data) = encode_as_json(&entry);
                api::LogEntry { seq: seq.0, at_ms: entry.at.0, task, kind: kind.to_owned(), text, data }
            })
            .collect();
        Ok(api::LogPage { entries, next, more })
    }

    pub fn task_diff(&self, id: TaskId, since: Option<&str>) -> Result<api::Diff, Problem> {
        let reader = self.reader_for_task(id)?;
        let task = self.load_task(&reader, id)?;
        let (from, mut to) = match (&task.landed, &task.gate, &task.head) {
            (Some(landed), _, _) => (landed.base_before.clone(), landed.commit.clone()),
            (None, Some(gate), _) => (gate.base.clone(), gate.commit.clone()),
            (None, None, Some(head)) => {
                let fork = match &task.workspace {
                    Some(fork) => fork.clone(),
                    None => self.fork_point(head)?,
                };
                (fork, head.clone())
            }
            (None, None, None) if !task.landed_before.is_empty() => {
                let last = task.landed_before.last().expect("just seen");
                (last.base_before.clone(), last.commit.clone())
            }
            (None, None, None) => {
                let workspace = self.place.folder.workspaces_path().join(id.to_string());
                let hint = if task.workspace.is_some() {
                    format!("its workspace is {}", workspace.display())
                } else {
                    format!("`landfall why {id}` shows its state")
                };
                let message = format!("nothing of {id} has been brought in yet, so there is no diff");
                return Err(Problem::new(ProblemCode::NotNow, message).with_hint(hint));
            }
        };
        let store = self.open_store()?;
        let from = match since {
            Some(since) => {
                // The work itself, without what the base brought in.
                to = task.head.clone().unwrap_or(to);
                resolve_work_commit(&reader, &store, &task, &to, since)?
            }
            None => from,
        };
        let parse = |commit: &Commit| commit.as_str().parse::<Oid>();
        let (Ok(a), Ok(b)) = (parse(&from), parse(&to)) else {
            return Err(Problem::new(
                ProblemCode::Corrupt,
                format!("the commits of {id} in the journal are not commits"),
            )
            .with_hint("`landfall doctor` says more"));
        };
        let text = store
            .diff_commits(&a, &b, &DiffOptions::default())
            .map_err(|error| problems::from_git_error(&error))?;
        let mut bytes = text.bytes;
        if text.cut {
            bytes.extend_from_slice(b"\n[the rest of the diff is left out]\n");
        }
        Ok(api::Diff {
            task: conversions::task_id(id),
            from: from.as_str().to_owned(),
            to: to.as_str().to_owned(),
            diff: api::Blob::new(bytes),
        })
    }

    /// Where work left the base that has no workspace; itself if that cannot be said.
    fn fork_point(&self, head: &Commit) -> Result<Commit, Problem> {
        let store = self.open_store()?;
        let base = store.read_base().map_err(|error| problems::from_git_error(&error))?;
        let (Some(base), Ok(work)) = (base, head.as_str().parse::<Oid>()) else { return Ok(head.clone()) };
        let forks = store.merge_bases(&base, &work).map_err(|error| problems::from_git_error(&error))?;
        Ok(forks.first().map_or_else(|| head.clone(), |fork| Commit::new(fork.as_str())))
    }

    pub fn open_store(&self) -> Result<Store, Problem> {
        let git = Git::find_installed().map_err(|error| problems::from_git_error(&error))?;
        let repo = Repo::discover(&git, &self.place.root).map_err(problems::from_repo_problem)?;
        Store::open(&git, &self.place.folder.store_path(), &repo)
            .map_err(|error| problems::from_git_error(&error))
    }

    pub fn load_task(&self, reader: &StoreReader, id: TaskId) -> Result<Task, Problem> {
        reader
            .task(id)
            .map_err(|error| problems::from_store_error(&error))?
            .ok_or_else(|| problems::unknown_task(id))
    }

    pub fn task_certificate(&self, id: TaskId) -> Result<api::CertificateJson, Problem> {
        let reader = self.reader_for_task(id)?;
        let task = self.load_task(&reader, id)?;
        let kept =
            task.reported.as_ref().and_then(|(_, certificate)| certificate.as_ref()).and_then(|digest| {
                let text =
                    std::fs::read(self.place.folder.papers_path().join(format!("{digest}.json"))).ok()?;
                serde_json::from_slice(&text).ok()
            });
        // The paper is a copy: what it says follows from the journal, so a lost one is made again.
        let made = || -> Result<_, Problem> {
            let landed = reader.task_as_landed(id).map_err(|error| problems::from_store_error(&error))?;
            Ok(landed.as_ref().and_then(landfall_engine::certificate_of))
        };
        let certificate = match kept {
            Some(kept) => Some(kept),
            None => made()?,
        };
        let certificate = certificate.ok_or_else(|| {
            Problem::new(ProblemCode::NotNow, format!("{id} has not landed, so there is no certificate"))
                .with_hint(format!("`landfall why {id}` shows its state"))
        })?;
        Ok(api::CertificateJson { task: conversions::task_id(id), certificate })
    }

    pub fn export_tasks(&self, asked: &api::Export) -> Result<api::Exported, Problem> {
        let Some(reader) = self.open_reader()? else {
            return match asked.tasks.first() {
                Some(task) => Err(problems::unknown_task(conversions::model_task(*task))),
                None => Ok(api::Exported { files: Vec::new() }),
            };
        };
        let ids: Vec<TaskId> = if asked.tasks.is_empty() {
            let last = reader
                .max_task_id()
                .map_err(|error| problems::from_store_error(&error))?
                .map_or(0, |id| id.0);
            (1..=last).map(TaskId).collect()
        } else {
            asked.tasks.iter().copied().map(conversions::model_task).collect()
        };
        let mut files = Vec::new();
        for id in ids {
            let task = match reader.task(id).map_err(|error| problems::from_store_error(&error))? {
                Some(task) => task,
                None if asked.tasks.is_empty() => continue,
                None => return Err(problems::unknown_task(id)),
            };
            let id = conversions::task_id(id);
            files.push(api::ExportedFile {
                name: api::taskfile::file_name(id, &task.spec.title),
                text: api::taskfile::write(Some(id), &conversions::new_task(&task.spec)),
            });
        }
        Ok(api::Exported { files })
    }
}

/// A page of what was asked for, or of what is usual; never of everything.
fn page_size(asked: u32, usual: u32) -> u32 {
    if asked == 0 { usual } else { asked.min(PAGE_MAX) }
}

/// The statuses to ask the tables for. They do not know about slots, accounts and budgets, so what waits for one is read as
/// ready.
fn stored_statuses(wanted: &[api::Status], held: bool) -> Vec<Option<TaskStatus>> {
    if wanted.is_empty() {
        return vec![None];
    }
    let mut statuses: Vec<Option<TaskStatus>> = Vec::new();
    for status in wanted {
        statuses.push(Some(conversions::model_status(*status)));
        if held && *status == api::Status::Waiting {
            statuses.push(Some(TaskStatus::Ready));
        }
    }
    statuses.sort_unstable();
    statuses.dedup();
    statuses
}

pub(crate) fn holds_slot(task: &Task) -> bool {
    match &task.state {
        TaskState::Active {
            doing: AttemptPhase::Preparing { .. } | AttemptPhase::Running { .. }, ..
        } => true,
        TaskState::Active {
            doing:
                AttemptPhase::Checking { .. }
                | AttemptPhase::Exchanging { .. }
                | AttemptPhase::Recovering { .. }
                | AttemptPhase::Queued { .. }
                | AttemptPhase::Landing
                | AttemptPhase::Reporting,
            ..
        }
        | TaskState::Draft
        | TaskState::Ready { .. }
        | TaskState::Waiting { .. }
        | TaskState::Review { .. }
        | TaskState::Ended(_) => false,
    }
}

pub(crate) fn why_sentence(task: &Task, among: &TaskRelations) -> String {
    if let (TaskState::Ready { .. }, Some(end)) = (&task.state, &among.dead_end)
        && !task.is_held()
    {
        return dead_ends::dead_end_sentence(task.id, &among.unmet, end);
    }
    landfall_engine::model::explain_task_state(
        task,
        &among.unmet,
        among.held.as_ref(),
        &clock::format_when_or_left,
    )
}

/// The rest of a sentence about a task that could start.
fn base_hold_text(reason: &str) -> String {
    format!("is ready, but no agent starts: {reason}; `landfall check` shows it and how to mend it.")
}

/// Why the run under way does not begin a task that could start, if so.
fn not_begun_reason(task: &Task, view: &LiveSnapshot) -> Option<String> {
    let (id, pilot) = (task.id, &view.pilot);
    if let Some(pause) = pilot.pause() {
        return Some(format!(
            "is ready, but the run is paused: {}; `landfall run resume` lets it continue.",
            pause.reason
        ));
    }
    if pilot.mode() == PilotMode::SemiAuto && pilot.assigned_task() != Some(id) {
        return Some(format!("is ready, and you pick what is next: `landfall run next {id}` takes it."));
    }
    if let Some(reason) = &view.base_hold {
        return Some(base_hold_text(reason));
    }
    if let Some(shortage) = &view.shortage {
        return Some(format!(
            "is ready, but nothing is started: this machine is out of {}; Landfall continues by itself.",
            shortage.resource
        ));
    }
    let sprint = view.sprint.as_ref()?;
    match &sprint.phase {
        SprintPhase::Running if !sprints::start_filter(&sprint.plan).admits_task(&task.spec, id) => {
            Some(format!("is ready, but not one of the tasks of sprint {}, which is under way.", sprint.id))
        }
        SprintPhase::Completing { .. } => Some(format!(
            "is ready, but sprint {} finishes what is under way and starts nothing new.",
            sprint.id
        )),
        SprintPhase::Running | SprintPhase::Paused { .. } | SprintPhase::Over { .. } => None,
    }
}

/// More about a task than its sentence: what it needs, what was seen, what was said, what can be done.
fn task_details(reader: &StoreReader, task: &Task, among: &TaskRelations) -> Result<Vec<String>, Problem> {
    let mut details = Vec::new();
    for need in &among.unmet {
        match reader.row(*need).map_err(|error| problems::from_store_error(&error))? {
            Some(row) => details.push(format!("needs {need} ({}): {}", row.effective_status(), row.title)),
            None => details.push(format!("needs {need}, which is not there")),
        }
    }
    let iterations = u64::from(task.counters.iterations);
    let telling = |counter: &api::Counter| match counter.name.as_str() {
        "agent runs" => counter.used > iterations, // else every run was an iteration
        "iterations without a commit" => counter.used > 1,
        name => counter.used > 0 && !name.contains('→'), // the ways through the flow are in the log
    };
    let counted: Vec<String> = conversions::list_counters(task)
        .into_iter()
        .filter(telling)
        .map(|counter| match counter.max {
            Some(max) => format!("{}: {} of {max}", counter.name, counter.used),
            None => format!("{}: {}", counter.name, counter.used),
        })
        .collect();
    if !counted.is_empty() {
        details.push(counted.join(", "));
    }
    if let Some(gate) = &task.gate {
        let outcome = gate.outcome().word();
        details.push(format!("last verification: {outcome}, {}", sentences::gate_summary(gate)));
        details.extend(gate.blocking_commands().flat_map(sentences::last_lines));
    }
    if let Some(feedback) = task.feedback.last() {
        details.push(format!("the agent will be told: {}", feedback.about));
    }
    for message in &task.messages {
        details.push(format!("the agent will hear from you: {}", sentences::one_line(message)));
    }
    if let Some(limits) = own_limits_text(task.own_limits) {
        details.push(format!("limits you set: {limits}"));
    }
    for warning in task.warnings.iter().rev().take(3) {
        details.push(format!("warning: {}", warning.to_sentence()));
    }
    details.extend(next_steps(task));
    Ok(details)
}

/// The commit a person means by `text`: one that the work stands on, or one that the task has had.
fn resolve_work_commit(
    reader: &StoreReader,
    store: &Store,
    task: &Task,
    tip: &Commit,
    text: &str,
) -> Result<Commit, Problem> {
    const DIGITS_MIN: usize = 7; // fewer mean too many commits
    let id = task.id;
    let text = text.trim().to_ascii_lowercase();
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hex || !(DIGITS_MIN..=64).contains(&text.len()) {
        let message = format!("`{text}` is not the name of a commit");
        return Err(Problem::new(ProblemCode::BadInput, message)
            .with_hint("7 to 64 hex digits; `landfall log` and the JSON of `landfall diff` name commits"));
    }
    let events =
        reader.events(Seq::ZERO, Some(id), u32::MAX).map_err(|error| problems::from_store_error(&error))?;
    let mut had: BTreeSet<&str> = events.iter().flat_map(|(_, entry)| commits_in_fact(&entry.fact)).collect();
    had.extend([tip.as_str()].into_iter().chain(task.workspace.as_ref().map(Commit::as_str)));
    let mut meant = had.iter().filter(|commit| commit.starts_with(&text));
    let (known, other) = (meant.next(), meant.next());
    if other.is_some() {
        let message = format!("`{text}` could be several commits of {id}");
        return Err(Problem::new(ProblemCode::BadInput, message).with_hint("name more of its digits"));
    }
    let unknown = || {
        Problem::new(ProblemCode::BadInput, format!("`{text}` is not a commit of the work of {id}"))
            .with_hint(format!("`landfall diff {id}` shows all of it, against the base"))
    };
    let (Ok(oid), Ok(tip)) = (known.copied().unwrap_or(&text).parse::<Oid>(), tip.as_str().parse::<Oid>())
    else {
        return Err(unknown());
    };
    let of = |error| problems::from_git_error(&error);
    let there = store.contains(&oid).map_err(of)?;
    if !there || (known.is_none() && !store.is_ancestor(&oid, &tip).map_err(of)?) {
        return Err(unknown());
    }
    Ok(Commit::new(&oid.to_string()))
}

/// The commits of its own work that a fact names.
fn commits_in_fact(fact: &Fact) -> Vec<&str> {
    let Fact::Task(_, event) = fact else { return Vec::new() };
    match event {
        Event::IterationEnded { head: Some(head), .. }
        | Event::Collected { head, .. }
        | Event::Offered { head }
        | Event::SentBack { to: head } => vec![head.as_str()],
        Event::WorkspaceMade { base, .. } => vec![base.as_str()],
        Event::Verified { report, .. } => vec![report.head.as_str()],
        Event::Landed { commit, base_before, .. } => vec![commit.as_str(), base_before.as_str()],
        _ => Vec::new(),
    }
}

/// What to say about a run that ended paused: whatever it had not begun is still there.
fn paused_run_text(reader: &StoreReader) -> Result<Option<String>, Problem> {
    let of = |error| problems::from_store_error(&error);
    let newest = reader.runs(1).map_err(of)?.pop();
    let Some(run) = newest.filter(|run| run.why == Some(RunEnd::Paused)) else { return Ok(None) };
    let because = match reader.latest(&["run-paused"]).map_err(of)?.map(|(_, entry)| entry.fact) {
        Some(Fact::Engine(EngineEvent::Pilot(PilotEvent::Paused { reason, .. }))) => format!(": {reason}"),
        Some(_) | None => String::new(),
    };
    Ok(Some(format!("{} ended paused{because}; `landfall run` continues", run.id)))
}

/// A clash as one of the two sees it; none for anybody else.
fn clash_seen_from(task: api::WireTaskId, clash: api::ClashLine) -> Option<api::ClashLine> {
    match (clash.task == task, clash.with == task) {
        (true, _) => Some(clash),
        (false, true) => Some(api::ClashLine { task, with: clash.task, files: clash.files }),
        (false, false) => None,
    }
}

/// What a person could type now.
fn next_steps(task: &Task) -> Option<String> {
    let id = task.id;
    match &task.state {
        // What lets the task of an issue go on is said already.
        TaskState::Ended(_) if conversions::ended_without_landing(task) && task.issue.is_some() => {
            Some(format!("`landfall log {id}` shows its history"))
        }
        TaskState::Ended(_) if conversions::ended_without_landing(task) => Some(format!(
            "`landfall log {id}` shows its history; `landfall retry {id} --fresh` starts in a new workspace"
        )),
        TaskState::Ended(_) if task.landed.is_some() => {
            Some(format!("`landfall certificate {id}` holds the evidence, `landfall diff {id}` the change"))
        }
        TaskState::Review { .. } => {
            Some(format!("`landfall answer {id} \"changes: …\"` sends it back to its agent"))
        }
        TaskState::Waiting { wait: WaitReason::GateBroken { .. }, .. } => {
            Some(format!("mend the check on the base branch, or `landfall retry {id}` once it can run again"))
        }
        TaskState::Active { doing: AttemptPhase::Running { .. }, .. } => {
            Some(format!("`landfall stop {id}` pauses it, its work is kept"))
        }
        TaskState::Draft
        | TaskState::Ready { .. }
        | TaskState::Active { .. }
        | TaskState::Waiting { .. }
        | TaskState::Ended(_) => None,
    }
}

/// How many agents are at work.
pub(crate) fn count_working_agents(reader: &StoreReader) -> Result<u64, Problem> {
    let filter = TaskFilter { status: Some(TaskStatus::Active), ..TaskFilter::default() };
    let of = |error| problems::from_store_error(&error);
    let mut many = 0;
    for row in reader.tasks(&filter, None, PAGE_MAX).map_err(of)? {
        many += u64::from(reader.task(row.id).map_err(of)?.as_ref().is_some_and(holds_slot));
    }
    Ok(many)
}

/// What is being worked on.
fn active_lines(
    look: &Query<'_>,
    reader: &StoreReader,
    moment: &TableSnapshot,
) -> Result<Vec<api::ActiveLine>, Problem> {
    let (place, live, checks) = (look.place, look.engine.live_agents(), look.engine.running_checks());
    let is_alive = look.engine.is_alive();
    let active_line = |task: &Task, live: Option<&LiveAgent>| {
        let mut line = active_line(task, live)?;
        line.check =
            running_checks::check_of_task(&checks, task.id).map(running_checks::to_running_check_line);
        if !is_alive && running_checks::engineless_task_text(task).is_some() {
            line.doing = api::TaskActivity::Stopped;
        }
        Some(line)
    };
    let mut lines = Vec::new();
    for (_, task) in moment.active_tasks(place, reader)?.iter().take(PAGE as usize) {
        lines.extend(active_line(task, live.get(&task.id)));
    }
    let filter = TaskFilter { status: Some(TaskStatus::Landing), ..TaskFilter::default() };
    for row in reader.tasks(&filter, None, PAGE).map_err(|error| problems::from_store_error(&error))? {
        let task = task_cache::cached_task(place, reader, &row)?;
        lines.extend(task.and_then(|task| active_line(&task, live.get(&task.id))));
    }
    lines.sort_by_key(|line| line.task);
    Ok(lines)
}

fn active_line(task: &Task, live: Option<&LiveAgent>) -> Option<api::ActiveLine> {
    let TaskState::Active { step, doing } = &task.state else { return None };
    let usage = task.counters.usage.plus(live.map(|live| live.usage).unwrap_or_default());
    Some(api::ActiveLine {
        task: conversions::task_id(task.id),
        title: task.spec.title.clone(),
        step: step.as_str().to_owned(),
        doing: activity(doing),
        iteration: current_iteration(task),
        iterations_max: task.limits.iterations_max,
        elapsed_ms: elapsed_ms(task, clock::now_ms()),
        tokens: conversions::total_tokens(usage),
        cost_usd: conversions::micro_to_usd(usage.micro_usd),
        agent: live.map(conversions::to_agent_at_work),
        check: None,
        progress: crate::query::targets::task_progress(task),
    })
}

/// What is being done.
pub(crate) fn activity(doing: &AttemptPhase) -> api::TaskActivity {
    match doing {
        AttemptPhase::Preparing { .. } => api::TaskActivity::Preparing,
        AttemptPhase::Running { stop: None, .. } => api::TaskActivity::Working,
        AttemptPhase::Running { stop: Some(_), .. } => api::TaskActivity::Stopping,
        AttemptPhase::Checking { .. } => api::TaskActivity::Verifying,
        AttemptPhase::Queued { .. } => api::TaskActivity::InLine,
        AttemptPhase::Landing => api::TaskActivity::Landing,
        AttemptPhase::Reporting => api::TaskActivity::Reporting,
        AttemptPhase::Exchanging { .. } => api::TaskActivity::WithTracker,
        AttemptPhase::Recovering { .. } => api::TaskActivity::Recovering,
    }
}

/// The iteration under way, or the last one.
pub(crate) fn current_iteration(task: &Task) -> u32 {
    match &task.state {
        _ if task.runs_own_loop() => task.iterations_done(), // a run is a whole loop: its steps are what counts
        TaskState::Active { doing: AttemptPhase::Running { iteration, .. }, .. } => *iteration,
        TaskState::Active { .. }
        | TaskState::Draft
        | TaskState::Ready { .. }
        | TaskState::Waiting { .. }
        | TaskState::Review { .. }
        | TaskState::Ended(_) => task.counters.iterations,
    }
}

/// Time spent on a task, the run under way included.
pub(crate) fn elapsed_ms(task: &Task, now_ms: i64) -> u64 {
    let running = match &task.state {
        TaskState::Active { doing: AttemptPhase::Running { since, .. }, .. } => {
            u64::try_from(now_ms - since.0).unwrap_or(0)
        }
        TaskState::Active { .. }
        | TaskState::Draft
        | TaskState::Ready { .. }
        | TaskState::Waiting { .. }
        | TaskState::Review { .. }
        | TaskState::Ended(_) => 0,
    };
    task.counters.spent_ms + running
}

/// Who waits for the same thing, and for which account.
#[derive(Default)]
struct WaitGroups {
    groups: BTreeMap<(api::WaitFor, Option<i64>, String), Vec<api::WireTaskId>>,
    accounts: BTreeMap<String, BTreeSet<api::WireTaskId>>,
    more: BTreeMap<(api::WaitFor, Option<i64>, String), u64>,
}

impl WaitGroups {
    /// Those who wait by their own facts.
    fn load_stored(place: &ProjectLocation, reader: &StoreReader) -> Result<Self, Problem> {
        let of = |error| problems::from_store_error(&error);
        let mut waits = Self::default();
        for row in reader.waiting(PAGE_MAX).map_err(of)? {
            let Some(wait) = conversions::row_wait(&row, &TaskRelations::default()) else { continue };
            let account = match wait.wait {
                api::WaitFor::Quota | api::WaitFor::Login => {
                    task_cache::cached_task(place, reader, &row)?.as_deref().and_then(account_waited_for)
                }
                _ => None,
            };
            waits.add_waiting_task(row.id, wait, account);
        }
        Ok(waits)
    }

    /// Those who could start, but for what holds them. How many.
    fn add_held(
        &mut self,
        moment: &TableSnapshot,
        reader: &StoreReader,
        holds: &StartBlockers,
        ready: u64,
    ) -> Result<u64, Problem> {
        if ready == 0 || !holds.may_hold_tasks() {
            return Ok(0);
        }
        let front = holds.front_rows_needed(GROUP_TASKS_MAX).map_or(PAGE_MAX, |front| front.min(PAGE_MAX));
        let rows = moment.next(reader, front)?;
        let (mut held, mut last) = (0, None);
        for row in &rows {
            let Some(wait) = holds.hold_reason(row) else { continue };
            held += 1;
            let account = matches!(wait, WaitReason::Quota { .. }).then(|| holds.account_of(row).to_owned());
            let slot = matches!(wait, WaitReason::Slot);
            let key = self.add_waiting_task(row.id, conversions::wait(&wait), account);
            if slot || holds.is_shut() {
                last = Some(key);
            }
        }
        // What is beyond the page is taken to wait for what the last of them waits for.
        let rest = ready.saturating_sub(rows.len() as u64);
        if let Some(key) = last.filter(|_| rest > 0 && (holds.full || holds.is_shut())) {
            *self.more.entry(key).or_default() += rest;
            held += rest;
        }
        Ok(held)
    }

    fn add_waiting_task(
        &mut self,
        task: TaskId,
        wait: api::Wait,
        account: Option<String>,
    ) -> (api::WaitFor, Option<i64>, String) {
        let task = conversions::task_id(task);
        let detail = match &account {
            Some(account) if wait.detail.is_empty() => format!("account `{account}`"),
            Some(_) | None => wait.detail,
        };
        if let Some(account) = account {
            self.accounts.entry(account).or_default().insert(task);
        }
        let key = (wait.wait, wait.until_ms, detail);
        let group = self.groups.entry(key.clone()).or_default();
        if group.len() < GROUP_TASKS_MAX as usize {
            group.push(task);
        } else {
            *self.more.entry(key.clone()).or_default() += 1;
        }
        key
    }

    fn into_groups(self) -> Vec<api::WaitingGroup> {
        let Self { groups, more, .. } = self;
        let made = groups.into_iter().map(|(key, tasks)| {
            let more = more.get(&key).map(|many| format!("and {many} more"));
            let (wait, until_ms, detail) = key;
            let detail = [Some(detail).filter(|it| !it.is_empty()), more];
            let detail = detail.into_iter().flatten().collect::<Vec<_>>().join(", ");
            api::WaitingGroup {
                wait,
                owner: conversions::wait_owner(wait).to_owned(),
                until_ms,
                detail,
                tasks,
            }
        });
        made.collect()
    }
}

/// The account a task waits for by its own facts.
fn account_waited_for(task: &Task) -> Option<String> {
    match &task.state {
        TaskState::Waiting { wait: WaitReason::Quota { .. }, .. } => {
            Some(task.driving.as_ref()?.account.clone())
        }
        TaskState::Waiting { wait: WaitReason::Login { account, .. }, .. } => Some(account.clone()),
        TaskState::Waiting { .. }
        | TaskState::Draft
        | TaskState::Ready { .. }
        | TaskState::Active { .. }
        | TaskState::Review { .. }
        | TaskState::Ended(_) => None,
    }
}

/// What a task may spend, and its attempt under way.
/// The budgets of a task. `running` is what the iteration under way has used so far.
fn task_budgets(task: &Task, running: AgentUsage) -> Vec<api::BudgetLine> {
    let counters = &task.counters;
    let whole = Spending { usage: counters.usage.plus(running), time_ms: counters.agent_ms };
    let attempt = Spending { usage: counters.attempt.usage.plus(running), ..counters.attempt };
    let attempt =
        conversions::list_budget_lines(api::BudgetScope::Attempt, attempt, &task.limits.attempt_budget);
    attempt
        .into_iter()
        .chain(conversions::list_budget_lines(api::BudgetScope::Task, whole, &task.limits.task_budget))
        .collect()
}

fn dependency_group(reader: &StoreReader, many: u64) -> Result<api::WaitingGroup, Problem> {
    let rows = reader.held(GROUP_TASKS_MAX).map_err(|error| problems::from_store_error(&error))?;
    Ok(capped_group(api::WaitFor::Dependency, &rows, many))
}

/// A group that may be too large to name everyone in it.
fn capped_group(wait: api::WaitFor, rows: &[TaskRow], many: u64) -> api::WaitingGroup {
    let rest = many.saturating_sub(rows.len() as u64);
    api::WaitingGroup {
        wait,
        owner: conversions::wait_owner(wait).to_owned(),
        until_ms: None,
        detail: if rest > 0 { format!("and {rest} more") } else { String::new() },
        tasks: rows.iter().map(|row| conversions::task_id(row.id)).collect(),
    }
}

pub(crate) fn disk_state(place: &ProjectLocation) -> Option<api::DiskState> {
    // The folder may not be there yet; the disk it will be on is.
    let there = place.folder.root().ancestors().find(|path| path.exists())?;
    let free_bytes = disk::free_bytes(there).ok()?;
    Some(api::DiskState { free_bytes, used_bytes: None })
}

const PLENTY_BYTES: u64 = 10_000_000_000; // settings are read only when a threshold may be near

/// That the journal is an older copy.
fn stale_journal_warning(place: &ProjectLocation) -> Option<String> {
    journal_link::is_journal_behind(&place.folder).then(|| {
        format!(
            "the journal `{}` is an older copy: the state folder contains work that it does not record; the next `landfall run` or \
             `landfall add` sets that work aside; `landfall doctor` says more",
            place.folder.journal_path().display()
        )
    })
}

/// That the journal is missing, where there was one.
fn lost_journal_warning(place: &ProjectLocation) -> Option<String> {
    let journal = place.folder.journal_path();
    let state = if journal.exists() { "empty" } else { "missing" };
    journal_link::is_journal_lost(&place.folder).then(|| {
        format!(
            "the journal `{}` is {state}, but the state folder contains work that it recorded; `landfall doctor` shows what can be recovered",
            journal.display()
        )
    })
}

/// That an earlier journal was lost.
fn older_journals_warning(place: &ProjectLocation) -> Option<String> {
    let older = journal_link::older_states(&place.folder);
    (!older.is_empty()).then(|| {
        format!(
            "an earlier journal was lost, or the end of one; its state is set aside in `{}`; `landfall doctor` shows what can be recovered",
            place.folder.older_path().display()
        )
    })
}

/// What the sandbox leaves open, where this machine does not support the level that would be the default.
fn lowered_sandbox_warning(place: &ProjectLocation) -> Option<String> {
    let settings = landfall_engine::engine::load_settings(&place.root).ok()?;
    let level = settings.run.sandbox;
    settings.run.is_sandbox_lowered.then(|| {
        format!(
            "the sandbox is at level `{}`, as this machine does not support `isolated`; it leaves open: {}",
            level.word(),
            level.leaves_open().join("; ")
        )
    })
}

fn disk_warnings(place: &ProjectLocation, state: Option<&api::DiskState>) -> Vec<String> {
    let Some(state) = state.filter(|state| state.free_bytes < PLENTY_BYTES) else { return Vec::new() };
    let Ok(settings) = landfall_engine::engine::load_settings(&place.root) else { return Vec::new() };
    if state.free_bytes >= settings.disk.warn_bytes {
        return Vec::new();
    }
    let free = format_bytes(state.free_bytes);
    vec![format!(
        "{free} are left on the disk; `landfall project reclaim --dry-run` shows what can be given back"
    )]
}

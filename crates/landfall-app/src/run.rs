//! A run as the terminal drives it: the engine in a thread, its door open for other commands, its news from the
//! journal.

pub(crate) mod detach;
pub(crate) mod remote;
pub mod run_handle;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use landfall_api::socket;
use landfall_api::{self as api, Problem, ProblemCode, WaitFor};
use landfall_engine::host::disk;
use landfall_engine::model::course;
use landfall_engine::model::issue::{IssueProgress, IssueRef};
use landfall_engine::model::liveness::AgentActivity;
use landfall_engine::model::pilot::Phase;
use landfall_engine::model::run_history::TaskResult;
use landfall_engine::model::sprint::Sprint;
use landfall_engine::model::{
    AgentUsage, EngineEvent, Event, Fact, Flow, RunEnd, RunId, Task, TaskId, TaskState, TaskStatus, Verdict,
    WaitReason, Warning,
};
use landfall_engine::settings::Settings;
use landfall_engine::store::{Seq, StoreError, StoreReader, TaskFilter};
use landfall_engine::{
    EngineContext, EngineHandle, LiveAgent, LiveSnapshot, RunOptions, RunThread, RunningCheck, SprintRequest,
};
use landfall_server::RunningServer;
use landfall_text::{format_duration, pluralize};

use crate::command::{changes, follow_issues};
use crate::project::conversions::TaskRelations;
use crate::project::open_engine::open_for_run;
use crate::project::place::ProjectLocation;
use crate::project::sentences;
use crate::project::{clock, conversions, problems, trust};
use crate::query::autopilot;
use crate::query::run_text;
use crate::query::tasks::{self, why_sentence};
use crate::query::{agents, queue, reports, reviews, running_checks, sprints};
use crate::run::run_handle::{NewsLine, RunAsked, RunHandle, RunMode, RunView, SlotLine};
use crate::service::ProjectService;

/// A run under way.
pub(crate) struct ActiveRun {
    place: ProjectLocation,
    running: RunThread,
    door: Option<RunSocket>,
    under_way: RunMonitor,
    /// The news up to here were shown.
    shown: u64,
    mode: RunMode,
    for_sprint: bool,
    attended: bool,
}

/// A run under way, for whoever asks about it.
#[derive(Clone)]
pub(crate) struct RunMonitor {
    /// Leave to ask the engine.
    pub handle: EngineHandle,
    /// What a person sees of it.
    pub site: Arc<EngineContext>,
    watch: Arc<Mutex<RunWatch>>,
    began: Instant,
}

impl RunMonitor {
    /// What goes on.
    pub fn current_view(&self, asked: api::RunNowAsked) -> RunView {
        let view = self.site.live.lock().view.clone();
        let mode = if view.stopping { RunMode::Draining } else { RunMode::Running };
        let mut watch = self.lock_watch();
        watch.read_new_events();
        watch.build_run_view(&view, &self.site.running_checks(), mode, self.began.elapsed(), asked.after)
    }

    fn lock_watch(&self) -> MutexGuard<'_, RunWatch> {
        self.watch.lock().expect("no thread panics while it watches")
    }
}

/// Opens the project, checks that its agents are there, and drives, with its door open for other commands.
pub(crate) fn start(place: ProjectLocation, asked: &RunAsked) -> Result<ActiveRun, Problem> {
    let mut run = begin_run(place, asked)?;
    let desk = ProjectService::for_running(run.place.clone(), run.under_way.clone());
    match RunSocket::open(&run.place, Arc::new(desk)) {
        Ok(door) => run.door = Some(door),
        Err(problem) => {
            run.running.handle().request_stop_now(); // nobody could talk to it; it ends before it has begun
            return Err(problem);
        }
    }
    Ok(run)
}

/// The same without a door: whoever keeps the project has one.
pub(crate) fn begin_run(place: ProjectLocation, asked: &RunAsked) -> Result<ActiveRun, Problem> {
    let only = {
        let reader = place.open_reader()?;
        changes::resolve_run_tasks(reader.as_deref(), &asked.tasks)?
    };
    let sprint = match &asked.sprint {
        None => None,
        Some(api::SprintAsked::Open) => Some(SprintRequest::Open),
        Some(api::SprintAsked::New(plan)) => {
            let plan = sprints::model_plan(plan)?;
            sprints::check_tasks(place.open_reader()?.as_deref(), &plan)?;
            Some(SprintRequest::New(plan))
        }
    };
    let engine = open_for_run(&place)?;
    trust::check_trust_for_run(&place, &engine.site().settings)?;
    check_agents(&engine.site().settings, engine.world().tasks(), &only)?;
    let site = engine.site().clone();
    let branch = site.branch.as_str().to_owned();
    let slots_max = asked.slots.unwrap_or(site.settings.run.slots);
    // The journal is there now, and nobody else writes: what comes after this belongs to the run.
    let reader = StoreReader::open(&place.folder.journal_path())
        .map_err(|error| problems::from_store_error(&error))?;
    let from = reader.head().map_err(|error| problems::from_store_error(&error))?.seq;
    let options = RunOptions {
        slots: asked.slots,
        only,
        mode: asked.mode.map_or(site.settings.run.mode, conversions::model_mode),
        sprint,
        attended: asked.attended,
    };
    let running = engine.run(options).map_err(|error| problems::from_ask_error(&error))?;
    let watch = RunWatch::new(reader, from, branch, slots_max);
    let under_way = RunMonitor {
        handle: running.handle(),
        site,
        watch: Arc::new(Mutex::new(watch)),
        began: Instant::now(),
    };
    Ok(ActiveRun {
        for_sprint: asked.sprint.is_some(),
        attended: asked.attended,
        place,
        running,
        door: None,
        under_way,
        shown: from.0,
        mode: RunMode::Running,
    })
}

/// Whether every agent that will be wanted is there. It is better to hear it before the run than from each task.
fn check_agents<'a>(
    settings: &Settings,
    tasks: impl Iterator<Item = &'a Arc<Task>>,
    only: &[TaskId],
) -> Result<(), Problem> {
    let mut wanted: BTreeMap<&str, TaskId> = BTreeMap::new();
    for task in tasks {
        let open = !task.is_over() && !matches!(task.state, TaskState::Draft);
        let chosen = only.is_empty() || only.contains(&task.id);
        if open && chosen && task.spec.flow.as_deref() != Some("rollback") {
            wanted.entry(task.spec.agent.as_deref().unwrap_or("default")).or_insert(task.id);
        }
    }
    for (name, task) in wanted {
        let Some(profile) = settings.agents.get(name) else {
            let known: Vec<&str> = settings.agents.keys().map(String::as_str).collect();
            let message =
                format!("{task} wants the agent profile `{name}`, which landfall.toml does not have");
            let hint = match (known.is_empty(), api::nearest_word(&known, name)) {
                (true, _) => format!(
                    "add an `[agent.{name}]` section with `kind = \"command\"` and `run = \"…\"`: any program that reads a \
                     prompt on stdin"
                ),
                (false, Some(near)) => format!("did you mean `{near}`? known: {}", known.join(", ")),
                (false, None) => format!("known: {}", known.join(", ")),
            };
            return Err(Problem::new(ProblemCode::AgentMissing, message).with_hint(hint));
        };
        if let Err(unknown) = landfall_agents::registry::find_agent(&profile.kind) {
            let message =
                format!("the agent profile `{name}` has the kind `{}`, which is not known", profile.kind);
            return Err(Problem::new(ProblemCode::AgentMissing, message).with_hint(unknown.hint()));
        }
        if let Err(unfit) = agents::check_profile(profile) {
            let message = format!("the agent profile `{name}` cannot work: {}", unfit.problem);
            let hint = format!("{}; `landfall agents` shows what is installed", unfit.hint);
            return Err(Problem::new(ProblemCode::AgentMissing, message).with_hint(hint));
        }
    }
    Ok(())
}

impl ActiveRun {
    /// Leave to ask the engine.
    pub fn engine_handle(&self) -> EngineHandle {
        self.running.handle()
    }

    /// Where the journal stood before it.
    pub fn from(&self) -> u64 {
        self.shown
    }

    /// The same, for whoever asks about it.
    pub fn monitor(&self) -> RunMonitor {
        self.under_way.clone()
    }

    /// The first task that asks something, if one does.
    pub fn first_question(&self) -> Option<TaskId> {
        let rows = self.under_way.lock_watch().reader.inbox().unwrap_or_default(); // asked again at the next look
        rows.into_iter().find(|row| row.status == TaskStatus::Waiting).map(|row| row.task)
    }

    fn finish_run(
        &mut self,
        ended: Result<landfall_engine::EngineRunOutcome, StoreError>,
    ) -> api::RunOutcome {
        let _ = self.door.take(); // nobody is let in any more, and whoever was is answered
        let under_way = self.under_way.clone();
        let mut watch = under_way.lock_watch();
        watch.read_new_events(); // the last facts belong to this run too
        let elapsed_ms = u64::try_from(under_way.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut outcome = api::RunOutcome {
            run: conversions::run_id(watch.run.unwrap_or(RunId(0))),
            ended: api::RunEnded::Finished,
            tasks: Vec::new(),
            elapsed_ms,
            tokens: conversions::total_tokens(watch.usage),
            cost_usd: conversions::micro_to_usd(watch.usage.micro_usd),
            warnings: Vec::new(),
            needs_you: Vec::new(),
            sprint: None,
            report: None,
            line: None,
        };
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => {
                outcome.ended = api::RunEnded::Broken(problems::from_store_error(&error));
                return outcome;
            }
        };
        outcome.run = conversions::run_id(ended.run);
        let mut tasks = ended.tasks.clone();
        tasks.sort_by_key(|task| task.id);
        outcome.tasks = tasks.iter().map(|task| self.outcome_line(&watch, task)).collect();
        outcome.warnings = run_warnings(&tasks);
        outcome.needs_you = self.list_user_actions(&watch, &tasks);
        let held =
            ended.held.as_ref().map(|reason| format!("landed work is not in your branch yet: {reason}"));
        outcome.needs_you.extend(ended.cut_off.clone());
        outcome.needs_you.extend(held);
        outcome.needs_you.extend(ended.base_held.as_ref().map(|reason| base_held_text(reason)));
        outcome.needs_you.extend(ended.queue_held.as_ref().map(|reason| {
            format!("the landing queue is held: {reason}; `landfall queue` shows it, `landfall queue resume` lets it move")
        }));
        outcome.sprint = ended.sprint.filter(|_| self.for_sprint).map(conversions::sprint_id);
        let owed = reviews::tasks_owing_review(&watch.reader).unwrap_or_default(); // asked again by `landfall review`
        if !owed.is_empty() {
            let many = pluralize(owed.len() as u64, "landed task");
            outcome
                .warnings
                .push(format!("{many} to look at when there is time; `landfall review` lists them"));
        }
        outcome.ended = match ended.why {
            RunEnd::NothingLeft | RunEnd::Lost => {
                match (project_hold_reason(&tasks), self.too_many_deferred(&tasks)) {
                    (_, Some(many)) => api::RunEnded::Deferred(many),
                    (Some(reason), None) => api::RunEnded::Held(reason),
                    (None, None) => api::RunEnded::Finished,
                }
            }
            RunEnd::Spent => {
                let what = self.running.current_view().spent.map(|spent| format!(" ({})", spent.what));
                let what = what.unwrap_or_default();
                api::RunEnded::Held(format!(
                    "the budget of the run is used up{what}; another `landfall run` continues"
                ))
            }
            RunEnd::Paused => api::RunEnded::Paused(ended.paused.clone().unwrap_or_default()),
            RunEnd::Goal => api::RunEnded::Goal,
            RunEnd::OneDone => api::RunEnded::OneDone,
            RunEnd::Drained => api::RunEnded::Drained,
            RunEnd::Interrupted => api::RunEnded::Stopped,
        };
        match self.write_report(&watch, &ended) {
            Ok((path, line)) => {
                outcome.report = Some(path.display().to_string());
                outcome.line = Some(Box::new(line));
            }
            Err(problem) => {
                outcome.warnings.push(format!("the report of the run could not be kept: {problem}"))
            }
        }
        outcome
    }

    /// How many tasks were put aside for a person, if nobody is there and it is too many.
    fn too_many_deferred(&self, tasks: &[Arc<Task>]) -> Option<u64> {
        let many = tasks.iter().filter(|task| course::is_deferred(task)).count();
        (!self.attended && many > course::DEFERRED_MAX).then_some(many as u64)
    }

    fn outcome_line(&self, watch: &RunWatch, task: &Task) -> api::OutcomeLine {
        let unmet = watch.reader.unmet(task.id).unwrap_or_default(); // without it the sentence is shorter
        let wait = match &task.state {
            TaskState::Waiting { wait, .. } => Some(conversions::to_api_wait_for(wait)),
            TaskState::Ready { .. } if !unmet.is_empty() => Some(WaitFor::Dependency),
            TaskState::Draft
            | TaskState::Ready { .. }
            | TaskState::Active { .. }
            | TaskState::Review { .. }
            | TaskState::Ended(_) => None,
        };
        let status = TaskStatus::for_task_among_others(task, &unmet, false);
        api::OutcomeLine {
            task: conversions::task_id(task.id),
            title: task.spec.title.clone(),
            status: conversions::to_api_status(status),
            wait,
            iterations: task.counters.iterations,
            spent_ms: task.counters.spent_ms,
            tokens: conversions::total_tokens(task.counters.usage),
            commit: task.landed.as_ref().map(|landed| landed.commit.as_str().to_owned()),
            why: self.landing_explanation(watch, task).unwrap_or_else(|| {
                why_sentence(task, &TaskRelations::with_unmet_needs(&watch.reader, unmet).unwrap_or_default())
            }),
        }
    }

    /// Why a task could land, and what had to be overcome, in one sentence.
    fn landing_explanation(&self, watch: &RunWatch, task: &Task) -> Option<String> {
        let (landed, gate) = (task.landed.as_ref()?, task.gate.as_ref()?);
        let (id, commit) = (task.id, landed.commit.short_hash());
        if gate.is_empty() {
            return Some(format!("{id} landed as {commit} unproved: no check is configured."));
        }
        let events = watch.reader.events(Seq::ZERO, Some(id), u32::MAX).unwrap_or_default();
        let happened = |this: fn(&Event) -> bool| {
            let count =
                events.iter().filter(|(_, entry)| matches!(&entry.fact, Fact::Task(_, event) if this(event)));
            count.count() as u64
        };
        let told = [
            (
                happened(|it| matches!(it, Event::Verified { report, .. } if !report.outcome().is_green())),
                "failed verification",
            ),
            (happened(|it| matches!(it, Event::Conflicted { .. })), "conflict with the base"),
            (
                happened(|it| matches!(it, Event::Waited { wait: WaitReason::Question { .. }, .. })),
                "question to you",
            ),
            (
                happened(|it| matches!(it, Event::IterationEnded { verdict: Verdict::Continue, .. })),
                "iteration without a signal",
            ),
            (happened(|it| matches!(it, Event::Reviewed { .. })), "review"),
        ];
        let mut after: Vec<String> = told
            .into_iter()
            .filter(|(many, _)| *many > 0)
            .map(|(many, what)| pluralize(many, what))
            .collect();
        if happened(|it| matches!(it, Event::Collected { leftovers: true, .. })) > 0 {
            after.push("the engine committed what the agent had left".to_owned());
        }
        let after = if after.is_empty() { String::new() } else { format!(", after {}", after.join(" and ")) };
        let earlier = if gate.reused { " earlier" } else { "" };
        Some(format!(
            "{id} landed as {commit}: {} passed{earlier} on exactly the tree that landed{after}.",
            sentences::named_checks(gate)
        ))
    }

    /// What only a person can do now: answer, review, mend; whether or not this run touched it.
    fn list_user_actions(&self, watch: &RunWatch, touched: &[Arc<Task>]) -> Vec<String> {
        const NAMED_MAX: usize = 20;
        let mut sentences = Vec::new();
        let mut seen: BTreeSet<TaskId> = BTreeSet::new();
        let reader = &watch.reader;
        let mut ids: Vec<TaskId> =
            reader.inbox().map(|rows| rows.iter().map(|row| row.task).collect()).unwrap_or_default();
        let waits = reader.waiting(WAITS_MAX).unwrap_or_default();
        ids.extend(waits.iter().filter(|row| is_yours(row.wait.as_deref())).map(|row| row.id));
        ids.extend(
            touched.iter().filter(|task| conversions::ended_without_landing(task)).map(|task| task.id),
        );
        ids.sort();
        for id in ids {
            let Ok(Some(task)) = reader.task(id) else { continue };
            if !seen.insert(id) {
                continue;
            }
            sentences.push(why_sentence(&task, &TaskRelations::default()));
        }
        if sentences.len() > NAMED_MAX {
            let rest = sentences.len() - NAMED_MAX;
            sentences.truncate(NAMED_MAX);
            sentences.push(format!("{rest} more wait for you; `landfall status` names them."));
        }
        sentences
    }

    /// Writes the report of the run over all engines that drove it: its path, and its figures.
    fn write_report(
        &self,
        watch: &RunWatch,
        ended: &landfall_engine::EngineRunOutcome,
    ) -> Result<(PathBuf, api::RunLine), Problem> {
        let records = reports::list_run_records(&watch.reader, false)?;
        let record = records.iter().rfind(|record| record.ids.contains(&ended.run));
        let record = record.ok_or_else(|| {
            Problem::new(ProblemCode::UnknownRun, format!("{} is not in the journal", ended.run))
        })?;
        let notes = [
            ended.cut_off.as_ref().map(|reason| format!("It was cut off: {reason}.")),
            ended.held.as_ref().map(|reason| format!("Landed work is not in your branch yet: {reason}.")),
            ended.paused.as_ref().map(|reason| format!("It ended paused: {reason}.")),
            ended.queue_held.as_ref().map(|reason| format!("The landing queue is held: {reason}.")),
            ended.sprint.filter(|_| self.for_sprint).map(|id| {
                format!(
                    "It was a run of sprint {id}; `landfall sprint report {id}` says what became of that."
                )
            }),
        ];
        let report = reports::full_run_report(&watch.reader, record, notes.into_iter().flatten().collect())?;
        let path = reports::run_report_path(&self.place, record.id());
        disk::write_atomic(&path, run_text::render_run_markdown(&report, clock::now_ms()).as_bytes())
            .map_err(|error| problems::from_io_error("write", &path, &error))?;
        Ok((path, report.run))
    }
}

impl RunHandle for ActiveRun {
    fn snapshot(&mut self) -> RunView {
        let view = self.under_way.current_view(api::RunNowAsked { after: Some(self.shown) });
        self.shown = view.head;
        if view.mode == RunMode::Draining && self.mode == RunMode::Running {
            self.mode = RunMode::Draining; // asked for by another command
        }
        RunView { mode: self.mode, ..view }
    }

    fn drain(&mut self) {
        if self.mode == RunMode::Running {
            self.mode = RunMode::Draining;
        }
        self.running.handle().request_drain();
    }

    fn stop_now(&mut self) {
        self.mode = RunMode::Stopping;
        self.running.handle().request_stop_now();
    }

    fn wait(&mut self, timeout: Duration) -> Option<api::RunOutcome> {
        let ended = self.running.wait(timeout)?;
        Some(self.finish_run(ended))
    }
}

const WAITS_MAX: u32 = 1_000; // what a terminal could ever show

fn is_yours(wait: Option<&str>) -> bool {
    wait.and_then(|word| word.parse::<WaitFor>().ok()).is_some_and(WaitFor::is_yours)
}

/// Why the project as a whole cannot go on, if it cannot.
fn project_hold_reason(tasks: &[Arc<Task>]) -> Option<String> {
    tasks.iter().find_map(|task| match &task.state {
        TaskState::Waiting {
            wait: wait @ (WaitReason::GateBroken { .. } | WaitReason::Disk { .. }), ..
        } => Some(format!("{} waits {}", task.id, sentences::wait_words(wait))),
        TaskState::Waiting { .. }
        | TaskState::Draft
        | TaskState::Ready { .. }
        | TaskState::Active { .. }
        | TaskState::Review { .. }
        | TaskState::Ended(_) => None,
    })
}

/// What a person should know of a run, each once.
/// That no agent could start on the base, and what to do about it.
fn base_held_text(reason: &str) -> String {
    format!("no agent was started: {reason}; `landfall check` shows it and how to mend it")
}

fn run_warnings(tasks: &[Arc<Task>]) -> Vec<String> {
    let mut sentences = Vec::new();
    if tasks.iter().any(|task| task.is_unproved()) {
        sentences.push(
            "VERIFICATION_EMPTY: no check is configured, so nothing that landed was proved; add a `[[verify.command]]` to \
             landfall.toml and commit it"
                .to_owned(),
        );
    }
    for task in tasks {
        let told = task.warnings.iter().filter(|warning| match warning {
            Warning::VerificationEmpty | Warning::NearIterationsMax { .. } | Warning::LeftoversCommitted => {
                false
            }
            Warning::Stuck { .. }
            | Warning::OptionalFailed { .. }
            | Warning::Flaky { .. }
            | Warning::SignalMalformed { .. }
            | Warning::SettingsTouched { .. }
            | Warning::Discovery { .. }
            | Warning::HookFailed { .. }
            | Warning::Folder { .. } => true,
        });
        let told: BTreeSet<String> = told.map(Warning::to_sentence).collect();
        sentences.extend(told.into_iter().map(|sentence| format!("{}: {sentence}", task.id)));
    }
    sentences
}

/// What is known of a run from the journal, kept up to date by reading what came since the last look.
struct RunWatch {
    reader: StoreReader,
    at: Seq,
    branch: String,
    run: Option<RunId>,
    slots_max: u32,
    active: BTreeMap<TaskId, Task>,
    /// The latest news, each with its place in the journal.
    news: VecDeque<(u64, NewsLine)>,
    counted: RunProgressCounts,
    /// Whether the run before this one lost its engine: this one takes over from it.
    takes_over: bool,
    landed: BTreeSet<TaskId>,
    failed: BTreeSet<TaskId>,
    usage: AgentUsage,
    /// How long engines before this one drove the run.
    earlier_ms: u64,
    /// The first in line.
    next: Option<api::TaskBrief>,
    /// How far tasks have come that follow issues; none for those that follow none.
    on_the_way: BTreeMap<TaskId, Option<IssueTaskProgress>>,
}

/// A task on the way of its issue.
struct IssueTaskProgress {
    issue: u64,
    flow: Option<Arc<Flow>>,
    progress: IssueProgress,
}

/// What is counted only when something happened.
#[derive(Debug, Clone, Copy, Default)]
struct RunProgressCounts {
    landing: u64,
    waiting: u64,
    needs_you: u64,
    queued: u64,
}

const NEWS_MAX: usize = 2_000; // whoever looks once a second misses none of these
const LOOK_MAX: u32 = 2_000; // events of one look; a burst is read in several

impl RunWatch {
    fn new(reader: StoreReader, at: Seq, branch: String, slots_max: u32) -> Self {
        let newest = reader.runs(1).unwrap_or_default(); // a journal that cannot be read ends the run by itself
        let mut watch = Self {
            takes_over: newest.first().is_some_and(|run| run.ended.is_none()),
            reader,
            at,
            branch,
            run: None,
            slots_max,
            active: BTreeMap::new(),
            news: VecDeque::new(),
            counted: RunProgressCounts::default(),
            landed: BTreeSet::new(),
            failed: BTreeSet::new(),
            usage: AgentUsage::default(),
            earlier_ms: 0,
            next: None,
            on_the_way: BTreeMap::new(),
        };
        // Tasks that an earlier engine left at work are in their slots from the start.
        for status in [TaskStatus::Active, TaskStatus::Landing] {
            let filter = TaskFilter { status: Some(status), ..TaskFilter::default() };
            for row in watch.reader.tasks(&filter, None, WAITS_MAX).unwrap_or_default() {
                watch.refresh_task(row.id);
            }
        }
        watch
    }

    /// Reads what came since the last look. A journal that cannot be read now is read at the next look; the engine
    /// itself says so if it cannot go on.
    fn read_new_events(&mut self) {
        loop {
            let Ok(entries) = self.reader.events(self.at, None, LOOK_MAX) else { return };
            if entries.is_empty() {
                return;
            }
            let mut touched: BTreeSet<TaskId> = BTreeSet::new();
            for (seq, entry) in &entries {
                self.at = *seq;
                if let Fact::Task(id, _) = &entry.fact {
                    touched.insert(*id);
                }
            }
            for id in touched {
                self.refresh_task(id);
            }
            for (seq, entry) in &entries {
                self.note_fact(seq.0, entry.at.0, &entry.fact);
            }
            self.refresh_counts();
        }
    }

    fn note_fact(&mut self, seq: u64, at_ms: i64, fact: &Fact) {
        let (task, text) = match fact {
            Fact::Engine(event) => {
                if let EngineEvent::RunStarted { run, .. } = event {
                    self.run = Some(*run);
                    self.count_earlier_engines(Seq(seq));
                }
                (None, sentences::engine_news(event))
            }
            Fact::Task(id, event) => {
                match event {
                    Event::Landed { .. } => {
                        self.failed.remove(id);
                        self.landed.insert(*id);
                    }
                    Event::Entered { .. } => {
                        self.failed.remove(id); // it is tried again
                    }
                    Event::IterationEnded { usage, .. } => self.usage = self.usage.plus(*usage),
                    event if changes::is_failure(event) => {
                        self.failed.insert(*id);
                    }
                    _ => {}
                }
                for text in self.phase_news(seq, *id, event) {
                    self.push_news(seq, NewsLine { at_ms, task: Some(conversions::task_id(*id)), text });
                }
                let landed = match event {
                    Event::Landed { .. } => self.reader.task(*id).ok().flatten(),
                    _ => None,
                };
                (Some(conversions::task_id(*id)), sentences::task_news(event, landed.as_ref(), &self.branch))
            }
        };
        if let Some(text) = text {
            self.push_news(seq, NewsLine { at_ms, task, text });
        }
    }

    /// Counts what engines before this one did in the same run, so that a kill does not begin the figures anew.
    fn count_earlier_engines(&mut self, at: Seq) {
        if !std::mem::take(&mut self.takes_over) {
            return;
        }
        let records = reports::list_run_records_until(&self.reader, Some(at), true);
        let Some(record) = records.ok().and_then(|mut records| records.pop()) else { return };
        for task in &record.tasks {
            match task.result {
                TaskResult::Landed => {
                    self.landed.insert(task.id);
                }
                TaskResult::Failed => {
                    self.failed.insert(task.id);
                }
                _ => {}
            }
        }
        self.usage = record.total_usage().usage;
        self.earlier_ms = reports::to_run_line(&record).took_ms(clock::now_ms());
    }

    fn push_news(&mut self, seq: u64, line: NewsLine) {
        self.news.push_back((seq, line));
        if self.news.len() > NEWS_MAX {
            self.news.pop_front();
        }
    }

    /// What a fact means for the phases of the issue that a task follows. What happened before the run counts too.
    fn phase_news(&mut self, seq: u64, id: TaskId, event: &Event) -> Vec<String> {
        if !self.on_the_way.contains_key(&id) {
            let Ok(task) = self.reader.task(id) else { return Vec::new() }; // read with its next event
            let found = task.and_then(|task| {
                let issue = IssueRef::from_source(&task.spec.source)?.number;
                let progress = follow_issues::issue_progress(&self.reader, &task, Some(seq)).ok()?;
                Some(IssueTaskProgress { issue, flow: task.flow, progress })
            });
            self.on_the_way.insert(id, found);
        }
        let Some(Some(it)) = self.on_the_way.get_mut(&id) else { return Vec::new() };
        if let Event::Bound { flow, .. } = event {
            it.flow = Some(flow.clone());
        }
        let lines = it.progress.hear(it.flow.as_deref(), event);
        lines.into_iter().map(|line| format!("#{} {line}", it.issue)).collect()
    }

    fn refresh_task(&mut self, id: TaskId) {
        match self.reader.task(id) {
            Ok(Some(task)) if matches!(task.state, TaskState::Active { .. }) => {
                self.active.insert(id, task);
            }
            Ok(_) => {
                self.active.remove(&id); // it rests
            }
            Err(_) => {} // read again with its next event
        }
    }

    fn refresh_counts(&mut self) {
        let Ok(counts) = self.reader.counts() else { return };
        let asks = self.reader.inbox().map_or(0, |rows| rows.len());
        let waits = self.reader.waiting(WAITS_MAX).unwrap_or_default();
        // Questions are in the inbox already.
        let yours = waits.iter().filter(|row| row.asks.is_none() && is_yours(row.wait.as_deref())).count();
        self.next = autopilot::next_task_brief(&self.reader).unwrap_or_default(); // named again at the next look
        self.counted = RunProgressCounts {
            landing: counts.count_of(TaskStatus::Landing),
            waiting: counts.count_of(TaskStatus::Waiting) + counts.dependency,
            needs_you: (asks + yours) as u64,
            queued: counts.count_of(TaskStatus::Ready),
        };
    }

    fn sprint_bar(&self, view: &LiveSnapshot) -> Option<String> {
        let sprint = view.sprint.as_ref()?;
        let now = landfall_engine::model::Timestamp(clock::now_ms());
        Some(sprints::sprint_bar(sprint, sprint_ready(sprint, self.counted.queued), now))
    }

    fn build_run_view(
        &self,
        view: &LiveSnapshot,
        checks: &[RunningCheck],
        mode: RunMode,
        elapsed: Duration,
        after: Option<u64>,
    ) -> RunView {
        let live = &view.live;
        let now_ms = clock::now_ms();
        let mut under_way = AgentUsage::default();
        let slots = self.active.values().filter_map(|task| {
            let TaskState::Active { step, doing } = &task.state else { return None };
            let live = live.get(&task.id);
            let used = live.map(|live| live.usage).unwrap_or_default();
            under_way = under_way.plus(used);
            let all = task.counters.usage.plus(used);
            Some(SlotLine {
                task: task.id.to_string(),
                title: task.spec.title.clone(),
                step: step.as_str().to_owned(),
                doing: tasks::activity(doing).word().to_owned(),
                iteration: tasks::current_iteration(task),
                iterations_max: task.limits.iterations_max,
                elapsed_ms: tasks::elapsed_ms(task, now_ms),
                tokens: conversions::total_tokens(all),
                cost_usd: conversions::micro_to_usd(all.micro_usd),
                last_words: match running_checks::check_of_task(checks, task.id) {
                    Some(check) => running_checks::check_progress(check),
                    None => live.map(last_words).unwrap_or_default(),
                },
            })
        });
        let slots: Vec<SlotLine> = slots.collect();
        let RunProgressCounts { landing, waiting, needs_you, queued } = self.counted;
        let waits = view.pilot.phase() == Phase::WaitingUser && self.run.is_some();
        RunView {
            run: self.run.map(conversions::run_id),
            mode,
            pilot: self.run.map(|_| conversions::to_api_mode(view.pilot.mode())),
            paused: view.pilot.pause().map(|pause| pause.reason.clone()),
            pick: waits.then(|| autopilot::pick_hint(self.next.as_ref())),
            sprint: self.sprint_bar(view),
            batches: queue::draw_active_batches(&view.queue),
            queue_held: view.queue.hold().map(|hold| hold.reason.clone()),
            slots,
            slots_max: self.slots_max,
            landed: self.landed.len() as u64,
            failed: self.failed.len() as u64,
            landing,
            waiting,
            needs_you,
            queued,
            elapsed_ms: u64::try_from(elapsed.as_millis())
                .unwrap_or(u64::MAX)
                .saturating_add(self.earlier_ms),
            tokens: conversions::total_tokens(self.usage.plus(under_way)),
            cost_usd: conversions::micro_to_usd(self.usage.plus(under_way).micro_usd),
            news: match after {
                Some(after) => {
                    self.news.iter().filter(|(seq, _)| *seq > after).map(|(_, line)| line.clone()).collect()
                }
                None => Vec::new(),
            },
            head: self.at.0,
            outcome: None,
        }
    }
}

/// What a sprint may still begin, as far as that is known without looking at each task.
fn sprint_ready(sprint: &Sprint, ready: u64) -> u64 {
    let plan = &sprint.plan;
    let chooses = !(plan.parents.is_empty() && plan.tags_in.is_empty() && plan.tags_out.is_empty());
    match (chooses, plan.only.len() as u64) {
        (false, 0) => ready,
        (false, only) => ready.min(only),
        (true, _) => ready.min(u64::from(sprint.ready).saturating_sub(sprint.tasks.len() as u64)),
    }
}

/// The socket of the run. Closed, it is removed, unless another engine has put its own there meanwhile.
pub(crate) struct RunSocket {
    serving: Option<RunningServer>,
    path: PathBuf,
    inode: u64,
}

impl RunSocket {
    fn open(place: &ProjectLocation, desk: Arc<ProjectService>) -> Result<Self, Problem> {
        Self::start_with_server(place, desk, Vec::new(), Vec::new(), Vec::new())
    }

    /// The same, open for browsers too.
    pub fn start_with_server(
        place: &ProjectLocation,
        desk: Arc<ProjectService>,
        addresses: Vec<TcpListener>,
        hosts: Vec<String>,
        origins: Vec<String>,
    ) -> Result<Self, Problem> {
        let path = place.folder.socket_path();
        let failed = |error: std::io::Error| problems::from_io_error("listen on", &path, &error);
        let listener = socket::bind_socket(&path).map_err(failed)?;
        let inode = std::fs::symlink_metadata(&path).map_err(failed)?.ino();
        let name = place
            .root
            .file_name()
            .map_or_else(|| "Landfall".into(), |name| name.to_string_lossy().into_owned());
        let options = landfall_server::ServerOptions {
            socket: Some(listener),
            addresses,
            hosts,
            origins,
            folder: place.folder.root().to_owned(),
            project: name,
        };
        let serving =
            landfall_server::serve(options, desk).map_err(|error| problems::from_serve_error(&error))?;
        Ok(Self { serving: Some(serving), path, inode })
    }
}

impl Drop for RunSocket {
    fn drop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.stop();
        }
        let ours = std::fs::symlink_metadata(&self.path).is_ok_and(|meta| meta.ino() == self.inode);
        if ours {
            let _ = std::fs::remove_file(&self.path); // gone already is as good
        }
    }
}

/// What an agent is at when it does not plainly work, and the last it said.
fn last_words(live: &LiveAgent) -> String {
    let words = progress_text(live);
    let at = match live.class {
        None | Some(AgentActivity::Working) => return words,
        // The tool is its last word, unless it said something since.
        Some(AgentActivity::InTool) => match words.split_once("] ") {
            Some((_, detail)) if words.starts_with('[') => return format!("in a tool: {detail}"),
            _ => AgentActivity::InTool.label().to_owned(),
        },
        Some(
            class @ (AgentActivity::WaitingForModel
            | AgentActivity::WaitingForPerson
            | AgentActivity::Unanswered
            | AgentActivity::Dead),
        ) => {
            format!("{} {}", class.label(), format_duration(live.quiet_ms))
        }
        Some(AgentActivity::Looping) => AgentActivity::Looping.label().to_owned(),
    };
    if words.is_empty() { at } else { format!("{at} · {words}") }
}

/// How far an agent says it is, and the last it said.
fn progress_text(live: &LiveAgent) -> String {
    match live.progress {
        Some(percent) => format!("{percent} % {}", live.words).trim_end().to_owned(),
        None => live.words.clone(),
    }
}

#[cfg(test)]
mod tests {
    use landfall_engine::LiveAgent;
    use landfall_engine::model::liveness::AgentActivity;

    use super::last_words;

    #[test]
    fn an_agent_that_does_not_plainly_work_is_seen_to() {
        let check = |class, words: &str, expect: &str| {
            let live = LiveAgent {
                class: Some(class),
                words: words.to_owned(),
                quiet_ms: 120_000,
                ..LiveAgent::default()
            };
            assert_eq!(last_words(&live), expect);
        };
        check(AgentActivity::Working, "reading the tests", "reading the tests");
        check(AgentActivity::WaitingForModel, "", "waiting for the model 2m");
        check(AgentActivity::WaitingForModel, "I see.", "waiting for the model 2m · I see.");
        check(AgentActivity::InTool, "[Bash] cargo test", "in a tool: cargo test");
        check(AgentActivity::InTool, "[Bash]", "in a tool · [Bash]");
        check(AgentActivity::Looping, "again", "looping · again");
    }
}

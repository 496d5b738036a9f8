//! Everything about one task: the head that all its pages share, and the first of them.
//!
//! Each tab is a page of its own, so that it works without scripts: the log is in `task_log`, the diff in `task_diff`, what
//! was checked, tried, spent and proved in `task_checks`, `task_attempts` and `task_proof`. What a person can do is decided
//! in `task_panel`.

use askama::Template;
use landfall_api::{
    EdgeKind, FlowLine, GraphAsked, InboxAsked, InboxKind, Nothing, Problem, ProblemCode, Status, TaskAsked,
    TaskDetail, TypedService as _, WireTaskId,
};

use super::decide::DecisionForm;
use super::inbox::kind_name;
use super::markdown;
use super::markup::Markup;
use super::parts::{self, Badge, ProgressBar, RelativeTime};
use super::task_loop::{self, LoopStrip};
use super::task_panel::{self, TaskPanel};
use super::task_target::{self, PlanProgress};
use super::{PageContext, RenderedPage, words};

/// The pages of a task: what stands in the address, and how it is called.
const TABS: &[(&str, &str)] = &[
    ("", "Overview"),
    ("log", "Log"),
    ("diff", "Diff"),
    ("checks", "Checks"),
    ("gates", "Gates"),
    ("target", "Target"),
    ("attempts", "Attempts"),
    ("cost", "Cost"),
    ("certificate", "Certificate"),
    ("history", "History"),
];

/// What stands above every page of a task.
pub(super) struct TaskPageHead {
    pub(super) id: WireTaskId,
    pub(super) title: String,
    badge: Badge,
    sentence: Markup,
    /// The same without markup.
    sentence_text: String,
    details: Vec<String>,
    marks: Vec<String>,
    tags: Vec<String>,
    rail: Vec<TaskStepView>,
    way: Option<PlanProgress>,
    needs: Vec<RelatedTask>,
    unblocks: Vec<RelatedTask>,
    more_unblocked: usize,
    parent: Option<WireTaskId>,
    /// Works under way that it does not fit together with, and where.
    clashes: Vec<(WireTaskId, String)>,
    tabs: Vec<TaskTab>,
    panel: TaskPanel,
    /// What it wants of the person, if it is their turn.
    ask: Option<TaskQuestion>,
    /// The loop over it, if it is of a module.
    strip: Option<LoopStrip>,
    /// What the task is, for the page below.
    pub(super) detail: Box<TaskDetail>,
    pub(super) now_ms: i64,
}

struct TaskTab {
    path: String,
    name: &'static str,
    here: bool,
    key: &'static str,
}

/// Another task.
struct RelatedTask {
    id: WireTaskId,
    title: String,
    badge: Option<Badge>,
}

/// What a task wants of a person: the same decision that the inbox shows.
struct TaskQuestion {
    kind: &'static str,
    text: String,
    decision: DecisionForm,
}

impl TaskQuestion {
    /// None if it is not the person's turn, or nobody knows.
    fn for_task(visit: &PageContext<'_>, detail: &TaskDetail, panel: &TaskPanel) -> Option<Self> {
        let may_wait = match detail.line.status {
            Status::Draft | Status::Ready | Status::Active | Status::Landing | Status::Cancelled => false,
            Status::Waiting
            | Status::Blocked
            | Status::Review
            | Status::Done
            | Status::Failed
            | Status::Timeout => true,
        };
        if !may_wait {
            return None;
        }
        let asked = InboxAsked { task: Some(detail.line.id), ..InboxAsked::default() };
        let item = visit.inbox(asked).ok()?.items.into_iter().next()?;
        let mut decision = DecisionForm::for_item(&item, &panel.back);
        decision.add_issue_checkboxes(&panel.issues);
        let (kind, _) = kind_name(item.kind);
        // The sentence at the top of the page says already why it gave up.
        let text = match item.kind {
            InboxKind::Failed | InboxKind::Blocked => String::new(),
            _ => item.text,
        };
        (!decision.is_empty()).then_some(Self { kind, text, decision })
    }
}

/// One step of the flow, and what it left behind.
struct TaskStepView {
    name: String,
    state: StepState,
    /// The last result, when it was and how long it took, in one line.
    about: String,
    tries: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepState {
    Done,
    Now,
    Stopped,
    Next,
}

impl StepState {
    fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Now => "now",
            Self::Stopped => "stopped",
            Self::Next => "next",
        }
    }

    fn symbol(self) -> &'static str {
        match self {
            Self::Done => "✓",
            Self::Now => "●",
            Self::Stopped => "✗",
            Self::Next => "○",
        }
    }
}

/// The moment it is.
pub(super) fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

const UNBLOCKED_MAX: usize = 12;

impl TaskPageHead {
    /// Asks for everything the head shows.
    pub(super) fn load_head(visit: &PageContext<'_>, tab: &str) -> Result<Self, Problem> {
        let id: WireTaskId = visit.path_value("task")?;
        let detail = visit.show(TaskAsked { task: id })?;
        let why = visit.why(TaskAsked { task: id })?;
        let now_ms = now_ms();
        // What is around it is worth having, and no reason to show nothing.
        let graph = visit.graph(GraphAsked { root: Some(id), depth: 1, done: true, nodes: 100 }).ok();
        let other = |id: WireTaskId| {
            let node = graph.as_ref().and_then(|graph| graph.nodes.iter().find(|node| node.id == id));
            RelatedTask {
                id,
                title: node.map(|node| words::line(&node.title)).unwrap_or_default(),
                badge: node.map(|node| parts::badge(node.status)),
            }
        };
        let needed_by: Vec<WireTaskId> = graph
            .iter()
            .flat_map(|graph| &graph.edges)
            .filter(|edge| edge.from == id && edge.kind == EdgeKind::Needs && !edge.met)
            .map(|edge| edge.to)
            .collect();
        let flows = visit.flow_list(Nothing {}).map(|list| list.flows).unwrap_or_default();
        let panel = task_panel::build_panel(visit, &detail, &flows, tab);
        // Only a task with a plan, a judge or an objective has something there.
        let there = |part: &str| part != "target" || detail.progress.is_some() || tab == "target";
        let tabs = TABS.iter().filter(|(part, _)| there(part)).map(|(part, name)| TaskTab {
            path: if part.is_empty() { format!("/tasks/{id}") } else { format!("/tasks/{id}/{part}") },
            name,
            here: *part == tab,
            key: part,
        });
        Ok(Self {
            id,
            title: words::line(&detail.line.title),
            badge: parts::badge(detail.line.status),
            sentence: words::prose(&why.sentence),
            sentence_text: words::line(&why.sentence),
            details: why.details.iter().map(|it| words::line(it)).collect(),
            marks: task_marks(&detail),
            tags: detail.line.tags.iter().map(|it| words::line(it)).collect(),
            rail: step_rail(&detail, &flows, now_ms),
            way: detail.progress.as_deref().map(task_target::plan_progress),
            needs: detail.line.needs.iter().map(|it| other(*it)).collect(),
            more_unblocked: needed_by.len().saturating_sub(UNBLOCKED_MAX),
            unblocks: needed_by.into_iter().take(UNBLOCKED_MAX).map(other).collect(),
            parent: detail.line.parent,
            clashes: why.clashes.iter().map(|it| (it.with, words::line(&it.files.join(", ")))).collect(),
            tabs: tabs.collect(),
            ask: TaskQuestion::for_task(visit, &detail, &panel),
            panel,
            strip: task_loop::loop_strip(visit, &detail),
            detail,
            now_ms,
        })
    }

    /// Whether a step is shown: those that were begun, and the next one.
    fn is_chip(&self, step: &TaskStepView, place: usize) -> bool {
        let is_first_ahead = self.rail.iter().position(|step| step.state == StepState::Next) == Some(place);
        step.state != StepState::Next || is_first_ahead
    }

    /// How many steps are not shown.
    fn hidden_steps(&self) -> usize {
        self.rail.iter().filter(|step| step.state == StepState::Next).count().saturating_sub(1)
    }

    fn hidden_names(&self) -> String {
        let ahead = self.rail.iter().filter(|step| step.state == StepState::Next).skip(1);
        ahead.map(|step| step.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Whether there is more to say about it than its sentence.
    fn has_more(&self) -> bool {
        !self.details.is_empty()
            || !self.needs.is_empty()
            || !self.unblocks.is_empty()
            || self.parent.is_some()
    }

    fn more_words(&self) -> String {
        let mut words = vec!["Details".to_owned()];
        if let Some(parent) = self.parent {
            words.push(format!("part of {parent}"));
        }
        if !self.needs.is_empty() {
            words.push(format!("needs {}", self.needs.len()));
        }
        if !self.unblocks.is_empty() {
            words.push(format!("unblocks {}", self.unblocks.len() + self.more_unblocked));
        }
        words.join(" · ")
    }

    /// Where a tab of this task is.
    pub(super) fn path(&self, tab: &str) -> String {
        format!("/tasks/{}/{tab}", self.id)
    }

    /// A page of this task.
    pub(super) fn render_page(&self, tab: &str, page: &impl Template) -> Result<RenderedPage, Problem> {
        let title = match tab {
            "" => format!("{} {}", self.id, self.title),
            tab => format!("{tab} · {} {}", self.id, self.title),
        };
        let inner = Markup::from_template(page)
            .map_err(|error| Problem::new(ProblemCode::Internal, format!("draw the page: {error}")))?;
        RenderedPage::new(title, &TaskPageFrame { head: self, inner })
    }
}

/// A page of a task below its head. What is inside was drawn by a template of ours.
#[derive(Template)]
#[template(path = "task_frame.html")]
struct TaskPageFrame<'a> {
    head: &'a TaskPageHead,
    inner: Markup,
}

/// Small words beside the status.
fn task_marks(detail: &TaskDetail) -> Vec<String> {
    let mut marks = Vec::new();
    if let Some(phase) = &detail.line.phase {
        marks.push(words::line(phase));
    }
    if let Some(size) = detail.line.size {
        marks.push(format!("size {size}"));
    }
    marks.push(format!("priority {}", detail.line.priority));
    if detail.line.iterations > 0 {
        marks.push(format!("iteration {} of {}", detail.line.iterations, detail.iterations_max));
    }
    if detail.held.is_some() {
        marks.push("held by you".to_owned());
    }
    marks
}

/// The steps of the flow in order, each with what its last attempt showed.
fn step_rail(detail: &TaskDetail, flows: &[FlowLine], now_ms: i64) -> Vec<TaskStepView> {
    let mut names: Vec<&str> = match flows.iter().find(|flow| flow.name == detail.flow) {
        Some(flow) => flow.steps.iter().map(String::as_str).collect(),
        None => Vec::new(),
    };
    for attempt in &detail.attempts {
        if !names.contains(&attempt.step.as_str()) {
            names.push(&attempt.step); // the flow has changed since, or is gone
        }
    }
    let over =
        matches!(detail.line.status, Status::Failed | Status::Timeout | Status::Cancelled | Status::Blocked);
    // A task that is over is at no step any more: it stopped at the last one it tried.
    let last_tried = detail.attempts.last().map(|attempt| attempt.step.as_str()).filter(|_| over);
    let here = detail.step.as_deref().or(last_tried);
    let here = here.and_then(|step| names.iter().position(|name| *name == step));
    names
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let mut tries = detail.attempts.iter().filter(|it| it.step == *name);
            let count = tries.clone().count();
            let last = tries.next_back();
            let state = match here {
                Some(here) if here == at && over => StepState::Stopped,
                Some(here) if here == at && detail.line.status != Status::Done => StepState::Now,
                Some(here) if at > here && detail.line.status != Status::Done => StepState::Next,
                Some(_) | None if last.is_some_and(|last| last.has_failed) => StepState::Stopped,
                Some(_) | None if last.is_some() => StepState::Done,
                Some(_) | None => StepState::Next,
            };
            let about = last.map(|last| {
                let took = last.ended_ms.unwrap_or(now_ms).saturating_sub(last.began_ms).unsigned_abs();
                let before = if state == StepState::Next { "before: " } else { "" };
                let when = words::relative_time(now_ms, last.began_ms);
                format!("{before}{} · {when} · {}", words::line(&last.end), format_precise(took))
            });
            TaskStepView { name: words::line(name), state, about: about.unwrap_or_default(), tries: count }
        })
        .collect()
}

/// A length of time where a second is long: `86ms`, `4.2s`, `42s`, `4m 10s`.
pub(super) fn format_precise(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..10_000 => format!("{}.{}s", ms / 1000, ms % 1000 / 100),
        _ => words::length(ms),
    }
}

/// A commit as people write it.
pub(super) fn short_commit(commit: &str) -> String {
    words::line(&commit.chars().take(10).collect::<String>())
}

#[derive(Template)]
#[template(path = "task.html")]
struct TaskOverviewPage {
    body: Option<Markup>,
    criteria: Vec<String>,
    touches: Vec<String>,
    facts: Vec<(&'static str, String)>,
    meters: Vec<UsageBar>,
    counters: Vec<(String, String)>,
    feedback: Option<Markup>,
    messages: Vec<String>,
    warnings: Vec<String>,
    concerns: Vec<String>,
    added: RelativeTime,
    tokens: String,
    cost: Option<String>,
}

/// Something that is used up.
pub(super) struct UsageBar {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) bar: ProgressBar,
}

pub(super) fn draw_task_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let head = TaskPageHead::load_head(visit, "")?;
    let detail = &head.detail;
    let lines = |texts: &[String]| texts.iter().map(|it| words::line(it)).collect::<Vec<_>>();
    let mut facts = vec![
        ("flow", words::line(&detail.flow)),
        ("agent", words::line(&detail.agent)),
        ("came from", words::line(&detail.source)),
    ];
    if let Some(step) = &detail.step {
        facts.push(("step", words::line(step)));
    }
    if detail.attempt > 0 {
        facts.push(("attempt", detail.attempt.to_string()));
    }
    if let Some(branch) = &detail.branch {
        facts.push(("branch", words::line(branch)));
    }
    if let Some(workspace) = &detail.workspace {
        facts.push(("workspace", words::line(workspace)));
    }
    if let Some(landed) = &detail.landed_as {
        facts.push(("landed as", short_commit(&landed.commit)));
        if let landfall_api::Publication::Held(reason) = &landed.publication {
            facts.push(("not in your repository yet", words::line(reason)));
        }
    }
    let counters = detail.counters.iter().filter(|it| it.used > 0).map(|it| {
        let max = it.max.map(|max| format!(" of {max}")).unwrap_or_default();
        (words::line(&it.name), format!("{}{max}", it.used))
    });
    let page = TaskOverviewPage {
        body: (!detail.body.trim().is_empty()).then(|| markdown::render_markdown(&detail.body)),
        criteria: lines(&detail.criteria),
        touches: lines(&detail.touches),
        facts,
        meters: usage_bars(detail),
        counters: counters.collect(),
        feedback: detail.feedback.as_deref().map(markdown::render_markdown),
        messages: detail.messages.iter().map(|it| words::visible(it)).collect(),
        warnings: lines(&detail.warnings),
        // Work that has landed is not reviewed before it lands.
        concerns: match detail.line.status {
            Status::Done => Vec::new(),
            _ => lines(&detail.concerns.iter().map(|it| it.text.clone()).collect::<Vec<_>>()),
        },
        added: parts::ago(head.now_ms, detail.added_ms),
        tokens: words::short(detail.tokens),
        cost: detail.cost_usd.map(words::usd),
    };
    head.render_page("", &page)
}

/// What the task uses up: iterations, time, and whatever has a budget.
pub(super) fn usage_bars(detail: &TaskDetail) -> Vec<UsageBar> {
    #[expect(clippy::cast_precision_loss, reason = "a bar has a hundred steps")]
    let share = |used: u64, max: u64| if max == 0 { 0.0 } else { used as f64 * 100.0 / max as f64 };
    let own = |is: bool| if is { " (set by you)" } else { "" };
    let limits = detail.own_limits.as_ref();
    let iterations = format!(
        "{} of {}{}",
        detail.line.iterations,
        detail.iterations_max,
        own(limits.is_some_and(|it| it.iterations.is_some()))
    );
    let time = format!(
        "{} of {}{}",
        words::length(detail.spent_ms),
        words::length(detail.limit_ms),
        own(limits.is_some_and(|it| it.time_ms.is_some()))
    );
    let mut meters = vec![
        UsageBar {
            name: "iterations".to_owned(),
            bar: parts::used(
                share(detail.line.iterations.into(), detail.iterations_max.into()),
                format!("iterations: {iterations}"),
            ),
            text: iterations,
        },
        UsageBar {
            name: "working time".to_owned(),
            bar: parts::used(share(detail.spent_ms, detail.limit_ms), format!("working time: {time}")),
            text: time,
        },
    ];
    for budget in &detail.budgets {
        let (used, max) = (format_amount(budget.of, budget.used), format_amount(budget.of, budget.max));
        let name = format!("{} for the {}", kind(budget.of), budget.scope);
        let text = format!("{used} of {max}");
        let share = if budget.max > 0.0 { budget.used * 100.0 / budget.max } else { 0.0 };
        meters.push(UsageBar { bar: parts::used(share, format!("{name}: {text}")), name, text });
    }
    meters
}

fn kind(of: landfall_api::BudgetOf) -> &'static str {
    match of {
        landfall_api::BudgetOf::Usd => "money",
        landfall_api::BudgetOf::Tokens => "tokens",
        landfall_api::BudgetOf::Turns => "turns",
        landfall_api::BudgetOf::Time => "working time",
    }
}

/// So much of a budget, in its own measure.
fn format_amount(of: landfall_api::BudgetOf, value: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast of a float stays within its bounds"
    )]
    let whole = value as u64;
    match of {
        landfall_api::BudgetOf::Usd => words::usd(value),
        landfall_api::BudgetOf::Tokens => words::short(whole),
        landfall_api::BudgetOf::Turns => whole.to_string(),
        landfall_api::BudgetOf::Time => words::length(whole),
    }
}

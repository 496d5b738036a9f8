//! From the model's values to the wire's, and back. Each conversion is written out: a new variant of the model makes
//! someone decide what clients see of it.

use landfall_api::{self as api, Problem};
use landfall_engine::LiveAgent;
use landfall_engine::model::gate::{CheckOutcome, CommandResult, GateReport};
use landfall_engine::model::pilot::PilotMode;
use landfall_engine::model::{
    self, ChangeConcern, EndKind, StepResult, Task, TaskId, TaskSpec, TaskState, TaskStatus, WaitReason,
};
use landfall_engine::store::{StoreReader, TaskRow};

use crate::project::dead_ends::{self, FailedDependency};

pub(crate) fn task_id(id: TaskId) -> api::WireTaskId {
    api::WireTaskId(id.0)
}

pub(crate) fn model_task(id: api::WireTaskId) -> TaskId {
    TaskId(id.0)
}

pub(crate) fn run_id(id: model::RunId) -> api::WireRunId {
    api::WireRunId(id.0)
}

pub(crate) fn sprint_id(id: model::SprintId) -> api::WireSprintId {
    api::WireSprintId(id.0)
}

pub(crate) fn haul_id(id: model::haul::IssueBatchId) -> api::HaulId {
    api::HaulId(id.0)
}

pub(crate) fn model_sprint(id: api::WireSprintId) -> model::SprintId {
    model::SprintId(id.0)
}

pub(crate) fn to_api_status(status: TaskStatus) -> api::Status {
    match status {
        TaskStatus::Draft => api::Status::Draft,
        TaskStatus::Ready => api::Status::Ready,
        TaskStatus::Active => api::Status::Active,
        TaskStatus::Waiting => api::Status::Waiting,
        TaskStatus::Blocked => api::Status::Blocked,
        TaskStatus::Review => api::Status::Review,
        TaskStatus::Landing => api::Status::Landing,
        TaskStatus::Done => api::Status::Done,
        TaskStatus::Failed => api::Status::Failed,
        TaskStatus::Timeout => api::Status::Timeout,
        TaskStatus::Cancelled => api::Status::Cancelled,
    }
}

pub(crate) fn model_status(status: api::Status) -> TaskStatus {
    match status {
        api::Status::Draft => TaskStatus::Draft,
        api::Status::Ready => TaskStatus::Ready,
        api::Status::Active => TaskStatus::Active,
        api::Status::Waiting => TaskStatus::Waiting,
        api::Status::Blocked => TaskStatus::Blocked,
        api::Status::Review => TaskStatus::Review,
        api::Status::Landing => TaskStatus::Landing,
        api::Status::Done => TaskStatus::Done,
        api::Status::Failed => TaskStatus::Failed,
        api::Status::Timeout => TaskStatus::Timeout,
        api::Status::Cancelled => TaskStatus::Cancelled,
    }
}

pub(crate) fn to_api_size(size: model::TaskSize) -> api::Size {
    match size {
        model::TaskSize::XS => api::Size::XS,
        model::TaskSize::S => api::Size::S,
        model::TaskSize::M => api::Size::M,
        model::TaskSize::L => api::Size::L,
        model::TaskSize::XL => api::Size::XL,
    }
}

pub(crate) fn model_size(size: api::Size) -> model::TaskSize {
    match size {
        api::Size::XS => model::TaskSize::XS,
        api::Size::S => model::TaskSize::S,
        api::Size::M => model::TaskSize::M,
        api::Size::L => model::TaskSize::L,
        api::Size::XL => model::TaskSize::XL,
    }
}

pub(crate) fn to_api_mode(mode: PilotMode) -> api::Mode {
    match mode {
        PilotMode::Autopilot => api::Mode::Autopilot,
        PilotMode::SemiAuto => api::Mode::SemiAuto,
    }
}

pub(crate) fn model_mode(mode: api::Mode) -> PilotMode {
    match mode {
        api::Mode::Autopilot => PilotMode::Autopilot,
        api::Mode::SemiAuto => PilotMode::SemiAuto,
    }
}

pub(crate) fn to_api_outcome(outcome: CheckOutcome) -> api::Outcome {
    match outcome {
        CheckOutcome::Pass => api::Outcome::Pass,
        CheckOutcome::Flaky => api::Outcome::Flaky,
        CheckOutcome::PreExisting => api::Outcome::PreExisting,
        CheckOutcome::Fail => api::Outcome::Fail,
        CheckOutcome::Timeout => api::Outcome::Timeout,
        CheckOutcome::Broken => api::Outcome::Broken,
    }
}

pub(crate) fn to_api_wait_for(wait: &WaitReason) -> api::WaitFor {
    match wait {
        WaitReason::Dependency(_) => api::WaitFor::Dependency,
        WaitReason::Slot | WaitReason::Turn(_) => api::WaitFor::Slot,
        WaitReason::Quota { .. } => api::WaitFor::Quota,
        WaitReason::Login { .. } => api::WaitFor::Login,
        WaitReason::Budget { .. } => api::WaitFor::Budget,
        WaitReason::Question { .. } => api::WaitFor::Question,
        WaitReason::Backoff { .. } => api::WaitFor::Backoff,
        WaitReason::Disk { .. } => api::WaitFor::Disk,
        WaitReason::Pause => api::WaitFor::Pause,
        WaitReason::Conflict { .. } => api::WaitFor::Conflict,
        WaitReason::Parts => api::WaitFor::SubIssues,
        WaitReason::Blockers { .. } => api::WaitFor::Blockers,
        WaitReason::GateBroken { .. } => api::WaitFor::GateBroken,
    }
}

pub(crate) fn wait(wait: &WaitReason) -> api::Wait {
    let (until, detail) = match wait {
        WaitReason::Dependency(needs) => (None, join_ids(needs)),
        WaitReason::Slot | WaitReason::Pause | WaitReason::Parts => (None, String::new()),
        WaitReason::Blockers { by } => (None, by.join(", ")),
        WaitReason::Turn(turn) => (None, turn.to_string()),
        WaitReason::Quota { until, guessed: false } => (Some(*until), String::new()),
        WaitReason::Quota { until, guessed: true } => {
            (Some(*until), landfall_engine::store::GUESS.to_owned())
        }
        WaitReason::Login { account, detail, .. } => (None, format!("{account}: {detail}")),
        WaitReason::Budget { what, until } => (*until, what.clone()),
        WaitReason::Question { text } => (None, text.clone()),
        WaitReason::Backoff { until, cause } => (Some(*until), cause.clone()),
        WaitReason::Disk { detail } => (None, detail.clone()),
        WaitReason::Conflict { files, until, .. } => (Some(*until), files.join(", ")),
        WaitReason::GateBroken { command, detail } => (None, format!("{command}: {detail}")),
    };
    let until_ms = until.map(|until| until.0);
    api::Wait { wait: to_api_wait_for(wait), owner: wait.owner_label().word().to_owned(), until_ms, detail }
}

/// Who ends a wait of this kind.
pub(crate) fn wait_owner(wait: api::WaitFor) -> &'static str {
    // The words of the model decide; what a variant holds does not matter for its owner.
    let text = String::new;
    let until = model::Timestamp(0);
    match wait {
        api::WaitFor::Dependency => WaitReason::Dependency(Vec::new()),
        api::WaitFor::Slot => WaitReason::Slot,
        api::WaitFor::Quota => WaitReason::Quota { until, guessed: false },
        api::WaitFor::Login => WaitReason::Login { account: text(), detail: text(), asker: TaskId(0) },
        api::WaitFor::Budget => WaitReason::Budget { what: text(), until: Some(until) },
        api::WaitFor::Question => WaitReason::Question { text: text() },
        api::WaitFor::Backoff => WaitReason::Backoff { until, cause: text() },
        api::WaitFor::Disk => WaitReason::Disk { detail: text() },
        api::WaitFor::Pause => WaitReason::Pause,
        api::WaitFor::SubIssues => WaitReason::Parts,
        api::WaitFor::Blockers => WaitReason::Blockers { by: Vec::new() },
        api::WaitFor::Conflict => WaitReason::Conflict {
            base: model::Commit::new(&text()),
            files: Vec::new(),
            until,
            overdue: model::conflict::ConflictTimeoutAction::Defer,
        },
        api::WaitFor::GateBroken => WaitReason::GateBroken { command: text(), detail: text() },
    }
    .owner_label()
    .word()
}

/// Where a task stands among others, as far as its row does not tell.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskRelations {
    /// What it needs.
    pub needs: Vec<TaskId>,
    /// What of that has not landed.
    pub unmet: Vec<TaskId>,
    /// What keeps it from starting, if it could otherwise.
    pub held: Option<WaitReason>,
    /// The need that ended without landing, if it waits behind one.
    pub dead_end: Option<FailedDependency>,
}

impl TaskRelations {
    /// Of a task that waits for these needs.
    pub fn with_unmet_needs(reader: &StoreReader, unmet: Vec<TaskId>) -> Result<Self, Problem> {
        Ok(Self { dead_end: dead_ends::find_failed_dependency(reader, &unmet)?, unmet, ..Self::default() })
    }
}

/// The status of a row among others.
pub(crate) fn row_status(row: &TaskRow, starved: bool) -> TaskStatus {
    match row.effective_status() {
        TaskStatus::Ready if starved => TaskStatus::Waiting,
        shown => shown,
    }
}

/// What a row waits for.
pub(crate) fn row_wait(row: &TaskRow, among: &TaskRelations) -> Option<api::Wait> {
    if row.status == TaskStatus::Ready {
        return match (among.unmet.is_empty(), &among.held) {
            (false, _) => Some(wait(&WaitReason::Dependency(among.unmet.clone()))),
            (true, held) => held.as_ref().map(wait),
        };
    }
    let wait: api::WaitFor = row.wait.as_deref()?.parse().ok()?;
    Some(api::Wait {
        wait,
        owner: wait_owner(wait).to_owned(),
        until_ms: row.due.map(|due| due.0),
        detail: row.detail.clone(),
    })
}

pub(crate) fn to_task_line(row: TaskRow, among: &TaskRelations) -> api::TaskLine {
    api::TaskLine {
        id: task_id(row.id),
        status: to_api_status(row_status(&row, among.held.is_some())),
        wait: row_wait(&row, among),
        title: row.title,
        phase: row.phase,
        size: row.size.map(to_api_size),
        tags: row.tags,
        priority: row.priority,
        needs: among.needs.iter().copied().map(task_id).collect(),
        parent: row.parent.map(task_id),
        iterations: row.iterations,
        landed: row.landed.map(|commit| commit.as_str().to_owned()),
    }
}

pub(crate) fn to_api_gate(report: &GateReport) -> api::Gate {
    api::Gate {
        outcome: to_api_outcome(report.outcome()),
        base: report.base.as_str().to_owned(),
        head: report.head.as_str().to_owned(),
        commit: report.commit.as_str().to_owned(),
        tree: report.tree.as_str().to_owned(),
        commands: report.commands.iter().map(to_command_report).collect(),
        took_ms: report.took_ms,
        reused: report.reused,
        empty: report.is_empty(),
    }
}

pub(crate) fn to_command_report(result: &CommandResult) -> api::CommandReport {
    api::CommandReport {
        name: result.name.clone(),
        command: result.command.clone(),
        required: result.required,
        outcome: to_api_outcome(result.outcome),
        exit: result.exit,
        took_ms: result.took_ms,
        limit_ms: result.limit_ms,
        tests: result.tests,
        excerpt: result.excerpt.clone(),
        denied: result
            .denied
            .iter()
            .map(|denial| api::DeniedPath {
                access: denial.access.word().to_owned(),
                path: denial.path.clone(),
                allow: denial.allow.clone(),
            })
            .collect(),
        copied_from_base: result.copied_from_base,
    }
}

pub(crate) fn to_api_concern(concern: &ChangeConcern) -> api::Concern {
    api::Concern { code: concern.code.word().to_owned(), text: concern.to_string() }
}

/// All counters of a task, each with its bound if it has one.
pub(crate) fn list_counters(task: &Task) -> Vec<api::Counter> {
    let model::Counters {
        iterations,
        runs,
        step_runs: _, // the runs are counted in all
        strides,
        fruitless,
        edges,
        restarts,
        stalls_step,
        stalls_total,
        conflicts,
        verify_rounds,
        transients,
        quota_waits,
        asked,
        reviews,
        permission_denials,
        loops,
        same_words: _, // part of how a loop is noticed
        sessions_lost,
        logins,
        empty_claims,
        outputs_missing,
        machine,
        shortages,
        retries,
        spent_ms: _, // a field of its own on the wire
        usage: _,    // so are tokens and money
        agent_ms: _,
        attempt: _,
        overspent,
    } = &task.counters;
    let limits = &task.limits;
    let counter = |name: &str, used: u32, max: Option<u32>| api::Counter {
        name: name.to_owned(),
        used: u64::from(used),
        max: max.map(u64::from),
    };
    let mut counters = vec![
        counter("iterations", *iterations, Some(limits.iterations_max)),
        counter("agent runs", *runs, None),
        counter("iterations without a commit", *fruitless, None), // many are a warning, no bound
        counter("agent restarts", *restarts, Some(limits.restarts_max)),
        counter("stalls in this step", *stalls_step, Some(limits.stalls_step_max)),
        counter("stalls in all", *stalls_total, Some(limits.stalls_total_max)),
        counter("conflicts", *conflicts, Some(limits.conflicts_max)),
        counter("failed verifications", *verify_rounds, None),
        counter("transient errors", *transients, None),
        counter("quota waits", *quota_waits, None),
        counter("questions and blocks", *asked, None),
        counter("reviews by an agent", *reviews, Some(model::review::ROUNDS_MAX)),
        counter("permission denials", *permission_denials, None),
        counter("loops", *loops, Some(limits.loops_max)),
        counter("sessions lost", *sessions_lost, None),
        counter("logins asked for", *logins, None),
        counter("attempts over budget", *overspent, Some(limits.restarts_max)),
        counter("claims without a change", *empty_claims, None),
        counter("runs without the step's output", *outputs_missing, Some(model::OUTPUT_TRIES_MAX)),
        counter("machine troubles", *machine, None),
        counter("shortages of this machine", *shortages, None),
        counter("retries", *retries, None),
    ];
    if task.runs_own_loop() || *strides > 0 {
        counters.push(counter("steps of its own loop", *strides, Some(limits.iterations_max)));
    }
    for ((step, result), used) in edges {
        counters.push(counter(&format!("{step} → {}", result.word()), *used, edge_max(task, step, *result)));
    }
    counters
}

fn edge_max(task: &Task, step: &model::StepName, result: StepResult) -> Option<u32> {
    let step = task.flow.as_ref()?.find_step(step)?;
    step.on.iter().find(|edge| edge.result == result)?.max
}

/// The words of a task as a client adds them.
pub(crate) fn new_task(spec: &TaskSpec) -> api::NewTask {
    let TaskSpec {
        title,
        body,
        criteria,
        size: how_much,
        tags,
        priority,
        needs,
        touches,
        parent,
        source,
        flow,
        agent,
        draft,
    } = spec;
    api::NewTask {
        title: title.clone(),
        body: body.clone(),
        criteria: criteria.clone(),
        size: how_much.map(to_api_size),
        tags: tags.iter().map(ToString::to_string).collect(),
        priority: Some(*priority),
        needs: needs.iter().map(|need| api::TaskRef::Task(task_id(*need))).collect(),
        touches: touches.iter().map(ToString::to_string).collect(),
        parent: parent.map(|parent| api::TaskRef::Task(task_id(parent))),
        flow: flow.clone(),
        agent: agent.clone(),
        draft: *draft,
        source: source.clone(),
    }
}

/// Whether a task ended without landing.
pub(crate) fn ended_without_landing(task: &Task) -> bool {
    match &task.state {
        TaskState::Ended(ending) => match ending.kind {
            EndKind::Failed | EndKind::Timeout | EndKind::Blocked => true,
            EndKind::Done | EndKind::Cancelled => false,
        },
        TaskState::Draft
        | TaskState::Ready { .. }
        | TaskState::Active { .. }
        | TaskState::Waiting { .. }
        | TaskState::Review { .. } => false,
    }
}

/// Tokens a task used, read and written.
pub(crate) fn total_tokens(usage: model::AgentUsage) -> u64 {
    usage.tokens_in.saturating_add(usage.tokens_out)
}

/// Money, if an agent told.
pub(crate) fn micro_to_usd(micro: u64) -> Option<f64> {
    const MICRO: f64 = 1e6;
    // Exact up to nine thousand million dollars.
    #[expect(clippy::cast_precision_loss, reason = "money beyond 2^53 millionths of a dollar is nonsense")]
    (micro > 0).then(|| micro as f64 / MICRO)
}

/// What agents used, with who says what it cost.
pub(crate) fn to_api_usage(usage: model::AgentUsage) -> api::Usage {
    let cost_from = match (usage.micro_usd, usage.micro_usd_priced) {
        (0, _) => None,
        (_, 0) => Some(api::CostFrom::Agent),
        (all, priced) if priced >= all => Some(api::CostFrom::Prices),
        (_, _) => Some(api::CostFrom::Both),
    };
    api::Usage {
        tokens_in: usage.tokens_in,
        tokens_cached: usage.tokens_cached,
        tokens_out: usage.tokens_out,
        turns: usage.turns,
        cost_usd: micro_to_usd(usage.micro_usd),
        cost_from,
        tokens_without_price: usage.tokens_unpriced,
        at_least: usage.at_least,
    }
}

/// A budget as lines, one for each thing it bounds.
pub(crate) fn list_budget_lines(
    scope: api::BudgetScope,
    spent: model::Spending,
    budget: &model::Budget,
) -> Vec<api::BudgetLine> {
    let model::Budget { micro_usd, tokens, turns, time_ms } = *budget;
    let used = spent.usage;
    let figures = [
        (api::BudgetOf::Usd, used.micro_usd, micro_usd, 1e6),
        (api::BudgetOf::Tokens, used.total_tokens(), tokens, 1.0),
        (api::BudgetOf::Turns, used.turns, turns, 1.0),
        (api::BudgetOf::Time, spent.time_ms, time_ms, 1.0),
    ];
    #[expect(clippy::cast_precision_loss, reason = "figures beyond 2^53 are nonsense")]
    let line = |(of, used, max, unit): (api::BudgetOf, u64, Option<u64>, f64)| {
        let (used, max) = (used as f64 / unit, max? as f64 / unit);
        Some(api::BudgetLine { scope, of, used, max })
    };
    figures.into_iter().filter_map(line).collect()
}

/// An agent at work, as clients see it.
pub(crate) fn to_agent_at_work(live: &LiveAgent) -> api::AgentAtWork {
    api::AgentAtWork {
        profile: live.profile.clone(),
        model: live.model.clone(),
        sandbox: live.sandbox.to_owned(),
        class: live.class.map(|class| class.label().to_owned()),
        evidence: live.evidence.clone(),
        context_percent: live.context_percent,
        progress: live.progress,
        words: live.words.clone(),
    }
}

/// Ids in one line.
pub(crate) fn join_ids(ids: &[TaskId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The limits a person set, if they set any.
pub(crate) fn to_own_limits(limits: model::TaskLimitOverrides) -> Option<api::OwnLimits> {
    let model::TaskLimitOverrides { iterations_max, task_ms, micro_usd } = limits;
    let own = api::OwnLimits {
        iterations: iterations_max,
        time_ms: task_ms,
        usd: micro_usd.and_then(micro_to_usd),
    };
    (own != api::OwnLimits::default()).then_some(own)
}

#[cfg(test)]
mod tests {
    use landfall_api as api;
    use landfall_engine::model::{self, TaskSpec, TaskStatus, WaitReason};
    use landfall_engine::store::TaskRow;

    use super::{
        TaskRelations, model_size, model_status, new_task, row_wait, to_api_size, to_api_status,
        to_task_line, wait, wait_owner,
    };

    #[test]
    fn statuses_and_sizes_keep_their_words_and_come_back() {
        for each in TaskStatus::ALL {
            assert_eq!(to_api_status(each).word(), each.wire_name());
            assert_eq!(model_status(to_api_status(each)), each);
        }
        for each in model::TaskSize::ALL {
            assert_eq!(to_api_size(each).word(), each.to_string());
            assert_eq!(model_size(to_api_size(each)), each);
        }
    }

    #[test]
    fn waits_keep_their_words_and_owners() {
        let until = model::Timestamp(7);
        let waits = [
            WaitReason::Dependency(vec![model::TaskId(1), model::TaskId(2)]),
            WaitReason::Slot,
            WaitReason::Quota { until, guessed: false },
            WaitReason::Login {
                account: "claude".to_owned(),
                detail: "401".to_owned(),
                asker: model::TaskId(1),
            },
            WaitReason::Budget { what: "$2.00 of $1.00".to_owned(), until: Some(until) },
            WaitReason::Question { text: "which?".to_owned() },
            WaitReason::Backoff { until, cause: "a crash".to_owned() },
            WaitReason::Disk { detail: "1 MB left".to_owned() },
            WaitReason::Pause,
            WaitReason::Conflict {
                base: model::Commit::new("b0"),
                files: vec!["a.rs".to_owned()],
                until,
                overdue: model::conflict::ConflictTimeoutAction::Retry,
            },
            WaitReason::GateBroken { command: "tests".to_owned(), detail: "not found".to_owned() },
            WaitReason::Parts,
            WaitReason::Blockers { by: vec!["#9".to_owned()] },
        ];
        assert_eq!(waits.len(), api::WaitFor::ALL.len());
        for each in &waits {
            let made = wait(each);
            assert_eq!(made.wait.word(), each.word());
            assert_eq!(made.owner, each.owner_label().word());
            assert_eq!(wait_owner(made.wait), each.owner_label().word());
        }
        assert_eq!(wait(&waits[0]).detail, "T1, T2");
        assert_eq!(wait(&waits[2]).until_ms, Some(7));
        // A turn is a wait for a slot that says more.
        let turn =
            WaitReason::Turn(model::TurnBlocker::Overlap { with: model::TaskId(1), path: "a.rs".to_owned() });
        let made = wait(&turn);
        assert_eq!((made.wait, made.detail.as_str()), (api::WaitFor::Slot, "T1 changes `a.rs`"));
        assert_eq!((made.wait.word(), made.owner.as_str()), (turn.word(), turn.owner_label().word()));
    }

    #[test]
    fn a_ready_row_waits_for_its_needs_first_and_for_a_slot_then() {
        let spec = TaskSpec::new("a task").expect("a title");
        let task = model::Task::from_spec(model::TaskId(3), spec, model::Timestamp(0));
        let mut row = TaskRow::from_task(&task);
        let mut among = TaskRelations::default();
        assert_eq!(row_wait(&row, &among), None);
        among.held = Some(WaitReason::Slot);
        assert_eq!(row_wait(&row, &among).map(|it| it.wait), Some(api::WaitFor::Slot));
        assert_eq!(to_task_line(row.clone(), &among).status, api::Status::Waiting);
        row.unmet = 1;
        among.unmet = vec![model::TaskId(1)];
        let found = row_wait(&row, &among).expect("it waits");
        assert_eq!((found.wait, found.detail.as_str()), (api::WaitFor::Dependency, "T1"));
    }

    #[test]
    fn words_of_a_task_survive_the_way_out() {
        let mut spec = TaskSpec::new("a $(id) title").expect("a title");
        spec.body = "body".to_owned();
        spec.priority = 2;
        spec.needs.insert(model::TaskId(4));
        let made = new_task(&spec);
        assert_eq!(made.title, spec.title);
        assert_eq!((made.priority, made.needs.len()), (Some(2), 1));
    }
}

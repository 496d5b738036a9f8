//! What a person can do about a task now, and why not, for the rest.

use landfall_api::{
    FlowLine, Nothing, QuickIssue, Size, Status, TaskDetail, TypedService as _, WaitFor, WireTaskId,
};

use super::PageContext;
use super::task_target::{self, ManualStep};

/// The panel.
pub(super) struct TaskPanel {
    pub(super) id: WireTaskId,
    pub(super) back: String,
    /// What it may do, or why it may not.
    pub(super) may: TaskPermissions,
    pub(super) issues: Vec<QuickIssue>,
    /// Attempts whose work is kept, to go back to.
    pub(super) attempts: Vec<u32>,
    /// What can be done by hand where the task is.
    pub(super) by_hand: Vec<ManualStep>,
    pub(super) edit: TaskEditForm,
    pub(super) iterations_max: u32,
    pub(super) minutes_max: u64,
}

/// The words of the task, to be changed.
pub(super) struct TaskEditForm {
    pub(super) title: String,
    pub(super) body: String,
    pub(super) criteria: String,
    pub(super) tags: String,
    pub(super) needs: String,
    pub(super) touches: String,
    pub(super) priority: u8,
    /// Every size, and whether it is the one.
    pub(super) sizes: Vec<(&'static str, bool)>,
    pub(super) sized: bool,
    pub(super) agent: String,
    pub(super) flow: String,
    pub(super) flows: Vec<String>,
    pub(super) draft: bool,
}

/// SessionExpiry to do something; otherwise why there is none.
pub(super) type ActionPermission = Result<(), &'static str>;

/// Everything a person might do.
pub(super) struct TaskPermissions {
    pub(super) answer: ActionPermission,
    pub(super) review: ActionPermission,
    pub(super) message: ActionPermission,
    pub(super) redirect: ActionPermission,
    pub(super) hold: ActionPermission,
    pub(super) release: ActionPermission,
    pub(super) stop: ActionPermission,
    pub(super) retry: ActionPermission,
    pub(super) limits: ActionPermission,
    pub(super) edit: ActionPermission,
    pub(super) block: ActionPermission,
    pub(super) cancel: ActionPermission,
    pub(super) eject: ActionPermission,
    pub(super) rollback: ActionPermission,
    pub(super) attach: ActionPermission,
}

impl TaskPermissions {
    /// What is not possible, by name, and why.
    pub(super) fn refused(&self) -> Vec<(&'static str, &'static str)> {
        [
            ("answer", self.answer),
            ("review", self.review),
            ("message", self.message),
            ("redirect", self.redirect),
            ("pause", self.hold),
            ("release", self.release),
            ("stop", self.stop),
            ("retry", self.retry),
            ("raise limits", self.limits),
            ("edit", self.edit),
            ("block", self.block),
            ("cancel", self.cancel),
            ("take out of the queue", self.eject),
            ("roll back", self.rollback),
            ("attach", self.attach),
        ]
        .into_iter()
        .filter_map(|(name, leave)| Some((name, leave.err()?)))
        .collect()
    }
}

/// What is possible, by how the task stands. The engine has the last word.
fn task_permissions(task: &TaskDetail, reviewed_after: bool) -> TaskPermissions {
    let status = task.line.status;
    let done = status == Status::Done;
    let over = matches!(
        status,
        Status::Done | Status::Failed | Status::Timeout | Status::Cancelled | Status::Blocked
    );
    let waits_for = |what: WaitFor| task.line.wait.as_ref().is_some_and(|wait| wait.wait == what);
    let held = task.held.is_some();
    let when = |is: bool, why_not: &'static str| if is { Ok(()) } else { Err(why_not) };
    TaskPermissions {
        answer: when(waits_for(WaitFor::Question), "it asks nothing"),
        review: when(
            status == Status::Review || reviewed_after,
            "there is nothing to look at before it lands",
        ),
        message: when(!done && status != Status::Cancelled, "it is over; no agent works on it any more"),
        redirect: when(!over && task.attempt > 0, "no agent has begun with it"),
        hold: if over { Err("it is over") } else { when(!held, "it is held already") },
        release: when(held || waits_for(WaitFor::Pause), "nobody holds it"),
        stop: when(status == Status::Active, "nothing of it is under way"),
        retry: when((over && !done) || status == Status::Waiting, "it goes on by itself"),
        limits: when(!done, "it has landed"),
        edit: when(!done, "it has landed; add a new task for more"),
        block: when(!over, "it is over"),
        cancel: when(!done && status != Status::Cancelled, "it is over"),
        eject: when(status == Status::Landing, "it does not stand in the landing queue"),
        rollback: when(done && task.landed_as.is_some(), "it has not landed"),
        attach: when(status == Status::Active, "no agent is at work on it"),
    }
}

/// The panel of a task.
pub(super) fn build_panel(
    visit: &PageContext<'_>,
    task: &TaskDetail,
    flows: &[FlowLine],
    tab: &str,
) -> TaskPanel {
    let id = task.line.id;
    let looked_at = matches!(task.line.status, Status::Review | Status::Done);
    let reviews = if looked_at { visit.reviews(Nothing {}).ok() } else { None };
    let after = reviews.as_ref().is_some_and(|list| list.after.iter().any(|it| it.task == id));
    let line =
        reviews.as_ref().and_then(|list| list.before.iter().chain(&list.after).find(|it| it.task == id));
    let attempts = line.map(|line| line.attempts.clone()).unwrap_or_default();
    let may = task_permissions(task, after);
    let ids: Vec<String> = task.line.needs.iter().map(ToString::to_string).collect();
    TaskPanel {
        id,
        back: if tab.is_empty() { format!("/tasks/{id}") } else { format!("/tasks/{id}/{tab}") },
        may,
        issues: reviews.map(|list| list.issues).unwrap_or_default(),
        attempts,
        by_hand: task.progress.as_deref().map(task_target::manual_steps).unwrap_or_default(),
        edit: TaskEditForm {
            title: task.line.title.clone(),
            body: task.body.clone(),
            criteria: task.criteria.join("\n"),
            tags: task.line.tags.join("\n"),
            needs: ids.join("\n"),
            touches: task.touches.join("\n"),
            priority: task.line.priority,
            sizes: Size::ALL.iter().map(|size| (size.word(), task.line.size == Some(*size))).collect(),
            sized: task.line.size.is_some(),
            agent: task.agent.clone(),
            flow: task.flow.clone(),
            flows: flows.iter().filter(|flow| flow.not_yet.is_none()).map(|flow| flow.name.clone()).collect(),
            draft: task.line.status == Status::Draft,
        },
        iterations_max: task.iterations_max,
        minutes_max: task.limit_ms / 60_000,
    }
}

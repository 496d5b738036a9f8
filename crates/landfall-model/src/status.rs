//! The one status of a task and the sentence that says why, both derived, never stored.

use std::fmt;

use crate::task::{AttemptPhase, EndCode, EndKind, Ending, StopRequest, Task, TaskState};
use crate::{StepKind, TaskId, Timestamp, issue};
pub use landfall_facts::wait::{TurnBlocker, WaitReason};

/// Where a task is, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskStatus {
    /// Not to be started yet.
    Draft,
    /// Can start.
    Ready,
    /// Being worked on.
    Active,
    /// Waits for something with a name.
    Waiting,
    /// Cannot go on without a person.
    Blocked,
    /// A person must look at it.
    Review,
    /// Verified, on its way onto the base.
    Landing,
    /// Landed, or accepted in a flow without landing.
    Done,
    /// Gave up.
    Failed,
    /// Used up its time or its iterations.
    Timeout,
    /// A person wants it no more.
    Cancelled,
}

impl TaskStatus {
    /// Every status there is.
    pub const ALL: [Self; 11] = [
        Self::Draft,
        Self::Ready,
        Self::Active,
        Self::Waiting,
        Self::Blocked,
        Self::Review,
        Self::Landing,
        Self::Done,
        Self::Failed,
        Self::Timeout,
        Self::Cancelled,
    ];

    /// The word people and files use.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Ready => "ready",
            Self::Active => "active",
            Self::Waiting => "waiting",
            Self::Blocked => "blocked",
            Self::Review => "review",
            Self::Landing => "landing",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status of a task, from its own facts. A ready task with unmet needs or without a slot is still
    /// `ready` here; [`TaskStatus::for_task_among_others`] knows the others.
    #[must_use]
    pub fn for_task(task: &Task) -> Self {
        match &task.state {
            TaskState::Draft => Self::Draft,
            TaskState::Ready { .. } if task.is_held() => Self::Waiting,
            TaskState::Ready { .. } if wants_landing(task) => Self::Landing,
            TaskState::Ready { .. } => Self::Ready,
            TaskState::Active { doing: AttemptPhase::Queued { .. } | AttemptPhase::Landing, .. } => {
                Self::Landing
            }
            TaskState::Active { .. } if wants_landing(task) => Self::Landing,
            TaskState::Active { .. } => Self::Active,
            TaskState::Waiting { .. } => Self::Waiting,
            TaskState::Review { .. } => Self::Review,
            TaskState::Ended(ending) => match ending.kind {
                EndKind::Done => Self::Done,
                EndKind::Failed => Self::Failed,
                EndKind::Timeout => Self::Timeout,
                EndKind::Blocked => Self::Blocked,
                EndKind::Cancelled => Self::Cancelled,
            },
        }
    }

    /// The status of a task among others: with the needs that have not landed, and whether it wants a slot that
    /// others hold.
    #[must_use]
    pub fn for_task_among_others(task: &Task, unmet: &[TaskId], starved: bool) -> Self {
        match Self::for_task(task) {
            Self::Ready if !unmet.is_empty() || starved => Self::Waiting,
            own => own,
        }
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.wire_name())
    }
}

fn wants_landing(task: &Task) -> bool {
    step_matches(task, |kind| matches!(kind, StepKind::Land))
}

fn step_matches(task: &Task, is: impl Fn(&StepKind) -> bool) -> bool {
    task.step().and_then(|name| task.flow.as_ref()?.find_step(name)).is_some_and(|step| is(&step.kind))
}

/// Why a task is where it is, in one sentence. `held` is what keeps it from starting; `when` writes a moment for people.
#[must_use]
pub fn explain_task_state(
    task: &Task,
    unmet: &[TaskId],
    held: Option<&WaitReason>,
    when: &dyn Fn(Timestamp) -> String,
) -> String {
    let id = task.id;
    match &task.state {
        TaskState::Draft => format!("{id} is a draft; `landfall edit {id} --ready` lets it start."),
        TaskState::Ready { .. } if let Some(hold) = &task.hold => {
            let because = after_colon(&hold.reason);
            format!("{id} is held by you{because}; `landfall task release {id}` lets it continue.")
        }
        TaskState::Ready { .. } if !unmet.is_empty() => {
            let list = unmet.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            format!("{id} waits for {list} to land first.")
        }
        TaskState::Ready { .. } if wants_landing(task) => {
            format!("{id} is verified and waits for its turn to land.")
        }
        TaskState::Ready { .. }
            if held.is_some() && step_matches(task, |kind| matches!(kind, StepKind::Verify)) =>
        {
            format!("{id} waits to be verified; other tasks hold every lane.")
        }
        TaskState::Ready { next, .. } => match (held, next) {
            (Some(wait), _) => format!("{id} {}", explain_waiting(id, wait, when)),
            (None, Some(step)) => {
                format!("{id} is ready to go on with step `{step}`; `landfall run` drives it.")
            }
            (None, None) => format!("{id} is ready; `landfall run` starts it."),
        },
        TaskState::Active { step, doing } => {
            append_hold(task, format!("{id} {}", explain_active(task, step.as_str(), doing, when)))
        }
        TaskState::Waiting { wait: WaitReason::Parts, .. } => append_hold(
            task,
            format!("{id} {}", with_level(task, explain_waiting(id, &WaitReason::Parts, when))),
        ),
        TaskState::Waiting { wait: WaitReason::Pause, .. }
            if let Some(again) = issue::suggest_resume(task) =>
        {
            append_hold(task, format!("{id} is paused by you; {again}."))
        }
        TaskState::Waiting { wait, .. } => {
            append_hold(task, format!("{id} {}", explain_waiting(id, wait, when)))
        }
        TaskState::Review { .. } => {
            let list = task.concerns.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            let list = to_phrase(&list);
            let sentence = format!(
                "{id} passed its checks, but a person must look at it first: it {list}; \
                 `landfall diff {id}` shows it, `landfall answer {id} approve` lets it land."
            );
            append_hold(task, sentence)
        }
        TaskState::Ended(ending) => explain_ended(task, ending, when),
    }
}

/// The sentence with what does not hold of a whole while its parts go on.
fn with_level(task: &Task, sentence: String) -> String {
    let failing = task.issue.iter().flat_map(|issue| &issue.level.failing);
    let words: Vec<&str> = failing.map(|(words, _)| words.as_str()).collect();
    match words.is_empty() {
        true => sentence,
        false => {
            format!("{sentence} As a whole, this does not hold so far: {}.", to_phrase(&words.join("; ")))
        }
    }
}

/// The sentence with what a hold means for a task that is busy, or waits for something else.
fn append_hold(task: &Task, sentence: String) -> String {
    let Some(hold) = &task.hold else { return sentence };
    let (id, because) = (task.id, after_colon(&hold.reason));
    format!(
        "{}; after that you hold it{because}; `landfall task release {id}` lets it continue.",
        sentence.trim_end_matches('.')
    )
}

fn after_colon(text: &str) -> String {
    match to_phrase(text) {
        text if text.is_empty() => String::new(),
        text => format!(": {text}"),
    }
}

fn explain_ended(task: &Task, ending: &Ending, when: &dyn Fn(Timestamp) -> String) -> String {
    let id = task.id;
    let (code, detail) = (ending.code.word(), to_phrase(&ending.detail));
    let because = if detail.is_empty() { String::new() } else { format!(": {detail}") };
    let because = match issue::describe_unmet_criteria(task) {
        Some(unmet) => format!("{because}; {}", to_phrase(&unmet)),
        None => because,
    };
    // Of an issue, whoever follows it is told the one way on that works.
    let again =
        issue::suggest_resume(task).unwrap_or_else(|| format!("`landfall retry {id}` tries it again"));
    match (ending.kind, &task.landed) {
        (EndKind::Done, landed) if let Some(left) = issue::describe_left_open(task) => {
            let landed = landed.as_ref();
            let landed =
                landed.map(|it| format!(": it landed as {} {}", it.commit.short_hash(), when(it.at)));
            format!("{id} is done{}, but {left}.", landed.unwrap_or_default())
        }
        (EndKind::Done, Some(landed)) => {
            format!("{id} is done: it landed as {} {}.", landed.commit.short_hash(), when(landed.at))
        }
        (EndKind::Done, None) if let Some(many) = sub_issue_names(task) => {
            format!("{id} is done: what it is made of is done ({many}).")
        }
        (EndKind::Done, None) => format!("{id} is done{because}."),
        (EndKind::Failed | EndKind::Timeout | EndKind::Blocked, Some(landed)) => {
            let commit = landed.commit.short_hash();
            let onward =
                issue::suggest_resume(task).unwrap_or_else(|| format!("`landfall retry {id}` continues it"));
            format!("{id} landed as {commit}, but what comes after that failed ({code}){because}; {onward}.")
        }
        (EndKind::Failed | EndKind::Timeout, None) if ending.code == EndCode::MaxIterations => {
            format!("{id} is out of iterations ({code}){because}; {again}.")
        }
        (EndKind::Failed, None) => format!("{id} failed ({code}){because}; {again}."),
        (EndKind::Timeout, None) => format!("{id} ran out ({code}){because}; {again}."),
        (EndKind::Blocked, None) if ending.code == EndCode::AgentBlocked && !detail.is_empty() => {
            format!("{id} is blocked; the agent says{because}; {again}.")
        }
        (EndKind::Blocked, None) if ending.code == EndCode::Person => {
            format!("{id} is blocked by you{because}; {again}.")
        }
        (EndKind::Blocked, None) => format!("{id} is blocked ({code}){because}; {again}."),
        (EndKind::Cancelled, _) => format!("{id} was cancelled{because}."),
    }
}

/// Words from outside as part of a sentence: on one line, without its full stop, and not too long.
/// The issues that the one of a task is made of, in words.
fn sub_issue_names(task: &Task) -> Option<String> {
    let parts = &task.issue.as_ref()?.parts;
    let names: Vec<String> = parts.iter().map(|part| format!("#{}", part.number)).collect();
    (!names.is_empty()).then(|| to_phrase(&names.join(", ")))
}

fn to_phrase(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.trim_end_matches(['.', ' ']);
    match line.char_indices().nth(PHRASE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

const PHRASE_CHARS_MAX: usize = 300; // a sentence to read at a glance; `show` has it all

fn explain_active(
    task: &Task,
    step: &str,
    doing: &AttemptPhase,
    when: &dyn Fn(Timestamp) -> String,
) -> String {
    match doing {
        AttemptPhase::Preparing { stop: None, .. } => {
            format!("is in step `{step}`: its workspace is being made.")
        }
        AttemptPhase::Preparing { stop: Some(_), .. } => {
            format!("is in step `{step}`: its workspace is being made, and then it stops.")
        }
        AttemptPhase::Running { iteration, stop: None, .. } if task.account_waits.since.is_some() => {
            let until =
                task.account_waits.until.map(|until| format!(", which is used up until {}", when(until)));
            format!(
                "is in step `{step}`: the agent of iteration {iteration} waits for its account{}; no working time is spent.",
                until.unwrap_or_default()
            )
        }
        AttemptPhase::Running { iteration, since, stop: None, .. } => format!(
            "is in step `{step}`: the agent works on iteration {iteration} of {} since {}.",
            task.limits.iterations_max,
            when(*since)
        ),
        AttemptPhase::Running { iteration, stop: Some(StopRequest::Redirect), .. } => format!(
            "is in step `{step}`: the agent of iteration {iteration} is being stopped, and begins again with what you said."
        ),
        AttemptPhase::Running { iteration, stop: Some(_), .. } => {
            format!("is in step `{step}`: the agent of iteration {iteration} is being stopped.")
        }
        AttemptPhase::Checking { stop: None } => {
            format!("is in step `{step}`: its work is being merged with the base and verified.")
        }
        AttemptPhase::Checking { stop: Some(StopRequest::Redirect) } => format!(
            "is in step `{step}`: its work is being merged with the base and verified, and then its agent hears what you said."
        ),
        AttemptPhase::Checking { stop: Some(_) } => {
            format!(
                "is in step `{step}`: its work is being merged with the base and verified, and then it stops."
            )
        }
        AttemptPhase::Queued { since } => {
            format!("passed its checks and stands in the landing queue since {}.", when(*since))
        }
        AttemptPhase::Landing => {
            format!("is in step `{step}`: the base is being moved to its verified commit.")
        }
        AttemptPhase::Reporting => format!("is in step `{step}`: its report is being written."),
        AttemptPhase::Exchanging { stop: None } => {
            format!("is in step `{step}`: its tracker is asked or told.")
        }
        AttemptPhase::Exchanging { stop: Some(_) } => {
            format!("is in step `{step}`: its tracker is asked or told, and then it stops.")
        }
        AttemptPhase::Recovering { stop: None } => {
            format!("is in step `{step}`, which failed: something is done about that.")
        }
        AttemptPhase::Recovering { stop: Some(_) } => {
            format!("is in step `{step}`, which failed: something is done about that, and then it stops.")
        }
    }
}

fn explain_waiting(id: TaskId, wait: &WaitReason, when: &dyn Fn(Timestamp) -> String) -> String {
    match wait {
        WaitReason::Dependency(needs) => {
            let list = needs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            format!("waits for {list} to land first.")
        }
        WaitReason::Slot => "waits for a slot; other tasks hold them all.".to_owned(),
        WaitReason::Turn(TurnBlocker::Overlap { with, path }) => format!(
            "is held back: {with}, which has not landed, changes `{}` as well; it starts when {with} has landed, or when \
             nothing else can run.",
            to_phrase(path)
        ),
        WaitReason::Turn(
            turn @ (TurnBlocker::Profile { .. } | TurnBlocker::Account { .. } | TurnBlocker::Area { .. }),
        ) => {
            format!("waits for its turn; other tasks hold all slots of {turn}.")
        }
        WaitReason::Quota { until, guessed: false } => {
            format!(
                "waits for the agent's account, which is used up until {}; no try is spent.",
                when(*until)
            )
        }
        WaitReason::Quota { until, guessed: true } => {
            format!(
                "waits for the agent's account, which is used up; the agent named no reset, so Landfall guesses and tries \
                 again {}; no try is spent.",
                when(*until)
            )
        }
        WaitReason::Login { account, detail, asker } => {
            let said = match to_phrase(detail) {
                said if said.is_empty() => String::new(),
                said => format!(": {said}"),
            };
            format!(
                "waits because the account `{account}` wants a login{said}; log in, then `landfall answer {asker} done` \
                 goes on."
            )
        }
        WaitReason::Budget { what, until: Some(until) } => {
            format!(
                "waits because the day's budget is used up ({what}); agents start again {}.",
                when(*until)
            )
        }
        WaitReason::Budget { what, until: None } => {
            format!(
                "waits because the budget of this run is used up ({what}); another `landfall run` continues."
            )
        }
        WaitReason::Question { text } => {
            format!("waits for your answer: {} (`landfall answer {id} \"…\"`).", to_phrase(text))
        }
        WaitReason::Backoff { until, cause } => match to_phrase(cause) {
            cause if cause.is_empty() => format!("tries again {}.", when(*until)),
            cause => format!("tries again {}: {cause}.", when(*until)),
        },
        WaitReason::Disk { detail } => match to_phrase(detail) {
            detail if detail.is_empty() => "waits for room on the disk.".to_owned(),
            detail => format!("waits for room on the disk: {detail}."),
        },
        WaitReason::Conflict { base, files, until, overdue } => format!(
            "waits for you to resolve its conflict with {} in {}: in its workspace (`landfall show {id}` says where), commit \
             what is there, merge {} and say `landfall answer {id} resolved`, or say how and the agent does it; after {} {}.",
            base.short_hash(),
            to_phrase(&files.join(", ")),
            base.short_hash(),
            when(*until),
            overdue.to_sentence()
        ),
        WaitReason::Parts => "waits for the issues it is made of.".to_owned(),
        WaitReason::Blockers { by } => {
            let list = by.join(", ");
            format!("waits for {list} to be done first; the next run looks again.")
        }
        WaitReason::Pause => format!("is paused by you; `landfall retry {id}` continues it."),
        WaitReason::GateBroken { command, detail } => {
            format!(
                "waits because the check `{command}` cannot be trusted: {}; when it is mended, \
                 `landfall retry {id}` goes on, and so does any change of the base.",
                to_phrase(detail)
            )
        }
    }
}

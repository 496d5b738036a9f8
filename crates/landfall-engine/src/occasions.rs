//! Which facts are occasions: for a hook of the person's, and for telling them something. One table for both, and the
//! words they go by.

use landfall_model::pilot::{PauseReason, PilotEvent};
use landfall_model::queue::{HoldReason, QueueEvent};
use landfall_model::sprint::SprintEvent;
use landfall_model::{
    AttemptStart, EdgeTarget, EndCode, EndKind, Ending, EngineEvent, Event, Fact, JournalEntry, RunEnd,
    StepResult, TaskId, TaskStatus, Timestamp, WaitReason, Warning, World,
};

/// When a hook is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookPoint {
    /// An agent is about to start on a task.
    PreStart,
    /// The work of a task is done and verified.
    PostComplete,
    /// The work of a task is about to land.
    PreMerge,
    /// The work of a task has landed.
    PostMerge,
    /// The work of a task does not merge.
    OnConflict,
    /// An agent found out something worth knowing.
    OnDiscovery,
    /// A task, or all of them, wait for leave to go on.
    OnPause,
    /// A task failed or ran out of time.
    OnError,
    /// Only a person can go on.
    OnEscalation,
}

impl HookPoint {
    /// Every occasion there is.
    pub const ALL: [Self; 9] = [
        Self::PreStart,
        Self::PostComplete,
        Self::PreMerge,
        Self::PostMerge,
        Self::OnConflict,
        Self::OnDiscovery,
        Self::OnPause,
        Self::OnError,
        Self::OnEscalation,
    ];

    /// The word people and settings use.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::PreStart => "pre-start",
            Self::PostComplete => "post-complete",
            Self::PreMerge => "pre-merge",
            Self::PostMerge => "post-merge",
            Self::OnConflict => "on-conflict",
            Self::OnDiscovery => "on-discovery",
            Self::OnPause => "on-pause",
            Self::OnError => "on-error",
            Self::OnEscalation => "on-escalation",
        }
    }

    /// How much it matters that the hook is run: what is left out first when there are too many.
    #[must_use]
    pub fn priority(self) -> Priority {
        match self {
            Self::PreStart | Self::PostComplete | Self::PreMerge | Self::OnDiscovery => Priority::Low,
            Self::PostMerge | Self::OnConflict | Self::OnError => Priority::Normal,
            Self::OnPause | Self::OnEscalation => Priority::High,
        }
    }
}

/// What a person is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotificationTopic {
    /// A task asks something.
    Question,
    /// Only a person can go on.
    Escalation,
    /// The base may not be what it should.
    Alarm,
    /// Nothing is started until a person says so.
    Paused,
    /// Something is held up and will be in the way: landed work that waits for the person's repository, a disk that
    /// fills up.
    Held,
    /// A run is over.
    RunOver,
    /// A sprint is over.
    SprintOver,
    /// A task failed or ran out of time.
    Failed,
    /// The work of a task has landed.
    Landed,
}

impl NotificationTopic {
    /// Every topic there is.
    pub const ALL: [Self; 9] = [
        Self::Question,
        Self::Escalation,
        Self::Alarm,
        Self::Paused,
        Self::Held,
        Self::RunOver,
        Self::SprintOver,
        Self::Failed,
        Self::Landed,
    ];

    /// The word people and settings use.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Escalation => "escalation",
            Self::Alarm => "alarm",
            Self::Paused => "paused",
            Self::Held => "held",
            Self::RunOver => "run-over",
            Self::SprintOver => "sprint-over",
            Self::Failed => "failed",
            Self::Landed => "landed",
        }
    }

    /// The topic people mean by `word`.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.wire_name() == word)
    }

    /// How much it matters.
    #[must_use]
    pub fn priority(self) -> Priority {
        match self {
            Self::Alarm => Priority::Urgent,
            Self::Question | Self::Escalation | Self::Paused => Priority::High,
            Self::Held | Self::RunOver | Self::SprintOver | Self::Failed => Priority::Normal,
            Self::Landed => Priority::Low,
        }
    }

    /// What is said of several tasks at once: `3 tasks landed`.
    #[must_use]
    pub fn plural_title(self, count: usize) -> String {
        match self {
            Self::Question => format!("{count} tasks ask something"),
            Self::Escalation => format!("{count} tasks need you"),
            Self::Alarm => format!("{count} landings did not check out"),
            Self::Paused => format!("paused, {count} times"),
            Self::Held => format!("held up, {count} times"),
            Self::RunOver => format!("{count} runs are over"),
            Self::SprintOver => format!("{count} sprints are over"),
            Self::Failed => format!("{count} tasks failed"),
            Self::Landed => format!("{count} tasks landed"),
        }
    }
}

/// How much something matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Nice to know.
    Low,
    /// Worth knowing the same day.
    Normal,
    /// Someone is waited for.
    High,
    /// Something is wrong with the result itself.
    Urgent,
}

impl Priority {
    /// The word people and settings use.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
            Self::Urgent => "urgent",
        }
    }
}

/// A fact that is an occasion, with all that hooks and messages say of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationEvent {
    /// For this hook.
    pub hook: Option<HookPoint>,
    /// To tell of this.
    pub topic: Option<NotificationTopic>,
    /// When it happened.
    pub at: Timestamp,
    /// The task it is about.
    pub task: Option<TaskId>,
    /// The title of the task.
    pub title: String,
    /// The status of the task.
    pub status: String,
    /// The commit it is about.
    pub commit: Option<String>,
    /// What happened, in a sentence.
    pub what: String,
    /// Why, if there is a reason.
    pub reason: String,
}

/// What a fact is an occasion for; none for most.
#[must_use]
pub fn find_notification(entry: &JournalEntry, world: &World) -> Option<NotificationEvent> {
    let told = match &entry.fact {
        Fact::Task(id, event) => {
            let landed = world.get(*id).is_some_and(|task| task.landed.is_some());
            task_notification(event, landed).map(|told| (Some(*id), told))
        }
        Fact::Engine(event) => engine_notification(event).map(|told| (None, told)),
    };
    let (task, NotificationText { hook, topic, what, reason, commit }) = told?;
    let known = task.and_then(|id| world.get(id));
    let name = task.map(|id| format!("{id} ")).unwrap_or_default();
    Some(NotificationEvent {
        hook,
        topic,
        at: entry.at,
        task,
        title: known.map(|task| task.spec.title.clone()).unwrap_or_default(),
        status: known.map(|task| TaskStatus::for_task(task).wire_name().to_owned()).unwrap_or_default(),
        commit,
        what: format!("{name}{what}"),
        reason,
    })
}

struct NotificationText {
    hook: Option<HookPoint>,
    topic: Option<NotificationTopic>,
    what: String,
    reason: String,
    commit: Option<String>,
}

impl NotificationText {
    fn new(
        hook: impl Into<Option<HookPoint>>,
        topic: impl Into<Option<NotificationTopic>>,
        what: &str,
    ) -> Option<Self> {
        let (hook, topic) = (hook.into(), topic.into());
        Some(Self { hook, topic, what: what.to_owned(), reason: String::new(), commit: None })
    }
}

fn with_reason(told: Option<NotificationText>, reason: impl Into<String>) -> Option<NotificationText> {
    told.map(|told| NotificationText { reason: reason.into(), ..told })
}

fn with_commit(told: Option<NotificationText>, commit: &landfall_model::Commit) -> Option<NotificationText> {
    told.map(|told| NotificationText { commit: Some(commit.as_str().to_owned()), ..told })
}

/// The table, for facts of a task; `landed` says whether its work is on the base.
fn task_notification(event: &Event, landed: bool) -> Option<NotificationText> {
    use HookPoint::{OnConflict, OnDiscovery, PostComplete, PostMerge, PreMerge, PreStart};
    match event {
        Event::Entered { opening, .. } => match opening {
            AttemptStart::Workspace | AttemptStart::FreshWorkspace => {
                NotificationText::new(PreStart, None, "starts")
            }
            AttemptStart::Land => NotificationText::new(PreMerge, None, "is about to land"),
            AttemptStart::Check
            | AttemptStart::Report
            | AttemptStart::Queue
            | AttemptStart::Exchange
            | AttemptStart::Recover => None,
        },
        Event::Left { to: EdgeTarget::Stop, step, result, .. } => {
            let told =
                NotificationText::new(HookPoint::OnEscalation, NotificationTopic::Escalation, "is blocked");
            with_reason(told, format!("step `{step}` ended with `{}`", result.word()))
        }
        // Of work that landed, the landing is told.
        Event::Left { to: EdgeTarget::End, .. } if !landed => {
            NotificationText::new(None, NotificationTopic::Landed, "is done")
        }
        Event::Left { result: StepResult::Pass, .. } => {
            NotificationText::new(PostComplete, None, "is done and verified")
        }
        Event::LandingBegan { report, .. } => {
            with_commit(NotificationText::new(PreMerge, None, "is about to land"), &report.commit)
        }
        Event::Ejected { batch, report, .. } => {
            let names: Vec<&str> = report.blocking_commands().map(|it| it.name.as_str()).collect();
            let told = NotificationText::new(
                OnConflict,
                None,
                &format!("made {batch} red and goes back to its agent"),
            );
            with_reason(told, names.join(", "))
        }
        Event::Landed { commit, .. } => {
            with_commit(NotificationText::new(PostMerge, NotificationTopic::Landed, "landed"), commit)
        }
        Event::Conflicted { paths, .. } => {
            with_reason(NotificationText::new(OnConflict, None, "does not merge"), paths.join(", "))
        }
        Event::Warned(Warning::Discovery { text, .. }) => {
            with_reason(NotificationText::new(OnDiscovery, None, "found out something"), text)
        }
        Event::Waited { wait, .. } => wait_notification(wait),
        Event::ReviewWanted { concerns, .. } => {
            let told = NotificationText::new(
                HookPoint::OnEscalation,
                NotificationTopic::Escalation,
                "wants a review",
            );
            let codes: Vec<&str> = concerns.iter().map(|concern| concern.code.word()).collect();
            with_reason(told, codes.join(", "))
        }
        Event::Ended(ending) => ending_notification(ending),
        _ => None,
    }
}

fn wait_notification(wait: &WaitReason) -> Option<NotificationText> {
    use HookPoint::{OnEscalation, OnPause};
    match wait {
        WaitReason::Question { text } => {
            with_reason(NotificationText::new(OnEscalation, NotificationTopic::Question, "asks"), text)
        }
        WaitReason::Login { account, detail, .. } => {
            let what = format!("waits for a login to `{account}`");
            with_reason(NotificationText::new(OnEscalation, NotificationTopic::Escalation, &what), detail)
        }
        WaitReason::GateBroken { command, detail } => {
            let what = format!("waits: the check `{command}` cannot be trusted");
            with_reason(NotificationText::new(OnEscalation, NotificationTopic::Escalation, &what), detail)
        }
        WaitReason::Budget { what, until: None } => with_reason(
            NotificationText::new(OnPause, NotificationTopic::Paused, "waits for a larger budget"),
            what,
        ),
        WaitReason::Conflict { files, .. } => {
            let told = NotificationText::new(
                OnEscalation,
                NotificationTopic::Escalation,
                "has a conflict that wants a person",
            );
            with_reason(told, files.join(", "))
        }
        // Whoever paused a task knows it.
        WaitReason::Pause => NotificationText::new(OnPause, None, "is paused"),
        WaitReason::Disk { detail } => with_reason(
            NotificationText::new(OnPause, NotificationTopic::Paused, "waits for room on the disk"),
            detail,
        ),
        WaitReason::Dependency(_)
        | WaitReason::Parts
        | WaitReason::Blockers { .. }
        | WaitReason::Slot
        | WaitReason::Turn(_)
        | WaitReason::Quota { .. }
        | WaitReason::Budget { until: Some(_), .. }
        | WaitReason::Backoff { .. } => None,
    }
}

fn ending_notification(Ending { kind, code, detail }: &Ending) -> Option<NotificationText> {
    use HookPoint::{OnError, OnEscalation};
    let told = match (kind, code) {
        (_, EndCode::LandingMismatch) => NotificationText::new(
            OnEscalation,
            NotificationTopic::Alarm,
            "landed, and what landed did not check out",
        ),
        (EndKind::Done | EndKind::Cancelled, _) => None,
        (EndKind::Failed, _) => NotificationText::new(OnError, NotificationTopic::Failed, "failed"),
        (EndKind::Timeout, _) => NotificationText::new(OnError, NotificationTopic::Failed, "ran out"),
        (EndKind::Blocked, EndCode::Person) => None, // whoever said so knows
        (EndKind::Blocked, _) => {
            NotificationText::new(OnEscalation, NotificationTopic::Escalation, "is blocked")
        }
    };
    with_reason(told, detail)
}

/// The table, for facts of the engine.
fn engine_notification(event: &EngineEvent) -> Option<NotificationText> {
    match event {
        EngineEvent::RunEnded { run, why } => {
            let reason = match why {
                RunEnd::NothingLeft => "nothing is left that could start by itself",
                RunEnd::Drained => "it was stopped between iterations",
                RunEnd::Interrupted => "it was stopped at once",
                RunEnd::Spent => "its budget is used up",
                RunEnd::Paused => "it was paused, and nobody was there to let it go on",
                RunEnd::Goal => "the goal of its sprint was reached",
                RunEnd::OneDone => "one task was done, and nobody was there to pick another",
                RunEnd::Lost => return None, // found out by the next one, long after
            };
            with_reason(
                NotificationText::new(None, NotificationTopic::RunOver, &format!("run {run} is over")),
                reason,
            )
        }
        EngineEvent::PublishHeld { commit, reason } => {
            let told = NotificationText::new(
                None,
                NotificationTopic::Held,
                "landed work is not in your repository yet",
            );
            with_commit(with_reason(told, reason), commit)
        }
        EngineEvent::Queue(QueueEvent::Held { why, reason, .. }) => match why {
            HoldReason::Person => {
                NotificationText::new(HookPoint::OnPause, None, "the landing queue is paused")
            }
            HoldReason::Machine => with_reason(
                NotificationText::new(HookPoint::OnError, None, "the landing queue waits"),
                reason,
            ),
            HoldReason::Gate | HoldReason::Runaway | HoldReason::Rewritten | HoldReason::Deleted => {
                with_reason(
                    NotificationText::new(
                        HookPoint::OnEscalation,
                        NotificationTopic::Escalation,
                        "the landing queue is held",
                    ),
                    reason,
                )
            }
        },
        EngineEvent::Pilot(PilotEvent::Paused { why, reason }) => match why {
            PauseReason::Person => {
                with_reason(NotificationText::new(HookPoint::OnPause, None, "the run is paused"), reason)
            }
            PauseReason::Failures | PauseReason::SprintError => with_reason(
                NotificationText::new(HookPoint::OnPause, NotificationTopic::Paused, "the run is paused"),
                reason,
            ),
        },
        EngineEvent::Sprint(SprintEvent::Ended { why }) => with_reason(
            NotificationText::new(None, NotificationTopic::SprintOver, "the sprint is over"),
            why.word(),
        ),
        EngineEvent::Queue(_)
        | EngineEvent::Pilot(_)
        | EngineEvent::Sprint(_)
        | EngineEvent::Checkpoint(_)
        | EngineEvent::Started { .. }
        | EngineEvent::RunStarted { .. }
        | EngineEvent::BaseMoved { .. }
        | EngineEvent::Published { .. }
        | EngineEvent::Account { .. }
        | EngineEvent::Measured { .. }
        | EngineEvent::DiscoveryDropped { .. }
        | EngineEvent::Consulted { .. }
        | EngineEvent::Auto(_)
        | EngineEvent::Haul(_) => None,
    }
}

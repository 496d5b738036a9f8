//! What the engine decides for many tasks at once: the landing queue, who picks tasks, sprints and checkpoints.

use landfall_model as model;
use landfall_model::checkpoint::CheckpointEvent;
use landfall_model::pilot::PilotEvent;
use landfall_model::queue::QueueEvent;
use landfall_model::sprint::SprintEvent;
use landfall_model::{Attempt, BatchId, EngineEvent, SprintId, Tag, TaskId, Timestamp, Tree};
use serde::{Deserialize, Serialize};

use super::parts::{self, words};
use super::{Nothing, body, commit, json};
use crate::format::text::Text;
use crate::format::{FormatErrorKind, Raw};

words!(HoldWhy = model::queue::HoldWhy {
    Gate = "gate",
    Runaway = "runaway",
    Machine = "machine",
    Person = "person",
    Rewritten = "rewritten",
    Deleted = "deleted",
});
words!(Mode = model::pilot::Mode { Autopilot = "autopilot", SemiAuto = "semi-auto" });
words!(PauseWhy = model::pilot::PauseWhy {
    Person = "person",
    Failures = "failures",
    SprintError = "sprint-error",
});
words!(SprintEnd = model::sprint::SprintEnd {
    Goal = "goal",
    NothingLeft = "nothing-left",
    Cancelled = "cancelled",
    Spent = "spent",
});
words!(CheckpointWhy = model::checkpoint::CheckpointWhy {
    Landings = "landings",
    Sprint = "sprint",
    Person = "person",
    Restore = "restore",
});

#[derive(Serialize, Deserialize)]
struct Formed<'a> {
    batch: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    on: Option<u32>,
    #[serde(borrow)]
    members: Vec<Member<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Built<'a> {
    batch: u32,
    #[serde(borrow)]
    base: Text<'a>,
    #[serde(borrow)]
    members: Vec<Member<'a>>,
    #[serde(borrow)]
    prefixes: Vec<Prefix<'a>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    crowded: Vec<u32>,
}

/// So many members of a batch, from the front.
#[derive(Serialize, Deserialize)]
struct Beginning {
    batch: u32,
    count: usize,
}

#[derive(Serialize, Deserialize)]
struct Checked<'a> {
    batch: u32,
    count: usize,
    #[serde(borrow)]
    report: parts::Report<'a>,
}

#[derive(Serialize, Deserialize)]
struct Over<'a> {
    batch: u32,
    #[serde(borrow)]
    how: Closed<'a>,
}

#[derive(Serialize, Deserialize)]
struct Held<'a> {
    why: HoldWhy,
    #[serde(borrow)]
    reason: Text<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<i64>,
}

#[derive(Serialize, Deserialize)]
struct ModeSet {
    mode: Mode,
}

#[derive(Serialize, Deserialize)]
struct Assigned {
    task: u32,
}

#[derive(Serialize, Deserialize)]
struct RunPaused<'a> {
    why: PauseWhy,
    #[serde(borrow)]
    reason: Text<'a>,
}

#[derive(Serialize, Deserialize)]
struct SprintStarted<'a> {
    sprint: u32,
    #[serde(borrow)]
    plan: SprintPlan<'a>,
    ready: u32,
}

#[derive(Serialize, Deserialize)]
struct SprintPaused<'a> {
    #[serde(borrow)]
    reason: Text<'a>,
}

/// How a sprint ends, or will.
#[derive(Serialize, Deserialize)]
struct SprintEnding {
    why: SprintEnd,
}

#[derive(Serialize, Deserialize)]
struct CheckpointMade<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    commit: Text<'a>,
    why: CheckpointWhy,
}

#[derive(Serialize, Deserialize)]
struct CheckpointDropped<'a> {
    #[serde(borrow)]
    name: Text<'a>,
}

pub(super) fn encode_queue(event: &QueueEvent) -> (&'static str, String) {
    match event {
        QueueEvent::Formed { batch, on, members } => {
            let (on, members) = (on.map(|on| on.0), members.iter().map(Member::from).collect());
            ("queue-formed", json(&Formed { batch: batch.0, on, members }))
        }
        QueueEvent::Built { batch, base, members, prefixes, crowded } => (
            "queue-built",
            json(&Built {
                batch: batch.0,
                base: base.as_str().into(),
                members: members.iter().map(Member::from).collect(),
                prefixes: prefixes.iter().map(Prefix::from).collect(),
                crowded: crowded.iter().map(|task| task.0).collect(),
            }),
        ),
        QueueEvent::CheckBegan { batch, count } => {
            ("queue-check-began", json(&Beginning { batch: batch.0, count: *count }))
        }
        QueueEvent::Checked { batch, count, report } => {
            ("queue-checked", json(&Checked { batch: batch.0, count: *count, report: report.into() }))
        }
        QueueEvent::Doubted { batch, count } => {
            ("queue-doubted", json(&Beginning { batch: batch.0, count: *count }))
        }
        QueueEvent::LandingBegan { batch, count } => {
            ("queue-landing-began", json(&Beginning { batch: batch.0, count: *count }))
        }
        QueueEvent::Over { batch, how } => ("queue-over", json(&Over { batch: batch.0, how: how.into() })),
        QueueEvent::Held { why, reason, until } => {
            let until = until.map(|until| until.0);
            ("queue-held", json(&Held { why: (*why).into(), reason: reason.into(), until }))
        }
        QueueEvent::Resumed => ("queue-resumed", json(&Nothing {})),
    }
}

pub(super) fn encode_pilot(event: &PilotEvent) -> (&'static str, String) {
    match event {
        PilotEvent::ModeSet { mode } => ("mode-set", json(&ModeSet { mode: (*mode).into() })),
        PilotEvent::Assigned { task } => ("assigned", json(&Assigned { task: task.0 })),
        PilotEvent::Settled => ("settled", json(&Nothing {})),
        PilotEvent::Paused { why, reason } => {
            ("run-paused", json(&RunPaused { why: (*why).into(), reason: reason.into() }))
        }
        PilotEvent::Resumed => ("run-resumed", json(&Nothing {})),
    }
}

pub(super) fn encode_sprint(event: &SprintEvent) -> (&'static str, String) {
    match event {
        SprintEvent::Started { sprint, plan, ready } => {
            ("sprint-started", json(&SprintStarted { sprint: sprint.0, plan: plan.into(), ready: *ready }))
        }
        SprintEvent::Paused { reason } => ("sprint-paused", json(&SprintPaused { reason: reason.into() })),
        SprintEvent::Resumed => ("sprint-resumed", json(&Nothing {})),
        SprintEvent::Completing { why } => ("sprint-completing", json(&SprintEnding { why: (*why).into() })),
        SprintEvent::Ended { why } => ("sprint-ended", json(&SprintEnding { why: (*why).into() })),
    }
}

pub(super) fn encode_checkpoint(event: &CheckpointEvent) -> (&'static str, String) {
    match event {
        CheckpointEvent::Made { name, commit, why } => (
            "checkpoint-made",
            json(&CheckpointMade { name: name.into(), commit: commit.as_str().into(), why: (*why).into() }),
        ),
        CheckpointEvent::Dropped { name } => {
            ("checkpoint-dropped", json(&CheckpointDropped { name: name.into() }))
        }
    }
}

/// None when the kind is not one of these.
pub(super) fn decode(raw: Raw<'_>) -> Result<Option<EngineEvent>, FormatErrorKind> {
    Ok(Some(match raw.kind {
        "queue-formed" => {
            let Formed { batch, on, members } = body(raw)?;
            let members = members.into_iter().map(Into::into).collect();
            EngineEvent::Queue(QueueEvent::Formed { batch: BatchId(batch), on: on.map(BatchId), members })
        }
        "queue-built" => {
            let Built { batch, base, members, prefixes, crowded } = body(raw)?;
            EngineEvent::Queue(QueueEvent::Built {
                batch: BatchId(batch),
                base: commit(base),
                members: members.into_iter().map(Into::into).collect(),
                prefixes: prefixes.into_iter().map(Into::into).collect(),
                crowded: crowded.into_iter().map(TaskId).collect(),
            })
        }
        "queue-check-began" => {
            let Beginning { batch, count } = body(raw)?;
            EngineEvent::Queue(QueueEvent::CheckBegan { batch: BatchId(batch), count })
        }
        "queue-checked" => {
            let Checked { batch, count, report } = body(raw)?;
            let (batch, report) = (BatchId(batch), report.into());
            EngineEvent::Queue(QueueEvent::Checked { batch, count, report })
        }
        "queue-doubted" => {
            let Beginning { batch, count } = body(raw)?;
            EngineEvent::Queue(QueueEvent::Doubted { batch: BatchId(batch), count })
        }
        "queue-landing-began" => {
            let Beginning { batch, count } = body(raw)?;
            EngineEvent::Queue(QueueEvent::LandingBegan { batch: BatchId(batch), count })
        }
        "queue-over" => {
            let Over { batch, how } = body(raw)?;
            EngineEvent::Queue(QueueEvent::Over { batch: BatchId(batch), how: how.into() })
        }
        "queue-held" => {
            let Held { why, reason, until } = body(raw)?;
            let (reason, until) = (reason.into_string(), until.map(Timestamp));
            EngineEvent::Queue(QueueEvent::Held { why: why.into(), reason, until })
        }
        "queue-resumed" => {
            let Nothing {} = body(raw)?;
            EngineEvent::Queue(QueueEvent::Resumed)
        }
        "mode-set" => EngineEvent::Pilot(PilotEvent::ModeSet { mode: body::<ModeSet>(raw)?.mode.into() }),
        "assigned" => EngineEvent::Pilot(PilotEvent::Assigned { task: TaskId(body::<Assigned>(raw)?.task) }),
        "settled" => {
            let Nothing {} = body(raw)?;
            EngineEvent::Pilot(PilotEvent::Settled)
        }
        "run-paused" => {
            let RunPaused { why, reason } = body(raw)?;
            EngineEvent::Pilot(PilotEvent::Paused { why: why.into(), reason: reason.into_string() })
        }
        "run-resumed" => {
            let Nothing {} = body(raw)?;
            EngineEvent::Pilot(PilotEvent::Resumed)
        }
        "sprint-started" => {
            let SprintStarted { sprint, plan, ready } = body(raw)?;
            let plan = plan.model().map_err(FormatErrorKind::Body)?;
            EngineEvent::Sprint(SprintEvent::Started { sprint: SprintId(sprint), plan, ready })
        }
        "sprint-paused" => {
            let reason = body::<SprintPaused<'_>>(raw)?.reason.into_string();
            EngineEvent::Sprint(SprintEvent::Paused { reason })
        }
        "sprint-resumed" => {
            let Nothing {} = body(raw)?;
            EngineEvent::Sprint(SprintEvent::Resumed)
        }
        "sprint-completing" => {
            let SprintEnding { why } = body(raw)?;
            EngineEvent::Sprint(SprintEvent::Completing { why: why.into() })
        }
        "sprint-ended" => {
            let SprintEnding { why } = body(raw)?;
            EngineEvent::Sprint(SprintEvent::Ended { why: why.into() })
        }
        "checkpoint-made" => {
            let CheckpointMade { name, commit: at, why } = body(raw)?;
            let name = name.into_string();
            EngineEvent::Checkpoint(CheckpointEvent::Made { name, commit: commit(at), why: why.into() })
        }
        "checkpoint-dropped" => {
            let name = body::<CheckpointDropped<'_>>(raw)?.name.into_string();
            EngineEvent::Checkpoint(CheckpointEvent::Dropped { name })
        }
        _ => return Ok(None),
    }))
}

#[derive(Serialize, Deserialize)]
struct Member<'a> {
    task: u32,
    attempt: u32,
    #[serde(borrow)]
    head: Text<'a>,
}

impl<'a> From<&'a model::queue::Member> for Member<'a> {
    fn from(member: &'a model::queue::Member) -> Self {
        let model::queue::Member { task, attempt, head } = member;
        Self { task: task.0, attempt: attempt.0, head: head.as_str().into() }
    }
}

impl From<Member<'_>> for model::queue::Member {
    fn from(member: Member<'_>) -> Self {
        let Member { task, attempt, head } = member;
        Self { task: TaskId(task), attempt: Attempt(attempt), head: commit(head) }
    }
}

#[derive(Serialize, Deserialize)]
struct Prefix<'a> {
    #[serde(borrow)]
    commit: Text<'a>,
    #[serde(borrow)]
    tree: Text<'a>,
}

impl<'a> From<&'a model::queue::Prefix> for Prefix<'a> {
    fn from(prefix: &'a model::queue::Prefix) -> Self {
        let model::queue::Prefix { commit, tree } = prefix;
        Self { commit: commit.as_str().into(), tree: tree.as_str().into() }
    }
}

impl From<Prefix<'_>> for model::queue::Prefix {
    fn from(prefix: Prefix<'_>) -> Self {
        Self { commit: commit(prefix.commit), tree: Tree::new(prefix.tree.as_str()) }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Closed<'a> {
    Landed {
        count: usize,
        #[serde(borrow)]
        commit: Text<'a>,
    },
    Dropped {
        #[serde(borrow)]
        reason: Text<'a>,
    },
}

impl<'a> From<&'a model::queue::Closed> for Closed<'a> {
    fn from(how: &'a model::queue::Closed) -> Self {
        match how {
            model::queue::Closed::Landed { count, commit } => {
                Self::Landed { count: *count, commit: commit.as_str().into() }
            }
            model::queue::Closed::Dropped { reason } => Self::Dropped { reason: reason.into() },
        }
    }
}

impl From<Closed<'_>> for model::queue::Closed {
    fn from(how: Closed<'_>) -> Self {
        match how {
            Closed::Landed { count, commit: at } => Self::Landed { count, commit: commit(at) },
            Closed::Dropped { reason } => Self::Dropped { reason: reason.into_string() },
        }
    }
}

#[derive(Serialize, Deserialize)]
struct SprintPlan<'a> {
    goal: Goal,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    only: Vec<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parents: Vec<u32>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    tags_in: Vec<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    tags_out: Vec<Text<'a>>,
    checkpoint: bool,
    pause_on_error: bool,
    batch_review: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Goal {
    Count(u32),
    Duration { ms: u64 },
    Until(i64),
    NoReady,
}

impl<'a> From<&'a model::sprint::SprintPlan> for SprintPlan<'a> {
    fn from(plan: &'a model::sprint::SprintPlan) -> Self {
        let model::sprint::SprintPlan {
            goal,
            only,
            parents,
            tags_in,
            tags_out,
            checkpoint,
            pause_on_error,
            batch_review,
        } = plan;
        Self {
            goal: (*goal).into(),
            only: only.iter().map(|task| task.0).collect(),
            parents: parents.iter().map(|task| task.0).collect(),
            tags_in: tags_in.iter().map(|tag| tag.as_str().into()).collect(),
            tags_out: tags_out.iter().map(|tag| tag.as_str().into()).collect(),
            checkpoint: *checkpoint,
            pause_on_error: *pause_on_error,
            batch_review: *batch_review,
        }
    }
}

impl SprintPlan<'_> {
    fn model(self) -> Result<model::sprint::SprintPlan, String> {
        let tag = |text: Text<'_>| {
            text.as_str().parse::<Tag>().map_err(|error: model::SpecError| error.to_string())
        };
        Ok(model::sprint::SprintPlan {
            goal: self.goal.into(),
            only: self.only.into_iter().map(TaskId).collect(),
            parents: self.parents.into_iter().map(TaskId).collect(),
            tags_in: self.tags_in.into_iter().map(tag).collect::<Result<_, _>>()?,
            tags_out: self.tags_out.into_iter().map(tag).collect::<Result<_, _>>()?,
            checkpoint: self.checkpoint,
            pause_on_error: self.pause_on_error,
            batch_review: self.batch_review,
        })
    }
}

impl From<model::sprint::Goal> for Goal {
    fn from(goal: model::sprint::Goal) -> Self {
        match goal {
            model::sprint::Goal::Count(count) => Self::Count(count),
            model::sprint::Goal::Duration { ms } => Self::Duration { ms },
            model::sprint::Goal::Until(at) => Self::Until(at.0),
            model::sprint::Goal::NoReady => Self::NoReady,
        }
    }
}

impl From<Goal> for model::sprint::Goal {
    fn from(goal: Goal) -> Self {
        match goal {
            Goal::Count(count) => Self::Count(count),
            Goal::Duration { ms } => Self::Duration { ms },
            Goal::Until(at) => Self::Until(Timestamp(at)),
            Goal::NoReady => Self::NoReady,
        }
    }
}

//! Format 1: a JSON body for each kind of fact, as serde derives it for the events of `landfall-facts`.
//!
//! An old reader ignores fields it does not know; a kind or a word it does not know is an error with the number
//! of the event. Fields may be added with a default. Nothing else may change: the sample and the recording say so.

use std::sync::Arc;

use landfall_facts::auto::AutoEvent;
use landfall_facts::checkpoint::CheckpointEvent;
use landfall_facts::haul::IssueBatchEvent;
use landfall_facts::issue::IssueEvent;
use landfall_facts::pilot::PilotEvent;
use landfall_facts::recovery::RecoveryEvent;
use landfall_facts::sprint::SprintEvent;
use landfall_facts::staged::StagedEvent;
use landfall_facts::{
    AgentAssignment, EngineEvent, Event, Fact, Flow, JournalEntry, QueueEvent, TaskId, TaskLimits, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::{EncodedRow, FlowCache, FlowText, FormatError, FormatErrorKind, RawRow, kind};

/// A flow is written once and named by its digest.
#[derive(Serialize)]
struct BoundBodyRef<'a> {
    flow: &'a str,
    limits: &'a TaskLimits,
    driving: &'a AgentAssignment,
}

#[derive(Deserialize)]
struct BoundBody {
    flow: String,
    limits: TaskLimits,
    #[serde(default)]
    driving: AgentAssignment,
    /// The flow itself, in the first event that names it.
    #[serde(default)]
    inline: Option<Flow>,
}

/// Writes a fact down.
pub(crate) fn encode_entry(entry: &JournalEntry) -> EncodedRow {
    let at_ms = entry.at.0;
    match &entry.fact {
        Fact::Task(task, Event::Bound { flow, limits, driving }) => {
            let flow = flow_text(flow);
            let short = to_json(&BoundBodyRef { flow: &flow.digest, limits, driving });
            EncodedRow { at_ms, task: Some(task.0), kind: BOUND, short, flow: Some(flow) }
        }
        Fact::Task(task, event) => {
            let (kind, short) = kind::write(event);
            EncodedRow { at_ms, task: Some(task.0), kind, short, flow: None }
        }
        Fact::Engine(event) => {
            let (kind, short) = kind::write(event);
            EncodedRow { at_ms, task: None, kind, short, flow: None }
        }
    }
}

const BOUND: &str = "bound";

/// Reads a fact. Flows it brings are kept in `flows`; flows it names are taken from there.
pub(crate) fn decode_entry(raw: RawRow<'_>, flows: &mut FlowCache) -> Result<JournalEntry, FormatError> {
    let wrong = |what| FormatError { seq: raw.seq, kind: raw.kind.to_owned(), what };
    let fact = match decode_event(raw, flows).map_err(wrong)? {
        Some(event) => {
            let task = raw.task.ok_or_else(|| wrong(FormatErrorKind::NoTask))?;
            Fact::Task(TaskId(task), event)
        }
        None => {
            let event =
                decode_engine(raw).map_err(wrong)?.ok_or_else(|| wrong(FormatErrorKind::UnknownKind))?;
            if raw.task.is_some() {
                return Err(wrong(FormatErrorKind::StrayTask));
            }
            Fact::Engine(event)
        }
    };
    Ok(JournalEntry { at: Timestamp(raw.at_ms), fact })
}

/// None when the kind is not one of a task.
fn decode_event(raw: RawRow<'_>, flows: &mut FlowCache) -> Result<Option<Event>, FormatErrorKind> {
    if raw.kind == BOUND {
        return decode_bound(raw.body, flows).map(Some);
    }
    if let Some(event) = kind::read(raw.kind, raw.body)? {
        return Ok(Some(event));
    }
    if let Some(event) = kind::read::<IssueEvent>(raw.kind, raw.body)? {
        return Ok(Some(Event::Issue(event)));
    }
    if let Some(event) = kind::read::<StagedEvent>(raw.kind, raw.body)? {
        return Ok(Some(Event::Staged(event)));
    }
    Ok(kind::read::<RecoveryEvent>(raw.kind, raw.body)?.map(Event::Recovery))
}

fn decode_bound(body: &str, flows: &mut FlowCache) -> Result<Event, FormatErrorKind> {
    let bound = serde_json::from_str(body).map_err(|error| FormatErrorKind::Body(error.to_string()))?;
    let BoundBody { flow: digest, limits, driving, inline } = bound;
    if let Some(inline) = inline
        && !flows.contains_key(&digest)
    {
        flows.insert(digest.clone(), Arc::new(inline));
    }
    let flow = flows.get(&digest).cloned().ok_or(FormatErrorKind::UnknownFlow(digest))?;
    Ok(Event::Bound { flow, limits, driving })
}

/// None when the kind is not one of the engine.
fn decode_engine(raw: RawRow<'_>) -> Result<Option<EngineEvent>, FormatErrorKind> {
    let RawRow { kind, body, .. } = raw;
    if let Some(event) = kind::read(kind, body)? {
        return Ok(Some(event));
    }
    if let Some(event) = kind::read::<QueueEvent>(kind, body)? {
        return Ok(Some(EngineEvent::Queue(event)));
    }
    if let Some(event) = kind::read::<PilotEvent>(kind, body)? {
        return Ok(Some(EngineEvent::Pilot(event)));
    }
    if let Some(event) = kind::read::<SprintEvent>(kind, body)? {
        return Ok(Some(EngineEvent::Sprint(event)));
    }
    if let Some(event) = kind::read::<CheckpointEvent>(kind, body)? {
        return Ok(Some(EngineEvent::Checkpoint(event)));
    }
    if let Some(event) = kind::read::<AutoEvent>(kind, body)? {
        return Ok(Some(EngineEvent::Auto(event)));
    }
    Ok(kind::read::<IssueBatchEvent>(kind, body)?.map(EngineEvent::Haul))
}

/// A flow as it is written, with its name by content.
pub(crate) fn flow_text(flow: &Flow) -> FlowText {
    let json = to_json(flow);
    FlowText { digest: blake3::hash(json.as_bytes()).to_hex().to_string(), json }
}

/// Reads a flow that is kept apart from the events.
pub(crate) fn flow_from_text(json: &str) -> Result<Flow, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

fn to_json<T: Serialize>(body: &T) -> String {
    serde_json::to_string(body).expect("bodies hold nothing that JSON cannot")
}

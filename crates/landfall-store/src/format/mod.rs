//! How facts are written down: the envelope around what serde derives for `landfall-facts`. Each format has a sample and a
//! recording in `samples/` that must still replay.

mod kind;
mod v1;

use std::collections::HashMap;
use std::sync::Arc;

use landfall_model::{Flow, JournalEntry};
use thiserror::Error;

use crate::Seq;

pub(crate) use v1::{decode_entry, encode_entry, flow_from_text, flow_text};

/// A fact as it is written: all of a row but its number and hash.
#[derive(Debug, Clone)]
pub(crate) struct EncodedRow {
    pub at_ms: i64,
    pub task: Option<u32>,
    pub kind: &'static str,
    /// Without the flow, if it names one; see [`Written::long`].
    pub short: String,
    /// The flow it names, if it names one.
    pub flow: Option<FlowText>,
}

/// A flow as it is written, and its name by content.
#[derive(Debug, Clone)]
pub(crate) struct FlowText {
    pub digest: String,
    pub json: String,
}

impl EncodedRow {
    /// The body with the flow inside: for the first fact that names the flow.
    pub fn body_with_flow(&self, flow: &FlowText) -> String {
        let open = self.short.strip_suffix('}').expect("a body is an object");
        format!("{open},\"inline\":{}}}", flow.json)
    }
}

/// How the journal writes a fact: its kind and its body.
#[must_use]
pub fn encode_as_json(entry: &JournalEntry) -> (&'static str, serde_json::Value) {
    let written = encode_entry(entry);
    let body = serde_json::from_str(&written.short).expect("a body is JSON");
    (written.kind, body)
}

/// A row as it is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawRow<'a> {
    pub seq: Seq,
    pub at_ms: i64,
    pub task: Option<u32>,
    pub kind: &'a str,
    pub body: &'a str,
}

/// The flows that were read so far, each once, so that tasks share them.
pub(crate) type FlowCache = HashMap<String, Arc<Flow>>;

/// A row that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("event {seq} of kind `{kind}`: {what}")]
pub struct FormatError {
    /// Its number.
    pub seq: Seq,
    /// Its kind.
    pub kind: String,
    /// What is wrong.
    pub what: FormatErrorKind,
}

/// What can be wrong with a row.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FormatErrorKind {
    /// A newer Landfall may have written it.
    #[error("this version does not know the kind")]
    UnknownKind,
    /// The body is not what its kind should hold.
    #[error("{0}")]
    Body(String),
    /// A fact of a task without one.
    #[error("it names no task")]
    NoTask,
    /// A fact of the engine with a task.
    #[error("it names a task and should not")]
    StrayTask,
    /// It names a flow that no earlier event holds.
    #[error("the flow {0} is not in the journal")]
    UnknownFlow(String),
}

#[cfg(test)]
mod random;
#[cfg(test)]
mod recording;
#[cfg(test)]
mod sample;

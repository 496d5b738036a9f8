//! `.auto-signal` and `.auto-stop`: how an agent that runs its own loop says where it is, and is told to stop.
//!
//! All words of all versions are accepted; any other is refused with the known ones. A half-written file is no error to
//! act upon: whoever reads it looks again.

use landfall_model::stride::{CHECKPOINTS, ENDS, RESULTS, STEPS};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::document::without_place;
use super::problem::{ModuleFormatError, ModuleLineProblem, shorten_text};

/// The name of the signal.
pub const SIGNAL_FILE: &str = ".auto-signal";

/// Where an agent's own loop is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopSignal {
    /// The step that ended.
    pub step: String,
    /// What came of it.
    pub result: String,
    /// What follows.
    pub next: String,
    /// Where the check stood.
    #[serde(default)]
    pub checkpoint: String,
    /// How many steps went before; none when a person ran the step by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u64>,
    /// When, as it was written.
    pub timestamp: String,
    /// What only some versions write, and what nobody here knows.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl LoopSignal {
    /// Reads a signal.
    ///
    /// # Errors
    /// When it is not whole, or a word in it is not known.
    pub fn read(text: &str) -> Result<Self, ModuleFormatError> {
        Self::parse_text(text).map_err(|bad| bad.in_file(SIGNAL_FILE))
    }

    fn parse_text(text: &str) -> Result<Self, ModuleLineProblem> {
        let mut value: Value = parse(text)?;
        // Some write null where others write nothing.
        if let Value::Object(map) = &mut value {
            map.retain(|_, value| !value.is_null());
        }
        let signal: Self = serde_json::from_value(value)
            .map_err(|error| ModuleLineProblem::new(1, without_place(&error)))?;
        let steps: Vec<&str> = [STEPS, ENDS].concat();
        check_known("step", &signal.step, STEPS, |_| false)?;
        check_known("result", &signal.result, RESULTS, |word| {
            word.strip_prefix("(step-").and_then(|rest| rest.strip_suffix(')')).is_some_and(is_number)
        })?;
        check_known("next", &signal.next, &steps, |_| false)?;
        check_known("checkpoint", &signal.checkpoint, CHECKPOINTS, |word| {
            word.strip_prefix("step-").is_some_and(is_number)
        })?;
        if !super::text::is_moment(&signal.timestamp) {
            let message = format!("timestamp is `{}`, not a moment", shorten_text(&signal.timestamp));
            return Err(ModuleLineProblem::new(1, message).with_known("2026-01-31T10:00:00Z"));
        }
        Ok(signal)
    }

    /// How often the agent's context was compacted in this iteration.
    #[must_use]
    pub fn compaction_count(&self) -> Option<u64> {
        self.extra.get("compaction_count").and_then(Value::as_u64)
    }

    /// The file.
    #[must_use]
    pub fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).expect("a signal can be written as JSON") + "\n"
    }
}

/// An order to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopOrder {
    /// Why.
    pub reason: String,
    /// When.
    pub timestamp: String,
}

impl StopOrder {
    /// The file.
    #[must_use]
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("an order can be written as JSON") + "\n"
    }
}

fn parse(text: &str) -> Result<Value, ModuleLineProblem> {
    serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| {
        ModuleLineProblem::new(error.line().max(1), format!("this is no JSON: {}", without_place(&error)))
            .with_hint("it may be half written; look again")
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn check_known(
    field: &str,
    word: &str,
    words: &[&str],
    also: impl Fn(&str) -> bool,
) -> Result<(), ModuleLineProblem> {
    match words.contains(&word) || also(word) {
        true => Ok(()),
        false => Err(ModuleLineProblem::new(1, format!("{field} is `{}`", shorten_text(word)))
            .with_known(words.join(", "))),
    }
}

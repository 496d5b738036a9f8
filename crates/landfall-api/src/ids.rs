//! How tasks and runs are written: `T7`, `R2`, and `#2` for the second task of the same batch.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// A word that is not the id it should be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is not {wanted}")]
pub struct BadId {
    /// What was given, cut to a readable length.
    pub text: String,
    /// What would have been understood.
    pub wanted: &'static str,
}

impl BadId {
    fn new(text: &str, wanted: &'static str) -> Self {
        Self { text: text.chars().take(40).collect(), wanted }
    }
}

fn parse_number(text: &str, letters: &[char]) -> Option<u32> {
    let digits = text.strip_prefix(letters).unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|number| plain && *number > 0)
}

macro_rules! as_text {
    ($name:ident, $schema_name:literal, $pattern:literal, $example:literal) => {
        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $schema_name.into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": $pattern, "examples": [$example] })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
                text.parse().map_err(D::Error::custom)
            }
        }
    };
}

/// A task, written `T7`. `t7` and `7` are understood too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WireTaskId(pub u32);

impl fmt::Display for WireTaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}", self.0)
    }
}

impl FromStr for WireTaskId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        parse_number(text, &['T', 't']).map(Self).ok_or_else(|| BadId::new(text, "a task id such as T7"))
    }
}

as_text!(WireTaskId, "TaskId", "^[Tt]?[1-9][0-9]{0,8}$", "T7");

/// A run, written `R2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WireRunId(pub u32);

impl fmt::Display for WireRunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "R{}", self.0)
    }
}

impl FromStr for WireRunId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        parse_number(text, &['R', 'r']).map(Self).ok_or_else(|| BadId::new(text, "a run id such as R2"))
    }
}

as_text!(WireRunId, "RunId", "^[Rr]?[1-9][0-9]{0,8}$", "R2");

/// A sprint, written `S3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WireSprintId(pub u32);

impl fmt::Display for WireSprintId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S{}", self.0)
    }
}

impl FromStr for WireSprintId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        parse_number(text, &['S', 's']).map(Self).ok_or_else(|| BadId::new(text, "a sprint id such as S3"))
    }
}

as_text!(WireSprintId, "SprintId", "^[Ss]?[1-9][0-9]{0,8}$", "S3");

/// Issues that were asked for together, written `H3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HaulId(pub u32);

impl fmt::Display for HaulId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "H{}", self.0)
    }
}

impl FromStr for HaulId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        parse_number(text, &['H', 'h'])
            .map(Self)
            .ok_or_else(|| BadId::new(text, "a batch of issues such as H3"))
    }
}

as_text!(HaulId, "HaulId", "^[Hh]?[1-9][0-9]{0,8}$", "H3");

/// An issue of the project's tracker by its number, written `12`. `#12` is understood too. Pull requests are counted with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IssueNumber(pub u64);

impl fmt::Display for IssueNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for IssueNumber {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let digits = text.strip_prefix('#').unwrap_or(text);
        let number = Some(digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let number = number.and_then(|digits| digits.parse().ok()).filter(|number| *number > 0);
        number.map(Self).ok_or_else(|| BadId::new(text, "the number of an issue such as 12"))
    }
}

impl Serialize for IssueNumber {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for IssueNumber {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct IssueNumberVisitor;
        impl serde::de::Visitor<'_> for IssueNumberVisitor {
            type Value = IssueNumber;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the number of an issue such as 12")
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<IssueNumber, E> {
                number.to_string().parse().map_err(E::custom)
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<IssueNumber, E> {
                text.parse().map_err(E::custom)
            }
        }
        from.deserialize_any(IssueNumberVisitor) // a path and a query have texts, a body has numbers
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for IssueNumber {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "IssueNumber".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "integer", "minimum": 1, "examples": [12] })
    }
}

/// A task by its id, or by its place in the batch that is being added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskRef {
    /// `T7`: a task that is already there.
    Task(WireTaskId),
    /// `#2`: the second task of this batch.
    Batch(u32),
}

impl fmt::Display for TaskRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(id) => write!(f, "{id}"),
            Self::Batch(place) => write!(f, "#{place}"),
        }
    }
}

impl FromStr for TaskRef {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let wanted = "a task id such as T7, or #2 for the second task of this batch";
        match text.strip_prefix('#') {
            Some(place) => parse_number(place, &[]).map(Self::Batch),
            None => parse_number(text, &['T', 't']).map(|number| Self::Task(WireTaskId(number))),
        }
        .ok_or_else(|| BadId::new(text, wanted))
    }
}

as_text!(TaskRef, "TaskRef", "^(#|[Tt])?[1-9][0-9]{0,8}$", "#2");

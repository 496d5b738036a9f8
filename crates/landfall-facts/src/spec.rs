//! What a person wants: the words of a task, checked once at the border.

use crate::defaults::is_false;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::TaskId;
use crate::touch::PathPattern;

words! {
    /// How much work a task is thought to be.
    pub enum TaskSize {
        /// A line or two.
        XS = "XS",
        /// An hour of a person.
        S = "S",
        /// Half a day.
        M = "M",
        /// A day or two.
        L = "L",
        /// More; wants splitting.
        XL = "XL",
    }
}

impl FromStr for TaskSize {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        Self::ALL
            .into_iter()
            .find(|size| size.to_string().eq_ignore_ascii_case(text))
            .ok_or_else(|| SpecError::Size(text.chars().take(40).collect()))
    }
}

/// A word on a task. `critical`, `quick-win`, `next` and `later` weigh in the order of work; others only group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(String);

impl Tag {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Tag {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        let legal = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '.' | ':');
        if text.is_empty() || text.len() > TAG_BYTES_MAX || !text.chars().all(legal) {
            return Err(SpecError::Tag(text.chars().take(40).collect()));
        }
        Ok(Self(text.to_owned()))
    }
}

const TAG_BYTES_MAX: usize = 64; // a word, not a sentence
/// The longest title that is kept, in bytes; a longer one is refused, not cut.
pub const TITLE_BYTES_MAX: usize = 16 * 1024;
/// The longest body, in bytes.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// The most paths a task may say it touches.
pub const TOUCHES_MAX: usize = 100;
/// The lowest priority number, which is the most urgent.
pub const PRIORITY_MAX: u8 = 9;

/// What is wrong with the words of a task.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SpecError {
    /// Nothing to call it by.
    #[error("a task needs a title")]
    NoTitle,
    /// Too long to be a title.
    #[error("the title has {0} bytes; at most {TITLE_BYTES_MAX} are kept (put the rest into the body)")]
    LongTitle(usize),
    /// Too long to be a prompt.
    #[error("the body has {0} bytes; at most {BODY_BYTES_MAX} are kept")]
    LongBody(usize),
    /// Not a size.
    #[error("`{0}` is not a size; known: XS, S, M, L, XL")]
    Size(String),
    /// Not a tag.
    #[error("`{0}` is not a tag: letters, digits, `-`, `_`, `.`, `:` and `/`, at most {TAG_BYTES_MAX} bytes")]
    Tag(String),
    /// Not a path within the repository.
    #[error("`{0}` is not a path, a folder or a pattern below the root of the repository")]
    Touch(String),
    /// Too many paths to be a guess.
    #[error("{0} paths are touched; at most {TOUCHES_MAX} are kept (name a folder instead)")]
    Touches(usize),
    /// Not a priority.
    #[error("priority {0} is out of range: 0 (most urgent) to {PRIORITY_MAX}")]
    Priority(u8),
}

/// What is wanted, in a person's words. Build it with [`TaskSpec::new`] and set the public fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// One line, free of control characters.
    pub title: String,
    /// As long as it needs to be.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// What must hold when it is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<String>,
    /// How much work it is thought to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<TaskSize>,
    /// Words on it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<Tag>,
    /// 0 is the most urgent, 5 the middle, 9 can wait.
    pub priority: u8,
    /// Tasks that must have landed before this one starts.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub needs: BTreeSet<TaskId>,
    /// Files it is thought to change. Work that would meet in a file is kept apart where it can be.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub touches: BTreeSet<PathPattern>,
    /// The task this one is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// Where it came from: `cli`, `file:…`, `rollback:T7`.
    pub source: String,
    /// The flow by name; the project's default otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// The agent profile by name; `default` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// A draft is not started until it is edited out of it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub draft: bool,
}

impl TaskSpec {
    /// A task with this title and nothing else. Control characters in the title become spaces.
    ///
    /// # Errors
    /// When the title is empty or too long.
    pub fn new(title: &str) -> Result<Self, SpecError> {
        let spec = Self {
            title: one_line(title),
            body: String::new(),
            criteria: Vec::new(),
            size: None,
            tags: BTreeSet::new(),
            priority: 5,
            needs: BTreeSet::new(),
            touches: BTreeSet::new(),
            parent: None,
            source: "cli".to_owned(),
            flow: None,
            agent: None,
            draft: false,
        };
        spec.check_bounds()?;
        Ok(spec)
    }

    /// Says whether the words are within their bounds.
    ///
    /// # Errors
    /// The first bound that does not hold.
    pub fn check_bounds(&self) -> Result<(), SpecError> {
        if self.title.is_empty() {
            return Err(SpecError::NoTitle);
        }
        if self.title.len() > TITLE_BYTES_MAX {
            return Err(SpecError::LongTitle(self.title.len()));
        }
        if self.body.len() > BODY_BYTES_MAX {
            return Err(SpecError::LongBody(self.body.len()));
        }
        if self.priority > PRIORITY_MAX {
            return Err(SpecError::Priority(self.priority));
        }
        if self.touches.len() > TOUCHES_MAX {
            return Err(SpecError::Touches(self.touches.len()));
        }
        Ok(())
    }
}

fn one_line(text: &str) -> String {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Serialize for Tag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Tag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

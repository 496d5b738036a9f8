//! Items and requirements of an objective.

use serde::{Deserialize, Serialize};

words! {
    /// How much a requirement matters.
    #[derive(Default)]
    pub enum Weight {
        /// Nice to have.
        Optional = "optional",
        /// Wanted.
        #[default]
        Important = "important",
        /// Without it the rest is worth nothing.
        Critical = "critical",
    }
}

impl Weight {
    /// What it counts.
    #[must_use]
    pub fn numeric_weight(self) -> u32 {
        match self {
            Self::Optional => 1,
            Self::Important => 2,
            Self::Critical => 3,
        }
    }
}

/// Something that must hold, by its number: `R3`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requirement {
    /// Counted through all items.
    pub number: u32,
    /// What must hold.
    pub text: String,
    /// How to see that it does; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub criteria: String,
    /// How much it matters.
    pub weight: Weight,
}

impl Requirement {
    /// A requirement.
    #[must_use]
    pub fn new(number: u32, text: &str, criteria: &str, weight: Weight) -> Self {
        Self { number, text: text.to_owned(), criteria: criteria.to_owned(), weight }
    }
}

/// One part of an objective.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectiveItem {
    /// In a line.
    pub text: String,
    /// What it comes to.
    pub requirements: Vec<Requirement>,
}

//! Events of issues that were requested together.

use serde::{Deserialize, Serialize};

use std::fmt;
use std::str::FromStr;

use crate::ids::IdError;

/// A haul, written `H3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IssueBatchId(pub u32);

impl fmt::Display for IssueBatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "H{}", self.0)
    }
}

impl FromStr for IssueBatchId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let digits = text.strip_prefix(['H', 'h']).unwrap_or(text);
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        match digits.parse() {
            Ok(number) if plain && number > 0 => Ok(Self(number)),
            Ok(_) | Err(_) => {
                Err(IdError { text: text.chars().take(40).collect(), wanted: "a batch of issues such as H3" })
            }
        }
    }
}

/// How the issues of a haul were chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Option<u32>", into = "Option<u32>")]
pub enum IssueSelection {
    /// So many of the newest.
    Newest(u32),
    /// Each by its number.
    Listed,
}

/// One fact about hauls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum IssueBatchEvent {
    /// Issues were asked for together.
    #[serde(rename = "haul-begun")]
    Begun {
        /// Under this name.
        haul: IssueBatchId,
        /// Chosen like this.
        #[serde(
            rename = "newest",
            default = "IssueSelection::listed",
            skip_serializing_if = "IssueSelection::is_listed"
        )]
        chosen: IssueSelection,
        /// Issues of this tracker.
        tracker: String,
        /// These, in the order in which they are begun.
        issues: Vec<u64>,
    },
}

impl IssueSelection {
    fn listed() -> Self {
        Self::Listed
    }

    fn is_listed(&self) -> bool {
        *self == Self::Listed
    }
}

impl From<Option<u32>> for IssueSelection {
    fn from(newest: Option<u32>) -> Self {
        newest.map_or(Self::Listed, Self::Newest)
    }
}

impl From<IssueSelection> for Option<u32> {
    fn from(chosen: IssueSelection) -> Self {
        match chosen {
            IssueSelection::Newest(count) => Some(count),
            IssueSelection::Listed => None,
        }
    }
}

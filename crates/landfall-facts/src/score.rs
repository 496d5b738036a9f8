//! Checkpoints of judges, their dimensions and scores.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::event::StepResult;

/// The six dimensions, in the order of their weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Dimension {
    /// Did we do what was asked.
    #[serde(rename = "d1")]
    Correctness,
    /// Did we defend against what must not happen.
    #[serde(rename = "d2")]
    Security,
    /// Does it degrade well.
    #[serde(rename = "d3")]
    Reliability,
    /// Is it fast and lean enough.
    #[serde(rename = "d4")]
    Performance,
    /// Does it support change.
    #[serde(rename = "d5")]
    Architecture,
    /// Can the next person change it.
    #[serde(rename = "d6")]
    Maintainability,
}

impl Dimension {
    /// All six, D1 to D6.
    pub const ALL: [Self; 6] = [
        Self::Correctness,
        Self::Security,
        Self::Reliability,
        Self::Performance,
        Self::Architecture,
        Self::Maintainability,
    ];

    /// The dimensions that block below [`GATE`], in the order they are asked.
    pub const GATES: [Self; 3] = [Self::Security, Self::Correctness, Self::Reliability];

    /// The short name: `D1`.
    #[must_use]
    pub fn code(self) -> &'static str {
        ["D1", "D2", "D3", "D4", "D5", "D6"][self as usize]
    }

    /// The word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Correctness => "correctness",
            Self::Security => "security",
            Self::Reliability => "reliability",
            Self::Performance => "performance",
            Self::Architecture => "architecture",
            Self::Maintainability => "maintainability",
        }
    }
}

/// A gate dimension below this blocks, in thousandths, whatever the others are.
pub const GATE: u32 = 500;

/// Six scores, each from 0 to 1000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scores([u32; 6]);

impl Scores {
    /// Scores in thousandths; none if one is out of range.
    #[must_use]
    pub fn new(thousandths: [u32; 6]) -> Option<Self> {
        thousandths.iter().all(|score| *score <= 1000).then_some(Self(thousandths))
    }

    /// The score of one dimension.
    #[must_use]
    pub fn of(self, dimension: Dimension) -> u32 {
        self.0[dimension as usize]
    }

    /// All six, D1 first.
    #[must_use]
    pub fn to_array(self) -> [u32; 6] {
        self.0
    }

    /// The same with one dimension held to at most `cap`.
    #[must_use]
    pub fn with_cap(mut self, dimension: Dimension, cap: u32) -> Self {
        let score = &mut self.0[dimension as usize];
        *score = (*score).min(cap);
        self
    }

    /// The weighted mean, in millionths: exact, so that a threshold is met or not without rounding.
    #[must_use]
    pub fn weighted_mean(self, weights: [u32; 6]) -> u32 {
        let sum: u64 =
            self.0.iter().zip(weights).map(|(score, weight)| u64::from(*score) * u64::from(weight)).sum();
        let all: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        u32::try_from(sum * 1000 / all.max(1)).expect("a mean of scores is a score")
    }

    /// The first gate that blocks, in the order security, correctness, reliability.
    #[must_use]
    pub fn blocking_dimension(self) -> Option<Dimension> {
        Dimension::GATES.into_iter().find(|dimension| self.of(*dimension) < GATE)
    }
}

words! {
    /// Where in a flow a judge is asked.
    pub enum GatePoint {
        /// The plan, before anything is done.
        PostPlan = "post-plan",
        /// Work under way.
        MidExec = "mid-exec",
        /// Work that is said to be done.
        PostExec = "post-exec",
    }
}

impl GatePoint {
    /// The composite that must be reached unless a flow says otherwise, in thousandths.
    #[must_use]
    pub fn default_threshold(self) -> u32 {
        match self {
            Self::PostPlan => 700,
            Self::MidExec => 600,
            Self::PostExec => 750,
        }
    }

    /// The result when all is well.
    #[must_use]
    pub fn pass_result(self) -> StepResult {
        match self {
            Self::PostPlan => StepResult::CheckPass,
            Self::MidExec => StepResult::Continue,
            Self::PostExec => StepResult::Accept,
        }
    }

    /// The result when it is not, and nothing more is known.
    #[must_use]
    pub fn fail_result(self) -> StepResult {
        match self {
            Self::PostPlan => StepResult::NeedsRevision,
            Self::MidExec | Self::PostExec => StepResult::NeedsFix,
        }
    }

    /// The results a judge's step of this kind can end with.
    #[must_use]
    pub fn possible_results(self) -> &'static [StepResult] {
        use StepResult as R;
        match self {
            Self::PostPlan => &[R::CheckPass, R::NeedsRevision, R::CheckBlocked],
            Self::MidExec => &[R::Continue, R::NeedsFix, R::Replan, R::CheckBlocked],
            Self::PostExec => &[R::Accept, R::NeedsFix, R::Replan, R::CheckBlocked],
        }
    }
}

words! {
    /// How much a refinement changes what is under way.
    pub enum RefinementImpact {
        /// Nothing.
        None = "none",
        /// Something for the end.
        Minor = "minor",
        /// Something to look at on the way.
        Moderate = "moderate",
        /// The plan does not hold any more.
        Major = "major",
    }
}

impl Serialize for Scores {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Scores {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let thousandths = <[u32; 6]>::deserialize(deserializer)?;
        Self::new(thousandths).ok_or_else(|| serde::de::Error::custom("a score is out of range"))
    }
}

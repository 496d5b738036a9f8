//! Events of plans, judges, objectives and stages.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

use crate::annotate;
use crate::audit::ChangeSize;
use crate::convergence::{Coverage, Exclusion, StageProgress};
use crate::event::StepResult;
use crate::objective::ObjectiveItem;
use crate::proof::{ProofAuthor, ProofRun, RequiredProof};
use crate::score::{GatePoint, RefinementImpact, Scores};
use crate::{Attempt, Commit, Digest, Timestamp};

/// What a judge said of the work, and what was made of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgeResult {
    /// Where.
    pub checkpoint: GatePoint,
    /// In this stage, if there are stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<u32>,
    /// The work it read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Commit>,
    /// The scores, after what the engine knows capped them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<Scores>,
    /// Their composite, in millionths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub composite: Option<u32>,
    /// How the step ended.
    pub result: StepResult,
    /// Why it did not pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// How far requirements are covered.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "numbered")]
    pub coverage: Coverage,
    /// What it found, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// When.
    pub at: Timestamp,
}

/// One fact about a plan, an objective or a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum StagedEvent {
    /// A plan was written; the one before it is kept beside it.
    #[serde(rename = "planned")]
    Planned {
        /// In this attempt.
        attempt: Attempt,
        /// The plan.
        paper: Digest,
        /// Its steps.
        steps: u32,
        /// The requirements some step covers.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        covers: Vec<u32>,
        /// What it does, in the titles of its steps.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        approach: String,
    },
    /// Other papers were written.
    #[serde(rename = "papers-kept")]
    PapersKept {
        /// In this attempt.
        attempt: Attempt,
        /// By name.
        papers: Vec<(String, Digest)>,
    },
    /// Steps of the plan are done, in the agent's words.
    #[serde(rename = "advanced")]
    Advanced {
        /// In this attempt.
        attempt: Attempt,
        /// This many in all.
        done: u32,
    },
    /// A judge read the work.
    #[serde(rename = "judged")]
    Judged {
        /// In this attempt.
        attempt: Attempt,
        /// What came of it.
        #[serde(flatten)]
        judged: JudgeResult,
    },
    /// What it is for was worked out anew.
    #[serde(rename = "objective-set")]
    ObjectiveSet {
        /// Its parts.
        items: Vec<ObjectiveItem>,
        /// What holds for all of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        constraints: Vec<String>,
    },
    /// A person was asked whether that is it.
    #[serde(rename = "objective-shown")]
    ObjectiveShown,
    /// A person said yes.
    #[serde(rename = "objective-confirmed")]
    ObjectiveConfirmed,
    /// A stage began.
    #[serde(rename = "stage-began")]
    StageBegan {
        /// Which.
        number: u32,
        /// The requirements it is for.
        focus: Vec<u32>,
    },
    /// A stage was measured against the objective.
    #[serde(rename = "converged")]
    Converged {
        /// In this attempt.
        attempt: Attempt,
        /// Where it stood before, under the same requirements.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        previous: Option<u32>,
        /// Where it stands now.
        current: u32,
        /// What follows.
        progress: StageProgress,
        /// The work.
        commit: Commit,
    },
    /// A stage was given up.
    #[serde(
        rename = "given-up",
        serialize_with = "Serialize::serialize",
        deserialize_with = "Deserialize::deserialize"
    )]
    GivenUp {
        /// And its direction with it.
        exclusion: Exclusion,
    },
    /// A person wants something otherwise.
    #[serde(rename = "refined")]
    Refined {
        /// By this number it is spoken of.
        number: u32,
        /// In their words.
        text: String,
    },
    /// A judge said how much that matters.
    #[serde(rename = "refinement-weighed")]
    RefinementWeighed {
        /// Which.
        number: u32,
        /// This much.
        impact: RefinementImpact,
    },
    /// Refinements went into the plan or to the agent.
    #[serde(rename = "refinements-taken")]
    RefinementsTaken {
        /// These.
        numbers: Vec<u32>,
    },
    /// A person took one back.
    #[serde(rename = "refinement-withdrawn")]
    RefinementWithdrawn {
        /// Which.
        number: u32,
    },
    /// A person wrote into the margin of a paper; the one before it is kept beside it if it was the plan.
    #[serde(rename = "annotated")]
    Annotated {
        /// Which.
        name: String,
        /// As it is now.
        paper: Digest,
        /// Its steps, if it is the plan.
        #[serde(default)]
        steps: u32,
        /// The requirements some step covers, if it is the plan.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        covers: Vec<u32>,
        /// How much that matters.
        impact: annotate::AnnotationImpact,
    },
    /// Checks were named that must fail before the work and pass after it.
    #[serde(rename = "promised")]
    Promised {
        /// By whom; what they named before is no longer owed.
        by: ProofAuthor,
        /// These.
        promises: Vec<RequiredProof>,
    },
    /// Such checks were run.
    #[serde(rename = "proved")]
    Proved {
        /// In this attempt.
        attempt: Attempt,
        /// On this work.
        head: Commit,
        /// With these results.
        runs: Vec<ProofRun>,
    },
    /// It was seen how large the change of the stage is.
    #[serde(rename = "change-measured")]
    Measured {
        /// In this attempt.
        attempt: Attempt,
        /// This large.
        #[serde(flatten)]
        extent: ChangeSize,
    },
}

impl StagedEvent {
    /// The attempt it is a fact of, if it is of one.
    #[must_use]
    pub fn fencing_attempt(&self) -> Option<Attempt> {
        match self {
            Self::Planned { attempt, .. }
            | Self::PapersKept { attempt, .. }
            | Self::Advanced { attempt, .. }
            | Self::Judged { attempt, .. }
            | Self::Converged { attempt, .. }
            | Self::Proved { attempt, .. }
            | Self::Measured { attempt, .. } => Some(*attempt),
            Self::ObjectiveSet { .. }
            | Self::ObjectiveShown
            | Self::ObjectiveConfirmed
            | Self::StageBegan { .. }
            | Self::GivenUp { .. }
            | Self::Refined { .. }
            | Self::RefinementWeighed { .. }
            | Self::RefinementsTaken { .. }
            | Self::RefinementWithdrawn { .. }
            | Self::Annotated { .. }
            | Self::Promised { .. } => None,
        }
    }

    /// The name, for logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Planned { .. } => "planned",
            Self::PapersKept { .. } => "papers-kept",
            Self::Advanced { .. } => "advanced",
            Self::Judged { .. } => "judged",
            Self::ObjectiveSet { .. } => "objective-set",
            Self::ObjectiveShown => "objective-shown",
            Self::ObjectiveConfirmed => "objective-confirmed",
            Self::StageBegan { .. } => "stage-began",
            Self::Converged { .. } => "converged",
            Self::GivenUp { .. } => "given-up",
            Self::Refined { .. } => "refined",
            Self::RefinementWeighed { .. } => "refinement-weighed",
            Self::RefinementsTaken { .. } => "refinements-taken",
            Self::RefinementWithdrawn { .. } => "refinement-withdrawn",
            Self::Annotated { .. } => "annotated",
            Self::Promised { .. } => "promised",
            Self::Proved { .. } => "proved",
            Self::Measured { .. } => "change-measured",
        }
    }
}

/// Reads numbers by number. Beside flattened fields, serde passes the keys of JSON on as text.
fn numbered<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Coverage, D::Error> {
    struct CoverageVisitor;

    impl<'de> Visitor<'de> for CoverageVisitor {
        type Value = Coverage;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("numbers by number")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Coverage, A::Error> {
            let mut coverage = Coverage::new();
            while let Some((number, percent)) = map.next_entry::<String, u32>()? {
                coverage.insert(number.parse().map_err(serde::de::Error::custom)?, percent);
            }
            Ok(coverage)
        }
    }

    deserializer.deserialize_map(CoverageVisitor)
}

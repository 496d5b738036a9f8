//! Progress of a task towards its objective, by stages.

use serde::{Deserialize, Serialize};

use std::collections::BTreeMap;

use crate::Commit;

/// How far each requirement is covered, in thousandths, by its number.
pub type Coverage = BTreeMap<u32, u32>;

/// A direction that led nowhere: it is not taken again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exclusion {
    /// The stage that was given up.
    pub stage: u32,
    /// The requirements it was for.
    pub focus: Vec<u32>,
    /// What was tried, in a line.
    pub direction: String,
    /// Why it was given up.
    pub reason: String,
    /// The work that was given up; it is kept under a ref.
    pub abandoned: Commit,
    /// Convergence before it.
    pub from: u32,
    /// And with it.
    pub to: u32,
}

words! {
    /// What a stage came to.
    pub enum StageProgress {
        /// The objective is met.
        Satisfied = "satisfied",
        /// It is closer: another stage.
        Closer = "closer",
        /// It is no closer: back to the stage before.
        NoCloser = "no-closer",
        /// It is no closer and there is nothing to go back to: mend it.
        Stuck = "stuck",
    }
}

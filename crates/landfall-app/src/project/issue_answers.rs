//! What a tracker last said about the issues of a project, kept so that a forge is not asked with every request.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use landfall_engine::model::issue::LandedIssue;

/// How a tracker shows an issue.
#[derive(Debug, Clone)]
pub(crate) enum IssueAnswer {
    Now(LandedIssue),
    Unread,
}

/// The issues that are there, by their numbers. What is not there, or has gone on, is left out.
pub(crate) type IssueAnswerMap = BTreeMap<u64, IssueAnswer>;

/// What a forge last said, and which issues it was asked about.
pub(crate) struct ForgeAnswer {
    pub asked: Instant,
    pub about: BTreeSet<u64>,
    /// None if it could not be asked, or has not answered yet.
    pub shown: Option<Arc<IssueAnswerMap>>,
}

/// The last answers, by the journal of the project.
#[derive(Default)]
pub(crate) struct IssueAnswers(Mutex<BTreeMap<PathBuf, ForgeAnswer>>);

impl IssueAnswers {
    pub fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, ForgeAnswer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The trackers there are: one line each.

use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use crate::github::{Github, GithubEndpoints, GithubRetryPolicy, GithubSetup, TokenSources};
use crate::local::LocalTracker;
use crate::tracker::{RepoName, Tracker, TrackerClock, TrackerError, TrackerResult};

/// What trackers are made of. Each takes what it needs.
pub struct TrackerSetup {
    /// Where a tracker of files keeps them.
    pub folder: PathBuf,
    /// Who signs what is written to files.
    pub author: String,
    /// The repository on a forge.
    pub repository: Option<RepoName>,
    /// Which forge; the public one if none is named.
    pub base: Option<GithubEndpoints>,
    /// Who we are to it.
    pub token: TokenSources,
    /// The proxy on the way, if there is one.
    pub proxy: Option<String>,
    /// What the size field of projects is called.
    pub size_field: Option<String>,
    /// How long to go on before whoever asked is told.
    pub patience: GithubRetryPolicy,
    /// The time.
    pub clock: Arc<dyn TrackerClock>,
}

/// A tracker in the registry.
pub struct TrackerEntry {
    /// What settings call it.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// Whether it is somewhere else: then it needs a repository there and a token.
    pub away: bool,
    make: fn(TrackerSetup) -> TrackerResult<Box<dyn Tracker>>,
}

/// All of them, in alphabetical order.
pub const TRACKERS: &[TrackerEntry] = &[
    TrackerEntry {
        name: "github",
        about: "Issues and pull requests of a GitHub repository.",
        away: true,
        make: open_github,
    },
    TrackerEntry {
        name: DEFAULT,
        about: "Issues as files in a folder: no account, no network.",
        away: false,
        make: open_local,
    },
];

/// The one that needs nothing to be set.
pub const DEFAULT: &str = "local";

impl TrackerEntry {
    /// A tracker of this kind.
    pub fn create_tracker(&self, setup: TrackerSetup) -> TrackerResult<Box<dyn Tracker>> {
        (self.make)(setup)
    }
}

fn open_github(setup: TrackerSetup) -> TrackerResult<Box<dyn Tracker>> {
    let Some(repository) = setup.repository else {
        let why = "no repository is named; set one such as `owner/name`".to_owned();
        return Err(TrackerError::Refused { what: "open the tracker `github`".to_owned(), why });
    };
    Ok(Box::new(Github::new(GithubSetup {
        base: setup.base.unwrap_or_else(GithubEndpoints::for_github_com),
        repository,
        token: setup.token,
        proxy: setup.proxy,
        size_field: setup.size_field,
        patience: setup.patience,
        clock: setup.clock,
    })?))
}

fn open_local(setup: TrackerSetup) -> TrackerResult<Box<dyn Tracker>> {
    Ok(Box::new(LocalTracker::new(&setup.folder, &setup.author, setup.clock)))
}

/// A name that is not in the registry.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown tracker `{given}`; known are {}", known.join(", "))]
pub struct UnknownTracker {
    /// What was asked for.
    pub given: String,
    /// What there is.
    pub known: Vec<&'static str>,
}

/// The tracker of this name.
pub fn find_tracker(name: &str) -> Result<&'static TrackerEntry, UnknownTracker> {
    TRACKERS.iter().find(|entry| entry.name == name).ok_or_else(|| UnknownTracker {
        given: crate::tracker::escape_beginning(name, 40),
        known: TRACKERS.iter().map(|entry| entry.name).collect(),
    })
}

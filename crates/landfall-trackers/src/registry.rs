//! The trackers there are: one line each.

use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use crate::github::{Base, Github, GithubSetup, Patience, TokenSources};
use crate::local::Local;
use crate::tracker::{Answer, Clock, RepoName, Tracker, TrackerError};

/// What trackers are made of. Each takes what it needs.
pub struct Setup {
    /// Where a tracker of files keeps them.
    pub folder: PathBuf,
    /// Who signs what is written to files.
    pub author: String,
    /// The repository on a forge.
    pub repository: Option<RepoName>,
    /// Which forge; the public one if none is named.
    pub base: Option<Base>,
    /// Who we are to it.
    pub token: TokenSources,
    /// The proxy on the way, if there is one.
    pub proxy: Option<String>,
    /// What the size field of projects is called.
    pub size_field: Option<String>,
    /// How long to go on before whoever asked is told.
    pub patience: Patience,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// A tracker in the registry.
pub struct Entry {
    /// What settings call it.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// Whether it is somewhere else: then it needs a repository there and a token.
    pub away: bool,
    make: fn(Setup) -> Answer<Box<dyn Tracker>>,
}

/// All of them, in alphabetical order.
pub const TRACKERS: &[Entry] = &[
    Entry {
        name: "github",
        about: "Issues and pull requests of a GitHub repository.",
        away: true,
        make: github,
    },
    Entry {
        name: DEFAULT,
        about: "Issues as files in a folder: no account, no network.",
        away: false,
        make: local,
    },
];

/// The one that needs nothing to be set.
pub const DEFAULT: &str = "local";

impl Entry {
    /// A tracker of this kind.
    pub fn tracker(&self, setup: Setup) -> Answer<Box<dyn Tracker>> {
        (self.make)(setup)
    }
}

fn github(setup: Setup) -> Answer<Box<dyn Tracker>> {
    let Some(repository) = setup.repository else {
        let why = "no repository is named; set one such as `owner/name`".to_owned();
        return Err(TrackerError::Refused { what: "open the tracker `github`".to_owned(), why });
    };
    Ok(Box::new(Github::new(GithubSetup {
        base: setup.base.unwrap_or_else(Base::public),
        repository,
        token: setup.token,
        proxy: setup.proxy,
        size_field: setup.size_field,
        patience: setup.patience,
        clock: setup.clock,
    })?))
}

fn local(setup: Setup) -> Answer<Box<dyn Tracker>> {
    Ok(Box::new(Local::new(&setup.folder, &setup.author, setup.clock)))
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
pub fn find(name: &str) -> Result<&'static Entry, UnknownTracker> {
    TRACKERS.iter().find(|entry| entry.name == name).ok_or_else(|| UnknownTracker {
        given: crate::tracker::shown(name, 40),
        known: TRACKERS.iter().map(|entry| entry.name).collect(),
    })
}

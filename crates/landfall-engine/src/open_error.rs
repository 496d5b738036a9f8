//! Why a project cannot be opened.

use std::path::PathBuf;

use landfall_host::git::{GitError, RepoProblem};
use landfall_host::lock::StateLockError;
use landfall_store::StoreError;
use thiserror::Error;

use crate::catalogue::CatalogueError;
use crate::flows;
use crate::prompts::PromptProblem;
use crate::settings::SettingsProblem;

/// Why a project could not be opened. Nothing was changed.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Not a repository work can land in.
    #[error(transparent)]
    Repo(#[from] RepoProblem),
    /// The repository has no commit yet.
    #[error("branch `{0}` has no commit yet")]
    Unborn(String),
    /// No branch is checked out and settings name none.
    #[error("no branch is checked out and `project.base` is not set")]
    Detached,
    /// Settings name a branch that is not there.
    #[error("the base branch `{0}` does not exist")]
    NoBranch(String),
    /// Settings could not be read.
    #[error(transparent)]
    Settings(#[from] SettingsProblem),
    /// A flow could not be read.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Flows(Vec<flows::FlowError>),
    /// The catalogue of recoveries could not be read.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// Settings name a flow that is not there.
    #[error("`project.flow` is `{name}`, which is not a flow; known: {known}")]
    NoFlow {
        /// The name.
        name: String,
        /// The flows there are.
        known: String,
    },
    /// A prompt could not be read.
    #[error(transparent)]
    Prompts(#[from] PromptProblem),
    /// There is no place for the state.
    #[error("no place for the state folder: neither LANDFALL_STATE nor XDG_STATE_HOME nor HOME is set")]
    NoHome,
    /// The settings are no file that can be read.
    #[error("cannot read `{}`: {source}", path.display())]
    SettingsFile {
        /// The file.
        path: PathBuf,
        /// Why; it is part of the sentence.
        source: std::io::Error,
    },
    /// The state folder cannot be used.
    #[error("use the state folder `{}`", path.display())]
    Folder {
        /// It.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The state folder is on a network file system, where the journal would not be safe.
    #[error("the state folder `{}` is on a network file system, where the journal would not be safe", .0.display())]
    NetworkFolder(PathBuf),
    /// Another engine holds it.
    #[error(transparent)]
    Lock(#[from] StateLockError),
    /// The journal is not the one that the state around it belongs to.
    #[error("the journal `{}` does not belong to the state folder it is in", .0.display())]
    ForeignJournal(PathBuf),
    /// The journal cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

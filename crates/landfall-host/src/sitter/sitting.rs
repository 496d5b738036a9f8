//! The words about a sitter: which one is meant, what became of it, what may be asked of it.

use super::ended::SitterEnd;
use crate::sandbox::SandboxLevel;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// One sitter, told apart from every other process that ever had its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitterProcess {
    /// Its process id.
    pub pid: i32,
    /// When it was started, in the kernel's ticks since boot.
    pub started: u64,
    /// The boot it belongs to.
    pub boot: String,
    /// The sandbox that its child runs in, or does not run at all; none if none was asked for.
    pub sandbox: Option<SandboxLevel>,
}

/// What there is in a sitter's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SitterState {
    /// Nothing was ever run here, and nothing is about to be: `start` may be called.
    Never,
    /// A sitter is alive and has not yet said who it is, or someone is starting one right now. Ask again in a moment.
    Starting,
    /// The sitter is at work.
    Running(SitterProcess),
    /// The run is over and no process of it is left.
    Ended(SitterEnd),
    /// A sitter ran here and is gone without a word: killed, or the machine went down. Call `sweep`.
    Vanished,
}

/// Why a folder could not be judged.
#[derive(Debug, Error)]
#[error("look for a sitter in {}", path.display())]
pub struct FindError {
    pub(super) path: PathBuf,
    #[source]
    pub(super) source: io::Error,
}

impl FindError {
    /// Another failure to read what is in the folder of a sitter.
    #[must_use]
    pub fn in_folder(dir: &Path, source: io::Error) -> Self {
        Self { path: dir.to_owned(), source }
    }

    /// Whether only this process is short of something: then the error says nothing about the sitter.
    #[must_use]
    pub fn is_shortage(&self) -> bool {
        is_shortage(&self.source)
    }
}

/// Whether a call failed for lack of descriptors or memory: it says nothing about what was looked at.
#[must_use]
pub fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM].iter().any(|shortage| errno == Some(shortage.raw_os_error()))
}

/// How to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMode {
    /// Ask the whole tree to end, wait for the run's grace, then kill what is left.
    Gently,
    /// Kill the whole tree at once.
    Now,
}

/// What became of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopResult {
    /// The sitter has heard it; the end will be on record. Asking again changes nothing, except from gently to now.
    Asked,
    /// That sitter no longer runs. Nothing was signalled.
    Gone,
}

/// Why a sitter could not be asked.
#[derive(Debug, Error)]
#[error("signal sitter {pid}")]
pub struct StopError {
    pub(super) pid: i32,
    #[source]
    pub(super) source: io::Error,
}

/// Why a sweep did not come to an end.
#[derive(Debug, Error)]
pub enum SweepError {
    /// An empty marker would match nothing or everything; it is a mistake.
    #[error("sweep needs a marker")]
    NoMarker,
    /// The machine's processes cannot be listed.
    #[error("list the machine's processes")]
    List(#[from] io::Error),
    /// Some are still there after many tries.
    #[error("{left} processes marked `{marker}` cannot be killed")]
    Left {
        /// The marker.
        marker: String,
        /// How many.
        left: usize,
    },
}

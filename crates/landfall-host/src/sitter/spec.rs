//! What a sitter is asked to run.

use crate::sandbox::Sandbox;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// One program to run and watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitterSpec {
    /// The program and its arguments. A name without a slash is looked up in `PATH` of `env`. Prompts do not belong
    /// here: everyone on the machine can read it.
    pub argv: Vec<OsString>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// The whole environment; nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// A file to read from; without one the child reads nothing.
    pub stdin: Option<PathBuf>,
    /// How long it may run before it is stopped, 0 for no limit. Time asleep does not count.
    pub deadline_ms: u64,
    /// How long it may go on after being asked to stop.
    pub grace_ms: u64,
    /// Bytes kept of each of its two outputs.
    pub out_cap: u64,
    /// The value of `LANDFALL_MARK` in the child's environment: how its processes are known should the sitter die.
    pub marker: String,
    /// What its tree may do to the machine; none is everything that its user may do.
    pub sandbox: Option<Sandbox>,
    /// A socket on which the program can speak to us; none if it has nothing to say.
    pub signal: Option<SignalSpec>,
}

/// Where a program can say something to us, and how it proves that it is meant to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalSpec {
    /// Where the socket shall be. It is made before the program starts and removed after its end. The path may be longer
    /// than a socket's address.
    pub socket: PathBuf,
    /// What every message must carry. Not empty.
    pub key: String,
}

/// Why no sitter was started.
#[derive(Debug, Error)]
pub enum StartError {
    /// The folder has, or had, a sitter. Never is a second one started in it.
    #[error("a sitter was already started in {}", dir.display())]
    AlreadyStarted {
        /// The folder.
        dir: PathBuf,
    },
    /// What is asked for cannot be run anywhere.
    #[error("{problem}")]
    Spec {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The folder could not be prepared.
    #[error("prepare {}", path.display())]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The sitter's own process did not come to be.
    #[error("start the sitter `{}`", exe.display())]
    Spawn {
        /// The program that was to be the sitter.
        exe: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

//! In place of sitters where they are not built yet: everything is refused, and says so. They need a child subreaper and
//! process handles, which only Linux has.

use super::sitting::{FindError, SitterProcess, SitterState, StopError, StopMode, StopResult, SweepError};
use super::spec::{SitterSpec, StartError};
use std::io;
use std::path::Path;
use std::time::Duration;

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "agents can only be run on Linux so far")
}

/// Refused.
pub fn start_sitter(exe: &Path, _dir: &Path, _spec: &SitterSpec) -> Result<SitterProcess, StartError> {
    Err(StartError::Spawn { exe: exe.to_owned(), source: unsupported() })
}

/// Refused, as an exit code.
pub fn run_sitter(_dir: &Path) -> u8 {
    69
}

/// Refused.
pub fn find_sitter(dir: &Path) -> Result<SitterState, FindError> {
    Err(FindError { path: dir.to_owned(), source: unsupported() })
}

/// Refused.
pub fn stop_sitter(sitting: &SitterProcess, _how: StopMode) -> Result<StopResult, StopError> {
    Err(StopError { pid: sitting.pid, source: unsupported() })
}

/// Refused.
pub fn sweep_processes(_marker: &str) -> Result<u32, SweepError> {
    Err(SweepError::List(unsupported()))
}

/// Refused.
pub fn abandon_sitter(_dir: &Path, marker: &str) -> Result<u32, SweepError> {
    sweep(marker)
}

/// Not known here.
pub fn started_of(_pid: i32) -> Option<u64> {
    None
}

/// There is no sitter here.
pub fn is_confined(_process: impl std::os::fd::AsFd) -> Option<bool> {
    Some(false)
}

/// Nothing is heard here.
pub const WORDS: [&str; 0] = [];

/// Leaves the limit as it is.
pub fn raise_file_limit() -> io::Result<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current.map_or(Ok(u64::MAX), Ok)
}

/// Never made here.
#[derive(Debug)]
pub struct UnsupportedSitterWatch(());

/// Wakes nobody.
#[derive(Clone, Debug)]
pub struct UnsupportedSitterWaker(());

impl UnsupportedSitterWaker {
    /// Does nothing: nobody waits.
    pub fn wake(&self) {}
}

impl UnsupportedSitterWatch {
    /// Refused.
    pub fn new() -> io::Result<UnsupportedSitterWatch> {
        Err(unsupported())
    }

    /// A waker of nobody.
    pub fn waker(&self) -> UnsupportedSitterWaker {
        UnsupportedSitterWaker(())
    }

    /// Refused.
    pub fn add(&mut self, _id: u64, _sitting: &SitterProcess) -> io::Result<()> {
        Err(unsupported())
    }

    /// Nothing is watched.
    pub fn remove(&mut self, _id: u64) {}

    /// None.
    pub fn len(&self) -> usize {
        0
    }

    /// Always.
    pub fn is_empty(&self) -> bool {
        true
    }

    /// Refused.
    pub fn wait(&mut self, _timeout: Option<Duration>) -> io::Result<Vec<u64>> {
        Err(unsupported())
    }
}

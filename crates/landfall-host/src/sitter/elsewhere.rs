//! In place of sitters where they are not built yet: everything is refused, and says so. They need a child subreaper and
//! process handles, which only Linux has.

use super::sitting::{FindError, Found, Sitting, Stop, StopError, Stopped, SweepError};
use super::spec::{Spec, StartError};
use std::io;
use std::path::Path;
use std::time::Duration;

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "agents can only be run on Linux so far")
}

/// Refused.
pub fn start(exe: &Path, _dir: &Path, _spec: &Spec) -> Result<Sitting, StartError> {
    Err(StartError::Spawn { exe: exe.to_owned(), source: unsupported() })
}

/// Refused, as an exit code.
pub fn sit(_dir: &Path) -> u8 {
    69
}

/// Refused.
pub fn find(dir: &Path) -> Result<Found, FindError> {
    Err(FindError { path: dir.to_owned(), source: unsupported() })
}

/// Refused.
pub fn stop(sitting: &Sitting, _how: Stop) -> Result<Stopped, StopError> {
    Err(StopError { pid: sitting.pid, source: unsupported() })
}

/// Refused.
pub fn sweep(_marker: &str) -> Result<u32, SweepError> {
    Err(SweepError::List(unsupported()))
}

/// Refused.
pub fn abandon(_dir: &Path, marker: &str) -> Result<u32, SweepError> {
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
pub struct Watch(());

/// Wakes nobody.
#[derive(Clone, Debug)]
pub struct Waker(());

impl Waker {
    /// Does nothing: nobody waits.
    pub fn wake(&self) {}
}

impl Watch {
    /// Refused.
    pub fn new() -> io::Result<Watch> {
        Err(unsupported())
    }

    /// A waker of nobody.
    pub fn waker(&self) -> Waker {
        Waker(())
    }

    /// Refused.
    pub fn add(&mut self, _id: u64, _sitting: &Sitting) -> io::Result<()> {
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

//! Asking a sitter to end its run.

use super::identity::Sitting;
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use std::io;
use thiserror::Error;

/// How to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Ask the whole tree to end, wait for the run's grace, then kill what is left.
    Gently,
    /// Kill the whole tree at once.
    Now,
}

/// What became of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The sitter has heard it; the end will be on record. Asking again changes nothing, except from gently to now.
    Asked,
    /// That sitter no longer runs. Nothing was signalled.
    Gone,
}

/// Why a sitter could not be asked.
#[derive(Debug, Error)]
#[error("signal sitter {pid}")]
pub struct StopError {
    pid: i32,
    #[source]
    source: io::Error,
}

/// Asks exactly this sitter to end its run, and nobody who has its process id by now.
pub fn stop(sitting: &Sitting, how: Stop) -> Result<Stopped, StopError> {
    let failed = |source| StopError { pid: sitting.pid, source };
    let Some(handle) = sitting.open().map_err(failed)? else { return Ok(Stopped::Gone) };
    let signal = match how {
        Stop::Gently => Signal::TERM,
        Stop::Now => Signal::USR1,
    };
    match pidfd_send_signal(handle, signal) {
        Ok(()) => Ok(Stopped::Asked),
        Err(Errno::SRCH) => Ok(Stopped::Gone),
        Err(error) => Err(failed(error.into())),
    }
}

//! Asking a sitter to end its run.

use super::sitting::{SitterProcess, StopError, StopMode, StopResult};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};

/// Asks exactly this sitter to end its run, and nobody who has its process id by now. One that its own child has stopped
/// is woken, so that it can hear it.
pub fn stop_sitter(sitting: &SitterProcess, how: StopMode) -> Result<StopResult, StopError> {
    let failed = |source| StopError { pid: sitting.pid, source };
    let Some(handle) = sitting.open_handle().map_err(failed)? else { return Ok(StopResult::Gone) };
    let signal = match how {
        StopMode::Gently => Signal::TERM,
        StopMode::Now => Signal::USR1,
    };
    match pidfd_send_signal(&handle, signal).and_then(|()| pidfd_send_signal(&handle, Signal::CONT)) {
        Ok(()) => Ok(StopResult::Asked),
        Err(Errno::SRCH) => Ok(StopResult::Gone),
        Err(error) => Err(failed(error.into())),
    }
}

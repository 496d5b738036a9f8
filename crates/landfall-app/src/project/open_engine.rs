//! Opens the engine of a project in this process, and waits for processes that hold it for a moment.

use std::path::Path;
use std::time::Duration;

use landfall_api::socket::PeerProcess;
use landfall_api::{Problem, ProblemCode};
use landfall_engine::host::lock::StateLockError;
use landfall_engine::host::sitter::{is_confined, raise_file_limit};
use landfall_engine::host::wait::retry_until;
use landfall_engine::{Engine, EngineOptions, OpenError};

use super::place::ProjectLocation;
use super::problems;

pub(crate) const PATIENCE: Duration = Duration::from_secs(5); // another command writes for milliseconds; an engine opens its door in seconds
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// Why an attempt to reach or to open the engine did not succeed.
pub(crate) enum HolderRefusal<E> {
    /// Another process holds the project, perhaps only for a moment.
    Held(E),
    /// It would not help to wait.
    Failed(E),
}

/// The one retry policy between a command and the engine: tries again while another process holds the project, at most for [`PATIENCE`],
/// and returns the last refusal then. A lock reports nothing when it is released, and a watch of its folder would be woken by our own
/// tries, so it pauses in between.
pub(crate) fn retry_while_held<T, E>(
    mut attempt: impl FnMut() -> Result<T, HolderRefusal<E>>,
) -> Result<T, E> {
    let mut refusal = None;
    let done = retry_until(PATIENCE, PAUSE, || match attempt() {
        Ok(done) => Some(Ok(done)),
        Err(HolderRefusal::Failed(error)) => Some(Err(error)),
        Err(HolderRefusal::Held(error)) => {
            refusal = Some(error);
            None
        }
    });
    done.unwrap_or_else(|| Err(refusal.expect("it is tried at least once, and that was refused")))
}

/// Whether the lock is held only for a moment: by a command that writes, or by a child of a process that was killed.
pub(crate) fn is_passing(error: &StateLockError) -> bool {
    match error {
        StateLockError::Held { holder, .. } => {
            !["landfall run", "landfall serve"].contains(&holder.command.as_str())
                || !Path::new(&format!("/proc/{}", holder.pid)).exists()
        }
        StateLockError::HeldByUnknown { .. } => true,
        _ => false,
    }
}

/// Opens the engine of a project, exclusively.
pub(crate) fn open(place: &ProjectLocation, command: &str) -> Result<Engine, OpenError> {
    let options = EngineOptions {
        program: own_executable(),
        command: command.to_owned(),
        environment: place.engine_environment(),
        base: place.base.clone(),
        lock: place.lock.clone(),
    };
    Engine::open(&place.root, &options)
}

/// Our own executable. If the file was replaced since we were started, `/proc` still leads to the running one.
pub(crate) fn own_executable() -> std::path::PathBuf {
    match std::env::current_exe() {
        Ok(path) if path.exists() => path,
        Ok(_) | Err(_) => "/proc/self/exe".into(),
    }
}

/// Opens the engine to drive, waiting a moment for a command that writes, but not for another run.
pub(crate) fn open_for_run(place: &ProjectLocation) -> Result<Engine, Problem> {
    let _ = raise_file_limit(); // with the limit as it is, fewer agents can be followed, and each failure is told
    retry_while_held(|| {
        open(place, "landfall run").map_err(|error| match &error {
            OpenError::Lock(lock) if is_passing(lock) => HolderRefusal::Held(problems::open(&error)),
            _ => HolderRefusal::Failed(problems::open(&error)),
        })
    })
}

/// Refuses a process of an agent or a check, and one that cannot be identified.
pub(crate) fn check_no_agent(peer: &PeerProcess) -> Result<(), Problem> {
    if is_confined(peer.handle()).unwrap_or(true) {
        let what = "an agent at work may not ask the engine";
        return Err(
            Problem::new(ProblemCode::NotNow, what).with_hint("`landfall signal` says where you stand")
        );
    }
    Ok(())
}

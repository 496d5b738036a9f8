//! Opens the engine of a project in this process, and waits for processes that hold it for a moment.

use std::path::Path;
use std::time::{Duration, Instant};

use landfall_api::socket::PeerProcess;
use landfall_api::{Problem, ProblemCode};
use landfall_engine::host::lock::LockError;
use landfall_engine::host::sitter::{is_confined, raise_file_limit};
use landfall_engine::{Engine, OpenError, Options};

use super::place::Place;
use super::problems;

pub(crate) const PATIENCE: Duration = Duration::from_secs(5); // another command writes for milliseconds; an engine opens its door in seconds
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// Waits a moment for the process that holds the project. A lock reports nothing, and a watch of its folder would be woken by our own
/// tries.
pub(crate) fn wait_for_holder() {
    std::thread::sleep(PAUSE);
}

/// Whether the lock is held only for a moment: by a command that writes, or by a child of a process that was killed.
pub(crate) fn is_passing(error: &LockError) -> bool {
    match error {
        LockError::Held { holder, .. } => {
            !["landfall run", "landfall serve"].contains(&holder.command.as_str())
                || !Path::new(&format!("/proc/{}", holder.pid)).exists()
        }
        LockError::HeldByUnknown { .. } => true,
        _ => false,
    }
}

/// Opens the engine of a project, exclusively.
pub(crate) fn open(place: &Place, command: &str) -> Result<Engine, OpenError> {
    let options = Options {
        program: program(),
        command: command.to_owned(),
        environment: place.environment(),
        base: place.base.clone(),
        lock: place.lock.clone(),
    };
    Engine::open(&place.root, &options)
}

/// Our own executable. If the file was replaced since we were started, `/proc` still leads to the running one.
pub(crate) fn program() -> std::path::PathBuf {
    match std::env::current_exe() {
        Ok(path) if path.exists() => path,
        Ok(_) | Err(_) => "/proc/self/exe".into(),
    }
}

/// Opens the engine to drive, waiting a moment for a command that writes, but not for another run.
pub(crate) fn open_to_drive(place: &Place) -> Result<Engine, Problem> {
    let _ = raise_file_limit(); // with the limit as it is, fewer agents can be followed, and each failure is told
    let deadline = Instant::now() + PATIENCE;
    loop {
        match open(place, "landfall run") {
            Ok(engine) => return Ok(engine),
            Err(error) => {
                let passing = matches!(&error, OpenError::Lock(error) if is_passing(error));
                if !passing || Instant::now() >= deadline {
                    return Err(problems::open(&error));
                }
            }
        }
        wait_for_holder();
    }
}

/// Refuses a process of an agent or a check, and one that cannot be identified.
pub(crate) fn check_no_agent(peer: &PeerProcess) -> Result<(), Problem> {
    if is_confined(peer.handle()).unwrap_or(true) {
        let what = "an agent at work may not ask the engine";
        return Err(Problem::new(ProblemCode::NotNow, what).hint("`landfall signal` says where you stand"));
    }
    Ok(())
}

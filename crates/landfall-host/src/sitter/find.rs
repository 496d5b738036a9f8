//! What became of a sitter, told from its folder: how an engine that crashed finds its agents again.

use super::ended::SitterEnd;
use super::files;
use super::identity;
use super::sitting::{FindError, SitterProcess, SitterState};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::wait::FolderWatch;

/// Says what became of the sitter of `dir`.
///
/// After a power cut, files that were never synced may be missing or empty. A damaged `sitter.json` or `exit.json` counts
/// as `Vanished`; a folder that lost both looks like `Never`. Whoever must tell those two apart has it in the journal.
pub fn find_sitter(dir: &Path) -> Result<SitterState, FindError> {
    // What is in motion is looked at again: a sitter names itself within a millisecond, and a `start` that is about to be
    // refused holds the lock for less.
    const SPAN: Duration = Duration::from_millis(20);
    if let SitterObservation::AtRest(found) = observe_folder(dir)? {
        return Ok(found);
    }
    let deadline = Instant::now() + SPAN;
    let watch = FolderWatch::new(dir);
    loop {
        // Looked at once more after the watch began: what changed before is not reported.
        let left = match observe_folder(dir)? {
            SitterObservation::AtRest(found) => return Ok(found),
            SitterObservation::InMotion(found) => match deadline.saturating_duration_since(Instant::now()) {
                Duration::ZERO => return Ok(found),
                left => left,
            },
        };
        watch.wait(left);
    }
}

enum SitterObservation {
    AtRest(SitterState),
    InMotion(SitterState),
}

fn observe_folder(dir: &Path) -> Result<SitterObservation, FindError> {
    if let Some(ended) = read_end(dir)? {
        wait_for_rest(dir)?;
        return Ok(SitterObservation::AtRest(SitterState::Ended(ended)));
    }
    if is_locked(dir)? {
        return Ok(match find_identity(dir)? {
            SitterIdentity::Known(sitting) if is_running(dir, &sitting)? => {
                SitterObservation::AtRest(SitterState::Running(sitting))
            }
            // Somebody holds the lock whom we cannot see. If that lasts, it is a sitter in another process namespace.
            SitterIdentity::Known(sitting) => SitterObservation::InMotion(SitterState::Running(sitting)),
            SitterIdentity::None | SitterIdentity::Damaged => {
                SitterObservation::InMotion(SitterState::Starting)
            }
        });
    }
    // Nobody is alive in here any more, so the files no longer change. The end is looked for again, as the sitter may
    // have come to it while we were at the lock.
    Ok(SitterObservation::AtRest(match (read_end(dir)?, find_identity(dir)?) {
        (Some(ended), _) => {
            wait_for_rest(dir)?;
            SitterState::Ended(ended)
        }
        (None, SitterIdentity::None) => SitterState::Never,
        (None, SitterIdentity::Damaged) => SitterState::Vanished,
        (None, SitterIdentity::Known(sitting)) => {
            is_running(dir, &sitting)?; // it does not; but if it was our child, this collects it
            SitterState::Vanished
        }
    }))
}

fn is_running(dir: &Path, sitting: &SitterProcess) -> Result<bool, FindError> {
    match sitting.open_handle() {
        Ok(handle) => Ok(handle.is_some()),
        Err(source) => Err(FindError { path: dir.to_owned(), source }),
    }
}

/// Whether anybody holds the folder's lock. The look itself takes it for an instant, shared, so two looks do not
/// disturb each other; `start` allows for it.
pub(super) fn is_locked(dir: &Path) -> Result<bool, FindError> {
    let path = dir.join(files::LOCK);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(source) => return Err(FindError { path, source }),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(source)) => Err(FindError { path, source }),
    }
}

pub(super) enum SitterIdentity {
    None,
    Damaged,
    Known(SitterProcess),
}

pub(super) fn find_identity(dir: &Path) -> Result<SitterIdentity, FindError> {
    Ok(match read_if_there(dir.join(files::SITTER))? {
        None => SitterIdentity::None,
        Some(text) => match files::read_identity(&text) {
            Ok(sitting) => SitterIdentity::Known(sitting),
            Err(_) => SitterIdentity::Damaged,
        },
    })
}

fn read_end(dir: &Path) -> Result<Option<SitterEnd>, FindError> {
    files::ended_in(dir).map_err(|source| FindError { path: dir.join(files::EXIT), source })
}

/// A sitter that has written its last file ends within microseconds. Waiting for it means that an ended folder is at
/// rest, may be removed, and leaves no zombie behind if the sitter was our child.
fn wait_for_rest(dir: &Path) -> Result<(), FindError> {
    const REST_MS: i64 = 200; // bounded: a machine under load may not run it at once, and that does no harm
    let SitterIdentity::Known(sitting) = find_identity(dir)? else { return Ok(()) };
    let wait = || -> io::Result<()> {
        if let Some(handle) = sitting.open_handle()?
            && identity::wait_ended(&handle, REST_MS)?
        {
            identity::reap_child(&handle);
        }
        Ok(())
    };
    wait().map_err(|source| FindError { path: dir.to_owned(), source })
}

fn read_if_there(path: PathBuf) -> Result<Option<Vec<u8>>, FindError> {
    match fs::read(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FindError { path, source }),
    }
}

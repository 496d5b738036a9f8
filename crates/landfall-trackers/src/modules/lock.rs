//! `.lock`: one at a time in a module folder, together with the tools of others that keep the same rule.
//!
//! Whoever makes the file holds it. A holder that lives is respected; a dead one's file is moved to `.lock.stale.<pid>`
//! and the lock is tried again. Two of us never move at once: the folder itself is locked for that moment, and the kernel
//! gives it back when one of us dies.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use landfall_model::Timestamp;
use rustix::fs::FlockOperation;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::plain_file::{LinkPolicy, read_plain, read_plain_text};

/// The name of the lock.
pub const FILE: &str = ".lock";

/// A lock that cannot be read may be one that is just being written; older than this it is a leftover.
const WRITING_MS: i64 = 10_000;

/// Who holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleLockHolder {
    /// The session.
    #[serde(default)]
    pub session: String,
    /// Its process.
    pub pid: u32,
    /// Since then.
    #[serde(default)]
    pub timestamp: String,
}

/// Why the lock was not given.
#[derive(Debug, Error)]
pub enum ModuleLockError {
    /// Somebody who lives holds it.
    #[error("the folder is locked by session `{}` (process {}, since {})", .0.session, .0.pid, .0.timestamp)]
    Held(ModuleLockHolder),
    /// Somebody holds it and did not say who.
    #[error("the folder is locked by somebody who is just beginning")]
    Unknown,
    /// The machine said no.
    #[error("lock `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// The lock, held. Dropping it gives it back.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    text: String,
}

impl Lock {
    /// Takes the lock of a folder, at once or not at all.
    ///
    /// # Errors
    /// When somebody who lives holds it, or the machine refuses.
    pub fn take(folder: &Path, session: &str, now: Timestamp) -> Result<Self, ModuleLockError> {
        Self::acquire(folder, session, now, |_| false)
    }

    /// The same, where what the same session holds is taken from it: whoever cancels does not wait for themselves.
    ///
    /// # Errors
    /// When another session that lives holds it, or the machine refuses.
    pub fn take_over(folder: &Path, session: &str, now: Timestamp) -> Result<Self, ModuleLockError> {
        Self::acquire(folder, session, now, |holder| !session.is_empty() && holder.session == session)
    }

    fn acquire(
        folder: &Path,
        session: &str,
        now: Timestamp,
        is_ours: impl Fn(&ModuleLockHolder) -> bool,
    ) -> Result<Self, ModuleLockError> {
        let path = folder.join(FILE);
        let io = |source| ModuleLockError::Io { path: path.clone(), source };
        let door = File::open(folder).map_err(io)?;
        lock_door(&door).map_err(io)?;
        let holder = ModuleLockHolder {
            session: session.to_owned(),
            pid: std::process::id(),
            timestamp: super::text::format_timestamp(now),
        };
        let text = serde_json::to_string(&holder).expect("a holder can be written as JSON") + "\n";
        const TRIES_MAX: usize = 3; // a tool that does not lock the folder may come between
        for _ in 0..TRIES_MAX {
            match create_lock_file(&path, &text) {
                Ok(()) => {
                    remove_stale(folder);
                    return Ok(Self { path, text });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io(error)),
            }
            match read_lock_state(&path, now).map_err(io)? {
                LockState::Gone => {}
                LockState::Alive { holder, text } if is_ours(&holder) => {
                    set_aside(&path, &text, holder.pid).map_err(io)?;
                }
                LockState::Alive { holder, .. } => return Err(ModuleLockError::Held(holder)),
                LockState::Beginning => return Err(ModuleLockError::Unknown),
                LockState::Dead { text, pid } => set_aside(&path, &text, pid).map_err(io)?,
            }
        }
        Err(ModuleLockError::Unknown)
    }

    /// Who holds the lock of a folder, if somebody who lives does.
    #[must_use]
    pub fn find_holder(folder: &Path, now: Timestamp) -> Option<ModuleLockHolder> {
        match read_lock_state(&folder.join(FILE), now) {
            Ok(LockState::Alive { holder, .. }) => Some(holder),
            Ok(LockState::Gone | LockState::Beginning | LockState::Dead { .. }) | Err(_) => None,
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Only our own: somebody may have thought us dead.
        if read_plain_text(&self.path, LinkPolicy::Refuse).is_ok_and(|text| text == self.text) {
            let _ = fs::remove_file(&self.path); // whoever comes next sees that we are dead
        }
    }
}

/// Waits until no other of us is at the door; that takes a few file operations, not longer.
fn lock_door(door: &File) -> io::Result<()> {
    const TRIES_MAX: usize = 200;
    const PAUSE: Duration = Duration::from_millis(5); // one second in all
    for _ in 0..TRIES_MAX {
        match rustix::fs::flock(door, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
            locked => return locked.map_err(Into::into),
        }
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, "somebody keeps the folder itself locked"))
}

/// Makes the file with all its words at once, so that nobody ever reads half a lock of ours.
fn create_lock_file(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_file_name(format!("{FILE}.{}.tmp", std::process::id()));
    fs::write(&beside, text)?;
    let linked = fs::hard_link(&beside, path);
    fs::remove_file(&beside)?;
    match linked {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied) =>
        {
            let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        }
        linked => linked,
    }
}

enum LockState {
    Gone,
    Alive { holder: ModuleLockHolder, text: String },
    Beginning,
    Dead { text: String, pid: u32 },
}

fn read_lock_state(path: &Path, now: Timestamp) -> io::Result<LockState> {
    let text = match read_plain_text(path, LinkPolicy::Refuse) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LockState::Gone),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => String::new(),
        Err(error) => return Err(error),
    };
    let Ok(holder) = serde_json::from_str::<ModuleLockHolder>(&text) else {
        let made = fs::symlink_metadata(path)?.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let made = i64::try_from(made.as_millis()).unwrap_or(i64::MAX);
        return Ok(match now.0.saturating_sub(made) > WRITING_MS {
            true => LockState::Dead { text, pid: 0 },
            false => LockState::Beginning,
        });
    };
    Ok(match is_alive(holder.pid) {
        true => LockState::Alive { holder, text },
        false => LockState::Dead { text, pid: holder.pid },
    })
}

/// Moves a dead holder's lock away. If it turns out to be another's by then, it is put back.
fn set_aside(path: &Path, text: &str, pid: u32) -> io::Result<()> {
    let aside = path.with_file_name(format!("{FILE}.stale.{pid}"));
    match fs::rename(path, &aside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        moved => moved?,
    }
    if read_plain(&aside, LinkPolicy::Refuse)? != text.as_bytes() {
        let _ = fs::hard_link(&aside, path); // a third may hold it by now; then the one we moved has lost it either way
        fs::remove_file(&aside)?;
    }
    Ok(())
}

fn remove_stale(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(".lock.stale.")) {
            let _ = fs::remove_file(entry.path()); // left for the next one to try
        }
    }
}

/// Whether the process is there. One that we may not ask is.
pub(super) fn is_alive(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    match rustix::process::test_kill_process(pid) {
        Ok(()) => true,
        Err(errno) => errno != rustix::io::Errno::SRCH,
    }
}

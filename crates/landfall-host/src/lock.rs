//! One engine per state folder: an exclusive lock that names its holder and dies with it.

use crate::disk;
use crate::wait::FolderWatch;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;

const NAME: &str = "engine.lock";
const FORMAT: u32 = 1;

/// Who holds, or wants, the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// Its process id.
    pub pid: i32,
    /// When that process was started, in the kernel's ticks since boot: tells it from a later one with the same id.
    pub started: u64,
    /// The machine it runs on.
    pub host: String,
    /// What was called, for people to recognise: `landfall run`.
    pub command: String,
    /// When it took the lock, in milliseconds since 1970.
    pub since_ms: i64,
}

impl LockHolder {
    /// This process, doing `command` since `since_ms`.
    pub fn this_process(command: &str, since_ms: i64) -> LockHolder {
        let pid = i32::try_from(std::process::id()).expect("process ids are positive and small");
        LockHolder {
            pid,
            started: crate::sitter::started_of(pid).unwrap_or(0), // only shown to people; the lock itself is the fence
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            command: command.to_owned(),
            since_ms,
        }
    }
}

/// Leave to be the one engine of a state folder; given back when dropped or when the process dies.
#[derive(Debug)]
pub struct StateLock {
    // The kernel's lock is tied to this open file. It is close-on-exec, so no child carries it on.
    file: File,
    path: PathBuf,
}

/// Why the lock was not had.
#[derive(Debug, Error)]
pub enum StateLockError {
    /// Another process has it.
    #[error("{} is in use by process {} (`{}`) on {}", path.display(), holder.pid, holder.command, holder.host)]
    Held {
        /// The lock file.
        path: PathBuf,
        /// Who has it.
        holder: LockHolder,
    },
    /// Another process has it, and has not said who it is.
    #[error("{} is in use by another process", path.display())]
    HeldByUnknown {
        /// The lock file.
        path: PathBuf,
    },
    /// The state folder is not there.
    #[error("the state folder {} is missing", folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
    },
    /// The state folder cannot be written.
    #[error("the state folder {} cannot be written", folder.display())]
    ReadOnly {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Anything else the system said.
    #[error("lock {}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl StateLock {
    /// Takes the lock of the state folder `dir` and writes `about` into it, or says who has it. Never waits for a holder.
    pub fn acquire(dir: &Path, about: &LockHolder) -> Result<StateLock, StateLockError> {
        let path = dir.join(NAME);
        let io = |source| StateLockError::Io { path: path.clone(), source };
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let mut file = file.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                StateLockError::Missing { folder: dir.to_owned() }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                StateLockError::ReadOnly { folder: dir.to_owned(), source }
            }
            _ => StateLockError::Io { path: path.clone(), source },
        })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(read_holder(&path, &mut file)),
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        write_holder(&mut file, about).map_err(io)?;
        Ok(StateLock { file, path })
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for StateLock {
    fn drop(&mut self) {
        // Emptied first, so that nobody reads the name of a holder that has left; the file stays, as removing a lock
        // file lets two processes hold locks on two files of one name.
        let _ = self.file.set_len(0); // a stale name is only cosmetic
        let _ = self.file.unlock(); // closing does it too
    }
}

#[derive(Serialize, Deserialize)]
struct HolderFile {
    v: u32,
    pid: i32,
    started: u64,
    #[serde(default)]
    boot: String,
    host: String,
    command: String,
    since_ms: i64,
}

fn write_holder(file: &mut File, about: &LockHolder) -> io::Result<()> {
    let text = serde_json::to_vec(&HolderFile {
        v: FORMAT,
        pid: about.pid,
        started: about.started,
        boot: disk::boot_id().unwrap_or_default(),
        host: about.host.clone(),
        command: about.command.clone(),
        since_ms: about.since_ms,
    })
    .expect("strings and numbers only");
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&text)
}

/// The holder writes its name just after it got the lock, so a newcomer may be a moment too early to read it.
fn read_holder(path: &Path, file: &mut File) -> StateLockError {
    const SPAN: Duration = Duration::from_millis(100);
    let deadline = Instant::now() + SPAN;
    let watch = FolderWatch::new(path.parent().unwrap_or(path));
    loop {
        let mut text = Vec::new();
        let read = file.rewind().and_then(|()| file.read_to_end(&mut text));
        if read.is_ok()
            && let Ok(said) = serde_json::from_slice::<HolderFile>(&text)
        {
            let HolderFile { v: _, pid, started, boot: _, host, command, since_ms } = said;
            return StateLockError::Held {
                path: path.to_owned(),
                holder: LockHolder { pid, started, host, command, since_ms },
            };
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return StateLockError::HeldByUnknown { path: path.to_owned() };
        }
        watch.wait(left);
    }
}

//! A folder in a workspace in which an agent and the engine leave files for each other.
//!
//! The agent may have put anything there: so no link is followed, no pipe is waited for, and what we write takes the place of
//! what is there rather than going through it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::files;
use super::include::{make_folders, write_own_exclude};
use super::workspace::Workspace;

/// The folder, open.
#[derive(Debug)]
pub struct ExchangeFolder {
    folder: OwnedFd,
}

impl ExchangeFolder {
    /// Opens a folder below `root`, by its parts.
    pub fn open(root: &Path, path: &str) -> std::io::Result<Self> {
        let root = files::open_folder(root)?;
        let parts: Vec<&[u8]> = path.split('/').map(str::as_bytes).collect();
        Ok(Self { folder: files::open_folder_beneath(root.as_fd(), &parts)? })
    }

    /// The same, making what is missing.
    pub fn open_or_create(root: &Path, path: &str) -> std::io::Result<Self> {
        let root = files::open_folder(root)?;
        let parts: Vec<&[u8]> = path.split('/').map(str::as_bytes).collect();
        Ok(Self { folder: make_folders(root.as_fd(), &parts)? })
    }

    /// What a file in it holds, up to one byte more than `max`; none if there is no such file.
    pub fn read(&self, name: &str, max: usize) -> std::io::Result<Option<Vec<u8>>> {
        let file = match files::open_file_beneath(self.folder.as_fd(), name.as_bytes()) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(max as u64 + 1).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Puts a file there, whole or not at all.
    pub fn write(&self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        let draft = format!("{name}.new-{}", std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.remove(&draft)?; // of a process of this number that was cut short
        let written = (|| {
            let file = rustix::fs::openat(&self.folder, &draft, flags, Mode::from_raw_mode(0o644))?;
            File::from(file).write_all(bytes)?;
            Ok(rustix::fs::renameat(&self.folder, &draft, &self.folder, name)?)
        })();
        if written.is_err() {
            let _ = self.remove(&draft); // the error that counts is the first one
        }
        written
    }

    /// Takes a file away, if it is there.
    pub fn remove(&self, name: &str) -> std::io::Result<()> {
        match rustix::fs::unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Workspace {
    /// Keeps files out of the work: what these lines of an exclude file match is neither committed by the agent's git nor
    /// brought in by us.
    pub fn set_aside(&self, lines: &[&str]) -> std::io::Result<()> {
        let path = self.room().dir().join("exclude");
        let mut exclude = std::fs::read(&path)?;
        let mut more = false;
        for line in lines {
            if !exclude.split(|byte| *byte == b'\n').any(|known| known == line.as_bytes()) {
                exclude.extend(line.as_bytes());
                exclude.push(b'\n');
                more = true;
            }
        }
        if more {
            files::write_whole(&path, &exclude)?;
        }
        write_own_exclude(files::open_folder(self.path())?.as_fd(), &exclude)
    }
}

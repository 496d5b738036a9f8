//! Files that lie in a workspace beside the work: written for an agent and taken back from it, never part of a commit.
//!
//! An agent owns the folder they lie in. So every step goes through folder descriptors and follows no link: what an agent
//! put in the way is an error, not a way out.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::Workspace;
use super::files;

/// The most files that are taken back.
const FILES_MAX: usize = 64;
/// The most bytes of one.
const BYTES_MAX: usize = 256 * 1024;

impl Workspace {
    /// Writes files into a folder of the workspace, which is made where it is missing. Others in it stay.
    ///
    /// # Errors
    /// When something else stands where the folder or a file should be.
    pub fn write_workspace_files(&self, folder: &[&str], all: &[(String, Vec<u8>)]) -> std::io::Result<()> {
        let place = open_workspace_folder(self, folder, true)?;
        for (name, bytes) in all {
            let name = check_plain_name(name)?;
            let part = format!(".{name}.part");
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(0o644);
            let mut file = File::from(rustix::fs::openat(&place, part.as_str(), flags, mode)?);
            if !file.metadata()?.is_file() {
                return Err(std::io::Error::other(format!("`{part}` is not a regular file")));
            }
            file.write_all(bytes)?;
            rustix::fs::renameat(&place, part.as_str(), &place, name)?;
        }
        Ok(())
    }

    /// Reads the files of a folder of the workspace, by name: plain ones of moderate size. None of it is trusted.
    ///
    /// # Errors
    /// When the folder cannot be read. One that is not there is empty.
    pub fn read_workspace_files(&self, folder: &[&str]) -> std::io::Result<Vec<(String, Vec<u8>)>> {
        let place = match open_workspace_folder(self, folder, false) {
            Ok(place) => place,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names: Vec<String> = files::list_entries(place.as_fd())?
            .into_iter()
            .filter(|(_, kind)| *kind == FileType::RegularFile)
            .filter_map(|(name, _)| name.into_string().ok())
            .filter(|name| check_plain_name(name).is_ok() && !name.ends_with(".part"))
            .collect();
        names.sort();
        names.truncate(FILES_MAX);
        let read = |name: String| {
            let bytes = files::read_beneath(place.as_fd(), name.as_bytes(), BYTES_MAX).ok()?;
            Some((name, bytes))
        };
        Ok(names.into_iter().filter_map(read).collect())
    }
}

fn open_workspace_folder(workspace: &Workspace, folder: &[&str], make: bool) -> std::io::Result<OwnedFd> {
    let mut place = files::open_folder(workspace.path())?;
    for part in folder {
        let part = check_plain_name(part)?;
        if make {
            match rustix::fs::mkdirat(&place, part, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        place = rustix::fs::openat(&place, part, flags, Mode::empty())?;
    }
    Ok(place)
}

fn check_plain_name(name: &str) -> std::io::Result<&str> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let odd = name.is_empty() || name.len() > 100 || name == "." || name == ".." || !name.chars().all(legal);
    if odd {
        Err(std::io::Error::other(format!("`{}` is no plain name", name.escape_debug())))
    } else {
        Ok(name)
    }
}

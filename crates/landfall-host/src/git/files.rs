//! File work that may meet what an agent left behind: links, pipes, closed folders, endless depth.
//!
//! Everything goes through folder descriptors and never follows a link. A path with a trailing slash is
//! the known trap (`x/link/` empties the target of the link), so paths are never joined from text here.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Folders nested deeper than this are moved up before they are emptied, so that neither the stack nor
/// the number of open files depends on what an agent built.
const DEPTH_MAX: usize = 100;

/// Opens a folder itself: a link in its place is refused.
pub(crate) fn open_folder(path: &Path) -> std::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(without_trailing_slash(path), flags, Mode::empty())?)
}

fn without_trailing_slash(path: &Path) -> PathBuf {
    path.components().collect()
}

fn open_folder_at(folder: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::empty())
}

/// Opens a folder below another, part by part, following no link.
pub(crate) fn open_folder_beneath(folder: BorrowedFd<'_>, parts: &[&[u8]]) -> std::io::Result<OwnedFd> {
    let mut open = folder.try_clone_to_owned()?;
    for part in parts {
        open = open_folder_at(open.as_fd(), &c_name(part)?)?;
    }
    Ok(open)
}

/// Reads a regular file below a folder, following no link and waiting for no pipe; at most `max` bytes.
pub(crate) fn read_beneath(folder: BorrowedFd<'_>, path: &[u8], max: usize) -> std::io::Result<Vec<u8>> {
    let mut file = open_file_beneath(folder, path)?;
    let size = file.metadata()?.len();
    if size > max as u64 {
        return Err(std::io::Error::other(format!("the file is larger than {max} bytes")));
    }
    let mut bytes = Vec::with_capacity(size as usize);
    (&mut file).take(max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > max {
        return Err(std::io::Error::other("the file grew while it was read"));
    }
    Ok(bytes)
}

/// Opens a regular file below a folder, following no link and waiting for no pipe.
pub(crate) fn open_file_beneath(folder: BorrowedFd<'_>, path: &[u8]) -> std::io::Result<File> {
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    let (name, folders) = parts.split_last().expect("split gives at least one part");
    let parent = open_folder_beneath(folder, folders)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::openat(&parent, c_name(name)?, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    Ok(file)
}

pub(crate) fn c_name(part: &[u8]) -> std::io::Result<CString> {
    if part.is_empty() || part == b"." || part == b".." || part.contains(&b'/') {
        return Err(std::io::Error::other("not a plain name"));
    }
    CString::new(part).map_err(|_| std::io::Error::other("a name with a NUL"))
}

/// The entries of a folder, without `.` and `..`.
pub(crate) fn list_entries(folder: BorrowedFd<'_>) -> std::io::Result<Vec<(CString, FileType)>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let mut kind = entry.file_type();
        if kind == FileType::Unknown {
            let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            kind = FileType::from_raw_mode(stat.st_mode);
        }
        found.push((name.to_owned(), kind));
    }
    Ok(found)
}

/// Removes a file, link or whole folder; gone already is fine. Nothing outside is touched, ever.
pub(crate) fn remove_path(path: &Path) -> std::io::Result<()> {
    let path = without_trailing_slash(path);
    let Some(name) = path.file_name() else {
        return Err(std::io::Error::other("this path has no last part"));
    };
    let parent = match open_folder(path.parent().unwrap_or(Path::new("/"))) {
        Ok(parent) => parent,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let name = c_name(name.as_bytes())?;
    match rustix::fs::statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => remove_at(parent.as_fd(), &name, FileType::from_raw_mode(stat.st_mode)),
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Removes the file at a path below `top`. What is reached only through a link is left alone.
pub(crate) fn remove_beneath(top: &Path, path: &[u8]) -> std::io::Result<()> {
    let mut parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    let name = c_name(parts.pop().unwrap_or_default())?;
    let top = open_folder(top)?;
    match open_folder_beneath(top.as_fd(), &parts) {
        Ok(folder) => unlink_if_present(folder.as_fd(), &name),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP)) => {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Like [`remove`], for an entry of an open folder.
pub(crate) fn remove_at(folder: BorrowedFd<'_>, name: &CStr, kind: FileType) -> std::io::Result<()> {
    if kind != FileType::Directory {
        return unlink_if_present(folder, name);
    }
    let top = open_to_change(folder, name)?;
    let mut hoisted = 0;
    // What is too deep is moved to the top and removed in the next round; each round shortens the rest.
    loop {
        empty_folder(top.as_fd(), top.as_fd(), 0, &mut hoisted)?;
        if list_entries(top.as_fd())?.is_empty() {
            break;
        }
    }
    match rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn empty_folder(
    top: BorrowedFd<'_>,
    folder: BorrowedFd<'_>,
    depth: usize,
    hoisted: &mut u64,
) -> std::io::Result<()> {
    for (name, kind) in list_entries(folder)? {
        if kind != FileType::Directory {
            unlink_if_present(folder, &name)?;
            continue;
        }
        if depth >= DEPTH_MAX {
            *hoisted += 1;
            let to = CString::new(format!(".landfall-hoisted-{hoisted}")).expect("no NUL in it");
            rustix::fs::renameat(folder, &name, top, &to)?;
            continue;
        }
        let inner = open_to_change(folder, &name)?;
        empty_folder(top, inner.as_fd(), depth + 1, hoisted)?;
        drop(inner);
        match rustix::fs::unlinkat(folder, &name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Opens a folder in which something will be removed and makes it writable: agents leave read-only folders behind.
pub(crate) fn open_to_change(folder: BorrowedFd<'_>, name: &CStr) -> std::io::Result<OwnedFd> {
    let open = match open_folder_at(folder, name) {
        Err(Errno::ACCESS) => {
            // Unreadable to us: open it by name only, then give ourselves the rights through /proc.
            make_accessible(folder, name)?;
            open_folder_at(folder, name)?
        }
        other => other?,
    };
    let stat = rustix::fs::fstat(&open)?;
    if stat.st_mode & 0o700 != 0o700 {
        rustix::fs::fchmod(&open, Mode::from_raw_mode((stat.st_mode & 0o7777) | 0o700))?;
    }
    Ok(open)
}

fn make_accessible(folder: BorrowedFd<'_>, name: &CStr) -> std::io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    let through = format!("/proc/self/fd/{}", handle.as_raw_fd());
    rustix::fs::chmod(through, Mode::from_raw_mode(0o700))?;
    Ok(())
}

fn unlink_if_present(folder: BorrowedFd<'_>, name: &CStr) -> std::io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Gives ourselves the right to look into every folder below; git skips the ones it cannot read.
pub(crate) fn open_up(folder: BorrowedFd<'_>, depth: usize) -> std::io::Result<()> {
    for (name, kind) in list_entries(folder)? {
        if kind == FileType::Directory && depth < DEPTH_MAX {
            open_up(open_to_change(folder, &name)?.as_fd(), depth + 1)?;
        }
    }
    Ok(())
}

/// Removes pipes, sockets and devices that stand where git wants to read a settings file and would wait.
pub(crate) fn remove_special_files(folder: BorrowedFd<'_>, depth: usize) -> std::io::Result<u32> {
    let mut removed = 0;
    for (name, kind) in list_entries(folder)? {
        match kind {
            FileType::Directory if depth < DEPTH_MAX => {
                removed += remove_special_files(open_folder_at(folder, &name)?.as_fd(), depth + 1)?;
            }
            FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice => {
                unlink_if_present(folder, &name)?;
                removed += 1;
            }
            _ => {}
        }
    }
    Ok(removed)
}

/// Writes a file whole or not at all, and makes it survive a power cut.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let parent = path.parent().expect("a file has a folder");
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".new-{}-{:?}", std::process::id(), std::thread::current().id()));
    let result = (|| {
        let mut file = File::create(&draft)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&draft, path)?;
        sync_folder(parent)
    })();
    if result.is_err() {
        let _ = std::fs::remove_file(&draft); // the error that counts is the first one
    }
    result
}

/// Makes the names in a folder survive a power cut.
pub(crate) fn sync_folder(path: &Path) -> std::io::Result<()> {
    Ok(rustix::fs::fsync(&open_folder(path)?)?)
}

/// Whether something is there, link or not.
pub(crate) fn path_exists(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

/// Whether a real folder is there: a link to one does not count.
pub(crate) fn is_folder(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

pub(crate) fn bytes_of(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

pub(crate) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

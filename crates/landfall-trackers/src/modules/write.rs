//! Writing below a root: whole files or none, nothing outside the root, nothing over what somebody else wrote meanwhile.
//!
//! A file is written beside its place, flushed, and renamed over it; then the folder is flushed. Whoever is killed in
//! between leaves the old file or the new one. Folders are entered one by one without following links, so a link that
//! appears on the way leads nowhere.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use landfall_model::Digest;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use thiserror::Error;

/// The largest file that is read; what people and agents write about a task is smaller.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// What must be there for a write to be allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpectedFile {
    /// Nothing.
    Absent,
    /// A file with this digest: the one the write was made for.
    Digest(Digest),
}

/// A change of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModuleWrite {
    /// A file that should be there.
    Put {
        /// Below the root, with `/`.
        path: String,
        /// All of it.
        bytes: Vec<u8>,
        /// What must be there now.
        expect: ExpectedFile,
    },
    /// A file that should be elsewhere. Nothing is moved over another file.
    Move {
        /// Where it is.
        from: String,
        /// Where it should be.
        to: String,
        /// Which file is meant.
        expect: Digest,
    },
}

impl ModuleWrite {
    /// A new file.
    #[must_use]
    pub fn new(path: &str, text: &str) -> Self {
        Self::Put { path: path.to_owned(), bytes: text.as_bytes().to_vec(), expect: ExpectedFile::Absent }
    }

    /// Where something will be.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Put { path, .. } => path,
            Self::Move { to, .. } => to,
        }
    }

    /// What will be there, for a file that is put.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Put { bytes, .. } => std::str::from_utf8(bytes).ok(),
            Self::Move { .. } => None,
        }
    }

    /// The digest of what will be there.
    #[must_use]
    pub fn digest(&self) -> Digest {
        match self {
            Self::Put { bytes, .. } => digest_bytes(bytes),
            Self::Move { expect, .. } => expect.clone(),
        }
    }
}

/// What came of the writes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteReport {
    /// What was written, or was there already, with its digest.
    pub written: BTreeMap<String, Digest>,
    /// What was left alone, because something else is there than was expected.
    pub refused: Vec<String>,
}

/// Why a file could not be written or read.
#[derive(Debug, Error)]
pub enum FileError {
    /// Not a path below the root.
    #[error("`{0}` is not a path below the folder")]
    Outside(String),
    /// A link stands where a folder or a file should be, or something that is neither.
    #[error("`{0}` is a link, or goes through something that is no folder; links are not followed here")]
    Link(String),
    /// More than is read.
    #[error("`{path}` has {bytes} bytes; at most {FILE_BYTES_MAX} are read")]
    Large {
        /// The file.
        path: String,
        /// Its size.
        bytes: u64,
    },
    /// The machine said no.
    #[error("{doing} `{path}`")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// The digest of a file's bytes.
#[must_use]
pub fn digest_bytes(bytes: &[u8]) -> Digest {
    Digest::new(&blake3::hash(bytes).to_hex())
}

/// Writes the files, in order. A file that is not as expected is left alone and told; the others are written.
///
/// # Errors
/// When a path leads outside, or the machine refuses. What was written before stays.
pub fn apply(root: &Path, writes: &[ModuleWrite]) -> Result<WriteReport, FileError> {
    let mut applied = WriteReport::default();
    for write in writes {
        let done = match write {
            ModuleWrite::Put { path, bytes, expect } => put_file(root, path, bytes, expect)?,
            ModuleWrite::Move { from, to, expect } => move_file(root, from, to, expect)?,
        };
        match done {
            WriteOutcome::Yes => {
                applied.written.insert(write.path().to_owned(), write.digest());
            }
            WriteOutcome::Refused => applied.refused.push(write.path().to_owned()),
        }
    }
    Ok(applied)
}

/// The same for files of one folder below the root, named as they are there. The folder is entered without following links.
///
/// # Errors
/// As for [`apply`].
pub fn apply_in(root: &Path, folder: &str, writes: &[ModuleWrite]) -> Result<WriteReport, FileError> {
    let below = |path: &str| format!("{folder}/{path}");
    let moved: Vec<ModuleWrite> = writes
        .iter()
        .map(|write| match write {
            ModuleWrite::Put { path, bytes, expect } => {
                ModuleWrite::Put { path: below(path), bytes: bytes.clone(), expect: expect.clone() }
            }
            ModuleWrite::Move { from, to, expect } => {
                ModuleWrite::Move { from: below(from), to: below(to), expect: expect.clone() }
            }
        })
        .collect();
    let WriteReport { written, refused } = apply(root, &moved)?;
    let inside = |path: String| path.strip_prefix(&below("")).map_or(path.clone(), str::to_owned);
    Ok(WriteReport {
        written: written.into_iter().map(|(path, digest)| (inside(path), digest)).collect(),
        refused: refused.into_iter().map(inside).collect(),
    })
}

enum WriteOutcome {
    Yes,
    Refused,
}

fn put_file(root: &Path, path: &str, bytes: &[u8], expect: &ExpectedFile) -> Result<WriteOutcome, FileError> {
    let (folder, name) =
        open_parent_folder(root, path, MissingFolderPolicy::Made)?.expect("missing folders were made");
    let io = |doing| move |errno: Errno| to_file_error(doing, path, errno);
    let there = read_in(&folder, &name, path)?;
    let ok = match (&there, expect) {
        // A write that came through before we were killed is not written twice.
        (Some(there), _) if there == bytes => return Ok(WriteOutcome::Yes),
        (None, ExpectedFile::Absent) => true,
        (Some(there), ExpectedFile::Digest(expected)) => digest_bytes(there) == *expected,
        (Some(_), ExpectedFile::Absent) | (None, ExpectedFile::Digest(_)) => false,
    };
    if !ok {
        return Ok(WriteOutcome::Refused);
    }
    let (beside, mut file) = create_beside(&folder, &name).map_err(io("create"))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if let Err(source) = written {
        let _ = unlink_file(&folder, &beside); // half a file helps nobody; the error is told
        return Err(FileError::Io { doing: "write", path: path.to_owned(), source });
    }
    let moved = match expect {
        ExpectedFile::Digest(_) => rustix::fs::renameat(&folder, &beside, &folder, &name),
        // Somebody may have made it since we looked.
        ExpectedFile::Absent => rename_onto_nothing((&folder, &beside), (&folder, &name)),
    };
    match moved {
        Ok(()) => {}
        Err(Errno::EXIST) => {
            rustix::fs::unlinkat(&folder, &beside, AtFlags::empty()).map_err(io("remove a copy of"))?;
            return Ok(WriteOutcome::Refused);
        }
        Err(errno) => return Err(to_file_error("rename", path, errno)),
    }
    rustix::fs::fsync(&folder).map_err(io("flush the folder of"))?;
    remove_stale_files(&folder, &name);
    Ok(WriteOutcome::Yes)
}

/// Moves a file. One that was moved before we were killed is not missed.
fn move_file(root: &Path, from: &str, to: &str, expect: &Digest) -> Result<WriteOutcome, FileError> {
    let (folder, name) =
        open_parent_folder(root, to, MissingFolderPolicy::Made)?.expect("missing folders were made");
    // Moved before: what stands in its old place by now is something else.
    if let Some(there) = read_in(&folder, &name, to)? {
        return Ok(if digest_bytes(&there) == *expect { WriteOutcome::Yes } else { WriteOutcome::Refused });
    }
    let Some((from_folder, from_name)) = open_parent_folder(root, from, MissingFolderPolicy::Told)? else {
        return Ok(WriteOutcome::Refused);
    };
    match read_in(&from_folder, &from_name, from)? {
        Some(here) if digest_bytes(&here) == *expect => {}
        Some(_) | None => return Ok(WriteOutcome::Refused),
    }
    match rename_onto_nothing((&from_folder, &from_name), (&folder, &name)) {
        Ok(()) => {}
        Err(Errno::EXIST | Errno::NOENT) => return Ok(WriteOutcome::Refused),
        Err(errno) => return Err(to_file_error("move", from, errno)),
    }
    for flushed in [&folder, &from_folder] {
        rustix::fs::fsync(flushed).map_err(|errno| to_file_error("flush the folder of", to, errno))?;
    }
    Ok(WriteOutcome::Yes)
}

fn rename_onto_nothing(from: (&OwnedFd, &str), to: (&OwnedFd, &str)) -> Result<(), Errno> {
    match rustix::fs::renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        // Some file systems cannot promise it; we looked a moment ago.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => rustix::fs::renameat(from.0, from.1, to.0, to.1),
        moved => moved,
    }
}

fn unlink_file(folder: &OwnedFd, name: &str) -> io::Result<()> {
    rustix::fs::unlinkat(folder, name, AtFlags::empty()).map_err(Into::into)
}

/// A new file beside the one of this name. Nobody else writes to it: the kernel makes each name once.
fn create_beside(folder: &OwnedFd, name: &str) -> Result<(String, File), Errno> {
    /// More than writers of one file there are at once.
    const TRIES_MAX: u32 = 10_000;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for number in 0..TRIES_MAX {
        let beside = format!("{name}.{}-{number}.tmp", std::process::id());
        match rustix::fs::openat(folder, &beside, flags, Mode::from_raw_mode(0o644)) {
            Ok(file) => return Ok((beside, File::from(file))),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno::EXIST)
}

/// Takes away what writers of this file left behind that live no more. They never came to rename it, so nothing is lost.
fn remove_stale_files(folder: &OwnedFd, name: &str) {
    let Ok(entries) = rustix::fs::Dir::read_from(folder) else { return };
    for entry in entries.flatten() {
        let Ok(file) = entry.file_name().to_str() else { continue };
        let writer = file
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('.'))
            .and_then(|rest| rest.strip_suffix(".tmp"))
            .and_then(|rest| rest.split_once('-'))
            .and_then(|(pid, _)| pid.parse().ok());
        if writer.is_some_and(|pid| !super::lock::is_alive(pid)) {
            let _ = unlink_file(folder, file); // another sweeper may have been first
        }
    }
}

/// The bytes of a file below the root; none when it is not there.
///
/// # Errors
/// When the path leads outside, the file is too large, or the machine refuses.
pub fn read_below(root: &Path, path: &str) -> Result<Option<Vec<u8>>, FileError> {
    match open_parent_folder(root, path, MissingFolderPolicy::Told)? {
        Some((folder, name)) => read_in(&folder, &name, path),
        None => Ok(None),
    }
}

/// Takes a file away. One that is not there is no failure.
///
/// # Errors
/// When the path leads outside, or the machine refuses.
pub fn remove_file_below(root: &Path, path: &str) -> Result<(), FileError> {
    let Some((folder, name)) = open_parent_folder(root, path, MissingFolderPolicy::Told)? else {
        return Ok(());
    };
    match unlink_file(&folder, &name) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(FileError::Io { doing: "remove", path: path.to_owned(), source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn read_in(folder: &OwnedFd, name: &str, path: &str) -> Result<Option<Vec<u8>>, FileError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(to_file_error("open", path, errno)),
    };
    let io = |source| FileError::Io { doing: "read", path: path.to_owned(), source };
    let metadata = file.metadata().map_err(io)?;
    if !metadata.is_file() {
        return Err(io(io::Error::other("it is no file")));
    }
    if metadata.len() > FILE_BYTES_MAX {
        return Err(FileError::Large { path: path.to_owned(), bytes: metadata.len() });
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).map_err(io)?;
    Ok(Some(bytes))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MissingFolderPolicy {
    Made,
    Told,
}

/// Opens the folder of a path, folder by folder.
fn open_parent_folder(
    root: &Path,
    path: &str,
    missing: MissingFolderPolicy,
) -> Result<Option<(OwnedFd, String)>, FileError> {
    let outside = || FileError::Outside(path.to_owned());
    let mut names: Vec<&str> = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => names.push(name.to_str().ok_or_else(outside)?),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(outside()),
        }
    }
    let name = names.pop().ok_or_else(outside)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = match rustix::fs::open(root, flags, Mode::empty()) {
        Ok(folder) => folder,
        Err(Errno::NOENT) if missing == MissingFolderPolicy::Told => return Ok(None),
        Err(errno) => return Err(to_file_error("open", &root.display().to_string(), errno)),
    };
    for part in names {
        if missing == MissingFolderPolicy::Made {
            match rustix::fs::mkdirat(&folder, part, Mode::from_raw_mode(0o755)) {
                Ok(()) => rustix::fs::fsync(&folder)
                    .map_err(|errno| to_file_error("flush the folder of", path, errno))?,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(to_file_error("create the folder of", path, errno)),
            }
        }
        folder = match rustix::fs::openat(&folder, part, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(to_file_error("open the folder of", path, errno)),
        };
    }
    Ok(Some((folder, name.to_owned())))
}

fn to_file_error(doing: &'static str, path: &str, errno: Errno) -> FileError {
    match errno {
        // Linux says ELOOP for a link that must not be followed, and ENOTDIR where a folder was asked for.
        Errno::LOOP | Errno::MLINK | Errno::NOTDIR => FileError::Link(path.to_owned()),
        errno => FileError::Io { doing, path: path.to_owned(), source: errno.into() },
    }
}

/// The path below `root` that `path` is; none when it is not below it.
pub(super) fn path_below(root: &Path, path: &Path) -> Option<PathBuf> {
    path.strip_prefix(root).ok().map(Path::to_path_buf)
}

//! Replaces files of a user's checkout such that nothing the user wrote is lost, whenever they wrote it.
//!
//! A file is never overwritten and never deleted where it is. It is first renamed out of the checkout, and then the file
//! that was really taken out is compared with the one that was checked before. A new file is made in a staging folder and
//! renamed into the checkout by a call that fails if anything has that name. If anything is not as expected, all of it is
//! undone. After a crash, the next update puts back what was taken out (`recover`).
//!
//! Which files may be replaced is decided in `checkout_update`.

use std::ffi::CString;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::files;
use super::open_files::OpenFiles;

/// How the staging folders in a git folder begin.
pub(crate) const STAGE_PREFIX: &str = "landfall-publish-";

/// Up to this many new files are synced one by one; for more, one sync of the file system is cheaper.
const SYNCED_ALONE_MAX: usize = 16;

/// A private folder in the git folder of a checkout: new files in `new/`, files taken out of the checkout in `old/`.
///
/// It is locked while its process lives, so that another process can tell whether it was left behind.
#[derive(Debug)]
pub(crate) struct StageFolder {
    path: PathBuf,
    name: String,
    new: OwnedFd,
    old: OwnedFd,
    _lock: OwnedFd,
}

impl StageFolder {
    pub fn create(git_dir: &Path) -> io::Result<StageFolder> {
        for number in 0..1000 {
            let name = format!("{STAGE_PREFIX}{}-{number}", std::process::id());
            let path = git_dir.join(&name);
            match std::fs::create_dir(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            let lock = files::open_folder(&path)?;
            rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
            std::fs::create_dir(path.join("new"))?;
            std::fs::create_dir(path.join("old"))?;
            let (new, old) = (files::open_folder(&path.join("new"))?, files::open_folder(&path.join("old"))?);
            return Ok(StageFolder { path, name, new, old, _lock: lock });
        }
        Err(io::Error::other("1000 staging folders of this process were left behind"))
    }

    /// Where git writes the new files.
    pub fn new_files(&self) -> PathBuf {
        self.path.join("new")
    }

    /// A file of ours in it.
    pub fn file_path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether git made a file, link or folder for this path.
    pub fn has_new(&self, path: &[u8]) -> bool {
        stat_beneath(self.new.as_fd(), path).is_ok()
    }

    /// Removes it with all that is in it.
    pub fn remove(&self) -> io::Result<()> {
        files::remove_path(&self.path)
    }

    /// The name beside a file of the checkout, for a file that cannot be renamed to another file system.
    fn numbered_sibling(&self, number: usize) -> CString {
        sibling_name(&self.name, number)
    }
}

fn sibling_name(stage: &str, number: usize) -> CString {
    CString::new(format!(".{stage}-{number}")).expect("no NUL in it")
}

/// Content and kind of a file or link, to see whether it is still the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    is_link: bool,
    is_executable: bool,
    size: u64,
    hash: u64,
}

impl Fingerprint {
    /// Reads a file or link below a folder; `None` if it is something else.
    pub fn read(root: BorrowedFd<'_>, path: &[u8]) -> io::Result<Option<Fingerprint>> {
        let (parent, name) = open_parent(root, path)?;
        Self::read_at(parent.as_fd(), &name)
    }

    /// That of a file or link with this content.
    pub fn of_content(content: &[u8], is_link: bool) -> Fingerprint {
        let mut hasher = DefaultHasher::new();
        hasher.write(content);
        Fingerprint { is_link, is_executable: false, size: content.len() as u64, hash: hasher.finish() }
    }

    /// Whether both are of the same kind and content. git compares the modes, where it is told to.
    pub fn has_content_of(&self, other: &Fingerprint) -> bool {
        (self.is_link, self.size, self.hash) == (other.is_link, other.size, other.hash)
    }

    fn read_at(folder: BorrowedFd<'_>, name: &CString) -> io::Result<Option<Fingerprint>> {
        let mut hasher = DefaultHasher::new();
        let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
                hasher.write(target.as_bytes());
                let size = target.as_bytes().len() as u64;
                Ok(Some(Fingerprint { is_link: true, is_executable: false, size, hash: hasher.finish() }))
            }
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let mut file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
                let (mut buffer, mut size) = (vec![0; 64 << 10], 0);
                loop {
                    let count = file.read(&mut buffer)?;
                    if count == 0 {
                        break;
                    }
                    hasher.write(&buffer[..count]);
                    size += count as u64;
                }
                let is_executable = stat.st_mode & 0o100 != 0;
                Ok(Some(Fingerprint { is_link: false, is_executable, size, hash: hasher.finish() }))
            }
            _ => Ok(None),
        }
    }
}

/// A file of the checkout that is to be taken out, as it was when it was checked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CheckedFile {
    pub path: Vec<u8>,
    pub fingerprint: Fingerprint,
}

/// What is written down before anything is moved, for the time after a crash.
#[derive(Debug, Serialize, Deserialize)]
struct SwapRecord {
    /// The format. A record of a later one is left alone, with the files that it is about.
    #[serde(default = "first_version")]
    version: u32,
    #[serde(flatten)]
    target: SwapTarget,
    taken: Vec<CheckedFile>,
}

const RECORD_VERSION: u32 = 1;

fn first_version() -> u32 {
    1 // before the field was written
}

/// What a checkout is updated to. Once the branch has the commit, nothing is put back.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct SwapTarget {
    pub commit: String,
    /// The full name of the branch; empty in records of earlier versions.
    #[serde(default)]
    pub branch: String,
}

/// What an update does to the files, in this order.
#[derive(Debug, Default)]
pub(crate) struct SwapPlan {
    pub target: SwapTarget,
    /// Files and links that are taken out of the checkout.
    pub take: Vec<CheckedFile>,
    /// Folders that are removed after that. Nothing but empty folders may be left in them.
    pub clear: Vec<Vec<u8>>,
    /// Folders of files that are gone: removed if nothing else is in them.
    pub prune: Vec<Vec<u8>>,
    /// Folders that are made, for submodules.
    pub make: Vec<Vec<u8>>,
    /// Files and links that are moved in from the staging folder.
    pub put: Vec<Vec<u8>>,
}

/// Why files were not swapped. All of it is undone by then.
#[derive(Debug)]
pub(crate) enum SwapError {
    /// A file that was taken out is not the one that was checked, or is gone.
    Changed(Vec<u8>),
    /// A program has a file open to write that was taken out.
    InUse(Vec<u8>),
    /// Something is where a file or folder must go.
    InTheWay(Vec<u8>),
    /// The file system refused.
    Io(Vec<u8>, io::Error),
}

/// Files that are swapped and can still be swapped back.
#[derive(Debug)]
pub(crate) struct FileSwap {
    root: OwnedFd,
    stage: StageFolder,
    take: Vec<CheckedFile>,
    taken: usize,
    /// The new files in the checkout, with what identifies them as ours.
    put: Vec<(Vec<u8>, FileIdentity)>,
    made: Vec<Vec<u8>>,
}

/// Tells whether a file is still the one that was put there: a write changes the time, a replacement the inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileIdentity {
    inode: u64,
    size: i64,
    modified: (i128, i128),
}

impl FileIdentity {
    fn from_stat(stat: &Stat) -> FileIdentity {
        FileIdentity {
            inode: stat.st_ino,
            size: stat.st_size,
            modified: (i128::from(stat.st_mtime), i128::from(stat.st_mtime_nsec)),
        }
    }
}

impl FileSwap {
    /// Swaps the files of the checkout in `root`; on any surprise, everything is put back.
    pub fn perform_swap(root: &Path, stage: StageFolder, plan: SwapPlan) -> Result<FileSwap, SwapError> {
        let nowhere = |error| SwapError::Io(Vec::new(), error);
        let root = files::open_folder(root).map_err(nowhere)?;
        // What is taken out must be known after a crash, so the list is on disk before anything is moved.
        let SwapPlan { target, take, clear, prune, make, put } = plan;
        let record = SwapRecord { version: RECORD_VERSION, target, taken: take };
        let text = serde_json::to_vec(&record).map_err(|error| nowhere(error.into()))?;
        files::write_whole(&stage.file_path("swap.json"), &text).map_err(nowhere)?;
        sync_new_files(&stage, &put).map_err(nowhere)?;
        let take = record.taken;
        let mut swap = FileSwap { root, stage, take, taken: 0, put: Vec::new(), made: Vec::new() };
        match swap.move_files(&clear, &prune, &make, put) {
            Ok(()) => Ok(swap),
            Err(error) => {
                swap.undo_swap();
                Err(error)
            }
        }
    }

    fn move_files(
        &mut self,
        clear: &[Vec<u8>],
        prune: &[Vec<u8>],
        make: &[Vec<u8>],
        put: Vec<Vec<u8>>,
    ) -> Result<(), SwapError> {
        for number in 0..self.take.len() {
            self.taken = number + 1;
            self.take_out(number)?;
        }
        crate::crash::pass_point("git.publish.taken");
        for path in clear {
            self.clear_folder(path)?;
        }
        for path in prune {
            remove_empty_parents(self.root.as_fd(), path);
        }
        for path in make {
            let made = make_folder(self.root.as_fd(), path, &mut self.made);
            made.map_err(|error| to_swap_error(path, error))?;
        }
        for path in put {
            self.put_in(path)?;
        }
        crate::crash::pass_point("git.publish.put");
        // The names of the new files are on disk before the branch says that they are there. It may take seconds.
        rustix::fs::syncfs(&self.root).map_err(|error| SwapError::Io(Vec::new(), error.into()))?;
        // Last, so that a program that had the file open is noticed for as long as possible. From here on no program opens one of
        // these files by its name, so one search of the processes is enough for all.
        let mut open_files = OpenFiles::default();
        for number in 0..self.take.len() {
            let path = &self.take[number].path;
            // Before the content is compared: who has it open may write at any time, and nobody opens it where it is now.
            if self
                .find_taken_file(number)
                .is_ok_and(|(folder, name)| open_files.is_written(folder.as_fd(), &name))
            {
                return Err(SwapError::InUse(path.clone()));
            }
            match self.aside_fingerprint(number) {
                Ok(Some(found)) if found == self.take[number].fingerprint => {}
                Ok(_) => return Err(SwapError::Changed(path.clone())),
                Err(error) => return Err(SwapError::Io(path.clone(), error)),
            }
        }
        Ok(())
    }

    fn take_out(&self, number: usize) -> Result<(), SwapError> {
        let path = &self.take[number].path;
        let moved = open_parent(self.root.as_fd(), path).and_then(|(parent, name)| {
            match rustix::fs::renameat(&parent, &name, &self.stage.old, number.to_string().as_str()) {
                // The checkout spans file systems: keep the file in its folder under another name.
                Err(Errno::XDEV) => {
                    Ok(rustix::fs::renameat(&parent, &name, &parent, self.stage.numbered_sibling(number))?)
                }
                other => Ok(other?),
            }
        });
        moved.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => SwapError::Changed(path.clone()),
            _ => SwapError::Io(path.clone(), error),
        })
    }

    fn put_in(&mut self, path: Vec<u8>) -> Result<(), SwapError> {
        let result = (|| {
            let (from, name) = open_parent(self.stage.new.as_fd(), &path)?;
            let folder = parent_of(&path);
            if !folder.is_empty() {
                make_folder(self.root.as_fd(), folder, &mut self.made)?;
            }
            let (to, _) = open_parent(self.root.as_fd(), &path)?;
            rename_new(from.as_fd(), &name, to.as_fd(), &name, &self.stage.numbered_sibling(usize::MAX))?;
            let stat = rustix::fs::statat(&to, &name, AtFlags::SYMLINK_NOFOLLOW)?;
            Ok(FileIdentity::from_stat(&stat))
        })();
        match result {
            Ok(identity) => {
                self.put.push((path, identity));
                Ok(())
            }
            Err(error) => Err(to_swap_error(&path, error)),
        }
    }

    fn clear_folder(&self, path: &[u8]) -> Result<(), SwapError> {
        let result =
            open_parent(self.root.as_fd(), path).and_then(|(parent, name)| {
                match rustix::fs::statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => Ok(()),
                    Ok(_) | Err(_) => remove_empty_tree(parent.as_fd(), &name),
                }
            });
        result.map_err(|error| to_swap_error(path, error))
    }

    /// Where a file that was taken out is now: in the staging folder or beside its old place.
    fn find_taken_file(&self, number: usize) -> io::Result<(OwnedFd, CString)> {
        find_aside(self.root.as_fd(), &self.stage.old, &self.stage.name, number, &self.take[number].path)?
            .ok_or_else(|| Errno::NOENT.into())
    }

    fn aside_fingerprint(&self, number: usize) -> io::Result<Option<Fingerprint>> {
        let (folder, name) = self.find_taken_file(number)?;
        Fingerprint::read_at(folder.as_fd(), &name)
    }

    /// The staging folder, where the new index is.
    pub fn stage(&self) -> &StageFolder {
        &self.stage
    }

    /// Puts everything back. A file that the user wrote meanwhile stays.
    pub fn undo_swap(mut self) {
        let mut all_safe = true;
        for (number, (path, identity)) in std::mem::take(&mut self.put).into_iter().enumerate().rev() {
            // Our own new file is moved out; if it is not ours any more, it stays or goes back.
            let Ok((parent, name)) = open_parent(self.root.as_fd(), &path) else { continue };
            let is_ours = |folder: BorrowedFd<'_>, name: &CString| {
                rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|stat| FileIdentity::from_stat(&stat) == identity)
            };
            if !is_ours(parent.as_fd(), &name) {
                continue;
            }
            let out = CString::new(format!("undone-{number}")).expect("no NUL in it");
            let sibling = self.stage.numbered_sibling(self.take.len() + number);
            let (folder, out) = match rustix::fs::renameat(&parent, &name, &self.stage.old, &out) {
                Ok(()) => (self.stage.old.as_fd(), out),
                Err(Errno::XDEV) if rustix::fs::renameat(&parent, &name, &parent, &sibling).is_ok() => {
                    (parent.as_fd(), sibling)
                }
                Err(_) => continue, // gone meanwhile, or the disk fails: what is there stays
            };
            if is_ours(folder, &out) {
                rustix::fs::unlinkat(folder, &out, AtFlags::empty()).ok(); // it is a copy of what git has
            } else if rename_new(
                folder,
                &out,
                parent.as_fd(),
                &name,
                &self.stage.numbered_sibling(usize::MAX),
            )
            .is_err()
            {
                all_safe &= save_beside(folder, &out, parent.as_fd(), &name);
            }
        }
        for folder in self.made.iter().rev() {
            remove_empty(self.root.as_fd(), folder);
        }
        let taken = self.take.iter().take(self.taken).cloned().collect::<Vec<_>>();
        all_safe &= restore_files(self.root.as_fd(), &self.stage.old, &self.stage.name, &taken, true);
        if all_safe {
            let _ = self.stage.remove(); // the next update removes it
        }
    }

    /// Removes the files that were taken out. One that a program wrote to meanwhile, through a descriptor it had open, is kept
    /// beside the new file.
    pub fn finish_swap(self) -> io::Result<()> {
        match restore_files(self.root.as_fd(), &self.stage.old, &self.stage.name, &self.take, false) {
            true => self.stage.remove(),
            false => Ok(()), // the next update tries again
        }
    }
}

/// Puts back what an update that was cut off had taken out, unless `is_published` says of its commit that it went through,
/// and removes its staging folder. Returns whether there was such an update.
pub(crate) fn recover_swap(
    git_dir: &Path,
    root: &Path,
    is_published: impl Fn(&SwapTarget) -> io::Result<bool>,
) -> io::Result<bool> {
    let mut was_cut_off = false;
    for entry in std::fs::read_dir(git_dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let path = git_dir.join(&name);
        if !name.starts_with(STAGE_PREFIX) || !files::is_folder(&path) {
            continue;
        }
        let lock = files::open_folder(&path)?;
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue; // its process lives
        }
        match std::fs::read(path.join("swap.json")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {} // nothing was taken out yet
            Err(error) => return Err(error),
            Ok(text) => {
                let record = match serde_json::from_slice::<SwapRecord>(&text) {
                    Ok(record) if record.version == RECORD_VERSION => record,
                    Ok(_) | Err(_) => continue, // written by another version: what is in it stays
                };
                let belongs = !is_published(&record.target)?;
                let (root, old) = (files::open_folder(root)?, files::open_folder(&path.join("old"))?);
                if !restore_files(root.as_fd(), &old, &name, &record.taken, belongs) {
                    continue; // what could not be put back stays where it is
                }
            }
        }
        files::remove_path(&path)?;
        was_cut_off = true;
    }
    Ok(was_cut_off)
}

/// Renames files that were taken out back to where they were, if they belong there. If they do not, or if something is
/// there by now, a file that is as it was checked goes, because git has its content, and one that is not is kept beside
/// it. Returns whether all are safe.
fn restore_files(
    root: BorrowedFd<'_>,
    old: &OwnedFd,
    stage: &str,
    taken: &[CheckedFile],
    belongs: bool,
) -> bool {
    let mut all_safe = true;
    for (number, file) in taken.iter().enumerate() {
        let (folder, aside) = match find_aside(root, old, stage, number, &file.path) {
            Ok(Some(found)) => found,
            Ok(None) => continue, // it was not taken out, or is back already
            Err(_) => {
                all_safe = false;
                continue;
            }
        };
        let is_known = || matches!(Fingerprint::read_at(folder.as_fd(), &aside), Ok(Some(found)) if found == file.fingerprint);
        let go_back = || -> io::Result<()> {
            let parent = parent_of(&file.path);
            if !parent.is_empty() {
                make_folder(root, parent, &mut Vec::new())?;
            }
            let (to, name) = open_parent(root, &file.path)?;
            rename_new(folder.as_fd(), &aside, to.as_fd(), &name, &sibling_name(stage, usize::MAX))
        };
        // A file that the user wrote goes back in any case.
        let back = if belongs || !is_known() { go_back() } else { Err(Errno::EXIST.into()) };
        if back.is_ok() {
            continue;
        }
        if is_known() {
            rustix::fs::unlinkat(&folder, &aside, AtFlags::empty()).ok(); // git has its content
        } else {
            // The folder is gone or is a file now: the top of the checkout is always there.
            let name = file.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            let name = CString::new(name).expect("a path of git has no NUL");
            all_safe &= match open_parent(root, &file.path) {
                Ok((to, name)) => save_beside(folder.as_fd(), &aside, to.as_fd(), &name),
                Err(_) => save_beside(folder.as_fd(), &aside, root, &name),
            };
        }
    }
    all_safe
}

/// Keeps a file of the user whose place was taken, under a new name in that folder.
fn save_beside(from: BorrowedFd<'_>, aside: &CString, to: BorrowedFd<'_>, name: &CString) -> bool {
    for number in 0..1000 {
        let mut saved = name.as_bytes().to_vec();
        saved.extend_from_slice(format!(".landfall-saved-{number}").as_bytes());
        let saved = CString::new(saved).expect("no NUL in it");
        let between = CString::new(format!(".landfall-saving-{number}")).expect("no NUL in it");
        if rename_new(from, aside, to, &saved, &between).is_ok() {
            return true;
        }
    }
    false
}

fn find_aside(
    root: BorrowedFd<'_>,
    old: &OwnedFd,
    stage: &str,
    number: usize,
    path: &[u8],
) -> io::Result<Option<(OwnedFd, CString)>> {
    let exists = |folder: &OwnedFd, name: &CString| match rustix::fs::statat(
        folder,
        name,
        AtFlags::SYMLINK_NOFOLLOW,
    ) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(io::Error::from(error)),
    };
    let name = CString::new(number.to_string()).expect("no NUL in it");
    if exists(old, &name)? {
        return Ok(Some((old.try_clone()?, name)));
    }
    let Ok((parent, _)) = open_parent(root, path) else { return Ok(None) };
    let sibling = sibling_name(stage, number);
    Ok(exists(&parent, &sibling)?.then_some((parent, sibling)))
}

/// The folder that holds a path, opened without following a link, and the last part.
pub(crate) fn open_parent(root: BorrowedFd<'_>, path: &[u8]) -> io::Result<(OwnedFd, CString)> {
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    let (name, folders) = parts.split_last().expect("split gives at least one part");
    Ok((files::open_folder_beneath(root, folders)?, files::c_name(name)?))
}

/// What the file system says of a path, without following a link anywhere.
pub(crate) fn stat_beneath(root: BorrowedFd<'_>, path: &[u8]) -> io::Result<Stat> {
    let (parent, name) = open_parent(root, path)?;
    Ok(rustix::fs::statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW)?)
}

pub(crate) fn parent_of(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(&[], |at| &path[..at])
}

/// Renames a file or link; fails if the new name exists. `between` is a free name in the folder `to`.
fn rename_new(
    from: BorrowedFd<'_>,
    name: &CString,
    to: BorrowedFd<'_>,
    new_name: &CString,
    between: &CString,
) -> io::Result<()> {
    match rustix::fs::renameat_with(from, name, to, new_name, RenameFlags::NOREPLACE) {
        // Not every file system knows this kind of rename, and none renames to another one. Making a link and making
        // a symbolic link both fail if the name exists.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::XDEV) => {}
        other => return Ok(other?),
    }
    let stat = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        let target = rustix::fs::readlinkat(from, name, Vec::new())?;
        rustix::fs::symlinkat(target, to, new_name)?;
    } else {
        match rustix::fs::linkat(from, name, to, new_name, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(Errno::EXIST.into()),
            Err(_) => copy_new(from, name, to, new_name, between, &stat)?,
        }
    }
    Ok(rustix::fs::unlinkat(from, name, AtFlags::empty())?)
}

fn copy_new(
    from: BorrowedFd<'_>,
    name: &CString,
    to: BorrowedFd<'_>,
    new_name: &CString,
    between: &CString,
    stat: &Stat,
) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut source = File::from(rustix::fs::openat(from, name, flags, Mode::empty())?);
    let mode = Mode::from_raw_mode(stat.st_mode & 0o777);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut copy = File::from(rustix::fs::openat(to, between, flags, mode)?);
    let result = io::copy(&mut source, &mut copy).and_then(|_| copy.sync_all()).and_then(|()| {
        match rustix::fs::renameat_with(to, between, to, new_name, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                Ok(rustix::fs::linkat(to, between, to, new_name, AtFlags::empty())?)
            }
            other => Ok(other?),
        }
    });
    rustix::fs::unlinkat(to, between, AtFlags::empty()).ok(); // renamed already, or a copy that is not needed
    result
}

/// Makes a folder and those above it, and notes the ones that were made.
fn make_folder(root: BorrowedFd<'_>, path: &[u8], made: &mut Vec<Vec<u8>>) -> io::Result<()> {
    let mut folder = root.try_clone_to_owned()?;
    let mut end = 0;
    for part in path.split(|byte| *byte == b'/') {
        let name = files::c_name(part)?;
        end += part.len() + usize::from(end > 0);
        match rustix::fs::mkdirat(&folder, &name, Mode::from_raw_mode(0o777)) {
            Ok(()) => made.push(path[..end].to_vec()),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        folder = files::open_folder_beneath(folder.as_fd(), &[part])?;
    }
    Ok(())
}

fn remove_empty(root: BorrowedFd<'_>, path: &[u8]) -> bool {
    open_parent(root, path)
        .is_ok_and(|(parent, name)| rustix::fs::unlinkat(&parent, &name, AtFlags::REMOVEDIR).is_ok())
}

/// Removes the folders above a path that have become empty, from the inside out.
fn remove_empty_parents(root: BorrowedFd<'_>, path: &[u8]) {
    let mut folder = parent_of(path);
    while !folder.is_empty() && remove_empty(root, folder) {
        folder = parent_of(folder);
    }
}

/// Removes a folder in which there is nothing but empty folders.
fn remove_empty_tree(parent: BorrowedFd<'_>, name: &CString) -> io::Result<()> {
    let folder = files::open_folder_beneath(parent, &[name.as_bytes()])?;
    for (inner, kind) in files::list_entries(folder.as_fd())? {
        if kind != FileType::Directory {
            return Err(Errno::NOTEMPTY.into());
        }
        remove_empty_tree(folder.as_fd(), &inner)?;
    }
    Ok(rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

fn to_swap_error(path: &[u8], error: io::Error) -> SwapError {
    match Errno::from_io_error(&error) {
        // A folder that is a link now is one of the last two.
        Some(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR | Errno::LOOP) => {
            SwapError::InTheWay(path.to_vec())
        }
        Some(_) | None => SwapError::Io(path.to_vec(), error),
    }
}

/// Makes the content of new files survive a power cut before they get their names: otherwise they may come up empty.
fn sync_new_files(stage: &StageFolder, put: &[Vec<u8>]) -> io::Result<()> {
    if put.len() > SYNCED_ALONE_MAX {
        #[cfg(target_os = "linux")]
        return Ok(rustix::fs::syncfs(&stage.new)?);
    }
    for path in put {
        // A link cannot be opened so; its target is in the inode.
        if let Ok(file) = files::open_file_beneath(stage.new.as_fd(), path) {
            file.sync_data()?;
        }
    }
    Ok(())
}

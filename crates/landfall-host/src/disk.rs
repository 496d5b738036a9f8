//! The disk: how much is left, what kind it is, and writing so that a power cut leaves the old or the new, never half.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Bytes that this user may still write on the file system that holds `path`.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Files that this user may still make on the file system that holds `path`. None where it does not count them.
pub fn free_inodes(path: &Path) -> io::Result<Option<u64>> {
    let stat = rustix::fs::statvfs(path)?;
    Ok((stat.f_files > 0).then_some(stat.f_favail))
}

/// Makes a file of so many bytes that the file system has really set aside.
pub fn allocate_file(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes) {
        Ok(()) => {}
        // Not every file system can; then the bytes are written.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
            let chunk = vec![0; 1 << 16];
            for _ in 0..bytes.div_ceil(1 << 16) {
                file.write_all(&chunk)?;
            }
        }
        Err(error) => return Err(error.into()),
    }
    file.sync_all()
}

/// Replaces `path` by `bytes`, durably: after a power cut it holds the old bytes or the new ones. Mode 0600.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = folder_of(path)?;
    let (tmp, mut file) = create_scratch_file(path)?;
    let written = (|| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&tmp, path)
    })();
    if let Err(error) = written {
        let _ = fs::remove_file(&tmp); // it may never have come to be; the first error is the one that matters
        return Err(error);
    }
    sync_dir(folder)
}

/// Makes the names in a folder durable: without it a rename may be undone by a power cut.
pub fn sync_dir(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Bytes of disk that a folder takes, itself included. Links are counted as links and never followed; a file with two
/// names counts once; what vanishes while we look counts as nothing.
pub fn dir_size(path: &Path) -> io::Result<u64> {
    const BLOCK: u64 = 512; // the unit of st_blocks, whatever the file system's own block is
    let mut total = 0u64;
    let mut twice_named = HashSet::new();
    let mut folders = vec![path.to_owned()];
    let root = fs::symlink_metadata(path)?;
    total += root.blocks() * BLOCK;
    if !root.is_dir() {
        return Ok(total);
    }
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let meta = match entry.metadata() {
                Ok(meta) => meta,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if meta.is_dir() {
                folders.push(entry.path());
            } else if meta.nlink() > 1 && !twice_named.insert((meta.dev(), meta.ino())) {
                continue;
            }
            total += meta.blocks() * BLOCK;
        }
    }
    Ok(total)
}

/// Removes a file, link or whole folder, read-only folders in it included; gone already is fine. Nothing outside of it is
/// touched, ever.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    crate::git::files::remove_path(path)
}

/// Whether `path` lies on a file system where locks and shared memory cannot be relied upon: another machine's disk,
/// or one passed in from outside a virtual machine.
#[cfg(target_os = "linux")]
pub fn is_network_fs(path: &Path) -> io::Result<bool> {
    const FUSE: u32 = 0x6573_5546;
    let kind = u32::try_from(rustix::fs::statfs(path)?.f_type & 0xffff_ffff).expect("masked");
    if kind == FUSE {
        return fuse_is_network(path);
    }
    Ok(NETWORK_KINDS.iter().any(|(magic, _)| *magic == kind))
}

/// Whether `path` lies on another machine's disk. Not known on this system, so nothing is refused.
#[cfg(not(target_os = "linux"))]
pub fn is_network_fs(_path: &Path) -> io::Result<bool> {
    Ok(false)
}

#[cfg(target_os = "linux")]
const NETWORK_KINDS: [(u32, &str); 13] = [
    (0x6969, "nfs"),
    (0x517b, "smb"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x0102_1997, "9p"),
    (0x5346_414f, "afs"),
    (0x6b41_4653, "kafs"),
    (0x00c3_6400, "ceph"),
    (0x0bd0_0bd0, "lustre"),
    (0x7461_636f, "ocfs2"),
    (0x0116_1970, "gfs2"),
    (0x7375_7245, "coda"),
    (0x564c, "ncp"),
];

/// All FUSE file systems share one magic number; the mount table knows their names. An unknown one is taken for a
/// network: being wrong that way costs a question, the other way a database.
#[cfg(target_os = "linux")]
fn fuse_is_network(path: &Path) -> io::Result<bool> {
    const LOCAL: [&str; 9] = [
        "fuseblk",
        "fuse.fuse-overlayfs",
        "fuse.overlayfs",
        "fuse.mergerfs",
        "fuse.bindfs",
        "fuse.gocryptfs",
        "fuse.encfs",
        "fuse.ntfs-3g",
        "fuse.lazyfs",
    ];
    let device = fs::metadata(path)?.dev();
    let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let kind = mounts.lines().find_map(|line| {
        let (mount, source) = line.split_once(" - ")?;
        (mount.split(' ').nth(2)? == device).then(|| source.split(' ').next())?
    });
    Ok(!kind.is_some_and(|kind| LOCAL.contains(&kind)))
}

/// What tells this start of the machine from every other: a process recorded under another boot id is gone for certain.
#[cfg(target_os = "linux")]
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// What tells this start of the machine from every other. Not known on this system.
#[cfg(not(target_os = "linux"))]
pub fn boot_id() -> io::Result<String> {
    Err(io::ErrorKind::Unsupported.into())
}

fn folder_of(path: &Path) -> io::Result<&Path> {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Ok(Path::new(".")),
        Some(folder) => Ok(folder),
        None => Err(io::Error::new(io::ErrorKind::InvalidInput, "a file name is needed")),
    }
}

/// A new file beside `path`. Threads that write to the same path get different ones: the kernel makes each name once.
fn create_scratch_file(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a file name is needed"))?;
    take_free_name(|number| {
        let mut scratch = std::ffi::OsString::from(".");
        scratch.push(name);
        scratch.push(format!(".{}.{number}.tmp", std::process::id()));
        let tmp = path.with_file_name(scratch);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&tmp)?;
        Ok((tmp, file))
    })
}

/// Makes a new folder in `parent`, whose name begins with `prefix`. The parent must exist.
pub fn create_unique_folder(parent: &Path, prefix: &str) -> io::Result<PathBuf> {
    take_free_name(|number| {
        let path = parent.join(format!("{prefix}{}-{number}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(path)
    })
}

/// Tries `make` with one number after the other until nothing has that name.
fn take_free_name<T>(make: impl Fn(u32) -> io::Result<T>) -> io::Result<T> {
    /// More than files of one name are ever written at once. What a process of our number left behind is passed over.
    const TRIES_MAX: u32 = 10_000;
    for number in 0..TRIES_MAX {
        match make(number) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made,
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "every name for a temporary file is taken"))
}

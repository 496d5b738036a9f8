//! Whether a program can still write to a file that is about to be replaced: it has the file open to write, or mapped.
//!
//! The kernel grants a lease for reading only on a file that nobody can write to, so a lease is the answer where it can be had.
//! Network file systems and some others have no leases, and the files of another user give none. There the processes
//! of this machine are searched. What another machine or, for an ordinary user, another user has open, is not seen then.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, OFlags};

/// The files that programs can write to. The processes are searched once, when the first file without a lease is asked about: make
/// it anew when programs may have opened files meanwhile.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles {
    found: Option<WritableFiles>,
}

impl OpenFiles {
    /// Whether a program has a file open to write, or mapped so that it can change it. No, where the system does not tell.
    pub fn is_written(&mut self, folder: BorrowedFd<'_>, name: &CString) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::openat(folder, name, flags, Mode::empty()) else { return false };
        let file = File::from(file);
        let Ok(meta) = file.metadata() else { return false };
        if !meta.is_file() {
            return false;
        }
        match try_lease(&file) {
            Some(is_written) => is_written,
            None => self.found.get_or_insert_with(WritableFiles::search).contain(&file, &meta),
        }
    }
}

/// Asks for a lease and gives it back. `None`: there are no leases for this file.
#[cfg(target_os = "linux")]
fn try_lease(file: &File) -> Option<bool> {
    use std::os::fd::AsRawFd as _;
    const F_SETSIG: libc::c_int = 10; // `libc` does not name it
    let fd = file.as_raw_fd();
    // SAFETY: a call with numbers on a descriptor of ours. Whoever opens the file during the lease has the kernel send
    // us a signal, by default one that would end the process: this one is ignored by default.
    if unsafe { libc::fcntl(fd, F_SETSIG, libc::SIGURG) } != 0 {
        return None;
    }
    // SAFETY: as above.
    if unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_RDLCK) } == 0 {
        // SAFETY: as above. If it fails, the lease ends with the descriptor.
        unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_UNLCK) };
        return Some(false);
    }
    (io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN)).then_some(true)
}

/// Other systems have no leases.
#[cfg(not(target_os = "linux"))]
fn try_lease(_: &File) -> Option<bool> {
    None
}

/// What the processes of this machine can write to, as far as this user may see it.
#[derive(Debug, Default)]
struct WritableFiles {
    /// Open to write, by device and inode.
    open: HashSet<(u64, u64)>,
    /// Mapped shared and writable: by inode, the devices as the list of mappings shows them.
    mapped: HashMap<u64, HashSet<MapsDevice>>,
}

impl WritableFiles {
    fn search() -> Self {
        let mut all = Self::default();
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let is_process = |name: &std::ffi::OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
        for process in processes.filter(|entry| is_process(&entry.file_name())) {
            all.add_process(&process.path()); // it may end meanwhile, or be another user's
        }
        all
    }

    fn add_process(&mut self, process: &std::path::Path) {
        use std::os::unix::fs::MetadataExt as _;
        const OWNER_MAY_WRITE: u32 = 0o200; // what the link of a descriptor shows if it was opened to write
        for entry in std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_writable =
                std::fs::symlink_metadata(&path).is_ok_and(|link| link.mode() & OWNER_MAY_WRITE != 0);
            if is_writable && let Ok(meta) = std::fs::metadata(&path) {
                self.open.insert((meta.dev(), meta.ino()));
            }
        }
        let maps = std::fs::read(process.join("maps")).unwrap_or_default();
        let lines = maps.split(|byte| *byte == b'\n');
        for mapping in lines.filter_map(|line| FileMapping::parse(&String::from_utf8_lossy(line))) {
            if mapping.is_writable {
                self.mapped.entry(mapping.inode).or_default().insert(mapping.device);
            }
        }
    }

    fn contain(&self, file: &File, meta: &Metadata) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        if self.open.contains(&(meta.dev(), meta.ino())) {
            return true;
        }
        let Some(devices) = self.mapped.get(&meta.ino()) else { return false };
        // Files of several devices have one number. If the device is not known, the publishing waits without need.
        read_device_in_maps(file).is_none_or(|device| devices.contains(&device))
    }
}

/// Major and minor number.
type MapsDevice = (u32, u32);

/// A line of `/proc/PID/maps` that is about a file.
#[derive(Debug, PartialEq, Eq)]
struct FileMapping {
    addresses: std::ops::Range<usize>,
    device: MapsDevice,
    inode: u64,
    /// What the process writes there gets into the file.
    is_writable: bool,
}

impl FileMapping {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let (permissions, _, device) = (words.next()?, words.next()?, words.next()?);
        let inode = words.next()?.parse().ok().filter(|inode| *inode != 0)?;
        // Memory that processes share has a number, too, and is a file in no folder. In `/dev/shm` there may be a checkout.
        let path = words.next().unwrap_or_default();
        if line.ends_with(" (deleted)") && ["/memfd:", "/SYSV"].iter().any(|kind| path.starts_with(kind)) {
            return None;
        }
        let address = |digits| usize::from_str_radix(digits, 16).ok();
        let number = |digits| u32::from_str_radix(digits, 16).ok();
        let (major, minor) = device.split_once(':')?;
        let is_writable = permissions.as_bytes().get(1) == Some(&b'w') && permissions.ends_with('s');
        let addresses = address(start)?..address(end)?;
        Some(Self { addresses, device: (number(major)?, number(minor)?), inode, is_writable })
    }
}

/// The device of a file as the list of mappings shows it. On btrfs and on overlays it is not the one of `stat`, so this process
/// maps the file for a moment and looks it up.
fn read_device_in_maps(file: &File) -> Option<MapsDevice> {
    use std::os::fd::AsRawFd as _;
    // SAFETY: a new mapping of a place that the kernel chooses. It is never touched, so a file that shrinks does no harm.
    let start = unsafe {
        libc::mmap(std::ptr::null_mut(), 1, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
    };
    if start == libc::MAP_FAILED {
        return None;
    }
    let maps = std::fs::read("/proc/self/maps");
    // SAFETY: the mapping from above, which nothing uses.
    unsafe { libc::munmap(start, 1) };
    let maps = maps.ok()?;
    let mut lines = maps.split(|byte| *byte == b'\n');
    lines.find_map(|line| {
        let mapping = FileMapping::parse(&String::from_utf8_lossy(line))?;
        mapping.addresses.contains(&start.addr()).then_some(mapping.device)
    })
}

#[cfg(test)]
mod tests {
    use super::{FileMapping, WritableFiles, read_device_in_maps};

    #[test]
    fn a_file_that_a_process_has_open_to_write_is_found_without_a_lease() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        std::fs::write(&path, "a").expect("ours");
        let meta = std::fs::metadata(&path).expect("it is there");
        let file = std::fs::File::open(&path).expect("opens");
        let is_found = || WritableFiles::search().contain(&file, &meta);
        assert!(!is_found());
        let reader = std::fs::File::open(&path).expect("opens");
        assert!(!is_found(), "reading changes nothing");
        for (append, read) in [(true, false), (true, true)] {
            let writer = std::fs::File::options().append(append).read(read).open(&path).expect("opens");
            std::fs::rename(&path, folder.path().join("b")).expect("ours");
            assert!(is_found(), "whatever the file is called now");
            std::fs::rename(folder.path().join("b"), &path).expect("ours");
            drop(writer);
            assert!(!is_found());
        }
        drop(reader);
    }

    #[test]
    fn only_a_mapping_that_reaches_the_file_counts() {
        let line = |permissions: &str, inode: &str, path: &str| {
            FileMapping::parse(&format!("7f5c0000-7f5c1000 {permissions} 00000000 fe:1a {inode}    {path}"))
        };
        let mapping = |is_writable| {
            Some(FileMapping {
                addresses: 0x7f5c_0000..0x7f5c_1000,
                device: (0xfe, 0x1a),
                inode: 42,
                is_writable,
            })
        };
        assert_eq!(line("rw-s", "42", "/home/u/a b.txt"), mapping(true));
        assert_eq!(line("-w-s", "42", "/home/u/a b.txt (deleted)"), mapping(true), "it may have other names");
        assert_eq!(line("rw-s", "42", "/dev/shm/a"), mapping(true));
        assert_eq!(line("rw-s", "42", "/home/u/a /memfd:b (deleted)"), mapping(true));
        assert_eq!(line("rw-p", "42", "/home/u/a b.txt"), mapping(false), "a copy of its own");
        assert_eq!(line("r--s", "42", "/home/u/a b.txt"), mapping(false));
        assert_eq!(line("rw-s", "0", ""), None, "no file");
        assert_eq!(line("rw-s", "42", "/memfd:pulse (deleted)"), None, "memory");
        assert_eq!(line("rw-s", "42", "/SYSV00000000 (deleted)"), None, "memory");
        assert_eq!(FileMapping::parse(""), None);
    }

    #[test]
    fn a_mapping_counts_only_on_the_device_of_the_file() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        for content in ["", "content"] {
            let path = folder.path().join("a");
            std::fs::write(&path, content).expect("ours");
            let file = std::fs::File::open(&path).expect("opens");
            let meta = file.metadata().expect("it is there");
            let device = read_device_in_maps(&file).expect("it can be mapped");
            let is_found = |device| {
                let mapped = [(meta.ino(), [device].into())].into();
                WritableFiles { mapped, ..WritableFiles::default() }.contain(&file, &meta)
            };
            assert!(is_found(device));
            assert!(!is_found((device.0, device.1 + 1)), "another file with the same number");
        }
    }
}

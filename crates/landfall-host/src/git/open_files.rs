//! Whether a program can still write to a file that is about to be replaced: it has the file open to write, or mapped.
//!
//! The kernel grants a lease for reading only on a file that nobody can write to, so a lease is the answer where it can be had.
//! Network file systems and some others have no leases, and the files of another user give none. There the processes
//! of this machine are searched. What another machine or, for an ordinary user, another user has open, is not seen then.

use std::collections::HashSet;
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
            None => self.found.get_or_insert_with(WritableFiles::search).contain(&meta),
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
    /// Mapped shared and writable, by inode: some file systems show another device there. Two files with one number hold the
    /// publishing up without need, and lose nothing.
    mapped: HashSet<u64>,
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
        self.mapped.extend(lines.filter_map(|line| mapped_inode(&String::from_utf8_lossy(line))));
    }

    fn contain(&self, meta: &Metadata) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        self.open.contains(&(meta.dev(), meta.ino())) || self.mapped.contains(&meta.ino())
    }
}

/// The inode in a line of `/proc/PID/maps`, if the process can write to the file by it.
fn mapped_inode(line: &str) -> Option<u64> {
    let mut words = line.split_ascii_whitespace();
    let (_, permissions, _, _) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let inode = words.next()?.parse().ok()?;
    let is_shared = permissions.starts_with("rw") || permissions.starts_with("-w");
    (is_shared && permissions.ends_with('s') && inode != 0).then_some(inode)
}

#[cfg(test)]
mod tests {
    use super::{WritableFiles, mapped_inode};

    #[test]
    fn a_file_that_a_process_has_open_to_write_is_found_without_a_lease() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        std::fs::write(&path, "a").expect("ours");
        let meta = std::fs::metadata(&path).expect("it is there");
        let is_found = || WritableFiles::search().contain(&meta);
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
        let line = |permissions: &str, inode: &str| {
            mapped_inode(&format!("7f5c0000-7f5c1000 {permissions} 00000000 fe:00 {inode} /home/u/a b.txt"))
        };
        assert_eq!(line("rw-s", "42"), Some(42));
        assert_eq!(line("-w-s", "42"), Some(42));
        assert_eq!(line("rw-p", "42"), None, "a copy of its own");
        assert_eq!(line("r--s", "42"), None);
        assert_eq!(line("rw-s", "0"), None, "no file");
        assert_eq!(mapped_inode(""), None);
    }
}

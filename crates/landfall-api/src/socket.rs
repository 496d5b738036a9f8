//! The socket of an engine: where it is made, and which process is on the other side of it.
//!
//! Only processes of the same user can connect: the file is for its owner alone, and the peer's user is checked. That says
//! nothing about agents, which have the same user. The key of the socket ([`SocketKey`]) tells those from the person.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::SocketKey;
use crate::secret_file::SecretFileError;

/// A socket that an engine listens on, with the key that its clients have to know.
#[derive(Debug)]
pub struct EngineSocket {
    /// Where clients connect.
    pub listener: UnixListener,
    /// What they prove themselves with.
    pub key: SocketKey,
}

/// Makes the socket of an engine and its key, for their owner alone. Old ones in their place are replaced: whoever calls
/// this holds the engine's lock, so nobody listens there.
///
/// # Errors
/// When the place cannot be written, or holds something that is not a socket.
pub fn bind_socket(path: &Path) -> io::Result<EngineSocket> {
    match path.symlink_metadata() {
        Ok(there) if !there.file_type().is_socket() => {
            return Err(io::Error::new(
                ErrorKind::AlreadyExists,
                "something that is not a socket is in its place",
            ));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // Before the socket: who reaches this engine finds its key.
    let key = SocketKey::create(path).map_err(|error| match error {
        SecretFileError::Io { source, .. } => source,
        error @ (SecretFileError::Unsafe { .. } | SecretFileError::Random(_)) => io::Error::other(error),
    })?;
    // Made aside and moved into place, so that it is never there with wider rights, nor there and dead.
    let mut aside = path.as_os_str().to_owned();
    aside.push(".new");
    let aside = PathBuf::from(aside);
    match std::fs::remove_file(&aside) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(&short_socket_path(&aside)?.path)?;
    std::fs::set_permissions(&aside, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(&aside, path)?;
    Ok(EngineSocket { listener, key })
}

/// Connects to the socket of an engine, if its owner is who we are.
pub(crate) fn connect_to_socket(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(&short_socket_path(path)?.path)?;
    check_owner(&stream)?;
    Ok(stream)
}

/// Checks that the process on the other side has the same user.
fn check_owner(stream: impl AsFd) -> io::Result<()> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    if peer.uid == rustix::process::geteuid() {
        return Ok(());
    }
    Err(io::Error::new(ErrorKind::PermissionDenied, "the other side belongs to another user"))
}

/// The process that made a connection, by a handle of the kernel: process ids are used again, a handle is not.
#[derive(Debug)]
pub struct PeerProcess {
    handle: OwnedFd,
}

impl PeerProcess {
    /// The process on the other side of a connection, if it has the same user. Linux alone has such handles; elsewhere a
    /// handle on nothing stands for it, as nothing runs agents there.
    ///
    /// # Errors
    /// When it has another user, or the kernel knows no process: one that has ended and was collected, or an old kernel.
    pub fn from_stream(stream: impl AsFd) -> io::Result<Self> {
        check_owner(&stream)?;
        Ok(Self { handle: peer_handle(stream.as_fd())? })
    }

    /// The handle.
    #[must_use]
    pub fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Whether the process has ended. Where that cannot be told, it has.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        if cfg!(not(target_os = "linux")) {
            return false;
        }
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut fds = [PollFd::new(&self.handle, PollFlags::IN)];
        let no_time = Timespec { tv_sec: 0, tv_nsec: 0 };
        loop {
            match poll(&mut fds, Some(&no_time)) {
                Ok(ready) => return ready > 0,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return true,
            }
        }
    }

    /// Its process id, for telling peers apart and for nothing else. None if it has ended.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        use std::os::fd::AsRawFd as _;
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", self.handle.as_raw_fd())).ok()?;
        info.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()
    }
}

#[cfg(target_os = "linux")]
fn peer_handle(stream: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    use std::os::fd::{AsRawFd as _, FromRawFd as _};
    const SO_PEERPIDFD: libc::c_int = 77; // as in the kernel's `asm-generic/socket.h`, since Linux 6.5
    let mut handle: libc::c_int = -1;
    let mut len = libc::socklen_t::try_from(size_of::<libc::c_int>()).expect("a few bytes");
    // SAFETY: `handle` is a number and as large as `len` says; both outlive the call.
    let code = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut handle).cast(),
            &raw mut len,
        )
    };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    if handle < 0 {
        return Err(ErrorKind::NotFound.into());
    }
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(handle) })
}

#[cfg(not(target_os = "linux"))]
fn peer_handle(_stream: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Ok(std::fs::File::open("/dev/null")?.into())
}

/// A socket's address holds about a hundred bytes. A longer path is reached through its folder, held open.
struct ShortSocketPath {
    path: PathBuf,
    _folder: Option<std::fs::File>,
}

const ADDRESS_BYTES_MAX: usize = 100; // `sun_path` has 104 to 108, with its closing zero

fn short_socket_path(path: &Path) -> io::Result<ShortSocketPath> {
    if path.as_os_str().len() <= ADDRESS_BYTES_MAX {
        return Ok(ShortSocketPath { path: path.to_owned(), _folder: None });
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let folder = std::fs::File::open(parent)?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&folder);
    let path = Path::new("/proc/self/fd").join(number.to_string()).join(name);
    Ok(ShortSocketPath { path, _folder: Some(folder) })
}

//! The socket of an engine: where it is made, and who is on the other side of it.
//!
//! Only processes of the same user are let in: the file is for its owner alone, and the peer is asked who it is.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Makes the socket of an engine, for its owner alone. An old one in its place is replaced: whoever calls this holds
/// the engine's lock, so nobody listens there.
///
/// # Errors
/// When the place cannot be written, or holds something that is not a socket.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
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
    // Made aside and moved into place, so that it is never there with wider rights, nor there and dead.
    let mut aside = path.as_os_str().to_owned();
    aside.push(".new");
    let aside = PathBuf::from(aside);
    match std::fs::remove_file(&aside) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(&short(&aside)?.path)?;
    std::fs::set_permissions(&aside, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(&aside, path)?;
    Ok(listener)
}

/// Connects to the socket of an engine, if its owner is who we are.
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(&short(path)?.path)?;
    check_peer(&stream)?;
    Ok(stream)
}

/// The process on the other side, if it is of the same user.
///
/// # Errors
/// When it is of another user, or cannot be asked.
pub fn check_peer(stream: impl AsFd) -> io::Result<i32> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    if peer.uid == rustix::process::geteuid() {
        return Ok(peer.pid.as_raw_nonzero().get());
    }
    Err(io::Error::new(ErrorKind::PermissionDenied, "the other side belongs to another user"))
}

/// A socket's address holds about a hundred bytes. A longer path is reached through its folder, held open.
struct Short {
    path: PathBuf,
    _folder: Option<std::fs::File>,
}

const ADDRESS_BYTES_MAX: usize = 100; // `sun_path` has 104 to 108, with its closing zero

fn short(path: &Path) -> io::Result<Short> {
    if path.as_os_str().len() <= ADDRESS_BYTES_MAX {
        return Ok(Short { path: path.to_owned(), _folder: None });
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let folder = std::fs::File::open(parent)?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&folder);
    let path = Path::new("/proc/self/fd").join(number.to_string()).join(name);
    Ok(Short { path, _folder: Some(folder) })
}

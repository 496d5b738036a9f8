//! Reads files that a user names: settings, flows, prompts, lists to import.
//!
//! What is found at the path may be a pipe that nobody writes, a device without an end, or a file that fills the memory.
//! So the file is opened without waiting, must be a regular file, and is read up to a limit. Links are followed: the user
//! chose the path.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The largest file of settings, flow or list that is read; a thousand tasks take a tenth of it.
pub const USER_FILE_BYTES_MAX: u64 = 1 << 20;

/// The bytes of a regular file of at most `bytes_max` bytes.
///
/// # Errors
/// When it cannot be opened, is not a regular file, or is larger. The message says which, and begins with "it".
pub fn read_user_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let (file, bytes_known) = open_regular(path)?;
    let too_large = |bytes: u64| {
        let text = format!("it has {bytes} bytes or more; the maximum is {bytes_max}");
        io::Error::new(io::ErrorKind::FileTooLarge, text)
    };
    if bytes_known > bytes_max {
        return Err(too_large(bytes_known));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 {
        count if count > bytes_max => Err(too_large(count)), // it grew, or the system did not know its length
        _ => Ok(bytes),
    }
}

/// The text of such a file.
///
/// # Errors
/// As [`read_user_file`], and when it is not UTF-8.
pub fn read_user_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read_user_file(path, bytes_max)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it is not UTF-8: the byte at offset {at} is invalid"),
        )
    })
}

fn open_regular(path: &Path) -> io::Result<(File, u64)> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let file = match opened {
        Ok(file) => file,
        // A socket cannot be opened, and the system's words for that are about a device.
        Err(error) => {
            return Err(match std::fs::metadata(path) {
                Ok(meta) if !meta.is_file() => not_regular(meta.file_type()),
                Ok(_) | Err(_) => error,
            });
        }
    };
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(not_regular(meta.file_type()));
    }
    Ok((file, meta.len()))
}

fn not_regular(kind: FileType) -> io::Error {
    let kind = match () {
        () if kind.is_dir() => "folder",
        () if kind.is_fifo() => "pipe",
        () if kind.is_socket() => "socket",
        () => "device",
    };
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is a {kind}, not a regular file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_up_to_the_limit_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let said = |path: &Path| match read_user_text(path, 10) {
            Ok(text) => text,
            Err(error) => format!("error: {error}"),
        };
        std::fs::write(at("small"), "0123456789").expect("written");
        std::fs::write(at("large"), "0123456789x").expect("written");
        std::fs::write(at("bytes"), b"ab\xff").expect("written");
        std::fs::create_dir(at("folder")).expect("made");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, mode, 0).expect("made");
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("bound");
        std::fs::File::create(at("sparse")).and_then(|file| file.set_len(1 << 40)).expect("made");
        for (link, target) in [("link", "small"), ("link-to-pipe", "pipe"), ("link-to-zero", "/dev/zero")] {
            std::os::unix::fs::symlink(target, at(link)).expect("linked");
        }
        let cases = [
            ("small", "0123456789"),
            ("link", "0123456789"),
            ("large", "error: it has 11 bytes or more; the maximum is 10"),
            ("sparse", "error: it has 1099511627776 bytes or more; the maximum is 10"),
            ("bytes", "error: it is not UTF-8: the byte at offset 2 is invalid"),
            ("folder", "error: it is a folder, not a regular file"),
            ("pipe", "error: it is a pipe, not a regular file"),
            ("link-to-pipe", "error: it is a pipe, not a regular file"),
            ("socket", "error: it is a socket, not a regular file"),
            ("link-to-zero", "error: it is a device, not a regular file"),
        ];
        for (name, expected) in cases {
            assert_eq!(said(&at(name)), expected, "{name}");
        }
        // A file of the system without a length that is known beforehand.
        let status = Path::new("/proc/self/status");
        assert!(!status.exists() || said(status).contains("11 bytes or more"), "{}", said(status));
        let missing = read_user_file(&at("missing"), 10).expect_err("it is not there");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}

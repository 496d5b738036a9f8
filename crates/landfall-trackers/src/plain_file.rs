//! Reads small files that others may have replaced: by a pipe that nobody writes, a device without an end, or a file that
//! fills the memory. So a file is opened without waiting, must be a regular one, and is read up to a limit.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The largest such file that is read: far more than a token, a counter or a lock.
const BYTES_MAX: u64 = 1 << 20;

/// Whether a link at the end of the path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkPolicy {
    /// The user chose the path, and secrets are often linked from elsewhere.
    Follow,
    /// The file is ours: a link in its place is not.
    Refuse,
}

/// The bytes of a regular file of at most 1 MiB.
pub(crate) fn read_plain(path: &Path, links: LinkPolicy) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_plain(path, links)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > BYTES_MAX {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 1 MiB")),
        false => Ok(bytes),
    }
}

/// The text of such a file.
pub(crate) fn read_plain_text(path: &Path, links: LinkPolicy) -> io::Result<String> {
    let not_utf8 = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8");
    String::from_utf8(read_plain(path, links)?).map_err(not_utf8)
}

fn open_plain(path: &Path, links: LinkPolicy) -> io::Result<File> {
    let no_link = match links {
        LinkPolicy::Follow => 0,
        LinkPolicy::Refuse => libc::O_NOFOLLOW,
    };
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | no_link;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_up_to_the_limit_are_read_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let (pipe, file, link) =
            (folder.path().join("pipe"), folder.path().join("file"), folder.path().join("link"));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .expect("a pipe can be made");
        std::fs::write(&file, "text").expect("a file");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        for links in [LinkPolicy::Follow, LinkPolicy::Refuse] {
            let refused = read_plain(&pipe, links).expect_err("nobody writes to it");
            assert_eq!(refused.to_string(), "it is not a regular file");
            assert!(read_plain(Path::new("/dev/zero"), links).is_err(), "it has no end");
            assert!(read_plain(folder.path(), links).is_err(), "a folder");
            assert_eq!(read_plain_text(&file, links).expect("readable"), "text");
        }
        assert_eq!(read_plain_text(&link, LinkPolicy::Follow).expect("readable"), "text");
        assert!(read_plain(&link, LinkPolicy::Refuse).is_err());
        std::fs::write(&file, vec![b'x'; (1 << 20) + 1]).expect("a file");
        assert!(read_plain(&file, LinkPolicy::Follow).is_err(), "too large");
    }
}

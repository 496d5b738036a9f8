//! Files that hold a secret: for their owner alone, never reached through a link, written aside and moved into place.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Why a file that holds a secret cannot be used.
#[derive(Debug, Error)]
pub enum SecretFileError {
    /// It cannot be read or written.
    #[error("use the key file `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Others could read it, or it is not a key file.
    #[error("the key file `{}` {what}", path.display())]
    Unsafe {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The system has no random numbers.
    #[error("make a key: {0}")]
    Random(String),
}

/// Reads a secret; none if there is no such file.
///
/// # Errors
/// When it is a link, is no regular file, belongs to another user, or others could read it.
pub fn read_secret_file(path: &Path) -> Result<Option<String>, SecretFileError> {
    let io = |source| SecretFileError::Io { path: path.to_owned(), source };
    let refuse = |what| Err(SecretFileError::Unsafe { path: path.to_owned(), what });
    // A pipe in its place must not be waited for, and a link must not be followed.
    let flags =
        i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits() | rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let mut file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return refuse("is a symbolic link; Landfall does not follow it");
        }
        Err(error) => return Err(io(error)),
    };
    let meta = file.metadata().map_err(io)?;
    if !meta.is_file() || meta.len() > FILE_BYTES_MAX {
        return refuse("is no key file");
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return refuse("belongs to another user");
    }
    if meta.mode() & 0o077 != 0 {
        return refuse("can be read by others; make it readable for its owner alone");
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(io)?;
    Ok(Some(text))
}

/// Writes a secret aside, for its owner alone, and moves it into place. A link in its place is replaced, not followed.
///
/// # Errors
/// When it cannot be written.
pub fn write_secret_file(path: &Path, text: &str) -> Result<(), SecretFileError> {
    let io = |source| SecretFileError::Io { path: path.to_owned(), source };
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!(".{}", std::process::id()));
    let aside = PathBuf::from(aside);
    match std::fs::remove_file(&aside) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(io(error)),
    }
    let mut file: File =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside).map_err(io)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(io)?;
    std::fs::rename(&aside, path).map_err(io)
}

/// Random bytes, written as hexadecimal digits.
///
/// # Errors
/// When the system has no random numbers.
pub fn random_hex<const N: usize>() -> Result<String, SecretFileError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| SecretFileError::Random(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

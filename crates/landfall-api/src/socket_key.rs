//! The key of an engine's socket: the proof that a client can read the state folder.
//!
//! Agents run as the same user, so the user of a peer says nothing. Every sandbox level hides the state folder, so only the
//! user's own processes can read the key there. Each engine makes a new key before it listens. A client connects first
//! and reads the key then: the key it reads belongs to the engine that it reached, or that engine has ended.

use std::fmt;
use std::path::{Path, PathBuf};

use subtle::ConstantTimeEq as _;

use crate::secret_file::{SecretFileError, random_hex, read_secret_file, write_secret_file};

const KEY_BYTES: usize = 32; // 256 bits: nobody guesses it

/// The key of an engine's socket. It is never shown.
#[derive(Clone)]
pub struct SocketKey(String);

impl fmt::Debug for SocketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SocketKey")
    }
}

impl SocketKey {
    /// Where the key of a socket is: beside it.
    #[must_use]
    pub fn key_path(socket: &Path) -> PathBuf {
        socket.with_extension("key")
    }

    /// Makes a new key for a socket. Every older key is worth nothing from then on.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(socket: &Path) -> Result<Self, SecretFileError> {
        let key = random_hex::<KEY_BYTES>()?;
        write_secret_file(&Self::key_path(socket), &format!("{key}\n"))?;
        Ok(Self(key))
    }

    /// Reads the key of a socket; none if its engine made none.
    ///
    /// # Errors
    /// When it cannot be read, others could read it, or it holds no key.
    pub fn read(socket: &Path) -> Result<Option<Self>, SecretFileError> {
        let path = Self::key_path(socket);
        let Some(text) = read_secret_file(&path)? else { return Ok(None) };
        let key = text.trim_end();
        if key.len() != KEY_BYTES * 2 || !key.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(SecretFileError::Unsafe { path, what: "holds no key" });
        }
        Ok(Some(Self(key.to_owned())))
    }

    /// Whether this is the key. Takes the same time for every wrong one.
    #[must_use]
    pub fn matches(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
    }

    /// The key, for the header of a request and for what hides secrets.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

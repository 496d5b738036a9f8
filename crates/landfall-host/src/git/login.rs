//! Who the person is to the forge a remote is on: asked of the forge's own tool, which keeps the login.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use thiserror::Error;

use super::run::{code_of, kill_group};
use crate::wait::wait_for_child;

/// Why the tool gave no token.
#[derive(Debug, Error)]
pub enum LoginError {
    /// It is not there, or cannot be started.
    #[error("`gh` cannot be started: {0}")]
    Missing(#[source] std::io::Error),
    /// It did not answer.
    #[error("`gh` did not answer within {} s", TIME_MAX.as_secs())]
    Silent,
    /// It knows no login for this host.
    #[error("`gh` knows no login for `{host}` (exit code {code})")]
    NoLogin {
        /// The host.
        host: String,
        /// How it ended.
        code: i32,
    },
}

const TIME_MAX: Duration = Duration::from_secs(10); // it reads a file, or asks a keyring
const TOKEN_BYTES_MAX: u64 = 4096;

/// The token the person is logged in with at this host. Whoever asks shows it to nobody.
///
/// # Errors
/// Why there is none.
pub fn read_login_token(host: &str) -> Result<String, LoginError> {
    let mut child = Command::new("gh")
        .args(["auth", "token", "--hostname", host])
        .env("GH_PROMPT_DISABLED", "1")
        .current_dir("/") // so that nothing in a checkout says where to look
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(LoginError::Missing)?;
    let out = child.stdout.take().expect("piped");
    let (send, receive) = mpsc::channel();
    // Not joined: what escapes from the group could hold the pipe open for ever.
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = out.take(TOKEN_BYTES_MAX).read_to_end(&mut bytes); // what was read counts
        let _ = send.send(bytes); // nobody waits any more
    });
    let deadline = Instant::now() + TIME_MAX;
    let bytes = receive.recv_timeout(TIME_MAX);
    let until = if bytes.is_ok() { deadline } else { Instant::now() };
    let code = wait_for_child(&mut child, until).ok().flatten().map(code_of);
    kill_group(&mut child);
    match (bytes, code) {
        (Ok(bytes), Some(0)) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        (_, Some(code)) => Err(LoginError::NoLogin { host: host.to_owned(), code }),
        (_, None) => Err(LoginError::Silent),
    }
}

//! The folder of one run: who sits in it, the name of its processes, and files that only the engine and the run may read.

use std::path::Path;
use std::time::{Duration, Instant};

use landfall_host::sitter::{self, FindError, SitterState};
use landfall_host::wait::FolderWatch;

use crate::host_context::HostContext;

/// What became of the sitter of `dir`, once it has had the time to say who it is.
pub(crate) fn wait_until_settled(dir: &Path) -> Result<SitterState, FindError> {
    const SPAN: Duration = Duration::from_secs(60); // on a busy machine; a sitter that dies lets go of the lock at once
    const PAUSE: Duration = Duration::from_millis(200); // for an end that leaves no trace in the folder
    let deadline = Instant::now() + SPAN;
    let mut watch = None;
    loop {
        match sitter::find_sitter(dir)? {
            SitterState::Starting if Instant::now() < deadline => {}
            found => return Ok(found),
        }
        match &watch {
            None => watch = Some(FolderWatch::new(dir)), // looked at once more: what changed before is not reported
            Some(watch) => {
                let _ = watch.wait(PAUSE); // looked at again either way
            }
        }
    }
}

/// Names every process of a run, so that what a dead sitter leaves behind can be found.
pub(crate) fn run_marker(site: &HostContext, dir: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = blake3::hash(site.folder.root().as_os_str().as_bytes()).to_hex();
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    format!("{}/{name}", &folder.as_str()[..12])
}

/// Writes a file that nobody else may read: it holds the key of a run.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}

/// A key for a run, and a name for a session of the agent: a UUID, because some insist on one.
pub(crate) fn key_and_session() -> std::io::Result<(String, String)> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (key, mut id) = (random_bytes()?, random_bytes()?);
    id[6] = id[6] & 0x0f | 0x40;
    id[8] = id[8] & 0x3f | 0x80;
    let id = hex(&id);
    let parts = [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]];
    Ok((hex(&key), parts.join("-")))
}

/// Sixteen bytes nobody can guess.
pub(crate) fn random_bytes() -> std::io::Result<[u8; 16]> {
    use std::io::Read as _;
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

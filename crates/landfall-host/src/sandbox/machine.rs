//! Folders that every program of this machine shares, and that a level with mounts of its own replaces or covers.

use super::words::{MissingFeature, SandboxSupport};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// What of the sandbox this machine has, tried once in the life of this process.
pub fn cached_probe() -> &'static Result<SandboxSupport, MissingFeature> {
    static PROBED: LazyLock<Result<SandboxSupport, MissingFeature>> = LazyLock::new(super::probe_sandbox);
    &PROBED
}

/// Whether this machine can isolate agents.
pub fn can_isolate() -> bool {
    // Asked by every command that reads the settings, so nothing more is tried than the answer needs.
    static CAN: LazyLock<bool> = LazyLock::new(super::is_isolation_supported);
    *CAN
}

/// Everybody's folders for temporary files. Sockets of terminal multiplexers, editors and agents are found in them.
pub fn shared_temporary_folders() -> Vec<PathBuf> {
    ["/tmp", "/var/tmp"].map(PathBuf::from).to_vec()
}

/// Where services have their sockets, and people their session.
pub fn runtime_folders() -> Vec<PathBuf> {
    let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    // A session that is everything cannot be covered.
    let session = session.filter(|path| path.parent().is_some());
    [PathBuf::from("/run")].into_iter().chain(session).collect()
}

/// What programs need of these folders: the addresses of name servers, and the links by which some systems find their
/// programs and drivers.
pub fn needed_runtime_files() -> Vec<PathBuf> {
    let linked = Path::new("/etc/resolv.conf").canonicalize();
    let links = ["/run/current-system", "/run/booted-system", "/run/opengl-driver", "/run/opengl-driver-32"];
    linked.into_iter().chain(links.map(PathBuf::from)).collect()
}

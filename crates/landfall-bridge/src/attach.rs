//! A person's way into the terminal of an agent.
//!
//! The terminal's server runs in the agent's sandbox, and a tmux client obeys its server: it runs a program when told to,
//! outside of any sandbox. The agent can reach that server. So the client gets a sandbox of its own before it
//! connects: it may read what belongs to the system, talk to the terminal it was started in, and nothing else.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use landfall_agents::tmux::AttachTarget;
use thiserror::Error;

/// Why nobody was attached.
#[derive(Debug, Error)]
pub enum AttachError {
    /// It is not in any folder of `PATH`.
    #[error("tmux is not installed")]
    NoTmux,
    /// The client cannot be confined.
    #[error("confine the terminal's client: {0}")]
    Unconfined(#[source] io::Error),
    /// It did not start.
    #[error("run tmux: {0}")]
    Exec(#[source] io::Error),
}

/// Becomes the client of this terminal; returns only if that fails.
pub fn attach_to_terminal(terminal: &AttachTarget, read_only: bool) -> AttachError {
    let Some(tmux) = find_program("tmux") else { return AttachError::NoTmux };
    let mut client = Command::new(&tmux);
    // In the folder of the socket: its whole path may be longer than an address can be.
    client
        .current_dir(&terminal.folder)
        .args(["-u", "-f", "/dev/null", "-S", &terminal.socket, "attach-session", "-t"])
        .arg(format!("={}", terminal.name))
        .env_remove("TMUX"); // a person may well be in a tmux of their own
    if read_only {
        client.arg("-r");
    }
    if let Err(error) = confine_thread(&tmux, &terminal.folder) {
        return AttachError::Unconfined(error);
    }
    AttachError::Exec(client.exec())
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute()); // not one of the repository
    let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file())?;
    found.canonicalize().ok()
}

// As in the kernel's `landlock.h`.
const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ: u64 = 1 << 2 | 1 << 3;
/// Everything about files that the first version knows.
const FILES: u64 = (1 << 13) - 1;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const NETWORK: u64 = 3;
const SCOPES: u64 = 3;
const VERSION: u32 = 1;
const RULE_PATH_BENEATH: i32 = 1;

#[repr(C)]
struct Ruleset {
    files: u64,
    network: u64,
    scopes: u64,
}

#[repr(C, packed)]
struct BridgePathBeneathAttr {
    access: u64,
    parent: i32,
}

/// Confines this thread, and what it becomes, for good.
fn confine_thread(tmux: &Path, folder: &Path) -> io::Result<()> {
    // SAFETY: asks for a number; no memory is passed.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, VERSION) };
    if version < 1 {
        return Err(io::Error::last_os_error());
    }
    let since = |first: i64, bits: u64| if version >= first { bits } else { 0 };
    let attr = Ruleset {
        files: FILES | since(2, REFER) | since(3, TRUNCATE),
        network: since(4, NETWORK),
        scopes: since(6, SCOPES),
    };
    // An older kernel refuses what it does not know, also by its size.
    let size: usize = match version {
        ..4 => 8,
        4..6 => 16,
        _ => 24,
    };
    // SAFETY: `attr` lives through the call and is at least `size` bytes long.
    let rules = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attr, size, 0_u32) };
    if rules < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor, and nobody else has it.
    let rules = unsafe { OwnedFd::from_raw_fd(i32::try_from(rules).expect("descriptors are small")) };
    for system in ["/usr", "/lib", "/lib64", "/bin", "/etc", "/nix", "/gnu"] {
        allow_path(&rules, Path::new(system), READ)?;
    }
    allow_path(&rules, folder, READ)?;
    allow_path(&rules, Path::new("/dev"), READ | WRITE_FILE)?;
    allow_path(&rules, tmux, EXECUTE | 1 << 2)?;
    match find_interpreter() {
        Some(loader) => allow_path(&rules, &loader, EXECUTE | 1 << 2)?,
        None => {
            for folder in ["/lib", "/lib64", "/usr/lib", "/usr/lib64"] {
                allow_path(&rules, Path::new(folder), EXECUTE | READ)?;
            }
        }
    }
    // SAFETY: no memory is passed.
    let no_more = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: no memory is passed; the descriptor is ours.
    let done = no_more == 0
        && unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0_u32) } == 0;
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Allows this below `path`. What is not there needs no leave.
fn allow_path(rules: &OwnedFd, path: &Path, access: u64) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `name` lives through the call and ends with a NUL.
    let parent = unsafe { libc::open(name.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
    if parent < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) };
    }
    // SAFETY: the kernel has just given us this descriptor, and nobody else has it.
    let parent = unsafe { OwnedFd::from_raw_fd(parent) };
    let rule = BridgePathBeneathAttr { access, parent: parent.as_raw_fd() };
    // SAFETY: `rule` lives through the call and has the shape of this kind of rule.
    let added = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            rules.as_raw_fd(),
            RULE_PATH_BENEATH,
            &raw const rule,
            0_u32,
        )
    };
    if added == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What loads programs here: the one that has loaded us.
fn find_interpreter() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let path = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|path| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name.starts_with("ld-") || name.starts_with("ld.so")
    })?;
    Some(PathBuf::from(path))
}

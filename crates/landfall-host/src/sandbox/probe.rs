//! What of the sandbox this machine has: for a person who asks before it matters, and for whoever chooses between ways.

use super::enter::{SandboxEntryError, SandboxEntryStep};
use super::mounts::{NamespaceSetup, Network};
use super::places::SandboxPaths;
use super::rules;
use super::setup::{OmittedSandboxPart, to_c_path};
use super::words::{CacheLayer, LayerChanges, MissingFeature, SandboxLevel, SandboxSupport};
use crate::disk;
use rustix::process::{Pid, WaitOptions, waitpid};
use std::os::fd::{AsRawFd as _, RawFd};
use std::path::Path;

/// Says what of the sandbox this machine has, by trying. Takes a millisecond or two and leaves nothing behind.
pub fn probe_sandbox() -> Result<SandboxSupport, MissingFeature> {
    let landlock = rules::check_landlock()?;
    // They need the same rights of the machine, but for the network: what the first cannot have, the second cannot either.
    let isolated = missing_for(SandboxLevel::Isolated);
    let strict = match &isolated {
        Some(missing) => Some(MissingFeature { level: SandboxLevel::Strict, ..missing.clone() }),
        None => missing_for(SandboxLevel::Strict),
    };
    Ok(SandboxSupport { landlock, isolated, strict })
}

/// Whether this machine can put up the level with mounts of its own and an open network.
pub(super) fn is_isolation_supported() -> bool {
    rules::check_landlock().is_ok() && missing_for(SandboxLevel::Isolated).is_none()
}

/// Tries in a child, as nobody comes back from a namespace of their own.
fn missing_for(level: SandboxLevel) -> Option<MissingFeature> {
    const MOUNTS: i32 = 128; // error numbers that matter are smaller, so both fit into an exit code
    let missing = |feature: String| Some(MissingFeature { level, feature });
    if OmittedSandboxPart::omitted_part_from_env() == Some(OmittedSandboxPart::Namespaces) {
        return missing(OmittedSandboxPart::NO_NAMESPACES.to_owned());
    }
    let network = if level == SandboxLevel::Strict { Network::None } else { Network::Open };
    let places = SandboxPaths::default();
    let prepared = rules::make_rules(&places, None)
        .and_then(|rules| Ok((rules, NamespaceSetup::new(&places, None, "probe", network)?)));
    let (rules, apart) = match prepared {
        Ok(prepared) => prepared,
        Err(refusal) => return missing(refusal.to_string()),
    };
    let tried = try_in_child(|| match enter_namespaces(&apart, rules.as_raw_fd()) {
        Ok(()) => 0,
        Err(SandboxEntryError { step: SandboxEntryStep::Mounts, errno }) => errno.clamp(1, 127) | MOUNTS,
        Err(SandboxEntryError { errno, .. }) => errno.clamp(1, 127),
    });
    match tried {
        Ok(Some(0)) => None,
        Ok(Some(code)) if code & MOUNTS != 0 => {
            Some(SandboxEntryStep::Mounts.missing_feature(level, code & !MOUNTS))
        }
        Ok(Some(errno)) => Some(SandboxEntryStep::Namespaces.missing_feature(level, errno)),
        Ok(None) => missing("a process that tried it was killed".to_owned()),
        Err(error) => missing(format!("start a process to try it: {error}")),
    }
}

/// Whether an overlay over `lower` can be put up whose changes go to `folder`, by trying: network disks, some disks in
/// containers, and overlays themselves cannot hold the changes of one, and not each folder can lie below one. Takes a few
/// milliseconds and leaves nothing behind.
pub fn can_overlay(folder: &Path, lower: &Path) -> bool {
    if matches!(
        OmittedSandboxPart::omitted_part_from_env(),
        Some(OmittedSandboxPart::Overlay | OmittedSandboxPart::Namespaces)
    ) {
        return false;
    }
    // Several threads may try at once, so each has a folder of its own.
    let made = std::fs::create_dir_all(folder).and_then(|()| disk::create_unique_folder(folder, ".overlay-"));
    let Ok(top) = made else { return false };
    let name = top.file_name().expect("it was made with a name").to_string_lossy().into_owned();
    let can = try_overlays(&top, lower, &name).unwrap_or(false);
    let _ = disk::remove_tree(&top); // what is left of it is empty folders in our own place
    can
}

/// Tries to change a file below a small overlay, and to make the new file `name` in one over `lower`.
fn try_overlays(top: &Path, lower: &Path, name: &str) -> std::io::Result<bool> {
    let stand_in = top.join("lower");
    std::fs::create_dir_all(&stand_in)?;
    std::fs::write(stand_in.join("file"), "")?;
    Ok(changes_go_to_upper(top, &stand_in, "file")? && changes_go_to_upper(&top.join("real"), lower, name)?)
}

fn changes_go_to_upper(top: &Path, lower: &Path, name: &str) -> std::io::Result<bool> {
    let [upper, work] = ["upper", "work"].map(|name| top.join(name));
    for folder in [&upper, &work] {
        std::fs::create_dir_all(folder)?;
    }
    let other = |refusal: super::setup::SandboxError| std::io::Error::other(refusal.to_string());
    let path = lower.canonicalize()?;
    let file = to_c_path(&path.join(name)).map_err(other)?;
    let changes = LayerChanges::Overlay { upper: upper.clone(), work };
    let places = SandboxPaths { layers: vec![CacheLayer { path, changes }], ..SandboxPaths::default() };
    let rules = rules::make_rules(&places, None).map_err(other)?;
    let apart = NamespaceSetup::new(&places, None, "probe", Network::Open).map_err(other)?;
    let tried = try_in_child(|| {
        const FLAGS: i32 = libc::O_WRONLY | libc::O_CREAT | libc::O_CLOEXEC;
        // SAFETY: a freshly forked child; the path outlives the call.
        let opened = || unsafe { libc::open(file.as_ptr(), FLAGS, 0o600) };
        match enter_namespaces(&apart, rules.as_raw_fd()) {
            Ok(()) if opened() != -1 => 0,
            Ok(()) | Err(_) => 1,
        }
    })?;
    Ok(tried == Some(0) && upper.join(name).exists())
}

fn enter_namespaces(apart: &NamespaceSetup, rules: RawFd) -> Result<(), SandboxEntryError> {
    // SAFETY: only called in a child that has just been forked.
    unsafe { apart.enter_namespaces(rules, false) }
}

/// Runs `attempt` in a child, and says with which code it ended; none if it was killed. `attempt` makes only system calls on
/// memory that exists already.
fn try_in_child(attempt: impl FnOnce() -> i32) -> std::io::Result<Option<i32>> {
    // SAFETY: as the child makes only system calls and leaves by `_exit`, it does not matter what other threads held at
    // the fork.
    let child = unsafe {
        match libc::fork() {
            0 => libc::_exit(attempt()),
            child => child,
        }
    };
    let Some(pid) = Pid::from_raw(child).filter(|_| child > 0) else {
        return Err(std::io::Error::last_os_error());
    };
    loop {
        match waitpid(Some(pid), WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(status) => return Ok(status.and_then(|(_, status)| status.exit_status())),
        }
    }
}

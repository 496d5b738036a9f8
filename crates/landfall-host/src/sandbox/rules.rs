//! What Landlock is told: which files may be read, and which changed.

use super::places::SandboxPaths;
use super::setup::{OmittedSandboxPart, SandboxError};
use super::words::{MissingFeature, SandboxLevel};
use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, Scope,
};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The oldest version with everything we ask for: the sixth keeps signals inside.
const NEEDED: ABI = ABI::V6;

/// The devices that every program expects, to read and to write. The folder of the terminals is none of them: what is typed
/// on a terminal could be read there. A level with mounts of its own has another such folder, with a rule for that.
/// No other: on the disk's own device root would find what is hidden, and there are cameras and keyboards.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/shm",
];

/// The version of Landlock in the kernel, 0 if there is none.
pub(super) fn landlock_version() -> u32 {
    const ASK: libc::c_long = 1; // as in the kernel's `landlock.h`
    // SAFETY: asked for the version, the kernel reads no memory.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0 as libc::c_long, ASK)
    };
    u32::try_from(version).unwrap_or(0)
}

/// Whether Landlock can do what we ask of it.
pub(super) fn check_landlock() -> Result<u32, MissingFeature> {
    let version = landlock_version();
    let missing = |feature: String| Err(MissingFeature { level: SandboxLevel::Write, feature });
    match version {
        0 => missing("Landlock is not enabled in this kernel (it must be in the `lsm=` list)".to_owned()),
        version if version < NEEDED as u32 => missing(format!(
            "Landlock has version {version} here, and only version {} (Linux 6.12) keeps signals inside",
            NEEDED as u32
        )),
        version => Ok(version),
    }
}

/// Everything that changes a file or a folder, and reads it. Device files cannot be made: as root, one for the disk
/// would be a way around all of this.
fn change_access() -> BitFlags<AccessFs> {
    AccessFs::from_all(NEEDED) & !(AccessFs::MakeChar | AccessFs::MakeBlock)
}

fn read_access() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute
}

/// What a place gets that others can change as well: a file in it is not linked or moved to another folder. Else it would be in
/// both, for whoever can write one of them.
fn change_in_place() -> BitFlags<AccessFs> {
    change_access() & !AccessFs::Refer
}

/// The rights on what is changed and is the run's alone, as the kernel's number: for rules that only the child can add.
pub(super) fn change_bits() -> u64 {
    change_access().bits()
}

/// The rights to make, replace and remove files, but not to read what others have put below, as the kernel's number.
pub(super) fn make_bits() -> u64 {
    let make = AccessFs::MakeReg | AccessFs::MakeDir | AccessFs::RemoveFile | AccessFs::RemoveDir;
    (make | AccessFs::WriteFile | AccessFs::Truncate).bits()
}

/// Makes the rules. They bind whoever enters them, and are complete but for mounts that the child will make.
pub(super) fn make_rules(
    places: &SandboxPaths,
    broken: Option<OmittedSandboxPart>,
) -> Result<OwnedFd, SandboxError> {
    let failed = |error: &dyn std::fmt::Display| SandboxError::Failed {
        doing: format!("make the Landlock rules: {error}"),
        errno: 0,
    };
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))
        .and_then(|ruleset| match broken {
            Some(OmittedSandboxPart::Signals) => Ok(ruleset),
            _ => ruleset.scope(Scope::Signal),
        })
        .and_then(|ruleset| ruleset.scope(Scope::AbstractUnixSocket))
        .and_then(|ruleset| ruleset.create())
        .map_err(|error| failed(&error))?;
    let hide = places.hide.iter().chain(&places.private).map(|path| path.as_path());
    let hide = hide.chain([Path::new("/dev")]).collect();
    let mut rules = LandlockRules { ruleset, hide };
    rules.allow_path(Path::new("/"), AccessFs::ReadDir.into())?; // names are not kept from anyone, see the module
    rules.allow_reading(Path::new("/"))?;
    for path in &places.read {
        rules.allow_reading(path)?;
    }
    for path in places.write.iter().map(|path| path.as_path()).chain(DEVICES.map(Path::new)) {
        rules.allow_path(path, change_in_place())?;
    }
    for path in &places.exclusive {
        rules.allow_path(path, change_access())?;
    }
    Option::<OwnedFd>::from(rules.ruleset).ok_or_else(|| failed(&"the kernel gave none"))
}

/// The right to speak to a socket by its path, and the first version with it. The kernel asks about servers outside of the
/// tree only.
const RESOLVE_UNIX: u64 = 1 << 16;
const RESOLVE_UNIX_SINCE: u32 = 9;
/// The right to move files between folders, which each layer has to give again.
const REFER: u64 = 1 << 13;

/// Which sockets may be spoken to: `socket`, and those in places to write. None if the kernel cannot tell sockets apart.
pub(super) fn socket_rules(
    places: &SandboxPaths,
    socket: Option<&Path>,
) -> Result<Option<OwnedFd>, SandboxError> {
    use std::os::fd::{AsRawFd as _, FromRawFd as _};
    let Some(handled) = handled_for_sockets(landlock_version()) else { return Ok(None) };
    let failed = |doing: &str| SandboxError::Failed {
        doing: format!("make the Landlock rules for sockets: {doing}"),
        errno: std::io::Error::last_os_error().raw_os_error().unwrap_or(0),
    };
    // SAFETY: the kernel reads the one number that it is given the length of.
    let made = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            &raw const handled,
            size_of::<u64>(),
            0 as libc::c_long,
        )
    };
    let made = i32::try_from(made).ok().filter(|made| *made >= 0).ok_or_else(|| failed("create them"))?;
    // SAFETY: the kernel has just given it to us.
    let rules = unsafe { OwnedFd::from_raw_fd(made) };
    for (path, access) in socket_places(places, socket) {
        let Ok(file) = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else {
            continue;
        };
        let rule = PathBeneathAttr { access, folder: file.as_raw_fd() };
        // SAFETY: the rule outlives the call.
        if unsafe { rule.add_to_rules(rules.as_raw_fd()) } < 0 {
            return Err(failed(&format!("add `{}`", path.display())));
        }
    }
    Ok(Some(rules))
}

/// What the rules for sockets are about, by the version of the kernel; none if it knows no such rules.
fn handled_for_sockets(version: u32) -> Option<u64> {
    (version >= RESOLVE_UNIX_SINCE).then_some(RESOLVE_UNIX | REFER)
}

/// Where sockets may be spoken to: in places to write, and the run's own. Moves between folders are left to the other rules.
fn socket_places<'a>(
    places: &'a SandboxPaths,
    socket: Option<&'a Path>,
) -> impl Iterator<Item = (&'a Path, u64)> {
    let write = places.write.iter().map(|path| path.as_path());
    let sockets = write.chain(socket).map(|path| (path, RESOLVE_UNIX));
    sockets.chain([(Path::new("/"), REFER)])
}

/// A rule as in the kernel's `landlock.h`: eight bytes and four, without a gap behind.
#[repr(C, packed)]
pub(super) struct PathBeneathAttr {
    pub(super) access: u64,
    pub(super) folder: i32,
}

impl PathBeneathAttr {
    /// Adds it, and says what the kernel said.
    ///
    /// # Safety
    /// Allocates nothing, so a freshly forked child may call it.
    pub(super) unsafe fn add_to_rules(&self, rules: i32) -> libc::c_long {
        const PATH_BENEATH: libc::c_long = 1;
        let rule = std::ptr::from_ref(self);
        // SAFETY: the rule outlives the call.
        unsafe { libc::syscall(libc::SYS_landlock_add_rule, rules, PATH_BENEATH, rule, 0 as libc::c_long) }
    }
}

struct LandlockRules<'a> {
    ruleset: RulesetCreated,
    hide: Vec<&'a Path>,
}

impl LandlockRules<'_> {
    /// Allows to read `path` and what is below it, apart from what is hidden there.
    fn allow_reading(&mut self, path: &Path) -> Result<(), SandboxError> {
        if self.hide.contains(&path) {
            return Ok(());
        }
        if !self.hide.iter().any(|hidden| hidden.starts_with(path)) {
            return self.allow_path(path, read_access());
        }
        match fs::read_dir(path) {
            Ok(entries) => {
                for entry in entries.flatten() {
                    // What a link leads to has rules, or none, of its own.
                    if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                        self.allow_reading(&entry.path())?;
                    }
                }
            }
            // Its neighbours are not ours to list; then the agent does without them too.
            Err(_) => {
                let below = |hidden: &&Path| Some(path.join(hidden.strip_prefix(path).ok()?.iter().next()?));
                let next: Vec<PathBuf> = self.hide.iter().filter_map(below).collect();
                for path in next {
                    self.allow_reading(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Allows `access` at `path` and below; nothing if there is nothing.
    fn allow_path(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), SandboxError> {
        let failed = |doing: String, errno| Err(SandboxError::Failed { doing, errno });
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(file) => file,
            // Gone since it was listed, or not for our eyes either.
            Err(Errno::NOENT | Errno::ACCESS | Errno::NOTDIR) => return Ok(()),
            Err(error) => return failed(format!("open `{}`", path.display()), error.raw_os_error()),
        };
        let kind = rustix::fs::fstat(&file).map(|stat| FileType::from_raw_mode(stat.st_mode));
        let access = match kind {
            Ok(FileType::Directory) => access,
            Ok(FileType::Symlink) => return Ok(()),
            Ok(_) => access & AccessFs::from_file(NEEDED),
            Err(error) => return failed(format!("look at `{}`", path.display()), error.raw_os_error()),
        };
        if access.is_empty() {
            return Ok(());
        }
        match (&mut self.ruleset).add_rule(PathBeneath::new(&file, access)) {
            Ok(_) => Ok(()),
            Err(error) => failed(format!("make a Landlock rule for `{}`: {error}", path.display()), 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_landlock_9_on_only_own_sockets_can_be_spoken_to() {
        for version in [0, 6, 7, 8] {
            assert_eq!(handled_for_sockets(version), None, "{version}");
        }
        for version in [9, 10, 99] {
            assert_eq!(handled_for_sockets(version), Some(RESOLVE_UNIX | REFER), "{version}");
        }
        let places = SandboxPaths {
            write: vec!["/state/T1".into(), "/tmp/run".into()],
            read: vec!["/home/me/.cargo".into()],
            hide: vec!["/home/me".into()],
            ..SandboxPaths::default()
        };
        let found: Vec<_> = socket_places(&places, Some(Path::new("/state/runs/1/signal.sock"))).collect();
        let own = ["/state/T1", "/tmp/run", "/state/runs/1/signal.sock"];
        let expected = own.map(|path| (Path::new(path), RESOLVE_UNIX));
        assert_eq!(found[..3], expected);
        // What another layer of rules allows stays allowed: a layer that handles moves has to give them again.
        assert_eq!(found[3..], [(Path::new("/"), REFER)]);
    }

    /// The kernel says which rights it does not know. Older ones are never asked.
    #[test]
    fn the_right_is_one_that_this_kernel_knows_or_refuses() {
        let made = socket_rules(&SandboxPaths::default(), None).expect("it can be made, or is not asked for");
        assert_eq!(made.is_some(), landlock_version() >= RESOLVE_UNIX_SINCE);
    }
}

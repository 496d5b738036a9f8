//! The trial: inside the sandbox, before the program runs, what must fail is tried. A sandbox that was set up without an
//! error and does not hold is the worst of all: everybody trusts it.

use super::enter::{SYS_ADMIN, SandboxEntryError, SandboxEntryStep, check_result, halt_at};
use super::places::{PathAccess, SandboxPaths, resolve_existing};
use super::setup::{SandboxError, to_c_path};
use super::words::SandboxLevel;
use std::ffi::CString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What is tried.
pub(super) struct SandboxTrial {
    /// Files that must not come to be.
    write: Vec<ClosedFile>,
    /// Files that we can read, and the agent must not: one for each hidden place that has any.
    read: Vec<HiddenFile>,
    /// Us: the same user, so only the sandbox stands between.
    sitter: libc::pid_t,
    /// What is hidden may not be there at all, and nothing stands for it either.
    has_mounts: bool,
    has_network: bool,
}

struct ClosedFile {
    path: CString,
    /// Where it would be if it were no folder of the child's own.
    device: libc::dev_t,
    /// Whether the child has a folder of its own there, see [`Places::is_scratch`].
    is_scratch: bool,
}

struct HiddenFile {
    path: CString,
    /// Which file it is: something else in its place is fine.
    device: libc::dev_t,
    inode: libc::ino_t,
}

/// How many entries of a hidden folder are looked through for a file to try, and how deep. A folder without one near its top
/// is not tried: it is the rule about the folder that is tried, not each file.
const ENTRIES_MAX: usize = 64;
const DEPTH_MAX: usize = 3;

impl SandboxTrial {
    pub(super) fn new(
        places: &SandboxPaths,
        run: &Path,
        level: SandboxLevel,
    ) -> Result<SandboxTrial, SandboxError> {
        // A name that nobody has put there before us, to be refused for that instead.
        let name = format!(".landfall-trial-{}", std::process::id());
        let run = resolve_existing(run);
        // The run's own folder is ours to write, so only the sandbox can refuse it; so is, mostly, what lies beside the
        // first place that is open.
        let is_open = |path: &Path| {
            matches!(
                places.access_at(path),
                Some(PathAccess::Write | PathAccess::Layer | PathAccess::Private)
            )
        };
        let beside = places.write.first().and_then(|path| path.parent()).filter(|path| !is_open(path));
        let write = [Some(run.as_path()), beside].into_iter().flatten().map(|folder| {
            let device = std::fs::metadata(folder).map_or(0, |meta| meta.dev()); // what is gone has no files
            let is_scratch = level.has_mounts() && places.is_scratch(folder);
            Ok(ClosedFile { path: to_c_path(&folder.join(&name))?, device, is_scratch })
        });
        let spec = run.join("spec.json");
        let search = HiddenFileSearch { places, open: open_identities(places) };
        let mut left = ENTRIES_MAX;
        let own = search.find_file(&spec, 0, &mut left);
        let read = places.hide.iter().filter_map(|path| {
            let mut left = ENTRIES_MAX;
            search.find_file(path, DEPTH_MAX, &mut left)
        });
        let read = own.into_iter().chain(read).map(|(path, meta)| {
            Ok(HiddenFile { path: to_c_path(&path)?, device: meta.dev(), inode: meta.ino() })
        });
        let sitter = libc::pid_t::try_from(std::process::id()).expect("process ids are small");
        Ok(SandboxTrial {
            write: write.collect::<Result<_, SandboxError>>()?,
            read: read.collect::<Result<_, SandboxError>>()?,
            sitter,
            has_mounts: level.has_mounts(),
            has_network: level != SandboxLevel::Strict,
        })
    }

    /// Tries it all.
    ///
    /// # Safety
    /// Only in a freshly forked child. Allocates nothing.
    pub(super) unsafe fn run_trial(&self) -> Result<(), SandboxEntryError> {
        let halted = |step, errno| Err(SandboxEntryError { step, errno });
        // SAFETY: plain system calls on numbers and on memory that `self` keeps alive.
        unsafe {
            let errno = || *libc::__errno_location();
            for closed in &self.write {
                let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
                let file = libc::open(closed.path.as_ptr(), flags, 0o600);
                if file != -1 {
                    let mut stat: libc::stat = std::mem::zeroed();
                    let is_known = libc::fstat(file, &raw mut stat) == 0;
                    libc::close(file);
                    libc::unlink(closed.path.as_ptr());
                    // A file of its own is fine, as long as it is not on the disk of the closed folder.
                    if closed.is_scratch && is_known && stat.st_dev != closed.device {
                        continue;
                    }
                    return halted(SandboxEntryStep::TrialWrite, 0);
                }
                match errno() {
                    libc::EACCES | libc::EROFS | libc::EPERM => {}
                    libc::ENOENT if self.has_mounts => {}
                    other => return halted(SandboxEntryStep::TrialWrite, other), // refused for another reason: nothing is shown
                }
            }
            for hidden in &self.read {
                let file =
                    libc::open(hidden.path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK);
                if file != -1 {
                    let mut stat: libc::stat = std::mem::zeroed();
                    let is_known = libc::fstat(file, &raw mut stat) == 0;
                    libc::close(file);
                    // Nothing may stand for it, as the mounts see to it; but never the file itself.
                    let is_other = is_known && (stat.st_dev, stat.st_ino) != (hidden.device, hidden.inode);
                    if self.has_mounts && is_other {
                        continue;
                    }
                    return halted(SandboxEntryStep::TrialRead, 0);
                }
                match errno() {
                    libc::EACCES | libc::EPERM => {}
                    libc::ENOENT => {} // not there for the agent, or gone meanwhile
                    other => return halted(SandboxEntryStep::TrialRead, other),
                }
            }
            // No signal at all, but the same question as for one.
            if libc::kill(self.sitter, 0) == 0 {
                return halted(SandboxEntryStep::TrialSignal, 0);
            }
            if errno() != libc::EPERM {
                return halt_at(SandboxEntryStep::TrialSignal);
            }
            // Nothing is meant by these arguments; without the filter the error would be another one.
            let entered = libc::syscall(libc::SYS_setns, -1, 0);
            if entered == 0 || errno() != libc::EPERM {
                return halt_at(SandboxEntryStep::TrialCall);
            }
            if libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1
                || (libc::geteuid() == 0 && libc::prctl(libc::PR_CAPBSET_READ, SYS_ADMIN, 0, 0, 0) != 0)
            {
                return halted(SandboxEntryStep::TrialPrivileges, 0);
            }
            if self.has_network { Ok(()) } else { no_network() }
        }
    }
}

/// Looks for files that we can read and the agent must not.
struct HiddenFileSearch<'a> {
    places: &'a SandboxPaths,
    /// Which files and folders are open under any name.
    open: Vec<OpenFileId>,
}

/// A file system and a number in it.
type OpenFileId = (libc::dev_t, libc::ino_t);

fn identity_of(meta: &Metadata) -> OpenFileId {
    (meta.dev(), meta.ino())
}

/// The places that are open. A mount shows some of them under a second name, where they are hidden only at a level with mounts:
/// rules of Landlock belong to the folder and not to its name.
fn open_identities(places: &SandboxPaths) -> Vec<OpenFileId> {
    let layers = places.layers.iter().map(|layer| &layer.path);
    let open = places.write.iter().chain(&places.read).chain(layers);
    open.filter_map(|path| std::fs::metadata(path).ok()).map(|meta| identity_of(&meta)).collect()
}

impl HiddenFileSearch<'_> {
    /// A plain file at or below a hidden place.
    fn find_file(&self, path: &Path, depth: usize, left: &mut usize) -> Option<(PathBuf, Metadata)> {
        if *left == 0 || self.places.access_at(path) != Some(PathAccess::Hidden) {
            return None;
        }
        *left -= 1;
        let meta = std::fs::symlink_metadata(path).ok()?;
        if self.open.contains(&identity_of(&meta)) {
            return None;
        }
        if meta.is_file() {
            return std::fs::File::open(path).is_ok().then(|| (path.to_owned(), meta));
        }
        if !meta.is_dir() || depth == 0 {
            return None;
        }
        let entries = std::fs::read_dir(path).ok()?.flatten();
        entries.take(ENTRIES_MAX).find_map(|entry| self.find_file(&entry.path(), depth - 1, left))
    }
}

/// Sends nothing: to connect a datagram socket is only to look for a way there.
unsafe fn no_network() -> Result<(), SandboxEntryError> {
    const LOOPBACK: [u8; 4] = [127, 0, 0, 1];
    const ELSEWHERE: [u8; 4] = [192, 0, 2, 1]; // an address that is nobody's, for documents
    for address in [LOOPBACK, ELSEWHERE] {
        // SAFETY: the address outlives the call that reads it.
        unsafe {
            let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
            if socket == -1 {
                match *libc::__errno_location() {
                    libc::EAFNOSUPPORT => continue, // a kernel without it
                    _ => return halt_at(SandboxEntryStep::TrialNetwork),
                }
            }
            let mut to: libc::sockaddr_in = std::mem::zeroed();
            to.sin_family = libc::AF_INET as libc::sa_family_t;
            to.sin_port = 9u16.to_be();
            to.sin_addr.s_addr = u32::from_ne_bytes(address);
            let len = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            let connected = libc::connect(socket, (&raw const to).cast(), len);
            let errno = *libc::__errno_location();
            check_result(SandboxEntryStep::TrialNetwork, libc::close(socket).into())?;
            if connected == 0 || errno != libc::ENETUNREACH {
                let errno = if connected == 0 { 0 } else { errno };
                return Err(SandboxEntryError { step: SandboxEntryStep::TrialNetwork, errno });
            }
        }
    }
    Ok(())
}

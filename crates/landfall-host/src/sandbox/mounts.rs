//! A world apart, for the levels with namespaces: in them the machine is read-only, without what is hidden, and without the
//! services that listen on it.
//!
//! Landlock cannot do these: it does not look at the change of owners, rights and times, nor at names, nor (before its
//! version 9) at sockets that have a path. It still applies, so each part would have to fail in both.

use super::enter::{SandboxEntryError, SandboxEntryStep, check_result, halt_at};
use super::places::{PathAccess, SandboxPaths, resolve_existing};
use super::rules::{self, PathBeneathAttr};
use super::setup::{SandboxError, to_c_path};
use super::words::LayerChanges;
use std::cell::Cell;
use std::cmp::Reverse;
use std::ffi::OsStr;
use std::ffi::{CStr, CString};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// Whether the child keeps the machine's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Network {
    Open,
    None,
}

/// What the child does to its own view of the machine.
pub(super) struct NamespaceSetup {
    network: Network,
    user_map: CString,
    group_map: CString,
    /// What all mounts of the run are called: by it a process is known that has nothing else to be known by.
    source: CString,
    /// From the top down, as what lies below is put into what lies above.
    layers: Vec<MountLayer>,
    /// Sockets that someone listens on.
    sockets: Vec<CString>,
}

/// One place that the child sees otherwise than we do.
struct MountLayer {
    path: CString,
    what: LayerKind,
    /// Folders, and last the place itself, to be made in the empty folder around it.
    points: Vec<MountPoint>,
}

enum LayerKind {
    /// An empty folder that nobody can write.
    Empty,
    /// An empty folder in which the child may make files. They are gone when it ends.
    Scratch,
    /// An empty folder of the child's own.
    Private,
    /// Nothing in place of a file.
    Covered,
    /// The place as it is: taken aside before all else, and put back.
    Kept { is_read_only: bool, tree: Cell<RawFd> },
    /// The place with changes that go elsewhere.
    Changed { by: Changes, tree: Cell<RawFd> },
}

/// Where changes go, as the kernel takes it.
enum Changes {
    Overlay { upper: CString, work: CString },
    Copy(CString),
}

impl Changes {
    fn new(changes: &LayerChanges) -> Result<Changes, SandboxError> {
        Ok(match changes {
            LayerChanges::Overlay { upper, work } => {
                Changes::Overlay { upper: to_c_path(upper)?, work: to_c_path(work)? }
            }
            LayerChanges::Copy(folder) => Changes::Copy(to_c_path(folder)?),
        })
    }

    /// What is to be seen at `path`, to be put there.
    unsafe fn make_mount_tree(&self, source: &CStr, path: &CStr) -> Result<RawFd, SandboxEntryError> {
        // SAFETY: all texts outlive the calls.
        unsafe {
            match self {
                Changes::Overlay { upper, work } => create_overlay(source, path, upper, work),
                Changes::Copy(folder) => clone_mount_tree(folder),
            }
        }
    }
}

struct MountPoint {
    path: CString,
    is_folder: bool,
}

/// Of a private folder. Large files belong in the folder for temporary files that each run has on disk.
const PRIVATE: &CStr = c"mode=1777,size=1g";
/// Of a folder around a file of the program's own: room for a lock and for the next version of that file.
const SCRATCH: &CStr = c"mode=0755,size=64m";

impl NamespaceSetup {
    pub(super) fn new(
        places: &SandboxPaths,
        socket: Option<&Path>,
        run_name: &str,
        network: Network,
    ) -> Result<NamespaceSetup, SandboxError> {
        let socket = socket.map(resolve_existing);
        let socket_entry = socket.as_ref().map(|socket| (socket, PathAccess::Read));
        let mut entries: Vec<(&PathBuf, PathAccess)> = places.all_entries().chain(socket_entry).collect();
        // Of two entries for the same path, the one that opens more counts, as in `Places::access`.
        entries.sort_by_key(|(path, access)| (path.components().count(), *path, Reverse(*access)));
        entries.dedup_by_key(|(path, _)| *path);
        let mut layers = Vec::new();
        for (path, access) in entries {
            layers.extend(MountLayer::new(places, path, access)?);
        }
        let stays = |path: &Path| {
            Some(path) == socket.as_deref()
                || matches!(
                    places.access_at(path),
                    Some(PathAccess::Hidden | PathAccess::Private | PathAccess::Write)
                )
        };
        // As bytes: anybody can bind a socket whose name is not UTF-8. A list that cannot be read covers nothing.
        let list = std::fs::read("/proc/net/unix")
            .map_err(|error| SandboxError::Places(format!("read the list of sockets: {error}")))?;
        let sockets = listening_paths(&list)
            // One that was bound by a relative path, or is gone by now, is not to be found under its name.
            .filter(|path| std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_socket()))
            .map(|path| resolve_existing(&path))
            .filter(|path| !stays(path))
            .map(|path| to_c_path(&path))
            .collect::<Result<_, _>>()?;
        let map = |id: u32| CString::new(format!("{id} {id} 1")).expect("digits");
        Ok(NamespaceSetup {
            network,
            user_map: map(rustix::process::geteuid().as_raw()),
            group_map: map(rustix::process::getegid().as_raw()),
            source: CString::new(run_name).expect("letters and digits"),
            layers,
            sockets,
        })
    }

    /// Goes there. Rules for what is mounted on the way are added to `rules`.
    ///
    /// # Safety
    /// Only in a freshly forked child. Allocates nothing.
    pub(super) unsafe fn enter_namespaces(
        &self,
        rules: RawFd,
        keeps_network: bool,
    ) -> Result<(), SandboxEntryError> {
        // SAFETY: plain system calls on numbers and on memory that `self` keeps alive.
        unsafe {
            self.unshare_namespaces(keeps_network)?;
            let attributes = |set: u64, propagation: u64| -> libc::mount_attr {
                let mut it: libc::mount_attr = std::mem::zeroed();
                it.attr_set = set;
                it.propagation = propagation;
                it
            };
            let everywhere = libc::AT_RECURSIVE as libc::c_uint;
            set_mount_attributes(libc::AT_FDCWD, c"/", everywhere, &attributes(0, libc::MS_PRIVATE))?;
            // Before anything is read-only: what an overlay is made of must not be.
            for layer in &self.layers {
                match &layer.what {
                    LayerKind::Kept { tree, .. } => tree.set(clone_mount_tree(&layer.path)?),
                    LayerKind::Changed { by, tree } => {
                        tree.set(by.make_mount_tree(&self.source, &layer.path)?)
                    }
                    LayerKind::Empty | LayerKind::Scratch | LayerKind::Private | LayerKind::Covered => {}
                }
            }
            let read_only = attributes(libc::MOUNT_ATTR_RDONLY, 0);
            set_mount_attributes(libc::AT_FDCWD, c"/", everywhere, &read_only)?;
            for layer in &self.layers {
                for point in &layer.points {
                    point.create_mount_point()?;
                }
                match &layer.what {
                    LayerKind::Empty => mount_empty_folder(&self.source, &layer.path, c"mode=0755,size=1m")?,
                    LayerKind::Scratch => {
                        mount_empty_folder(&self.source, &layer.path, SCRATCH)?;
                        allow_mount(rules, &layer.path, rules::make_bits())?;
                    }
                    LayerKind::Private => {
                        mount_empty_folder(&self.source, &layer.path, PRIVATE)?;
                        allow_mount(rules, &layer.path, rules::change_bits())?;
                    }
                    LayerKind::Covered => cover_file(&layer.path)?,
                    LayerKind::Kept { is_read_only, tree } => {
                        if *is_read_only {
                            let flags = everywhere | libc::AT_EMPTY_PATH as libc::c_uint;
                            set_mount_attributes(tree.get(), c"", flags, &read_only)?;
                        }
                        move_mount(tree.get(), &layer.path)?;
                    }
                    LayerKind::Changed { tree, .. } => {
                        move_mount(tree.get(), &layer.path)?;
                        // A rule for the folder below does not reach what is put over it.
                        allow_mount(rules, &layer.path, rules::change_bits())?;
                    }
                }
            }
            // Only now: until here the places below were made in them.
            for layer in self.layers.iter().filter(|layer| matches!(layer.what, LayerKind::Empty)) {
                match set_mount_attributes(libc::AT_FDCWD, &layer.path, 0, &read_only) {
                    // Never mounted, see `empty`: not within the agent's reach either.
                    Err(SandboxEntryError { errno: libc::EACCES | libc::ENOENT, .. }) => {}
                    other => other?,
                }
            }
            for socket in &self.sockets {
                cover_file(socket)?;
            }
            own_devices(&self.source, rules)
        }
    }

    /// Root has the right to; anyone else has it in a user namespace of their own, where they are who they were.
    unsafe fn unshare_namespaces(&self, keeps_network: bool) -> Result<(), SandboxEntryError> {
        let is_open = keeps_network || self.network == Network::Open;
        let network = if is_open { 0 } else { libc::CLONE_NEWNET };
        let flags = libc::CLONE_NEWNS | libc::CLONE_NEWIPC | network;
        // SAFETY: a child with one thread may leave its namespaces; the texts outlive the calls.
        unsafe {
            if libc::unshare(flags) == 0 {
                return Ok(());
            }
            check_result(SandboxEntryStep::Namespaces, libc::unshare(libc::CLONE_NEWUSER | flags).into())?;
            write_file(c"/proc/self/setgroups", c"deny")?;
            write_file(c"/proc/self/uid_map", &self.user_map)?;
            write_file(c"/proc/self/gid_map", &self.group_map)
        }
    }
}

impl MountLayer {
    /// None if the place looks as it should already.
    fn new(
        places: &SandboxPaths,
        path: &Path,
        access: PathAccess,
    ) -> Result<Option<MountLayer>, SandboxError> {
        let around = places.access_around(path);
        let is_folder = path.is_dir();
        let what = match (access, around.map(|(_, access)| access)) {
            // In a private folder everything could be written, so what is open there needs something closed around it.
            (PathAccess::Hidden, Some(PathAccess::Private)) if is_folder && places.has_open_below(path) => {
                LayerKind::Empty
            }
            // It lies in something that is empty anyway.
            (PathAccess::Hidden | PathAccess::Private, Some(PathAccess::Hidden | PathAccess::Private)) => {
                return Ok(None);
            }
            (PathAccess::Hidden | PathAccess::Private, _) if !path.exists() => return Ok(None),
            // Programs replace a file by a lock and a rename beside it, and some give up where they can make neither.
            (PathAccess::Hidden, _) if is_folder && places.has_own_file_in(path) => LayerKind::Scratch,
            (PathAccess::Hidden, _) if is_folder => LayerKind::Empty,
            (PathAccess::Hidden, _) => LayerKind::Covered,
            (PathAccess::Private, _) => LayerKind::Private,
            // As all the rest.
            (PathAccess::Read, None | Some(PathAccess::Read)) => return Ok(None),
            (PathAccess::Read, Some(_)) => LayerKind::Kept { is_read_only: true, tree: Cell::new(-1) },
            (PathAccess::Layer, _) => {
                let layer = places.layers.iter().find(|layer| layer.path == path);
                let by = Changes::new(&layer.expect("its entry was made of it").changes)?;
                LayerKind::Changed { by, tree: Cell::new(-1) }
            }
            (PathAccess::Write, Some(PathAccess::Write)) => return Ok(None),
            (PathAccess::Write, _) => LayerKind::Kept { is_read_only: false, tree: Cell::new(-1) },
        };
        let mut points = Vec::new();
        if let Some((mut empty, mut kind @ (PathAccess::Hidden | PathAccess::Private))) = around {
            // What is empty may itself lie in something empty, and has no mount of its own then.
            while let Some((above, above_kind @ (PathAccess::Hidden | PathAccess::Private))) =
                places.access_around(empty)
                && (kind, above_kind) != (PathAccess::Hidden, PathAccess::Private)
            {
                (empty, kind) = (above, above_kind);
            }
            let above: Vec<&Path> = path.ancestors().take_while(|above| *above != empty).collect();
            for (at, above) in above.iter().enumerate().rev() {
                points.push(MountPoint { path: to_c_path(above)?, is_folder: at > 0 || is_folder });
            }
        }
        Ok(Some(MountLayer { path: to_c_path(path)?, what, points }))
    }
}

impl MountPoint {
    unsafe fn create_mount_point(&self) -> Result<(), SandboxEntryError> {
        // SAFETY: the path outlives the call.
        let made = unsafe {
            if self.is_folder {
                libc::mkdir(self.path.as_ptr(), 0o755)
            } else {
                match libc::open(self.path.as_ptr(), libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC, 0o600)
                {
                    -1 => -1,
                    file => libc::close(file),
                }
            }
        };
        match made {
            -1 if last_errno() == libc::EEXIST => Ok(()),
            made => check_result(SandboxEntryStep::Mounts, made.into()),
        }
    }
}

fn last_errno() -> libc::c_int {
    // SAFETY: always valid in a running thread.
    unsafe { *libc::__errno_location() }
}

unsafe fn set_mount_attributes(
    at: RawFd,
    path: &CStr,
    flags: libc::c_uint,
    to: &libc::mount_attr,
) -> Result<(), SandboxEntryError> {
    // SAFETY: both pointers outlive the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at,
            path.as_ptr(),
            flags,
            std::ptr::from_ref(to),
            size_of::<libc::mount_attr>(),
        )
    };
    check_result(SandboxEntryStep::Mounts, done)
}

/// A copy of the mounts at and below `path`, to be put somewhere.
unsafe fn clone_mount_tree(path: &CStr) -> Result<RawFd, SandboxEntryError> {
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE as libc::c_uint;
    // SAFETY: the path outlives the call.
    let tree = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) };
    check_result(SandboxEntryStep::Mounts, tree)?;
    Ok(tree as RawFd)
}

/// An overlay over `lower` whose changes go to `upper`, to be put somewhere. In a format that an ordinary user may use as
/// well, so that a layer can be gone on with by another user of the same files.
unsafe fn create_overlay(
    source: &CStr,
    lower: &CStr,
    upper: &CStr,
    work: &CStr,
) -> Result<RawFd, SandboxEntryError> {
    const FLAG: libc::c_uint = 0; // commands of `fsconfig`, as in the kernel's `mount.h`
    const TEXT: libc::c_uint = 1;
    const CREATE: libc::c_uint = 6;
    const CLOSE_ON_EXEC: libc::c_uint = 1; // of `fsopen` and of `fsmount`
    let none: *const libc::c_char = std::ptr::null();
    // SAFETY: all texts outlive the calls; each descriptor is ours and closed once.
    unsafe {
        let context = libc::syscall(libc::SYS_fsopen, c"overlay".as_ptr(), CLOSE_ON_EXEC);
        check_result(SandboxEntryStep::Mounts, context)?;
        let config = |command: libc::c_uint, key: *const libc::c_char, value: *const libc::c_char| {
            let done = libc::syscall(libc::SYS_fsconfig, context, command, key, value, 0 as libc::c_long);
            check_result(SandboxEntryStep::Mounts, done)
        };
        config(TEXT, c"source".as_ptr(), source.as_ptr())?;
        for (key, path) in [(c"lowerdir+", lower), (c"upperdir", upper), (c"workdir", work)] {
            // By its descriptor: the kernel takes at most 255 bytes here, and reads some characters as its own.
            let folder = libc::open(path.as_ptr(), libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC);
            check_result(SandboxEntryStep::Mounts, folder.into())?;
            let name = descriptor_path(folder.unsigned_abs());
            config(TEXT, key.as_ptr(), name.as_ptr().cast())?;
            libc::close(folder);
        }
        config(FLAG, c"userxattr".as_ptr(), none)?;
        config(CREATE, none, none)?;
        let attributes = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
        let tree = libc::syscall(libc::SYS_fsmount, context, CLOSE_ON_EXEC, attributes);
        check_result(SandboxEntryStep::Mounts, tree)?;
        libc::close(context as RawFd);
        Ok(tree as RawFd)
    }
}

/// The path of an open file, with a NUL at its end. Allocates nothing.
fn descriptor_path(number: u32) -> [u8; 32] {
    const FOLDER: &[u8] = b"/proc/self/fd/";
    let mut name = [0; 32];
    name[..FOLDER.len()].copy_from_slice(FOLDER);
    let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
    let mut rest = number;
    for place in (FOLDER.len()..FOLDER.len() + digits).rev() {
        name[place] = b'0' + (rest % 10) as u8; // a digit
        rest /= 10;
    }
    name
}

unsafe fn move_mount(tree: RawFd, path: &CStr) -> Result<(), SandboxEntryError> {
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH;
    // SAFETY: both paths outlive the call; the tree is ours and closed once.
    unsafe {
        let put =
            libc::syscall(libc::SYS_move_mount, tree, c"".as_ptr(), libc::AT_FDCWD, path.as_ptr(), flags);
        check_result(SandboxEntryStep::Mounts, put)?;
        check_result(SandboxEntryStep::Mounts, libc::close(tree).into())
    }
}

/// Mounts an empty folder on one. What we may not even enter, the agent may not either, and what is gone is gone.
unsafe fn mount_empty_folder(source: &CStr, path: &CStr, options: &CStr) -> Result<(), SandboxEntryError> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    // SAFETY: all texts outlive the call.
    let mounted = unsafe {
        libc::mount(source.as_ptr(), path.as_ptr(), c"tmpfs".as_ptr(), flags, options.as_ptr().cast())
    };
    match mounted {
        -1 if matches!(last_errno(), libc::EACCES | libc::ENOENT) => Ok(()),
        mounted => check_result(SandboxEntryStep::Mounts, mounted.into()),
    }
}

/// Puts nothing in place of a file or a socket, with the same exceptions.
unsafe fn cover_file(path: &CStr) -> Result<(), SandboxEntryError> {
    // SAFETY: all texts outlive the call.
    let mounted = unsafe {
        libc::mount(c"/dev/null".as_ptr(), path.as_ptr(), std::ptr::null(), libc::MS_BIND, std::ptr::null())
    };
    match mounted {
        -1 if matches!(last_errno(), libc::EACCES | libc::ENOENT) => Ok(()),
        mounted => check_result(SandboxEntryStep::Mounts, mounted.into()),
    }
}

/// Terminals and shared memory of its own, where the machine has such folders.
unsafe fn own_devices(source: &CStr, rules: RawFd) -> Result<(), SandboxEntryError> {
    // SAFETY: all texts outlive the calls.
    unsafe {
        if libc::access(c"/dev/shm".as_ptr(), libc::F_OK) == 0 {
            mount_empty_folder(source, c"/dev/shm", c"mode=1777")?;
            allow_mount(rules, c"/dev/shm", rules::change_bits())?;
        }
        if libc::access(c"/dev/pts/ptmx".as_ptr(), libc::F_OK) == 0 {
            let options = c"newinstance,ptmxmode=0666,mode=0620";
            let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
            let mounted = libc::mount(
                c"devpts".as_ptr(),
                c"/dev/pts".as_ptr(),
                c"devpts".as_ptr(),
                flags,
                options.as_ptr().cast(),
            );
            check_result(SandboxEntryStep::Mounts, mounted.into())?;
            allow_mount(rules, c"/dev/pts", rules::change_bits())?;
        }
        Ok(())
    }
}

/// Adds a rule for a mount that was not there when the rules were made.
unsafe fn allow_mount(rules: RawFd, path: &CStr, access: u64) -> Result<(), SandboxEntryError> {
    // SAFETY: the rule outlives the call, the folder is ours and closed once.
    unsafe {
        let folder = libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC);
        if folder == -1 {
            return halt_at(SandboxEntryStep::Mounts);
        }
        let rule = PathBeneathAttr { access, folder };
        check_result(SandboxEntryStep::Mounts, rule.add_to_rules(rules))?;
        check_result(SandboxEntryStep::Mounts, libc::close(folder).into())
    }
}

unsafe fn write_file(path: &CStr, text: &CStr) -> Result<(), SandboxEntryError> {
    // SAFETY: both texts outlive the calls; the file is ours and closed once.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file == -1 {
            return halt_at(SandboxEntryStep::Namespaces);
        }
        let text = text.to_bytes();
        let written = libc::write(file, text.as_ptr().cast(), text.len());
        check_result(SandboxEntryStep::Namespaces, written as libc::c_long)?;
        check_result(SandboxEntryStep::Namespaces, libc::close(file).into())
    }
}

/// The paths in the kernel's list of sockets that can be spoken to: those that listen, and those that take datagrams.
fn listening_paths(list: &[u8]) -> impl Iterator<Item = PathBuf> {
    list.split(|byte| *byte == b'\n').skip(1).filter_map(|line| {
        // Num RefCount Protocol Flags Type St Inode Path; the path may hold blanks.
        let mut fields = line.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
        let flags = u32::from_str_radix(str::from_utf8(fields.nth(3)?).ok()?, 16).ok()?;
        let kind = fields.next()?;
        const LISTENS: u32 = 1 << 16;
        const DATAGRAM: &[u8] = b"0002";
        let path = &line[line.windows(2).position(|pair| pair == b" /")? + 1..];
        (flags & LISTENS != 0 || kind == DATAGRAM).then(|| PathBuf::from(OsStr::from_bytes(path)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_has_its_usual_name() {
        for number in [0, 7, 10, 100, 65_535, i32::MAX.unsigned_abs()] {
            let name = descriptor_path(number);
            let text = CStr::from_bytes_until_nul(&name).expect("it ends");
            assert_eq!(text.to_str().expect("plain"), format!("/proc/self/fd/{number}"));
        }
    }

    #[test]
    fn sockets_that_can_be_spoken_to_are_found() {
        let list = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 18302 @\xff\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 18303 /run/a b.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 18304 @/abstract\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 18305 /run/connected\n\
            0000000000000000: 00000002 00000000 00000000 0002 01 18306 /run/log\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 18307\n";
        let found: Vec<PathBuf> = listening_paths(list).collect();
        assert_eq!(found, [PathBuf::from("/run/a b.sock"), PathBuf::from("/run/log")]);
    }
}

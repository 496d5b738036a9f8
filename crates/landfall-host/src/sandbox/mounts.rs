//! A world apart, for the strict level: namespaces of its own, and in them the machine read-only, without what is hidden
//! and without the services that listen on it.
//!
//! Landlock cannot do these: it does not look at the change of owners, rights and times, nor at names, nor at sockets that
//! have a path. It still applies, so each part would have to fail in both.

use super::enter::{Halt, Step, halt, went_well};
use super::places::{Places, real};
use super::rules;
use super::setup::{Refusal, raw};
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::os::fd::RawFd;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// What the child does to its own view of the machine.
pub(super) struct Apart {
    user_map: CString,
    group_map: CString,
    /// Places that stay as they are: taken aside first, put back when all else is done.
    keeps: Vec<Keep>,
    /// What is hidden and exists.
    masks: Vec<Spot>,
    /// Where kept places below a mask are put back: made in the mask, from the top down.
    points: Vec<Spot>,
    /// Sockets that someone listens on.
    sockets: Vec<CString>,
}

struct Keep {
    path: CString,
    is_read_only: bool,
    /// Taken aside, once it is.
    tree: Cell<RawFd>,
}

struct Spot {
    path: CString,
    is_folder: bool,
}

impl Apart {
    pub(super) fn new(places: &Places, socket: Option<&Path>) -> Result<Apart, Refusal> {
        let masked: Vec<&PathBuf> = places
            .hide
            .iter()
            .filter(|path| !places.hide.iter().any(|above| above != *path && path.starts_with(above)))
            .collect();
        let below_mask = |path: &Path| masked.iter().find(|mask| path.starts_with(mask)).copied();
        let socket = socket.map(real);
        let mut keeps = Vec::new();
        let mut points = Vec::new();
        let kept = places.write.iter().map(|path| (path, false));
        let kept = kept.chain(places.read.iter().chain(&socket).map(|path| (path, true)));
        for (path, is_read_only) in kept {
            match below_mask(path) {
                Some(mask) => {
                    let above: Vec<&Path> = path.ancestors().take_while(|above| *above != mask).collect();
                    for (at, above) in above.iter().enumerate().rev() {
                        points.push(Spot { path: raw(above)?, is_folder: at > 0 || path.is_dir() });
                    }
                }
                None if is_read_only => continue, // as all the rest
                None => {}
            }
            keeps.push(Keep { path: raw(path)?, is_read_only, tree: Cell::new(-1) });
        }
        let masks = masked
            .iter()
            .filter(|path| path.exists())
            .map(|path| Ok(Spot { path: raw(path)?, is_folder: path.is_dir() }))
            .collect::<Result<_, Refusal>>()?;
        let stays = |path: &Path| {
            places.write.iter().any(|open| path.starts_with(open))
                || Some(path) == socket.as_deref()
                || below_mask(path).is_some()
        };
        let sockets = listening(&std::fs::read_to_string("/proc/net/unix").unwrap_or_default())
            // One that was bound by a relative path, or is gone by now, is not to be found under its name.
            .filter(|path| std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_socket()))
            .map(|path| real(&path))
            .filter(|path| !stays(path))
            .map(|path| raw(&path))
            .collect::<Result<_, _>>()?;
        let map = |id: u32| CString::new(format!("{id} {id} 1")).expect("digits");
        Ok(Apart {
            user_map: map(rustix::process::geteuid().as_raw()),
            group_map: map(rustix::process::getegid().as_raw()),
            keeps,
            masks,
            points,
            sockets,
        })
    }

    /// Goes there. Rules for what is mounted on the way are added to `rules`.
    ///
    /// # Safety
    /// Only in a freshly forked child. Allocates nothing.
    pub(super) unsafe fn enter(&self, rules: RawFd, keeps_network: bool) -> Result<(), Halt> {
        // SAFETY: plain system calls on numbers and on memory that `self` keeps alive.
        unsafe {
            self.unshare(keeps_network)?;
            let attributes = |set: u64, propagation: u64| -> libc::mount_attr {
                let mut it: libc::mount_attr = std::mem::zeroed();
                it.attr_set = set;
                it.propagation = propagation;
                it
            };
            let everywhere = libc::AT_RECURSIVE as libc::c_uint;
            set(libc::AT_FDCWD, c"/", everywhere, &attributes(0, libc::MS_PRIVATE))?;
            for keep in &self.keeps {
                keep.tree.set(take(&keep.path)?);
            }
            let read_only = attributes(libc::MOUNT_ATTR_RDONLY, 0);
            set(libc::AT_FDCWD, c"/", everywhere, &read_only)?;
            for mask in &self.masks {
                if mask.is_folder {
                    empty(&mask.path, c"mode=0755,size=1m")?;
                } else {
                    cover(&mask.path)?;
                }
            }
            for point in &self.points {
                point.make()?;
            }
            for keep in &self.keeps {
                if keep.is_read_only {
                    let flags = everywhere | libc::AT_EMPTY_PATH as libc::c_uint;
                    set(keep.tree.get(), c"", flags, &read_only)?;
                }
                put(keep.tree.get(), &keep.path)?;
            }
            for mask in self.masks.iter().filter(|mask| mask.is_folder) {
                match set(libc::AT_FDCWD, &mask.path, 0, &read_only) {
                    // Never mounted, see `empty`: not within the agent's reach either.
                    Err(Halt { errno: libc::EACCES, .. }) => {}
                    other => other?,
                }
            }
            for socket in &self.sockets {
                cover(socket)?;
            }
            own_devices(rules)
        }
    }

    /// Root has the right to; anyone else has it in a user namespace of their own, where they are who they were.
    unsafe fn unshare(&self, keeps_network: bool) -> Result<(), Halt> {
        let network = if keeps_network { 0 } else { libc::CLONE_NEWNET };
        let flags = libc::CLONE_NEWNS | libc::CLONE_NEWIPC | network;
        // SAFETY: a child with one thread may leave its namespaces; the texts outlive the calls.
        unsafe {
            if libc::unshare(flags) == 0 {
                return Ok(());
            }
            went_well(Step::Namespaces, libc::unshare(libc::CLONE_NEWUSER | flags).into())?;
            write(c"/proc/self/setgroups", c"deny")?;
            write(c"/proc/self/uid_map", &self.user_map)?;
            write(c"/proc/self/gid_map", &self.group_map)
        }
    }
}

impl Spot {
    unsafe fn make(&self) -> Result<(), Halt> {
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
            -1 if last() == libc::EEXIST => Ok(()),
            made => went_well(Step::Mounts, made.into()),
        }
    }
}

fn last() -> libc::c_int {
    // SAFETY: always valid in a running thread.
    unsafe { *libc::__errno_location() }
}

unsafe fn set(at: RawFd, path: &CStr, flags: libc::c_uint, to: &libc::mount_attr) -> Result<(), Halt> {
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
    went_well(Step::Mounts, done)
}

/// A copy of the mounts at and below `path`, to be put somewhere.
unsafe fn take(path: &CStr) -> Result<RawFd, Halt> {
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE as libc::c_uint;
    // SAFETY: the path outlives the call.
    let tree = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) };
    went_well(Step::Mounts, tree)?;
    Ok(tree as RawFd)
}

unsafe fn put(tree: RawFd, path: &CStr) -> Result<(), Halt> {
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH;
    // SAFETY: both paths outlive the call; the tree is ours and closed once.
    unsafe {
        let put =
            libc::syscall(libc::SYS_move_mount, tree, c"".as_ptr(), libc::AT_FDCWD, path.as_ptr(), flags);
        went_well(Step::Mounts, put)?;
        went_well(Step::Mounts, libc::close(tree).into())
    }
}

/// Mounts an empty folder on one. What we may not even enter, the agent may not either, and what is gone is gone.
unsafe fn empty(path: &CStr, options: &CStr) -> Result<(), Halt> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    // SAFETY: all texts outlive the call.
    let mounted = unsafe {
        libc::mount(c"landfall".as_ptr(), path.as_ptr(), c"tmpfs".as_ptr(), flags, options.as_ptr().cast())
    };
    match mounted {
        -1 if matches!(last(), libc::EACCES | libc::ENOENT) => Ok(()),
        mounted => went_well(Step::Mounts, mounted.into()),
    }
}

/// Puts nothing in place of a file or a socket, with the same exceptions.
unsafe fn cover(path: &CStr) -> Result<(), Halt> {
    // SAFETY: all texts outlive the call.
    let mounted = unsafe {
        libc::mount(c"/dev/null".as_ptr(), path.as_ptr(), std::ptr::null(), libc::MS_BIND, std::ptr::null())
    };
    match mounted {
        -1 if matches!(last(), libc::EACCES | libc::ENOENT) => Ok(()),
        mounted => went_well(Step::Mounts, mounted.into()),
    }
}

/// Terminals and shared memory of its own, where the machine has such folders.
unsafe fn own_devices(rules: RawFd) -> Result<(), Halt> {
    // SAFETY: all texts outlive the calls.
    unsafe {
        if libc::access(c"/dev/shm".as_ptr(), libc::F_OK) == 0 {
            empty(c"/dev/shm", c"mode=1777")?;
            allow(rules, c"/dev/shm")?;
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
            went_well(Step::Mounts, mounted.into())?;
            allow(rules, c"/dev/pts")?;
        }
        Ok(())
    }
}

/// Adds a rule for a mount that was not there when the rules were made.
unsafe fn allow(rules: RawFd, path: &CStr) -> Result<(), Halt> {
    /// As in the kernel's `landlock.h`: eight bytes and four, without a gap behind.
    #[repr(C, packed)]
    struct Beneath {
        access: u64,
        folder: RawFd,
    }
    const PATH_BENEATH: libc::c_long = 1;
    // SAFETY: the rule outlives the call, the folder is ours and closed once.
    unsafe {
        let folder = libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC);
        if folder == -1 {
            return halt(Step::Mounts);
        }
        let rule = Beneath { access: rules::change_bits(), folder };
        let added = libc::syscall(
            libc::SYS_landlock_add_rule,
            rules,
            PATH_BENEATH,
            &raw const rule,
            0 as libc::c_long,
        );
        went_well(Step::Mounts, added)?;
        went_well(Step::Mounts, libc::close(folder).into())
    }
}

unsafe fn write(path: &CStr, text: &CStr) -> Result<(), Halt> {
    // SAFETY: both texts outlive the calls; the file is ours and closed once.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file == -1 {
            return halt(Step::Namespaces);
        }
        let text = text.to_bytes();
        let written = libc::write(file, text.as_ptr().cast(), text.len());
        went_well(Step::Namespaces, written as libc::c_long)?;
        went_well(Step::Namespaces, libc::close(file).into())
    }
}

/// The paths in the kernel's list of sockets that can be spoken to: those that listen, and those that take datagrams.
fn listening(list: &str) -> impl Iterator<Item = PathBuf> {
    list.lines().skip(1).filter_map(|line| {
        // Num RefCount Protocol Flags Type St Inode Path; the path may hold blanks.
        let mut fields = line.split(' ').filter(|field| !field.is_empty());
        let flags = u32::from_str_radix(fields.nth(3)?, 16).ok()?;
        let kind = fields.next()?;
        const LISTENS: u32 = 1 << 16;
        const DATAGRAM: &str = "0002";
        let path = &line[line.find(" /")? + 1..];
        (flags & LISTENS != 0 || kind == DATAGRAM).then(|| PathBuf::from(path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_that_can_be_spoken_to_are_found() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 18303 /run/a b.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 18304 @/abstract\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 18305 /run/connected\n\
            0000000000000000: 00000002 00000000 00000000 0002 01 18306 /run/log\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 18307\n";
        let found: Vec<PathBuf> = listening(list).collect();
        assert_eq!(found, [PathBuf::from("/run/a b.sock"), PathBuf::from("/run/log")]);
    }
}

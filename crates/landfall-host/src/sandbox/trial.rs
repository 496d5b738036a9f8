//! The trial: inside the sandbox, before the program runs, what must fail is tried. A sandbox that was set up without an
//! error and does not hold is the worst of all: everybody trusts it.

use super::enter::{Halt, SYS_ADMIN, Step, halt, went_well};
use super::places::{Places, real};
use super::setup::{Refusal, raw};
use std::ffi::CString;
use std::path::Path;

/// What is tried.
pub(super) struct Trial {
    /// Files that must not come to be.
    write: Vec<CString>,
    /// A file that is there for us, and must not be for the agent. None if nothing is hidden that we could read.
    read: Option<CString>,
    /// Us: the same user, so only the sandbox stands between.
    sitter: libc::pid_t,
    /// Whether there must be no network, and hidden folders may look empty.
    is_apart: bool,
}

impl Trial {
    pub(super) fn new(places: &Places, run: &Path, is_apart: bool) -> Result<Trial, Refusal> {
        // A name that nobody has put there before us, to be refused for that instead.
        let name = format!(".landfall-trial-{}", std::process::id());
        let may_write = |path: &Path| places.write.iter().any(|open| path.starts_with(open));
        let is_open = |path: &Path| {
            let is_hidden = places.hide.iter().any(|hidden| path.starts_with(hidden));
            !is_hidden || may_write(path) || places.read.iter().any(|open| path.starts_with(open))
        };
        let run = real(run);
        // The run's own folder is ours to write, so only the sandbox can refuse it; so is, mostly, what lies beside the
        // first place that is open.
        let beside = places.write.first().and_then(|path| path.parent()).filter(|path| !may_write(path));
        let write =
            [Some(run.as_path()), beside].into_iter().flatten().map(|folder| raw(&folder.join(&name)));
        let hidden = [run.join("spec.json")].into_iter().chain(places.hide.iter().cloned());
        let read = hidden
            .filter(|path| !is_open(path) && path.is_file() && std::fs::File::open(path).is_ok())
            .map(|path| raw(&path))
            .next();
        let sitter = libc::pid_t::try_from(std::process::id()).expect("process ids are small");
        Ok(Trial { write: write.collect::<Result<_, _>>()?, read: read.transpose()?, sitter, is_apart })
    }

    /// Tries it all.
    ///
    /// # Safety
    /// Only in a freshly forked child. Allocates nothing.
    pub(super) unsafe fn run(&self) -> Result<(), Halt> {
        let halted = |step, errno| Err(Halt { step, errno });
        // SAFETY: plain system calls on numbers and on memory that `self` keeps alive.
        unsafe {
            let errno = || *libc::__errno_location();
            for path in &self.write {
                let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
                if libc::open(path.as_ptr(), flags, 0o600) != -1 {
                    libc::unlink(path.as_ptr());
                    return halted(Step::TrialWrite, 0);
                }
                match errno() {
                    libc::EACCES | libc::EROFS | libc::EPERM => {}
                    libc::ENOENT if self.is_apart => {}
                    other => return halted(Step::TrialWrite, other), // refused for another reason: nothing is shown
                }
            }
            if let Some(path) = &self.read {
                if libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) != -1 {
                    return halted(Step::TrialRead, 0);
                }
                match errno() {
                    libc::EACCES | libc::EPERM => {}
                    libc::ENOENT if self.is_apart => {}
                    other => return halted(Step::TrialRead, other),
                }
            }
            // No signal at all, but the same question as for one.
            if libc::kill(self.sitter, 0) == 0 {
                return halted(Step::TrialSignal, 0);
            }
            if errno() != libc::EPERM {
                return halt(Step::TrialSignal);
            }
            // Nothing is meant by these arguments; without the filter the error would be another one.
            let entered = libc::syscall(libc::SYS_setns, -1, 0);
            if entered == 0 || errno() != libc::EPERM {
                return halt(Step::TrialCall);
            }
            if libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1
                || (libc::geteuid() == 0 && libc::prctl(libc::PR_CAPBSET_READ, SYS_ADMIN, 0, 0, 0) != 0)
            {
                return halted(Step::TrialPrivileges, 0);
            }
            if self.is_apart { no_network() } else { Ok(()) }
        }
    }
}

/// Sends nothing: to connect a datagram socket is only to look for a way there.
unsafe fn no_network() -> Result<(), Halt> {
    const LOOPBACK: [u8; 4] = [127, 0, 0, 1];
    const ELSEWHERE: [u8; 4] = [192, 0, 2, 1]; // an address that is nobody's, for documents
    for address in [LOOPBACK, ELSEWHERE] {
        // SAFETY: the address outlives the call that reads it.
        unsafe {
            let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
            if socket == -1 {
                match *libc::__errno_location() {
                    libc::EAFNOSUPPORT => continue, // a kernel without it
                    _ => return halt(Step::TrialNetwork),
                }
            }
            let mut to: libc::sockaddr_in = std::mem::zeroed();
            to.sin_family = libc::AF_INET as libc::sa_family_t;
            to.sin_port = 9u16.to_be();
            to.sin_addr.s_addr = u32::from_ne_bytes(address);
            let len = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            let connected = libc::connect(socket, (&raw const to).cast(), len);
            let errno = *libc::__errno_location();
            went_well(Step::TrialNetwork, libc::close(socket).into())?;
            if connected == 0 || errno != libc::ENETUNREACH {
                let errno = if connected == 0 { 0 } else { errno };
                return Err(Halt { step: Step::TrialNetwork, errno });
            }
        }
    }
    Ok(())
}

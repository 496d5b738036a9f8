//! Bringing the child into the world: everything about it is set up between fork and exec, or inherited from us.

use super::cgroup::{Cgroup, ProcessLimitGroup};
use super::run_mark;
use crate::sandbox::{SandboxEntryStep, SandboxSetup};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

/// A child that is on its way: its exec may still fail, which then comes through `word`.
pub(super) struct PendingChild {
    pub(super) pid: i32,
    /// Closes when the exec has succeeded; else carries a [`Failure`].
    pub(super) word: OwnedFd,
    pub(super) out: OwnedFd,
    pub(super) err: OwnedFd,
    pub(super) in_cgroup: bool,
}

/// What a child needs, with all memory already in place: after the fork nothing may be allocated.
pub(super) struct SpawnPlan {
    /// Where the program may be, tried in this order.
    programs: Vec<CString>,
    argv: Vec<CString>,
    env: Vec<CString>,
    cwd: CString,
    nofile: Option<u64>,
    /// By which the run is known.
    mark: u64,
    /// How willingly the kernel ends it for lack of memory.
    oom_score: CString,
    sandbox: Option<SandboxSetup>,
}

/// A step that went wrong in the child before the exec, or that exec itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpawnFailure {
    pub(super) stage: SpawnStage,
    pub(super) errno: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpawnStage {
    Fork,
    Cgroup,
    Session,
    Folder,
    Streams,
    Exec,
    Sandbox(SandboxEntryStep),
}

impl SpawnStage {
    const PLAIN: [SpawnStage; 6] = [
        SpawnStage::Fork,
        SpawnStage::Cgroup,
        SpawnStage::Session,
        SpawnStage::Folder,
        SpawnStage::Streams,
        SpawnStage::Exec,
    ];
    /// Steps of the sandbox are counted from here on.
    const SANDBOX: u8 = 64;

    fn from_byte(byte: u8) -> SpawnStage {
        match byte.checked_sub(SpawnStage::SANDBOX) {
            Some(step) => SpawnStage::Sandbox(SandboxEntryStep::from_byte(step)),
            None => *SpawnStage::PLAIN.get(usize::from(byte)).unwrap_or(&SpawnStage::Exec),
        }
    }

    /// Used by the child, so nothing in here may panic or allocate.
    fn to_byte(self) -> u8 {
        match self {
            SpawnStage::Fork => 0,
            SpawnStage::Cgroup => 1,
            SpawnStage::Session => 2,
            SpawnStage::Folder => 3,
            SpawnStage::Streams => 4,
            SpawnStage::Exec => 5,
            SpawnStage::Sandbox(step) => SpawnStage::SANDBOX | step as u8,
        }
    }
}

impl SpawnFailure {
    const LEN: usize = 5;

    fn to_bytes(self) -> [u8; SpawnFailure::LEN] {
        let [a, b, c, d] = self.errno.to_le_bytes();
        [self.stage.to_byte(), a, b, c, d]
    }

    /// What came through `word`; none while it is open, or if it closed without a word because the exec went well.
    pub(super) fn read_failure(word: &OwnedFd) -> Option<SpawnFailure> {
        let mut bytes = [0; SpawnFailure::LEN];
        match rustix::io::read(word, &mut bytes) {
            Ok(SpawnFailure::LEN) => {
                let [stage, errno @ ..] = bytes;
                Some(SpawnFailure { stage: SpawnStage::from_byte(stage), errno: i32::from_le_bytes(errno) })
            }
            Ok(_) | Err(_) => None,
        }
    }
}

impl SpawnPlan {
    /// Fails if a NUL byte is where the kernel cannot take one.
    pub(super) fn new(
        argv: Vec<OsString>,
        env: Vec<(OsString, OsString)>,
        cwd: &Path,
        nofile: Option<u64>,
        marker: &str,
        sandbox: Option<SandboxSetup>,
    ) -> Result<SpawnPlan, std::ffi::NulError> {
        let program = argv.first().expect("checked by start").clone();
        let path = env.iter().rev().find(|(key, _)| key == "PATH").map(|(_, value)| value.as_os_str());
        let programs = program_candidates(&program, path)
            .into_iter()
            .map(|it| CString::new(it.into_vec()))
            .collect::<Result<_, _>>()?;
        let argv = argv.into_iter().map(|arg| CString::new(arg.into_vec())).collect::<Result<_, _>>()?;
        let entry = |(key, value): (OsString, OsString)| {
            let mut entry = key.into_vec();
            entry.push(b'=');
            entry.extend_from_slice(value.as_bytes());
            CString::new(entry)
        };
        let env = env.into_iter().map(entry).collect::<Result<_, _>>()?;
        let cwd = CString::new(cwd.as_os_str().as_bytes())?;
        let oom_score = CString::new(oom_score().to_string())?;
        let mark = run_mark::mark_for_marker(marker);
        Ok(SpawnPlan { programs, argv, env, cwd, nofile, mark, oom_score, sandbox })
    }

    /// Spawns the child with `stdin`, into the groups that there are, if they will have it.
    pub(super) fn spawn_child(
        &self,
        stdin: BorrowedFd<'_>,
        (cgroup, pids): (Option<&Cgroup>, Option<&ProcessLimitGroup>),
    ) -> Result<PendingChild, SpawnFailure> {
        let setup = |error: rustix::io::Errno| SpawnFailure {
            stage: SpawnStage::Streams,
            errno: error.raw_os_error(),
        };
        let (out, child_out) = pipe_with(PipeFlags::CLOEXEC).map_err(setup)?;
        let (err, child_err) = pipe_with(PipeFlags::CLOEXEC).map_err(setup)?;
        let (word, child_word) = pipe_with(PipeFlags::CLOEXEC).map_err(setup)?;
        for reader in [&out, &err, &word] {
            rustix::io::ioctl_fionbio(reader, true).map_err(setup)?;
        }
        // The kernel wants arrays of pointers, closed by a null.
        let argv: Vec<*const libc::c_char> =
            self.argv.iter().map(|arg| arg.as_ptr()).chain([std::ptr::null()]).collect();
        let env: Vec<*const libc::c_char> =
            self.env.iter().map(|entry| entry.as_ptr()).chain([std::ptr::null()]).collect();
        let raw = RawSpawnPlan {
            programs: &self.programs,
            argv: &argv,
            env: &env,
            cwd: &self.cwd,
            streams: [stdin.as_raw_fd(), child_out.as_raw_fd(), child_err.as_raw_fd()],
            word: child_word.as_raw_fd(),
            nofile: self.nofile,
            mark: self.mark,
            oom_score: &self.oom_score,
            pids: pids.map_or(-1, |pids| pids.procs_file().as_raw_fd()),
            sandbox: self.sandbox.as_ref(),
        };
        let (pid, in_cgroup) = fork_child(&raw, cgroup).map_err(|error| SpawnFailure {
            stage: SpawnStage::Fork,
            errno: error.raw_os_error().unwrap_or(0),
        })?;
        Ok(PendingChild { pid, word, out, err, in_cgroup })
    }
}

/// What the child reads when there is no file for it.
pub(super) fn open_null() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Where a program may be: as named if there is a slash in the name, else in the folders of `PATH`, in order.
fn program_candidates(program: &OsStr, path: Option<&OsStr>) -> Vec<OsString> {
    if program.as_bytes().contains(&b'/') {
        return vec![program.to_owned()];
    }
    let path = path.unwrap_or(OsStr::new("/usr/bin:/bin"));
    // An empty entry means the current folder; that is the agent's own, so it is left out.
    path.as_bytes()
        .split(|byte| *byte == b':')
        .filter(|folder| !folder.is_empty())
        .map(|folder| OsString::from_vec([folder, b"/", program.as_bytes()].concat()))
        .collect()
}

/// What the child uses between fork and exec: plain pointers and numbers.
struct RawSpawnPlan<'a> {
    programs: &'a [CString],
    argv: &'a [*const libc::c_char],
    env: &'a [*const libc::c_char],
    cwd: &'a CString,
    streams: [RawFd; 3],
    word: RawFd,
    nofile: Option<u64>,
    mark: u64,
    oom_score: &'a CString,
    /// Where it moves itself into the group that counts processes; -1 if there is none.
    pids: RawFd,
    sandbox: Option<&'a SandboxSetup>,
}

/// For a run: the kernel ends it before the engine, its sitter and what the user started. Anybody may raise the score.
fn oom_score() -> i32 {
    const MORE: i32 = 500; // as much as half of the machine's memory weighs
    const MOST: i32 = 1000;
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").ok();
    let own = own.and_then(|own| own.trim().parse::<i32>().ok()).unwrap_or(0);
    (own + MORE).min(MOST)
}

/// Forks. Being born in a control group costs nothing; moving into one takes a lock of the whole machine (0.7 ms
/// here). So the first is tried, then the second, then none.
fn fork_child(raw: &RawSpawnPlan<'_>, cgroup: Option<&Cgroup>) -> io::Result<(i32, bool)> {
    if let Some(cgroup) = cgroup {
        match fork_into(raw, cgroup.fd()) {
            Ok(pid) => return Ok((pid, true)),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM)) => {
                return Err(error);
            }
            Err(_) => {} // no clone3 here (old kernel, container filter), or the group does not take us
        }
        if let Ok(procs) = cgroup.open_procs() {
            return plain_fork(raw, Some(procs.as_raw_fd())).map(|pid| (pid, true));
        }
    }
    plain_fork(raw, None).map(|pid| (pid, false))
}

/// As in the kernel's `sched.h`: libc's own constant has a type too small for it.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

fn fork_into(raw: &RawSpawnPlan<'_>, cgroup: BorrowedFd<'_>) -> io::Result<i32> {
    // SAFETY: all zeroes is a valid clone_args: every part of it is a number.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = CLONE_INTO_CGROUP;
    args.exit_signal = libc::SIGCHLD as u64;
    args.cgroup = u64::try_from(cgroup.as_raw_fd()).expect("an open descriptor");
    // SAFETY: without CLONE_VM this is a fork. We have one thread, so the copy is whole; the child only makes system calls
    // on memory prepared before, and leaves by exec or _exit.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<libc::clone_args>()) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: we are the child of the fork above.
        0 => unsafe { exec_program(raw, None) },
        pid => Ok(i32::try_from(pid).expect("process ids are small")),
    }
}

fn plain_fork(raw: &RawSpawnPlan<'_>, procs: Option<RawFd>) -> io::Result<i32> {
    // SAFETY: as above.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: we are the child of the fork above.
        0 => unsafe { exec_program(raw, procs) },
        pid => Ok(pid),
    }
}

/// The child's side.
///
/// # Safety
/// Only in a freshly forked child. Only system calls from here on: no allocation, no panic, no lock.
unsafe fn exec_program(raw: &RawSpawnPlan<'_>, procs: Option<RawFd>) -> ! {
    // SAFETY: plain system calls on descriptors and pointers that `raw` keeps alive.
    unsafe {
        let errno = || *libc::__errno_location();
        let fail = |stage: SpawnStage, errno: i32| -> ! {
            let bytes = SpawnFailure { stage, errno }.to_bytes();
            libc::write(raw.word, bytes.as_ptr().cast(), bytes.len());
            libc::_exit(127)
        };
        if let Some(procs) = procs
            && libc::write(procs, c"0".as_ptr().cast(), 1) != 1
        {
            fail(SpawnStage::Cgroup, errno());
        }
        // Without these it runs as well: the limits of the user remain, and the kernel chooses by size.
        if raw.pids >= 0 {
            libc::write(raw.pids, c"0".as_ptr().cast(), 1);
        }
        let score = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if score >= 0 {
            let text = raw.oom_score.to_bytes();
            libc::write(score, text.as_ptr().cast(), text.len());
            libc::close(score);
        }
        // We block nearly every signal, and the Rust runtime ignores SIGPIPE; a program expects neither.
        // Straight to the kernel: the C library refuses to touch the two signals it keeps for itself, and those may
        // come to us ignored too. All zeroes is the default disposition, on every architecture.
        let default = [0u64; 8];
        for signal in 1..=64 {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                std::ptr::null::<u64>(),
                size_of::<u64>(),
            );
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        if libc::setsid() == -1 {
            fail(SpawnStage::Session, errno());
        }
        for (to, from) in raw.streams.iter().enumerate() {
            // Ours are all above 2 (see `sit`), so no step of this overwrites what a later one needs.
            if libc::dup2(*from, to as RawFd) == -1 {
                fail(SpawnStage::Streams, errno());
            }
        }
        libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as libc::c_int); // ours are so already
        if let Some(soft) = raw.nofile {
            let mut limit: libc::rlimit = std::mem::zeroed();
            if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
                limit.rlim_cur = soft.min(limit.rlim_max);
                libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
            }
        }
        run_mark::mark_this_process(raw.mark);
        // Before the folder is entered: in a mount namespace of its own it is another one.
        if let Some(sandbox) = raw.sandbox
            && let Err(halt) = sandbox.enter_sandbox()
        {
            fail(SpawnStage::Sandbox(halt.step), halt.errno);
        }
        if libc::chdir(raw.cwd.as_ptr()) == -1 {
            fail(SpawnStage::Folder, errno());
        }
        // As a shell does it: the first that runs; one that is there but forbidden is worth more to report than one
        // that is not there.
        let mut worst = libc::ENOENT;
        for program in raw.programs {
            libc::execve(program.as_ptr(), raw.argv.as_ptr(), raw.env.as_ptr());
            match errno() {
                libc::ENOENT | libc::ENOTDIR => {}
                libc::EACCES => worst = libc::EACCES,
                other => fail(SpawnStage::Exec, other),
            }
        }
        fail(SpawnStage::Exec, worst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_for_where_path_says_and_never_in_the_current_folder() {
        let found =
            |program: &str, path: Option<&str>| program_candidates(program.as_ref(), path.map(OsStr::new));
        assert_eq!(found("sh", Some("/a:/b")), ["/a/sh", "/b/sh"]);
        assert_eq!(found("sh", Some(":/b:")), ["/b/sh"]);
        assert_eq!(found("./sh", Some("/a")), ["./sh"]);
        assert_eq!(found("sh", None), ["/usr/bin/sh", "/bin/sh"]);
    }

    #[test]
    fn a_failure_survives_the_pipe() {
        for stage in
            SpawnStage::PLAIN.into_iter().chain([SpawnStage::Sandbox(SandboxEntryStep::TrialNetwork)])
        {
            let failure = SpawnFailure { stage, errno: libc::ENOENT };
            let (word, writer) = pipe_with(PipeFlags::CLOEXEC).expect("pipe");
            rustix::io::write(&writer, &failure.to_bytes()).expect("room");
            assert_eq!(SpawnFailure::read_failure(&word), Some(failure));
        }
    }
}

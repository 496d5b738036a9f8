//! The sitter itself: one process, one loop, and one thread; a second one only for a socket, and only after the fork.
//!
//! It owns the child's process tree. It is a subreaper: whatever in the tree loses its parent becomes the sitter's own
//! child. So "we have no children" is proof that the tree is empty, whatever its processes did to hide; a control
//! group, where there is one, only makes killing certain and quick.

use super::cgroup::{Cgroup, ProcessLimitGroup};
use super::child::{self, PendingChild, SpawnFailure, SpawnPlan, SpawnStage};
use super::deadline::{Deadline, is_paused};
use super::ended::{ChildExit, Containment, EndCause, SitterEnd};
use super::files::{self, LaunchOrder};
use super::identity::{self, ProcessStat};
use super::listen::SignalListener;
use super::sitting::SitterProcess;
use super::spec::SitterSpec;
use super::spool::{DrainState, OutputDrain};
use super::{sweep, tree};
use crate::clock::{Clock as _, SystemClock};
use crate::memory::OomCounter;
use crate::sandbox::{SandboxError, SandboxLevel, SandboxSetup};
use crate::wait::retry_until;
use crate::{crash, disk};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, WaitOptions, WaitStatus};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a tree whose main child has ended may go on writing before the rest of it is killed. Long enough for the
/// last process of a pipeline, too short for anyone to wait for.
const DRAIN_MS: u64 = 200;
/// Between two rounds of killing, while there is hope that each round finds less.
const KILL_STEP_MS: u64 = 5;
/// After this it is no longer speed that is wanting: something is stuck in the kernel.
const KILL_FAST_MS: u64 = 5_000;
const KILL_SLOW_STEP_MS: u64 = 250;
/// After this the end is reported, with the number of those that would not die.
const KILL_MAX_MS: u64 = 60_000;

/// Exit codes of the sitter itself; nobody but a person debugging ever sees them.
const DONE: u8 = 0;
const FAILED: u8 = 70;
const OCCUPIED: u8 = 75;

/// The whole life of a sitter: runs what `dir` asks for and writes how it ended. Returns the process's exit code.
///
/// To be called by the binary's `sit` command before anything else: no thread, no runtime, no log.
pub fn run_sitter(dir: &Path) -> u8 {
    let complaint = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned()).join(files::COMPLAINT);
    let on_panic = complaint.clone();
    std::panic::set_hook(Box::new(move |what| write_complaint(&on_panic, &what.to_string())));
    match Sitter::prepare_run(dir) {
        Ok(Some(sitter)) => match sitter.run_to_end() {
            Ok(()) => DONE,
            Err(error) => {
                write_complaint(&complaint, &error.to_string());
                FAILED
            }
        },
        Ok(None) => OCCUPIED,
        Err(error) => {
            write_complaint(&complaint, &error.to_string());
            FAILED
        }
    }
}

fn write_complaint(path: &Path, what: &str) {
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    let _ = file.and_then(|mut file| writeln!(file, "{what}")); // the last resort has none of its own
}

struct Sitter {
    dir: PathBuf,
    pid: i32,
    signals: OwnedFd,
    exit_file: File,
    order: LaunchOrder,
    _lock: File,
}

impl Sitter {
    /// Everything up to the child. None: the folder has, or had, another sitter, and we leave without a trace.
    fn prepare_run(dir: &Path) -> io::Result<Option<Sitter>> {
        close_inherited();
        let signals = block_signals()?;
        rustix::process::setsid().ok(); // refused if `start` has already given us a session: just what we want
        let dir = std::path::absolute(dir)?;
        let Some(lock) = take_lock(&dir)? else { return Ok(None) };
        crash::pass_point("sitter.locked");
        std::env::set_current_dir("/")?; // so that we keep no disk busy
        // SAFETY: umask cannot fail and touches no memory.
        unsafe { libc::umask(0o022) };
        let order = files::read_order(&fs::read(dir.join(files::SPEC))?)
            .map_err(|problem| io::Error::other(format!("read spec.json: {problem}")))?;
        let pid = i32::try_from(std::process::id()).expect("process ids are small");
        // Room for our last words is taken now, so that a full disk cannot silence us later.
        let exit_file = reserve_exit(&dir)?;
        if !write_identity_file(&dir, pid, order.spec.sandbox.as_ref().map(|sandbox| sandbox.level))? {
            return Ok(None);
        }
        crash::pass_point("sitter.named");
        rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(pid))?;
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::setrlimit(Resource::Core, none).ok(); // a core file in someone's workspace is a nuisance, no more
        Ok(Some(Sitter { dir, pid, signals, exit_file, order, _lock: lock }))
    }

    fn run_to_end(self) -> io::Result<()> {
        let LaunchOrder { mut spec, cgroup, nofile } = self.order;
        let marker = spec.marker.clone();
        let wants_groups = std::env::var_os("LANDFALL_NO_CGROUP").is_none_or(|off| off != "1");
        // None to be had: the other way does it too.
        let cgroup = cgroup
            .filter(|_| wants_groups)
            .and_then(|parent| Cgroup::create_below(&parent, &marker, self.pid).ok());
        let is_limited = cgroup.as_ref().is_some_and(Cgroup::limits_processes);
        let pids = (wants_groups && !is_limited)
            .then(|| ProcessLimitGroup::create_for_run(&marker, self.pid))
            .flatten();
        let oom_counter = OomCounter::start_counting();
        let began_ms = SystemClock.now_ms();
        // The socket is there before the program that may use it; its thread comes after the fork.
        let ear = spec.signal.as_ref().map(|signal| SignalListener::open(&self.dir, signal)).transpose();
        let spawned = match ear {
            Ok(ear) => match spawn_child(&self.dir, &mut spec, nofile, (cgroup.as_ref(), pids.as_ref())) {
                Ok(child) => Ok((child, ear.map(SignalListener::start_listening))),
                Err(exit) => {
                    ear.into_iter().for_each(SignalListener::close);
                    Err(exit)
                }
            },
            Err(error) => Err(refused_exit("make the signal socket", &error)),
        };
        let ended = match spawned {
            Ok((child, listening)) => {
                crash::pass_point("sitter.spawned");
                let mut watching =
                    SitterLoop::new(&self.dir, self.pid, self.signals, &spec, child, cgroup.as_ref());
                watching.oom_counter = oom_counter;
                let ended = watching.run_loop(began_ms);
                if let Some(listening) = listening {
                    listening.stop_listening();
                }
                ended
            }
            Err(exit) => not_started(&spec, exit, began_ms, cgroup.is_some()),
        };
        if let Some(cgroup) = cgroup {
            cgroup.remove();
        }
        if let Some(pids) = pids {
            pids.remove();
        }
        crash::pass_point("sitter.ended");
        write_exit(&self.dir, self.exit_file, &ended)?;
        crash::pass_point("sitter.told");
        Ok(())
    }
}

/// All signals wait in a file that the loop reads. None is ever delivered, so none can end us but SIGKILL, and what was
/// sent before we were ready is not lost: `start` has us born with them blocked.
fn block_signals() -> io::Result<OwnedFd> {
    // SAFETY: the sets are initialised by the calls before they are read.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        // A fault of our own must end us: blocked, it would do so anyway, but without its name.
        for own in [
            libc::SIGSEGV,
            libc::SIGBUS,
            libc::SIGILL,
            libc::SIGFPE,
            libc::SIGABRT,
            libc::SIGTRAP,
            libc::SIGSYS,
        ] {
            libc::sigdelset(&raw mut all, own);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        let mut heard: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut heard);
        for signal in [libc::SIGTERM, libc::SIGUSR1, libc::SIGCHLD] {
            libc::sigaddset(&raw mut heard, signal);
        }
        match libc::signalfd(-1, &raw const heard, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

/// The folder's lock: handed to us as standard input by `start`, which held it before we existed; or, if a person called
/// us by hand, taken now.
fn take_lock(dir: &Path) -> io::Result<Option<File>> {
    let path = dir.join(files::LOCK);
    let given = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let file = match (given.metadata(), fs::metadata(&path)) {
        (Ok(given_meta), Ok(meta)) if (given_meta.dev(), given_meta.ino()) == (meta.dev(), meta.ino()) => {
            given
        }
        _ => {
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?
        }
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

/// Closes what some library of the engine forgot to close for us: we would hold it open for as long as the agent runs.
fn close_inherited() {
    // SAFETY: we are the first to run in this process (see `sit`), so nobody uses what is closed here.
    unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
}

/// Writes `sitter.json`, which must not exist: the second fence after the lock. False: it does.
fn write_identity_file(dir: &Path, pid: i32, sandbox: Option<SandboxLevel>) -> io::Result<bool> {
    let started =
        ProcessStat::read_process(pid)?.ok_or_else(|| io::Error::other("read our own start time"))?.started;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(dir.join(files::SITTER));
    let mut file = match file {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(error),
    };
    let written = file.write_all(&files::write_identity(&SitterProcess {
        pid,
        started,
        boot: disk::boot_id()?,
        sandbox,
    }));
    if let Err(error) = written {
        // Nothing was run, so nothing shall say that something was.
        let _ = fs::remove_file(dir.join(files::SITTER)); // if that fails too we count as vanished: the safe reading
        return Err(error);
    }
    Ok(true)
}

fn reserve_exit(dir: &Path) -> io::Result<File> {
    const ROOM: usize = 4096; // the longest record: messages are cut to fit
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(dir.join(files::EXIT_TMP))?;
    file.write_all(&[b' '; ROOM])?;
    Ok(file)
}

fn write_exit(dir: &Path, file: File, ended: &SitterEnd) -> io::Result<()> {
    const SPAN: Duration = Duration::from_secs(60); // the engine frees space when the disk is full, and then we can still tell
    const PAUSE: Duration = Duration::from_millis(200);
    use std::os::unix::fs::FileExt as _;
    let text = files::write_ended(ended);
    let mut last = Ok(());
    let written = retry_until(SPAN, PAUSE, || {
        let written = file
            .write_all_at(&text, 0)
            .and_then(|()| file.set_len(text.len() as u64))
            .and_then(|()| fs::rename(dir.join(files::EXIT_TMP), dir.join(files::EXIT)));
        match written {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                last = Err(error);
                None
            }
            done => Some(done), // written, or the folder was removed under us
        }
    });
    written.unwrap_or(last)
}

fn spawn_child(
    dir: &Path,
    spec: &mut SitterSpec,
    nofile: Option<u64>,
    groups: (Option<&Cgroup>, Option<&ProcessLimitGroup>),
) -> Result<PendingChild, ChildExit> {
    let stdin = match &spec.stdin {
        Some(path) => {
            open_stdin(path).map_err(|error| refused_exit(&format!("open `{}`", path.display()), &error))?
        }
        None => child::open_null().map_err(|error| refused_exit("open /dev/null", &error))?,
    };
    let mut env = std::mem::take(&mut spec.env);
    env.retain(|(key, _)| key != sweep::MARK);
    env.push((sweep::MARK.into(), (&spec.marker).into()));
    let socket = spec.signal.as_ref().map(|signal| signal.socket.as_path());
    let run_name = identity::run_name(&spec.marker);
    let sandbox = spec.sandbox.as_ref().map(|sandbox| SandboxSetup::new(sandbox, dir, socket, &run_name));
    let sandbox = sandbox.transpose().map_err(|refusal| no_sandbox(&refusal))?;
    let plan = SpawnPlan::new(std::mem::take(&mut spec.argv), env, &spec.cwd, nofile, &spec.marker, sandbox)
        .map_err(|error| refused_exit("prepare the arguments", &error.into()))?;
    plan.spawn_child(stdin.as_fd(), groups).map_err(|failure| explain_failure(spec, failure))
}

/// Only a plain file: opening a fifo or a device may never come back.
fn open_stdin(path: &Path) -> io::Result<OwnedFd> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a plain file"));
    }
    Ok(File::open(path)?.into())
}

fn refused_exit(doing: &str, error: &io::Error) -> ChildExit {
    let errno = error.raw_os_error().unwrap_or(0);
    ChildExit::NotStarted {
        message: shorten_message(format!("{doing}: {error}")),
        missing: false,
        denied: false,
        errno,
    }
}

fn no_sandbox(refusal: &SandboxError) -> ChildExit {
    let errno = match refusal {
        SandboxError::Failed { errno, .. } => *errno,
        SandboxError::Missing(_) | SandboxError::Places(_) => 0,
    };
    ChildExit::NotStarted {
        message: shorten_message(refusal.to_string()),
        missing: false,
        denied: !is_transient(errno),
        errno,
    }
}

/// Want of memory or of processes is nobody's fault and may pass; whatever else stands in the way stays there.
fn is_transient(errno: i32) -> bool {
    matches!(errno, libc::EAGAIN | libc::ENOMEM)
}

fn explain_failure(spec: &SitterSpec, failure: SpawnFailure) -> ChildExit {
    let SpawnFailure { stage, errno } = failure;
    let doing = match stage {
        SpawnStage::Fork => "start a process".to_owned(),
        SpawnStage::Cgroup => "enter the control group".to_owned(),
        SpawnStage::Session => "make a session".to_owned(),
        SpawnStage::Folder => format!("enter `{}`", spec.cwd.display()),
        SpawnStage::Streams => "connect its streams".to_owned(),
        SpawnStage::Exec => "run the program, or the interpreter it names".to_owned(),
        SpawnStage::Sandbox(step) => {
            let level = spec.sandbox.as_ref().map_or(SandboxLevel::Write, |sandbox| sandbox.level);
            let message = shorten_message(step.explain_error(level, errno));
            return ChildExit::NotStarted { message, missing: false, denied: !is_transient(errno), errno };
        }
    };
    let message = shorten_message(format!("{doing}: {}", io::Error::from_raw_os_error(errno)));
    let missing = stage == SpawnStage::Exec && errno == libc::ENOENT;
    let denied = stage == SpawnStage::Exec && errno == libc::EACCES;
    ChildExit::NotStarted { message, missing, denied, errno }
}

/// Messages go into a record of bounded size, and a path may be long.
fn shorten_message(mut message: String) -> String {
    const LEN_MAX: usize = 512;
    if message.len() > LEN_MAX {
        let cut = (0..=LEN_MAX).rev().find(|at| message.is_char_boundary(*at)).expect("0 is one");
        message.truncate(cut);
        message.push('…');
    }
    message
}

fn not_started(spec: &SitterSpec, exit: ChildExit, began_ms: i64, in_cgroup: bool) -> SitterEnd {
    SitterEnd {
        exit,
        cause: EndCause::Own,
        began_ms,
        ended_ms: SystemClock.now_ms(),
        out: Default::default(),
        err: Default::default(),
        swept: 0,
        left: 0,
        contained: if in_cgroup { Containment::Cgroup } else { Containment::Subreaper },
        sandbox: spec.sandbox.as_ref().map(|sandbox| sandbox.level),
        oom_kills: 0,
    }
}

/// What the loop is about at the moment.
enum SitterPhase {
    /// The child does its work.
    Working,
    /// The tree was asked to end and has until then.
    Asked { until_ms: u64 },
    /// The main child has ended; others may finish what they are writing.
    Draining { until_ms: u64 },
    /// All that is left is being killed.
    Killing { since_ms: u64, hunt: tree::ProcessTreeKiller, in_group: bool },
}

/// The loop's state, from the child's birth to the empty tree.
struct SitterLoop<'a> {
    pid: i32,
    signals: OwnedFd,
    spec: &'a SitterSpec,
    dir: PathBuf,
    main: i32,
    word: OwnedFd,
    out: OutputDrain,
    err: OutputDrain,
    cgroup: Option<&'a Cgroup>,
    deadline: Deadline,
    phase: SitterPhase,
    end: Option<(WaitStatus, i64)>,
    cause: EndCause,
    asked: bool,
    asked_now: bool,
    swept: u32,
    /// Counts since before the child was born.
    oom_counter: Option<OomCounter>,
}

/// Whether the tree has processes.
#[derive(PartialEq, Eq)]
enum ProcessTreeState {
    Alive,
    Empty,
}

impl<'a> SitterLoop<'a> {
    fn new(
        dir: &Path,
        pid: i32,
        signals: OwnedFd,
        spec: &'a SitterSpec,
        child: PendingChild,
        cgroup: Option<&'a Cgroup>,
    ) -> SitterLoop<'a> {
        let PendingChild { pid: main, word, out, err, in_cgroup } = child;
        let file = |name| OpenOptions::new().create(true).append(true).mode(0o600).open(dir.join(name)).ok();
        SitterLoop {
            pid,
            signals,
            dir: dir.to_owned(),
            main,
            word,
            out: OutputDrain::new(out, file(files::OUT), spec.out_cap),
            err: OutputDrain::new(err, file(files::ERR), spec.out_cap),
            cgroup: cgroup.filter(|_| in_cgroup),
            deadline: Deadline::new(SystemClock.mono_ms(), spec.deadline_ms),
            phase: SitterPhase::Working,
            end: None,
            cause: EndCause::Own,
            asked: false,
            asked_now: false,
            swept: 0,
            oom_counter: None,
            spec,
        }
    }

    fn run_loop(mut self, began_ms: i64) -> SitterEnd {
        let mut left = 0;
        loop {
            let tree = self.reap_children();
            if tree == ProcessTreeState::Empty {
                break;
            }
            let now_ms = SystemClock.mono_ms();
            if let SitterPhase::Killing { since_ms, .. } = self.phase
                && now_ms.saturating_sub(since_ms) > KILL_MAX_MS
            {
                left = self.count_left();
                break;
            }
            let nap = self.advance_phase(now_ms);
            self.wait_for_events(nap);
            self.read_signals();
            self.out.pull_some();
            self.err.pull_some();
        }
        self.conclude_run(began_ms, left)
    }

    /// Moves on to the next phase if it is time, does what the phase asks for, and says how long to sleep at most.
    fn advance_phase(&mut self, now_ms: u64) -> Option<Duration> {
        let spent = if is_paused(&self.dir, SystemClock.now_ms()) {
            self.deadline.skip_elapsed(now_ms);
            false
        } else {
            self.deadline.spend_elapsed(now_ms)
        };
        let ms = |until_ms: u64| Some(Duration::from_millis(until_ms.saturating_sub(now_ms)));
        match &mut self.phase {
            SitterPhase::Working if self.end.is_some() => {
                self.phase = SitterPhase::Draining { until_ms: now_ms + DRAIN_MS };
                Some(Duration::ZERO)
            }
            SitterPhase::Working if self.asked || self.asked_now || spent => {
                self.cause = if self.asked || self.asked_now { EndCause::Asked } else { EndCause::Deadline };
                if self.asked_now || self.spec.grace_ms == 0 {
                    self.begin_killing(now_ms);
                } else {
                    let _ = tree::ask_descendants_to_end(self.pid); // without /proc nobody is asked, and the killing comes all the same
                    self.phase = SitterPhase::Asked { until_ms: now_ms + self.spec.grace_ms };
                }
                Some(Duration::ZERO)
            }
            SitterPhase::Working => self.deadline.next_sleep(),
            SitterPhase::Asked { until_ms } if self.asked_now || now_ms >= *until_ms => {
                self.begin_killing(now_ms);
                Some(Duration::ZERO)
            }
            SitterPhase::Asked { until_ms } => ms(*until_ms),
            SitterPhase::Draining { until_ms } => {
                let silent = self.out.pipe().is_none() && self.err.pipe().is_none();
                if silent || self.asked_now || now_ms >= *until_ms {
                    self.begin_killing(now_ms);
                    return Some(Duration::ZERO);
                }
                ms(*until_ms)
            }
            SitterPhase::Killing { since_ms, hunt, in_group } => {
                // The kernel has killed the group, and those deaths are on their way: no need to look through the
                // machine for them at once. The hunt is for what left the group, or never was in one.
                if *in_group {
                    *in_group = false;
                    return Some(Duration::from_millis(KILL_STEP_MS));
                }
                let _ = hunt.run_round(); // /proc unreadable for once: the next round is soon
                let fast = now_ms.saturating_sub(*since_ms) < KILL_FAST_MS;
                Some(Duration::from_millis(if fast { KILL_STEP_MS } else { KILL_SLOW_STEP_MS }))
            }
        }
    }

    fn begin_killing(&mut self, now_ms: u64) {
        let in_group = self.cgroup.is_some_and(|cgroup| cgroup.kill_all().is_ok());
        self.phase =
            SitterPhase::Killing { since_ms: now_ms, hunt: tree::ProcessTreeKiller::new(self.pid), in_group };
    }

    /// Collects whoever has died. Having no child left is the proof that the tree is empty.
    fn reap_children(&mut self) -> ProcessTreeState {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == self.main => {
                    self.end = Some((status, SystemClock.now_ms()));
                }
                Ok(Some((_, status))) => {
                    if matches!(self.phase, SitterPhase::Killing { .. })
                        && status.terminating_signal() == Some(libc::SIGKILL)
                    {
                        self.swept += 1;
                    }
                }
                Ok(None) => return ProcessTreeState::Alive,
                Err(Errno::INTR) => {}
                Err(_) => return ProcessTreeState::Empty, // ECHILD: nothing else can be said here
            }
        }
    }

    fn wait_for_events(&mut self, nap: Option<Duration>) {
        let mut fds = Vec::with_capacity(3);
        fds.push(PollFd::new(&self.signals, PollFlags::IN));
        fds.extend(self.out.pipe().map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)));
        fds.extend(self.err.pipe().map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)));
        // One millisecond more than asked: the clock is read in whole ones, and waking early means looking twice.
        let span = nap.map(|nap| if nap.is_zero() { nap } else { nap + Duration::from_millis(1) });
        let span = span.map(|span| Timespec {
            tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(span.subsec_nanos()),
        });
        poll(&mut fds, span.as_ref()).ok(); // interrupted or not, what follows looks at everything
    }

    fn read_signals(&mut self) {
        let mut info = [0; size_of::<libc::signalfd_siginfo>()];
        while let Ok(read) = rustix::io::read(&self.signals, &mut info)
            && read == info.len()
        {
            // The number comes first in the record.
            match i32::from_ne_bytes([info[0], info[1], info[2], info[3]]) {
                libc::SIGTERM => self.asked = true,
                libc::SIGUSR1 => self.asked_now = true,
                _ => {}
            }
        }
    }

    fn count_left(&self) -> u32 {
        let all: Vec<ProcessStat> = tree::list_processes().and_then(Iterator::collect).unwrap_or_default();
        u32::try_from(tree::find_descendants(&all, &[self.pid]).len()).unwrap_or(u32::MAX).max(1)
    }

    fn conclude_run(mut self, began_ms: i64, left: u32) -> SitterEnd {
        const LAST_TURNS: u32 = 4; // a pipe's worth and more; a stranger who holds the other end must not keep us
        if matches!(self.phase, SitterPhase::Killing { .. }) {
            // Whoever was hunted is dead; whoever has the mark and was not below us is not of this tree but of this run.
            self.swept += sweep::sweep_sparing(&self.spec.marker, self.pid).unwrap_or(0);
        }
        for drain in [&mut self.out, &mut self.err] {
            for _ in 0..LAST_TURNS {
                match drain.pull_some() {
                    DrainState::More => {}
                    DrainState::Dry | DrainState::Closed => break,
                }
            }
        }
        // Only now: a child whose exec failed has ended, and waking for every exec that went well would be a waste.
        let exit = match (SpawnFailure::read_failure(&self.word), self.end) {
            (Some(failure), _) => explain_failure(self.spec, failure),
            (None, Some((status, _))) => match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => ChildExit::Code(code),
                (None, signal) => ChildExit::Signal(signal.unwrap_or(libc::SIGKILL)),
            },
            (None, None) => ChildExit::Signal(libc::SIGKILL), // it was killed and does not die: `left` says so
        };
        SitterEnd {
            exit,
            cause: self.cause,
            began_ms,
            ended_ms: self.end.map_or_else(|| SystemClock.now_ms(), |(_, at_ms)| at_ms),
            out: self.out.finish_spool(),
            err: self.err.finish_spool(),
            swept: self.swept,
            left,
            contained: if self.cgroup.is_some() { Containment::Cgroup } else { Containment::Subreaper },
            sandbox: self.spec.sandbox.as_ref().map(|sandbox| sandbox.level),
            oom_kills: self.oom_counter.as_ref().map_or(0, OomCounter::count_kills),
        }
    }
}

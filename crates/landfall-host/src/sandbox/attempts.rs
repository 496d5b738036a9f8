//! What a program in the sandbox could try: the probes of `landfall doctor --sandbox`, and of the table in the guide. Each of
//! them undoes itself or changes nothing that lasts, because without a sandbox all of them succeed.
//!
//! The scene is a folder that whoever asks has laid out; nothing of the user's own is touched.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One thing to try.
pub struct SandboxAttempt {
    /// A word for programs.
    pub name: &'static str,
    /// What is tried, for people.
    pub what: &'static str,
    run: fn(&AttemptScene) -> io::Result<()>,
}

/// Where things are, for whoever lays the scene out and for whoever tries.
pub struct AttemptScene {
    /// The folder of everything.
    pub root: PathBuf,
    /// A process outside.
    pub engine: i32,
    /// A port on which it listens.
    pub port: u16,
    /// A terminal outside.
    pub terminal: PathBuf,
}

impl AttemptScene {
    /// The home folder of the scene.
    pub fn home_path(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The user's checkout.
    pub fn project_path(&self) -> PathBuf {
        self.home_path().join("project")
    }

    /// Landfall's state, in the place of a project's.
    pub fn state_path(&self) -> PathBuf {
        self.home_path().join(".local/state/landfall/probe")
    }

    /// The workspace.
    pub fn work_path(&self) -> PathBuf {
        self.state_path().join("workspaces/T1")
    }

    /// The workspace of somebody else.
    pub fn other_work(&self) -> PathBuf {
        self.state_path().join("workspaces/T2")
    }

    /// The socket of its engine. The engine's key is beside it.
    pub fn engine_socket(&self) -> PathBuf {
        self.state_path().join("engine.sock")
    }

    /// A toolchain in the home folder that a variable names.
    pub fn moved_cargo(&self) -> PathBuf {
        self.home_path().join("sdk/cargo")
    }

    /// A folder that the settings open to every agent.
    pub fn shared_path(&self) -> PathBuf {
        self.root.join("shared")
    }

    /// A folder for everybody's temporary files.
    pub fn outside_path(&self) -> PathBuf {
        self.root.join("outside")
    }

    /// The file that says that everything is in its place.
    pub fn go_file(&self) -> PathBuf {
        self.work_path().join("go")
    }

    /// Mounts the home folder a second time, for this thread and what it starts. Only root can.
    ///
    /// # Errors
    /// What the system said.
    pub fn mount_home_again(&self) -> io::Result<()> {
        use std::os::unix::ffi::OsStrExt as _;
        let raw = |path: PathBuf| std::ffi::CString::new(path.as_os_str().as_bytes());
        let (home, again) = (raw(self.home_path())?, raw(self.root.join("mount"))?);
        let (none, root) = (std::ptr::null(), c"/".as_ptr());
        // SAFETY: all texts outlive the calls; this thread shares its view of the files with no other one from here on.
        unsafe {
            check_call(libc::unshare(libc::CLONE_NEWNS | libc::CLONE_FS))?;
            check_call(libc::mount(none, root, none, libc::MS_REC | libc::MS_PRIVATE, none.cast()))?;
            check_call(libc::mount(home.as_ptr(), again.as_ptr(), none, libc::MS_BIND, none.cast()))
        }
    }

    /// The name of an abstract socket.
    pub fn abstract_name(&self) -> String {
        format!("landfall-probe-{}", self.engine)
    }
}

/// What stands in every file that is tried to read.
pub const CONTENT: &str = "landfall probe\n";

fn read_file(path: &Path) -> io::Result<()> {
    let mut text = String::new();
    File::open(path)?.take(64).read_to_string(&mut text)?;
    if text == CONTENT { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ENODATA)) }
}

/// Adds nothing to a file, but could.
fn open_to_write(path: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).open(path).map(drop)
}

fn create_file(path: &Path) -> io::Result<()> {
    fs::write(path, "")?;
    fs::remove_file(path)
}

fn connect_socket(path: &Path) -> io::Result<()> {
    UnixStream::connect(path).map(drop)
}

fn check_call(result: impl Into<libc::c_long>) -> io::Result<()> {
    if result.into() == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// All of them, in the order of the table.
pub const ATTEMPTS: &[SandboxAttempt] = &[
    SandboxAttempt {
        name: "write-workspace",
        what: "write to its workspace",
        run: |scene| create_file(&scene.work_path().join("new")),
    },
    SandboxAttempt {
        name: "write-tmpdir",
        what: "write to its folder for temporary files",
        run: |_| create_file(&std::env::temp_dir().join("new")),
    },
    SandboxAttempt {
        name: "write-shared",
        what: "write to a folder that `run.sandbox_write` names",
        run: |scene| create_file(&scene.shared_path().join("new")),
    },
    SandboxAttempt {
        name: "write-home",
        what: "write to the home folder",
        run: |scene| create_file(&scene.home_path().join("new")),
    },
    SandboxAttempt {
        name: "write-project",
        what: "change a file of your checkout",
        run: |scene| open_to_write(&scene.project_path().join("file")),
    },
    SandboxAttempt {
        name: "write-state",
        what: "change Landfall's state",
        run: |scene| open_to_write(&scene.state_path().join("file")),
    },
    SandboxAttempt {
        name: "write-other-workspace",
        what: "change a file of another agent's workspace",
        run: |scene| open_to_write(&scene.other_work().join("file")),
    },
    SandboxAttempt {
        name: "change-mode",
        what: "change the mode of a file outside",
        run: |scene| {
            fs::set_permissions(scene.outside_path().join("file"), fs::Permissions::from_mode(0o600))
        },
    },
    SandboxAttempt {
        name: "read-system",
        what: "read files of the system",
        run: |_| File::open("/etc/passwd").map(drop),
    },
    SandboxAttempt {
        name: "read-toolchain",
        what: "read a toolchain in the home folder (`~/.cargo`)",
        run: |scene| read_file(&scene.home_path().join(".cargo/config.toml")),
    },
    SandboxAttempt {
        name: "read-project",
        what: "read your checkout",
        run: |scene| read_file(&scene.project_path().join("file")),
    },
    SandboxAttempt {
        name: "read-home",
        what: "read another file in the home folder",
        run: |scene| read_file(&scene.home_path().join("notes")),
    },
    SandboxAttempt {
        name: "read-state",
        what: "read Landfall's state",
        run: |scene| read_file(&scene.state_path().join("file")),
    },
    SandboxAttempt {
        name: "read-tmp",
        what: "read files in `/tmp`",
        run: |scene| read_file(&scene.outside_path().join("file")),
    },
    SandboxAttempt {
        name: "list-hidden",
        what: "list the names of hidden files",
        run: |scene| {
            let found = fs::read_dir(scene.home_path().join(".ssh"))?.next();
            found.map(drop).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
        },
    },
    SandboxAttempt {
        name: "moved-secret",
        what: "read a login that a variable moves (`CARGO_HOME`)",
        run: |scene| read_file(&scene.moved_cargo().join("credentials.toml")),
    },
    SandboxAttempt {
        name: "alias-link",
        what: "read a secret by a symbolic link to the home folder",
        run: |scene| read_file(&scene.root.join("link/notes")),
    },
    SandboxAttempt {
        name: "alias-mount",
        what: "read a secret by a second mount of the home folder",
        run: |scene| read_file(&scene.root.join("mount/notes")),
    },
    SandboxAttempt {
        name: "alias-hard-link",
        what: "read a secret by a hard link to it in `/tmp`",
        run: |scene| read_file(&scene.outside_path().join("hard-link")),
    },
    SandboxAttempt {
        name: "socket-tmp-before",
        what: "connect to a socket in `/tmp` that was there at the start",
        run: |scene| connect_socket(&scene.outside_path().join("before.sock")),
    },
    SandboxAttempt {
        name: "socket-tmp-after",
        what: "connect to a socket in `/tmp` that came later",
        run: |scene| connect_socket(&scene.outside_path().join("after.sock")),
    },
    SandboxAttempt {
        name: "socket-home-before",
        what: "connect to a socket in the home folder that was there at the start",
        run: |scene| connect_socket(&scene.home_path().join("before.sock")),
    },
    SandboxAttempt {
        name: "socket-home-after",
        what: "connect to a socket in the home folder that came later",
        run: |scene| connect_socket(&scene.home_path().join("after.sock")),
    },
    SandboxAttempt {
        name: "socket-state",
        what: "connect to a socket in Landfall's state",
        run: |scene| connect_socket(&scene.engine_socket()),
    },
    SandboxAttempt {
        name: "engine",
        what: "act as you on the engine's socket",
        run: |scene| ask_engine(UnixStream::connect(scene.engine_socket())?, scene),
    },
    SandboxAttempt {
        name: "engine-pid-reuse",
        what: "act as you on the engine's socket by the connection of a process that has ended (pid reuse)",
        run: |scene| ask_engine(connect_by_child(&scene.engine_socket())?, scene),
    },
    SandboxAttempt {
        name: "socket-abstract",
        what: "connect to an abstract socket",
        run: |scene| {
            UnixStream::connect_addr(&SocketAddr::from_abstract_name(scene.abstract_name())?).map(drop)
        },
    },
    SandboxAttempt {
        name: "network",
        what: "connect to a port of this machine",
        run: |scene| {
            let address = std::net::SocketAddr::from(([127, 0, 0, 1], scene.port));
            TcpStream::connect_timeout(&address, Duration::from_secs(5)).map(drop)
        },
    },
    SandboxAttempt {
        name: "terminal-read",
        what: "read what is typed on your terminal",
        run: |scene| open_terminal(scene, libc::O_RDONLY),
    },
    SandboxAttempt {
        name: "terminal-write",
        what: "write to your terminal",
        run: |scene| open_terminal(scene, libc::O_WRONLY),
    },
    SandboxAttempt { name: "terminal-own", what: "make a terminal of its own", run: |_| own_terminal() },
    SandboxAttempt {
        name: "shared-memory",
        what: "read shared memory of others",
        run: |scene| read_file(&Path::new("/dev/shm").join(scene.abstract_name())),
    },
    SandboxAttempt {
        name: "signal",
        what: "signal a process outside",
        run: |scene| check_call(unsafe { libc::kill(scene.engine, 0) }),
    },
    SandboxAttempt {
        name: "process-environment",
        what: "read the environment of a process outside",
        run: |scene| File::open(format!("/proc/{}/environ", scene.engine)).map(drop),
    },
    SandboxAttempt {
        name: "priority",
        what: "change the priority of a process outside",
        run: |scene| renice_process(scene.engine),
    },
    SandboxAttempt {
        name: "processors",
        what: "change the processors of a process outside",
        run: |scene| move_to_same_processors(scene.engine),
    },
    SandboxAttempt {
        name: "scheduling",
        what: "change the scheduling policy of a process outside",
        run: |scene| schedule_as_before(scene.engine),
    },
    SandboxAttempt {
        name: "disk-priority",
        what: "change the disk priority of a process outside",
        run: |scene| disk_priority(scene.engine),
    },
    SandboxAttempt {
        name: "limits",
        what: "change the limits of a process outside",
        run: |scene| limit_as_before(scene.engine),
    },
    SandboxAttempt {
        name: "hard-link",
        what: "hard-link a file of another agent's workspace into its own",
        run: |scene| {
            fs::hard_link(scene.other_work().join("file"), scene.work_path().join("linked"))?;
            fs::remove_file(scene.work_path().join("linked"))
        },
    },
    SandboxAttempt {
        name: "hard-link-shared",
        what: "hard-link a file of its workspace into a folder that `run.sandbox_write` names",
        run: |scene| {
            fs::hard_link(scene.work_path().join("own"), scene.shared_path().join("linked"))?;
            fs::remove_file(scene.shared_path().join("linked"))
        },
    },
    SandboxAttempt {
        name: "passed-descriptor",
        what: "use a descriptor that another process passes on in a folder that `run.sandbox_write` names",
        run: |scene| receive_descriptor(&scene.shared_path().join("pass.sock")),
    },
];

/// Tries everything, once it is in its place, and the secrets: names below the home folder. One line each: a name, and the
/// error number, 0 for success.
pub fn try_all(scene: &AttemptScene, secrets: &[String]) -> String {
    const PATIENCE: Duration = Duration::from_secs(20);
    let _ = fs::write(scene.work_path().join("ready"), ""); // whoever waits for it gives up in time
    // Whether or not it came: what is tried then says what it finds.
    let _came = crate::wait::retry_until(PATIENCE, Duration::from_millis(2), || {
        scene.go_file().exists().then_some(())
    });
    let mut lines = String::new();
    let mut tell = |name: &str, result: io::Result<()>| {
        let errno = result.err().map_or(0, |error| error.raw_os_error().unwrap_or(-1));
        lines.push_str(&format!("{name} {errno}\n"));
    };
    for attempt in ATTEMPTS {
        tell(attempt.name, (attempt.run)(scene));
    }
    for secret in secrets {
        let path = scene.home_path().join(secret);
        let file = if path.is_dir() { path.join("id") } else { path };
        tell(&format!("secret:{secret}"), read_file(&file));
    }
    lines
}

fn open_terminal(scene: &AttemptScene, access: libc::c_int) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt as _;
    let path = std::ffi::CString::new(scene.terminal.as_os_str().as_bytes())?;
    // SAFETY: the path outlives the call; the descriptor is ours and closed once.
    unsafe {
        let file = libc::open(path.as_ptr(), access | libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC);
        check_call(file)?;
        drop(OwnedFd::from_raw_fd(file));
    }
    // In a folder of terminals of its own the same name is another terminal.
    let is_same =
        fs::metadata(&scene.terminal).is_ok_and(|meta| meta.permissions().mode() & 0o777 == TERMINAL_MODE);
    if is_same { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ENOENT)) }
}

/// Set on the terminal of the scene, to know it by.
pub const TERMINAL_MODE: u32 = 0o640;

fn own_terminal() -> io::Result<()> {
    use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let mut slave = OpenOptions::new().write(true).open(name.to_str().unwrap_or_default())?;
    slave.write_all(b"x")
}

fn renice_process(pid: i32) -> io::Result<()> {
    let who = pid.unsigned_abs();
    // SAFETY: plain numbers.
    unsafe {
        let now = libc::getpriority(libc::PRIO_PROCESS, who);
        check_call(libc::setpriority(libc::PRIO_PROCESS, who, now))
    }
}

fn move_to_same_processors(pid: i32) -> io::Result<()> {
    // SAFETY: the set is filled by the first call before the second reads it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        check_call(libc::sched_getaffinity(pid, size_of::<libc::cpu_set_t>(), &raw mut set))?;
        check_call(libc::sched_setaffinity(pid, size_of::<libc::cpu_set_t>(), &raw const set))
    }
}

fn schedule_as_before(pid: i32) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: the structure outlives the call.
    unsafe { check_call(libc::sched_setscheduler(pid, libc::sched_getscheduler(pid), &raw const parameter)) }
}

fn disk_priority(pid: i32) -> io::Result<()> {
    const PROCESS: libc::c_int = 1;
    // SAFETY: plain numbers.
    unsafe {
        let now = libc::syscall(libc::SYS_ioprio_get, PROCESS, pid);
        check_call(libc::syscall(libc::SYS_ioprio_set, PROCESS, pid, now))
    }
}

fn limit_as_before(pid: i32) -> io::Result<()> {
    // SAFETY: the structure is filled by the first call before the second reads it.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        check_call(libc::prlimit(pid, libc::RLIMIT_CORE, std::ptr::null(), &raw mut limit))?;
        check_call(libc::prlimit(pid, libc::RLIMIT_CORE, &raw const limit, std::ptr::null_mut()))
    }
}

/// Asks the engine as the user does: with its key, if that can be read. Succeeds only if the engine answers as it answers them.
///
/// # Errors
/// What the system said, or that the engine refuses.
pub fn ask_engine(mut stream: UnixStream, scene: &AttemptScene) -> io::Result<()> {
    const WAIT_MAX: Duration = Duration::from_secs(5);
    let key = fs::read_to_string(scene.engine_socket().with_extension("key"));
    let key = key.unwrap_or_else(|_| "0".repeat(64));
    stream.set_read_timeout(Some(WAIT_MAX))?;
    let head = "GET /api/v1/hello HTTP/1.1\r\nHost: landfall\r\nConnection: close";
    stream.write_all(format!("{head}\r\nlandfall-key: {}\r\n\r\n", key.trim_end()).as_bytes())?;
    let mut answer = String::new();
    stream.take(4096).read_to_string(&mut answer)?;
    if answer.starts_with("HTTP/1.1 200 ") { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EACCES)) }
}

/// A connection that a child made, which has ended since: its process id is free for anybody.
fn connect_by_child(path: &Path) -> io::Result<UnixStream> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};
    let address = SocketAddrUnix::new(path)?;
    let stream = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    // SAFETY: between fork and exit the child makes one system call on values that stand already.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let code = i32::from(connect(&stream, &address).is_err());
        // SAFETY: ends the child without running anything of the parent.
        unsafe { libc::_exit(code) }
    }
    check_call(child)?;
    let mut status = 0;
    // SAFETY: our own child; the status outlives the call.
    check_call(unsafe { libc::waitpid(child, &raw mut status, 0) })?;
    if status != 0 {
        return Err(io::Error::from_raw_os_error(libc::ECONNREFUSED));
    }
    Ok(stream.into())
}

/// Takes the descriptor that whoever listens passes on, and could write by it.
fn receive_descriptor(socket: &Path) -> io::Result<()> {
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(&stream, &mut [io::IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(mut files) = message
            && let Some(file) = files.next()
        {
            // SAFETY: an open descriptor; asked only how it may be used.
            let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
            return match flags & libc::O_ACCMODE {
                libc::O_RDWR => Ok(()),
                _ => Err(io::Error::from_raw_os_error(libc::EBADF)),
            };
        }
    }
    Err(io::Error::from_raw_os_error(libc::ENOENT))
}

/// Passes `file` on to whoever connects next. Ends with the listener's timeout.
pub fn pass_descriptor(stream: &UnixStream, file: &File) -> io::Result<()> {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use std::os::fd::AsFd as _;
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    ancillary.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(stream, &[io::IoSlice::new(b"x")], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

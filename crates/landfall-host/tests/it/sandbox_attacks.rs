//! An agent that tries to get out. Each attempt prints its name and the error number it met, 0 for success.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

fn tell<T>(name: &str, result: io::Result<T>) {
    println!("{name} {}", result.err().map_or(0, |error| error.raw_os_error().unwrap_or(-1)));
}

fn call(result: libc::c_long) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn append(path: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).open(path)?.write_all(b"!")
}

/// An empty file is as good as none: nothing was learned.
fn read(path: &Path) -> io::Result<()> {
    match File::open(path)?.read(&mut [0; 16])? {
        0 => Err(io::Error::from_raw_os_error(libc::ENODATA)),
        _ => Ok(()),
    }
}

/// Everything that an agent could think of, in a home laid out by the test.
pub fn all(home: &Path, engine: i32, port: u16) {
    let sitter = i32::try_from(std::os::unix::process::parent_id()).expect("small");
    let (state, repo) = (home.join("state"), home.join("repo"));
    let (work, tmp) = (state.join("work/T1"), state.join("tmp"));

    // What an honest agent does.
    tell("work.create", fs::write(work.join("new"), "x"));
    tell("work.change", append(&work.join("file")));
    tell("work.folder", fs::create_dir(work.join("folder")));
    tell("work.rename", fs::rename(work.join("new"), work.join("folder/new")));
    tell("work.link", fs::hard_link(work.join("folder/new"), work.join("again")));
    tell("work.chmod", fs::set_permissions(work.join("again"), fs::Permissions::from_mode(0o700)));
    tell("work.remove", fs::remove_dir_all(work.join("folder")));
    tell("work.socket", UnixListener::bind(work.join("s")).and_then(|_| UnixStream::pair()));
    tell("work.listed", append(&home.join("single")));
    tell("tmp.create", fs::write(tmp.join("new"), "x"));
    tell("read.notes", read(&home.join("notes")));
    tell("read.objects", read(&state.join("store.git/objects/pack")));
    tell("read.system", read(Path::new("/etc/passwd")));
    tell("read.list", fs::read_dir(home));
    tell("dev.null", fs::write("/dev/null", "x"));
    let shared = format!("/dev/shm/landfall-{}", std::process::id());
    tell("dev.shm", fs::write(&shared, "x").and_then(|()| fs::remove_file(&shared)));
    tell("dev.pty", pty());
    tell("dev.pty-peer", pty_peer());
    tell("tmp.shared", fs::write(home.join("shared/new"), "x"));
    tell("run.program", std::process::Command::new("/bin/true").status());
    tell("kill.own", kill_child());

    // What none of them may.
    tell("limit.mark", lower_run_mark());
    tell("root.packets", listen_to_packets());
    tell("repo.change", append(&repo.join("a")));
    tell("repo.truncate", File::options().write(true).open(repo.join("b")).and_then(|file| file.set_len(0)));
    tell("repo.create", fs::write(repo.join("new"), "x"));
    tell("repo.folder", fs::create_dir(repo.join("folder")));
    tell("repo.remove", fs::remove_file(repo.join("c")));
    tell("repo.rename", fs::rename(repo.join("d"), repo.join("e")));
    tell("repo.take", fs::rename(repo.join("f"), work.join("f")));
    tell("repo.give", fs::rename(work.join("file2"), repo.join("g")));
    tell("repo.link", fs::hard_link(repo.join("h"), work.join("h")).and_then(|()| append(&work.join("h"))));
    tell("repo.symlink", symlink(repo.join("i"), work.join("i")).and_then(|()| append(&work.join("i"))));
    tell(
        "repo.folder-link",
        symlink(&repo, work.join("j")).and_then(|()| fs::write(work.join("j/through"), "x")),
    );
    tell("repo.around", fs::write(work.join("../../../repo/around"), "x"));
    tell(
        "repo.fd",
        File::open(&repo).and_then(|folder| {
            use std::os::fd::AsRawFd as _;
            fs::write(format!("/proc/self/fd/{}/by-fd", folder.as_raw_fd()), "x")
        }),
    );
    tell("store.create", fs::write(state.join("store.git/objects/new"), "x"));
    tell("journal.change", append(&state.join("journal")));
    tell("journal.remove", fs::remove_file(state.join("journal2")));
    tell("home.create", fs::write(home.join("new"), "x"));
    tell(
        "run.create",
        fs::write(state.join("runs/1/exit.json"), "{}").and_then(|()| {
            fs::remove_file(state.join("runs/1/exit.json")) // the unharmed control must still end well
        }),
    );
    tell("read.journal", read(&state.join("journal")));
    tell("read.token", read(&state.join("token")));
    tell(
        "read.token-link",
        symlink(state.join("token"), work.join("t")).and_then(|()| read(&work.join("t"))),
    );
    tell(
        "read.token-hard",
        fs::hard_link(state.join("token"), work.join("u")).and_then(|()| read(&work.join("u"))),
    );
    tell("read.ssh", read(&home.join(".ssh/id")));
    tell("read.key-file", read(&home.join(".netrc")));
    tell("read.spec", read(&state.join("runs/1/spec.json")));
    let others = ["/dev/fuse", "/dev/net/tun", "/dev/vsock"].map(Path::new);
    if let Some(other) = others.into_iter().find(|path| path.exists()) {
        tell("dev.other", File::open(other));
    }
    tell("kill.sitter", call(unsafe { libc::kill(sitter, 0) }.into()));
    tell("kill.engine", call(unsafe { libc::kill(engine, 0) }.into()));
    tell("limit.engine", limit(engine));
    tell(
        "renice.engine",
        call(unsafe { libc::setpriority(libc::PRIO_PROCESS, engine.unsigned_abs(), 5) }.into()),
    );
    for (name, result) in schedule(engine) {
        tell(name, result);
    }
    tell("proc.environ", read(Path::new(&format!("/proc/{engine}/environ"))));
    tell("proc.root", read(Path::new(&format!("/proc/{sitter}/root/etc/passwd"))));
    tell("proc.mem", File::open(format!("/proc/{sitter}/mem")));
    tell("call.keyctl", call(unsafe { libc::syscall(libc::SYS_keyctl, 0, -3, 1) }));
    tell("call.io-uring", io_uring());
    tell("call.vm-readv", vm_read(sitter));
    if rustix::process::geteuid().is_root() {
        tell("root.mknod", mknod(&work.join("zero")));
        tell("root.mount", mount(&work));
        if let Some(disk) = disk() {
            tell("root.disk", read(&disk));
        }
        tell(
            "root.proc-write",
            fs::read("/proc/sys/vm/swappiness").and_then(|it| fs::write("/proc/sys/vm/swappiness", it)),
        );
    }
    tell("userns.mount", in_user_namespace(&work));

    // What one of the levels closes, and another does not.
    tell("repo.chmod", fs::set_permissions(repo.join("k"), fs::Permissions::from_mode(0o600)));
    tell(
        "hidden.list",
        fs::read_dir(home.join(".ssh"))
            .and_then(|mut it| it.next().ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))),
    );
    tell("net.tcp", TcpStream::connect(("127.0.0.1", port)));
    tell("net.udp", UdpSocket::bind("0.0.0.0:0").and_then(|it| it.connect(("127.0.0.1", 9))));
    tell(
        "net.host",
        call(unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW, 0) }.into()).and_then(|()| vsock()),
    );
    tell("net.service", UnixStream::connect(home.join("service.sock")));
    println!("done");
}

/// Speaks to these sockets, once the test has said that all of them are there.
pub fn connect(go: &Path, sockets: &[&str]) {
    println!("waiting");
    let until = Instant::now() + Duration::from_secs(60);
    while !go.exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(2));
    }
    for socket in sockets {
        tell(socket, UnixStream::connect(socket));
    }
    println!("done");
}

/// Reads each of these files.
pub fn read_all(files: &[&str]) {
    for file in files {
        tell(file, read(Path::new(file)));
    }
    println!("done");
}

/// Waits for the test to make what was not there, and tries to get at it.
pub fn later(home: &Path) {
    println!("waiting");
    let until = Instant::now() + Duration::from_secs(60);
    while !home.join("state/work/T1/go").exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(2));
    }
    tell("later.read", read(&home.join("later/secret")));
    tell("later.write", append(&home.join("later/secret")));
    tell("later.create", fs::write(home.join("later/new"), "x"));
    tell("neighbour.read", read(&home.join("neighbour")));
    tell("below.read", read(&home.join("repo/later")));
    println!("done");
}

/// Does all it can not to be found: forks twice with sessions of its own, takes off its mark, stops listening to TERM, tries
/// to trace its sitter and to hide in namespaces.
pub fn slip(name: &str) {
    let sitter = i32::try_from(std::os::unix::process::parent_id()).expect("small");
    // SAFETY: this program has one thread, and the calls take numbers only.
    unsafe {
        if libc::fork() == 0 {
            libc::setsid();
            libc::ptrace(libc::PTRACE_ATTACH, sitter, 0, 0);
            if libc::fork() == 0 {
                libc::setsid();
                libc::signal(libc::SIGTERM, libc::SIG_IGN);
                libc::ptrace(libc::PTRACE_ATTACH, sitter, 0, 0);
                libc::kill(sitter, libc::SIGSTOP);
                libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWPID);
                if libc::fork() == 0 {
                    libc::setsid();
                    use std::os::unix::process::CommandExt as _;
                    let exe = std::env::current_exe().expect("we run");
                    drop(std::process::Command::new(exe).args(["deaf", name]).env_clear().exec());
                    libc::_exit(1);
                }
                println!("slipped");
                std::thread::sleep(Duration::from_secs(60));
            }
            libc::_exit(0);
        }
    }
    std::thread::sleep(Duration::from_secs(60));
}

/// A socket to the host of a virtual machine. A machine that knows none is as open as one that does.
fn vsock() -> io::Result<()> {
    match call(unsafe { libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0) }.into()) {
        Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) && !is_apart() => Ok(()),
        result => result,
    }
}

/// Whether we have a network of our own, with nothing in it.
fn is_apart() -> bool {
    UdpSocket::bind("0.0.0.0:0").and_then(|it| it.connect(("127.0.0.1", 9))).is_err()
}

fn pty() -> io::Result<()> {
    let flags = rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY;
    let master = rustix::pty::openpt(flags)?;
    rustix::pty::unlockpt(&master)?;
    let name = rustix::pty::ptsname(&master, Vec::new())?;
    let mut slave = OpenOptions::new().write(true).open(name.to_str().expect("plain"))?;
    slave.write_all(b"x")
}

/// The other end of a terminal, without its name.
fn pty_peer() -> io::Result<()> {
    let flags = rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY;
    let master = rustix::pty::openpt(flags)?;
    rustix::pty::unlockpt(&master)?;
    rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
    Ok(())
}

fn kill_child() -> io::Result<()> {
    let mut child = std::process::Command::new("/bin/sleep").arg("60").spawn()?;
    child.kill()?;
    child.wait().map(drop)
}

fn limit(pid: i32) -> io::Result<()> {
    // SAFETY: the structure is filled by the first call before the second reads it.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        call(libc::prlimit(pid, libc::RLIMIT_CORE, std::ptr::null(), &raw mut limit).into())?;
        call(libc::prlimit(pid, libc::RLIMIT_CORE, &raw const limit, std::ptr::null_mut()).into())
    }
}

/// Every call that changes when another process runs, or when it reads the disk. Each sets what is set already.
fn schedule(pid: i32) -> [(&'static str, io::Result<()>); 5] {
    const IO_PROCESS: libc::c_int = 1;
    const IO_BEST_EFFORT: libc::c_int = 2 << 13 | 4;
    /// As in the kernel's `sched/types.h`, in its first version.
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    // SAFETY: every structure outlives the call that reads or fills it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(pid, size_of::<libc::cpu_set_t>(), &raw mut set);
        let affinity = libc::sched_setaffinity(pid, size_of::<libc::cpu_set_t>(), &raw const set);
        let affinity = call(affinity.into());
        let parameter = libc::sched_param { sched_priority: 0 };
        let policy = call(libc::sched_setscheduler(pid, libc::SCHED_OTHER, &raw const parameter).into());
        let parameter = call(libc::sched_setparam(pid, &raw const parameter).into());
        let attributes = Attributes { size: 48, nice: 19, ..Attributes::default() };
        let attributes = call(libc::syscall(libc::SYS_sched_setattr, pid, &raw const attributes, 0));
        let disk = call(libc::syscall(libc::SYS_ioprio_set, IO_PROCESS, pid, IO_BEST_EFFORT));
        [
            ("sched.affinity", affinity),
            ("sched.policy", policy),
            ("sched.parameter", parameter),
            ("sched.attributes", attributes),
            ("sched.disk", disk),
        ]
    }
}

fn io_uring() -> io::Result<()> {
    let mut params = [0u8; 256];
    // SAFETY: larger than the structure that the kernel fills.
    call(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, params.as_mut_ptr()) })
}

fn vm_read(pid: i32) -> io::Result<()> {
    let mut here = [0u8; 8];
    let local = libc::iovec { iov_base: here.as_mut_ptr().cast(), iov_len: here.len() };
    // The sitter is the same program, but not at the same address: what counts is which error comes.
    let remote = libc::iovec { iov_base: std::ptr::dangling_mut(), iov_len: here.len() };
    // SAFETY: the buffer outlives the call.
    match unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) } {
        -1 if io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT) => Ok(()),
        result => call(result as libc::c_long),
    }
}

fn mknod(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
    Ok(mknodat(CWD, path, FileType::CharacterDevice, Mode::from_raw_mode(0o600), makedev(1, 5))?)
}

/// A disk that can be read, if the machine shows one.
fn disk() -> Option<std::path::PathBuf> {
    let names = fs::read_dir("/sys/class/block").ok()?.flatten();
    names.map(|entry| Path::new("/dev").join(entry.file_name())).find(|disk| {
        disk.exists()
            && fs::read_to_string(format!(
                "/sys/class/block/{}/size",
                disk.file_name().expect("named").to_string_lossy()
            ))
            .is_ok_and(|size| size.trim() != "0")
    })
}

fn mount(at: &Path) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt as _;
    let path = std::ffi::CString::new(at.as_os_str().as_bytes()).expect("plain");
    // SAFETY: all texts outlive the calls.
    unsafe {
        let kind = c"tmpfs".as_ptr();
        call(libc::mount(kind, path.as_ptr(), kind, 0, std::ptr::null()).into())?;
        call(libc::umount(path.as_ptr()).into())
    }
}

/// Tries to be someone else: with a user namespace of one's own one may mount.
fn in_user_namespace(at: &Path) -> io::Result<()> {
    // SAFETY: this program has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let tried = call(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) }.into())
            .and_then(|()| mount(at));
        std::process::exit(tried.err().map_or(0, |error| error.raw_os_error().unwrap_or(255)));
    }
    let mut status = 0;
    // SAFETY: the number outlives the call.
    call(unsafe { libc::waitpid(child, &raw mut status, 0) }.into())?;
    match libc::WEXITSTATUS(status) {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// The limit by which the processes of a run are known.
fn lower_run_mark() -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure outlives the call.
    match unsafe { libc::setrlimit(libc::RLIMIT_LOCKS, &raw const limit) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// All that goes over the network of this machine, such as the token of a page. Takes root.
fn listen_to_packets() -> io::Result<()> {
    use std::os::fd::{FromRawFd as _, OwnedFd};
    const ALL: libc::c_int = 0x0300; // ETH_P_ALL, as the network writes it
    // SAFETY: plain numbers; the descriptor is ours.
    let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, ALL) };
    if socket == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    drop(unsafe { OwnedFd::from_raw_fd(socket) });
    Ok(())
}

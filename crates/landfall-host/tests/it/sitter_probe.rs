//! The integration tests' other processes: the sitter, an engine that can be killed, and agents that misbehave.
//!
//! `landfall-host-probe sit DIR` is the sitter; `engine DIR COMMAND…` starts a sitter and then waits to be killed;
//! everything else is an agent.

use landfall_host::sitter;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

#[path = "sandbox_attacks.rs"]
mod attacks;
#[path = "sitter_speak.rs"]
mod speak;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["sit", dir] => {
            let name = std::env::args().next().unwrap_or_default();
            if name.ends_with("no-cgroup") {
                // SAFETY: nothing else runs in this process yet.
                unsafe { std::env::set_var("LANDFALL_NO_CGROUP", "1") };
            }
            if let Some((_, part)) = name.rsplit_once("-without-") {
                // SAFETY: as above.
                unsafe { std::env::set_var("LANDFALL_SANDBOX_BREAK", part) };
            }
            return ExitCode::from(sitter::run_sitter(Path::new(dir)));
        }
        ["engine", dir, command @ ..] => engine(Path::new(dir), command),
        ["git-status", root] => {
            let git = landfall_host::git::Git::find_installed().expect("git is here");
            let repo = landfall_host::git::Repo::discover(&git, Path::new(root)).expect("a repository");
            let _ = repo.list_uncommitted(); // a test ends us before it answers
        }
        ["code", code] => return ExitCode::from(code.parse::<u8>().expect("a code")),
        ["abort"] => std::process::abort(),
        ["say", text] => print!("{text}"),
        ["hang"] => hang(),
        ["cat"] => cat(),
        ["env"] => env(),
        ["state"] => state(),
        ["flood", mib] => flood(mib.parse().expect("a number")),
        ["drip", lines, pause_ms] => {
            drip(lines.parse().expect("a number"), pause_ms.parse().expect("a number"))
        }
        ["deaf"] => deaf(),
        ["deaf", _] => {
            hide_process();
            deaf();
        }
        ["polite", file] => polite(Path::new(file)),
        ["escape"] => escape(true),
        ["escape-and-stay"] => escape(false),
        ["bare-escape"] => bare_escape(None),
        ["bare-escape", name] => bare_escape(Some(name)),
        ["bomb"] => bomb(),
        ["chain"] => chain(),
        ["leave-child"] => leave_child(),
        ["late-word"] => late_word(),
        ["attack", home, engine, port] => {
            attacks::all(Path::new(home), engine.parse().expect("a pid"), port.parse().expect("a port"));
        }
        ["tell-pid"] => {
            println!("{}.", std::process::id());
            hang();
        }
        ["judge", dir, stranger] => judge(Path::new(dir), stranger.parse().expect("a pid")),
        ["nested", folder, level] => nested(Path::new(folder), level),
        ["later", home] => attacks::later(Path::new(home)),
        ["connect", go, sockets @ ..] => attacks::connect(Path::new(go), sockets),
        ["read", files @ ..] => attacks::read_all(files),
        ["slip", name] => attacks::slip(name),
        ["busy"] => busy(),
        ["speak", lines @ ..] => speak::each(lines),
        ["speak-through-noise", line] => speak::through_noise(line),
        ["speak-much", line] => speak::much(line),
        ["speak-from-afar", line] => escape_and(|| speak::each(&[line])),
        ["speak-after", file, line] => {
            while !Path::new(file).exists() {
                std::thread::sleep(Duration::from_millis(2));
            }
            speak::each(&[line]);
            hang();
        }
        ["speak-and-hang", line] => {
            speak::each(&[line]);
            hang();
        }
        other => panic!("unknown mode {other:?}"),
    }
    ExitCode::SUCCESS
}

/// An engine: starts a sitter for `command`, says who it is, and waits to be killed.
fn engine(dir: &Path, command: &[&str]) {
    sitter::raise_file_limit().expect("up to the hard limit one always may");
    match launch(dir, command) {
        Ok(sitting) => println!("{} {}", sitting.pid, sitting.started),
        Err(error) => println!("error: {error}"),
    }
    hang();
}

fn launch(dir: &Path, command: &[&str]) -> Result<sitter::SitterProcess, sitter::StartError> {
    let spec = sitter::SitterSpec {
        argv: command.iter().map(Into::into).collect(),
        cwd: "/".into(),
        env: vec![],
        stdin: None,
        deadline_ms: 60_000,
        grace_ms: 200,
        out_cap: 1 << 20,
        marker: dir.to_str().expect("plain text").to_owned(),
        sandbox: None,
        signal: None,
    };
    sitter::start_sitter(&std::env::current_exe().expect("we run"), dir, &spec)
}

/// An engine at work inside an agent: says who it takes for an agent's, and then who they are.
fn judge(dir: &Path, stranger: i32) {
    let exe = std::env::current_exe().expect("we run");
    let mut ordinary = std::process::Command::new(&exe).arg("hang").spawn().expect("runs");
    let sitting = launch(dir, &[exe.to_str().expect("plain text"), "tell-pid"]).expect("starts");
    let until = std::time::Instant::now() + Duration::from_secs(60);
    let agent: i32 = loop {
        let said =
            sitter::SpoolReader::new(dir, sitter::SitterStream::Out, 0).read(1 << 20).expect("readable");
        if let Some(pid) = String::from_utf8_lossy(&said).trim_end().strip_suffix('.') {
            break pid.parse().expect("a pid");
        }
        assert!(std::time::Instant::now() < until, "the agent does not speak");
        std::thread::sleep(Duration::from_millis(2));
    };
    let small = |pid: u32| i32::try_from(pid).expect("small");
    let (own, child) = (small(std::process::id()), small(ordinary.id()));
    let outer = rustix::process::getppid().expect("our sitter").as_raw_nonzero().get();
    let judged = [own, child, outer, agent, sitting.pid, stranger].map(|pid| {
        let pid = rustix::process::Pid::from_raw(pid).expect("a pid");
        sitter::is_confined(
            rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).expect("it runs"),
        )
    });
    println!("{judged:?}");
    println!("{own} {child} {agent}.");
    hang();
    ordinary.wait().expect("ours");
}

fn hang() {
    // Bounded, so that a test that fails leaves nothing for ever.
    std::thread::sleep(Duration::from_secs(120));
}

/// A sandbox within ours: runs a word in it and prints what became of it.
fn nested(folder: &Path, level: &str) {
    use landfall_host::sandbox::{ProcessLimits, Sandbox, SandboxLevel};
    let dir = folder.join(format!("run-{level}"));
    let work = folder.join("work");
    std::fs::create_dir_all(&work).expect("writable");
    let exe = std::env::current_exe().expect("we run");
    let spec = sitter::SitterSpec {
        argv: vec![exe.clone().into(), "say".into(), "it ran".into()],
        cwd: work.clone(),
        env: vec![],
        stdin: None,
        deadline_ms: 60_000,
        grace_ms: 200,
        out_cap: 1 << 20,
        marker: dir.to_str().expect("plain text").to_owned(),
        sandbox: Some(Sandbox {
            level: if level == "strict" { SandboxLevel::Strict } else { SandboxLevel::Write },
            write: vec![work],
            hide: vec![],
            read: vec![],
            private: vec![],
            exclusive: vec![],
            layers: vec![],
            limits: ProcessLimits::default(),
        }),
        signal: None,
    };
    let sitting = sitter::start_sitter(&exe, &dir, &spec).expect("starts");
    let mut watch = sitter::SitterWatch::new().expect("a watch");
    watch.add(1, &sitting).expect("ours");
    while watch.wait(Some(Duration::from_secs(60))).expect("waits").is_empty() {}
    println!("{:?}", sitter::find_sitter(&dir).expect("can look"));
    let said = sitter::SpoolReader::new(&dir, sitter::SitterStream::Out, 0).read(1 << 20).expect("readable");
    std::io::stdout().write_all(&said).expect("stdout");
}

/// Works without a word, and with a child that hangs.
fn busy() {
    if fork() == 0 {
        hang();
    }
    println!("busy");
    let until = std::time::Instant::now() + Duration::from_secs(60);
    let mut zero = std::fs::File::open("/dev/zero").expect("there");
    let mut block = vec![0; 1 << 20];
    while std::time::Instant::now() < until {
        zero.read_exact(&mut block).expect("it has no end");
    }
}

fn cat() {
    let mut text = Vec::new();
    std::io::stdin().read_to_end(&mut text).expect("stdin ends");
    std::io::stdout().write_all(&text).expect("stdout");
}

fn env() {
    for (key, value) in std::env::vars_os() {
        println!("{}={}", key.to_string_lossy(), value.to_string_lossy());
    }
}

/// What a program finds when it starts: signals, session, descriptors, limits.
fn state() {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    for line in status
        .lines()
        .filter(|line| line.starts_with("Sig") || line.starts_with("Shd") || line.starts_with("Umask"))
    {
        println!("{line}");
    }
    let mut open: Vec<i32> = std::fs::read_dir("/proc/self/fd")
        .expect("proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    open.sort_unstable();
    open.pop(); // the folder just being read
    println!("open {open:?}");
    let own = rustix::process::getpid();
    println!("leads its session: {}", rustix::process::getsid(None).ok() == Some(own));
    println!("core {:?}", rustix::process::getrlimit(rustix::process::Resource::Core).current);
    println!("files {:?}", rustix::process::getrlimit(rustix::process::Resource::Nofile).current);
    println!("folder {}", std::env::current_dir().expect("one").display());
}

fn flood(mib: usize) {
    let block = vec![b'x'; 1 << 20];
    let mut out = std::io::stdout().lock();
    for _ in 0..mib {
        out.write_all(&block).expect("somebody drains it");
    }
    out.write_all(b"the very end\n").expect("somebody drains it");
}

fn drip(lines: u32, pause_ms: u64) {
    for line in 0..lines {
        println!("line {line}");
        std::thread::sleep(Duration::from_millis(pause_ms));
    }
}

fn ignore_term() {
    // SAFETY: sets a disposition; no handler is involved.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
}

fn deaf() {
    ignore_term();
    println!("deaf");
    hang();
}

/// Closes what others can read of us, and tries to take away what we are known by.
fn hide_process() {
    let limit = libc::rlimit { rlim_cur: 1, rlim_max: 1 };
    // SAFETY: plain numbers, and a structure that outlives the calls.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        libc::setrlimit(libc::RLIMIT_LOCKS, &raw const limit);
        libc::prlimit(0, libc::RLIMIT_LOCKS, &raw const limit, std::ptr::null_mut());
    }
}

/// Ends well when asked to.
fn polite(file: &Path) {
    // SAFETY: the set is initialised before it is used.
    let signal = unsafe {
        let mut term: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut term);
        libc::sigaddset(&raw mut term, libc::SIGTERM);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const term, std::ptr::null_mut());
        println!("ready");
        let mut signal = 0;
        libc::sigwait(&raw const term, &raw mut signal);
        signal
    };
    std::fs::write(file, format!("{signal}")).expect("writable");
    std::process::exit(3);
}

fn fork() -> i32 {
    // SAFETY: this program has one thread.
    unsafe { libc::fork() }
}

/// As daemons do: a child that has lost its parent, in a session of its own, does `it`.
fn escape_and(it: impl Fn()) {
    let between = fork();
    if between == 0 {
        rustix::process::setsid().ok();
        let parent = rustix::process::getpid();
        if fork() == 0 {
            while rustix::process::getppid() == Some(parent) {
                std::thread::sleep(Duration::from_millis(1));
            }
            it();
            hang();
        }
        std::process::exit(0);
    }
    rustix::process::waitpid(rustix::process::Pid::from_raw(between), rustix::process::WaitOptions::empty())
        .expect("our child");
    hang();
}

/// Forks twice with a session of its own in between, as daemons do; the grandchild hears no TERM.
fn escape(leave: bool) {
    let between = fork();
    if between == 0 {
        rustix::process::setsid().ok();
        if fork() == 0 {
            ignore_term();
            println!("escaped");
            hang();
        }
        std::process::exit(0);
    }
    rustix::process::waitpid(rustix::process::Pid::from_raw(between), rustix::process::WaitOptions::empty())
        .expect("our child");
    if !leave {
        hang();
    }
}

/// The same, without an environment to be known by.
fn bare_escape(name: Option<&str>) {
    if fork() == 0 {
        rustix::process::setsid().ok();
        if fork() == 0 {
            use std::os::unix::process::CommandExt as _;
            let exe = std::env::current_exe().expect("we run");
            drop(std::process::Command::new(exe).arg("deaf").args(name).env_clear().exec());
        }
        std::process::exit(0);
    }
    hang();
}

/// Some 64 processes: 16 that keep forking, in sessions of their own, and what they fork.
fn bomb() {
    ignore_term();
    println!("bomb");
    for _ in 0..4 {
        fork();
    }
    rustix::process::setsid().ok();
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while std::time::Instant::now() < until {
        if fork() == 0 {
            rustix::process::setsid().ok();
            std::thread::sleep(Duration::from_millis(20));
            std::process::exit(0);
        }
        while rustix::process::wait(rustix::process::WaitOptions::NOHANG).is_ok_and(|it| it.is_some()) {}
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Each process forks the next, in a new session, and ends: there is never one to hold on to.
fn chain() {
    ignore_term();
    println!("chain");
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while std::time::Instant::now() < until {
        match fork() {
            0 => {
                rustix::process::setsid().ok();
                std::thread::sleep(Duration::from_micros(200));
            }
            // SAFETY: leaves without the parent's buffered output being written twice.
            _ => unsafe { libc::_exit(0) },
        }
    }
}

/// Ends, and leaves a child behind that holds the pipes.
fn leave_child() {
    if fork() == 0 {
        hang();
    }
    println!("left one behind");
}

/// Ends, while a child still has a word to say.
fn late_word() {
    if fork() == 0 {
        std::thread::sleep(Duration::from_millis(50));
        println!("late");
        std::process::exit(0);
    }
    println!("early");
}

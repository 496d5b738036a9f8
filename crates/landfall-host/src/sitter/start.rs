//! Starting a sitter: the engine's side.

use super::cgroup;
use super::files::{self, LaunchOrder};
use super::identity::ProcessStat;
use super::sitting::SitterProcess;
use super::spec::{SitterSpec, StartError};
use crate::sandbox::{CacheLayer, LayerChanges, Sandbox};
use crate::wait::retry_until;
use crate::{crash, disk};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, getrlimit, kill_process, setrlimit, waitpid,
};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

/// The command that makes a program a sitter.
pub(super) const WORD: &CStr = c"sit";

/// Starts `exe sit dir` with what `spec` asks for, detached from us, and returns who it is. `dir` is made if it is missing.
///
/// The folder's lock is taken first and handed to the sitter as an open file, so from then on until the sitter has ended
/// somebody holds it. If we die on the way, the kernel lets go of it and the folder reads `Never`.
///
/// `exe` should be `/proc/self/exe` for a program that starts itself: it stays right when the file is replaced.
pub fn start_sitter(exe: &Path, dir: &Path, spec: &SitterSpec) -> Result<SitterProcess, StartError> {
    let dir =
        &std::path::absolute(dir).map_err(|source| StartError::Folder { path: dir.to_owned(), source })?;
    let spec = &check_spec(spec)?;
    make_private(dir).map_err(|source| StartError::Folder { path: dir.clone(), source })?;
    let lock = take_lock(dir)?;
    crash::pass_point("sitter.start.locked");
    let folder = |name: &str| {
        let path = dir.join(name);
        move |source| StartError::Folder { path, source }
    };
    for trace in [files::SITTER, files::EXIT] {
        if dir.join(trace).try_exists().map_err(folder(trace))? {
            return Err(StartError::AlreadyStarted { dir: dir.clone() });
        }
    }
    static OWN: LazyLock<Option<PathBuf>> = LazyLock::new(cgroup::own_cgroup);
    let order = LaunchOrder { spec: spec.clone(), cgroup: OWN.clone(), nofile: *INHERITED_FILE_LIMIT };
    write_spec(dir, &files::write_order(&order)).map_err(folder(files::SPEC))?;
    crash::pass_point("sitter.start.written");
    let failed = |source| StartError::Spawn { exe: exe.to_owned(), source };
    let boot = disk::boot_id().map_err(failed)?;
    let pid = spawn_sitter(exe, dir, &lock).map_err(failed)?;
    crash::pass_point("sitter.start.spawned");
    // It is our child and we have not collected it, so the id is still its own even if it has already ended.
    match ProcessStat::read_process(pid) {
        Ok(Some(stat)) => {
            let sandbox = spec.sandbox.as_ref().map(|sandbox| sandbox.level);
            Ok(SitterProcess { pid, started: stat.started, boot, sandbox })
        }
        Ok(None) => {
            end_unnamed_sitter(pid);
            Err(failed(io::Error::other("read its start time")))
        }
        Err(error) => {
            end_unnamed_sitter(pid);
            Err(failed(error))
        }
    }
}

/// Ends a sitter that was just started and that we cannot name, and waits for it: a caller who is told of a failure may
/// start another one elsewhere, for the same work. It hears the signal however early it comes, and ends its tree.
fn end_unnamed_sitter(pid: i32) {
    let Some(pid) = Pid::from_raw(pid) else { return };
    kill_process(pid, Signal::USR1).ok(); // ended already is as good
    waitpid(Some(pid), WaitOptions::empty()).ok(); // collected by whoever looked into the folder just now
}

/// The limit on open files before we raised it: what children shall have. None: there is no limit.
static INHERITED_FILE_LIMIT: LazyLock<Option<u64>> = LazyLock::new(|| getrlimit(Resource::Nofile).current);

/// Raises this process's limit on open files as far as the system allows, and returns it. Watching a thousand sitters
/// takes more than the usual 1,024. Children started later get the old limit: some programs cannot live with many.
pub fn raise_file_limit() -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    let (Some(current), maximum) = (limit.current, limit.maximum) else { return Ok(u64::MAX) };
    let wanted = maximum.unwrap_or(1 << 20);
    if wanted > current {
        LazyLock::force(&INHERITED_FILE_LIMIT); // before it changes
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })?;
    }
    Ok(wanted.max(current))
}

/// What would fail in the sitter, where nobody could be told at once, is refused here.
fn check_spec(spec: &SitterSpec) -> Result<SitterSpec, StartError> {
    let refuse = |problem| Err(StartError::Spec { problem });
    let has_nul = |text: &OsStr| text.as_bytes().contains(&0);
    if spec.argv.first().is_none_or(|program| program.is_empty()) {
        return refuse("there is no program to run");
    }
    if spec.argv.iter().any(|arg| has_nul(arg)) {
        return refuse("an argument holds a NUL byte");
    }
    let bad_key = |key: &OsStr| key.is_empty() || has_nul(key) || key.as_bytes().contains(&b'=');
    if spec.env.iter().any(|(key, value)| bad_key(key) || has_nul(value)) {
        return refuse("an environment variable has an impossible name or holds a NUL byte");
    }
    if spec.marker.is_empty() || spec.marker.contains('\0') {
        return refuse("a marker is needed, without a NUL byte");
    }
    if spec.signal.as_ref().is_some_and(|signal| signal.key.is_empty()) {
        return refuse("a signal socket needs a key");
    }
    let mut spec = spec.clone();
    let mut listed: Vec<&mut PathBuf> = Vec::new();
    if let Some(Sandbox { level: _, write, hide, read, private, exclusive, layers, limits: _ }) =
        &mut spec.sandbox
    {
        listed.extend([write, hide, read, private, exclusive].into_iter().flatten());
        for CacheLayer { path, changes } in layers {
            listed.push(path);
            match changes {
                LayerChanges::Overlay { upper, work } => listed.extend([upper, work]),
                LayerChanges::Copy(folder) => listed.push(folder),
            }
        }
    }
    let paths = [Some(&mut spec.cwd), spec.stdin.as_mut(), spec.signal.as_mut().map(|it| &mut it.socket)];
    for path in paths.into_iter().flatten().chain(listed) {
        if has_nul(path.as_os_str()) {
            return refuse("a path holds a NUL byte");
        }
        // The sitter runs in another folder, so a relative path would mean something else there.
        *path = std::path::absolute(&*path)
            .map_err(|source| StartError::Folder { path: path.clone(), source })?;
    }
    Ok(spec)
}

fn make_private(dir: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let mut permissions = fs::metadata(dir)?.permissions();
    if permissions.mode() & 0o077 != 0 {
        permissions.set_mode(0o700);
        fs::set_permissions(dir, permissions)?;
    }
    Ok(())
}

fn take_lock(dir: &Path) -> Result<File, StartError> {
    // `find` holds the lock shared, for an instant; under load that instant can last until the reader runs again. A sitter
    // holds it exclusively for as long as it lives, and so does another `start`.
    const READERS_MAX: Duration = Duration::from_secs(10);
    const PAUSE: Duration = Duration::from_millis(1);
    let path = dir.join(files::LOCK);
    let failed = |source| StartError::Folder { path: path.clone(), source };
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(failed)?;
    let taken_by_another = || StartError::AlreadyStarted { dir: dir.to_owned() };
    let taken = retry_until(READERS_MAX, PAUSE, || match file.try_lock() {
        Ok(()) => Some(Ok(())),
        // If the lock can be shared, only readers hold it.
        Err(TryLockError::WouldBlock) => match file.try_lock_shared() {
            Ok(()) => file.unlock().err().map(|source| Err(failed(source))),
            Err(TryLockError::WouldBlock) => Some(Err(taken_by_another())),
            Err(TryLockError::Error(source)) => Some(Err(failed(source))),
        },
        Err(TryLockError::Error(source)) => Some(Err(failed(source))),
    });
    taken.unwrap_or_else(|| Err(taken_by_another()))?;
    Ok(file)
}

/// By rename, so that the sitter reads all or nothing; without a sync, as no sitter outlives a power cut.
fn write_spec(dir: &Path, text: &[u8]) -> io::Result<()> {
    let tmp = dir.join(files::SPEC_TMP);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&tmp)?;
    file.write_all(text)?;
    fs::rename(&tmp, dir.join(files::SPEC))
}

/// What of our environment a sitter gets: our own switches, and what the loader needs. It runs next to an agent, and the
/// engine's environment may hold what is not meant for agents.
fn sitter_environment() -> Vec<CString> {
    let wanted = |key: &OsStr| {
        key.as_bytes().starts_with(b"LANDFALL_") || key == "LD_LIBRARY_PATH" || key == "RUST_BACKTRACE"
    };
    std::env::vars_os()
        .filter(|(key, _)| wanted(key))
        .filter_map(|(key, value)| {
            let mut entry: OsString = key;
            entry.push("=");
            entry.push(value);
            CString::new(entry.as_bytes()).ok() // it came from the environment, so it has no NUL
        })
        .collect()
}

/// Spawns the sitter in a session of its own, with every signal blocked so that none is lost before it listens, the
/// folder's lock as its standard input, and nothing else. `posix_spawn` does not copy our memory, however much we have.
fn spawn_sitter(exe: &Path, dir: &Path, lock: &File) -> io::Result<i32> {
    let path = CString::new(exe.as_os_str().as_bytes())?;
    let name =
        exe.file_name().filter(|_| exe != Path::new("/proc/self/exe")).unwrap_or(OsStr::new("landfall"));
    // By these words, and no others, `is_confined` knows a sitter.
    let argv = [CString::new(name.as_bytes())?, WORD.to_owned(), CString::new(dir.as_os_str().as_bytes())?];
    let env = sitter_environment();
    let argv: Vec<*mut libc::c_char> =
        argv.iter().map(|arg| arg.as_ptr().cast_mut()).chain([std::ptr::null_mut()]).collect();
    let env: Vec<*mut libc::c_char> =
        env.iter().map(|entry| entry.as_ptr().cast_mut()).chain([std::ptr::null_mut()]).collect();
    let check = |code: libc::c_int| if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) };
    // SAFETY: both objects are initialised before use and destroyed after; all pointers outlive the call. posix_spawn does not
    // write through argv and envp.
    unsafe {
        let mut actions: libc::posix_spawn_file_actions_t = std::mem::zeroed();
        check(libc::posix_spawn_file_actions_init(&raw mut actions))?;
        let mut attributes: libc::posix_spawnattr_t = std::mem::zeroed();
        check(libc::posix_spawnattr_init(&raw mut attributes))?;
        let mut pid = 0;
        let spawned = (|| {
            let null = c"/dev/null".as_ptr();
            check(libc::posix_spawn_file_actions_adddup2(&raw mut actions, lock.as_raw_fd(), 0))?;
            check(libc::posix_spawn_file_actions_addopen(&raw mut actions, 1, null, libc::O_WRONLY, 0))?;
            check(libc::posix_spawn_file_actions_addopen(&raw mut actions, 2, null, libc::O_WRONLY, 0))?;
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            check(libc::posix_spawnattr_setsigmask(&raw mut attributes, &raw const all))?;
            let flags = libc::POSIX_SPAWN_SETSIGMASK as libc::c_short | libc::POSIX_SPAWN_SETSID;
            check(libc::posix_spawnattr_setflags(&raw mut attributes, flags))?;
            check(libc::posix_spawn(
                &raw mut pid,
                path.as_ptr(),
                &raw const actions,
                &raw const attributes,
                argv.as_ptr(),
                env.as_ptr(),
            ))
        })();
        libc::posix_spawnattr_destroy(&raw mut attributes);
        libc::posix_spawn_file_actions_destroy(&raw mut actions);
        spawned.map(|()| pid)
    }
}

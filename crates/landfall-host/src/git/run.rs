//! The runner: how git is called, and nothing about what for.
//!
//! Every call starts from an empty environment, names its git folder, and turns off whatever a
//! repository could make git execute: hooks, filters, drivers, monitors, helpers, transports. Output
//! and time are bounded. No shell is involved anywhere.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::wait::{poll_until, wait_for_child};
use rustix::event::{PollFd, PollFlags};
use thiserror::Error;

/// The oldest git that has `merge-tree --write-tree` and `cat-file --batch-command -z`.
const VERSION_MIN: (u32, u32) = (2, 38);

/// What one call may say at most; a listing of 200,000 paths fits.
const OUTPUT_MAX: usize = 64 << 20;

/// What we keep of a complaint; the rest is read and dropped.
const STDERR_MAX: usize = 16 << 10;

/// Reads of refs and objects: milliseconds in truth, this long on a cold and busy disk.
pub(crate) const QUICK: Duration = Duration::from_secs(60);

/// Checkouts and transfers of whole repositories.
pub(crate) const SLOW: Duration = Duration::from_secs(900);

/// A call of git that did not give what was asked.
#[derive(Debug, Error)]
#[error("{doing}")]
pub struct GitError {
    /// What was being done.
    pub doing: String,
    /// What went wrong.
    #[source]
    pub kind: GitErrorKind,
}

/// What went wrong with a call of git.
#[derive(Debug, Error)]
pub enum GitErrorKind {
    /// git could not be started.
    #[error("git could not be started")]
    Spawn(#[source] std::io::Error),
    /// No git, or one that is too old.
    #[error("git {found} is too old, 2.38 is needed")]
    Version {
        /// What `git version` said.
        found: String,
    },
    /// git ran and refused.
    #[error("git ended with {code}: {}", .stderr.trim_end())]
    Failed {
        /// The exit code; 128 and the signal's number if a signal ended it.
        code: i32,
        /// What it said, cut at 16 KiB.
        stderr: String,
    },
    /// git did not end in time and was killed with its group.
    #[error("git was killed after {after_s} s")]
    Timeout {
        /// The limit, in seconds.
        after_s: u64,
    },
    /// git said something we do not understand, or too much.
    #[error("git's answer makes no sense: {0}")]
    Output(String),
    /// A file or folder of ours could not be read or written.
    #[error(transparent)]
    Io(std::io::Error),
}

impl GitError {
    /// What was read while `doing` something cannot be right, and why.
    pub fn unexpected_output(doing: impl Into<String>, why: impl Into<String>) -> GitError {
        GitError { doing: doing.into(), kind: GitErrorKind::Output(why.into()) }
    }

    /// A file or process of ours failed while `doing` something.
    pub fn from_io(doing: impl Into<String>, error: impl Into<std::io::Error>) -> GitError {
        GitError { doing: doing.into(), kind: GitErrorKind::Io(error.into()) }
    }

    /// The whole chain as one line, for a report.
    pub fn full_message(&self) -> String {
        match &self.kind {
            // The system's reason says which resource is missing, and nothing else does.
            GitErrorKind::Spawn(reason) => format!("{self}: {}: {reason}", self.kind),
            kind => format!("{self}: {kind}"),
        }
    }
}

/// Says what was being done when a file operation failed.
pub(crate) trait GitResultExt<T> {
    fn with_context(self, what: impl FnOnce() -> String) -> Result<T, GitError>;
}

impl<T, E: Into<std::io::Error>> GitResultExt<T> for Result<T, E> {
    fn with_context(self, what: impl FnOnce() -> String) -> Result<T, GitError> {
        self.map_err(|error| GitError::from_io(what(), error))
    }
}

/// Who made a commit, and when. Always given by the caller, never taken from a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The name.
    pub name: String,
    /// The e-mail address.
    pub email: String,
    /// Milliseconds since 1970, UTC.
    pub at_ms: i64,
}

impl Signature {
    /// A signature of the engine itself.
    pub fn for_engine(at_ms: i64) -> Signature {
        Signature { name: "Landfall".to_owned(), email: "engine@landfall.invalid".to_owned(), at_ms }
    }

    fn push_env(&self, role: &str, env: &mut Vec<(OsString, OsString)>) {
        let clean = |text: &str, fallback: &str| {
            let kept: String = text.chars().filter(|c| !c.is_control() && !matches!(c, '<' | '>')).collect();
            // git refuses a name that is empty once its crud is stripped.
            if kept.chars().any(char::is_alphanumeric) { kept } else { fallback.to_owned() }
        };
        env.push((format!("GIT_{role}_NAME").into(), clean(&self.name, "unknown").into()));
        env.push((format!("GIT_{role}_EMAIL").into(), clean(&self.email, "unknown@landfall.invalid").into()));
        let at_s = self.at_ms.div_euclid(1000).max(0);
        env.push((format!("GIT_{role}_DATE").into(), format!("@{at_s} +0000").into()));
    }
}

/// A git that was found and is new enough. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Git {
    inner: Arc<GitProgram>,
}

#[derive(Debug)]
struct GitProgram {
    program: PathBuf,
    version: String,
    path: OsString,
    spawned: AtomicU64,
}

impl Git {
    /// Finds git on the `PATH` and checks its version.
    pub fn find_installed() -> Result<Git, GitError> {
        let doing = "look for git";
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let program = std::env::split_paths(&path)
            .filter(|folder| folder.is_absolute()) // a relative entry would follow whoever changes folders
            .map(|folder| folder.join("git"))
            .find(|program| {
                rustix::fs::access(program, rustix::fs::Access::EXEC_OK).is_ok() && program.is_file()
            })
            .ok_or_else(|| GitError {
                doing: doing.to_owned(),
                kind: GitErrorKind::Spawn(std::io::Error::new(
                    std::io::ErrorKind::NotFound,
                    "no git on the PATH",
                )),
            })?;
        let mut git = Git {
            inner: Arc::new(GitProgram { program, version: String::new(), path, spawned: AtomicU64::new(0) }),
        };
        let said = git.prepare_call("ask git for its version").arg("version").output_text()?;
        let version = said.trim().trim_start_matches("git version ").to_owned();
        let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        if found < VERSION_MIN {
            return Err(GitError { doing: doing.to_owned(), kind: GitErrorKind::Version { found: version } });
        }
        Arc::get_mut(&mut git.inner).expect("nobody else holds it yet").version = version;
        Ok(git)
    }

    /// What `git version` said.
    pub fn version(&self) -> &str {
        &self.inner.version
    }

    /// Where the program is.
    pub fn program(&self) -> &Path {
        &self.inner.program
    }

    /// How many git processes were started so far; for measuring.
    pub fn spawned_count(&self) -> u64 {
        self.inner.spawned.load(Ordering::Relaxed)
    }

    /// Prepares a call; nothing runs yet.
    pub(crate) fn prepare_call(&self, doing: impl Into<String>) -> GitCall<'_> {
        GitCall {
            git: self,
            doing: doing.into(),
            trust: GitConfigTrust::Nothing,
            git_dir: None,
            work_tree: None,
            literal: true,
            config: Vec::new(),
            args: Vec::new(),
            env: Vec::new(),
            input: GitInput::None,
            output_max: OUTPUT_MAX,
            cut: false,
            timeout: QUICK,
        }
    }
}

/// Whose settings a call may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GitConfigTrust {
    /// Nobody's: the rule.
    Nothing,
    /// The person's own, for their own checkout: their filters and line endings are theirs.
    Checkout,
    /// The person's own with their environment, for a push: ssh and credentials are theirs.
    Push,
}

/// Off for every call, whoever's settings it sees.
const OFF: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=false",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
    "diff.ignoreSubmodules=all",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "fetch.fsckObjects=true",
];

/// Off for every call that trusts nobody. The formats are pinned too, so that we can read what git writes.
const NOBODY: &[&str] = &[
    "protocol.allow=never",
    "protocol.file.allow=always",
    "core.attributesFile=/dev/null",
    "core.askPass=",
    "credential.helper=",
    "core.sshCommand=false",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.eol=lf",
    "core.symlinks=true",
    "core.fileMode=true",
    "core.ignoreCase=false",
    "core.precomposeUnicode=false",
    "core.sparseCheckout=false",
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "core.quotePath=false",
    "core.logAllRefUpdates=false",
    "index.version=2",
    "i18n.commitEncoding=utf-8",
    "i18n.logOutputEncoding=utf-8",
];

/// What the call reads on its stdin.
#[derive(Debug)]
enum GitInput {
    None,
    Bytes(Vec<u8>),
    Pipe(OwnedFd),
}

/// One call of git, being put together.
#[derive(Debug)]
pub(crate) struct GitCall<'g> {
    git: &'g Git,
    doing: String,
    trust: GitConfigTrust,
    git_dir: Option<PathBuf>,
    work_tree: Option<PathBuf>,
    literal: bool,
    config: Vec<OsString>,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    input: GitInput,
    output_max: usize,
    cut: bool,
    timeout: Duration,
}

/// What a call that ran has said.
#[derive(Debug)]
pub(crate) struct GitOutput {
    pub doing: String,
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
    /// The output was longer than allowed, and the caller had asked to cut it.
    pub cut: bool,
}

impl GitOutput {
    /// The output, if git ended with 0.
    pub fn require_success(self) -> Result<Vec<u8>, GitError> {
        if self.code == 0 { Ok(self.stdout) } else { Err(self.into_error()) }
    }

    pub fn into_error(self) -> GitError {
        GitError { doing: self.doing, kind: GitErrorKind::Failed { code: self.code, stderr: self.stderr } }
    }
}

impl GitCall<'_> {
    pub fn trust(mut self, trust: GitConfigTrust) -> Self {
        self.trust = trust;
        self
    }

    pub fn git_dir(mut self, path: &Path) -> Self {
        self.git_dir = Some(path.to_owned());
        self
    }

    pub fn work_tree(mut self, path: &Path) -> Self {
        self.work_tree = Some(path.to_owned());
        self
    }

    /// For the few commands that refuse to be told that a path is only a path.
    pub fn not_literal(mut self) -> Self {
        self.literal = false;
        self
    }

    /// A setting of the form `key=value`, for this call.
    pub fn config(mut self, setting: impl Into<OsString>) -> Self {
        self.config.push(setting.into());
        self
    }

    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((key.into(), value.as_ref().to_owned()));
        self
    }

    pub fn signed_by(mut self, author: &Signature, committer: &Signature) -> Self {
        author.push_env("AUTHOR", &mut self.env);
        committer.push_env("COMMITTER", &mut self.env);
        self
    }

    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = GitInput::Bytes(bytes.into());
        self
    }

    pub fn input_pipe(mut self, pipe: OwnedFd) -> Self {
        self.input = GitInput::Pipe(pipe);
        self
    }

    /// Cuts the output at `max` instead of failing.
    pub fn cut_at(mut self, max: usize) -> Self {
        self.output_max = max;
        self.cut = true;
        self
    }

    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Runs the call; an exit code other than 0 is an answer here.
    pub fn run(mut self) -> Result<GitOutput, GitError> {
        let input = std::mem::replace(&mut self.input, GitInput::None);
        let (stdin, bytes) = match input {
            GitInput::None => (Stdio::null(), None),
            GitInput::Bytes(bytes) => (Stdio::piped(), Some(bytes)),
            GitInput::Pipe(pipe) => (Stdio::from(pipe), None),
        };
        // What stands in a work tree can make git wait, and a push waits for a host. Whoever waits for git waits here, so
        // the end of this thread is the end of its owner.
        let may_wait = self.work_tree.is_some() || self.trust == GitConfigTrust::Push;
        let mut child = self.spawn_with(stdin, may_wait)?;
        let deadline = Instant::now() + self.timeout;
        let result = feed_and_drain(&mut child, bytes, self.output_max, self.cut, deadline);
        let talk = match result {
            Ok(talk) => talk,
            Err(kind) => {
                kill_group(&mut child);
                let kind = match kind {
                    GitErrorKind::Timeout { .. } => GitErrorKind::Timeout { after_s: self.timeout.as_secs() },
                    other => other,
                };
                return Err(GitError { doing: self.doing, kind });
            }
        };
        if talk.cut {
            kill_group(&mut child);
        }
        let status = match wait_for_child(&mut child, deadline) {
            Ok(Some(status)) => status,
            Ok(None) => {
                kill_group(&mut child);
                let kind = GitErrorKind::Timeout { after_s: self.timeout.as_secs() };
                return Err(GitError { doing: self.doing, kind });
            }
            Err(error) => {
                kill_group(&mut child);
                return Err(GitError { doing: self.doing, kind: GitErrorKind::Io(error) });
            }
        };
        let code = if talk.cut { 0 } else { code_of(status) };
        Ok(GitOutput { doing: self.doing, code, stdout: talk.stdout, stderr: talk.stderr, cut: talk.cut })
    }

    /// Runs the call and returns its output; any other end than 0 is an error.
    pub fn output(self) -> Result<Vec<u8>, GitError> {
        self.run()?.require_success()
    }

    /// Like [`Call::output`], for output that must be text.
    pub fn output_text(self) -> Result<String, GitError> {
        let doing = self.doing.clone();
        String::from_utf8(self.output()?).map_err(|_| GitError::unexpected_output(doing, "it is not UTF-8"))
    }

    /// Starts the call with pipes on stdout and stderr, for a conversation. It ends when its stdin does.
    pub fn spawn(&self, stdin: Stdio) -> Result<Child, GitError> {
        self.spawn_with(stdin, false)
    }

    fn spawn_with(&self, stdin: Stdio, dies_with_thread: bool) -> Result<Child, GitError> {
        let found = &self.git.inner;
        let mut command = Command::new(&found.program);
        command.current_dir("/").process_group(0);
        if self.trust == GitConfigTrust::Push {
            for (key, _) in std::env::vars_os() {
                if key.as_bytes().starts_with(b"GIT_") && !is_transport_setting(&key) {
                    command.env_remove(&key);
                }
            }
        } else {
            command.env_clear().env("PATH", &found.path);
        }
        match self.trust {
            GitConfigTrust::Nothing => {
                command
                    .env("HOME", "/nonexistent")
                    .env("GIT_CONFIG_NOSYSTEM", "1")
                    .env("GIT_ATTR_NOSYSTEM", "1")
                    .env("GIT_CONFIG_GLOBAL", "/dev/null");
            }
            GitConfigTrust::Checkout => {
                for key in ["HOME", "XDG_CONFIG_HOME", "USER", "LOGNAME", "TMPDIR"] {
                    if let Some(value) = std::env::var_os(key) {
                        command.env(key, value);
                    }
                }
            }
            GitConfigTrust::Push => {}
        }
        command
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_NO_LAZY_FETCH", "1");
        command.arg("--no-pager");
        if self.literal {
            command.arg("--literal-pathspecs");
        }
        for setting in OFF {
            command.args(["-c", setting]);
        }
        match self.trust {
            GitConfigTrust::Nothing => {
                for setting in NOBODY {
                    command.args(["-c", setting]);
                }
            }
            GitConfigTrust::Checkout => {
                command.args(["-c", "protocol.allow=never"]);
            }
            GitConfigTrust::Push => {
                command.args(["-c", "protocol.ext.allow=never"]);
            }
        }
        for setting in &self.config {
            command.arg("-c").arg(setting);
        }
        if let Some(path) = &self.git_dir {
            command.arg(join_flag("--git-dir=", path));
        }
        if let Some(path) = &self.work_tree {
            command.arg(join_flag("--work-tree=", path));
        }
        command.args(&self.args).envs(self.env.iter().map(|(key, value)| (key, value)));
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        found.spawned.fetch_add(1, Ordering::Relaxed);
        if dies_with_thread {
            die_with_owner(&mut command);
        }
        command
            .spawn()
            .map_err(|error| GitError { doing: self.doing.clone(), kind: GitErrorKind::Spawn(error) })
    }
}

/// Has the kernel end the process when the thread that starts it ends, also when we are killed. With SIGTERM, on which git
/// removes its locks.
#[cfg(target_os = "linux")]
fn die_with_owner(command: &mut Command) {
    let owner = std::process::id();
    // SAFETY: it runs between fork and exec, where only calls that are safe in a signal handler are allowed. Both are, and
    // neither allocates.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            // The owner may have ended before the line above.
            if libc::getppid().cast_unsigned() != owner {
                return Err(std::io::Error::from_raw_os_error(libc::ECHILD));
            }
            Ok(())
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_owner(_command: &mut Command) {} // there the deadline alone ends it

/// The few `GIT_*` variables with which people say how to reach a remote.
fn is_transport_setting(key: &OsStr) -> bool {
    ["GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_ASKPASS", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"]
        .iter()
        .any(|known| key == *known)
}

fn join_flag(flag: &str, path: &Path) -> OsString {
    let mut text = OsString::from(flag);
    text.push(path);
    text
}

pub(crate) fn code_of(status: std::process::ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Kills the whole group of a call and reaps its leader.
pub(crate) fn kill_group(child: &mut Child) {
    if let Ok(pid) = i32::try_from(child.id())
        && let Some(pid) = rustix::process::Pid::from_raw(pid)
    {
        rustix::process::kill_process_group(pid, rustix::process::Signal::KILL).ok(); // it may be gone already
    }
    let _ = child.wait(); // reaped or not ours any more: nothing to tell
}

struct CapturedOutput {
    stdout: Vec<u8>,
    stderr: String,
    cut: bool,
}

/// Feeds stdin and drains both outputs at once, so that neither side can wait for the other for ever.
fn feed_and_drain(
    child: &mut Child,
    input: Option<Vec<u8>>,
    output_max: usize,
    cut: bool,
    deadline: Instant,
) -> Result<CapturedOutput, GitErrorKind> {
    let mut stdin = child.stdin.take().map(|pipe| File::from(OwnedFd::from(pipe)));
    let mut stdout = child.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe)));
    let mut stderr = child.stderr.take().map(|pipe| File::from(OwnedFd::from(pipe)));
    let input = input.unwrap_or_default();
    let mut written = 0;
    if let Some(pipe) = &stdin {
        rustix::io::ioctl_fionbio(pipe, true).map_err(|error| GitErrorKind::Io(error.into()))?;
    }
    let mut talk = CapturedOutput { stdout: Vec::new(), stderr: String::new(), cut: false };
    let mut complaint = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    while stdout.is_some() || stderr.is_some() || stdin.is_some() {
        if written == input.len() {
            stdin = None;
        }
        let ready = {
            let mut polled: Vec<PollFd<'_>> = Vec::with_capacity(3);
            let mut roles = Vec::with_capacity(3);
            if let Some(pipe) = &stdin {
                polled.push(PollFd::new(pipe, PollFlags::OUT));
                roles.push(StdioRole::Stdin);
            }
            if let Some(pipe) = &stdout {
                polled.push(PollFd::new(pipe, PollFlags::IN));
                roles.push(StdioRole::Stdout);
            }
            if let Some(pipe) = &stderr {
                polled.push(PollFd::new(pipe, PollFlags::IN));
                roles.push(StdioRole::Stderr);
            }
            if polled.is_empty() {
                break;
            }
            if !poll_until(&mut polled, deadline).map_err(GitErrorKind::Io)? {
                return Err(GitErrorKind::Timeout { after_s: 0 });
            }
            roles
                .into_iter()
                .zip(&polled)
                .filter(|(_, fd)| !fd.revents().is_empty())
                .map(|(role, _)| role)
                .collect::<Vec<_>>()
        };
        for role in ready {
            match role {
                StdioRole::Stdin => {
                    let Some(pipe) = &mut stdin else { continue };
                    match pipe.write(&input[written..]) {
                        Ok(count) => written += count,
                        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                        // It stopped listening: its exit code says whether that was right.
                        Err(_) => stdin = None,
                    }
                }
                StdioRole::Stdout => {
                    let Some(pipe) = &mut stdout else { continue };
                    let count = read_some(pipe, &mut buffer).map_err(GitErrorKind::Io)?;
                    if count == 0 {
                        stdout = None;
                    } else if talk.stdout.len() + count > output_max {
                        if !cut {
                            return Err(GitErrorKind::Output(format!("more than {output_max} bytes")));
                        }
                        let room = output_max - talk.stdout.len();
                        talk.stdout.extend_from_slice(&buffer[..room]);
                        talk.cut = true;
                        return Ok(talk);
                    } else {
                        talk.stdout.extend_from_slice(&buffer[..count]);
                    }
                }
                StdioRole::Stderr => {
                    let Some(pipe) = &mut stderr else { continue };
                    let count = read_some(pipe, &mut buffer).map_err(GitErrorKind::Io)?;
                    if count == 0 {
                        stderr = None;
                    } else {
                        let room = STDERR_MAX.saturating_sub(complaint.len()).min(count);
                        complaint.extend_from_slice(&buffer[..room]);
                    }
                }
            }
        }
    }
    talk.stderr = String::from_utf8_lossy(&complaint).into_owned();
    Ok(talk)
}

enum StdioRole {
    Stdin,
    Stdout,
    Stderr,
}

fn read_some(file: &mut File, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match file.read(buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Reads exactly `buffer.len()` bytes before the deadline; `false` at the end of the stream.
pub(crate) fn read_exact_until(
    fd: BorrowedFd<'_>,
    buffer: &mut [u8],
    deadline: Instant,
) -> std::io::Result<bool> {
    let mut filled = 0;
    while filled < buffer.len() {
        match read_some_until(fd, &mut buffer[filled..], deadline)? {
            0 => return Ok(false),
            count => filled += count,
        }
    }
    Ok(true)
}

/// Reads what there is, waiting for it until the deadline; nothing only at the end.
pub(crate) fn read_some_until(
    fd: BorrowedFd<'_>,
    buffer: &mut [u8],
    deadline: Instant,
) -> std::io::Result<usize> {
    loop {
        let mut polled = [PollFd::new(&fd, PollFlags::IN)];
        if !poll_until(&mut polled, deadline)? {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        match rustix::io::read(fd, &mut *buffer) {
            Ok(count) => return Ok(count),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Git, GitErrorKind};

    #[test]
    fn a_call_that_hangs_is_killed_with_its_children() {
        let git = Git::find_installed().expect("git is here");
        let mark = format!("{}", 100_000 + std::process::id()); // seconds nobody else sleeps
        let start = Instant::now();
        let call = git.prepare_call("hang").config(format!("alias.hang=!sleep {mark}")).arg("hang");
        let error = call.timeout(Duration::from_millis(300)).run().expect_err("it hangs");
        assert!(matches!(error.kind, GitErrorKind::Timeout { .. }), "{error:?}");
        assert!(start.elapsed() < Duration::from_secs(20));
        let alive = || {
            let listing = std::fs::read_dir("/proc").expect("readable");
            let names = listing.filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
            let wanted = format!("sleep\0{mark}\0");
            names.into_iter().any(|cmdline| cmdline == wanted.as_bytes())
        };
        let deadline = Instant::now() + Duration::from_secs(10);
        while alive() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert!(!alive(), "its child was killed as well");
    }

    #[test]
    fn output_is_bounded_and_input_may_be_larger_than_a_pipe() {
        let git = Git::find_installed().expect("git is here");
        let cut = git.prepare_call("cut").arg("version").cut_at(5).run().expect("runs");
        assert!(cut.cut && cut.stdout == b"git v");
        let large = vec![b'x'; 5 << 20];
        let call = git.prepare_call("hash").git_dir(std::path::Path::new("/nonexistent"));
        let said = call.args(["stripspace"]).input(large.clone()).run().expect("runs");
        assert_eq!(said.stdout.len(), large.len() + 1);
        let refused = git.prepare_call("refuse").args(["no-such-command"]).output().expect_err("refused");
        assert!(matches!(refused.kind, GitErrorKind::Failed { code: 1, .. }), "{refused:?}");
    }

    #[test]
    fn the_environment_of_a_call_is_ours() {
        let git = Git::find_installed().expect("git is here");
        let call = git.prepare_call("show").config("alias.show-env=!env").arg("show-env");
        let text = call.output_text().expect("runs");
        let get = |key: &str| {
            text.lines().find_map(|line| line.strip_prefix(&format!("{key}=")).map(str::to_owned))
        };
        assert_eq!(get("HOME").as_deref(), Some("/nonexistent"));
        assert_eq!(get("GIT_CONFIG_GLOBAL").as_deref(), Some("/dev/null"));
        assert_eq!(get("CARGO_MANIFEST_DIR"), None, "nothing of ours leaks in");
    }
}

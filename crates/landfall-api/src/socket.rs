//! Requests and responses between processes, over a Unix socket: one line of JSON each.
//!
//! The engine greets with its version, then every line is a request or its answer. Only processes of the same user
//! are let in: the file is for its owner alone, and the peer is asked who it is. Nothing here knows what a request
//! means; another transport replaces this file and no other.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Problem, ProblemCode, Request, Response, Service, VERSION};

/// The longest message, in bytes: a diff of a large change fits, a flood does not.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How many clients are served at once; each holds a thread.
pub const CONNECTIONS_MAX: usize = 64;

const MESSAGE_TIME_MAX: Duration = Duration::from_secs(30); // from the first byte of a message to its last
const IDLE_TIME_MAX: Duration = Duration::from_secs(60); // a client that says nothing gives its thread back
const ANSWER_TIME_MAX: Duration = Duration::from_secs(600); // `doctor --rebuild` of a long journal is the slowest

/// A client of a running engine.
#[derive(Debug)]
pub struct Client {
    engine: Greeting,
    line: Mutex<Line>,
}

/// What the engine says when a client comes in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// The version of the wire.
    pub v: u32,
    /// The version of the engine.
    pub engine: String,
    /// The process of the engine.
    pub pid: u32,
}

/// Why no engine could be reached.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// No engine listens there. That is an answer: a client may open the project itself.
    #[error("no engine listens on `{0}`")]
    Nobody(PathBuf),
    /// The engine speaks another version of the wire.
    #[error(
        "the engine (version {engine}, process {pid}) speaks version {theirs} of the wire, not {VERSION}"
    )]
    Version {
        /// Its version of the wire.
        theirs: u32,
        /// Its version.
        engine: String,
        /// Its process.
        pid: u32,
    },
    /// The way there is broken.
    #[error("reach the engine on `{path}`")]
    Broken {
        /// Where it should listen.
        path: PathBuf,
        /// What happened.
        #[source]
        source: io::Error,
    },
}

impl Client {
    /// Comes in and checks the version.
    ///
    /// # Errors
    /// [`ConnectError::Nobody`] when no engine listens; the others when one does and cannot be talked to.
    pub fn connect(path: &Path) -> Result<Self, ConnectError> {
        let broken = |source| ConnectError::Broken { path: path.to_owned(), source };
        let stream = match short(path).and_then(|short| UnixStream::connect(&short.path)) {
            Ok(stream) => stream,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                return Err(ConnectError::Nobody(path.to_owned()));
            }
            Err(error) => return Err(broken(error)),
        };
        check_peer(&stream).map_err(broken)?;
        let mut line = Line::new(stream);
        let greeting = line
            .receive(MESSAGE_TIME_MAX)
            .and_then(|text| text.ok_or_else(|| ErrorKind::UnexpectedEof.into()))
            .map_err(broken)?;
        // A greeting that cannot be read comes from something newer or something else: either way not our version.
        let greeting: Greeting =
            serde_json::from_slice(&greeting).map_err(|error| broken(io::Error::other(error)))?;
        if greeting.v != VERSION {
            let Greeting { v, engine, pid } = greeting;
            return Err(ConnectError::Version { theirs: v, engine, pid });
        }
        Ok(Self { engine: greeting, line: Mutex::new(line) })
    }

    /// Who answers.
    #[must_use]
    pub fn engine(&self) -> &Greeting {
        &self.engine
    }
}

impl Service for Client {
    fn call(&self, request: Request) -> Result<Response, Problem> {
        let pid = self.engine.pid;
        let lost = |what: &str, error: &dyn std::fmt::Display| {
            Problem::new(ProblemCode::Internal, format!("{what} the engine (process {pid}): {error}"))
                .hint("`landfall status` shows whether the engine still runs and what became of the request")
        };
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let asked =
            serde_json::to_vec(&Asked { v: VERSION, request }).map_err(|error| lost("write to", &error))?;
        if asked.len() > MESSAGE_BYTES_MAX {
            let message =
                format!("the request has {} bytes; at most {MESSAGE_BYTES_MAX} are taken", asked.len());
            return Err(Problem::new(ProblemCode::BadInput, message));
        }
        // When the write fails, the engine may have said why before it hung up: too many clients, too long, too old.
        let sent = line.send(&asked);
        let answer = match line.receive(ANSWER_TIME_MAX) {
            Ok(Some(answer)) => answer,
            Ok(None) | Err(_) if sent.is_err() => {
                let error = sent.expect_err("matched as an error above");
                return Err(lost("write to", &error));
            }
            Ok(None) => return Err(lost("read from", &"it hung up")),
            Err(error) => return Err(lost("read from", &error)),
        };
        let answered: Answered =
            serde_json::from_slice(&answer).map_err(|error| lost("understand", &error))?;
        match (answered.response, answered.problem) {
            (Some(response), None) => Ok(*response),
            (None, Some(problem)) => Err(problem),
            (Some(_), Some(_)) | (None, None) => Err(lost("understand", &"neither an answer nor a problem")),
        }
    }
}

/// Makes the socket of an engine, for its owner alone. An old one in its place is replaced: whoever calls this holds
/// the engine's lock, so nobody listens there.
///
/// # Errors
/// When the place cannot be written, or holds something that is not a socket.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    match path.symlink_metadata() {
        Ok(there) if !there.file_type().is_socket() => {
            return Err(io::Error::new(
                ErrorKind::AlreadyExists,
                "something that is not a socket is in its place",
            ));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // Made aside and moved into place, so that it is never there with wider rights, nor there and dead.
    let mut aside = path.as_os_str().to_owned();
    aside.push(".new");
    let aside = PathBuf::from(aside);
    match std::fs::remove_file(&aside) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(&short(&aside)?.path)?;
    std::fs::set_permissions(&aside, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(&aside, path)?;
    Ok(listener)
}

/// Serves clients on `listener` until the handle is stopped or dropped.
///
/// # Errors
/// When no thread or no pipe can be had.
pub fn serve(listener: UnixListener, service: Arc<dyn Service + Send + Sync>) -> io::Result<Serving> {
    listener.set_nonblocking(true)?;
    let (wake, woken) = UnixStream::pair()?;
    let stopping = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stopping);
    let thread = thread::Builder::new()
        .name("socket".to_owned())
        .spawn(move || accept(&listener, &woken, &seen, &service))?;
    Ok(Serving { stopping, wake, thread: Some(thread) })
}

/// An engine's socket at work. Dropping it stops it.
#[derive(Debug)]
pub struct Serving {
    stopping: Arc<AtomicBool>,
    wake: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    /// Takes no more clients, lets requests under way end, and hangs up.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        drop(self.wake.write(&[1])); // the thread has ended by itself: nothing to wake
        if let Some(thread) = self.thread.take() {
            drop(thread.join()); // a panic there was reported by the panic hook
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.end();
    }
}

struct Guest {
    stream: UnixStream,
    thread: JoinHandle<()>,
}

fn accept(
    listener: &UnixListener,
    woken: &UnixStream,
    stopping: &AtomicBool,
    service: &Arc<dyn Service + Send + Sync>,
) {
    let mut guests: Vec<Guest> = Vec::new();
    while !stopping.load(Ordering::SeqCst) {
        let mut fds = [
            PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(woken.as_fd(), PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return, // both descriptors are ours and open: only a broken kernel says so
        }
        guests.retain(|guest| !guest.thread.is_finished());
        match listener.accept() {
            Ok((stream, _)) => {
                if let Some(guest) = welcome(stream, guests.len(), service) {
                    guests.push(guest);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // Out of descriptors, or the client left before it was let in. A short pause keeps the loop from spinning.
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
    for guest in &guests {
        drop(guest.stream.shutdown(std::net::Shutdown::Read)); // it has left already
    }
    for guest in guests {
        drop(guest.thread.join()); // a panic there was reported by the panic hook
    }
}

fn welcome(stream: UnixStream, guests: usize, service: &Arc<dyn Service + Send + Sync>) -> Option<Guest> {
    stream.set_nonblocking(false).ok()?;
    let pid = check_peer(&stream).ok()?;
    let kept = stream.try_clone().ok()?;
    let service = Arc::clone(service);
    let mut line = Line::new(stream);
    let greeting =
        Greeting { v: VERSION, engine: env!("CARGO_PKG_VERSION").to_owned(), pid: std::process::id() };
    line.send(&serde_json::to_vec(&greeting).expect("a greeting is plain text and numbers")).ok()?;
    if let Err(problem) = service.admit(pid) {
        drop(line.answer(&Answered::new(Err(problem)))); // it has left already
        return None;
    }
    if guests >= CONNECTIONS_MAX {
        let problem = Problem::new(
            ProblemCode::EngineBusy,
            format!("the engine serves {CONNECTIONS_MAX} clients already"),
        )
        .hint("try again in a moment");
        drop(line.answer(&Answered::new(Err(problem)))); // it has left already
        return None;
    }
    let thread = thread::Builder::new()
        .name("client".to_owned())
        .spawn(move || {
            host(&mut line, service.as_ref());
            // The doorman holds a copy of the stream; without this the client would not see that we hung up.
            drop(line.stream.shutdown(std::net::Shutdown::Both)); // it has left already
        })
        .ok()?;
    Some(Guest { stream: kept, thread })
}

/// Serves one client until it leaves, is silent for too long, or cannot be understood.
fn host(line: &mut Line, service: &dyn Service) {
    loop {
        let asked = match line.receive(IDLE_TIME_MAX) {
            Ok(Some(asked)) => asked,
            Ok(None) => return,
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                let problem = Problem::new(ProblemCode::BadInput, error.to_string());
                drop(line.answer(&Answered::new(Err(problem)))); // it has left already
                return;
            }
            Err(_) => return,
        };
        let answered = Answered::new(read_asked(&asked).and_then(|request| service.call(request)));
        drop(asked);
        if line.answer(&answered).is_err() {
            return;
        }
    }
}

fn read_asked(text: &[u8]) -> Result<Request, Problem> {
    #[derive(Deserialize)]
    struct Stamp {
        v: u32,
    }
    let bad = |error: serde_json::Error| {
        Problem::new(ProblemCode::BadInput, format!("the request cannot be understood: {error}"))
    };
    let stamp: Stamp = serde_json::from_slice(text).map_err(bad)?;
    if stamp.v != VERSION {
        let message =
            format!("the request has version {} of the wire; this engine speaks {VERSION}", stamp.v);
        return Err(Problem::new(ProblemCode::BadInput, message)
            .hint("use the client that belongs to this engine: `landfall --version` shows its version"));
    }
    let asked: Asked = serde_json::from_slice(text).map_err(bad)?;
    Ok(asked.request)
}

#[derive(Debug, Serialize, Deserialize)]
struct Asked {
    v: u32,
    request: Request,
}

/// Either a response or a problem.
#[derive(Debug, Serialize, Deserialize)]
struct Answered {
    v: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response: Option<Box<Response>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    problem: Option<Problem>,
}

impl Answered {
    fn new(result: Result<Response, Problem>) -> Self {
        match result {
            Ok(response) => Self { v: VERSION, response: Some(Box::new(response)), problem: None },
            Err(problem) => Self { v: VERSION, response: None, problem: Some(problem) },
        }
    }
}

/// One side of a connection: whole lines in and out, with a bound on their size and time.
#[derive(Debug)]
struct Line {
    stream: UnixStream,
    rest: Vec<u8>, // bytes after the last whole line
}

impl Line {
    fn new(stream: UnixStream) -> Self {
        Self { stream, rest: Vec::new() }
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.stream.set_write_timeout(Some(MESSAGE_TIME_MAX))?;
        self.stream.write_all(message)?;
        self.stream.write_all(b"\n")
    }

    fn answer(&mut self, answered: &Answered) -> io::Result<()> {
        let mut message = serde_json::to_vec(answered).map_err(io::Error::other)?;
        if message.len() > MESSAGE_BYTES_MAX {
            let problem = Problem::new(
                ProblemCode::BadInput,
                format!("the answer has {} bytes; at most {MESSAGE_BYTES_MAX} are sent", message.len()),
            )
            .hint("ask for less, for example with a smaller limit");
            message = serde_json::to_vec(&Answered::new(Err(problem))).map_err(io::Error::other)?;
        }
        self.send(&message)
    }

    /// The next line, or nothing if the other side has hung up between two lines. Waits `patience` for its first
    /// byte; what then comes in drips has the time of a message.
    fn receive(&mut self, patience: Duration) -> io::Result<Option<Vec<u8>>> {
        let mut message = std::mem::take(&mut self.rest);
        let mut scanned = 0;
        let mut deadline = Instant::now() + patience;
        loop {
            if let Some(end) = message[scanned..].iter().position(|byte| *byte == b'\n') {
                self.rest = message.split_off(scanned + end + 1);
                message.pop();
                return Ok(Some(message));
            }
            scanned = message.len();
            if scanned > MESSAGE_BYTES_MAX {
                let text = format!("the message has more than {MESSAGE_BYTES_MAX} bytes");
                return Err(io::Error::new(ErrorKind::InvalidData, text));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(Some(left))?;
            let mut chunk = [0; 64 * 1024];
            match self.stream.read(&mut chunk) {
                Ok(0) if message.is_empty() => return Ok(None),
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    if message.is_empty() {
                        deadline = Instant::now() + MESSAGE_TIME_MAX;
                    }
                    message.extend_from_slice(&chunk[..read]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
                Err(error) => return Err(error),
            }
        }
    }
}

/// The process on the other side, if it is of the same user.
fn check_peer(stream: &UnixStream) -> io::Result<i32> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    if peer.uid == rustix::process::geteuid() {
        return Ok(peer.pid.as_raw_nonzero().get());
    }
    Err(io::Error::new(ErrorKind::PermissionDenied, "the other side belongs to another user"))
}

/// A socket's address holds about a hundred bytes. A longer path is reached through its folder, held open.
struct Short {
    path: PathBuf,
    _folder: Option<std::fs::File>,
}

const ADDRESS_BYTES_MAX: usize = 100; // `sun_path` has 104 to 108, with its closing zero

fn short(path: &Path) -> io::Result<Short> {
    if path.as_os_str().len() <= ADDRESS_BYTES_MAX {
        return Ok(Short { path: path.to_owned(), _folder: None });
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let folder = std::fs::File::open(parent)?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&folder);
    let path = Path::new("/proc/self/fd").join(number.to_string()).join(name);
    Ok(Short { path, _folder: Some(folder) })
}

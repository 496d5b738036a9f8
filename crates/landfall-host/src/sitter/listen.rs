//! The socket on which the program of a run can say something, and have it kept.
//!
//! One line of JSON in, one line of JSON out, as often as one likes within the time of a connection:
//!
//! ```text
//! → {"key":"<the run's key>","say":"blocked","text":"the tests need a database"}
//! ← {"ok":true}
//! ← {"ok":false,"error":"the key is not this run's","hint":"…"}
//! ```
//!
//! `say` is one of [`WORDS`]; `text` is its text, and `progress` has a number of per cent as its text. Whatever else the
//! object holds is kept with it. `{"ok":true}` means that the line is on the disk, in `signals.jsonl`:
//!
//! ```text
//! {"at_ms":1790000000000,"say":"blocked","seq":1,"text":"the tests need a database"}
//! ```
//!
//! `seq` counts from 1, `at_ms` is when it was taken. What is refused leaves no trace. The bounds are below; who comes
//! when all places are taken waits.
//!
//! Only the processes of this run are heard: the path can be guessed, and a key that an agent has printed can be read by
//! others of the same user. Whoever else comes is sent away at once, and takes nobody's place.
//!
//! It has a thread of its own: a disk may take its time, and the outputs of the program must be drained meanwhile.

use super::files;
use super::identity::ProcessStat;
use super::spec::SignalSpec;
use super::within;
use crate::clock::{Clock as _, SystemClock};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use serde_json::{Map, Value};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// What can be said.
pub const WORDS: [&str; 11] = [
    "complete",
    "blocked",
    "pending",
    "progress",
    "step",
    "check",
    "resolved",
    "discovery-local",
    "discovery-global",
    "ask",
    "follow-up",
];

const LINE_MAX: usize = 64 * 1024; // a long question; what is longer belongs in a file
const GUESTS_MAX: usize = 8; // an agent and a few of its own, at the same moment
const GUEST_TIME: Duration = Duration::from_secs(5); // a line takes milliseconds
const FILE_MAX: u64 = 4 << 20; // thousands of lines; an agent that says more says nothing

/// A socket that is there, and nobody at it yet: made before the program starts.
pub(super) struct SignalListener {
    listener: UnixListener,
    socket: PathBuf,
    book: SignalLog,
    own: ProcessStat,
}

/// The socket at work.
pub(super) struct SignalServer {
    socket: PathBuf,
    stop: Arc<OwnedFd>,
    done: Option<Receiver<()>>,
}

impl SignalListener {
    /// Makes the socket, for its owner alone, and the file in `dir`.
    pub(super) fn open(dir: &Path, spec: &SignalSpec) -> io::Result<SignalListener> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(dir.join(files::SIGNALS))?;
        let len = file.metadata()?.len();
        let listener = bind_socket(&spec.socket)?;
        listener.set_nonblocking(true)?;
        let book = SignalLog { dir: dir.to_owned(), file, len, seq: 0, key: spec.key.clone() };
        let own = ProcessStat::read_process(within::own_pid())?
            .ok_or_else(|| io::Error::other("read our own start time"))?;
        Ok(SignalListener { listener, socket: spec.socket.clone(), book, own })
    }

    /// Begins to listen. Without a thread to be had nobody is heard, and the program is told so by silence; the run itself
    /// does not depend on it.
    pub(super) fn start_listening(self) -> SignalServer {
        const STACK: usize = 1 << 20; // the JSON reader goes 128 deep; what is not used costs nothing
        let SignalListener { listener, socket, book, own } = self;
        let (told, done) = sync_channel(1);
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map(Arc::new);
        let Ok(stop) = stop else {
            return SignalServer { socket, stop: Arc::new(listener.into()), done: None };
        };
        let wake = Arc::clone(&stop);
        let thread = thread::Builder::new().name("socket".to_owned()).stack_size(STACK).spawn(move || {
            serve_clients(&own, &listener, &wake, book);
            told.send(()).ok(); // the main thread has stopped waiting
        });
        SignalServer { socket, stop, done: thread.is_ok().then_some(done) }
    }

    /// Takes the socket away: there is no program to listen to.
    pub(super) fn close(self) {
        let _ = fs::remove_file(&self.socket); // gone already is as good
    }
}

impl SignalServer {
    /// Takes the socket away, once what was being written is written.
    pub(super) fn stop_listening(self) {
        const PATIENCE: Duration = Duration::from_secs(5); // a disk that takes longer is stuck, and must not keep us
        let _ = fs::remove_file(&self.socket); // gone already is as good
        if let Some(done) = self.done {
            rustix::io::write(&*self.stop, &1u64.to_ne_bytes()).ok(); // it has ended by itself: nothing to wake
            done.recv_timeout(PATIENCE).ok(); // ended, or stuck: we go on either way
        }
    }
}

/// Makes a socket at `path`: aside first and then moved into place, so that it is never there with wider rights.
fn bind_socket(path: &Path) -> io::Result<UnixListener> {
    match path.symlink_metadata() {
        Ok(there) if !there.file_type().is_socket() => {
            let text = "something that is not a socket is in its place";
            return Err(io::Error::new(ErrorKind::AlreadyExists, text));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let mut aside = name.to_owned();
    aside.push(".new");
    let aside_path = parent.join(&aside);
    match fs::remove_file(&aside_path) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // An address holds some hundred bytes, a path any number: so it is named from its folder.
    let folder = File::open(parent)?;
    let short = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(&aside);
    let listener = UnixListener::bind(&short)?;
    fs::set_permissions(&aside_path, Permissions::from_mode(0o600))?;
    fs::rename(&aside_path, path)?;
    Ok(listener)
}

struct SignalClient {
    stream: UnixStream,
    heard: Vec<u8>,
    until: Instant,
}

/// Serves whoever comes from the tree of `own` until told to stop.
fn serve_clients(own: &ProcessStat, listener: &UnixListener, stop: &OwnedFd, mut book: SignalLog) {
    let mut guests: Vec<SignalClient> = Vec::new();
    loop {
        let now = Instant::now();
        guests.retain(|guest| guest.until > now);
        let nap = guests.iter().map(|guest| guest.until - now).min();
        let mut fds = vec![PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
        if guests.len() < GUESTS_MAX {
            fds.push(PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN));
        }
        fds.extend(guests.iter().map(|guest| PollFd::from_borrowed_fd(guest.stream.as_fd(), PollFlags::IN)));
        let span = nap.map(|nap| Timespec {
            tv_sec: i64::try_from(nap.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(nap.subsec_nanos()),
        });
        match poll(&mut fds, span.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return, // the descriptors are ours and open: only want of memory says so
        }
        if fds[0].revents().contains(PollFlags::IN) {
            return;
        }
        drop(fds);
        guests.retain_mut(|guest| guest.serve_client(&mut book));
        if guests.len() < GUESTS_MAX
            && let Ok((stream, _)) = listener.accept()
            && stream.set_nonblocking(true).is_ok()
        {
            let mut guest = SignalClient { stream, heard: Vec::new(), until: Instant::now() + GUEST_TIME };
            if within::is_peer_within(own, &guest.stream) == Some(true) {
                guests.push(guest);
            } else {
                guest.write_answer(Err(refuse_stranger()));
            }
        }
    }
}

impl SignalClient {
    /// Hears what there is, up to a turn's worth: the others, and the end, must not wait for who never stops. False: it
    /// has left, or has to.
    fn serve_client(&mut self, book: &mut SignalLog) -> bool {
        const TURN: usize = 16;
        let mut chunk = [0; 4096];
        for _ in 0..TURN {
            match self.stream.read(&mut chunk) {
                Ok(0) => {
                    let rest = std::mem::take(&mut self.heard); // a last line need not be closed
                    if !rest.is_empty() {
                        self.write_answer(book.take_line(&rest));
                    }
                    return false;
                }
                Ok(read) => {
                    self.heard.extend_from_slice(&chunk[..read]);
                    while let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
                        let rest = self.heard.split_off(end + 1);
                        let line = std::mem::replace(&mut self.heard, rest);
                        if !self.write_answer(book.take_line(&line[..end])) {
                            return false;
                        }
                    }
                    if self.heard.len() > LINE_MAX {
                        self.write_answer(Err(refuse_long_line()));
                        return false;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
        true
    }

    /// Answers, if there is room for it: who does not read is not waited for.
    fn write_answer(&mut self, taken: Result<(), SocketRefusal>) -> bool {
        let answer = match taken {
            Ok(()) => serde_json::json!({ "ok": true }),
            Err(SocketRefusal { error, hint }) => {
                serde_json::json!({ "ok": false, "error": error, "hint": hint })
            }
        };
        let line = format!("{answer}\n");
        matches!(self.stream.write(line.as_bytes()), Ok(written) if written == line.len())
    }
}

/// Why a line was not taken.
#[derive(Debug, PartialEq, Eq)]
struct SocketRefusal {
    error: String,
    hint: String,
}

fn new_refusal(error: impl Into<String>, hint: impl Into<String>) -> SocketRefusal {
    SocketRefusal { error: error.into(), hint: hint.into() }
}

fn refuse_long_line() -> SocketRefusal {
    new_refusal(
        format!("the line has more than {LINE_MAX} bytes"),
        "put the long part into a file of the workspace and name it",
    )
}

fn refuse_stranger() -> SocketRefusal {
    new_refusal(
        "only the processes of this run are heard here",
        "stay until the answer comes, and speak from a process that the agent has started",
    )
}

/// What was said and taken.
struct SignalLog {
    dir: PathBuf,
    file: File,
    len: u64,
    seq: u64,
    key: String,
}

impl SignalLog {
    /// Takes a line: it is on the disk when this returns without an error.
    fn take_line(&mut self, line: &[u8]) -> Result<(), SocketRefusal> {
        if line.len() > LINE_MAX {
            return Err(refuse_long_line());
        }
        let mut said = parse_message(&self.key, line)?;
        said.insert("seq".to_owned(), (self.seq + 1).into());
        said.insert("at_ms".to_owned(), SystemClock.now_ms().into());
        let mut text = Value::Object(said).to_string();
        text.push('\n');
        if self.len + text.len() as u64 > FILE_MAX {
            return Err(new_refusal(
                format!("this run has said {} bytes, and no more than {FILE_MAX} are kept", self.len),
                "go on without it, or end the run",
            ));
        }
        match self.append_text(text.as_bytes()) {
            Ok(()) => {
                self.seq += 1;
                self.len += text.len() as u64;
                Ok(())
            }
            Err(error) => {
                let _ = self.file.set_len(self.len); // if that fails too, half a line stays, and is not a line
                Err(new_refusal(format!("the line could not be kept: {error}"), "try again in a moment"))
            }
        }
    }

    fn append_text(&mut self, text: &[u8]) -> io::Result<()> {
        self.file.write_all(text)?;
        self.file.sync_data()?;
        if self.seq == 0 {
            File::open(&self.dir)?.sync_all()?; // the file's name too, the first time
        }
        Ok(())
    }
}

/// What a line says, without the key.
fn parse_message(key: &str, line: &[u8]) -> Result<Map<String, Value>, SocketRefusal> {
    let shape = || "send one line: {\"key\":\"$LANDFALL_KEY\",\"say\":\"complete\"}".to_owned();
    let mut said: Map<String, Value> = serde_json::from_slice(line)
        .map_err(|error| new_refusal(format!("the line cannot be understood: {error}"), shape()))?;
    // The key first: a stranger learns nothing else.
    let theirs = said.remove("key");
    let theirs = theirs.as_ref().and_then(Value::as_str).unwrap_or_default();
    if !is_same(key.as_bytes(), theirs.as_bytes()) {
        return Err(new_refusal(
            "the key is not this run's",
            "the key is in LANDFALL_KEY of the agent's environment",
        ));
    }
    let word = said.get("say").and_then(Value::as_str).unwrap_or_default();
    if !WORDS.contains(&word) {
        return Err(new_refusal(
            format!("`{word}` is not a word that is known"),
            format!("say one of {}", WORDS.join(", ")),
        ));
    }
    let text = match said.get("text") {
        None => "",
        Some(Value::String(text)) => text,
        Some(_) => return Err(new_refusal("`text` is not a string", shape())),
    };
    match word {
        "progress" if !text.trim().trim_end_matches('%').parse::<u8>().is_ok_and(|it| it <= 100) => {
            Err(new_refusal(format!("`{text}` is not a number of per cent"), "say for example 40"))
        }
        "step" if !text.trim().parse::<u32>().is_ok_and(|number| number > 0) => {
            Err(new_refusal(format!("`{text}` is not the number of a step"), "say for example 2"))
        }
        "blocked" | "pending" | "check" | "discovery-local" | "discovery-global" | "ask" | "follow-up"
            if text.trim().is_empty() =>
        {
            Err(new_refusal(format!("`{word}` needs a text"), "say in `text` what it is about"))
        }
        _ => Ok(said),
    }
}

/// Compares without telling by its time how much was right.
fn is_same(ours: &[u8], theirs: &[u8]) -> bool {
    let mut differs = ours.len() ^ theirs.len();
    for (at, byte) in theirs.iter().enumerate() {
        let own = ours.get(at % ours.len().max(1)).copied().unwrap_or(!byte);
        differs |= usize::from(own ^ byte);
    }
    std::hint::black_box(differs) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_key_opens() {
        assert!(is_same(b"abc", b"abc"));
        for wrong in ["", "a", "ab", "abd", "abcabc", "abca", "xbc"] {
            assert!(!is_same(b"abc", wrong.as_bytes()), "{wrong}");
        }
        assert!(!is_same(b"", b"a"), "and an empty one only the empty, which `start` refuses");
    }

    #[test]
    fn a_line_is_understood_or_refused_with_a_reason() {
        let heard = |line: &str| parse_message("k", line.as_bytes());
        let said = heard(r#"{"key":"k","say":"blocked","text":"why","more":[1]}"#).expect("a sound line");
        assert_eq!(Value::Object(said).to_string(), r#"{"more":[1],"say":"blocked","text":"why"}"#);
        for sound in [
            r#"{"key":"k","say":"complete"}"#,
            r#"{"key":"k","say":"progress","text":"40"}"#,
            r#"{"key":"k","say":"progress","text":"100%"}"#,
        ] {
            heard(sound).expect(sound);
        }
        for (line, part) in [
            ("", "cannot be understood"),
            ("[]", "cannot be understood"),
            (r#"{"say":"complete"}"#, "not this run's"),
            (r#"{"key":"K","say":"complete"}"#, "not this run's"),
            (r#"{"key":7,"say":"complete"}"#, "not this run's"),
            (r#"{"key":"k","say":"done"}"#, "`done` is not a word"),
            (r#"{"key":"k","say":"blocked"}"#, "needs a text"),
            (r#"{"key":"k","say":"ask","text":" "}"#, "needs a text"),
            (r#"{"key":"k","say":"ask","text":["x"]}"#, "not a string"),
            (r#"{"key":"k","say":"progress","text":"101"}"#, "per cent"),
        ] {
            let error = heard(line).expect_err(line).error;
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}

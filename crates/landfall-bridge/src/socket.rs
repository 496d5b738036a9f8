//! One word to the run's sitter, through its socket.
//!
//! The sitter writes it down before it answers, so a word that was taken is not lost, whatever the engine does.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The variable that names the socket.
pub const SOCKET: &str = "LANDFALL_SIGNAL";
/// The variable that holds the key of the run.
pub const KEY: &str = "LANDFALL_KEY";

/// A sitter writes a line to disk and answers; only a machine in trouble takes longer.
const WAIT_MAX: Duration = Duration::from_secs(15);
/// Bytes of an answer.
const ANSWER_MAX: u64 = 64 << 10;
/// Bytes that a path in a socket address may have, its closing NUL not counted.
const ADDRESS_MAX: usize = 107;

/// What an agent can say, with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketSignal {
    /// The work is done.
    Complete,
    /// It cannot go on, and why.
    Blocked(String),
    /// Only a person can decide this.
    Pending(String),
    /// How far it is, in per cent.
    Progress(u8),
    /// This step of its plan is done.
    Step(u32),
    /// Plan and reality part: a judge is to look.
    Check(String),
    /// A conflict is resolved.
    Resolved,
    /// Something worth knowing for this task.
    DiscoveryLocal(String),
    /// Something worth knowing for every task.
    DiscoveryGlobal(String),
    /// A question to a person.
    Ask(String),
    /// A new task.
    FollowUp {
        /// Its title.
        title: String,
        /// Its text.
        body: String,
    },
}

/// Why there is no word.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WordError {
    /// It is none of ours.
    #[error("there is no word `{given}`")]
    Unknown {
        /// What was said.
        given: String,
    },
    /// It means nothing without a text.
    #[error("`{word}` needs a text")]
    NeedsText {
        /// The word.
        word: &'static str,
    },
    /// Not a number from 0 to 100.
    #[error("`{given}` is not a number from 0 to 100")]
    NotPercent {
        /// What was said.
        given: String,
    },
    /// Not the number of a step.
    #[error("`{given}` is not the number of a step")]
    NotStep {
        /// What was said.
        given: String,
    },
}

impl WordError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown { .. } => format!("known are {}", WORDS.join(", ")),
            Self::NeedsText { word } => format!("for example: landfall signal {word} \"a sentence\""),
            Self::NotPercent { .. } => "for example: landfall signal progress 40".to_owned(),
            Self::NotStep { .. } => "steps count from 1, for example: landfall signal step 2".to_owned(),
        }
    }
}

/// The words of `landfall signal`.
pub const WORDS: [&str; 11] = [
    "complete",
    "blocked",
    "pending",
    "progress",
    "step",
    "check",
    "resolved",
    "discovery",
    "discovery-global",
    "follow-up",
    "ask",
];

impl SocketSignal {
    /// The word and its text, if they belong together. A text that a word has no use for is left out.
    pub fn new(word: &str, text: &str) -> Result<Self, WordError> {
        let text = text.trim();
        let needed = |word| {
            if text.is_empty() { Err(WordError::NeedsText { word }) } else { Ok(text.to_owned()) }
        };
        match word.to_ascii_lowercase().replace('_', "-").as_str() {
            "complete" => Ok(Self::Complete),
            "resolved" => Ok(Self::Resolved),
            "blocked" => needed("blocked").map(Self::Blocked),
            "pending" => needed("pending").map(Self::Pending),
            "progress" => parse_percent(text).map(Self::Progress),
            "step" => match text.parse() {
                Ok(number) if number > 0 => Ok(Self::Step(number)),
                Ok(_) | Err(_) => Err(WordError::NotStep { given: text.chars().take(40).collect() }),
            },
            "check" => needed("check").map(Self::Check),
            "discovery" | "discovery-local" => needed("discovery").map(Self::DiscoveryLocal),
            "discovery-global" => needed("discovery-global").map(Self::DiscoveryGlobal),
            "ask" => needed("ask").map(Self::Ask),
            "follow-up" => needed("follow-up").map(|text| {
                let (title, body) = text.split_once('\n').unwrap_or((&text, ""));
                Self::FollowUp { title: title.trim().to_owned(), body: body.trim().to_owned() }
            }),
            _ => Err(WordError::Unknown { given: word.chars().take(40).collect() }),
        }
    }

    fn wire_name(&self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Blocked(_) => "blocked",
            Self::Pending(_) => "pending",
            Self::Progress(_) => "progress",
            Self::Step(_) => "step",
            Self::Check(_) => "check",
            Self::Resolved => "resolved",
            Self::DiscoveryLocal(_) => "discovery-local",
            Self::DiscoveryGlobal(_) => "discovery-global",
            Self::Ask(_) => "ask",
            Self::FollowUp { .. } => "follow-up",
        }
    }

    fn payload_text(&self) -> Option<String> {
        match self {
            Self::Complete | Self::Resolved => None,
            Self::Blocked(text)
            | Self::Pending(text)
            | Self::DiscoveryLocal(text)
            | Self::DiscoveryGlobal(text)
            | Self::Check(text)
            | Self::Ask(text) => Some(text.clone()),
            Self::Step(number) => Some(number.to_string()),
            Self::Progress(percent) => Some(percent.to_string()),
            Self::FollowUp { title, body } if body.is_empty() => Some(title.clone()),
            Self::FollowUp { title, body } => Some(format!("{title}\n{body}")),
        }
    }
}

fn parse_percent(text: &str) -> Result<u8, WordError> {
    let digits = text.strip_suffix('%').unwrap_or(text).trim_end();
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let percent = digits.parse().ok().filter(|percent| plain && *percent <= 100);
    percent.ok_or_else(|| WordError::NotPercent { given: text.chars().take(40).collect() })
}

/// The way to the sitter of the run we are in.
#[derive(Debug, Clone)]
pub struct SitterConnection {
    socket: PathBuf,
    key: String,
}

/// Why a word was not taken.
#[derive(Debug, Error)]
pub enum LineError {
    /// We are not in a run.
    #[error("not inside a run of Landfall: `{missing}` is not set")]
    Outside {
        /// The variable.
        missing: &'static str,
    },
    /// The sitter cannot be spoken to.
    #[error("{doing}: {source}")]
    Unreachable {
        /// What we were about.
        doing: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The sitter does not want it.
    #[error("not taken: {why}")]
    Refused {
        /// Why.
        why: String,
        /// What to do about it.
        hint: Option<String>,
    },
}

impl LineError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Outside { .. } => {
                Some("this is for an agent that Landfall has started, in its own shell".to_owned())
            }
            Self::Unreachable { .. } => {
                Some("the run may be over; the tag in your last message says the same".to_owned())
            }
            Self::Refused { hint, .. } => hint.clone(),
        }
    }
}

#[derive(Serialize)]
struct SignalMessage<'a> {
    key: &'a str,
    say: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Deserialize)]
struct SocketReply {
    ok: bool,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    hint: Option<String>,
}

impl SitterConnection {
    /// The line of the run whose environment this is.
    pub fn from_environment() -> Result<Self, LineError> {
        let of = |name: &'static str| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .ok_or(LineError::Outside { missing: name })
        };
        let socket: OsString = of(SOCKET)?;
        let key = of(KEY)?.to_string_lossy().into_owned();
        Ok(Self { socket: socket.into(), key })
    }

    /// A line to this socket.
    #[must_use]
    pub fn new(socket: PathBuf, key: String) -> Self {
        Self { socket, key }
    }

    /// Says it, and waits until it is taken.
    pub fn send_signal(&self, word: &SocketSignal) -> Result<(), LineError> {
        let unreachable = |doing: String| move |source: io::Error| LineError::Unreachable { doing, source };
        let reaching = format!("reach the run at {}", self.socket.display());
        let mut stream = connect_to_socket(&self.socket).map_err(unreachable(reaching))?;
        let said = SignalMessage { key: &self.key, say: word.wire_name(), text: word.payload_text() };
        let line = serde_json::to_string(&said).expect("strings always have a JSON form") + "\n";
        let mut answer = Vec::new();
        stream
            .set_read_timeout(Some(WAIT_MAX))
            .and_then(|()| stream.set_write_timeout(Some(WAIT_MAX)))
            .and_then(|()| stream.write_all(line.as_bytes()))
            .and_then(|()| read_line(&mut stream, &mut answer))
            .map_err(unreachable("speak with the run".to_owned()))?;
        let answer: SocketReply =
            serde_json::from_slice(&answer).map_err(|error| LineError::Unreachable {
                doing: "understand the run's answer".to_owned(),
                source: io::Error::new(io::ErrorKind::InvalidData, error),
            })?;
        if answer.ok {
            return Ok(());
        }
        let why = answer.error.unwrap_or_else(|| "no reason was given".to_owned());
        Err(LineError::Refused { why, hint: answer.hint })
    }
}

fn read_line(stream: &mut UnixStream, line: &mut Vec<u8>) -> io::Result<()> {
    let mut limited = stream.take(ANSWER_MAX);
    let mut part = [0; 1024];
    while !line.contains(&b'\n') {
        match limited.read(&mut part) {
            Ok(0) => break,
            Ok(count) => line.extend_from_slice(&part[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if line.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed without an answer"));
    }
    Ok(())
}

/// A socket's address holds some hundred bytes, and state folders lie deep. A longer path is reached through a handle
/// on its folder, which needs no leave to read it.
fn connect_to_socket(socket: &Path) -> io::Result<UnixStream> {
    if socket.as_os_str().len() <= ADDRESS_MAX {
        return UnixStream::connect(socket);
    }
    let folder = socket.parent().unwrap_or(Path::new("/"));
    let name = socket.file_name().unwrap_or(OsStr::new(""));
    let folder = rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let short = [format!("/proc/self/fd/{}/", folder.as_raw_fd()).as_bytes(), name.as_bytes()].concat();
    UnixStream::connect(OsStr::from_bytes(&short))
}

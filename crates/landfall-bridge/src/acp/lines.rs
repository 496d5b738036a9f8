//! The agent's pipes: lines out, lines in. Every line that comes in is printed; those that want an answer, or are one,
//! go on to the protocol. An agent may write what it likes, as much as it likes.

use std::io;

use futures::{Sink, Stream, sink, stream};
use landfall_agents::acp::AcpNote;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStdin, ChildStdout};

use crate::say;

/// Bytes of a message that we listen to. Beyond it is no message.
const LINE_MAX: usize = 16 << 20;
/// Bytes of a message that are printed whole. Of a longer one, long texts are cut: the adapter keeps a megabyte of a
/// line, and half a message says nothing.
const WHOLE_MAX: usize = 256 << 10;
/// Bytes kept of each text in a message that is too long.
const TEXT_MAX: usize = 2 << 10;
/// Bytes shown of a line that is no message.
const RAW_MAX: usize = 2 << 10;
const CHUNK: usize = 64 << 10;

/// Where the protocol writes to.
pub(super) fn outgoing(stdin: ChildStdin) -> impl Sink<String, Error = io::Error> + Send + 'static {
    sink::unfold(stdin, async |mut stdin: ChildStdin, line: String| {
        match stdin.write_all((line + "\n").as_bytes()).await {
            // An agent that does not listen any more has ended; the end of its own words says so better.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(stdin),
            Err(error) => Err(error),
            Ok(()) => stdin.flush().await.map(|()| stdin),
        }
    })
}

/// What the protocol reads.
pub(super) fn incoming(stdout: ChildStdout) -> impl Stream<Item = io::Result<String>> + Send + 'static {
    stream::unfold(AcpLineReader::new(stdout), async |mut reader| {
        loop {
            match reader.line().await {
                Err(error) => return Some((Err(error), reader)),
                Ok(None) => return None,
                Ok(Some(line)) => {
                    if let Some(line) = hear(&line) {
                        return Some((Ok(line), reader));
                    }
                }
            }
        }
    })
}

struct AcpLineReader {
    stdout: ChildStdout,
    held: Vec<u8>,
    /// Where in `held` the line under way begins.
    begin: usize,
    /// Where in `held` no newline has been looked for yet.
    from: usize,
    /// Bytes of the line under way that were not kept.
    dropped: u64,
}

impl AcpLineReader {
    fn new(stdout: ChildStdout) -> Self {
        Self { stdout, held: Vec::new(), begin: 0, from: 0, dropped: 0 }
    }

    /// The next line without its end; none at the end of the stream.
    async fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(end) = self.held[self.from..].iter().position(|byte| *byte == b'\n') {
                let end = self.from + end;
                let line = self.held[self.begin..end].to_vec();
                (self.begin, self.from) = (end + 1, end + 1);
                match std::mem::take(&mut self.dropped) {
                    0 => return Ok(Some(line)),
                    dropped => print_raw(&line, dropped + line.len() as u64),
                }
                continue;
            }
            self.held.drain(..self.begin);
            if self.held.len() > LINE_MAX {
                // Its beginning is kept to be shown, and room is made for the rest of it.
                self.dropped += (self.held.len() - RAW_MAX) as u64;
                self.held.truncate(RAW_MAX);
            }
            (self.begin, self.from) = (0, self.held.len());
            self.held.reserve(CHUNK);
            if self.stdout.read_buf(&mut self.held).await? == 0 {
                self.from = 0;
                let last = std::mem::take(&mut self.held);
                return Ok((!last.is_empty()).then_some(last));
            }
        }
    }
}

/// Prints the line, and gives it back if the protocol has to know it.
fn hear(line: &[u8]) -> Option<String> {
    let message = std::str::from_utf8(line).ok().map(str::trim);
    let Some((message, value)) =
        message.and_then(|text| Some((text, serde_json::from_str::<Value>(text).ok()?)))
    else {
        if !line.trim_ascii().is_empty() {
            print_raw(line, line.len() as u64);
        }
        return None;
    };
    if !value.is_object() {
        print_raw(line, line.len() as u64);
        return None;
    }
    let wanted = value.get("id").is_some();
    if message.len() > WHOLE_MAX {
        say::line(&format!("{{\"acp\":{}}}", shorten_texts(value.clone())));
    } else {
        say::line(&format!("{{\"acp\":{message}}}"));
    }
    wanted.then(|| message.to_owned())
}

fn print_raw(line: &[u8], bytes: u64) {
    let text = String::from_utf8_lossy(&line[..line.len().min(RAW_MAX)]).into_owned();
    say::line(&AcpNote::Raw { text, bytes }.line());
}

/// The message with its long texts cut.
fn shorten_texts(value: Value) -> Value {
    match value {
        Value::String(mut text) if text.len() > TEXT_MAX => {
            let left_out = text.len() - text.floor_char_boundary(TEXT_MAX);
            text.truncate(text.floor_char_boundary(TEXT_MAX));
            text.push_str(&format!("… ({left_out} bytes more)"));
            Value::String(text)
        }
        Value::Array(values) => {
            const ITEMS_MAX: usize = 200;
            Value::Array(values.into_iter().take(ITEMS_MAX).map(shorten_texts).collect())
        }
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(key, value)| (key, shorten_texts(value))).collect())
        }
        other => other,
    }
}

//! The frame of the agents that write one JSON object per line: cuts lines, parses, counts what is not understood.

use landfall_model::Signal;
use serde_json::Value;

use crate::agent::{AgentStream, OutputParser};
use crate::lines::{LineSplitter, StreamLine};
use crate::tags::text_signal;

/// What one agent makes of its events.
pub(crate) trait AgentProtocol {
    /// An event on standard output.
    fn handle_event(&mut self, event: &Value, signals: &mut Vec<Signal>) -> EventRecognition;

    /// A line on standard error. It is for people: only fixed words of the program itself may mean something here.
    fn handle_stderr_line(&mut self, line: &str, signals: &mut Vec<Signal>) {
        let _ = (line, signals);
    }

    /// A record of the file the agent keeps beside its output.
    fn handle_side_record(&mut self, record: &Value) {
        let _ = record;
    }

    /// Everything has been heard.
    fn end_stream(&mut self, signals: &mut Vec<Signal>) {
        let _ = signals;
    }
}

/// Whether an event is one of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventRecognition {
    Yes,
    /// It is, and tells only what the program itself is at.
    Status,
    No,
}

/// A parser for such an agent.
pub(crate) struct JsonLines<P> {
    protocol: P,
    out: LineSplitter,
    err: LineSplitter,
    aside: LineSplitter,
    unknown: u64,
    /// Whether the last bytes held a line that is no mere status.
    spoke: bool,
}

impl<P: AgentProtocol> JsonLines<P> {
    pub(crate) fn new(protocol: P) -> Self {
        let lines = LineSplitter::default;
        Self { protocol, out: lines(), err: lines(), aside: lines(), unknown: 0, spoke: false }
    }

    fn out_line(&mut self, line: StreamLine, signals: &mut Vec<Signal>) {
        match parse_object_line(&line) {
            Some(event) => {
                let known = self.protocol.handle_event(&event, signals);
                self.unknown += u64::from(known == EventRecognition::No);
                self.spoke |= known != EventRecognition::Status;
            }
            // No protocol has such lines, but programs have warnings and last words. A person may want to read them.
            None => {
                self.spoke = true;
                if let Some(words) = text_signal(line) {
                    self.unknown += 1;
                    signals.push(words);
                }
            }
        }
    }

    fn handle_lines(
        &mut self,
        stream: AgentStream,
        lines: impl IntoIterator<Item = StreamLine>,
    ) -> Vec<Signal> {
        let mut signals = Vec::new();
        for line in lines {
            match stream {
                AgentStream::Out => self.out_line(line, &mut signals),
                AgentStream::Err => self.protocol.handle_stderr_line(&line.text, &mut signals),
                AgentStream::Aside => {
                    if let Some(record) = parse_object_line(&line) {
                        self.protocol.handle_side_record(&record);
                    }
                }
            }
        }
        signals
    }
}

impl<P: AgentProtocol> OutputParser for JsonLines<P> {
    fn feed(&mut self, stream: AgentStream, bytes: &[u8]) -> Vec<Signal> {
        self.spoke = false;
        let lines = match stream {
            AgentStream::Out => self.out.feed(bytes),
            AgentStream::Err => self.err.feed(bytes),
            AgentStream::Aside => self.aside.feed(bytes),
        };
        self.handle_lines(stream, lines)
    }

    fn was_only_status(&self) -> bool {
        !self.spoke
    }

    fn finish(&mut self) -> Vec<Signal> {
        let (out, err, aside) = (self.out.finish(), self.err.finish(), self.aside.finish());
        let mut signals = self.handle_lines(AgentStream::Out, out);
        signals.extend(self.handle_lines(AgentStream::Err, err));
        signals.extend(self.handle_lines(AgentStream::Aside, aside));
        self.protocol.end_stream(&mut signals);
        signals
    }

    fn raw_lines_unknown(&self) -> u64 {
        self.unknown
    }

    fn lines_cut(&self) -> u64 {
        self.out.cut_count()
    }
}

/// The object in a line. A line that was cut holds none, however well it begins.
fn parse_object_line(line: &StreamLine) -> Option<Value> {
    if !line.whole {
        return None;
    }
    serde_json::from_str(&line.text).ok().filter(Value::is_object)
}

/// A count in an event; nonsense is nothing.
pub(crate) fn count_or_zero(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_f64().map(|number| number as u64)).unwrap_or(0)
}

/// Dollars in an event, as millionths. Nonsense is nothing: the cast bounds it.
pub(crate) fn micro_usd(value: &Value) -> u64 {
    value.as_f64().map_or(0, |dollars| (dollars * 1e6).round() as u64)
}

/// A text in an event; empty when it is not there.
pub(crate) fn text_or_empty(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Seconds since 1970 in an event, as the moment they name.
pub(crate) fn timestamp_from_seconds(value: &Value) -> Option<landfall_model::Timestamp> {
    let seconds = count_or_zero(value);
    let ms = i64::try_from(seconds).ok()?.checked_mul(1000)?;
    (seconds > 0).then_some(landfall_model::Timestamp(ms))
}

/// The beginning of a text, for a person.
pub(crate) fn truncate_text(text: &str) -> String {
    /// Bytes kept. The log has the rest.
    const BRIEF_MAX: usize = 500;
    text[..text.floor_char_boundary(BRIEF_MAX)].to_owned()
}

/// What a tool is used on: the telling field of its input, and a mark that tells two different inputs apart.
pub(crate) fn describe_tool_input(input: &Value) -> String {
    /// Fields that say most, in this order; the agents have different names for the same.
    const TELLING: [&str; 9] =
        ["command", "file_path", "filePath", "path", "pattern", "query", "url", "description", "prompt"];
    let Some(fields) = input.as_object().filter(|fields| !fields.is_empty()) else {
        return String::new();
    };
    let told = TELLING.iter().find_map(|name| fields.get(*name)?.as_str());
    let others = fields.iter().any(|(name, value)| value.as_str() != told && name != "description");
    match told {
        Some(told) if !others && told.len() <= DETAIL_MAX => told.to_owned(),
        // An edit of the same file is another step when it writes something else.
        told => {
            let told = told.unwrap_or_default();
            let told = &told[..told.floor_char_boundary(DETAIL_MAX)];
            format!("{told} #{:08x}", short_hash(&input.to_string())).trim_start().to_owned()
        }
    }
}

/// Bytes kept of what a tool is used on.
const DETAIL_MAX: usize = 200;

/// A short mark of a text (FNV-1a): equal texts have equal ones.
fn short_hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |mark, byte| (mark ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

//! The control words that every agent may say in its text: `<landfall key="…">COMPLETE</landfall>`, payload after a
//! colon.
//!
//! The key is the run's. A model reads files, web pages and its own instructions, and may repeat any of them on a line
//! of its own; none of them knows the key. So a model's word counts only with it ([`Tags::for_model_output`]). The output of a
//! plain program is its own word and needs none ([`Tags::for_program_output`]); a key it names must still be the right one.
//!
//! A word counts only where an agent speaks for itself: alone on its line, with at most three spaces before it, not
//! in a fenced code block, not quoted. Everything else is text, because agents cite their own instructions. What
//! starts out as a control word and is not one is reported as malformed and changes nothing.

use landfall_model::{ControlSignal, Signal};

use crate::fence::{CodeFenceTracker, LinePosition};
use crate::lines::StreamLine;

/// Bytes kept of a payload. It is a sentence for a person; the log has the rest.
pub const PAYLOAD_MAX: usize = 4096;

/// The names of the tag. The second is what prompts written for Axiom say.
const NAMES: [&str; 2] = ["landfall", "axiom"];

const MALFORMED: &str = "SIGNAL_MALFORMED";
const UNKNOWN_TYPE: &str = "SIGNAL_UNKNOWN_TYPE";
const MISSING_PAYLOAD: &str = "SIGNAL_MISSING_PAYLOAD";
const INVALID_PAYLOAD: &str = "SIGNAL_INVALID_PAYLOAD";
const WITHOUT_KEY: &str = "SIGNAL_WITHOUT_KEY";
const WRONG_KEY: &str = "SIGNAL_WRONG_KEY";

/// Hears control words in the text of an agent, line by line.
#[derive(Debug, Default)]
pub struct ControlTagParser {
    fences: CodeFenceTracker,
    key: TagKey,
}

/// What a tag has to say of the run's key.
#[derive(Debug)]
enum TagKey {
    /// It must be there.
    Demanded(String),
    /// It may be left out.
    Optional(String),
}

impl Default for TagKey {
    fn default() -> Self {
        Self::Optional(String::new())
    }
}

/// What one line of text is.
#[derive(Debug, Clone, PartialEq)]
pub enum LineKind {
    /// Words of the agent, in its own voice.
    Words,
    /// Words in a code block, or the fence of one.
    Code,
    /// A control word, well-formed or not.
    Signal(Signal),
}

impl ControlTagParser {
    /// For the text of a model: a word counts only with this key.
    #[must_use]
    pub fn for_model_output(key: &str) -> Self {
        Self { fences: CodeFenceTracker::default(), key: TagKey::Demanded(key.to_owned()) }
    }

    /// For what a program writes: a word may leave the key out, and counts with no other.
    #[must_use]
    pub fn for_program_output(key: &str) -> Self {
        Self { fences: CodeFenceTracker::default(), key: TagKey::Optional(key.to_owned()) }
    }

    /// What the next line is.
    pub fn hear(&mut self, line: &StreamLine) -> LineKind {
        match self.fences.line(&line.text) {
            LinePosition::Opens { .. } | LinePosition::Code | LinePosition::Closes => LineKind::Code,
            LinePosition::Text if line.whole => {
                parse_control_tag(&self.key, &line.text).map_or(LineKind::Words, LineKind::Signal)
            }
            LinePosition::Text => LineKind::Words,
        }
    }

    /// A new message of the agent begins: a code block left open in the last one ends there.
    pub fn new_message(&mut self) {
        self.fences = CodeFenceTracker::default();
    }

    /// The signals one line amounts to: a control word, or its text unless it is blank.
    pub(crate) fn read_signal(&mut self, line: StreamLine) -> Option<Signal> {
        match self.hear(&line) {
            LineKind::Signal(signal) => Some(signal),
            LineKind::Words | LineKind::Code => text_signal(line),
        }
    }
}

/// The line as words for a person; nothing when it is blank.
pub(crate) fn text_signal(line: StreamLine) -> Option<Signal> {
    (!line.text.trim().is_empty()).then_some(Signal::Text(line.text))
}

fn parse_control_tag(key: &TagKey, line: &str) -> Option<Signal> {
    // Four spaces or a tab would make it code.
    let tag = line.trim_start_matches(' ');
    if line.len() - tag.len() > 3 {
        return None;
    }
    let tag = tag.trim_end_matches([' ', '\t', '\r']);
    let (name, opened) = NAMES.into_iter().find_map(|name| Some((name, parse_open_tag(name, tag)?)))?;
    let said = match parse_tag_end(name, opened.inner) {
        TagEnd::Inner(inner) => key.check_key(opened.key).and_then(|()| parse_control_signal(inner)),
        TagEnd::Never => Err(MALFORMED),
        TagEnd::ThenWords => return None,
    };
    Some(match said {
        Ok(said) => Signal::Said(said),
        Err(code) => Signal::Malformed { code, text: shorten_payload(tag).to_owned() },
    })
}

impl TagKey {
    fn check_key(&self, given: Option<&str>) -> Result<(), &'static str> {
        match (self, given) {
            (Self::Demanded(_), None) => Err(WITHOUT_KEY),
            (Self::Optional(_), None) => Ok(()),
            // An empty key would be one that everybody knows.
            (Self::Demanded(key) | Self::Optional(key), Some(given)) if given == key && !key.is_empty() => {
                Ok(())
            }
            (Self::Demanded(_) | Self::Optional(_), Some(_)) => Err(WRONG_KEY),
        }
    }
}

struct OpenTag<'a> {
    key: Option<&'a str>,
    /// What follows the tag that opens.
    inner: &'a str,
}

/// `<landfall>` or `<landfall key="…">`. The key may stand in either kind of quotes, or in none.
fn parse_open_tag<'a>(name: &str, tag: &'a str) -> Option<OpenTag<'a>> {
    let rest = tag.strip_prefix('<')?.strip_prefix(name)?;
    if let Some(inner) = rest.strip_prefix('>') {
        return Some(OpenTag { key: None, inner });
    }
    let key = rest.strip_prefix(' ')?.trim_start_matches(' ').strip_prefix("key=")?;
    let (key, inner) = match key.strip_prefix(['"', '\'']) {
        Some(quoted) => quoted.split_once(&key[..1])?,
        None => key.split_at(key.find([' ', '>'])?),
    };
    let inner = inner.trim_start_matches(' ').strip_prefix('>')?;
    Some(OpenTag { key: Some(key), inner })
}

enum TagEnd<'a> {
    /// The closing tag ends the line; this stands before it.
    Inner(&'a str),
    /// It is not there.
    Never,
    /// It is there and the line goes on: a sentence about the tag.
    ThenWords,
}

fn parse_tag_end<'a>(name: &str, inner: &'a str) -> TagEnd<'a> {
    let shut = inner
        .strip_suffix('>')
        .and_then(|rest| rest.strip_suffix(name))
        .and_then(|rest| rest.strip_suffix("</"));
    match shut {
        Some(inner) => TagEnd::Inner(inner),
        None if inner.contains(&format!("</{name}>")) => TagEnd::ThenWords,
        None => TagEnd::Never,
    }
}

fn parse_control_signal(inner: &str) -> Result<ControlSignal, &'static str> {
    let (kind, payload) = match inner.split_once(':') {
        Some((kind, payload)) => (kind, Some(payload.trim())),
        None => (inner, None),
    };
    if kind.is_empty() || !kind.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_') {
        return Err(MALFORMED);
    }
    let words = || match payload {
        None | Some("") => Err(MISSING_PAYLOAD),
        Some(words) if words.contains('<') => Err(INVALID_PAYLOAD),
        Some(words) => Ok(shorten_payload(words).to_owned()),
    };
    let alone = |said| if payload.is_none() { Ok(said) } else { Err(INVALID_PAYLOAD) };
    match kind {
        "COMPLETE" => alone(ControlSignal::Complete),
        "RESOLVED" => alone(ControlSignal::Resolved),
        "BLOCKED" => words().map(ControlSignal::Blocked),
        "PENDING" => words().map(ControlSignal::Pending),
        "DISCOVERY_LOCAL" => words().map(ControlSignal::DiscoveryLocal),
        "DISCOVERY_GLOBAL" => words().map(ControlSignal::DiscoveryGlobal),
        "PROGRESS" => parse_percent(&words()?).map(ControlSignal::Progress),
        "STEP" => parse_step_number(&words()?).map(ControlSignal::Step),
        "CHECK" => words().map(ControlSignal::Check),
        _ => Err(UNKNOWN_TYPE),
    }
}

fn parse_percent(words: &str) -> Result<u8, &'static str> {
    let plain = words.bytes().all(|byte| byte.is_ascii_digit());
    words.parse().ok().filter(|percent| plain && *percent <= 100).ok_or(INVALID_PAYLOAD)
}

/// The number of a step, from 1.
fn parse_step_number(words: &str) -> Result<u32, &'static str> {
    let plain = words.bytes().all(|byte| byte.is_ascii_digit());
    words.parse().ok().filter(|number| plain && *number > 0).ok_or(INVALID_PAYLOAD)
}

fn shorten_payload(text: &str) -> &str {
    &text[..text.floor_char_boundary(PAYLOAD_MAX)]
}

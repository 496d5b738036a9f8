//! The bridge's lines into signals.

use landfall_model::{AgentFinish, AgentUsage, Signal};
use serde_json::Value;

use super::note::TmuxNote;
use crate::agent::{OutputParser, ParserContext};
use crate::json::{AgentProtocol, EventRecognition, JsonLines, truncate_text};
use crate::voice::MessageParser;

/// The ear for one terminal.
pub(super) fn terminal_parser(ear: &ParserContext) -> Box<dyn OutputParser + Send> {
    Box::new(JsonLines::new(TmuxParser {
        voice: MessageParser::new(&ear.nonce),
        last_words: String::new(),
        close: None,
    }))
}

struct TmuxParser {
    voice: MessageParser,
    last_words: String,
    /// How it ended, once the bridge has put the terminal away too.
    close: Option<(AgentFinish, String)>,
}

impl AgentProtocol for TmuxParser {
    fn handle_event(&mut self, event: &Value, signals: &mut Vec<Signal>) -> EventRecognition {
        match TmuxNote::deserialize(event) {
            Some(note) => {
                self.handle_note(note, signals);
                EventRecognition::Yes
            }
            None => EventRecognition::No,
        }
    }
}

impl TmuxParser {
    fn handle_note(&mut self, note: TmuxNote, signals: &mut Vec<Signal>) {
        match note {
            TmuxNote::Started { session, .. } => signals.push(Signal::Started { session, model: None }),
            TmuxNote::Prompted => {
                signals.push(Signal::Usage(AgentUsage { turns: 1, ..AgentUsage::default() }))
            }
            TmuxNote::Said { text } => self.handle_message(&text, signals),
            TmuxNote::Asked { why, text } if why == "permission" => {
                signals.push(Signal::PermissionAsked { what: truncate_text(&text) });
            }
            TmuxNote::Asked { text, .. } => signals.push(Signal::Question(truncate_text(&text))),
            TmuxNote::Limit { .. } => signals.push(Signal::Quota { until: None }),
            TmuxNote::Login { text } => signals.push(Signal::Unauthorized { detail: truncate_text(&text) }),
            TmuxNote::Waiting { count } => signals.push(Signal::Waiting { count }),
            TmuxNote::Done => self.close = Some((AgentFinish::Success, std::mem::take(&mut self.last_words))),
            TmuxNote::Failed { why } => self.close = Some((AgentFinish::Error, why)),
            TmuxNote::Ended { .. } => {
                let (how, text) = self.close.take().unwrap_or((AgentFinish::Interrupted, String::new()));
                signals.push(Signal::Finished { how, text });
            }
            TmuxNote::Screen { .. }
            | TmuxNote::Lines { .. }
            | TmuxNote::Key { .. }
            | TmuxNote::Held { .. }
            | TmuxNote::Stopping => {}
        }
    }

    /// A screen shows no fences around code. So a control word counts only where a message closes with it, which no
    /// quotation does.
    fn handle_message(&mut self, text: &str, signals: &mut Vec<Signal>) {
        truncate_text(text).clone_into(&mut self.last_words);
        let text = text.trim_end();
        let (words, last) = text.rsplit_once('\n').map_or(("", text), |(words, last)| (words, last));
        let mut closing = Vec::new();
        self.voice.push_message(last, &mut closing);
        if matches!(closing.as_slice(), [Signal::Said(_) | Signal::Malformed { .. }]) {
            if !words.trim().is_empty() {
                signals.push(Signal::Text(words.trim_matches('\n').to_owned()));
            }
            signals.extend(closing);
        } else if !text.is_empty() {
            signals.push(Signal::Text(text.to_owned()));
        }
    }
}

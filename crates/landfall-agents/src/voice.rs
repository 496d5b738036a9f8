//! What a model says: whole messages into words and control words.

use landfall_model::Signal;

use crate::lines::{LINE_MAX, StreamLine};
use crate::tags::{ControlTagParser, LineKind};

/// Hears the messages of a model, one after the other.
#[derive(Debug)]
pub(crate) struct MessageParser {
    tags: ControlTagParser,
    /// The message that is being said in pieces.
    held: String,
    cut: bool,
}

impl MessageParser {
    /// For a run with this key.
    pub(crate) fn new(key: &str) -> Self {
        Self { tags: ControlTagParser::for_model_output(key), held: String::new(), cut: false }
    }

    /// A whole message.
    pub(crate) fn push_message(&mut self, text: &str, signals: &mut Vec<Signal>) {
        self.push_piece(text);
        self.end_message(signals);
    }

    /// A piece of a message that goes on. Beyond a bound only the beginning is kept.
    pub(crate) fn push_piece(&mut self, text: &str) {
        let room = LINE_MAX - self.held.len();
        let kept = &text[..text.floor_char_boundary(room)];
        if !self.cut {
            self.held.push_str(kept);
        }
        self.cut |= kept.len() < text.len();
    }

    /// The message is over. Its words come as one text for each stretch between control words.
    pub(crate) fn end_message(&mut self, signals: &mut Vec<Signal>) {
        let held = std::mem::take(&mut self.held);
        let cut = std::mem::take(&mut self.cut);
        self.tags.new_message();
        let mut stretch = String::new();
        let mut lines = held.split('\n').peekable();
        while let Some(line) = lines.next() {
            // The last line of a message that was cut is not whole.
            let whole = !cut || lines.peek().is_some();
            match self.tags.hear(&StreamLine { text: line.to_owned(), whole }) {
                LineKind::Words | LineKind::Code => {
                    stretch.push_str(line);
                    stretch.push('\n');
                }
                LineKind::Signal(signal) => {
                    emit_text(&mut stretch, signals);
                    signals.push(signal);
                }
            }
        }
        emit_text(&mut stretch, signals);
    }
}

fn emit_text(stretch: &mut String, signals: &mut Vec<Signal>) {
    let words = std::mem::take(stretch);
    let words = words.trim_matches(['\n', '\r']);
    if !words.trim().is_empty() {
        signals.push(Signal::Text(words.to_owned()));
    }
}

//! What an agent says through its socket (`landfall signal`, the MCP tools): lines the sitter has taken, each with the
//! right key.

use landfall_agents::LineSplitter;
use landfall_model::{ControlSignal, Signal};
use serde::Deserialize;

/// Understands the lines.
#[derive(Debug, Default)]
pub(crate) struct SocketSignalParser {
    lines: LineSplitter,
}

#[derive(Deserialize)]
struct SocketMessage {
    say: String,
    #[serde(default)]
    text: String,
}

impl SocketSignalParser {
    /// The signals these bytes complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Signal> {
        let lines = self.lines.feed(bytes);
        lines.iter().filter(|line| line.whole).map(|line| parse_signal(&line.text)).collect()
    }
}

fn parse_signal(line: &str) -> Signal {
    let malformed = |code| Signal::Malformed { code, text: line.chars().take(200).collect() };
    let Ok(SocketMessage { say, text }) = serde_json::from_str::<SocketMessage>(line) else {
        return malformed("SIGNAL_MALFORMED");
    };
    let given = text.trim();
    let said = match (say.as_str(), given.is_empty()) {
        ("complete", _) => ControlSignal::Complete,
        ("resolved", _) => ControlSignal::Resolved,
        ("blocked", false) => ControlSignal::Blocked(given.to_owned()),
        ("pending" | "ask", false) => ControlSignal::Pending(given.to_owned()),
        ("progress", false) => match given.trim_end_matches('%').parse::<u8>() {
            Ok(percent) if percent <= 100 => ControlSignal::Progress(percent),
            Ok(_) | Err(_) => return malformed("SIGNAL_INVALID_PAYLOAD"),
        },
        ("step", false) => match given.parse::<u32>() {
            Ok(number) if number > 0 => ControlSignal::Step(number),
            Ok(_) | Err(_) => return malformed("SIGNAL_INVALID_PAYLOAD"),
        },
        ("check", false) => ControlSignal::Check(given.to_owned()),
        ("discovery-local", false) => ControlSignal::DiscoveryLocal(given.to_owned()),
        ("discovery-global", false) => ControlSignal::DiscoveryGlobal(given.to_owned()),
        ("follow-up", false) => ControlSignal::FollowUp(given.to_owned()),
        (
            "blocked" | "pending" | "ask" | "progress" | "step" | "check" | "discovery-local"
            | "discovery-global" | "follow-up",
            true,
        ) => return malformed("SIGNAL_MISSING_PAYLOAD"),
        _ => return malformed("SIGNAL_UNKNOWN_TYPE"),
    };
    Signal::Said(said)
}

#[cfg(test)]
mod tests {
    use landfall_host::sitter::WORDS;

    use super::{Signal, parse_signal};

    #[test]
    fn the_sitter_takes_exactly_the_words_that_are_understood() {
        for word in WORDS {
            let line = format!(r#"{{"say":"{word}","text":"7"}}"#);
            assert!(matches!(parse_signal(&line), Signal::Said(_)), "{word}");
        }
        for word in
            ["complete", "blocked", "pending", "progress", "step", "check", "resolved", "ask", "follow-up"]
        {
            assert!(WORDS.contains(&word), "{word}");
        }
        assert!(matches!(parse_signal(r#"{"say":"stop"}"#), Signal::Malformed { .. }));
    }
}

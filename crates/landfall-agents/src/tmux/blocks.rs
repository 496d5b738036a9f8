//! What of a screen the agent says itself.

use super::TerminalAgentKind;
use super::screen::{TerminalScreen, is_rule, text_after_mark};

/// The agent's own messages that can be seen whole, oldest first. None where we do not know how a program marks them.
#[must_use]
pub fn visible_messages(cli: TerminalAgentKind, screen: &TerminalScreen) -> Vec<String> {
    let mark = match cli {
        TerminalAgentKind::Claude => "●",
        TerminalAgentKind::Codex => "•",
        TerminalAgentKind::Other => return Vec::new(),
    };
    let mut messages: Vec<String> = Vec::new();
    let mut open: Option<Vec<&str>> = None;
    let mut close = |block: Option<Vec<&str>>| {
        if let Some(lines) = block.filter(|lines| is_speech(cli, lines)) {
            messages.push(lines.join("\n").trim().to_owned());
        }
    };
    for line in &screen.lines {
        if is_clock(line) {
            close(open.take());
        } else if let Some(first) = text_after_mark(line, mark) {
            close(open.take());
            open = Some(vec![first]);
        } else if line.is_empty() {
            if let Some(block) = &mut open {
                block.push("");
            }
        } else if let Some(rest) = line.strip_prefix("  ")
            && !is_rule(line)
        {
            if let Some(block) = &mut open {
                block.push(rest);
            }
        } else {
            close(open.take());
        }
    }
    // What reaches the edge may go on: it is not whole.
    messages
}

/// Whether a block is words, and not a tool at work.
fn is_speech(cli: TerminalAgentKind, lines: &[&str]) -> bool {
    let (Some(first), rest) = (lines.first(), &lines[1..]) else { return false };
    let output = rest.iter().any(|line| line.starts_with('⎿') || line.starts_with('└'));
    match cli {
        TerminalAgentKind::Claude => !output && !is_call(first) && !first.starts_with("Usage limit reached"),
        TerminalAgentKind::Codex => {
            let work = [
                "Ran ",
                "Running ",
                "Working (",
                "Edited ",
                "Added ",
                "Deleted ",
                "Explored",
                "Model changed",
            ];
            !output && !work.iter().any(|word| first.starts_with(word))
        }
        TerminalAgentKind::Other => false,
    }
}

/// `  Worked for 6s • 1:34 PM`, which Codex puts below its last message.
fn is_clock(line: &str) -> bool {
    line.strip_prefix("  Worked for ").is_some_and(|rest| rest.contains(" • "))
}

/// `Write(hello.txt)`.
fn is_call(line: &str) -> bool {
    let name = line.split('(').next().unwrap_or_default();
    line.ends_with(')')
        && name.len() < line.len()
        && name.chars().next().is_some_and(char::is_uppercase)
        && name
            .chars()
            .all(|letter| letter.is_alphanumeric() || letter == '_' || letter == ' ' || letter == '-')
}

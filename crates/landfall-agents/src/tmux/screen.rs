//! A picture of a terminal.

/// What is on a terminal at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TerminalScreen {
    /// Its lines from the top, blanks at their ends left out.
    pub lines: Vec<String>,
    /// The line the cursor is in.
    pub cursor: usize,
    /// The title the program has given it.
    pub title: String,
}

impl TerminalScreen {
    /// From what was captured.
    #[must_use]
    pub fn new(text: &str, cursor: usize, title: &str) -> Self {
        let lines = text.lines().map(|line| line.trim_end().to_owned()).collect();
        Self { lines, cursor, title: title.to_owned() }
    }

    /// The lines that are not empty, each with where it is.
    pub(super) fn nonblank_lines(&self) -> Vec<(usize, &str)> {
        let lines = self.lines.iter().map(String::as_str).enumerate();
        lines.filter(|(_, line)| !line.trim().is_empty()).collect()
    }
}

/// A rule from edge to edge, with which dialogs and input boxes begin.
pub(super) fn is_rule(line: &str) -> bool {
    const RULE_MIN: usize = 20;
    let line = line.trim();
    line.chars().count() >= RULE_MIN && line.chars().all(|letter| letter == '─')
}

/// What follows a mark at the very beginning of a line.
pub(super) fn text_after_mark<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    line.strip_prefix(mark).map(|rest| rest.strip_prefix(' ').unwrap_or(rest))
}

//! How text looks on a terminal: colour by meaning, and words wrapped to its width. A pipe gets neither.

use std::io::IsTerminal;

use console::{Style, measure_text_width};
use landfall_api::RunResult;

/// Longer lines are hard to read.
const PROSE_COLUMNS_MAX: usize = 100;
/// A label in front of a line is no wider; a wider one is a sentence.
const LABEL_COLUMNS_MAX: usize = 24;

/// What a word means. Colour only repeats what the word says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextTone {
    /// It is well.
    Good,
    /// It goes on.
    Lively,
    /// Somebody should look at it.
    Warn,
    /// It went wrong.
    Bad,
    /// It matters less.
    Dim,
}

impl TextTone {
    /// The tone of what has become of a task in a run.
    pub fn for_result(result: RunResult) -> Self {
        match result {
            RunResult::Landed | RunResult::Accepted => Self::Good,
            RunResult::Failed => Self::Bad,
            RunResult::NeedsYou | RunResult::Behind => Self::Warn,
            RunResult::AtWork | RunResult::Waiting => Self::Lively,
            RunResult::NotStarted | RunResult::Cancelled => Self::Dim,
        }
    }

    /// The tone of a cell, by the first word in it: a status, an outcome, the state of a check.
    pub fn for_word(cell: &str) -> Option<Self> {
        let word = cell.split([' ', ':', ',']).next().unwrap_or_default();
        Some(match word {
            "done" | "landed" | "pass" | "passed" | "ok" | "OK" | "green" | "open" | "approved" => Self::Good,
            "active" | "landing" | "working" | "verifying" | "running" => Self::Lively,
            "waiting" | "review" | "warn" | "flaky" | "paused" | "PAUSED" | "HELD" => Self::Warn,
            "failed" | "blocked" | "timeout" | "fail" | "BAD" | "broken" | "red" | "rejected" => Self::Bad,
            "draft" | "cancelled" | "skipped" => Self::Dim,
            _ => return None,
        })
    }

    fn to_style(self) -> Style {
        match self {
            Self::Good => Style::new().green(),
            Self::Lively => Style::new().cyan(),
            Self::Warn => Style::new().yellow(),
            Self::Bad => Style::new().red(),
            Self::Dim => Style::new().dim(),
        }
    }
}

/// The text in the colour of its meaning, if stdout is a terminal that wants colour. `NO_COLOR` is respected.
pub fn paint_text(tone: TextTone, text: &str) -> String {
    if is_coloured() {
        tone.to_style().force_styling(true).apply_to(text).to_string()
    } else {
        text.to_owned()
    }
}

/// Whether stdout wants colour: a terminal that can, and nobody said no.
fn is_coloured() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    std::io::stdout().is_terminal() && !set("NO_COLOR") && !is_dumb()
}

/// Whether the terminal says that it can only print one line after the other.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// How wide stdout is; none if it is no terminal.
pub fn terminal_columns() -> Option<usize> {
    std::io::stdout().is_terminal().then(|| usize::from(console::Term::stdout().size().1))
}

/// Text for stdout: on a terminal, each line is wrapped between words and goes on under its own beginning.
pub fn fit_to_terminal(text: &str) -> String {
    match terminal_columns() {
        Some(columns) => fit_within(text, columns),
        None => text.to_owned(),
    }
}

fn fit_within(text: &str, columns: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        if measure_text_width(line) <= columns || columns < 20 {
            out += line;
        } else {
            let indent = " ".repeat(hanging_indent(line));
            out += wrap_line(line, columns.min(PROSE_COLUMNS_MAX), &indent).trim_end_matches('\n');
        }
        out += end;
    }
    out
}

/// Where the second line of a wrapped line begins: under the first word, or under what follows a label.
fn hanging_indent(line: &str) -> usize {
    let plain = console::strip_ansi_codes(line);
    let leading = plain.len() - plain.trim_start().len();
    let rest = &plain[leading..];
    if rest.starts_with("- ") {
        return leading + 2;
    }
    let label = rest.find("  ").map(|at| at + rest[at..].len() - rest[at..].trim_start().len());
    let label = label.map(|width| measure_text_width(&rest[..width]));
    // `held    reason`, or `spent   today: …`, whose label has one word in seven columns and a space.
    let is_label = |head: &&str| leading == 0 && head.ends_with(' ') && !head.trim_end().contains(' ');
    let short = rest.get(..8).filter(is_label).map(|_| 8);
    leading + label.filter(|width| *width <= LABEL_COLUMNS_MAX).or(short).unwrap_or(0)
}

/// Breaks a line between words. A command in backticks stays in one piece, to be copied.
pub fn wrap_line(line: &str, columns: usize, indent: &str) -> String {
    let (mut text, mut used) = (String::new(), 0);
    let mut in_command = false;
    // A gap between words, unless it lies in a command.
    let words = line.split_inclusive(|c: char| {
        in_command ^= c == '`';
        c == ' ' && !in_command
    });
    for word in words {
        let width = measure_text_width(word.trim_end());
        if used > indent.len() && used + width > columns && !text.trim().is_empty() {
            text.truncate(text.trim_end().len());
            text += "\n";
            text += indent;
            used = indent.len();
        }
        text += word;
        used += measure_text_width(word);
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::{TextTone, fit_within};

    #[test]
    fn long_lines_are_wrapped_under_their_own_beginning() {
        let check = |line: &str, expect: &str| assert_eq!(fit_within(line, 40), expect);
        check("short\n", "short\n");
        check(
            "held    a reason that is too long for one line of it\n",
            "held    a reason that is too long for\n        one line of it\n",
        );
        check(
            "- T3 waits for T2, which failed; `landfall retry T2` starts it\n",
            "- T3 waits for T2, which failed;\n  `landfall retry T2` starts it\n",
        );
        check(
            "  empties tests: tests/trim.sh, which assert nothing\n",
            "  empties tests: tests/trim.sh, which\n  assert nothing\n",
        );
        check(
            "  you can: answer it with one of the options given\n",
            "  you can: answer it with one of the\n  options given\n",
        );
    }

    #[test]
    fn a_word_has_the_tone_of_its_meaning() {
        assert_eq!(TextTone::for_word("waiting (question)"), Some(TextTone::Warn));
        assert_eq!(TextTone::for_word("done"), Some(TextTone::Good));
        assert_eq!(TextTone::for_word("Fix the parser"), None);
    }
}

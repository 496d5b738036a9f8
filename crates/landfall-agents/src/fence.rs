//! Which lines of a Markdown text are code.

/// Follows a text line by line and knows whether it is inside a fenced code block.
#[derive(Debug, Default)]
pub struct CodeFenceTracker {
    open: Option<CodeFence>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CodeFence {
    mark: u8,
    length: usize,
    /// Where it stands in its line.
    column: usize,
}

/// Where a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinePosition<'a> {
    /// Ordinary text.
    Text,
    /// A fence that opens a block.
    Opens {
        /// What follows the fence, trimmed: usually the name of a language.
        info: &'a str,
    },
    /// Inside a block.
    Code,
    /// The fence that closes the block.
    Closes,
}

impl CodeFenceTracker {
    /// Takes the next line and says where it stands.
    pub fn line<'a>(&mut self, line: &'a str) -> LinePosition<'a> {
        match self.open {
            Some(open) => match parse_fence(line, line.trim_start_matches(' ')) {
                Some((shut, "")) if shut.closes_fence(open) => {
                    self.open = None;
                    LinePosition::Closes
                }
                Some(_) | None => LinePosition::Code,
            },
            None => match parse_fence(line, strip_list_markers(line)) {
                Some((open, info)) => {
                    self.open = Some(open);
                    LinePosition::Opens { info }
                }
                None => LinePosition::Text,
            },
        }
    }

    /// Whether the next line is code, unless it closes the block.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.open.is_some()
    }
}

impl CodeFence {
    /// A fence deeper in the line than three spaces past the one that opened the block is part of the code.
    fn closes_fence(self, open: Self) -> bool {
        self.mark == open.mark && self.length >= open.length && self.column <= open.column + 3
    }
}

/// A line without its indentation and list markers: `- ```` opens a block too. We are generous about what opens a
/// block, because code taken for text could end a task, while text taken for code only costs another iteration.
fn strip_list_markers(line: &str) -> &str {
    let mut rest = line.trim_start_matches(' ');
    // Lists nest a few levels at most; the bound keeps a line of a million dashes cheap.
    for _ in 0..8 {
        let digits = rest.bytes().take(9).take_while(u8::is_ascii_digit).count();
        let after = match rest.as_bytes().get(digits) {
            Some(b'.' | b')') if digits > 0 => digits + 1,
            Some(b'-' | b'*' | b'+') if digits == 0 => 1,
            Some(_) | None => return rest,
        };
        match rest[after..].strip_prefix([' ', '\t']) {
            Some(more) => rest = more.trim_start_matches([' ', '\t']),
            None => return rest,
        }
    }
    rest
}

fn parse_fence<'a>(line: &str, text: &'a str) -> Option<(CodeFence, &'a str)> {
    let column = line.len() - text.len();
    let mark = *text.as_bytes().first().filter(|byte| matches!(byte, b'`' | b'~'))?;
    let length = text.bytes().take_while(|byte| *byte == mark).count();
    let info = text[length..].trim();
    // Three backticks with more backticks after them are inline code.
    let inline = mark == b'`' && info.contains('`');
    (length >= 3 && !inline).then_some((CodeFence { mark, length, column }, info))
}

#[cfg(test)]
mod tests {
    use super::{CodeFenceTracker, LinePosition};

    fn check(text: &str, places: &str) {
        let mut fences = CodeFenceTracker::default();
        let got: String = text
            .lines()
            .map(|line| match fences.line(line) {
                LinePosition::Text => 't',
                LinePosition::Opens { .. } => '(',
                LinePosition::Code => 'c',
                LinePosition::Closes => ')',
            })
            .collect();
        assert_eq!(got, places, "{text}");
    }

    #[test]
    fn fences_open_and_close() {
        check("a\n```\nb\n```\nc", "t(c)t");
        check("~~~ rust\n```\n~~~\nc", "(c)t");
        check("````\n```\n````\nc", "(c)t");
        check("```\nb\n```` \nc", "(c)t");
        check("```\n``` no\nb", "(cc");
        check("- ```\n  b\n  ```\nc", "(c)t");
        check("12. ~~~\nb\n   ~~~\nc", "(c)t");
        check("``` a ``` b\nc\n``\nd", "tttt");
        check("```\n    ```\nb\n   ```\nc", "(cc)t");
        check("> ```\n> b\nc", "ttt");
    }
}

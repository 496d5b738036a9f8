//! Bytes into lines, in bounded memory.

/// Bytes kept of one line. The longest useful lines are JSON messages of some 100 kB; beyond this only the
/// beginning is kept and the line is counted as cut.
pub const LINE_MAX: usize = 1 << 20;

/// Cuts a stream of bytes into lines, however the bytes arrive.
#[derive(Debug, Default)]
pub struct LineSplitter {
    held: Vec<u8>,
    overlong: bool,
    cut: u64,
}

/// One line without its end. Bytes that are no UTF-8 are replaced by U+FFFD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamLine {
    /// What it says.
    pub text: String,
    /// Whether it is all there: a line that was cut is never a control word.
    pub whole: bool,
}

impl LineSplitter {
    /// The lines that these bytes complete.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Vec<StreamLine> {
        let mut lines = Vec::new();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.hold_bytes(&bytes[..end]);
            lines.push(self.take());
            bytes = &bytes[end + 1..];
        }
        self.hold_bytes(bytes);
        lines
    }

    /// The last line, if the stream did not end with a newline.
    pub fn finish(&mut self) -> Option<StreamLine> {
        if self.held.is_empty() { None } else { Some(self.take()) }
    }

    /// How many lines were cut so far.
    #[must_use]
    pub fn cut_count(&self) -> u64 {
        self.cut
    }

    fn hold_bytes(&mut self, bytes: &[u8]) {
        let room = LINE_MAX - self.held.len();
        self.held.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.overlong |= bytes.len() > room;
    }

    fn take(&mut self) -> StreamLine {
        let mut bytes = std::mem::take(&mut self.held);
        let whole = !std::mem::take(&mut self.overlong);
        self.cut += u64::from(!whole);
        if whole && bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        StreamLine { text, whole }
    }
}

#[cfg(test)]
mod tests {
    use super::{LINE_MAX, LineSplitter, StreamLine};

    fn line(text: &str) -> StreamLine {
        StreamLine { text: text.to_owned(), whole: true }
    }

    #[test]
    fn lines_end_at_newlines_and_lose_a_carriage_return() {
        let mut lines = LineSplitter::default();
        assert_eq!(lines.feed(b"one\r\ntw"), [line("one")]);
        assert_eq!(lines.feed(b"o\n\nth\xffree"), [line("two"), line("")]);
        assert_eq!(lines.finish(), Some(line("th\u{fffd}ree")));
        assert_eq!(lines.finish(), None);
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_whole_and_one_byte_more_is_cut() {
        let mut lines = LineSplitter::default();
        let mut fit = vec![b'a'; LINE_MAX];
        fit.push(b'\n');
        assert!(lines.feed(&fit)[0].whole);
        assert_eq!(lines.cut_count(), 0);
        let mut over = vec![b'a'; LINE_MAX + 1];
        over.push(b'\n');
        let got = lines.feed(&over);
        assert!(!got[0].whole);
        assert_eq!(got[0].text.len(), LINE_MAX);
        assert_eq!(lines.cut_count(), 1);
        assert_eq!(lines.feed(b"next\n"), [line("next")]);
    }
}

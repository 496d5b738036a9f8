//! A page of text: headings, paragraphs that break where the room ends, and names with values.

use landfall_text::control_chars::escape_line;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::top::theme::Theme;

/// Lines of a page.
pub struct WrappedText {
    /// So far.
    pub lines: Vec<Line<'static>>,
    width: usize,
}

impl WrappedText {
    /// Empty, with room for so many columns.
    pub fn new(width: usize) -> Self {
        Self { lines: Vec::new(), width: width.max(10) }
    }

    /// A heading, with a free line before it.
    pub fn add_heading(&mut self, text: &str) {
        if !self.lines.is_empty() {
            self.lines.push(Line::default());
        }
        self.lines.push(Line::styled(escape_line(text).into_owned(), Theme::strong()));
    }

    /// A paragraph; its own line ends stay.
    pub fn add_paragraph(&mut self, text: &str) {
        self.add_styled(text, Style::new());
    }

    /// The same in a style.
    pub fn add_styled(&mut self, text: &str, style: Style) {
        for line in text.lines() {
            let rows = wrap_text(&escape_line(&line.replace('\t', "    ")), self.width);
            self.lines.extend(rows.into_iter().map(|row| Line::styled(row, style)));
        }
    }

    /// A sign, and a paragraph that stands beside it.
    pub fn add_item(&mut self, sign: &str, style: Style, text: &str) {
        let indent = console::measure_text_width(sign) + 1;
        let text = text.lines().collect::<Vec<_>>().join(" ");
        let rows = wrap_text(&escape_line(&text), self.width.saturating_sub(indent).max(8));
        for (place, row) in rows.into_iter().enumerate() {
            let before = if place == 0 { format!("{sign} ") } else { " ".repeat(indent) };
            self.lines.push(Line::from(vec![Span::styled(before, style), Span::raw(row)]));
        }
    }

    /// A name and its value.
    pub fn add_field(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.add_item(&format!("{name:<10}"), Theme::dim(), value);
        }
    }
}

/// Breaks at blanks where it can, and inside of words that are longer than a row.
pub fn wrap_text(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut rows = Vec::new();
    let mut row = String::new();
    let mut wide = 0;
    for word in text.split_inclusive(' ') {
        let word_wide = console::measure_text_width(word.trim_end());
        if wide > 0 && wide + word_wide > width {
            rows.push(std::mem::take(&mut row));
            wide = 0;
        }
        if word_wide <= width {
            row.push_str(word);
            wide += console::measure_text_width(word);
            continue;
        }
        for letter in word.chars() {
            let letter_wide = console::measure_text_width(letter.encode_utf8(&mut [0; 4]));
            if wide + letter_wide > width && wide > 0 {
                rows.push(std::mem::take(&mut row));
                wide = 0;
            }
            row.push(letter);
            wide += letter_wide;
        }
    }
    rows.push(row);
    for row in &mut rows {
        row.truncate(row.trim_end().len());
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::wrap_text;

    #[test]
    fn lines_break_at_blanks_and_long_words_where_they_must() {
        assert_eq!(wrap_text("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap_text("", 7), [""]);
        assert_eq!(wrap_text("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrap_text("日本語", 4), ["日本", "語"]);
    }
}

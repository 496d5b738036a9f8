//! Text that is being typed: what keys and pastes do to it, and where it breaks on the screen.
//!
//! The cursor stands between letters as people see them, so a flag or an accented letter is one step.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use landfall_text::control_chars::escape_line;
use unicode_segmentation::UnicodeSegmentation as _;

const BYTES_MAX: usize = 64 * 1024; // a page-long answer fits many times; a pasted core dump does not

/// Text with a cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineEditor {
    text: String,
    cursor: usize, // in bytes, always at the edge of a letter
}

/// What became of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOutcome {
    /// It changed the text or moved the cursor.
    Taken,
    /// It means nothing here.
    Left,
}

impl LineEditor {
    /// With this in it, and the cursor at its end.
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), cursor: text.len() }
    }

    /// What was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// One key.
    pub fn handle_key(&mut self, key: KeyEvent) -> KeyOutcome {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match (key.code, ctrl, alt) {
            (KeyCode::Char('a'), true, false) | (KeyCode::Home, ..) => self.cursor = self.row_start(),
            (KeyCode::Char('e'), true, false) | (KeyCode::End, ..) => self.cursor = self.row_end(),
            (KeyCode::Char('b'), false, true) | (KeyCode::Left, true, _) | (KeyCode::Left, _, true) => {
                self.cursor = self.word_before();
            }
            (KeyCode::Char('f'), false, true) | (KeyCode::Right, true, _) | (KeyCode::Right, _, true) => {
                self.cursor = self.word_after();
            }
            (KeyCode::Char('b'), true, false) | (KeyCode::Left, ..) => self.cursor = self.previous_boundary(),
            (KeyCode::Char('f'), true, false) | (KeyCode::Right, ..) => self.cursor = self.next_boundary(),
            (KeyCode::Char('w'), true, false) | (KeyCode::Backspace, _, true) => {
                self.delete_to(self.word_before())
            }
            (KeyCode::Char('d'), false, true) => self.delete_to(self.word_after()),
            (KeyCode::Char('h'), true, false) | (KeyCode::Backspace, ..) => {
                self.delete_to(self.previous_boundary())
            }
            (KeyCode::Char('d'), true, false) | (KeyCode::Delete, ..) => self.delete_to(self.next_boundary()),
            (KeyCode::Char('u'), true, false) => self.delete_to(self.row_start()),
            (KeyCode::Char('k'), true, false) => self.delete_to(self.row_end()),
            (KeyCode::Char('j'), true, false) | (KeyCode::Enter, _, true) => self.insert("\n"),
            (KeyCode::Char(letter), false, false) => self.insert(letter.encode_utf8(&mut [0; 4])),
            _ => return KeyOutcome::Left,
        }
        KeyOutcome::Taken
    }

    /// What was pasted. Line ends stay, other characters that a terminal obeys do not.
    pub fn paste_text(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n").replace('\t', "    ");
        let text: String = text.chars().filter(|c| *c == '\n' || !c.is_control()).collect();
        self.insert(&text);
    }

    fn insert(&mut self, text: &str) {
        let room = BYTES_MAX.saturating_sub(self.text.len());
        let text = &text[..text.floor_char_boundary(room)];
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        // A mark that joins the letter before it, or after it, must not leave the cursor inside of one.
        let edges = self.text.grapheme_indices(true).map(|(at, _)| at);
        self.cursor = edges.chain([self.text.len()]).find(|at| *at >= self.cursor).unwrap_or(self.text.len());
    }

    fn delete_to(&mut self, other: usize) {
        let (from, to) = (self.cursor.min(other), self.cursor.max(other));
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    fn previous_boundary(&self) -> usize {
        self.text[..self.cursor].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn next_boundary(&self) -> usize {
        self.text[self.cursor..]
            .graphemes(true)
            .next()
            .map_or(self.cursor, |letter| self.cursor + letter.len())
    }

    fn word_before(&self) -> usize {
        let words = self.text[..self.cursor].split_word_bound_indices();
        words.rev().find(|(_, word)| !word.trim().is_empty()).map_or(0, |(at, _)| at)
    }

    fn word_after(&self) -> usize {
        let mut words = self.text[self.cursor..].split_word_bound_indices();
        let found = words.find(|(_, word)| !word.trim().is_empty());
        found.map_or(self.text.len(), |(at, word)| self.cursor + at + word.len())
    }

    fn row_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn row_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    /// The rows it takes at this width, clean, and the row and column of the cursor.
    pub fn wrap_rows(&self, width: usize) -> (Vec<String>, (usize, usize)) {
        let width = width.max(2);
        let mut rows = vec![String::new()];
        let mut column = 0;
        let mut cursor = (0, 0);
        for (at, letter) in self.text.grapheme_indices(true) {
            if letter == "\n" {
                if at == self.cursor {
                    cursor = (rows.len() - 1, column);
                }
                rows.push(String::new());
                column = 0;
                continue;
            }
            let shown = escape_line(letter);
            let wide = console::measure_text_width(&shown);
            // A column is left free, so that the cursor behind the last letter has a place.
            if column + wide > width - 1 && column > 0 {
                rows.push(String::new());
                column = 0;
            }
            if at == self.cursor {
                cursor = (rows.len() - 1, column);
            }
            rows.last_mut().expect("never empty").push_str(&shown);
            column += wide;
        }
        if self.cursor == self.text.len() {
            cursor = (rows.len() - 1, column);
        }
        (rows, cursor)
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::{BYTES_MAX, LineEditor};

    /// The text with `|` where the cursor is, after keys as people write them: `^a`, `M-b`, `<`, `>`, `#` for backspace.
    fn check(start: &str, keys: &[&str], expect: &str) {
        let mut line = LineEditor::new(start);
        for key in keys {
            let letter = |text: &str| KeyCode::Char(text.chars().next().expect("a letter"));
            let (code, with) = match *key {
                "<" => (KeyCode::Left, KeyModifiers::NONE),
                ">" => (KeyCode::Right, KeyModifiers::NONE),
                "#" => (KeyCode::Backspace, KeyModifiers::NONE),
                key if key.starts_with('^') => (letter(&key[1..]), KeyModifiers::CONTROL),
                key if key.starts_with("M-") => (letter(&key[2..]), KeyModifiers::ALT),
                key => (letter(key), KeyModifiers::NONE),
            };
            line.handle_key(KeyEvent::new(code, with));
        }
        let mut shown = line.text.clone();
        shown.insert(line.cursor, '|');
        assert_eq!(shown, expect, "{start} {keys:?}");
    }

    #[test]
    fn keys_edit_letters_as_people_see_them() {
        check("", &["h", "é", "日"], "hé日|");
        check("a👩‍👩‍👧b", &["<", "#"], "a|b");
        check("e\u{301}x", &["<", "#"], "|x");
        check("e", &["\u{301}", "<"], "|e\u{301}");
        check("🇩🇪🇫🇷", &["<", "<", ">"], "🇩🇪|🇫🇷");
        check("one two  three", &["^w"], "one two  |");
        check("one two  three", &["M-b", "M-b"], "one |two  three");
        check("one two  three", &["^a", "M-f", "M-d"], "one|  three");
        check("one two", &["<", "<", "^u"], "|wo");
        check("one two", &["^a", ">", "^k"], "o|");
        check("two", &["^j", "r", "^a", "^k"], "two\n|");
        check("x", &["^a", "#", "<", "^d", "^d", ">"], "|");
    }

    #[test]
    fn a_paste_keeps_its_lines_and_nothing_that_a_terminal_obeys() {
        let mut line = LineEditor::new("a");
        line.paste_text("one\r\ntwo\u{1b}[31m\tthree\rend");
        assert_eq!(line.text(), "aone\ntwo[31m    three\nend");
        line.paste_text(&"é".repeat(BYTES_MAX));
        assert!(line.text().len() <= BYTES_MAX && line.text().ends_with('é'));
    }

    #[test]
    fn it_breaks_where_the_room_ends_and_knows_where_the_cursor_is() {
        let line = LineEditor::new("日本語 abc\nend");
        let (rows, cursor) = line.wrap_rows(6);
        assert_eq!(
            (rows, cursor),
            (vec!["日本".to_owned(), "語 ab".to_owned(), "c".to_owned(), "end".to_owned()], (3, 3))
        );
        assert_eq!(LineEditor::new("").wrap_rows(10), (vec![String::new()], (0, 0)));
        assert_eq!(LineEditor::new("abc").wrap_rows(0).0.len(), 3);
    }
}

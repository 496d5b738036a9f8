//! Characters that a terminal obeys or that deceive the reader: control characters, marks that turn the direction of
//! writing, and invisible letters. Text from tasks, agents and repositories may contain them; nothing that Landfall
//! shows does.

use std::borrow::Cow;

/// True for each of these characters. Line ends and tabs are none.
pub fn is_unsafe_char(char: char) -> bool {
    match char {
        '\n' | '\t' => false,
        '\u{61c}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => true,
        char => char.is_control(),
    }
}

/// The place of the first one.
fn find_unsafe_char(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut from = 0;
    // Whole answers are searched, and few bytes can begin such a character: most text is passed over by its bytes.
    while let Some(at) = bytes[from..]
        .iter()
        .position(|byte| matches!(byte, 0..=8 | 11..=31 | 0x7f | 0xc2 | 0xd8 | 0xe2 | 0xef | 0xf3))
    {
        let at = from + at;
        if text[at..].chars().next().is_some_and(is_unsafe_char) {
            return Some(at);
        }
        from = at + 1;
        while !text.is_char_boundary(from) {
            from += 1;
        }
    }
    None
}

/// Text on one line: every unsafe character, line end and tab becomes a visible escape.
pub fn escape_line(text: &str) -> Cow<'_, str> {
    if !text.contains(['\n', '\t']) {
        return escape_block(text);
    }
    Cow::Owned(escape_block(text).replace('\n', "\\n").replace('\t', "\\t"))
}

/// Text of several lines: every unsafe character becomes a visible escape; line ends and tabs stay.
pub fn escape_block(text: &str) -> Cow<'_, str> {
    replace_unsafe_chars(text, |char, to| match char {
        '\r' => to.push_str("\\r"),
        char => to.extend(char.escape_unicode()),
    })
}

/// A page with the number of each unsafe character in its place: `⟨U+202E⟩`.
pub fn escape_html(html: String) -> String {
    match replace_unsafe_chars(&html, |char, to| to.push_str(&format!("⟨U+{:04X}⟩", u32::from(char)))) {
        Cow::Borrowed(_) => html,
        Cow::Owned(safe) => safe,
    }
}

/// JSON with each unsafe character escaped. They occur in strings only, so the JSON means the same to every reader.
pub fn escape_json(json: String) -> String {
    let escape = |char: char, to: &mut String| {
        for unit in char.encode_utf16(&mut [0; 2]) {
            to.push_str(&format!("\\u{unit:04x}"));
        }
    };
    match replace_unsafe_chars(&json, escape) {
        Cow::Borrowed(_) => json,
        Cow::Owned(safe) => safe,
    }
}

fn replace_unsafe_chars(text: &str, write: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let Some(first) = find_unsafe_char(text) else { return Cow::Borrowed(text) };
    let mut safe = String::with_capacity(text.len() + 64);
    safe.push_str(&text[..first]);
    for char in text[first..].chars() {
        if is_unsafe_char(char) { write(char, &mut safe) } else { safe.push(char) }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escape_in_every_way(text: &str) -> [String; 4] {
        let (line, block) = (escape_line(text).into_owned(), escape_block(text).into_owned());
        [line, block, escape_html(text.to_owned()), escape_json(text.to_owned())]
    }

    #[test]
    fn what_a_terminal_obeys_becomes_visible() {
        let cases = [
            ("plain ünïcode 😀👩‍👩‍👧 naïve", "plain ünïcode 😀👩‍👩‍👧 naïve"),
            ("\u{1b}[31mred\u{1b}[0m", "\\u{1b}[31mred\\u{1b}[0m"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("a\rb", "a\\rb"),
            ("a\u{8}b\u{7f}", "a\\u{8}b\\u{7f}"),
            ("user\u{202e}nimda", "user\\u{202e}nimda"),
            ("a\u{2066}b\u{2069}", "a\\u{2066}b\\u{2069}"),
            ("\u{e0041}hidden", "\\u{e0041}hidden"),
            ("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}"),
            ("two\nlines\tand", "two\\nlines\\tand"),
        ];
        for (from, to) in cases {
            assert_eq!(escape_line(from), to);
        }
        assert_eq!(escape_block("two\nlines\tand\u{1b}c"), "two\nlines\tand\\u{1b}c");
        assert_eq!(escape_html("a\u{202e}b … é\r".to_owned()), "a⟨U+202E⟩b … é⟨U+000D⟩");
        assert_eq!(
            escape_json("\"é\u{9b}\u{202e}\u{e0041} ö …\"".to_owned()),
            "\"é\\u009b\\u202e\\udb40\\udc41 ö …\""
        );
    }

    #[test]
    fn every_unsafe_character_is_found_and_escaped() {
        let all: String = ('\0'..=char::MAX)
            .filter(|char| u32::from(*char).is_multiple_of(7) || is_unsafe_char(*char))
            .collect();
        for safe in escape_in_every_way(&all) {
            assert!(!safe.contains(is_unsafe_char));
        }
    }

    #[test]
    fn a23_ten_million_bytes_of_anything_hold_none_afterwards() {
        // Half of the bytes are random, half begin or continue an unsafe character.
        let odd = [0x1b, 0x9b, 0xc2, 0xe2, 0x80, 0xae, 0xef, 0xbb, 0xbf, 0xf3, 0xa0, 0x0d, 0x7f, b'['];
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        for round in 0..100 {
            let bytes: Vec<u8> = (0..100_000)
                .map(|_| {
                    seed ^= seed << 13;
                    seed ^= seed >> 7;
                    seed ^= seed << 17;
                    let [low, high, ..] = (seed >> 8).to_le_bytes();
                    if seed & 1 == 0 { low } else { odd[usize::from(high) % odd.len()] }
                })
                .collect();
            let text = String::from_utf8_lossy(&bytes);
            assert_eq!(find_unsafe_char(&text), text.find(is_unsafe_char), "round {round}");
            for safe in escape_in_every_way(&text) {
                assert!(!safe.contains(is_unsafe_char), "round {round}");
            }
            assert!(!escape_line(&text).contains(['\n', '\t']), "round {round}");
        }
    }
}

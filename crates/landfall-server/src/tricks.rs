//! Characters that a terminal obeys or an eye is tricked by. No answer holds them as they are, except files to keep: whoever looks
//! at one with `curl` in a terminal, or at a page, sees what is there.

use std::borrow::Cow;

/// Controls, marks that turn the direction of writing, letters that cannot be seen. Line ends and tabs are none.
fn is_trick(char: char) -> bool {
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

/// Where the first one is.
fn find(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut from = 0;
    // Nearly all text holds few bytes that could begin one.
    while let Some(at) = bytes[from..]
        .iter()
        .position(|byte| matches!(byte, 0..=8 | 11..=31 | 0x7f | 0xc2 | 0xd8 | 0xe2 | 0xef | 0xf3))
    {
        let at = from + at;
        if text[at..].chars().next().is_some_and(is_trick) {
            return Some(at);
        }
        from = at + 1;
        while !text.is_char_boundary(from) {
            from += 1;
        }
    }
    None
}

/// A page with each of them to be seen by its number.
pub(crate) fn shown(html: String) -> String {
    replaced(&html, |char, to| to.push_str(&format!("⟨U+{:04X}⟩", u32::from(char)))).into_owned()
}

/// JSON with each of them escaped. They are in strings only, so every program reads the same; JSON itself escapes the first 32.
pub(crate) fn harmless(json: Vec<u8>) -> Vec<u8> {
    let text = match String::from_utf8(json) {
        Ok(text) => text,
        Err(error) => return error.into_bytes(),
    };
    match replaced(&text, |char, to| {
        for unit in char.encode_utf16(&mut [0; 2]) {
            to.push_str(&format!("\\u{unit:04x}"));
        }
    }) {
        Cow::Borrowed(_) => text.into_bytes(),
        Cow::Owned(clean) => clean.into_bytes(),
    }
}

fn replaced(text: &str, write: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let Some(first) = find(text) else { return Cow::Borrowed(text) };
    let mut clean = String::with_capacity(text.len() + 64);
    clean.push_str(&text[..first]);
    for char in text[first..].chars() {
        if is_trick(char) { write(char, &mut clean) } else { clean.push(char) }
    }
    Cow::Owned(clean)
}

#[cfg(test)]
mod tests {
    use super::{find, harmless, is_trick, shown};

    #[test]
    fn json_without_tricks_means_the_same() {
        let value = serde_json::json!({ "é\u{9b}": "\u{1b}[31m \u{7f} \u{202e} \u{e0041} 😀 ö … \n" });
        let text = String::from_utf8(harmless(value.to_string().into_bytes())).expect("text");
        assert!(text.contains("\\u009b") && text.contains("\\u202e") && text.contains("😀 ö …"), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("still JSON"), value);
        assert_eq!(shown("a\u{202e}b … é\r".to_owned()), "a⟨U+202E⟩b … é⟨U+000D⟩");
    }

    #[test]
    fn a23_ten_million_bytes_of_anything_hold_none_afterwards() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        for round in 0..100 {
            let bytes: Vec<u8> = (0..100_000)
                .map(|_| {
                    seed ^= seed << 13;
                    seed ^= seed >> 7;
                    seed ^= seed << 17;
                    // Half of them from what begins or goes on with a trick.
                    let odd =
                        [0x1b, 0x9b, 0xc2, 0xe2, 0x80, 0xae, 0xef, 0xbb, 0xbf, 0xf3, 0xa0, 0x0d, 0x7f, b'['];
                    let [low, high, ..] = (seed >> 8).to_le_bytes();
                    if seed & 1 == 0 { low } else { odd[usize::from(high) % odd.len()] }
                })
                .collect();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            assert_eq!(find(&text), text.find(is_trick), "round {round}");
            let json = serde_json::to_vec(&text).expect("text");
            let clean = String::from_utf8(harmless(json)).expect("text");
            assert!(!clean.contains(is_trick), "round {round}");
            assert_eq!(serde_json::from_str::<String>(&clean).expect("json"), text, "round {round}");
            assert!(!shown(text).contains(is_trick), "round {round}");
        }
    }
}

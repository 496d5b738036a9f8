//! Which bytes of a source file are code, which are comments and which are in quotes. It knows how languages quote, not what
//! they mean.

use super::Language;
use super::rust_tests::{block_comment, quoted_length, raw_string};

/// How a language quotes and comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeSyntax {
    Rust,
    Python,
    Go,
    Script,
    /// Java and C, with their relatives.
    Braces,
    Shell,
}

impl CodeSyntax {
    /// By the ending of a path.
    pub(super) fn from_path(path: &str) -> Option<Self> {
        match Language::from_path(path) {
            Language::Rust => Some(Self::Rust),
            Language::Python => Some(Self::Python),
            Language::Go => Some(Self::Go),
            Language::Script => Some(Self::Script),
            Language::Jvm => Some(Self::Braces),
            Language::Prose => None,
            Language::Other => match path.rsplit('/').next()?.rsplit_once('.')?.1 {
                "sh" | "bash" | "zsh" | "ksh" => Some(Self::Shell),
                "c" | "cc" | "cpp" | "cxx" | "h" | "hpp" => Some(Self::Braces),
                _ => None,
            },
        }
    }
}

/// The byte of a mask where a text is in quotes.
pub(super) const QUOTED: u8 = b'"';

/// The text, each byte in its place: blank in comments, [`QUOTED`] in quotes and on them.
pub(super) fn mask_code(syntax: CodeSyntax, text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let Some((length, fill)) = find_opaque_span(syntax, text, at) else {
            at += 1;
            continue;
        };
        let end = (at + length.max(1)).min(bytes.len());
        for byte in out[at..end].iter_mut().filter(|byte| **byte != b'\n') {
            *byte = fill;
        }
        at = end;
    }
    out
}

/// The length of the comment or quoted text that begins at this byte, and what takes its place.
fn find_opaque_span(syntax: CodeSyntax, text: &str, at: usize) -> Option<(usize, u8)> {
    let bytes = text.as_bytes();
    let rest = &bytes[at..];
    let before = at.checked_sub(1).map(|at| bytes[at]);
    let to_line_end = || rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let has_slashes = !matches!(syntax, CodeSyntax::Python | CodeSyntax::Shell);
    let until = |mark: &[u8], from: usize| {
        let found = rest.get(from..)?.windows(mark.len()).position(|window| window == mark);
        Some(found.map_or(rest.len(), |place| from + place + mark.len()))
    };
    match rest {
        [b'/', b'/', ..] if has_slashes => Some((to_line_end(), b' ')),
        [b'/', b'*', ..] if has_slashes => Some((block_comment(rest), b' ')),
        [b'#', ..] if syntax == CodeSyntax::Python => Some((to_line_end(), b' ')),
        [b'#', ..] if syntax == CodeSyntax::Shell => {
            let begins = before.is_none_or(|byte| byte.is_ascii_whitespace() || byte == b';');
            begins.then(|| (to_line_end(), b' '))
        }
        // A text over several lines is mostly documentation.
        [b'"', b'"', b'"', ..] if syntax == CodeSyntax::Python => Some((until(b"\"\"\"", 3)?, b' ')),
        [b'\'', b'\'', b'\'', ..] if syntax == CodeSyntax::Python => Some((until(b"'''", 3)?, b' ')),
        [b'r', ..] if syntax == CodeSyntax::Rust && before.is_none_or(|byte| !is_name(byte)) => {
            raw_string(rest).map(|length| (length, QUOTED))
        }
        [b'`', ..] if matches!(syntax, CodeSyntax::Script | CodeSyntax::Go) => {
            Some((quoted_length(rest, b'`'), QUOTED))
        }
        [b'\'', ..] if syntax == CodeSyntax::Rust => {
            let inside = text.get(at + 1..)?.chars().next()?;
            let is_character = inside == '\\' || bytes.get(at + 1 + inside.len_utf8()) == Some(&b'\'');
            // A lifetime has no second quote.
            is_character.then(|| (quoted_length(rest, b'\''), QUOTED))
        }
        [b'\'', ..] if syntax == CodeSyntax::Shell => Some((until(b"'", 1)?, QUOTED)),
        [b'\\', _, ..] if syntax == CodeSyntax::Shell => Some((2, QUOTED)),
        [b'<', b'<', ..] if syntax == CodeSyntax::Shell => here_document(text, at),
        [quote @ (b'"' | b'\''), ..] => {
            let length = quoted_length(rest, *quote);
            // Where quotes end with their line, one without its end is no quote: an apostrophe in a pattern, say.
            let spans = matches!(syntax, CodeSyntax::Rust | CodeSyntax::Shell);
            let inside = &rest[..length.min(rest.len())];
            let is_whole = length > 1 && inside.last() == Some(quote) && !inside.contains(&b'\n');
            (spans || is_whole).then_some((length, QUOTED))
        }
        _ => None,
    }
}

/// `<<END` with all lines up to the one that says so.
fn here_document(text: &str, at: usize) -> Option<(usize, u8)> {
    let behind = text[at..].strip_prefix("<<")?;
    let word = behind.trim_start_matches('-').trim_start().trim_start_matches(['"', '\'', '\\']);
    let end = word.find(|char: char| !(char.is_ascii_alphanumeric() || char == '_')).unwrap_or(word.len());
    let word = &word[..end];
    if word.is_empty() || word.starts_with(|char: char| char.is_ascii_digit()) {
        return None; // `<<<` or a shift
    }
    let mut length = 0;
    for (number, line) in text[at..].split_inclusive('\n').enumerate() {
        length += line.len();
        if number > 0 && line.trim() == word {
            return Some((length, QUOTED));
        }
    }
    None
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_blank_and_quotes_are_marked() {
        let check = |path: &str, text: &str, expected: &str| {
            let syntax = CodeSyntax::from_path(path).expect("the language is known");
            assert_eq!(String::from_utf8_lossy(&mask_code(syntax, text)), expected, "{path}: {text}");
        };
        check("a.rs", "a('x', \"//\") // b", "a(\"\"\", \"\"\"\")     ");
        check("a.rs", "fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)");
        check("a.py", "x = 'a#b' # c", "x = \"\"\"\"\"    ");
        check("a.py", "\"\"\"a + b\n\"\"\"\nx", "        \n   \nx");
        check("a.js", "x = `a${b}`/* c */;", "x = \"\"\"\"\"\"\"       ;");
        check("a.sh", "echo $# 'a' # b", "echo $# \"\"\"    ");
        check("a.sh", "cat <<END\na = b\nEND\nx", "cat \"\"\"\"\"\n\"\"\"\"\"\n\"\"\"\nx");
        check("a.js", "x = /it's/; y = 1", "x = /it's/; y = 1");
    }
}

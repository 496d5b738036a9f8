//! The way out: data to stdout, talk to stderr, and nothing from a task or an agent that a terminal would obey.

use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use serde::Serialize;

use crate::exit::{Exit, Failure};

/// Text on one line, safe to show: whatever a terminal or an eye could be tricked with becomes a visible escape.
pub fn clean(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_trick(c) || c == '\n' || c == '\t')
}

/// The same for text of many lines, which keeps its line ends and tabs.
pub fn clean_block(text: &str) -> Cow<'_, str> {
    escape(text, is_trick)
}

/// Control characters (escape sequences begin with one), marks that turn the direction of writing, invisible letters.
fn is_trick(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{61c}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' => true,
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

fn escape(text: &str, bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&bad) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' if bad(c) => clean.push_str("\\n"),
            '\t' if bad(c) => clean.push_str("\\t"),
            '\r' => clean.push_str("\\r"),
            c if bad(c) => clean.extend(c.escape_unicode()),
            c => clean.push(c),
        }
    }
    Cow::Owned(clean)
}

/// At most so many columns, with `…` where something is left out. The text is already clean.
pub fn shorten(text: &str, columns: usize) -> Cow<'_, str> {
    console::truncate_str(text, columns, "…")
}

/// The base that is meant, where it is not the project's own: commands that are shown say so.
static BASE: OnceLock<String> = OnceLock::new();

/// From here on every command that is shown to a person is about this base.
pub fn about_base(base: &str) {
    let _ = BASE.set(shell_word(base)); // there is one command line
}

/// A word as a shell takes it.
pub fn shell_word(word: &str) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || "._/-+@%:,=".contains(it);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

fn advised<'a>(text: &'a str, base: Option<&String>) -> Cow<'a, str> {
    const SHOWN: &str = "`landfall ";
    let Some(base) = base.filter(|_| text.contains(SHOWN)) else { return Cow::Borrowed(text) };
    let mut parts = text.split(SHOWN);
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let said = part.split('`').next().is_some_and(|command| command.contains("--base"));
        all += &if said { format!("{SHOWN}{part}") } else { format!("{SHOWN}--base {base} {part}") };
    }
    Cow::Owned(all)
}

/// Data for stdout.
pub fn print(text: &str) -> Result<(), Failure> {
    print_bytes(advised(text, BASE.get()).as_bytes())
}

/// Data for stdout that may not be text.
pub fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::reader_left()),
        Err(error) if error.kind() == ErrorKind::StorageFull => {
            Err(Failure::new(Exit::Machine, format!("write the output: {error}")))
        }
        Err(error) => Err(Failure::new(Exit::Internal, format!("write the output: {error}"))),
    }
}

/// Bytes that someone else made: as they are for a program, clean for a terminal and for whoever wants them safe.
pub fn print_foreign(bytes: &[u8], safe: bool) -> Result<(), Failure> {
    if safe || io::stdout().is_terminal() {
        return print_bytes(clean_block(&String::from_utf8_lossy(bytes)).as_bytes());
    }
    print_bytes(bytes)
}

/// JSON for stdout: in one line for a program, spread out for a terminal.
pub fn print_json<T: Serialize + ?Sized>(value: &T) -> Result<(), Failure> {
    let spread = io::stdout().is_terminal();
    let text = if spread { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    let text = text.map_err(|error| Failure::new(Exit::Internal, format!("write JSON: {error}")))?;
    print(&(json_clean(&text) + "\n"))
}

/// JSON for stdout in one line, whoever reads it.
pub fn print_json_line<T: Serialize + ?Sized>(value: &T) -> Result<(), Failure> {
    let text = serde_json::to_string(value);
    let text = text.map_err(|error| Failure::new(Exit::Internal, format!("write JSON: {error}")))?;
    print(&(json_clean(&text) + "\n"))
}

/// The same JSON without characters that a terminal obeys. They occur inside strings only, where an escape means
/// the same to every reader.
fn json_clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        if is_trick(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                clean.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            clean.push(c);
        }
    }
    clean
}

/// A line of talk on stderr. It has been cleaned where it came from outside.
pub fn talk(text: &str) {
    let mut text = advised(text, BASE.get()).into_owned();
    text.push('\n');
    let _ = io::stderr().lock().write_all(text.as_bytes()); // nobody listens: there is nobody to tell
}

/// Says why a command failed, for people or for programs.
pub fn complain(failure: &Failure, json: bool) {
    if failure.code == Exit::Ok {
        return;
    }
    if json {
        let error = serde_json::json!({ "error": {
            "exit": failure.code.number(),
            "word": failure.code.word(),
            "problem": failure.problem,
            "message": failure.message,
            "hint": failure.hint,
        }});
        return talk(&json_clean(&error.to_string()));
    }
    talk(&format!("error: {}", clean_block(&failure.message)));
    if let Some(hint) = &failure.hint {
        talk(&format!("hint: {}", clean_block(hint)));
    }
}

#[cfg(test)]
mod tests {
    use super::{advised, clean, clean_block, is_trick, json_clean, shell_word};

    #[test]
    fn commands_that_are_shown_are_about_the_base_that_is_meant_and_safe_to_paste() {
        let base = shell_word("release/1.2");
        let shown = |text: &str| advised(text, Some(&base)).into_owned();
        assert_eq!(
            shown("see `landfall why T1`, or `landfall auto 7`"),
            "see `landfall --base release/1.2 why T1`, or `landfall --base release/1.2 auto 7`"
        );
        for same in ["nothing", "`landfall --base main why '#7'`", "landfall is a word"] {
            assert_eq!(shown(same), same);
        }
        assert_eq!(advised("`landfall why T1`", None), "`landfall why T1`");
        assert_eq!(shell_word("x$(id)"), "'x$(id)'");
        assert_eq!(shell_word("a'b"), r"'a'\''b'");
        assert_eq!(shell_word("a&b"), "'a&b'");
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
            assert_eq!(clean(from), to);
        }
        assert_eq!(clean_block("two\nlines\tand\u{1b}c"), "two\nlines\tand\\u{1b}c");
    }

    #[test]
    fn nothing_that_is_a_trick_survives_in_any_mode() {
        let all: String =
            ('\0'..=char::MAX).filter(|c| (*c as u32).is_multiple_of(7) || is_trick(*c)).collect();
        assert!(!clean(&all).contains(is_trick) && !clean_block(&all).contains(is_trick));
    }

    #[test]
    fn a23_a_million_bytes_of_anything_leave_nothing_for_a_terminal() {
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        for round in 0..10 {
            let bytes: Vec<u8> = (0..100_000)
                .map(|_| {
                    seed ^= seed << 13;
                    seed ^= seed >> 7;
                    seed ^= seed << 17;
                    let odd = [
                        0x1b, b']', b'[', b'P', 0x9b, 0xc2, 0xe2, 0x80, 0xae, 0xef, 0xbb, 0xbf, 0xf3, 0xa0,
                        b'\r', 7,
                    ];
                    let [low, high, ..] = (seed >> 8).to_le_bytes();
                    if seed & 1 == 0 { low } else { odd[usize::from(high) % odd.len()] }
                })
                .collect();
            let text = String::from_utf8_lossy(&bytes);
            let line = clean(&text);
            assert!(!line.contains(is_trick) && !line.contains(['\n', '\t']), "round {round}");
            assert!(!clean_block(&text).contains(is_trick), "round {round}");
        }
    }

    #[test]
    fn clean_json_means_the_same() {
        let value = serde_json::json!({ "t": "\u{1b}[31m \u{9b} \u{202e} \u{e0041} 😀 \n" });
        let clean = json_clean(&value.to_string());
        assert!(!clean.contains(is_trick), "{clean}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&clean).expect("still JSON"), value);
    }
}

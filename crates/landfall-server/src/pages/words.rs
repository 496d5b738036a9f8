//! Words on pages: how moments, lengths, money and sentences are written, and how text from outside is made harmless to read.
//!
//! Templates hand values over by reference, other callers by value: what is small is taken either way.

use std::borrow::{Borrow, Cow};

use landfall_api::Status;

use super::markup::Markup;

const COLOUR_MAX: usize = 64; // letters of the numbers in a sequence that colours: a longer one is none

/// A fragment as a sentence.
pub(super) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return String::new() };
    let mut sentence: String = first.to_uppercase().chain(chars).collect();
    if !sentence.ends_with(['.', '!', '?', ':']) {
        sentence.push('.');
    }
    sentence
}

/// Text from outside with everything in it to be seen: control characters as their pictures, characters that turn the
/// direction of writing or take no room by their number. Line ends and tabs stay.
pub(super) fn visible(text: &str) -> String {
    let text = &*strip_color_codes(text);
    let mut seen = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' | '\t' => seen.push(char),
            '\0'..='\x1f' => seen.push(char::from_u32(0x2400 + u32::from(char)).unwrap_or('\u{fffd}')),
            '\x7f' => seen.push('\u{2421}'),
            // Controls of the second kind, marks and embeddings of direction, what has no width, tags.
            '\u{80}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}' => seen.push_str(&format!("⟨U+{:04X}⟩", u32::from(char))),
            _ => seen.push(char),
        }
    }
    seen
}

/// Text without the sequences that only colour a terminal. Programs put them into what they print, and people cannot read them.
fn strip_color_codes(text: &str) -> Cow<'_, str> {
    if !text.contains("\u{1b}[") {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        let inner = &rest[at + 2..];
        let end = inner.find(|char: char| !matches!(char, '0'..='9' | ';' | ':')).unwrap_or(inner.len());
        let is_colour = end <= COLOUR_MAX && inner[end..].starts_with('m');
        plain.push_str(&rest[..if is_colour { at } else { at + 2 }]);
        rest = if is_colour { &inner[end + 1..] } else { inner };
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// A sentence of the program as a page shows it: what stands between backticks is code. What to type in a terminal is left
/// out, because the page has the button.
pub(super) fn prose(text: &str) -> Markup {
    let mut html = Markup::default();
    let text = strip_command_clauses(text);
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once('`') {
        let Some((code, after)) = after.split_once('`').filter(|(code, _)| !code.is_empty()) else { break };
        html.text(before).push_tag("<code>").text(code).push_tag("</code>");
        rest = after;
    }
    html.text(rest);
    html
}

/// A text in which the ids of tasks are links.
pub(super) fn task_links(text: &str) -> Markup {
    let mut html = Markup::default();
    let mut rest = text;
    while let Some(at) = rest.find('T') {
        let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let starts = !rest[..at].ends_with(|char: char| char.is_alphanumeric() || char == '_');
        let end = at + 1 + digits;
        let ends = !rest[end..].starts_with(|char: char| char.is_alphanumeric() || char == '_');
        html.text(&rest[..at]);
        match (1..=9).contains(&digits) && starts && ends {
            true => html
                .push_tag("<a href=\"/tasks/")
                .text(&rest[at..end])
                .push_tag("\">")
                .text(&rest[at..end])
                .push_tag("</a>"),
            false => html.text(&rest[at..end]),
        };
        rest = &rest[end..];
    }
    html.text(rest);
    html
}

/// Text without the clauses that name a command: "; `landfall retry T7` tries it again", " (`landfall answer T7 …`)" and, at the
/// end of a line, ": `landfall issue tick 7 2`". A line whose main clause is a command is left out, if others stay.
fn strip_command_clauses(text: &str) -> String {
    const COMMAND: &str = "`landfall ";
    let mut kept = text.to_owned();
    while let Some(at) = kept.find(" (`landfall ") {
        let Some(end) = kept[at..].find(')').map(|end| at + end + 1) else { break };
        // A question ends its sentence by itself.
        let stop = usize::from(kept[..at].ends_with(['?', '!', '.']) && kept[end..].starts_with('.'));
        kept.replace_range(at..end + stop, "");
    }
    while let Some(at) = kept.find("; `landfall ") {
        // The clause goes to the end of the sentence or to the next clause.
        let inner = at + 2 + COMMAND.len();
        let Some(code) = kept[inner..].find('`').map(|end| inner + end + 1) else { break };
        let clause = kept[code..].find([';', '.', '\n']).map_or(kept.len(), |end| code + end);
        kept.replace_range(at..clause, "");
    }
    while let Some(at) = kept.find(": `landfall ") {
        let end = kept[at..].find('\n').map_or(kept.len(), |end| at + end);
        kept.replace_range(at..end, "");
    }
    let is_told = |line: &&str| !line.starts_with(COMMAND) && !line.contains(", `landfall ");
    let told: Vec<&str> = kept.lines().filter(is_told).collect();
    if told.len() == kept.lines().count() || told.is_empty() { kept } else { told.join("\n") }
}

/// A code such as `nothing-left` as words. Any other text stays as it is: a secret with blanks in it would not be known as one.
pub(super) fn code_words(code: &str) -> String {
    match code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') {
        true => code.replace('-', " "),
        false => line(code),
    }
}

/// The same on one line: every stretch of white space is one blank.
pub(super) fn line(text: &str) -> String {
    visible(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

// Templates pass references to fields and values alike: these take both.

/// A length of time, in its two largest units: `2d 3h`, `1h 12m`, `4m 10s`, `42s`.
pub(super) fn length(ms: impl Borrow<u64>) -> String {
    landfall_text::format_duration(*ms.borrow())
}

/// How far a moment is from now, in one unit: `3 min ago`, `in 2 h`. The scripts of the pages write the same.
pub(super) fn relative_time(now_ms: impl Borrow<i64>, at_ms: impl Borrow<i64>) -> String {
    landfall_text::format_distance(*at_ms.borrow(), *now_ms.borrow())
}

/// A moment for programs: `2026-01-31T08:00:00Z`.
pub(super) fn to_rfc3339(at_ms: impl Borrow<i64>) -> String {
    landfall_text::format_rfc3339(*at_ms.borrow())
}

/// A moment for people: `2026-01-31 08:00:00 UTC`. The scripts of the pages write it in the time of the browser.
pub(super) fn moment(at_ms: impl Borrow<i64>) -> String {
    landfall_text::format_utc(*at_ms.borrow())
}

/// A large number, short: `950`, `12.3k`, `4.1M`.
pub(super) fn short(number: impl Borrow<u64>) -> String {
    landfall_text::format_count(*number.borrow())
}

/// Money: `$1.20`, `$0.004000` where cents would show nothing.
pub(super) fn usd(dollars: impl Borrow<f64>) -> String {
    landfall_text::format_usd(*dollars.borrow())
}

/// Room on a disk: `3.2 GB`.
pub(super) fn bytes(bytes: impl Borrow<u64>) -> String {
    landfall_text::format_bytes(*bytes.borrow())
}

/// A counted noun: `1 task`, `3 tasks`.
pub(super) fn many(number: impl Borrow<u64>, noun: &str) -> String {
    landfall_text::pluralize(*number.borrow(), noun)
}

/// The symbol of a status, the same everywhere.
pub(super) fn symbol(status: impl Borrow<Status>) -> &'static str {
    match status.borrow() {
        Status::Draft => "○",
        Status::Ready => "→",
        Status::Active => "●",
        Status::Waiting => "◐",
        Status::Blocked => "⊗",
        Status::Review => "◎",
        Status::Landing => "⇣",
        Status::Done => "✓",
        Status::Failed => "✗",
        Status::Timeout => "◷",
        Status::Cancelled => "⊘",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_and_turning_characters_are_shown() {
        assert_eq!(visible("a\u{202e}b\u{200b}c\x1b[2J\n\td"), "a⟨U+202E⟩b⟨U+200B⟩c␛[2J\n\td");
        assert_eq!(line("  two\n\nlines\r\x07 "), "two lines ␇");
        assert_eq!(visible("plain <b> & ümläut 漢字 🚢"), "plain <b> & ümläut 漢字 🚢");
    }

    #[test]
    fn ids_of_tasks_lead_to_them() {
        assert_eq!(
            task_links("T5 is added; <T12x, aT3").to_string(),
            "<a href=\"/tasks/T5\">T5</a> is added; &lt;T12x, aT3"
        );
    }

    #[test]
    fn colours_of_a_terminal_are_not_shown_as_letters() {
        assert_eq!(line("\x1b[1;31mFAILED\x1b[0m tests\x1b[K"), "FAILED tests␛[K");
        assert_eq!(visible("\x1b[\x1b[31mx"), "␛[x");
    }

    #[test]
    fn a_sentence_shows_code_and_leaves_the_terminal_out() {
        let shown = |text: &str| prose(text).to_string();
        assert_eq!(
            shown("T9 failed: `tests` fails (exit 1); `landfall retry T9` tries it again."),
            "T9 failed: <code>tests</code> fails (exit 1)."
        );
        assert_eq!(shown("Which one? (`landfall answer T9 \"…\"`)."), "Which one?");
        assert_eq!(shown("a ` b <i>"), "a ` b &lt;i&gt;");
        let left = "its issue #7 is not done\n2. people like it: `landfall issue tick 7 2`\nonce they are ticked, `landfall auto 7` looks again";
        assert_eq!(shown(left), "its issue #7 is not done\n2. people like it");
        assert_eq!(shown("`landfall auto 7` looks at it"), "<code>landfall auto 7</code> looks at it");
    }

    #[test]
    fn a_code_becomes_words_and_nothing_else_does() {
        assert_eq!(code_words("nothing-left"), "nothing left");
        assert_eq!(code_words("sk-Zk7+/"), "sk-Zk7+/");
    }

    #[test]
    fn lengths_and_distances_read_well() {
        let lengths = [0, 42_000, 60_000, 250_000, 3_600_000, 4_320_000, 183_600_000].map(length);
        assert_eq!(lengths, ["0s", "42s", "1m", "4m 10s", "1h", "1h 12m", "2d 3h"]);
        assert_eq!(relative_time(100_000, 99_000), "now");
        assert_eq!(relative_time(1_000_000, 800_000), "3 min ago");
        assert_eq!(relative_time(0, 7_200_000), "in 2 h");
        assert_eq!(moment(1_700_000_000_123), "2023-11-14 22:13:20 UTC");
        assert_eq!(to_rfc3339(i64::MAX), "");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([950, 12_345, 4_190_000].map(short), ["950", "12.3k", "4.1M"]);
        assert_eq!([0.0, 0.004, 1.2].map(usd), ["$0.00", "$0.004", "$1.20"]);
        assert_eq!(bytes(3_210_000_000), "3.2 GB");
    }
}

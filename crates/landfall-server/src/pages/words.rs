//! Words on pages: how moments, lengths, money and sentences are written, and how text from outside is made harmless to read.
//!
//! Templates hand values over by reference, other callers by value: what is small is taken either way.

use std::borrow::Borrow;

use landfall_api::Status;

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

/// The same on one line: every stretch of white space is one blank.
pub(super) fn line(text: &str) -> String {
    visible(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A length of time, in its two largest units: `2d 3h`, `1h 12m`, `4m 10s`, `42s`.
pub(super) fn length(ms: impl Borrow<u64>) -> String {
    let ms = *ms.borrow();
    let seconds = ms / 1000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes, seconds % 60) {
        (0, 0, 0, seconds) => format!("{seconds}s"),
        (0, 0, minutes, 0) => format!("{minutes}m"),
        (0, 0, minutes, seconds) => format!("{minutes}m {seconds}s"),
        (0, hours, 0, _) => format!("{hours}h"),
        (0, hours, minutes, _) => format!("{hours}h {minutes}m"),
        (days, 0, _, _) => format!("{days}d"),
        (days, hours, _, _) => format!("{days}d {hours}h"),
    }
}

/// How far a moment is from now, in one unit: `3 min ago`, `in 2 h`. The scripts of the pages write the same.
pub(super) fn away(now_ms: impl Borrow<i64>, at_ms: impl Borrow<i64>) -> String {
    let (now_ms, at_ms) = (*now_ms.borrow(), *at_ms.borrow());
    let seconds = now_ms.abs_diff(at_ms) / 1000;
    let far = match seconds {
        0..5 => return "now".to_owned(),
        5..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    };
    if at_ms > now_ms { format!("in {far}") } else { format!("{far} ago") }
}

/// A moment for programs: `2026-01-31T08:00:00Z`.
pub(super) fn stamp(at_ms: impl Borrow<i64>) -> String {
    let at_ms = *at_ms.borrow();
    match jiff::Timestamp::from_second(at_ms.div_euclid(1000)) {
        Ok(moment) => moment.to_string(),
        Err(_) => String::new(), // no clock shows it
    }
}

/// A moment for people: `2026-01-31 08:00:00 UTC`. The scripts of the pages write it in the time of the browser.
pub(super) fn moment(at_ms: impl Borrow<i64>) -> String {
    let at_ms = *at_ms.borrow();
    stamp(at_ms).replace('T', " ").replace('Z', " UTC")
}

/// A large number, short: `950`, `12.3k`, `4.1M`.
pub(super) fn short(number: impl Borrow<u64>) -> String {
    let number = *number.borrow();
    let tenths = |unit: u64| format!("{}.{}", number / unit, number % unit * 10 / unit);
    match number {
        0..1000 => number.to_string(),
        1000..1_000_000 => format!("{}k", tenths(1000)),
        1_000_000..1_000_000_000 => format!("{}M", tenths(1_000_000)),
        _ => format!("{}G", tenths(1_000_000_000)),
    }
}

/// Money: `$1.20`, `$0.004` where cents would show nothing.
pub(super) fn usd(dollars: impl Borrow<f64>) -> String {
    let dollars = *dollars.borrow();
    match dollars {
        _ if dollars > 0.0 && dollars < 0.1 => format!("${dollars:.3}"),
        _ => format!("${dollars:.2}"),
    }
}

/// Room on a disk: `3.2 GB`.
pub(super) fn bytes(bytes: impl Borrow<u64>) -> String {
    let bytes = *bytes.borrow();
    let tenths = |unit: u64| format!("{}.{}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{} kB", tenths(1000)),
        1_000_000..1_000_000_000 => format!("{} MB", tenths(1_000_000)),
        _ => format!("{} GB", tenths(1_000_000_000)),
    }
}

/// A word for one or for many: `1 task`, `3 tasks`.
pub(super) fn many(number: impl Borrow<u64>, one: &str) -> String {
    let number = *number.borrow();
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
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
        assert_eq!(visible("a\u{202e}b\u{200b}c\x1b[31m\n\td"), "a⟨U+202E⟩b⟨U+200B⟩c␛[31m\n\td");
        assert_eq!(line("  two\n\nlines\r\x07 "), "two lines ␇");
        assert_eq!(visible("plain <b> & ümläut 漢字 🚢"), "plain <b> & ümläut 漢字 🚢");
    }

    #[test]
    fn lengths_and_distances_read_well() {
        let lengths = [0, 42_000, 60_000, 250_000, 3_600_000, 4_320_000, 183_600_000].map(length);
        assert_eq!(lengths, ["0s", "42s", "1m", "4m 10s", "1h", "1h 12m", "2d 3h"]);
        assert_eq!(away(100_000, 99_000), "now");
        assert_eq!(away(1_000_000, 800_000), "3 min ago");
        assert_eq!(away(0, 7_200_000), "in 2 h");
        assert_eq!(moment(1_700_000_000_123), "2023-11-14 22:13:20 UTC");
        assert_eq!(stamp(i64::MAX), "");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([950, 12_345, 4_190_000].map(short), ["950", "12.3k", "4.1M"]);
        assert_eq!([0.0, 0.004, 1.2].map(usd), ["$0.00", "$0.004", "$1.20"]);
        assert_eq!(bytes(3_210_000_000), "3.2 GB");
    }
}

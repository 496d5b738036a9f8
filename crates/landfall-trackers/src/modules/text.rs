//! Small things about text that several files share.

use jiff::Timestamp as Moment;
use landfall_model::Timestamp;

/// A moment as files have it: `2026-01-31T10:00:00Z`.
#[must_use]
pub fn format_timestamp(at: Timestamp) -> String {
    let seconds = at.0.div_euclid(1000);
    Moment::from_second(seconds).map_or_else(|_| "1970-01-01T00:00:00Z".to_owned(), |at| at.to_string())
}

/// The day of a moment, as dated names have it.
#[must_use]
pub fn format_day(at: Timestamp) -> String {
    format_timestamp(at).chars().take(10).collect()
}

/// Whether the text says a moment or a day.
#[must_use]
pub fn is_moment(text: &str) -> bool {
    let text = text.trim();
    text.parse::<Moment>().is_ok()
        || text.parse::<jiff::civil::DateTime>().is_ok()
        || text.parse::<jiff::civil::Date>().is_ok()
}

/// Whether the text can name a module: letters, digits, `_` and `-`.
#[must_use]
pub fn is_name(text: &str) -> bool {
    const NAME_BYTES_MAX: usize = 100; // a folder's name and a part of a branch's
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !text.is_empty() && text.len() <= NAME_BYTES_MAX && text.chars().all(legal)
}

/// A person's words on one line: without HTML comments, escape sequences and control characters.
#[must_use]
pub fn plain_line(text: &str) -> String {
    strip_markup(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text from outside without HTML comments, escape sequences and control characters; lines stay.
#[must_use]
pub fn strip_markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("<!--") {
        out.push_str(&rest[..at]);
        rest = rest[at..].find("-->").map_or("", |end| &rest[at + end + 3..]);
    }
    out.push_str(rest);
    let mut chars = out.chars().peekable();
    let mut clean = String::with_capacity(out.len());
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                // A sequence ends with its first letter.
                Some('[') => while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
                Some(']') => while chars.next().is_some_and(|c| c != '\u{7}' && c != '\u{1b}') {},
                Some(_) | None => {}
            },
            '\n' | '\t' => clean.push(c),
            c if c.is_control() => {}
            c => clean.push(c),
        }
    }
    clean
}

/// The cells of a Markdown table row; none if the line is no row.
#[must_use]
pub fn split_cells(line: &str) -> Option<Vec<String>> {
    let line = line.trim().strip_prefix('|')?;
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for c in line.chars() {
        let last = cells.last_mut().expect("begins with one cell");
        match c {
            '|' if escaped => {
                last.pop();
                last.push('|');
            }
            '|' => cells.push(String::new()),
            c => last.push(c),
        }
        escaped = c == '\\' && !escaped;
    }
    if cells.last().is_some_and(|last| last.trim().is_empty()) {
        cells.pop();
    }
    Some(cells.into_iter().map(|cell| cell.trim().to_owned()).collect())
}

/// Whether the cells are the line below the heads of a table.
#[must_use]
pub fn is_rule(cells: &[String]) -> bool {
    !cells.is_empty()
        && cells.iter().all(|cell| cell.contains('-') && cell.chars().all(|c| c == '-' || c == ':'))
}

/// Text for one cell of a table.
#[must_use]
pub fn format_cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// The heading of a line and its level.
#[must_use]
pub fn parse_heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = &line[level..];
    ((1..=6).contains(&level) && (rest.is_empty() || rest.starts_with(' '))).then(|| (level, rest.trim()))
}

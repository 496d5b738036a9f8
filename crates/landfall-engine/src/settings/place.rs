//! Where in a file something stands: from a byte to a line and a column, and from a path of keys to a byte.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A line and a column, both from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextPosition {
    pub line: usize,
    pub column: usize,
}

/// Where the byte `at` of `text` stands.
pub(crate) fn position_at(text: &str, at: usize) -> TextPosition {
    let before = &text[..text.floor_char_boundary(at.min(text.len()))];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    TextPosition {
        line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}

/// The line numbered `line`, cut short for a message.
pub(crate) fn line_text(text: &str, line: usize) -> Option<String> {
    const SHOWN_MAX: usize = 80; // a terminal's width; the rest is in the file
    let whole = text.lines().nth(line.checked_sub(1)?)?.trim();
    let shown: String = whole.chars().take(SHOWN_MAX).collect();
    let dots = if shown.len() < whole.len() { "…" } else { "" };
    (!shown.is_empty()).then(|| format!("{shown}{dots}"))
}

/// The entries of a table in the order in which they are written.
pub(crate) fn in_order<'a, 'i>(
    table: &'a DeTable<'i>,
) -> Vec<(&'a Spanned<toml::de::DeString<'i>>, &'a Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// Where the value at `path` stands, or the nearest table around it that is written at all. Positions in arrays are
/// written as numbers.
pub(crate) fn span_of(root: &Spanned<DeTable<'_>>, path: &[&str]) -> Option<Range<usize>> {
    let mut found = None;
    let mut table = Some(root.get_ref());
    let mut array: Option<&toml::de::DeArray<'_>> = None;
    for part in path {
        let (span, value) = match (table, array) {
            (Some(table), _) => {
                let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref().as_ref() == *part) else {
                    break;
                };
                // A table's own span is its header or its braces; the key is where a person looks.
                let span = if value.get_ref().is_table() { key.span() } else { value.span() };
                (span, value)
            }
            (None, Some(array)) => {
                let Some(value) = part.parse::<usize>().ok().and_then(|at| array.get(at)) else { break };
                (value.span(), value)
            }
            (None, None) => break,
        };
        found = Some(span);
        table = value.get_ref().as_table();
        array = value.get_ref().as_array();
    }
    found
}

/// The keys that lead to the innermost value around the byte `at`.
pub(crate) fn path_at(table: &DeTable<'_>, at: usize) -> Vec<String> {
    for (key, value) in table {
        let inside = match value.get_ref() {
            DeValue::Table(inner) => path_at(inner, at),
            DeValue::Array(items) => items
                .iter()
                .filter_map(|item| item.get_ref().as_table())
                .map(|inner| path_at(inner, at))
                .find(|path| !path.is_empty())
                .unwrap_or_default(),
            _ => Vec::new(),
        };
        if !inside.is_empty() || value.span().contains(&at) || key.span().contains(&at) {
            return std::iter::once(key.get_ref().to_string()).chain(inside).collect();
        }
    }
    Vec::new()
}
